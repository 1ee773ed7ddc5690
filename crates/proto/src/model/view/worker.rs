//! Views of workers and their deliveries.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{MessageView, Standing};
use crate::model::words::words;
use crate::model::{Moment, Slots, TaskId, Token, WorkerId};

/// A worker. A worker with two connections is shown once, with the id of its connection for jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct WorkerView {
    /// Id, unique within one run of the broker.
    pub id: WorkerId,
    /// The work that the worker takes: messages, tasks or both.
    pub kind: WorkerKind,
    /// Name; not necessarily unique.
    pub name: String,
    /// Address of the connection.
    pub address: String,
    /// State of the worker.
    pub state: WorkerState,
    /// Slots; null if unlimited.
    pub slots: Slots,
    /// For a job worker: the slots that it started with, the maximum for `worker resize`; null for others.
    pub slots_max: Option<u32>,
    /// Slots in use.
    pub used: u32,
    /// Tasks at the worker.
    pub tasks_running: u64,
    /// Free slots; null if unlimited.
    pub free: Slots,
    /// Queues that it consumes.
    pub queues: Vec<String>,
    /// Queues that it has exclusively.
    pub exclusive: Vec<HoldingView>,
    /// Exclusive queues that it waits for.
    pub waits_for: Vec<String>,
    /// Labels, for jobs that require them.
    pub labels: BTreeMap<String, String>,
    /// When it registered.
    pub registered_at: Moment,
    /// Time of the last delivery or task; null if there was none.
    pub last_used_at: Option<Moment>,
    /// Deliveries so far.
    pub deliveries: u64,
    /// Deliveries settled with success.
    pub settled: u64,
    /// Deliveries settled with a failure.
    pub failed: u64,
    /// Number of times that it was dropped from a queue.
    pub dropped: u64,
    /// Unread bytes of deliveries: it receives nothing more until it has read them. 0 while it reads.
    pub unread_bytes: u64,
    /// Its standings in queues where deliveries expired, at most 20; omitted in listings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standings: Option<Vec<StandingView>>,
    /// Messages at the worker, at most 20; omitted in listings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<Vec<MessageView>>,
    /// Tasks at the worker by job and number, at most 20; omitted in listings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<Vec<WorkerTaskView>>,
}

/// A queue that a worker has exclusively.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct HoldingView {
    /// The queue.
    pub queue: String,
    /// The fencing token.
    pub token: Token,
}

/// The standing of a worker in one of its queues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct StandingView {
    /// The queue.
    pub queue: String,
    /// Its standing.
    #[serde(flatten)]
    pub standing: Standing,
}

/// A task at a worker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct WorkerTaskView {
    /// Job and number of the task, as commands accept it.
    pub id: TaskId,
    /// Name of the job; empty if the job was removed.
    pub name: String,
    /// Number of the attempt.
    pub attempt: u32,
    /// Slots that the task uses.
    pub slots: u16,
    /// When the attempt started; null if the worker was told to stop the task and has not confirmed it.
    pub started_at: Option<Moment>,
}

words! {
    /// State of a worker.
    #[derive(Default)]
    pub enum WorkerState {
        /// Registered, but it has not sent its first PING (S1.7).
        #[default]
        Greeting = "greeting",
        /// Receives work.
        Ready = "ready",
        /// Receives no new work; finishes its current work.
        Draining = "draining",
    }

    /// The work that a worker takes.
    #[derive(Default)]
    pub enum WorkerKind {
        /// Messages of queues.
        #[default]
        Queue = "queue",
        /// Tasks of jobs.
        Job = "job",
        /// Both, over two connections with one number of slots.
        Both = "both",
    }
}
