//! Request numbers, their order and RESET: the rules that both ends share.
//!
//! A line has at most one request of its own unanswered, and hands out at most one of the other end's at a time. It
//! decides what may be sent, served or answered now; what the requests mean is its owner's business.

use std::collections::VecDeque;

use super::{BadBody, ConnectionNote, ErrorCode, ForemanFrame, ForemanKind, ForemanSettings, Role, Stop};
use crate::model::{Mono, limits};

/// A request of our own that has no answer yet.
#[derive(Clone, Debug)]
pub(super) enum Sent<O> {
    Request(O),
    Reset,
}

/// The next step for a frame that came.
#[derive(Debug)]
pub(super) enum Verdict {
    /// An OK or ERROR: for [`RequestNumbering::settle`], if it answers something.
    Response(ForemanFrame),
    /// A request whose turn it is.
    Serve(ForemanFrame),
    /// Nothing now: it is held, or it is a RESET that comes when all before it is answered.
    Wait,
    /// The answer to our RESET: all begins anew.
    Restart,
    /// To be answered with ERROR at once.
    Refuse { seq: u32, code: ErrorCode, arg0: u32, note: ConnectionNote },
    /// Dropped without an answer.
    Drop(ConnectionNote),
}

/// The next frame to send.
#[derive(Debug)]
pub(super) enum Next<'a, O> {
    Request(u32, &'a O),
    Reset(u32, u32),
}

/// One end's numbers and queues. `O` is a request of its own.
#[derive(Clone, Debug)]
pub(super) struct RequestNumbering<O> {
    role: Role,
    /// Our last number, for RESET only, and the other end's.
    seq_last: u32,
    peer_seq_last: u32,
    held_max: usize,
    held_bytes_max: usize,
    /// The highest number sent or taken.
    seen: Option<u32>,
    /// The other end's last request that was taken.
    heard: Option<u32>,
    /// The highest number we answered.
    answered: u32,
    own: Option<(u32, Sent<O>)>,
    /// The request that is being served.
    current: Option<u32>,
    /// Requests that wait for their turn, by rising number, with the bytes of their bodies.
    held: VecDeque<(ForemanFrame, usize)>,
    /// Requests that wait to be sent.
    queue: VecDeque<O>,
    /// Not before that, if what is at the front of the queue was refused with `overflow`.
    reissue_at: Option<Mono>,
    /// The other end's RESET, to be answered when all before it is.
    reset_in: Option<u32>,
    reset_wanted: bool,
    reset_until: Option<Mono>,
}

impl<O> RequestNumbering<O> {
    pub(super) fn new(role: Role, settings: &ForemanSettings) -> Self {
        let peer = match role {
            Role::Worker => Role::Foreman,
            Role::Foreman => Role::Worker,
        };
        Self {
            role,
            seq_last: settings.seq_last(role),
            peer_seq_last: settings.seq_last(peer),
            held_max: settings.held_max,
            held_bytes_max: settings.body_bytes_max,
            seen: None,
            heard: None,
            answered: 0,
            own: None,
            current: None,
            held: VecDeque::new(),
            queue: VecDeque::new(),
            reissue_at: None,
            reset_in: None,
            reset_wanted: false,
            reset_until: None,
        }
    }

