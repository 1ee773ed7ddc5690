//! Attempts end: finished, failed, tried again.

use turno_engine::{ForemanEvent, Update};
use turno_proto::model::job::{JobId, JobReason, JobSpec, JobState, TaskState};
use turno_proto::model::limits::TASK_STATUS_BYTES_MAX;
use turno_proto::model::{Moment, Seconds};

use super::farm::{Farm, Said, counts, job};

/// Proves S4.73 and S4.62: an UPDATE frees the slot, is recorded, and is answered.
#[test]
fn an_update_says_how_it_went() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(job(2));
    farm.accept(worker);
    farm.pass(2_000);
    let now = farm.unix_ms();
    let update = Update {
        request: 7,
        job: JobId(id),
        task: 1,
        attempt: Some(1),
        success: false,
        given_back: false,
        exit_code: Some(3),
        signal: Some(9),
        status: "é".repeat(200),
        started_unix_ms: Some(now - 1_500),
        ended_unix_ms: Some(now - 300),
    };
    let said = farm.event(worker, ForemanEvent::Update(update));
    assert_eq!(said, [Said::Ack(worker, 7), Said::Offer(worker, vec![(id, 2, 1)])]);
    let task = farm.task(id, 1);
    assert_eq!((task.state, task.attempt, task.exit_code, task.signal), (TaskState::Failed, 1, Some(3), Some(9)));
    let moment = |unix_ms| Some(Moment::from_unix_ms(unix_ms));
    assert_eq!((task.started_at, task.ended_at), (moment(now - 1_500), moment(now - 300)));
    assert_eq!(task.seconds, Some(Seconds::from_millis(1_200)));
    assert_eq!(task.status.map(|status| status.len()), Some(TASK_STATUS_BYTES_MAX), "cut, at a whole character");
    assert_eq!(task.worker.as_deref(), Some("a"));
}

/// A task that its worker gives back has not failed: it waits again, at once and in another attempt, once that is stored.
#[test]
fn a_task_is_given_back() {
    let mut farm = Farm::on_disk();
    let (leaving, other) = (farm.worker("leaving", 2), farm.worker("other", 0));
    let (id, _) = farm.submit(job(2));
    farm.accept(leaving);
    farm.hello(leaving, "leaving", 0, &[(id, 1, Some(1)), (id, 2, Some(1))]);
    assert_eq!(farm.gave_back(leaving, id, 1, 1), []);
    assert_eq!(farm.show(id).counts, counts(1, 1, 0, 0, 0));
    farm.cancel(id, Some(vec![(2, 2)]));
    assert_eq!(farm.gave_back(leaving, id, 2, 1), []);
    assert_eq!(farm.show(id).counts, counts(1, 0, 0, 0, 1), "what was cancelled stays so");
    assert_eq!(farm.hello(other, "other", 1, &[]), [Said::Offer(other, vec![(id, 1, 2)])]);
    farm.accept(other);
    farm.failed(other, id, 1, 2);
    assert_eq!(farm.show(id).counts, counts(0, 0, 0, 1, 1), "without retries the first failure is the last");
}

/// I20: what is acknowledged is stored; what is not stored is not acknowledged.
#[test]
fn an_update_is_acknowledged_when_it_is_stored() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(job(1));
    farm.accept(worker);
    farm.quick = false;
    assert_eq!(farm.update(worker, id, 1, Some(1), true), []);
    assert_eq!(farm.show(id).counts, counts(0, 1, 0, 0, 0), "it runs until then");
    assert_eq!(farm.stored(1), [Said::Ack(worker, 1)]);
    assert_eq!(farm.show(id).state, JobState::Finished);
}

/// Failures have other attempts, each after twice the time, and then the task has failed.
#[test]
fn a_failed_attempt_is_tried_again() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { retries: 3, backoff_ms: 1_000, ..job(1) });
    for (attempt, wait_ms) in [(1, 1_000), (2, 2_000), (3, 4_000)] {
        farm.accept(worker);
        assert_eq!(farm.failed(worker, id, 1, attempt), []);
        let view = farm.show(id);
        assert_eq!(
            (view.counts, view.because.map(|why| why.0)),
            (counts(1, 0, 0, 0, 0), Some(JobReason::Backoff { in_seconds: Seconds::from_millis(wait_ms) }))
        );
        assert_eq!(farm.pass(wait_ms - 1), []);
        assert_eq!(farm.pass(1), [Said::Offer(worker, vec![(id, 1, attempt + 1)])]);
    }
    farm.accept(worker);
    assert_eq!(farm.failed(worker, id, 1, 4), []);
    let view = farm.show(id);
    assert_eq!((view.state, view.counts), (JobState::Failed, counts(0, 0, 0, 1, 0)));
    let task = farm.task(id, 1);
    assert_eq!((task.attempt, task.status.as_deref()), (4, Some("went wrong")));
}

#[test]
fn the_time_between_attempts_has_an_end() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { retries: 255, backoff_ms: u32::MAX, ..job(1) });
    for attempt in 1..=40 {
        farm.accept(worker);
        farm.failed(worker, id, 1, attempt);
        assert_eq!(farm.pass(3_599_999), []);
        assert_eq!(farm.pass(1), [Said::Offer(worker, vec![(id, 1, attempt + 1)])], "an hour at most");
    }
}

