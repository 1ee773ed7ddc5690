//! The shapes of filters with wildcards. They bound the work of one event: of all filters of one shape that a receiver has, at
//! most one matches a topic, and the tree is walked once for each set of places at which filters have a `*`.

use std::collections::BTreeMap;

use turno_proto::model::Filter;

/// Where a pattern has its wildcards: the places of `*` before the last segment, how many segments there are, and how it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Shape {
    /// A bit for each place of a `*` before the last segment.
    stars: u32,
    segments: u8,
    last: u8,
}

impl Shape {
    /// `None` if there is no wildcard: a receiver has at most one such filter that matches a topic. Prefixes have none either;
    /// those that match a topic differ in their length, which is limited.
    pub(super) fn of(filter: &Filter) -> Option<Self> {
        let Filter::Pattern(pattern) = filter else { return None };
        let (mut stars, mut segments, mut last) = (0, 0, 0);
        for segment in pattern.split('.') {
            if last == b'*' {
                stars |= 1 << (segments - 1);
            }
            last = if matches!(segment, "*" | ">") { segment.as_bytes()[0] } else { 0 };
            segments += 1;
        }
        (stars != 0 || last != 0).then_some(Self { stars, segments, last })
    }

    /// The places of `*`, if the walks for them are limited. Those for one `*` are few in any case.
    pub(super) const fn stars(self) -> Option<u32> {
        if self.stars.count_ones() > 1 { Some(self.stars) } else { None }
    }
}

/// How many filters there are of each kind.
#[derive(Debug)]
pub(super) struct ShapeCounts<K>(BTreeMap<K, u32>);

impl<K: Ord> ShapeCounts<K> {
    pub(super) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Kinds.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether one more of that kind leaves no more than `most` kinds.
    pub(super) fn has_room(&self, kind: &K, most: usize) -> bool {
        self.0.len() < most || self.0.contains_key(kind)
    }

    pub(super) fn add(&mut self, kind: K) {
        *self.0.entry(kind).or_default() += 1;
    }

    pub(super) fn remove(&mut self, kind: &K) {
        let count = self.0.get_mut(kind).expect("what is removed was added");
        *count -= 1;
        if *count == 0 {
            self.0.remove(kind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_where_the_wildcards_are() {
        let shape = |text: &str| Shape::of(&text.parse().unwrap());
        assert_eq!(shape("a.b"), None);
        assert_eq!(Shape::of(&Filter::prefix(b"a.*").unwrap()), None);
        assert_eq!(shape("a.*.c"), shape("b.*.d"));
        assert_eq!(shape("a.>"), shape("b.>"));
        for (one, other) in [("a.*", "a.>"), ("a.*", "a.b.*"), ("*.b.c", "a.*.c"), ("a.*.c", "a.*.*"), ("*.>", "a.>")] {
            assert_ne!(shape(one), shape(other), "{one} {other}");
        }
        let stars = |text: &str| shape(text).and_then(Shape::stars);
        assert_eq!((stars("a.*.>"), stars("*.b.*"), stars("*.*.c"), stars("a.*.*.>")), (None, None, Some(3), Some(6)));
        let deepest = ["*"; 32].join(".");
        assert_eq!(stars(&deepest), Some(u32::MAX >> 1));
    }

    #[test]
    fn kinds_go_with_the_last_of_them() {
        let mut tally = ShapeCounts::new();
        tally.add('a');
        tally.add('a');
        assert!(tally.has_room(&'a', 1) && !tally.has_room(&'b', 1));
        tally.remove(&'a');
        assert_eq!(tally.len(), 1);
        tally.remove(&'a');
        assert!(tally.has_room(&'b', 1));
    }
}
