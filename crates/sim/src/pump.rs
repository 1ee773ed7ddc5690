//! Moves bytes between peers and brokers, events out of cores, and time into all.

use turno_broker::connections::{Connections, ListenerKind, Turn};
use turno_client::core::Held;
use turno_engine::Input;
use turno_proto::model::{ConnId, Mono};

use crate::net::{Direction, Wire};
use crate::rogue::Misbehaviour;
use crate::world::{Actor, Happening, World};

/// Bytes that one who listens is read at a time.
const PART_BYTES: usize = 256;

impl World {
    pub(crate) fn dial(&mut self, peer: usize, life: u64, broker: usize) {
        let at = Mono::from_micros(self.now.as_micros() + self.rng.range(100, 4_000));
        self.at(at, Happening::Dialled { peer, life, broker });
    }

    /// A dial was answered, or refused.
    pub(crate) fn dialled(&mut self, index: usize, life: u64, broker: usize) {
        let rogue = matches!(self.peers[index].actor, Actor::Rogue(_));
        if self.peers[index].life != life || (rogue && !self.stormy) {
            return;
        }
        let (now, wire) = (self.now, self.wires.len());
        let kind = if self.works_for_jobs(index) {
            ListenerKind::Foreman
        } else {
            self.zmq_listener(index).unwrap_or(ListenerKind::Native)
        };
        let shown = self.clock_of(broker);
        let accepted = self.brokers[broker]
            .connections
            .as_mut()
            .and_then(|connections| connections.accept(shown, format!("peer-{index}"), kind));
        self.trace.note(now, "dialled", index as u64, broker as u64);
        let Some(conn) = accepted else {
            match &mut self.peers[index].core {
                Some(core) => core.handle_disconnected(now, "refused"),
                None => self.at(now.plus_millis(500), Happening::Dialled { peer: index, life, broker }),
            }
            return self.pump_peer(index);
        };
        self.wires.push(Wire::new(index, broker, self.brokers[broker].run, &mut self.rng));
        self.wires[wire].conn = Some(conn);
        self.brokers[broker].wires.insert(conn, wire);
        self.listen(wire, index, broker);
        self.zmq_connected(index, wire);
        let peer = &mut self.peers[index];
        peer.wire = Some(wire);
        peer.out.clear();
        match (&mut peer.core, &mut peer.actor) {
            (Some(core), actor) => {
                if let Actor::Client(client) = actor {
                    client.connected();
                }
                core.handle_connected(now);
            }
            (None, Actor::Rogue(rogue)) => {
                let queue = self.queues[rogue.queue()].to_string();
                rogue.connected(&queue, &mut self.rng);
            }
            (None, Actor::JobWorker(job_worker)) => job_worker.connected(now),
            (None, Actor::Liar(liar)) => liar.connected(&mut self.rng),
            _ => {}
        }
        self.pump_peer(index);
        self.pump_broker(broker);
    }

    pub(crate) fn arrive(&mut self, wire: usize, way: Direction, piece: &[u8]) {
        self.trace.note(self.now, "arrives", wire as u64, piece.len() as u64);
        self.wires[wire].arrive(way, piece);
        if self.wires[wire].dialler.is_some() {
            return self.link_reads(wire, way);
        }
        match way {
            Direction::ToBroker => self.broker_reads(wire),
            Direction::ToPeer => self.peer_reads(wire),
        }
    }

