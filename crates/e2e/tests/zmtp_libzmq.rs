//! The ZMTP codec and the real libzmq understand each other: every mechanism, both who binds and who connects.

use std::net::{SocketAddr, TcpListener};

use serde_json::{Map, Value, json};
use turno_e2e::{Port, Pyzmq, Wire};
use turno_proto::zmtp::curve::KeyPair;
use turno_proto::zmtp::{OwnSocketType, Peer, Security, SocketType, User, Version, ZmtpFault, ZmtpSettings, ZmtpStep};

const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
const SERVER_SECRET: &str = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";
const CLIENT_SECRET: &str = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs";

fn keys(secret: &str) -> KeyPair {
    KeyPair::from_secret_text(secret).expect("a well-formed value")
}

fn settings(ours: OwnSocketType, security: Security) -> ZmtpSettings {
    // The peer hears by PING how long this end may be silent: here everything is done on one thread, slowly.
    ZmtpSettings { security, ping_ms: 60_000, ..ZmtpSettings::new(ours, MESSAGE_BYTES_MAX) }
}

fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("tcp://{}", listener.local_addr().expect("bound"));
    (listener, url)
}

/// A socket of libzmq, without the address of the other end.
fn socket(kind: &str, security: &Value) -> Map<String, Value> {
    let mut given = security.as_object().expect("a well-formed value").clone();
    given.insert("type".to_owned(), kind.into());
    given.insert("heartbeat_ms".to_owned(), 200.into());
    given
}

fn connect(kind: &str, url: &str, security: &Value) -> Value {
    let mut given = socket(kind, security);
    given.insert("connect".to_owned(), url.into());
    given.into()
}

fn bind(kind: &str, address: SocketAddr, security: &Value) -> Value {
    let mut given = socket(kind, security);
    given.insert("bind".to_owned(), format!("tcp://{address}").into());
    given.into()
}

/// Says back what it hears, until it hears `bye`.
fn echo(wire: &mut Wire) {
    loop {
        let parts = wire.message();
        wire.send(&parts);
        if parts.last().is_some_and(|part| part == b"bye") {
            return;
        }
    }
}

/// Each mechanism: what libzmq is given as a client, and what this end is as its server.
fn as_servers() -> [(Value, Security, User); 3] {
    let plain = json!({"user": "admin", "password": "secret"});
    let server_key = keys(SERVER_SECRET).public().to_string();
    let curve = json!({"curve_secret": CLIENT_SECRET, "server_key": server_key});
    [
        (json!({}), Security::Null, User::Unknown),
        (plain, Security::PlainServer, User::Name(b"admin"[..].into())),
        (curve, Security::CurveServer(keys(SERVER_SECRET)), User::Key(keys(CLIENT_SECRET).public())),
    ]
}

/// Each mechanism: what libzmq is given as a server, and what this end is as its client.
fn as_clients() -> [(Value, Security); 3] {
    let plain = Security::PlainClient { user: b"admin"[..].into(), password: b"secret"[..].into() };
    let curve = Security::CurveClient { keys: keys(CLIENT_SECRET), server: keys(SERVER_SECRET).public() };
    [
        (json!({}), Security::Null),
        (json!({"plain_server": true, "passwords": {"admin": "secret"}}), plain),
        (json!({"curve_secret": SERVER_SECRET, "curve_server": true}), curve),
    ]
}

/// libzmq dials. Messages of 100 frames, frames of 8 MiB and empty ones come back as they were; its heartbeats are answered.
#[test]
fn libzmq_connects() {
    for (given, security, user) in as_servers() {
        for (kind, theirs) in [("DEALER", SocketType::Dealer), ("REQ", SocketType::Req)] {
            let (listener, url) = listen();
            let mut given = connect(kind, &url, &given);
            given["identity"] = "its name".into();
            let program = Pyzmq::start("ask", &given);
            let mut wire = Wire::accept(&listener, settings(OwnSocketType::Counterpart, security.clone()));
            let Peer { socket_type, ours, identity, user: seen, version } = wire.handshake();
            assert_eq!((socket_type, ours, version), (theirs, SocketType::Router, Version::V3_1));
            assert_eq!((&*identity, seen), (&b"its name"[..], user.clone()));
            wire.beats(2);
            echo(&mut wire);
            program.done();
        }
    }
}

