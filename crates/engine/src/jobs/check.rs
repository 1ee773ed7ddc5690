//! Invariants of jobs: counts, slots, turns, timers, and records on disk.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::ConnId;
use turno_proto::model::job::JobId;

use super::Jobs;
use super::job::{Job, Phase};
use super::job_worker::JobWorker;
use super::labels::has_all;
use super::submit::bytes_of;
use super::timers::JobTimer;
use crate::messages::workers::peer::Peers;
use crate::settings::Settings;

impl Jobs {
    pub(crate) fn check(&self, settings: &Settings, peers: &Peers, draining: bool) {
        assert!(!self.due && self.just_ended.is_empty(), "what follows for jobs is done before the next input");
        let mut timers = BTreeSet::new();
        let (mut ready, mut bytes) = (0, 0);
        for (id, job) in &self.all {
            assert_eq!(*id, job.id, "a job is under its number");
            self.check_tasks(job);
            self.check_places(job, settings.store.is_some());
            let turn = job.is_ready().then(|| job.turn());
            assert_eq!(job.placed, turn, "job {id}: in the order if and only if something of it can be started");
            ready += usize::from(turn.is_some());
            bytes += bytes_of(&job.spec);
            timers.extend(job.delayed.iter().map(|(place, due)| (*due, JobTimer::Retry(*id, *place))));
            for (place, running) in &job.running {
                timers.extend(running.gone.map(|at| (at, JobTimer::Gone(*id, *place))));
                timers.extend(running.limit.map(|at| (at, JobTimer::Limit(*id, *place))));
                let lost = self.lost.contains(&(running.key.clone(), *id, *place));
                assert_eq!(lost, running.gone.is_some(), "what may be lost is found by its worker");
            }
            for one in &job.after {
                let listed = self.dependents.get(&one.job).is_some_and(|jobs| jobs.contains(id));
                assert!(listed, "a job knows who waits for its end");
            }
        }
        let lost = self.all.values().flat_map(|job| job.running.values()).filter(|task| task.gone.is_some());
        assert_eq!(lost.count(), self.lost.len(), "only running tasks can be lost");
        let placed: usize = self.pools.each().map(|(_, pool)| pool.order.len()).sum();
        assert_eq!(ready, placed, "the order holds the jobs that something can be started of");
        assert_eq!(bytes, self.bytes, "the bytes of jobs are counted");
        for (conn, job_worker) in &self.job_workers.by_conn {
            timers.extend(job_worker.paused.map(|at| (at, JobTimer::Pause(*conn))));
        }
        timers.extend(self.disk_until.map(|at| (at, JobTimer::Disk)));
        timers.extend(self.forget_at.map(|at| (at, JobTimer::Forget)));
        let ended = self.all.values().filter(|job| job.ended_unix_ms.is_some());
        assert_eq!(ended.count(), self.ended_count, "jobs that have ended are counted");
        for (id, job) in &self.all {
            let kept = job.ended_unix_ms.is_some_and(|ended| self.ended.contains(&(ended, *id)));
            let ends = job.has_ended() && settings.keep_finished_ms.is_some();
            assert_eq!(kept, ends, "job {id}: what has ended is forgotten one day");
            assert!(!kept || job.removing || self.forget_at.is_some(), "job {id}: somebody looks for its day");
        }
        for (id, place) in self.past.tasks() {
            let job = self.get(id).expect("earlier attempts are those of a job that is there");
            assert!(place < job.spec.array.count, "job {id}: task {place} had attempts, and is there");
        }
        assert_eq!(timers, self.timers, "timers are those of tasks, job workers and the disk");
        self.check_job_workers(peers);
        self.check_no_task_waits_beside_a_free_slot(draining);
        let mirrored: BTreeSet<_> = self.waiters.iter().map(|(job, conn, seq)| (*conn, *job, *seq)).collect();
        assert_eq!(mirrored, self.waiting_conns, "who waits is known by job and by connection");
        for (id, conn, _) in &self.waiters {
            assert!(self.get(*id).is_some_and(|job| !job.has_ended()), "nobody waits for what has ended");
            assert!(peers.get(*conn).is_some(), "who waits is connected");
        }
    }

    /// Every task is in one place.
    fn check_tasks(&self, job: &Job) {
        let id = job.id;
        let counts = job.counts();
        let all = counts.waiting + counts.running + counts.finished + counts.failed + counts.cancelled;
        assert_eq!(all, job.spec.array.count, "job {id}: the counts of its tasks add up");
        let apart = |what: &str, places: &mut dyn Iterator<Item = u32>| {
            for place in places {
                let here = [
                    job.waiting.contains(place),
                    job.delayed.contains_key(&place),
                    job.leaving.contains(&place),
                    job.running.contains_key(&place),
                    job.cancelling.contains(place),
                    job.cancelled.contains(place),
                    job.ended.get(place).is_some(),
                ];
                assert_eq!(here.iter().filter(|here| **here).count(), 1, "job {id}: {what} {place} is in one place");
            }
        };
        apart("delayed", &mut job.delayed.keys().copied());
        apart("leaving", &mut job.leaving.iter().copied());
        apart("running", &mut job.running.keys().copied());
        apart("cancelled", &mut job.cancelled.iter());
        apart("cancelling", &mut job.cancelling.iter());
        for place in job.tried.keys() {
            assert!(job.ended.get(*place).is_none(), "job {id}: the attempt of what has ended is that of its end");
        }
        for place in job.retrying.iter() {
            let ended = job.cancelled.contains(place) || job.ended.get(place).is_some();
            assert!(ended, "job {id}: only what has ended is retried");
        }
        if !job.leaving.is_empty() {
            let held = self.held_places(id);
            assert!(job.leaving.iter().all(|place| held.contains(place)), "job {id}: somebody has yet to let go");
        }
        for (place, running) in &job.running {
            let told = running.phase != Phase::Storing;
            let offered = running.conn.is_some() || running.ending.is_some();
            assert!(told || offered, "job {id}: what nobody was told of is in somebody's offer");
            let kept = running.conn.is_some() || running.gone.is_some() || running.ending.is_some();
            assert!(kept, "job {id}: task {place} is with a worker, or waits for it, or ends");
            if let Some(conn) = running.conn {
                let held = self.job_workers.get(conn).and_then(|job_worker| job_worker.held.get(&(id, *place)));
                assert_eq!(held.map(|held| held.attempt), Some(running.attempt), "job {id}: known on both sides");
            }
        }
        assert_eq!(job.has_ended(), job.ended_unix_ms.is_some(), "job {id}: its end has a time");
    }

