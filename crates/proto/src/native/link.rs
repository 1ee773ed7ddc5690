//! Messages of a link, to and from bytes. FORWARD is sent as often as DELIVER: its fields are fixed.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::decode::{map as read_map, raw};
use super::encode::{begin, finish, map as write_map};
use super::fields::Reader;
use super::frame::Frame;
use super::{Header, Kind, flags};
use crate::model::link::{
    BrokerId, Forward, ForwardBroadcast, ForwardEvent, ForwardWants, LinkMessage, Offer, Path, Presence, Relay,
};
use crate::model::topic::Event;
use crate::model::{Code, MessageId, Payload, QueueName, Topic, limits};
use crate::msgpack_check::check_map;

/// Bytes of a broker's id.
const ID_BYTES: usize = 6;

/// LINK_HELLO: who dials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkHello {
    /// The version of what is spoken over links.
    pub version: u16,
    /// The broker's id.
    pub broker: BrokerId,
    /// Its name, for people.
    pub name: String,
    /// The program and its version, for people.
    #[serde(default)]
    pub program: String,
    /// The longest frame that its clients may send, header included: the longest payload that may cross to it is in one.
    pub frame_bytes_max: u64,
    /// 32 bytes that were never used before.
    pub nonce: Bytes,
}

/// LINK_CHALLENGE: who was dialled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkChallenge {
    /// The version of what is spoken over links.
    pub version: u16,
    /// The broker's id.
    pub broker: BrokerId,
    /// Its name, for people.
    pub name: String,
    /// The program and its version, for people.
    #[serde(default)]
    pub program: String,
    /// The longest frame that its clients may send, header included.
    pub frame_bytes_max: u64,
    /// 32 bytes that were never used before.
    pub nonce: Bytes,
    /// 32 bytes that only who knows the secret can make; none if it has no secret.
    pub proof: Bytes,
}

/// The map of OFFER.
#[derive(Serialize, Deserialize)]
struct Offers<'a> {
    offers: Cow<'a, [Offer]>,
}

/// The map of PRESENCE.
#[derive(Serialize, Deserialize)]
struct Presences<'a> {
    brokers: Cow<'a, [Presence]>,
}

impl LinkMessage {
    /// The type of its frame.
    pub(super) const fn kind(&self) -> Kind {
        match self {
            Self::Offers(_) => Kind::Offer,
            Self::Presence(_) => Kind::Presence,
            Self::Broadcast(_) => Kind::ForwardBroadcast,
            Self::Event(_) => Kind::ForwardEvent,
            Self::Relay(_) => Kind::Relay,
        }
    }
}

/// Appends FORWARD.
pub fn encode_forward(forward: &Forward, out: &mut Vec<u8>) {
    let mut flags =
        headers_flag(&forward.payload) | wants_flag(forward.wants) | if forward.alone { flags::ALONE } else { 0 };
    let start = begin(out);
    out.extend_from_slice(&forward.id.to_bytes());
    out.extend_from_slice(&forward.attempt.to_le_bytes());
    out.extend_from_slice(&forward.cost.to_le_bytes());
    out.push(forward.priority);
    if let Some(deadline_ms) = forward.deadline_ms {
        flags |= flags::DEADLINE;
        out.extend_from_slice(&deadline_ms.to_le_bytes());
    }
    write_ids(forward.path.brokers(), out);
    out.extend_from_slice(&forward.payload.bytes);
    finish(out, start, Kind::Forward, flags, forward.seq, forward.handle);
}

/// Appends the frame of a message.
#[inline(never)]
pub fn encode_link_message(message: &LinkMessage, out: &mut Vec<u8>) {
    let kind = message.kind();
    match message {
        LinkMessage::Offers(offers) => write_map(out, kind, 0, &Offers { offers: offers.into() }),
        LinkMessage::Presence(brokers) => write_map(out, kind, 0, &Presences { brokers: brokers.into() }),
        LinkMessage::Relay(relay) => write_map(out, kind, 0, relay),
        LinkMessage::Broadcast(ForwardBroadcast { seq, handle, deadline_ms, no_reply, targets, path, payload }) => {
            let no_reply = if *no_reply { flags::NO_REPLY } else { 0 };
            let start = begin(out);
            out.extend_from_slice(&deadline_ms.to_le_bytes());
            write_ids(targets, out);
            write_ids(path.brokers(), out);
            out.extend_from_slice(&payload.bytes);
            finish(out, start, kind, no_reply | headers_flag(payload), *seq, *handle);
        }
        LinkMessage::Event(ForwardEvent { number, targets, path, event }) => {
            let topic = event.topic.as_str().as_bytes();
            let start = begin(out);
            out.extend_from_slice(&number.to_le_bytes());
            write_ids(targets, out);
            write_ids(path.brokers(), out);
            out.push(u8::try_from(topic.len()).expect("a topic has at most 255 bytes"));
            out.extend_from_slice(topic);
            out.extend_from_slice(&event.payload.bytes);
            finish(out, start, kind, headers_flag(&event.payload), 0, 0);
        }
    }
}

