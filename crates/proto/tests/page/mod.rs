//! Compares a page of docs/ with the code: tables and dumps.

use std::collections::{BTreeMap, BTreeSet};

use crate::golden::{Vector, hex};

/// Each dump is the vector it names, and the worked example is shown whole.
pub(crate) fn assert_dumps(document: &str, vectors: &[Vector]) {
    let vectors: BTreeMap<&str, &Vec<u8>> = vectors.iter().map(|v| (v.name, &v.bytes)).collect();
    let mut shown = BTreeSet::new();
    let mut lines = document.lines();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("```vector ") else { continue };
        let dump: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let digits: String = dump.iter().filter_map(|line| line.split('#').next()).collect();
        let golden = vectors.get(name).unwrap_or_else(|| panic!("no vector is called {name}"));
        assert_eq!(&hex(&digits), *golden, "{name}");
        shown.insert(name);
    }
    let missing: Vec<&&str> =
        vectors.keys().filter(|name| name.starts_with("example_") && !shown.contains(**name)).collect();
    assert!(missing.is_empty(), "the worked session is shown whole: {missing:?}");
}

/// The first table whose head begins like this has exactly these rows, in this order; a row may go on after what is given.
pub(crate) fn assert_rows_begin(document: &str, head: &str, expected: &[String]) {
    let table = document.lines().skip_while(|line| !line.starts_with(head)).take_while(|line| line.starts_with('|'));
    let rows: Vec<&str> = table.skip(2).collect();
    for (row, start) in rows.iter().zip(expected) {
        assert!(row.starts_with(start.as_str()), "{head}: {row}\nshould begin with {start}");
    }
    assert_eq!(rows.len(), expected.len(), "{head}");
}

/// A number with its thousands separated by commas.
pub(crate) fn number(value: impl TryInto<u64>) -> String {
    let Ok(value) = value.try_into() else { panic!("limits fit 64 bits") };
    let digits = value.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
