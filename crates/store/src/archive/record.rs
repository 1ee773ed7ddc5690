//! Records of a segment, entries of its index, and the fixed header and footer of its file. `docs/reference/storage.md`
//! has every byte.

use crate::record::{u32_at, u64_at};

/// How a segment begins.
const MAGIC: [u8; 8] = *b"TURNOARC";
/// How the end of a sealed one begins.
const END_MAGIC: [u8; 8] = *b"TURNOEND";
/// The newest format that this version knows.
pub(super) const FORMAT: u32 = 1;
/// Bytes before a segment's first record.
pub(super) const HEADER_BYTES: usize = 32;
/// Bytes before a record's name and value.
pub(super) const HEAD_BYTES: usize = 56;
/// Bytes of an entry.
pub(super) const ENTRY_BYTES: usize = 56;
/// Bytes at the end of a sealed segment.
pub(super) const FOOTER_BYTES: usize = 48;
/// Bytes of a record's value. Longer: it is no record.
pub(super) const VALUE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a record's name. Longer: it is no record.
pub(super) const NAME_BYTES_MAX: usize = 1 << 12;

/// Where a record stands in the order of reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) job: u64,
    pub(super) task: u32,
    pub(super) attempt: u32,
    /// 0 for output; for a piece of a file, what tells this writing of it from all others.
    pub(super) item: u64,
    pub(super) at: u64,
    /// The number of its arrival.
    pub(super) seq: u64,
}

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Stdout,
    Stderr,
    /// A piece of a file.
    Piece,
    /// The last piece of one.
    Last,
    /// Only in an index: bytes that are no record and once were one or several.
    Gap,
    /// Only in an index: a record at the end of a file that was never completed.
    Torn,
}

impl Kind {
    const fn number(self) -> u8 {
        match self {
            Self::Stdout => 1,
            Self::Stderr => 2,
            Self::Piece => 3,
            Self::Last => 4,
            Self::Gap => 5,
            Self::Torn => 6,
        }
    }

    const fn of(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Stdout,
            2 => Self::Stderr,
            3 => Self::Piece,
            4 => Self::Last,
            5 => Self::Gap,
            6 => Self::Torn,
            _ => return None,
        })
    }

    /// Whether a record can be this.
    const fn is_of_record(self) -> bool {
        !matches!(self, Self::Gap | Self::Torn)
    }
}

/// Where a record is in its segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordSpot {
    pub(super) offset: u32,
    /// Bytes of its value.
    pub(super) len: u32,
    pub(super) kind: Kind,
}

/// A record's head, whose checksum is not looked at yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) key: Key,
    pub(super) kind: Kind,
    pub(super) name_len: usize,
    pub(super) len: usize,
    /// The checksum of the whole record.
    sum: u32,
    /// The checksum of the head alone; 0 in records of earlier versions.
    head_sum: u32,
}

impl Head {
    /// Bytes of the whole record.
    pub(super) const fn record_bytes(&self) -> usize {
        HEAD_BYTES + self.name_len + self.len
    }

    /// Reads the first bytes of a record. Nothing is allocated by them: the reader checks first that the bytes are there.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let [kind, _, low, high] = *bytes.get(8..)?.first_chunk()?;
        let head = Self {
            key: Key {
                job: u64_at(bytes, 16)?,
                task: u32_at(bytes, 12)?,
                attempt: u32_at(bytes, 24)?,
                item: u64_at(bytes, 32)?,
                at: u64_at(bytes, 40)?,
                seq: u64_at(bytes, 48)?,
            },
            kind: Kind::of(kind).filter(|kind| kind.is_of_record())?,
            name_len: usize::from(u16::from_le_bytes([low, high])),
            len: u32_at(bytes, 0)? as usize,
            sum: u32_at(bytes, 4)?,
            head_sum: u32_at(bytes, 28)?,
        };
        (head.name_len <= NAME_BYTES_MAX && head.len <= VALUE_BYTES_MAX).then_some(head)
    }

    /// Whether these are the bytes of that record, from head to end.
    pub(super) fn is_true_of(&self, salt: u64, record: &[u8]) -> bool {
        record.len() == self.record_bytes() && checksum(salt, record) == Some(self.sum)
    }

    /// Whether these first bytes of the record are what was written, whatever became of its name and value.
    pub(super) fn is_sound(&self, salt: u64, head: &[u8]) -> bool {
        head_checksum(salt, head) == Some(self.head_sum)
    }
}

/// The checksum of a head without its two checksums; never 0.
fn head_checksum(salt: u64, head: &[u8]) -> Option<u32> {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), head.get(..4)?);
    let sum = crc32c::crc32c_append(sum, head.get(8..28)?);
    Some(crc32c::crc32c_append(sum, head.get(32..HEAD_BYTES)?).max(1))
}

