//! Dead letters: shown, put back, removed.

use bytes::Bytes;
use turno_engine::{
    Again, AttemptMark, DiskEffect, Effect, HostEffect, Input, Persist, Record, RecoveredMessage, Settings,
    StoreSettings, WorkerMessage,
};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::{MessageState, Reason};
use turno_proto::model::{Code, ConnId, Limits, MessageId, Moment, Payload, Slots, limits};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, body, sent, undelivered};

/// A dead letter of "q" with that text.
fn dies(harness: &mut Harness, worker: ConnId, client: ConnId, text: &str) -> MessageId {
    let (id, seen) = harness.send(client, ask(1, "q", text));
    assert_eq!(seen, [sent(worker, text)]);
    let reports = harness.fail_for_good(worker, text, &format!("no {text}"));
    assert!(reports.iter().all(|seen| matches!(seen, Seen::Said(Effect::Host(HostEffect::Report(_))))), "{reports:?}");
    id
}

fn harness_with(texts: &[&str]) -> (Harness, ConnId, Vec<MessageId>) {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let ids = texts.iter().map(|text| dies(&mut harness, worker, client, text)).collect();
    (harness, worker, ids)
}

fn retry(ids: &[MessageId], oldest: u32) -> AdminCall {
    AdminCall::DeadRetry { queue: "q".to_owned(), ids: ids.iter().map(ToString::to_string).collect(), oldest }
}

fn purge(ids: &[MessageId], oldest: u32) -> AdminCall {
    AdminCall::DeadPurge { queue: "q".to_owned(), ids: ids.iter().map(ToString::to_string).collect(), oldest }
}

fn show(id: MessageId, from: u64) -> AdminCall {
    AdminCall::DeadShow { queue: "q".to_owned(), id: id.to_string(), from }
}

fn portion(done: u64, left: u64) -> Result<AdminAnswer, Code> {
    Ok(AdminAnswer::Portion { done, left })
}

/// Ids and failures of one page.
fn page(harness: &mut Harness, after: Option<MessageId>, limit: u32) -> (Vec<(String, String)>, Option<String>) {
    let after = after.map(|id| id.to_string());
    match harness.look(AdminCall::DeadLs { queue: "q".to_owned(), after, limit }) {
        Ok(AdminAnswer::DeadLetters { dead, next }) => {
            assert!(dead.iter().all(|letter| letter.message.state == MessageState::Dead));
            (dead.into_iter().map(|letter| (letter.message.id, letter.failure)).collect(), next)
        }
        other => panic!("{other:?} is no page"),
    }
}

/// Dead letters are listed in the order of their deaths, page by page, with the beginning of what was said last.
#[test]
fn dead_letters_come_in_pages() {
    let (mut harness, worker, ids) = harness_with(&["a", "b", "c"]);
    let row = |at: usize, text: &str| (ids[at].to_string(), text.to_owned());
    let all = vec![row(0, "no a"), row(1, "no b"), row(2, "no c")];
    assert_eq!(page(&mut harness, None, 100), (all.clone(), None));
    assert_eq!(page(&mut harness, None, 2), (all[..2].to_vec(), Some(ids[1].to_string())));
    assert_eq!(page(&mut harness, Some(ids[1]), 2), (all[2..].to_vec(), None));
    assert_eq!(page(&mut harness, None, 0).0, all[..1], "a page has a row");
    let client = harness.client();
    harness.send(client, ask(1, "q", "long"));
    harness.fail_for_good(worker, "long", &"x".repeat(1_000));
    let (rows, _) = page(&mut harness, Some(ids[2]), 1);
    assert_eq!(rows[0].1, "x".repeat(limits::FAILURE_LINE_BYTES_MAX), "a listing has lines");
}

