//! Output and result files of tasks: columns and listings.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::TaskId;
use turno_proto::model::archive::{FileView, OutputPiece, OutputStream};

use super::reply::Content;
use crate::cli::size;
use crate::cli::table::{Column, Row, columns};

/// A piece of what a task wrote.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OutputRow {
    /// Its job and its number, as commands take it.
    pub(crate) id: TaskId,
    /// The number of the task.
    pub(crate) task: u32,
    /// The attempt.
    pub(crate) attempt: u32,
    /// Where it wrote it.
    pub(crate) stream: OutputStream,
    /// How much the attempt had written before, to both streams together.
    pub(crate) at: u64,
    /// Bytes right before this piece that were left out.
    pub(crate) left_out: u64,
    /// Bytes that the task wrote here and that are lost to damage; then there is no body.
    pub(crate) lost: u64,
    /// The bytes of output.
    #[serde(flatten)]
    pub(crate) content: Content,
}

impl OutputRow {
    pub(crate) fn new(piece: &OutputPiece, left_out: u64) -> Self {
        let OutputPiece { job, task, attempt, stream, at, bytes, lost, .. } = piece;
        Self {
            id: TaskId { job: *job, task: *task },
            task: *task,
            attempt: *attempt,
            stream: *stream,
            at: *at,
            left_out,
            lost: *lost,
            content: Content::from(&bytes[..]),
        }
    }
}

impl Row for OutputRow {
    const COLUMNS: &'static [Column<Self>] = columns![
        id;
        attempt;
        stream;
        at as "OFFSET";
        wide task;
        wide left_out as "OMITTED";
        wide lost;
        wide encoding = |row, clock| row.content.encoding.cell(clock);
        body = |row, clock| row.content.body.cell(clock);
    ];

    fn name(&self) -> String {
        self.id.to_string()
    }
}

/// Output of tasks.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OutputDocument<'a> {
    /// By job, task, attempt and position; followed, in the order in which it came.
    pub(crate) pieces: &'a [OutputRow],
    /// Whether a part of the archive cannot be read that may have held more.
    pub(crate) damaged: bool,
}

/// A file that a task brought back.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResultRow {
    #[serde(flatten)]
    pub(crate) file: FileView,
    /// Where it was written to; null if it was only listed, or is lost.
    pub(crate) path: Option<String>,
}

impl Row for ResultRow {
    const COLUMNS: &'static [Column<Self>] = columns![
        id = |row, clock| row.file.id.cell(clock);
        attempt = |row, clock| row.file.attempt.cell(clock);
        bytes as "SIZE" = |row, _| size::short(row.file.bytes);
        wide task = |row, clock| row.file.task.cell(clock);
        name = |row, _| {
            let name = row.file.name.clone();
            if row.file.lost { format!("{name} (lost to damage)") } else { name }
        };
        wide path;
    ];

    fn name(&self) -> String {
        self.path.clone().unwrap_or_else(|| self.file.name.clone())
    }
}

/// Files that tasks of a job brought back.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResultListDocument<'a> {
    /// The job.
    pub(crate) job: String,
    /// By task and name.
    pub(crate) files: &'a [ResultRow],
    /// Whether a part of the archive cannot be read that may have held more.
    pub(crate) damaged: bool,
}
