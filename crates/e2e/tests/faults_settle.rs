//! Settling what is not one's own, not there, or settled already; and registering twice.

use turno_e2e::{Broker, Peer};
use turno_proto::model::{Code, Delivery, Slots};
use turno_proto::native::Frame;
use turno_proto::native::admin::AdminCall;

/// Proves S1.30, I3 and I12: an answer to another worker's delivery is dropped and counted; the holder's own arrives.
#[test]
fn a_forged_reply_reaches_nobody() {
    let broker = Broker::start();
    let mut holder = Peer::worker(broker.address(), "q", Slots::Limited(1), "holder");
    let mut client = Peer::client(broker.address(), "q");
    let seq = client.request(b"x");
    let (delivery, ..) = holder.delivery();
    let mut forger = Peer::worker(broker.address(), "q", Slots::Limited(1), "forger");
    forger.reply(delivery, b"forged");
    forger.ack(delivery);
    forger.fail(delivery, b"forged");
    forger.piece(delivery, b"forged");
    forger.progress(delivery, b"forged");
    forger.sync();
    holder.reply(delivery, b"true");
    assert_eq!(client.answer(), (seq, b"true".to_vec()));
    let counters = broker.status()["counters"].take();
    assert_eq!((&counters["forged"], &counters["replied"], &counters["failed"]), (&5.into(), &1.into(), &0.into()));
}

/// Proves S1.29, S1.30 and S0.17: of two equal answers one arrives; more slots given back than held free nothing.
#[test]
fn replies_twice_and_acks_of_nothing_free_no_slots() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(2), "w");
    let mut client = Peer::client(broker.address(), "q");
    let first = client.request(b"1");
    let (delivery, ..) = worker.delivery();
    for _ in 0..3 {
        worker.reply(delivery, b"one");
    }
    worker.ack(delivery);
    for stamp in 5_000..5_010 {
        worker.ack(Delivery { index: 7, stamp });
        worker.reply(Delivery { index: u32::MAX, stamp }, b"?");
    }
    worker.sync();
    assert_eq!(client.answer(), (first, b"one".to_vec()));
    assert_eq!(client.status().slots_used, 0);
    // If any of that had freed a slot there would be room for more than two now.
    for _ in 0..5 {
        client.request(b"2");
    }
    client.sync();
    let status = broker.status();
    assert_eq!((&status["slots_used"], &status["in_flight"], &status["ready"]), (&2.into(), &2.into(), &3.into()));
    let counters = &status["counters"];
    assert_eq!((&counters["replied"], &counters["doubled"]), (&1.into(), &3.into()));
    let strays: u64 = ["late", "forged"].iter().map(|name| counters[name].as_u64().expect("a count")).sum();
    assert_eq!(strays, 20, "{counters}");
}

/// Proves S0.12 and I9: REGISTER again overwrites the slots, with work in flight too, and makes no second entry.
#[test]
fn registering_again_commits_no_slot_twice() {
    let broker = Broker::start();
    let mut admin = Peer::greeted(broker.address(), 0);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(2), "w");
    let mut client = Peer::client(broker.address(), "q");
    for body in [b"1", b"2", b"3", b"4"] {
        client.request(body);
    }
    let held = [worker.delivery(), worker.delivery()];
    worker.register(Slots::Limited(3), "again");
    let (third, body, _) = worker.delivery();
    assert_eq!(body, b"3", "the new slots are three in all, of which two are in use");
    worker.register(Slots::Limited(1), "");
    worker.sync();
    let listed = admin.workers();
    assert_eq!(listed.len(), 1);
    assert_eq!((listed[0].slots, listed[0].used, listed[0].name.as_str()), (Slots::Limited(1), 3, "peer"));
    // Two of three settled: still none free.
    worker.reply(third, b"");
    worker.reply(held[0].0, b"");
    worker.sync();
    assert_eq!(admin.status().ready, 1);
    worker.reply(held[1].0, b"");
    assert_eq!(worker.delivery().1, b"4");
}

