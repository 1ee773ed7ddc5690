//! What has not come round, of one origin.
//!
//! There are many of these, and each is kept for a whole round: in allocations of their own they would be cold when they are
//! freed, which costs more than all else that is done with them. So small payloads lie one behind the other in a few pieces of
//! memory, and only large ones stay where they are.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use turno_proto::model::ring::Origin;
use turno_proto::model::{Payload, Topic};

use super::word::Publication;
use crate::topics::Event;

/// What a publication takes beside its topic and its payload.
const OVERHEAD_BYTES: usize = 64;
/// Payloads up to this size are copied.
const COPIED_MAX: usize = 1024;
/// How much memory is taken at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// How many bytes an event counts while it is under way.
pub(super) fn bytes_of(event: &Event) -> usize {
    bytes_for(&event.topic, event.payload.len())
}

fn bytes_for(topic: &Topic, length: usize) -> usize {
    topic.as_str().len() + length + OVERHEAD_BYTES
}

/// Publications of one origin, oldest first.
#[derive(Debug, Default)]
pub(super) struct Kept {
    entries: VecDeque<Entry>,
    /// Where small payloads lie, in the same order. None is without one.
    pieces: VecDeque<Piece>,
    /// One that is not needed now.
    spare: Piece,
    /// What all of them count.
    bytes: usize,
    /// All up to this one have come round.
    round: u64,
    /// The last roll call that was sent before the last of them came.
    roll: u64,
}

#[derive(Debug, Default)]
struct Piece {
    bytes: Vec<u8>,
    /// How many payloads in it are still kept, the last of those that came.
    count: usize,
}

#[derive(Debug)]
struct Entry {
    seq: u64,
    after: u64,
    hops: u8,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// In a piece; nothing is in none.
    Copied {
        topic: Topic,
        headers: bool,
        at: u32,
        length: u32,
    },
    Shared(Arc<Event>),
}

impl Entry {
    fn bytes(&self) -> usize {
        match &self.content {
            Content::Copied { topic, length, .. } => bytes_for(topic, *length as usize),
            Content::Shared(event) => bytes_of(event),
        }
    }

    const fn is_in_a_piece(&self) -> bool {
        matches!(self.content, Content::Copied { length: 1.., .. })
    }
}

impl Kept {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// What all of them count.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of the oldest.
    pub(super) fn first(&self) -> Option<u64> {
        self.entries.front().map(|entry| entry.seq)
    }

    /// Whether that roll call was sent behind all of them.
    pub(super) const fn is_before(&self, number: u64) -> bool {
        self.roll < number
    }

    /// One more, behind all others and behind that roll call.
    pub(super) fn push(&mut self, publication: &Publication, roll: u64) {
        let Publication { seq, after, round, hops, ref event, .. } = *publication;
        (self.round, self.roll) = (self.round.max(round), roll);
        let content = self.put(event);
        self.bytes += bytes_of(event);
        self.entries.push_back(Entry { seq, after, hops, content });
    }

    fn put(&mut self, event: &Arc<Event>) -> Content {
        let Payload { headers, ref bytes } = event.payload;
        if bytes.len() > COPIED_MAX {
            return Content::Shared(Arc::clone(event));
        }
        let at = if bytes.is_empty() { 0 } else { self.copy(bytes) };
        let in_32_bits = |number: usize| u32::try_from(number).expect("a piece is small");
        Content::Copied { topic: event.topic.clone(), headers, at: in_32_bits(at), length: in_32_bits(bytes.len()) }
    }

    /// Where it is, in the last piece.
    fn copy(&mut self, bytes: &[u8]) -> usize {
        let has_room = |piece: &&mut Piece| piece.bytes.len() + bytes.len() <= PIECE_BYTES;
        if self.pieces.back_mut().filter(has_room).is_none() {
            let mut piece = std::mem::take(&mut self.spare);
            piece.bytes.reserve_exact(PIECE_BYTES);
            self.pieces.push_back(piece);
        }
        let Some(piece) = self.pieces.back_mut() else { unreachable!("there is one with room") };
        let at = piece.bytes.len();
        piece.bytes.extend_from_slice(bytes);
        piece.count += 1;
        at
    }

