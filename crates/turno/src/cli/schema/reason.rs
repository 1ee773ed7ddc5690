//! Why a message is where it is, as programs and people read it.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use turno_proto::model::limits::AHEAD_MAX;
use turno_proto::model::view::Reason;

use crate::cli::time::seconds;
use crate::cli::words::{count, one_line};

/// Why a message is where it is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReasonBody {
    /// A stable word.
    pub(crate) reason: String,
    /// The same in a sentence.
    pub(crate) text: String,
    /// The numbers and names in that sentence.
    pub(crate) details: Map<String, Value>,
}

impl From<&Reason> for ReasonBody {
    fn from(reason: &Reason) -> Self {
        let (word, details) = word_and_details(reason);
        Self { reason: word, text: told(reason), details }
    }
}

/// The word of the wire, and the rest with our units: seconds for times, text for ids.
fn word_and_details(reason: &Reason) -> (String, Map<String, Value>) {
    let Ok(Value::Object(mut map)) = serde_json::to_value(reason) else { return Default::default() };
    let word = map.remove("reason").and_then(|word| word.as_str().map(ToOwned::to_owned)).unwrap_or_default();
    let mut details: Map<String, Value> = map
        .into_iter()
        .map(|(key, value)| match (key.strip_suffix("_ms"), value.as_u64()) {
            (Some(time), Some(ms)) => (format!("{time}_seconds"), json!(seconds(ms))),
            (None, Some(id)) if key == "worker" => (key, json!(id.to_string())),
            _ => (key, value),
        })
        .collect();
    // Left out on the wire when they are 0.
    let zeros: &[&str] = match reason {
        Reason::AllBusy { .. } => &["probing", "dropped", "not_reading", "brokers"],
        Reason::AtConsumers { .. } => &["brokers"],
        _ => &[],
    };
    for key in zeros {
        details.entry(*key).or_insert(json!(0));
    }
    (word, details)
}

fn told(reason: &Reason) -> String {
    match reason {
        Reason::NoWorker => "no worker consumes the queue".to_owned(),
        Reason::WorkersDropped { workers } => {
            format!("no worker consumes the queue: {} because deliveries expired", were_dropped(*workers))
        }
        Reason::WorkersGreeting { workers: 1 } => "the only consumer has not finished its greeting".to_owned(),
        Reason::WorkersGreeting { workers } => format!("none of the {workers} consumers has finished its greeting"),
        Reason::WorkersDraining { workers: 1 } => "the only consumer is draining and takes no new work".to_owned(),
        Reason::WorkersDraining { workers } => format!("all {workers} consumers are draining and take no new work"),
        Reason::LinksDown { down, wanted } => links_down(*down, *wanted),
        Reason::TooLong { bytes, largest } => {
            format!("no worker here takes it; brokers that have some take {largest} bytes at most, and it has {bytes}")
        }
        Reason::FarBusy { brokers, used, ahead } => far_busy(*brokers, *used, *ahead),
        Reason::AllBusy { workers, used, ahead, probing, dropped, not_reading, brokers } => {
            let text = all_busy(*workers, *used, *probing, *dropped, *not_reading, *brokers);
            format!("{text}, {}", go_first(*ahead))
        }
        Reason::ExclusiveBusy { worker, name, used, ahead } => {
            let (used, first) = (count(*used, "slot in use", "slots in use"), go_first(*ahead));
            format!("worker {worker} ({name}) has the queue to itself and is busy ({used}), {first}")
        }
        Reason::NotFree { in_flight, waiters } => {
            format!("nobody has the queue before all of it is settled ({in_flight} in flight, {waiters} standing by)")
        }
        Reason::KeptFor { worker, name, .. } => {
            format!("the queue is free and kept for worker {worker} ({name}), which has not taken it yet")
        }
        Reason::Behind { ahead } => {
            format!("{}{} too", at_least(*ahead), count(*ahead, "message before it waits", "messages before it wait"))
        }
        Reason::TooCostly { cost, largest } => {
            format!("it takes {cost} slots, and the largest consumer has {largest}")
        }
        Reason::Reserved { worker, cost, free } => {
            format!("it waits for {cost} free slots at worker {worker}, which has {free} free now")
        }
        Reason::AtWorker { worker, name, .. } => format!("worker {worker} ({name}) works on it"),
        Reason::AtLink { name, .. } => {
            format!("it crossed to broker {}, for a worker there or further on", one_line(name))
        }
        Reason::AtConsumers { consumers, open, brokers } => at_consumers(*consumers, *open, *brokers),
        Reason::StoppingAtLink { name, .. } => {
            format!("it is over for its caller, and broker {}, which it crossed to, was told to stop", one_line(name))
        }
        Reason::Stopping { worker } => format!("it is over for its caller, and worker {worker} was told to stop"),
        Reason::Storing => "it is being written to disk".to_owned(),
        Reason::Dead { failure } => format!("it used up its attempts; the last one said: {failure}"),
        Reason::Draining => "the broker is shutting down".to_owned(),
        Reason::Maintenance => "the broker is drained for maintenance, until `turno resume`".to_owned(),
    }
}

