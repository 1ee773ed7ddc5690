//! What an admin does to a foreman's worker: shown, drained, stopped, made smaller.

use turno_engine::{Effect, ForemanEvent, NativeEffect, PeerEffect};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::{WorkerKind, WorkerState, WorkerView};
use turno_proto::model::{Code, Slots};

use super::farm::{Farm, Said, counts, job};

fn worker_of(said: Vec<Said>) -> (WorkerView, Vec<Said>) {
    let (answers, rest): (Vec<Said>, Vec<Said>) = said.into_iter().partition(|said| {
        matches!(said, Said::Other(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { .. }, .. })))
    });
    match answers.into_iter().next() {
        Some(Said::Other(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. }))) => {
            match *answer {
                AdminAnswer::Worker { worker } => (*worker, rest),
                other => panic!("{other:?} is no worker"),
            }
        }
        other => panic!("{other:?} is no worker"),
    }
}

fn show(farm: &mut Farm) -> WorkerView {
    worker_of(farm.call(AdminCall::WorkerShow { worker: "a".to_owned() })).0
}

/// A foreman's worker is a worker as any other: listed, with its one account of slots.
#[test]
fn it_is_a_worker() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 3);
    let (id, _) = farm.submit(job(2));
    farm.accept(worker);
    let view = show(&mut farm);
    assert_eq!((view.slots, view.used, view.state), (Slots::Limited(3), 2, WorkerState::Ready));
    assert_eq!((view.deliveries, view.settled, view.failed), (2, 0, 0));
    farm.finished(worker, id, 1, 1);
    farm.failed(worker, id, 2, 1);
    let view = show(&mut farm);
    assert_eq!((view.used, view.settled, view.failed), (0, 1, 1));
    assert_eq!(farm.engine.status().slots, 3);
}

#[test]
fn a_drained_worker_is_offered_nothing() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 1);
    let (view, said) = worker_of(farm.call(AdminCall::WorkerDrain { worker: "a".to_owned() }));
    assert_eq!((view.state, said), (WorkerState::Draining, vec![]));
    let (id, said) = farm.submit(job(1));
    assert_eq!(said, []);
    let (_, said) = worker_of(farm.call(AdminCall::WorkerResume { worker: "a".to_owned() }));
    assert_eq!(said, [Said::Offer(worker, vec![(id, 1, 1)])]);
}

/// A worker is made smaller, and grows again up to what it started with; the answer tells the new number at once.
#[test]
fn a_worker_is_resized() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 4);
    let (id, _) = farm.submit(job(4));
    farm.accept(worker);
    let (next, _) = farm.submit(job(9));
    let resize = |slots| AdminCall::WorkerResize { worker: "a".to_owned(), slots: Slots::Limited(slots) };
    let (view, said) = worker_of(farm.call(resize(2)));
    assert_eq!((view.slots, view.slots_max, view.used, said), (Slots::Limited(2), Some(4), 4, vec![]));
    assert_eq!((farm.finished(worker, id, 1, 1), farm.finished(worker, id, 2, 1)), (vec![], vec![]), "two still run");
    assert_eq!(farm.finished(worker, id, 3, 1), [Said::Offer(worker, vec![(next, 1, 1)])]);
    farm.accept(worker);
    let (view, said) = worker_of(farm.call(resize(3)));
    assert_eq!((view.slots, said), (Slots::Limited(3), vec![Said::Offer(worker, vec![(next, 2, 1)])]));
    farm.accept(worker);
    let (view, said) = worker_of(farm.call(resize(4)));
    assert_eq!((view.slots, said), (Slots::Limited(4), vec![Said::Offer(worker, vec![(next, 3, 1)])]), "as it began");
    for slots in [Slots::Limited(5), Slots::Unlimited] {
        let call = AdminCall::WorkerResize { worker: "a".to_owned(), slots };
        assert_eq!(farm.refused(call), Code::BadSlots, "it has no more");
    }
    assert_eq!(show(&mut farm).slots, Slots::Limited(4), "a refusal changes nothing");
}

