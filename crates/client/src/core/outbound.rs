//! Calls on their way to the broker, and their end.

use turno_proto::model::{Code, DedupId, Mono, Payload, Topic};
use turno_proto::native::admin::AdminCall;
use turno_proto::native::{Frame, HEADER_LEN, RawBroadcast, RawEvent as EventFrame, RawOutgoing, encode_admin_call};

use super::calls::{CALLS_MAX, CallKind, CallPlace};
use super::event::{Ask, CoreEvent, Ticket};
use super::link::Pending;
use super::{Core, GUARD_MS, State, WRITE_BYTES};

/// Bytes of the fields that a REQUEST or SEND may have before its payload.
fn fixed_bytes_max(ask: &Ask) -> usize {
    8 + ask.dedup_id.as_ref().map_or(0, |id| 1 + id.as_bytes().len())
}

impl Core {
    /// Makes a request.
    pub fn request(&mut self, now: Mono, ticket: Ticket, ask: Ask) {
        let usual = self.config.request_deadline_ms;
        let own = ask.deadline_ms.or(ask.timeout_ms);
        let deadline = now.plus_millis(u64::from(ask.timeout_ms.or(own).unwrap_or(usual)));
        let expires = own.map(|ms| now.plus_millis(u64::from(ms)));
        self.add(ticket, CallKind::Request(ask), expires, deadline);
    }

    /// Sends a message. Its time-out is the message's; the call itself waits no longer than a request would.
    pub fn send(&mut self, now: Mono, ticket: Ticket, ask: Ask) {
        let usual = self.config.request_deadline_ms;
        let deadline = now.plus_millis(u64::from(ask.timeout_ms.map_or(usual, |own| own.min(usual))));
        let expires = ask.timeout_ms.map(|own| now.plus_millis(u64::from(own)));
        self.add(ticket, CallKind::Send(ask), expires, deadline);
    }

    /// Says something to every consumer of a queue.
    pub fn broadcast(&mut self, now: Mono, ticket: Ticket, ask: Ask) {
        let usual = self.config.request_deadline_ms;
        let deadline = now.plus_millis(u64::from(ask.timeout_ms.unwrap_or(usual)));
        let expires = ask.timeout_ms.map(|_| deadline);
        self.add(ticket, CallKind::Broadcast(ask), expires, deadline);
    }

    /// Publishes an event. Without `confirm` it is done when it is written.
    pub fn publish(&mut self, now: Mono, ticket: Ticket, topic: Topic, payload: Payload, confirm: bool) {
        let deadline = now.plus_millis(u64::from(self.config.request_deadline_ms));
        self.add(ticket, CallKind::Publish { topic, payload, confirm }, None, deadline);
    }

    /// Asks about, or changes, something of the broker.
    pub fn admin(&mut self, now: Mono, ticket: Ticket, call: AdminCall) {
        let deadline = now.plus_millis(u64::from(self.config.request_deadline_ms));
        self.add(ticket, CallKind::Admin(call), None, deadline);
    }

    /// The caller wants the answer no more. The call still ends with an event; a subscription just ends.
    pub fn cancel(&mut self, ticket: Ticket) {
        if self.unsubscribe(ticket) {
            return;
        }
        let Some(call) = self.calls.find(ticket) else { return };
        let CallPlace::Written(seq) = call.place else {
            return self.fail(ticket, Code::Cancelled, Payload::default());
        };
        let first = !std::mem::replace(&mut call.cancelled, true);
        if first && matches!(call.what, CallKind::Request(_) | CallKind::Broadcast(_)) {
            self.link.write(&Frame::Cancel { seq, word: 0, reason: None });
        }
    }

    pub(super) fn add(&mut self, ticket: Ticket, what: CallKind, expires: Option<Mono>, deadline: Mono) {
        let code = if self.closed() {
            Code::ConnectionLost
        } else if self.calls.len() >= CALLS_MAX {
            Code::TooManyInFlight
        } else {
            return self.calls.add(ticket, what, expires, deadline);
        };
        self.events.push_back(CoreEvent::Failed { ticket, code, payload: Payload::default() });
    }

    /// Writes what waits: with `messages` everything, else only questions.
    pub(super) fn write_calls(&mut self, now: Mono, messages: bool) {
        while self.link.out.len() < WRITE_BYTES {
            let Some(ticket) = self.calls.next_waiting(messages) else { return };
            self.write_call(now, ticket);
        }
    }

