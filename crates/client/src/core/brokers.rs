//! The ordered list of brokers and the place in it.

use crate::Address;

/// Brokers a client knows. More: those told last are not kept.
pub const BROKERS_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Brokers {
    list: Vec<Address>,
    at: usize,
    /// Brokers dialled since a connection last proved good.
    attempts: usize,
    tried: Vec<(Address, String)>,
}

impl Brokers {
    pub(super) fn new(addresses: Vec<Address>) -> Self {
        let mut brokers = Self { list: Vec::new(), at: 0, attempts: 0, tried: Vec::new() };
        brokers.add(addresses);
        assert!(!brokers.list.is_empty(), "the core needs at least one broker");
        brokers
    }

    /// Adds those not yet known to the end of the list.
    pub(super) fn add(&mut self, addresses: impl IntoIterator<Item = Address>) {
        for address in addresses {
            if self.list.len() < BROKERS_MAX && !self.list.contains(&address) {
                self.list.push(address);
            }
        }
    }

    /// The broker dialled or connected to.
    pub(super) fn current(&self) -> &Address {
        &self.list[self.at]
    }

    /// True if there is another broker to turn to.
    pub(super) const fn several(&self) -> bool {
        self.list.len() > 1
    }

    /// Counts an attempt at the current broker.
    pub(super) fn dial(&mut self) -> Address {
        self.attempts += 1;
        self.current().clone()
    }

    /// The current broker is of no use for now: on to the next. True if that ends a whole fruitless round.
    pub(super) fn pass(&mut self, reason: String) -> bool {
        self.tried.push((self.current().clone(), reason));
        self.at = (self.at + 1) % self.list.len();
        self.attempts >= self.list.len()
    }

    /// A connection proved good: whatever was tried before counts no more.
    pub(super) fn proved(&mut self) {
        self.attempts = 0;
        self.tried.clear();
    }

    /// Begins a new round. Returns what the last one tried.
    pub(super) fn end_round(&mut self) -> Vec<(Address, String)> {
        self.attempts = 0;
        std::mem::take(&mut self.tried)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(name: &str) -> Address {
        Address::Tcp(name.to_owned())
    }

    /// Proves S2.2: the next broker each time, a pause only after all of them.
    #[test]
    fn a_round_ends_when_each_was_tried_once() {
        let mut brokers = Brokers::new(vec![tcp("a"), tcp("b"), tcp("a")]);
        brokers.add([tcp("b"), tcp("c")]);
        assert_eq!(brokers.dial(), tcp("a"));
        assert!(!brokers.pass("1".to_owned()));
        assert_eq!(brokers.dial(), tcp("b"));
        assert!(!brokers.pass("2".to_owned()));
        assert_eq!(brokers.dial(), tcp("c"));
        assert!(brokers.pass("3".to_owned()));
        assert_eq!(brokers.end_round().len(), 3);
        assert_eq!(brokers.dial(), tcp("a"));
        brokers.proved();
        assert!(!brokers.pass("lost".to_owned()));
        assert_eq!(brokers.dial(), tcp("b"));
    }

    #[test]
    fn the_list_is_bounded() {
        let mut brokers = Brokers::new(vec![tcp("a")]);
        brokers.add((0..1_000).map(|n| tcp(&n.to_string())));
        assert_eq!(brokers.list.len(), BROKERS_MAX);
    }
}
