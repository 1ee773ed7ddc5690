//! What consumers said to a broadcast, as programs read it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use turno_client::{Answer, AnswerPart, BroadcastEnd, Party};

use super::Document;
use super::reply::Content;

/// A worker.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PartyBody {
    /// Its id.
    pub(crate) worker: String,
    /// Its name.
    pub(crate) name: String,
}

impl From<&Party> for PartyBody {
    fn from(party: &Party) -> Self {
        Self { worker: party.worker.to_string(), name: party.name.clone() }
    }
}

/// What one consumer said: its reply, a piece of it, or why it failed.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BroadcastAnswer {
    #[serde(flatten)]
    pub(crate) party: PartyBody,
    /// More pieces of its reply follow.
    pub(crate) more: bool,
    /// What it said; left out if it failed.
    #[serde(flatten)]
    pub(crate) content: Option<Content>,
    /// Headers of the reply.
    pub(crate) headers: BTreeMap<String, String>,
    /// Why it failed; left out if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) failure: Option<String>,
    /// How long it took.
    pub(crate) seconds: f64,
}

impl BroadcastAnswer {
    pub(crate) fn new(answer: Answer, seconds: f64) -> Self {
        let Answer { worker, name, part, .. } = answer;
        let more = matches!(part, AnswerPart::Piece(_));
        let party = PartyBody { worker: worker.to_string(), name };
        let (content, headers, failure) = match part {
            AnswerPart::Piece(reply) | AnswerPart::Last(reply) => {
                (Some(Content::from(reply.body.as_ref())), reply.headers, None)
            }
            AnswerPart::Failed(why) => (None, BTreeMap::new(), Some(why)),
        };
        Self { party, more, content, headers, failure, seconds }
    }
}

impl Document for BroadcastAnswer {
    const SCHEMA: &'static str = "turno.broadcast_answer/1";
}

/// How a broadcast ended. Every consumer counts as one of answered, failed, expired and left; of a no-reply broadcast only
/// `consumers` is known.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BroadcastEndDocument {
    /// Consumers it went to.
    pub(crate) consumers: u32,
    /// Those that replied.
    pub(crate) answered: u32,
    /// Those that said that they failed.
    pub(crate) failed: u32,
    /// Those that had not answered when its time was over.
    pub(crate) expired: u32,
    /// Those that were lost or left before they answered.
    pub(crate) left: u32,
    /// The first 100 of those that expired.
    pub(crate) who_expired: Vec<PartyBody>,
    /// The first 100 of those that left.
    pub(crate) who_left: Vec<PartyBody>,
    /// How long all of it took.
    pub(crate) seconds: f64,
}

impl BroadcastEndDocument {
    pub(crate) fn new(end: &BroadcastEnd, seconds: f64) -> Self {
        let &BroadcastEnd { consumers, answered, failed, expired, left, .. } = end;
        let who_expired = end.who_expired.iter().map(PartyBody::from).collect();
        let who_left = end.who_left.iter().map(PartyBody::from).collect();
        Self { consumers, answered, failed, expired, left, who_expired, who_left, seconds }
    }
}

impl Document for BroadcastEndDocument {
    const SCHEMA: &'static str = "turno.broadcast_end/1";
}

/// A broadcast as a whole.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct BroadcastDocument {
    /// What consumers said, in the order it came.
    pub(crate) answers: Vec<BroadcastAnswer>,
    #[serde(flatten)]
    pub(crate) end: BroadcastEndDocument,
}

impl Document for BroadcastDocument {
    const SCHEMA: &'static str = "turno.broadcast/1";
}
