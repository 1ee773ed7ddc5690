//! Messages: their parts in one block.

use bytes::Bytes;

/// A message of one part or more, as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    body: Bytes,
    /// Where each part but the last one ends, so that a message of one part needs no table.
    ends: Box<[u32]>,
}

impl Message {
    pub(super) fn new(body: Bytes, ends: Box<[u32]>) -> Self {
        Self { body, ends }
    }

    /// A message of these parts, at least one and together less than 4 GiB.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut end = 0;
        let mut ends: Vec<u32> = Vec::with_capacity(parts.len());
        for part in parts {
            end += u32::try_from(part.len()).expect("parts are shorter than 4 GiB");
            ends.push(end);
        }
        ends.pop();
        Self { body: Bytes::from(parts.concat()), ends: ends.into() }
    }

    /// The number of parts, at least 1.
    pub fn part_count(&self) -> usize {
        self.ends.len() + 1
    }

    /// All parts, one behind the other.
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// One part.
    pub fn part(&self, index: usize) -> Option<&[u8]> {
        let start = if index == 0 { 0 } else { *self.ends.get(index - 1)? as usize };
        let end = self.ends.get(index).map_or(self.body.len(), |end| *end as usize);
        self.body.get(start..end)
    }

    /// The parts in order.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.part_count()).map(|index| self.part(index).unwrap_or_default())
    }

    /// The message behind its first `count` parts, which shares their memory; `None` if nothing is behind them.
    pub fn behind(&self, count: usize) -> Option<Self> {
        let Some(last) = count.checked_sub(1) else { return Some(self.clone()) };
        let start = *self.ends.get(last)?;
        let ends = self.ends.get(count..).unwrap_or_default().iter().map(|end| end - start).collect();
        Some(Self { body: self.body.slice(start as usize..), ends })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(parts: &[&str]) -> Message {
        Message::of(&parts.iter().map(|part| part.as_bytes()).collect::<Vec<_>>())
    }

    #[test]
    fn parts_are_found_by_their_number() {
        let three = message(&["ab", "", "cde"]);
        assert_eq!(three.parts().collect::<Vec<_>>(), [&b"ab"[..], b"", b"cde"]);
        assert_eq!((three.part(2), three.part(3)), (Some(&b"cde"[..]), None));
        assert_eq!(message(&[""]).parts().collect::<Vec<_>>(), [b""]);
    }

    #[test]
    fn the_message_behind_an_envelope_shares_its_memory() {
        let four = message(&["id", "", "x", "yz"]);
        let inner = four.behind(2).unwrap();
        assert_eq!(inner.parts().collect::<Vec<_>>(), [&b"x"[..], b"yz"]);
        assert_eq!(inner.body().as_ptr(), four.part(2).unwrap().as_ptr());
        assert_eq!(four.behind(0), Some(four.clone()));
        assert_eq!(four.behind(3), Some(message(&["yz"])));
        assert_eq!((four.behind(4), four.behind(9)), (None, None));
    }
}
