//! Disks that fail: no room is an answer, a failed sync is the end, and nothing confirmed is lost by either.

use turno_store::disk::{Crash, Fault, Rng, SimDisk};
use turno_store::{Batch, CommitError, CommitNo, Embedded, OpenError, ReadError, RecordNo, Retry, Space, Store};

use crate::backends::{Backend, SMALL, Simulated};
use crate::model::{commit, deletes, numbers, puts};

fn is_dead(error: &CommitError) -> bool {
    matches!(error, CommitError::Unavailable { retry: Retry::Never, .. })
}

fn put(store: &mut impl Store, number: u64) -> Result<(), CommitError> {
    let mut batch = Batch::new();
    batch.put(Space(1), RecordNo(number), &[1; 200]);
    commit(store, &mut batch)
}

#[test]
fn after_a_failed_sync_nothing_works() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    commit(&mut store, &mut puts([1])).unwrap();
    backend.0.fail_syncs(true);
    assert_eq!(commit(&mut store, &mut puts([2])), Err(CommitError::Unknown(CommitNo(2))));
    backend.0.fail_syncs(false);
    assert!(is_dead(&commit(&mut store, &mut puts([3])).unwrap_err()));
    assert!(is_dead(&store.last_commit().unwrap_err()));
    assert!(is_dead(&store.compact().unwrap_err()));
    let read = store.read(&[RecordNo(1)], &mut |_, _| panic!("a dead store gives nothing"));
    assert!(matches!(read, Err(ReadError::Unavailable { retry: Retry::Never, .. })));
}

#[test]
fn what_a_failed_sync_left_in_the_cache_is_made_durable_by_the_next_owner() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    commit(&mut store, &mut puts([1])).unwrap();
    backend.0.fail_syncs(true);
    commit(&mut store, &mut puts([2])).unwrap_err();
    backend.0.fail_syncs(false);
    drop(store);
    let mut store = backend.open();
    assert_eq!((numbers(&mut store), store.last_commit()), (vec![1, 2], Ok(CommitNo(2))));
    drop(store);
    // The cache is gone; only what was written after the failure is on the disk.
    let disk = backend.0.after_crash(Crash::Dropped, &mut Rng::new(1));
    assert_eq!(numbers(&mut Simulated(disk).open()), [1, 2]);
}

/// A file may be longer than the disk knows: the sync of its growth failed, and the cache forgot that. The next owner does
/// not build on that length, or its own records would tell of a file that was cut.
#[test]
fn a_growth_that_was_never_synced_is_no_cut() {
    for confirmed in 0..60 {
        let mut backend = Simulated::new();
        let mut store = backend.open();
        (0..confirmed).for_each(|number| put(&mut store, number).unwrap());
        backend.0.fail_syncs(true);
        put(&mut store, 1_000).unwrap_err();
        backend.0.fail_syncs(false);
        drop(store);
        let mut store = backend.open();
        let before = numbers(&mut store);
        put(&mut store, 2_000).unwrap();
        let disk = backend.0.after_crash(Crash::Dropped, &mut Rng::new(1));
        let expected: Vec<u64> = before.into_iter().chain([2_000]).collect();
        assert_eq!(numbers(&mut Simulated(disk).open()), expected, "after {confirmed}");
    }
}

#[test]
fn a_failed_sync_and_a_power_cut_lose_only_what_was_not_confirmed() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    commit(&mut store, &mut puts([1])).unwrap();
    backend.0.fail_syncs(true);
    commit(&mut store, &mut puts([2])).unwrap_err();
    let disk = backend.0.after_crash(Crash::Dropped, &mut Rng::new(1));
    assert_eq!(numbers(&mut Simulated(disk).open()), [1]);
}

#[test]
fn a_failed_write_is_the_end() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    commit(&mut store, &mut puts([1])).unwrap();
    backend.0.fail_at(0, Fault::Eio);
    assert!(is_dead(&commit(&mut store, &mut puts([2])).unwrap_err()));
    assert!(is_dead(&commit(&mut store, &mut puts([2])).unwrap_err()));
    drop(store);
    assert_eq!(numbers(&mut backend.open()), [1]);
}

#[test]
fn short_writes_are_completed() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    for number in 0..200 {
        backend.0.fail_at(0, Fault::Short);
        commit(&mut store, &mut puts([number])).unwrap();
    }
    drop(store);
    assert!(numbers(&mut backend.open()).into_iter().eq(0..200));
}

