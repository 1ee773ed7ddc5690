//! What a publication costs the engine among many filters, beside what it costs among few. Everyone whom it is for is
//! found either way, and they are as many.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use turno_engine::{Deliver, Effect, Engine, Event, Input, Settings, Sink};
use turno_proto::model::{ConnId, Filter, Mono, Payload, Topic};

use crate::spread::median;

const FEW: u32 = 100;
const MANY: u32 = 100_000;
/// Filters of one connection.
const EACH: u32 = 1_000;
/// Publications that are timed together, so that a look at the clock is nothing beside them.
const TIMED: u32 = 2_000;
const ROUNDS: usize = 21;
/// Connections that an event finds, one by each kind of filter.
const FOUND: usize = 4;

/// The cost among many over that among few; both in turn, so that what the machine does meanwhile hits them alike.
pub(crate) fn growth() -> Result<f64> {
    let (mut few, mut many) = (Stage::new(FEW)?, Stage::new(MANY)?);
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let before = few.time()?;
        ratios.push(many.time()? / before);
    }
    Ok(median(&ratios))
}

struct Stage {
    engine: Engine,
    topics: Vec<Topic>,
    publisher: ConnId,
}

/// Counts who is found.
#[derive(Default)]
struct Found(usize);

impl Sink for Found {
    fn deliver(&mut self, _: Deliver<'_>) {}

    fn effect(&mut self, effect: Effect) {
        if let Effect::Event { listeners, .. } = black_box(effect) {
            self.0 += listeners.len();
        }
    }
}

impl Stage {
    fn new(filters: u32) -> Result<Self> {
        let mut engine = Engine::new(Settings::default(), Mono::ZERO);
        let mut found = Found::default();
        let mut connect = |index: u32| {
            let conn = ConnId { index, generation: 0 };
            let input = Input::Connected { conn, name: String::new(), address: String::new() };
            engine.handle(Mono::ZERO, input, &mut found);
            conn
        };
        let kinds = u32::try_from(FOUND)?;
        // So many of each kind, those of one kind at connections of their own.
        let listeners: Vec<ConnId> = (0..(filters / EACH).max(kinds)).map(&mut connect).collect();
        let publisher = connect(u32::try_from(listeners.len())?);
        for number in 0..filters {
            let conn = listeners[number as usize % listeners.len()];
            let filter = filter(number % kinds, number / kinds)?;
            engine.handle(Mono::ZERO, Input::Subscribe { conn, seq: 1, filter, or_close: false }, &mut found);
        }
        let topic = |number: u32| topic(number).parse().context("a topic");
        // Not one after the other in any order that a table may have.
        let topics = (0..filters / kinds).map(|number| topic(number.wrapping_mul(7_919) % (filters / kinds)));
        let topics = topics.collect::<Result<Vec<Topic>>>()?;
        Ok(Self { engine, topics, publisher })
    }

    /// Seconds.
    fn time(&mut self) -> Result<f64> {
        let mut found = Found::default();
        let payload = Payload::body(Bytes::from_static(b"event"));
        let begun = Instant::now();
        for topic in self.topics.iter().cycle().take(TIMED as usize) {
            let event = Event { topic: topic.clone(), payload: payload.clone() };
            let input = Input::Publish { conn: self.publisher, seq: 0, confirm: false, event };
            self.engine.handle(Mono::ZERO, black_box(input), &mut found);
        }
        let seconds = begun.elapsed().as_secs_f64();
        ensure!(found.0 == TIMED as usize * FOUND, "{} connections were found", found.0);
        Ok(seconds)
    }
}

/// What is published.
fn topic(number: u32) -> String {
    format!("area.{}.device.{number}.state", number % 10)
}

/// One that matches the topic of that number, and no other.
fn filter(kind: u32, number: u32) -> Result<Filter> {
    let text = match kind {
        0 => topic(number),
        1 => format!("area.*.device.{number}.*"),
        2 => format!("area.{}.device.{number}.>", number % 10),
        _ => {
            let prefix = format!("area.{}.device.{number}.", number % 10);
            return Ok(Filter::Prefix(Bytes::from(prefix)));
        }
    };
    text.parse().context("a filter")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_topic_finds_one_of_each_kind() {
        let mut stage = Stage::new(FEW).unwrap();
        assert!(stage.time().unwrap() > 0.0);
        assert_eq!(stage.topics.len(), 25);
    }
}
