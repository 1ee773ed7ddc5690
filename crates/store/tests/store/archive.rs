//! The archive: output, results and uploads, on a disk that does what it is told.

use std::collections::BTreeSet;

use turno_store::archive::{
    Archive, FileList, FilePiece, FileRow, Output, OutputPosition, OutputRange, Piece, Refusal, Room, UploadId,
};
use turno_store::disk::{Fault, SimDisk};

pub(crate) const ROOM: Room = Room {
    output_bytes: 64 * 1024,
    result_bytes: 64 * 1024,
    upload_bytes: 10_000,
    uploads: 5,
    upload_kept_ms: 1_000,
    live_bytes: 2_000,
    piece_bytes: 1_024,
    salt: 42,
};

pub(crate) fn open(disk: &SimDisk, jobs: impl IntoIterator<Item = u64>) -> Archive<SimDisk> {
    Archive::open(disk.clone(), &ROOM, 0, &jobs.into_iter().collect(), BTreeSet::new()).unwrap()
}

pub(crate) fn piece(job: u64, task: u32, attempt: u32, at: u64, bytes: &[u8]) -> Piece {
    Piece { job, task, attempt, stderr: false, at, live: false, bytes: bytes.to_vec(), lost: 0 }
}

pub(crate) const fn all_of(job: u64) -> OutputRange<'static> {
    OutputRange { job, tasks: None, bytes: usize::MAX, pieces: usize::MAX }
}

fn all(archive: &Archive<SimDisk>, job: u64) -> Vec<Piece> {
    let output = archive.output(&all_of(job), OutputPosition::default()).unwrap();
    assert!(output.end);
    output.pieces
}

fn file<'a>(attempt: u32, name: &'a str, at: u64, last: bool, bytes: &'a [u8]) -> FilePiece<'a> {
    FilePiece { job: 1, task: 3, attempt, name, at, last, bytes }
}

fn row(task: u32, attempt: u32, name: &str, size: u64) -> FileRow {
    FileRow { task, attempt, name: name.to_owned(), size, lost: false }
}

/// What is listed of job 1, and whether there is more.
fn files(archive: &Archive<SimDisk>, after: Option<(u32, &str)>, limit: usize) -> (Vec<FileRow>, bool) {
    let FileList { rows, more, damaged } = archive.files(1, after, limit).unwrap();
    assert!(!damaged);
    (rows, more)
}

/// So many tasks with three pieces each, in an order that is not theirs.
fn fill(archive: &mut Archive<SimDisk>, tasks: u32) -> Vec<Piece> {
    let mut written = Vec::new();
    for at in 0..3 {
        for task in (0..tasks).rev() {
            let piece = piece(1, task, 1, at * 50, format!("{task:>40} {at:>9}").as_bytes());
            archive.put_output(vec![piece.clone()]).unwrap();
            written.push(piece);
        }
    }
    written.sort_by_key(|piece| (piece.task, piece.at));
    written
}

#[test]
fn output_is_read_in_order_over_all_segments_and_after_a_restart() {
    let disk = SimDisk::new();
    let mut archive = open(&disk, [1]);
    let written = fill(&mut archive, 100);
    assert!(archive.usage().files > 3, "{:?}", archive.usage());
    assert_eq!(all(&archive, 1), written);
    assert_eq!(all(&open(&disk, [1]), 1), written);

    // By pages, however small they are.
    let small = OutputRange { bytes: 120, ..all_of(1) };
    let (mut pages, mut place) = (Vec::new(), OutputPosition::default());
    loop {
        let Output { pieces, next, end, .. } = archive.output(&small, place).unwrap();
        assert!(pieces.len() <= 3);
        pages.extend(pieces);
        place = next;
        if end {
            break;
        }
    }
    assert_eq!(pages, written);

    // Some tasks only, however they are named.
    let tasks = [(90, 200), (3, 5), (4, 6)];
    let some = OutputRange { tasks: Some(&tasks), ..all_of(1) };
    let wanted: Vec<Piece> = written.iter().filter(|piece| matches!(piece.task, 3..=6 | 90..)).cloned().collect();
    assert_eq!(archive.output(&some, OutputPosition::default()).unwrap().pieces, wanted);
    let behind = OutputPosition { task: 95, attempt: 1, at: 50 };
    let rest: Vec<Piece> = written.iter().filter(|piece| (piece.task, piece.at) >= (95, 50)).cloned().collect();
    assert_eq!(archive.output(&some, behind).unwrap().pieces, rest);
}

