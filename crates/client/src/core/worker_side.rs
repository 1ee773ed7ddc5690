//! The worker's side: registration and settlement.

use std::collections::BTreeMap;

use turno_proto::model::{Again, Code, Cost, Mono, Payload, QueueName, Slots, limits};
use turno_proto::native::{Deliver, Frame, HEADER_LEN, Register};

use super::absence::Absences;
use super::calls::CallKind;
use super::event::{Claim, CoreEvent, Handed, Held, Registration, Settlement, Ticket};
use super::link::{Holding, Pending};
use super::{Core, State};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Nothing was asked of this connection's broker.
    #[default]
    Idle,
    /// So many answers to REGISTER and CONSUME are still out.
    ExpectOk {
        left: usize,
        by: Mono,
    },
    Registered,
}

/// The worker's registration, and how far it is on this connection.
#[derive(Debug, Default)]
pub(super) struct WorkerSide {
    wanted: Option<Registration>,
    phase: Phase,
    /// Until then the last broker may take a connection that is gone for one that is only quiet.
    ghost_until: Mono,
    /// Deliveries from brokers that close, with their slots: the next broker can fill the others.
    elsewhere: BTreeMap<Held, Cost>,
}

impl WorkerSide {
    /// When REGISTER must be answered.
    pub(super) const fn deadline(&self) -> Option<Mono> {
        match self.phase {
            Phase::ExpectOk { by, .. } => Some(by),
            Phase::Idle | Phase::Registered => None,
        }
    }

    pub(super) const fn is_wanted(&self) -> bool {
        self.wanted.is_some()
    }

    /// Whether it may work for another broker while it ends what it has of this one: not with queues to itself.
    pub(super) fn is_shared(&self) -> bool {
        self.wanted.as_ref().is_some_and(|wanted| wanted.claim == Claim::Shared)
    }

    /// Keeps the deliveries of a broker that closes.
    pub(super) fn leave_behind(&mut self, held: impl Iterator<Item = (Held, Cost)>) {
        self.elsewhere.extend(held);
        self.phase = Phase::Idle;
    }

    /// The slots that the broker may fill.
    fn slots(&self, wanted: Slots) -> Slots {
        let taken = self.elsewhere.values().map(|cost| u32::from(cost.slots())).fold(0, u32::saturating_add);
        match wanted {
            Slots::Limited(count) => Slots::Limited(count.saturating_sub(taken)),
            Slots::Unlimited => Slots::Unlimited,
        }
    }

    pub(super) const fn connection_gone(&mut self) {
        self.phase = Phase::Idle;
    }

    /// A connection on which the worker was registered is gone.
    pub(super) const fn leaves_ghost(&mut self, until: Mono) {
        self.ghost_until = until;
    }

    /// Whether a queue that is taken may be so by this worker's own last connection.
    pub(super) fn may_be_ghost(&self, now: Mono) -> bool {
        now < self.ghost_until
    }
}

impl Core {
    /// Makes this client a worker, now and on every later connection (S0.41).
    pub fn register(&mut self, now: Mono, mut registration: Registration) {
        let mut seen: Vec<QueueName> = Vec::new();
        registration.queues.retain(|queue| {
            let new = !seen.contains(queue) && seen.len() < limits::HANDLES_MAX as usize / 2;
            if new {
                seen.push(queue.clone());
            }
            new
        });
        self.duty.wanted = Some(registration);
        if self.state == State::Open {
            self.write_register(now);
        }
    }

    /// Gives the worker another number of slots, now and on every later connection.
    pub fn resize(&mut self, now: Mono, ticket: Ticket, slots: Slots) {
        if let Some(wanted) = &mut self.duty.wanted {
            wanted.slots = slots;
        }
        if self.state == State::Open && self.duty.phase != Phase::Idle {
            let deadline = now.plus_millis(self.settings.connect_timeout_ms);
            self.add(ticket, CallKind::Resize(self.duty.slots(slots)), None, deadline);
        } else {
            self.events.push_back(CoreEvent::Resized { ticket });
        }
    }

