//! Any bytes as a row of things that happen to a store in memory and to one on a disk.

use turno_store::disk::{Crash, Rng, SimDisk};
use turno_store::{Batch, CommitNo, Embedded, Epoch, Item, Mem, MemMedium, RecordNo, Settings, Space, Store};

use turno_oracle::Bytes;

const SETTINGS: Settings = Settings { segment_bytes: 4096, prewrite_bytes: 1024, salt: 1 };
const OPS_MAX: usize = 150;

/// Both answer the same and hold the same, through openings and power cuts.
pub fn store_ops(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let medium = MemMedium::new();
    let mut disk = SimDisk::new();
    let mut on_disk = open(&disk);
    medium.set_batch_bytes_max(on_disk.capacity().batch_bytes_max);
    let mut in_memory = Mem::open(&medium);
    for _ in 0..OPS_MAX {
        if bytes.is_empty() {
            break;
        }
        match bytes.byte() {
            0..160 => {
                let mut batch = batch(&mut bytes);
                let no = in_memory.last_commit().expect("memory").next();
                let one = in_memory.commit(in_memory.epoch(), no, &mut batch);
                assert_eq!(one, on_disk.commit(on_disk.epoch(), no, &mut batch), "both answer the same");
            }
            160..170 => {
                let (epoch, no) = (Epoch(bytes.byte().into()), CommitNo(bytes.byte().into()));
                let next = in_memory.last_commit().expect("memory").next();
                if (epoch, no) != (in_memory.epoch(), next) {
                    in_memory.commit(epoch, no, &mut Batch::new()).expect_err("not its turn");
                    on_disk.commit(epoch, no, &mut Batch::new()).expect_err("not its turn");
                }
            }
            170..220 => drop(on_disk.compact().expect("a good disk")),
            how => {
                let crash = [Crash::Dropped, Crash::Kept, Crash::Subset, Crash::Torn][usize::from(how) % 4];
                disk = disk.after_crash(crash, &mut Rng::new(bytes.byte().into()));
                on_disk = open(&disk);
                in_memory = Mem::open(&medium);
            }
        }
        assert_eq!(on_disk.last_commit(), in_memory.last_commit());
        assert_eq!((on_disk.epoch(), on_disk.last_record()), (in_memory.epoch(), in_memory.last_record()));
    }
    assert_eq!(contents(&mut on_disk), contents(&mut in_memory), "both hold the same");
}

fn open(disk: &SimDisk) -> Embedded<SimDisk> {
    Embedded::open(disk.clone(), SETTINGS).expect("what a power cut leaves opens").0
}

fn batch(bytes: &mut Bytes<'_>) -> Batch {
    let mut batch = Batch::new();
    for _ in 0..bytes.byte() % 6 {
        let (how, number) = (bytes.byte(), bytes.byte());
        let value = vec![how; usize::from(bytes.byte()) * usize::from(1 + how % 3)];
        match how % 4 {
            0 => batch.put(Space(how / 64), RecordNo(u64::from(number) << (how / 8)), &value),
            1 => batch.delete(RecordNo(u64::from(number) << (how / 8))),
            2 => batch.set(Space(how / 64), &[number % 8], &value),
            _ => batch.unset(Space(how / 64), &[number % 8]),
        }
    }
    batch
}

fn contents(store: &mut impl Store) -> Vec<String> {
    let mut items = Vec::new();
    let mut visit = |item: Item<'_>| items.push(format!("{item:?}"));
    store.scan(&mut visit).expect("a good disk");
    items
}
