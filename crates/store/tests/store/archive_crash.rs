//! The archive after power cuts, and on a disk that somebody else wrote to.

use std::collections::{BTreeMap, BTreeSet};

use turno_store::archive::{Archive, FilePiece, OutputPosition, Piece, Refusal, Room, UploadId, inspect};
use turno_store::disk::{Crash, Rng, SimDisk};

use crate::archive::{ROOM, all_of, open, piece};

const HELLO: &str = "hello";
/// A task that writes after all else.
const LATER: u32 = 99;

/// What was written, and how many changes of the disk it took.
struct Life {
    disk: SimDisk,
    pieces: Vec<(usize, Piece)>,
    files: Vec<(usize, String)>,
}

fn hash() -> UploadId {
    let digits = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    std::array::from_fn(|at| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).unwrap())
}

fn live() -> Life {
    let disk = SimDisk::new();
    let mut archive = open(&disk, [1]);
    let (mut pieces, mut files) = (Vec::new(), Vec::new());
    for number in 0..60_u32 {
        let piece = piece(1, number % 7, 1, u64::from(number) * 150, &[number as u8; 150]);
        archive.put_output(vec![piece.clone()]).unwrap();
        pieces.push((disk.changes(), piece));
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
        if number == 30 {
            archive.put_upload(0, hash(), 5, (0, HELLO.as_bytes())).unwrap();
        }
    }
    Life { disk, pieces, files }
}

/// What can be read, and what the archive says is lost.
#[derive(Debug, Default)]
struct Sight {
    pieces: Vec<Piece>,
    names: Vec<String>,
    /// Something may be lost, nobody knows what.
    output_damaged: bool,
    results_damaged: bool,
    /// Task and position of output, and names of files.
    lost: Vec<(u32, u64)>,
    lost_names: Vec<String>,
}

/// Everything that can be read, which is true, whatever is missing.
fn look(archive: &mut Archive<SimDisk>, life: &Life) -> Sight {
    let output = archive.output(&all_of(1), OutputPosition::default()).unwrap();
    let by_arrival = arrivals(archive);
    let key = |piece: &Piece| (piece.task, piece.at);
    let mut sight = Sight { output_damaged: output.damaged, ..Sight::default() };
    let written: BTreeMap<(u32, u64), &Piece> = life.pieces.iter().map(|(_, piece)| (key(piece), piece)).collect();
    for piece in output.pieces.into_iter().filter(|piece| piece.task != LATER) {
        let was = written.get(&key(&piece)).expect("what is told was written");
        match piece.lost {
            0 => {
                assert_eq!(piece, **was);
                assert!(by_arrival.contains(&piece), "{piece:?} is not told by arrival");
                sight.pieces.push(piece);
            }
            lost => {
                assert_eq!((piece.bytes.len(), lost), (0, was.bytes.len() as u64));
                sight.lost.push(key(&piece));
            }
        }
    }
    sight.pieces.sort_by_key(|piece| piece.at);
    let files = archive.files(1, None, 1_000).unwrap();
    sight.results_damaged = files.damaged;
    for row in files.rows {
        match archive.file(1, row.task, &row.name, 0) {
            Ok((bytes, size)) => {
                let number: u8 = row.name.parse().unwrap();
                assert_eq!((row.lost, bytes, size), (false, vec![number; 99], 99));
                sight.names.push(row.name);
            }
            Err(refusal) => {
                assert!(row.lost && matches!(refusal, Refusal::Damaged | Refusal::NotFound), "{refusal}");
                sight.lost_names.push(row.name);
            }
        }
    }
    match archive.upload(0, hash(), 0) {
        Ok((bytes, _)) => assert_eq!(bytes, HELLO.as_bytes()),
        Err(refusal) => assert!(matches!(refusal, Refusal::Damaged | Refusal::NotFound), "{refusal}"),
    }
    sight
}

/// All output in the order of its arrival.
fn arrivals(archive: &Archive<SimDisk>) -> Vec<Piece> {
    let (mut pieces, mut after) = (Vec::new(), 0);
    loop {
        let output = archive.output_after(&all_of(1), after).unwrap();
        pieces.extend(output.pieces);
        after = output.arrived;
        if output.end {
            return pieces;
        }
    }
}

