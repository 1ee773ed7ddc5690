//! Every command of the tree, held to what all of them promise. The tree is read from the program's own help, so that
//! a new command fails here until it is listed.

use std::fs;

use turno_e2e::{Place, Run, tree};

/// Where nobody listens.
const NOBODY: &str = "unix:/nowhere/turno.sock";
const ID: &str = "5f3a9c0d21e4000000000001c0000007";

/// Every leaf, arguments that make sense, and whether it asks a broker.
const LEAVES: [(&str, &[&str], bool); 71] = [
    ("serve", &[], false),
    ("request", &["q", "x"], true),
    ("send", &["q", "x"], true),
    ("broadcast", &["q", "x"], true),
    ("work", &["q", "--echo"], true),
    ("pub", &["t", "x"], true),
    ("sub", &["t"], true),
    ("submit", &["--", "true"], true),
    ("status", &[], true),
    ("drain", &[], true),
    ("resume", &[], true),
    ("queue ls", &[], true),
    ("queue show", &["q"], true),
    ("queue consumers", &["q"], true),
    ("queue set", &["q", "--volatile"], true),
    ("queue purge", &["q", "--yes"], true),
    ("queue dead ls", &["q"], true),
    ("queue dead show", &["q", ID], true),
    ("queue dead retry", &["q", ID], true),
    ("queue dead purge", &["q", "--all", "--yes"], true),
    ("worker start", &[], true),
    ("worker deploy", &["--hosts", "hosts"], true),
    ("worker ls", &[], true),
    ("worker show", &["w"], true),
    ("worker resize", &["w", "3"], true),
    ("worker drain", &["w"], true),
    ("worker resume", &["w"], true),
    ("worker stop", &["w", "--now", "--yes"], true),
    ("message explain", &[ID], true),
    ("message trace", &[ID], true),
    ("message retry", &[ID], true),
    ("message cancel", &[ID, "--yes"], true),
    ("job submit", &["--", "true"], true),
    ("job ls", &[], true),
    ("job show", &["7"], true),
    ("job tasks", &["7"], true),
    ("job explain", &["7"], true),
    ("job logs", &["7"], true),
    ("job result", &["7"], true),
    ("job cancel", &["7", "--yes"], true),
    ("job retry", &["7"], true),
    ("job hold", &["7"], true),
    ("job release", &["7"], true),
    ("job wait", &["7"], true),
    ("job progress", &["7"], true),
    ("job report", &["7", "--file", "report.html"], true),
    ("job rm", &["7", "--yes"], true),
    ("topic ls", &[], true),
    ("topic subscribers", &[], true),
    ("topic create", &["shop", "t"], true),
    ("topic recv", &["shop"], true),
    ("topic destroy", &["shop"], true),
    ("link ls", &[], true),
    ("link add", &["127.0.0.1:1"], true),
    ("link rm", &["rb-2"], true),
    ("link graph", &[], true),
    ("ring show", &[], true),
    ("ring join", &["3@localhost"], true),
    ("ring leave", &[], true),
    ("ring shutdown", &["--yes"], true),
    ("zmq ls", &[], true),
    ("zmq show", &["default"], true),
    ("config show", &[], false),
    ("config check", &[], false),
    ("doctor", &[], false),
    ("explain", &[], false),
    ("bench request", &["--count", "1"], true),
    ("bench send", &["--count", "1"], true),
    ("completions", &["bash"], false),
    ("man", &[], false),
    ("version", &[], false),
];

/// The words of a leaf, and more behind them.
fn line<'a>(leaf: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    leaf.split(' ').chain(more.iter().copied()).collect()
}

/// With more flags: before `--`, behind which everything belongs to a program.
fn flagged<'a>(mut words: Vec<&'a str>, more: &[&'a str]) -> Vec<&'a str> {
    let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
    words.splice(end..end, more.iter().copied());
    words
}

/// The lines below a heading, up to the next empty one.
fn section<'a>(help: &'a str, heading: &str) -> Vec<&'a str> {
    help.lines().skip_while(|line| *line != heading).skip(1).take_while(|line| !line.is_empty()).collect()
}

#[test]
fn the_tree_has_exactly_these_leaves() {
    let found: Vec<String> = tree::leaves(&Place::new()).iter().map(|words| words.join(" ")).collect();
    let mut expected: Vec<&str> = LEAVES.iter().map(|(leaf, ..)| *leaf).collect();
    let mut sorted = found.clone();
    sorted.sort();
    expected.sort_unstable();
    assert_eq!(sorted, expected, "a new command needs a line in LEAVES, and tests of its own");
}

