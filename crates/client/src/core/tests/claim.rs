//! A worker that wants its queues to itself.

use turno_proto::model::{Cost, Delivery, MessageId};
use turno_proto::native::{Closing, ClosingReason, Deliver};

use super::super::{Held, Settlement};
use super::*;

fn wants(claim: Claim) -> Registration {
    Registration { claim, ..registration(&["q"]) }
}

/// Greeted; REGISTER 3, OPEN 4 and CONSUME 5 are out, the first two answered.
fn begun(claim: Claim) -> TestCore {
    let mut rig = TestCore::new(&["a"]);
    rig.core.register(rig.now, wants(claim));
    rig.greet();
    rig.events();
    let sent = rig.sent();
    assert_eq!(frames(&sent).last(), Some(&Frame::Consume { seq: 5, handle: 0, exclusive: claim != Claim::Shared }));
    rig.say(&[Frame::Ok { seq: 3 }, Frame::Ok { seq: 4 }]);
    rig
}

fn granted(seq: u32, token: u64) -> Frame<'static> {
    Frame::fenced(token, Frame::Ok { seq })
}

fn active(token: u64) -> CoreEvent {
    CoreEvent::Active { queue: queue("q"), token }
}

/// Proves S2.20: a free queue is the worker's at once, with its token.
#[test]
fn a_free_queue_is_taken_at_once() {
    for claim in [Claim::Exclusive, Claim::Standby] {
        let mut rig = begun(claim);
        rig.say(&[granted(5, 9)]);
        assert_eq!(rig.events(), [CoreEvent::Registered, active(9)]);
    }
}

/// Proves S2.21: without standing by, a queue that is another's ends the attempt; so it does for one that would share it.
#[test]
fn a_taken_queue_refuses_the_worker() {
    for claim in [Claim::Exclusive, Claim::Shared] {
        let mut rig = begun(claim);
        rig.say(&[Frame::QueueFull { seq: 5, handle: 0 }]);
        let events = rig.events();
        assert!(matches!(events.first(), Some(CoreEvent::NotRegistered { code: Code::QueueFull, .. })), "{events:?}");
        assert!(matches!(events.last(), Some(CoreEvent::GaveUp { .. })), "{events:?}");
    }
}

/// Proves S2.22 and S2.24: refused, it asks to be told, takes the queue when it is, and asks again if somebody was faster.
#[test]
fn a_standby_waits_and_takes_over() {
    let mut rig = begun(Claim::Standby);
    rig.say(&[Frame::QueueFull { seq: 5, handle: 0 }]);
    let standing_by = CoreEvent::StandingBy { queue: queue("q") };
    assert_eq!(rig.events(), [CoreEvent::Registered, standing_by.clone()]);
    let sent = rig.sent();
    assert_eq!(frames(&sent), [Frame::QueueAvailableNotify { seq: 6, handle: 0 }]);
    rig.say(&[Frame::QueueAvailable { seq: 6, handle: 0 }]);
    let sent = rig.sent();
    assert_eq!(frames(&sent), [Frame::Consume { seq: 7, handle: 0, exclusive: true }]);
    rig.say(&[Frame::QueueFull { seq: 7, handle: 0 }]);
    assert_eq!(rig.events(), [standing_by]);
    let sent = rig.sent();
    assert_eq!(frames(&sent), [Frame::QueueAvailableNotify { seq: 8, handle: 0 }]);
    rig.say(&[Frame::QueueAvailable { seq: 6, handle: 0 }, Frame::QueueFull { seq: 7, handle: 0 }]);
    assert_eq!((rig.events(), rig.sent().len()), (vec![], 0), "nobody asked for these");
    rig.say(&[Frame::QueueAvailable { seq: 8, handle: 0 }]);
    rig.sent();
    rig.say(&[granted(9, 12)]);
    assert_eq!(rig.events(), [active(12)]);
}

/// Proves S2.24: a queue that becomes free while the broker is in maintenance is taken as well: a worker that does not come is
/// passed over, and would stand in no line when the broker goes on.
#[test]
fn a_standby_takes_over_during_maintenance() {
    let mut rig = begun(Claim::Standby);
    rig.say(&[Frame::QueueFull { seq: 5, handle: 0 }]);
    let maintenance = Closing { reason: ClosingReason::Maintenance, within_ms: 0 };
    rig.say(&[Frame::Closing { closing: maintenance }]);
    rig.events();
    rig.sent();
    rig.say(&[Frame::QueueAvailable { seq: 6, handle: 0 }]);
    let sent = rig.sent();
    assert_eq!(frames(&sent), [Frame::Consume { seq: 7, handle: 0, exclusive: true }]);
    rig.say(&[granted(7, 9)]);
    assert_eq!(rig.events(), [active(9)]);
}

