//! The decoder: bytes to values.

use serde::Deserialize;

use super::fields::Reader;
use super::frame::{Answer, Deliver, Frame, Raw, RawBroadcast, RawEvent, RawOutgoing};
use super::{Direction, Header, Kind, flags};
use super::{link, ring};
use crate::model::{Again, Code, Cost, DedupId, Delivery, Durability, Filter, MessageId, limits};
use crate::msgpack_check::check_map;

/// The error in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The code that the peer is told.
    pub code: Code,
    /// The frame's `seq`, 0 if there was none to read.
    pub seq: u32,
    /// Whether the connection ends: true unless only the inside of a well-formed frame was wrong.
    pub fatal: bool,
}

impl Fault {
    /// A fault that ends the connection.
    pub const fn fatal(code: Code, seq: u32) -> Self {
        Self { code, seq, fatal: true }
    }

    /// A fault that only refuses the one frame.
    pub const fn refusal(code: Code, seq: u32) -> Self {
        Self { code, seq, fatal: false }
    }

    /// Something inside a frame. Fields that run past its end make all that follows doubtful.
    const fn inside(code: Code, seq: u32) -> Self {
        Self { code, seq, fatal: matches!(code, Code::BadFrame) }
    }
}

/// Reads the inside of a frame.
///
/// Each kind makes its own result, in the place it is returned in: a frame that is put together in one place and moved to
/// another costs half as much again.
#[expect(clippy::too_many_lines, reason = "a line or two for each type of frame")]
#[inline(never)]
pub fn decode<'a>(header: &Header, rest: &'a [u8]) -> Result<Frame<'a>, Fault> {
    let Header { flags, seq, word, .. } = *header;
    let Some(kind) = Kind::from_number(header.kind) else { return Err(Fault::fatal(Code::UnknownType, seq)) };
    if flags & flags::TOKEN != 0 && kind.may_be_fenced() {
        return fenced(header, rest);
    }
    let delivery = Delivery { index: word, stamp: seq };
    let fault = |code| Fault::inside(code, seq);
    let nothing = || Reader::new(rest).end().map_err(fault);
    let raw = || raw(flags, Reader::new(rest)).map_err(fault);
    match kind {
        Kind::Connect => Ok(Frame::Connect { seq, connect: map(kind, rest).map_err(fault)? }),
        Kind::Config => Ok(Frame::Config { seq, config: map(kind, rest).map_err(fault)? }),
        Kind::Ping => nothing().map(|()| Frame::Ping { seq }),
        Kind::Pong => nothing().map(|()| Frame::Pong { seq }),
        Kind::Closing => Ok(Frame::Closing { closing: map(kind, rest).map_err(fault)? }),
        Kind::Error => Ok(Frame::Error {
            seq,
            code: Code::from_number(word).unwrap_or(Code::Other),
            fatal: flags & flags::FATAL != 0,
            detail: std::str::from_utf8(rest).map_err(|_| fault(Code::BadBody))?,
        }),
        Kind::Register => Ok(Frame::Register { seq, register: map(kind, rest).map_err(fault)? }),
        Kind::Deregister => nothing().map(|()| Frame::Deregister { seq }),
        Kind::Resize => Ok(Frame::Resize { seq, register: map(kind, rest).map_err(fault)? }),
        Kind::Open => Ok(Frame::Open { seq, handle: word, name: rest }),
        Kind::Consume => {
            let exclusive = flags & flags::EXCLUSIVE != 0;
            nothing().map(|()| Frame::Consume { seq, handle: word, exclusive })
        }
        Kind::QueueFull => nothing().map(|()| Frame::QueueFull { seq, handle: word }),
        Kind::QueueAvailableNotify => nothing().map(|()| Frame::QueueAvailableNotify { seq, handle: word }),
        Kind::QueueAvailable => nothing().map(|()| Frame::QueueAvailable { seq, handle: word }),
        Kind::CancelQueue => Ok(Frame::CancelQueue { seq, handle: word, reason: cancel_reason(rest).map_err(fault)? }),
        Kind::Request => Ok(Frame::Request(outgoing(header, rest).map_err(fault)?)),
        Kind::Send => Ok(Frame::Send(outgoing(header, rest).map_err(fault)?)),
        Kind::Broadcast => Ok(Frame::Broadcast(broadcast(header, rest).map_err(fault)?)),
        Kind::Deliver => Ok(Frame::Deliver(deliver(header, rest).map_err(fault)?)),
        Kind::Reply => Ok(Frame::Reply { seq, word, more: flags & flags::MORE != 0, raw: raw()? }),
        Kind::Ack => nothing().map(|()| Frame::Ack { delivery }),
        Kind::Fail => fail(header, rest).map_err(fault),
        Kind::Progress => Ok(Frame::Progress { seq, word, raw: raw()? }),
        Kind::Extend => Ok(Frame::Extend { delivery, lease_ms: lease(rest).map_err(fault)? }),
        Kind::Cancel => Ok(Frame::Cancel { seq, word, reason: cancel_reason(rest).map_err(fault)? }),
        Kind::Delivered => nothing().map(|()| Frame::Delivered { seq }),
        Kind::Undelivered => {
            Ok(Frame::Undelivered { seq, code: Code::from_number(word).unwrap_or(Code::Other), raw: raw()? })
        }
        Kind::Ok => nothing().map(|()| Frame::Ok { seq }),
        Kind::Stored => stored(header, rest).map_err(fault),
        Kind::Answer => Ok(Frame::Answer(answer(header, rest).map_err(fault)?)),
        Kind::BroadcastEnd => Ok(Frame::BroadcastEnd { seq, end: map(kind, rest).map_err(fault)? }),
        Kind::Subscribe => {
            let or_close = flags & flags::OR_CLOSE != 0;
            Ok(Frame::Subscribe { seq, filter: filter(flags, rest).map_err(fault)?, or_close })
        }
        Kind::Unsubscribe => Ok(Frame::Unsubscribe { seq, filter: filter(flags, rest).map_err(fault)? }),
        Kind::Publish => {
            let confirm = flags & flags::CONFIRM != 0;
            Ok(Frame::Publish { seq, confirm, event: event(flags, rest).map_err(fault)? })
        }
        Kind::Event => Ok(Frame::Event(event(flags, rest).map_err(fault)?)),
        Kind::EventsDropped => nothing().map(|()| Frame::EventsDropped { count: word }),
        Kind::RingHello
        | Kind::RingChallenge
        | Kind::RingProof
        | Kind::NewConn
        | Kind::RetConn
        | Kind::RingPublish
        | Kind::ServOff
        | Kind::ShutDwn
        | Kind::RollCall
        | Kind::RingHave
        | Kind::CaughtUp
        | Kind::RingRefused
        | Kind::RingProbe
        | Kind::RingCircle
        | Kind::RingMerge
        | Kind::RingSid => ring::decode(kind, header, rest).map_err(fault),
        Kind::LinkHello
        | Kind::LinkChallenge
        | Kind::LinkProof
        | Kind::Offer
        | Kind::Presence
        | Kind::Forward
        | Kind::ForwardBroadcast
        | Kind::ForwardEvent
        | Kind::Relay => link::decode(kind, header, rest).map_err(fault),
        Kind::AdminCall => {
            check_map(rest, limits::MAP_VALUES_MAX).map_err(fault)?;
            Ok(Frame::AdminCall { seq, call: rmp_serde::from_slice(rest).map_err(|_| fault(Code::BadCall))? })
        }
        Kind::AdminAnswer => Ok(Frame::AdminAnswer { seq, answer: map(kind, rest).map_err(fault)? }),
    }
}