    /// The other side closed, or the wire was cut.
    pub(crate) fn closed(&mut self, wire: usize, way: Direction) {
        self.trace.note(self.now, "closed", wire as u64, way as u64);
        if self.wires[wire].dialler.is_some() {
            return self.link_closed(wire, way);
        }
        let (now, Wire { peer, broker, conn, .. }) = (self.now, &self.wires[wire]);
        let (peer, broker, conn) = (*peer, *broker, *conn);
        match way {
            Direction::ToBroker => {
                self.broker_reads(wire);
                let shown = self.clock_of(broker);
                // A broker that was restarted since may use the same name for another connection.
                if let Some(conn) = conn
                    && self.brokers[broker].wires.get(&conn) == Some(&wire)
                    && self.brokers[broker].wires.remove(&conn).is_some()
                    && let Some(connections) = &mut self.brokers[broker].connections
                {
                    self.oracle.fences.wire_gone(wire);
                    self.oracle.topics.wire_gone(wire);
                    self.oracle.zmq.wire_gone(now, wire);
                    connections.hang_up(shown, conn);
                    self.loses(wire);
                }
                self.pump_broker(broker);
            }
            Direction::ToPeer => {
                self.peer_reads(wire);
                let life = self.peers[peer].life;
                if self.peers[peer].wire == Some(wire) {
                    self.peers[peer].wire = None;
                    match &mut self.peers[peer].core {
                        Some(core) => core.handle_disconnected(now, "closed"),
                        None => {
                            if !self.zmq_parted(peer) && !self.job_worker_parted(peer) && self.stormy {
                                self.dial(peer, life, broker);
                            }
                        }
                    }
                    self.pump_peer(peer);
                } else {
                    self.draining_closed(wire);
                }
            }
        }
    }

    /// One end closes: the other learns of it after everything that was written before.
    pub(crate) fn close(&mut self, wire: usize, way: Direction) {
        let at = Mono::from_micros(self.now.as_micros() + 90_000);
        self.at(at, Happening::Closed { wire, way });
    }

    fn broker_reads(&mut self, wire: usize) {
        let (now, Wire { peer, broker, conn, .. }) = (self.now, &self.wires[wire]);
        let (peer, broker, Some(conn)) = (*peer, *broker, *conn) else { return };
        if self.brokers[broker].wires.get(&conn) != Some(&wire) {
            return;
        }
        let shown = self.clock_of(broker);
        let Some(connections) = &mut self.brokers[broker].connections else { return };
        if !connections.wants_reading(conn) {
            self.wires[wire].hold_up(now);
            return;
        }
        let bytes = self.wires[wire].read(Direction::ToBroker);
        if !bytes.is_empty() {
            self.oracle.fences.broker_reads(wire, &bytes);
            // A subscriber is judged only if no frame of a part is left unread because of another: so few are never too many.
            let part = if self.oracle.topics.is_listening(wire) { PART_BYTES } else { bytes.len() };
            for bytes in bytes.chunks(part) {
                if self.brokers[broker].hears(conn) {
                    self.oracle.topics.broker_reads(wire, bytes);
                    self.zmq_broker_reads(broker, wire, bytes);
                }
                let Some(connections) = &mut self.brokers[broker].connections else { return };
                // Fences are told of all frames at once: what the broker says is looked at when it has read them, too.
                let mut turn = connections.take(shown, conn, bytes);
                while turn == Turn::Cut {
                    turn = connections.go_on(shown, conn);
                }
            }
            self.pump_broker(broker);
            // The window has room again for what the peer could not write.
            if self.has_wire(peer, wire) {
                self.pump_peer(peer);
            }
        }
    }

    fn peer_reads(&mut self, wire: usize) {
        let (now, index) = (self.now, self.wires[wire].peer);
        let peer = &mut self.peers[index];
        if peer.wire != Some(wire) {
            return self.draining_reads(wire);
        }
        if peer.asleep_until > now {
            return;
        }
        match (&mut peer.core, &mut peer.actor) {
            (None, Actor::Zmq(_)) => self.zmq_reads(index, wire),
            (Some(core), actor) => {
                let bytes = self.wires[wire].read(Direction::ToPeer);
                if let Actor::Client(client) = actor {
                    client.overhear(index, &bytes, &self.oracle);
                }
                self.oracle.topics.peer_reads(wire, &bytes);
                core.handle_bytes(now, &bytes);
            }
            (None, Actor::JobWorker(job_worker)) => job_worker.hear(now, &self.wires[wire].read(Direction::ToPeer)),
            (None, Actor::Liar(liar)) => liar.hear(&self.wires[wire].read(Direction::ToPeer), &mut self.rng),
            (None, Actor::Rogue(rogue)) if rogue.misbehaviour != Misbehaviour::Deaf => {
                let bytes = self.wires[wire].read(Direction::ToPeer);
                let life = self.wires[wire].life;
                rogue.hear(&bytes, life, &mut self.oracle, &mut self.rng);
            }
            _ => return,
        }
        self.pump_peer(index);
        self.listener_read(index, wire);
        self.read_on(wire);
    }

