//! A job of which too many tasks failed is over.

use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{JobId, JobReason, JobSpec, JobState};

use super::farm::{Farm, Said, counts, job};

const REASON: Option<JobReason> = Some(JobReason::MaxFailures { max: 1 });

fn spec(count: u32) -> JobSpec {
    JobSpec { max_failures: Some(1), ..job(count) }
}

/// With one failure more than may be, what waits is cancelled and what runs is stopped; attempts that are not the last do
/// not count.
#[test]
fn one_failure_too_many_ends_the_rest() {
    for mut farm in [Farm::in_memory(), Farm::on_disk()] {
        let worker = farm.worker("a", 3);
        let (id, _) = farm.submit(JobSpec { retries: 1, ..spec(6) });
        farm.accept(worker);
        assert_eq!(farm.failed(worker, id, 1, 1), [Said::Offer(worker, vec![(id, 1, 2)])]);
        farm.accept(worker);
        assert_eq!(farm.failed(worker, id, 1, 2), [Said::Offer(worker, vec![(id, 4, 1)])], "one may");
        farm.accept(worker);
        assert_eq!(farm.failed(worker, id, 2, 1), [Said::Offer(worker, vec![(id, 2, 2)])]);
        farm.accept(worker);
        assert_eq!(farm.reason(id), Some(JobReason::Busy { slots: 3, ahead: 0 }));
        let said = farm.failed(worker, id, 2, 2);
        assert_eq!(said, [Said::Cancel(worker, id, 3), Said::Cancel(worker, id, 4)]);
        let view = farm.show(id);
        assert_eq!(
            (view.state, view.counts, view.because.map(|why| why.0)),
            (JobState::Running, counts(0, 2, 0, 2, 2), REASON)
        );
        farm.confirm(worker, id, 3);
        assert_eq!(farm.failed(worker, id, 3, 1), []);
        assert_eq!(farm.finished(worker, id, 4, 1), [], "it was done before it was told to stop");
        let view = farm.show(id);
        assert_eq!(
            (view.state, view.counts, view.because.map(|why| why.0)),
            (JobState::Failed, counts(0, 0, 1, 2, 3), REASON)
        );
    }
}

/// None may fail.
#[test]
fn the_first_failure_may_be_too_many() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { max_failures: Some(0), ..job(1_000) });
    farm.accept(worker);
    assert_eq!(farm.failed(worker, id, 1, 1), []);
    assert_eq!(farm.show(id).counts, counts(0, 0, 0, 1, 999));
}

/// The broker ends between the failure and the cancel: that is done when it starts again, and tasks that ran are stopped.
#[test]
fn a_restart_between_failure_and_cancel() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 3);
    let (id, _) = farm.submit(spec(5));
    farm.accept(worker);
    farm.failed(worker, id, 1, 1);
    farm.accept(worker);
    farm.quick = false;
    farm.update(worker, id, 2, Some(1), false);
    farm.stored(1);
    assert_eq!(farm.groups.len(), 1, "the cancel is on its way");
    assert_eq!((farm.show(id).counts, farm.reason(id)), (counts(1, 2, 0, 2, 0), REASON));
    for times in 0..2 {
        farm.restart(1);
        let view = farm.show(id);
        assert_eq!(
            (view.state, view.counts, view.because.map(|why| why.0)),
            (JobState::Failed, counts(0, 0, 0, 2, 3), REASON),
            "{times}"
        );
    }
    farm.quick = true;
    let back = farm.connect();
    let said = farm.hello(back, "a", 3, &[(id, 3, Some(1)), (id, 4, Some(1))]);
    assert_eq!(said, [Said::Cancel(back, id, 3), Said::Cancel(back, id, 4)]);
    farm.submit_and_flush();
    assert_eq!(farm.store.jobs[&JobId(id)].cancelled, [(0, 4)], "and it is written down with what comes next");
}

/// A disk that refuses the cancel is asked again; nothing of the job is started meanwhile.
#[test]
fn a_refused_end_is_tried_again() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { max_failures: Some(0), ..job(3) });
    farm.accept(worker);
    farm.quick = false;
    farm.update(worker, id, 1, Some(1), false);
    farm.stored(1);
    farm.refuse();
    assert_eq!((farm.show(id).counts, farm.groups.len()), (counts(2, 0, 0, 1, 0), 0));
    assert_eq!(farm.reason(id), Some(JobReason::MaxFailures { max: 0 }));
    farm.pass(1_000);
    assert_eq!(farm.flush(), []);
    assert_eq!(farm.show(id).counts, counts(0, 0, 0, 1, 2));
}

/// The same, and somebody retries what failed before the disk takes it: the failures do not count any more.
#[test]
fn a_retry_before_the_end_is_stored() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { max_failures: Some(0), ..job(3) });
    farm.accept(worker);
    farm.quick = false;
    farm.update(worker, id, 1, Some(1), false);
    farm.stored(1);
    farm.refuse();
    farm.call(AdminCall::JobRetry { job: JobId(id), tasks: None, after: None });
    farm.quick = true;
    let said = farm.flush();
    assert_eq!(said.last(), Some(&Said::Offer(worker, vec![(id, 1, 2)])), "{said:?}");
    assert_eq!((farm.pass(5_000), farm.show(id).counts), (vec![], counts(2, 1, 0, 0, 0)));
}

/// After a retry failures are counted afresh, those that stay failed do not count, and a restart knows that.
#[test]
fn failures_count_afresh_after_a_retry() {
    for restarts in [false, true] {
        let mut farm = Farm::on_disk();
        let mut worker = farm.worker("a", 1);
        let (id, _) = farm.submit(spec(6));
        for task in [1, 2] {
            farm.accept(worker);
            farm.failed(worker, id, task, 1);
        }
        assert_eq!(farm.show(id).counts, counts(0, 0, 0, 2, 4));
        let (tasks, said) = farm.retry(id, Some(vec![(2, 2), (4, 5)]));
        assert_eq!((tasks, said), (3, vec![Said::Offer(worker, vec![(id, 2, 2)])]), "1 stays failed");
        if restarts {
            farm.restart(1);
            worker = farm.connect();
            assert_eq!(farm.hello(worker, "a", 1, &[(id, 2, Some(2))]), []);
        } else {
            farm.accept(worker);
        }
        assert_eq!((farm.show(id).counts, farm.reason(id)), (counts(2, 1, 0, 1, 2), None.or(busy())));
        assert_eq!(farm.failed(worker, id, 2, 2), [Said::Offer(worker, vec![(id, 4, 1)])], "one may");
        farm.accept(worker);
        assert_eq!(farm.failed(worker, id, 4, 1), []);
        let view = farm.show(id);
        assert_eq!(
            (view.state, view.counts, view.because.map(|why| why.0)),
            (JobState::Failed, counts(0, 0, 0, 3, 3), REASON)
        );
    }
}

const fn busy() -> Option<JobReason> {
    Some(JobReason::Busy { slots: 1, ahead: 0 })
}
