//! DEALER sockets for loads, over ZMTP with the mechanism NULL or CURVE. Both brokers that speak it are driven by this code;
//! what the frames of a message say is the business of a [`Dialect`].
//!
//! NULL is spoken as ZMTP 3.0 and in as few lines as possible, so that the load takes little of the machine. CURVE is
//! `turno_proto::zmtp`'s.

use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use turno_proto::model::Mono;
use turno_proto::zmtp::curve::{ENTROPY_LEN, Entropy, KeyPair};
use turno_proto::zmtp::{OwnSocketType, Security, SocketType, ZmtpSession, ZmtpSettings, ZmtpStep};

use crate::protocol::{ConnectionEnd, Role, Seen, SystemProtocol};

const GREETING_LEN: usize = 64;
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;
const FRAME_MAX: usize = 16 * 1024 * 1024;
/// Frames of one message.
const FRAMES_MAX: usize = 8;
/// Letter and number.
const HEAD_LEN: usize = 5;

/// The secret key of both brokers in Z85: any forty letters will do.
pub(crate) const BROKER_SECRET: &str = "benchbenchbenchbenchbenchbenchbenchbench";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mechanism {
    Null,
    Curve,
}

/// The messages between an end of a connection and its broker.
pub(crate) trait Dialect {
    /// The handshake is done: says what comes first.
    fn begin(&mut self, seat: ConnectionEnd, wire: &mut ZmtpWire, out: &mut Vec<u8>);

    /// A request, or a message to be stored.
    fn put(&mut self, seat: ConnectionEnd, tag: u32, body: &[u8], wire: &mut ZmtpWire, out: &mut Vec<u8>);

    /// A message came: answers it if that is the role of this end.
    fn hear(&mut self, frames: &[&[u8]], wire: &mut ZmtpWire, out: &mut Vec<u8>) -> Result<Seen>;
}

/// One end of a connection.
pub(crate) struct ZmtpProtocol<D> {
    seat: ConnectionEnd,
    dialect: D,
    wire: ZmtpWire,
}

impl<D: Dialect> ZmtpProtocol<D> {
    pub(crate) fn new(seat: ConnectionEnd, dialect: D, mechanism: Mechanism) -> Self {
        Self { seat, dialect, wire: ZmtpWire::new(mechanism) }
    }
}

/// How messages become bytes.
pub(crate) enum ZmtpWire {
    Null {
        greeted: bool,
    },
    Curve {
        session: Box<ZmtpSession>,
        /// The bytes that it wrote when it was made.
        greeting: Vec<u8>,
    },
}

impl ZmtpWire {
    fn new(mechanism: Mechanism) -> Self {
        if mechanism == Mechanism::Null {
            return Self::Null { greeted: false };
        }
        // No secrets are told here, so that keys may be guessed.
        let mut entropy = [0; ENTROPY_LEN];
        let mut secret = [0; 32];
        fastrand::fill(&mut entropy);
        fastrand::fill(&mut secret);
        let server = KeyPair::from_secret_text(BROKER_SECRET).expect("forty letters of Z85").public();
        let security = Security::CurveClient { keys: KeyPair::from_secret(secret), server };
        let settings = ZmtpSettings::new(OwnSocketType::Is(SocketType::Dealer), FRAME_MAX);
        let settings = Arc::new(ZmtpSettings { security, ping_ms: 0, ..settings });
        let mut greeting = Vec::new();
        let session = ZmtpSession::begin(Mono::ZERO, settings, Entropy::new(entropy), &mut greeting);
        Self::Curve { session: Box::new(session), greeting }
    }

    /// Appends a message.
    pub(crate) fn say(&mut self, frames: &[&[u8]], out: &mut Vec<u8>) {
        match self {
            Self::Null { .. } => {
                for (at, body) in frames.iter().enumerate() {
                    frame(out, if at + 1 < frames.len() { MORE } else { 0 }, body);
                }
            }
            Self::Curve { session, .. } => drop(session.send(frames.iter().copied(), out)),
        }
    }
}

impl<D: Dialect> ZmtpProtocol<D> {
    fn on_ready(&mut self, out: &mut Vec<u8>, seen: &mut Vec<Seen>) {
        if self.seat.role != Role::Idle {
            self.dialect.begin(self.seat, &mut self.wire, out);
        }
        seen.push(Seen::Ready);
    }

