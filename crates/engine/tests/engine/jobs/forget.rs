//! Jobs that have ended are kept for a while, and then forgotten.

use turno_proto::model::Code;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{After, AfterWhen, JobId, JobSpec};

use super::farm::{Farm, job};
use super::needs::with_items;

const KEEP_MS: u64 = 7 * 24 * 3_600_000;

fn is_known(farm: &mut Farm, id: u64) -> bool {
    let said = farm.call(AdminCall::JobShow { job: Some(JobId(id)) });
    match &said[..] {
        [super::farm::Said::Job(..)] => true,
        [super::farm::Said::Error(_, Code::NotFound)] => false,
        other => panic!("{other:?}"),
    }
}

/// Submits a job with items that ends at once.
fn ended(farm: &mut Farm) -> u64 {
    let (id, _) = farm.submit(with_items(3));
    farm.cancel(id, None);
    id
}

#[test]
fn a_job_is_forgotten_when_its_time_is_over() {
    for mut farm in [Farm::in_memory(), Farm::on_disk()] {
        farm.keep_finished(Some(KEEP_MS));
        let (lasting, _) = farm.submit(job(1));
        let first = ended(&mut farm);
        farm.pass(1_000);
        let second = ended(&mut farm);
        farm.pass(KEEP_MS - 1_001);
        assert_eq!((is_known(&mut farm, first), is_known(&mut farm, second)), (true, true));
        farm.pass(1);
        assert_eq!((is_known(&mut farm, first), is_known(&mut farm, second)), (false, true));
        farm.pass(1_000);
        assert!(!is_known(&mut farm, second) && is_known(&mut farm, lasting), "what has not ended stays");
        assert!(farm.store.jobs.len() <= 1 && farm.store.items.is_empty(), "nothing of them is left on the disk");
        assert!(farm.submit(job(1)).0 > second, "no number is used twice");
    }
}

/// The time goes on while the broker is away.
#[test]
fn a_restarted_broker_forgets_what_is_over() {
    let mut farm = Farm::on_disk();
    farm.keep_finished(Some(KEEP_MS));
    let id = ended(&mut farm);
    farm.restart(KEEP_MS - 10);
    farm.pass(9);
    assert!(is_known(&mut farm, id));
    farm.pass(1);
    assert!(!is_known(&mut farm, id));
    let id = ended(&mut farm);
    farm.restart(10 * KEEP_MS);
    farm.pass(0);
    assert!(!is_known(&mut farm, id));
    farm.restart(1);
    assert!(!is_known(&mut farm, id) && farm.submit(job(1)).0 == id + 1);
}

/// A disk that refuses is asked again a minute later, and others may remove the job meanwhile.
#[test]
fn what_the_disk_refuses_is_tried_again() {
    let mut farm = Farm::on_disk();
    farm.keep_finished(Some(KEEP_MS));
    let (first, second) = (ended(&mut farm), ended(&mut farm));
    farm.quick = false;
    farm.pass(KEEP_MS);
    farm.refuse();
    assert!(is_known(&mut farm, first) && is_known(&mut farm, second));
    farm.quick = true;
    farm.told(AdminCall::JobRm { job: JobId(first) });
    farm.pass(59_999);
    assert!(is_known(&mut farm, second));
    farm.pass(1);
    assert!(!is_known(&mut farm, second));
}

/// What others wait for is there until they know of its end.
#[test]
fn many_are_forgotten_in_portions() {
    let mut farm = Farm::on_disk();
    farm.explained_every = 1_000;
    farm.keep_finished(Some(KEEP_MS));
    let (first, _) = farm.submit(job(1));
    let after = vec![After { job: JobId(first), when: AfterWhen::Any }];
    let (later, _) = farm.submit(JobSpec { after, hold: true, ..job(1) });
    farm.cancel(first, None);
    let many: Vec<u64> = (0..250).map(|_| ended(&mut farm)).collect();
    farm.pass(KEEP_MS);
    farm.pass(1);
    farm.pass(1);
    farm.pass(1);
    assert!(many.iter().all(|id| !is_known(&mut farm, *id)));
    assert!(!is_known(&mut farm, first) && is_known(&mut farm, later));
}

#[test]
fn without_a_time_nothing_is_forgotten() {
    let mut farm = Farm::in_memory();
    let id = ended(&mut farm);
    farm.pass(1_000 * KEEP_MS);
    assert!(is_known(&mut farm, id));
}
