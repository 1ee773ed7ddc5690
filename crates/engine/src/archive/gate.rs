//! Admission of calls to the archive. A worker can hand in output and files only for tasks that run at it, and only as
//! much as the disk can lag behind.

use turno_proto::model::Code;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::archive::{OutputPiece, is_file_name};
use turno_proto::model::job::JobId;
use turno_proto::model::limits::{
    ARCHIVE_CALLS_BYTES_MAX, ARCHIVE_CALLS_MAX, FILES_PER_TASK_MAX, JOB_UPLOADS_MAX, OUTPUT_PIECES_MAX, OUTPUT_SLACK,
    PAGE_MAX, PIECE_BYTES_MAX, TASK_RANGES_MAX,
};

use super::{Archive, ArchiveCall, ArchiveContext, KeptAnswer, OpenCall};
use crate::effect::{ArchiveEffect, Caller, Sink};

impl Archive {
    /// A call about output, results or uploads.
    pub(super) fn call(&mut self, cx: &mut ArchiveContext<'_>, caller: Caller, call: AdminCall, out: &mut impl Sink) {
        let passed = match call {
            AdminCall::TaskOutput { worker, pieces } => {
                return self.hand_in_output(cx, caller, worker, pieces, out);
            }
            AdminCall::TaskFile { worker, job, task, attempt, name, at, last, bytes } => {
                let call = ArchiveCall::KeepFile { job, task, attempt, name, at, last, bytes };
                return self.hand_in_file(cx, caller, worker, call, out);
            }
            call => self.passed(cx, call),
        };
        match passed {
            Ok((call, bytes)) => self.ask_archive(caller, call, bytes, None, out),
            Err(code) => out.peer(caller.refused(code)),
        }
    }

    /// The call to the archive, and the bytes that go there or come from there.
    fn passed(&mut self, cx: &ArchiveContext<'_>, call: AdminCall) -> Result<(ArchiveCall, usize), Code> {
        Ok(match call {
            AdminCall::JobOutput { job, tasks, from, after, follow, limit } => {
                cx.jobs.known(job)?;
                let is_bad =
                    |tasks: &Vec<(u32, u32)>| tasks.len() > TASK_RANGES_MAX || tasks.iter().any(|(from, to)| from > to);
                if tasks.as_ref().is_some_and(is_bad) {
                    return Err(Code::BadCall);
                }
                if follow {
                    self.follows.note(job, tasks.clone(), cx.now);
                }
                let limit = (limit as usize).clamp(1, PIECE_BYTES_MAX);
                (ArchiveCall::Output { job, tasks, from, after, limit }, limit)
            }
            AdminCall::JobFiles { job, after, limit } => {
                cx.jobs.known(job)?;
                (ArchiveCall::Files { job, after, limit: limit.clamp(1, PAGE_MAX) as usize }, PIECE_BYTES_MAX)
            }
            AdminCall::JobFile { job, task, name, at } => {
                cx.jobs.known(job)?;
                (ArchiveCall::File { job, task, name, at }, PIECE_BYTES_MAX)
            }
            AdminCall::UploadCheck { uploads } if uploads.len() <= JOB_UPLOADS_MAX => {
                (ArchiveCall::Check { uploads }, 0)
            }
            AdminCall::UploadPut { upload, size, at, bytes } if bytes.len() <= PIECE_BYTES_MAX => {
                let len = bytes.len();
                (ArchiveCall::Put { upload, size, at, bytes }, len)
            }
            AdminCall::UploadGet { upload, at } => (ArchiveCall::Get { upload, at }, PIECE_BYTES_MAX),
            _ => return Err(Code::BadCall),
        })
    }

