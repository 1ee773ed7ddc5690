//! What is on the disk, when.

use turno_engine::{AttemptCounts, Persist, TaskRecord};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{JobId, JobSpec, JobState, TaskState};

use super::farm::{Farm, Said, counts, job};

/// I19, I20: the operations of one task's life, and the moment of each.
#[test]
fn a_life_on_the_disk() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { retries: 1, backoff_ms: 500, ..job(2) });
    farm.accept(worker);
    let started = farm.unix_ms();
    let first = (JobId(id), 0);
    let tried = AttemptCounts { attempt: 1, failures: 0, losses: 0 };
    let (key, name) = ("a".into(), "a".into());
    assert_eq!(
        farm.store.tasks[&first],
        TaskRecord::Running { tried, key, worker: name, started_unix_ms: started },
        "its start, before the worker hears of it"
    );
    farm.failed(worker, id, 1, 1);
    let tried = AttemptCounts { attempt: 1, failures: 1, losses: 0 };
    let waits = TaskRecord::Waiting { tried, due_unix_ms: started + 500 };
    assert_eq!(farm.store.tasks[&first], waits, "its failure, before the worker may forget it");
    farm.accept(worker);
    assert_eq!(farm.finished(worker, id, 2, 1), []);
    assert_eq!(farm.store.sizes(), (1, 2, 0));
    farm.pass(500);
    farm.accept(worker);
    farm.quick = false;
    farm.update(worker, id, 1, Some(2), true);
    assert_eq!(farm.stored(1), [Said::Ack(worker, farm.next_request() - 1)]);
    let (_, ops) = &farm.groups[0];
    let kinds: Vec<&str> = ops
        .iter()
        .map(|op| match op {
            Persist::SetChunk { chunk: 0, .. } => "chunk",
            Persist::UnsetTask { .. } => "task",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["chunk", "task", "task"], "one record in the place of two, all or nothing");
    farm.flush();
    assert_eq!(farm.store.sizes(), (1, 0, 1));
}

/// A job of many finished tasks is a record for each 1,024 of them, and all is known after a restart.
#[test]
fn chunks_take_the_place_of_tasks() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 256);
    let (id, _) = farm.submit(job(2_100));
    let mut done = 0;
    while done < 2_060 {
        farm.accept(worker);
        let running: Vec<u32> = farm.tasks(id, Some(TaskState::Running)).iter().map(|task| task.task).collect();
        for task in running.into_iter().take(2_060 - done as usize) {
            farm.ended(worker, id, task, 1, task % 100 != 0);
            done += 1;
        }
    }
    let (jobs, tasks, chunks) = farm.store.sizes();
    assert_eq!((jobs, chunks), (1, 2));
    assert!(tasks <= 52, "{tasks}: those of the third chunk alone");
    let before = farm.show(id).counts;
    assert_eq!((before.finished, before.failed), (2_040, 20));
    let (failed, finished) = (farm.task(id, 100), farm.task(id, 101));
    farm.restart(1);
    assert_eq!(farm.show(id).counts, before);
    assert_eq!((farm.task(id, 100), farm.task(id, 101)), (failed.clone(), finished));
    assert_eq!((failed.status.as_deref(), failed.worker.as_deref()), (Some("went wrong"), Some("a")));
    let worker = farm.connect();
    let running: Vec<_> = farm.tasks(id, Some(TaskState::Running)).iter().map(|task| (id, task.task, None)).collect();
    farm.hello(worker, "a", 256, &running);
    for (_, task, _) in running {
        farm.finished(worker, id, task, 1);
    }
    let view = farm.show(id);
    assert_eq!((view.state, view.counts), (JobState::Failed, counts(0, 0, 2_080, 20, 0)));
    assert_eq!(farm.store.sizes(), (1, 0, 3));
    farm.told(AdminCall::JobRm { job: JobId(id) });
    assert_eq!(farm.store.sizes(), (0, 0, 0));
}

/// A chunk of tasks of which some were cancelled while they waited is brought together as well.
#[test]
fn a_chunk_with_cancelled_tasks() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 2);
    let (id, _) = farm.submit(JobSpec { retries: 1, backoff_ms: 9_000, ..job(1_500) });
    farm.accept(worker);
    farm.finished(worker, id, 1, 1);
    farm.failed(worker, id, 2, 1);
    farm.accept(worker);
    assert_eq!(farm.store.sizes(), (1, 4, 0));
    farm.cancel(id, None);
    for task in [3, 4] {
        farm.confirm(worker, id, task);
    }
    assert_eq!(farm.show(id).counts, counts(0, 0, 1, 0, 1_499));
    assert_eq!(farm.store.sizes(), (1, 0, 1), "the second chunk has nothing to tell");
    let tasks = [farm.task(id, 1), farm.task(id, 2), farm.task(id, 3)];
    assert_eq!(tasks[2].state, TaskState::Cancelled);
    let ended = farm.show(id).ended_at;
    farm.restart(1);
    assert_eq!([farm.task(id, 1), farm.task(id, 2), farm.task(id, 3)].map(|task| task.state), tasks.map(|t| t.state));
    assert_eq!((farm.show(id).counts, farm.show(id).ended_at), (counts(0, 0, 1, 0, 1_499), ended));
}
