//! Bodies of frames, as MessagePack maps. These are MessagePack maps with the keys that old peers know, and a few more
//! that they ignore.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::ser::{SerializeStruct, Serializer};
use serde::{Deserialize, Serialize};

use crate::model::archive::UploadId;
use crate::model::limits::FOREMAN_PROCS_MAX;

/// A task's name: its job, and its number in it, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WireTaskId {
    /// The number of the job.
    pub job: u64,
    /// The task's number.
    pub task: u32,
}

/// One task to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Task {
    /// Its number in the job, from 1; old workers give it to the command as the only argument.
    pub task: u32,
    /// The number of its job.
    #[serde(rename = "JobId")]
    pub job: u64,
    /// The job's name.
    #[serde(default, deserialize_with = "or_nil")]
    pub name: String,
    /// Tasks of the whole job.
    #[serde(default, deserialize_with = "or_nil")]
    pub num_tasks: u32,
    /// Where to run it.
    #[serde(default, deserialize_with = "or_nil")]
    pub working_dir: String,
    /// Where its output goes.
    #[serde(default, deserialize_with = "or_nil")]
    pub logging_dir: String,
    /// The command line.
    #[serde(default, deserialize_with = "or_nil")]
    pub command: String,
    /// The job's state, for people.
    #[serde(default, deserialize_with = "any_text")]
    pub status: String,
    /// Which try this is, from 1; 0 where nobody counts.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub attempt: u32,
    /// Program and arguments; if there are any, they are run instead of `command`.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub argv: Vec<String>,
    /// Added to the environment.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub env: BTreeMap<String, String>,
    /// Processors it takes, at least one.
    #[serde(default = "one", deserialize_with = "one_or_more", skip_serializing_if = "is_one")]
    pub procs: u16,
    /// Milliseconds it may run; 0 is for ever.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub time_limit: u64,
    /// Where `working_dir` does not exist, it runs in a directory of its own.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub dir_optional: bool,
    /// The upload that is its standard input.
    #[serde(default, skip_serializing_if = "is_default")]
    pub stdin: Option<UploadId>,
    /// Files that are put into its directory before it starts.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub files: Vec<TaskFile>,
    /// Patterns of files in its directory that are brought back when it has finished.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub collect: Vec<String>,
}

/// A file that a task is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TaskFile {
    /// Its path in the task's directory.
    pub name: String,
    /// The uploaded content.
    pub upload: UploadId,
    /// It may be executed.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub executable: bool,
}

impl Task {
    /// The name of the task.
    pub const fn id(&self) -> WireTaskId {
        WireTaskId { job: self.job, task: self.task }
    }

    /// Processors it takes, at least one.
    pub fn needs(&self) -> u16 {
        self.procs.max(1)
    }
}

impl Default for Task {
    fn default() -> Self {
        Self {
            task: 0,
            job: 0,
            name: String::new(),
            num_tasks: 0,
            working_dir: String::new(),
            logging_dir: String::new(),
            command: String::new(),
            status: String::new(),
            attempt: 0,
            argv: Vec::new(),
            env: BTreeMap::new(),
            procs: 1,
            time_limit: 0,
            dir_optional: false,
            stdin: None,
            files: Vec::new(),
            collect: Vec::new(),
        }
    }
}

/// A task that its worker has: it runs, or has ended and the foreman has not confirmed that yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Running {
    /// The task's number.
    pub task: u32,
    /// The number of its job.
    #[serde(rename = "JobId")]
    pub job: u64,
    /// Which try it is; 0 where nobody counts.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub attempt: u32,
    /// Processors it takes, at least one.
    #[serde(default = "one", deserialize_with = "one_or_more", skip_serializing_if = "is_one")]
    pub procs: u16,
}

impl Running {
    /// The name of the task.
    pub const fn id(&self) -> WireTaskId {
        WireTaskId { job: self.job, task: self.task }
    }

    /// Processors it takes, at least one.
    pub fn needs(&self) -> u16 {
        self.procs.max(1)
    }
}

impl From<&Task> for Running {
    fn from(task: &Task) -> Self {
        Self { task: task.task, job: task.job, attempt: task.attempt, procs: task.needs() }
    }
}

