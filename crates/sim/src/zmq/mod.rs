//! ZeroMQ peers: in every third world one broker has endpoints for them, and they share its queues and topics with everyone
//! else. They dial, die, sleep and are cut off as other peers are.

mod asker;
mod calm;
mod kind;
mod ledger;
mod peer;
mod plan;
mod tap;
mod worker;

use turno_broker::connections::{Connections, ListenerKind};
use turno_proto::model::limits::{PRIORITY, SEND_RETRIES};
use turno_proto::model::{ConnId, Mono, QueueName};

pub(crate) use self::ledger::{Fact, Ledger};
pub(crate) use self::peer::ZmqPeer;
use self::peer::{PeerNews, Role};
pub(crate) use self::plan::Zmq;
use crate::body;
use crate::listener::{PREFIXES, TOPICS};
use crate::net::{Direction, Wire};
use crate::oracle::{Oracle, Question};
use crate::world::{Actor, Happening, World};

/// Bytes that a peer lets wait before it makes more.
const OUT_MAX: usize = 4_096;
/// A peer that sleeps for less than this is not missed. Longer than the heartbeat allows.
const AWAKE_MS: u64 = 6_000;
/// A broker works on a request of a ZeroMQ peer for so long.
const REQUEST_MS: u64 = 30_000;

impl Oracle {
    /// Facts that were read from a connection of a ZeroMQ peer.
    fn zmq_facts(&mut self, (broker, wire): (usize, usize), facts: Vec<Fact>) {
        for fact in facts {
            match fact {
                Fact::Handed { number } => self.handed_to_zmq(number),
                Fact::Done { number } => self.letters.done_number(number),
                Fact::Answered { number } => self.answered_to_zmq(number),
                // The ledger keeps it.
                Fact::Pushed { .. } => {}
                Fact::Published { number, topic } => self.topics.publishes_at(broker, number, &topic),
                Fact::Subscribes { filter } => self.topics.subscribes(wire, filter),
                Fact::Unsubscribes { filter } => self.topics.unsubscribes(wire, &filter),
                Fact::Event { number, topic } => self.topics.says_event(wire, number, &topic),
            }
        }
    }
}

/// Connections.
impl World {
    pub(crate) fn zmq_mut(&mut self, index: usize) -> Option<&mut ZmqPeer> {
        match &mut self.peers[index].actor {
            Actor::Zmq(peer) => Some(peer),
            _ => None,
        }
    }

    /// The endpoint that a peer comes to.
    pub(crate) fn zmq_listener(&self, index: usize) -> Option<ListenerKind> {
        match &self.peers[index].actor {
            Actor::Zmq(peer) => Some(ListenerKind::Zmq(peer.place)),
            _ => None,
        }
    }

    /// It speaks a version of its protocol without signs of life.
    pub(crate) fn is_old_zmq(&self, index: usize) -> bool {
        matches!(self.peers.get(index).map(|peer| &peer.actor), Some(Actor::Zmq(peer)) if peer.is_old())
    }

    pub(crate) fn zmq_connected(&mut self, index: usize, wire: usize) {
        let (now, Wire { broker, life, .. }) = (self.now, &self.wires[wire]);
        let Actor::Zmq(peer) = &mut self.peers[index].actor else { return };
        peer.connected(now);
        let endpoint = &self.zmq.endpoints[usize::from(peer.place)];
        self.oracle.zmq.connected(wire, (index, peer.kind), (*broker, *life), endpoint);
        if let Role::Subscribes { .. } = peer.role {
            self.oracle.topics.listen_silently(wire, *broker);
        }
    }

    /// The connection of a peer is gone: it dials again after a while. False if it is another kind of peer.
    pub(crate) fn zmq_parted(&mut self, index: usize) -> bool {
        let Some(peer) = self.zmq_mut(index) else { return false };
        peer.parted();
        let wait_ms = if self.rng.once_in(6) { self.rng.range(100, 2_000) } else { self.rng.range(1, 100) };
        let (life, broker) = (self.peers[index].life, self.zmq.broker.expect("peers know their broker"));
        let at = self.now.plus_millis(wait_ms);
        self.at(at, Happening::Dialled { peer: index, life, broker });
        true
    }

    /// A peer ends its connection, and makes another.
    fn zmq_reconnects(&mut self, index: usize) {
        if let Some(wire) = self.peers[index].wire.take() {
            self.trace.note(self.now, "reconnects", index as u64, wire as u64);
            self.peers[index].out.clear();
            self.close(wire, Direction::ToBroker);
            self.zmq_parted(index);
        }
    }

