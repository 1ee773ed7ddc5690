//! How commands fail: what, why, fix and code on stderr, and the exit code that the code has.

use std::ffi::OsStr;
use std::io::pipe;
use std::net::TcpListener;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Stdio};

use turno_e2e::{Broker, Peer, Place, Run, wait};
use turno_proto::model::Slots;

const ID: &str = "5f3a9c0d21e4000000000001c0000007";

/// The four lines of an error.
struct Told {
    what: String,
    why: String,
    fix: String,
    code: String,
}

/// Reads the last four lines of stderr, which every error has; stdout must be empty.
#[track_caller]
fn told(run: &Run) -> Told {
    assert_eq!(run.text(), "", "an error is no data; stderr: {}", run.stderr);
    let lines: Vec<&str> = run.stderr.lines().collect();
    let [.., what, why, fix, code] = lines[..] else { panic!("an error has four lines: {}", run.stderr) };
    let rest = |line: &str, start: &str| {
        let text = line.strip_prefix(start).unwrap_or_else(|| panic!("{start:?} begins {line:?}: {}", run.stderr));
        assert!(!text.trim().is_empty(), "{start} says something: {}", run.stderr);
        text.to_owned()
    };
    let code = rest(code, "code: ");
    let (name, more) = code.split_once(' ').expect("the code, then the command that explains it");
    assert_eq!(more, format!("(turno explain {name})"));
    Told { what: rest(what, "error: "), why: rest(why, "why: "), fix: rest(fix, "fix: "), code: name.to_owned() }
}

/// Each outcome has its code and its exit code, whichever command ends with it.
#[test]
fn every_way_to_fail_has_its_code_and_exit_code() {
    let broker = Broker::start();
    let table: [(&[&str], i32, &str); 15] = [
        (&["request", "q", "x", "--fail-fast"], 6, "no_responder"),
        (&["request", "q", "x", "--no-wait"], 6, "no_responder"),
        (&["request", "q", "x", "--timeout", wait::SHORT], 124, "timed_out"),
        (&["request", "a b", "x"], 2, "bad_name"),
        (&["send", "a*", "x"], 2, "bad_name"),
        (&["send", "", "x"], 2, "bad_name"),
        (&["work", "a..b", "--echo"], 2, "bad_name"),
        (&["queue", "show", "none"], 4, "not_found"),
        (&["worker", "show", "none"], 4, "not_found"),
        (&["message", "explain", ID], 4, "not_found"),
        (&["message", "explain", "no id"], 2, "bad_usage"),
        (&["status", "--url", "http://x"], 2, "bad_usage"),
        (&["status", "--url", "turno://127.0.0.1:1"], 5, "cannot_connect"),
        (&["status", "--url", "unix:/nowhere"], 5, "cannot_connect"),
        (&["status", "--config", "none.toml"], 78, "bad_config"),
    ];
    for (words, exit, code) in table {
        let run = broker.run(words).expect(exit);
        assert_eq!(told(&run).code, code, "{words:?}");
    }
}

/// A request that nobody takes: the reason is named, and the command that is advised works.
#[test]
fn a_request_without_an_answer_says_whether_anybody_consumes_the_queue() {
    let broker = Broker::start();
    let error = told(&broker.run(&["request", "lonely", "x", "--timeout", "3s"]).expect(124));
    assert_eq!(error.why, "queue lonely has no consumer on this broker");
    assert_eq!(error.fix, "start a worker: turno work lonely -- PROGRAM");
    let more: [&[&str]; 2] = [&["--stream"], &["--count", "2"]];
    for flags in more {
        let run = broker.run(&[&["request", "lonely", "x", "--timeout", "3s"], flags].concat()).expect(124);
        assert_eq!(told(&run).why, error.why, "{flags:?}");
    }
    let _worker = Peer::worker(broker.address(), "busy", Slots::Limited(1), "w");
    let error = told(&broker.run(&["request", "busy", "x", "--timeout", "3s"]).expect(124));
    assert_eq!(error.why, "1 worker consumes the queue; none had a free slot or replied in time");
    assert!(error.fix.ends_with("; turno queue consumers busy shows their load"), "{}", error.fix);
    broker.run(&["queue", "consumers", "busy"]).expect(0);
}

