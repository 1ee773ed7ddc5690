//! The encoder: values to bytes, appended to the caller's buffer.

use serde::Serialize;

use super::{ForemanFrame, ForemanKind};
use crate::native::{HEADER_LEN, Header};

/// Appends a frame.
pub fn encode(frame: &ForemanFrame, out: &mut Vec<u8>) {
    let seq = frame.seq();
    match frame {
        ForemanFrame::Ok { counts, .. } => plain(out, ForemanKind::Ok, 0, seq, counts.to_word()),
        ForemanFrame::Hello { hello: None, .. } => plain(out, ForemanKind::Hello, 0, seq, 0),
        ForemanFrame::Hello { hello: Some(hello), .. } => body(out, ForemanKind::Hello, seq, hello),
        ForemanFrame::Job { tasks, .. } => body(out, ForemanKind::Job, seq, tasks),
        ForemanFrame::Update { update, .. } => body(out, ForemanKind::Update, seq, update),
        ForemanFrame::Cancel { pairs, .. } => body(out, ForemanKind::Cancel, seq, pairs),
        ForemanFrame::Stop { stop, .. } => plain(out, ForemanKind::Stop, 0, seq, stop.to_word()),
        ForemanFrame::Error { code, arg0, .. } => plain(out, ForemanKind::Error, code.number(), seq, *arg0),
        ForemanFrame::Reset { last, .. } => plain(out, ForemanKind::Reset, 0, seq, *last),
    }
}

/// A frame that ends with its header.
fn plain(out: &mut Vec<u8>, kind: ForemanKind, subtype: u8, seq: u32, arg0: u32) {
    let header = Header { kind: kind.number(), flags: subtype, seq, word: 0, length: arg0 };
    out.extend_from_slice(&header.to_bytes());
}

/// A frame with a body, whose length is known only when it is written.
pub(super) fn body<T: Serialize + ?Sized>(out: &mut Vec<u8>, kind: ForemanKind, seq: u32, value: &T) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_LEN]);
    rmp_serde::encode::write_named(out, value).expect("plain values are written into memory");
    let length = u32::try_from(out.len() - start - HEADER_LEN).expect("a body is below 4 GiB: its limit bounds it");
    let header = Header { kind: kind.number(), flags: 0, seq, word: 0, length };
    if let Some(place) = out.get_mut(start..start + HEADER_LEN) {
        place.copy_from_slice(&header.to_bytes());
    }
}
