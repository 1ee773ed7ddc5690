//! Registering, deliveries, settling.

use turno_proto::model::{Again, Cost, Delivery, MessageId};
use turno_proto::native::{Closing, ClosingReason};

use super::super::{Handed, Held, Settlement};
use super::*;

const FIRST: Delivery = Delivery { index: 7, stamp: 70 };
const SECOND: Delivery = Delivery { index: 8, stamp: 80 };

fn deliver(delivery: Delivery) -> Frame<'static> {
    Frame::Deliver(delivered(delivery))
}

fn handed(rig: &TestCore, delivery: Delivery) -> CoreEvent {
    CoreEvent::Deliver(Box::new(Handed {
        held: held(rig, delivery),
        queue: queue("q"),
        id: MessageId::new(1, 2, 3),
        attempt: 1,
        cost: Cost::ONE,
        deadline_ms: Some(900),
        wants_reply: true,
        token: None,
        payload: Payload::body("work"),
    }))
}

fn held(rig: &TestCore, delivery: Delivery) -> Held {
    Held { epoch: rig.core.link.epoch, delivery }
}

/// Proves S0.39: registered means that REGISTER and every CONSUME were answered.
#[test]
fn a_worker_registers_after_the_greeting() {
    let mut rig = TestCore::new(&["a"]);
    rig.core.register(rig.now, registration(&["q", "r", "q"]));
    rig.greet();
    let sent = rig.sent();
    assert_eq!(
        frames(&sent),
        [
            register_frame(3),
            Frame::Open { seq: 4, handle: 0, name: b"q" },
            Frame::Open { seq: 5, handle: 1, name: b"r" },
            Frame::Consume { seq: 6, handle: 0, exclusive: false },
            Frame::Consume { seq: 7, handle: 1, exclusive: false },
        ]
    );
    rig.events();
    rig.say(&[3, 4, 5, 6].map(|seq| Frame::Ok { seq }));
    assert_eq!(rig.events(), []);
    rig.say(&[Frame::Ok { seq: 7 }]);
    assert_eq!(rig.events(), [CoreEvent::Registered]);
}

/// Proves S0.39: a refusal, whichever frame it answers, leaves the worker unregistered and is reported.
#[test]
fn a_refused_worker_reports_it_and_tries_the_next_broker() {
    for seq in [3, 4, 5] {
        let mut rig = TestCore::new(&["a", "b"]);
        rig.core.register(rig.now, registration(&["q"]));
        rig.greet();
        rig.events();
        rig.say(&[Frame::Error { seq, code: Code::TooManyQueues, fatal: false, detail: "full" }]);
        assert_eq!(
            rig.events(),
            [
                CoreEvent::NotRegistered { code: Code::TooManyQueues, detail: "full".to_owned() },
                CoreEvent::Lost {
                    address: tcp("a"),
                    reason: "the broker rejected this worker: too_many_queues".to_owned()
                },
                CoreEvent::Disconnect { flush: false },
                CoreEvent::Connect { address: tcp("b") },
            ],
            "{seq}"
        );
    }
}

/// Proves S0.39: so does no answer in time.
#[test]
fn an_unanswered_register_is_reported() {
    let mut rig = TestCore::new(&["a"]);
    rig.core.register(rig.now, registration(&["q"]));
    rig.greet();
    rig.events();
    rig.sent();
    rig.pass_ms(4_999);
    assert_eq!(rig.events(), []);
    rig.pass_ms(1);
    let events = rig.events();
    assert!(matches!(events.first(), Some(CoreEvent::NotRegistered { code: Code::TimedOut, .. })), "{events:?}");
    assert!(matches!(events.last(), Some(CoreEvent::GaveUp { .. })), "{events:?}");
}

