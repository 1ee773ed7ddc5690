//! Jobs whose tasks have the numbers of a list, such as 1, 3 and 5 to 8.

use turno_proto::model::Code;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{Array, JobId, JobSpec, JobState, Numbers};

use super::farm::{Farm, Said, counts, job};

fn listed(list: &str) -> JobSpec {
    let (array, parts) = Numbers::parse(list).expect("a list");
    JobSpec { array, parts, ..job(1) }
}

/// Every task runs under its own number, is found by it after a restart, and is cancelled and retried by it.
#[test]
fn tasks_have_the_numbers_of_the_list() {
    for mut farm in [Farm::in_memory(), Farm::on_disk()] {
        let stores = farm.stores;
        let worker = farm.worker("a", 2);
        let (id, said) = farm.submit(listed("1,3,5-8"));
        assert_eq!(said, [Said::Offer(worker, vec![(id, 1, 1), (id, 3, 1)])]);
        farm.accept(worker);
        assert_eq!(farm.show(id).numbers().to_string(), "1,3,5-8");
        assert_eq!(farm.finished(worker, id, 3, 1), [Said::Offer(worker, vec![(id, 5, 1)])]);
        farm.accept(worker);
        assert_eq!(farm.refused(AdminCall::JobExplain { job: JobId(id), task: Some(4) }), Code::NotFound);
        let (view, _) = farm.cancel(id, Some(vec![(2, 4), (6, 7)]));
        assert_eq!(view.counts, counts(1, 2, 1, 0, 2), "3 has ended, 2 and 4 are none of its tasks");
        let numbers = |farm: &mut Farm| farm.tasks(id, None).iter().map(|task| task.task).collect::<Vec<_>>();
        assert_eq!(numbers(&mut farm), [1, 3, 5, 6, 7, 8]);
        assert_eq!(farm.retry(id, Some(vec![(4, 6)])), (1, vec![]));
        if stores {
            farm.restart(1);
            assert_eq!((numbers(&mut farm), farm.show(id).counts), (vec![1, 3, 5, 6, 7, 8], counts(2, 2, 1, 0, 1)));
            let conn = farm.connect();
            farm.hello(conn, "a", 2, &[(id, 1, Some(1)), (id, 5, Some(1))]);
            assert_eq!(farm.finished(conn, id, 5, 1), [Said::Offer(conn, vec![(id, 6, 1)])]);
        } else {
            assert_eq!(farm.finished(worker, id, 5, 1), [Said::Offer(worker, vec![(id, 6, 1)])]);
        }
    }
}

#[test]
fn pages_go_on_between_the_parts() {
    let mut farm = Farm::in_memory();
    let (id, _) = farm.submit(listed("1-3,10,20-24:2"));
    let mut after = None;
    let mut seen = Vec::new();
    loop {
        let call = AdminCall::JobTasks { job: JobId(id), state: None, after, limit: 2 };
        let (tasks, next) = farm.task_page(call);
        seen.extend(tasks.iter().map(|task| task.task));
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, [1, 2, 3, 10, 20, 22, 24]);
    let (tasks, _) = farm.task_page(AdminCall::JobTasks { job: JobId(id), state: None, after: Some(10), limit: 1 });
    assert_eq!(tasks[0].task, 20);
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let mut farm = Farm::in_memory();
    let part = |first, count| Array { first, count, step: 1 };
    for (array, parts) in [
        (part(1, 3), vec![part(1, 1), part(3, 1)]),
        (part(1, 4), vec![part(1, 2), part(2, 2)]),
        (part(1, 1), vec![part(1, 1)]),
        (part(1, 1_001), (0..1_001).map(|at| part(1 + 2 * at, 1)).collect()),
    ] {
        let spec = Box::new(JobSpec { array, parts, ..job(1) });
        assert_eq!(farm.refused(AdminCall::JobSubmit { spec }), Code::BadJob);
    }
    let (id, _) = farm.submit(listed("8"));
    assert_eq!(farm.show(id).state, JobState::Waiting);
    assert_eq!(farm.tasks(id, None)[0].task, 8, "a single number is that task");
}
