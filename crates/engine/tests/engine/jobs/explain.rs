//! Every reason that a task can be where it is, exactly. That they are true is looked at after every step of every test
//! (see `truth`).

use turno_engine::ForemanEvent;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{After, AfterWhen, JobId, JobReason, JobSpec, TaskReason};
use turno_proto::model::{Code, Seconds};

use super::farm::{Farm, job, labels};

fn waits(why: JobReason, before: u32) -> TaskReason {
    TaskReason::Waits { why, before }
}

fn worker() -> String {
    "a".to_owned()
}

#[test]
fn a_task_that_waits() {
    let mut farm = Farm::in_memory();
    let (id, _) = farm.submit(JobSpec { max_parallel: Some(1), ..job(3) });
    assert_eq!(farm.why(id, 3), waits(JobReason::NoWorker, 2));
    let (a, _) = farm.joining("a", 2);
    farm.accept(a);
    assert_eq!(farm.why(id, 3), waits(JobReason::MaxParallel { max: 1 }, 1));
    let (rare, _) = farm.submit(JobSpec { labels: labels(&[("gpu", "yes")]), ..job(1) });
    assert_eq!(farm.why(rare, 1), waits(JobReason::NoLabels { labels: vec!["gpu=yes".to_owned()] }, 0));
    let (wide, _) = farm.submit(JobSpec { slots: 3, ..job(1) });
    assert_eq!(farm.why(wide, 1), waits(JobReason::TooWide { slots: 3, largest: 2 }, 0));
    let (pair, _) = farm.submit(JobSpec { slots: 2, ..job(1) });
    assert_eq!(farm.why(pair, 1), waits(JobReason::Busy { slots: 2, ahead: 0 }, 0));
    let (last, _) = farm.submit(job(2));
    assert_eq!(farm.why(last, 2), waits(JobReason::Kept { job: JobId(pair), worker: worker() }, 1));
    farm.told(AdminCall::JobHold { job: JobId(last) });
    assert_eq!(farm.why(last, 1), waits(JobReason::Held, 0));
    let after = vec![After { job: JobId(id), when: AfterWhen::Ok }];
    let (later, _) = farm.submit(JobSpec { after, ..job(1) });
    assert_eq!(farm.why(later, 1), waits(JobReason::After { jobs: vec![JobId(id)] }, 0));
    assert_eq!(farm.refused(AdminCall::JobExplain { job: JobId(id), task: Some(4) }), Code::NotFound);
    assert_eq!(farm.refused(AdminCall::JobExplain { job: JobId(99), task: None }), Code::NotFound);
}

#[test]
fn a_task_that_nobody_can_be_given_now() {
    let mut farm = Farm::in_memory();
    let a = farm.worker("a", 3);
    let (id, _) = farm.submit(job(1));
    let (other, _) = farm.submit(job(1));
    assert_eq!(farm.why(other, 1), waits(JobReason::Unready { workers: 1 }, 0), "a JOB is not answered");
    farm.refuse_offer(a, 3);
    assert_eq!(farm.why(id, 1), waits(JobReason::Unready { workers: 1 }, 0), "it rests after a refusal");
    farm.pass(1_000);
    farm.accept(a);
    farm.event(a, ForemanEvent::Accepted { offer: 99 });
    assert!(matches!(farm.why(id, 1), TaskReason::Runs { .. }));
}

#[test]
fn a_task_that_a_worker_has() {
    let mut farm = Farm::on_disk();
    let a = farm.worker("a", 2);
    farm.quick = false;
    farm.call(AdminCall::JobSubmit {
        spec: Box::new(JobSpec { time_limit_ms: Some(1_000), retries: 1, backoff_ms: 500, ..job(2) }),
    });
    farm.stored(1);
    let id = 1;
    assert_eq!(farm.why(id, 1), TaskReason::Starting { worker: worker() });
    farm.flush();
    assert_eq!(farm.why(id, 1), TaskReason::Offered { worker: worker() });
    farm.quick = true;
    farm.accept(a);
    farm.pass(700);
    assert_eq!(farm.why(id, 1), TaskReason::Runs { worker: worker(), for_seconds: Seconds::from_millis(700) });
    farm.lose(a);
    farm.pass(1_000);
    assert_eq!(farm.why(id, 1), TaskReason::Away { worker: worker(), left_seconds: Seconds::from_millis(59_000) });
    let a = farm.connect();
    farm.hello(a, "a", 2, &[(id, 1, Some(1)), (id, 2, Some(1))]);
    farm.pass(9_400);
    assert_eq!(farm.why(id, 1), TaskReason::Stopping { worker: worker(), time_limit: true });
    farm.quick = false;
    farm.update(a, id, 1, Some(1), false);
    assert_eq!(farm.why(id, 1), TaskReason::Ending { worker: worker() });
    farm.flush();
    assert_eq!(farm.why(id, 1), waits(JobReason::Backoff { in_seconds: Seconds::from_millis(500) }, 0));
    farm.call(AdminCall::JobCancel { job: JobId(id), tasks: None });
    assert_eq!(farm.why(id, 1), TaskReason::Cancelling);
    farm.flush();
    assert_eq!(farm.why(id, 1), TaskReason::Cancelled);
    assert_eq!(farm.why(id, 2), TaskReason::Stopping { worker: worker(), time_limit: false });
}

#[test]
fn a_task_that_has_ended() {
    let mut farm = Farm::in_memory();
    let a = farm.worker("a", 2);
    let (id, _) = farm.submit(job(2));
    farm.accept(a);
    farm.finished(a, id, 1, 1);
    farm.failed(a, id, 2, 1);
    assert_eq!((farm.why(id, 1), farm.why(id, 2)), (TaskReason::Finished, TaskReason::Failed));
}

#[test]
fn a_broker_that_starts_nothing() {
    let mut farm = Farm::on_disk();
    let a = farm.worker("a", 1);
    farm.quick = false;
    farm.call(AdminCall::JobSubmit { spec: Box::new(job(1)) });
    farm.stored(1);
    farm.refuse();
    assert_eq!(farm.why(1, 1), waits(JobReason::Disk, 0), "the start was refused");
    farm.call(AdminCall::JobHold { job: JobId(1) });
    assert_eq!(farm.why(1, 1), waits(JobReason::Storing, 0));
    farm.flush();
    farm.call(AdminCall::JobRelease { job: JobId(1) });
    farm.flush();
    farm.quick = true;
    farm.call(AdminCall::Drain);
    farm.pass(5_000);
    assert_eq!(farm.why(1, 1), waits(JobReason::Draining, 0));
    let _ = a;
}
