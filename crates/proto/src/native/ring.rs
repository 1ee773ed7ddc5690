//! What members of a ring say to each other, to and from bytes. RING_PUBLISH is the one that is sent often: its fields are
//! fixed, and what is read borrows the bytes it came in.

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::decode::raw;
use super::encode::{begin, finish, flagged_map, map as write_map, plain};
use super::frame::{Event, Frame};
use super::greeting::{Greets, Said};
use super::reader::Reader;
use super::{Header, Kind, Proof, VERSION, cut, flags};
use crate::model::ring::{Errand, Fallen, Had, Member, Origin, Sid};
use crate::model::{Code, limits};
use crate::shape::check_map;

/// RING_HELLO: who dials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingHello {
    /// The version of what is spoken in the ring.
    pub version: u16,
    /// Who it is; `None`: it has no number yet, and may only ask for one.
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
    /// Who it is.
    pub member: Member,
    /// The program and its version, for people.
    #[serde(default)]
    pub program: String,
    /// 32 bytes that were never used before.
    pub nonce: Bytes,
    /// 32 bytes that only who knows the secret can make; none if it has no secret.
    pub proof: Bytes,
}

/// NEWCONN.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewConn {
    /// Who wants to join.
    pub joiner: Member,
    /// The member that it asked; `None`: it says so itself.
    pub content: Option<Sid>,
    /// That member has no predecessor.
    pub gap: bool,
    /// How it ended.
    #[serde(with = "verdict")]
    pub verdict: Option<JoinVerdict>,
    /// Members that it came through.
    pub hops: u8,
}

/// How an attempt to join ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinVerdict {
    /// The predecessor has connected to the joiner.
    Claimed,
    /// It must not join, or not now.
    Refused(Code),
}

/// RETCONN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RetConn {
    /// The first word of a member that sends from now on.
    Open {
        /// Why.
        errand: Errand,
    },
    /// On its way round.
    Call {
        /// Who has no predecessor.
        caller: Member,
        /// Who was that.
        content: Fallen,
        /// Members that it came through.
        hops: u8,
    },
}

#[derive(Serialize, Deserialize)]
struct RetConnOpen {
    errand: Errand,
}

#[derive(Serialize, Deserialize)]
struct RetConnCall {
    caller: Member,
    content: Fallen,
    hops: u8,
}

/// RING_PUBLISH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPublish<'a> {
    /// Where it was published.
    pub origin: Origin,
    /// Its number there, from 1.
    pub seq: u64,
    /// The number before it on this way.
    pub after: u64,
    /// Of the same origin's all up to this one have come round.
    pub round: u64,
    /// Members that it came through.
    pub hops: u8,
    /// What was published.
    pub event: Event<'a>,
}

/// SERVOFF.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServOff {
    /// Who leaves.
    pub leaver: Member,
    /// Its successor, once that has heard of it.
    pub content: Option<Member>,
    /// Members that it came through.
    pub hops: u8,
}

/// SHUTDWN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShutDwn {
    /// Where somebody asked for it.
    pub origin: Origin,
    /// Members that it came through.
    pub hops: u8,
}

/// ROLL_CALL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollCall {
    /// Whose.
    pub origin: Origin,
    /// Its number there.
    pub number: u64,
    /// Of the same origin's publications all up to this one have come round.
    pub round: u64,
    /// Members that it came through, the origin first.
    pub members: Vec<Member>,
}

/// RING_HAVE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingHave {
    /// By origin; at most [`limits::RING_ORIGINS_MAX`].
    pub had: Vec<Had>,
}

/// CAUGHT_UP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaughtUp {
    /// In the order of the circle as the sender knows it.
    pub members: Vec<Member>,
}

/// RING_REFUSED.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingRefused {
    /// Why.
    #[serde(with = "code")]
    pub code: Code,
    /// Who is to be asked instead.
    pub instead: Option<Member>,
}

/// RING_PROBE and RING_CIRCLE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingCircle {
    /// Its last roll call came round, and nothing has changed since.
    pub whole: bool,
    /// Who was there.
    pub members: Vec<Member>,
}

/// RING_MERGE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingMerge {
    /// Who found the other ring.
    pub origin: Origin,
    /// A member of it.
    pub contact: Member,
    /// Members that it came through.
    pub hops: u8,
}

