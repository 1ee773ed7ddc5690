//! The power goes after every single change to the disk, in every manner: what was confirmed is there, what was not is
//! there whole or not at all, and the store works on.

use turno_store::disk::{Crash, Journal, Rng, SimDisk};
use turno_store::{Batch, CommitNo, Embedded, RecordNo, Settings, Space, Store};

use crate::model::{Contents, commit};

const TINY: Settings = Settings { segment_bytes: 4 * 1024, prewrite_bytes: 1024, salt: 3 };
const MANNERS: [Crash; 4] = [Crash::Dropped, Crash::Kept, Crash::Subset, Crash::Torn];

/// What was true when a commit was confirmed.
#[derive(Clone)]
struct Confirmed {
    changes: usize,
    commit: CommitNo,
    contents: Contents,
}

/// One row of commits, and everything it did to the disk.
struct Workload {
    journal: Journal,
    confirmed: Vec<Confirmed>,
}

fn open(disk: &SimDisk) -> Embedded<SimDisk> {
    match Embedded::open(disk.clone(), TINY) {
        Ok((store, _)) => store,
        Err(error) => panic!("what a power cut leaves must open: {error}"),
    }
}

/// Puts, deletes, keyed records, long and short batches, housekeeping, and now and then a new owner.
fn workload(seed: u64) -> Workload {
    let mut rng = Rng::new(seed);
    let disk = SimDisk::new();
    let mut confirmed = vec![Confirmed { changes: 0, commit: CommitNo(0), contents: Contents::default() }];
    let mut store = open(&disk);
    let mut contents = Contents::default();
    let mut next = 1;
    for _ in 0..24 + rng.below(16) {
        let mut batch = Batch::new();
        for _ in 0..rng.below(6) {
            if batch.len() > 900 {
                break;
            }
            let old = contents.numbered.keys().nth(rng.below(1 + contents.numbered.len() as u64) as usize).copied();
            match (rng.below(7), old) {
                (0 | 1 | 4, Some(old)) => batch.delete(RecordNo(old)),
                (2, _) => batch.set(Space(1), &[rng.below(4) as u8], &vec![5; rng.below(200) as usize]),
                (3, _) if rng.once_in(2) => batch.unset(Space(1), &[rng.below(4) as u8]),
                _ => {
                    // Now and then one so long that a power cut can lose a sector from its middle and nothing else.
                    let bytes_max = if batch.is_empty() && rng.once_in(3) { 1_200 } else { 360 };
                    batch.put(Space(2), RecordNo(next), &vec![next as u8; rng.below(bytes_max) as usize]);
                    next += 1;
                }
            }
        }
        commit(&mut store, &mut batch).expect("a good disk");
        contents.apply(&batch);
        let commit = store.last_commit().expect("a good disk");
        confirmed.push(Confirmed { changes: disk.changes(), commit, contents: contents.clone() });
        if rng.once_in(2) {
            store.compact().expect("a good disk");
        }
        if rng.once_in(8) {
            store = open(&disk);
        }
    }
    Workload { journal: disk.journal(), confirmed }
}

impl Workload {
    /// What may be there after the first `changes` changes: what was confirmed by then, or one commit more.
    fn may_be(&self, changes: usize) -> &[Confirmed] {
        let after = self.confirmed.partition_point(|confirmed| confirmed.changes <= changes);
        &self.confirmed[after - 1..self.confirmed.len().min(after + 1)]
    }

    /// Cuts the power after every change.
    fn cut_everywhere(&self, seed: u64) {
        let mut rng = Rng::new(seed ^ 0xC0_FFEE);
        for changes in 0..=self.journal.len() {
            for manner in MANNERS {
                let disk = self.journal.after_crash(changes, manner, &mut rng);
                let what = format!("workload {seed}, {changes} changes, {manner:?}");
                let begun = disk.changes();
                let found = check(&disk, self.may_be(changes), &what);
                // The power goes during the recovery, too. Once an owner has seen a commit, it stays.
                let at = begun + rng.below((found.changes - begun) as u64 + 1) as usize;
                let is_opened = at == found.changes;
                let may_be = if is_opened { std::slice::from_ref(&found) } else { self.may_be(changes) };
                let again = disk.journal().after_crash(at, MANNERS[rng.below(4) as usize], &mut rng);
                check(&again, may_be, &format!("{what}, and again after {at}"));
            }
        }
    }
}

/// Opens what is left, holds it against what may be there, and works on with it. What was found, and how many changes
/// the opening took.
fn check(disk: &SimDisk, may_be: &[Confirmed], what: &str) -> Confirmed {
    let mut store = open(disk);
    let contents = Contents::of(&mut store);
    let commit_no = store.last_commit().expect("an open store");
    let found = may_be.iter().find(|one| one.commit == commit_no && one.contents == contents);
    let found = found.unwrap_or_else(|| panic!("{what}: commit {commit_no} with {contents:?}")).clone();
    let epoch = store.epoch();
    let mut batch = Batch::new();
    batch.set(Space(1), b"after", b"the cut");
    let opened = disk.changes();
    commit(&mut store, &mut batch).expect("a good disk");
    let mut expected = contents;
    expected.apply(&batch);
    let mut store = open(&disk.journal().after_crash(disk.changes(), Crash::Dropped, &mut Rng::new(0)));
    assert!(store.epoch() > epoch, "{what}: the epoch rises");
    assert_eq!(Contents::of(&mut store), expected, "{what}: what came after the cut is there");
    Confirmed { changes: opened, ..found }
}

fn cut(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        workload(seed).cut_everywhere(seed);
    }
}

/// I1: what was confirmed outlives a power cut, in every manner.
#[test]
fn power_cuts_of_workloads_0_to_5() {
    cut(0..6);
}

#[test]
fn power_cuts_of_workloads_6_to_11() {
    cut(6..12);
}

#[test]
fn power_cuts_of_workloads_12_to_17() {
    cut(12..18);
}

#[test]
fn power_cuts_of_workloads_18_to_23() {
    cut(18..24);
}

/// The workloads go where it matters: several segments, housekeeping, files used again.
#[test]
fn workloads_use_files_again() {
    let workloads: Vec<Workload> = (0..24).map(workload).collect();
    let is_used_again = |workload: &&Workload| {
        let disk = workload.journal.after_crash(workload.journal.len(), Crash::Kept, &mut Rng::new(0));
        let files = disk.files();
        let segments = files.iter().filter(|(name, _)| name.starts_with("segment-"));
        let generation = |bytes: &[u8]| bytes.get(16..24).map(|g| u64::from_le_bytes(g.try_into().unwrap()));
        let newest = segments.clone().filter_map(|(_, bytes)| generation(bytes)).max();
        newest > Some(segments.count() as u64)
    };
    let again = workloads.iter().filter(is_used_again).count();
    assert!(again >= 12, "{again} of 24 workloads use a file twice");
}