/// A worker that was not answered hands in the same again.
#[test]
fn what_came_twice_is_told_once() {
    let mut archive = open(&SimDisk::new(), [1]);
    let pieces = [(0, "abcde"), (0, "abcde"), (3, "defgh"), (4, "e"), (20, "tail"), (20, "tail")];
    for (at, text) in pieces {
        archive.put_output(vec![piece(1, 0, 1, at, text.as_bytes())]).unwrap();
    }
    let told = [piece(1, 0, 1, 0, b"abcde"), piece(1, 0, 1, 5, b"fgh"), piece(1, 0, 1, 20, b"tail")];
    assert_eq!(all(&archive, 1), told);
    let one = OutputRange { pieces: 1, ..all_of(1) };
    let first = archive.output(&one, OutputPosition::default()).unwrap();
    assert_eq!((first.pieces.as_slice(), first.end), (&told[..1], false));
    assert_eq!(archive.output(&one, first.next).unwrap().pieces, [told[1].clone()]);
}

#[test]
fn followers_hear_in_the_order_of_arrival_and_what_is_not_kept() {
    let disk = SimDisk::new();
    let mut archive = open(&disk, [1, 2]);
    let start = archive.output(&all_of(1), OutputPosition::default()).unwrap().arrived;
    let live = Piece { live: true, stderr: true, ..piece(1, 5, 1, 900, b"now") };
    archive.put_output(vec![piece(1, 9, 1, 0, b"first"), piece(2, 0, 1, 0, b"another's"), live.clone()]).unwrap();
    archive.put_output(vec![piece(1, 2, 1, 0, b"last")]).unwrap();
    let told = [piece(1, 9, 1, 0, b"first"), live, piece(1, 2, 1, 0, b"last")];

    let mut heard = Vec::new();
    let mut after = start;
    loop {
        let output = archive.output_after(&OutputRange { pieces: 1, ..all_of(1) }, after).unwrap();
        heard.extend(output.pieces);
        after = output.arrived;
        if output.end {
            break;
        }
    }
    assert_eq!(heard, told);
    assert_eq!(archive.output_after(&all_of(1), after).unwrap().pieces, []);
    let some = OutputRange { tasks: Some(&[(5, 5)]), ..all_of(1) };
    assert_eq!(archive.output_after(&some, start).unwrap().pieces, told[1..2]);
    // It was never written down.
    assert_eq!(all(&archive, 1), [told[2].clone(), told[0].clone()]);
    // In a later life arrivals have higher numbers, whatever was in memory.
    let later = Archive::open(disk, &ROOM, 1_000, &[1].into(), BTreeSet::new()).unwrap();
    assert!(later.output(&all_of(1), OutputPosition::default()).unwrap().arrived > after);
}

