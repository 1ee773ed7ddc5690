//! What brokers say to each other, to and from bytes. FORWARD is sent as often as DELIVER: its fields are fixed, and what is
//! read borrows the bytes it came in.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::decode::{map as read_map, raw};
use super::encode::{begin, finish, map as write_map};
use super::frame::{Frame, Raw};
use super::reader::Reader;
use super::{Event, Header, Kind, flags};
use crate::model::link::{BrokerId, ForwardWants, Offer, Path, Presence, Relay};
use crate::model::{Code, MessageId, QueueName, limits};
use crate::shape::check_map;

/// Bytes of a broker's id.
const ID_BYTES: usize = 6;

/// Brokers in a frame: as they came, or as they are to be written.
#[derive(Clone, Copy)]
pub struct Brokers<'a>(Inner<'a>);

#[derive(Clone, Copy)]
enum Inner<'a> {
    Wire(&'a [[u8; ID_BYTES]]),
    Held(&'a [BrokerId]),
}

impl<'a> Brokers<'a> {
    /// One after the other.
    pub fn iter(self) -> impl Iterator<Item = BrokerId> + 'a {
        let (wire, held) = match self.0 {
            Inner::Wire(wire) => (wire, &[][..]),
            Inner::Held(held) => (&[][..], held),
        };
        let id = |bytes: &[u8; ID_BYTES]| {
            let [a, b, c, d, e, f] = *bytes;
            BrokerId::new(u64::from_le_bytes([a, b, c, d, e, f, 0, 0]))
        };
        wire.iter().map(id).chain(held.iter().copied())
    }

    /// The same as a way; `None` if it is none.
    pub fn to_path(self) -> Option<Path> {
        Path::new(self.iter())
    }

    /// Reads a count and so many ids, none of them twice. Nothing is kept for more of them than are there.
    fn read(reader: &mut Reader<'a>, count_max: usize) -> Result<Self, Code> {
        let count = usize::from(reader.u8()?);
        let (ids, _) = reader.bytes(count * ID_BYTES)?.as_chunks();
        let twice = ids.iter().enumerate().any(|(at, id)| ids.iter().take(at).any(|before| before == id));
        if count > count_max || twice { Err(Code::BadBody) } else { Ok(Self(Inner::Wire(ids))) }
    }

    fn write(self, out: &mut Vec<u8>) {
        out.push(u8::try_from(self.iter().count()).expect("a way has at most 8 brokers, and there are 64 at most"));
        for id in self.iter() {
            let [a, b, c, d, e, f, ..] = id.get().to_le_bytes();
            out.extend_from_slice(&[a, b, c, d, e, f]);
        }
    }
}

impl<'a> From<&'a [BrokerId]> for Brokers<'a> {
    fn from(ids: &'a [BrokerId]) -> Self {
        Self(Inner::Held(ids))
    }
}

impl<'a> From<&'a Path> for Brokers<'a> {
    fn from(path: &'a Path) -> Self {
        Self(Inner::Held(path.brokers()))
    }
}

impl PartialEq for Brokers<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Brokers<'_> {}

impl std::fmt::Debug for Brokers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// LINK_HELLO: who dials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkHello {
    /// The version of what is spoken over links.
    pub version: u16,
    /// Who it is.
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
    /// Who it is.
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

/// OFFER: what changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offers {
    /// One for each queue; at most [`limits::OFFERS_MAX`].
    pub offers: Vec<Offer>,
}

/// PRESENCE: everyone who can be reached, in place of what was told before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Presences {
    /// At most [`limits::BROKERS_MAX`].
    pub brokers: Vec<Presence>,
}

/// FORWARD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward<'a> {
    /// The number of this crossing.
    pub seq: u32,
    /// The queue, by the handle that OPEN gave it on this link.
    pub handle: u32,
    /// What the message is known by, at every broker.
    pub id: MessageId,
    /// What it wants.
    pub wants: ForwardWants,
    /// 1 for the first.
    pub attempt: u16,
    /// Slots it takes.
    pub cost: u16,
    /// 0 to 9, 9 first.
    pub priority: u8,
    /// Milliseconds left.
    pub deadline_ms: Option<u32>,
    /// Only to a worker that holds nothing else, and gets nothing else before it settles this.
    pub alone: bool,
    /// Brokers that it came through, the one that says this included; a way, and not empty.
    pub path: Brokers<'a>,
    /// What it carries.
    pub raw: Raw<'a>,
}

