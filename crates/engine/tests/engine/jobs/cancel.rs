//! Tasks are ended before their time.

use turno_proto::model::Code;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{Array, JobId, JobSpec, JobState, TaskState};

use super::farm::{Farm, Said, counts, job};

/// Tasks that wait end at once, those that are done stay done, and a job whose tasks have all ended has ended.
#[test]
fn what_waits_ends_at_once() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { array: Array { first: 10, count: 5, step: 10 }, ..job(1) });
    farm.accept(worker);
    assert_eq!(farm.finished(worker, id, 10, 1), [Said::Offer(worker, vec![(id, 20, 1)])]);
    farm.accept(worker);
    let (view, said) = farm.cancel(id, Some(vec![(0, 10), (35, 49), (41, 42)]));
    assert_eq!((view.counts, said), (counts(2, 1, 1, 0, 1), vec![]), "40 alone lies between 35 and 49");
    assert_eq!(farm.finished(worker, id, 20, 1), [Said::Offer(worker, vec![(id, 30, 1)])]);
    farm.accept(worker);
    assert_eq!(farm.finished(worker, id, 30, 1), [Said::Offer(worker, vec![(id, 50, 1)])], "40 is passed over");
    farm.accept(worker);
    farm.finished(worker, id, 50, 1);
    let view = farm.show(id);
    assert_eq!((view.state, view.counts), (JobState::Cancelled, counts(0, 0, 4, 0, 1)));
    assert_eq!(farm.refused(AdminCall::JobCancel { job: JobId(id), tasks: None }), Code::JobEnded);
    assert_eq!(farm.refused(AdminCall::JobCancel { job: JobId(9), tasks: None }), Code::NotFound);
}

#[test]
fn what_cannot_be_cancelled_is_refused() {
    let mut farm = Farm::in_memory();
    let (id, _) = farm.submit(job(9));
    for tasks in [vec![(3, 2)], vec![(1, 1); 101]] {
        assert_eq!(farm.refused(AdminCall::JobCancel { job: JobId(id), tasks: Some(tasks) }), Code::BadCall);
    }
    let (view, said) = farm.cancel(id, Some(vec![(10, u32::MAX), (0, 0)]));
    assert_eq!((view.counts, said), (counts(9, 0, 0, 0, 0), vec![]), "none of these is a task of it");
}

/// Proves S4.56: a running task is cancelled when its worker confirms; its slot comes back with its last report, once.
#[test]
fn a_running_task_is_cancelled_when_it_is_confirmed() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(job(1));
    farm.accept(worker);
    let (other, said) = farm.submit(job(2));
    assert_eq!(said, []);
    let (view, said) = farm.cancel(id, None);
    assert_eq!((view.counts, said), (counts(0, 1, 0, 0, 0), vec![Said::Cancel(worker, id, 1)]));
    assert_eq!(farm.cancel(id, None).1, [], "once is enough");
    assert_eq!(farm.confirm(worker, id, 1), [], "its process may be there still");
    let task = farm.task(id, 1);
    assert_eq!((farm.show(id).state, task.state, task.attempt), (JobState::Cancelled, TaskState::Cancelled, 1));
    assert_eq!(farm.failed(worker, id, 1, 1), [Said::Offer(worker, vec![(other, 1, 1)])], "now its slot is free");
    let request = farm.next_request();
    assert_eq!(farm.update(worker, id, 1, Some(1), false), [Said::Ack(worker, request)], "once");
    assert_eq!(farm.show(id).counts, counts(0, 0, 0, 0, 1), "and its outcome stays");
}

/// The job may be removed while a process of it is told to stop: the slot comes back all the same.
#[test]
fn the_slot_of_a_removed_job_comes_back() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(job(1));
    farm.accept(worker);
    farm.cancel(id, None);
    farm.confirm(worker, id, 1);
    farm.told(AdminCall::JobRm { job: JobId(id) });
    let (other, said) = farm.submit(job(1));
    assert_eq!(said, []);
    assert_eq!(farm.failed(worker, id, 1, 1), [Said::Offer(worker, vec![(other, 1, 1)])]);
}

/// Proves S4.61: no_such_job means that it has ended already; its slot is free.
#[test]
fn a_task_that_is_not_there_is_cancelled_too() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(job(1));
    farm.accept(worker);
    let (other, _) = farm.submit(job(1));
    farm.cancel(id, None);
    assert_eq!(farm.no_such_job(worker, id, 1), [Said::Offer(worker, vec![(other, 1, 1)])]);
    assert_eq!(farm.show(id).state, JobState::Cancelled);
    let request = farm.next_request();
    assert_eq!(farm.update(worker, id, 1, Some(1), true), [Said::Ack(worker, request)]);
    assert_eq!(farm.show(id).state, JobState::Cancelled);
}

/// A task that finished before its cancel was confirmed is finished; one that failed then was cancelled, and has no other
/// attempt.
#[test]
fn an_end_that_crosses_a_cancel() {
    for (success, state) in [(true, JobState::Finished), (false, JobState::Cancelled)] {
        let mut farm = Farm::on_disk();
        let worker = farm.worker("a", 1);
        let (id, _) = farm.submit(JobSpec { retries: 5, ..job(1) });
        farm.accept(worker);
        farm.cancel(id, None);
        assert_eq!(farm.ended(worker, id, 1, 1, success), []);
        assert_eq!(farm.show(id).state, state);
        assert_eq!((farm.no_such_job(worker, id, 1), farm.confirm(worker, id, 1)), (vec![], vec![]));
        assert_eq!(farm.show(id).state, state);
    }
}

