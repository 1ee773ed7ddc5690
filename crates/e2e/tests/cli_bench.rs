//! `turno bench`: what it counts adds up, and what it measures is what happened.

use rustix::process::Signal;
use serde_json::{Value, json};
use turno_e2e::{Broker, Peer, Place, schema, wait};
use turno_proto::model::Slots;

fn number(document: &Value, path: &str) -> f64 {
    document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} in {document}"))
}

fn count(document: &Value, path: &str) -> u64 {
    document.pointer(path).and_then(Value::as_u64).unwrap_or_else(|| panic!("{path} in {document}"))
}

/// What holds for every load: nothing is counted twice or not at all.
#[track_caller]
fn adds_up(document: &Value) {
    schema::check(document);
    let [sent, answered, failed] = ["/sent", "/answered", "/failed"].map(|path| count(document, path));
    assert_eq!(sent, answered + failed, "{document}");
    let errors = document["errors"].as_object().expect("errors by code");
    assert_eq!(errors.values().filter_map(Value::as_u64).sum::<u64>(), failed, "{document}");
    if answered == 0 {
        assert!(document["latency"].is_null(), "{document}");
        return;
    }
    let bars = document["latency"]["histogram"].as_array().expect("a histogram");
    assert_eq!(bars.iter().map(|bar| count(bar, "/count")).sum::<u64>(), answered, "{document}");
    assert!(bars.is_sorted_by(|one, next| number(one, "/up_to_seconds") < number(next, "/up_to_seconds")));
    let rising =
        ["min", "p50", "p90", "p99", "p999", "max"].map(|name| number(document, &format!("/latency/{name}_seconds")));
    assert!(rising.is_sorted() && rising[0] > 0.0, "{document}");
    let rate = number(document, "/rate");
    assert!((rate * number(document, "/seconds") / answered as f64 - 1.0).abs() < 0.01, "{document}");
}

/// The broker counts the same as the load does, for requests and for sends.
#[test]
fn a_load_adds_up_and_the_broker_agrees() {
    let broker = Broker::start();
    let load = ["--count", "500", "--clients", "3", "--parallel", "4", "--workers", "2", "--slots", "3"];
    for (kind, bodies) in [("request", 2.0), ("send", 1.0)] {
        let words = [&["bench", kind], &load[..], &["--body", "1KiB", "--json"]].concat();
        let run = broker.run(&words).expect(0);
        let document = run.document("turno.bench/1");
        adds_up(&document);
        assert_eq!(run.stderr, "", "no terminal, no progress");
        assert_eq!((&document["kind"], &document["sent"], &document["failed"]), (&json!(kind), &json!(500), &json!(0)));
        assert_eq!((&document["worked"], &document["unsent"]), (&json!(500), &json!(0)));
        let expected =
            json!({ "clients": 3, "parallel": 4, "workers": 2, "slots": 3, "body_bytes": 1024, "rate": null });
        assert_eq!(document["load"], expected);
        let bytes = number(&document, "/body_bytes_per_second") / number(&document, "/rate");
        assert!((bytes - bodies * 1024.0).abs() < 1.0, "{kind}: {bytes} bytes of bodies each");
        let queue = document["queue"].as_str().expect("a name");
        assert!(queue.starts_with("bench-"), "{queue}");
        wait::until("nothing of it is left", || {
            let status = broker.status();
            status["ready"] == 0 && status["in_flight"] == 0 && broker.workers() == 0
        });
    }
    let counters = broker.status()["counters"].take();
    assert_eq!((&counters["replied"], &counters["sends"]), (&json!(500), &json!(500)), "{counters}");
}

/// Without a count it goes on for the time given.
#[test]
fn a_load_lasts_as_long_as_it_is_told() {
    let broker = Broker::start();
    for flag in ["--for", "--duration"] {
        let document = broker.run(&["bench", "request", flag, "300ms", "--json"]).expect(0).document("turno.bench/1");
        adds_up(&document);
        assert!(number(&document, "/seconds") >= 0.3 && count(&document, "/sent") > 10, "{document}");
    }
}

