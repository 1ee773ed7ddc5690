//! Faults of a ring's world: brokers and connections.

use turno_engine::ring::{RingInput, RingNode};
use turno_proto::model::ring::RingState;

use super::wires::BrokerPlace;
use super::world::{RingHappening, RingWorld, address};

impl RingWorld {
    /// The whole storm.
    pub(crate) fn storm(&mut self) {
        self.start(0, None, true);
        for place in 1..self.climate.members {
            if self.rng.once_in(2) {
                let after = self.rng.range(0, 3_000);
                self.run(after);
            }
            // Several at one member at once.
            let next = if self.rng.once_in(2) { 0 } else { self.rng.index(place) };
            let wait = !self.rng.once_in(3);
            self.start(place, Some(next), wait);
        }
        let after = self.rng.range(100, 10_000);
        self.later(after, RingHappening::Fault);
        if self.climate.liar.is_some() {
            self.later(1_000, RingHappening::Lie);
        }
        if self.climate.stranger {
            self.later(1_000, RingHappening::Pose);
        }
        self.run(self.climate.storm);
    }

    fn anyone(&mut self, is_meant: impl Fn(&Self, BrokerPlace) -> bool) -> Option<BrokerPlace> {
        let all: Vec<BrokerPlace> = (0..self.brokers.len()).filter(|place| is_meant(self, *place)).collect();
        (!all.is_empty()).then(|| all[self.rng.index(all.len())])
    }

    pub(super) fn is_up(&self, place: BrokerPlace) -> bool {
        self.brokers[place].node.is_some()
    }

    fn state(&self, place: BrokerPlace) -> Option<RingState> {
        self.brokers[place].node.as_ref().map(RingNode::state)
    }

    /// One fault, and the next some time later.
    pub(super) fn fault(&mut self) {
        if self.is_calm {
            return;
        }
        let after = self.rng.range(1, self.climate.faults * 2);
        self.later(after, RingHappening::Fault);
        match self.rng.index(16) {
            0..=2 => {
                if let Some(place) = self.anyone(Self::is_up) {
                    let machine = self.rng.once_in(3);
                    self.kill(place, machine);
                    if self.rng.once_in(2) {
                        // It is back soon.
                        self.come_back(place);
                    }
                }
            }
            3..=6 => {
                if let Some(place) = self.anyone(|world, place| !world.is_up(place)) {
                    self.come_back(place);
                }
            }
            7 => {
                if let Some(place) = self.anyone(|world, place| world.is_up(place) && world.is_awake(place)) {
                    self.trace.note(self.now, "leave", place as u64, 0);
                    self.put(place, RingInput::Leave);
                }
            }
            8 => {
                let is_out = |world: &Self, place| world.state(place) == Some(RingState::Off) && world.is_awake(place);
                if let Some(place) = self.anyone(is_out) {
                    self.told_to_join(place);
                }
            }
            9 | 10 => {
                if let Some(place) = self.anyone(|world, place| world.is_up(place) && world.is_awake(place)) {
                    let longest = if self.climate.fast { 3_000 } else { 20_000 };
                    let millis = self.rng.range(10, longest);
                    self.brokers[place].paused = Some(self.now);
                    self.trace.note(self.now, "pause", place as u64, millis);
                    self.later(millis, RingHappening::Resume(place));
                }
            }
            11 | 12 => {
                // One way, or both.
                let (from, to) = (self.rng.index(self.brokers.len()), self.rng.index(self.brokers.len()));
                let millis = self.how_long();
                self.cut(from, to, millis);
                if self.rng.once_in(2) {
                    self.cut(to, from, millis);
                }
            }
            13 => self.part(),
            _ => self.stall(),
        }
    }

    /// All of them on two sides that cannot reach each other.
    fn part(&mut self) {
        let sides: Vec<bool> = (0..self.brokers.len()).map(|_| self.rng.once_in(2)).collect();
        let millis = self.how_long() * 2;
        self.trace.note(self.now, "part", sides.iter().filter(|side| **side).count() as u64, millis);
        for (from, left) in sides.iter().enumerate() {
            for (to, right) in sides.iter().enumerate() {
                if left != right {
                    self.cut(from, to, millis);
                }
            }
        }
    }

    /// One lane of some wire is slow for once.
    fn stall(&mut self) {
        let wires: Vec<u32> = self.wires.all.keys().copied().collect();
        if wires.is_empty() {
            return;
        }
        let (wire, side) = (wires[self.rng.index(wires.len())], self.rng.index(2));
        let longest = if self.climate.fast { 200 } else { 4_000 };
        let stalled = self.now.plus_millis(self.rng.range(1, longest));
        if let Some(open) = self.wires.all.get_mut(&wire) {
            open.lanes[side].stalled = stalled;
        }
    }

    fn how_long(&mut self) -> u64 {
        self.rng.range(100, if self.climate.fast { 2_000 } else { 15_000 })
    }

    fn is_awake(&self, place: BrokerPlace) -> bool {
        self.brokers[place].paused.is_none()
    }

    /// A broker starts again: where it was, at another member, or without knowing any.
    pub(super) fn come_back(&mut self, place: BrokerPlace) {
        let others = self.anyone(|world, other| other != place && world.is_up(other));
        let next = others.filter(|_| !self.rng.once_in(5));
        let wait = self.is_calm || !self.rng.once_in(3);
        self.start(place, next, wait);
    }

    pub(super) fn told_to_join(&mut self, place: BrokerPlace) {
        if let Some(next) = self.anyone(|world, other| other != place && world.is_up(other)) {
            self.trace.note(self.now, "join", place as u64, next as u64);
            self.brokers[place].is_out = false;
            self.brokers[place].refused = None;
            self.put(place, RingInput::Join { next: address(next), sid: None });
        }
    }

    fn cut(&mut self, from: BrokerPlace, to: BrokerPlace, millis: u64) {
        self.trace.note(self.now, "cut", from as u64, to as u64);
        self.wires.cut.insert((from, to));
        self.later(millis, RingHappening::Reconnect(from, to));
    }

    pub(super) fn reconnect(&mut self, from: BrokerPlace, to: BrokerPlace) {
        if self.wires.cut.remove(&(from, to)) {
            self.wake_lanes(to);
        }
    }

    /// A broker that did nothing for a while goes on: it sees first that time has passed, or what has come meanwhile.
    pub(super) fn resume(&mut self, place: BrokerPlace) {
        if self.brokers[place].paused.take().is_none() {
            return;
        }
        self.trace.note(self.now, "resume", place as u64, 0);
        let mut ends = self.wires.of(place);
        if self.rng.once_in(2) {
            for (wire, side) in ends {
                self.hears_nothing(wire, side);
            }
        } else {
            // Received messages are read before the clock is looked at.
            ends.reverse();
            for (wire, side) in ends {
                if let Some(end) = self.wires.all.get_mut(&wire).and_then(|open| open.ends[side].as_mut()) {
                    end.heard = self.now;
                }
            }
        }
        self.wake_lanes(place);
    }
}
