//! What the archive does with files that it cannot read, or not all of: nothing is removed, and everybody is told.

use std::collections::BTreeSet;

use turno_store::OpenError;
use turno_store::archive::{
    Archive, FilePiece, FileProblem, Flaw, OutputPosition, Refusal, Room, UploadId, inspect, inspect_names,
};
use turno_store::disk::{Disk as _, DiskFile as _, SimDisk};

use crate::archive::{ROOM, all_of, open, piece};

/// Bytes of a segment's header, of a record's head, of a record in an index, and of what is behind that.
const HEADER: usize = 32;
const HEAD: usize = 56;
const ENTRY: usize = 56;
const FOOTER: usize = 48;
/// The SHA-256 of `hello`.
const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

fn hello() -> UploadId {
    std::array::from_fn(|at| u8::from_str_radix(&HELLO[2 * at..2 * at + 2], 16).unwrap())
}

/// Three pieces of task 1 of job 7, and one of job 8, in one segment.
fn written(disk: &SimDisk) {
    let mut archive = open(disk, [7, 8]);
    for (job, at, text) in [(7, 0, b"first"), (7, 5, b"secnd"), (8, 0, b"other"), (7, 10, b"third")] {
        archive.put_output(vec![piece(job, 1, 1, at, text)]).unwrap();
    }
}

/// The disk with a file changed.
fn changed(disk: &SimDisk, name: &str, change: impl FnOnce(&mut Vec<u8>)) -> SimDisk {
    let mut files = disk.files();
    change(files.get_mut(name).expect("the file is there"));
    SimDisk::with_files(files)
}

/// Position and text of what is told of a job, or how much is lost there.
fn told(archive: &Archive<SimDisk>, job: u64) -> (Vec<(u64, String, u64)>, bool) {
    let output = archive.output(&all_of(job), OutputPosition::default()).unwrap();
    let row = |piece: turno_store::archive::Piece| (piece.at, String::from_utf8(piece.bytes).unwrap(), piece.lost);
    (output.pieces.into_iter().map(row).collect(), output.damaged)
}

fn text(at: u64, text: &str) -> (u64, String, u64) {
    (at, text.to_owned(), 0)
}

fn lost(at: u64, lost: u64) -> (u64, String, u64) {
    (at, String::new(), lost)
}

fn flaws(archive: &mut Archive<SimDisk>) -> Vec<Flaw> {
    archive.troubles().into_iter().map(|trouble| trouble.flaw).collect()
}

#[test]
fn a_damaged_value_is_lost_alone_and_named() {
    let disk = SimDisk::new();
    written(&disk);
    let second = HEADER + (HEAD + 5) + HEAD + 2;
    let disk = changed(&disk, "output-000001", |bytes| bytes[second] ^= 4);
    for _ in 0..3 {
        let mut archive = open(&disk, [7, 8]);
        assert_eq!(told(&archive, 7), (vec![text(0, "first"), lost(5, 5), text(10, "third")], false));
        assert_eq!(told(&archive, 8), (vec![text(0, "other")], false));
        let by_arrival = archive.output_after(&all_of(7), 0).unwrap();
        let rows: Vec<(u64, u64)> = by_arrival.pieces.iter().map(|piece| (piece.at, piece.lost)).collect();
        assert_eq!(rows, [(0, 0), (5, 5), (10, 0)]);
        let troubles = archive.troubles();
        assert!(troubles.iter().any(|one| one.flaw == Flaw::Record && one.file == "output-000001"), "{troubles:?}");
        assert_eq!(archive.troubles(), [], "each is told once");
    }
    // The worker was not answered, and hands it in again.
    let mut archive = open(&disk, [7, 8]);
    archive.put_output(vec![piece(7, 1, 1, 3, b"stsec")]).unwrap();
    assert_eq!(told(&archive, 7).0, [text(0, "first"), text(5, "sec"), lost(8, 2), text(10, "third")]);
}

