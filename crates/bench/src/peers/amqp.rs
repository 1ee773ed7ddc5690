//! The few words of AMQP 0-9-1 that the load needs: frames, and the methods of one channel.

use anyhow::{Context, Result, bail};

/// The first bytes of a connection.
pub(super) const PROTOCOL: &[u8] = b"AMQP\0\0\x09\x01";

pub(super) const METHOD: u8 = 1;
pub(super) const HEADER: u8 = 2;
pub(super) const BODY: u8 = 3;
const FRAME_END: u8 = 0xCE;
const FRAME_MAX: u32 = 128 * 1024;

/// Class and number of a method.
type Method = (u16, u16);
pub(super) const START: Method = (10, 10);
pub(super) const TUNE: Method = (10, 30);
pub(super) const OPEN_OK: Method = (10, 41);
pub(super) const CLOSE: Method = (10, 50);
pub(super) const CHANNEL_OPEN_OK: Method = (20, 11);
pub(super) const CHANNEL_CLOSE: Method = (20, 40);
pub(super) const QUEUE_DECLARE_OK: Method = (50, 11);
pub(super) const QOS_OK: Method = (60, 11);
pub(super) const CONSUME_OK: Method = (60, 21);
pub(super) const DELIVER: Method = (60, 60);
pub(super) const ACK: Method = (60, 80);
pub(super) const NACK: Method = (60, 120);
pub(super) const CONFIRM_SELECT_OK: Method = (85, 11);

const START_OK: Method = (10, 11);
const TUNE_OK: Method = (10, 31);
const OPEN: Method = (10, 40);
const CHANNEL_OPEN: Method = (20, 10);
const QUEUE_DECLARE: Method = (50, 10);
const QOS: Method = (60, 10);
const CONSUME: Method = (60, 20);
const PUBLISH: Method = (60, 40);
const CONFIRM_SELECT: Method = (85, 10);

/// Bits of the properties a message may carry.
const DELIVERY_MODE: u16 = 1 << 12;
const CORRELATION_ID: u16 = 1 << 10;
const REPLY_TO: u16 = 1 << 9;
/// The delivery mode of a message that outlives the server.
const PERSISTENT: u8 = 2;

/// The properties of a message; empty ones are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Properties<'a> {
    pub(super) correlation_id: &'a [u8],
    pub(super) reply_to: &'a [u8],
    pub(super) persistent: bool,
}

pub(super) fn start_ok(out: &mut Vec<u8>) {
    method(out, START_OK, |out| {
        out.extend_from_slice(&0u32.to_be_bytes());
        text(out, b"PLAIN");
        long_text(out, b"\0guest\0guest");
        text(out, b"en_US");
    });
}

/// One channel, frames as large as the server offers by itself, no heartbeats.
pub(super) fn tune_ok(out: &mut Vec<u8>) {
    method(out, TUNE_OK, |out| {
        out.extend_from_slice(&1u16.to_be_bytes());
        out.extend_from_slice(&FRAME_MAX.to_be_bytes());
        out.extend_from_slice(&0u16.to_be_bytes());
    });
}

pub(super) fn open(out: &mut Vec<u8>) {
    method(out, OPEN, |out| {
        text(out, b"/");
        out.extend_from_slice(&[0, 0]);
    });
}

pub(super) fn channel_open(out: &mut Vec<u8>) {
    method(out, CHANNEL_OPEN, |out| text(out, b""));
}

/// Not exclusive, and it stays when nobody looks; through a restart of the server if it is durable.
pub(super) fn queue_declare(out: &mut Vec<u8>, name: &str, durable: bool) {
    method(out, QUEUE_DECLARE, |out| {
        out.extend_from_slice(&0u16.to_be_bytes());
        text(out, name.as_bytes());
        out.push(if durable { 0b10 } else { 0 });
        out.extend_from_slice(&0u32.to_be_bytes());
    });
}

pub(super) fn qos(out: &mut Vec<u8>, messages: u16) {
    method(out, QOS, |out| {
        out.extend_from_slice(&0u32.to_be_bytes());
        out.extend_from_slice(&messages.to_be_bytes());
        out.push(0);
    });
}

pub(super) fn consume(out: &mut Vec<u8>, queue: &str, without_acks: bool) {
    method(out, CONSUME, |out| {
        out.extend_from_slice(&0u16.to_be_bytes());
        text(out, queue.as_bytes());
        text(out, b"");
        out.push(if without_acks { 0b10 } else { 0 });
        out.extend_from_slice(&0u32.to_be_bytes());
    });
}

pub(super) fn confirm_select(out: &mut Vec<u8>) {
    method(out, CONFIRM_SELECT, |out| out.push(0));
}

pub(super) fn ack_up_to(out: &mut Vec<u8>, number: u64) {
    method(out, ACK, |out| {
        out.extend_from_slice(&number.to_be_bytes());
        out.push(1);
    });
}

/// A message to the default exchange.
pub(super) fn publish(out: &mut Vec<u8>, queue: &str, properties: Properties<'_>, body: &[u8]) {
    method(out, PUBLISH, |out| {
        out.extend_from_slice(&0u16.to_be_bytes());
        text(out, b"");
        text(out, queue.as_bytes());
        out.push(0);
    });
    frame(out, HEADER, |out| {
        out.extend_from_slice(&[0, 60, 0, 0]);
        out.extend_from_slice(&(body.len() as u64).to_be_bytes());
        let Properties { correlation_id, reply_to, persistent } = properties;
        let bit = |is_there: bool, bit: u16| if is_there { bit } else { 0 };
        let bits = bit(persistent, DELIVERY_MODE)
            | bit(!correlation_id.is_empty(), CORRELATION_ID)
            | bit(!reply_to.is_empty(), REPLY_TO);
        out.extend_from_slice(&bits.to_be_bytes());
        if persistent {
            out.push(PERSISTENT);
        }
        for value in [correlation_id, reply_to] {
            if !value.is_empty() {
                text(out, value);
            }
        }
    });
    frame(out, BODY, |out| out.extend_from_slice(body));
}

