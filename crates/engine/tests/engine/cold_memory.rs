//! Messages on disk are loaded as long as there is memory for them, and one at a time where there is none.
//!
//! A message counts for 129 bytes, one on disk for 12. Of 1,600 bytes 900 are for what is loaded: 400 are left to frames on their way
//! in, 100 to what cannot wait, and 200 to new messages.

use turno_engine::{Buffers, Input, Settings};
use turno_proto::model::view::Reason;
use turno_proto::model::{Code, ConnId, Limits, Slots};

use crate::cold::{answer, explain, load, loaded, send, settings};
use crate::durable::{remove, survivor};
use crate::harness::{Harness, ask};
use crate::seen::{Seen, sent};

const MEMORY: u64 = 1_600;
const FOR_LOADS: u64 = 900;

fn small() -> Settings {
    Settings { limits: Limits { memory_bytes_max: MEMORY, ..Limits::default() }, ..settings() }
}

/// The body of the message with that serial: one character.
fn text(serial: u64) -> String {
    char::from(b'0' + u8::try_from(serial).expect("few")).to_string()
}

fn got(worker: ConnId, serial: u64) -> Seen {
    sent(worker, &text(serial))
}

/// A harness with so little memory, with a client and so many messages, each in the queue that `queue_of` says.
fn harness_with(count: u32, queue_of: impl Fn(u32) -> &'static str) -> Harness {
    let mut harness = Harness::with(small());
    let client = harness.client();
    for seq in 1..=count {
        assert_eq!(send(&mut harness, client, ask(seq, queue_of(seq), &text(seq.into()))), []);
    }
    harness
}

/// All but so many bytes is somebody else's.
fn leave(harness: &mut Harness, bytes: u64) {
    harness.engine.set_buffers(Buffers { kept_free: MEMORY - bytes, ..Buffers::default() });
}

/// The serials that are to be loaded.
fn loads(seen: &[Seen]) -> Vec<u64> {
    (1..100).filter(|serial| seen.contains(&load(*serial))).collect()
}

fn ack(harness: &mut Harness, worker: ConnId, serial: u64) -> Vec<Seen> {
    harness.ack(worker, &text(serial))
}

fn comes(harness: &mut Harness, serial: u64) -> Vec<Seen> {
    loaded(harness, serial, &text(serial))
}

/// Proves S0.28: a worker with more slots than there is memory gets what fits, and the rest as it gives memory back, in order.
#[test]
fn a_worker_with_many_slots_is_within_the_limit() {
    let mut harness = harness_with(12, |_| "q");
    let (worker, seen) = harness.joining(Slots::Limited(1_000), &["q"]);
    let mut asked = loads(&seen);
    assert_eq!(asked, [4, 5, 6]);
    let (mut handed, mut done) = (3, 0);
    let mut at_hand = Vec::new();
    while done < 12 {
        for serial in std::mem::take(&mut asked) {
            let seen = comes(&mut harness, serial);
            handed += 1;
            assert_eq!(seen.first(), Some(&got(worker, handed)), "in their order");
            asked.extend(loads(&seen));
            assert!(harness.status().bytes <= FOR_LOADS, "{}", harness.status().bytes);
        }
        if asked.is_empty() {
            at_hand.push(handed - done);
            done += 1;
            asked.extend(loads(&ack(&mut harness, worker, done)));
        }
    }
    assert_eq!((handed, harness.status().bytes), (12, 0));
    assert_eq!(at_hand, [6, 6, 6, 6, 6, 6, 6, 5, 4, 3, 2, 1], "so many fit");
}

/// Without any memory a queue goes on with one message after the other, and with all of its window when there is memory again.
#[test]
fn a_queue_without_memory_goes_on_one_by_one() {
    let mut harness = harness_with(9, |_| "q");
    leave(&mut harness, 0);
    let (worker, seen) = harness.joining(Slots::Limited(9), &["q"]);
    assert_eq!(seen, [got(worker, 1), got(worker, 2), got(worker, 3)], "nothing is loaded");
    assert_eq!(ack(&mut harness, worker, 1), [remove(10, 1, false)]);
    assert_eq!(ack(&mut harness, worker, 3), [remove(11, 3, false)]);
    assert_eq!(ack(&mut harness, worker, 2), [load(4), remove(12, 2, false)], "or it would stand still");
    assert_eq!(comes(&mut harness, 4), [got(worker, 4)]);
    assert_eq!(harness.pass(5_000), [], "that one has not come to its end");
    assert_eq!(ack(&mut harness, worker, 4), [load(5), remove(13, 4, false)]);
    leave(&mut harness, MEMORY);
    assert_eq!(harness.tick(), [load(6), load(7)]);
}

/// What only the store has waits for memory while a worker has room for it, and for that worker while it has none.
#[test]
fn what_waits_for_memory_says_so() {
    for (slots, expected) in [
        (9, Reason::WaitsForMemory { ahead: 1 }),
        (3, Reason::AllBusy { workers: 1, used: 3, ahead: 1, probing: 0, dropped: 0, not_reading: 0, brokers: 0 }),
    ] {
        let mut harness = harness_with(9, |_| "q");
        leave(&mut harness, 0);
        let (_, seen) = harness.joining(Slots::Limited(slots), &["q"]);
        assert_eq!((seen.len(), loads(&seen)), (3, vec![]));
        assert_eq!(harness.say(explain(5)), [load(5)]);
        let explanation = answer(&mut comes(&mut harness, 5)).expect("it is there");
        assert_eq!(explanation.because.0, expected);
    }
}

