//! Steps of the codec: the frames of every message, with a body of 256 bytes.

use std::hint::black_box;

use turno_proto::model::{Cost, Delivery, Durability, MessageId};
use turno_proto::native::{Deliver, Frame, Raw, RawOutgoing, decode, encode, split};

use crate::Run;

const BODY: [u8; 256] = [7; 256];
const RAW: Raw<'static> = Raw { headers: false, bytes: &BODY };
const DELIVERY: Delivery = Delivery { index: 70, stamp: 7_000 };
const FRAME_BYTES_MAX: usize = 1 << 20;

pub(crate) const STEPS: &[(&str, Run)] = &[
    ("decode-request", |count| decoding(&request(), count)),
    ("decode-deliver", |count| decoding(&deliver(), count)),
    ("decode-reply", |count| decoding(&reply(), count)),
    ("decode-send", |count| decoding(&send(), count)),
    ("decode-ack", |count| decoding(&ack(), count)),
    ("decode-stored", |count| decoding(&stored(), count)),
    ("encode-request", |count| encoding(&request(), count)),
    ("encode-deliver", |count| encoding(&deliver(), count)),
    ("encode-reply", |count| encoding(&reply(), count)),
    ("encode-send", |count| encoding(&send(), count)),
    ("encode-ack", |count| encoding(&ack(), count)),
    ("encode-stored", |count| encoding(&stored(), count)),
];

fn request() -> Frame<'static> {
    Frame::Request(RawOutgoing { deadline_ms: Some(5_000), ..RawOutgoing::new(7, 1, RAW) })
}

fn deliver() -> Frame<'static> {
    Frame::Deliver(Deliver {
        delivery: DELIVERY,
        handle: 1,
        id: MessageId::new(1, 2, 3),
        attempt: 1,
        cost: Cost::ONE,
        deadline_ms: Some(5_000),
        wants_reply: true,
        token: None,
        raw: RAW,
    })
}

fn reply() -> Frame<'static> {
    Frame::Reply { seq: DELIVERY.stamp, word: DELIVERY.index, more: false, raw: RAW }
}

fn send() -> Frame<'static> {
    Frame::Send(RawOutgoing::new(7, 1, RAW))
}

fn ack() -> Frame<'static> {
    Frame::Ack { delivery: DELIVERY }
}

fn stored() -> Frame<'static> {
    Frame::Stored { seq: 7, durability: Durability::Memory, id: MessageId::new(1, 2, 3), duplicate: false }
}

#[inline(never)]
fn decoding(frame: &Frame<'_>, count: u32) {
    let mut bytes = Vec::new();
    encode(frame, &mut bytes);
    for _ in 0..count {
        let piece = split(black_box(&bytes), FRAME_BYTES_MAX).ok().flatten();
        let decoded = piece.map(|piece| decode(&piece.header, piece.rest));
        assert!(matches!(black_box(&decoded), Some(Ok(_))), "our own frame can be read");
    }
}

/// Into a buffer that has room, as an out-buffer has.
#[inline(never)]
fn encoding(frame: &Frame<'_>, count: u32) {
    let mut out = Vec::with_capacity(1_024);
    for _ in 0..count {
        out.clear();
        encode(black_box(frame), &mut out);
        assert!(!black_box(&out).is_empty(), "a frame has bytes");
    }
}
