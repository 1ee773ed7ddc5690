//! Tables with numbers that this broker assigns itself.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Such a table. It is looked up, and never walked in an order that shows.
pub(in crate::messages) type Numbered<V> = HashMap<u32, V, BuildHasherDefault<NumberHasher>>;

/// Spreads numbers over a table. Nobody else chooses them, so nothing has to be secret.
#[derive(Debug, Default)]
pub(in crate::messages) struct NumberHasher(u64);

/// Odd, and half of its bits are set.
const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;

impl Hasher for NumberHasher {
    fn write_u32(&mut self, number: u32) {
        let product = u64::from(number).wrapping_mul(FACTOR);
        // A table takes its places from the lower bits, which follow from few of the number's.
        self.0 = product ^ product >> 32;
    }

    /// Keys are numbers of 32 bits; anything else is spread byte by byte.
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(FACTOR);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_that_follow_each_other_or_leave_gaps_are_spread() {
        for step in [1, 2, 64, 1_000, 65_536] {
            let places: BTreeSet<u64> = (0..1_000_u32)
                .map(|number| {
                    let mut spread = NumberHasher::default();
                    spread.write_u32(number * step);
                    spread.finish() % 4_096
                })
                .collect();
            assert!(places.len() > 700, "steps of {step}: {} places for 1,000", places.len());
        }
    }

    #[test]
    fn what_is_put_in_is_found() {
        let mut table: Numbered<u32> = Numbered::default();
        for number in 0..10_000 {
            assert_eq!(table.insert(number * 7, number), None);
        }
        for number in 0..10_000 {
            assert_eq!(table.remove(&(number * 7)), Some(number));
        }
        assert!(table.is_empty());
    }
}
