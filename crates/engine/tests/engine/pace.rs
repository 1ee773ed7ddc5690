//! Workers that do not read: they get a window of bytes, nothing is lost or counted for that, and others go on.

use turno_engine::{Buffers, Effect, Input, NativeEffect, PeerEffect, Settings};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::Reason;
use turno_proto::model::{ConnId, Limits, Slots, WorkerId, limits};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, sent};

/// What a message of 100 bytes counts for.
const ONE: u64 = 100 + limits::MESSAGE_OVERHEAD_BYTES as u64;

fn text(number: usize) -> String {
    format!("{number:0>100}")
}

fn paced(worker: ConnId) -> Seen {
    Seen::Said(Effect::Peer(PeerEffect::Native { conn: worker, effect: NativeEffect::Pace }))
}

/// Workers may have four messages unread: the fourth is beyond the window.
fn harness(settings: Settings) -> Harness {
    let limits = Limits { out_bytes_pause: 3 * ONE as usize, ..Limits::default() };
    Harness::with(Settings { limits, ..settings })
}

fn fill(harness: &mut Harness, client: ConnId, numbers: std::ops::Range<usize>) -> Vec<Seen> {
    numbers.flat_map(|number| harness.send(client, ask(1, "q", &text(number))).1).collect()
}

/// A worker with very many slots draws its window and the rest waits, in its own rota and in a shared rota's. Once it has read
/// it gets the next ones, each in order and as its first attempt.
#[test]
fn a_worker_that_does_not_read_gets_its_window() {
    for own_rotas_max in [0, 8] {
        let mut harness = harness(Settings { own_rotas_max, ..Settings::default() });
        let client = harness.client();
        assert_eq!(fill(&mut harness, client, 0..10), []);
        let (worker, got) = harness.joining(Slots::Limited(100_000), &["q"]);
        let window = |from: usize| -> Vec<Seen> {
            (from..from + 4).map(|at| sent(worker, &text(at))).chain([paced(worker)]).collect()
        };
        assert_eq!(got, window(0));
        assert_eq!(fill(&mut harness, client, 10..12), [], "a new one waits, too");
        assert_eq!(harness.pass(60_000), [], "for as long as it takes");
        assert_eq!(harness.say(Input::HasRead { conn: worker }), window(4));
        assert_eq!(harness.say(Input::HasRead { conn: worker }), window(8));
        assert_eq!(harness.say(Input::HasRead { conn: worker }), []);
        assert_eq!(harness.say(Input::HasRead { conn: client }), [], "one that is no worker");
        for number in 0..12 {
            assert_eq!(harness.explain(harness.id(worker, &text(number))).message.attempts, 1);
        }
    }
}

/// What a worker settled it has read: one that is always busy with a few is never asked about, whatever it settles first.
#[test]
fn what_is_settled_was_read() {
    let mut harness = harness(Settings::default());
    let (worker, client) = (harness.worker(3, &["q"]), harness.client());
    let mut seen = fill(&mut harness, client, 0..3);
    let mut held = vec![0, 1, 2];
    for number in 3..40 {
        seen.extend(fill(&mut harness, client, number..number + 1));
        let settled = held.remove(number % 3);
        held.push(number);
        seen.extend(harness.ack(worker, &text(settled)));
    }
    assert_eq!(seen, (0..40).map(|number| sent(worker, &text(number))).collect::<Vec<_>>());
}

/// Deliveries of before the worker read count no more: to settle them makes no room for others that it has not read.
#[test]
fn what_was_read_before_makes_no_room() {
    let mut harness = harness(Settings::default());
    let (worker, client) = (harness.worker(100, &["q"]), harness.client());
    fill(&mut harness, client, 0..4);
    harness.say(Input::HasRead { conn: worker });
    assert_eq!(fill(&mut harness, client, 4..9).last(), Some(&paced(worker)));
    for number in 0..4 {
        assert_eq!(harness.ack(worker, &text(number)), [], "{number}");
    }
    assert_eq!(harness.ack(worker, &text(4)), [], "the shell says when it has read enough");
    assert_eq!(harness.say(Input::HasRead { conn: worker }), [sent(worker, &text(8))]);
}

/// The same before the window is full: what was read before takes nothing off the bytes that are unread since.
#[test]
fn what_was_read_before_is_not_taken_off_again() {
    let mut harness = harness(Settings::default());
    let (worker, client) = (harness.worker(100, &["q"]), harness.client());
    fill(&mut harness, client, 0..4);
    harness.say(Input::HasRead { conn: worker });
    assert_eq!(fill(&mut harness, client, 4..6), [4, 5].map(|number| sent(worker, &text(number))));
    for number in 0..4 {
        assert_eq!(harness.ack(worker, &text(number)), [], "{number}");
    }
    assert_eq!(fill(&mut harness, client, 6..9), [sent(worker, &text(6)), sent(worker, &text(7)), paced(worker)]);
}