/// A worker's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Hello {
    /// Processors it offers in all, busy ones too.
    pub num_procs: u16,
    /// The tasks it has.
    #[serde(default, deserialize_with = "few_or_nil")]
    pub running: Vec<Running>,
    /// A name for people.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub name: String,
    /// The id of the worker, the same over all its connections.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub id: String,
    /// Labels of the worker.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub labels: BTreeMap<String, String>,
}

/// How a task ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct StatusUpdate {
    /// The number of the job.
    #[serde(rename = "JobId")]
    pub job: u64,
    /// The task's number.
    pub task: u32,
    /// Whether it did what it should.
    #[serde(default, deserialize_with = "or_nil")]
    pub success: bool,
    /// In words; "done" for success.
    #[serde(default, deserialize_with = "any_text")]
    pub status: String,
    /// An old worker asks for more with it; ours never does, the foreman offers by itself.
    #[serde(default, deserialize_with = "or_nil")]
    pub new_job: bool,
    /// Which try it was; 0 where nobody counts.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub attempt: u32,
    /// The exit status of its process.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub signal: Option<i32>,
    /// Its worker ended it for reasons of its own: the task has not failed, another worker shall have it.
    #[serde(default, deserialize_with = "or_nil", skip_serializing_if = "is_default")]
    pub given_back: bool,
    /// When it began, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "is_default")]
    pub started: Option<u64>,
    /// When it ended, likewise.
    #[serde(default, skip_serializing_if = "is_default")]
    pub ended: Option<u64>,
}

impl StatusUpdate {
    /// The task that ended.
    pub const fn id(&self) -> WireTaskId {
        WireTaskId { job: self.job, task: self.task }
    }
}

/// The target of a cancel: one task, or every task of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskPair {
    /// The number of the job.
    pub job: u64,
    /// The task's number; `None`, which is −1 on the wire, means all of them.
    pub task: Option<u32>,
}

impl TaskPair {
    /// Whether it names that task.
    pub fn names(&self, id: WireTaskId) -> bool {
        self.job == id.job && self.task.is_none_or(|task| task == id.task)
    }
}

impl From<WireTaskId> for TaskPair {
    fn from(id: WireTaskId) -> Self {
        Self { job: id.job, task: Some(id.task) }
    }
}

impl Serialize for TaskPair {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("TaskPair", 2)?;
        map.serialize_field("JobId", &self.job)?;
        map.serialize_field("Task", &self.task.map_or(-1, i64::from))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for TaskPair {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Pair {
            #[serde(rename = "JobId")]
            job: u64,
            task: i64,
        }
        let Pair { job, task } = Pair::deserialize(deserializer)?;
        let task = match task {
            -1 => None,
            number => Some(u32::try_from(number).map_err(|_| de::Error::custom("no task has that number"))?),
        };
        Ok(Self { job, task })
    }
}

/// A list that is a whole body. A length beyond what a worker could have is refused before the list is built.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BoundedList<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for BoundedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        few_or_nil(deserializer).map(Self)
    }
}

/// A list; nil is the empty one, as some writers have it.
fn few_or_nil<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    struct List<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {FOREMAN_PROCS_MAX}")
        }

        fn visit_unit<E: de::Error>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<T>, A::Error> {
            let mut values = Vec::new();
            while values.len() < usize::from(FOREMAN_PROCS_MAX) {
                let Some(value) = list.next_element()? else { return Ok(values) };
                values.push(value);
            }
            match list.next_element::<IgnoredAny>()? {
                None => Ok(values),
                Some(_) => Err(de::Error::invalid_length(values.len() + 1, &self)),
            }
        }
    }

    deserializer.deserialize_any(List(PhantomData))
}

/// A value; nil is the same as a missing key.
fn or_nil<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

const fn one() -> u16 {
    1
}

/// A number of processors; writers that do not know of it may put nil or 0 there.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    or_nil(deserializer).map(|procs: u16| procs.max(1))
}

/// A text for people; some writers put a number there.
fn any_text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    struct Text;

    impl Visitor<'_> for Text {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a text, a number or nil")
        }

        fn visit_unit<E: de::Error>(self) -> Result<String, E> {
            Ok(String::new())
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_u64<E: de::Error>(self, number: u64) -> Result<String, E> {
            Ok(number.to_string())
        }

        fn visit_i64<E: de::Error>(self, number: i64) -> Result<String, E> {
            Ok(number.to_string())
        }
    }

    deserializer.deserialize_any(Text)
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
const fn is_one(procs: &u16) -> bool {
    *procs <= 1
}
