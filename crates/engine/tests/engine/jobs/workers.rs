//! What an admin does to a foreman's worker: shown, drained, stopped, made smaller.

use turno_engine::{Effect, ForemanEvent, STOP_NOW};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::{WorkerState, WorkerView};
use turno_proto::model::{Code, Slots};

use super::farm::{Farm, Said, counts, job};

fn worker_of(said: Vec<Said>) -> (WorkerView, Vec<Said>) {
    let (answers, rest): (Vec<Said>, Vec<Said>) =
        said.into_iter().partition(|said| matches!(said, Said::Other(Effect::Answer { .. })));
    match answers.into_iter().next() {
        Some(Said::Other(Effect::Answer { answer, .. })) => match *answer {
            AdminAnswer::Worker { worker } => (*worker, rest),
            other => panic!("{other:?} is no worker"),
        },
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

/// Proves S4.74: fewer slots are STOP(n); until the worker has said OK it is offered nothing, and then it has fewer.
#[test]
fn a_worker_is_made_smaller() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 4);
    let (id, _) = farm.submit(job(4));
    farm.accept(worker);
    farm.submit(job(4));
    let resize = |slots| AdminCall::WorkerResize { worker: "a".to_owned(), slots };
    let (_, said) = worker_of(farm.call(resize(Slots::Limited(2))));
    assert_eq!(said, [Said::Stop(worker, 2)]);
    assert_eq!(farm.finished(worker, id, 1, 1), [], "not before its OK");
    let (_, said) = worker_of(farm.call(resize(Slots::Limited(1))));
    assert_eq!(said, [Said::Stop(worker, 1)], "one less than it will have");
    assert_eq!(farm.event(worker, ForemanEvent::Stopped), []);
    assert_eq!(farm.event(worker, ForemanEvent::Stopped), []);
    assert_eq!((farm.finished(worker, id, 2, 1), farm.finished(worker, id, 3, 1)), (vec![], vec![]), "one runs still");
    assert_eq!(farm.finished(worker, id, 4, 1), [Said::Offer(worker, vec![(2, 1, 1)])]);
    let (view, said) = worker_of(farm.call(resize(Slots::Limited(1))));
    assert_eq!((view.slots, said), (Slots::Limited(1), vec![]), "as many as it has");
    for slots in [Slots::Limited(2), Slots::Unlimited] {
        assert_eq!(farm.refused(resize(slots)), Code::BadSlots, "nobody can be told to have more");
    }
}

/// Proves S4.74 and S4.60: a stop is STOP(0): what runs may finish, and nothing more comes.
#[test]
fn a_worker_is_stopped_in_order() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 2);
    let (id, _) = farm.submit(job(3));
    farm.accept(worker);
    let (_, said) = worker_of(farm.call(AdminCall::WorkerStop { worker: "a".to_owned(), now: false }));
    assert_eq!(said, [Said::Stop(worker, 0)]);
    assert_eq!(farm.event(worker, ForemanEvent::Stopped), []);
    assert_eq!((farm.finished(worker, id, 1, 1), farm.finished(worker, id, 2, 1)), (vec![], vec![]));
    assert_eq!(farm.lose(worker), []);
    assert_eq!(farm.show(id).tasks, counts(1, 0, 2, 0, 0));
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
        assert_eq!(said, [Said::Stop(worker, STOP_NOW)]);
        assert_eq!(farm.event(worker, ForemanEvent::Stopped), []);
        assert_eq!(farm.show(id).tasks, counts(0, 1, 0, 0, 0), "it may still be there");
        assert_eq!(farm.lose(worker), []);
        assert_eq!(farm.show(id).tasks, counts(1, 0, 0, 0, 0));
    }
}
