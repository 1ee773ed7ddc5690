//! The one source of chance: a small generator, the same on every machine for the same seed.

/// A seeded generator (splitmix64): one step per number, no state beyond 64 bits.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `low` up to and without `high`.
    pub(crate) const fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low)
    }

    /// An index below `len`.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.range(0, len as u64)).expect("below a length")
    }

    /// True once in `n` times.
    pub(crate) const fn once_in(&mut self, n: u64) -> bool {
        self.next().is_multiple_of(n)
    }
}
