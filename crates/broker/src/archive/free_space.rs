//! The free space that the archive leaves on the disk for the store of messages.

use std::path::PathBuf;

use rustix::fs::statvfs;
use tracing::{info, warn};
use turno_proto::model::limits::ARCHIVE_FREE_BYTES_MIN;

/// How often the disk is looked at.
const LOOK_MS: u64 = 1_000;

/// The free space that the archive leaves on the disk.
#[derive(Debug)]
pub(super) enum FreeSpace {
    /// Nothing: it is memory.
    None,
    Disk {
        directory: PathBuf,
        looked_ms: Option<u64>,
        has_room: bool,
    },
}

impl FreeSpace {
    pub(super) const fn of(directory: PathBuf) -> Self {
        Self::Disk { directory, looked_ms: None, has_room: true }
    }

    /// Whether the archive may take something.
    pub(super) fn has_room(&mut self, now_ms: u64) -> bool {
        let Self::Disk { directory, looked_ms, has_room } = self else { return true };
        if looked_ms.is_some_and(|looked_ms| now_ms.saturating_sub(looked_ms) < LOOK_MS) {
            return *has_room;
        }
        *looked_ms = Some(now_ms);
        // A system that does not tell is asked by writing.
        let free = statvfs(&*directory).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        let has_room_now = free >= ARCHIVE_FREE_BYTES_MIN;
        if *has_room && !has_room_now {
            warn!(free, least = ARCHIVE_FREE_BYTES_MIN, "disk nearly full: the archive accepts no data");
        } else if !*has_room && has_room_now {
            info!(free, "the archive accepts data again");
        }
        *has_room = has_room_now;
        has_room_now
    }
}
