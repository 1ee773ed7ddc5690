//! A process group: a program and all its children, ended together.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;

/// A process group. Dropped before its end is known, it is killed: its owner must not leave
/// a program behind.
#[derive(Debug)]
pub(crate) struct ProcessGroup {
    id: Option<Pid>,
}

impl ProcessGroup {
    /// The group that the child leads.
    pub(crate) fn of(child: &Child) -> Self {
        Self { id: child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) }
    }

    /// The number of its leader, and of the group; `None` if its end is known.
    pub(crate) const fn id(&self) -> Option<Pid> {
        self.id
    }

    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Whether any process of the group still runs. While one is left, the number cannot mean another group.
    pub(crate) fn is_alive(&self) -> bool {
        self.id.is_some_and(is_alive)
    }

    /// Its leader ended by itself: what it left running in the background is its own affair.
    pub(crate) fn release(&mut self) {
        self.id = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // Gone already is as good as signalled.
            let _ = kill_process_group(id, signal);
        }
    }
}

/// Whether any process of the group still runs.
pub(crate) fn is_alive(group: Pid) -> bool {
    test_kill_process_group(group).is_ok() && any_runs(group).unwrap_or(true)
}

/// Whether a process of the group is more than a zombie that its new parent has not looked at yet: some take
/// seconds for that, and some containers have nobody to do it. `None` where the system does not tell.
fn any_runs(group: Pid) -> Option<bool> {
    let mut any = None;
    for process in processes()? {
        let Some((of, runs)) = group_of(&process) else { continue };
        any = Some(any.unwrap_or(false) || (of == group && runs));
    }
    any
}

/// The directories of all processes, where the system has such.
pub(crate) fn processes() -> Option<impl Iterator<Item = PathBuf>> {
    let is_one = |entry: &fs::DirEntry| entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit);
    Some(fs::read_dir("/proc").ok()?.flatten().filter(is_one).map(|entry| entry.path()))
}

/// The group of a process, and whether it is more than a zombie.
pub(crate) fn group_of(process: &Path) -> Option<(Pid, bool)> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    // The name in parentheses may hold anything; behind it stand state, parent and group.
    let mut fields = stat.rsplit(") ").next()?.split(' ');
    let state = fields.next()?;
    // A process that is just being forgotten is in group -1.
    let group = fields.nth(1)?.parse().ok().filter(|group| *group > 0).and_then(Pid::from_raw)?;
    Some((group, state != "Z"))
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
