//! Two `Connections` and the bytes between them; the test is the node of both.

use std::sync::Arc;

use turno_engine::ring::{Circle, JoinVerdict, NewConn, Publication, RetConn, RingInput, RingMessage, RingPeerEffect};
use turno_engine::{Event, Input, PeerEffect, PeerSink};
use turno_proto::model::ring::{ConnectPurpose, LastReceived, LostMember, Member, Origin, Sid};
use turno_proto::model::{Code, ConnId, Limits, Mono, Payload, Topic, limits};
use turno_proto::native::{
    Config, Connect, Frame, Raw, RawEvent as EventFrame, Secret, VERSION, decode, encode, split,
};

use super::super::numbers::NumberAllocation;
use super::super::{Connections, EngineHandle, FAREWELL_MS, ListenerKind};
use super::{Nonces, RingDial, RingWireSettings};
use crate::turn::Turn;

const SECRET: &[u8] = b"correct horse battery staple";
const NEAR: &str = "127.0.0.1:4711";
const FAR: &str = "10.0.0.9:4711";
const BEAT_MS: u32 = 1_000;
const SILENCE_MS: u64 = 3_000;
const DIAL_MS: u64 = 1_500;

/// Keeps what it hears.
#[derive(Debug, Default)]
struct Ear(Vec<Input>);

impl EngineHandle for Ear {
    fn put(&mut self, _now: Mono, input: Input, _peers: &mut impl PeerSink) {
        self.0.push(input);
    }
}

/// A broker without an engine.
struct Broker {
    connections: Connections<Ear>,
    now: Mono,
    conn: ConnId,
}

fn member(sid: u16) -> Member {
    let origin = Origin { sid: Sid::new(sid), incarnation: 100 + u64::from(sid) };
    Member { origin, address: format!("10.0.0.{sid}:{}", 8_000 + sid), native: String::new() }
}

fn connections(sid: u16, secret: Option<&[u8]>) -> Connections<Ear> {
    let config = Config {
        broker: "b".into(),
        frame_bytes_max: 1 << 20,
        request_deadline_ms: 1_000,
        ..Config::of(&Limits::default())
    };
    let limits = Limits { out_bytes_max: 1_000, out_bytes_pause: 100, ..Limits::default() };
    let mut connections = Connections::with_engine_handle(Ear::default(), limits, config, NumberAllocation::default());
    let secret = secret.map(|secret| Secret::new(secret).unwrap());
    let (me, nonces) = (member(sid), Nonces::Seeded(u64::from(sid)));
    connections.set_ring(RingWireSettings { me, secret, nonces, beat_ms: BEAT_MS, dial_ms: DIAL_MS });
    connections
}

const fn ring(effect: RingPeerEffect) -> PeerEffect {
    PeerEffect::Ring(effect)
}

impl Broker {
    /// 1 wants a connection for target 7, and it is made.
    fn dialling(secret: Option<&[u8]>, address: &str) -> Self {
        let (now, mut connections) = (Mono::from_millis(10), connections(1, secret));
        connections.carry_out(now, ring(RingPeerEffect::Dial { target: 7, address: "rb-2:8002".to_owned() }));
        assert!(connections.has_ring_dials());
        let dials = connections.take_ring_dials();
        let until = now.plus_millis(DIAL_MS);
        assert_eq!(dials, [RingDial { target: 7, address: "rb-2:8002".to_owned(), until }]);
        let conn = connections.dial_ring(now, &dials[0], address.to_owned()).expect("there is room");
        Self { connections, now, conn }
    }

    /// Somebody dialled 2.
    fn accepting(secret: Option<&[u8]>, address: &str) -> Self {
        let (now, mut connections) = (Mono::from_millis(10), connections(2, secret));
        let conn = connections.accept(now, address.to_owned(), ListenerKind::Ring).expect("there is room");
        Self { connections, now, conn }
    }

    /// Its inputs of the ring since the last call.
    fn heard(&mut self) -> Vec<RingInput> {
        let inputs = std::mem::take(&mut self.connections.engine_handle_mut().0);
        let input = |input| match input {
            Input::Ring { input } => input,
            other => panic!("{other:?}"),
        };
        inputs.into_iter().map(input).collect()
    }

    fn effect(&mut self, effect: RingPeerEffect) {
        self.connections.carry_out(self.now, ring(effect));
    }

    fn say(&mut self, message: RingMessage) {
        let conn = self.conn;
        self.effect(RingPeerEffect::Say { conn, message });
    }

