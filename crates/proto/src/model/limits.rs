//! Every limit of the broker, with its effect.
//!
//! Constants are the limits of the wire and of the engine that nobody needs to set; [`Limits`] holds those
//! a configuration may change. `load` has those that keep strangers from holding up or filling the broker,
//! `losses` those about workers that are lost, `outbox` those of the output that a worker holds, `zmtp` those of ZeroMQ peers.

mod delays;
mod load;
mod losses;
mod outbox;
mod zmtp;

use std::num::NonZeroUsize;

pub use self::delays::*;
pub use self::load::*;
pub use self::losses::*;
pub use self::outbox::*;
pub use self::zmtp::*;

/// Bytes of a queue name. Longer: refused, `bad_name`.
pub const QUEUE_NAME_BYTES_MAX: usize = 255;
/// Parts of a message. More: a sender refuses it, a receiver takes the body as one part; of a ZeroMQ peer, which is closed:
/// `too_many_parts`.
pub const MESSAGE_PARTS_MAX: usize = 1_024;
/// Bytes of a topic or a filter. Longer: refused, `bad_topic`.
pub const TOPIC_BYTES_MAX: usize = 255;
/// Segments of a topic or a filter. More: refused, `bad_topic`.
pub const TOPIC_SEGMENTS_MAX: usize = 32;
/// Filters of one connection, or of one subscriber that fetches. More: refused, `too_many_subscriptions`.
pub const SUBSCRIPTIONS_MAX: usize = 10_000;
/// Filters of all together. More: refused, `too_many_subscriptions`.
pub const SUBSCRIPTIONS_ALL_MAX: usize = 1_000_000;
/// Segments of all filters together: each may be a node of the tree, and a long one is stored by itself. More: refused,
/// `too_many_subscriptions`.
pub const SUBSCRIPTION_SEGMENTS_MAX: usize = 4_000_000;
/// Subscribers that fetch. More: refused, `too_many_subscriptions`.
pub const FETCHERS_MAX: usize = 10_000;
/// Events that wait for a subscriber that fetches. More: the oldest goes, and is counted.
pub const FETCHER_EVENTS_MAX: usize = 10_000;
/// Bytes of them. More: the oldest goes, and is counted.
pub const FETCHER_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes of them for all such subscribers together. More: the oldest of the one that gets more goes, and is counted.
pub const FETCHERS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes of events that one call fetches, unless it is one event. More: the next call.
pub const FETCH_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of the id of a subscriber that fetches. More, or none: refused, `bad_name`.
pub const FETCHER_ID_BYTES_MAX: usize = 128;
/// Bytes that wait to be written to a subscriber before events wait apart from them.
pub const EVENT_ROOM_BYTES: usize = 256 * 1024;
/// Bytes of events that wait for one connection, [`MESSAGE_OVERHEAD_BYTES`] each beside them. More: the oldest go,
/// counted, or it is closed, `slow_reader`. As much may wait in a client for one of its subscriptions.
pub const EVENTS_WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Rows of an answer about topics or subscribers: for each, all filters are asked. More: the next call.
pub const TOPIC_PAGE_MAX: u32 = 100;
/// Topics whose events are counted. More: the one that was silent for longest is forgotten.
pub const TOPICS_COUNTED_MAX: usize = 1_000;
/// Receivers of such a topic that the engine remembers. More: they are looked up for each event.
pub const TOPIC_RECEIVERS_KNOWN_MAX: usize = 100;
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
/// Work that one connection gets done in one turn; a plain frame is 1. More: the rest waits for the next turn.
pub const TURN_WORK: u32 = 256;
/// The work that an admin call or a broadcast is. A call about many things (a listing, a purge) is a turn of its own.
pub const TURN_WORK_HEAVY: u32 = 16;
/// The work that a caller's CANCEL is.
pub const TURN_WORK_CANCEL: u32 = 4;
/// Copies of an event, one for each connection that it is for, that are the work of a plain frame.
pub const TURN_WORK_COPIES: u32 = 64;
/// Work of one router's connections that the engine does in one go, if routers have threads. More: the other routers have
/// theirs first.
pub const ROUTER_TURN_WORK: u32 = 4 * TURN_WORK;
/// Bytes that wait on their way from a router's thread to the engine's, and as many on the way back. More: what would
/// add to them waits, and in the end peers are not read from.
pub const MAIL_BYTES_MAX: usize = 1024 * 1024;
/// So many of these bytes is what an input counts as that is more work than a plain frame, for each frame more.
pub const MAIL_WORK_BYTES: usize = 256;
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
/// Bytes of memory that a dedup id counts as.
pub const DEDUP_ID_MEMORY_BYTES: u64 = 96;
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
pub const PORTION_MAX: u32 = 250;
/// Requests that end in one go because their caller is gone or the broker drains, so that others are served in between.
/// More: the next ones [`PORTION_PAUSE_MS`] later.
pub const CHORES_MAX: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();
/// Pause after each portion of them.
pub const PORTION_PAUSE_MS: u64 = 1;
/// Bytes of messages that one admin call writes to disk anew. More: the next call.
pub const PORTION_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of a dead letter, of output or of a file that one admin call brings or shows. More: the next call; brought in one:
/// refused, `bad_call`.
pub const PIECE_BYTES_MAX: usize = 256 * 1024;
/// Messages counted that go before one that waits. More: as many as were counted until then.
pub const AHEAD_MAX: u64 = 10_000;
/// The same for one that is being cancelled: many may be, and nobody waits for that number.
pub const AHEAD_CANCELLED_MAX: u64 = 100;
/// Messages named in a queue's or worker's view. More: only counted.
pub const VIEW_MESSAGES_MAX: usize = 20;
/// Bytes counted for a message beside its payload.
pub const MESSAGE_OVERHEAD_BYTES: usize = 128;
/// Bytes of stored messages that wait in memory, for each priority of a queue. More: they wait on disk, and are loaded
/// when their turn is near and memory has room for them (see [`Limits::kept_for_new`]).
pub const HOT_BYTES: u64 = 1024 * 1024;
/// Messages of one priority of a queue that are on their way back from the disk. More: loaded after these.
pub const LOADS_MAX: usize = 256;
/// Questions about messages that are only on disk and not answered yet. More: refused, `too_many_in_flight`.
pub const QUESTIONS_MAX: usize = 256;
/// Tasks of one job. More: refused, `bad_job`.
pub const TASKS_MAX: u32 = 10_000_000;
/// Highest number of a task: the foreman's protocol has signed ones. Higher: refused, `bad_job`.
pub const TASK_NUMBER_MAX: u32 = 2_147_483_647;
/// Numbers and ranges in the list of an array, `1,3,5-8`. More: refused, `bad_job`.
pub const ARRAY_PARTS_MAX: usize = 1_000;
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
/// Bytes of the items of a job: a submission fits into one frame. More: refused, `bad_job`.
pub const ITEMS_BYTES_MAX: usize = 12 * 1024 * 1024;
/// Fields of an item, and columns of a job. More: refused, `bad_job`.
pub const ITEM_FIELDS_MAX: usize = 1_000;
/// Placeholders in what the tasks of a job do. More: refused, `bad_job`.
pub const FILL_PLACES_MAX: usize = 64;
/// Bytes of what one task does with its item put in, so that it fits into a frame. More: refused, `bad_job`.
pub const FILLED_BYTES_MAX: usize = 1024 * 1024;
/// Jobs that one job may be after. More: refused, `bad_job`.
pub const JOB_AFTER_MAX: usize = 16;
/// Labels that one job may ask for. More, or two of one key: refused, `bad_job`.
pub const JOB_LABELS_MAX: usize = 16;
/// Bytes of a label's key, at least 1, and of its value. More in a job: refused, `bad_job`; of a worker: left out.
pub const LABEL_BYTES_MAX: usize = 64;
/// Labels of one worker. More: left out.
pub const WORKER_LABELS_MAX: usize = 64;
/// Tags of one job. More: refused, `bad_job`.
pub const JOB_TAGS_MAX: usize = 16;
/// Bytes of a tag, at least 1. More: refused, `bad_job`.
pub const TAG_BYTES_MAX: usize = 64;
/// Uploads that one job or one call may name: as many as fit into a control map beside all else. More: refused,
/// `bad_job` or `bad_call`.
pub const JOB_UPLOADS_MAX: usize = 64;
/// Tasks that one call names, as ranges: as many as surely fit into a control map. More: refused, `bad_call`.
pub const TASK_RANGES_MAX: usize = 64;
/// Ranges of tasks of one job that were cancelled, once those side by side are one. More: refused, `bad_call`.
pub const CANCELLED_RANGES_MAX: usize = 10_000;
/// Tasks that one call for those in some state looks at. More: the next page, which may begin with none.
pub const TASKS_SEEN_MAX: u32 = 100_000;
/// Bytes of a task's item in a listing. More: cut, with `…` at its end; `job.explain` has the whole.
pub const LISTED_ITEM_BYTES_MAX: usize = 256;
/// Bytes of a task's item in an answer about that task. More: cut, with `…` at its end.
pub const SHOWN_ITEM_BYTES_MAX: usize = 1024 * 1024;
/// Earlier attempts of one task that are remembered. More: the oldest is forgotten.
pub const TASK_ATTEMPTS_KEPT_MAX: usize = 20;
/// Tasks whose earlier attempts are remembered. More: those of the oldest job are forgotten.
pub const ATTEMPTED_TASKS_MAX: usize = 10_000;
/// Tasks that one call retries. More: the next call.
pub const RETRIED_MAX: u32 = 10_000;
/// Attempts of a task that can be told apart once it has ended. As many: it is not retried, and stays as it ended.
pub const TASK_ATTEMPTS_MAX: u16 = u16::MAX;
/// Jobs that are known at a time, ended ones too. More: refused, `too_many_jobs`.
pub const JOBS_MAX: usize = 100_000;
/// How long a job that has ended is known, where nothing else is set. Longer: forgotten.
pub const KEEP_FINISHED_MS: u64 = 604_800_000;
/// Jobs that are forgotten in one go. More: the next ones [`PORTION_PAUSE_MS`] later.
pub const FORGET_MAX: usize = 100;
/// When a job that could not be forgotten is looked at again.
pub const FORGET_AGAIN_MS: u64 = 60_000;
/// Callers that wait for the end of jobs. More: refused, `too_many_in_flight`.
pub const JOB_WAITERS_MAX: usize = 10_000;
/// How long a task stays with a worker whose connection is gone, where nothing else is set. Then it waits for another
/// attempt (S4.76).
pub const TASK_GRACE_MS: u64 = 60_000;
/// Workers whose number of slots an admin lowered and that are remembered over their connections. More: the one whose id
/// comes first has all its slots when it connects again.
pub const RESIZED_WORKERS_MAX: usize = 10_000;
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
/// Failed tasks of one job whose worker's text is kept. More: only how they ended.
pub const TASK_STATUSES_MAX: usize = 10_000;
/// Tasks in one JOB frame. More: the next frame.
pub const OFFER_TASKS_MAX: usize = 256;
/// Bytes of what the tasks in one JOB frame do, unless it is one task. More: the next frame.
pub const OFFER_BYTES_MAX: usize = 1024 * 1024;
/// Starts of tasks that are stored together. More: the next group.
pub const STARTS_MAX: usize = 10_000;

