//! The file that remembers the brokers of the group, one address a line (S1.4).
//!
//! It is a comfort, never a condition: a file that is missing, damaged or cannot be written changes nothing
//! but which brokers are known.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::Address;
use crate::core::BROKERS_MAX;

/// Bytes of the file that are read. More: not looked at.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The addresses in the file; lines that are none are passed over.
pub(crate) fn load(file: &Path) -> Vec<Address> {
    let mut bytes = Vec::new();
    let read = File::open(file).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    if read.is_err() {
        return Vec::new();
    }
    let lines = bytes.split(|byte| *byte == b'\n').filter_map(|line| str::from_utf8(line).ok());
    lines.filter_map(|line| line.parse().ok()).take(BROKERS_MAX).collect()
}

/// Writes the addresses, so that a reader sees the old file or the new one, never half of either.
pub(crate) fn store(file: &Path, addresses: &[Address]) -> io::Result<()> {
    let text: String = addresses.iter().map(|address| format!("{address}\n")).collect();
    let mut draft = OsString::from(file);
    // Two processes may share the file: each writes a draft of its own.
    draft.push(format!(".{}.new", std::process::id()));
    fs::write(&draft, text)?;
    fs::rename(&draft, file).inspect_err(|_| {
        let _ = fs::remove_file(&draft);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves S1.4.
    #[test]
    fn what_is_stored_is_loaded() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("brokers");
        let addresses = [Address::Tcp("a:1".to_owned()), Address::Unix("/run/turno.sock".into())];
        store(&file, &addresses).expect("written");
        store(&file, &addresses).expect("written again");
        assert_eq!(load(&file), addresses);
        assert_eq!(fs::read_dir(folder.path()).expect("listed").count(), 1, "no draft stays behind");
    }

    #[test]
    fn a_bad_file_is_no_obstacle() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("brokers");
        assert_eq!(load(&file), []);
        assert_eq!(load(folder.path()), []);
        fs::write(&file, b"a:1\n\n\xFF\xFE\nhttp://x\nb:2").expect("written");
        assert_eq!(load(&file), [Address::Tcp("a:1".to_owned()), Address::Tcp("b:2".to_owned())]);
        fs::write(&file, "a:1\n".repeat(100_000)).expect("written");
        assert_eq!(load(&file).len(), BROKERS_MAX);
    }
}
