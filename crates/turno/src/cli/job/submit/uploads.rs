//! The files of a submission and their names. Nothing of them is read yet.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use turno_proto::model::Code;
use turno_proto::model::archive::is_file_name;
use turno_proto::model::limits::{JOB_UPLOADS_MAX, UPLOAD_DEPTH_MAX};

use crate::cli::error::Failure;

/// A file that tasks are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Upload {
    /// Its path in the task's directory.
    pub(super) name: String,
    /// Where it is here.
    pub(super) path: PathBuf,
    /// Bytes of it.
    pub(super) size: u64,
    pub(super) executable: bool,
}

impl Upload {
    /// A file under that name.
    pub(super) fn file(path: &Path, name: &str) -> Result<Self, Failure> {
        let about = look(path)?;
        if !about.is_file() {
            return Err(no_file(path));
        }
        Self::of(path, name, &about)
    }

    fn of(path: &Path, name: &str, about: &Metadata) -> Result<Self, Failure> {
        if !is_file_name(name) {
            return Err(Failure::new(Code::BadUsage, format!("invalid file name for a task: {name:?}"))
                .why("the name must be a path below the task's directory, without . and ..")
                .fix(format!("rename it: --upload {}=NAME", path.display())));
        }
        let executable = about.permissions().mode() & 0o111 != 0;
        Ok(Self { name: name.to_owned(), path: path.to_owned(), size: about.len(), executable })
    }
}

/// The files that were asked for, in order of name: `FILE`, `FILE=NAME`, `DIR` with all that is below it.
pub(super) fn plan(typed: &[PathBuf]) -> Result<Vec<Upload>, Failure> {
    let mut uploads: Vec<Upload> = Vec::new();
    for typed in typed {
        let (path, name) = parted(typed);
        let about = look(&path)?;
        if about.is_dir() {
            let before = uploads.len();
            let name = name.map_or_else(|| own_name(&path), Ok)?;
            below(&path, &name, UPLOAD_DEPTH_MAX, &mut uploads)?;
            if uploads.len() == before {
                return Err(Failure::new(Code::NotFound, format!("no file below {}", path.display()))
                    .why("a directory uploads all files below it"));
            }
        } else if about.is_file() {
            let own = own_name(&path)?;
            let name = match name {
                Some(name) if name.ends_with('/') => name + &own,
                Some(name) => name,
                None => own,
            };
            uploads.push(Upload::of(&path, &name, &about)?);
        } else {
            return Err(no_file(&path));
        }
        if uploads.len() > JOB_UPLOADS_MAX {
            return Err(too_many());
        }
    }
    uploads.sort_by(|a, b| a.name.cmp(&b.name));
    check_names(&uploads)?;
    Ok(uploads)
}

/// No two files of one name, and no file where another one needs a directory.
pub(super) fn check_names(sorted: &[Upload]) -> Result<(), Failure> {
    for (place, upload) in sorted.iter().enumerate() {
        let inside = format!("{}/", upload.name);
        let other =
            sorted.iter().skip(place + 1).find(|other| other.name == upload.name || other.name.starts_with(&inside));
        if let Some(other) = other {
            let (first, second) = (upload.path.display(), other.path.display());
            return Err(Failure::new(
                Code::BadUsage,
                format!("{first} and {second} would both be {:?} in the task's directory", upload.name),
            )
            .why("a file keeps its name without its directories")
            .fix(format!("rename one of them: --upload {second}=NAME")));
        }
    }
    Ok(())
}

/// For more files than a job may name.
pub(super) fn too_many() -> Failure {
    Failure::new(Code::BadJob, format!("a job may have at most {JOB_UPLOADS_MAX} different files"))
        .why("there are more, including the script and the standard input file")
        .fix("pack them: `tar czf files.tgz …`, --upload files.tgz, and `tar xzf files.tgz` in the task")
}

/// The parts before and behind the last `=`, unless all of it names a file.
fn parted(typed: &Path) -> (PathBuf, Option<String>) {
    let parted = || {
        let (path, name) = typed.to_str()?.rsplit_once('=')?;
        (!path.is_empty()).then(|| (PathBuf::from(path), Some(name.to_owned())))
    };
    if fs::symlink_metadata(typed).is_ok() { None } else { parted() }.unwrap_or_else(|| (typed.to_owned(), None))
}

/// The last part of a path: what is below `.` and `..` has names of its own.
fn own_name(path: &Path) -> Result<String, Failure> {
    match path.file_name() {
        None => Ok(String::new()),
        Some(name) => name.to_str().map(ToOwned::to_owned).ok_or_else(|| not_text(path)),
    }
}

/// All files below a directory, in whatever order. Links are followed; one that leads in a circle ends at the depth.
fn below(dir: &Path, name: &str, depth: usize, uploads: &mut Vec<Upload>) -> Result<(), Failure> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Failure::new(Code::BadUsage, format!("{} is nested too deeply", dir.display()))
            .why(format!("directories are read up to {UPLOAD_DEPTH_MAX} levels deep; there may be a circular link"))
            .fix("pack it with `tar`, or list its files individually"));
    };
    let failed = |error: io::Error| cannot_read(dir, &error);
    for entry in fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let own = own_name(&path)?;
        let name = if name.is_empty() { own } else { format!("{}/{own}", name.trim_end_matches('/')) };
        let about = look(&path)?;
        if about.is_dir() {
            below(&path, &name, depth, uploads)?;
        } else if about.is_file() {
            uploads.push(Upload::of(&path, &name, &about)?);
        } else {
            return Err(no_file(&path));
        }
        if uploads.len() > JOB_UPLOADS_MAX {
            return Err(too_many());
        }
    }
    Ok(())
}

