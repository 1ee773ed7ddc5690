//! Publications of one origin that have not come round yet.
//!
//! There are many of these, and each is kept for a whole round: in allocations of their own they would be cold when they are
//! freed, which costs more than all else that is done with them. So small ones lie one behind the other in a few pieces of
//! memory, topic and payload, and only large ones are on their own.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use turno_proto::model::ring::{Origin, Publication, PublicationRef};
use turno_proto::model::topic::{Event, EventRef};
use turno_proto::model::{Payload, Topic};

/// Bytes that a publication takes beside its topic and its payload.
const OVERHEAD_BYTES: usize = 64;
/// Payloads up to this size are copied into pieces.
const COPIED_MAX: usize = 1024;
/// How much memory is taken at a time.
const PIECE_BYTES: usize = 64 * 1024;
/// Spare pieces that are kept for the next use, at most.
const SPARE_MAX: usize = 8;

/// How many bytes an event counts while it is under way.
pub(super) fn bytes_of(event: EventRef<'_>) -> usize {
    event.topic.as_str().len() + event.bytes.len() + OVERHEAD_BYTES
}

/// Memory that is not needed now, of all origins.
#[derive(Debug, Default)]
pub(super) struct SpareBuffers(Vec<Vec<u8>>);

/// Publications of one origin, oldest first.
#[derive(Debug, Default)]
pub(super) struct KeptPublications {
    entries: VecDeque<PublicationEntry>,
    /// Where the small ones lie, in the same order. No piece is without one.
    pieces: VecDeque<Piece>,
    /// The large ones, in the same order.
    large: VecDeque<Arc<Event>>,
    /// Bytes that all of them count as.
    bytes: usize,
    /// All up to this one have come round.
    round: u64,
    /// The last roll call that was sent before the last of them came.
    roll: u64,
}

#[derive(Debug)]
struct Piece {
    bytes: Vec<u8>,
    /// How many in it are still kept, the last of those that came.
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct PublicationEntry {
    seq: u64,
    after: u64,
    /// Where it begins in its piece.
    at: u32,
    payload: u32,
    topic: u8,
    hops: u8,
    headers: bool,
    is_large: bool,
}

impl PublicationEntry {
    /// Of one in a piece.
    const fn bytes(&self) -> usize {
        self.topic as usize + self.payload as usize
    }
}

impl KeptPublications {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes that all of them count as.
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
    pub(super) fn push(&mut self, publication: PublicationRef<'_>, roll: u64, spare: &mut SpareBuffers) {
        let PublicationRef { seq, after, round, hops, event, .. } = publication;
        (self.round, self.roll) = (self.round.max(round), roll);
        let topic = event.topic.as_str().as_bytes();
        let sizes = (u8::try_from(topic.len()), u32::try_from(event.bytes.len()));
        self.bytes += bytes_of(event);
        let entry = match sizes {
            (Ok(topic_bytes), Ok(payload)) if event.bytes.len() <= COPIED_MAX => {
                let at = self.copy(topic, event.bytes, spare);
                PublicationEntry {
                    seq,
                    after,
                    at,
                    payload,
                    topic: topic_bytes,
                    hops,
                    headers: event.headers,
                    is_large: false,
                }
            }
            _ => {
                self.large.push_back(Arc::new(event.to_event()));
                PublicationEntry {
                    seq,
                    after,
                    at: 0,
                    payload: 0,
                    topic: 0,
                    hops,
                    headers: event.headers,
                    is_large: true,
                }
            }
        };
        self.entries.push_back(entry);
    }

    /// Where it is, in the last piece.
    fn copy(&mut self, topic: &[u8], payload: &[u8], spare: &mut SpareBuffers) -> u32 {
        let has_room = |piece: &&mut Piece| piece.bytes.len() + topic.len() + payload.len() <= PIECE_BYTES;
        if self.pieces.back_mut().filter(has_room).is_none() {
            let bytes = spare.0.pop().unwrap_or_else(|| Vec::with_capacity(PIECE_BYTES));
            self.pieces.push_back(Piece { bytes, count: 0 });
        }
        let Some(piece) = self.pieces.back_mut() else { unreachable!("there is one with room") };
        let at = piece.bytes.len();
        piece.bytes.extend_from_slice(topic);
        piece.bytes.extend_from_slice(payload);
        piece.count += 1;
        u32::try_from(at).expect("a piece is small")
    }

    /// All up to that one have come round. Returns how many these are, and what they counted.
    pub(super) fn trim(&mut self, round: u64, spare: &mut SpareBuffers) -> (usize, usize) {
        self.round = self.round.max(round);
        let (mut count, mut bytes) = (0, 0);
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.seq <= round) {
            count += 1;
            if entry.is_large {
                bytes += self.large.pop_front().map_or(0, |event| bytes_of(EventRef::from(&*event)));
            } else {
                bytes += entry.bytes() + OVERHEAD_BYTES;
                self.leave_piece(spare);
            }
        }
        self.bytes -= bytes;
        (count, bytes)
    }

