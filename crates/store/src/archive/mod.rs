//! The archive: output, result files and uploads of tasks. Not the log: nothing here is synced but uploads, so what was
//! written last may be gone after a power cut, and nothing but room on the disk is asked of it.

mod files;
mod inspect;
mod output;
mod record;
mod segment;
mod segment_list;
mod trouble;
mod uploads;

use std::collections::BTreeSet;
use std::io;

use thiserror::Error;

use self::files::Files;
pub use self::files::{FileList, FilePiece, FileRow};
pub use self::inspect::{ArchiveInspection, inspect, inspect_names};
use self::output::Outputs;
pub use self::output::{Output, OutputPosition, OutputRange, Piece};
use self::segment_list::Size;
pub use self::trouble::{FileProblem, Flaw};
pub use self::uploads::UploadId;
use self::uploads::Uploads;
use crate::OpenError;
use crate::disk::Disk;
use crate::limits::{
    ARCHIVE_SEGMENT_BYTES_MAX, ARCHIVE_SEGMENT_BYTES_MIN, ARCHIVE_SEGMENT_RECORDS_MAX, ARCHIVE_SEGMENTS,
    ARCHIVE_SEGMENTS_MAX,
};

/// The prefix of names of output segments.
const OUTPUT: &str = "output";
/// The same of results.
const RESULT: &str = "result";

/// Why the archive did not do something.
#[derive(Debug, Error)]
pub enum Refusal {
    /// The disk is full, or an upload is larger than there is room for.
    #[error("no room on the disk")]
    NoRoom,
    /// Results take as much room as they may.
    #[error("the archive is full")]
    Full,
    /// A piece does not follow what is there.
    #[error("a file chunk has the wrong offset")]
    WrongPlace,
    /// An upload is whole, and is not what it should be.
    #[error("an upload does not match its hash")]
    WrongHash,
    /// There is no such file.
    #[error("no such file")]
    NotFound,
    /// It was kept, and cannot be read any more.
    #[error("lost: the archive is damaged")]
    Damaged,
    /// The disk failed.
    #[error("reading or writing failed: {0}")]
    Io(io::Error),
}

/// How much room the archive has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes of all output. More: the oldest goes.
    pub output_bytes: u64,
    /// Bytes of all results. More: [`Refusal::Full`].
    pub result_bytes: u64,
    /// Bytes of all uploads. More: [`Refusal::NoRoom`].
    pub upload_bytes: u64,
    /// Uploads. More: [`Refusal::NoRoom`].
    pub uploads: usize,
    /// How long an upload is kept that no job names.
    pub upload_kept_ms: u64,
    /// Bytes of output in memory. More: the oldest goes.
    pub live_bytes: usize,
    /// The longest piece there is.
    pub piece_bytes: u64,
    /// A number that nobody outside can guess, so that nothing a task writes can pass for a record.
    pub salt: u64,
}

/// Bytes of what the archive has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveUsage {
    /// Output.
    pub output: u64,
    /// Results.
    pub results: u64,
    /// Uploads.
    pub uploads: u64,
    /// Files on the disk.
    pub files: u64,
}

/// The store of output, result files and uploads.
#[derive(Debug)]
pub struct Archive<D: Disk> {
    disk: D,
    outputs: Outputs<D::File>,
    files: Files<D::File>,
    uploads: Uploads<D::File>,
}

impl Size {
    /// A list of segments for so many bytes.
    fn of(room: &Room, total: u64, drops_oldest: bool) -> Self {
        let largest = total.clamp(ARCHIVE_SEGMENT_BYTES_MIN, ARCHIVE_SEGMENT_BYTES_MAX);
        let segment_bytes = (total / ARCHIVE_SEGMENTS).clamp(4 * room.piece_bytes, largest.max(4 * room.piece_bytes));
        Self {
            total,
            segment_bytes: segment_bytes.min(ARCHIVE_SEGMENT_BYTES_MAX),
            segment_records: ARCHIVE_SEGMENT_RECORDS_MAX,
            segments: ARCHIVE_SEGMENTS_MAX,
            drops_oldest,
        }
    }
}

