//! Why a task is where it is, as programs and people read it.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};
use turno_proto::model::job::{JobId, JobReason, JobView, TaskReason, TaskView};

use super::Document;
use super::job::JobRow;
use super::reason::ReasonBody;
use super::task::TaskRow;
use crate::cli::time::{seconds, short};
use crate::cli::words::count;

/// A task, its job, and why the task is where it is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobExplainDocument {
    /// The job.
    pub(crate) job: JobRow,
    /// The task.
    pub(crate) task: TaskRow,
    /// Why it is where it is.
    pub(crate) because: ReasonBody,
    /// What can be done about it; null if there is nothing to do but wait.
    pub(crate) hint: Option<String>,
}

impl Document for JobExplainDocument {
    const SCHEMA: &'static str = "turno.job_explain/1";
}

impl JobExplainDocument {
    pub(crate) fn new(job: &JobView, task: &TaskView, because: &TaskReason) -> Self {
        Self {
            job: JobRow::from(job),
            task: TaskRow::new(job.id, task),
            because: match (because, &job.reason) {
                // Nobody cancelled it: what ended its job ended it.
                (TaskReason::Cancelled | TaskReason::Cancelling, Some(why)) => {
                    let why = ReasonBody::from(why);
                    ReasonBody { text: format!("it was cancelled: {}", why.text), ..why }
                }
                _ => ReasonBody::from(because),
            },
            hint: hint(job.id, task, because, job.reason.as_ref()),
        }
    }
}

impl From<&TaskReason> for ReasonBody {
    fn from(reason: &TaskReason) -> Self {
        let (word, text, details) = told(reason);
        Self { reason: word, text, details }
    }
}

fn told(reason: &TaskReason) -> (String, String, Map<String, Value>) {
    let by = |word: &str, text: String, worker: &str, more: Value| {
        let mut details = more.as_object().cloned().unwrap_or_default();
        details.insert("worker".to_owned(), json!(worker));
        (word.to_owned(), text, details)
    };
    let alone = |word: &str, text: &str| (word.to_owned(), text.to_owned(), Map::new());
    match reason {
        TaskReason::Waits { why, before } => waits(why, *before),
        TaskReason::Cancelling => alone("cancelling", "it is being cancelled; that is on its way to the disk"),
        TaskReason::Starting { worker } => {
            by("starting", format!("it was given to {worker}; that is on its way to the disk"), worker, json!({}))
        }
        TaskReason::Offered { worker } => {
            by("offered", format!("{worker} was told to run it and has not answered"), worker, json!({}))
        }
        TaskReason::Runs { worker, for_ms } => {
            let text = format!("it has run at {worker} for {}", span(*for_ms));
            by("runs", text, worker, json!({ "for_seconds": seconds(*for_ms) }))
        }
        TaskReason::Stopping { worker, time_limit } => {
            let why = if *time_limit { "it had its time" } else { "it is cancelled" };
            let text = format!("{why}; {worker} was told to stop it and has not said that it does");
            by("stopping", text, worker, json!({ "time_limit": time_limit }))
        }
        TaskReason::Away { worker, left_ms } => {
            let left = span(*left_ms);
            let text =
                format!("its worker {worker} is lost; without word of it in {left} another worker gets the task");
            by("away", text, worker, json!({ "left_seconds": seconds(*left_ms) }))
        }
        TaskReason::Ending { worker } => {
            by("ending", format!("its attempt at {worker} is over; that is on its way to the disk"), worker, json!({}))
        }
        TaskReason::Finished => alone("finished", "it did what it should"),
        TaskReason::Failed => alone("failed", "it failed, and has no attempt left"),
        TaskReason::Cancelled => alone("cancelled", "it was cancelled"),
    }
}

fn waits(why: &JobReason, before: u32) -> (String, String, Map<String, Value>) {
    let ReasonBody { reason, mut text, mut details } = match why {
        JobReason::Backoff { in_ms } => ReasonBody {
            reason: "backoff".to_owned(),
            text: format!("its last attempt failed, and the next is due in {}", span(*in_ms)),
            details: Map::from_iter([("in_seconds".to_owned(), json!(seconds(*in_ms)))]),
        },
        why => ReasonBody::from(why),
    };
    if before > 0 && matches!(why, JobReason::Busy { .. } | JobReason::MaxParallel { .. }) {
        text = format!("{text}; {} first", count(before.into(), "task of this job goes", "tasks of this job go"));
    }
    details.insert("before".to_owned(), json!(before));
    (reason, text, details)
}

fn span(ms: u64) -> String {
    short(Duration::from_millis(ms))
}

