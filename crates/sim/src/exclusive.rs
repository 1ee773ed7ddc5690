//! Exclusive queues of a world: the workers that want them, and the check that each has a holder at the end.

use std::collections::{BTreeMap, BTreeSet};

use turno_client::core::{Claim, CoreEvent};
use turno_proto::model::{ConnId, Mono, QueueName};

use crate::rogue::Rogue;
use crate::worker::Worker;
use crate::world::{Actor, Happening, World};

/// Enough for whatever a client asks: a holder that is too small would never let go.
const SLOTS: u32 = 4;
/// How often ghosts show that they are alive.
const GHOST_MS: u64 = 700;

/// State of workers of exclusive queues.
#[derive(Debug, Default)]
pub(crate) struct ExclusiveState {
    claims: BTreeMap<usize, Claim>,
    /// Confirmed holders: by peer, life and queue.
    active: BTreeMap<(usize, u64, QueueName), u64>,
    /// Workers that believe to be standbys, by queue.
    standing: BTreeSet<(usize, QueueName)>,
}

impl World {
    /// In every other world some queues are for one at a time, and some peers want them.
    pub(crate) fn add_singles(&mut self) {
        if !self.rng.once_in(2) {
            return;
        }
        for n in 0..self.rng.range(1, 3) {
            self.oracle.fences.names.push(format!("single.{n}").parse().expect("a name"));
        }
        self.queues.extend(self.oracle.fences.names.iter().cloned());
        for _ in 0..self.rng.range(2, 4) {
            let claim = if self.rng.once_in(4) { Claim::Exclusive } else { Claim::Standby };
            let good = self.rng.once_in(2);
            let names = self.oracle.fences.names.clone();
            self.add_single(claim, good, names, None);
        }
        if self.rng.once_in(2) {
            let queue = self.queues.len() - 1;
            self.add_peer(Actor::Rogue(Rogue::stale_holder(queue)), 0, Vec::new(), None);
        }
        if self.rng.once_in(4) {
            // May come to one of these queues as one who shares.
            let rogue = Rogue::new(&mut self.rng, self.queues.len());
            self.add_peer(Actor::Rogue(rogue), 0, Vec::new(), None);
        }
    }

    fn add_single(&mut self, claim: Claim, good: bool, queues: Vec<QueueName>, only: Option<usize>) {
        self.singles.claims.insert(self.peers.len(), claim);
        self.add_peer(Actor::Worker(Worker::new(SLOTS, good)), SLOTS, queues, only);
    }

    /// The queues that workers share.
    pub(crate) fn shared_queues(&self) -> Vec<QueueName> {
        self.queues.iter().filter(|queue| !self.oracle.fences.names.contains(queue)).cloned().collect()
    }

    /// A new process knows nothing of what the last one waited for.
    pub(crate) fn single_starts(&mut self, peer: usize) {
        self.singles.standing.retain(|(waiting, _)| *waiting != peer);
    }

    pub(crate) fn claim_of(&self, peer: usize) -> Claim {
        self.singles.claims.get(&peer).copied().unwrap_or_default()
    }

    /// A connection stands: it is listened to if its peer may want an exclusive queue, or events.
    pub(crate) fn listen(&mut self, wire: usize, peer: usize, broker: usize) {
        let rogue = matches!(self.peers[peer].actor, Actor::Rogue(_)) && !self.oracle.fences.names.is_empty();
        if rogue || self.singles.claims.contains_key(&peer) {
            self.oracle.fences.listen(wire, broker);
        }
        if self.is_listener(peer) {
            self.oracle.topics.listen(wire, broker);
        }
    }

    /// Reads the bytes that a broker is about to write, and the connections that it has closed.
    pub(crate) fn overhear(&mut self, index: usize, dirty: &[ConnId], gone: &[ConnId]) {
        let (broker, fences) = (&self.brokers[index], &mut self.oracle.fences);
        if fences.names.is_empty() {
            return;
        }
        for wire in gone.iter().filter_map(|conn| broker.wires.get(conn)) {
            fences.wire_gone(*wire);
        }
        let Some(connections) = &broker.connections else { return };
        let wires =
            dirty.iter().filter_map(|conn| broker.wires.get(conn).map(|wire| (*wire, connections.unwritten(*conn))));
        fences.broker_says(self.now, &wires.collect::<Vec<_>>());
    }

