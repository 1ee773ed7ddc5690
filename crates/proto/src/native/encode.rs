//! The encoder: values to bytes, appended to the caller's buffer.

use serde::Serialize;

use super::admin::{AdminAnswer, AdminCall};
use super::frame::{Answer, Deliver, Frame, Raw, RawBroadcast, RawEvent, RawOutgoing};
use super::{HEADER_LEN, Header, Kind, flags, link, ring};
use crate::model::{Again, BroadcastEnd, Delivery, Filter};

/// Appends a frame. Kinds that are sent often name their own, instead of looking it up.
#[expect(clippy::too_many_lines, reason = "a line or two for each type of frame")]
pub fn encode(frame: &Frame<'_>, out: &mut Vec<u8>) {
    let kind = || frame.kind();
    match frame {
        Frame::Connect { seq, connect } => map(out, kind(), *seq, connect),
        Frame::Config { seq, config } => map(out, kind(), *seq, config),
        Frame::Ok { seq } => plain(out, Kind::Ok, 0, *seq, 0, &[]),
        Frame::Ping { seq } | Frame::Pong { seq } | Frame::Deregister { seq } | Frame::Delivered { seq } => {
            plain(out, kind(), 0, *seq, 0, &[]);
        }
        Frame::Closing { closing } => map(out, kind(), 0, closing),
        Frame::Error { seq, code, fatal, detail } => {
            let flags = if *fatal { flags::FATAL } else { 0 };
            plain(out, kind(), flags, *seq, code.number(), detail.as_bytes());
        }
        Frame::Register { seq, register } | Frame::Resize { seq, register } => map(out, kind(), *seq, register),
        Frame::Open { seq, handle, name } => plain(out, kind(), 0, *seq, *handle, name),
        Frame::Consume { seq, handle, exclusive } => {
            plain(out, kind(), if *exclusive { flags::EXCLUSIVE } else { 0 }, *seq, *handle, &[]);
        }
        Frame::QueueFull { seq, handle }
        | Frame::QueueAvailableNotify { seq, handle }
        | Frame::QueueAvailable { seq, handle } => {
            plain(out, kind(), 0, *seq, *handle, &[]);
        }
        Frame::Request(message) => encode_outgoing(out, Kind::Request, message),
        Frame::Send(message) => encode_outgoing(out, Kind::Send, message),
        Frame::Broadcast(broadcast) => encode_broadcast(out, broadcast),
        Frame::Deliver(deliver) => encode_deliver(deliver, out),
        Frame::Reply { seq, word, more, raw } => {
            let flags = if *more { flags::MORE } else { 0 };
            encode_payload_frame(out, Kind::Reply, flags, *seq, *word, *raw);
        }
        Frame::Ack { delivery: Delivery { index, stamp } } => plain(out, Kind::Ack, 0, *stamp, *index, &[]),
        Frame::Fail { delivery, again, raw } => encode_fail(*delivery, *again, *raw, out),
        Frame::Progress { seq, word, raw } => encode_payload_frame(out, kind(), 0, *seq, *word, *raw),
        Frame::Extend { delivery, lease_ms } => {
            plain(out, kind(), 0, delivery.stamp, delivery.index, &lease_ms.to_le_bytes());
        }
        Frame::Cancel { seq, word, reason } | Frame::CancelQueue { seq, handle: word, reason } => match reason {
            Some(code) => plain(out, kind(), 0, *seq, *word, &code.number().to_le_bytes()),
            None => plain(out, kind(), 0, *seq, *word, &[]),
        },
        Frame::Undelivered { seq, code, raw } => {
            encode_payload_frame(out, kind(), 0, *seq, code.number(), *raw);
        }
        Frame::Stored { seq, durability, id, duplicate } => {
            let flags = if *duplicate { flags::DUPLICATE } else { 0 };
            plain(out, Kind::Stored, flags, *seq, durability.as_word(), &id.to_bytes());
        }
        Frame::Answer(answer) => encode_answer(out, answer),
        Frame::BroadcastEnd { seq, end } => encode_broadcast_end(*seq, end, out),
        Frame::Fenced { token, frame } => encode_fenced(*token, &Frame::from(*frame), out),
        Frame::Subscribe { seq, filter, or_close } => {
            let flags = if *or_close { flags::OR_CLOSE } else { 0 };
            plain(out, kind(), flags | filter_flag(filter), *seq, 0, filter.as_bytes());
        }
        Frame::Unsubscribe { seq, filter } => plain(out, kind(), filter_flag(filter), *seq, 0, filter.as_bytes()),
        Frame::Publish { seq, confirm, event } => {
            encode_event(out, Kind::Publish, if *confirm { flags::CONFIRM } else { 0 }, *seq, event);
        }
        Frame::Event(event) => encode_event(out, Kind::Event, 0, 0, event),
        Frame::EventsDropped { count } => plain(out, kind(), 0, 0, *count, &[]),
        Frame::RingPublish(publish) => ring::encode_ring_publish(publish, out),
        Frame::RingHello { hello } => map(out, kind(), 0, hello),
        Frame::RingChallenge { challenge } => map(out, kind(), 0, challenge),
        Frame::RingProof { proof } => map(out, kind(), 0, proof),
        Frame::Ring(message) => ring::encode_ring_message(message, out),
        Frame::LinkHello { hello } => map(out, kind(), 0, hello),
        Frame::LinkChallenge { challenge } => map(out, kind(), 0, challenge),
        Frame::LinkProof { proof } => map(out, kind(), 0, proof),
        Frame::Forward(forward) => link::encode_forward(forward, out),
        Frame::Link(message) => link::encode_link_message(message, out),
        Frame::AdminCall { seq, call } => encode_admin_call(*seq, call, out),
        Frame::AdminAnswer { seq, answer } => encode_admin_answer(*seq, answer, out),
    }
}

