//! Bytes received from workers for their tasks, with a limit per task.

use turno_proto::model::Code;
use turno_proto::model::job::{JobId, JobSpec};

use super::Jobs;
use super::job::Phase;

/// Bytes and files that were handed in for one attempt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReceivedBytes {
    /// Bytes of output.
    output: u64,
    /// Files that were begun.
    files: u32,
}

impl ReceivedBytes {
    /// Counts that many bytes of output, up to that much in all. Returns how many of them are within that.
    pub(crate) fn take_output(&mut self, len: usize, most: u64) -> usize {
        let room = usize::try_from(most.saturating_sub(self.output)).unwrap_or(usize::MAX);
        let taken = len.min(room);
        self.output += taken as u64;
        taken
    }

    /// Counts a file that is begun. False, and it does not count, if there were as many before.
    pub(crate) fn begin_file(&mut self, most: u64) -> bool {
        let has_room = u64::from(self.files) < most;
        self.files += u32::from(has_room);
        has_room
    }
}

impl Jobs {
    /// Refuses what is about no job that somebody was told of.
    pub(crate) fn known(&self, id: JobId) -> Result<(), Code> {
        self.find_job(id).map(|_| ())
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = JobId> {
        self.all.keys().copied()
    }

    pub(crate) fn specs(&self) -> impl Iterator<Item = &JobSpec> {
        self.all.values().map(|job| &*job.spec)
    }

    /// Tasks that take slots of the worker known by that id.
    pub(crate) fn held_at(&self, worker: &str) -> impl Iterator<Item = (JobId, u32)> {
        let job_worker = self.job_workers.by_key.get(worker).and_then(|conn| self.job_workers.get(*conn));
        job_worker.into_iter().flat_map(|job_worker| job_worker.held.iter().map(|((job, _), held)| (*job, held.task)))
    }
}

impl Jobs {
    /// The account of an attempt, if that worker has it: it runs there, was told to stop and has not ended, or its
    /// worker is away and may come back.
    pub(crate) fn handed_in(
        &mut self,
        worker: &str,
        (id, task, attempt): (JobId, u32, u32),
    ) -> Option<&mut ReceivedBytes> {
        let place = self.find_job(id).ok()?.spec.numbers().place_of(task)?;
        let job = self.all.get_mut(&id)?;
        if job.running.get(&place).is_some_and(|running| running.attempt == attempt) {
            let running = job.running.get_mut(&place)?;
            // Of what is only on its way to the disk its worker has not heard.
            let is_its = *running.key == *worker && running.phase != Phase::Storing;
            return is_its.then_some(&mut running.handed_in);
        }
        let conn = self.job_workers.by_key.get(worker)?;
        let held = self.job_workers.by_conn.get_mut(conn)?.held.get_mut(&(id, place))?;
        (held.attempt == attempt).then_some(&mut held.handed_in)
    }
}
