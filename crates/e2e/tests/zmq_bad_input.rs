//! Bytes and messages of ZeroMQ peers that must not be: each has the outcome that docs/reference/zeromq.md states, and nobody else
//! notices.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use serde_json::json;
use turno_e2e::{Broker, Pyzmq, Wire, ZmqProgram, process, wait};
use turno_proto::model::{Code, Mono, limits};
use turno_proto::zmtp::curve::{ENTROPY_LEN, Entropy, KeyPair, PublicKey};
use turno_proto::zmtp::{OwnSocketType, Security, SocketType, ZmtpSession, ZmtpSettings};

const SERVER_SECRET: &str = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";
const CLIENT_SECRET: &str = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs";

/// Memory by which a broker may grow, whatever a peer claims.
const GROWTH_MAX: u64 = 32 << 20;

fn keys(secret: &str) -> KeyPair {
    KeyPair::from_secret_text(secret).expect("a key")
}

fn address(broker: &Broker) -> SocketAddr {
    broker.zmq_url(0).trim_start_matches("tcp://").parse().expect("an address")
}

/// A peer of that type whose handshake is done.
fn peer(broker: &Broker, kind: SocketType) -> Wire {
    let settings = ZmtpSettings { ping_ms: 0, ..ZmtpSettings::new(OwnSocketType::Is(kind), 1 << 20) };
    let mut wire = Wire::dial(address(broker), settings);
    wire.handshake();
    wire
}

fn dial(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the broker listens");
    stream.set_read_timeout(Some(wait::PATIENCE)).expect("our own socket");
    stream
}

/// Waits until the broker closes the connection; what it says before does not matter.
#[track_caller]
fn is_closed(stream: &mut TcpStream) {
    let mut buffer = [0; 1024];
    // A reset is an end, too.
    while stream.read(&mut buffer).unwrap_or_else(|error| {
        assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}");
        0
    }) > 0
    {}
}

/// The greeting of a peer with this mechanism.
fn greeting(mechanism: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1];
    bytes.extend_from_slice(mechanism);
    bytes.resize(64, 0);
    bytes
}

/// Others are served, and the broker has not grown.
fn is_well(broker: &mut Broker, before: u64) {
    let url = broker.zmq_url(0);
    let works = Pyzmq::start("answer", &json!({"type": "REP", "connect": url}));
    assert_eq!(broker.run(&["request", "zmq", "bye"]).expect(0).text(), "bye");
    works.done();
    let grown = process::memory_now(broker.process().id()).saturating_sub(before);
    assert!(grown < GROWTH_MAX, "{grown} bytes more");
}

/// What is not ZMTP 3, and mechanisms that the endpoint has not.
#[test]
fn greetings_that_must_not_be_end_the_connection() {
    let zmtp_2 = [&greeting(b"")[..10], &[1, 5, 0, 0]].concat();
    let table: [(&[u8], Code); 7] = [
        (b"\x01\x00", Code::OldZmtp),
        (b"\x05\x00name", Code::OldZmtp),
        (&zmtp_2, Code::OldZmtp),
        (b"GET / HTTP/1.1\r\n\r\n", Code::NotZmtp),
        (&greeting(b"XYZ"), Code::WrongMechanism),
        (&greeting(b"GSSAPI"), Code::WrongMechanism),
        (&greeting(b"PLAIN"), Code::WrongMechanism),
    ];
    for (bytes, code) in table {
        let mut broker = Broker::start_for_zmq("");
        let before = process::memory_now(broker.process().id());
        let mut stream = dial(address(&broker));
        stream.write_all(bytes).expect("the broker reads");
        is_closed(&mut stream);
        broker.process().expect_line(&format!("code={code}"));
        assert_eq!(broker.endpoint("default")["bad_handshake"], 1, "{}", bytes.escape_ascii());
        is_well(&mut broker, before);
    }
}

