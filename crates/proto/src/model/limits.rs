//! Every limit of the broker, in one place, with what happens when it is hit.
//!
//! Constants are the limits of the wire and of the engine that nobody needs to set; [`Limits`] holds those
//! a configuration may change.

use std::num::NonZeroUsize;

/// Bytes of a queue name. Longer: refused, `bad_name`.
pub const QUEUE_NAME_BYTES_MAX: usize = 255;
/// Bytes of a worker's or client's name. Longer: cut. Of a job worker's id: `bad_message`.
pub const PEER_NAME_BYTES_MAX: usize = 128;
/// Bytes of a frame (header included) before the greeting is done. Longer: closed, `frame_too_large`.
pub const GREETING_FRAME_BYTES_MAX: usize = 4 * 1024;
/// Time for the greeting. Longer: closed, `greeting_timeout`.
pub const GREETING_MS_MAX: u64 = 5_000;
/// Connections in the greeting. More: the oldest of them is closed, `greeting_timeout`.
pub const GREETINGS_MAX: usize = 512;
/// Bytes one read takes from a connection. The rest waits for the next turn.
pub const READ_BYTES: usize = 64 * 1024;
/// Bytes that wait on their way from a router's thread to the engine's, and as many on the way back. More: what would
/// add to them waits, and in the end peers are not read from.
pub const MAIL_BYTES_MAX: usize = 1024 * 1024;
/// Router threads. More: refused.
pub const ROUTERS_MAX: usize = 64;
/// How long a peer that has much to read may take nothing before it counts as one that does not read.
pub const OUT_STALL_MS: u64 = 50;
/// How many times as much may wait for a peer that does read as for one that does not.
pub const OUT_PATIENCE: usize = 8;
/// Shortest heartbeat a peer may ask for. Shorter: raised to this.
pub const HEARTBEAT_MS_MIN: u32 = 250;
/// Longest heartbeat a peer may ask for. Longer: lowered to this.
pub const HEARTBEAT_MS_MAX: u32 = 60_000;
/// Heartbeat when the peer names none.
pub const HEARTBEAT_MS: u32 = 5_000;
/// Heartbeats a peer may miss. More silence: closed, `peer_silent`; its deliveries move on.
pub const LIVENESS: u32 = 3;
/// Values (keys and elements count too) in a control map that a peer sends. More: refused, `bad_body`.
pub const MAP_VALUES_MAX: usize = 256;
/// Slots of one worker. More: `bad_slots`.
pub const SLOTS_MAX: u32 = 1_000_000;
/// Slots of a worker that names none (S0.10).
pub const SLOTS: u32 = 10;
/// Queue handles a connection may hold. More: `too_many_handles`.
pub const HANDLES_MAX: u32 = 65_536;
/// How far a new handle may stand above the highest one opened before. Further: `too_many_handles`. The table
/// of handles is dense, and must not grow by a peer's claim alone.
pub const HANDLE_GAP_MAX: u32 = 255;
/// Highest priority; the lowest is 0.
pub const PRIORITY_MAX: u8 = 9;
/// Priority of a message that names none.
pub const PRIORITY: u8 = 4;
/// Redeliveries of a send that names none (10 attempts in all).
pub const SEND_RETRIES: u8 = 9;
/// Deliveries in a row that expire at a worker until it is dropped from the queue, where nothing else is set (S2.31).
pub const DROP_AFTER: u16 = 2;
/// The most of them a queue may bear; 0 is for ever. More: refused, `bad_call`.
pub const DROP_AFTER_MAX: u16 = 1_000;
/// Messages a queue gets of each round of a worker that has several queues, where nothing else is set.
pub const WEIGHT: u8 = 1;
/// The most of them, the fewest are 1. More, or none: refused, `bad_call`.
pub const WEIGHT_MAX: u8 = 100;
/// Bytes of a dedup id; the fewest are 1. More, or none: refused, `bad_option`.
pub const DEDUP_ID_BYTES_MAX: usize = 64;
/// How long a dedup id is known. Later: a send with it is a new message.
pub const DEDUP_WINDOW_MS: u64 = 3_600_000;
/// Dedup ids forgotten at a time. More: the rest is forgotten [`DEDUP_SWEEP_MS`] later.
pub const DEDUP_SWEEP_MAX: usize = 1_000;
/// Shortest time between two rounds of forgetting dedup ids.
pub const DEDUP_SWEEP_MS: u64 = 100;
/// Longest deadline of a request. Longer: lowered to this.
pub const REQUEST_DEADLINE_MS_MAX: u32 = 3_600_000;
/// Longest deadline of a send. Longer: lowered to this.
pub const SEND_DEADLINE_MS_MAX: u32 = 2_592_000_000;
/// How long a cancelled or expired delivery may hold its slots while the worker stops it (TERM, 5 s, KILL).
pub const CANCEL_GRACE_MS: u64 = 10_000;
/// How long a free queue is kept for the worker that was told of it. Then it is offered to the next one.
pub const QUEUE_OFFER_MS: u64 = 5_000;
/// Period of the checker that would place what a missed event left behind (S0.30).
pub const CHECKER_MS: u64 = 1_000;
/// Rows of one page of a listing. More: the next page.
pub const PAGE_MAX: u32 = 1_000;
/// Messages that one admin call removes or puts back, so that others are served in between. More: the next call.
pub const PORTION_MAX: u32 = 1_000;
/// Requests that end in one go because their caller is gone or the broker drains, so that others are served in between.
/// More: the next ones [`PORTION_PAUSE_MS`] later.
pub const CHORES_MAX: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();
/// Pause after each portion of them.
pub const PORTION_PAUSE_MS: u64 = 1;
/// Bytes of messages that one admin call writes to disk anew. More: the next call.
pub const PORTION_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a dead letter that one admin call shows. More: the next call.
pub const PIECE_BYTES_MAX: usize = 256 * 1024;
/// Messages named in a queue's or worker's view. More: only counted.
pub const VIEW_MESSAGES_MAX: usize = 20;
/// Bytes counted for a message beside its payload.
pub const MESSAGE_OVERHEAD_BYTES: usize = 128;
/// Bytes of stored messages that wait in memory, for each priority of a queue. More: they wait on disk, and are loaded
/// when their turn is near.
pub const HOT_BYTES: u64 = 1024 * 1024;
/// Messages of one priority of a queue that are on their way back from the disk. More: loaded after these.
pub const LOADS_MAX: usize = 256;
/// Questions about messages that are only on disk and not answered yet. More: refused, `too_many_in_flight`.
pub const QUESTIONS_MAX: usize = 256;
/// Tasks of one job. More: refused, `bad_job`.
pub const TASKS_MAX: u32 = 10_000_000;
/// Highest number of a task: the foreman's protocol has signed ones. Higher: refused, `bad_job`.
pub const TASK_NUMBER_MAX: u32 = 2_147_483_647;
/// Bytes of a job's name. More: refused, `bad_job`.
pub const JOB_NAME_BYTES_MAX: usize = 128;
/// Bytes of a job's key. More, or none: refused, `bad_job`.
pub const JOB_KEY_BYTES_MAX: usize = 64;
/// Bytes of the map that says what the tasks of a job do: many of them go into one frame. More: refused, `bad_job`.
pub const WORK_BYTES_MAX: usize = 64 * 1024;
/// Values (keys and elements count too) in that map. More: refused, `bad_job`.
pub const WORK_VALUES_MAX: usize = 4_096;
/// Maps and lists inside each other in that map. More: refused, `bad_job`.
pub const WORK_DEPTH_MAX: usize = 16;
/// Jobs that one job may be after. More: refused, `bad_job`.
pub const JOB_AFTER_MAX: usize = 16;
/// Tasks that one call names, as ranges: as many as surely fit into a control map. More: refused, `bad_call`.
pub const TASK_RANGES_MAX: usize = 64;
/// Ranges of tasks of one job that were cancelled, once those side by side are one. More: refused, `bad_call`.
pub const CANCELLED_RANGES_MAX: usize = 10_000;
/// Tasks that one call for those in some state looks at. More: the next page, which may begin with none.
pub const TASKS_SEEN_MAX: u32 = 100_000;
/// Jobs that are known at a time, ended ones too. More: refused, `too_many_jobs`.
pub const JOBS_MAX: usize = 100_000;
/// Callers that wait for the end of jobs. More: refused, `too_many_in_flight`.
pub const JOB_WAITERS_MAX: usize = 10_000;
/// How long a task stays with a worker whose connection is gone. Then it waits for another attempt (S4.76).
pub const TASK_GRACE_MS: u64 = 60_000;
/// How long a task stays with a worker that did not name it in its HELLO: its UPDATE may follow (S4.77).
pub const TASK_UNNAMED_MS: u64 = 5_000;
/// How often the worker of a task may be lost. More often: the task has failed, `worker_lost`.
pub const TASK_LOSSES_MAX: u8 = 5;
/// How long a worker is offered nothing after it refused what it had room for (S4.61).
pub const REFUSAL_PAUSE_MS: u64 = 1_000;
/// Longest time between two attempts of a task. Longer: lowered to this.
pub const BACKOFF_MS_MAX: u64 = 3_600_000;
/// How long after its time limit a task is told to stop by the broker, should its worker not have done so.
pub const TIME_LIMIT_SLACK_MS: u64 = 10_000;
/// Bytes of what a worker said of a failed task. More: cut.
pub const TASK_STATUS_BYTES_MAX: usize = 256;
/// Failed tasks of one job whose worker's words are kept. More: only how they ended.
pub const TASK_STATUSES_MAX: usize = 10_000;
/// Tasks in one JOB frame. More: the next frame.
pub const OFFER_TASKS_MAX: usize = 256;
/// Bytes of what the tasks in one JOB frame do, unless it is one task. More: the next frame.
pub const OFFER_BYTES_MAX: usize = 1024 * 1024;
/// Starts of tasks that are stored together. More: the next group.
pub const STARTS_MAX: usize = 10_000;

