//! Jobs come, are shown, held, waited for and removed.

use turno_engine::{Drained, Effect, HostEffect, Input, NativeEffect, PeerEffect};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::job::{After, AfterWhen, Array, JobId, JobReason, JobSpec, JobState, TaskState};
use turno_proto::model::limits::WORK_BYTES_MAX;
use turno_proto::model::{Code, ConnId, Moment};

use super::farm::{Farm, Said, ZERO_UNIX_MS, counts, job};

fn submit(spec: JobSpec) -> AdminCall {
    AdminCall::JobSubmit { spec: Box::new(spec) }
}

#[test]
fn a_million_tasks_are_one_record() {
    let mut farm = Farm::on_disk();
    let (view, said) = farm.told(submit(job(1_000_000)));
    assert_eq!(said, []);
    assert_eq!((view.id, view.state, view.counts), (JobId(1), JobState::Waiting, counts(1_000_000, 0, 0, 0, 0)));
    let submitted_at = Moment::from_unix_ms(ZERO_UNIX_MS + 5_000);
    assert_eq!((view.submitted_at, view.started_at, view.ended_at), (submitted_at, None, None));
    assert_eq!(view.because.map(|why| why.0), Some(JobReason::NoWorker));
    assert_eq!(farm.store.sizes(), (1, 0, 0));
    let (view, _) = farm.cancel(1, Some(vec![(5, 900_000)]));
    assert_eq!(view.counts, counts(100_004, 0, 0, 0, 899_996));
    assert_eq!(farm.store.sizes(), (1, 0, 0), "cancelled tasks that waited are a range");
}

/// A job is told of once it is stored, and not before.
#[test]
fn a_submit_is_answered_when_it_is_stored() {
    let mut farm = Farm::on_disk();
    farm.quick = false;
    assert_eq!(farm.call(submit(job(2))), []);
    assert_eq!(farm.refused(AdminCall::JobShow { job: Some(JobId(1)) }), Code::NotFound);
    let worker = farm.worker("a", 2);
    let said = farm.stored(1);
    assert!(matches!(&said[..], [Said::Job(1, view)] if view.id == JobId(1)), "{said:?}");
    assert_eq!(farm.stored(1), [Said::Offer(worker, vec![(1, 1, 1), (1, 2, 1)])], "and its starts are stored as well");
}

