//! What a restarted broker knows.

use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{JobId, JobReason, JobSpec, JobState, TaskState};
use turno_proto::model::{Moment, Seconds};

use super::farm::{Farm, Said, counts, job};

/// Proves S4.76 over a restart: running tasks stay running for the grace time; a HELLO that lists them keeps them.
#[test]
fn running_tasks_outlive_the_broker() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 3);
    let (id, _) = farm.submit(job(4));
    farm.accept(worker);
    farm.restart(1_000);
    let view = farm.show(id);
    assert_eq!((view.state, view.counts), (JobState::Running, counts(1, 3, 0, 0, 0)));
    assert_eq!(farm.task(id, 1).worker.as_deref(), Some("a"));
    let back = farm.connect();
    let said = farm.hello(back, "a", 3, &[(id, 1, Some(1)), (id, 2, None)]);
    assert_eq!(said, [Said::Offer(back, vec![(id, 4, 1)])], "two of its slots are taken");
    farm.accept(back);
    assert_eq!(farm.finished(back, id, 3, 1), [], "it ended while the broker was away, and its UPDATE follows");
    assert_eq!(farm.pass(200_000), []);
    assert_eq!(farm.show(id).counts, counts(0, 3, 1, 0, 0));
}

/// Proves S4.76 over a restart: otherwise they wait again.
#[test]
fn running_tasks_are_lost_when_nobody_comes() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(job(1));
    farm.accept(worker);
    for attempt in 2..=6 {
        farm.restart(1_000);
        let other = farm.worker(&format!("w{attempt}"), 1);
        assert_eq!(farm.pass(59_999), []);
        assert_eq!(farm.pass(1), [Said::Offer(other, vec![(id, 1, attempt)])]);
        farm.accept(other);
    }
    farm.restart(1_000);
    farm.pass(60_000);
    assert_eq!(farm.task(id, 1).status.as_deref(), Some("worker_lost"), "losses are counted over restarts");
}

/// I20: every end that was acknowledged is known, however the broker ended; one that was not is the worker's to repeat.
#[test]
fn what_was_acknowledged_is_known() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 2);
    let (id, _) = farm.submit(job(2));
    farm.accept(worker);
    farm.finished(worker, id, 1, 1);
    farm.quick = false;
    assert_eq!(farm.update(worker, id, 2, Some(1), true), []);
    farm.restart(1);
    farm.quick = true;
    assert_eq!(farm.show(id).counts, counts(0, 1, 1, 0, 0));
    let back = farm.connect();
    assert_eq!(farm.hello(back, "a", 2, &[]), []);
    assert_eq!(farm.finished(back, id, 2, 1), []);
    assert_eq!(farm.show(id).state, JobState::Finished);
}

/// Attempts, failures and the moment of the next attempt are known after a restart.
#[test]
fn retries_outlive_the_broker() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 2);
    let (id, _) = farm.submit(JobSpec { retries: 1, backoff_ms: 10_000, ..job(1) });
    farm.accept(worker);
    farm.failed(worker, id, 1, 1);
    farm.restart(4_000);
    assert_eq!(farm.reason(id), Some(JobReason::Backoff { in_seconds: Seconds::from_millis(6_000) }));
    let worker = farm.worker("a", 2);
    assert_eq!(farm.pass(5_999), []);
    assert_eq!(farm.pass(1), [Said::Offer(worker, vec![(id, 1, 2)])]);
    farm.accept(worker);
    farm.failed(worker, id, 1, 2);
    assert_eq!(farm.show(id).state, JobState::Failed, "it had its second attempt");
}

/// A cancel that was answered holds after a restart, also for what ran: its worker is told to stop it.
#[test]
fn a_cancel_outlives_the_broker() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(job(3));
    farm.accept(worker);
    let (view, _) = farm.cancel(id, None);
    assert_eq!(view.counts, counts(0, 1, 0, 0, 2));
    farm.restart(1);
    let view = farm.show(id);
    assert_eq!((view.state, view.counts), (JobState::Cancelled, counts(0, 0, 0, 0, 3)));
    let back = farm.connect();
    assert_eq!(farm.hello(back, "a", 1, &[(id, 1, Some(1))]), [Said::Cancel(back, id, 1)]);
    farm.told(AdminCall::JobRm { job: JobId(id) });
    assert_eq!(farm.store.sizes(), (0, 0, 0));
}

/// What was on its way when the broker ended was told to nobody.
#[test]
fn what_was_not_stored_never_was() {
    let mut farm = Farm::on_disk();
    farm.quick = false;
    farm.call(AdminCall::JobSubmit { spec: Box::new(job(1)) });
    farm.restart(1);
    farm.quick = true;
    let (id, _) = farm.submit(job(1));
    assert_eq!(id, 1, "its number is free");
    farm.quick = false;
    farm.worker("a", 1);
    farm.restart(1);
    assert_eq!(farm.show(id).counts, counts(1, 0, 0, 0, 0), "a start that was not stored was not offered");
}

