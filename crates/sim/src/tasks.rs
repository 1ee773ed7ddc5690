//! The oracle of jobs: what submitters were answered, what workers were told and what they said (I19, I20).
//!
//! It never looks into the broker. An attempt is live as long as the process that runs it is there and its end is not
//! confirmed. Doubt is allowed where the protocol allows it: a worker that was away for longer than its grace, or was
//! told to end at once, may have tasks that were given to others meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::foreman::{Task, WireTaskId};
use turno_proto::model::Mono;
use turno_proto::model::job::{AfterWhen, JobSpec, JobState, JobView, TaskCounts, TaskState, TaskView};
use turno_proto::model::limits::{TASK_GRACE_MS, TASK_LOSSES_MAX};

use crate::clocks::{Clock, Clocks, Span};
use crate::job_workers::ReportedEnd;
use crate::output::{Name, Outputs};
use crate::retries::Retry;
use crate::rng::Rng;

/// The ends of a connection learn of its end at different moments.
const GRACE_MS: u64 = TASK_GRACE_MS - 2_000;
/// A frame that was on its way to a worker when a task was cancelled is there by then, if nothing holds up its connection.
const ON_ITS_WAY_MS: u64 = 10_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Running,
    Said {
        success: bool,
    },
    /// The foreman has it; `firmly`: as the report of the attempt that counts.
    Told {
        success: bool,
        firmly: bool,
    },
    /// Its process was lost.
    Gone,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Attempt {
    worker: usize,
    pub(crate) stage: Stage,
    /// When it was over at its worker, and when that was confirmed.
    pub(crate) over: Mono,
    pub(crate) told: Mono,
    /// Worker or foreman was away while it ran: should it be cancelled, the foreman does not wait until it is over.
    shaky: bool,
    /// Somebody else may have the task.
    doubtful: bool,
    told_to_stop: bool,
    /// When it was started, by whose clock, and how long the foreman lets it run, if its job has a time limit.
    limit: Option<(Mono, Clock, u64)>,
}

/// A cancel that was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cancel {
    asked: Mono,
    first: u32,
    last: u32,
    answered: Option<Mono>,
}

#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) number: u64,
    /// The submitter was told of it.
    promised: bool,
    /// Somebody may have removed it.
    removed: bool,
    cancels: Vec<Cancel>,
    pub(crate) retries: Vec<Retry>,
}

/// The state of a worker.
#[derive(Clone, Copy, Debug, Default)]
struct WorkerStanding {
    apart_since: Option<Mono>,
    /// It was asked to stop, to stop at once.
    stops: bool,
    stops_now: bool,
}

/// Where a worker heard something: when its connection began, whether that ever had to wait, and the clock of the broker at its
/// other end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerConnection {
    pub(crate) worker: usize,
    pub(crate) since: Mono,
    pub(crate) flawless: bool,
    pub(crate) clock: Clock,
}

#[derive(Debug, Default)]
pub(crate) struct Tasks {
    /// The broker that they are at.
    pub(crate) foreman: usize,
    /// Some workers lie: what they say of others' tasks may be believed.
    pub(crate) lax: bool,
    pub(crate) asked: BTreeMap<u64, JobSpec>,
    pub(crate) jobs: BTreeMap<u64, Known>,
    pub(crate) attempts: BTreeMap<(u64, u32, u32), Attempt>,
    workers: BTreeMap<usize, WorkerStanding>,
    /// Tasks that were started.
    pub(crate) started: u64,
    /// Their kept output.
    pub(crate) outputs: Outputs,
}

/// The name of a job of this world.
pub(crate) fn name_of(number: u64) -> String {
    format!("job-{number}")
}

fn number_of(name: &str) -> Option<u64> {
    name.strip_prefix("job-")?.parse().ok()
}

impl Tasks {
    pub(crate) fn submits(&mut self, number: u64, spec: &JobSpec) {
        self.asked.insert(number, spec.clone());
    }

    /// The submission with that number, if it has a key.
    pub(crate) fn keyed(&self, number: u64) -> Option<JobSpec> {
        self.asked.get(&number).filter(|spec| spec.key.is_some()).cloned()
    }

    /// The job with that id, which has that name.
    fn meet(&mut self, id: u64, name: &str) -> &mut Known {
        let number = number_of(name).filter(|number| self.asked.contains_key(number));
        let number = number.unwrap_or_else(|| panic!("I19: job {id} is called {name:?}, and nobody submitted that"));
        let known = self.jobs.entry(id).or_insert_with(|| Known { number, ..Known::default() });
        assert_eq!(known.number, number, "I20: job {id} is another one now: {name:?}");
        known
    }

