//! What tasks wrote and brought back, as programs read it.

use schemars::JsonSchema;
use serde::Serialize;
use turno_proto::model::archive::{FileView, OutputPiece, OutputStream};
use turno_proto::model::job::JobId;

use super::Document;
use super::reply::Content;
use crate::cli::size;
use crate::cli::table::{Column, Row};

/// A piece of what a task wrote.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OutputRow {
    /// Its job and its number, as commands take it.
    pub(crate) id: String,
    /// The number of the task.
    pub(crate) task: u32,
    /// The attempt.
    pub(crate) attempt: u32,
    /// `stdout` or `stderr`.
    pub(crate) stream: String,
    /// How much the attempt had written before, to both streams together.
    pub(crate) at: u64,
    /// Bytes right before this piece that were left out.
    pub(crate) left_out: u64,
    /// Bytes that the task wrote here and that are lost to damage; then there is no body.
    pub(crate) lost: u64,
    /// What it wrote.
    #[serde(flatten)]
    pub(crate) content: Content,
}

impl OutputRow {
    pub(crate) fn new(piece: &OutputPiece, left_out: u64) -> Self {
        let OutputPiece { job, task, attempt, stream, at, bytes, lost, .. } = piece;
        let stream = match stream {
            OutputStream::Stdout => "stdout",
            OutputStream::Stderr => "stderr",
        };
        Self {
            id: format!("{job}.{task}"),
            task: *task,
            attempt: *attempt,
            stream: stream.to_owned(),
            at: *at,
            left_out,
            lost: *lost,
            content: Content::from(&bytes[..]),
        }
    }
}

impl Document for OutputRow {
    const SCHEMA: &'static str = "turno.output_row/1";
}

impl Row for OutputRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("id", |row, _| row.id.clone()),
        Column::new("attempt", |row, _| row.attempt.to_string()),
        Column::new("stream", |row, _| row.stream.clone()),
        Column::new("at", |row, _| row.at.to_string()),
        Column::wide("task", |row, _| row.task.to_string()),
        Column::wide("left_out", |row, _| row.left_out.to_string()),
        Column::wide("lost", |row, _| row.lost.to_string()),
        Column::wide("encoding", |row, _| row.content.encoding.clone()),
        Column::new("body", |row, _| row.content.body.clone()),
    ];

    fn name(&self) -> String {
        self.id.clone()
    }
}

/// What tasks wrote.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct OutputDocument<'a> {
    /// By job, task, attempt and position; followed, in the order in which it came.
    pub(crate) pieces: &'a [OutputRow],
    /// Whether a part of the archive cannot be read that may have held more.
    pub(crate) damaged: bool,
}

impl Document for OutputDocument<'_> {
    const SCHEMA: &'static str = "turno.output/1";
}

/// A file that a task brought back.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ResultRow {
    /// Its job and the number of the task, as commands take it.
    pub(crate) id: String,
    /// The number of the task.
    pub(crate) task: u32,
    /// The attempt that brought it.
    pub(crate) attempt: u32,
    /// Its path in the task's directory.
    pub(crate) name: String,
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// Where it was written to; null if it was only listed, or is lost.
    pub(crate) path: Option<String>,
    /// Whether it is lost to damage; then its name is what can be read of that.
    pub(crate) lost: bool,
}

impl ResultRow {
    pub(crate) fn new(job: JobId, file: &FileView) -> Self {
        let FileView { task, attempt, name, size, lost } = file;
        let (id, name) = (format!("{job}.{task}"), name.clone());
        Self { id, task: *task, attempt: *attempt, name, bytes: *size, path: None, lost: *lost }
    }
}

impl Document for ResultRow {
    const SCHEMA: &'static str = "turno.result_row/1";
}

impl Row for ResultRow {
    const COLUMNS: &'static [Column<Self>] = &[
        Column::new("id", |row, _| row.id.clone()),
        Column::new("attempt", |row, _| row.attempt.to_string()),
        Column::new("bytes", |row, _| size::short(row.bytes)),
        Column::wide("task", |row, _| row.task.to_string()),
        Column::new(
            "name",
            |row, _| if row.lost { format!("{} (lost to damage)", row.name) } else { row.name.clone() },
        ),
        Column::wide("path", |row, _| row.path.clone().unwrap_or_default()),
    ];

    fn name(&self) -> String {
        self.path.clone().unwrap_or_else(|| self.name.clone())
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

impl Document for ResultListDocument<'_> {
    const SCHEMA: &'static str = "turno.result_list/1";
}
