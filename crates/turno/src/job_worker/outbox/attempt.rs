//! Output of one attempt: its head, which is sent as it comes, and its tail, which is kept until the end is known.

use turno_proto::model::archive::{OutputPiece, OutputStream};
use turno_proto::model::job::JobId;
use turno_proto::model::{Mono, limits};

use super::stream_buffer::{StreamBuffer, StreamPiece};

/// The attempt that wrote the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AttemptId {
    pub(super) job: JobId,
    pub(super) task: u32,
    pub(super) attempt: u32,
}

impl AttemptId {
    fn piece(self, piece: StreamPiece, live: bool) -> OutputPiece {
        let Self { job, task, attempt } = self;
        let StreamPiece { stream, at, bytes } = piece;
        OutputPiece { job, task, attempt, stream, at, live, bytes, lost: 0 }
    }
}

/// The handling of an attempt's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputHandling {
    /// It is sent.
    Sent,
    /// The broker does not want it: it is counted and forgotten.
    Refused,
}

#[derive(Debug)]
pub(super) struct OutboxAttempt {
    pub(super) id: AttemptId,
    pub(super) fate: OutputHandling,
    /// The part of the beginning that is not sent.
    head: StreamBuffer,
    /// Where the beginning ends.
    head_end: u64,
    /// Nothing can be added to the beginning, for something came after it.
    is_shut: bool,
    /// Output after the beginning, as far as it is kept.
    tail: StreamBuffer,
    tail_max: usize,
    /// Up to where the end was shown to those who look at it.
    shown: u64,
    /// When it was shown.
    shown_at: Mono,
    /// When the oldest byte of the beginning came that is not sent.
    since: Mono,
    /// Both streams have ended.
    pub(super) ended: Option<Mono>,
    /// Since when its task waits for room.
    pub(super) held: Option<Mono>,
    /// Bytes of it that were sent and not answered, if there are any. There is one call with them at a time, so that
    /// they arrive in order.
    pub(super) under_way: Option<u64>,
    /// When it is to be looked at, as the table of those to be sent has it.
    pub(super) due: Option<Mono>,
    /// Something of it was lost.
    pub(super) has_lost: bool,
}

/// Room in a call.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) pieces: usize,
    pub(super) bytes: usize,
}

impl OutboxAttempt {
    pub(super) fn new(id: AttemptId, per_task: u64) -> Self {
        let mut new = Self {
            id,
            fate: OutputHandling::Sent,
            head: StreamBuffer::new(0),
            head_end: 0,
            is_shut: false,
            tail: StreamBuffer::new(0),
            tail_max: 0,
            shown: 0,
            shown_at: Mono::ZERO,
            since: Mono::ZERO,
            ended: None,
            held: None,
            under_way: None,
            due: None,
            has_lost: false,
        };
        new.set_per_task(per_task);
        new
    }

    /// How much it wrote.
    pub(super) fn written(&self) -> u64 {
        self.head.end().max(self.tail.end())
    }

    /// Bytes in memory, without those under way.
    pub(super) fn len(&self) -> usize {
        self.head.len() + self.tail.len()
    }

    /// The beginning is complete; what comes now may be left out.
    pub(super) fn is_beyond(&self) -> bool {
        self.written() >= self.head_end
    }

    /// How much is kept changes. A beginning that is complete stays as it is.
    pub(super) fn set_per_task(&mut self, per_task: u64) {
        let half = per_task / 2;
        if !self.is_shut {
            self.head_end = half.max(self.head.end());
        }
        self.tail_max = usize::try_from(half).unwrap_or(usize::MAX).min(limits::OUTBOX_TAIL_BYTES_MAX);
        self.tail.skip(self.tail.len().saturating_sub(self.tail_max));
    }

    pub(super) fn wrote(&mut self, now: Mono, stream: OutputStream, bytes: &[u8]) {
        if self.fate == OutputHandling::Refused {
            return;
        }
        if self.head.is_empty() {
            self.since = now;
        }
        let room = usize::try_from(self.head_end.saturating_sub(self.head.end())).unwrap_or(usize::MAX);
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.push(stream, first);
        if !rest.is_empty() {
            self.cut_head();
            self.tail.push_ring(stream, rest, self.tail_max, limits::OUTBOX_RUNS_MAX);
        }
    }

    /// Whether its task may write on. What comes after the beginning always has room.
    pub(super) fn has_room(&self) -> bool {
        self.is_beyond()
            || self.fate == OutputHandling::Refused
            || (self.head.len() < limits::OUTBOX_HEAD_BYTES_MAX && self.head.runs() < limits::OUTBOX_RUNS_MAX)
    }

