//! A disk that takes less than it is given.

use std::fs;

use turno_e2e::{Broker, Peer, Place};
use turno_proto::model::Slots;

const MESSAGES: usize = 50;

/// How often a process called for a write to a file so far.
fn writes(id: u32) -> u64 {
    let counts = fs::read_to_string(format!("/proc/{id}/io")).expect("our own child");
    let line = counts.lines().find_map(|line| line.strip_prefix("syscw: "));
    line.and_then(|count| count.parse().ok()).expect("a count of calls")
}

fn body(number: usize) -> Vec<u8> {
    number.to_string().repeat(100).into_bytes()
}

/// The rest of a short write is written after it, and nothing is confirmed before that.
#[test]
fn short_writes_are_completed() {
    let mut broker = Broker::start_faulty(Place::new(), &[]);
    let id = broker.process().id();
    let mut client = Peer::client(broker.address(), "q");
    let mut store = |numbers: std::ops::Range<usize>| {
        let before = writes(id);
        for number in numbers {
            client.store(&body(number), |_| {});
        }
        writes(id) - before
    };
    let whole = store(0..MESSAGES);
    broker.inject("enable name=posix/io/rw/pwrite/reduce");
    let short = store(MESSAGES..2 * MESSAGES);
    assert!(short >= whole + MESSAGES as u64, "the fault did not fire: {whole} writes without it, {short} with it");
    broker.kill();

    let broker = Broker::start_in(broker.into_place(), &[]);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Unlimited, "w");
    for number in 0..2 * MESSAGES {
        assert_eq!(worker.delivery().1, body(number));
    }
}
