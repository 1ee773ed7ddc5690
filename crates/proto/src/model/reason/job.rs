//! Reasons why a job has nothing to start.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::Seconds;
use crate::model::job::{AfterWhen, JobId};
use crate::model::text::{count, short};

/// Why a job does not go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", content = "details", rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum JobReason {
    /// Somebody holds it.
    Held,
    /// Other jobs must end first.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    After {
        /// Those.
        jobs: Vec<JobId>,
    },
    /// It depends on a job that ended otherwise than it must: it can never begin, and is cancelled.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Missed {
        /// That job.
        job: JobId,
        /// How that job had to end.
        when: AfterWhen,
    },
    /// No worker for jobs is connected, or all of them are being stopped.
    NoWorker,
    /// No worker has all the labels that it asks for.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    NoLabels {
        /// Those, `KEY=VALUE` each.
        labels: Vec<String>,
    },
    /// No worker has as many slots as one task takes.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    TooWide {
        /// Slots a task takes.
        slots: u16,
        /// Slots of the largest worker.
        largest: u32,
    },
    /// Every slot is taken.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Busy {
        /// Slots of all workers.
        slots: u64,
        /// Tasks of other jobs whose turn is before.
        ahead: u64,
    },
    /// As many tasks run as may at a time.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    MaxParallel {
        /// How many may.
        max: u32,
    },
    /// More of its tasks failed than may: nothing more of it is started, and what has not ended is cancelled.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    MaxFailures {
        /// How many may.
        max: u32,
    },
    /// Its tasks wait for their next attempt.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Backoff {
        /// Until the first of them is due.
        in_seconds: Seconds,
    },
    /// Workers that it may use have room, and cannot be given anything now: they have not answered what they were given
    /// last, rest after a refusal, or have less room than they say. Only `job.show` and `job.explain` look that closely.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Unready {
        /// How many of them.
        workers: u32,
    },
    /// The worker that has room for it is kept free for a task of another job, which takes more. Only `job.show` and
    /// `job.explain` look that closely.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Kept {
        /// That job.
        job: JobId,
        /// The worker.
        worker: String,
    },
    /// A requested change is on its way to the disk.
    Storing,
    /// The broker is drained.
    Draining,
    /// The disk takes nothing.
    Disk,
}

/// A sentence for people.
impl fmt::Display for JobReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => f.write_str("held until released"),
            Self::After { jobs } => {
                let ids: Vec<String> = jobs.iter().map(JobId::to_string).collect();
                let noun = if ids.len() == 1 { "job" } else { "jobs" };
                write!(f, "{noun} {} must end first", ids.join(", "))
            }
            Self::Missed { job, when: AfterWhen::Failed } => {
                write!(f, "it depends on the failure of job {job}, which succeeded")
            }
            Self::Missed { job, when: AfterWhen::Ok | AfterWhen::Any } => {
                write!(f, "it depends on job {job}, which did not finish")
            }
            Self::NoWorker => f.write_str("no job worker is connected"),
            Self::NoLabels { labels } => {
                write!(f, "no worker has the required labels: {}", labels.join(", "))
            }
            Self::Unready { workers } => {
                let workers = count(u64::from(*workers), "worker has", "workers have");
                write!(f, "{workers} free slots, but must answer or recover before getting more")
            }
            Self::Kept { job, worker } => {
                write!(f, "{worker} has free slots, reserved for a larger task of job {job}")
            }
            Self::Storing => f.write_str("waiting for the disk"),
            Self::TooWide { slots, largest } => {
                write!(f, "a task takes {slots} slots, and the largest worker has {largest}")
            }
            Self::Busy { slots, ahead } => {
                write!(f, "all {slots} slots are in use, and {ahead} tasks of other jobs are ahead")
            }
            Self::MaxParallel { max } => write!(f, "the limit of {max} running tasks is reached"),
            Self::MaxFailures { max } => write!(f, "more than {max} of its tasks failed"),
            Self::Backoff { in_seconds } => {
                write!(f, "its failed tasks are waiting for their retry, the first in {}", short(in_seconds.duration()))
            }
            Self::Draining => f.write_str("the broker is drained"),
            Self::Disk => f.write_str("the broker's disk is full"),
        }
    }
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a missing key fails the test")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::reason::Because;

    #[test]
    fn every_reason_has_a_word_and_a_sentence() {
        let jobs = vec![JobId(3), JobId(4)];
        let table = [
            (JobReason::Held, "held", "held until released"),
            (JobReason::After { jobs }, "after", "jobs 3, 4 must end first"),
            (JobReason::After { jobs: vec![JobId(3)] }, "after", "job 3 must end first"),
            (JobReason::NoWorker, "no_worker", "no job worker is connected"),
            (
                JobReason::NoLabels { labels: vec!["gpu=yes".to_owned()] },
                "no_labels",
                "no worker has the required labels: gpu=yes",
            ),
            (
                JobReason::Unready { workers: 2 },
                "unready",
                "2 workers have free slots, but must answer or recover before getting more",
            ),
            (
                JobReason::Kept { job: JobId(9), worker: "w1".to_owned() },
                "kept",
                "w1 has free slots, reserved for a larger task of job 9",
            ),
            (JobReason::Storing, "storing", "waiting for the disk"),
            (
                JobReason::TooWide { slots: 9, largest: 8 },
                "too_wide",
                "a task takes 9 slots, and the largest worker has 8",
            ),
            (
                JobReason::Busy { slots: 64, ahead: 3 },
                "busy",
                "all 64 slots are in use, and 3 tasks of other jobs are ahead",
            ),
            (JobReason::MaxParallel { max: 4 }, "max_parallel", "the limit of 4 running tasks is reached"),
            (JobReason::MaxFailures { max: 4 }, "max_failures", "more than 4 of its tasks failed"),
            (
                JobReason::Backoff { in_seconds: Seconds::from_millis(1_500) },
                "backoff",
                "its failed tasks are waiting for their retry, the first in 1.5s",
            ),
            (JobReason::Draining, "draining", "the broker is drained"),
            (JobReason::Disk, "disk", "the broker's disk is full"),
        ];
        for (reason, word, text) in table {
            let shown = serde_json::to_value(Because(reason)).unwrap();
            assert_eq!((&shown["reason"], &shown["text"]), (&json!(word), &json!(text)));
        }
        let after = serde_json::to_value(Because(JobReason::After { jobs: vec![JobId(3)] })).unwrap();
        assert_eq!(after["details"]["jobs"], json!(["3"]), "ids are text");
    }
}
