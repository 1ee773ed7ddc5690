//! Deduplication of sends (I6): the dedup ids of the last hour with their answers.
//!
//! A sender whose connection is lost before the answer sends again under the same dedup id, and gets the answer of the
//! first: nothing is added, whatever became of that message. Of a durable message the id is stored in the same group, so
//! that it is known after a restart too; one that is still on its way to the disk answers all its senders when it is
//! there, or refuses them all. Ids are told apart by a digest of queue and id: sixteen bytes, however long they are.
//!
//! Each queue has a bound of its own, so that no number of sends elsewhere makes the broker forget an id early. An id that is
//! forgotten early because its own queue has too many is counted. All ids count against the memory limit.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;

use turno_proto::model::{Code, ConnId, DedupKey, Durability, Mono, Outgoing, QueueName, limits};

use crate::effect::{Caller, NativeEffect, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::disk::persist::{DedupRecord, Persist};
use crate::messages::table::message::Flags;

/// The entry of one dedup id.
#[derive(Clone, Copy, Debug)]
struct DedupEntry {
    key: DedupKey,
    /// The message it came with first.
    serial: NonZeroU64,
    /// That message's place in memory, as its id names it; `None` if it is durable.
    place: Option<u32>,
    /// When it is forgotten.
    until: Mono,
}

impl DedupEntry {
    const fn is_durable(&self) -> bool {
        self.place.is_none()
    }
}

/// A durable message on its way to the disk, whose dedup id is known already.
#[derive(Debug)]
struct Storing {
    queue: QueueName,
    key: DedupKey,
    /// Callers that sent it again meanwhile.
    again: Vec<Caller>,
}

/// The dedup ids that are known.
#[derive(Debug, Default)]
pub(in crate::messages) struct Dedup {
    /// By queue: one queue's ids never make another one's forgotten.
    queues: BTreeMap<QueueName, DedupOrder>,
    /// Those of the last run, of all queues: the store keeps no name beside them.
    earlier: DedupOrder,
    /// By serial.
    storing: BTreeMap<u64, Storing>,
    /// How many wait in all of `storing`.
    again_len: u32,
    /// Not before then are any forgotten for their age.
    sweep_at: Mono,
}

impl Dedup {
    fn find(&self, queue: &QueueName, key: DedupKey) -> Option<DedupEntry> {
        self.queues.get(queue).and_then(|ids| ids.find(key)).or_else(|| self.earlier.find(key))
    }

    fn remove(&mut self, queue: &QueueName, key: DedupKey) -> Option<DedupEntry> {
        let found = self.queues.get_mut(queue).and_then(|ids| ids.remove(key));
        if self.queues.get(queue).is_some_and(|ids| ids.by_key.is_empty()) {
            self.queues.remove(queue);
        }
        found.or_else(|| self.earlier.remove(key))
    }

    fn len(&self) -> usize {
        self.earlier.by_key.len() + self.queues.values().map(|ids| ids.by_key.len()).sum::<usize>()
    }

    /// Bytes of memory that it takes.
    pub(in crate::messages) fn bytes(&self) -> u64 {
        self.len() as u64 * limits::DEDUP_ID_MEMORY_BYTES
    }

    /// When ids may be forgotten for their age; too early where the oldest are gone already.
    pub(in crate::messages) fn next_sweep(&self) -> Option<Mono> {
        let is_empty = self.queues.is_empty() && self.earlier.by_key.is_empty();
        (!is_empty).then_some(self.sweep_at)
    }

    /// Takes out ids that are too old by then, so many at the most.
    fn pop_older(&mut self, now: Mono, most: usize) -> Vec<DedupEntry> {
        let mut found = Vec::new();
        for ids in std::iter::once(&mut self.earlier).chain(self.queues.values_mut()) {
            let room = most - found.len();
            found.extend(std::iter::from_fn(|| ids.pop_older(now)).take(room));
        }
        if !found.is_empty() {
            self.queues.retain(|_, ids| !ids.by_key.is_empty());
        }
        found
    }

    /// When the oldest of all is to be forgotten.
    fn oldest(&self) -> Option<Mono> {
        self.queues.values().chain([&self.earlier]).filter_map(DedupOrder::oldest).min()
    }

    /// Asserts that the rooms of the table agree. Gives the serials of the messages that it takes to be on their way.
    pub(crate) fn check(&self) -> impl Iterator<Item = u64> {
        self.earlier.check();
        for ids in self.queues.values() {
            assert!(!ids.by_key.is_empty(), "a queue without ids is not kept");
            ids.check();
        }
        let again: usize = self.storing.values().map(|storing| storing.again.len()).sum();
        assert_eq!(again, self.again_len as usize, "who waits for another's message is counted");
        self.storing.keys().copied()
    }
}

/// Ids in the order of their age.
#[derive(Debug, Default)]
struct DedupOrder {
    /// From the oldest to the latest; a hole is one that was taken back.
    by_age: VecDeque<Option<DedupEntry>>,
    /// The number of the oldest. The others are numbered on from there.
    first: u64,
    /// The number of each.
    by_key: BTreeMap<DedupKey, u64>,
}

impl DedupOrder {
    fn find(&self, key: DedupKey) -> Option<DedupEntry> {
        let number = *self.by_key.get(&key)?;
        self.by_age[self.at(number)]
    }

    fn at(&self, number: u64) -> usize {
        usize::try_from(number - self.first).expect("fewer ids than memory has bytes")
    }

    /// Adds the latest. Gives what was known under its key before.
    fn add(&mut self, known: DedupEntry) -> Option<DedupEntry> {
        let before = self.remove(known.key);
        self.by_key.insert(known.key, self.first + self.by_age.len() as u64);
        self.by_age.push_back(Some(known));
        before
    }

    fn remove(&mut self, key: DedupKey) -> Option<DedupEntry> {
        let number = self.by_key.remove(&key)?;
        let at = self.at(number);
        let known = self.by_age[at].take();
        self.close_up();
        known
    }

    fn oldest(&self) -> Option<Mono> {
        self.by_age.front().copied().flatten().map(|known| known.until)
    }

    fn pop_oldest(&mut self) -> Option<DedupEntry> {
        self.by_age.front().copied().flatten().and_then(|known| self.remove(known.key))
    }

    fn pop_older(&mut self, now: Mono) -> Option<DedupEntry> {
        self.oldest().filter(|until| *until <= now).and_then(|_| self.pop_oldest())
    }

    /// The oldest is no hole, and holes never take more room than what is known.
    fn close_up(&mut self) {
        while self.by_age.pop_front_if(|known| known.is_none()).is_some() {
            self.first += 1;
        }
        if self.by_age.len() > 2 * self.by_key.len() + 64 {
            self.by_age.retain(Option::is_some);
            let keys = self.by_age.iter().flatten().map(|known| known.key);
            self.by_key = keys.zip(self.first..).collect();
        }
    }

    fn check(&self) {
        let known: Vec<&DedupEntry> = self.by_age.iter().flatten().collect();
        assert_eq!(known.len(), self.by_key.len(), "each id has one place");
        assert!(known.is_sorted_by_key(|known| known.until), "ids are in the order of their age");
        assert!(known.iter().all(|known| self.find(known.key).is_some_and(|found| found.serial == known.serial)));
        assert!(!matches!(self.by_age.front(), Some(None)), "the oldest is known");
    }
}

impl Messages {
    /// The key of a send in the table; `None` if it has no dedup id, or no queue.
    pub(in crate::messages) fn dedup_key(&self, conn: ConnId, message: &Outgoing) -> Option<(u32, DedupKey)> {
        let id = message.dedup_id.as_ref()?;
        let queue = self.peers.get(conn)?.queue_of(message.handle)?;
        Some((queue, DedupKey::of(&self.queues.at(queue).name, id)))
    }

    /// Answers a send whose dedup id is known, now or together with the first. False if it is not known: then it is a
    /// new message.
    pub(in crate::messages) fn sent_before(
        &mut self,
        (queue, key): (u32, DedupKey),
        conn: ConnId,
        seq: u32,
        out: &mut impl Sink,
    ) -> bool {
        let name = &self.queues.at(queue).name;
        let Some(known) = self.dedup.find(name, key).filter(|known| known.until > self.now) else { return false };
        match self.dedup.storing.get_mut(&known.serial.get()) {
            None => out.peer(self.stored_again(conn, seq, &known)),
            Some(_) if self.dedup.again_len >= self.settings.limits.in_flight_max => {
                self.refuse(conn, seq, Code::TooManyInFlight, out);
            }
            Some(storing) => {
                storing.again.push(Caller { conn, seq });
                self.dedup.again_len += 1;
            }
        }
        true
    }

    /// A message that was just let in, and perhaps given to the disk, is known by its dedup id from now on.
    pub(in crate::messages) fn remember(&mut self, key: DedupKey, index: u32) {
        let message = &self.messages[index];
        let (number, durable) = (message.queue, message.flags.has(Flags::DURABLE));
        let name = self.queues.at(number).name.clone();
        let serial = NonZeroU64::new(message.serial).expect("serials begin with 1");
        let until = self.now.plus_millis(limits::DEDUP_WINDOW_MS);
        let known = DedupEntry { key, serial, place: (!durable).then_some(index), until };
        if durable {
            let born_unix_ms = self.settings.unix_ms(message.born);
            let remembered = DedupRecord { key, serial: serial.get(), born_unix_ms };
            self.durable.note(Persist::Remember(remembered));
            self.dedup.storing.insert(serial.get(), Storing { queue: name.clone(), key, again: Vec::new() });
        }
        let first = self.dedup.next_sweep().is_none();
        // The entry with that key is too old. A durable one is written over, if by another durable one.
        let before = self.dedup.remove(&name, key);
        if first {
            self.dedup.sweep_at = until;
        }
        let ids = self.dedup.queues.entry(name).or_default();
        ids.add(known);
        let oldest = if ids.by_key.len() > self.settings.limits.dedup_ids_max { ids.pop_oldest() } else { None };
        if oldest.is_some() {
            self.count(number, |counters| &mut counters.dedup_forgotten);
        }
        self.forget(before.filter(|_| !durable));
        self.forget(oldest);
        self.stats.bytes += limits::DEDUP_ID_MEMORY_BYTES;
        self.drop_dedup_bytes(u64::from(before.is_some()) + u64::from(oldest.is_some()));
    }

    fn drop_dedup_bytes(&mut self, ids: u64) {
        self.stats.bytes -= ids * limits::DEDUP_ID_MEMORY_BYTES;
    }

    /// It is forgotten on the disk too.
    fn forget(&mut self, known: Option<DedupEntry>) {
        if let Some(known) = known.filter(DedupEntry::is_durable) {
            self.durable.note(Persist::Forget { key: known.key });
        }
    }

    fn stored_again(&self, conn: ConnId, seq: u32, known: &DedupEntry) -> PeerEffect {
        let id = self.settings.id(known.serial.get(), known.place);
        let durability = if known.is_durable() { Durability::Disk } else { Durability::Memory };
        PeerEffect::Native { conn, effect: NativeEffect::Stored { seq, id, durability, duplicate: true } }
    }

    /// A message is on disk, and its sender was told: so are those who sent it again.
    pub(in crate::messages) fn answer_again(&mut self, serial: u64, out: &mut impl Sink) {
        let Some(Storing { key, again, .. }) = self.take_storing(serial) else { return };
        let serial = NonZeroU64::new(serial).expect("serials begin with 1");
        let known = DedupEntry { key, serial, place: None, until: self.now };
        for Caller { conn, seq } in again {
            out.peer(self.stored_again(conn, seq, &known));
        }
    }

    /// A message will not be on disk, and its sender was told: so are those who sent it again, and its dedup id may
    /// come with another.
    pub(in crate::messages) fn refuse_again(&mut self, serial: u64, code: Code, out: &mut impl Sink) {
        let Some(Storing { queue, key, again }) = self.take_storing(serial) else { return };
        if self.dedup.find(&queue, key).is_some_and(|known| known.serial.get() == serial) {
            self.dedup.remove(&queue, key);
            self.drop_dedup_bytes(1);
        }
        for Caller { conn, seq } in again {
            self.refuse(conn, seq, code, out);
        }
    }

    fn take_storing(&mut self, serial: u64) -> Option<Storing> {
        let storing = self.dedup.storing.remove(&serial)?;
        self.dedup.again_len -= u32::try_from(storing.again.len()).expect("counted in 32 bits");
        Some(storing)
    }

    /// Forgets ids for their age, so many at a time that one group of them stays small.
    pub(in crate::messages) fn sweep_dedup(&mut self) {
        if self.dedup.next_sweep().is_none_or(|at| at > self.now) {
            return;
        }
        for known in self.dedup.pop_older(self.now, limits::DEDUP_SWEEP_MAX) {
            self.forget(Some(known));
            self.drop_dedup_bytes(1);
        }
        let next = self.now.plus_millis(limits::DEDUP_SWEEP_MS);
        self.dedup.sweep_at = self.dedup.oldest().map_or(next, |oldest| oldest.max(next));
    }

    /// Takes back the dedup ids that outlived the last run, in any order. For the start, before the first input. Those
    /// that are too old by now are forgotten with the first inputs.
    pub(crate) fn recover_dedup(&mut self, mut remembered: Vec<DedupRecord>) {
        remembered.sort_unstable_by_key(|remembered| (remembered.born_unix_ms, remembered.serial));
        // The clock on the wall may have stepped back since.
        let latest = self.now.plus_millis(limits::DEDUP_WINDOW_MS);
        for DedupRecord { key, serial, born_unix_ms } in remembered {
            self.messages.go_on_after(serial);
            let until = self.settings.mono(born_unix_ms.saturating_add(limits::DEDUP_WINDOW_MS)).min(latest);
            if let Some(serial) = NonZeroU64::new(serial) {
                let before = self.dedup.earlier.add(DedupEntry { key, serial, place: None, until });
                self.stats.bytes += limits::DEDUP_ID_MEMORY_BYTES;
                self.drop_dedup_bytes(u64::from(before.is_some()));
            }
        }
        self.dedup.sweep_at = self.dedup.oldest().unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million of these may be known; with its number in the map that makes some 80 bytes for each.
    #[test]
    fn what_is_known_of_an_id_stays_small() {
        assert!(size_of::<Option<DedupEntry>>() <= 40, "{}", size_of::<Option<DedupEntry>>());
    }

    /// Ids that were taken back leave holes, and the holes do not pile up.
    #[test]
    fn holes_are_closed() {
        let of = |n: u64| DedupEntry {
            key: DedupKey(u128::from(n).to_be_bytes()),
            serial: NonZeroU64::MIN.saturating_add(n),
            place: None,
            until: Mono::from_millis(n),
        };
        let mut dedup = DedupOrder::default();
        for n in 0..10_000 {
            assert!(dedup.add(of(n)).is_none());
            if n % 10 > 0 {
                assert_eq!(dedup.remove(of(n).key).map(|known| known.place), Some(None));
            }
            assert!(dedup.by_age.len() <= 2 * dedup.by_key.len() + 64);
        }
        dedup.check();
        assert_eq!(dedup.by_key.len(), 1_000);
        for n in (0..10_000).step_by(10) {
            assert_eq!(dedup.pop_oldest().map(|known| known.key), Some(of(n).key));
        }
        assert!(dedup.by_age.is_empty() && dedup.pop_oldest().is_none() && dedup.oldest().is_none());
    }
}
