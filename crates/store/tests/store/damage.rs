//! Directories that are damaged, foreign, or too new: refused with file and offset, never repaired, never deleted.

use std::collections::BTreeMap;

use turno_store::disk::{FsDisk, Rng, SimDisk, TakeError};
use turno_store::{Batch, DamageKind, Embedded, OpenError, RecordNo, Recovered, Settings, Space, Store, inspect};

use crate::backends::{Backend, SMALL, Simulated};
use crate::model::{Contents, commit, numbers, puts};

pub(crate) type Files = BTreeMap<String, Vec<u8>>;

fn open(files: &Files) -> Result<(Embedded<SimDisk>, Recovered), OpenError> {
    let disk = SimDisk::with_files(files.clone());
    let seen = inspect(&mut disk.clone());
    let opened = Embedded::open(disk.clone(), SMALL);
    match (&seen.log, &opened) {
        (Ok(log), Ok((store, recovered))) => {
            assert_eq!((&log.end, log.epoch.0 + 1), (&recovered.end, store.epoch().0));
            assert_eq!(log.usage.numbered, store.usage().numbered);
        }
        (Err(seen), Err(found)) => assert_eq!(seen.to_string(), found.to_string()),
        (seen, found) => panic!("inspection and opening differ: {seen:?} and {found:?}"),
    }
    if opened.is_err() {
        assert_eq!(disk.files(), *files, "nothing is changed when a directory is refused");
    }
    opened
}

fn refused(files: &Files) -> String {
    open(files).expect_err("a damaged directory is refused").to_string()
}

/// A record so long that markers are the smaller part of the log, and nothing wants compaction.
fn long(number: u64) -> Batch {
    let mut batch = Batch::new();
    batch.put(Space(1), RecordNo(number), &bytes_of(number));
    batch
}

fn bytes_of(number: u64) -> Vec<u8> {
    format!("record {number} {}", "x".repeat(300)).into_bytes()
}

/// A store of several segments with 200 records.
pub(crate) fn several() -> Files {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    for number in 0..200 {
        commit(&mut store, &mut long(number)).unwrap();
    }
    backend.0.files()
}

fn generation(bytes: &[u8]) -> u64 {
    bytes.get(16..24).map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()))
}

/// The file of the n-th segment of the log.
pub(crate) fn segment(files: &Files, number: u64) -> String {
    files.iter().find(|(name, bytes)| name.starts_with("segment-") && generation(bytes) == number).unwrap().0.clone()
}

pub(crate) fn newest(files: &Files) -> u64 {
    files.iter().filter(|(name, _)| name.starts_with("segment-")).map(|(_, bytes)| generation(bytes)).max().unwrap()
}

