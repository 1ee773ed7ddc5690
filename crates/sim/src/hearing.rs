//! Events of a peer's core: connections, deliveries and state.

use turno_client::core::{CoreEvent, Handed};
use turno_proto::model::{Code, Cost};

use crate::body;
use crate::drops::{WorkerOutput, drop_after};
use crate::net::{Direction, Wire};
use crate::world::{Actor, Happening, World, broker_of};

/// A broker's frame is at a peer by then, if nothing holds up its connection.
const ON_ITS_WAY_MS: u64 = 100;

impl World {
    /// Passes the events of a peer's core to their addressees.
    pub(crate) fn peer_event(&mut self, index: usize, event: &CoreEvent) {
        let (now, life) = (self.now, self.peers[index].life);
        self.single_hears(index, event);
        match event {
            CoreEvent::Connect { address } => self.dial(index, life, broker_of(address)),
            CoreEvent::Disconnect { .. } => {
                if let Some(wire) = self.peers[index].wire.take() {
                    self.peers[index].out.clear();
                    self.close(wire, Direction::ToBroker);
                }
            }
            CoreEvent::Deliver(handed) => {
                self.trace.note(now, "handed", index as u64, handed.id.serial());
                let peer = &mut self.peers[index];
                let wire = peer.wire.expect("I4: work comes over a connection");
                let number = body::number(body::raw(&handed.payload));
                if handed.cost == Cost::Broadcast {
                    self.oracle.broadcasts.handed(number, Some(wire), handed.wants_reply);
                } else if let Some(number) = number {
                    let (post, times) = (self.post(wire), self.oracle.work_of(number));
                    let source = self.oracle.crossings.source_of(handed.id, handed.attempt, handed.held.delivery());
                    let is_far = source.is_some_and(|source| !source.local);
                    self.oracle.drops.handed(now, post, number, (handed, is_far), times);
                }
                self.judge_holders(wire, handed);
                self.judge_pulled(index, wire, number);
                self.judge_time(index, wire, handed);
                let source = self.oracle.crossings.source_of(handed.id, handed.attempt, handed.held.delivery());
                let link = source.and_then(|source| source.link).filter(|_| handed.cost != Cost::Broadcast);
                let peer = &mut self.peers[index];
                if let Actor::Worker(worker) = &mut peer.actor {
                    let (queues, broker_life) = (&self.queues, self.wires[wire].life);
                    let origin = (broker_life, link);
                    let done = worker.take(now, handed, origin, queues, &mut self.oracle, &mut self.rng);
                    let held = handed.held;
                    let dies = worker.dies_of_it(now, &mut self.rng);
                    if let Some(at) = done {
                        self.at(at, Happening::Finish { peer: index, life, held });
                    }
                    if let Some(at) = dies {
                        self.at(at, Happening::Crashes { peer: index, life });
                    }
                }
            }
            event if matches!(self.peers[index].actor, Actor::Submitter(_)) => self.boss_hears(index, event),
            event if self.is_listener(index) => self.listener_hears(index, event),
            event if matches!(self.peers[index].actor, Actor::Client(_)) => {
                self.client_event(index, self.peers[index].wire, event);
            }
            event => {
                if let Some(wire) = self.peers[index].wire {
                    self.worker_event(index, wire, event);
                }
                let peer = &mut self.peers[index];
                if let (Actor::Worker(worker), Some(core)) = (&mut peer.actor, &mut peer.core) {
                    match event {
                        CoreEvent::Registered => worker.set_registered(true),
                        CoreEvent::Lost { .. } => worker.set_registered(false),
                        _ => worker.stop(core, event),
                    }
                }
            }
        }
    }

    /// A send is at one worker at a time: of all that got it as this attempt, the broker serves at most one (I2). Over links
    /// the worker may be served by a broker that has given it up.
    fn judge_holders(&mut self, wire: usize, handed: &Handed) {
        if handed.wants_reply || handed.cost == Cost::Broadcast || self.oracle.crossings.on {
            return;
        }
        let holders = self.oracle.letters.holders(handed.id, self.wires[wire].life, handed.attempt, wire);
        let served = holders.iter().filter(|wire| self.is_served(**wire)).count();
        assert!(served <= 1, "I2: {} is at {served} workers as attempt {}", handed.id, handed.attempt);
    }

