//! Dispatch: the head of the backlog goes to the worker whose turn it is.
//!
//! Three things never happen here: a message overtaking another of its priority, a worker getting more than its
//! slots, a message going out after its deadline. A request that would come back after it does not go out either,
//! if another can have the slot (see `service`).

use turno_proto::model::{ConnId, limits};

use crate::effect::{BorrowedPayload, CallerMessage, Deliver, NativeEffect, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::stats::bytes_of;
use crate::messages::table::chain::Lane;
use crate::messages::table::message::{Flags, MessageStage, Wants};
use crate::messages::workers::peer::Worker;

/// A consequence that is still to be handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DispatchStep {
    /// A worker that may have room.
    Worker(ConnId),
    /// A queue that may have something to hand out.
    Queue(u32),
    /// A queue that may be free for the next one who waits for it.
    Freed(u32),
}

impl Messages {
    pub(crate) fn work_off_agenda(&mut self, out: &mut impl Sink) {
        while let Some(item) = self.agenda.pop_front() {
            match item {
                DispatchStep::Worker(worker) => self.feed(worker, out),
                DispatchStep::Queue(queue) => self.dispatch(queue, out),
                DispatchStep::Freed(queue) => self.freed(queue, out),
            }
        }
    }

    /// Stands in for a missed event: whatever waits beside a free slot is placed now (S0.30). Returns whether it was time.
    pub(crate) fn check_if_due(&mut self) -> bool {
        if self.now < self.check_at {
            return false;
        }
        self.check_at = self.now.plus_millis(limits::CHECKER_MS);
        self.write_again();
        self.loads.look_at_short();
        if self.stats.ready > 0 {
            let waiting = self.queues.after(None).filter(|(_, queue)| !queue.backlog.is_empty());
            self.agenda.extend(waiting.map(|(number, _)| DispatchStep::Queue(number)));
        }
        true
    }

    /// A new message: straight to a worker if nothing waits before it, else to its place in the backlog.
    pub(super) fn place_new(&mut self, index: u32, out: &mut impl Sink) {
        let message = &self.messages[index];
        let (queue, cost) = (message.queue, u32::from(message.cost.slots()));
        let in_time = !message.past_deadline(self.now);
        if in_time
            && self.drain.is_none()
            && self.queues.at(queue).backlog.is_empty()
            && let Some(number) = self.pick(queue, cost)
        {
            self.hand_over(index, number, out);
            return;
        }
        self.queues.at_mut(queue).backlog.push_back(&mut self.messages, index);
        self.stats.ready += 1;
        self.note_waiting(queue);
        self.dispatch(queue, out);
    }

    /// Before all of its priority that only the store holds, and behind the others.
    pub(super) fn place_hot(&mut self, index: u32, out: &mut impl Sink) {
        let queue = self.messages[index].queue;
        self.queues.at_mut(queue).backlog.push_hot(&mut self.messages, index);
        self.stats.ready += 1;
        self.note_waiting(queue);
        self.dispatch(queue, out);
    }

    /// Back to the head of its queue, or behind the messages in memory if it steps aside (see `losses`).
    pub(super) fn place_again(&mut self, index: u32) {
        let queue = self.messages[index].queue;
        self.messages[index].state = MessageStage::Waiting;
        let backlog = &mut self.queues.at_mut(queue).backlog;
        if self.losses.steps_aside(index) {
            backlog.push_hot(&mut self.messages, index);
        } else {
            backlog.push_front(&mut self.messages, index);
        }
        self.stats.ready += 1;
        self.note_waiting(queue);
        self.arm_deadline(index);
        self.agenda.push_back(DispatchStep::Queue(queue));
    }

    /// Takes a waiting message out of its backlog.
    pub(super) fn unplace(&mut self, index: u32) {
        let number = self.messages[index].queue;
        let queue = self.queues.at_mut(number);
        let was_head = queue.backlog.head() == Some(index);
        queue.backlog.remove(&mut self.messages, index);
        self.stats.ready -= 1;
        self.note_waiting(number);
        if was_head {
            self.release_reservation(number);
            self.agenda.push_back(DispatchStep::Queue(number));
        }
    }

    /// Hands out as many of a queue's messages as there is room for.
    fn dispatch(&mut self, queue: u32, out: &mut impl Sink) {
        while self.dispatch_one(queue, out) {}
    }

