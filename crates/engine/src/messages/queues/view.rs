//! Views of queues and their messages, for admin calls.

use std::collections::BTreeSet;

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::limits::{AHEAD_CANCELLED_MAX, AHEAD_MAX, PAGE_MAX, VIEW_MESSAGES_MAX};
use turno_proto::model::view::{ConsumerView, QueueView};
use turno_proto::model::{Code, ConnId, MessageId, Seconds};

use super::cold::{Question, Wish};
use crate::effect::{PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::table::message::MessageStage;
use crate::messages::workers::peer::Worker;
use crate::page::page;

impl Messages {
    /// Answers an admin's call about queues.
    pub(crate) fn call(&mut self, conn: ConnId, seq: u32, call: AdminCall, out: &mut impl Sink) {
        let question = match &call {
            AdminCall::MessageExplain { id } => Some((id, Wish::Explain)),
            AdminCall::MessageCancel { id } => Some((id, Wish::Cancel)),
            AdminCall::MessageRetry { id } => Some((id, Wish::Retry)),
            _ => None,
        };
        if let Some((id, wish)) = question
            && let Some(serial) = self.find_cold(id)
        {
            return self.ask(serial, Question { conn, seq, wish }, out);
        }
        if let AdminCall::QueueSet { queue, settings } = call {
            return self.set_queue(conn, seq, &queue, settings, out);
        }
        match self.answer_to(call, out) {
            Ok(answer) => self.tell_once_stored(conn, seq, answer, out),
            Err(code) => out.peer(PeerEffect::Answer { conn, seq, result: Err(code) }),
        }
    }

    fn answer_to(&mut self, call: AdminCall, out: &mut impl Sink) -> Result<AdminAnswer, Code> {
        Ok(match call {
            AdminCall::QueueLs { after, limit } => self.queue_page(after.as_deref(), limit),
            AdminCall::QueueShow { queue } => {
                let number = self.queues.find(&queue).ok_or(Code::NotFound)?;
                let mut view = self.queue_view(number);
                let head = self.queues.at(number).backlog.iter(&self.messages).take(VIEW_MESSAGES_MAX);
                view.head = Some(head.map(|index| self.message_view(index)).collect());
                AdminAnswer::Queue { queue: Box::new(view) }
            }
            AdminCall::QueueConsumers { queue } => {
                let number = self.queues.find(&queue).ok_or(Code::NotFound)?;
                let (consumers, more) = self.consumer_views(number);
                AdminAnswer::Consumers { consumers, more }
            }
            AdminCall::QueuePurge { queue, limit } => self.purge(&queue, limit, out)?,
            AdminCall::DeadLs { queue, after, limit } => self.dead_page(&queue, after.as_deref(), limit)?,
            AdminCall::DeadShow { queue, id, from } => self.dead_answer(&queue, &id, from)?,
            AdminCall::DeadRetry { queue, ids, oldest } => self.retry_dead(&queue, &ids, oldest, out)?,
            AdminCall::DeadPurge { queue, ids, oldest } => self.purge_dead(&queue, &ids, oldest)?,
            AdminCall::MessageExplain { id } => {
                let index = self.find_message(&id)?;
                AdminAnswer::Message { explanation: Box::new(self.explain(index, AHEAD_MAX)) }
            }
            AdminCall::MessageCancel { id } => {
                let index = self.find_message(&id)?;
                let explanation = Box::new(self.explain(index, AHEAD_CANCELLED_MAX));
                self.cancel(index, out);
                AdminAnswer::Message { explanation }
            }
            AdminCall::MessageRetry { id } => {
                let index = self.find_message(&id)?;
                let explanation = Box::new(self.explain(index, AHEAD_CANCELLED_MAX));
                self.retry_now(index, out);
                AdminAnswer::Message { explanation }
            }
            _ => return Err(Code::BadCall),
        })
    }

    /// A message that waits for a time goes on, and a dead letter waits again. Any other is where it should be.
    pub(in crate::messages) fn retry_now(&mut self, index: u32, out: &mut impl Sink) {
        match self.messages[index].state {
            MessageStage::Delayed { .. } => self.skip_wait(index, out),
            MessageStage::Dead => drop(self.put_back(index, out)),
            _ => {}
        }
    }

    fn find_message(&self, id: &str) -> Result<u32, Code> {
        let id: MessageId = id.parse().map_err(|_| Code::NotFound)?;
        let own = self.messages.find(id, &self.settings).filter(|index| self.id_of(*index) == id);
        own.or_else(|| self.links.find_foreign(id)).ok_or(Code::NotFound)
    }

    fn queue_page(&self, after: Option<&str>, limit: u32) -> AdminAnswer {
        let numbers = self.queues.after(after).map(|(number, _)| number);
        let work = |number: &u32| self.queues.at(*number).consumers_len();
        let (queues, more) = page(numbers, limit, work, |number| self.queue_view(number));
        let next = queues.last().filter(|_| more).map(|queue: &QueueView| queue.name.clone());
        AdminAnswer::Queues { queues, next }
    }

    pub(in crate::messages) fn queue_view(&self, number: u32) -> QueueView {
        let queue = self.queues.at(number);
        let oldest = queue.backlog.heads().map(|index| self.messages[index].born).min();
        let rooms = queue.consumers().map(|consumer| self.room_in(consumer.worker, number));
        let free = rooms.map(|free| if free == u32::MAX { 0 } else { u64::from(free) }).sum();
        let waits = self.retry_delay(number);
        QueueView {
            name: queue.name.to_string(),
            ready: u64::from(queue.backlog.len()),
            delayed: queue.delayed.len(),
            delayed_until: queue.delayed.next_due().map(|at| self.settings.moment(at)),
            in_flight: u64::from(queue.in_flight),
            dead: u64::from(queue.dead.len()),
            bytes: queue.bytes,
            dead_bytes: queue.dead_bytes,
            oldest_seconds: oldest.map(|born| Seconds::from_millis(self.now.millis_since(born))),
            consumers: queue.consumers_len() as u64,
            slots_free: free,
            durable: self.settings.store.is_some() && queue.is_durable(),
            drop_after: self.drop_after(number),
            weight: queue.weight(),
            retry_delay_seconds: Seconds::from_millis(waits.first_ms),
            retry_delay_max_seconds: Seconds::from_millis(waits.most_ms),
            settings: queue.settings(),
            exclusive: self.exclusive_view(number),
            waiters: self.waiters_of(number),
            counters: queue.counters,
            head: None,
        }
    }

    /// The rota, next first; then those who wait for the queue, next first; then those who were dropped. And how many more
    /// there are.
    fn consumer_views(&self, number: u32) -> (Vec<ConsumerView>, u64) {
        let turns = (1..).zip(self.turns(number)).filter_map(|(turn, worker)| {
            let worker = self.peers.worker(worker)?;
            Some((worker, Some(turn), None))
        });
        let waiting = (1..).zip(self.line_of(number)).filter_map(|(place, worker)| {
            let worker = self.peers.worker(worker)?;
            Some((worker, None, Some(place)))
        });
        let mut consumers: Vec<(&Worker, Option<u64>, Option<u64>)> = turns.chain(waiting).collect();
        let told: BTreeSet<u64> = consumers.iter().map(|(worker, ..)| worker.id).collect();
        // One that was dropped may wait for the queue too.
        let dropped = self.dropped(number).filter(|worker| !told.contains(&worker.id));
        consumers.extend(dropped.map(|worker| (worker, None, None)));
        let shown = consumers
            .iter()
            .take(PAGE_MAX as usize)
            .map(|(worker, turn, waits)| self.consumer_view(worker, number, *turn, *waits));
        let shown: Vec<ConsumerView> = shown.collect();
        let more = (consumers.len() - shown.len()) as u64;
        (shown, more)
    }
}
