//! The core driven by hand: inputs in, exact events and frames out, time by argument.

mod broadcast;
mod calls;
mod claim;
mod dedup;
mod draining;
mod dropping;
mod failover;
mod greeting;
mod hostile;
mod listening;
mod worker;

use turno_proto::model::{Code, Cost, Delivery, Limits, MessageId, Mono, Payload, QueueName, Slots, limits};
use turno_proto::native::{Config, Connect, Deliver, Frame, Raw, Register, VERSION, decode, encode, split};

use super::{Ask, Claim, Core, CoreEvent, Registration, Settings, Ticket};
use crate::Address;

/// A core, its clock, and what a broker would say to it.
struct TestCore {
    core: Core,
    now: Mono,
}

impl TestCore {
    fn new(brokers: &[&str]) -> Self {
        Self::with(settings(brokers))
    }

    fn with(settings: Settings) -> Self {
        let now = Mono::from_millis(1_000);
        Self { core: Core::new(now, settings), now }
    }

    /// A core whose first connection is open, and nothing left to look at.
    fn open(brokers: &[&str]) -> Self {
        let mut rig = Self::new(brokers);
        rig.greet();
        rig.events();
        rig
    }

    /// A registered worker of those queues.
    fn worker(brokers: &[&str], queues: &[&str]) -> Self {
        Self::worker_with(settings(brokers), queues)
    }

    fn worker_with(settings: Settings, queues: &[&str]) -> Self {
        let mut rig = Self::with(settings);
        rig.core.register(rig.now, registration(queues));
        rig.greet();
        rig.answer_register(queues.len());
        rig.events();
        rig
    }

    /// Plays the broker's side of the greeting.
    fn greet(&mut self) {
        self.core.handle_connected(self.now);
        self.say(&[Frame::Config { seq: 1, config: Box::new(config()) }]);
        self.sent();
        self.say(&[Frame::Pong { seq: 2 }]);
    }

    /// Says OK to REGISTER, OPEN and CONSUME of so many queues.
    fn answer_register(&mut self, queues: usize) {
        self.sent();
        let first = 3;
        for n in 0..=2 * queues {
            self.say(&[Frame::Ok { seq: first + u32::try_from(n).expect("few") }]);
        }
    }

    fn say(&mut self, frames: &[Frame<'_>]) {
        self.core.handle_bytes(self.now, &bytes(frames));
    }

    /// The bytes written since the last look.
    fn sent(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.core.poll_transmit(self.now, &mut out);
        out
    }

    fn events(&mut self) -> Vec<CoreEvent> {
        std::iter::from_fn(|| self.core.poll_event()).collect()
    }

    /// Lets time pass, timer by timer.
    fn pass_ms(&mut self, millis: u64) {
        let end = self.now.plus_millis(millis);
        for _ in 0..10_000 {
            match self.core.next_deadline() {
                Some(at) if at <= end => {
                    self.now = self.now.max(at);
                    self.core.handle_timeout(self.now);
                }
                _ => {
                    self.now = end;
                    return;
                }
            }
        }
        panic!("the core keeps asking for a time that has passed");
    }

    fn request(&mut self, ticket: u64, ask: Ask) {
        self.core.request(self.now, Ticket(ticket), ask);
    }
}

fn settings(brokers: &[&str]) -> Settings {
    Settings {
        brokers: brokers.iter().map(|name| tcp(name)).collect(),
        name: "me".to_owned(),
        program: "test 1".to_owned(),
        heartbeat_ms: 0,
        connect_timeout_ms: 5_000,
        keep_trying: false,
        stay: false,
        come_back: true,
    }
}

fn delivered(delivery: Delivery) -> Deliver<'static> {
    Deliver {
        delivery,
        handle: 0,
        id: MessageId::new(1, 2, 3),
        attempt: 1,
        cost: Cost::ONE,
        deadline_ms: Some(900),
        wants_reply: true,
        token: None,
        raw: Raw { headers: false, bytes: b"work" },
    }
}

fn config() -> Config {
    Config {
        broker: "b".to_owned(),
        program: "turno 0".to_owned(),
        frame_bytes_max: 1_024,
        ..Config::of(&Limits::default())
    }
}

fn registration(queues: &[&str]) -> Registration {
    Registration {
        key: String::new(),
        name: "w".to_owned(),
        slots: Slots::Limited(4),
        queues: queues.iter().map(|name| queue(name)).collect(),
        claim: Claim::Shared,
    }
}

fn tcp(name: &str) -> Address {
    Address::Tcp(name.to_owned())
}

fn queue(name: &str) -> QueueName {
    name.parse().expect("a good name")
}

fn ask(name: &str, body: &'static str) -> Ask {
    Ask::new(queue(name), Payload::body(body))
}

fn raw(body: &str) -> Raw<'_> {
    Raw { headers: false, bytes: body.as_bytes() }
}

fn failed(ticket: u64, code: Code) -> CoreEvent {
    CoreEvent::Failed { ticket: Ticket(ticket), code, payload: Payload::default() }
}

fn replied(ticket: u64, body: &'static str) -> CoreEvent {
    CoreEvent::Reply { ticket: Ticket(ticket), more: false, payload: Payload::body(body) }
}

fn reply(seq: u32, body: &str) -> Frame<'_> {
    Frame::Reply { seq, word: 0, more: false, raw: raw(body) }
}

fn bytes(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for frame in frames {
        encode(frame, &mut out);
    }
    out
}

fn frames(mut bytes: &[u8]) -> Vec<Frame<'_>> {
    let mut found = Vec::new();
    while let Some(piece) = split(bytes, usize::MAX).expect("well-formed") {
        found.push(decode(&piece.header, piece.rest).expect("readable"));
        bytes = &bytes[piece.used..];
    }
    assert!(bytes.is_empty(), "half a frame was written");
    found
}

fn connect_frame() -> Frame<'static> {
    let connect = Connect { version: VERSION, name: "me".to_owned(), program: "test 1".to_owned(), heartbeat_ms: 0 };
    Frame::Connect { seq: 1, connect }
}

fn register_frame(seq: u32) -> Frame<'static> {
    Frame::Register { seq, register: Register::new(Slots::Limited(4), "w") }
}
