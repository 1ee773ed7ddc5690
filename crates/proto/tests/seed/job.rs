//! Any call about jobs, and any answer.

use turno_proto::model::TaskId;
use turno_proto::model::archive::UploadId;
use turno_proto::model::job::{
    After, AfterWhen, Array, AttemptView, JobId, JobReason, JobSpec, JobState, JobView, TaskCounts, TaskNumbers,
    TaskReason, TaskState, TaskView,
};
use turno_proto::model::view::Because;
use turno_proto::native::admin::{AdminAnswer, AdminCall};

use super::Seed;

const STATES: [TaskState; 5] =
    [TaskState::Waiting, TaskState::Running, TaskState::Finished, TaskState::Failed, TaskState::Cancelled];

impl Seed {
    pub(super) fn job_call(&self, which: u8) -> AdminCall {
        let [some, more, ..] = self.bits;
        let (job, limit) = (JobId(self.long), self.number);
        match which {
            0 => AdminCall::JobSubmit { spec: Box::new(self.spec()) },
            1 => AdminCall::JobLs { before: some.then_some(job), limit },
            2 => AdminCall::JobShow { job: some.then_some(job) },
            3 => AdminCall::JobTasks {
                job,
                state: some.then(|| self.task_state()),
                after: more.then_some(self.word),
                limit,
            },
            4 => {
                let ranges = vec![(self.word, self.number); usize::from(self.small % 65)];
                AdminCall::JobCancel { job, tasks: some.then_some(ranges) }
            }
            5 => AdminCall::JobHold { job },
            6 => AdminCall::JobRelease { job },
            7 => AdminCall::JobWait { job },
            8 => AdminCall::JobExplain { job, task: some.then_some(self.word) },
            9 => {
                let ranges = vec![(self.word, self.number); usize::from(self.small % 65)];
                AdminCall::JobRetry { job, tasks: some.then_some(ranges), after: more.then_some(self.word) }
            }
            _ => AdminCall::JobRm { job },
        }
    }

    pub(super) fn job_answer(&self, which: u8) -> AdminAnswer {
        let some = self.bits[0];
        let rows = usize::from(self.small % 20);
        match which {
            0 => AdminAnswer::Jobs { jobs: vec![self.job(); rows], next: some.then_some(JobId(self.long)) },
            1 => AdminAnswer::Job { job: Box::new(self.job()) },
            2 => AdminAnswer::TaskExplained {
                job: Box::new(self.job()),
                task: Box::new(self.task()),
                because: Box::new(Because(self.task_reason())),
                attempts: vec![self.attempt(); usize::from(self.small % 3)],
            },
            3 => AdminAnswer::Retried { job: JobId(self.long), tasks: self.number, next: some.then_some(self.word) },
            _ => AdminAnswer::Tasks { tasks: vec![self.task(); rows], next: some.then_some(self.word) },
        }
    }

    fn array(&self) -> Array {
        Array { first: self.number, count: self.word, step: self.small.into() }
    }

    fn parts(&self) -> Vec<Array> {
        let parts =
            [(1, 1, 1), (3, 1, 1), (5, 4, 1), (10, 2, 5)].map(|(first, count, step)| Array { first, count, step });
        if self.bits[5] { parts.to_vec() } else { Vec::new() }
    }

    /// Numbers of which there are some: others cannot be written as a person writes them.
    fn numbers(&self) -> TaskNumbers {
        match self.parts() {
            parts if parts.is_empty() => {
                Array { first: self.small.into(), count: 1 + self.word % 1_000, step: 1 + u32::from(self.choice) }
                    .into()
            }
            parts => TaskNumbers { array: Array { first: 1, count: 8, step: 1 }, parts },
        }
    }

    fn spec(&self) -> JobSpec {
        let [parallel, limit, hold, key, ..] = self.bits;
        let when = [AfterWhen::Ok, AfterWhen::Any, AfterWhen::Failed][usize::from(self.small % 3)];
        JobSpec {
            name: self.text(),
            array: self.array(),
            parts: self.parts(),
            work: self.bytes.clone().into(),
            slots: self.small,
            priority: self.choice,
            max_parallel: parallel.then_some(self.number),
            time_limit_ms: limit.then_some(self.long),
            retries: self.choice,
            backoff_ms: self.word,
            after: vec![After { job: JobId(self.long), when }; usize::from(self.small % 17)],
            hold,
            key: key.then(|| self.text()),
            items: self.bytes.clone().into(),
            labels: vec![(self.text(), self.text()); usize::from(self.small % 3)],
            max_failures: parallel.then_some(self.word),
            tags: vec![self.text(); usize::from(self.small % 3)],
            uploads: vec![UploadId([self.choice; 32]); usize::from(self.small % 3)],
        }
    }

