//! What an admin sees and changes.

use turno_engine::{Effect, Input, PeerEffect, Settings};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::{BrokerView, Counters, MemoryView, QueueView, WorkerState, WorkerView};
use turno_proto::model::{ClosingReason, Code, ConnId, Limits, Moment, Seconds, Slots, WorkerId, limits};

use crate::harness::{Harness, START_MS, ask};
use crate::seen::{Seen, closing, delivered, reply, sent, turn, undelivered};

/// A worker changed by an admin: as it is afterwards, and what follows.
fn change(harness: &mut Harness, call: AdminCall) -> (Result<WorkerView, Code>, Vec<Seen>) {
    let (answer, seen) = harness.admin(call);
    let view = answer.map(|answer| match answer {
        AdminAnswer::Worker { worker } => *worker,
        other => panic!("{other:?} is no worker"),
    });
    (view, seen)
}

fn stop(worker: &str, now: bool) -> AdminCall {
    AdminCall::WorkerStop { worker: worker.to_owned(), now }
}

/// Proves S1.16: the broker tells what it has and what happened, and nothing else has to be asked for.
#[test]
fn the_broker_as_it_is_shown() {
    let settings = Settings { name: "b1".to_owned(), version: "9.9".to_owned(), ..Settings::default() };
    let mut harness = Harness::with(settings);
    let (worker, client) = (harness.worker(4, &["q"]), harness.client());
    let (_unlimited, _) = harness.joining(Slots::Unlimited, &["mail"]);
    assert_eq!(harness.request(client, ask(1, "q", "abc").cost(4)), [turn(worker, "abc").cost(4)]);
    assert_eq!(harness.send(client, ask(2, "q", "de")).1, []);
    assert_eq!(harness.pass(1_234), []);
    let counters = Counters { requests: 1, sends: 1, deliveries: 1, ..Counters::default() };
    assert_eq!(
        harness.status(),
        BrokerView {
            name: "b1".to_owned(),
            version: "9.9".to_owned(),
            started_at: Moment::from_unix_ms(START_MS),
            up_seconds: Seconds::from_millis(1_234),
            connections: 3,
            workers: 2,
            slots: 4,
            slots_used: 4,
            queues: 2,
            ready: 1,
            in_flight: 1,
            bytes: 128 + 3 + 128 + 2,
            bytes_max: Limits::default().memory_bytes_max,
            memory: MemoryView { used: 261, messages: 261, ..MemoryView::default() },
            counters,
            ..BrokerView::default()
        }
    );
    let view = QueueView {
        name: "q".to_owned(),
        ready: 1,
        in_flight: 1,
        bytes: 261,
        oldest_seconds: Some(Seconds::from_millis(1_234)),
        consumers: 1,
        drop_after: 2,
        weight: 1,
        counters,
        ..QueueView::default()
    };
    assert_eq!(QueueView { head: None, ..harness.queue("q") }, view);
}

/// Proves S0.23: a worker is shown with its queues, its account and what it holds.
#[test]
fn a_worker_as_it_is_shown() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q", "mail"]), harness.client());
    assert_eq!(harness.pass(100), []);
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.pass(250), []);
    let held = harness.explain(harness.id(worker, "a")).message;
    let view = WorkerView {
        id: WorkerId(1),
        name: "w0".to_owned(),
        address: "10.0.0.0:7".to_owned(),
        state: WorkerState::Ready,
        slots: Slots::Limited(2),
        used: 1,
        free: Slots::Limited(1),
        queues: vec!["q".to_owned(), "mail".to_owned()],
        registered_at: Moment::from_unix_ms(START_MS),
        last_used_at: Some(Moment::from_unix_ms(START_MS + 100)),
        deliveries: 1,
        standings: Some(Vec::new()),
        holds: Some(vec![held]),
        tasks: Some(Vec::new()),
        ..WorkerView::default()
    };
    assert_eq!(harness.worker_view("w0"), view);
    assert_eq!(harness.worker_view("1"), view, "by id too");
    let listed = WorkerView { standings: None, holds: None, tasks: None, ..view };
    let page = harness.look(AdminCall::WorkerLs { after: None, limit: 10 });
    assert_eq!(page, Ok(AdminAnswer::Workers { workers: vec![listed], next: None }));
}

