//! Whose turn it is.

use std::collections::BTreeMap;

use turno_engine::{CallerMessage, PeerEffect, Policy, Settings};
use turno_proto::model::{ConnId, Slots};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, reply, turn};
use crate::views::rota;

/// The worker that got the one delivery among these effects.
fn taker(seen: &[Seen]) -> Option<ConnId> {
    match seen {
        [Seen::Turn(turn)] => Some(turn.worker),
        [] => None,
        other => panic!("{other:?} is more than one turn"),
    }
}

/// Proves S0.19, S0.20 and I10: the head of the rota gets the message, loses a slot and goes to the end.
#[test]
fn the_one_idle_longest_is_next() {
    let mut harness = Harness::new();
    let workers = [harness.worker(2, &["q"]), harness.worker(2, &["q"]), harness.worker(2, &["q"])];
    let client = harness.client();
    let [a, b, c] = workers;
    for (seq, next, after) in [
        (1, a, [(b, 0), (c, 0), (a, 1)]),
        (2, b, [(c, 0), (a, 1), (b, 1)]),
        (3, c, [(a, 1), (b, 1), (c, 1)]),
        (4, a, [(b, 1), (c, 1), (a, 2)]),
        (5, b, [(c, 1), (a, 2), (b, 2)]),
    ] {
        assert_eq!(harness.request(client, ask(seq, "q", "x")), [turn(next, "x")]);
        assert_eq!(harness.rota("q"), rota(&after));
    }
}

/// Proves S0.21, S0.22 and I10: full workers are passed over and keep their place, and so does the order of those
/// with room; if nobody has room the message waits.
#[test]
fn passing_over_the_full_keeps_the_order() {
    let mut harness = Harness::new();
    let [a, b, c, d] = [1, 3, 1, 3].map(|slots| harness.worker(slots, &["q"]));
    let client = harness.client();
    for (seq, next) in [(1, a), (2, b), (3, c), (4, d), (5, b), (6, d), (7, b), (8, d)] {
        assert_eq!(taker(&harness.request(client, ask(seq, "q", &format!("m{seq}")))), Some(next), "{seq}");
    }
    assert_eq!(harness.rota("q"), rota(&[(a, 1), (c, 1), (b, 3), (d, 3)]));
    assert_eq!(harness.request(client, ask(9, "q", "m9")), [], "one pass, nobody has room");
    assert_eq!(harness.rota("q"), rota(&[(a, 1), (c, 1), (b, 3), (d, 3)]), "looking moves nobody");
    assert_eq!(harness.reply(c, "m3", "r"), [reply(client, 3, "r"), turn(c, "m9")]);
    assert_eq!(harness.reply(d, "m4", "r"), [reply(client, 4, "r")]);
    assert_eq!(harness.reply(a, "m1", "r"), [reply(client, 1, "r")]);
    assert_eq!(taker(&harness.request(client, ask(10, "q", "m10"))), Some(a), "freed last, but idle longest");
    assert_eq!(taker(&harness.request(client, ask(11, "q", "m11"))), Some(d));
}

/// Proves S0.25: with N workers of equal slots M messages are spread so that no two differ by more than one, at
/// every moment.
#[test]
fn slow_work_is_spread_evenly() {
    for (count, slots, messages) in [(10, 10, 100), (3, 5, 14), (7, 2, 9), (1, 4, 4)] {
        let mut harness = Harness::new();
        let workers: Vec<ConnId> = (0..count).map(|_| harness.worker(slots, &["q"])).collect();
        let client = harness.client();
        let mut got: BTreeMap<ConnId, u32> = workers.iter().map(|worker| (*worker, 0)).collect();
        for seq in 0..messages {
            let worker = taker(&harness.request(client, ask(seq, "q", "x"))).unwrap();
            *got.get_mut(&worker).unwrap() += 1;
            let (least, most) = (got.values().min().unwrap(), got.values().max().unwrap());
            assert!(most - least <= 1, "{got:?} after {seq}");
        }
        assert_eq!(got.values().sum::<u32>(), messages);
    }
}

