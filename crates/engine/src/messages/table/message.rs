//! The table of messages: a slab of small records, found by index in one step.
//!
//! A vacant place remembers how its last delivery ended, so that a settling frame that comes too late can be
//! told from one that comes twice and from one that was never the sender's to give.

use std::num::NonZeroU32;
use std::ops::{Index, IndexMut};

use bytes::Bytes;
use turno_proto::model::view::MessageKind;
use turno_proto::model::{ConnId, Cost, Delivery, MessageId, Mono};

use crate::effect::{CallerMessage, PeerEffect};
use crate::messages::table::chain::{ChainLinks, Lane, NIL};
use crate::messages::table::timers::TimerId;
use crate::settings::Settings;

/// Where a message is. Each state carries only what is true in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) enum MessageStage {
    /// In its queue's backlog.
    Waiting,
    /// At a worker, which will settle it.
    Held {
        worker: ConnId,
        /// Milliseconds from its birth to this delivery.
        age_ms: u32,
        /// Its caller has a piece of the reply: a new attempt would begin the stream again, so there is none.
        streamed: bool,
        /// Its worker has given its slots back, and can still answer (see `keeping`).
        freed: bool,
    },
    /// Over for its caller; the worker was told to stop and still holds the slots.
    Stopping { worker: ConnId, freed: bool },
    /// Over for its caller, which has the answer; the worker still holds the slots (see `keeping`).
    Answered { worker: ConnId },
    /// A broadcast that has not ended; its deliveries have records of their own.
    Broadcast,
    /// One delivery of a broadcast, at a consumer that has not ended.
    Asked { worker: ConnId, broadcast: u32 },
    /// On its way to the disk, and nowhere else. `dropped`: cancelled meanwhile. `until`: it has no place before then.
    Storing { dropped: bool, until: Mono },
    /// Waits for its time.
    Delayed { until: Mono },
    /// Used up its attempts.
    Dead,
}

/// Yes-or-no facts about a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::messages) struct Flags(u8);

impl Flags {
    /// Its bytes begin with a header block.
    pub(in crate::messages) const HEADERS: u8 = 1;
    /// It outlives the broker.
    pub(in crate::messages) const DURABLE: u8 = 2;
    /// Its attempts or its death are written down.
    pub(in crate::messages) const MARKED: u8 = 4;
    /// Its end is written down.
    pub(in crate::messages) const ENDED: u8 = 16;
    /// It is counted in the hot window of its line; see `line`.
    pub(in crate::messages) const COUNTED: u8 = 8;
    /// A request whose worker is told to stop when the caller is gone.
    pub(in crate::messages) const ENDS_WITH_CALLER: u8 = 32;
    /// It came over a link: it is another broker's to keep.
    pub(in crate::messages) const FORWARDED: u8 = 128;
    /// A waiting request whose caller is gone: it only waits for its end; see `deferred`.
    pub(in crate::messages) const ABANDONED: u8 = 64;

    pub(in crate::messages) const fn with_headers(headers: bool) -> Self {
        Self(if headers { Self::HEADERS } else { 0 })
    }

    pub(in crate::messages) const fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }

    pub(in crate::messages) const fn set(&mut self, flag: u8) {
        self.0 |= flag;
    }

    pub(in crate::messages) const fn clear(&mut self, flag: u8) {
        self.0 &= !flag;
    }
}

/// The kind of answer that a message needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) enum Wants {
    /// A reply to its caller.
    Reply,
    /// To be written to a worker once, no more.
    Nothing,
    /// To be settled, however many attempts that takes within its limit.
    Settling,
}

/// The caller that waits for the outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) struct Origin {
    /// One more than the connection's index, so that an origin that is not there takes no room.
    place: NonZeroU32,
    generation: u32,
    pub(in crate::messages) seq: u32,
}

impl Origin {
    pub(in crate::messages) fn new(conn: ConnId, seq: u32) -> Self {
        let place = NonZeroU32::new(conn.index.wrapping_add(1)).expect("limits keep connections far below 2^32");
        Self { place, generation: conn.generation, seq }
    }

    pub(in crate::messages) const fn conn(self) -> ConnId {
        ConnId { index: self.place.get() - 1, generation: self.generation }
    }

    /// Tells it that.
    pub(in crate::messages) const fn hears(self, message: CallerMessage) -> PeerEffect {
        PeerEffect::Caller { conn: self.conn(), seq: self.seq, message }
    }
}

