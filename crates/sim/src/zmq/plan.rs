//! The endpoints of a broker, and the peers that connect to them.

use std::collections::BTreeMap;

use turno_broker::connections::{Connections, Nonces, ZmqLimits};
use turno_broker::{ZmqAccess, ZmqEndpoint, ZmqEndpoints, ZmqRole};
use turno_proto::model::QueueName;
use turno_proto::zmtp::{OwnSocketType, Security, Version as Zmtp, ZmtpSettings};

use super::kind::{Kind, Version};
use super::peer::ZmqPeer;
use crate::body;
use crate::rng::Rng;
use crate::worker::Worker;
use crate::world::{Actor, World};

/// There are ZeroMQ peers in every third world.
const EVERY: u64 = 3;
/// Time between two heartbeats of a broker.
const PING_MS: u32 = 1_000;
const USER: &str = "user";
const PASSWORD: &str = "password";

/// The endpoints, by their place in the table.
const CLIENTS: usize = 0;
const WORKERS: usize = 1;
const SENDS: usize = 2;

/// ZeroMQ in a world.
#[derive(Debug, Default)]
pub(crate) struct Zmq {
    /// The broker that has endpoints.
    pub(crate) broker: Option<usize>,
    pub(crate) endpoints: Vec<ZmqEndpoint>,
    /// The queue of PUSH and PULL sockets. Native clients only send to it: a PULL socket answers nothing.
    pub(crate) sends: Option<QueueName>,
    /// The queues that clients of Majordomo name.
    pub(crate) services: Vec<QueueName>,
    limits: ZmqLimits,
    message_bytes_max: usize,
}

impl World {
    /// Before brokers start: which of so many has endpoints.
    pub(crate) fn plan_zmq(&mut self, seed: u64, brokers: usize) {
        if !seed.is_multiple_of(EVERY) {
            return;
        }
        let mut rng = Rng::new(seed.rotate_left(32));
        let rng = &mut rng;
        let sends: QueueName = "zmq.sends".parse().expect("a name");
        let services = self.queues.clone();
        let access = match rng.once_in(3) {
            true => ZmqAccess::Plain(BTreeMap::from([(USER.to_owned(), PASSWORD.to_owned())])),
            false => ZmqAccess::Null,
        };
        let queues = [rng.index(services.len()), rng.index(services.len())].map(|at| services[at].clone());
        let queues = [queues[0].clone(), queues[1].clone(), sends.clone()];
        let endpoint = |place: usize, rng: &mut Rng| {
            let listen = "127.0.0.1:1".parse().expect("an address");
            let mut endpoint = ZmqEndpoint::new(listen, queues[place].clone());
            endpoint.name = format!("zmq-{place}");
            if place == WORKERS {
                (endpoint.role, endpoint.topic) = (ZmqRole::Worker, "t.".to_owned());
            }
            endpoint.slots = (!rng.once_in(3)).then(|| u32::try_from(rng.range(1, 5)).expect("small"));
            endpoint.retries = u8::try_from(rng.range(0, 3)).expect("small");
            endpoint.error_frame = rng.once_in(2).then(|| "ERROR".to_owned());
            endpoint.access = access.clone();
            endpoint
        };
        self.zmq = Zmq {
            broker: Some(rng.index(brokers)),
            endpoints: (0..queues.len()).map(|place| endpoint(place, rng)).collect(),
            sends: Some(sends),
            services,
            limits: ZmqLimits { calls: rng.index(12) + 2, unstored: rng.index(12) + 2 },
            message_bytes_max: 1 << 20,
        };
        self.number = body::PARTS;
        self.oracle.zmq.on = true;
        self.oracle.zmq.lease_ms = self.habits.lease_ms;
        self.oracle.zmq.linked = !self.links.is_empty();
    }

    /// A broker begins a life, with its endpoints.
    pub(crate) fn open_endpoints(&self, index: usize, connections: &mut Connections) {
        let Zmq { broker, endpoints, limits, message_bytes_max, .. } = &self.zmq;
        if *broker == Some(index) {
            connections.set_zmq(ZmqEndpoints::new(endpoints, *message_bytes_max, PING_MS), Nonces::Seeded(1));
            connections.set_zmq_limits(*limits);
        }
    }