/// Nobody knows whose a record with a damaged head was: every job that was known then is told so, and no later one.
#[test]
fn a_damaged_head_leaves_a_gap_and_what_is_behind_it_is_found() {
    let disk = SimDisk::new();
    written(&disk);
    let disk = changed(&disk, "output-000001", |bytes| bytes[HEADER + HEAD + 5 + 12] ^= 1);
    for jobs in [vec![7, 8], vec![7, 8, 9]] {
        let archive = open(&disk, jobs);
        assert_eq!(told(&archive, 7), (vec![text(0, "first"), text(10, "third")], true));
        assert_eq!(told(&archive, 8), (vec![text(0, "other")], true));
    }
    // Sealed, it knows for good until which job that was.
    let mut archive = open(&disk, [7, 8, 9]);
    archive.put_output(vec![piece(9, 1, 1, 0, b"later")]).unwrap();
    drop(archive);
    let mut archive = open(&disk, [7, 8, 9, 10]);
    assert!(told(&archive, 9).1 && !told(&archive, 10).1);
    // Its jobs are removed: it may have something of others, and stays.
    archive.forget(7).unwrap();
    archive.forget(8).unwrap();
    assert!(disk.files().contains_key("output-000001.damaged-9"), "{:?}", disk.files().keys());
    assert!(told(&archive, 9).1 && !told(&archive, 10).1);
    assert_eq!(told(&archive, 9).0, [text(0, "later")]);
}

#[test]
fn a_file_without_a_header_is_set_aside_under_a_name_that_says_so() {
    let disk = SimDisk::new();
    written(&disk);
    let before = disk.files()["output-000001"].clone();
    let disk = changed(&disk, "output-000001", |bytes| bytes[..HEADER].fill(0xFF));
    let spoilt = disk.files()["output-000001"].clone();
    let mut archive = open(&disk, [7, 8]);
    assert_eq!((told(&archive, 7), flaws(&mut archive).len()), ((Vec::new(), true), 1));
    assert_eq!(disk.files().into_iter().collect::<Vec<_>>(), [("output-000001.damaged-8".to_owned(), spoilt)]);
    // Later starts say it again; its number is not used again; later jobs have lost nothing.
    let mut archive = open(&disk, [7, 8, 9]);
    assert_eq!(flaws(&mut archive), [Flaw::SetAside("output-000001.damaged-8".to_owned())]);
    assert_eq!((told(&archive, 8).1, told(&archive, 9).1), (true, false));
    archive.put_output(vec![piece(9, 1, 1, 0, b"later")]).unwrap();
    assert!(disk.files().contains_key("output-000002"));
    // Put back whole, it is read again.
    let mut files = disk.files();
    files.remove("output-000001.damaged-8");
    files.insert("output-000001".to_owned(), before);
    let archive = open(&SimDisk::with_files(files), [7, 8, 9]);
    assert_eq!(told(&archive, 7).0, [text(0, "first"), text(5, "secnd"), text(10, "third")]);
}

#[test]
fn a_newer_format_is_refused_and_nothing_is_changed() {
    let disk = SimDisk::new();
    written(&disk);
    let newer = |bytes: &mut Vec<u8>| {
        bytes[8] = 2;
        let sum = crc32c::crc32c(&bytes[..28]).to_le_bytes();
        bytes[28..32].copy_from_slice(&sum);
    };
    let mut disk = changed(&disk, "output-000001", newer);
    // Nor is anything else set aside or removed.
    disk.create("output-000002").unwrap();
    disk.create("result-000001").unwrap();
    let before = disk.files();
    for jobs in [BTreeSet::from([7, 8]), BTreeSet::new()] {
        let opened = Archive::open(disk.clone(), &ROOM, 0, &jobs, BTreeSet::new());
        match opened {
            Err(OpenError::Newer { file, found: 2, known: 1 }) => assert_eq!(file, "output-000001"),
            other => panic!("{other:?}"),
        }
        assert_eq!(disk.files(), before);
    }
    assert_eq!(inspect_names(&mut disk).unwrap().newer, [("output-000001".to_owned(), 2)]);
}

/// An index, a footer or a header costs nothing: the records say the same.
#[test]
fn what_is_said_twice_is_not_lost() {
    let disk = SimDisk::new();
    let mut archive = open(&disk, [1]);
    for task in 0..200 {
        archive.put_output(vec![piece(1, task, 1, 0, &[b'x'; 50])]).unwrap();
    }
    let whole = told(&archive, 1);
    let len = disk.files()["output-000001"].len();
    for at in [0, 9, 17, 20, 29, len - 1, len - 20, len - 40, len - 47, len - 60, len - 300] {
        let disk = changed(&disk, "output-000001", |bytes| bytes[at] ^= 0x10);
        for _ in 0..2 {
            assert_eq!(told(&open(&disk, [1]), 1), whole, "byte {at} of {len}");
        }
        let found = inspect(&mut disk.clone()).unwrap();
        assert!(found.troubles.iter().all(|trouble| !trouble.flaw.loses()), "byte {at}: {:?}", found.troubles);
    }
}