    pub(crate) fn submitted(&mut self, number: u64, view: &JobView) {
        let id = view.id.0;
        assert_eq!(number_of(&view.name), Some(number), "I19: the answer to submission {number} is {view:?}");
        self.meet(id, &view.name).promised = true;
        let pairs = self.jobs.iter().filter(|(_, known)| known.number == number && known.promised).count();
        assert_eq!(pairs, 1, "I20: submission {number} was answered with two jobs");
    }

    pub(crate) fn cancels(&mut self, now: Mono, job: u64, first: u32, last: u32) {
        if let Some(known) = self.jobs.get_mut(&job) {
            known.cancels.push(Cancel { asked: now, first, last, answered: None });
        }
    }

    pub(crate) fn cancelled(&mut self, now: Mono, job: u64, first: u32, last: u32) {
        let Some(known) = self.jobs.get_mut(&job) else { return };
        let same = |cancel: &&mut Cancel| (cancel.first, cancel.last) == (first, last);
        if let Some(cancel) = known.cancels.iter_mut().rfind(same) {
            cancel.answered.get_or_insert(now);
        }
    }

    /// Nothing that others may ask for by its key, and nothing that others wait for.
    pub(crate) fn may_be_removed(&self, job: u64) -> bool {
        let Some(known) = self.jobs.get(&job) else { return false };
        let awaited = self.asked.values().any(|spec| spec.after.iter().any(|after| after.job.0 == job));
        !awaited && self.asked[&known.number].key.is_none()
    }

    pub(crate) fn removes(&mut self, job: u64) {
        if let Some(known) = self.jobs.get_mut(&job) {
            known.removed = true;
        }
    }

    pub(crate) fn stops(&mut self, worker: usize, at_once: bool) {
        let standing = self.workers.entry(worker).or_default();
        standing.stops |= !at_once;
        standing.stops_now |= at_once;
    }

    /// A worker is told to have no more than so many processors.
    pub(crate) fn told_to_shrink(&mut self, worker: usize, max: u16) {
        assert!(self.workers.entry(worker).or_default().stops, "S4.74: nobody asked worker {worker} to stop");
        // Fewer slots are the broker's own account: a STOP could not be taken back.
        assert!(max == 0, "S4.74: worker {worker} is to stop, and keeps {max} processors");
    }

    pub(crate) fn told_to_end(&mut self, worker: usize) {
        assert!(
            self.workers.entry(worker).or_default().stops_now,
            "S4.75: nobody asked worker {worker} to end at once"
        );
    }

    /// The connection of a worker is gone.
    pub(crate) fn parted(&mut self, now: Mono, worker: usize) {
        self.workers.entry(worker).or_default().apart_since.get_or_insert(now);
        self.attempts.values_mut().filter(|attempt| attempt.worker == worker).for_each(|attempt| attempt.shaky = true);
    }

    /// The foreman begins anew.
    pub(crate) fn foreman_starts(&mut self) {
        self.attempts.values_mut().for_each(|attempt| attempt.shaky = true);
    }

    /// A worker was greeted.
    pub(crate) fn met(&mut self, now: Mono, worker: usize) {
        if self.is_given_up(now, worker) {
            self.attempts
                .values_mut()
                .filter(|attempt| attempt.worker == worker)
                .for_each(|attempt| attempt.doubtful = true);
        }
        self.workers.entry(worker).or_default().apart_since = None;
    }

    /// Whether the worker's tasks may be given to others.
    fn is_given_up(&self, now: Mono, worker: usize) -> bool {
        let Some(standing) = self.workers.get(&worker) else { return false };
        standing.stops_now || standing.apart_since.is_some_and(|since| now.millis_since(since) >= GRACE_MS)
    }

    /// Nobody else may have the task, as long as its worker does not say that it ended.
    fn is_firm(&self, clocks: &Clocks, attempt: &Attempt) -> bool {
        let over = |(at, clock, ms)| clocks.may_be_over_since(self.foreman, clock, at, ms);
        let has_time = !attempt.limit.is_some_and(over);
        has_time && !attempt.doubtful && !self.is_given_up(clocks.now, attempt.worker) && !self.lax
    }

    /// The worker's process is gone, and all its tasks with it.
    pub(crate) fn dies(&mut self, worker: usize) {
        for attempt in self.attempts.values_mut().filter(|attempt| attempt.worker == worker) {
            if matches!(attempt.stage, Stage::Running | Stage::Said { .. }) {
                attempt.stage = Stage::Gone;
            }
        }
    }

