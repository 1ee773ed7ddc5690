//! Rule about decision records: a number names one decision for ever.

use std::collections::BTreeMap;

use super::Breach;
use crate::tree::Tree;

const NUMBER_DIGITS: usize = 4;

pub(super) fn adr_name(tree: &Tree) -> Vec<Breach> {
    let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
    let mut breaches = Vec::new();
    for file in tree.files() {
        let Some(name) = file.path.strip_prefix("docs/adr/") else {
            continue;
        };
        if name == "README.md" {
            continue;
        }
        let Some(number) = number_of(name) else {
            let advice = "name it NNNN-words.md: four digits, then small words joined by hyphens";
            breaches.push(Breach::new(&file.path, 1, advice));
            continue;
        };
        if let Some(first) = seen.get(number) {
            let advice = format!("{number} is taken by {first}: take the next free number");
            breaches.push(Breach::new(&file.path, 1, advice));
        } else {
            seen.insert(number, name);
        }
    }
    breaches
}

/// The number of a well-named record.
fn number_of(name: &str) -> Option<&str> {
    let (number, words) = name.strip_suffix(".md")?.split_once('-')?;
    let is_number = number.len() == NUMBER_DIGITS && number.chars().all(|c| c.is_ascii_digit());
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    (is_number && words.split('-').all(is_word)).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    #[test]
    fn bad_names_are_found() {
        for bad in ["1-x.md", "0001.md", "0001-.md", "0001_x.md", "0001-X.md", "0001-x.txt", "x/0001-x.md"] {
            let path = format!("docs/adr/{bad}");
            assert_eq!(places(adr_name, &[(&path, "")]), [format!("{path}:1")]);
        }
    }

    #[test]
    fn a_number_taken_twice_is_found() {
        let files = [("docs/adr/0001-a.md", ""), ("docs/adr/0001-b.md", "")];
        assert_eq!(places(adr_name, &files), ["docs/adr/0001-b.md:1"]);
    }

    #[test]
    fn good_names_are_left() {
        let files = [
            ("docs/adr/0001-one-engine.md", ""),
            ("docs/adr/0002-zmtp-3.md", ""),
            ("docs/adr/README.md", ""),
            ("docs/other.md", ""),
        ];
        assert!(places(adr_name, &files).is_empty());
    }
}
