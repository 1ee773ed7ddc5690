//! The random generator, the same on every machine for the same seed.

/// The generator of the simulated disks, with the questions that worlds ask.
#[derive(Clone, Debug)]
pub(crate) struct Rng(turno_store::disk::Rng);

impl Rng {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(turno_store::disk::Rng::new(seed ^ 0x9E37_79B9_7F4A_7C15))
    }

    pub(crate) const fn next(&mut self) -> u64 {
        self.0.any()
    }

    /// A number from `low` up to and without `high`.
    pub(crate) const fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low)
    }

    /// An index below `len`.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.range(0, len as u64)).expect("below a length")
    }

    /// True once in `n` times.
    pub(crate) const fn once_in(&mut self, n: u64) -> bool {
        self.0.once_in(n)
    }
}
