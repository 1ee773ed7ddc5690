//! Why nothing of a job is started, as programs and people read it.

use std::time::Duration;

use serde_json::{Value, json};
use turno_proto::model::job::{AfterWhen, JobId, JobReason};

use super::reason::ReasonBody;
use crate::cli::time::{seconds, short};
use crate::cli::words::count;

impl From<&JobReason> for ReasonBody {
    fn from(reason: &JobReason) -> Self {
        let (word, text, details) = told(reason);
        Self { reason: word.to_owned(), text, details: details.as_object().cloned().unwrap_or_default() }
    }
}

fn told(reason: &JobReason) -> (&'static str, String, Value) {
    match reason {
        JobReason::Held => ("held", "it is held until somebody releases it".to_owned(), json!({})),
        JobReason::After { jobs } => {
            let ids: Vec<String> = jobs.iter().map(JobId::to_string).collect();
            let noun = if ids.len() == 1 { "job" } else { "jobs" };
            ("after", format!("{noun} {} must end first", ids.join(", ")), json!({ "jobs": ids }))
        }
        JobReason::Missed { job, when } => {
            let text = match when {
                AfterWhen::Failed => format!("it depends on the failure of job {job}, which did not fail"),
                AfterWhen::Ok | AfterWhen::Any => format!("it depends on job {job}, which did not finish"),
            };
            ("missed", text, json!({ "job": job.to_string() }))
        }
        JobReason::NoWorker => ("no_worker", "no worker for jobs is connected".to_owned(), json!({})),
        JobReason::NoLabels { labels } => {
            let words: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let text = format!("no worker has the labels it asks for: {}", words.join(", "));
            ("no_labels", text, json!({ "labels": words }))
        }
        JobReason::Unready { workers } => {
            let rest = |has, they| format!("{has} room, but cannot be given anything until {they} answered or rested");
            let (one, many) = (rest("worker has", "it has"), rest("workers have", "they have"));
            let text = count(u64::from(*workers), &one, &many);
            ("unready", text, json!({ "workers": workers }))
        }
        JobReason::Kept { job, worker } => (
            "kept",
            format!("{worker} has room and is kept free for a task of job {job}, which takes more"),
            json!({ "job": job.to_string(), "worker": worker }),
        ),
        JobReason::Storing => ("storing", "what was asked for is on its way to the disk".to_owned(), json!({})),
        JobReason::TooWide { slots, largest } => (
            "too_wide",
            format!("a task takes {slots} slots, and the largest worker has {largest}"),
            json!({ "slots": slots, "largest": largest }),
        ),
        JobReason::Busy { slots, ahead } => (
            "busy",
            format!("all {slots} slots are taken, and {ahead} tasks of other jobs go first"),
            json!({ "slots": slots, "ahead": ahead }),
        ),
        JobReason::MaxParallel { max } => {
            ("max_parallel", format!("as many of its tasks run as may at a time: {max}"), json!({ "max": max }))
        }
        JobReason::MaxFailures { max } => {
            ("max_failures", format!("more of its tasks failed than may: {max}"), json!({ "max": max }))
        }
        JobReason::Backoff { in_ms } => (
            "backoff",
            format!("its tasks failed and are tried again, the first in {}", short(Duration::from_millis(*in_ms))),
            json!({ "in_seconds": seconds(*in_ms) }),
        ),
        JobReason::Draining => ("draining", "the broker is drained".to_owned(), json!({})),
        JobReason::Disk => ("disk", "the broker's disk takes nothing".to_owned(), json!({})),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_word_and_a_sentence() {
        let jobs = vec![JobId(3), JobId(4)];
        let table = [
            (JobReason::Held, "held", "it is held until somebody releases it"),
            (JobReason::After { jobs }, "after", "jobs 3, 4 must end first"),
            (JobReason::After { jobs: vec![JobId(3)] }, "after", "job 3 must end first"),
            (JobReason::NoWorker, "no_worker", "no worker for jobs is connected"),
            (
                JobReason::NoLabels { labels: vec![("gpu".to_owned(), "yes".to_owned())] },
                "no_labels",
                "no worker has the labels it asks for: gpu=yes",
            ),
            (
                JobReason::Unready { workers: 2 },
                "unready",
                "2 workers have room, but cannot be given anything until they have answered or rested",
            ),
            (
                JobReason::Kept { job: JobId(9), worker: "w1".to_owned() },
                "kept",
                "w1 has room and is kept free for a task of job 9, which takes more",
            ),
            (JobReason::Storing, "storing", "what was asked for is on its way to the disk"),
            (
                JobReason::TooWide { slots: 9, largest: 8 },
                "too_wide",
                "a task takes 9 slots, and the largest worker has 8",
            ),
            (
                JobReason::Busy { slots: 64, ahead: 3 },
                "busy",
                "all 64 slots are taken, and 3 tasks of other jobs go first",
            ),
            (JobReason::MaxParallel { max: 4 }, "max_parallel", "as many of its tasks run as may at a time: 4"),
            (JobReason::MaxFailures { max: 4 }, "max_failures", "more of its tasks failed than may: 4"),
            (JobReason::Backoff { in_ms: 1_500 }, "backoff", "its tasks failed and are tried again, the first in 1.5s"),
            (JobReason::Draining, "draining", "the broker is drained"),
            (JobReason::Disk, "disk", "the broker's disk takes nothing"),
        ];
        for (reason, word, text) in table {
            let body = ReasonBody::from(&reason);
            assert_eq!((body.reason.as_str(), body.text.as_str()), (word, text));
        }
        let after = ReasonBody::from(&JobReason::After { jobs: vec![JobId(3)] });
        assert_eq!(after.details["jobs"], json!(["3"]), "ids are text");
    }
}