/// One letter is shown with all of what was said last, and with what it carries, in pieces.
#[test]
fn a_dead_letter_is_shown_in_pieces() {
    let settings = Settings { limits: Limits { frame_bytes_max: 20, ..Limits::default() }, ..Settings::default() };
    let mut harness = Harness::with(settings);
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let payload = Payload { headers: true, ..body("\0\0a body of 20 bytes") };
    let (id, _) = harness.send(client, ask(1, "q", "").carrying(payload.clone()));
    let (delivery, why) = (harness.held(worker, "\0\0a body of 20 bytes"), body(&"y".repeat(3_000)));
    harness.say(Input::worker(worker, delivery, WorkerMessage::Fail { again: Again::Never, payload: why }));
    harness.pass(700);
    let mut whole = Vec::new();
    for (from, length) in [(0, 10), (10, 10), (20, 0), (u64::MAX, 0)] {
        let answer = harness.look(show(id, from));
        let Ok(AdminAnswer::DeadLetter { dead, headers, piece }) = answer else { panic!("{answer:?}") };
        assert_eq!((dead.failure, headers, piece.len()), ("y".repeat(3_000), true, length));
        let message = dead.message;
        assert_eq!(
            (message.attempts, message.attempts_max, message.age_seconds.as_millis(), message.bytes),
            (1, 10, 700, 20)
        );
        whole.extend_from_slice(&piece);
    }
    assert_eq!(whole, payload.bytes);
}

/// Retried letters are tried from the beginning, at the end of their lane; those not named stay.
#[test]
fn a_retried_letter_goes_to_the_end_of_its_lane() {
    let (mut harness, worker, ids) = harness_with(&["a", "b", "c"]);
    let client = harness.client();
    assert_eq!(harness.send(client, ask(2, "q", "runs")).1, [sent(worker, "runs")]);
    assert_eq!(harness.send(client, ask(3, "q", "waits")).1, []);
    assert_eq!(harness.admin(retry(&[ids[2], ids[0], ids[2]], 0)), (portion(2, 1), vec![]));
    assert_eq!(harness.explain(ids[0]).message.attempts, 0);
    assert_eq!(harness.ack(worker, "runs"), [sent(worker, "waits")]);
    assert_eq!(harness.ack(worker, "waits"), [sent(worker, "a")]);
    assert_eq!(harness.ack(worker, "a"), [sent(worker, "c")]);
    assert_eq!(harness.fail_for_good(worker, "c", "again"), []);
    assert_eq!(harness.explain(ids[2]).because.0, Reason::Dead { failure: "again".to_owned() });
    assert_eq!((harness.counters().retried, harness.queue("q").dead), (2, 2));
}

/// Without ids it is the oldest, as many as wanted and no more than a portion; a free worker gets them at once.
#[test]
fn the_oldest_letters_go_first() {
    let (mut harness, worker, ids) = harness_with(&["a", "b", "c", "d"]);
    assert_eq!(harness.admin(retry(&[], 0)), (portion(0, 4), vec![]));
    assert_eq!(harness.admin(retry(&[], 1)), (portion(1, 3), vec![sent(worker, "a")]));
    assert_eq!(
        harness.admin(purge(&[ids[3]], 1)),
        (portion(2, 1), vec![]),
        "those named, and the oldest of the others"
    );
    assert_eq!(page(&mut harness, None, 9).0, [(ids[2].to_string(), "no c".to_owned())]);
    assert_eq!(harness.admin(purge(&[], u32::MAX)), (portion(1, 0), vec![]));
    assert_eq!(harness.ack(worker, "a"), []);
    assert_eq!(harness.status().bytes, 0);
}

/// A call does no more than a portion, so that others are served between two of them.
#[test]
fn a_call_does_no_more_than_a_portion() {
    let many = u64::from(limits::PORTION_MAX);
    let letters: Vec<_> = (0..2 * many + 5).map(|number| (number, "a", None)).collect();
    let mut harness = durable_harness(&letters);
    assert_eq!(harness.admin(retry(&[], u32::MAX)).0, portion(many, many + 5));
    assert_eq!(harness.admin(purge(&[], u32::MAX)).0, portion(many, 5));
    assert_eq!(harness.admin(purge(&[], 3)).0, portion(3, 2));
    assert_eq!(harness.queue("q").ready, many);
}

