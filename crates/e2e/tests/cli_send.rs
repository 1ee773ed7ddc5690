//! `turno send`, and what becomes of a message: explained, cancelled, delivered in order.

use std::fs;

use turno_e2e::{Broker, Peer, wait};
use turno_proto::model::Slots;
use turno_proto::native::Frame;

/// A send prints its id and how safe it is, and returns when the broker has it.
#[test]
fn a_send_prints_its_id_and_its_durability() {
    let broker = Broker::start();
    let run = broker.run(&["send", "q", "hello"]).expect(0);
    let text = run.text();
    let (id, durability) = text.trim_end().split_once(' ').expect("id and durability");
    assert_eq!((id.len(), durability, run.stderr.as_str()), (32, "disk", ""));
    assert!(id.chars().all(|c| c.is_ascii_hexdigit()), "{id}");
    let queue = broker.queue("q");
    assert_eq!(
        (&queue["ready"], &queue["head"][0]["id"], &queue["head"][0]["kind"]),
        (&1.into(), &id.into(), &"send".into())
    );
}

/// Proves S1.34: bodies of every kind are stored and delivered byte for byte.
#[test]
fn bodies_are_delivered_byte_for_byte() {
    let broker = Broker::start();
    let binary: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    broker.run(&["send", "q", "typed"]).expect(0);
    broker.run(&["send", "q"]).expect(0);
    broker.place.run_with_input(["send", "q", "-"], &binary).expect(0);
    broker.place.run_with_input(["send", "q"], b"piped\n").expect(0);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Unlimited, "peer");
    for expected in [b"typed", &b""[..], &binary, b"piped\n"] {
        let (delivery, body, attempt) = worker.delivery();
        assert!(body == expected && attempt == 1);
        worker.say(&Frame::Ack { delivery });
    }
    wait::until("all are settled", || broker.queue("q")["counters"]["acked"] == 4);
}

/// Proves S0.28: first in, first out. Each line is a message, without its end, empty ones too.
#[test]
fn a_thousand_lines_arrive_in_order() {
    let broker = Broker::start();
    let lines: Vec<String> =
        (0..1_000).map(|n| if n % 100 == 7 { String::new() } else { format!("line {n}\r") }).collect();
    let input = lines.join("\n");
    let run = broker.place.run_with_input(["send", "q", "--lines"], input.as_bytes()).expect(0);
    assert_eq!((run.text().lines().count(), run.stderr.as_str()), (1_000, "1000 stored\n"));
    let mut worker = Peer::worker(broker.address(), "q", Slots::Unlimited, "peer");
    for line in &lines {
        assert_eq!(String::from_utf8_lossy(&worker.delivery().1), *line);
    }
    let run = broker.run(&["send", "none", "--lines"]).expect(0);
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", "0 stored\n"));
}

/// The answers of many lines are in order in every format.
#[test]
fn the_answers_of_many_lines_are_in_order() {
    let broker = Broker::start();
    let input = "x\n".repeat(300);
    let run = broker.place.run_with_input(["send", "q", "--lines", "-o", "jsonl"], input.as_bytes()).expect(0);
    let documents = run.documents();
    let numbers: Vec<u64> = documents.iter().filter_map(|line| line["line"].as_u64()).collect();
    assert_eq!(numbers, (1..=300).collect::<Vec<u64>>());
    let head = broker.queue("q")["head"].take();
    for (place, message) in head.as_array().expect("a list").iter().enumerate() {
        assert_eq!(message["id"], documents[place]["id"], "the ids are those of the messages, in order");
    }
    let run = broker.place.run_with_input(["send", "q", "--lines", "--json"], b"a\nb\n").expect(0);
    let document = run.document("turno.stored_list/1");
    assert_eq!(
        (&document["stored"], &document["failed"], &document["messages"][1]["line"]),
        (&2.into(), &0.into(), &2.into())
    );
}

/// A higher priority goes first; equals keep their order.
#[test]
fn priorities_go_before_age() {
    let broker = Broker::start();
    for (body, priority) in [("a", "4"), ("b", "0"), ("c", "9"), ("d", "4"), ("e", "9")] {
        broker.run(&["send", "q", body, "--priority", priority]).expect(0);
    }
    broker.run(&["send", "q", "f"]).expect(0);
    let program = broker.place.script("note", "cat >> order");
    let _worker = broker.worker(&["q", "--slots", "1", "--", &program.display().to_string()]);
    wait::until("all are done", || broker.queue("q")["counters"]["acked"] == 6);
    let order = fs::read_to_string(broker.place.path().join("order")).expect("the program wrote it");
    assert_eq!(order, "ceadfb");
}

