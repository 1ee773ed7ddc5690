//! The archive after power cuts, and on a disk that somebody else wrote to.

use std::collections::BTreeMap;

use turno_store::archive::{Archive, FilePiece, Piece, Place, UploadId};
use turno_store::disk::{Crash, Rng, SimDisk};

use crate::archive::{all_of, open, piece};

const HELLO: &str = "hello";

/// What was written, and how many changes of the disk it took.
struct Life {
    disk: SimDisk,
    pieces: Vec<(usize, Piece)>,
    files: Vec<(usize, String)>,
    /// For each piece and each file the disk's files that grew by it, and how long they were then.
    piece_ends: Vec<Vec<(String, usize)>>,
    file_ends: Vec<Vec<(String, usize)>>,
}

/// The files that are longer than they were the last time.
fn grown(disk: &SimDisk, lengths: &mut BTreeMap<String, usize>) -> Vec<(String, usize)> {
    let now = disk.files().into_iter().map(|(name, bytes)| (name, bytes.len()));
    now.filter(|(name, length)| lengths.insert(name.clone(), *length) != Some(*length)).collect()
}

fn hash() -> UploadId {
    let digits = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    std::array::from_fn(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
}

fn live() -> Life {
    let disk = SimDisk::new();
    let mut archive = open(&disk, [1]);
    let (mut pieces, mut files, mut lengths) = (Vec::new(), Vec::new(), BTreeMap::new());
    let (mut piece_ends, mut file_ends) = (Vec::new(), Vec::new());
    for number in 0..60_u32 {
        let piece = piece(1, number % 7, 1, u64::from(number) * 150, &[number as u8; 150]);
        archive.put_output(vec![piece.clone()]).unwrap();
        pieces.push((disk.changes(), piece));
        piece_ends.push(grown(&disk, &mut lengths));
        let name = format!("{number}");
        let file = FilePiece {
            job: 1,
            task: number % 7,
            attempt: 1,
            name: &name,
            at: 0,
            last: true,
            bytes: &[number as u8; 99],
        };
        archive.put_file(&file).unwrap();
        files.push((disk.changes(), name));
        file_ends.push(grown(&disk, &mut lengths));
        if number == 30 {
            archive.put_upload(0, hash(), 5, (0, HELLO.as_bytes())).unwrap();
            grown(&disk, &mut lengths);
        }
    }
    Life { disk, pieces, files, piece_ends, file_ends }
}

/// Everything that can be read, which is true, whatever is missing.
fn look(archive: &mut Archive<SimDisk>, life: &Life) -> (Vec<Piece>, Vec<String>) {
    let mut found = archive.output(&all_of(1), Place::default()).unwrap().pieces;
    let by_arrival = archive.output_after(&all_of(1), 0).unwrap().pieces;
    assert!(by_arrival.len() <= found.len());
    let written: BTreeMap<(u32, u64), &Piece> =
        life.pieces.iter().map(|(_, piece)| ((piece.task, piece.at), piece)).collect();
    for piece in &found {
        assert_eq!(written.get(&(piece.task, piece.at)), Some(&piece));
    }
    found.sort_by_key(|piece| piece.at);
    let mut names = Vec::new();
    for row in archive.files(1, None, 1_000).unwrap().0 {
        let number: u8 = row.name.parse().unwrap();
        if let Ok((bytes, size)) = archive.file(1, row.task, &row.name, 0) {
            assert_eq!((bytes, size), (vec![number; 99], 99));
            names.push(row.name);
        }
    }
    if let Ok((bytes, _)) = archive.upload(0, hash(), 0) {
        assert_eq!(bytes, HELLO.as_bytes());
    }
    (found, names)
}

/// The end of the process alone takes nothing of what was answered; a power cut takes what it likes and leaves nothing
/// untrue.
#[test]
fn after_any_crash_what_is_there_is_true() {
    let life = live();
    let (journal, mut rng) = (life.disk.journal(), Rng::new(7));
    for changes in 0..=journal.len() {
        for crash in [Crash::Kept, Crash::Dropped, Crash::Subset, Crash::Torn] {
            let disk = journal.after_crash(changes, crash, &mut rng);
            let mut archive = open(&disk, [1]);
            let (found, names) = look(&mut archive, &life);
            if crash == Crash::Kept {
                let answered = life.pieces.iter().filter(|(at, _)| *at <= changes).count();
                assert!(found.len() >= answered, "{} of {answered} after {changes}", found.len());
                assert!(names.len() >= life.files.iter().filter(|(at, _)| *at <= changes).count());
            }
            // It goes on from there.
            let next = piece(1, 99, 1, 0, b"next");
            archive.put_output(vec![next.clone()]).unwrap();
            let again = open(&disk, [1]).output(&all_of(1), Place::default()).unwrap().pieces;
            assert_eq!((again.last(), again.len()), (Some(&next), found.len() + 1), "{crash:?} after {changes}");
        }
    }
}

/// No byte of a file panics, is told as something else than what was written, or allocates by its own claim; and what
/// stands in front of the damage is read.
#[test]
fn bytes_of_any_kind_are_read_or_left_out() {
    let life = live();
    let files = life.disk.files();
    let mut rng = Rng::new(11);
    for round in 0..400_u64 {
        let mut spoilt = files.clone();
        let mut sound = BTreeMap::new();
        for (name, bytes) in &mut spoilt {
            let intact = sound.entry(name.clone()).or_insert(bytes.len());
            for _ in 0..rng.below(5) {
                let len = bytes.len() as u64;
                if len == 0 {
                    continue;
                }
                let at = rng.below(len) as usize;
                *intact = (*intact).min(at);
                match rng.below(5) {
                    0 => bytes[at] ^= 1 << rng.below(8),
                    1 => bytes.truncate(at),
                    2 => bytes[at..].fill(0xFF),
                    3 => bytes.extend(std::iter::repeat_n(rng.below(256) as u8, 100)),
                    _ => {
                        let end = (at + 200).min(bytes.len());
                        bytes[at..end].iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
                    }
                }
            }
        }
        // Uploads are named by their hash, and were checked when they came.
        spoilt.retain(|name, _| !name.starts_with("upload"));
        let disk = SimDisk::with_files(spoilt);
        let mut archive = open(&disk, [1]);
        let (found, names) = look(&mut archive, &life);
        let is_sound = |ends: &[(String, usize)]| ends.iter().all(|(name, end)| *end <= sound[name]);
        for ((_, piece), ends) in life.pieces.iter().zip(&life.piece_ends) {
            assert!(!is_sound(ends) || found.contains(piece), "round {round}: {ends:?} is lost");
        }
        for ((_, name), ends) in life.files.iter().zip(&life.file_ends) {
            assert!(!is_sound(ends) || names.contains(name), "round {round}: {ends:?} is lost");
        }
        archive.put_output(vec![piece(1, 99, 1, round, b"next")]).unwrap();
        archive.forget(1).unwrap();
        assert_eq!(disk.files().len(), 0);
    }
}

/// What a task prints may look like records: it is not read as one.
#[test]
fn no_output_passes_for_a_record() {
    let life = live();
    let bytes: Vec<u8> = life.disk.files().into_iter().find(|(name, _)| name.starts_with("output")).unwrap().1;
    let disk = SimDisk::new();
    let mut archive = open(&disk, [1, 2]);
    archive.put_output(vec![piece(2, 0, 1, 0, &bytes[..1_000])]).unwrap();
    // The file is cut where the forged records begin.
    let spoilt: Vec<(String, Vec<u8>)> =
        disk.files().into_iter().map(|(name, file)| (name, [&file[..32], &file[88..]].concat())).collect();
    let archive = open(&SimDisk::with_files(spoilt), [1, 2]);
    assert_eq!(archive.output(&all_of(1), Place::default()).unwrap().pieces, []);
}

#[test]
fn names_of_others_are_left_alone() {
    let names = ["output-1", "output-0000001", "output-x", "upload-zz", "notes.txt", "result-", "upload-00.part"];
    let disk = SimDisk::with_files(names.map(|name| (name.to_owned(), b"?".to_vec())));
    open(&disk, []);
    assert_eq!(disk.files().len(), names.len());
}