/// Others go on in their order; the one that does not read keeps its place among them.
#[test]
fn one_that_does_not_read_stalls_nobody() {
    let mut harness = harness(Settings::default());
    let client = harness.client();
    let workers: Vec<ConnId> = (0..3).map(|_| harness.worker(1_000, &["q"])).collect();
    let [slow, one, other] = workers[..] else { panic!("three") };
    let turns = |workers: &[ConnId], numbers: std::ops::Range<usize>| -> Vec<Seen> {
        numbers.zip(workers.iter().cycle()).map(|(number, worker)| sent(*worker, &text(number))).collect()
    };
    assert_eq!(fill(&mut harness, client, 0..9), turns(&workers, 0..9));
    for worker in [one, other] {
        harness.say(Input::HasRead { conn: worker });
    }
    assert_eq!(fill(&mut harness, client, 9..10), [sent(slow, &text(9)), paced(slow)]);
    assert_eq!(fill(&mut harness, client, 10..16), turns(&[one, other], 10..16));
    assert_eq!(harness.explain(harness.id(slow, &text(9))).message.attempts, 1);
    assert_eq!(harness.say(Input::HasRead { conn: slow }), []);
    assert_eq!(fill(&mut harness, client, 16..17), [sent(slow, &text(16))], "it was not used for longest");
    for worker in [one, other] {
        harness.say(Input::HasRead { conn: worker });
    }
    let again: Vec<Seen> = harness.leave(slow);
    assert_eq!(again.len(), 5, "what it had goes to others: {again:?}");
}

/// A costly head is kept for a worker that reads, though one that does not has its turn before it.
#[test]
fn nobody_is_kept_for_that_does_not_read() {
    let mut harness = harness(Settings::default());
    let client = harness.client();
    let slow = harness.worker(50, &["q"]);
    assert_eq!(fill(&mut harness, client, 0..4).last(), Some(&paced(slow)));
    let quick = harness.worker(10, &["p", "q"]);
    assert_eq!(harness.request(client, ask(9, "p", "runs").cost(5)).len(), 1);
    let (id, seen) = harness.send(client, ask(1, "q", "costly").cost(8));
    assert_eq!(
        (seen, harness.explain(id).because.0),
        (vec![], Reason::Reserved { worker: WorkerId(2), cost: 8, free: 5 })
    );
    assert_eq!(harness.reply(quick, "runs", "done").last(), Some(&sent(quick, "costly").cost(8)));
}

/// `explain` and `worker show` say so.
#[test]
fn it_is_told_who_does_not_read() {
    let mut harness = harness(Settings::default());
    let (worker, client) = (harness.worker(100, &["q"]), harness.client());
    fill(&mut harness, client, 0..4);
    let (id, seen) = harness.send(client, ask(1, "q", "waits"));
    assert_eq!(seen, []);
    let busy = Reason::AllBusy { workers: 1, used: 4, ahead: 0, probing: 0, dropped: 0, not_reading: 1, brokers: 0 };
    assert_eq!(harness.explain(id).because.0, busy);
    let unread = |harness: &mut Harness| match harness.look(AdminCall::WorkerShow { worker: "1".to_owned() }) {
        Ok(AdminAnswer::Worker { worker }) => worker.unread_bytes,
        other => panic!("{other:?}"),
    };
    assert_eq!((unread(&mut harness), harness.queue("q").slots_free), (4 * ONE, 0));
    assert_eq!(harness.say(Input::HasRead { conn: worker }), [sent(worker, "waits")]);
    assert_eq!((unread(&mut harness), harness.queue("q").slots_free), (0, 95));
}

/// With less memory the window is smaller: each row has the bytes of out-buffers, and how many of 20 deliveries follow.
#[test]
fn the_window_is_smaller_when_memory_is_short() {
    let tight = limits::OUT_TIGHT_BYTES;
    let body = "x".repeat(tight / 4 - limits::MESSAGE_OVERHEAD_BYTES);
    let (messages, max) = (20 * tight as u64 / 4, 64 * tight as u64);
    for (outgoing, kept_free, count) in [
        (0, 0, 20),
        (0, max / 4, 20),
        // What is handed out now counts at once: two of them, and then it is short.
        (max - messages - max / 4 - tight as u64 / 2, max / 4, 5),
        (max - messages - max / 4, max / 4, 5),
        (max - messages, 0, 5),
        (max - messages + 1, 0, 1),
        (max, max / 4, 1),
    ] {
        let limits = Limits { out_bytes_pause: 10 * tight, memory_bytes_max: max, ..Limits::default() };
        let mut harness = Harness::with(Settings { limits, ..Settings::default() });
        let client = harness.client();
        for _ in 0..20 {
            harness.send(client, ask(1, "q", &body));
        }
        harness.engine.set_buffers(Buffers { outgoing, kept_free, ..Buffers::default() });
        let (worker, got) = harness.joining(Slots::Unlimited, &["q"]);
        let paced = usize::from(count < 20);
        assert_eq!(got.len(), count + paced, "{outgoing} and {kept_free}");
        harness.engine.set_buffers(Buffers::default());
        let rest = harness.say(Input::HasRead { conn: worker });
        assert_eq!(rest.len(), 20 - count, "{outgoing} and {kept_free}");
    }
}
