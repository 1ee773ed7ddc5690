//! Pools: the job workers that each set of required labels can use. A job without labels may use every job worker; for
//! every set of labels that a job asks for there is a pool of its own, with the job workers that have all of them. So a
//! job whose labels nobody has costs nothing to others, and jobs without labels pay nothing for those that have some.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::ConnId;

use super::job_worker::{JobWorkers, WorkerRank};
use super::labels::{Labels, has_all};
use super::order::{Order, Turn};

/// Pools that are kept though no job is in them: it may come back with its next task.
const IDLE_MAX: usize = 64;

/// Jobs, and the job workers they may use.
#[derive(Debug, Default)]
pub(super) struct Pool {
    /// Those that something can be started of.
    pub(super) order: Order,
    /// Job workers that can be offered something: by room, the least recently used first.
    rooms: Places,
    /// Those that are open to work, full ones too, by their slots.
    sizes: Places,
}

type Places = BTreeMap<u32, BTreeSet<(u64, ConnId)>>;

impl Pool {
    /// The most that can be offered to one job worker now.
    pub(super) fn most(&self) -> u32 {
        self.rooms.last_key_value().map_or(0, |(room, _)| *room)
    }

    /// Slots of the largest job worker that is open to work.
    pub(super) fn largest(&self) -> u32 {
        self.sizes.last_key_value().map_or(0, |(slots, _)| *slots)
    }

    /// The least recently used with so much room.
    pub(super) fn with_room(&self, width: u16) -> Option<ConnId> {
        first_of(self.rooms.range(u32::from(width)..))
    }

    /// The least recently used that is open to work and has so many slots, full or not.
    pub(super) fn of_size(&self, width: u16) -> Option<ConnId> {
        first_of(self.sizes.range(u32::from(width)..))
    }

    /// Job workers that are open to work.
    pub(super) fn open(&self) -> impl Iterator<Item = ConnId> {
        self.sizes.values().flatten().map(|(_, conn)| *conn)
    }

    /// How many can be offered something, and how many are open to work.
    pub(super) fn shown_len(&self) -> (usize, usize) {
        (self.rooms.values().map(BTreeSet::len).sum(), self.sizes.values().map(BTreeSet::len).sum())
    }

    fn is_live(&self) -> bool {
        !self.order.is_empty() && !self.sizes.is_empty()
    }

    /// Room comes and goes with every task, the rest does not: each is moved only if it is another.
    fn show(&mut self, conn: ConnId, before: Option<WorkerRank>, place: Option<WorkerRank>) {
        let by_room = |place: Option<WorkerRank>| place.filter(|place| place.room > 0).map(|at| (at.room, at.turn));
        let by_size = |place: Option<WorkerRank>| place.map(|at| (at.slots, at.turn));
        shift(&mut self.rooms, conn, by_room(before), by_room(place));
        shift(&mut self.sizes, conn, by_size(before), by_size(place));
    }
}

fn first_of<'a>(places: impl Iterator<Item = (&'a u32, &'a BTreeSet<(u64, ConnId)>)>) -> Option<ConnId> {
    places.filter_map(|(_, job_workers)| job_workers.first()).min().map(|(_, conn)| *conn)
}

/// Puts a job worker elsewhere.
fn shift(places: &mut Places, conn: ConnId, from: Option<(u32, u64)>, to: Option<(u32, u64)>) {
    if from == to {
        return;
    }
    if let Some((at, turn)) = from
        && let Some(job_workers) = places.get_mut(&at)
    {
        job_workers.remove(&(turn, conn));
        if job_workers.is_empty() {
            places.remove(&at);
        }
    }
    if let Some((at, turn)) = to {
        places.entry(at).or_default().insert((turn, conn));
    }
}

/// All pools.
#[derive(Debug, Default)]
pub(super) struct Pools {
    /// For jobs without labels.
    all: Pool,
    labelled: BTreeMap<Labels, Pool>,
    /// Those of them that have jobs and job workers.
    live: BTreeSet<Labels>,
    /// How many there may be until those without jobs are looked for.
    sweep_at: usize,
}

impl Pools {
    /// The pool of a job with these labels. One that is not there has no job, and nobody looked for its job workers.
    pub(super) fn get(&self, labels: &Labels) -> Option<&Pool> {
        if labels.is_empty() { Some(&self.all) } else { self.labelled.get(labels) }
    }

