//! `docs/reference/protocol/job-worker.md` says what the code does: numbers, names, limits and bytes.

use turno_proto::foreman::{ErrorCode, ForemanKind, Role};
use turno_proto::model::limits;

use crate::page::{assert_dumps, assert_rows_begin, number};
use crate::vectors;

const DOCUMENT: &str = include_str!("../../../../docs/reference/protocol/job-worker.md");

#[test]
fn every_type_is_in_its_table() {
    let row = |kind: &ForemanKind| {
        let by = match (kind.is_sent_by(Role::Worker), kind.is_sent_by(Role::Foreman)) {
            (true, true) => "both",
            (true, false) => "worker",
            _ => "foreman",
        };
        let arg0 = if kind.has_body() { " length |" } else { "" };
        format!("| {} | {} | {by} |{arg0}", kind.number(), kind.name())
    };
    assert_rows_begin(DOCUMENT, "| number | name | sent by |", &ForemanKind::ALL.iter().map(row).collect::<Vec<_>>());
}

#[test]
fn every_code_is_in_its_table() {
    let row = |code: &ErrorCode| format!("| {} | {} |", code.number(), code.name());
    assert_rows_begin(DOCUMENT, "| subtype | name |", &ErrorCode::ALL.iter().map(row).collect::<Vec<_>>());
}

#[test]
fn every_limit_is_in_its_table() {
    let rows = [
        ("processors of a worker, tasks in one body", number(limits::FOREMAN_PROCS_MAX), ""),
        ("bytes of a body", number(limits::FOREMAN_BODY_BYTES_MAX), ""),
        ("values in a body", number(limits::FOREMAN_VALUES_MAX), ""),
        ("nesting of a body", number(limits::FOREMAN_DEPTH_MAX), ""),
        ("requests held", number(limits::FOREMAN_HELD_MAX), ""),
        ("bytes of their bodies together", number(limits::FOREMAN_BODY_BYTES_MAX), ""),
        ("`Labels` in HELLO; more are ignored", number(limits::WORKER_LABELS_MAX), ""),
        ("bytes of a label's key or value; longer ones are ignored", number(limits::LABEL_BYTES_MAX), ""),
        ("bytes of `Name` in HELLO; truncated", number(limits::PEER_NAME_BYTES_MAX), ""),
        ("bytes of `Id`; more is `bad_message`", number(limits::PEER_NAME_BYTES_MAX), ""),
        ("bytes of `Status` in UPDATE; truncated", number(limits::FAILURE_BYTES_MAX), ""),
        ("wait for the first OK", number(limits::FOREMAN_BANNER_MS), " ms"),
        ("wait for HELLO", number(limits::FOREMAN_HELLO_MS), " ms"),
        ("wait for the response to RESET", number(limits::FOREMAN_RESET_MS), " ms"),
        ("wait after `overflow`", number(limits::FOREMAN_REISSUE_MS), " ms"),
        ("pause after a refusal", number(limits::FOREMAN_REST_MS), " ms"),
    ];
    let rows = rows.map(|(limit, value, unit)| format!("| {limit} | {value}{unit} |"));
    assert_rows_begin(DOCUMENT, "| limit | value |", &rows);
}

/// Every key of every body among the vectors has a row.
#[test]
fn every_key_of_a_body_is_named() {
    let mut named = 0;
    for vector in vectors::all() {
        let Some((_, body)) = vector.frame.split_once(" body=") else { continue };
        for piece in body.split('"').collect::<Vec<_>>().windows(2) {
            let [word, after] = piece else { continue };
            // The names in Env are the user's own.
            if after.starts_with(": ") && word.len() > 1 {
                assert!(DOCUMENT.contains(&format!("`{word}`")), "{}: the key {word}", vector.name);
                named += 1;
            }
        }
    }
    assert!(named > 50, "the vectors hold maps: {named}");
}

/// The names of the states are those of the tables. Proves S4.78 and S4.81.
#[test]
fn every_state_is_named() {
    let worker = ["CL_INIT0", "CL_INIT1", "CL_LOOP0", "CL_UPDATE0", "CL_UPDATE1", "CL_EXIT0", "CL_EXIT1"];
    let foreman = ["SV_INIT0", "SV_INIT1", "SV_INIT2", "SV_LOOP0", "SV_LOOP1", "SV_LOOP2", "SV_EXIT"];
    for state in worker.into_iter().chain(foreman) {
        assert!(DOCUMENT.contains(&format!("| {state}")), "{state}");
    }
}

#[test]
fn every_dump_is_a_golden_vector() {
    assert_dumps(DOCUMENT, &vectors::all());
}
