//! The order in which a worker serves its queues, by weight.
//!
//! Every delivery counts, also one that was placed as soon as it came: a queue that just had its turn does not have
//! it again before the others. Nothing waits beside a free slot, so a message that finds one passes nobody by.

/// Where a worker is in its round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::messages) struct Round {
    at: u32,
    taken: u8,
}

impl Round {
    /// The queue, or where it would be, with which the round goes on.
    pub(in crate::messages) const fn at(self) -> u32 {
        self.at
    }

    /// The worker took a message of that queue: it stays there until it has taken as many as the queue weighs.
    pub(crate) const fn take(&mut self, queue: u32, weight: u8) {
        if queue != self.at {
            *self = Self { at: queue, taken: 0 };
        }
        self.taken += 1;
        if self.taken >= weight {
            *self = Self { at: queue + 1, taken: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_keeps_its_turn_for_as_long_as_it_weighs() {
        let mut round = Round::default();
        let mut went = Vec::new();
        for _ in 0..3 {
            round.take(0, 3);
            went.push(round.at());
        }
        assert_eq!(went, [0, 0, 1]);
        round.take(1, 1);
        assert_eq!(round.at(), 2);
    }

    /// The rest of a turn is gone once another queue has had its own.
    #[test]
    fn a_turn_cut_short_begins_anew() {
        let mut round = Round::default();
        round.take(4, 2);
        round.take(7, 1);
        round.take(4, 2);
        assert_eq!(round.at(), 4);
        round.take(4, 2);
        assert_eq!(round.at(), 5);
    }

    #[test]
    fn a_weight_that_was_lowered_ends_the_turn() {
        let mut round = Round::default();
        round.take(0, 100);
        round.take(0, 100);
        round.take(0, 1);
        assert_eq!(round.at(), 1);
    }
}
