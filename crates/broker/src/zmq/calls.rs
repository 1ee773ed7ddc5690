//! Open requests of one socket.

use bytes::Bytes;
use turno_proto::model::limits::MESSAGE_OVERHEAD_BYTES;

use super::dialect::AGAIN;
use super::frames::{Envelope, Frames};

/// A table without calls that has more places than this gives its memory back.
const PLACES_KEPT: usize = 32;

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The frames before its answer.
    pub(super) envelope: Envelope,
    /// The service that a client of Majordomo named.
    pub(super) service: Option<Bytes>,
    /// Frames of a reply that comes in several pieces, for a socket that gets one answer.
    pub(super) pieces: Frames,
}

impl Call {
    pub(super) const fn new(envelope: Envelope, service: Option<Bytes>) -> Self {
        Self { envelope, service, pieces: Frames::new() }
    }

    fn held_bytes(&self) -> usize {
        let frames = self.pieces.iter().chain(&self.service);
        let frames = frames.map(|frame| frame.len() + size_of::<Bytes>()).sum::<usize>();
        MESSAGE_OVERHEAD_BYTES + self.envelope.held_bytes() + frames
    }
}

/// All of them, by the numbers under which the engine knows them. A number is a place in the table: once its request has an
/// outcome, the engine does not name it again, and the next request gets it.
#[derive(Debug, Default)]
pub(super) struct Calls {
    places: Vec<Option<Call>>,
    vacant: Vec<u32>,
    held_bytes: usize,
}

/// Numbers begin with 1.
fn place_of(seq: u32) -> Option<usize> {
    usize::try_from(seq.checked_sub(1)?).ok()
}

impl Calls {
    /// One more. The number is one that no other has.
    pub(super) fn insert(&mut self, call: Call) -> u32 {
        self.held_bytes += call.held_bytes();
        if let Some(seq) = self.vacant.pop()
            && let Some(place) = place_of(seq).and_then(|place| self.places.get_mut(place))
        {
            *place = Some(call);
            return seq;
        }
        self.places.push(Some(call));
        // Reading stops long before.
        u32::try_from(self.places.len()).ok().filter(|seq| *seq < AGAIN).expect("limits keep requests far below 2^32")
    }

    pub(super) fn has(&self, seq: u32) -> bool {
        self.get(seq).is_some()
    }

    pub(super) fn get(&self, seq: u32) -> Option<&Call> {
        self.places.get(place_of(seq)?)?.as_ref()
    }

    /// More frames of the reply to one of them.
    pub(super) fn add_piece(&mut self, seq: u32, frames: Frames) {
        if let Some(call) = place_of(seq).and_then(|place| self.places.get_mut(place)?.as_mut()) {
            self.held_bytes -= call.held_bytes();
            call.pieces.extend(frames);
            self.held_bytes += call.held_bytes();
        }
    }

    /// One ends.
    pub(super) fn take(&mut self, seq: u32) -> Option<Call> {
        let call = self.places.get_mut(place_of(seq)?)?.take()?;
        self.held_bytes -= call.held_bytes();
        self.vacant.push(seq);
        if self.len() == 0 && self.places.capacity() > PLACES_KEPT {
            (self.places, self.vacant) = (Vec::new(), Vec::new());
        }
        Some(call)
    }

    pub(super) const fn len(&self) -> usize {
        self.places.len() - self.vacant.len()
    }

    /// Bytes of all of them.
    pub(super) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(envelope: Envelope) -> Call {
        Call::new(envelope, None)
    }

    /// Calls end in any order; each is found by its number alone, and what they held is given back.
    #[test]
    fn a_call_is_found_by_its_number_until_it_ends() {
        let mut calls = Calls::default();
        let many = u32::try_from(PLACES_KEPT).unwrap() + 1;
        let envelope = |number: u32| Envelope::Other(number.to_be_bytes().into());
        let mut open: Vec<(u32, u32)> =
            (0..many).map(|number| (calls.insert(call(envelope(number))), number)).collect();
        assert!(open.iter().all(|(seq, _)| *seq != 0 && *seq < AGAIN));
        for round in 0..many {
            let (seq, number) = open.swap_remove((round * 7 % many) as usize);
            assert_eq!(calls.take(seq).unwrap().envelope, envelope(number));
            assert!(calls.take(seq).is_none() && !calls.has(seq), "it has one outcome");
            let number = many + round;
            let seq = calls.insert(call(envelope(number)));
            assert!(open.iter().all(|(other, _)| *other != seq), "no other has its number");
            open.push((seq, number));
            assert_eq!(calls.len(), many as usize);
        }
        for (seq, number) in open {
            assert_eq!(calls.take(seq).unwrap().envelope, envelope(number));
        }
        assert_eq!((calls.len(), calls.held_bytes(), calls.places.capacity()), (0, 0, 0));
        assert!(calls.take(0).is_none() && calls.take(AGAIN).is_none());
    }

    /// The envelopes and pieces that calls keep count as memory of their connection.
    #[test]
    fn envelopes_and_pieces_count() {
        let mut calls = Calls::default();
        let seq = calls.insert(call(Envelope::Other(vec![0; 100].into())));
        let before = calls.held_bytes();
        assert!(before >= MESSAGE_OVERHEAD_BYTES + 100);
        calls.add_piece(seq, vec![Bytes::from_static(&[0; 50])]);
        assert!(calls.held_bytes() >= before + 50);
    }
}
