//! Lost connections: which broker is next, when, and what becomes of the calls.

use turno_proto::native::{Closing, ClosingReason};

use super::*;

fn connects(events: &[CoreEvent]) -> Vec<Address> {
    let address = |event: &CoreEvent| match event {
        CoreEvent::Connect { address } => Some(address.clone()),
        _ => None,
    };
    events.iter().filter_map(address).collect()
}

/// Proves S2.2: a lost connection moves to the next broker at once; only a whole fruitless round waits, 1 s.
#[test]
fn the_next_broker_at_once_and_a_pause_only_after_all() {
    let mut rig = TestCore::open(&["a", "b", "c"]);
    rig.pass_ms(10_000);
    rig.say(&[Frame::Pong { seq: 9 }]);
    rig.core.handle_disconnected(rig.now, "reset");
    assert_eq!(connects(&rig.events()), [tcp("b")]);
    rig.core.handle_disconnected(rig.now, "refused");
    assert_eq!(connects(&rig.events()), [tcp("c")]);
    rig.core.handle_disconnected(rig.now, "refused");
    assert_eq!(connects(&rig.events()), [tcp("a")], "the lost one is tried last");
    rig.core.handle_disconnected(rig.now, "refused");
    assert_eq!(connects(&rig.events()), []);
    rig.pass_ms(999);
    assert_eq!(rig.events(), []);
    rig.pass_ms(1);
    assert_eq!(connects(&rig.events()), [tcp("b")]);
    rig.greet();
    assert!(matches!(&rig.events()[..], [CoreEvent::Opened { .. }]));
}

#[test]
fn brokers_that_greet_and_hang_up_are_not_dialled_in_a_hot_loop() {
    let mut rig = TestCore::open(&["a", "b"]);
    rig.core.handle_disconnected(rig.now, "bye");
    assert_eq!(connects(&rig.events()), [tcp("b")]);
    rig.greet();
    rig.core.handle_disconnected(rig.now, "bye");
    assert_eq!(connects(&rig.events()), [], "a round of two without one that lasted");
    rig.pass_ms(1_000);
    assert_eq!(connects(&rig.events()), [tcp("a")]);
}

/// A single broker that restarts: dialled at once, then every second, for ever.
#[test]
fn one_broker_is_tried_again_for_ever() {
    let mut rig = TestCore::open(&["a"]);
    rig.pass_ms(2_000);
    rig.core.handle_disconnected(rig.now, "reset");
    assert_eq!(connects(&rig.events()), [tcp("a")]);
    for _ in 0..100 {
        rig.core.handle_disconnected(rig.now, "refused");
        assert_eq!(connects(&rig.events()), []);
        rig.pass_ms(1_000);
        assert_eq!(connects(&rig.events()), [tcp("a")]);
    }
    assert!(!rig.core.closed());
}

#[test]
fn with_keep_trying_the_first_round_is_not_the_last() {
    let mut rig = TestCore::with(Settings { keep_trying: true, ..settings(&["a"]) });
    rig.events();
    rig.core.handle_disconnected(rig.now, "refused");
    rig.pass_ms(1_000);
    assert_eq!(connects(&rig.events()), [tcp("a")]);
}

/// Proves S1.4: the group that CONFIG tells of stands in for the given brokers.
#[test]
fn brokers_of_config_are_added_to_the_end() {
    let mut rig = TestCore::new(&["a:1"]);
    rig.core.handle_connected(rig.now);
    let brokers = ["turno://a:1", "b:2", "not an address", "unix:/x"].map(str::to_owned).to_vec();
    rig.say(&[Frame::Config { seq: 1, config: Box::new(Config { brokers, ..config() }) }, Frame::Pong { seq: 2 }]);
    rig.events();
    rig.core.handle_disconnected(rig.now, "gone");
    assert_eq!(connects(&rig.events()), [tcp("b:2")]);
    rig.core.handle_disconnected(rig.now, "gone");
    assert_eq!(connects(&rig.events()), [Address::Unix("/x".into())]);
}

/// Proves I15: what was written fails unless it was flagged; what was not written goes to the next broker.
#[test]
fn calls_in_flight_on_a_lost_connection() {
    let mut rig = TestCore::open(&["a", "b"]);
    rig.request(1, ask("q", "once"));
    rig.request(2, Ask { resend: true, ..ask("q", "twice") });
    rig.core.send(rig.now, Ticket(3), ask("q", "sent"));
    rig.request(4, Ask { resend: true, ..ask("q", "begun") });
    rig.sent();
    rig.say(&[Frame::Reply { seq: 7, word: 0, more: true, raw: raw("piece") }]);
    rig.request(5, ask("q", "unwritten"));
    rig.events();
    rig.core.handle_disconnected(rig.now, "reset");
    assert_eq!(
        rig.events(),
        [
            CoreEvent::Lost { address: tcp("a"), reason: "reset".to_owned() },
            CoreEvent::Disconnect { flush: false },
            failed(1, Code::ConnectionLost),
            failed(3, Code::ConnectionLost),
            failed(4, Code::ConnectionLost),
            CoreEvent::Connect { address: tcp("b") },
        ]
    );
    rig.greet();
    let sent = rig.sent();
    let bodies: Vec<Raw<'_>> =
        frames(&sent).iter().filter_map(|f| if let Frame::Request(r) = f { Some(r.payload) } else { None }).collect();
    assert_eq!(bodies, [raw("twice"), raw("unwritten")]);
    rig.events();
    rig.say(&[reply(4, "2"), reply(5, "5")]);
    assert_eq!(rig.events(), [replied(2, "2"), replied(5, "5")]);
}

