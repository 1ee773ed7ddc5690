//! Admin calls about jobs, and their answers.

use bytes::Bytes;
use turno_proto::model::archive::UploadId;
use turno_proto::model::job::{
    After, AfterWhen, Array, AttemptView, JobId, JobReason, JobSpec, JobState, JobView, TaskCounts, TaskReason,
    TaskState, TaskView,
};
use turno_proto::model::view::Because;
use turno_proto::model::{Moment, Seconds, TaskId};
use turno_proto::native::Frame;
use turno_proto::native::admin::{AdminAnswer, AdminCall};

const JOB: JobId = JobId(7);
const NOON: u64 = 1_794_744_000_000;
/// `{"argv": ["./sim", "-v"], "cwd": "/data", "env": [["SEED", "1"]]}`
const WORK: &[u8] = b"\x83\xa4argv\x92\xa5./sim\xa2-v\xa3cwd\xa5/data\xa3env\x91\x92\xa4SEED\xa11";

pub(super) fn calls() -> Vec<(&'static str, Frame<'static>)> {
    let job = JOB;
    let table = vec![
        ("call_job_submit", AdminCall::JobSubmit { spec: Box::new(full_spec()) }),
        ("call_job_submit_least", AdminCall::JobSubmit { spec: Box::new(least_spec()) }),
        ("call_job_submit_needs", AdminCall::JobSubmit { spec: Box::new(needy_spec()) }),
        ("call_job_ls", AdminCall::JobLs { before: None, limit: 100 }),
        ("call_job_ls_before", AdminCall::JobLs { before: Some(JobId(42)), limit: 1_000 }),
        ("call_job_show", AdminCall::JobShow { job: Some(job) }),
        ("call_job_show_last", AdminCall::JobShow { job: None }),
        ("call_job_tasks", AdminCall::JobTasks { job, state: None, after: None, limit: 1_000 }),
        (
            "call_job_tasks_failed",
            AdminCall::JobTasks { job, state: Some(TaskState::Failed), after: Some(70_000), limit: 1_000 },
        ),
        ("call_job_cancel", AdminCall::JobCancel { job, tasks: None }),
        ("call_job_cancel_tasks", AdminCall::JobCancel { job, tasks: Some(vec![(1, 20), (33, 33), (100, 70_000)]) }),
        ("call_job_retry", AdminCall::JobRetry { job, tasks: None, after: None }),
        (
            "call_job_retry_tasks",
            AdminCall::JobRetry { job, tasks: Some(vec![(1, 20), (33, 33), (100, 70_000)]), after: Some(20) },
        ),
        ("call_job_hold", AdminCall::JobHold { job }),
        ("call_job_release", AdminCall::JobRelease { job }),
        ("call_job_wait", AdminCall::JobWait { job: JobId(5_000_000_000) }),
        ("call_job_rm", AdminCall::JobRm { job }),
        ("call_job_explain", AdminCall::JobExplain { job, task: None }),
        ("call_job_explain_task", AdminCall::JobExplain { job, task: Some(70_000) }),
    ];
    table.into_iter().map(|(name, call)| (name, Frame::AdminCall { seq: 11, call })).collect()
}

