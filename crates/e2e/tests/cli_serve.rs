//! `turno serve`: what it says when it starts, and where it can be found.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use rustix::process::Signal;
use serde_json::Value;
use turno_e2e::{Background, Broker, Place, Run, schema, wait};

/// A broker for people: no `--json`.
fn serve(place: &Place, more: &[&str]) -> Background {
    place.start(["serve", "--listen", "127.0.0.1:0"].iter().chain(more))
}

/// Its end, asked for.
fn end(mut serving: Background) -> (Vec<String>, Vec<String>) {
    serving.signal(Signal::TERM);
    assert_eq!(serving.end(wait::PATIENCE), 0);
    (serving.stdout(), serving.stderr())
}

/// The banner tells where it listens, what survives, who may come, and what to type next; all of it on stderr.
#[test]
fn the_banner_tells_what_a_user_must_know() {
    let place = Place::new();
    let serving = serve(&place, &["--name", "rb-1"]);
    serving.expect_line("hint: ");
    let (stdout, stderr) = end(serving);
    assert_eq!(stdout, Vec::<String>::new(), "stdout is for data");
    let fact = |name: &str| {
        let line = stderr.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix("  "));
        line.unwrap_or_else(|| panic!("no {name}: {stderr:?}")).trim().to_owned()
    };
    assert!(fact("broker").starts_with("rb-1 (turno "), "{stderr:?}");
    assert!(fact("native").starts_with("turno://127.0.0.1:") && !fact("native").ends_with(":0"), "{stderr:?}");
    assert_eq!(fact("unix"), format!("unix:{}", place.path().join("data/turno/turno.sock").display()));
    assert_eq!(fact("data"), place.path().join("data/turno").display().to_string());
    assert_eq!(fact("persistence"), "disk: sends are stored before they are acknowledged");
    assert!(fact("security").contains("loopback only"), "{stderr:?}");
    let hint = stderr.iter().find(|line| line.starts_with("hint: ")).expect("waited for");
    assert!(hint.contains("turno work hello --echo") && hint.contains("turno request hello hi"), "{hint}");
}

/// The first minutes of a new user: the banner's commands work as they stand, with no address in any of them.
#[test]
fn what_the_hint_says_works() {
    let place = Place::new();
    let serving = serve(&place, &[]);
    serving.expect_line("hint: ");
    let worker = place.start(["work", "hello", "--echo"]);
    worker.expect_line(" registered: queues hello, slots 10, ");
    assert_eq!(place.run(["request", "hello", "hi"]).expect(0).text(), "hi");
    assert!(place.run(["status"]).expect(0).text().contains("1, 0 of 10 slots in use"));
    // A second broker is named, since commands would find the first.
    let second = serve(&place, &["--data", "second"]);
    let hint = second.expect_line("hint: ");
    let words: Vec<&str> = hint.split(", then: turno ").last().unwrap_or_default().split(' ').collect();
    assert!(words.starts_with(&["request", "hello", "hi", "--url"]), "{hint}");
    assert_eq!(place.run(["status", "--url", words[4]]).expect(0).code, 0);
}

#[test]
fn quiet_and_json_have_no_banner() {
    let place = Place::new();
    let serving = serve(&place, &["-q"]);
    serving.expect_line("ready");
    let (stdout, stderr) = end(serving);
    assert_eq!(stdout.len(), 0);
    assert!(!stderr.iter().any(|line| line.starts_with("hint:") || line.starts_with("native")), "{stderr:?}");
    let serving = serve(&place, &["--json"]);
    wait::until("the ready line", || serving.stdout().len() == 1);
    let (stdout, stderr) = end(serving);
    assert_eq!(stdout.len(), 1, "exactly one line: {stdout:?}");
    assert!(!stderr.iter().any(|line| line.starts_with("hint:") || line.starts_with("native")), "{stderr:?}");
}

/// The ready line has every listener's key; what is off is null. Proves S1.15: TCP and Unix sockets, both at choice.
#[test]
fn the_ready_line_names_what_was_really_bound() {
    let data = Place::new();
    let dir = data.path().join("elsewhere").display().to_string();
    let broker = Broker::start_with(&["--listen", "127.0.0.1:0", "--data", &dir]);
    let ready = broker.ready();
    schema::check(ready);
    for key in ["native", "unix", "foreman", "ring"] {
        assert!(ready.get(key).is_some(), "{key}: {ready}");
    }
    let foreman: SocketAddr = ready["foreman"].as_str().and_then(|text| text.parse().ok()).expect("an address");
    assert!(foreman.ip().is_loopback() && foreman.port() > 0, "{ready}");
    assert_eq!(ready["ring"], Value::Null, "it is in no ring");
    assert_eq!(ready["unix"], format!("{dir}/turno.sock"));
    let listen = ready["listen"].as_array().expect("a list");
    assert_eq!(listen.len(), 2, "{ready}");
    assert_ne!(listen[0], listen[1], "port 0 is a free one each time");
    let unix = format!("unix:{dir}/turno.sock");
    for url in listen.iter().map(|address| format!("turno://{}", address.as_str().expect("text"))).chain([unix]) {
        let status = broker.run(&["status", "--json", "--url", &url]).expect(0).document("turno.status/1");
        assert_eq!(status["broker"]["connections"], 1, "{url}");
    }
}

