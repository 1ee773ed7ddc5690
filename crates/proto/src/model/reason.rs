//! Why a message is where it is.

use serde::{Deserialize, Serialize};

use super::view::{MessageView, is_zero};

/// Why a message is where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// No worker consumes the queue, here or at another broker that can be reached.
    NoWorker,
    /// The same, and links that are wanted are not up: there may be workers behind them.
    LinksDown {
        /// How many of them.
        down: u64,
        /// Links that are wanted.
        wanted: u64,
    },
    /// Nobody here takes it; other brokers have workers, and it is longer than what they take over their links.
    TooLong {
        /// Its length.
        bytes: u64,
        /// The most that one of them takes.
        largest: u64,
    },
    /// Nobody here takes it; other brokers have workers, and no room for it now.
    FarBusy {
        /// Brokers that have workers of the queue.
        brokers: u64,
        /// Slots there that messages from here have in use.
        used: u64,
        /// Messages of the queue that go first.
        ahead: u64,
    },
    /// No worker consumes the queue any more: those that did were dropped, and have not asked for it again.
    WorkersDropped {
        /// How many.
        workers: u64,
    },
    /// The queue is one worker's alone, and that has no room.
    ExclusiveBusy {
        /// That worker.
        worker: u64,
        /// Its name.
        name: String,
        /// Its slots in use.
        used: u64,
        /// Messages of the queue that go first.
        ahead: u64,
    },
    /// Nobody has the queue: whoever left it has not settled all yet, or what it had is on its way back. Others wait
    /// for it, or it was one worker's alone.
    NotFree {
        /// Messages of the queue that are not settled.
        in_flight: u64,
        /// Workers that wait until it is free.
        waiters: u64,
    },
    /// Nobody has the queue: it is kept for the first of those who wait for it.
    KeptFor {
        /// That worker.
        worker: u64,
        /// Its name.
        name: String,
        /// For how long.
        left_ms: u64,
    },
    /// Workers consume it, but none has sent its first PING.
    WorkersGreeting {
        /// How many.
        workers: u64,
    },
    /// Every consumer drains.
    WorkersDraining {
        /// How many.
        workers: u64,
    },
    /// Every slot of every consumer is in use.
    AllBusy {
        /// Consumers.
        workers: u64,
        /// Their slots in use.
        used: u64,
        /// Messages of the queue that go first.
        ahead: u64,
        /// Those of the consumers that get one delivery at a time, because they were dropped before.
        #[serde(default, skip_serializing_if = "is_zero")]
        probing: u64,
        /// Workers that were dropped from the queue and have not asked for it again.
        #[serde(default, skip_serializing_if = "is_zero")]
        dropped: u64,
        /// Those of the consumers that get nothing, because they do not read what waits for them.
        #[serde(default, skip_serializing_if = "is_zero")]
        not_reading: u64,
        /// Other brokers that have workers of the queue, and no room for it either.
        #[serde(default, skip_serializing_if = "is_zero")]
        brokers: u64,
    },
    /// Messages before it wait too.
    Behind {
        /// How many.
        ahead: u64,
    },
    /// It costs more than any consumer has slots in all.
    TooCostly {
        /// What it costs.
        cost: u16,
        /// The most slots a consumer has.
        largest: u32,
    },
    /// It waits until the worker it reserved has enough slots free.
    Reserved {
        /// That worker.
        worker: u64,
        /// What it costs.
        cost: u16,
        /// Slots free there now.
        free: u32,
    },
    /// A worker has it.
    AtWorker {
        /// That worker.
        worker: u64,
        /// Its name.
        name: String,
        /// For how long.
        since_ms: u64,
    },
    /// It crossed a link, to a worker at that broker or further on.
    AtLink {
        /// That broker's id.
        broker: String,
        /// Its name.
        name: String,
        /// For how long.
        since_ms: u64,
    },
    /// A broadcast that went to its consumers.
    AtConsumers {
        /// How many it went to, as far as is known.
        consumers: u64,
        /// Those that have not ended.
        open: u64,
        /// Other brokers that it went to and that did not tell yet how it ended there.
        #[serde(default, skip_serializing_if = "is_zero")]
        brokers: u64,
    },
    /// It is over for its caller, and its worker was told to stop.
    Stopping {
        /// That worker.
        worker: u64,
    },
    /// It is over for its caller, and the broker that it crossed to was told.
    StoppingAtLink {
        /// That broker's id.
        broker: String,
        /// Its name.
        name: String,
    },
    /// It is being written to disk.
    Storing,
    /// It used up its attempts.
    Dead {
        /// What the last failure said.
        failure: String,
    },
    /// The broker is on its way out.
    Draining,
    /// The broker is drained until it is told to go on.
    Maintenance,
}

/// A message and why it is where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Explanation {
    /// The message.
    pub message: MessageView,
    /// Why.
    pub reason: Reason,
}