/// A worker that is lost is no failure of the task: its retries are for failures.
#[test]
fn losses_are_no_failures() {
    let mut farm = Farm::in_memory();
    let (id, _) = farm.submit(JobSpec { retries: 1, ..job(1) });
    for attempt in 1..=3 {
        let (worker, _) = farm.joining("a", 1);
        farm.accept(worker);
        farm.lose(worker);
        farm.pass(60_000);
        assert_eq!(farm.task(id, 1).attempt, attempt);
    }
    let (worker, _) = farm.joining("a", 1);
    farm.accept(worker);
    assert_eq!(farm.failed(worker, id, 1, 4), [Said::Offer(worker, vec![(id, 1, 5)])], "it may be tried again");
    farm.accept(worker);
    farm.failed(worker, id, 1, 5);
    assert_eq!(farm.show(id).state, JobState::Failed);
}

/// I19: the report of an attempt that is not the running one, or of a worker that has no such task, changes nothing.
#[test]
fn stale_words_change_nothing() {
    let mut farm = Farm::on_disk();
    let (a, b) = (farm.worker("a", 1), farm.worker("b", 1));
    let (id, _) = farm.submit(JobSpec { retries: 1, ..job(2) });
    farm.accept(a);
    farm.accept(b);
    let said = farm.failed(a, id, 1, 1);
    assert_eq!(said, [Said::Offer(a, vec![(id, 1, 2)])]);
    farm.accept(a);
    for (conn, job, task, attempt) in [
        (a, id, 1, Some(1)),
        (a, id, 1, Some(3)),
        (a, id, 2, None),
        (b, id, 1, Some(2)),
        (b, id, 1, None),
        (a, id, 3, None),
        (a, id, 0, None),
        (a, 99, 1, Some(1)),
    ] {
        let request = farm.next_request();
        assert_eq!(farm.update(conn, job, task, attempt, true), [Said::Ack(conn, request)], "{job} {task} {attempt:?}");
    }
    assert_eq!(farm.show(id).counts, counts(0, 2, 0, 0, 0));
    assert_eq!(farm.engine.status().counters.late, 8, "and is counted");
    let request = farm.next_request();
    assert_eq!(
        farm.update(a, id, 1, None, true),
        [Said::Ack(a, request)],
        "an old peer's report is about its running attempt"
    );
    assert_eq!(farm.show(id).counts, counts(0, 1, 1, 0, 0));
}

/// An UPDATE before HELLO: who is that?
#[test]
fn a_stranger_is_asked_who_it_is() {
    let mut farm = Farm::in_memory();
    let conn = farm.connect();
    assert_eq!(farm.update(conn, 1, 1, None, true), [Said::SendHello(conn, 1)]);
}

/// The broker tells a task to stop that is still there ten seconds after its time; then it has failed.
#[test]
fn a_task_has_its_time() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 2);
    let (id, _) = farm.submit(JobSpec { time_limit_ms: Some(5_000), retries: 1, ..job(2) });
    assert_eq!(farm.pass(100_000), [], "an offer that is not answered has not begun");
    farm.accept(worker);
    assert_eq!(farm.pass(14_999), []);
    assert_eq!(farm.pass(1), [Said::Cancel(worker, id, 1), Said::Cancel(worker, id, 2)]);
    assert_eq!(farm.confirm(worker, id, 1), [], "it goes on until its process is gone");
    assert_eq!(farm.show(id).counts, counts(0, 2, 0, 0, 0));
    assert_eq!(farm.failed(worker, id, 1, 1), [Said::Offer(worker, vec![(id, 1, 2)])], "a failure as any other");
    farm.accept(worker);
    assert_eq!(farm.no_such_job(worker, id, 2), [Said::Offer(worker, vec![(id, 2, 2)])]);
    farm.accept(worker);
    farm.pass(15_000);
    assert_eq!(farm.finished(worker, id, 1, 2), [], "it was done just in time");
    farm.lose(worker);
    let (first, second) = (farm.task(id, 1), farm.task(id, 2));
    assert_eq!(first.state, TaskState::Finished);
    assert_eq!((second.state, second.status.as_deref()), (TaskState::Failed, Some("time_limit")));
}

/// Over its time while its worker is away: told to stop when that comes back.
#[test]
fn time_goes_on_while_a_worker_is_away() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { time_limit_ms: Some(5_000), ..job(1) });
    farm.accept(worker);
    farm.lose(worker);
    assert_eq!(farm.pass(20_000), []);
    let back = farm.connect();
    assert_eq!(farm.hello(back, "a", 1, &[(id, 1, Some(1))]), [Said::Cancel(back, id, 1)]);
    assert_eq!(farm.failed(back, id, 1, 1), []);
    assert_eq!(farm.task(id, 1).status.as_deref(), Some("time_limit"));
}

/// A task has its time also if its worker's connection was lost before the worker could accept it.
#[test]
fn time_begins_for_a_task_that_was_never_accepted() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, said) = farm.submit(JobSpec { time_limit_ms: Some(5_000), ..job(1) });
    assert_eq!(said, [Said::Offer(worker, vec![(id, 1, 1)])]);
    farm.lose(worker);
    farm.pass(1_000);
    let back = farm.connect();
    assert_eq!(farm.hello(back, "a", 1, &[(id, 1, Some(1))]), []);
    assert_eq!(farm.pass(14_999), []);
    assert_eq!(farm.pass(1), [Said::Cancel(back, id, 1)]);
}
