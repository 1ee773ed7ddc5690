//! What the program tells about itself: version, manual, completions.

use std::process::Command;

use turno_e2e::{Place, Run, wait};

/// Whether a program is on this machine.
fn there(program: &str) -> bool {
    Command::new("sh").args(["-c", &format!("command -v {program} >/dev/null")]).status().is_ok_and(|s| s.success())
}

#[test]
fn the_version_is_told_in_every_way() {
    let place = Place::new();
    let document = place.run(["version", "--json"]).expect(0).document("turno.version/1");
    let version = document["version"].as_str().expect("text");
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
    assert_eq!(
        place.run(["version"]).expect(0).text(),
        format!("turno {version} (protocol {})\n", document["protocol"])
    );
    for flag in ["-V", "--version"] {
        let run = place.run([flag]).expect(0);
        assert_eq!((run.text(), run.stderr.as_str()), (format!("turno {version}\n"), ""));
    }
    assert_eq!(place.run(["version", "-o", "name"]).expect(0).text(), format!("{version}\n"));
}

/// Every shell gets a script that knows the commands; those shells that are here find no fault with theirs.
#[test]
fn completions_are_scripts_for_their_shell() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = place.run(["completions", shell]).expect(0);
        assert_eq!(run.stderr, "");
        for word in ["request", "worker", "consumers", "--fail-fast"] {
            let bare = word.trim_start_matches('-');
            assert!(run.text().contains(bare), "{shell}: {word}");
        }
        let file = place.file(&format!("turno.{shell}"), &run.text());
        if matches!(shell, "bash" | "zsh" | "fish") && there(shell) {
            let mut check = place.command(shell);
            check.arg("-n").arg(&file);
            let checked = Run::finish(check, b"", wait::PATIENCE).expect(0);
            assert_eq!(checked.stderr, "", "{shell}");
        }
    }
    assert!(there("bash"), "the tests need bash");
}

/// What bash would complete, by its own script.
#[test]
fn bash_completes_commands_and_flags() {
    let place = Place::new();
    let script = place.file("turno.bash", &place.run(["completions", "bash"]).expect(0).text());
    let complete = |words: &str, last: usize| {
        let program = format!(
            "source {}; COMP_WORDS=({words}); COMP_CWORD={last}; _turno turno \"${{COMP_WORDS[{last}]}}\" \
             \"${{COMP_WORDS[{last}-1]}}\"; echo \"${{COMPREPLY[*]}}\"",
            script.display()
        );
        let mut bash = place.command("bash");
        bash.args(["--norc", "-c", &program]);
        Run::finish(bash, b"", wait::PATIENCE).expect(0).text().trim().to_owned()
    };
    assert_eq!(complete("turno sta", 1), "status");
    assert_eq!(complete("turno queue con", 2), "consumers");
    assert_eq!(complete("turno request --fail", 2), "--fail-fast");
}

/// Pages are roff with a title, a name and the program's version, and say what the help says.
#[test]
fn manual_pages_render() {
    let place = Place::new();
    let page = place.run(["man"]).expect(0).text();
    let first: Vec<&str> = page.lines().take(3).collect();
    assert!(first[0].starts_with(".ie ") && first[2].starts_with(".TH TURNO 1 "), "{first:?}");
    let page = place.run(["man", "queue", "ls"]).expect(0).text();
    let title = page.lines().find(|line| line.starts_with(".TH ")).expect("a title");
    assert!(title.starts_with(".TH TURNO-QUEUE-LS 1 "), "{title}");
    assert!(title.contains(env!("CARGO_PKG_VERSION")), "the footer names the program and its version: {title}");
    for part in [".SH NAME", ".SH SYNOPSIS", ".SH DESCRIPTION", "queue ls"] {
        assert!(page.contains(part), "{part}");
    }
    if there("groff") {
        let mut groff = place.command("groff");
        groff.args(["-man", "-Tutf8", "-ww", "-"]);
        let shown = Run::finish(groff, page.as_bytes(), wait::PATIENCE).expect(0);
        assert_eq!(shown.stderr, "", "groff finds no fault");
        assert!(shown.text().contains("List queues in order of name"), "{}", shown.text());
    }
}

#[test]
fn a_page_that_is_not_there_is_not_found() {
    let place = Place::new();
    let run = place.run(["man", "queu"]).expect(4);
    assert!(run.stderr.contains("fix: did you mean queue?"), "{}", run.stderr);
    let run = place.run(["man", "queue", "lss"]).expect(4);
    assert!(run.stderr.contains("code: not_found"), "{}", run.stderr);
    let run = place.run(["man", "./nowhere"]).expect(1);
    assert!(run.stderr.contains("cannot write ./nowhere/turno.1") && run.stderr.contains("code: io"), "{}", run.stderr);
}
