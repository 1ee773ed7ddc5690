//! What is told of jobs in listings.

use turno_engine::{Effect, NativeEffect, PeerEffect};
use turno_proto::model::Moment;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::job::JobSpec;

use super::farm::{Farm, Said, job};

/// Tags are there to choose by, so a listing tells them; what else was asked for it does not.
#[test]
fn a_listing_tells_tags() {
    let mut farm = Farm::in_memory();
    farm.submit(job(2));
    farm.submit(JobSpec { tags: vec!["may".to_owned(), "night".to_owned()], ..job(2) });
    let said = farm.call(AdminCall::JobLs { before: None, limit: 10 }).remove(0);
    let Said::Other(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. })) = said else {
        panic!("{said:?}")
    };
    let AdminAnswer::Jobs { jobs, .. } = *answer else { panic!("{answer:?}") };
    let told: Vec<(u64, &[String], u32)> = jobs.iter().map(|job| (job.id.0, &job.tags[..], job.items)).collect();
    assert_eq!(told, [(2, &["may".to_owned(), "night".to_owned()][..], 0), (1, &[][..], 0)]);
    assert!(jobs.iter().all(|job| job.spec.is_none()));
}

/// At no moment do more tasks run, by what is told of them, than their worker has slots.
#[test]
fn tasks_that_follow_each_other_do_not_overlap() {
    const SLOTS: u16 = 3;
    let mut farm = Farm::on_disk();
    let worker = farm.worker("a", SLOTS);
    let (id, mut said) = farm.submit(job(60));
    let mut running = Vec::new();
    for step in 0_u64.. {
        for said in said.drain(..) {
            if let Said::Offer(_, tasks) = said {
                running.extend(tasks.into_iter().map(|(_, task, _)| task));
                farm.accept(worker);
            }
        }
        let Some(last) = running.len().checked_sub(1) else { break };
        farm.pass(7 + step % 9);
        let task = running.remove(step as usize % (last + 1));
        said = farm.finished(worker, id, task, 1);
    }
    let times: Vec<(Moment, Moment)> =
        farm.tasks(id, None).iter().map(|task| (task.started_at.unwrap(), task.ended_at.unwrap())).collect();
    assert_eq!(times.len(), 60);
    for (moment, _) in &times {
        let at_once = times.iter().filter(|(started, ended)| started <= moment && moment < ended).count();
        assert!(at_once <= usize::from(SLOTS), "{at_once} tasks at {moment}");
    }
}