/// Proves S0.41: REGISTER and CONSUME on every new connection, with the slots of the last resize.
#[test]
fn a_worker_registers_again_after_a_lost_connection() {
    let mut rig = TestCore::worker(&["a", "b"], &["q"]);
    rig.core.resize(rig.now, Ticket(1), Slots::Unlimited);
    let sent = rig.sent();
    let resize = Frame::Resize { seq: 6, register: Register::new(Slots::Unlimited, "") };
    assert_eq!(frames(&sent), [resize]);
    rig.say(&[Frame::Ok { seq: 6 }]);
    assert_eq!(rig.events(), [CoreEvent::Resized { ticket: Ticket(1) }]);

    for broker in ["b", "a"] {
        rig.pass_ms(1_000);
        rig.core.handle_disconnected(rig.now, "reset");
        assert_eq!(rig.events().last(), Some(&CoreEvent::Connect { address: tcp(broker) }));
        rig.greet();
        let sent = rig.sent();
        let register = Register::new(Slots::Unlimited, "w");
        assert_eq!(
            frames(&sent),
            [
                Frame::Register { seq: 3, register },
                Frame::Open { seq: 4, handle: 0, name: b"q" },
                Frame::Consume { seq: 5, handle: 0, exclusive: false },
            ]
        );
        rig.answer_register(1);
        assert_eq!(rig.events().last(), Some(&CoreEvent::Registered));
    }
}

/// Proves S0.40: a stopping worker says DEREGISTER and waits for nothing. Proves S0.41: it is not registered
/// again after that.
#[test]
fn a_closing_worker_deregisters_without_waiting() {
    let mut rig = TestCore::worker(&["a"], &["q"]);
    rig.core.close(rig.now);
    let sent = rig.sent();
    let closing = Closing { reason: ClosingReason::Shutdown, within_ms: 0 };
    assert_eq!(frames(&sent), [Frame::Deregister { seq: 6 }, Frame::Closing { closing }]);
    assert!(rig.core.closed());
}

/// Proves S0.15: what a deregistered worker holds it may still answer.
#[test]
fn a_deregistered_worker_settles_what_it_holds() {
    let mut rig = TestCore::worker(&["a"], &["q"]);
    rig.say(&[deliver(FIRST)]);
    rig.core.deregister();
    assert_eq!(frames(&rig.sent()), [Frame::Deregister { seq: 6 }]);
    assert!(rig.core.settle(held(&rig, FIRST), Settlement::Ack));
    assert_eq!(frames(&rig.sent()), [Frame::Ack { delivery: FIRST }]);
    rig.pass_ms(1_000);
    rig.core.handle_disconnected(rig.now, "reset");
    rig.greet();
    assert!(rig.sent().is_empty(), "it does not register again");
}

#[test]
fn a_delivery_is_settled_once() {
    let mut rig = TestCore::worker(&["a"], &["q"]);
    rig.say(&[deliver(FIRST), deliver(SECOND)]);
    assert_eq!(rig.events(), [handed(&rig, FIRST), handed(&rig, SECOND)]);
    let (first, second) = (held(&rig, FIRST), held(&rig, SECOND));
    assert!(rig.core.piece(first, &Payload::body("1")));
    assert!(rig.core.progress(first, &Payload::body("50 %")));
    assert!(rig.core.extend(first, 2_000));
    assert!(rig.core.settle(first, Settlement::Reply(Payload::body("2"))));
    let fail = Settlement::Fail { again: Again::Never, payload: Payload::body("no") };
    assert!(rig.core.settle(second, fail));
    let sent = rig.sent();
    assert_eq!(
        frames(&sent),
        [
            Frame::Reply { seq: 70, word: 7, more: true, raw: raw("1") },
            Frame::Progress { seq: 70, word: 7, raw: raw("50 %") },
            Frame::Extend { delivery: FIRST, lease_ms: 2_000 },
            Frame::Reply { seq: 70, word: 7, more: false, raw: raw("2") },
            Frame::Fail { delivery: SECOND, again: Again::Never, raw: raw("no") },
        ]
    );
    assert!(!rig.core.settle(first, Settlement::Ack));
    assert!(!rig.core.piece(first, &Payload::body("3")));
    assert!(rig.sent().is_empty());
}

#[test]
fn a_cancelled_delivery_is_told_and_still_settled() {
    let mut rig = TestCore::worker(&["a"], &["q"]);
    rig.say(&[deliver(FIRST)]);
    rig.events();
    rig.say(&[
        Frame::Cancel { seq: 70, word: 7, reason: Some(Code::TimedOut) },
        Frame::Cancel { seq: 1, word: 1, reason: None },
    ]);
    let first = held(&rig, FIRST);
    assert_eq!(rig.events(), [CoreEvent::CancelDelivery { held: first, reason: Code::TimedOut }]);
    assert!(rig.core.settle(first, Settlement::Fail { again: Again::AsSet, payload: Payload::default() }));
}

