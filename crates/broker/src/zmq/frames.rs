//! The translation between ZeroMQ frames and payloads.

use bytes::Bytes;
use turno_engine::BorrowedPayload;
use turno_proto::headers::{self, Headers};
use turno_proto::model::{Code, Delivery, Payload, limits, parts};
use turno_proto::zmtp::{Message, encode_front};

/// The header of a publication whose first frame is body and topic at once.
const TOPIC_IN_BODY: &str = "zmq-topic-in-body";

/// The frames of a message.
pub(super) type Frames = Vec<Bytes>;

/// A delivery as a frame.
const NUMBER_LEN: usize = 8;
const DELIMITER: &[u8] = b"\x01\0";

/// Frames before a payload, encoded, so that they are written with one copy. Those that are usual need no memory of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Envelope {
    /// No frames.
    None,
    /// An empty frame.
    Delimiter,
    /// The number of a delivery and an empty frame.
    Numbered([u8; 2 + NUMBER_LEN + DELIMITER.len()]),
    /// Any frames.
    Other(Box<[u8]>),
}

impl Envelope {
    /// The first frames of a message. They have memory of their own: they must not keep all of it.
    pub(super) fn of(message: &Message<'_>, count: usize) -> Self {
        match count {
            0 => Self::None,
            1 if message.part(0).is_some_and(<[u8]>::is_empty) => Self::Delimiter,
            _ => Self::of_frames(message.parts().take(count)),
        }
    }

    /// Any frames.
    pub(super) fn of_frames<'a>(frames: impl Iterator<Item = &'a [u8]>) -> Self {
        let mut encoded = Vec::new();
        encode_front(frames, &mut encoded);
        Self::Other(encoded.into())
    }

    /// A delivery as the envelope that a worker gives back with its reply.
    pub(super) fn numbered(delivery: Delivery) -> Self {
        let [n0, n1, n2, n3, n4, n5, n6, n7] = number_of(delivery);
        Self::Numbered([1, 8, n0, n1, n2, n3, n4, n5, n6, n7, 1, 0])
    }

    /// The encoded frames.
    pub(crate) fn encoded(&self) -> &[u8] {
        match self {
            Self::None => b"",
            Self::Delimiter => DELIMITER,
            Self::Numbered(frames) => frames,
            Self::Other(frames) => frames,
        }
    }

    /// Bytes that it takes beside itself.
    pub(super) fn held_bytes(&self) -> usize {
        if let Self::Other(frames) = self { frames.len() } else { 0 }
    }
}

/// A message for a peer: an envelope, other frames, and one that is borrowed or shared. There is at least one frame behind the
/// envelope.
#[derive(Debug)]
pub(crate) struct PeerMessage<'a> {
    pub(crate) envelope: Envelope,
    pub(super) frames: Frames,
    pub(super) last: LastFrame<'a>,
}

/// The last frame of a message.
#[derive(Debug)]
pub(crate) enum LastFrame<'a> {
    /// The others are all.
    None,
    /// A borrowed body.
    Borrowed(&'a [u8]),
    /// A body.
    Shared(Bytes),
}

impl<'a> PeerMessage<'a> {
    /// Frames without a payload.
    pub(super) const fn frames(envelope: Envelope, frames: Frames) -> Self {
        Self { envelope, frames, last: LastFrame::None }
    }

    /// Other frames, and the payload behind them.
    pub(super) fn with(envelope: Envelope, mut frames: Frames, payload: Payload) -> Self {
        if payload.headers {
            frames.extend(part(&payload).frames);
            return Self::frames(envelope, frames);
        }
        Self { envelope, frames, last: LastFrame::Shared(payload.bytes) }
    }

    /// The same with a borrowed payload.
    pub(super) fn with_borrowed(envelope: Envelope, mut frames: Frames, payload: BorrowedPayload<'a>) -> Self {
        if payload.headers {
            frames.extend(part(&Payload { headers: true, bytes: payload.bytes.clone() }).frames);
            return Self::frames(envelope, frames);
        }
        Self { envelope, frames, last: LastFrame::Borrowed(payload.bytes) }
    }

    /// The frames behind the envelope.
    pub(crate) fn behind(&self) -> impl Iterator<Item = &[u8]> {
        let last = match &self.last {
            LastFrame::None => None,
            LastFrame::Borrowed(bytes) => Some(*bytes),
            LastFrame::Shared(bytes) => Some(&**bytes),
        };
        self.frames.iter().map(|frame| &**frame).chain(last)
    }
}

/// The payload that a message is behind its first `skip` frames; `None` if nothing is behind them. An error is why the
/// connection ends.
pub(super) fn payload_behind(message: &Message<'_>, skip: usize) -> Result<Option<Payload>, Code> {
    if skip >= message.part_count() {
        return Ok(None);
    }
    match parts::lengths(message.parts().skip(skip).map(<[u8]>::len)) {
        Ok(None) => Ok(Some(Payload::body(message.body_behind(skip)))),
        Ok(Some(value)) => {
            Ok(with_headers(Headers::from([(parts::HEADER.to_owned(), value)]), &message.body_behind(skip)))
        }
        Err(_) => Err(Code::TooManyParts),
    }
}

/// A publication of one frame, which begins with its topic.
pub(super) fn whole_publication(message: &Message<'_>) -> Option<Payload> {
    with_headers(Headers::from([(TOPIC_IN_BODY.to_owned(), "yes".to_owned())]), &message.body_behind(0))
}

fn with_headers(headers: Headers, body: &Bytes) -> Option<Payload> {
    // The lengths of all parts that a message may have always fit.
    headers::encode(&headers, body).ok()
}

