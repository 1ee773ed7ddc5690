//! What finds no free slot waits, in order.

use turno_engine::{Input, Settings};
use turno_proto::model::{Limits, Mono, Slots};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, reply, sent, turn};

/// Proves S0.22, S0.27 and S2.39: a message waits when every worker is full, when none is registered, and when its
/// queue did not even exist; the first consumer finds it.
#[test]
fn what_finds_no_slot_waits() {
    let mut harness = Harness::new();
    let client = harness.client();
    assert_eq!(harness.request(client, ask(1, "new.queue", "a")), [], "nobody is registered");
    assert_eq!(harness.queue("new.queue").ready, 1);
    let (worker, got) = harness.joining(Slots::Limited(1), &["new.queue"]);
    assert_eq!(got, [turn(worker, "a").of("new.queue")]);
    assert_eq!(harness.request(client, ask(2, "new.queue", "b")), [], "everyone is full");
    assert_eq!(harness.queue("new.queue").ready, 1);
}

/// Proves S0.26: the backlog has no limit of its own; 50,000 wait, none is lost, and they leave in order.
#[test]
fn the_backlog_has_no_limit() {
    let limits = Limits { out_bytes_pause: usize::MAX, ..Limits::default() };
    let mut harness = Harness::with(Settings { limits, ..Settings::default() });
    let client = harness.client();
    let handle = harness.handle(client, "q");
    let count = 50_000;
    let mut out = Vec::new();
    for seq in 0..count {
        let mut message = ask(seq, "q", "").message;
        message.handle = handle;
        harness.engine.handle(harness.now(), Input::Send { conn: client, message }, &mut out);
    }
    assert_eq!(out.len(), count as usize, "STORED each, no more");
    assert_eq!(harness.status().ready, u64::from(count));
    let (_, got) = harness.joining(Slots::Limited(count), &["q"]);
    assert_eq!(got.len(), count as usize);
    assert_eq!(harness.status().ready, 0);
}

/// Proves S0.28, S0.29 and S0.31: while anything waits a new message joins the end, even if a worker has room; freed slots
/// serve the head, each message exactly once; a head that cannot be placed stays the head.
#[test]
fn first_in_first_out_and_once() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    for (seq, text) in [(2, "b"), (3, "c"), (4, "d"), (5, "e")] {
        assert_eq!(harness.request(client, ask(seq, "q", text)), []);
    }
    assert_eq!(harness.tick(), [], "the head stays the head");
    for (done, seq, next) in [("a", 1, "b"), ("b", 2, "c"), ("c", 3, "d")] {
        assert_eq!(harness.reply(worker, done, "r"), [reply(client, seq, "r"), turn(worker, next)]);
    }
    assert_eq!(harness.resize(worker, 3), Ok(vec![turn(worker, "e")]));
    assert_eq!(harness.request(client, ask(6, "q", "f")), [turn(worker, "f")]);
    for (text, seq) in [("d", 4), ("e", 5), ("f", 6)] {
        assert_eq!(harness.reply(worker, text, "r"), [reply(client, seq, "r")]);
    }
    let counters = harness.counters();
    assert_eq!((counters.requests, counters.deliveries, counters.replied), (6, 6, 6));
}

/// Proves S0.28 and I5: no overtaking, not even by the message that finds a worker with room the moment it comes:
/// a costly head holds back the cheap ones behind it.
#[test]
fn nothing_overtakes() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.request(client, ask(2, "q", "dear").cost(2)), []);
    assert_eq!(harness.request(client, ask(3, "q", "cheap")), [], "there is a free slot, but not its turn");
    assert_eq!(harness.reply(worker, "a", "r"), [reply(client, 1, "r"), turn(worker, "dear").cost(2)]);
    assert_eq!(harness.reply(worker, "dear", "r"), [reply(client, 2, "r"), turn(worker, "cheap")]);
}

