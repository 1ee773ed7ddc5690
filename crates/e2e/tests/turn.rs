//! Whose turn it is: the even spread, with raw peers and with real processes.

use rustix::process::Signal;
use turno_e2e::{Broker, Peer, wait};
use turno_proto::model::Slots;
use turno_proto::model::view::WorkerState;

fn ten_workers(broker: &Broker) -> Vec<Peer> {
    (0..10).map(|n| Peer::worker(broker.address(), "q", Slots::Limited(10), &format!("w{n}"))).collect()
}

/// Workers that may get work.
fn ready(admin: &mut Peer) -> usize {
    let workers = admin.workers();
    workers.iter().filter(|worker| worker.state == WorkerState::Ready && !worker.queues.is_empty()).count()
}

#[track_caller]
fn assert_even(counts: &[u64], total: u64) {
    assert_eq!(counts.iter().sum::<u64>(), total, "{counts:?}");
    let (most, least) = (counts.iter().max().copied(), counts.iter().min().copied());
    assert!(most.unwrap_or(0) - least.unwrap_or(0) <= 1, "{counts:?}");
}

/// Proves S0.25, S0.19 and S0.20: M messages at N workers of equal slots are spread so that no two differ by more than
/// one, for any M up to all slots.
#[test]
fn held_messages_are_spread_within_one() {
    for total in [1, 7, 10, 55, 99, 100] {
        let broker = Broker::start();
        let _workers = ten_workers(&broker);
        let mut client = Peer::client(broker.address(), "q");
        for _ in 0..total {
            client.request(b"slow");
        }
        client.sync();
        let used: Vec<u64> = client.workers().iter().map(|worker| u64::from(worker.used)).collect();
        assert_even(&used, total);
    }
}

/// Proves S0.25, S0.22, S0.28, S0.29, I9 and I10: 1,000 requests at 10 workers with 10 slots: never more than 10 at one
/// of them, all answered once and in order, and no two workers differ by more than one.
#[test]
fn a_thousand_requests_are_spread_within_one() {
    let broker = Broker::start();
    let mut workers = ten_workers(&broker);
    let mut client = Peer::client(broker.address(), "q");
    let first = client.request(&0_u32.to_le_bytes());
    for number in 1..1_000_u32 {
        client.request(&number.to_le_bytes());
    }
    client.sync();
    let full: Vec<u32> = client.workers().iter().map(|worker| worker.used).collect();
    assert_eq!((full, client.status().ready), (vec![10; 10], 900));
    for number in 0..1_000_u32 {
        let worker = &mut workers[(number % 10) as usize];
        let (delivery, body, _) = worker.delivery();
        worker.reply(delivery, &body);
        let (seq, answer) = client.answer();
        assert_eq!((seq, answer), (first + number, number.to_le_bytes().to_vec()));
    }
    let counts: Vec<u64> = client.workers().iter().map(|worker| worker.deliveries).collect();
    assert_even(&counts, 1_000);
    let status = client.status();
    assert_eq!((status.ready, status.in_flight, status.slots_used, status.counters.replied), (0, 0, 0, 1_000));
}

/// Proves S0.21 and S0.20: full workers are passed over, and the others keep their order.
#[test]
fn full_workers_are_passed_over() {
    let broker = Broker::start();
    let mut small = Peer::worker(broker.address(), "q", Slots::Limited(1), "small");
    let mut one = Peer::worker(broker.address(), "q", Slots::Limited(3), "one");
    let mut two = Peer::worker(broker.address(), "q", Slots::Limited(3), "two");
    let mut client = Peer::client(broker.address(), "q");
    for number in 0..8_u8 {
        client.request(&[number]);
    }
    client.sync();
    let bodies = |worker: &mut Peer, count: usize| -> Vec<u8> { (0..count).map(|_| worker.delivery().1[0]).collect() };
    assert_eq!(bodies(&mut small, 1), [0]);
    assert_eq!(bodies(&mut one, 3), [1, 3, 5]);
    assert_eq!(bodies(&mut two, 3), [2, 4, 6]);
    assert_eq!(client.status().ready, 1);
}

