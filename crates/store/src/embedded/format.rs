//! The layouts of a segment's header and of a batch's commit marker. `docs/reference/storage.md` has every byte.

use crate::record::{self, Raw, u32_at, u64_at};
use crate::store::{CommitNo, Epoch, RecordNo, Space};

/// The format this program writes, and the newest it reads.
pub const FORMAT: u32 = 1;
/// How a segment begins.
pub(super) const MAGIC: [u8; 8] = *b"TURNOLOG";
/// Bytes of a header: one sector, so that it is there or not.
pub(super) const HEADER_BYTES: usize = 512;
/// Bytes of a commit marker.
pub(super) const MARKER_BYTES: usize = 96;

/// The point of the log that headers and markers name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    /// The segment's number in the log: 1, 2, 3 … A file that is used again gets a new one.
    pub(super) generation: u64,
    /// A number that nobody outside can guess, so that no message body can pass for a marker.
    pub(super) salt: u64,
    /// In a marker the batch's number, in a header that of the first batch to come.
    pub(super) batch: u64,
    pub(super) commit: CommitNo,
    pub(super) epoch: Epoch,
    pub(super) last_record: RecordNo,
    /// The oldest segment that still counts.
    pub(super) tail: u64,
}

impl Point {
    fn write(&self, out: &mut Vec<u8>) {
        let numbers =
            [self.generation, self.salt, self.batch, self.commit.0, self.epoch.0, self.last_record.0, self.tail];
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        Some(Self {
            generation: u64_at(bytes, 0)?,
            salt: u64_at(bytes, 8)?,
            batch: u64_at(bytes, 16)?,
            commit: CommitNo(u64_at(bytes, 24)?),
            epoch: Epoch(u64_at(bytes, 32)?),
            last_record: RecordNo(u64_at(bytes, 40)?),
            tail: u64_at(bytes, 48)?,
        })
    }
}

/// The first bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub(super) point: Point,
    pub(super) segment_bytes: u32,
}

/// The content of a file's first sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    /// Never written to.
    Blank,
    Header(SegmentHeader),
    Newer(u32),
    Damaged,
}

impl SegmentHeader {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        self.point.write(&mut out);
        out.extend_from_slice(&self.segment_bytes.to_le_bytes());
        out.resize(HEADER_BYTES, 0);
        let sum = header_sum(&out).expect("a header has its length");
        if let Some(place) = out.get_mut(12..16) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
        out
    }

    pub(super) fn decode(sector: &[u8]) -> First {
        if sector.iter().all(|byte| *byte == 0) {
            return First::Blank;
        }
        Self::decode_written(sector).unwrap_or(First::Damaged)
    }

    fn decode_written(sector: &[u8]) -> Option<First> {
        if sector.len() != HEADER_BYTES || !sector.starts_with(&MAGIC) || u32_at(sector, 12)? != header_sum(sector)? {
            return None;
        }
        let format = u32_at(sector, 8)?;
        if format > FORMAT {
            return Some(First::Newer(format));
        }
        let header = Self { point: Point::read(sector.get(16..)?)?, segment_bytes: u32_at(sector, 72)? };
        let point = &header.point;
        let is_sound = point.generation > 0 && point.tail > 0 && point.tail <= point.generation && format == FORMAT;
        (is_sound && crate::limits::SEGMENT_BYTES_MAX >= header.segment_bytes).then_some(First::Header(header))
    }
}

/// A header's checksum: over its sector but for the checksum itself.
fn header_sum(sector: &[u8]) -> Option<u32> {
    Some(crc32c::crc32c_append(crc32c::crc32c(sector.get(..12)?), sector.get(16..)?))
}

/// The last record of a batch: with it the batch counts, without it there was none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Marker {
    pub(super) point: Point,
    /// Bytes of the batch before the marker.
    pub(super) bytes: u32,
    /// Records before the marker.
    pub(super) count: u32,
    /// The checksum over the checksums of those records.
    pub(super) over_all: u32,
    /// Whether the log goes on in the next segment.
    pub(super) is_seal: bool,
    /// Bytes the file had before this batch was written, durably; 0 if it is not said.
    pub(super) file_bytes: u64,
}

impl Marker {
    pub(super) fn append(&self, out: &mut Vec<u8>) {
        let start = out.len();
        record::append(out, record::COMMIT, Space(0), 0, |out| {
            self.point.write(out);
            for number in [self.bytes, self.count, self.over_all, u32::from(self.is_seal)] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            out.extend_from_slice(&self.file_bytes.to_le_bytes());
        });
        record::seal(out.get_mut(start..).unwrap_or_default());
    }

    pub(super) fn read(raw: &Raw<'_>) -> Option<Self> {
        if raw.kind != record::COMMIT || raw.bytes.len() != MARKER_BYTES {
            return None;
        }
        let flags = u32_at(raw.rest, 68)?;
        (flags <= 1).then_some(())?;
        Some(Self {
            point: Point::read(raw.rest)?,
            bytes: u32_at(raw.rest, 56)?,
            count: u32_at(raw.rest, 60)?,
            over_all: u32_at(raw.rest, 64)?,
            is_seal: flags == 1,
            file_bytes: u64_at(raw.rest, 72)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point() -> Point {
        Point {
            generation: 7,
            salt: 0x0123_4567_89AB_CDEF,
            batch: 90,
            commit: CommitNo(80),
            epoch: Epoch(3),
            last_record: RecordNo(1_000),
            tail: 5,
        }
    }

    #[test]
    fn a_header_comes_back() {
        let header = SegmentHeader { point: point(), segment_bytes: 4096 };
        let bytes = header.encode();
        assert_eq!(bytes.len(), HEADER_BYTES);
        assert!(bytes[76..].iter().all(|byte| *byte == 0));
        assert_eq!(SegmentHeader::decode(&bytes), First::Header(header));
    }

    #[test]
    fn no_flipped_bit_of_a_header_passes() {
        let bytes = SegmentHeader { point: point(), segment_bytes: 4096 }.encode();
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(SegmentHeader::decode(&bytes), First::Damaged, "bit {bit}");
        }
    }

    #[test]
    fn a_newer_format_is_named() {
        let mut bytes = SegmentHeader { point: point(), segment_bytes: 4096 }.encode();
        bytes[8..12].copy_from_slice(&2_u32.to_le_bytes());
        let sum = header_sum(&bytes).unwrap();
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), First::Newer(2));
    }

    #[test]
    fn a_marker_comes_back() {
        let marker = Marker { point: point(), bytes: 24, count: 1, over_all: 9, is_seal: true, file_bytes: 4096 };
        let mut out = Vec::new();
        marker.append(&mut out);
        assert_eq!(out.len(), MARKER_BYTES);
        assert_eq!(Marker::read(&Raw::checked(&out).unwrap()), Some(marker));
    }
}
