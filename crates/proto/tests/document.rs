//! `docs/protocol.md` says what the code does: numbers, names, limits and bytes.

mod golden;
mod page;

use turno_proto::headers::HEADERS_MAX;
use turno_proto::model::{Code, Limits, limits};
use turno_proto::native::{Direction, Kind, VERSION, flags};

use crate::page::{assert_dumps, assert_links, assert_rows_begin, number};

const DOCUMENT: &str = include_str!("../../../docs/protocol.md");

#[test]
fn every_frame_type_is_in_its_table() {
    let rows: Vec<String> = Kind::ALL
        .iter()
        .map(|kind| {
            let direction = match kind.direction() {
                Direction::ToBroker => "peer → broker",
                Direction::ToPeer => "broker → peer",
                Direction::Both => "both",
                Direction::Link => "broker ↔ broker",
                Direction::Ring => "member ↔ member",
            };
            format!("| {} | {} | {direction} |", kind.number(), kind.name())
        })
        .collect();
    assert_rows_begin(DOCUMENT, "## Frame types", &rows);
}

#[test]
fn every_code_is_in_its_table() {
    let row = |code: &Code| format!("| {} | {} | {} |", code.number(), code.name(), code.text().what);
    let rows: Vec<String> = Code::ALL.iter().map(row).collect();
    assert_rows_begin(DOCUMENT, "### Codes", &rows);
}

#[test]
fn every_flag_is_in_its_table() {
    let bits = [
        (flags::DEADLINE, "DEADLINE | REQUEST, SEND, BROADCAST, DELIVER, FORWARD"),
        (flags::RETRIES, "RETRIES | REQUEST, SEND"),
        (flags::PRIORITY, "PRIORITY | REQUEST, SEND"),
        (flags::COST, "COST | REQUEST, SEND"),
        (flags::HEADERS, "HEADERS | every frame with a payload"),
        (flags::NO_REPLY, "NO_REPLY | REQUEST, BROADCAST, FORWARD, FORWARD_BROADCAST"),
        (flags::FAIL_FAST, "FAIL_FAST | REQUEST"),
        (flags::SKIP_SELF, "SKIP_SELF | BROADCAST"),
        (flags::ALONE, "ALONE | FORWARD"),
        (flags::CANCEL_ON_DISCONNECT, "CANCEL_ON_DISCONNECT | REQUEST"),
        (flags::DEDUP, "DEDUP | SEND"),
        (flags::WANTS_REPLY, "WANTS_REPLY | DELIVER, FORWARD"),
        (flags::MORE, "MORE | REPLY, ANSWER"),
        (flags::FAILED, "FAILED | ANSWER"),
        (flags::PREFIX, "PREFIX | SUBSCRIBE, UNSUBSCRIBE"),
        (flags::OR_CLOSE, "OR_CLOSE | SUBSCRIBE"),
        (flags::CONFIRM, "CONFIRM | PUBLISH"),
        (flags::CALL, "CALL | RETCONN"),
        (flags::FREE, "FREE | RING_SID"),
        (flags::EXCLUSIVE, "EXCLUSIVE | CONSUME"),
        (flags::TOKEN, "TOKEN | OK, DELIVER, REPLY, ACK, FAIL, PROGRESS, EXTEND"),
        (flags::DUPLICATE, "DUPLICATE | STORED"),
        (flags::PERMANENT, "PERMANENT | FAIL"),
        (flags::FATAL, "FATAL | ERROR"),
    ];
    assert_rows_begin(DOCUMENT, "### Flag bits", &bits.map(|(bit, name)| format!("| 0x{bit:02x} | {name} |")));
}

/// Limits of connections, which stand first.
fn limits_of_connections(set: &Limits) -> Vec<(&'static str, String, &'static str)> {
    vec![
        ("frame after the greeting *", number(set.frame_bytes_max), " bytes"),
        ("frame before CONNECT is answered", number(limits::GREETING_FRAME_BYTES_MAX), " bytes"),
        ("time for CONNECT", number(limits::GREETING_MS_MAX), " ms"),
        ("connections that have not said CONNECT", number(limits::GREETINGS_MAX), ""),
        ("connections *", number(set.connections_max), ""),
        ("shortest heartbeat", number(limits::HEARTBEAT_MS_MIN), " ms"),
        ("longest heartbeat", number(limits::HEARTBEAT_MS_MAX), " ms"),
        ("heartbeats of silence", number(limits::LIVENESS), ""),
        ("values in a peer's control map", number(limits::MAP_VALUES_MAX), ""),
        ("peer name", number(limits::PEER_NAME_BYTES_MAX), " bytes"),
    ]
}