/// Proves I12, S1.13 and S0.7: 100 connections with 20 requests each at the same time; every reply reaches its own
/// caller.
#[test]
fn a_hundred_connections_at_once() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(2_000), "w");
    let mut clients: Vec<Peer> = (0..100).map(|_| Peer::client(broker.address(), "q")).collect();
    for (name, client) in (0_u8..).zip(&mut clients) {
        for _ in 0..20 {
            client.request(&[name]);
        }
    }
    let held: Vec<_> = (0..2_000).map(|_| worker.delivery()).collect();
    assert_eq!(worker.status().in_flight, 2_000);
    // Last come, first answered.
    for (delivery, body, _) in held.into_iter().rev() {
        worker.reply(delivery, &body);
    }
    for (name, client) in (0_u8..).zip(&mut clients) {
        let mut seqs: Vec<u32> = (0..20)
            .map(|_| {
                let (seq, body) = client.answer();
                assert_eq!(body, [name]);
                seq
            })
            .collect();
        seqs.sort_unstable();
        assert_eq!(seqs, (101..=120).collect::<Vec<u32>>());
    }
    worker.sync();
    assert_eq!(worker.status().slots_used, 0);
}

/// Proves S0.10, S0.25, S0.42 and I10: with real processes and fewer requests at a time than one worker has slots, the
/// turn goes round: no two workers differ by more than one.
#[test]
fn real_workers_take_turns() {
    let broker = Broker::start();
    let mut admin = Peer::greeted(broker.address(), 0);
    let _workers: Vec<_> = (0..10).map(|_| broker.start_turno(&["work", "q", "--echo"])).collect();
    wait::until("all are ready", || ready(&mut admin) == 10);
    let done = broker.run(&["request", "q", "x", "--count", "1000", "--parallel", "10", "--json"]).expect(0).json();
    assert_eq!((&done["answered"], &done["failed"]), (&1_000.into(), &0.into()));
    let counts: Vec<u64> = admin.workers().iter().map(|worker| worker.deliveries).collect();
    assert_even(&counts, 1_000);
}

/// Proves S2.34, S2.35, S0.25, I9 and I13: 10 workers of 10 slots, 1,000 requests, 100 at a time; one worker is killed
/// in the middle. Nothing is unanswered, and the others share the work.
#[test]
fn a_worker_killed_in_the_middle_costs_nobody_an_answer() {
    let broker = Broker::start();
    let mut admin = Peer::greeted(broker.address(), 0);
    let mut workers: Vec<_> = (0..10)
        .map(|n| broker.start_turno(&["work", "q", "--slots", "10", "--name", &format!("w{n}"), "--", "sleep", "0.1"]))
        .collect();
    wait::until("all are ready", || ready(&mut admin) == 10);
    let mut asking = broker.start_turno(&[
        "request",
        "q",
        "x",
        "--count",
        "1000",
        "--parallel",
        "100",
        "--retries",
        "1",
        "--timeout",
        "60s",
        "--json",
    ]);
    wait::until("a third is done", || {
        let status = admin.status();
        status.counters.replied > 300 && status.in_flight > 50
    });
    let mut victim = workers.swap_remove(0);
    victim.signal(Signal::KILL);
    victim.end(wait::PATIENCE);
    assert_eq!(asking.end(wait::PATIENCE), 0, "{:?}", asking.stderr());
    let done: serde_json::Value = serde_json::from_str(&asking.stdout().concat()).expect("one document");
    assert_eq!((&done["sent"], &done["answered"], &done["failed"]), (&1_000.into(), &1_000.into(), &0.into()));
    let status = admin.status();
    assert!(status.counters.lost > 0, "the victim held something");
    assert_eq!(status.counters.retried, status.counters.lost);
    assert_eq!((status.ready, status.in_flight, status.slots_used), (0, 0, 0));
    let counts: Vec<u64> = admin.workers().iter().map(|worker| worker.deliveries).collect();
    assert_eq!(counts.len(), 9);
    let (most, least) = (counts.iter().max(), counts.iter().min());
    // All were busy all the time, so how many each did is how fast its programs ran.
    assert!(least.copied() >= most.map(|most| most / 2), "{counts:?}");
}