fn write_ids(ids: &[BrokerId], out: &mut Vec<u8>) {
    out.push(u8::try_from(ids.len()).expect("a way has at most 8 brokers, and there are 64 at most"));
    for id in ids {
        let [a, b, c, d, e, f, ..] = id.get().to_le_bytes();
        out.extend_from_slice(&[a, b, c, d, e, f]);
    }
}

const fn headers_flag(payload: &Payload) -> u8 {
    if payload.headers { flags::HEADERS } else { 0 }
}

const fn wants_flag(wants: ForwardWants) -> u8 {
    match wants {
        ForwardWants::Reply => flags::WANTS_REPLY,
        ForwardWants::Nothing => flags::NO_REPLY,
        ForwardWants::Settling => 0,
    }
}

/// Reads the inside of a frame of this family.
pub(super) fn decode<'a>(kind: Kind, header: &Header, rest: &'a [u8]) -> Result<Frame<'a>, Code> {
    let message = match kind {
        Kind::LinkHello => return Ok(Frame::LinkHello { hello: read_map(kind, rest)? }),
        Kind::LinkChallenge => return Ok(Frame::LinkChallenge { challenge: read_map(kind, rest)? }),
        Kind::LinkProof => return Ok(Frame::LinkProof { proof: read_map(kind, rest)? }),
        Kind::Forward => return Ok(Frame::Forward(Box::new(forward(header, rest)?))),
        Kind::Offer => LinkMessage::Offers(offers(rest)?),
        Kind::Presence => LinkMessage::Presence(presences(rest)?),
        Kind::Relay => LinkMessage::Relay(relay(rest)?),
        Kind::ForwardBroadcast => LinkMessage::Broadcast(forward_broadcast(header, rest)?),
        Kind::ForwardEvent => LinkMessage::Event(forward_event(header, rest)?),
        _ => return Err(Code::UnknownType),
    };
    Ok(Frame::Link(Box::new(message)))
}

fn forward(header: &Header, rest: &[u8]) -> Result<Forward, Code> {
    let flags = header.flags;
    let mut reader = Reader::new(rest);
    let id = MessageId::from_bytes(reader.array()?);
    let attempt = reader.u16()?;
    let cost = reader.u16()?;
    let priority = reader.u8()?;
    let deadline_ms = if flags & flags::DEADLINE != 0 { Some(reader.u32()?) } else { None };
    let path = way(&mut reader)?;
    let wants = match (flags & flags::WANTS_REPLY != 0, flags & flags::NO_REPLY != 0) {
        (true, false) => ForwardWants::Reply,
        (false, true) => ForwardWants::Nothing,
        (false, false) => ForwardWants::Settling,
        (true, true) => return Err(Code::BadBody),
    };
    let alone = flags & flags::ALONE != 0;
    let raw = raw(flags, reader)?;
    if priority > limits::PRIORITY_MAX || attempt == 0 || cost == 0 {
        return Err(Code::BadBody);
    }
    let (seq, handle, payload) = (header.seq, header.word, raw.to_payload());
    Ok(Forward { seq, handle, id, wants, attempt, cost, priority, deadline_ms, alone, path, payload })
}

fn forward_broadcast(header: &Header, rest: &[u8]) -> Result<ForwardBroadcast, Code> {
    let mut reader = Reader::new(rest);
    let deadline_ms = reader.u32()?;
    let targets = targets(&mut reader)?;
    let path = way(&mut reader)?;
    let no_reply = header.flags & flags::NO_REPLY != 0;
    let payload = raw(header.flags, reader)?.to_payload();
    Ok(ForwardBroadcast { seq: header.seq, handle: header.word, deadline_ms, no_reply, targets, path, payload })
}

