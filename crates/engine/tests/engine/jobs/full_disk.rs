//! A disk that refuses: callers are told, what happened is tried again, and nothing is told that is not stored.

use turno_proto::model::Code;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{JobId, JobReason, JobSpec, JobState};

use super::farm::{Farm, Said, counts, job};

fn full() -> Farm {
    let mut farm = Farm::on_disk();
    farm.quick = false;
    farm
}

#[test]
fn a_refused_submit_is_no_job() {
    let mut farm = full();
    let keyed = || AdminCall::JobSubmit { spec: Box::new(JobSpec { key: Some("k".to_owned()), ..job(1) }) };
    farm.call(keyed());
    farm.call(keyed());
    assert_eq!(farm.refuse(), [Said::Error(1, Code::OverDisk), Said::Error(2, Code::OverDisk)]);
    assert_eq!(farm.refused(AdminCall::JobShow { job: None }), Code::NotFound);
    farm.call(keyed());
    let said = farm.flush();
    assert!(matches!(&said[..], [Said::Job(4, view)] if view.state == JobState::Waiting), "its key is free: {said:?}");
}

/// I19: a start that was not stored was none, and nothing is started for a second.
#[test]
fn a_refused_start_is_none() {
    let mut farm = full();
    farm.call(AdminCall::JobSubmit { spec: Box::new(job(2)) });
    farm.flush();
    let worker = farm.worker("a", 1);
    assert_eq!(farm.refuse(), []);
    let view = farm.show(1);
    assert_eq!((view.counts, view.because.map(|why| why.0)), (counts(2, 0, 0, 0, 0), Some(JobReason::Disk)));
    let other = farm.worker("b", 1);
    assert_eq!((farm.pass(999), farm.groups.len()), (vec![], 0));
    farm.pass(1);
    assert_eq!(farm.flush(), [Said::Offer(worker, vec![(1, 1, 1)]), Said::Offer(other, vec![(1, 2, 1)])]);
}

/// I20: an end that the disk refuses is tried again each second; it is acknowledged and counts once it is stored.
#[test]
fn a_refused_end_is_tried_again() {
    let mut farm = full();
    farm.call(AdminCall::JobSubmit { spec: Box::new(job(1)) });
    farm.flush();
    let worker = farm.worker("a", 1);
    farm.flush();
    farm.accept(worker);
    assert_eq!(farm.update(worker, 1, 1, Some(1), true), []);
    for _ in 0..3 {
        assert_eq!(farm.refuse(), []);
        assert_eq!(farm.show(1).counts, counts(0, 1, 0, 0, 0));
        assert_eq!(farm.pass(1_000), []);
    }
    farm.lose(worker);
    let back = farm.connect();
    farm.hello(back, "a", 1, &[]);
    assert_eq!(farm.update(back, 1, 1, Some(1), true), [], "its worker may have come back meanwhile");
    assert_eq!(farm.flush(), [Said::Ack(back, 2)]);
    assert_eq!(farm.show(1).state, JobState::Finished);
}

/// I19: after a refused cancel a task waits for its next attempt as long as before.
#[test]
fn a_refused_cancel_keeps_the_retry_delay() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { retries: 1, backoff_ms: 5_000, ..job(1) });
    farm.accept(worker);
    farm.failed(worker, id, 1, 1);
    farm.quick = false;
    farm.pass(1_000);
    farm.call(AdminCall::JobCancel { job: JobId(id), tasks: None });
    let seq = farm.seqs;
    assert_eq!(farm.refuse(), [Said::Error(seq, Code::OverDisk)]);
    farm.quick = true;
    assert_eq!(farm.pass(3_900), [], "not before its time");
    assert_ne!(farm.pass(200), [], "then it is offered");
    farm.accept(worker);
    assert_eq!(farm.tasks(id, None)[0].attempt, 2);
}

/// A refused cancel changes nothing, a refused hold neither; what a later record said of them is fixed.
#[test]
fn a_refused_change_is_none() {
    let mut farm = full();
    farm.call(AdminCall::JobSubmit { spec: Box::new(job(5)) });
    farm.flush();
    farm.call(AdminCall::JobCancel { job: JobId(1), tasks: Some(vec![(1, 2)]) });
    farm.call(AdminCall::JobCancel { job: JobId(1), tasks: Some(vec![(2, 3)]) });
    assert_eq!(farm.show(1).counts, counts(5, 0, 0, 0, 0), "not before it is stored");
    assert_eq!(farm.refuse(), [Said::Error(2, Code::OverDisk)]);
    farm.stored(1);
    assert_eq!(farm.show(1).counts, counts(4, 0, 0, 0, 1), "1 waits again, and so does 2, which the first had");
    assert_eq!(farm.store.jobs[&JobId(1)].cancelled, [(0, 2)], "the later record told of both");
    farm.pass(1_000);
    farm.flush();
    assert_eq!(farm.store.jobs[&JobId(1)].cancelled, [(1, 2)], "and was fixed");

    farm.call(AdminCall::JobHold { job: JobId(1) });
    let seq = farm.seqs;
    assert_eq!(farm.refuse(), [Said::Error(seq, Code::OverDisk)]);
    assert_eq!(farm.show(1).state, JobState::Waiting);
    farm.call(AdminCall::JobHold { job: JobId(1) });
    farm.flush();
    farm.call(AdminCall::JobRelease { job: JobId(1) });
    let seq = farm.seqs;
    assert_eq!(farm.refuse(), [Said::Error(seq, Code::OverDisk)]);
    assert_eq!(farm.show(1).state, JobState::Held);
}