/// Bytes that are kept of one attempt's output, where nothing else is set. More: its middle is left out by the worker.
pub const OUTPUT_PER_TASK_BYTES: u64 = 1024 * 1024;
/// How many times as much a worker may hand in. More: dropped, and the answer is the same.
pub const OUTPUT_SLACK: u64 = 2;
/// Bytes of all output, where nothing else is set. More: the oldest goes.
pub const OUTPUT_TOTAL_BYTES: u64 = 1024 * 1024 * 1024;
/// Bytes of all results, where nothing else is set. More: refused, `archive_full`.
pub const RESULT_TOTAL_BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// Bytes of all uploads. More: refused, `over_disk`.
pub const UPLOAD_TOTAL_BYTES: u64 = 16 * 1024 * 1024 * 1024;
/// Bytes of output, of results and of uploads of a broker that lives in memory, each. More: as above.
pub const ARCHIVE_MEMORY_BYTES: u64 = 64 * 1024 * 1024;
/// Uploads. More: refused, `over_disk`.
pub const UPLOADS_MAX: usize = 10_000;
/// How long an upload is kept that no job names, after it was put or asked for.
pub const UPLOAD_KEPT_MS: u64 = 3_600_000;
/// Pieces of output in one call: as many as surely fit into a control map. More: refused, `bad_call`. Their bytes, and
/// those of every other piece, are [`PIECE_BYTES_MAX`] at most.
pub const OUTPUT_PIECES_MAX: usize = 16;
/// Pieces of output in one answer. More: the next answer.
pub const OUTPUT_ANSWER_PIECES_MAX: usize = 4_096;
/// Bytes of the name of a file that a task brings back. More, or none: refused, `bad_call`.
pub const FILE_NAME_BYTES_MAX: usize = 1_024;
/// Files that one attempt brings back. More: refused, `archive_full`.
pub const FILES_PER_TASK_MAX: u32 = 1_000;
/// Calls to the archive that are not answered. More: refused, `archive_busy`.
pub const ARCHIVE_CALLS_MAX: usize = 1_024;
/// Bytes that calls to the archive bring and may take away. More: refused, `archive_busy`.
pub const ARCHIVE_CALLS_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Free bytes of the archive's disk. Fewer: refused, `over_disk`.
pub const ARCHIVE_FREE_BYTES_MIN: u64 = 128 * 1024 * 1024;
/// Bytes of output in memory, for those who look at tasks now. More: the oldest goes.
pub const LIVE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How long workers send what would be left out, after somebody looked at a task.
pub const FOLLOW_MS: u64 = 10_000;
/// Looks at tasks that count at a time. More: the oldest does not any more.
pub const FOLLOWS_MAX: usize = 256;
/// Tasks that one worker is told are looked at. More: the rest is not.
pub const FOLLOWED_TASKS_MAX: usize = 1_000;

