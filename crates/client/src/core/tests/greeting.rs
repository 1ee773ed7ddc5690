//! Greeting, heartbeat, silence.

use super::*;

/// Proves S1.6: CONNECT, CONFIG, PING, PONG, and nothing before or between.
#[test]
fn the_greeting_has_its_order() {
    let mut rig = TestCore::new(&["a"]);
    assert_eq!(rig.events(), [CoreEvent::Connect { address: tcp("a") }]);
    rig.request(1, ask("q", "early"));
    assert!(rig.sent().is_empty(), "nothing is written before the connection stands");

    rig.core.handle_connected(rig.now);
    assert_eq!(frames(&rig.sent()), [connect_frame()]);
    rig.say(&[Frame::Config { seq: 1, config: Box::new(config()) }]);
    assert_eq!(frames(&rig.sent()), [Frame::Ping { seq: 2 }]);
    assert_eq!(rig.events(), []);
    rig.say(&[Frame::Pong { seq: 2 }]);
    assert_eq!(rig.events(), [CoreEvent::Opened { address: tcp("a"), config: Box::new(config()) }]);
    assert_eq!(rig.core.config(), &config());

    let sent = rig.sent();
    let [Frame::Open { seq: 3, handle: 0, name: b"q" }, Frame::Request(request)] = &frames(&sent)[..] else {
        panic!("OPEN and REQUEST follow: {:?}", frames(&sent));
    };
    assert_eq!((request.seq, request.handle, request.payload), (4, 0, raw("early")));
}

/// Proves S1.5: each broker once, 5 s each, then an error that names them all.
#[test]
fn no_answer_is_an_error_after_five_seconds_each() {
    let mut rig = TestCore::new(&["a", "b"]);
    rig.events();
    rig.core.handle_connected(rig.now);
    rig.pass_ms(4_999);
    assert_eq!(rig.events(), []);
    rig.pass_ms(1);
    let reason = "no answer within 5000 ms".to_owned();
    assert_eq!(
        rig.events(),
        [
            CoreEvent::Unreachable { address: tcp("a"), reason: reason.clone() },
            CoreEvent::Disconnect { flush: false },
            CoreEvent::Connect { address: tcp("b") },
        ]
    );
    rig.pass_ms(5_000);
    assert_eq!(
        rig.events(),
        [
            CoreEvent::Unreachable { address: tcp("b"), reason: reason.clone() },
            CoreEvent::Disconnect { flush: false },
            CoreEvent::GaveUp { tried: vec![(tcp("a"), reason.clone()), (tcp("b"), reason)] },
        ]
    );
    assert!(rig.core.closed());
    assert_eq!(rig.core.next_deadline(), None);
}

/// Proves S1.5: the time is configurable, and covers dialling and greeting together.
#[test]
fn the_time_for_connecting_can_be_set() {
    let mut rig = TestCore::with(Settings { connect_timeout_ms: 700, ..settings(&["a"]) });
    rig.pass_ms(400);
    rig.core.handle_connected(rig.now);
    rig.say(&[Frame::Config { seq: 1, config: Box::new(config()) }]);
    rig.events();
    rig.pass_ms(299);
    assert_eq!(rig.events(), []);
    rig.pass_ms(1);
    assert!(matches!(rig.events().last(), Some(CoreEvent::GaveUp { .. })));
}

#[test]
fn a_refusal_in_the_greeting_moves_on() {
    let table: &[(Frame<'_>, &str)] = &[
        (Frame::Error { seq: 1, code: Code::VersionMismatch, fatal: true, detail: "no" }, "version_mismatch: no"),
        (
            Frame::Config { seq: 1, config: Box::new(Config { version: 9, ..config() }) },
            Code::VersionMismatch.text().what,
        ),
        (Frame::Ok { seq: 1 }, "the broker sent OK during the handshake"),
        (Frame::Ping { seq: 1 }, "the broker sent PING, which only clients and workers may send"),
    ];
    for (frame, reason) in table {
        let mut rig = TestCore::new(&["a", "b"]);
        rig.events();
        rig.core.handle_connected(rig.now);
        rig.say(std::slice::from_ref(frame));
        let reason = (*reason).to_owned();
        assert_eq!(
            rig.events(),
            [
                CoreEvent::Unreachable { address: tcp("a"), reason },
                CoreEvent::Disconnect { flush: false },
                CoreEvent::Connect { address: tcp("b") }
            ],
            "{frame:?}"
        );
    }
}

#[test]
fn a_ping_goes_out_when_nothing_else_did() {
    let mut rig = TestCore::open(&["a"]);
    rig.pass_ms(4_000);
    rig.request(1, ask("q", "x"));
    rig.sent();
    rig.say(&[reply(4, "y")]);
    rig.pass_ms(4_999);
    assert!(rig.sent().is_empty(), "the request was a sign of life");
    rig.pass_ms(1);
    assert_eq!(frames(&rig.sent()), [Frame::Ping { seq: 5 }]);
}

/// A worker that talks all the time must still find out that the broker is gone.
#[test]
fn a_ping_goes_out_when_nothing_was_heard() {
    let mut rig = TestCore::open(&["a"]);
    let mut pings = 0;
    for ticket in 0..14 {
        rig.request(ticket, ask("q", "x"));
        pings += frames(&rig.sent()).iter().filter(|frame| matches!(frame, Frame::Ping { .. })).count();
        rig.pass_ms(1_000);
    }
    assert_eq!(pings, 2, "one each heartbeat");
}

#[test]
fn silence_for_three_heartbeats_ends_the_connection() {
    let mut rig = TestCore::open(&["a", "b"]);
    rig.pass_ms(14_999);
    assert_eq!(rig.events(), []);
    rig.say(&[Frame::Pong { seq: 9 }]);
    rig.pass_ms(14_999);
    assert_eq!(rig.events(), []);
    rig.pass_ms(1);
    assert_eq!(
        rig.events(),
        [
            CoreEvent::Lost { address: tcp("a"), reason: "silent for 15000 ms".to_owned() },
            CoreEvent::Disconnect { flush: false },
            CoreEvent::Connect { address: tcp("b") },
        ]
    );
}

#[test]
fn the_heartbeat_of_config_is_kept_within_reason() {
    let mut rig = TestCore::new(&["a"]);
    rig.core.handle_connected(rig.now);
    let odd = Config { heartbeat_ms: 0, liveness: 0, ..config() };
    rig.say(&[Frame::Config { seq: 1, config: Box::new(odd) }, Frame::Pong { seq: 2 }]);
    let config = rig.core.config();
    assert_eq!((config.heartbeat_ms, config.liveness), (limits::HEARTBEAT_MS_MIN, 1));
}
