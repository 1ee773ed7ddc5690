//! The backends the suite runs against, each as something that can be opened again and again.

use tempfile::TempDir;
use turno_store::disk::{FsDisk, SimDisk};
use turno_store::{Embedded, Mem, MemMedium, Settings, Store};

/// Small segments, so that a handful of batches fills several.
pub(crate) const SMALL: Settings = Settings { segment_bytes: 8 * 1024, prewrite_bytes: 2 * 1024, salt: 7 };

/// A place to keep records, which outlives the store that is opened on it.
pub(crate) trait Backend {
    type Store: Store + 'static;

    fn new() -> Self;
    fn open(&mut self) -> Self::Store;
}

pub(crate) struct InMemory(MemMedium);

impl Backend for InMemory {
    type Store = Mem;

    fn new() -> Self {
        let medium = MemMedium::new();
        medium.set_batch_bytes_max(2_880);
        Self(medium)
    }

    fn open(&mut self) -> Mem {
        Mem::open(&self.0)
    }
}

pub(crate) struct Simulated(pub(crate) SimDisk);

impl Backend for Simulated {
    type Store = Embedded<SimDisk>;

    fn new() -> Self {
        Self(SimDisk::new())
    }

    fn open(&mut self) -> Embedded<SimDisk> {
        Embedded::open(self.0.clone(), SMALL).expect("a good directory opens").0
    }
}

pub(crate) struct Real(TempDir);

impl Backend for Real {
    type Store = Embedded<FsDisk>;

    fn new() -> Self {
        Self(TempDir::new().expect("a directory for the test"))
    }

    fn open(&mut self) -> Embedded<FsDisk> {
        let disk = FsDisk::take(self.0.path()).expect("nobody else has it");
        Embedded::open(disk, SMALL).expect("a good directory opens").0
    }
}