/// libzmq binds, this end dials: with ZMTP 3.0, too, which has no heartbeat of this end.
#[test]
fn libzmq_binds() {
    for (given, security) in as_clients() {
        for (kind, version) in [("REP", Version::V3_1), ("DEALER", Version::V3_0), ("ROUTER", Version::V3_1)] {
            let port = Port::reserve();
            let program = Pyzmq::start("answer", &bind(kind, port.address(), &given));
            let ours = ZmtpSettings { version, ..settings(OwnSocketType::Is(SocketType::Dealer), security.clone()) };
            let mut wire = Wire::dial(port.address(), ours);
            let peer = wire.handshake();
            assert_eq!((peer.socket_type.name(), peer.version), (kind, version));
            wire.beats(2);
            let large = vec![9; 8 * 1024 * 1024];
            let hundred: Vec<Vec<u8>> = (0..100).map(|at| vec![at; usize::from(at)]).collect();
            for parts in [vec![vec![]], vec![b"a".to_vec(), vec![]], hundred, vec![large], vec![b"bye".to_vec()]] {
                // A REP socket keeps everything up to the empty delimiter as the way back.
                let parts = if kind == "REP" { [vec![vec![]], parts].concat() } else { parts };
                wire.send(&parts);
                assert_eq!(wire.message(), parts, "{kind}");
            }
            program.done();
        }
    }
}

/// PINGs of this end are answered, whichever the mechanism: it would be given up for silence otherwise.
#[test]
fn libzmq_answers_heartbeats() {
    for (mut given, security, _) in as_servers() {
        let (listener, url) = listen();
        given["type"] = "DEALER".into();
        given["connect"] = url.into();
        let program = Pyzmq::start("ask", &given);
        let ours = ZmtpSettings { ping_ms: 4_000, ..settings(OwnSocketType::Counterpart, security) };
        let mut wire = Wire::accept(&listener, ours);
        wire.handshake();
        wire.beats(2);
        echo(&mut wire);
        program.done();
    }
}

#[test]
fn push_and_pull() {
    for (given, security, _) in as_servers() {
        let (listener, url) = listen();
        let push = Pyzmq::start("push", &connect("PUSH", &url, &given));
        let mut from = Wire::accept(&listener, settings(OwnSocketType::Counterpart, security.clone()));
        assert_eq!(from.handshake().ours, SocketType::Pull);
        let pull = Pyzmq::start("pull", &connect("PULL", &url, &given));
        let mut to = Wire::accept(&listener, settings(OwnSocketType::Counterpart, security));
        assert_eq!(to.handshake().ours, SocketType::Push);
        for _ in 0..6 {
            let parts = from.message();
            to.send(&parts);
        }
        push.done();
        pull.done();
    }
}

/// libzmq subscribes to this end, with commands to 3.1 and with messages to 3.0.
#[test]
fn libzmq_subscribes() {
    for version in [Version::V3_0, Version::V3_1] {
        for (given, security, _) in as_servers() {
            let (listener, url) = listen();
            let mut given = connect("SUB", &url, &given);
            given["subscribe"] = json!(["news.", "end"]);
            let program = Pyzmq::start("subscribe", &given);
            let mut wire =
                Wire::accept(&listener, ZmtpSettings { version, ..settings(OwnSocketType::Counterpart, security) });
            assert_eq!(wire.handshake().ours, SocketType::Xpub);
            let mut wanted = [wire.hear(), wire.hear()].map(|step| match step {
                Ok(ZmtpStep::Subscribe(prefix)) => prefix,
                other => panic!("no subscription: {other:?}"),
            });
            wanted.sort();
            assert_eq!(wanted, [&b"end"[..], b"news."]);
            wire.send(&[b"news.a".to_vec(), b"wanted".to_vec()]);
            match wire.hear() {
                Ok(ZmtpStep::Cancel(prefix)) => assert_eq!(&*prefix, b"news."),
                other => panic!("the subscription is not taken back: {other:?}"),
            }
            wire.send(&[b"end".to_vec()]);
            program.done();
        }
    }
}

