//! The end of an attempt: stored first, then counted, then acknowledged to the worker (S4.73). Until then the task
//! runs.

use std::sync::Arc;

use turno_proto::model::job::{JobId, TaskState};
use turno_proto::model::limits::{BACKOFF_MS_MAX, TASK_STATUS_BYTES_MAX};
use turno_proto::model::{ConnId, Mono};

use super::JobAfterStored;
use super::Jobs;
use super::context::{Consequence, JobsContext};
use super::ended::split;
use super::event::{ForemanOrder, Update};
use super::hello::cut;
use super::job::{AttemptEnding, Job, Outcome, Phase, Running, StopReason, UpdateId};
use super::record::{TaskEnd, TaskRecord};
use crate::effect::Sink;

/// The status of a task that exceeded its time limit.
const TIME_LIMIT: &str = "time_limit";
/// The status of a task whose workers were lost too often.
pub(super) const WORKER_LOST: &str = "worker_lost";
/// The status of an attempt that its worker, or the broker that ended the worker, gave back.
pub(super) const GIVEN_BACK: &str = "given_back";

impl Jobs {
    /// UPDATE.
    pub(super) fn updated(&mut self, cx: &mut JobsContext<'_>, conn: ConnId, update: Update, out: &mut impl Sink) {
        let Update { request, job: id, task, attempt, .. } = update;
        let Some(job_worker) = self.job_workers.get_mut(conn) else { return };
        if !job_worker.greeted {
            return Self::order(conn, ForemanOrder::SendHello { request }, out);
        }
        if job_worker.told_free.take().is_some() {
            self.show_job_worker(cx, conn);
        }
        let Some(place) = self.place_spoken_of(conn, id, task, attempt) else {
            // It was lost and given to another, or is over, or never was: the worker may forget it.
            cx.cause(Consequence::Late);
            return Self::order(conn, ForemanOrder::Acknowledge { request }, out);
        };
        let Some(running) = self.all.get_mut(&id).and_then(|job| job.running.get_mut(&place)) else {
            // It was cancelled before, and this says that its process is gone.
            self.let_go(cx, conn, (id, place));
            return Self::order(conn, ForemanOrder::Acknowledge { request }, out);
        };
        if let Some(ending) = &mut running.ending {
            // The same again over another connection, or the last report of a task that is being cancelled.
            ending.keeps_slots = false;
            ending.requests.push(UpdateId { conn, request });
            return;
        }
        if update.given_back && running.stop.is_none() {
            return self.given_back(cx, id, place, UpdateId { conn, request }, out);
        }
        cx.count_end(conn, update.success);
        if update.success {
            let now_unix_ms = cx.unix_ms();
            let end = ended(self.at(id), place, TaskState::Finished, &update, now_unix_ms);
            self.end_attempt(
                cx,
                id,
                place,
                AttemptEnding::new(Outcome::Ended(end), Some(UpdateId { conn, request })),
                out,
            );
        } else {
            self.attempt_failed(cx, id, place, Some((conn, &update)), out);
        }
    }

    /// The place of a task that the worker can say something about: it has that attempt, or had it when its connection was
    /// lost.
    fn place_spoken_of(&self, conn: ConnId, id: JobId, task: u32, attempt: Option<u32>) -> Option<u32> {
        let job_worker = self.job_workers.get(conn)?;
        let Some(job) = self.get(id) else {
            // The job may have been removed while a process of it was told to stop.
            let mut left = job_worker.held.range((id, 0)..=(id, u32::MAX));
            return left.find(|(_, held)| held.task == task).map(|((_, place), _)| *place);
        };
        let place = job.spec.numbers().place_of(task)?;
        let running = job.running.get(&place);
        let may_speak = if let Some(held) = job_worker.held.get(&(id, place)) {
            let knows = running.is_none_or(|running| running.phase != Phase::Storing);
            knows && attempt.is_none_or(|attempt| attempt == held.attempt)
        } else {
            running.is_some_and(|running| {
                let was_lost = running.conn.is_none() && running.phase != Phase::Storing;
                was_lost && attempt.map_or(running.key == job_worker.key, |attempt| attempt == running.attempt)
            })
        };
        may_speak.then_some(place)
    }

