//! Messages of a ring, to and from bytes. RING_PUBLISH is the one that is sent often: its fields are fixed, and the result
//! borrows the bytes it came in.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::decode::raw;
use super::encode::{begin, finish, plain};
use super::fields::Reader;
use super::frame::{Frame, Raw, RawEvent};
use super::greeting::{GreetingFrame, GreetingIdentity};
use super::{Header, Kind, Proof, VERSION, cut, flags};
use crate::model::ring::{Circle, Member, NewConn, Origin, Publication, PublicationRef, RetConn, RingMessage, Sid};
use crate::model::topic::EventRef;
use crate::model::{Code, limits};
use crate::msgpack_check::check_map;

/// RING_HELLO: who dials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingHello {
    /// The version of what is spoken in the ring.
    pub version: u16,
    /// The member; `None`: it has no number yet, and may only ask for one.
    pub member: Option<Member>,
    /// The program and its version, for people.
    #[serde(default)]
    pub program: String,
    /// 32 bytes that were never used before.
    pub nonce: Bytes,
}

/// RING_CHALLENGE: who was dialled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingChallenge {
    /// The version of what is spoken in the ring.
    pub version: u16,
    /// The member that answers.
    pub member: Member,
    /// The program and its version, for people.
    #[serde(default)]
    pub program: String,
    /// 32 bytes that were never used before.
    pub nonce: Bytes,
    /// 32 bytes that only who knows the secret can make; none if it has no secret.
    pub proof: Bytes,
}

/// The identity of a broker in the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingIdentity {
    /// The member; `None`: it has no number yet.
    pub member: Option<Member>,
    /// The program and its version, for people.
    pub program: String,
}

impl GreetingIdentity for RingIdentity {
    type Hello = RingHello;
    type Challenge = RingChallenge;
    const LABEL: &'static [u8] = b"turno ring 1";
    const REFUSED: Code = Code::RingRefused;
    const KINDS: [Kind; 3] = [Kind::RingHello, Kind::RingChallenge, Kind::RingProof];

    fn hello(&self, nonce: Bytes) -> RingHello {
        let Self { member, program } = self.clone();
        RingHello { version: VERSION, member, program, nonce }
    }

    fn challenge(&self, nonce: Bytes, proof: Bytes) -> RingChallenge {
        let Self { member, program } = self.clone();
        let nobody = || {
            let origin = Origin { sid: Sid::new(0), incarnation: 0 };
            Member { origin, address: String::new(), native: String::new() }
        };
        RingChallenge { version: VERSION, member: member.unwrap_or_else(nobody), program, nonce, proof }
    }

    fn from_hello(hello: RingHello) -> Result<(Self, Bytes), Code> {
        let RingHello { version, member, mut program, nonce } = hello;
        if version != VERSION {
            return Err(Code::VersionMismatch);
        }
        cut(&mut program, limits::PEER_NAME_BYTES_MAX);
        Ok((Self { member, program }, nonce))
    }

    fn from_challenge(challenge: RingChallenge) -> Result<(Self, Bytes, Bytes), Code> {
        let RingChallenge { version, member, program, nonce, proof } = challenge;
        let (identity, nonce) = Self::from_hello(RingHello { version, member: Some(member), program, nonce })?;
        Ok((identity, nonce, proof))
    }

    fn tell(ends: [&Self; 2], mac: &mut impl FnMut(&[u8])) {
        for end in ends {
            mac(&[u8::from(end.member.is_some())]);
        }
        let ends = ends.map(|end| end.member.as_ref());
        let origin = |end: Option<&Member>| end.map(|member| member.origin);
        for end in ends {
            mac(&origin(end).map_or(0, |origin| origin.sid.get()).to_le_bytes());
        }
        for end in ends {
            mac(&origin(end).map_or(0, |origin| origin.incarnation).to_le_bytes());
        }
        for end in ends {
            let addresses = end.map(|member| [member.address.as_str(), &member.native]);
            for address in addresses.unwrap_or_default() {
                mac(&(address.len() as u64).to_le_bytes());
                mac(address.as_bytes());
            }
        }
    }

    fn said(frame: Frame<'_>) -> Option<GreetingFrame<Self>> {
        match frame {
            Frame::RingHello { hello } => Some(GreetingFrame::Hello(hello)),
            Frame::RingChallenge { challenge } => Some(GreetingFrame::Challenge(challenge)),
            Frame::RingProof { proof } => Some(GreetingFrame::Proof(proof)),
            _ => None,
        }
    }

    fn frame(said: GreetingFrame<Self>) -> Frame<'static> {
        match said {
            GreetingFrame::Hello(hello) => Frame::RingHello { hello },
            GreetingFrame::Challenge(challenge) => Frame::RingChallenge { challenge },
            GreetingFrame::Proof(proof) => Frame::RingProof { proof },
        }
    }
}

