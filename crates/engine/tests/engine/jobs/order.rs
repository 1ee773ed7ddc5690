//! Whose turn it is, among jobs and among workers.

use turno_proto::model::job::{JobReason, JobSpec};

use super::farm::{Farm, Said, job};

/// Proves S4.71, S4.72 and S4.82: pending tasks go out as soon as there is a slot for them, each to one worker, ascending.
#[test]
fn tasks_go_out_in_turn() {
    let mut farm = Farm::in_memory();
    let (id, said) = farm.submit(job(5));
    assert_eq!(said, []);
    let (a, said) = farm.joining("a", 2);
    assert_eq!(said, [Said::Offer(a, vec![(id, 1, 1), (id, 2, 1)])]);
    let (b, said) = farm.joining("b", 2);
    assert_eq!(said, [Said::Offer(b, vec![(id, 3, 1), (id, 4, 1)])]);
    assert_eq!((farm.accept(a), farm.accept(b)), (vec![], vec![]));
    assert_eq!(farm.reason(id), Some(JobReason::Busy { slots: 4, ahead: 0 }));
    assert_eq!(farm.finished(b, id, 3, 1), [Said::Offer(b, vec![(id, 5, 1)])]);
    assert_eq!(farm.reason(id), None, "all that is left runs");
}

/// Job workers take turns: the least recently used has the next task, and one with a JOB that is not answered gets none.
#[test]
fn job_workers_take_turns() {
    let mut farm = Farm::in_memory();
    let (a, b, c) = (farm.worker("a", 3), farm.worker("b", 3), farm.worker("c", 1));
    let (id, said) = farm.submit(job(6));
    let expected = [
        Said::Offer(a, vec![(id, 1, 1), (id, 4, 1), (id, 6, 1)]),
        Said::Offer(b, vec![(id, 2, 1), (id, 5, 1)]),
        Said::Offer(c, vec![(id, 3, 1)]),
    ];
    assert_eq!(said, expected);
    let (other, said) = farm.submit(job(2));
    assert_eq!(said, [], "b has room, and has not answered yet");
    assert_eq!(farm.accept(b), [Said::Offer(b, vec![(other, 1, 1)])]);
}

#[test]
fn priority_then_begun_then_the_lowest_number() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 1);
    let (first, said) = farm.submit(job(3));
    assert_eq!(said, [Said::Offer(worker, vec![(first, 1, 1)])]);
    let (second, _) = farm.submit(job(2));
    let (urgent, _) = farm.submit(JobSpec { priority: 9, ..job(1) });
    let (third, _) = farm.submit(JobSpec { priority: 0, ..job(1) });
    assert_eq!(farm.reason(second), Some(JobReason::Busy { slots: 1, ahead: 3 }));
    farm.accept(worker);
    let mut at = (first, 1);
    let mut turns = vec![at];
    while let Some(Said::Offer(_, tasks)) = farm.finished(worker, at.0, at.1, 1).first() {
        at = (tasks[0].0, tasks[0].1);
        turns.push(at);
        farm.accept(worker);
    }
    let expected = [(first, 1), (urgent, 1), (first, 2), (first, 3), (second, 1), (second, 2), (third, 1)];
    assert_eq!(turns, expected, "the highest priority, then what has begun, then the lowest number");
}

#[test]
fn no_more_run_than_may() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 10);
    let (id, said) = farm.submit(JobSpec { max_parallel: Some(2), ..job(3) });
    assert_eq!(said, [Said::Offer(worker, vec![(id, 1, 1), (id, 2, 1)])]);
    assert_eq!(farm.accept(worker), []);
    assert_eq!(farm.reason(id), Some(JobReason::MaxParallel { max: 2 }));
    let (other, said) = farm.submit(job(1));
    assert_eq!(said, [Said::Offer(worker, vec![(other, 1, 1)])], "others go on");
    farm.accept(worker);
    assert_eq!(farm.finished(worker, id, 2, 1), [Said::Offer(worker, vec![(id, 3, 1)])]);
}

/// A task wider than what is free keeps the next job worker that can hold it; smaller ones serve others meanwhile.
#[test]
fn a_wide_task_has_its_turn() {
    let mut farm = Farm::in_memory();
    let (large, small) = (farm.worker("large", 4), farm.worker("small", 2));
    let (narrow, said) = farm.submit(job(20));
    let on_large = vec![(narrow, 1, 1), (narrow, 3, 1), (narrow, 5, 1), (narrow, 6, 1)];
    let on_small = vec![(narrow, 2, 1), (narrow, 4, 1)];
    assert_eq!(said, [Said::Offer(large, on_large), Said::Offer(small, on_small)]);
    assert_eq!((farm.accept(large), farm.accept(small)), (vec![], vec![]));
    let (wide, said) = farm.submit(JobSpec { slots: 3, priority: 9, ..job(1) });
    assert_eq!(said, []);
    assert_eq!(farm.finished(large, narrow, 1, 1), [], "kept free");
    assert_eq!(farm.finished(small, narrow, 2, 1), [Said::Offer(small, vec![(narrow, 7, 1)])], "too small for it");
    assert_eq!(farm.finished(large, narrow, 3, 1), []);
    assert_eq!(farm.finished(large, narrow, 5, 1), [Said::Offer(large, vec![(wide, 1, 1)])]);
    assert_eq!(farm.accept(large), []);
    assert_eq!(farm.finished(large, narrow, 6, 1), [Said::Offer(large, vec![(narrow, 8, 1)])], "and all is as before");
}

/// What a job worker is kept free for may end, or be held: then the job worker serves others again.
#[test]
fn a_job_worker_is_kept_for_nothing_no_longer_than_needed() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 2);
    let (narrow, _) = farm.submit(job(9));
    farm.accept(worker);
    let (wide, _) = farm.submit(JobSpec { slots: 2, priority: 9, ..job(1) });
    assert_eq!(farm.finished(worker, narrow, 1, 1), []);
    let (_, said) = farm.cancel(wide, None);
    assert_eq!(said, [Said::Offer(worker, vec![(narrow, 3, 1)])]);
}

#[test]
fn a_task_too_wide_for_all_waits_alone() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 2);
    let (wide, said) = farm.submit(JobSpec { slots: 3, priority: 9, ..job(1) });
    assert_eq!(said, []);
    assert_eq!(farm.reason(wide), Some(JobReason::TooWide { slots: 3, largest: 2 }));
    let (other, said) = farm.submit(job(1));
    assert_eq!(said, [Said::Offer(worker, vec![(other, 1, 1)])]);
    let (large, said) = farm.joining("b", 3);
    assert_eq!(said, [Said::Offer(large, vec![(wide, 1, 1)])]);
}
