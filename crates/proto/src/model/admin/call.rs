//! Admin calls.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::Slots;
use crate::model::archive::{OutputPiece, OutputPlace, UploadId};
use crate::model::job::{JobId, JobSpec, TaskState};
use crate::model::ring::Sid;
use crate::model::view::QueueSettings;

/// A call of an admin. `op` names it on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op")]
pub enum AdminCall {
    /// The broker as a whole.
    #[serde(rename = "status")]
    Status,
    /// For maintenance: no work is taken or handed out until `resume`. What runs may finish; what is stored stays.
    #[serde(rename = "drain")]
    Drain,
    /// The maintenance is over.
    #[serde(rename = "resume")]
    Resume,
    /// Queues in order of name, those after `after`.
    #[serde(rename = "queue.ls")]
    QueueLs {
        /// Where the last page ended.
        #[serde(default)]
        after: Option<String>,
        /// Rows wanted.
        limit: u32,
    },
    /// One queue with the head of its backlog.
    #[serde(rename = "queue.show")]
    QueueShow {
        /// The name of the queue.
        queue: String,
    },
    /// The rota of one queue, next first.
    #[serde(rename = "queue.consumers")]
    QueueConsumers {
        /// The name of the queue.
        queue: String,
    },
    /// Gives a queue settings of its own, or the usual ones.
    #[serde(rename = "queue.set")]
    QueueSet {
        /// The name of the queue.
        queue: String,
        /// Its own settings; nil: the usual ones. The key must be there: a misspelt one shall not undo a setting.
        #[serde(deserialize_with = "Option::deserialize")]
        settings: Option<QueueSettings>,
    },
    /// Removes messages that wait, those whose turn is next first.
    #[serde(rename = "queue.purge")]
    QueuePurge {
        /// The name of the queue.
        queue: String,
        /// How many at most; one call does no more than a portion.
        limit: u32,
    },
    /// Dead letters of a queue in the order of their deaths, those after `after`.
    #[serde(rename = "queue.dead.ls")]
    DeadLs {
        /// The queue's name.
        queue: String,
        /// The last id of the page before.
        #[serde(default)]
        after: Option<String>,
        /// Rows wanted.
        limit: u32,
    },
    /// One dead letter with a piece of what it carries.
    #[serde(rename = "queue.dead.show")]
    DeadShow {
        /// The queue's name.
        queue: String,
        /// The letter's id.
        id: String,
        /// Where the piece begins.
        #[serde(default)]
        from: u64,
    },
    /// Puts dead letters back into their queue, as if they had never been tried: those named, and so many of the
    /// oldest.
    #[serde(rename = "queue.dead.retry")]
    DeadRetry {
        /// The queue's name.
        queue: String,
        /// Ids; if one of them is no dead letter of this queue, nothing changes.
        #[serde(default)]
        ids: Vec<String>,
        /// How many of the oldest at most; one call does no more than a portion.
        #[serde(default)]
        oldest: u32,
    },
    /// Removes dead letters: those named, and so many of the oldest.
    #[serde(rename = "queue.dead.purge")]
    DeadPurge {
        /// The queue's name.
        queue: String,
        /// Ids; if one of them is no dead letter of this queue, nothing changes.
        #[serde(default)]
        ids: Vec<String>,
        /// How many of the oldest at most; one call does no more than a portion.
        #[serde(default)]
        oldest: u32,
    },
    /// Workers in order of id, those after `after`.
    #[serde(rename = "worker.ls")]
    WorkerLs {
        /// The last id of the page before.
        #[serde(default)]
        after: Option<u64>,
        /// Rows wanted.
        limit: u32,
    },
    /// One worker with what it holds.
    #[serde(rename = "worker.show")]
    WorkerShow {
        /// Id or name.
        worker: String,
    },
    /// Gives a worker another number of slots.
    #[serde(rename = "worker.resize")]
    WorkerResize {
        /// Id or name.
        worker: String,
        /// The new number of slots.
        slots: Slots,
    },
    /// Gives a worker no new work.
    #[serde(rename = "worker.drain")]
    WorkerDrain {
        /// Id or name.
        worker: String,
    },
    /// Gives a drained worker work again.
    #[serde(rename = "worker.resume")]
    WorkerResume {
        /// Id or name.
        worker: String,
    },
    /// Asks a worker to end: after what it has, or at once.
    #[serde(rename = "worker.stop")]
    WorkerStop {
        /// Id or name.
        worker: String,
        /// At once; what it has goes to others without counting as an attempt.
        #[serde(default)]
        now: bool,
    },
    /// Takes a job in. The same key again gives the job that came with it first.
    #[serde(rename = "job.submit")]
    JobSubmit {
        /// The description of the job.
        spec: Box<JobSpec>,
    },
    /// Jobs, the latest first, those before `before`.
    #[serde(rename = "job.ls")]
    JobLs {
        /// The last id of the page before.
        #[serde(default)]
        before: Option<JobId>,
        /// Rows wanted.
        limit: u32,
    },
    /// One job.
    #[serde(rename = "job.show")]
    JobShow {
        /// Which one; nil: the latest.
        job: Option<JobId>,
    },
    /// Tasks of a job in the order of their numbers, those after `after`.
    #[serde(rename = "job.tasks")]
    JobTasks {
        /// Which job.
        job: JobId,
        /// Only those in that state.
        #[serde(default)]
        state: Option<TaskState>,
        /// The last task of the page before.
        #[serde(default)]
        after: Option<u32>,
        /// Rows wanted.
        limit: u32,
    },
    /// Ends tasks of a job, waiting or running.
    #[serde(rename = "job.cancel")]
    JobCancel {
        /// Which job.
        job: JobId,
        /// Ranges of task numbers, both ends included; nil: all tasks.
        #[serde(default)]
        tasks: Option<Vec<(u32, u32)>>,
    },
    /// Lets tasks of a job that have ended wait again. The job goes on, or is open again.
    #[serde(rename = "job.retry")]
    JobRetry {
        /// Which job.
        job: JobId,
        /// Ranges of task numbers, both ends included: those that have ended, in whatever way; nil: all that failed.
        #[serde(default)]
        tasks: Option<Vec<(u32, u32)>>,
        /// Where the last portion ended.
        #[serde(default)]
        after: Option<u32>,
    },
    /// Starts nothing more of a job.
    #[serde(rename = "job.hold")]
    JobHold {
        /// Which job.
        job: JobId,
    },
    /// Lets a held job go on.
    #[serde(rename = "job.release")]
    JobRelease {
        /// Which job.
        job: JobId,
    },
    /// Answered when the job has ended.
    #[serde(rename = "job.wait")]
    JobWait {
        /// Which job.
        job: JobId,
    },
    /// Forgets a job that has ended.
    #[serde(rename = "job.rm")]
    JobRm {
        /// Which job.
        job: JobId,
    },
    /// Why a task of a job is where it is.
    #[serde(rename = "job.explain")]
    JobExplain {
        /// Which job.
        job: JobId,
        /// The number of the task; nil: the one that tells most about the job, which is the first that waits, or else
        /// the first that runs.
        #[serde(default)]
        task: Option<u32>,
    },
    /// A worker hands in what its tasks wrote. Answered when it is kept.
    #[serde(rename = "task.output")]
    TaskOutput {
        /// The `Id` of the worker's HELLO at the foreman.
        worker: String,
        /// Of tasks that run there; may be empty, to learn what is wanted.
        pieces: Vec<OutputPiece>,
    },
    /// A worker hands in a piece of a file that a task brought back. Answered when it is kept.
    #[serde(rename = "task.file")]
    TaskFile {
        /// The `Id` of the worker's HELLO at the foreman.
        worker: String,
        /// The job of the task.
        job: JobId,
        /// The number of the task, which runs there.
        task: u32,
        /// The attempt that returned the file.
        attempt: u32,
        /// The file's path in the task's directory.
        name: String,
        /// Where the piece begins; pieces come in order.
        at: u64,
        /// The file ends with it.
        last: bool,
        /// The next bytes of the file.
        bytes: Bytes,
    },
    /// Output of tasks of a job, from a place on; or output that came after some moment, in the order in which it came.
    #[serde(rename = "job.output")]
    JobOutput {
        /// Which job.
        job: JobId,
        /// Ranges of task numbers, both ends included; nil: all tasks.
        #[serde(default)]
        tasks: Option<Vec<(u32, u32)>>,
        /// The place to begin at.
        #[serde(default)]
        from: OutputPlace,
        /// Only what arrived after that: `arrived` of an earlier answer. What was left out for lack of room is not there.
        #[serde(default)]
        after: Option<u64>,
        /// Somebody looks at it as it comes: workers are asked for what they would leave out otherwise.
        #[serde(default)]
        follow: bool,
        /// Bytes wanted at most.
        limit: u32,
    },
    /// Files that tasks of a job brought back, by task and name, those after `after`.
    #[serde(rename = "job.files")]
    JobFiles {
        /// Which job.
        job: JobId,
        /// Task and name of the last one of the page before.
        #[serde(default)]
        after: Option<(u32, String)>,
        /// Rows wanted.
        limit: u32,
    },
    /// A piece of a file that a task brought back.
    #[serde(rename = "job.file")]
    JobFile {
        /// Which job.
        job: JobId,
        /// The number of the task.
        task: u32,
        /// The file's path in the task's directory.
        name: String,
        /// Where the piece begins.
        #[serde(default)]
        at: u64,
    },
    /// Which of these uploads the broker does not have. Those it has are kept for an hour at least.
    #[serde(rename = "upload.check")]
    UploadCheck {
        /// Those.
        uploads: Vec<UploadId>,
    },
    /// A piece of a file for tasks.
    #[serde(rename = "upload.put")]
    UploadPut {
        /// The id of the whole file.
        upload: UploadId,
        /// The size of the whole file.
        size: u64,
        /// Where the piece begins; pieces come in order.
        at: u64,
        /// The next bytes of the file.
        bytes: Bytes,
    },
    /// A piece of an upload.
    #[serde(rename = "upload.get")]
    UploadGet {
        /// Which one.
        upload: UploadId,
        /// Where the piece begins.
        #[serde(default)]
        at: u64,
    },
    /// Topics that something was published about lately, in order, those after `after`.
    #[serde(rename = "topic.ls")]
    TopicLs {
        /// The last topic of the page before.
        #[serde(default)]
        after: Option<String>,
        /// Rows wanted.
        limit: u32,
    },
    /// Subscribers.
    #[serde(rename = "topic.subscribers")]
    TopicSubscribers {
        /// To that topic; nil: to anything.
        #[serde(default)]
        topic: Option<String>,
        /// The last number of the page before.
        #[serde(default)]
        after: Option<u32>,
        /// Rows wanted.
        limit: u32,
    },
    /// A subscriber that fetches, with these filters. One that is there gets them as well.
    #[serde(rename = "topic.create")]
    TopicCreate {
        /// The id of the subscriber.
        id: String,
        /// Which topics it wants.
        filters: Vec<String>,
    },
    /// Fetches what waits for a subscriber. It is gone from the broker with the answer.
    #[serde(rename = "topic.recv")]
    TopicRecv {
        /// The id of the subscriber.
        id: String,
        /// Events wanted.
        limit: u32,
    },
    /// A subscriber that fetches is gone, with all that waits for it.
    #[serde(rename = "topic.destroy")]
    TopicDestroy {
        /// The id of the subscriber.
        id: String,
    },
    /// Why a message is where it is.
    #[serde(rename = "message.explain")]
    MessageExplain {
        /// The id of the subscriber.
        id: String,
    },
    /// Ends a message, waiting or running.
    #[serde(rename = "message.cancel")]
    MessageCancel {
        /// The id of the subscriber.
        id: String,
    },
    /// A message that waits for a time goes on at once; a dead letter goes back into its queue. Any other stays as it is.
    #[serde(rename = "message.retry")]
    MessageRetry {
        /// Its id.
        id: String,
    },
    /// Links, up or wanted.
    #[serde(rename = "link.ls")]
    LinkLs {},
    /// A link to that address is wanted from now on, until the broker ends.
    #[serde(rename = "link.add")]
    LinkAdd {
        /// HOST:PORT.
        address: String,
    },
    /// A link is not wanted any more: by its address, or by the name or the id of the broker at its other end.
    #[serde(rename = "link.rm")]
    LinkRm {
        /// One of these.
        link: String,
    },
    /// Brokers that can be reached, and who has links with whom.
    #[serde(rename = "link.graph")]
    LinkGraph {},
    /// The endpoints for ZeroMQ programs. The host of the engine answers.
    #[serde(rename = "zmq.ls")]
    ZmqLs {},
    /// The ring as this broker sees it.
    #[serde(rename = "ring.show")]
    Ring {},
    /// The broker joins a ring, at that member.
    #[serde(rename = "ring.join")]
    RingJoin {
        /// HOST:PORT where that member listens for others.
        next: String,
        /// The broker that must be there. `None`: any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sid: Option<Sid>,
    },
    /// The broker leaves its ring, and goes on alone.
    #[serde(rename = "ring.leave")]
    RingLeave {},
    /// All brokers of the ring end. Only from the machine that the broker runs on.
    #[serde(rename = "ring.shutdown")]
    RingShutdown {},
}

impl AdminCall {
    /// Answered when something has happened, however long that takes.
    pub const fn waits(&self) -> bool {
        matches!(self, Self::JobWait { .. })
    }

    /// Deals with many things, or looks at them: others are heard after each such call.
    pub const fn is_about_many(&self) -> bool {
        matches!(
            self,
            Self::QueueLs { .. }
                | Self::QueueConsumers { .. }
                | Self::QueuePurge { .. }
                | Self::DeadLs { .. }
                | Self::DeadRetry { .. }
                | Self::DeadPurge { .. }
                | Self::WorkerLs { .. }
                | Self::JobLs { .. }
                | Self::JobShow { .. }
                | Self::JobTasks { .. }
                | Self::JobCancel { .. }
                | Self::JobRm { .. }
                | Self::JobRetry { .. }
                | Self::JobExplain { .. }
                | Self::MessageExplain { .. }
                | Self::TopicLs { .. }
                | Self::TopicSubscribers { .. }
        )
    }
}
