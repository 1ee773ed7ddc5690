//! The beginning of a frame, and the memory it takes until the rest has come.
//!
//! A few bytes are held without asking. For a longer frame the memory of all of it is set aside first, so that it can be
//! completed. Where there is none, the connection is not read from until there is. A message is refused instead if the engine would
//! refuse it anyway, and so is any call after a while: the rest of it is thrown away, and the peer is told. What must not be lost,
//! as a reply, ends the connection after that while, and so does what another broker sends.

use std::sync::Arc;

use tracing::warn;
use turno_proto::model::limits::{
    FOREMAN_HELLO_BYTES_MAX, FRAME_BYTES_PER_SECOND_MIN, FRAME_HELD_BYTES, FRAME_STALL_MS, FRAME_WAIT_MS,
    GREETINGS_BYTES_MAX, OUT_TIGHT_BYTES, OUT_TIGHT_STALL_MS, READ_BYTES,
};
use turno_proto::model::{Code, ConnId, Mono};
use turno_proto::native::{Frame, HEADER_LEN, Header, Kind, Raw, encode};

use super::lines::{Line, Lines, Phase, Talk};
use super::{Connections, EngineHandle};
use crate::log_limit;
use crate::memory::{Account, Meter};
use crate::turn::{Leftover, Turn};

/// Connections that are asked in one go whether there is memory for them now.
const GRANTS_MAX: usize = 64;

/// A long frame that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun {
    bytes: usize,
    seq: u32,
    claim: Claim,
}

/// The fate of a frame without memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    /// It is answered with UNDELIVERED.
    Message,
    /// It is answered with ERROR.
    Call,
    /// It must not be lost, and makes room.
    Settling,
    /// It comes from a job worker, or over a link, where what was begun must come to its end.
    Whole,
    /// It comes from a member of the ring, which must always be read from.
    Ring,
}

/// How it goes on.
#[derive(Debug)]
pub(super) enum Reading {
    /// Memory is set aside; since when, and when something came last.
    Aside { begun: Begun, since: Mono, last: Mono },
    /// Nothing is read until there is memory.
    Waits { begun: Begun, since: Mono },
    /// It is refused: so much is still to be thrown away.
    Skips { begun: Begun, left: usize },
}

impl Claim {
    const fn can_be_refused(self) -> bool {
        matches!(self, Self::Message | Self::Call)
    }
}

/// The frame that begins with these bytes, once it is known how long it is. The session of a ZeroMQ peer holds the beginning
/// of a message itself; it cannot be refused, since the peer would not hear of it.
fn begun(talk: &Talk, bytes: &[u8]) -> Option<Begun> {
    if let Talk::Zmtp(talk) = talk {
        let claim = if talk.settles() { Claim::Settling } else { Claim::Whole };
        return talk.claimed_bytes().map(|bytes| Begun { bytes, seq: 0, claim });
    }
    let header = Header::from_bytes(bytes.first_chunk::<HEADER_LEN>()?)?;
    let claim = match (talk, Kind::from_number(header.kind)) {
        (Talk::Ring(_), _) => Claim::Ring,
        (Talk::Link(_) | Talk::Foreman(_), _) => Claim::Whole,
        (Talk::Native(_), Some(Kind::Request | Kind::Send | Kind::Broadcast)) => Claim::Message,
        (Talk::Native(_), Some(Kind::Reply | Kind::Ack | Kind::Fail | Kind::Progress)) => Claim::Settling,
        (Talk::Native(_) | Talk::Zmtp(_), _) => Claim::Call,
    };
    let bytes = HEADER_LEN.saturating_add(usize::try_from(header.length).unwrap_or(usize::MAX));
    Some(Begun { bytes, seq: header.seq, claim })
}

/// Too much waits for a peer now that memory is short, if it does not read it, or if there is no memory at all.
pub(super) fn is_short(line: &Line, reads: bool, meter: &Meter) -> bool {
    line.waiting() > OUT_TIGHT_BYTES.saturating_add(line.slot_limited + line.longest)
        && meter.is_tight()
        && !(reads && meter.has_room(0))
}

impl Line {
    /// Bytes that the out-buffer takes; events that wait are counted where they are shared.
    fn out_bytes(&self) -> usize {
        self.out.capacity() + self.events.as_ref().map_or(0, |waiting| waiting.table_bytes())
    }

    fn in_bytes(&self) -> usize {
        let aside = match self.reading.as_deref() {
            Some(Reading::Aside { begun, .. }) => begun.bytes,
            _ => 0,
        };
        aside.max(self.leftover.capacity() + self.begun_bytes()) + self.held_bytes()
    }

