//! Publications among few filters and among many: exact ones, with `*`, with `>`, prefixes. Each finds four connections
//! either way, and no filter that does not match may cost anything.

use std::hint::black_box;

use bytes::Bytes;
use turno_engine::{
    ArchiveEffect, BorrowedPayload, Deliver, DiskEffect, Engine, Event, EventRef, HostEffect, Input, Listener,
    NewRecord, PeerEffect, PeerSink, Settings, Sink,
};
use turno_proto::model::{ConnId, Filter, Mono, Payload, Topic};

/// Few filters: four for each area.
pub const FEW: u32 = 100;
/// Many: four for each topic.
pub const MANY: u32 = 100_000;
/// Topics in turn: far more than the engine remembers, so that each is looked up.
pub const TOPICS: u32 = MANY / KINDS;
const AREAS: u32 = FEW / KINDS;
/// Kinds of filters, and connections that an event finds.
const KINDS: u32 = 4;
/// Filters of one connection.
const EACH: u32 = 1_000;

/// Counts who is found.
#[derive(Debug, Default)]
struct Found(u64);

impl PeerSink for Found {
    fn deliver(&mut self, _: Deliver<BorrowedPayload<'_>>) {}

    fn event(&mut self, event: EventRef<'_>, listeners: &[Listener]) {
        black_box(event);
        self.0 += black_box(listeners).len() as u64;
    }

    fn peer(&mut self, _: PeerEffect) {}
}

impl Sink for Found {
    fn put(&mut self, _: NewRecord<'_>) {}

    fn disk(&mut self, _: DiskEffect) {}

    fn archive(&mut self, _: ArchiveEffect) {}

    fn host(&mut self, _: HostEffect) {}
}

/// An engine with listeners, and what is published to it.
#[derive(Debug)]
pub struct Stage {
    engine: Engine,
    found: Found,
    topics: Vec<Topic>,
    publisher: ConnId,
    /// Which topic is the next one's.
    next: usize,
}

impl Stage {
    /// With [`FEW`] filters or with [`MANY`].
    pub fn among(filters: u32) -> Self {
        Self::new(filters, if filters == FEW { coarse } else { fine })
    }

    /// Each topic is matched by four of the filters, at four connections.
    fn new(filters: u32, filter: fn(u32) -> Option<Filter>) -> Self {
        let listeners = (filters / EACH).max(KINDS);
        let publisher = conn(listeners);
        // Not in the order of any table.
        let number = |at: u32| at.wrapping_mul(7_919) % TOPICS;
        let topics = (0..TOPICS).filter_map(|at| topic(number(at)).parse().ok()).collect();
        let engine = Engine::new(Settings::default(), Mono::ZERO);
        let mut stage = Self { engine, found: Found::default(), topics, publisher, next: 0 };
        for index in 0..=listeners {
            stage.tell(Input::Connected { conn: conn(index), name: String::new(), address: String::new() });
        }
        for (number, filter) in (0..filters).filter_map(|number| Some((number, filter(number)?))) {
            stage.tell(Input::Subscribe { conn: conn(number % listeners), seq: 1, filter, or_close: false });
        }
        stage
    }

    /// Publishes so many events; each finds four connections.
    #[inline(never)]
    pub fn publish(&mut self, count: u32) {
        let payload = Payload::body(Bytes::from_static(b"event"));
        let before = self.found.0;
        for _ in 0..count {
            let event = Event { topic: self.topics[self.next].clone(), payload: payload.clone() };
            self.next = if self.next + 1 == self.topics.len() { 0 } else { self.next + 1 };
            self.tell(Input::Publish { conn: self.publisher, seq: 0, confirm: false, event });
        }
        assert_eq!(self.found.0 - before, u64::from(count) * u64::from(KINDS), "each event found four");
    }

    fn tell(&mut self, input: Input) {
        self.engine.handle(Mono::ZERO, black_box(input), &mut self.found);
    }
}

const fn conn(index: u32) -> ConnId {
    ConnId { index, generation: 0 }
}

/// The topic of a device.
fn topic(device: u32) -> String {
    format!("area.{}.device.{device}.state", device % AREAS)
}

/// Four for each area.
fn coarse(number: u32) -> Option<Filter> {
    let area = number / KINDS;
    match number % KINDS {
        0 => format!("area.{area}.>").parse().ok(),
        1 => format!("area.{area}.*.*.state").parse().ok(),
        2 => format!("*.{area}.device.>").parse().ok(),
        _ => Filter::prefix(format!("area.{area}.").as_bytes()).ok(),
    }
}

/// Four for each topic.
fn fine(number: u32) -> Option<Filter> {
    let device = number / KINDS;
    let area = device % AREAS;
    match number % KINDS {
        0 => topic(device).parse().ok(),
        1 => format!("area.*.device.{device}.*").parse().ok(),
        2 => format!("area.{area}.device.{device}.>").parse().ok(),
        _ => Filter::prefix(format!("area.{area}.device.{device}.").as_bytes()).ok(),
    }
}