/// The clock is set back while the broker is away: a follower of a job hears all that comes since, whether something was kept
/// before, or was in memory only, or nothing came.
#[test]
fn followers_miss_nothing_when_the_clock_is_set_back() {
    const NOW_MS: u64 = 1_790_000_000_000;
    let kept = |at| piece(1, 0, 1, at, b"kept");
    let live = |at| Piece { live: true, ..piece(1, 0, 1, at, b"live") };
    for (why, before) in [
        ("nothing", vec![]),
        ("kept", vec![kept(0)]),
        ("in memory", vec![live(0)]),
        ("both", vec![kept(0), live(4), live(8)]),
    ] {
        for now_ms in [NOW_MS - 1, NOW_MS - 28 * 86_400_000, 0] {
            let disk = SimDisk::new();
            let at = |now_ms| Archive::open(disk.clone(), &ROOM, now_ms, &[1].into(), BTreeSet::new()).unwrap();
            let mut archive = at(NOW_MS);
            archive.put_output(before.clone()).unwrap();
            let mut after = archive.output(&all_of(1), OutputPosition::default()).unwrap().arrived;
            drop(archive);
            let mut archive = at(now_ms);
            let news = [kept(100), live(104), kept(108), kept(112)];
            for half in news.chunks(2) {
                archive.put_output(half.to_vec()).unwrap();
                let mut heard = Vec::new();
                loop {
                    let output = archive.output_after(&all_of(1), after).unwrap();
                    heard.extend(output.pieces);
                    after = output.arrived;
                    if output.end {
                        break;
                    }
                }
                assert_eq!(heard, half, "{why}, at {now_ms}");
            }
        }
    }
}

#[test]
fn followers_of_many_segments_miss_nothing() {
    let mut archive = open(&SimDisk::new(), [1]);
    let start = archive.output(&all_of(1), OutputPosition::default()).unwrap().arrived;
    let written = fill(&mut archive, 100);
    let (mut heard, mut after) = (Vec::new(), start);
    loop {
        let output = archive.output_after(&OutputRange { bytes: 3_000, ..all_of(1) }, after).unwrap();
        heard.extend(output.pieces);
        after = output.arrived;
        if output.end {
            break;
        }
    }
    heard.sort_by_key(|piece| (piece.task, piece.at));
    assert_eq!(heard, written);
}

#[test]
fn what_is_in_memory_has_a_bound() {
    let mut archive = open(&SimDisk::new(), [1]);
    for at in 0..100 {
        archive.put_output(vec![Piece { live: true, ..piece(1, 0, 1, at, &[b'x'; 100]) }]).unwrap();
    }
    let heard = archive.output_after(&all_of(1), 0).unwrap().pieces;
    assert!((2..20).contains(&heard.len()), "{}", heard.len());
    assert_eq!(heard.last().map(|piece| piece.at), Some(99));
}

/// What a removed job had in memory gives its room to others.
#[test]
fn what_was_in_memory_of_a_removed_job_takes_no_room() {
    let mut archive = open(&SimDisk::new(), [1, 2]);
    let live = |job: u64, at: u64| Piece { live: true, ..piece(job, 0, 1, at, &[b'x'; 100]) };
    let put = |archive: &mut Archive<SimDisk>, job| {
        (0..100).for_each(|at| archive.put_output(vec![live(job, at)]).unwrap());
        archive.output_after(&all_of(job), 0).unwrap().pieces.len()
    };
    let fit = put(&mut archive, 1);
    archive.forget(1).unwrap();
    assert_eq!((put(&mut archive, 2), fit > 1), (fit, true));
}

#[test]
fn the_oldest_output_goes_when_there_is_no_room() {
    let disk = SimDisk::new();
    let mut archive = open(&disk, [1]);
    for task in 0..2_000 {
        archive.put_output(vec![piece(1, task, 1, 0, &[b'x'; 200])]).unwrap();
        assert!(disk.used() <= ROOM.output_bytes + 1_024);
    }
    let left: Vec<u32> = all(&archive, 1).iter().map(|piece| piece.task).collect();
    assert_eq!(left.last(), Some(&1_999));
    assert!(left.len() > 100 && left.windows(2).all(|pair| pair[0] + 1 == pair[1]), "{left:?}");
    assert!(archive.usage().files <= 20);
}