/// A configuration that is there and cannot be read is not the same as none, and no line of it is to blame.
#[test]
fn a_configuration_that_cannot_be_read_is_told_as_such() {
    let place = Place::new();
    let file = place.path().join("loop.toml");
    std::os::unix::fs::symlink(&file, &file).expect("a link to itself");
    let path = file.to_str().expect("a path of text");
    for words in [&["config", "show", "--config", path][..], &["config", "check", path], &["serve", "--config", path]] {
        let error = told(&place.run(words).expect(78));
        assert_eq!(error.code, "bad_config");
        assert!(error.what.contains("loop.toml: cannot be read: "), "{}", error.what);
        assert!(error.why.contains("this user may not read it"), "{}", error.why);
        assert!(error.fix.contains("--config"), "{}", error.fix);
    }
}

/// What cannot be read on the command line is refused before anything is asked of a broker.
#[test]
fn bad_values_are_refused_with_what_would_be_right() {
    let place = Place::new();
    let table: [(&[&str], &str); 10] = [
        (&["request", "q", "x", "--timeout", "5x"], "250ms, 30s, 5m"),
        (&["request", "q", "x", "--timeout", ""], "250ms, 30s, 5m"),
        (&["request", "q", "x", "--count", "0"], "at least 1"),
        (&["request", "q", "x", "--priority", "10"], "0..=9"),
        (&["request", "q", "x", "--cost", "0"], "1..="),
        (&["request", "q", "x", "--retries", "256"], "256"),
        (&["request", "q", "x", "-H", "novalue"], "KEY=VALUE"),
        (&["work", "q", "--echo", "--slots", "many"], "unlimited"),
        (&["work", "q", "--echo", "--slots", "1_000_001"], "unlimited"),
        (&["completions", "tcsh"], "bash"),
    ];
    for (words, expected) in table {
        let run = place.run(words).expect(2);
        assert!(run.stderr.contains(expected), "{words:?} names {expected:?}: {}", run.stderr);
        assert_eq!(run.text(), "", "{words:?}");
        assert_eq!(place.run(words.iter().chain(&["--json"])).expect(2).error_code(), "bad_usage", "{words:?}");
    }
    for words in [&["work", "q"][..], &["work", "--echo"], &["work", "q", "--echo", "--", "cat"], &["send"]] {
        place.run(words).expect(2);
    }
}