    /// Time passed for a peer.
    pub(crate) fn zmq_wakes(&mut self, index: usize) {
        let now = self.now;
        if let Some(peer) = self.zmq_mut(index)
            && peer.handle_timeout(now).is_err()
        {
            self.zmq_reconnects(index);
        }
    }

    /// A peer reads what came over that wire.
    pub(crate) fn zmq_reads(&mut self, index: usize, wire: usize) {
        let (now, bytes) = (self.now, self.wires[wire].read(Direction::ToPeer));
        let told = self.zmq_mut(index).map(|peer| peer.hear(now, &bytes)).unwrap_or_default();
        for told in told {
            self.zmq_hears(index, told);
        }
    }

    fn zmq_hears(&mut self, index: usize, told: PeerNews) {
        let now = self.now;
        let peer = &mut self.peers[index];
        let (life, queues, Actor::Zmq(zmq)) = (peer.life, &peer.queues, &mut peer.actor) else { return };
        let parts = match told {
            PeerNews::Opened => return zmq.opened(now, queues.first().map(QueueName::as_str).unwrap_or_default()),
            PeerNews::Message(parts) => parts,
        };
        let begins = match &mut zmq.role {
            Role::Asks(asker) => {
                asker.hear(&parts);
                None
            }
            Role::Works(worker) => worker.hear(now, &parts, &mut self.rng),
            Role::Pushes | Role::Pulls | Role::Publishes { .. } | Role::Subscribes { .. } => None,
        };
        if let Some((key, at)) = begins {
            self.at(at, Happening::ZmqFinish { peer: index, life, key });
        }
    }

    pub(crate) fn zmq_finishes(&mut self, index: usize, life: u64, key: u64) {
        let (now, peer) = (self.now, &mut self.peers[index]);
        if peer.life != life {
            return;
        }
        if peer.asleep_until > now {
            let until = peer.asleep_until;
            return self.at(until, Happening::ZmqFinish { peer: index, life, key });
        }
        let Actor::Zmq(zmq) = &mut peer.actor else { return };
        let Role::Works(worker) = &mut zmq.role else { return };
        let (says, next) = worker.finish(now, key, &mut self.rng);
        says.iter().for_each(|frames| zmq.send(frames));
        if let Some((key, at)) = next {
            self.at(at, Happening::ZmqFinish { peer: index, life, key });
        }
        self.pump_peer(index);
    }
}

/// Their actions.
impl World {
    pub(crate) fn zmq_acts(&mut self, index: usize) {
        let (now, peer) = (self.now, &mut self.peers[index]);
        let Actor::Zmq(zmq) = &mut peer.actor else { return };
        if peer.asleep_until > now || !zmq.is_open() || peer.out.len() > OUT_MAX {
            return;
        }
        if self.rng.once_in(100) {
            return self.zmq_reconnects(index);
        }
        if self.rng.once_in(60) {
            let until = now.plus_millis(self.rng.range(50, 1_500));
            return self.sleeps(index, until);
        }
        let count = match &mut zmq.role {
            Role::Asks(asker) => match asker.wants(now, &mut self.rng) {
                Some(count) => count,
                None => return self.zmq_reconnects(index),
            },
            Role::Pushes => self.rng.range(1, 10),
            Role::Publishes { .. } => self.rng.range(1, 4),
            Role::Subscribes { .. } => {
                zmq.change_subscriptions(&PREFIXES, &mut self.rng);
                0
            }
            Role::Works(_) | Role::Pulls => return,
        };
        self.zmq_makes(index, count);
    }

    /// So many requests, sends or publications.
    fn zmq_makes(&mut self, index: usize, count: u64) {
        for _ in 0..count {
            self.number += 1;
            self.zmq_makes_one(index, self.number);
        }
        self.pump_peer(index);
    }

