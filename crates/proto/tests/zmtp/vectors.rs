//! What both ends say is what the golden vectors hold.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use turno_proto::zmtp::{OwnSocketType, Security, SocketType, Version, ZmtpFault, ZmtpSettings, ZmtpStep};

use crate::end::{End, client_entropy, curve_client, dealer, pair, plain_client, server_keys, settings};
use crate::golden;

/// The vectors by name, and which of them a test compared.
struct Golden {
    vectors: BTreeMap<&'static str, Vec<u8>>,
    seen: BTreeSet<&'static str>,
}

impl Golden {
    fn new() -> Self {
        let all = golden::read(include_str!("../../vectors/zmtp.txt"));
        let count = all.len();
        let vectors: BTreeMap<_, _> = all.into_iter().map(|vector| (vector.name, vector.bytes)).collect();
        assert_eq!(vectors.len(), count, "names are unique");
        Self { vectors, seen: BTreeSet::new() }
    }

    /// An end said these vectors, one behind the other. Returns them, for the other end to hear.
    fn is(&mut self, said: Vec<u8>, names: &[&'static str]) -> Vec<u8> {
        let wanted: Vec<u8> = names.iter().flat_map(|name| self.vectors[name].clone()).collect();
        assert_eq!(said, wanted, "{names:?}");
        self.seen.extend(names);
        said
    }
}

#[test]
fn both_ends_say_the_golden_bytes_and_understand_them() {
    let mut golden = Golden::new();
    null_handshake(&mut golden);
    plain_handshake(&mut golden);
    curve_session(&mut golden);
    messages_and_commands(&mut golden);
    subscriptions(&mut golden);
    refusals(&mut golden);
    let unseen: Vec<_> = golden.vectors.keys().filter(|name| !golden.seen.contains(*name)).collect();
    assert!(unseen.is_empty(), "{unseen:?}");
}

fn null_handshake(golden: &mut Golden) {
    let mut client = End::new(dealer(Security::Null));
    let mut server = End::new(settings(OwnSocketType::Counterpart, Security::Null));
    let greeting = golden.is(client.said(), &["greeting_null"]);
    let ready = golden.is(client.hear(&golden.vectors["greeting_null"].clone()), &["ready_dealer"]);
    golden.is(server.said(), &["greeting_null"]);
    assert_eq!(server.hear(&greeting), b"", "it waits for the type of its peer");
    let answer = golden.is(server.hear(&ready), &["ready_router"]);
    assert_eq!(client.hear(&answer), b"");
    assert_eq!(client.peer().expect("the peers follow the script").socket_type, SocketType::Router);
    assert_eq!(*server.peer().expect("the peers follow the script").identity, *b"d1");
}

fn plain_handshake(golden: &mut Golden) {
    let mut client = End::new(dealer(plain_client()));
    let mut server = End::new(settings(OwnSocketType::Counterpart, Security::PlainServer));
    let greeting = golden.is(server.said(), &["greeting_plain_server"]);
    let mut said = golden.is(client.said(), &["greeting_plain_client"]);
    said.extend(golden.is(client.hear(&greeting), &["plain_hello"]));
    let welcome = golden.is(server.hear(&said), &["plain_welcome"]);
    let initiate = golden.is(client.hear(&welcome), &["plain_initiate"]);
    let ready = golden.is(server.hear(&initiate), &["ready_router"]);
    client.hear(&ready);
    assert!(client.peer().is_some() && server.peer().is_some());
}

fn curve_session(golden: &mut Golden) {
    let mut client = End::with_entropy(dealer(curve_client()), client_entropy());
    let mut server = End::new(settings(OwnSocketType::Counterpart, Security::CurveServer(server_keys())));
    let greeting = golden.is(server.said(), &["greeting_curve_server"]);
    let mut said = golden.is(client.said(), &["greeting_curve_client"]);
    said.extend(golden.is(client.hear(&greeting), &["curve_hello"]));
    let welcome = golden.is(server.hear(&said), &["curve_welcome"]);
    let initiate = golden.is(client.hear(&welcome), &["curve_initiate"]);
    let ready = golden.is(server.hear(&initiate), &["curve_ready"]);
    client.hear(&ready);
    client.send(&[b"a", b"bc"]);
    server.hear(&golden.is(client.said(), &["curve_message_client"]));
    assert_eq!(server.messages(), [[b"a".to_vec(), b"bc".to_vec()]]);
    server.send(&[b"x"]);
    client.hear(&golden.is(server.said(), &["curve_message_server"]));
    assert_eq!(client.messages(), [[b"x".to_vec()]]);
    let now = server.session.next_deadline().expect("the peers follow the script");
    server.session.handle_timeout(now, &mut server.out).expect("the peers follow the script");
    let ping = golden.is(server.said(), &["curve_ping_server"]);
    assert_eq!(server.hear(&golden.is(client.hear(&ping), &["curve_pong_client"])), b"");
    assert_eq!((client.fault, server.fault), (None, None));
}

fn messages_and_commands(golden: &mut Golden) {
    let (mut client, mut server) = pair(Security::Null, Security::Null, Version::V3_1);
    let long = [b'x'; 256];
    let messages: [(&str, &[&[u8]]); 4] = [
        ("message_one", &[b"hello"]),
        ("message_empty", &[b""]),
        ("message_three", &[b"a", b"", b"bc"]),
        ("message_long", &[&long]),
    ];
    for (name, parts) in messages {
        client.send(parts);
        server.hear(&golden.is(client.said(), &[name]));
        assert_eq!(server.messages().last().expect("the peers follow the script"), parts, "{name}");
    }
    let now = server.session.next_deadline().expect("the peers follow the script");
    server.session.handle_timeout(now, &mut server.out).expect("the peers follow the script");
    golden.is(server.said(), &["ping"]);
    let ping = golden.vectors["ping_context"].clone();
    golden.is(ping.clone(), &["ping_context"]);
    golden.is(server.hear(&ping), &["pong_context"]);
}

fn subscriptions(golden: &mut Golden) {
    for (version, greeting, names) in [
        (Version::V3_1, "greeting_null", ["subscribe", "cancel"]),
        (Version::V3_0, "greeting_null_3_0", ["subscribe_3_0", "cancel_3_0"]),
    ] {
        let sub = settings(OwnSocketType::Is(SocketType::Sub), Security::Null);
        let mut sub = End::new(ZmtpSettings { version, ..sub });
        let mut hub = End::new(settings(OwnSocketType::Counterpart, Security::Null));
        let mut said = golden.is(sub.said(), &[greeting]);
        said.extend(golden.is(sub.hear(&hub.said()), &["ready_sub"]));
        sub.hear(&golden.is(hub.hear(&said), &["ready_xpub"]));
        sub.session.subscribe(b"news.", &mut sub.out);
        hub.hear(&golden.is(sub.said(), &names[..1]));
        sub.session.cancel(b"news.", &mut sub.out);
        hub.hear(&golden.is(sub.said(), &names[1..]));
        let news = Bytes::from_static(b"news.");
        assert_eq!(hub.steps[1..], [ZmtpStep::Subscribe(news.clone()), ZmtpStep::Cancel(news)], "{version:?}");
    }
}

fn refusals(golden: &mut Golden) {
    let mut server = End::new(settings(OwnSocketType::Counterpart, Security::PlainServer));
    server.accepts = false;
    server.said();
    let mut said = golden.vectors["greeting_plain_client"].clone();
    said.extend(&golden.vectors["plain_hello"]);
    golden.is(server.hear(&said), &["error_refused"]);
    assert_eq!(server.fault, Some(ZmtpFault::Refused));

    let mut server = End::new(settings(OwnSocketType::Is(SocketType::Rep), Security::Null));
    let said = [&golden.vectors["greeting_null"][..], &golden.vectors["ready_router"]].concat();
    server.said();
    let answer = server.hear(&said);
    let error = answer.len() - golden.vectors["error_socket_type"].len();
    golden.is(answer[error..].to_vec(), &["error_socket_type"]);
    let (ours, theirs) = (SocketType::Rep, SocketType::Router);
    assert_eq!(server.fault, Some(ZmtpFault::WrongSocketType { ours, theirs }));
}
