//! Directories of every format that was ever written stay readable.
#![expect(clippy::disallowed_methods, reason = "the fixture is a directory of the source tree")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use turno_store::disk::SimDisk;
use turno_store::{Batch, CommitNo, Embedded, Epoch, RecordNo, Settings, Space, Store};

use crate::model::{Contents, commit};

/// Set to write the directory of the current format anew; a format that was released never changes.
const WRITE: &str = "TURNO_WRITE_FIXTURE";
const SETTINGS: Settings = Settings { segment_bytes: 4 * 1024, prewrite_bytes: 1024, salt: 11 };

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/format-1")
}

/// The same commits, on a new disk: puts, deletes, keys, several segments, housekeeping, two owners.
fn build(disk: &SimDisk) -> Contents {
    let mut contents = Contents::default();
    for _ in 0..2 {
        let (mut store, _) = Embedded::open(disk.clone(), SETTINGS).unwrap();
        let from = store.last_record().0 + 1;
        for number in from..from + 20 {
            let mut batch = Batch::new();
            batch.put(Space(1), RecordNo(number), format!("message {number} {}", "m".repeat(60)).as_bytes());
            batch.set(Space(2), &[number as u8 % 5], &number.to_be_bytes());
            if number % 3 == 0 {
                batch.delete(RecordNo(number - 2));
                batch.unset(Space(2), &[4]);
            }
            commit(&mut store, &mut batch).unwrap();
            contents.apply(&batch);
        }
        while store.compact().unwrap() {}
    }
    contents
}

#[test]
fn format_1_can_be_read() {
    let disk = SimDisk::new();
    let expected = build(&disk);
    if std::env::var_os(WRITE).is_some() {
        fs::create_dir_all(folder()).unwrap();
        disk.files().iter().for_each(|(name, bytes)| fs::write(folder().join(name), bytes).unwrap());
    }
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder()).expect("the fixture is there") {
        let path = entry.unwrap().path();
        files.insert(path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap());
    }
    let (mut store, _) = Embedded::open(SimDisk::with_files(files), SETTINGS).unwrap();
    assert_eq!(Contents::of(&mut store), expected);
    assert_eq!((store.last_commit(), store.last_record()), (Ok(CommitNo(40)), RecordNo(40)));
    assert_eq!(store.epoch(), Epoch(3));
}
