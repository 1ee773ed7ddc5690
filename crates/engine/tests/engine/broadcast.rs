//! A message to every consumer: who gets it, what comes back, and its one end.

use turno_engine::{Broadcast, BroadcastAnswer, CallerMessage, Effect, Input, PeerEffect, Settings, WorkerMessage};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::{MessageKind, MessageState, Reason};
use turno_proto::model::{BroadcastConsumer, BroadcastEnd, Code, ConnId, Limits, Slots, WorkerId, limits};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, body, closing, drained, reply, turn, undelivered};

/// A broadcast to "q" with no options.
fn call(seq: u32, text: &str) -> Broadcast {
    Broadcast { seq, handle: 0, deadline_ms: None, no_reply: false, skip_self: false, payload: body(text) }
}

fn broadcast(harness: &mut Harness, conn: ConnId, mut broadcast: Broadcast) -> Vec<Seen> {
    broadcast.handle = harness.handle(conn, "q");
    harness.say(Input::Broadcast { conn, broadcast })
}

/// A delivery of a broadcast.
fn part(worker: ConnId, text: &str) -> Seen {
    turn(worker, text).cost(0)
}

/// What a consumer says. Desks number their workers from 1 in the order of registering.
fn answer(conn: ConnId, seq: u32, from: (u64, ConnId), text: &str) -> Seen {
    said(conn, seq, from, text, false, false)
}

fn said(conn: ConnId, seq: u32, (worker, peer): (u64, ConnId), text: &str, more: bool, failed: bool) -> Seen {
    let name = format!("w{}", peer.index).into();
    Seen::Said(Effect::Peer(PeerEffect::Caller {
        conn,
        seq,
        message: CallerMessage::BroadcastAnswer(BroadcastAnswer { worker, name, more, failed, payload: body(text) }),
    }))
}

fn over(conn: ConnId, seq: u32, end: BroadcastEnd) -> Seen {
    Seen::Said(Effect::Peer(PeerEffect::Caller { conn, seq, message: CallerMessage::BroadcastEnd(Box::new(end)) }))
}

fn party(worker: u64, peer: ConnId) -> BroadcastConsumer {
    BroadcastConsumer { worker: WorkerId(worker), name: format!("w{}", peer.index) }
}

fn of(consumers: u32) -> BroadcastEnd {
    BroadcastEnd { consumers, ..BroadcastEnd::default() }
}

fn idle(harness: &mut Harness) {
    let view = harness.status();
    assert_eq!((view.ready, view.in_flight, view.bytes), (0, 0, 0), "nothing is left");
}

/// Proves S2.9, S2.10, S2.13 and I12: every consumer gets it, each reply goes back as it comes, and after the last one
/// there is exactly one end.
#[test]
fn every_consumer_gets_it_and_every_reply_comes_back() {
    let mut harness = Harness::new();
    let (a, b, c) = (harness.worker(1, &["q"]), harness.worker(1, &["q"]), harness.worker(1, &["q", "other"]));
    let (elsewhere, client) = (harness.worker(1, &["other"]), harness.client());
    assert_eq!(broadcast(&mut harness, client, call(7, "hi")), [part(a, "hi"), part(b, "hi"), part(c, "hi")]);
    assert_eq!(harness.id(a, "hi"), harness.id(b, "hi"), "it is one message");
    assert_eq!(harness.reply(b, "hi", "B"), [answer(client, 7, (2, b), "B")]);
    assert_eq!(harness.reply(a, "hi", "A"), [answer(client, 7, (1, a), "A")]);
    let end = BroadcastEnd { answered: 3, ..of(3) };
    assert_eq!(harness.ack(c, "hi"), [answer(client, 7, (3, c), ""), over(client, 7, end)]);
    idle(&mut harness);
    assert_eq!((harness.counters().deliveries, harness.counters().replied), (3, 3));
    assert_eq!(harness.reply(b, "hi", "B"), [], "a second reply is nobody's");
    assert_eq!(harness.counters().doubled, 1);
    assert_eq!(harness.leave(elsewhere), []);
}