    /// Takes no new work any more, here or on a later connection; what is held may be settled (S0.15).
    pub fn deregister(&mut self) {
        self.duty.wanted = None;
        self.link.absences = Absences::default();
        if self.open() && self.duty.phase != Phase::Idle {
            let seq = self.link.expect(Pending::Nobody);
            self.link.write(&Frame::Deregister { seq });
        }
        self.duty.phase = Phase::Idle;
    }

    /// Whether a delivery came over the connection that this core has now.
    pub const fn is_here(&self, held: Held) -> bool {
        held.epoch == self.link.epoch
    }

    /// A delivery of a broker that was left behind is over for this worker: the next broker may fill its slots.
    pub fn ended_elsewhere(&mut self, held: Held) {
        let Some(cost) = self.duty.elsewhere.remove(&held) else { return };
        if self.state == State::Open
            && self.duty.phase != Phase::Idle
            && cost != Cost::Broadcast
            && let Some(Slots::Limited(count)) = self.duty.wanted.as_ref().map(|wanted| wanted.slots)
        {
            let seq = self.link.expect(Pending::Nobody);
            let slots = self.duty.slots(Slots::Limited(count));
            self.link.write(&Frame::Resize { seq, register: resize_map(slots) });
        }
    }

    /// Ends a delivery. False if its connection is gone or it was settled before: then nothing is written.
    pub fn settle(&mut self, held: Held, settlement: Settlement) -> bool {
        if held.epoch != self.link.epoch {
            return false;
        }
        let Some(Holding { token, .. }) = self.link.held.remove(&held.delivery) else { return false };
        let delivery = held.delivery;
        self.link.absences.settled(delivery);
        let too_large = |payload: &Payload| payload.len() + HEADER_LEN > self.message_bytes_max();
        let settlement = match settlement {
            Settlement::Reply(payload) if too_large(&payload) => {
                let what = Code::OutputTooLarge.text().what;
                Settlement::Fail { again: Again::Never, payload: Payload::body(what.as_bytes()) }
            }
            Settlement::Fail { again, payload } if too_large(&payload) => {
                Settlement::Fail { again, payload: Payload::default() }
            }
            other => other,
        };
        let frame = match &settlement {
            Settlement::Reply(payload) => {
                Frame::Reply { seq: delivery.stamp, word: delivery.index, more: false, raw: payload.into() }
            }
            Settlement::Ack => Frame::Ack { delivery },
            Settlement::Fail { again, payload } => Frame::Fail { delivery, again: *again, raw: payload.into() },
        };
        let bytes = match &settlement {
            Settlement::Reply(payload) | Settlement::Fail { payload, .. } => payload.len(),
            Settlement::Ack => 0,
        };
        self.write_about_delivery(token, bytes, frame);
        true
    }

    /// Writes a piece of the reply; more follow. False if the delivery is over or the piece is too large.
    pub fn piece(&mut self, held: Held, payload: &Payload) -> bool {
        let delivery = held.delivery;
        let frame = Frame::Reply { seq: delivery.stamp, word: delivery.index, more: true, raw: payload.into() };
        self.write_held(held, payload.len(), frame)
    }

    /// Tells the caller how far a delivery is. False if the delivery is over or the text is too large.
    pub fn progress(&mut self, held: Held, payload: &Payload) -> bool {
        let delivery = held.delivery;
        let frame = Frame::Progress { seq: delivery.stamp, word: delivery.index, raw: payload.into() };
        self.write_held(held, payload.len(), frame)
    }

    /// Asks for more time for a delivery. False if it is over.
    pub fn extend(&mut self, held: Held, lease_ms: u32) -> bool {
        self.write_held(held, 0, Frame::Extend { delivery: held.delivery, lease_ms })
    }

    pub(super) fn write_register(&mut self, now: Mono) {
        let Some(wanted) = self.duty.wanted.clone() else { return };
        let seq = self.link.expect(Pending::Register);
        let slots = self.duty.slots(wanted.slots);
        self.link.write(&Frame::Register { seq, register: Register::new(slots, wanted.name).known_as(wanted.key) });
        let handles: Vec<u32> = wanted.queues.iter().map(|queue| self.link.open(queue)).collect();
        self.link.handles.keep();
        self.link.absences = Absences::default();
        for queue in &wanted.queues {
            self.write_consume(queue, true);
        }
        let by = now.plus_millis(self.settings.connect_timeout_ms);
        self.duty.phase = Phase::ExpectOk { left: 1 + handles.len(), by };
    }

