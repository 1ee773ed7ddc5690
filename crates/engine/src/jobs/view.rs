//! Views of jobs and tasks.

use bytes::Bytes;
use turno_proto::items;
use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::job::{JobId, JobSpec, JobView, TaskNumbers, TaskState, TaskView};
use turno_proto::model::limits::{LISTED_ITEM_BYTES_MAX, PAGE_MAX, TASKS_SEEN_MAX};
use turno_proto::model::view::{Because, JobsView, WorkerTaskView};
use turno_proto::model::{Code, ConnId, Moment, Seconds, TaskId};

use super::Jobs;
use super::context::JobsContext;
use super::explain::ExplainDepth;
use super::job::Job;
use super::job_worker::HeldTask;
use crate::page::page;

impl Jobs {
    pub(super) fn job_page(&self, cx: &JobsContext<'_>, before: Option<JobId>, limit: u32) -> AdminAnswer {
        let aheads = self.aheads();
        let ahead = |job: &Job| aheads.get(&job.id).copied().unwrap_or(0);
        let known = self.all.range(..before.unwrap_or(JobId(u64::MAX))).rev().map(|(_, job)| job);
        let told = known.filter(|job| job.storing.is_none() && !job.removing);
        // Why it waits: every worker may be looked at, and every task that waits for its next attempt.
        let work = |job: &&Job| self.job_workers.by_conn.len() + job.delayed.len();
        let (jobs, more) =
            page(told, limit, work, |job| self.job_view(cx, job, ExplainDepth::Listed { ahead: ahead(job) }, false));
        let next = jobs.last().filter(|_| more).map(|job| job.id);
        AdminAnswer::Jobs { jobs, next }
    }

    pub(super) fn job_answer(&self, cx: &JobsContext<'_>, id: Option<JobId>) -> Result<AdminAnswer, Code> {
        let latest = || {
            let told = self.all.values().rev().find(|job| job.storing.is_none() && !job.removing);
            told.map(|job| job.id)
        };
        let job = self.find_job(id.or_else(latest).ok_or(Code::NotFound)?)?;
        Ok(AdminAnswer::Job { job: Box::new(self.job_view(cx, job, ExplainDepth::Close, true)) })
    }

    pub(super) fn job_view(&self, cx: &JobsContext<'_>, job: &Job, look: ExplainDepth, whole: bool) -> JobView {
        let counts = job.counts();
        let started_at = job.started_unix_ms.map(Moment::from_unix_ms);
        let ended_at = job.ended_unix_ms.map(Moment::from_unix_ms);
        JobView {
            id: job.id,
            name: job.spec.name.clone(),
            state: job.state(),
            array: TaskNumbers { array: job.spec.array, parts: job.spec.parts.clone() },
            tasks: job.spec.array.count,
            counts,
            lost: self.lost_of(job),
            slots: job.spec.slots,
            priority: job.spec.priority,
            progress: counts.progress(),
            tags: job.spec.tags.clone(),
            items: if job.spec.items.is_empty() { 0 } else { job.spec.array.count },
            submitted_at: Moment::from_unix_ms(job.submitted_unix_ms),
            started_at,
            ended_at,
            seconds: Seconds::between(started_at, ended_at),
            because: self.reason_of(cx, job, look).map(Because),
            // Items may be megabytes: who submitted the job has them.
            spec: whole.then(|| Box::new(JobSpec { items: Bytes::new(), ..JobSpec::clone(&job.spec) })),
        }
    }

    /// Running tasks of a job whose worker is lost.
    fn lost_of(&self, job: &Job) -> u32 {
        if self.lost.is_empty() {
            return 0;
        }
        let lost = job.running.values().filter(|running| running.gone.is_some());
        u32::try_from(lost.count()).unwrap_or(u32::MAX)
    }

    /// All jobs, as counts.
    pub(crate) fn view(&self) -> JobsView {
        let (known, lost) = (self.all.len(), self.lost.len() as u64);
        let held: usize = self.job_workers.by_conn.values().map(|job_worker| job_worker.held.len()).sum();
        // Those that a connected worker did not name are among what it holds.
        let away = self.lost.iter().filter(|(_, job, place)| !self.is_held(*job, *place)).count();
        JobsView {
            known: known as u64,
            unfinished: (known - self.ended_count) as u64,
            tasks_running: (held + away) as u64,
            tasks_lost: lost,
        }
    }