/// A delivery whose lease is over is told, and not settled: the broker has taken it back.
#[test]
fn a_delivery_whose_lease_is_over_is_not_settled() {
    let mut rig = TestCore::worker(&["a"], &["q"]);
    rig.say(&[deliver(FIRST), Frame::Cancel { seq: 70, word: 7, reason: Some(Code::LeaseExpired) }]);
    let first = held(&rig, FIRST);
    assert_eq!(rig.events().last(), Some(&CoreEvent::CancelDelivery { held: first, reason: Code::LeaseExpired }));
    assert!(!rig.core.settle(first, Settlement::Ack));
    assert!(rig.sent().is_empty());
}

/// The numbers of an old connection may mean another delivery on the new one.
#[test]
fn a_stale_settle_never_reaches_the_new_connection() {
    let mut rig = TestCore::worker(&["a", "b"], &["q"]);
    rig.say(&[deliver(FIRST)]);
    let old = held(&rig, FIRST);
    rig.events();
    rig.pass_ms(1_000);
    rig.core.handle_disconnected(rig.now, "reset");
    assert!(rig.events().contains(&CoreEvent::CancelDelivery { held: old, reason: Code::ConnectionLost }));
    rig.greet();
    rig.answer_register(1);
    rig.say(&[deliver(FIRST)]);
    assert!(!rig.core.settle(old, Settlement::Ack));
    assert!(rig.sent().is_empty());
    assert!(rig.core.settle(held(&rig, FIRST), Settlement::Ack));
    assert_eq!(frames(&rig.sent()), [Frame::Ack { delivery: FIRST }]);
}

/// A broker that shuts down: a worker whose driver leaves nothing behind finishes what it has, then registers with the next.
#[test]
fn a_worker_finishes_before_it_leaves_a_closing_broker() {
    let mut rig = TestCore::worker(&["a", "b"], &["q"]);
    rig.pass_ms(1_000);
    rig.say(&[deliver(FIRST)]);
    rig.say(&[Frame::Closing { closing: Closing { reason: ClosingReason::Shutdown, within_ms: 0 } }]);
    rig.events();
    assert!(rig.sent().is_empty() && rig.events().is_empty());
    rig.core.settle(held(&rig, FIRST), Settlement::Ack);
    assert_eq!(frames(&rig.sent()), [Frame::Ack { delivery: FIRST }]);
    assert_eq!(
        rig.events(),
        [
            CoreEvent::Lost { address: tcp("a"), reason: "the broker is closing".to_owned() },
            CoreEvent::Disconnect { flush: true },
            CoreEvent::Connect { address: tcp("b") },
        ]
    );
}

#[test]
fn stop_and_now_are_the_owners_to_act_on() {
    for reason in [ClosingReason::Stop, ClosingReason::Now] {
        let mut rig = TestCore::worker(&["a"], &["q"]);
        rig.say(&[Frame::Closing { closing: Closing { reason, within_ms: 5 } }]);
        assert_eq!(rig.events(), [CoreEvent::Closing { reason, within_ms: 5 }]);
        assert!(rig.sent().is_empty() && rig.events().is_empty());
    }
}

#[test]
fn a_reply_the_broker_would_not_take_becomes_a_failure() {
    let mut rig = TestCore::worker(&["a"], &["q"]);
    rig.say(&[deliver(FIRST), deliver(SECOND)]);
    let large = Payload::body("x".repeat(1_009));
    let (first, second) = (held(&rig, FIRST), held(&rig, SECOND));
    assert!(!rig.core.piece(first, &large));
    assert!(rig.core.settle(first, Settlement::Reply(large)));
    assert!(rig.core.settle(second, Settlement::Reply(Payload::body("x".repeat(1_008)))));
    let sent = rig.sent();
    let what = Code::OutputTooLarge.text().what;
    let [fail, Frame::Reply { .. }] = &frames(&sent)[..] else { panic!("one of each") };
    assert_eq!(fail, &Frame::Fail { delivery: FIRST, again: Again::Never, raw: raw(what) });
}

