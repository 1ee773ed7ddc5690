//! A retry is stored before it counts, in whatever form its tasks are on the disk, and survives a restart at any moment.

use turno_engine::{AttemptCounts, TaskRecord};
use turno_proto::model::Code;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{JobId, JobSpec, JobState, TaskState};

use super::farm::{Farm, Said, counts, job, retried};

/// A job of three tasks: 1 finished, 2 failed in its second attempt, 3 was cancelled before it began. Together on the disk.
fn ended() -> (Farm, u64) {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { retries: 1, ..job(3) });
    farm.accept(worker);
    farm.cancel(id, Some(vec![(3, 3)]));
    farm.finished(worker, id, 1, 1);
    farm.accept(worker);
    farm.failed(worker, id, 2, 1);
    farm.accept(worker);
    farm.failed(worker, id, 2, 2);
    farm.lose(worker);
    assert_eq!(farm.show(id).counts, counts(0, 0, 1, 1, 1));
    assert_eq!(farm.store.sizes(), (1, 0, 1), "one record tells of all of them");
    (farm, id)
}

fn call(job: u64, tasks: Option<Vec<(u32, u32)>>) -> AdminCall {
    AdminCall::JobRetry { job: JobId(job), tasks, after: None }
}

/// Before it is stored nothing has changed, on disk or in what is told; after that all has, no matter who heard of it.
#[test]
fn a_restart_at_each_moment() {
    for (groups, told) in [(0, counts(0, 0, 1, 1, 1)), (1, counts(3, 0, 0, 0, 0))] {
        for heard in [false, true] {
            let (mut farm, id) = ended();
            farm.quick = false;
            assert_eq!(farm.call(call(id, Some(vec![(1, 3)]))), []);
            assert_eq!(
                (farm.show(id).counts, farm.groups.len()),
                (counts(0, 0, 1, 1, 1), 1),
                "not before it is stored"
            );
            if heard {
                let said = farm.stored(groups);
                assert_eq!(said.iter().filter_map(retried).map(|(_, tasks, _)| tasks).sum::<u32>(), told.waiting);
            } else {
                for (_, ops) in farm.groups.drain(..groups).collect::<Vec<_>>() {
                    ops.into_iter().for_each(|op| farm.store.apply(op));
                }
            }
            farm.quick = true;
            for _ in 0..2 {
                farm.restart(1);
                let view = farm.show(id);
                assert_eq!((view.counts, view.ended_at.is_some()), (told, groups == 0));
                assert!(view.started_at.is_some(), "it began before");
                let attempts: Vec<u32> = farm.tasks(id, None).iter().map(|task| task.attempt).collect();
                assert_eq!(attempts, [1, 2, 0], "and their attempts are known");
            }
            if groups == 1 {
                let (worker, said) = farm.joining("b", 3);
                assert_eq!(said, [Said::Offer(worker, vec![(id, 1, 2), (id, 2, 3), (id, 3, 1)])]);
                farm.accept(worker);
                for (task, attempt) in [(1, 2), (2, 3), (3, 1)] {
                    farm.finished(worker, id, task, attempt);
                }
                assert_eq!(farm.store.sizes(), (1, 0, 1), "brought together again");
                farm.restart(1);
                assert_eq!((farm.show(id).state, farm.show(id).counts), (JobState::Finished, counts(0, 0, 3, 0, 0)));
                assert_eq!(farm.task(id, 2).attempt, 3);
            }
        }
    }
}

/// One task of a chunk that is together: a record of its own beside it, at each step of its next life, and gone at the end.
#[test]
fn a_task_of_a_chunk_has_a_record_of_its_own() {
    let (mut farm, id) = ended();
    let place = (JobId(id), 1);
    assert_eq!(farm.retry(id, None), (1, vec![]));
    let tried = AttemptCounts { attempt: 2, failures: 0, losses: 0 };
    assert_eq!(farm.store.tasks[&place], TaskRecord::Waiting { tried, due_unix_ms: 0 });
    let steps: [fn(&mut Farm, u64); 4] = [
        |farm, _| {
            let (worker, said) = farm.joining("b", 1);
            assert_eq!(said, [Said::Offer(worker, vec![(1, 2, 3)])]);
            farm.refuse_offer(worker, 0);
            farm.lose(worker);
        },
        |farm, _| {
            let (worker, said) = farm.joining("b", 1);
            assert_eq!(said, [Said::Offer(worker, vec![(1, 2, 3)])], "what was refused was none");
            farm.accept(worker);
        },
        |farm, id| {
            let back = farm.connect();
            assert_eq!(farm.hello(back, "b", 1, &[(id, 2, Some(3))]), []);
            assert_eq!(farm.failed(back, id, 2, 3), [Said::Offer(back, vec![(id, 2, 4)])]);
            farm.accept(back);
        },
        |farm, id| {
            let back = farm.connect();
            assert_eq!(farm.hello(back, "b", 1, &[(id, 2, Some(4))]), []);
            farm.failed(back, id, 2, 4);
        },
    ];
    let expected = [(TaskState::Waiting, 2), (TaskState::Running, 3), (TaskState::Running, 4), (TaskState::Failed, 4)];
    for (at, (step, expected)) in steps.into_iter().zip(expected).enumerate() {
        step(&mut farm, id);
        assert_eq!(farm.store.sizes(), (1, usize::from(at < 3), 1));
        farm.restart(1);
        let task = farm.task(id, 2);
        assert_eq!((task.state, task.attempt), expected, "step {at}");
        assert_eq!((farm.task(id, 1).state, farm.task(id, 3).state), (TaskState::Finished, TaskState::Cancelled));
    }
}

