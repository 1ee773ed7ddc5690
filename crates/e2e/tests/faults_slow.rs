//! Peers that do not read what the broker has for them, and peers that only look like it.

use std::thread;
use std::time::{Duration, Instant};

use turno_e2e::{Broker, Peer, process, wait};
use turno_proto::model::{Code, Slots};
use turno_proto::native::{Frame, Raw, RawOutgoing};

const MIB: usize = 1 << 20;

/// Consumes a second queue with handle 1.
fn consume_too(peer: &mut Peer, queue: &str) {
    peer.say(&Frame::Open { seq: 80, handle: 1, name: queue.as_bytes() });
    peer.hear(|frame| assert_eq!(frame, Frame::Ok { seq: 80 }));
    peer.register(Slots::Limited(1), "slow");
    peer.say(&Frame::Consume { seq: 81, handle: 1, exclusive: false });
    peer.hear(|frame| assert_eq!(frame, Frame::Ok { seq: 81 }));
}

/// Proves I21, S2.34 and S2.35: a peer that reads nothing is not read from any more, then closed with `slow_reader` after
/// 10 s; what it held moves on, and nobody else notices.
#[test]
fn a_peer_that_reads_nothing_is_paused_and_then_closed() {
    let mut broker = Broker::start();
    let id = broker.process().id();
    let mut echo = Peer::worker(broker.address(), "echo", Slots::Unlimited, "echo");
    let mut slow = Peer::client(broker.address(), "echo");
    consume_too(&mut slow, "held");
    let mut client = Peer::client(broker.address(), "held");
    let held = client.request_with(b"moves on", |message| {
        message.retries = Some(1);
        message.deadline_ms = Some(600_000);
    });
    client.sync();
    let before = process::memory_now(id);
    let body = vec![b'x'; 64 * 1024];
    let mut asked = 0;
    let paused = loop {
        let last = Instant::now();
        slow.request(&body);
        asked += 1;
        // absence: the broker stops reading from a peer for which more than 1 MiB waits.
        if !echo.hears_within(Duration::from_secs(5)) {
            break last;
        }
        let (delivery, body, _) = echo.delivery();
        echo.reply(delivery, &body);
        assert!(asked < 1_000, "64 MiB of replies wait for one peer");
    };
    // Only now, because each router has one of its own, and may start after the broker said that it is ready.
    let sockets = process::sockets(id);
    let grown = process::memory_now(id).saturating_sub(before);
    assert!(grown < 8 << 20, "a paused peer costs {grown} bytes");
    // Nobody else notices.
    let mut bystander = Peer::client(broker.address(), "echo");
    let seq = bystander.request(b"quick");
    let (delivery, body, _) = echo.delivery();
    echo.reply(delivery, &body);
    assert_eq!(bystander.answer(), (seq, b"quick".to_vec()));
    let mut other = Peer::worker(broker.address(), "held", Slots::Limited(1), "other");
    wait::until("the slow peer is given up", || other.hears_within(Duration::from_millis(100)));
    assert!(paused.elapsed() > Duration::from_secs(5), "it had its 10 s");
    let (delivery, body, attempt) = other.delivery();
    assert_eq!((body.as_slice(), attempt), (&b"moves on"[..], 2));
    other.reply(delivery, b"done");
    assert_eq!(client.answer(), (held, b"done".to_vec()));
    // Nothing of it is left at the broker, although it still does not read: two came, and it went.
    wait::until("its socket is closed", || process::sockets(id) == sockets + 1);
    drop(slow);
}

/// Proves I21: more than 8 MiB of replies close a peer that reads nothing; memory stays bounded even before that is
/// sure, and if it reads in time, the last frame is the reason.
#[test]
fn a_pile_of_replies_closes_whoever_reads_nothing() {
    let mut broker = Broker::start();
    let id = broker.process().id();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1_600), "w");
    let mut slow = Peer::client(broker.address(), "q");
    let count = 1_600;
    for _ in 0..count {
        slow.request(b"small");
    }
    let deliveries: Vec<_> = (0..count).map(|_| worker.delivery().0).collect();
    let before = process::memory_now(id);
    let body = vec![b'x'; 128 * 1024];
    let mut asker = Peer::greeted(broker.address(), 0);
    // Reads as soon as it was given up, because what waits for it is thrown away a moment later.
    let reading = thread::spawn(move || {
        wait::until("the slow one is given up", || asker.status().connections == 2);
        read_to_the_end(&mut slow)
    });
    for delivery in deliveries {
        worker.reply(delivery, &body);
    }
    worker.sync();
    let grown = process::memory_peak(id).saturating_sub(before);
    assert!(grown < 96 << 20, "200 MiB of replies cost {grown} bytes");
    let (answered, code) = reading.join().expect("it reads to the end");
    assert!(answered < count && code.is_none_or(|code| code == Code::SlowReader), "{answered}, then {code:?}");
}