/// People read columns: what was asked, what came of it, and how long it took as a picture.
#[test]
fn people_read_columns_and_a_histogram() {
    let broker = Broker::start();
    let run = broker.run(&["bench", "request", "mine", "--count", "200"]).expect(0);
    let text = run.text();
    let names: Vec<&str> = text.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let facts = ["queue", "load", "answered", "rate", "bodies", "p50", "p90", "p99", "p99.9", "max", "up"];
    assert!(names.starts_with(&facts), "{text}");
    assert!(text.starts_with("queue     mine\n") && text.contains("\nanswered  200 of 200 in "), "{text}");
    let bars: Vec<&str> = text.lines().filter(|line| line.starts_with("up to ")).collect();
    assert!(bars.iter().any(|bar| bar.ends_with(&"#".repeat(40))), "{text}");
    let column = |bar: &&str| bar.rfind(|c: char| c.is_ascii_digit());
    assert!(bars.iter().all(|bar| column(bar) == column(&bars[0]) && bar.len() <= 80), "{text}");
    assert_eq!(run.stderr, "", "no terminal, no progress");
    assert_eq!(broker.run(&["bench", "request", "mine", "--count", "2", "-o", "name"]).expect(0).text(), "mine\n");
}

/// Failures are counted by code; all of them failing is the code's own exit status, some of them 3.
#[test]
fn failures_are_counted_by_code() {
    let broker = Broker::start();
    let _bad = broker.worker(&["bad", "--", "false"]);
    let run = broker.run(&["bench", "request", "bad", "--no-workers", "--count", "12", "--json"]).expect(1);
    let document = run.document("turno.bench/1");
    adds_up(&document);
    assert_eq!((&document["failed"], &document["errors"]), (&json!(12), &json!({ "failed": 12 })));
    assert!(document["worked"].is_null() && document["load"]["workers"] == 0, "{document}");
    assert!(run.stderr.starts_with("first failure: "), "{}", run.stderr);

    let program = broker.place.script("once", "mkdir once.d 2>/dev/null && exit 9; cat");
    let _some = broker.worker(&["some", "--", &program.display().to_string()]);
    let run = broker.run(&["bench", "request", "some", "--no-workers", "--count", "8", "--json"]).expect(3);
    let document = run.document("turno.bench/1");
    adds_up(&document);
    assert_eq!((&document["answered"], &document["errors"]), (&json!(7), &json!({ "failed": 1 })));

    let run = broker.run(&["bench", "request", "nobody", "--no-workers", "--count", "3", "--timeout", wait::SHORT]);
    let run = run.expect(124);
    assert!(run.text().contains("\nfailures  3 timed_out\n") && !run.text().contains("p50"), "{}", run.text());
}

/// With a rate every message has its moment, and all of them are sent.
#[test]
fn a_rate_is_kept() {
    let broker = Broker::start();
    for (words, due) in [(["--for", "500ms"], 100), (["--count", "30"], 30)] {
        let words = [&["bench", "request", "--rate", "200", "--json"], &words[..]].concat();
        let document = broker.run(&words).expect(0).document("turno.bench/1");
        adds_up(&document);
        let (sent, unsent) = (count(&document, "/sent"), count(&document, "/unsent"));
        // A busy machine may have no time for what is due at the very end of a time; a count has no end.
        assert!(sent > 0 && sent + unsent == due && (unsent == 0 || words.contains(&"--for")), "{document}");
        let last_moment = (sent - 1) as f64 / 200.0;
        assert!(number(&document, "/seconds") >= last_moment, "the last is not sent before its time: {document}");
        assert_eq!((&document["load"]["rate"], &document["load"]["parallel"]), (&json!(200), &json!(1000)));
    }
}

/// A slow answer holds up those behind it, and they count as slow: latency begins when a message is due, not when
/// there was room to send it.
#[test]
fn what_waits_for_its_turn_to_be_sent_is_late() {
    let broker = Broker::start();
    let _worker = broker.worker(&["q", "--slots", "1", "--", "sleep", "0.3"]);
    let slow = ["bench", "request", "q", "--no-workers", "--parallel", "1", "--json"];
    let document = broker.run(&[&slow[..], &["--rate", "50", "--count", "5"]].concat()).expect(0);
    let document = document.document("turno.bench/1");
    adds_up(&document);
    // Due after 80 ms, behind four others that take 300 ms each.
    assert!(number(&document, "/latency/max_seconds") >= 5.0 * 0.3 - 0.08, "{document}");
    assert!(number(&document, "/latency/p50_seconds") >= 3.0 * 0.3 - 0.05, "{document}");

    let run = broker.run(&[&slow[..], &["--rate", "100", "--for", "200ms"]].concat()).expect(0);
    let document = run.document("turno.bench/1");
    adds_up(&document);
    assert_eq!(count(&document, "/sent") + count(&document, "/unsent"), 20, "{document}");
    assert!(count(&document, "/unsent") > 0, "{document}");
    assert!(run.stderr.contains("warning: the target rate was not reached: "), "{}", run.stderr);
}

