//! Admin calls and their answers: one map in, one map out.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::Slots;
use super::archive::{FileView, OutputPiece, OutputPlace, UploadId};
use super::job::{JobId, JobSpec, JobView, TaskReason, TaskState, TaskView};
use super::view::{BrokerView, ConsumerView, DeadView, Explanation, QueueSettings, QueueView, WorkerView};

/// What an admin asks for. `op` names it on the wire.
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
        /// Its name.
        queue: String,
    },
    /// The rota of one queue, next first.
    #[serde(rename = "queue.consumers")]
    QueueConsumers {
        /// Its name.
        queue: String,
    },
    /// Gives a queue settings of its own, or the usual ones.
    #[serde(rename = "queue.set")]
    QueueSet {
        /// Its name.
        queue: String,
        /// Its own settings; nil: the usual ones. The key must be there: a misspelt one shall not undo a setting.
        #[serde(deserialize_with = "Option::deserialize")]
        settings: Option<QueueSettings>,
    },
    /// Removes messages that wait, those whose turn is next first.
    #[serde(rename = "queue.purge")]
    QueuePurge {
        /// Its name.
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
        /// The new number.
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
        /// What is asked for.
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
        /// What the worker is known by at the foreman.
        worker: String,
        /// Of tasks that run there; may be empty, to learn what is wanted.
        pieces: Vec<OutputPiece>,
    },
    /// A worker hands in a piece of a file that a task brought back. Answered when it is kept.
    #[serde(rename = "task.file")]
    TaskFile {
        /// What the worker is known by at the foreman.
        worker: String,
        /// The job.
        job: JobId,
        /// The number of the task, which runs there.
        task: u32,
        /// The attempt.
        attempt: u32,
        /// The file's path in the task's directory.
        name: String,
        /// Where the piece begins; pieces come in order.
        at: u64,
        /// The file ends with it.
        last: bool,
        /// The piece.
        bytes: Bytes,
    },
    /// What tasks of a job wrote, from a place on; or what came after some moment, in the order in which it came.
    #[serde(rename = "job.output")]
    JobOutput {
        /// Which job.
        job: JobId,
        /// Ranges of task numbers, both ends included; nil: all tasks.
        #[serde(default)]
        tasks: Option<Vec<(u32, u32)>>,
        /// Where to begin.
        #[serde(default)]
        from: OutputPlace,
        /// Only what arrived after that: `arrived` of an earlier answer. What was left out for want of room is not there.
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
        /// What the whole file is known by.
        upload: UploadId,
        /// Its size.
        size: u64,
        /// Where the piece begins; pieces come in order.
        at: u64,
        /// The piece.
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
    /// Why a message is where it is.
    #[serde(rename = "message.explain")]
    MessageExplain {
        /// Its id.
        id: String,
    },
    /// Ends a message, waiting or running.
    #[serde(rename = "message.cancel")]
    MessageCancel {
        /// Its id.
        id: String,
    },
}

impl AdminCall {
    /// Answered when something has happened, however long that takes.
    pub const fn waits(&self) -> bool {
        matches!(self, Self::JobWait { .. })
    }
}

