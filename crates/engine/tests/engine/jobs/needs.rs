//! What the tasks of a job are for and need: items, labels, tags and uploads are checked, stored once and known again.

use turno_engine::Persist;
use turno_proto::items::Builder;
use turno_proto::model::Code;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::archive::UploadId;
use turno_proto::model::job::{JobId, JobSpec};

use super::farm::{Farm, job};

fn submit(spec: JobSpec) -> AdminCall {
    AdminCall::JobSubmit { spec: Box::new(spec) }
}

/// A job with that many items.
pub(super) fn with_items(count: u32) -> JobSpec {
    let mut items = Builder::new(1).expect("one field");
    (0..count).for_each(|at| items.push(&[format!("item {at}")]).expect("short"));
    JobSpec { items: items.finish(), ..job(count) }
}

fn full() -> JobSpec {
    JobSpec {
        labels: vec![("gpu".to_owned(), "yes".to_owned()), ("pool".to_owned(), String::new())],
        max_failures: Some(3),
        tags: vec!["nightly".to_owned(), "müll".to_owned()],
        uploads: vec![UploadId([7; 32]), UploadId([8; 32])],
        ..with_items(3)
    }
}

#[test]
fn needs_have_limits() {
    let label = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let labels = |count: u8| (0..count).map(|at| label(&at.to_string(), "x")).collect::<Vec<_>>();
    let tags = |count: u8| (0..count).map(|at| at.to_string()).collect::<Vec<_>>();
    let uploads = |count: u8| (0..count).map(|at| UploadId([at; 32])).collect::<Vec<_>>();
    let mut cut = with_items(3).items.to_vec();
    cut.pop();
    let wrong = [
        ("fewer items than tasks", JobSpec { items: with_items(2).items, ..job(3) }),
        ("more items than tasks", JobSpec { items: with_items(4).items, ..job(3) }),
        ("no block of items", JobSpec { items: cut.into(), ..job(3) }),
        ("17 labels", JobSpec { labels: labels(17), ..job(3) }),
        ("a label without a key", JobSpec { labels: vec![label("", "x")], ..job(3) }),
        ("a key with =", JobSpec { labels: vec![label("a=b", "x")], ..job(3) }),
        ("two values for a key", JobSpec { labels: vec![label("a", "x"), label("a", "y")], ..job(3) }),
        ("a long key", JobSpec { labels: vec![label(&"k".repeat(65), "x")], ..job(3) }),
        ("a long value", JobSpec { labels: vec![label("k", &"x".repeat(65))], ..job(3) }),
        ("a value of two lines", JobSpec { labels: vec![label("k", "x\ny")], ..job(3) }),
        ("17 tags", JobSpec { tags: tags(17), ..job(3) }),
        ("an empty tag", JobSpec { tags: vec![String::new()], ..job(3) }),
        ("a long tag", JobSpec { tags: vec!["t".repeat(65)], ..job(3) }),
        ("65 uploads", JobSpec { uploads: uploads(65), ..job(3) }),
    ];
    let mut farm = Farm::in_memory();
    for (what, spec) in wrong {
        assert_eq!(farm.refused(submit(spec)), Code::BadJob, "{what}");
    }
    let most = JobSpec { labels: labels(16), tags: tags(16), uploads: uploads(64), ..with_items(3) };
    assert_eq!(farm.submit(most).0, 1);
}

/// Proves I20 for them: all that was asked for is known after a restart, and items are written once.
#[test]
fn needs_outlive_the_broker() {
    let mut farm = Farm::on_disk();
    let (id, _) = farm.submit(full());
    assert_eq!(farm.store.items.get(&JobId(id)), Some(&full().items));
    farm.restart(1);
    let shown = JobSpec { items: bytes::Bytes::new(), ..full() };
    assert_eq!(farm.show(id).spec.as_deref(), Some(&shown), "all but the items, which may be long");
    // The tests' store refuses to write items a second time.
    farm.told(AdminCall::JobHold { job: JobId(id) });
    farm.told(AdminCall::JobRelease { job: JobId(id) });
    farm.restart(1);
    farm.cancel(id, None);
    farm.told(AdminCall::JobRm { job: JobId(id) });
    assert!(farm.store.items.is_empty() && farm.store.jobs.is_empty(), "gone with their job");
}

#[test]
fn items_that_were_not_stored_are_no_job() {
    let mut farm = Farm::on_disk();
    farm.quick = false;
    farm.call(submit(full()));
    farm.refuse();
    assert!(farm.store.items.is_empty());
    farm.quick = true;
    farm.restart(1);
    // Items of a job that is not there are removed with the first thing that is stored.
    farm.store.items.insert(JobId(9), full().items);
    farm.restart(1);
    farm.submit(job(1));
    assert!(farm.store.items.is_empty());
}

/// A job counts for what it takes: with its items it does not fit.
#[test]
fn items_count_for_memory() {
    let items = |farm: &mut Farm| {
        farm.quick = false;
        farm.call(submit(full()));
        farm.groups.iter().flat_map(|(_, ops)| ops).filter(|op| matches!(op, Persist::SetItems { .. })).count()
    };
    assert_eq!(items(&mut Farm::on_disk()), 1);
    assert_eq!(items(&mut Farm::in_memory()), 0);
    let mut farm = Farm::with_memory(20_000);
    assert_eq!(farm.submit(with_items(100)).0, 1);
    assert_eq!(farm.refused(submit(with_items(1_500))), Code::OverMemory);
}
