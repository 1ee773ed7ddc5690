//! Failed attempts: another attempt, or the end (S2.33 to S2.37).

use bytes::Bytes;
use turno_proto::model::{Again, Code, Payload, limits};

use crate::effect::{CallerMessage, HostEffect, Report, Sink};
use crate::messages::Messages;
use crate::messages::table::message::{Flags, MessageEnd, MessageStage, Wants};

/// Why an attempt is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AttemptFailure {
    /// The worker said so, and when to try again.
    Failed { payload: Payload, again: Again },
    /// The worker's connection ended.
    WorkerLost,
    /// The worker's connection ended, and nothing says that a send died of it: no attempt counts (see `losses`).
    NotPinned,
    /// The worker held it for too long.
    LeaseExpired,
}

impl AttemptFailure {
    const fn code(&self) -> Code {
        match self {
            Self::Failed { .. } => Code::Failed,
            Self::WorkerLost | Self::NotPinned => Code::WorkerLost,
            Self::LeaseExpired => Code::LeaseExpired,
        }
    }

    pub(super) const fn is_loss(&self) -> bool {
        matches!(self, Self::WorkerLost | Self::NotPinned)
    }

    fn into_payload(self) -> Payload {
        match self {
            Self::Failed { payload, .. } => payload,
            Self::WorkerLost | Self::NotPinned | Self::LeaseExpired => Payload::default(),
        }
    }
}

impl Messages {
    /// The holder is done with the message without having done what it wants.
    pub(super) fn attempt_over(&mut self, index: u32, cause: AttemptFailure, out: &mut impl Sink) {
        let message = &self.messages[index];
        let queue = message.queue;
        if let MessageStage::Answered { .. } = message.state {
            return self.finish(index, MessageEnd::Settled);
        }
        if matches!(message.state, MessageStage::Stopping { .. }) {
            self.finish(index, MessageEnd::Otherwise);
            return;
        }
        if cause.is_loss() {
            self.count(queue, |counters| &mut counters.lost);
        }
        if matches!(self.messages[index].state, MessageStage::Asked { .. }) {
            return self.part_left(index, out);
        }
        if self.messages[index].flags.has(Flags::FORWARDED) {
            return self.foreign_attempt_over(index, cause, out);
        }
        if cause == AttemptFailure::NotPinned && self.may_wait_uncounted(index) {
            return self.wait_uncounted(index);
        }
        if matches!(cause, AttemptFailure::Failed { .. }) {
            self.losses.forget(index);
        }
        if self.may_try_again(index, &cause) {
            return self.try_again(index, &cause);
        }
        match self.messages[index].wants {
            // Over for its caller since it was written.
            Wants::Nothing if self.messages[index].origin.is_none() => self.finish(index, MessageEnd::Settled),
            Wants::Reply | Wants::Nothing => {
                let origin = self.messages[index].origin;
                // Lost after its time was over, though nobody has looked yet: it would have got no other attempt.
                let late = self.messages[index].past_deadline(self.now) && cause.is_loss();
                let code = if late { Code::TimedOut } else { cause.code() };
                // The worker settled it itself only if it failed: a second settlement is then a duplicate.
                let end = if code == Code::Failed { MessageEnd::Settled } else { MessageEnd::Otherwise };
                self.finish(index, end);
                if let Some(origin) = origin {
                    let payload = cause.into_payload();
                    out.peer(origin.hears(CallerMessage::Undelivered { code, payload }));
                }
            }
            Wants::Settling if self.messages[index].past_deadline(self.now) => {
                self.count(queue, |counters| &mut counters.expired);
                self.finish(index, MessageEnd::Otherwise);
            }
            Wants::Settling => self.bury(index, cause, out),
        }
    }

    /// Another attempt follows, at once or after a wait.
    fn try_again(&mut self, index: u32, cause: &AttemptFailure) {
        let queue = self.messages[index].queue;
        self.release(index);
        let until = self.next_attempt_at(index, cause);
        match cause {
            AttemptFailure::Failed { again: Again::Uncounted(_), .. }
                if self.messages[index].wants == Wants::Settling =>
            {
                self.messages[index].attempts -= 1;
                self.count(queue, |counters| &mut counters.returned);
            }
            _ => self.count(queue, |counters| &mut counters.retried),
        }
        if self.messages[index].flags.has(Flags::DURABLE) {
            self.disarm(index);
            self.store_attempts(index, until);
        } else if until > self.now {
            self.delay(index, until);
        } else {
            self.place_again(index);
        }
    }