#[test]
fn a_result_that_is_lost_is_no_result_that_never_was() {
    let disk = SimDisk::new();
    let mut archive = open(&disk, [1]);
    let put = |archive: &mut Archive<SimDisk>, attempt, name, at, last, bytes: &[u8]| {
        archive.put_file(&FilePiece { job: 1, task: 3, attempt, name, at, last, bytes }).unwrap();
    };
    put(&mut archive, 1, "a.txt", 0, true, b"older");
    put(&mut archive, 2, "a.txt", 0, true, b"newer");
    put(&mut archive, 2, "b.txt", 0, false, b"one ");
    put(&mut archive, 2, "b.txt", 4, true, b"two");
    put(&mut archive, 2, "c.txt", 0, true, b"sound");
    let record = |value: usize| HEAD + 5 + value;
    let newer = HEADER + record(5) + HEAD + 5;
    let first_piece = HEADER + 2 * record(5) + HEAD + 5;
    let disk = changed(&disk, "result-000001", |bytes| {
        bytes[newer] ^= 1;
        bytes[first_piece] ^= 1;
    });
    let mut archive = open(&disk, [1]);
    let rows = archive.files(1, None, 10).unwrap().rows;
    let rows: Vec<(&str, u32, bool)> = rows.iter().map(|row| (row.name.as_str(), row.attempt, row.lost)).collect();
    assert_eq!(rows, [("a.txt", 2, true), ("b.txt", 2, false), ("c.txt", 2, false)]);
    // Not the bytes of the attempt before, either.
    assert!(matches!(archive.file(1, 3, "a.txt", 0), Err(Refusal::Damaged)));
    assert!(matches!(archive.file(1, 3, "b.txt", 0), Err(Refusal::Damaged)));
    assert_eq!(archive.file(1, 3, "b.txt", 4).unwrap().0, b"two");
    assert_eq!(archive.file(1, 3, "c.txt", 0).unwrap().0, b"sound");
    assert!(matches!(archive.file(1, 3, "d.txt", 0), Err(Refusal::NotFound)));
}

/// Making room for results copies what can be read, and removes nothing that cannot.
#[test]
fn compaction_sets_a_damaged_segment_aside() {
    let disk = SimDisk::new();
    let mut archive = open(&disk, [1, 2]);
    let put = |archive: &mut Archive<SimDisk>, job, name: &str| {
        let piece = FilePiece { job, task: 1, attempt: 1, name, at: 0, last: true, bytes: &[b'x'; 1_000] };
        archive.put_file(&piece)
    };
    for number in 0..200 {
        if put(&mut archive, 1 + number % 2, &format!("{number:03}")).is_err() {
            break;
        }
    }
    let count = archive.files(2, None, 1_000).unwrap().rows.len();
    drop(archive);
    // The second record of the oldest segment is job 2's.
    let disk = changed(&disk, "result-000001", |bytes| bytes[HEADER + HEAD + 3 + 1_000 + HEAD + 20] ^= 1);
    let mut archive = open(&disk, [1, 2]);
    archive.forget(1).unwrap();
    let new = (0..200).take_while(|number| put(&mut archive, 2, &format!("new-{number}")).is_ok()).count();
    let aside: Vec<String> = disk.files().into_keys().filter(|name| name.contains("damaged")).collect();
    assert_eq!(aside, ["result-000001.damaged-2"]);
    let list = archive.files(2, None, 1_000).unwrap();
    assert!(list.damaged && list.rows.len() == count - 1 + new, "{} of {count}", list.rows.len());
}

