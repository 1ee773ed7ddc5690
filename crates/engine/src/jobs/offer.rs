//! Offers of tasks to job workers. Each task goes to the least recently used worker; all tasks for one worker are one
//! JOB frame, sent once their starts are stored. A worker has one open JOB at a time.

use std::sync::Arc;

use turno_proto::model::job::JobId;
use turno_proto::model::limits::{
    FILL_PLACES_MAX, OFFER_BYTES_MAX, OFFER_TASKS_MAX, REFUSAL_PAUSE_MS, STARTS_MAX, TIME_LIMIT_SLACK_MS,
};
use turno_proto::model::{ConnId, Mono};
use turno_proto::{items, placeholders};

use super::Jobs;
use super::context::JobsContext;
use super::event::{ForemanOrder, OfferedTask};
use super::job::{Job, Phase, Running, StopReason};
use super::job_worker::{HeldTask, JobOffer};
use super::labels::has_all;
use super::received::ReceivedBytes;
use super::record::{AttemptCounts, TaskRecord};
use super::timers::JobTimer;
use crate::effect::Sink;

/// Bytes of a task's number wherever it may stand, in quotes.
const NUMBERS_BYTES_MAX: usize = FILL_PLACES_MAX * 12;

impl JobOffer {
    pub(super) const fn has_room(&self) -> bool {
        self.tasks.len() < OFFER_TASKS_MAX && self.bytes < OFFER_BYTES_MAX
    }
}

impl Jobs {
    /// Gives tasks to job workers, as long as one fits.
    pub(super) fn hand_out(&mut self, cx: &mut JobsContext<'_>, out: &mut impl Sink) {
        if cx.draining || self.disk_until.is_some() || self.pools.is_idle() {
            return self.unreserve_job_worker_unless_needed(cx);
        }
        let mut chosen = Vec::new();
        let mut starts = 0;
        while starts < STARTS_MAX
            && let Some((job, conn)) = self.next_match(cx)
        {
            if self.start(cx, job, conn) == 1 {
                chosen.push(conn);
            }
            starts += 1;
        }
        for conn in chosen {
            self.seal(cx, conn, out);
        }
    }

    /// The job whose turn it is, and the job worker.
    fn next_match(&mut self, cx: &mut JobsContext<'_>) -> Option<(JobId, ConnId)> {
        loop {
            self.unreserve_job_worker_unless_needed(cx);
            if let Some((job, conn)) = self.reserved
                && self.job_worker_room(cx.peers(), conn) >= u32::from(self.at(job).spec.slots)
            {
                self.unreserve_job_worker(cx);
                return Some((job, conn));
            }
            let (head, width, pool) = self.pools.head()?;
            if let Some(conn) = pool.with_room(width) {
                return Some((head.job, conn));
            }
            if width > 1 && self.reserve_job_worker(cx, head.job, width) {
                continue;
            }
            let (turn, width, pool) = self.pools.first()?;
            return Some((turn.job, pool.with_room(width).expect("one has the most room")));
        }
    }

    /// Nobody has room for a wide task whose turn it is: the next job worker that is large enough is kept free for it. One at a
    /// time, so that wide jobs cannot empty all job workers.
    fn reserve_job_worker(&mut self, cx: &mut JobsContext<'_>, job: JobId, width: u16) -> bool {
        if self.reserved.is_some() {
            return false;
        }
        let pool = self.pools.get(&self.all[&job].labels);
        let Some(conn) = pool.and_then(|pool| pool.of_size(width)) else { return false };
        self.reserved = Some((job, conn));
        self.show_job_worker(cx, conn);
        true
    }

    /// The job worker is kept for nobody if the job has nothing to start any more, or the job worker cannot take it.
    fn unreserve_job_worker_unless_needed(&mut self, cx: &mut JobsContext<'_>) {
        let Some((job, conn)) = self.reserved else { return };
        let may_have_it = |job: &&Job| {
            let labels = self.job_workers.get(conn).map(|job_worker| &job_worker.labels);
            job.placed.is_some() && labels.is_some_and(|labels| has_all(labels, &job.labels))
        };
        let width = self.get(job).filter(may_have_it).map(|job| u32::from(job.spec.slots));
        let slots = cx.worker(conn).map_or(0, |worker| worker.slots().as_count());
        if cx.draining || !self.is_open(cx.peers(), conn) || width.is_none_or(|width| width > slots) {
            self.unreserve_job_worker(cx);
        }
    }

    fn unreserve_job_worker(&mut self, cx: &mut JobsContext<'_>) {
        if let Some((_, conn)) = self.reserved.take() {
            self.show_job_worker(cx, conn);
        }
    }

