//! Tasks that have ended wait again.

use turno_proto::model::Code;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{After, AfterWhen, Array, JobId, JobReason, JobSpec, JobState, TaskState};

use super::farm::{Farm, Said, counts, job, retried};

/// The tasks that failed run again under the next attempt; those that finished do not, and what was counted before is in
/// no count any more.
#[test]
fn what_failed_runs_again() {
    for mut farm in [Farm::in_memory(), Farm::on_disk()] {
        let worker = farm.worker("a", 3);
        let (id, _) = farm.submit(JobSpec { retries: 1, ..job(3) });
        farm.accept(worker);
        farm.finished(worker, id, 1, 1);
        for task in [2, 3] {
            assert_eq!(farm.failed(worker, id, task, 1), [Said::Offer(worker, vec![(id, task, 2)])]);
            farm.accept(worker);
            farm.failed(worker, id, task, 2);
        }
        let before = farm.show(id);
        assert_eq!((before.state, before.counts), (JobState::Failed, counts(0, 0, 1, 2, 0)));
        farm.pass(10);
        let (tasks, said) = farm.retry(id, None);
        assert_eq!(
            (tasks, said),
            (2, vec![Said::Offer(worker, vec![(id, 2, 3), (id, 3, 3)])]),
            "attempts go on rising"
        );
        let view = farm.show(id);
        assert_eq!((view.state, view.counts), (JobState::Running, counts(0, 2, 1, 0, 0)));
        assert_eq!((view.started_at, view.ended_at), (before.started_at, None));
        farm.accept(worker);
        assert_eq!(
            farm.failed(worker, id, 2, 3),
            [Said::Offer(worker, vec![(id, 2, 4)])],
            "failures count from the start"
        );
        farm.accept(worker);
        farm.finished(worker, id, 2, 4);
        farm.finished(worker, id, 3, 3);
        let view = farm.show(id);
        assert_eq!((view.state, view.counts), (JobState::Finished, counts(0, 0, 3, 0, 0)));
        assert!(view.ended_at > before.ended_at);
        let task = farm.task(id, 2);
        assert_eq!((task.attempt, task.exit_code, task.status), (4, Some(0), None), "nothing is left of its failures");
        assert_eq!(farm.retry(id, None), (0, vec![]), "nothing failed");
    }
}

/// Of those that are named every one that has ended waits again; what waits or runs, and what is no task, is passed over.
#[test]
fn what_is_named_and_has_ended_runs_again() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { array: Array { first: 10, count: 5, step: 10 }, ..job(1) });
    farm.accept(worker);
    farm.finished(worker, id, 10, 1);
    farm.accept(worker);
    farm.failed(worker, id, 20, 1);
    farm.accept(worker);
    farm.cancel(id, Some(vec![(40, 40)]));
    assert_eq!(farm.show(id).counts, counts(1, 1, 1, 1, 1));
    assert_eq!(farm.retry(id, Some(vec![(0, 9), (11, 19), (30, 30), (50, 50), (60, u32::MAX)])), (0, vec![]));
    assert_eq!(farm.retry(id, None), (1, vec![]), "the cancelled one did not fail");
    assert_eq!(farm.retry(id, Some(vec![(0, 100)])), (2, vec![]), "one that finished and one that was cancelled");
    assert_eq!(farm.show(id).counts, counts(4, 1, 0, 0, 0));
    let mut offered = vec![(30, 1)];
    for next in [(10, 2), (20, 2), (40, 1), (50, 1)] {
        let (task, attempt) = offered.pop().unwrap();
        assert_eq!(farm.finished(worker, id, task, attempt), [Said::Offer(worker, vec![(id, next.0, next.1)])]);
        farm.accept(worker);
        offered.push(next);
    }
    farm.finished(worker, id, 50, 1);
    assert_eq!(farm.show(id).state, JobState::Finished);
}

#[test]
fn what_cannot_be_retried_is_refused() {
    let mut farm = Farm::on_disk();
    let (id, _) = farm.submit(job(2));
    let call = |job: u64, tasks: Option<Vec<(u32, u32)>>| AdminCall::JobRetry { job: JobId(job), tasks, after: None };
    for tasks in [vec![(3, 2)], vec![(1, 1); 101]] {
        assert_eq!(farm.refused(call(id, Some(tasks))), Code::BadCall);
    }
    assert_eq!(farm.refused(call(9, None)), Code::NotFound);
    farm.cancel(id, None);
    farm.quick = false;
    farm.call(AdminCall::JobRm { job: JobId(id) });
    assert_eq!(farm.refused(call(id, Some(vec![(1, 2)]))), Code::NotFound, "it is being removed");
    farm.flush();
    assert_eq!(farm.refused(call(id, None)), Code::NotFound);
}

