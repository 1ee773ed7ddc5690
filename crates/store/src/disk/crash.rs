//! Power cuts of a simulated disk: synced data stays, and of the rest a random part.
#![expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "all indexes are the simulation's own, none comes from bytes of a file"
)]

use std::collections::{BTreeMap, BTreeSet};

use super::{Rng, SimDisk};

/// Bytes that reach the disk together or not at all.
const SECTOR: usize = 512;

/// The effect of a power cut on data that was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// Nothing of it is left.
    Dropped,
    /// All of it is left: the process ended, the machine did not.
    Kept,
    /// Any 512-byte sectors of it, and any of the new names, are left.
    Subset,
    /// All is left but for the last write, of which only the first sectors are.
    Torn,
}

/// One change to a directory.
#[derive(Clone, Debug)]
pub(super) enum DirectoryChange {
    Create { name: String, inode: usize },
    Remove { name: String },
    Write { inode: usize, at: usize, bytes: Vec<u8> },
    Sync { inode: usize },
    LostSync { inode: usize },
    SyncDirectory,
}

/// Everything that happened to a directory, in order.
#[derive(Clone, Debug, Default)]
pub struct Journal(Vec<DirectoryChange>);

/// A file as the disk has it, and what is on its way there.
#[derive(Clone, Debug, Default)]
struct Durable {
    bytes: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
}

impl Journal {
    pub(super) const fn new(changes: Vec<DirectoryChange>) -> Self {
        Self(changes)
    }

    /// How many changes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing happened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The directory as it is when the power goes after the first `changes` of these.
    #[must_use]
    pub fn after_crash(&self, changes: usize, crash: Crash, rng: &mut Rng) -> SimDisk {
        let mut files: Vec<Durable> = Vec::new();
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        let mut unsynced_names: Vec<&DirectoryChange> = Vec::new();
        let happened = self.0.get(..changes).unwrap_or(&self.0);
        for change in happened {
            match change {
                DirectoryChange::Create { inode, .. } => {
                    files.resize(files.len().max(inode + 1), Durable::default());
                    unsynced_names.push(change);
                }
                DirectoryChange::Remove { .. } => unsynced_names.push(change),
                DirectoryChange::Write { inode, at, bytes } => files[*inode].unsynced.push((*at, bytes.clone())),
                DirectoryChange::Sync { inode } => {
                    let file = &mut files[*inode];
                    for (at, bytes) in std::mem::take(&mut file.unsynced) {
                        write(&mut file.bytes, at, &bytes);
                    }
                }
                // Data that a failed sync dropped is in the cache still: only the end of the machine shows that it is gone.
                DirectoryChange::LostSync { inode } if crash != Crash::Kept => files[*inode].unsynced.clear(),
                DirectoryChange::LostSync { .. } => {}
                DirectoryChange::SyncDirectory => {
                    unsynced_names.drain(..).for_each(|change| rename(&mut names, change))
                }
            }
        }
        let last_write = match happened.last() {
            Some(DirectoryChange::Write { inode, .. }) => Some(*inode),
            _ => None,
        };
        for change in unsynced_names {
            if crash == Crash::Kept || crash == Crash::Torn || (crash == Crash::Subset && rng.once_in(2)) {
                rename(&mut names, change);
            }
        }
        let kept: BTreeSet<usize> = names.values().copied().collect();
        for inode in kept {
            let is_last = last_write == Some(inode);
            files[inode].survive(crash, is_last, rng);
        }
        SimDisk::with_files(names.into_iter().map(|(name, inode)| (name, std::mem::take(&mut files[inode].bytes))))
    }
}

fn rename(names: &mut BTreeMap<String, usize>, change: &DirectoryChange) {
    match change {
        DirectoryChange::Create { name, inode } => drop(names.insert(name.clone(), *inode)),
        DirectoryChange::Remove { name } => drop(names.remove(name)),
        _ => {}
    }
}

impl Durable {
    /// Lets what was on its way arrive, or not.
    fn survive(&mut self, crash: Crash, has_last_write: bool, rng: &mut Rng) {
        let unsynced = std::mem::take(&mut self.unsynced);
        let count = unsynced.len();
        for (number, (at, bytes)) in unsynced.into_iter().enumerate() {
            let is_last = has_last_write && number + 1 == count;
            match crash {
                Crash::Dropped => {}
                Crash::Kept => write(&mut self.bytes, at, &bytes),
                Crash::Torn if is_last => {
                    let sectors = (at + bytes.len()).div_ceil(SECTOR) - at / SECTOR;
                    let cut = (at / SECTOR + rng.below(sectors as u64) as usize) * SECTOR;
                    write(&mut self.bytes, at, &bytes[..cut.saturating_sub(at).min(bytes.len())]);
                }
                Crash::Torn => write(&mut self.bytes, at, &bytes),
                Crash::Subset => self.survive_in_part(at, &bytes, rng),
            }
        }
    }

    fn survive_in_part(&mut self, at: usize, bytes: &[u8], rng: &mut Rng) {
        let mut from = 0;
        while from < bytes.len() {
            let to = ((at + from) / SECTOR + 1) * SECTOR - at;
            let to = to.min(bytes.len());
            if rng.once_in(2) {
                write(&mut self.bytes, at + from, &bytes[from..to]);
            }
            from = to;
        }
    }
}

/// Writes as a file does: what lies between its end and the write is zero.
pub(super) fn write(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if file.len() < end {
        file.resize(end, 0);
    }
    file[at..end].copy_from_slice(bytes);
}