    /// Those who come to the endpoints: some that ask, some that work, and some others.
    pub(crate) fn add_zmq(&mut self) {
        let Some(sends) = self.zmq.sends.clone() else { return };
        self.queues.push(sends.clone());
        for _ in 0..self.rng.range(1, 3) {
            let (kind, place) = self.some_asker();
            self.add_zmq_peer(kind, place);
        }
        for _ in 0..self.rng.range(1, 3) {
            let (kind, place) = self.some_worker();
            self.add_zmq_peer(kind, place);
        }
        if self.rng.once_in(2) {
            self.add_zmq_peer(Kind::Push, SENDS);
        }
        for _ in 0..self.rng.range(0, 3) {
            self.add_zmq_peer(Kind::Pull, SENDS);
        }
        if self.rng.once_in(2) {
            let (slots, good) = (2, self.rng.once_in(2));
            self.add_peer(Actor::Worker(Worker::new(slots, good)), slots, vec![sends], None);
        }
        // Over links events come from other brokers, which the ledger of one broker does not know.
        if self.links.is_empty() && self.rng.once_in(2) {
            let (place, extended) = (self.rng.index(SENDS), self.rng.once_in(3));
            self.add_zmq_peer(Kind::Pub { extended }, place);
            for _ in 0..self.rng.range(1, 3) {
                let (place, extended) = (self.rng.index(SENDS), self.rng.once_in(3));
                self.add_zmq_peer(Kind::Sub { extended }, place);
            }
        }
    }

    fn some_version(&mut self) -> Version {
        if self.rng.once_in(2) { Version::One } else { Version::Two }
    }

    fn some_asker(&mut self) -> (Kind, usize) {
        let kind = match self.rng.range(0, 5) {
            0 => Kind::Req { relaxed: false },
            1 => Kind::Req { relaxed: true },
            2..=3 => Kind::Dealer,
            _ => Kind::MdpClient { version: self.some_version(), is_req: self.rng.once_in(2) },
        };
        (kind, CLIENTS)
    }

    fn some_worker(&mut self) -> (Kind, usize) {
        match self.rng.range(0, 5) {
            0..=1 => (Kind::Rep, self.rng.index(2)),
            2 => (Kind::Router, self.rng.index(2)),
            3 => (Kind::DealerWorker, WORKERS),
            _ => (Kind::MdpWorker { version: self.some_version(), front: self.rng.once_in(2) }, CLIENTS),
        }
    }

    fn add_zmq_peer(&mut self, kind: Kind, place: usize) {
        let endpoint = &self.zmq.endpoints[place];
        let (slots, plain) = (kind.slots(endpoint.slots), !endpoint.access.is_open());
        let queue = match kind {
            Kind::MdpWorker { .. } => self.zmq.services[self.rng.index(self.zmq.services.len())].clone(),
            _ => endpoint.queue.clone(),
        };
        let security = match plain {
            true => Security::PlainClient { user: USER.as_bytes().into(), password: PASSWORD.as_bytes().into() },
            false => Security::Null,
        };
        let settings = ZmtpSettings {
            // Many have the same identity: answers are for connections.
            identity: if self.rng.once_in(2) { b"same"[..].into() } else { Box::default() },
            security,
            version: if self.rng.once_in(4) { Zmtp::V3_0 } else { Zmtp::V3_1 },
            ping_ms: if self.rng.once_in(2) { 0 } else { PING_MS },
            ..ZmtpSettings::new(OwnSocketType::Is(kind.socket()), self.zmq.message_bytes_max)
        };
        let good = self.rng.once_in(2);
        let place = u16::try_from(place).expect("few");
        let peer = ZmqPeer::new(kind, place, settings, good, slots);
        let queues = if kind.consumes() { vec![queue] } else { Vec::new() };
        self.add_peer(Actor::Zmq(Box::new(peer)), 0, queues, self.zmq.broker);
    }
}
