//! Configuration: who said what, what is refused, and that a running broker obeys.

use std::time::{Duration, Instant};

use serde_json::Value;
use turno_e2e::{Background, Broker, Peer, Place, Run, wait};
use turno_proto::model::{Code, Slots};
use turno_proto::native::{Connect, Frame, VERSION};

/// Runs with these variables set.
fn with(place: &Place, variables: &[(&str, &str)], words: &[&str]) -> Run {
    let mut command = place.turno(words);
    command.envs(variables.iter().copied());
    Run::finish(command, b"", wait::PATIENCE)
}

/// Value and origin of a key, from `config show --json`.
fn setting(run: &Run, key: &str) -> (Value, String) {
    let document = run.document("turno.config/1");
    let rows = document["settings"].as_array().expect("a list");
    let row = rows.iter().find(|row| row["key"] == key).unwrap_or_else(|| panic!("no key {key}"));
    (row["value"].clone(), row["origin"].as_str().expect("text").to_owned())
}

/// A flag beats the environment, the environment beats the file, the file beats what is built in; each says so.
#[test]
fn the_nearest_source_wins_and_is_named() {
    let place = Place::new();
    let file = place.file(
        "config/turno/turno.toml",
        "# mine\nname = \"from-file\"\nurl = [\"turno://file:1\"]\n\n[limits]\nmessage = \"1MiB\"\nqueues = 7\n",
    );
    let file = file.display().to_string();
    let variables = [("TURNO_URL", "turno://env:2"), ("TURNO_LIMITS__MESSAGE", "2MiB"), ("TURNO_QUEUE", "not ours")];
    let words = ["config", "show", "--json", "--url", "turno://flag:3"];
    let run = with(&place, &variables, &words).expect(0);
    assert_eq!(run.json()["files"], serde_json::json!([file]));
    assert_eq!(setting(&run, "url"), (serde_json::json!(["turno://flag:3"]), "flag --url".into()));
    assert_eq!(setting(&run, "limits.message"), ((2 << 20).into(), "environment TURNO_LIMITS__MESSAGE".into()));
    assert_eq!(setting(&run, "limits.queues"), (7.into(), format!("{file}:7")));
    assert_eq!(setting(&run, "name"), ("from-file".into(), format!("{file}:2")));
    assert_eq!(setting(&run, "heartbeat"), (5.0.into(), "default".into()));
    let run = with(&place, &variables, &["config", "show", "--json"]).expect(0);
    assert_eq!(setting(&run, "url"), (serde_json::json!(["turno://env:2"]), "environment TURNO_URL".into()));
    let run = place.run(["config", "show", "--json"]).expect(0);
    assert_eq!(setting(&run, "url"), (serde_json::json!(["turno://file:1"]), format!("{file}:3")));
    let text = place.run(["config", "show", "--origin"]).expect(0).text();
    let shown = |line: &str| line.split_whitespace().eq(["name", "from-file", &format!("{file}:2")]);
    assert!(text.lines().next().is_some_and(|line| line.ends_with("ORIGIN")) && text.lines().any(shown), "{text}");
    assert!(!place.run(["config", "show"]).expect(0).text().contains("ORIGIN"), "only when asked");
}

