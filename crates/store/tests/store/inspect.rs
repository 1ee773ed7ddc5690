//! Looking at a directory without opening it: what is there, what is lost, and nothing is touched.

use std::path::Path;

use turno_store::disk::{Disk, FsDisk, SimDisk};
use turno_store::{
    Damage, DamageKind, Embedded, Inspection, Log, OpenError, RecordNo, Space, Store, inspect, inspect_headers,
    inspect_with,
};

use crate::backends::{Backend, SMALL, Simulated};
use crate::damage::{Files, make_newer, newest, segment, several};
use crate::model::{commit, puts};

fn look(files: &Files) -> Inspection {
    let mut disk = SimDisk::with_files(files.clone());
    let (changes, calls) = (disk.changes(), disk.calls());
    let seen = inspect(&mut disk);
    assert_eq!((disk.changes(), disk.calls()), (changes, calls), "a look changes nothing");
    seen
}

fn damage(files: &Files) -> Damage {
    let seen = look(files);
    assert!(matches!(seen.log, Err(OpenError::Damaged { .. })), "{:?}", seen.log);
    seen.damage.expect("damage is looked into")
}

#[test]
fn a_good_directory_is_counted() {
    let log = look(&several()).log.unwrap();
    assert_eq!((log.segments > 3, log.records, log.usage.numbered, log.usage.keyed), (true, 200, 200, 0));
    // One for each record, one for the opening, a seal for each segment but the last, and some of the store's own.
    assert_eq!((log.batches > 200 + log.segments, log.last_commit.0, log.epoch.0), (true, 200, 1));
    assert!(!log.is_torn, "{log:?}");
}

/// What lives in a whole log can be read without opening it; what was deleted cannot.
#[test]
fn what_lives_can_be_read() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    for number in 0..300 {
        let mut batch = puts([number]);
        batch.set(Space(7), &[1, number as u8], &number.to_le_bytes());
        batch.set(Space(8), b"other", b"x");
        batch.delete(RecordNo(number / 2));
        commit(&mut store, &mut batch).unwrap();
    }
    let (mut keys, mut records) = (Vec::new(), Vec::new());
    let mut disk = SimDisk::with_files(backend.0.files());
    let (changes, calls) = (disk.changes(), disk.calls());
    let seen = inspect_with(&mut disk, |contents| {
        contents.keyed(Space(7), &mut |key, value| keys.push((key.to_vec(), value.to_vec()))).unwrap();
        let wanted = [RecordNo(3), RecordNo(299), RecordNo(150), RecordNo(1_000)];
        contents.numbered(&wanted, &mut |record, (_, value)| records.push((record.0, value.to_vec()))).unwrap();
    });
    assert_eq!((disk.changes(), disk.calls()), (changes, calls), "a look changes nothing");
    assert_eq!((keys.len(), seen.log.unwrap().usage.numbered), (256, 150));
    assert!(keys.contains(&(vec![1, 43], 299_u64.to_le_bytes().to_vec())), "the last value counts");
    let mut expected = Vec::new();
    store
        .read(&[RecordNo(299), RecordNo(150)], &mut |record, stored| {
            expected.push((record.0, stored.expect("it lives").1.to_vec()));
        })
        .unwrap();
    assert_eq!(records, expected);
}

#[test]
fn an_empty_directory_is_no_store_and_no_error() {
    let seen = look(&Files::new());
    assert_eq!((seen.log.unwrap(), seen.damage), (Log::default(), None));
    assert_eq!(inspect_headers(&mut SimDisk::new()).unwrap(), (Vec::new(), 0));
}

#[test]
fn the_directory_of_format_1_is_read_through() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/format-1");
    let mut disk = FsDisk::to_read(folder);
    let log = inspect(&mut disk).log.unwrap();
    assert_eq!((log.last_commit.0, log.epoch.0, log.usage.keyed), (40, 2, 4));
    let (names, format) = inspect_headers(&mut disk).unwrap();
    assert_eq!((names.len(), names.last().unwrap().as_str(), format), (4, "turno-store", 1));
    for refused in [disk.create("x").err(), disk.remove("turno-store").err(), disk.sync_directory().err()] {
        assert_eq!(refused.unwrap().kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    }
}

#[test]
fn a_torn_end_is_named_and_costs_nothing_that_was_confirmed() {
    let mut files = several();
    let name = segment(&files, newest(&files));
    let bytes = files.get_mut(&name).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    // Without the end of its marker, and with a hole in its middle.
    for at in [end - 40, end - 300] {
        let mut files = files.clone();
        files.get_mut(&name).unwrap()[at] ^= 1;
        let log = look(&files).log.unwrap();
        assert_eq!((log.is_torn, log.usage.numbered), (true, 199));
    }
}

/// A file that is used again has other bytes behind its end: they are no torn batch.
#[test]
fn a_former_life_of_a_file_is_not_taken_for_a_torn_end() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    for number in 0..600 {
        let mut batch = puts([number]);
        batch.delete(RecordNo(number.saturating_sub(3)));
        commit(&mut store, &mut batch).unwrap();
        let files = backend.0.files();
        let log = look(&files).log.unwrap();
        assert!(!log.is_torn, "after record {number}: {log:?}");
    }
    assert!(newest(&backend.0.files()) > 4, "files were used again");
}