    /// Bytes of requests that a job worker made before the last was answered, or of envelopes of a ZeroMQ peer.
    fn held_bytes(&self) -> usize {
        match &self.talk {
            Talk::Foreman(talk) => talk.held_bytes(),
            Talk::Zmtp(talk) => talk.dialect_bytes(),
            Talk::Native(_) | Talk::Link(_) | Talk::Ring(_) => 0,
        }
    }

    /// Bytes of the beginning of a message that a session holds itself.
    fn begun_bytes(&self) -> usize {
        match &self.talk {
            Talk::Zmtp(talk) => talk.session.held_bytes(),
            Talk::Native(_) | Talk::Foreman(_) | Talk::Link(_) | Talk::Ring(_) => 0,
        }
    }

    /// Why a frame that has begun ends its connection now, or what is refused. `contested`: somebody waits for memory.
    fn overdue(&self, now: Mono, contested: bool) -> bool {
        match self.reading.as_deref() {
            Some(Reading::Waits { since, .. }) => now.millis_since(*since) >= FRAME_WAIT_MS,
            Some(Reading::Aside { since, last, .. }) if contested => {
                let late_ms = now.millis_since(*since).saturating_sub(FRAME_STALL_MS);
                let least = late_ms.saturating_mul(FRAME_BYTES_PER_SECOND_MIN) / 1_000;
                now.millis_since(*last) >= FRAME_STALL_MS
                    || ((self.leftover.bytes().len() + self.begun_bytes()) as u64) < least
            }
            _ => false,
        }
    }
}

impl Lines {
    /// Counts what a connection's out-buffer takes.
    #[inline]
    pub(super) fn count_out(&mut self, id: ConnId) {
        if let Some((line, account)) = self.with_account(id) {
            let bytes = line.out_bytes();
            account.outgoing(&mut line.counted_out, bytes);
        }
    }

    /// Counts what a connection's in-buffer takes.
    pub(super) fn count_in(&mut self, id: ConnId) {
        if let Some((line, account)) = self.with_account(id) {
            let bytes = line.in_bytes();
            account.incoming(&mut line.counted_in, bytes);
        }
    }

    /// The frame in the in-buffer is complete, and counts with its own size from now on.
    fn hand_on(&mut self, id: ConnId) {
        if let Some((line, account)) = self.with_account(id) {
            line.reading = None;
            account.incoming(&mut line.counted_in, 0);
        }
    }

    /// Sets memory aside for a frame. False: there is none.
    fn set_aside(&mut self, now: Mono, id: ConnId, begun: Begun) -> bool {
        let Some((line, account)) = self.with_account(id) else { return false };
        let bytes = begun.bytes + line.held_bytes();
        let aside = account.set_aside(&mut line.counted_in, bytes, begun.claim == Claim::Settling);
        if aside {
            line.reading = Some(Box::new(Reading::Aside { begun, since: now, last: now }));
        }
        aside
    }

    fn set_waiting(&mut self) {
        self.account.set_waiting(self.waits.len() as u64);
    }
}

impl<D: EngineHandle> Connections<D> {
    /// These bytes came from a connection. If the turn is cut, [`Self::go_on`] is to follow before the next bytes.
    pub fn take(&mut self, now: Mono, id: ConnId, bytes: &[u8]) -> Turn {
        let bytes = self.skip(id, bytes);
        let Some(line) = self.talking(now, id) else { return Turn::Done };
        if matches!(line.talk, Talk::Zmtp(_)) {
            if let Some(Reading::Aside { last, .. }) = line.reading.as_deref_mut() {
                *last = now;
            }
        } else if !line.leftover.is_empty() {
            let most = begun(&line.talk, line.leftover.bytes()).map_or(0, |begun| begun.bytes);
            line.leftover.extend(bytes, most);
            if let Some(Reading::Aside { begun, last, .. }) = line.reading.as_deref_mut() {
                *last = now;
                if line.leftover.bytes().len() < begun.bytes {
                    return Turn::Done;
                }
                self.lines.hand_on(id);
            }
            return self.go_on(now, id);
        }
        self.share_memory();
        let (used, turn) = self.take_frames(now, id, bytes);
        if used < bytes.len()
            && let Some(line) = self.lines.get_mut(id)
        {
            let rest = &bytes[used..];
            line.leftover.extend(rest, 0);
        }
        self.keep(now, id, turn);
        self.settle(now);
        turn
    }

