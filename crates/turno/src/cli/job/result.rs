//! `turno job result`: files that tasks brought back.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use turno_client::{AdminAnswer, AdminCall};
use turno_proto::model::Code;
use turno_proto::model::archive::{FileView, is_file_name};
use turno_proto::model::job::JobId;
use turno_proto::model::limits::PAGE_MAX;

use super::select::JobPart;
use super::{JobClient, check_tasks, named};
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;
use crate::cli::schema::output::{ResultListDocument, ResultRow};

/// Fetch the files that tasks returned
///
/// Each file is written to DIR/TASK/NAME and replaces an existing one. Nothing is written outside DIR. If several
/// attempts of a task returned the same file, the latest one is fetched. Damaged files are named as lost; the others
/// are fetched, and the command fails.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno job result last", "turno job result 7 --dir results", "turno job result 7.1-20 --list"],
    &[1, 4, 5, 78, 124],
))]
pub(super) struct ResultArgs {
    /// Job or some of its tasks: 7, last, 7.1-20
    job: JobPart,

    /// Target directory [default: job-7 for job 7]
    #[arg(short, long, value_name = "DIR")]
    dir: Option<PathBuf>,

    /// List the files only
    #[arg(long, conflicts_with = "dir")]
    list: bool,
}

pub(super) async fn run(args: &ResultArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let asked = JobClient::connect(invocation).await?;
    let view = asked.find(args.job.job).await?;
    args.job.tasks.as_deref().map_or(Ok(()), |tasks| check_tasks(&view, tasks))?;
    let job = view.id;
    let (files, damaged) = asked.files(job, args).await?;
    let mut rows: Vec<ResultRow> = files.into_iter().map(|file| ResultRow { file, path: None }).collect();
    if !args.list {
        let dir = args.dir.clone().unwrap_or_else(|| PathBuf::from(format!("job-{job}")));
        for row in rows.iter_mut().filter(|row| !row.file.lost) {
            match asked.fetch(job, &row.file, &dir).await {
                Ok(path) => row.path = Some(path.display().to_string()),
                // The others may be whole.
                Err(failure) if failure.code() == Code::ArchiveDamaged => row.file.lost = true,
                Err(failure) => return Err(failure),
            }
        }
        let fetched = rows.iter().filter(|row| row.path.is_some()).count();
        if fetched > 0 {
            invocation.output.hint(&format!("{fetched} files are in {}", dir.display()));
        }
    }
    invocation.output.rows(&ResultListDocument { job: job.to_string(), files: &rows, damaged }, &rows)?;
    let lost = rows.iter().map(|row| &row.file).filter(|file| file.lost);
    let lost: Vec<String> = lost.map(|file| format!("{} {}", file.id, file.name)).collect();
    if !lost.is_empty() {
        let what =
            format!("{} of {} files of job {job} are lost because the archive is damaged", lost.len(), rows.len());
        return Err(Failure::new(Code::ArchiveDamaged, what).why(named_few(&lost)));
    }
    if damaged {
        invocation.output.warn(
            "files may be lost: part of the archive is unreadable, and its owner is unknown; `turno doctor` shows \
                 details",
        );
    } else if rows.is_empty() {
        invocation.output.hint("no task returned files; choose them with `turno submit --collect GLOB`");
    }
    Ok(0)
}

/// The first of them by name.
fn named_few(lost: &[String]) -> String {
    const FEW: usize = 5;
    let first = lost.iter().take(FEW).map(String::as_str).collect::<Vec<_>>().join(", ");
    match lost.len().checked_sub(FEW).filter(|more| *more > 0) {
        Some(more) => format!("the archive cannot read {first} and {more} more"),
        None => format!("the archive cannot read {first}"),
    }
}

