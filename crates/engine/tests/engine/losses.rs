//! Workers that are lost: which losses cost a send an attempt, and how it is tried again.

use turno_engine::{Broadcast, Effect, HostEffect, Input, Report};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::view::{Reason, StandingState};
use turno_proto::model::{ConnId, Slots, limits};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, Turn, body, sent};

/// What a worker was given, as worker, text and attempt.
fn given(seen: &[Seen]) -> Vec<(ConnId, String, u16)> {
    let turn = |seen: &Seen| match seen {
        Seen::Turn(Turn { worker, payload, attempt, .. }) => {
            Some((*worker, String::from_utf8_lossy(&payload.bytes).into_owned(), *attempt))
        }
        Seen::Said(_) => None,
    };
    seen.iter().filter_map(turn).collect()
}

/// A worker joins, waits out any pause, and holds what it gets first.
fn joins(harness: &mut Harness, slots: Slots) -> (ConnId, Vec<(ConnId, String, u16)>) {
    let (worker, got) = harness.joining(slots, &["q"]);
    let mut got = given(&got);
    for _ in 0..limits::LOSS_PAUSE_MS_MAX / 50 {
        if got.is_empty() {
            got = given(&harness.pass(50));
        }
    }
    (worker, got)
}

fn harness_with(count: u32) -> (Harness, ConnId) {
    let mut harness = Harness::new();
    let client = harness.client();
    for seq in 0..count {
        harness.send(client, ask(seq, "q", &seq.to_string()));
    }
    (harness, client)
}

/// Proves I1 and I2: a worker that reads its deliveries and dies before it settles one costs no send an attempt: with
/// many slots, with one, with more slots than there are messages.
#[test]
fn a_worker_that_crashes_at_start_costs_nothing() {
    for (messages, slots, losses) in
        [(60, Slots::Limited(10), 40), (60, Slots::Limited(1), 40), (5, Slots::Unlimited, 8)]
    {
        let (mut harness, _) = harness_with(messages);
        for _ in 0..losses {
            let (worker, got) = joins(&mut harness, slots);
            assert!(got.iter().all(|(_, _, attempt)| *attempt == 1), "{slots}: {got:?}");
            harness.leave(worker);
        }
        let (worker, mut got) = joins(&mut harness, Slots::Limited(100));
        let mut done = 0;
        while let Some((_, text, attempt)) = got.pop() {
            assert_eq!(attempt, 1, "{slots}: {text}");
            got.extend(given(&harness.ack(worker, &text)));
            done += 1;
        }
        assert_eq!((done, harness.status().dead), (messages, 0), "{slots}");
    }
}

/// Proves I1: a worker that closes its connection before it has read its only delivery never costs an attempt.
#[test]
fn an_unread_delivery_never_counts() {
    let (mut harness, _) = harness_with(1);
    for _ in 0..100 {
        let (worker, got) = joins(&mut harness, Slots::Limited(1));
        assert_eq!(got, [(worker, "0".to_owned(), 1)]);
        assert_eq!(harness.say(Input::Unread { conn: worker }), []);
        harness.leave(worker);
    }
    let (worker, _) = joins(&mut harness, Slots::Limited(1));
    harness.pass(limits::UNREAD_MS);
    // Held for so long, the unread bytes may be a later heartbeat.
    harness.say(Input::Unread { conn: worker });
    harness.leave(worker);
    let counted = (0..4).map(|_| {
        let (worker, got) = joins(&mut harness, Slots::Limited(1));
        harness.leave(worker);
        got[0].2
    });
    assert_eq!(counted.collect::<Vec<u16>>(), [1, 1, 2, 3], "two more are free, then each counts");
}

