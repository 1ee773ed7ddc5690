//! Values to bytes, appended to the caller's buffer.

use serde::Serialize;

use super::{Frame, Kind};
use crate::native::{HEADER_LEN, Header};

/// Appends a frame.
pub fn encode(frame: &Frame, out: &mut Vec<u8>) {
    let seq = frame.seq();
    match frame {
        Frame::Ok { counts, .. } => plain(out, Kind::Ok, 0, seq, counts.to_word()),
        Frame::Hello { hello: None, .. } => plain(out, Kind::Hello, 0, seq, 0),
        Frame::Hello { hello: Some(hello), .. } => body(out, Kind::Hello, seq, hello),
        Frame::Job { tasks, .. } => body(out, Kind::Job, seq, tasks),
        Frame::Update { update, .. } => body(out, Kind::Update, seq, update),
        Frame::Cancel { pairs, .. } => body(out, Kind::Cancel, seq, pairs),
        Frame::Stop { stop, .. } => plain(out, Kind::Stop, 0, seq, stop.to_word()),
        Frame::Error { code, arg0, .. } => plain(out, Kind::Error, code.number(), seq, *arg0),
        Frame::Reset { last, .. } => plain(out, Kind::Reset, 0, seq, *last),
    }
}

/// A frame that ends with its header.
fn plain(out: &mut Vec<u8>, kind: Kind, subtype: u8, seq: u32, arg0: u32) {
    let header = Header { kind: kind.number(), flags: subtype, seq, word: 0, length: arg0 };
    out.extend_from_slice(&header.to_bytes());
}

/// A frame with a body, whose length is known only when it is written.
pub(super) fn body<T: Serialize + ?Sized>(out: &mut Vec<u8>, kind: Kind, seq: u32, value: &T) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_LEN]);
    rmp_serde::encode::write_named(out, value).expect("plain values are written into memory");
    let length = u32::try_from(out.len() - start - HEADER_LEN).expect("a body is below 4 GiB: its limit bounds it");
    let header = Header { kind: kind.number(), flags: 0, seq, word: 0, length };
    if let Some(place) = out.get_mut(start..start + HEADER_LEN) {
        place.copy_from_slice(&header.to_bytes());
    }
}