/// Proves S0.18, S0.16, S0.17 and I11: whatever frees a slot lets the head out in the same step: REPLY, ACK and
/// FAIL, a new worker, RESIZE, a first PING, a worker that resumes.
#[test]
fn every_freed_slot_drains_at_once() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, [sent(worker, "a")]);
    for (seq, text) in (2..).zip(["b", "c", "d", "e", "f"]) {
        assert_eq!(harness.send(client, ask(seq, "q", text)).1, []);
    }
    assert_eq!(harness.reply(worker, "a", ""), [sent(worker, "b")], "REPLY settles a send too");
    assert_eq!(harness.ack(worker, "b"), [sent(worker, "c")]);
    assert_eq!(harness.fail_for_good(worker, "c", "no"), [sent(worker, "d")]);
    let (second, got) = harness.joining(Slots::Limited(1), &["q"]);
    assert_eq!(got, [sent(second, "e")]);
    assert_eq!(harness.resize(second, 2), Ok(vec![sent(second, "f")]));
}

/// Proves S0.30 and I11: while something waits the engine asks to be woken every second, and otherwise not at all;
/// the check itself sends nothing twice and changes no order.
#[test]
fn the_checker_looks_every_second() {
    let mut harness = Harness::new();
    let client = harness.client();
    assert_eq!(harness.engine.next_deadline(), None, "nothing waits");
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, []);
    assert_eq!(harness.send(client, ask(2, "q", "b")).1, []);
    for second in 0..5 {
        let start = harness.now();
        let next = harness.engine.next_deadline().unwrap();
        assert!(next <= start.plus_millis(1_000), "second {second}");
        harness.clock(next);
        assert_eq!(harness.tick(), []);
        assert_eq!(harness.engine.next_deadline(), Some(next.plus_millis(1_000)));
    }
    let (worker, got) = harness.joining(Slots::Limited(1), &["q"]);
    assert_eq!(got, [sent(worker, "a")]);
    assert_eq!(harness.ack(worker, "a"), [sent(worker, "b")]);
    assert_eq!(harness.engine.next_deadline(), None);
}

/// Proves S0.30: after a long sleep one check makes up for all that were missed.
#[test]
fn a_late_checker_does_not_hurry() {
    let mut harness = Harness::new();
    let client = harness.client();
    harness.clock(Mono::from_millis(10_000_000));
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, []);
    assert!(harness.engine.next_deadline().unwrap() <= harness.now());
    assert_eq!(harness.tick(), []);
    assert_eq!(harness.engine.next_deadline(), Some(harness.now().plus_millis(1_000)));
}

/// Proves I5: messages of priority 9 leave before those of 0, first in, first out within one priority, and 4 is
/// the usual one.
#[test]
fn priorities_go_first() {
    let mut harness = Harness::new();
    let client = harness.client();
    let rows = [(0, "0a"), (9, "9a"), (4, "4a"), (9, "9b"), (0, "0b"), (5, "5a"), (3, "3a")];
    for (seq, (priority, text)) in (1..).zip(rows) {
        assert_eq!(harness.request(client, ask(seq, "q", text).priority(priority)), []);
    }
    assert_eq!(harness.request(client, ask(8, "q", "usual")), []);
    let (worker, got) = harness.joining(Slots::Limited(8), &["q"]);
    let order = ["9a", "9b", "5a", "4a", "usual", "3a", "0a", "0b"];
    assert_eq!(got, order.map(|text| turn(worker, text)));
}

/// Proves I5: first deliveries keep the order of sending per producer, queue and priority, also when producers
/// take turns and one of them leaves.
#[test]
fn every_producer_keeps_its_order() {
    let mut harness = Harness::new();
    let producers = [harness.client(), harness.client()];
    for n in 0..20u32 {
        for producer in producers {
            for queue in ["q", "mail"] {
                let text = format!("{}-{queue}-{n:02}", producer.index);
                assert_eq!(harness.send(producer, ask(n, queue, &text)).1, []);
            }
        }
    }
    assert_eq!(harness.leave(producers[0]), []);
    let (_, got) = harness.joining(Slots::Unlimited, &["q", "mail"]);
    assert_eq!(got.len(), 80);
    for producer in producers {
        for queue in ["q", "mail"] {
            let start = format!("{}-{queue}-", producer.index);
            let texts = got.iter().filter_map(|seen| match seen {
                Seen::Turn(turn) if turn.payload.bytes.starts_with(start.as_bytes()) => {
                    Some(turn.payload.bytes.clone())
                }
                _ => None,
            });
            let texts: Vec<_> = texts.collect();
            assert!(texts.len() == 20 && texts.is_sorted(), "{texts:?}");
        }
    }
}
