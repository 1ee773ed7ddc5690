//! What stdout looks like: formats, columns, times, colour.

use turno_e2e::{Broker, Place, Run, wait};

/// Runs with these variables set.
fn with(place: &Place, variables: &[(&str, &str)], words: &[&str]) -> Run {
    let mut command = place.turno(words);
    command.envs(variables.iter().copied());
    Run::finish(command, b"", wait::PATIENCE)
}

const COLOUR: char = '\u{1b}';

/// Colour is for stderr and for those who want it; a flag beats the environment.
#[test]
fn colour_is_for_those_who_want_it() {
    let place = Place::new();
    type Variables = &'static [(&'static str, &'static str)];
    let table: [(Variables, &[&str], bool); 9] = [
        (&[], &[], false),
        (&[], &["--color", "always"], true),
        (&[], &["--color", "never"], false),
        (&[("CLICOLOR_FORCE", "1")], &[], true),
        (&[("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")], &[], false),
        (&[("CLICOLOR_FORCE", "1")], &["--color=never"], false),
        (&[("NO_COLOR", "1")], &["--color=always"], true),
        (&[("NO_COLOR", "")], &["--color=auto"], false),
        (&[("TERM", "dumb")], &[], false),
    ];
    for (variables, flags, expected) in table {
        let run = with(&place, variables, &[flags, &["explain", "none"]].concat()).expect(4);
        assert_eq!(run.stderr.contains(COLOUR), expected, "{variables:?} {flags:?}: {:?}", run.stderr);
        let run = with(&place, variables, &[flags, &["explain", "none", "--json"]].concat()).expect(4);
        assert!(!run.text().contains(COLOUR), "never in a document");
        let run = with(&place, variables, &[flags, &["explain"]].concat()).expect(0);
        assert!(!run.text().contains(COLOUR), "never in data");
        let run = with(&place, variables, &[flags, &["explain", "--no-such-flag"]].concat()).expect(2);
        assert_eq!(run.stderr.contains(COLOUR), expected, "{variables:?} {flags:?}: {:?}", run.stderr);
    }
    for (when, expected) in [("always", true), ("never", false), ("auto", false)] {
        let help = place.run(["explain", "--help", "--color", when]).expect(0).text();
        assert_eq!(help.contains(COLOUR), expected, "{when}");
    }
}

/// Log lines have colour for those who want it, too.
#[test]
fn log_lines_have_colour_for_those_who_want_it() {
    for (flag, expected) in [("--color=always", true), ("--color=never", false)] {
        let mut broker = Broker::start_with(&[flag]);
        assert_eq!(broker.terminate(wait::PATIENCE), 0);
        let logged = broker.process().stderr();
        assert_eq!(logged.iter().any(|line| line.contains(COLOUR)), expected, "{flag}: {logged:?}");
        assert!(!broker.process().stdout().iter().any(|line| line.contains(COLOUR)));
    }
}

/// TURNO_OUTPUT is the format of every command, and a flag beats it.
#[test]
fn the_environment_chooses_the_format_unless_a_flag_does() {
    let place = Place::new();
    let json = [("TURNO_OUTPUT", "json")];
    with(&place, &json, &["version"]).expect(0).document("turno.version/1");
    assert_eq!(
        with(&place, &json, &["queue", "ls", "--url", "unix:/nowhere"]).expect(5).error_code(),
        "cannot_connect"
    );
    assert_eq!(with(&place, &json, &["nonsense"]).expect(2).error_code(), "bad_usage");
    let text = place.run(["version"]).expect(0).text();
    for flags in [&["-o", "text"][..], &["--output=text"], &["-otext"]] {
        assert_eq!(with(&place, &json, &[&["version"], flags].concat()).expect(0).text(), text);
    }
    with(&place, &[("TURNO_OUTPUT", "text")], &["version", "--json"]).expect(0).document("turno.version/1");
    let run = with(&place, &[("TURNO_OUTPUT", "xml")], &["version"]).expect(2);
    assert!(run.stderr.contains("xml") && run.stderr.contains("jsonl"), "{}", run.stderr);
}

/// The words of each line.
fn cells(run: &Run) -> Vec<Vec<String>> {
    run.text().lines().map(|line| line.split_whitespace().map(str::to_owned).collect()).collect()
}

/// Columns are chosen and ordered by name, and a cell is never empty, so that `awk` counts right.
#[test]
fn columns_are_chosen_and_ordered() {
    let broker = Broker::start();
    let _worker = broker.worker(&["b", "--echo"]);
    broker.run(&["send", "a", "x"]).expect(0);
    let run = broker.run(&["queue", "ls", "--columns", "ready,name"]).expect(0);
    assert_eq!(cells(&run), [["READY", "NAME"], ["1", "a"], ["0", "b"]]);
    let run = broker.run(&["queue", "ls", "--columns", "READY", "--columns=Name"]).expect(0);
    assert_eq!(cells(&run)[0], ["READY", "NAME"]);
    let table = cells(&broker.run(&["queue", "ls"]).expect(0));
    let wide = cells(&broker.run(&["queue", "ls", "-o", "wide"]).expect(0));
    assert_eq!(table[0].join(" "), "NAME READY IN FLIGHT DEAD OLDEST CONSUMERS SLOTS FREE");
    let more = "DELAYED SIZE DURABLE DROP AFTER WEIGHT RETRY DELAY RETRY DELAY MAX";
    assert_eq!(wide[0].join(" "), format!("{} {more}", table[0].join(" ")));
    for (lines, columns) in [(table, 7), (wide, 14)] {
        assert!(lines.iter().skip(1).all(|line| line.len() == columns), "{lines:?}");
    }
    let run = broker.run(&["queue", "ls", "--columns", "in flight,oldest,name"]).expect(0);
    assert!(run.text().starts_with("IN FLIGHT  OLDEST  NAME\n"), "a heading names its column too: {}", run.text());
    let rows = broker.run(&["queue", "ls", "-o", "jsonl", "--columns", "name,ready"]).expect(0);
    let keys: Vec<Vec<String>> = rows.text().lines().map(keys).collect();
    assert_eq!(keys, [["schema", "name", "ready"], ["schema", "name", "ready"]]);
    let run = broker.run(&["queue", "ls", "--columns", "nmae"]).expect(2);
    assert!(run.stderr.contains("fix: did you mean name?"), "{}", run.stderr);
    let run = broker.run(&["queue", "ls", "--columns", "zzzzzz"]).expect(2);
    assert!(run.stderr.contains("choose from name,ready,in_flight"), "{}", run.stderr);
}

