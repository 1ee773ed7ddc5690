//! The random generator of a simulated disk, the same on every machine for the same seed.

/// A seeded generator (splitmix64): one step per number, no state beyond 64 bits.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that always gives the same numbers for the same seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number.
    pub const fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub const fn below(&mut self, end: u64) -> u64 {
        self.any() % end
    }

    /// True once in `n` times.
    pub const fn once_in(&mut self, n: u64) -> bool {
        self.any().is_multiple_of(n)
    }
}
