//! Records of the log: their bytes, and a reader that accepts any bytes.
//!
//! A batch in memory is a row of these already, without checksums; so a batch goes to the disk from where it was
//! encoded. `docs/reference/storage.md` has the layout.

use crate::batch::Op;
use crate::store::{RecordNo, Space};

/// Bytes before a record's number or key.
pub(crate) const HEAD_BYTES: usize = 16;
/// Records begin at multiples of this.
pub(crate) const ALIGN: usize = 8;
/// Bytes of a record number.
const NUMBER_BYTES: usize = 8;

pub(crate) const PUT: u8 = 1;
pub(crate) const DELETE: u8 = 2;
pub(crate) const SET: u8 = 3;
pub(crate) const UNSET: u8 = 4;
pub(crate) const COMMIT: u8 = 5;

/// The bytes a record of `len` bytes takes, padding included.
pub(crate) const fn padded(len: usize) -> usize {
    len.next_multiple_of(ALIGN)
}

/// A number at a fixed offset.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A number at a fixed offset.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// A record taken apart, not yet understood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raw<'a> {
    /// All of it, without padding.
    pub(crate) bytes: &'a [u8],
    pub(crate) kind: u8,
    space: Space,
    key_len: usize,
    /// The bytes after the head.
    pub(crate) rest: &'a [u8],
}

impl<'a> Raw<'a> {
    /// The length that the first bytes claim. Nothing is allocated for it: the bytes must be there.
    pub(crate) fn claimed_len(bytes: &[u8]) -> Option<usize> {
        let len = u32_at(bytes, 0)? as usize;
        (len >= HEAD_BYTES).then_some(len)
    }

    /// The record at the start of `bytes`, its checksum not looked at.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let len = Self::claimed_len(bytes)?;
        let bytes = bytes.get(..len)?;
        let [kind, space, low, high] = *bytes.get(8..)?.first_chunk()?;
        if u32_at(bytes, 12)? != 0 {
            return None;
        }
        let key_len = usize::from(u16::from_le_bytes([low, high]));
        Some(Self { bytes, kind, space: Space(space), key_len, rest: bytes.get(HEAD_BYTES..)? })
    }

    /// The record at the start of `bytes`, if its checksum is right.
    pub(crate) fn checked(bytes: &'a [u8]) -> Option<Self> {
        let raw = Self::parse(bytes)?;
        (u32_at(raw.bytes, 4)? == checksum(raw.bytes)?).then_some(raw)
    }

    /// The operation it stands for.
    pub(crate) fn op(&self) -> Option<Op<'a>> {
        let space = self.space;
        let op = match self.kind {
            PUT => {
                let record = RecordNo(u64_at(self.rest, 0)?);
                Op::Put { space, record, value: self.rest.get(NUMBER_BYTES..)? }
            }
            DELETE if self.rest.len() == NUMBER_BYTES => Op::Delete { record: RecordNo(u64_at(self.rest, 0)?) },
            SET => {
                let (key, value) = self.rest.split_at_checked(self.key_len)?;
                Op::Set { space, key, value }
            }
            UNSET if self.rest.len() == self.key_len => Op::Unset { space, key: self.rest },
            _ => return None,
        };
        Some(op)
    }
}

/// A record's checksum: over everything but the checksum itself.
pub(crate) fn checksum(record: &[u8]) -> Option<u32> {
    Some(crc32c::crc32c_append(crc32c::crc32c(record.get(..4)?), record.get(8..)?))
}

/// Appends a record of this kind; `write` appends what follows its head.
pub(crate) fn append(out: &mut Vec<u8>, kind: u8, space: Space, key_len: u16, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    let [low, high] = key_len.to_le_bytes();
    out.extend_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, kind, space.0, low, high, 0, 0, 0, 0]);
    write(out);
    let len = out.len().saturating_sub(start);
    // A record beyond 4 GiB is refused by its length anyway: no batch may be that long.
    let claimed = u32::try_from(len).unwrap_or(u32::MAX);
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&claimed.to_le_bytes());
    }
    out.resize(start + padded(len), 0);
}

/// Writes the checksum of every record of a batch, and gives their number and the checksum over all of them.
pub(crate) fn seal(batch: &mut [u8]) -> (u32, u32) {
    let (mut at, mut count, mut over_all) = (0, 0, 0);
    while let Some(rest) = batch.get_mut(at..).filter(|rest| !rest.is_empty()) {
        let len = Raw::claimed_len(rest).filter(|len| *len <= rest.len()).expect("a batch is a row of whole records");
        let sum = rest.get(..len).and_then(checksum).expect("a record has a head").to_le_bytes();
        if let Some(place) = rest.get_mut(4..8) {
            place.copy_from_slice(&sum);
        }
        over_all = crc32c::crc32c_append(over_all, &sum);
        count += 1;
        at += padded(len);
    }
    (count, over_all)
}
