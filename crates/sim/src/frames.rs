//! Native frames among bytes.

use turno_proto::native::{Frame, decode, split};

/// These bytes arrive behind the beginning of a frame: each frame that is whole now. The rest is the beginning of the next.
pub(crate) fn arrive(partial: &mut Vec<u8>, bytes: &[u8], mut each: impl FnMut(Frame<'_>)) {
    partial.extend_from_slice(bytes);
    let mut used = 0;
    while let Ok(Some(piece)) = split(&partial[used..], usize::MAX) {
        used += piece.used;
        if let Ok(frame) = decode(&piece.header, piece.rest) {
            each(frame);
        }
    }
    partial.drain(..used);
}

/// The whole frames at the front.
pub(crate) fn frames(mut bytes: &[u8]) -> impl Iterator<Item = Frame<'_>> {
    std::iter::from_fn(move || {
        while let Ok(Some(piece)) = split(bytes, usize::MAX) {
            bytes = &bytes[piece.used..];
            if let Ok(frame) = decode(&piece.header, piece.rest) {
                return Some(frame);
            }
        }
        None
    })
}
