//! `examples/python`: a client written from "Write a client" alone works with a real broker.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use turno_e2e::{Background, Broker, Place, Run, wait};
use turno_proto::model::Limits;
use turno_proto::native::{Config, Frame, Kind, encode};

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/python/turno_client.py");
const LINES_MAX: usize = 199;

fn python(place: &Place, address: &str, words: &[&str]) -> Command {
    let mut command = place.command("python3");
    command.arg(Path::new(CLIENT)).arg(address).args(words);
    command
}

fn run(broker: &Broker, words: &[&str]) -> Run {
    Run::finish(python(&broker.place, &broker.address().to_string(), words), b"", wait::PATIENCE)
}

/// It needs nothing but the standard library, and no more lines than the page promises.
#[test]
fn it_is_as_short_as_the_page_says() {
    let text = std::fs::read_to_string(CLIENT).expect("the example can be read");
    assert!(text.lines().count() <= LINES_MAX, "{} lines", text.lines().count());
    let imports: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("import ")).collect();
    let standard = ["collections", "contextlib", "itertools", "socket", "struct", "sys", "threading", "time"];
    assert_eq!(imports, standard);
    assert!(!text.lines().any(|line| line.starts_with("from ")), "every import is listed above");
}

#[test]
fn it_makes_requests_and_sends() {
    let broker = Broker::start();
    let _worker = broker.worker(&["shout", "--", "tr", "a-z", "A-Z"]);
    assert_eq!(run(&broker, &["request", "shout", "good morning"]).expect(0).text(), "GOOD MORNING\n");
    let id = run(&broker, &["send", "later", "one"]).expect(0).text().trim().to_owned();
    let explained = broker.run(&["message", "explain", &id, "--json"]).expect(0).json();
    assert_eq!(explained["message"]["queue"], "later", "{explained}");
    let refused = run(&broker, &["request", "no name", "x"]).expect(1);
    assert!(refused.stderr.starts_with("error: code 20: "), "{refused:?}");
}

/// Replies, acks and fails; and it leaves in order when the broker closes.
#[test]
fn it_works_on_a_queue_until_the_broker_closes() {
    let mut broker = Broker::start();
    let mut worker = Background::start(python(&broker.place, &broker.address().to_string(), &["work", "shout"]));
    worker.expect_line("ready");
    assert_eq!(broker.run(&["request", "shout", "good morning"]).expect(0).text(), "GOOD MORNING");
    broker.run(&["send", "shout", "one way"]).expect(0);
    wait::until("the send is acked", || broker.queue("shout")["counters"]["acked"] == 1);
    assert_eq!(broker.run(&["request", "shout", "fail", "--json"]).expect(1).json()["error"]["code"], "failed");
    assert_eq!(broker.terminate(wait::PATIENCE), 0);
    assert_eq!(worker.end(wait::PATIENCE), 0, "{:?}", worker.stderr());
    let said = ["ready", "attempt 1: good morning", "attempt 1: one way", "attempt 1: fail"];
    assert_eq!(worker.stdout(), said);
}

/// A broker of the test's own, which greets with a short heartbeat and then does as little as it likes.
struct Greeter {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Greeter {
    fn greet(listener: &TcpListener, heartbeat_ms: u32) -> Self {
        let (stream, _) = listener.accept().expect("the client connects");
        let mut greeter = Self { stream, bytes: Vec::new() };
        let (kind, seq) = greeter.next();
        assert_eq!(kind, Kind::Connect.number());
        let config = Box::new(Config { heartbeat_ms, liveness: 3, ..Config::of(&Limits::default()) });
        greeter.write(&Frame::Config { seq, config });
        greeter
    }

    fn write(&mut self, frame: &Frame<'_>) {
        let mut bytes = Vec::new();
        encode(frame, &mut bytes);
        self.stream.write_all(&bytes).expect("the client reads");
    }

    /// Type and seq of the next frame.
    fn next(&mut self) -> (u8, u32) {
        let mut header = [0; 16];
        self.stream.read_exact(&mut header).expect("another frame comes");
        let [_, _, kind, _, s0, s1, s2, s3, .., l0, l1, l2, l3] = header;
        self.bytes.resize(u32::from_le_bytes([l0, l1, l2, l3]) as usize, 0);
        self.stream.read_exact(&mut self.bytes).expect("the rest of the frame comes");
        (kind, u32::from_le_bytes([s0, s1, s2, s3]))
    }
}

/// While it waits for a reply it sends PING after every heartbeat.
#[test]
fn it_sends_heartbeats() {
    let (place, listener) = (Place::new(), TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let address = listener.local_addr().expect("it is bound").to_string();
    let mut client = Background::start(python(&place, &address, &["request", "q", "hello"]));
    // The client gives up after three heartbeats without an answer: long, because each PING is answered.
    let mut broker = Greeter::greet(&listener, 1_000);
    let mut pings = 0;
    let request = loop {
        match broker.next() {
            (kind, seq) if kind == Kind::Ping.number() => {
                broker.write(&Frame::Pong { seq });
                pings += 1;
            }
            (kind, seq) if kind == Kind::Open.number() => broker.write(&Frame::Ok { seq }),
            (kind, seq) if kind == Kind::Request.number() => break seq,
            other => panic!("{other:?}"),
        }
    };
    while pings < 3 {
        let (kind, seq) = broker.next();
        assert_eq!(kind, Kind::Ping.number());
        broker.write(&Frame::Pong { seq });
        pings += 1;
    }
    broker.stream.write_all(&reply(request, b"HELLO")).expect("the client reads");
    assert_eq!(client.end(wait::PATIENCE), 0, "{:?}", client.stderr());
    assert_eq!(client.stdout(), ["HELLO"]);
}

fn reply(seq: u32, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("a short body");
    let head = [&[0x47, 0xc0, Kind::Reply.number(), 0][..], &seq.to_le_bytes(), &[0; 4], &length.to_le_bytes()];
    [&head.concat(), body].concat()
}

/// A broker that says nothing any more is given up.
#[test]
fn it_gives_up_a_silent_broker() {
    let (place, listener) = (Place::new(), TcpListener::bind("127.0.0.1:0").expect("a free port"));
    let address = listener.local_addr().expect("it is bound").to_string();
    let mut client = Background::start(python(&place, &address, &["request", "q", "hello"]));
    let mut broker = Greeter::greet(&listener, 100);
    assert_eq!(client.end(wait::PATIENCE), 1);
    assert_eq!(client.stderr(), ["error: timed out"]);
    // What it had sent may be lost to the reset that its end causes.
    let end = broker.stream.read_to_end(&mut Vec::new());
    assert!(end.is_ok() || end.is_err_and(|error| error.kind() == ErrorKind::ConnectionReset));
}
