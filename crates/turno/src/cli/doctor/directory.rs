//! The directory itself: existence, permissions, owner process, and free space.

use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::path::Path;

use rustix::fs::Access;
use turno_proto::model::Code;

use super::Report;
use crate::cli::size;

/// The store may take this much beyond twice what it holds.
const ROOM_WANTED: u64 = 256 << 20;

/// Looks at the directory; whether there is any use in going on.
pub(super) fn look(data: &Path, report: &mut Report) -> bool {
    let shown = data.display();
    match fs::metadata(data) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            let what = format!("{shown} is not a directory");
            report.error("directory", Code::Io, what).advise("set the broker's data directory with --data");
            return false;
        }
        Err(error) => {
            let what = format!("cannot read {shown}: {error}");
            let advice = match error.kind() {
                ErrorKind::NotFound => "expected if no broker has run here yet: turno serve creates it",
                _ => "run this command as the user who runs the broker",
            };
            report.error("directory", Code::Io, what).advise(advice);
            return false;
        }
    }
    match rustix::fs::access(data, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => report.ok("directory", format!("{shown} exists and is writable")),
        Err(error) => {
            let what = format!("{shown} exists but is not writable for this user: {error}");
            report
                .error("directory", Code::Io, what)
                .advise("run the broker as the owner of the directory, or change its owner")
        }
    };
    match is_taken(data) {
        Ok(false) => report.ok("lock", "no broker is running here".to_owned()),
        Ok(true) => {
            let advice = "stop the broker for a full check, or check a copy of the directory";
            report.ok("lock", "a broker is running here: its segments are not checked".to_owned()).advise(advice)
        }
        Err(error) => {
            let what = format!("cannot determine whether a broker is running here: {error}");
            report.warn("lock", what, "run this command as the user who runs the broker")
        }
    };
    disk(data, report);
    true
}

/// Whether a running broker has the directory. The lock is shared for a moment and given back: it is not taken.
pub(super) fn is_taken(data: &Path) -> std::io::Result<bool> {
    let lock = match File::open(data.join("turno.lock")) {
        Ok(lock) => lock,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    match lock.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn disk(data: &Path, report: &mut Report) {
    match rustix::fs::statvfs(data) {
        Ok(found) => {
            let free = found.f_bavail.saturating_mul(found.f_frsize);
            let what = format!("{} free", size::short(free));
            if free < ROOM_WANTED {
                let advice =
                    "on a full disk the broker refuses sends and loses nothing; free space, or let workers catch up";
                report.warn("disk", what, advice);
            } else {
                report.ok("disk", what);
            }
        }
        Err(error) => {
            report.warn("disk", format!("cannot determine the free disk space: {error}"), "check with df");
        }
    }
}