#[test]
fn resizing_without_a_connection_is_done_with_the_next_register() {
    let mut rig = TestCore::worker(&["a"], &["q"]);
    rig.core.handle_disconnected(rig.now, "reset");
    rig.events();
    rig.core.resize(rig.now, Ticket(1), Slots::Limited(9));
    assert_eq!(rig.events(), [CoreEvent::Resized { ticket: Ticket(1) }]);
    rig.pass_ms(1_000);
    rig.greet();
    let sent = rig.sent();
    let register = Register::new(Slots::Limited(9), "w");
    assert_eq!(frames(&sent)[0], Frame::Register { seq: 3, register });
}

/// A worker that runs tasks as well names what the foreman knows it by, on every connection.
#[test]
fn a_worker_of_the_foreman_names_its_key() {
    let mut rig = TestCore::worker(&["a"], &["q"]);
    rig.sent();
    rig.core.register(rig.now, Registration { key: "w1".to_owned(), ..registration(&["q"]) });
    let named = |frames: &[Frame<'_>]| {
        frames.iter().any(|frame| matches!(frame, Frame::Register { register, .. } if register.key == "w1"))
    };
    assert!(named(&frames(&rig.sent())));
    rig.core.handle_disconnected(rig.now, "reset");
    rig.pass_ms(1_000);
    rig.greet();
    assert!(named(&frames(&rig.sent())));
}

fn shutdown() -> Frame<'static> {
    Frame::Closing { closing: Closing { reason: ClosingReason::Shutdown, within_ms: 0 } }
}

/// Proves S2.18: a worker that gets CLOSING is at the next broker at once, with the slots that are free, ends what it has at the
/// old one, and has its slots to fill at the next as they become free.
#[test]
fn a_worker_is_at_the_next_broker_while_it_finishes() {
    let mut rig = TestCore::worker(&["a", "b"], &["q"]);
    rig.pass_ms(1_000);
    rig.say(&[deliver(FIRST), deliver(SECOND), shutdown()]);
    let (first, second) = (held(&rig, FIRST), held(&rig, SECOND));
    let core = rig.core.leave_behind(rig.now).expect("the broker has deliveries of ours");
    let mut old = TestCore { core, now: rig.now };
    assert_eq!(rig.events().last(), Some(&CoreEvent::Connect { address: tcp("b") }));
    rig.greet();
    let sent = rig.sent();
    let slots = |frame: &Frame<'_>| match frame {
        Frame::Register { register, .. } | Frame::Resize { register, .. } => register.slots().ok(),
        _ => None,
    };
    assert_eq!(frames(&sent).iter().find_map(slots), Some(Slots::Limited(2)), "two are taken at the old one");
    rig.answer_register(1);

    assert!(!rig.core.is_here(first) && !rig.core.settle(first, Settlement::Ack), "it came over the other connection");
    assert!(old.core.settle(first, Settlement::Ack));
    assert_eq!(frames(&old.sent()), [Frame::Ack { delivery: FIRST }]);
    assert_eq!(old.events().last(), None, "it has another");
    rig.core.ended_elsewhere(first);
    rig.core.ended_elsewhere(first);
    assert_eq!(frames(&rig.sent()).iter().filter_map(slots).collect::<Vec<_>>(), [Slots::Limited(3)]);

    assert!(old.core.settle(second, Settlement::Ack));
    assert_eq!(frames(&old.sent()), [Frame::Ack { delivery: SECOND }]);
    assert!(matches!(&old.events()[..], [CoreEvent::Lost { .. }, CoreEvent::Disconnect { flush: true }]));
    assert!(old.core.closed());
    rig.core.ended_elsewhere(second);
    assert_eq!(frames(&rig.sent()).iter().filter_map(slots).collect::<Vec<_>>(), [Slots::Limited(4)]);
}

/// One that is stopping, or has a queue to itself, stays until it holds no delivery.
#[test]
fn some_workers_stay_with_a_closing_broker() {
    let mut rig = TestCore::worker(&["a", "b"], &["q"]);
    rig.pass_ms(1_000);
    rig.say(&[deliver(FIRST)]);
    rig.core.deregister();
    rig.say(&[shutdown()]);
    assert!(rig.core.leave_behind(rig.now).is_none());
}
