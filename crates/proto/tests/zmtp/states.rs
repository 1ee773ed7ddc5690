//! What each state takes, and what it says then.

use turno_proto::model::Mono;
use turno_proto::zmtp::{Mechanism, OwnSocketType, Security, SocketType, User, Version, ZmtpFault, ZmtpStep};

use crate::end::{End, converse, dealer, mechanisms, met, pair, plain_client, settings};

/// Every mechanism, both versions: each end learns of the other what it should.
#[test]
fn a_handshake_tells_both_ends_of_each_other() {
    for version in [Version::V3_0, Version::V3_1] {
        for (client, server, user) in mechanisms() {
            let mechanism = client.mechanism();
            let (client, server) = pair(client, server, version);
            let seen = server.peer().unwrap();
            assert_eq!((seen.socket_type, seen.ours), (SocketType::Dealer, SocketType::Router));
            assert_eq!((&*seen.identity, &seen.user, seen.version), (&b"d1"[..], &user, version), "{mechanism:?}");
            let seen = client.peer().unwrap();
            assert_eq!((seen.socket_type, seen.ours), (SocketType::Router, SocketType::Dealer));
            assert_eq!((&*seen.identity, &seen.user, seen.version), (&b""[..], &User::Unknown, version));
            assert!(!client.session.greeting() && !server.session.greeting());
        }
    }
}

#[test]
fn a_broker_takes_the_counterpart_of_each_peer() {
    for theirs in SocketType::ALL {
        let Some(ours) = theirs.counterpart() else { continue };
        let end = met(OwnSocketType::Counterpart, *theirs);
        assert_eq!(end.peer().unwrap().ours, ours);
    }
    let mut pair = End::new(settings(OwnSocketType::Is(SocketType::Pair), Security::Null));
    let mut end = End::new(settings(OwnSocketType::Counterpart, Security::Null));
    converse(&mut pair, &mut end);
    assert_eq!(end.fault, Some(ZmtpFault::NoCounterpart(SocketType::Pair)));
    assert_eq!(pair.fault, Some(ZmtpFault::RefusedByPeer), "it was told");
}

#[test]
fn types_that_do_not_talk_to_each_other_do_not_meet() {
    for ours in SocketType::ALL {
        for theirs in SocketType::ALL {
            let mut one = End::new(settings(OwnSocketType::Is(*ours), Security::Null));
            let mut other = End::new(settings(OwnSocketType::Is(*theirs), Security::Null));
            converse(&mut one, &mut other);
            let good = ours.talks_to(*theirs);
            assert_eq!((one.peer().is_some(), other.peer().is_some()), (good, good), "{ours} and {theirs}");
            let fault = ZmtpFault::WrongSocketType { ours: *ours, theirs: *theirs };
            assert_eq!(one.fault, (!good).then_some(fault));
        }
    }
}

#[test]
fn the_owner_may_refuse_a_client() {
    for (client, server, _) in mechanisms().into_iter().skip(1) {
        let mut client = End::new(dealer(client));
        let mut server = End::new(settings(OwnSocketType::Counterpart, server));
        server.accepts = false;
        converse(&mut client, &mut server);
        assert_eq!((server.fault, client.fault), (Some(ZmtpFault::Refused), Some(ZmtpFault::RefusedByPeer)));
        assert!(client.steps.is_empty() && server.steps.is_empty());
        assert!(server.session.greeting());
    }
}

#[test]
fn what_a_client_shows_is_asked_about_and_not_printed() {
    let mut server = End::new(settings(OwnSocketType::Counterpart, Security::PlainServer));
    let mut client = End::new(dealer(plain_client()));
    let mut said = client.said();
    said.extend(client.hear(&server.said()));
    let (step, used) = server.session.step(Mono::ZERO, &said, &mut server.out).unwrap();
    assert_eq!((step, used), (ZmtpStep::Done, 64));
    let (step, _) = server.session.step(Mono::ZERO, &said[used..], &mut server.out).unwrap();
    let shown = format!("{step:?}");
    assert!(matches!(step, ZmtpStep::Asks(_)) && shown.contains("admin") && !shown.contains("secret"), "{shown}");
    let shown = format!("{:?} {:?}", plain_client(), mechanisms()[2]);
    assert!(!shown.contains("secret") && !shown.contains("2, 2, 2"), "{shown}");
    assert_eq!(plain_client().mechanism(), Mechanism::Plain);
}

#[test]
fn nothing_is_said_before_the_handshake_is_done() {
    let mut end = End::new(dealer(Security::Null));
    end.said();
    assert!(!end.session.send([&b"x"[..]], &mut end.out));
    assert!(!end.session.subscribe(b"x", &mut end.out) && !end.session.cancel(b"x", &mut end.out));
    assert_eq!(end.session.accept(Mono::ZERO, &mut end.out), ZmtpStep::Done, "nobody asked");
    assert!(end.out.is_empty());
}

/// After a fault nothing that comes is looked at.
#[test]
fn a_session_that_is_over_stays_over() {
    let (mut client, mut server) = pair(Security::Null, Security::Null, Version::V3_1);
    client.send(&[b"before"]);
    let mut bytes = client.said();
    bytes.push(0xFF);
    client.send(&[b"after"]);
    bytes.extend(client.said());
    server.hear(&bytes);
    assert_eq!((server.fault, server.messages().len()), (Some(ZmtpFault::BadFlags(0xFF)), 1));
    let step = server.session.step(Mono::ZERO, &bytes, &mut server.out).unwrap();
    assert_eq!(step, (ZmtpStep::NeedMore, bytes.len()));
    assert_eq!((server.session.next_deadline(), server.session.held_bytes()), (None, 0));
    assert!(!server.session.send([&b"x"[..]], &mut server.out) && server.out.is_empty());
    server.session.handle_timeout(Mono::from_millis(1 << 40), &mut server.out).unwrap();
}