/// How many replies come, and why no more do, if that can still be read.
fn read_to_the_end(slow: &mut Peer) -> (usize, Option<Code>) {
    let mut answered = 0;
    let code = loop {
        let last = slow.try_hear(|frame| match frame {
            Frame::Reply { .. } => None,
            Frame::Error { code, fatal: true, .. } => Some(code),
            other => panic!("expected REPLY or the end: {other:?}"),
        });
        match last {
            Some(None) => answered += 1,
            Some(code) => break code,
            None => return (answered, None),
        }
    };
    assert_eq!(slow.try_hear(|frame| format!("{frame:?}")), None);
    (answered, code)
}

/// Proves I21, S0.18 and S0.29: a worker that reads as fast as it can takes a backlog far larger than what may wait
/// for a slow one.
#[test]
fn a_large_backlog_is_no_slow_reader() {
    let broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    let body = vec![b'x'; MIB];
    let seqs: Vec<u32> = (0..24).map(|_| client.request(&body)).collect();
    client.sync();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(24), "w");
    for _ in &seqs {
        let (delivery, body, attempt) = worker.delivery();
        assert_eq!((body.len(), attempt), (MIB, 1));
        worker.reply(delivery, b"ok");
    }
    for seq in seqs {
        assert_eq!(client.answer(), (seq, b"ok".to_vec()));
    }
}

/// Proves I21: a client that reads as fast as it can gets all its replies, however many come at once.
#[test]
fn many_large_replies_at_once_are_no_slow_reader() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Unlimited, "w");
    let mut client = Peer::client(broker.address(), "q");
    let seqs: Vec<u32> = (0..60).map(|_| client.request(b"x")).collect();
    let deliveries: Vec<_> = seqs.iter().map(|_| worker.delivery().0).collect();
    let answering = thread::spawn(move || {
        let body = vec![b'x'; MIB];
        for delivery in deliveries {
            worker.reply(delivery, &body);
        }
        worker.sync();
    });
    for seq in seqs {
        let (of, body) = client.answer();
        assert_eq!((of, body.len()), (seq, MIB));
    }
    answering.join().expect("the worker is answered");
}

/// Proves I21 and S1.9: a peer that is slow because its reply is large goes on sending heartbeats, and they count.
#[test]
fn a_slow_but_steady_reader_is_neither_silent_nor_closed() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "w");
    let mut client = Peer::greeted(broker.address(), 1_000);
    client.open("q");
    let seq = client.request(b"x");
    let (delivery, ..) = worker.delivery();
    let body = vec![b'x'; 15 * MIB];
    worker.reply(delivery, &body);
    let begun = Instant::now();
    let mut taken = 0;
    let mut pings = 0;
    while taken < body.len() {
        taken += client.take(256 * 1024);
        // As slow as a link of some 3 MB/s, with a heartbeat in time.
        let due = Duration::from_millis(u64::try_from(taken / 3_000).expect("milliseconds"));
        wait::until("the link has room", || begun.elapsed() >= due);
        if begun.elapsed() > Duration::from_millis(200) * pings {
            pings += 1;
            client.say(&Frame::Ping { seq: pings });
        }
    }
    assert!(begun.elapsed() > Duration::from_secs(3), "longer than its silence may be");
    let (of, answer) = client.answer();
    assert_eq!((of, answer.len()), (seq, body.len()));
    for ping in 1..=pings {
        client.hear(|frame| assert_eq!(frame, Frame::Pong { seq: ping }));
    }
}

/// Proves I21: the broker reads a peer's frames no faster than it can answer them.
#[test]
fn a_flood_of_pings_is_paused() {
    let mut broker = Broker::start();
    let id = broker.process().id();
    let mut peer = Peer::greeted(broker.address(), 0);
    let before = process::memory_now(id);
    let many = (0..4_096).flat_map(|_| [0x47, 0xC0, 18, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).collect::<Vec<u8>>();
    // absence: once nobody reads the PONGs, no more PINGs are taken.
    let said = peer.push_until_stuck(&many, Duration::from_secs(1), 64 << 20);
    assert!(said < 64 << 20, "all of them were taken");
    let grown = process::memory_now(id).saturating_sub(before);
    assert!(grown < 8 << 20, "unread PONGs cost {grown} bytes");
    let mut bystander = Peer::client(broker.address(), "q");
    bystander.say(&Frame::Request(RawOutgoing {
        fail_fast: true,
        ..RawOutgoing::new(7, 0, Raw { headers: false, bytes: b"" })
    }));
    assert_eq!(bystander.undelivered(), (7, Code::NoResponder));
}
