//! Metadata: the properties that each end sends in the handshake.

use super::command::{put_short, short};
use super::settings::{OwnSocketType, ZmtpSettings};
use super::{SocketType, ZmtpFault};

const SOCKET_TYPE: &[u8] = b"Socket-Type";
const IDENTITY: &[u8] = b"Identity";

/// Bytes of an identity (37/ZMTP, The Identity Property).
const IDENTITY_LEN_MAX: usize = 255;

/// The peer's metadata, and the socket type of this end towards it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PeerMetadata {
    pub(super) ours: SocketType,
    pub(super) theirs: SocketType,
    pub(super) identity: Box<[u8]>,
}

/// Appends the properties of an end.
pub(super) fn encode(socket_type: SocketType, identity: &[u8], out: &mut Vec<u8>) {
    put(SOCKET_TYPE, socket_type.name().as_bytes(), out);
    if socket_type.has_identity() {
        put(IDENTITY, identity, out);
    }
}

fn put(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    put_short(name, out);
    // Names of types and identities are short.
    let len = u32::try_from(value.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(value);
}

/// Reads the properties of the peer, and finds the type of this end.
pub(super) fn meet(bytes: &[u8], settings: &ZmtpSettings) -> Result<PeerMetadata, ZmtpFault> {
    let (mut socket_type, mut identity) = (None, None);
    let mut rest = bytes;
    while !rest.is_empty() {
        let (name, value, behind) = property(rest).ok_or(ZmtpFault::BadMetadata)?;
        rest = behind;
        let known = if name.eq_ignore_ascii_case(SOCKET_TYPE) {
            &mut socket_type
        } else if name.eq_ignore_ascii_case(IDENTITY) {
            &mut identity
        } else {
            continue;
        };
        if known.replace(value).is_some() {
            return Err(ZmtpFault::BadMetadata);
        }
    }
    let identity = identity.unwrap_or_default();
    if identity.len() > IDENTITY_LEN_MAX {
        return Err(ZmtpFault::BadMetadata);
    }
    let theirs = socket_type.and_then(SocketType::from_name).ok_or(ZmtpFault::UnknownSocketType)?;
    let ours = match settings.ours {
        OwnSocketType::Is(ours) => ours,
        OwnSocketType::Counterpart => theirs.counterpart().ok_or(ZmtpFault::NoCounterpart(theirs))?,
    };
    if !ours.talks_to(theirs) {
        return Err(ZmtpFault::WrongSocketType { ours, theirs });
    }
    Ok(PeerMetadata { ours, theirs, identity: identity.into() })
}

/// The name and value of the first property, and the bytes behind it.
fn property(bytes: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let (name, rest) = short(bytes).filter(|(name, _)| !name.is_empty())?;
    let (len, rest) = rest.split_first_chunk()?;
    let len = usize::try_from(u32::from_be_bytes(*len)).ok()?;
    let (value, behind) = rest.split_at_checked(len)?;
    Some((name, value, behind))
}