/// One message. A million of these may wait, so the record is kept small; a test says how small.
#[derive(Clone, Debug)]
pub(in crate::messages) struct Message {
    pub(in crate::messages) serial: u64,
    /// Header block, if any, and body.
    pub(in crate::messages) bytes: Bytes,
    pub(in crate::messages) flags: Flags,
    pub(in crate::messages) origin: Option<Origin>,
    pub(in crate::messages) state: MessageStage,
    pub(in crate::messages) wants: Wants,
    pub(in crate::messages) queue: u32,
    /// The number of its latest delivery.
    pub(in crate::messages) stamp: u32,
    pub(in crate::messages) born: Mono,
    pub(in crate::messages) deadline: Option<Mono>,
    pub(in crate::messages) timer: Option<TimerId>,
    /// Deliveries made that count.
    pub(in crate::messages) attempts: u16,
    pub(in crate::messages) retries: u8,
    pub(in crate::messages) priority: u8,
    pub(in crate::messages) cost: Cost,
    /// In the backlog, at a worker, or among the dead letters.
    pub(in crate::messages) place: ChainLinks,
    /// Among the unanswered requests of its caller.
    pub(in crate::messages) owned: ChainLinks,
}

impl Message {
    pub(in crate::messages) fn attempts_max(&self) -> u16 {
        u16::from(self.retries) + 1
    }

    pub(in crate::messages) fn kind(&self) -> MessageKind {
        match (self.cost, self.wants) {
            (Cost::Broadcast, _) => MessageKind::Broadcast,
            (Cost::Slots(_), Wants::Reply | Wants::Nothing) => MessageKind::Request,
            (Cost::Slots(_), Wants::Settling) => MessageKind::Send,
        }
    }

    /// The worker whose slots it holds.
    pub(in crate::messages) const fn holder(&self) -> Option<ConnId> {
        match self.state {
            MessageStage::Held { worker, .. }
            | MessageStage::Asked { worker, .. }
            | MessageStage::Stopping { worker, .. }
            | MessageStage::Answered { worker } => Some(worker),
            MessageStage::Waiting
            | MessageStage::Broadcast
            | MessageStage::Storing { .. }
            | MessageStage::Delayed { .. }
            | MessageStage::Dead => None,
        }
    }

    /// The slots that it takes at its worker.
    pub(in crate::messages) const fn slots_in_use(&self) -> u16 {
        match self.state {
            MessageStage::Held { freed: true, .. } | MessageStage::Stopping { freed: true, .. } => 0,
            _ => self.cost.slots(),
        }
    }

    /// A piece of the reply went to its caller in this delivery.
    pub(in crate::messages) const fn is_streamed(&self) -> bool {
        matches!(self.state, MessageStage::Held { streamed: true, .. })
    }

    /// Its worker had at least as much of the time to its deadline as its queue had, and as it did not have: a
    /// neighbour that sent it over a link may say early that its time is over.
    pub(in crate::messages) fn had_fair_time(&self, now: Mono) -> bool {
        let MessageStage::Held { age_ms, .. } = self.state else { return false };
        let age_ms = u64::from(age_ms);
        let held_ms = now.millis_since(self.born).saturating_sub(age_ms);
        self.deadline.is_some_and(|deadline| {
            let all_ms = deadline.millis_since(self.born);
            2 * age_ms <= all_ms && 2 * held_ms >= all_ms
        })
    }

    pub(in crate::messages) fn past_deadline(&self, now: Mono) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }
}

/// How a message left the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) enum MessageEnd {
    /// Its worker settled it.
    Settled,
    /// Anything else: expired, cancelled, given back, refused another attempt.
    Otherwise,
}

/// Why a settling frame settles nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) enum Stray {
    Late,
    Doubled,
    Forged,
}

#[derive(Debug)]
enum TablePlace {
    Used(Message),
    Vacant { next: u32, last: LastEnd },
}

#[derive(Clone, Copy, Debug)]
struct LastEnd {
    stamp: u32,
    holder: Option<ConnId>,
    end: MessageEnd,
}

/// All messages of the broker.
#[derive(Debug)]
pub(in crate::messages) struct MessageTable {
    places: Vec<TablePlace>,
    vacant: u32,
    len: usize,
    serial: u64,
}

impl Default for MessageTable {
    fn default() -> Self {
        Self::after(0)
    }
}

impl MessageTable {
    /// No messages; the serials go on after this one.
    pub(in crate::messages) const fn after(serial: u64) -> Self {
        Self { places: Vec::new(), vacant: NIL, len: 0, serial }
    }

    /// Takes a message in and gives it its serial.
    pub(crate) fn insert(&mut self, mut message: Message) -> u32 {
        self.serial += 1;
        message.serial = self.serial;
        self.take(message)
    }

    /// A serial for what leaves no record.
    pub(in crate::messages) const fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Takes a message in that has its serial already.
    pub(in crate::messages) fn insert_again(&mut self, message: Message) -> u32 {
        self.go_on_after(message.serial);
        self.take(message)
    }

    /// MessageTable to come get higher serials than this one.
    pub(in crate::messages) fn go_on_after(&mut self, serial: u64) {
        self.serial = self.serial.max(serial);
    }