    /// Another turn of a connection whose last one was cut.
    pub fn go_on(&mut self, now: Mono, id: ConnId) -> Turn {
        self.share_memory();
        let Some(line) = self.talking(now, id) else { return Turn::Done };
        let mut leftover = std::mem::take(&mut line.leftover);
        let (used, turn) = self.take_frames(now, id, leftover.bytes());
        leftover.consume(used);
        if let Some(line) = self.lines.get_mut(id).filter(|line| !line.is_doomed()) {
            line.leftover = leftover;
        }
        self.keep(now, id, turn);
        self.settle(now);
        turn
    }

    /// Bytes that one read may take: few when memory is short, since they may have to be held.
    pub fn read_bytes(&self) -> usize {
        if self.lines.account.meter().has_room(READ_BYTES as u64) { READ_BYTES } else { FRAME_HELD_BYTES }
    }

    /// The memory of all connections, and of the engine.
    pub const fn meter(&self) -> &Arc<Meter> {
        self.lines.account.meter()
    }

    /// Counts in that meter, which others share.
    pub(crate) fn set_meter(&mut self, meter: Arc<Meter>) {
        self.lines.account = Account::new(meter);
    }

    /// Connections that may be read from again, since there is memory for what they have begun.
    pub fn take_granted(&mut self) -> Vec<ConnId> {
        std::mem::take(&mut self.lines.granted)
    }

    /// The engine hears how much connections hold, and tells what it holds itself.
    pub(super) fn share_memory(&mut self) {
        self.engine_handle.share_memory(self.lines.account.meter());
    }

