//! The ledger in words and as JSON.

use serde_json::{Value, json};

use super::Ledger;
use super::number::Group;
use super::requirement::Requirement;

/// Longest text shown per requirement, in characters.
const TEXT_CHARS_MAX: usize = 80;

/// The count, then what lacks a proof (or, with `all`, everything), group by group.
pub(crate) fn text(ledger: &Ledger, group: Option<Group>, all: bool) -> String {
    let mut lines = vec![count(ledger, group)];
    let mut last_group = None;
    for item in chosen(ledger, group) {
        let proofs = ledger.proofs_of(item.number);
        let state = match (proofs.is_empty(), item.owes_test) {
            (false, _) => "proven",
            (true, true) => "no proof",
            (true, false) => "no test owed",
        };
        if !all && state != "no proof" {
            continue;
        }
        if last_group.replace(item.number.group) != Some(item.number.group) {
            lines.push(format!("\n{}", item.number.group));
        }
        let number = item.number.to_string();
        let state = if all { format!("{state:<13}") } else { String::new() };
        lines.push(format!("  {number:<6} {state}{}", first_words(&item.text)));
        if all {
            lines.extend(proofs.iter().map(|place| format!("         {place}")));
        }
    }
    lines.join("\n")
}

/// `proven 3 of 10 (1 owe no test)`: only those that owe a test are counted.
pub(crate) fn count(ledger: &Ledger, group: Option<Group>) -> String {
    let (owed, free): (Vec<_>, Vec<_>) = chosen(ledger, group).partition(|item| item.owes_test);
    let proven = owed.iter().filter(|item| ledger.is_proven(item.number)).count();
    format!("proven {proven} of {} ({} owe no test)", owed.len(), free.len())
}

pub(crate) fn json(ledger: &Ledger, group: Option<Group>) -> Value {
    let items: Vec<&Requirement> = chosen(ledger, group).collect();
    let owed = items.iter().filter(|item| item.owes_test).count();
    let is_proven = |item: &&&Requirement| item.owes_test && ledger.is_proven(item.number);
    let proven = items.iter().filter(is_proven).count();
    let rows = items.iter().map(|item| {
        json!({
            "number": item.number.to_string(),
            "group": item.number.group.to_string(),
            "owes_test": item.owes_test,
            "text": item.text,
            "proofs": ledger.proofs_of(item.number),
        })
    });
    let items = rows.collect::<Vec<Value>>();
    let no_test_owed = items.len() - owed;
    json!({ "proven": proven, "owed": owed, "no_test_owed": no_test_owed, "faults": ledger.faults, "items": items })
}

fn chosen(ledger: &Ledger, group: Option<Group>) -> impl Iterator<Item = &Requirement> {
    let is_chosen = move |item: &&Requirement| group.is_none_or(|group| item.number.group == group);
    ledger.requirements.iter().filter(is_chosen)
}

/// The beginning of a text, cut between words.
fn first_words(text: &str) -> String {
    if text.chars().count() <= TEXT_CHARS_MAX {
        return text.to_owned();
    }
    let cut: String = text.chars().take(TEXT_CHARS_MAX).collect();
    let whole = cut.rsplit_once(' ').map_or(cut.as_str(), |(whole, _)| whole);
    format!("{whole} …")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn ledger() -> Ledger {
        let document = "- **S0.1** One.\n- **S0.2** (no test owed) Two.\n- **S0.10** Ten.\n- **I9** \"Nine\".\n";
        let tests = "/// S0.1\n#[test]\nfn a() {}\n";
        let files = [("docs/reference/requirements.md", document), ("crates/engine/src/a.rs", tests)];
        Ledger::read(&Tree::of(&files)).unwrap()
    }

    #[test]
    fn what_lacks_a_proof_is_listed_by_group() {
        let wanted = "proven 1 of 3 (1 owe no test)\n\nS0\n  S0.10  Ten.\n\nI\n  I9     \"Nine\".";
        assert_eq!(text(&ledger(), None, false), wanted);
    }

    #[test]
    fn all_shows_the_proofs() {
        let wanted = "proven 1 of 2 (1 owe no test)\n\nS0\n  S0.1   proven       One.\n         \
                      crates/engine/src/a.rs:1\n  S0.2   no test owed Two.\n  S0.10  no proof     Ten.";
        assert_eq!(text(&ledger(), Group::parse("S0"), true), wanted);
    }

    #[test]
    fn json_is_counted() {
        let items = json!([{ "number": "I9", "group": "I", "owes_test": true, "text": "\"Nine\".", "proofs": [] }]);
        let wanted = json!({ "proven": 0, "owed": 1, "no_test_owed": 0, "faults": [], "items": items });
        assert_eq!(json(&ledger(), Group::parse("I")), wanted);
    }

    #[test]
    fn long_texts_are_cut_between_words() {
        let long = "word ".repeat(40);
        let cut = first_words(&long);
        assert!(cut.ends_with("word …") && cut.chars().count() <= TEXT_CHARS_MAX + 2, "{cut}");
        assert_eq!(first_words("short"), "short");
    }
}
