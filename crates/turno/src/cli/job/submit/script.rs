//! A script that says itself how it wants to be run. `#TURNO` lines among the comments at its beginning hold flags of
//! `turno submit`.
//!
//! ```text
//! #!/bin/sh
//! #TURNO --array 1-100%8 --time-limit 1h
//! ./simulate "$1"
//! ```

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::Parser;
use turno_proto::model::Code;
use turno_proto::model::limits::SCRIPT_HEAD_BYTES_MAX;

use super::flags::Flags;
use crate::cli::error::Failure;
use crate::cli::{shell, usage};

/// The beginning of a line with flags.
const MARK: &str = "#TURNO";

/// A script with what it asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) path: PathBuf,
    /// Its file name.
    pub(super) name: String,
    pub(super) flags: Flags,
    /// The line of a mark that stands too low to be read.
    pub(super) unread: Option<usize>,
}

/// The flags of one line.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true, disable_version_flag = true)]
struct ScriptLine {
    #[command(flatten)]
    flags: Flags,
}

impl Script {
    pub(super) fn read(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        let missing = |error: std::io::Error| {
            // Most likely it is a command, and the hyphens before it are missing.
            let code = if error.kind() == std::io::ErrorKind::NotFound { Code::BadUsage } else { Code::Io };
            Failure::new(code, format!("cannot read the script {shown}"))
                .why(error.to_string())
                .fix(format!("use an existing script; put a command after --: `turno submit -- {shown}`"))
        };
        let about = fs::metadata(path).map_err(missing)?;
        if !about.is_file() {
            return Err(Failure::new(Code::BadUsage, format!("the script {shown} is not a file"))
                .why("the script is sent to the workers")
                .fix("use a file; put a command after --"));
        }
        let name = path.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
            Failure::new(Code::BadUsage, format!("the script name {shown} is not valid UTF-8"))
                .why("a job can carry only UTF-8 text")
                .fix("rename it")
        })?;
        let mut head = Vec::new();
        File::open(path).and_then(|file| file.take(SCRIPT_HEAD_BYTES_MAX).read_to_end(&mut head)).map_err(missing)?;
        runnable(path, &head, about.permissions().mode())?;
        let (flags, unread) = flags_of(&head, &shown.to_string())?;
        Ok(Self { path: path.to_owned(), name: name.to_owned(), flags, unread })
    }
}

/// Whether a system would run it.
fn runnable(path: &Path, head: &[u8], mode: u32) -> Result<(), Failure> {
    let first = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let shown = path.display();
    if first.starts_with(b"#!") && first.ends_with(b"\r") {
        return Err(Failure::new(Code::BadJob, format!("{shown}:1: the line ends with a carriage return"))
            .why("the carriage return would become part of the interpreter's name")
            .fix(format!("remove them: `sed -i 's/\\r$//' {shown}`")));
    }
    if first.starts_with(b"#!") || mode & 0o111 != 0 {
        return Ok(());
    }
    Err(Failure::new(Code::BadJob, format!("{shown} cannot be run"))
        .why("it has no #! line and is not executable")
        .fix("start it with an interpreter line, for example #!/bin/sh"))
}

