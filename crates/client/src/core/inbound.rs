//! Frames from the broker.

use turno_proto::model::{Code, Delivery, Mono, Payload, limits};
use turno_proto::native::admin::AdminAnswer;
use turno_proto::native::{
    Answer, Closing, ClosingReason, Config, Direction, Fault, FencedFrame, Frame, Kind, VERSION, decode, split,
};

use super::calls::CallKind;
use super::event::{CoreEvent, Held, Ticket};
use super::link::Pending;
use super::{Core, REST_MS, State};
use crate::Address;

/// Most heartbeats of silence a broker may ask this side to bear.
const LIVENESS_MAX: u32 = 100;

impl Core {
    /// Bytes came.
    pub fn handle_bytes(&mut self, now: Mono, bytes: &[u8]) {
        if matches!(self.state, State::Rest { .. } | State::ExpectConnection { .. } | State::Closed) {
            return;
        }
        self.link.heard = now;
        let epoch = self.link.epoch;
        let mut kept = std::mem::take(&mut self.link.inbox);
        if kept.is_empty() {
            let used = self.take_frames(now, bytes);
            kept.extend_from_slice(bytes.get(used..).unwrap_or_default());
        } else {
            kept.extend_from_slice(bytes);
            let used = self.take_frames(now, &kept);
            kept.drain(..used);
        }
        // An empty buffer is dropped: one large frame must not hold its memory for ever.
        if self.link.epoch == epoch && !kept.is_empty() {
            self.link.inbox = kept;
        }
    }

    /// Takes whole frames off the front. Returns the bytes used; all of them if the connection was given up.
    fn take_frames(&mut self, now: Mono, bytes: &[u8]) -> usize {
        let epoch = self.link.epoch;
        let mut used = 0;
        while self.link.epoch == epoch && self.state != State::Closed {
            let rest = bytes.get(used..).unwrap_or_default();
            let piece = match split(rest, self.frame_bytes_max()) {
                Ok(Some(piece)) => piece,
                Ok(None) => return used,
                Err(fault) => {
                    self.lose(now, fault.code.text().what.to_owned());
                    break;
                }
            };
            used += piece.used;
            match decode(&piece.header, piece.rest) {
                Ok(frame) if frame.kind().direction() == Direction::ToBroker => {
                    self.lose(
                        now,
                        format!("the broker sent {}, which only clients and workers may send", frame.kind().name()),
                    );
                }
                Ok(frame) => self.handle_frame(now, frame),
                Err(fault) => self.handle_fault(now, piece.header.kind, fault),
            }
        }
        bytes.len()
    }

    /// A frame whose inside cannot be read. If it only answers one call, only that call suffers: a newer broker
    /// may answer with values this side does not know.
    fn handle_fault(&mut self, now: Mono, kind: u8, fault: Fault) {
        if fault.fatal || !self.open() {
            return self.lose(now, fault.code.text().what.to_owned());
        }
        let answers = [Kind::Error, Kind::Undelivered, Kind::Stored, Kind::AdminAnswer, Kind::BroadcastEnd];
        if answers.iter().any(|answer| answer.number() == kind) {
            self.handle_refusal(now, fault.seq, fault.code, Payload::default());
        }
    }

    fn handle_frame(&mut self, now: Mono, frame: Frame<'_>) {
        match (self.state, frame) {
            (_, Frame::Error { code, fatal: true, detail, .. }) => {
                if code == Code::SlowReader {
                    self.stop_strict_listening(code);
                }
                self.lose(now, format!("{code}: {detail}"));
            }
            (State::ExpectConfig { by }, Frame::Config { config, .. }) => self.handle_config(now, by, *config),
            (State::ExpectPong { .. }, Frame::Pong { .. }) => self.handle_open(now),
            // A broker that drains takes no work but answers questions.
            (State::ExpectPong { .. }, Frame::Closing { closing }) if self.may_open(closing.reason) => {
                self.link.closing = Some(closing);
            }
            (State::ExpectConfig { .. } | State::ExpectPong { .. }, Frame::Closing { .. }) => {
                self.lose(now, Code::Closing.text().what.to_owned());
            }
            (State::ExpectConfig { .. } | State::ExpectPong { .. }, Frame::Error { code, detail, .. }) => {
                self.lose(now, format!("{code}: {detail}"));
            }
            (State::ExpectConfig { .. } | State::ExpectPong { .. }, frame) => {
                self.lose(now, format!("the broker sent {} during the handshake", frame.kind().name()));
            }
            (_, frame) => self.handle_open_frame(now, frame),
        }
    }

