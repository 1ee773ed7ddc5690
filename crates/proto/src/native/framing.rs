//! Framing: where a frame ends, and how long it can be.

use super::{Fault, HEADER_LEN, Header, Kind, MAGIC};
use crate::model::Code;

/// A whole frame at the front of a buffer, its inside not yet read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// The frame's header.
    pub header: Header,
    /// The bytes after the header.
    pub rest: &'a [u8],
    /// Bytes of both.
    pub used: usize,
}

/// Takes the first frame off a buffer.
///
/// `None` until the whole frame is there. A wrong magic, an unknown type or a length beyond `bytes_max` is
/// told as soon as the header is there, before anything is kept for it.
#[inline]
pub fn split(buffer: &[u8], bytes_max: usize) -> Result<Option<Piece<'_>>, Fault> {
    let Some((head, rest)) = buffer.split_first_chunk::<HEADER_LEN>() else {
        // A stream that cannot be ours is refused at its first bytes, not after sixteen of them.
        let start = MAGIC.to_le_bytes();
        let wrong = buffer.iter().zip(start).any(|(have, want)| *have != want);
        return if wrong { Err(Fault::fatal(Code::BadMagic, 0)) } else { Ok(None) };
    };
    let header = Header::from_bytes(head).ok_or(Fault::fatal(Code::BadMagic, 0))?;
    if Kind::from_number(header.kind).is_none() {
        return Err(Fault::fatal(Code::UnknownType, header.seq));
    }
    let length = usize::try_from(header.length).unwrap_or(usize::MAX);
    if length > bytes_max.saturating_sub(HEADER_LEN) {
        return Err(Fault::fatal(Code::FrameTooLarge, header.seq));
    }
    Ok(rest.get(..length).map(|rest| Piece { header, rest, used: HEADER_LEN + length }))
}