/// The flags of the marked lines above the first line that is neither empty nor a comment; later lines beat earlier ones.
fn flags_of(head: &[u8], name: &str) -> Result<(Flags, Option<usize>), Failure> {
    let mut flags = Flags::default();
    let mut is_head = true;
    for (place, line) in head.split(|byte| *byte == b'\n').enumerate() {
        let line = line.trim_ascii();
        is_head &= line.is_empty() || line.starts_with(b"#");
        let Some(rest) = line.strip_prefix(MARK.as_bytes()) else { continue };
        if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
            continue;
        }
        if !is_head {
            return Ok((flags, Some(place + 1)));
        }
        let at = format!("{name}:{}", place + 1);
        let words = std::str::from_utf8(rest).ok().and_then(shell::split).ok_or_else(|| {
            Failure::new(Code::BadUsage, format!("{at}: invalid line"))
                .why("a quote is not closed, or the line is not valid UTF-8")
                .fix("quote it as in a shell")
        })?;
        let line = ScriptLine::try_parse_from(&words).map_err(|error| {
            let said = usage::failure(&error);
            Failure::new(Code::BadUsage, format!("{at}: {}", said.what()))
                .why("a #TURNO line takes flags of `turno submit` only")
                .fix("`turno submit --help` lists them")
        })?;
        flags = line.flags.over(flags);
    }
    Ok((flags, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Flags, Option<usize>), String> {
        flags_of(text.as_bytes(), "run.sh").map_err(|failure| failure.what().to_owned())
    }

    /// A script, its name and slots, and the line that is not read.
    type Case<'a> = (&'a str, Option<&'a str>, Option<u16>, Option<usize>);

    #[test]
    fn flags_stand_among_the_comments_at_the_beginning() {
        let table: [Case<'_>; 9] = [
            ("#!/bin/sh\n#TURNO --name a --slots 2\necho\n", Some("a"), Some(2), None),
            ("#!/bin/sh\r\n\r\n# about\r\n#TURNO --name a\r\n", Some("a"), None, None),
            ("#!/bin/sh\n  #TURNO\t--name 'a b'\n", Some("a b"), None, None),
            ("#TURNO --name a\n#TURNO --slots 2 --name b\n", Some("b"), Some(2), None),
            ("#TURNO\n#TURNOS --name a\n# TURNO --name a\n", None, None, None),
            ("#TURNO --slots 2\necho\n\n#TURNO --name a\n", None, Some(2), Some(4)),
            ("echo '\n#TURNO --nonsense'\n", None, None, Some(2)),
            ("\x7fELF\0\0\n\n", None, None, None),
            ("", None, None, None),
        ];
        for (text, name, slots, unread) in table {
            let (flags, found) = read(text).unwrap_or_else(|said| panic!("{text}: {said}"));
            assert_eq!((flags.name.as_deref(), flags.slots, found), (name, slots, unread), "{text}");
        }
    }

    #[test]
    fn a_line_that_makes_no_sense_is_told_with_its_place() {
        let table = [
            ("#!/bin/sh\n\n#TURNO --nonsense 1\n", "run.sh:3: unexpected argument '--nonsense' found"),
            ("#TURNO --slots 0\n", "run.sh:1: invalid value '0' for '--slots <N>'"),
            ("#TURNO --array 1-3 --each a\n", "run.sh:1: the argument '--array <LIST[%MAX]>' cannot be used with"),
            ("#TURNO --json\n", "run.sh:1: unexpected argument '--json' found"),
            ("#TURNO words\n", "run.sh:1: unexpected argument 'words' found"),
            ("#TURNO -- words\n", "run.sh:1: unexpected argument 'words' found"),
            ("#TURNO --name 'a\n", "run.sh:1: invalid line"),
            ("#TURNO --help\n", "run.sh:1: unexpected argument '--help' found"),
        ];
        for (text, expected) in table {
            let said = read(text).expect_err(text);
            assert!(said.contains(expected), "{said} instead of {expected}");
        }
        let said = flags_of(b"#TURNO --name \xff\n", "run.sh").unwrap_err();
        assert_eq!((said.what(), said.exit()), ("run.sh:1: invalid line", 2));
    }

    #[test]
    fn what_no_system_would_run_is_refused() {
        let table: [(&[u8], u32, Option<&str>); 6] = [
            (b"#!/bin/sh\necho\n", 0o644, None),
            (b"#!/usr/bin/env python3", 0o644, None),
            (b"\x7fELF", 0o755, None),
            (b"\x7fELF", 0o644, Some("cannot be run")),
            (b"echo\n", 0o644, Some("cannot be run")),
            (b"#!/bin/sh\r\necho\r\n", 0o755, Some("ends with a carriage return")),
        ];
        for (head, mode, expected) in table {
            let said = runnable(Path::new("run.sh"), head, mode);
            match expected {
                None => assert_eq!(said, Ok(())),
                Some(expected) => assert!(said.unwrap_err().what().contains(expected), "{expected}"),
            }
        }
    }
}
