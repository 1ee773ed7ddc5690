//! Uploads, identified by their SHA-256: one file each. It gets its name once it is whole, has that hash and is synced;
//! so a name tells the truth after a power cut, too.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use sha2::{Digest as _, Sha256};

use super::trouble::{FileProblem, Flaw, set_aside, set_aside_from};
use super::{Refusal, Room};
use crate::disk::{Disk, DiskFile, read_up_to, write_all_at};

/// Uploads that are not whole. More: the one that was left alone for the longest must be begun again.
const PARTS_MAX: usize = 64;
const PREFIX: &str = "upload-";
const PART: &str = ".part";
/// Bytes of one that is checked when it is first asked for. Larger: when it is first read.
const CHECKED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of one that are read in one go.
const READ_BYTES: usize = 256 * 1024;

/// The id of an upload: the SHA-256 of its bytes.
pub type UploadId = [u8; 32];

/// All uploads.
#[derive(Debug)]
pub(super) struct Uploads<F> {
    whole: BTreeMap<UploadId, WholeUpload>,
    parts: BTreeMap<UploadId, Part<F>>,
    /// Those that jobs name.
    named: BTreeSet<UploadId>,
    /// Those that were set aside, and are not there again.
    lost: BTreeSet<UploadId>,
    troubles: Vec<FileProblem>,
    bytes: u64,
    bytes_max: u64,
    count_max: usize,
    kept_ms: u64,
    piece_bytes: u64,
}

#[derive(Debug)]
struct WholeUpload {
    size: u64,
    used_ms: u64,
    trust: Trust,
}

/// Whether it was seen in this life that an upload is what it should be.
#[derive(Debug)]
enum Trust {
    /// Not yet: it is read for the first time up to there.
    Reading(Box<Digest>, u64),
    /// It was, and its pieces have these checksums.
    Checked(Vec<u32>),
}

impl Trust {
    fn none() -> Self {
        Self::Reading(Box::default(), 0)
    }
}

/// The digest of consecutive bytes: their hash, and the checksums of pieces.
#[derive(Debug, Default)]
struct Digest {
    hash: Sha256,
    sums: Sums,
}

impl Digest {
    fn add(&mut self, piece_bytes: u64, bytes: &[u8]) {
        self.hash.update(bytes);
        self.sums.add(piece_bytes, bytes);
    }

    /// Checksums of the pieces, if it is that upload.
    fn end(self, id: &UploadId) -> Option<Vec<u32>> {
        (<UploadId>::from(self.hash.finalize()) == *id).then(|| self.sums.end())
    }
}

#[derive(Debug)]
struct Part<F> {
    file: F,
    size: u64,
    have: u64,
    digest: Digest,
    used_ms: u64,
}

/// Checksums of pieces of one length, of bytes that come in pieces of any.
#[derive(Debug, Default)]
struct Sums {
    whole: Vec<u32>,
    sum: u32,
    len: u64,
}

impl Sums {
    fn add(&mut self, piece_bytes: u64, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = usize::try_from(piece_bytes - self.len).unwrap_or(usize::MAX).clamp(1, bytes.len());
            let (now, rest) = bytes.split_at(room);
            self.sum = crc32c::crc32c_append(self.sum, now);
            self.len += now.len() as u64;
            bytes = rest;
            if self.len >= piece_bytes {
                self.whole.push(std::mem::take(&mut self.sum));
                self.len = 0;
            }
        }
    }

    fn end(mut self) -> Vec<u32> {
        if self.len > 0 {
            self.whole.push(self.sum);
        }
        self.whole
    }
}

