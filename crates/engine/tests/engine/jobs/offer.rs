//! Offers and their answers.

use std::sync::Arc;

use bytes::Bytes;
use turno_engine::{Effect, ForemanEvent, ForemanOrder, Hello, Input, OfferedTask, PeerEffect};
use turno_proto::items::Builder;
use turno_proto::model::job::{JobId, JobSpec, TaskState};

use super::farm::{Farm, Said, counts, job};
use super::needs::with_items;

/// Proves S4.71: the JOB names all that a worker needs, and a task counts as given from its start on.
#[test]
fn an_offer_says_what_to_do() {
    let mut farm = Farm::in_memory();
    let conn = farm.connect();
    let work = Bytes::from_static(b"\x81\xa4argv\x91\xa4true");
    let items = with_items(1).items;
    farm.submit(JobSpec { work: work.clone(), items: items.clone(), time_limit_ms: Some(9_000), slots: 2, ..job(1) });
    let mut out = Vec::new();
    let hello = ForemanEvent::Hello(Hello { slots: 2, ..Hello::default() });
    farm.engine.handle(farm.now, Input::Foreman { conn, event: Box::new(hello) }, &mut out);
    let task = OfferedTask {
        job: JobId(1),
        task: 1,
        attempt: 1,
        slots: 2,
        time_limit_ms: Some(9_000),
        name: Arc::from("test"),
        count: 1,
        work,
        items,
        place: 0,
    };
    let order = Box::new(ForemanOrder::Offer { offer: 1, tasks: vec![task] });
    assert_eq!(out, [Effect::Peer(PeerEffect::Foreman { conn, order })]);
    assert_eq!(farm.task(1, 1).state, TaskState::Running);
}

/// Proves S4.61 and S4.71: a refused task waits again as if it had not been offered, and a worker that refuses is asked
/// again after a second, not at the speed of the wire.
#[test]
fn a_refusal_costs_a_second_and_no_attempt() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 4);
    let (id, _) = farm.submit(job(2));
    assert_eq!(farm.refuse_offer(worker, 4), [], "it has room, and refuses");
    assert_eq!(farm.show(id).counts, counts(2, 0, 0, 0, 0));
    assert_eq!(farm.store.sizes(), (1, 0, 0), "nothing of the offer is left");
    assert_eq!(farm.pass(999), []);
    let (other, said) = farm.joining("b", 1);
    assert_eq!(said, [Said::Offer(other, vec![(id, 1, 1)])], "others may have it meanwhile");
    assert_eq!(farm.pass(1), [Said::Offer(worker, vec![(id, 2, 1)])], "the same attempt");
    assert_eq!(farm.refuse_offer(worker, 4), []);
    assert_eq!(farm.pass(1_000), [Said::Offer(worker, vec![(id, 2, 1)])], "and again, once a second");
}

/// Proves S4.61: the counts of a refusal say how much there is room for.
#[test]
fn a_refusal_says_how_much_is_free() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 4);
    let (id, said) = farm.submit(job(6));
    assert_eq!(said, [Said::Offer(worker, (1..=4).map(|task| (id, task, 1)).collect())]);
    assert_eq!(farm.refuse_offer(worker, 2), []);
    assert_eq!(farm.pass(1_000), [Said::Offer(worker, vec![(id, 1, 1), (id, 2, 1)])]);
    assert_eq!(farm.accept(worker), []);
    let said = farm.finished(worker, id, 1, 1);
    assert_eq!(said, [Said::Offer(worker, vec![(id, 3, 1), (id, 4, 1), (id, 5, 1)])], "an end makes all count again");
    assert_eq!(farm.refuse_offer(worker, 0), []);
    let said = farm.pass(1_000);
    assert_eq!(said, [Said::Offer(worker, vec![(id, 3, 1), (id, 4, 1), (id, 5, 1)])], "nothing free is asked again");
}

/// An answer to what is not open changes nothing.
#[test]
fn answers_to_nothing_are_ignored() {
    let mut farm = Farm::in_memory();
    let (a, b) = (farm.worker("a", 1), farm.worker("b", 1));
    let (id, _) = farm.submit(job(1));
    let offer = farm.offer_of(a);
    for event in [
        ForemanEvent::Accepted { offer: offer + 1 },
        ForemanEvent::Refused { offer: offer + 1, slots_free: 1 },
        ForemanEvent::Cancelled { cancel: 7 },
        ForemanEvent::NoSuchJob { cancel: 7 },
        ForemanEvent::Stopped,
    ] {
        assert_eq!(farm.event(a, event.clone()), []);
        assert_eq!(farm.event(b, event), []);
    }
    assert_eq!(farm.event(b, ForemanEvent::Accepted { offer }), [], "the offer of another");
    assert_eq!(farm.accept(a), []);
    assert_eq!(farm.event(a, ForemanEvent::Refused { offer, slots_free: 0 }), [], "answered before");
    assert_eq!(farm.show(id).counts, counts(0, 1, 0, 0, 0));
    assert_eq!(farm.finished(a, id, 1, 1), []);
}

/// A JOB holds so many tasks, and so many bytes.
#[test]
fn an_offer_has_its_limits() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 1_000);
    let (id, said) = farm.submit(job(300));
    let [Said::Offer(_, tasks)] = &said[..] else { panic!("{said:?}") };
    assert_eq!((tasks.len(), tasks[255]), (256, (id, 256, 1)));
    let said = farm.accept(worker);
    let [Said::Offer(_, tasks)] = &said[..] else { panic!("{said:?}") };
    assert_eq!(tasks.len(), 44);
    farm.accept(worker);
    let (heavy, said) = farm.submit(JobSpec { work: vec![0; 60_000].into(), ..job(20) });
    let tasks = |range: std::ops::RangeInclusive<u32>| range.map(|task| (heavy, task, 1)).collect();
    assert_eq!(said, [Said::Offer(worker, tasks(1..=18))], "with the 18th it is beyond a mebibyte");
    assert_eq!(farm.accept(worker), [Said::Offer(worker, tasks(19..=20))]);
    farm.accept(worker);
    let mut items = Builder::new(1).unwrap();
    (0..9).for_each(|_| items.push(&["x".repeat(1_000)]).unwrap());
    let (long, said) = farm.submit(JobSpec { items: items.finish(), ..job(9) });
    let tasks = |range: std::ops::RangeInclusive<u32>| range.map(|task| (long, task, 1)).collect();
    assert_eq!(said, [Said::Offer(worker, tasks(1..=5))], "an item may stand in 64 places, and be all quotes");
    assert_eq!(farm.accept(worker), [Said::Offer(worker, tasks(6..=9))]);
}

/// I19: a start that is not stored yet is not told; if the worker goes meanwhile, another has it, with the same number.
#[test]
fn a_start_is_stored_before_it_is_offered() {
    let mut farm = Farm::on_disk();
    let (id, _) = farm.submit(job(1));
    farm.quick = false;
    let worker = farm.worker("a", 1);
    assert_eq!(farm.update(worker, id, 1, Some(1), true), [Said::Ack(worker, 1)], "it cannot know of it");
    assert_eq!(farm.show(id).counts, counts(0, 1, 0, 0, 0));
    assert_eq!(farm.lose(worker), []);
    assert_eq!(farm.show(id).counts, counts(1, 0, 0, 0, 0));
    assert_eq!(farm.flush(), []);
    farm.quick = true;
    let (other, said) = farm.joining("b", 1);
    assert_eq!(said, [Said::Offer(other, vec![(id, 1, 1)])]);
}
