//! Patterns for result files, and the files that match.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use glob::{MatchOptions, Pattern};
use turno_proto::model::archive::is_file_name;
use turno_proto::model::limits;

use crate::job_worker::disk;
use crate::job_worker::verdict::words;

/// As in a shell: a star stays within one part of a path, and does not match hidden files.
const RULES: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// A file that a pattern matches.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// Its path in the task's directory.
    pub(super) name: String,
    pub(super) path: PathBuf,
}

/// The files that any of these patterns matches, by name. Each pattern must match one at least.
pub(super) fn find(dir: &Path, patterns: &[String]) -> Result<Vec<Found>, String> {
    let base = fs::canonicalize(dir).map_err(|error| disk::cannot("read", dir, &error))?;
    let mut search = Search { base, seen: 0, found: BTreeMap::new(), matched: 0 };
    for text in patterns {
        search.matched = 0;
        search.walk("", &parts(text)?).map_err(|why| why.status(text))?;
        if search.matched == 0 {
            return Err(format!("nothing matches {text}"));
        }
    }
    Ok(search.found.into_iter().map(|(name, path)| Found { name, path }).collect())
}

/// A part of a pattern.
enum PatternPart {
    /// One name and no other.
    Name(String),
    /// Names that match.
    Some(Pattern),
    /// Any number of directories.
    Any,
}

fn parts(text: &str) -> Result<Vec<PatternPart>, String> {
    let within = text.strip_suffix('/').unwrap_or(text);
    if !is_file_name(within) {
        return Err(format!("a pattern must be relative to the task's directory: {text}"));
    }
    let part = |part: &str| match part {
        "**" => Ok(PatternPart::Any),
        // Without any of these it means itself.
        name if !name.contains(['*', '?', '[']) => Ok(PatternPart::Name(name.to_owned())),
        name => Pattern::new(name)
            .map(PatternPart::Some)
            .map_err(|error| format!("invalid pattern: {text} ({})", error.msg)),
    };
    within.split('/').map(part).collect()
}

enum CollectError {
    TooManySeen,
    TooManyFound,
    Outside(String),
    NoText(String),
    Unreadable(String, io::Error),
}

impl CollectError {
    fn status(self, pattern: &str) -> String {
        match self {
            Self::TooManySeen => format!("{pattern} visits more than {} files", limits::COLLECT_SEEN_MAX),
            Self::TooManyFound => format!("more than {} files match {pattern}", limits::FILES_PER_TASK_MAX),
            Self::Outside(name) => format!("{name} points out of the task's directory"),
            Self::NoText(name) => format!("a file has a name that cannot be sent: {name}"),
            Self::Unreadable(name, error) => format!("cannot read {name}: {}", words(&error)),
        }
    }
}

struct Search {
    /// The task's directory, without links.
    base: PathBuf,
    seen: usize,
    found: BTreeMap<String, PathBuf>,
    matched: usize,
}

impl Search {
    /// Looks below a directory, given by its name in the task's one, for what the parts match.
    fn walk(&mut self, under: &str, parts: &[PatternPart]) -> Result<(), CollectError> {
        let Some((first, rest)) = parts.split_first() else {
            // The pattern names a directory: all files in it.
            return self.each(under, |_| true, |search, name| search.meet(name, &[]));
        };
        match first {
            PatternPart::Name(name) => self.meet(&join(under, name), rest),
            PatternPart::Some(pattern) => {
                self.each(under, |name| pattern.matches_with(name, RULES), |search, name| search.meet(name, rest))
            }
            PatternPart::Any => {
                self.walk(under, rest)?;
                let visible = |name: &str| !name.starts_with('.');
                self.each(
                    under,
                    visible,
                    |search, name| {
                        if search.is_directory(name) { search.walk(name, parts) } else { Ok(()) }
                    },
                )
            }
        }
    }

    /// Something of that name may be there, and what is left of the pattern says what is wanted of it.
    fn meet(&mut self, name: &str, rest: &[PatternPart]) -> Result<(), CollectError> {
        let path = self.base.join(name);
        let Ok(kind) = fs::symlink_metadata(&path).map(|about| about.file_type()) else { return Ok(()) };
        let only_any = rest.iter().all(|part| matches!(part, PatternPart::Any));
        if kind.is_dir() {
            return self.walk(name, rest);
        }
        if !rest.is_empty() && !only_any {
            return Ok(());
        }
        if kind.is_symlink() {
            // One that leads nowhere, or to a directory, is nothing to send.
            let Ok(real) = fs::canonicalize(&path) else { return Ok(()) };
            if !real.is_file() {
                return Ok(());
            }
            if !real.starts_with(&self.base) {
                return Err(CollectError::Outside(name.to_owned()));
            }
        } else if !kind.is_file() {
            return Ok(());
        }
        if !is_file_name(name) {
            return Err(CollectError::NoText(name.to_owned()));
        }
        self.matched += 1;
        self.found.insert(name.to_owned(), path);
        if self.found.len() > limits::FILES_PER_TASK_MAX as usize { Err(CollectError::TooManyFound) } else { Ok(()) }
    }