impl<F: DiskFile> Uploads<F> {
    pub(super) fn open<D: Disk<File = F>>(
        disk: &mut D,
        room: &Room,
        now_ms: u64,
        named: BTreeSet<UploadId>,
    ) -> io::Result<Self> {
        let mut uploads = Self {
            whole: BTreeMap::new(),
            parts: BTreeMap::new(),
            named,
            lost: BTreeSet::new(),
            troubles: Vec::new(),
            bytes: 0,
            bytes_max: room.upload_bytes,
            count_max: room.uploads,
            kept_ms: room.upload_kept_ms,
            piece_bytes: room.piece_bytes,
        };
        for name in disk.names()? {
            if name.strip_suffix(PART).and_then(id_of).is_some() {
                // If it cannot be removed, it is in nobody's way but takes room.
                let _ = disk.remove(&name);
            } else if let Some((id, before)) = set_aside_from(&name).and_then(|(name, _)| Some((id_of(name)?, name))) {
                uploads.lost.insert(id);
                uploads.trouble(before.to_owned(), Flaw::SetAside(name.clone()));
            } else if let Some(id) = id_of(&name) {
                match disk.open(&name).and_then(|file| file.len()) {
                    Ok(size) => {
                        uploads.bytes += size;
                        uploads.whole.insert(id, WholeUpload { size, used_ms: now_ms, trust: Trust::none() });
                    }
                    Err(error) => {
                        uploads.lost.insert(id);
                        uploads.trouble(name, Flaw::Io(error.to_string()));
                    }
                }
            }
        }
        uploads.lost.retain(|id| !uploads.whole.contains_key(id));
        Ok(uploads)
    }

    fn trouble(&mut self, file: String, flaw: Flaw) {
        self.troubles.push(FileProblem { file, from: 0, until: 0, flaw });
    }

    /// Flaws that were found since the last call.
    pub(super) fn troubles(&mut self) -> Vec<FileProblem> {
        std::mem::take(&mut self.troubles)
    }

    /// Whether an upload is there and, unless it is large, what it should be: it is read through once in a life. If it is
    /// damaged, it is set aside, so that it can be put again.
    fn check<D: Disk<File = F>>(&mut self, disk: &mut D, id: UploadId) -> Result<(), Refusal> {
        match self.whole.get(&id) {
            None if self.lost.contains(&id) => return Err(Refusal::Damaged),
            None => return Err(Refusal::NotFound),
            Some(WholeUpload { trust: Trust::Checked(_), .. }) => return Ok(()),
            Some(whole) if whole.size > CHECKED_BYTES_MAX => return Ok(()),
            Some(_) => {}
        }
        let file = disk.open(&name(&id)).map_err(Refusal::of)?;
        match sums_of(&file, &id, self.piece_bytes).map_err(Refusal::of)? {
            Some(sums) => {
                self.whole.entry(id).and_modify(|whole| whole.trust = Trust::Checked(sums));
                Ok(())
            }
            None => Err(self.lose(disk, id)),
        }
    }

    /// An upload is damaged: it gets another name, and stays.
    fn lose<D: Disk<File = F>>(&mut self, disk: &mut D, id: UploadId) -> Refusal {
        if let Some(whole) = self.whole.remove(&id) {
            self.bytes -= whole.size;
        }
        self.lost.insert(id);
        let flaw = match set_aside(disk, &name(&id), 1) {
            Ok(aside) => Flaw::SetAside(aside),
            Err(error) => Flaw::Io(error.to_string()),
        };
        self.trouble(name(&id), flaw);
        Refusal::Damaged
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.whole.len() + self.parts.len()
    }

    /// Those of them that are not there, or damaged. The others are kept for a while.
    pub(super) fn missing<D: Disk<File = F>>(&mut self, disk: &mut D, now_ms: u64, ids: &[UploadId]) -> Vec<UploadId> {
        let mut missing = Vec::new();
        for id in ids {
            // A disk that cannot be read now is no reason to send it again.
            if let Err(Refusal::NotFound | Refusal::Damaged) = self.check(disk, *id) {
                missing.push(*id);
            } else if let Some(whole) = self.whole.get_mut(id) {
                whole.used_ms = now_ms;
            }
        }
        missing
    }

