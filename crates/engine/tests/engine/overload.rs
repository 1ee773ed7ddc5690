//! Three times as many requests as workers can do: a model with a clock of its own, in which nothing is left to chance.

use std::collections::BTreeMap;

use turno_engine::{CallerMessage, Deliver, Effect, Engine, Input, Outgoing, PeerEffect, Settings, WorkerMessage};
use turno_proto::model::{ConnId, Delivery, Mono, Slots};

use crate::seen::body;

const SLOTS: u32 = 100;
const DEADLINE_MS: u32 = 200;
const SECOND_US: u64 = 1_000_000;
const WORKER: ConnId = ConnId { index: 0, generation: 1 };
const CLIENT: ConnId = ConnId { index: 1, generation: 1 };

/// How long a worker takes: anything from `least` on, evenly, below `least + spread`.
#[derive(Clone, Copy, Debug)]
struct Takes {
    least_us: u64,
    spread_us: u64,
}

impl Takes {
    /// Requests that all slots together can do in a second.
    fn capacity(self) -> u64 {
        u64::from(SLOTS) * SECOND_US / (self.least_us + self.spread_us / 2)
    }
}

struct Model {
    engine: Engine,
    now: u64,
    takes: Takes,
    dice: u64,
    /// Deliveries by the time at which the worker answers. It does not heed CANCEL: its slot is free only then.
    working: BTreeMap<(u64, u32), Delivery>,
    asked: u32,
    answered: u64,
}

impl Model {
    fn new(takes: Takes) -> Self {
        let engine = Engine::new(Settings::default(), Mono::ZERO);
        let mut model = Self { engine, now: 0, takes, dice: 1, working: BTreeMap::new(), asked: 0, answered: 0 };
        for conn in [WORKER, CLIENT] {
            model.say(Input::Connected { conn, name: String::new(), address: String::new() });
            model.say(Input::Ready { conn });
            model.say(Input::Open { conn, seq: 1, handle: 0, queue: "q".parse().expect("a good name") });
        }
        model.say(Input::Register { conn: WORKER, seq: 2, slots: Slots::Limited(SLOTS), name: String::new() });
        model.say(Input::Consume { conn: WORKER, seq: 3, handle: 0, exclusive: false });
        model
    }

    fn say(&mut self, input: Input) {
        let mut out = Vec::new();
        self.engine.handle(Mono::from_micros(self.now), input, &mut out);
        for effect in out {
            match effect {
                Effect::Peer(PeerEffect::Deliver(Deliver { delivery, .. })) => {
                    self.dice = self.dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let takes = self.takes.least_us + (self.dice >> 33) % self.takes.spread_us;
                    self.working.insert((self.now + takes, delivery.stamp), delivery);
                }
                Effect::Peer(PeerEffect::Caller { message: CallerMessage::Reply { .. }, .. }) => self.answered += 1,
                _ => {}
            }
        }
    }

    /// Lets time pass with so many requests a second, evenly. Returns how many were answered.
    fn run(&mut self, seconds: u64, per_second: u64) -> u64 {
        let (begin, end, before) = (self.now, self.now + seconds * SECOND_US, self.answered);
        let mut asked = 0;
        loop {
            let ask = begin + asked * SECOND_US / per_second;
            let answer = self.working.first_key_value().map_or(u64::MAX, |((at, _), _)| *at);
            let tick = self.engine.next_deadline().map_or(u64::MAX, Mono::as_micros);
            self.now = self.now.max(ask.min(answer).min(tick));
            if self.now >= end {
                break;
            }
            if self.now >= tick {
                self.say(Input::Tick);
            } else if self.now >= answer {
                let (_, delivery) = self.working.pop_first().expect("looked at above");
                self.say(Input::worker(WORKER, delivery, WorkerMessage::Reply { more: false, payload: body("") }));
            } else {
                let message = Outgoing { deadline_ms: Some(DEADLINE_MS), ..Outgoing::new(self.asked, 0, body("")) };
                self.say(Input::Request { conn: CLIENT, message });
                asked += 1;
                self.asked += 1;
            }
        }
        self.engine.sanity_check();
        self.answered - before
    }
}

/// What is answered under three times the load that workers can do is what they can do, all but a tenth: also when
/// all of them always take the same time, and when they become eight times slower or faster under that load.
#[test]
fn overload_does_not_cost_throughput() {
    const EVEN: Takes = Takes { least_us: 2_500, spread_us: 5_000 };
    const STEADY: Takes = Takes { least_us: 4_950, spread_us: 100 };
    const SLOW: Takes = Takes { least_us: 39_950, spread_us: 100 };
    let rows: [&[(Takes, u64)]; 4] =
        [&[(EVEN, 10)], &[(STEADY, 2)], &[(STEADY, 1), (SLOW, 3)], &[(SLOW, 2), (STEADY, 2)]];
    for phases in rows {
        let mut model = Model::new(phases[0].0);
        for &(takes, seconds) in phases {
            model.takes = takes;
            let answered = model.run(seconds, 3 * EVEN.capacity());
            let able = seconds * takes.capacity();
            assert!(answered * 10 >= able * 9, "{takes:?}: {answered} of {able} that could be answered");
        }
    }
}