    fn handle_config(&mut self, now: Mono, by: Mono, mut config: Config) {
        if config.version != VERSION {
            return self.lose(now, Code::VersionMismatch.text().what.to_owned());
        }
        config.heartbeat_ms = config.heartbeat_ms.clamp(limits::HEARTBEAT_MS_MIN, limits::HEARTBEAT_MS_MAX);
        config.liveness = config.liveness.clamp(1, LIVENESS_MAX);
        self.brokers.add(config.brokers.iter().filter_map(|text| text.parse::<Address>().ok()));
        self.config = config;
        self.state = State::ExpectPong { by };
        self.link.ping(now);
    }

    fn handle_open(&mut self, now: Mono) {
        self.state = State::Open;
        let address = self.brokers.current().clone();
        self.events.push_back(CoreEvent::Opened { address, config: Box::new(self.config.clone()) });
        self.write_subscribes();
        if self.registering() {
            self.write_register(now);
        } else {
            self.ready(now);
        }
        if let Some(closing) = self.link.closing.take() {
            self.handle_closing(now, closing);
        }
    }

    fn handle_open_frame(&mut self, now: Mono, frame: Frame<'_>) {
        match frame {
            Frame::Reply { seq, more, raw, .. } => self.handle_reply(now, seq, more, raw.to_payload()),
            Frame::Deliver(deliver) => self.handle_deliver(now, &deliver),
            Frame::Stored { seq, durability, id, duplicate } => {
                if let Some(ticket) = self.end_of(now, seq, |what| matches!(what, CallKind::Send(_))) {
                    self.events.push_back(CoreEvent::Stored { ticket, id, durability, duplicate });
                }
            }
            Frame::Undelivered { seq, code, raw } => self.handle_refusal(now, seq, code, raw.to_payload()),
            Frame::Error { seq, code, detail, .. } => {
                self.handle_refusal(now, seq, code, Payload::body(detail.as_bytes().to_vec()));
            }
            Frame::Delivered { seq } => {
                if let Some(ticket) = self.end_of(now, seq, |what| matches!(what, CallKind::Request(_))) {
                    self.events.push_back(CoreEvent::Delivered { ticket });
                }
            }
            Frame::Answer(answer) => self.handle_consumer(now, &answer),
            Frame::BroadcastEnd { seq, end } => {
                if let Some(ticket) = self.end_of(now, seq, |what| matches!(what, CallKind::Broadcast(_))) {
                    self.events.push_back(CoreEvent::BroadcastEnd { ticket, end });
                }
            }
            Frame::Progress { seq, raw, .. } => {
                if let Some(Pending::Call(ticket)) = self.link.pending.get(&seq)
                    && self.calls.find(*ticket).is_some()
                {
                    self.events.push_back(CoreEvent::Progress { ticket: *ticket, payload: raw.to_payload() });
                }
            }
            Frame::Ok { seq } => self.handle_ok(now, seq, None),
            Frame::Fenced { token, frame } => match frame {
                FencedFrame::Ok { seq } => self.handle_ok(now, seq, Some(token)),
                // Other frames with a token are those of workers; as an answer they mean the same without it.
                frame => self.handle_open_frame(now, frame.into()),
            },
            Frame::QueueFull { seq, .. } => self.handle_queue_full(now, seq),
            Frame::QueueAvailable { seq, .. } => self.handle_queue_available(seq),
            Frame::Event(event) => self.handle_published(now, &event),
            Frame::EventsDropped { count } => {
                self.events.push_back(CoreEvent::EventsDropped { count: u64::from(count) })
            }
            Frame::AdminAnswer { seq, answer } => self.handle_answer(now, seq, answer),
            Frame::Cancel { seq, word, reason } => {
                let delivery = Delivery { index: word, stamp: seq };
                if self.link.held.contains_key(&delivery) {
                    let held = Held { epoch: self.link.epoch, delivery };
                    self.link.absences.cancelled(delivery);
                    let reason = reason.unwrap_or(Code::Cancelled);
                    if reason == Code::LeaseExpired {
                        // The broker has taken it back: there is nothing left to settle.
                        self.link.held.remove(&delivery);
                    }
                    self.events.push_back(CoreEvent::CancelDelivery { held, reason });
                }
            }
            Frame::CancelQueue { handle, reason, .. } => {
                self.handle_dropped(now, handle, reason.unwrap_or(Code::Dropped));
            }
            Frame::Closing { closing } => self.handle_closing(now, closing),
            // PONG was noted when its bytes came; a second CONFIG changes nothing.
            _ => {}
        }
    }