#[test]
fn every_leaf_has_examples_and_exit_codes_in_its_long_help() {
    let place = Place::new();
    for (leaf, _, asks) in LEAVES {
        let run = place.run(line(leaf, &["--help"])).expect(0);
        assert_eq!(run.stderr, "", "{leaf}");
        let long = run.text();
        let examples = section(&long, "Examples:");
        assert!(!examples.is_empty(), "{leaf} has no examples");
        let own = format!("turno {leaf}");
        assert!(examples.iter().any(|example| example.contains(&own)), "{leaf}: {examples:?}");
        let exits: Vec<&str> =
            section(&long, "Exit status:").iter().filter_map(|line| line.split_whitespace().next()).collect();
        assert!(exits.starts_with(&["0"]) && exits.contains(&"2"), "{leaf}: {exits:?}");
        assert_eq!(exits.contains(&"5"), asks, "{leaf} asks a broker, or does not: {exits:?}");
        let short = place.run(line(leaf, &["-h"])).expect(0).text();
        let first = section(&short, "Examples:");
        assert!(short.len() < long.len() && !first.is_empty(), "{leaf}: {short}");
        assert!(first.iter().all(|example| examples.contains(example)), "{leaf}: {first:?}");
        let mut words = vec!["help"];
        words.extend(leaf.split(' '));
        assert_eq!(place.run(words).expect(0).text(), long, "turno help {leaf}");
    }
}

#[test]
fn every_leaf_has_a_man_page() {
    let place = Place::new();
    fs::create_dir(place.path().join("man")).expect("our own directory");
    let written = place.run(["man", "./man"]).expect(0).text();
    for (leaf, ..) in LEAVES {
        let name = format!("turno-{}.1", leaf.replace(' ', "-"));
        assert!(written.lines().any(|line| line == format!("./man/{name}")), "{name} is not among {written}");
        let page = fs::read_to_string(place.path().join("man").join(&name)).expect("a page for every leaf");
        let title = format!(".TH TURNO-{} 1 ", leaf.to_uppercase().replace(' ', "-"));
        assert!(page.starts_with(".ie ") && page.contains(&title), "{name}: {page}");
        assert!(page.contains("Examples:") && page.contains("Exit status:"), "{name}: {page}");
        let mut words = vec!["man"];
        words.extend(leaf.split(' '));
        assert_eq!(place.run(words).expect(0).text(), page, "turno man {leaf}");
    }
}

/// Proves that wrong usage is told on stderr, with exit code 2 and nothing on stdout.
#[test]
fn every_leaf_refuses_a_flag_that_is_not_there() {
    let place = Place::new();
    for (leaf, arguments, _) in LEAVES {
        let words = flagged(line(leaf, arguments), &["--no-such-flag"]);
        let run = place.run(&words).expect(2);
        assert_eq!(run.text(), "", "{leaf}");
        assert!(run.stderr.starts_with("error: ") && run.stderr.contains("--no-such-flag"), "{leaf}: {}", run.stderr);
        assert!(run.stderr.ends_with("code: bad_usage (turno explain bad_usage)\n"), "{leaf}: {}", run.stderr);
        for json in [&["--json"][..], &["-o", "json"], &["--output=jsonl"]] {
            let mut words = json.to_vec();
            words.extend(flagged(line(leaf, arguments), &["--no-such-flag"]));
            let run = place.run(&words).expect(2);
            assert_eq!(run.error_code(), "bad_usage", "{leaf}");
            assert_eq!((run.text().lines().count(), run.stderr.as_str()), (1, ""), "{leaf}");
        }
    }
}

/// Wrong usage has the same four lines as every other error: what, why, fix, code.
#[test]
fn wrong_usage_says_what_why_and_fix() {
    let place = Place::new();
    let table: [&[&str]; 5] = [
        &["queue", "ls", "--no-such-flag"],
        &["queue", "lss"],
        &["request"],
        &["request", "q", "x", "--timeout", "5x"],
        &["status", "--time", "martian"],
    ];
    for words in table {
        let run = place.run(words).expect(2);
        for start in ["error: ", "why: ", "fix: ", "code: bad_usage"] {
            let lines = run.stderr.lines().filter(|line| line.starts_with(start)).count();
            assert_eq!(lines, 1, "{words:?} has one line {start:?}: {}", run.stderr);
        }
    }
}

