//! Workers that leave in order: they deregister, finish what they can, say CLOSING, and what is left goes to others as if
//! they had never had it.

use crate::net::Way;
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
        if let Some(wire) = peer.wire {
            self.oracle.said_goodbye(self.wires[wire].life);
        }
        let life = peer.life;
        self.pump_peer(index);
        self.at(now.plus_millis(after_ms), Happening::Leaves { peer: index, life });
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
            self.close(wire, Way::ToBroker);
        }
        let back = now.plus_millis(self.rng.range(1, 2_000));
        self.at(back, Happening::PeerStarts { peer: index, life });
    }
}