/// A payload as frames, and whether a topic is among them.
pub(super) struct PayloadFrames {
    pub(super) frames: Frames,
    pub(super) has_topic: bool,
}

/// The frames of a payload. A list of parts that does not fit its body counts as none.
pub(super) fn part(payload: &Payload) -> PayloadFrames {
    if !payload.headers {
        return PayloadFrames { frames: vec![payload.bytes.clone()], has_topic: false };
    }
    let (headers, body) = headers::decode(payload).unwrap_or_else(|_| (Headers::new(), payload.split().1));
    PayloadFrames { frames: parts::of(&headers, &body), has_topic: headers.contains_key(TOPIC_IN_BODY) }
}

/// How many frames the envelope takes that ends with the first empty frame; `None` if there is none, or it is too long.
pub(super) fn delimited(message: &Message<'_>) -> Option<usize> {
    let mut bytes = 0;
    for (at, part) in message.parts().take(limits::ZMQ_ENVELOPE_FRAMES_MAX).enumerate() {
        if part.is_empty() {
            return Some(at + 1);
        }
        bytes += part.len();
        if bytes > limits::ZMQ_ENVELOPE_BYTES_MAX {
            return None;
        }
    }
    None
}

/// The frame that names a delivery.
pub(super) fn number_of(delivery: Delivery) -> [u8; NUMBER_LEN] {
    let [i0, i1, i2, i3] = delivery.index.to_be_bytes();
    let [s0, s1, s2, s3] = delivery.stamp.to_be_bytes();
    [i0, i1, i2, i3, s0, s1, s2, s3]
}

/// The delivery that a frame names.
pub(super) fn delivery_of(frame: &[u8]) -> Option<Delivery> {
    let (index, stamp) = <&[u8; NUMBER_LEN]>::try_from(frame).ok()?.split_at(4);
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_be_bytes);
    Some(Delivery { index: number(index)?, stamp: number(stamp)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_were() {
        let table: [&[&[u8]]; 5] = [&[b"one"], &[b""], &[b"a", b"", b"bcd"], &[b"", b""], &[b"x", &[0xff; 300]]];
        for frames in table {
            let payload = payload_behind(&Message::of(frames), 0).unwrap().unwrap();
            assert_eq!(payload.headers, frames.len() > 1);
            assert_eq!(part(&payload).frames, frames);
            let behind = [&[&b"id"[..], b""][..], frames].concat();
            assert_eq!(payload_behind(&Message::of(&behind), 2), Ok(Some(payload)));
        }
        assert_eq!(payload_behind(&Message::of(&[b"id", b""]), 2), Ok(None));
    }

    /// The envelope does not count.
    #[test]
    fn a_message_has_so_many_parts_and_not_more() {
        let most = vec![&b"12345678901234567890"[..]; limits::MESSAGE_PARTS_MAX];
        assert_eq!(part(&payload_behind(&Message::of(&most), 0).unwrap().unwrap()).frames, most);
        let behind = [&[&b"id"[..], b""][..], &most].concat();
        assert_eq!(part(&payload_behind(&Message::of(&behind), 2).unwrap().unwrap()).frames, most);
        assert_eq!(payload_behind(&Message::of(&behind), 1), Err(Code::TooManyParts));
    }

    #[test]
    fn headers_that_do_not_fit_are_no_parts() {
        let wrong = headers::encode(&Headers::from([("parts".to_owned(), "1 1".to_owned())]), b"abc").unwrap();
        assert_eq!(part(&wrong).frames, ["abc"]);
        let other = headers::encode(&Headers::from([("x".to_owned(), "y".to_owned())]), b"abc").unwrap();
        assert_eq!(part(&other).frames, ["abc"]);
        let broken = Payload { headers: true, bytes: Bytes::from_static(b"\x01\x00\xc1abc") };
        assert_eq!(part(&broken).frames, ["abc"]);
    }

    /// The usual envelopes are encoded as all others.
    #[test]
    fn an_envelope_is_the_first_frames_of_a_message() {
        let frames: [&[u8]; 4] = [b"", b"id", &[7; 300], b"body"];
        for count in 0..4 {
            let mut encoded = Vec::new();
            encode_front(frames[..count].iter().copied(), &mut encoded);
            assert_eq!(Envelope::of(&Message::of(&frames), count).encoded(), encoded);
        }
        assert_eq!(Envelope::of(&Message::of(&[b"", b"body"]), 1), Envelope::Delimiter);
    }

    #[test]
    fn an_envelope_ends_with_the_first_empty_frame_and_is_short() {
        let many = [&[&b"x"[..]; 7][..], &[b"", b"body"]].concat();
        let too_many = [&[&b"x"[..]; 8][..], &[b"", b"body"]].concat();
        let long = vec![1; limits::ZMQ_ENVELOPE_BYTES_MAX + 1];
        let table: [(&[&[u8]], Option<usize>); 6] = [
            (&[b"", b"body"], Some(1)),
            (&[b"id", b"", b"body", b""], Some(2)),
            (&[b"body"], None),
            (&many, Some(8)),
            (&too_many, None),
            (&[&long, b"", b"body"], None),
        ];
        for (frames, expected) in table {
            assert_eq!(delimited(&Message::of(frames)), expected);
        }
        let delivery = Delivery { index: 0x0102_0304, stamp: 7 };
        let mut encoded = Vec::new();
        encode_front([&number_of(delivery)[..], b""], &mut encoded);
        assert_eq!(Envelope::numbered(delivery).encoded(), encoded);
        assert_eq!(delivery_of(&number_of(delivery)), Some(delivery));
        assert_eq!((delivery_of(b"1234567"), delivery_of(b"")), (None, None));
    }
}