    fn take_plain(&mut self, bytes: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<usize> {
        let mut used = 0;
        if let ZmtpWire::Null { greeted: greeted @ false } = &mut self.wire {
            let Some(greeting) = bytes.get(..GREETING_LEN) else { return Ok(0) };
            if greeting[0] != 0xFF || greeting[10] < 3 {
                bail!("not a greeting of ZMTP 3");
            }
            *greeted = true;
            used = GREETING_LEN;
        }
        loop {
            let mut frames: [&[u8]; FRAMES_MAX] = Default::default();
            let (mut count, mut at) = (0, used);
            loop {
                let Some((flags, body, length)) = parse(&bytes[at..])? else { return Ok(used) };
                at += length;
                if flags & COMMAND != 0 {
                    if body.starts_with(b"\x05READY") {
                        self.on_ready(out, seen);
                    } else if body.starts_with(b"\x05ERROR") {
                        bail!("the broker says {}", body.escape_ascii());
                    }
                    break;
                }
                let Some(place) = frames.get_mut(count) else { bail!("a message of too many frames") };
                *place = body;
                count += 1;
                if flags & MORE == 0 {
                    seen.push(self.dialect.hear(&frames[..count], &mut self.wire, out)?);
                    break;
                }
            }
            used = at;
        }
    }

    /// The session keeps what is not whole.
    fn take_sealed(&mut self, bytes: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<usize> {
        let mut used = 0;
        while let ZmtpWire::Curve { session, .. } = &mut self.wire {
            let step = session.step(Mono::ZERO, &bytes[used..], out);
            let (step, taken) = step.map_err(|fault| anyhow!("ZMTP: {fault}"))?;
            used += taken;
            match step {
                ZmtpStep::NeedMore => break,
                ZmtpStep::Handshaked(_) => self.on_ready(out, seen),
                ZmtpStep::Message(message) => {
                    let mut frames: [&[u8]; FRAMES_MAX] = Default::default();
                    let count = message.part_count();
                    if count > FRAMES_MAX {
                        bail!("a message of too many frames");
                    }
                    frames.iter_mut().zip(message.parts()).for_each(|(place, part)| *place = part);
                    seen.push(self.dialect.hear(&frames[..count], &mut self.wire, out)?);
                }
                ZmtpStep::Done | ZmtpStep::Asks(_) | ZmtpStep::Subscribe(_) | ZmtpStep::Cancel(_) => {}
            }
        }
        Ok(used)
    }
}

impl<D: Dialect> SystemProtocol for ZmtpProtocol<D> {
    fn open(&mut self, out: &mut Vec<u8>, _seen: &mut Vec<Seen>) {
        match &mut self.wire {
            ZmtpWire::Null { .. } => {
                let mut greeting = [0; GREETING_LEN];
                greeting[0] = 0xFF;
                greeting[9] = 0x7F;
                greeting[10] = 3;
                greeting[12..16].copy_from_slice(b"NULL");
                out.extend_from_slice(&greeting);
                frame(out, COMMAND, b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\0");
            }
            ZmtpWire::Curve { greeting, .. } => out.append(greeting),
        }
    }

    fn put(&mut self, tag: u32, body: &[u8], out: &mut Vec<u8>) {
        self.dialect.put(self.seat, tag, body, &mut self.wire, out);
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<usize> {
        match self.wire {
            ZmtpWire::Null { .. } => self.take_plain(bytes, out, seen),
            ZmtpWire::Curve { .. } => self.take_sealed(bytes, out, seen),
        }
    }
}

/// A letter that says what a message is, and a number.
pub(crate) fn head(letter: u8, number: u32) -> [u8; HEAD_LEN] {
    let [n0, n1, n2, n3] = number.to_be_bytes();
    [letter, n0, n1, n2, n3]
}

/// The letter and the number that these bytes begin with.
pub(crate) fn read_head(bytes: &[u8]) -> Result<(u8, u32)> {
    let Some([letter, n0, n1, n2, n3]) = bytes.first_chunk::<HEAD_LEN>() else { bail!("a message without a head") };
    Ok((*letter, u32::from_be_bytes([*n0, *n1, *n2, *n3])))
}

fn frame(out: &mut Vec<u8>, flags: u8, body: &[u8]) {
    match u8::try_from(body.len()) {
        Ok(len) => out.extend_from_slice(&[flags, len]),
        Err(_) => {
            out.push(flags | LONG);
            out.extend_from_slice(&(body.len() as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(body);
}

/// Flags and body of the first whole frame, and the bytes it takes.
fn parse(bytes: &[u8]) -> Result<Option<(u8, &[u8], usize)>> {
    let (flags, size, head) = match bytes {
        [flags, rest @ ..] if flags & LONG != 0 => match rest.first_chunk::<8>() {
            Some(size) => (*flags, u64::from_be_bytes(*size), 9),
            None => return Ok(None),
        },
        [flags, size, ..] => (*flags, u64::from(*size), 2),
        _ => return Ok(None),
    };
    if size > FRAME_MAX as u64 {
        bail!("a frame of {size} bytes");
    }
    let end = head + usize::try_from(size)?;
    Ok(bytes.get(head..end).map(|body| (flags, body, end)))
}

#[cfg(test)]
pub(crate) mod tests {
    use turno_proto::zmtp::Message;

    use super::*;
    use crate::protocol::tests::feed;

    /// The messages and events of an end with NULL whose broker greets and then says these messages, however they are cut.
    pub(crate) fn plain<D: Dialect>(
        make: impl Fn() -> ZmtpProtocol<D>,
        messages: &[&[&[u8]]],
    ) -> (Vec<Vec<Vec<u8>>>, Vec<Seen>) {
        let mut bytes = Vec::new();
        make().open(&mut bytes, &mut Vec::new());
        let mut wire = ZmtpWire::Null { greeted: true };
        messages.iter().for_each(|message| wire.say(message, &mut bytes));
        let (said, seen) = feed(make, &bytes);
        let (mut heard, mut rest) = (vec![Vec::new()], &said[..]);
        while let Some((flags, body, used)) = parse(rest).unwrap() {
            heard.last_mut().unwrap().push(body.to_vec());
            if flags & MORE == 0 {
                heard.push(Vec::new());
            }
            rest = &rest[used..];
        }
        heard.pop();
        (heard, seen)
    }

    /// The other end of CURVE.
    struct Broker {
        session: ZmtpSession,
        out: Vec<u8>,
        heard: Vec<Message<'static>>,
    }

    impl Broker {
        fn new() -> Self {
            let security = Security::CurveServer(KeyPair::from_secret_text(BROKER_SECRET).unwrap());
            let settings =
                ZmtpSettings { security, ping_ms: 0, ..ZmtpSettings::new(OwnSocketType::Counterpart, FRAME_MAX) };
            let mut out = Vec::new();
            let session = ZmtpSession::begin(Mono::ZERO, Arc::new(settings), Entropy::new([5; ENTROPY_LEN]), &mut out);
            Self { session, out, heard: Vec::new() }
        }

        fn take(&mut self, bytes: &[u8]) {
            let mut used = 0;
            loop {
                let (step, taken) = self.session.step(Mono::ZERO, &bytes[used..], &mut self.out).unwrap();
                used += taken;
                match step {
                    ZmtpStep::NeedMore => return,
                    ZmtpStep::Asks(_) => drop(self.session.accept(Mono::ZERO, &mut self.out)),
                    ZmtpStep::Message(message) => self.heard.push(message.into_owned()),
                    _ => {}
                }
            }
        }
    }

    /// The messages and events of an end with CURVE whose broker says these messages, byte by byte.
    pub(crate) fn sealed<D: Dialect>(
        mut talk: ZmtpProtocol<D>,
        messages: &[&[&[u8]]],
    ) -> (Vec<Vec<Vec<u8>>>, Vec<Seen>) {
        let mut broker = Broker::new();
        let (mut out, mut seen) = (Vec::new(), Vec::new());
        talk.open(&mut out, &mut seen);
        let mut messages = messages.iter();
        loop {
            broker.take(&std::mem::take(&mut out));
            if broker.out.is_empty() {
                let Some(message) = messages.next() else { break };
                assert!(broker.session.send(message.iter().copied(), &mut broker.out), "the handshake is done");
            }
            for byte in std::mem::take(&mut broker.out) {
                assert_eq!(talk.take(&[byte], &mut out, &mut seen).unwrap(), 1);
            }
        }
        let parts = |message: &Message<'_>| message.parts().map(<[u8]>::to_vec).collect();
        (broker.heard.iter().map(parts).collect(), seen)
    }

    #[test]
    fn heads_come_back() {
        assert_eq!(read_head(&head(b'Q', 77)).unwrap(), (b'Q', 77));
        assert!(read_head(b"Q123").is_err());
    }

    #[test]
    fn frames_that_make_no_sense_are_errors() {
        assert!(parse(&[LONG, 1, 0, 0, 0, 0, 0, 0, 0]).is_err());
        assert!(parse(&[LONG, 0, 0, 0]).unwrap().is_none());
        let long = [7; 300];
        let mut bytes = Vec::new();
        frame(&mut bytes, MORE, &long);
        assert_eq!(parse(&bytes).unwrap(), Some((MORE | LONG, &long[..], 309)));
    }
}
