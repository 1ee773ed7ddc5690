//! Reasons for the state of a task.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::JobReason;
use crate::model::Seconds;
use crate::model::text::{count, short};

/// Why a task is where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", content = "details", rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum TaskReason {
    /// It waited and was cancelled, and that is on its way to the disk.
    Cancelling,
    /// It was given to a worker, which hears of it once that is on disk.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Starting {
        /// The worker.
        worker: String,
    },
    /// Its worker was told, and has not answered.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Offered {
        /// The worker.
        worker: String,
    },
    /// It runs.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Runs {
        /// Its worker.
        worker: String,
        /// For how long.
        for_seconds: Seconds,
    },
    /// Its worker was told to stop it, and has not said that it does.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Stopping {
        /// Its worker.
        worker: String,
        /// Because it had its time, and not because somebody cancelled it.
        time_limit: bool,
    },
    /// Its worker is not connected, or did not name it when it came back. If nothing is heard of it, it waits for another
    /// attempt.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Away {
        /// Its worker.
        worker: String,
        /// How long until then.
        left_seconds: Seconds,
    },
    /// It is over, and that is on its way to the disk.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Ending {
        /// Its worker.
        worker: String,
    },
    /// It did what it should.
    Finished,
    /// It did not, and has no attempt left.
    Failed,
    /// Somebody ended it.
    Cancelled,
    /// It waits to be started, for the reason that its job has: its word, and its details.
    #[serde(untagged)]
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Waits {
        /// The reason of its job.
        #[serde(flatten)]
        why: JobReason,
        /// Tasks of the same job whose turn is before.
        before: u32,
    },
}

/// A sentence for people.
impl fmt::Display for TaskReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = |length: Seconds| short(length.duration());
        match self {
            Self::Cancelling => f.write_str("being cancelled; waiting for the disk"),
            Self::Starting { worker } => write!(f, "assigned to {worker}; waiting for the disk"),
            Self::Offered { worker } => write!(f, "sent to {worker}, which has not answered yet"),
            Self::Runs { worker, for_seconds } => write!(f, "running on {worker} for {}", span(*for_seconds)),
            Self::Stopping { worker, time_limit } => {
                let why = if *time_limit { "time limit exceeded" } else { "cancelled" };
                write!(f, "{why}; {worker} was told to stop it and has not confirmed")
            }
            Self::Away { worker, left_seconds } => {
                let left = span(*left_seconds);
                write!(
                    f,
                    "its worker {worker} is lost; in {left} another worker gets the task unless {worker} reconnects"
                )
            }
            Self::Ending { worker } => write!(f, "its attempt on {worker} has ended; waiting for the disk"),
            Self::Finished => f.write_str("finished successfully"),
            Self::Failed => f.write_str("failed, with no attempts left"),
            Self::Cancelled => f.write_str("it was cancelled"),
            Self::Waits { why: JobReason::Backoff { in_seconds }, .. } => {
                write!(f, "the last attempt failed; the next one starts in {}", span(*in_seconds))
            }
            Self::Waits {
                why: why @ (JobReason::Busy { .. } | JobReason::MaxParallel { .. }),
                before: before @ 1..,
            } => {
                let first = count(u64::from(*before), "task of this job is", "tasks of this job are");
                write!(f, "{why}; {first} ahead")
            }
            Self::Waits { why, .. } => why.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::reason::Because;

    /// A task that waits has the word and the details of what it waits for, and says how many go before it.
    #[test]
    fn a_task_waits_for_what_its_job_waits_for() {
        let busy = TaskReason::Waits { why: JobReason::Busy { slots: 64, ahead: 3 }, before: 2 };
        let shown = serde_json::to_value(Because(busy.clone())).unwrap();
        let text = "all 64 slots are in use, and 3 tasks of other jobs are ahead; 2 tasks of this job are ahead";
        let expected = json!({ "reason": "busy", "details": { "slots": 64, "ahead": 3 }, "before": 2, "text": text });
        assert_eq!(shown, expected);
        let held = TaskReason::Waits { why: JobReason::Held, before: 0 };
        let runs = TaskReason::Runs { worker: "w1".to_owned(), for_seconds: Seconds::from_millis(1_500) };
        for reason in
            [busy, held, runs, TaskReason::Finished, TaskReason::Stopping { worker: String::new(), time_limit: true }]
        {
            let packed = rmp_serde::to_vec_named(&Because(reason.clone())).unwrap();
            assert_eq!(*rmp_serde::from_slice::<Because<TaskReason>>(&packed).unwrap(), reason);
            let json = serde_json::to_string(&Because(reason.clone())).unwrap();
            assert_eq!(*serde_json::from_str::<Because<TaskReason>>(&json).unwrap(), reason);
        }
    }
}