/// The one message may have failed, been lost or be late: then it is the next one's turn.
#[test]
fn whatever_becomes_of_the_one_message_the_next_follows() {
    let mut harness = harness_with(7, |_| "q");
    leave(&mut harness, 0);
    let (worker, _) = harness.joining(Slots::Limited(9), &["q"]);
    for serial in 1..=3 {
        ack(&mut harness, worker, serial);
    }
    assert_eq!(comes(&mut harness, 4), [got(worker, 4)]);
    assert_eq!(loads(&harness.fail(worker, &text(4), "oh")), [] as [u64; 0], "it comes back first");
    assert_eq!(harness.say(Input::Persisted { group: 11 }), [got(worker, 4).attempt(2)]);
    assert_eq!(loads(&ack(&mut harness, worker, 4)), [5]);
    let missing = harness.say(Input::Loaded { serial: 5, record: None });
    assert_eq!(loads(&missing), [6], "{missing:?}");
    assert_eq!(comes(&mut harness, 6), [got(worker, 6)]);
    assert_eq!(loads(&harness.leave(worker)), [] as [u64; 0], "it comes back, and waits for another worker");
    let (other, seen) = harness.joining(Slots::Limited(9), &["q"]);
    assert_eq!(seen, []);
    assert_eq!(harness.say(Input::Persisted { group: 13 }), [got(other, 6).attempt(2)]);
    assert_eq!(loads(&ack(&mut harness, other, 6)), [7]);
}

/// Memory that becomes free goes to the queues that wait for it in turn.
#[test]
fn queues_get_memory_in_turn() {
    let queue_of = |serial: u32| if serial % 2 == 1 { "odd" } else { "even" };
    let mut harness = harness_with(30, queue_of);
    leave(&mut harness, 0);
    let (worker, seen) = harness.joining(Slots::Limited(100), &["odd", "even"]);
    assert_eq!(seen.len(), 6);
    let mut next: Vec<u64> = (1..=6).flat_map(|serial| loads(&ack(&mut harness, worker, serial))).collect();
    next.sort_unstable();
    assert_eq!(next, [7, 8], "one of each");
    // These are never done, so that no queue has a right to another one.
    next.clear();
    next.extend([7, 8].into_iter().flat_map(|serial| loads(&comes(&mut harness, serial))));
    assert_eq!(next, [] as [u64; 0]);
    let room_for_one = |harness: &mut Harness, held: u64| leave(harness, held + MEMORY / 8 + 129 + 40);
    let held = harness.status().bytes;
    room_for_one(&mut harness, held);
    let mut asked = loads(&harness.tick());
    let mut order = Vec::new();
    while let [serial] = asked[..] {
        order.push(queue_of(u32::try_from(serial).expect("few")));
        assert_eq!(comes(&mut harness, serial).len(), 1, "it is handed out, and nothing else is loaded");
        let held = harness.status().bytes - 129;
        room_for_one(&mut harness, held);
        asked = loads(&ack(&mut harness, worker, serial));
    }
    assert_eq!(order.len(), 22, "{order:?}");
    assert!(order.windows(2).all(|two| two[0] != two[1]), "{order:?}");
}

/// What outlived the last run is in memory as far as there is room, and one of each priority in any case.
#[test]
fn survivors_stay_on_disk_for_want_of_memory() {
    let mut harness = Harness::with(Settings { hot_bytes: 100_000, ..small() });
    let mut survivors: Vec<_> = (1..=11).map(|serial| survivor(serial, &text(serial))).collect();
    survivors[10].record.priority = 9;
    for survivor in survivors {
        harness.engine.recover(survivor);
        harness.engine.sanity_check();
    }
    assert_eq!((harness.status().ready, harness.status().bytes), (11, 7 * 129 + 4 * 12));
    let (worker, seen) = harness.joining(Slots::Limited(1), &["q"]);
    assert_eq!(seen, [got(worker, 11)]);
    assert_eq!(ack(&mut harness, worker, 11), [got(worker, 1), remove(1, 11, false)], "78 bytes are free");
    assert_eq!(ack(&mut harness, worker, 1), [got(worker, 2), load(7), remove(2, 1, false)]);
}

/// Questions about messages on disk are read within the limit, too; one at a time in any case.
#[test]
fn questions_are_within_the_limit() {
    let mut harness = harness_with(6, |_| "q");
    leave(&mut harness, 0);
    assert_eq!(harness.say(explain(4)), [load(4)]);
    assert_eq!(answer(&mut harness.say(explain(5))), Err(Code::OverMemory));
    assert!(answer(&mut comes(&mut harness, 4)).is_ok());
    assert_eq!(harness.say(explain(5)), [load(5)]);
    leave(&mut harness, MEMORY);
    assert_eq!(harness.say(explain(6)), [load(6)]);
}
