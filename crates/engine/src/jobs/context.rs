//! The parts of the broker that jobs use, borrowed for one call. The engine lends it for one call, and does afterwards
//! what follows elsewhere (see `machines`).
//!
//! | what | by |
//! |---|---|
//! | to know | `now`, `settings`, `draining`, `memory_free`, `unix_ms`, `stores`, `worker`, `peers` (read only) |
//! | workers come, change and go | `connected`, `enlist`, `resize`, `dismiss`, `count_end` |
//! | their slots | `take`, `take_over`, `give_back`; over two connections `unite`, `part` |
//! | the disk | `note`, `wait` |
//! | what follows elsewhere | `cause`, with a [`Consequence`] |

use std::sync::Arc;

use turno_proto::model::job::{JobId, JobSpec};
use turno_proto::model::{ConnId, Mono, Slots};

use super::durable::JobAfterStored;
use crate::messages::disk::durable::Durable;
use crate::messages::disk::persist::Persist;
use crate::messages::workers::peer::{Peers, Worker};
use crate::settings::Settings;

/// The parts of the broker that jobs borrow for one call.
#[derive(Debug)]
pub(crate) struct JobsContext<'a> {
    pub(super) now: Mono,
    pub(super) settings: &'a Settings,
    /// The broker hands out nothing.
    pub(super) draining: bool,
    /// Bytes that may be held beside all that is.
    pub(super) memory_free: u64,
    peers: &'a mut Peers,
    durable: &'a mut Durable,
    consequences: Vec<Consequence>,
}

/// A consequence for another machine, in the order in which it came about.
#[derive(Debug)]
pub(crate) enum Consequence {
    /// A native connection has less room: its paired connection took slots.
    LessRoom(ConnId),
    /// A native connection may have more room.
    MoreRoom(ConnId),
    /// A job is there, and names uploads.
    JobCame(Arc<JobSpec>),
    /// A job is gone.
    JobGone(JobId, Arc<JobSpec>),
    /// A worker said something that came too late.
    Late,
}

impl<'a> JobsContext<'a> {
    pub(crate) const fn new(
        now: Mono,
        settings: &'a Settings,
        draining: bool,
        memory_free: u64,
        peers: &'a mut Peers,
        durable: &'a mut Durable,
    ) -> Self {
        Self { now, settings, draining, memory_free, peers, durable, consequences: Vec::new() }
    }

    /// The consequences for other machines.
    pub(crate) fn into_consequences(self) -> Vec<Consequence> {
        self.consequences
    }

    pub(super) fn cause(&mut self, consequence: Consequence) {
        self.consequences.push(consequence);
    }
}

/// Questions about connections and settings.
impl JobsContext<'_> {
    pub(super) fn unix_ms(&self) -> u64 {
        self.settings.unix_ms(self.now)
    }

    /// Whether anything is stored at all.
    pub(super) const fn stores(&self) -> bool {
        self.settings.store.is_some()
    }

    pub(super) const fn peers(&self) -> &Peers {
        self.peers
    }

    pub(super) fn worker(&self, conn: ConnId) -> Option<&Worker> {
        self.peers.worker(conn)
    }
}

/// Workers.
impl JobsContext<'_> {
    /// A foreman's connection is there.
    pub(super) fn connected(&mut self, conn: ConnId, address: String) {
        self.peers.insert_job_worker(conn, address);
    }

    /// The connection is a worker's from now on, or has another name and size.
    pub(super) fn enlist(&mut self, conn: ConnId, name: &str, slots: Slots) {
        self.peers.enlist_job_worker(conn, name, slots, self.now);
    }

    /// The connection is no worker's any more.
    pub(super) fn dismiss(&mut self, conn: ConnId) {
        self.peers.dismiss_if(conn, |_| true);
    }

    pub(super) fn resize(&mut self, conn: ConnId, slots: Slots) {
        self.peers.worker_mut(conn).resize(slots);
    }

    /// A task takes slots of the worker, which has had its turn.
    pub(super) fn take(&mut self, conn: ConnId, slots: u16) {
        let pair = self.peers.take_for_task(conn, slots, self.now);
        self.consequences.extend(pair.map(Consequence::LessRoom));
    }

    /// A task that runs there in any case takes slots of the worker.
    pub(super) fn take_over(&mut self, conn: ConnId, slots: u16) {
        let pair = self.peers.take_over_for_task(conn, slots);
        self.consequences.extend(pair.map(Consequence::LessRoom));
    }

    /// A task takes slots of the worker no longer.
    pub(super) fn give_back(&mut self, conn: ConnId, slots: u16) {
        let pair = self.peers.give_back_of_task(conn, slots);
        self.consequences.extend(pair.map(Consequence::MoreRoom));
    }

    /// The worker says how one of its tasks went.
    pub(super) fn count_end(&mut self, conn: ConnId, success: bool) {
        self.peers.count_task_end(conn, success);
    }

    /// A job worker and a native connection have one account from now on.
    pub(super) fn unite(&mut self, job_worker: ConnId, native: ConnId) {
        self.peers.unite(job_worker, native);
    }

    /// The connection has an account of its own again, and so has its paired connection, which is returned.
    pub(super) fn part(&mut self, conn: ConnId) -> Option<ConnId> {
        self.peers.part(conn)
    }
}

/// Access to the disk.
impl JobsContext<'_> {
    /// Part of what this call stores.
    pub(super) fn note(&mut self, op: Persist) {
        self.durable.note(op);
    }

    /// Goes on once that is stored.
    pub(super) fn wait(&mut self, then: JobAfterStored) {
        self.durable.wait_with_job(then);
    }
}
