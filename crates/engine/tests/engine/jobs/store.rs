//! The store of the tests: what the operations make of it, and what a restarted broker finds.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use turno_engine::{ChunkRecord, JobRecord, Persist, StoredJobs, TaskRecord};
use turno_proto::model::job::JobId;

#[derive(Clone, Debug, Default)]
pub(super) struct Store {
    pub(super) last: u64,
    pub(super) jobs: BTreeMap<JobId, JobRecord>,
    pub(super) items: BTreeMap<JobId, Bytes>,
    pub(super) tasks: BTreeMap<(JobId, u32), TaskRecord>,
    pub(super) chunks: BTreeMap<(JobId, u32), ChunkRecord>,
}

impl Store {
    pub(super) fn apply(&mut self, op: Persist) {
        match op {
            Persist::SetJob { job, mut record } => {
                // The storage omits them: they have a record of their own.
                if !record.spec.items.is_empty() {
                    Arc::make_mut(&mut record.spec).items.clear();
                }
                self.jobs.insert(job, *record);
            }
            Persist::SetItems { job, items } => {
                assert_eq!(self.items.insert(job, items), None, "items are written once");
            }
            Persist::UnsetItems { job } => drop(self.items.remove(&job).expect("only what is stored is removed")),
            Persist::UnsetJob { job } => drop(self.jobs.remove(&job).expect("only what is stored is removed")),
            Persist::LastJob { job } => self.last = job.0,
            Persist::SetTask { job, place, record } => drop(self.tasks.insert((job, place), *record)),
            Persist::UnsetTask { job, place } => drop(self.tasks.remove(&(job, place))),
            Persist::SetChunk { job, chunk, record } => drop(self.chunks.insert((job, chunk), *record)),
            Persist::UnsetChunk { job, chunk } => drop(self.chunks.remove(&(job, chunk))),
            other => panic!("{other:?} is not about jobs"),
        }
    }

    pub(super) fn found(&self) -> StoredJobs {
        StoredJobs {
            last: self.last,
            jobs: self.jobs.iter().map(|(job, record)| (*job, record.clone())).collect(),
            items: self.items.iter().map(|(job, items)| (*job, items.clone())).collect(),
            tasks: self.tasks.iter().map(|((job, place), record)| (*job, *place, record.clone())).collect(),
            chunks: self.chunks.iter().map(|((job, chunk), record)| (*job, *chunk, record.clone())).collect(),
        }
    }

    /// How many records there are.
    pub(super) fn sizes(&self) -> (usize, usize, usize) {
        (self.jobs.len(), self.tasks.len(), self.chunks.len())
    }
}
