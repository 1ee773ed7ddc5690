//! Consistency of the table of codes.

use std::collections::BTreeSet;

use super::*;

#[test]
fn numbers_and_names_are_unique_and_lead_back() {
    let numbers: BTreeSet<u32> = Code::ALL.iter().map(|c| c.number()).collect();
    let names: BTreeSet<&str> = Code::ALL.iter().map(|c| c.name()).collect();
    assert_eq!(numbers.len(), Code::ALL.len());
    assert_eq!(names.len(), Code::ALL.len());
    for code in Code::ALL {
        assert_eq!(Code::from_number(code.number()), Some(*code));
        assert_eq!(code.name().parse(), Ok(*code));
    }
    assert_eq!(Code::from_number(0), None);
}

#[test]
fn every_code_says_what_why_and_fix_in_one_line_each() {
    for code in Code::ALL {
        let CodeText { what, why, fix } = code.text();
        for line in [what, why, fix] {
            assert!(!line.is_empty() && !line.contains('\n') && !line.ends_with('.'), "{code}: {line:?}");
        }
    }
}
