//! Admission of messages: accepted, or refused before they cost anything.

use turno_proto::model::{Code, ConnId, Cost, Durability, Mono, Outgoing, QueueName, limits};

use crate::effect::{NativeEffect, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::stats::bytes_of;
use crate::messages::table::chain::ChainLinks;
use crate::messages::table::message::{Flags, Message, MessageStage, Origin, Wants};

impl Messages {
    /// OPEN: a handle of the peer's choice stands for a queue, which comes into being if need be (S2.39).
    pub(crate) fn open(&mut self, conn: ConnId, handle: u32, name: QueueName) -> Result<(), Code> {
        let Some(peer) = self.peers.get_mut(conn) else { return Ok(()) };
        if handle >= limits::HANDLES_MAX || handle > peer.handles_len() + limits::HANDLE_GAP_MAX {
            return Err(Code::TooManyHandles);
        }
        if let (Some(queue), Some(worker)) = (peer.queue_of(handle), &peer.worker) {
            let consuming = worker.consumes.iter().find(|consuming| consuming.queue == queue);
            if consuming.is_some_and(|at| self.queues.at(queue).consumer(at.number).handle == handle) {
                return Err(Code::AlreadyConsuming);
            }
        }
        let queue = match self.queues.number_of(&name) {
            Some(queue) => queue,
            None if self.queues.len() >= self.settings.limits.queues_max => return Err(Code::TooManyQueues),
            None => self.queues.create(name),
        };
        let before = peer.open(handle, queue);
        self.queues.at_mut(queue).handles += 1;
        if let Some(before) = before {
            if before != queue {
                if let Some(worker) = &mut peer.worker {
                    worker.standings.forget_dropped(before);
                }
                self.give_up_handle(conn, before, handle);
            }
            self.queues.at_mut(before).handles -= 1;
            self.queues.forget_if_idle(before);
        }
        Ok(())
    }

    pub(crate) fn request(&mut self, conn: ConnId, message: Outgoing, out: &mut impl Sink) {
        let seq = message.seq;
        let wants = if message.no_reply { Wants::Nothing } else { Wants::Reply };
        match self.admit_request(conn, &message) {
            Ok(queue) => {
                self.count(queue, |counters| &mut counters.requests);
                let index = self.take_in(queue, message, wants, Some(Origin::new(conn, seq)));
                self.place_new(index, out);
            }
            Err(code) => self.refuse(conn, seq, code, out),
        }
    }

    pub(crate) fn send(&mut self, conn: ConnId, message: Outgoing, out: &mut impl Sink) {
        let seq = message.seq;
        let key = self.dedup_key(conn, &message);
        // Before all refusals: what is known needs no room, and a broker that drains still knows that it has it.
        if key.is_some_and(|key| self.sent_before(key, conn, seq, out)) {
            return;
        }
        match self.admit(conn, &message) {
            Ok(queue) => {
                self.count(queue, |counters| &mut counters.sends);
                let until = if message.delay_ms > 0 { self.whole_ms(message.delay_ms) } else { self.now };
                let index = self.take_in(queue, message, Wants::Settling, None);
                let durable = self.settings.store.is_some() && self.queues.at(queue).is_durable();
                if durable {
                    self.store(index, until, conn, seq);
                }
                if let Some(key) = key {
                    self.remember(key.1, index);
                }
                if !durable {
                    let (id, durability) = (self.id_of(index), Durability::Memory);
                    out.peer(PeerEffect::Native {
                        conn,
                        effect: NativeEffect::Stored { seq, id, durability, duplicate: false },
                    });
                    if until > self.now { self.delay(index, until) } else { self.place_new(index, out) }
                }
            }
            Err(code) => self.refuse(conn, seq, code, out),
        }
    }

    /// As [`Self::admit`], and what is asked of requests only.
    pub(super) fn admit_request(&self, conn: ConnId, message: &Outgoing) -> Result<u32, Code> {
        let queue = self.admit(conn, message)?;
        let unanswered = self.peers.get(conn).map_or(0, |peer| peer.owned.len());
        if unanswered >= self.settings.limits.in_flight_max {
            return Err(Code::TooManyInFlight);
        }
        if message.fail_fast && self.queues.at(queue).consumers_len() == 0 && !self.has_far_workers(queue) {
            return Err(Code::NoResponder);
        }
        Ok(queue)
    }

    /// The queue a message goes to, or why it goes nowhere.
    fn admit(&self, conn: ConnId, message: &Outgoing) -> Result<u32, Code> {
        let peer = self.peers.get(conn).ok_or(Code::CallerGone)?;
        let queue = peer.queue_of(message.handle).ok_or(Code::UnknownHandle)?;
        let bad_priority = message.priority.is_some_and(|priority| priority > limits::PRIORITY_MAX);
        if bad_priority || message.cost == Some(0) || message.delay_ms > limits::DELAY_MS_MAX {
            return Err(Code::BadOption);
        }
        if self.drain.is_some() {
            return Err(Code::Closing);
        }
        if !self.has_memory(bytes_of(message.payload.len())) {
            return Err(Code::OverMemory);
        }
        Ok(queue)
    }

    pub(super) fn refuse(&mut self, conn: ConnId, seq: u32, code: Code, out: &mut impl Sink) {
        self.stats.counters.refused += 1;
        out.peer(PeerEffect::undelivered(conn, seq, code));
    }

    pub(super) fn take_in(&mut self, queue: u32, message: Outgoing, wants: Wants, origin: Option<Origin>) -> u32 {
        let Outgoing { deadline_ms, retries, priority, cost, delay_ms, cancel_on_disconnect, payload, .. } = message;
        // The time of a delayed message begins when its delay is over.
        let deadline = self.deadline(wants, deadline_ms).map(|deadline| deadline.plus_millis(delay_ms));
        let retries = match wants {
            Wants::Reply => retries.unwrap_or(0),
            Wants::Nothing => 0,
            Wants::Settling => retries.unwrap_or(limits::SEND_RETRIES),
        };
        let mut flags = Flags::with_headers(payload.headers);
        if cancel_on_disconnect && wants == Wants::Reply {
            flags.set(Flags::ENDS_WITH_CALLER);
        }
        self.add_bytes(queue, bytes_of(payload.len()));
        let index = self.messages.insert(Message {
            serial: 0,
            bytes: payload.bytes,
            flags,
            origin,
            state: MessageStage::Waiting,
            wants,
            queue,
            stamp: 0,
            born: self.now,
            deadline,
            timer: None,
            attempts: 0,
            retries,
            priority: priority.unwrap_or(limits::PRIORITY),
            cost: cost.map_or(Cost::ONE, Cost::from_word),
            place: ChainLinks::default(),
            owned: ChainLinks::default(),
        });
        if let Some(deadline) = deadline {
            self.messages[index].timer = Some(self.timers.insert(deadline, index));
        }
        if let Some(peer) = origin.and_then(|origin| self.peers.get_mut(origin.conn())) {
            peer.owned.add(&mut self.messages, index);
        }
        index
    }

    pub(super) fn deadline(&self, wants: Wants, asked_ms: Option<u32>) -> Option<Mono> {
        let within_ms = match wants {
            Wants::Reply | Wants::Nothing => {
                let asked_ms = asked_ms.unwrap_or(self.settings.limits.request_deadline_ms);
                Some(asked_ms.min(limits::REQUEST_DEADLINE_MS_MAX))
            }
            Wants::Settling => asked_ms.map(|asked_ms| asked_ms.min(limits::SEND_DEADLINE_MS_MAX)),
        };
        within_ms.map(|ms| self.now.plus_millis(u64::from(ms)))
    }
}
