//! Which steps `test` and `check` run, in which order, and what one step's failure means for the
//! others: a failure hides nothing that can still be found out.

use std::path::Path;

use anyhow::Result;

use crate::command::TestOptions;
use crate::machine::Machine;
use crate::step::{Outcome, Steps};
use crate::toolchain::Toolchain;

/// The actions of the steps, apart from their order.
pub(crate) trait World {
    fn survey(&mut self) -> Toolchain;
    fn cargo(&mut self, args: &[&str]) -> Outcome;
    fn tidy(&mut self) -> Outcome;
    fn ledger(&mut self) -> Outcome;
    fn deps(&mut self) -> Outcome;
    fn release(&mut self) -> Outcome;
    fn api(&mut self) -> Outcome;
    fn steps(&mut self) -> Outcome;
    fn book(&mut self) -> Outcome;
}

const FMT: &[&str] = &["fmt", "--all", "--check"];
const CLIPPY: &[&str] = &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"];
/// The published client as others build it: in the workspace it always has the features of its other users.
const CLIENT: &[&str] =
    &["clippy", "--package", "turno-client", "--no-default-features", "--locked", "--", "-D", "warnings"];
const CLIENT_DOCS: &[&str] = &["rustdoc", "--package", "turno-client", "--locked", "--", "-D", "warnings"];
const BUILD: &[&str] = &["build", "--package", "turno", "--locked"];
const NEXTEST: &[&str] = &["nextest", "run", "--workspace", "--locked"];
/// Brokers with router threads pass the same end-to-end tests.
const ROUTERS: [(&str, &[&str]); 2] = [
    (
        "e2e, 2 routers",
        &["nextest", "run", "--package", "turno-e2e", "--locked", "--config", r#"env.TURNO_TEST_ROUTERS="2""#],
    ),
    (
        "e2e, 4 routers",
        &["nextest", "run", "--package", "turno-e2e", "--locked", "--config", r#"env.TURNO_TEST_ROUTERS="4""#],
    ),
];
const PLAIN_TEST: &[&str] = &["test", "--workspace", "--locked", "--lib", "--bins", "--tests", "--no-fail-fast"];
/// Optimised, because two thousand seeds are what a normal run does.
const SIM: &[&str] = &["run", "--release", "--package", "turno-sim", "--locked", "--quiet", "--"];
const SIM_SEEDS: &[&str] = &["--seeds", "2000", "--twice", "20"];
const BENCH_BUILD: &[&str] = &["build", "--release", "--package", "turno", "--package", "turno-bench", "--locked"];
const BENCH: &[&str] = &["run", "--release", "--package", "turno-bench", "--locked", "--quiet", "--"];
const DOC_TEST: &[&str] = &["test", "--doc", "--workspace", "--locked"];

/// Everything; `true` if nothing failed.
pub(crate) fn test(root: &Path, options: &TestOptions) -> Result<bool> {
    Ok(finish(&run_test(&mut Machine::new(root), options)))
}

/// The quick half; `true` if nothing failed.
pub(crate) fn check(root: &Path) -> Result<bool> {
    Ok(finish(&run_check(&mut Machine::new(root))))
}

/// The simulator, with the user's own arguments; `true` if it found nothing.
pub(crate) fn sim(root: &Path, words: &[String]) -> Result<bool> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(matches!(Machine::new(root).cargo(&[SIM, &words].concat()), Outcome::Passed))
}

/// The benchmark, with the user's own arguments; `true` if it ran.
pub(crate) fn bench(root: &Path, words: &[String]) -> Result<bool> {
    let mut machine = Machine::new(root);
    // Both from one build, so that the one finds the other beside it.
    if !matches!(machine.cargo(BENCH_BUILD), Outcome::Passed) {
        return Ok(false);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Ok(matches!(machine.cargo(&[BENCH, &words].concat()), Outcome::Passed))
}

fn finish(steps: &Steps) -> bool {
    println!("\n{}", steps.summary());
    steps.passed()
}

fn run_check(world: &mut dyn World) -> Steps {
    let mut steps = Steps::default();
    cargo_step(&mut steps, world, "fmt", FMT);
    cargo_step(&mut steps, world, "clippy", CLIPPY);
    text_steps(&mut steps, world);
    steps
}

fn run_test(world: &mut dyn World, options: &TestOptions) -> Steps {
    let mut steps = Steps::default();
    let mut toolchain = Toolchain::default();
    steps.run(
        "toolchain",
        "compiler, components, nextest, mdbook, bash, fiu-run, python3, pyzmq, ip, valgrind",
        || {
            toolchain = world.survey();
            match toolchain.problems.as_slice() {
                [] => Outcome::Passed,
                problems => Outcome::Failed(problems.join("; ")),
            }
        },
    );
    if toolchain.has_rustfmt {
        cargo_step(&mut steps, world, "fmt", FMT);
    } else {
        steps.leave_out("fmt", Outcome::NotRun("rustfmt is missing".to_owned()));
    }
    if options.fast {
        steps.leave_out("clippy", Outcome::Skipped("--fast".to_owned()));
    } else if toolchain.has_clippy {
        cargo_step(&mut steps, world, "clippy", CLIPPY);
        cargo_step(&mut steps, world, "client", CLIENT);
    } else {
        steps.leave_out("clippy", Outcome::NotRun("clippy is missing".to_owned()));
    }
    text_steps(&mut steps, world);
    if toolchain.has_mdbook {
        steps.run("book", "mdbook build", || world.book());
    } else {
        steps.leave_out("book", Outcome::NotRun("MDBOOK IS MISSING and could not be installed".to_owned()));
    }
    if cargo_step(&mut steps, world, "build", BUILD) {
        test_steps(&mut steps, world, options, &toolchain);
    } else {
        // The tests drive the binary; without it each of them would only fail once more.
        for name in ["nextest", "routers", "sim", "steps", "client docs", "api", "doc tests"] {
            steps.leave_out(name, Outcome::NotRun("the build failed".to_owned()));
        }
    }
    steps
}

/// The steps that only read the tree.
fn text_steps(steps: &mut Steps, world: &mut dyn World) {
    steps.run("tidy", "the house rules", || world.tidy());
    steps.run("ledger", "requirements and their tests", || world.ledger());
    steps.run("deps", "licences and versions of dependencies", || world.deps());
    steps.run("release", "what would be published", || world.release());
}

fn test_steps(steps: &mut Steps, world: &mut dyn World, options: &TestOptions, toolchain: &Toolchain) {
    let extra: Vec<&str> = options.nextest_args.iter().map(String::as_str).collect();
    if toolchain.has_nextest {
        cargo_step(steps, world, "nextest", &[NEXTEST, &extra].concat());
    } else {
        let reason = "CARGO-NEXTEST IS MISSING and could not be installed; `cargo test` ran instead, \
                      WITHOUT a time limit per test";
        steps.leave_out("nextest", Outcome::NotRun(reason.to_owned()));
        cargo_step(steps, world, "cargo test", &[PLAIN_TEST, &["--"], &extra].concat());
    }
    if options.fast {
        for name in ["routers", "sim", "steps", "client docs", "api", "doc tests"] {
            steps.leave_out(name, Outcome::Skipped("--fast".to_owned()));
        }
    } else {
        if toolchain.has_nextest {
            for (name, args) in ROUTERS {
                cargo_step(steps, world, name, args);
            }
        } else {
            steps.leave_out("routers", Outcome::NotRun("nextest is missing".to_owned()));
        }
        cargo_step(steps, world, "sim", &[SIM, SIM_SEEDS].concat());
        if toolchain.has_valgrind {
            steps.run("steps", "instructions of the hot path", || world.steps());
        } else {
            steps.leave_out("steps", Outcome::NotRun("VALGRIND IS MISSING and could not be installed".to_owned()));
        }
        cargo_step(steps, world, "client docs", CLIENT_DOCS);
        steps.run("api", "public names beside api.txt of client and broker", || world.api());
        cargo_step(steps, world, "doc tests", DOC_TEST);
    }
}

fn cargo_step(steps: &mut Steps, world: &mut dyn World, name: &'static str, args: &[&str]) -> bool {
    steps.run(name, &format!("cargo {}", args.join(" ")), || world.cargo(args))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A world in which the cargo commands named in `fails` fail.
    #[derive(Default)]
    struct Fake {
        fails: &'static [&'static str],
        lacks_nextest: bool,
        lacks_clippy: bool,
        lacks_valgrind: bool,
        lacks_mdbook: bool,
        ran: Vec<String>,
    }

    impl World for Fake {
        fn survey(&mut self) -> Toolchain {
            let problem = self.lacks_clippy.then(|| "clippy is missing".to_owned());
            Toolchain {
                has_rustfmt: true,
                has_clippy: !self.lacks_clippy,
                has_nextest: !self.lacks_nextest,
                has_valgrind: !self.lacks_valgrind,
                has_mdbook: !self.lacks_mdbook,
                problems: problem.into_iter().collect(),
            }
        }

        fn cargo(&mut self, args: &[&str]) -> Outcome {
            self.ran.push(args.join(" "));
            match self.fails.contains(&args[0]) {
                true => Outcome::Failed("exit status: 101".to_owned()),
                false => Outcome::Passed,
            }
        }

        fn tidy(&mut self) -> Outcome {
            self.ran.push("tidy".to_owned());
            Outcome::Passed
        }

        fn ledger(&mut self) -> Outcome {
            self.ran.push("ledger".to_owned());
            Outcome::Passed
        }

        fn deps(&mut self) -> Outcome {
            self.ran.push("deps".to_owned());
            Outcome::Passed
        }

        fn release(&mut self) -> Outcome {
            self.ran.push("release".to_owned());
            Outcome::Passed
        }

        fn api(&mut self) -> Outcome {
            self.ran.push("api".to_owned());
            Outcome::Passed
        }

        fn steps(&mut self) -> Outcome {
            self.ran.push("steps".to_owned());
            Outcome::Passed
        }

        fn book(&mut self) -> Outcome {
            self.ran.push("book".to_owned());
            Outcome::Passed
        }
    }

    /// The first words of what ran, whether the run passed, and the summary.
    fn run(mut fake: Fake, options: &TestOptions) -> (Vec<String>, bool, String) {
        let steps = run_test(&mut fake, options);
        let first = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
        (fake.ran.iter().map(first).collect(), steps.passed(), steps.summary())
    }

    #[test]
    fn a_test_run_does_everything() {
        let (ran, passed, summary) = run(Fake::default(), &TestOptions::default());
        let checks = ["fmt", "clippy", "clippy", "tidy", "ledger", "deps", "release", "book", "build"];
        let tests = ["nextest", "nextest", "nextest", "run", "steps", "rustdoc", "api", "test"];
        assert_eq!(ran, [&checks[..], &tests[..]].concat());
        assert!(passed && summary.contains("18 of 18 steps passed"), "{summary}");
    }

    #[test]
    fn a_failure_does_not_hide_the_other_steps() {
        let fake = Fake { fails: &["fmt", "clippy", "nextest"], ..Fake::default() };
        let (ran, passed, summary) = run(fake, &TestOptions::default());
        assert_eq!(ran.len(), 17);
        assert!(!passed);
        for name in ["fmt", "clippy", "nextest"] {
            assert!(summary.contains(&format!("FAILED: {name}: exit status: 101")), "{summary}");
        }
    }

    #[test]
    fn without_a_build_the_tests_are_not_run() {
        let fake = Fake { fails: &["build"], ..Fake::default() };
        let (ran, passed, summary) = run(fake, &TestOptions::default());
        assert_eq!(ran.last().map(String::as_str), Some("build"));
        assert!(!passed && summary.ends_with("NOT RUN: doc tests: the build failed"), "{summary}");
    }

    #[test]
    fn without_nextest_cargo_test_stands_in_and_the_end_says_so() {
        let fake = Fake { lacks_nextest: true, ..Fake::default() };
        let (ran, passed, summary) = run(fake, &TestOptions::default());
        assert_eq!(ran[8..], ["build", "test", "run", "steps", "rustdoc", "api", "test"]);
        assert!(passed);
        let last = summary.lines().rev().nth(1).unwrap();
        assert!(last.starts_with("NOT RUN: nextest: CARGO-NEXTEST IS MISSING"), "{last}");
        assert!(summary.ends_with("NOT RUN: routers: nextest is missing"), "{summary}");
    }

    #[test]
    fn without_valgrind_nothing_is_counted_and_the_end_says_so() {
        let (ran, passed, summary) = run(Fake { lacks_valgrind: true, ..Fake::default() }, &TestOptions::default());
        assert!(passed && !ran.contains(&"steps".to_owned()));
        assert!(summary.ends_with("NOT RUN: steps: VALGRIND IS MISSING and could not be installed"), "{summary}");
    }

    #[test]
    fn without_mdbook_no_book_is_built_and_the_end_says_so() {
        let (ran, passed, summary) = run(Fake { lacks_mdbook: true, ..Fake::default() }, &TestOptions::default());
        assert!(passed && !ran.contains(&"book".to_owned()));
        assert!(summary.ends_with("NOT RUN: book: MDBOOK IS MISSING and could not be installed"), "{summary}");
    }

    #[test]
    fn a_missing_component_fails_the_run_and_is_named() {
        let fake = Fake { lacks_clippy: true, ..Fake::default() };
        let (ran, passed, summary) = run(fake, &TestOptions::default());
        assert!(!ran.contains(&"clippy".to_owned()));
        assert!(!passed && summary.ends_with("NOT RUN: clippy: clippy is missing"), "{summary}");
    }

    #[test]
    fn fast_leaves_out_the_slow_steps_and_extra_arguments_reach_nextest() {
        let options = TestOptions { fast: true, nextest_args: vec!["rota".to_owned()] };
        let mut fake = Fake::default();
        let steps = run_test(&mut fake, &options);
        assert_eq!(fake.ran.last().map(String::as_str), Some("nextest run --workspace --locked rota"));
        assert!(!fake.ran.iter().any(|line| line.starts_with("clippy")));
        assert!(steps.summary().contains("skipped: clippy: --fast"));
    }

    #[test]
    fn a_check_is_the_quick_half() {
        let mut fake = Fake::default();
        assert!(run_check(&mut fake).passed());
        assert_eq!(fake.ran, [&FMT.join(" "), &CLIPPY.join(" "), "tidy", "ledger", "deps", "release"]);
    }
}