    /// A piece. Returns whether the upload is whole now.
    pub(super) fn put<D: Disk<File = F>>(
        &mut self,
        disk: &mut D,
        now_ms: u64,
        id: UploadId,
        size: u64,
        (at, bytes): (u64, &[u8]),
    ) -> Result<bool, Refusal> {
        if let Some(whole) = self.whole.get_mut(&id) {
            whole.used_ms = now_ms;
            return Ok(true);
        }
        if self.parts.get(&id).is_none_or(|part| part.size != size) {
            if at > 0 {
                return Err(Refusal::WrongPlace);
            }
            self.begin(disk, now_ms, id, size)?;
        }
        let part = self.parts.get_mut(&id).ok_or(Refusal::WrongPlace)?;
        part.used_ms = now_ms;
        let end = at.checked_add(bytes.len() as u64).filter(|end| *end <= part.size).ok_or(Refusal::WrongPlace)?;
        if at > part.have {
            return Err(Refusal::WrongPlace);
        }
        if end > part.have || part.size == 0 {
            // Another who puts the same may have brought some of it.
            let skip = usize::try_from(part.have - at).unwrap_or(usize::MAX);
            let new = bytes.get(skip..).unwrap_or_default();
            write_all_at(&part.file, part.have, new).map_err(Refusal::of)?;
            part.digest.add(self.piece_bytes, new);
            part.have = end;
        }
        if part.have < part.size {
            return Ok(false);
        }
        self.finish(disk, now_ms, id)?;
        Ok(true)
    }

    fn begin<D: Disk<File = F>>(&mut self, disk: &mut D, now_ms: u64, id: UploadId, size: u64) -> Result<(), Refusal> {
        self.drop_part(disk, &id)?;
        if self.parts.len() >= PARTS_MAX
            && let Some(idle) = self.parts.iter().min_by_key(|(_, part)| part.used_ms).map(|(id, _)| *id)
        {
            self.drop_part(disk, &idle)?;
        }
        let bytes = self.bytes.checked_add(size).filter(|bytes| *bytes <= self.bytes_max).ok_or(Refusal::NoRoom)?;
        if self.len() >= self.count_max {
            return Err(Refusal::NoRoom);
        }
        let file = disk.create(&part_name(&id)).map_err(Refusal::of)?;
        self.bytes = bytes;
        self.parts.insert(id, Part { file, size, have: 0, digest: Digest::default(), used_ms: now_ms });
        Ok(())
    }

    fn finish<D: Disk<File = F>>(&mut self, disk: &mut D, now_ms: u64, id: UploadId) -> Result<(), Refusal> {
        let part = self.parts.get(&id).ok_or(Refusal::WrongPlace)?;
        if <UploadId>::from(part.digest.hash.clone().finalize()) != id {
            self.drop_part(disk, &id)?;
            return Err(Refusal::WrongHash);
        }
        part.file.sync().map_err(Refusal::of)?;
        disk.rename(&part_name(&id), &name(&id)).map_err(Refusal::of)?;
        disk.sync_directory().map_err(Refusal::of)?;
        if let Some(part) = self.parts.remove(&id) {
            let trust = Trust::Checked(part.digest.sums.end());
            self.whole.insert(id, WholeUpload { size: part.size, used_ms: now_ms, trust });
            self.lost.remove(&id);
        }
        Ok(())
    }

    fn drop_part<D: Disk<File = F>>(&mut self, disk: &mut D, id: &UploadId) -> Result<(), Refusal> {
        let Some(part) = self.parts.remove(id) else { return Ok(()) };
        self.bytes -= part.size;
        remove(disk, &part_name(id))
    }

    /// A piece of an upload, and the size of the whole.
    pub(super) fn read<D: Disk<File = F>>(
        &mut self,
        disk: &mut D,
        now_ms: u64,
        id: UploadId,
        at: u64,
    ) -> Result<(Vec<u8>, u64), Refusal> {
        self.check(disk, id)?;
        let piece_bytes = self.piece_bytes;
        let whole = self.whole.get_mut(&id).ok_or(Refusal::NotFound)?;
        whole.used_ms = now_ms;
        let (size, piece) = (whole.size, at / piece_bytes);
        if at >= size {
            return Ok((Vec::new(), size));
        }
        let from = piece * piece_bytes;
        let mut bytes = vec![0; usize::try_from((size - from).min(piece_bytes)).unwrap_or(0)];
        let file = disk.open(&name(&id)).map_err(Refusal::of)?;
        let there = read_up_to(&file, from, &mut bytes).map_err(Refusal::of)?;
        if there < bytes.len() || !whole.is_right(&id, piece_bytes, from, &bytes) {
            return Err(self.lose(disk, id));
        }
        bytes.drain(..usize::try_from(at - from).unwrap_or(usize::MAX).min(bytes.len()));
        Ok((bytes, size))
    }

