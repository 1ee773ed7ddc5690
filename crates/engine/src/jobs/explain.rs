//! Explanations of the state of jobs and tasks.

use std::collections::BTreeMap;

use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::job::{JobId, JobReason, TaskReason, TaskState, TaskView};
use turno_proto::model::limits::SHOWN_ITEM_BYTES_MAX;
use turno_proto::model::view::Because;
use turno_proto::model::{Code, ConnId, Seconds};

use super::Jobs;
use super::context::JobsContext;
use super::job::{Job, Phase, Running, StopReason};
use super::labels::{Labels, has_all};
use super::order::Turn;
use super::pools::Pool;
use super::view::item_of;
use crate::messages::workers::peer::Worker;

/// How closely a job that waits is looked at.
#[derive(Clone, Copy, Debug)]
pub(super) enum ExplainDepth {
    /// At the job alone: every answer has that.
    Brief,
    /// As one of many, of which somebody has counted what is before each.
    Listed {
        /// Tasks of other jobs whose turn is before.
        ahead: u64,
    },
    /// At all jobs and all workers, for the one who asks.
    Close,
}

impl Jobs {
    /// How many tasks wait whose turn is before a job's, for each that something can be started of. It looks at all of
    /// them: for those who ask, not for every answer.
    pub(super) fn aheads(&self) -> BTreeMap<JobId, u64> {
        let mut turns: Vec<Turn> = self.turns().collect();
        turns.sort_unstable();
        let mut ahead = 0;
        let mut aheads = BTreeMap::new();
        for turn in turns {
            aheads.insert(turn.job, ahead);
            ahead += u64::from(self.all[&turn.job].waiting.len());
        }
        aheads
    }

    /// The same of one job: one look at all jobs, in the order in which they are kept.
    fn ahead_of(&self, job: &Job) -> u64 {
        let turn = job.turn();
        let before = self.all.values().filter(|other| other.placed.is_some_and(|placed| placed < turn));
        // A job that no job worker could take is before nobody. There is rarely one: what it takes is asked of few.
        let all_fit =
            self.pools.each().all(|(_, pool)| pool.order.widest().is_none_or(|width| width <= pool.largest()));
        let fits = |other: &&Job| {
            let largest = || self.pools.get(&other.labels).map_or(0, Pool::largest);
            all_fit || u32::from(other.spec.slots) <= largest()
        };
        before.filter(fits).map(|other| u64::from(other.waiting.len())).sum()
    }

    /// Jobs with tasks to start that some job worker could take.
    fn turns(&self) -> impl Iterator<Item = Turn> {
        self.pools.live().flat_map(|pool| pool.order.turns(pool.largest()))
    }
}

impl Jobs {
    pub(super) fn explain_task(&self, cx: &JobsContext<'_>, id: JobId, task: Option<u32>) -> Result<AdminAnswer, Code> {
        let job = self.find_job(id)?;
        let place = match task {
            Some(number) => job.spec.numbers().place_of(number).ok_or(Code::NotFound)?,
            None => telling_place(job),
        };
        let view = self.job_view(cx, job, ExplainDepth::Close, false);
        let because = self.task_reason(cx, job, place, view.because.as_deref());
        let item = item_of(job, place, SHOWN_ITEM_BYTES_MAX);
        let task = Box::new(TaskView { item, ..self.task_view(cx, job, place) });
        let attempts = self.past.of(id, place);
        Ok(AdminAnswer::TaskExplained { job: Box::new(view), task, because: Box::new(Because(because)), attempts })
    }

    /// Why a task is where it is, with what holds up the job.
    fn task_reason(&self, cx: &JobsContext<'_>, job: &Job, place: u32, of_job: Option<&JobReason>) -> TaskReason {
        if let Some(running) = job.running.get(&place) {
            return self.running_reason(cx, running);
        }
        if let Some(worker) = self.yet_to_let_go(job, place) {
            return TaskReason::Stopping { worker, time_limit: false };
        }
        match job.task_state(place) {
            TaskState::Finished => TaskReason::Finished,
            TaskState::Failed => TaskReason::Failed,
            TaskState::Cancelled => TaskReason::Cancelled,
            TaskState::Waiting | TaskState::Running if job.cancelling.contains(place) => TaskReason::Cancelling,
            TaskState::Waiting | TaskState::Running => {
                let last = place.checked_sub(1).filter(|_| job.waiting.contains(place));
                let before = last.map_or(0, |last| job.waiting.count_within(0, last));
                TaskReason::Waits { why: self.waiting_reason(cx, job, place, of_job), before }
            }
        }
    }

