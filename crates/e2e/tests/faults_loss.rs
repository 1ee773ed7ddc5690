//! Workers that are lost with work in hand.

use std::time::{Duration, Instant};

use turno_e2e::{Broker, Peer, Place, wait};
use turno_proto::model::{Code, Slots};

/// Proves S1.9, S2.34 and S0.41: a peer silent for three heartbeats is told and closed, and what it held goes to
/// another worker.
#[test]
fn a_silent_worker_is_given_up_after_three_heartbeats() {
    let broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    let seq = client.request_with(b"x", |message| message.retries = Some(1));
    let mut silent = Peer::greeted(broker.address(), 1_000);
    silent.open("q");
    let begun = Instant::now();
    silent.work(Slots::Limited(1), "silent");
    silent.delivery();
    let mut other = Peer::worker(broker.address(), "q", Slots::Limited(1), "other");
    let (delivery, body, attempt) = other.delivery();
    assert_eq!((body.as_slice(), attempt), (&b"x"[..], 2));
    assert!(begun.elapsed() >= Duration::from_secs(3), "three heartbeats are 3 s");
    assert_eq!(silent.closed_with(), Code::PeerSilent);
    other.reply(delivery, b"done");
    assert_eq!(client.answer(), (seq, b"done".to_vec()));
}

/// Proves S1.9: any byte is a sign of life, half a frame included.
#[test]
fn any_byte_is_a_sign_of_life() {
    let broker = Broker::start();
    let mut peer = Peer::greeted(broker.address(), 1_000);
    let mut bytes = [0x47, 0xC0, 18, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0].iter();
    let begun = Instant::now();
    let mut next = Duration::ZERO;
    wait::until("the PING is out, a byte every 250 ms", || {
        if begun.elapsed() >= next
            && let Some(byte) = bytes.next()
        {
            next += Duration::from_millis(250);
            peer.say_bytes(&[*byte]);
        }
        bytes.len() == 0
    });
    assert!(begun.elapsed() > Duration::from_secs(3), "longer than its silence may be");
    peer.hear(|frame| assert_eq!(frame, turno_proto::native::Frame::Pong { seq: 9 }));
}

/// Proves S2.34, S2.35, S2.37 and I5: the deliveries of a lost worker go back to the head of their queue at once, in
/// their old order, before what came after them.
#[test]
fn a_lost_workers_deliveries_move_on_in_order() {
    let broker = Broker::start();
    let mut lost = Peer::worker(broker.address(), "q", Slots::Limited(5), "lost");
    let mut client = Peer::client(broker.address(), "q");
    let seqs: Vec<u32> =
        (0..10_u8).map(|number| client.request_with(&[number], |message| message.retries = Some(1))).collect();
    for number in 0..5 {
        assert_eq!(lost.delivery().1, [number]);
    }
    client.sync();
    drop(lost);
    // The router of the lost one may be busy while the heir's is not.
    wait::until("the loss is seen", || client.status().counters.lost == 5);
    let mut heir = Peer::worker(broker.address(), "q", Slots::Limited(1), "heir");
    for (number, seq) in (0..10_u8).zip(seqs) {
        let (delivery, body, attempt) = heir.delivery();
        assert_eq!((body.as_slice(), attempt), (&[number][..], if number < 5 { 2 } else { 1 }));
        heir.reply(delivery, &body);
        assert_eq!(client.answer(), (seq, vec![number]));
    }
    let counters = client.status().counters;
    assert_eq!((counters.lost, counters.retried, counters.replied), (5, 5, 10));
}

/// Proves S2.33, S2.35 and I2: a limit of N allows N redeliveries and no more; without a limit there is none.
#[test]
fn the_retry_limit_is_respected() {
    let broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    for retries in [None, Some(0), Some(1), Some(3)] {
        let seq = client.request_with(b"x", |message| message.retries = retries);
        let deliveries = u16::from(retries.unwrap_or(0)) + 1;
        for attempt in 1..=deliveries {
            let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
            assert_eq!(worker.delivery().2, attempt, "{retries:?}");
        }
        assert_eq!(client.undelivered(), (seq, Code::WorkerLost), "{retries:?}");
    }
    let status = client.status();
    assert_eq!((status.ready, status.counters.lost, status.counters.retried), (0, 8, 4));
}

/// Proves S2.33 and I2: a worker that fails counts like one that is lost; the last failure's text reaches the caller.
#[test]
fn failures_use_up_retries_too() {
    let broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let seq = client.request_with(b"x", |message| message.retries = Some(2));
    for attempt in 1..=3 {
        let (delivery, _, of) = worker.delivery();
        assert_eq!(of, attempt);
        worker.fail(delivery, format!("failure {attempt}").as_bytes());
    }
    client.hear(|frame| match frame {
        turno_proto::native::Frame::Undelivered { seq: of, code, raw } => {
            assert_eq!((of, code, raw.bytes), (seq, Code::Failed, &b"failure 3"[..]));
        }
        other => panic!("expected UNDELIVERED: {other:?}"),
    });
}

/// Proves S2.35 and I13: the deadline runs on through all attempts.
#[test]
fn the_deadline_runs_through_all_attempts() {
    let broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    let begun = Instant::now();
    let seq = client.request_with(b"x", |message| {
        message.retries = Some(255);
        message.deadline_ms = Some(5_000);
    });
    for attempt in 1..=3 {
        let mut lost = Peer::worker(broker.address(), "q", Slots::Limited(1), "lost");
        assert_eq!(lost.delivery().2, attempt);
    }
    let mut last = Peer::worker(broker.address(), "q", Slots::Limited(1), "last");
    let (delivery, _, attempt) = last.delivery();
    assert_eq!(attempt, 4);
    assert_eq!(client.undelivered(), (seq, Code::TimedOut));
    assert_eq!(last.cancelled(), (delivery, Code::TimedOut));
    assert!(begun.elapsed() >= Duration::from_secs(5), "the first attempt's time and no other");
}

/// Proves I1, I2 and S2.34: a send whose workers are lost is retried, and in the end a dead letter, once.
#[test]
fn a_send_that_loses_all_its_workers_is_a_dead_letter() {
    let broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    client.send(b"x", |message| message.retries = Some(1));
    // The first two losses are free: they may be the workers' own fault.
    for attempt in [1, 1, 1, 2] {
        let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
        assert_eq!(worker.delivery().2, attempt);
    }
    wait::until("it is dead", || client.status().dead == 1);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    worker.sync();
    let status = client.status();
    assert_eq!((status.dead, status.ready, status.in_flight, status.counters.dead), (1, 0, 0, 1));
}

/// Proves S2.35 and S1.9: a worker killed as a process is lost like any other, and its request without retries is told
/// so.
#[test]
fn a_killed_worker_process_loses_its_request() {
    // Only after three minutes of silence: it is the end of the connection that is noticed.
    let place = Place::new();
    place.file("config/turno/turno.toml", "heartbeat = \"1m\"\n");
    let broker = Broker::start_in(place, &[]);
    let mut worker = broker.worker(&["q", "--", "sleep", "60"]);
    let mut client = Peer::client(broker.address(), "q");
    let seq = client.request_with(b"x", |message| message.deadline_ms = Some(600_000));
    wait::until("the worker has it", || client.status().in_flight == 1);
    worker.signal(rustix::process::Signal::KILL);
    worker.end(wait::PATIENCE);
    assert_eq!(client.undelivered(), (seq, Code::WorkerLost));
}
