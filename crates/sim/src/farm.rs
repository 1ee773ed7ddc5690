//! Jobs of a world: one broker as foreman, a few job workers, and a submitter.

use turno_client::core::CoreEvent;
use turno_engine::Input;
use turno_proto::foreman::{ConnectionNote, ForemanSettings, WireTaskId, WorkerEvent};
use turno_proto::model::Mono;
use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::limits::TASK_GRACE_MS;

use crate::disk::BrokerDisks;
use crate::job_workers::JobWorker;
use crate::liar::Liar;
use crate::net::Direction;
use crate::submitter::Submitter;
use crate::tasks::WorkerConnection;
use crate::world::{Actor, Happening, World};

/// Processors of the worker that can do anything in the calm.
const LARGE: u16 = 8;

/// The job workers and the submitter of a world.
#[derive(Debug, Default)]
pub(crate) struct Farm {
    broker: Option<usize>,
    settings: ForemanSettings,
    job_workers: Vec<usize>,
    submitter: usize,
    /// Somebody is away for longer than the grace of its tasks.
    long_absence: bool,
}

impl World {
    /// Every other world has jobs, if a broker of it has a store: ids of jobs are never used twice by one.
    pub(crate) fn add_farm(&mut self) {
        let broker = (0..self.brokers.len())
            .find(|broker| self.brokers[*broker].disks.as_ref().is_some_and(BrokerDisks::is_roomy));
        let Some(broker) = broker.filter(|_| self.rng.once_in(2)) else { return };
        self.farm.broker = Some(broker);
        self.oracle.tasks.foreman = broker;
        if self.rng.once_in(2) {
            self.farm.settings.seq_max = u32::try_from(self.rng.range(5, 40)).expect("small");
        }
        self.set_foreman(broker);
        for _ in 0..self.rng.range(1, 5) {
            let procs = u16::try_from(self.rng.range(1, 7)).expect("small");
            self.add_job_worker(broker, procs);
        }
        if self.rng.once_in(3) {
            self.oracle.tasks.lax = true;
            let liar = Liar::new(format!("liar-{}", self.peers.len()));
            self.add_peer(Actor::Liar(Box::new(liar)), 0, Vec::new(), Some(broker));
        }
        self.farm.submitter = self.add_peer(Actor::Submitter(Box::default()), 0, Vec::new(), Some(broker));
    }

    /// Whether jobs are at this broker.
    pub(crate) fn is_foreman(&self, broker: usize) -> bool {
        self.farm.broker == Some(broker)
    }

    fn add_job_worker(&mut self, broker: usize, procs: u16) {
        let job_worker = JobWorker::new(format!("work-{}", self.peers.len()), procs, self.farm.settings);
        let peer = self.add_peer(Actor::JobWorker(Box::new(job_worker)), 0, Vec::new(), Some(broker));
        self.farm.job_workers.push(peer);
    }

    /// A broker that begins counts as its workers do. What follows from what it recovered is done with the first input.
    pub(crate) fn set_foreman(&mut self, broker: usize) {
        let now = self.clock_of(broker);
        if self.farm.broker == Some(broker)
            && let Some(connections) = &mut self.brokers[broker].connections
        {
            self.oracle.tasks.foreman_starts();
            connections.set_foreman(self.farm.settings);
            connections.handle(now, Input::Tick);
        }
    }

    pub(crate) fn job_worker_mut(&mut self, index: usize) -> Option<&mut JobWorker> {
        match &mut self.peers[index].actor {
            Actor::JobWorker(job_worker) => Some(job_worker),
            _ => None,
        }
    }

    /// Connects to the foreman's listener.
    pub(crate) fn works_for_jobs(&self, index: usize) -> bool {
        matches!(self.peers[index].actor, Actor::JobWorker(_) | Actor::Liar(_))
    }

    /// The process of a worker is gone.
    pub(crate) fn job_worker_dies(&mut self, index: usize) {
        let now = self.now;
        if let Some(job_worker) = self.job_worker_mut(index) {
            job_worker.dies();
            self.oracle.tasks.dies(index);
            self.oracle.tasks.parted(now, index);
        }
    }