/// Of several queues each is taken or waited for by itself; the registration is done when all were answered.
#[test]
fn queues_are_claimed_one_by_one() {
    let mut rig = TestCore::new(&["a"]);
    rig.core.register(rig.now, Registration { claim: Claim::Standby, ..registration(&["q", "r"]) });
    rig.greet();
    rig.events();
    rig.sent();
    rig.say(&[Frame::Ok { seq: 3 }, Frame::Ok { seq: 4 }, Frame::Ok { seq: 5 }]);
    rig.say(&[Frame::QueueFull { seq: 6, handle: 0 }, Frame::QueueAvailable { seq: 8, handle: 0 }, granted(9, 4)]);
    assert_eq!(rig.events(), [CoreEvent::StandingBy { queue: queue("q") }, active(4)], "r is not answered yet");
    rig.say(&[granted(7, 3)]);
    assert_eq!(rig.events(), [CoreEvent::Registered, CoreEvent::Active { queue: queue("r"), token: 3 }]);
}

/// A standby that cannot wait, or is refused when it takes over, begins again with a new connection.
#[test]
fn a_refused_wait_begins_again() {
    let mut rig = begun(Claim::Standby);
    rig.say(&[Frame::QueueFull { seq: 5, handle: 0 }]);
    rig.events();
    rig.say(&[Frame::Error { seq: 6, code: Code::NotRefused, fatal: false, detail: "" }]);
    let events = rig.events();
    assert!(matches!(events.first(), Some(CoreEvent::Lost { .. })), "{events:?}");
}

/// Proves S0.41 and S2.24: after a lost connection it asks for the queue again, and stands by again if it must.
#[test]
fn a_lost_connection_begins_the_claim_again() {
    let mut rig = begun(Claim::Standby);
    rig.say(&[granted(5, 9)]);
    rig.core.handle_disconnected(rig.now, "gone");
    rig.pass_ms(1_000);
    rig.greet();
    rig.events();
    let sent = rig.sent();
    assert_eq!(frames(&sent).last(), Some(&Frame::Consume { seq: 5, handle: 0, exclusive: true }));
    rig.say(&[Frame::Ok { seq: 3 }, Frame::Ok { seq: 4 }, Frame::QueueFull { seq: 5, handle: 0 }]);
    assert_eq!(rig.events(), [CoreEvent::Registered, CoreEvent::StandingBy { queue: queue("q") }]);
}

/// Proves S2.21 and S2.23: a worker that does not stand by and finds its queue another's after a lost connection ends in
/// order, but not while the broker may still take that connection for its own. One that would share the queue tries on.
#[test]
fn a_holder_that_was_replaced_ends() {
    let silence_ms = u64::from(limits::HEARTBEAT_MS * limits::LIVENESS);
    for (claim, away_ms, ends) in [
        (Claim::Exclusive, 1_000, false),
        (Claim::Exclusive, silence_ms - 1, false),
        (Claim::Exclusive, silence_ms, true),
        (Claim::Shared, 1_000, false),
        (Claim::Shared, silence_ms, false),
    ] {
        let mut rig = begun(claim);
        rig.say(&[if claim == Claim::Shared { Frame::Ok { seq: 5 } } else { granted(5, 9) }]);
        rig.core.handle_disconnected(rig.now, "gone");
        rig.pass_ms(away_ms);
        rig.greet();
        rig.events();
        rig.sent();
        rig.say(&[Frame::Ok { seq: 3 }, Frame::Ok { seq: 4 }, Frame::QueueFull { seq: 5, handle: 0 }]);
        let events = rig.events();
        let sent = rig.sent();
        assert_eq!(rig.core.closed(), ends, "{claim:?} after {away_ms} ms: {events:?}");
        if ends {
            assert_eq!(events, [CoreEvent::Replaced { queue: queue("q") }]);
            let closing = Closing { reason: ClosingReason::Shutdown, within_ms: 0 };
            assert_eq!(frames(&sent), [Frame::Deregister { seq: 6 }, Frame::Closing { closing }]);
            assert_eq!(rig.core.next_deadline(), None);
        } else {
            let refused = events.first();
            assert!(matches!(refused, Some(CoreEvent::NotRegistered { code: Code::QueueFull, .. })), "{events:?}");
            rig.pass_ms(1_000);
            assert!(matches!(rig.events()[..], [CoreEvent::Connect { .. }]), "it tries on");
        }
    }
}

/// Proves S2.21: a connection that ends with the refusal does not begin the wait for the lost one anew.
#[test]
fn refusals_do_not_put_off_the_end() {
    let mut rig = begun(Claim::Exclusive);
    rig.say(&[granted(5, 9)]);
    rig.core.handle_disconnected(rig.now, "gone");
    let mut refusals = 0;
    while !rig.core.closed() {
        rig.pass_ms(1_000);
        rig.greet();
        rig.sent();
        rig.say(&[Frame::Ok { seq: 3 }, Frame::Ok { seq: 4 }, Frame::QueueFull { seq: 5, handle: 0 }]);
        refusals += 1;
    }
    assert_eq!(refusals, 15, "once a second until the broker must know");
}