fn limits_of_admin_calls() -> Vec<(&'static str, String, &'static str)> {
    vec![
        ("rows of one page", number(limits::PAGE_MAX), ""),
        ("messages that one admin call removes or puts back", number(limits::PORTION_MAX), ""),
        ("messages counted as `ahead` of another, within its priority", number(limits::AHEAD_MAX), ""),
        ("the same in the answer to `message.cancel`", number(limits::AHEAD_CANCELLED_MAX), ""),
        (
            "bytes of a dead letter, of output or of a file that one admin call brings or shows",
            number(limits::PIECE_BYTES_MAX),
            " bytes",
        ),
        ("bytes of a failure in a listing", number(limits::FAILURE_LINE_BYTES_MAX), " bytes"),
    ]
}

/// More limits of topics.
fn limits_of_topics() -> Vec<(&'static str, String, &'static str)> {
    vec![
        ("segments of a topic or filter", number(limits::TOPIC_SEGMENTS_MAX), ""),
        ("segments of all filters", number(limits::SUBSCRIPTION_SEGMENTS_MAX), ""),
        ("rows of one page of topics or subscribers", number(limits::TOPIC_PAGE_MAX), ""),
        ("topics whose events are counted", number(limits::TOPICS_COUNTED_MAX), ""),
    ]
}

/// Limits of jobs and what belongs to them, which stand behind the others.
fn limits_of_jobs() -> Vec<(&'static str, String, &'static str)> {
    vec![
        ("tasks of a job", number(limits::TASKS_MAX), ""),
        ("highest number of a task", number(limits::TASK_NUMBER_MAX), ""),
        ("numbers and ranges in the `parts` of an array", number(limits::ARRAY_PARTS_MAX), ""),
        ("name of a job", number(limits::JOB_NAME_BYTES_MAX), " bytes"),
        ("key of a job", number(limits::JOB_KEY_BYTES_MAX), " bytes"),
        ("work of a job", number(limits::WORK_BYTES_MAX), " bytes"),
        ("values in the work of a job", number(limits::WORK_VALUES_MAX), ""),
        ("maps and lists inside each other in the work of a job", number(limits::WORK_DEPTH_MAX), ""),
        ("jobs that a job is after", number(limits::JOB_AFTER_MAX), ""),
        ("ranges of tasks that one admin call names", number(limits::TASK_RANGES_MAX), ""),
        ("item of a task in a listing", number(limits::LISTED_ITEM_BYTES_MAX), " bytes"),
        ("earlier attempts of a task that are remembered", number(limits::TASK_ATTEMPTS_KEPT_MAX), ""),
        ("tasks whose earlier attempts are remembered", number(limits::ATTEMPTED_TASKS_MAX), ""),
        ("tasks that one admin call retries", number(limits::RETRIED_MAX), ""),
        ("attempts of a task that is retried", number(limits::TASK_ATTEMPTS_MAX), ""),
        ("jobs that are known", number(limits::JOBS_MAX), ""),
        ("callers that wait for the end of jobs", number(limits::JOB_WAITERS_MAX), ""),
        ("time between two attempts of a task", number(limits::BACKOFF_MS_MAX), " ms"),
        ("bytes of what a worker said of a failed task", number(limits::TASK_STATUS_BYTES_MAX), " bytes"),
        ("pieces of output in one call", number(limits::OUTPUT_PIECES_MAX), ""),
        ("times the output that is kept of an attempt which its worker may hand in", number(limits::OUTPUT_SLACK), ""),
        ("name of a file that a task brings back", number(limits::FILE_NAME_BYTES_MAX), " bytes"),
        ("files that one attempt brings back", number(limits::FILES_PER_TASK_MAX), ""),
        ("uploads that one call, or one job, names", number(limits::JOB_UPLOADS_MAX), ""),
        ("uploads that are kept", number(limits::UPLOADS_MAX), ""),
        ("time an upload is kept that no job names", number(limits::UPLOAD_KEPT_MS), " ms"),
        ("calls to the archive that are not answered", number(limits::ARCHIVE_CALLS_MAX), ""),
        ("time for which a look at output counts", number(limits::FOLLOW_MS), " ms"),
    ]
}

