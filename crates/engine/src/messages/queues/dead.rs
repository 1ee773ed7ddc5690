//! Dead letters: listing, retry and removal.

use std::collections::BTreeMap;

use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::limits::{FAILURE_LINE_BYTES_MAX, PAGE_MAX, PIECE_BYTES_MAX, PORTION_BYTES_MAX, PORTION_MAX};
use turno_proto::model::view::DeadView;
use turno_proto::model::{Code, MessageId, Mono, Payload};

use crate::effect::Sink;
use crate::messages::Messages;
use crate::messages::stats::bytes_of;
use crate::messages::table::chain::Lane;
use crate::messages::table::message::{Flags, Message, MessageEnd, MessageStage};

/// The state of a dead letter before it was put back, should that turn out impossible.
#[derive(Debug)]
pub(in crate::messages) struct Grave {
    pub(in crate::messages) attempts: u16,
    pub(in crate::messages) deadline: Option<Mono>,
    pub(in crate::messages) failure: Payload,
}

impl Messages {
    /// The message, which has no place now, is a dead letter of its queue from here on.
    pub(in crate::messages) fn lay(&mut self, index: u32, failure: Payload) {
        let message = &mut self.messages[index];
        message.state = MessageStage::Dead;
        self.losses.forget(index);
        let queue = message.queue;
        self.queues.at_mut(queue).dead.push_back(&mut self.messages, Lane::Place, index);
        let bytes = bytes_of(self.messages[index].bytes.len() + failure.len());
        self.queues.at_mut(queue).dead_bytes += bytes;
        self.stats.dead_bytes += bytes;
        self.add_bytes(queue, failure.len() as u64);
        self.failures.insert(index, failure);
        self.stats.dead += 1;
    }

    fn lift(&mut self, index: u32) -> Payload {
        let queue = self.messages[index].queue;
        self.queues.at_mut(queue).dead.remove(&mut self.messages, Lane::Place, index);
        self.stats.dead -= 1;
        let failure = self.failures.remove(&index).expect("a dead letter says what its last failure was");
        let bytes = bytes_of(self.messages[index].bytes.len() + failure.len());
        self.queues.at_mut(queue).dead_bytes -= bytes;
        self.stats.dead_bytes -= bytes;
        self.drop_bytes(queue, failure.len() as u64);
        failure
    }

    /// A dead letter leaves the broker.
    pub(in crate::messages) fn unbury(&mut self, index: u32) {
        self.lift(index);
        self.finish(index, MessageEnd::Otherwise);
    }

