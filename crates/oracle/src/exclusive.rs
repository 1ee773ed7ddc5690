//! Holder and standbys of an exclusive queue at one broker: I8, S2.19 to S2.26, by the frames that each of them gets.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use turno_proto::model::{Mono, limits};

/// One queue at one broker.
#[derive(Clone, Debug)]
pub struct ExclusiveQueue<K> {
    /// With the token.
    consumers: BTreeMap<K, Option<u64>>,
    /// Were told that it is full, and may ask to be told.
    refused: BTreeSet<K>,
    waiters: Vec<K>,
    /// The standby that was told that it is free, and when.
    offer: Option<(K, Mono)>,
    /// Brokers are linked: the turn is decided by another one, so the order of those who wait here says nothing.
    linked: bool,
}

impl<K> Default for ExclusiveQueue<K> {
    fn default() -> Self {
        Self::new(false)
    }
}

impl<K> ExclusiveQueue<K> {
    /// Nobody has it.
    pub const fn new(linked: bool) -> Self {
        Self { consumers: BTreeMap::new(), refused: BTreeSet::new(), waiters: Vec::new(), offer: None, linked }
    }
}

/// Frames to its peers.
impl<K: Copy + Debug + Ord> ExclusiveQueue<K> {
    /// OK to CONSUME. A consumer is alone if it, or another, wants to be; and nobody overtakes those who wait.
    pub fn consumes(&mut self, now: Mono, who: K, token: Option<u64>) {
        let alone = token.is_some() || self.consumers.values().any(Option::is_some);
        assert!(!alone || self.consumers.is_empty(), "I8: {who:?} consumes beside {:?}", self.consumers);
        let kept = self.kept_for(now);
        assert!(kept.is_none_or(|kept| kept == who) || self.linked, "S2.24: {who:?} has what is kept for {kept:?}");
        let passed =
            self.offer.is_none() && self.consumers.is_empty() && self.waiters.iter().any(|other| *other != who);
        assert!(!passed || self.linked, "S2.24: {who:?} overtakes {:?}", self.waiters);
        self.leave(who);
        // The worker it was kept for before has let its time pass.
        self.offer = None;
        self.consumers.insert(who, token);
    }

    /// QUEUE_FULL.
    pub fn is_refused(&mut self, now: Mono, who: K) {
        let kept = self.kept_for(now) == Some(who) && !self.linked;
        assert!(!kept, "S2.24: the queue was kept for {who:?}, and is not");
        self.offer.take_if(|(told, _)| *told == who);
        if !self.waits(who) {
            self.refused.insert(who);
        }
    }

    /// QUEUE_AVAILABLE.
    pub fn is_told(&mut self, now: Mono, who: K) {
        let kept = self.kept_for(now);
        assert!(kept.is_none() || self.linked, "S2.24: {who:?} is told while the queue is kept for {kept:?}");
        assert!(self.consumers.is_empty(), "S2.22: {who:?} is told that {:?} do not consume", self.consumers);
        let first = self.waiters.first() == Some(&who) || self.linked;
        assert!(first, "S2.24: first come first served of {:?}, not {who:?}", self.waiters);
        self.waiters.retain(|waiter| *waiter != who);
        self.offer = Some((who, now));
    }

    /// DELIVER, under that token.
    pub fn gets(&self, who: K, token: Option<u64>, had: Option<Option<u64>>) {
        let holds = self.consumers.get(&who).copied().or(had);
        assert_eq!(holds, Some(token), "I8: work for one that does not have the queue by that token");
    }
}

/// Frames of its peers.
impl<K: Copy + Debug + Ord> ExclusiveQueue<K> {
    /// QUEUE_AVAILABLE_NOTIFY. False if it was not refused.
    pub fn asks_to_be_told(&mut self, who: K) -> bool {
        let refused = self.refused.remove(&who);
        if refused {
            self.waiters.push(who);
        }
        refused
    }

    /// It has the queue no more, but may wait for it.
    pub fn loses(&mut self, who: K) {
        self.consumers.remove(&who);
    }

    /// It has the queue no more, and does not wait for it.
    pub fn leave(&mut self, who: K) {
        self.consumers.remove(&who);
        self.refused.remove(&who);
        self.waiters.retain(|waiter| *waiter != who);
        self.offer.take_if(|(told, _)| *told == who);
    }
}

/// Questions about its state.
impl<K: Copy + Debug + Ord> ExclusiveQueue<K> {
    /// The one it is kept for. At the very end both may be right.
    fn kept_for(&self, now: Mono) -> Option<K> {
        let live = |(_, at): &(K, Mono)| now.millis_since(*at) < limits::QUEUE_OFFER_MS;
        self.offer.filter(live).map(|(who, _)| who)
    }

    /// The broker looked at its timers: what is kept for somebody is not kept for ever. `busy`: something may be on its way back
    /// from the last one that had the queue, and the next one is told when it is there.
    pub fn timers_ran(&mut self, now: Mono, slack_ms: u64, busy: bool) {
        if let Some((told, at)) = self.offer
            && !self.linked
            && at.plus_millis(limits::QUEUE_OFFER_MS + slack_ms) <= now
        {
            let passed_on = busy || self.waiters.is_empty();
            assert!(passed_on, "S2.24: the queue is kept for {told:?} since {at:?}, and it is {now:?}");
            self.offer = None;
        }
    }

    /// It consumes the queue, alone if there is a token.
    pub fn held_by(&self, who: K) -> Option<Option<u64>> {
        self.consumers.get(&who).copied()
    }

    /// The one that has the queue to itself.
    pub fn holder(&self) -> Option<K> {
        self.consumers.iter().find(|(_, token)| token.is_some()).map(|(who, _)| *who)
    }

    /// It stands in the line, or was told just now.
    pub fn waits(&self, who: K) -> bool {
        self.is_in_line(who) || self.offer.is_some_and(|(told, _)| told == who)
    }

    /// It stands in the line.
    pub fn is_in_line(&self, who: K) -> bool {
        self.waiters.contains(&who)
    }

    /// Nobody consumes it, or waits for it.
    pub fn is_free(&self) -> bool {
        self.consumers.is_empty() && self.waiters.is_empty() && self.offer.is_none()
    }
}