    fn handle_reply(&mut self, now: Mono, seq: u32, more: bool, payload: Payload) {
        if !more {
            if let Some(ticket) = self.end_of(now, seq, |what| matches!(what, CallKind::Request(_))) {
                self.events.push_back(CoreEvent::Reply { ticket, more, payload });
            }
            return;
        }
        if let Some(Pending::Call(ticket)) = self.link.pending.get(&seq)
            && let Some(call) = self.calls.find(*ticket)
        {
            call.begun = true;
            self.events.push_back(CoreEvent::Reply { ticket: *ticket, more, payload });
        }
    }

    /// A consumer's answer to a broadcast.
    fn handle_consumer(&mut self, now: Mono, answer: &Answer<'_>) {
        let &Answer { seq, worker, name, more, failed, raw } = answer;
        let Some(Pending::Call(ticket)) = self.link.pending.get(&seq) else { return };
        let ticket = *ticket;
        let Some(call) = self.calls.find(ticket) else { return };
        if !matches!(call.what, CallKind::Broadcast(_)) {
            return self.lose(now, "the broker answered an unknown request".to_owned());
        }
        call.begun = true;
        let (name, payload) = (name.to_owned(), raw.to_payload());
        self.events.push_back(CoreEvent::Answer { ticket, worker, name, more, failed, payload });
    }

    fn handle_ok(&mut self, now: Mono, seq: u32, token: Option<u64>) {
        match self.link.pending.get(&seq) {
            Some(Pending::Register) => {
                self.link.pending.remove(&seq);
                self.register_done(now);
            }
            Some(Pending::Consume { .. }) => self.handle_consuming(now, seq, token),
            Some(Pending::Call(_)) => {
                let published = |what: &CallKind| matches!(what, CallKind::Publish { .. });
                if self.call_of(seq).is_some_and(published) {
                    let ended = self.end_of(now, seq, published);
                    self.events.extend(ended.map(|ticket| CoreEvent::PublishDone { ticket }));
                } else if let Some(ticket) = self.end_of(now, seq, |what| matches!(what, CallKind::Resize(_))) {
                    self.events.push_back(CoreEvent::Resized { ticket });
                }
            }
            Some(Pending::Subscribe(_)) => {
                if let Some(Pending::Subscribe(filter)) = self.link.pending.remove(&seq) {
                    self.subscribed(&filter);
                }
            }
            Some(&Pending::Again(handle)) => {
                self.link.pending.remove(&seq);
                self.came_back(handle, token);
            }
            _ => {
                self.link.pending.remove(&seq);
            }
        }
    }

    fn handle_answer(&mut self, now: Mono, seq: u32, answer: AdminAnswer) {
        if let Some(ticket) = self.end_of(now, seq, |what| matches!(what, CallKind::Admin(_))) {
            self.events.push_back(CoreEvent::Admin { ticket, answer: Box::new(answer) });
        }
    }

    /// UNDELIVERED or ERROR.
    fn handle_refusal(&mut self, now: Mono, seq: u32, code: Code, payload: Payload) {
        match self.link.pending.remove(&seq) {
            Some(Pending::Call(ticket)) if code == Code::Closing => self.give_back(now, ticket),
            Some(Pending::Call(ticket)) => {
                let code = self.reason_behind(ticket, code);
                self.fail(ticket, code, payload);
            }
            Some(Pending::Open(queue)) if !self.consumes(&queue) => self.link.handles.refused(queue, code),
            // A registered worker that cannot wait for its queue begins again.
            Some(Pending::Available(_) | Pending::Consume { first: false, .. }) => {
                self.lose(now, format!("the broker refused the queue to this worker: {code}"));
            }
            Some(Pending::Open(_) | Pending::Register | Pending::Consume { .. }) => {
                let detail = String::from_utf8_lossy(&payload.bytes).into_owned();
                self.not_registered(now, code, detail);
            }
            Some(Pending::Again(handle)) => self.not_back(now, handle, code),
            Some(Pending::Subscribe(filter)) => self.not_subscribed(&filter, code, &payload),
            Some(Pending::Nobody) | None => {}
        }
    }

