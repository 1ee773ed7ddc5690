//! What a store should hold, as two plain maps, and how to look at one.

use std::collections::BTreeMap;

use turno_store::{Batch, CommitError, Item, Op, RecordNo, Space, Store};

/// All live records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    pub(crate) numbered: BTreeMap<u64, (u8, Vec<u8>)>,
    pub(crate) keyed: BTreeMap<(u8, Vec<u8>), Vec<u8>>,
}

impl Contents {
    pub(crate) fn apply(&mut self, batch: &Batch) {
        for op in batch.ops() {
            match op {
                Op::Put { space, record, value } => {
                    self.numbered.insert(record.0, (space.0, value.to_vec()));
                }
                Op::Delete { record } => {
                    self.numbered.remove(&record.0);
                }
                Op::Set { space, key, value } => {
                    self.keyed.insert((space.0, key.to_vec()), value.to_vec());
                }
                Op::Unset { space, key } => {
                    self.keyed.remove(&(space.0, key.to_vec()));
                }
            }
        }
    }

    /// What a scan finds; also that it is in order and that reading agrees with it.
    pub(crate) fn of(store: &mut impl Store) -> Self {
        let mut contents = Self::default();
        let (mut records, mut keys) = (Vec::new(), Vec::new());
        store
            .scan(&mut |item| match item {
                Item::Keyed { space, key, value } => {
                    assert!(records.is_empty(), "keyed records come first");
                    keys.push((space.0, key.to_vec()));
                    contents.keyed.insert((space.0, key.to_vec()), value.to_vec());
                }
                Item::Numbered { space, record, value } => {
                    records.push(record);
                    contents.numbered.insert(record.0, (space.0, value.to_vec()));
                }
            })
            .expect("a good store can be read");
        assert!(records.is_sorted() && keys.is_sorted(), "a scan is in order");
        assert_eq!(records.len(), contents.numbered.len(), "a scan visits each once");
        let mut read = Vec::new();
        store
            .read(&records, &mut |record, found| {
                let (space, value) = found.expect("a live record can be read");
                read.push((record.0, (space.0, value.to_vec())));
            })
            .expect("a good store can be read");
        assert!(read.into_iter().eq(contents.numbered.clone()), "reading and scanning agree");
        let usage = store.usage();
        assert_eq!((usage.numbered, usage.keyed), (contents.numbered.len() as u64, contents.keyed.len() as u64));
        contents
    }
}

/// Commits under the next number.
pub(crate) fn commit(store: &mut impl Store, batch: &mut Batch) -> Result<(), CommitError> {
    let no = store.last_commit()?.next();
    store.commit(store.epoch(), no, batch)
}

/// A batch of puts of these numbers, each with its own number as text.
pub(crate) fn puts(numbers: impl IntoIterator<Item = u64>) -> Batch {
    let mut batch = Batch::new();
    for number in numbers {
        batch.put(Space(1), RecordNo(number), format!("record {number}").as_bytes());
    }
    batch
}

/// A batch of deletes.
pub(crate) fn deletes(numbers: impl IntoIterator<Item = u64>) -> Batch {
    let mut batch = Batch::new();
    numbers.into_iter().for_each(|number| batch.delete(RecordNo(number)));
    batch
}

/// The numbers that live.
pub(crate) fn numbers(store: &mut impl Store) -> Vec<u64> {
    Contents::of(store).numbered.into_keys().collect()
}