    /// The worker that still has an earlier attempt of a task that waits for its next one.
    fn yet_to_let_go(&self, job: &Job, place: u32) -> Option<String> {
        let mut job_workers = self.job_workers.by_conn.values().filter(|_| job.leaving.contains(&place));
        job_workers
            .find(|job_worker| job_worker.held.contains_key(&(job.id, place)))
            .map(|job_worker| job_worker.name.to_string())
    }

    fn running_reason(&self, cx: &JobsContext<'_>, running: &Running) -> TaskReason {
        let worker = running.worker.to_string();
        if running.ending.is_some() {
            return TaskReason::Ending { worker };
        }
        if let Some(gone) = running.gone {
            return TaskReason::Away { worker, left_seconds: Seconds::from_millis(gone.millis_left(cx.now)) };
        }
        if let Some(stop) = running.stop {
            return TaskReason::Stopping { worker, time_limit: stop == StopReason::TimeLimit };
        }
        match running.phase {
            Phase::Storing => TaskReason::Starting { worker },
            Phase::Offered => TaskReason::Offered { worker },
            Phase::Runs => {
                let for_ms = cx.unix_ms().saturating_sub(running.started_unix_ms);
                TaskReason::Runs { worker, for_seconds: Seconds::from_millis(for_ms) }
            }
        }
    }

    /// Why a task that waits does. As long as one may be started, it is what holds up the job.
    fn waiting_reason(&self, cx: &JobsContext<'_>, job: &Job, place: u32, of_job: Option<&JobReason>) -> JobReason {
        if let Some(reason) = self.barred(cx, job) {
            return reason;
        }
        if let Some(due) = job.delayed.get(&place) {
            return JobReason::Backoff { in_seconds: Seconds::from_millis(due.millis_left(cx.now)) };
        }
        of_job.cloned().expect("a close look at a job with a task that waits finds a reason")
    }

    /// Why nothing of it is started.
    pub(super) fn reason_of(&self, cx: &JobsContext<'_>, job: &Job, look: ExplainDepth) -> Option<JobReason> {
        if job.has_ended() {
            return too_many_failures(job).or_else(|| missed(job));
        }
        if let Some(reason) = self.barred(cx, job) {
            return Some(reason);
        }
        if job.waiting.is_empty() {
            let due = job.delayed.values().min().filter(|_| job.running.is_empty())?;
            return Some(JobReason::Backoff { in_seconds: Seconds::from_millis(due.millis_left(cx.now)) });
        }
        self.unplaced(cx, job, look)
    }

    /// The reason that holds up all tasks of a job, whichever job workers are there.
    fn barred(&self, cx: &JobsContext<'_>, job: &Job) -> Option<JobReason> {
        if let Some(reason) = too_many_failures(job).or_else(|| missed(job)) {
            return Some(reason);
        }
        if job.held {
            return Some(JobReason::Held);
        }
        if !job.after.is_empty() {
            let jobs: std::collections::BTreeSet<JobId> = job.after.iter().map(|after| after.job).collect();
            return Some(JobReason::After { jobs: jobs.into_iter().collect() });
        }
        if !job.holds.is_empty() {
            return Some(JobReason::Storing);
        }
        if cx.draining {
            return Some(JobReason::Draining);
        }
        self.disk_until.map(|_| JobReason::Disk)
    }