    /// Jobs name these from now on.
    pub(super) fn name(&mut self, ids: &[UploadId]) {
        self.named.extend(ids);
    }

    /// No job names these any more.
    pub(super) fn unname(&mut self, now_ms: u64, ids: &[UploadId]) {
        for id in ids {
            self.named.remove(id);
            if let Some(whole) = self.whole.get_mut(id) {
                whole.used_ms = now_ms;
            }
        }
    }

    /// Those that nobody wants any more go.
    pub(super) fn sweep<D: Disk<File = F>>(&mut self, disk: &mut D, now_ms: u64) -> Result<(), Refusal> {
        let is_old = |used_ms: u64| used_ms.saturating_add(self.kept_ms) <= now_ms;
        let old = self.whole.iter().filter(|(id, whole)| is_old(whole.used_ms) && !self.named.contains(*id));
        let old: Vec<UploadId> = old.map(|(id, _)| *id).collect();
        let idle: Vec<UploadId> =
            self.parts.iter().filter(|(_, part)| is_old(part.used_ms)).map(|(id, _)| *id).collect();
        for id in idle {
            self.drop_part(disk, &id)?;
        }
        for id in old {
            remove(disk, &name(&id))?;
            if let Some(whole) = self.whole.remove(&id) {
                self.bytes -= whole.size;
            }
        }
        Ok(())
    }
}

impl WholeUpload {
    /// Whether nothing is wrong with a piece, as far as that is known. A reader of the whole file knows by its hash.
    fn is_right(&mut self, id: &UploadId, piece_bytes: u64, from: u64, bytes: &[u8]) -> bool {
        match &mut self.trust {
            Trust::Checked(sums) => {
                let sum = usize::try_from(from / piece_bytes).ok().and_then(|piece| sums.get(piece));
                sum == Some(&crc32c::crc32c(bytes))
            }
            Trust::Reading(digest, upto) if *upto == from => {
                digest.add(piece_bytes, bytes);
                *upto += bytes.len() as u64;
                if *upto < self.size {
                    return true;
                }
                let sums = std::mem::take(&mut **digest).end(id);
                self.trust = sums.map_or_else(Trust::none, Trust::Checked);
                matches!(self.trust, Trust::Checked(_))
            }
            Trust::Reading(..) => true,
        }
    }
}

/// Checksums of an upload's pieces, if it has the hash that it is named by.
pub(super) fn sums_of<F: DiskFile>(file: &F, id: &UploadId, piece_bytes: u64) -> io::Result<Option<Vec<u32>>> {
    let (mut digest, mut at) = (Digest::default(), 0);
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let there = read_up_to(file, at, &mut bytes)?;
        digest.add(piece_bytes, bytes.get(..there).unwrap_or_default());
        at += there as u64;
        if there < bytes.len() {
            return Ok(digest.end(id));
        }
    }
}

fn remove<D: Disk>(disk: &mut D, name: &str) -> Result<(), Refusal> {
    match disk.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Refusal::of(error)),
        _ => Ok(()),
    }
}

fn name(id: &UploadId) -> String {
    let mut name = PREFIX.to_owned();
    for byte in id {
        let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0');
        name.extend([digit(byte >> 4), digit(byte & 15)]);
    }
    name
}

fn part_name(id: &UploadId) -> String {
    name(id) + PART
}

pub(super) fn id_of(text: &str) -> Option<UploadId> {
    let digits = text.strip_prefix(PREFIX)?.as_bytes();
    let mut id = [0; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    (name(&id) == text).then_some(id)
}
