//! Access to the archive: permissions, and the limit on calls under way. The bytes are kept elsewhere:
//! [`crate::ArchiveEffect`] is a call, [`crate::Input::Archived`] its answer.
//!
//! This is a machine: [`Archive::handle`] takes what happens to the gate, and nobody sees its fields. Of the rest it knows what
//! [`ArchiveContext`] has: time, settings, who is connected, and jobs, which it asks who has which task.

mod follow;
mod gate;
mod uploads;

use std::collections::BTreeMap;

use bytes::Bytes;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::archive::{OutputPiece, OutputPlace, UploadId};
use turno_proto::model::job::JobId;
use turno_proto::model::{Code, Mono};

use self::follow::Follows;
use self::uploads::Uploads;
use crate::effect::{Caller, Sink};
use crate::jobs::Jobs;
use crate::messages::workers::peer::Peers;
use crate::settings::Settings;

/// A call to the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveCall {
    /// Keep this, all of it or nothing. Answered without an answer for the caller.
    KeepOutput {
        /// Output of tasks.
        pieces: Vec<OutputPiece>,
    },
    /// Keep a piece of a file. Answered without an answer for the caller.
    KeepFile {
        /// The job's number.
        job: JobId,
        /// The number of the task.
        task: u32,
        /// The attempt that returned the file.
        attempt: u32,
        /// The file's path in the task's directory.
        name: String,
        /// Where the piece begins.
        at: u64,
        /// The file ends with it.
        last: bool,
        /// The next bytes of the file.
        bytes: Bytes,
    },
    /// Tell what tasks wrote.
    Output {
        /// The job's number.
        job: JobId,
        /// Ranges of task numbers; `None`: all tasks.
        tasks: Option<Vec<(u32, u32)>>,
        /// The place to begin at.
        from: OutputPlace,
        /// Only what arrived after that, in the order of arrival.
        after: Option<u64>,
        /// Bytes wanted at most.
        limit: usize,
    },
    /// Tell which files tasks brought back.
    Files {
        /// The job's number.
        job: JobId,
        /// Task and name of the last one that is known.
        after: Option<(u32, String)>,
        /// Rows wanted.
        limit: usize,
    },
    /// Tell a piece of such a file.
    File {
        /// The job's number.
        job: JobId,
        /// The number of the task.
        task: u32,
        /// The file's path in the task's directory.
        name: String,
        /// Where the piece begins.
        at: u64,
    },
    /// Tell which uploads are not there.
    Check {
        /// Those.
        uploads: Vec<UploadId>,
    },
    /// Keep a piece of an upload.
    Put {
        /// Which one.
        upload: UploadId,
        /// The size of the whole file.
        size: u64,
        /// Where the piece begins.
        at: u64,
        /// The next bytes of the file.
        bytes: Bytes,
    },
    /// Tell a piece of an upload.
    Get {
        /// Which one.
        upload: UploadId,
        /// Where the piece begins.
        at: u64,
    },
    /// A job names these uploads, which none named before. Not answered.
    Name {
        /// Those.
        uploads: Vec<UploadId>,
    },
    /// A job is gone, and nobody names these uploads any more. Not answered.
    Forget {
        /// The job's number.
        job: JobId,
        /// Those.
        uploads: Vec<UploadId>,
    },
}

impl ArchiveCall {
    /// Whether [`crate::Input::Archived`] shall follow.
    pub const fn is_answered(&self) -> bool {
        !matches!(self, Self::Name { .. } | Self::Forget { .. })
    }
}

/// The state of the gate.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    /// The number of the latest call.
    last: u64,
    /// Calls that are not answered.
    under_way: BTreeMap<u64, OpenCall>,
    /// Bytes that these bring, or may take away.
    bytes: usize,
    follows: Follows,
    uploads: Uploads,
}

/// A call that is not answered.
#[derive(Debug)]
struct OpenCall {
    caller: Caller,
    bytes: usize,
    /// A worker handed something in.
    kept: Option<KeptAnswer>,
}

/// The answer to a worker once its output is kept.
#[derive(Debug)]
struct KeptAnswer {
    worker: String,
    refused: Vec<(JobId, u32, u32)>,
}

/// The parts of the broker that the gate borrows for one call.
#[derive(Debug)]
pub(crate) struct ArchiveContext<'a> {
    pub(crate) now: Mono,
    pub(crate) settings: &'a Settings,
    /// The connections that are still there to be answered.
    pub(crate) peers: &'a Peers,
    /// The tasks with their workers, and how much was handed in of each.
    pub(crate) jobs: &'a mut Jobs,
}

/// An input of the gate.
#[derive(Debug)]
pub(crate) enum ArchiveInput {
    /// Somebody hands something in, or wants to see something.
    Call { caller: Caller, call: AdminCall },
    /// The archive has done what it was asked for, or says why not.
    Archived { ticket: u64, answer: Result<Option<Box<AdminAnswer>>, Code> },
}

impl Archive {
    pub(crate) fn handle(&mut self, cx: &mut ArchiveContext<'_>, input: ArchiveInput, out: &mut impl Sink) {
        match input {
            ArchiveInput::Call { caller, call } => self.call(cx, caller, call, out),
            ArchiveInput::Archived { ticket, answer } => self.archived(cx, ticket, answer, out),
        }
    }

    /// Bytes of calls that are not answered.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    fn archived(
        &mut self,
        cx: &ArchiveContext<'_>,
        ticket: u64,
        answer: Result<Option<Box<AdminAnswer>>, Code>,
        out: &mut impl Sink,
    ) {
        let Some(OpenCall { caller, bytes, kept }) = self.under_way.remove(&ticket) else { return };
        self.bytes -= bytes;
        if cx.peers.get(caller.conn).is_none() {
            return;
        }
        out.peer(match (answer, kept) {
            (Err(code), _) => caller.refused(code),
            (Ok(_), Some(kept)) => caller.admin(Box::new(self.kept_answer(cx, kept))),
            (Ok(Some(answer)), None) => caller.admin(answer),
            (Ok(None), None) => caller.refused(Code::Internal),
        });
    }

    fn kept_answer(&self, cx: &ArchiveContext<'_>, KeptAnswer { worker, refused }: KeptAnswer) -> AdminAnswer {
        let follow = self.follows.among(cx.jobs.held_at(&worker), cx.now);
        AdminAnswer::OutputKept { per_task: cx.settings.output_per_task, follow, refused }
    }

    pub(crate) fn check(&self, jobs: &Jobs) {
        let bytes: usize = self.under_way.values().map(|call| call.bytes).sum();
        assert_eq!(bytes, self.bytes, "the bytes that are under way to and from the archive are counted");
        let last = self.under_way.last_key_value().map_or(0, |(ticket, _)| *ticket);
        assert!(last <= self.last, "calls to the archive have rising numbers");
        self.follows.check();
        self.uploads.check(jobs.specs());
    }
}
