//! The disk of the world: it writes group by group when it is told to, and reads when it is told to.

use std::collections::{BTreeMap, VecDeque};

use turno_engine::{AttemptMark, DedupRecord, DiskEffect, Effect, Input, Persist, RecoveredMessage};
use turno_proto::model::view::QueueSettings;
use turno_proto::model::{DedupKey, QueueName};

use crate::HOUR_MS;
use crate::oracle::number;

#[derive(Debug, Default)]
pub(crate) struct Disk {
    pub(crate) kept: BTreeMap<u64, RecoveredMessage>,
    pub(crate) settings: BTreeMap<QueueName, QueueSettings>,
    pub(crate) remembered: BTreeMap<DedupKey, DedupRecord>,
    /// The number of every message that was ever stored, by its serial.
    pub(crate) numbers: BTreeMap<u64, u32>,
    /// When each dedup id was last stored with a message.
    born: BTreeMap<DedupKey, u64>,
    /// Serials to read, in order.
    pub(crate) loads: VecDeque<u64>,
    /// Groups on their way.
    groups: VecDeque<(u64, Vec<Persist>)>,
    /// Something was refused: what is marked in memory may not be marked here.
    refused: bool,
}

impl Disk {
    /// Notes what the effect wants of it.
    pub(crate) fn take(&mut self, effect: &Effect) {
        match effect {
            Effect::Disk(DiskEffect::Persist { group, op }) => match self.groups.back_mut() {
                Some((last, ops)) if *last == *group => ops.push(op.clone()),
                _ => self.groups.push_back((*group, vec![op.clone()])),
            },
            Effect::Disk(DiskEffect::Load { serial }) => self.loads.push_back(*serial),
            _ => {}
        }
    }

    /// Stores so many groups; the number of the last.
    pub(crate) fn store(&mut self, count: usize) -> Option<u64> {
        let count = count.min(self.groups.len());
        let stored: Vec<(u64, Vec<Persist>)> = self.groups.drain(..count).collect();
        let last = stored.last().map(|(group, _)| *group);
        stored.into_iter().flat_map(|(_, ops)| ops).for_each(|op| self.write(op));
        last
    }

    /// Refuses the next group; its number.
    pub(crate) fn refuse(&mut self) -> Option<u64> {
        let (group, _) = self.groups.pop_front()?;
        self.refused = true;
        Some(group)
    }

    /// Something is on its way to it.
    pub(crate) fn writes(&self) -> bool {
        !self.groups.is_empty()
    }

    /// The broker is gone, and what was on its way.
    pub(crate) fn crash(&mut self) {
        self.groups.clear();
        self.loads.clear();
    }

    /// The highest serial that was ever stored.
    pub(crate) fn last_serial(&self) -> u64 {
        self.numbers.last_key_value().map_or(0, |(serial, _)| *serial)
    }

    fn write(&mut self, op: Persist) {
        match op {
            Persist::Put { serial, record } => match self.kept.get_mut(&serial) {
                // A dead letter that is put back may have lost its deadline.
                Some(kept) => kept.record = record,
                None => {
                    assert!(serial > self.last_serial(), "serials rise");
                    let seq = number(&record.payload.bytes).and_then(|seq| u32::try_from(seq).ok());
                    self.numbers.insert(serial, seq.expect("bodies are numbers"));
                    self.kept.insert(serial, RecoveredMessage { serial, record, mark: None });
                }
            },
            Persist::Remember(remembered) => {
                assert!(self.kept.contains_key(&remembered.serial), "an id comes with its message");
                let before = self.born.insert(remembered.key, remembered.born_unix_ms);
                let apart = before.is_none_or(|before| remembered.born_unix_ms >= before + HOUR_MS);
                assert!(apart, "I6: {} is a second message within the hour", remembered.serial);
                self.remembered.insert(remembered.key, remembered);
            }
            // It may never have come here: refused with its message, an hour after that was sent.
            Persist::Forget { key } => drop(self.remembered.remove(&key)),
            Persist::Retry { serial } => self.kept(serial).mark = None,
            Persist::SetQueue { queue, settings } => drop(self.settings.insert(queue, settings)),
            Persist::UnsetQueue { queue } => drop(self.settings.remove(&queue)),
            Persist::Attempts { serial, attempts, wait } => {
                self.kept(serial).mark = Some(AttemptMark { attempts, failure: None, wait });
            }
            Persist::Dead { serial, attempts, failure } => {
                self.kept(serial).mark = Some(AttemptMark { attempts, failure: Some(failure), wait: None });
            }
            Persist::SetJob { .. }
            | Persist::UnsetJob { .. }
            | Persist::SetItems { .. }
            | Persist::UnsetItems { .. }
            | Persist::LastJob { .. }
            | Persist::TokenTerm { .. }
            | Persist::SetTask { .. }
            | Persist::UnsetTask { .. }
            | Persist::SetChunk { .. }
            | Persist::UnsetChunk { .. } => panic!("there are no jobs here"),
            Persist::Remove { serial, marked } => {
                let gone = self.kept.remove(&serial).expect("only what is stored is removed");
                let fits = marked == gone.mark.is_some() || self.refused;
                assert!(fits, "{serial}: a mark is removed with its message");
            }
        }
    }

    fn kept(&mut self, serial: u64) -> &mut RecoveredMessage {
        self.kept.get_mut(&serial).expect("only what is stored is marked")
    }

    /// The next answer to a load.
    pub(crate) fn read(&mut self) -> Option<Input> {
        let serial = self.loads.pop_front()?;
        Some(Input::Loaded { serial, record: self.kept.get(&serial).map(|kept| kept.record.clone()) })
    }
}