/// A removal that the disk refuses (it keeps the last number) leaves the job as it was.
#[test]
fn a_refused_removal_is_none() {
    let mut farm = full();
    farm.call(AdminCall::JobSubmit { spec: Box::new(job(1)) });
    farm.flush();
    farm.call(AdminCall::JobCancel { job: JobId(1), tasks: None });
    farm.flush();
    farm.call(AdminCall::JobRm { job: JobId(1) });
    let seq = farm.seqs;
    assert_eq!(farm.refused(AdminCall::JobShow { job: Some(JobId(1)) }), Code::NotFound);
    assert_eq!(farm.refuse(), [Said::Error(seq, Code::OverDisk)]);
    assert_eq!(farm.show(1).state, JobState::Cancelled);
}

/// Chunks that the disk refuses are brought together later; until then each end is on the disk by itself.
#[test]
fn a_refused_chunk_is_written_later() {
    let mut farm = full();
    farm.call(AdminCall::JobSubmit { spec: Box::new(job(2)) });
    farm.flush();
    let worker = farm.worker("a", 2);
    farm.flush();
    farm.accept(worker);
    farm.update(worker, 1, 1, Some(1), true);
    farm.update(worker, 1, 2, Some(1), true);
    assert_eq!(farm.stored(2), [Said::Ack(worker, 1), Said::Ack(worker, 2)]);
    assert_eq!(farm.refuse(), []);
    assert_eq!(farm.store.sizes(), (1, 2, 0));
    assert_eq!(farm.pass(1_000), []);
    farm.flush();
    assert_eq!(farm.store.sizes(), (1, 0, 1));
}

/// Several changes on their way at once: the last one counts, on disk and in memory, and nothing starts meanwhile.
#[test]
fn changes_that_cross_each_other() {
    let mut farm = full();
    farm.call(AdminCall::JobSubmit { spec: Box::new(JobSpec { hold: true, ..job(3) }) });
    farm.flush();
    farm.worker("a", 1);
    farm.call(AdminCall::JobRelease { job: JobId(1) });
    farm.call(AdminCall::JobHold { job: JobId(1) });
    farm.call(AdminCall::JobCancel { job: JobId(1), tasks: Some(vec![(1, 1)]) });
    let said = farm.flush();
    assert_eq!(said.len(), 3, "each is answered, and nothing is offered: {said:?}");
    assert_eq!((farm.show(1).state, farm.store.jobs[&JobId(1)].held), (JobState::Held, true));
    farm.call(AdminCall::JobRelease { job: JobId(1) });
    farm.call(AdminCall::JobCancel { job: JobId(1), tasks: Some(vec![(2, 2)]) });
    farm.flush();
    assert_eq!((farm.show(1).state, farm.store.jobs[&JobId(1)].held), (JobState::Running, false));
    assert_eq!(farm.show(1).counts, counts(0, 1, 0, 0, 2));
}

/// A pending record is not written once its job is being removed: the job would live again.
#[test]
fn a_removed_job_stays_removed() {
    let mut farm = full();
    farm.call(AdminCall::JobSubmit { spec: Box::new(JobSpec { key: Some("k".to_owned()), ..job(1) }) });
    farm.call(AdminCall::JobSubmit { spec: Box::new(job(1)) });
    farm.flush();
    farm.call(AdminCall::JobHold { job: JobId(1) });
    farm.call(AdminCall::JobCancel { job: JobId(1), tasks: None });
    farm.refuse();
    farm.flush();
    assert_eq!(farm.show(1).state, JobState::Cancelled);
    farm.call(AdminCall::JobRm { job: JobId(1) });
    farm.pass(5_000);
    farm.call(AdminCall::JobSubmit { spec: Box::new(JobSpec { key: Some("k".to_owned()), ..job(1) }) });
    farm.flush();
    assert_eq!(farm.store.jobs.keys().map(|job| job.0).collect::<Vec<_>>(), [2, 3], "its key is free at once");
    farm.quick = true;
    farm.restart(1);
    let (again, _) = farm.submit(JobSpec { key: Some("k".to_owned()), ..job(1) });
    assert_eq!(again, 3);
}
