//! Labels: requirements of a job's tasks, properties of a job worker. A task goes only to a job worker that has all
//! labels of its job.

use std::collections::BTreeMap;
use std::sync::Arc;

use turno_proto::model::limits::WORKER_LABELS_MAX;
use turno_proto::submission::is_label;

/// The labels that a job requires, in the order of keys.
pub(super) type Labels = Arc<[(String, String)]>;

/// The labels of a job in their order: those of two jobs are the same, however they were written.
pub(super) fn labels_of_job(labels: &[(String, String)]) -> Labels {
    let mut sorted = labels.to_vec();
    sorted.sort_unstable();
    sorted.into()
}

/// The labels of a worker as they are kept. What cannot be one is left out.
pub(super) fn labels_of_job_worker(labels: Vec<(String, String)>) -> BTreeMap<String, String> {
    labels.into_iter().filter(|(key, value)| is_label(key, value)).take(WORKER_LABELS_MAX).collect()
}

/// Whether somebody who has those has all of these.
pub(super) fn has_all(has: &BTreeMap<String, String>, wanted: &[(String, String)]) -> bool {
    wanted.iter().all(|(key, value)| has.get(key) == Some(value))
}
