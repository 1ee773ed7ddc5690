//! Messages whose client is at one broker and whose worker is at another.

use std::time::Duration;

use rustix::process::Signal;
use turno_e2e::{Cluster, Peer, Plan, wait};
use turno_proto::model::Code;
use turno_proto::native::Frame;

/// Alpha and beta, linked.
fn two() -> Cluster {
    Plan::chain(2).start()
}

/// The number of a piece of a reply, and what it holds.
#[track_caller]
fn piece(client: &mut Peer) -> (u32, Vec<u8>) {
    client.hear(|frame| match frame {
        Frame::Reply { seq, more: true, raw, .. } => (seq, raw.bytes.to_vec()),
        other => panic!("expected a piece of a reply: {other:?}"),
    })
}

/// Nothing is left of anything, at any broker and on any link.
#[track_caller]
fn all_quiet(cluster: &Cluster) {
    for at in cluster.running() {
        wait::until("nothing is left", || {
            let status = cluster.broker(at).status();
            status["ready"] == 0 && status["in_flight"] == 0 && status["slots_used"] == 0
        });
        wait::until("nothing is on a link", || cluster.links(at).iter().all(|link| link.backlog == 0));
    }
}

/// Proves S2.3 and S2.6: a request finds a worker at another broker, whichever of the two comes first, and the reply
/// finds back to its caller; both ways at the same time.
#[test]
fn a_request_and_its_reply() {
    let cluster = two();
    for (at, far, queue) in [(0, 1, "there"), (1, 0, "back")] {
        let mut client = cluster.client(at, queue);
        let early = client.request(b"early");
        client.sync();
        let mut worker = cluster.worker(far, queue, 2, "w");
        let (delivery, body, attempt) = worker.delivery();
        assert_eq!((body.as_slice(), attempt), (&b"early"[..], 1));
        let late = client.request(b"late");
        let (second, body, _) = worker.delivery();
        assert_eq!(body, b"late");
        worker.reply(second, b"2");
        assert_eq!(client.answer(), (late, b"2".to_vec()));
        worker.reply(delivery, b"1");
        assert_eq!(client.answer(), (early, b"1".to_vec()));
        let large = vec![b'x'; 3 << 20];
        let seq = client.request(&large);
        let (delivery, body, _) = worker.delivery();
        assert!(body == large, "other bytes");
        worker.reply(delivery, &large);
        let (of, body) = client.answer();
        assert!(of == seq && body == large, "other bytes");
    }
    all_quiet(&cluster);
}

/// Proves S2.6: pieces of a reply and news of progress come over a link in the order in which they were said.
#[test]
fn pieces_and_progress() {
    let cluster = two();
    let (mut client, mut worker) = (cluster.client(0, "q"), cluster.worker(1, "q", 1, "w"));
    let seq = client.request(b"x");
    let (delivery, ..) = worker.delivery();
    worker.progress(delivery, b"half");
    client.hear(|frame| match frame {
        Frame::Progress { seq: of, raw, .. } => assert_eq!((of, raw.bytes), (seq, &b"half"[..])),
        other => panic!("expected PROGRESS: {other:?}"),
    });
    for number in 0..20_u8 {
        worker.piece(delivery, &[number]);
    }
    worker.reply(delivery, b"end");
    for number in 0..20_u8 {
        assert_eq!(piece(&mut client), (seq, vec![number]));
    }
    assert_eq!(client.answer(), (seq, b"end".to_vec()));
    all_quiet(&cluster);
}

/// Proves S2.6: what its caller cancels, what is out of time, and what lost its caller is stopped at the other broker.
#[test]
fn the_far_worker_is_told_to_stop() {
    let cluster = two();
    let (mut client, mut worker) = (cluster.client(0, "q"), cluster.worker(1, "q", 1, "w"));
    let seq = client.request(b"cancelled");
    let (delivery, ..) = worker.delivery();
    client.cancel(seq);
    assert_eq!(client.undelivered(), (seq, Code::Cancelled));
    assert_eq!(worker.cancelled(), (delivery, Code::Cancelled));
    worker.fail(delivery, b"stopped");

    let seq = client.request_with(b"late", |message| message.deadline_ms = Some(3_000));
    let (delivery, ..) = worker.delivery();
    assert_eq!(client.undelivered(), (seq, Code::TimedOut));
    assert_eq!(worker.cancelled(), (delivery, Code::TimedOut), "whichever of the two brokers notices first");
    worker.fail(delivery, b"stopped");

    let mut request = cluster.broker(0).start_turno(&["request", "q", "gone", "--timeout", "50s"]);
    let (delivery, ..) = worker.delivery();
    request.signal(Signal::KILL);
    request.end(wait::PATIENCE);
    assert_eq!(worker.cancelled(), (delivery, Code::CallerGone));
    worker.fail(delivery, b"stopped");
    worker.sync();
    all_quiet(&cluster);
}