#[test]
fn while_no_broker_is_there_a_call_waits_until_its_own_time_out() {
    let mut rig = TestCore::open(&["a"]);
    rig.pass_ms(2_000);
    rig.core.handle_disconnected(rig.now, "reset");
    rig.events();
    rig.request(1, Ask { timeout_ms: Some(1_500), ..ask("q", "x") });
    rig.pass_ms(1_499);
    assert_eq!(rig.events(), []);
    rig.pass_ms(1);
    assert_eq!(rig.events(), [failed(1, Code::TimedOut)]);
}

#[test]
fn the_deadline_on_the_wire_is_what_is_left_of_it() {
    let mut rig = TestCore::open(&["a"]);
    rig.core.handle_disconnected(rig.now, "reset");
    rig.request(1, Ask { timeout_ms: Some(5_000), ..ask("q", "x") });
    rig.pass_ms(1_000);
    rig.greet();
    let sent = rig.sent();
    let [_, Frame::Request(request)] = &frames(&sent)[..] else { panic!("OPEN, REQUEST") };
    assert_eq!(request.deadline_ms, Some(4_000));
}

/// A broker that drains gives back what it never worked on: the next broker gets it.
#[test]
fn what_is_given_back_by_a_closing_broker_goes_to_the_next() {
    let mut rig = TestCore::open(&["a", "b"]);
    rig.request(1, ask("q", "running"));
    rig.request(2, ask("q", "waiting"));
    rig.sent();
    let closing = Closing { reason: ClosingReason::Shutdown, within_ms: 0 };
    rig.say(&[Frame::Undelivered { seq: 5, code: Code::Closing, raw: raw("") }, Frame::Closing { closing }]);
    rig.request(3, ask("q", "new"));
    assert!(rig.sent().is_empty(), "nothing new goes to a broker that closes");
    assert_eq!(rig.events(), [CoreEvent::Closing { reason: ClosingReason::Shutdown, within_ms: 0 }]);

    rig.say(&[reply(4, "done")]);
    assert!(rig.sent().is_empty());
    assert_eq!(
        rig.events(),
        [
            replied(1, "done"),
            CoreEvent::Lost { address: tcp("a"), reason: "the broker is closing".to_owned() },
            CoreEvent::Disconnect { flush: true },
            CoreEvent::Connect { address: tcp("b") },
        ]
    );
    rig.greet();
    let sent = rig.sent();
    let [_, Frame::Request(first), Frame::Request(second)] = &frames(&sent)[..] else { panic!("two requests") };
    assert_eq!((first.payload, second.payload), (raw("waiting"), raw("new")));
}

#[test]
fn a_closing_broker_that_hangs_is_left_when_its_time_is_over() {
    let mut rig = TestCore::open(&["a", "b"]);
    rig.request(1, ask("q", "running"));
    rig.sent();
    let closing = Closing { reason: ClosingReason::Shutdown, within_ms: 3_000 };
    rig.say(&[Frame::Closing { closing }]);
    rig.events();
    rig.pass_ms(3_999);
    assert_eq!(rig.events(), []);
    rig.pass_ms(1);
    assert_eq!(connects(&rig.events()), [tcp("b")]);
}

/// A broker that drains still answers questions, also to those who come only now.
#[test]
fn questions_are_put_to_a_closing_broker() {
    use turno_proto::native::admin::AdminCall;

    let mut rig = TestCore::new(&["a"]);
    rig.core.handle_connected(rig.now);
    let closing = Closing { reason: ClosingReason::Shutdown, within_ms: 9_000 };
    rig.say(&[Frame::Config { seq: 1, config: Box::new(config()) }, Frame::Closing { closing }]);
    rig.say(&[Frame::Pong { seq: 2 }]);
    let [_, CoreEvent::Opened { .. }, CoreEvent::Closing { .. }] = &rig.events()[..] else {
        panic!("open all the same")
    };
    rig.request(1, ask("q", "work"));
    rig.core.admin(rig.now, Ticket(2), AdminCall::Status);
    let sent = rig.sent();
    assert!(matches!(frames(&sent)[..], [.., Frame::AdminCall { seq: 3, .. }]), "{:?}", frames(&sent));
    rig.say(&[Frame::Error { seq: 3, code: Code::NotFound, fatal: false, detail: "" }]);
    assert_eq!(rig.events(), [failed(2, Code::NotFound)]);
    assert!(rig.sent().is_empty(), "there is no other broker to give the work to, so it waits");
    assert_eq!(rig.events(), []);
}

/// To a worker a broker that drains is of no use.
#[test]
fn a_worker_does_not_stay_with_a_closing_broker() {
    let mut rig = TestCore::new(&["a", "b"]);
    rig.core.register(rig.now, registration(&["q"]));
    rig.core.handle_connected(rig.now);
    rig.events();
    let closing = Closing { reason: ClosingReason::Shutdown, within_ms: 9_000 };
    rig.say(&[Frame::Config { seq: 1, config: Box::new(config()) }, Frame::Closing { closing }]);
    assert_eq!(connects(&rig.events()), [tcp("b")]);
}
