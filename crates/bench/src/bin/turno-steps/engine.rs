//! Steps of the engine: one message comes in, the one that is at a worker longest is settled.

use std::collections::VecDeque;
use std::hint::black_box;

use bytes::Bytes;
use turno_engine::{
    ArchiveEffect, BorrowedPayload, CallerMessage, Deliver, DiskEffect, Engine, HostEffect, Input, NativeEffect,
    NewRecord, Outgoing, PeerEffect, PeerSink, Settings, Sink, WorkerMessage,
};
use turno_proto::model::{ConnId, Delivery, Mono, Payload, QueueName, Slots};

use crate::Run;

/// Many waiting messages, many workers.
const MANY: u32 = 1_000;
const WAITING: u32 = 10_000;

const CLIENT: ConnId = ConnId { index: 0, generation: 0 };
const HANDLE: u32 = 1;
/// As far apart as at a hundred thousand messages a second.
const STEP_MICROS: u64 = 10;

pub(crate) const STEPS: &[(&str, Run)] = &[
    ("engine-request", |count| Stage::new(Kind::Request, FEW).run(count)),
    ("engine-request-backlog", |count| Stage::new(Kind::Request, BACKLOG).run(count)),
    ("engine-request-1000-workers", |count| Stage::new(Kind::Request, THOUSAND_WORKERS).run(count)),
    ("engine-send", |count| Stage::new(Kind::Send, FEW).run(count)),
    ("engine-send-backlog", |count| Stage::new(Kind::Send, BACKLOG).run(count)),
    ("engine-send-1000-workers", |count| Stage::new(Kind::Send, THOUSAND_WORKERS).run(count)),
];

/// One worker, half of it busy.
const FEW: Shape = Shape { workers: 1, slots: 10, unsettled: 5 };
/// One worker, all of it busy, and a long backlog.
const BACKLOG: Shape = Shape { workers: 1, slots: 10, unsettled: 10 + WAITING };
/// Many workers, half of each busy.
const THOUSAND_WORKERS: Shape = Shape { workers: MANY, slots: 10, unsettled: MANY * 5 };

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Request,
    Send,
}

#[derive(Clone, Copy)]
struct Shape {
    workers: u32,
    slots: u32,
    /// Messages at workers or waiting, before and after each step.
    unsettled: u32,
}

/// The counted effects of the engine.
#[derive(Default)]
struct Heard {
    /// Deliveries that workers hold, oldest first.
    held: VecDeque<(ConnId, Delivery)>,
    stored: u64,
    replied: u64,
    refused: u64,
}

impl PeerSink for Heard {
    fn deliver(&mut self, deliver: Deliver<BorrowedPayload<'_>>) {
        self.held.push_back((deliver.conn, deliver.delivery));
        black_box(deliver);
    }

    fn peer(&mut self, effect: PeerEffect) {
        match black_box(effect) {
            PeerEffect::Native { effect: NativeEffect::Stored { .. }, .. } => self.stored += 1,
            PeerEffect::Caller { message: CallerMessage::Reply { .. }, .. } => self.replied += 1,
            PeerEffect::Caller { message: CallerMessage::Undelivered { .. }, .. }
            | PeerEffect::Answer { result: Err(_), .. } => self.refused += 1,
            _ => {}
        }
    }
}

/// The engine of these steps has no disk and no jobs.
impl Sink for Heard {
    fn put(&mut self, _: NewRecord<'_>) {}

    fn disk(&mut self, _: DiskEffect) {}

    fn archive(&mut self, _: ArchiveEffect) {}

    fn host(&mut self, _: HostEffect) {}
}

struct Stage {
    engine: Engine,
    heard: Heard,
    kind: Kind,
    now: Mono,
    seq: u32,
}

impl Stage {
    fn new(kind: Kind, shape: Shape) -> Self {
        let engine = Engine::new(Settings::default(), Mono::ZERO);
        let mut stage = Self { engine, heard: Heard::default(), kind, now: Mono::ZERO, seq: 0 };
        stage.connect(CLIENT);
        for index in 1..=shape.workers {
            let conn = ConnId { index, generation: 0 };
            stage.connect(conn);
            stage.tell(Input::Register { conn, seq: 2, slots: Slots::Limited(shape.slots), name: String::new() });
            stage.tell(Input::Consume { conn, seq: 3, handle: HANDLE, exclusive: false });
            stage.tell(Input::Ready { conn });
        }
        for _ in 0..shape.unsettled {
            stage.ask();
        }
        let held = shape.unsettled.min(shape.workers * shape.slots);
        assert_eq!((stage.heard.held.len(), stage.heard.refused), (held as usize, 0), "the stage is set");
        stage
    }

    fn connect(&mut self, conn: ConnId) {
        self.tell(Input::Connected { conn, name: "peer".to_owned(), address: "here".to_owned() });
        if let Ok(queue) = QueueName::from_bytes(b"steps") {
            self.tell(Input::Open { conn, seq: 1, handle: HANDLE, queue });
        }
    }

    #[inline(never)]
    fn run(mut self, count: u32) {
        for _ in 0..count {
            self.ask();
            self.settle();
            // As the shell does after each turn.
            if black_box(self.engine.next_deadline()).is_some_and(|deadline| deadline <= self.now) {
                self.tell(Input::Tick);
            }
        }
        let done = (self.heard.replied, self.heard.stored.min(1), self.heard.refused);
        let expected = match self.kind {
            Kind::Request => (u64::from(count), 0, 0),
            Kind::Send => (0, 1, 0),
        };
        assert_eq!(done, expected, "every step did what it is for");
    }

    fn ask(&mut self) {
        self.seq += 1;
        self.now = Mono::from_micros(self.now.as_micros() + STEP_MICROS);
        let message = Outgoing::new(self.seq, HANDLE, payload());
        self.tell(match self.kind {
            Kind::Request => {
                let message = Outgoing { deadline_ms: Some(60_000), ..message };
                Input::Request { conn: CLIENT, message }
            }
            Kind::Send => Input::Send { conn: CLIENT, message },
        });
    }

    fn settle(&mut self) {
        let Some((conn, delivery)) = self.heard.held.pop_front() else { return };
        self.tell(match self.kind {
            Kind::Request => Input::worker(conn, delivery, WorkerMessage::Reply { more: false, payload: payload() }),
            Kind::Send => Input::worker(conn, delivery, WorkerMessage::Ack),
        });
    }

    fn tell(&mut self, input: Input) {
        self.engine.handle(self.now, black_box(input), &mut self.heard);
    }
}

/// Without memory of its own: what a body costs is the codec's and the shell's.
fn payload() -> Payload {
    Payload::body(Bytes::from_static(b"body"))
}