    /// The connection of a worker is gone: it dials again, its tasks go on. False if this is none.
    pub(crate) fn job_worker_parted(&mut self, index: usize) -> bool {
        let (now, life, only) = (self.now, self.peers[index].life, self.peers[index].only);
        let wait_ms = if self.rng.once_in(4) { self.rng.range(100, 4_000) } else { self.rng.range(1, 100) };
        if let (Actor::Liar(_), Some(broker)) = (&self.peers[index].actor, only) {
            self.dial(index, life, broker);
            return true;
        }
        let Some(job_worker) = self.job_worker_mut(index) else { return false };
        job_worker.disconnected();
        let (over, at) = (job_worker.over, now.plus_millis(wait_ms).max(job_worker.not_before));
        self.oracle.tasks.parted(now, index);
        if let Some(broker) = only.filter(|_| !over) {
            self.at(at, Happening::Dialled { peer: index, life, broker });
        }
        true
    }

    /// Bytes vanish on the wire of a job worker, or of a peer with ZMTP 3.0. Its protocol has no signs of life: the system notices, some time later.
    pub(crate) fn hole_shows(&mut self, wire: usize) {
        let peer = self.wires[wire].peer;
        if self.wires[wire].dialler.is_none() && (self.works_for_jobs(peer) || self.is_old_zmq(peer)) {
            let at = self.now.plus_millis(self.rng.range(500, 9_000));
            self.at(at, Happening::Closed { wire, way: Direction::ToBroker });
            self.at(at, Happening::Closed { wire, way: Direction::ToPeer });
        }
    }

    /// Everything that a worker's end has to tell.
    pub(crate) fn pump_job_worker(&mut self, index: usize) {
        while let Some(event) = self.job_worker_mut(index).and_then(|job_worker| job_worker.worker().poll_event()) {
            self.job_worker_event(index, event);
        }
        let Some(job_worker) = self.job_worker_mut(index) else { return };
        if !job_worker.over && !job_worker.leaves {
            job_worker.check();
        }
        let leaves = std::mem::take(&mut job_worker.leaves);
        let mut out = Vec::new();
        job_worker.worker().take_output(&mut out);
        self.peers[index].out.append(&mut out);
        if leaves {
            self.job_worker_leaves(index);
        }
    }

    fn job_worker_event(&mut self, index: usize, event: WorkerEvent) {
        let (now, life, stormy) = (self.now, self.peers[index].life, self.stormy);
        match event {
            WorkerEvent::Greeted => self.oracle.tasks.met(now, index),
            WorkerEvent::Start(tasks) => {
                let wire = &self.wires[self.peers[index].wire.expect("I19: tasks come over a connection")];
                let (flawless, clock) = (wire.was_never_held_up(), self.oracle.clocks.of(wire.broker, wire.life));
                for task in tasks {
                    self.trace.note(now, "task starts", task.job << 32 | u64::from(task.task), index as u64);
                    let Actor::JobWorker(job_worker) = &mut self.peers[index].actor else { return };
                    let heard = WorkerConnection { worker: index, since: job_worker.since, flawless, clock };
                    self.oracle.tasks.starts(&self.oracle.clocks, heard, &task);
                    let at = job_worker.start(now, &task, stormy, &mut self.rng);
                    let (id, attempt) = (task.id(), task.attempt);
                    self.task_ends_at(at, index, life, id, attempt, false);
                }
            }
            WorkerEvent::Cancel(ids) => {
                for id in ids {
                    self.trace.note(now, "task is cancelled", id.job << 32 | u64::from(id.task), index as u64);
                    let at = now.plus_millis(self.rng.range(0, 300));
                    let Some(doing) = self.job_worker_mut(index).and_then(|job_worker| job_worker.running(id)) else {
                        continue;
                    };
                    self.oracle.tasks.told_to_stop(&self.oracle.clocks, index, id, doing.attempt);
                    self.task_ends_at(at, index, life, id, doing.attempt, true);
                }
            }
            WorkerEvent::Stopping { max } => {
                self.trace.note(now, "job worker shrinks", index as u64, u64::from(max));
                self.oracle.tasks.told_to_shrink(index, max);
                if let Some(job_worker) = self.job_worker_mut(index) {
                    job_worker.stopping(max);
                }
            }
            WorkerEvent::Reported(id) => {
                if let Some(said) = self.job_worker_mut(index).map(|job_worker| job_worker.reported(id)) {
                    self.trace.note(now, "end is confirmed", id.job << 32 | u64::from(id.task), index as u64);
                    self.oracle.tasks.told(&self.oracle.clocks, said);
                }
            }
            WorkerEvent::NotReported { id, code } => panic!("I20: the foreman does not want the end of {id:?}: {code}"),
            WorkerEvent::Exit => {
                let Some(job_worker) = self.job_worker_mut(index) else { return };
                assert!(
                    job_worker.is_idle() && job_worker.lingers(),
                    "S4.79: a worker leaves early: {}",
                    job_worker.unrest()
                );
                job_worker.leaves = true;
            }
            WorkerEvent::ExitNow => {
                self.oracle.tasks.told_to_end(index);
                if let Some(job_worker) = self.job_worker_mut(index) {
                    job_worker.leaves = true;
                }
            }
            WorkerEvent::Note(ConnectionNote::Mismatch { ours, theirs }) => {
                assert!(self.oracle.tasks.lax, "I19: worker {index} counts {ours:?}, its foreman {theirs:?}");
            }
            WorkerEvent::Note(_) => {}
            WorkerEvent::Close(reason) => {
                assert!(self.oracle.tasks.lax, "I19: an honest worker leaves its foreman: {reason}");
                if let Some(wire) = self.peers[index].wire.take() {
                    self.close(wire, Direction::ToBroker);
                }
                self.job_worker_parted(index);
            }
        }
    }