/// Proves S0.25, S0.29 and I10: 1,000 requests over 10 workers with 10 slots, all of equal work: every worker has
/// done exactly 100, everyone is answered once.
#[test]
fn a_thousand_requests_over_ten_workers() {
    let mut harness = Harness::new();
    let workers: Vec<ConnId> = (0..10).map(|_| harness.worker(10, &["q"])).collect();
    let client = harness.client();
    let mut turns = Vec::new();
    for seq in 0..1_000 {
        turns.extend(harness.request(client, ask(seq, "q", &seq.to_string())));
    }
    assert_eq!(turns.len(), 100, "as many as there are slots");
    let (mut answers, mut done) = (Vec::new(), BTreeMap::new());
    let mut at = 0;
    while let Some(Seen::Turn(given)) = turns.get(at).cloned() {
        let text = String::from_utf8(given.payload.bytes.to_vec()).unwrap();
        *done.entry(given.worker).or_insert(0) += 1;
        for seen in harness.reply(given.worker, &text, &text) {
            if matches!(seen, Seen::Turn(_)) { turns.push(seen) } else { answers.push(seen) }
        }
        at += 1;
    }
    let expected: Vec<Seen> = (0..1_000).map(|seq| reply(client, seq, &seq.to_string())).collect();
    assert_eq!(answers, expected);
    assert_eq!(done, workers.into_iter().map(|worker| (worker, 100)).collect());
}

/// Proves S0.25 and S2.34: one of the ten is lost in the middle; nothing stays unanswered, nothing is answered
/// twice.
#[test]
fn a_lost_worker_leaves_nothing_unanswered() {
    let mut harness = Harness::new();
    let workers: Vec<ConnId> = (0..10).map(|_| harness.worker(10, &["q"])).collect();
    let client = harness.client();
    let mut turns = Vec::new();
    for seq in 0..1_000 {
        turns.extend(harness.request(client, ask(seq, "q", &seq.to_string()).retries(1)));
    }
    let (lost, mut answers, mut at) = (workers[3], Vec::new(), 0);
    while let Some(Seen::Turn(given)) = turns.get(at).cloned() {
        at += 1;
        if at == 500 {
            turns.extend(harness.leave(lost));
        }
        if at >= 500 && given.worker == lost {
            continue;
        }
        let text = String::from_utf8(given.payload.bytes.to_vec()).unwrap();
        for seen in harness.reply(given.worker, &text, &text) {
            if matches!(seen, Seen::Turn(_)) { turns.push(seen) } else { answers.push(seen) }
        }
    }
    answers.sort_by_key(|seen| match seen {
        Seen::Said(turno_engine::Effect::Peer(PeerEffect::Caller {
            seq,
            message: CallerMessage::Reply { .. },
            ..
        })) => *seq,
        other => panic!("{other:?} is no reply"),
    });
    let expected: Vec<Seen> = (0..1_000).map(|seq| reply(client, seq, &seq.to_string())).collect();
    assert_eq!(answers, expected);
    assert_eq!(harness.status().slots_used, 0);
}

/// Proves S0.24: the choice is a policy. The usual one spreads; the other fills the first before the next.
#[test]
fn the_policy_can_be_exchanged() {
    for (policy, expected) in
        [(Policy::LeastRecentlyUsed, [0, 1, 2, 0, 1, 2, 0]), (Policy::Fill, [0, 0, 0, 1, 1, 1, 2])]
    {
        let mut harness = Harness::with(Settings { policy, ..Settings::default() });
        let workers = [3, 3, 3].map(|slots| harness.worker(slots, &["q"]));
        let client = harness.client();
        let got = (0..7).map(|seq| taker(&harness.request(client, ask(seq, "q", &format!("m{seq}")))).unwrap());
        let got: Vec<ConnId> = got.collect();
        assert_eq!(got, expected.map(|at| workers[at]), "{policy:?}");
        assert_eq!(harness.reply(workers[0], "m0", "r"), [reply(client, 0, "r")]);
        let next = match policy {
            Policy::LeastRecentlyUsed => workers[1],
            Policy::Fill => workers[0],
        };
        assert_eq!(taker(&harness.request(client, ask(8, "q", "x"))), Some(next), "{policy:?}");
    }
}