    /// Takes a frame in, whose body had so many bytes.
    pub(super) fn receive(
        &mut self,
        kind: ForemanKind,
        seq: u32,
        frame: Result<ForemanFrame, BadBody>,
        bytes: usize,
    ) -> Verdict {
        if let (ForemanKind::Ok | ForemanKind::Error, Ok(frame)) = (kind, &frame) {
            return Verdict::Response(frame.clone());
        }
        if kind == ForemanKind::Reset && self.own_reset() == Some(seq) {
            return Verdict::Restart;
        }
        if !self.may_have(kind, seq) {
            let note = ConnectionNote::BadSeq { seq, last: self.heard };
            return Verdict::Refuse { seq, code: ErrorCode::BadSeq, arg0: self.heard.unwrap_or(0), note };
        }
        self.heard = Some(seq);
        self.seen = self.seen.max(Some(seq));
        // Of two RESETs that cross, the one with the lower number serves both: the other is dropped here, too.
        if [self.own_reset(), self.reset_in].into_iter().flatten().any(|reset| seq > reset) {
            return Verdict::Drop(ConnectionNote::Dropped { seq });
        }
        if kind == ForemanKind::Reset {
            self.take_reset(seq);
            return Verdict::Wait;
        }
        if kind.is_sent_by(self.role) {
            return Verdict::Refuse {
                seq,
                code: ErrorCode::BadMessage,
                arg0: 0,
                note: ConnectionNote::BadType { kind, seq },
            };
        }
        let Ok(frame) = frame else {
            return Verdict::Refuse {
                seq,
                code: ErrorCode::BadMessage,
                arg0: 0,
                note: ConnectionNote::BadBody { kind, seq },
            };
        };
        let urgent = matches!(frame, ForemanFrame::Stop { stop: Stop::Immediate, .. });
        if urgent || (self.held.is_empty() && self.may_serve(seq)) {
            return Verdict::Serve(frame);
        }
        // All that wait together may be as long as one may be: else the limit of a body would be none.
        let held_bytes = self.held_bytes().saturating_add(bytes);
        if self.held.len() < self.held_max && held_bytes <= self.held_bytes_max {
            self.held.push_back((frame, bytes));
            return Verdict::Wait;
        }
        let arg0 = u32::try_from(self.held.len()).unwrap_or(u32::MAX);
        Verdict::Refuse { seq, code: ErrorCode::Overflow, arg0, note: ConnectionNote::Overflow { seq } }
    }

    /// Bytes of the bodies that are held.
    pub(super) fn held_bytes(&self) -> usize {
        self.held.iter().map(|(_, bytes)| bytes).sum()
    }

    /// A held request whose turn has come.
    pub(super) fn next_held(&mut self) -> Option<ForemanFrame> {
        let seq = self.held.front()?.0.seq();
        if self.may_serve(seq) { self.held.pop_front().map(|(frame, _)| frame) } else { None }
    }

    /// That request is being served: no other is until it is answered.
    pub(super) const fn serving(&mut self, seq: u32) {
        self.current = Some(seq);
    }

    /// That request was answered.
    pub(super) fn answered(&mut self, seq: u32) {
        self.answered = self.answered.max(seq);
        if self.current == Some(seq) {
            self.current = None;
        }
    }

    /// Our request that an OK or ERROR with that number answers. A RESET is answered by RESET only.
    pub(super) fn settle(&mut self, seq: u32) -> Option<O> {
        match self.own.take_if(|(own, sent)| *own == seq && matches!(sent, Sent::Request(_)))? {
            (_, Sent::Request(request)) => Some(request),
            (_, Sent::Reset) => None,
        }
    }

    /// The open request with that number.
    pub(super) fn waits_for(&self, seq: u32) -> Option<&Sent<O>> {
        self.own.as_ref().filter(|(own, _)| *own == seq).map(|(_, sent)| sent)
    }

    /// A good answer came: what was refused with `overflow` may be sent again.
    pub(super) const fn good_answer(&mut self) {
        self.reissue_at = None;
    }

    /// Our request was refused with `overflow`: it is the next to be sent, a little later.
    pub(super) fn bounced(&mut self, now: Mono, request: O) {
        self.queue.push_front(request);
        self.reissue_at = Some(now.plus_millis(limits::FOREMAN_REISSUE_MS));
    }

    /// The RESET that is to be answered now: all before it is answered, on both sides.
    pub(super) fn reset_due(&self) -> Option<u32> {
        let all_answered = self.own.is_none() && self.current.is_none() && self.held.is_empty();
        self.reset_in.filter(|_| all_answered)
    }

