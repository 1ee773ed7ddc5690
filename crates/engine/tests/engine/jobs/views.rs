//! What is told of jobs in listings.

use turno_engine::Effect;
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
    let Said::Other(Effect::Answer { answer, .. }) = said else { panic!("{said:?}") };
    let AdminAnswer::Jobs { jobs, .. } = *answer else { panic!("{answer:?}") };
    let told: Vec<(u64, &[String], u32)> = jobs.iter().map(|job| (job.id.0, &job.tags[..], job.items)).collect();
    assert_eq!(told, [(2, &["may".to_owned(), "night".to_owned()][..], 0), (1, &[][..], 0)]);
    assert!(jobs.iter().all(|job| job.spec.is_none()));
}
