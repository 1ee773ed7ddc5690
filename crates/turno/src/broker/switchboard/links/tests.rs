//! Two switchboards and the bytes between them; the test is the engine of both.

use std::sync::Arc;

use turno_engine::{Effect, Event, FarWord, Forward, ForwardBroadcast, ForwardEvent, Input, LinkWord, Sink};
use turno_proto::model::link::{BrokerId, Claim, ForwardWants, Offer, Path, Presence, Relay, Room};
use turno_proto::model::{
    BroadcastEnd, Closing, ClosingReason, Code, ConnId, Delivery, Limits, MessageId, Mono, Payload, limits,
};
use turno_proto::native::{
    Config, Connect, Credentials, Frame, HEADER_LEN, Identity, LinkSession, Secret, VERSION, decode, encode, split,
};

use super::super::lines::Seat;
use super::super::{Desk, Door, Switchboard};
use super::{LinkSettings, Nonces, is_local};

const SECRET: &[u8] = b"correct horse battery staple";

/// Keeps what it hears.
#[derive(Debug, Default)]
struct Ear(Vec<Input>);

impl Desk for Ear {
    fn put(&mut self, _now: Mono, input: Input, _sink: &mut impl Sink) {
        self.0.push(input);
    }
}

/// A broker without an engine.
struct Broker {
    board: Switchboard<Ear>,
    now: Mono,
    conn: ConnId,
}

fn config() -> Config {
    Config {
        version: VERSION,
        broker: "b".into(),
        program: String::new(),
        heartbeat_ms: limits::HEARTBEAT_MS,
        liveness: limits::LIVENESS,
        frame_bytes_max: 1 << 20,
        request_deadline_ms: 1_000,
        brokers: Vec::new(),
    }
}

fn credentials(id: u64, secret: Option<&[u8]>, frame_bytes_max: u64) -> Credentials {
    let name = format!("broker {id}");
    let identity = Identity { broker: BrokerId::new(id), name, program: String::new(), frame_bytes_max };
    Credentials::new(identity, secret.map(|secret| Secret::new(secret).unwrap()))
}

fn board(id: u64, secret: Option<&[u8]>) -> Switchboard<Ear> {
    let mut board = Switchboard::with_desk(Ear::default(), Limits::default(), config(), Seat::default());
    board.set_links(LinkSettings { credentials: credentials(id, secret, 1 << 20), nonces: Nonces::Seeded(id) });
    board
}

impl Broker {
    fn dialling(secret: Option<&[u8]>, address: &str) -> Self {
        let (now, mut board) = (Mono::from_millis(10), board(1, secret));
        let conn = board.dial(now, 7, address.to_owned()).expect("there is room");
        Self { board, now, conn }
    }

    fn accepting(secret: Option<&[u8]>, address: &str) -> Self {
        let (now, mut board) = (Mono::from_millis(10), board(2, secret));
        let conn = board.accept(now, address.to_owned(), Door::Native).expect("there is room");
        Self { board, now, conn }
    }

    /// What it has heard since the last time.
    fn heard(&mut self) -> Vec<Input> {
        std::mem::take(&mut self.board.desk_mut().0)
    }

    fn effect(&mut self, effect: Effect) {
        self.board.carry_out(self.now, effect);
    }