#[test]
fn what_nobody_knows_is_not_kept() {
    let disk = SimDisk::new();
    let mut archive = open(&disk, [1, 2]);
    fill(&mut archive, 50);
    archive.put_output(vec![piece(2, 0, 1, 0, b"another's")]).unwrap();
    archive.put_file(&file(1, "a", 0, true, b"a")).unwrap();
    archive.forget(1).unwrap();
    assert_eq!((all(&archive, 1), files(&archive, None, 10)), (Vec::new(), (Vec::new(), false)));
    assert_eq!(all(&archive, 2), [piece(2, 0, 1, 0, b"another's")]);
    assert_eq!(disk.files().len(), 1, "{:?}", disk.files().keys());
    // The same when it is opened.
    assert_eq!(all(&open(&disk, [2]), 2).len(), 1);
    open(&disk, []);
    assert_eq!(disk.files().len(), 0);
}

#[test]
fn a_file_is_there_once_it_is_whole_and_the_latest_attempt_counts() {
    let disk = SimDisk::new();
    let mut archive = open(&disk, [1]);
    archive.put_file(&file(1, "dir/b", 0, false, b"old ")).unwrap();
    assert_eq!(files(&archive, None, 10), (Vec::new(), false));
    assert!(matches!(archive.put_file(&file(1, "dir/b", 5, true, b"?")), Err(Refusal::WrongPlace)));
    archive.put_file(&file(1, "dir/b", 0, false, b"old ")).unwrap();
    archive.put_file(&file(1, "dir/b", 4, false, b"file ")).unwrap();
    // The answer was lost.
    archive.put_file(&file(1, "dir/b", 4, false, b"file ")).unwrap();
    archive.put_file(&file(1, "dir/b", 9, true, b"here")).unwrap();
    archive.put_file(&file(1, "a", 0, true, b"")).unwrap();
    archive.put_file(&FilePiece { task: 7, ..file(1, "z", 0, true, b"zz") }).unwrap();
    assert_eq!(files(&archive, None, 10).0, [row(3, 1, "a", 0), row(3, 1, "dir/b", 13), row(7, 1, "z", 2)]);
    assert_eq!(files(&archive, None, 1), (vec![row(3, 1, "a", 0)], true));
    assert_eq!(files(&archive, Some((3, "a")), 1), (vec![row(3, 1, "dir/b", 13)], true));
    assert_eq!(files(&archive, Some((3, "dir/b")), 1), (vec![row(7, 1, "z", 2)], false));
    assert_eq!(archive.file(1, 3, "dir/b", 0).unwrap(), (b"old ".to_vec(), 13));
    assert_eq!(archive.file(1, 3, "dir/b", 6).unwrap(), (b"le ".to_vec(), 13));
    assert_eq!(archive.file(1, 3, "dir/b", 13).unwrap(), (Vec::new(), 13));
    assert!(matches!(archive.file(1, 3, "none", 0), Err(Refusal::NotFound)));

    archive.put_file(&file(2, "dir/b", 0, false, b"n")).unwrap();
    assert_eq!(archive.file(1, 3, "dir/b", 0).unwrap().1, 13, "the new one is not whole");
    archive.put_file(&file(2, "dir/b", 1, true, b"ew")).unwrap();
    assert_eq!(archive.file(1, 3, "dir/b", 1).unwrap(), (b"ew".to_vec(), 3));
    archive.put_file(&file(2, "left", 0, false, b"not ")).unwrap();

    let mut again = open(&disk, [1]);
    assert_eq!(files(&again, None, 10).0, [row(3, 1, "a", 0), row(3, 2, "dir/b", 3), row(7, 1, "z", 2)]);
    assert_eq!(again.file(1, 3, "dir/b", 0).unwrap(), (b"n".to_vec(), 3));
    assert!(matches!(again.put_file(&file(2, "left", 4, true, b"whole")), Err(Refusal::WrongPlace)));
}