impl Sight {
    /// Nothing that was kept is missing without a report.
    fn judge(&self, life: &Life) {
        for (_, piece) in &life.pieces {
            let is_told = self.pieces.contains(piece) || self.lost.contains(&(piece.task, piece.at));
            assert!(is_told || self.output_damaged, "{}.{} is silently absent", piece.task, piece.at);
        }
        for (_, name) in &life.files {
            // A damaged name is still a file of the list.
            let is_told = self.names.contains(name) || !self.lost_names.is_empty();
            assert!(is_told || self.results_damaged, "{name} is silently absent");
        }
    }
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
            let Sight { pieces: found, names, lost, .. } = look(&mut archive, &life);
            if crash == Crash::Kept {
                let answered = life.pieces.iter().filter(|(at, _)| *at <= changes).count();
                assert!(found.len() >= answered, "{} of {answered} after {changes}", found.len());
                assert!(names.len() >= life.files.iter().filter(|(at, _)| *at <= changes).count());
            }
            // It goes on from there.
            let next = piece(1, LATER, 1, 0, b"next");
            archive.put_output(vec![next.clone()]).unwrap();
            let again = open(&disk, [1]).output(&all_of(1), OutputPosition::default()).unwrap().pieces;
            assert_eq!(again.last(), Some(&next), "{crash:?} after {changes}");
            assert_eq!(again.len(), found.len() + lost.len() + 1, "{crash:?} after {changes}");
        }
    }
}

/// No byte of a file panics, is told as something else than what was written, or allocates by its own claim. What cannot be
/// read stays on the disk, and is told as lost; so it is after the next start, and the one after that.
#[test]
fn bytes_of_any_kind_are_read_or_told_as_lost_and_stay() {
    let life = live();
    let files = life.disk.files();
    let mut rng = Rng::new(11);
    for round in 0..150_u64 {
        let (mut spoilt, mut was_cut) = (files.clone(), false);
        for bytes in spoilt.values_mut() {
            for _ in 0..=rng.below(4) {
                was_cut |= spoil(bytes, &mut rng);
            }
        }
        let disk = SimDisk::with_files(spoilt.clone());
        for _ in 0..3 {
            let mut archive = open(&disk, [1]);
            let sight = look(&mut archive, &life);
            // Nobody can tell that the newest segment was cut between two records.
            if !was_cut {
                sight.judge(&life);
            }
            archive.put_output(vec![piece(1, LATER, 1, round, b"next")]).unwrap();
            archive
                .put_file(&FilePiece { job: 2, task: 1, attempt: 1, name: "2", at: 0, last: true, bytes: b"2" })
                .unwrap();
            let now = disk.files();
            for (name, bytes) in spoilt.iter().filter(|(_, bytes)| !bytes.is_empty()) {
                let stays = |(of, now): (&String, &Vec<u8>)| of.starts_with(name.as_str()) && now.starts_with(bytes);
                assert!(now.iter().any(stays), "round {round}: {name} is gone: {:?}", now.keys());
            }
            inspect(&mut disk.clone()).unwrap();
            assert_eq!(disk.files(), now, "a look changes nothing");
            spoilt.retain(|name, _| name.starts_with("output") || name.starts_with("result"));
            // The newest one is written to.
            for prefix in ["output", "result"] {
                let newest = spoilt.keys().rfind(|name| name.starts_with(prefix)).cloned();
                newest.map(|newest| spoilt.remove(&newest));
            }
        }
    }
}

/// Changes something; whether it cut the file.
fn spoil(bytes: &mut Vec<u8>, rng: &mut Rng) -> bool {
    let len = bytes.len() as u64;
    if len == 0 {
        return false;
    }
    let at = rng.below(len) as usize;
    let kind = rng.below(5);
    match kind {
        0 => bytes[at] ^= 1 << rng.below(8),
        1 => bytes.truncate(at),
        2 => bytes[at..].fill(0xFF),
        3 => bytes.extend(std::iter::repeat_n(rng.below(256) as u8, 100)),
        _ => {
            let end = (at + 200).min(bytes.len());
            bytes[at..end].iter_mut().for_each(|byte| *byte = rng.below(256) as u8);
        }
    }
    kind == 1
}

/// What a task prints may look like records: it is not read as one.
#[test]
fn no_output_passes_for_a_record() {
    let life = live();
    let bytes: Vec<u8> = life.disk.files().into_iter().find(|(name, _)| name.starts_with("output")).unwrap().1;
    let disk = SimDisk::new();
    // Nobody who prints knows the salt.
    let room = Room { salt: 43, ..ROOM };
    let mut archive = Archive::open(disk.clone(), &room, 0, &[1, 2].into(), BTreeSet::new()).unwrap();
    archive.put_output(vec![piece(2, 0, 1, 0, &bytes[..1_000])]).unwrap();
    // The file is cut where the forged records begin.
    let spoilt: Vec<(String, Vec<u8>)> =
        disk.files().into_iter().map(|(name, file)| (name, [&file[..32], &file[88..]].concat())).collect();
    let archive = open(&SimDisk::with_files(spoilt), [1, 2]);
    assert_eq!(archive.output(&all_of(1), OutputPosition::default()).unwrap().pieces, []);
}

#[test]
fn names_of_others_are_left_alone() {
    let names = ["output-1", "output-0000001", "output-x", "upload-zz", "notes.txt", "result-", "upload-00.part"];
    let disk = SimDisk::with_files(names.map(|name| (name.to_owned(), b"?".to_vec())));
    open(&disk, []);
    assert_eq!(disk.files().len(), names.len());
}
