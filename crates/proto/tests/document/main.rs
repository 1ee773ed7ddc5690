//! `docs/reference/protocol` says what the code does: numbers, names, limits and bytes.

#[path = "../golden/mod.rs"]
mod golden;
#[path = "../page/mod.rs"]
mod page;

use turno_proto::model::{Limits, limits};
use turno_proto::native::{Direction, Kind, VERSION, flags};

use crate::page::{assert_dumps, assert_rows_begin, number};

const OVERVIEW: &str = include_str!("../../../../docs/reference/protocol/README.md");
const FRAMES: &str = include_str!("../../../../docs/reference/protocol/frames.md");
const CLIENT: &str = include_str!("../../../../docs/reference/protocol/client.md");
const ADMIN: &str = include_str!("../../../../docs/reference/protocol/admin.md");
const VIEWS: &str = include_str!("../../../../docs/reference/views.md");
const LINKS: &str = include_str!("../../../../docs/reference/protocol/links.md");
const RING: &str = include_str!("../../../../docs/reference/protocol/ring.md");
const HOW_TO: &str = include_str!("../../../../docs/how-to/write-a-client.md");
const WHY: &str = include_str!("../../../../docs/how-to/find-why-a-message-waits.md");
/// Four screens.
const HOW_TO_LINES_MAX: usize = 200;

fn all_pages() -> String {
    [OVERVIEW, FRAMES, CLIENT, ADMIN, VIEWS, LINKS, RING].join("\n")
}

/// The page whose table has the frames of this direction.
fn page_of(direction: Direction) -> &'static str {
    match direction {
        Direction::ToBroker | Direction::ToPeer | Direction::Both => FRAMES,
        Direction::Link => LINKS,
        Direction::Ring => RING,
    }
}

#[test]
fn every_frame_type_is_in_its_table() {
    for page in [FRAMES, LINKS, RING] {
        let rows: Vec<String> = Kind::ALL
            .iter()
            .filter(|kind| page_of(kind.direction()) == page)
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
        assert_rows_begin(page, "| number | name |", &rows);
    }
}

/// The short page has a part of the same table, and stays short.
#[test]
fn the_page_about_writing_a_client_is_short_and_right() {
    assert!(HOW_TO.lines().count() <= HOW_TO_LINES_MAX, "{} lines", HOW_TO.lines().count());
    let table = HOW_TO.lines().skip_while(|line| !line.starts_with("| type | name |")).skip(2);
    let rows: Vec<&str> = table.take_while(|line| line.starts_with('|')).collect();
    let of_clients = Kind::ALL.iter().filter(|kind| page_of(kind.direction()) == FRAMES);
    let known: Vec<String> = of_clients
        .map(|kind| {
            let sender = match kind.direction() {
                Direction::ToBroker => "you",
                Direction::ToPeer => "broker",
                _ => "both",
            };
            format!("| {} | {} | {sender} |", kind.number(), kind.name())
        })
        .collect();
    for row in &rows {
        // CANCEL from a client is left to the reference.
        let is_known = known.iter().any(|start| row.starts_with(start)) || row.starts_with("| 49 | CANCEL | broker |");
        assert!(is_known, "{row}");
    }
    assert!(rows.len() > 20, "{rows:?}");
}

