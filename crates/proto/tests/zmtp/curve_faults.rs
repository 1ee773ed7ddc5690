//! CURVE: keys that do not match, cookies and boxes that were said before, bytes that were changed.

use turno_proto::model::Code;
use turno_proto::zmtp::curve::{KeyPair, PublicKey};
use turno_proto::zmtp::{OwnSocketType, Security, Version, ZmtpFault, ZmtpSettings};

use crate::end::{
    End, client_entropy, client_keys, converse, curve_client, dealer, mechanisms, pair, server_keys, settings,
};

fn server_settings() -> ZmtpSettings {
    settings(OwnSocketType::Counterpart, Security::CurveServer(server_keys()))
}

/// A client and a server at the point where the client's INITIATE is about to be heard, which is returned with them.
fn before_initiate(client: Security, server: [u8; 96]) -> (End, End, Vec<u8>) {
    let mut client = End::with_entropy(dealer(client), client_entropy());
    let mut server = End::with_entropy(server_settings(), server);
    let mut said = client.said();
    said.extend(client.hear(&server.said()));
    let initiate = client.hear(&server.hear(&said));
    (client, server, initiate)
}

#[test]
fn another_server_key_is_found_out_by_the_server() {
    let other = KeyPair::from_secret([9; 32]).public();
    let client = Security::CurveClient { keys: client_keys(), server: other };
    let (mut client, mut server) = (End::new(dealer(client)), End::new(server_settings()));
    converse(&mut client, &mut server);
    assert_eq!((server.fault, client.fault), (Some(ZmtpFault::BadBox), None), "it is closed without an answer");
    assert_eq!(ZmtpFault::BadBox.code(), Code::BadCurve);
    assert!(client.session.greeting());
}

/// A cookie opens only at the connection that gave it.
#[test]
fn a_cookie_of_another_connection_is_refused() {
    let (_, mut first, initiate) = before_initiate(curve_client(), [1; 96]);
    let (_, mut second, _) = before_initiate(curve_client(), [2; 96]);
    second.hear(&initiate);
    assert_eq!((second.fault, second.steps.len()), (Some(ZmtpFault::BadCookie), 0));
    assert_eq!(ZmtpFault::BadCookie.code(), Code::BadCurve);
    first.hear(&initiate);
    assert!(first.peer().is_some(), "where it was given it opens");
    first.hear(&initiate);
    assert_eq!(first.fault, Some(ZmtpFault::UnexpectedMessage), "once");
}

/// Whichever byte of whichever command is changed, it is noticed, and nothing is told but a fault.
#[test]
fn a_changed_byte_is_noticed() {
    let (mut client, mut server) =
        (End::with_entropy(dealer(curve_client()), client_entropy()), End::new(server_settings()));
    let (hello, greeting) = (client.said(), server.said());
    let hello = [hello, client.hear(&greeting)].concat();
    let welcome = server.hear(&hello);
    let initiate = client.hear(&welcome);
    let ready = server.hear(&initiate);
    client.hear(&ready);
    assert!(client.peer().is_some() && server.peer().is_some());

    let changed = |bytes: &[u8], at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 0x10;
        bytes
    };
    // The greeting has bytes without a meaning, and so has the padding of HELLO (two bytes of frame, eight of name and version).
    let hello_from = 64 + 2;
    for at in (hello_from..hello.len()).filter(|at| !(hello_from + 8..hello_from + 80).contains(at)) {
        let mut server = End::new(server_settings());
        server.hear(&changed(&hello, at));
        server.hear(&[0; 300]);
        assert!(server.fault.is_some() && server.steps.is_empty(), "{at}");
    }
    for at in 0..initiate.len() {
        let mut server = End::new(server_settings());
        server.hear(&hello);
        server.hear(&changed(&initiate, at));
        server.hear(&[0; 5_000]);
        assert!(server.fault.is_some() && server.steps.is_empty(), "{at}");
    }
    for (bytes, before) in [(&welcome, None), (&ready, Some(&welcome))] {
        for at in 0..bytes.len() {
            let mut client = End::with_entropy(dealer(curve_client()), client_entropy());
            client.hear(&greeting);
            before.into_iter().for_each(|before| _ = client.hear(before));
            client.hear(&changed(bytes, at));
            client.hear(&[0; 5_000]);
            assert!(client.fault.is_some() && client.steps.is_empty(), "{at}");
        }
    }
}

#[test]
fn a_message_that_is_said_again_or_late_ends_the_connection() {
    let [_, _, (client, server, _)] = mechanisms();
    for replayed in [true, false] {
        let (mut client, mut server) = pair(client.clone(), server.clone(), Version::V3_1);
        client.send(&[b"one"]);
        let one = client.said();
        client.send(&[b"two"]);
        let two = client.said();
        if replayed {
            server.hear(&one);
            server.hear(&one);
        } else {
            server.hear(&two);
            server.hear(&one);
        }
        assert_eq!((server.fault, server.messages().len()), (Some(ZmtpFault::BadNonce), 1));
    }
    // What one end said is nothing that it hears.
    let (mut client, _) = pair(client, server, Version::V3_1);
    client.send(&[b"one"]);
    let echo = client.said();
    client.hear(&echo);
    assert_eq!(client.fault, Some(ZmtpFault::BadBox));
}

#[test]
fn a_changed_message_ends_the_connection() {
    let [_, _, (client, server, _)] = mechanisms();
    let (mut sender, _) = pair(client.clone(), server.clone(), Version::V3_1);
    sender.send(&[b"some text"]);
    let message = sender.said();
    for at in 0..message.len() {
        let (_, mut server) = pair(client.clone(), server.clone(), Version::V3_1);
        let mut message = message.clone();
        message[at] ^= 0x40;
        server.hear(&message);
        server.hear(&[0; 300]);
        assert!(server.fault.is_some() && server.messages().is_empty(), "{at}");
    }
}

#[test]
fn keys_are_text() {
    let key = server_keys().public();
    assert_eq!(key.to_string().parse(), Ok(key));
    let error = "short".parse::<PublicKey>().unwrap_err();
    assert_eq!(error.to_string(), "invalid CURVE key: must be 40 characters of Z85");
    let pair = KeyPair::from_secret_text(&"0".repeat(40)).unwrap();
    assert_eq!(pair.public(), KeyPair::from_secret([0; 32]).public());
    assert!(KeyPair::from_secret_text("").is_err());
}
