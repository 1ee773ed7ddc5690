//! Files of tasks: uploads, the directory a task runs in, and results.
//!
//! A task that is given files or brings some back runs in a directory of its own, its scratch, unless its job names another
//! one. Files are copies there: what a task does to them concerns nobody else.

mod cache;
mod collect;
mod place;
mod results;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use turno_proto::foreman::Task;

use super::disk;
use super::outbox::Outbox;
use super::scratch::{Scratch, ScratchDir};
use super::verdict::words;
use cache::Cache;

/// Sees to the files of all tasks. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    scratch: Arc<Scratch>,
    cache: Arc<Cache>,
    outbox: Outbox,
}

/// The prepared directory and input of a program.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Where it runs.
    pub(crate) dir: PathBuf,
    /// Its standard input; empty if missing.
    pub(crate) stdin: Option<std::fs::File>,
    /// The directory of its own.
    pub(crate) scratch: Option<ScratchDir>,
}

impl Files {
    pub(crate) fn new(scratch: Arc<Scratch>, outbox: Outbox) -> Self {
        let cache = Arc::new(Cache::new(scratch.root().join("cache"), outbox.clone()));
        Self { scratch, cache, outbox }
    }

    /// Where a task runs, and what it reads. An error is the status with which the task fails.
    pub(crate) async fn prepare(&self, task: &Task) -> Result<Prepared, String> {
        let (dir, scratch) = self.directory(task)?;
        for file in &task.files {
            place::place(&self.cache, &dir, file).await?;
        }
        let stdin = match task.stdin {
            Some(upload) => Some(place::open(&self.cache, upload).await?),
            None => None,
        };
        Ok(Prepared { dir, stdin, scratch })
    }

    /// The task has ended, in success or not: only then its results are sent. An error is the status with which it fails
    /// all the same. Its own directory is removed.
    pub(crate) async fn finish(&self, task: &Task, prepared: Prepared, success: bool) -> Result<(), String> {
        let Prepared { dir, scratch, .. } = prepared;
        let sent =
            if success && !task.collect.is_empty() { results::send(&self.outbox, task, dir).await } else { Ok(()) };
        // A task may have left many files.
        let removed = disk::blocking(move || {
            drop(scratch);
            Ok(())
        });
        sent.and(removed.await)
    }

    fn directory(&self, task: &Task) -> Result<(PathBuf, Option<ScratchDir>), String> {
        let named = Path::new(&task.working_dir);
        let is_named = !task.working_dir.is_empty();
        let has_files = !task.files.is_empty() || !task.collect.is_empty();
        if is_named && !task.dir_optional && !task.files.is_empty() {
            return Err("a task with uploads uses its own directory: omit --cwd".to_owned());
        }
        let wants_own = has_files && (!is_named || task.dir_optional);
        if is_named && !wants_own && named.is_dir() {
            return Ok((named.to_owned(), None));
        }
        if is_named && !task.dir_optional {
            return Err(format!("no such directory: {}", named.display()));
        }
        if !is_named && !wants_own {
            let here = std::env::current_dir();
            let here = here.map_err(|error| format!("no working directory ({})", words(&error)))?;
            return Ok((here, None));
        }
        let own = self.scratch.make(task);
        let own = own.map_err(|error| format!("cannot create directory ({})", words(&error)))?;
        Ok((own.path().to_owned(), Some(own)))
    }
}