    /// Its worker ended it for its own reasons: another attempt at once, and nobody failed.
    fn given_back(&mut self, cx: &mut JobsContext<'_>, id: JobId, place: u32, request: UpdateId, out: &mut impl Sink) {
        let (due, now_unix_ms) = (cx.now, cx.unix_ms());
        let job = self.at(id);
        let mut tried = job.tried(place);
        tried.attempt = job.running[&place].attempt;
        let end = TaskEnd { status: Arc::from(GIVEN_BACK), ..end_of(job, place, TaskState::Cancelled, now_unix_ms) };
        let outcome = Outcome::Again { tried, due, end: Box::new(end) };
        self.end_attempt(cx, id, place, AttemptEnding::new(outcome, Some(request)), out);
    }

    /// An attempt failed: another one after a while, if the job grants one, or the end. `update` is what its worker says;
    /// without it the task has had too much time.
    pub(super) fn attempt_failed(
        &mut self,
        cx: &mut JobsContext<'_>,
        id: JobId,
        place: u32,
        update: Option<(ConnId, &Update)>,
        out: &mut impl Sink,
    ) {
        let now_unix_ms = cx.unix_ms();
        let now = cx.now;
        let job = self.at(id);
        let running = &job.running[&place];
        let stop = running.stop;
        let mut tried = job.tried(place);
        (tried.attempt, tried.failures) = (running.attempt, tried.failures.saturating_add(1));
        let mut end = match update {
            Some((_, update)) => ended(job, place, TaskState::Failed, update, now_unix_ms),
            None => end_of(job, place, TaskState::Failed, now_unix_ms),
        };
        if stop == Some(StopReason::TimeLimit) {
            end.status = Arc::from(TIME_LIMIT);
        }
        let outcome = if stop == Some(StopReason::Cancel) {
            Outcome::Ended(end_of(job, place, TaskState::Cancelled, now_unix_ms))
        } else if tried.failures <= u16::from(job.spec.retries) {
            Outcome::Again { tried, due: backoff(job.spec.backoff_ms, tried.failures, now), end: Box::new(end) }
        } else {
            Outcome::Ended(end)
        };
        let request = update.map(|(conn, update)| UpdateId { conn, request: update.request });
        self.end_attempt(cx, id, place, AttemptEnding::new(outcome, request), out);
    }

    /// A running task was cancelled. With `keeps_slots` its worker still has its process.
    pub(super) fn end_cancelled(
        &mut self,
        cx: &mut JobsContext<'_>,
        id: JobId,
        place: u32,
        keeps_slots: bool,
        out: &mut impl Sink,
    ) {
        let now_unix_ms = cx.unix_ms();
        let end = end_of(self.at(id), place, TaskState::Cancelled, now_unix_ms);
        let ending = AttemptEnding { keeps_slots, ..AttemptEnding::new(Outcome::Ended(end), None) };
        self.end_attempt(cx, id, place, ending, out);
    }

    /// The workers of a task were lost too often.
    pub(super) fn end_lost(&mut self, cx: &mut JobsContext<'_>, id: JobId, place: u32, out: &mut impl Sink) {
        let now_unix_ms = cx.unix_ms();
        let mut end = end_of(self.at(id), place, TaskState::Failed, now_unix_ms);
        end.status = Arc::from(WORKER_LOST);
        self.end_attempt(cx, id, place, AttemptEnding::new(Outcome::Ended(end), None), out);
    }

    fn end_attempt(
        &mut self,
        cx: &mut JobsContext<'_>,
        id: JobId,
        place: u32,
        ending: AttemptEnding,
        out: &mut impl Sink,
    ) {
        self.set_limit(id, place, None);
        self.set_gone(id, place, None);
        let running = self.at(id).running.get_mut(&place).expect("what ends runs");
        running.ending = Some(Box::new(ending));
        self.store_ending(cx, id, place, out);
    }