    /// Work comes under the token that the worker knows it has the queue by.
    pub(crate) fn single_hears(&mut self, index: usize, event: &CoreEvent) {
        if self.claim_of(index) == Claim::Shared {
            return;
        }
        let life = self.peers[index].life;
        match event {
            CoreEvent::Active { queue, token } => {
                self.trace.note(self.now, "active", index as u64, *token);
                self.singles.active.insert((index, life, queue.clone()), *token);
                self.singles.standing.remove(&(index, queue.clone()));
            }
            CoreEvent::StandingBy { queue } => {
                self.trace.note(self.now, "stands by", index as u64, life);
                self.singles.standing.insert((index, queue.clone()));
            }
            CoreEvent::Replaced { .. } => self.single_ends(index),
            CoreEvent::Disconnect { .. } => self.singles.standing.retain(|(peer, _)| *peer != index),
            CoreEvent::Deliver(handed) => {
                let known = self.singles.active.get(&(index, life, handed.queue.clone())).copied();
                assert!(
                    handed.token.is_some() && handed.token == known,
                    "I8: work under {:?}, not {known:?}",
                    handed.token
                );
            }
            _ => {}
        }
    }

    /// Another has its queue, so it ends in order; somebody starts it again.
    fn single_ends(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        self.trace.note(self.now, "replaced", index as u64, peer.life);
        if let Actor::Worker(worker) = &mut peer.actor {
            worker.leaves(&mut self.oracle);
        }
        self.says_goodbye(index);
        self.at(self.now, Happening::Leaves { peer: index, life: self.peers[index].life });
    }

    /// Ghosts have no core that would ask for the time.
    pub(crate) fn wind_up_ghost(&mut self, peer: usize, life: u64) {
        if let Actor::Rogue(rogue) = &self.peers[peer].actor
            && rogue.is_ghost()
        {
            self.at(self.now.plus_millis(GHOST_MS), Happening::Act { peer, life });
        }
    }

    /// True if it is a ghost, whatever the weather: it is alive, and may ask again for what it was refused.
    pub(crate) fn ghost_acts(&mut self, peer: usize, life: u64) -> bool {
        let Actor::Rogue(rogue) = &mut self.peers[peer].actor else { return false };
        rogue.show_life(self.stormy, &mut self.rng);
        self.wind_up_ghost(peer, life);
        self.pump_peer(peer);
        true
    }

    /// The storm is over: every queue has one at each broker that wants it. A ghost that waits goes on waiting, and takes
    /// nothing.
    pub(crate) fn singles_calm_down(&mut self) {
        let names = self.oracle.fences.names.clone();
        if names.is_empty() {
            return;
        }
        for broker in 0..self.brokers.len() {
            self.add_single(Claim::Standby, true, names.clone(), Some(broker));
        }
    }

    /// True if the peer is a ghost that may stay in the calm: it has nothing and only waits, and will not come when it is
    /// told.
    pub(crate) fn only_waits(&mut self, peer: usize) -> bool {
        let waits = self.peers[peer].wire.is_some_and(|wire| self.oracle.fences.waits(wire));
        let Actor::Rogue(rogue) = &mut self.peers[peer].actor else { return false };
        waits && rogue.will_not_come()
    }

    /// Before the calm ends, every exclusive queue of every broker is somebody's who lives, and every worker that believes to stand in
    /// a line does.
    pub(crate) fn await_holders(&mut self, end: Mono) {
        loop {
            let (free, lost) = (self.queue_without_holder(), self.standby_without_place());
            if free.is_none() && lost.is_none() {
                return;
            }
            assert!(
                self.now < end || free.is_none(),
                "S2.22: nobody has queue and broker {free:?}, and some wait for it"
            );
            assert!(self.now < end, "S2.24: peer {lost:?} stands by, and its broker does not know");
            assert!(self.step(), "I21: time stands still");
        }
    }

    fn standby_without_place(&self) -> Option<usize> {
        let placed = |peer: usize, queue: &QueueName| {
            self.peers[peer].wire.is_some_and(|wire| self.oracle.fences.waits_for(wire, queue))
        };
        self.singles.standing.iter().find(|(peer, queue)| !placed(*peer, queue)).map(|(peer, _)| *peer)
    }

    /// A queue that not exactly one has of all who can reach each other.
    fn queue_without_holder(&self) -> Option<(usize, usize)> {
        let queues = 0..self.oracle.fences.names.len();
        let held = |broker: usize, queue: usize| {
            let holder = self.oracle.fences.holder(broker, queue);
            holder.is_some_and(|wire| self.peers[self.wires[wire].peer].wire == Some(wire))
        };
        let components = self.links.components(self.brokers.len());
        let mut all = components.iter().flat_map(|brokers| queues.clone().map(move |queue| (brokers, queue)));
        let lacks = all.find(|(brokers, queue)| brokers.iter().filter(|broker| held(**broker, *queue)).count() != 1);
        lacks.and_then(|(brokers, queue)| Some((*brokers.first()?, queue)))
    }
}