    /// The next task of the job takes slots of the job worker. Returns how many tasks its offer has now.
    fn start(&mut self, cx: &mut JobsContext<'_>, id: JobId, conn: ConnId) -> usize {
        let now_unix_ms = cx.unix_ms();
        let job = self.all.get_mut(&id).expect("its turn came");
        // More may run than that, if a lost worker comes back after a restart; but none is started.
        let full = job.spec.max_parallel.is_some_and(|max| job.running.len() >= max as usize);
        assert!(!full, "no more are started than may run at a time");
        let place = job.waiting.pop_first().expect("a job whose turn it is has a task that waits");
        let tried = job.tried(place);
        let tried = AttemptCounts { attempt: tried.attempt + 1, ..tried };
        let job_worker = self.job_workers.by_conn.get_mut(&conn).expect("a job worker with room is there");
        let (key, worker) = (Arc::clone(&job_worker.key), Arc::clone(&job_worker.name));
        let slots = job.spec.slots;
        let work = job.spec.work.len();
        let task = job.spec.numbers().number_of(place);
        job_worker
            .held
            .insert((id, place), HeldTask { task, attempt: tried.attempt, slots, handed_in: ReceivedBytes::default() });
        job_worker.told_free = job_worker.told_free.map(|free| free.saturating_sub(u32::from(slots)));
        let offer = job_worker.offer.get_or_insert_with(|| JobOffer { id: 0, tasks: Vec::new(), bytes: 0 });
        offer.tasks.push((id, place, tried.attempt));
        // An item may be long, and stand in many places.
        let item = items::len(&job.spec.items, place);
        offer.bytes += item.map_or(work + NUMBERS_BYTES_MAX, |item| placeholders::bytes_max(work, item));
        let offered = offer.tasks.len();
        job.running.insert(
            place,
            Running {
                attempt: tried.attempt,
                conn: Some(conn),
                key: Arc::clone(&key),
                worker: Arc::clone(&worker),
                started_unix_ms: now_unix_ms,
                phase: Phase::Storing,
                stop: None,
                ending: None,
                limit: None,
                gone: None,
                handed_in: ReceivedBytes::default(),
            },
        );
        job.started_unix_ms.get_or_insert(now_unix_ms);
        cx.take(conn, slots);
        self.show_job_worker(cx, conn);
        self.refresh(id);
        self.store_task(cx, id, place, TaskRecord::Running { tried, key, worker, started_unix_ms: now_unix_ms });
        offered
    }

    /// Nothing more is added to the job worker's offer.
    fn seal(&mut self, cx: &mut JobsContext<'_>, conn: ConnId, out: &mut impl Sink) {
        self.offers += 1;
        let id = self.offers;
        let job_worker = self.job_workers.get_mut(conn).expect("it was just given something");
        job_worker.offer.as_mut().expect("it was just given something").id = id;
        self.show_job_worker(cx, conn);
        self.once_stored(cx, super::JobAfterStored::Offer { conn, offer: id }, out);
    }

    /// All starts of an offer are stored: the job worker hears of it.
    pub(super) fn send_offer(&mut self, cx: &mut JobsContext<'_>, conn: ConnId, id: u64, out: &mut impl Sink) {
        self.due = true;
        let Some(offer) =
            self.job_workers.get_mut(conn).and_then(|job_worker| job_worker.offer.take_if(|offer| offer.id == id))
        else {
            return;
        };
        let mut tasks = Vec::with_capacity(offer.tasks.len());
        let mut told = Vec::with_capacity(offer.tasks.len());
        for (id, place, attempt) in offer.tasks {
            let job = self.all.get_mut(&id).expect("rooms hold numbers of jobs that are there");
            let running = job.running.get_mut(&place).expect("what is offered runs");
            // The job worker may have said meanwhile that it is another.
            let has_labels =
                || self.job_workers.get(conn).is_some_and(|job_worker| has_all(&job_worker.labels, &job.labels));
            let may_have_it = job.labels.is_empty() || has_labels();
            if running.stop.is_some() || !may_have_it {
                self.take_back(cx, id, place, out);
                self.store_waiting(cx, id, place);
                continue;
            }
            running.phase = Phase::Offered;
            tasks.push(OfferedTask {
                job: id,
                task: job.spec.numbers().number_of(place),
                attempt,
                slots: job.spec.slots,
                time_limit_ms: job.spec.time_limit_ms,
                name: Arc::clone(&job.name),
                count: job.spec.array.count,
                work: job.spec.work.clone(),
                items: job.spec.items.clone(),
                place,
            });
            told.push((id, place, attempt));
        }
        if !tasks.is_empty() {
            let job_worker = self.job_workers.get_mut(conn).expect("it has an offer");
            job_worker.offer = Some(JobOffer { id, tasks: told, bytes: offer.bytes });
            Self::order(conn, ForemanOrder::Offer { offer: id, tasks }, out);
        }
        self.show_job_worker(cx, conn);
    }

    /// The starts of an offer were not stored: its tasks wait again, and nothing is started for a while.
    pub(super) fn offer_not_stored(&mut self, cx: &mut JobsContext<'_>, conn: ConnId, id: u64, out: &mut impl Sink) {
        self.pause_for_disk(cx);
        let Some(offer) =
            self.job_workers.get_mut(conn).and_then(|job_worker| job_worker.offer.take_if(|offer| offer.id == id))
        else {
            return;
        };
        for (job, place, _) in offer.tasks {
            self.take_back(cx, job, place, out);
        }
        self.show_job_worker(cx, conn);
    }