    /// A message that was written to a PULL socket is given to nobody else (I2).
    fn judge_pulled(&self, index: usize, wire: usize, number: Option<u64>) {
        let woke_ms = self.now.millis_since(self.peers[index].asleep_until);
        let pulled = number.and_then(|number| self.oracle.zmq.pulled_at(number, self.wires[wire].life));
        let is_prompt = self.wires[wire].was_never_held_up() && woke_ms > ON_ITS_WAY_MS;
        if let Some(pulled) = pulled.filter(|_| is_prompt && self.zmq.broker == Some(self.wires[wire].broker)) {
            let since_ms = self.now.millis_since(pulled);
            assert!(since_ms <= ON_ITS_WAY_MS, "I2: {number:?} was written to a PULL socket {since_ms} ms ago");
        }
    }

    /// A delivery was not expired when it went out. Over links its owner knows when its time is over, and others hear of
    /// that later.
    fn judge_time(&self, index: usize, wire: usize, handed: &Handed) {
        let woke_ms = self.now.millis_since(self.peers[index].asleep_until);
        let is_prompt = self.wires[wire].was_never_held_up() && woke_ms > ON_ITS_WAY_MS;
        if !self.oracle.crossings.on && handed.cost != Cost::Broadcast {
            self.oracle.letters.judge_delay(&self.oracle.clocks, handed.id);
        }
        if is_prompt && !self.oracle.crossings.on {
            self.oracle.letters.judge_time(&self.oracle.clocks, handed.id, self.wires[wire].life, ON_ITS_WAY_MS);
        }
    }

    /// Whether a broker goes on with that connection.
    fn is_served(&self, wire: usize) -> bool {
        let Wire { broker, conn, .. } = &self.wires[wire];
        let broker = &self.brokers[*broker];
        conn.is_some_and(|conn| {
            broker.wires.get(&conn) == Some(&wire)
                && broker.connections.as_ref().is_some_and(|connections| connections.serves(conn))
        })
    }

    /// Handles an event about the worker itself.
    fn worker_event(&mut self, index: usize, wire: usize, event: &CoreEvent) {
        let (now, post) = (self.now, self.post(wire));
        match event {
            CoreEvent::CancelDelivery { held, reason } => {
                self.trace.note(now, "told to stop", index as u64, *reason as u64);
                if let Actor::Worker(worker) = &self.peers[index].actor
                    && let Some(number) = worker.number_of(*held)
                {
                    self.oracle.stopped(number, *reason);
                }
                self.oracle.drops.stopped(now, post, *held, *reason);
            }
            CoreEvent::Dropped { queue, reason: Code::Dropped, .. } => {
                self.trace.note(now, "dropped", index as u64, wire as u64);
                self.oracle.drops.dropped(now, post, queue);
            }
            // It lost its own queue to one at another broker.
            CoreEvent::Dropped { queue, .. } => self.oracle.drops.lost(wire, queue),
            CoreEvent::Returned { queue } if self.oracle.drops.is_away(wire, queue) => {
                self.oracle.drops.returned(wire, queue)
            }
            // One that wants a queue to itself is told that it has it.
            CoreEvent::Active { queue, .. } if self.oracle.drops.is_away(wire, queue) => {
                self.oracle.drops.returned(wire, queue);
            }
            // It had lost it to one at another broker, if it had it before.
            CoreEvent::Active { queue, .. } | CoreEvent::StandingBy { queue }
                if !self.oracle.drops.is_away(wire, queue) =>
            {
                self.oracle.drops.lost(wire, queue);
            }
            _ => {}
        }
    }

    fn post(&self, wire: usize) -> WorkerOutput {
        let Wire { broker, life, .. } = &self.wires[wire];
        let flawless = self.wires[wire].was_never_held_up();
        WorkerOutput { wire, after: drop_after(*broker, *life), flawless, lease_ms: self.habits.lease_ms }
    }
}