/// What an admin made of a worker holds when the worker connects again, until it is given all its slots.
#[test]
fn a_resized_worker_stays_so_over_its_connections() {
    let mut farm = Farm::in_memory();
    let mut worker = farm.worker("a", 4);
    for (slots, expected) in [(1, 1), (0, 0), (4, 4)] {
        farm.call(AdminCall::WorkerResize { worker: "a".to_owned(), slots: Slots::Limited(slots) });
        farm.lose(worker);
        worker = farm.worker("a", 4);
        let view = show(&mut farm);
        assert_eq!((view.slots, view.slots_max), (Slots::Limited(expected), Some(4)));
    }
    // It says itself that it has fewer, as one that ends by itself does.
    farm.hello(worker, "a", 0, &[]);
    assert_eq!((show(&mut farm).slots, show(&mut farm).slots_max), (Slots::Limited(0), Some(0)));
}

/// A worker that is told to end is not made larger any more.
#[test]
fn a_worker_that_ends_does_not_grow() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 2);
    farm.call(AdminCall::WorkerStop { worker: "a".to_owned(), now: false });
    let resize = AdminCall::WorkerResize { worker: "a".to_owned(), slots: Slots::Limited(2) };
    assert_eq!(farm.refused(resize.clone()), Code::BadSlots);
    assert_eq!(farm.event(worker, ForemanEvent::Stopped), []);
    assert_eq!(farm.refused(resize), Code::BadSlots);
}

/// A worker shows the tasks it has: those that run, and those it was told to stop and has not let go of.
#[test]
fn a_worker_shows_its_tasks() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 3);
    let (id, _) = farm.submit(job(3));
    farm.accept(worker);
    let tasks = |view: &WorkerView| {
        view.tasks.iter().flatten().map(|it| (it.id.job.0, it.id.task, it.attempt)).collect::<Vec<_>>()
    };
    let view = show(&mut farm);
    assert_eq!(
        (view.kind, view.tasks_running, tasks(&view)),
        (WorkerKind::Job, 3, vec![(id, 1, 1), (id, 2, 1), (id, 3, 1)])
    );
    let mut all = view.tasks.iter().flatten();
    assert!(all.all(|task| task.name == "test" && task.slots == 1 && task.started_at.is_some()));
    farm.finished(worker, id, 2, 1);
    let view = show(&mut farm);
    assert_eq!((view.tasks_running, tasks(&view)), (2, vec![(id, 1, 1), (id, 3, 1)]));
    let Said::Other(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. })) =
        farm.call(AdminCall::WorkerLs { after: None, limit: 9 }).remove(0)
    else {
        panic!("no answer");
    };
    let AdminAnswer::Workers { workers, .. } = *answer else { panic!("no workers") };
    assert_eq!((workers[0].tasks_running, workers[0].tasks.is_none()), (2, true), "a listing only counts them");
}

/// Proves S4.74 and S4.60: a stop is STOP(0): what runs may finish, and nothing more comes.
#[test]
fn a_worker_is_stopped_in_order() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 2);
    let (id, _) = farm.submit(job(3));
    farm.accept(worker);
    let (_, said) = worker_of(farm.call(AdminCall::WorkerStop { worker: "a".to_owned(), now: false }));
    assert_eq!(said, [Said::Stop(worker)]);
    assert_eq!(farm.event(worker, ForemanEvent::Stopped), []);
    assert_eq!((farm.finished(worker, id, 1, 1), farm.finished(worker, id, 2, 1)), (vec![], vec![]));
    assert_eq!(farm.lose(worker), []);
    assert_eq!(farm.show(id).counts, counts(1, 0, 2, 0, 0));
}

/// Proves S4.75: a stop at once kills what runs; when the worker is gone its tasks are for others, and nobody failed.
#[test]
fn a_worker_is_stopped_at_once() {
    let mut farm = Farm::on_disk();
    let (id, _) = farm.submit(job(1));
    for attempt in 1..=9 {
        let (worker, said) = farm.joining("a", 1);
        assert_eq!(said, [Said::Offer(worker, vec![(id, 1, attempt)])], "no loss is counted");
        farm.accept(worker);
        let (_, said) = worker_of(farm.call(AdminCall::WorkerStop { worker: "a".to_owned(), now: true }));
        assert_eq!(said, [Said::StopNow(worker)]);
        assert_eq!(farm.event(worker, ForemanEvent::Stopped), []);
        assert_eq!(farm.show(id).counts, counts(0, 1, 0, 0, 0), "it may still be there");
        assert_eq!(farm.lose(worker), []);
        assert_eq!(farm.show(id).counts, counts(1, 0, 0, 0, 0));
    }
}