/// A frame with a token before its other fields.
#[inline(never)]
fn fenced<'a>(header: &Header, rest: &'a [u8]) -> Result<Frame<'a>, Fault> {
    let mut reader = Reader::new(rest);
    let token = reader.u64().map_err(|code| Fault::fatal(code, header.seq))?;
    // Read as what it is without the token, by the one way in that all frames take.
    let plain = Header { flags: header.flags & !flags::TOKEN, ..*header };
    decode(&plain, reader.rest()).map(|frame| Frame::fenced(token, frame))
}

/// FAIL: when the message is tried again, and what the worker says of the failure.
#[inline(never)]
fn fail<'a>(header: &Header, rest: &'a [u8]) -> Result<Frame<'a>, Code> {
    let Header { flags, seq, word, .. } = *header;
    let mut reader = Reader::new(rest);
    let after_ms = if flags & flags::AFTER != 0 { Some(reader.u32()?) } else { None };
    let raw = raw(flags, reader)?;
    let again = match (flags & (flags::PERMANENT | flags::UNCOUNTED), after_ms) {
        (0, None) => Again::AsSet,
        (0, Some(ms)) => Again::After(ms),
        (flags::UNCOUNTED, after_ms) => Again::Uncounted(after_ms),
        (flags::PERMANENT, None) => Again::Never,
        // Never again, and at some time: the two do not go together.
        _ => return Err(Code::BadOption),
    };
    Ok(Frame::Fail { delivery: Delivery { index: word, stamp: seq }, again, raw })
}