    /// There is room on the wire again for what the broker could not write.
    pub(crate) fn read_on(&mut self, wire: usize) {
        let Wire { broker, conn, .. } = &self.wires[wire];
        let (broker, conn) = (*broker, *conn);
        if let (Some(conn), Some(connections)) = (conn, &mut self.brokers[broker].connections)
            && !connections.unwritten(conn).is_empty()
        {
            connections.mark_dirty(conn);
            self.pump_broker(broker);
        }
    }

    pub(crate) fn peer_wakes(&mut self, index: usize) {
        let now = self.now;
        let peer = &mut self.peers[index];
        if peer.wakes != Some(now) {
            return;
        }
        peer.wakes = None;
        if peer.asleep_until > now {
            let until = peer.asleep_until;
            peer.wakes = Some(until);
            return self.at(until, Happening::PeerWakes { peer: index });
        }
        if let Some(core) = &mut peer.core {
            core.handle_timeout(now);
        }
        if let Some(job_worker) = self.job_worker_mut(index) {
            job_worker.worker().handle_timeout(now);
        }
        self.draining_wake(index);
        self.zmq_wakes(index);
        let peer = &mut self.peers[index];
        match peer.wire {
            Some(wire) if self.wires[wire].has_unread(Direction::ToPeer) => self.peer_reads(wire),
            _ => self.pump_peer(index),
        }
    }

    pub(crate) fn broker_wakes(&mut self, index: usize, run: u64) {
        let (now, shown) = (self.now, self.clock_of(index));
        let broker = &mut self.brokers[index];
        if broker.run != run || broker.wakes != Some(now) {
            return;
        }
        broker.wakes = None;
        if let Some(connections) = &mut broker.connections {
            connections.handle(shown, Input::Tick);
            self.pump_broker(index);
        }
    }

    pub(crate) fn sweep(&mut self, index: usize, run: u64) {
        let (now, shown) = (self.now, self.clock_of(index));
        let broker = &mut self.brokers[index];
        if broker.run != run {
            return;
        }
        if let Some(connections) = &mut broker.connections {
            for (conn, wire) in &broker.wires {
                let inward = match self.wires[*wire].dialler {
                    Some(dialler) if dialler.conn == *conn && dialler.broker == index => Direction::ToPeer,
                    _ => Direction::ToBroker,
                };
                // Of one with a ZeroMQ socket too much may have no outcome yet; in the calm all of it has.
                let may_wait = self.peers.get(self.wires[*wire].peer).is_some_and(|peer| peer.is_zmq());
                let ignored =
                    self.wires[*wire].has_unread(inward) && connections.unwritten(*conn).is_empty() && !may_wait;
                assert!(!ignored, "I21: wire {wire} is not read from though nothing waits for its peer");
            }
            connections.sweep(shown);
            self.at(now.plus_millis(100), Happening::Sweep { broker: index, run });
            self.pump_broker(index);
            self.oracle.fences.looks_round(now, index);
            self.judge_lost_links(index);
        }
    }

    pub(crate) fn act(&mut self, index: usize, life: u64) {
        if self.peers[index].life != life || self.ghost_acts(index, life) || self.boss_acts(index, life) || !self.stormy
        {
            return;
        }
        let now = self.now;
        let next = Mono::from_micros(now.as_micros() + self.rng.range(1_000, 120_000));
        self.at(next, Happening::Act { peer: index, life });
        self.listener_acts(index);
        self.zmq_acts(index);
        if self.oracle.zmq.on && self.rng.once_in(8) {
            return self.client_sends(index);
        }
        let peer = &mut self.peers[index];
        if let (Some(core), Actor::Client(client)) = (&mut peer.core, &mut peer.actor)
            && peer.asleep_until <= now
        {
            let (number, oracle, rng) = (&mut self.number, &mut self.oracle, &mut self.rng);
            // The last one is for sends only.
            let queues = &self.queues[..self.queues.len() - usize::from(self.zmq.sends.is_some())];
            if let Some(ticket) = client.act(now, index, core, queues, number, oracle, rng) {
                self.cancel(index, ticket);
            }
            self.pump_peer(index);
        }
    }

