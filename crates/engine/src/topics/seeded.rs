//! A seeded hash for tables whose keys peers choose.

use std::collections::HashMap;
use std::hash::{BuildHasher, DefaultHasher, Hasher as _};

/// Makes places in a table unknown to peers, who choose its keys. Such tables are looked up, and never walked in an order
/// that shows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seeded(pub(super) u64);

/// Such a table.
pub(super) type Table<K, V> = HashMap<K, V, Seeded>;

impl BuildHasher for Seeded {
    type Hasher = DefaultHasher;

    fn build_hasher(&self) -> DefaultHasher {
        let mut hasher = DefaultHasher::new();
        hasher.write_u64(self.0);
        hasher
    }
}

impl Seeded {
    /// Of a few bytes, in one go: SipHash-1-3, as the tables have it, without what it takes to be handed bytes in pieces.
    #[inline]
    pub(super) fn hash(self, bytes: &[u8]) -> u64 {
        sip(self.0, !self.0, bytes)
    }
}

#[inline]
fn sip(key: u64, other: u64, bytes: &[u8]) -> u64 {
    let mut state = [
        key ^ 0x736f_6d65_7073_6575,
        other ^ 0x646f_7261_6e64_6f6d,
        key ^ 0x6c79_6765_6e65_7261,
        other ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = bytes.as_chunks();
    for word in words {
        compress(&mut state, u64::from_le_bytes(*word));
    }
    compress(&mut state, (bytes.len() as u64) << 56 | short(rest));
    state[2] ^= 0xff;
    for _ in 0..3 {
        round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

#[inline]
const fn compress(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    round(state);
    state[0] ^= word;
}

#[inline]
const fn round([a, b, c, d]: &mut [u64; 4]) {
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *a;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(16) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(21) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

/// Up to seven bytes as a number, the first of them lowest.
#[inline]
pub(super) fn short(bytes: &[u8]) -> u64 {
    if let (Some(first), Some(last)) = (bytes.first_chunk(), bytes.last_chunk()) {
        // They overlap where there are less than eight: the same bytes are at the same place.
        let last = u64::from(u32::from_le_bytes(*last));
        return u64::from(u32::from_le_bytes(*first)) | last << ((bytes.len() - 4) * 8);
    }
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The standard library has it too, with zero keys.
    #[test]
    fn the_hash_is_the_one_of_the_standard_library() {
        let bytes: Vec<u8> = (1..=255).collect();
        for length in 0..=bytes.len() {
            let mut hasher = DefaultHasher::new();
            hasher.write(&bytes[..length]);
            assert_eq!(sip(0, 0, &bytes[..length]), hasher.finish(), "{length} bytes");
        }
    }

    #[test]
    fn the_seed_decides() {
        assert_ne!(Seeded(1).hash(b"news"), Seeded(2).hash(b"news"));
    }
}