fn limits_of_links() -> Vec<(&'static str, String, &'static str)> {
    vec![
        ("brokers on a way over links", number(limits::PATH_MAX), ""),
        ("brokers that are known", number(limits::BROKERS_MAX), ""),
        ("links of a broker", number(limits::LINKS_MAX), ""),
        ("offers in one OFFER", number(limits::OFFERS_MAX), ""),
        ("frame over a link, if `frame_bytes_max` is lower", number(limits::LINK_FRAME_BYTES), " bytes"),
        ("bytes that a frame over a link may be longer than that", number(limits::LINK_FIELDS_BYTES), " bytes"),
        ("heartbeat of a link", number(limits::LINK_HEARTBEAT_MS), " ms"),
        ("shortest secret of links", number(limits::LINK_SECRET_BYTES_MIN), " bytes"),
    ]
}

fn limits_of_the_ring() -> Vec<(&'static str, String, &'static str)> {
    vec![
        ("members of a ring", number(limits::RING_MEMBERS_MAX), ""),
        ("members that a frame of the ring goes through", number(limits::RING_HOPS_MAX), ""),
        ("bytes of a member's own publications under way", number(limits::RING_WINDOW_BYTES), " bytes"),
        ("the same, how many", number(limits::RING_WINDOW), ""),
        ("bytes of one origin's publications that are kept", number(limits::RING_KEPT_BYTES_MAX), " bytes"),
        ("the same, how many are kept", number(limits::RING_KEPT_MAX), ""),
        ("origins in one RING_HAVE", number(limits::RING_ORIGINS_MAX), ""),
        ("address of a member", number(limits::RING_ADDRESS_BYTES_MAX), " bytes"),
        ("frame of the ring", number(limits::RING_FRAME_BYTES_MAX), " bytes"),
        ("frame of the ring before the opening word, or back", number(limits::RING_BACK_BYTES_MAX), " bytes"),
        ("heartbeat of the ring *", number(limits::RING_BEAT_MS), " ms"),
    ]
}

