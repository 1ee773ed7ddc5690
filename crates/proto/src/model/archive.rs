//! Files and output of tasks: output, result files and uploads. The broker keeps them in its archive.

use std::fmt;

use bytes::Bytes;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::TaskId;
use super::job::JobId;
use super::limits::FILE_NAME_BYTES_MAX;
use super::words::words;

/// The id of an upload: the SHA-256 of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UploadId(pub [u8; 32]);

impl fmt::Display for UploadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for UploadId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for UploadId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = Bytes::deserialize(deserializer)?;
        <[u8; 32]>::try_from(&bytes[..]).map(Self).map_err(|_| D::Error::custom("an upload's id has 32 bytes"))
    }
}

words! {
    /// Where a task wrote something.
    pub enum OutputStream {
        /// Its standard output.
        Stdout = "stdout",
        /// Its standard error.
        Stderr = "stderr",
    }
}

/// Something that a task wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct OutputPiece {
    /// The job of the task.
    pub job: JobId,
    /// The number of the task.
    pub task: u32,
    /// The number of the attempt.
    pub attempt: u32,
    /// Where it was written.
    pub stream: OutputStream,
    /// How much the attempt had written before, to both streams together, in the order in which its worker read it. If
    /// that is more than where the piece before it ends, what is between was left out.
    pub at: u64,
    /// It is for those who look at the task now, and would be left out otherwise: kept in memory for a moment only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub live: bool,
    /// The bytes of output.
    pub bytes: Bytes,
    /// Bytes that the task wrote here and that are lost to damage of the archive; then there are no others. Only in answers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A place in the output of a job, which is ordered by task, attempt and position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct OutputPlace {
    /// The number of the task.
    pub task: u32,
    /// The number of the attempt.
    pub attempt: u32,
    /// The position in the output, in bytes.
    pub at: u64,
}

/// A result file of a task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub struct FileView {
    /// Job and number of the task, as commands accept it.
    pub id: TaskId,
    /// The number of the task.
    pub task: u32,
    /// Attempt that produced it.
    pub attempt: u32,
    /// Its path in the task's directory.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// True if the file is lost to damage; then its name is the readable part of it.
    pub lost: bool,
}

/// Whether a file of a task may have that name: a path below the task's directory, which can be made anywhere without
/// leaving the place it is made at.
pub fn is_file_name(name: &str) -> bool {
    let is_part = |part: &str| !matches!(part, "" | "." | "..");
    (1..=FILE_NAME_BYTES_MAX).contains(&name.len()) && !name.contains('\0') && name.split('/').all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_stays_where_it_is() {
        for good in ["a", "a.txt", "a/b/c", "...", "a b", "ü", ".hidden"] {
            assert!(is_file_name(good), "{good}");
        }
        let long = "x".repeat(FILE_NAME_BYTES_MAX + 1);
        for bad in ["", "/", "/a", "a/", "a//b", ".", "..", "a/..", "../a", "a/../../b", "a\0b", "./a", &long] {
            assert!(!is_file_name(bad), "{bad}");
        }
    }
}
