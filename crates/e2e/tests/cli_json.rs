//! What programs read: exactly one document, of a published schema, in success and in failure.

use std::collections::BTreeSet;
use std::io::{Write as _, pipe};

use rustix::process::Signal;
use serde_json::Value;
use turno_e2e::{Background, Broker, Peer, Place, Run, schema, wait};
use turno_proto::model::{Again, Slots};
use turno_proto::native::{Frame, Raw};

const ID: &str = "5f3a9c0d21e4000000000001c0000007";

/// Runs a command that must succeed with one document on stdout and no error on stderr; returns its schema.
#[track_caller]
fn succeeds(broker: &Broker, words: &[&str], schema: &str) -> Value {
    let run = broker.run(&[words, &["--json"]].concat()).expect(0);
    assert_eq!(run.text().lines().count(), 1, "{words:?}: {}", run.text());
    let quiet = broker.run(&[words, &["-o", "json", "-q"]].concat());
    assert_eq!((quiet.code, quiet.stderr.as_str()), (0, ""), "{words:?} with -q");
    run.document(schema)
}

/// Every leaf that ends by itself, on a broker with a worker `w` of `q` and a message that waits in `waiting`.
#[test]
fn every_leaf_prints_one_document_of_its_schema() {
    let broker = Broker::start();
    let _worker = broker.worker(&["q", "--echo", "--name", "w"]);
    let stored = succeeds(&broker, &["send", "waiting", "x"], "turno.stored/1");
    let id = stored["id"].as_str().expect("an id");
    let pages = broker.place.path().join("pages");
    std::fs::create_dir(&pages).expect("our own directory");
    let table: [(&[&str], &str); 36] = [
        (&["request", "q", "x"], "turno.reply/1"),
        (&["request", "q", "x", "--stream"], "turno.stream/1"),
        (&["request", "q", "x", "--count", "3"], "turno.reply_list/1"),
        (&["send", "waiting", "--lines"], "turno.stored_list/1"),
        (&["broadcast", "q", "x"], "turno.broadcast/1"),
        (&["pub", "t", "x"], "turno.published/1"),
        (&["topic", "ls"], "turno.topic_list/1"),
        (&["topic", "subscribers"], "turno.subscriber_list/1"),
        (&["topic", "create", "shop", "t"], "turno.subscriber/1"),
        (&["status"], "turno.status/1"),
        (&["drain"], "turno.status/1"),
        (&["resume"], "turno.status/1"),
        (&["queue", "ls"], "turno.queue_list/1"),
        (&["queue", "show", "waiting"], "turno.queue/1"),
        (&["queue", "consumers", "q"], "turno.consumer_list/1"),
        (&["queue", "set", "set", "--volatile"], "turno.queue/1"),
        (&["queue", "purge", "set", "--yes"], "turno.purged/1"),
        (&["queue", "dead", "ls", "waiting"], "turno.dead_list/1"),
        (&["queue", "dead", "retry", "waiting", "--all"], "turno.retried/1"),
        (&["worker", "ls"], "turno.worker_list/1"),
        (&["worker", "show", "w"], "turno.worker/1"),
        (&["worker", "resize", "w", "3"], "turno.worker/1"),
        (&["worker", "drain", "w"], "turno.worker/1"),
        (&["worker", "resume", "w"], "turno.worker/1"),
        (&["message", "explain", id], "turno.explanation/1"),
        (&["message", "trace", id], "turno.trace/1"),
        (&["link", "ls"], "turno.link_list/1"),
        (&["link", "graph"], "turno.link_graph/1"),
        (&["config", "show"], "turno.config/1"),
        (&["config", "check"], "turno.config_check/1"),
        (&["doctor"], "turno.doctor/1"),
        (&["explain"], "turno.code_list/1"),
        (&["explain", "failed"], "turno.code/1"),
        (&["bench", "request", "--count", "20"], "turno.bench/1"),
        (&["bench", "send", "--count", "20"], "turno.bench/1"),
        (&["version"], "turno.version/1"),
    ];
    for (words, schema) in table {
        succeeds(&broker, words, schema);
    }
    for body in ["1", "2"] {
        broker.run(&["pub", "t", body, "--confirm"]).expect(0);
    }
    succeeds(&broker, &["topic", "recv", "shop", "-n", "1"], "turno.event_list/1");
    broker.run(&["topic", "destroy", "shop", "--json"]).expect(0).document("turno.subscriber/1");
    succeeds(&broker, &["completions", "zsh"], "turno.text/1");
    succeeds(&broker, &["man", "queue", "ls"], "turno.text/1");
    succeeds(&broker, &["man", &pages.display().to_string()], "turno.files/1");
    broker.run(&["message", "cancel", id, "--yes", "--json"]).expect(0).document("turno.cancelled/1");
    broker.run(&["worker", "stop", "w", "--json"]).expect(0).document("turno.worker/1");
}

