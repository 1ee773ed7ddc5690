//! Between messages of LMQ and payloads of the broker: arguments are parts, and the id is a header.

use bytes::Bytes;
use turno_engine::BorrowedPayload;
use turno_proto::headers::{self, Headers};
use turno_proto::lmq::{LmqCommand, LmqMessage};
use turno_proto::model::{Code, Payload, parts};

use crate::zmq::frames::Frames;

/// The header with the id of the message, in hexadecimal.
const ID: &str = "lmq-id";
/// The header with the command of a message that passes to its caller and is no answer.
const COMMAND: &str = "lmq-command";

/// The payload of a request: native workers see its arguments as parts.
pub(super) fn request(lmq: &LmqMessage) -> Result<Option<Payload>, Code> {
    with(Headers::from([(ID.to_owned(), hex(&lmq.id))]), &lmq.arguments)
}

/// The payload of an answer.
pub(super) fn answer(lmq: &LmqMessage) -> Result<Option<Payload>, Code> {
    with(Headers::new(), &lmq.arguments)
}

/// The payload of another message for a caller.
pub(super) fn passing(lmq: &LmqMessage) -> Result<Option<Payload>, Code> {
    let command = hex(&[lmq.command.byte()]);
    with(Headers::from([(ID.to_owned(), hex(&lmq.id)), (COMMAND.to_owned(), command)]), &lmq.arguments)
}

/// The payload that is all frames of a message.
pub(super) fn whole(lmq: LmqMessage) -> Result<Option<Payload>, Code> {
    with(Headers::new(), &lmq.frames())
}

/// `None` if the headers are too long. An error is why the connection ends.
fn with(mut headers: Headers, frames: &[Bytes]) -> Result<Option<Payload>, Code> {
    let lengths = parts::lengths(frames.iter().map(Bytes::len)).map_err(|_| Code::TooManyParts)?;
    // One empty argument is not the same as none.
    let lengths = lengths.or_else(|| matches!(frames, [only] if only.is_empty()).then(|| "0".to_owned()));
    headers.extend(lengths.map(|lengths| (parts::HEADER.to_owned(), lengths)));
    let body = if let [only] = frames { only.clone() } else { Bytes::from(frames.concat()) };
    if headers.is_empty() {
        return Ok(Some(Payload::body(Bytes::copy_from_slice(&body))));
    }
    Ok(headers::encode(&headers, &body).ok())
}

/// The arguments that a payload is: of an empty body without parts, none.
pub(super) fn arguments(payload: &Payload) -> Frames {
    split(payload).1
}

fn split(payload: &Payload) -> (Headers, Frames) {
    let (headers, body) = if payload.headers {
        headers::decode(payload).unwrap_or_else(|_| (Headers::new(), payload.split().1))
    } else {
        (Headers::new(), payload.bytes.clone())
    };
    let none = body.is_empty() && !headers.contains_key(parts::HEADER);
    let frames = if none { Frames::new() } else { parts::of(&headers, &body) };
    (headers, frames)
}

/// The id that a message had before it came here, and its arguments.
pub(super) fn delivered(payload: BorrowedPayload<'_>) -> (Option<Bytes>, Frames) {
    let (headers, frames) = split(&Payload { headers: payload.headers, bytes: payload.bytes.clone() });
    (headers.get(ID).and_then(|id| unhex(id)), frames)
}

/// A message of a worker to its caller that is no answer; `None` if the worker is none of LMQ.
pub(super) fn passed(payload: &Payload) -> Option<LmqMessage> {
    let (headers, arguments) = split(payload);
    let command = match *unhex(headers.get(COMMAND)?)? {
        [byte] => LmqCommand::from_byte(byte)?,
        _ => return None,
    };
    let id = unhex(headers.get(ID)?)?;
    Some(LmqMessage::new(command, id, arguments))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

fn unhex(text: &str) -> Option<Bytes> {
    let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let (pairs, rest) = digits.as_ref()?.as_chunks::<2>();
    rest.is_empty().then(|| pairs.iter().map(|[high, low]| high << 4 | low).collect())
}