/// This end subscribes to libzmq, in both forms.
#[test]
fn libzmq_publishes() {
    for version in [Version::V3_0, Version::V3_1] {
        for (given, security) in as_clients() {
            let port = Port::reserve();
            let program = Pyzmq::start("publish", &bind("XPUB", port.address(), &given));
            let ours = ZmtpSettings { version, ..settings(OwnSocketType::Is(SocketType::Sub), security) };
            let mut wire = Wire::dial(port.address(), ours);
            assert_eq!(wire.handshake().socket_type, SocketType::Xpub);
            wire.subscribe(b"news.");
            assert_eq!(wire.message(), [b"news.a".to_vec(), b"wanted".to_vec()]);
            wire.cancel(b"news.");
            program.done();
        }
    }
}

/// Every socket type that a broker may meet, and PAIR, which it refuses.
#[test]
fn every_socket_type_of_libzmq_shakes_job_workers() {
    for theirs in SocketType::ALL {
        let (listener, url) = listen();
        let program = Pyzmq::start("handshake", &connect(theirs.name(), &url, &json!({})));
        let mut wire = Wire::accept(&listener, settings(OwnSocketType::Counterpart, Security::Null));
        if let Some(ours) = theirs.counterpart() {
            assert_eq!((wire.handshake().ours, program.done().trim()), (ours, "succeeded"));
        } else {
            assert_eq!(wire.hear(), Err(ZmtpFault::NoCounterpart(*theirs)));
            drop(wire);
            assert_eq!(program.done().trim(), "disconnected", "ERROR is fatal to it: it does not dial again");
        }
    }
}

/// Who is refused hears so from either end.
#[test]
fn wrong_secrets_are_refused() {
    let [_, (plain, plain_server, _), (curve, curve_server, _)] = as_servers();
    // libzmq 4.3.5 spells ERROR wrongly in PLAIN and does not understand it: to it, that is as fatal.
    let refused = [(plain, plain_server, "not understood"), (curve, curve_server.clone(), "refused 400")];
    for (given, security, told) in refused {
        let (listener, url) = listen();
        let program = Pyzmq::start("handshake", &connect("DEALER", &url, &given));
        let mut wire = Wire::accept(&listener, settings(OwnSocketType::Counterpart, security)).refuse();
        assert_eq!(wire.hear(), Err(ZmtpFault::Refused));
        assert_eq!(program.done().trim(), told);
    }
    // A client that knows another server's key is not understood, and would dial again.
    let other = json!({"curve_secret": CLIENT_SECRET, "server_key": keys(CLIENT_SECRET).public().to_string()});
    let (listener, url) = listen();
    let program = Pyzmq::start("handshake", &connect("DEALER", &url, &other));
    let wire = Wire::accept(&listener, settings(OwnSocketType::Counterpart, curve_server.clone()));
    assert_eq!(wire.ends(), Some(ZmtpFault::BadBox));
    assert_eq!(program.done().trim(), "closed");
    // With another mechanism both ends see it: libzmq may close first.
    let (listener, url) = listen();
    let program = Pyzmq::start("handshake", &connect("DEALER", &url, &json!({})));
    let wire = Wire::accept(&listener, settings(OwnSocketType::Counterpart, curve_server));
    assert!(wire.ends().is_none_or(|fault| fault == ZmtpFault::WrongMechanism));
    assert_eq!(program.done().trim(), "not understood");
    // libzmq refuses a password.
    let port = Port::reserve();
    let given = json!({"plain_server": true, "passwords": {"admin": "another"}});
    let program = Pyzmq::start("handshake", &bind("ROUTER", port.address(), &given));
    let [_, (_, security), _] = as_clients();
    let mut wire = Wire::dial(port.address(), settings(OwnSocketType::Is(SocketType::Dealer), security));
    assert_eq!(wire.hear(), Err(ZmtpFault::RefusedByPeer));
    assert_eq!(program.done().trim(), "refused 400");
}
