//! Any bytes as a directory that somebody left behind.

use turno_store::disk::SimDisk;
use turno_store::{Batch, Embedded, Item, RecordNo, Settings, Space, Store, inspect};

use turno_oracle::Bytes;

const SETTINGS: Settings = Settings { segment_bytes: 4096, prewrite_bytes: 1024, salt: 1 };

/// A good directory, changed here and there by the bytes, or files of nothing but the bytes. It opens or is refused, as
/// a look at it said; a refused one is left as it was; one that opens works, and opens again with what it held.
pub fn store_recovery(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let disk = if bytes.byte() & 1 == 0 { changed(&mut bytes) } else { invented(bytes) };
    let before = disk.files();
    let seen = inspect(&mut disk.clone());
    assert_eq!(disk.files(), before, "a look changes nothing");
    let opened = Embedded::open(disk.clone(), SETTINGS);
    assert_eq!(seen.log.is_ok(), opened.is_ok(), "a look and an opening agree");
    let Ok((mut store, _)) = opened else {
        assert_eq!(disk.files(), before, "a refused directory is left as it was");
        return;
    };
    let mut batch = Batch::new();
    batch.put(Space(1), RecordNo(9), b"after");
    let no = store.last_commit().expect("an open store").next();
    store.commit(store.epoch(), no, &mut batch).expect("a good disk");
    let held = contents(&mut store);
    drop(store);
    let (mut store, _) = Embedded::open(disk, SETTINGS).expect("what was written a moment ago");
    assert_eq!(contents(&mut store), held, "what was there is there");
}

fn contents(store: &mut impl Store) -> Vec<String> {
    let mut items = Vec::new();
    let mut visit = |item: Item<'_>| items.push(format!("{item:?}"));
    store.scan(&mut visit).expect("a good disk");
    items
}

/// A store of three segments with some of its bytes overwritten, cut off, or copied elsewhere.
fn changed(bytes: &mut Bytes<'_>) -> SimDisk {
    let disk = SimDisk::new();
    let (mut store, _) = Embedded::open(disk.clone(), SETTINGS).expect("a new directory");
    for number in 0..20 {
        let mut batch = Batch::new();
        batch.put(Space(1), RecordNo(number), &[7; 300]);
        if number % 4 == 3 {
            batch.delete(RecordNo(number - 1));
            batch.set(Space(2), b"key", b"value");
        }
        let no = store.last_commit().expect("an open store").next();
        store.commit(store.epoch(), no, &mut batch).expect("a good disk");
    }
    let mut files = disk.files();
    while !bytes.is_empty() {
        let how = bytes.byte();
        let Some(name) = files.keys().nth(usize::from(how >> 4) % files.len().max(1)).cloned() else { break };
        let at = usize::from(bytes.u16());
        let file = files.get_mut(&name).expect("it is among them");
        match how & 7 {
            0 => file.truncate(at),
            1 => drop(files.remove(&name)),
            2 => {
                let other = format!("segment-{:06}", at % 9);
                let copy = file.clone();
                files.insert(other, copy);
            }
            _ => file.iter_mut().skip(at).take(usize::from(how & 3) * 4 + 1).for_each(|byte| *byte = bytes.byte()),
        }
    }
    SimDisk::with_files(files)
}

fn invented(mut bytes: Bytes<'_>) -> SimDisk {
    let cut = usize::from(bytes.byte()) * 4;
    let rest = bytes.rest();
    let (one, two) = rest.split_at(cut.min(rest.len()));
    SimDisk::with_files([("segment-000001".to_owned(), one.to_vec()), ("segment-000002".to_owned(), two.to_vec())])
}
