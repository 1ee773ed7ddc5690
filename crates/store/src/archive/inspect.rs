//! Inspection of an archive, without changes to it.

use std::collections::BTreeSet;
use std::io;

use super::record::{ArchiveHeader, Key};
use super::segment::{ArchiveSegment, RecoveredFile, ends};
use super::segment_list::number_of;
use super::trouble::{FileProblem, Flaw, set_aside_from};
use super::uploads::{id_of, sums_of};
use super::{OUTPUT, RESULT};
use crate::disk::{Disk, DiskFile};

/// The result of an inspection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArchiveInspection {
    /// Files of the archive, those that were set aside included.
    pub files: u64,
    /// The bytes of all of them.
    pub bytes: u64,
    /// Records that were read and are whole.
    pub records: u64,
    /// Segments of formats that this version does not know.
    pub newer: Vec<(String, u32)>,
    /// Flaws, by file.
    pub troubles: Vec<FileProblem>,
}

/// Looks at names and first bytes only: safe while a broker writes there.
pub fn inspect_names<D: Disk>(disk: &mut D) -> io::Result<ArchiveInspection> {
    let mut found = ArchiveInspection::default();
    let mut names = disk.names()?;
    names.sort_unstable();
    for name in names {
        let is_segment = is_segment(&name);
        let aside = set_aside_from(&name).map(|(before, _)| before);
        if !is_segment && id_of(&name).is_none() && !aside.is_some_and(is_segment_or_upload) {
            continue;
        }
        found.files += 1;
        let file = disk.open(&name).and_then(|file| Ok((file.len()?, file)));
        found.bytes += file.as_ref().map_or(0, |(len, _)| *len);
        if let Some(before) = aside {
            found.troubles.push(whole(before, Flaw::SetAside(name.clone())));
        } else if let Err(error) = &file {
            found.troubles.push(whole(&name, Flaw::Io(error.to_string())));
        } else if is_segment
            && let Ok((len, file)) = &file
            && let Ok((ArchiveHeader::Newer(format), _)) = ends(file, *len)
        {
            found.newer.push((name, format));
        }
    }
    Ok(found)
}

/// Reads everything through. Nothing must be written there meanwhile.
pub fn inspect<D: Disk>(disk: &mut D) -> io::Result<ArchiveInspection> {
    let mut found = inspect_names(disk)?;
    let names = disk.names()?;
    for prefix in [OUTPUT, RESULT] {
        let mut numbers: Vec<(u32, &String)> =
            names.iter().filter_map(|name| Some((number_of(prefix, name)?, name))).collect();
        numbers.sort_unstable();
        let newest = numbers.last().map(|(number, _)| *number);
        for (number, name) in numbers {
            if let Ok(file) = disk.open(name) {
                found.segment(name, ArchiveSegment::recover(number, file, &BTreeSet::new(), Some(number) == newest));
            }
        }
    }
    for (name, id) in names.iter().filter_map(|name| Some((name, id_of(name)?))) {
        let Ok(file) = disk.open(name) else { continue };
        match sums_of(&file, &id, u64::MAX) {
            Ok(Some(_)) => {}
            Ok(None) => found.troubles.push(FileProblem { until: file.len()?, ..whole(name, Flaw::Hash) }),
            Err(error) => found.troubles.push(whole(name, Flaw::Io(error.to_string()))),
        }
    }
    Ok(found)
}

impl ArchiveInspection {
    fn segment<F: DiskFile>(&mut self, name: &str, recovered: io::Result<RecoveredFile<F>>) {
        let mut segment = match recovered {
            Ok(RecoveredFile::Segment(segment)) => segment,
            Ok(RecoveredFile::Empty | RecoveredFile::Newer) => return,
            Ok(RecoveredFile::Unreadable) => {
                let flaw = Flaw::Io("it has no valid header".to_owned());
                return self.troubles.push(whole(name, flaw));
            }
            Err(error) => return self.troubles.push(whole(name, Flaw::Io(error.to_string()))),
        };
        let mut damaged = segment.known_gaps();
        let mut entries = segment.entries_from(&Key::default());
        loop {
            match entries.peek(&segment) {
                Ok(Some((key, spot))) => match segment.read(&key, &spot) {
                    Some(_) => self.records += 1,
                    None => damaged.push(segment.trouble_of(&spot)),
                },
                Ok(None) => break,
                Err(error) => {
                    self.troubles.push(whole(name, Flaw::Io(error.to_string())));
                    break;
                }
            }
            entries.pop();
        }
        damaged.extend(segment.troubles());
        damaged.sort_unstable_by_key(|(_, from, until)| (*from, *until));
        damaged.dedup_by_key(|(_, from, _)| *from);
        let of_file = |(flaw, from, until)| FileProblem { file: name.to_owned(), from, until, flaw };
        self.troubles.extend(damaged.into_iter().map(of_file));
    }
}

fn is_segment(name: &str) -> bool {
    [OUTPUT, RESULT].iter().any(|prefix| number_of(prefix, name).is_some())
}

fn is_segment_or_upload(name: &str) -> bool {
    is_segment(name) || id_of(name).is_some()
}

fn whole(file: &str, flaw: Flaw) -> FileProblem {
    FileProblem { file: file.to_owned(), from: 0, until: 0, flaw }
}
