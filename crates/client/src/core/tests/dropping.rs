//! Dropping from a queue, and the return to it.

use turno_proto::model::{Again, Delivery};
use turno_proto::native::{Closing, ClosingReason, Deliver};

use super::super::{Held, Settlement};
use super::*;

fn dropped(handle: u32) -> Frame<'static> {
    Frame::CancelQueue { seq: 0, handle, reason: Some(Code::Dropped) }
}

fn told(again_ms: u64) -> CoreEvent {
    CoreEvent::Dropped { queue: queue("q"), reason: Code::Dropped, again_ms: Some(again_ms) }
}

fn deliver(index: u32, handle: u32) -> Frame<'static> {
    Frame::Deliver(Deliver { handle, ..delivered(Delivery { index, stamp: index }) })
}

fn held(rig: &TestCore, index: u32) -> Held {
    Held { epoch: rig.core.link.epoch, delivery: Delivery { index, stamp: index } }
}

/// The number of the CONSUME that was just written for that handle.
fn consumed(rig: &mut TestCore, handle: u32) -> u32 {
    let sent = rig.sent();
    let seqs: Vec<u32> = frames(&sent)
        .into_iter()
        .filter_map(|frame| match frame {
            Frame::Consume { seq, handle: at, .. } if at == handle => Some(seq),
            _ => None,
        })
        .collect();
    let [seq] = seqs[..] else { panic!("{seqs:?}") };
    seq
}

/// Answers the broker's pings until the time is over, and tells what happened but for them.
fn pass(rig: &mut TestCore, millis: u64) -> Vec<CoreEvent> {
    rig.say(&[Frame::Pong { seq: 99 }]);
    rig.pass_ms(millis);
    rig.events()
}

/// Proves S2.32: the worker hears of it, keeps its connection and its other queues, and asks again after a second.
#[test]
fn a_dropped_worker_asks_again_after_a_pause() {
    let mut rig = TestCore::worker(&["a"], &["q", "r"]);
    rig.say(&[dropped(0)]);
    assert_eq!(rig.events(), [told(1_000)]);
    assert_eq!(pass(&mut rig, 999), []);
    assert!(rig.sent().is_empty());
    assert_eq!(pass(&mut rig, 1), []);
    let seq = consumed(&mut rig, 0);
    rig.say(&[Frame::Ok { seq }, deliver(7, 1)]);
    let events = rig.events();
    assert_eq!(events[0], CoreEvent::Returned { queue: queue("q") });
    assert!(matches!(&events[1], CoreEvent::Deliver(handed) if handed.queue == queue("r")));
}

/// Every drop doubles the pause, up to half a minute; a delivery settled in time takes it back to a second. One that
/// was cancelled, one of another queue and one from before the drop do not.
#[test]
fn the_pause_grows_until_a_delivery_is_settled_in_time() {
    let mut rig = TestCore::worker(&["a"], &["q", "r"]);
    rig.say(&[deliver(1, 0)]);
    for (round, pause_ms) in (0..).zip([1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]) {
        rig.events();
        rig.say(&[dropped(0)]);
        assert_eq!(rig.events(), [told(pause_ms)], "{round}");
        for _ in 0..pause_ms / 1_000 {
            pass(&mut rig, 1_000);
        }
        let seq = consumed(&mut rig, 0);
        let (late, other) = (100 + round, 200 + round);
        rig.say(&[Frame::Ok { seq }, deliver(late, 0), deliver(other, 1)]);
        rig.say(&[Frame::Cancel { seq: late, word: late, reason: Some(Code::TimedOut) }]);
        for index in [late, other] {
            assert!(rig.core.settle(held(&rig, index), Settlement::Ack));
        }
        rig.sent();
    }
    assert!(rig.core.settle(held(&rig, 1), Settlement::Ack), "it may still settle what it had");
    rig.say(&[deliver(300, 0)]);
    assert!(rig.core.settle(held(&rig, 300), Settlement::Fail { again: Again::AsSet, payload: Payload::default() }));
    rig.events();
    rig.say(&[dropped(0)]);
    assert_eq!(rig.events(), [told(1_000)]);
}

