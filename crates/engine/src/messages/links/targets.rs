//! Target addresses of links, which are dialled until they are connected.

use std::collections::BTreeMap;

use turno_proto::model::link::BrokerId;
use turno_proto::model::link::view::LinkState;
use turno_proto::model::{Code, Mono, limits};

use crate::effect::{PeerEffect, Sink};

/// An address that a link is wanted to.
#[derive(Debug)]
pub(super) struct Target {
    pub(crate) address: String,
    pub(super) state: LinkState,
    pub(super) since: Mono,
    /// Why it is not up.
    pub(super) code: Option<Code>,
    /// When it is dialled.
    redial: Option<Mono>,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Targets {
    by_number: BTreeMap<u32, Target>,
    numbers: u32,
    /// Where chance is: brokers that start together shall not dial together for ever.
    chance: u64,
}

impl Targets {
    pub(super) fn new(me: BrokerId, addresses: &[String], now: Mono) -> Self {
        let mut targets = Self { by_number: BTreeMap::new(), numbers: 0, chance: me.get() | 1 };
        for address in addresses.iter().take(limits::LINKS_MAX) {
            targets.add(address.clone(), now);
        }
        targets
    }

    /// One more, dialled at once. One that is there stays as it is.
    pub(super) fn add(&mut self, address: String, now: Mono) -> u32 {
        if let Some((number, _)) = self.by_number.iter().find(|(_, target)| target.address == address) {
            return *number;
        }
        self.numbers += 1;
        let target = Target { address, state: LinkState::Down, since: now, code: None, redial: Some(now) };
        self.by_number.insert(self.numbers, target);
        self.numbers
    }

    pub(super) fn remove(&mut self, number: u32) -> Option<Target> {
        self.by_number.remove(&number)
    }

    pub(crate) fn get(&self, number: u32) -> Option<&Target> {
        self.by_number.get(&number)
    }

    pub(super) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Target)> {
        self.by_number.iter().map(|(number, target)| (*number, target))
    }

    pub(super) fn next_deadline(&self) -> Option<Mono> {
        self.by_number.values().filter_map(|target| target.redial).min()
    }

    /// Dials all targets that are due.
    pub(super) fn dial(&mut self, now: Mono, out: &mut impl Sink) {
        for (number, target) in &mut self.by_number {
            if target.redial.is_some_and(|at| at <= now) {
                target.redial = None;
                target.state = LinkState::Dialling;
                target.since = now;
                out.peer(PeerEffect::Dial { target: *number, address: target.address.clone() });
            }
        }
    }

    pub(super) fn up(&mut self, number: u32, now: Mono) {
        if let Some(target) = self.by_number.get_mut(&number) {
            (target.state, target.since, target.code, target.redial) = (LinkState::Up, now, None, None);
        }
    }

    /// It came to nothing, or to an end; it is dialled again in a while.
    pub(super) fn down(&mut self, number: u32, state: LinkState, code: Code, now: Mono) {
        let pause_ms = match state {
            LinkState::Itself | LinkState::Doubled => limits::REDIAL_HOPELESS_MS,
            LinkState::Up | LinkState::Closing | LinkState::Dialling | LinkState::Down => limits::REDIAL_MS,
        };
        let chance = self.next_chance() % (pause_ms / 4);
        if let Some(target) = self.by_number.get_mut(&number) {
            (target.state, target.since, target.code) = (state, now, Some(code));
            target.redial = Some(now.plus_millis(pause_ms + chance));
        }
    }

    /// Targets that were given up may be dialled again: a link that was in the way is gone.
    pub(super) fn look_again(&mut self, now: Mono) {
        for target in self.by_number.values_mut() {
            if target.state == LinkState::Doubled {
                target.redial = Some(now.plus_millis(limits::REDIAL_MS));
            }
        }
    }

    const fn next_chance(&mut self) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance
    }
}