#[test]
fn the_same_key_is_the_same_job() {
    let mut farm = Farm::on_disk();
    let keyed = || JobSpec { key: Some("once".to_owned()), ..job(3) };
    farm.quick = false;
    assert_eq!((farm.call(submit(keyed())), farm.call(submit(keyed()))), (vec![], vec![]));
    let said = farm.flush();
    let told: Vec<(u32, u64)> = said
        .iter()
        .map(|said| match said {
            Said::Job(seq, view) => (*seq, view.id.0),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [(1, 1), (2, 1)], "the second waits for the first");
    farm.quick = true;
    farm.restart(1);
    assert_eq!(farm.submit(keyed()).0, 1, "also after a restart");
    farm.cancel(1, None);
    assert_eq!(farm.told(AdminCall::JobRm { job: JobId(1) }).0.state, JobState::Cancelled);
    assert_eq!(farm.submit(keyed()).0, 2, "a job that is gone is forgotten");
}

/// The same submission again is the same job; another one under its key is refused, also after a restart. Which jobs it starts
/// after may differ: `last` is another job the second time.
#[test]
fn another_job_with_the_same_key_is_refused() {
    let mut farm = Farm::on_disk();
    let (first, _) = farm.submit(job(1));
    let after = |id: u64| vec![After { job: JobId(id), when: AfterWhen::Any }];
    let keyed = |id: u64| JobSpec { key: Some("once".to_owned()), after: after(id), ..job(3) };
    farm.quick = false;
    assert_eq!(farm.call(submit(keyed(first))), []);
    let others = || {
        let other = keyed(first);
        [
            JobSpec { work: vec![0x80, 0].into(), ..other.clone() },
            JobSpec { array: Array { first: 1, count: 4, step: 1 }, ..other.clone() },
            JobSpec { slots: 2, ..other.clone() },
            JobSpec { tags: vec!["x".to_owned()], ..other },
        ]
    };
    for other in others() {
        assert_eq!(farm.refused(submit(other)), Code::KeyTaken, "while the first is on its way to the disk");
    }
    farm.flush();
    farm.quick = true;
    farm.restart(1);
    for other in others() {
        assert_eq!(farm.refused(submit(other)), Code::KeyTaken);
    }
    assert_eq!(farm.submit(keyed(2)).0, 2, "after itself, as `last` says now");
}

#[test]
fn what_cannot_be_a_job_is_refused() {
    let mut farm = Farm::in_memory();
    let after = vec![After { job: JobId(9), when: AfterWhen::Any }];
    let wrong = [
        ("no task", JobSpec { array: Array { first: 0, count: 0, step: 1 }, ..job(3) }),
        ("too many", job(10_000_001)),
        ("too high", JobSpec { array: Array { first: 0, count: 3, step: u32::MAX }, ..job(3) }),
        ("no slots", JobSpec { slots: 0, ..job(3) }),
        ("65,535 slots", JobSpec { slots: u16::MAX, ..job(3) }),
        ("priority", JobSpec { priority: 10, ..job(3) }),
        ("none may run", JobSpec { max_parallel: Some(0), ..job(3) }),
        ("no time", JobSpec { time_limit_ms: Some(0), ..job(3) }),
        ("name", JobSpec { name: "n".repeat(129), ..job(3) }),
        ("key", JobSpec { key: Some(String::new()), ..job(3) }),
        ("long key", JobSpec { key: Some("k".repeat(129)), ..job(3) }),
        ("work", JobSpec { work: vec![0; WORK_BYTES_MAX + 1].into(), ..job(3) }),
        ("after nothing", JobSpec { after, ..job(3) }),
    ];
    for (what, spec) in wrong {
        assert_eq!(farm.refused(submit(spec)), Code::BadJob, "{what}");
    }
    assert_eq!(farm.submit(job(3)).0, 1, "none of them took a number");
}

#[test]
fn listings_are_in_pages() {
    let mut farm = Farm::in_memory();
    for _ in 0..5 {
        farm.submit(job(2_500));
    }
    let mut page = |before| match farm.call(AdminCall::JobLs { before, limit: 2 }).remove(0) {
        Said::Other(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. })) => {
            match *answer {
                AdminAnswer::Jobs { jobs, next } => {
                    assert!(jobs.iter().all(|job| job.spec.is_none()), "a listing is short");
                    (jobs.iter().map(|job| job.id.0).collect::<Vec<_>>(), next)
                }
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(page(None), (vec![5, 4], Some(JobId(4))));
    assert_eq!(page(Some(JobId(4))), (vec![3, 2], Some(JobId(2))));
    assert_eq!(page(Some(JobId(2))), (vec![1], None));
    assert_eq!(farm.told(AdminCall::JobShow { job: None }).0.id, JobId(5), "the latest");

    let mut tasks =
        |state, after| match farm.call(AdminCall::JobTasks { job: JobId(1), state, after, limit: 1_000 }).remove(0) {
            Said::Other(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. })) => {
                match *answer {
                    AdminAnswer::Tasks { tasks, next } => (tasks.len(), tasks.first().map(|task| task.task), next),
                    other => panic!("{other:?}"),
                }
            }
            other => panic!("{other:?}"),
        };
    assert_eq!(tasks(None, None), (1_000, Some(1), Some(1_000)));
    assert_eq!(tasks(None, Some(2_000)), (500, Some(2_001), None));
    assert_eq!(tasks(Some(TaskState::Waiting), Some(2_499)), (1, Some(2_500), None));
    assert_eq!(tasks(Some(TaskState::Running), None), (0, None, None));
    assert_eq!(tasks(Some(TaskState::Finished), None), (0, None, None));
    assert_eq!(tasks(None, Some(u32::MAX)), (0, None, None));
}

/// A call looks at so many tasks and no more, and says where to go on.
#[test]
fn a_search_in_a_large_job_goes_on_with_the_next_page() {
    let mut farm = Farm::in_memory();
    farm.submit(job(250_000));
    let (mut after, mut calls) = (None, 0);
    loop {
        let call = AdminCall::JobTasks { job: JobId(1), state: Some(TaskState::Failed), after, limit: 10 };
        let Said::Other(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. })) =
            farm.call(call).remove(0)
        else {
            panic!("answered")
        };
        let AdminAnswer::Tasks { tasks, next } = *answer else { panic!("with tasks") };
        assert_eq!(tasks, []);
        calls += 1;
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(calls, 3);
}

