//! The world: one clock, one list of future events, and all peers and brokers.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use turno_broker::connections::Connections;
use turno_client::Address;
use turno_client::core::{Core, Held, Registration, Settings};
use turno_proto::foreman::WireTaskId;
use turno_proto::model::{ConnId, Mono, QueueName, Slots};

use crate::client::Client;
use crate::clocks::Clock;
use crate::disk::BrokerDisks;
use crate::draining::DrainingConnection;
use crate::exclusive::ExclusiveState;
use crate::farm::Farm;
use crate::habits::Habits;
use crate::job_workers::JobWorker;
use crate::liar::Liar;
use crate::links::Links;
use crate::listener::Listener;
use crate::net::{Direction, Wire};
use crate::oracle::Oracle;
use crate::rng::Rng;
use crate::rogue::Rogue;
use crate::submitter::Submitter;
use crate::trace::Trace;
use crate::worker::{FRAGILE_SLOTS, Worker};
use crate::zmq::{Zmq, ZmqPeer};

/// Something that will happen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Happening {
    Arrive {
        wire: usize,
        way: Direction,
        piece: Vec<u8>,
    },
    Closed {
        wire: usize,
        way: Direction,
    },
    Dialled {
        peer: usize,
        life: u64,
        broker: usize,
    },
    PeerWakes {
        peer: usize,
    },
    BrokerWakes {
        broker: usize,
        run: u64,
    },
    Sweep {
        broker: usize,
        run: u64,
    },
    Act {
        peer: usize,
        life: u64,
    },
    Finish {
        peer: usize,
        life: u64,
        held: Held,
    },
    /// A job's task is over.
    TaskEnds {
        peer: usize,
        life: u64,
        job: u64,
        task: u32,
        attempt: u32,
        killed: bool,
    },
    /// A broker that another wants to be linked with was reached, or was not.
    LinkDialled {
        broker: usize,
        run: u64,
        target: u32,
        to: usize,
    },
    Weather,
    /// A peer dies.
    Crashes {
        peer: usize,
        life: u64,
    },
    BrokerStarts {
        broker: usize,
    },
    BrokerDies {
        broker: usize,
        run: u64,
    },
    /// The committer is done with what it was given.
    Kept {
        broker: usize,
        run: u64,
    },
    DiskHeals {
        broker: usize,
    },
    Resumes {
        broker: usize,
    },
    PeerStarts {
        peer: usize,
        life: u64,
    },
    /// A worker that deregistered goes.
    Leaves {
        peer: usize,
        life: u64,
    },
    /// A ZeroMQ worker is done with a delivery.
    ZmqFinish {
        peer: usize,
        life: u64,
        key: u64,
    },
}

/// The kind of a peer.
#[derive(Debug)]
pub(crate) enum Actor {
    Client(Client),
    Worker(Worker),
    Rogue(Rogue),
    /// A job worker.
    JobWorker(Box<JobWorker>),
    /// A job worker that lies.
    Liar(Box<Liar>),
    /// Submits jobs.
    Submitter(Box<Submitter>),
    /// Publishes and listens.
    Listener(Box<Listener>),
    /// Has a ZeroMQ socket.
    Zmq(Box<ZmqPeer>),
}

#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) actor: Actor,
    /// The client's real core; rogues and job workers have none.
    pub(crate) core: Option<Core>,
    /// Rises with every start, so that what was meant for the last life does not reach the next.
    pub(crate) life: u64,
    pub(crate) wire: Option<usize>,
    pub(crate) out: Vec<u8>,
    /// Its connections to brokers that close.
    pub(crate) draining: Vec<DrainingConnection>,
    pub(crate) wakes: Option<Mono>,
    /// Sees and does nothing until then.
    pub(crate) asleep_until: Mono,
    pub(crate) slots: u32,
    pub(crate) queues: Vec<QueueName>,
    /// Knows this broker only.
    pub(crate) only: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct Broker {
    /// `None` while it is down.
    pub(crate) connections: Option<Connections>,
    pub(crate) run: u64,
    /// Its clock since its start.
    pub(crate) clock: Clock,
    /// Its store; `None` if nothing outlives it.
    pub(crate) disks: Option<BrokerDisks>,
    pub(crate) wires: BTreeMap<ConnId, usize>,
    pub(crate) wakes: Option<Mono>,
    /// When a drain under way must be over.
    pub(crate) drains_until: Option<Mono>,
}

impl Peer {
    pub(crate) const fn is_zmq(&self) -> bool {
        matches!(self.actor, Actor::Zmq(_))
    }
}

impl Broker {
    /// It takes in what comes over that connection.
    pub(crate) fn hears(&self, conn: ConnId) -> bool {
        self.connections.as_ref().is_some_and(|connections| connections.is_heard(conn))
    }