/// Proves I2: a message that kills its worker each time ends as a dead letter after its attempts, and its neighbours in
/// the same worker are done, each with no attempt lost; with one worker, and with two.
#[test]
fn a_poison_message_dies_and_its_neighbours_do_not() {
    for (slots, pool) in [(1, 1), (4, 1), (10, 1), (10, 2)] {
        let (mut harness, client) = harness_with(7);
        let (poison, _) = harness.send(client, ask(7, "q", "poison"));
        for seq in 8..20 {
            harness.send(client, ask(seq, "q", &seq.to_string()));
        }
        let mut workers: Vec<ConnId> = Vec::new();
        let (mut held, mut done, mut deaths): (Vec<(ConnId, String, u16)>, Vec<String>, u32) = Default::default();
        while harness.status().dead == 0 || done.len() < 19 {
            assert!(deaths < 60, "{slots} slots: {done:?} done, {held:?} held");
            while workers.len() < pool {
                let (worker, got) = harness.joining(Slots::Limited(slots), &["q"]);
                workers.push(worker);
                held.extend(given(&got));
            }
            let killer = held.iter().find(|(_, text, _)| text == "poison").map(|(worker, ..)| *worker);
            let got = if let Some(killer) = killer {
                deaths += 1;
                workers.retain(|worker| *worker != killer);
                held.retain(|(worker, ..)| *worker != killer);
                harness.leave(killer)
            } else if held.is_empty() {
                harness.pass(limits::LOSS_PAUSE_MS_MAX)
            } else {
                let (worker, text, attempt) = held.remove(0);
                assert_eq!(attempt, 1, "{slots} slots: {text}");
                done.push(text.clone());
                harness.ack(worker, &text)
            };
            held.extend(given(&got));
        }
        assert!(matches!(harness.explain(poison).because.0, Reason::Dead { .. }), "{slots}");
        assert_eq!((harness.status().dead, harness.counters().acked), (1, 19), "{slots}");
        assert!(deaths >= 10, "{slots}: it has its ten attempts, {deaths} deaths");
    }
}

/// Two sends that kill every worker end both: neither waits for a neighbour that shows what the worker can do.
#[test]
fn two_poison_messages_end_both() {
    let (mut harness, _) = harness_with(2);
    for _ in 0..(2 * (10 + u32::from(limits::LOST_ALONE_FREE)) + 2) {
        let (worker, _) = joins(&mut harness, Slots::Limited(10));
        harness.leave(worker);
    }
    assert_eq!((harness.status().dead, harness.status().ready), (2, 0));
}

/// Proves S2.34: the loss of a worker that had settled others counts, if it had one send alone; it is the head again.
#[test]
fn a_loss_of_a_proven_worker_counts() {
    let (mut harness, _) = harness_with(3);
    let (worker, _) = joins(&mut harness, Slots::Limited(1));
    assert_eq!(given(&harness.ack(worker, "0")), [(worker, "1".to_owned(), 1)]);
    harness.leave(worker);
    let (next, got) = joins(&mut harness, Slots::Limited(2));
    assert_eq!(got, [(next, "1".to_owned(), 2), (next, "2".to_owned(), 1)]);
}

/// A send that was lost twice with others waits for a worker that holds nothing, keeps it free for that, and is alone
/// there; others go on at other workers.
#[test]
fn a_send_with_two_strikes_goes_alone() {
    let (mut harness, client) = harness_with(2);
    for _ in 0..2 {
        let (worker, got) = joins(&mut harness, Slots::Limited(2));
        assert_eq!(got.len(), 2);
        harness.leave(worker);
    }
    let other = harness.worker(3, &["other"]);
    assert_eq!(harness.send(client, ask(5, "other", "o")).1, [sent(other, "o").of("other")]);
    assert_eq!(harness.consume(other, "q").map(|seen| given(&seen)), Ok(vec![]), "it holds something else");
    let row = harness.consumers("q")[0].clone();
    assert_eq!(row.standing.state, StandingState::Probing, "two were lost before it");
    let got = given(&harness.ack(other, "o"));
    assert_eq!(got, [(other, "0".to_owned(), 1)], "alone");
    assert_eq!(harness.send(client, ask(6, "other", "p")).1, [], "it gets nothing else");
    let (third, got) = harness.joining(Slots::Limited(3), &["other"]);
    assert_eq!(got, [sent(third, "p").of("other")], "others go on");
    assert_eq!(given(&harness.ack(other, "0")), [(other, "1".to_owned(), 1)]);
    assert_eq!(harness.ack(other, "1"), []);
    assert_eq!((harness.status().ready, harness.status().dead), (0, 0));
}

/// Proves S2.30: workers that are lost in a row without settling anything are slowed, and the operator is told; a worker
/// that settles something, or lives on, has all its slots.
#[test]
fn workers_lost_in_a_row_are_slowed() {
    let (mut harness, client) = harness_with(30);
    let mut reports = Vec::new();
    let mut pauses = Vec::new();
    for _ in 0..10 {
        let (worker, mut got) = harness.joining(Slots::Limited(3), &["q"]);
        let mut waited = 0;
        while given(&got).is_empty() {
            got = harness.pass(50);
            waited += 50;
        }
        pauses.push(waited);
        let report = |seen: Seen| match seen {
            Seen::Said(Effect::Host(HostEffect::Report(Report::WorkersLost { in_a_row, wait_ms, .. }))) => {
                Some((in_a_row, wait_ms))
            }
            _ => None,
        };
        reports.extend(harness.leave(worker).into_iter().filter_map(report));
    }
    assert_eq!(pauses, [0, 0, 0, 100, 200, 400, 800, 1_600, 3_200, 5_000]);
    assert_eq!(reports, [(3, 100), (4, 200), (8, 3_200)]);
    let (worker, got) = joins(&mut harness, Slots::Limited(3));
    assert_eq!(got.len(), 1, "one at a time");
    assert_eq!(given(&harness.pass(limits::TRIAL_MS)).len(), 2, "it lives on");
    harness.leave(worker);
    let (worker, got) = joins(&mut harness, Slots::Limited(3));
    let text = got[0].1.clone();
    assert!(given(&harness.ack(worker, &text)).len() >= 2, "it settled one");
    harness.leave(worker);
    harness.send(client, ask(99, "q", "x"));
    let (_, got) = harness.joining(Slots::Limited(3), &["q"]);
    assert!(!given(&got).is_empty(), "the count began anew");
}

