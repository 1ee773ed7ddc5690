//! One suite for every backend: nothing above the trait may know which one runs.

use turno_store::limits::KEY_BYTES_MAX;
use turno_store::{Batch, CommitError, CommitNo, Epoch, RecordNo, Space, Store};

use crate::backends::{Backend, InMemory, Real, Simulated};
use crate::model::{Contents, commit, deletes, numbers, puts};

macro_rules! suite {
    ($($(#[$doc:meta])* fn $name:ident($backend:ident) $body:block)*) => {
        mod cases {
            use super::*;
            $($(#[$doc])* pub(super) fn $name<B: Backend>($backend: &mut B) $body)*
        }
        suite!(@run in_memory, InMemory, $($name)*);
        suite!(@run simulated, Simulated, $($name)*);
        suite!(@run real, Real, $($name)*);
    };
    (@run $module:ident, $backend:ty, $($name:ident)*) => {
        mod $module {
            use super::*;
            $(#[test] fn $name() { cases::$name(&mut <$backend>::new()); })*
        }
    };
}

fn key(store: &mut impl Store, space: u8, key: &[u8]) -> Option<Vec<u8>> {
    store.read_key(Space(space), key).expect("a good store can be read")
}

fn value(store: &mut impl Store, number: u64) -> Option<Vec<u8>> {
    let mut found = None;
    store.read(&[RecordNo(number)], &mut |_, record| found = record.map(|(_, value)| value.to_vec())).unwrap();
    found
}

suite! {
    fn a_new_store_is_empty(backend) {
        let mut store = backend.open();
        assert_eq!(Contents::of(&mut store), Contents::default());
        assert_eq!((store.last_commit(), store.last_record()), (Ok(CommitNo(0)), RecordNo(0)));
    }
    fn the_epoch_rises_with_every_opening(backend) {
        let mut last = Epoch(0);
        for _ in 0..5 {
            let epoch = backend.open().epoch();
            assert!(epoch > last);
            last = epoch;
        }
    }
    fn commits_are_counted(backend) {
        let mut store = backend.open();
        for number in 1..=5 {
            store.commit(store.epoch(), CommitNo(number), &mut puts([number])).unwrap();
            assert_eq!(store.last_commit(), Ok(CommitNo(number)));
        }
    }
    fn the_count_outlives_the_owner(backend) {
        commit(&mut backend.open(), &mut puts([1])).unwrap();
        commit(&mut backend.open(), &mut puts([2])).unwrap();
        let mut store = backend.open();
        assert_eq!((store.last_commit(), numbers(&mut store)), (Ok(CommitNo(2)), vec![1, 2]));
    }
    fn a_number_that_was_used_is_refused(backend) {
        let mut store = backend.open();
        commit(&mut store, &mut puts([1])).unwrap();
        let again = store.commit(store.epoch(), CommitNo(1), &mut puts([2]));
        assert_eq!(again, Err(CommitError::OutOfTurn { last: CommitNo(1) }));
        assert_eq!(numbers(&mut store), [1]);
    }
    fn a_number_that_is_not_the_next_is_refused(backend) {
        let mut store = backend.open();
        let early = store.commit(store.epoch(), CommitNo(2), &mut puts([2]));
        assert_eq!(early, Err(CommitError::OutOfTurn { last: CommitNo(0) }));
        assert!(numbers(&mut store).is_empty());
    }
    fn an_old_epoch_is_fenced(backend) {
        let old = backend.open().epoch();
        let mut store = backend.open();
        let by = store.epoch();
        assert_eq!(store.commit(old, CommitNo(1), &mut puts([1])), Err(CommitError::Fenced { by }));
        assert!(numbers(&mut store).is_empty());
    }
    fn an_epoch_to_come_is_fenced(backend) {
        let mut store = backend.open();
        let by = store.epoch();
        assert_eq!(store.commit(Epoch(by.0 + 1), CommitNo(1), &mut puts([1])), Err(CommitError::Fenced { by }));
    }
    fn fencing_comes_before_the_number(backend) {
        let mut store = backend.open();
        let by = store.epoch();
        assert_eq!(store.commit(Epoch(0), CommitNo(9), &mut puts([1])), Err(CommitError::Fenced { by }));
    }
    fn a_refused_batch_can_be_sent_again(backend) {
        let mut store = backend.open();
        let mut batch = puts([1, 2]);
        store.commit(Epoch(0), CommitNo(1), &mut batch).unwrap_err();
        commit(&mut store, &mut batch).unwrap();
        assert_eq!(numbers(&mut store), [1, 2]);
    }
    fn a_committed_batch_is_as_it_was(backend) {
        let mut store = backend.open();
        let mut batch = puts([1, 2]);
        let before: Vec<String> = batch.ops().map(|op| format!("{op:?}")).collect();
        commit(&mut store, &mut batch).unwrap();
        assert!(batch.ops().map(|op| format!("{op:?}")).eq(before));
        batch.put(Space(1), RecordNo(3), b"more");
        commit(&mut store, &mut batch).unwrap();
        assert_eq!(numbers(&mut store), [1, 2, 3]);
    }
    fn an_empty_batch_counts(backend) {
        let mut store = backend.open();
        commit(&mut store, &mut Batch::new()).unwrap();
        assert_eq!(store.last_commit(), Ok(CommitNo(1)));
        drop(store);
        assert_eq!(backend.open().last_commit(), Ok(CommitNo(1)));
    }
    fn a_record_keeps_its_bytes_and_its_mark(backend) {
        let mut store = backend.open();
        let bytes: Vec<u8> = (0..=255).collect();
        let mut batch = Batch::new();
        batch.put(Space(200), RecordNo(9), &bytes);
        commit(&mut store, &mut batch).unwrap();
        drop(store);
        assert_eq!(Contents::of(&mut backend.open()).numbered[&9], (200, bytes));
    }
    fn an_empty_record_is_a_record(backend) {
        let mut store = backend.open();
        let mut batch = Batch::new();
        batch.put(Space(0), RecordNo(0), b"");
        batch.set(Space(0), b"", b"");
        commit(&mut store, &mut batch).unwrap();
        drop(store);
        let mut store = backend.open();
        assert_eq!((value(&mut store, 0), key(&mut store, 0, b"")), (Some(vec![]), Some(vec![])));
    }
    fn every_length_comes_back(backend) {
        let mut store = backend.open();
        for len in 0..64 {
            let mut batch = Batch::new();
            batch.put(Space(1), RecordNo(len), &vec![7; len as usize]);
            commit(&mut store, &mut batch).unwrap();
        }
        drop(store);
        let lens = Contents::of(&mut backend.open()).numbered.into_values().map(|(_, value)| value.len());
        assert!(lens.eq(0..64));
    }
    fn a_put_replaces(backend) {
        let mut store = backend.open();
        commit(&mut store, &mut puts([1, 2])).unwrap();
        let mut batch = Batch::new();
        batch.put(Space(3), RecordNo(1), b"new");
        commit(&mut store, &mut batch).unwrap();
        assert_eq!(Contents::of(&mut store).numbered[&1], (3, b"new".to_vec()));
        drop(store);
        assert_eq!(Contents::of(&mut backend.open()).numbered[&1], (3, b"new".to_vec()));
    }
    fn a_delete_deletes(backend) {
        let mut store = backend.open();
        commit(&mut store, &mut puts(1..=5)).unwrap();
        commit(&mut store, &mut deletes([2, 4])).unwrap();
        assert_eq!(numbers(&mut store), [1, 3, 5]);
        drop(store);
        assert_eq!(numbers(&mut backend.open()), [1, 3, 5]);
    }
    fn deleting_what_is_not_there_does_nothing(backend) {
        let mut store = backend.open();
        commit(&mut store, &mut puts([1])).unwrap();
        let mut batch = deletes([7, 1, 1]);
        batch.unset(Space(1), b"none");
        commit(&mut store, &mut batch).unwrap();
        assert_eq!(Contents::of(&mut store), Contents::default());
    }
    fn what_was_deleted_can_be_put_again(backend) {
        let mut store = backend.open();
        commit(&mut store, &mut puts([1])).unwrap();
        commit(&mut store, &mut deletes([1])).unwrap();
        commit(&mut store, &mut puts([1])).unwrap();
        drop(store);
        assert_eq!(numbers(&mut backend.open()), [1]);
    }
    fn operations_of_a_batch_are_in_order(backend) {
        let mut store = backend.open();
        let mut batch = puts([1]);
        batch.delete(RecordNo(1));
        batch.put(Space(1), RecordNo(2), b"first");
        batch.put(Space(1), RecordNo(2), b"second");
        batch.set(Space(1), b"k", b"v");
        batch.unset(Space(1), b"k");
        batch.unset(Space(1), b"l");
        batch.set(Space(1), b"l", b"w");
        commit(&mut store, &mut batch).unwrap();
        for _ in 0..2 {
            assert_eq!(numbers(&mut store), [2]);
            assert_eq!(value(&mut store, 2), Some(b"second".to_vec()));
            assert_eq!((key(&mut store, 1, b"k"), key(&mut store, 1, b"l")), (None, Some(b"w".to_vec())));
            drop(store);
            store = backend.open();
        }
    }
    fn a_message_moves_to_a_table_in_one_batch(backend) {
        let mut store = backend.open();
        commit(&mut store, &mut puts([1, 2])).unwrap();
        let mut batch = deletes([1]);
        batch.put(Space(2), RecordNo(3), b"as a dead letter");
        batch.set(Space(5), b"history of 3", b"why");
        commit(&mut store, &mut batch).unwrap();
        drop(store);
        let mut store = backend.open();
        assert_eq!((numbers(&mut store), key(&mut store, 5, b"history of 3")), (vec![2, 3], Some(b"why".to_vec())));
    }
    fn a_scan_goes_by_number_however_they_were_put(backend) {
        let mut store = backend.open();
        for number in [5, 1, 9_000, 3, 1 << 40, 4_096, 2] {
            commit(&mut store, &mut puts([number])).unwrap();
        }
        let sorted = [1, 2, 3, 5, 4_096, 9_000, 1 << 40];
        assert_eq!(numbers(&mut store), sorted);
        drop(store);
        assert_eq!(numbers(&mut backend.open()), sorted);
    }
    fn the_highest_number_works(backend) {
        let mut store = backend.open();
        commit(&mut store, &mut puts([u64::MAX, 0])).unwrap();
        drop(store);
        let mut store = backend.open();
        assert_eq!((numbers(&mut store), store.last_record()), (vec![0, u64::MAX], RecordNo(u64::MAX)));
    }
    fn the_highest_number_is_remembered_beyond_its_record(backend) {
        let mut store = backend.open();
        commit(&mut store, &mut puts([41, 17])).unwrap();
        commit(&mut store, &mut deletes([41])).unwrap();
        assert_eq!(store.last_record(), RecordNo(41));
        drop(store);
        assert_eq!(backend.open().last_record(), RecordNo(41));
    }
    fn reading_is_in_the_order_asked_for(backend) {
        let mut store = backend.open();
        commit(&mut store, &mut puts(1..=4)).unwrap();
        let asked = [3, 9, 1, 3].map(RecordNo);
        let mut got = Vec::new();
        store.read(&asked, &mut |record, found| got.push((record, found.is_some()))).unwrap();
        assert_eq!(got, [(asked[0], true), (asked[1], false), (asked[2], true), (asked[3], true)]);
    }
    fn reading_nothing_is_fine(backend) {
        backend.open().read(&[], &mut |_, _| panic!("nothing was asked for")).unwrap();
    }
    fn a_deleted_record_cannot_be_read(backend) {
        let mut store = backend.open();
        commit(&mut store, &mut puts([1])).unwrap();
        commit(&mut store, &mut deletes([1])).unwrap();
        assert_eq!(value(&mut store, 1), None);
    }
    fn keys_are_apart_by_space(backend) {
        let mut store = backend.open();
        let mut batch = Batch::new();
        batch.set(Space(1), b"k", b"one");
        batch.set(Space(2), b"k", b"two");
        commit(&mut store, &mut batch).unwrap();
        let mut batch = Batch::new();
        batch.unset(Space(1), b"k");
        commit(&mut store, &mut batch).unwrap();
        drop(store);
        let mut store = backend.open();
        assert_eq!((key(&mut store, 1, b"k"), key(&mut store, 2, b"k")), (None, Some(b"two".to_vec())));
    }
    fn a_set_replaces(backend) {
        let mut store = backend.open();
        for value in [b"a".as_slice(), b"bb", b""] {
            let mut batch = Batch::new();
            batch.set(Space(1), b"k", value);
            commit(&mut store, &mut batch).unwrap();
            assert_eq!(key(&mut store, 1, b"k").as_deref(), Some(value));
        }
        assert_eq!(store.usage().keyed, 1);
    }
    fn keys_and_numbers_do_not_meet(backend) {
        let mut store = backend.open();
        let mut batch = puts([1]);
        batch.set(Space(1), &1_u64.to_le_bytes(), b"keyed");
        commit(&mut store, &mut batch).unwrap();
        commit(&mut store, &mut deletes([1])).unwrap();
        assert_eq!(key(&mut store, 1, &1_u64.to_le_bytes()), Some(b"keyed".to_vec()));
    }
    fn a_scan_gives_keys_by_space_and_key(backend) {
        let mut store = backend.open();
        let mut batch = Batch::new();
        for (space, key) in [(2, "a"), (1, "b"), (1, "a"), (1, ""), (0, "z"), (1, "aa")] {
            batch.set(Space(space), key.as_bytes(), b"v");
        }
        commit(&mut store, &mut batch).unwrap();
        let keys: Vec<(u8, Vec<u8>)> = Contents::of(&mut store).keyed.into_keys().collect();
        assert_eq!(keys.len(), 6);
    }
    fn the_longest_key_works(backend) {
        let mut store = backend.open();
        let long = vec![b'k'; KEY_BYTES_MAX];
        let mut batch = Batch::new();
        batch.set(Space(1), &long, b"v");
        commit(&mut store, &mut batch).unwrap();
        drop(store);
        assert_eq!(key(&mut backend.open(), 1, &long), Some(b"v".to_vec()));
    }
    fn a_longer_key_is_too_large(backend) {
        let mut store = backend.open();
        let mut batch = puts([1]);
        batch.set(Space(1), &vec![b'k'; KEY_BYTES_MAX + 1], b"v");
        assert_eq!(commit(&mut store, &mut batch), Err(CommitError::TooLarge));
        assert!(numbers(&mut store).is_empty());
    }
    fn a_key_of_seventy_thousand_bytes_is_too_large(backend) {
        let mut store = backend.open();
        let mut batch = Batch::new();
        batch.unset(Space(1), &vec![b'k'; 70_000]);
        assert_eq!(commit(&mut store, &mut batch), Err(CommitError::TooLarge));
    }
    fn a_batch_as_long_as_allowed_works(backend) {
        let mut store = backend.open();
        let most = store.capacity().batch_bytes_max / 8 * 8;
        for number in 0..8 {
            let mut batch = Batch::new();
            batch.put(Space(1), RecordNo(number), &vec![1; most - 24]);
            assert_eq!(batch.len(), most);
            commit(&mut store, &mut batch).unwrap();
        }
        drop(store);
        assert_eq!(numbers(&mut backend.open()).len(), 8);
    }
    fn a_longer_batch_is_too_large(backend) {
        let mut store = backend.open();
        let mut batch = Batch::new();
        batch.put(Space(1), RecordNo(1), &vec![1; store.capacity().batch_bytes_max]);
        assert_eq!(commit(&mut store, &mut batch), Err(CommitError::TooLarge));
        assert_eq!((numbers(&mut store), store.last_commit()), (vec![], Ok(CommitNo(0))));
        commit(&mut store, &mut puts([1])).unwrap();
    }
    fn usage_follows_what_lives(backend) {
        let mut store = backend.open();
        assert_eq!(store.usage().live_bytes, 0);
        commit(&mut store, &mut puts(0..10)).unwrap();
        let usage = store.usage();
        assert!(usage.numbered == 10 && usage.live_bytes > 0 && !usage.is_tight);
        commit(&mut store, &mut deletes(0..10)).unwrap();
        let usage = store.usage();
        assert_eq!((usage.numbered, usage.keyed, usage.live_bytes), (0, 0, 0));
    }
    fn usage_is_the_same_after_opening_again(backend) {
        let mut store = backend.open();
        commit(&mut store, &mut puts(0..10)).unwrap();
        commit(&mut store, &mut deletes([3, 4])).unwrap();
        let before = store.usage();
        drop(store);
        let after = backend.open().usage();
        assert_eq!((before.numbered, before.live_bytes), (after.numbered, after.live_bytes));
    }
    fn many_batches_come_back_in_order(backend) {
        let mut store = backend.open();
        for number in 0..300 {
            commit(&mut store, &mut puts([number])).unwrap();
        }
        drop(store);
        assert!(numbers(&mut backend.open()).into_iter().eq(0..300));
    }
    fn a_queue_that_moves_on_keeps_what_it_holds(backend) {
        let mut store = backend.open();
        for number in 0..400 {
            commit(&mut store, &mut puts([number])).unwrap();
            if number >= 10 {
                commit(&mut store, &mut deletes([number - 10])).unwrap();
            }
        }
        assert!(numbers(&mut store).into_iter().eq(390..400));
        drop(store);
        assert!(numbers(&mut backend.open()).into_iter().eq(390..400));
    }
    fn an_old_record_stays_while_others_come_and_go(backend) {
        let mut store = backend.open();
        let mut batch = puts([1]);
        batch.set(Space(9), b"setting", b"kept");
        commit(&mut store, &mut batch).unwrap();
        for number in 2..500 {
            commit(&mut store, &mut puts([number])).unwrap();
            commit(&mut store, &mut deletes([number])).unwrap();
        }
        while store.compact().unwrap() {}
        for _ in 0..2 {
            assert_eq!(value(&mut store, 1), Some(b"record 1".to_vec()));
            assert_eq!(key(&mut store, 9, b"setting"), Some(b"kept".to_vec()));
            assert_eq!(numbers(&mut store), [1]);
            drop(store);
            store = backend.open();
        }
    }
    fn housekeeping_comes_to_an_end(backend) {
        let mut store = backend.open();
        for number in 0..300 {
            commit(&mut store, &mut puts([number])).unwrap();
        }
        for from in [0, 100, 200] {
            let gone = (from..from + 100).filter(|number| number % 7 != 0);
            commit(&mut store, &mut deletes(gone)).unwrap();
        }
        let mut steps = 0;
        while store.compact().unwrap() {
            steps += 1;
            assert!(steps < 1_000, "there is no end to it");
        }
        assert!(numbers(&mut store).into_iter().eq((0..300).filter(|number| number % 7 == 0)));
    }
    fn records_can_be_encoded_in_place(backend) {
        let mut store = backend.open();
        let mut batch = Batch::new();
        batch.put_with(Space(4), RecordNo(1), |out| {
            out.extend_from_slice(b"head ");
            out.extend_from_slice(b"body");
        });
        commit(&mut store, &mut batch).unwrap();
        assert_eq!(Contents::of(&mut store).numbered[&1], (4, b"head body".to_vec()));
    }
    fn batches_can_be_joined(backend) {
        let mut store = backend.open();
        let mut batch = puts([1, 2]);
        batch.append(&deletes([1]));
        assert_eq!(batch.count(), 3);
        commit(&mut store, &mut batch).unwrap();
        assert_eq!(numbers(&mut store), [2]);
        batch.clear();
        assert!(batch.is_empty() && !batch.has_puts() && batch.count() == 0);
    }
}