    /// Those that have jobs and job workers, if any.
    pub(super) fn live(&self) -> impl Iterator<Item = &Pool> {
        std::iter::once(&self.all).chain(self.live.iter().filter_map(|labels| self.labelled.get(labels)))
    }

    /// All of them, with their labels.
    pub(super) fn each(&self) -> impl Iterator<Item = (&[(String, String)], &Pool)> {
        let labelled = self.labelled.iter().map(|(labels, pool)| (&**labels, pool));
        std::iter::once((&[][..], &self.all)).chain(labelled)
    }

    /// Nothing can be started, whichever job worker comes.
    pub(super) fn is_idle(&self) -> bool {
        self.all.order.is_empty() && self.live.is_empty()
    }

    /// The job whose turn it is, of those whose tasks some job worker could take if it were free, and the slots of a task.
    pub(super) fn head(&self) -> Option<(Turn, u16, &Pool)> {
        self.first_by(Pool::largest)
    }

    /// The same of those whose tasks some job worker can take now.
    pub(super) fn first(&self) -> Option<(Turn, u16, &Pool)> {
        self.first_by(Pool::most)
    }

    #[inline]
    fn first_by<'a>(&'a self, widest: impl Fn(&Pool) -> u32) -> Option<(Turn, u16, &'a Pool)> {
        let of = |pool: &'a Pool| {
            let (turn, width) = pool.order.first(widest(pool))?;
            Some((turn, width, pool))
        };
        let all = of(&self.all);
        if self.live.is_empty() {
            return all;
        }
        let labelled = self.live.iter().filter_map(|labels| of(self.labelled.get(labels)?));
        labelled.chain(all).min_by_key(|(turn, ..)| *turn)
    }

    /// A job is in the order from now on.
    pub(super) fn insert(&mut self, labels: &Labels, width: u16, turn: Turn, job_workers: &mut JobWorkers) {
        if labels.is_empty() {
            return self.all.order.insert(width, turn);
        }
        if !self.labelled.contains_key(labels) {
            self.sweep(job_workers);
            let pool = self.labelled.entry(labels.clone()).or_default();
            for (conn, job_worker) in
                job_workers.by_conn.iter_mut().filter(|(_, job_worker)| has_all(&job_worker.labels, labels))
            {
                job_worker.pools.push(labels.clone());
                pool.show(*conn, None, job_worker.shown);
            }
        }
        self.labelled.entry(labels.clone()).or_default().order.insert(width, turn);
        self.look_at(labels);
    }

    /// A job is in the order no longer.
    pub(super) fn remove(&mut self, labels: &Labels, width: u16, turn: Turn) {
        if labels.is_empty() {
            return self.all.order.remove(width, turn);
        }
        self.labelled.get_mut(labels).expect("a job is where it was put").order.remove(width, turn);
        self.look_at(labels);
    }

    /// A job worker stands elsewhere now, in all pools that it is in.
    pub(super) fn show(&mut self, conn: ConnId, of: &[Labels], before: Option<WorkerRank>, place: Option<WorkerRank>) {
        self.all.show(conn, before, place);
        for labels in of {
            if let Some(pool) = self.labelled.get_mut(labels) {
                pool.show(conn, before, place);
                self.look_at(labels);
            }
        }
    }

    /// The pools of a job worker with these labels.
    pub(super) fn of_job_worker(&self, labels: &BTreeMap<String, String>) -> Vec<Labels> {
        self.labelled.keys().filter(|wanted| has_all(labels, wanted)).cloned().collect()
    }

    fn look_at(&mut self, labels: &Labels) {
        let is_live = self.labelled.get(labels).is_some_and(Pool::is_live);
        if is_live != self.live.contains(labels) {
            self.live.remove(labels);
            self.live.extend(is_live.then(|| labels.clone()));
        }
    }

    /// Forgets pools that no job is in, once there are many.
    fn sweep(&mut self, job_workers: &mut JobWorkers) {
        if self.labelled.len() < self.sweep_at.max(IDLE_MAX) {
            return;
        }
        self.labelled.retain(|_, pool| !pool.order.is_empty());
        for job_worker in job_workers.by_conn.values_mut() {
            job_worker.pools.retain(|labels| self.labelled.contains_key(labels));
        }
        self.sweep_at = 2 * self.labelled.len();
    }

    pub(super) fn check(&self) {
        for (labels, pool) in &self.labelled {
            assert_eq!(pool.is_live(), self.live.contains(labels), "pools with jobs and job workers are known");
        }
        assert!(self.live.iter().all(|labels| self.labelled.contains_key(labels)), "they are there");
    }
}