impl<D: Disk> Archive<D> {
    /// Opens what is there, for the jobs that are known and the uploads that they name. What others left goes. What cannot
    /// be read is set aside: only a directory that cannot be listed and a segment of a newer format are errors, and nothing
    /// is changed then.
    pub fn open(
        mut disk: D,
        room: &Room,
        now_ms: u64,
        jobs: &BTreeSet<u64>,
        uploads: BTreeSet<UploadId>,
    ) -> Result<Self, OpenError> {
        if let Some((file, found)) = inspect_names(&mut disk).map_err(unlisted)?.newer.into_iter().next() {
            return Err(OpenError::Newer { file, found, known: record::FORMAT });
        }
        let outputs = Outputs::open(&mut disk, room, now_ms, jobs).map_err(unlisted)?;
        let files = Files::open(&mut disk, room, jobs).map_err(unlisted)?;
        let uploads = Uploads::open(&mut disk, room, now_ms, uploads).map_err(unlisted)?;
        Ok(Self { disk, outputs, files, uploads })
    }

    /// Flaws of its files that were found since the last call.
    pub fn troubles(&mut self) -> Vec<FileProblem> {
        let mut troubles = self.outputs.segment_list.troubles();
        troubles.extend(self.files.segment_list.troubles());
        troubles.extend(self.uploads.troubles());
        troubles
    }

    /// The space that it takes.
    pub fn usage(&self) -> ArchiveUsage {
        ArchiveUsage {
            output: self.outputs.segment_list.bytes(),
            results: self.files.segment_list.bytes(),
            uploads: self.uploads.bytes(),
            files: (self.outputs.segment_list.segments_len()
                + self.files.segment_list.segments_len()
                + self.uploads.len()) as u64,
        }
    }

    /// Keeps what tasks wrote, all of it or nothing.
    pub fn put_output(&mut self, pieces: Vec<Piece>) -> Result<(), Refusal> {
        self.outputs.put(&mut self.disk, pieces)
    }

    /// Output of tasks, from a place on.
    pub fn output(&self, want: &OutputRange<'_>, from: OutputPosition) -> Result<Output, Refusal> {
        self.outputs.from(want, from).map_err(Refusal::of)
    }

    /// Output of tasks in the order of arrival, after some arrival.
    pub fn output_after(&self, want: &OutputRange<'_>, after: u64) -> Result<Output, Refusal> {
        self.outputs.after(want, after).map_err(Refusal::of)
    }

    /// Keeps a piece of a file that a task brings back.
    pub fn put_file(&mut self, piece: &FilePiece<'_>) -> Result<(), Refusal> {
        self.files.put(&mut self.disk, piece)
    }

    /// Files that tasks of a job brought back, by task and name, those after `after`.
    pub fn files(&self, job: u64, after: Option<(u32, &str)>, limit: usize) -> Result<FileList, Refusal> {
        self.files.list(job, after, limit).map_err(Refusal::of)
    }

    /// A piece of a file that a task brought back, and the size of the whole.
    pub fn file(&mut self, job: u64, task: u32, name: &str, at: u64) -> Result<(Vec<u8>, u64), Refusal> {
        self.files.read(job, task, name, at)
    }

    /// Those of these uploads that are not there.
    pub fn missing(&mut self, now_ms: u64, uploads: &[UploadId]) -> Vec<UploadId> {
        self.uploads.missing(&mut self.disk, now_ms, uploads)
    }

    /// Keeps a piece of an upload: where it begins, and its bytes. Returns whether the upload is whole now.
    pub fn put_upload(
        &mut self,
        now_ms: u64,
        upload: UploadId,
        size: u64,
        piece: (u64, &[u8]),
    ) -> Result<bool, Refusal> {
        self.uploads.put(&mut self.disk, now_ms, upload, size, piece)
    }

    /// A piece of an upload, and the size of the whole.
    pub fn upload(&mut self, now_ms: u64, upload: UploadId, at: u64) -> Result<(Vec<u8>, u64), Refusal> {
        self.uploads.read(&mut self.disk, now_ms, upload, at)
    }

    /// A job names these uploads.
    pub fn name_uploads(&mut self, uploads: &[UploadId]) {
        self.uploads.name(uploads);
    }

    /// No job names these uploads any more.
    pub fn unname_uploads(&mut self, now_ms: u64, uploads: &[UploadId]) {
        self.uploads.unname(now_ms, uploads);
    }

    /// A job is gone: what its tasks wrote and brought back is not wanted any more.
    pub fn forget(&mut self, job: u64) -> Result<(), Refusal> {
        self.outputs.forget(&mut self.disk, job)?;
        self.files.forget(&mut self.disk, job)
    }

    /// Lets uploads go that nobody wants any more. Due now and then.
    pub fn sweep(&mut self, now_ms: u64) -> Result<(), Refusal> {
        self.uploads.sweep(&mut self.disk, now_ms)
    }
}

fn unlisted(source: io::Error) -> OpenError {
    OpenError::Io { doing: "list", file: "the archive".to_owned(), source }
}
