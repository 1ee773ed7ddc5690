//! Any bytes as frames of the native wire.

use turno_proto::headers;
use turno_proto::model::{Limits, Payload};
use turno_proto::native::{Deliver, Frame, Raw, RawEvent, RawOutgoing, decode, encode, split};

/// Parts frames off the front as long as there are any. What decodes must be written so that it is read back as the
/// same value.
pub fn native_frame(data: &[u8]) {
    let bytes_max = Limits::default().frame_bytes_max;
    let mut rest = data;
    while let Ok(Some(piece)) = split(rest, bytes_max) {
        assert_eq!(piece.used + rest[piece.used..].len(), rest.len(), "a frame lies within its buffer");
        if let Ok(frame) = decode(&piece.header, piece.rest) {
            goes_round(&frame);
            if let Some(raw) = raw_of(&frame) {
                headers_go_round(&raw.to_payload());
            }
        }
        rest = &rest[piece.used..];
    }
}

fn goes_round(frame: &Frame<'_>) {
    let mut written = Vec::new();
    encode(frame, &mut written);
    let piece = split(&written, usize::MAX).expect("what we write is a frame").expect("and all of it");
    assert_eq!(piece.used, written.len(), "one frame is written, and nothing after it");
    assert_eq!(decode(&piece.header, piece.rest).as_ref(), Ok(frame), "a frame is read as it was written");
}

/// The ends read header blocks that the broker passed on unread.
fn headers_go_round(payload: &Payload) {
    if let Ok((read, body)) = headers::decode(payload) {
        let written = headers::encode(&read, &body).expect("headers that could be read can be written");
        assert_eq!(headers::decode(&written), Ok((read, body)), "headers are read as they were written");
    }
}

const fn raw_of<'a>(frame: &Frame<'a>) -> Option<Raw<'a>> {
    match frame {
        Frame::Request(RawOutgoing { payload: raw, .. })
        | Frame::Send(RawOutgoing { payload: raw, .. })
        | Frame::Deliver(Deliver { raw, .. })
        | Frame::Publish { event: RawEvent { payload: raw, .. }, .. }
        | Frame::Event(RawEvent { payload: raw, .. })
        | Frame::Reply { raw, .. }
        | Frame::Fail { raw, .. }
        | Frame::Progress { raw, .. }
        | Frame::Undelivered { raw, .. } => Some(*raw),
        _ => None,
    }
}
