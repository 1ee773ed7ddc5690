//! Greetings and handshakes that must not be: each has a stated end.

use turno_proto::model::Code;
use turno_proto::zmtp::{OwnSocketType, Security, SocketType, ZmtpFault, ZmtpSettings};

use crate::end::{End, converse, curve_client, dealer, mechanisms, plain_client, server_keys, settings};

fn greeting(version: [u8; 2], mechanism: &[u8], as_server: u8) -> Vec<u8> {
    let mut bytes = vec![0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0x7F];
    bytes.extend(version);
    bytes.extend(mechanism);
    bytes.resize(32, 0);
    bytes.push(as_server);
    bytes.resize(64, 0);
    bytes
}

fn broker(security: Security) -> End {
    let mut end = End::new(settings(OwnSocketType::Counterpart, security));
    end.said();
    end
}

/// Each byte alone, and all at once: the fault comes with the first byte that tells.
#[test]
fn greetings_that_must_not_be() {
    let null = b"NULL";
    for (bytes, fault, code) in [
        (b"\x01\x00".to_vec(), ZmtpFault::OldVersion(1), Code::OldZmtp),
        (b"\x05\x00name".to_vec(), ZmtpFault::OldVersion(1), Code::OldZmtp),
        (b"\xff\0\0\0\0\0\0\x01\x00\x00".to_vec(), ZmtpFault::OldVersion(1), Code::OldZmtp),
        (b"\xff\0\0\0\0\0\0\0\x01\x7f\x01\x05".to_vec(), ZmtpFault::OldVersion(2), Code::OldZmtp),
        (b"\xff\0\0\0\0\0\0\0\x01\x7f\x02".to_vec(), ZmtpFault::OldVersion(2), Code::OldZmtp),
        (b"\x00\x00".to_vec(), ZmtpFault::NotZmtp, Code::NotZmtp),
        (b"GET / HTTP/1.1".to_vec(), ZmtpFault::NotZmtp, Code::NotZmtp),
        (b"\x47\xc0\x10\x00".to_vec(), ZmtpFault::NotZmtp, Code::NotZmtp),
        (b"\xff\0\0\0\0\0\0\0\0\x01".to_vec(), ZmtpFault::NotZmtp, Code::NotZmtp),
        (greeting([3, 1], b"PLAIN", 0), ZmtpFault::WrongMechanism, Code::WrongMechanism),
        (greeting([3, 1], b"GSSAPI", 0), ZmtpFault::WrongMechanism, Code::WrongMechanism),
        (greeting([3, 1], b"NULLX", 0), ZmtpFault::WrongMechanism, Code::WrongMechanism),
        (greeting([3, 1], b"null", 0), ZmtpFault::WrongMechanism, Code::WrongMechanism),
        (greeting([3, 1], &[b'X'; 20], 0), ZmtpFault::WrongMechanism, Code::WrongMechanism),
    ] {
        let mut whole = broker(Security::Null);
        assert_eq!(whole.hear(&bytes), b"", "{bytes:?}");
        assert_eq!((whole.fault, fault.code()), (Some(fault), code), "{bytes:?}");
        let mut slow = broker(Security::Null);
        bytes.iter().for_each(|byte| _ = slow.hear(&[*byte]));
        assert_eq!(slow.fault, Some(fault), "{bytes:?}");
    }
    for version in [[3, 0], [3, 1], [3, 2], [4, 0]] {
        let mut end = broker(Security::Null);
        end.hear(&greeting(version, null, 0));
        assert_eq!(end.fault, None, "{version:?}");
    }
}

#[test]
fn one_end_is_the_server_of_a_mechanism() {
    for (mechanism, security) in
        [(&b"PLAIN"[..], Security::PlainServer), (b"CURVE", Security::CurveServer(server_keys()))]
    {
        let mut end = broker(security);
        end.hear(&greeting([3, 1], mechanism, 1));
        assert_eq!(end.fault, Some(ZmtpFault::BothServers));
    }
    // It has no server, and libzmq says so of all: nobody looks.
    let mut end = broker(Security::Null);
    end.hear(&greeting([3, 1], b"NULL", 1));
    assert_eq!(end.fault, None);
    // Two clients both speak first.
    for client in [plain_client(), curve_client()] {
        let (mut one, mut other) = (End::new(dealer(client.clone())), End::new(dealer(client)));
        converse(&mut one, &mut other);
        assert_eq!((one.fault, other.fault), (Some(ZmtpFault::UnexpectedCommand), Some(ZmtpFault::UnexpectedCommand)));
    }
}

/// What a broker without security says to these bytes behind a good greeting.
fn after_greeting(security: Security, mechanism: &[u8], bytes: &[u8]) -> (Option<ZmtpFault>, Vec<u8>) {
    let mut end = broker(security);
    assert_eq!(end.hear(&greeting([3, 1], mechanism, 0)), b"");
    let said = end.hear(bytes);
    assert_eq!((end.steps.len(), end.session.held_bytes()), (0, 0), "{bytes:?}");
    (end.fault, said)
}

fn error(reason: &str) -> Vec<u8> {
    let len = u8::try_from(reason.len()).expect("the peers follow the script");
    [&[4, len + 7][..], b"\x05ERROR", &[len], reason.as_bytes()].concat()
}