    /// A worker starts a task.
    pub(crate) fn starts(&mut self, clocks: &Clocks, heard: WorkerConnection, task: &Task) {
        let now = clocks.now;
        let WireTaskId { job, task: number } = task.id();
        let (attempt, name) = (task.attempt, format!("{job}/{number} attempt {}", task.attempt));
        self.meet(job, &task.name);
        let known = &self.jobs[&job];
        let spec = &self.asked[&known.number];
        let right = (spec.slots, spec.array.count) == (task.procs, task.num_tasks);
        assert!(right && spec.array.place_of(number).is_some(), "I19: {name} is no task of {spec:?}: {task:?}");
        self.judge_start(clocks, heard, (job, number, attempt), &name);
        // One that was cancelled since it could not begin, and was retried, waits for nothing.
        if !known.may_be_cancelled_and_retried(number) {
            self.judge_order(job, spec, &name);
        }
        let limit = spec.time_limit_ms.map(|limit_ms| (now, heard.clock, limit_ms));
        let new = Attempt {
            worker: heard.worker,
            stage: Stage::Running,
            over: now,
            told: now,
            shaky: false,
            doubtful: false,
            told_to_stop: false,
            limit,
        };
        assert!(self.attempts.insert((job, number, attempt), new).is_none(), "I19: {name} is started twice");
        self.judge_parallel(clocks, job, &name);
        self.started += 1;
    }

    /// An attempt that runs, as far as its worker knows, and that worker.
    pub(crate) fn some_running(&self, rng: &mut Rng) -> Option<(Name, usize)> {
        let running = || self.attempts.iter().filter(|(_, attempt)| attempt.stage == Stage::Running);
        let count = running().count();
        let (name, attempt) = running().nth(rng.index(count.max(1)))?;
        Some((*name, attempt.worker))
    }

    pub(crate) fn of_task(&self, job: u64, task: u32) -> impl Iterator<Item = (u32, &Attempt)> {
        let of_task = self.attempts.range((job, task, 0)..=(job, task, u32::MAX));
        of_task.map(|((_, _, number), attempt)| (*number, attempt))
    }

    /// Nobody has that task, and nothing said that it shall not be started.
    fn judge_start(&self, clocks: &Clocks, heard: WorkerConnection, (job, task, attempt): (u64, u32, u32), name: &str) {
        let now = clocks.now;
        let known = &self.jobs[&job];
        let spec = &self.asked[&known.number];
        let may_be_cancelled = self.may_be_cancelled(job, task, None) && known.may_be_cancelled_and_retried(task);
        // A worker's report that came too late, or not at all, may count for nothing.
        let succeeds = |stage| matches!(stage, Stage::Told { success: true, firmly: true });
        // An attempt that was never seen to start may have failed too: a liar had it, or it did not arrive.
        let has_unseen = (1..attempt).any(|number| !self.attempts.contains_key(&(job, task, number)));
        let may_have_failed = has_unseen || self.of_task(job, task).any(|(_, before)| !succeeds(before.stage));
        let mut failures = 0;
        for (number, before) in self.of_task(job, task) {
            let firm = self.is_firm(clocks, before) && !(before.shaky && may_be_cancelled);
            // Its report came after it was cancelled, and counts for nothing.
            let late = may_be_cancelled && (before.shaky || before.told_to_stop);
            match before.stage {
                Stage::Running => {
                    assert!(!firm, "I19: {name} is started, and worker {} has attempt {number}", before.worker);
                }
                Stage::Said { success: true } => {
                    let firm = firm && !late && !known.may_be_void(task, false, before.over);
                    assert!(!firm, "I19: {name} is started, and worker {} has done attempt {number}", before.worker);
                }
                Stage::Told { success: true, .. } => {
                    let lasts = before.is_lasting_success(known, task);
                    assert!(!lasts || late, "I20: {name} is started, and attempt {number} finished");
                }
                Stage::Told { success: false, .. } if !late && before.is_lasting_failure(known, task) => {
                    failures += 1;
                    let waits = Span { from: before.over, until: before.told, ms: u64::from(spec.backoff_ms) };
                    let waited = before.told_to_stop || clocks.may_be_over(self.foreman, waits);
                    assert!(waited, "I19: {name} is started less than {} ms after {number} failed", waits.ms);
                }
                Stage::Told { success: false, .. } => {}
                Stage::Said { success: false } | Stage::Gone => {}
            }
        }
        assert!(failures <= spec.retries, "I19: {name} is started after {failures} failures");
        for cancel in &known.cancels {
            let Some(answered) = cancel.answered.filter(|_| (cancel.first..=cancel.last).contains(&task)) else {
                continue;
            };
            // A cancel is nothing to a task that has failed, and that may be retried.
            if known.may_be_void(task, may_have_failed, cancel.asked) {
                continue;
            }
            let stale = now.millis_since(answered) < ON_ITS_WAY_MS || !heard.flawless;
            assert!(stale && heard.since <= answered, "I19: {name} is started, and it was cancelled");
        }
    }

