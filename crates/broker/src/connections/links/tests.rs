//! Two `Connections` and the bytes between them; the test is the engine of both.

mod ends;
mod messages;

use std::sync::Arc;

use turno_engine::{
    BroadcastAnswer, CallerMessage, Event, Forward, ForwardBroadcast, ForwardEvent, Input, LinkEffect, LinkMessage,
    Neighbour, PeerEffect, PeerSink, RemoteMessage,
};
use turno_proto::model::link::{BrokerId, Claim, ForwardWants, Offer, Path, Presence, Relay, Room};
use turno_proto::model::{
    BroadcastEnd, Closing, ClosingReason, Code, ConnId, Delivery, Limits, MessageId, Mono, Payload, limits,
};
use turno_proto::native::{
    Config, Connect, Frame, GreetingCredentials, HEADER_LEN, Identity, LinkSession, Secret, VERSION, decode, encode,
    split,
};

use super::super::is_local;
use super::super::numbers::NumberAllocation;
use super::super::{Connections, EngineHandle, ListenerKind};
use super::{Dial, LinkSettings, Nonces};

const SECRET: &[u8] = b"correct horse battery staple";

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

fn config() -> Config {
    Config {
        broker: "b".into(),
        frame_bytes_max: 1 << 20,
        request_deadline_ms: 1_000,
        ..Config::of(&Limits::default())
    }
}

fn credentials(id: u64, secret: Option<&[u8]>, frame_bytes_max: u64) -> GreetingCredentials {
    let name = format!("broker {id}");
    let identity = Identity { broker: BrokerId::new(id), name, program: String::new(), frame_bytes_max };
    GreetingCredentials::new(identity, secret.map(|secret| Secret::new(secret).unwrap()))
}

fn connections(id: u64, secret: Option<&[u8]>) -> Connections<Ear> {
    let mut connections =
        Connections::with_engine_handle(Ear::default(), Limits::default(), config(), NumberAllocation::default());
    connections.set_links(LinkSettings { credentials: credentials(id, secret, 1 << 20), nonces: Nonces::Seeded(id) });
    connections
}

impl Broker {
    fn dialling(secret: Option<&[u8]>, address: &str) -> Self {
        let (now, mut connections) = (Mono::from_millis(10), connections(1, secret));
        let conn = connections.dial(now, 7, address.to_owned()).expect("there is room");
        Self { connections, now, conn }
    }

    fn accepting(secret: Option<&[u8]>, address: &str) -> Self {
        let (now, mut connections) = (Mono::from_millis(10), connections(2, secret));
        let conn = connections.accept(now, address.to_owned(), ListenerKind::Native).expect("there is room");
        Self { connections, now, conn }
    }

    /// Its inputs since the last call.
    fn heard(&mut self) -> Vec<Input> {
        std::mem::take(&mut self.connections.engine_handle_mut().0)
    }

    fn effect(&mut self, effect: PeerEffect) {
        self.connections.carry_out(self.now, effect);
    }

    /// Everything it has to say, which is then said.
    fn said(&mut self) -> Vec<u8> {
        let mut said = Vec::new();
        loop {
            let bytes = self.connections.unwritten(self.conn).to_vec();
            if bytes.is_empty() {
                return said;
            }
            self.connections.wrote(self.now, self.conn, bytes.len());
            said.extend(bytes);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let mut turn = self.connections.take(self.now, self.conn, bytes);
        while turn == crate::turn::Turn::Cut {
            turn = self.connections.go_on(self.now, self.conn);
        }
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

/// A link that is up: who dialled, who was dialled.
fn linked() -> (Broker, Broker) {
    let mut a = Broker::dialling(Some(SECRET), "10.0.0.2:7460");
    let mut b = Broker::accepting(Some(SECRET), "10.0.0.1:4711");
    protocol(&mut a, &mut b);
    let conn = a.conn;
    assert_eq!(a.heard(), [Input::Greeted { conn, target: 7, broker: BrokerId::new(2) }]);
    assert_eq!(b.heard(), [], "it is not told before the other has proven itself");
    a.effect(PeerEffect::Link { conn, effect: LinkEffect::Prove });
    protocol(&mut a, &mut b);
    let (name, address) = ("broker 2".to_owned(), "10.0.0.2:7460".to_owned());
    assert_eq!(
        a.heard(),
        [Input::Linked {
            conn,
            target: Some(7),
            neighbour: Neighbour {
                broker: BrokerId::new(2),
                name,
                address,
                payload_max: (1 << 20) - HEADER_LEN as u64
            }
        }]
    );
    let (name, address, conn) = ("broker 1".to_owned(), "10.0.0.1:4711".to_owned(), b.conn);
    assert_eq!(
        b.heard(),
        [Input::Linked {
            conn,
            target: None,
            neighbour: Neighbour {
                broker: BrokerId::new(1),
                name,
                address,
                payload_max: (1 << 20) - HEADER_LEN as u64
            }
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
    Path::new(ids.iter().map(|id| BrokerId::new(*id))).unwrap()
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
        alone: false,
        path: path(&[1]),
        payload: payload(&vec![b'x'; bytes]),
    }
}
