//! The translation between ZeroMQ frames and payloads.

use bytes::Bytes;
use turno_engine::BorrowedPayload;
use turno_proto::headers::{self, Headers};
use turno_proto::model::{Code, Delivery, Payload, limits, parts};
use turno_proto::zmtp::Message;

/// The header of a publication whose first frame is body and topic at once.
const TOPIC_IN_BODY: &str = "zmq-topic-in-body";

/// The frames of a message or of an envelope.
pub(super) type Frames = Vec<Bytes>;

/// The payload that a message is behind its first `skip` frames; `None` if nothing is behind them. An error is why the
/// connection ends.
pub(super) fn payload_behind(message: &Message, skip: usize) -> Result<Option<Payload>, Code> {
    let Some(inner) = message.behind(skip) else { return Ok(None) };
    match parts::lengths(inner.parts().map(<[u8]>::len)) {
        Ok(None) => Ok(Some(Payload::body(inner.body().clone()))),
        Ok(Some(value)) => Ok(with_headers(Headers::from([(parts::HEADER.to_owned(), value)]), inner.body())),
        Err(_) => Err(Code::TooManyParts),
    }
}

/// A publication of one frame, which begins with its topic.
pub(super) fn whole_publication(message: &Message) -> Option<Payload> {
    with_headers(Headers::from([(TOPIC_IN_BODY.to_owned(), "yes".to_owned())]), message.body())
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

/// The frames of a payload that is lent.
pub(super) fn part_lent(payload: BorrowedPayload<'_>) -> PayloadFrames {
    part(&Payload { headers: payload.headers, bytes: payload.bytes.clone() })
}

/// How many frames the envelope takes that ends with the first empty frame; `None` if there is none, or it is too long.
pub(super) fn delimited(message: &Message) -> Option<usize> {
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

/// The first frames of a message, with memory of their own: they must not keep all of it.
pub(super) fn envelope(message: &Message, count: usize) -> Frames {
    message.parts().take(count).map(Bytes::copy_from_slice).collect()
}

/// A delivery as the envelope that a worker gives back with its reply.
pub(super) fn envelope_of(delivery: Delivery) -> Frames {
    let mut number = [0; 8];
    let (index, stamp) = number.split_at_mut(4);
    index.copy_from_slice(&delivery.index.to_be_bytes());
    stamp.copy_from_slice(&delivery.stamp.to_be_bytes());
    vec![Bytes::copy_from_slice(&number), Bytes::new()]
}

/// The delivery that a frame names.
pub(super) fn delivery_of(frame: &[u8]) -> Option<Delivery> {
    let (index, stamp) = <&[u8; 8]>::try_from(frame).ok()?.split_at(4);
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
        let envelope = envelope_of(delivery);
        assert_eq!((delivery_of(&envelope[0]), envelope[1].len()), (Some(delivery), 0));
        assert_eq!((delivery_of(b"1234567"), delivery_of(b"")), (None, None));
    }
}
