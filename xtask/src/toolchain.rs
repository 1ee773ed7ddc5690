//! The tools a run needs: looked for, installed where that is possible, and named if missing.

use crate::manifest::Manifest;

/// The tools of this machine.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Toolchain {
    pub(crate) has_rustfmt: bool,
    pub(crate) has_clippy: bool,
    pub(crate) has_nextest: bool,
    pub(crate) has_valgrind: bool,
    pub(crate) has_mdbook: bool,
    /// Problems, one sentence each. A missing nextest is none, since `cargo test` can stand in; a missing valgrind is
    /// none, since some systems have none; a missing `ip` is none, since tests can do without network namespaces; a missing
    /// mdbook is none, since tests check the pages and links of the book without it.
    pub(crate) problems: Vec<String>,
}

const NEXTEST: &[&str] = &["cargo", "install", "cargo-nextest", "--locked"];
/// Without search and server, which the book does not need: two and a half minutes of CPU time.
const MDBOOK: &[&str] = &["cargo", "install", "mdbook", "--version", "0.5.4", "--no-default-features", "--locked"];

/// Where Python and pyzmq are, below the project's root. The end-to-end tests look there.
const PYZMQ: &str = "target/pyzmq";

/// A C compiler, and the headers of libzmq: for the examples in C.
const CC: &[&str] = &["cc", "--version"];
const LIBZMQ: &[&str] = &["cc", "-fsyntax-only", "-include", "zmq.h", "-x", "c", "/dev/null"];

/// Runs a program and gives back what it printed, or nothing if it failed or is not there.
type Ask<'a> = dyn FnMut(&[&str]) -> Option<String> + 'a;

/// Installs a package of the system; whether that succeeded.
type Install<'a> = dyn FnMut(&str) -> bool + 'a;

impl Toolchain {
    /// Compares the machine with the text of rust-toolchain.toml.
    pub(crate) fn survey(toolchain_file: &str, ask: &mut Ask<'_>, install: &mut Install<'_>) -> Self {
        let mut problems = Vec::new();
        problems.extend(compiler_problem(toolchain_file, ask));
        let mut component = |name: &str, subcommand: &str| {
            let has = has_component(name, subcommand, ask);
            if !has {
                problems.push(format!("{name} is missing: `rustup component add {name}`"));
            }
            has
        };
        let has_rustfmt = component("rustfmt", "fmt");
        let has_clippy = component("clippy", "clippy");
        if ask(&["bash", "--version"]).is_none() {
            problems.push("bash is missing: install it with the system's packages".to_owned());
        }
        // Not asked for its version, which it does not have: it must be able to run something.
        if !has_package("fiu-utils", &["fiu-run", "-x", "true"], ask, install) {
            problems.push("fiu-run is missing: install fiu-utils with the system's packages".to_owned());
        }
        if !has_package("python3", &["python3", "--version"], ask, install) {
            problems.push("python3 is missing: install it with the system's packages".to_owned());
        }
        if !has_package("iproute2", &["ip", "-V"], ask, install) {
            println!("ip is missing: tests of several brokers use loopback addresses in place of network namespaces");
        }
        if !has_pyzmq(ask, install) {
            problems.push(format!("pyzmq is missing: `python3 -m venv {PYZMQ} && {PYZMQ}/bin/pip install pyzmq`"));
        }
        for (package, question) in [("gcc", CC), ("libzmq3-dev", LIBZMQ)] {
            if !has_package(package, question, ask, install) {
                problems.push(format!("{package} is missing: install it with the system's packages"));
            }
        }
        let has_valgrind = has_package("valgrind", &["valgrind", "--version"], ask, install);
        let has_nextest = has_crate("cargo-nextest", &["cargo", "nextest", "--version"], NEXTEST, ask);
        let has_mdbook = has_crate("mdbook", &["mdbook", "--version"], MDBOOK, ask);
        Self { has_rustfmt, has_clippy, has_nextest, has_valgrind, has_mdbook, problems }
    }
}