#[test]
fn results_are_refused_when_there_is_no_room_and_removed_jobs_make_some() {
    let disk = SimDisk::new();
    let mut archive = open(&disk, [1, 2]);
    let body = [b'x'; 1_000];
    let mut names = Vec::new();
    let refused = loop {
        let name = format!("{:04}", names.len());
        let job = 1 + names.len() as u64 % 2;
        match archive.put_file(&FilePiece { job, ..file(1, &name, 0, true, &body) }) {
            Ok(()) => names.push(name),
            Err(refusal) => break refusal,
        }
    };
    assert!(matches!(refused, Refusal::Full) && names.len() > 40, "{refused} {}", names.len());
    let of_two: Vec<String> = names.iter().skip(1).step_by(2).cloned().collect();
    archive.forget(1).unwrap();
    for name in ["new-1", "new-2", "new-3", "new-4", "new-5"] {
        archive.put_file(&FilePiece { job: 2, ..file(1, name, 0, true, &body) }).unwrap();
    }
    assert!(disk.used() <= ROOM.result_bytes);
    for mut archive in [archive, open(&disk, [2])] {
        let listed: Vec<String> = archive.files(2, None, 1_000).unwrap().rows.into_iter().map(|row| row.name).collect();
        assert_eq!(listed[..of_two.len()], of_two);
        assert_eq!(listed.len(), of_two.len() + 5);
        for name in &listed {
            assert_eq!(archive.file(2, 3, name, 0).unwrap(), (body.to_vec(), 1_000));
        }
    }
}

/// The SHA-256 of `hello`.
const HELLO: UploadId = [
    0x2c, 0xf2, 0x4d, 0xba, 0x5f, 0xb0, 0xa3, 0x0e, 0x26, 0xe8, 0x3b, 0x2a, 0xc5, 0xb9, 0xe2, 0x9e, 0x1b, 0x16, 0x1e,
    0x5c, 0x1f, 0xa7, 0x42, 0x5e, 0x73, 0x04, 0x33, 0x62, 0x93, 0x8b, 0x98, 0x24,
];
/// That of nothing.
const NOTHING: UploadId = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41,
    0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

#[test]
fn an_upload_is_there_once_it_is_whole_and_what_it_should_be() {
    let disk = SimDisk::new();
    let mut archive = open(&disk, []);
    assert_eq!(archive.missing(0, &[HELLO, NOTHING]), [HELLO, NOTHING]);
    assert!(!archive.put_upload(0, HELLO, 5, (0, b"he")).unwrap());
    assert!(matches!(archive.upload(0, HELLO, 0), Err(Refusal::NotFound)));
    assert!(matches!(archive.put_upload(0, HELLO, 5, (3, b"lo")), Err(Refusal::WrongPlace)));
    assert!(matches!(archive.put_upload(0, HELLO, 5, (2, b"llo?")), Err(Refusal::WrongPlace)));
    // Another brings the same, in other pieces.
    assert!(!archive.put_upload(0, HELLO, 5, (0, b"hell")).unwrap());
    assert!(archive.put_upload(0, HELLO, 5, (2, b"llo")).unwrap());
    assert!(archive.put_upload(0, HELLO, 5, (4, b"o")).unwrap(), "it is there already");
    assert!(archive.put_upload(0, NOTHING, 0, (0, b"")).unwrap());
    assert_eq!(archive.missing(0, &[HELLO, NOTHING]), [] as [UploadId; 0]);
    assert_eq!(archive.upload(0, HELLO, 1).unwrap(), (b"ello".to_vec(), 5));
    assert_eq!(archive.upload(0, HELLO, 9).unwrap(), (Vec::new(), 5));
    assert_eq!(open(&disk, []).upload(0, HELLO, 0).unwrap(), (b"hello".to_vec(), 5));

    assert!(matches!(archive.put_upload(0, [7; 32], 5, (0, b"liars")), Err(Refusal::WrongHash)));
    assert!(!archive.put_upload(0, [8; 32], 5, (0, b"part")).unwrap());
    assert!(matches!(archive.put_upload(0, [9; 32], u64::MAX, (0, b"large")), Err(Refusal::NoRoom)));
    assert_eq!(disk.files().len(), 3);
    open(&disk, []);
    assert_eq!(disk.files().len(), 2, "what was not whole is gone");
}

