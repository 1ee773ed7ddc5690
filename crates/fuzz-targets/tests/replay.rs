//! What the fuzzer once found worth keeping is run again, without a fuzzer and without nightly.

use std::fs;
use std::path::{Path, PathBuf};

use turno_fuzz_targets::{TARGETS, Target};

/// Every file of a target's corpus, in order of name.
fn corpus(target: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be listed").path()).collect();
    files.sort();
    files
}

fn replay(name: &str) {
    let target: Target = TARGETS.iter().find(|(known, _)| *known == name).expect("a known target").1;
    let files = corpus(name);
    assert!(!files.is_empty(), "the corpus of {name} is empty");
    for file in files {
        let data = fs::read(&file).expect("a corpus file can be read");
        // A finding ends in a panic of its own; the file it stands in is said before it.
        let shown = file.file_name().unwrap_or_default().display().to_string();
        let result = std::panic::catch_unwind(|| target(&data));
        assert!(result.is_ok(), "fuzz/corpus/{name}/{shown} is a finding");
    }
}

#[test]
fn native_frame() {
    replay("native_frame");
}

#[test]
fn session() {
    replay("session");
}

#[test]
fn engine_ops() {
    replay("engine_ops");
}

#[test]
fn config_file() {
    replay("config_file");
}

#[test]
fn names() {
    replay("names");
}

#[test]
fn store_record() {
    replay("store_record");
}

#[test]
fn store_recovery() {
    replay("store_recovery");
}

#[test]
fn store_ops() {
    replay("store_ops");
}

#[test]
fn foreman_frame() {
    replay("foreman_frame");
}

#[test]
fn foreman_end() {
    replay("foreman_end");
}

#[test]
fn worker_end() {
    replay("worker_end");
}

#[test]
fn zmtp_session() {
    replay("zmtp_session");
}

/// A target without a test of its own, or without a program for the fuzzer, would never run.
#[test]
fn every_target_has_a_corpus_and_a_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let count = fs::read_dir(root.join("fuzz_targets")).expect("there are programs").count();
    assert_eq!(count, TARGETS.len(), "one program per target");
    for (name, _) in TARGETS {
        assert!(root.join(format!("fuzz_targets/{name}.rs")).is_file(), "{name} has no program");
        assert!(!corpus(name).is_empty(), "{name} has no corpus");
    }
}
