//! Bytes after the handshake that must not be: each has a stated end.

use turno_proto::model::Code;
use turno_proto::zmtp::{OwnSocketType, SocketType, Version, ZmtpFault};

use crate::end::{mechanisms, met, pair};

/// Nothing is said to the peer: ERROR belongs to the handshake.
fn ends(theirs: SocketType, bytes: &[u8], fault: ZmtpFault, code: Code) {
    let mut end = met(OwnSocketType::Counterpart, theirs);
    end.said();
    assert_eq!(end.hear(bytes), b"", "{bytes:?}");
    assert_eq!((end.fault, fault.code()), (Some(fault), code), "{bytes:?}");
    assert_eq!((end.session.held_bytes(), end.steps.len()), (0, 1), "nothing of it was kept or told");
}

#[test]
fn frames_that_must_not_be() {
    use ZmtpFault::{BadCommand, BadFlags, CommandTooLarge, MessageTooLarge, RefusedByPeer, UnexpectedCommand};
    let four_gib = b"\x02\x00\x00\x00\x01\x00\x00\x00\x00";
    let endless = b"\x02\xff\xff\xff\xff\xff\xff\xff\xff";
    let eight_mib_command = b"\x06\x00\x00\x00\x00\x00\x80\x00\x00";
    for (bytes, fault, code) in [
        (&b"\x08"[..], BadFlags(8), Code::BadZmtp),
        (b"\x80\x00", BadFlags(0x80), Code::BadZmtp),
        (b"\x05\x05\x04PING", BadFlags(5), Code::BadZmtp),
        (b"\x07", BadFlags(7), Code::BadZmtp),
        (four_gib, MessageTooLarge, Code::FrameTooLarge),
        (endless, MessageTooLarge, Code::FrameTooLarge),
        (b"\x01\x01a\x02\x00\x00\x00\x00\x00\x10\x00\x00", MessageTooLarge, Code::FrameTooLarge),
        (eight_mib_command, CommandTooLarge, Code::BadZmtp),
        (b"\x06\x00\x00\x00\x00\x00\x00\x10\x01", CommandTooLarge, Code::BadZmtp),
        (b"\x04\x00", BadCommand, Code::BadZmtp),
        (b"\x04\x01\x00", BadCommand, Code::BadZmtp),
        (b"\x04\x02\x05P", BadCommand, Code::BadZmtp),
        (b"\x04\x03\x02P\x00", BadCommand, Code::BadZmtp),
        (b"\x04\x06\x04PING\x00", BadCommand, Code::BadZmtp),
        (b"\x04\x18\x04PING\x00\x0012345678901234567", BadCommand, Code::BadZmtp),
        (b"\x04\x16\x04PONG12345678901234567", BadCommand, Code::BadZmtp),
        (b"\x04\x06\x05READY", UnexpectedCommand, Code::BadZmtp),
        (b"\x04\x06\x05HELLO", UnexpectedCommand, Code::BadZmtp),
        (b"\x04\x08\x07WELCOME", UnexpectedCommand, Code::BadZmtp),
        (b"\x04\x09\x08INITIATE", UnexpectedCommand, Code::BadZmtp),
        (b"\x04\x07\x05ERROR\x00", RefusedByPeer, Code::RefusedByPeer),
    ] {
        ends(SocketType::Dealer, bytes, fault, code);
    }
}

#[test]
fn subscriptions_are_for_subscribers_and_messages_for_senders() {
    for theirs in SocketType::ALL.iter().filter(|theirs| theirs.counterpart().is_some()) {
        for command in [&b"\x04\x0b\x09SUBSCRIBEa"[..], b"\x04\x08\x06CANCELa"] {
            if theirs.subscribes() {
                let mut end = met(OwnSocketType::Counterpart, *theirs);
                end.hear(command);
                assert_eq!((end.fault, end.steps.len()), (None, 2));
            } else {
                ends(*theirs, command, ZmtpFault::NotASubscriber(*theirs), Code::WrongSocketType);
            }
        }
    }
    ends(SocketType::Pull, b"\x00\x01x", ZmtpFault::NotASender(SocketType::Pull), Code::WrongSocketType);
    ends(SocketType::Sub, b"\x00\x01x", ZmtpFault::NotASender(SocketType::Sub), Code::WrongSocketType);
}

/// A later version may have more commands.
#[test]
fn an_unknown_command_is_ignored() {
    let mut end = met(OwnSocketType::Counterpart, SocketType::Dealer);
    assert_eq!(end.hear(b"\x04\x05\x04JOIN\x00\x01x"), b"");
    assert_eq!((end.fault, end.messages().len()), (None, 1));
}

/// With encryption the flags and sizes that count are inside.
#[test]
fn frames_that_must_not_be_with_encryption() {
    let [_, _, (client, server, _)] = mechanisms();
    for (bytes, fault) in [
        (&b"\x01\x21"[..], ZmtpFault::BadFlags(1)),
        (b"\x00\x20", ZmtpFault::UnexpectedMessage),
        (b"\x04\x07\x04PING\x00\x00", ZmtpFault::UnexpectedMessage),
        (b"\x02\x00\x00\x00\x01\x00\x00\x00\x00", ZmtpFault::MessageTooLarge),
        (b"\x06\x00\x00\x00\x01\x00\x00\x00\x00", ZmtpFault::MessageTooLarge),
        (b"\x00\x21\x07WELCOME89012345678901234567890123", ZmtpFault::UnexpectedMessage),
    ] {
        let (_, mut server) = pair(client.clone(), server.clone(), Version::V3_1);
        assert_eq!(server.hear(bytes), b"");
        assert_eq!((server.fault, server.session.held_bytes()), (Some(fault), 0), "{bytes:?}");
    }
}

/// A command of 8 MiB inside a box is refused when it is opened: it was within the limit of a message.
#[test]
fn a_long_command_inside_a_box_is_refused() {
    let [_, _, (client, server, _)] = mechanisms();
    let (mut client, mut server) = pair(client, server, Version::V3_1);
    assert!(client.session.subscribe(&[b'x'; 5_000], &mut client.out));
    server.hear(&client.said());
    assert_eq!(server.fault, Some(ZmtpFault::CommandTooLarge));
}
