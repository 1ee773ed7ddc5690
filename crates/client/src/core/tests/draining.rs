//! A broker that closes or is drained, and how a caller's time ends.

use turno_proto::native::{Closing, ClosingReason};

use super::*;

fn closing(reason: ClosingReason, within_ms: u64) -> Frame<'static> {
    Frame::Closing { closing: Closing { reason, within_ms } }
}

fn given_back(seq: u32) -> Frame<'static> {
    Frame::Undelivered { seq, code: Code::Closing, raw: raw("") }
}

/// The bodies of the requests among the bytes written since the last look.
fn asked(rig: &mut TestCore) -> Vec<String> {
    let sent = rig.sent();
    let body = |frame: &Frame<'_>| match frame {
        Frame::Request(request) => Some(String::from_utf8_lossy(request.payload.bytes).into_owned()),
        _ => None,
    };
    frames(&sent).iter().filter_map(body).collect()
}

/// Splits off the core that waits for the closing broker.
fn draining_of(rig: &mut TestCore) -> TestCore {
    let core = rig.core.leave_behind(rig.now).expect("the broker has calls of ours");
    TestCore { core, now: rig.now }
}

/// Proves S2.18 and I15: on CLOSING the next broker is dialled at once; what runs at the old one ends there; what it gives
/// back goes to the next, in its place; and nothing goes to both.
#[test]
fn the_next_broker_at_once_and_the_old_one_until_its_last_call() {
    for reason in [ClosingReason::Shutdown, ClosingReason::Maintenance] {
        let mut rig = TestCore::open(&["a", "b"]);
        rig.request(1, ask("q", "running"));
        rig.request(2, ask("q", "waiting"));
        rig.sent();
        rig.request(3, ask("q", "unwritten"));
        assert!(rig.core.leave_behind(rig.now).is_none(), "nobody closes");
        rig.say(&[closing(reason, 0)]);
        let mut old = draining_of(&mut rig);
        let expected = [CoreEvent::Closing { reason, within_ms: 0 }, CoreEvent::Connect { address: tcp("b") }];
        assert_eq!(rig.events(), expected);
        assert_eq!(old.core.tickets(), [Ticket(1), Ticket(2)]);
        assert!(old.core.leave_behind(rig.now).is_none(), "once");
        rig.greet();
        assert_eq!(asked(&mut rig), ["unwritten"]);

        old.say(&[given_back(5), closing(ClosingReason::Resumed, 0)]);
        let returned = old.core.take_returned();
        assert_eq!(returned.iter().map(|call| call.ticket).collect::<Vec<_>>(), [Ticket(2)]);
        returned.into_iter().for_each(|call| rig.core.adopt(call));
        assert_eq!(asked(&mut rig), ["waiting"]);
        assert_eq!(asked(&mut old), [""; 0]);

        old.say(&[reply(4, "done")]);
        assert!(old.sent().is_empty());
        let [CoreEvent::Closing { .. }, ended, CoreEvent::Lost { .. }, CoreEvent::Disconnect { flush: true }] =
            &old.events()[..]
        else {
            panic!("it ends with its last call, and dials nobody")
        };
        assert_eq!(*ended, replied(1, "done"));
        assert!(old.core.closed() && !rig.core.closed());
        rig.events();
        rig.say(&[reply(4, "3"), reply(5, "2")]);
        assert_eq!(rig.events(), [replied(3, "3"), replied(2, "2")]);
    }
}

/// Proves I15: if the old broker is lost with calls of ours, those that may be asked again go to the next broker and the
/// others end, each once.
#[test]
fn a_closing_broker_that_is_lost() {
    let mut rig = TestCore::open(&["a", "b"]);
    rig.request(1, ask("q", "once"));
    rig.request(2, Ask { resend: true, ..ask("q", "twice") });
    rig.sent();
    rig.say(&[closing(ClosingReason::Shutdown, 0)]);
    let mut old = draining_of(&mut rig);
    old.core.handle_disconnected(old.now, "reset");
    let events = old.events();
    assert!(events.contains(&failed(1, Code::ConnectionLost)), "{events:?}");
    assert!(!events.iter().any(|event| matches!(event, CoreEvent::Connect { .. })), "{events:?}");
    assert!(old.core.closed());
    old.core.take_returned().into_iter().for_each(|call| rig.core.adopt(call));
    rig.greet();
    assert_eq!(asked(&mut rig), ["twice"]);
}

/// Proves I13: a call keeps its own deadline wherever it goes, and ends once everything is closed.
#[test]
fn a_call_that_was_given_back_keeps_its_time() {
    let mut rig = TestCore::open(&["a", "b"]);
    rig.request(1, Ask { timeout_ms: Some(5_000), ..ask("q", "x") });
    rig.request(2, ask("q", "y"));
    rig.sent();
    rig.say(&[closing(ClosingReason::Shutdown, 0)]);
    let mut old = draining_of(&mut rig);
    rig.events();
    old.say(&[given_back(4), given_back(5)]);
    let mut returned = old.core.take_returned().into_iter();
    rig.core.adopt(returned.next().expect("two calls"));
    rig.core.handle_disconnected(rig.now, "refused");
    rig.pass_ms(5_000);
    assert!(rig.events().contains(&failed(1, Code::TimedOut)));
    rig.core.close(rig.now);
    rig.core.adopt(returned.next().expect("two calls"));
    assert_eq!(rig.events().last(), Some(&failed(2, Code::Cancelled)));
}