/// The two that go on print one line when they are ready, and not a word more until they end.
#[test]
fn those_that_go_on_print_one_document_when_ready() {
    let mut broker = Broker::start();
    schema::check(broker.ready());
    let mut worker = broker.worker(&["q", "--echo", "--json"]);
    broker.run(&["request", "q", "x"]).expect(0);
    worker.signal(Signal::TERM);
    assert_eq!(worker.end(wait::PATIENCE), 0);
    assert_eq!(broker.terminate(wait::PATIENCE), 0);
    let lines = |process: &Background| process.stdout().iter().map(|line| schema::document(line)).collect::<Vec<_>>();
    let printed = lines(&worker);
    assert_eq!(printed.len(), 1, "{printed:?}");
    assert_eq!((&printed[0]["schema"], &printed[0]["slots"]), (&"turno.registered/1".into(), &10.into()));
    let printed = lines(broker.process());
    assert_eq!(printed.len(), 1, "{printed:?}");
    assert_eq!(printed[0]["schema"], "turno.ready/1");
}

/// Where many things are listed, `jsonl` prints one a line, each with its schema.
#[test]
fn lists_have_a_document_a_line() {
    let broker = Broker::start();
    let _worker = broker.worker(&["a", "b", "--echo", "--name", "w"]);
    let table: [(&[&str], &str, usize); 6] = [
        (&["queue", "ls"], "turno.queue_row/1", 2),
        (&["queue", "consumers", "a"], "turno.consumer_row/1", 1),
        (&["worker", "ls"], "turno.worker_row/1", 1),
        (&["config", "show"], "turno.setting_row/1", 18),
        (&["explain"], "turno.code_row/1", 40),
        (&["request", "a", "x", "--count", "3"], "turno.answer/1", 3),
    ];
    for (words, schema, least) in table {
        let documents = broker.run(&[words, &["-o", "jsonl"]].concat()).expect(0).documents();
        assert!(documents.len() >= least, "{words:?}: {documents:?}");
        assert!(documents.iter().all(|document| document["schema"] == schema), "{words:?}: {documents:?}");
    }
    for leaf in [&["queue", "ls"][..], &["worker", "ls"]] {
        let empty = Broker::start();
        let run = empty.run(&[leaf, &["-o", "jsonl"]].concat()).expect(0);
        assert_eq!(run.text(), "", "an empty list has no line");
        assert!(run.stderr.starts_with("hint: "), "{leaf:?} says what to do next: {}", run.stderr);
        let quiet = empty.run(&[leaf, &["--json", "--quiet"]].concat()).expect(0);
        assert_eq!(quiet.stderr, "", "{leaf:?}");
    }
}

