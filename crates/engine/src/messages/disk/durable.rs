//! Steps that wait for the disk: nobody is told that a message is stored before it is.
//!
//! All changes of durable messages by one input go out as one numbered group of [`Persist`]s. The shell says up to
//! which number everything is on disk, in order. Then the steps that waited for a group go on: a new message is answered and
//! takes its place, one whose attempt failed goes back to the head of its queue. Deliveries themselves are not written
//! down: a crash may add one uncounted delivery to each message that a worker had.

use std::collections::VecDeque;

use bytes::Bytes;
use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::view::QueueSettings;
use turno_proto::model::{Code, ConnId, Durability, Mono, QueueName};

use crate::effect::{DiskEffect, NativeEffect, PeerEffect, Sink};
use crate::jobs::JobAfterStored;
use crate::messages::Messages;
use crate::messages::disk::pending_writes::PendingWrites;
use crate::messages::disk::persist::{NewRecord, Persist, Wait};
use crate::messages::queues::dead::Grave;
use crate::messages::table::message::{Flags, Message, MessageEnd, MessageStage};

/// Steps that wait for the disk.
#[derive(Debug, Default)]
pub(crate) struct Durable {
    /// The number of the latest group.
    group: u64,
    /// Operations of the group that is being made.
    ops: Vec<Change>,
    /// Steps that go on once a group is stored, in the order of the groups.
    waiting: VecDeque<(u64, AfterStored)>,
    pub(in crate::messages) pending_writes: PendingWrites,
    /// Durable messages there are.
    pub(in crate::messages) len: u64,
}

/// An operation on its way out.
#[derive(Debug)]
pub(in crate::messages) enum Change {
    /// The message at that place as it is, which stays there until it is stored.
    Put(u32),
    Note(Persist),
}

/// A step that goes on once its group is stored.
#[derive(Debug)]
enum AfterStored {
    /// A new message takes its place, and its sender is answered.
    Begin { index: u32, conn: ConnId, seq: u32 },
    /// Another attempt.
    Again { index: u32 },
    /// A dead letter waits in its queue again.
    Retry { index: u32, before: Box<Grave> },
    /// An admin hears what was done.
    Tell { conn: ConnId, seq: u32, answer: Box<AdminAnswer> },
    /// A queue has other settings, and an admin hears of it.
    Set { conn: ConnId, seq: u32, change: Box<NewSettings> },
    /// Something about jobs.
    Job(JobAfterStored),
}

/// The settings that a queue is to have; `None`: those of all queues.
#[derive(Debug)]
struct NewSettings {
    queue: QueueName,
    settings: Option<QueueSettings>,
}

impl Durable {
    /// The settings that a queue will have, if others than it has are on their way to the disk.
    pub(in crate::messages) fn latest_settings(&self, queue: &QueueName) -> Option<Option<QueueSettings>> {
        self.waiting.iter().rev().find_map(|(_, then)| match then {
            AfterStored::Set { change, .. } => (change.queue == *queue).then_some(change.settings),
            AfterStored::Begin { .. }
            | AfterStored::Again { .. }
            | AfterStored::Retry { .. }
            | AfterStored::Tell { .. }
            | AfterStored::Job(_) => None,
        })
    }