    /// The wire of a connection that it has given up and not closed yet.
    pub(crate) fn given_up(&self, conn: ConnId) -> Option<usize> {
        let doomed = self.connections.as_ref().is_some_and(|connections| !connections.is_heard(conn));
        self.wires.get(&conn).copied().filter(|_| doomed)
    }
}

/// Everything.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Mono,
    pub(crate) rng: Rng,
    pub(crate) steps: u64,
    agenda: BinaryHeap<Reverse<(Mono, u64, Happening)>>,
    order: u64,
    pub(crate) wires: Vec<Wire>,
    pub(crate) peers: Vec<Peer>,
    pub(crate) brokers: Vec<Broker>,
    pub(crate) queues: Vec<QueueName>,
    /// The number of the latest message.
    pub(crate) number: u64,
    pub(crate) oracle: Oracle,
    /// Workers of exclusive queues.
    pub(crate) singles: ExclusiveState,
    /// Jobs.
    pub(crate) farm: Farm,
    /// How brokers are set.
    pub(crate) habits: Habits,
    /// Which brokers are linked.
    pub(crate) links: Links,
    /// Where ZeroMQ peers come to.
    pub(crate) zmq: Zmq,
    pub(crate) trace: Trace,
    /// Faults may happen and clients ask.
    pub(crate) stormy: bool,
    /// The peer that crashed last.
    pub(crate) crashed: Option<usize>,
    /// Brokers are judged from outside only.
    pub(crate) blind: bool,
}

impl World {
    pub(crate) fn new(seed: u64, trace: Trace) -> Self {
        let mut rng = Rng::new(seed);
        let queues = (0..rng.range(1, 4)).map(|n| format!("queue.{n}").parse().expect("a name")).collect();
        let habits = Habits::some(&mut rng);
        let mut world = Self {
            now: Mono::from_millis(1),
            rng,
            steps: 0,
            agenda: BinaryHeap::new(),
            order: 0,
            wires: Vec::new(),
            peers: Vec::new(),
            brokers: Vec::new(),
            queues,
            number: 0,
            oracle: Oracle::default(),
            singles: ExclusiveState::default(),
            farm: Farm::default(),
            habits,
            links: Links::default(),
            zmq: Zmq::default(),
            trace,
            stormy: true,
            crashed: None,
            blind: false,
        };
        let brokers = world.plan_brokers(seed);
        world.plan_zmq(seed, brokers);
        for broker in 0..brokers {
            let disks = BrokerDisks::some(&mut world.rng);
            let wires = BTreeMap::new();
            let clock = Clock::default();
            world.brokers.push(Broker {
                connections: None,
                run: 0,
                clock,
                disks,
                wires,
                wakes: None,
                drains_until: None,
            });
            world.start_broker(broker);
        }
        for _ in 0..world.rng.range(1, 4) {
            world.add_peer(Actor::Client(Client::default()), 0, Vec::new(), None);
        }
        for _ in 0..world.rng.range(1, 5) {
            let slots = u32::try_from(world.rng.range(1, 6)).expect("small");
            let good = world.rng.once_in(2);
            let queues = world.some_queues();
            world.add_peer(Actor::Worker(Worker::new(slots, good)), slots, queues, None);
        }
        if world.habits.fragile {
            let queues = world.some_queues();
            world.add_peer(Actor::Worker(Worker::fragile()), FRAGILE_SLOTS, queues, None);
        }
        for _ in 0..world.rng.range(0, 3) {
            let rogue = Rogue::new(&mut world.rng, world.queues.len());
            world.add_peer(Actor::Rogue(rogue), 0, Vec::new(), None);
        }
        world.add_singles();
        world.add_farm();
        world.add_listeners();
        world.add_zmq();
        world.at(world.now.plus_millis(300), Happening::Weather);
        world
    }

    pub(crate) fn at(&mut self, at: Mono, happening: Happening) {
        self.order += 1;
        self.agenda.push(Reverse((at, self.order, happening)));
    }

    /// Lets the next thing happen; false if nothing ever will.
    pub(crate) fn step(&mut self) -> bool {
        let Some(Reverse((at, _, happening))) = self.agenda.pop() else { return false };
        self.set_now(self.now.max(at));
        self.steps += 1;
        self.happen(happening);
        true
    }