#[test]
fn a_flipped_bit_in_the_middle_is_refused_with_its_place() {
    let files = several();
    let name = segment(&files, 2);
    let mut rng = Rng::new(1);
    for _ in 0..200 {
        let mut files = files.clone();
        // Behind the header, and far from the end of the segment.
        let at = 512 + rng.below(6_000) as usize;
        files.get_mut(&name).unwrap()[at] ^= 1 << rng.below(8);
        match open(&files) {
            Err(OpenError::Damaged { file, offset, what: DamageKind::Batch }) => {
                assert!(file == name && offset <= at as u64 && offset + 600 > at as u64, "{offset} for {at}");
            }
            // Padding is not part of any record.
            Ok((mut store, _)) => assert!(numbers(&mut store).into_iter().eq(0..200)),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn a_flipped_bit_in_the_newest_segment_is_refused_if_batches_follow() {
    let files = several();
    let name = segment(&files, newest(&files));
    let mut files = files.clone();
    files.get_mut(&name).unwrap()[512 + 20] ^= 1;
    assert_eq!(
        refused(&files),
        format!("{name} is damaged at byte 512: a batch is incomplete, but later batches follow")
    );
}

#[test]
fn a_missing_segment_is_missed() {
    let files = several();
    for number in 1..=newest(&files) {
        let mut files = files.clone();
        files.remove(&segment(&files, number));
        let text = refused(&files);
        assert!(text.contains(&format!("segment {number} of the log is missing")), "{text}");
    }
}

#[test]
fn all_segments_gone_is_not_a_new_store() {
    let mut files = several();
    files.retain(|name, _| !name.starts_with("segment-"));
    assert!(refused(&files).contains("turno-store is damaged"));
}

#[test]
fn a_truncated_segment_is_refused() {
    let files = several();
    for len in [0, 100, 512, 600, 5_000] {
        let mut files = files.clone();
        let name = segment(&files, 2);
        files.get_mut(&name).unwrap().truncate(len);
        assert!(matches!(open(&files), Err(OpenError::Damaged { .. })), "{len}");
    }
}

/// The log ends in the newest segment, and may end anywhere in it: but its batches say how long the file is.
#[test]
fn a_truncated_newest_segment_is_refused() {
    for (files, from) in [(first_only(), 0), (several(), 1_200)] {
        let name = segment(&files, newest(&files));
        let whole = files[&name].len();
        assert!(whole > from + 1_000, "{whole}");
        for len in (from..whole).step_by(41).chain([whole - 1]) {
            let mut files = files.clone();
            files.get_mut(&name).unwrap().truncate(len);
            let refused = refused(&files);
            assert!(refused.contains("is damaged at byte"), "{len}: {refused}");
        }
    }
}

/// A store of one segment.
fn first_only() -> Files {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    for number in 0..5 {
        commit(&mut store, &mut long(number)).unwrap();
    }
    backend.0.files()
}

#[test]
fn an_overwritten_segment_is_refused() {
    let files = several();
    for number in [1, 2, newest(&files)] {
        let mut files = files.clone();
        let name = segment(&files, number);
        files.get_mut(&name).unwrap().fill(b'x');
        assert_eq!(refused(&files), format!("{name} is damaged at byte 0: no valid header"));
    }
}

#[test]
fn a_copy_of_a_segment_is_refused() {
    let mut files = several();
    let copy = files[&segment(&files, 2)].clone();
    files.insert("segment-000777".to_owned(), copy);
    assert!(refused(&files).contains("two files are segment 2 of the log"));
}

/// Makes a segment one of a format to come.
pub(crate) fn make_newer(files: &mut Files, name: &str) {
    let sector = &mut files.get_mut(name).unwrap()[..512];
    sector[8..12].copy_from_slice(&7_u32.to_le_bytes());
    let sum = crc32c::crc32c_append(crc32c::crc32c(&sector[..12]), &sector[16..]);
    sector[12..16].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let mut files = several();
    let name = segment(&files, 1);
    make_newer(&mut files, &name);
    assert_eq!(refused(&files), format!("{name} has format 7; this version supports formats up to 1"));
}

#[test]
fn a_torn_end_is_cut() {
    let mut files = several();
    let name = segment(&files, newest(&files));
    let bytes = files.get_mut(&name).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap().next_multiple_of(8);
    bytes[end - 40] ^= 1;
    let (mut store, recovered) = open(&files).unwrap();
    assert!(recovered.end.0 == name && recovered.end.1 < end as u64);
    assert!(numbers(&mut store).into_iter().eq(0..199), "only the last batch is gone");
}

#[test]
fn other_files_are_left_alone() {
    let mut files = several();
    for other in ["turno.lock", "segment-1", "notes.txt", "segment-xxxxxx"] {
        files.insert(other.to_owned(), b"mine".to_vec());
    }
    let disk = SimDisk::with_files(files);
    let (mut store, recovered) = Embedded::open(disk.clone(), SMALL).unwrap();
    assert_eq!((recovered.is_new, numbers(&mut store).len()), (false, 200));
    assert_eq!(disk.files()["notes.txt"], b"mine");
}

/// The last whole batch ends here; a marker of a later batch is put behind it, as a message body might hold one.
fn with_marker(salt_flip: u8) -> Files {
    let mut files = several();
    let (name, end) = open(&files).unwrap().1.end;
    let end = end as usize;
    let bytes = files.get_mut(&name).unwrap();
    let mut marker = bytes[end - 96..end].to_vec();
    marker[24] ^= salt_flip;
    marker[32..40].copy_from_slice(&9_999_u64.to_le_bytes());
    let sum = crc32c::crc32c_append(crc32c::crc32c(&marker[..4]), &marker[8..]);
    marker[4..8].copy_from_slice(&sum.to_le_bytes());
    bytes.resize(bytes.len().max(end + 200), 0);
    bytes[end + 64..end + 64 + 96].copy_from_slice(&marker);
    files
}

#[test]
fn a_later_batch_behind_the_end_is_damage() {
    assert!(refused(&with_marker(0)).ends_with("a batch is incomplete, but later batches follow"));
}

#[test]
fn a_message_that_looks_like_a_batch_changes_nothing() {
    let (mut store, _) = open(&with_marker(1)).unwrap();
    assert!(numbers(&mut store).into_iter().eq(0..200));
}

/// Writes a record's checksum anew.
fn seal(record: &mut [u8]) {
    let len = u32::from_le_bytes(record[..4].try_into().unwrap()) as usize;
    let sum = crc32c::crc32c_append(crc32c::crc32c(&record[..4]), &record[8..len]);
    record[4..8].copy_from_slice(&sum.to_le_bytes());
}

/// Half of one batch and half of another that once began at the same place: each record is sound, the batch is not.
#[test]
fn a_batch_of_records_that_do_not_belong_together_is_none() {
    let mut files = several();
    let (name, end) = open(&files).unwrap().1.end;
    let bytes = files.get_mut(&name).unwrap();
    let text = b"record 199 ";
    let at = bytes.windows(text.len()).position(|bytes| bytes == text).unwrap() - 24;
    bytes[at + 24..at + 35].copy_from_slice(b"RECORD 199 ");
    seal(&mut bytes[at..]);
    let (mut store, recovered) = open(&files).unwrap();
    assert!(numbers(&mut store).into_iter().eq(0..199));
    assert!(recovered.end.1 < end);
}

/// A batch with the right number that was written in another life of the file, or by somebody else.
#[test]
fn a_batch_of_another_generation_or_salt_is_none() {
    for at in [Some(16), Some(24), None] {
        let mut files = several();
        let (name, end) = open(&files).unwrap().1.end;
        let end = end as usize;
        let bytes = files.get_mut(&name).unwrap();
        bytes.resize(bytes.len().max(end + 96), 0);
        let mut marker = bytes[end - 96..end].to_vec();
        let batch = u64::from_le_bytes(marker[32..40].try_into().unwrap()) + 1;
        marker[32..40].copy_from_slice(&batch.to_le_bytes());
        marker[72..84].fill(0);
        // With another change than of these, the batch counts.
        match at {
            Some(at) => marker[at] ^= 1,
            None => marker[88..96].fill(0),
        }
        seal(&mut marker);
        bytes[end..end + 96].copy_from_slice(&marker);
        let (_, recovered) = open(&files).unwrap();
        assert_eq!(recovered.end.1 as usize, if at.is_none() { end + 96 } else { end }, "byte {at:?}");
    }
}

#[test]
fn segments_of_another_size_are_read() {
    let disk = SimDisk::with_files(several());
    let large = Settings { segment_bytes: 64 * 1024, prewrite_bytes: 16 * 1024, ..SMALL };
    let (mut store, _) = Embedded::open(disk.clone(), large).unwrap();
    for number in 200..400 {
        commit(&mut store, &mut puts([number])).unwrap();
    }
    drop(store);
    let (mut store, _) = Embedded::open(disk, SMALL).unwrap();
    commit(&mut store, &mut puts([400])).unwrap();
    assert!(numbers(&mut store).into_iter().eq(0..=400));
}

/// Any change to a good directory is refused, or changes nothing that was confirmed but the last commits.
#[test]
fn garbage_never_panics_and_never_invents() {
    let files = several();
    let mut rng = Rng::new(5);
    for _ in 0..400 {
        let mut files = files.clone();
        for _ in 0..1 + rng.below(3) {
            let name = files.keys().nth(rng.below(files.len() as u64) as usize).unwrap().clone();
            let bytes = files.get_mut(&name).unwrap();
            let at = rng.below(bytes.len() as u64 + 1) as usize;
            let len = (rng.below(600) as usize).min(bytes.len() - at);
            match rng.below(5) {
                0 => bytes[at..at + len].fill(rng.below(256) as u8),
                1 => bytes.truncate(at),
                2 => bytes.extend(std::iter::repeat_n(0xFF, len)),
                3 => bytes[at..at + len].iter_mut().for_each(|byte| *byte = rng.any() as u8),
                _ => drop(files.remove(&name)),
            }
            if files.is_empty() {
                break;
            }
        }
        if let Ok((mut store, _)) = open(&files) {
            let contents = Contents::of(&mut store);
            let is_known = |(number, (_, value)): (&u64, &(u8, Vec<u8>))| *value == bytes_of(*number);
            assert!(contents.numbered.iter().all(is_known) && contents.keyed.is_empty());
        }
    }
}

#[test]
fn a_second_process_is_kept_out() {
    let directory = tempfile::TempDir::new().unwrap();
    let path = directory.path().join("made/on/demand");
    let first = FsDisk::take(&path).unwrap();
    assert!(matches!(FsDisk::take(&path), Err(TakeError::InUse(_))));
    drop(first);
    FsDisk::take(&path).unwrap();
}

#[test]
fn a_directory_that_is_not_there_is_an_error_with_its_cause() {
    let directory = tempfile::TempDir::new().unwrap();
    let disk = FsDisk::new(directory.path().join("missing"));
    let error = Embedded::open(disk, SMALL).unwrap_err();
    assert_eq!(error.to_string(), "cannot list the directory");
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn a_bit_that_flips_later_shows_when_the_record_is_read() {
    let mut backend = Simulated::new();
    let mut store = backend.open();
    commit(&mut store, &mut puts([1])).unwrap();
    let name = segment(&backend.0.files(), 1);
    let at = backend.0.files()[&name].windows(8).position(|bytes| bytes == b"record 1").unwrap();
    let mut disk = backend.0.clone();
    let file = turno_store::disk::Disk::open(&mut disk, &name).unwrap();
    turno_store::disk::DiskFile::write_at(&file, at as u64, b"R").unwrap();
    let error = store.read(&[RecordNo(1)], &mut |_, _| panic!("damaged")).unwrap_err();
    assert!(error.to_string().starts_with(&format!("{name} is damaged at byte ")), "{error}");
}
