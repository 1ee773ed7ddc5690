//! Durable records of messages, as plain values.

use bytes::Bytes;
use turno_proto::model::job::JobId;
use turno_proto::model::view::QueueSettings;
use turno_proto::model::{DedupKey, Payload, QueueName};

use crate::jobs::{ChunkRecord, JobRecord, TaskRecord};

/// A message as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The name of its queue.
    pub queue: QueueName,
    /// 0 to 9, 9 first.
    pub priority: u8,
    /// Slots a delivery of it takes.
    pub cost: u16,
    /// Redeliveries it may have.
    pub retries: u8,
    /// When it came, in Unix milliseconds.
    pub born_unix_ms: u64,
    /// When its time is over, in Unix milliseconds.
    pub deadline_unix_ms: Option<u64>,
    /// When it is due, in Unix milliseconds, if its sender delayed it.
    pub due_unix_ms: Option<u64>,
    /// Headers and body.
    pub payload: Payload,
}

/// A new message on its way to the store, lent: a store that writes it at once needs no copy.
#[derive(Clone, Copy, Debug)]
pub struct NewRecord<'a> {
    /// The group it belongs to.
    pub group: u64,
    /// Its number, which no other message of this store ever has.
    pub serial: u64,
    /// The name of its queue.
    pub queue: &'a QueueName,
    /// 0 to 9, 9 first.
    pub priority: u8,
    /// Slots a delivery of it takes.
    pub cost: u16,
    /// Redeliveries it may have.
    pub retries: u8,
    /// When it came, in Unix milliseconds.
    pub born_unix_ms: u64,
    /// When its time is over, in Unix milliseconds.
    pub deadline_unix_ms: Option<u64>,
    /// When it is due, in Unix milliseconds, if its sender delayed it.
    pub due_unix_ms: Option<u64>,
    /// Its payload begins with headers.
    pub headers: bool,
    /// Its headers and body.
    pub bytes: &'a Bytes,
}

impl<'a> NewRecord<'a> {
    /// The same of a record.
    pub const fn of(group: u64, serial: u64, record: &'a Record) -> Self {
        let Record { queue, priority, cost, retries, born_unix_ms, deadline_unix_ms, due_unix_ms, payload } = record;
        Self {
            group,
            serial,
            queue,
            priority: *priority,
            cost: *cost,
            retries: *retries,
            born_unix_ms: *born_unix_ms,
            deadline_unix_ms: *deadline_unix_ms,
            due_unix_ms: *due_unix_ms,
            headers: payload.headers,
            bytes: &payload.bytes,
        }
    }

    /// A copy that can be kept.
    pub fn to_record(&self) -> Record {
        Record {
            queue: self.queue.clone(),
            priority: self.priority,
            cost: self.cost,
            retries: self.retries,
            born_unix_ms: self.born_unix_ms,
            deadline_unix_ms: self.deadline_unix_ms,
            due_unix_ms: self.due_unix_ms,
            payload: Payload { headers: self.headers, bytes: self.bytes.clone() },
        }
    }
}

/// A dedup id as it is stored, by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DedupRecord {
    /// The key that it is found by.
    pub key: DedupKey,
    /// The message that came with it.
    pub serial: u64,
    /// When that came, in Unix milliseconds.
    pub born_unix_ms: u64,
}

/// Something to be made durable. All that one input asks for belongs together: all of it is stored, or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Persist {
    /// A new message, or one whose record is another from now on.
    Put {
        /// Its number, which no other message of this store ever has.
        serial: u64,
        /// Its content.
        record: Record,
    },
    /// A dedup id is known from now on. It is in the group of its message, and takes the place of what was stored
    /// under the same key.
    Remember(DedupRecord),
    /// A dedup id is not known any more.
    Forget {
        /// Which one.
        key: DedupKey,
    },
    /// An attempt of a message failed, or its wait was changed. The delay that its sender wanted is void from then on.
    Attempts {
        /// The serial of the message.
        serial: u64,
        /// Deliveries made that count.
        attempts: u16,
        /// The next attempt waits for that.
        wait: Option<Wait>,
    },
    /// It used up its attempts, and is kept as a dead letter.
    Dead {
        /// Which one.
        serial: u64,
        /// Deliveries made that count.
        attempts: u16,
        /// The text of the last failure.
        failure: Bytes,
    },
    /// A dead letter is put back into its queue: what was written down of its attempts and its death is void.
    Retry {
        /// Which one.
        serial: u64,
    },
    /// It is done with.
    Remove {
        /// Which one.
        serial: u64,
        /// Whether attempts or a death were written down for it.
        marked: bool,
    },
    /// A queue has these settings of its own, in place of those it had.
    SetQueue {
        /// The name of the queue.
        queue: QueueName,
        /// All of them.
        settings: QueueSettings,
    },
    /// A queue has no settings of its own any more.
    UnsetQueue {
        /// The name of the queue.
        queue: QueueName,
    },
    /// A job is this from now on.
    SetJob {
        /// The number of the job.
        job: JobId,
        /// Its content.
        record: Box<JobRecord>,
    },
    /// The items of a job, written once, with the job: what changes about a job later leaves them alone.
    SetItems {
        /// The number of the job.
        job: JobId,
        /// All of them.
        items: Bytes,
    },
    /// The items of a job are gone with it.
    UnsetItems {
        /// The number of the job.
        job: JobId,
    },
    /// A job is gone.
    UnsetJob {
        /// The number of the job.
        job: JobId,
    },
    /// A token of that term was heard of, from a broker that started later or whose clock is ahead: those of the next run are higher.
    TokenTerm {
        /// The new term.
        term: u64,
    },
    /// No job gets that number, or a lower one: the job that had it is gone.
    LastJob {
        /// The highest number of a job so far.
        job: JobId,
    },
    /// A task is this from now on.
    SetTask {
        /// The number of its job.
        job: JobId,
        /// Its place among the tasks of the job, from 0 on.
        place: u32,
        /// Its content.
        record: Box<TaskRecord>,
    },
    /// A task has no record of its own any more.
    UnsetTask {
        /// The number of its job.
        job: JobId,
        /// The place of the task in the array.
        place: u32,
    },
    /// All tasks of a chunk have ended: place [`crate::CHUNK_TASKS`] times its number, and those after it.
    SetChunk {
        /// The number of its job.
        job: JobId,
        /// The number of the chunk, from 0 on.
        chunk: u32,
        /// How the tasks ended.
        record: Box<ChunkRecord>,
    },
    /// A chunk is gone with its job.
    UnsetChunk {
        /// The number of its job.
        job: JobId,
        /// The number of the chunk.
        chunk: u32,
    },
}

/// A message that outlived the broker's last run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredMessage {
    /// The serial of the message.
    pub serial: u64,
    /// Its content.
    pub record: Record,
    /// The attempts that were written down; `None`: none, and no change of its wait.
    pub mark: Option<AttemptMark>,
}

/// The attempts of a message so far, as they are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AttemptMark {
    /// Deliveries made that count.
    pub attempts: u16,
    /// The text of its last failure, if it is a dead letter.
    pub failure: Option<Bytes>,
    /// The next attempt waits for that.
    pub wait: Option<Wait>,
}

/// A wait before an attempt, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When it is over, in Unix milliseconds.
    pub until_unix_ms: u64,
    /// How long all of it is.
    pub all_ms: u32,
}
