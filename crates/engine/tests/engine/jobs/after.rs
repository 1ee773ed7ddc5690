//! Jobs that come after others.

use turno_proto::model::Code;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{After, AfterWhen, JobId, JobReason, JobSpec, JobState};

use super::farm::{Farm, Said, counts, job};

fn after(jobs: &[(u64, AfterWhen)]) -> JobSpec {
    let after = jobs.iter().map(|(job, when)| After { job: JobId(*job), when: *when }).collect();
    JobSpec { after, ..job(1) }
}

/// What becomes of a job after one that finished, failed, or was cancelled.
#[test]
fn a_job_begins_or_never_will() {
    let rows = [
        (AfterWhen::Ok, [true, false, false]),
        (AfterWhen::Any, [true, true, true]),
        (AfterWhen::Failed, [false, true, true]),
    ];
    for (when, expected) in rows {
        for (end, begins) in ["finished", "failed", "cancelled"].into_iter().zip(expected) {
            let mut farm = Farm::on_disk();
            let worker = farm.worker("a", 1);
            let (first, _) = farm.submit(job(1));
            farm.accept(worker);
            let (second, said) = farm.submit(after(&[(first, when)]));
            assert_eq!(said, []);
            assert_eq!(farm.reason(second), Some(JobReason::After { jobs: vec![JobId(first)] }));
            let (third, _) = farm.submit(after(&[(second, AfterWhen::Failed)]));
            let said = match end {
                "finished" => farm.finished(worker, first, 1, 1),
                "failed" => farm.failed(worker, first, 1, 1),
                _ => {
                    farm.cancel(first, None);
                    farm.no_such_job(worker, first, 1)
                }
            };
            let next = if begins { second } else { third };
            assert_eq!(said, [Said::Offer(worker, vec![(next, 1, 1)])], "{when:?} {end}");
            let state = if begins { JobState::Running } else { JobState::Cancelled };
            assert_eq!(farm.show(second).state, state, "{when:?} {end}");
            let missed = (!begins).then_some(JobReason::Missed { job: JobId(first), when });
            assert!(begins || farm.reason(second) == missed, "{when:?} {end}");
            // And the same for one that comes when that has ended: its submitter is told at once.
            let submit = AdminCall::JobSubmit { spec: Box::new(after(&[(first, when)])) };
            let (late, _) = farm.told(submit);
            assert!(begins || late.because.as_deref() == missed.as_ref(), "{when:?} {end}: {:?}", late.because);
            let state = if begins { JobState::Waiting } else { JobState::Cancelled };
            assert_eq!(farm.show(late.id.0).state, state, "{when:?} {end}");
            farm.restart(1_000);
            assert!(begins || farm.reason(late.id.0) == missed, "{when:?} {end}: also after a restart");
        }
    }
}

#[test]
fn all_of_several_must_have_ended() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 2);
    let (first, _) = farm.submit(job(1));
    farm.accept(worker);
    let (second, _) = farm.submit(job(1));
    farm.accept(worker);
    let (both, _) = farm.submit(after(&[(first, AfterWhen::Ok), (second, AfterWhen::Any), (first, AfterWhen::Any)]));
    assert_eq!(farm.failed(worker, second, 1, 1), []);
    assert_eq!(farm.reason(both), Some(JobReason::After { jobs: vec![JobId(first)] }));
    assert_eq!(farm.finished(worker, first, 1, 1), [Said::Offer(worker, vec![(both, 1, 1)])]);
}

/// A chain of any length that cannot begin ends, and nobody waits for it for ever.
#[test]
fn a_chain_ends_as_a_whole() {
    for mut farm in [Farm::in_memory(), Farm::on_disk()] {
        // They are many, and all wait for the same.
        farm.explained_every = 100;
        let (first, _) = farm.submit(job(2));
        let mut last = first;
        for _ in 0..1_000 {
            last = farm.submit(after(&[(last, AfterWhen::Ok)])).0;
        }
        assert_eq!(farm.call(AdminCall::JobWait { job: JobId(last) }), []);
        let (_, said) = farm.cancel(first, None);
        assert!(matches!(&said[..], [Said::Job(_, job)] if job.id == JobId(last)), "{said:?}");
        assert_eq!(farm.show(last).counts, counts(0, 0, 0, 0, 1));
    }
}

/// What a job waits for is known after a restart, also when the job before it was removed meanwhile.
#[test]
fn after_a_restart_it_is_the_same() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (first, _) = farm.submit(job(1));
    let (held, _) = farm.submit(JobSpec { hold: true, ..after(&[(first, AfterWhen::Ok)]) });
    farm.accept(worker);
    farm.restart(1);
    assert_eq!(farm.reason(held), Some(JobReason::Held));
    farm.told(AdminCall::JobRelease { job: JobId(held) });
    assert_eq!(farm.reason(held), Some(JobReason::After { jobs: vec![JobId(first)] }));
    farm.told(AdminCall::JobHold { job: JobId(held) });
    let worker = farm.connect();
    farm.hello(worker, "a", 1, &[(first, 1, Some(1))]);
    assert_eq!(farm.finished(worker, first, 1, 1), []);
    farm.told(AdminCall::JobRm { job: JobId(first) });
    farm.restart(1);
    let (view, _) = farm.told(AdminCall::JobRelease { job: JobId(held) });
    assert_eq!((view.state, view.because.map(|why| why.0)), (JobState::Waiting, Some(JobReason::NoWorker)));
}