    fn task_state(&self) -> TaskState {
        STATES[usize::from(self.small) % STATES.len()]
    }

    fn job(&self) -> JobView {
        let states = [
            JobState::Waiting,
            JobState::Running,
            JobState::Held,
            JobState::Finished,
            JobState::Failed,
            JobState::Cancelled,
        ];
        JobView {
            id: JobId(self.long),
            name: self.text(),
            state: states[usize::from(self.small) % states.len()],
            array: self.numbers(),
            tasks: self.word,
            counts: TaskCounts { waiting: self.number, running: 1, finished: self.word, failed: 0, cancelled: 128 },
            progress: self.choice.into(),
            slots: self.small,
            priority: self.choice,
            tags: vec![self.text(); usize::from(self.choice % 3)],
            items: self.word,
            submitted_at: self.moment(),
            started_at: self.bits[1].then(|| self.moment()),
            ended_at: self.bits[2].then(|| self.moment()),
            seconds: self.bits[2].then(|| self.seconds()),
            because: self.bits[3].then(|| Because(self.job_reason())),
            lost: self.small.into(),
            spec: self.bits[4].then(|| Box::new(self.spec())),
        }
    }

    fn job_reason(&self) -> JobReason {
        match self.small % 15 {
            0 => JobReason::Held,
            1 => JobReason::After { jobs: vec![JobId(self.long); usize::from(self.choice % 17)] },
            2 => JobReason::NoWorker,
            3 => JobReason::TooWide { slots: self.small, largest: self.number },
            4 => JobReason::Busy { slots: self.long, ahead: self.word.into() },
            5 => JobReason::MaxParallel { max: self.number },
            6 => JobReason::Backoff { in_seconds: self.seconds() },
            7 => JobReason::Draining,
            8 => JobReason::NoLabels { labels: vec![self.text(); usize::from(self.choice % 17)] },
            9 => JobReason::Unready { workers: self.number },
            10 => JobReason::Kept { job: JobId(self.long), worker: self.text() },
            11 => JobReason::Storing,
            12 => JobReason::MaxFailures { max: self.number },
            13 => JobReason::Missed { job: JobId(self.long), when: AfterWhen::Failed },
            _ => JobReason::Disk,
        }
    }

    fn task_reason(&self) -> TaskReason {
        let worker = self.text();
        match self.small % 11 {
            0 => TaskReason::Cancelling,
            1 => TaskReason::Starting { worker },
            2 => TaskReason::Offered { worker },
            3 => TaskReason::Runs { worker, for_seconds: self.seconds() },
            4 => TaskReason::Stopping { worker, time_limit: self.bits[0] },
            5 => TaskReason::Away { worker, left_seconds: self.seconds() },
            6 => TaskReason::Ending { worker },
            7 => TaskReason::Finished,
            8 => TaskReason::Failed,
            9 => TaskReason::Cancelled,
            _ => TaskReason::Waits { why: self.job_reason(), before: self.word },
        }
    }

    fn task(&self) -> TaskView {
        let [worker, started, ended, code, signal, status] = self.bits;
        TaskView {
            id: TaskId { job: JobId(self.long), task: self.word },
            task: self.word,
            state: self.task_state(),
            attempt: self.number,
            worker: worker.then(|| self.text()),
            started_at: started.then(|| self.moment()),
            ended_at: ended.then(|| self.moment()),
            seconds: ended.then(|| self.seconds()),
            exit_code: code.then_some(self.number.cast_signed()),
            signal: signal.then_some(self.word.cast_signed()),
            status: status.then(|| self.text()),
            lost_until: worker.then(|| self.moment()),
            item: vec![self.text(); usize::from(self.small % 3)],
        }
    }

    fn attempt(&self) -> AttemptView {
        let [code, signal, status, ..] = self.bits;
        AttemptView {
            attempt: self.number,
            state: self.task_state(),
            worker: self.text(),
            started_at: code.then(|| self.moment()),
            ended_at: signal.then(|| self.moment()),
            seconds: signal.then(|| self.seconds()),
            exit_code: code.then_some(self.number.cast_signed()),
            signal: signal.then_some(self.word.cast_signed()),
            status: status.then(|| self.text()),
        }
    }
}