    pub(crate) fn finish(&mut self, index: usize, life: u64, held: Held) {
        let (now, peer) = (self.now, &mut self.peers[index]);
        if peer.life != life {
            return;
        }
        if peer.asleep_until > now {
            let until = peer.asleep_until;
            return self.at(until, Happening::Finish { peer: index, life, held });
        }
        if let (Some(core), Actor::Worker(worker)) = (&mut peer.core, &mut peer.actor) {
            if let Some(wire) = peer.wire {
                self.oracle.drops.settled(now, wire, held);
            }
            worker.finish(core, held, &mut self.oracle);
            self.pump_peer(index);
        }
    }

    /// Everything that comes out of a peer: what it wants, what it heard, what it writes, when it wakes.
    pub(crate) fn pump_peer(&mut self, index: usize) {
        while let Some(event) = self.peers[index].core.as_mut().and_then(|core| core.poll_event()) {
            self.peer_event(index, &event);
        }
        self.pump_job_worker(index);
        self.pump_draining(index);
        if self.part_ways(index) {
            return self.pump_peer(index);
        }
        let now = self.now;
        let peer = &mut self.peers[index];
        match (&mut peer.core, &mut peer.actor) {
            (Some(core), actor) => {
                let before = peer.out.len();
                core.poll_transmit(now, &mut peer.out);
                if let Actor::Client(client) = actor {
                    client.writes(&peer.out[before..]);
                }
            }
            (None, Actor::Rogue(rogue)) => peer.out.append(&mut rogue.out),
            (None, Actor::Liar(liar)) => peer.out.append(&mut liar.out),
            (None, Actor::Zmq(zmq)) => peer.out.append(&mut zmq.out),
            _ => {}
        }
        self.write_out(index);
        let peer = &mut self.peers[index];
        let front = match (&peer.core, &peer.actor) {
            (None, Actor::JobWorker(job_worker)) => job_worker.next_deadline(),
            (None, Actor::Zmq(zmq)) => zmq.next_deadline(),
            (core, _) => core.as_ref().and_then(|core| core.next_deadline()),
        };
        if let Some(due) = [front, self.draining_deadline(index)].into_iter().flatten().min() {
            let (due, peer) = (due.max(now), &mut self.peers[index]);
            if peer.wakes.is_none_or(|wakes| due < wakes) {
                peer.wakes = Some(due);
                self.at(due, Happening::PeerWakes { peer: index });
            }
        }
    }

    /// Writes what the window takes.
    pub(crate) fn write_out(&mut self, index: usize) {
        let (now, peer) = (self.now, &mut self.peers[index]);
        if let Some(wire) = peer.wire
            && !peer.out.is_empty()
        {
            let out = std::mem::take(&mut peer.out);
            let (taken, pieces) = self.wires[wire].write(now, Direction::ToBroker, &out, &mut self.rng);
            self.peers[index].out = out[taken..].to_vec();
            for (at, piece) in pieces {
                self.at(at, Happening::Arrive { wire, way: Direction::ToBroker, piece });
            }
        }
    }

