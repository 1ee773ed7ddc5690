//! The commands about jobs, as far as they need no broker: what is refused before anything is asked of one, and what is
//! said when there is none.

use turno_e2e::Place;

/// Where nobody listens.
const NOBODY: &str = "unix:/nowhere/turno.sock";

/// What cannot be a job or mean one is refused with what would be right, in words and as a document.
#[test]
fn bad_values_are_refused_with_what_would_be_right() {
    let place = Place::new();
    let table: [(&[&str], &str); 28] = [
        (&["submit", "--array", "7:2", "--", "true"], "A-B or A-B:STEP"),
        (&["submit", "--array", "9-1", "--", "true"], "must not decrease"),
        (&["submit", "--array", "1-9:0", "--", "true"], "a step of at least 1"),
        (&["submit", "--array", "1-10000001", "--", "true"], "at most 10000000 tasks"),
        (&["submit", "--array", "1-2147483648", "--", "true"], "at most 10000000 tasks"),
        (&["submit", "--array", "2147483640-2147483648", "--", "true"], "go up to 2147483647"),
        (&["submit", "--slots", "0", "--", "true"], "1..="),
        (&["submit", "--priority", "10", "--", "true"], "0..=9"),
        (&["submit", "--max-parallel", "0", "--", "true"], "1.."),
        (&["submit", "--time-limit", "5", "--", "true"], "250ms, 30s, 5m"),
        (&["submit", "--backoff", "2h", "--", "true"], "must be at most 1h"),
        (&["submit", "--after", "7:never", "--", "true"], "ok, any or failed"),
        (&["submit", "--env", "A", "--", "true"], "KEY=VALUE"),
        (&["submit", "--key", "", "--", "true"], "1 to 64 bytes"),
        (&["job", "submit"], "CMD"),
        (&["job", "submit", "true"], "true"),
        (&["job", "ls", "--state", "lost"], "waiting"),
        (&["job", "show", "all"], "an id such as 7, or last"),
        (&["job", "show", "1-3"], "an id such as 7, or last"),
        (&["job", "tasks", "7.x"], "7.1-20"),
        (&["job", "tasks", "7", "--state", "held"], "cancelled"),
        (&["job", "cancel", "7.9-1"], "must not decrease"),
        (&["job", "retry"], "JOB"),
        (&["job", "retry", "7", "--tasks", "7.1"], "numbers such as 3, 1-20"),
        (&["job", "retry", "7", "--tasks", "1", "--failed"], "cannot be used with"),
        (&["job", "retry", "7.1", "--failed"], "job ids without tasks together with --failed"),
        (&["job", "wait", "first"], "1,3,5-8"),
        (&["job", "rm"], "JOB"),
    ];
    for (words, expected) in table {
        let run = place.run(words).expect(2);
        assert!(run.stderr.contains(expected), "{words:?} names {expected:?}: {}", run.stderr);
        assert_eq!(run.text(), "", "{words:?}");
        let json = ["--json"].iter().chain(words);
        assert_eq!(place.run(json).expect(2).error_code(), "bad_usage", "{words:?}");
    }
}

/// A command that no frame of a worker could hold is refused before a broker is looked for.
#[test]
fn a_command_that_is_too_long_is_refused() {
    let place = Place::new();
    let long = "x".repeat(70_000);
    let run = place.run(["submit", "--url", NOBODY, "--", "true", &long]).expect(2);
    assert!(run.stderr.contains("65536 bytes") && run.stderr.contains("code: bad_job"), "{}", run.stderr);
}

/// With `--wait`, the exit status of one command differs from those of turno itself.
#[test]
fn without_a_broker_a_wait_for_one_command_ends_with_125() {
    let place = Place::new();
    let table: [(&[&str], i32); 4] = [
        (&["submit", "--", "true"], 5),
        (&["submit", "--wait", "--array", "1-2", "--", "true"], 5),
        (&["submit", "--wait", "--", "true"], 125),
        (&["job", "submit", "--wait", "--", "true"], 125),
    ];
    for (words, exit) in table {
        let run = place.run(["--url", NOBODY].iter().chain(words)).expect(exit);
        assert!(run.stderr.contains("code: cannot_connect"), "{words:?}: {}", run.stderr);
        let json = place.run(["--json", "--url", NOBODY].iter().chain(words)).expect(exit);
        assert_eq!(json.error_code(), "cannot_connect", "{words:?}");
    }
}

/// The short way and the long way are one command.
#[test]
fn submit_is_job_submit() {
    let place = Place::new();
    let short = place.run(["submit", "--help"]).expect(0).text();
    let long = place.run(["job", "submit", "--help"]).expect(0).text();
    assert_eq!(short.replace("Usage: turno submit", "Usage: turno job submit"), long);
    for word in ["--array", "--after", "--max-parallel", "--time-limit", "--key", "--wait", "125"] {
        assert!(long.contains(word), "{word}: {long}");
    }
}
