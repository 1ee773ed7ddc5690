//! The calm of a ring: one circle, all publications at all members, and nothing left over.

use std::collections::BTreeSet;

use turno_engine::ring::RingInput;
use turno_proto::model::ring::{RingState, Sid};

use super::wires::BrokerPlace;
use super::world::{RingWorld, address, place_of};

/// I17: milliseconds after the last fault.
const HEALED_MS: u64 = 15_000;
/// Publications under way come round, and dead origins are forgotten.
const DRAINED_MS: u64 = 8_000;
/// I21: whatever waits has its turn.
const SLOWED_MS: u64 = 60_000;

impl RingWorld {
    /// No more faults.
    pub(crate) fn calm_down(&mut self) {
        self.is_calm = true;
        for place in 0..self.brokers.len() {
            if self.brokers[place].node.is_none() && self.rng.once_in(2) {
                self.come_back(place);
            }
        }
        for (from, to) in self.wires.cut.clone() {
            self.reconnect(from, to);
        }
        for lane in self.wires.all.values_mut().flat_map(|wire| &mut wire.lanes) {
            lane.release(self.now);
        }
        for place in 0..self.brokers.len() {
            self.resume(place);
            self.wake_lanes(place);
        }
        self.introduce();
        self.trace.note(self.now, "calm", 0, 0);
    }

    /// Brokers that no other knows, and that know none, are no ring yet: an admin tells them. Whether it was necessary.
    fn introduce(&mut self) -> bool {
        let mut is_told = false;
        let up: Vec<BrokerPlace> = (0..self.brokers.len()).filter(|place| self.wants(*place)).collect();
        let Some(first) = up.first().copied() else { return false };
        for place in up.iter().copied() {
            let node = self.brokers[place].node.as_ref();
            let asked = node.and_then(|node| node.asks()).and_then(|asked| place_of(asked));
            let is_stranger = !up.iter().any(|other| *other != place && self.knows(place, *other));
            if is_stranger && asked.is_some_and(|asked| !self.wants(asked)) {
                // It would wait for one that never comes.
                self.kill(place, false);
                let next = up.iter().copied().find(|other| *other != place && self.is_up(*other));
                self.start(place, next, true);
                is_told = true;
            }
        }
        loop {
            let mut known = BTreeSet::from([first]);
            let mut before = 0;
            while before < known.len() {
                before = known.len();
                for one in &up {
                    let is_friend = |other: &BrokerPlace| self.knows(*one, *other) || self.knows(*other, *one);
                    if known.iter().any(is_friend) {
                        known.insert(*one);
                    }
                }
            }
            let Some(stranger) = up.iter().copied().find(|place| !known.contains(place)) else {
                return is_told;
            };
            is_told = true;
            self.trace.note(self.now, "join", stranger as u64, first as u64);
            self.put(stranger, RingInput::Join { next: address(first), sid: None });
        }
    }

    /// Whether a broker has heard of another, or was told of it.
    fn knows(&self, one: BrokerPlace, other: BrokerPlace) -> bool {
        let address = address(other);
        self.brokers[one].node.as_ref().is_some_and(|node| {
            let view = node.view();
            let mut all = view.members.iter().chain(&view.lost);
            all.any(|member| member.address == address) || node.asks() == Some(&address)
        })
    }

    /// Whether a broker should be in the ring. A broker may ask at a place where nobody is, if a stranger named it.
    fn wants(&self, place: BrokerPlace) -> bool {
        let Some(broker) = self.brokers.get(place) else { return false };
        let is_leaving = broker.node.as_ref().is_some_and(|node| node.state() == RingState::Leaving);
        broker.node.is_some() && !broker.is_out && !is_leaving
    }

    /// Those that should be one circle.
    fn expected(&self) -> Vec<BrokerPlace> {
        (0..self.brokers.len()).filter(|place| self.wants(*place)).collect()
    }

    /// Two with one number are not in one circle.
    fn pairs(&self) -> Option<String> {
        let circles = (0..self.brokers.len()).map(|place| self.circle(place));
        let is_double = |circle: &Vec<BrokerPlace>| {
            let sids: BTreeSet<Sid> = circle.iter().map(|place| self.brokers[*place].sid).collect();
            sids.len() < circle.len()
        };
        circles.into_iter().find(is_double).map(|circle| format!("two members with one number: {circle:?}"))
    }

    /// As the wires lead, from that broker on.
    fn circle(&self, from: BrokerPlace) -> Vec<BrokerPlace> {
        let mut circle = vec![from];
        while let Some(next) = self.sends_to(circle[circle.len() - 1]).filter(|next| !circle.contains(next)) {
            circle.push(next);
        }
        circle
    }