/// `--config` beats TURNO_CONFIG beats the user's file; only one of them is read.
#[test]
fn one_file_is_read_and_a_named_one_must_exist() {
    let place = Place::new();
    place.file("config/turno/turno.toml", "name = \"user\"\nheartbeat = \"1s\"\n");
    let named = place.file("named.toml", "name = \"named\"\n").display().to_string();
    let variable = place.file("variable.toml", "name = \"variable\"\n").display().to_string();
    let variables = [("TURNO_CONFIG", variable.as_str())];
    let name = |run: &Run| setting(run, "name").0;
    assert_eq!(name(&place.run(["config", "show", "--json"]).expect(0)), "user");
    let run = with(&place, &variables, &["config", "show", "--json"]).expect(0);
    assert_eq!((name(&run), setting(&run, "heartbeat").1.as_str()), ("variable".into(), "default"));
    assert_eq!(name(&with(&place, &variables, &["config", "show", "--json", "--config", &named]).expect(0)), "named");
    for run in [
        with(&place, &[("TURNO_CONFIG", "/nowhere/x.toml")], &["config", "show"]),
        place.run(["config", "show", "--config", "/nowhere/x.toml"]),
        place.run(["serve", "--config", "/nowhere/x.toml"]),
        place.run(["config", "check", "/nowhere/x.toml"]),
    ] {
        let run = run.expect(78);
        assert!(run.stderr.contains("the configuration file does not exist"), "{}", run.stderr);
        assert!(run.stderr.contains("code: bad_config"), "{}", run.stderr);
    }
    let run = place.run(["config", "show", "--config", "/"]).expect(78);
    assert!(run.stderr.contains("error: /: is not a regular file"), "{}", run.stderr);
}

/// `config check` says nothing is wrong, or where and what would be right.
#[test]
fn a_file_is_checked_line_by_line() {
    let place = Place::new();
    let good = place
        .file("good.toml", "[listen]\nnative = [\"127.0.0.1:0\", \"localhost:0\"]\n[drain]\ntimeout = \"1m30s\"\n");
    let good = good.display().to_string();
    let run = place.run(["config", "check", &good]).expect(0);
    assert_eq!((run.text(), run.stderr.as_str()), (format!("ok: {good}\n"), ""));
    assert_eq!(place.run(["config", "check"]).expect(0).text(), "ok: no configuration file; using defaults\n");
    let table = [
        ("[limits]\nmesage = \"1MiB\"\n", 2, "unknown key limits.mesage; did you mean limits.message?"),
        ("\n\nhartbeat = \"1s\"\n", 3, "unknown key hartbeat; did you mean heartbeat?"),
        ("zzzzzzzzzz = 1\n", 1, "unknown key zzzzzzzzzz; `turno config show` lists every key"),
        ("heartbeat = \"soon\"\n", 1, "heartbeat = \"soon\": expected a duration like \"30s\", from 250ms to 1m"),
        ("heartbeat = \"1ms\"\n", 1, "expected a duration like \"30s\", from 250ms to 1m"),
        ("[limits]\n\nmessage = 1\n", 3, "limits.message = 1: expected a size like \"64KiB\""),
        ("[limits]\nconnections = \"many\"\n", 2, "expected a whole number from 1 to"),
        ("[queue.defaults]\npolicy = \"random\"\n", 2, "expected one of lru, fill"),
        ("[listen]\nnative = \"example.com:1\"\n", 2, "expected addresses like"),
        ("limits = 3\n", 1, "limits is a table: write [limits] with its keys below"),
        ("name = \n", 1, "not TOML"),
        ("name = true\n", 1, "name = true: expected text"),
    ];
    for (number, (text, line, expected)) in table.into_iter().enumerate() {
        let file = place.file(&format!("bad{number}.toml"), text).display().to_string();
        let run = place.run(["config", "check", &file]).expect(78);
        let what = format!("error: {file}:{line}: ");
        assert!(run.stderr.contains(&what) && run.stderr.contains(expected), "{text:?}: {}", run.stderr);
        assert_eq!(run.text(), "");
        let run = place.run(["serve", "--listen", "127.0.0.1:0", "--config", &file]).expect(78);
        assert!(run.stderr.contains(&what), "serve refuses it too: {}", run.stderr);
    }
}