fn method(out: &mut Vec<u8>, (class, number): Method, fields: impl FnOnce(&mut Vec<u8>)) {
    // All but the methods about the connection itself belong to the one channel.
    let channel = u8::from(class != START.0);
    framed(out, METHOD, channel, |out| {
        out.extend_from_slice(&class.to_be_bytes());
        out.extend_from_slice(&number.to_be_bytes());
        fields(out);
    });
}

/// Writes a frame of the channel.
pub(super) fn frame(out: &mut Vec<u8>, kind: u8, payload: impl FnOnce(&mut Vec<u8>)) {
    framed(out, kind, 1, payload);
}

fn framed(out: &mut Vec<u8>, kind: u8, channel: u8, payload: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(&[kind, 0, channel]);
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    payload(out);
    let size = u32::try_from(out.len() - at - 4).unwrap_or(u32::MAX);
    out[at..at + 4].copy_from_slice(&size.to_be_bytes());
    out.push(FRAME_END);
}

fn text(out: &mut Vec<u8>, value: &[u8]) {
    let len = u8::try_from(value.len()).unwrap_or(u8::MAX);
    out.push(len);
    out.extend_from_slice(&value[..usize::from(len)]);
}

fn long_text(out: &mut Vec<u8>, value: &[u8]) {
    out.extend_from_slice(&u32::try_from(value.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend_from_slice(value);
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    pub(super) kind: u8,
    pub(super) payload: &'a [u8],
    pub(super) used: usize,
}

/// The first whole frame.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Frame<'_>>> {
    let Some(([kind, _, _, s0, s1, s2, s3], rest)) = bytes.split_first_chunk::<7>() else { return Ok(None) };
    let size = u32::from_be_bytes([*s0, *s1, *s2, *s3]);
    if size > FRAME_MAX {
        bail!("a frame of {size} bytes");
    }
    let size = size as usize;
    match rest.get(..size + 1) {
        None => Ok(None),
        Some([payload @ .., FRAME_END]) => Ok(Some(Frame { kind: *kind, payload, used: size + 8 })),
        Some(_) => bail!("a frame without its end"),
    }
}

/// The fields of a method, one after the other.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn octet(&mut self) -> Result<u8> {
        self.array::<1>().map(|[octet]| octet)
    }

    pub(super) fn short(&mut self) -> Result<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn long_long(&mut self) -> Result<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn text(&mut self) -> Result<&'a [u8]> {
        let len = usize::from(self.octet()?);
        let (text, rest) = self.0.split_at_checked(len).context("a text that is too short")?;
        self.0 = rest;
        Ok(text)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk().context("a method that is too short")?;
        self.0 = rest;
        Ok(*array)
    }
}

/// The header between a method that carries a message and its body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ContentHeader<'a> {
    pub(super) size: u64,
    pub(super) properties: Properties<'a>,
}

impl<'a> ContentHeader<'a> {
    pub(super) fn parse(payload: &'a [u8]) -> Result<Self> {
        let mut fields = Fields(payload);
        fields.array::<4>()?;
        let size = fields.long_long()?;
        let bits = fields.short()?;
        if bits & !(DELIVERY_MODE | CORRELATION_ID | REPLY_TO) != 0 {
            bail!("properties that were never sent: {bits:#x}");
        }
        let persistent = bits & DELIVERY_MODE != 0 && fields.octet()? == PERSISTENT;
        let mut property = |bit| if bits & bit != 0 { fields.text() } else { Ok(&b""[..]) };
        let (correlation_id, reply_to) = (property(CORRELATION_ID)?, property(REPLY_TO)?);
        Ok(Self { size, properties: Properties { correlation_id, reply_to, persistent } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_three_frames() {
        let mut bytes = Vec::new();
        let properties = Properties { correlation_id: b"41", persistent: true, ..Properties::default() };
        publish(&mut bytes, "bench", properties, b"body");
        let first = parse(&bytes).unwrap().unwrap();
        assert_eq!((first.kind, &first.payload[..4]), (METHOD, &[0, 60, 0, 40][..]));
        let header = parse(&bytes[first.used..]).unwrap().unwrap();
        let content = ContentHeader::parse(header.payload).unwrap();
        assert_eq!(content, ContentHeader { size: 4, properties });
        let body = parse(&bytes[first.used + header.used..]).unwrap().unwrap();
        assert_eq!((body.kind, body.payload), (BODY, &b"body"[..]));
        assert_eq!(first.used + header.used + body.used, bytes.len());
        for cut in 0..first.used {
            assert_eq!(parse(&bytes[..cut]).unwrap(), None);
        }
    }

    #[test]
    fn broken_frames_are_errors() {
        assert!(parse(&[1, 0, 1, 0, 0, 0, 1, 9, 9]).is_err());
        assert!(parse(&[1, 0, 1, 0xFF, 0, 0, 1]).is_err());
        assert!(Fields(&[3, b'a']).text().is_err());
        assert!(ContentHeader::parse(&[0; 5]).is_err());
    }
}
