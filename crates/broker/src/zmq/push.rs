//! PUSH sockets: their messages are stored. What the broker has no room for waits here, since a PUSH socket cannot be
//! told.

use std::collections::BTreeMap;

use turno_engine::Input;
use turno_proto::model::limits::MESSAGE_OVERHEAD_BYTES;
use turno_proto::model::{Code, Outgoing, Payload};
use turno_proto::zmtp::Message;

use super::dialect::{DialectOutput, HANDLE, SETUP};
use super::endpoint::Count;
use super::frames::payload_behind;

/// The messages of one socket that are not stored. Nothing is read from it while one is held, so that they are those of one read, and
/// what the engine refused at once.
#[derive(Debug, Default)]
pub(crate) struct PushSocket {
    /// How many came.
    count: u64,
    /// Those that the engine has, by their numbers there; each with its place in the order in which they came.
    given: BTreeMap<u32, (u64, Payload)>,
    given_bytes: u64,
    /// Those that it has not, in order.
    held: BTreeMap<u64, Payload>,
    held_bytes: u64,
}

fn cost(payload: &Payload) -> u64 {
    (MESSAGE_OVERHEAD_BYTES + payload.len()) as u64
}

/// Whether the same message may be accepted later.
const fn may_pass(code: Code) -> bool {
    matches!(code, Code::OverMemory | Code::OverDisk | Code::Closing)
}

impl PushSocket {
    pub(super) fn hear(&mut self, message: &Message<'_>, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        let Some(payload) = payload_behind(message, 0)? else { return Ok(()) };
        self.count += 1;
        if self.held.is_empty() && self.may_give(&payload, out) {
            self.give(self.count, payload, out);
        } else {
            self.hold(self.count, payload);
        }
        Ok(())
    }

    fn give(&mut self, place: u64, payload: Payload, out: &mut DialectOutput<'_>) {
        let seq = u32::try_from(place % u64::from(SETUP - 1)).unwrap_or_default() + 1;
        self.given_bytes += cost(&payload);
        self.given.insert(seq, (place, payload.clone()));
        out.put(Input::Send { conn: out.conn, message: Outgoing::new(seq, HANDLE, payload) });
    }

    fn hold(&mut self, place: u64, payload: Payload) {
        self.held_bytes += cost(&payload);
        self.held.insert(place, payload);
    }

    /// The engine has an answer about one of them.
    fn take(&mut self, seq: u32) -> Option<(u64, Payload)> {
        let taken = self.given.remove(&seq)?;
        self.given_bytes -= cost(&taken.1);
        Some(taken)
    }

    pub(super) fn stored(&mut self, seq: u32, out: &mut DialectOutput<'_>) {
        self.take(seq);
        self.give_held(out);
    }

    pub(super) fn refused(&mut self, seq: u32, code: Code, out: &DialectOutput<'_>) {
        let Some((place, payload)) = self.take(seq) else { return };
        if may_pass(code) && cost(&payload) <= out.memory.most {
            self.hold(place, payload);
        } else {
            out.count(Count::Refused);
        }
    }

    /// The first of those that are held goes to the engine if there may be room for it. One at a time: a shorter one behind it
    /// must not overtake it.
    pub(super) fn give_held(&mut self, out: &mut DialectOutput<'_>) {
        let may_give = self.held.first_key_value().is_some_and(|(_, payload)| self.may_give(payload, out));
        if may_give
            && self.given.is_empty()
            && let Some((place, payload)) = self.held.pop_first()
        {
            self.held_bytes -= cost(&payload);
            self.give(place, payload, out);
        }
    }

    /// Whether the engine may have room for it; what it never has room for it is to refuse.
    fn may_give(&self, payload: &Payload, out: &DialectOutput<'_>) -> bool {
        let cost = cost(payload);
        self.given_bytes.saturating_add(cost) <= out.memory.free || cost > out.memory.most
    }

    pub(super) fn len(&self) -> usize {
        self.given.len() + self.held.len()
    }

    /// How many wait for room.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// Bytes that it keeps, beside what the engine counts.
    pub(super) fn held_bytes(&self) -> usize {
        usize::try_from(self.held_bytes).unwrap_or(usize::MAX)
    }
}
