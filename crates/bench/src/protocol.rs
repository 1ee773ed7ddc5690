//! The interface of a load to a system's protocol: bytes in, bytes and events out. No sockets here, so that every system is
//! driven by the same loop with the same batching, and so that tests can cut the bytes anywhere.

use anyhow::{Result, bail};

use crate::native::Native;
use crate::peers;
use crate::system::System;
use crate::zmtp::{Mechanism, ZmtpProtocol};

/// The role of an end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Connected and greeted, then silent.
    Idle,
    /// Makes requests and waits for their replies.
    Client,
    /// Answers requests with their own body.
    Worker,
    /// Sends one-way messages and waits until each is stored.
    Producer,
    /// Takes one-way messages and settles each.
    Consumer,
    /// Takes one-way messages and settles none.
    Holder,
}

/// One end of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionEnd {
    pub(crate) role: Role,
    /// Tells ends of one load apart.
    pub(crate) number: u32,
    /// Messages it may hold at a time.
    pub(crate) slots: u32,
    /// Messages are to be on disk before they count as stored, where the wire has a word for that.
    pub(crate) durable: bool,
}

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// The opening is over; the end can do what its role says.
    Ready,
    /// The reply came, or the message is stored.
    Done(u32),
    /// The system would not take it.
    Refused(u32),
    /// A message was delivered here (and, unless by a holder, settled in the same breath).
    Taken,
}

/// One end of a connection, in the words of its system.
pub(crate) trait SystemProtocol {
    /// Says what comes first on a fresh connection.
    fn open(&mut self, out: &mut Vec<u8>, seen: &mut Vec<Seen>);

    /// Puts one request or message. `tag` comes back in [`Seen::Done`].
    fn put(&mut self, tag: u32, body: &[u8], out: &mut Vec<u8>);

    /// Takes whole frames off what was read, answers as its role does, and tells how many bytes are used up.
    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<usize>;

    /// All is said for now, what stands in `out` is about to be written: the place to ask for more.
    fn pause(&mut self, _out: &mut Vec<u8>) {}
}

/// How the ends of a load speak.
pub(crate) type SystemProtocols<'a> = &'a dyn Fn(ConnectionEnd) -> Box<dyn SystemProtocol>;

/// The right words for one end of a connection to `system`.
pub(crate) fn talk(system: System, seat: ConnectionEnd) -> Box<dyn SystemProtocol> {
    match system {
        System::Relay | System::Turno => Box::new(Native::new(system == System::Relay, seat)),
        System::Nats => Box::new(peers::nats::Nats::new(seat)),
        System::Zmq => Box::new(ZmtpProtocol::new(seat, peers::zmq::Letters, Mechanism::Null)),
        System::Redis => Box::new(peers::redis::Redis::new(seat)),
        System::Gearman => Box::new(peers::gearman::Gearman::new(seat)),
        System::Beanstalkd => Box::new(peers::beanstalkd::Beanstalkd::new(seat)),
        System::RabbitMq => Box::new(peers::rabbitmq::RabbitMq::new(seat)),
    }
}

/// Bytes of an [`address`].
pub(crate) const ADDRESS_LEN: usize = 8;

/// Caller and request, in front of the body where a protocol has no place of its own for them.
pub(crate) fn address(number: u32, tag: u32) -> [u8; ADDRESS_LEN] {
    (u64::from(number) << 32 | u64::from(tag)).to_be_bytes()
}

/// The number and the tag in front of a body.
pub(crate) fn addressed(body: &[u8]) -> Result<(u32, u32)> {
    let Some(([n0, n1, n2, n3, t0, t1, t2, t3], _)) = body.split_first_chunk::<ADDRESS_LEN>() else {
        bail!("a body of {} bytes has no address", body.len())
    };
    Ok((u32::from_be_bytes([*n0, *n1, *n2, *n3]), u32::from_be_bytes([*t0, *t1, *t2, *t3])))
}

/// The first line, without its end, and the bytes it takes.
pub(crate) fn text_line(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let at = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = &bytes[..at];
    Some((line.strip_suffix(b"\r").unwrap_or(line), at + 1))
}

/// A whole number in decimal digits.
pub(crate) fn decimal<T: std::str::FromStr>(text: &[u8]) -> Result<T> {
    match std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()) {
        Some(number) => Ok(number),
        None => bail!("`{}` is not a number", text.escape_ascii()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn seat(role: Role) -> ConnectionEnd {
        ConnectionEnd { role, number: 3, slots: 10, durable: false }
    }

    /// Feeds the bytes whole, then cut in two at every place; all must say and see the same.
    pub(crate) fn feed<T: SystemProtocol>(make: impl Fn() -> T, bytes: &[u8]) -> (Vec<u8>, Vec<Seen>) {
        let whole = feed_pieces(&mut make(), &[bytes]);
        for cut in 0..bytes.len() {
            let parted = feed_pieces(&mut make(), &[&bytes[..cut], &bytes[cut..]]);
            assert_eq!(parted, whole, "cut at {cut}");
        }
        whole
    }

    fn feed_pieces(talk: &mut impl SystemProtocol, pieces: &[&[u8]]) -> (Vec<u8>, Vec<Seen>) {
        let (mut inbox, mut out, mut seen) = (Vec::new(), Vec::new(), Vec::new());
        for piece in pieces {
            inbox.extend_from_slice(piece);
            let used = talk.take(&inbox, &mut out, &mut seen).unwrap();
            inbox.drain(..used);
        }
        talk.pause(&mut out);
        assert!(inbox.is_empty(), "{} bytes are left", inbox.len());
        (out, seen)
    }

    #[test]
    fn addresses_come_back() {
        let mut body = address(7, 99).to_vec();
        body.extend_from_slice(b"body");
        assert_eq!(addressed(&body).unwrap(), (7, 99));
        assert!(addressed(b"short").is_err());
    }

    #[test]
    fn lines_end_with_or_without_a_return() {
        assert_eq!(text_line(b"PONG\r\nx"), Some((&b"PONG"[..], 6)));
        assert_eq!(text_line(b"a\n"), Some((&b"a"[..], 2)));
        assert_eq!(text_line(b"a\r"), None);
        assert_eq!(decimal::<u32>(b"12").unwrap(), 12);
        assert!(decimal::<u32>(b"-").is_err());
    }
}