/// `--embedded` needs no broker; without it the usual error names it.
#[test]
fn a_broker_can_be_brought_along() {
    let place = Place::new();
    for kind in ["request", "send"] {
        let run = place.run(["bench", kind, "--embedded", "--count", "50", "--json"]).expect(0);
        adds_up(&run.document("turno.bench/1"));
    }
    let run = place.run(["--url", "unix:/nowhere/turno.sock", "bench", "request"]).expect(5);
    assert!(run.stderr.contains("--embedded") && run.stderr.contains("turno serve"), "{}", run.stderr);
    let run = place.run(["--url", "127.0.0.1:1", "bench", "request", "--embedded"]).expect(2);
    assert!(run.stderr.contains("--embedded and --url conflict"), "{}", run.stderr);
}

/// What makes no sense is refused before anything is asked of a broker.
#[test]
fn nonsense_is_refused() {
    let place = Place::new();
    let table: [&[&str]; 13] = [
        &["--clients", "0"],
        &["--parallel", "none"],
        &["--workers", "0"],
        &["--slots", "-1"],
        &["--body", "large"],
        &["--for", "0"],
        &["--for", "soon"],
        &["--for", "1000000d"],
        &["--for", "1s", "--count", "1"],
        &["--rate", "0"],
        &["--no-workers"],
        &["q", "--no-workers", "--workers", "2"],
        &["--clients", "1000", "--parallel", "1000"],
    ];
    for words in table {
        for kind in ["request", "send"] {
            let run = place.run([&["bench", kind, "--json"], words].concat()).expect(2);
            assert_eq!((run.error_code().as_str(), run.stderr.as_str()), ("bad_usage", ""), "{words:?}");
        }
    }
}

/// Ctrl-C ends a load early; what was measured is printed.
#[test]
fn a_signal_ends_a_load_with_what_was_measured() {
    let broker = Broker::start();
    for (signal, flags) in [(Signal::INT, &[][..]), (Signal::TERM, &["--rate", "500"])] {
        let before = broker.status()["counters"]["replied"].clone();
        let mut load = broker.start_turno(&[&["bench", "request", "--for", "1h", "--json"], flags].concat());
        wait::until("it is under way", || broker.status()["counters"]["replied"] != before);
        load.signal(signal);
        assert_eq!(load.end(wait::PATIENCE), 0, "{:?}", load.stderr());
        let document = schema::document(&load.stdout()[0]);
        adds_up(&document);
        assert!(count(&document, "/answered") > 0 && count(&document, "/unsent") == 0, "{document}");
    }
}

/// A second signal does not wait for answers.
#[test]
fn a_second_signal_ends_at_once() {
    let broker = Broker::start();
    for (queue, signal, exit) in [("a", Signal::INT, 130), ("b", Signal::TERM, 143)] {
        let _silent = Peer::worker(broker.address(), queue, Slots::Unlimited, "silent");
        let words = ["bench", "request", queue, "--no-workers", "--count", "5", "--timeout", "10m", "--json"];
        let mut load = broker.start_turno(&words);
        wait::until("all of them are asked", || broker.queue(queue)["in_flight"] == 5);
        load.signal(signal);
        load.expect_line("waiting for 5 answers; press Ctrl-C again to stop immediately");
        load.signal(signal);
        assert_eq!(load.end(wait::PATIENCE), exit);
        load.expect_line("stopped immediately; 5 unfinished, not counted");
        let document = schema::document(&load.stdout()[0]);
        adds_up(&document);
        assert_eq!(count(&document, "/sent"), 0);
    }
}
