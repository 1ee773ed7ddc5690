//! Printing of output: raw, with the task in front of each line, or as JSON.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use turno_proto::model::Code;
use turno_proto::model::archive::{OutputPiece, OutputStream};

use super::{AttemptFilter, LogsArgs};
use crate::cli::Invocation;
use crate::cli::error::Failure;
use crate::cli::global::Format;
use crate::cli::schema::output::{OutputDocument, OutputRow};
use crate::cli::size;

/// Bytes of a line that may wait for its end. More: it is shown as a line.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Lines, and where they were written.
type Lines = VecDeque<(OutputStream, Vec<u8>)>;

/// Shows pieces as they are told.
pub(super) struct LogsPrinter<'a> {
    invocation: &'a Invocation,
    args: &'a LogsArgs,
    /// The task, or its attempt, stands in front of each line.
    prefixed: bool,
    /// One task is shown.
    single: bool,
    /// The attempt that was named last, where lines do not name it.
    attempt: u32,
    /// Beginnings of lines, by task and stream.
    partial: BTreeMap<(String, bool), Vec<u8>>,
    /// The attempt whose last lines are wanted, and those.
    tail: Option<(OutputPiece, Lines)>,
    rows: Vec<OutputRow>,
    /// The task whose name was printed last.
    named: Option<String>,
    told: bool,
    /// Bytes that are lost to damage.
    lost: u64,
    /// A part of the archive cannot be read that may have held more.
    pub(super) damaged: bool,
}

impl<'a> LogsPrinter<'a> {
    pub(super) fn new(invocation: &'a Invocation, args: &'a LogsArgs, single: bool) -> Self {
        // Of one task it is the attempts that must be told apart.
        let prefixed = !args.no_prefix && (!single || args.attempt == Some(AttemptFilter::All));
        let (partial, rows) = (BTreeMap::new(), Vec::new());
        Self {
            invocation,
            args,
            prefixed,
            single,
            attempt: 1,
            partial,
            tail: None,
            rows,
            named: None,
            told: false,
            lost: 0,
            damaged: false,
        }
    }

    /// After the last piece: says what is missing, and fails if some of it is known to be lost.
    pub(super) fn verdict(&self) -> Result<(), Failure> {
        if self.lost > 0 {
            let what = format!("{} of this output are lost because the archive is damaged", size::short(self.lost));
            return Err(Failure::new(Code::ArchiveDamaged, what));
        }
        if self.damaged {
            let what = if self.told { "more output may be lost" } else { "output may be lost" };
            self.invocation.output.warn(&format!(
                "{what}: part of the archive is unreadable, and its owner is unknown; `turno doctor` shows details"
            ));
        } else if !self.told {
            self.invocation.output.hint("no output was written, or it is no longer kept");
        }
        Ok(())
    }

    /// A piece, and how many bytes are missing before it.
    pub(super) fn tell(&mut self, piece: &OutputPiece, left_out: u64) -> Result<(), Failure> {
        // Lost bytes may have been written to either stream.
        let is_wanted = self.args.wants(piece.stream) || piece.lost > 0;
        self.told |= is_wanted;
        self.lost += piece.lost;
        match self.invocation.output.format() {
            _ if !is_wanted => Ok(()),
            Format::Text | Format::Wide if piece.lost > 0 => {
                self.gap(piece, left_out, "left out")?;
                self.gap(piece, piece.lost, "lost to damage")
            }
            Format::Text | Format::Wide if self.args.tail.is_some() => self.keep_tail(piece),
            Format::Text | Format::Wide => {
                self.gap(piece, left_out, "left out")?;
                self.show(piece, piece.stream, &piece.bytes)
            }
            Format::Name => {
                let id = format!("{}.{}", piece.job, piece.task);
                if self.named.as_ref() == Some(&id) {
                    return Ok(());
                }
                self.invocation.output.text(id.as_str())?;
                self.named = Some(id);
                Ok(())
            }
            Format::Json if self.args.tail.is_none() || piece.lost > 0 => {
                self.rows.push(OutputRow::new(piece, left_out));
                Ok(())
            }
            Format::Jsonl if self.args.tail.is_none() || piece.lost > 0 => self.row(OutputRow::new(piece, left_out)),
            Format::Json | Format::Jsonl => self.keep_tail(piece),
        }
    }

    fn row(&self, row: OutputRow) -> Result<(), Failure> {
        let rows = [row];
        self.invocation.output.rows(&OutputDocument { pieces: &rows, damaged: self.damaged }, &rows)
    }

    /// All is told.
    pub(super) fn end(&mut self) -> Result<(), Failure> {
        self.show_tail()?;
        for ((prefix, is_error), line) in std::mem::take(&mut self.partial) {
            self.line(&prefix, is_error, &line)?;
        }
        if self.invocation.output.format() == Format::Json {
            self.invocation.output.document(&OutputDocument { pieces: &self.rows, damaged: self.damaged })?;
        }
        Ok(())
    }