/// How often a worker fetches an upload whose bytes are not what they should be. More often: the task fails.
pub const UPLOAD_FETCHES_MAX: u32 = 3;
/// How long a worker waits for the broker to give the next piece of an upload, or to take that of a result. Longer: the
/// task fails.
pub const FILE_PATIENCE_MS: u64 = 300_000;
/// How often a worker begins to send a result anew, because the broker lost what it had of it. More often: the task fails.
pub const RESULT_SENDS_MAX: u32 = 10;
/// Bytes of all files that one attempt brings back. More: the task fails.
pub const RESULT_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Files and directories that a worker looks at to find what a task brings back. More: the task fails.
pub const COLLECT_SEEN_MAX: usize = 1_000_000;
/// Bytes of a file that `turno submit` makes tasks of. More: refused, `bad_job`.
pub const EACH_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes at the beginning of a script in which `turno submit` looks for its flags. What is behind is not looked at.
pub const SCRIPT_HEAD_BYTES_MAX: u64 = 64 * 1024;
/// Directories inside each other of which `turno submit` uploads the files. More: refused, `bad_usage`.
pub const UPLOAD_DEPTH_MAX: usize = 32;

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
/// How long a job worker waits for an answer when it asks for the foreman's address, and for a connection there. Longer: it
/// tries again after a rest.
pub const JOB_WORKER_DIAL_MS: u64 = 5_000;
/// The first rest of a job worker that has lost its foreman; each is twice as long as the one before, a part of it by chance.
pub const JOB_WORKER_REDIAL_MS_MIN: u64 = 100;
/// The longest rest of a job worker that has lost its foreman.
pub const JOB_WORKER_REDIAL_MS_MAX: u64 = 5_000;