    /// Asserts that the jobs before it have ended.
    fn judge_order(&self, job: u64, spec: &JobSpec, name: &str) {
        for after in spec.after.iter().filter(|after| after.when == AfterWhen::Ok) {
            let Some(before) = self.jobs.get(&after.job.0) else { continue };
            let array = self.asked[&before.number].array;
            let finished = |task: u32| {
                self.of_task(after.job.0, task).any(|(_, attempt)| {
                    matches!(attempt.stage, Stage::Said { success: true } | Stage::Told { success: true, .. })
                        || attempt.stage == Stage::Gone
                })
            };
            let all = (0..array.count).all(|place| finished(array.number_of(place)));
            assert!(all || self.lax, "I19: {name} is started, and job {job} comes after {}", after.job);
        }
    }

    /// No more of a job run than may.
    fn judge_parallel(&self, clocks: &Clocks, job: u64, name: &str) {
        let Some(max) = self.asked[&self.jobs[&job].number].max_parallel else { return };
        let of_job = self.attempts.range((job, 0, 0)..=(job, u32::MAX, u32::MAX));
        let runs = |((_, task, _), attempt): &(&(u64, u32, u32), &Attempt)| {
            // Of one that was away and whose task was cancelled meanwhile the foreman does not wait.
            let left_alone = attempt.told_to_stop || (attempt.shaky && self.may_be_cancelled(job, *task, None));
            attempt.stage == Stage::Running && !left_alone && self.is_firm(clocks, attempt)
        };
        let running = of_job.filter(runs).count();
        assert!(running <= max as usize || self.lax, "I19: with {name} {running} tasks run, and {max} may");
    }

    /// A worker is told to stop a task, and says that it does.
    pub(crate) fn told_to_stop(&mut self, clocks: &Clocks, worker: usize, id: WireTaskId, number: u32) {
        let Some(attempt) = self.attempts.get_mut(&(id.job, id.task, number)) else { return };
        attempt.told_to_stop = true;
        let attempt = *attempt;
        let doubtful = !self.is_firm(clocks, &attempt);
        let asked = self.may_be_cancelled(id.job, id.task, None);
        assert!(asked || doubtful, "I19: worker {worker} is to stop {id:?}, and nobody cancelled that");
    }

    /// Somebody may have cancelled the task, or the foreman itself after too many failures.
    fn may_be_cancelled(&self, job: u64, task: u32, rows: Option<&[TaskView]>) -> bool {
        let named = |cancel: &Cancel| (cancel.first..=cancel.last).contains(&task);
        self.jobs[&job].cancels.iter().any(named) || self.may_have_too_many_failures(job, rows)
    }

    /// A task ended at a worker, which will say so.
    pub(crate) fn says(&mut self, now: Mono, said: ReportedEnd) {
        if let Some(attempt) = self.attempts.get_mut(&(said.id.job, said.id.task, said.attempt)) {
            attempt.stage = Stage::Said { success: said.success };
            attempt.over = now;
        }
    }

    /// The foreman has confirmed it.
    pub(crate) fn told(&mut self, clocks: &Clocks, said: ReportedEnd) {
        let key = (said.id.job, said.id.task, said.attempt);
        let firmly = self.attempts.get(&key).is_some_and(|attempt| self.is_firm(clocks, attempt));
        if let Some(attempt) = self.attempts.get_mut(&key) {
            attempt.stage = Stage::Told { success: said.success, firmly };
            attempt.told = clocks.now;
        }
    }