/// Proves S0.23: listings come in pages that neither repeat nor leave out, whatever limit is asked for.
#[test]
fn listings_come_in_pages() {
    let mut harness = Harness::new();
    for name in ["b", "d", "a", "e", "c"] {
        harness.worker(1, &[name]);
    }
    for (limit, pages) in [(0, 5), (1, 5), (2, 3), (5, 1), (u32::MAX, 1)] {
        let (mut names, mut after, mut count) = (Vec::new(), None, 0);
        loop {
            let answer = harness.look(AdminCall::QueueLs { after: after.take(), limit });
            let Ok(AdminAnswer::Queues { queues, next }) = answer else { panic!("{answer:?}") };
            names.extend(queues.into_iter().map(|queue| queue.name));
            count += 1;
            after = next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!((names.join(""), count), ("abcde".to_owned(), pages), "{limit}");
        let (mut ids, mut after, mut count) = (Vec::new(), None, 0);
        loop {
            let answer = harness.look(AdminCall::WorkerLs { after, limit });
            let Ok(AdminAnswer::Workers { workers, next }) = answer else { panic!("{answer:?}") };
            ids.extend(workers.into_iter().map(|worker| worker.id.0));
            count += 1;
            after = next.map(|next| next.0);
            if after.is_none() {
                break;
            }
        }
        assert_eq!((ids, count), (vec![1, 2, 3, 4, 5], pages), "{limit}");
    }
    let beyond = harness.look(AdminCall::WorkerLs { after: Some(u64::MAX), limit: 5 });
    assert_eq!(beyond, Ok(AdminAnswer::Workers { workers: vec![], next: None }));
}

/// Proves S0.12: a name that two workers have is ambiguous for every command; their ids are not. What is not there
/// is not found.
#[test]
fn names_may_be_ambiguous() {
    let mut harness = Harness::new();
    for _ in 0..2 {
        let worker = harness.client();
        assert_eq!(harness.register_named(worker, Slots::Limited(1), "same name"), Ok(vec![]));
    }
    for (worker, expected) in [("same name", Code::Ambiguous), ("nobody", Code::NotFound), ("3", Code::NotFound)] {
        let worker = worker.to_owned();
        for call in [
            AdminCall::WorkerShow { worker: worker.clone() },
            AdminCall::WorkerResize { worker: worker.clone(), slots: Slots::Limited(1) },
            AdminCall::WorkerDrain { worker: worker.clone() },
            AdminCall::WorkerResume { worker: worker.clone() },
            stop(&worker, false),
            stop(&worker, true),
        ] {
            assert_eq!(change(&mut harness, call.clone()), (Err(expected), vec![]), "{call:?}");
        }
    }
    assert_eq!(harness.worker_view("2").name, "same name");
    assert_eq!(harness.look(AdminCall::QueueShow { queue: "none".to_owned() }), Err(Code::NotFound));
    assert_eq!(harness.look(AdminCall::QueueConsumers { queue: "not a name".to_owned() }), Err(Code::NotFound));
}

/// Proves S0.18 and S0.13: an admin's RESIZE works as the worker's own, and slots beyond the limit get an error and
/// change nothing.
#[test]
fn an_admin_resizes_a_worker() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(0, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), []);
    let resize = |slots| AdminCall::WorkerResize { worker: "w0".to_owned(), slots };
    let too_many = resize(Slots::Limited(limits::SLOTS_MAX + 1));
    assert_eq!(change(&mut harness, too_many), (Err(Code::BadSlots), vec![]));
    let (view, seen) = change(&mut harness, resize(Slots::Limited(1)));
    assert_eq!(seen, [turn(worker, "a")]);
    assert_eq!(view.map(|view| view.slots), Ok(Slots::Limited(1)));
    let (view, seen) = change(&mut harness, resize(Slots::Unlimited));
    assert_eq!((view.map(|view| view.slots), seen), (Ok(Slots::Unlimited), vec![]));
}

/// A drained worker gets nothing new and finishes what it has; resumed, it takes its turn again.
#[test]
fn an_admin_drains_and_resumes_a_worker() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    let drain = AdminCall::WorkerDrain { worker: "w0".to_owned() };
    let (view, seen) = change(&mut harness, drain);
    assert_eq!((view.map(|view| view.state), seen), (Ok(WorkerState::Draining), vec![]));
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    assert_eq!(harness.resize(worker, 5), Ok(vec![]));
    let (view, seen) = change(&mut harness, AdminCall::WorkerResume { worker: "1".to_owned() });
    assert_eq!((view.map(|view| view.state), seen), (Ok(WorkerState::Ready), vec![turn(worker, "b")]));
}