/// Brokers on the way of a message over links, or of what one broker tells about another. Longer: it does not cross.
pub const PATH_MAX: usize = 8;
/// Brokers that may be known at a time. More: those that are told of last are not known.
pub const BROKERS_MAX: usize = 64;
/// Links of one broker, up or wanted. More: refused, `too_many_links`.
pub const LINKS_MAX: usize = 32;
/// Slots that one room may be said to have. More: taken as this many.
pub const ROOM_SLOTS_MAX: u32 = 1_000;
/// How long a link that is not there is left alone before it is dialled again; up to a quarter more, by chance.
pub const REDIAL_MS: u64 = 1_000;
/// The same where dialling can do no good before somebody changes something: the broker itself, a second link.
pub const REDIAL_HOPELESS_MS: u64 = 30_000;
/// Changes of offers are sent at most this often, unless something came back for lack of room.
pub const OFFER_PAUSE_MS: u64 = 5;
/// Messages in a row that come back from a link before it is left alone for that queue for a while.
pub const RETURNS_MAX: u32 = 3;
/// That while, at first; doubled with each more, up to a hundred times.
pub const RETURN_PAUSE_MS: u64 = 10;
/// A broadcast has this much less time behind each link, or a tenth less, so that its end there is told in time.
pub const BROADCAST_CROSSING_MS: u64 = 100;
/// How long the home of an exclusive queue may take to say who has it. Longer: QUEUE_FULL.
pub const CLAIM_MS: u64 = 2_000;
/// How long a queue that became free at one broker is left to those who wait there.
pub const PROMOTION_MS: u64 = 1_000;
/// Consumers that a broadcast may be said to have had behind one link. More: that end is not believed.
pub const FAR_CONSUMERS_MAX: u32 = 1_000_000;
/// PING over a link; silence for three times as long ends it.
pub const LINK_HEARTBEAT_MS: u32 = 1_000;
/// Offers in one OFFER. More: told in the next one; read in one: closed, `bad_body`.
pub const OFFERS_MAX: usize = 64;
/// Bytes of a frame over a link, should the broker's own limit be lower: offers and presence must fit. Longer: closed,
/// `frame_too_large`.
pub const LINK_FRAME_BYTES: usize = 1024 * 1024;
/// By so many bytes a frame over a link may be longer than what clients may send: fields, path and targets.
pub const LINK_FIELDS_BYTES: usize = 1024;
/// Bytes of a link's secret. Fewer, or more than [`LINK_SECRET_BYTES_MAX`]: refused, `bad_config`. Anyone who can connect gets a
/// proof to try guesses against at leisure.
pub const LINK_SECRET_BYTES_MIN: usize = 16;
/// The most of them.
pub const LINK_SECRET_BYTES_MAX: usize = 1024;
/// Time for finding and reaching the other end of a link. Longer: `link_down`.
pub const LINK_DIAL_MS: u64 = 5_000;

