//! The end of a process group: by itself, by TERM, or by KILL after the grace time.
//!
//! Nothing here waits. The owner of a group asks when something is due, and takes a turn then.

use std::time::Duration;

use tokio::time::Instant;

use super::ProcessGroup;

/// How long a group that was told to end may take before it is killed.
pub(crate) const GRACE: Duration = Duration::from_secs(5);
/// How long a group may outlive its leader, and how long a killed one is waited for.
const LINGER: Duration = Duration::from_secs(5);
/// How often a group whose end is near is looked at: soon at first, then less often.
const LOOK_FIRST: Duration = Duration::from_millis(1);
const LOOK: Duration = Duration::from_millis(50);

/// Why a group does not simply run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupPhase {
    /// It does.
    Runs,
    /// Its leader has ended by itself.
    Left,
    /// It was told to end.
    Told,
    /// It was killed.
    Killed,
}

/// Where a group is on its way to its end.
#[derive(Debug)]
pub(crate) struct Ending {
    phase: GroupPhase,
    /// When the next phase begins.
    until: Instant,
    look: Duration,
    due: Option<Instant>,
}

impl Ending {
    pub(crate) fn new() -> Self {
        Self { phase: GroupPhase::Runs, until: Instant::now(), look: LOOK_FIRST, due: None }
    }

    /// Nobody told it to end.
    pub(crate) fn is_free(&self) -> bool {
        matches!(self.phase, GroupPhase::Runs | GroupPhase::Left)
    }

    /// It was told to end and may still obey.
    pub(crate) fn is_told(&self) -> bool {
        self.phase == GroupPhase::Told
    }

    /// Its leader has ended: what it left behind has a few seconds.
    pub(crate) fn left(&mut self) {
        if self.phase == GroupPhase::Runs {
            self.begin(GroupPhase::Left, LINGER);
        }
    }

    /// TERM, and KILL 5 s later.
    pub(crate) fn terminate(&mut self, group: &ProcessGroup) {
        if self.is_free() {
            group.terminate();
            self.begin(GroupPhase::Told, GRACE);
        }
    }

    /// KILL.
    pub(crate) fn kill(&mut self, group: &ProcessGroup) {
        if self.phase != GroupPhase::Killed {
            group.kill();
            self.begin(GroupPhase::Killed, LINGER);
        }
    }

    /// When to take a turn.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Does what is due. True: all was done, and a process that still holds its pipes is out of reach.
    pub(crate) fn turn(&mut self, now: Instant, group: &ProcessGroup) -> bool {
        if now < self.until {
            self.due = Some((now + self.look).min(self.until));
            self.look = (self.look * 2).min(LOOK);
            return false;
        }
        match self.phase {
            GroupPhase::Runs => false,
            GroupPhase::Left | GroupPhase::Told => {
                let is_alive = group.is_alive();
                self.kill(group);
                if !is_alive {
                    // There is nothing to wait for but the news of it.
                    self.until = now + LOOK;
                }
                false
            }
            GroupPhase::Killed => true,
        }
    }

    fn begin(&mut self, phase: GroupPhase, within: Duration) {
        let now = Instant::now();
        (self.phase, self.until, self.look) = (phase, now + within, LOOK_FIRST);
        self.due = Some(now + self.look);
    }
}

/// Waits for that moment; for ever if there is none.
pub(crate) async fn at(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