/// A failure is one document too, whichever command it ends.
#[test]
fn failures_are_one_document_of_the_error_schema() {
    let broker = Broker::start();
    let table: [(&[&str], i32, &str); 30] = [
        (&["request", "q", "x", "--fail-fast"], 6, "no_responder"),
        (&["request", "q", "x", "--timeout", wait::SHORT], 124, "timed_out"),
        (&["request", "q", "x", "--timeout", wait::SHORT, "--stream"], 124, "timed_out"),
        (&["request", "a b", "x"], 2, "bad_name"),
        (&["send", "a b", "x"], 2, "bad_name"),
        (&["queue", "show", "none"], 4, "not_found"),
        (&["queue", "consumers", "none"], 4, "not_found"),
        (&["queue", "set", "none", "--default"], 4, "not_found"),
        (&["queue", "purge", "none", "--yes"], 4, "not_found"),
        (&["queue", "dead", "ls", "none"], 4, "not_found"),
        (&["queue", "dead", "show", "none", ID], 4, "not_found"),
        (&["queue", "dead", "retry", "none", ID], 4, "not_found"),
        (&["queue", "dead", "purge", "none", "--all", "--yes"], 4, "not_found"),
        (&["worker", "show", "none"], 4, "not_found"),
        (&["worker", "resize", "none", "1"], 4, "not_found"),
        (&["worker", "drain", "none"], 4, "not_found"),
        (&["worker", "resume", "none"], 4, "not_found"),
        (&["worker", "stop", "none"], 4, "not_found"),
        (&["message", "explain", ID], 4, "not_found"),
        (&["message", "cancel", ID, "--yes"], 4, "not_found"),
        (&["ring", "show"], 1, "not_in_ring"),
        (&["ring", "leave"], 1, "not_in_ring"),
        (&["ring", "join", "3@localhost"], 1, "not_in_ring"),
        (&["ring", "join", "localhost"], 2, "bad_usage"),
        (&["ring", "shutdown", "--yes"], 1, "not_in_ring"),
        (&["explain", "none"], 4, "not_found"),
        (&["man", "none"], 4, "not_found"),
        (&["work", "q", "--", "no-such-program"], 1, "cannot_start"),
        (&["bench", "request", "a b"], 2, "bad_name"),
        (&["bench", "send", "--body", "1GiB"], 1, "frame_too_large"),
    ];
    for (words, exit, code) in table {
        for format in ["json", "jsonl"] {
            let run = broker.run(&[&["-o", format], words].concat()).expect(exit);
            assert_eq!(run.error_code(), code, "{words:?}");
            assert_eq!(run.stderr, "", "{words:?}: the error is on stdout, and only there");
        }
    }
    for words in [&["config", "show"][..], &["config", "check"], &["serve"], &["status"]] {
        let run = broker.run(&[words, &["--config", "none.toml", "--json", "-q"]].concat()).expect(78);
        assert_eq!(run.error_code(), "bad_config", "{words:?}");
    }
}

/// Many requests of which some fail are one document; it says which, and the exit code says so.
#[test]
fn partly_done_is_one_document_with_every_answer() {
    let broker = Broker::start();
    let program = broker.place.script("once", "mkdir once.d 2>/dev/null && { echo no luck >&2; exit 9; }; cat");
    let _worker = broker.worker(&["q", "--", &program.display().to_string()]);
    let run = broker.run(&["request", "q", "x", "--count", "4", "--parallel", "1", "--json"]).expect(3);
    let document = run.document("turno.reply_list/1");
    assert_eq!((&document["sent"], &document["answered"], &document["failed"]), (&4.into(), &3.into(), &1.into()));
    let replies = document["replies"].as_array().expect("a list");
    assert_eq!(replies[0]["error"]["code"], "failed");
    assert!(replies[0]["error"]["why"].as_str().is_some() && replies[0].get("reply").is_none());
    assert_eq!((&replies[3]["number"], &replies[3]["reply"]["body"]), (&4.into(), &"x".into()));
    std::fs::remove_dir(broker.place.path().join("once.d")).expect("the program made it");
    let run = broker.run(&["request", "q", "x", "--count", "3", "--parallel", "1", "-o", "jsonl"]).expect(3);
    let answers = run.documents();
    assert_eq!((answers.len(), &answers[0]["error"]["code"]), (3, &"failed".into()), "{answers:?}");
    assert_eq!((&answers[2]["number"], &answers[2]["reply"]["body"]), (&3.into(), &"x".into()));
}

/// A stream that breaks off in the middle is one document too: the error.
#[test]
fn a_stream_that_breaks_off_is_an_error() {
    let broker = Broker::start();
    for (format, lines) in [("json", 1), ("jsonl", 2), ("text", 1)] {
        let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "peer");
        let mut asked = broker.start_turno(&["request", "q", "x", "--stream", "-o", format, "--timeout", "1m"]);
        let (delivery, ..) = worker.delivery();
        let raw = Raw { headers: false, bytes: b"piece" };
        worker.say(&Frame::Reply { seq: delivery.stamp, word: delivery.index, more: true, raw });
        drop(worker);
        assert_eq!(asked.end(wait::PATIENCE), 1, "{format}");
        wait::until("all is read", || asked.stdout().len() == lines);
        if format == "text" {
            asked.expect_line("code: worker_lost");
        } else {
            let last = schema::document(&asked.stdout()[lines - 1]);
            assert_eq!(last["error"]["code"], "worker_lost", "{format}");
        }
        wait::until("the worker is gone", || broker.workers() == 0);
    }
}

