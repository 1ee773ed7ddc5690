//! The items of a job: numbers, lines, rows, values or paths.

mod csv;
mod glob;
mod json;
mod lines;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use bytes::Bytes;
use turno_proto::items::{Builder, ItemsError};
use turno_proto::model::Code;
use turno_proto::model::job::Array;
use turno_proto::model::limits::EACH_BYTES_MAX;

use super::flags::Source;
use crate::cli::error::Failure;
use crate::cli::size;

/// The tasks of a job and what each of them is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobTasks {
    pub(super) array: Array,
    /// The parts of a list of numbers.
    pub(super) parts: Vec<Array>,
    /// Names of an item's fields; none where an item has one.
    pub(super) columns: Vec<String>,
    /// Empty if there are none: the number says it all.
    pub(super) items: Bytes,
}

impl JobTasks {
    const fn numbered(array: Array, parts: Vec<Array>) -> Self {
        Self { array, parts, columns: Vec::new(), items: Bytes::new() }
    }
}

/// The tasks that were asked for; `stdin` is read for a file called `-`.
pub(super) fn tasks(source: &Source, stdin: impl Read) -> Result<JobTasks, Failure> {
    let Source { array, each_line, each_csv, each_json, glob, each } = source;
    if let Some(array) = array {
        Ok(JobTasks::numbered(array.array, array.parts.clone()))
    } else if let Some(path) = each_line {
        let input = Input::read(path, stdin)?;
        lines::items(&input)?.finish(|| input.has_none("it has no non-empty line"))
    } else if let Some(path) = each_csv {
        let input = Input::read(path, stdin)?;
        csv::items(&input)?.finish(|| input.has_none("it has no row after the header"))
    } else if let Some(path) = each_json {
        let input = Input::read(path, stdin)?;
        json::items(&input)?.finish(|| input.has_none("it has no value"))
    } else if let Some(pattern) = glob {
        glob::items(pattern)?.finish(|| glob::nothing(pattern))
    } else if each.is_empty() {
        Ok(JobTasks::numbered(Array::ONE, Vec::new()))
    } else {
        let mut items = Items::plain()?;
        for value in each {
            items.push(&[value], || format!("--each {value:?}"))?;
        }
        items.finish(|| Failure::of(Code::NotFound))
    }
}

/// A file that tasks are made of.
struct Input {
    /// Its name, for people.
    name: String,
    bytes: Vec<u8>,
}

impl Input {
    fn read(path: &Path, stdin: impl Read) -> Result<Self, Failure> {
        let (name, read) = match path.to_str() {
            Some("-") => ("standard input".to_owned(), bounded(stdin)),
            _ => (path.display().to_string(), File::open(path).and_then(bounded)),
        };
        let mut bytes = read.map_err(|error| {
            Failure::new(Code::Io, format!("cannot read {name}"))
                .why(error.to_string())
                .fix("use a readable file, or - for standard input")
        })?;
        if bytes.len() as u64 > EACH_BYTES_MAX {
            return Err(Failure::new(Code::BadJob, format!("{name} is too large for one job"))
                .why(format!("the input may have {} at most", size::short(EACH_BYTES_MAX)))
                .fix("split it and submit several jobs"));
        }
        // A mark that some editors write in front is no part of the text.
        if bytes.starts_with(b"\xef\xbb\xbf") {
            bytes.drain(..3);
        }
        Ok(Self { name, bytes })
    }

    /// At that line of it, from 1 on.
    fn at(&self, line: u64) -> String {
        format!("{}:{line}", self.name)
    }

    fn has_none(&self, why: &str) -> Failure {
        Failure::new(Code::NotFound, format!("no task in {}", self.name)).why(why).fix("a job has at least one task")
    }
}

fn bounded(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(EACH_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Items as they are found.
struct Items {
    columns: Vec<String>,
    builder: Builder,
}

impl Items {
    /// Items of one field without a name.
    fn plain() -> Result<Self, Failure> {
        Self::new(Vec::new(), "")
    }

    /// Items with these fields, which are named there.
    fn new(columns: Vec<String>, at: &str) -> Result<Self, Failure> {
        match Builder::new(columns.len().max(1)) {
            Ok(builder) => Ok(Self { columns, builder }),
            Err(error) => Err(bad(at, "too many columns").why(error.to_string())),
        }
    }

    /// Adds one; `at` says where it was found.
    fn push<T: AsRef<str>>(&mut self, fields: &[T], at: impl Fn() -> String) -> Result<(), Failure> {
        self.builder.push(fields).map_err(|error| match error {
            ItemsError::Zero => bad(&at(), "it contains a NUL byte").why("command arguments cannot contain one"),
            error => bad(&at(), "the input is too large for one job")
                .why(error.to_string())
                .fix("split it into several jobs, or pass file names instead of file contents"),
        })
    }

    fn finish(self, nothing: impl FnOnce() -> Failure) -> Result<JobTasks, Failure> {
        if self.builder.is_empty() {
            return Err(nothing());
        }
        let count = u32::try_from(self.builder.len()).unwrap_or(u32::MAX);
        let array = Array { first: 1, count, step: 1 };
        array.check().map_err(|error| {
            Failure::new(Code::BadJob, format!("{count} tasks are too many for one job")).why(error.to_string())
        })?;
        Ok(JobTasks { array, parts: Vec::new(), columns: self.columns, items: self.builder.finish() })
    }
}

/// The error about an input that cannot be a task.
fn bad(at: &str, what: &str) -> Failure {
    Failure::new(Code::BadJob, format!("{at}: {what}"))
        .why("each entry becomes a task")
        .fix("correct the input and submit again; nothing was submitted")
}

#[cfg(test)]
mod tests;