/// The time of a task goes on while the broker is away.
#[test]
fn a_time_limit_outlives_the_broker() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { time_limit_ms: Some(30_000), ..job(1) });
    farm.accept(worker);
    farm.restart(35_000);
    let back = farm.connect();
    assert_eq!(farm.hello(back, "a", 1, &[(id, 1, Some(1))]), []);
    assert_eq!(farm.pass(4_999), []);
    assert_eq!(farm.pass(1), [Said::Cancel(back, id, 1)]);
}

/// Records of tasks without a job, of places that are none and of chunks of another length are removed, not believed.
#[test]
fn what_belongs_to_nothing_is_removed() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(job(2));
    farm.accept(worker);
    farm.finished(worker, id, 1, 1);
    farm.accept(worker);
    farm.finished(worker, id, 2, 1);
    let chunk = farm.store.chunks[&(JobId(id), 0)].clone();
    let (other, _) = farm.submit(job(3));
    let running = farm.store.tasks[&(JobId(other), 0)].clone();
    farm.store.chunks.insert((JobId(other), 0), chunk.clone());
    farm.store.chunks.insert((JobId(other), 7), chunk.clone());
    farm.store.chunks.insert((JobId(99), 0), chunk);
    for (job, place) in [(99, 0), (other, 3), (id, 1)] {
        farm.store.tasks.insert((JobId(job), place), running.clone());
    }
    farm.quick = false;
    farm.restart(1);
    farm.submit_and_flush();
    assert_eq!(farm.store.sizes(), (3, 1, 1), "one running task and one chunk are what they should be");
    farm.quick = true;
    assert_eq!(farm.show(other).counts, counts(2, 1, 0, 0, 0));
    assert_eq!(farm.tasks(id, Some(TaskState::Finished)).len(), 2);
}

const MONTH_MS: u64 = 30 * 24 * 3_600_000;

/// A clock that was set back while the broker was away prolongs no wait between attempts, and makes none where there was none.
#[test]
fn a_clock_set_back_prolongs_no_wait() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let spec = JobSpec { retries: 1, backoff_ms: 2_000, ..job(1) };
    let (failed, _) = farm.submit(spec.clone());
    farm.accept(worker);
    farm.failed(worker, failed, 1, 1);
    farm.restart_back(MONTH_MS);
    assert_eq!(farm.reason(failed), Some(JobReason::Backoff { in_seconds: Seconds::from_millis(2_000) }));
    let worker = farm.worker("a", 1);
    assert_eq!(farm.pass(1_999), []);
    assert_eq!(farm.pass(1), [Said::Offer(worker, vec![(failed, 1, 2)])]);
    farm.accept(worker);
    farm.finished(worker, failed, 1, 2);
    let (given_back, _) = farm.submit(spec);
    farm.accept(worker);
    farm.hello(worker, "a", 0, &[(given_back, 1, Some(1))]);
    farm.gave_back(worker, given_back, 1, 1);
    farm.restart_back(MONTH_MS);
    let other = farm.connect();
    assert_eq!(farm.hello(other, "b", 1, &[]), [Said::Offer(other, vec![(given_back, 1, 2)])], "it has not failed");
}

/// The same for a time limit, and no task ends before it began.
#[test]
fn a_clock_set_back_prolongs_no_time_limit() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { time_limit_ms: Some(30_000), ..job(1) });
    farm.accept(worker);
    let started_at = Some(Moment::from_unix_ms(farm.unix_ms()));
    farm.restart_back(MONTH_MS);
    let back = farm.connect();
    assert_eq!(farm.hello(back, "a", 1, &[(id, 1, Some(1))]), []);
    assert_eq!(farm.pass(39_999), []);
    assert_eq!(farm.pass(1), [Said::Cancel(back, id, 1)], "with the time that its worker has to end it itself");
    farm.failed(back, id, 1, 1);
    let task = farm.task(id, 1);
    assert_eq!((task.started_at, task.ended_at), (started_at, started_at));
}

/// A job that has ended is kept for no longer, and one that ends by the new clock for as long as others.
#[test]
fn a_clock_set_back_keeps_no_job_for_longer() {
    let mut farm = Farm::on_disk();
    farm.keep_finished(Some(5_000));
    let (before, _) = farm.submit(job(1));
    farm.cancel(before, None);
    let worker = farm.worker("a", 1);
    let (since, _) = farm.submit(job(1));
    farm.accept(worker);
    farm.restart_back(MONTH_MS);
    let back = farm.connect();
    farm.hello(back, "a", 1, &[(since, 1, Some(1))]);
    farm.finished(back, since, 1, 1);
    farm.pass(4_999);
    assert_eq!(farm.store.jobs.len(), 2);
    farm.pass(1);
    assert_eq!(farm.store.jobs.len(), 0);
}
