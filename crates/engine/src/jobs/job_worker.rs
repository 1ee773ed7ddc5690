//! The state of a job worker on its connection. Its slots belong to the worker's one account (see `peer`); this module
//! has its tasks and its place among the available job workers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use turno_proto::model::job::JobId;
use turno_proto::model::{ConnId, Mono, Slots};

use super::Jobs;
use super::context::JobsContext;
use super::labels::Labels;
use super::received::ReceivedBytes;
use crate::messages::workers::peer::{Peers, Worker};

/// The state of a connected job worker.
#[derive(Debug, Default)]
pub(super) struct JobWorker {
    /// It said HELLO.
    pub(super) greeted: bool,
    /// Its key over all connections: its id, or else its name.
    pub(super) key: Arc<str>,
    /// It gave an id.
    pub(super) has_id: bool,
    pub(super) name: Arc<str>,
    /// Slots it says it has; 0 once it is told to end. An admin may have lowered what it is given.
    pub(super) procs: u32,
    /// Tasks that take its slots, by job and place: running and offered ones, and those that it was told to stop and has
    /// not ended.
    pub(super) held: BTreeMap<(JobId, u32), HeldTask>,
    pub(super) offer: Option<JobOffer>,
    /// CANCELs that are not answered: job, place, attempt.
    pub(super) cancels: BTreeMap<u64, (JobId, u32, u32)>,
    /// STOPs that are not answered.
    pub(super) stops: u32,
    /// It was told to end at once.
    pub(super) ends_now: bool,
    /// It refused something, and is offered nothing until then.
    pub(super) paused: Option<Mono>,
    /// Slots it said are free when it refused, if fewer than it should have.
    pub(super) told_free: Option<u32>,
    /// Labels of the worker.
    pub(super) labels: BTreeMap<String, String>,
    /// The pools that it is in beside the one of all.
    pub(super) pools: Vec<Labels>,
    pub(super) shown: Option<WorkerRank>,
}

/// A task that takes slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeldTask {
    /// The number of the task.
    pub(super) task: u32,
    pub(super) attempt: u32,
    pub(super) slots: u16,
    /// Bytes and files that were handed in since it does not count as running any more.
    pub(super) handed_in: ReceivedBytes,
}

/// A JOB that is not answered.
#[derive(Debug)]
pub(super) struct JobOffer {
    /// 0 as long as tasks are added.
    pub(super) id: u64,
    /// Job, place, attempt.
    pub(super) tasks: Vec<(JobId, u32, u32)>,
    pub(super) bytes: usize,
}

/// How a job worker stands among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WorkerRank {
    pub(super) room: u32,
    pub(super) slots: u32,
    pub(super) turn: u64,
}

/// All job workers.
#[derive(Debug, Default)]
pub(super) struct JobWorkers {
    pub(super) by_conn: BTreeMap<ConnId, JobWorker>,
    /// By their id.
    pub(super) by_key: BTreeMap<Arc<str>, ConnId>,
}

impl JobWorkers {
    pub(super) fn get(&self, conn: ConnId) -> Option<&JobWorker> {
        self.by_conn.get(&conn)
    }

    pub(super) fn get_mut(&mut self, conn: ConnId) -> Option<&mut JobWorker> {
        self.by_conn.get_mut(&conn)
    }
}

impl Jobs {
    /// A job worker stands there from now on, in all pools that it is in.
    fn show(&mut self, conn: ConnId, place: Option<WorkerRank>) {
        let Some(job_worker) = self.job_workers.by_conn.get_mut(&conn) else { return };
        if job_worker.shown != place {
            let before = std::mem::replace(&mut job_worker.shown, place);
            self.pools.show(conn, &job_worker.pools, before, place);
        }
    }

    pub(super) fn hide(&mut self, conn: ConnId) {
        self.show(conn, None);
    }