    pub(in crate::messages) fn dead_page(
        &self,
        queue: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<AdminAnswer, Code> {
        let number = self.queues.find(queue).ok_or(Code::NotFound)?;
        let limit = limit.clamp(1, PAGE_MAX) as usize;
        let mut letters = self.queues.at(number).dead.iter(&self.messages, Lane::Place);
        if let Some(after) = after {
            let after: MessageId = after.parse().map_err(|_| Code::NotFound)?;
            letters.find(|index| self.id_of(*index) == after).ok_or(Code::NotFound)?;
        }
        let mut dead: Vec<DeadView> =
            letters.take(limit + 1).map(|index| self.dead_view(index, FAILURE_LINE_BYTES_MAX)).collect();
        let more = dead.len() > limit;
        dead.truncate(limit);
        let next = dead.last().filter(|_| more).map(|letter| letter.message.id.clone());
        Ok(AdminAnswer::DeadLetters { dead, next })
    }

    pub(in crate::messages) fn dead_answer(&self, queue: &str, id: &str, from: u64) -> Result<AdminAnswer, Code> {
        let number = self.queues.find(queue).ok_or(Code::NotFound)?;
        let index = self.named_dead(number, std::slice::from_ref(&id))?[0];
        let message = &self.messages[index];
        let bytes = &message.bytes;
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(bytes.len());
        // The answer is a frame too, and there is more in it than the piece.
        let most = PIECE_BYTES_MAX.min(self.settings.limits.frame_bytes_max / 2);
        Ok(AdminAnswer::DeadLetter {
            dead: Box::new(self.dead_view(index, usize::MAX)),
            headers: message.flags.has(Flags::HEADERS),
            piece: bytes.slice(from..bytes.len().min(from.saturating_add(most))),
        })
    }

    fn dead_view(&self, index: u32, most: usize) -> DeadView {
        let failure = self.failures.get(&index).map(|failure| &failure.bytes[..]).unwrap_or_default();
        let failure = String::from_utf8_lossy(&failure[..failure.len().min(most)]).into_owned();
        DeadView { message: self.message_view(index), failure }
    }

    /// Dead letters go back into their queue. Nothing happens if one of those named is not among them.
    pub(in crate::messages) fn retry_dead(
        &mut self,
        queue: &str,
        ids: &[String],
        oldest: u32,
        out: &mut impl Sink,
    ) -> Result<AdminAnswer, Code> {
        let number = self.queues.find(queue).ok_or(Code::NotFound)?;
        let (mut done, mut rewritten) = (0, 0);
        for index in self.chosen_dead(number, ids, oldest)? {
            // Those named go together; with so many of the oldest it is no matter how many a call does.
            if done >= ids.len() && rewritten > PORTION_BYTES_MAX {
                break;
            }
            rewritten += self.put_back(index, out);
            done += 1;
        }
        Ok(self.portion(done, number, |queue| u64::from(queue.dead.len())))
    }

    /// Dead letters are removed. Nothing happens if one of those named is not among them.
    pub(in crate::messages) fn purge_dead(
        &mut self,
        queue: &str,
        ids: &[String],
        oldest: u32,
    ) -> Result<AdminAnswer, Code> {
        let number = self.queues.find(queue).ok_or(Code::NotFound)?;
        let chosen = self.chosen_dead(number, ids, oldest)?;
        for index in &chosen {
            self.unbury(*index);
        }
        Ok(self.portion(chosen.len(), number, |queue| u64::from(queue.dead.len())))
    }

    /// To the end of its line, as if it had never been tried. Somebody wants it done: a deadline that has passed does
    /// not count again, one to come still does. Returns the bytes that go to the disk anew for that.
    pub(in crate::messages) fn put_back(&mut self, index: u32, out: &mut impl Sink) -> usize {
        let failure = self.lift(index);
        let now = self.now;
        let message = &mut self.messages[index];
        let (queue, durable) = (message.queue, message.flags.has(Flags::DURABLE));
        let before = Grave { attempts: std::mem::take(&mut message.attempts), deadline: message.deadline, failure };
        message.deadline = message.deadline.filter(|deadline| *deadline > now);
        self.count(queue, |counters| &mut counters.retried);
        if durable {
            self.store_retry(index, before)
        } else {
            self.wait_again(index, out);
            0
        }
    }

    /// A letter that was put back waits: behind the others of its priority, but before those that only the store holds.
    /// Behind them it would keep all that come later in memory.
    pub(in crate::messages) fn wait_again(&mut self, index: u32, out: &mut impl Sink) {
        self.messages[index].state = MessageStage::Waiting;
        self.arm_deadline(index);
        let Message { queue, priority, .. } = self.messages[index];
        if self.queues.at(queue).backlog.level(priority).has_tail() {
            self.place_hot(index, out);
        } else {
            self.place_new(index, out);
        }
    }

    /// Those named, then so many of the oldest of the others, each once.
    fn chosen_dead(&self, number: u32, ids: &[String], oldest: u32) -> Result<Vec<u32>, Code> {
        let mut chosen = self.named_dead(number, ids)?;
        let letters = self.queues.at(number).dead.iter(&self.messages, Lane::Place);
        let named = chosen.len();
        for index in letters.take(oldest.min(PORTION_MAX) as usize + named) {
            if chosen.len() - named < oldest.min(PORTION_MAX) as usize && !chosen[..named].contains(&index) {
                chosen.push(index);
            }
        }
        Ok(chosen)
    }

    /// The letters with these ids, all of them or none. The ids of durable ones name no place, so that all of the
    /// queue's letters are looked at, once for all ids.
    fn named_dead(&self, number: u32, ids: &[impl AsRef<str>]) -> Result<Vec<u32>, Code> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut wanted: BTreeMap<MessageId, Option<u32>> = BTreeMap::new();
        for id in ids {
            wanted.insert(id.as_ref().parse().map_err(|_| Code::NotFound)?, None);
        }
        for index in self.queues.at(number).dead.iter(&self.messages, Lane::Place) {
            if let Some(found) = wanted.get_mut(&self.id_of(index)) {
                *found = Some(index);
            }
        }
        wanted.into_values().map(|found| found.ok_or(Code::NotFound)).collect()
    }
}
