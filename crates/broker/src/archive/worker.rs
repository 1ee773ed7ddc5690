//! The archive worker: it translates between calls of the engine and the store's archive.

use std::fmt;

use bytes::Bytes;
use tracing::{info, warn};
use turno_engine::ArchiveCall;
use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::archive::{FileView, OutputPiece, OutputPlace, OutputStream, UploadId};
use turno_proto::model::job::JobId;
use turno_proto::model::limits::OUTPUT_ANSWER_PIECES_MAX;
use turno_proto::model::{Code, TaskId};
use turno_store::archive::{
    Archive, FileList, FilePiece, FileProblem, FileRow, Flaw, Output, OutputPosition, OutputRange, Piece, Refusal,
};
use turno_store::disk::Disk;

use super::free_space::FreeSpace;

/// The result for the engine: nothing if something was kept, else the answer to the caller.
pub(super) type Answer = Result<Option<Box<AdminAnswer>>, Code>;

/// Time between two looks for uploads that nobody wants any more.
const SWEEP_MS: u64 = 60_000;

/// Answers calls, on any kind of disk.
pub(super) trait AnswerCalls: fmt::Debug + Send {
    /// One call; `None` if it is not answered.
    fn answer(&mut self, now_ms: u64, call: ArchiveCall) -> Option<Answer>;
}

impl<D: Disk> AnswerCalls for ArchiveWorker<D> {
    fn answer(&mut self, now_ms: u64, call: ArchiveCall) -> Option<Answer> {
        Self::answer(self, now_ms, call)
    }
}

/// Runs the calls, one after the other.
pub(super) struct ArchiveWorker<D: Disk> {
    archive: Archive<D>,
    floor: FreeSpace,
    swept_ms: u64,
    /// The disk failed, and the log says so.
    failing: bool,
}

impl<D: Disk> fmt::Debug for ArchiveWorker<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveWorker").field("floor", &self.floor).finish_non_exhaustive()
    }
}

impl<D: Disk> ArchiveWorker<D> {
    pub(super) fn new(archive: Archive<D>, floor: FreeSpace) -> Self {
        let mut worker = Self { archive, floor, swept_ms: 0, failing: false };
        worker.tell_troubles();
        worker
    }

    /// Logs flaws of the archive's files, once each.
    fn tell_troubles(&mut self) {
        for FileProblem { file, from, until, flaw } in self.archive.troubles() {
            match flaw {
                Flaw::SetAside(_) | Flaw::Io(_) | Flaw::Hash => {
                    warn!(file, "archive: {flaw}; run `turno doctor` for details");
                }
                Flaw::Torn => info!(file, from, until, "archive: {flaw}"),
                _ => warn!(file, from, until, "archive: {flaw}; run `turno doctor` for details"),
            }
        }
    }

    /// Does the work that is due by time.
    pub(super) fn look_after(&mut self, now_ms: u64) {
        if now_ms.saturating_sub(self.swept_ms) >= SWEEP_MS {
            self.swept_ms = now_ms;
            let swept = self.archive.sweep(now_ms);
            self.note(swept.err().as_ref());
        }
    }

    /// One call; `None` if it is not answered.
    pub(super) fn answer(&mut self, now_ms: u64, call: ArchiveCall) -> Option<Answer> {
        let brings =
            matches!(call, ArchiveCall::KeepOutput { .. } | ArchiveCall::KeepFile { .. } | ArchiveCall::Put { .. });
        if brings && !self.floor.has_room(now_ms) {
            return Some(Err(Code::OverDisk));
        }
        let is_answered = call.is_answered();
        let result = self.obey(now_ms, call);
        self.note(result.as_ref().err());
        self.tell_troubles();
        is_answered.then(|| result.map(|answer| answer.map(Box::new)).map_err(|refusal| code_of(&refusal)))
    }