/// A message that waits is explained: why, and how long it may.
#[test]
fn a_waiting_message_is_explained() {
    let broker = Broker::start();
    let send = |more: &[&str]| {
        let words = [&["send", "q", "x", "-o", "name"], more].concat();
        broker.run(&words).expect(0).text().trim().to_owned()
    };
    let reason = |id: &str| {
        let run = broker.run(&["message", "explain", id, "--json"]).expect(0);
        run.document("turno.explanation/1")["because"].take()
    };
    let first = send(&["--ttl", "1h"]);
    assert_eq!(reason(&first)["reason"], "no_worker");
    let text = broker.run(&["message", "explain", &first]).expect(0).text();
    assert!(text.contains("no worker consumes the queue") && text.contains("deadline"), "{text}");
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "peer");
    let (delivery, ..) = worker.delivery();
    let second = send(&[]);
    let third = send(&[]);
    assert_eq!((&reason(&first)["reason"], &reason(&first)["details"]["name"]), (&"at_worker".into(), &"peer".into()));
    let busy = reason(&third);
    assert_eq!((&busy["reason"], &busy["details"]["ahead"]), (&"all_busy".into(), &1.into()), "{busy}");
    broker.run(&["worker", "drain", "peer", "--timeout", wait::SHORT]).expect(124);
    assert_eq!(reason(&second)["reason"], "workers_draining");
    worker.say(&Frame::Ack { delivery });
    wait::until("the first is settled and gone", || broker.run(&["message", "explain", &first]).code == 4);
}

/// A cancelled message is gone when the command returns; its id is nobody's then.
#[test]
fn a_cancelled_message_is_gone() {
    let broker = Broker::start();
    let id = broker.run(&["send", "q", "x", "-o", "name"]).expect(0).text().trim().to_owned();
    let run = broker.run(&["message", "cancel", &id, "--yes"]).expect(0);
    assert_eq!(run.text(), format!("cancelled {id} of queue q (was ready)\n"));
    for verb in ["explain", "cancel"] {
        let run = broker.run(&["message", verb, &id, "--yes"]).expect(4);
        assert!(run.stderr.contains(&format!("error: message {id} does not exist")), "{}", run.stderr);
    }
    let status = broker.status();
    assert_eq!((&status["ready"], &status["counters"]["cancelled"]), (&0.into(), &1.into()));
}

/// A waiting request that is cancelled ends its caller, with the reason.
#[test]
fn a_cancelled_request_ends_its_caller() {
    let broker = Broker::start();
    let mut asked = broker.start_turno(&["request", "q", "x", "--timeout", "1m"]);
    wait::until("the request waits", || broker.queue("q")["ready"] == 1);
    let id = broker.queue("q")["head"][0]["id"].as_str().expect("an id").to_owned();
    broker.run(&["message", "cancel", &id, "-y"]).expect(0);
    assert_eq!(asked.end(wait::PATIENCE), 1);
    asked.expect_line("code: cancelled");
}

/// A message that is not worth delivering any more is not delivered.
#[test]
fn a_message_past_its_time_is_not_delivered() {
    let broker = Broker::start();
    broker.run(&["send", "q", "old", "--ttl", "50ms"]).expect(0);
    wait::until("it expires", || broker.status()["counters"]["expired"] == 1);
    broker.run(&["send", "q", "new"]).expect(0);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Unlimited, "peer");
    assert_eq!(worker.delivery().1, b"new");
}

/// Proves S2.42, S2.43 and S2.44: a delayed message is counted and explained, waits on after a crash, and goes on when it is told to.
#[test]
fn a_delayed_message_goes_on_when_it_is_told_to() {
    let mut broker = Broker::start();
    let id = broker.run(&["send", "q", "later", "--delay", "1h", "-o", "name"]).expect(0).text();
    let id = id.trim();
    broker.kill();
    let broker = Broker::start_in(broker.into_place(), &[]);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let queue = broker.queue("q");
    assert_eq!((&queue["delayed"], &queue["ready"], &queue["in_flight"]), (&1.into(), &0.into(), &0.into()), "{queue}");
    let explained = broker.run(&["message", "explain", id, "--json"]).expect(0).document("turno.explanation/1");
    assert_eq!(
        (&explained["message"]["state"], &explained["because"]["reason"]),
        (&"delayed".into(), &"delayed".into())
    );
    let retry = || broker.run(&["message", "retry", id]).expect(0).text();
    assert_eq!(retry(), format!("retried {id} of queue q (was delayed)\n"));
    let (delivery, body, attempt) = worker.delivery();
    assert_eq!((body.as_slice(), attempt), (&b"later"[..], 1));
    assert_eq!(retry(), format!("message {id} of queue q is in_flight: it waits for no time\n"));
    worker.ack(delivery);
    wait::until("it is settled", || broker.queue("q")["counters"]["acked"] == 1);
}

/// Proves S2.42: a time that is past is no delay; one that is too far is refused, and so are two times.
#[test]
fn a_message_is_sent_for_a_time() {
    let broker = Broker::start();
    broker.run(&["send", "q", "now", "--at", "2020-01-01T00:00:00Z"]).expect(0);
    assert_eq!(broker.queue("q")["ready"], 1);
    let table: [&[&str]; 4] = [
        &["--delay", "367d"],
        &["--delay", "-1s"],
        &["--at", "2999-01-01T00:00:00Z"],
        &["--at", "2020-01-01T00:00:00Z", "--delay", "1s"],
    ];
    for flags in table {
        broker.run(&[&["send", "q", "x"], flags].concat()).expect(2);
    }
    let queue = broker.queue("q");
    assert_eq!((&queue["ready"], &queue["delayed"]), (&1.into(), &0.into()), "nothing was sent");
}
