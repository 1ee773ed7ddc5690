//! One worker over two connections: a foreman's for tasks, a native one for deliveries, and one account of slots.

use turno_engine::{CallerMessage, Deliver, Effect, Input, NativeEffect, Outgoing, PeerEffect, WorkerMessage};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::{WorkerKind, WorkerView};
use turno_proto::model::{ConnId, Delivery, Payload, Slots};

use super::farm::{Farm, Said, job};

const NATIVE: ConnId = ConnId { index: 90, generation: 1 };

/// A native connection of the worker with that key, which consumes the queue `q`, and what it is given.
fn native(farm: &mut Farm, key: &str, slots: u32) -> Vec<Said> {
    let conn = NATIVE;
    farm.step(Input::Connected { conn, name: "native".to_owned(), address: "10.0.0.9:9".to_owned() });
    farm.step(Input::Ready { conn });
    let queue = "q".parse().expect("a good name");
    farm.step(Input::Open { conn, seq: 1, handle: 0, queue });
    let (name, key) = (String::new(), key.to_owned());
    let mut said = farm.step(Input::RegisterAs { conn, seq: 2, slots: Slots::Limited(slots), name, key });
    said.extend(farm.step(Input::Consume { conn, seq: 3, handle: 0, exclusive: false }));
    said.retain(|said| !matches!(said, Said::Other(Effect::Peer(PeerEffect::Answer { result: Ok(()), .. }))));
    said
}

fn request(farm: &mut Farm, seq: u32, cost: u16) -> Vec<Said> {
    let conn = farm.admin;
    if seq == 1 {
        farm.step(Input::Open { conn, seq: 900, handle: 5, queue: "q".parse().expect("a good name") });
    }
    let message = Outgoing { cost: Some(cost), ..Outgoing::new(seq, 5, Payload::default()) };
    farm.step(Input::Request { conn, message })
}

fn delivered(said: &[Said]) -> Option<Delivery> {
    said.iter().find_map(|said| match said {
        Said::Other(Effect::Peer(PeerEffect::Deliver(Deliver { conn, delivery, .. }))) if *conn == NATIVE => {
            Some(*delivery)
        }
        _ => None,
    })
}

fn reply(farm: &mut Farm, delivery: Delivery) -> Vec<Said> {
    let mut said =
        farm.step(Input::worker(NATIVE, delivery, WorkerMessage::Reply { more: false, payload: Payload::default() }));
    said.retain(|said| {
        !matches!(said, Said::Other(Effect::Peer(PeerEffect::Caller { message: CallerMessage::Reply { .. }, .. })))
    });
    said
}

/// Slots in use, as each of the workers shows them. Paired connections are shown once.
fn used(farm: &mut Farm) -> Vec<u32> {
    match farm.call(AdminCall::WorkerLs { after: None, limit: 10 }).remove(0) {
        Said::Other(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. })) => {
            match *answer {
                AdminAnswer::Workers { workers, .. } => workers.iter().map(|worker| worker.used).collect(),
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other:?}"),
    }
}

/// One worker over two connections is one, with the slots of its one account.
#[test]
fn the_broker_counts_pairs_once() {
    let mut farm = Farm::in_memory();
    farm.worker("w", 2);
    native(&mut farm, "w", 2);
    request(&mut farm, 1, 1);
    let Said::Other(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. })) =
        farm.call(AdminCall::Status).remove(0)
    else {
        panic!("an answer")
    };
    let AdminAnswer::Status { broker } = *answer else { panic!("the broker") };
    assert_eq!((broker.workers, broker.slots, broker.slots_used), (1, 2, 1));
}

/// One worker over two connections is shown once, with what it does over both; whichever of its numbers or names is given.
/// What is done to it is done to both.
#[test]
fn pairs_are_shown_and_steered_as_one() {
    let mut farm = Farm::in_memory();
    let job_worker = farm.worker("w", 2);
    assert_eq!(native(&mut farm, "w", 2), []);
    let delivery = delivered(&request(&mut farm, 1, 1)).expect("there is room");
    let (id, said) = farm.submit(job(4));
    assert_eq!(said, [Said::Offer(job_worker, vec![(id, 1, 1)])]);
    farm.accept(job_worker);
    let view = worker(&mut farm, "w");
    assert_eq!((view.kind, view.queues, view.used), (WorkerKind::Both, vec!["q".to_owned()], 2));
    assert_eq!(
        (view.deliveries, view.holds.map(|holds| holds.len()), view.tasks.map(|tasks| tasks.len())),
        (2, Some(1), Some(1))
    );
    assert_eq!(worker(&mut farm, "2").id, view.id, "the number of its other connection is it, too");
    farm.call(AdminCall::WorkerDrain { worker: "w".to_owned() });
    assert_eq!(reply(&mut farm, delivery), []);
    assert_eq!(delivered(&request(&mut farm, 2, 1)), None, "it is drained as a worker of queues, too");
    let said = farm.call(AdminCall::WorkerResume { worker: "w".to_owned() });
    let delivery = delivered(&said).expect("and resumed");
    // With one slot less, neither connection has room.
    farm.call(AdminCall::WorkerResize { worker: "w".to_owned(), slots: Slots::Limited(1) });
    assert_eq!(reply(&mut farm, delivery), []);
    assert_eq!((delivered(&request(&mut farm, 3, 1)), used(&mut farm)), (None, vec![1]));
    // The other connection comes anew, and has no more than an admin left of the worker's slots.
    farm.step(Input::Disconnected { conn: NATIVE });
    assert_eq!(native(&mut farm, "w", 2), []);
    let said = farm.finished(job_worker, id, 1, 1);
    assert!(delivered(&said).is_some() ^ said.iter().any(|said| matches!(said, Said::Offer(..))), "one slot: {said:?}");
    assert_eq!(used(&mut farm), [1]);
}

