//! The disk that a broker's archive is on. It outlives the broker, and everything goes wrong with it: writes fail, it is full,
//! bits flip and bytes are written over while the broker is away, the power goes. The archive itself is the real one.
//!
//! Its chance is its own, from the world's seed: what happens here changes nothing elsewhere.

use turno_broker::archive::ArchiveHandle;
use turno_engine::Engine;
use turno_proto::model::Mono;
use turno_store::archive::Room;
use turno_store::disk::{Crash, Fault, Rng as DiskRng, SimDisk};

use crate::rng::Rng;

/// Room for all that is ever handed in, in segments that are small enough to be sealed.
const OUTPUT_BYTES: u64 = 512 * 1024;

#[derive(Debug)]
pub(crate) struct ArchiveDisk {
    disk: SimDisk,
    rng: Rng,
    /// Something goes wrong with it now and then.
    is_bad: bool,
}

/// Damage to it while its broker was away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Harm {
    None,
    /// Bytes changed.
    Damaged,
    /// Data that was not synced may be gone.
    PowerCut,
}

impl ArchiveDisk {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let is_bad = rng.once_in(2);
        Self { disk: SimDisk::new(), rng, is_bad }
    }

    /// A broker begins with what is there. Whatever that is, it must be able to.
    pub(crate) fn open(&mut self, engine: &Engine, now: Mono, stormy: bool) -> (ArchiveHandle, Harm) {
        self.disk.heal();
        let harm = if self.is_bad && stormy { self.harm() } else { Harm::None };
        let room = Room {
            output_bytes: OUTPUT_BYTES,
            result_bytes: OUTPUT_BYTES,
            upload_bytes: OUTPUT_BYTES,
            uploads: 10,
            upload_kept_ms: 1_000,
            live_bytes: 10_000,
            piece_bytes: 1_024,
            salt: self.rng.next(),
        };
        let archive = ArchiveHandle::on_disk(self.disk.clone(), &room, engine, now);
        (archive.unwrap_or_else(|why| panic!("I19: the archive cannot be opened: {why}")), harm)
    }

    fn harm(&mut self) -> Harm {
        match self.rng.range(0, 8) {
            0..=2 => self.spoil(),
            3 => {
                let crash = [Crash::Dropped, Crash::Subset, Crash::Torn][self.rng.index(3)];
                self.disk = self.disk.after_crash(crash, &mut DiskRng::new(self.rng.next()));
                Harm::PowerCut
            }
            _ => Harm::None,
        }
    }

    /// Bytes of a file are not what they were.
    fn spoil(&mut self) -> Harm {
        let mut files: Vec<(String, Vec<u8>)> = self.disk.files().into_iter().collect();
        files.retain(|(_, bytes)| !bytes.is_empty());
        if files.is_empty() {
            return Harm::None;
        }
        for _ in 0..self.rng.range(1, 4) {
            let file = self.rng.index(files.len());
            let bytes = &mut files[file].1;
            let at = self.rng.index(bytes.len());
            let until = (at + self.rng.index(300)).min(bytes.len());
            match self.rng.range(0, 4) {
                0 => bytes[at..until].fill(0),
                1 => bytes[at..until].iter_mut().for_each(|byte| *byte = self.rng.next().to_le_bytes()[0]),
                _ => bytes[at] ^= 1 << self.rng.range(0, 8),
            }
        }
        self.disk = SimDisk::with_files(files);
        Harm::Damaged
    }

    /// One of the next writes goes wrong; whether it does.
    pub(crate) fn fail_soon(&mut self) -> bool {
        let call = self.disk.calls() + self.rng.range(0, 6);
        match self.rng.range(0, 5) {
            _ if !self.is_bad => return false,
            0 => self.disk.fail_at(call, Fault::Eio),
            1 => self.disk.fail_at(call, Fault::Short),
            2 => self.disk.fail_at(call, Fault::Enospc),
            _ => self.disk.set_bytes_max(Some(self.disk.used() + self.rng.range(0, 1_000))),
        }
        true
    }

    pub(crate) fn heal(&self) {
        self.disk.heal();
    }
}