    /// A job worker has these labels from now on. It is hidden until it is shown again.
    pub(super) fn label(&mut self, conn: ConnId, labels: BTreeMap<String, String>) {
        if self.job_workers.get(conn).is_none_or(|job_worker| job_worker.labels == labels) {
            return;
        }
        self.hide(conn);
        let pools = self.pools.of_job_worker(&labels);
        if let Some(job_worker) = self.job_workers.get_mut(conn) {
            (job_worker.labels, job_worker.pools) = (labels, pools);
        }
    }
}

/// Whether it takes part at all, full or not.
fn takes_part(job_worker: &JobWorker, worker: &Worker) -> bool {
    job_worker.greeted && job_worker.stops == 0 && !job_worker.ends_now && worker.takes_work()
}

/// The slots that an open job worker could be offered now.
fn room_of(peers: &Peers, job_worker: &JobWorker, worker: &Worker) -> u32 {
    let answered = job_worker.offer.as_ref().is_none_or(|offer| offer.id == 0 && offer.has_room());
    // A worker that is kept free for a costly message is so for tasks, too.
    let kept = worker.pair().and_then(|pair| peers.worker(pair)).is_some_and(Worker::is_reserved);
    if kept || job_worker.paused.is_some() || !answered {
        return 0;
    }
    job_worker.told_free.unwrap_or(u32::MAX).min(worker.room())
}

impl Jobs {
    /// The slots that a job worker could be offered now.
    pub(super) fn job_worker_room(&self, peers: &Peers, conn: ConnId) -> u32 {
        let Some((job_worker, worker)) = self.job_worker_and_worker(peers, conn) else { return 0 };
        if takes_part(job_worker, worker) { room_of(peers, job_worker, worker) } else { 0 }
    }

    fn job_worker_and_worker<'a>(&'a self, peers: &'a Peers, conn: ConnId) -> Option<(&'a JobWorker, &'a Worker)> {
        Some((self.job_workers.get(conn)?, peers.worker(conn)?))
    }

    /// Whether it takes part at all, full or not.
    pub(super) fn is_open(&self, peers: &Peers, conn: ConnId) -> bool {
        self.job_worker_and_worker(peers, conn).is_some_and(|(job_worker, worker)| takes_part(job_worker, worker))
    }

    /// Updates the rank of the job worker in its pools.
    pub(super) fn show_job_worker(&mut self, cx: &mut JobsContext<'_>, conn: ConnId) {
        if !self.is_job_worker(conn) {
            return;
        }
        let open =
            self.job_worker_and_worker(cx.peers(), conn).filter(|(job_worker, worker)| takes_part(job_worker, worker));
        let place = open.map(|(job_worker, worker)| {
            let kept = self.reserved.is_some_and(|(_, job_worker)| job_worker == conn);
            let slots = if worker.slots() == Slots::Unlimited { u32::MAX } else { worker.slots().as_count() };
            WorkerRank {
                room: if kept { 0 } else { room_of(cx.peers(), job_worker, worker) },
                slots,
                turn: worker.turn(),
            }
        });
        self.show(conn, place);
        self.due = true;
    }

    /// Frees the slots of a task. Returns whether it had some.
    pub(super) fn let_go(&mut self, cx: &mut JobsContext<'_>, conn: ConnId, task: (JobId, u32)) -> bool {
        let Some(held) = self.job_workers.get_mut(conn).and_then(|job_worker| job_worker.held.remove(&task)) else {
            return false;
        };
        cx.give_back(conn, held.slots);
        self.show_job_worker(cx, conn);
        self.may_start_again(task);
        true
    }

    /// Tasks of a job that take slots somewhere.
    pub(super) fn held_places(&self, id: JobId) -> BTreeSet<u32> {
        let job_workers = self.job_workers.by_conn.values();
        job_workers
            .flat_map(|job_worker| job_worker.held.range((id, 0)..=(id, u32::MAX)))
            .map(|((_, place), _)| *place)
            .collect()
    }

    /// Nobody has an earlier attempt of the task any more.
    pub(super) fn may_start_again(&mut self, (id, place): (JobId, u32)) {
        if let Some(job) = self.all.get_mut(&id)
            && job.leaving.remove(&place)
        {
            job.waiting.insert(place);
            self.refresh(id);
        }
    }
}
