//! One-way messages: stored, settled by ACK, tried again, kept when nothing helps.

use turno_engine::{Effect, HostEffect, NativeEffect, PeerEffect, Report, Settings};
use turno_proto::model::view::{MessageKind, MessageState, MessageView, Reason};
use turno_proto::model::{Durability, Limits, Moment, Slots, limits};

use crate::harness::{Harness, START_MS, ask};
use crate::seen::{Seen, sent};

/// Proves S2.39: a send is answered at once with its id and where it is kept, before it goes to anyone, whether or
/// not a worker is there; its settling is told to nobody.
#[test]
fn a_send_is_stored_then_delivered_then_acknowledged() {
    let mut harness = Harness::new();
    let client = harness.client();
    let (id, got) = harness.send(client, ask(1, "q", "a"));
    assert_eq!((got, id.run(), id.serial()), (vec![], 1, 1));
    let (worker, got) = harness.joining(Slots::Limited(2), &["q"]);
    assert_eq!(got, [sent(worker, "a")]);
    assert_eq!(harness.id(worker, "a"), id);
    let seen = harness.try_send(client, ask(2, "q", "b"));
    let stored = Effect::Peer(PeerEffect::Native {
        conn: client,
        effect: NativeEffect::Stored {
            seq: 2,
            id: harness.id(worker, "b"),
            durability: Durability::Memory,
            duplicate: false,
        },
    });
    assert_eq!(seen, [Seen::Said(stored), sent(worker, "b")]);
    assert_eq!(harness.ack(worker, "a"), []);
    assert_eq!(harness.ack(worker, "b"), []);
    let view = harness.status();
    assert_eq!((view.in_flight, view.bytes, view.counters.acked, view.counters.sends), (0, 0, 2, 2));
}

/// Proves S2.33 and S2.35: a send that names no limit has 10 attempts; each failure puts it back to the head, and
/// after the last it is a dead letter with what was said last.
#[test]
fn a_send_has_ten_attempts() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let (id, got) = harness.send(client, ask(1, "q", "a"));
    assert_eq!(got, [sent(worker, "a")]);
    let (next, got) = harness.send(client, ask(2, "q", "b"));
    assert_eq!(got, []);
    for attempt in 2..=10 {
        assert_eq!(harness.fail(worker, "a", "not yet"), [sent(worker, "a").attempt(attempt)], "before b");
        assert_eq!(harness.waiting("q"), [next.to_string()]);
    }
    assert_eq!(harness.fail(worker, "a", "never"), [sent(worker, "b")]);
    assert_eq!(harness.explain(id).because.0, Reason::Dead { failure: "never".to_owned() });
    let counters = harness.counters();
    assert_eq!((counters.failed, counters.retried, counters.dead), (10, 9, 1));
}

/// FAIL for good ends it at the first attempt, however many are left.
#[test]
fn a_permanent_failure_is_the_last() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let (id, _) = harness.send(client, ask(1, "q", "a").retries(255));
    assert_eq!(harness.fail_for_good(worker, "a", "bad input"), []);
    let explanation = harness.explain(id);
    assert_eq!(explanation.because.0, Reason::Dead { failure: "bad input".to_owned() });
    assert_eq!(
        explanation.message,
        MessageView {
            id: id.to_string(),
            queue: "q".to_owned(),
            kind: MessageKind::Send,
            state: MessageState::Dead,
            attempts: 1,
            attempts_max: 256,
            priority: 4,
            cost: 1,
            bytes: 1,
            received_at: Moment::from_unix_ms(START_MS),
            ..MessageView::default()
        }
    );
    assert_eq!((harness.status().slots_used, harness.queue("q").dead), (0, 1));
}

/// A dead letter keeps a bounded text of its last failure, also when the worker was lost.
#[test]
fn a_dead_letter_says_what_happened() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    let (long, _) = harness.send(client, ask(1, "q", "a").retries(0));
    let (lost, _) = harness.send(client, ask(2, "q", "b").retries(0));
    let words = "x".repeat(limits::FAILURE_BYTES_MAX + 50);
    assert_eq!(harness.fail(worker, "a", &words), []);
    assert_eq!(harness.leave(worker), []);
    assert_eq!(
        harness.explain(long).because.0,
        Reason::Dead { failure: words[..limits::FAILURE_BYTES_MAX].to_owned() }
    );
    let failure = "the worker was lost while it held the message".to_owned();
    assert_eq!(harness.explain(lost).because.0, Reason::Dead { failure });
}

/// Proves I1: no number of dead letters deletes one. The operator hears of the first beyond the limit, and of every
/// further limit's worth.
#[test]
fn dead_letters_are_never_deleted_for_others() {
    for (dead_max, told) in [(0, vec![1, 2, 3, 4, 5]), (1, vec![2, 3, 4, 5]), (2, vec![3, 5]), (5, vec![])] {
        let limits = Limits { dead_max, ..Limits::default() };
        let mut harness = Harness::with(Settings { limits, ..Settings::default() });
        let (worker, client) = (harness.worker(1, &["q"]), harness.client());
        let (mut ids, mut reports) = (Vec::new(), Vec::new());
        for seq in 0..5 {
            let text = seq.to_string();
            let (id, got) = harness.send(client, ask(seq, "q", &text));
            assert_eq!(got, [sent(worker, &text)]);
            reports.extend(harness.fail_for_good(worker, &text, "no"));
            ids.push(id);
        }
        let view = harness.status();
        assert_eq!((view.dead, view.counters.dead), (5, 5));
        for id in ids {
            assert_eq!(harness.explain(id).because.0, Reason::Dead { failure: "no".to_owned() });
        }
        let report =
            |dead| Seen::Said(Effect::Host(HostEffect::Report(Report::ManyDead { queue: "q".parse().unwrap(), dead })));
        assert_eq!(reports, told.into_iter().map(report).collect::<Vec<_>>());
    }
}

/// Proves S2.38: a send with a timeout that waits too long is gone, told to nobody; one without waits for ever.
#[test]
fn a_send_expires_by_its_own_deadline_only() {
    let mut harness = Harness::new();
    let client = harness.client();
    harness.send(client, ask(1, "q", "short").within(5_000));
    harness.send(client, ask(2, "q", "long"));
    assert_eq!(harness.pass(4_999), []);
    assert_eq!(harness.status().ready, 2);
    assert_eq!(harness.pass(1), []);
    assert_eq!((harness.status().ready, harness.counters().expired), (1, 1));
    assert_eq!(harness.pass(3_600_000), []);
    let (worker, got) = harness.joining(Slots::Limited(2), &["q"]);
    assert_eq!(got, [sent(worker, "long")]);
}

/// Proves S2.38 and I4: a send that a worker has may be settled after its timeout; given back after it, it is gone
/// and no dead letter.
#[test]
fn a_held_send_past_its_deadline() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    harness.send(client, ask(1, "q", "a").within(5_000));
    harness.send(client, ask(2, "q", "b").within(5_000));
    assert_eq!(harness.pass(60_000), [], "the worker may finish");
    assert_eq!(harness.ack(worker, "a"), []);
    assert_eq!(harness.fail(worker, "b", "too late"), []);
    let view = harness.status();
    assert_eq!((view.ready, view.in_flight, view.dead), (0, 0, 0));
    let counters = view.counters;
    assert_eq!((counters.acked, counters.failed, counters.expired, counters.retried), (1, 1, 1, 0));
}
