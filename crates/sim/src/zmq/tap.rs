//! ZMTP among bytes, read by hand: the oracle does not rely on the session that it judges.

use bytes::Bytes;

/// Bytes of a greeting.
const GREETING: usize = 64;
/// Bits of a frame's first byte.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;

/// A message of one end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReceivedMessage {
    Message(Vec<Bytes>),
    Command { name: Bytes, data: Bytes },
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub(crate) struct Tap {
    /// The beginning of a frame that is not whole.
    partial: Vec<u8>,
    /// The parts of a message that is not whole.
    parts: Vec<Bytes>,
    greeted: bool,
    /// Bytes up to the end of the last frame that was whole.
    pub(crate) end: u64,
}

impl Tap {
    /// More bytes: each message and command that is whole now, and how many bytes there were up to its end.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<(u64, ReceivedMessage)> {
        self.partial.extend_from_slice(bytes);
        let (mut used, mut heard) = (0, Vec::new());
        if !self.greeted {
            if self.partial.len() < GREETING {
                return heard;
            }
            (self.greeted, used) = (true, GREETING);
        }
        while let Some((flags, start, end)) = frame(&self.partial[used..]) {
            let body = Bytes::copy_from_slice(&self.partial[used + start..used + end]);
            used += end;
            let at = self.end + used as u64;
            if flags & COMMAND != 0 {
                let name = usize::from(body[0]);
                heard.push((at, ReceivedMessage::Command { name: body.slice(1..=name), data: body.slice(name + 1..) }));
                continue;
            }
            self.parts.push(body);
            if flags & MORE == 0 {
                heard.push((at, ReceivedMessage::Message(std::mem::take(&mut self.parts))));
            }
        }
        self.partial.drain(..used);
        self.end += used as u64;
        heard
    }
}

/// The flags of the first frame, and where its body is, if it is whole.
fn frame(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let flags = *bytes.first()?;
    let (start, size) = if flags & LONG == 0 {
        (2, usize::from(*bytes.get(1)?))
    } else {
        let size = bytes.get(1..)?.first_chunk().map(|size| u64::from_be_bytes(*size))?;
        (9, usize::try_from(size).expect("frames of the simulation are short"))
    };
    let end = start + size;
    (bytes.len() >= end).then_some((flags, start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_wherever_they_are_cut() {
        let mut bytes = vec![0; GREETING];
        bytes.extend(b"\x04\x07\x05READY!\x01\x01a\x00\x00\x02\0\0\0\0\0\0\0\x03abc");
        let command = ReceivedMessage::Command { name: "READY".into(), data: "!".into() };
        let expected = [
            (73, command),
            (78, ReceivedMessage::Message(vec!["a".into(), Bytes::new()])),
            (90, ReceivedMessage::Message(vec!["abc".into()])),
        ];
        for size in [1, 2, 7, 63, 65, bytes.len()] {
            let mut tap = Tap::default();
            let heard: Vec<(u64, ReceivedMessage)> = bytes.chunks(size).flat_map(|chunk| tap.take(chunk)).collect();
            assert_eq!(heard, expected, "{size}");
        }
    }
}
