//! A send that comes twice is one message (I6): the dedup ids of the last hour, and what was answered to each.
//!
//! A sender whose connection is lost before the answer sends again under the same dedup id, and gets the answer of the
//! first: nothing is added, whatever became of that message. Of a durable message the id is stored in the same group, so
//! that it is known after a restart too; one that is still on its way to the disk answers all its senders when it is
//! there, or refuses them all. Ids are told apart by a digest of queue and id: sixteen bytes, however long they are.

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU64;

use turno_proto::model::{Code, ConnId, DedupKey, Durability, Mono, limits};

use crate::chain::NIL;
use crate::effect::{Effect, Sink};
use crate::engine::Engine;
use crate::input::Outgoing;
use crate::message::Flags;
use crate::persist::{Persist, Remembered};

/// What is known of one dedup id.
#[derive(Clone, Copy, Debug)]
struct Known {
    key: DedupKey,
    /// The message it came with first.
    serial: NonZeroU64,
    /// That message's place in memory, as its id names it; [`NIL`] if it is durable.
    place: u32,
    /// When it is forgotten.
    until: Mono,
}

impl Known {
    const fn is_durable(&self) -> bool {
        self.place == NIL
    }
}

/// A durable message on its way to the disk, whose dedup id is known already.
#[derive(Debug)]
struct Storing {
    key: DedupKey,
    /// Who sent it again meanwhile.
    again: Vec<(ConnId, u32)>,
}

/// The dedup ids that are known.
#[derive(Debug, Default)]
pub(crate) struct Dedup {
    /// From the oldest to the latest; a hole is one that was taken back.
    by_age: VecDeque<Option<Known>>,
    /// The number of the oldest. The others are numbered on from there.
    oldest: u64,
    /// The number of each.
    by_key: BTreeMap<DedupKey, u64>,
    /// By serial.
    storing: BTreeMap<u64, Storing>,
    /// How many wait in all of `storing`.
    again_len: u32,
    /// Not before then are any forgotten for their age.
    sweep_at: Mono,
}

impl Dedup {
    fn find(&self, key: DedupKey) -> Option<Known> {
        let number = *self.by_key.get(&key)?;
        self.by_age[self.at(number)]
    }

    fn at(&self, number: u64) -> usize {
        usize::try_from(number - self.oldest).expect("fewer ids than memory has bytes")
    }

    /// Adds the latest. Gives what was known under its key before.
    fn add(&mut self, known: Known) -> Option<Known> {
        let before = self.remove(known.key);
        self.by_key.insert(known.key, self.oldest + self.by_age.len() as u64);
        self.by_age.push_back(Some(known));
        before
    }

    fn remove(&mut self, key: DedupKey) -> Option<Known> {
        let number = self.by_key.remove(&key)?;
        let at = self.at(number);
        let known = self.by_age[at].take();
        self.close_up();
        known
    }

    fn pop_oldest(&mut self) -> Option<Known> {
        self.by_age.front().copied().flatten().and_then(|known| self.remove(known.key))
    }

    /// The oldest is no hole, and holes never take more room than what is known.
    fn close_up(&mut self) {
        while self.by_age.pop_front_if(|known| known.is_none()).is_some() {
            self.oldest += 1;
        }
        if self.by_age.len() > 2 * self.by_key.len() + 64 {
            self.by_age.retain(Option::is_some);
            let keys = self.by_age.iter().flatten().map(|known| known.key);
            self.by_key = keys.zip(self.oldest..).collect();
        }
    }

    /// When the next is to be forgotten for its age.
    pub(crate) fn next_sweep(&self) -> Option<Mono> {
        let oldest = self.by_age.front().copied().flatten()?;
        Some(oldest.until.max(self.sweep_at))
    }

