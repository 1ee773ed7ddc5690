//! Sources of decisions: the bytes of a fuzzer or of proptest, or a seeded generator.

/// A source of decisions.
pub trait Chance {
    /// A number below `end`, which is not 0.
    fn below(&mut self, end: u64) -> u64;

    /// A number from `low` up to and without `high`.
    fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low)
    }

    /// An index below `len`.
    fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("below a length")
    }

    /// True once in `n` times; never once bytes are used up.
    fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == n - 1
    }

    /// One of these.
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.index(of.len())]
    }

    /// A number of few bits, which is what the wire has.
    fn word(&mut self, end: u32) -> u32 {
        u32::try_from(self.below(u64::from(end))).expect("below 32 bits")
    }
}

/// An input as a row of decisions. When it is used up, every decision is zero.
#[derive(Clone, Copy, Debug)]
pub struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// All of these.
    pub const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }

    /// Nothing is left.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next one.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.rest.split_first() else { return 0 };
        self.rest = rest;
        *first
    }

    /// The next ones.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.byte())
    }

    /// Two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// Four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// Everything that is left.
    pub const fn rest(self) -> &'a [u8] {
        self.rest
    }
}

impl Chance for Bytes<'_> {
    /// As many bytes as the largest such number has.
    fn below(&mut self, end: u64) -> u64 {
        let bits = u64::BITS - (end - 1).leading_zeros();
        let number = (0..bits.div_ceil(8)).fold(0, |number, _| number << 8 | u64::from(self.byte()));
        number % end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_taken_as_they_are_needed_and_end_in_zeros() {
        let mut bytes = Bytes::new(&[7, 1, 2, 9]);
        assert_eq!(bytes.below(1), 0, "no decision, no byte");
        assert_eq!(bytes.below(256), 7);
        assert_eq!(bytes.below(65_536), 0x0102);
        assert_eq!(bytes.pick(&[10, 11, 12, 13]), 11);
        assert!(bytes.is_empty());
        assert_eq!((bytes.range(5, 9), bytes.once_in(2)), (5, false));
    }
}