    fn task_ends_at(&mut self, at: Mono, peer: usize, life: u64, id: WireTaskId, attempt: u32, killed: bool) {
        let WireTaskId { job, task } = id;
        self.at(at, Happening::TaskEnds { peer, life, job, task, attempt, killed });
    }

    /// A task is over.
    pub(crate) fn task_ends(&mut self, index: usize, life: u64, id: WireTaskId, attempt: u32, killed: bool) {
        let now = self.now;
        if self.peers[index].life != life {
            return;
        }
        if let Some(said) = self.job_worker_mut(index).and_then(|job_worker| job_worker.end(now, id, attempt, killed)) {
            self.trace.note(now, "task ends", id.job << 32 | u64::from(id.task), index as u64);
            self.oracle.tasks.says(now, said);
            self.pump_peer(index);
        }
    }

    /// A worker exits in order; another process takes its place later.
    fn job_worker_leaves(&mut self, index: usize) {
        self.trace.note(self.now, "job worker leaves", index as u64, 0);
        self.write_out(index);
        self.job_worker_dies(index);
        let peer = &mut self.peers[index];
        peer.life += 1;
        let life = peer.life;
        if let Some(wire) = peer.wire.take() {
            self.close(wire, Direction::ToBroker);
        }
        let back = self.now.plus_millis(self.rng.range(1, 3_000));
        self.at(back, Happening::PeerStarts { peer: index, life });
    }

    /// A liar lies, if this is one.
    fn liar_speaks(&mut self, index: usize, life: u64) -> bool {
        let Actor::Liar(liar) = &mut self.peers[index].actor else { return false };
        liar.speak(&mut self.rng);
        let next = self.now.plus_millis(self.rng.range(50, 700));
        if self.stormy {
            self.at(next, Happening::Act { peer: index, life });
        }
        self.pump_peer(index);
        true
    }

    /// The submitter does something, if this is one; so does a liar.
    pub(crate) fn boss_acts(&mut self, index: usize, life: u64) -> bool {
        if self.liar_speaks(index, life) {
            return true;
        }
        if !matches!(self.peers[index].actor, Actor::Submitter(_)) {
            return false;
        }
        let wait_ms = if self.stormy { self.rng.range(20, 400) } else { 400 };
        self.at(self.now.plus_millis(wait_ms), Happening::Act { peer: index, life });
        let job_workers: Vec<(usize, String, u16)> =
            self.farm.job_workers.iter().filter_map(|at| self.named(*at)).collect();
        let (now, stormy) = (self.now, self.stormy);
        let peer = &mut self.peers[index];
        if let (Some(core), Actor::Submitter(submitter)) = (&mut peer.core, &mut peer.actor) {
            if stormy {
                submitter.act(now, core, &job_workers, &mut self.oracle.tasks, &mut self.rng);
            } else {
                submitter.inquire(now, core, &self.oracle.tasks);
            }
            for (ticket, call) in submitter.take_said() {
                self.trace.note(now, "submitter asks", ticket, 0);
                self.trace.say(&call);
            }
            self.pump_peer(index);
        }
        true
    }