#[test]
fn a_damaged_upload_is_set_aside_and_can_be_put_again() {
    let name = format!("upload-{HELLO}");
    let disk = SimDisk::new();
    let mut archive = open(&disk, []);
    archive.put_upload(0, hello(), 5, (0, b"hello")).unwrap();
    drop(archive);
    // Changed between two starts, or cut, or while it runs.
    let between = changed(&disk, &name, |bytes| bytes[1] ^= 1);
    let cut = changed(&disk, &name, |bytes| bytes.truncate(4));
    for disk in [between, cut] {
        let found = inspect(&mut disk.clone()).unwrap().troubles;
        assert!(matches!(&found[..], [FileProblem { flaw: Flaw::Hash, .. }]), "{found:?}");
        let mut archive = open(&disk, []);
        assert!(matches!(archive.upload(0, hello(), 0), Err(Refusal::Damaged)));
        assert_eq!(flaws(&mut archive), [Flaw::SetAside(format!("{name}.damaged-1"))]);
        let mut archive = open(&disk, []);
        assert!(matches!(archive.upload(0, hello(), 0), Err(Refusal::Damaged)), "not: there never was one");
        assert_eq!(archive.missing(0, &[hello()]), [hello()]);
        assert!(archive.put_upload(0, hello(), 5, (0, b"hello")).unwrap());
        assert_eq!(archive.upload(0, hello(), 0).unwrap(), (b"hello".to_vec(), 5));
        assert_eq!(disk.files().len(), 2, "{:?}", disk.files().keys());
    }
    let mut archive = open(&disk, []);
    assert_eq!(archive.upload(0, hello(), 0).unwrap().0, b"hello");
    disk.clone().open(&name).unwrap().write_at(2, b"?").unwrap();
    assert!(matches!(archive.upload(0, hello(), 0), Err(Refusal::Damaged)));
    assert_eq!(archive.missing(0, &[hello()]), [hello()]);
}

#[test]
fn a_look_names_everything_that_is_wrong() {
    let disk = SimDisk::new();
    written(&disk);
    assert_eq!(inspect(&mut disk.clone()).unwrap().troubles, []);
    assert_eq!(inspect(&mut disk.clone()).unwrap().records, 4);
    let cut = changed(&disk, "output-000001", |bytes| bytes.truncate(bytes.len() - 2));
    let found = inspect(&mut cut.clone()).unwrap();
    assert!(matches!(&found.troubles[..], [FileProblem { flaw: Flaw::Torn, .. }]) && found.records == 3, "{found:?}");
    let mut files = cut.files();
    files.insert("output-000002.damaged-5".to_owned(), b"?".to_vec());
    files.insert("output-000003".to_owned(), b"not a segment at all, but long enough".to_vec());
    files.insert("notes.txt".to_owned(), b"?".to_vec());
    let found = inspect(&mut SimDisk::with_files(files)).unwrap();
    let flaws: Vec<(&str, &Flaw)> = found.troubles.iter().map(|one| (one.file.as_str(), &one.flaw)).collect();
    assert!(flaws.contains(&("output-000002", &Flaw::SetAside("output-000002.damaged-5".to_owned()))), "{flaws:?}");
    assert!(flaws.iter().any(|(file, flaw)| *file == "output-000003" && flaw.loses()), "{flaws:?}");
    assert_eq!(found.files, 3);
}

/// The end of a file is another file's, index and all, as after a write that went to the wrong place. What it says is not believed:
/// the records are read instead.
#[test]
fn an_index_of_another_file_is_not_believed() {
    let sealed = |job: u64, salt: u64| {
        let disk = SimDisk::new();
        let room = Room { salt, ..ROOM };
        let mut archive = Archive::open(disk.clone(), &room, 0, &BTreeSet::from([7, 9]), BTreeSet::new()).unwrap();
        for number in 0.. {
            archive.put_output(vec![piece(job, 1, 1, number * 50, &[b'x'; 50])]).unwrap();
            if disk.files().contains_key("output-000002") {
                break;
            }
        }
        disk
    };
    let (disk, other) = (sealed(7, 42), sealed(9, 43).files()["output-000001"].clone());
    let before = told(&open(&disk, [7, 9]), 7);
    let disk = changed(&disk, "output-000001", |bytes| {
        assert_eq!(bytes.len(), other.len());
        let records = (bytes.len() - HEADER - FOOTER) / (HEAD + 50 + ENTRY);
        let end = HEADER + records * (HEAD + 50);
        bytes[end..].copy_from_slice(&other[end..]);
    });
    let mut archive = open(&disk, [7, 9]);
    assert_eq!((told(&archive, 7).0, told(&archive, 9).0), (before.0, vec![]));
    assert_ne!(flaws(&mut archive), [], "and it is told");
}
