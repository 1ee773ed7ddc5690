//! Tasks go only to workers that have what their job asks for.

use turno_engine::{ForemanEvent, Hello, NativeEffect, PeerEffect};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::job::{JobReason, JobSpec};

use super::farm::{Farm, Said, counts, job, labels};

fn needs(wanted: &[(&str, &str)], count: u32) -> JobSpec {
    JobSpec { labels: labels(wanted), ..job(count) }
}

fn no_labels(wanted: &[(&str, &str)]) -> Option<JobReason> {
    Some(JobReason::NoLabels { labels: wanted.iter().map(|(key, value)| format!("{key}={value}")).collect() })
}

#[test]
fn a_worker_has_all_labels_of_the_job() {
    let table = [
        (&[][..], &[][..], true),
        (&[], &[("gpu", "yes")], true),
        (&[("gpu", "yes")], &[("gpu", "yes")], true),
        (&[("gpu", "yes")], &[("pool", "p"), ("gpu", "yes")], true),
        (&[("pool", "p"), ("gpu", "yes")], &[("gpu", "yes"), ("pool", "p")], true),
        (&[("gpu", "yes")], &[], false),
        (&[("gpu", "yes")], &[("gpu", "no")], false),
        (&[("gpu", "")], &[("gpu", "yes")], false),
        (&[("gpu", "yes"), ("pool", "p")], &[("gpu", "yes")], false),
    ];
    for (wanted, has, good) in table {
        for first in [true, false] {
            let mut farm = Farm::in_memory();
            let (said, id) = if first {
                let (id, _) = farm.submit(needs(wanted, 1));
                (farm.labelled("a", 1, has).1, id)
            } else {
                farm.labelled("a", 1, has);
                let (id, said) = farm.submit(needs(wanted, 1));
                (said, id)
            };
            assert_eq!(!said.is_empty(), good, "{wanted:?} {has:?}");
            let reason = if good { None } else { no_labels(wanted) };
            assert_eq!(farm.reason(id), reason, "{wanted:?} {has:?}");
        }
    }
}

/// A job whose labels nobody has holds nobody up, however urgent it is; and begins when somebody comes.
#[test]
fn nobody_waits_for_a_job_that_nobody_can_do() {
    let mut farm = Farm::in_memory();
    let (rare, _) = farm.submit(JobSpec { priority: 9, slots: 2, ..needs(&[("gpu", "yes")], 2) });
    assert_eq!(farm.reason(rare), Some(JobReason::NoWorker));
    let (a, _) = farm.labelled("a", 4, &[("pool", "p")]);
    assert_eq!(farm.reason(rare), no_labels(&[("gpu", "yes")]));
    let (usual, said) = farm.submit(job(5));
    assert_eq!(said, [Said::Offer(a, (1..=4).map(|task| (usual, task, 1)).collect())]);
    assert_eq!(farm.reason(usual), Some(JobReason::Busy { slots: 4, ahead: 0 }), "nothing is kept free for it");
    let (narrow, said) = farm.labelled("b", 1, &[("gpu", "yes")]);
    assert_eq!(said, [Said::Offer(narrow, vec![(usual, 5, 1)])], "it has what is asked for, but not enough of it");
    assert_eq!(farm.reason(rare), Some(JobReason::TooWide { slots: 2, largest: 1 }));
    let (b, said) = farm.labelled("c", 2, &[("gpu", "yes"), ("pool", "q")]);
    assert_eq!(said, [Said::Offer(b, vec![(rare, 1, 1)])]);
    farm.accept(b);
    assert_eq!(farm.reason(rare), Some(JobReason::Busy { slots: 3, ahead: 0 }), "only theirs are counted");
    assert_eq!(farm.finished(b, rare, 1, 1), [Said::Offer(b, vec![(rare, 2, 1)])]);
}

/// The order of jobs holds among those that may use the same worker.
#[test]
fn whose_turn_it_is_among_jobs_with_labels() {
    let mut farm = Farm::in_memory();
    let (low, _) = farm.submit(JobSpec { priority: 1, ..needs(&[("gpu", "yes")], 2) });
    let (usual, _) = farm.submit(job(2));
    let (high, _) = farm.submit(JobSpec { priority: 9, ..needs(&[("gpu", "yes"), ("pool", "p")], 1) });
    let (a, said) = farm.labelled("a", 5, &[("gpu", "yes"), ("pool", "p")]);
    let turns = vec![(high, 1, 1), (usual, 1, 1), (usual, 2, 1), (low, 1, 1), (low, 2, 1)];
    assert_eq!(said, [Said::Offer(a, turns)]);
}