    /// Everything it has to say, which is then said.
    fn said(&mut self) -> Vec<u8> {
        let mut said = Vec::new();
        loop {
            let bytes = self.board.unwritten(self.conn).to_vec();
            if bytes.is_empty() {
                return said;
            }
            self.board.wrote(self.now, self.conn, bytes.len());
            said.extend(bytes);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let mut turn = self.board.take(self.now, self.conn, bytes);
        while turn == crate::broker::turn::Turn::Cut {
            turn = self.board.go_on(self.now, self.conn);
        }
    }
}

/// What each says comes to the other, until both are silent.
fn talk(a: &mut Broker, b: &mut Broker) {
    loop {
        let (from_a, from_b) = (a.said(), b.said());
        if from_a.is_empty() && from_b.is_empty() {
            return;
        }
        b.take(&from_a);
        a.take(&from_b);
    }
}

/// A link that is up: who dialled, who was dialled.
fn linked() -> (Broker, Broker) {
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    let mut b = Broker::accepting(Some(SECRET), "10.0.0.1:4711");
    talk(&mut a, &mut b);
    let conn = a.conn;
    assert_eq!(a.heard(), [Input::Greeted { conn, target: 7, broker: BrokerId::new(2) }]);
    assert_eq!(b.heard(), [], "it is not told before the other has proven itself");
    a.effect(Effect::Prove { conn });
    talk(&mut a, &mut b);
    let (name, address) = ("broker 2".to_owned(), "10.0.0.2:7460".to_owned());
    assert_eq!(
        a.heard(),
        [Input::Linked {
            conn,
            target: Some(7),
            broker: BrokerId::new(2),
            name,
            address,
            payload_max: (1 << 20) - HEADER_LEN as u64
        }]
    );
    let (name, address, conn) = ("broker 1".to_owned(), "10.0.0.1:4711".to_owned(), b.conn);
    assert_eq!(
        b.heard(),
        [Input::Linked {
            conn,
            target: None,
            broker: BrokerId::new(1),
            name,
            address,
            payload_max: (1 << 20) - HEADER_LEN as u64
        }]
    );
    (a, b)
}

fn frames(bytes: &[u8]) -> Vec<Frame<'_>> {
    let (mut rest, mut frames) = (bytes, Vec::new());
    while let Some(piece) = split(rest, usize::MAX).unwrap() {
        frames.push(decode(&piece.header, piece.rest).unwrap());
        rest = &rest[piece.used..];
    }
    frames
}

fn payload(bytes: &[u8]) -> Payload {
    Payload { headers: false, bytes: bytes.to_vec().into() }
}

fn path(ids: &[u64]) -> Path {
    Path::new(ids.iter().map(|id| BrokerId::new(*id)).collect()).unwrap()
}

fn forward(bytes: usize) -> Forward {
    Forward {
        seq: 5,
        handle: 3,
        id: MessageId::new(1, 2, 3),
        wants: ForwardWants::Reply,
        attempt: 1,
        cost: 2,
        priority: 4,
        deadline_ms: Some(1_000),
        path: path(&[1]),
        payload: payload(&vec![b'x'; bytes]),
    }
}

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
    a.effect(Effect::Unlink { conn: a.conn, code: Code::AlreadyLinked });
    assert_eq!(a.heard(), [Input::Disconnected { conn: a.conn }]);
    talk(&mut a, &mut b);
    assert_eq!(b.heard(), [Input::Disconnected { conn: b.conn }]);
    assert!(a.board.said_all(a.conn) && b.board.said_all(b.conn));
}

