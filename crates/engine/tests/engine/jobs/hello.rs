//! Workers come, come back, and are lost.

use turno_engine::{ForemanEvent, Hello};
use turno_proto::model::job::{JobState, TaskState};
use turno_proto::model::{Code, Moment};

use super::farm::{Farm, Said, counts, job};

/// Proves S4.70 and S4.82: who said HELLO is a worker with its processors, each connection by itself.
#[test]
fn hello_makes_a_worker() {
    let mut farm = Farm::in_memory();
    let (id, _) = farm.submit(job(3));
    let conn = farm.connect();
    assert_eq!(farm.show(id).counts, counts(3, 0, 0, 0, 0), "nothing before HELLO");
    let said =
        farm.event(conn, ForemanEvent::Hello(Hello { id: None, name: "old".to_owned(), slots: 1, ..Hello::default() }));
    assert_eq!(said, [Said::Offer(conn, vec![(id, 1, 1)])]);
    farm.accept(conn);
    assert_eq!(farm.task(id, 1).worker.as_deref(), Some("old"));
    assert_eq!(farm.hello(conn, "", 2, &[(id, 1, None)]), [Said::Offer(conn, vec![(id, 2, 1)])], "it has grown");
}

/// Proves S4.76: a lost worker's tasks stay for the grace time; a HELLO that lists them keeps them, no matter who says it.
#[test]
fn a_worker_that_comes_back_keeps_its_tasks() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 2);
    let (id, _) = farm.submit(job(2));
    farm.accept(worker);
    assert_eq!(farm.lose(worker), []);
    assert_eq!(farm.show(id).counts, counts(0, 2, 0, 0, 0));
    assert_eq!(farm.pass(59_999), []);
    let conn = farm.connect();
    assert_eq!(farm.hello(conn, "another", 2, &[(id, 1, Some(1)), (id, 2, None)]), []);
    assert_eq!(farm.pass(100_000), [], "nothing is lost");
    assert_eq!((farm.finished(conn, id, 1, 1), farm.finished(conn, id, 2, 1)), (vec![], vec![]));
    assert_eq!(farm.show(id).state, JobState::Finished);
}

/// Proves S4.76: otherwise they wait again after the grace time, and have another attempt.
#[test]
fn a_worker_that_stays_away_loses_its_tasks() {
    let mut farm = Farm::on_disk();
    let (a, b) = (farm.worker("a", 1), farm.worker("b", 1));
    let (id, _) = farm.submit(job(2));
    farm.accept(a);
    farm.accept(b);
    farm.lose(a);
    assert_eq!(farm.finished(b, id, 2, 1), []);
    assert_eq!(farm.pass(59_999), []);
    assert_eq!(farm.pass(1), [Said::Offer(b, vec![(id, 1, 2)])], "another attempt");
    let conn = farm.connect();
    assert_eq!(farm.hello(conn, "a", 1, &[(id, 1, Some(1))]), [Said::Cancel(conn, id, 1)], "it is another's now");
    let request = farm.next_request();
    assert_eq!(farm.update(conn, id, 1, Some(1), true), [Said::Ack(conn, request)], "and its report counts no more");
    assert_eq!(farm.show(id).counts, counts(0, 1, 1, 0, 0));
    farm.accept(b);
    assert_eq!(farm.finished(b, id, 1, 2), []);
    assert_eq!(farm.task(id, 1).attempt, 2);
}