/// What is no dead letter of the queue is none: nothing happens to the others named with it.
#[test]
fn one_wrong_id_and_nothing_happens() {
    let (mut harness, worker, ids) = harness_with(&["a", "b"]);
    let client = harness.client();
    let (living, _) = harness.send(client, ask(2, "q", "runs"));
    let (waiting, _) = harness.send(client, ask(3, "q", "waits"));
    let (elsewhere, _) = harness.send(client, ask(4, "other", "x"));
    let nobody = MessageId::new(1, 999, 0);
    for wrong in [living, waiting, elsewhere, nobody] {
        for call in [retry(&[ids[0], wrong], 5), purge(&[ids[0], wrong], 5), show(wrong, 0)] {
            assert_eq!(harness.look(call), Err(Code::NotFound), "{wrong}");
        }
    }
    let queue = || "q".to_owned();
    for call in [
        AdminCall::DeadRetry { queue: queue(), ids: vec!["x".to_owned()], oldest: 0 },
        AdminCall::DeadPurge { queue: queue(), ids: vec![String::new()], oldest: 0 },
        AdminCall::DeadShow { queue: queue(), id: "x".to_owned(), from: 0 },
        AdminCall::DeadLs { queue: queue(), after: Some("x".to_owned()), limit: 1 },
        AdminCall::DeadLs { queue: queue(), after: Some(living.to_string()), limit: 1 },
        AdminCall::DeadLs { queue: "nowhere".to_owned(), after: None, limit: 1 },
        AdminCall::DeadRetry { queue: "nowhere".to_owned(), ids: Vec::new(), oldest: 1 },
        AdminCall::DeadPurge { queue: "nowhere".to_owned(), ids: Vec::new(), oldest: 1 },
        AdminCall::DeadShow { queue: "nowhere".to_owned(), id: ids[0].to_string(), from: 0 },
    ] {
        assert_eq!(harness.look(call.clone()), Err(Code::NotFound), "{call:?}");
    }
    assert_eq!(harness.queue("q").dead, 2);
    assert_eq!(harness.ack(worker, "runs"), [sent(worker, "waits")]);
}

/// Somebody wants it done: a deadline that has passed does not end a retried letter, one to come still does.
#[test]
fn a_deadline_that_passed_counts_no_more() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    for (text, within_ms) in [("late", 100), ("early", 5_000)] {
        harness.send(client, ask(1, "q", text).within(within_ms));
        harness.fail_for_good(worker, text, "no");
    }
    harness.pass(1_000);
    assert_eq!(harness.admin(retry(&[], 2)), (portion(2, 0), vec![sent(worker, "late")]));
    assert_eq!(harness.pass(4_000), []);
    assert_eq!(
        (harness.queue("q").ready, harness.counters().expired),
        (0, 1),
        "the other one had to wait for too long"
    );
    assert_eq!(harness.ack(worker, "late"), []);
}

/// A drain hands nothing out; what was put back waits.
#[test]
fn a_drain_hands_out_no_retried_letter() {
    let (mut harness, worker, _) = harness_with(&["a"]);
    let client = harness.client();
    assert_eq!(harness.send(client, ask(2, "q", "runs")).1, [sent(worker, "runs")]);
    harness.joining(Slots::Limited(1), &["q"]);
    harness.say(Input::Drain { within_ms: 1_000 });
    assert_eq!(harness.admin(retry(&[], 1)), (portion(1, 0), vec![]));
    assert_eq!(harness.ack(worker, "runs"), [crate::seen::drained(0, 0, 1)]);
}

const ZERO_UNIX_MS: u64 = 1_700_000_000_000;