    /// Everything it has to say, which is then said.
    fn said(&mut self) -> Vec<u8> {
        let bytes = self.connections.unwritten(self.conn).to_vec();
        if !bytes.is_empty() {
            self.connections.wrote(self.now, self.conn, bytes.len());
        }
        bytes
    }

    fn take(&mut self, bytes: &[u8]) {
        let mut turn = self.connections.take(self.now, self.conn, bytes);
        while turn == Turn::Cut {
            turn = self.connections.go_on(self.now, self.conn);
        }
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now.plus_millis(millis);
        self.connections.sweep(self.now);
    }
}

/// Carries bytes both ways until both are silent.
fn protocol(a: &mut Broker, b: &mut Broker) {
    loop {
        let (from_a, from_b) = (a.said(), b.said());
        if from_a.is_empty() && from_b.is_empty() {
            return;
        }
        b.take(&from_a);
        a.take(&from_b);
    }
}

/// A connection that is up: who sends, who receives.
fn up() -> (Broker, Broker) {
    let mut a = Broker::dialling(Some(SECRET), FAR);
    let mut b = Broker::accepting(Some(SECRET), FAR);
    protocol(&mut a, &mut b);
    assert_eq!(a.heard(), [RingInput::Dialled { target: 7, conn: a.conn, peer: member(2) }]);
    assert_eq!(b.heard(), [RingInput::Accepted { conn: b.conn, peer: Some(member(1)) }]);
    (a, b)
}

