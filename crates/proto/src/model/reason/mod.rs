//! Reasons for the state of messages, jobs and tasks.

mod job;
mod message;
mod task;

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize, Serializer};

pub use self::job::JobReason;
pub use self::message::Reason;
pub use self::task::TaskReason;

/// A reason as it is shown: a word, and details if there are any. In formats for people with the same in a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Because<R>(pub R);

impl<R> Deref for Because<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.0
    }
}

/// The reason in a sentence.
impl<R: fmt::Display> fmt::Display for Because<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<R: Serialize + fmt::Display> Serialize for Because<R> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Told<'a, R> {
            #[serde(flatten)]
            reason: &'a R,
            text: String,
        }
        if to.is_human_readable() {
            Told { reason: &self.0, text: self.0.to_string() }.serialize(to)
        } else {
            self.0.serialize(to)
        }
    }
}

#[cfg(feature = "schema")]
impl<R> schemars::JsonSchema for Because<R> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Because".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Why something is where it is.",
            "type": "object",
            "properties": {
                "reason": { "type": "string", "description": "A stable name." },
                "details": {
                    "type": "object",
                    "additionalProperties": true,
                    "description": "Values of the reason; omitted if there are none.",
                },
                "text": { "type": "string", "description": "The reason in a sentence; omitted in MessagePack." },
            },
            "required": ["reason", "text"],
        })
    }
}