/// Appends ADMIN_CALL.
pub fn encode_admin_call(seq: u32, call: &AdminCall, out: &mut Vec<u8>) {
    map(out, Kind::AdminCall, seq, call);
}

/// Appends ADMIN_ANSWER.
pub fn encode_admin_answer(seq: u32, answer: &AdminAnswer, out: &mut Vec<u8>) {
    map(out, Kind::AdminAnswer, seq, answer);
}

/// Appends BROADCAST_END.
pub fn encode_broadcast_end(seq: u32, end: &BroadcastEnd, out: &mut Vec<u8>) {
    map(out, Kind::BroadcastEnd, seq, end);
}

/// Appends a frame with a token before its other fields.
#[inline(never)]
fn encode_fenced(token: u64, frame: &Frame<'_>, out: &mut Vec<u8>) {
    let start = out.len();
    encode(frame, out);
    let inside = out.split_off(start);
    let Some((head, rest)) = inside.split_first_chunk::<HEADER_LEN>() else { return };
    let Some(header) = Header::from_bytes(head) else { return };
    let header = Header { flags: header.flags | flags::TOKEN, length: header.length + 8, ..header };
    out.extend_from_slice(&header.to_bytes());
    out.extend_from_slice(&token.to_le_bytes());
    out.extend_from_slice(rest);
}

/// Appends DELIVER.
pub fn encode_deliver(deliver: &Deliver<'_>, out: &mut Vec<u8>) {
    let mut flags = if deliver.raw.headers { flags::HEADERS } else { 0 };
    if deliver.wants_reply {
        flags |= flags::WANTS_REPLY;
    }
    if deliver.deadline_ms.is_some() {
        flags |= flags::DEADLINE;
    }
    let start = begin(out);
    if let Some(token) = deliver.token {
        flags |= flags::TOKEN;
        out.extend_from_slice(&token.to_le_bytes());
    }
    out.extend_from_slice(&deliver.handle.to_le_bytes());
    out.extend_from_slice(&deliver.id.to_bytes());
    out.extend_from_slice(&deliver.attempt.to_le_bytes());
    out.extend_from_slice(&deliver.cost.slots().to_le_bytes());
    if let Some(deadline_ms) = deliver.deadline_ms {
        out.extend_from_slice(&deadline_ms.to_le_bytes());
    }
    out.extend_from_slice(deliver.raw.bytes);
    finish(out, start, Kind::Deliver, flags, deliver.delivery.stamp, deliver.delivery.index);
}

/// Appends FAIL.
#[inline(never)]
fn encode_fail(delivery: Delivery, again: Again, raw: Raw<'_>, out: &mut Vec<u8>) {
    let (flags, after_ms) = match again {
        Again::AsSet => (0, None),
        Again::After(ms) => (flags::AFTER, Some(ms)),
        Again::Uncounted(None) => (flags::UNCOUNTED, None),
        Again::Uncounted(Some(ms)) => (flags::UNCOUNTED | flags::AFTER, Some(ms)),
        Again::Never => (flags::PERMANENT, None),
    };
    let flags = if raw.headers { flags | flags::HEADERS } else { flags };
    let start = begin(out);
    if let Some(after_ms) = after_ms {
        out.extend_from_slice(&after_ms.to_le_bytes());
    }
    out.extend_from_slice(raw.bytes);
    finish(out, start, Kind::Fail, flags, delivery.stamp, delivery.index);
}

/// Appends a frame whose rest is a payload and nothing else.
pub fn encode_payload_frame(out: &mut Vec<u8>, kind: Kind, flags: u8, seq: u32, word: u32, raw: Raw<'_>) {
    let flags = if raw.headers { flags | flags::HEADERS } else { flags };
    plain(out, kind, flags, seq, word, raw.bytes);
}