/// A worker asked to stop is told, gets nothing new, and keeps what it has.
#[test]
fn an_admin_stops_a_worker() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    let (view, seen) = change(&mut harness, stop("w0", false));
    assert_eq!(view.map(|view| (view.state, view.used)), Ok((WorkerState::Draining, 1)));
    assert_eq!(seen, [closing(worker, ClosingReason::Stop, 0)]);
    assert_eq!(harness.request(client, ask(2, "q", "b")), []);
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    assert_eq!(harness.leave(worker), []);
    assert_eq!(harness.status().ready, 1);
}

/// Proves S2.34 and S2.35: a worker stopped at once gives back what it has, in order, as if it had never been handed
/// out: no attempt counts, and requests without retries survive it.
#[test]
fn an_admin_stops_a_worker_at_once() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(5, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.send(client, ask(2, "q", "b").retries(0)).1, [sent(worker, "b")]);
    let no_reply = [turn(worker, "c").one_way(), delivered(client, 3)];
    assert_eq!(harness.request(client, ask(3, "q", "c").no_reply()), no_reply);
    assert_eq!(harness.request(client, ask(4, "q", "d")), [turn(worker, "d")]);
    assert_eq!(harness.cancel(client, 4).len(), 2);
    let (view, seen) = change(&mut harness, stop("w0", true));
    let view = view.unwrap();
    assert_eq!((view.state, view.used, view.holds), (WorkerState::Draining, 0, Some(vec![])));
    assert_eq!(seen, [closing(worker, ClosingReason::Now, 0)]);
    assert_eq!((harness.counters().returned, harness.counters().lost), (2, 0));
    let (other, got) = harness.joining(Slots::Limited(5), &["q"]);
    assert_eq!(got, [turn(other, "a"), sent(other, "b")], "the first attempt still");
    assert_eq!(harness.reply(worker, "a", "late"), []);
    assert_eq!(harness.reply(other, "a", "A"), [reply(client, 1, "A")]);
    assert_eq!(harness.leave(worker), []);
    assert_eq!(harness.ack(other, "b"), []);
}

/// Proves S0.15: a worker that deregistered and still holds something can be stopped at once too, and is gone then.
#[test]
fn an_admin_stops_a_leaving_worker_at_once() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.deregister(worker), Ok(vec![]));
    let resize = AdminCall::WorkerResize { worker: "w0".to_owned(), slots: Slots::Limited(9) };
    assert_eq!(change(&mut harness, resize), (Err(Code::NotRegistered), vec![]));
    let (view, seen) = change(&mut harness, stop("w0", true));
    assert_eq!(view.map(|view| (view.state, view.used)), Ok((WorkerState::Draining, 0)));
    assert_eq!(seen, [closing(worker, ClosingReason::Now, 0)]);
    assert_eq!((harness.status().workers, harness.status().ready), (0, 1));
    assert_eq!(change(&mut harness, stop("w0", true)), (Err(Code::NotFound), vec![]));
    assert_eq!(harness.leave(client), []);
    let stranger = ConnId { index: 77, generation: 1 };
    assert_eq!(harness.cancel(stranger, 1), []);
}

/// Proves I13: a request given back by a stopped worker still has its one deadline.
#[test]
fn a_request_given_back_keeps_its_deadline() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.pass(20_000), []);
    assert_eq!(change(&mut harness, stop("w0", true)).1.len(), 1);
    assert_eq!(harness.pass(9_999), []);
    assert_eq!(harness.pass(1), [undelivered(client, 1, Code::TimedOut)]);
}

/// Proves S3.46: a broker without a sid is in no ring, and says so; a shutdown is not even looked at from elsewhere.
#[test]
fn a_broker_without_a_sid_is_in_no_ring() {
    let mut harness = Harness::new();
    let next = || "127.0.0.1:8005".to_owned();
    for call in [AdminCall::Ring {}, AdminCall::RingJoin { next: next(), sid: None }, AdminCall::RingLeave {}] {
        assert_eq!(harness.look(call), Err(Code::NotInRing));
    }
    assert_eq!(harness.look(AdminCall::RingShutdown {}), Err(Code::NotLocal));
    assert_eq!(harness.status().ring, None);
    let conn = ConnId { index: 7, generation: 1 };
    let connected = Input::Connected { conn, name: String::new(), address: "unix:4711".to_owned() };
    assert_eq!(harness.step(connected), []);
    let shutdown = Input::Admin { conn, seq: 5, call: AdminCall::RingShutdown {} };
    assert_eq!(
        harness.step(shutdown),
        [Effect::Peer(PeerEffect::Answer { conn, seq: 5, result: Err(Code::NotInRing) })]
    );
}
