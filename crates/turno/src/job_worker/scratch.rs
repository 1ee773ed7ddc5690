//! Scratch directories of tasks, inside the worker's own directory.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use tracing::warn;
use turno_proto::foreman::Task;

/// The worker's own directory. Removed when it is dropped, with all that is in it.
#[derive(Debug)]
pub(crate) struct Scratch {
    root: PathBuf,
}

impl Scratch {
    /// Below `base`, or below the system's directory for what is temporary.
    pub(crate) fn new(base: Option<&Path>, worker: &str) -> io::Result<Self> {
        let base = std::path::absolute(base.map_or_else(std::env::temp_dir, Path::to_owned))?;
        let root = base.join(format!("turno-{worker}"));
        // Others need not see what tasks are given.
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&root)?;
        Ok(Self { root })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// An empty directory for one attempt. It is a direct child of the root: a directory shared by the tasks of a job
    /// would be removed by one task while another creates its own below it.
    pub(crate) fn make(&self, task: &Task) -> io::Result<ScratchDir> {
        let path = self.root.join(format!("task-{}.{}.{}", task.job, task.task, task.attempt));
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path)?;
        Ok(ScratchDir { path })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.root);
    }
}

/// The directory of one attempt. Removed when it is dropped.
#[derive(Debug)]
pub(crate) struct ScratchDir {
    path: PathBuf,
}

impl ScratchDir {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchDir {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// Removes a directory of ours. One that stays is an annoyance, and no reason to stop.
pub(super) fn remove(path: &Path) {
    match std::fs::remove_dir_all(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => warn!(path = %path.display(), %error, "cannot remove a directory"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn directories_come_and_go() {
        let base = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(Some(base.path()), "w-1").unwrap();
        assert_eq!(scratch.root(), base.path().join("turno-w-1"));
        let task = |task| Task { job: 7, task, attempt: 2, ..Task::default() };
        let first = scratch.make(&task(3)).unwrap();
        assert_eq!(first.path(), scratch.root().join("task-7.3.2"));
        fs::write(first.path().join("left"), "behind").unwrap();
        let second = scratch.make(&task(4)).unwrap();
        drop(first);
        assert!(!scratch.root().join("task-7.3.2").exists() && second.path().is_dir());
        drop(second);
        assert_eq!(fs::read_dir(scratch.root()).unwrap().count(), 0);
        let kept = scratch.make(&task(5)).unwrap();
        drop(scratch);
        assert_eq!(fs::read_dir(base.path()).unwrap().count(), 0, "nothing is left");
        drop(kept);
    }

    /// Tasks of one job begin and end at the same time: none of them loses its directory to another.
    #[test]
    fn tasks_that_end_leave_those_that_begin_alone() {
        let base = tempfile::tempdir().unwrap();
        let scratch = Scratch::new(Some(base.path()), "w-1").unwrap();
        std::thread::scope(|scope| {
            for slot in 0..8 {
                let scratch = &scratch;
                scope.spawn(move || {
                    for attempt in 1..=500 {
                        let task = Task { job: 7, task: slot, attempt, ..Task::default() };
                        let own = scratch.make(&task).unwrap();
                        fs::write(own.path().join("file"), "").unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(scratch.root()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_an_error() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(Scratch::new(Some(&file), "w").is_err());
    }
}
