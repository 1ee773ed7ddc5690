//! Turno's own wire, and the relay's, which is the same without its rules.

use anyhow::{Result, bail};
use turno_proto::model::{Delivery, Slots};
use turno_proto::native::{Connect, Frame, Header, Kind, Raw, RawOutgoing, Register, VERSION, encode, flags, split};

use crate::protocol::{ConnectionEnd, Role, Seen, SystemProtocol};

/// Bytes that DELIVER holds before deadline and payload.
const DELIVER_FIXED: usize = 24;
const DEADLINE_BYTES: usize = 4;

pub(crate) struct Native {
    seat: ConnectionEnd,
    is_relay: bool,
    /// Answers of the opening that are still to come.
    awaited: usize,
}

impl Native {
    pub(crate) const fn new(is_relay: bool, seat: ConnectionEnd) -> Self {
        Self { seat, is_relay, awaited: 0 }
    }

    fn takes_work(&self) -> bool {
        matches!(self.seat.role, Role::Worker | Role::Consumer | Role::Holder)
    }

    fn on_delivery(&self, header: &Header, rest: &[u8], out: &mut Vec<u8>) {
        match self.seat.role {
            Role::Holder => {}
            Role::Consumer => {
                encode(&Frame::Ack { delivery: Delivery { index: header.word, stamp: header.seq } }, out);
            }
            _ => echo(header, rest, out),
        }
    }
}

impl SystemProtocol for Native {
    fn open(&mut self, out: &mut Vec<u8>, seen: &mut Vec<Seen>) {
        if !self.is_relay {
            self.awaited += greet(out);
            if self.seat.role != Role::Idle {
                encode(&Frame::Open { seq: 3, handle: 0, name: b"bench" }, out);
                self.awaited += 1;
            }
        }
        if self.takes_work() {
            self.awaited += register(self.seat.slots, out);
            if !self.is_relay {
                encode(&Frame::Consume { seq: 5, handle: 0, exclusive: false }, out);
                self.awaited += 1;
            }
        }
        if self.awaited == 0 {
            seen.push(Seen::Ready);
        }
    }

    fn put(&mut self, tag: u32, body: &[u8], out: &mut Vec<u8>) {
        let message = RawOutgoing::new(tag, 0, Raw { headers: false, bytes: body });
        let frame = if self.seat.role == Role::Producer { Frame::Send(message) } else { Frame::Request(message) };
        encode(&frame, out);
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<usize> {
        let mut used = 0;
        loop {
            let piece = match split(&bytes[used..], usize::MAX) {
                Ok(Some(piece)) => piece,
                Ok(None) => return Ok(used),
                Err(fault) => bail!("not a frame: {fault:?}"),
            };
            used += piece.used;
            let header = piece.header;
            match Kind::from_number(header.kind) {
                Some(Kind::Error) => bail!("refused with code {}", header.word),
                Some(Kind::Deliver | Kind::Request) => {
                    self.on_delivery(&header, piece.rest, out);
                    seen.push(Seen::Taken);
                }
                Some(Kind::Reply | Kind::Stored) => seen.push(Seen::Done(header.seq)),
                Some(Kind::Undelivered) => seen.push(Seen::Refused(header.seq)),
                _ if self.awaited > 0 => {
                    self.awaited -= 1;
                    if self.awaited == 0 {
                        seen.push(Seen::Ready);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Says what every connection to Turno says first; returns how many answers that gets.
pub(crate) fn greet(out: &mut Vec<u8>) -> usize {
    let connect = Connect { version: VERSION, name: String::new(), program: "bench".into(), heartbeat_ms: 60_000 };
    encode(&Frame::Connect { seq: 1, connect }, out);
    encode(&Frame::Ping { seq: 2 }, out);
    2
}

/// Says that this is a worker; returns how many answers that gets.
pub(crate) fn register(slots: u32, out: &mut Vec<u8>) -> usize {
    encode(&Frame::Register { seq: 4, register: Register::new(Slots::Limited(slots), "bench") }, out);
    1
}

/// Answers a delivery, or the request that the relay hands on, with its own body.
pub(crate) fn echo(header: &Header, rest: &[u8], out: &mut Vec<u8>) {
    let fixed = if header.kind == Kind::Deliver.number() { DELIVER_FIXED } else { 0 };
    let deadline = if header.flags & flags::DEADLINE != 0 { DEADLINE_BYTES } else { 0 };
    let raw = Raw { headers: false, bytes: rest.get(fixed + deadline..).unwrap_or_default() };
    encode(&Frame::Reply { seq: header.seq, word: header.word, more: false, raw }, out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::{feed, seat};

    #[test]
    fn a_worker_of_the_relay_echoes() {
        let mut asked = Vec::new();
        let raw = Raw { headers: false, bytes: b"body" };
        encode(&Frame::Request(RawOutgoing::new(8, 5, raw)), &mut asked);
        let (said, seen) = feed(|| Native::new(true, seat(Role::Worker)), &asked);
        assert_eq!(seen, [Seen::Taken]);
        let mut wanted = Vec::new();
        encode(&Frame::Reply { seq: 8, word: 5, more: false, raw }, &mut wanted);
        assert_eq!(said, wanted);
    }

    #[test]
    fn replies_and_refusals_are_told_apart() {
        let mut came = Vec::new();
        let raw = Raw { headers: false, bytes: b"" };
        encode(&Frame::Reply { seq: 8, word: 0, more: false, raw }, &mut came);
        encode(&Frame::Pong { seq: 9 }, &mut came);
        let (said, seen) = feed(|| Native::new(false, seat(Role::Client)), &came);
        assert_eq!(seen, [Seen::Done(8)]);
        assert!(said.is_empty());
    }
}