/// Every word that may cross, from the one engine to the other.
#[test]
fn what_one_engine_says_the_other_hears() {
    let (mut a, mut b) = linked();
    let (conn, to) = (a.conn, b.conn);
    let offers =
        vec![Offer { queue: "q".into(), held: 1, rooms: vec![Room { path: path(&[1]), free: 3, token: Some(9) }] }];
    let brokers =
        vec![Presence { path: path(&[1]), name: "a".into(), neighbours: vec![BrokerId::new(2)], listens: true }];
    let broadcast = ForwardBroadcast {
        seq: 6,
        handle: 3,
        deadline_ms: 1_000,
        no_reply: false,
        targets: vec![BrokerId::new(2)],
        path: path(&[1]),
        payload: payload(b"all"),
    };
    let event = Arc::new(Event { topic: "a.b".parse().unwrap(), payload: payload(b"event") });
    let event = ForwardEvent { number: 9, targets: vec![BrokerId::new(2)], path: path(&[1]), event };
    let claim = Claim::Ask { queue: "q".into(), number: 1 };
    let relay = Relay { to: BrokerId::new(2), path: path(&[1]), claim };
    let end = Box::new(BroadcastEnd { consumers: 1, answered: 1, ..BroadcastEnd::default() });
    let word = |word: &LinkWord| Box::new(word.clone());
    let words = [
        LinkWord::Offers(offers),
        LinkWord::Presence(brokers),
        LinkWord::Broadcast(broadcast),
        LinkWord::Event(event),
        LinkWord::Relay(relay),
    ];
    let mut said: Vec<Effect> = words.iter().map(|w| Effect::Link { conn, word: word(w) }).collect();
    let mut heard: Vec<Input> = words.iter().map(|w| Input::Link { conn: to, word: word(w) }).collect();
    let queue = || "q".parse().unwrap();
    said.push(Effect::LinkOpen { conn, handle: 3, queue: queue() });
    heard.push(Input::Open { conn: to, seq: 3, handle: 3, queue: queue() });
    said.push(Effect::Forward { conn, forward: Box::new(forward(5)) });
    heard.push(Input::Forwarded { conn: to, forward: Box::new(forward(5)) });
    said.push(Effect::CancelDelivery { conn, delivery: Delivery { index: 77, stamp: 5 }, reason: Code::TimedOut });
    heard.push(Input::FarCancel { conn: to, seq: 5, reason: Code::TimedOut });
    said.push(Effect::Closing { conn, closing: Closing { reason: ClosingReason::Shutdown, within_ms: 0 } });
    heard.push(Input::PeerClosing { conn: to });
    let far = [
        (
            Effect::Reply { conn, seq: 5, more: true, payload: payload(b"r") },
            FarWord::Reply { more: true, payload: payload(b"r") },
        ),
        (Effect::Progress { conn, seq: 5, payload: payload(b"p") }, FarWord::Progress { payload: payload(b"p") }),
        (Effect::Delivered { conn, seq: 5 }, FarWord::Delivered),
        (Effect::FarAck { conn, seq: 5 }, FarWord::Ack),
        (
            Effect::FarFail { conn, seq: 5, permanent: true, payload: payload(b"f") },
            FarWord::Fail { permanent: true, payload: payload(b"f") },
        ),
        (
            Effect::Undelivered { conn, seq: 5, code: Code::NoRoom, payload: Payload::default() },
            FarWord::Undelivered { code: Code::NoRoom, payload: Payload::default() },
        ),
        (
            Effect::BroadcastAnswer {
                conn,
                seq: 5,
                worker: 8,
                name: "w".into(),
                more: false,
                failed: true,
                payload: payload(b"a"),
            },
            FarWord::BroadcastAnswer { worker: 8, name: "w".into(), more: false, failed: true, payload: payload(b"a") },
        ),
        (Effect::BroadcastEnd { conn, seq: 5, end: end.clone() }, FarWord::BroadcastEnd { end }),
    ];
    for (effect, word) in far {
        said.push(effect);
        heard.push(Input::Far { conn: to, seq: 5, word });
    }
    for effect in said {
        a.effect(effect);
    }
    talk(&mut a, &mut b);
    assert_eq!(b.heard(), heard);

    // OPEN is answered, and the answer is nothing to the engine that asked.
    b.effect(Effect::Ok { conn: to, seq: 3 });
    b.effect(Effect::Error { conn: to, seq: 4, code: Code::TooManyQueues });
    talk(&mut a, &mut b);
    assert_eq!(a.heard(), []);
}

#[test]
fn both_ends_measure_the_round_trip_and_silence_ends_the_link() {
    let (mut a, mut b) = linked();
    for broker in [&mut a, &mut b] {
        broker.board.sweep(broker.now);
        broker.now = Mono::from_micros(10_250);
    }
    talk(&mut a, &mut b);
    let trip = |conn| [Input::RoundTrip { conn, micros: 250 }];
    assert_eq!((a.heard(), b.heard()), (trip(a.conn).to_vec(), trip(b.conn).to_vec()));

    // Nothing of it comes over any more.
    a.now = Mono::from_millis(10).plus_millis(3_001);
    a.board.sweep(a.now);
    assert_eq!(a.heard(), [Input::Disconnected { conn: a.conn }]);
    let said = a.said();
    assert!(matches!(frames(&said).last(), Some(Frame::Error { code: Code::PeerSilent, fatal: true, .. })));
}

/// However much waits for it, a link is read from: the other end may wait for the same.
#[test]
fn a_link_is_always_read_from() {
    let (mut a, mut b) = linked();
    for broker in [&mut a, &mut b] {
        let conn = broker.conn;
        for _ in 0..20 {
            broker.effect(Effect::Forward { conn, forward: Box::new(forward(1_000_000)) });
        }
        assert!(broker.board.wants_reading(conn));
        assert_eq!(broker.heard(), [], "deliveries do not count against it");
    }
}