#[test]
fn an_upload_is_kept_while_a_job_names_it_and_for_a_while() {
    let disk = SimDisk::new();
    let mut archive = open(&disk, []);
    archive.put_upload(0, HELLO, 5, (0, b"hello")).unwrap();
    archive.put_upload(0, NOTHING, 0, (0, b"")).unwrap();
    archive.put_upload(0, [1; 32], 5, (0, b"part")).unwrap();
    archive.name_uploads(&[HELLO]);
    archive.missing(500, &[NOTHING]);
    archive.sweep(1_400).unwrap();
    assert_eq!(archive.usage().files, 2, "{:?}", disk.files().keys());
    archive.sweep(1_500).unwrap();
    assert_eq!(archive.missing(1_500, &[HELLO, NOTHING]), [NOTHING]);
    archive.unname_uploads(9_000, &[HELLO]);
    archive.sweep(9_999).unwrap();
    assert_eq!(archive.usage().uploads, 5);
    archive.sweep(10_000).unwrap();
    assert_eq!((archive.usage().uploads, disk.files().len()), (0, 0));
    // Those that jobs name are known when it is opened.
    archive.put_upload(0, HELLO, 5, (0, b"hello")).unwrap();
    let mut again = Archive::open(disk, &ROOM, 0, &BTreeSet::new(), BTreeSet::from([HELLO])).unwrap();
    again.sweep(u64::MAX).unwrap();
    assert_eq!(again.usage().uploads, 5);
}

/// Short writes go on; a disk that is full, or fails, refuses and loses nothing.
#[test]
fn a_disk_that_fails_refuses_and_loses_nothing() {
    for fault in [Fault::Short, Fault::Enospc, Fault::Eio] {
        // Calls: two for a new segment, then one a write; a short one needs another.
        for call in 0..200 {
            let disk = SimDisk::new();
            let mut archive = open(&disk, [1]);
            disk.fail_at(call, fault);
            let mut kept = Vec::new();
            for task in 0..60 {
                let piece = piece(1, task, 1, 0, &[b'x'; 100]);
                match archive.put_output(vec![piece.clone()]) {
                    Ok(()) => kept.push(piece),
                    Err(Refusal::NoRoom) => assert_eq!(fault, Fault::Enospc),
                    // Only a write can be short; whatever else is meant to be fails.
                    Err(refusal) => assert!(fault != Fault::Enospc && matches!(refusal, Refusal::Io(_)), "{refusal}"),
                }
            }
            assert!(kept.len() >= 59);
            assert_eq!(all(&archive, 1), kept, "{fault:?} at {call}");
            assert_eq!(all(&open(&disk, [1]), 1), kept, "{fault:?} at {call}");
        }
    }
}

#[test]
fn a_disk_without_room_takes_nothing_until_it_has_some() {
    let disk = SimDisk::new();
    let mut archive = open(&disk, [1]);
    fill(&mut archive, 5);
    disk.set_bytes_max(Some(disk.used() + 100));
    for _ in 0..3 {
        assert!(matches!(archive.put_output(vec![piece(1, 77, 1, 0, &[1; 500])]), Err(Refusal::NoRoom)));
        assert!(matches!(archive.put_file(&file(1, "a", 0, true, &[1; 500])), Err(Refusal::NoRoom)));
        assert!(matches!(archive.put_upload(0, HELLO, 500, (0, &[1; 500])), Err(Refusal::NoRoom)));
    }
    disk.heal();
    archive.put_output(vec![piece(1, 77, 1, 0, b"there")]).unwrap();
    archive.put_file(&file(1, "a", 0, true, b"a")).unwrap();
    archive.put_upload(0, HELLO, 5, (0, b"hello")).unwrap();
    assert_eq!(all(&open(&disk, [1]), 1).len(), 16);
}