/// A word that is no text is wrong usage, and JSON is JSON wherever it is asked for.
#[test]
fn a_word_that_is_no_text_is_refused() {
    let place = Place::new();
    let wild = OsStr::from_bytes(b"\xff");
    let words = |text: &[&'static str]| text.iter().map(|word| OsStr::new(*word)).collect::<Vec<&OsStr>>();
    let run = place.run([words(&["request", "q"]), vec![wild]].concat()).expect(2);
    assert_eq!(told(&run).code, "bad_usage");
    for line in [
        [words(&["request", "q", "--json"]), vec![wild]].concat(),
        [words(&["request", "q"]), vec![wild], words(&["--json"])].concat(),
    ] {
        assert_eq!(place.run(line).expect(2).error_code(), "bad_usage");
    }
}

/// Proves S1.5: every broker of the list is tried once, each is named with its reason, and the exit code is 5.
#[test]
fn every_address_that_was_tried_is_named() {
    let place = Place::new();
    let silent = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let silent = format!("turno://{}", silent.local_addr().map(|address| address.to_string()).expect("bound"));
    let urls = format!("turno://127.0.0.1:1,unix:/nowhere,{silent}");
    for words in [&["work", "q", "--echo"][..], &["status"], &["request", "q", "x"], &["send", "q", "x"]] {
        let run = place.run(words.iter().chain(&["--url", &urls, "--timeout", wait::SHORT])).expect(5);
        let told = told(&run);
        for url in urls.split(',') {
            assert!(told.what.contains(url) && told.why.contains(url), "{words:?}: {}", run.stderr);
        }
        assert!(told.fix.contains("turno serve"), "{}", run.stderr);
    }
    let mut command = place.turno(["status"]);
    command.env("TURNO_URL", "turno://127.0.0.1:1");
    assert_eq!(told(&Run::finish(command, b"", wait::PATIENCE).expect(5)).code, "cannot_connect");
}

/// Some of many requests failing is exit code 3; all of them, the code of the first.
#[test]
fn partly_done_is_three_and_nothing_done_is_not() {
    let broker = Broker::start();
    let program = broker.place.script("once", "mkdir once.d 2>/dev/null && { echo no luck >&2; exit 9; }; cat");
    let _worker = broker.worker(&["q", "--", &program.display().to_string()]);
    let run = broker.run(&["request", "q", "x", "--count", "3", "--parallel", "1"]).expect(3);
    assert_eq!(run.text(), "x\nx\n");
    assert!(run.stderr.contains("3 sent, 2 answered, 1 failed"), "{}", run.stderr);
    assert!(run.stderr.contains("error: ") && run.stderr.contains("no luck"), "{}", run.stderr);
    let run = broker.run(&["request", "none", "x", "--count", "3", "--fail-fast"]).expect(6);
    assert!(run.stderr.contains("3 sent, 0 answered, 3 failed"), "{}", run.stderr);
    assert_eq!(told(&run).code, "no_responder");
}

/// A broker that would be open to the network refuses, and names the very command that would do it.
#[test]
fn an_open_broker_is_refused_with_the_exact_fix() {
    let place = Place::new();
    let run = place.run(["serve", "--listen", "0.0.0.0:0", "--name", "rb 1"]).expect(78);
    let refused = told(&run);
    assert_eq!(refused.code, "insecure_listen");
    assert!(refused.what.contains("0.0.0.0:0"), "{}", run.stderr);
    assert!(refused.fix.ends_with("turno serve --listen 0.0.0.0:0 --name 'rb 1' --insecure"), "{}", run.stderr);
    let run = place.run(["serve", "--listen", "127.0.0.1:0,[::]:0", "--json"]).expect(78);
    assert_eq!(run.error_code(), "insecure_listen");
    let mut command = place.turno(["serve"]);
    command.env("TURNO_LISTEN__NATIVE", "0.0.0.0:0");
    let run = Run::finish(command, b"", wait::PATIENCE).expect(78);
    assert_eq!(told(&run).code, "insecure_listen", "the environment opens no door either");
}

/// A place that is taken is said to be, with another one to try.
#[test]
fn a_place_that_is_taken_is_named() {
    let broker = Broker::start();
    let address = broker.address().to_string();
    let other = Place::new();
    let refused = told(&other.run(["serve", "--listen", &address]).expect(1));
    assert_eq!(refused.code, "address_in_use");
    assert!(refused.what.contains(&address) && refused.fix.contains("--listen 127.0.0.1:0"), "{}", refused.fix);
    let refused = told(&broker.run(&["serve", "--listen", "127.0.0.1:0"]).expect(1));
    assert_eq!(refused.code, "data_in_use");
    let data = broker.place.path().join("data").display().to_string();
    assert!(refused.what.contains(&data) && refused.fix.contains("--data"), "{}", refused.what);
}

/// `explain` knows every code: what, why, fix, and an exit code of the documented ones.
#[test]
fn every_code_is_explained() {
    let place = Place::new();
    let names = place.run(["explain", "-o", "name"]).expect(0).text();
    assert!(names.lines().count() > 40, "{names}");
    let listed = place.run(["explain"]).expect(0).text();
    for name in names.lines() {
        let document = place.run(["explain", name, "--json"]).expect(0).document("turno.code/1");
        let row = &document["code"];
        assert_eq!(row["code"], name);
        let exit = row["exit"].as_u64().expect("a number");
        assert!([1, 2, 3, 4, 5, 6, 78, 124].contains(&exit), "{name}: {exit}");
        let text = place.run(["explain", name]).expect(0).text();
        for key in ["what", "why", "fix"] {
            let words = row[key].as_str().expect("text");
            assert!(!words.is_empty() && text.contains(words), "{name}: {text}");
        }
        let shown = |line: &str| line.split_whitespace().take(2).eq([name, &exit.to_string()]);
        assert!(listed.lines().any(shown), "{name} is in the list");
    }
    for word in ["NO_RESPONDER", "no-responder"] {
        assert_eq!(place.run(["explain", word, "-o", "name"]).expect(0).text(), "no_responder\n");
    }
}

#[test]
fn a_code_that_is_not_there_brings_the_nearest() {
    let place = Place::new();
    let refused = told(&place.run(["explain", "no_respnder"]).expect(4));
    assert_eq!(refused.code, "not_found");
    assert!(refused.fix.contains("did you mean no_responder?"), "{}", refused.fix);
    let refused = told(&place.run(["explain", "xyzzy"]).expect(4));
    assert!(!refused.fix.contains("did you mean"), "{}", refused.fix);
    assert!(refused.fix.contains("turno explain"), "{}", refused.fix);
}

/// Runs a command with that stdout; returns its exit code and stderr.
fn into(stdout: Stdio, mut command: Command) -> (i32, String) {
    let mut child = command.stdout(stdout).stderr(Stdio::piped()).spawn().expect("the command starts");
    drop(command);
    let ended = wait::find(wait::PATIENCE, || child.try_wait().expect("our own child"));
    let code = ended.expect("the command ends").code().expect("no signal ended it");
    let stderr = child.stderr.take().expect("piped");
    (code, std::io::read_to_string(stderr).expect("text"))
}

/// A reader that goes away is no error: `turno explain | head -1` is quiet.
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let broker = Broker::start();
    let table: [&[&str]; 6] =
        [&["explain"], &["--help"], &["queue", "ls", "--json"], &["status"], &["completions", "bash"], &["man"]];
    for words in table {
        let (reader, writer) = pipe().expect("a pipe");
        drop(reader);
        assert_eq!(into(writer.into(), broker.turno(words)), (0, String::new()), "{words:?}");
    }
    let mut shell = broker.place.command("sh");
    shell.args(["-c", "turno explain -o wide | head -1"]);
    let run = Run::finish(shell, b"", wait::PATIENCE).expect(0);
    assert_eq!((run.text().lines().count(), run.stderr.as_str()), (1, ""));
}