/// Proves S2.18: a worker without another broker stays, and works again after the maintenance.
#[test]
fn the_only_broker_comes_back() {
    let mut rig = TestCore::open(&["a"]);
    rig.request(1, ask("q", "waits"));
    rig.sent();
    rig.say(&[closing(ClosingReason::Maintenance, 0), given_back(4)]);
    rig.request(2, ask("q", "new"));
    assert!(rig.core.leave_behind(rig.now).is_none(), "there is no other broker");
    assert_eq!(asked(&mut rig), [""; 0]);
    rig.say(&[closing(ClosingReason::Resumed, 0)]);
    assert_eq!(asked(&mut rig), ["waits", "new"]);
}

/// Proves S2.17: what a drained broker took nothing of ends as `closing` when its time is over; what it has, as `timed_out`.
#[test]
fn time_passes_at_a_drained_broker() {
    let mut rig = TestCore::open(&["a"]);
    let ask = |body| Ask { timeout_ms: Some(1_000), ..ask("q", body) };
    rig.request(1, ask("runs"));
    rig.request(2, ask("given back"));
    rig.sent();
    rig.say(&[closing(ClosingReason::Maintenance, 0), given_back(5)]);
    rig.request(3, ask("new"));
    rig.events();
    rig.pass_ms(4_000);
    let mut ends: Vec<CoreEvent> = rig.events();
    ends.retain(|event| matches!(event, CoreEvent::Failed { .. }));
    assert_eq!(ends.len(), 3, "{ends:?}");
    for end in [failed(1, Code::TimedOut), failed(2, Code::Closing), failed(3, Code::Closing)] {
        assert!(ends.contains(&end), "{end:?} in {ends:?}");
    }
}

/// Proves S2.18: a worker that comes during the maintenance of its only broker registers, waits, and works after it.
#[test]
fn a_worker_of_the_only_broker_waits_for_it() {
    let mut rig = TestCore::new(&["a"]);
    rig.core.register(rig.now, registration(&["q"]));
    rig.core.handle_connected(rig.now);
    let config = Frame::Config { seq: 1, config: Box::new(config()) };
    rig.say(&[config, closing(ClosingReason::Maintenance, 0), Frame::Pong { seq: 2 }]);
    rig.answer_register(1);
    assert!(rig.events().contains(&CoreEvent::Registered));
    rig.say(&[closing(ClosingReason::Resumed, 0)]);
    rig.pass_ms(100);
    let events = rig.events();
    assert!(!events.iter().any(|event| matches!(event, CoreEvent::Lost { .. })), "{events:?}");
}

/// A client that only asks about a broker stays with it, although there are others.
#[test]
fn a_client_that_stays() {
    use turno_proto::native::admin::AdminCall;

    let mut rig = TestCore::with(Settings { stay: true, ..settings(&["a", "b"]) });
    rig.greet();
    rig.events();
    rig.say(&[closing(ClosingReason::Maintenance, 0)]);
    rig.core.admin(rig.now, Ticket(1), AdminCall::Resume);
    let sent = rig.sent();
    assert!(matches!(frames(&sent)[..], [Frame::AdminCall { .. }]));
    assert!(rig.core.leave_behind(rig.now).is_none());
    assert_eq!(rig.events().len(), 1, "CLOSING, and no other broker");
}

/// Proves I13: a caller that waits for less than the work may take gets its answer in time; the work goes on, or is
/// cancelled if the caller wants that. Without a deadline of its own both end together.
#[test]
fn the_callers_time_and_the_works() {
    for (deadline_ms, cancel_on_timeout, cancels) in
        [(Some(60_000), true, true), (Some(60_000), false, false), (None, false, true), (Some(500), false, true)]
    {
        let mut rig = TestCore::open(&["a"]);
        let (timeout_ms, question) = (Some(2_000), ask("q", "x"));
        rig.request(1, Ask { timeout_ms, deadline_ms, cancel_on_timeout, ..question });
        let sent = rig.sent();
        let [_, Frame::Request(request)] = &frames(&sent)[..] else { panic!("OPEN, REQUEST") };
        assert_eq!(request.deadline_ms, deadline_ms.or(timeout_ms));
        assert!(request.cancel_on_disconnect);
        let outlasts = deadline_ms == Some(60_000);
        rig.pass_ms(1_999);
        assert_eq!(rig.events(), []);
        // The broker says first that the time is over, if it knows; should it not, the client waits a moment more.
        rig.pass_ms(if outlasts { 1 } else { 1_001 });
        assert_eq!(rig.events(), [failed(1, Code::TimedOut)], "{deadline_ms:?}");
        let sent = rig.sent();
        let cancelled = frames(&sent).iter().any(|frame| matches!(frame, Frame::Cancel { seq: 4, .. }));
        assert_eq!(cancelled, cancels, "{deadline_ms:?}, {cancel_on_timeout}");
        rig.say(&[reply(4, "too late")]);
        assert_eq!(rig.events(), []);
    }
}

/// Proves S1.35: a client that closes cancels its requests, but not those that may go on without it; the callers of both
/// are told.
#[test]
fn closing_leaves_what_may_go_on() {
    let mut rig = TestCore::open(&["a"]);
    rig.request(1, ask("q", "ends"));
    rig.request(2, Ask { cancel_on_disconnect: false, ..ask("q", "goes on") });
    let sent = rig.sent();
    let written = frames(&sent);
    let flags = written.iter().filter_map(|frame| match frame {
        Frame::Request(request) => Some(request.cancel_on_disconnect),
        _ => None,
    });
    assert_eq!(flags.collect::<Vec<bool>>(), [true, false]);
    rig.core.close(rig.now);
    let sent = rig.sent();
    let [Frame::Cancel { seq: 4, .. }, Frame::Closing { .. }] = &frames(&sent)[..] else {
        panic!("{:?}", frames(&sent))
    };
    assert_eq!(rig.events(), [failed(1, Code::Cancelled), failed(2, Code::Cancelled)]);
}
