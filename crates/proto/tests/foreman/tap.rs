//! Listens to both directions of a conversation and holds it to the rules of numbers, order and answers.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::foreman::{Counts, ForemanFrame, ForemanKind, ForemanSettings, Role};

#[derive(Debug, Default)]
struct Side {
    /// How often its numbers began anew.
    count: u32,
    /// Its requests of this count that have no answer yet.
    open: BTreeSet<u32>,
    /// Requests it got in this count and has not answered.
    unanswered: BTreeMap<u32, ForemanKind>,
    /// The highest number it sent or got in this count.
    seen: Option<u32>,
    last_own: Option<u32>,
    reset: Option<u32>,
}

/// What was said so far.
#[derive(Debug)]
pub(crate) struct Tap {
    settings: ForemanSettings,
    worker: Side,
    foreman: Side,
    pub(crate) resets: u32,
    pub(crate) overflows: u32,
}

impl Tap {
    pub(crate) fn new(settings: ForemanSettings) -> Self {
        Self { settings, worker: Side::default(), foreman: Side::default(), resets: 0, overflows: 0 }
    }

    /// A new connection.
    pub(crate) fn cut(&mut self) {
        (self.worker, self.foreman) = (Side::default(), Side::default());
    }

    /// `role` is about to be given that frame.
    pub(crate) fn gets(&mut self, role: Role, frame: &ForemanFrame) {
        let side = self.side(role);
        let seq = frame.seq();
        match frame {
            ForemanFrame::Ok { .. } | ForemanFrame::Error { .. } => {}
            ForemanFrame::Reset { .. } if side.reset == Some(seq) => side.begin_anew(),
            _ => {
                side.unanswered.insert(seq, frame.kind());
                side.seen = side.seen.max(Some(seq));
            }
        }
    }

    /// `role` wrote that frame.
    pub(crate) fn says(&mut self, role: Role, frame: &ForemanFrame) {
        let (seq, kind) = (frame.seq(), frame.kind());
        let banner = role == Role::Foreman && *frame == ForemanFrame::Ok { seq: 0, counts: Counts::ZERO };
        match frame {
            ForemanFrame::Ok { .. } if banner && !self.foreman.unanswered.contains_key(&0) => {}
            ForemanFrame::Ok { .. } | ForemanFrame::Error { .. } => self.answers(role, seq),
            ForemanFrame::Reset { .. } if seq % 2 != role.parity() => {
                self.answers(role, seq);
                self.side(role).begin_anew();
                self.resets += 1;
            }
            _ => self.asks(role, kind, seq),
        }
        if let ForemanFrame::Error { code, .. } = frame {
            self.overflows += u32::from(*code == turno_proto::foreman::ErrorCode::Overflow);
        }
    }

    /// Nothing is unanswered any more.
    pub(crate) fn assert_all_answered(&self) {
        for side in [&self.worker, &self.foreman] {
            assert!(
                side.open.is_empty() && side.unanswered.is_empty() && side.reset.is_none(),
                "unanswered: {self:#?}"
            );
        }
        assert_eq!(self.worker.count, self.foreman.count, "both began anew as often");
    }

    fn answers(&mut self, role: Role, seq: u32) {
        let answered = self.side(role).unanswered.remove(&seq);
        assert!(answered.is_some(), "{role:?} answers {seq}, which it never got or answered before");
        let (mine, other) = match role {
            Role::Worker => (&self.worker, &mut self.foreman),
            Role::Foreman => (&self.foreman, &mut self.worker),
        };
        assert_eq!(mine.count, other.count, "{role:?} answers {seq} when the other has begun anew");
        if answered != Some(ForemanKind::Reset) {
            assert!(other.open.remove(&seq), "{role:?} answers {seq}, which nobody waits for");
        }
    }

    fn asks(&mut self, role: Role, kind: ForemanKind, seq: u32) {
        let max = self.settings.seq_max;
        let last = if max % 2 == role.parity() { max } else { max - 1 };
        let side = self.side(role);
        assert_eq!(seq % 2, role.parity(), "{role:?} has its own parity");
        assert!(side.seen.is_none_or(|seen| seq > seen), "{role:?} asks {seq} after {:?}", side.seen);
        assert!(if kind == ForemanKind::Reset { seq <= last } else { seq < last }, "{role:?} asks {seq} of {last}");
        assert!(side.open.is_empty() && side.reset.is_none(), "{role:?} asks {seq} while it waits: {side:?}");
        assert!(side.unanswered.is_empty(), "{role:?} asks {seq} before it answered {:?}", side.unanswered);
        if side.last_own.is_none() && role == Role::Worker {
            assert_eq!((kind, seq), (ForemanKind::Hello, 0), "the first request is HELLO");
        }
        side.seen = Some(seq);
        side.last_own = Some(seq);
        if kind == ForemanKind::Reset {
            side.reset = Some(seq);
        } else {
            side.open.insert(seq);
        }
    }

    const fn side(&mut self, role: Role) -> &mut Side {
        match role {
            Role::Worker => &mut self.worker,
            Role::Foreman => &mut self.foreman,
        }
    }
}

impl Side {
    fn begin_anew(&mut self) {
        *self = Self { count: self.count + 1, ..Self::default() };
    }
}