fn compiler_problem(toolchain_file: &str, ask: &mut Ask<'_>) -> Option<String> {
    let toml = Manifest::read(toolchain_file);
    let Some(wanted) = toml.string("toolchain.channel") else {
        return Some("rust-toolchain.toml names no channel".to_owned());
    };
    let answer = ask(&["rustc", "--version"]).unwrap_or_default();
    let found = answer.split_whitespace().nth(1).unwrap_or("missing");
    println!("rustc {found}, wanted {wanted}");
    (found != wanted)
        .then(|| format!("rustc is {found}, not {wanted}: install rustup, it takes the right one by itself"))
}

fn has_component(name: &str, subcommand: &str, ask: &mut Ask<'_>) -> bool {
    let question = ["cargo", subcommand, "--version"];
    if ask(&question).is_some() {
        return true;
    }
    println!("{name} is missing, asking rustup for it");
    ask(&["rustup", "component", "add", name]).is_some() && ask(&question).is_some()
}

/// Whether a program of crates.io is there, or can be installed.
fn has_crate(name: &str, question: &[&str], install: &[&str], ask: &mut Ask<'_>) -> bool {
    if ask(question).is_some() {
        return true;
    }
    println!("{name} is missing, installing it (once; takes some minutes)");
    ask(install).is_some() && ask(question).is_some()
}

/// Python with the real ZeroMQ, in a place of its own: systems do not let everybody add to theirs.
fn has_pyzmq(ask: &mut Ask<'_>, install: &mut Install<'_>) -> bool {
    let [python, pip] = ["python", "pip"].map(|program| format!("{PYZMQ}/bin/{program}"));
    let question = [&*python, "-c", "import zmq"];
    if ask(&question).is_some() {
        return true;
    }
    println!("pyzmq is missing, installing it into {PYZMQ}");
    has_package("python3-venv", &["python3", "-c", "import ensurepip"], ask, install)
        && ask(&["python3", "-m", "venv", PYZMQ]).is_some()
        && ask(&[&pip, "install", "pyzmq"]).is_some()
        && ask(&question).is_some()
}