#[test]
fn handshakes_that_must_not_be_are_told_so() {
    let handshake = "Invalid handshake";
    for (bytes, fault, reason) in [
        (&b"\x00\x01x"[..], ZmtpFault::UnexpectedMessage, handshake),
        (b"\x00\x00", ZmtpFault::UnexpectedMessage, handshake),
        (b"\x02\x00\x00\x00\x01\x00\x00\x00\x00", ZmtpFault::UnexpectedMessage, handshake),
        (b"\x04\x07\x04PING\x00\x00", ZmtpFault::UnexpectedCommand, handshake),
        (b"\x04\x0b\x09SUBSCRIBEa", ZmtpFault::UnexpectedCommand, handshake),
        (b"\x04\x06\x05HELLO", ZmtpFault::UnexpectedCommand, handshake),
        (b"\x04\x05\x04JUNK", ZmtpFault::UnexpectedCommand, handshake),
        (b"\x04\x00", ZmtpFault::BadCommand, handshake),
        (b"\x06\x00\x00\x00\x00\x00\x80\x00\x00", ZmtpFault::CommandTooLarge, "Command too large"),
        (b"\x04\x06\x05READY", ZmtpFault::UnknownSocketType, "Invalid socket type"),
        (b"\x04\x07\x05READY\x00", ZmtpFault::BadMetadata, "Invalid metadata"),
        (b"\x04\x08\x05READY\x05a", ZmtpFault::BadMetadata, "Invalid metadata"),
        (b"\x04\x0c\x05READY\x01a\xff\xff\xff\xff", ZmtpFault::BadMetadata, "Invalid metadata"),
        (b"\x04\x19\x05READY\x0bSocket-Type\x00\x00\x00\x03rep", ZmtpFault::UnknownSocketType, "Invalid socket type"),
        (
            b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06CLIENT",
            ZmtpFault::UnknownSocketType,
            "Invalid socket type",
        ),
        (
            b"\x04\x2c\x05READY\x0bSocket-Type\x00\x00\x00\x03REP\x0bSocket-Type\x00\x00\x00\x03REP",
            ZmtpFault::BadMetadata,
            "Invalid metadata",
        ),
    ] {
        assert_eq!(after_greeting(Security::Null, b"NULL", bytes), (Some(fault), error(reason)), "{bytes:?}");
    }
    // To ERROR and to what is no frame nothing can be said.
    for (bytes, fault) in
        [(&b"\x04\x07\x05ERROR\x00"[..], ZmtpFault::RefusedByPeer), (b"\xff", ZmtpFault::BadFlags(0xFF))]
    {
        assert_eq!(after_greeting(Security::Null, b"NULL", bytes), (Some(fault), vec![]));
    }
}

#[test]
fn names_of_properties_have_no_case_and_unknown_ones_are_ignored() {
    let mut end = broker(Security::Null);
    end.hear(&greeting([3, 1], b"NULL", 0));
    end.hear(b"\x04\x38\x05READY\x03X-a\x00\x00\x00\x02hi\x0bSOCKET-type\x00\x00\x00\x03REQ\x08identity\x00\x00\x00\x0212\x01z\x00\x00\x00\x00");
    let peer = end.peer().unwrap();
    assert_eq!((peer.socket_type, &*peer.identity), (SocketType::Req, &b"12"[..]), "{:?}", end.fault);
}

#[test]
fn an_identity_has_255_bytes_at_most() {
    for (len, fault) in [(255, None), (256, Some(ZmtpFault::BadMetadata))] {
        let client = ZmtpSettings { identity: vec![b'i'; len].into(), ..dealer(Security::Null) };
        let (mut client, mut server) = (End::new(client), broker(Security::Null));
        server.out.extend(greeting([3, 1], b"NULL", 0));
        converse(&mut client, &mut server);
        assert_eq!(server.fault, fault);
    }
}

#[test]
fn plain_hellos_that_must_not_be() {
    for data in [&b""[..], b"\x01", b"\x01u", b"\x01u\x02p", b"\x01u\x01pX"] {
        let hello = [&[4, u8::try_from(6 + data.len()).unwrap()][..], b"\x05HELLO", data].concat();
        let told = after_greeting(Security::PlainServer, b"PLAIN", &hello);
        assert_eq!(told, (Some(ZmtpFault::BadCommand), error("Invalid handshake")), "{data:?}");
    }
    // INITIATE before the owner has accepted a HELLO.
    let told = after_greeting(Security::PlainServer, b"PLAIN", b"\x04\x09\x08INITIATE");
    assert_eq!(told.0, Some(ZmtpFault::UnexpectedCommand));
    // WELCOME with something in it.
    let mut client = End::new(dealer(plain_client()));
    client.hear(&greeting([3, 1], b"PLAIN", 1));
    client.hear(b"\x04\x09\x07WELCOMEx");
    assert_eq!(client.fault, Some(ZmtpFault::UnexpectedCommand));
}

#[test]
fn every_handshake_ends_at_error() {
    for (client, server, _) in mechanisms() {
        for security in [client, server] {
            let name = security.mechanism().name();
            let ours =
                if security.is_server() { OwnSocketType::Counterpart } else { OwnSocketType::Is(SocketType::Dealer) };
            let mut end = End::new(settings(ours, security));
            end.hear(&greeting([3, 1], name.as_bytes(), 0));
            end.said();
            assert_eq!(end.hear(b"\x04\x0a\x05ERROR\x03400"), b"");
            assert_eq!(end.fault, Some(ZmtpFault::RefusedByPeer), "{name}");
        }
    }
    // As libzmq's PLAIN says it.
    let mut client = End::new(dealer(plain_client()));
    client.hear(&greeting([3, 1], b"PLAIN", 0));
    client.hear(b"\x04\x09^RROR\x03400");
    assert_eq!(client.fault, Some(ZmtpFault::RefusedByPeer));
}

#[test]
#[should_panic(expected = "a client says its properties first")]
fn a_client_cannot_wait_for_the_type_of_its_peer() {
    End::new(settings(OwnSocketType::Counterpart, plain_client()));
}
