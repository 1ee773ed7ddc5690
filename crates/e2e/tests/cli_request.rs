//! `turno request`: what goes out and what comes back.

use std::fs;

use rustix::process::Signal;
use turno_e2e::{Broker, Peer, wait};
use turno_proto::model::{Code, Slots};
use turno_proto::native::{Frame, Raw};

/// Every byte there is, a few times over, with what ends lines and texts in between.
fn binary() -> Vec<u8> {
    (0..10_000_u32)
        .flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes())
        .chain(*b"\0\r\n\xff\xfe")
        .collect()
}

/// Proves S1.23, S1.34: bodies of every kind arrive and come back byte for byte, nothing added.
#[test]
fn bodies_arrive_byte_for_byte_both_ways() {
    let broker = Broker::start();
    let _echo = broker.worker(&["echo", "--echo"]);
    let _cat = broker.worker(&["cat", "--", "cat"]);
    for queue in ["echo", "cat"] {
        for body in ["hi", "", " two words\n", "-x", "ünï✓"] {
            assert_eq!(broker.run(&["request", queue, "--", body]).expect(0).text(), body, "{queue}");
        }
        for body in [binary(), b"\n".to_vec(), vec![0], vec![b'x'; 3_000_000]] {
            let dash = broker.place.run_with_input(["request", queue, "-"], &body).expect(0);
            assert!(dash.stdout == body, "{queue}: {} bytes by -", body.len());
            let piped = broker.place.run_with_input(["request", queue], &body).expect(0);
            assert!(piped.stdout == body, "{queue}: {} bytes piped", body.len());
        }
        assert_eq!(broker.run(&["request", queue]).expect(0).stdout, b"", "nothing piped, nothing typed: empty");
        let run = broker.place.run_with_input(["request", queue, "typed"], b"piped").expect(0);
        assert_eq!(run.text(), "typed", "what is typed counts");
    }
}

/// Text is text in JSON; other bytes are base64.
#[test]
fn a_reply_in_json_keeps_its_bytes() {
    let broker = Broker::start();
    let _worker = broker.worker(&["q", "--echo"]);
    let table: [(&[u8], &str, &str); 5] = [
        (b"hi", "hi", "utf8"),
        (b"a\"b\\\n\0", "a\"b\\\n\0", "utf8"),
        ("ünï".as_bytes(), "ünï", "utf8"),
        (&[0xff, 0x00, 0xfe], "/wD+", "base64"),
        (&[0xff, 0xee], "/+4=", "base64"),
    ];
    for (body, text, encoding) in table {
        let run = broker.place.run_with_input(["request", "q", "-", "--json"], body).expect(0);
        let reply = run.document("turno.reply/1")["reply"].take();
        assert_eq!((&reply["body"], &reply["encoding"]), (&text.into(), &encoding.into()));
        assert!(reply["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{reply}");
    }
}

/// Headers go out with the message and come back with the reply.
#[test]
fn headers_go_with_the_message() {
    let broker = Broker::start();
    let _worker = broker.worker(&["q", "--echo"]);
    let words = ["request", "q", "x", "-H", "content-type=text/plain", "-H", "a=b=c", "--header", "empty=", "--json"];
    let reply = broker.run(&words).expect(0).document("turno.reply/1")["reply"].take();
    assert_eq!(reply["headers"], serde_json::json!({ "content-type": "text/plain", "a": "b=c", "empty": "" }));
    assert_eq!(reply["body"], "x");
}

/// `--stream` writes the pieces as they come, in order; without it they are one reply.
#[test]
fn pieces_are_written_in_order() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "peer");
    for (flags, lines) in [(&["--stream"][..], true), (&[], false), (&["--stream", "--json"], false)] {
        let words = [&["request", "q", "x", "--timeout", "1m"], flags].concat();
        let mut asked = broker.start_turno(&words);
        let (delivery, ..) = worker.delivery();
        for number in 0..20 {
            let body = format!("{number}\n");
            let raw = Raw { headers: false, bytes: body.as_bytes() };
            worker.say(&Frame::Reply { seq: delivery.stamp, word: delivery.index, more: number < 19, raw });
            if lines {
                wait::until("the piece is out before the next is sent", || asked.stdout().len() == number + 1);
            }
        }
        assert_eq!(asked.end(wait::PATIENCE), 0, "{flags:?}");
        let expected: Vec<String> = (0..20).map(|number| number.to_string()).collect();
        if flags.contains(&"--json") {
            let document = turno_e2e::schema::document(&asked.stdout()[0]);
            let pieces = document["pieces"].as_array().expect("a list");
            let bodies: Vec<String> =
                pieces.iter().map(|piece| piece["body"].as_str().unwrap_or("").trim().into()).collect();
            assert_eq!((asked.stdout().len(), bodies), (1, expected));
        } else {
            assert_eq!(asked.stdout(), expected);
        }
    }
}

/// `--count` asks many times, `--parallel` at a time, and ends with a summary on stderr.
#[test]
fn many_requests_end_with_a_summary() {
    let broker = Broker::start();
    let _worker = broker.worker(&["q", "--echo", "--slots", "unlimited"]);
    let run = broker.run(&["request", "q", "x", "--count", "1_000", "--parallel", "50"]).expect(0);
    assert_eq!(run.text(), "x\n".repeat(1_000));
    assert!(run.stderr.starts_with("1000 sent, 1000 answered, 0 failed in "), "{}", run.stderr);
    let quiet = broker.run(&["request", "q", "x", "--count", "5", "-q"]).expect(0);
    assert_eq!((quiet.text().as_str(), quiet.stderr.as_str()), ("x\nx\nx\nx\nx\n", ""));
    assert_eq!(broker.status()["counters"]["replied"], 1_005);
}

