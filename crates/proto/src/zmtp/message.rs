//! A message: its parts, side by side in one block, or as frames where they were read to.

use std::fmt;

use bytes::Bytes;

use super::frame;

/// A message of one part or more, as it came.
#[derive(Clone)]
pub struct Message<'a> {
    block: Block<'a>,
    /// At least 1.
    part_count: usize,
}

#[derive(Clone)]
enum Block<'a> {
    /// Whole frames of messages, each with its head, in a buffer of somebody else: nothing was copied.
    Frames(&'a [u8]),
    /// The parts side by side, and where each but the last one ends, so that a message of one part needs no table.
    Parts { body: Bytes, ends: Box<[u32]> },
}

impl<'a> Message<'a> {
    /// So many frames of messages, each of them whole.
    pub(super) const fn of_frames(frames: &'a [u8], part_count: usize) -> Self {
        Self { block: Block::Frames(frames), part_count }
    }

    pub(super) fn new(body: Bytes, ends: Box<[u32]>) -> Self {
        Self { part_count: ends.len() + 1, block: Block::Parts { body, ends } }
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
        Self::new(Bytes::from(parts.concat()), ends.into())
    }

    /// The same with memory of its own.
    pub fn into_owned(self) -> Message<'static> {
        match self.block {
            Block::Frames(_) => Message::of(&self.parts().collect::<Vec<_>>()),
            Block::Parts { body, ends } => Message::new(body, ends),
        }
    }

    /// The number of parts, at least 1.
    pub const fn part_count(&self) -> usize {
        self.part_count
    }

    /// One part.
    pub fn part(&self, index: usize) -> Option<&[u8]> {
        self.parts().nth(index)
    }

    /// The parts in order.
    pub fn parts(&self) -> MessageParts<'_> {
        let rest = match &self.block {
            Block::Frames(frames) => Rest::Frames(frames),
            Block::Parts { body, ends } => Rest::Parts { body, ends, at: 0 },
        };
        MessageParts { rest, left: self.part_count }
    }

    /// All parts behind the first `count`, one behind the other. They have memory of their own, or share that of the message
    /// if it has some.
    pub fn body_behind(&self, count: usize) -> Bytes {
        match &self.block {
            Block::Frames(_) if count + 1 == self.part_count => {
                self.parts().nth(count).map(Bytes::copy_from_slice).unwrap_or_default()
            }
            Block::Frames(_) => {
                let len = self.parts().skip(count).map(<[u8]>::len).sum();
                let mut body = Vec::with_capacity(len);
                self.parts().skip(count).for_each(|part| body.extend_from_slice(part));
                body.into()
            }
            Block::Parts { body, ends } => {
                let start = count.checked_sub(1).map_or(Some(0), |last| ends.get(last).map(|end| *end as usize));
                start.map(|start| body.slice(start..)).unwrap_or_default()
            }
        }
    }
}

impl PartialEq for Message<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.parts().eq(other.parts())
    }
}

impl Eq for Message<'_> {}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.parts().map(<[u8]>::escape_ascii)).finish()
    }
}

/// The parts of a message in order.
#[derive(Clone)]
pub struct MessageParts<'a> {
    rest: Rest<'a>,
    left: usize,
}

#[derive(Clone)]
enum Rest<'a> {
    Frames(&'a [u8]),
    Parts { body: &'a [u8], ends: &'a [u32], at: usize },
}

impl<'a> Iterator for MessageParts<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        self.left = self.left.checked_sub(1)?;
        Some(match &mut self.rest {
            Rest::Frames(frames) => {
                let (_, part, rest) = frame::split(frames)?;
                *frames = rest;
                part
            }
            Rest::Parts { body, ends, at } => {
                let end = match ends.split_first() {
                    Some((end, rest)) => {
                        *ends = rest;
                        *end as usize
                    }
                    None => body.len(),
                };
                let part = body.get(*at..end).unwrap_or_default();
                *at = end;
                part
            }
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for MessageParts<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(parts: &[&[u8]]) -> Message<'static> {
        Message::of(parts)
    }

    /// Both forms of a message.
    fn both(parts: &[&[u8]], check: impl Fn(&Message<'_>)) {
        let mut frames = Vec::new();
        crate::zmtp::encode(parts.iter().copied(), &mut frames);
        let lent = Message::of_frames(&frames, parts.len());
        assert_eq!(lent, owned(parts));
        assert_eq!(lent.clone().into_owned(), lent);
        check(&lent);
        check(&owned(parts));
    }

    #[test]
    fn parts_are_found_by_their_number() {
        let long = [7; 300];
        both(&[b"ab", b"", &long], |three| {
            assert_eq!(three.parts().collect::<Vec<_>>(), [&b"ab"[..], b"", &long]);
            assert_eq!((three.part_count(), three.parts().len()), (3, 3));
            assert_eq!((three.part(2), three.part(3)), (Some(&long[..]), None));
        });
        both(&[b""], |one| assert_eq!(one.parts().collect::<Vec<_>>(), [b""]));
    }

    #[test]
    fn the_body_behind_an_envelope_is_all_other_parts() {
        both(&[b"id", b"", b"x", b"yz"], |four| {
            let behind = |count| four.body_behind(count);
            assert_eq!([0, 1, 2, 3].map(behind), ["idxyz", "xyz", "xyz", "yz"]);
            assert_eq!([4, 9].map(behind), ["", ""]);
        });
        let four = owned(&[b"id", b"", b"x", b"yz"]);
        assert_eq!(four.body_behind(2).as_ptr(), four.part(2).unwrap().as_ptr(), "an owned message is not copied");
    }
}