/// The same, opened.
fn open() -> (Broker, Broker) {
    let (mut a, mut b) = up();
    a.say(RingMessage::RetConn(RetConn::Open { purpose: ConnectPurpose::Join }));
    protocol(&mut a, &mut b);
    b.heard();
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

fn publication(seq: u64, bytes: usize) -> Publication {
    let payload = Payload { headers: false, bytes: vec![b'x'; bytes].into() };
    let event = Arc::new(Event { topic: Topic::from_bytes(b"news.art").unwrap(), payload });
    Publication { origin: member(1).origin, seq, after: seq - 1, round: 0, hops: 0, event }
}

/// Every message, there and back.
#[test]
fn each_word_comes_as_it_was_said() {
    let circle = Circle { whole: true, members: vec![member(1), member(2)] };
    let newconn = NewConn { joiner: member(3), content: Some(Sid::new(1)), gap: true, verdict: None, hops: 3 };
    let refused = Some(JoinVerdict::Refused(Code::DuplicateSid));
    let (origin, hops) = (member(1).origin, 5);
    let forward = [
        RingMessage::NewConn(newconn.clone()),
        RingMessage::NewConn(NewConn { verdict: Some(JoinVerdict::Claimed), ..newconn.clone() }),
        RingMessage::NewConn(NewConn { verdict: refused, content: None, ..newconn }),
        RingMessage::RetConn(RetConn::Call { caller: member(4), content: LostMember::Gap, hops }),
        RingMessage::RetConn(RetConn::Call { caller: member(4), content: LostMember::Sid(Sid::new(9)), hops }),
        RingMessage::Publish(publication(1, 20)),
        RingMessage::ServOff { leaver: member(1), content: Some(Box::new(member(2))), hops },
        RingMessage::ServOff { leaver: member(1), content: None, hops },
        RingMessage::Shutdown { origin, hops },
        RingMessage::RollCall { origin, number: 8, round: 7, members: vec![member(1)] },
        RingMessage::CaughtUp { members: vec![member(1), member(2)] },
        RingMessage::Merge { origin, contact: member(9), hops },
        RingMessage::Probe(circle.clone()),
        RingMessage::AskSid,
    ];
    let back = [
        RingMessage::Have { had: vec![LastReceived { origin, seq: 9 }] },
        RingMessage::Refused { code: Code::Elsewhere, instead: Some(member(2)) },
        RingMessage::Refused { code: Code::RingWhole, instead: None },
        RingMessage::Circle(circle),
        RingMessage::FreeSid { sid: Sid::new(3) },
    ];
    let (mut a, mut b) = open();
    for message in forward {
        a.say(message.clone());
        protocol(&mut a, &mut b);
        assert_eq!(b.heard(), [RingInput::Message { conn: b.conn, message }]);
    }
    for message in back {
        b.say(message.clone());
        protocol(&mut a, &mut b);
        assert_eq!(a.heard(), [RingInput::Message { conn: a.conn, message }]);
    }
}

/// Lists of a node are cut to their limits.
#[test]
fn lists_are_not_longer_than_they_may_be() {
    let (mut a, mut b) = open();
    a.say(RingMessage::CaughtUp { members: vec![member(1); limits::RING_MEMBERS_MAX + 9] });
    b.say(RingMessage::Have {
        had: vec![LastReceived { origin: member(1).origin, seq: 1 }; limits::RING_ORIGINS_MAX + 9],
    });
    protocol(&mut a, &mut b);
    let [RingInput::Message { message: RingMessage::CaughtUp { members }, .. }] = &b.heard()[..] else {
        panic!("it came")
    };
    assert_eq!(members.len(), limits::RING_MEMBERS_MAX);
    let [RingInput::Message { message: RingMessage::Have { had }, .. }] = &a.heard()[..] else { panic!("it came") };
    assert_eq!(had.len(), limits::RING_ORIGINS_MAX);
}

/// The end of a connection is told once, however it comes about.
#[test]
fn the_end_is_told_once() {
    // The other end hangs up.
    let (mut a, _) = up();
    a.connections.hang_up(a.now, a.conn);
    a.connections.hang_up(a.now, a.conn);
    assert_eq!(a.heard(), [RingInput::Closed { conn: a.conn }]);
    // It says why before.
    let (mut a, mut b) = open();
    b.effect(RingPeerEffect::Close { conn: b.conn, code: Some(Code::BadSequence) });
    let said = b.said();
    assert!(matches!(frames(&said)[..], [Frame::Error { code: Code::BadSequence, fatal: true, .. }]));
    a.take(&said);
    a.connections.hang_up(a.now, a.conn);
    assert_eq!(a.heard(), [RingInput::Closed { conn: a.conn }]);
    // It says something that makes no sense.
    let (mut a, _) = up();
    let mut bytes = Vec::new();
    encode(&RingMessage::Shutdown { origin: member(1).origin, hops: 0 }.into(), &mut bytes);
    a.take(&bytes);
    a.connections.hang_up(a.now, a.conn);
    assert_eq!(a.heard(), [RingInput::Closed { conn: a.conn }]);
    // A topic that is none.
    let (mut a, mut b) = open();
    let event = EventFrame { topic: b"..", payload: Raw { headers: false, bytes: b"" } };
    let mut bytes = Vec::new();
    encode(&Frame::RingPublish(publication(1, 0).with(event)), &mut bytes);
    b.take(&bytes);
    assert_eq!(b.heard(), [RingInput::Closed { conn: b.conn }]);
    protocol(&mut a, &mut b);
    assert_eq!(a.heard(), [RingInput::Closed { conn: a.conn }]);
}

/// Earlier messages are written, then the connection is closed; the node hears nothing more of it.
#[test]
fn a_closed_connection_says_all_and_is_silent() {
    let (mut a, mut b) = open();
    for seq in 1..=50 {
        a.say(RingMessage::Publish(publication(seq, 1_000)));
    }
    a.effect(RingPeerEffect::Close { conn: a.conn, code: None });
    a.say(RingMessage::AskSid);
    // The other end goes on for a while.
    b.say(RingMessage::Have { had: Vec::new() });
    let from_b = b.said();
    a.take(&from_b);
    let mut came = 0;
    // It takes long to be written: for longer than a farewell, some at a time.
    while !a.connections.unwritten(a.conn).is_empty() {
        let some: Vec<u8> = a.connections.unwritten(a.conn).iter().take(10_000).copied().collect();
        a.connections.wrote(a.now, a.conn, some.len());
        b.take(&some);
        came += b.heard().len();
        a.pass(FAREWELL_MS);
    }
    assert_eq!(came, 50, "all of it, and nothing after");
    a.pass(FAREWELL_MS);
    assert_eq!((a.connections.take_gone(), a.heard()), (vec![a.conn], vec![]));
    b.connections.hang_up(b.now, b.conn);
    assert_eq!(b.heard(), [RingInput::Closed { conn: b.conn }]);
}

/// One that is closed and takes nothing of what waits for it is gone after a while.
#[test]
fn a_closed_connection_that_takes_nothing_goes() {
    let (mut a, _) = open();
    a.say(RingMessage::Publish(publication(1, 1_000)));
    a.connections.wrote(a.now, a.conn, 1);
    a.effect(RingPeerEffect::Close { conn: a.conn, code: None });
    a.pass(SILENCE_MS - 1);
    assert_eq!(a.connections.take_gone(), []);
    a.pass(1);
    assert_eq!((a.connections.take_gone(), a.heard()), (vec![a.conn], vec![]));
}

/// A target that is not reached is told once, with the code.
#[test]
fn a_dial_that_comes_to_nothing_is_told_once() {
    let failed = |code| vec![RingInput::DialFailed { target: 7, code }];
    // Nobody is there.
    let mut connections = connections(1, None);
    let now = Mono::from_millis(10);
    connections.carry_out(now, ring(RingPeerEffect::Dial { target: 7, address: "rb-2:8002".to_owned() }));
    let dials = connections.take_ring_dials();
    connections.ring_dial_failed(now, 7, Code::RingDown);
    connections.ring_dial_failed(now, 7, Code::RingDown);
    assert_eq!(connections.dial_ring(now, &dials[0], NEAR.to_owned()), None);
    let mut a = Broker { connections, now, conn: ConnId { index: 9, generation: 9 } };
    assert_eq!(a.heard(), failed(Code::RingDown));
    // The connection breaks before the greeting is done.
    let mut a = Broker::dialling(None, NEAR);
    a.connections.hang_up(a.now, a.conn);
    a.connections.hang_up(a.now, a.conn);
    assert_eq!(a.heard(), failed(Code::RingDown));
    // Nobody says anything, for as long as it may take.
    let mut a = Broker::dialling(None, NEAR);
    a.pass(DIAL_MS - 1);
    assert_eq!(a.heard(), []);
    a.pass(1);
    a.connections.hang_up(a.now, a.conn);
    assert_eq!(a.heard(), failed(Code::GreetingTimeout));
    // Another secret; none at the other end, which is not on this machine: it says why.
    for (secret, other) in [(Some(&b"another secret, as long"[..]), Some(SECRET)), (Some(SECRET), None)] {
        let mut a = Broker::dialling(secret, FAR);
        let mut b = Broker::accepting(other, FAR);
        protocol(&mut a, &mut b);
        assert_eq!((a.heard(), b.heard()), (failed(Code::RingRefused), vec![]));
        assert!(a.connections.said_all(a.conn) && b.connections.said_all(b.conn));
    }
    // Not the listener for members.
    let mut a = Broker::dialling(None, NEAR);
    let mut b = Broker { connections: super::tests::connections(2, None), now: a.now, conn: a.conn };
    b.conn = b.connections.accept(b.now, NEAR.to_owned(), ListenerKind::Native).unwrap();
    protocol(&mut a, &mut b);
    assert_eq!((a.heard(), b.heard()), (failed(Code::ExpectedConnect), vec![]));
}

/// Nobody hears of what was forgotten, however far it is.
#[test]
fn a_forgotten_target_is_not_told_of() {
    let now = Mono::from_millis(10);
    let forget = || ring(RingPeerEffect::Forget { target: 7 });
    // Nobody has dialled yet.
    let mut first = connections(1, None);
    first.carry_out(now, ring(RingPeerEffect::Dial { target: 7, address: "rb-2:8002".to_owned() }));
    first.carry_out(now, forget());
    assert_eq!(first.take_ring_dials(), []);
    // It is being dialled.
    let mut second = connections(1, None);
    second.carry_out(now, ring(RingPeerEffect::Dial { target: 7, address: "rb-2:8002".to_owned() }));
    let dials = second.take_ring_dials();
    second.carry_out(now, forget());
    assert_eq!(second.dial_ring(now, &dials[0], NEAR.to_owned()), None);
    second.ring_dial_failed(now, 7, Code::RingDown);
    assert_eq!(second.engine_handle().0, []);
    // The greeting goes on: it is closed.
    let mut a = Broker::dialling(None, NEAR);
    a.effect(RingPeerEffect::Forget { target: 7 });
    a.said();
    assert!(a.connections.said_all(a.conn));
    a.connections.hang_up(a.now, a.conn);
    assert_eq!(a.heard(), []);
    // The node knows the connection already: it is not closed, as the node would not hear of it.
    let (mut a, _) = up();
    a.effect(RingPeerEffect::Forget { target: 7 });
    assert!(!a.connections.said_all(a.conn));
}

/// Strangers on the ring's port: they are told, and the node never hears of them.
#[test]
fn strangers_are_turned_away() {
    let connect = Connect { version: VERSION, name: String::new(), program: String::new(), heartbeat_ms: 0 };
    let mut hello = Vec::new();
    encode(&Frame::Connect { seq: 1, connect }, &mut hello);
    let strangers: [(&[u8], Code); 2] = [(&hello, Code::ExpectedConnect), (b"GET / HTTP/1.1\r\n", Code::BadMagic)];
    for (bytes, code) in strangers {
        let mut b = Broker::accepting(Some(SECRET), FAR);
        b.take(bytes);
        let said = b.said();
        assert!(matches!(frames(&said)[..], [Frame::Error { code: told, fatal: true, .. }] if told == code));
        assert!(b.connections.said_all(b.conn));
        b.connections.hang_up(b.now, b.conn);
        assert_eq!(b.heard(), []);
    }
    // Without a ring there is no such listener.
    let config = Broker::accepting(None, NEAR).connections.config;
    let mut none =
        Connections::with_engine_handle(Ear::default(), Limits::default(), config, NumberAllocation::default());
    assert_eq!(none.accept(Mono::ZERO, NEAR.to_owned(), ListenerKind::Ring), None);
}

#[test]
fn silence_ends_a_connection_and_signs_of_life_keep_it() {
    let (mut a, mut b) = open();
    for _ in 0..5 {
        a.pass(u64::from(BEAT_MS));
        b.pass(u64::from(BEAT_MS));
        protocol(&mut a, &mut b);
    }
    assert_eq!((a.heard(), b.heard()), (vec![], vec![]), "both live");
    a.pass(SILENCE_MS);
    assert_eq!(a.heard(), [RingInput::Closed { conn: a.conn }]);
    assert!(matches!(frames(&a.said()).last(), Some(Frame::Error { code: Code::PeerSilent, fatal: true, .. })));
}

/// However much waits, a receiver is not given up for that, and is read from; but it is if it takes nothing.
#[test]
fn only_a_receiver_that_takes_nothing_is_given_up() {
    let (mut a, mut b) = open();
    for seq in 1..=1_000 {
        a.say(RingMessage::Publish(publication(seq, 1_000)));
    }
    assert_eq!(a.heard(), [], "far more than a client may let wait");
    assert!(a.connections.wants_reading(a.conn));
    let mut came = 0;
    while !a.connections.unwritten(a.conn).is_empty() {
        let some: Vec<u8> = a.connections.unwritten(a.conn).iter().take(100_000).copied().collect();
        a.connections.wrote(a.now, a.conn, some.len());
        b.take(&some);
        came += b.heard().len();
    }
    assert_eq!(came, 1_000);
    // It says PING, and takes nothing.
    a.say(RingMessage::Publish(publication(1_001, 10)));
    a.connections.wrote(a.now, a.conn, 0);
    let mut ping = Vec::new();
    encode(&Frame::Ping { seq: 1 }, &mut ping);
    a.pass(SILENCE_MS - 1);
    a.take(&ping);
    assert_eq!(a.heard(), []);
    a.pass(1);
    assert_eq!(a.heard(), [RingInput::Closed { conn: a.conn }]);
}

/// While publishers are slowed down, those that publish are not read from; nor are they silent.
#[test]
fn publishers_are_slowed_down() {
    let mut b = Broker {
        connections: connections(1, None),
        now: Mono::from_millis(10),
        conn: ConnId { index: 0, generation: 0 },
    };
    let client = |b: &mut Broker, publishes: bool| {
        b.conn = b.connections.accept(b.now, NEAR.to_owned(), ListenerKind::Native).unwrap();
        let connect = Connect { version: VERSION, name: String::new(), program: String::new(), heartbeat_ms: 0 };
        let event = EventFrame { topic: b"t", payload: Raw { headers: false, bytes: b"x" } };
        let mut bytes = Vec::new();
        encode(&Frame::Connect { seq: 1, connect }, &mut bytes);
        encode(&Frame::Ping { seq: 2 }, &mut bytes);
        if publishes {
            encode(&Frame::Publish { seq: 3, confirm: false, event }, &mut bytes);
        }
        b.take(&bytes);
        b.said();
        b.conn
    };
    let (talker, listener) = (client(&mut b, true), client(&mut b, false));
    let reads = |b: &mut Broker| (b.connections.wants_reading(talker), b.connections.wants_reading(listener));
    assert_eq!(reads(&mut b), (true, true));
    b.effect(RingPeerEffect::Slow(true));
    assert_eq!((reads(&mut b), b.connections.take_eased()), ((false, true), false));
    // One that begins meanwhile is heard once.
    let late = client(&mut b, true);
    assert!(!b.connections.wants_reading(late));
    let silence = u64::from(limits::HEARTBEAT_MS) * u64::from(limits::LIVENESS);
    b.pass(silence);
    assert!(b.connections.is_heard(talker) && !b.connections.is_heard(listener), "only who could speak was silent");
    b.effect(RingPeerEffect::Slow(false));
    assert_eq!(
        (b.connections.wants_reading(talker), b.connections.take_eased(), b.connections.take_eased()),
        (true, true, false)
    );
    b.pass(silence - 1);
    assert!(b.connections.is_heard(talker), "from now on");
}
