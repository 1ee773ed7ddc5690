//! The ledger: which requirement is proven by which test. It compares two lists and judges no test.

mod claim;
mod mention;
pub(crate) mod number;
pub(crate) mod report;
mod requirement;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use crate::tree::Tree;
use mention::Mention;
use number::{Group, Number};
use requirement::Requirement;

const REQUIREMENTS: &str = "docs/reference/requirements.md";

/// All requirements with their proofs.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// In the order of their numbers.
    requirements: Vec<Requirement>,
    /// Places of tests as `path:line`.
    proofs: BTreeMap<Number, Vec<String>>,
    /// Mistakes in the list or in tests, as `path:line: what`.
    faults: Vec<String>,
}

impl Ledger {
    pub(crate) fn read(tree: &Tree) -> Result<Self> {
        let Some(document) = tree.file(REQUIREMENTS) else {
            bail!("{REQUIREMENTS} is missing: it lists the requirements as `- **S0.1** text`");
        };
        let mut requirements = requirement::read(&document.text);
        if requirements.is_empty() {
            bail!("{REQUIREMENTS} lists no requirement of the form `- **S0.1** text`");
        }
        let mut known = BTreeSet::new();
        let mut faults = Vec::new();
        for Requirement { number, line, .. } in &requirements {
            if !known.insert(*number) {
                faults.push(format!("{REQUIREMENTS}:{line}: {number} is listed twice"));
            }
        }
        requirements.sort_by_key(|requirement| (requirement.number, requirement.line));
        requirements.dedup_by_key(|requirement| requirement.number);
        let mut proofs: BTreeMap<Number, Vec<String>> = BTreeMap::new();
        for claim in claim::read(tree) {
            let place = format!("{}:{}", claim.path, claim.line);
            for mention in mention::mentions(&claim.text) {
                match mention {
                    Mention::Number(number) if known.contains(&number) => {
                        proofs.entry(number).or_default().push(place.clone());
                    }
                    Mention::Number(number) => {
                        faults.push(format!("{place}: {number} is not in {REQUIREMENTS}"));
                    }
                    Mention::Shorthand(text) => {
                        faults.push(format!("{place}: `{text}`: write each number out"));
                    }
                }
            }
        }
        Ok(Self { requirements, proofs, faults })
    }

    pub(crate) fn has_group(&self, group: Group) -> bool {
        self.requirements.iter().any(|requirement| requirement.number.group == group)
    }

    /// Prints what is wrong; `true` if nothing is.
    pub(crate) fn print_faults(&self) -> bool {
        for fault in &self.faults {
            eprintln!("{fault}");
        }
        self.faults.is_empty()
    }

    fn proofs_of(&self, number: Number) -> &[String] {
        self.proofs.get(&number).map_or(&[], Vec::as_slice)
    }

    fn is_proven(&self, number: Number) -> bool {
        self.proofs.contains_key(&number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = "- **S0.1** One.\n- **S0.2** (no test owed) Two.\n- **I9** Nine.\n";

    fn ledger(document: &str, tests: &str) -> Ledger {
        let files = [(REQUIREMENTS, document), ("crates/engine/src/a.rs", tests)];
        Ledger::read(&Tree::of(&files)).unwrap()
    }

    #[test]
    fn tests_prove_what_they_name() {
        let ledger = ledger(DOCUMENT, "/// S0.1 and S0.2\n#[test]\nfn a() {}\n");
        assert!(ledger.faults.is_empty());
        assert_eq!(ledger.proofs_of(Number::parse("S0.1").unwrap()), ["crates/engine/src/a.rs:1"]);
        assert!(!ledger.is_proven(Number::parse("I9").unwrap()));
        assert!(ledger.has_group(Group::Invariant) && !ledger.has_group(Group::Workload));
    }

    #[test]
    fn unknown_numbers_and_ranges_are_faults() {
        let ledger = ledger(DOCUMENT, "/// S0.7\n/// S0.1-2\n#[test]\nfn a() {}\n");
        assert_eq!(ledger.faults.len(), 2);
        assert!(ledger.faults[0].starts_with("crates/engine/src/a.rs:1: S0.7"));
        assert!(ledger.faults[1].starts_with("crates/engine/src/a.rs:2: `S0.1-2`"));
        assert!(!ledger.is_proven(Number::parse("S0.1").unwrap()));
    }

    #[test]
    fn a_number_listed_twice_is_a_fault() {
        let ledger = ledger("- **S0.1** One.\n- **S0.1** Again.\n", "");
        assert_eq!(ledger.faults, ["docs/reference/requirements.md:2: S0.1 is listed twice"]);
        assert_eq!(ledger.requirements.len(), 1);
    }

    #[test]
    fn a_missing_or_empty_list_is_an_error() {
        assert!(Ledger::read(&Tree::of(&[])).is_err());
        assert!(Ledger::read(&Tree::of(&[(REQUIREMENTS, "# None\n")])).is_err());
    }
}