    fn is_held(&self, job: JobId, place: u32) -> bool {
        let running = self.get(job).and_then(|job| job.running.get(&place));
        running.is_some_and(|running| running.conn.is_some())
    }

    /// How many tasks a worker has, and some of them.
    pub(crate) fn tasks_at(&self, conn: ConnId, most: usize) -> (u64, Vec<WorkerTaskView>) {
        let Some(job_worker) = self.job_workers.get(conn) else { return (0, Vec::new()) };
        let view = |(&(id, place), held): (&(JobId, u32), &HeldTask)| {
            let job = self.get(id);
            let running = job.and_then(|job| job.running.get(&place)).filter(|task| task.attempt == held.attempt);
            WorkerTaskView {
                id: TaskId { job: id, task: held.task },
                name: job.map(|job| job.spec.name.clone()).unwrap_or_default(),
                attempt: held.attempt,
                slots: held.slots,
                started_at: running.map(|running| Moment::from_unix_ms(running.started_unix_ms)),
            }
        };
        (job_worker.held.len() as u64, job_worker.held.iter().take(most).map(view).collect())
    }

    /// Tasks after that one. With a state wanted, a call looks at so many and not at all of a large job: a page may be
    /// short, and the next one go on.
    pub(super) fn task_page(
        &self,
        cx: &JobsContext<'_>,
        id: JobId,
        state: Option<TaskState>,
        after: Option<u32>,
        limit: u32,
    ) -> Result<AdminAnswer, Code> {
        let job = self.find_job(id)?;
        let numbers = job.spec.numbers();
        let limit = limit.clamp(1, PAGE_MAX) as usize;
        let from = numbers.place_after(after);
        let mut tasks = Vec::new();
        let mut next = None;
        if state == Some(TaskState::Running) {
            let mut rest = job.running.range(from..).map(|(place, _)| *place);
            tasks.extend(rest.by_ref().take(limit).map(|place| self.task_view(cx, job, place)));
            next = rest.next().and_then(|_| tasks.last()).map(|task| task.task);
        } else {
            for place in from..numbers.array.count {
                if tasks.len() == limit || place - from == TASKS_SEEN_MAX {
                    next = Some(numbers.number_of(place - 1));
                    break;
                }
                if state.is_none_or(|state| state == job.task_state(place)) {
                    tasks.push(self.task_view(cx, job, place));
                }
            }
        }
        Ok(AdminAnswer::Tasks { tasks, next })
    }

    pub(super) fn task_view(&self, cx: &JobsContext<'_>, job: &Job, place: u32) -> TaskView {
        let id = TaskId { job: job.id, task: job.spec.numbers().number_of(place) };
        let blank = TaskView {
            item: item_of(job, place, LISTED_ITEM_BYTES_MAX),
            ..TaskView::new(id, job.task_state(place), job.tried(place).attempt)
        };
        if let Some(running) = job.running.get(&place) {
            return TaskView {
                attempt: running.attempt,
                worker: Some(running.worker.to_string()),
                started_at: Some(Moment::from_unix_ms(running.started_unix_ms)),
                lost_until: running.gone.map(|gone| cx.settings.moment(gone)),
                ..blank
            };
        }
        let Some(end) = job.ended.get(place) else { return blank };
        let started_at = Some(Moment::from_unix_ms(end.started_unix_ms(job.submitted_unix_ms)));
        let ended_at = Some(Moment::from_unix_ms(end.ended_unix_ms(job.submitted_unix_ms)));
        TaskView {
            attempt: u32::from(end.attempt),
            worker: job.ended.worker_of(end).map(ToString::to_string),
            started_at,
            ended_at,
            seconds: Seconds::between(started_at, ended_at),
            exit_code: end.exit_code(),
            signal: end.signal(),
            status: job.ended.status_of(place).map(ToString::to_string),
            ..blank
        }
    }
}

/// The fields of a task's item, at most so many bytes of them. Each field counts for one byte more than it has.
pub(super) fn item_of(job: &Job, place: u32, bytes_max: usize) -> Vec<String> {
    let mut item = Vec::new();
    let mut room = bytes_max;
    for field in items::get(&job.spec.items, place).unwrap_or_default() {
        let kept = field.floor_char_boundary(room);
        if kept < field.len() || room == 0 {
            item.push(format!("{}…", field.get(..kept).unwrap_or_default()));
            break;
        }
        room -= (kept + 1).min(room);
        item.push(field.to_owned());
    }
    item
}