/// FORWARD_BROADCAST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardBroadcast<'a> {
    /// The number of this crossing.
    pub seq: u32,
    /// The queue, by the handle that OPEN gave it on this link.
    pub handle: u32,
    /// Milliseconds left.
    pub deadline_ms: u32,
    /// Over when written to all.
    pub no_reply: bool,
    /// The brokers whose consumers are meant, each of them once; not none.
    pub targets: Brokers<'a>,
    /// Brokers that it came through, the one that says this included; a way, and not empty.
    pub path: Brokers<'a>,
    /// What it carries.
    pub raw: Raw<'a>,
}

/// FORWARD_EVENT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForwardEvent<'a> {
    /// Rises with each event of the broker it was published at, the first of the path.
    pub number: u64,
    /// The brokers whose subscribers are meant, each of them once; not none.
    pub targets: Brokers<'a>,
    /// Brokers that it came through, the one that says this included; a way, and not empty.
    pub path: Brokers<'a>,
    /// The event.
    pub event: Event<'a>,
}

/// Appends a frame of this family; nothing of any other.
#[inline(never)]
pub(super) fn encode(frame: &Frame<'_>, out: &mut Vec<u8>) {
    let kind = frame.kind();
    match frame {
        Frame::LinkHello { hello } => write_map(out, kind, 0, hello),
        Frame::LinkChallenge { challenge } => write_map(out, kind, 0, challenge),
        Frame::LinkProof { proof } => write_map(out, kind, 0, proof),
        Frame::Offer(offers) => write_map(out, kind, 0, offers),
        Frame::Presence(presences) => write_map(out, kind, 0, presences),
        Frame::Relay(relay) => write_map(out, kind, 0, relay),
        Frame::Forward(forward) => encode_forward(forward, out),
        Frame::ForwardBroadcast(broadcast) => encode_forward_broadcast(broadcast, out),
        Frame::ForwardEvent(event) => encode_forward_event(event, out),
        _ => {}
    }
}

/// Appends FORWARD.
pub fn encode_forward(forward: &Forward<'_>, out: &mut Vec<u8>) {
    let mut flags =
        headers_flag(forward.raw) | wants_flag(forward.wants) | if forward.alone { flags::ALONE } else { 0 };
    let start = begin(out);
    out.extend_from_slice(&forward.id.to_bytes());
    out.extend_from_slice(&forward.attempt.to_le_bytes());
    out.extend_from_slice(&forward.cost.to_le_bytes());
    out.push(forward.priority);
    if let Some(deadline_ms) = forward.deadline_ms {
        flags |= flags::DEADLINE;
        out.extend_from_slice(&deadline_ms.to_le_bytes());
    }
    forward.path.write(out);
    out.extend_from_slice(forward.raw.bytes);
    finish(out, start, Kind::Forward, flags, forward.seq, forward.handle);
}

fn encode_forward_broadcast(broadcast: &ForwardBroadcast<'_>, out: &mut Vec<u8>) {
    let no_reply = if broadcast.no_reply { flags::NO_REPLY } else { 0 };
    let start = begin(out);
    out.extend_from_slice(&broadcast.deadline_ms.to_le_bytes());
    broadcast.targets.write(out);
    broadcast.path.write(out);
    out.extend_from_slice(broadcast.raw.bytes);
    let flags = no_reply | headers_flag(broadcast.raw);
    finish(out, start, Kind::ForwardBroadcast, flags, broadcast.seq, broadcast.handle);
}

/// Appends FORWARD_EVENT.
pub fn encode_forward_event(event: &ForwardEvent<'_>, out: &mut Vec<u8>) {
    let Event { topic, raw } = event.event;
    let start = begin(out);
    out.extend_from_slice(&event.number.to_le_bytes());
    event.targets.write(out);
    event.path.write(out);
    out.push(u8::try_from(topic.len()).expect("a topic has at most 255 bytes"));
    out.extend_from_slice(topic);
    out.extend_from_slice(raw.bytes);
    finish(out, start, Kind::ForwardEvent, headers_flag(raw), 0, 0);
}

const fn headers_flag(raw: Raw<'_>) -> u8 {
    if raw.headers { flags::HEADERS } else { 0 }
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
    Ok(match kind {
        Kind::LinkHello => Frame::LinkHello { hello: read_map(kind, rest)? },
        Kind::LinkChallenge => Frame::LinkChallenge { challenge: read_map(kind, rest)? },
        Kind::LinkProof => Frame::LinkProof { proof: read_map(kind, rest)? },
        Kind::Offer => Frame::Offer(offers(rest)?),
        Kind::Presence => Frame::Presence(presences(rest)?),
        Kind::Relay => Frame::Relay(Box::new(relay(rest)?)),
        Kind::Forward => Frame::Forward(forward(header, rest)?),
        Kind::ForwardBroadcast => Frame::ForwardBroadcast(forward_broadcast(header, rest)?),
        Kind::ForwardEvent => Frame::ForwardEvent(forward_event(header, rest)?),
        _ => return Err(Code::UnknownType),
    })
}