#[test]
fn every_flag_is_in_its_table() {
    let client = [
        (flags::DEADLINE, "DEADLINE | REQUEST, SEND, BROADCAST, DELIVER"),
        (flags::RETRIES, "RETRIES | REQUEST, SEND"),
        (flags::PRIORITY, "PRIORITY | REQUEST, SEND"),
        (flags::COST, "COST | REQUEST, SEND"),
        (flags::HEADERS, "HEADERS | every frame with a payload"),
        (flags::NO_REPLY, "NO_REPLY | REQUEST, BROADCAST"),
        (flags::FAIL_FAST, "FAIL_FAST | REQUEST"),
        (flags::SKIP_SELF, "SKIP_SELF | BROADCAST"),
        (flags::CANCEL_ON_DISCONNECT, "CANCEL_ON_DISCONNECT | REQUEST"),
        (flags::DELAY, "DELAY | SEND"),
        (flags::DEDUP, "DEDUP | SEND"),
        (flags::WANTS_REPLY, "WANTS_REPLY | DELIVER"),
        (flags::MORE, "MORE | REPLY, ANSWER"),
        (flags::FAILED, "FAILED | ANSWER"),
        (flags::PREFIX, "PREFIX | SUBSCRIBE, UNSUBSCRIBE"),
        (flags::OR_CLOSE, "OR_CLOSE | SUBSCRIBE"),
        (flags::CONFIRM, "CONFIRM | PUBLISH"),
        (flags::EXCLUSIVE, "EXCLUSIVE | CONSUME"),
        (flags::TOKEN, "TOKEN | OK, DELIVER, REPLY, ACK, FAIL, PROGRESS, EXTEND"),
        (flags::DUPLICATE, "DUPLICATE | STORED"),
        (flags::PERMANENT, "PERMANENT | FAIL"),
        (flags::AFTER, "AFTER | FAIL"),
        (flags::UNCOUNTED, "UNCOUNTED | FAIL"),
        (flags::FATAL, "FATAL | ERROR"),
    ];
    let links = [
        (flags::DEADLINE, "DEADLINE | FORWARD"),
        (flags::NO_REPLY, "NO_REPLY | FORWARD, FORWARD_BROADCAST"),
        (flags::ALONE, "ALONE | FORWARD"),
        (flags::WANTS_REPLY, "WANTS_REPLY | FORWARD"),
    ];
    let ring = [(flags::CALL, "CALL | RETCONN"), (flags::FREE, "FREE | RING_SID")];
    for (page, bits) in [(FRAMES, &client[..]), (LINKS, &links), (RING, &ring)] {
        let rows: Vec<String> = bits.iter().map(|(bit, name)| format!("| 0x{bit:02x} | {name} |")).collect();
        assert_rows_begin(page, "| bit | name |", &rows);
    }
}

#[test]
fn the_defaults_are_those_of_the_code() {
    let priority = format!(
        "| 0 to {}, 9 first; equal priorities in order of arrival | {} |",
        limits::PRIORITY_MAX,
        limits::PRIORITY
    );
    let sentences = [
        (OVERVIEW, format!("Version {VERSION}.")),
        (CLIENT, format!("`request_deadline_ms` ({})", number(Limits::default().request_deadline_ms))),
        (CLIENT, priority),
        (CLIENT, format!("retries default to {}", limits::SEND_RETRIES)),
        (CLIENT, format!("the broker's own setting, {} by default", number(limits::HEARTBEAT_MS))),
        (ADMIN, format!("list of messages, at most {}", limits::VIEW_MESSAGES_MAX)),
    ];
    for (page, sentence) in sentences {
        let words: Vec<&str> = page.split_whitespace().collect();
        assert!(words.join(" ").contains(&sentence), "{sentence}");
    }
}

/// Every admin call of the vectors, and every key of every map in them.
#[test]
fn every_key_of_a_map_is_named() {
    let pages = all_pages();
    let mut named = 0;
    for vector in golden::all() {
        let Some((_, map)) = vector.frame.split_once(" map=") else { continue };
        for piece in map.split('"').collect::<Vec<_>>().windows(2) {
            let [word, after] = piece else { continue };
            // The names of labels are the user's own, and one letter long.
            let is_key = after.starts_with(": ") && word.len() > 1;
            if is_key {
                assert!(pages.contains(&format!("`{word}`")), "{}: the key {word}", vector.name);
                named += 1;
            }
        }
        if let Some(op) = map.strip_prefix("{\"op\": \"").and_then(|rest| rest.split('"').next()) {
            assert!(pages.contains(&format!("`{op}`")), "{}: the call {op}", vector.name);
        }
    }
    assert!(named > 100, "the vectors hold maps: {named}");
}

#[test]
fn every_dump_is_a_golden_vector() {
    assert_dumps(&all_pages(), &golden::all());
}

/// Names of reasons in the first rows of tables whose heading has them, at that column.
fn reasons(page: &str, heading: &str, column: usize) -> Vec<std::collections::BTreeSet<String>> {
    let tables = page.split(heading).skip(1);
    let names = |row: &str| -> Vec<String> {
        let cell = row.split('|').nth(column + 1).unwrap_or_default();
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    tables
        .map(|table| table.lines().skip(2).take_while(|line| line.starts_with('|')).flat_map(names).collect())
        .collect()
}

/// The page for people has a row for every reason of a message and of a job.
#[test]
fn every_reason_has_advice() {
    let known = reasons(ADMIN, "| reason | details | meaning |", 0);
    let advised = reasons(WHY, "| because | name | what to do |", 1);
    let ([of_message, of_job, of_task], [messages, tasks]) = (&known[..], &advised[..]) else {
        panic!("{known:?} {advised:?}");
    };
    assert_eq!(of_message, messages);
    assert!(of_message.len() > 20 && of_job.is_subset(tasks), "{:?}", of_job.difference(tasks));
    let all = of_job.union(of_task).cloned().collect();
    assert!(tasks.is_subset(&all), "{:?}", tasks.difference(&all));
}
