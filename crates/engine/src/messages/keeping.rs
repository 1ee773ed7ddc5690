//! Workers that give slots back themselves, apart from their answers.
//!
//! Such a worker may answer and stay busy: an answered delivery keeps its slots until the worker gives them back. It may also be
//! free without an answer: a delivery whose slots it has given back can still be answered. It gives slots back one delivery at a
//! time and names none, so they are those of the oldest answered delivery, or else of the newest that is not answered: slots
//! are alike, and whichever delivery was meant comes next. It cannot be told to stop, so what ended for its caller keeps its slots
//! in the same way.

use turno_proto::model::{ConnId, Payload, Slots};

use crate::effect::{CallerMessage, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::stats::bytes_of;
use crate::messages::table::chain::Lane;
use crate::messages::table::message::{Flags, MessageEnd, MessageStage, Wants};
use crate::messages::workers::peer::Worker;

impl Messages {
    /// REGISTER of such a worker.
    pub(crate) fn register_keeping(&mut self, conn: ConnId, seq: u32, slots: Slots, name: String, out: &mut impl Sink) {
        self.register(conn, seq, slots, name, out);
        if let Ok(worker) = self.registered(conn) {
            worker.keeps_slots = true;
        }
    }

    /// The worker has settled the delivery. Its slots come back now, unless it gives them back itself.
    pub(super) fn settlement_over(&mut self, conn: ConnId, index: u32) {
        if self.keeps_slots_of(conn, index) {
            self.keep_slots(index, conn);
        } else {
            self.finish(index, MessageEnd::Settled);
        }
    }

    /// Whether only the worker itself gives the slots of that delivery back.
    pub(super) fn keeps_slots_of(&self, conn: ConnId, index: u32) -> bool {
        let keeps = self.peers.worker(conn).is_some_and(|worker| worker.keeps_slots && !worker.leaving);
        keeps && self.messages[index].slots_in_use() > 0
    }

    fn keep_slots(&mut self, index: u32, worker: ConnId) {
        self.disarm(index);
        self.disown(index);
        self.losses.forget(index);
        let message = &mut self.messages[index];
        self.durable.end(message);
        message.flags.set(Flags::ENDED);
        message.state = MessageStage::Answered { worker };
        message.deadline = None;
        let queue = message.queue;
        let bytes = std::mem::take(&mut message.bytes);
        self.drop_bytes(queue, bytes_of(bytes.len()) - bytes_of(0));
        self.stats.answered += 1;
        self.peers.worker_mut(worker).answered.push_back(&mut self.messages, Lane::Owned, index);
        // What it settled may have ended its trial.
        self.offer(worker);
    }

    /// The worker gives back the slots of one delivery. Without one that has slots it counts as late.
    pub(crate) fn gives_back(&mut self, conn: ConnId) {
        let Some(worker) = self.peers.worker(conn).filter(|worker| worker.keeps_slots) else {
            self.stats.counters.late += 1;
            return;
        };
        if let Some(index) = worker.answered.front() {
            return self.finish(index, MessageEnd::Settled);
        }
        let Some(index) = worker.held.back().filter(|index| self.messages[*index].slots_in_use() > 0) else {
            self.stats.counters.late += 1;
            return;
        };
        let message = &self.messages[index];
        match message.state {
            // Nobody waits for an answer: this is all that there is to hear of it.
            MessageStage::Held { .. } if message.wants == Wants::Nothing => {
                self.settled(conn, index, |counters| &mut counters.acked);
                self.finish(index, MessageEnd::Settled);
            }
            MessageStage::Held { .. } => self.free_unanswered(index, conn),
            _ => self.finish(index, MessageEnd::Settled),
        }
    }

    /// The worker has room again, and can still answer. Deliveries without slots are before those that have some.
    fn free_unanswered(&mut self, index: u32, conn: ConnId) {
        let message = &mut self.messages[index];
        let cost = message.slots_in_use();
        if let MessageStage::Held { freed, .. } = &mut message.state {
            *freed = true;
        }
        let record = self.peers.worker_mut(conn);
        record.held.remove(&mut self.messages, Lane::Place, index);
        record.held.push_front(&mut self.messages, Lane::Place, index);
        record.give_back(cost);
        self.offer(conn);
    }

    /// A message for another peer, past all queues.
    pub(crate) fn pass_to_peer(&self, to: ConnId, payload: Payload, out: &mut impl Sink) {
        if self.peers.get(to).is_some() {
            out.peer(PeerEffect::Caller { conn: to, seq: 0, message: CallerMessage::Progress { payload } });
        }
    }

    /// An answered delivery is over, or its worker is.
    pub(super) fn forget_answered(&mut self, worker: ConnId, index: u32) {
        self.stats.answered -= 1;
        self.peers.worker_mut(worker).answered.remove(&mut self.messages, Lane::Owned, index);
    }

    /// The worker deregistered: what has ended for its callers is over. What has not can still be answered.
    pub(super) fn end_kept(&mut self, conn: ConnId) {
        let Some(worker) = self.peers.worker(conn).filter(|worker| worker.keeps_slots) else { return };
        let ended = |index: &u32| {
            matches!(self.messages[*index].state, MessageStage::Answered { .. } | MessageStage::Stopping { .. })
        };
        let ended: Vec<u32> = worker.held.iter(&self.messages, Lane::Place).filter(ended).collect();
        for index in ended {
            self.finish(index, MessageEnd::Settled);
        }
    }

    /// Asserts that answered deliveries are in the list of their worker, and that those without slots are first.
    pub(super) fn check_keeping(&self, conn: ConnId, worker: &Worker) {
        let listed: Vec<u32> = worker.answered.iter(&self.messages, Lane::Owned).collect();
        assert_eq!(listed.len(), worker.answered.len() as usize, "a list is as long as it says");
        for index in &listed {
            assert_eq!(
                self.messages[*index].state,
                MessageStage::Answered { worker: conn },
                "what is listed is answered"
            );
        }
        let held = || worker.held.iter(&self.messages, Lane::Place).map(|index| &self.messages[index]);
        let answered = held().filter(|message| matches!(message.state, MessageStage::Answered { .. })).count();
        assert_eq!(answered, listed.len(), "what is answered is listed");
        assert!(answered == 0 || worker.keeps_slots && !worker.leaving, "only some workers keep slots");
        let slots = || held().filter(|message| message.cost.slots() > 0).map(|message| message.slots_in_use() > 0);
        assert!(!worker.keeps_slots || slots().is_sorted(), "deliveries without slots come first");
        assert!(worker.keeps_slots || slots().all(|uses| uses), "only some workers hold deliveries without slots");
    }
}
