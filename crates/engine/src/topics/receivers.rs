//! Who has one and the same filter: mostly one, sometimes very many.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// Numbers of receivers, or what else says who. One of them takes no room elsewhere, so that a look at it is not a look
/// somewhere else.
#[derive(Debug, Default)]
pub(super) enum Receivers<T = u32> {
    #[default]
    None,
    One(T),
    #[expect(clippy::box_collection, reason = "there are many sets of one, and they are to be small")]
    Many(Box<BTreeSet<T>>),
}

impl<T: Copy + Ord> Receivers<T> {
    /// True unless it was there already.
    pub(super) fn insert(&mut self, receiver: T) -> bool {
        match self {
            Self::None => *self = Self::One(receiver),
            Self::One(one) if *one == receiver => return false,
            Self::One(one) => *self = Self::Many(Box::new(BTreeSet::from([*one, receiver]))),
            Self::Many(many) => return many.insert(receiver),
        }
        true
    }

    /// True if it was there.
    pub(super) fn remove(&mut self, receiver: T) -> bool {
        match self {
            Self::One(one) if *one == receiver => *self = Self::None,
            Self::None | Self::One(_) => return false,
            Self::Many(many) => {
                let removed = many.remove(&receiver);
                if many.len() == 1
                    && let Some(last) = many.first()
                {
                    *self = Self::One(*last);
                }
                return removed;
            }
        }
        true
    }

    pub(super) fn tell(&self, tell: &mut impl FnMut(T)) {
        match self {
            Self::None => {}
            Self::One(one) => tell(*one),
            Self::Many(many) => many.iter().copied().for_each(tell),
        }
    }

    /// Tells of those in between; the others cost nothing.
    pub(super) fn tell_within(&self, range: RangeInclusive<T>, tell: impl FnMut(T)) {
        match self {
            Self::None => {}
            Self::One(one) => Some(*one).filter(|one| range.contains(one)).into_iter().for_each(tell),
            Self::Many(many) => many.range(range).copied().for_each(tell),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(receivers: &Receivers) -> Vec<u32> {
        let mut told = Vec::new();
        receivers.tell(&mut |receiver| told.push(receiver));
        told
    }

    #[test]
    fn none_one_and_many() {
        let mut receivers = Receivers::default();
        assert!(receivers.is_empty() && !receivers.remove(1));
        for (add, receiver, changed, after) in [
            (true, 2, true, &[2][..]),
            (true, 2, false, &[2]),
            (false, 1, false, &[2]),
            (true, 1, true, &[1, 2]),
            (true, 3, true, &[1, 2, 3]),
            (true, 3, false, &[1, 2, 3]),
            (false, 4, false, &[1, 2, 3]),
            (false, 2, true, &[1, 3]),
            (false, 1, true, &[3]),
            (false, 3, true, &[]),
        ] {
            let did = if add { receivers.insert(receiver) } else { receivers.remove(receiver) };
            assert_eq!((did, told(&receivers)), (changed, after.to_vec()), "{add} {receiver}");
            assert_eq!(receivers.is_empty(), after.is_empty());
        }
    }

    #[test]
    fn only_those_in_between_are_told_of() {
        let mut receivers = Receivers::default();
        let told = |receivers: &Receivers<(bool, u32)>, side| {
            let mut told = Vec::new();
            receivers.tell_within((side, 0)..=(side, u32::MAX), |(_, receiver)| told.push(receiver));
            told
        };
        assert_eq!(told(&receivers, false), []);
        receivers.insert((true, 7));
        assert_eq!((told(&receivers, false), told(&receivers, true)), (vec![], vec![7]));
        receivers.insert((false, u32::MAX));
        receivers.insert((false, 0));
        assert_eq!((told(&receivers, false), told(&receivers, true)), (vec![0, u32::MAX], vec![7]));
    }
}
