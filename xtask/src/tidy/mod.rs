//! The house rules that neither the compiler nor clippy knows. Each rule names what to do instead.
//!
//! A rule is one function from a tree to the places that break it, listed in [`RULES`], with a
//! test that it finds a bad sample and passes a good one: a check that cannot fail is no check.

mod adr;
mod architecture;
mod channels;
mod core_purity;
mod dependencies;
mod documents;
mod leftovers;
mod lints;
mod machines;
mod names;
mod plain;
mod planted;
mod text;
mod toolchain_facts;
mod type_names;
mod waiting;

use std::fmt;

use crate::tree::{File, Tree};

/// The rules quote what they forbid, in advice and in samples, so the rules about words skip this
/// folder. It is the only exemption.
const QUOTES_THE_RULES: &str = "xtask/src/tidy/";

/// One rule of the house.
struct Rule {
    name: &'static str,
    /// One line for `--help`.
    about: &'static str,
    check: fn(&Tree) -> Vec<Breach>,
}

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Breach {
    path: String,
    line: usize,
    advice: String,
}

/// A breach and the rule it breaks.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RuleFinding {
    breach: Breach,
    rule: &'static str,
}

const RULES: &[Rule] = &[
    Rule { name: "file-length", about: "a Rust file has at most 500 lines", check: text::file_length },
    Rule { name: "debug-macro", about: "no dbg!, todo!, unimplemented!", check: leftovers::debug_macro },
    Rule { name: "work-mark", about: "no FIXME, no XXX, no TODO without a number", check: leftovers::work_mark },
    Rule { name: "ignored-test", about: "no ignored tests", check: leftovers::ignored_test },
    Rule {
        name: "core-purity",
        about: "no clock, socket, file, sleep or runtime in proto, engine, store",
        check: core_purity::core_purity,
    },
    Rule { name: "hash-order", about: "no HashMap or HashSet in the engine", check: core_purity::hash_order },
    Rule { name: "test-sleep", about: "tests sleep only to prove absence", check: waiting::test_sleep },
    Rule { name: "test-limit", about: "tests of processes have one limit for all waits", check: waiting::test_limit },
    Rule { name: "unbounded-channel", about: "every channel has a limit", check: channels::unbounded_channel },
    Rule {
        name: "anyhow-in-library",
        about: "no anyhow in proto, engine, store, client",
        check: dependencies::anyhow_in_library,
    },
    Rule {
        name: "vague-name",
        about: "no file or module called helper, util, common, manager",
        check: names::vague_name,
    },
    Rule { name: "type-name", about: "within a crate each type has its own name", check: type_names::type_names },
    Rule {
        name: "dependency-direction",
        about: "which of our crates may depend on which",
        check: dependencies::direction,
    },
    Rule {
        name: "outside-dependency",
        about: "what engine and proto may take from others",
        check: dependencies::outside,
    },
    Rule { name: "unsafe-code", about: "unsafe code is forbidden for the whole workspace", check: lints::unsafe_code },
    Rule { name: "workspace-lints", about: "every crate takes the workspace's lints", check: lints::workspace_lints },
    Rule { name: "planted-fits", about: "every planted bug can still be planted", check: planted::planted_fits },
    Rule { name: "adr-name", about: "decisions are docs/adr/NNNN-words.md, each number once", check: adr::adr_name },
    Rule {
        name: "architecture-map",
        about: "ARCHITECTURE.md names every crate, docs/reference/modules.md every module",
        check: architecture::architecture_map,
    },
    Rule {
        name: "changelog-lines",
        about: "CHANGELOG.md has one line of at most 160 characters an entry",
        check: documents::changelog_lines,
    },
    Rule {
        name: "client-page",
        about: "the page about writing a client has at most four screens",
        check: documents::client_page,
    },
    Rule { name: "machine-walls", about: "which machine of the engine may use which", check: machines::machine_walls },
    Rule { name: "machine-path", about: "no path that exists on one machine only", check: text::machine_path },
    Rule { name: "plain-words", about: "words that others have replaced", check: plain::plain_words },
    Rule {
        name: "comment-subject",
        about: "a doc comment does not begin with What, Who or Whose",
        check: plain::comment_subject,
    },
    Rule { name: "whitespace", about: "no tabs, no blanks at line ends", check: text::whitespace },
    Rule {
        name: "toolchain-facts",
        about: "toolchain file, workspace and README name one version",
        check: toolchain_facts::toolchain_facts,
    },
];

/// Prints every finding; `true` if there is none.
pub(crate) fn run(tree: &Tree) -> bool {
    let findings = findings(tree);
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} findings, {} files, {} rules", findings.len(), tree.files().count(), RULES.len());
    findings.is_empty()
}

pub(crate) fn describe_rules() -> String {
    let line = |rule: &Rule| format!("  {:<21} {}", rule.name, rule.about);
    RULES.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn findings(tree: &Tree) -> Vec<RuleFinding> {
    let mut findings: Vec<RuleFinding> = RULES
        .iter()
        .flat_map(|rule| {
            let name = |breach| RuleFinding { breach, rule: rule.name };
            (rule.check)(tree).into_iter().map(name)
        })
        .collect();
    findings.sort();
    findings
}

impl Breach {
    fn new(path: &str, line: usize, advice: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, advice: advice.into() }
    }
}

