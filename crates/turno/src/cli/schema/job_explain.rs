//! Documents of `turno job explain`: the reason for a task's state, with advice.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::job::{JobId, JobReason, JobView, TaskReason, TaskView};
use turno_proto::model::view::Because;

/// A task, its job, and why the task is where it is.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct JobExplainDocument<'a> {
    /// The job.
    pub(crate) job: &'a JobView,
    /// The task.
    pub(crate) task: &'a TaskView,
    /// Why it is where it is.
    pub(crate) because: Because<Cause<'a>>,
    /// Advice; null if there is nothing to do but wait.
    pub(crate) hint: Option<String>,
}

/// The cause of a task's state.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Cause<'a> {
    /// A reason of its own.
    Task(&'a TaskReason),
    /// Nobody cancelled it: what ended its job ended it.
    JobEnded(&'a JobReason),
}

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Task(reason) => reason.fmt(f),
            Self::JobEnded(reason) => write!(f, "it was cancelled: {reason}"),
        }
    }
}

impl<'a> JobExplainDocument<'a> {
    pub(crate) fn new(job: &'a JobView, task: &'a TaskView, because: &'a TaskReason) -> Self {
        let of_job = job.because.as_deref();
        let cause = match (because, of_job) {
            (TaskReason::Cancelled | TaskReason::Cancelling, Some(why)) => Cause::JobEnded(why),
            _ => Cause::Task(because),
        };
        Self { job, task, because: Because(cause), hint: hint(job.id, task, because, of_job) }
    }
}

/// The advice about a cause.
fn hint(job: JobId, task: &TaskView, because: &TaskReason, of_job: Option<&JobReason>) -> Option<String> {
    let TaskReason::Waits { why, .. } = because else {
        return match because {
            TaskReason::Runs { .. } | TaskReason::Offered { .. } | TaskReason::Stopping { .. } => {
                let worker = task.worker.as_deref()?;
                Some(format!("look at its worker with `turno worker show {worker}`"))
            }
            TaskReason::Away { .. } => {
                Some("its worker may reconnect; `turno worker ls` lists the connected workers".to_owned())
            }
            TaskReason::Cancelled if let Some(JobReason::Missed { job, .. }) = of_job => {
                Some(format!("look at that job with `turno job show {job}`"))
            }
            TaskReason::Failed => Some(format!("`turno job tasks {job} --state failed` shows the reason")),
            _ => None,
        };
    };
    match why {
        JobReason::Held => Some(format!("release it with `turno job release {job}`")),
        JobReason::After { jobs } => jobs.first().map(|before| format!("look at it with `turno job explain {before}`")),
        JobReason::NoWorker => Some("start a job worker (`turno worker start`), or check `turno worker ls`".to_owned()),
        JobReason::NoLabels { labels } => {
            let words: Vec<String> = labels.iter().map(|label| format!("--label {label}")).collect();
            Some(format!("`turno worker ls -o wide` shows all labels; start a worker with {}", words.join(" ")))
        }
        JobReason::TooWide { slots, .. } => Some(format!("start a worker with {slots} slots or more")),
        JobReason::Busy { .. } => Some("add workers or slots to start it earlier".to_owned()),
        JobReason::Kept { job, .. } | JobReason::Missed { job, .. } => {
            Some(format!("look at that job with `turno job explain {job}`"))
        }
        JobReason::MaxFailures { .. } => Some(format!("retry the failed tasks with `turno job retry {job} --failed`")),
        JobReason::Disk => Some("check the broker's log and its free disk space".to_owned()),
        JobReason::Draining => Some("`turno resume` ends the drain".to_owned()),
        JobReason::MaxParallel { .. } | JobReason::Backoff { .. } | JobReason::Unready { .. } | JobReason::Storing => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use turno_proto::model::job::{AfterWhen, TaskState};
    use turno_proto::model::{Seconds, TaskId};

    use super::*;
    use crate::cli::schema::line;

    fn job() -> JobView {
        JobView { id: JobId(7), ..JobView::default() }
    }

    fn task() -> TaskView {
        let id = TaskId { job: JobId(7), task: 3 };
        TaskView { worker: Some("w1".to_owned()), ..TaskView::new(id, TaskState::Waiting, 0) }
    }

    #[test]
    fn every_reason_is_a_sentence_with_a_hint() {
        let worker = || "w1".to_owned();
        let waits = |why| TaskReason::Waits { why, before: 2 };
        let table = [
            (waits(JobReason::Held), "held", "held until released", "turno job release 7"),
            (waits(JobReason::NoWorker), "no_worker", "no job worker is connected", "start a job worker"),
            (
                waits(JobReason::Busy { slots: 64, ahead: 3 }),
                "busy",
                "all 64 slots are in use, and 3 tasks of other jobs are ahead; 2 tasks of this job are ahead",
                "add workers",
            ),
            (
                waits(JobReason::Backoff { in_seconds: Seconds::from_millis(1_500) }),
                "backoff",
                "the last attempt failed; the next one starts in 1.5s",
                "",
            ),
            (
                waits(JobReason::NoLabels { labels: vec!["gpu=yes".to_owned()] }),
                "no_labels",
                "no worker has the required labels: gpu=yes",
                "--label gpu=yes",
            ),
            (
                waits(JobReason::Kept { job: JobId(9), worker: worker() }),
                "kept",
                "w1 has free slots, reserved for a larger task of job 9",
                "turno job explain 9",
            ),
            (
                TaskReason::Runs { worker: worker(), for_seconds: Seconds::from_millis(1_500) },
                "runs",
                "running on w1 for 1.5s",
                "turno worker show w1",
            ),
            (
                TaskReason::Away { worker: worker(), left_seconds: Seconds::from_millis(59_000) },
                "away",
                "its worker w1 is lost; in 59s another worker gets the task unless w1 reconnects",
                "turno worker ls",
            ),
            (TaskReason::Failed, "failed", "failed, with no attempts left", "turno job tasks 7 --state failed"),
            (TaskReason::Finished, "finished", "finished successfully", ""),
        ];
        for (because, word, text, help) in table {
            let (job, task) = (job(), task());
            let document = JobExplainDocument::new(&job, &task, &because);
            let hint = document.hint.clone().unwrap_or_default();
            assert!(hint.contains(help) && hint.is_empty() == help.is_empty(), "{word}: {hint}");
            let value: Value = serde_json::from_str(&line(&document)).unwrap();
            let because = &value["because"];
            assert_eq!((&value["task"]["id"], &because["reason"]), (&json!("7.3"), &json!(word)));
            assert_eq!(because["text"], text);
        }
    }

    /// Nobody cancelled the task: what ended its job did.
    #[test]
    fn a_task_that_ended_with_its_job_says_why_the_job_did() {
        let missed = JobReason::Missed { job: JobId(3), when: AfterWhen::Ok };
        let (job, task) = (JobView { because: Some(Because(missed)), ..job() }, task());
        let document = JobExplainDocument::new(&job, &task, &TaskReason::Cancelled);
        let value: Value = serde_json::from_str(&line(&document)).unwrap();
        let text = "it was cancelled: it depends on job 3, which did not finish";
        let details = json!({ "job": "3", "when": "ok" });
        assert_eq!(value["because"], json!({ "reason": "missed", "details": details, "text": text }));
        assert_eq!(document.hint.as_deref(), Some("look at that job with `turno job show 3`"));
    }
}
