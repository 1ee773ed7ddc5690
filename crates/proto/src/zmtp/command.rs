//! Commands: a name, and data whose form depends on it.

use super::ZmtpFault;
use super::frame::{self, COMMAND};

/// A command that this end knows, with its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command<'a> {
    Hello(&'a [u8]),
    Welcome(&'a [u8]),
    Initiate(&'a [u8]),
    Ready(&'a [u8]),
    Error,
    Ping {
        ttl_tenths: u16,
        context: &'a [u8],
    },
    Pong,
    Subscribe(&'a [u8]),
    Cancel(&'a [u8]),
    /// A later version may know it.
    Unknown,
}

/// How libzmq's PLAIN says ERROR (seen in 4.3.5): the length of the name and its first letter became one byte, 5E. It does
/// not understand the right form either, and ends the connection as for ERROR.
const LIBZMQ_ERROR: &[u8] = b"^RROR\x03";

/// Bytes that PING may ask to have back.
const CONTEXT_LEN_MAX: usize = 16;

impl<'a> Command<'a> {
    pub(super) fn read(body: &'a [u8]) -> Result<Self, ZmtpFault> {
        if body.starts_with(LIBZMQ_ERROR) {
            return Ok(Self::Error);
        }
        let (name, data) = short(body).ok_or(ZmtpFault::BadCommand)?;
        if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
            return Err(ZmtpFault::BadCommand);
        }
        Ok(match name {
            b"HELLO" => Self::Hello(data),
            b"WELCOME" => Self::Welcome(data),
            b"INITIATE" => Self::Initiate(data),
            b"READY" => Self::Ready(data),
            b"ERROR" => Self::Error,
            b"PING" => {
                let (ttl, context) = data.split_first_chunk().ok_or(ZmtpFault::BadCommand)?;
                check_context(context)?;
                Self::Ping { ttl_tenths: u16::from_be_bytes(*ttl), context }
            }
            b"PONG" => {
                check_context(data)?;
                Self::Pong
            }
            b"SUBSCRIBE" => Self::Subscribe(data),
            b"CANCEL" => Self::Cancel(data),
            _ => Self::Unknown,
        })
    }
}

const fn check_context(context: &[u8]) -> Result<(), ZmtpFault> {
    if context.len() > CONTEXT_LEN_MAX { Err(ZmtpFault::BadCommand) } else { Ok(()) }
}

/// A text with its length in one byte before it, and the bytes behind it.
pub(super) fn short(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first()?;
    rest.split_at_checked(usize::from(*len))
}

/// Appends a text with its length in one byte before it. Longer ones are cut: the caller has checked names from people.
pub(super) fn put_short(text: &[u8], out: &mut Vec<u8>) {
    let len = u8::try_from(text.len()).unwrap_or(u8::MAX);
    out.push(len);
    out.extend_from_slice(text.get(..usize::from(len)).unwrap_or(text));
}

/// Appends the body of a command: its name and the pieces of its data.
pub(super) fn body(name: &str, data: &[&[u8]], out: &mut Vec<u8>) {
    put_short(name.as_bytes(), out);
    data.iter().for_each(|piece| out.extend_from_slice(piece));
}

/// Appends a command as a frame.
pub(super) fn encode(name: &str, data: &[&[u8]], out: &mut Vec<u8>) {
    let size = 1 + name.len() + data.iter().map(|piece| piece.len()).sum::<usize>();
    frame::encode(COMMAND, size, out);
    body(name, data, out);
}

/// Appends ERROR with its reason.
pub(super) fn encode_error(reason: &str, out: &mut Vec<u8>) {
    let mut data = Vec::new();
    put_short(reason.as_bytes(), &mut data);
    encode("ERROR", &[&data], out);
}
