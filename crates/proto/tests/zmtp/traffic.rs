//! Messages, subscriptions and the memory they take.

use turno_proto::model::limits::{ZMTP_COMMAND_BYTES_MAX, ZMTP_FRAMES_MAX};
use turno_proto::zmtp::{self, OwnSocketType, Security, SocketType, Version, ZmtpFault, ZmtpSettings, ZmtpStep};

use crate::end::{End, converse, dealer, mechanisms, met, pair, pair_of, settings};

/// A hundred frames, empty ones, and a long one: byte for byte, whichever mechanism, however they are cut.
#[test]
fn messages_keep_their_frames() {
    let long = vec![7; 100_000];
    let hundred: Vec<Vec<u8>> = (0..100).map(|at| vec![at; usize::from(at) * 5]).collect();
    let hundred: Vec<&[u8]> = hundred.iter().map(Vec::as_slice).collect();
    let messages: [&[&[u8]]; 6] = [&[b""], &[b"", b""], &[b"x"], &[&long], &hundred, &[b"a", &long, b"", b"b"]];
    for (client, server, _) in mechanisms() {
        for cut in [1, 7, 4_096, usize::MAX] {
            let (mut client, mut server) = pair(client.clone(), server.clone(), Version::V3_1);
            messages.iter().for_each(|parts| client.send(parts));
            let bytes = client.said();
            bytes.chunks(cut.min(bytes.len())).for_each(|piece| _ = server.hear(piece));
            assert_eq!(server.messages(), messages, "{cut}");
            assert_eq!(server.session.held_bytes(), 0, "nothing is kept between messages");
            server.send(&hundred);
            client.hear(&server.said());
            assert_eq!(client.messages(), [&hundred[..]]);
            let (mut encoded, mut out) = (Vec::new(), Vec::new());
            messages.iter().for_each(|parts| zmtp::encode(parts.iter().copied(), &mut encoded));
            assert!(server.session.send_encoded(&encoded, &mut out));
            client.hear(&out);
            assert_eq!(client.messages()[1..], messages, "encoded once for many");
        }
    }
}

/// A frame that claims much takes no more memory than twice what came of it.
#[test]
fn memory_grows_with_what_came() {
    for (client, server, _) in mechanisms() {
        let (mut client, mut server) = pair(client, server, Version::V3_1);
        client.send(&[b"small", &vec![1; 1_000_000]]);
        let bytes = client.said();
        assert_eq!(server.session.claimed_bytes(), None);
        let mut came = 0;
        for piece in bytes[..bytes.len() - 1].chunks(10_000) {
            server.hear(piece);
            came += piece.len();
            assert!(server.session.held_bytes() <= 2 * came + 64, "{} of {came}", server.session.held_bytes());
            let claimed = server.session.claimed_bytes().unwrap();
            assert!((1_000_005..1_000_100).contains(&claimed), "{claimed}");
        }
        server.hear(&bytes[bytes.len() - 1..]);
        assert_eq!(server.messages().len(), 1);
        assert_eq!((server.session.held_bytes(), server.session.claimed_bytes()), (0, None));
    }
}

/// The limit is on all frames of a message together, to the byte.
#[test]
fn a_message_may_be_so_long_and_not_longer() {
    for (client, server, _) in mechanisms() {
        for (parts, fault) in [
            (&[&[0; 600][..], &[0; 400]][..], None),
            (&[&[0; 600], &[0; 401]], Some(ZmtpFault::MessageTooLarge)),
            (&[&[0; 1_000]], None),
            (&[&[0; 1_001]], Some(ZmtpFault::MessageTooLarge)),
        ] {
            let server =
                ZmtpSettings { message_bytes_max: 1_000, ..settings(OwnSocketType::Counterpart, server.clone()) };
            let (mut client, mut server) = pair_of(dealer(client.clone()), server);
            client.send(parts);
            assert_eq!(server.hear(&client.said()), b"");
            assert_eq!(server.fault, fault);
            assert_eq!(server.messages().len(), usize::from(fault.is_none()));
        }
    }
}

#[test]
fn a_message_may_have_so_many_frames_and_not_more() {
    for (client, server, _) in mechanisms() {
        for (count, fault) in [(ZMTP_FRAMES_MAX, None), (ZMTP_FRAMES_MAX + 1, Some(ZmtpFault::TooManyParts))] {
            let (mut client, mut server) = pair(client.clone(), server.clone(), Version::V3_1);
            client.send(&vec![&b""[..]; count]);
            server.hear(&client.said());
            assert_eq!((server.fault, server.messages().len()), (fault, usize::from(fault.is_none())));
        }
    }
}

/// libzmq says PING when its time has come, also between the frames of a message.
#[test]
fn commands_may_come_between_the_frames_of_a_message() {
    let mut end = met(OwnSocketType::Counterpart, SocketType::Dealer);
    assert_eq!(end.hear(b"\x01\x01a\x04\x07\x04PING\x00\x00\x00\x01b"), b"\x04\x05\x04PONG");
    assert_eq!(end.messages(), [[b"a", b"b"]]);
}

#[test]
fn both_forms_of_a_subscription_mean_the_same_to_both_versions() {
    for theirs in [SocketType::Sub, SocketType::Xsub] {
        let mut end = met(OwnSocketType::Counterpart, theirs);
        end.hear(b"\x04\x0b\x09SUBSCRIBEa\x04\x08\x06CANCELa\x00\x02\x01b\x00\x02\x00b\x00\x01\x01");
        let told = format!("{:?}", &end.steps[1..]);
        assert_eq!(told, r#"[Subscribe(b"a"), Cancel(b"a"), Subscribe(b"b"), Cancel(b"b"), Subscribe(b"")]"#);
    }
}

/// XSUB may send messages upstream; SUB may not.
#[test]
fn a_message_of_a_subscriber_is_a_message_only_of_xsub() {
    let mut xsub = met(OwnSocketType::Counterpart, SocketType::Xsub);
    xsub.hear(b"\x00\x02up\x00\x00\x01\x01\x01\x00\x01x");
    assert_eq!(xsub.messages(), [vec![b"up".to_vec()], vec![vec![]], vec![vec![1], b"x".to_vec()]]);
    for bytes in [&b"\x00\x02up"[..], b"\x00\x00", b"\x01\x01\x01\x00\x01x"] {
        let mut sub = met(OwnSocketType::Counterpart, SocketType::Sub);
        sub.hear(bytes);
        assert_eq!(sub.fault, Some(ZmtpFault::NotASender(SocketType::Sub)));
    }
}

#[test]
fn a_subscription_may_be_as_long_as_a_command() {
    let name = b"\x09SUBSCRIBE".len();
    for (len, fault) in
        [(ZMTP_COMMAND_BYTES_MAX - name, None), (ZMTP_COMMAND_BYTES_MAX, Some(ZmtpFault::CommandTooLarge))]
    {
        for version in [Version::V3_0, Version::V3_1] {
            let sub = settings(OwnSocketType::Is(SocketType::Sub), Security::Null);
            let mut sub = End::new(ZmtpSettings { version, ..sub });
            let mut hub = End::new(settings(OwnSocketType::Counterpart, Security::Null));
            converse(&mut sub, &mut hub);
            assert!(sub.session.subscribe(&vec![b'x'; len], &mut sub.out));
            hub.hear(&sub.said());
            assert_eq!(hub.fault, fault, "{version:?}");
            assert_eq!(hub.steps.iter().any(|step| matches!(step, ZmtpStep::Subscribe(_))), fault.is_none());
        }
    }
}