    pub(in crate::messages) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.pending_writes.is_empty()
    }

    /// Whether everything that waits for a group waits for one that was sent to the disk.
    pub(in crate::messages) fn waits_for_sent_groups(&self) -> bool {
        self.waiting.back().is_none_or(|(group, _)| *group <= self.group)
    }

    /// Something about jobs goes on once the group that is being made is stored.
    pub(crate) fn wait_with_job(&mut self, then: JobAfterStored) {
        self.waiting.push_back((self.group + 1, AfterStored::Job(then)));
    }

    /// The attempts of a message so far, and the time that it waits for.
    pub(in crate::messages) fn note_attempts(&mut self, serial: u64, attempts: u16, wait: Option<Wait>) {
        self.note(Persist::Attempts { serial, attempts, wait });
    }

    /// Adds to the group that is being made.
    pub(crate) fn note(&mut self, op: Persist) {
        self.ops.push(Change::Note(op));
    }

    /// Whether the input that is being handled changes anything on disk.
    pub(in crate::messages) const fn has_ops(&self) -> bool {
        !self.ops.is_empty()
    }

    /// A message is done with: it is durable no longer.
    pub(in crate::messages) fn end(&mut self, message: &Message) {
        if message.flags.has(Flags::DURABLE) && !message.flags.has(Flags::ENDED) {
            self.len -= 1;
            self.note(Persist::Remove { serial: message.serial, marked: message.flags.has(Flags::MARKED) });
        }
    }

    /// The same of one that only the store holds.
    pub(in crate::messages) fn end_cold(&mut self, serial: u64) {
        self.len -= 1;
        self.note(Persist::Remove { serial, marked: false });
    }

    /// Messages that come back from a worker once their attempt is written down.
    pub(in crate::messages) fn returning(&self) -> impl Iterator<Item = u32> {
        self.waiting.iter().filter_map(|(_, then)| match then {
            AfterStored::Again { index } => Some(*index),
            AfterStored::Begin { .. }
            | AfterStored::Retry { .. }
            | AfterStored::Tell { .. }
            | AfterStored::Set { .. }
            | AfterStored::Job(_) => None,
        })
    }

    /// The messages that wait for the disk.
    pub(in crate::messages) fn indexes(&self) -> impl Iterator<Item = u32> {
        let waiting = self.waiting.iter().filter_map(|(_, then)| match then {
            AfterStored::Begin { index, .. } | AfterStored::Again { index } | AfterStored::Retry { index, .. } => {
                Some(*index)
            }
            AfterStored::Tell { .. } | AfterStored::Set { .. } | AfterStored::Job(_) => None,
        });
        waiting.chain(self.pending_writes.indexes())
    }
}

impl Messages {
    /// A message that was just let in waits until it is stored, and then until its time has come.
    pub(in crate::messages) fn store(&mut self, index: u32, until: Mono, conn: ConnId, seq: u32) {
        self.messages[index].flags.set(Flags::DURABLE);
        self.durable.len += 1;
        self.durable.ops.push(Change::Put(index));
        self.wait_for_disk(index, until, AfterStored::Begin { index, conn, seq });
    }

    /// The failed attempt of a message that has others left is written down before the next one, which is not before `until`.
    pub(in crate::messages) fn store_attempts(&mut self, index: u32, until: Mono) {
        let wait = self.wait_until(until);
        let message = &mut self.messages[index];
        message.flags.set(Flags::MARKED);
        let (serial, attempts) = (message.serial, message.attempts);
        self.durable.note_attempts(serial, attempts, wait);
        let queue = message.queue;
        self.queues.at_mut(queue).returning += 1;
        self.wait_for_disk(index, until, AfterStored::Again { index });
    }

    /// The same once more, because the disk refused it.
    pub(in crate::messages) fn store_attempts_again(&mut self, index: u32) {
        let until = self.waits_until(index);
        if self.stored(index) {
            self.store_attempts(index, until);
        }
    }

    /// When a message that is being stored may have its place.
    fn waits_until(&self, index: u32) -> Mono {
        match self.messages[index].state {
            MessageStage::Storing { until, .. } => until,
            _ => self.now,
        }
    }

    /// A dead letter is written down with what its last failure said.
    pub(in crate::messages) fn store_death(&mut self, index: u32, failure: &Bytes) {
        let message = &mut self.messages[index];
        if message.flags.has(Flags::DURABLE) {
            message.flags.set(Flags::MARKED);
            let (serial, attempts, failure) = (message.serial, message.attempts, failure.clone());
            self.durable.note(Persist::Dead { serial, attempts, failure });
            self.durable.pending_writes.death(self.durable.group + 1, index, serial);
        }
    }