    /// Checks which parts of a job are on the disk as a whole.
    fn check_places(&self, job: &Job, stores: bool) {
        for (chunk, ended, written) in job.ended.chunks() {
            let (first, last) = job.chunk_places(chunk);
            let recount = (first..=last).filter(|place| job.ended.get(*place).is_some()).count();
            assert_eq!(recount, ended as usize, "the ends in a chunk are counted");
            let own = (first..=last).filter(|place| job.waiting.contains(*place) || job.delayed.contains_key(place));
            let own = written && own.into_iter().any(|place| !job.stored.contains(place));
            assert!(!own, "what waits has a record of its own beside that of its chunk");
            let worth = stores && job.is_worth_writing(chunk) && !job.removing;
            assert_eq!(self.full.contains(&(job.id, chunk)), worth, "what can be brought together is known");
        }
        if !stores {
            assert!(job.stored.is_empty(), "nothing is on a disk that is not there");
        }
    }

    fn check_job_workers(&self, peers: &Peers) {
        self.pools.check();
        for (labels, pool) in self.pools.each() {
            let job_workers =
                || self.job_workers.by_conn.iter().filter(|(_, job_worker)| has_all(&job_worker.labels, labels));
            let is_kept = |conn: &ConnId| self.reserved.is_some_and(|(_, kept)| kept == *conn);
            let rooms =
                job_workers().filter(|(conn, _)| !is_kept(conn) && self.job_worker_room(peers, **conn) > 0).count();
            let open = job_workers().filter(|(conn, _)| self.is_open(peers, **conn)).count();
            assert_eq!(
                (rooms, open),
                pool.shown_len(),
                "job workers are shown as they are to jobs that need {labels:?}"
            );
            let known =
                |job_worker: &JobWorker| labels.is_empty() || job_worker.pools.iter().any(|pool| **pool == *labels);
            assert!(job_workers().all(|(_, job_worker)| known(job_worker)), "a job worker knows its pools");
        }
        let mut keys = BTreeMap::new();
        for (conn, job_worker) in &self.job_workers.by_conn {
            assert!(peers.get(*conn).is_some(), "a job worker is connected");
            assert_eq!(job_worker.greeted, peers.worker(*conn).is_some(), "a job worker that said HELLO is a worker");
            if job_worker.has_id {
                keys.insert(job_worker.key.clone(), *conn);
            }
            assert!(
                job_worker.pools.iter().all(|pool| has_all(&job_worker.labels, pool)),
                "a job worker is where its labels are wanted"
            );
            let offered = job_worker.offer.iter().flat_map(|offer| &offer.tasks);
            for (id, place, attempt) in offered {
                let has_it = job_worker.held.get(&(*id, *place)).is_none_or(|held| held.attempt == *attempt);
                assert!(has_it, "what is offered takes slots, unless it is over already");
            }
            for ((id, place), held) in &job_worker.held {
                let job = self.get(*id).filter(|job| !job.removing || job.has_ended());
                if let Some(running) = job.and_then(|job| job.running.get(place)) {
                    assert_eq!(
                        (running.conn, running.attempt),
                        (Some(*conn), held.attempt),
                        "slots are of one attempt"
                    );
                }
            }
        }
        assert_eq!(keys, self.job_workers.by_key, "job workers are known by their ids");
        if let Some((job, conn)) = self.reserved {
            assert!(self.is_open(peers, conn), "a job worker that is kept free is open to work");
            let width = self.get(job).map_or(0, |job| job.spec.slots);
            let slots = peers.worker(conn).map_or(0, |worker| worker.slots().as_count());
            assert!(slots >= u32::from(width), "a job worker that is kept free is large enough");
            let labels = self.get(job).map(|job| job.labels.clone()).unwrap_or_default();
            let has = self.job_workers.get(conn).is_some_and(|job_worker| has_all(&job_worker.labels, &labels));
            assert!(has, "a job worker that is kept free has what the job needs");
        }
    }

    /// Slots that tasks take of a worker.
    pub(crate) fn slots_of_tasks(&self, conn: ConnId) -> u32 {
        self.job_workers
            .get(conn)
            .map_or(0, |job_worker| job_worker.held.values().map(|held| u32::from(held.slots)).sum())
    }

    fn check_no_task_waits_beside_a_free_slot(&self, draining: bool) {
        let stalls = draining || self.disk_until.is_some();
        for (_, pool) in self.pools.each().filter(|_| !stalls) {
            if let Some((turn, width)) = pool.order.first(pool.most()) {
                let JobId(id) = turn.job;
                assert_eq!(pool.with_room(width), None, "job {id}: a task waits beside a free slot");
            }
        }
    }
}