/// A target that is not reached is told to the engine, once, with the code.
#[test]
fn a_dial_that_comes_to_nothing_is_told_once() {
    let failed = |code| vec![Input::DialFailed { target: 7, code }];
    // The connection breaks before the greeting is done.
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    a.board.hang_up(a.now, a.conn);
    a.board.hang_up(a.now, a.conn);
    assert_eq!(a.heard(), failed(Code::LinkDown));

    // Nobody says anything.
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    a.now = a.now.plus_millis(limits::GREETING_MS_MAX);
    a.board.sweep(a.now);
    a.board.hang_up(a.now, a.conn);
    assert_eq!(a.heard(), failed(Code::GreetingTimeout));

    // Another secret.
    let mut a = Broker::dialling(Some(b"another secret, as long"), "10.0.0.2:7460");
    let mut b = Broker::accepting(Some(SECRET), "10.0.0.1:4711");
    talk(&mut a, &mut b);
    assert_eq!((a.heard(), b.heard()), (failed(Code::LinkRefused), vec![]));

    // None at the other end, which is not on this machine: it says why.
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    let mut b = Broker::accepting(None, "10.0.0.1:4711");
    talk(&mut a, &mut b);
    assert_eq!((a.heard(), b.heard()), (failed(Code::LinkRefused), vec![]));

    // After the other end showed itself, before the engine said anything.
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    let mut b = Broker::accepting(Some(SECRET), "10.0.0.1:4711");
    talk(&mut a, &mut b);
    a.heard();
    a.board.hang_up(a.now, a.conn);
    assert_eq!(a.heard(), failed(Code::LinkDown));
    a.effect(Effect::Prove { conn: a.conn });
    assert_eq!(a.heard(), [], "a late yes does nothing");

    // No room for another connection, and no links at all.
    let mut full = board(1, Some(SECRET));
    full.limits.connections_max = 0;
    assert_eq!(full.dial(Mono::ZERO, 7, "10.0.0.2:7460".to_owned()), None);
    assert_eq!(std::mem::take(&mut full.desk_mut().0), failed(Code::TooManyConnections));
    full.dial_failed(Mono::ZERO, 7, Code::LinkDown);
    assert_eq!(std::mem::take(&mut full.desk_mut().0), failed(Code::LinkDown));
}

/// The engine does not want the link: the other end hears why, and this one no more of it.
#[test]
fn a_link_that_is_not_wanted_ends_before_the_proof() {
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    let mut b = Broker::accepting(Some(SECRET), "10.0.0.1:4711");
    talk(&mut a, &mut b);
    assert_eq!(a.heard().len(), 1);
    a.effect(Effect::Unlink { conn: a.conn, code: Code::LinkToItself });
    let said = a.said();
    assert!(matches!(frames(&said)[..], [Frame::Error { code: Code::LinkToItself, fatal: true, .. }]));
    b.take(&said);
    a.board.hang_up(a.now, a.conn);
    assert_eq!((a.heard(), b.heard()), (vec![], vec![]));
}