    /// Hands out the head of a queue, if it is anyone's turn. A head that is too late ends and the next one takes
    /// its place: the queue has its turn all the same.
    fn dispatch_one(&mut self, number: u32, out: &mut impl Sink) -> bool {
        if self.drain.is_some() {
            return false;
        }
        while let Some(queue) = self.queues.get(number)
            && let Some(head) = queue.backlog.head()
        {
            let message = &self.messages[head];
            if message.flags.has(Flags::ABANDONED) {
                // There may be many of them in a row, and the queue goes on when it has lost them. Nobody is kept for them.
                self.release_reservation(number);
                return false;
            }
            if message.past_deadline(self.now) {
                self.expire_waiting(head, out);
                continue;
            }
            let cost = u32::from(message.cost.slots());
            let Some(consumer) = self.pick_for(number, head) else {
                if self.cross_head(number, head, out) {
                    return true;
                }
                let alone = self.losses.goes_alone(head);
                if cost > 1 || alone || self.queues.at(number).reserved.is_some() {
                    self.reserve(number, cost, alone);
                }
                return false;
            };
            if queue.would_be_late(message, self.now) {
                self.expire_waiting(head, out);
                continue;
            }
            self.queues.at_mut(number).backlog.remove(&mut self.messages, head);
            self.stats.ready -= 1;
            self.note_waiting(number);
            self.hand_over(head, consumer, out);
            self.release_reservation(number);
            if cost > 1 {
                // Messages behind a costly head may fit where that did not.
                self.agenda.push_back(DispatchStep::Queue(number));
            }
            return true;
        }
        false
    }

    /// The consumer that takes the head, by its number.
    pub(super) fn pick_for(&self, number: u32, head: u32) -> Option<u32> {
        let cost = u32::from(self.messages[head].cost.slots());
        if self.losses.goes_alone(head) { self.pick_empty(number, cost) } else { self.pick(number, cost) }
    }

    /// Nobody here has room for the head: perhaps somebody behind a link has (S2.7).
    fn cross_head(&mut self, number: u32, head: u32, out: &mut impl Sink) -> bool {
        if self.links.is_empty() {
            return false;
        }
        let Some(link) = self.pick_link(head) else { return false };
        let cost = self.messages[head].cost.slots();
        self.queues.at_mut(number).backlog.remove(&mut self.messages, head);
        self.stats.ready -= 1;
        self.note_waiting(number);
        self.cross(head, link, out);
        self.release_reservation(number);
        if cost > 1 {
            // Messages behind it may fit where it did not, and not only at the worker that is being fed.
            self.agenda.push_back(DispatchStep::Queue(number));
        }
        true
    }

    /// A worker has room again: its queues are served round robin (see `round`), until it is full or nothing waits.
    fn feed(&mut self, worker: ConnId, out: &mut impl Sink) {
        loop {
            let Some(record) = self.peers.worker(worker) else { return };
            if record.room() == 0 {
                // It may have become too small for the head that it is kept for.
                return record.reserved_for.into_iter().for_each(|queue| self.dispatch(queue, out));
            }
            let Some(queue) = self.next_waiting(record) else { return };
            if !self.dispatch_one(queue, out) && !self.serve_others(worker, queue, out) {
                return;
            }
        }
    }

    /// The worker's queue that is next in its round and in which something waits.
    fn next_waiting(&self, record: &Worker) -> Option<u32> {
        if !record.standings.is_empty() {
            return self.next_waiting_but_probes(record);
        }
        let round = record.round.at();
        if let Some(seat) = record.shared_rota {
            return self.shared_rotas[seat.shared_rota].next_waiting(round);
        }
        // Most workers have one queue.
        if let [only] = record.consumes[..] {
            return (!self.queues.at(only.queue).backlog.is_empty()).then_some(only.queue);
        }
        let (before, after) = record.consumes.split_at(record.consumes.partition_point(|at| at.queue < round));
        let mut queues = after.iter().chain(before).map(|consuming| consuming.queue);
        queues.find(|queue| !self.queues.at(*queue).backlog.is_empty())
    }

    /// The queue could not use the worker's room (its head costs too much): perhaps another can.
    fn serve_others(&mut self, worker: ConnId, tried: u32, out: &mut impl Sink) -> bool {
        let Some(record) = self.peers.worker(worker) else { return false };
        let all: Vec<u32> = match record.shared_rota {
            Some(seat) => {
                // A shared rota knows nothing of the queues in which a member is on probation.
                let mut all: Vec<u32> = self.shared_rotas[seat.shared_rota].waiting.iter().copied().collect();
                all.extend(record.standings.probing());
                all.sort_unstable();
                all
            }
            None => record.consumes.iter().map(|consuming| consuming.queue).collect(),
        };
        let (before, after) = all.split_at(all.partition_point(|queue| *queue <= tried));
        let mut others = after.iter().chain(before).filter(|queue| **queue != tried);
        others.any(|queue| self.dispatch_one(*queue, out))
    }

    /// The delivery itself: slots taken, attempt counted, turn moved, frame out.
    pub(super) fn hand_over(&mut self, index: u32, number: u32, out: &mut impl Sink) {
        let consumer = *self.queues.at(self.messages[index].queue).consumer(number);
        let worker = consumer.worker;
        self.give_to(index, worker);
        self.turn_taken(worker);
        let cost = self.messages[index].cost.slots();
        let &mut Worker { pair, must_read, .. } = self.peers.worker_mut(worker);
        if let Some(pair) = pair {
            self.pair_took(pair, cost);
        }
        if let Some(lease_ms) = self.settings.lease_ms {
            self.arm_lease(index, lease_ms);
        }
        self.announce(index, consumer.handle, worker, out);
        if must_read {
            out.peer(PeerEffect::Native { conn: worker, effect: NativeEffect::Pace });
        }
    }