/// `status` tells what there is.
#[test]
fn status_shows_the_broker_as_a_whole() {
    let broker = Broker::start_with(&["--name", "rb-7"]);
    let _worker = broker.worker(&["q", "--echo", "--slots", "3"]);
    broker.run(&["request", "q", "x"]).expect(0);
    broker.run(&["send", "waiting", "x"]).expect(0);
    let status = broker.status();
    let version = broker.run(&["version", "--json"]).expect(0).json()["version"].clone();
    assert_eq!((&status["name"], &status["version"]), (&"rb-7".into(), &version));
    let numbers = ["workers", "slots", "slots_used", "queues", "ready", "in_flight", "dead"];
    let found: Vec<u64> = numbers.iter().map(|key| status[key].as_u64().expect("a number")).collect();
    assert_eq!(found, [1, 3, 0, 2, 1, 0, 0], "{status}");
    let counters = &status["counters"];
    assert_eq!((&counters["requests"], &counters["replied"], &counters["sends"]), (&1.into(), &1.into(), &1.into()));
    assert_eq!((&status["draining"], &status["connections"]), (&false.into(), &2.into()), "worker and this command");
    let text = broker.run(&["status"]).expect(0).text();
    for expected in ["rb-7 (turno ", "running", "1, 0 of 3 slots in use", "1 ready, 0 in flight, 0 dead"] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

/// Log lines are text or JSON, as told; `-v` and TURNO_LOG show more.
#[test]
fn log_lines_have_the_format_and_the_level_that_were_asked_for() {
    let place = Place::new();
    let level = |line: &str| ["TRACE", "DEBUG", "INFO"].into_iter().find(|level| line.contains(level));
    let plain = logged(&place, &[], None);
    assert!(plain.iter().any(|line| level(line) == Some("INFO")), "{plain:?}");
    assert!(plain.iter().all(|line| !line.contains('\u{1b}')), "no colour where no terminal is: {plain:?}");
    for lines in [logged(&place, &["-v"], None), logged(&place, &[], Some("debug"))] {
        assert!(lines.iter().any(|line| level(line) == Some("DEBUG")), "{lines:?}");
    }
    let lines = logged(&place, &["--log-format", "json"], None);
    for line in &lines {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(value["level"].is_string() && value["message"].is_string() && value["timestamp"].is_string(), "{line}");
    }
    assert!(lines.iter().any(|line| line.contains("ready")), "{lines:?}");
    let lines = logged(&place, &["-q"], Some("error"));
    assert_eq!(lines, Vec::<String>::new());
}

/// A command logs nothing unless asked, and then to stderr.
#[test]
fn a_command_logs_only_when_asked() {
    let broker = Broker::start();
    assert_eq!(broker.run(&["status"]).expect(0).stderr, "");
    let verbose = broker.run(&["status", "-v"]).expect(0);
    let mut command = broker.turno(&["status"]);
    command.env("TURNO_LOG", "info");
    let variable = Run::finish(command, b"", wait::PATIENCE).expect(0);
    for run in [verbose, variable] {
        assert!(run.stderr.contains(" INFO ") && run.stderr.contains(&broker.url()), "{}", run.stderr);
        assert!(!run.text().contains("INFO"));
    }
}

/// Stderr of a broker that got ready, took one message with a secret body, heard nonsense, and ended.
fn logged(place: &Place, flags: &[&str], level: Option<&str>) -> Vec<String> {
    let mut command = place.turno(["serve", "--json", "--listen", "127.0.0.1:0"].iter().chain(flags));
    command.envs(level.map(|level| ("TURNO_LOG", level)));
    let serving = Background::start(command);
    wait::until("the broker is ready", || serving.stdout().len() == 1);
    place.run(["send", "q", "the secret of the message"]).expect(0);
    let native = schema::document(&serving.stdout()[0])["native"].as_str().expect("an address").to_owned();
    let mut nonsense = TcpStream::connect(native).expect("the broker accepts");
    nonsense.write_all(b"GET / HTTP/1.1\r\nHost: secret\r\n\r\n").expect("the broker listens");
    // It closes when it has seen that this is no frame; what it says about it is for others to test.
    let _ = nonsense.read_to_end(&mut Vec::new());
    let (_, stderr) = end(serving);
    assert!(!stderr.iter().any(|line| line.contains("secret")), "bodies are never logged: {stderr:?}");
    stderr
}

/// At the start one line of the log has version, data directory and listeners.
#[test]
fn the_first_log_line_says_what_started() {
    let place = Place::new();
    let serving = serve(&place, &["--json"]);
    wait::until("the broker is ready", || serving.stdout().len() == 1);
    let native = schema::document(&serving.stdout()[0])["native"].as_str().expect("an address").to_owned();
    let (_, stderr) = end(serving);
    let version = place.run(["version", "-o", "name"]).expect(0).text();
    let data = place.path().join("data/turno").display().to_string();
    let line = stderr.iter().find(|line| line.contains(" ready ")).unwrap_or_else(|| panic!("{stderr:?}"));
    for expected in [version.trim(), &data, &native] {
        assert!(line.contains(expected), "{expected}: {line}");
    }
}

/// Under systemd the journal gets priorities and no times of our own.
#[test]
fn the_journal_gets_priorities() {
    let place = Place::new();
    let mut command = place.turno(["serve", "--listen", "127.0.0.1:0"]);
    command.env("JOURNAL_STREAM", "8:1");
    let serving = Background::start(command);
    serving.expect_line("ready");
    let (_, stderr) = end(serving);
    assert!(stderr.iter().all(|line| line.starts_with("<6>")), "{stderr:?}");
}
