//! Answers to admin calls.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::model::WorkerId;
use crate::model::archive::{FileView, OutputPiece, OutputPlace, UploadId};
use crate::model::job::{AttemptView, JobId, JobView, TaskReason, TaskView};
use crate::model::link::view::{BrokerNode, LinkView};
use crate::model::ring::view::RingView;
use crate::model::topic::view::{EventView, SubscriberView, TopicView};
use crate::model::view::{Because, BrokerView, ConsumerView, DeadView, Explanation, QueueView, WorkerView};
use crate::model::zmq::EndpointView;

/// Answers of the broker to an admin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "op")]
pub enum AdminAnswer {
    /// To `status`, and to `drain` and `resume`: the broker after the change.
    #[serde(rename = "status")]
    Status {
        /// View of the broker.
        broker: Box<BrokerView>,
    },
    /// To `queue.ls`.
    #[serde(rename = "queue.ls")]
    Queues {
        /// One page of queues.
        queues: Vec<QueueView>,
        /// Where the next page begins, if there is one.
        next: Option<String>,
    },
    /// To `queue.show`, and to `queue.set`: the queue after the change.
    #[serde(rename = "queue.show")]
    Queue {
        /// View of the queue.
        queue: Box<QueueView>,
    },
    /// To `queue.consumers`.
    #[serde(rename = "queue.consumers")]
    Consumers {
        /// The rota, next first.
        consumers: Vec<ConsumerView>,
        /// How many follow that are not shown.
        #[serde(default)]
        more: u64,
    },
    /// To `queue.dead.ls`.
    #[serde(rename = "queue.dead.ls")]
    DeadLetters {
        /// One page of dead letters.
        dead: Vec<DeadView>,
        /// Where the next page begins, if there is one.
        next: Option<String>,
    },
    /// To `queue.dead.show`.
    #[serde(rename = "queue.dead.show")]
    DeadLetter {
        /// View of the dead letter.
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
        /// One page of workers.
        workers: Vec<WorkerView>,
        /// Where the next page begins, if there is one.
        next: Option<WorkerId>,
    },
    /// To `worker.show`, `worker.resize`, `worker.drain`, `worker.resume` and `worker.stop`: the worker after
    /// the change.
    #[serde(rename = "worker.show")]
    Worker {
        /// View of the worker.
        worker: Box<WorkerView>,
    },
    /// To `job.ls`.
    #[serde(rename = "job.ls")]
    Jobs {
        /// One page of jobs.
        jobs: Vec<JobView>,
        /// Where the next page begins, if there is one.
        next: Option<JobId>,
    },
    /// To `job.show`, `job.wait` and `job.rm`; to `job.submit`, `job.cancel`, `job.hold` and `job.release`: the job after
    /// the change.
    #[serde(rename = "job.show")]
    Job {
        /// View of the job.
        job: Box<JobView>,
    },
    /// To `job.tasks`.
    #[serde(rename = "job.tasks")]
    Tasks {
        /// One page of tasks.
        tasks: Vec<TaskView>,
        /// Where the next page begins, if there is one.
        next: Option<u32>,
    },
    /// To `job.retry`.
    #[serde(rename = "job.retry")]
    Retried {
        /// The job whose tasks are retried.
        job: JobId,
        /// Tasks that wait again because of this call.
        tasks: u32,
        /// Where the next portion begins, if there is one.
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
        /// The output, in order.
        pieces: Vec<OutputPiece>,
        /// Where to go on.
        next: OutputPlace,
        /// The moment up to which this answer tells what arrived, if it was asked by arrival; else that of the latest
        /// arrival of all.
        arrived: u64,
        /// There is no more now.
        end: bool,
        /// A part of the archive cannot be read that may have held more of this job.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        damaged: bool,
    },
    /// To `job.files`.
    #[serde(rename = "job.files")]
    Files {
        /// One page of result files.
        files: Vec<FileView>,
        /// Where the next page begins, if there is one.
        next: Option<(u32, String)>,
        /// A part of the archive cannot be read that may have held more files of this job.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        damaged: bool,
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
        /// Uploads that are absent or incomplete.
        missing: Vec<UploadId>,
    },
    /// To `job.explain`.
    #[serde(rename = "job.explain")]
    TaskExplained {
        /// The job, without its spec.
        job: Box<JobView>,
        /// View of the task.
        task: Box<TaskView>,
        /// Why it is where it is.
        because: Box<Because<TaskReason>>,
        /// Earlier attempts of it, in order, as far as the broker remembers them.
        #[serde(default)]
        attempts: Vec<AttemptView>,
    },
    /// To `message.explain`, and to `message.cancel`: the message before it was cancelled.
    #[serde(rename = "message.explain")]
    Message {
        /// The message and its reason.
        explanation: Box<Explanation>,
    },
    /// To `topic.ls`.
    #[serde(rename = "topic.ls")]
    Topics {
        /// One page of topics.
        topics: Vec<TopicView>,
        /// Where the next page begins, if there is one.
        next: Option<String>,
    },
    /// To `topic.subscribers`; to `topic.create` and `topic.destroy`: the one.
    #[serde(rename = "topic.subscribers")]
    Subscribers {
        /// One page of subscribers.
        subscribers: Vec<SubscriberView>,
        /// Where the next page begins, if there is one.
        next: Option<u32>,
    },
    /// To `topic.recv`. None at all: there are no events now.
    #[serde(rename = "topic.recv")]
    Events {
        /// Fetched events, the oldest first.
        events: Vec<EventView>,
        /// Events that were dropped since the call before, because too many waited.
        missed: u64,
        /// Events that still wait.
        left: u64,
    },
    /// To `link.ls`; to `link.add` and `link.rm`: the one.
    #[serde(rename = "link.ls")]
    Links {
        /// One page of links.
        links: Vec<LinkView>,
    },
    /// To `link.graph`.
    #[serde(rename = "link.graph")]
    LinkGraph {
        /// The broker that was asked first, then the others by their names.
        brokers: Vec<BrokerNode>,
    },
    /// To `zmq.ls`.
    #[serde(rename = "zmq.ls")]
    ZmqEndpoints {
        /// In the order of the configuration.
        endpoints: Vec<EndpointView>,
    },
    /// To `ring.show`; to `ring.join`, `ring.leave` and `ring.shutdown`: the ring as it is when the broker begins with that.
    #[serde(rename = "ring.show")]
    Ring {
        /// As this broker sees it.
        ring: Box<RingView>,
    },
}

impl AdminAnswer {
    /// Bytes that it carries of messages, events and files.
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Output { pieces, .. } => pieces.iter().map(|piece| piece.bytes.len()).sum(),
            Self::Events { events, .. } => events.iter().map(|event| event.payload.len()).sum(),
            Self::Piece { bytes, .. } | Self::DeadLetter { piece: bytes, .. } => bytes.len(),
            Self::Status { .. }
            | Self::Queues { .. }
            | Self::Queue { .. }
            | Self::Consumers { .. }
            | Self::DeadLetters { .. }
            | Self::Portion { .. }
            | Self::Workers { .. }
            | Self::Worker { .. }
            | Self::Jobs { .. }
            | Self::Job { .. }
            | Self::Tasks { .. }
            | Self::Retried { .. }
            | Self::OutputKept { .. }
            | Self::Files { .. }
            | Self::Uploads { .. }
            | Self::TaskExplained { .. }
            | Self::Message { .. }
            | Self::Topics { .. }
            | Self::Subscribers { .. }
            | Self::Links { .. }
            | Self::LinkGraph { .. }
            | Self::ZmqEndpoints { .. }
            | Self::Ring { .. } => 0,
        }
    }
}
