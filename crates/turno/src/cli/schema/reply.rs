//! Documents of replies and stored messages.

use std::collections::BTreeMap;

use bytes::Bytes;
use schemars::JsonSchema;
use serde::Serialize;
use turno_client::Headers;
use turno_proto::model::parts;

use super::error::ErrorBody;

/// A body that JSON can hold: text as it is, other bytes in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Content {
    /// The body.
    pub(crate) body: String,
    /// `utf8` or `base64`.
    pub(crate) encoding: String,
}

impl From<&[u8]> for Content {
    fn from(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self { body: text.to_owned(), encoding: "utf8".to_owned() },
            Err(_) => Self { body: base64(bytes), encoding: "base64".to_owned() },
        }
    }
}

/// The body of a message, and its parts if there are several.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct MessageContent {
    #[serde(flatten)]
    pub(crate) whole: Content,
    /// The parts of the body, if there are several; omitted if it is one part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parts: Option<Vec<Content>>,
}

impl MessageContent {
    pub(crate) fn new(headers: &Headers, body: &Bytes) -> Self {
        let parts = parts::of(headers, body);
        let parts = (parts.len() > 1).then(|| parts.iter().map(|part| Content::from(&part[..])).collect());
        Self { whole: Content::from(&body[..]), parts }
    }
}

/// RFC 4648 with padding.
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut group = [0; 3];
        group[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, group[0], group[1], group[2]]);
        for place in 0..4 {
            if place <= chunk.len() {
                text.push(char::from(SIGNS[(bits >> (18 - 6 * place) & 63) as usize]));
            } else {
                text.push('=');
            }
        }
    }
    text
}

/// A reply.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReplyBody {
    #[serde(flatten)]
    pub(crate) content: MessageContent,
    /// Its headers.
    pub(crate) headers: BTreeMap<String, String>,
    /// How long it took.
    pub(crate) seconds: f64,
}

/// The reply to one request.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReplyDocument {
    pub(crate) reply: ReplyBody,
}

/// One piece of a streamed reply.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct PieceDocument {
    /// The piece's number, from 1.
    pub(crate) piece: u64,
    pub(crate) reply: ReplyBody,
}

/// A streamed reply as a whole.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StreamDocument {
    /// Its pieces, in order.
    pub(crate) pieces: Vec<ReplyBody>,
    /// How long all of it took.
    pub(crate) seconds: f64,
}

/// How one of many requests ended: with `reply` or with `error`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// The request's number, from 1.
    pub(crate) number: u64,
    /// The reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reply: Option<ReplyBody>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ErrorBody>,
}

/// How many requests ended.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReplyListDocument {
    /// In the order of asking.
    pub(crate) replies: Vec<Answer>,
    /// Requests made.
    pub(crate) sent: u64,
    /// Requests answered with a reply.
    pub(crate) answered: u64,
    /// Requests that failed.
    pub(crate) failed: u64,
    /// How long all of it took.
    pub(crate) seconds: f64,
}

/// A message that the broker has.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(crate) struct StoredDocument {
    /// Its id.
    pub(crate) id: String,
    /// How safe it is: `memory` or `disk`.
    pub(crate) durability: String,
    /// The broker had it already, by its dedup id; it was not added again.
    pub(crate) duplicate: bool,
}

/// How one of many lines ended: stored, or with `error`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Line {
    /// The line's number, from 1.
    pub(crate) line: u64,
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<String>,
    /// How safe it is: `memory` or `disk`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) durability: Option<String>,
    /// The broker had it already, by its dedup id; it was not added again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duplicate: Option<bool>,
    /// Why it is not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<ErrorBody>,
}

/// The messages of many lines.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct StoredListDocument {
    /// In the order of the lines.
    pub(crate) messages: Vec<Line>,
    /// Lines stored.
    pub(crate) stored: u64,
    /// Of those stored: how many the broker had already.
    pub(crate) duplicates: u64,
    /// Lines that failed.
    pub(crate) failed: u64,
    /// Of those that failed: how many the broker may have all the same, because its answer was lost or late.
    pub(crate) unknown: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_are_encoded() {
        let table: &[(&[u8], &str, &str)] = &[
            (b"", "", "utf8"),
            (b"hi", "hi", "utf8"),
            (&[0xFF], "/w==", "base64"),
            (&[0xFF, 0xFE], "//4=", "base64"),
            (&[0xFF, 0xFE, 0xFD], "//79", "base64"),
            (&[0xFF, 0, 1, 2], "/wABAg==", "base64"),
        ];
        for (bytes, body, encoding) in table {
            let content = Content::from(*bytes);
            assert_eq!((content.body.as_str(), content.encoding.as_str()), (*body, *encoding));
        }
    }

    #[test]
    fn parts_are_listed_if_there_are_several() {
        let json = |list: Option<&str>| {
            let headers = list.map(|list| ("parts".to_owned(), list.to_owned())).into_iter().collect();
            let body = Bytes::from_static(b"ab\xff");
            serde_json::to_value(MessageContent::new(&headers, &body)).unwrap()
        };
        let text = |body| serde_json::json!({"body": body, "encoding": "utf8"});
        let bytes = |body| serde_json::json!({"body": body, "encoding": "base64"});
        for one_part in [None, Some("3"), Some("1 1"), Some("a")] {
            assert_eq!(json(one_part), bytes("YWL/"), "{one_part:?}");
        }
        let mut several = bytes("YWL/");
        several["parts"] = [text("ab"), text(""), bytes("/w==")].into();
        assert_eq!(json(Some("2 0 1")), several);
    }
}