impl fmt::Display for RuleFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Breach { path, line, advice } = &self.breach;
        write!(f, "{path}:{line}: {}: {advice}", self.rule)
    }
}

/// Whether the rules about words look into this file.
fn may_be_searched(file: &File) -> bool {
    !file.path.starts_with(QUOTES_THE_RULES)
}

/// The name of the crate's folder, for files of `crates/`.
fn crate_folder(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split('/').next()
}

/// The places as `path:line`, which is what most tests of rules compare.
#[cfg(test)]
fn places(check: fn(&Tree) -> Vec<Breach>, files: &[(&str, &str)]) -> Vec<String> {
    let place = |breach: Breach| format!("{}:{}", breach.path, breach.line);
    check(&Tree::of(files)).into_iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const GOOD: &[(&str, &str)] = &[
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"crates/engine\"]\n[workspace.package]\n\
             rust-version = \"1.95\"\n[workspace.lints.rust]\nunsafe_code = \"forbid\"\n",
        ),
        ("rust-toolchain.toml", "[toolchain]\nchannel = \"1.95.0\"\n"),
        ("README.md", "Needs Rust 1.95.\n"),
        ("ARCHITECTURE.md", "`turno-engine` has the module `queue`.\n"),
        ("docs/reference/modules.md", "# Modules\n"),
        ("docs/adr/0001-one-engine.md", "# One engine\n"),
        (
            "crates/engine/Cargo.toml",
            "[package]\nname = \"turno-engine\"\n[dependencies]\nbytes.workspace = true\n\
             [lints]\nworkspace = true\n",
        ),
        ("crates/engine/src/lib.rs", "mod queue;\n"),
        ("crates/engine/src/queue.rs", "fn next() {}\n"),
    ];

    #[test]
    fn a_good_tree_is_left_in_peace() {
        let findings = findings(&Tree::of(GOOD));
        assert!(findings.is_empty(), "{findings:#?}");
    }

    #[test]
    fn every_rule_can_fail() {
        let long = "\n".repeat(501);
        let tree = Tree::of(&[
            (
                "Cargo.toml",
                "[workspace]\nmembers = [\"crates/engine\"]\n[workspace.package]\n\
                 rust-version = \"1.94\"\n[workspace.lints.rust]\nunsafe_code = \"warn\"\n",
            ),
            ("rust-toolchain.toml", "[toolchain]\nchannel = \"1.95.0\"\n"),
            ("docs/adr/1-x.md", "# X\n"),
            ("CHANGELOG.md", "## Unreleased\n\n- A\n  and B\n"),
            ("docs/how-to/write-a-client.md", &long),
            ("planted/01-x.patch", "+++ b/x.rs\n@@ -1 +1 @@\n-a\n"),
            (
                "crates/engine/Cargo.toml",
                "[package]\nname = \"turno-engine\"\n[dependencies]\ntokio = \"1\"\n\
                 turno-engine = \"0\"\n",
            ),
            ("crates/engine/src/util.rs", &long),
            ("crates/engine/src/jobs/offer.rs", "use crate::engine::Engine;\nstruct Offer;\n"),
            ("crates/e2e/tests/queue.rs", "fn f() { worker.end(Duration::from_secs(1)); }\n"),
            (
                "crates/engine/src/queue.rs",
                "use std::collections::HashMap;\nuse anyhow::Result;\n/// What.\nstruct Offer;\nfn f() {\n\tdbg!(std::fs::read);\n\
                 \x20   mpsc::channel();\n} // FIXME mend it, see /home/x\n\
                 #[ignore]\n#[cfg(test)]\nmod tests {\n    fn f() { thread::sleep(x); }\n}\n",
            ),
        ]);
        let broken: BTreeSet<&str> = findings(&tree).iter().map(|finding| finding.rule).collect();
        let all: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
        assert_eq!(broken, all);
    }

    #[test]
    fn findings_say_where_which_and_what_instead() {
        let tree = Tree::of(&[("crates/turno/src/a.rs", "fn f() {\n    dbg!(1);\n}\n")]);
        let lines: Vec<String> = findings(&tree).iter().map(ToString::to_string).collect();
        let wanted = "crates/turno/src/a.rs:2: debug-macro: ";
        assert!(lines.iter().any(|line| line.starts_with(wanted)), "{lines:#?}");
    }

    #[test]
    fn the_rules_may_quote_what_they_forbid() {
        let text = "// FIXME and /home/x\n";
        let own = findings(&Tree::of(&[("xtask/src/tidy/leftovers.rs", text)]));
        let other = findings(&Tree::of(&[("xtask/src/leftovers.rs", text)]));
        let words = |found: &[RuleFinding]| {
            let about_words = |finding: &&RuleFinding| matches!(finding.rule, "work-mark" | "machine-path");
            found.iter().filter(about_words).count()
        };
        assert_eq!((words(&own), words(&other)), (0, 2));
    }

    #[test]
    fn the_help_lists_every_rule() {
        let text = describe_rules();
        assert!(RULES.iter().all(|rule| text.contains(rule.name)), "{text}");
    }
}
