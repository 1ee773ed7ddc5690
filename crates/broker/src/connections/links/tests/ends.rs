//! How links come up and go.

use super::*;

#[test]
fn loopback_and_unix_sockets_are_local() {
    for local in ["127.0.0.1:7460", "127.8.9.10:1", "[::1]:7460", "[::ffff:127.0.0.1]:7460", "unix", "unix:4711"] {
        assert!(is_local(local), "{local}");
    }
    for far in ["10.0.0.1:7460", "[2001:db8::1]:7460", "[::ffff:10.0.0.1]:7460", "0.0.0.0:1", "unixy", "host:1", ""] {
        assert!(!is_local(far), "{far}");
    }
}

#[test]
fn a_link_comes_up_and_goes() {
    let (mut a, mut b) = linked();
    a.effect(PeerEffect::Link { conn: a.conn, effect: LinkEffect::Unlink { code: Code::AlreadyLinked } });
    assert_eq!(a.heard(), [Input::Disconnected { conn: a.conn }]);
    protocol(&mut a, &mut b);
    assert_eq!(b.heard(), [Input::Disconnected { conn: b.conn }]);
    assert!(a.connections.said_all(a.conn) && b.connections.said_all(b.conn));
}

#[test]
fn both_ends_measure_the_round_trip_and_silence_ends_the_link() {
    let (mut a, mut b) = linked();
    for broker in [&mut a, &mut b] {
        broker.connections.sweep(broker.now);
        broker.now = Mono::from_micros(10_250);
    }
    protocol(&mut a, &mut b);
    let trip = |conn| [Input::RoundTrip { conn, micros: 250 }];
    assert_eq!((a.heard(), b.heard()), (trip(a.conn).to_vec(), trip(b.conn).to_vec()));

    // Nothing of it comes over any more.
    a.now = Mono::from_millis(10).plus_millis(3_001);
    a.connections.sweep(a.now);
    assert_eq!(a.heard(), [Input::Disconnected { conn: a.conn }]);
    let said = a.said();
    assert!(matches!(frames(&said).last(), Some(Frame::Error { code: Code::PeerSilent, fatal: true, .. })));
}

/// A target that is not reached is told to the engine, once, with the code.
#[test]
fn a_dial_that_comes_to_nothing_is_told_once() {
    let failed = |code| vec![Input::DialFailed { target: 7, code }];
    // The connection breaks before the greeting is done.
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    a.connections.hang_up(a.now, a.conn);
    a.connections.hang_up(a.now, a.conn);
    assert_eq!(a.heard(), failed(Code::LinkDown));

    // Nobody says anything.
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    a.now = a.now.plus_millis(limits::GREETING_MS_MAX);
    a.connections.sweep(a.now);
    a.connections.hang_up(a.now, a.conn);
    assert_eq!(a.heard(), failed(Code::GreetingTimeout));

    // Another secret.
    let mut a = Broker::dialling(Some(b"another secret, as long"), "10.0.0.2:7460");
    let mut b = Broker::accepting(Some(SECRET), "10.0.0.1:4711");
    protocol(&mut a, &mut b);
    assert_eq!((a.heard(), b.heard()), (failed(Code::LinkRefused), vec![]));

    // None at the other end, which is not on this machine: it says why.
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    let mut b = Broker::accepting(None, "10.0.0.1:4711");
    protocol(&mut a, &mut b);
    assert_eq!((a.heard(), b.heard()), (failed(Code::LinkRefused), vec![]));

    // After the other end showed itself, before the engine said anything.
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    let mut b = Broker::accepting(Some(SECRET), "10.0.0.1:4711");
    protocol(&mut a, &mut b);
    a.heard();
    a.connections.hang_up(a.now, a.conn);
    assert_eq!(a.heard(), failed(Code::LinkDown));
    a.effect(PeerEffect::Link { conn: a.conn, effect: LinkEffect::Prove });
    assert_eq!(a.heard(), [], "a late yes does nothing");

    // No room for another connection, and no links at all.
    let mut full = connections(1, Some(SECRET));
    full.limits.connections_max = 0;
    assert_eq!(full.dial(Mono::ZERO, 7, "10.0.0.2:7460".to_owned()), None);
    assert_eq!(std::mem::take(&mut full.engine_handle_mut().0), failed(Code::TooManyConnections));
    full.dial_failed(Mono::ZERO, 7, Code::LinkDown);
    assert_eq!(std::mem::take(&mut full.engine_handle_mut().0), failed(Code::LinkDown));
}