/// Workers that the end of a broadcast names as expired, and as many as left. More: only counted.
pub const BROADCAST_NAMES_MAX: usize = 100;
/// Broadcasts that wait in `turno work` while as many run as it has slots. More: failed, `busy`.
pub const BROADCASTS_WAITING_MAX: usize = 1_000;
/// Bytes of their bodies. More: failed, `busy`, unless none waits.
pub const BROADCASTS_WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a failure's text that a dead letter keeps, and of the status in a job worker's UPDATE. More: cut.
pub const FAILURE_BYTES_MAX: usize = 4 * 1024;
/// Bytes of it that a listing shows. More: cut.
pub const FAILURE_LINE_BYTES_MAX: usize = 160;

/// Processors a job worker may have, and tasks in one body: the pair of an OK keeps 65,535 for "send HELLO". More: the
/// worker does not start; in HELLO or JOB, `bad_message`.
pub const FOREMAN_PROCS_MAX: u16 = 65_534;
/// Bytes of a foreman body, where nothing else is set. Longer: closed; nothing is allocated for it.
pub const FOREMAN_BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Values (keys and elements count too) in a foreman body. More: `bad_message`.
pub const FOREMAN_VALUES_MAX: usize = 2_000_000;
/// How deep arrays and maps may nest in a foreman body. Deeper: `bad_message`.
pub const FOREMAN_DEPTH_MAX: usize = 16;
/// Requests a foreman connection holds until their turn comes, where nothing else is set. More: `overflow`.
pub const FOREMAN_HELD_MAX: usize = 16;
/// How long a job worker waits for the foreman's first OK. Longer: it says HELLO all the same.
pub const FOREMAN_BANNER_MS: u64 = 5_000;
/// How long a foreman waits for HELLO. Longer: closed.
pub const FOREMAN_HELLO_MS: u64 = 10_000;
/// How long a RESET may be unanswered. Longer: closed.
pub const FOREMAN_RESET_MS: u64 = 30_000;
/// After `overflow` a request is sent again this much later, or after the next good answer to another.
pub const FOREMAN_REISSUE_MS: u64 = 100;
/// How long a worker is offered nothing after it refused what it has room for.
pub const FOREMAN_REST_MS: u64 = 1_000;
/// How long a hand waits for an answer when it asks for the foreman's address, and for a connection there. Longer: it
/// tries again after a rest.
pub const HAND_DIAL_MS: u64 = 5_000;
/// The first rest of a hand that has lost its foreman; each is twice as long as the one before, a part of it by chance.
pub const HAND_REDIAL_MS_MIN: u64 = 100;
/// Its longest rest.
pub const HAND_REDIAL_MS_MAX: u64 = 5_000;
/// Labels of a hand. More: it does not start.
pub const HAND_LABELS_MAX: usize = 64;