pub(super) fn answers() -> Vec<(&'static str, Frame<'static>)> {
    let mut table = vec![
        ("answer_jobs", AdminAnswer::Jobs { jobs: vec![running(), finished()], next: Some(JobId(6)) }),
        ("answer_jobs_none", AdminAnswer::Jobs { jobs: Vec::new(), next: None }),
        ("answer_job", job(JobView { spec: Some(Box::new(full_spec())), ..running() })),
        ("answer_tasks_lost", AdminAnswer::Tasks { tasks: vec![lost_task()], next: None }),
        ("answer_job_lost", job(JobView { lost: 4, ..running() })),
        ("answer_job_failed", job(JobView { state: JobState::Failed, ..finished() })),
        ("answer_job_cancelled", job(JobView { state: JobState::Cancelled, ..finished() })),
        ("answer_tasks", AdminAnswer::Tasks { tasks: tasks(), next: Some(5) }),
        ("answer_tasks_none", AdminAnswer::Tasks { tasks: Vec::new(), next: None }),
        ("answer_retried", AdminAnswer::Retried { job: JOB, tasks: 10_000, next: Some(70_000) }),
        ("answer_retried_all", AdminAnswer::Retried { job: JOB, tasks: 3, next: None }),
    ];
    let reasons = vec![
        ("answer_job_held", JobReason::Held),
        ("answer_job_after", JobReason::After { jobs: vec![JobId(3), JobId(4)] }),
        ("answer_job_missed_ok", JobReason::Missed { job: JobId(3), when: AfterWhen::Ok }),
        ("answer_job_missed_failed", JobReason::Missed { job: JobId(3), when: AfterWhen::Failed }),
        ("answer_job_no_worker", JobReason::NoWorker),
        ("answer_job_too_wide", JobReason::TooWide { slots: 300, largest: 8 }),
        ("answer_job_busy", JobReason::Busy { slots: 64, ahead: 70_000 }),
        ("answer_job_max_parallel", JobReason::MaxParallel { max: 10 }),
        ("answer_job_max_failures", JobReason::MaxFailures { max: 10 }),
        ("answer_job_backoff", JobReason::Backoff { in_seconds: Seconds::from_millis(1_500) }),
        ("answer_job_no_labels", JobReason::NoLabels { labels: vec!["gpu=yes".to_owned()] }),
        ("answer_job_unready", JobReason::Unready { workers: 2 }),
        ("answer_job_kept", JobReason::Kept { job: JobId(9), worker: "w1".to_owned() }),
        ("answer_job_storing", JobReason::Storing),
        ("answer_job_draining", JobReason::Draining),
        ("answer_job_disk", JobReason::Disk),
    ];
    table.extend(reasons.into_iter().map(|(name, reason)| {
        let state = if reason == JobReason::Held { JobState::Held } else { JobState::Waiting };
        (name, job(JobView { state, because: Some(Because(reason)), ..waiting() }))
    }));
    table.extend(explained());
    table.into_iter().map(|(name, answer)| (name, Frame::AdminAnswer { seq: 11, answer })).collect()
}

fn explained() -> Vec<(&'static str, AdminAnswer)> {
    let worker = || "w1".to_owned();
    let why = JobReason::Busy { slots: 64, ahead: 3 };
    let reasons = vec![
        ("answer_explain_waits", TaskReason::Waits { why, before: 70_000 }),
        ("answer_explain_cancelling", TaskReason::Cancelling),
        ("answer_explain_starting", TaskReason::Starting { worker: worker() }),
        ("answer_explain_offered", TaskReason::Offered { worker: worker() }),
        ("answer_explain_runs", TaskReason::Runs { worker: worker(), for_seconds: Seconds::from_millis(1_500) }),
        ("answer_explain_stopping", TaskReason::Stopping { worker: worker(), time_limit: true }),
        ("answer_explain_away", TaskReason::Away { worker: worker(), left_seconds: Seconds::from_millis(59_000) }),
        ("answer_explain_ending", TaskReason::Ending { worker: worker() }),
        ("answer_explain_finished", TaskReason::Finished),
        ("answer_explain_failed", TaskReason::Failed),
        ("answer_explain_cancelled", TaskReason::Cancelled),
    ];
    let task = tasks().remove(0);
    let told = |because| AdminAnswer::TaskExplained {
        job: Box::new(waiting()),
        task: Box::new(task.clone()),
        because: Box::new(Because(because)),
        attempts: vec![AttemptView {
            attempt: 1,
            state: TaskState::Failed,
            worker: "w1".to_owned(),
            started_at: Some(Moment::from_unix_ms(NOON)),
            ended_at: Some(Moment::from_unix_ms(NOON + 1_500)),
            seconds: Some(Seconds::from_millis(1_500)),
            exit_code: Some(1),
            ..AttemptView::default()
        }],
    };
    reasons.into_iter().map(|(name, because)| (name, told(because))).collect()
}

fn job(view: JobView) -> AdminAnswer {
    AdminAnswer::Job { job: Box::new(view) }
}