/// All that could take it have no room.
fn all_busy(workers: u64, used: u64, probing: u64, dropped: u64, not_reading: u64, brokers: u64) -> String {
    let nobody = if not_reading > 0 { "no consumer takes it now" } else { "all slots are busy" };
    let mut text = format!("{nobody} ({used} in use at {})", count(workers, "consumer", "consumers"));
    if not_reading > 0 {
        let do_not = count(not_reading, "of them does not", "of them do not");
        text += &format!(", {do_not} read what waits there and gets no more meanwhile");
    }
    if probing > 0 {
        text += &format!(", {probing} of them on probation with one delivery at a time");
    }
    if dropped > 0 {
        text += &format!(", {} from the queue", were_dropped(dropped));
    }
    if brokers > 0 {
        text += &format!(", those at {} too", count(brokers, "other broker", "other brokers"));
    }
    text
}

fn links_down(down: u64, wanted: u64) -> String {
    let are = if down == 1 { "is" } else { "are" };
    let links = count(wanted, "link", "links");
    format!("no worker that can be reached consumes the queue, and {down} of {links} {are} down")
}

/// Nobody here takes it, and those elsewhere have no room.
fn far_busy(brokers: u64, used: u64, ahead: u64) -> String {
    let far = count(brokers, "other broker has", "other brokers have");
    let used = count(used, "slot in use", "slots in use");
    let first = go_first(ahead);
    format!("no worker here takes it; {far} workers and no room for it ({used} by messages from here), {first}")
}

/// A broadcast that has not ended.
fn at_consumers(consumers: u64, open: u64, brokers: u64) -> String {
    let consumers = count(consumers, "consumer", "consumers");
    let text = format!("it went to {consumers}, and {open} of them did not answer yet");
    match brokers {
        0 => text,
        1 => format!("{text}; 1 other broker did not tell how it ended there"),
        more => format!("{text}; {more} other brokers did not tell how it ended there"),
    }
}

fn were_dropped(workers: u64) -> String {
    count(workers, "worker was dropped", "workers were dropped")
}

fn go_first(ahead: u64) -> String {
    format!("{}{}", at_least(ahead), count(ahead, "message goes first", "messages go first"))
}