/// The limits a configuration may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a frame. Longer: closed, `frame_too_large`; nothing is allocated for it.
    pub frame_bytes_max: usize,
    /// Connections. More: closed with `too_many_connections`.
    pub connections_max: usize,
    /// Queues. More: `too_many_queues`.
    pub queues_max: usize,
    /// Unanswered requests of one connection. More: refused, `too_many_in_flight`.
    pub in_flight_max: u32,
    /// Bytes of messages held in memory. More: refused, `over_memory`.
    pub memory_bytes_max: u64,
    /// Dedup ids known at a time, of all queues. More: the oldest is forgotten.
    pub dedup_ids_max: usize,
    /// Dead letters kept per queue. More: the oldest goes, counted.
    pub dead_max: usize,
    /// Bytes waiting for one peer that reads none of them, beside deliveries and the longest frame among them. More:
    /// closed, `slow_reader`; its deliveries move on. One that does read may have [`OUT_PATIENCE`] times as many.
    pub out_bytes_max: usize,
    /// Bytes waiting for one peer beyond which the broker stops reading from it, until half of them are taken.
    pub out_bytes_pause: usize,
    /// How long a peer may take nothing while bytes wait for it. Longer: closed, `slow_reader`.
    pub write_stall_ms_max: u64,
    /// Deadline of a request that names none (S1.33).
    pub request_deadline_ms: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame_bytes_max: 16 * 1024 * 1024,
            connections_max: 10_000,
            queues_max: 100_000,
            in_flight_max: 100_000,
            memory_bytes_max: 4 * 1024 * 1024 * 1024,
            dedup_ids_max: 1_000_000,
            dead_max: 10_000,
            out_bytes_max: 8 * 1024 * 1024,
            out_bytes_pause: 1024 * 1024,
            write_stall_ms_max: 10_000,
            request_deadline_ms: 30_000,
        }
    }
}