fn forward_event(header: &Header, rest: &[u8]) -> Result<ForwardEvent, Code> {
    let mut reader = Reader::new(rest);
    let number = reader.u64()?;
    let targets = targets(&mut reader)?;
    let path = way(&mut reader)?;
    let length = reader.u8()?;
    let topic = Topic::from_bytes(reader.bytes(usize::from(length))?).map_err(|_| Code::BadTopic)?;
    let payload = raw(header.flags, reader)?.to_payload();
    Ok(ForwardEvent { number, targets, path, event: Arc::new(Event { topic, payload }) })
}

/// Reads a count and so many ids. Nothing is kept for more of them than are there.
fn ids<'a>(reader: &mut Reader<'a>) -> Result<impl Iterator<Item = BrokerId> + use<'a>, Code> {
    let count = usize::from(reader.u8()?);
    let (ids, _) = reader.bytes(count * ID_BYTES)?.as_chunks();
    Ok(ids
        .iter()
        .map(|&[a, b, c, d, e, f]: &[u8; ID_BYTES]| BrokerId::new(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))))
}

/// A way, and not an empty one.
fn way(reader: &mut Reader<'_>) -> Result<Path, Code> {
    Path::new(ids(reader)?).filter(|path| !path.is_empty()).ok_or(Code::BadBody)
}

/// Brokers that are meant: not none, not too many, each of them once.
fn targets(reader: &mut Reader<'_>) -> Result<Vec<BrokerId>, Code> {
    let ids: Vec<BrokerId> = ids(reader)?.collect();
    let twice = |(at, id): (usize, &BrokerId)| ids.iter().take(at).any(|before| before == id);
    if ids.is_empty() || ids.len() > limits::BROKERS_MAX || ids.iter().enumerate().any(twice) {
        return Err(Code::BadBody);
    }
    Ok(ids)
}

/// Values in an OFFER that is as long as it may be, with some room for keys that this version does not know.
const OFFER_VALUES_MAX: usize =
    limits::MAP_VALUES_MAX + limits::OFFERS_MAX * (8 + limits::BROKERS_MAX * (8 + limits::PATH_MAX));
/// The same of a PRESENCE.
const PRESENCE_VALUES_MAX: usize =
    limits::MAP_VALUES_MAX + limits::BROKERS_MAX * (16 + limits::PATH_MAX + limits::LINKS_MAX);

fn offers(rest: &[u8]) -> Result<Vec<Offer>, Code> {
    check_map(rest, OFFER_VALUES_MAX)?;
    let Offers { offers } = rmp_serde::from_slice(rest).map_err(|_| Code::BadBody)?;
    let sound = |offer: &Offer| {
        QueueName::from_bytes(offer.queue.as_bytes()).is_ok()
            && offer.rooms.len() <= limits::BROKERS_MAX
            && offer.rooms.iter().all(|room| !room.path.is_empty())
    };
    let all = offers.len() <= limits::OFFERS_MAX && offers.iter().all(sound);
    if all { Ok(offers.into_owned()) } else { Err(Code::BadBody) }
}

fn relay(rest: &[u8]) -> Result<Relay, Code> {
    check_map(rest, limits::MAP_VALUES_MAX)?;
    let relay: Relay = rmp_serde::from_slice(rest).map_err(|_| Code::BadBody)?;
    if relay.path.is_empty() { Err(Code::BadBody) } else { Ok(relay) }
}

fn presences(rest: &[u8]) -> Result<Vec<Presence>, Code> {
    check_map(rest, PRESENCE_VALUES_MAX)?;
    let Presences { brokers } = rmp_serde::from_slice(rest).map_err(|_| Code::BadBody)?;
    let sound = |presence: &Presence| {
        let Presence { path, name, neighbours, .. } = presence;
        !path.is_empty() && name.len() <= limits::PEER_NAME_BYTES_MAX && neighbours.len() <= limits::LINKS_MAX
    };
    let all = brokers.len() <= limits::BROKERS_MAX && brokers.iter().all(sound);
    if all { Ok(brokers.into_owned()) } else { Err(Code::BadBody) }
}