/// A retry that is on its way to the disk keeps its job from being removed; cancels and holds see it as it is: ended.
#[test]
fn a_job_that_is_about_to_go_on_is_not_removed() {
    let mut farm = Farm::on_disk();
    let (id, _) = farm.submit(job(1));
    farm.cancel(id, None);
    farm.quick = false;
    let call = || AdminCall::JobRetry { job: JobId(id), tasks: Some(vec![(1, 1)]), after: None };
    farm.call(call());
    assert_eq!(farm.refused(AdminCall::JobRm { job: JobId(id) }), Code::JobNotEnded);
    assert_eq!(farm.refused(AdminCall::JobHold { job: JobId(id) }), Code::JobEnded);
    let said = farm.call(call());
    assert_eq!(retried(&said[0]), Some((farm.seqs, 0, None)), "it is retried already");
    assert_eq!(farm.show(id).state, JobState::Cancelled, "not before it is stored");
    assert_eq!(retried(&farm.flush()[0]).map(|(_, tasks, _)| tasks), Some(1));
    assert_eq!(farm.show(id).state, JobState::Waiting);
}

/// Who waited for the end was answered; who waits after the retry is answered at the next end.
#[test]
fn waiters_wait_for_the_next_end() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(job(1));
    farm.accept(worker);
    farm.call(AdminCall::JobWait { job: JobId(id) });
    let said = farm.failed(worker, id, 1, 1);
    assert!(matches!(&said[..], [Said::Job(_, view)] if view.state == JobState::Failed), "{said:?}");
    assert_eq!(farm.retry(id, None), (1, vec![Said::Offer(worker, vec![(id, 1, 2)])]));
    assert_eq!(farm.call(AdminCall::JobWait { job: JobId(id) }), []);
    farm.accept(worker);
    let said = farm.finished(worker, id, 1, 2);
    assert!(matches!(&said[..], [Said::Job(_, view)] if view.state == JobState::Finished), "{said:?}");
}

/// A job ends while a retry of it is on its way to the disk, and both are stored at once: a caller that waited for the end hears
/// of the end, and what came after it begins.
#[test]
fn an_end_that_crosses_a_retry() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 2);
    let (id, _) = farm.submit(job(2));
    farm.accept(worker);
    farm.failed(worker, id, 1, 1);
    let after = vec![After { job: JobId(id), when: AfterWhen::Any }];
    let (second, _) = farm.submit(JobSpec { after, priority: 9, ..job(1) });
    farm.call(AdminCall::JobWait { job: JobId(id) });
    let wait = farm.seqs;
    farm.quick = false;
    farm.update(worker, id, 2, Some(1), true);
    farm.call(AdminCall::JobRetry { job: JobId(id), tasks: None, after: None });
    let groups: Vec<_> = farm.groups.drain(..).collect();
    let last = groups.last().unwrap().0;
    groups.into_iter().flat_map(|(_, ops)| ops).for_each(|op| farm.store.apply(op));
    let said = farm.step(turno_engine::Input::Persisted { group: last });
    assert!(
        said.iter().any(|said| matches!(said, Said::Job(seq, view) if *seq == wait && view.state == JobState::Failed)),
        "{said:?}"
    );
    assert_eq!(farm.show(id).counts.finished, 1);
    let said = farm.flush();
    assert!(said.contains(&Said::Offer(worker, vec![(second, 1, 1), (id, 1, 2)])), "{said:?}");
}