    /// Output of tasks. What is not of that worker's tasks is left out and named in the answer: they may have gone
    /// elsewhere since it was sent.
    fn hand_in_output(
        &mut self,
        cx: &mut ArchiveContext<'_>,
        caller: Caller,
        worker: String,
        mut pieces: Vec<OutputPiece>,
        out: &mut impl Sink,
    ) {
        let bytes: usize = pieces.iter().map(|piece| piece.bytes.len()).sum();
        let ends = |piece: &OutputPiece| piece.at.checked_add(piece.bytes.len() as u64).is_some();
        if pieces.len() > OUTPUT_PIECES_MAX || bytes > PIECE_BYTES_MAX || !pieces.iter().all(ends) {
            return out.peer(caller.refused(Code::BadCall));
        }
        if self.is_busy(bytes) {
            return out.peer(caller.refused(Code::ArchiveBusy));
        }
        let mut refused: Vec<(JobId, u32, u32)> = Vec::new();
        pieces.retain_mut(|piece| {
            let attempt = (piece.job, piece.task, piece.attempt);
            let is_live = piece.live;
            let followed = is_live && self.follows.has(piece.job, piece.task, cx.now);
            let most = cx.settings.output_per_task.saturating_mul(OUTPUT_SLACK);
            let Some(handed) = cx.jobs.handed_in(&worker, attempt) else {
                if !refused.contains(&attempt) {
                    refused.push(attempt);
                }
                return false;
            };
            if is_live {
                return followed;
            }
            piece.bytes.truncate(handed.take_output(piece.bytes.len(), most));
            !piece.bytes.is_empty()
        });
        let kept = KeptAnswer { worker, refused };
        if pieces.is_empty() {
            return out.peer(caller.admin(Box::new(self.kept_answer(cx, kept))));
        }
        let bytes = pieces.iter().map(|piece| piece.bytes.len()).sum();
        self.ask_archive(caller, ArchiveCall::KeepOutput { pieces }, bytes, Some(kept), out);
    }

    fn hand_in_file(
        &mut self,
        cx: &mut ArchiveContext<'_>,
        caller: Caller,
        worker: String,
        call: ArchiveCall,
        out: &mut impl Sink,
    ) {
        match self.passed_file(cx, &worker, &call) {
            Ok(bytes) => {
                let kept = KeptAnswer { worker, refused: Vec::new() };
                self.ask_archive(caller, call, bytes, Some(kept), out);
            }
            Err(code) => out.peer(caller.refused(code)),
        }
    }

    fn passed_file(&self, cx: &mut ArchiveContext<'_>, worker: &str, call: &ArchiveCall) -> Result<usize, Code> {
        let ArchiveCall::KeepFile { job, task, attempt, name, at, bytes, .. } = call else {
            return Err(Code::BadCall);
        };
        if !is_file_name(name) || bytes.len() > PIECE_BYTES_MAX {
            return Err(Code::BadCall);
        }
        if self.is_busy(bytes.len()) {
            return Err(Code::ArchiveBusy);
        }
        let handed = cx.jobs.handed_in(worker, (*job, *task, *attempt)).ok_or(Code::NotYourTask)?;
        // Some of them may be begun again.
        if *at == 0 && !handed.begin_file(u64::from(FILES_PER_TASK_MAX) * OUTPUT_SLACK) {
            return Err(Code::ArchiveFull);
        }
        Ok(bytes.len())
    }

    fn is_busy(&self, bytes: usize) -> bool {
        self.under_way.len() >= ARCHIVE_CALLS_MAX || self.bytes + bytes > ARCHIVE_CALLS_BYTES_MAX
    }

    fn ask_archive(
        &mut self,
        caller: Caller,
        call: ArchiveCall,
        bytes: usize,
        kept: Option<KeptAnswer>,
        out: &mut impl Sink,
    ) {
        if self.is_busy(bytes) {
            return out.peer(caller.refused(Code::ArchiveBusy));
        }
        self.last += 1;
        self.bytes += bytes;
        self.under_way.insert(self.last, OpenCall { caller, bytes, kept });
        out.archive(ArchiveEffect { ticket: self.last, call: Box::new(call) });
    }
}