/// Where the second batch of a segment begins.
fn second(bytes: &[u8]) -> usize {
    let marker = |at: &usize| bytes[*at..*at + 4] == 96_u32.to_le_bytes() && bytes[*at + 8] == 5;
    (512..bytes.len() - 96).step_by(8).find(marker).unwrap() + 96
}

#[test]
fn damage_in_the_middle_is_told_with_what_is_lost() {
    let mut files = several();
    let total = look(&files).log.unwrap().batches;
    let (name, other) = (segment(&files, 2), segment(&files, 4));
    let at = second(&files[&name]);
    files.get_mut(&name).unwrap()[at + 40] ^= 1;
    let seen = damage(&files);
    assert_eq!((seen.lost_batches, seen.whole_batches, seen.missing.len()), (1, total - 1, 0));
    assert_eq!((seen.places.len(), &seen.places[0].file, seen.places[0].from), (1, &name, at as u64));
    assert!(seen.places[0].until > at as u64 + 300 && seen.places[0].until < at as u64 + 600, "{seen:?}");
    // A whole sector more, of two batches, in another file.
    files.get_mut(&other).unwrap()[1024..1536].fill(0xAA);
    let seen = damage(&files);
    assert_eq!(seen.places.iter().map(|place| &place.file).collect::<Vec<_>>(), [&name, &other]);
    assert_eq!(seen.lost_batches + seen.whole_batches, total);
    assert!((2..5).contains(&seen.lost_batches), "{seen:?}");
}

#[test]
fn a_truncated_segment_has_lost_its_end() {
    let mut files = several();
    let total = look(&files).log.unwrap().batches;
    let name = segment(&files, 2);
    files.get_mut(&name).unwrap().truncate(3_000);
    let seen = damage(&files);
    assert_eq!((seen.places.len(), &seen.places[0].file, seen.places[0].until), (1, &name, 3_000));
    assert_eq!(seen.lost_batches + seen.whole_batches, total);
    assert!(seen.lost_batches > 5, "{seen:?}");
}

/// A newest segment that is shorter than it was may have lost batches at its end: how many nobody knows.
#[test]
fn a_cut_newest_segment_is_damage_without_a_count() {
    let mut files = several();
    let log = look(&files).log.unwrap();
    let (name, end) = &log.end;
    files.get_mut(name).unwrap().truncate(*end as usize);
    let seen = look(&files);
    assert!(matches!(seen.log, Err(OpenError::Damaged { what: DamageKind::Cut(_), .. })), "{:?}", seen.log);
    let damage = seen.damage.unwrap();
    assert_eq!((damage.lost_batches, damage.whole_batches), (0, log.batches));
}

#[test]
fn a_deleted_segment_is_missing_with_its_batches() {
    let files = several();
    let total = look(&files).log.unwrap().batches;
    for number in 1..=newest(&files) {
        let mut files = files.clone();
        files.remove(&segment(&files, number));
        let seen = damage(&files);
        assert_eq!((seen.missing.as_slice(), seen.places.len()), (&[number][..], 0));
        let is_inside = number > 1 && number < newest(&files) + 1;
        assert!(!is_inside || seen.lost_batches + seen.whole_batches == total, "segment {number}: {seen:?}");
    }
}

#[test]
fn an_overwritten_segment_is_missing_and_its_file_is_named() {
    let mut files = several();
    let name = segment(&files, 3);
    files.get_mut(&name).unwrap().fill(b'x');
    let seen = damage(&files);
    assert_eq!((seen.missing.as_slice(), seen.places.len()), (&[3][..], 1));
    assert_eq!((&seen.places[0].file, seen.places[0].from), (&name, 0));
}

#[test]
fn all_segments_gone_is_damage() {
    let mut files = several();
    files.retain(|name, _| !name.starts_with("segment-"));
    let seen = damage(&files);
    assert_eq!((seen.missing.as_slice(), seen.whole_batches), (&[1][..], 0));
}

#[test]
fn two_files_of_one_segment_lose_nothing_but_are_refused() {
    let mut files = several();
    let copy = files[&segment(&files, 2)].clone();
    files.insert("segment-000777".to_owned(), copy);
    let seen = look(&files);
    assert!(matches!(seen.log, Err(OpenError::Damaged { what: DamageKind::Twice(2), .. })), "{:?}", seen.log);
    assert_eq!(seen.damage.unwrap().lost_batches, 0);
}

#[test]
fn a_newer_format_is_named_and_not_looked_into() {
    let mut files = several();
    let name = segment(&files, 1);
    make_newer(&mut files, &name);
    let seen = look(&files);
    assert!(matches!(seen.log, Err(OpenError::Newer { found: 7, known: 1, .. })), "{:?}", seen.log);
    assert_eq!(seen.damage, None);
    assert_eq!(inspect_headers(&mut SimDisk::with_files(files)).unwrap().1, 7);
}

/// What is told of a directory is what opening it finds, down to the records.
#[test]
fn what_is_counted_is_what_is_there_after_an_opening() {
    let disk = SimDisk::with_files(several());
    let log = inspect(&mut disk.clone()).log.unwrap();
    let (mut store, _) = Embedded::open(disk.clone(), SMALL).unwrap();
    let usage = store.usage();
    assert_eq!((log.usage.numbered, log.usage.live_bytes), (usage.numbered, usage.live_bytes));
    assert_eq!(Ok(log.last_commit), store.last_commit());
    let again = inspect(&mut disk.clone()).log.unwrap();
    assert_eq!((again.batches, again.epoch.0), (log.batches + 1, log.epoch.0 + 1), "the opening is a batch");
}
