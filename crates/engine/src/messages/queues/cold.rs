//! Cold messages, which wait on disk: a long backlog costs the memory of its window, and a few bytes for each of the
//! rest.
//!
//! A stored message whose turn is far leaves the table of messages; its queue remembers its serial and how long it is.
//! It is loaded before its turn, in its order, and is a message as any other from then on. Nobody looks at its deadline
//! meanwhile: one that is over when it is loaded ends there and then. What people ask about such a message is answered
//! when it was read, and so is a cancellation, which tells what it ended.
//!
//! Loaded messages stay within the limit of memory, and leave a part of it to new messages. A queue for which there is no memory is
//! short: it goes on when there is, and until then has one message at a time, so that it never stands still.

use std::collections::{BTreeSet, VecDeque};

use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::view::Explanation;
use turno_proto::model::{Code, ConnId, MessageId, limits};

use crate::effect::{DiskEffect, HostEffect, PeerEffect, Report, Sink};
use crate::messages::Messages;
use crate::messages::disk::persist::Record;
use crate::messages::dispatch::DispatchStep;
use crate::messages::queues::delayed::DueKey;
use crate::messages::queues::priority_level::{COLD_BYTES, Cold};
use crate::messages::stats::bytes_of;
use crate::messages::table::message::{MessageEnd, MessageStage};

/// How many messages behind a tail join it at once. The others follow with the next change of their queue, so that no
/// single input takes long.
const JOIN_MAX: usize = 64;

/// Loads from the store.
#[derive(Debug, Default)]
pub(in crate::messages) struct Loads {
    /// Loads that have not been answered, in order.
    out: VecDeque<ColdLoad>,
    /// Bytes of memory that all of them count as.
    bytes: u64,
    /// Those of them that somebody waits for.
    questions: usize,
    /// Messages with cold messages in which something changed.
    changed: Vec<u32>,
    /// Queues that were refused memory.
    short: BTreeSet<u32>,
    /// The one of them that got some last.
    served: u32,
}

#[derive(Clone, Copy, Debug)]
struct ColdLoad {
    serial: u64,
    bytes: u64,
    why: LoadReason,
}

/// The reason why a message is loaded.
#[derive(Clone, Copy, Debug)]
enum LoadReason {
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
    pub(in crate::messages) wish: Wish,
}

/// The purpose of a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) enum Wish {
    Explain,
    Cancel,
    /// Not to wait for its time any longer.
    Retry,
}

impl Loads {
    /// Something changed in that queue, which has cold messages.
    pub(in crate::messages) fn look_at(&mut self, queue: u32) {
        if self.changed.last() != Some(&queue) {
            self.changed.push(queue);
        }
    }

    /// Something changed, or somebody waits for memory.
    pub(in crate::messages) fn are_due(&self) -> bool {
        !self.changed.is_empty() || !self.short.is_empty()
    }

    /// Whether the queue was refused memory, and has had none since.
    pub(in crate::messages) fn is_short(&self, queue: u32) -> bool {
        self.short.contains(&queue)
    }

    /// Looks at all that were refused memory.
    pub(in crate::messages) fn look_at_short(&mut self) {
        self.changed.extend(&self.short);
    }

    /// The next queue to get memory: one after the other.
    fn next_short(&self) -> Option<u32> {
        let behind = self.short.range(self.served.saturating_add(1)..).next();
        behind.or_else(|| self.short.first()).copied()
    }

    fn push(&mut self, load: ColdLoad) {
        self.bytes += load.bytes;
        self.out.push_back(load);
    }

    fn pop(&mut self) -> Option<ColdLoad> {
        let load = self.out.pop_front()?;
        self.bytes -= load.bytes;
        Some(load)
    }

    /// The serials that are being loaded for their turn in that line.
    pub(in crate::messages) fn turns(&self, queue: u32, priority: u8) -> impl Iterator<Item = u64> {
        self.out.iter().filter_map(move |load| match load.why {
            LoadReason::Turn { queue: of, priority: at } => ((of, at) == (queue, priority)).then_some(load.serial),
            LoadReason::Question(_) => None,
        })
    }

