//! The operations of one commit, encoded once, straight into the bytes that go to the disk.

use crate::limits::KEY_BYTES_MAX;
use crate::record::{self, Raw, padded};
use crate::store::{RecordNo, Space};

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op<'a> {
    /// Puts a numbered record, in place of one of the same number if there is one.
    Put {
        /// The space of the record.
        space: Space,
        /// The number of the record.
        record: RecordNo,
        /// The bytes of the record.
        value: &'a [u8],
    },
    /// Deletes a numbered record, if it is there.
    Delete {
        /// The number of the record.
        record: RecordNo,
    },
    /// Puts a keyed record, in place of one of the same key if there is one.
    Set {
        /// The space of the record.
        space: Space,
        /// The key of the record.
        key: &'a [u8],
        /// The bytes of the record.
        value: &'a [u8],
    },
    /// Deletes a keyed record, if it is there.
    Unset {
        /// The space of the record.
        space: Space,
        /// The key of the record.
        key: &'a [u8],
    },
}

/// Operations that are applied together, in order.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    count: usize,
    /// Puts of both kinds.
    puts: usize,
    last_record: RecordNo,
    has_long_key: bool,
}

impl Batch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Puts a numbered record.
    pub fn put(&mut self, space: Space, record: RecordNo, value: &[u8]) {
        self.put_with(space, record, |out| out.extend_from_slice(value));
    }

    /// Puts a numbered record that `write` appends to the buffer: no copy in between.
    pub fn put_with(&mut self, space: Space, record: RecordNo, write: impl FnOnce(&mut Vec<u8>)) {
        self.count += 1;
        self.puts += 1;
        self.last_record = self.last_record.max(record);
        record::append(&mut self.bytes, record::PUT, space, 0, |out| {
            out.extend_from_slice(&record.0.to_le_bytes());
            write(out);
        });
    }

    /// Deletes a numbered record.
    pub fn delete(&mut self, record: RecordNo) {
        self.count += 1;
        record::append(&mut self.bytes, record::DELETE, Space(0), 0, |out| {
            out.extend_from_slice(&record.0.to_le_bytes());
        });
    }

    /// Puts a keyed record.
    pub fn set(&mut self, space: Space, key: &[u8], value: &[u8]) {
        self.puts += 1;
        self.append_keyed(record::SET, space, key, value);
    }

    /// Deletes a keyed record.
    pub fn unset(&mut self, space: Space, key: &[u8]) {
        self.append_keyed(record::UNSET, space, key, &[]);
    }

    fn append_keyed(&mut self, kind: u8, space: Space, key: &[u8], value: &[u8]) {
        self.count += 1;
        self.has_long_key |= key.len() > KEY_BYTES_MAX;
        // A batch with a key that is too long is refused whole: what is cut here is never written.
        let key_len = u16::try_from(key.len()).unwrap_or(u16::MAX);
        record::append(&mut self.bytes, kind, space, key_len, |out| {
            out.extend_from_slice(key);
            out.extend_from_slice(value);
        });
    }

    /// Appends the operations of another batch.
    pub fn append(&mut self, other: &Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.count += other.count;
        self.puts += other.puts;
        self.last_record = self.last_record.max(other.last_record);
        self.has_long_key |= other.has_long_key;
    }

    /// Where it ends now.
    pub(crate) const fn mark(&self) -> Mark {
        Mark { len: self.bytes.len(), count: self.count, puts: self.puts, last_record: self.last_record }
    }

    /// Whether anything was put since a mark.
    pub(crate) const fn has_puts_since(&self, mark: Mark) -> bool {
        self.puts > mark.puts
    }

    /// Takes out what came since a mark.
    pub(crate) fn split_off(&mut self, mark: Mark) -> Self {
        let since = Self {
            bytes: self.bytes.split_off(mark.len),
            count: self.count - mark.count,
            puts: self.puts - mark.puts,
            last_record: self.last_record,
            has_long_key: std::mem::take(&mut self.has_long_key),
        };
        (self.count, self.puts, self.last_record) = (mark.count, mark.puts, mark.last_record);
        since
    }

    /// Appends a record that is encoded already.
    pub(crate) fn append_raw(&mut self, raw: &Raw<'_>) {
        self.count += 1;
        self.puts += 1;
        self.bytes.extend_from_slice(raw.bytes);
        self.bytes.resize(padded(self.bytes.len()), 0);
    }

    /// The operations in order.
    #[must_use]
    pub fn ops(&self) -> Ops<'_> {
        Ops { rest: &self.bytes }
    }

    /// Bytes it takes in a log.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// How many operations there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }

    /// Whether it puts anything: a full store takes only what does not.
    #[must_use]
    pub fn has_puts(&self) -> bool {
        self.puts > 0
    }

    /// The highest number it puts; 0 if it puts none.
    #[must_use]
    pub fn last_record(&self) -> RecordNo {
        self.last_record
    }

    /// Forgets the operations and keeps the memory.
    pub fn clear(&mut self) {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        *self = Self { bytes, ..Self::default() };
    }

    /// Appends one operation.
    pub fn push(&mut self, op: Op<'_>) {
        match op {
            Op::Put { space, record, value } => self.put(space, record, value),
            Op::Delete { record } => self.delete(record),
            Op::Set { space, key, value } => self.set(space, key, value),
            Op::Unset { space, key } => self.unset(space, key),
        }
    }

    /// Whether no store can take it.
    pub(crate) fn is_beyond(&self, bytes_max: usize) -> bool {
        self.has_long_key || self.bytes.len() > bytes_max
    }

    /// The encoded operations, for the log to complete. Whatever it appends must be gone afterwards.
    pub(crate) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }
}

/// The end of a batch at some time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mark {
    pub(crate) len: usize,
    count: usize,
    puts: usize,
    last_record: RecordNo,
}

/// The operations of a batch.
#[derive(Clone, Debug)]
pub struct Ops<'a> {
    rest: &'a [u8],
}

impl<'a> Ops<'a> {
    /// The next operation and the bytes it takes in a log.
    pub(crate) fn next_with_len(&mut self) -> Option<(Op<'a>, usize)> {
        let raw = Raw::parse(self.rest)?;
        let len = padded(raw.bytes.len());
        self.rest = self.rest.get(len..).unwrap_or_default();
        Some((raw.op().expect("a batch holds operations only"), len))
    }
}

impl<'a> Iterator for Ops<'a> {
    type Item = Op<'a>;

    fn next(&mut self) -> Option<Op<'a>> {
        self.next_with_len().map(|(op, _)| op)
    }
}