/// What is told of tasks whose worker is lost, and until when; how long that is can be set.
#[test]
fn tasks_of_a_lost_worker_say_so() {
    let mut farm = Farm::on_disk();
    farm.task_grace(5_000);
    let worker = farm.worker("a", 2);
    let (id, _) = farm.submit(job(2));
    farm.accept(worker);
    assert_eq!((farm.task(id, 1).lost_until, farm.show(id).lost), (None, 0));
    assert_eq!((farm.engine.status().jobs.tasks_running, farm.engine.status().jobs.tasks_lost), (2, 0));
    let until = Moment::from_unix_ms(farm.unix_ms() + 5_000);
    farm.lose(worker);
    for task in [1, 2] {
        let view = farm.task(id, task);
        assert_eq!((view.state, view.lost_until), (TaskState::Running, Some(until)));
    }
    assert_eq!((farm.show(id).lost, farm.show(id).counts), (2, counts(0, 2, 0, 0, 0)));
    let jobs = farm.engine.status().jobs;
    assert_eq!((jobs.known, jobs.unfinished, jobs.tasks_running, jobs.tasks_lost), (1, 1, 2, 2));
    assert_eq!(farm.pass(4_999), []);
    assert_eq!(farm.show(id).lost, 2);
    farm.pass(1);
    assert_eq!((farm.show(id).lost, farm.show(id).counts), (0, counts(2, 0, 0, 0, 0)));
    farm.cancel(id, None);
    let jobs = farm.engine.status().jobs;
    assert_eq!((jobs.known, jobs.unfinished, jobs.tasks_running), (1, 0, 0));
    // Over a restart the time is the same.
    let (worker, _) = farm.joining("a", 1);
    let (id, _) = farm.submit(job(1));
    farm.accept(worker);
    farm.restart(1_000);
    assert_eq!(farm.task(id, 1).lost_until, Some(Moment::from_unix_ms(farm.unix_ms() + 5_000)));
    assert_eq!(farm.engine.status().jobs.tasks_lost, 1);
}

/// A task whose workers are lost again and again may be what kills them: it fails in the end.
#[test]
fn a_task_that_loses_its_workers_fails() {
    let mut farm = Farm::on_disk();
    let (id, _) = farm.submit(job(1));
    for attempt in 1..=6 {
        let (worker, said) = farm.joining("a", 1);
        assert_eq!(said, [Said::Offer(worker, vec![(id, 1, attempt)])]);
        farm.lose(worker);
        assert_eq!(farm.pass(60_000), []);
    }
    let task = farm.task(id, 1);
    assert_eq!((task.state, task.attempt, task.status.as_deref()), (TaskState::Failed, 6, Some("worker_lost")));
    assert_eq!(farm.show(id).state, JobState::Failed);
}

/// Proves S4.77: what a worker has and does not list waits for its UPDATE, and then for another attempt.
#[test]
fn what_is_not_listed_is_lost_unless_its_update_follows() {
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", 3);
    let (id, _) = farm.submit(job(3));
    farm.accept(worker);
    assert_eq!(farm.hello(worker, "a", 3, &[(id, 2, Some(1))]), []);
    assert_eq!(farm.pass(4_999), []);
    assert_eq!(farm.finished(worker, id, 1, 1), [], "its UPDATE followed");
    assert_eq!(farm.pass(1), [Said::Offer(worker, vec![(id, 3, 2)])]);
    farm.accept(worker);
    assert_eq!(farm.finished(worker, id, 2, 1), [], "the one it listed stayed");

    farm.lose(worker);
    let back = farm.connect();
    assert_eq!(farm.hello(back, "a", 3, &[]), [], "the same over another connection");
    assert_eq!(farm.pass(4_999), []);
    assert_eq!(farm.pass(1), [Said::Offer(back, vec![(id, 3, 3)])]);
}

/// A cancelled task whose process is still there keeps its slot when the worker says HELLO again, and a retry waits until the
/// process is gone: no two workers have the task at once.
#[test]
fn a_process_that_lingers_outlives_a_reset() {
    for is_listed in [true, false] {
        let mut farm = Farm::on_disk();
        let a = farm.worker("a", 1);
        let (id, _) = farm.submit(job(1));
        farm.accept(a);
        farm.worker("b", 1);
        assert_eq!(farm.cancel(id, None).1, [Said::Cancel(a, id, 1)]);
        farm.confirm(a, id, 1);
        assert_eq!(farm.retry(id, Some(vec![(1, 1)])), (1, vec![]), "its process may be there still");
        let said = if is_listed {
            assert_eq!(farm.hello(a, "a", 1, &[(id, 1, Some(1))]), [Said::Cancel(a, id, 1)], "it is there");
            farm.failed(a, id, 1, 1)
        } else {
            farm.hello(a, "a", 1, &[])
        };
        assert!(matches!(&said[..], [Said::Offer(_, tasks)] if *tasks == [(id, 1, 2)]), "{said:?}");
    }
}

