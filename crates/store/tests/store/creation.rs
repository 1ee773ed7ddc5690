//! A log that is being made: its first starts fail at any call, and then the power goes at any point. Nothing was confirmed
//! yet, so whatever is left must pass for a new log or one that goes on, and never for one that lost something.

use turno_store::disk::{Crash, Fault, Rng, SimDisk};
use turno_store::{Embedded, Settings};

use crate::model::{commit, numbers, puts};

const TINY: Settings = Settings { segment_bytes: 4 * 1024, prewrite_bytes: 1024, salt: 3 };
const MANNERS: [Crash; 4] = [Crash::Dropped, Crash::Kept, Crash::Torn, Crash::Subset];
const FAULTS: [Fault; 3] = [Fault::Eio, Fault::Enospc, Fault::Short];
/// Chance decides what of many sectors and names is left: it is asked more than once.
const SUBSETS: u64 = 6;

/// A start at which one call may go wrong. Whether it came to its end does not matter.
fn start(disk: &SimDisk, fault: Option<(u64, Fault)>) {
    if let Some((call, fault)) = fault {
        disk.fail_at(disk.calls() + call, fault);
    }
    drop(Embedded::open(disk.clone(), TINY));
    disk.heal();
}

/// Calls of a start at which nothing goes wrong.
fn calls_of_a_start(disk: &SimDisk) -> u64 {
    let disk = SimDisk::with_files(disk.files());
    start(&disk, None);
    disk.calls()
}

fn must_open(disk: &SimDisk, what: &str) {
    let (mut store, _) = Embedded::open(disk.clone(), TINY).unwrap_or_else(|error| panic!("{what}: {error}"));
    commit(&mut store, &mut puts([7])).expect("a good disk");
    drop(store);
    let left = disk.after_crash(Crash::Dropped, &mut Rng::new(0));
    let (mut store, _) = Embedded::open(left, TINY).unwrap_or_else(|error| panic!("{what}, once more: {error}"));
    assert_eq!(numbers(&mut store), [7], "{what}");
}

/// The power goes after every change from `from` on, in every manner.
fn cut_from(disk: &SimDisk, from: usize, what: &str) {
    let journal = disk.journal();
    for changes in from..=journal.len() {
        for manner in MANNERS {
            let times = if manner == Crash::Subset { SUBSETS } else { 1 };
            for chance in 0..times {
                let left = journal.after_crash(changes, manner, &mut Rng::new(chance));
                must_open(&left, &format!("{what}, {changes} changes, {manner:?} {chance}"));
            }
        }
    }
}

#[test]
fn the_first_start_fails_at_any_call_and_the_power_goes_at_any_point() {
    for call in 0..=calls_of_a_start(&SimDisk::new()) {
        for fault in FAULTS {
            let disk = SimDisk::new();
            start(&disk, Some((call, fault)));
            cut_from(&disk, 0, &format!("{fault:?} at {call}"));
        }
    }
}

/// What a failed start left in the cache of the system is not on the disk, and the next start finds it all the same.
#[test]
fn the_second_start_fails_too_and_the_power_goes_at_any_point() {
    for first in 0..=calls_of_a_start(&SimDisk::new()) {
        for fault in FAULTS {
            let begun = SimDisk::new();
            start(&begun, Some((first, fault)));
            for second in 0..=calls_of_a_start(&begun) {
                let disk = SimDisk::new();
                start(&disk, Some((first, fault)));
                let from = disk.changes();
                start(&disk, Some((second, Fault::Eio)));
                cut_from(&disk, from, &format!("{fault:?} at {first}, then Eio at {second}"));
            }
        }
    }
}

/// Many starts, each of which fails or not, each of which ends with its process or with the machine.
#[test]
fn starts_that_fail_again_and_again() {
    for seed in 0..4_000 {
        let mut rng = Rng::new(seed);
        let mut disk = SimDisk::new();
        let mut what = format!("seed {seed}");
        for _ in 0..1 + rng.below(5) {
            let from = disk.changes();
            let fault = (!rng.once_in(4)).then(|| (rng.below(16), FAULTS[rng.below(3) as usize]));
            start(&disk, fault);
            what = format!("{what}, {fault:?}");
            if rng.once_in(2) {
                let changes = from + rng.below((disk.changes() - from) as u64 + 1) as usize;
                let manner = MANNERS[rng.below(4) as usize];
                disk = disk.journal().after_crash(changes, manner, &mut rng);
                what = format!("{what}, {manner:?} after {changes}");
            }
        }
        must_open(&disk, &what);
    }
}