/// Proves S2.15 and I3: a busy consumer gets it too, one without slots as well, and no slot is taken by it: what waits
/// goes on as if it were not there.
#[test]
fn busy_consumers_get_it_beside_their_slots() {
    let mut harness = Harness::new();
    let (busy, none) = (harness.worker(1, &["q"]), harness.worker(0, &["q"]));
    let (unlimited, _) = harness.joining(Slots::Unlimited, &["q"]);
    let client = harness.client();
    assert_eq!(harness.request(client, ask(1, "q", "work")), [turn(busy, "work")]);
    assert_eq!(
        broadcast(&mut harness, client, call(2, "hi")),
        [part(busy, "hi"), part(none, "hi"), part(unlimited, "hi")]
    );
    assert_eq!(harness.status().slots_used, 1);
    assert_eq!(broadcast(&mut harness, client, call(3, "ho")).len(), 3, "and again");
    assert_eq!(harness.reply(busy, "work", "done"), [reply(client, 1, "done")]);
    assert_eq!(harness.request(client, ask(4, "q", "more")), [turn(unlimited, "more")], "it took no turn in the rota");
    assert_eq!(harness.reply(busy, "hi", "A"), [answer(client, 2, (1, busy), "A")]);
}

/// Proves S2.15: nobody consumes the queue, or nobody that takes new work: 0 of 0 at once, and nothing is kept.
#[test]
fn without_consumers_it_ends_at_once() {
    let mut harness = Harness::new();
    let client = harness.client();
    assert_eq!(broadcast(&mut harness, client, call(1, "hi")), [over(client, 1, of(0))]);
    idle(&mut harness);
    let (draining, greeting) = (harness.worker(1, &["q"]), harness.connect());
    assert_eq!(harness.say(Input::PeerClosing { conn: draining }), []);
    assert_eq!(harness.register(greeting, Slots::Limited(1)), Ok(vec![]));
    assert_eq!(harness.consume(greeting, "q"), Ok(vec![]));
    assert_eq!(
        broadcast(&mut harness, client, call(2, "hi")),
        [over(client, 2, of(0))],
        "no first PING, no work (S1.7)"
    );
    assert_eq!(harness.ready(greeting), [], "it came too late");
    assert_eq!(broadcast(&mut harness, client, call(3, "ho")), [part(greeting, "ho")]);
}

/// Proves S2.14: the sender's own connection gets it, unless it says SKIP_SELF; another of the same name is another.
#[test]
fn the_sender_is_left_out_if_it_says_so() {
    let mut harness = Harness::new();
    let (own, other) = (harness.worker(1, &["q"]), harness.worker(1, &["q"]));
    assert_eq!(broadcast(&mut harness, own, call(1, "hi")), [part(own, "hi"), part(other, "hi")]);
    assert_eq!(harness.reply(own, "hi", "me"), [answer(own, 1, (1, own), "me")]);
    let skip = Broadcast { skip_self: true, ..call(2, "ho") };
    assert_eq!(broadcast(&mut harness, own, skip.clone()), [part(other, "ho")]);
    assert_eq!(harness.leave(other).len(), 2, "both end");
    assert_eq!(broadcast(&mut harness, own, skip), [over(own, 2, of(0))]);
}

/// Proves S2.11, S2.12 and S2.15: without a reply it is over when it is written; nothing is kept, nothing need be settled,
/// and what settles it all the same is ignored.
#[test]
fn a_no_reply_broadcast_leaves_nothing_behind() {
    let mut harness = Harness::new();
    let (a, b, client) = (harness.worker(1, &["q"]), harness.worker(1, &["q"]), harness.client());
    let no_reply = Broadcast { no_reply: true, ..call(1, "hi") };
    let got = [part(a, "hi").one_way(), part(b, "hi").one_way(), over(client, 1, of(2))];
    assert_eq!(broadcast(&mut harness, client, no_reply), got);
    idle(&mut harness);
    assert_eq!(harness.ack(a, "hi"), []);
    assert_eq!(harness.reply(a, "hi", "unasked"), []);
    assert_eq!(harness.fail(b, "hi", "no"), []);
    assert_eq!(harness.leave(b), []);
    let counters = harness.counters();
    assert_eq!((counters.late, counters.doubled, counters.forged, counters.deliveries), (0, 0, 0, 2));
    assert_eq!(harness.pass(60_000), []);
}