    /// Asserts that the rooms of the table agree. Gives the serials of the messages that it takes to be on their way.
    pub(crate) fn check(&self) -> impl Iterator<Item = u64> {
        let known: Vec<&Known> = self.by_age.iter().flatten().collect();
        assert_eq!(known.len(), self.by_key.len(), "each id has one place");
        assert!(known.is_sorted_by_key(|known| known.until), "ids are in the order of their age");
        assert!(known.iter().all(|known| self.find(known.key).is_some_and(|found| found.serial == known.serial)));
        assert!(!matches!(self.by_age.front(), Some(None)), "the oldest is known");
        let again: usize = self.storing.values().map(|storing| storing.again.len()).sum();
        assert_eq!(again, self.again_len as usize, "who waits for another's message is counted");
        self.storing.keys().copied()
    }
}

impl Engine {
    /// What the table knows a send by; `None` if it has no dedup id, or no queue.
    pub(crate) fn dedup_key(&self, conn: ConnId, message: &Outgoing) -> Option<DedupKey> {
        let id = message.dedup_id.as_ref()?;
        let queue = self.peers.get(conn)?.queue_of(message.handle)?;
        Some(DedupKey::of(&self.queues.at(queue).name, id))
    }

    /// Answers a send whose dedup id is known, now or together with the first. False if it is not known: then it is a
    /// new message.
    pub(crate) fn sent_before(&mut self, key: DedupKey, conn: ConnId, seq: u32, out: &mut impl Sink) -> bool {
        let Some(known) = self.dedup.find(key).filter(|known| known.until > self.now) else { return false };
        match self.dedup.storing.get_mut(&known.serial.get()) {
            None => out.effect(self.stored_again(conn, seq, &known)),
            Some(_) if self.dedup.again_len >= self.settings.limits.in_flight_max => {
                self.refuse(conn, seq, Code::TooManyInFlight, out);
            }
            Some(storing) => {
                storing.again.push((conn, seq));
                self.dedup.again_len += 1;
            }
        }
        true
    }

    /// A message that was just let in, and perhaps given to the disk, is known by its dedup id from now on.
    pub(crate) fn remember(&mut self, key: DedupKey, index: u32) {
        let message = &self.messages[index];
        let durable = message.flags.has(Flags::DURABLE);
        let serial = NonZeroU64::new(message.serial).expect("serials begin with 1");
        let until = self.now.plus_millis(limits::DEDUP_WINDOW_MS);
        let known = Known { key, serial, place: if durable { NIL } else { index }, until };
        if durable {
            let born_unix_ms = self.settings.unix_ms(message.born);
            let remembered = Remembered { key, serial: serial.get(), born_unix_ms };
            self.durable.note(Persist::Remember(remembered));
            self.dedup.storing.insert(serial.get(), Storing { key, again: Vec::new() });
        }
        // What stood under that key is too old. A durable one is written over, if by another durable one.
        let before = self.dedup.add(known);
        self.forget(before.filter(|_| !durable));
        self.keep_within_the_limit();
    }

    fn keep_within_the_limit(&mut self) {
        while self.dedup.by_key.len() > self.settings.limits.dedup_ids_max {
            let oldest = self.dedup.pop_oldest();
            self.forget(oldest);
        }
    }

    /// It is forgotten on the disk too.
    fn forget(&mut self, known: Option<Known>) {
        if let Some(known) = known.filter(Known::is_durable) {
            self.durable.note(Persist::Forget { key: known.key });
        }
    }

    fn stored_again(&self, conn: ConnId, seq: u32, known: &Known) -> Effect {
        let id = self.settings.id(known.serial.get(), known.place);
        let durability = if known.is_durable() { Durability::Disk } else { Durability::Memory };
        Effect::Stored { conn, seq, id, durability, duplicate: true }
    }

