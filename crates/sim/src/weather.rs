//! Faults: cuts, holes, crashes, pauses, restarts.

use turno_engine::Input;
use turno_proto::model::Mono;
use turno_proto::model::admin::AdminCall;

use crate::net::Direction;
use crate::world::{Actor, Happening, World};

impl World {
    /// One thing goes wrong, and the next is on its way.
    pub(crate) fn weather(&mut self) {
        if !self.stormy {
            return;
        }
        let next = self.now.plus_millis(self.rng.range(50, 900));
        self.at(next, Happening::Weather);
        self.weather_of_links();
        match self.rng.range(0, 16) {
            0..=2 => self.cut_a_wire(),
            3 => self.open_a_hole(),
            4..=5 => self.crash_a_peer(),
            6 => self.put_a_peer_to_sleep(),
            7 => self.kill_a_broker(),
            8 => self.drain_a_broker(),
            9..=10 => self.harm_a_disk(),
            11..=12 => self.maintain_a_broker(),
            13 => self.dismiss_a_worker(),
            _ => {}
        }
    }

    fn some_wire(&mut self) -> Option<usize> {
        let live: Vec<usize> = self.brokers.iter().flat_map(|broker| broker.wires.values().copied()).collect();
        (!live.is_empty()).then(|| live[self.rng.index(live.len())])
    }

    /// Both ends learn of it; what was on the way is lost, in the middle of a frame if need be.
    fn cut_a_wire(&mut self) {
        if let Some(wire) = self.some_wire() {
            self.trace.note(self.now, "cut", wire as u64, 0);
            self.wires[wire].cut = true;
            self.close(wire, Direction::ToBroker);
            self.close(wire, Direction::ToPeer);
        }
    }

    /// Bytes vanish in one or both directions, and nobody is told.
    fn open_a_hole(&mut self) {
        if let Some(wire) = self.some_wire() {
            let ways = self.rng.range(1, 4);
            self.trace.note(self.now, "hole", wire as u64, ways);
            if ways & 1 != 0 {
                self.wires[wire].open_hole(Direction::ToBroker);
            }
            if ways & 2 != 0 {
                self.wires[wire].open_hole(Direction::ToPeer);
            }
            self.hole_shows(wire);
        }
    }

    /// A peer dies, with a farewell by its system or without one, and comes back as a new process.
    fn crash_a_peer(&mut self) {
        // A crashed peer tends to crash again, so that short connections follow each other.
        let index = match self.crashed {
            Some(index) if self.rng.once_in(2) => index,
            _ => self.rng.index(self.peers.len()),
        };
        self.crashed = Some(index);
        self.crash_peer(index);
    }

    /// A worker dies of what it was given.
    pub(crate) fn crashes(&mut self, index: usize, life: u64) {
        if self.stormy && self.peers[index].life == life {
            self.crash_peer(index);
        }
    }

    fn crash_peer(&mut self, index: usize) {
        let quietly = self.rng.once_in(3);
        self.trace.note(self.now, "crash", index as u64, u64::from(quietly));
        let peer = &mut self.peers[index];
        peer.core = None;
        peer.life += 1;
        self.job_worker_dies(index);
        if let Some(zmq) = self.zmq_mut(index) {
            zmq.parted();
        }
        if let Some(wire) = self.peers[index].wire.take() {
            if quietly {
                self.wires[wire].open_hole(Direction::ToPeer);
                self.wires[wire].open_hole(Direction::ToBroker);
                self.hole_shows(wire);
            } else {
                self.close(wire, Direction::ToBroker);
            }
        }
        self.drop_draining(index, quietly);
        if matches!(self.peers[index].actor, Actor::Client(_)) {
            let farewell = (!quietly).then_some(self.now);
            self.oracle.forgets(index, farewell);
        }
        let away_ms = if self.rng.once_in(2) { self.rng.range(1, 30) } else { self.rng.range(30, 3_000) };
        let back = self.now.plus_millis(away_ms);
        let life = self.peers[index].life;
        self.at(back, Happening::PeerStarts { peer: index, life });
    }

    fn put_a_peer_to_sleep(&mut self) {
        let index = self.rng.index(self.peers.len());
        let until = self.now.plus_millis(self.rng.range(100, 6_000));
        self.trace.note(self.now, "sleeps", index as u64, until.as_millis());
        // A client keeps its promises by its own clock, so only workers oversleep, those who listen, and ZeroMQ peers.
        match &mut self.peers[index].actor {
            Actor::Worker(worker) => worker.oversleeps(),
            Actor::Listener(_) | Actor::Zmq(_) => {}
            _ => return,
        }
        self.sleeps(index, until);
    }

    /// It sees and does nothing until then.
    pub(crate) fn sleeps(&mut self, index: usize, until: Mono) {
        let peer = &mut self.peers[index];
        peer.asleep_until = until;
        peer.wakes = Some(until);
        self.at(until, Happening::PeerWakes { peer: index });
    }

    fn kill_a_broker(&mut self) {
        let index = self.rng.index(self.brokers.len());
        self.kill_broker(index);
    }

    /// Something is about to go wrong with a broker's store; after a while nothing is.
    fn harm_a_disk(&mut self) {
        let (now, index) = (self.now, self.rng.index(self.brokers.len()));
        let Some(disks) = &mut self.brokers[index].disks else { return };
        let kind = disks.fail_soon(&mut self.rng);
        self.trace.note(now, "harm", index as u64, kind);
        if disks.archive.fail_soon() && self.is_foreman(index) {
            self.oracle.tasks.outputs.write_fails();
        }
        let until = now.plus_millis(self.rng.range(200, 3_000));
        self.at(until, Happening::DiskHeals { broker: index });
    }

    pub(crate) fn disk_heals(&mut self, index: usize) {
        if let Some(disks) = &mut self.brokers[index].disks {
            disks.heal();
        }
    }

    /// Somebody drains a broker and lets it go on a while later, whatever became of it meanwhile.
    fn maintain_a_broker(&mut self) {
        let index = self.rng.index(self.brokers.len());
        let until = self.now.plus_millis(self.rng.range(50, 4_000));
        self.trace.note(self.now, "maintain", index as u64, until.as_millis());
        self.administer(index, AdminCall::Drain);
        self.at(until, Happening::Resumes { broker: index });
    }

    pub(crate) fn resume_a_broker(&mut self, index: usize) {
        self.trace.note(self.now, "resume", index as u64, 0);
        self.administer(index, AdminCall::Resume);
    }

    /// An orderly end; the broker is restarted once a later turn of the weather finds it drained.
    fn drain_a_broker(&mut self) {
        let (now, index) = (self.now, self.rng.index(self.brokers.len()));
        let within_ms = self.rng.range(100, 3_000);
        let shown = self.clock_of(index);
        let Some(connections) = &mut self.brokers[index].connections else { return };
        if connections.drained().is_some() {
            return self.end_broker(index);
        }
        self.trace.note(now, "drain", index as u64, within_ms);
        connections.handle(shown, Input::Drain { within_ms });
        self.brokers[index].drains_until.get_or_insert_with(|| now.plus_millis(within_ms));
        self.pump_broker(index);
    }
}
