//! A program and all that it started: one process group, ended as one.

use std::fs;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::Child;

/// A process group. Dropped before its end is known, it is killed: whoever stops caring for a delivery must not
/// leave its program behind.
#[derive(Debug)]
pub(super) struct Group {
    id: Option<Pid>,
}

impl Group {
    /// The group that the child leads.
    pub(super) fn of(child: &Child) -> Self {
        Self { id: child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw) }
    }

    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Whether any process of the group still runs. While one is left, the number cannot mean another group.
    pub(super) fn is_alive(&self) -> bool {
        self.id.is_some_and(|id| test_kill_process_group(id).is_ok() && any_runs(id).unwrap_or(true))
    }

    /// Its leader ended by itself: what it left running in the background is its own affair.
    pub(super) fn release(&mut self) {
        self.id = None;
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // Gone already is as good as signalled.
            let _ = kill_process_group(id, signal);
        }
    }
}

/// Whether a process of the group is more than a zombie that its new parent has not looked at yet: some take
/// seconds for that, and some containers have nobody to do it. `None` where the system does not tell.
fn any_runs(group: Pid) -> Option<bool> {
    let mut runs = None;
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        if !entry.file_name().as_encoded_bytes().first().is_some_and(u8::is_ascii_digit) {
            continue;
        }
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The name in parentheses may hold anything; behind it stand state, parent and group.
        let mut fields = stat.rsplit(") ").next().unwrap_or_default().split(' ');
        let (state, id) = (fields.next(), fields.nth(1).and_then(|id| id.parse().ok()).and_then(Pid::from_raw));
        runs = Some(runs.unwrap_or(false) || (id == Some(group) && state != Some("Z")));
    }
    runs
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}
