//! Every example of the crate runs to its end: they check their own results.

use std::path::PathBuf;
use std::process::Command;

/// The examples are built with the tests, beside them.
fn built(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    let profile = test.ancestors().nth(2).expect("tests are in PROFILE/deps");
    profile.join("examples").join(name)
}

#[test]
fn every_example_runs() {
    let sources = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/examples")).expect("there are examples");
    let mut names: Vec<String> = sources
        .map(|file| file.expect("readable").path().file_stem().expect("a file").to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["blocking", "jobs", "request", "send", "topics", "worker"]);
    for name in names {
        let path = built(&name);
        assert!(path.exists(), "{} is not built: `cargo build -p turno-client --examples`", path.display());
        let output = Command::new(&path).output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {}\n{text}", output.status);
    }
}