/// All problems are told, not only the first; variables count too.
#[test]
fn every_problem_is_told() {
    let place = Place::new();
    let file = place.file("bad.toml", "nam = 1\nheartbeat = \"soon\"\n").display().to_string();
    let run = with(&place, &[("TURNO_LIMITS__MESAGE", "1MiB")], &["config", "check", &file]).expect(78);
    for expected in ["bad.toml:1: ", "bad.toml:2: ", "did you mean TURNO_LIMITS__MESSAGE?", "3 problems"] {
        assert!(run.stderr.contains(expected), "{expected}: {}", run.stderr);
    }
    let run = with(&place, &[("TURNO_DRAIN__TIMEOUT", "never")], &["serve", "--json"]).expect(78);
    assert_eq!(run.error_code(), "bad_config");
    let run = with(&place, &[("TURNO_DRAIN__TIMEOUT", "")], &["config", "show", "--json"]).expect(0);
    assert_eq!(setting(&run, "drain.timeout").1, "default", "an empty variable says nothing");
}

/// A flag of `serve` beats the environment beats the file, in what the broker does.
#[test]
fn a_broker_has_the_name_that_wins() {
    let names = [(&["--name", "flag"][..], "flag"), (&[], "variable")];
    for (flags, expected) in names {
        let place = Place::new();
        place.file("config/turno/turno.toml", "name = \"file\"\n");
        let mut command = place.turno(["serve", "--json", "--listen", "127.0.0.1:0"].iter().chain(flags));
        command.env("TURNO_NAME", "variable");
        let _serving = ready(command);
        let status = place.run(["status", "--json"]).expect(0).document("turno.status/1");
        assert_eq!(status["broker"]["name"], expected);
    }
    let place = Place::new();
    place.file("config/turno/turno.toml", "name = \"file\"\n");
    let broker = Broker::start_in(place, &[]);
    assert_eq!(broker.status()["name"], "file");
}

/// Starts `serve --json` and waits for its line.
fn ready(command: std::process::Command) -> Background {
    let serving = Background::start(command);
    wait::until("the broker is ready", || serving.stdout().len() == 1);
    serving
}

/// A broker of that configuration file.
fn broker_of(text: &str) -> Broker {
    let place = Place::new();
    place.file("config/turno/turno.toml", text);
    Broker::start_in(place, &[])
}

/// `limits.message`: what is longer is refused, whichever way it comes.
#[test]
fn a_running_broker_obeys_the_limit_of_a_message() {
    let broker = broker_of("[limits]\nmessage = \"8KiB\"\n");
    let _worker = broker.worker(&["q", "--echo"]);
    let fits = "x".repeat(7_000);
    let long = "x".repeat(9_000);
    assert_eq!(broker.run(&["request", "q", &fits]).expect(0).text(), fits);
    for words in [&["request", "q"][..], &["send", "q"]] {
        for run in [
            broker.run(&[words, &[long.as_str(), "--json"]].concat()),
            broker.place.run_with_input([words, &["-", "--json"]].concat(), long.as_bytes()),
        ] {
            assert_eq!(run.expect(1).error_code(), "frame_too_large", "{words:?}");
        }
    }
    let lines = format!("short\n{long}\nnever sent\n");
    let run = broker.place.run_with_input(["send", "lines", "--lines"], lines.as_bytes()).expect(3);
    assert!(run.stderr.contains("line 2: ") && run.stderr.contains("code: frame_too_large"), "{}", run.stderr);
    assert_eq!(run.text().lines().count(), 1, "only the first is stored");
    assert_eq!(broker.queue("lines")["ready"], 1);
    assert_eq!(broker.workers(), 1, "the worker did not mind");
}

/// `heartbeat`: what CONFIG tells a peer that names none, and how long it may be silent.
#[test]
fn a_running_broker_obeys_its_heartbeat() {
    let broker = broker_of("heartbeat = \"1s\"\n");
    let mut peer = Peer::silent(broker.address());
    let connect = Connect { version: VERSION, name: "peer".into(), program: "e2e".into(), heartbeat_ms: 0 };
    peer.say(&Frame::Connect { seq: 1, connect });
    peer.hear(|frame| match frame {
        Frame::Config { config, .. } => assert_eq!(config.heartbeat_ms, 1_000),
        other => panic!("expected CONFIG: {other:?}"),
    });
    assert_eq!(peer.closed_with(), Code::PeerSilent);
    let _worker = broker.worker(&["q", "--echo"]);
    assert_eq!(broker.run(&["request", "q", "x"]).expect(0).text(), "x", "a worker beats as it is told");
}

