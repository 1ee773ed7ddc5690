//! The verdict on an attempt: a short text, the same for the same kind of failure.

use std::io;
use std::path::Path;
use std::time::Duration;

use turno_proto::foreman::StatusUpdate;
use turno_proto::model::limits::TASK_STATUS_BYTES_MAX;
use turno_proto::model::units;

use crate::process::Exit;

/// The exit status of a shell for a program that is not there.
const NOT_FOUND: i32 = 127;
/// The exit status of a shell for a program that it cannot run.
const CANNOT_RUN: i32 = 126;

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its program ended by itself, or by a signal of others.
    Ended { exit: Exit, last_line: String },
    /// It was ended because it had its time.
    TimeLimit(Duration),
    /// It was ended because nobody wants it any more.
    Cancelled,
    /// It was ended because its worker ends.
    GivenBack,
    /// There is no such program.
    NotFound(String),
    /// The program is there, and does not start.
    CannotRun { program: String, why: String },
    /// Something around it failed.
    Failed(String),
}

impl Verdict {
    /// Why a program did not start.
    pub(crate) fn not_started(error: &io::Error, program: &str, dir: &Path) -> Self {
        let cannot = |why: String| Self::CannotRun { program: program.to_owned(), why };
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory if !dir.is_dir() => Self::no_directory(dir),
            // A program that exists and is not found names an interpreter that does not.
            io::ErrorKind::NotFound if program.contains('/') && dir.join(program).exists() => {
                cannot("its interpreter is missing".to_owned())
            }
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::NotFound(program.to_owned()),
            io::ErrorKind::PermissionDenied if rustix::fs::access(dir, rustix::fs::Access::EXEC_OK).is_err() => {
                Self::Failed(format!("cannot enter directory: {} (permission denied)", dir.display()))
            }
            _ => cannot(words(error)),
        }
    }

    pub(crate) fn no_directory(dir: &Path) -> Self {
        Self::Failed(format!("no such directory: {}", dir.display()))
    }

    pub(crate) fn is_success(&self) -> bool {
        matches!(self, Self::Ended { exit, .. } if exit.is_success())
    }

    /// As the foreman is told.
    pub(crate) fn update(self, job: u64, task: u32) -> StatusUpdate {
        let success = self.is_success();
        let given_back = self == Self::GivenBack;
        let (exit_code, signal, status) = match self {
            Self::Ended { exit, .. } if exit.is_success() => (exit.code, None, "done".to_owned()),
            Self::Ended { exit, last_line } => (exit.code, exit.signal, exit.with(&last_line)),
            Self::TimeLimit(limit) => (None, None, format!("time limit of {}", units::format_duration(limit))),
            Self::Cancelled => (None, None, "cancelled".to_owned()),
            Self::GivenBack => (None, None, "given back".to_owned()),
            Self::NotFound(program) => (Some(NOT_FOUND), None, format!("not found: {program}")),
            Self::CannotRun { program, why } => (Some(CANNOT_RUN), None, format!("cannot run: {program} ({why})")),
            Self::Failed(text) => (None, None, text),
        };
        let status = status[..status.floor_char_boundary(TASK_STATUS_BYTES_MAX)].to_owned();
        StatusUpdate { job, task, success, status, exit_code, signal, given_back, ..StatusUpdate::default() }
    }
}

/// An error in plain words, without its number.
pub(crate) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

/// The last line that is not empty, of bytes as they come. What ends with a carriage return is a line, too.
#[derive(Debug, Default)]
pub(crate) struct LastLine {
    tail: Vec<u8>,
}

impl LastLine {
    /// The useful part: a status has no room for more.
    const KEPT: usize = 2 * TASK_STATUS_BYTES_MAX;

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let bytes = &bytes[bytes.len().saturating_sub(Self::KEPT)..];
        self.tail.extend_from_slice(bytes);
        self.tail.drain(..self.tail.len().saturating_sub(Self::KEPT));
    }

    pub(crate) fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.tail);
        let line = text.split(['\n', '\r']).map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
        line.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_line(pieces: &[&[u8]]) -> String {
        let mut last = LastLine::default();
        pieces.iter().for_each(|piece| last.push(piece));
        last.text()
    }

    #[test]
    fn the_last_line_of_what_was_written() {
        assert_eq!(last_line(&[]), "");
        assert_eq!(last_line(&[b"\n \n"]), "");
        assert_eq!(last_line(&[b"one\ntw", b"o", b"\n\n"]), "two");
        assert_eq!(last_line(&[b"10%\r20%\r"]), "20%");
        assert_eq!(last_line(&[b"a\x1b[31mred\tb"]), "a [31mred b");
        assert_eq!(last_line(&[b"one\n\xff\xfe"]), "\u{fffd}\u{fffd}");
        let long = vec![b'x'; 100_000];
        assert_eq!(last_line(&[b"one\n", &long]).len(), LastLine::KEPT);
        assert_eq!(last_line(&[&long, b"\nend"]), "end");
    }

    #[test]
    fn every_end_has_its_words() {
        let ended =
            |code, signal, line: &str| Verdict::Ended { exit: Exit { code, signal }, last_line: line.to_owned() };
        let table = [
            (ended(Some(0), None, "warning"), (Some(0), None, "done")),
            (ended(Some(3), None, "no such sample"), (Some(3), None, "exit 3: no such sample")),
            (ended(Some(3), None, ""), (Some(3), None, "exit 3")),
            (ended(None, Some(9), ""), (None, Some(9), "killed by signal 9")),
            (ended(None, Some(11), "at frame 7"), (None, Some(11), "killed by signal 11: at frame 7")),
            (Verdict::TimeLimit(Duration::from_secs(5)), (None, None, "time limit of 5s")),
            (Verdict::Cancelled, (None, None, "cancelled")),
            (Verdict::NotFound("./sim".to_owned()), (Some(127), None, "not found: ./sim")),
            (Verdict::no_directory(Path::new("/x")), (None, None, "no such directory: /x")),
        ];
        for (verdict, (code, signal, status)) in table {
            let success = verdict.is_success();
            let update = verdict.update(7, 3);
            assert_eq!(
                (update.job, update.task, update.success, update.given_back),
                (7, 3, success, false),
                "{status}"
            );
            assert_eq!((update.exit_code, update.signal, update.status.as_str()), (code, signal, status));
        }
        assert!(Verdict::GivenBack.update(1, 1).given_back);
        let long = ended(Some(1), None, &"é".repeat(1_000)).update(1, 1).status;
        assert!(long.len() <= TASK_STATUS_BYTES_MAX && long.starts_with("exit 1: éé"), "{long}");
    }
}