    /// A handle is unknown to the broker because it refused to open it: the caller wants to know why it did.
    fn reason_behind(&mut self, ticket: Ticket, code: Code) -> Code {
        let call = self.calls.find(ticket).filter(|_| code == Code::UnknownHandle);
        match call.map(|call| &call.what) {
            Some(CallKind::Request(ask) | CallKind::Send(ask) | CallKind::Broadcast(ask)) => {
                self.link.handles.refusal(&ask.queue).unwrap_or(code)
            }
            _ => code,
        }
    }

    /// The broker closes and never worked on the call: the next broker gets it.
    fn give_back(&mut self, now: Mono, ticket: Ticket) {
        match self.calls.find(ticket) {
            Some(call) if call.cancelled => self.fail(ticket, Code::Cancelled, Payload::default()),
            Some(call)
                if call.begun
                    || matches!(call.what, CallKind::Publish { .. } | CallKind::Admin(_) | CallKind::Resize(_)) =>
            {
                self.fail(ticket, Code::Closing, Payload::default());
            }
            Some(_) if self.left_behind => self.returned.extend(self.calls.end(ticket).map(|call| (ticket, call))),
            Some(_) => self.calls.unwrite(ticket),
            None => {}
        }
        // It may come before CLOSING does; to send the call here again would only bring it back again.
        if self.state == State::Open {
            self.start_leaving(now, 0);
        }
    }

    fn handle_closing(&mut self, now: Mono, closing: Closing) {
        let Closing { reason, within_ms } = closing;
        self.events.push_back(CoreEvent::Closing { reason, within_ms });
        match reason {
            ClosingReason::Shutdown | ClosingReason::Maintenance => self.start_leaving(now, within_ms),
            // Earlier calls go on in any case; the others have gone to the next broker.
            ClosingReason::Resumed if !self.left_behind && matches!(self.state, State::Leave { .. }) => {
                self.state = State::Open;
            }
            // Stop and Now are for the worker's owner to act on.
            _ => {}
        }
    }

    /// A broker that takes no work is of no use to a worker, unless it is the only one and stays.
    fn may_open(&self, reason: ClosingReason) -> bool {
        let comes_back = match reason {
            ClosingReason::Resumed => true,
            ClosingReason::Maintenance => !self.brokers.several(),
            _ => false,
        };
        comes_back || !self.registering()
    }

    /// Nothing new goes to this broker; the move is made in `poll_transmit` once nothing is left here.
    fn start_leaving(&mut self, now: Mono, within_ms: u64) {
        let by = (within_ms > 0).then(|| now.plus_millis(within_ms).plus_millis(REST_MS));
        self.state = State::Leave { by };
    }

    /// The call that `seq` answers.
    fn call_of(&mut self, seq: u32) -> Option<&CallKind> {
        let Some(Pending::Call(ticket)) = self.link.pending.get(&seq) else { return None };
        self.calls.find(*ticket).map(|call| &call.what)
    }

    /// The call that `seq` answers, ended. An answer of the wrong kind gives the connection up; one that
    /// nobody waits for only frees the number.
    fn end_of(&mut self, now: Mono, seq: u32, fits: impl Fn(&CallKind) -> bool) -> Option<Ticket> {
        let Some(Pending::Call(ticket)) = self.link.pending.get(&seq) else { return None };
        let ticket = *ticket;
        if self.calls.find(ticket).is_some_and(|call| !fits(&call.what)) {
            self.lose(now, "the broker answered an unknown request".to_owned());
            return None;
        }
        self.link.pending.remove(&seq);
        self.calls.end(ticket).map(|_| ticket)
    }
}