    fn obey(&mut self, now_ms: u64, call: ArchiveCall) -> Result<Option<AdminAnswer>, Refusal> {
        let archive = &mut self.archive;
        Ok(Some(match call {
            ArchiveCall::KeepOutput { pieces } => {
                archive.put_output(pieces.into_iter().map(to_store).collect())?;
                return Ok(None);
            }
            ArchiveCall::KeepFile { job, task, attempt, name, at, last, bytes } => {
                archive.put_file(&FilePiece { job: job.0, task, attempt, name: &name, at, last, bytes: &bytes })?;
                return Ok(None);
            }
            ArchiveCall::Output { job, tasks, from, after, limit } => {
                let tasks = tasks.as_deref();
                let want = OutputRange { job: job.0, tasks, bytes: limit, pieces: OUTPUT_ANSWER_PIECES_MAX };
                let OutputPlace { task, attempt, at } = from;
                told(match after {
                    Some(after) => {
                        Output { next: OutputPosition { task, attempt, at }, ..archive.output_after(&want, after)? }
                    }
                    None => archive.output(&want, OutputPosition { task, attempt, at })?,
                })
            }
            ArchiveCall::Files { job, after, limit } => {
                let after = after.as_ref().map(|(task, name)| (*task, name.as_str()));
                let FileList { rows, more, damaged } = archive.files(job.0, after, limit)?;
                let next = rows.last().filter(|_| more).map(|row| (row.task, row.name.clone()));
                AdminAnswer::Files { files: rows.into_iter().map(|row| file_view(job, row)).collect(), next, damaged }
            }
            ArchiveCall::File { job, task, name, at } => piece(archive.file(job.0, task, &name, at)?),
            ArchiveCall::Check { uploads } => {
                let ids: Vec<[u8; 32]> = uploads.iter().map(|upload| upload.0).collect();
                AdminAnswer::Uploads { missing: archive.missing(now_ms, &ids).into_iter().map(UploadId).collect() }
            }
            ArchiveCall::Put { upload, size, at, bytes } => {
                let is_whole = archive.put_upload(now_ms, upload.0, size, (at, &bytes))?;
                AdminAnswer::Uploads { missing: if is_whole { Vec::new() } else { vec![upload] } }
            }
            ArchiveCall::Get { upload, at } => piece(archive.upload(now_ms, upload.0, at)?),
            ArchiveCall::Name { uploads } => {
                archive.name_uploads(&uploads.into_iter().map(|upload| upload.0).collect::<Vec<_>>());
                return Ok(None);
            }
            ArchiveCall::Forget { job, uploads } => {
                archive.unname_uploads(now_ms, &uploads.into_iter().map(|upload| upload.0).collect::<Vec<_>>());
                archive.forget(job.0)?;
                return Ok(None);
            }
        }))
    }

    /// A disk that begins to fail is worth a line, each of its failures is not.
    fn note(&mut self, refusal: Option<&Refusal>) {
        let is_failing = matches!(refusal, Some(Refusal::Io(_) | Refusal::NoRoom));
        if let Some(refusal) = refusal.filter(|_| is_failing && !self.failing) {
            warn!(%refusal, "archive error");
        }
        self.failing = is_failing;
    }
}

const fn code_of(refusal: &Refusal) -> Code {
    match refusal {
        Refusal::NoRoom => Code::OverDisk,
        Refusal::Full => Code::ArchiveFull,
        Refusal::WrongPlace => Code::WrongPlace,
        Refusal::WrongHash => Code::WrongHash,
        Refusal::NotFound => Code::NotFound,
        Refusal::Damaged => Code::ArchiveDamaged,
        Refusal::Io(_) => Code::Io,
    }
}

fn to_store(piece: OutputPiece) -> Piece {
    // Only the archive says what is lost.
    let OutputPiece { job, task, attempt, stream, at, live, bytes, lost: _ } = piece;
    let stderr = stream == OutputStream::Stderr;
    Piece { job: job.0, task, attempt, stderr, at, live, bytes: bytes.into(), lost: 0 }
}

fn from_store(piece: Piece) -> OutputPiece {
    let Piece { job, task, attempt, stderr, at, live, bytes, lost } = piece;
    let stream = if stderr { OutputStream::Stderr } else { OutputStream::Stdout };
    OutputPiece { job: JobId(job), task, attempt, stream, at, live, bytes: bytes.into(), lost }
}

fn told(output: Output) -> AdminAnswer {
    let Output { pieces, next: OutputPosition { task, attempt, at }, arrived, end, damaged } = output;
    let pieces = pieces.into_iter().map(from_store).collect();
    AdminAnswer::Output { pieces, next: OutputPlace { task, attempt, at }, arrived, end, damaged }
}