impl RingMessage {
    /// The type of its frame.
    pub(super) const fn kind(&self) -> Kind {
        match self {
            Self::NewConn(_) => Kind::NewConn,
            Self::RetConn(_) => Kind::RetConn,
            Self::Publish(_) => Kind::RingPublish,
            Self::ServOff { .. } => Kind::ServOff,
            Self::Shutdown { .. } => Kind::ShutDwn,
            Self::RollCall { .. } => Kind::RollCall,
            Self::Have { .. } => Kind::RingHave,
            Self::CaughtUp { .. } => Kind::CaughtUp,
            Self::Refused { .. } => Kind::RingRefused,
            Self::Probe(_) => Kind::RingProbe,
            Self::Circle(_) => Kind::RingCircle,
            Self::Merge { .. } => Kind::RingMerge,
            Self::AskSid | Self::FreeSid { .. } => Kind::RingSid,
        }
    }
}

/// Appends the frame of a message.
#[inline(never)]
pub fn encode_ring_message(message: &RingMessage, out: &mut Vec<u8>) {
    let kind = message.kind();
    match message {
        RingMessage::Publish(publication) => encode_publication(publication.into(), out),
        RingMessage::AskSid => plain(out, kind, 0, 0, 0, &[]),
        RingMessage::FreeSid { sid } => plain(out, kind, flags::FREE, 0, u32::from(sid.get()), &[]),
        RingMessage::RetConn(retconn) => {
            let flags = if matches!(retconn, RetConn::Call { .. }) { flags::CALL } else { 0 };
            write_fields(out, kind, flags, retconn);
        }
        message => write_fields(out, kind, 0, message),
    }
}

/// Appends the frame of one variant: the map of its fields. Which one it is the frame's type says; serde says it too, by a
/// map of one whose key is the variant's name, and that is taken out again.
fn write_fields(out: &mut Vec<u8>, kind: Kind, flags: u8, variant: &impl Serialize) {
    let start = begin(out);
    let inside = out.len();
    rmp_serde::encode::write_named(out, variant).expect("plain maps always encode, and a Vec takes every byte");
    let name = out.get(inside + 1).map_or(0, |marker| usize::from(marker & 0x1f));
    out.drain(inside..inside + 2 + name);
    finish(out, start, kind, flags, 0, 0);
}

/// Reads the fields of the variant with that name, as [`write_fields`] writes them.
fn read_fields<T: DeserializeOwned>(name: &str, rest: &[u8], count_max: usize) -> Result<T, Code> {
    check_list(rest, count_max)?;
    let marker = u8::try_from(name.len()).map_or(0, |len| 0xa0 | len);
    let named = [&[0x81, marker], name.as_bytes(), rest].concat();
    rmp_serde::from_slice(&named).map_err(|_| Code::BadBody)
}

/// Appends RING_PUBLISH.
pub fn encode_publication(publication: PublicationRef<'_>, out: &mut Vec<u8>) {
    let EventRef { topic, headers, bytes, .. } = publication.event;
    encode_ring_publish(
        &publication.with(RawEvent { topic: topic.as_str().as_bytes(), payload: Raw { headers, bytes } }),
        out,
    );
}

/// Appends RING_PUBLISH.
#[inline]
pub(super) fn encode_ring_publish(publish: &Publication<RawEvent<'_>>, out: &mut Vec<u8>) {
    let Publication { origin, seq, after, round, hops, event: RawEvent { topic, payload: raw } } = *publish;
    let start = begin(out);
    out.extend_from_slice(&origin.sid.get().to_le_bytes());
    out.extend_from_slice(&origin.incarnation.to_le_bytes());
    out.extend_from_slice(&seq.to_le_bytes());
    out.extend_from_slice(&after.to_le_bytes());
    out.extend_from_slice(&round.to_le_bytes());
    out.push(hops);
    out.push(u8::try_from(topic.len()).expect("a topic has at most 255 bytes"));
    out.extend_from_slice(topic);
    out.extend_from_slice(raw.bytes);
    let flags = if raw.headers { flags::HEADERS } else { 0 };
    finish(out, start, Kind::RingPublish, flags, 0, 0);
}