    /// Why a job whose task could be started has nobody for it.
    fn unplaced(&self, cx: &JobsContext<'_>, job: &Job, look: ExplainDepth) -> Option<JobReason> {
        if let Some(max) = job.spec.max_parallel.filter(|max| job.running.len() >= *max as usize) {
            return Some(JobReason::MaxParallel { max });
        }
        let largest = self.largest_for(cx, job);
        if largest == 0 {
            let labels: Vec<String> = job.spec.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let all = self.pools.get(&Labels::default()).map_or(0, Pool::largest);
            return Some(if labels.is_empty() || all == 0 {
                JobReason::NoWorker
            } else {
                JobReason::NoLabels { labels }
            });
        }
        let width = job.spec.slots;
        if largest < u32::from(width) {
            return Some(JobReason::TooWide { slots: width, largest });
        }
        let ahead = match look {
            ExplainDepth::Brief => return None,
            ExplainDepth::Listed { ahead } => ahead,
            ExplainDepth::Close => self.ahead_of(job),
        };
        let job_workers = self.job_workers_for(cx, job);
        if let ExplainDepth::Close = look
            && let Some(reason) = self.room_elsewhere(cx, job, &job_workers)
        {
            return Some(reason);
        }
        let slots = job_workers.iter().map(|conn| u64::from(self.slots_of_job_worker(cx, *conn))).sum();
        Some(JobReason::Busy { slots, ahead })
    }

    /// Some job worker has room for a task of it, but is reserved or not open to work.
    fn room_elsewhere(&self, cx: &JobsContext<'_>, job: &Job, job_workers: &[ConnId]) -> Option<JobReason> {
        let room = |conn: &ConnId| cx.worker(*conn).map_or(0, Worker::room);
        let roomy = || job_workers.iter().filter(|conn| room(conn) >= u32::from(job.spec.slots));
        if let Some((other, kept)) = self.reserved
            && other != job.id
            && roomy().any(|conn| *conn == kept)
        {
            let worker = self.job_workers.get(kept).map_or_else(String::new, |job_worker| job_worker.name.to_string());
            return Some(JobReason::Kept { job: other, worker });
        }
        let workers = u32::try_from(roomy().count()).unwrap_or(u32::MAX);
        (workers > 0).then_some(JobReason::Unready { workers })
    }

    /// The job workers that are open to work and may have tasks of that job.
    fn job_workers_for(&self, cx: &JobsContext<'_>, job: &Job) -> Vec<ConnId> {
        match self.pools.get(&job.labels) {
            Some(pool) => pool.open().collect(),
            // Nothing of it can be started, so that nobody looked for them.
            None => {
                let job_workers =
                    self.job_workers.by_conn.iter().filter(|(_, job_worker)| has_all(&job_worker.labels, &job.labels));
                job_workers.map(|(conn, _)| *conn).filter(|conn| self.is_open(cx.peers(), *conn)).collect()
            }
        }
    }

    /// Slots of the largest of them.
    fn largest_for(&self, cx: &JobsContext<'_>, job: &Job) -> u32 {
        match self.pools.get(&job.labels) {
            Some(pool) => pool.largest(),
            None => {
                self.job_workers_for(cx, job).iter().map(|conn| self.slots_of_job_worker(cx, *conn)).max().unwrap_or(0)
            }
        }
    }

    fn slots_of_job_worker(&self, cx: &JobsContext<'_>, conn: ConnId) -> u32 {
        cx.worker(conn).map_or(0, |worker| worker.slots().as_count())
    }
}

/// The place of the task that tells most about a job.
fn telling_place(job: &Job) -> u32 {
    let soonest = || job.delayed.iter().min_by_key(|(_, due)| **due).map(|(place, _)| *place);
    let running = || job.running.keys().next().copied();
    job.waiting.first().or_else(soonest).or_else(running).or_else(|| job.cancelling.first()).unwrap_or(0)
}

/// It never began and never will, for what a job that it depends on came to.
fn missed(job: &Job) -> Option<JobReason> {
    let one = job.first_missed().filter(|_| job.started_unix_ms.is_none())?;
    Some(JobReason::Missed { job: one.job, when: one.when })
}

/// Nothing of it is started any more.
fn too_many_failures(job: &Job) -> Option<JobReason> {
    job.spec.max_failures.filter(|_| job.has_too_many_failures()).map(|max| JobReason::MaxFailures { max })
}