    /// Everything that comes out of a broker: what it writes, whom it closes, when it wakes. Then all its rooms
    /// must agree.
    pub(crate) fn pump_broker(&mut self, index: usize) {
        let now = self.now;
        self.keep(index);
        let Some(connections) = &mut self.brokers[index].connections else { return };
        let (dirty, gone) = (connections.take_dirty(), connections.take_gone());
        let mut unread = Vec::new();
        self.overhear(index, &dirty, &gone);
        self.zmq_overhear(index, &dirty);
        self.tap(index, &dirty, &gone);
        // A write makes room for more, also at other connections: nobody has overheard that yet, and it waits for its turn.
        let overheard = self.waiting_at(index, &dirty);
        for (conn, most) in overheard {
            // One that was given up has a last frame to read, but what it held is others' already.
            if let Some(wire) = self.brokers[index].given_up(conn) {
                self.judge_zmq_end(wire);
                self.loses(wire);
            }
            unread.extend(self.write_to(index, conn, most));
        }
        for conn in gone {
            if let Some(wire) = self.brokers[index].wires.remove(&conn) {
                self.oracle.topics.wire_gone(wire);
                self.oracle.zmq.wire_gone(now, wire);
                self.loses(wire);
                self.close(wire, self.way_out(index, conn, wire));
            }
        }
        self.dial_links(index);
        let broker = &mut self.brokers[index];
        let Some(connections) = &broker.connections else { return };
        if let (Some(drained), Some(until)) = (connections.drained(), broker.drains_until) {
            broker.drains_until = None;
            let running = connections.engine().in_flight();
            assert!(running == 0 || now >= until, "I21: a drain ended early, with {running} deliveries under way");
            assert_eq!(drained.cut, running, "I21: a drain tells how many deliveries it cut short");
            // Messages alone: right after the end a job worker may have been heard, whose tasks have ended.
            let stores = connections.engine().messages_wait_for_disk();
            assert!(!stores || now >= until, "I1: a drain ended early, with a message on its way to the disk");
        }
        if !self.blind {
            connections.sanity_check();
        }
        let run = broker.run;
        if let Some(due) = connections.next_deadline().map(|due| broker.clock.when(due).max(now))
            && broker.wakes.is_none_or(|wakes| due < wakes)
        {
            broker.wakes = Some(due);
            self.at(due, Happening::BrokerWakes { broker: index, run });
        }
        unread.extend(self.zmq_granted(index));
        for (wire, way) in unread {
            match way {
                _ if self.wires[wire].dialler.is_some() => self.link_reads(wire, way),
                _ => self.broker_reads(wire),
            }
        }
        // What is written to a PULL socket is done, and makes room for more; so does a worker that reads.
        self.keep(index);
        if self.brokers[index].connections.as_ref().is_some_and(Connections::has_dirty) {
            self.pump_broker(index);
        }
    }

    /// How many bytes wait for these connections.
    fn waiting_at(&self, index: usize, conns: &[ConnId]) -> Vec<(ConnId, usize)> {
        let connections = self.brokers[index].connections.as_ref();
        let waiting = |conn: ConnId| connections.map_or(0, |connections| connections.unwritten(conn).len());
        conns.iter().map(|conn| (*conn, waiting(*conn))).collect()
    }

    /// Writes what the window takes, of so many bytes at most; returns the wire if its bytes may be read again now, and which.
    fn write_to(&mut self, index: usize, conn: ConnId, most: usize) -> Option<(usize, Direction)> {
        let (now, shown) = (self.now, self.clock_of(index));
        let wire = *self.brokers[index].wires.get(&conn)?;
        let way = self.way_out(index, conn, wire);
        let connections = self.brokers[index].connections.as_mut()?;
        let unwritten = connections.unwritten(conn);
        let unwritten = &unwritten[..most.min(unwritten.len())];
        let (taken, pieces) = self.wires[wire].write(now, way, unwritten, &mut self.rng);
        if self.wires[wire].dialler.is_none() {
            self.oracle.topics.broker_writes(wire, &unwritten[..taken]);
        }
        connections.wrote(shown, conn, taken);
        self.zmq_wrote(index, wire, taken);
        self.oracle.fences.wrote(wire, taken);
        self.oracle.crossings.wrote(wire, way, taken);
        let connections = self.brokers[index].connections.as_mut()?;
        let readable = connections.wants_reading(conn) && self.wires[wire].has_unread(way.back());
        let said_all = connections.said_all(conn);
        for (at, piece) in pieces {
            self.at(at, Happening::Arrive { wire, way, piece });
        }
        if said_all {
            self.close(wire, way);
        }
        readable.then_some((wire, way.back()))
    }
}