/// Frames that claim too much, never end, or are for another socket type.
#[test]
fn frames_that_must_not_be_end_the_connection() {
    let four_gib = [&[2][..], &(4_u64 << 30).to_be_bytes(), b"the beginning"].concat();
    let all_bits = [&[2][..], &u64::MAX.to_be_bytes()].concat();
    let command = [&[6][..], &(8_u64 << 20).to_be_bytes(), b"\x04PING"].concat();
    let endless = [1, 0].repeat(limits::ZMTP_FRAMES_MAX + 1);
    let endless_bytes = [&[3][..], &(1_u64 << 20).to_be_bytes(), &vec![0; 1 << 20]].concat().repeat(20);
    let table: [(SocketType, &[u8], Code); 7] = [
        (SocketType::Req, &four_gib, Code::FrameTooLarge),
        (SocketType::Push, &all_bits, Code::FrameTooLarge),
        (SocketType::Dealer, &command, Code::BadZmtp),
        (SocketType::Req, b"\x04\x0e\x09SUBSCRIBEnews", Code::WrongSocketType),
        (SocketType::Pull, b"\x00\x01x", Code::WrongSocketType),
        (SocketType::Dealer, &endless, Code::TooManyParts),
        (SocketType::Push, &endless_bytes, Code::FrameTooLarge),
    ];
    for (kind, bytes, code) in table {
        let mut broker = Broker::start_for_zmq("[limits]\nmessage = \"8MiB\"\n");
        let before = process::memory_now(broker.process().id());
        let mut bad = peer(&broker, kind);
        bad.say_bytes(bytes);
        broker.process().expect_line(&format!("code={code}"));
        wait::until("it is closed", || broker.endpoint("default")["peers_all"] == 0);
        is_well(&mut broker, before);
    }
}

/// A client of CURVE as far as WELCOME: the connection, and the INITIATE that it would say.
fn initiate(address: SocketAddr, server: PublicKey) -> (TcpStream, Vec<u8>) {
    let security = Security::CurveClient { keys: keys(CLIENT_SECRET), server };
    let settings = ZmtpSettings { security, ..ZmtpSettings::new(OwnSocketType::Is(SocketType::Dealer), 1 << 20) };
    let (mut stream, mut out) = (dial(address), Vec::new());
    // The same each time, so that both connections say the same HELLO.
    let mut session = ZmtpSession::begin(Mono::ZERO, Arc::new(settings), Entropy::new([7; ENTROPY_LEN]), &mut out);
    let mut heard = Vec::new();
    for _ in 0..2 {
        stream.write_all(&std::mem::take(&mut out)).expect("the broker reads");
        while out.is_empty() {
            let mut buffer = [0; 1024];
            let count = stream.read(&mut buffer).expect("the broker answers");
            assert!(count > 0, "the broker closed the connection");
            heard.extend_from_slice(&buffer[..count]);
            let mut used = 0;
            loop {
                let (_, step) = session.step(Mono::ZERO, &heard[used..], &mut out).expect("the broker is understood");
                used += step;
                if step == 0 || used == heard.len() {
                    break;
                }
            }
            heard.drain(..used);
        }
    }
    (stream, out)
}

/// A wrong key of the server, a key that may not connect, and a cookie of another connection.
#[test]
fn curve_clients_that_must_not_connect_are_refused() {
    let client = keys(CLIENT_SECRET).public();
    let config = format!(
        "[[zmq.endpoint]]\nname = \"locked\"\nlisten = \"tcp://127.0.0.1:0\"\nmechanism = \"curve\"\n\
         secret-key = '{SERVER_SECRET}'\nclient-keys = ['{client}']\n"
    );
    let mut broker = Broker::start_for_zmq(&config);
    let (url, server) = (broker.zmq_url(1), keys(SERVER_SECRET).public());
    let address: SocketAddr = url.trim_start_matches("tcp://").parse().expect("an address");
    let given = |secret: &str, server: PublicKey| json!({"type": "DEALER", "connect": url, "curve_secret": secret, "server_key": server.to_string()});
    let table = [
        (given(CLIENT_SECRET, client), "closed", Code::BadCurve),
        (given(SERVER_SECRET, server), "refused 400", Code::NotAuthenticated),
        (given(CLIENT_SECRET, server), "succeeded", Code::BadCurve),
    ];
    for (given, told, code) in &table[..2] {
        assert_eq!(Pyzmq::start("handshake", given).done().trim(), *told);
        broker.process().expect_line(&format!("code={code}"));
    }
    let ((mut one, of_one), (mut two, of_two)) = (initiate(address, server), initiate(address, server));
    assert_ne!(of_one, of_two);
    two.write_all(&of_one).expect("the broker reads");
    is_closed(&mut two);
    broker.process().expect_line("the cookie is not the one that this connection gave");
    one.write_all(&of_one).expect("the broker reads");
    wait::until("where it was given it opens", || broker.endpoint("locked")["peers_all"] == 1);
    // Nobody who was refused keeps others out.
    assert_eq!(Pyzmq::start("handshake", &table[2].0).done().trim(), table[2].1);
}