/// Schemas of documents that other tests have printed and checked.
const ELSEWHERE: [&[&str]; 9] = [
    // By those that go on, above.
    &["ready", "registered"],
    // topics_sub.rs and topics_fetch.rs
    &["event", "event_list", "published", "subscriber", "subscriber_list", "subscriber_row", "topic_list", "topic_row"],
    // link_cli.rs
    &["broker_row", "link", "link_graph", "link_list", "link_row", "trace"],
    // zmq_gateway.rs
    &["zmq", "zmq_list", "zmq_row"],
    // ring_cli.rs
    &["ring"],
    // jobs_script.rs and jobs_views.rs
    &["job", "job_list", "job_retry", "job_row", "task_list", "task_row", "report"],
    // jobs_archive.rs
    &["output", "output_row", "result_list", "result_row"],
    // jobs_tasks.rs
    &["task"],
    // jobs_needs.rs, jobs_submit.rs and deploy.rs
    &["job_explain", "submission", "deployed"],
];

/// A document of every published schema, from the real program: none is published that nothing prints.
#[test]
fn every_published_schema_is_printed_by_some_command() {
    let broker = Broker::start();
    let _worker = broker.worker(&["q", "--echo", "--name", "w"]);
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let mut see = |run: Run| {
        for document in run.documents() {
            seen.insert(document["schema"].as_str().expect("checked").to_owned());
        }
    };
    let lists: [&[&str]; 5] =
        [&["queue", "ls"], &["queue", "consumers", "q"], &["worker", "ls"], &["config", "show"], &["explain"]];
    for (words, format) in lists.into_iter().flat_map(|words| [(words, "json"), (words, "jsonl")]) {
        see(broker.run(&[words, &["-o", format]].concat()).expect(0));
    }
    let pages = broker.place.path().display().to_string();
    let ones: [&[&str]; 12] = [
        &["request", "q", "x"],
        &["request", "q", "x", "--stream"],
        &["request", "q", "x", "--count", "2"],
        &["broadcast", "q", "x"],
        &["queue", "show", "q"],
        &["worker", "show", "w"],
        &["status"],
        &["explain", "io"],
        &["config", "check"],
        &["doctor"],
        &["bench", "request", "q", "--count", "3"],
        &["version"],
    ];
    for words in ones {
        see(broker.run(&[words, &["--json"]].concat()).expect(0));
    }
    see(broker.run(&["request", "q", "x", "--stream", "-o", "jsonl"]).expect(0));
    see(broker.run(&["request", "q", "x", "--count", "2", "-o", "jsonl"]).expect(0));
    see(broker.run(&["broadcast", "q", "x", "-o", "jsonl"]).expect(0));
    see(broker.run(&["completions", "fish", "--json"]).expect(0));
    see(broker.run(&["submit", "--json", "--dry-run", "--", "true"]).expect(0));
    see(broker.run(&["man", &pages, "--json"]).expect(0));
    see(broker.run(&["queue", "show", "none", "--json"]).expect(4));
    for format in ["json", "jsonl"] {
        see(broker.place.run_with_input(["send", "waiting", "--lines", "-o", format], b"a\nb\n").expect(0));
    }
    let stored = broker.run(&["send", "waiting", "x", "--json"]).expect(0);
    let id = stored.json()["id"].as_str().expect("an id").to_owned();
    see(stored);
    see(broker.run(&["message", "explain", &id, "--json"]).expect(0));
    see(broker.run(&["message", "retry", &id, "--json"]).expect(0));
    see(broker.run(&["message", "cancel", &id, "--yes", "--json"]).expect(0));
    for format in ["json", "jsonl"] {
        see(broker.run(&["message", "cancel", &id, &id, "--yes", "-o", format]).expect(4));
    }
    let mut undertaker = Peer::worker(broker.address(), "grave", Slots::Limited(1), "undertaker");
    let sent = broker.run(&["send", "grave", "x", "-o", "name"]).expect(0).text();
    let (delivery, ..) = undertaker.delivery();
    undertaker.say(&Frame::Fail { delivery, again: Again::Never, raw: Raw { headers: false, bytes: b"no" } });
    wait::until("it is dead", || broker.queue("grave")["dead"] == 1);
    for format in ["json", "jsonl"] {
        see(broker.run(&["queue", "dead", "ls", "grave", "-o", format]).expect(0));
    }
    see(broker.run(&["queue", "dead", "show", "grave", sent.trim(), "--json"]).expect(0));
    see(broker.run(&["queue", "dead", "retry", "grave", sent.trim(), "--json"]).expect(0));
    see(broker.run(&["queue", "purge", "grave", "--yes", "--json"]).expect(0));
    seen.extend(ELSEWHERE.into_iter().flatten().map(|name| format!("turno.{name}/1")));
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), schema::published());
}

