//! A buffer that moves through a file from front to back. It grows for a long record only as far as the file really
//! reaches.

use std::io;

use crate::disk::{DiskFile, read_up_to};

const BYTES: usize = 256 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Window {
    bytes: Vec<u8>,
    start: u64,
}

impl Window {
    /// Forgets what it holds: another file comes, or this one was written to.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        // One long record must not leave its buffer behind for ever.
        self.bytes.shrink_to(BYTES);
    }

    /// The bytes from `at`: `len` of them or more, or fewer where the file (or `end`) ends.
    pub(crate) fn bytes(&mut self, file: &impl DiskFile, at: u64, len: usize, end: u64) -> io::Result<&[u8]> {
        let len = len.min(usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX));
        let held = self.start..self.start + self.bytes.len() as u64;
        if !(held.start <= at && at + len as u64 <= held.end) {
            let most = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
            self.bytes.resize(len.max(BYTES).min(most), 0);
            self.start = at;
            let there = read_up_to(file, at, &mut self.bytes);
            self.bytes.truncate(*there.as_ref().unwrap_or(&0));
            there?;
        }
        let skip = usize::try_from(at - self.start).unwrap_or(usize::MAX);
        let rest = self.bytes.get(skip..).unwrap_or_default();
        let here = usize::try_from(end.saturating_sub(at)).unwrap_or(usize::MAX);
        Ok(rest.get(..here.min(rest.len())).unwrap_or_default())
    }
}
