//! `docs/reference/limits.md`: every limit with the value in the code.

use std::fmt::Write as _;

use turno_proto::headers::HEADERS_MAX;
use turno_proto::model::{Limits, limits};

use crate::same_as_published;

const HEAD: &str = "\
# Limits

Every limit of the native protocol, generated from the code. Limits marked * are defaults of the broker's
[configuration](configuration.md); all others are fixed for version 1 of the protocol. The limits of the job worker protocol
are on [its own page](protocol/job-worker.md#limits).
";

/// The text of a limit, its value with a unit, and the effect of exceeding it.
type Row = (String, String, &'static str);

fn row(limit: impl Into<String>, value: impl TryInto<u64>, unit: &str, effect: &'static str) -> Row {
    (limit.into(), format!("{}{unit}", number(value)), effect)
}

fn connections(set: &Limits) -> Vec<Row> {
    vec![
        row("frame length after the greeting *", set.frame_bytes_max, " bytes", "closed, `frame_too_large`"),
        row(
            "frame length before CONNECT is answered",
            limits::GREETING_FRAME_BYTES_MAX,
            " bytes",
            "closed, `frame_too_large`",
        ),
        row("time for CONNECT", limits::GREETING_MS_MAX, " ms", "closed, `greeting_timeout`"),
        row("connections without CONNECT", limits::GREETINGS_MAX, "", "the oldest is closed, `greeting_timeout`"),
        row("connections *", set.connections_max, "", "closed, `too_many_connections`"),
        row("shortest heartbeat", limits::HEARTBEAT_MS_MIN, " ms", "raised to this"),
        row("longest heartbeat", limits::HEARTBEAT_MS_MAX, " ms", "lowered to this"),
        row("silent heartbeats", limits::LIVENESS, "", "closed, `peer_silent`"),
        row("values in a control map from a peer", limits::MAP_VALUES_MAX, "", "refused, `bad_body`"),
        row("peer name", limits::PEER_NAME_BYTES_MAX, " bytes", "truncated between characters"),
        row(
            "unread bytes at which the broker stops reading from a peer *",
            set.out_bytes_pause,
            " bytes",
            "reading continues when the peer has read; a worker receives no deliveries until then",
        ),
        row(
            "unread bytes of a peer, without deliveries and the longest frame *",
            set.out_bytes_max,
            " bytes",
            "closed, `slow_reader`",
        ),
        row(
            format!("the same, if the peer has read within the last {} ms *", limits::OUT_STALL_MS),
            set.out_bytes_max * limits::OUT_PATIENCE,
            " bytes",
            "closed, `slow_reader`",
        ),
        row("time without reading while bytes wait *", set.write_stall_ms_max, " ms", "closed, `slow_reader`"),
    ]
}

fn memory(set: &Limits) -> Vec<Row> {
    vec![
        row(
            "memory of the broker *",
            set.memory_bytes_max,
            " bytes",
            "refused or closed, `over_memory`; messages on disk: one at a time per queue",
        ),
        row(
            "bytes of an incomplete frame held without a reservation",
            limits::FRAME_HELD_BYTES,
            " bytes",
            "memory for the whole frame is reserved, waited for, or refused",
        ),
        row(
            "time that a frame waits for memory",
            limits::FRAME_WAIT_MS,
            " ms",
            "refused, `over_memory`; REPLY, ACK, FAIL and PROGRESS: closed",
        ),
        row(
            "pause within an incomplete frame while others wait for memory",
            limits::FRAME_STALL_MS,
            " ms",
            "closed, `over_memory`; after that also below 65,536 bytes per second",
        ),
        row(
            "unread bytes of a peer that reads nothing while memory is short",
            limits::OUT_TIGHT_BYTES,
            " bytes",
            "no more deliveries; closed, `over_memory`, after the time below",
        ),
        row("time without reading while memory is short", limits::OUT_TIGHT_STALL_MS, " ms", "closed, `over_memory`"),
    ]
}

fn queues(set: &Limits) -> Vec<Row> {
    vec![
        row("queue name", limits::QUEUE_NAME_BYTES_MAX, " bytes", "refused, `bad_name`"),
        row("queues *", set.queues_max, "", "refused, `too_many_queues`"),
        row("handles of a connection", limits::HANDLES_MAX, "", "refused, `too_many_handles`"),
        row("a new handle above the highest one", limits::HANDLE_GAP_MAX, "", "refused, `too_many_handles`"),
        row("slots of a worker", limits::SLOTS_MAX, "", "refused, `bad_slots`"),
        row("highest priority", limits::PRIORITY_MAX, "", "refused, `bad_option`"),
        row("headers of a message", HEADERS_MAX, "", "refused by the receiver"),
        row(
            "parts of a message",
            limits::MESSAGE_PARTS_MAX,
            "",
            "refused by the sender, `too_many_parts`; for a receiver the body is one part",
        ),
        row("deadline of a request", limits::REQUEST_DEADLINE_MS_MAX, " ms", "lowered to this"),
        row("deadline of a send", limits::SEND_DEADLINE_MS_MAX, " ms", "lowered to this"),
        row("delay of a send", limits::DELAY_MS_MAX, " ms", "refused, `bad_option`"),
        row(
            "wait between two attempts of a send",
            limits::RETRY_DELAY_MS_MAX,
            " ms",
            "as a setting of a queue refused, `bad_call`; from a worker lowered to this",
        ),
        row("dedup id", limits::DEDUP_ID_BYTES_MAX, " bytes", "refused, `bad_option`"),
        row("time that a dedup id is remembered", limits::DEDUP_WINDOW_MS, " ms", "a send with it is a new message"),
        row("remembered dedup ids of a queue", set.dedup_ids_max, "", "the oldest is forgotten, and counted"),
        row("unanswered requests of a connection *", set.in_flight_max, "", "refused, `too_many_in_flight`"),
        row("dead letters of a queue *", set.dead_max, "", "the broker warns; none is deleted"),
        row("stored failure text of a dead letter", limits::FAILURE_BYTES_MAX, " bytes", "truncated"),
        row("time that a cancelled delivery keeps its slots", limits::CANCEL_GRACE_MS, " ms", "they are free"),
        row("workers named in BROADCAST_END, of each kind", limits::BROADCAST_NAMES_MAX, "", "counted only"),
        row(
            "time that a free exclusive queue is reserved for the notified worker",
            limits::QUEUE_OFFER_MS,
            " ms",
            "the next worker is notified",
        ),
    ]
}

fn topics() -> Vec<Row> {
    let waiting = format!(
        "waiting events of a connection, besides {} bytes that are being written",
        number(limits::EVENT_ROOM_BYTES)
    );
    let dropped = "the oldest are dropped, and counted";
    vec![
        row("topic or filter", limits::TOPIC_BYTES_MAX, " bytes", "refused, `bad_topic`"),
        row("segments of a topic or filter", limits::TOPIC_SEGMENTS_MAX, "", "refused, `bad_topic`"),
        row("filters of a subscriber", limits::SUBSCRIPTIONS_MAX, "", "refused, `too_many_subscriptions`"),
        row("shapes of a subscriber's wildcard filters", limits::SHAPES_MAX, "", "refused, `too_many_subscriptions`"),
        row("filters of all subscribers", limits::SUBSCRIPTIONS_ALL_MAX, "", "refused, `too_many_subscriptions`"),
        row("segments of all filters", limits::SUBSCRIPTION_SEGMENTS_MAX, "", "refused, `too_many_subscriptions`"),
        row(
            "distinct sets of positions of several `*` in all filters",
            limits::STARS_MAX,
            "",
            "refused, `too_many_subscriptions`",
        ),
        row(
            waiting,
            limits::EVENTS_WAITING_BYTES_MAX,
            " bytes",
            "the oldest are dropped, with EVENTS_DROPPED; or closed, `slow_reader`",
        ),
        row("fetching subscribers", limits::FETCHERS_MAX, "", "refused, `too_many_subscriptions`"),
        row("id of a fetching subscriber", limits::FETCHER_ID_BYTES_MAX, " bytes", "refused, `bad_name`"),
        row("waiting events of a fetching subscriber", limits::FETCHER_EVENTS_MAX, "", dropped),
        row("their size", limits::FETCHER_BYTES_MAX, " bytes", dropped),
        row(
            "their size for all fetching subscribers",
            limits::FETCHERS_BYTES_MAX,
            " bytes",
            "the oldest events of the receiving subscriber are dropped, and counted",
        ),
        row(
            "events returned by one admin call, unless it is a single event",
            limits::FETCH_BYTES_MAX,
            " bytes",
            "the next call returns the rest",
        ),
        row("topics whose events are counted", limits::TOPICS_COUNTED_MAX, "", "an idle topic is forgotten"),
    ]
}

fn admin_calls() -> Vec<Row> {
    vec![
        row("rows of a page", limits::PAGE_MAX, "", "the next page"),
        row("rows of a page of topics or subscribers", limits::TOPIC_PAGE_MAX, "", "the next page"),
        row("messages removed or returned by one call", limits::PORTION_MAX, "", "the next call"),
        row("messages counted as `ahead`, within one priority", limits::AHEAD_MAX, "", "counted no further"),
        row("the same in the answer to `message.cancel`", limits::AHEAD_CANCELLED_MAX, "", "counted no further"),
        row(
            "bytes of a dead letter, of output or of a file in one call",
            limits::PIECE_BYTES_MAX,
            " bytes",
            "the next call; in an argument: `bad_call`",
        ),
        row("failure text in a listing", limits::FAILURE_LINE_BYTES_MAX, " bytes", "truncated"),
    ]
}

fn jobs() -> Vec<Row> {
    vec![
        row("tasks of a job", limits::TASKS_MAX, "", "refused, `bad_job`"),
        row("highest task number", limits::TASK_NUMBER_MAX, "", "refused, `bad_job`"),
        row("numbers and ranges in `parts` of an array", limits::ARRAY_PARTS_MAX, "", "refused, `bad_body`"),
        row("job name", limits::JOB_NAME_BYTES_MAX, " bytes", "refused, `bad_job`"),
        row("job key", limits::JOB_KEY_BYTES_MAX, " bytes", "refused, `bad_job`; also if empty"),
        row("`work` of a job", limits::WORK_BYTES_MAX, " bytes", "refused, `bad_job`"),
        row("values in `work`", limits::WORK_VALUES_MAX, "", "refused, `bad_job`"),
        row("nesting in `work`", limits::WORK_DEPTH_MAX, "", "refused, `bad_job`"),
        row("jobs that a job depends on", limits::JOB_AFTER_MAX, "", "refused, `bad_job`"),
        row("ranges of tasks in one admin call", limits::TASK_RANGES_MAX, "", "refused, `bad_call`"),
        row("item of a task in a listing", limits::LISTED_ITEM_BYTES_MAX, " bytes", "truncated"),
        row("remembered earlier attempts of a task", limits::TASK_ATTEMPTS_KEPT_MAX, "", "the oldest is forgotten"),
        row(
            "tasks with remembered earlier attempts",
            limits::ATTEMPTED_TASKS_MAX,
            "",
            "those of the oldest job are forgotten",
        ),
        row("tasks retried by one admin call", limits::RETRIED_MAX, "", "the next call"),
        row("attempts of a retried task", limits::TASK_ATTEMPTS_MAX, "", "it is not retried"),
        row("jobs", limits::JOBS_MAX, "", "refused, `too_many_jobs`"),
        row("callers that wait for the end of jobs", limits::JOB_WAITERS_MAX, "", "refused, `too_many_in_flight`"),
        row("time between two attempts of a task", limits::BACKOFF_MS_MAX, " ms", "lowered to this"),
        row("status text of a failed task", limits::TASK_STATUS_BYTES_MAX, " bytes", "truncated"),
        row("pieces of output in one call", limits::OUTPUT_PIECES_MAX, "", "`bad_call`"),
        row(
            "output that a worker can deliver per attempt, as a multiple of the kept size",
            limits::OUTPUT_SLACK,
            "",
            "the rest is dropped",
        ),
        row("name of a result file", limits::FILE_NAME_BYTES_MAX, " bytes", "`bad_call`"),
        row("result files of an attempt", limits::FILES_PER_TASK_MAX, "", "`archive_full`, from twice as many on"),
        row("uploads named by one call or one job", limits::JOB_UPLOADS_MAX, "", "`bad_call`, `bad_job`"),
        row("uploads", limits::UPLOADS_MAX, "", "`over_disk`"),
        row("time that an unused upload is kept", limits::UPLOAD_KEPT_MS, " ms", "removed"),
        row("unanswered calls to the archive", limits::ARCHIVE_CALLS_MAX, "", "`archive_busy`"),
        row(
            "time that a reader counts as following output",
            limits::FOLLOW_MS,
            " ms",
            "workers omit the middle of the output again",
        ),
    ]
}

fn links() -> Vec<Row> {
    vec![
        row("brokers in a path", limits::PATH_MAX, "", "the message does not cross; received: closed, `bad_body`"),
        row(
            "known brokers",
            limits::BROKERS_MAX,
            "",
            "further ones are ignored; received in one frame: closed, `bad_body`",
        ),
        row("links of a broker", limits::LINKS_MAX, "", "`too_many_links`"),
        row("offers in one OFFER", limits::OFFERS_MAX, "", "the next OFFER; received: closed, `bad_body`"),
        row(
            "frame length on a link, if `frame_bytes_max` is lower",
            limits::LINK_FRAME_BYTES,
            " bytes",
            "closed, `frame_too_large`",
        ),
        row("additional frame length for fields", limits::LINK_FIELDS_BYTES, " bytes", "closed, `frame_too_large`"),
        row("heartbeat of a link", limits::LINK_HEARTBEAT_MS, " ms", "closed after 3 silent ones, `peer_silent`"),
        row(
            "shortest secret of links",
            limits::LINK_SECRET_BYTES_MIN,
            " bytes",
            "the broker does not start, `bad_config`",
        ),
    ]
}

fn ring() -> Vec<Row> {
    vec![
        row("members of a ring", limits::RING_MEMBERS_MAX, "", "`ring_full`; received: closed, `bad_body`"),
        row("hops of a frame", limits::RING_HOPS_MAX, "", "dropped, and counted"),
        row(
            "own publications that have not come round",
            limits::RING_WINDOW_BYTES,
            " bytes",
            "publishers are slowed down",
        ),
        row("their number", limits::RING_WINDOW, "", "publishers are slowed down"),
        row("kept publications of one origin", limits::RING_KEPT_BYTES_MAX, " bytes", "dropped, and counted"),
        row("their number", limits::RING_KEPT_MAX, "", "dropped, and counted"),
        row(
            "origins in one RING_HAVE",
            limits::RING_ORIGINS_MAX,
            "",
            "the oldest ended incarnations are forgotten; received: closed, `bad_body`",
        ),
        row("address of a member", limits::RING_ADDRESS_BYTES_MAX, " bytes", "closed, `bad_body`"),
        row("frame length in the ring", limits::RING_FRAME_BYTES_MAX, " bytes", "closed, `frame_too_large`"),
        row(
            "frame length before the opening frame, and of frames that go back",
            limits::RING_BACK_BYTES_MAX,
            " bytes",
            "closed, `frame_too_large`",
        ),
        row("heartbeat of the ring *", limits::RING_BEAT_MS, " ms", "closed after 3 silent ones, `peer_silent`"),
    ]
}

#[test]
fn the_page_of_limits_is_current() {
    let set = Limits::default();
    let sections = [
        ("Connections", connections(&set)),
        ("Memory", memory(&set)),
        ("Queues and messages", queues(&set)),
        ("Topics", topics()),
        ("Admin calls", admin_calls()),
        ("Jobs", jobs()),
        ("Links", links()),
        ("Ring", ring()),
    ];
    let mut text = HEAD.to_owned();
    for (heading, rows) in sections {
        write!(text, "\n## {heading}\n\n| limit | value | if exceeded |\n|---|---|---|\n").expect("writes to a String");
        for (limit, value, effect) in rows {
            writeln!(text, "| {limit} | {value} | {effect} |").expect("writes to a String");
        }
    }
    same_as_published("limits.md", &text);
}

/// A number with its thousands separated by commas.
fn number(value: impl TryInto<u64>) -> String {
    let Ok(value) = value.try_into() else { panic!("limits fit 64 bits") };
    let digits = value.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}
