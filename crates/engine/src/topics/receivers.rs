//! Who has one and the same filter: mostly one, sometimes very many.

use std::collections::BTreeSet;

/// Numbers of receivers. One of them takes no room elsewhere, so that a look at it is not a look somewhere else.
#[derive(Debug, Default)]
pub(super) enum Receivers {
    #[default]
    None,
    One(u32),
    #[expect(clippy::box_collection, reason = "there are many sets of one, and they are to be small")]
    Many(Box<BTreeSet<u32>>),
}

impl Receivers {
    /// True unless it was there already.
    pub(super) fn insert(&mut self, receiver: u32) -> bool {
        match self {
            Self::None => *self = Self::One(receiver),
            Self::One(one) if *one == receiver => return false,
            Self::One(one) => *self = Self::Many(Box::new(BTreeSet::from([*one, receiver]))),
            Self::Many(many) => return many.insert(receiver),
        }
        true
    }

    /// True if it was there.
    pub(super) fn remove(&mut self, receiver: u32) -> bool {
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

    pub(super) fn tell(&self, tell: &mut impl FnMut(u32)) {
        match self {
            Self::None => {}
            Self::One(one) => tell(*one),
            Self::Many(many) => many.iter().copied().for_each(tell),
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
}
