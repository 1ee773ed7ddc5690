//! Frames: a byte of flags, the size of the body in one byte or eight, and the body.

use super::ZmtpFault;

pub(super) const MORE: u8 = 0b001;
const LONG: u8 = 0b010;
pub(super) const COMMAND: u8 = 0b100;

/// Flags, and a size of eight bytes.
const HEAD_LEN_MAX: usize = 9;

/// The head of a frame, before its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) command: bool,
    pub(super) more: bool,
    /// The size that the peer claims: nothing may be allocated for it alone.
    pub(super) size: u64,
}

/// A head as far as it has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PartialHead {
    bytes: [u8; HEAD_LEN_MAX],
    have: usize,
}

impl PartialHead {
    pub(super) const fn is_empty(&self) -> bool {
        self.have == 0
    }

    /// Takes bytes. Returns how many, and the head once it is whole; then the next one begins.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(usize, Option<Head>), ZmtpFault> {
        if self.have == 0
            && let Some((head, used)) = read(bytes)?
        {
            return Ok((used, Some(head)));
        }
        for (used, byte) in bytes.iter().enumerate() {
            let Some(place) = self.bytes.get_mut(self.have) else { break };
            *place = *byte;
            self.have += 1;
            if let Some((head, _)) = read(self.bytes.get(..self.have).unwrap_or_default())? {
                *self = Self::default();
                return Ok((used + 1, Some(head)));
            }
        }
        Ok((bytes.len(), None))
    }
}

/// The head that these bytes begin with, and its length.
pub(super) fn read(bytes: &[u8]) -> Result<Option<(Head, usize)>, ZmtpFault> {
    let Some((flags, rest)) = bytes.split_first() else { return Ok(None) };
    let (command, more, long) = (flags & COMMAND != 0, flags & MORE != 0, flags & LONG != 0);
    if flags & !(MORE | LONG | COMMAND) != 0 || (command && more) {
        return Err(ZmtpFault::BadFlags(*flags));
    }
    let size = if long {
        rest.first_chunk().map(|size| (u64::from_be_bytes(*size), HEAD_LEN_MAX))
    } else {
        rest.first().map(|size| (u64::from(*size), 2))
    };
    Ok(size.map(|(size, len)| (Head { command, more, size }, len)))
}

/// The frame that these bytes begin with: its head, its body, and the bytes behind it; `None` unless it is whole and valid.
pub(super) fn split(bytes: &[u8]) -> Option<(Head, &[u8], &[u8])> {
    let (head, len) = read(bytes).ok()??;
    let (body, rest) = bytes.get(len..)?.split_at_checked(usize::try_from(head.size).ok()?)?;
    Some((head, body, rest))
}

/// Appends the head of a frame with a body of so many bytes.
pub(super) fn encode(flags: u8, size: usize, out: &mut Vec<u8>) {
    if let Ok(size) = u8::try_from(size) {
        out.extend_from_slice(&[flags, size]);
    } else {
        let [s0, s1, s2, s3, s4, s5, s6, s7] = (size as u64).to_be_bytes();
        out.extend_from_slice(&[flags | LONG, s0, s1, s2, s3, s4, s5, s6, s7]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_takes_one_byte_if_it_fits() {
        for (size, len) in [(0, 2), (255, 2), (256, 9), (8 << 20, 9)] {
            let mut out = Vec::new();
            encode(MORE, size, &mut out);
            assert_eq!(out.len(), len);
            let head = Head { command: false, more: true, size: size as u64 };
            assert_eq!(read(&out), Ok(Some((head, len))));
            for cut in 1..len {
                let mut begun = PartialHead::default();
                let (first, second) = out.split_at(cut);
                assert_eq!(begun.take(first), Ok((cut, None)));
                assert!(!begun.is_empty());
                assert_eq!(begun.take(second), Ok((len - cut, Some(head))));
                assert!(begun.is_empty());
            }
        }
    }

    #[test]
    fn a_long_frame_may_be_short() {
        let head = Head { command: true, more: false, size: 5 };
        assert_eq!(read(&[6, 0, 0, 0, 0, 0, 0, 0, 5]), Ok(Some((head, 9))));
    }

    #[test]
    fn flags_that_must_not_be_are_refused_at_once() {
        for flags in 0..=u8::MAX {
            let good = flags <= 4 || flags == 6;
            assert_eq!(read(&[flags]), if good { Ok(None) } else { Err(ZmtpFault::BadFlags(flags)) }, "{flags:#04x}");
        }
    }
}
