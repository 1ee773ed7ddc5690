//! Rule about waiting in tests: a sleep makes a test slow on a good day and wrong on a bad one.

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
    fn a_comment_further_up_does_not_count() {
        let bad = "// absence: x\nlet a = 1;\nthread::sleep(x);";
        assert_eq!(places(test_sleep, &[(TEST_FILE, bad)]), [format!("{TEST_FILE}:3")]);
    }
}
