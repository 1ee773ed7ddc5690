//! Any bytes as frames of the foreman's protocol.

use turno_proto::foreman::{decode, encode, split};
use turno_proto::model::limits;

/// Parts frames off the front as long as there are any. What decodes must be written so that it is read back as the
/// same value.
pub fn foreman_frame(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some(piece)) = split(rest, limits::FOREMAN_BODY_BYTES_MAX) {
        if let Ok(frame) = decode(&piece) {
            let mut written = Vec::new();
            encode(&frame, &mut written);
            let again = split(&written, usize::MAX).expect("what we write is a frame").expect("and all of it");
            assert_eq!(again.used, written.len(), "one frame is written, and nothing after it");
            assert_eq!(decode(&again).as_ref(), Ok(&frame), "a frame is read as it was written");
        }
        rest = &rest[piece.used..];
    }
}