/// Proves S0.6: a worker with unlimited slots holds no more than a window of deliveries at a time.
#[test]
fn unlimited_slots_have_a_window() {
    let (mut harness, _) = harness_with(limits::UNLIMITED_WINDOW + 10);
    let (worker, got) = harness.joining(Slots::Unlimited, &["q"]);
    assert_eq!(given(&got).len(), limits::UNLIMITED_WINDOW as usize);
    assert_eq!(given(&harness.ack(worker, "5")).len(), 1);
    assert_eq!(harness.queue("q").ready, 9);
}

/// A worker that settles something ends the row of losses before it: only losses after it put the next one on trial.
#[test]
fn losses_count_in_a_row_only() {
    let (mut harness, _) = harness_with(9);
    for _ in 0..3 {
        let (lost, _) = joins(&mut harness, Slots::Limited(1));
        harness.leave(lost);
        let (worker, got) = harness.joining(Slots::Limited(3), &["q"]);
        assert_eq!(got.len(), 3, "one loss puts nobody on trial");
        let text = given(&got)[0].1.clone();
        harness.ack(worker, &text);
        assert_eq!(harness.deregister(worker), Ok(vec![]));
        harness.leave(worker);
    }
}

/// A send that goes out alone is kept for one worker. Once that one has it, or does not consume the queue any more, what waits goes
/// to another at once that holds nothing.
#[test]
fn a_send_that_goes_alone_holds_up_nobody_for_long() {
    for leaves in [false, true] {
        let mut harness = Harness::new();
        let client = harness.client();
        let [a, b] = [harness.worker(1, &["r", "q"]), harness.worker(1, &["r", "q"])];
        for (seq, worker) in (1..).zip([a, b]) {
            let text = format!("busy {seq}");
            assert_eq!(harness.send(client, ask(seq, "r", &text)).1, [sent(worker, &text).of("r")]);
        }
        harness.send(client, ask(3, "q", "p"));
        harness.send(client, ask(4, "q", "x"));
        for _ in 0..2 {
            let (worker, got) = harness.joining(Slots::Limited(2), &["q"]);
            assert_eq!(got.len(), 2);
            assert_eq!(harness.leave(worker), []);
        }
        assert_eq!(harness.ack(b, "busy 2"), [], "it is kept for the other, whose turn it is");
        if leaves {
            assert_eq!(harness.cancel_queue(a, "q"), Ok(vec![sent(b, "p")]));
        } else {
            assert_eq!(harness.ack(a, "busy 1"), [sent(a, "p"), sent(b, "x")]);
        }
    }
}

/// A worker on trial that has a broadcast gets nothing beside it, and every rota knows.
#[test]
fn a_broadcast_is_what_a_worker_on_trial_has() {
    let (mut harness, client) = harness_with(1);
    for _ in 0..2 {
        let (worker, _) = joins(&mut harness, Slots::Limited(3));
        harness.leave(worker);
    }
    let call = AdminCall::QueuePurge { queue: "q".to_owned(), limit: 10 };
    harness.say(Input::Admin { conn: client, seq: 50, call });
    let (worker, got) = harness.joining(Slots::Limited(3), &["q"]);
    assert_eq!(given(&got), []);
    let handle = harness.handle(client, "q");
    let payload = body("all");
    let broadcast = Broadcast { seq: 60, handle, deadline_ms: None, no_reply: false, skip_self: false, payload };
    assert_eq!(given(&harness.say(Input::Broadcast { conn: client, broadcast })).len(), 1);
    assert_eq!(given(&harness.send(client, ask(61, "q", "later")).1), [], "one at a time");
    assert_eq!(given(&harness.ack(worker, "all")), [(worker, "later".to_owned(), 1)]);
}