fn forward<'a>(header: &Header, rest: &'a [u8]) -> Result<Forward<'a>, Code> {
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
    let (seq, handle) = (header.seq, header.word);
    Ok(Forward { seq, handle, id, wants, attempt, cost, priority, deadline_ms, alone, path, raw })
}

fn forward_broadcast<'a>(header: &Header, rest: &'a [u8]) -> Result<ForwardBroadcast<'a>, Code> {
    let mut reader = Reader::new(rest);
    let deadline_ms = reader.u32()?;
    let targets = not_none(Brokers::read(&mut reader, limits::BROKERS_MAX)?)?;
    let path = way(&mut reader)?;
    let no_reply = header.flags & flags::NO_REPLY != 0;
    let raw = raw(header.flags, reader)?;
    Ok(ForwardBroadcast { seq: header.seq, handle: header.word, deadline_ms, no_reply, targets, path, raw })
}

fn forward_event<'a>(header: &Header, rest: &'a [u8]) -> Result<ForwardEvent<'a>, Code> {
    let mut reader = Reader::new(rest);
    let number = reader.u64()?;
    let targets = not_none(Brokers::read(&mut reader, limits::BROKERS_MAX)?)?;
    let path = way(&mut reader)?;
    let length = reader.u8()?;
    let topic = reader.bytes(usize::from(length))?;
    let raw = raw(header.flags, reader)?;
    Ok(ForwardEvent { number, targets, path, event: Event { topic, raw } })
}

fn way<'a>(reader: &mut Reader<'a>) -> Result<Brokers<'a>, Code> {
    not_none(Brokers::read(reader, limits::PATH_MAX)?)
}

fn not_none(brokers: Brokers<'_>) -> Result<Brokers<'_>, Code> {
    if brokers.iter().next().is_some() { Ok(brokers) } else { Err(Code::BadBody) }
}

/// Values in an OFFER that is as long as it may be, with some room for keys that this version does not know.
const OFFER_VALUES_MAX: usize =
    limits::MAP_VALUES_MAX + limits::OFFERS_MAX * (8 + limits::BROKERS_MAX * (8 + limits::PATH_MAX));
/// The same of a PRESENCE.
const PRESENCE_VALUES_MAX: usize =
    limits::MAP_VALUES_MAX + limits::BROKERS_MAX * (16 + limits::PATH_MAX + limits::LINKS_MAX);

fn offers(rest: &[u8]) -> Result<Offers, Code> {
    check_map(rest, OFFER_VALUES_MAX)?;
    let offers: Offers = rmp_serde::from_slice(rest).map_err(|_| Code::BadBody)?;
    let sound = |offer: &Offer| {
        QueueName::from_bytes(offer.queue.as_bytes()).is_ok()
            && offer.rooms.len() <= limits::BROKERS_MAX
            && offer.rooms.iter().all(|room| !room.path.is_empty())
    };
    let all = offers.offers.len() <= limits::OFFERS_MAX && offers.offers.iter().all(sound);
    if all { Ok(offers) } else { Err(Code::BadBody) }
}

fn relay(rest: &[u8]) -> Result<Relay, Code> {
    check_map(rest, limits::MAP_VALUES_MAX)?;
    let relay: Relay = rmp_serde::from_slice(rest).map_err(|_| Code::BadBody)?;
    if relay.path.is_empty() { Err(Code::BadBody) } else { Ok(relay) }
}

fn presences(rest: &[u8]) -> Result<Presences, Code> {
    check_map(rest, PRESENCE_VALUES_MAX)?;
    let presences: Presences = rmp_serde::from_slice(rest).map_err(|_| Code::BadBody)?;
    let sound = |presence: &Presence| {
        let Presence { path, name, neighbours, .. } = presence;
        !path.is_empty() && name.len() <= limits::PEER_NAME_BYTES_MAX && neighbours.len() <= limits::LINKS_MAX
    };
    let all = presences.brokers.len() <= limits::BROKERS_MAX && presences.brokers.iter().all(sound);
    if all { Ok(presences) } else { Err(Code::BadBody) }
}