#[test]
fn a_held_job_starts_nothing_until_it_is_released() {
    let mut farm = Farm::on_disk();
    farm.worker("a", 1);
    let (id, said) = farm.submit(JobSpec { hold: true, ..job(2) });
    assert_eq!(said, []);
    let view = farm.show(id);
    assert_eq!((view.state, view.because.map(|why| why.0)), (JobState::Held, Some(JobReason::Held)));
    farm.restart(1);
    assert_eq!(farm.show(id).state, JobState::Held, "also after a restart");
    let worker = farm.worker("a", 1);
    let (view, said) = farm.told(AdminCall::JobRelease { job: JobId(id) });
    assert_eq!((view.state, said), (JobState::Waiting, vec![Said::Offer(worker, vec![(id, 1, 1)])]));
    assert_eq!(farm.accept(worker), []);
    let (view, said) = farm.told(AdminCall::JobHold { job: JobId(id) });
    assert_eq!((view.state, view.counts, said), (JobState::Held, counts(1, 1, 0, 0, 0), vec![]));
    assert_eq!(farm.told(AdminCall::JobHold { job: JobId(id) }).0.state, JobState::Held, "twice is once");
    assert_eq!(farm.finished(worker, id, 1, 1), [], "what ran goes on, and nothing follows");
    let (view, said) = farm.told(AdminCall::JobRelease { job: JobId(id) });
    assert_eq!((view.state, said), (JobState::Running, vec![Said::Offer(worker, vec![(id, 2, 1)])]));
    farm.accept(worker);
    farm.finished(worker, id, 2, 1);
    for call in [AdminCall::JobHold { job: JobId(id) }, AdminCall::JobRelease { job: JobId(id) }] {
        assert_eq!(farm.refused(call), Code::JobEnded);
    }
}

#[test]
fn who_waits_is_told_when_the_job_has_ended() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 2);
    let (id, _) = farm.submit(job(2));
    farm.accept(worker);
    assert_eq!(farm.call(AdminCall::JobWait { job: JobId(id) }), []);
    let waiting = farm.seqs;
    let other = ConnId { index: 77, generation: 1 };
    farm.step(Input::Connected { conn: other, name: String::new(), address: String::new() });
    farm.step(Input::Admin { conn: other, seq: 9, call: AdminCall::JobWait { job: JobId(id) } });
    farm.step(Input::Disconnected { conn: other });
    assert_eq!(farm.finished(worker, id, 1, 1), []);
    farm.quick = false;
    assert_eq!(farm.update(worker, id, 2, Some(1), true), [], "not before it is stored");
    let said = farm.flush();
    let [Said::Ack(..), Said::Job(seq, view)] = &said[..] else { panic!("{said:?}") };
    assert_eq!((*seq, view.state, view.counts), (waiting, JobState::Finished, counts(0, 0, 2, 0, 0)));
    assert_eq!(view.ended_at, Some(Moment::from_unix_ms(farm.unix_ms())));
    farm.quick = true;
    assert_eq!(farm.told(AdminCall::JobWait { job: JobId(id) }).0.state, JobState::Finished, "at once if it has");
    assert_eq!(farm.refused(AdminCall::JobWait { job: JobId(9) }), Code::NotFound);
}

#[test]
fn only_a_job_that_has_ended_is_removed_and_its_number_never_comes_back() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(job(1));
    assert_eq!(farm.refused(AdminCall::JobRm { job: JobId(id) }), Code::JobNotEnded);
    farm.accept(worker);
    farm.finished(worker, id, 1, 1);
    assert_eq!(farm.told(AdminCall::JobRm { job: JobId(id) }).0.state, JobState::Finished);
    assert_eq!(farm.refused(AdminCall::JobRm { job: JobId(id) }), Code::NotFound);
    assert_eq!(farm.store.sizes(), (0, 0, 0), "nothing of it is left");
    farm.restart(1);
    assert_eq!(farm.submit(job(1)).0, id + 1);
}

/// A broker that is drained takes no job and offers none; what runs goes on at its workers.
#[test]
fn a_drain_stops_offers_and_submits() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(job(2));
    farm.accept(worker);
    let said = farm.call(AdminCall::Drain);
    let closings: Vec<_> = said
        .iter()
        .filter_map(|said| match said {
            Said::Other(Effect::Peer(PeerEffect::Closing { conn, .. })) => Some(*conn),
            _ => None,
        })
        .collect();
    assert_eq!(closings, [farm.admin], "a foreman's worker has no frame for it");
    assert_eq!(farm.refused(submit(job(1))), Code::Closing);
    assert_eq!(farm.finished(worker, id, 1, 1), []);
    assert_eq!(farm.reason(id), Some(JobReason::Draining));
    let said = farm.call(AdminCall::Resume);
    assert!(said.contains(&Said::Offer(worker, vec![(id, 2, 1)])), "{said:?}");
    assert_eq!(farm.accept(worker), []);
    let said = farm.step(Input::Drain { within_ms: 1_000 });
    let over = said.contains(&Said::Other(Effect::Host(HostEffect::Drained(Drained { returned: 0, cut: 0, lost: 0 }))));
    assert!(over, "the end of the broker does not wait for tasks: {said:?}");
}