fn outgoing<'a>(header: &Header, rest: &'a [u8]) -> Result<RawOutgoing<'a>, Code> {
    let flags = header.flags;
    let mut reader = Reader::new(rest);
    let deadline_ms = if flags & flags::DEADLINE != 0 { Some(reader.u32()?) } else { None };
    let retries = if flags & flags::RETRIES != 0 { Some(reader.u8()?) } else { None };
    let priority = if flags & flags::PRIORITY != 0 { Some(reader.u8()?) } else { None };
    let cost = if flags & flags::COST != 0 { Some(reader.u16()?) } else { None };
    // Bits with two meanings: a request has no dedup id and no delay, and a send outlives its sender's connection and never fails fast.
    let request = header.kind == Kind::Request.number();
    let send = header.kind == Kind::Send.number();
    let delay_ms = if send && flags & flags::DELAY != 0 { reader.u64()? } else { 0 };
    let dedup_id = if !request && flags & flags::DEDUP != 0 { Some(dedup_id(&mut reader)?) } else { None };
    let payload = raw(flags, reader)?;
    // Told last: a frame whose fields run past its end is no frame, whatever they say.
    if dedup_id.is_some_and(|id| DedupId::check(id).is_err()) {
        return Err(Code::BadOption);
    }
    Ok(RawOutgoing {
        seq: header.seq,
        handle: header.word,
        deadline_ms,
        retries,
        priority,
        cost,
        dedup_id,
        delay_ms,
        no_reply: flags & flags::NO_REPLY != 0,
        fail_fast: request && flags & flags::FAIL_FAST != 0,
        cancel_on_disconnect: request && flags & flags::CANCEL_ON_DISCONNECT != 0,
        payload,
    })
}

/// A broadcast goes to each consumer once, at once, beside its slots: what would say otherwise is refused.
fn broadcast<'a>(header: &Header, rest: &'a [u8]) -> Result<RawBroadcast<'a>, Code> {
    let RawOutgoing { seq, handle, deadline_ms, no_reply, payload, .. } = outgoing(header, rest)?;
    if header.flags & (flags::RETRIES | flags::PRIORITY | flags::COST | flags::DEDUP) != 0 {
        return Err(Code::BadOption);
    }
    let skip_self = header.flags & flags::SKIP_SELF != 0;
    Ok(RawBroadcast { seq, handle, deadline_ms, no_reply, skip_self, payload })
}