fn keys(line: &str) -> Vec<String> {
    let value: serde_json::Value = serde_json::from_str(line).expect("one document a line");
    let mut keys: Vec<String> = value.as_object().expect("an object").keys().cloned().collect();
    keys.sort_by_key(|key| (key != "schema", key.clone()));
    keys
}

/// `-o name` prints what other commands take, one a line.
#[test]
fn names_are_what_other_commands_take() {
    let broker = Broker::start();
    let _worker = broker.worker(&["b", "a", "--echo", "--name", "w"]);
    assert_eq!(broker.run(&["queue", "ls", "-o", "name"]).expect(0).text(), "a\nb\n");
    assert_eq!(broker.run(&["queue", "show", "a", "-o", "name"]).expect(0).text(), "a\n");
    let id = broker.run(&["worker", "ls", "-o", "name"]).expect(0).text();
    assert_eq!(broker.run(&["worker", "show", id.trim(), "-o", "name"]).expect(0).text(), id);
    assert_eq!(broker.run(&["worker", "show", "w", "-o", "name"]).expect(0).text(), id);
    let id = broker.run(&["send", "waiting", "x", "-o", "name"]).expect(0).text();
    assert_eq!(broker.run(&["message", "explain", id.trim(), "-o", "name"]).expect(0).text(), id);
    let lines = broker.place.run_with_input(["send", "waiting", "--lines", "-o", "name"], b"a\nb\n").expect(0).text();
    for id in lines.lines() {
        broker.run(&["message", "explain", id]).expect(0);
    }
    assert_eq!(lines.lines().count(), 2);
}

/// The style of moments is the user's.
#[test]
fn moments_have_the_style_that_was_asked_for() {
    let broker = Broker::start();
    let _worker = broker.worker(&["q", "--echo", "--name", "w"]);
    let moment = |style: &[&str]| {
        let words = [&["worker", "ls", "--columns", "registered_at"], style].concat();
        cells(&broker.run(&words).expect(0))[1][0].clone()
    };
    for style in [&[][..], &["--time", "relative"]] {
        let relative = moment(style);
        assert!(relative.ends_with('s') && relative.as_bytes()[0].is_ascii_digit(), "{relative}");
    }
    let utc = moment(&["--time", "utc"]);
    assert!(utc.len() == 24 && utc.ends_with('Z'), "{utc}");
    let local = moment(&["--time", "local"]);
    assert!(local.len() == 25 && local.ends_with("+00:00"), "{local}");
    let unix = moment(&["--time", "unix"]);
    assert!(unix.parse::<u64>().is_ok_and(|seconds| seconds > 1_700_000_000), "{unix}");
    let mut command = broker.turno(&["worker", "ls", "--columns", "registered_at", "--time", "local"]);
    command.env("TZ", "UTC-3");
    let shifted = cells(&Run::finish(command, b"", wait::PATIENCE).expect(0))[1][0].clone();
    assert!(shifted.ends_with("+03:00"), "{shifted}");
    let id = broker.run(&["send", "waiting", "x", "--ttl", "1h", "-o", "name"]).expect(0).text();
    let text = broker.run(&["message", "explain", id.trim()]).expect(0).text();
    assert!(text.contains(" ago\n") && text.contains("in 59m"), "{text}");
}

/// Hints stand on stderr and end with `-q`; data is the same with and without.
#[test]
fn hints_are_on_stderr_and_quiet_silences_them() {
    let broker = Broker::start();
    let empty: [&[&str]; 2] = [&["queue", "ls"], &["worker", "ls"]];
    let hinted = |words: &[&str]| {
        let run = broker.run(words).expect(0);
        assert!(run.stderr.starts_with("hint: ") && run.stderr.contains("turno "), "{words:?}: {:?}", run.stderr);
        for flag in ["-q", "--quiet"] {
            let quiet = broker.run(&[words, &[flag]].concat()).expect(0);
            assert_eq!(quiet.stderr, "", "{words:?}");
        }
        assert!(!run.text().contains("hint:"), "{words:?}");
    };
    empty.into_iter().for_each(hinted);
    broker.run(&["send", "q", "x"]).expect(0);
    hinted(&["queue", "show", "q"]);
    hinted(&["status"]);
    let run = broker.run(&["explain", "none", "-q"]).expect(4);
    assert!(run.stderr.starts_with("error: "), "an error is told all the same: {:?}", run.stderr);
}