    fn each(
        &mut self,
        under: &str,
        wanted: impl Fn(&str) -> bool,
        mut act: impl FnMut(&mut Self, &str) -> Result<(), CollectError>,
    ) -> Result<(), CollectError> {
        let unreadable = |error| CollectError::Unreadable(if under.is_empty() { "." } else { under }.to_owned(), error);
        for entry in fs::read_dir(self.base.join(under)).map_err(unreadable)? {
            self.seen += 1;
            if self.seen > limits::COLLECT_SEEN_MAX {
                return Err(CollectError::TooManySeen);
            }
            let name = entry.map_err(unreadable)?.file_name();
            match name.to_str() {
                Some(name) if wanted(name) => act(self, &join(under, name))?,
                Some(_) => {}
                None if wanted(&name.to_string_lossy()) => {
                    return Err(CollectError::NoText(join(under, &name.to_string_lossy())));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Links to directories are not followed: they may lead round in circles.
    fn is_directory(&self, name: &str) -> bool {
        fs::symlink_metadata(self.base.join(name)).is_ok_and(|about| about.is_dir())
    }
}

fn join(under: &str, name: &str) -> String {
    if under.is_empty() { name.to_owned() } else { format!("{under}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for name in
            ["out.csv", "other.txt", ".hidden.csv", "r/1.csv", "r/2.csv", "r/deep/3.csv", "r/.h/4.csv", "we[ird"]
        {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        }
        fs::create_dir(dir.path().join("empty")).unwrap();
        dir
    }

    fn names(dir: &Path, patterns: &[&str]) -> Result<Vec<String>, String> {
        let patterns: Vec<String> = patterns.iter().map(|&text| text.to_owned()).collect();
        find(dir, &patterns).map(|found| found.into_iter().map(|file| file.name).collect())
    }

    #[test]
    fn patterns_match_as_in_a_shell() {
        let tree = tree();
        let table: [(&[&str], &[&str]); 12] = [
            (&["out.csv"], &["out.csv"]),
            (&["*.csv"], &["out.csv"]),
            (&["*"], &["other.txt", "out.csv", "r/.h/4.csv", "r/1.csv", "r/2.csv", "r/deep/3.csv", "we[ird"]),
            (&[".*.csv"], &[".hidden.csv"]),
            (&["r/*.csv"], &["r/1.csv", "r/2.csv"]),
            (&["*/[12].csv"], &["r/1.csv", "r/2.csv"]),
            (&["r/?.csv", "r/1*", "o*.csv"], &["out.csv", "r/1.csv", "r/2.csv"]),
            (&["**/*.csv"], &["out.csv", "r/1.csv", "r/2.csv", "r/deep/3.csv"]),
            (&["r/**/3.csv"], &["r/deep/3.csv"]),
            (&["r"], &["r/.h/4.csv", "r/1.csv", "r/2.csv", "r/deep/3.csv"]),
            (&["r/deep/"], &["r/deep/3.csv"]),
            (&["we[[]ird"], &["we[ird"]),
        ];
        for (patterns, wanted) in table {
            assert_eq!(
                names(tree.path(), patterns),
                Ok(wanted.iter().map(|&name| name.to_owned()).collect()),
                "{patterns:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_brought_back_is_said() {
        let tree = tree();
        for (pattern, status) in [
            ("results/*.csv", "nothing matches results/*.csv"),
            ("out.csv/x", "nothing matches out.csv/x"),
            ("empty", "nothing matches empty"),
            ("empty/**", "nothing matches empty/**"),
            ("../x", "a pattern must be relative to the task's directory: ../x"),
            ("/etc/passwd", "a pattern must be relative to the task's directory: /etc/passwd"),
            ("", "a pattern must be relative to the task's directory: "),
            ("a**b", "invalid pattern: a**b (recursive wildcards must form a single path component)"),
        ] {
            assert_eq!(names(tree.path(), &["out.csv", pattern]), Err(status.to_owned()), "{pattern}");
        }
        let gone = tree.path().join("gone");
        let status = format!("cannot read {}: no such file or directory", gone.display());
        assert_eq!(names(&gone, &["*"]), Err(status));
    }

    #[test]
    fn links_are_followed_to_files_inside_and_nowhere_else() {
        use std::os::unix::fs::symlink;
        let tree = tree();
        let link = |to: &str, name: &str| symlink(to, tree.path().join(name)).unwrap();
        link("r/1.csv", "latest.csv");
        link("r", "loop.csv");
        link("missing", "nowhere.csv");
        link("..", "r/up");
        assert_eq!(names(tree.path(), &["latest.csv"]), Ok(vec!["latest.csv".to_owned()]));
        let all = names(tree.path(), &["**/*.csv"]).unwrap();
        assert_eq!(all, ["latest.csv", "out.csv", "r/1.csv", "r/2.csv", "r/deep/3.csv"]);
        link("/etc/hostname", "r/host");
        let status = "r/host points out of the task's directory".to_owned();
        if Path::new("/etc/hostname").is_file() {
            assert_eq!(names(tree.path(), &["r/*"]), Err(status));
        }
    }

    #[test]
    fn more_files_than_may_be_brought_back_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..=limits::FILES_PER_TASK_MAX {
            fs::write(dir.path().join(number.to_string()), "").unwrap();
        }
        assert_eq!(names(dir.path(), &["*"]), Err("more than 1000 files match *".to_owned()));
        fs::remove_file(dir.path().join("0")).unwrap();
        assert_eq!(names(dir.path(), &["*"]).map(|all| all.len()), Ok(1_000));
    }

    #[test]
    fn a_name_that_is_no_text_is_told() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(std::ffi::OsStr::from_bytes(b"a\xff.csv")), "").unwrap();
        let status = "a file has a name that cannot be sent: a\u{fffd}.csv".to_owned();
        assert_eq!(names(dir.path(), &["*.csv"]), Err(status));
    }
}
