//! Workers that leave in order: they deregister, finish, and send CLOSING.

use crate::net::{Direction, Wire};
use crate::order::QueuePlace;
use crate::world::{Actor, Happening, World};

impl World {
    /// A worker takes no new work any more, and goes a while later.
    pub(crate) fn dismiss_a_worker(&mut self) {
        let index = self.rng.index(self.peers.len());
        let after_ms = self.rng.range(0, 2_000);
        let (now, peer) = (self.now, &mut self.peers[index]);
        let (Some(core), Actor::Worker(worker)) = (&mut peer.core, &mut peer.actor) else { return };
        self.trace.note(now, "deregisters", index as u64, after_ms);
        worker.leaves(&mut self.oracle);
        core.deregister();
        let life = peer.life;
        self.says_goodbye(index);
        self.pump_peer(index);
        self.at(now.plus_millis(after_ms), Happening::Leaves { peer: index, life });
    }

    /// From now on what it had of its queues may come to others as if it had never had it.
    pub(crate) fn says_goodbye(&mut self, index: usize) {
        if let Some(wire) = self.peers[index].wire {
            self.places_of(wire).for_each(|place| self.oracle.order.says_goodbye(place));
        }
    }

    /// The broker has lost the connection of a worker, if it is one: sends that it had may come to others in the same way.
    pub(crate) fn loses(&mut self, wire: usize) {
        self.places_of(wire).for_each(|place| self.oracle.order.loses(place));
    }

    /// The queues that the peer at that wire takes work from.
    fn places_of(&self, wire: usize) -> impl Iterator<Item = QueuePlace> + use<> {
        let Wire { peer, broker, life, .. } = self.wires[wire];
        let queues: Vec<usize> = match self.peers.get(peer).map(|peer| (&peer.actor, &peer.queues)) {
            Some((Actor::Worker(_) | Actor::Zmq(_), names)) => (self.queues.iter().enumerate())
                .filter(|(_, queue)| names.contains(queue))
                .map(|(queue, _)| queue)
                .collect(),
            Some((Actor::Rogue(rogue), _)) => vec![rogue.queue()],
            _ => Vec::new(),
        };
        queues.into_iter().map(move |queue| QueuePlace { broker, life, queue })
    }

    /// It goes; another process takes its place.
    pub(crate) fn leaves(&mut self, index: usize, life: u64) {
        let now = self.now;
        if self.peers[index].life != life {
            return;
        }
        self.trace.note(now, "leaves", index as u64, life);
        if let Some(core) = &mut self.peers[index].core {
            core.close(now);
        }
        self.pump_peer(index);
        let peer = &mut self.peers[index];
        peer.core = None;
        peer.life += 1;
        let life = peer.life;
        if let Some(wire) = peer.wire.take() {
            self.close(wire, Direction::ToBroker);
        }
        let back = now.plus_millis(self.rng.range(1, 2_000));
        self.at(back, Happening::PeerStarts { peer: index, life });
    }
}