    /// The beginning is what there is of it.
    pub(super) fn cut_head(&mut self) {
        if !self.is_shut {
            (self.is_shut, self.head_end, self.tail) = (true, self.head.end(), StreamBuffer::new(self.head.end()));
        }
    }

    /// When something of it is to be sent.
    pub(super) fn next_due(&self, followed: bool) -> Option<Mono> {
        if self.under_way.is_some() || self.fate == OutputHandling::Refused {
            return None;
        }
        if !self.head.is_empty() {
            let much = self.head.len() >= limits::PIECE_BYTES_MAX
                || self.head.runs() >= limits::OUTPUT_PIECES_MAX
                || self.ended.is_some();
            return Some(if much { self.since } else { self.since.plus_millis(limits::OUTBOX_LINGER_MS) });
        }
        if let Some(ended) = self.ended {
            return (!self.tail.is_empty()).then_some(ended);
        }
        (followed && self.tail.end() > self.shown && !self.tail.is_empty())
            .then(|| self.shown_at.plus_millis(limits::OUTBOX_SHOW_MS))
    }

    /// Takes what is next, as far as there is room.
    pub(super) fn take(&mut self, now: Mono, followed: bool, room: &mut Room) -> Vec<OutputPiece> {
        let mut pieces = Vec::new();
        let mut bytes = 0;
        while let Some(piece) = room.take_from(&mut self.head) {
            bytes += piece.bytes.len() as u64;
            pieces.push(self.id.piece(piece, false));
        }
        if self.head.is_empty() && self.ended.is_some() {
            while let Some(piece) = room.take_from(&mut self.tail) {
                bytes += piece.bytes.len() as u64;
                pieces.push(self.id.piece(piece, false));
            }
        } else if self.head.is_empty() && followed {
            pieces.extend(self.show(now, room));
        }
        self.since = now;
        if !pieces.is_empty() {
            self.under_way = Some(bytes);
        }
        pieces
    }

    /// Copies of the newest of its end, for those who look at it. It stays, as it may be what is kept.
    fn show(&mut self, now: Mono, room: &mut Room) -> Vec<OutputPiece> {
        let newest = self.tail.end().saturating_sub(room.bytes.min(limits::OUTBOX_SHOW_BYTES) as u64);
        let pieces: Vec<StreamPiece> = self.tail.pieces(self.shown.max(newest), usize::MAX).take(room.pieces).collect();
        if let Some(last) = pieces.last() {
            self.shown = last.at + last.bytes.len() as u64;
            self.shown_at = now;
        }
        room.pieces -= pieces.len();
        room.bytes -= pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>();
        pieces.into_iter().map(|piece| self.id.piece(piece, true)).collect()
    }

    /// All of it is kept, or what is left out was to be left out.
    pub(super) fn is_done(&self) -> bool {
        self.ended.is_some() && self.len() == 0 && self.under_way.is_none()
    }

    /// Gives all of it up; tells how many bytes there were.
    pub(super) fn give_up(&mut self) -> u64 {
        let bytes = self.len() as u64 + self.under_way.take().unwrap_or(0);
        let end = self.written();
        (self.head, self.tail) = (StreamBuffer::new(end), StreamBuffer::new(end));
        self.fate = OutputHandling::Refused;
        bytes
    }

    #[cfg(test)]
    pub(super) fn check(&self) {
        self.head.check();
        self.tail.check();
        assert!(self.tail.len() <= self.tail_max, "the end is a ring");
        if self.fate == OutputHandling::Sent {
            assert!(self.head.end() <= self.head_end, "the beginning ends where it should");
            assert!(self.tail.is_empty() || self.tail.at() >= self.head_end, "the end comes after the beginning");
        }
    }
}

impl Room {
    pub(super) const fn new() -> Self {
        Self { pieces: limits::OUTPUT_PIECES_MAX, bytes: limits::PIECE_BYTES_MAX }
    }

    pub(super) const fn is_none(&self) -> bool {
        self.pieces == 0 || self.bytes == 0
    }

    fn take_from(&mut self, roll: &mut StreamBuffer) -> Option<StreamPiece> {
        if self.is_none() {
            return None;
        }
        let piece = roll.take(self.bytes)?;
        self.pieces -= 1;
        self.bytes -= piece.bytes.len();
        Some(piece)
    }
}