    fn zmq_makes_one(&mut self, index: usize, number: u64) {
        let now = self.now;
        let service = self.zmq.services[self.rng.index(self.zmq.services.len())].clone();
        let peer = &mut self.peers[index];
        let (Some(wire), Actor::Zmq(zmq)) = (peer.wire, &mut peer.actor) else { return };
        let endpoint = &self.zmq.endpoints[usize::from(zmq.place)];
        let plain = Question { client: index, priority: PRIORITY, unheard: true, ..Question::default() };
        match &mut zmq.role {
            Role::Asks(asker) => {
                let (timeout_ms, work_ms, retries) = (REQUEST_MS, REQUEST_MS, u64::from(endpoint.retries));
                self.oracle.asks(now, number, Question { timeout_ms, work_ms, retries, ..plain });
                let (frames, asking) = asker.ask(now, number, service.as_str(), &mut self.rng);
                self.oracle.zmq.asks(wire, number, asking);
                zmq.send(&frames);
            }
            Role::Pushes => {
                self.oracle.asks(now, number, Question { send: true, retries: u64::from(SEND_RETRIES), ..plain });
                zmq.send(&body::parts_of(number));
            }
            Role::Publishes { wanted: true } => {
                let topics = TOPICS.iter().filter_map(|topic| topic.strip_prefix(endpoint.topic.as_str()));
                let topics: Vec<&str> = topics.collect();
                let topic = topics[self.rng.index(topics.len())];
                let whole = format!("{}{topic}", endpoint.topic);
                self.oracle.topics.publishes(number, whole.parse().expect("a topic"));
                let frames = [topic.into()].into_iter().chain(body::parts_of(number));
                zmq.send(&frames.collect::<Vec<_>>());
            }
            Role::Publishes { .. } | Role::Works(_) | Role::Pulls | Role::Subscribes { .. } => {}
        }
    }

    /// A native client sends something to the queue of PUSH and PULL sockets.
    pub(crate) fn client_sends(&mut self, index: usize) {
        let (now, Some(queue)) = (self.now, &self.zmq.sends) else { return };
        let peer = &mut self.peers[index];
        if let (Some(core), Actor::Client(client)) = (&mut peer.core, &mut peer.actor) {
            self.number += 1;
            client.send_plainly(now, index, core, queue, self.number, &mut self.oracle);
            self.pump_peer(index);
        }
    }
}

/// Traffic of connections, for the oracle.
impl World {
    pub(crate) fn zmq_broker_reads(&mut self, broker: usize, wire: usize, bytes: &[u8]) {
        let facts = self.oracle.zmq.broker_reads(self.now, wire, bytes);
        self.oracle.zmq_facts((broker, wire), facts);
    }

    /// A broker is about to write to these connections.
    pub(crate) fn zmq_overhear(&mut self, index: usize, dirty: &[ConnId]) {
        if self.zmq.broker != Some(index) {
            return;
        }
        for conn in dirty {
            let Some(wire) = self.brokers[index].wires.get(conn).copied() else { continue };
            if let Some(connections) = &self.brokers[index].connections {
                let facts = self.oracle.zmq.broker_says(self.now, wire, connections.unwritten(*conn));
                self.oracle.zmq_facts((index, wire), facts);
            }
        }
    }

    pub(crate) fn zmq_wrote(&mut self, broker: usize, wire: usize, bytes: usize) {
        let facts = self.oracle.zmq.wrote(self.now, wire, bytes);
        self.oracle.zmq_facts((broker, wire), facts);
    }

    /// Connections that a broker reads from again.
    pub(crate) fn zmq_granted(&mut self, index: usize) -> Vec<(usize, Direction)> {
        let broker = &mut self.brokers[index];
        let granted = broker.connections.as_mut().map(Connections::take_granted).unwrap_or_default();
        let wires = granted.iter().filter_map(|conn| broker.wires.get(conn).copied());
        wires
            .filter(|wire| self.wires[*wire].has_unread(Direction::ToBroker))
            .map(|wire| (wire, Direction::ToBroker))
            .collect()
    }

    /// A broker ends a connection. Of one that only asks, sends or publishes, reads what it is told and is alive, it has no reason
    /// to (I21).
    pub(crate) fn judge_zmq_end(&self, wire: usize) {
        let index = self.wires[wire].peer;
        let Some(peer) = self.peers.get(index) else { return };
        let Actor::Zmq(zmq) = &peer.actor else { return };
        let harmless = matches!(zmq.role, Role::Asks(_) | Role::Pushes | Role::Publishes { .. });
        let awake = peer.asleep_until.plus_millis(AWAKE_MS) < self.now || peer.asleep_until == Mono::ZERO;
        let alive = peer.wire == Some(wire) && self.wires[wire].is_sound() && zmq.is_open() && awake;
        assert!(!harmless || !alive, "I21: wire {wire} of {:?} is closed, and its peer is alive", zmq.kind);
    }
}