    /// A dead letter goes back into its queue once it is no longer written down as dead.
    /// Returns the bytes of its payload if they had to be written anew.
    pub(in crate::messages) fn store_retry(&mut self, index: u32, before: Grave) -> usize {
        let message = &mut self.messages[index];
        message.flags.clear(Flags::MARKED);
        let (serial, anew) = (message.serial, message.deadline != before.deadline);
        let rewritten = if anew { message.bytes.len() } else { 0 };
        if anew {
            self.durable.ops.push(Change::Put(index));
        }
        self.durable.note(Persist::Retry { serial });
        self.wait_for_disk(index, self.now, AfterStored::Retry { index, before: Box::new(before) });
        rewritten
    }

    /// An admin is answered once all that the call has changed is stored.
    pub(crate) fn tell_once_stored(&mut self, conn: ConnId, seq: u32, answer: AdminAnswer, out: &mut impl Sink) {
        let answer = Box::new(answer);
        if self.durable.ops.is_empty() {
            out.peer(PeerEffect::admin(conn, seq, answer));
        } else {
            self.durable.waiting.push_back((self.durable.group + 1, AfterStored::Tell { conn, seq, answer }));
        }
    }

    /// A queue's settings hold once they are stored.
    pub(in crate::messages) fn store_settings(
        &mut self,
        conn: ConnId,
        seq: u32,
        queue: QueueName,
        settings: Option<QueueSettings>,
    ) {
        self.durable.note(match settings {
            Some(settings) => Persist::SetQueue { queue: queue.clone(), settings },
            None => Persist::UnsetQueue { queue: queue.clone() },
        });
        let change = Box::new(NewSettings { queue, settings });
        self.durable.waiting.push_back((self.durable.group + 1, AfterStored::Set { conn, seq, change }));
    }

    fn wait_for_disk(&mut self, index: u32, until: Mono, then: AfterStored) {
        let message = &mut self.messages[index];
        message.state = MessageStage::Storing { dropped: false, until };
        self.queues.at_mut(message.queue).storing += 1;
        self.durable.waiting.push_back((self.durable.group + 1, then));
    }

    #[inline]
    pub(crate) fn persist_if_changed(&mut self, out: &mut impl Sink) {
        if self.durable.has_ops() {
            self.persist(out);
        }
    }

    /// Sends the changes of this input out as one group.
    #[inline(never)]
    fn persist(&mut self, out: &mut impl Sink) {
        self.durable.group += 1;
        let group = self.durable.group;
        self.durable.pending_writes.note_ends(group, &self.durable.ops);
        for change in self.durable.ops.drain(..) {
            match change {
                Change::Put(index) => {
                    let message = &self.messages[index];
                    let unix_ms = |at| self.settings.unix_ms(at);
                    out.put(NewRecord {
                        group,
                        serial: message.serial,
                        queue: &self.queues.at(message.queue).name,
                        priority: message.priority,
                        cost: message.cost.slots(),
                        retries: message.retries,
                        born_unix_ms: unix_ms(message.born),
                        deadline_unix_ms: message.deadline.map(unix_ms),
                        due_unix_ms: due_after(message.state, message.born).map(unix_ms),
                        headers: message.flags.has(Flags::HEADERS),
                        bytes: &message.bytes,
                    });
                }
                Change::Note(op) => out.disk(DiskEffect::Persist { group, op }),
            }
        }
    }