    /// A message is on disk, and its sender was told: so are those who sent it again.
    pub(crate) fn answer_again(&mut self, serial: u64, out: &mut impl Sink) {
        let Some(Storing { key, again }) = self.take_storing(serial) else { return };
        let serial = NonZeroU64::new(serial).expect("serials begin with 1");
        let known = Known { key, serial, place: NIL, until: self.now };
        for (conn, seq) in again {
            out.effect(self.stored_again(conn, seq, &known));
        }
    }

    /// A message will not be on disk, and its sender was told: so are those who sent it again, and its dedup id may
    /// come with another.
    pub(crate) fn refuse_again(&mut self, serial: u64, code: Code, out: &mut impl Sink) {
        let Some(Storing { key, again }) = self.take_storing(serial) else { return };
        if self.dedup.find(key).is_some_and(|known| known.serial.get() == serial) {
            self.dedup.remove(key);
        }
        for (conn, seq) in again {
            self.refuse(conn, seq, code, out);
        }
    }

    fn take_storing(&mut self, serial: u64) -> Option<Storing> {
        let storing = self.dedup.storing.remove(&serial)?;
        self.dedup.again_len -= u32::try_from(storing.again.len()).expect("counted in 32 bits");
        Some(storing)
    }

    /// Forgets ids for their age, so many at a time that one group of them stays small.
    pub(crate) fn sweep_dedup(&mut self) {
        if self.dedup.next_sweep().is_none_or(|at| at > self.now) {
            return;
        }
        for _ in 0..limits::DEDUP_SWEEP_MAX {
            if self.dedup.by_age.front().copied().flatten().is_none_or(|known| known.until > self.now) {
                break;
            }
            let oldest = self.dedup.pop_oldest();
            self.forget(oldest);
        }
        self.dedup.sweep_at = self.now.plus_millis(limits::DEDUP_SWEEP_MS);
    }

    /// Takes back the dedup ids that outlived the last run, in any order. For the start, before the first input. Those
    /// that are too old by now, or too many, are forgotten with the first inputs.
    pub fn recover_dedup(&mut self, mut remembered: Vec<Remembered>) {
        remembered.sort_unstable_by_key(|remembered| (remembered.born_unix_ms, remembered.serial));
        // The clock on the wall may have stepped back since.
        let latest = self.now.plus_millis(limits::DEDUP_WINDOW_MS);
        for Remembered { key, serial, born_unix_ms } in remembered {
            self.messages.go_on_after(serial);
            let until = self.settings.mono(born_unix_ms.saturating_add(limits::DEDUP_WINDOW_MS)).min(latest);
            if let Some(serial) = NonZeroU64::new(serial) {
                self.dedup.add(Known { key, serial, place: NIL, until });
            }
        }
        self.keep_within_the_limit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million of these may be known; with its number in the map that makes some 80 bytes for each.
    #[test]
    fn what_is_known_of_an_id_stays_small() {
        assert!(size_of::<Option<Known>>() <= 40, "{}", size_of::<Option<Known>>());
    }

    /// Ids that were taken back leave holes, and the holes do not pile up.
    #[test]
    fn holes_are_closed() {
        let of = |n: u64| Known {
            key: DedupKey(u128::from(n).to_be_bytes()),
            serial: NonZeroU64::MIN.saturating_add(n),
            place: NIL,
            until: Mono::from_millis(n),
        };
        let mut dedup = Dedup::default();
        for n in 0..10_000 {
            assert!(dedup.add(of(n)).is_none());
            if n % 10 > 0 {
                assert_eq!(dedup.remove(of(n).key).map(|known| known.place), Some(NIL));
            }
            assert!(dedup.by_age.len() <= 2 * dedup.by_key.len() + 64);
        }
        assert_eq!((dedup.check().count(), dedup.by_key.len()), (0, 1_000));
        for n in (0..10_000).step_by(10) {
            assert_eq!(dedup.pop_oldest().map(|known| known.key), Some(of(n).key));
        }
        assert!(dedup.by_age.is_empty() && dedup.pop_oldest().is_none() && dedup.next_sweep().is_none());
    }
}
