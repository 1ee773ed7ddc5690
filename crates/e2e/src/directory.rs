//! The contents of a directory, to be compared with later ones.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

/// Length and hash of every plain file in a directory and below, by its path in it. Sockets have no content.
pub fn state(directory: &Path) -> BTreeMap<String, (usize, u64)> {
    let mut found = BTreeMap::new();
    look(directory, "", &mut found);
    found
}

fn look(directory: &Path, before: &str, found: &mut BTreeMap<String, (usize, u64)>) {
    for entry in fs::read_dir(directory).expect("a directory of the test's own") {
        let entry = entry.expect("a directory of the test's own");
        let name = format!("{before}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().expect("a directory of the test's own");
        if kind.is_dir() {
            look(&entry.path(), &format!("{name}/"), found);
        } else if kind.is_file() {
            let bytes = fs::read(entry.path()).expect("a file of the test's own");
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            found.insert(name, (bytes.len(), hasher.finish()));
        }
    }
}
