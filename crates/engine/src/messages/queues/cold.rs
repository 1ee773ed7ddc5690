//! Messages that wait on disk: a long backlog costs the memory of its window, and a few bytes for each of the rest.
//!
//! A stored message whose turn is far leaves the table of messages; its queue remembers its serial and how long it is.
//! It is loaded before its turn, in its order, and is a message as any other from then on. Nobody looks at its deadline
//! meanwhile: one that is over when it is loaded ends there and then. What people ask about such a message is answered
//! when it was read, and so is a cancellation, which tells what it ended.

use std::collections::VecDeque;

use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::{Code, ConnId, MessageId, limits};

use crate::effect::{DiskEffect, HostEffect, PeerEffect, Report, Sink};
use crate::messages::Messages;
use crate::messages::disk::persist::Record;
use crate::messages::dispatch::Item;
use crate::messages::queues::line::{COLD_BYTES, Cold};
use crate::messages::stats::bytes_of;
use crate::messages::table::chain::NIL;
use crate::messages::table::message::End;

/// How many messages behind a tail join it at once. The others follow with the next change of their queue, so that no
/// single input takes long.
const JOIN_MAX: usize = 64;

/// What is being read from the store.
#[derive(Debug, Default)]
pub(in crate::messages) struct Loads {
    /// What was asked for and has not come, in order.
    out: VecDeque<Load>,
    /// Those of them that somebody waits for.
    questions: usize,
    /// Messages with cold messages in which something changed.
    changed: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Load {
    serial: u64,
    why: Why,
}

/// What a message is loaded for.
#[derive(Clone, Copy, Debug)]
enum Why {
    /// Its turn is near.
    Turn { queue: u32, priority: u8 },
    /// Somebody asks about it.
    Question(Question),
}

/// Somebody wants to know about a message, or to end it.
#[derive(Clone, Copy, Debug)]
pub(in crate::messages) struct Question {
    pub(in crate::messages) conn: ConnId,
    pub(in crate::messages) seq: u32,
    pub(in crate::messages) cancel: bool,
}

impl Loads {
    /// Something changed in that queue, which has cold messages.
    pub(in crate::messages) fn look_at(&mut self, queue: u32) {
        if self.changed.last() != Some(&queue) {
            self.changed.push(queue);
        }
    }

    pub(in crate::messages) const fn are_due(&self) -> bool {
        !self.changed.is_empty()
    }

    /// The serials that are being loaded for their turn in that line.
    pub(in crate::messages) fn turns(&self, queue: u32, priority: u8) -> impl Iterator<Item = u64> {
        self.out.iter().filter_map(move |load| match load.why {
            Why::Turn { queue: of, priority: at } if (of, at) == (queue, priority) => Some(load.serial),
            _ => None,
        })
    }

    pub(crate) fn check(&self) {
        assert_eq!(self.changed, [], "every change was looked at");
        let questions = self.out.iter().filter(|load| matches!(load.why, Why::Question(_)));
        assert_eq!(questions.count(), self.questions, "the count of questions");
    }
}

impl Messages {
    /// Whether a message that was just stored waits on disk.
    pub(in crate::messages) fn goes_cold(&self, index: u32) -> bool {
        let message = &self.messages[index];
        self.queues.at(message.queue).backlog.goes_cold(message.priority, self.settings.hot_bytes)
    }

    /// A new message, which was just stored, takes its place on disk.
    pub(in crate::messages) fn place_cold(&mut self, index: u32) {
        let queue = self.messages[index].queue;
        self.chill(index);
        self.stats.ready += 1;
        self.note_waiting(queue);
    }

    /// The message leaves the table, and the last place of its line's tail is its own.
    fn chill(&mut self, index: u32) {
        self.disarm(index);
        let message = self.messages.remove(index, None, End::Otherwise);
        self.drop_bytes(message.queue, bytes_of(message.bytes.len()));
        self.keep_cold(message.queue, message.priority, Cold::new(message.serial, message.bytes.len()));
    }

    pub(in crate::messages) fn keep_cold(&mut self, number: u32, priority: u8, cold: Cold) {
        let queue = self.queues.at_mut(number);
        queue.backlog.push_cold(priority, cold);
        queue.bytes += cold.bytes();
        self.stats.bytes += COLD_BYTES;
    }

    fn forget_cold(&mut self, number: u32, priority: u8, serial: u64) {
        let queue = self.queues.at_mut(number);
        let cold = queue.backlog.remove_cold(priority, serial).expect("looked up a moment ago");
        queue.bytes -= cold.bytes();
        self.stats.bytes -= COLD_BYTES;
    }

    /// Looks after the queues in which something changed, if there are any.
    #[inline]
    pub(crate) fn load_if_due(&mut self, out: &mut impl Sink) {
        if self.loads.are_due() {
            self.load(out);
        }
    }

    /// A drain hands nothing out, and so needs nothing.
    #[inline(never)]
    fn load(&mut self, out: &mut impl Sink) {
        while let Some(number) = self.loads.changed.pop() {
            let Some(queue) = self.queues.get(number) else { continue };
            for priority in queue.backlog.priorities_with_cold() {
                self.join_tail(number, priority);
                if self.drain.is_some() {
                    continue;
                }
                let (loads, backlog) = (&mut self.loads.out, &mut self.queues.at_mut(number).backlog);
                backlog.load(priority, self.settings.hot_bytes, |serial| {
                    loads.push_back(Load { serial, why: Why::Turn { queue: number, priority } });
                    out.disk(DiskEffect::Load { serial });
                });
            }
        }
    }