/// What a person can do about it.
fn hint(job: JobId, task: &TaskView, because: &TaskReason, of_job: Option<&JobReason>) -> Option<String> {
    let TaskReason::Waits { why, .. } = because else {
        return match because {
            TaskReason::Runs { .. } | TaskReason::Offered { .. } | TaskReason::Stopping { .. } => {
                let worker = task.worker.as_deref()?;
                Some(format!("look at its worker with `turno worker show {worker}`"))
            }
            TaskReason::Away { .. } => {
                Some("its worker may come back; `turno worker ls` lists those that are here".to_owned())
            }
            TaskReason::Cancelled if let Some(JobReason::Missed { job, .. }) = of_job => {
                Some(format!("look at that job with `turno job show {job}`"))
            }
            TaskReason::Failed => Some(format!("`turno job tasks {job} --state failed` shows what its worker said")),
            _ => None,
        };
    };
    match why {
        JobReason::Held => Some(format!("let it begin with `turno job release {job}`")),
        JobReason::After { jobs } => jobs.first().map(|before| format!("look at it with `turno job explain {before}`")),
        JobReason::NoWorker => Some("start a worker for jobs, or look with `turno worker ls`".to_owned()),
        JobReason::NoLabels { labels } => {
            let words: Vec<String> = labels.iter().map(|(key, value)| format!("--label {key}={value}")).collect();
            Some(format!(
                "`turno worker ls -o wide` shows the labels there are; a worker has it with {}",
                words.join(" ")
            ))
        }
        JobReason::TooWide { slots, .. } => Some(format!("start a worker with {slots} slots or more")),
        JobReason::Busy { .. } => Some("more workers or more slots would start it earlier".to_owned()),
        JobReason::Kept { job, .. } | JobReason::Missed { job, .. } => {
            Some(format!("look at that job with `turno job explain {job}`"))
        }
        JobReason::MaxFailures { .. } => {
            Some(format!("run those that failed again with `turno job retry {job} --failed`"))
        }
        JobReason::Disk => Some("see the broker's log, and the room on its disk".to_owned()),
        JobReason::Draining => Some("`turno resume` lets a drained broker go on".to_owned()),
        JobReason::MaxParallel { .. } | JobReason::Backoff { .. } | JobReason::Unready { .. } | JobReason::Storing => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use turno_proto::model::job::{Array, JobState, TaskCounts, TaskState};

    use super::*;
    use crate::cli::schema::line;

    fn job() -> JobView {
        JobView {
            id: JobId(7),
            name: "sim".to_owned(),
            state: JobState::Waiting,
            array: Array { first: 1, count: 30, step: 1 },
            parts: Vec::new(),
            tasks: TaskCounts { waiting: 30, ..TaskCounts::default() },
            slots: 1,
            priority: 4,
            tags: Vec::new(),
            items: 0,
            submitted_unix_ms: 1_794_744_000_000,
            started_unix_ms: None,
            ended_unix_ms: None,
            lost: 0,
            reason: None,
            spec: None,
        }
    }

    fn task() -> TaskView {
        TaskView {
            task: 3,
            state: TaskState::Waiting,
            attempt: 0,
            worker: Some("w1".to_owned()),
            started_unix_ms: None,
            ended_unix_ms: None,
            exit_code: None,
            signal: None,
            status: None,
            lost_until_unix_ms: None,
            item: Vec::new(),
        }
    }

    #[test]
    fn every_reason_is_a_sentence_with_a_hint() {
        let worker = || "w1".to_owned();
        let waits = |why| TaskReason::Waits { why, before: 2 };
        let table = [
            (waits(JobReason::Held), "held", "it is held until somebody releases it", "turno job release 7"),
            (waits(JobReason::NoWorker), "no_worker", "no worker for jobs is connected", "start a worker"),
            (
                waits(JobReason::Busy { slots: 64, ahead: 3 }),
                "busy",
                "all 64 slots are taken, and 3 tasks of other jobs go first; 2 tasks of this job go first",
                "more workers",
            ),
            (
                waits(JobReason::Backoff { in_ms: 1_500 }),
                "backoff",
                "its last attempt failed, and the next is due in 1.5s",
                "",
            ),
            (
                waits(JobReason::NoLabels { labels: vec![("gpu".to_owned(), "yes".to_owned())] }),
                "no_labels",
                "no worker has the labels it asks for: gpu=yes",
                "--label gpu=yes",
            ),
            (
                waits(JobReason::Kept { job: JobId(9), worker: worker() }),
                "kept",
                "w1 has room and is kept free for a task of job 9, which takes more",
                "turno job explain 9",
            ),
            (
                TaskReason::Runs { worker: worker(), for_ms: 1_500 },
                "runs",
                "it has run at w1 for 1.5s",
                "turno worker show w1",
            ),
            (
                TaskReason::Away { worker: worker(), left_ms: 59_000 },
                "away",
                "its worker w1 is lost; without word of it in 59s another worker gets the task",
                "turno worker ls",
            ),
            (TaskReason::Failed, "failed", "it failed, and has no attempt left", "turno job tasks 7 --state failed"),
            (TaskReason::Finished, "finished", "it did what it should", ""),
        ];
        for (because, word, text, help) in table {
            let document = JobExplainDocument::new(&job(), &task(), &because);
            assert_eq!((document.because.reason.as_str(), document.because.text.as_str()), (word, text));
            let hint = document.hint.clone().unwrap_or_default();
            assert!(hint.contains(help) && hint.is_empty() == help.is_empty(), "{word}: {hint}");
            let value: Value = serde_json::from_str(&line(&document)).unwrap();
            assert_eq!((&value["task"]["id"], &value["because"]["reason"]), (&json!("7.3"), &json!(word)));
        }
    }
}