impl JobClient<'_> {
    /// The files that are meant, by task and name, and whether others may be lost.
    async fn files(&self, job: JobId, args: &ResultArgs) -> Result<(Vec<FileView>, bool), Failure> {
        let tasks = args.job.tasks.as_deref();
        let is_meant = |file: &FileView| {
            tasks.is_none_or(|tasks| tasks.iter().any(|(first, last)| (*first..=*last).contains(&file.task)))
        };
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let call = AdminCall::JobFiles { job, after, limit: PAGE_MAX };
            match self.patient(call).await.map_err(|failure| named(failure, job))? {
                AdminAnswer::Files { files, next, damaged } => {
                    all.extend(files.into_iter().filter(is_meant));
                    match next {
                        Some(next) => after = Some(next),
                        None => return Ok((all, damaged)),
                    }
                }
                other => return Err(connect::unexpected(&other)),
            }
        }
    }

    /// Writes one file; where it is.
    async fn fetch(&self, job: JobId, file: &FileView, dir: &Path) -> Result<PathBuf, Failure> {
        let FileView { task, name, bytes: size, .. } = file;
        let path = place(dir, *task, name).map_err(|error| unwritable(dir, &error))?;
        let mut part = path.clone().into_os_string();
        part.push(".turno-part");
        let part = PathBuf::from(part);
        let mut out = create(&part).map_err(|error| unwritable(&part, &error))?;
        let mut at = 0;
        while at < *size {
            let call = AdminCall::JobFile { job, task: *task, name: name.clone(), at };
            let answer = self.patient(call).await.inspect_err(|_| drop(fs::remove_file(&part)))?;
            let bytes = match answer {
                AdminAnswer::Piece { bytes, size: now } if now == *size && !bytes.is_empty() => bytes,
                AdminAnswer::Piece { .. } => {
                    return Err(Failure::new(
                        Code::Io,
                        format!("{name} of task {job}.{task} changed during the download"),
                    )
                    .why("a later attempt of the task replaced it")
                    .fix("fetch it again"));
                }
                other => return Err(connect::unexpected(&other)),
            };
            out.write_all(&bytes).map_err(|error| unwritable(&part, &error))?;
            at += bytes.len() as u64;
        }
        drop(out);
        fs::rename(&part, &path).map_err(|error| unwritable(&path, &error))?;
        Ok(path)
    }
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::system(format!("cannot write {}", path.display()), error)
}

/// Where a file goes, with the directories above it made. Whatever the broker says, that is below `dir`: names that lead
/// elsewhere are refused, and so are links in the way.
fn place(dir: &Path, task: u32, name: &str) -> io::Result<PathBuf> {
    if !is_file_name(name) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("invalid file name {name:?}")));
    }
    DirBuilder::new().recursive(true).create(dir)?;
    let mut path = dir.join(task.to_string());
    let mut parts = name.split('/').peekable();
    make_directory(&path)?;
    while let Some(part) = parts.next() {
        path.push(part);
        if parts.peek().is_some() {
            make_directory(&path)?;
        }
    }
    match fs::symlink_metadata(&path) {
        Ok(found) if !found.is_file() => {
            Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{} exists and is not a file", path.display())))
        }
        _ => Ok(path),
    }
}

/// Makes a directory, or finds one that is no link.
fn make_directory(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            format!("{} exists and is not a directory", path.display()),
        )),
        Err(error) if error.kind() == io::ErrorKind::NotFound => fs::create_dir(path),
        Err(error) => Err(error),
    }
}

/// A new file; one that a fetch left behind goes, links too.
fn create(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => OpenOptions::new().write(true).create_new(true).open(path),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn nothing_is_written_outside_the_directory() {
        let home = tempfile::tempdir().unwrap();
        let (dir, outside) = (home.path().join("dir"), home.path().join("outside"));
        fs::create_dir(&outside).unwrap();
        assert_eq!(place(&dir, 3, "a/b.txt").unwrap(), dir.join("3/a/b.txt"));
        assert!(dir.join("3/a").is_dir());
        for name in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/.", "a\0b"] {
            assert!(place(&dir, 3, name).is_err(), "{name:?}");
        }
        symlink(&outside, dir.join("3/link")).unwrap();
        symlink(&outside, dir.join("4")).unwrap();
        symlink(outside.join("file"), dir.join("3/a/file")).unwrap();
        for (task, name) in [(3, "link/x"), (3, "link"), (4, "x"), (3, "a/file"), (3, "a")] {
            assert!(place(&dir, task, name).is_err(), "{task}/{name}");
        }
        // A link where the file is written first is replaced, not followed.
        let part = dir.join("3/part");
        symlink(outside.join("part"), &part).unwrap();
        create(&part).unwrap();
        assert!(fs::symlink_metadata(&part).unwrap().is_file());
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }
}