    /// Time passes.
    pub(crate) fn set_now(&mut self, now: Mono) {
        self.now = now;
        self.oracle.clocks.now = now;
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Arrive { wire, way, piece } => self.arrive(wire, way, &piece),
            Happening::Closed { wire, way } => self.closed(wire, way),
            Happening::Dialled { peer, life, broker } => self.dialled(peer, life, broker),
            Happening::PeerWakes { peer } => self.peer_wakes(peer),
            Happening::BrokerWakes { broker, run } => self.broker_wakes(broker, run),
            Happening::Sweep { broker, run } => self.sweep(broker, run),
            Happening::Act { peer, life } => self.act(peer, life),
            Happening::Finish { peer, life, held } => self.finish(peer, life, held),
            Happening::TaskEnds { peer, life, job, task, attempt, killed } => {
                self.task_ends(peer, life, WireTaskId { job, task }, attempt, killed);
            }
            Happening::LinkDialled { broker, run, target, to } => self.link_dialled(broker, run, target, to),
            Happening::Weather => self.weather(),
            Happening::Crashes { peer, life } => self.crashes(peer, life),
            Happening::BrokerStarts { broker } => self.start_broker(broker),
            Happening::BrokerDies { broker, run } => self.broker_dies(broker, run),
            Happening::Kept { broker, run } => self.kept(broker, run),
            Happening::DiskHeals { broker } => self.disk_heals(broker),
            Happening::Resumes { broker } => self.resume_a_broker(broker),
            Happening::PeerStarts { peer, life } if self.peers[peer].life == life => self.start_peer(peer),
            Happening::PeerStarts { .. } => {}
            Happening::Leaves { peer, life } => self.leaves(peer, life),
            Happening::ZmqFinish { peer, life, key } => self.zmq_finishes(peer, life, key),
        }
    }

    pub(crate) fn some_queues(&mut self) -> Vec<QueueName> {
        let all = self.queues.clone();
        let some: Vec<QueueName> = all.iter().filter(|_| self.rng.once_in(2)).cloned().collect();
        if some.is_empty() || self.habits.alike { all } else { some }
    }

    pub(crate) fn add_peer(&mut self, actor: Actor, slots: u32, queues: Vec<QueueName>, only: Option<usize>) -> usize {
        let peer = self.peers.len();
        self.peers.push(Peer {
            actor,
            core: None,
            life: 0,
            wire: None,
            out: Vec::new(),
            draining: Vec::new(),
            wakes: None,
            asleep_until: Mono::ZERO,
            slots,
            queues,
            only,
        });
        self.start_peer(peer);
        peer
    }

    /// A peer begins a life: a fresh core that knows its brokers and nothing else.
    pub(crate) fn start_peer(&mut self, index: usize) {
        let (now, brokers) = (self.now, self.brokers.len());
        self.single_starts(index);
        let (first, claim) = (self.rng.index(brokers), self.claim_of(index));
        let peer = &mut self.peers[index];
        peer.life += 1;
        peer.wire = None;
        peer.out.clear();
        self.trace.note(now, "peer starts", index as u64, peer.life);
        let order: Vec<usize> = match peer.only {
            Some(broker) => vec![broker],
            None => (0..brokers).map(|step| (first + step) % brokers).collect(),
        };
        match &mut peer.actor {
            Actor::Rogue(_) => {
                let life = peer.life;
                self.wind_up_ghost(index, life);
                return self.dial(index, life, first);
            }
            Actor::JobWorker(job_worker) => {
                job_worker.start_over();
                let life = peer.life;
                return self.dial(index, life, order[0]);
            }
            Actor::Liar(_) => {
                let life = peer.life;
                self.at(now, Happening::Act { peer: index, life });
                return self.dial(index, life, order[0]);
            }
            Actor::Zmq(zmq) => {
                zmq.parted();
                let life = peer.life;
                self.at(now, Happening::Act { peer: index, life });
                return self.dial(index, life, order[0]);
            }
            Actor::Submitter(submitter) => submitter.start_over(),
            Actor::Listener(listener) => listener.start_over(),
            Actor::Client(client) => *client = Client::default(),
            Actor::Worker(worker) => worker.start_over(),
        }
        let mut core = Core::new(
            now,
            Settings {
                brokers: order.into_iter().map(address).collect(),
                name: format!("peer-{index}"),
                program: String::new(),
                heartbeat_ms: 500,
                connect_timeout_ms: 2_000,
                keep_trying: true,
                stay: false,
                come_back: true,
            },
        );
        if matches!(peer.actor, Actor::Worker(_)) {
            let slots = Slots::Limited(peer.slots);
            let queues = peer.queues.clone();
            core.register(now, Registration { name: String::new(), key: String::new(), slots, queues, claim });
        }
        let asks = match peer.actor {
            Actor::Client(_) | Actor::Listener(_) => self.stormy,
            Actor::Submitter(_) => true,
            _ => false,
        };
        peer.core = Some(core);
        self.pump_peer(index);
        if asks {
            let at = Mono::from_micros(now.as_micros() + self.rng.range(1_000, 50_000));
            let life = self.peers[index].life;
            self.at(at, Happening::Act { peer: index, life });
        }
    }
}

pub(crate) fn address(broker: usize) -> Address {
    Address::Tcp(format!("broker-{broker}:1"))
}

pub(crate) fn broker_of(address: &Address) -> usize {
    let Address::Tcp(text) = address else { panic!("brokers of the simulation have TCP addresses") };
    let digits = text.trim_start_matches("broker-").trim_end_matches(":1");
    digits.parse().expect("an address of ours")
}
