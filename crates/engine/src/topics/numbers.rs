//! A pool of small numbers, which are used again.

/// Gives out numbers from zero on, returned ones first.
#[derive(Debug, Default)]
pub(super) struct NumberPool {
    returned: Vec<u32>,
    /// None as high was given out yet.
    next: u32,
}

impl NumberPool {
    pub(super) fn take(&mut self) -> u32 {
        self.returned.pop().unwrap_or_else(|| {
            self.next = self.next.checked_add(1).expect("filters are limited, and their segments");
            self.next - 1
        })
    }

    /// One that was taken.
    pub(super) fn give_back(&mut self, number: u32) {
        self.returned.push(number);
        if self.returned.len() == self.next as usize {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut numbers = NumberPool::default();
        assert_eq!([numbers.take(), numbers.take(), numbers.take()], [0, 1, 2]);
        numbers.give_back(1);
        assert_eq!([numbers.take(), numbers.take()], [1, 3]);
        for number in [3, 0, 2, 1] {
            numbers.give_back(number);
        }
        assert_eq!(numbers.take(), 0, "the memory goes with the last");
    }
}