/// A task that was cancelled while it waited for another attempt goes on with the attempt after that.
#[test]
fn a_cancelled_task_keeps_its_attempts() {
    for lost in [false, true] {
        let mut farm = Farm::on_disk();
        let worker = farm.worker("a", 1);
        let (id, _) = farm.submit(JobSpec { retries: 3, backoff_ms: 60_000, ..job(1) });
        farm.accept(worker);
        farm.failed(worker, id, 1, 1);
        farm.cancel(id, None);
        assert_eq!((farm.task(id, 1).state, farm.task(id, 1).attempt), (TaskState::Cancelled, 1));
        assert_eq!(farm.store.sizes(), (1, 0, 1), "its attempts are in the record of its chunk");
        if lost {
            farm.restart(1);
            farm.worker("a", 1);
        }
        assert_eq!(farm.task(id, 1).attempt, 1);
        let (tasks, said) = farm.retry(id, Some(vec![(1, 1)]));
        assert!(matches!(&said[..], [Said::Offer(_, offered)] if offered[..] == [(id, 1, 2)]), "{said:?}");
        assert_eq!(tasks, 1);
    }
}

/// A worker that was told to stop a task has it until it says so: only then the next attempt begins, wherever that is.
#[test]
fn a_retried_task_waits_until_its_worker_has_let_go() {
    for leaves in [false, true] {
        let mut farm = Farm::on_disk();
        let first = farm.worker("a", 2);
        let (id, _) = farm.submit(job(1));
        farm.accept(first);
        let second = farm.worker("b", 2);
        farm.cancel(id, None);
        farm.confirm(first, id, 1);
        assert_eq!(farm.retry(id, Some(vec![(1, 1)])), (1, vec![]), "its process may be there still");
        assert_eq!(farm.show(id).counts, counts(1, 0, 0, 0, 0));
        assert_eq!(farm.cancel(id, None).0.state, JobState::Cancelled, "it can be cancelled meanwhile");
        assert_eq!(farm.retry(id, Some(vec![(1, 1)])), (1, vec![]));
        farm.quick = false;
        farm.call(AdminCall::JobCancel { job: JobId(id), tasks: None });
        farm.refuse();
        assert_eq!((farm.flush(), farm.pass(1_000)), (vec![], vec![]), "nor does a refused cancel let it go");
        farm.quick = true;
        farm.flush();
        let (said, next) = if leaves { (farm.lose(first), second) } else { (farm.failed(first, id, 1, 1), first) };
        assert_eq!(said, [Said::Offer(next, vec![(id, 1, 2)])]);
        farm.accept(next);
        farm.finished(next, id, 1, 2);
        assert_eq!(farm.show(id).state, JobState::Finished);
    }
}

/// The last report of an attempt before the retry is acknowledged and forgotten.
#[test]
fn a_late_word_is_not_the_next_ones() {
    let mut farm = Farm::on_disk();
    let first = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { time_limit_ms: Some(1_000), ..job(1) });
    farm.accept(first);
    farm.lose(first);
    farm.pass(70_000);
    assert_eq!(farm.show(id).state, JobState::Failed);
    let (second, _) = farm.joining("b", 1);
    assert_eq!(farm.retry(id, None), (1, vec![Said::Offer(second, vec![(id, 1, 2)])]));
    farm.accept(second);
    let back = farm.connect();
    assert_eq!(farm.hello(back, "a", 1, &[(id, 1, Some(1))]), [Said::Cancel(back, id, 1)]);
    let request = farm.next_request();
    assert_eq!(farm.update(back, id, 1, Some(1), true), [Said::Ack(back, request)]);
    assert_eq!(farm.show(id).counts, counts(0, 1, 0, 0, 0));
    farm.finished(second, id, 1, 2);
    assert_eq!(farm.task(id, 1).attempt, 2);
}

/// A task that was cancelled, retried and cancelled again, all on their way to the disk at once, is what was said last.
#[test]
fn retries_and_cancels_that_cross() {
    let mut farm = Farm::on_disk();
    let (id, _) = farm.submit(job(3));
    farm.cancel(id, None);
    let all = || Some(vec![(1, 3)]);
    farm.retry(id, Some(vec![(3, 3)]));
    farm.quick = false;
    farm.call(AdminCall::JobRetry { job: JobId(id), tasks: all(), after: None });
    farm.call(AdminCall::JobCancel { job: JobId(id), tasks: Some(vec![(2, 3)]) });
    farm.call(AdminCall::JobRetry { job: JobId(id), tasks: all(), after: None });
    farm.flush();
    assert_eq!(farm.show(id).counts, counts(1, 0, 0, 0, 2), "2 was retried once, and the cancel came after that");
    assert_eq!(farm.store.jobs[&JobId(id)].cancelled, [(1, 2)]);
    farm.quick = true;
    farm.restart(1);
    assert_eq!(farm.show(id).counts, counts(1, 0, 0, 0, 2));
    assert_eq!(farm.retry(id, all()), (2, vec![]));
    farm.restart(1);
    assert_eq!(farm.show(id).counts, counts(3, 0, 0, 0, 0), "and no cancel of before is left");
}