/// A broker that does not take the worker back yet is asked again later; one that says twice that it dropped it is
/// heard once.
#[test]
fn a_refusal_is_asked_about_again() {
    let mut rig = TestCore::worker(&["a"], &["q"]);
    rig.say(&[dropped(0), dropped(0)]);
    assert_eq!(rig.events(), [told(1_000)]);
    pass(&mut rig, 1_000);
    let seq = consumed(&mut rig, 0);
    rig.say(&[Frame::Error { seq, code: Code::TooManyQueues, fatal: false, detail: "" }]);
    assert_eq!(pass(&mut rig, 1_999), []);
    assert!(!frames(&rig.sent()).iter().any(|frame| matches!(frame, Frame::Consume { .. })));
    pass(&mut rig, 1);
    let seq = consumed(&mut rig, 0);
    rig.say(&[Frame::Error { seq, code: Code::AlreadyConsuming, fatal: false, detail: "" }]);
    assert_eq!(pass(&mut rig, 4_000), [], "it never left");
}

/// A worker that does not want to come back hears of it once and asks for nothing; its other queues go on. On the
/// next connection it is a worker like others.
#[test]
fn who_does_not_want_to_come_back_does_not_ask() {
    let mut rig = TestCore::worker_with(Settings { come_back: false, ..settings(&["a"]) }, &["q", "r"]);
    rig.say(&[dropped(0), dropped(0)]);
    assert_eq!(rig.events(), [CoreEvent::Dropped { queue: queue("q"), reason: Code::Dropped, again_ms: None }]);
    for _ in 0..60 {
        assert_eq!(pass(&mut rig, 1_000), []);
        assert!(!frames(&rig.sent()).iter().any(|frame| matches!(frame, Frame::Consume { .. })));
    }
    rig.say(&[deliver(7, 1)]);
    assert!(matches!(&rig.events()[..], [CoreEvent::Deliver(handed)] if handed.queue == queue("r")));
    rig.say(&[dropped(1)]);
    assert_eq!(rig.events(), [CoreEvent::Dropped { queue: queue("r"), reason: Code::Dropped, again_ms: None }]);
    rig.core.handle_disconnected(rig.now, "reset");
    rig.greet();
    rig.answer_register(2);
    rig.events();
    rig.say(&[dropped(0)]);
    assert_eq!(rig.events(), [CoreEvent::Dropped { queue: queue("q"), reason: Code::Dropped, again_ms: None }]);
}

/// Nothing is asked of a broker that closes, and a worker that wants nothing more asks for nothing.
#[test]
fn nobody_asks_again_who_is_leaving() {
    let mut rig = TestCore::worker(&["a"], &["q"]);
    rig.say(&[deliver(1, 0), dropped(0)]);
    rig.say(&[Frame::Closing { closing: Closing { reason: ClosingReason::Shutdown, within_ms: 0 } }]);
    pass(&mut rig, 3_000);
    assert!(!frames(&rig.sent()).iter().any(|frame| matches!(frame, Frame::Consume { .. })));

    let mut rig = TestCore::worker(&["a"], &["q"]);
    rig.say(&[dropped(0)]);
    rig.core.deregister();
    rig.sent();
    pass(&mut rig, 3_000);
    assert!(!frames(&rig.sent()).iter().any(|frame| matches!(frame, Frame::Consume { .. })));
    rig.say(&[dropped(0)]);
    assert_eq!(rig.events(), []);
}

/// A broker that drops the worker from what it never consumed is not to be trusted.
#[test]
fn a_queue_that_was_never_consumed_cannot_be_lost() {
    let mut rig = TestCore::worker(&["a", "b"], &["q"]);
    rig.say(&[dropped(1)]);
    assert!(matches!(&rig.events()[0], CoreEvent::Lost { reason, .. } if reason.contains("never consumed")));
}
