//! What a task is for, and what became of its attempts.

use turno_proto::items::Builder;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::job::{AttemptView, JobId, JobSpec, TaskState, TaskView};
use turno_proto::model::limits::{LISTED_ITEM_BYTES_MAX, TASK_ATTEMPTS_KEPT_MAX, TASK_GRACE_MS};
use turno_proto::model::{Moment, Seconds};

use super::farm::{Farm, job};

impl Farm {
    /// A task as `job.explain` tells of it.
    fn explained(&mut self, job: u64, task: u32) -> (TaskView, Vec<AttemptView>) {
        match self.aside(AdminCall::JobExplain { job: JobId(job), task: Some(task) }) {
            Some(AdminAnswer::TaskExplained { task, attempts, .. }) => (*task, attempts),
            other => panic!("{other:?} explains nothing"),
        }
    }
}

/// How an attempt ended: number, worker, end, exit status and what is said of it.
type Short<'a> = (u32, &'a str, TaskState, Option<i32>, Option<&'a str>);

fn short(attempts: &[AttemptView]) -> Vec<Short<'_>> {
    let short = attempts.iter().map(|AttemptView { attempt, worker, state, exit_code, status, .. }| {
        (*attempt, worker.as_str(), *state, *exit_code, status.as_deref())
    });
    short.collect()
}

/// Attempts that failed, whose worker was lost, that were given back and that were retried are all told, in order.
#[test]
fn earlier_attempts_are_told() {
    let mut farm = Farm::on_disk();
    let a = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { retries: 1, ..job(1) });
    farm.accept(a);
    assert_eq!(farm.explained(id, 1).1, []);
    let began = farm.unix_ms();
    farm.pass(20);
    farm.failed(a, id, 1, 1);
    farm.accept(a);
    let (task, attempts) = farm.explained(id, 1);
    assert_eq!((task.attempt, task.state), (2, TaskState::Running));
    assert_eq!(short(&attempts), [(1, "a", TaskState::Failed, Some(1), Some("went wrong"))]);
    let moment = |unix_ms| Some(Moment::from_unix_ms(unix_ms));
    assert_eq!((attempts[0].started_at, attempts[0].ended_at), (moment(began), moment(began + 20)));
    assert_eq!(attempts[0].seconds, Some(Seconds::from_millis(20)));
    farm.lose(a);
    farm.pass(TASK_GRACE_MS);
    let (b, _) = farm.joining("b", 1);
    farm.accept(b);
    farm.failed(b, id, 1, 3);
    assert_eq!(farm.task(id, 1).state, TaskState::Failed);
    farm.retry(id, None);
    farm.accept(b);
    let (task, attempts) = farm.explained(id, 1);
    assert_eq!((task.attempt, task.worker.as_deref()), (4, Some("b")));
    assert_eq!(
        short(&attempts),
        [
            (1, "a", TaskState::Failed, Some(1), Some("went wrong")),
            (2, "a", TaskState::Failed, None, Some("worker_lost")),
            (3, "b", TaskState::Failed, Some(1), Some("went wrong")),
        ]
    );
    farm.restart(1);
    assert_eq!(farm.explained(id, 1).1, [], "nothing is decided by them, and nothing of them is stored");
}

#[test]
fn an_attempt_that_was_given_back_did_not_fail() {
    let mut farm = Farm::in_memory();
    let a = farm.worker("a", 1);
    let (id, _) = farm.submit(job(1));
    farm.accept(a);
    farm.gave_back(a, id, 1, 1);
    let (_, attempts) = farm.explained(id, 1);
    assert_eq!(short(&attempts), [(1, "a", TaskState::Cancelled, None, Some("given_back"))]);
}

/// However often a task is tried, so many attempts are remembered; those of a job that is removed are not.
#[test]
fn attempts_are_remembered_up_to_a_limit() {
    let mut farm = Farm::in_memory();
    let a = farm.worker("a", 1);
    let (id, _) = farm.submit(JobSpec { retries: 40, ..job(1) });
    farm.accept(a);
    for attempt in 1..=41 {
        farm.failed(a, id, 1, attempt);
        farm.accept(a);
    }
    let (task, attempts) = farm.explained(id, 1);
    assert_eq!((task.attempt, attempts.len()), (41, TASK_ATTEMPTS_KEPT_MAX));
    assert_eq!(attempts.last().map(|one| one.attempt), Some(40));
    farm.told(AdminCall::JobRm { job: JobId(id) });
}

/// Listings and answers say what a task is for. A long item is cut in listings only.
#[test]
fn items_are_told_with_their_tasks() {
    let mut farm = Farm::on_disk();
    let long = "ü".repeat(LISTED_ITEM_BYTES_MAX);
    let mut items = Builder::new(2).expect("two fields");
    items.push(&["a b", "0.5"]).expect("short");
    items.push(&["x", long.as_str()]).expect("not too long");
    let (id, _) = farm.submit(JobSpec { items: items.finish(), ..job(2) });
    for _ in 0..2 {
        let tasks = farm.tasks(id, None);
        assert_eq!(tasks[0].item, ["a b", "0.5"]);
        assert_eq!(tasks[1].item[0], "x");
        let cut = &tasks[1].item[1];
        assert!(cut.ends_with('…') && cut.len() <= LISTED_ITEM_BYTES_MAX + "…".len(), "{cut}");
        assert_eq!(farm.explained(id, 2).0.item, ["x", long.as_str()]);
        farm.restart(1);
    }
    let (plain, _) = farm.submit(job(1));
    assert!(farm.tasks(plain, None)[0].item.is_empty());
}