/// Proves S0.11 and S0.12: two workers with one name are two; both work, and a command by that name names nobody.
#[test]
fn two_workers_with_one_name_both_work() {
    let broker = Broker::start();
    let mut one = Peer::worker(broker.address(), "q", Slots::Limited(1), "same name");
    let mut other = Peer::worker(broker.address(), "q", Slots::Limited(1), "same name");
    let mut client = Peer::client(broker.address(), "q");
    let seqs = [client.request(b"1"), client.request(b"2")];
    let deliveries = [one.delivery(), other.delivery()];
    assert_eq!((deliveries[0].1.as_slice(), deliveries[1].1.as_slice()), (&b"1"[..], &b"2"[..]));
    one.reply(deliveries[0].0, b"1");
    assert_eq!(client.answer().0, seqs[0]);
    other.reply(deliveries[1].0, b"2");
    assert_eq!(client.answer().0, seqs[1]);
    for command in [
        &["worker", "show", "same name"][..],
        &["worker", "resize", "same name", "5"],
        &["worker", "drain", "same name"],
    ] {
        let refused = broker.run(&[command, &["--json"]].concat());
        assert_ne!(refused.code, 0, "{command:?}");
        assert_eq!(refused.json()["error"]["code"], "ambiguous", "{command:?}");
    }
    client.say(&Frame::AdminCall { seq: 90, call: AdminCall::WorkerStop { worker: "same name".into(), now: true } });
    assert_eq!(client.refused(), (90, Code::Ambiguous));
    let ids: Vec<String> = client.workers().iter().map(|worker| worker.id.to_string()).collect();
    broker.run(&["worker", "show", &ids[1], "--json"]).expect(0);
}

/// Proves S0.14, S0.15 and S0.38: DEREGISTER takes the worker out and recalls nothing; its answer still passes.
#[test]
fn a_deregistered_worker_may_still_answer() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(5), "w");
    let mut client = Peer::client(broker.address(), "q");
    let held = client.request(b"held");
    let (delivery, ..) = worker.delivery();
    worker.say(&Frame::Deregister { seq: 70 });
    worker.hear(|frame| assert_eq!(frame, Frame::Ok { seq: 70 }));
    client.request(b"waits");
    client.sync();
    worker.reply(delivery, b"late but fine");
    assert_eq!(client.answer(), (held, b"late but fine".to_vec()));
    worker.sync();
    let status = client.status();
    assert_eq!((status.workers, status.ready, status.slots_used), (0, 1, 0));
    // It may come back: its queue must be consumed anew.
    worker.register(Slots::Limited(5), "w");
    worker.say(&Frame::Consume { seq: 71, handle: 0, exclusive: false });
    worker.hear(|frame| assert_eq!(frame, Frame::Ok { seq: 71 }));
    assert_eq!(worker.delivery().1, b"waits");
}

/// Proves S1.7 and S0.38: no work before REGISTER and the first PING; PONG comes before the first DELIVER.
#[test]
fn work_begins_with_the_first_ping() {
    let broker = Broker::start();
    let mut client = Peer::client(broker.address(), "q");
    client.request(b"x");
    client.sync();
    let mut worker = Peer::silent(broker.address());
    let connect = turno_proto::native::Connect {
        version: turno_proto::native::VERSION,
        name: "w".into(),
        program: String::new(),
        heartbeat_ms: 0,
    };
    worker.say(&Frame::Connect { seq: 1, connect });
    worker.hear(|frame| assert!(matches!(frame, Frame::Config { .. }), "{frame:?}"));
    let register = turno_proto::native::Register::new(Slots::Limited(1), "");
    worker.say(&Frame::Register { seq: 2, register });
    worker.say(&Frame::Open { seq: 3, handle: 0, name: b"q" });
    worker.say(&Frame::Consume { seq: 4, handle: 0, exclusive: false });
    for seq in [2, 3, 4] {
        worker.hear(|frame| assert_eq!(frame, Frame::Ok { seq }));
    }
    assert_eq!(client.status().ready, 1);
    worker.ping();
    assert_eq!(worker.delivery().1, b"x");
}