/// The engine does not want the link: the other end hears why, and this one no more of it.
#[test]
fn a_link_that_is_not_wanted_ends_before_the_proof() {
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    let mut b = Broker::accepting(Some(SECRET), "10.0.0.1:4711");
    protocol(&mut a, &mut b);
    assert_eq!(a.heard().len(), 1);
    a.effect(PeerEffect::Link { conn: a.conn, effect: LinkEffect::Unlink { code: Code::LinkToItself } });
    let said = a.said();
    assert!(matches!(frames(&said)[..], [Frame::Error { code: Code::LinkToItself, fatal: true, .. }]));
    b.take(&said);
    a.connections.hang_up(a.now, a.conn);
    assert_eq!((a.heard(), b.heard()), (vec![], vec![]));
}

/// Without a secret brokers link on one machine only.
#[test]
fn without_a_secret_only_on_one_machine() {
    for (address, links) in [("127.0.0.1:4711", true), ("unix:1", true), ("10.0.0.1:4711", false)] {
        let mut a = Broker::dialling(None, "127.0.0.1:7460");
        let mut b = Broker::accepting(None, address);
        protocol(&mut a, &mut b);
        let greeted = matches!(a.heard()[..], [Input::Greeted { .. }]);
        assert_eq!(greeted, links, "{address}");
    }
}

/// A client on a link's connection, a link's frames on a client's, and a broker that has no links.
#[test]
fn a_connection_is_one_or_the_other() {
    let connect = Connect { version: VERSION, name: "c".into(), program: String::new(), heartbeat_ms: 0 };
    let mut b = Broker::accepting(Some(SECRET), "10.0.0.1:4711");
    let mut bytes = Vec::new();
    encode(&Frame::Connect { seq: 1, connect: connect.clone() }, &mut bytes);
    LinkSession::dial(b.now, credentials(1, Some(SECRET), 1 << 20), [1; 32], false, &mut bytes);
    b.take(&bytes);
    let said = b.said();
    assert!(matches!(frames(&said).last(), Some(Frame::Error { code: Code::WrongDirection, fatal: true, .. })));
    assert_eq!(b.heard().last(), Some(&Input::Disconnected { conn: b.conn }));

    let (mut a, mut b) = linked();
    let mut bytes = Vec::new();
    encode(&Frame::Connect { seq: 1, connect }, &mut bytes);
    b.take(&bytes);
    protocol(&mut a, &mut b);
    assert_eq!((a.heard(), b.heard()), (vec![gone(&a)], vec![gone(&b)]));

    let mut plain =
        Connections::with_engine_handle(Ear::default(), Limits::default(), config(), NumberAllocation::default());
    let conn = plain.accept(Mono::ZERO, "127.0.0.1:1".to_owned(), ListenerKind::Native).unwrap();
    let mut bytes = Vec::new();
    LinkSession::dial(Mono::ZERO, credentials(1, None, 1 << 20), [1; 32], true, &mut bytes);
    assert_eq!(plain.take(Mono::ZERO, conn, &bytes), crate::turn::Turn::Done);
    assert!(matches!(frames(plain.unwritten(conn))[..], [Frame::Error { code: Code::ExpectedConnect, .. }]));
}

fn gone(broker: &Broker) -> Input {
    Input::Disconnected { conn: broker.conn }
}

#[test]
fn the_engine_wants_links_dialled() {
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    assert!(!a.connections.has_dials());
    a.effect(PeerEffect::Dial { target: 9, address: "far:7460".to_owned() });
    assert!(a.connections.has_dials());
    assert_eq!(a.connections.take_dials(), [Dial { target: 9, address: "far:7460".to_owned() }]);
    assert_eq!(a.connections.take_dials(), []);
}