    /// Throws away what belongs to a frame that was refused. The bytes behind it.
    fn skip<'a>(&mut self, id: ConnId, bytes: &'a [u8]) -> &'a [u8] {
        let Some(line) = self.lines.get_mut(id) else { return bytes };
        let Some(Reading::Skips { begun, left }) = line.reading.as_deref_mut() else { return bytes };
        let skipped = bytes.len().min(*left);
        *left -= skipped;
        if *left == 0 {
            let Begun { seq, claim, .. } = *begun;
            line.reading = None;
            if log_limit::admits(log_limit::LogKind::Memory) {
                warn!(code = Code::OverMemory.name(), count = 1, "refused client requests");
            }
            self.lines.write(id, |out| refuse(seq, claim, out));
        }
        &bytes[skipped..]
    }

    /// Keeps the rest of a turn's bytes, as far as there is memory for it.
    fn keep(&mut self, now: Mono, id: ConnId, turn: Turn) {
        self.share_memory();
        let Some(line) = self.lines.get(id).filter(|line| !line.is_doomed()) else { return };
        let greets = line.phase == Phase::Greeting;
        let held = line.leftover.bytes().len();
        let begun = begun(&line.talk, line.leftover.bytes()).filter(|begun| begun.bytes > FRAME_HELD_BYTES);
        let waits = matches!(line.reading.as_deref(), Some(Reading::Waits { .. }));
        if matches!(line.talk, Talk::Zmtp(_)) && self.goes_on(id, begun) {
            return;
        }
        self.lines.count_in(id);
        if waits && begun.is_some() {
            return;
        }
        let Some(begun) = begun.filter(|_| turn == Turn::Done) else {
            if held > HEADER_LEN && turn == Turn::Done && !self.meter().has_room(0) {
                self.give_up_for_memory(now, id);
            }
            return;
        };
        if greets && !self.may_greet(now, id, begun.bytes) {
            return self.give_up_for_memory(now, id);
        }
        let refused = self.is_refused(begun);
        if !refused && self.lines.set_aside(now, id, begun) {
            return;
        }
        if refused {
            self.skip_rest(id, begun, held);
        } else if begun.claim == Claim::Ring || greets {
            self.give_up_for_memory(now, id);
        } else if let Some(line) = self.lines.get_mut(id) {
            line.reading = Some(Box::new(Reading::Waits { begun, since: now }));
            self.lines.waits.push_back(id);
            self.lines.set_waiting();
        }
    }

    /// Whether the memory that is set aside for a message of a ZeroMQ peer is enough for what is known of it now. If the message
    /// is complete, nothing is set aside any more.
    fn goes_on(&mut self, id: ConnId, begun: Option<Begun>) -> bool {
        let Some(line) = self.lines.get_mut(id) else { return true };
        match (line.reading.as_deref(), begun) {
            (Some(Reading::Aside { begun: aside, .. }), Some(begun)) if begun.bytes <= aside.bytes => true,
            (Some(Reading::Aside { .. }), _) => {
                line.reading = None;
                false
            }
            _ => false,
        }
    }

    /// Whether a connection in its greeting may send a frame that long: only a job worker with many tasks does. The oldest of
    /// others that do make room.
    fn may_greet(&mut self, now: Mono, id: ConnId, bytes: usize) -> bool {
        let most = GREETINGS_BYTES_MAX / self.greetings_shares;
        let long = |board: &Self| -> Vec<(ConnId, usize)> {
            let greets = |line: &&Line| line.phase == Phase::Greeting && line.counted_in > FRAME_HELD_BYTES;
            let lines = board.greetings.iter().filter_map(|id| board.lines.get(*id)).filter(greets);
            lines.filter(|line| line.id != id).map(|line| (line.id, line.counted_in)).collect()
        };
        let others = long(self);
        let mut all = others.iter().map(|(_, bytes)| bytes).sum::<usize>() + bytes;
        for (other, its) in others {
            if all <= most {
                break;
            }
            all -= its;
            self.give_up(now, other, Code::GreetingTimeout);
        }
        bytes <= FOREMAN_HELLO_BYTES_MAX.min(most)
    }

    /// Whether a frame is refused that could wait: the engine would refuse the message.
    fn is_refused(&self, begun: Begun) -> bool {
        begun.claim == Claim::Message && self.meter().refuses(begun.bytes as u64)
    }

    /// A frame that waited for memory is refused: its connection goes on.
    fn refuse_waiting(&mut self, id: ConnId, begun: Begun) {
        let held = self.lines.get(id).map_or(0, |line| line.leftover.bytes().len());
        self.skip_rest(id, begun, held);
        self.lines.granted.push(id);
    }

    /// A frame is refused, of which so much has come: the rest is not kept.
    fn skip_rest(&mut self, id: ConnId, begun: Begun, held: usize) {
        let Some(line) = self.lines.get_mut(id) else { return };
        line.leftover = Leftover::default();
        line.reading = Some(Box::new(Reading::Skips { begun, left: begun.bytes - held }));
        self.lines.count_in(id);
        self.meter().count_refused();
    }

    pub(super) fn give_up_for_memory(&mut self, now: Mono, id: ConnId) {
        self.meter().count_closed();
        if log_limit::admits(log_limit::LogKind::Memory) {
            let address = self.lines.get(id).map(|line| line.address.as_str()).unwrap_or_default();
            let (used, max) = (self.meter().total(), self.limits.memory_bytes_max);
            warn!(address, used, max, "closing a connection: memory limit reached (limits.memory)");
        }
        self.give_up(now, id, Code::OverMemory);
    }

    /// Lets those go on for which there is memory now.
    pub(super) fn grant(&mut self, now: Mono) {
        let mut at = 0;
        while at < self.lines.waits.len().min(GRANTS_MAX) {
            let id = self.lines.waits[at];
            let begun = match self.lines.get(id).and_then(|line| line.reading.as_deref()) {
                Some(Reading::Waits { begun, .. }) => Some(*begun),
                _ => None,
            };
            match begun {
                Some(begun) if self.is_refused(begun) => {
                    self.lines.waits.remove(at);
                    self.lines.set_waiting();
                    self.refuse_waiting(id, begun);
                }
                Some(begun) if !self.lines.set_aside(now, id, begun) => at += 1,
                granted => {
                    self.lines.waits.remove(at);
                    self.lines.granted.extend(granted.map(|_| id));
                    self.lines.set_waiting();
                }
            }
        }
    }

    /// Looks at frames that have begun, and at what waits for those that do not read: who takes too long ends, or is refused.
    pub(super) fn sweep_memory(&mut self, now: Mono) {
        let contested = self.meter().is_contested();
        let short = contested || self.meter().is_tight();
        let ids: Vec<ConnId> = self.lines.iter().map(|line| line.id).collect();
        for id in ids {
            self.lines.count_out(id);
            let Some(line) = self.lines.get(id).filter(|line| !line.is_doomed()) else { continue };
            if line.overdue(now, contested) {
                match line.reading.as_deref() {
                    Some(Reading::Waits { begun, .. }) if begun.claim.can_be_refused() => {
                        let begun = *begun;
                        self.refuse_waiting(id, begun);
                    }
                    _ => self.give_up_for_memory(now, id),
                }
            } else if short && line.waiting() > OUT_TIGHT_BYTES && line.is_stalled(now, OUT_TIGHT_STALL_MS) {
                self.give_up_for_memory(now, id);
            }
        }
        self.grant(now);
    }
}

/// The end of a frame that was not read.
fn refuse(seq: u32, claim: Claim, out: &mut Vec<u8>) {
    let code = Code::OverMemory;
    match claim {
        Claim::Message => encode(&Frame::Undelivered { seq, code, raw: Raw { headers: false, bytes: &[] } }, out),
        _ => encode(&Frame::Error { seq, code, fatal: false, detail: code.text().what }, out),
    }
}

#[cfg(test)]
mod tests;