fn encode_outgoing(out: &mut Vec<u8>, kind: Kind, message: &RawOutgoing<'_>) {
    let mut flags = if message.payload.headers { flags::HEADERS } else { 0 };
    if message.no_reply {
        flags |= flags::NO_REPLY;
    }
    // These bits mean other things in SEND.
    if message.fail_fast && kind == Kind::Request {
        flags |= flags::FAIL_FAST;
    }
    if message.cancel_on_disconnect && kind == Kind::Request {
        flags |= flags::CANCEL_ON_DISCONNECT;
    }
    let start = begin(out);
    if let Some(deadline_ms) = message.deadline_ms {
        flags |= flags::DEADLINE;
        out.extend_from_slice(&deadline_ms.to_le_bytes());
    }
    if let Some(retries) = message.retries {
        flags |= flags::RETRIES;
        out.push(retries);
    }
    if let Some(priority) = message.priority {
        flags |= flags::PRIORITY;
        out.push(priority);
    }
    if let Some(cost) = message.cost {
        flags |= flags::COST;
        out.extend_from_slice(&cost.to_le_bytes());
    }
    if message.delay_ms > 0 && kind == Kind::Send {
        flags |= flags::DELAY;
        out.extend_from_slice(&message.delay_ms.to_le_bytes());
    }
    if let Some(dedup_id) = message.dedup_id.filter(|_| kind == Kind::Send) {
        flags |= flags::DEDUP;
        out.push(u8::try_from(dedup_id.len()).expect("a dedup id has at most 64 bytes"));
        out.extend_from_slice(dedup_id);
    }
    out.extend_from_slice(message.payload.bytes);
    finish(out, start, kind, flags, message.seq, message.handle);
}

fn encode_broadcast(out: &mut Vec<u8>, broadcast: &RawBroadcast<'_>) {
    let RawBroadcast { seq, handle, deadline_ms, no_reply, skip_self, payload: raw } = *broadcast;
    let mut flags = if raw.headers { flags::HEADERS } else { 0 };
    if no_reply {
        flags |= flags::NO_REPLY;
    }
    if skip_self {
        flags |= flags::SKIP_SELF;
    }
    let start = begin(out);
    if let Some(deadline_ms) = deadline_ms {
        flags |= flags::DEADLINE;
        out.extend_from_slice(&deadline_ms.to_le_bytes());
    }
    out.extend_from_slice(raw.bytes);
    finish(out, start, Kind::Broadcast, flags, seq, handle);
}

fn encode_answer(out: &mut Vec<u8>, answer: &Answer<'_>) {
    let Answer { seq, worker, name, more, failed, raw } = *answer;
    let mut flags = if raw.headers { flags::HEADERS } else { 0 };
    if more {
        flags |= flags::MORE;
    }
    if failed {
        flags |= flags::FAILED;
    }
    let start = begin(out);
    out.extend_from_slice(&worker.to_le_bytes());
    out.push(u8::try_from(name.len()).expect("a name was cut to at most 128 bytes when it came"));
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(raw.bytes);
    finish(out, start, Kind::Answer, flags, seq, 0);
}

const fn filter_flag(filter: &Filter) -> u8 {
    match filter {
        Filter::Pattern(_) => 0,
        Filter::Prefix(_) => flags::PREFIX,
    }
}

fn encode_event(out: &mut Vec<u8>, kind: Kind, flags: u8, seq: u32, event: &RawEvent<'_>) {
    let RawEvent { topic, payload: raw } = event;
    let start = begin(out);
    out.push(u8::try_from(topic.len()).expect("a topic has at most 255 bytes"));
    out.extend_from_slice(topic);
    out.extend_from_slice(raw.bytes);
    finish(out, start, kind, if raw.headers { flags | flags::HEADERS } else { flags }, seq, 0);
}

/// A frame around a control map.
pub(super) fn map(out: &mut Vec<u8>, kind: Kind, seq: u32, body: &impl Serialize) {
    let start = begin(out);
    rmp_serde::encode::write_named(out, body).expect("plain maps always encode, and a Vec takes every byte");
    finish(out, start, kind, 0, seq, 0);
}

#[inline]
pub(super) fn plain(out: &mut Vec<u8>, kind: Kind, flags: u8, seq: u32, word: u32, rest: &[u8]) {
    let length = length_of(rest.len());
    out.extend_from_slice(&Header { kind: kind.number(), flags, seq, word, length }.to_bytes());
    out.extend_from_slice(rest);
}

/// Leaves room for a header; [`finish`] fills it in once the length is known.
pub(super) fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_LEN]);
    start
}

pub(super) fn finish(out: &mut [u8], start: usize, kind: Kind, flags: u8, seq: u32, word: u32) {
    let length = length_of(out.len() - start - HEADER_LEN);
    let header = Header { kind: kind.number(), flags, seq, word, length }.to_bytes();
    if let Some(place) = out.get_mut(start..start + HEADER_LEN) {
        place.copy_from_slice(&header);
    }
}

/// Frames are bounded far below 4 GiB by the limits on what goes into them.
fn length_of(bytes: usize) -> u32 {
    u32::try_from(bytes).expect("a frame's rest is below 4 GiB: frame_bytes_max bounds what is put into one")
}