    /// What had to wait in memory behind a tail becomes a part of it, once nothing is between them.
    fn join_tail(&mut self, number: u32, priority: u8) {
        for _ in 0..JOIN_MAX {
            let backlog = &mut self.queues.at_mut(number).backlog;
            let Some(index) = backlog.line(priority).could_be_cold(&self.messages) else { return };
            backlog.remove(&mut self.messages, index);
            self.chill(index);
        }
    }

    /// What the store has under that serial.
    #[inline(never)]
    pub(crate) fn loaded(&mut self, serial: u64, record: Option<Record>, out: &mut impl Sink) {
        let load = self.loads.out.pop_front().expect("only what was asked for is loaded");
        assert_eq!(load.serial, serial, "loads are answered in their order");
        match load.why {
            Why::Turn { queue, priority } => self.loaded_for_turn(queue, priority, serial, record, out),
            Why::Question(question) => {
                self.loads.questions -= 1;
                let Question { conn, seq, .. } = question;
                match self.answer_question(question, serial, record, out) {
                    Ok(answer) => self.tell_once_stored(conn, seq, answer, out),
                    Err(code) => out.peer(PeerEffect::Answer { conn, seq, result: Err(code) }),
                }
            }
        }
    }

    fn loaded_for_turn(&mut self, queue: u32, priority: u8, serial: u64, record: Option<Record>, out: &mut impl Sink) {
        // It may have ended meanwhile, and its queue with it.
        if self.queues.get(queue).is_none_or(|queue| queue.backlog.line(priority).position(serial).is_none()) {
            return;
        }
        let Some(record) = record else { return self.miss(queue, priority, serial, out) };
        let message = self.revive(queue, serial, Record { priority, ..record }, 0);
        let late = message.past_deadline(self.now);
        self.add_bytes(queue, bytes_of(message.bytes.len()));
        let index = self.messages.insert_again(message);
        // It has its place in memory before the one in the tail is gone, or what is behind the tail would be first.
        self.queues.at_mut(queue).backlog.push_hot(&mut self.messages, index);
        self.forget_cold(queue, priority, serial);
        self.note_waiting(queue);
        if late {
            self.expire_waiting(index, out);
        } else {
            self.arm_deadline(index);
            self.agenda.push_back(Item::Queue(queue));
        }
    }

    /// The store has confirmed a message and does not have it.
    fn miss(&mut self, queue: u32, priority: u8, serial: u64, out: &mut impl Sink) {
        self.end_cold(queue, priority, serial);
        self.durable.len -= 1;
        out.host(HostEffect::Report(Report::Missing { serial }));
    }

    pub(in crate::messages) fn cancel_cold(&mut self, queue: u32, priority: u8, serial: u64) {
        self.count(queue, |counters| &mut counters.cancelled);
        self.end_cold(queue, priority, serial);
        self.durable.end_cold(serial);
    }

    /// A message that only the store holds is over.
    fn end_cold(&mut self, queue: u32, priority: u8, serial: u64) {
        self.forget_cold(queue, priority, serial);
        self.stats.ready -= 1;
        self.note_waiting(queue);
        // What waits may have waited for this one.
        self.agenda.push_back(Item::Queue(queue));
        self.queues.forget_if_idle(queue);
    }
}

/// Questions.
impl Messages {
    /// The serial of a message that only the store holds.
    pub(in crate::messages) fn find_cold(&self, id: &str) -> Option<u64> {
        let id: MessageId = id.parse().ok()?;
        let serial = id.serial();
        let known = id == self.settings.id(serial, NIL) && self.place_of_cold(serial).is_some();
        known.then_some(serial)
    }

    /// Only people ask, so it may take a look at all queues.
    fn place_of_cold(&self, serial: u64) -> Option<(u32, u8)> {
        self.queues.after(None).find_map(|(number, queue)| Some((number, queue.backlog.find_cold(serial)?)))
    }

    /// The answer comes when the message was read.
    pub(in crate::messages) fn ask(&mut self, serial: u64, question: Question, out: &mut impl Sink) {
        if self.loads.questions >= limits::QUESTIONS_MAX {
            let Question { conn, seq, .. } = question;
            return out.peer(PeerEffect::Answer { conn, seq, result: Err(Code::TooManyInFlight) });
        }
        self.loads.questions += 1;
        self.loads.out.push_back(Load { serial, why: Why::Question(question) });
        out.disk(DiskEffect::Load { serial });
    }

    /// The message was read for the question; wherever it is now.
    fn answer_question(
        &mut self,
        question: Question,
        serial: u64,
        record: Option<Record>,
        out: &mut impl Sink,
    ) -> Result<AdminAnswer, Code> {
        let id = self.settings.id(serial, NIL);
        let ahead_max = if question.cancel { limits::AHEAD_CANCELLED_MAX } else { limits::AHEAD_MAX };
        let explanation = if let Some(index) = self.messages.find(id, &self.settings) {
            let explanation = self.explain(index, ahead_max);
            if question.cancel {
                self.cancel(index, out);
            }
            explanation
        } else {
            let (queue, priority) = self.place_of_cold(serial).ok_or(Code::NotFound)?;
            let Some(record) = record else {
                self.miss(queue, priority, serial, out);
                return Err(Code::NotFound);
            };
            let message = self.revive(queue, serial, Record { priority, ..record }, 0);
            let explanation = self.explain_cold(&message, ahead_max);
            if question.cancel {
                self.cancel_cold(queue, priority, serial);
            }
            explanation
        };
        Ok(AdminAnswer::Message { explanation: Box::new(explanation) })
    }
}
