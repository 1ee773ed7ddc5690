//! The guard: all programs of a worker end with it, even if it is killed.
//!
//! The worker starts this program once more as its watcher, and tells it over a pipe which process groups it has. When the
//! pipe ends without a farewell, the worker is dead, and the watcher ends what it left ([`watch`]).

mod watch;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::Pid;
use tracing::warn;

pub(crate) use watch::watch;

/// The first argument by which this program knows that it is a watcher.
pub(crate) const WORD: &str = "guard-of-worker";

/// The worker's end of the pipe. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    post: Arc<Mutex<GuardMessage>>,
}

#[derive(Debug)]
struct GuardMessage {
    /// The arguments of the watcher.
    arguments: Vec<OsString>,
    watcher: Option<Watcher>,
    groups: BTreeSet<i32>,
}

#[derive(Debug)]
struct Watcher {
    child: Child,
    pipe: ChildStdin,
}

/// A group that is watched until this is dropped.
#[derive(Debug)]
pub(crate) struct Watched {
    guard: Guard,
    group: Option<Pid>,
}

impl Guard {
    /// Starts the watcher of the worker that is known by that id and has that directory.
    pub(crate) fn start(worker: &str, directory: &Path) -> io::Result<Self> {
        let arguments = vec![WORD.into(), worker.into(), directory.into()];
        let watcher = Some(Watcher::start(&arguments)?);
        Ok(Self { post: Arc::new(Mutex::new(GuardMessage { arguments, watcher, groups: BTreeSet::new() })) })
    }

    /// Nobody: tests end what they start.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self {
            post: Arc::new(Mutex::new(GuardMessage { arguments: Vec::new(), watcher: None, groups: BTreeSet::new() })),
        }
    }

    /// A group that must not outlive the worker.
    pub(crate) fn watch(&self, group: Option<Pid>) -> Watched {
        if let Some(group) = group {
            self.with(|post| {
                post.groups.insert(group.as_raw_pid());
                post.say(&format!("+{}\n", group.as_raw_pid()));
            });
        }
        Watched { guard: self.clone(), group }
    }

    /// The worker ends in order and leaves nothing.
    pub(crate) fn dismiss(&self) {
        self.with(|post| {
            post.say("bye\n");
            if let Some(Watcher { mut child, pipe }) = post.watcher.take() {
                drop(pipe);
                // It ends at once: it has nothing to do.
                let _ = child.wait();
            }
        });
    }

    fn with(&self, act: impl FnOnce(&mut GuardMessage)) {
        act(&mut self.post.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(group) = self.group.take() {
            self.guard.with(|post| {
                post.groups.remove(&group.as_raw_pid());
                post.say(&format!("-{}\n", group.as_raw_pid()));
            });
        }
    }
}

impl GuardMessage {
    /// Tells the watcher. One that does not listen any more is replaced by another, which is told all.
    fn say(&mut self, word: &str) {
        let Some(watcher) = &mut self.watcher else { return };
        let Err(error) = watcher.pipe.write_all(word.as_bytes()) else { return };
        warn!(%error, "this worker's watcher does not respond; starting another");
        // It may only have been stopped: two would not agree.
        let _ = watcher.child.kill();
        let _ = watcher.child.wait();
        self.watcher = Watcher::start(&self.arguments)
            .and_then(|mut watcher| {
                let groups: String = self.groups.iter().map(|group| format!("+{group}\n")).collect();
                watcher.pipe.write_all(groups.as_bytes()).map(|()| watcher)
            })
            .inspect_err(|error| warn!(%error, "no watcher: tasks would outlive this worker if it were killed"))
            .ok();
    }
}

impl Watcher {
    fn start(arguments: &[OsString]) -> io::Result<Self> {
        // The program as it runs now, also if its file has been replaced since.
        let own = Path::new("/proc/self/exe");
        let program = if own.exists() { own.to_owned() } else { std::env::current_exe()? };
        let mut child = Command::new(program)
            .arg0("turno")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Signals of a terminal are for the worker.
            .process_group(0)
            .spawn()?;
        let pipe = child.stdin.take().ok_or_else(|| io::Error::other("it has no pipe"))?;
        // The worker never waits for its watcher.
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        Ok(Self { child, pipe })
    }
}