/// Proves S2.6 and S2.35: a failure at the other broker is told to the caller; a worker lost there counts as an attempt,
/// and retries are the owner's.
#[test]
fn failures_at_the_far_worker() {
    let cluster = two();
    let (mut client, mut worker) = (cluster.client(0, "q"), cluster.worker(1, "q", 1, "w"));
    let seq = client.request(b"once");
    let (delivery, ..) = worker.delivery();
    worker.fail(delivery, b"no");
    assert_eq!(client.undelivered(), (seq, Code::Failed));
    let seq = client.request_with(b"twice", |message| message.retries = Some(1));
    assert_eq!(worker.delivery().2, 1);
    drop(worker);
    let mut next = cluster.worker(1, "q", 1, "next");
    let (delivery, body, attempt) = next.delivery();
    assert_eq!((body.as_slice(), attempt), (&b"twice"[..], 2));
    next.reply(delivery, b"done");
    assert_eq!(client.answer(), (seq, b"done".to_vec()));
    all_quiet(&cluster);
}

/// Proves S2.3: `--fail-fast` looks further than the own broker.
#[test]
fn nobody_anywhere_and_somebody_elsewhere() {
    let cluster = Plan::chain(3).start();
    let ask = || cluster.broker(0).run(&["request", "q", "x", "--fail-fast", "--json"]);
    assert_eq!(ask().json()["error"]["code"], "no_responder");
    let _worker = cluster.broker(2).worker(&["q", "--echo"]);
    wait::until("the worker is known", || ask().code == 0);
}

/// Proves S2.6: a send stays its own broker's, which counts its attempts and keeps it when it is dead; the other broker
/// has none of it.
#[test]
fn a_send_belongs_to_its_own_broker() {
    let cluster = two();
    let (mut client, mut worker) = (cluster.client(0, "q"), cluster.worker(1, "q", 1, "w"));
    client.store(b"fine", |_| {});
    let (delivery, ..) = worker.delivery();
    worker.ack(delivery);
    wait::until("it is settled", || cluster.broker(0).status()["counters"]["acked"] == 1);
    let id = client.store(b"bad", |message| message.retries = Some(2));
    for attempt in 1..=3 {
        let (delivery, body, number) = worker.delivery();
        assert_eq!((body.as_slice(), number), (&b"bad"[..], attempt));
        worker.fail(delivery, b"no");
    }
    wait::until("it is dead", || cluster.broker(0).queue("q")["dead"] == 1);
    let dead = cluster.broker(0).run(&["queue", "dead", "ls", "q", "--json"]).expect(0).json()["dead"].take();
    assert_eq!((&dead[0]["id"], &dead[0]["attempts"]), (&id.to_string().into(), &3.into()), "{dead}");
    let far = cluster.broker(1).queue("q");
    assert_eq!((&far["ready"], &far["dead"]), (&0.into(), &0.into()), "{far}");
    all_quiet(&cluster);
}

/// Proves I6: a send with a dedup id is known as one that was there while it is at another broker, and after.
#[test]
fn a_dedup_id_holds_over_a_link() {
    let cluster = two();
    let mut worker = cluster.worker(1, "q", 2, "w");
    let send = || cluster.broker(0).run(&["send", "q", "x", "--dedup-id", "one", "--json"]).expect(0).json();
    assert_ne!(send()["duplicate"], true);
    let (delivery, ..) = worker.delivery();
    assert_eq!(send()["duplicate"], true, "it is at the other broker");
    worker.ack(delivery);
    wait::until("it is settled", || cluster.broker(0).status()["counters"]["acked"] == 1);
    assert_eq!(send()["duplicate"], true, "it was done there");
    worker.hears_nothing(Duration::from_millis(300));
}

/// Proves S2.7 and I14: the own workers first; another broker's only while none of them has room.
#[test]
fn own_workers_come_first() {
    let cluster = two();
    let mut near = cluster.worker(0, "q", 2, "near");
    let mut far = cluster.worker(1, "q", 2, "far");
    let mut client = cluster.client(0, "q");
    wait::until("the far one is known", || cluster.links(0).iter().any(|link| link.offered == 2));
    let mut held = Vec::new();
    for _ in 0..2 {
        client.request(b"near");
        held.push(near.delivery().0);
    }
    client.sync();
    far.hears_nothing(Duration::from_millis(300));
    let seq = client.request(b"far");
    let (delivery, body, _) = far.delivery();
    assert_eq!(body, b"far");
    far.reply(delivery, b"done");
    assert_eq!(client.answer(), (seq, b"done".to_vec()));
    // One by one, as long as one slot of the near worker is free.
    for _ in 0..20 {
        near.reply(held.pop().expect("it holds two"), b"done");
        client.answer();
        client.request(b"near");
        held.push(near.delivery().0);
    }
    far.hears_nothing(Duration::from_millis(300));
    assert_eq!(cluster.links(0)[0].forwarded, 1);
    // Both brokers' clients, both full: what waits goes to the first free worker, and to nobody twice.
    let waiting: Vec<u32> = (0..4).map(|_| client.request(b"any")).collect();
    let mut bodies = vec![far.delivery(), far.delivery()];
    for (delivery, ..) in bodies.drain(..) {
        far.reply(delivery, b"far");
    }
    for _ in 0..2 {
        let (delivery, ..) = far.delivery();
        far.reply(delivery, b"far");
    }
    let mut answered: Vec<u32> = waiting.iter().map(|_| client.answer().0).collect();
    answered.sort_unstable();
    assert_eq!(answered, waiting);
    for delivery in held {
        near.reply(delivery, b"near");
    }
    all_quiet(&cluster);
}