    /// OK to a JOB: its tasks run (S4.71), and have their time from now on.
    pub(super) fn accepted(&mut self, cx: &mut JobsContext<'_>, conn: ConnId, id: u64) {
        let Some(offer) = self.answered(conn, id) else { return };
        for (job, place, attempt) in offer.tasks {
            if let Some(running) = self.running_at(conn, job, place, attempt) {
                running.phase = Phase::Runs;
                self.begin_time(cx, job, place);
            }
        }
        self.show_job_worker(cx, conn);
    }

    /// A task runs, as its worker says: its time begins, unless it has.
    pub(super) fn begin_time(&mut self, cx: &JobsContext<'_>, id: JobId, place: u32) {
        let job = self.at(id);
        let running = &job.running[&place];
        let begins = running.limit.is_none() && running.ending.is_none() && running.stop.is_none();
        if let Some(limit_ms) = job.spec.time_limit_ms.filter(|_| begins) {
            let limit = cx.now.plus_millis(limit_ms.saturating_add(TIME_LIMIT_SLACK_MS));
            self.set_limit(id, place, Some(limit));
        }
    }

    /// ERROR to a JOB: nothing of it was started. Its tasks wait again, and their attempts do not count. So that refusals
    /// cannot go round at the speed of the wire, the job worker is offered nothing for a second (S4.61).
    pub(super) fn refused_offer(
        &mut self,
        cx: &mut JobsContext<'_>,
        conn: ConnId,
        id: u64,
        slots_free: u16,
        out: &mut impl Sink,
    ) {
        let Some(offer) = self.answered(conn, id) else { return };
        let mut wanted = 0;
        for (job, place, attempt) in offer.tasks {
            let Some(running) = self.running_at(conn, job, place, attempt) else { continue };
            if running.ending.is_none() && running.phase == Phase::Offered {
                wanted += u32::from(self.at(job).spec.slots);
                self.take_back(cx, job, place, out);
                self.store_waiting(cx, job, place);
            }
        }
        let until = cx.now.plus_millis(REFUSAL_PAUSE_MS);
        let job_worker = self.job_workers.get_mut(conn).expect("it has just answered");
        job_worker.told_free = (u32::from(slots_free) < wanted).then_some(u32::from(slots_free));
        if let Some(before) = job_worker.paused.replace(until) {
            self.timers.remove(&(before, JobTimer::Pause(conn)));
        }
        self.timers.insert((until, JobTimer::Pause(conn)));
        self.show_job_worker(cx, conn);
    }

    /// The second after a refusal is over.
    pub(super) fn pause_over(&mut self, cx: &mut JobsContext<'_>, conn: ConnId) {
        if let Some(job_worker) = self.job_workers.get_mut(conn) {
            job_worker.paused = None;
            // One that says that nothing is free and reports no end is asked again.
            job_worker.told_free = job_worker.told_free.filter(|free| *free > 0);
            self.show_job_worker(cx, conn);
        }
    }

    /// The offer that is answered, if it is the one that was sent.
    fn answered(&mut self, conn: ConnId, id: u64) -> Option<JobOffer> {
        let job_worker = self.job_workers.get_mut(conn)?;
        let (job, place, _) = *job_worker.offer.as_ref().filter(|offer| offer.id == id)?.tasks.first()?;
        let was_sent = self.get(job)?.running.get(&place).is_none_or(|running| running.phase != Phase::Storing);
        self.job_workers.get_mut(conn)?.offer.take_if(|_| was_sent)
    }

    /// That attempt of a task, if it takes slots of that connection.
    pub(super) fn running_at(&mut self, conn: ConnId, job: JobId, place: u32, attempt: u32) -> Option<&mut Running> {
        let running = self.all.get_mut(&job)?.running.get_mut(&place)?;
        (running.conn == Some(conn) && running.attempt == attempt).then_some(running)
    }

    /// The task has not begun: it waits again, and its attempt was none. If it was cancelled meanwhile, that is its end.
    pub(super) fn take_back(&mut self, cx: &mut JobsContext<'_>, id: JobId, place: u32, out: &mut impl Sink) {
        self.free_slots(cx, id, place);
        let job = self.at(id);
        if job.running[&place].stop == Some(StopReason::Cancel) {
            return self.end_cancelled(cx, id, place, false, out);
        }
        self.task_waits_again(id, place, None);
    }

    /// A running task is none any more, and waits for its next attempt from that moment on.
    pub(super) fn task_waits_again(&mut self, id: JobId, place: u32, due: Option<Mono>) {
        self.set_limit(id, place, None);
        self.set_gone(id, place, None);
        let job = self.at(id);
        job.running.remove(&place);
        match due {
            None => job.waiting.insert(place),
            Some(due) => {
                job.delayed.insert(place, due);
                self.timers.insert((due, JobTimer::Retry(id, place)));
            }
        }
        self.refresh(id);
        self.due = true;
    }

    /// A running task takes slots no longer.
    pub(super) fn free_slots(&mut self, cx: &mut JobsContext<'_>, id: JobId, place: u32) {
        let running = self.at(id).running.get_mut(&place).expect("it runs");
        if let Some(conn) = running.conn.take() {
            self.let_go(cx, conn, (id, place));
        }
    }
}
