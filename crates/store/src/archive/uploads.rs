//! Files that were given to tasks, known by their SHA-256: one file each. It gets its name once it is whole, has that hash
//! and is synced; so a name tells the truth after a power cut, too.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use sha2::{Digest as _, Sha256};

use super::{Refusal, Room};
use crate::disk::{Disk, DiskFile, read_up_to, write_all_at};

/// Uploads that are not whole. More: the one that was left alone for the longest must be begun again.
const PARTS_MAX: usize = 64;
const PREFIX: &str = "upload-";
const PART: &str = ".part";

/// What an upload is known by.
pub type UploadId = [u8; 32];

/// All uploads.
#[derive(Debug)]
pub(super) struct Uploads<F> {
    whole: BTreeMap<UploadId, Whole>,
    parts: BTreeMap<UploadId, Part<F>>,
    /// Those that jobs name.
    named: BTreeSet<UploadId>,
    bytes: u64,
    bytes_max: u64,
    count_max: usize,
    kept_ms: u64,
    piece_bytes: u64,
}

#[derive(Debug)]
struct Whole {
    size: u64,
    used_ms: u64,
}

#[derive(Debug)]
struct Part<F> {
    file: F,
    size: u64,
    have: u64,
    hash: Sha256,
    used_ms: u64,
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
            } else if let Some(id) = id_of(&name)
                && let Ok(size) = disk.open(&name).and_then(|file| file.len())
            {
                uploads.bytes += size;
                uploads.whole.insert(id, Whole { size, used_ms: now_ms });
            }
        }
        Ok(uploads)
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.whole.len() + self.parts.len()
    }

    /// Those of them that are not there. The others are kept for a while.
    pub(super) fn missing(&mut self, now_ms: u64, ids: &[UploadId]) -> Vec<UploadId> {
        let mut is_there = |id: &UploadId| self.whole.get_mut(id).map(|whole| whole.used_ms = now_ms).is_some();
        ids.iter().filter(|id| !is_there(id)).copied().collect()
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
            part.hash.update(new);
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
        self.parts.insert(id, Part { file, size, have: 0, hash: Sha256::new(), used_ms: now_ms });
        Ok(())
    }

    fn finish<D: Disk<File = F>>(&mut self, disk: &mut D, now_ms: u64, id: UploadId) -> Result<(), Refusal> {
        let part = self.parts.get(&id).ok_or(Refusal::WrongPlace)?;
        if <UploadId>::from(part.hash.clone().finalize()) != id {
            self.drop_part(disk, &id)?;
            return Err(Refusal::WrongHash);
        }
        part.file.sync().map_err(Refusal::of)?;
        disk.rename(&part_name(&id), &name(&id)).map_err(Refusal::of)?;
        disk.sync_directory().map_err(Refusal::of)?;
        if let Some(part) = self.parts.remove(&id) {
            self.whole.insert(id, Whole { size: part.size, used_ms: now_ms });
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
        let whole = self.whole.get_mut(&id).ok_or(Refusal::NotFound)?;
        whole.used_ms = now_ms;
        let left = whole.size.saturating_sub(at).min(self.piece_bytes);
        let mut bytes = vec![0; usize::try_from(left).unwrap_or(0)];
        let file = disk.open(&name(&id)).map_err(Refusal::of)?;
        let there = read_up_to(&file, at, &mut bytes).map_err(Refusal::of)?;
        if there < bytes.len() {
            return Err(Refusal::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok((bytes, whole.size))
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

fn id_of(text: &str) -> Option<UploadId> {
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
