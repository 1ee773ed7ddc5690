//! A file that goes to the broker: read once to know what it is known by, and once more to send it.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use turno_proto::model::Code;
use turno_proto::model::archive::UploadId;
use turno_proto::model::limits::PIECE_BYTES_MAX;

use super::uploads::{Upload, cannot_read};
use crate::cli::error::Failure;

/// The id of a file: read once from its beginning to its end.
pub(super) fn id_of(upload: &Upload) -> Result<UploadId, Failure> {
    let mut reader = UploadReader::open(upload, None)?;
    while reader.next()?.is_some() {}
    Ok(reader.id())
}

/// A file, piece by piece, and whether it is still the one that it was.
pub(super) struct UploadReader {
    file: File,
    path: PathBuf,
    size: u64,
    pub(super) at: u64,
    given: bool,
    hash: Sha256,
    /// The id that its content must have.
    expected: Option<UploadId>,
}

impl UploadReader {
    pub(super) fn open(upload: &Upload, expected: Option<UploadId>) -> Result<Self, Failure> {
        let file = File::open(&upload.path).map_err(|error| cannot_read(&upload.path, &error))?;
        let (path, size) = (upload.path.clone(), upload.size);
        Ok(Self { file, path, size, at: 0, given: false, hash: Sha256::new(), expected })
    }

    /// The next piece and where it begins; one without bytes for a file that has none. The last one is given only if all of them
    /// are what was expected: nothing that changed meanwhile is ever whole at the broker.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Bytes)>, Failure> {
        if self.given && self.at == self.size {
            return Ok(None);
        }
        let at = self.at;
        let wanted = (self.size - at).min(PIECE_BYTES_MAX as u64);
        let mut bytes = Vec::with_capacity(usize::try_from(wanted).unwrap_or(PIECE_BYTES_MAX));
        let failed = |error: std::io::Error| cannot_read(&self.path, &error);
        (&self.file).take(wanted).read_to_end(&mut bytes).map_err(failed)?;
        self.at += bytes.len() as u64;
        self.given = true;
        self.hash.update(&bytes);
        let mut more = [0];
        let is_end = self.at == self.size && (&self.file).read(&mut more).map_err(failed)? == 0;
        let is_changed = match self.at < self.size {
            true => (bytes.len() as u64) < wanted,
            false => !is_end || self.expected.is_some_and(|expected| expected != self.id()),
        };
        if is_changed {
            return Err(Failure::new(
                Code::WrongHash,
                format!("{} changed while it was being read", self.path.display()),
            ));
        }
        Ok(Some((at, bytes.into())))
    }

    pub(super) fn id(&self) -> UploadId {
        UploadId(self.hash.clone().finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn upload(path: &Path) -> Upload {
        Upload::file(path, "data").unwrap()
    }

    fn pieces(upload: &Upload, expected: Option<UploadId>) -> Result<Vec<(u64, usize)>, String> {
        let mut reader = UploadReader::open(upload, expected).unwrap();
        let mut pieces = Vec::new();
        while let Some((at, bytes)) = reader.next().map_err(|failure| failure.what().to_owned())? {
            pieces.push((at, bytes.len()));
        }
        Ok(pieces)
    }

    #[test]
    fn a_file_goes_in_pieces_and_an_empty_one_in_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let most = PIECE_BYTES_MAX;
        let table = [
            (0, vec![(0, 0)]),
            (1, vec![(0, 1)]),
            (most, vec![(0, most)]),
            (most + 1, vec![(0, most), (most as u64, 1)]),
        ];
        for (size, expected) in table {
            fs::write(&path, vec![7; size]).unwrap();
            let upload = upload(&path);
            let id = id_of(&upload).unwrap();
            assert_eq!(pieces(&upload, Some(id)), Ok(expected), "{size}");
        }
    }

    #[test]
    fn what_it_is_known_by_is_the_hash_of_its_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        fs::write(&path, "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(id_of(&upload(&path)).unwrap().to_string(), expected);
    }

    /// Longer, shorter, or other bytes of the same length: never is the last piece given.
    #[test]
    fn a_file_that_changes_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("data");
        let long = PIECE_BYTES_MAX + 10;
        fs::write(&path, vec![7; long]).unwrap();
        let upload = upload(&path);
        let id = id_of(&upload).unwrap();
        let other = [vec![8], vec![7; long - 1]].concat();
        for changed in [vec![7; long + 1], vec![7; long - 1], vec![7; 3], Vec::new(), other] {
            fs::write(&path, &changed).unwrap();
            let said = pieces(&upload, Some(id)).unwrap_err();
            assert!(said.ends_with("changed while it was being read"), "{said}");
        }
        fs::remove_file(&path).unwrap();
        let gone = UploadReader::open(&upload, Some(id)).err().unwrap();
        assert_eq!((gone.code(), gone.exit()), (Code::NotFound, 4));
    }
}