/// `drain.timeout`: what still runs then is cut, and the broker says how much.
#[test]
fn a_running_broker_obeys_its_drain_timeout() {
    let mut broker = broker_of("[drain]\ntimeout = \"200ms\"\n");
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "peer");
    let _asked = broker.start_turno(&["request", "q", "x", "--timeout", "1m"]);
    worker.delivery();
    let begun = Instant::now();
    assert_eq!(broker.terminate(wait::PATIENCE), 0);
    assert!(begun.elapsed() < Duration::from_secs(30), "that is the default");
    broker.process().expect_line("1 delivery was cut short");
}

/// Proves S2.35: a request that was being worked on when its broker ended is not given to another one; its caller
/// hears of it at once.
#[test]
fn a_request_that_was_cut_short_ends_its_caller() {
    let mut broker = broker_of("[drain]\ntimeout = \"100ms\"\n");
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "peer");
    let mut asked = broker.start_turno(&["request", "q", "x", "--timeout", "1m"]);
    worker.delivery();
    assert_eq!(broker.terminate(wait::PATIENCE), 0);
    let code = asked.end(wait::PATIENCE);
    assert!(code == 1 || code == 5, "it ended with {code}: {:?}", asked.stderr());
}

/// Other limits and defaults reach the broker too.
#[test]
fn a_running_broker_obeys_its_other_keys() {
    let broker = broker_of("[limits]\nmemory = \"1MiB\"\n[queue.defaults]\npolicy = \"fill\"\n");
    assert_eq!(broker.status()["bytes_max"], 1 << 20);
    let large = vec![b'x'; 600_000];
    broker.place.run_with_input(["send", "a", "-"], &large).expect(0);
    let run = broker.place.run_with_input(["send", "a", "-", "--json"], &large).expect(1);
    assert_eq!(run.error_code(), "over_memory");
    let _first = broker.worker(&["f", "--echo", "--name", "first"]);
    let _second = broker.worker(&["f", "--echo", "--name", "second"]);
    broker.run(&["request", "f", "x", "--count", "6", "--parallel", "1"]).expect(0);
    let workers = broker.run(&["worker", "ls", "--json"]).expect(0).document("turno.worker_list/1");
    assert_eq!(workers["workers"][1]["deliveries"], 0, "fill keeps the late-comer idle: {workers}");
}

/// `limits.queues`: one more is refused, and the caller hears why.
#[test]
fn a_running_broker_obeys_the_limit_of_queues() {
    let broker = broker_of("[limits]\nqueues = 2\n");
    for queue in ["a", "b"] {
        broker.run(&["send", queue, "x"]).expect(0);
    }
    for words in [["send", "c", "x"], ["request", "c", "x"]] {
        let run = broker.run(&[&words[..], &["--json"]].concat()).expect(1);
        assert_eq!(run.error_code(), "too_many_queues", "{words:?}: {}", run.text());
    }
    broker.run(&["send", "a", "x"]).expect(0);
}

/// A level that is none is a mistake of the configuration, not silence.
#[test]
fn a_log_level_that_is_none_is_refused() {
    let place = Place::new();
    for words in [&["serve", "--listen", "127.0.0.1:0"][..], &["status"], &["work", "q", "--echo"]] {
        let run = with(&place, &[("TURNO_LOG", "q=w=e")], words).expect(78);
        assert!(run.stderr.contains("code: bad_config") && run.stderr.contains("TURNO_LOG"), "{}", run.stderr);
    }
    let file = place.file("turno.toml", "[log]\nlevel = \"q=w=e\"\n").display().to_string();
    let run = place.run(["serve", "--listen", "127.0.0.1:0", "--config", &file]).expect(78);
    assert!(run.stderr.contains("turno.toml:2: log.level"), "{}", run.stderr);
}
