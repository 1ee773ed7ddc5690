//! Broadcasts: what goes out, what comes back, and the worker's side of them.

use turno_proto::model::{BroadcastEnd, Cost, Delivery};
use turno_proto::native::{Answer, Deliver, RawBroadcast};

use super::super::{Held, Settlement};
use super::*;

fn frame(seq: u32, deadline_ms: Option<u32>) -> RawBroadcast<'static> {
    let raw = Raw { headers: false, bytes: b"x" };
    RawBroadcast { seq, handle: 0, deadline_ms, no_reply: false, skip_self: false, payload: raw }
}

fn answer(seq: u32, more: bool, failed: bool, body: &str) -> Frame<'_> {
    Frame::Answer(Answer { seq, worker: 42, name: "w", more, failed, raw: raw(body) })
}

fn answered(ticket: u64, more: bool, failed: bool, body: &'static str) -> CoreEvent {
    let (ticket, name, payload) = (Ticket(ticket), "w".to_owned(), Payload::body(body));
    CoreEvent::Answer { ticket, worker: 42, name, more, failed, payload }
}

fn end(seq: u32, consumers: u32) -> Frame<'static> {
    Frame::BroadcastEnd { seq, end: Box::new(BroadcastEnd { consumers, ..BroadcastEnd::default() }) }
}

fn ended(ticket: u64, consumers: u32) -> CoreEvent {
    let end = BroadcastEnd { consumers, ..BroadcastEnd::default() };
    CoreEvent::BroadcastEnd { ticket: Ticket(ticket), end: Box::new(end) }
}

impl TestCore {
    fn broadcast(&mut self, ticket: u64, ask: Ask) {
        self.core.broadcast(self.now, Ticket(ticket), ask);
    }
}

/// Proves S2.13: answers come as they arrive, and the end is one; what comes after it is nobody's.
#[test]
fn answers_come_one_by_one_and_then_the_end() {
    let mut rig = TestCore::open(&["a"]);
    rig.broadcast(1, ask("q", "x"));
    rig.broadcast(2, Ask { timeout_ms: Some(700), no_reply: true, skip_self: true, ..ask("q", "x") });
    let second = RawBroadcast { no_reply: true, skip_self: true, ..frame(5, Some(700)) };
    let expected =
        [Frame::Open { seq: 3, handle: 0, name: b"q" }, Frame::Broadcast(frame(4, None)), Frame::Broadcast(second)];
    assert_eq!(frames(&rig.sent()), expected);
    let said =
        [answer(4, true, false, "one"), end(5, 3), answer(4, false, false, "two"), answer(4, false, true, "oops")];
    rig.say(&said);
    rig.say(&[end(4, 2), answer(4, false, false, "late"), end(4, 2)]);
    let expected = [
        answered(1, true, false, "one"),
        ended(2, 3),
        answered(1, false, false, "two"),
        answered(1, false, true, "oops"),
        ended(1, 2),
    ];
    assert_eq!(rig.events(), expected);
    assert_eq!(rig.core.calls.len(), 0);
}

/// Given up, it is told to the broker; silent brokers end it one second after its own time.
#[test]
fn it_ends_once_however_it_ends() {
    let mut rig = TestCore::open(&["a"]);
    rig.broadcast(1, ask("q", "x"));
    rig.sent();
    rig.core.cancel(Ticket(1));
    assert_eq!(frames(&rig.sent()), [Frame::Cancel { seq: 4, word: 0, reason: None }]);
    rig.say(&[Frame::Undelivered { seq: 4, code: Code::Cancelled, raw: raw("") }]);
    assert_eq!(rig.events(), [failed(1, Code::Cancelled)]);

    rig.broadcast(2, Ask { timeout_ms: Some(500), ..ask("q", "x") });
    rig.sent();
    rig.pass_ms(1_499);
    assert_eq!(rig.events(), []);
    rig.pass_ms(1);
    assert_eq!(rig.events(), [failed(2, Code::TimedOut)]);
}

/// A broadcast that was written before the connection was lost may have been done: it ends, unless its caller does not mind. One that has begun to be
/// answered never begins anew, and one that a closing broker gave back was never begun.
#[test]
fn a_lost_connection_ends_it_unless_it_may_go_out_twice() {
    let mut rig = TestCore::open(&["a", "b"]);
    rig.broadcast(1, ask("q", "x"));
    rig.broadcast(2, Ask { resend: true, ..ask("q", "x") });
    rig.broadcast(3, Ask { resend: true, ..ask("q", "x") });
    rig.broadcast(4, ask("q", "x"));
    rig.sent();
    rig.say(&[answer(6, false, false, "begun"), Frame::Undelivered { seq: 7, code: Code::Closing, raw: raw("") }]);
    rig.core.handle_disconnected(rig.now, "gone");
    let events = rig.events();
    let ends: Vec<&CoreEvent> = events.iter().filter(|event| matches!(event, CoreEvent::Failed { .. })).collect();
    assert_eq!(ends, [&failed(1, Code::ConnectionLost), &failed(3, Code::ConnectionLost)]);
    rig.greet();
    let sent = rig.sent();
    let again = frames(&sent).into_iter().filter(|frame| matches!(frame, Frame::Broadcast(_))).count();
    assert_eq!(again, 2, "the second and the fourth go to the next broker");
}

/// A broker that answers a request as if it were a broadcast, or the other way round, is as good as lost.
#[test]
fn answers_of_the_wrong_kind_end_the_connection() {
    for wrong in [answer(4, false, false, "x"), end(4, 1), reply(5, "x"), Frame::Delivered { seq: 5 }] {
        let mut rig = TestCore::open(&["a", "b"]);
        rig.request(1, ask("q", "x"));
        rig.broadcast(2, ask("q", "x"));
        rig.sent();
        rig.say(std::slice::from_ref(&wrong));
        let events = rig.events();
        assert!(matches!(events.first(), Some(CoreEvent::Lost { .. })), "{wrong:?}: {events:?}");
    }
}

fn deliver(delivery: Delivery, wants_reply: bool) -> Frame<'static> {
    Frame::Deliver(Deliver { cost: Cost::Broadcast, wants_reply, ..delivered(delivery) })
}

/// Proves S2.12 and S2.15: a worker takes broadcasts beyond its slots, and there is nothing to settle of one that wants no
/// reply.
#[test]
fn a_worker_takes_more_broadcasts_than_it_has_slots() {
    let mut rig = TestCore::worker(&["a"], &["q"]);
    let held = |rig: &TestCore, delivery| Held { epoch: rig.core.link.epoch, delivery };
    for stamp in 0..10 {
        rig.say(&[deliver(Delivery { index: stamp, stamp }, true)]);
        rig.say(&[deliver(Delivery { index: u32::MAX, stamp: 100 + stamp }, false)]);
    }
    assert_eq!(rig.events().len(), 20, "all of them are handed out");
    let quiet = held(&rig, Delivery { index: u32::MAX, stamp: 100 });
    assert!(!rig.core.settle(quiet, Settlement::Ack), "nobody waits for it");
    assert_eq!(frames(&rig.sent()), []);
    let asked = held(&rig, Delivery { index: 3, stamp: 3 });
    assert!(rig.core.settle(asked, Settlement::Reply(Payload::body("done"))));
    assert_eq!(frames(&rig.sent()), [Frame::Reply { seq: 3, word: 3, more: false, raw: raw("done") }]);
}