    /// The message is the worker's to settle: slots taken, attempt counted.
    #[inline]
    pub(super) fn give_to(&mut self, index: u32, worker: ConnId) {
        self.stamps = self.stamps.wrapping_add(1);
        let message = &mut self.messages[index];
        let (queue_number, cost) = (message.queue, message.cost.slots());
        let queue = self.queues.at_mut(queue_number);
        let weight = queue.weight();
        let age_ms = u32::try_from(self.now.millis_since(message.born)).unwrap_or(u32::MAX);
        message.state = MessageStage::Held { worker, age_ms, streamed: false, freed: false };
        message.stamp = self.stamps;
        message.attempts += 1;
        queue.in_flight += 1;
        let bytes = bytes_of(message.bytes.len());
        let window = self.pace.spend(bytes);
        let record = self.peers.worker_mut(worker);
        record.take(cost);
        record.unread_bytes += bytes;
        record.must_read |= record.unread_bytes > window && !record.is_link;
        record.deliveries += 1;
        record.last_used = Some(self.now);
        record.round.take(queue_number, weight);
        if !record.standings.is_empty() {
            record.standings.handed(queue_number, index);
        }
        if self.losses.goes_alone(index) && !record.is_link {
            record.alone_with = Some(index);
        }
        record.held.push_back(&mut self.messages, Lane::Place, index);
        self.stats.in_flight += 1;
        self.count(queue_number, |counters| &mut counters.deliveries);
    }

    fn announce(&mut self, index: u32, handle: u32, worker: ConnId, out: &mut impl Sink) {
        let message = &self.messages[index];
        let left_ms = message.deadline.map(|deadline| deadline.millis_left(self.now));
        out.deliver(Deliver {
            conn: worker,
            delivery: self.delivery_of(index),
            handle,
            id: self.id_of(index),
            attempt: message.attempts,
            cost: message.cost,
            deadline_ms: left_ms.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX)),
            wants_reply: message.wants == Wants::Reply,
            token: self.queues.at(message.queue).token(),
            payload: BorrowedPayload { headers: message.flags.has(Flags::HEADERS), bytes: &message.bytes },
        });
        if message.wants == Wants::Nothing {
            self.written(index, out);
        }
    }

    /// A no-reply request was written: its caller is told and its bytes are freed at once (S2.12). What is
    /// left holds the worker's slots until it says that it is done.
    pub(super) fn written(&mut self, index: u32, out: &mut impl Sink) {
        let message = &mut self.messages[index];
        let queue = message.queue;
        let bytes = std::mem::take(&mut message.bytes);
        let origin = message.origin;
        self.drop_bytes(queue, bytes_of(bytes.len()) - bytes_of(0));
        self.disarm(index);
        self.disown(index);
        if let Some(origin) = origin {
            out.peer(origin.hears(CallerMessage::Delivered));
        }
    }

    /// Nobody has room for a costly head, or one that goes alone: the next worker that is large enough is kept free for
    /// it. The head may be another than last time: one of higher priority, or one that came back.
    fn reserve(&mut self, number: u32, cost: u32, alone: bool) {
        if let Some(kept) = self.queues.at(number).reserved {
            if (cost > 1 || alone) && self.peers.worker_mut(kept).slots.as_count() >= cost {
                return;
            }
            self.release_reservation(number);
        }
        if cost == 1 && !alone {
            return;
        }
        let candidate = self.turns(number).into_iter().find(|worker| {
            self.peers.get(*worker).is_some_and(|peer| {
                let record = peer.worker.as_deref().expect("consumers are workers");
                let able = peer.ready && record.takes_work();
                let large = record.slots.as_count() >= cost && !record.standings.has_probe(number);
                able && large && record.reserved_for.is_none() && !record.must_read
            })
        });
        if let Some(worker) = candidate {
            self.queues.at_mut(number).reserved = Some(worker);
            self.peers.worker_mut(worker).reserved_for = Some(number);
            self.show_room(worker);
        }
    }

    /// The head is gone: the worker kept for it is free for all its queues again.
    pub(super) fn release_reservation(&mut self, number: u32) {
        let Some(worker) = self.queues.at_mut(number).reserved.take() else { return };
        self.peers.worker_mut(worker).reserved_for = None;
        self.show_room(worker);
        self.agenda.push_back(DispatchStep::Worker(worker));
        // While one worker is kept for a head, it goes to no other: perhaps another can have it now.
        self.agenda.push_back(DispatchStep::Queue(number));
    }
}
