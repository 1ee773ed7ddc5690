//! Damaged files of the archive, and the names under which unreadable ones are set aside. Nothing is ever removed
//! because it cannot be read.

use std::fmt;
use std::io;

use crate::disk::Disk;

/// The suffix of a file that was set aside, before a number.
const ASIDE: &str = ".damaged-";

/// Something wrong with a file of the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileProblem {
    /// The file's name.
    pub file: String,
    /// The first byte it is about.
    pub from: u64,
    /// The first byte behind those.
    pub until: u64,
    /// The kind of the flaw.
    pub flaw: Flaw,
}

/// A flaw of a file of the archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Flaw {
    /// The header is damaged, and its records are known all the same.
    Header,
    /// The index is damaged, and its records are known all the same.
    Index,
    /// A record is damaged.
    Record,
    /// Bytes are no record.
    Gap,
    /// The file ends with a record that is not whole.
    Torn,
    /// An upload does not have the hash that it is named by.
    Hash,
    /// It was set aside under this name.
    SetAside(String),
    /// The system does not let it be read, or set aside.
    Io(String),
}

impl Flaw {
    /// Whether something that was kept may be lost.
    #[must_use]
    pub const fn loses(&self) -> bool {
        !matches!(self, Self::Header | Self::Index | Self::Torn)
    }
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header => f.write_str("the header is damaged; all records can be read"),
            Self::Index => f.write_str("the index is damaged; the records are read without it"),
            Self::Record => f.write_str("a record is damaged"),
            Self::Gap => f.write_str("these bytes are not a record"),
            Self::Torn => f.write_str("the last record was not completed"),
            Self::Hash => f.write_str("the content does not have the hash in the file's name"),
            Self::SetAside(name) => write!(f, "unreadable; set aside as {name}"),
            Self::Io(error) => write!(f, "unreadable: {error}"),
        }
    }
}

/// Renames a file that cannot be read; returns its new name. `number`: which stands at its end, if that name is free.
pub(super) fn set_aside<D: Disk>(disk: &mut D, name: &str, number: u64) -> io::Result<String> {
    let names = disk.names()?;
    let aside = (number..=u64::MAX).map(|number| format!("{name}{ASIDE}{number}")).find(|aside| !names.contains(aside));
    let aside = aside.ok_or(io::ErrorKind::AlreadyExists)?;
    disk.rename(name, &aside)?;
    disk.sync_directory()?;
    Ok(aside)
}

/// The name that a file had before it was set aside, and the number behind it.
pub(super) fn set_aside_from(name: &str) -> Option<(&str, u64)> {
    let (before, number) = name.rsplit_once(ASIDE)?;
    Some((before, number.parse().ok()?))
}
