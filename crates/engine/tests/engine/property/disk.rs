//! The disk of the world: it writes at once, and reads when it is told to.

use std::collections::{BTreeMap, VecDeque};

use turno_engine::{DiskEffect, Effect, Input, Persist, Remembered, Survivor};
use turno_proto::model::view::QueueSettings;
use turno_proto::model::{DedupKey, QueueName};

#[derive(Debug, Default)]
pub(super) struct Disk {
    pub(super) kept: BTreeMap<u64, Survivor>,
    pub(super) settings: BTreeMap<QueueName, QueueSettings>,
    pub(super) remembered: BTreeMap<DedupKey, Remembered>,
    /// The highest serial that was ever stored.
    pub(super) last_serial: u64,
    /// What is to be read, in order.
    pub(super) loads: VecDeque<u64>,
}

impl Disk {
    /// Does what the effect says, and gives the number of its group.
    pub(super) fn take(&mut self, effect: &Effect) -> Option<u64> {
        match effect {
            Effect::Disk(DiskEffect::Persist { group, op }) => {
                self.write(op.clone());
                Some(*group)
            }
            Effect::Disk(DiskEffect::Load { serial }) => {
                self.loads.push_back(*serial);
                None
            }
            _ => None,
        }
    }

    fn write(&mut self, op: Persist) {
        match op {
            Persist::Put { serial, record } => {
                match self.kept.get_mut(&serial) {
                    // A dead letter that is put back may have lost its deadline.
                    Some(kept) => kept.record = record,
                    None => {
                        assert!(serial > self.last_serial, "serials rise");
                        self.last_serial = serial;
                        self.kept.insert(serial, Survivor { serial, record, attempts: 0, failure: None });
                    }
                }
            }
            Persist::Remember(remembered) => drop(self.remembered.insert(remembered.key, remembered)),
            Persist::Forget { key } => drop(self.remembered.remove(&key)),
            Persist::Retry { serial } => (self.kept(serial).attempts, self.kept(serial).failure) = (0, None),
            Persist::SetQueue { queue, settings } => drop(self.settings.insert(queue, settings)),
            Persist::UnsetQueue { queue } => drop(self.settings.remove(&queue)),
            Persist::Attempts { serial, attempts } => self.kept(serial).attempts = attempts,
            Persist::Dead { serial, attempts, failure } => {
                (self.kept(serial).attempts, self.kept(serial).failure) = (attempts, Some(failure));
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
                assert_eq!(marked, gone.attempts > 0, "{serial}: a mark is removed with its message");
            }
        }
    }

    fn kept(&mut self, serial: u64) -> &mut Survivor {
        self.kept.get_mut(&serial).expect("only what is stored is marked")
    }

    /// The next answer to a load.
    pub(super) fn read(&mut self) -> Option<Input> {
        let serial = self.loads.pop_front()?;
        Some(Input::Loaded { serial, record: self.kept.get(&serial).map(|kept| kept.record.clone()) })
    }
}