/// Proves I8 from the worker's side: every frame about a delivery carries the token it came with, unless there is no room
/// for both.
#[test]
fn words_about_a_delivery_carry_its_token() {
    let delivery = Delivery { index: 7, stamp: 70 };
    let deliver = Frame::Deliver(Deliver {
        delivery,
        handle: 0,
        id: MessageId::new(1, 2, 3),
        attempt: 1,
        cost: Cost::ONE,
        deadline_ms: None,
        wants_reply: true,
        token: Some(9),
        raw: raw("work"),
    });
    let (most, more) = ("x".repeat(1_024 - 16 - 8), "x".repeat(1_024 - 16));
    for (words, fenced) in [("x", true), (most.as_str(), true), (more.as_str(), false)] {
        let mut rig = begun(Claim::Exclusive);
        rig.say(&[granted(5, 9), deliver.clone()]);
        let Some(CoreEvent::Deliver(handed)) = rig.events().pop() else { panic!("it was delivered") };
        assert_eq!(handed.token, Some(9));
        let held = Held { epoch: rig.core.link.epoch, delivery };
        assert!(rig.core.extend(held, 5));
        assert!(rig.core.piece(held, &Payload::body(words.as_bytes().to_vec())));
        assert!(rig.core.settle(held, Settlement::Reply(Payload::body(words.as_bytes().to_vec()))));
        let sent = rig.sent();
        let with = |frame, fenced| if fenced { Frame::fenced(9, frame) } else { frame };
        let reply = |more| Frame::Reply { seq: 70, word: 7, more, raw: raw(words) };
        let extend = Frame::Extend { delivery, lease_ms: 5 };
        assert_eq!(frames(&sent), [with(extend, true), with(reply(true), fenced), with(reply(false), fenced)]);
    }
}

/// The worker has the queue, was dropped from it, and has just asked for it again with this number.
fn asking_again(claim: Claim) -> (TestCore, u32) {
    let mut rig = begun(claim);
    rig.say(&[granted(5, 9)]);
    rig.say(&[Frame::CancelQueue { seq: 0, handle: 0, reason: Some(Code::Dropped) }]);
    rig.events();
    rig.sent();
    rig.pass_ms(1_000);
    let sent = rig.sent();
    let asked = frames(&sent).into_iter().find_map(|frame| match frame {
        Frame::Consume { seq, handle: 0, exclusive: true } => Some(seq),
        _ => None,
    });
    (rig, asked.expect("it asks to have the queue to itself"))
}

/// Proves S2.20 and S2.32: a worker that was dropped from its own queue comes back with a new token.
#[test]
fn a_dropped_holder_comes_back_with_a_new_token() {
    let (mut rig, seq) = asking_again(Claim::Exclusive);
    rig.say(&[granted(seq, 12)]);
    assert_eq!(rig.events(), [CoreEvent::Returned { queue: queue("q") }, active(12)]);
}

/// Proves S2.22: if another has the queue by then, a standby waits for it, and any other worker asks again later.
#[test]
fn a_dropped_holder_finds_the_queue_taken() {
    let (mut rig, seq) = asking_again(Claim::Standby);
    rig.say(&[Frame::QueueFull { seq, handle: 0 }]);
    assert_eq!(rig.events(), [CoreEvent::StandingBy { queue: queue("q") }]);
    let sent = rig.sent();
    let [Frame::QueueAvailableNotify { seq, handle: 0 }] = frames(&sent)[..] else { panic!("it asks to be told") };
    rig.say(&[Frame::QueueAvailable { seq, handle: 0 }]);
    let sent = rig.sent();
    let [Frame::Consume { seq, handle: 0, exclusive: true }] = frames(&sent)[..] else { panic!("it takes the queue") };
    rig.say(&[granted(seq, 13)]);
    assert_eq!(rig.events(), [active(13)]);

    let (mut rig, seq) = asking_again(Claim::Exclusive);
    rig.say(&[Frame::QueueFull { seq, handle: 0 }]);
    assert_eq!((rig.events(), rig.sent().len()), (vec![], 0), "it keeps its connection");
    rig.pass_ms(2_000);
    let sent = rig.sent();
    assert!(frames(&sent).iter().any(|frame| matches!(frame, Frame::Consume { exclusive: true, .. })));
}

/// Proves S2.27: a holder that another broker's worker outbids is told so. One that stands by does so at once and without a
/// pause; one that does not ends.
#[test]
fn a_holder_is_told_of_a_higher_token() {
    let told = Frame::CancelQueue { seq: 0, handle: 0, reason: Some(Code::QueueFull) };
    let mut rig = begun(Claim::Standby);
    rig.say(&[granted(5, 9)]);
    rig.events();
    rig.sent();
    rig.say(std::slice::from_ref(&told));
    let sent = rig.sent();
    assert_eq!(frames(&sent), [Frame::Consume { seq: 6, handle: 0, exclusive: true }]);
    rig.say(&[Frame::QueueFull { seq: 6, handle: 0 }]);
    assert_eq!(rig.events(), [CoreEvent::StandingBy { queue: queue("q") }]);

    let mut rig = begun(Claim::Exclusive);
    rig.say(&[granted(5, 9)]);
    rig.events();
    rig.say(&[told]);
    assert_eq!(rig.events().first(), Some(&CoreEvent::Replaced { queue: queue("q") }));
}
