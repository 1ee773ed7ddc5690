//! The interface between the machines of the engine: the borrowed context of one call, and its consequences for others.
//! Only this module knows both a machine and the rest.

use turno_proto::model::archive::UploadId;
use turno_proto::model::job::JobId;
use turno_proto::model::{ConnId, Slots};

use super::Engine;
use crate::archive::{self, ArchiveInput};
use crate::effect::Sink;
use crate::jobs::{self, Consequence, Jobs, JobsInput};

/// Jobs.
impl Engine {
    /// Lets jobs do something.
    pub(super) fn with_jobs<R>(&mut self, work: impl FnOnce(&mut Jobs, &mut jobs::JobsContext<'_>) -> R) -> R {
        let elsewhere = self.bytes_elsewhere();
        self.messages.share_memory(elsewhere);
        let mut cx = self.messages.lend_to_jobs();
        let result = work(&mut self.jobs, &mut cx);
        for consequence in cx.into_consequences() {
            match consequence {
                Consequence::LessRoom(native) => self.messages.show_room(native),
                Consequence::MoreRoom(native) => self.messages.offer(native),
                Consequence::JobCame(spec) => self.archive.job_came(&spec),
                Consequence::JobGone(job, spec) => self.archive.job_gone(job, &spec),
                Consequence::Late => self.messages.count_late(),
            }
        }
        result
    }

    /// Something happened to jobs.
    pub(super) fn tell_jobs(&mut self, input: JobsInput, out: &mut impl Sink) {
        self.with_jobs(|jobs, cx| jobs.handle(cx, input, out));
    }

    /// Consequences of the input for jobs.
    #[inline(never)]
    pub(super) fn work_off_jobs(&mut self, out: &mut impl Sink) {
        while self.jobs.is_due() {
            self.with_jobs(|jobs, cx| jobs.go_on(cx, out));
            // A paired connection may have got slots back.
            self.messages.work_off_agenda(out);
            self.messages.tell_job_workers(&mut self.jobs);
        }
    }

    /// REGISTER with the key that a foreman's worker has, or will have.
    pub(super) fn register_as(
        &mut self,
        conn: ConnId,
        seq: u32,
        slots: Slots,
        name: String,
        key: &str,
        out: &mut impl Sink,
    ) {
        self.messages.register(conn, seq, slots, name, out);
        self.with_jobs(|jobs, cx| jobs.native_came(cx, conn, key));
    }
}

/// The gate of the archive.
impl Engine {
    /// Something happened to the gate of the archive.
    pub(super) fn tell_archive(&mut self, input: ArchiveInput, out: &mut impl Sink) {
        let (now, settings, peers) = self.messages.lend_to_archive();
        let mut cx = archive::ArchiveContext { now, settings, peers, jobs: &mut self.jobs };
        self.archive.handle(&mut cx, input, out);
    }

    /// The jobs there are: what the archive has of others is not wanted any more.
    pub fn known_jobs(&self) -> impl Iterator<Item = JobId> {
        self.jobs.ids()
    }

    /// Uploads that these jobs name.
    pub fn named_uploads(&self) -> impl Iterator<Item = UploadId> {
        self.archive.named_uploads()
    }
}