/// What a broker says of itself in the ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingIdentity {
    /// Who it is; `None`: it has no number yet.
    pub member: Option<Member>,
    /// The program and its version, for people.
    pub program: String,
}

impl Greets for RingIdentity {
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

    fn said(frame: Frame<'_>) -> Option<Said<Self>> {
        match frame {
            Frame::RingHello { hello } => Some(Said::Hello(hello)),
            Frame::RingChallenge { challenge } => Some(Said::Challenge(challenge)),
            Frame::RingProof { proof } => Some(Said::Proof(proof)),
            _ => None,
        }
    }

    fn frame(said: Said<Self>) -> Frame<'static> {
        match said {
            Said::Hello(hello) => Frame::RingHello { hello },
            Said::Challenge(challenge) => Frame::RingChallenge { challenge },
            Said::Proof(proof) => Frame::RingProof { proof },
        }
    }
}

/// Appends a frame of this family but RING_PUBLISH; nothing of any other.
#[inline(never)]
pub(super) fn encode(frame: &Frame<'_>, out: &mut Vec<u8>) {
    let kind = frame.kind();
    match frame {
        Frame::RingHello { hello } => write_map(out, kind, 0, hello),
        Frame::RingChallenge { challenge } => write_map(out, kind, 0, challenge),
        Frame::RingProof { proof } => write_map(out, kind, 0, proof),
        Frame::NewConn(newconn) => write_map(out, kind, 0, newconn),
        Frame::RetConn(retconn) => match &**retconn {
            RetConn::Open { errand } => write_map(out, kind, 0, &RetConnOpen { errand: *errand }),
            RetConn::Call { caller, content, hops } => {
                let call = RetConnCall { caller: caller.clone(), content: *content, hops: *hops };
                flagged_map(out, kind, flags::CALL, 0, &call);
            }
        },
        Frame::ServOff(servoff) => write_map(out, kind, 0, servoff),
        Frame::ShutDwn(shutdwn) => write_map(out, kind, 0, shutdwn),
        Frame::RollCall(roll_call) => write_map(out, kind, 0, roll_call),
        Frame::RingHave(have) => write_map(out, kind, 0, have),
        Frame::CaughtUp(caught_up) => write_map(out, kind, 0, caught_up),
        Frame::RingRefused(refused) => write_map(out, kind, 0, refused),
        Frame::RingProbe(circle) | Frame::RingCircle(circle) => write_map(out, kind, 0, circle),
        Frame::RingMerge(merge) => write_map(out, kind, 0, merge),
        Frame::RingSid { free: None } => plain(out, kind, 0, 0, 0, &[]),
        Frame::RingSid { free: Some(sid) } => plain(out, kind, flags::FREE, 0, u32::from(sid.get()), &[]),
        _ => {}
    }
}

/// Appends RING_PUBLISH.
pub fn encode_ring_publish(publish: &RingPublish<'_>, out: &mut Vec<u8>) {
    let RingPublish { origin, seq, after, round, hops, event: Event { topic, raw } } = *publish;
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
    Ok(match kind {
        Kind::RingPublish => Frame::RingPublish(publish(header, rest)?),
        Kind::RingHello => {
            let hello: RingHello = few(rest)?;
            hello.member.as_ref().map_or(Ok(()), sound)?;
            Frame::RingHello { hello: Box::new(hello) }
        }
        Kind::RingChallenge => {
            let challenge: RingChallenge = few(rest)?;
            sound(&challenge.member)?;
            Frame::RingChallenge { challenge: Box::new(challenge) }
        }
        Kind::RingProof => Frame::RingProof { proof: few::<Proof>(rest)? },
        Kind::NewConn => {
            let newconn: NewConn = few(rest)?;
            sound(&newconn.joiner)?;
            Frame::NewConn(Box::new(newconn))
        }
        Kind::RetConn => Frame::RetConn(Box::new(retconn(header.flags, rest)?)),
        Kind::ServOff => {
            let servoff: ServOff = few(rest)?;
            sound(&servoff.leaver)?;
            servoff.content.as_ref().map_or(Ok(()), sound)?;
            Frame::ServOff(Box::new(servoff))
        }
        Kind::ShutDwn => Frame::ShutDwn(few(rest)?),
        Kind::RollCall => {
            let roll_call: RollCall = many(rest, limits::RING_MEMBERS_MAX)?;
            all_sound(&roll_call.members)?;
            Frame::RollCall(Box::new(roll_call))
        }
        Kind::RingHave => {
            let have: RingHave = many(rest, limits::RING_ORIGINS_MAX)?;
            if have.had.len() > limits::RING_ORIGINS_MAX {
                return Err(Code::BadBody);
            }
            Frame::RingHave(have)
        }
        Kind::CaughtUp => {
            let caught_up: CaughtUp = many(rest, limits::RING_MEMBERS_MAX)?;
            all_sound(&caught_up.members)?;
            Frame::CaughtUp(caught_up)
        }
        Kind::RingRefused => {
            let refused: RingRefused = few(rest)?;
            refused.instead.as_ref().map_or(Ok(()), sound)?;
            Frame::RingRefused(Box::new(refused))
        }
        Kind::RingProbe => Frame::RingProbe(circle(rest)?),
        Kind::RingCircle => Frame::RingCircle(circle(rest)?),
        Kind::RingMerge => {
            let merge: RingMerge = few(rest)?;
            sound(&merge.contact)?;
            Frame::RingMerge(Box::new(merge))
        }
        Kind::RingSid => Frame::RingSid { free: free_sid(header, rest)? },
        _ => return Err(Code::UnknownType),
    })
}