    /// Reports missing bytes once, at their place.
    fn gap(&mut self, piece: &OutputPiece, missing: u64, why: &str) -> Result<(), Failure> {
        if missing == 0 {
            return Ok(());
        }
        let prefix = self.prefix(piece);
        for is_error in [false, true] {
            if let Some(line) = self.partial.remove(&(prefix.clone(), is_error)) {
                self.line(&prefix, is_error, &line)?;
            }
        }
        self.invocation.output.stderr(format!("{prefix}… {} {why} …", size::short(missing)));
        Ok(())
    }

    fn prefix(&self, piece: &OutputPiece) -> String {
        let OutputPiece { job, task, attempt, .. } = piece;
        match (self.prefixed, self.single) {
            (false, _) => String::new(),
            (true, true) => format!("attempt {attempt}: "),
            (true, false) if *attempt > 1 || self.args.attempt.is_some() => format!("{job}.{task} attempt {attempt}: "),
            (true, false) => format!("{job}.{task}: "),
        }
    }

    /// Says which attempt of the one task follows, if it is not the first and nothing in front of lines says so.
    fn name_attempt(&mut self, piece: &OutputPiece) {
        let OutputPiece { job, task, attempt, .. } = piece;
        if !self.single || self.prefixed || self.args.no_prefix || self.attempt == *attempt {
            return;
        }
        self.attempt = *attempt;
        self.invocation.output.note(&format!("attempt {attempt} of task {job}.{task}; show all with --attempt all"));
    }

    fn show(&mut self, piece: &OutputPiece, stream: OutputStream, bytes: &[u8]) -> Result<(), Failure> {
        // The chosen stream goes to standard output, whichever it is.
        let is_error = stream == OutputStream::Stderr && !self.args.stderr;
        self.name_attempt(piece);
        if !self.prefixed {
            return self.write(is_error, bytes);
        }
        let prefix = self.prefix(piece);
        let key = (prefix.clone(), is_error);
        let mut rest = self.partial.remove(&key).unwrap_or_default();
        rest.extend_from_slice(bytes);
        let whole = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let mut lines = Vec::new();
        for line in rest[..whole].split_inclusive(|byte| *byte == b'\n') {
            lines.extend_from_slice(prefix.as_bytes());
            lines.extend_from_slice(line);
        }
        rest.drain(..whole);
        if rest.len() > LINE_BYTES_MAX {
            lines.extend_from_slice(prefix.as_bytes());
            lines.append(&mut rest);
            lines.push(b'\n');
        }
        if !rest.is_empty() {
            self.partial.insert(key, rest);
        }
        self.write(is_error, &lines)
    }

    fn line(&self, prefix: &str, is_error: bool, line: &[u8]) -> Result<(), Failure> {
        self.write(is_error, &[prefix.as_bytes(), line, b"\n"].concat())
    }

    fn write(&self, is_error: bool, bytes: &[u8]) -> Result<(), Failure> {
        match (bytes.is_empty(), is_error) {
            (true, _) => Ok(()),
            (false, false) => self.invocation.output.raw(bytes),
            (false, true) => {
                self.invocation.output.stderr_raw(bytes);
                Ok(())
            }
        }
    }

    /// Holds the last lines of an attempt until another one's come.
    fn keep_tail(&mut self, piece: &OutputPiece) -> Result<(), Failure> {
        let is_same =
            |held: &OutputPiece| (held.job, held.task, held.attempt) == (piece.job, piece.task, piece.attempt);
        if !self.tail.as_ref().is_some_and(|(held, _)| is_same(held)) {
            self.show_tail()?;
            self.tail = Some((OutputPiece { bytes: Bytes::new(), ..piece.clone() }, VecDeque::new()));
        }
        let most = usize::try_from(self.args.tail.unwrap_or(0)).unwrap_or(usize::MAX);
        let Some((_, lines)) = &mut self.tail else { return Ok(()) };
        for part in piece.bytes.split_inclusive(|byte| *byte == b'\n') {
            match lines.back_mut() {
                Some((stream, line)) if *stream == piece.stream && !line.ends_with(b"\n") => {
                    line.extend_from_slice(part)
                }
                _ => lines.push_back((piece.stream, part.to_vec())),
            }
            if lines.len() > most {
                lines.pop_front();
            }
        }
        Ok(())
    }

    fn show_tail(&mut self) -> Result<(), Failure> {
        let Some((piece, lines)) = self.tail.take() else { return Ok(()) };
        for (stream, line) in lines {
            let told = OutputPiece { stream, bytes: line.into(), lost: 0, ..piece.clone() };
            match self.invocation.output.format() {
                Format::Json => self.rows.push(OutputRow::new(&told, 0)),
                Format::Jsonl => self.row(OutputRow::new(&told, 0))?,
                _ => self.show(&told, stream, &told.bytes)?,
            }
        }
        Ok(())
    }
}