    /// Whether the wires make one circle of all that should be in it, and everyone knows.
    fn complaint(&self) -> Option<String> {
        if self.climate.rogue {
            return self.pairs();
        }
        let expected = self.expected();
        let sids: BTreeSet<Sid> = expected.iter().map(|place| self.brokers[*place].sid).collect();
        for place in &expected {
            let Some(node) = &self.brokers[*place].node else { continue };
            let view = node.view();
            let told: BTreeSet<Sid> = view.members.iter().map(|member| member.sid).collect();
            if !view.whole || told != sids {
                return Some(format!("{place} knows of no circle of {sids:?}: {view:?}"));
            }
            let state = if expected.len() == 1 { RingState::Alone } else { RingState::Member };
            if view.state != state {
                return Some(format!("{place} is {}", view.state.name()));
            }
        }
        let circle = self.circle(*expected.first()?);
        (circle.len() != expected.len()).then(|| format!("the wires lead through {circle:?}, not {expected:?}"))
    }

    /// The broker that a broker sends to over a wire that both ends know.
    fn sends_to(&self, place: BrokerPlace) -> Option<BrokerPlace> {
        let node = self.brokers[place].node.as_ref()?;
        let next = self.oracle.next(self.brokers[place].life)?;
        let there = self.oracle.place(next);
        let is_wired = self
            .wires
            .all
            .values()
            .any(|wire| wire.lives == [self.brokers[place].life, next] && wire.ends.iter().all(Option::is_some));
        let knows = self.brokers[there].node.as_ref()?.view().previous == Some(node.me().origin.sid);
        (is_wired && knows && self.brokers[there].life == next && node.next_sid() == Some(self.brokers[there].sid))
            .then_some(there)
    }

    /// I17: one circle within 15 s of the last fault, and it stays one.
    pub(crate) fn heal(&mut self) {
        let mut begun = self.now;
        let mut complaint = None;
        let last = begun.plus_millis(HEALED_MS * 6);
        while self.now.millis_since(begun) < HEALED_MS {
            self.run(100);
            let is_new = std::mem::take(&mut self.is_disturbed);
            if !self.climate.rogue && (self.introduce() || is_new) {
                begun = self.now;
                assert!(begun < last, "I17: no peace");
            }
            complaint = self.complaint();
            if complaint.is_none() && self.climate.has_lies() {
                return;
            }
        }
        if let Some(complaint) = complaint {
            panic!("I17: no circle: {complaint}");
        }
    }

    /// Of two with one number the one that is left out asks again and again, in whichever ring it is, and what was a lie is found
    /// out bit by bit: the circle need not stay.
    const fn is_restless(&self) -> bool {
        self.climate.rogue || self.climate.has_lies()
    }

    /// I16, I17: everyone gets what everyone publishes once more, and then nothing is left.
    pub(crate) fn end(&mut self) {
        self.is_quiet = true;
        self.run(DRAINED_MS);
        // With a window of one what has gathered goes round one by one.
        let begun = self.now;
        while self.brokers.iter().any(|broker| broker.is_slowed) && self.now.millis_since(begun) < SLOWED_MS {
            self.run(1_000);
        }
        let lies = self.is_restless();
        let expected = self.expected();
        let lives: Vec<usize> = expected.iter().map(|place| self.brokers[*place].life).collect();
        let mut said = Vec::new();
        for place in &expected {
            assert!(lies || !self.brokers[*place].is_slowed, "I17: {place} is slowed for ever");
            self.publish(*place);
            said.push((self.brokers[*place].life, self.brokers[*place].published));
        }
        self.run(DRAINED_MS);
        for (origin, number) in said.into_iter().filter(|_| !lies) {
            for life in lives.iter().filter(|life| **life != origin) {
                assert!(
                    self.oracle.got(*life, origin, number),
                    "I16: in the calm {life} has not got {origin}.{number}"
                );
            }
        }
        assert_eq!(self.wires.publications(), 0, "I17: publications are under way for ever");
        for place in expected.iter().copied().filter(|_| !lies) {
            let Some(node) = &self.brokers[place].node else { continue };
            let view = node.view();
            assert_eq!((view.buffered, view.not_round), (0, 0), "I17: something is left at {place}: {view:?}");
            assert!(!view.slowed, "I17: {place} is slowed");
        }
        if let Some(complaint) = self.complaint().filter(|_| !self.is_restless()) {
            panic!("I17: the circle is gone in the calm: {complaint}");
        }
        self.shut_down(&expected);
    }

    /// S3.42: an admin ends them all.
    fn shut_down(&mut self, members: &[BrokerPlace]) {
        if members.is_empty() || self.is_restless() || !self.rng.once_in(4) {
            return;
        }
        let first = members[self.rng.index(members.len())];
        self.trace.note(self.now, "shutdown", first as u64, 0);
        // Without a secret the admin tells each of them.
        let told = if self.climate.has_secret { vec![first] } else { members.to_vec() };
        self.told_to_end.extend(&told);
        for place in told {
            self.put(place, RingInput::Shutdown);
        }
        self.run(2_000);
        for place in members {
            assert!(self.oracle.stopped.contains(&self.brokers[*place].life), "S3.42: {place} goes on");
        }
    }
}