    fn take(&mut self, message: Message) -> u32 {
        self.len += 1;
        if self.vacant == NIL {
            let index = u32::try_from(self.places.len()).expect("memory limits keep messages far below 2^32");
            self.places.push(TablePlace::Used(message));
            return index;
        }
        let index = self.vacant;
        let place = &mut self.places[index as usize];
        let TablePlace::Vacant { next, .. } = *place else {
            panic!("the list of vacant places holds vacant ones only")
        };
        self.vacant = next;
        *place = TablePlace::Used(message);
        index
    }

    pub(in crate::messages) fn remove(&mut self, index: u32, holder: Option<ConnId>, end: MessageEnd) -> Message {
        let place = &mut self.places[index as usize];
        let TablePlace::Used(message) = place else { panic!("only a message that is there is removed") };
        let vacant = TablePlace::Vacant { next: self.vacant, last: LastEnd { stamp: message.stamp, holder, end } };
        let TablePlace::Used(message) = std::mem::replace(place, vacant) else { unreachable!("matched above") };
        self.vacant = index;
        self.len -= 1;
        message
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> Option<&Message> {
        match self.places.get(index as usize) {
            Some(TablePlace::Used(message)) => Some(message),
            _ => None,
        }
    }

    /// The message with that id, if it is still here.
    pub(in crate::messages) fn find(&self, id: MessageId, settings: &Settings) -> Option<u32> {
        match id.place() {
            Some(place) => self.get(place).filter(|_| self.id_of(place, settings) == id).map(|_| place),
            // Only people ask by such an id, so it may take a look at all of them.
            None => self.iter().map(|(index, _)| index).find(|index| self.id_of(*index, settings) == id),
        }
    }

    /// The id that the world knows. That of a durable message names no index: it holds in the next run too.
    #[inline]
    pub(in crate::messages) fn id_of(&self, mut index: u32, settings: &Settings) -> MessageId {
        let mut message = &self[index];
        if let MessageStage::Asked { broadcast, .. } = message.state {
            index = broadcast;
            message = &self[index];
        }
        let place = (!message.flags.has(Flags::DURABLE)).then_some(index);
        settings.id(message.serial, place)
    }

    /// Why `conn` cannot settle that delivery.
    pub(in crate::messages) fn stray(&self, conn: ConnId, delivery: Delivery) -> Stray {
        match self.places.get(delivery.index as usize) {
            None => Stray::Forged,
            Some(TablePlace::Used(message)) if message.stamp == delivery.stamp => match message.holder() {
                Some(holder) if holder != conn => Stray::Forged,
                _ if matches!(message.state, MessageStage::Answered { .. }) => Stray::Doubled,
                _ => Stray::Late,
            },
            Some(TablePlace::Vacant { last, .. }) if last.stamp == delivery.stamp => match (last.holder, last.end) {
                (Some(holder), _) if holder != conn => Stray::Forged,
                (_, MessageEnd::Settled) => Stray::Doubled,
                _ => Stray::Late,
            },
            Some(_) => Stray::Late,
        }
    }

    pub(in crate::messages) const fn len(&self) -> usize {
        self.len
    }

    pub(in crate::messages) fn iter(&self) -> impl Iterator<Item = (u32, &Message)> {
        (0u32..).zip(&self.places).filter_map(|(index, place)| match place {
            TablePlace::Used(message) => Some((index, message)),
            TablePlace::Vacant { .. } => None,
        })
    }

    pub(in crate::messages) fn links(&mut self, lane: Lane, index: u32) -> &mut ChainLinks {
        let message = &mut self[index];
        match lane {
            Lane::Place => &mut message.place,
            Lane::Owned => &mut message.owned,
        }
    }
}

#[cfg(test)]
impl Message {
    /// A message of that priority that waits, for tests of the rooms that hold messages.
    pub(in crate::messages) fn waiting(priority: u8) -> Self {
        Self {
            serial: 0,
            bytes: Bytes::new(),
            flags: Flags::default(),
            origin: None,
            state: MessageStage::Waiting,
            wants: Wants::Settling,
            queue: 0,
            stamp: 0,
            born: Mono::ZERO,
            deadline: None,
            timer: None,
            attempts: 0,
            retries: 0,
            priority,
            cost: Cost::ONE,
            place: ChainLinks::default(),
            owned: ChainLinks::default(),
        }
    }
}

impl Index<u32> for MessageTable {
    type Output = Message;

    #[inline]
    fn index(&self, index: u32) -> &Message {
        self.get(index).expect("rooms hold indexes of messages that are there")
    }
}

impl IndexMut<u32> for MessageTable {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Message {
        match self.places.get_mut(index as usize) {
            Some(TablePlace::Used(message)) => message,
            _ => panic!("rooms hold indexes of messages that are there"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The budget is 400 bytes for a message of 256; the allocation of its body takes 272 of them.
    #[test]
    fn a_record_stays_small() {
        assert!(size_of::<TablePlace>() <= 120, "{}", size_of::<TablePlace>());
    }
}