/// A job comes after two. One of them ends, the broker starts again, and only the other is waited for: whichever of them it is,
/// whatever became of the one that ended, and whether the job was written down since.
#[test]
fn a_restart_remembers_which_of_two_has_ended() {
    for (ends, stays) in [(0, 1), (1, 0)] {
        for then in ["stays", "is removed", "is retried"] {
            for is_written in [false, true] {
                let mut farm = Farm::on_disk();
                let worker = farm.worker("a", 2);
                let before = [(); 2].map(|()| {
                    let (id, _) = farm.submit(job(1));
                    farm.accept(worker);
                    id
                });
                let (ended, left) = (before[ends], before[stays]);
                let (both, _) = farm.submit(after(&before.map(|id| (id, AfterWhen::Ok))));
                assert_eq!(farm.finished(worker, ended, 1, 1), []);
                if is_written {
                    farm.told(AdminCall::JobHold { job: JobId(both) });
                    farm.told(AdminCall::JobRelease { job: JobId(both) });
                }
                match then {
                    "is removed" => drop(farm.told(AdminCall::JobRm { job: JobId(ended) })),
                    "is retried" => drop(farm.retry(ended, Some(vec![(1, 1)]))),
                    _ => {}
                }
                farm.restart(1);
                let case = format!("{ends} {then} {is_written}");
                assert_eq!(farm.reason(both), Some(JobReason::After { jobs: vec![JobId(left)] }), "{case}");
                let worker = farm.connect();
                farm.hello(worker, "a", 1, &[(left, 1, Some(1))]);
                assert_eq!(farm.show(both).state, JobState::Waiting, "{case}");
                farm.finished(worker, left, 1, 1);
                assert!(!matches!(farm.reason(both), Some(JobReason::After { .. })), "{case}");
            }
        }
    }
}

/// The same if it ends otherwise than wanted: the job after it is cancelled, also if the broker ends before that is stored.
#[test]
fn a_restart_remembers_that_one_of_two_has_failed() {
    for ends in [0, 1] {
        for is_stored in [false, true] {
            let mut farm = Farm::on_disk();
            let worker = farm.worker("a", 2);
            let before = [(); 2].map(|()| {
                let (id, _) = farm.submit(job(1));
                farm.accept(worker);
                id
            });
            let (both, _) = farm.submit(after(&before.map(|id| (id, AfterWhen::Ok))));
            farm.quick = is_stored;
            farm.update(worker, before[ends], 1, Some(1), false);
            if !is_stored {
                // The end of the task, and nothing that follows from it.
                farm.stored(1);
            }
            farm.quick = true;
            farm.restart(1);
            farm.pass(1_000);
            assert_eq!(farm.show(both).state, JobState::Cancelled, "{ends} {is_stored}");
        }
    }
}

/// The disk refuses the end of a job that can never begin: it is tried again, and what it came after stays until then.
#[test]
fn a_doomed_job_ends_when_the_disk_has_room() {
    let mut farm = Farm::on_disk();
    let (first, _) = farm.submit(job(1));
    let (second, _) = farm.submit(after(&[(first, AfterWhen::Ok)]));
    farm.quick = false;
    farm.call(AdminCall::JobCancel { job: JobId(first), tasks: None });
    farm.stored(1);
    assert_eq!(farm.refuse(), []);
    assert_eq!(farm.show(second).state, JobState::Waiting);
    assert_eq!(farm.refused(AdminCall::JobRm { job: JobId(first) }), Code::JobNotEnded);
    farm.pass(1_000);
    farm.flush();
    assert_eq!(farm.show(second).state, JobState::Cancelled);
    farm.quick = true;
    farm.told(AdminCall::JobRm { job: JobId(first) });
}

/// A job that somebody cancelled is not said to have missed another; one that was cancelled for that and is retried, neither.
#[test]
fn only_what_missed_another_says_so() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (first, _) = farm.submit(job(1));
    farm.accept(worker);
    let (mine, _) = farm.submit(after(&[(first, AfterWhen::Ok)]));
    let (missed, _) = farm.submit(after(&[(first, AfterWhen::Ok)]));
    farm.cancel(mine, None);
    farm.failed(worker, first, 1, 1);
    assert_eq!((farm.show(mine).state, farm.reason(mine)), (JobState::Cancelled, None));
    assert_eq!(farm.reason(missed), Some(JobReason::Missed { job: JobId(first), when: AfterWhen::Ok }));
    let (count, said) = farm.retry(missed, Some(vec![(1, 1)]));
    assert_eq!((count, said), (1, vec![Said::Offer(worker, vec![(missed, 1, 1)])]));
    assert_eq!(farm.reason(missed), None);
}
