//! Writes that the disk refused and that are repeated as soon as there is room. A send that is refused is its sender's
//! to repeat; a failed attempt, a death or an end has happened, and is written down as soon as there is room again.
//! Otherwise a message could have more attempts than its limit, or a dead letter could live again after a restart.

use std::collections::VecDeque;

use crate::messages::Messages;
use crate::messages::disk::durable::Change;
use crate::messages::disk::persist::Persist;
use crate::messages::table::message::MessageStage;

/// Changes that must reach the disk, however often it refuses them.
#[derive(Debug, Default)]
pub(in crate::messages) struct PendingWrites {
    /// Writes on their way in a group that may be refused, in the order of the groups.
    sent: VecDeque<(u64, PendingWrite)>,
    /// Refused writes.
    refused: Vec<PendingWrite>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PendingWrite {
    /// A failed attempt: the message has no other before it is written down.
    Attempt { index: u32, serial: u64 },
    /// A dead letter.
    Death { index: u32, serial: u64 },
    /// A message is over.
    End { serial: u64, marked: bool, beside: GroupedChange },
}

/// The other changes in the group of a message's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupedChange {
    /// Other ends alone: a disk that refuses these takes nothing at all.
    Ends,
    /// Something that a full disk refuses. Ends alone make room, and have a better chance.
    Others,
}

impl PendingWrites {
    pub(in crate::messages) const fn is_empty(&self) -> bool {
        self.refused.is_empty()
    }

    /// A death goes out with that group.
    pub(in crate::messages) fn death(&mut self, group: u64, index: u32, serial: u64) {
        self.sent.push_back((group, PendingWrite::Death { index, serial }));
    }

    /// The group goes out with these changes.
    pub(in crate::messages) fn note_ends(&mut self, group: u64, changes: &[Change]) {
        let is_end = |change: &Change| matches!(change, Change::Note(Persist::Remove { .. }));
        let beside = if changes.iter().all(is_end) { GroupedChange::Ends } else { GroupedChange::Others };
        let ends = changes.iter().filter_map(|change| match *change {
            Change::Note(Persist::Remove { serial, marked }) => {
                Some((group, PendingWrite::End { serial, marked, beside }))
            }
            _ => None,
        });
        self.sent.extend(ends);
    }

    /// Everything up to that group is on disk.
    pub(in crate::messages) fn stored(&mut self, group: u64) {
        while self.sent.pop_front_if(|(of, _)| *of <= group).is_some() {}
    }

    /// The failed attempt of that message was refused.
    pub(in crate::messages) fn attempt(&mut self, index: u32, serial: u64) {
        self.refused.push(PendingWrite::Attempt { index, serial });
    }

    /// Messages that wait until their failed attempt is written down.
    pub(in crate::messages) fn indexes(&self) -> impl Iterator<Item = u32> {
        self.refused.iter().filter_map(|write| match write {
            PendingWrite::Attempt { index, .. } => Some(*index),
            PendingWrite::Death { .. } | PendingWrite::End { .. } => None,
        })
    }
}

impl Messages {
    /// A group was refused: what it held of ends beside other things goes out at once, in a group that makes room.
    pub(in crate::messages) fn keep_refused(&mut self, group: u64) {
        for (of, write) in std::mem::take(&mut self.durable.pending_writes.sent) {
            match write {
                _ if of != group => self.durable.pending_writes.sent.push_back((of, write)),
                PendingWrite::End { serial, marked, beside: GroupedChange::Others } => {
                    self.durable.note(Persist::Remove { serial, marked });
                }
                PendingWrite::Attempt { .. }
                | PendingWrite::Death { .. }
                | PendingWrite::End { beside: GroupedChange::Ends, .. } => {
                    self.durable.pending_writes.refused.push(write);
                }
            }
        }
    }

    /// Tries again, once a second.
    pub(in crate::messages) fn write_again(&mut self) {
        for write in std::mem::take(&mut self.durable.pending_writes.refused) {
            let (index, serial) = match write {
                PendingWrite::Attempt { index, serial } | PendingWrite::Death { index, serial } => (index, serial),
                PendingWrite::End { serial, marked, .. } => {
                    self.durable.note(Persist::Remove { serial, marked });
                    continue;
                }
            };
            // It may have been removed meanwhile, and that is on disk, or on its way.
            let Some(message) = self.messages.get(index).filter(|message| message.serial == serial) else { continue };
            match (write, message.state) {
                (PendingWrite::Attempt { .. }, _) => self.store_attempts_again(index),
                (PendingWrite::Death { .. }, MessageStage::Dead) => {
                    let failure = self.failures.get(&index).map(|failure| failure.bytes.clone()).unwrap_or_default();
                    self.store_death(index, &failure);
                }
                // Somebody puts it back: if the disk refuses that too, it is a dead letter still.
                (PendingWrite::Death { .. }, MessageStage::Storing { .. }) => {
                    self.durable.pending_writes.refused.push(write)
                }
                _ => {}
            }
        }
    }
}