/// Whether a package of the system is there, or can be installed.
fn has_package(package: &str, question: &[&str], ask: &mut Ask<'_>, install: &mut Install<'_>) -> bool {
    if ask(question).is_some() {
        return true;
    }
    println!("{package} is missing, installing it with the system's packages");
    install(package) && ask(question).is_some()
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const FILE: &str = "[toolchain]\nchannel = \"1.95.0\"\n";

    /// A machine that answers what `lacks` does not name, and after an install even that. Installs of packages are
    /// noted as `package NAME`.
    fn survey(lacks: &[&str], can_install: bool, version: &str) -> (Toolchain, Vec<String>) {
        let asked: RefCell<Vec<String>> = RefCell::default();
        let mut install = |package: &str| {
            asked.borrow_mut().push(format!("package {package}"));
            can_install
        };
        let mut ask = |words: &[&str]| {
            let line = words.join(" ");
            let installs = |line: &str| [" install ", " add ", "package "].iter().any(|word| line.contains(word));
            let was_installed = can_install && asked.borrow().iter().any(|line| installs(line));
            let lacking = lacks.iter().any(|one| line.starts_with(one)) && !was_installed;
            asked.borrow_mut().push(line.clone());
            match (installs(&line), lacking) {
                (true, _) => can_install.then(String::new),
                (false, true) => None,
                (false, false) => Some(format!("rustc {version} (abc)")),
            }
        };
        let toolchain = Toolchain::survey(FILE, &mut ask, &mut install);
        (toolchain, asked.into_inner())
    }

    #[test]
    fn a_complete_machine_has_no_problems_and_installs_nothing() {
        let (toolchain, asked) = survey(&[], false, "1.95.0");
        assert!(toolchain.problems.is_empty(), "{:?}", toolchain.problems);
        assert!(toolchain.has_rustfmt && toolchain.has_clippy && toolchain.has_nextest && toolchain.has_valgrind);
        assert!(toolchain.has_mdbook);
        assert!(!asked.iter().any(|line| ["install", "add", "package"].iter().any(|word| line.contains(word))));
    }

    #[test]
    fn another_compiler_is_a_problem() {
        let (toolchain, _) = survey(&[], false, "1.94.1");
        assert_eq!(toolchain.problems.len(), 1);
        assert!(toolchain.problems[0].starts_with("rustc is 1.94.1, not 1.95.0"));
    }

    #[test]
    fn missing_tools_are_installed() {
        let (toolchain, asked) = survey(&["cargo nextest"], true, "1.95.0");
        assert!(toolchain.has_nextest && toolchain.problems.is_empty());
        assert!(asked.contains(&"cargo install cargo-nextest --locked".to_owned()));
        let (toolchain, asked) = survey(&["mdbook"], true, "1.95.0");
        assert!(
            toolchain.has_mdbook && asked.iter().any(|line| line.starts_with("cargo install mdbook ")),
            "{asked:?}"
        );
        let (toolchain, asked) = survey(&["valgrind"], true, "1.95.0");
        assert!(toolchain.has_valgrind && asked.contains(&"package valgrind".to_owned()));
        let (toolchain, asked) = survey(&["fiu-run"], true, "1.95.0");
        assert!(toolchain.problems.is_empty() && asked.contains(&"package fiu-utils".to_owned()));
        let (toolchain, asked) = survey(&["python3"], true, "1.95.0");
        assert!(toolchain.problems.is_empty() && asked.contains(&"package python3".to_owned()));
        let (toolchain, asked) = survey(&["ip -V"], true, "1.95.0");
        assert!(toolchain.problems.is_empty() && asked.contains(&"package iproute2".to_owned()));
        let (toolchain, asked) = survey(&["target/pyzmq"], true, "1.95.0");
        assert!(toolchain.problems.is_empty() && asked.contains(&"python3 -m venv target/pyzmq".to_owned()));
        assert!(asked.contains(&"target/pyzmq/bin/pip install pyzmq".to_owned()));
        let (toolchain, asked) = survey(&["target/pyzmq", "python3 -c"], true, "1.95.0");
        assert!(toolchain.problems.is_empty() && asked.contains(&"package python3-venv".to_owned()));
        let (toolchain, asked) = survey(&["cc --version"], true, "1.95.0");
        assert!(toolchain.problems.is_empty() && asked.contains(&"package gcc".to_owned()));
        let (toolchain, asked) = survey(&["cc -fsyntax-only"], true, "1.95.0");
        assert!(toolchain.problems.is_empty() && asked.contains(&"package libzmq3-dev".to_owned()));
        let (toolchain, asked) = survey(&["cargo clippy"], true, "1.95.0");
        assert!(toolchain.has_clippy && toolchain.problems.is_empty());
        assert!(asked.contains(&"rustup component add clippy".to_owned()));
    }

    #[test]
    fn what_cannot_be_installed_is_told() {
        let (toolchain, _) = survey(&["cargo fmt", "cargo clippy", "bash", "fiu-run", "python3"], false, "1.95.0");
        assert!(!toolchain.has_rustfmt && !toolchain.has_clippy);
        assert_eq!(toolchain.problems.len(), 5);
        let (toolchain, _) = survey(&["cc"], false, "1.95.0");
        let missing = "is missing: install it with the system's packages";
        assert_eq!(toolchain.problems, [format!("gcc {missing}"), format!("libzmq3-dev {missing}")]);
        let (toolchain, _) = survey(&["target/pyzmq"], false, "1.95.0");
        assert_eq!(toolchain.problems.len(), 1);
        assert!(toolchain.problems[0].starts_with("pyzmq is missing: `python3 -m venv"), "{:?}", toolchain.problems);
        let (toolchain, _) = survey(&["cargo nextest", "mdbook", "valgrind", "ip -V"], false, "1.95.0");
        assert!(!toolchain.has_nextest && !toolchain.has_valgrind && !toolchain.has_mdbook);
        assert!(toolchain.problems.is_empty());
    }

    #[test]
    fn a_toolchain_file_without_a_channel_is_a_problem() {
        let toolchain = Toolchain::survey("", &mut |_| Some(String::new()), &mut |_| false);
        assert_eq!(toolchain.problems, ["rust-toolchain.toml names no channel"]);
    }
}