/// The broker stops counting at some point.
const fn at_least(ahead: u64) -> &'static str {
    if ahead >= AHEAD_MAX { "at least " } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The word, the sentence and the details of the reasons that have some.
    #[test]
    fn reasons_for_people_and_programs() {
        let name = || "w".to_owned();
        let table = [
            (
                Reason::AllBusy { workers: 1, used: 2, ahead: 3, probing: 0, dropped: 0, not_reading: 0, brokers: 0 },
                "all slots are busy (2 in use at 1 consumer), 3 messages go first",
                json!({ "reason": "all_busy", "workers": 1, "used": 2, "ahead": 3, "probing": 0, "dropped": 0, "not_reading": 0, "brokers": 0 }),
            ),
            (
                Reason::AllBusy { workers: 2, used: 2, ahead: 1, probing: 1, dropped: 4, not_reading: 0, brokers: 2 },
                "all slots are busy (2 in use at 2 consumers), 1 of them on probation with one delivery at a time, \
                 4 workers were dropped from the queue, those at 2 other brokers too, 1 message goes first",
                json!({ "reason": "all_busy", "workers": 2, "used": 2, "ahead": 1, "probing": 1, "dropped": 4, "not_reading": 0, "brokers": 2 }),
            ),
            (
                Reason::AllBusy { workers: 3, used: 9, ahead: 0, probing: 0, dropped: 0, not_reading: 1, brokers: 0 },
                "no consumer takes it now (9 in use at 3 consumers), 1 of them does not read what waits there and gets no \
                 more meanwhile, 0 messages go first",
                json!({ "reason": "all_busy", "workers": 3, "used": 9, "ahead": 0, "probing": 0, "dropped": 0, "not_reading": 1, "brokers": 0 }),
            ),
            (
                Reason::Behind { ahead: AHEAD_MAX },
                "at least 10000 messages before it wait too",
                json!({ "reason": "behind", "ahead": 10_000 }),
            ),
            (
                Reason::WorkersDropped { workers: 1 },
                "no worker consumes the queue: 1 worker was dropped because deliveries expired",
                json!({ "reason": "workers_dropped", "workers": 1 }),
            ),
            (
                Reason::KeptFor { worker: 7, name: name(), left_ms: 4_500 },
                "the queue is free and kept for worker 7 (w), which has not taken it yet",
                json!({ "reason": "kept_for", "worker": "7", "name": "w", "left_seconds": 4.5 }),
            ),
            (
                Reason::NotFree { in_flight: 1, waiters: 2 },
                "nobody has the queue before all of it is settled (1 in flight, 2 standing by)",
                json!({ "reason": "not_free", "in_flight": 1, "waiters": 2 }),
            ),
            (
                Reason::AtWorker { worker: 7, name: name(), since_ms: 1_500 },
                "worker 7 (w) works on it",
                json!({ "reason": "at_worker", "worker": "7", "name": "w", "since_seconds": 1.5 }),
            ),
            (Reason::NoWorker, "no worker consumes the queue", json!({ "reason": "no_worker" })),
        ];
        check(table);
    }

    /// The same of the reasons that tell of other brokers.
    #[test]
    fn reasons_of_other_brokers() {
        let table = [
            (
                Reason::LinksDown { down: 1, wanted: 2 },
                "no worker that can be reached consumes the queue, and 1 of 2 links is down",
                json!({ "reason": "links_down", "down": 1, "wanted": 2 }),
            ),
            (
                Reason::FarBusy { brokers: 1, used: 3, ahead: 0 },
                "no worker here takes it; 1 other broker has workers and no room for it (3 slots in use by messages from \
                 here), 0 messages go first",
                json!({ "reason": "far_busy", "brokers": 1, "used": 3, "ahead": 0 }),
            ),
            (
                Reason::AtLink { broker: "5f3a9c0d21e4".to_owned(), name: "rb-\u{1b}2".to_owned(), since_ms: 1_500 },
                "it crossed to broker rb-\u{1b}2, for a worker there or further on",
                json!({ "reason": "at_link", "broker": "5f3a9c0d21e4", "name": "rb-\u{1b}2", "since_seconds": 1.5 }),
            ),
            (
                Reason::StoppingAtLink { broker: "5f3a9c0d21e4".to_owned(), name: "rb-2".to_owned() },
                "it is over for its caller, and broker rb-2, which it crossed to, was told to stop",
                json!({ "reason": "stopping_at_link", "broker": "5f3a9c0d21e4", "name": "rb-2" }),
            ),
            (
                Reason::TooLong { bytes: 70_000, largest: 65_536 },
                "no worker here takes it; brokers that have some take 65536 bytes at most, and it has 70000",
                json!({ "reason": "too_long", "bytes": 70_000, "largest": 65_536 }),
            ),
            (
                Reason::AtConsumers { consumers: 2, open: 1, brokers: 0 },
                "it went to 2 consumers, and 1 of them did not answer yet",
                json!({ "reason": "at_consumers", "consumers": 2, "open": 1, "brokers": 0 }),
            ),
            (
                Reason::AtConsumers { consumers: 2, open: 1, brokers: 1 },
                "it went to 2 consumers, and 1 of them did not answer yet; 1 other broker did not tell how it ended there",
                json!({ "reason": "at_consumers", "consumers": 2, "open": 1, "brokers": 1 }),
            ),
        ];
        check(table);
    }

    fn check<const N: usize>(table: [(Reason, &str, Value); N]) {
        for (reason, text, expected) in table {
            let body = ReasonBody::from(&reason);
            assert_eq!(body.text, text);
            let mut all = body.details.clone();
            all.insert("reason".to_owned(), json!(body.reason));
            assert_eq!(Value::Object(all), expected);
        }
    }
}