    /// Everything up to that group is on disk. If the next thing to go on is one of jobs, it is returned, and the call is to be
    /// repeated.
    #[inline(never)]
    pub(crate) fn persisted(&mut self, group: u64, out: &mut impl Sink) -> Option<JobAfterStored> {
        self.durable.pending_writes.stored(group);
        while let Some((_, then)) = self.durable.waiting.pop_front_if(|(of, _)| *of <= group) {
            match then {
                AfterStored::Begin { index, conn, seq } => {
                    let (id, serial) = (self.id_of(index), self.messages[index].serial);
                    out.peer(PeerEffect::Native {
                        conn,
                        effect: NativeEffect::Stored { seq, id, durability: Durability::Disk, duplicate: false },
                    });
                    self.answer_again(serial, out);
                    let until = self.waits_until(index);
                    if self.stored(index) {
                        if until > self.now {
                            self.delay_cold(index, until);
                            continue;
                        }
                        self.messages[index].state = MessageStage::Waiting;
                        if self.goes_cold(index) {
                            self.place_cold(index);
                        } else {
                            self.arm_deadline(index);
                            self.place_new(index, out);
                        }
                    }
                }
                AfterStored::Retry { index, .. } => {
                    if self.stored(index) {
                        self.wait_again(index, out);
                    }
                }
                AfterStored::Tell { conn, seq, answer } => out.peer(PeerEffect::admin(conn, seq, answer)),
                AfterStored::Job(then) => return Some(then),
                AfterStored::Set { conn, seq, change } => {
                    let NewSettings { queue, settings } = *change;
                    self.settings_hold(conn, seq, queue, settings, out);
                }
                AfterStored::Again { index } => {
                    let queue = self.returned(index);
                    let until = self.waits_until(index);
                    if self.stored(index) {
                        if until > self.now { self.delay(index, until) } else { self.place_again(index) }
                    }
                    self.note_unused(queue);
                }
            }
        }
        None
    }

    /// A group was not stored, and will not be: the disk has no room for it, or it is too large. What it refused of jobs is
    /// returned, as by [`Self::persisted`].
    #[inline(never)]
    pub(crate) fn refused(&mut self, group: u64, code: Code, out: &mut impl Sink) -> Option<JobAfterStored> {
        self.keep_refused(group);
        while let Some(at) = self.durable.waiting.iter().position(|(of, _)| *of == group) {
            match self.durable.waiting.remove(at).map(|(_, then)| then) {
                Some(AfterStored::Begin { index, conn, seq }) => {
                    // Its end, now or because it was cancelled meanwhile, is nothing to the disk.
                    self.messages[index].flags.clear(Flags::DURABLE);
                    self.durable.len -= 1;
                    let serial = self.messages[index].serial;
                    if self.stored(index) {
                        self.finish(index, MessageEnd::Otherwise);
                    }
                    self.refuse(conn, seq, code, out);
                    self.refuse_again(serial, code, out);
                }
                Some(AfterStored::Again { index }) => {
                    // It stays away for long, and its queue does not wait for it.
                    let queue = self.returned(index);
                    self.durable.pending_writes.attempt(index, self.messages[index].serial);
                    self.note_unused(queue);
                }
                Some(AfterStored::Job(then)) => return Some(then),
                Some(AfterStored::Retry { index, before }) => self.lies_again(index, *before),
                Some(AfterStored::Tell { conn, seq, .. } | AfterStored::Set { conn, seq, .. }) => {
                    out.peer(PeerEffect::Answer { conn, seq, result: Err(code) });
                }
                None => return None,
            }
        }
        None
    }

    /// The message is on its way back from a worker no longer. Returns its queue.
    fn returned(&mut self, index: u32) -> u32 {
        let queue = self.messages[index].queue;
        self.queues.at_mut(queue).returning -= 1;
        self.note_short(queue);
        queue
    }

    /// A dead letter could not be put back: it is what it was, here and on the disk.
    fn lies_again(&mut self, index: u32, before: Grave) {
        self.messages[index].flags.set(Flags::MARKED);
        if self.stored(index) {
            let message = &mut self.messages[index];
            (message.attempts, message.deadline) = (before.attempts, before.deadline);
            self.disarm(index);
            self.lay(index, before.failure);
        }
    }

    /// The message waits for the disk no longer. False if it was cancelled meanwhile: then it is over.
    fn stored(&mut self, index: u32) -> bool {
        let message = &self.messages[index];
        self.queues.at_mut(message.queue).storing -= 1;
        if matches!(message.state, MessageStage::Storing { dropped: true, .. }) {
            self.finish(index, MessageEnd::Otherwise);
            return false;
        }
        true
    }
}

/// When a message that is being stored for the first time is due, if that is later.
fn due_after(state: MessageStage, born: Mono) -> Option<Mono> {
    match state {
        MessageStage::Storing { until, .. } => (until > born).then_some(until),
        _ => None,
    }
}