/// The same while the end is on its way to the disk: the first report counts, and a retry is none any more.
#[test]
fn a_cancel_that_crosses_the_disk() {
    for (success, state) in [(true, JobState::Finished), (false, JobState::Cancelled)] {
        let mut farm = Farm::on_disk();
        let worker = farm.worker("a", 1);
        let (id, _) = farm.submit(JobSpec { retries: 5, ..job(1) });
        farm.accept(worker);
        farm.quick = false;
        assert_eq!(farm.update(worker, id, 1, Some(1), success), []);
        farm.call(AdminCall::JobCancel { job: JobId(id), tasks: None });
        farm.flush();
        farm.quick = true;
        assert_eq!(farm.show(id).state, state);
        farm.restart(1);
        assert_eq!(farm.show(id).state, state);
    }
}

/// A worker that is lost after it was told to stop: the task is gone with it.
#[test]
fn a_cancel_ends_with_its_worker() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 2);
    let (id, _) = farm.submit(job(2));
    farm.accept(worker);
    farm.cancel(id, Some(vec![(1, 1)]));
    assert_eq!(farm.lose(worker), []);
    assert_eq!(farm.show(id).counts, counts(0, 1, 0, 0, 1));
    assert_eq!(farm.cancel(id, Some(vec![(2, 2)])).1, []);
    assert_eq!(farm.show(id).counts, counts(0, 0, 0, 0, 2), "and one whose worker is away ends at once");
    let back = farm.connect();
    let said = farm.hello(back, "a", 2, &[(id, 1, Some(1)), (id, 2, Some(1))]);
    assert_eq!(said, [Said::Cancel(back, id, 1), Said::Cancel(back, id, 2)], "it comes back, and is told");
}

/// A cancel between offer and answer, and one between start and offer.
#[test]
fn a_cancel_in_the_middle_of_an_offer() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 2);
    let (id, _) = farm.submit(job(2));
    let (_, said) = farm.cancel(id, Some(vec![(2, 2)]));
    assert_eq!(said, [Said::Cancel(worker, id, 2)]);
    assert_eq!(farm.refuse_offer(worker, 2), []);
    assert_eq!(farm.show(id).counts, counts(1, 0, 0, 0, 1), "refused, and over");
    assert_eq!(farm.no_such_job(worker, id, 2), []);

    farm.quick = false;
    farm.pass(1_000);
    assert_eq!(farm.show(id).counts, counts(0, 1, 0, 0, 1));
    assert_eq!(farm.call(AdminCall::JobCancel { job: JobId(id), tasks: None }), []);
    assert_eq!(farm.stored(1), [Said::Offer(worker, vec![(id, 1, 1)])], "the start was first");
    let said = farm.stored(1);
    assert!(matches!(&said[..], [Said::Cancel(..), Said::Job(..)]), "{said:?}");

    farm.flush();
    let (second, _) = (farm.call(AdminCall::JobSubmit { spec: Box::new(job(1)) }), ());
    assert_eq!(second, []);
    farm.accept(worker);
    farm.stored(1);
    assert_eq!(farm.show(2).counts, counts(0, 1, 0, 0, 0), "its start is on its way");
    farm.call(AdminCall::JobCancel { job: JobId(2), tasks: None });
    let said = farm.flush();
    assert!(said.iter().any(|said| matches!(said, Said::Offer(..))), "starts are stored in order: {said:?}");
    assert_eq!(farm.confirm(worker, 2, 1), []);
    farm.flush();
    assert_eq!(farm.show(2).state, JobState::Cancelled);
}

/// Tasks that wait for their next attempt are cancelled as those that wait for their first.
#[test]
fn a_delayed_task_is_cancelled() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { retries: 9, backoff_ms: 60_000, ..job(1) });
    farm.accept(worker);
    farm.failed(worker, id, 1, 1);
    let (view, said) = farm.cancel(id, None);
    assert_eq!((view.state, said), (JobState::Cancelled, vec![]));
    assert_eq!(farm.pass(100_000), []);
    farm.restart(1);
    assert_eq!(farm.show(id).state, JobState::Cancelled);
}

/// I19: a cancel is confirmed once it is stored, also if what is on its way to the disk says the same: that may be lost.
#[test]
fn a_cancel_that_says_nothing_new_is_stored_too() {
    let mut farm = Farm::on_disk();
    let (id, _) = farm.submit(job(3));
    farm.quick = false;
    let cancel = || AdminCall::JobCancel { job: JobId(id), tasks: None };
    assert_eq!((farm.call(cancel()), farm.call(cancel())), (vec![], vec![]));
    assert!(matches!(&farm.stored(1)[..], [Said::Job(..)]), "the first");
    assert!(matches!(&farm.stored(1)[..], [Said::Job(..)]), "the second");
    farm.restart(1);
    farm.quick = true;
    assert_eq!(farm.show(id).counts, counts(0, 0, 0, 0, 3));
}

/// I19: the same for a task whose end is on its way to the disk. If that is lost, and the worker too, it is cancelled.
#[test]
fn a_cancel_beside_an_end_is_stored_too() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(job(1));
    farm.accept(worker);
    farm.quick = false;
    let request = farm.next_request();
    assert_eq!(farm.update(worker, id, 1, Some(1), true), []);
    assert_eq!(farm.call(AdminCall::JobCancel { job: JobId(id), tasks: None }), []);
    assert_eq!(farm.stored(1), [Said::Ack(worker, request)]);
    assert!(
        matches!(&farm.stored(1)[..], [Said::Job(_, view)] if view.state == JobState::Finished),
        "it came too late"
    );
    farm.restart(1);
    farm.quick = true;
    assert_eq!(farm.show(id).counts, counts(0, 0, 1, 0, 0));
}