fn least_spec() -> JobSpec {
    JobSpec::new("sim", Array::ONE, Bytes::from_static(b"\x80"))
}

/// Two items of two fields: `a` and `bc`, nothing and `d`.
const ITEMS: &[u8] = b"\x01\x02\0\x02\0\0\0\x04\0\0\0\x06\0\0\0a\0bc\0d";

fn needy_spec() -> JobSpec {
    JobSpec {
        array: Array { first: 1, count: 2, step: 1 },
        items: Bytes::from_static(ITEMS),
        labels: vec![("gpu".to_owned(), "yes".to_owned()), ("pool".to_owned(), "night".to_owned())],
        max_failures: Some(10),
        tags: vec!["nightly".to_owned()],
        uploads: vec![UploadId([7; 32])],
        ..least_spec()
    }
}

fn full_spec() -> JobSpec {
    JobSpec {
        array: Array { first: 0, count: 100_000, step: 10 },
        work: Bytes::from_static(WORK),
        slots: 300,
        priority: 9,
        max_parallel: Some(10),
        time_limit_ms: Some(3_600_000),
        retries: 3,
        backoff_ms: 1_000,
        after: vec![
            After { job: JobId(3), when: AfterWhen::Ok },
            After { job: JobId(4), when: AfterWhen::Any },
            After { job: JobId(5), when: AfterWhen::Failed },
        ],
        hold: true,
        key: Some("may".to_owned()),
        ..least_spec()
    }
}

fn waiting() -> JobView {
    JobView {
        id: JOB,
        name: "sim".to_owned(),
        array: Array { first: 1, count: 20, step: 1 }.into(),
        tasks: 20,
        counts: TaskCounts { waiting: 20, ..TaskCounts::default() },
        slots: 1,
        priority: 4,
        submitted_at: Moment::from_unix_ms(NOON),
        ..JobView::default()
    }
}

fn running() -> JobView {
    JobView {
        state: JobState::Running,
        array: Array { first: 0, count: 100_000, step: 10 }.into(),
        tasks: 100_000,
        counts: TaskCounts { waiting: 99_850, running: 10, finished: 130, failed: 7, cancelled: 3 },
        slots: 300,
        priority: 9,
        started_at: Some(Moment::from_unix_ms(NOON + 250)),
        ..waiting()
    }
}

fn finished() -> JobView {
    JobView {
        id: JobId(6),
        state: JobState::Finished,
        counts: TaskCounts { finished: 20, ..TaskCounts::default() },
        progress: 100,
        started_at: Some(Moment::from_unix_ms(NOON + 250)),
        ended_at: Some(Moment::from_unix_ms(NOON + 60_000)),
        seconds: Some(Seconds::from_millis(59_750)),
        ..waiting()
    }
}

const fn id(task: u32) -> TaskId {
    TaskId { job: JOB, task }
}

fn lost_task() -> TaskView {
    let running = TaskView::new(id(7), TaskState::Running, 1);
    TaskView { worker: Some("w1".to_owned()), lost_until: Some(Moment::from_unix_ms(NOON + 60_000)), ..running }
}

fn tasks() -> Vec<TaskView> {
    let ended = |task, state, attempt| TaskView {
        worker: Some("w1".to_owned()),
        started_at: Some(Moment::from_unix_ms(NOON + 250)),
        ended_at: Some(Moment::from_unix_ms(NOON + 60_000)),
        seconds: Some(Seconds::from_millis(59_750)),
        ..TaskView::new(id(task), state, attempt)
    };
    vec![
        TaskView::new(id(1), TaskState::Waiting, 0),
        TaskView { ended_at: None, seconds: None, ..ended(2, TaskState::Running, 1) },
        TaskView { exit_code: Some(0), ..ended(3, TaskState::Finished, 1) },
        TaskView { exit_code: Some(-1), ..ended(4, TaskState::Failed, 70_000) },
        TaskView { signal: Some(9), status: Some("time_limit".to_owned()), ..ended(5, TaskState::Failed, 1) },
        TaskView { item: vec!["a b".to_owned()], ..TaskView::new(id(6), TaskState::Cancelled, 0) },
    ]
}