fn durable_harness(letters: &[(u64, &str, Option<u64>)]) -> Harness {
    let store = Some(StoreSettings { run: 1, unix_ms: ZERO_UNIX_MS, last_serial: 40 });
    let mut harness = Harness::with(Settings { store, ..Settings::default() });
    for (serial, text, deadline) in letters {
        let (record, failure) = (record(text, *deadline), Some(Bytes::from("no")));
        harness.engine.recover(RecoveredMessage {
            serial: *serial,
            record,
            mark: Some(AttemptMark { attempts: 10, failure, wait: None }),
        });
    }
    harness.engine.sanity_check();
    harness
}

fn record(text: &str, deadline: Option<u64>) -> Record {
    Record {
        queue: "q".parse().expect("a good name"),
        priority: 4,
        cost: 1,
        retries: 9,
        born_unix_ms: ZERO_UNIX_MS + 5_000,
        due_unix_ms: None,
        deadline_unix_ms: deadline.map(|ms| ZERO_UNIX_MS + ms),
        payload: body(text),
    }
}

fn persist(group: u64, op: Persist) -> Seen {
    Seen::Said(Effect::Disk(DiskEffect::Persist { group, op }))
}

fn durable_id(serial: u64) -> MessageId {
    MessageId::durable(1, serial)
}

/// Proves I1 and I2: a durable letter is tried again only when the disk knows it as alive, and only then is the admin
/// answered; its end is written down without a mark.
#[test]
fn a_durable_letter_is_alive_on_disk_first() {
    let mut harness = durable_harness(&[(7, "a", None), (8, "b", None)]);
    let (worker, got) = harness.joining(Slots::Limited(1), &["q"]);
    assert_eq!(got, []);
    let (answer, seen) = harness.admin(retry(&[durable_id(8)], 0));
    assert_eq!((answer, seen), (portion(1, 1), vec![persist(1, Persist::Retry { serial: 8 }), sent(worker, "b")]));
    assert_eq!(harness.ack(worker, "b"), [persist(2, Persist::Remove { serial: 8, marked: false })]);
    let (answer, seen) = harness.admin(purge(&[], 1));
    assert_eq!((answer, seen), (portion(1, 0), vec![persist(3, Persist::Remove { serial: 7, marked: true })]));
}

/// A deadline that counts no more is taken off the disk too.
#[test]
fn a_passed_deadline_is_taken_off_the_disk() {
    let mut harness = durable_harness(&[(7, "late", Some(5_000)), (8, "early", Some(9_000))]);
    let (_, seen) = harness.admin(retry(&[], 2));
    let anew = Persist::Put { serial: 7, record: record("late", None) };
    let [late, early] = [7, 8].map(|serial| persist(1, Persist::Retry { serial }));
    assert_eq!(seen, [persist(1, anew), late, early]);
    assert_eq!(harness.queue("q").ready, 2);
}

/// What has to be written anew comes in portions of bytes too, but never less than one letter.
#[test]
fn what_is_written_anew_comes_in_portions() {
    let large = "x".repeat(limits::PORTION_BYTES_MAX);
    let letters: Vec<_> = (1..=4).map(|serial| (serial, large.as_str(), Some(5_000))).collect();
    let mut harness = durable_harness(&letters);
    assert_eq!(harness.admin(retry(&[], 9)).0, portion(2, 2));
    assert_eq!(harness.admin(retry(&[durable_id(3), durable_id(4)], 0)).0, portion(2, 0), "those named go together");
}

/// If the disk refuses, the letter is what it was, and the admin is told.
#[test]
fn a_full_disk_keeps_the_letter_dead() {
    let mut harness = durable_harness(&[(7, "a", Some(6_000))]);
    harness.pass(2_000);
    let refused = |group| Input::Refused { group, code: Code::OverDisk };
    let (answer, _) = harness.admin_then(retry(&[], 1), refused);
    assert_eq!(answer, Err(Code::OverDisk));
    let letter = harness.explain(durable_id(7));
    assert_eq!(letter.because.0, Reason::Dead { failure: "no".to_owned() });
    let deadline_at = Some(Moment::from_unix_ms(ZERO_UNIX_MS + 6_000));
    assert_eq!((letter.message.attempts, letter.message.deadline_at), (10, deadline_at));
    let (_, seen) = harness.admin(purge(&[durable_id(7)], 0));
    assert_eq!(seen, [persist(2, Persist::Remove { serial: 7, marked: true })], "the disk still has its mark");
}

