//! Open requests of one socket.

use std::collections::BTreeMap;

use bytes::Bytes;
use turno_proto::model::limits::MESSAGE_OVERHEAD_BYTES;

use super::dialect::SETUP;
use super::frames::Frames;

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The frames before its answer.
    pub(super) envelope: Frames,
    /// The service that a client of Majordomo named.
    pub(super) service: Option<Bytes>,
    /// Frames of a reply that comes in several pieces, for a socket that gets one answer.
    pieces: Frames,
}

impl Call {
    pub(super) const fn new(envelope: Frames, service: Option<Bytes>) -> Self {
        Self { envelope, service, pieces: Frames::new() }
    }

    pub(super) fn take_pieces(&mut self) -> Frames {
        std::mem::take(&mut self.pieces)
    }

    fn held_bytes(&self) -> usize {
        let frames = self.envelope.iter().chain(&self.pieces).chain(&self.service);
        MESSAGE_OVERHEAD_BYTES + frames.map(|frame| frame.len() + size_of::<Bytes>()).sum::<usize>()
    }
}

/// All of them, by the numbers under which the engine knows them.
#[derive(Debug, Default)]
pub(super) struct Calls {
    last: u32,
    calls: BTreeMap<u32, Call>,
    held_bytes: usize,
}

impl Calls {
    /// One more. The number is one that no other has.
    pub(super) fn insert(&mut self, call: Call) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1) % SETUP;
            if self.last != 0 && !self.calls.contains_key(&self.last) {
                break;
            }
        }
        self.held_bytes += call.held_bytes();
        self.calls.insert(self.last, call);
        self.last
    }

    pub(super) fn has(&self, seq: u32) -> bool {
        self.calls.contains_key(&seq)
    }

    pub(super) fn get(&self, seq: u32) -> Option<&Call> {
        self.calls.get(&seq)
    }

    /// More frames of the reply to one of them.
    pub(super) fn add_piece(&mut self, seq: u32, frames: Frames) {
        if let Some(call) = self.calls.get_mut(&seq) {
            self.held_bytes -= call.held_bytes();
            call.pieces.extend(frames);
            self.held_bytes += call.held_bytes();
        }
    }

    /// One ends.
    pub(super) fn take(&mut self, seq: u32) -> Option<Call> {
        let call = self.calls.remove(&seq)?;
        self.held_bytes -= call.held_bytes();
        Some(call)
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    /// Bytes of all of them.
    pub(super) const fn held_bytes(&self) -> usize {
        self.held_bytes
    }
}