/// Proves the same for a wide job: the worker that is kept free is one that it may use.
#[test]
fn a_wide_job_keeps_a_worker_with_its_labels() {
    let mut farm = Farm::in_memory();
    let (plain, _) = farm.labelled("plain", 3, &[]);
    let (gpu, _) = farm.labelled("gpu", 3, &[("gpu", "yes")]);
    let (usual, _) = farm.submit(job(20));
    farm.accept(plain);
    farm.accept(gpu);
    let (wide, _) = farm.submit(JobSpec { slots: 3, priority: 9, ..needs(&[("gpu", "yes")], 1) });
    let on = |farm: &mut Farm, worker: &str| {
        let running = farm.tasks(usual, None).into_iter().filter(|task| task.worker.as_deref() == Some(worker));
        running.map(|task| task.task).collect::<Vec<_>>()
    };
    let (on_plain, on_gpu) = (on(&mut farm, "plain"), on(&mut farm, "gpu"));
    assert_eq!(farm.finished(plain, usual, on_plain[0], 1).len(), 1, "not kept: it has no gpu");
    assert_eq!(farm.finished(gpu, usual, on_gpu[0], 1), [], "kept free");
    assert_eq!(farm.finished(gpu, usual, on_gpu[1], 1), []);
    // The worker is another from now on: nothing is kept any more.
    farm.labels.insert("gpu".to_owned(), Vec::new());
    let said = farm.hello(gpu, "gpu", 3, &[(usual, on_gpu[2], Some(1))]);
    assert_eq!(said.len(), 1, "what was kept free serves others: {said:?}");
    assert_eq!(farm.reason(wide), no_labels(&[("gpu", "yes")]));
}

/// A worker that says HELLO again with other labels keeps what it runs, and is given what it may have from then on. What
/// was on its way to it waits again.
#[test]
fn labels_may_change() {
    let mut farm = Farm::on_disk();
    let (a, _) = farm.labelled("a", 2, &[("gpu", "yes")]);
    let (id, said) = farm.submit(needs(&[("gpu", "yes")], 3));
    assert_eq!(said, [Said::Offer(a, vec![(id, 1, 1), (id, 2, 1)])]);
    farm.accept(a);
    farm.labels.insert("a".to_owned(), Vec::new());
    farm.hello(a, "a", 2, &[(id, 1, Some(1)), (id, 2, Some(1))]);
    assert_eq!(farm.finished(a, id, 1, 1), [], "the third is for others");
    farm.quick = false;
    farm.labels.insert("a".to_owned(), labels(&[("gpu", "yes")]));
    assert_eq!(farm.hello(a, "a", 2, &[(id, 2, Some(1))]), [], "its start is on its way to the disk");
    farm.labels.insert("a".to_owned(), Vec::new());
    farm.hello(a, "a", 2, &[(id, 2, Some(1))]);
    assert_eq!(farm.flush(), [], "and is not told");
    assert_eq!(farm.show(id).counts, counts(1, 1, 1, 0, 0));
    farm.quick = true;
    farm.restart(1);
    let (b, said) = farm.labelled("b", 1, &[("gpu", "yes")]);
    assert_eq!(said, [Said::Offer(b, vec![(id, 3, 1)])], "the same attempt: it was none");
}

/// What cannot be a label is left out, and so is what is too much; the rest is shown.
#[test]
fn labels_of_a_worker_are_shown() {
    let mut farm = Farm::in_memory();
    let conn = farm.connect();
    let mut told = labels(&[("gpu", "yes"), ("", "x"), ("a=b", "x"), ("k", "two\nlines"), ("pool", "p")]);
    told.extend((0..100).map(|at| (format!("x{at:03}"), String::new())));
    let hello = Hello { id: Some("a".to_owned()), slots: 1, labels: told, ..Hello::default() };
    farm.event(conn, ForemanEvent::Hello(hello));
    let said = farm.call(AdminCall::WorkerShow { worker: "a".to_owned() });
    let [
        Said::Other(turno_engine::Effect::Peer(PeerEffect::Native {
            effect: NativeEffect::Admin { answer, .. }, ..
        })),
    ] = &said[..]
    else {
        panic!("{said:?}")
    };
    let AdminAnswer::Worker { worker } = &**answer else { panic!("{answer:?}") };
    assert_eq!(worker.labels.len(), 64);
    assert_eq!((worker.labels["gpu"].as_str(), worker.labels["pool"].as_str()), ("yes", "p"));
    assert!(!worker.labels.contains_key("") && !worker.labels.contains_key("k"));
}

/// Many sets of labels that nobody asks for any more are forgotten, and workers with them.
#[test]
fn many_sets_of_labels() {
    let mut farm = Farm::in_memory();
    let many: Vec<(String, String)> = (0..40).map(|at| (format!("k{at}"), "x".to_owned())).collect();
    farm.labels.insert("a".to_owned(), many);
    let a = farm.worker("a", 1);
    for at in 0..400 {
        let (one, other) = (format!("k{}", at % 40), format!("k{}", (at / 40 + at + 1) % 40));
        let wanted = if one == other {
            vec![(one, "x".to_owned())]
        } else {
            vec![(one, "x".to_owned()), (other, "x".to_owned())]
        };
        let (id, said) = farm.submit(JobSpec { labels: wanted, ..job(1) });
        assert_eq!(said, [Said::Offer(a, vec![(id, 1, 1)])]);
        farm.accept(a);
        assert_eq!(farm.finished(a, id, 1, 1), []);
    }
}