fn without_a_broker(place: &Place, leaf: &str, arguments: &[&str], more: &[&str]) -> Run {
    let words = flagged(flagged(line(leaf, arguments), &["--url", NOBODY]), more);
    place.run(&words).expect(5)
}

/// Proves S1.5: a worker without a broker fails to start, with an error and a non-zero exit code.
#[test]
fn every_leaf_that_asks_a_broker_says_so_when_there_is_none() {
    let place = Place::new();
    for (leaf, arguments, _) in LEAVES.iter().filter(|(_, _, asks)| *asks) {
        let run = without_a_broker(&place, leaf, arguments, &[]);
        assert_eq!(run.text(), "", "{leaf}");
        assert!(run.stderr.contains(NOBODY), "{leaf} names the address: {}", run.stderr);
        let starts: Vec<&str> = run.stderr.lines().filter_map(|line| line.split_once(' ')).map(|(a, _)| a).collect();
        assert_eq!(starts, ["error:", "why:", "fix:", "code:"], "{leaf}: {}", run.stderr);
        for more in [&["--json"][..], &["-o", "jsonl"], &["--json", "-q"]] {
            let run = without_a_broker(&place, leaf, arguments, more);
            assert_eq!(run.error_code(), "cannot_connect", "{leaf}");
            assert_eq!((run.text().lines().count(), run.stderr.as_str()), (1, ""), "{leaf} {more:?}");
        }
    }
}

/// Flags of every command stand before or after its name, and `--` ends them.
#[test]
fn flags_work_before_and_after_the_command() {
    let place = Place::new();
    let table: [&[&str]; 4] =
        [&["--json", "version"], &["version", "--json"], &["-o", "json", "version"], &["version", "-ojson"]];
    for words in table {
        place.run(words).expect(0).document("turno.version/1");
    }
    let run = place.run(["--url", NOBODY, "request", "q", "--", "--json"]).expect(5);
    assert_eq!(run.text(), "", "what follows -- is the body, not a flag");
    let run = place.run(["--json", "--url", NOBODY, "work", "q", "--", "cat", "--no-such-flag"]).expect(5);
    assert_eq!(run.error_code(), "cannot_connect", "what follows -- is the program's");
}

/// Aliases do the same; a mere beginning of a name is nobody's name.
#[test]
fn aliases_are_the_named_ones_and_no_others() {
    let place = Place::new();
    let help = |words: &[&str]| place.run(words.iter().chain(&["--help"])).expect(0).text();
    let table: [(&[&str], &[&str]); 16] = [
        (&["topic", "list"], &["topic", "ls"]),
        (&["ring", "info"], &["ring", "show"]),
        (&["link", "list"], &["link", "ls"]),
        (&["link", "remove"], &["link", "rm"]),
        (&["queue", "dead", "list"], &["queue", "dead", "ls"]),
        (&["queue", "dead", "get"], &["queue", "dead", "show"]),
        (&["req"], &["request"]),
        (&["call"], &["request"]),
        (&["queue", "list"], &["queue", "ls"]),
        (&["queue", "info"], &["queue", "show"]),
        (&["worker", "list"], &["worker", "ls"]),
        (&["worker", "get"], &["worker", "show"]),
        (&["config", "get"], &["config", "show"]),
        (&["job", "list"], &["job", "ls"]),
        (&["job", "info"], &["job", "show"]),
        (&["job", "delete"], &["job", "rm"]),
    ];
    for (alias, name) in table {
        assert_eq!(help(alias), help(name));
    }
    for words in [&["stat"][..], &["queue", "sh"], &["worker", "res"], &["vers"]] {
        assert_eq!(place.run(words).expect(2).text(), "", "{words:?}");
    }
}

/// A command without its sub-command says what there is, on stderr, and is wrong usage.
#[test]
fn a_command_alone_shows_what_there_is() {
    let place = Place::new();
    for words in [
        &[][..],
        &["queue"],
        &["queue", "dead"],
        &["worker"],
        &["message"],
        &["job"],
        &["topic"],
        &["link"],
        &["ring"],
        &["config"],
        &["bench"],
    ] {
        let run = place.run(words).expect(2);
        assert_eq!(run.text(), "", "{words:?}");
        assert!(run.stderr.contains("Commands:"), "{words:?}: {}", run.stderr);
        let run = place.run(words.iter().chain(&["--json"])).expect(2);
        assert_eq!((run.error_code().as_str(), run.stderr.as_str()), ("bad_usage", ""), "{words:?}");
    }
}