    /// True if a worker is wanted and the broker has not taken all of it yet.
    pub(super) const fn registering(&self) -> bool {
        self.duty.wanted.is_some() && !matches!(self.duty.phase, Phase::Registered)
    }

    /// How the worker consumes its queues.
    pub(super) fn claim(&self) -> Claim {
        self.duty.wanted.as_ref().map_or_else(Claim::default, |wanted| wanted.claim)
    }

    /// True if the worker is to take work from the queue.
    pub(super) fn consumes(&self, queue: &QueueName) -> bool {
        self.duty.wanted.as_ref().is_some_and(|wanted| wanted.queues.contains(queue))
    }

    /// One of REGISTER and the CONSUMEs was done.
    pub(super) fn register_done(&mut self, now: Mono) {
        let Phase::ExpectOk { left, by } = self.duty.phase else { return };
        if left > 1 {
            self.duty.phase = Phase::ExpectOk { left: left - 1, by };
            return;
        }
        self.duty.phase = Phase::Registered;
        self.ready(now);
        self.events.push_back(CoreEvent::Registered);
    }

    /// The broker is of no use to this worker: report it (S0.39), try the next.
    pub(super) fn not_registered(&mut self, now: Mono, code: Code, detail: String) {
        if !matches!(self.duty.phase, Phase::ExpectOk { .. }) {
            return;
        }
        let reason = format!("the broker rejected this worker: {code}");
        self.events.push_back(CoreEvent::NotRegistered { code, detail });
        self.lose(now, reason);
    }

    pub(super) fn handle_deliver(&mut self, now: Mono, deliver: &Deliver<'_>) {
        let Some(queue) = self.link.handles.consumed(deliver.handle).cloned() else {
            return self.lose(now, "the broker delivered from a queue this worker never consumed".to_owned());
        };
        // Of a broadcast that wants no reply the broker keeps nothing: there is nothing to settle.
        let over = deliver.cost == Cost::Broadcast && !deliver.wants_reply;
        let holding = Holding { token: deliver.token, cost: deliver.cost };
        if !over && self.link.held.insert(deliver.delivery, holding).is_some() {
            return self.lose(now, "the broker sent a delivery twice".to_owned());
        }
        self.link.absences.handed(deliver.handle, deliver.delivery);
        self.events.push_back(CoreEvent::Deliver(Box::new(Handed {
            held: Held { epoch: self.link.epoch, delivery: deliver.delivery },
            queue,
            id: deliver.id,
            attempt: deliver.attempt,
            cost: deliver.cost,
            deadline_ms: deliver.deadline_ms,
            wants_reply: deliver.wants_reply,
            token: deliver.token,
            payload: deliver.raw.to_payload(),
        })));
    }

    /// Everything held belongs to others from now on.
    pub(super) fn let_go(&mut self, reason: Code) {
        for delivery in std::mem::take(&mut self.link.held).into_keys() {
            let held = Held { epoch: self.link.epoch, delivery };
            self.events.push_back(CoreEvent::CancelDelivery { held, reason });
        }
    }

    fn write_held(&mut self, held: Held, bytes: usize, frame: Frame<'_>) -> bool {
        let token = self.link.held.get(&held.delivery).filter(|_| held.epoch == self.link.epoch).map(|held| held.token);
        let fits = bytes + HEADER_LEN <= self.message_bytes_max();
        match token {
            Some(token) if fits => self.write_about_delivery(token, bytes, frame),
            _ => return false,
        }
        true
    }

    /// Writes a frame about a delivery, with the token of its queue where there is room for both: it is a second lock on a
    /// door that the broker keeps shut anyway.
    fn write_about_delivery(&mut self, token: Option<u64>, bytes: usize, frame: Frame<'_>) {
        let fits = bytes + HEADER_LEN + size_of::<u64>() <= self.message_bytes_max();
        self.link.write(&match token.filter(|_| fits) {
            Some(token) => Frame::fenced(token, frame),
            None => frame,
        });
    }
}

/// RESIZE changes the slots only; an empty name keeps the old one.
pub(super) fn resize_map(slots: Slots) -> Register {
    Register::new(slots, "")
}
