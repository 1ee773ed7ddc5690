//! Messages that came over a link: to a worker at once, further on, or back. They never wait here, only at their
//! owners.

use turno_proto::model::link::{Forward, ForwardWants};
use turno_proto::model::{Code, ConnId, Outgoing, limits};

use super::CrossedMessage;
use crate::effect::{CallerMessage, LinkEffect, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::retry::AttemptFailure;
use crate::messages::table::message::{Flags, MessageEnd, Origin, Wants};

impl Messages {
    /// FORWARD came.
    pub(crate) fn forwarded(&mut self, conn: ConnId, forward: Forward, out: &mut impl Sink) {
        let Forward { seq, handle, id, wants, attempt, cost, priority, deadline_ms, alone, path, payload } = forward;
        let Some(link) = self.links.by_conn.get_mut(&conn) else { return };
        link.received += 1;
        let neighbour = link.broker;
        let message =
            Outgoing { deadline_ms, priority: Some(priority), cost: Some(cost), ..Outgoing::new(seq, handle, payload) };
        let queue = match self.admit_request(conn, &message) {
            // It lies about its way: that could go round for ever.
            Ok(_) if path.has(self.links.me) || path.brokers().last() != Some(&neighbour) => {
                return self.refuse(conn, seq, Code::BadOption, out);
            }
            Ok(queue) => queue,
            Err(code) => return self.refuse(conn, seq, code, out),
        };
        let wants = match wants {
            ForwardWants::Reply => Wants::Reply,
            ForwardWants::Nothing => Wants::Nothing,
            ForwardWants::Settling => Wants::Settling,
        };
        let index = self.take_in(queue, message, wants, Some(Origin::new(conn, seq)));
        let name = self.queues.at(queue).name.clone();
        let message = &mut self.messages[index];
        message.flags.set(Flags::FORWARDED);
        message.attempts = attempt.saturating_sub(1);
        *self.links.link_mut(conn).held.entry(name).or_default() += u32::from(cost);
        self.links.foreign.insert(index, CrossedMessage { link: conn, id, path });
        if alone && wants == Wants::Settling {
            self.losses.mark_alone(index);
        }
        self.place_foreign(index, out);
    }

    /// To a worker with room now, here or further on; or back.
    pub(in crate::messages) fn place_foreign(&mut self, index: u32, out: &mut impl Sink) {
        let message = &self.messages[index];
        let queue = message.queue;
        if message.past_deadline(self.now) {
            return self.end_without_reply(index, Code::TimedOut, out);
        }
        if self.drain.is_none() && self.queues.at(queue).backlog.is_empty() {
            if let Some(number) = self.pick_for(queue, index) {
                return self.hand_over(index, number, out);
            }
            if let Some(link) = self.pick_link(index) {
                return self.cross(index, link, out);
            }
        }
        self.send_back(index, out);
    }

    /// Back to where it came from, as if it had never come. The sender is first told what room there is now, or it
    /// would send it again at once.
    fn send_back(&mut self, index: u32, out: &mut impl Sink) {
        let message = &self.messages[index];
        let name = self.queues.at(message.queue).name.clone();
        let origin = message.origin;
        self.finish(index, MessageEnd::Otherwise);
        let Some(origin) = origin else { return };
        let (conn, seq) = (origin.conn(), origin.seq);
        if self.links.is_link(conn) {
            self.tell_offer(conn, &name, out);
        }
        let code = if self.drain.is_some() { Code::Closing } else { Code::NoRoom };
        out.peer(PeerEffect::undelivered(conn, seq, code));
    }

    /// A worker here gave up a message that came over a link: its owner decides what happens next.
    pub(in crate::messages) fn foreign_attempt_over(&mut self, index: u32, cause: AttemptFailure, out: &mut impl Sink) {
        let (origin, late) = (self.messages[index].origin, self.messages[index].past_deadline(self.now));
        let end =
            if matches!(cause, AttemptFailure::Failed { .. }) { MessageEnd::Settled } else { MessageEnd::Otherwise };
        self.finish(index, end);
        let Some(origin) = origin else { return };
        out.peer(match cause {
            AttemptFailure::Failed { payload, again } => {
                let effect = LinkEffect::Fail { seq: origin.seq, again, payload };
                PeerEffect::Link { conn: origin.conn(), effect }
            }
            _ if late && cause.is_loss() => origin.hears(CallerMessage::undelivered(Code::TimedOut)),
            // With others, or unread: it costs no attempt.
            AttemptFailure::NotPinned => origin.hears(CallerMessage::undelivered(Code::CutShort)),
            AttemptFailure::WorkerLost => origin.hears(CallerMessage::undelivered(Code::WorkerLost)),
            AttemptFailure::LeaseExpired => origin.hears(CallerMessage::undelivered(Code::LeaseExpired)),
        });
    }

    /// Its sender gives it up. The worker is told why, as one of the owner's own would be.
    pub(crate) fn far_cancelled(&mut self, conn: ConnId, seq: u32, reason: Code, out: &mut impl Sink) {
        let reason = match reason {
            Code::CallerGone | Code::TimedOut => reason,
            _ => Code::Cancelled,
        };
        self.cancel_own(conn, seq, reason, out);
    }

    /// Its owner hears no more of it from here: the slots it still takes are not its owner's to count.
    pub(in crate::messages) fn foreign_disowned(&mut self, index: u32) {
        let message = &self.messages[index];
        let Some(foreign) = self.links.foreign.get(&index) else { return };
        let name = &self.queues.at(message.queue).name;
        let Some(link) = self.links.by_conn.get_mut(&foreign.link) else { return };
        if let Some(held) = link.held.get_mut(name) {
            *held -= u32::from(message.cost.slots());
            if *held == 0 {
                link.held.remove(name);
            }
        }
        self.links.queue_changed(name);
    }

    /// It left the table of messages.
    pub(in crate::messages) fn foreign_gone(&mut self, index: u32) {
        self.links.foreign.remove(&index);
    }
}

/// A path as long as may be leaves no broker to cross to.
const _: () = assert!(limits::PATH_MAX >= 2, "a message crosses one link at least");