fn publish<'a>(header: &Header, rest: &'a [u8]) -> Result<RingPublish<'a>, Code> {
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
    Ok(RingPublish { origin, seq, after, round, hops, event: Event { topic, raw } })
}

fn retconn(flags: u8, rest: &[u8]) -> Result<RetConn, Code> {
    if flags & flags::CALL == 0 {
        let RetConnOpen { errand } = few(rest)?;
        return Ok(RetConn::Open { errand });
    }
    let RetConnCall { caller, content, hops } = few(rest)?;
    sound(&caller)?;
    Ok(RetConn::Call { caller, content, hops })
}

fn circle(rest: &[u8]) -> Result<RingCircle, Code> {
    let circle: RingCircle = many(rest, limits::RING_MEMBERS_MAX)?;
    all_sound(&circle.members)?;
    Ok(circle)
}

fn free_sid(header: &Header, rest: &[u8]) -> Result<Option<Sid>, Code> {
    Reader::new(rest).end()?;
    if header.flags & flags::FREE == 0 {
        return Ok(None);
    }
    u16::try_from(header.word).map(|sid| Some(Sid::new(sid))).map_err(|_| Code::BadBody)
}

/// A map without a long list.
fn few<T: DeserializeOwned>(rest: &[u8]) -> Result<T, Code> {
    many(rest, 0)
}

/// Values of one element of a list, with some room for keys that this version does not know.
const ELEMENT_VALUES: usize = 16;

/// A map with a list of so many members, or of what they have.
fn many<T: DeserializeOwned>(rest: &[u8], count_max: usize) -> Result<T, Code> {
    check_map(rest, limits::MAP_VALUES_MAX + count_max * ELEMENT_VALUES)?;
    rmp_serde::from_slice(rest).map_err(|_| Code::BadBody)
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

/// A code as its number; one that this version does not know is `other`.
mod code {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::model::Code;

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(super) fn serialize<S: Serializer>(code: &Code, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u32(code.number())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Code, D::Error> {
        u32::deserialize(from).map(|number| Code::from_number(number).unwrap_or(Code::Other))
    }
}

/// How an attempt to join ended: nil, 0 if the place was claimed, or the number of a code.
mod verdict {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::JoinVerdict;
    use crate::model::Code;

    pub(super) fn serialize<S: Serializer>(verdict: &Option<JoinVerdict>, to: S) -> Result<S::Ok, S::Error> {
        let number = |verdict: &JoinVerdict| match verdict {
            JoinVerdict::Claimed => 0,
            JoinVerdict::Refused(code) => code.number(),
        };
        verdict.as_ref().map(number).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<JoinVerdict>, D::Error> {
        let verdict = |number| match number {
            0 => JoinVerdict::Claimed,
            number => JoinVerdict::Refused(Code::from_number(number).unwrap_or(Code::Other)),
        };
        Ok(Option::<u32>::deserialize(from)?.map(verdict))
    }
}