/// Proves S4.77: what the foreman does not know is cancelled, and so is nonsense.
#[test]
fn what_is_not_its_own_is_cancelled() {
    let mut farm = Farm::on_disk();
    let (a, b) = (farm.worker("a", 1), farm.worker("b", 1));
    let (id, _) = farm.submit(job(3));
    farm.accept(a);
    farm.accept(b);
    let listed = [(99, 1, None), (id, 77, None), (id, 2, Some(1)), (id, 3, None), (id, 1, Some(8)), (id, 77, Some(1))];
    let said = farm.hello(a, "a", 1, &listed);
    let expected = [
        Said::Cancel(a, id, 1),
        Said::Cancel(a, id, 2),
        Said::Cancel(a, id, 3),
        Said::Cancel(a, id, 77),
        Said::Cancel(a, 99, 1),
    ];
    assert_eq!(said, expected, "another's, waiting, unknown, of another attempt; each once");
    for (job, task) in [(99, 1), (id, 77)] {
        assert_eq!((farm.confirm(a, job, task), farm.no_such_job(a, job, task)), (vec![], vec![]));
    }
    assert_eq!(farm.show(id).counts, counts(1, 2, 0, 0, 0), "nothing else changed");
    assert_eq!(farm.pass(5_000), [Said::Offer(a, vec![(id, 1, 2)])], "what it did not list was lost");
}

/// The same id over a newer connection: the older one is closed, and its tasks go on over the newer.
#[test]
fn a_newer_connection_takes_the_place_of_the_older() {
    let mut farm = Farm::on_disk();
    let old = farm.worker("a", 1);
    let (id, _) = farm.submit(job(2));
    farm.accept(old);
    let new = farm.connect();
    let said = farm.hello(new, "a", 1, &[(id, 1, Some(1))]);
    assert_eq!(said, [Said::Close(old, Code::ConnectionLost)]);
    assert_eq!(farm.update(old, id, 1, Some(1), true), [], "nobody listens there any more");
    assert_eq!(farm.lose(old), []);
    assert_eq!(farm.finished(new, id, 1, 1), [Said::Offer(new, vec![(id, 2, 1)])]);
}

/// Proves S4.63: an UPDATE that crosses a reconnect is counted once, with the attempt named or from an old peer without.
#[test]
fn an_update_survives_a_reconnect() {
    for attempt in [Some(1), None] {
        let mut farm = Farm::on_disk();
        let worker = farm.worker("a", 1);
        let (id, _) = farm.submit(job(1));
        farm.accept(worker);
        farm.quick = false;
        assert_eq!(farm.update(worker, id, 1, attempt, true), [], "on its way to the disk");
        farm.lose(worker);
        let back = farm.connect();
        let said = farm.hello(back, "a", 1, &[]);
        assert_eq!(said, []);
        assert_eq!(farm.update(back, id, 1, attempt, true), [], "the same again");
        assert_eq!(farm.flush(), [Said::Ack(back, 2)]);
        assert_eq!(farm.show(id).counts, counts(0, 0, 1, 0, 0));
        assert_eq!(farm.update(back, id, 1, attempt, true), [Said::Ack(back, 3)], "and again");
        assert_eq!(farm.show(id).counts, counts(0, 0, 1, 0, 0));
    }
}

/// An offer that was not answered when HELLO came again is neither running nor lost: its answer is still to come.
#[test]
fn an_open_offer_outlives_a_reset() {
    let mut farm = Farm::in_memory();
    let worker = farm.worker("a", 1);
    let (id, _) = farm.submit(job(1));
    assert_eq!(farm.hello(worker, "a", 1, &[]), []);
    assert_eq!(farm.pass(100_000), []);
    farm.accept(worker);
    assert_eq!(farm.finished(worker, id, 1, 1), []);
}

/// Proves S4.40: more than 65,534 processors cannot be; as many can.
#[test]
fn too_many_processors_are_refused() {
    let mut farm = Farm::in_memory();
    let conn = farm.connect();
    assert_eq!(farm.hello(conn, "a", 65_535, &[]), [Said::Close(conn, Code::BadSlots)]);
    assert_eq!(farm.hello(conn, "a", 1, &[]), [], "it is closed");
    assert_eq!(farm.lose(conn), []);
    let (id, _) = farm.submit(job(1_000));
    let (worker, said) = farm.joining("a", 65_534);
    assert!(matches!(&said[..], [Said::Offer(at, tasks)] if *at == worker && tasks.len() == 256), "{said:?}");
    assert_eq!(farm.show(id).counts.running, 256);
    let (_, said) = farm.joining("none", 0);
    assert_eq!(said, [], "none is legal too (S4.37)");
}