/// Members of a ring. More: refused, `ring_full`.
pub const RING_MEMBERS_MAX: usize = 128;
/// Members that a publication, or a message about the ring, may go through. More: it is dropped and counted.
pub const RING_HOPS_MAX: u8 = 128;
/// Bytes of a member's own publications that have not come round. More: publishers are slowed down until some have.
pub const RING_WINDOW_BYTES: usize = 8 * 1024 * 1024;
/// How many of them there may be. More: the same.
pub const RING_WINDOW: usize = 65_536;
/// Bytes of one origin's publications that a member keeps: an origin that keeps to its window never has as many under way.
/// More: dropped and counted.
pub const RING_KEPT_BYTES_MAX: usize = 2 * RING_WINDOW_BYTES;
/// How many of them. More: the same.
pub const RING_KEPT_MAX: usize = 2 * RING_WINDOW;
/// Origins whose last publication a member remembers, and tells a new predecessor. More: the lives that ended longest ago
/// are forgotten.
pub const RING_ORIGINS_MAX: usize = 1_024;
/// Brokers that ask to join at one member at a time. More: refused, `ring_busy`.
pub const RING_JOINERS_MAX: usize = 128;
/// Lost members that are looked for at a time.
pub const RING_PROBES_MAX: usize = 8;
/// Bytes of HOST:PORT of a member. Longer: closed, `bad_body`.
pub const RING_ADDRESS_BYTES_MAX: usize = 261;
/// Bytes of a frame between members of a ring: whatever one of them takes from its clients goes through all, so that this is
/// the most that can be configured, and some more for fields. Longer: closed, `frame_too_large`.
pub const RING_FRAME_BYTES_MAX: usize = 1024 * 1024 * 1024 + LINK_FIELDS_BYTES;
/// Bytes of a frame that goes back to the sender, or comes from one without a number. Longer: closed, `frame_too_large`.
pub const RING_BACK_BYTES_MAX: usize = 1024 * 1024;
/// Between two signs of life on a connection of the ring; silence for three times as long ends it.
pub const RING_BEAT_MS: u32 = 1_000;
/// The same on a network that is quick (`--ring-fast`).
pub const RING_BEAT_FAST_MS: u32 = 100;
/// Time for asking a member for a free number. Longer: `ring_down`.
pub const RING_ASK_MS: u64 = 5_000;
/// Free numbers that a broker tries which is to find its own. If somebody else has all of them: `duplicate_sid`.
pub const RING_SIDS_TRIED: u32 = 5;

/// No clock that is right shows less: milliseconds of 2026-01-01. A clock before that is not judged by.
pub const CLOCK_MIN_MS: u64 = 1_767_225_600_000;
/// How far an incarnation may be ahead of the clock, a year. Later: refused, `bad_body`, and never remembered.
pub const RING_INCARNATION_AHEAD_MS: u64 = 366 * 86_400_000;
/// The same where the clock is not right: a hundred years after [`CLOCK_MIN_MS`].
pub const RING_INCARNATION_MAX: u64 = CLOCK_MIN_MS + 100 * RING_INCARNATION_AHEAD_MS;

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
    /// Bytes of all that the broker holds for others: messages, jobs, events, in-buffers and out-buffers. More: refused or closed,
    /// `over_memory`. A part of them is kept for frames on their way in (see [`Limits::frame_share`]).
    pub memory_bytes_max: u64,
    /// Dedup ids of one queue known at a time. More: its oldest is forgotten, and counted.
    pub dedup_ids_max: usize,
    /// Dead letters of a queue. More: the log, `status` and `doctor` warn; none is deleted.
    pub dead_max: usize,
    /// Bytes waiting for one peer that reads none of them, beside deliveries and the longest frame among them. More:
    /// closed, `slow_reader`; its deliveries move on. One that does read may have [`OUT_PATIENCE`] times as many.
    pub out_bytes_max: usize,
    /// Bytes waiting for one peer beyond which the broker stops reading from it, until half of them are taken. A worker with
    /// as many bytes of deliveries unread gets no more of them until it has read.
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