    /// The oldest that is in a piece is gone.
    fn leave_piece(&mut self, spare: &mut SpareBuffers) {
        let Some(piece) = self.pieces.front_mut() else { return };
        piece.count -= 1;
        if piece.count == 0
            && let Some(Piece { mut bytes, .. }) = self.pieces.pop_front()
            && spare.0.len() < SPARE_MAX
        {
            bytes.clear();
            spare.0.push(bytes);
        }
    }

    /// All of them after that one, as they are passed on.
    pub(super) fn after(&self, origin: Origin, last: u64) -> impl Iterator<Item = Publication> {
        let mut pieces = self.pieces.iter().flat_map(|piece| std::iter::repeat_n(&piece.bytes, piece.count));
        let mut large = self.large.iter();
        let all = self.entries.iter().map(move |entry| {
            let piece = if entry.is_large { None } else { pieces.next() };
            (entry, piece, if entry.is_large { large.next() } else { None })
        });
        all.filter(move |(entry, ..)| entry.seq > last).filter_map(move |(entry, piece, large)| {
            let PublicationEntry { seq, after, hops, .. } = *entry;
            let event = piece.map(|piece| Arc::new(copied(entry, piece))).or_else(|| large.cloned())?;
            Some(Publication { origin, seq, after, round: self.round, hops, event })
        })
    }

    /// Asserts that counts and order are right, up to that publication.
    pub(super) fn check(&self, origin: Origin, last: u64) {
        let small = || self.entries.iter().filter(|entry| !entry.is_large);
        let large: usize = self.large.iter().map(|event| bytes_of(EventRef::from(&**event))).sum();
        let all = small().map(|entry| entry.bytes() + OVERHEAD_BYTES).sum::<usize>() + large;
        assert_eq!(self.bytes, all, "ring: bytes that are kept of {origin}");
        assert_eq!(self.entries.len(), small().count() + self.large.len(), "ring: large ones of {origin}");
        let seqs = || self.entries.iter().map(|entry| entry.seq);
        assert!(seqs().is_sorted_by(|a, b| a < b), "ring: {origin} is kept in order");
        assert!(seqs().next_back().is_none_or(|seq| seq <= last), "ring: what is kept of {origin} was seen");
        let in_pieces: usize = self.pieces.iter().map(|piece| piece.count).sum();
        assert_eq!(in_pieces, small().count(), "ring: small ones of {origin}");
        assert!(self.pieces.iter().all(|piece| piece.count > 0), "ring: no piece of {origin} is kept for nothing");
    }
}

/// One that lies in a piece, as an event of its own.
fn copied(entry: &PublicationEntry, piece: &[u8]) -> Event {
    let bytes = &piece[entry.at as usize..][..entry.bytes()];
    let (topic, payload) = bytes.split_at(usize::from(entry.topic));
    let topic = Topic::from_bytes(topic).expect("it was a topic when it came");
    Event { topic, payload: Payload { headers: entry.headers, bytes: Bytes::copy_from_slice(payload) } }
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
        /// Publications come out as they went in, whatever their size, and those that have come round are gone.
        #[test]
        fn what_is_kept_is_what_was_put_in(steps in proptest::collection::vec((length(), 1usize..80, 0u64..100), 1..40)) {
            let (mut kept, mut spare) = (KeptPublications::default(), SpareBuffers::default());
            let mut plain: VecDeque<Publication> = VecDeque::new();
            let (mut seq, mut round) = (0, 0);
            for (length, count, trim) in steps {
                for _ in 0..count {
                    seq += 1;
                    kept.push(PublicationRef::from(&publication(seq, length)), 0, &mut spare);
                    plain.push_back(publication(seq, length));
                }
                round = (round + trim).min(seq);
                let (mut count, mut bytes) = (0, 0);
                while let Some(gone) = plain.pop_front_if(|one| one.seq <= round) {
                    count += 1;
                    bytes += bytes_of(EventRef::from(&*gone.event));
                }
                prop_assert_eq!(kept.trim(round, &mut spare), (count, bytes));
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
        let (mut kept, mut spare) = (KeptPublications::default(), SpareBuffers::default());
        let push = |kept: &mut KeptPublications, spare: &mut SpareBuffers, seq| {
            kept.push(PublicationRef::from(&publication(seq, 997)), 0, spare);
        };
        for seq in 1..=1_000 {
            push(&mut kept, &mut spare, seq);
        }
        assert_eq!(kept.pieces.len(), 1_000_usize.div_ceil(PIECE_BYTES / 1_000), "997 of payload, three of topic");
        kept.trim(1_000, &mut spare);
        assert_eq!((kept.pieces.len(), spare.0.len()), (0, SPARE_MAX), "some stay for the next use");
        push(&mut kept, &mut spare, 1_001);
        assert_eq!((kept.pieces.len(), spare.0.len()), (1, SPARE_MAX - 1), "such as this one");
        assert_eq!(size_of::<PublicationEntry>(), 32, "there are many");
    }
}