    fn write_call(&mut self, now: Mono, ticket: Ticket) {
        let bytes_max = self.message_bytes_max();
        let Some(call) = self.calls.find(ticket) else { return };
        // The broker ends it in time itself, unless the caller waits for less than the work may take.
        let guard_ms = if call.outlasts_its_caller() { 0 } else { GUARD_MS };
        let alarm = match &call.what {
            CallKind::Admin(call) if call.waits() => now.plus_millis(u64::from(u32::MAX)),
            _ => call.deadline.plus_millis(guard_ms),
        };
        let left_ms = call.expires.map(|at| u32::try_from(at.millis_left(now)).unwrap_or(u32::MAX));
        let seq = match &call.what {
            CallKind::Request(ask) | CallKind::Send(ask) | CallKind::Broadcast(ask) => {
                let code = if left_ms == Some(0) {
                    Some(Code::TimedOut)
                } else if ask.payload.len() + HEADER_LEN + fixed_bytes_max(ask) > bytes_max {
                    Some(Code::FrameTooLarge)
                } else {
                    None
                };
                if let Some(code) = code {
                    return self.fail(ticket, code, Payload::default());
                }
                let handle = self.link.open(&ask.queue);
                let seq = self.link.expect(Pending::Call(ticket));
                if let CallKind::Broadcast(ask) = &call.what {
                    let (no_reply, skip_self, payload) = (ask.no_reply, ask.skip_self, (&ask.payload).into());
                    let broadcast = RawBroadcast { seq, handle, deadline_ms: left_ms, no_reply, skip_self, payload };
                    self.link.write(&Frame::Broadcast(broadcast));
                    return self.calls.wrote(ticket, seq, alarm);
                }
                let message = RawOutgoing {
                    deadline_ms: left_ms,
                    retries: ask.retries,
                    priority: ask.priority,
                    cost: ask.cost,
                    delay_ms: ask.delay_ms,
                    dedup_id: ask.dedup_id.as_ref().map(DedupId::as_bytes),
                    no_reply: ask.no_reply,
                    fail_fast: ask.fail_fast,
                    cancel_on_disconnect: ask.cancel_on_disconnect,
                    ..RawOutgoing::new(seq, handle, (&ask.payload).into())
                };
                let request = matches!(call.what, CallKind::Request(_));
                self.link.write(&if request { Frame::Request(message) } else { Frame::Send(message) });
                seq
            }
            CallKind::Publish { .. } => return self.write_publish(ticket, alarm),
            CallKind::Admin(call) => {
                let seq = self.link.expect(Pending::Call(ticket));
                encode_admin_call(seq, call, &mut self.link.out);
                seq
            }
            CallKind::Resize(slots) => {
                let seq = self.link.expect(Pending::Call(ticket));
                self.link.write(&Frame::Resize { seq, register: super::worker_side::resize_map(*slots) });
                seq
            }
        };
        self.calls.wrote(ticket, seq, alarm);
    }

    fn write_publish(&mut self, ticket: Ticket, alarm: Mono) {
        let bytes_max = self.message_bytes_max();
        let Some(CallKind::Publish { topic, payload, confirm }) = self.calls.find(ticket).map(|call| &call.what) else {
            return;
        };
        let (topic, confirm) = (topic.as_str().as_bytes(), *confirm);
        if payload.len() + HEADER_LEN + 1 + topic.len() > bytes_max {
            return self.fail(ticket, Code::FrameTooLarge, Payload::default());
        }
        let seq = self.link.expect(if confirm { Pending::Call(ticket) } else { Pending::Nobody });
        self.link.write(&Frame::Publish { seq, confirm, event: EventFrame { topic, payload: payload.into() } });
        if confirm {
            return self.calls.wrote(ticket, seq, alarm);
        }
        // Nobody answers it: its number is free again at once.
        self.link.pending.remove(&seq);
        self.calls.end(ticket);
        self.events.push_back(CoreEvent::PublishDone { ticket });
    }

    /// The broker did not end the call in time, or there was none to do it.
    pub(super) fn expire(&mut self, ticket: Ticket) {
        let waits = self.calls.find(ticket).is_some_and(|call| call.place == CallPlace::Waiting);
        // The broker drains: it took nothing of the call, and there is no other broker.
        let code = if waits && matches!(self.state, State::Leave { .. }) { Code::Closing } else { Code::TimedOut };
        if self.calls.find(ticket).is_some_and(|call| call.place != CallPlace::Waiting && call.ends_with_time()) {
            // CANCEL, so that the broker frees what it keeps; its answer frees the number.
            self.cancel(ticket);
        }
        self.fail(ticket, code, Payload::default());
    }

    pub(super) fn fail(&mut self, ticket: Ticket, code: Code, payload: Payload) {
        if self.calls.end(ticket).is_some() {
            self.events.push_back(CoreEvent::Failed { ticket, code, payload });
        }
    }
}