#[test]
fn no_room_for_one_write_is_an_answer_and_the_next_may_pass() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    let mut number = 0;
    for call in 0..400 {
        // Whatever call it hits: of the record, of the next segment, of its header.
        backend.0.fail_at(backend.0.calls() + call % 5, Fault::Enospc);
        for _ in 0..3 {
            match put(&mut store, number) {
                Ok(()) => number += 1,
                Err(CommitError::Full) => {}
                // A sync cannot fail for lack of room on a disk we trust: it is taken for what it is.
                Err(CommitError::Unknown(_)) => {
                    drop(store);
                    store = backend.open();
                    number = numbers(&mut store).len() as u64;
                }
                Err(error) if is_dead(&error) => {
                    drop(store);
                    store = backend.open();
                    number = numbers(&mut store).len() as u64;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    drop(store);
    assert!(numbers(&mut backend.open()).into_iter().eq(0..number));
}

#[test]
fn on_a_full_disk_deletes_pass_and_make_room() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    backend.0.set_bytes_max(Some(64 * 1024));
    let mut count = 0;
    while put(&mut store, count).is_ok() {
        count += 1;
        assert!(count < 1_000, "a disk of 64 KiB is full some day");
    }
    assert_eq!(put(&mut store, count), Err(CommitError::Full));
    assert!(count > 100, "{count}");
    for number in 0..count {
        commit(&mut store, &mut deletes([number])).unwrap_or_else(|error| panic!("{number} of {count}: {error}"));
    }
    while store.compact().unwrap() {}
    for number in 0..100 {
        put(&mut store, number).unwrap_or_else(|error| panic!("{number} again: {error}"));
    }
    drop(store);
    assert!(numbers(&mut backend.open()).into_iter().eq(0..100));
}

/// All there is fits into the segment that is being written: it is left so that it can be freed.
#[test]
fn a_disk_of_less_than_two_segments_gets_its_room_back() {
    for bytes_max in [6, 7, 8, 10, 12, 15] {
        let mut backend = Simulated::new();
        let mut store = backend.open();
        backend.0.set_bytes_max(Some(bytes_max * 1024));
        let mut next = 0;
        for round in 0..20 {
            let first = next;
            // One that is refused tells the store that it needs room.
            if put(&mut store, next).is_ok() {
                next += 1;
            } else {
                while store.compact().unwrap() {}
            }
            while put(&mut store, next).is_ok() {
                next += 1;
            }
            assert!(next > first, "{bytes_max} KiB, round {round}: {first} to {next}");
            if round % 5 == 4 {
                drop(store);
                store = backend.open();
                assert!(numbers(&mut store).into_iter().eq(first..next), "{bytes_max} KiB, round {round}");
            }
            for number in first..next {
                commit(&mut store, &mut deletes([number])).unwrap();
            }
            while store.compact().unwrap() {}
        }
    }
}

#[test]
fn a_full_disk_can_be_opened_and_drained() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    backend.0.set_bytes_max(Some(64 * 1024));
    let mut count = 0;
    while put(&mut store, count).is_ok() {
        count += 1;
    }
    for _ in 0..10 {
        drop(store);
        store = backend.open();
        assert_eq!(numbers(&mut store).len() as u64, count);
    }
    for number in 0..count {
        commit(&mut store, &mut deletes([number])).unwrap_or_else(|error| panic!("{number} of {count}: {error}"));
    }
}

/// Any call fails in any manner: what was confirmed is there for the next owner.
#[test]
fn every_call_fails_once() {
    for fault in [Fault::Eio, Fault::Enospc, Fault::Short] {
        for call in 0..160 {
            let disk = SimDisk::new();
            disk.fail_at(call, fault);
            let mut confirmed = Vec::new();
            let mut unknown = None;
            match Embedded::open(disk.clone(), SMALL) {
                Ok((mut store, _)) => {
                    for number in 0..60 {
                        match put(&mut store, number) {
                            Ok(()) => confirmed.push(number),
                            Err(CommitError::Unknown(_)) => unknown = Some(number),
                            Err(_) => {}
                        }
                    }
                }
                Err(error) => assert!(matches!(error, OpenError::Io { .. }), "{error}"),
            }
            let (mut store, _) =
                Embedded::open(disk, SMALL).unwrap_or_else(|error| panic!("{fault:?} {call}: {error}"));
            let mut found = numbers(&mut store);
            found.retain(|number| Some(*number) != unknown);
            assert_eq!(found, confirmed, "{fault:?} {call}");
        }
    }
}

/// Any write is a short one, and then the power goes, with parts of what was on its way arriving: a header of which half
/// is there is no reason to refuse a log that does not need it, and what was confirmed is there.
#[test]
fn a_half_written_header_is_no_damage() {
    let crashes = [Crash::Dropped, Crash::Kept, Crash::Subset, Crash::Torn];
    let mut short = 0;
    for call in 0..60 {
        let disk = SimDisk::new();
        disk.fail_at(call, Fault::Short);
        let mut confirmed = vec![(0, 0)];
        // Of a call that is no write there is no half: it failed, which others look at.
        let Ok((mut store, _)) = Embedded::open(disk.clone(), SMALL) else { continue };
        let all = (0..30).all(|number| {
            let is_there = put(&mut store, number).is_ok();
            confirmed.push((disk.changes(), number + 1));
            is_there
        });
        if !all {
            continue;
        }
        short += 1;
        let journal = disk.journal();
        for changes in 0..journal.len() {
            for (seed, crash) in (0..).zip(crashes) {
                let after = journal.after_crash(changes, crash, &mut Rng::new(seed + changes as u64));
                let (mut store, _) = Embedded::open(after, SMALL)
                    .unwrap_or_else(|error| panic!("call {call}, change {changes}, {crash:?}: {error}"));
                let least = confirmed.iter().rev().find(|(at, _)| *at <= changes).map_or(0, |(_, count)| *count);
                assert!(numbers(&mut store).len() as u64 >= least, "call {call}, change {changes}, {crash:?}");
            }
        }
    }
    assert!(short > 20, "{short} writes were short ones");
}

#[test]
fn a_disk_without_any_room_is_said_to_be_full() {
    let disk = SimDisk::new();
    disk.set_bytes_max(Some(100));
    let error = Embedded::open(disk, SMALL).unwrap_err();
    assert!(matches!(error, OpenError::Io { doing: "write", .. }), "{error}");
}