/// What the broker answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op")]
pub enum AdminAnswer {
    /// To `status`, and to `drain` and `resume`: the broker after the change.
    #[serde(rename = "status")]
    Status {
        /// The broker.
        broker: Box<BrokerView>,
    },
    /// To `queue.ls`.
    #[serde(rename = "queue.ls")]
    Queues {
        /// The rows.
        queues: Vec<QueueView>,
        /// Where the next page begins, if there is one.
        next: Option<String>,
    },
    /// To `queue.show`, and to `queue.set`: the queue after the change.
    #[serde(rename = "queue.show")]
    Queue {
        /// The queue.
        queue: Box<QueueView>,
    },
    /// To `queue.consumers`.
    #[serde(rename = "queue.consumers")]
    Consumers {
        /// The rota, next first.
        consumers: Vec<ConsumerView>,
    },
    /// To `queue.dead.ls`.
    #[serde(rename = "queue.dead.ls")]
    DeadLetters {
        /// The rows.
        dead: Vec<DeadView>,
        /// Where the next page begins, if there is one.
        next: Option<String>,
    },
    /// To `queue.dead.show`.
    #[serde(rename = "queue.dead.show")]
    DeadLetter {
        /// The letter.
        dead: Box<DeadView>,
        /// Whether what it carries begins with a header block.
        headers: bool,
        /// A piece of what it carries, from where it was asked for. The message says how many bytes there are in all.
        piece: Bytes,
    },
    /// To `queue.purge`, `queue.dead.retry` and `queue.dead.purge`.
    #[serde(rename = "queue.portion")]
    Portion {
        /// Messages this call has dealt with.
        done: u64,
        /// Messages of that kind which the queue has now.
        left: u64,
    },
    /// To `worker.ls`.
    #[serde(rename = "worker.ls")]
    Workers {
        /// The rows.
        workers: Vec<WorkerView>,
        /// Where the next page begins, if there is one.
        next: Option<u64>,
    },
    /// To `worker.show`, `worker.resize`, `worker.drain`, `worker.resume` and `worker.stop`: the worker after
    /// the change.
    #[serde(rename = "worker.show")]
    Worker {
        /// The worker.
        worker: Box<WorkerView>,
    },
    /// To `job.ls`.
    #[serde(rename = "job.ls")]
    Jobs {
        /// The rows.
        jobs: Vec<JobView>,
        /// Where the next page begins, if there is one.
        next: Option<JobId>,
    },
    /// To `job.show`, `job.wait` and `job.rm`; to `job.submit`, `job.cancel`, `job.hold` and `job.release`: the job after
    /// the change.
    #[serde(rename = "job.show")]
    Job {
        /// The job.
        job: Box<JobView>,
    },
    /// To `job.tasks`.
    #[serde(rename = "job.tasks")]
    Tasks {
        /// The rows.
        tasks: Vec<TaskView>,
        /// Where the next page begins, if there is one.
        next: Option<u32>,
    },
    /// To `task.output` and `task.file`.
    #[serde(rename = "task.output")]
    OutputKept {
        /// Bytes that are kept of one attempt's output: half from its beginning, half from its end.
        per_task: u64,
        /// Tasks of that worker which somebody looks at.
        follow: Vec<(JobId, u32)>,
        /// Attempts that do not run at that worker: nothing of them was kept.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refused: Vec<(JobId, u32, u32)>,
    },
    /// To `job.output`.
    #[serde(rename = "job.output")]
    Output {
        /// What was written, in order.
        pieces: Vec<OutputPiece>,
        /// Where to go on.
        next: OutputPlace,
        /// The moment up to which this answer tells what arrived, if it was asked by arrival; else that of the latest
        /// arrival of all.
        arrived: u64,
        /// There is no more now.
        end: bool,
    },
    /// To `job.files`.
    #[serde(rename = "job.files")]
    Files {
        /// The rows.
        files: Vec<FileView>,
        /// Where the next page begins, if there is one.
        next: Option<(u32, String)>,
    },
    /// To `job.file` and `upload.get`.
    #[serde(rename = "piece")]
    Piece {
        /// The piece, from where it was asked for.
        bytes: Bytes,
        /// The size of the whole.
        size: u64,
    },
    /// To `upload.check` and `upload.put`.
    #[serde(rename = "upload.check")]
    Uploads {
        /// What is not there, or not whole.
        missing: Vec<UploadId>,
    },
    /// To `job.explain`.
    #[serde(rename = "job.explain")]
    TaskExplained {
        /// The job, without its spec.
        job: Box<JobView>,
        /// The task.
        task: Box<TaskView>,
        /// Why it is where it is.
        because: Box<TaskReason>,
    },
    /// To `message.explain`, and to `message.cancel`: the message before it was cancelled.
    #[serde(rename = "message.explain")]
    Message {
        /// The message and its reason.
        explanation: Box<Explanation>,
    },
}
