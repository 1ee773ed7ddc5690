//! Room comes back: after a drain the disk holds at most twice what lives, and four segments.

use turno_store::disk::Rng;
use turno_store::{Batch, RecordNo, Space, Store, Usage};

use crate::backends::{Backend, SMALL, Simulated};
use crate::model::{Contents, commit, deletes, numbers};

fn put(store: &mut impl Store, number: u64, len: usize) {
    let mut batch = Batch::new();
    batch.put(Space(1), RecordNo(number), &vec![number as u8; len]);
    commit(store, &mut batch).unwrap();
}

fn rest(store: &mut impl Store) {
    while store.compact().unwrap() {}
}

fn assert_bound(usage: Usage) {
    let bound = 2 * usage.live_bytes + 4 * u64::from(SMALL.segment_bytes);
    assert!(usage.disk_bytes <= bound, "{usage:?} is beyond {bound}");
}

#[test]
fn an_empty_store_is_small() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    for number in 0..500 {
        put(&mut store, number, 200);
    }
    for number in 0..500 {
        commit(&mut store, &mut deletes([number])).unwrap();
    }
    rest(&mut store);
    assert_eq!(store.usage().live_bytes, 0);
    assert_bound(store.usage());
    let on_disk: usize = backend.0.files().values().map(Vec::len).sum();
    assert!(on_disk as u64 <= store.usage().disk_bytes + 512, "the files are as long as the store says");
}

#[test]
fn one_record_in_each_segment_does_not_hold_them_all() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    for number in 0..1_000 {
        put(&mut store, number, 150);
    }
    for number in (0..1_000).filter(|number| number % 40 != 0) {
        commit(&mut store, &mut deletes([number])).unwrap();
    }
    rest(&mut store);
    assert_bound(store.usage());
    let left: Vec<u64> = (0..1_000).step_by(40).collect();
    assert_eq!(numbers(&mut store), left);
    drop(store);
    let mut store = backend.open();
    assert_eq!(numbers(&mut store), left);
    assert_bound(store.usage());
}

#[test]
fn the_bound_holds_while_messages_come_and_go() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    let mut rng = Rng::new(4);
    let mut live: Vec<u64> = Vec::new();
    for number in 0..4_000 {
        put(&mut store, number, rng.below(500) as usize);
        live.push(number);
        if live.len() > 100 {
            let at = if rng.once_in(3) { 0 } else { rng.below(live.len() as u64) as usize };
            commit(&mut store, &mut deletes([live.remove(at)])).unwrap();
        }
        let usage = store.usage();
        // While work comes in it may run behind a little.
        assert!(usage.disk_bytes <= 3 * usage.live_bytes + 6 * u64::from(SMALL.segment_bytes), "{usage:?}");
        if number % 500 == 0 {
            rest(&mut store);
            assert_bound(store.usage());
        }
    }
    assert_eq!(numbers(&mut store), live);
}

#[test]
fn large_records_are_packed_too() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    let most = store.capacity().batch_bytes_max - 40;
    for number in 0..60 {
        put(&mut store, number, most - (number as usize % 7) * 100);
    }
    for number in (0..60).filter(|number| number % 3 != 0) {
        commit(&mut store, &mut deletes([number])).unwrap();
    }
    rest(&mut store);
    assert_bound(store.usage());
    assert!(numbers(&mut store).into_iter().eq((0..60).step_by(3)));
}

#[test]
fn a_record_that_is_put_again_and_again_is_kept_once() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    for round in 0..2_000_u32 {
        let mut batch = Batch::new();
        batch.set(Space(1), b"counter", &round.to_le_bytes());
        commit(&mut store, &mut batch).unwrap();
    }
    rest(&mut store);
    assert_bound(store.usage());
    drop(store);
    let contents = Contents::of(&mut backend.open());
    assert_eq!(contents.keyed.into_values().collect::<Vec<_>>(), [1_999_u32.to_le_bytes().to_vec()]);
}

#[test]
fn reading_works_while_records_move() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    for number in 0..300 {
        put(&mut store, number, 100);
    }
    for number in (0..300).filter(|number| number % 10 != 0) {
        commit(&mut store, &mut deletes([number])).unwrap();
    }
    loop {
        assert!(numbers(&mut store).into_iter().eq((0..300).step_by(10)));
        if !store.compact().unwrap() {
            break;
        }
    }
}