/// Without a secret brokers link on one machine only.
#[test]
fn without_a_secret_only_on_one_machine() {
    for (address, links) in [("127.0.0.1:4711", true), ("unix:1", true), ("10.0.0.1:4711", false)] {
        let mut a = Broker::dialling(None, "127.0.0.1:7460");
        let mut b = Broker::accepting(None, address);
        talk(&mut a, &mut b);
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
    talk(&mut a, &mut b);
    assert_eq!((a.heard(), b.heard()), (vec![gone(&a)], vec![gone(&b)]));

    let mut plain = Switchboard::with_desk(Ear::default(), Limits::default(), config(), Seat::default());
    let conn = plain.accept(Mono::ZERO, "127.0.0.1:1".to_owned(), Door::Native).unwrap();
    let mut bytes = Vec::new();
    LinkSession::dial(Mono::ZERO, credentials(1, None, 1 << 20), [1; 32], true, &mut bytes);
    assert_eq!(plain.take(Mono::ZERO, conn, &bytes), crate::broker::turn::Turn::Done);
    assert!(matches!(frames(plain.unwritten(conn))[..], [Frame::Error { code: Code::ExpectedConnect, .. }]));
}

fn gone(broker: &Broker) -> Input {
    Input::Disconnected { conn: broker.conn }
}

/// What the other end's clients could not have sent does not cross, either way, and whoever waits hears of it.
#[test]
fn what_is_too_long_for_the_other_end_does_not_cross() {
    let (mut a, mut b) = linked();
    let (conn, to) = (a.conn, b.conn);
    let most = (1 << 20) - 16;
    a.effect(Effect::Forward { conn, forward: Box::new(forward(most)) });
    talk(&mut a, &mut b);
    assert_eq!(b.heard(), [Input::Forwarded { conn: to, forward: Box::new(forward(most)) }]);
    a.effect(Effect::Forward { conn, forward: Box::new(forward(most + 1)) });
    let undelivered = FarWord::Undelivered { code: Code::FrameTooLarge, payload: Payload::default() };
    assert_eq!(a.heard(), [Input::Far { conn, seq: 5, word: undelivered.clone() }]);
    assert!(a.said().is_empty());

    let long = payload(&vec![b'x'; most + 1]);
    for effect in [
        Effect::Progress { conn: to, seq: 4, payload: long.clone() },
        Effect::Reply { conn: to, seq: 5, more: false, payload: long.clone() },
        Effect::FarFail { conn: to, seq: 5, permanent: false, payload: long },
    ] {
        b.effect(effect);
    }
    talk(&mut a, &mut b);
    let far = || Input::Far { conn, seq: 5, word: undelivered.clone() };
    assert_eq!(a.heard(), [far(), far()]);
}

/// Many offers go in several frames, each of which the other end may read.
#[test]
fn many_offers_are_told_in_pieces() {
    let (mut a, mut b) = linked();
    let offers: Vec<Offer> =
        (0..150).map(|number| Offer { queue: format!("q{number}"), held: 0, rooms: Vec::new() }).collect();
    a.effect(Effect::Link { conn: a.conn, word: Box::new(LinkWord::Offers(offers.clone())) });
    talk(&mut a, &mut b);
    let mut heard = Vec::new();
    for input in b.heard() {
        let Input::Link { word, .. } = input else { panic!("{input:?}") };
        let LinkWord::Offers(some) = *word else { panic!("{word:?}") };
        assert!(some.len() <= limits::OFFERS_MAX);
        heard.extend(some);
    }
    assert_eq!(heard, offers);
}

/// A link that is not read from loses the oldest events, and nothing else; this end's engine hears how many.
#[test]
fn events_that_nobody_takes_go_and_all_else_stays() {
    let (mut a, mut b) = linked();
    let conn = a.conn;
    for number in 0..200 {
        let event = Arc::new(Event { topic: "a.b".parse().unwrap(), payload: payload(&[0; 100_000]) });
        let word = LinkWord::Event(ForwardEvent { number, targets: vec![BrokerId::new(2)], path: path(&[1]), event });
        a.effect(Effect::Link { conn, word: Box::new(word) });
    }
    a.effect(Effect::FarAck { conn, seq: 5 });
    a.board.sweep(a.now);
    let told = a.heard();
    let [Input::EventsDropped { count, .. }] = told[..] else { panic!("{told:?}") };
    talk(&mut a, &mut b);
    let mut numbers = Vec::new();
    let mut acks = 0;
    for input in b.heard() {
        match input {
            Input::Link { word, .. } => match *word {
                LinkWord::Event(event) => numbers.push(event.number),
                other => panic!("{other:?}"),
            },
            Input::Far { word: FarWord::Ack, .. } => acks += 1,
            Input::RoundTrip { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((numbers.len() as u64 + count, acks), (200, 1));
    assert!(numbers.is_sorted() && numbers.last() == Some(&199) && count > 0);
}

#[test]
fn the_engine_wants_links_dialled() {
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    assert!(!a.board.has_dials());
    a.effect(Effect::Dial { target: 9, address: "far:7460".to_owned() });
    assert!(a.board.has_dials());
    assert_eq!(a.board.take_dials(), [super::Dial { target: 9, address: "far:7460".to_owned() }]);
    assert_eq!(a.board.take_dials(), []);
}