fn worker(farm: &mut Farm, name: &str) -> WorkerView {
    match farm.call(AdminCall::WorkerShow { worker: name.to_owned() }).remove(0) {
        Said::Other(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. })) => {
            match *answer {
                AdminAnswer::Worker { worker } => *worker,
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other:?}"),
    }
}

/// The foreman's connection comes first: what a delivery takes is not offered to tasks, and comes back to them.
#[test]
fn deliveries_take_from_tasks() {
    let mut farm = Farm::in_memory();
    let job_worker = farm.worker("a", 2);
    assert_eq!(native(&mut farm, "a", 2), []);
    let delivery = delivered(&request(&mut farm, 1, 1)).expect("there is room");
    assert_eq!(used(&mut farm), [1], "one account");
    let (id, said) = farm.submit(job(3));
    assert_eq!(said, [Said::Offer(job_worker, vec![(id, 1, 1)])]);
    farm.accept(job_worker);
    assert_eq!(used(&mut farm), [2]);
    assert_eq!(delivered(&request(&mut farm, 2, 1)), None, "no room over either connection");
    let said = reply(&mut farm, delivery);
    let second = delivered(&said).expect("the next request has the slot");
    assert_eq!(reply(&mut farm, second), [Said::Offer(job_worker, vec![(id, 2, 1)])], "and the next task after it");
}

/// The native connection comes first: what tasks take is not there for deliveries.
#[test]
fn tasks_take_from_deliveries() {
    let mut farm = Farm::in_memory();
    assert_eq!(native(&mut farm, "a", 2), []);
    let (id, _) = farm.submit(job(2));
    let (job_worker, said) = farm.joining("a", 2);
    assert_eq!(said, [Said::Offer(job_worker, vec![(id, 1, 1), (id, 2, 1)])]);
    farm.accept(job_worker);
    assert_eq!(used(&mut farm), [2]);
    assert_eq!(delivered(&request(&mut farm, 1, 1)), None);
    let said = farm.finished(job_worker, id, 1, 1);
    assert!(delivered(&said).is_some(), "{said:?}");
    assert_eq!(used(&mut farm), [2]);
}

/// When one of the two goes, the other has its slots for itself.
#[test]
fn pairs_part() {
    let mut farm = Farm::in_memory();
    let job_worker = farm.worker("a", 1);
    native(&mut farm, "a", 1);
    delivered(&request(&mut farm, 1, 1)).expect("there is room");
    let (id, said) = farm.submit(job(3));
    assert_eq!(said, []);
    let said = farm.step(Input::Disconnected { conn: NATIVE });
    assert!(said.contains(&Said::Offer(job_worker, vec![(id, 1, 1)])), "{said:?}");
    farm.accept(job_worker);
    assert_eq!(native(&mut farm, "a", 1), [], "back, and without room");
    assert_eq!(used(&mut farm), [1]);
    assert_eq!(delivered(&request(&mut farm, 2, 1)), None);
    let said = farm.lose(job_worker);
    let delivery = delivered(&said).expect("the slots of a connection that is gone are not counted");
    let back = farm.connect();
    assert_eq!(farm.hello(back, "a", 1, &[(id, 1, Some(1))]), []);
    assert_eq!(used(&mut farm), [2], "what runs there runs there, and is more than it has");
    assert_eq!(reply(&mut farm, delivery), []);
    assert_eq!(farm.finished(back, id, 1, 1), [Said::Offer(back, vec![(id, 2, 1)])]);
}

/// Another key, or none: two workers.
#[test]
fn strangers_are_no_pairs() {
    for key in ["b", ""] {
        let mut farm = Farm::in_memory();
        let job_worker = farm.worker("a", 1);
        native(&mut farm, key, 1);
        delivered(&request(&mut farm, 1, 1)).expect("there is room");
        let (id, said) = farm.submit(job(1));
        assert_eq!(said, [Said::Offer(job_worker, vec![(id, 1, 1)])]);
        assert_eq!(used(&mut farm), [1, 1]);
    }
}

/// A worker that is kept free for a costly message gets no tasks meanwhile.
#[test]
fn a_costly_message_has_its_turn() {
    let mut farm = Farm::in_memory();
    let job_worker = farm.worker("a", 2);
    native(&mut farm, "a", 2);
    let (id, said) = farm.submit(job(9));
    assert_eq!(said, [Said::Offer(job_worker, vec![(id, 1, 1), (id, 2, 1)])]);
    farm.accept(job_worker);
    assert_eq!(delivered(&request(&mut farm, 1, 2)), None);
    assert_eq!(farm.finished(job_worker, id, 1, 1), []);
    let said = farm.finished(job_worker, id, 2, 1);
    let delivery = delivered(&said).expect("it fits now");
    assert_eq!(reply(&mut farm, delivery), [Said::Offer(job_worker, vec![(id, 3, 1), (id, 4, 1)])]);
}