/// One that never began is told of by its chunk, too: that it waits stands beside that, also after a refused offer.
#[test]
fn a_cancelled_task_of_a_chunk_waits() {
    let (mut farm, id) = ended();
    assert_eq!(farm.retry(id, Some(vec![(3, 3)])), (1, vec![]));
    assert_eq!(farm.store.jobs[&JobId(id)].cancelled, []);
    for _ in 0..2 {
        farm.restart(1);
        assert_eq!(farm.show(id).counts, counts(1, 0, 1, 1, 0));
        let (worker, said) = farm.joining("b", 1);
        assert_eq!(said, [Said::Offer(worker, vec![(id, 3, 1)])]);
        farm.refuse_offer(worker, 0);
        farm.lose(worker);
    }
    farm.cancel(id, None);
    assert_eq!(farm.store.sizes(), (1, 0, 1));
    farm.restart(1);
    assert_eq!(farm.show(id).counts, counts(0, 0, 1, 1, 1));
}

/// A retry that the disk refuses is none: who asked is told, and the disk has what it had.
#[test]
fn a_refused_retry_is_none() {
    let (mut farm, id) = ended();
    let before = farm.store.clone();
    farm.quick = false;
    farm.call(call(id, Some(vec![(1, 3)])));
    assert_eq!(farm.refuse(), [Said::Error(farm.seqs, Code::OverDisk)]);
    assert_eq!((farm.show(id).state, farm.show(id).counts), (JobState::Failed, counts(0, 0, 1, 1, 1)));
    assert!(farm.show(id).ended_at.is_some());
    farm.pass(1_000);
    farm.quick = true;
    farm.flush();
    farm.restart(1);
    assert_eq!(farm.show(id).counts, counts(0, 0, 1, 1, 1));
    assert_eq!((farm.store.jobs[&JobId(id)].cancelled.clone(), farm.store.chunks), (vec![(2, 2)], before.chunks));
    assert_eq!(farm.store.tasks.len(), 0);
}

/// A retry while the chunk of its task is on its way to the disk, whichever of the two the disk refuses.
#[test]
fn a_retry_beside_the_writing_of_its_chunk() {
    for refused in [None, Some(0), Some(1)] {
        let mut farm = Farm::on_disk();
        let worker = farm.worker("a", 2);
        let (id, _) = farm.submit(job(2));
        farm.accept(worker);
        farm.finished(worker, id, 1, 1);
        farm.quick = false;
        farm.update(worker, id, 2, Some(1), false);
        farm.stored(1);
        farm.call(call(id, None));
        assert_eq!(farm.groups.len(), 2, "the chunk, and the retry");
        for at in 0..2 {
            if refused == Some(at) {
                farm.refuse();
            } else {
                farm.stored(1);
            }
        }
        farm.quick = true;
        farm.flush();
        farm.pass(2_000);
        let expected = if refused == Some(1) { counts(0, 0, 1, 1, 0) } else { counts(0, 1, 1, 0, 0) };
        assert_eq!(farm.show(id).counts, expected, "{refused:?}");
        farm.restart(1);
        assert_eq!(farm.show(id).counts, expected, "{refused:?}");
        if refused != Some(1) {
            let back = farm.connect();
            farm.hello(back, "a", 2, &[(id, 2, Some(2))]);
            farm.finished(back, id, 2, 2);
        }
        farm.restart(1);
        assert!(farm.show(id).state.is_end());
        farm.told(AdminCall::JobRm { job: JobId(id) });
        assert_eq!(farm.store.sizes(), (0, 0, 0), "nothing is left behind");
    }
}

/// A retry while an earlier one is refused: what the later record said of both is fixed.
#[test]
fn a_refused_retry_beside_another() {
    let (mut farm, id) = ended();
    farm.quick = false;
    farm.call(call(id, Some(vec![(3, 3)])));
    farm.call(call(id, Some(vec![(1, 1)])));
    farm.refuse();
    farm.stored(1);
    assert_eq!(farm.show(id).counts, counts(1, 0, 0, 1, 1));
    assert_eq!(farm.store.jobs[&JobId(id)].cancelled, [], "the later record told of both");
    farm.pass(1_000);
    farm.flush();
    assert_eq!(farm.store.jobs[&JobId(id)].cancelled, [(2, 2)], "and was fixed");
    farm.quick = true;
    farm.restart(1);
    assert_eq!(farm.show(id).counts, counts(1, 0, 0, 1, 1));
}
