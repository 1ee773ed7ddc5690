//! Rules about waiting in tests: a sleep makes a test slow on a good day and wrong on a bad one, and so does a time limit.

use super::{Breach, may_be_searched};
use crate::source::{Line, Source};
use crate::tree::Tree;
use crate::word::find_word;

/// Paths that end in a sleeping function of the standard library or of tokio.
const SLEEPS: [&str; 2] = ["thread::sleep", "time::sleep"];

/// The comment that says a sleep is there to show that nothing happens.
const ABSENCE: &str = "absence:";

/// The one file that may poll, so that everyone else can wait for a condition.
const WAIT_FILE: &str = "wait";

pub(super) fn test_sleep(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for (file, source) in tree.sources() {
        if !may_be_searched(file) || file.stem() == WAIT_FILE {
            continue;
        }
        let imported = imports_sleep(source);
        for (number, line) in source.numbered() {
            if line.is_test && sleeps(&line.code, imported) && !proves_absence(source.lines(), number) {
                let advice = "a sleep in a test: wait for the condition with a deadline, or say \
                              `// absence: …` if it shows that nothing happens";
                breaches.push(Breach::new(&file.path, number, advice));
            }
        }
    }
    breaches
}

/// The tests that drive real processes.
const PROCESS_TESTS: &str = "crates/e2e/tests/";

/// Waits that take a limit of their own. `Run::finish(` has it at the end of its arguments.
const WAITS: [&str; 4] = [".end(Duration::", ".terminate(Duration::", "find(Duration::", ", Duration::from_secs("];

/// The text before the time of a command.
const COMMAND_TIMEOUT: &str = "\"--timeout\", \"";

pub(super) fn test_limit(tree: &Tree) -> Vec<Breach> {
    let mut breaches = Vec::new();
    for file in tree.files().filter(|file| file.path.starts_with(PROCESS_TESTS)) {
        for (number, line) in (1..).zip(file.text.lines()) {
            let own_limit = WAITS.iter().any(|wait| line.contains(wait)) && !line.contains("push_until_stuck");
            let in_millis = line
                .split(COMMAND_TIMEOUT)
                .skip(1)
                .any(|rest| rest.split_once('"').is_some_and(|(time, _)| time.ends_with("ms")));
            if own_limit {
                breaches.push(Breach::new(&file.path, number, "a limit of its own for a wait: use wait::PATIENCE"));
            }
            if in_millis {
                let advice = "a command has no time to connect on a busy machine: use wait::SHORT, or a minute";
                breaches.push(Breach::new(&file.path, number, advice));
            }
        }
    }
    breaches
}

fn imports_sleep(source: &Source) -> bool {
    let is_sleep = |path: &str| SLEEPS.iter().any(|sleep| path.ends_with(sleep));
    source.imports().iter().any(|import| is_sleep(&import.path))
}

fn sleeps(code: &str, imported: bool) -> bool {
    let written = SLEEPS.iter().any(|sleep| find_word(code, &format!("{sleep}(")).is_some());
    let bare = find_word(code, "sleep(").is_some_and(|at| {
        let before = code[..at].trim_end();
        !before.ends_with(['.', ':']) && !before.ends_with("fn")
    });
    written || (imported && bare)
}

/// Whether the line, or the comment right above it, says what the sleep is for.
fn proves_absence(lines: &[Line], number: usize) -> bool {
    let (above, from_here) = lines.split_at(number - 1);
    let is_comment = |line: &&Line| line.code.trim().is_empty() && !line.comment.is_empty();
    let block = above.iter().rev().take_while(is_comment);
    from_here.iter().take(1).chain(block).any(|line| line.comment.contains(ABSENCE))
}

#[cfg(test)]
mod tests {
    use super::super::places;
    use super::*;

    const TEST_FILE: &str = "crates/turno/tests/queue.rs";

    #[test]
    fn sleeps_in_tests_are_found() {
        for bad in
            ["std::thread::sleep(x);", "tokio::time::sleep(x).await;", "use std::thread::sleep; fn f() { sleep(x); }"]
        {
            assert_eq!(places(test_sleep, &[(TEST_FILE, bad)]), [format!("{TEST_FILE}:1")], "{bad}");
            assert_eq!(places(test_sleep, &[("crates/e2e/src/a.rs", bad)]).len(), 1, "{bad}");
            assert!(places(test_sleep, &[("crates/turno/src/a.rs", bad)]).is_empty(), "{bad}");
        }
        let unit = "fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() { thread::sleep(x); }\n}\n";
        assert_eq!(places(test_sleep, &[("crates/turno/src/a.rs", unit)]), ["crates/turno/src/a.rs:4"]);
    }

    #[test]
    fn sleeps_that_prove_absence_are_left() {
        for good in [
            "thread::sleep(x); // absence: no reply comes",
            "// absence: no reply comes,\n// not even late\nthread::sleep(x);",
            "worker.sleep(x);\nfn sleep() {}\nlet x = \"thread::sleep(1)\";",
        ] {
            assert!(places(test_sleep, &[(TEST_FILE, good)]).is_empty(), "{good}");
        }
        let polling = [("crates/e2e/src/wait.rs", "thread::sleep(x);")];
        assert!(places(test_sleep, &polling).is_empty());
    }

    #[test]
    fn limits_that_depend_on_speed_are_found() {
        let file = "crates/e2e/tests/queue.rs";
        for bad in [
            "worker.end(Duration::from_secs(20));",
            "broker.terminate(Duration::from_millis(200));",
            "wait::find(Duration::from_secs(20), || x);",
            "Run::finish(command, b\"\", Duration::from_secs(20))",
            "broker.run(&[\"request\", \"q\", \"--timeout\", \"50ms\"])",
        ] {
            assert_eq!(places(test_limit, &[(file, bad)]), [format!("{file}:1")], "{bad}");
            assert!(places(test_limit, &[("crates/e2e/src/a.rs", bad)]).is_empty(), "{bad}");
        }
        for good in [
            "worker.end(wait::PATIENCE);",
            "worker.hears_nothing(Duration::from_millis(100));",
            "broker.run(&[\"request\", \"--timeout\", wait::SHORT, \"--drain-timeout\", \"50ms\"])",
            "broker.run(&[\"request\", \"--timeout\", \"1m\", \"--idle\", \"50ms\"])",
        ] {
            assert!(places(test_limit, &[(file, good)]).is_empty(), "{good}");
        }
    }

    #[test]
    fn a_comment_further_up_does_not_count() {
        let bad = "// absence: x\nlet a = 1;\nthread::sleep(x);";
        assert_eq!(places(test_sleep, &[(TEST_FILE, bad)]), [format!("{TEST_FILE}:3")]);
    }
}
