//! Clients that leave a broker which closes: the next one is dialled at once, what the old one has ends there (S2.18).
//!
//! A request that the broker has and never speaks of again was lost by it. Seen from outside: the client gave up on it
//! by its own clock, though nothing was ever held up on the way, and nothing is on the way now.

use turno_client::core::{Core, CoreEvent, Ticket};
use turno_proto::model::{Code, Mono};

use crate::client::overhear;
use crate::net::Direction;
use crate::world::{Actor, Happening, World};

/// How long after a call's deadline the client's core gives up on the broker.
const GUARD_MS: u64 = 1_000;

/// A connection that only waits for the calls which a closing broker has.
#[derive(Debug)]
pub(crate) struct DrainingConnection {
    core: Core,
    pub(crate) wire: usize,
    out: Vec<u8>,
    /// The beginning of a frame that has not arrived as a whole.
    partial: Vec<u8>,
}

impl World {
    /// The client leaves its broker behind, if that closes and has calls of it. False: nothing changed.
    pub(crate) fn part_ways(&mut self, index: usize) -> bool {
        let now = self.now;
        let peer = &mut self.peers[index];
        let (Some(front), Actor::Client(client)) = (&mut peer.core, &mut peer.actor) else { return false };
        let Some(core) = front.leave_behind(now) else { return false };
        let wire = peer.wire.take().expect("S2.18: calls are written on a connection");
        let (out, partial) = (std::mem::take(&mut peer.out), client.take_partial());
        self.trace.note(now, "left behind", index as u64, wire as u64);
        peer.draining.push(DrainingConnection { core, wire, out, partial });
        true
    }

    fn draining_at(&self, wire: usize) -> Option<usize> {
        self.peers[self.wires[wire].peer].draining.iter().position(|draining| draining.wire == wire)
    }

    /// The peer talks over this wire, in front or behind.
    pub(crate) fn has_wire(&self, index: usize, wire: usize) -> bool {
        self.peers[index].wire == Some(wire) || self.draining_at(wire).is_some()
    }

    /// Reads a connection left behind, if it is one.
    pub(crate) fn draining_reads(&mut self, wire: usize) {
        let (now, index) = (self.now, self.wires[wire].peer);
        let Some(at) = self.draining_at(wire) else { return };
        let bytes = self.wires[wire].read(Direction::ToPeer);
        let draining = &mut self.peers[index].draining[at];
        overhear(&mut draining.partial, index, &bytes, &self.oracle);
        draining.core.handle_bytes(now, &bytes);
        self.pump_peer(index);
        self.read_on(wire);
    }

    pub(crate) fn draining_closed(&mut self, wire: usize) {
        let (now, index) = (self.now, self.wires[wire].peer);
        if let Some(at) = self.draining_at(wire) {
            self.peers[index].draining[at].core.handle_disconnected(now, "closed");
            self.pump_peer(index);
        }
    }

    pub(crate) fn draining_wake(&mut self, index: usize) {
        let now = self.now;
        for draining in &mut self.peers[index].draining {
            if draining.core.next_deadline().is_some_and(|due| due <= now) {
                draining.core.handle_timeout(now);
            }
        }
    }

    /// The ticket may be one of theirs.
    pub(crate) fn cancel(&mut self, index: usize, ticket: Ticket) {
        let peer = &mut self.peers[index];
        let draining = peer.draining.iter_mut().map(|draining| &mut draining.core);
        peer.core.iter_mut().chain(draining).for_each(|core| core.cancel(ticket));
    }

    pub(crate) fn draining_deadline(&self, index: usize) -> Option<Mono> {
        self.peers[index].draining.iter().filter_map(|draining| draining.core.next_deadline()).min()
    }

    /// Everything that comes out of the connections left behind; what their brokers gave back goes to the front.
    pub(crate) fn pump_draining(&mut self, index: usize) {
        let now = self.now;
        for at in 0..self.peers[index].draining.len() {
            loop {
                let DrainingConnection { core, wire, out, .. } = &mut self.peers[index].draining[at];
                let wire = *wire;
                core.poll_transmit(now, out);
                let bytes = std::mem::take(out);
                let (taken, pieces) = self.wires[wire].write(now, Direction::ToBroker, &bytes, &mut self.rng);
                for (at, piece) in pieces {
                    self.at(at, Happening::Arrive { wire, way: Direction::ToBroker, piece });
                }
                let peer = &mut self.peers[index];
                let draining = &mut peer.draining[at];
                draining.out = bytes[taken..].to_vec();
                for returned in draining.core.take_returned() {
                    self.trace.note(now, "given back", index as u64, returned.ticket.0);
                    if let Actor::Client(client) = &mut peer.actor {
                        client.asking.gave_back();
                    }
                    if let Some(front) = &mut peer.core {
                        front.adopt(returned);
                    }
                }
                let Some(event) = peer.draining[at].core.poll_event() else { break };
                if matches!(event, CoreEvent::Disconnect { .. }) {
                    self.close(wire, Direction::ToBroker);
                }
                self.client_event(index, Some(wire), &event);
            }
        }
        self.peers[index].draining.retain(|draining| !draining.core.closed());
    }

    /// The process is gone, and all its connections with it.
    pub(crate) fn drop_draining(&mut self, index: usize, quietly: bool) {
        for draining in std::mem::take(&mut self.peers[index].draining) {
            if quietly {
                self.wires[draining.wire].open_hole(Direction::ToPeer);
                self.wires[draining.wire].open_hole(Direction::ToBroker);
            } else {
                self.close(draining.wire, Direction::ToBroker);
            }
        }
    }

    /// A client hears of something over that wire.
    pub(crate) fn client_event(&mut self, index: usize, wire: Option<usize>, event: &CoreEvent) {
        let now = self.now;
        if let (CoreEvent::Failed { ticket, code: Code::TimedOut, .. }, Some(wire)) = (event, wire) {
            self.judge_silence(wire, ticket.0);
        }
        if let Actor::Client(client) = &mut self.peers[index].actor {
            client.hear(now, index, event, &mut self.oracle);
        }
    }

    /// The client has given up on a broker: had it reason to?
    fn judge_silence(&self, wire: usize, number: u64) {
        let Some((asked_at, deadline)) = self.oracle.times_of(number) else { return };
        if self.now < deadline.plus_millis(GUARD_MS) || !self.wires[wire].is_flawless_since(asked_at) {
            return;
        }
        let broker = &self.brokers[self.wires[wire].broker];
        let Some(conn) = self.wires[wire].conn.filter(|conn| broker.wires.get(conn) == Some(&wire)) else { return };
        let said_all = broker.connections.as_ref().is_some_and(|connections| connections.unwritten(conn).is_empty());
        assert!(!said_all, "I13, S2.17: the broker got {number} and never said what became of it");
    }
}