fn file_view(job: JobId, row: FileRow) -> FileView {
    let FileRow { task, attempt, name, size: bytes, lost } = row;
    FileView { id: TaskId { job, task }, task, attempt, name, bytes, lost }
}

fn piece((bytes, size): (Vec<u8>, u64)) -> AdminAnswer {
    AdminAnswer::Piece { bytes: Bytes::from(bytes), size }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use turno_store::disk::SimDisk;

    use super::*;
    use crate::archive::room_of;
    use crate::settings::ArchiveSettings;

    fn worker(disk: &SimDisk) -> ArchiveWorker<SimDisk> {
        let room = room_of(&ArchiveSettings::default(), true, 1);
        let archive = Archive::open(disk.clone(), &room, 0, &BTreeSet::new(), BTreeSet::new()).unwrap();
        ArchiveWorker::new(archive, FreeSpace::None)
    }

    fn keep(at: u64) -> ArchiveCall {
        let (job, stream, bytes) = (JobId(1), OutputStream::Stderr, Bytes::from_static(b"hello"));
        ArchiveCall::KeepOutput {
            pieces: vec![OutputPiece { job, task: 2, attempt: 1, stream, at, live: false, bytes, lost: 0 }],
        }
    }

    fn look() -> ArchiveCall {
        let (job, from) = (JobId(1), OutputPlace::default());
        ArchiveCall::Output { job, tasks: None, from, after: None, limit: 100 }
    }

    fn pieces(worker: &mut ArchiveWorker<SimDisk>) -> Vec<OutputPiece> {
        match worker.answer(0, look()) {
            Some(Ok(Some(answer))) => match *answer {
                AdminAnswer::Output { pieces, .. } => pieces,
                answer => panic!("{answer:?}"),
            },
            answer => panic!("{answer:?}"),
        }
    }

    /// A full disk refuses what is brought, tells what is there, and takes more once it has room.
    #[test]
    fn a_full_disk_refuses_and_goes_on() {
        let disk = SimDisk::new();
        let mut worker = worker(&disk);
        assert_eq!(worker.answer(0, keep(0)), Some(Ok(None)));
        disk.set_bytes_max(Some(disk.used()));
        let upload = UploadId([1; 32]);
        let put = ArchiveCall::Put { upload, size: 9, at: 0, bytes: Bytes::from_static(b"part") };
        for call in [keep(5), put] {
            assert_eq!(worker.answer(0, call), Some(Err(Code::OverDisk)));
        }
        assert_eq!(pieces(&mut worker).len(), 1);
        disk.heal();
        assert_eq!(worker.answer(0, keep(5)), Some(Ok(None)));
        assert_eq!(pieces(&mut worker).iter().map(|piece| piece.at).collect::<Vec<_>>(), [0, 5]);
    }

    #[test]
    fn refusals_have_their_codes_and_some_calls_no_answer() {
        let disk = SimDisk::new();
        let mut worker = worker(&disk);
        let upload = UploadId([1; 32]);
        let put = |at| ArchiveCall::Put { upload, size: 4, at, bytes: Bytes::from_static(b"part") };
        let file = |at| ArchiveCall::KeepFile {
            job: JobId(1),
            task: 2,
            attempt: 1,
            name: "a".to_owned(),
            at,
            last: true,
            bytes: Bytes::new(),
        };
        let get = ArchiveCall::File { job: JobId(1), task: 2, name: "a".to_owned(), at: 0 };
        for (call, code) in [
            (put(1), Code::WrongPlace),
            (put(0), Code::WrongHash),
            (ArchiveCall::Get { upload, at: 0 }, Code::NotFound),
            (file(1), Code::WrongPlace),
            (get, Code::NotFound),
        ] {
            assert_eq!(worker.answer(0, call), Some(Err(code)));
        }
        assert_eq!(worker.answer(0, keep(0)), Some(Ok(None)));
        assert_eq!(worker.answer(0, ArchiveCall::Name { uploads: vec![upload] }), None);
        assert_eq!(worker.answer(0, ArchiveCall::Forget { job: JobId(1), uploads: vec![upload] }), None);
        assert_eq!((pieces(&mut worker), disk.files().len()), (Vec::new(), 0));
    }
}
