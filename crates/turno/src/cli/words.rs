//! Formatting of words in sentences and cells.

use serde::Serialize;
pub(crate) use turno_proto::model::text::{count, one_line};

/// The stable word of a reason.
pub(crate) fn reason_word(reason: &impl Serialize) -> String {
    let value = serde_json::to_value(reason).unwrap_or_default();
    value["reason"].as_str().unwrap_or_default().to_owned()
}

/// Counters that are not zero, for people.
pub(crate) fn counted(counters: &impl Serialize) -> String {
    let Ok(serde_json::Value::Object(map)) = serde_json::to_value(counters) else { return String::new() };
    let parts: Vec<String> = map
        .iter()
        .filter(|(_, count)| **count != 0)
        .map(|(name, count)| format!("{count} {}", name.replace('_', " ")))
        .collect();
    if parts.is_empty() { "nothing yet".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use turno_proto::model::job::{JobReason, TaskReason};
    use turno_proto::model::view::{Counters, Reason};

    use super::*;

    #[test]
    fn the_word_of_a_reason() {
        assert_eq!(reason_word(&Reason::NoWorker), "no_worker");
        assert_eq!(reason_word(&Reason::Behind { ahead: 3 }), "behind");
        assert_eq!(reason_word(&TaskReason::Waits { why: JobReason::Disk, before: 1 }), "disk");
    }

    #[test]
    fn counters_without_those_that_are_zero() {
        assert_eq!(counted(&Counters::default()), "nothing yet");
        let some = Counters { sends: 2, dedup_forgotten: 1, ..Counters::default() };
        assert_eq!(counted(&some), "1 dedup forgotten, 2 sends");
    }
}