/// Proves S2.13, I12 and I13: at the deadline those that have not answered count as expired and are told to stop; the
/// end comes once, and later messages change nothing.
#[test]
fn the_deadline_ends_it_for_those_that_are_silent() {
    let mut harness = Harness::new();
    let (a, b, c, client) =
        (harness.worker(1, &["q"]), harness.worker(1, &["q"]), harness.worker(1, &["q"]), harness.client());
    let call = Broadcast { deadline_ms: Some(500), ..call(1, "hi") };
    assert_eq!(broadcast(&mut harness, client, call).len(), 3);
    assert_eq!(harness.reply(b, "hi", "B"), [answer(client, 1, (2, b), "B")]);
    assert_eq!(harness.pass(499), []);
    let end = BroadcastEnd { answered: 1, expired: 2, who_expired: vec![party(1, a), party(3, c)], ..of(3) };
    let stopped = |harness: &Harness, worker| harness.stopped(worker, "hi", Code::TimedOut);
    let expected = [stopped(&harness, a), stopped(&harness, c), over(client, 1, end)];
    assert_eq!(harness.pass(1), expected);
    assert_eq!(harness.reply(a, "hi", "late"), []);
    assert_eq!((harness.counters().late, harness.counters().expired), (1, 2));
    assert_eq!(harness.pass(limits::CANCEL_GRACE_MS), [], "the other one never stops");
    idle(&mut harness);
}

/// S2.13: the usual deadline of requests holds for a broadcast that names none.
#[test]
fn a_broadcast_that_names_no_deadline_has_the_usual_one() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(broadcast(&mut harness, client, call(1, "hi")), [part(worker, "hi")]);
    assert_eq!(harness.pass(29_999), []);
    let end = BroadcastEnd { expired: 1, who_expired: vec![party(1, worker)], ..of(1) };
    assert_eq!(harness.pass(1), [harness.stopped(worker, "hi", Code::TimedOut), over(client, 1, end)]);
}