/// A streamed reply is one document with its pieces, or a piece a line as they come.
#[test]
fn pieces_of_a_stream_come_in_order_and_at_once() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "peer");
    let mut asked = broker.start_turno(&["request", "q", "x", "--stream", "-o", "jsonl", "--timeout", "1m"]);
    let (delivery, ..) = worker.delivery();
    for (number, body) in [(1, "one"), (2, ""), (3, "three")] {
        let raw = Raw { headers: false, bytes: body.as_bytes() };
        worker.say(&Frame::Reply { seq: delivery.stamp, word: delivery.index, more: number < 3, raw });
        wait::until("the piece is printed before the next is sent", || asked.stdout().len() == number);
        let piece = schema::document(&asked.stdout()[number - 1]);
        assert_eq!((&piece["schema"], &piece["piece"]), (&"turno.piece/1".into(), &number.into()));
        assert_eq!(piece["reply"]["body"], body);
    }
    assert_eq!(asked.end(wait::PATIENCE), 0);
}

/// Times are RFC 3339 in UTC, durations seconds, ids text, counts numbers.
#[test]
fn values_have_the_promised_types() {
    let broker = Broker::start();
    let _worker = broker.worker(&["q", "--echo", "--name", "w"]);
    let stored = broker.run(&["send", "waiting", "x", "--ttl", "1h", "--json"]).expect(0).document("turno.stored/1");
    let id = stored["id"].as_str().expect("an id is text");
    assert_eq!((id.len(), &stored["durability"]), (32, &"disk".into()));
    for style in ["relative", "local", "utc", "unix"] {
        let run = broker.run(&["message", "explain", id, "--json", "--time", style]).expect(0);
        let message = run.document("turno.explanation/1")["message"].take();
        for key in ["received_at", "deadline_at"] {
            let text = message[key].as_str().expect("a moment is text");
            assert!(text.len() == 24 && text.ends_with('Z') && text.as_bytes()[10] == b'T', "{style}: {text}");
        }
        assert!(message["age_seconds"].is_f64() && message["attempts"].is_u64());
    }
    let worker = broker.run(&["worker", "show", "w", "--json"]).expect(0).document("turno.worker/1")["worker"].take();
    assert!(worker["id"].is_string() && worker["free"] == 10 && worker["last_used_at"].is_null(), "{worker}");
    let settings = broker.run(&["config", "show", "--json"]).expect(0).document("turno.config/1");
    let value = |name: &str| {
        let rows = settings["settings"].as_array().expect("a list");
        rows.iter().find(|row| row["key"] == name).expect("the key")["value"].clone()
    };
    assert_eq!((value("heartbeat"), value("limits.message")), (5.0.into(), (16 << 20).into()));
}

/// `send --lines -o jsonl` answers each line as it is stored, in order, while the input is still open.
#[test]
fn lines_are_answered_while_the_input_is_open() {
    let broker = Broker::start();
    let (reader, mut writer) = pipe().expect("a pipe");
    let mut command = broker.turno(&["send", "q", "--lines", "-o", "jsonl"]);
    command.stdin(reader);
    let mut sending = Background::start(command);
    for number in 1..=3 {
        writeln!(writer, "line {number}").expect("the command reads");
        wait::until("the line is answered before the next comes", || sending.stdout().len() == number);
        let line = schema::document(&sending.stdout()[number - 1]);
        assert_eq!((&line["schema"], &line["line"]), (&"turno.stored_line/1".into(), &number.into()));
        assert_eq!(line["durability"], "disk");
        assert_eq!(broker.queue("q")["ready"], number);
    }
    drop(writer);
    assert_eq!(sending.end(wait::PATIENCE), 0);
    assert_eq!(sending.stdout().len(), 3);
}

/// Warnings and log lines never get among the data.
#[test]
fn stdout_stays_one_document_with_warnings_and_logs() {
    let broker = Broker::start();
    let mut command = broker.turno(&["status", "--json", "-vvv", "--color", "always"]);
    command.env("TURNO_LOG", "trace").env("CLICOLOR_FORCE", "1");
    let run = Run::finish(command, b"", wait::PATIENCE).expect(0);
    run.document("turno.status/1");
    let place = Place::new();
    let file = place.file("bad.toml", "nam = 1\nheartbeat = \"soon\"\n");
    let run = place.run(["config", "check", &file.display().to_string(), "--json", "-vvv"]).expect(78);
    assert_eq!(run.error_code(), "bad_config");
}
