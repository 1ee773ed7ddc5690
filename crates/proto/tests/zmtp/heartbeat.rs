//! Time: the handshake has so much of it, and silence too.

use turno_proto::model::Mono;
use turno_proto::model::limits::GREETING_MS_MAX;
use turno_proto::zmtp::{OwnSocketType, Security, SocketType, Version, ZmtpFault, ZmtpSettings};

use crate::end::{End, converse, mechanisms, pair_of, settings};

fn at(millis: u64) -> Mono {
    Mono::from_millis(millis)
}

/// Two ends without security, of which the first says PING that often.
fn two(ping_ms: u32, version: Version) -> (End, End) {
    let one = ZmtpSettings { ping_ms, ..settings(OwnSocketType::Is(SocketType::Dealer), Security::Null) };
    let other = ZmtpSettings { ping_ms: 0, version, ..settings(OwnSocketType::Is(SocketType::Dealer), Security::Null) };
    pair_of(one, other)
}

#[test]
fn a_handshake_that_takes_too_long_ends() {
    for (_, server, _) in mechanisms() {
        let mut end = End::new(settings(OwnSocketType::Counterpart, server));
        end.hear(&[0xFF, 0, 0]);
        assert_eq!(end.session.next_deadline(), Some(at(GREETING_MS_MAX)));
        assert_eq!(end.session.handle_timeout(at(GREETING_MS_MAX - 1), &mut end.out), Ok(()));
        assert_eq!(end.session.handle_timeout(at(GREETING_MS_MAX), &mut end.out), Err(ZmtpFault::HandshakeTimeout));
    }
}

#[test]
fn ping_is_said_on_time_and_answered() {
    let (mut one, mut other) = two(1_000, Version::V3_1);
    for round in 1..10 {
        assert_eq!(one.session.next_deadline(), Some(at(round * 1_000)));
        assert_eq!(one.session.handle_timeout(at(round * 1_000 - 1), &mut one.out), Ok(()));
        assert!(one.out.is_empty());
        (one.now, other.now) = (at(round * 1_000), at(round * 1_000));
        assert_eq!(one.session.handle_timeout(one.now, &mut one.out), Ok(()));
        converse(&mut one, &mut other);
        assert_eq!((one.fault, other.fault), (None, None));
    }
}

#[test]
fn a_peer_that_answers_nothing_is_given_up() {
    let (mut one, _) = two(1_000, Version::V3_1);
    for second in 1..3 {
        assert_eq!(one.session.handle_timeout(at(second * 1_000), &mut one.out), Ok(()));
    }
    assert_eq!(one.said(), b"\x04\x07\x04PING\x00\x1e\x04\x07\x04PING\x00\x1e");
    assert_eq!(one.session.handle_timeout(at(3_000), &mut one.out), Err(ZmtpFault::PeerSilent));
    assert_eq!(one.session.next_deadline(), None);
}

/// It is not read from, so it cannot be heard.
#[test]
fn a_peer_that_is_not_read_from_is_not_silent() {
    let (mut one, _) = two(1_000, Version::V3_1);
    for second in 1..100 {
        one.session.heard(at(second * 1_000));
        assert_eq!(one.session.handle_timeout(at(second * 1_000), &mut one.out), Ok(()));
    }
}

#[test]
fn a_peer_of_3_0_hears_no_ping_and_may_be_silent() {
    let (mut one, other) = two(1_000, Version::V3_0);
    assert_eq!(one.session.next_deadline(), None);
    assert_eq!(one.session.handle_timeout(at(1 << 30), &mut one.out), Ok(()));
    assert_eq!((one.said(), other.session.next_deadline()), (vec![], None));
}

/// A peer says with PING how long its silence means that it is gone; each PING says so anew.
#[test]
fn the_time_to_live_of_a_ping_counts_from_what_was_heard_last() {
    let (_, mut other) = two(0, Version::V3_1);
    assert_eq!(other.session.next_deadline(), None, "neither end has a heartbeat");
    other.hear(b"\x04\x07\x04PING\x00\x0a");
    assert_eq!(other.session.next_deadline(), Some(at(1_000)));
    other.now = at(900);
    other.hear(b"\x00\x00");
    assert_eq!(other.session.handle_timeout(at(1_899), &mut other.out), Ok(()));
    other.hear(b"\x04\x07\x04PING\x00\x00");
    assert_eq!(other.session.next_deadline(), None);
    other.hear(b"\x04\x07\x04PING\x00\x01");
    assert_eq!(other.session.handle_timeout(at(1_000), &mut other.out), Err(ZmtpFault::PeerSilent));
}
