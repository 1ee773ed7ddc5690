//! `job.explain` tells the truth: after every step of every test about jobs, what it says of tasks is held against what
//! the broker says of its workers and jobs elsewhere.

use turno_engine::{Effect, Input, NativeEffect, PeerEffect};
use turno_proto::model::Slots;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::job::{JobId, JobReason, JobSpec, JobState, JobView, TaskReason, TaskState, TaskView};
use turno_proto::model::limits::REFUSAL_PAUSE_MS;
use turno_proto::model::view::{WorkerState, WorkerView};

use super::farm::Farm;

/// Jobs, the latest first, and tasks of each, that are looked at after a step.
const JOBS: u32 = 6;
const TASKS: u32 = 4;
/// No call of a test has this number.
const SEQ: u32 = u32::MAX;

impl Farm {
    /// Asks something between the steps of a test, which does not see it.
    pub(super) fn aside(&mut self, call: AdminCall) -> Option<AdminAnswer> {
        let mut out = Vec::new();
        self.engine.handle(self.now, Input::Admin { conn: self.admin, seq: SEQ, call }, &mut out);
        assert!(out.len() <= 1, "a question has one answer, and changes nothing: {out:?}");
        match out.pop() {
            Some(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { seq: SEQ, answer }, .. })) => {
                Some(*answer)
            }
            _ => None,
        }
    }

    /// Why that task is where it is.
    pub(super) fn why(&mut self, job: u64, task: u32) -> TaskReason {
        match self.aside(AdminCall::JobExplain { job: JobId(job), task: Some(task) }) {
            Some(AdminAnswer::TaskExplained { because, .. }) => because.0,
            other => panic!("{other:?} is no explanation"),
        }
    }

    pub(super) fn check_explanations(&mut self) {
        let Some(AdminAnswer::Jobs { jobs, .. }) = self.aside(AdminCall::JobLs { before: None, limit: JOBS }) else {
            return;
        };
        let Some(AdminAnswer::Workers { workers, .. }) = self.aside(AdminCall::WorkerLs { after: None, limit: 1_000 })
        else {
            return;
        };
        // Native ones come from other ports in these tests.
        let job_workers: Vec<WorkerView> =
            workers.into_iter().filter(|worker| worker.address.ends_with(":7")).collect();
        for listed in jobs {
            let (id, numbers) = (listed.id, listed.numbers());
            let first = (0..numbers.array.count.min(TASKS)).map(|place| Some(numbers.number_of(place)));
            for task in first.chain([None, Some(numbers.number_of(numbers.array.count - 1))]) {
                let explained = self.aside(AdminCall::JobExplain { job: id, task });
                let Some(AdminAnswer::TaskExplained { job, task, because, .. }) = explained else {
                    panic!("{explained:?}: a task that is there is explained");
                };
                let Some(AdminAnswer::Job { job: whole }) = self.aside(AdminCall::JobShow { job: Some(id) }) else {
                    panic!("a job that is there is shown");
                };
                assert_eq!(*job, JobView { spec: None, ..JobView::clone(&whole) }, "the same as it is shown");
                let spec = whole.spec.as_deref().expect("the whole job");
                self.check_task(&job, &task, &because, spec, &job_workers);
            }
        }
    }

    fn check_task(
        &mut self,
        job: &JobView,
        task: &TaskView,
        because: &TaskReason,
        spec: &JobSpec,
        job_workers: &[WorkerView],
    ) {
        let what = || format!("job {} task {}: {because:?} of {task:?} and {job_workers:?}", job.id, task.task);
        let state = match because {
            TaskReason::Waits { .. } | TaskReason::Cancelling => TaskState::Waiting,
            // One that was retried waits until the worker that has its earlier attempt lets go of it.
            TaskReason::Stopping { worker, time_limit: false } if task.state == TaskState::Waiting => {
                let holds = |job_worker: &WorkerView| job_worker.name == *worker && job_worker.used > 0;
                assert!(task.attempt > 0 && job_workers.iter().any(holds), "{}", what());
                TaskState::Waiting
            }
            TaskReason::Finished => TaskState::Finished,
            TaskReason::Failed => TaskState::Failed,
            TaskReason::Cancelled => TaskState::Cancelled,
            _ => TaskState::Running,
        };
        assert_eq!(task.state, state, "{}", what());
        let is_there = |name: &String| job_workers.iter().any(|job_worker| job_worker.name == *name);
        match because {
            TaskReason::Starting { worker } => {
                assert!(is_there(worker) && !self.groups.is_empty(), "{}", what());
            }
            TaskReason::Offered { worker } | TaskReason::Runs { worker, .. } => {
                assert!(!job_workers.is_empty() && task.worker.as_ref() == Some(worker), "{}", what());
            }
            TaskReason::Away { left_seconds, .. } => assert!(left_seconds.as_millis() > 0, "{}", what()),
            TaskReason::Waits { why, before } => {
                assert!(*before < job.tasks, "{}", what());
                self.check_waiting(job, why, spec, job_workers, &what);
            }
            _ => {}
        }
    }

    fn check_waiting(
        &mut self,
        job: &JobView,
        why: &JobReason,
        spec: &JobSpec,
        job_workers: &[WorkerView],
        what: &dyn Fn() -> String,
    ) {
        let open: Vec<&WorkerView> =
            job_workers.iter().filter(|job_worker| is_open(job_worker) && !self.is_stopping(job_worker)).collect();
        let has_all =
            |job_worker: &WorkerView| spec.labels.iter().all(|(key, value)| job_worker.labels.get(key) == Some(value));
        let mine: Vec<&WorkerView> = open.iter().copied().filter(|job_worker| has_all(job_worker)).collect();
        let largest = mine.iter().map(|job_worker| slots(job_worker)).max().unwrap_or(0);
        let roomy = mine.iter().filter(|job_worker| free(job_worker) >= u32::from(job.slots)).count();
        match why {
            JobReason::Held => assert_eq!(job.state, JobState::Held, "{}", what()),
            JobReason::After { jobs } => {
                assert!(!jobs.is_empty(), "{}", what());
                for before in jobs {
                    assert!(spec.after.iter().any(|after| after.job == *before), "{}", what());
                }
            }
            JobReason::Missed { job: before, when } => {
                let listed = spec.after.iter().any(|after| (after.job, after.when) == (*before, *when));
                assert!(listed && job.started_at.is_none(), "{}", what());
            }
            JobReason::NoWorker => assert_eq!(open.len(), 0, "{}", what()),
            JobReason::NoLabels { labels } => {
                let wanted: Vec<String> = spec.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
                assert_eq!((mine.len(), open.is_empty(), labels), (0, false, &wanted), "{}", what());
            }
            JobReason::TooWide { slots, largest: told } => {
                assert_eq!((*slots, *told), (job.slots, largest), "{}", what());
                assert!(u32::from(job.slots) > largest, "{}", what());
            }
            JobReason::Busy { slots: told, .. } => {
                assert_eq!(
                    (roomy, *told),
                    (0, mine.iter().map(|job_worker| u64::from(slots(job_worker))).sum()),
                    "{}",
                    what()
                );
                assert!(u32::from(job.slots) <= largest, "{}", what());
            }
            JobReason::Unready { workers } => assert_eq!(roomy, *workers as usize, "{}", what()),
            JobReason::Kept { job: other, worker } => {
                assert!(*other != job.id, "{}", what());
                let kept =
                    mine.iter().find(|job_worker| job_worker.name == *worker).expect("a worker that it could use");
                assert!(free(kept) >= u32::from(job.slots), "{}", what());
                let Some(AdminAnswer::Job { job: wide }) = self.aside(AdminCall::JobShow { job: Some(*other) }) else {
                    panic!("{}", what());
                };
                assert!(wide.slots > 1 && wide.counts.waiting > 0, "{}", what());
            }
            JobReason::MaxParallel { max } => {
                assert_eq!(spec.max_parallel, Some(*max), "{}", what());
                assert!(job.counts.running >= *max, "{}", what());
            }
            JobReason::MaxFailures { max } => {
                assert_eq!(spec.max_failures, Some(*max), "{}", what());
                assert!(job.counts.failed > *max, "{}", what());
            }
            JobReason::Backoff { in_seconds } => assert!(in_seconds.as_millis() > 0, "{}", what()),
            JobReason::Storing => assert!(!self.groups.is_empty(), "{}", what()),
            JobReason::Disk => {
                let refused = self.refused_at.expect("the disk refused something");
                assert!(self.now.millis_since(refused) < REFUSAL_PAUSE_MS, "{}", what());
            }
            JobReason::Draining => {
                let Some(AdminAnswer::Status { broker }) = self.aside(AdminCall::Status) else { panic!("{}", what()) };
                assert!(broker.draining, "{}", what());
            }
        }
    }

    /// It was told to have fewer slots, and has not answered.
    fn is_stopping(&self, job_worker: &WorkerView) -> bool {
        let stops = self
            .job_workers
            .iter()
            .filter(|(_, name)| **name == job_worker.name)
            .filter_map(|(conn, _)| self.stops.get(conn));
        stops.sum::<u32>() > 0
    }
}

fn slots(job_worker: &WorkerView) -> u32 {
    match job_worker.slots {
        Slots::Limited(slots) => slots,
        Slots::Unlimited => u32::MAX,
    }
}

fn free(job_worker: &WorkerView) -> u32 {
    slots(job_worker).saturating_sub(job_worker.used)
}

fn is_open(job_worker: &WorkerView) -> bool {
    job_worker.state == WorkerState::Ready && slots(job_worker) > 0
}