/// Proves S2.13 and S2.15: a consumer that is lost, or leaves in order, counts as left; its part goes to nobody else.
#[test]
fn those_that_leave_are_counted_and_named() {
    let mut harness = Harness::new();
    let (lost, bye, stopped) = (harness.worker(1, &["q"]), harness.worker(1, &["q"]), harness.worker(1, &["q"]));
    let (stays, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(broadcast(&mut harness, client, call(1, "hi")).len(), 4);
    assert_eq!(harness.leave(lost), []);
    assert_eq!(harness.deregister(bye), Ok(vec![]));
    assert_eq!(harness.leave(bye), []);
    let stop = AdminCall::WorkerStop { worker: "3".to_owned(), now: true };
    let said = harness.say(Input::Admin { conn: client, seq: 9, call: stop });
    assert!(!said.iter().any(|seen| matches!(seen, Seen::Turn(_))), "{said:?}");
    let who_left = vec![party(1, lost), party(2, bye), party(3, stopped)];
    let end = BroadcastEnd { answered: 1, left: 3, who_left, ..of(4) };
    assert_eq!(harness.reply(stays, "hi", "S"), [answer(client, 1, (4, stays), "S"), over(client, 1, end)]);
    idle(&mut harness);
    assert_eq!(harness.counters().retried, 0);
}

/// S2.13: one that deregistered may still answer what it has; one that takes itself out of the queue too.
#[test]
fn one_that_takes_no_more_work_may_still_answer() {
    let mut harness = Harness::new();
    let (bye, out, client) = (harness.worker(1, &["q"]), harness.worker(1, &["q"]), harness.client());
    assert_eq!(broadcast(&mut harness, client, call(1, "hi")).len(), 2);
    assert_eq!(harness.deregister(bye), Ok(vec![]));
    assert_eq!(harness.cancel_queue(out, "q"), Ok(vec![]));
    assert_eq!(broadcast(&mut harness, client, call(2, "ho")), [over(client, 2, of(0))]);
    assert_eq!(harness.reply(bye, "hi", "B"), [answer(client, 1, (1, bye), "B")]);
    let end = BroadcastEnd { answered: 2, ..of(2) };
    assert_eq!(harness.reply(out, "hi", "O"), [answer(client, 1, (2, out), "O"), over(client, 1, end)]);
}

/// Proves S2.13 and S2.15: a failure comes back with its text and is never tried again.
#[test]
fn failures_come_back_and_are_not_retried() {
    let mut harness = Harness::new();
    let (a, b, client) = (harness.worker(1, &["q"]), harness.worker(1, &["q"]), harness.client());
    assert_eq!(broadcast(&mut harness, client, call(1, "hi")).len(), 2);
    assert_eq!(harness.fail(a, "hi", "disk full"), [said(client, 1, (1, a), "disk full", false, true)]);
    let end = BroadcastEnd { failed: 2, ..of(2) };
    let last = [said(client, 1, (2, b), "never", false, true), over(client, 1, end)];
    assert_eq!(harness.fail_for_good(b, "hi", "never"), last);
    assert_eq!((harness.counters().failed, harness.counters().retried, harness.status().dead), (2, 0, 0));
}

/// S2.13: pieces of several consumers are mixed, each with its name; progress goes nowhere.
#[test]
fn pieces_tell_whose_they_are() {
    let mut harness = Harness::new();
    let (a, b, client) = (harness.worker(1, &["q"]), harness.worker(1, &["q"]), harness.client());
    assert_eq!(broadcast(&mut harness, client, call(1, "hi")).len(), 2);
    assert_eq!(harness.piece(a, "hi", "a1"), [said(client, 1, (1, a), "a1", true, false)]);
    assert_eq!(harness.piece(b, "hi", "b1"), [said(client, 1, (2, b), "b1", true, false)]);
    let message = Input::worker(a, harness.held(a, "hi"), WorkerMessage::Progress { payload: body("half") });
    assert_eq!(harness.say(message), []);
    assert_eq!(harness.reply(a, "hi", "a2"), [answer(client, 1, (1, a), "a2")]);
    let end = BroadcastEnd { answered: 1, left: 1, who_left: vec![party(2, b)], ..of(2) };
    assert_eq!(harness.leave(b), [over(client, 1, end)]);
}

/// Proves S2.13 and I13: given up by its caller or by an admin it has one end, and every consumer is told to stop.
#[test]
fn a_cancelled_broadcast_ends_once() {
    let mut harness = Harness::new();
    let (a, b, client) = (harness.worker(1, &["q"]), harness.worker(1, &["q"]), harness.client());
    assert_eq!(broadcast(&mut harness, client, call(1, "hi")).len(), 2);
    assert_eq!(harness.reply(a, "hi", "A"), [answer(client, 1, (1, a), "A")]);
    let told = [harness.stopped(b, "hi", Code::Cancelled), undelivered(client, 1, Code::Cancelled)];
    assert_eq!(harness.cancel(client, 1), told);
    assert_eq!(harness.cancel(client, 1), []);
    assert_eq!(harness.fail(b, "hi", "stopped"), []);
    idle(&mut harness);

    assert_eq!(broadcast(&mut harness, client, call(2, "ho")).len(), 2);
    let id = harness.id(a, "ho").to_string();
    let (shown, _) = harness.admin(AdminCall::MessageExplain { id: id.clone() });
    let Ok(AdminAnswer::Message { explanation }) = shown else { panic!("{shown:?}") };
    assert_eq!(explanation.because.0, Reason::AtConsumers { consumers: 2, open: 2, brokers: 0 });
    assert_eq!(explanation.message.kind, MessageKind::Broadcast);
    assert_eq!(explanation.message.state, MessageState::InFlight);
    let seen = harness.say(Input::Admin { conn: client, seq: 5, call: AdminCall::MessageCancel { id } });
    for told in [
        harness.stopped(a, "ho", Code::Cancelled),
        harness.stopped(b, "ho", Code::Cancelled),
        undelivered(client, 2, Code::Cancelled),
    ] {
        assert!(seen.contains(&told), "{told:?} in {seen:?}");
    }
    assert_eq!(harness.counters().cancelled, 2);
}

/// Proves S1.35, S2.12 and I12: when the caller is gone, consumers that have not answered are told to stop at once, nothing is kept
/// until the deadline, and what consumers still say is late.
#[test]
fn a_broadcast_ends_with_its_caller() {
    let mut harness = Harness::new();
    let (a, b, c, client) =
        (harness.worker(1, &["q"]), harness.worker(1, &["q"]), harness.worker(1, &["q"]), harness.client());
    assert_eq!(broadcast(&mut harness, client, Broadcast { deadline_ms: Some(500), ..call(1, "hi") }).len(), 3);
    assert_eq!(harness.reply(a, "hi", "A"), [answer(client, 1, (1, a), "A")]);
    let told = [harness.stopped(b, "hi", Code::CallerGone), harness.stopped(c, "hi", Code::CallerGone)];
    assert_eq!(harness.leave(client), told);
    assert_eq!(harness.counters().cancelled, 1);
    assert_eq!(harness.reply(b, "hi", "B"), []);
    assert_eq!(harness.fail(c, "hi", "stopped"), []);
    assert_eq!(harness.counters().late, 2);
    idle(&mut harness);
    assert_eq!(harness.pass(500), []);
    // A consumer that never stops is waited for no longer than any other.
    let client = harness.client();
    assert_eq!(broadcast(&mut harness, client, call(1, "he")).len(), 3);
    assert_eq!(harness.leave(client).len(), 3);
    assert_eq!(harness.pass(limits::CANCEL_GRACE_MS), []);
    idle(&mut harness);
    // Everyone leaves: the last delivery takes the queue with it.
    let client = harness.client();
    assert_eq!(broadcast(&mut harness, client, call(1, "ho")).len(), 3);
    assert_eq!(harness.leave(client).len(), 3);
    for worker in [a, b, c] {
        assert_eq!(harness.leave(worker), []);
    }
    assert_eq!(harness.status().queues, 0);
}

/// Proves S1.35 and S2.9: a consumer that asks itself too and goes is told nothing, and leaves nothing behind.
#[test]
fn a_caller_that_consumes_what_it_broadcasts() {
    let mut harness = Harness::new();
    let (both, other) = (harness.worker(1, &["q"]), harness.worker(1, &["q"]));
    assert_eq!(broadcast(&mut harness, both, call(1, "hi")), [part(both, "hi"), part(other, "hi")]);
    assert_eq!(harness.leave(both), [harness.stopped(other, "hi", Code::CallerGone)]);
    assert_eq!(harness.fail(other, "hi", "stopped"), []);
    idle(&mut harness);
    assert_eq!(broadcast(&mut harness, other, call(1, "ho")), [part(other, "ho")]);
    assert_eq!(harness.leave(other), []);
    assert_eq!(harness.status().queues, 0);
}

/// Proves S2.17: in a drain new ones are refused with `closing`, those that run may end, and what is cut short says so.
#[test]
fn a_drain_lets_it_end_and_refuses_new_ones() {
    let mut harness = Harness::new();
    let (a, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(broadcast(&mut harness, client, call(1, "hi")).len(), 1);
    assert_eq!(broadcast(&mut harness, client, call(2, "ho")).len(), 1);
    let shutdown = turno_proto::model::ClosingReason::Shutdown;
    let told = [closing(a, shutdown, 1_000), closing(client, shutdown, 1_000)];
    assert_eq!(harness.say(Input::Drain { within_ms: 1_000 }), told);
    assert_eq!(broadcast(&mut harness, client, call(3, "no")), [undelivered(client, 3, Code::Closing)]);
    let no_reply = Broadcast { no_reply: true, ..call(4, "no") };
    assert_eq!(broadcast(&mut harness, client, no_reply), [undelivered(client, 4, Code::Closing)]);
    let end = BroadcastEnd { answered: 1, ..of(1) };
    assert_eq!(harness.reply(a, "hi", "A"), [answer(client, 1, (1, a), "A"), over(client, 1, end)]);
    assert_eq!(harness.pass(1_000), [undelivered(client, 2, Code::CutShort), drained(0, 1, 0)]);
}

/// Limits and bad input: each refusal is one UNDELIVERED, and nobody gets anything.
#[test]
fn what_is_refused_goes_to_nobody() {
    let limits = Limits { in_flight_max: 1, memory_bytes_max: 1_000, ..Limits::default() };
    let mut harness = Harness::with(Settings { limits, ..Settings::default() });
    let (a, client) = (harness.worker(1, &["q"]), harness.client());
    let late = Broadcast { deadline_ms: Some(0), ..call(1, "hi") };
    assert_eq!(broadcast(&mut harness, client, late), [undelivered(client, 1, Code::TimedOut)]);
    let unknown = Input::Broadcast { conn: client, broadcast: Broadcast { handle: 77, ..call(2, "hi") } };
    assert_eq!(harness.say(unknown), [undelivered(client, 2, Code::UnknownHandle)]);
    let large = "x".repeat(1_000);
    assert_eq!(broadcast(&mut harness, client, call(3, &large)), [undelivered(client, 3, Code::OverMemory)]);
    assert_eq!(broadcast(&mut harness, client, call(4, "hi")), [part(a, "hi")]);
    assert_eq!(broadcast(&mut harness, client, call(5, "hi")), [undelivered(client, 5, Code::TooManyInFlight)]);
    assert_eq!(harness.counters().refused, 4);
}

/// What is written to many at a time takes room in each of their out-buffers.
#[test]
fn a_body_counts_once_for_each_consumer() {
    let limits = Limits { memory_bytes_max: 1_000, ..Limits::default() };
    let mut harness = Harness::with(Settings { limits, ..Settings::default() });
    let client = harness.client();
    let large = Broadcast { no_reply: true, ..call(1, &"x".repeat(400)) };
    harness.worker(1, &["q"]);
    harness.worker(1, &["q"]);
    assert_eq!(broadcast(&mut harness, client, large.clone()).len(), 3);
    harness.worker(1, &["q"]);
    assert_eq!(broadcast(&mut harness, client, large), [undelivered(client, 1, Code::OverMemory)]);
}

/// What many consumers take while they are silent is counted, and refused beyond the limit.
#[test]
fn the_records_of_consumers_count_as_memory() {
    let limits = Limits { memory_bytes_max: 700, ..Limits::default() };
    let mut harness = Harness::with(Settings { limits, ..Settings::default() });
    let client = harness.client();
    let workers: Vec<ConnId> = (0..3).map(|_| harness.worker(1, &["q"])).collect();
    assert_eq!(broadcast(&mut harness, client, call(1, "hi")).len(), 3);
    assert_eq!(harness.status().bytes, 4 * 128, "the body is nowhere any more");
    assert_eq!(broadcast(&mut harness, client, call(2, "hi")), [undelivered(client, 2, Code::OverMemory)]);
    let no_reply = Broadcast { no_reply: true, ..call(3, "hi") };
    assert_eq!(broadcast(&mut harness, client, no_reply).len(), 4, "nothing is kept of this one");
    let ends = workers.into_iter().flat_map(|worker| harness.leave(worker)).count();
    assert_eq!((ends, harness.status().bytes), (1, 0));
}

/// A lease takes deliveries back from workers; those of broadcasts end with their deadline alone.
#[test]
fn leases_do_not_hold_for_it() {
    let mut harness = Harness::with(Settings { lease_ms: Some(100), ..Settings::default() });
    let (a, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(broadcast(&mut harness, client, call(1, "hi")), [part(a, "hi")]);
    let delivery = harness.held(a, "hi");
    assert_eq!(harness.say(Input::worker(a, delivery, WorkerMessage::Extend { lease_ms: 50 })), []);
    assert_eq!(harness.pass(5_000), []);
    let end = BroadcastEnd { answered: 1, ..of(1) };
    assert_eq!(harness.reply(a, "hi", "A"), [answer(client, 1, (1, a), "A"), over(client, 1, end)]);
}

/// Proves I12: only its holder settles a delivery of a broadcast.
#[test]
fn nobody_answers_for_another() {
    let mut harness = Harness::new();
    let (a, b, client) = (harness.worker(1, &["q"]), harness.worker(1, &["q"]), harness.client());
    assert_eq!(broadcast(&mut harness, client, call(1, "hi")).len(), 2);
    let of_a = harness.held(a, "hi");
    assert_eq!(harness.reply_to(b, of_a, "forged"), []);
    assert_eq!(harness.counters().forged, 1);
    assert_eq!(harness.reply(a, "hi", "A"), [answer(client, 1, (1, a), "A")]);
}

/// Names are bounded, numbers are not.
#[test]
fn only_so_many_are_named() {
    let mut harness = Harness::new();
    let client = harness.client();
    let workers: Vec<ConnId> = (0..limits::BROADCAST_NAMES_MAX + 5).map(|_| harness.worker(1, &["q"])).collect();
    let all = u32::try_from(workers.len()).unwrap();
    broadcast(&mut harness, client, Broadcast { deadline_ms: Some(10), ..call(1, "hi") });
    let seen = harness.pass(10);
    let Some(Seen::Said(Effect::Peer(PeerEffect::Caller { message: CallerMessage::BroadcastEnd(end), .. }))) =
        seen.last()
    else {
        panic!("{seen:?}")
    };
    assert_eq!((end.expired, end.who_expired.len()), (all, limits::BROADCAST_NAMES_MAX));
}