/// A disk that is full is one.
#[test]
fn a_write_that_fails_is_an_error() {
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").expect("the device that is always full");
    let place = Place::new();
    for words in [&["explain"][..], &["version"], &["version", "--json"], &["completions", "bash"]] {
        let (code, stderr) = into(full().into(), place.turno(words));
        assert_eq!(code, 1, "{words:?}: {stderr}");
        assert!(stderr.contains("code: io "), "{words:?}: {stderr}");
    }
}

/// What destroys something is not done without a yes, and nobody is asked where nobody can answer.
#[test]
fn nothing_is_destroyed_without_a_yes() {
    let broker = Broker::start();
    let _worker = broker.worker(&["q", "--echo", "--name", "w"]);
    let id = broker.run(&["send", "waiting", "x", "-o", "name"]).expect(0).text();
    let id = id.trim();
    for more in [&[][..], &["--no-input"]] {
        let refused = told(&broker.run(&[&["message", "cancel", id], more].concat()).expect(2));
        assert_eq!((refused.code.as_str(), refused.fix.as_str()), ("not_confirmed", "add --yes"));
        assert!(refused.what.contains(id) && refused.what.contains("waiting"), "{}", refused.what);
        let refused = told(&broker.run(&[&["worker", "stop", "w", "--now"], more].concat()).expect(2));
        assert_eq!(refused.code, "not_confirmed");
        assert!(refused.what.contains("(w)") && refused.what.contains("0 slots"), "{}", refused.what);
    }
    let run = broker.run(&["worker", "stop", "w", "--now", "--json"]).expect(2);
    assert_eq!(run.error_code(), "not_confirmed");
    assert_eq!((broker.workers(), &broker.queue("waiting")["ready"]), (1, &1.into()), "nothing happened");
}

/// At a terminal the user is asked, with what is at stake; only a yes is a yes.
#[test]
fn at_a_terminal_the_user_is_asked() {
    let broker = Broker::start();
    let id = broker.run(&["send", "waiting", "x", "-o", "name"]).expect(0).text();
    let id = id.trim();
    let typed = |answer: &str, more: &str| {
        let mut terminal = broker.place.command("script");
        terminal.args(["-qec", &format!("turno message cancel {id} {more}"), "/dev/null"]);
        Run::finish(terminal, answer.as_bytes(), wait::PATIENCE)
    };
    for answer in ["n\n", "\n", "yeah\n"] {
        let run = typed(answer, "").expect(0);
        let question = format!("cancel the send {id} of queue waiting, which is ready? [y/N]");
        let text = run.text();
        assert!(text.contains(&question) && text.contains("nothing was changed"), "{answer:?}: {text}");
        assert!(!text.contains("error:"), "a no is an answer and no error: {text}");
    }
    let run = typed("y\n", "--no-input").expect(2);
    assert!(!run.text().contains("[y/N]"), "nobody is asked: {}", run.text());
    assert_eq!(broker.queue("waiting")["ready"], 1);
    assert!(typed("y\n", "").expect(0).text().contains("cancelled "));
    assert_eq!(broker.status()["ready"], 0);
}