#[test]
fn every_limit_is_in_its_table() {
    let set = Limits::default();
    let reading = format!("the same of one that has read some in the last {} ms *", limits::OUT_STALL_MS);
    let waiting = format!(
        "bytes of events that wait for a connection, beside {} bytes that are being written",
        number(limits::EVENT_ROOM_BYTES)
    );
    let rows = [
        ("queue name", number(limits::QUEUE_NAME_BYTES_MAX), " bytes"),
        ("topic or filter", number(limits::TOPIC_BYTES_MAX), " bytes"),
        ("filters of a connection, or of a subscriber that fetches", number(limits::SUBSCRIPTIONS_MAX), ""),
        ("shapes of the filters of one that have wildcards", number(limits::SHAPES_MAX), ""),
        ("filters of all", number(limits::SUBSCRIPTIONS_ALL_MAX), ""),
        ("sets of places of several `*` in the filters of all", number(limits::STARS_MAX), ""),
        (&waiting, number(limits::EVENTS_WAITING_BYTES_MAX), " bytes"),
        ("subscribers that fetch", number(limits::FETCHERS_MAX), ""),
        ("id of a subscriber that fetches", number(limits::FETCHER_ID_BYTES_MAX), " bytes"),
        ("events that wait for a subscriber that fetches", number(limits::FETCHER_EVENTS_MAX), ""),
        ("bytes of them", number(limits::FETCHER_BYTES_MAX), " bytes"),
        ("bytes of them for all such subscribers", number(limits::FETCHERS_BYTES_MAX), " bytes"),
        (
            "bytes of events that one admin call fetches, unless it is one event",
            number(limits::FETCH_BYTES_MAX),
            " bytes",
        ),
        ("queues *", number(set.queues_max), ""),
        ("handles of a connection", number(limits::HANDLES_MAX), ""),
        ("a new handle above the highest one", number(limits::HANDLE_GAP_MAX), ""),
        ("slots of a worker", number(limits::SLOTS_MAX), ""),
        ("highest priority", number(limits::PRIORITY_MAX), ""),
        ("headers of a message", number(HEADERS_MAX), ""),
        ("deadline of a request", number(limits::REQUEST_DEADLINE_MS_MAX), " ms"),
        ("deadline of a send", number(limits::SEND_DEADLINE_MS_MAX), " ms"),
        ("dedup id", number(limits::DEDUP_ID_BYTES_MAX), " bytes"),
        ("time a dedup id is known", number(limits::DEDUP_WINDOW_MS), " ms"),
        ("dedup ids of a queue known at a time", number(set.dedup_ids_max), ""),
        ("unanswered requests of a connection *", number(set.in_flight_max), ""),
        ("memory of all that is held *", number(set.memory_bytes_max), " bytes"),
        (
            "bytes of an unfinished frame that are held without asking for memory",
            number(limits::FRAME_HELD_BYTES),
            " bytes",
        ),
        ("time that a frame waits for memory", number(limits::FRAME_WAIT_MS), " ms"),
        (
            "time without bytes of an unfinished frame while others wait for memory",
            number(limits::FRAME_STALL_MS),
            " ms",
        ),
        ("unread bytes of a peer that reads nothing while memory is short", number(limits::OUT_TIGHT_BYTES), " bytes"),
        ("time without reading while memory is short", number(limits::OUT_TIGHT_STALL_MS), " ms"),
        ("dead letters of a queue *", number(set.dead_max), ""),
        ("bytes of a failure that a dead letter keeps", number(limits::FAILURE_BYTES_MAX), " bytes"),
        ("unread bytes at which the broker stops reading from a peer *", number(set.out_bytes_pause), " bytes"),
        ("unread bytes of a peer, beside deliveries and the longest frame *", number(set.out_bytes_max), " bytes"),
        (&reading, number(set.out_bytes_max * limits::OUT_PATIENCE), " bytes"),
        ("time without reading while bytes wait *", number(set.write_stall_ms_max), " ms"),
        ("time a cancelled delivery holds its slots", number(limits::CANCEL_GRACE_MS), " ms"),
        ("workers named in BROADCAST_END, of each kind", number(limits::BROADCAST_NAMES_MAX), ""),
        ("time a free queue is kept for the worker that was told of it", number(limits::QUEUE_OFFER_MS), " ms"),
    ];
    let rows = limits_of_connections(&set).into_iter().chain(rows).chain(limits_of_admin_calls());
    let rows = rows.chain(limits_of_topics()).chain(limits_of_jobs()).chain(limits_of_links());
    let rows = rows.chain(limits_of_the_ring());
    let rows: Vec<String> = rows.map(|(limit, value, unit)| format!("| {limit} | {value}{unit} |")).collect();
    assert_rows_begin(DOCUMENT, "## Limits", &rows);
}

#[test]
fn the_defaults_are_those_of_the_code() {
    let sentences = [
        format!("Version {VERSION}."),
        format!("`request_deadline_ms` ({})", number(Limits::default().request_deadline_ms)),
        format!("| 0 to {}, 9 first; equal ones in the order they came | {} |", limits::PRIORITY_MAX, limits::PRIORITY),
        format!("retries default to {}", limits::SEND_RETRIES),
        format!("the broker's own,\n{} by default", number(limits::HEARTBEAT_MS)),
        format!("list of messages, at most {}", limits::VIEW_MESSAGES_MAX),
    ];
    for sentence in sentences {
        assert!(DOCUMENT.contains(&sentence), "{sentence}");
    }
}

/// Every admin call of the vectors, and every key of every map in them.
#[test]
fn every_key_of_a_map_is_named() {
    let mut named = 0;
    for vector in golden::all() {
        let Some((_, map)) = vector.frame.split_once(" map=") else { continue };
        for piece in map.split('"').collect::<Vec<_>>().windows(2) {
            let [word, after] = piece else { continue };
            // The names of labels are the user's own, and one letter long.
            let is_key = after.starts_with(": ") && word.len() > 1;
            if is_key {
                assert!(DOCUMENT.contains(&format!("`{word}`")), "{}: the key {word}", vector.name);
                named += 1;
            }
        }
        if let Some(op) = map.strip_prefix("{\"op\": \"").and_then(|rest| rest.split('"').next()) {
            assert!(DOCUMENT.contains(&format!("`{op}`")), "{}: the call {op}", vector.name);
        }
    }
    assert!(named > 100, "the vectors hold maps: {named}");
}

#[test]
fn every_dump_is_a_golden_vector() {
    assert_dumps(DOCUMENT, &golden::all());
}

/// A link inside the page leads to a heading.
#[test]
fn links_lead_somewhere() {
    assert_links(DOCUMENT);
}