/// A letter that is cancelled while the disk learns that it lives is gone, for good.
#[test]
fn a_letter_can_be_cancelled_on_its_way_back() {
    for refused in [false, true] {
        let mut harness = durable_harness(&[(7, "a", None)]);
        let admin = ConnId { index: 77, generation: 1 };
        harness.say(Input::Admin { conn: admin, seq: 1, call: retry(&[], 1) });
        assert_eq!(harness.explain(durable_id(7)).because.0, Reason::Storing);
        assert_eq!(harness.look(retry(&[durable_id(7)], 0)), Err(Code::NotFound), "it is no dead letter any more");
        harness.admin(AdminCall::MessageCancel { id: durable_id(7).to_string() }).0.expect("it is there");
        let code = Code::OverDisk;
        let seen = harness.say(if refused { Input::Refused { group: 1, code } } else { Input::Persisted { group: 1 } });
        assert_eq!(seen.last(), Some(&persist(2, Persist::Remove { serial: 7, marked: refused })));
        assert_eq!((harness.status().dead, harness.status().ready), (0, 0));
    }
}

/// Dead letters that fill the memory are not deleted for that: new messages are refused with a stated code, what was
/// taken in is there, and status tells what fills it. Each way out makes room again.
#[test]
fn dead_letters_that_fill_the_memory_refuse_and_lose_nothing() {
    let (letter, most) = (128 + 4 + 7, 10 * (128 + 4 + 7));
    for (leave, left) in [(purge(&[], 2), 8), (retry(&[], 2), 8)] {
        let limits = Limits { memory_bytes_max: most, dead_max: 3, ..Limits::default() };
        let mut harness = Harness::with(Settings { limits, ..Settings::default() });
        let (worker, client) = (harness.worker(1, &["q"]), harness.client());
        let texts: Vec<String> = (0..10).map(|number| format!("t{number:03}")).collect();
        for (number, text) in (1..).zip(&texts) {
            assert_eq!(harness.queue("q").dead_bytes, (number - 1) * letter);
            dies(&mut harness, worker, client, text);
        }
        let memory = harness.status().memory;
        assert_eq!((memory.messages, memory.dead, memory.used), (most, most, most));
        assert!(memory.is_short(most) && memory.is_mostly_dead());
        for seq in 2..5 {
            assert_eq!(harness.try_send(client, ask(seq, "q", "")), [undelivered(client, seq, Code::OverMemory)]);
            assert_eq!(harness.request(client, ask(seq, "p", "")), [undelivered(client, seq, Code::OverMemory)]);
        }
        let failures: Vec<String> = page(&mut harness, None, 100).0.into_iter().map(|(_, failure)| failure).collect();
        assert_eq!(failures, texts.iter().map(|text| format!("no {text}")).collect::<Vec<_>>(), "all are there");
        let (answer, seen) = harness.admin(leave);
        assert_eq!(answer, portion(2, left));
        if let [delivered] = &seen[..] {
            assert_eq!(*delivered, sent(worker, &texts[0]));
            assert_eq!(harness.ack(worker, &texts[0]), [sent(worker, &texts[1])]);
            assert_eq!(harness.ack(worker, &texts[1]), []);
        }
        assert_eq!(harness.send(client, ask(9, "q", "more")).1, [sent(worker, "more")]);
        assert_eq!((harness.queue("q").dead_bytes, harness.status().memory.dead), (8 * letter, 8 * letter));
    }
}