    fn named(&self, index: usize) -> Option<(usize, String, u16)> {
        match &self.peers[index].actor {
            Actor::JobWorker(job_worker) => Some((index, job_worker.name().to_owned(), job_worker.procs())),
            _ => None,
        }
    }

    pub(crate) fn boss_hears(&mut self, index: usize, event: &CoreEvent) {
        let (now, stormy) = (self.now, self.stormy);
        match event {
            CoreEvent::Admin { ticket, answer } => match &**answer {
                AdminAnswer::Job { job } => self.trace.note(now, "submitter hears of a job", ticket.0, job.id.0),
                _ => self.trace.note(now, "submitter is answered", ticket.0, 0),
            },
            CoreEvent::Failed { ticket, code, .. } => {
                self.trace.note(now, "submitter is refused", ticket.0, *code as u64)
            }
            _ => {}
        }
        let peer = &mut self.peers[index];
        if let (Some(core), Actor::Submitter(submitter)) = (&mut peer.core, &mut peer.actor) {
            submitter.hear(now, core, event, stormy, &mut self.oracle.tasks);
        }
    }

    /// From now on every job can end: somebody has room for anything.
    pub(crate) fn farm_calms_down(&mut self) {
        let Some(broker) = self.farm.broker else { return };
        // Some do not come back, or so late that nobody waits for them any more.
        if self.rng.once_in(8) {
            let index = self.farm.job_workers[self.rng.index(self.farm.job_workers.len())];
            let for_good = self.rng.once_in(2);
            let back = self.now.plus_millis(TASK_GRACE_MS + 5_000);
            self.farm.long_absence = true;
            self.trace.note(self.now, "job worker is away", index as u64, u64::from(for_good));
            if let Some(job_worker) = self.job_worker_mut(index) {
                job_worker.not_before = back;
                job_worker.lost = for_good;
            }
            if for_good {
                self.job_worker_dies(index);
                self.peers[index].life += 1;
            }
            if let Some(wire) = self.peers[index].wire {
                self.wires[wire].cut = true;
                self.close(wire, Direction::ToBroker);
                self.close(wire, Direction::ToPeer);
            }
        }
        self.add_job_worker(broker, LARGE);
        for index in 0..self.peers.len() {
            if let Actor::Liar(liar) = &mut self.peers[index].actor {
                liar.repent();
                if let Some(wire) = self.peers[index].wire {
                    self.close(wire, Direction::ToBroker);
                    self.close(wire, Direction::ToPeer);
                }
            }
        }
    }

    /// How much longer the calm may take: until the tasks of a worker that is gone, or that lied, count as lost.
    pub(crate) const fn farm_patience_ms(&self) -> u64 {
        if self.farm.long_absence || self.oracle.tasks.lax { TASK_GRACE_MS + 10_000 } else { 0 }
    }

    pub(crate) fn farm_is_quiet(&self) -> bool {
        let quiet = |actor: &Actor| match actor {
            Actor::JobWorker(job_worker) => (job_worker.is_idle() && !job_worker.lingers()) || job_worker.lost,
            Actor::Submitter(submitter) => submitter.is_done(),
            _ => true,
        };
        self.farm.broker.is_none() || self.peers.iter().all(|peer| quiet(&peer.actor))
    }

    pub(crate) fn farm_unrest(&self) -> Vec<String> {
        let words = |actor: &Actor| match actor {
            Actor::JobWorker(job_worker) => Some(job_worker.unrest()),
            Actor::Submitter(submitter) => Some(submitter.unrest()),
            _ => None,
        };
        self.peers.iter().filter_map(|peer| words(&peer.actor)).collect()
    }

    /// I19, I20: what became of all jobs.
    pub(crate) fn judge_farm(&mut self) {
        if self.farm.broker.is_some()
            && let Actor::Submitter(submitter) = &self.peers[self.farm.submitter].actor
        {
            let (jobs, tasks) = Submitter::verdict(submitter);
            for (job, rows) in tasks.iter().filter(|_| self.trace.is_aloud()) {
                rows.iter().for_each(|row| self.trace.say(&format!("in the end job {job} has {row:?}")));
            }
            self.oracle.tasks.judge(jobs, tasks);
        }
    }
}