fn look(path: &Path) -> Result<Metadata, Failure> {
    fs::metadata(path).map_err(|error| cannot_read(path, &error))
}

pub(super) fn cannot_read(path: &Path, error: &io::Error) -> Failure {
    let code = if error.kind() == io::ErrorKind::NotFound { Code::NotFound } else { Code::Io };
    Failure::new(code, format!("cannot read {}", path.display()))
        .why(error.to_string())
        .fix("use readable files; nothing was submitted")
}

fn no_file(path: &Path) -> Failure {
    Failure::new(Code::BadUsage, format!("{} is neither a file nor a directory", path.display()))
        .why("only files and directories can be uploaded")
        .fix("use files or directories")
}

fn not_text(path: &Path) -> Failure {
    Failure::new(Code::BadUsage, format!("the name of {} is not valid UTF-8", path.display()))
        .why("a job can carry only UTF-8 text")
        .fix("rename it")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn place(files: &[&str]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for file in files {
            let path = dir.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        dir
    }

    /// The names under which they go, or what is wrong.
    fn names(dir: &Path, typed: &[&str]) -> Result<Vec<String>, String> {
        let typed: Vec<PathBuf> = typed.iter().map(|typed| dir.join(typed)).collect();
        match plan(&typed) {
            Ok(uploads) => Ok(uploads.into_iter().map(|upload| upload.name).collect()),
            Err(failure) => Err(failure.what().to_owned()),
        }
    }

    #[test]
    fn files_go_under_their_own_names_or_the_ones_given() {
        let dir = place(&["a.txt", "sub/b.txt", "sub/deep/c", "k=v", "x/a.txt"]);
        let table: [(&[&str], &[&str]); 9] = [
            (&["a.txt"], &["a.txt"]),
            (&["sub/b.txt"], &["b.txt"]),
            (&["a.txt=input/first"], &["input/first"]),
            (&["a.txt=input/"], &["input/a.txt"]),
            (&["sub"], &["sub/b.txt", "sub/deep/c"]),
            (&["sub/", "a.txt"], &["a.txt", "sub/b.txt", "sub/deep/c"]),
            (&["sub=data"], &["data/b.txt", "data/deep/c"]),
            (&["sub=data/"], &["data/b.txt", "data/deep/c"]),
            (&["k=v"], &["k=v"]),
        ];
        for (typed, expected) in table {
            assert_eq!(names(dir.path(), typed).unwrap(), expected, "{typed:?}");
        }
        assert_eq!(names(dir.path(), &["sub/."]).unwrap(), ["sub/b.txt", "sub/deep/c"]);
        assert_eq!(names(dir.path(), &["sub/deep/.."]).unwrap(), ["b.txt", "deep/c"]);
    }

    #[test]
    fn what_cannot_be_given_is_told() {
        let dir = place(&["a.txt", "x/a.txt", "out"]);
        fs::create_dir(dir.path().join("empty")).unwrap();
        fs::create_dir(dir.path().join("many")).unwrap();
        for number in 0..=JOB_UPLOADS_MAX {
            fs::write(dir.path().join(format!("many/{number}")), "").unwrap();
        }
        let table: [(&[&str], &str); 10] = [
            (&["none"], "cannot read"),
            (&["none=a"], "cannot read"),
            (&["a.txt="], "invalid file name for a task: \"\""),
            (&["a.txt=../b"], "invalid file name for a task: \"../b\""),
            (&["a.txt=/b"], "invalid file name for a task: \"/b\""),
            (&["a.txt", "x/a.txt"], "would both be \"a.txt\" in the task's directory"),
            (&["out", "a.txt=out/a"], "would both be \"out\" in the task's directory"),
            (&["empty"], "no file below"),
            (&["x=../up"], "invalid file name for a task: \"../up/a.txt\""),
            (&["many"], "at most 64 different files"),
        ];
        for (typed, expected) in table {
            let said = names(dir.path(), typed).unwrap_err();
            assert!(said.contains(expected), "{typed:?}: {said}");
        }
        assert_eq!(plan(&[dir.path().join("none")]).unwrap_err().exit(), 4);
        assert!(plan(&[PathBuf::from("/dev/null")]).unwrap_err().what().contains("neither a file nor a directory"));
    }

    #[test]
    fn a_link_in_a_circle_comes_to_an_end() {
        let dir = place(&[]);
        std::os::unix::fs::symlink(dir.path(), dir.path().join("circle")).unwrap();
        assert!(names(dir.path(), &["."]).unwrap_err().contains("nested too deeply"));
    }

    #[test]
    fn what_may_be_executed_here_may_be_executed_there() {
        let dir = place(&["run", "data"]);
        fs::set_permissions(dir.path().join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        let uploads = plan(&[dir.path().join("run"), dir.path().join("data")]).unwrap();
        let told: Vec<_> =
            uploads.iter().map(|upload| (upload.name.as_str(), upload.executable, upload.size)).collect();
        assert_eq!(told, [("data", false, 4), ("run", true, 3)]);
    }
}