    /// All up to that one have come round. Returns how many these are, and what they counted.
    pub(super) fn trim(&mut self, round: u64) -> (usize, usize) {
        self.round = self.round.max(round);
        let (mut count, mut bytes) = (0, 0);
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.seq <= round) {
            count += 1;
            bytes += entry.bytes();
            if entry.is_in_a_piece() {
                self.leave_piece();
            }
        }
        self.bytes -= bytes;
        (count, bytes)
    }

    /// The oldest that is in a piece is gone.
    fn leave_piece(&mut self) {
        let Some(piece) = self.pieces.front_mut() else { return };
        piece.count -= 1;
        if piece.count == 0
            && let Some(mut piece) = self.pieces.pop_front()
        {
            piece.bytes.clear();
            self.spare = piece;
        }
    }

    /// All of them after that one, as they are passed on.
    pub(super) fn after(&self, origin: Origin, last: u64) -> impl Iterator<Item = Publication> {
        let mut pieces = self.pieces.iter().flat_map(|piece| std::iter::repeat_n(&piece.bytes, piece.count));
        let all = self.entries.iter().map(move |entry| (entry, entry.is_in_a_piece().then(|| pieces.next()).flatten()));
        all.filter(move |(entry, _)| entry.seq > last).map(move |(entry, piece)| {
            let Entry { seq, after, hops, ref content } = *entry;
            let event = match content {
                Content::Shared(event) => Arc::clone(event),
                Content::Copied { topic, headers, at, length } => {
                    let bytes = piece.map_or(&[][..], |piece| &piece[*at as usize..][..*length as usize]);
                    let payload = Payload { headers: *headers, bytes: Bytes::copy_from_slice(bytes) };
                    Arc::new(Event { topic: topic.clone(), payload })
                }
            };
            Publication { origin, seq, after, round: self.round, hops, event }
        })
    }

    /// What is counted is what is there, in order, up to that one.
    pub(super) fn check(&self, origin: Origin, last: u64) {
        let all: usize = self.entries.iter().map(Entry::bytes).sum();
        assert_eq!(self.bytes, all, "ring: bytes that are kept of {origin}");
        let seqs = || self.entries.iter().map(|entry| entry.seq);
        assert!(seqs().is_sorted_by(|a, b| a < b), "ring: {origin} is kept in order");
        assert!(seqs().next_back().is_none_or(|seq| seq <= last), "ring: what is kept of {origin} was seen");
        let copied = self.entries.iter().filter(|entry| entry.is_in_a_piece()).count();
        assert_eq!(self.pieces.iter().map(|piece| piece.count).sum::<usize>(), copied, "ring: payloads of {origin}");
        assert!(self.pieces.iter().all(|piece| piece.count > 0), "ring: no piece of {origin} is kept for nothing");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use turno_proto::model::ring::Sid;

    use super::*;

    const ORIGIN: Origin = Origin { sid: Sid::new(3), incarnation: 7 };

    fn publication(seq: u64, length: usize) -> Publication {
        let bytes = Bytes::from(vec![seq.to_le_bytes()[0]; length]);
        let payload = Payload { headers: seq.is_multiple_of(2), bytes };
        let topic = format!("t.{}", seq % 3).parse().expect("a topic");
        Publication {
            origin: ORIGIN,
            seq,
            after: seq - 1,
            round: 0,
            hops: 2,
            event: Arc::new(Event { topic, payload }),
        }
    }

    fn length() -> impl Strategy<Value = usize> {
        prop_oneof![
            Just(0),
            1usize..20,
            Just(COPIED_MAX - 1),
            Just(COPIED_MAX),
            Just(COPIED_MAX + 1),
            Just(PIECE_BYTES)
        ]
    }

    proptest! {
        /// What is kept comes out as it went in, whatever its size, and what has come round is gone.
        #[test]
        fn what_is_kept_is_what_was_put_in(steps in proptest::collection::vec((length(), 1usize..80, 0u64..100), 1..40)) {
            let mut kept = Kept::default();
            let mut plain: VecDeque<Publication> = VecDeque::new();
            let (mut seq, mut round) = (0, 0);
            for (length, count, trim) in steps {
                for _ in 0..count {
                    seq += 1;
                    kept.push(&publication(seq, length), 0);
                    plain.push_back(publication(seq, length));
                }
                round = (round + trim).min(seq);
                let (mut count, mut bytes) = (0, 0);
                while let Some(gone) = plain.pop_front_if(|one| one.seq <= round) {
                    count += 1;
                    bytes += bytes_of(&gone.event);
                }
                prop_assert_eq!(kept.trim(round), (count, bytes));
                kept.check(ORIGIN, seq);
                prop_assert_eq!((kept.len(), kept.first()), (plain.len(), plain.front().map(|one| one.seq)));
                let last = round + trim / 2;
                let after: Vec<Publication> = kept.after(ORIGIN, last).collect();
                let wanted = plain.iter().filter(|one| one.seq > last);
                let wanted: Vec<Publication> = wanted.cloned().map(|one| Publication { round, ..one }).collect();
                prop_assert_eq!(after, wanted);
            }
        }
    }

    #[test]
    fn memory_is_taken_in_pieces_and_given_back() {
        let mut kept = Kept::default();
        for seq in 1..=1_000 {
            kept.push(&publication(seq, 1_000), 0);
        }
        assert_eq!(kept.pieces.len(), 1_000_usize.div_ceil(PIECE_BYTES / 1_000));
        kept.trim(1_000);
        assert_eq!((kept.pieces.len(), kept.spare.bytes.capacity()), (0, PIECE_BYTES), "but for one");
        kept.push(&publication(1_001, 1_000), 0);
        assert_eq!((kept.pieces.len(), kept.spare.bytes.capacity()), (1, 0), "which is used again");
    }
}
