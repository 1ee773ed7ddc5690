//! The place of a record: file, offset and length in 64 bits, so that a million of them are 8 MB.

/// A record's file (18 bits), offset (23) and length (23), both in steps of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordPlace(u64);

const OFFSET_BITS: u32 = 23;
const LEN_BITS: u32 = 23;
const STEP: u64 = crate::record::ALIGN as u64;

impl RecordPlace {
    /// No record: a file's first bytes are its header.
    pub(super) const NOWHERE: Self = Self(0);

    pub(super) fn new(slot: u32, offset: u64, len: usize) -> Self {
        let len = len as u64;
        let fits = (offset / STEP) >> OFFSET_BITS == 0 && (len / STEP) >> LEN_BITS == 0 && slot < 1 << 18;
        assert!(fits && offset.is_multiple_of(STEP) && len.is_multiple_of(STEP), "a place is within a segment");
        Self((u64::from(slot) << (OFFSET_BITS + LEN_BITS)) | ((offset / STEP) << LEN_BITS) | (len / STEP))
    }

    /// The number of its file.
    pub(super) fn slot(self) -> u32 {
        u32::try_from(self.0 >> (OFFSET_BITS + LEN_BITS)).unwrap_or(u32::MAX)
    }

    pub(super) const fn offset(self) -> u64 {
        ((self.0 >> LEN_BITS) & ((1 << OFFSET_BITS) - 1)) * STEP
    }

    /// Bytes with padding.
    pub(super) const fn len(self) -> u64 {
        (self.0 & ((1 << LEN_BITS) - 1)) * STEP
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_keeps_its_parts() {
        for (slot, offset, len) in [(1, 512, 24), ((1 << 18) - 1, (64 << 20) - 8, (24 << 20) + 16), (7, 8, 8)] {
            let place = RecordPlace::new(slot, offset, len);
            assert_eq!((place.slot(), place.offset(), place.len()), (slot, offset, len as u64));
            assert_ne!(place, RecordPlace::NOWHERE);
        }
    }
}