    /// Writes down how an attempt ended.
    pub(super) fn store_ending(&mut self, cx: &mut JobsContext<'_>, id: JobId, place: u32, out: &mut impl Sink) {
        let running = &self.at(id).running[&place];
        let record = match &running.ending.as_ref().expect("it ends").outcome {
            Outcome::Ended(end) => TaskRecord::Ended(end.clone()),
            Outcome::Again { tried, due, .. } => {
                // A retry that is due now stays due, also by a clock that is set back before the next start.
                let due_unix_ms = if *due > cx.now { cx.settings.unix_ms(*due) } else { 0 };
                TaskRecord::Waiting { tried: *tried, due_unix_ms }
            }
        };
        self.store_task(cx, id, place, record);
        self.once_stored(cx, JobAfterStored::Ended { job: id, place }, out);
    }

    /// The end of an attempt is stored: now it counts.
    pub(super) fn attempt_ended(&mut self, cx: &mut JobsContext<'_>, id: JobId, place: u32, out: &mut impl Sink) {
        let running = self.at(id).running.get_mut(&place).expect("it runs until its end is stored");
        let AttemptEnding { outcome, keeps_slots, requests } = *running.ending.take().expect("its end was stored");
        if !keeps_slots {
            self.free_slots(cx, id, place);
        }
        for UpdateId { conn, request } in requests {
            if self.is_job_worker(conn) {
                Self::order(conn, ForemanOrder::Acknowledge { request }, out);
            }
        }
        match outcome {
            Outcome::Again { .. } if self.at(id).running[&place].stop == Some(StopReason::Cancel) => {
                self.end_cancelled(cx, id, place, false, out);
            }
            Outcome::Again { tried, due, end } => {
                self.past.add(id, place, *end);
                self.at(id).tried.insert(place, tried);
                self.task_waits_again(id, place, (due > cx.now).then_some(due));
            }
            Outcome::Ended(end) => {
                let job = self.at(id);
                job.running.remove(&place);
                job.tried.remove(&place);
                job.end(place, &end);
                self.note_full(cx, id, split(place).0);
                self.refresh(id);
                self.note_end(cx, id);
                self.end_after_failures(cx, id, out);
            }
        }
    }
}

/// When the attempt after that many failures is due.
pub(super) fn backoff(first_ms: u32, failures: u16, now: Mono) -> Mono {
    let doublings = u32::from(failures.saturating_sub(1)).min(32);
    now.plus_millis((u64::from(first_ms) << doublings).min(BACKOFF_MS_MAX))
}

pub(super) fn end_of(job: &Job, place: u32, state: TaskState, now_unix_ms: u64) -> TaskEnd {
    let Running { attempt, worker, started_unix_ms, .. } = &job.running[&place];
    TaskEnd {
        state,
        attempt: *attempt,
        worker: Arc::clone(worker),
        started_unix_ms: *started_unix_ms,
        // The clock may have been set back since the start.
        ended_unix_ms: now_unix_ms.max(*started_unix_ms),
        exit_code: None,
        signal: None,
        status: Arc::default(),
    }
}

/// The same with what its worker says. Its clock may be wrong: a time that cannot be is not believed.
fn ended(job: &Job, place: u32, state: TaskState, update: &Update, now_unix_ms: u64) -> TaskEnd {
    let end = end_of(job, place, state, now_unix_ms);
    let possible = end.started_unix_ms..=now_unix_ms;
    let started_unix_ms =
        update.started_unix_ms.filter(|started| possible.contains(started)).unwrap_or(end.started_unix_ms);
    let possible = started_unix_ms..=now_unix_ms;
    let ended_unix_ms = update.ended_unix_ms.filter(|ended| possible.contains(ended)).unwrap_or(end.ended_unix_ms);
    let said = if state == TaskState::Failed { cut(&update.status, TASK_STATUS_BYTES_MAX) } else { "" };
    let status = Arc::from(said);
    TaskEnd { started_unix_ms, ended_unix_ms, exit_code: update.exit_code, signal: update.signal, status, ..end }
}