/// The salt is known to nobody outside: what a task prints cannot pass for a record.
fn checksum(salt: u64, record: &[u8]) -> Option<u32> {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&salt.to_le_bytes()), record.get(..4)?);
    Some(crc32c::crc32c_append(sum, record.get(8..)?))
}

/// Appends a record.
pub(super) fn append(out: &mut Vec<u8>, salt: u64, key: &Key, kind: Kind, name: &[u8], value: &[u8]) {
    let start = out.len();
    let len = u32::try_from(value.len()).expect("a value is short");
    let name_len = u16::try_from(name.len()).expect("a name is short");
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&[kind.number(), 0]);
    out.extend_from_slice(&name_len.to_le_bytes());
    out.extend_from_slice(&key.task.to_le_bytes());
    out.extend_from_slice(&key.job.to_le_bytes());
    out.extend_from_slice(&key.attempt.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    for number in [key.item, key.at, key.seq] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(name);
    out.extend_from_slice(value);
    for (at, sum) in [(28, head_checksum as fn(u64, &[u8]) -> Option<u32>), (4, checksum)] {
        let sum = out.get(start..).and_then(|record| sum(salt, record)).expect("it was just written");
        if let Some(place) = out.get_mut(start + at..start + at + 4) {
            place.copy_from_slice(&sum.to_le_bytes());
        }
    }
}

/// Appends an entry.
pub(super) fn append_entry(out: &mut Vec<u8>, key: &Key, spot: &RecordSpot) {
    out.extend_from_slice(&key.job.to_le_bytes());
    out.extend_from_slice(&key.task.to_le_bytes());
    out.extend_from_slice(&key.attempt.to_le_bytes());
    for number in [key.item, key.at, key.seq] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    out.extend_from_slice(&spot.offset.to_le_bytes());
    out.extend_from_slice(&spot.len.to_le_bytes());
    out.extend_from_slice(&[spot.kind.number(), 0, 0, 0, 0, 0, 0, 0]);
}

/// The entry that these bytes are.
pub(super) fn read_entry(bytes: &[u8]) -> Option<(Key, RecordSpot)> {
    let key = Key {
        job: u64_at(bytes, 0)?,
        task: u32_at(bytes, 8)?,
        attempt: u32_at(bytes, 12)?,
        item: u64_at(bytes, 16)?,
        at: u64_at(bytes, 24)?,
        seq: u64_at(bytes, 32)?,
    };
    let spot = RecordSpot { offset: u32_at(bytes, 40)?, len: u32_at(bytes, 44)?, kind: Kind::of(*bytes.get(48)?)? };
    Some((key, spot))
}

/// The first bytes of a segment.
pub(super) fn header(salt: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES);
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&salt.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    let sum = crc32c::crc32c(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    out
}

/// The content of a segment's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArchiveHeader {
    /// It is intact; its salt.
    Sound(u64),
    /// They are damaged, and this is the salt if records are found with it.
    Repaired(u64),
    /// It has a format that this version does not know.
    Newer(u32),
    /// They are no header.
    Unreadable,
}

impl ArchiveHeader {
    /// Reads the first bytes of a segment. `salt` is what its footer says, if it has one: that helps if the header's own is
    /// damaged.
    pub(super) fn read(bytes: &[u8], salt: Option<u64>) -> Self {
        Self::try_read(bytes, salt).unwrap_or(Self::Unreadable)
    }

    fn try_read(bytes: &[u8], salt: Option<u64>) -> Option<Self> {
        let own = u64_at(bytes, 16)?;
        let (front, sum) = (bytes.get(..28)?, bytes.get(28..HEADER_BYTES)?);
        if bytes.starts_with(&MAGIC) && u32_at(sum, 0)? == crc32c::crc32c(front) {
            let format = u32_at(bytes, 8)?;
            return match format {
                FORMAT => Some(Self::Sound(own)),
                // Formats begin at 1: a 0 under a true checksum was never written.
                0 => None,
                newer => Some(Self::Newer(newer)),
            };
        }
        // With the right salt the checksum is as it was written. If that is damaged itself, the rest is.
        let salts = || [Some(own), salt].into_iter().flatten();
        let by_sum = salts().find(|salt| header(*salt).get(28..) == Some(sum));
        by_sum.or_else(|| salts().find(|salt| header(*salt).get(..28) == Some(front))).map(Self::Repaired)
    }
}

/// The last bytes of a sealed segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    /// Where its last record ends.
    pub(super) end: u64,
    /// Where its index begins.
    pub(super) index: u64,
    /// Entries of it.
    pub(super) count: u32,
    /// Its checksum.
    pub(super) sum: u32,
}