    /// The end of all: each job that was promised is there, each task has one end, and that is one it can have.
    pub(crate) fn judge(&mut self, ended: &BTreeMap<u64, JobView>, tasks: &BTreeMap<u64, Vec<TaskView>>) {
        for (id, view) in ended {
            self.meet(*id, &view.name);
        }
        for (id, known) in &self.jobs {
            let Some((view, rows)) = ended.get(id).zip(tasks.get(id)) else {
                assert!(known.removed || !known.promised, "I20: job {id} was promised and is gone");
                continue;
            };
            self.judge_job(*id, known, view, rows);
        }
        let keys: Vec<&str> = ended.keys().filter_map(|id| self.asked[&self.jobs[id].number].key.as_deref()).collect();
        let different: BTreeSet<&str> = keys.iter().copied().collect();
        assert_eq!(keys.len(), different.len(), "I20: two jobs with one key");
    }

    fn judge_job(&self, id: u64, known: &Known, view: &JobView, rows: &[TaskView]) {
        let spec = &self.asked[&known.number];
        assert_eq!(
            (view.numbers().array, view.slots),
            (spec.array, spec.slots),
            "I20: job {id} is not what was submitted"
        );
        let mut counts = TaskCounts::default();
        for (place, row) in rows.iter().enumerate() {
            let place = u32::try_from(place).expect("few");
            assert_eq!(row.task, spec.array.number_of(place), "I19: the tasks of job {id} are not those of its array");
            match row.state {
                TaskState::Finished => counts.finished += 1,
                TaskState::Failed => counts.failed += 1,
                TaskState::Cancelled => counts.cancelled += 1,
                TaskState::Waiting | TaskState::Running => panic!("I19: job {id} has ended, and not {row:?}"),
            }
            self.judge_task(id, (known, spec), row, rows);
        }
        assert_eq!(rows.len(), spec.array.count as usize, "I19: job {id} does not have all its tasks");
        assert_eq!(view.counts, counts, "I19: the tasks of job {id} are counted wrongly");
        let state = match (counts.failed, counts.cancelled) {
            (0, 0) => JobState::Finished,
            (0, _) => JobState::Cancelled,
            _ => JobState::Failed,
        };
        assert_eq!(view.state, state, "I19: job {id} with {counts:?}");
    }

    fn judge_task(&self, id: u64, (known, spec): (&Known, &JobSpec), row: &TaskView, rows: &[TaskView]) {
        let name = format!("{id}/{}", row.task);
        let cancelled = self.may_be_cancelled(id, row.task, Some(rows));
        let (mut finished, mut said_finished, mut failures, mut said_failures) = (false, false, 0, 0);
        for (number, attempt) in self.of_task(id, row.task) {
            match attempt.stage {
                Stage::Told { success: true, .. } => {
                    finished |= attempt.is_lasting_success(known, row.task);
                    said_finished |= number == row.attempt;
                }
                Stage::Told { success: false, .. } => {
                    failures += u8::from(attempt.is_lasting_failure(known, row.task));
                    said_failures += 1;
                }
                // Its last report may have arrived, or not.
                Stage::Gone => {
                    said_finished |= number == row.attempt;
                    said_failures += 1;
                }
                Stage::Running | Stage::Said { .. } => {
                    let doubtful = attempt.doubtful || attempt.limit.is_some() || self.lax;
                    assert!(doubtful, "I19: {name} is {row:?}, and attempt {number} {attempt:?}");
                }
            }
        }
        match row.state {
            TaskState::Finished => assert!(said_finished || self.lax, "I19: nobody finished {name}: {row:?}"),
            TaskState::Failed if row.status.as_deref() == Some("worker_lost") => {
                assert!(row.attempt > u32::from(TASK_LOSSES_MAX), "S4.76: {name} was lost too early: {row:?}");
            }
            TaskState::Failed if row.status.as_deref() == Some("time_limit") => {
                assert!(spec.time_limit_ms.is_some(), "I19: {name} has no time limit: {row:?}");
            }
            TaskState::Failed => {
                let said_failures = if spec.time_limit_ms.is_some() { u8::MAX } else { said_failures };
                assert!(said_failures > spec.retries || self.lax, "I19: {name} failed {said_failures} times: {row:?}");
            }
            _ => assert!(cancelled || !spec.after.is_empty(), "I19: nobody cancelled {name}: {row:?}"),
        }
        let must = if finished {
            Some(TaskState::Finished)
        } else if failures > spec.retries {
            Some(TaskState::Failed)
        } else {
            None
        };
        if let Some(must) = must.filter(|_| !cancelled) {
            assert_eq!(row.state, must, "I20: {name} was confirmed to have ended otherwise");
        }
        if !cancelled && !self.lax {
            self.judge_retried(id, known, spec, row);
        }
    }
}