/// Reads the inside of a frame of this family.
pub(super) fn decode<'a>(kind: Kind, header: &Header, rest: &'a [u8]) -> Result<Frame<'a>, Code> {
    let many = limits::RING_MEMBERS_MAX;
    let message = match kind {
        Kind::RingPublish => return Ok(Frame::RingPublish(publish(header, rest)?)),
        Kind::RingHello => {
            let hello: RingHello = few(rest)?;
            hello.member.as_ref().map_or(Ok(()), sound)?;
            return Ok(Frame::RingHello { hello: Box::new(hello) });
        }
        Kind::RingChallenge => {
            let challenge: RingChallenge = few(rest)?;
            sound(&challenge.member)?;
            return Ok(Frame::RingChallenge { challenge: Box::new(challenge) });
        }
        Kind::RingProof => return Ok(Frame::RingProof { proof: few::<Proof>(rest)? }),
        Kind::RingSid => free_sid(header, rest)?,
        Kind::RetConn => {
            let name = if header.flags & flags::CALL == 0 { "Open" } else { "Call" };
            RingMessage::RetConn(read_fields(name, rest, 0)?)
        }
        Kind::NewConn => read_fields("NewConn", rest, 0)?,
        Kind::ServOff => read_fields("ServOff", rest, 0)?,
        Kind::ShutDwn => read_fields("Shutdown", rest, 0)?,
        Kind::RingRefused => read_fields("Refused", rest, 0)?,
        Kind::RingMerge => read_fields("Merge", rest, 0)?,
        Kind::RollCall => read_fields("RollCall", rest, many)?,
        Kind::CaughtUp => read_fields("CaughtUp", rest, many)?,
        Kind::RingProbe => read_fields("Probe", rest, many)?,
        Kind::RingCircle => read_fields("Circle", rest, many)?,
        Kind::RingHave => read_fields("Have", rest, limits::RING_ORIGINS_MAX)?,
        _ => return Err(Code::UnknownType),
    };
    is_sound(&message)?;
    Ok(Frame::Ring(Box::new(message)))
}

/// Lists have a limit, and so have addresses.
fn is_sound(message: &RingMessage) -> Result<(), Code> {
    match message {
        RingMessage::NewConn(NewConn { joiner: member, .. })
        | RingMessage::RetConn(RetConn::Call { caller: member, .. })
        | RingMessage::Merge { contact: member, .. } => sound(member),
        RingMessage::ServOff { leaver, content, .. } => {
            sound(leaver)?;
            content.as_deref().map_or(Ok(()), sound)
        }
        RingMessage::Refused { instead, .. } => instead.as_ref().map_or(Ok(()), sound),
        RingMessage::RollCall { members, .. }
        | RingMessage::CaughtUp { members }
        | RingMessage::Probe(Circle { members, .. })
        | RingMessage::Circle(Circle { members, .. }) => all_sound(members),
        RingMessage::Have { had } => {
            if had.len() > limits::RING_ORIGINS_MAX {
                Err(Code::BadBody)
            } else {
                Ok(())
            }
        }
        RingMessage::RetConn(RetConn::Open { .. })
        | RingMessage::Publish(_)
        | RingMessage::Shutdown { .. }
        | RingMessage::AskSid
        | RingMessage::FreeSid { .. } => Ok(()),
    }
}

fn publish<'a>(header: &Header, rest: &'a [u8]) -> Result<Publication<RawEvent<'a>>, Code> {
    let mut reader = Reader::new(rest);
    let origin = Origin { sid: Sid::new(reader.u16()?), incarnation: reader.u64()? };
    let (seq, after, round) = (reader.u64()?, reader.u64()?, reader.u64()?);
    let hops = reader.u8()?;
    let length = reader.u8()?;
    let topic = reader.bytes(usize::from(length))?;
    let raw = raw(header.flags, reader)?;
    // Numbers begin with 1, and what came before has a lower one.
    if after >= seq {
        return Err(Code::BadBody);
    }
    Ok(Publication { origin, seq, after, round, hops, event: RawEvent { topic, payload: raw } })
}

fn free_sid(header: &Header, rest: &[u8]) -> Result<RingMessage, Code> {
    Reader::new(rest).end()?;
    if header.flags & flags::FREE == 0 {
        return Ok(RingMessage::AskSid);
    }
    u16::try_from(header.word).map(|sid| RingMessage::FreeSid { sid: Sid::new(sid) }).map_err(|_| Code::BadBody)
}

/// A map without a long list.
fn few<T: DeserializeOwned>(rest: &[u8]) -> Result<T, Code> {
    check_list(rest, 0)?;
    rmp_serde::from_slice(rest).map_err(|_| Code::BadBody)
}

/// Values of one element of a list, with some room for keys that this version does not know.
const ELEMENT_VALUES: usize = 16;

/// A map with a list of so many members, or of what they have.
fn check_list(rest: &[u8], count_max: usize) -> Result<(), Code> {
    check_map(rest, limits::MAP_VALUES_MAX + count_max * ELEMENT_VALUES)
}

const fn sound(member: &Member) -> Result<(), Code> {
    let (address, native) = (member.address.len(), member.native.len());
    let most = limits::RING_ADDRESS_BYTES_MAX;
    if address == 0 || address > most || native > most { Err(Code::BadBody) } else { Ok(()) }
}

fn all_sound(members: &[Member]) -> Result<(), Code> {
    if members.len() > limits::RING_MEMBERS_MAX {
        return Err(Code::BadBody);
    }
    members.iter().try_for_each(sound)
}