/// Proves I10 and S1.32: a worker has one last use for all its queues: work from one queue moves it behind in the
/// others.
#[test]
fn a_turn_counts_in_every_queue() {
    let mut harness = Harness::new();
    let (both, single) = (harness.worker(5, &["q", "mail"]), harness.worker(5, &["q"]));
    let client = harness.client();
    assert_eq!(harness.request(client, ask(1, "mail", "a")), [turn(both, "a").of("mail")]);
    assert_eq!(harness.rota("q"), rota(&[(single, 0), (both, 1)]));
    assert_eq!(harness.request(client, ask(2, "q", "b")), [turn(single, "b")]);
    assert_eq!(harness.request(client, ask(3, "q", "c")), [turn(both, "c")]);
}

/// Proves I11 and I10: a worker with several queues that all have a backlog serves them in turn, one message each.
#[test]
fn a_freed_worker_serves_its_queues_in_turn() {
    let mut harness = Harness::new();
    let client = harness.client();
    for (seq, queue) in (1..).zip(["a", "a", "a", "b", "c", "c"]) {
        assert_eq!(harness.request(client, ask(seq, queue, &format!("{queue}{seq}"))), []);
    }
    let (worker, got) = harness.joining(Slots::Limited(0), &["a", "b", "c"]);
    assert_eq!(got, []);
    let order = ["a1", "b4", "c5", "a2", "c6", "a3"];
    let expected: Vec<Seen> = order.iter().map(|text| turn(worker, text).of(&text[..1])).collect();
    assert_eq!(harness.resize(worker, 6), Ok(expected));
}

/// Proves S0.19, S0.20 and I10 for workers of many queues, which share a rota: they take turns with each other and with
/// a worker of few queues, in whichever queue; a worker has one turn for all its queues.
#[test]
fn workers_of_many_queues_take_turns_like_any_other() {
    let names: Vec<String> = (0..20).map(|number| format!("q{number}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut harness = Harness::new();
    let [a, b, c] = [harness.worker(9, &all), harness.worker(9, &["q3"]), harness.worker(9, &all)];
    let client = harness.client();
    for (seq, queue, next) in [
        (1, "q3", a),
        (2, "q3", b),
        (3, "q7", c),
        (4, "q19", a),
        (5, "q3", b),
        (6, "q3", c),
        (7, "q3", a),
        (8, "q0", c),
        (9, "q3", b),
    ] {
        assert_eq!(taker(&harness.request(client, ask(seq, queue, "x"))), Some(next), "{seq}");
    }
    assert_eq!(harness.rota("q3"), rota(&[(a, 3), (c, 3), (b, 3)]));
    assert_eq!(harness.rota("q4"), rota(&[(a, 3), (c, 3)]));
}

/// Proves S0.21 and I11: what waits in many queues is served round robin as a worker of all of them has room, and one
/// that leaves a queue, or takes one more, gets its turns by what it consumes now.
#[test]
fn workers_of_many_queues_serve_them_by_turns() {
    let names: Vec<String> = (0..12).map(|number| format!("q{number:02}")).collect();
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut harness = Harness::new();
    let [a, b] = [harness.worker(1, &all), harness.worker(1, &all)];
    let client = harness.client();
    assert_eq!(harness.request(client, ask(1, "q00", "one")), [turn(a, "one").of("q00")]);
    assert_eq!(harness.request(client, ask(2, "q01", "two")), [turn(b, "two").of("q01")]);
    for (seq, queue, body) in [(3, "q05", "five"), (4, "q05", "again"), (5, "q02", "few"), (6, "q11", "last")] {
        assert_eq!(harness.request(client, ask(seq, queue, body)), []);
    }
    assert_eq!(harness.cancel_queue(b, "q05"), Ok(vec![]));
    assert_eq!(harness.reply(b, "two", "r"), [reply(client, 2, "r"), turn(b, "few").of("q02")]);
    assert_eq!(harness.reply(a, "one", "r"), [reply(client, 1, "r"), turn(a, "five").of("q05")]);
    assert_eq!(harness.reply(b, "few", "r"), [reply(client, 5, "r"), turn(b, "last").of("q11")]);
    assert_eq!(harness.reply(b, "last", "r"), [reply(client, 6, "r")], "b has left the queue in which one waits");
    assert_eq!(harness.consume(b, "q05"), Ok(vec![turn(b, "again").of("q05")]));
}
