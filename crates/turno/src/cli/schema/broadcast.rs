//! Documents of `turno broadcast`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use turno_client::{Answer, AnswerPart, BroadcastConsumer, BroadcastEnd};
use turno_proto::model::WorkerId;

use super::reply::MessageContent;

/// The answer of one consumer: its reply, a piece of it, or why it failed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BroadcastAnswer {
    #[serde(flatten)]
    pub(crate) party: BroadcastConsumer,
    /// More pieces of its reply follow.
    pub(crate) more: bool,
    /// Its reply; omitted if it failed.
    #[serde(flatten)]
    pub(crate) content: Option<MessageContent>,
    /// Headers of the reply.
    pub(crate) headers: BTreeMap<String, String>,
    /// Why it failed; omitted if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
    /// How long it took.
    pub(crate) seconds: f64,
}

impl BroadcastAnswer {
    pub(crate) fn new(answer: Answer, seconds: f64) -> Self {
        let Answer { worker, name, part, .. } = answer;
        let more = matches!(part, AnswerPart::Piece(_));
        let party = BroadcastConsumer { worker: WorkerId(worker), name };
        let (content, headers, failure) = match part {
            AnswerPart::Piece(reply) | AnswerPart::Last(reply) => {
                (Some(MessageContent::new(&reply.headers, &reply.body)), reply.headers, None)
            }
            AnswerPart::Failed(why) => (None, BTreeMap::new(), Some(why)),
        };
        Self { party, more, content, headers, failure, seconds }
    }
}

/// How a broadcast ended. Every consumer counts as one of answered, failed, expired and left; of a no-reply broadcast only
/// `consumers` is known.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BroadcastEndDocument {
    #[serde(flatten)]
    pub(crate) end: BroadcastEnd,
    /// How long all of it took.
    pub(crate) seconds: f64,
}

/// A broadcast as a whole.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BroadcastDocument {
    /// The answers of consumers, in the order in which they came.
    pub(crate) answers: Vec<BroadcastAnswer>,
    #[serde(flatten)]
    pub(crate) end: BroadcastEndDocument,
}