fn answer<'a>(header: &Header, rest: &'a [u8]) -> Result<Answer<'a>, Code> {
    let flags = header.flags;
    let mut reader = Reader::new(rest);
    let worker = u64::from_le_bytes(reader.array()?);
    let length = reader.u8()?;
    let name = reader.bytes(usize::from(length))?;
    let raw = raw(flags, reader)?;
    Ok(Answer {
        seq: header.seq,
        worker,
        name: std::str::from_utf8(name).map_err(|_| Code::BadBody)?,
        more: flags & flags::MORE != 0,
        failed: flags & flags::FAILED != 0,
        raw,
    })
}

fn filter(flags: u8, rest: &[u8]) -> Result<Filter, Code> {
    let filter = if flags & flags::PREFIX != 0 { Filter::prefix(rest) } else { Filter::pattern(rest) };
    filter.map_err(|_| Code::BadTopic)
}

/// The receiver checks the topic; a broker that passes an event on has read it before.
fn event(flags: u8, rest: &[u8]) -> Result<RawEvent<'_>, Code> {
    let mut reader = Reader::new(rest);
    let length = reader.u8()?;
    let topic = reader.bytes(usize::from(length))?;
    Ok(RawEvent { topic, payload: raw(flags, reader)? })
}

fn dedup_id<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], Code> {
    let length = reader.u8()?;
    reader.bytes(usize::from(length))
}

// Always: its one caller makes the frame of it, and a delivery that is returned first is written twice.
#[inline(always)]
fn deliver<'a>(header: &Header, rest: &'a [u8]) -> Result<Deliver<'a>, Code> {
    let flags = header.flags;
    let mut reader = Reader::new(rest);
    let token = if flags & flags::TOKEN != 0 { Some(reader.u64()?) } else { None };
    let handle = reader.u32()?;
    let id = MessageId::from_bytes(reader.array()?);
    let attempt = reader.u16()?;
    let cost = Cost::from_word(reader.u16()?);
    let deadline_ms = if flags & flags::DEADLINE != 0 { Some(reader.u32()?) } else { None };
    Ok(Deliver {
        delivery: Delivery { index: header.word, stamp: header.seq },
        handle,
        id,
        attempt,
        cost,
        deadline_ms,
        wants_reply: flags & flags::WANTS_REPLY != 0,
        token,
        raw: raw(flags, reader)?,
    })
}

fn stored<'a>(header: &Header, rest: &[u8]) -> Result<Frame<'a>, Code> {
    let mut reader = Reader::new(rest);
    let id = MessageId::from_bytes(reader.array()?);
    reader.end()?;
    let durability = Durability::from_word(header.word).ok_or(Code::BadBody)?;
    Ok(Frame::Stored { seq: header.seq, durability, id, duplicate: header.flags & flags::DUPLICATE != 0 })
}

fn lease(rest: &[u8]) -> Result<u32, Code> {
    let mut reader = Reader::new(rest);
    let lease_ms = reader.u32()?;
    reader.end()?;
    Ok(lease_ms)
}

fn cancel_reason(rest: &[u8]) -> Result<Option<Code>, Code> {
    if rest.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader::new(rest);
    let number = reader.u32()?;
    reader.end()?;
    Ok(Some(Code::from_number(number).unwrap_or(Code::Other)))
}

/// The payload at the end of a frame. The header block's length is checked, its inside is not looked at.
pub(super) fn raw<'a>(flags: u8, reader: Reader<'a>) -> Result<Raw<'a>, Code> {
    let bytes = reader.rest();
    let headers = flags & flags::HEADERS != 0;
    if headers {
        let mut block = Reader::new(bytes);
        let length = usize::from(block.u16()?);
        if block.rest().len() < length {
            return Err(Code::BadFrame);
        }
    }
    Ok(Raw { headers, bytes })
}

/// A control map. What a broker sends is bounded by its bytes alone: listings are long.
pub(super) fn map<'a, T: Deserialize<'a>>(kind: Kind, rest: &'a [u8]) -> Result<T, Code> {
    let values_max = if kind.direction() == Direction::ToPeer { usize::MAX } else { limits::MAP_VALUES_MAX };
    check_map(rest, values_max)?;
    rmp_serde::from_slice(rest).map_err(|_| Code::BadBody)
}