    pub(crate) fn check(&self) {
        assert!(self.changed.is_empty(), "every change was looked at");
        let questions = self.out.iter().filter(|load| matches!(load.why, LoadReason::Question(_)));
        assert_eq!(questions.count(), self.questions, "the count of questions");
        assert_eq!(self.out.iter().map(|load| load.bytes).sum::<u64>(), self.bytes, "the bytes on their way");
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
        let message = self.messages.remove(index, None, MessageEnd::Otherwise);
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

    /// Whether something may have to be loaded.
    #[inline]
    pub(crate) fn loads_are_due(&self) -> bool {
        self.loads.are_due()
    }

    /// Bytes that may be loaded beside all that is held and on its way. Loads leave a part of the memory to new messages, and as
    /// much as those do to frames on their way in.
    fn room_to_load(&self) -> u64 {
        let limits = &self.settings.limits;
        let elsewhere = self.bytes_elsewhere.max(limits.margin() + limits.frame_share());
        let kept_for_new = self.settings.kept_for_new.unwrap_or_else(|| limits.kept_for_new());
        let taken = [elsewhere, self.loads.bytes, kept_for_new];
        let taken = taken.into_iter().fold(self.stats.bytes, u64::saturating_add);
        limits.memory_bytes_max.saturating_sub(taken)
    }

    /// Whether a message that outlived the last run stays on disk. The first of each priority is at hand.
    pub(in crate::messages) fn stays_cold(&mut self, queue: u32, priority: u8, bytes: u64) -> bool {
        let line = self.queues.at(queue).backlog.level(priority);
        if line.goes_cold(self.settings.hot_bytes) {
            return true;
        }
        let refused = !line.is_empty() && bytes > self.room_to_load();
        if refused {
            self.loads.short.insert(queue);
        }
        refused
    }

    /// Looks after the queues in which something changed. While some were refused memory, these get what there is, in turn.
    #[inline(never)]
    pub(crate) fn load(&mut self, out: &mut impl Sink) {
        while let Some(number) = self.loads.changed.pop() {
            let room = if self.loads.short.is_empty() { self.room_to_load() } else { 0 };
            self.load_queue(number, room, out);
        }
        while let Some(number) = self.loads.next_short() {
            let before = self.loads.out.len();
            self.load_queue(number, self.room_to_load(), out);
            if self.loads.out.len() > before {
                self.loads.served = number;
            }
            if self.loads.is_short(number) {
                return;
            }
        }
    }

    /// Something of a queue came to its end, or is about to come back: if it was refused memory, it may be its turn to go on.
    pub(in crate::messages) fn note_short(&mut self, queue: u32) {
        if self.loads.is_short(queue) {
            self.loads.look_at(queue);
        }
    }

    /// A drain hands nothing out, and so needs nothing.
    fn load_queue(&mut self, number: u32, mut room: u64, out: &mut impl Sink) {
        self.loads.short.remove(&number);
        let Some(queue) = self.queues.get(number) else { return };
        // Without this one nothing of the queue would come to its end, and give memory back.
        let mut must = queue.in_flight + queue.returning == 0 && queue.backlog.waits_for_cold();
        for priority in queue.backlog.priorities_with_cold() {
            self.join_tail(number, priority);
            if self.drain.is_some() {
                continue;
            }
            let (loads, backlog) = (&mut self.loads, &mut self.queues.at_mut(number).backlog);
            let is_short = backlog.load(priority, self.settings.hot_bytes, |cold| {
                let (serial, bytes) = (cold.serial(), cold.bytes());
                if bytes > room && !must {
                    return false;
                }
                (room, must) = (room.saturating_sub(bytes), false);
                loads.push(ColdLoad { serial, bytes, why: LoadReason::Turn { queue: number, priority } });
                out.disk(DiskEffect::Load { serial });
                true
            });
            if is_short {
                self.loads.short.insert(number);
            }
        }
    }

    /// Messages that had to wait in memory behind a tail become a part of it, once nothing is between them.
    fn join_tail(&mut self, number: u32, priority: u8) {
        for _ in 0..JOIN_MAX {
            let backlog = &mut self.queues.at_mut(number).backlog;
            let Some(index) = backlog.level(priority).could_be_cold(&self.messages) else { return };
            backlog.remove(&mut self.messages, index);
            self.chill(index);
        }
    }

    /// The store's record with that serial came.
    #[inline(never)]
    pub(crate) fn loaded(&mut self, serial: u64, record: Option<Record>, out: &mut impl Sink) {
        let load = self.loads.pop().expect("only what was asked for is loaded");
        assert_eq!(load.serial, serial, "loads are answered in their order");
        match load.why {
            LoadReason::Turn { queue, priority } => self.loaded_for_turn(queue, priority, serial, record, out),
            LoadReason::Question(question) => {
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
        if self.queues.get(queue).is_none_or(|queue| queue.backlog.level(priority).position(serial).is_none()) {
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
            self.agenda.push_back(DispatchStep::Queue(queue));
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
        // Others may have waited for this one.
        self.agenda.push_back(DispatchStep::Queue(queue));
        self.queues.forget_if_idle(queue);
    }
}

/// Questions.
impl Messages {
    /// The serial of a message that only the store holds.
    pub(in crate::messages) fn find_cold(&self, id: &str) -> Option<u64> {
        let id: MessageId = id.parse().ok()?;
        let serial = id.serial();
        let held = || self.place_of_cold(serial).is_some() || self.place_of_delayed(serial).is_some();
        (id == self.settings.id(serial, None) && held()).then_some(serial)
    }

    /// Only people ask, so it may take a look at all queues.
    fn place_of_cold(&self, serial: u64) -> Option<(u32, u8)> {
        self.queues.after(None).find_map(|(number, queue)| Some((number, queue.backlog.find_cold(serial)?)))
    }

    /// The answer comes when the message was read. One at a time is read though there is no memory for it.
    pub(in crate::messages) fn ask(&mut self, serial: u64, question: Question, out: &mut impl Sink) {
        let place = self.place_of_cold(serial);
        let cold = place.and_then(|(queue, priority)| self.queues.at(queue).backlog.level(priority).find(serial));
        let bytes = cold.map_or(0, |cold| cold.bytes());
        let refused = match self.loads.questions {
            0 => None,
            limits::QUESTIONS_MAX.. => Some(Code::TooManyInFlight),
            _ => (bytes > self.room_to_load()).then_some(Code::OverMemory),
        };
        if let Some(code) = refused {
            let Question { conn, seq, .. } = question;
            return out.peer(PeerEffect::Answer { conn, seq, result: Err(code) });
        }
        self.loads.questions += 1;
        self.loads.push(ColdLoad { serial, bytes, why: LoadReason::Question(question) });
        out.disk(DiskEffect::Load { serial });
    }

    /// The same of a message that waits on disk for its time.
    fn answer_of_delayed(
        &mut self,
        wish: Wish,
        (queue, key): (u32, DueKey),
        record: Option<Record>,
        out: &mut impl Sink,
    ) -> Result<Explanation, Code> {
        let (until, serial) = key;
        let Some(record) = record else {
            self.forget_delayed_cold(queue, key);
            self.durable.len -= 1;
            out.host(HostEffect::Report(Report::Missing { serial }));
            return Err(Code::NotFound);
        };
        let mut message = self.revive(queue, serial, record, 0);
        message.state = MessageStage::Delayed { until };
        let explanation = self.explain_delayed(&message, until);
        match wish {
            Wish::Explain => {}
            Wish::Cancel => self.cancel_delayed_cold(queue, key),
            Wish::Retry => {
                self.add_bytes(queue, bytes_of(message.bytes.len()));
                message.state = MessageStage::Waiting;
                let index = self.messages.insert_again(message);
                self.take_delayed(queue, key);
                self.note_no_wait(index);
                self.wait_now(index, out);
            }
        }
        Ok(explanation)
    }

    /// The message was read for the question; wherever it is now.
    fn answer_question(
        &mut self,
        question: Question,
        serial: u64,
        record: Option<Record>,
        out: &mut impl Sink,
    ) -> Result<AdminAnswer, Code> {
        let id = self.settings.id(serial, None);
        let ahead_max = if question.wish == Wish::Explain { limits::AHEAD_MAX } else { limits::AHEAD_CANCELLED_MAX };
        let explanation = if let Some(index) = self.messages.find(id, &self.settings) {
            let explanation = self.explain(index, ahead_max);
            match question.wish {
                Wish::Explain => {}
                Wish::Cancel => self.cancel(index, out),
                Wish::Retry => self.retry_now(index, out),
            }
            explanation
        } else if let Some((queue, key, priority)) = self.place_of_delayed(serial) {
            self.answer_of_delayed(
                question.wish,
                (queue, key),
                record.map(|record| Record { priority, ..record }),
                out,
            )?
        } else {
            let (queue, priority) = self.place_of_cold(serial).ok_or(Code::NotFound)?;
            let Some(record) = record else {
                self.miss(queue, priority, serial, out);
                return Err(Code::NotFound);
            };
            let message = self.revive(queue, serial, Record { priority, ..record }, 0);
            let explanation = self.explain_cold(&message, ahead_max);
            if question.wish == Wish::Cancel {
                self.cancel_cold(queue, priority, serial);
            }
            explanation
        };
        Ok(AdminAnswer::Message { explanation: Box::new(explanation) })
    }
}