    /// The request that may be sent now, if any; it has its number then and waits for its answer. Without `may_reset` a wanted
    /// RESET waits. An urgent request does not wait for others to be sent again.
    pub(super) fn next_send(&mut self, now: Mono, may_reset: bool, urgent: bool) -> Option<Next<'_, O>> {
        if !self.is_idle() {
            return None;
        }
        let resets = self.reset_wanted && may_reset;
        let waits = self.reissue_at.is_some_and(|at| now < at) && !urgent;
        if !resets && (self.queue.is_empty() || waits) {
            return None;
        }
        let seq = self.next_seq();
        self.seen = Some(seq);
        if resets || seq >= self.seq_last {
            self.own = Some((seq, Sent::Reset));
            self.reset_until = Some(now.plus_millis(limits::FOREMAN_RESET_MS));
            return Some(Next::Reset(seq, self.answered));
        }
        self.reissue_at = None;
        let request = self.queue.pop_front()?;
        let (seq, sent) = self.own.insert((seq, Sent::Request(request)));
        match sent {
            Sent::Request(request) => Some(Next::Request(*seq, request)),
            Sent::Reset => None,
        }
    }

    /// Nothing is unanswered on either side.
    pub(super) fn is_idle(&self) -> bool {
        self.own.is_none() && self.current.is_none() && self.held.is_empty() && self.reset_in.is_none()
    }

    /// Begins anew. A request of ours without an answer is the first to be sent again.
    pub(super) fn restart(&mut self) {
        self.requeue();
        (self.seen, self.heard, self.answered) = (None, None, 0);
        self.current = None;
        self.held.clear();
        self.reissue_at = None;
        (self.reset_in, self.reset_until) = (None, None);
        self.reset_wanted = false;
    }

    pub(super) const fn want_reset(&mut self) {
        self.reset_wanted = true;
    }

    /// The last answered number, for the arg0 of a RESET.
    pub(super) const fn last_answered(&self) -> u32 {
        self.answered
    }

    pub(super) fn reset_timed_out(&self, now: Mono) -> bool {
        self.reset_until.is_some_and(|until| now >= until)
    }

    pub(super) fn next_deadline(&self) -> Option<Mono> {
        let reissue = self.reissue_at.filter(|_| self.is_idle());
        reissue.into_iter().chain(self.reset_until).min()
    }

    pub(super) const fn queue(&self) -> &VecDeque<O> {
        &self.queue
    }

    pub(super) const fn queue_mut(&mut self) -> &mut VecDeque<O> {
        &mut self.queue
    }

    pub(super) fn held_mut(&mut self) -> impl Iterator<Item = &mut ForemanFrame> {
        self.held.iter_mut().map(|(frame, _)| frame)
    }

    /// Our unanswered request, if it is not RESET.
    pub(super) fn open_request(&self) -> Option<&O> {
        match &self.own {
            Some((_, Sent::Request(request))) => Some(request),
            _ => None,
        }
    }

    /// Ends the line; gives back our unanswered request and those that were never sent.
    pub(super) fn take_rest(&mut self) -> (Option<O>, VecDeque<O>) {
        (self.take_back(), std::mem::take(&mut self.queue))
    }

    /// Our request that has no answer, as if it had never been sent.
    pub(super) fn take_back(&mut self) -> Option<O> {
        match self.own.take() {
            Some((_, Sent::Request(request))) => Some(request),
            _ => None,
        }
    }

    fn own_reset(&self) -> Option<u32> {
        match &self.own {
            Some((seq, Sent::Reset)) => Some(*seq),
            _ => None,
        }
    }

    /// Whether a request of the other end may have that number.
    fn may_have(&self, kind: ForemanKind, seq: u32) -> bool {
        let theirs = seq % 2 != self.role.parity();
        let new = self.heard.is_none_or(|heard| seq > heard);
        let within = if kind == ForemanKind::Reset { seq <= self.peer_seq_last } else { seq < self.peer_seq_last };
        theirs && new && within
    }

    /// Whether a request with that number need not wait: nothing else is served, and nothing of ours came before it.
    fn may_serve(&self, seq: u32) -> bool {
        self.current.is_none() && self.own.as_ref().is_none_or(|(own, _)| seq < *own)
    }

    /// The other end's RESET. What we asked after it will never be answered: it is sent again in the new count. A RESET
    /// of our own with a higher number is served by this one.
    fn take_reset(&mut self, seq: u32) {
        self.reset_in = Some(seq);
        if self.own.as_ref().is_some_and(|(own, _)| *own > seq) {
            self.requeue();
            self.reset_until = None;
        }
    }

    fn requeue(&mut self) {
        if let Some((_, Sent::Request(request))) = self.own.take() {
            self.queue.push_front(request);
        }
    }

    /// The smallest number of ours above all that were sent or taken.
    fn next_seq(&self) -> u32 {
        let Some(seen) = self.seen else { return self.role.parity() };
        let next = seen.saturating_add(1);
        if next % 2 == self.role.parity() { next } else { next.saturating_add(1) }.min(self.seq_last)
    }
}