/// One peer has 10,000 subscriptions; more are counted and not kept, and it hears what it subscribed to.
#[test]
fn a_hundred_thousand_subscriptions_are_too_many() {
    const ALL: u64 = 100_000;
    let most = limits::SUBSCRIPTIONS_MAX as u64;
    let mut broker = Broker::start_for_zmq("");
    let before = process::memory_now(broker.process().id());
    let mut sub = peer(&broker, SocketType::Sub);
    for number in 0..ALL {
        sub.subscribe(format!("t.{number}.").as_bytes());
    }
    wait::until("the rest is counted", || broker.endpoint("default")["refused"] == ALL - most);
    assert_eq!(broker.subscribers()[0]["filters_all"], most);
    broker.publish("t.99999.x", "refused");
    broker.publish("t.9999.x", "kept");
    assert_eq!(sub.message(), [b"t.9999.x".to_vec(), b"kept".to_vec()]);
    // Room that is given back can be used.
    sub.cancel(b"t.1.");
    sub.subscribe(b"t.99999.");
    wait::until("it has another one", || {
        broker.publish("t.99999.x", "now");
        broker.subscribers()[0]["events"].as_u64() > Some(1)
    });
    assert_eq!(sub.message(), [b"t.99999.x".to_vec(), b"now".to_vec()]);
    is_well(&mut broker, before);
}

/// 10,000 peers that begin a handshake and do not go on: the oldest are closed, and a real client is served at once.
#[test]
fn half_open_handshakes_keep_nobody_out() {
    let mut broker = Broker::start_for_zmq("");
    let (id, address) = (broker.process().id(), address(&broker));
    let before = process::memory_now(id);
    let whole = greeting(b"NULL");
    let mut open: VecDeque<TcpStream> = VecDeque::new();
    for number in 0..10_000 {
        let mut stream = dial(address);
        // Nothing, a piece of the greeting, all of it, or the beginning of READY behind it.
        let said = [&whole[..], b"\x04\x19\x05READY"].concat();
        let end = [0, 7, 64, said.len()][number % 4];
        stream.write_all(&said[..end]).expect("the broker reads");
        open.push_back(stream);
        if open.len() > 2 * limits::GREETINGS_MAX {
            is_closed(&mut open.pop_front().expect("one of them"));
        }
    }
    wait::until("the others are closed", || process::sockets(id) < limits::GREETINGS_MAX + 50);
    is_well(&mut broker, before);
    drop(open);
    wait::until("the sockets are gone", || process::sockets(id) < 20);
}

/// Workers of Majordomo that answer without a request, or for another one, change nothing: the one that has it answers.
#[test]
fn majordomo_workers_answer_for_themselves_alone() {
    let broker = Broker::start_for_zmq("");
    let (program, url) = (ZmqProgram::start(), broker.zmq_url(0));
    let workers = [(); 2].map(|()| {
        let worker = program.socket("DEALER", &json!({})).connect(&url);
        worker.send(&[&b""[..], b"MDPW01", b"\x01", b"echo"]);
        worker.beat(&[&b""[..], b"MDPW01", b"\x04"]);
        worker
    });
    wait::until("both work", || broker.workers() == 2);
    let reply = |address: &[u8], body: &[u8]| [&b""[..], b"MDPW01", b"\x03", address, b"", body].map(<[u8]>::to_vec);
    for address in [&b""[..], b"short", b"12345678", &[0; 8], &[0xff; 8]] {
        workers[0].send(&reply(address, b"without a request"));
    }
    let counted = || {
        let counters = broker.status()["counters"].take();
        let strays = ["late", "doubled", "forged"].iter().filter_map(|name| counters[name].as_u64()).sum::<u64>();
        (broker.endpoint("default")["bad_envelope"].as_u64(), strays)
    };
    wait::until("all of them are counted", || counted() == (Some(2), 3));
    let client = program.socket("REQ", &json!({})).connect(&url);
    client.send(&["MDPC01", "echo", "hi"]);
    let mut given = None;
    wait::until("one of them has the request", || {
        let waiting = workers.iter().enumerate().filter(|(_, worker)| worker.has_message());
        // HEARTBEATs are shorter.
        let mut frames = waiting.map(|(at, worker)| (at, worker.recv()));
        given = frames.find(|(_, frames)| frames.len() == 6);
        given.is_some()
    });
    let (holder, frames) = given.expect("a request");
    workers[1 - holder].send(&reply(&frames[3], b"of another"));
    wait::until("it is counted", || counted() == (Some(2), 4));
    for _ in 0..2 {
        workers[holder].send(&reply(&frames[3], b"of the one that has it"));
    }
    assert_eq!(client.recv(), [&b"MDPC01"[..], b"echo", b"of the one that has it"]);
    wait::until("what it said again is counted", || counted() == (Some(2), 5));
    assert_eq!(broker.workers(), 2, "both are there");
}