/// No more run than may at a time, and a job that is held is not started.
#[test]
fn a_retried_job_is_what_it_was_asked_to_be() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 4);
    let (id, _) = farm.submit(JobSpec { max_parallel: Some(2), ..job(4) });
    farm.cancel(id, Some(vec![(3, 4)]));
    farm.accept(worker);
    farm.failed(worker, id, 1, 1);
    farm.failed(worker, id, 2, 1);
    assert_eq!(farm.retry(id, Some(vec![(1, 4)])), (4, vec![Said::Offer(worker, vec![(id, 1, 2), (id, 2, 2)])]));
    assert_eq!(farm.reason(id), Some(JobReason::MaxParallel { max: 2 }));
    farm.accept(worker);
    farm.told(AdminCall::JobHold { job: JobId(id) });
    farm.failed(worker, id, 1, 2);
    assert_eq!(farm.retry(id, None), (1, vec![]));
    let view = farm.show(id);
    assert_eq!((view.state, view.counts), (JobState::Held, counts(3, 1, 0, 0, 0)));
}

/// Jobs after one that is retried stay as they are, begun or cancelled, also over a restart; a new one waits.
#[test]
fn jobs_after_it_stay_as_they_are() {
    for restarts in [false, true] {
        let mut farm = Farm::on_disk();
        let worker = farm.worker("a", 1);
        let (id, _) = farm.submit(job(1));
        farm.accept(worker);
        let after = |when| JobSpec { after: vec![After { job: JobId(id), when }], ..job(1) };
        let (failed, _) = farm.submit(after(AfterWhen::Failed));
        let (ok, _) = farm.submit(after(AfterWhen::Ok));
        assert_eq!(farm.failed(worker, id, 1, 1), [Said::Offer(worker, vec![(failed, 1, 1)])]);
        assert_eq!(farm.show(ok).state, JobState::Cancelled);
        farm.refuse_offer(worker, 0);
        farm.lose(worker);
        assert_eq!(farm.retry(id, None), (1, vec![]));
        let (late, _) = farm.submit(after(AfterWhen::Failed));
        if restarts {
            farm.restart(1);
        }
        assert_eq!(farm.reason(failed), Some(JobReason::NoWorker), "what it waited for was");
        assert_eq!(farm.show(ok).state, JobState::Cancelled);
        assert_eq!(farm.reason(late), Some(JobReason::After { jobs: vec![JobId(id)] }));
        let (worker, said) = farm.joining("b", 1);
        assert_eq!(said, [Said::Offer(worker, vec![(id, 1, 2)])], "a job that has begun goes first");
        farm.accept(worker);
        farm.finished(worker, id, 1, 2);
        assert_eq!(farm.show(late).state, JobState::Cancelled);
        assert_eq!(farm.show(failed).counts.cancelled, 0);
    }
}

/// Many are retried portion by portion, and none twice, however fast they fail.
#[test]
fn many_are_retried_in_portions() {
    let mut farm = Farm::on_disk();
    let (id, _) = farm.submit(job(25_000));
    farm.cancel(id, None);
    let (mut after, mut portions) = (None, Vec::new());
    loop {
        let tasks = Some(vec![(2, 24_000)]);
        let said = farm.call(AdminCall::JobRetry { job: JobId(id), tasks, after });
        let (_, tasks, next) = retried(&said[0]).unwrap();
        portions.push(tasks);
        assert_eq!(said.len(), 1);
        if next.is_none() {
            break;
        }
        after = next;
    }
    assert_eq!(portions, [10_000, 10_000, 3_999]);
    assert_eq!(farm.show(id).counts, counts(23_999, 0, 0, 0, 1_001));
    assert_eq!(farm.store.sizes(), (1, 0, 0), "what never began needs no record");
    farm.restart(1);
    assert_eq!(farm.show(id).counts, counts(23_999, 0, 0, 0, 1_001));
}