/// No more than `--parallel` are asked at a time.
#[test]
fn no_more_are_asked_than_may_be() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Unlimited, "peer");
    let mut asked = broker.start_turno(&["request", "q", "x", "--count", "5", "--parallel", "2", "--timeout", "1m"]);
    let first = worker.delivery().0;
    let second = worker.delivery().0;
    assert_eq!((&broker.queue("q")["in_flight"], &broker.status()["counters"]["requests"]), (&2.into(), &2.into()));
    worker.reply(first, b"1");
    let third = worker.delivery().0;
    assert_eq!(broker.queue("q")["in_flight"], 2);
    worker.reply(second, b"2");
    worker.reply(third, b"3");
    for body in [b"4", b"5"] {
        let next = worker.delivery().0;
        worker.reply(next, body);
    }
    assert_eq!(asked.end(wait::PATIENCE), 0);
    let mut lines = asked.stdout();
    lines.sort();
    assert_eq!(lines, ["1", "2", "3", "4", "5"]);
}

/// Proves S2.38: a deadline that passes is exit code 124, whether the request waits or runs.
#[test]
fn a_deadline_that_passes_is_124() {
    let broker = Broker::start();
    let run = broker.run(&["request", "waiting", "x", "--timeout", wait::SHORT]).expect(124);
    assert!(run.stderr.contains("code: timed_out"), "{}", run.stderr);
    let mut worker = Peer::worker(broker.address(), "running", Slots::Limited(1), "peer");
    let mut asked = broker.start_turno(&["request", "running", "x", "--timeout", wait::SHORT]);
    worker.delivery();
    assert_eq!(asked.end(wait::PATIENCE), 124);
    assert_eq!(asked.stdout().len(), 0);
}

/// Proves S2.35: N retries are N more deliveries and no more; without any there is one.
#[test]
fn retries_are_as_many_as_were_asked_for() {
    let broker = Broker::start();
    let script = "echo $TURNO_ATTEMPT >> attempts; [ $TURNO_ATTEMPT -ge 3 ] || exit 1; echo done";
    let program = broker.place.script("third", script);
    let _worker = broker.worker(&["q", "--", &program.display().to_string()]);
    let attempts = || fs::read_to_string(broker.place.path().join("attempts")).unwrap_or_default();
    broker.run(&["request", "q", "x"]).expect(1);
    assert_eq!(attempts(), "1\n");
    broker.run(&["request", "q", "x", "--retries", "1"]).expect(1);
    assert_eq!(attempts(), "1\n1\n2\n");
    assert_eq!(broker.run(&["request", "q", "x", "--retries", "2"]).expect(0).text(), "done\n");
    assert_eq!(attempts(), "1\n1\n2\n1\n2\n3\n");
}

/// A request waits for a worker; `--fail-fast` does not. Proves S0.27, S2.39: without a worker it waits in its queue.
#[test]
fn a_request_waits_for_a_worker_unless_told_otherwise() {
    let broker = Broker::start();
    broker.run(&["request", "q", "x", "--fail-fast"]).expect(6);
    let mut asked = broker.start_turno(&["request", "q", "patience", "--timeout", "1m"]);
    wait::until("the request waits", || broker.queue("q")["ready"] == 1);
    let _worker = broker.worker(&["q", "--echo"]);
    assert_eq!(asked.end(wait::PATIENCE), 0);
    assert_eq!(asked.stdout(), ["patience"]);
    assert_eq!(broker.run(&["request", "q", "now", "--fail-fast"]).expect(0).text(), "now");
    assert_eq!(broker.run(&["request", "q", "now", "--fail-fast", "--wait"]).expect(0).text(), "now");
}

/// A cost takes as many slots; one that no worker can ever have is explained.
#[test]
fn a_cost_takes_as_many_slots() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(3), "peer");
    let _heavy = broker.start_turno(&["request", "q", "heavy", "--cost", "2", "--timeout", "1m"]);
    worker.delivery();
    let row = broker.run(&["worker", "show", "peer", "--json"]).expect(0).document("turno.worker/1")["worker"].take();
    assert_eq!((&row["used"], &row["free"]), (&2.into(), &1.into()));
    let id = broker.run(&["send", "q", "giant", "--cost", "4", "-o", "name"]).expect(0).text();
    let explained = broker.run(&["message", "explain", id.trim(), "--json"]).expect(0).document("turno.explanation/1");
    assert_eq!(explained["because"]["reason"], "too_costly", "{explained}");
}

/// Proves S1.35: the worker is told that the caller has gone; the answer it gives all the same is discarded quietly, and
/// nothing of the request is left.
#[test]
fn the_answer_to_a_caller_that_is_gone_is_dropped() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "peer");
    let mut asked = broker.start_turno(&["request", "q", "x", "--timeout", "1m"]);
    let (delivery, ..) = worker.delivery();
    asked.signal(Signal::INT);
    assert_eq!(asked.end(wait::PATIENCE), 130);
    // The worker and this command.
    wait::until("the broker has seen the caller go", || broker.status()["connections"] == 2);
    // Interrupted, it says so before it ends; killed, its connection does.
    let (told, why) = worker.cancelled();
    assert!(told == delivery && matches!(why, Code::Cancelled | Code::CallerGone), "{why}");
    worker.reply(delivery, b"late");
    wait::until("the reply is dropped", || broker.status()["counters"]["late"] == 1);
    let status = broker.status();
    assert_eq!((&status["in_flight"], &status["slots_used"]), (&0.into(), &0.into()), "{status}");
}
