//! Numbers as ids: workers, tokens, jobs and tasks.
//!
//! In formats for people they are text, because many programs that read JSON keep no more than 53 bits of a number; in
//! others they are numbers.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::moment::NumberOrText;

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<Self, ParseIntError> {
                text.parse().map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                if to.is_human_readable() { to.collect_str(self) } else { to.serialize_u64(self.0) }
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_any(NumberOrText { expected: "a number, as such or as text", of: Self })
            }
        }

        text_in_schemas!($name, "decimal");
    )* };
}

/// In a JSON schema it is text, perhaps of some format.
macro_rules! text_in_schemas {
    ($name:ident $(, $format:literal)?) => {
        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string" $(, "format": $format)? })
            }
        }
    };
}
pub(in crate::model) use text_in_schemas;

numbers! {
    /// A worker's number: no other worker of the same run of the broker gets it.
    WorkerId;
    /// The number that fences earlier holders of an exclusive queue off: it only rises.
    Token;
    /// A job's number: 1, 2, 3 … in the order of submission, never used twice by one store.
    JobId;
}

/// A task by its job and its number: `7.3` in formats for people, as commands take it, and a pair of numbers in others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// The job of the task.
    pub job: JobId,
    /// The number of the task within its job.
    pub task: u32,
}

impl fmt::Display for TaskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.job, self.task)
    }
}

/// Why a text names no task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a task is named by its job and its number: 7.3")]
pub struct TaskIdError;

impl FromStr for TaskId {
    type Err = TaskIdError;

    fn from_str(text: &str) -> Result<Self, TaskIdError> {
        let (job, task) = text.split_once('.').ok_or(TaskIdError)?;
        Ok(Self { job: job.parse().map_err(|_| TaskIdError)?, task: task.parse().map_err(|_| TaskIdError)? })
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if to.is_human_readable() { to.collect_str(self) } else { (self.job, self.task).serialize(to) }
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Pair(JobId, u32),
            Text(String),
        }
        match Form::deserialize(from)? {
            Form::Pair(job, task) => Ok(Self { job, task }),
            Form::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

text_in_schemas!(TaskId, "task");

#[cfg(test)]
mod tests {
    use super::*;

    /// Inside a tagged enum serde takes every format for one for people; both forms are read there too.
    #[test]
    fn ids_are_text_for_people_and_numbers_for_programs() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "op")]
        enum Tagged {
            Job { id: JobId, task: TaskId },
        }
        let id = JobId(u64::MAX);
        let tagged = Tagged::Job { id, task: TaskId { job: id, task: 3 } };
        let json = "{\"op\":\"Job\",\"id\":\"18446744073709551615\",\"task\":\"18446744073709551615.3\"}";
        assert_eq!(serde_json::to_string(&tagged).unwrap(), json);
        assert_eq!(serde_json::from_str::<Tagged>(json).unwrap(), tagged);
        let packed = rmp_serde::to_vec_named(&tagged).unwrap();
        assert!(packed.windows(9).any(|bytes| bytes == [0xCF, 255, 255, 255, 255, 255, 255, 255, 255]));
        assert_eq!(rmp_serde::from_slice::<Tagged>(&packed).unwrap(), tagged);
        assert_eq!(serde_json::from_str::<JobId>("7").unwrap(), JobId(7));
        assert!(serde_json::from_str::<JobId>("\"x\"").is_err());
        for bad in ["", "7", "7.", ".3", "7.3.1", "a.b"] {
            assert_eq!(bad.parse::<TaskId>(), Err(TaskIdError), "{bad}");
        }
    }
}
