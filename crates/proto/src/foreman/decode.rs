//! The decoder: bytes to values.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::body::BoundedList;
use super::{CloseReason, Counts, ErrorCode, ForemanFrame, ForemanKind, Hello, StatusUpdate, Stop, Task};
use crate::model::limits;
use crate::msgpack_check::is_one_value;
use crate::native::{HEADER_LEN, Header, MAGIC, cut};

/// A body is not MessagePack, or not what its type holds, or beyond a limit. The answer is `bad_message`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid body for this frame type")]
pub struct BadBody;

/// A whole frame at the front of a buffer, its body not yet read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForemanPiece<'a> {
    /// The frame type.
    pub kind: ForemanKind,
    /// Its header: `flags` is the subtype, `word` the padding, `length` arg0.
    pub header: Header,
    /// The body; empty where the type has none.
    pub body: &'a [u8],
    /// Bytes of both.
    pub used: usize,
}

/// Parts the first frame off a buffer.
///
/// `None` until the whole frame is there. A wrong magic, an unknown type or a body beyond the limit is told as soon as
/// the header is there, before anything is kept for it.
pub fn split(buffer: &[u8], body_bytes_max: usize) -> Result<Option<ForemanPiece<'_>>, CloseReason> {
    let Some((head, rest)) = buffer.split_first_chunk::<HEADER_LEN>() else {
        // A stream that cannot be ours is refused at its first bytes, not after sixteen of them.
        let wrong = buffer.iter().zip(MAGIC.to_le_bytes()).any(|(have, want)| *have != want);
        return if wrong { Err(CloseReason::BadMagic) } else { Ok(None) };
    };
    let header = Header::from_bytes(head).ok_or(CloseReason::BadMagic)?;
    let kind = ForemanKind::from_number(header.kind).ok_or(CloseReason::UnknownType(header.kind))?;
    let length = if kind.has_body() { usize::try_from(header.length).unwrap_or(usize::MAX) } else { 0 };
    if length > body_bytes_max {
        return Err(CloseReason::BodyTooLarge(header.length));
    }
    Ok(rest.get(..length).map(|body| ForemanPiece { kind, header, body, used: HEADER_LEN + length }))
}

/// Reads the inside of a frame.
pub fn decode(piece: &ForemanPiece<'_>) -> Result<ForemanFrame, BadBody> {
    let ForemanPiece { kind, header, body, .. } = *piece;
    let Header { seq, length: arg0, .. } = header;
    Ok(match kind {
        ForemanKind::Ok => ForemanFrame::Ok { seq, counts: Counts::from_word(arg0) },
        ForemanKind::Hello if body.is_empty() => ForemanFrame::Hello { seq, hello: None },
        ForemanKind::Hello => ForemanFrame::Hello { seq, hello: Some(hello(body)?) },
        ForemanKind::Job => ForemanFrame::Job { seq, tasks: read::<BoundedList<Task>>(body)?.0 },
        ForemanKind::Update => ForemanFrame::Update { seq, update: update(body)? },
        // One pair, or a list of them.
        ForemanKind::Cancel if matches!(body.first(), Some(0x80..=0x8F | 0xDE | 0xDF)) => {
            ForemanFrame::Cancel { seq, pairs: vec![read(body)?] }
        }
        ForemanKind::Cancel => ForemanFrame::Cancel { seq, pairs: read::<BoundedList<_>>(body)?.0 },
        ForemanKind::Stop => ForemanFrame::Stop { seq, stop: Stop::from_word(arg0) },
        ForemanKind::Error => ForemanFrame::Error { seq, code: ErrorCode::from_number(header.flags), arg0 },
        ForemanKind::Reset => ForemanFrame::Reset { seq, last: arg0 },
    })
}

/// A worker's state must be one that a worker can be in.
fn hello(body: &[u8]) -> Result<Hello, BadBody> {
    let mut hello: Hello = read(body)?;
    cut(&mut hello.name, limits::PEER_NAME_BYTES_MAX);
    let busy: u32 = hello.running.iter().map(|running| u32::from(running.needs())).sum();
    let names: BTreeSet<_> = hello.running.iter().map(|running| running.id()).collect();
    let sound = hello.num_procs <= limits::FOREMAN_PROCS_MAX
        && busy <= u32::from(limits::FOREMAN_PROCS_MAX)
        && hello.id.len() <= limits::PEER_NAME_BYTES_MAX
        && names.len() == hello.running.len();
    if sound { Ok(hello) } else { Err(BadBody) }
}

/// Texts for people are cut; an id that is cut would be another's.
fn update(body: &[u8]) -> Result<StatusUpdate, BadBody> {
    let mut update: StatusUpdate = read(body)?;
    cut(&mut update.status, limits::FAILURE_BYTES_MAX);
    Ok(update)
}

fn read<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, BadBody> {
    if !is_one_value(body, limits::FOREMAN_VALUES_MAX, limits::FOREMAN_DEPTH_MAX) {
        return Err(BadBody);
    }
    rmp_serde::from_slice(body).map_err(|_| BadBody)
}