    /// Gives a delivery back as if it had never been handed out: no attempt counts.
    pub(crate) fn give_back(&mut self, index: u32, out: &mut impl Sink) {
        let message = &self.messages[index];
        let queue = message.queue;
        if matches!(message.state, MessageStage::Asked { .. }) {
            return self.part_left(index, out);
        }
        let over = match message.wants {
            // Over for its caller: it is gone, or was told that a no-reply is written.
            Wants::Reply | Wants::Nothing => message.origin.is_none(),
            Wants::Settling => false,
        };
        if let MessageStage::Answered { .. } = message.state {
            return self.finish(index, MessageEnd::Settled);
        }
        if over || matches!(message.state, MessageStage::Stopping { .. }) {
            self.finish(index, MessageEnd::Otherwise);
            return;
        }
        if message.wants == Wants::Reply && message.is_streamed() {
            self.end_without_reply(index, Code::WorkerLost, out);
            return;
        }
        if message.flags.has(Flags::FORWARDED) {
            self.release(index);
            self.messages[index].attempts -= 1;
            self.messages[index].state = MessageStage::Waiting;
            self.arm_deadline(index);
            return self.place_foreign(index, out);
        }
        if self.returned_to_caller(index, out) {
            return;
        }
        self.release(index);
        self.messages[index].attempts -= 1;
        self.count(queue, |counters| &mut counters.returned);
        self.place_again(index);
    }

    fn may_wait_uncounted(&self, index: u32) -> bool {
        let message = &self.messages[index];
        message.wants == Wants::Settling && !message.past_deadline(self.now)
    }

    fn may_try_again(&self, index: u32, cause: &AttemptFailure) -> bool {
        let message = &self.messages[index];
        let wanted = match message.wants {
            Wants::Reply => message.origin.is_some() && !message.is_streamed(),
            Wants::Settling => true,
            Wants::Nothing => false,
        };
        let permanent = matches!(cause, AttemptFailure::Failed { again: Again::Never, .. });
        let uncounted = message.wants == Wants::Settling
            && matches!(cause, AttemptFailure::Failed { again: Again::Uncounted(_), .. });
        // A drain hands nothing out, and `closing` would promise that nobody has begun with it: this was its last.
        let over = self.drain.is_some() && message.wants == Wants::Reply;
        let left = uncounted || message.attempts < message.attempts_max();
        wanted && !over && !permanent && left && !message.past_deadline(self.now)
    }

    /// The message becomes a dead letter of its queue.
    fn bury(&mut self, index: u32, cause: AttemptFailure, out: &mut impl Sink) {
        self.release(index);
        self.disarm(index);
        let number = self.messages[index].queue;
        let failure = last_words(cause);
        self.store_death(index, &failure.bytes);
        self.lay(index, failure);
        self.count(number, |counters| &mut counters.dead);
        let queue = self.queues.at(number);
        // Nothing that a sender was promised is deleted to make room: somebody is told in time.
        let (dead, most) = (queue.dead.len() as usize, self.settings.limits.dead_max);
        if dead > most && (dead - most - 1).is_multiple_of(most.max(1)) {
            let queue = queue.name.clone();
            out.host(HostEffect::Report(Report::ManyDead { queue, dead: dead as u64 }));
        }
    }
}

/// The text of the last failure that a dead letter keeps, cut to a limit.
fn last_words(cause: AttemptFailure) -> Payload {
    let code = cause.code();
    let (_, body) = cause.into_payload().split();
    match code {
        // Copied: a slice would keep the worker's whole frame for as long as the letter lies here.
        Code::Failed => Payload::body(Bytes::copy_from_slice(&body[..body.len().min(limits::FAILURE_BYTES_MAX)])),
        _ => Payload::body(code.text().what),
    }
}