impl Footer {
    pub(super) fn encode(&self, salt: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_BYTES);
        out.extend_from_slice(&END_MAGIC);
        out.extend_from_slice(&salt.to_le_bytes());
        out.extend_from_slice(&self.end.to_le_bytes());
        out.extend_from_slice(&self.index.to_le_bytes());
        out.extend_from_slice(&self.count.to_le_bytes());
        out.extend_from_slice(&self.sum.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        let sum = crc32c::crc32c(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    /// The footer that these bytes are, in a file of that length, and its salt.
    pub(super) fn read(bytes: &[u8], file_len: u64) -> Option<(Self, u64)> {
        let is_sound = bytes.len() == FOOTER_BYTES
            && bytes.starts_with(&END_MAGIC)
            && u32_at(bytes, 44)? == crc32c::crc32c(bytes.get(..44)?);
        let footer = Self {
            end: u64_at(bytes, 16)?,
            index: u64_at(bytes, 24)?,
            count: u32_at(bytes, 32)?,
            sum: u32_at(bytes, 36)?,
        };
        let index_bytes = u64::from(footer.count) * ENTRY_BYTES as u64;
        let fits = footer.end <= footer.index
            && footer.index.checked_add(index_bytes)?.checked_add(FOOTER_BYTES as u64)? == file_len;
        Some((footer, u64_at(bytes, 8)?)).filter(|_| is_sound && fits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key { job: 7, task: 3, attempt: 2, item: 99, at: 1_000, seq: 12 };

    #[test]
    fn a_record_comes_back_and_no_flipped_bit_passes() {
        let mut bytes = Vec::new();
        append(&mut bytes, 42, &KEY, Kind::Last, b"a.txt", b"hello");
        let head = Head::read(&bytes).unwrap();
        assert_eq!((head.key, head.kind, head.name_len, head.len), (KEY, Kind::Last, 5, 5));
        assert!(head.is_true_of(42, &bytes) && !head.is_true_of(43, &bytes));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!Head::read(&bytes).is_some_and(|head| head.is_true_of(42, &bytes)), "bit {bit}");
        }
    }

    #[test]
    fn entries_header_and_footer_come_back() {
        let spot = RecordSpot { offset: 5, len: 6, kind: Kind::Stderr };
        let mut bytes = Vec::new();
        append_entry(&mut bytes, &KEY, &spot);
        assert_eq!((bytes.len(), read_entry(&bytes)), (ENTRY_BYTES, Some((KEY, spot))));
        assert_eq!((header(9).len(), ArchiveHeader::read(&header(9), None)), (HEADER_BYTES, ArchiveHeader::Sound(9)));
        let footer = Footer { end: 100, index: 120, count: 2, sum: 1 };
        let len = 120 + 2 * ENTRY_BYTES as u64 + FOOTER_BYTES as u64;
        let bytes = footer.encode(9);
        assert_eq!(Footer::read(&bytes, len), Some((footer, 9)));
        assert_eq!(Footer::read(&bytes, len + 1), None);
        let wild = Footer { index: u64::MAX, ..footer }.encode(9);
        assert_eq!(Footer::read(&wild, len), None);
    }

    /// A head tells whose a record is though its value is damaged, and no flipped bit of it passes.
    #[test]
    fn a_head_is_known_by_itself() {
        let mut bytes = Vec::new();
        append(&mut bytes, 42, &KEY, Kind::Last, b"a.txt", b"hello");
        let head = Head::read(&bytes).unwrap();
        assert!(head.is_sound(42, &bytes) && head.is_sound(42, &bytes[..HEAD_BYTES]) && !head.is_sound(43, &bytes));
        for bit in (0..4 * 8).chain(8 * 8..HEAD_BYTES * 8) {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(!Head::read(&bytes).is_some_and(|head| head.is_sound(42, &bytes)), "bit {bit}");
        }
    }

    /// One flipped bit of a header costs nothing where the footer knows the salt.
    #[test]
    fn a_header_with_a_flipped_bit_is_repaired() {
        for bit in 0..HEADER_BYTES * 8 {
            let mut bytes = header(9);
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(ArchiveHeader::read(&bytes, Some(9)), ArchiveHeader::Repaired(9), "bit {bit}");
            let own = u64_at(&bytes, 16).unwrap();
            assert_eq!(ArchiveHeader::read(&bytes, None), ArchiveHeader::Repaired(own), "bit {bit}");
        }
        let mut newer = header(9);
        newer[8] = 2;
        let sum = crc32c::crc32c(&newer[..28]).to_le_bytes();
        newer[28..].copy_from_slice(&sum);
        assert_eq!(ArchiveHeader::read(&newer, None), ArchiveHeader::Newer(2));
        assert_eq!(ArchiveHeader::read(&newer[..31], None), ArchiveHeader::Unreadable);
    }
}
