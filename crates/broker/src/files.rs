//! The limit on open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Open files that a program needs beside its connections.
const OTHERS: u64 = 128;

/// As many open files as the system allows without asking anyone.
pub fn raise_file_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        warn!(%error, "cannot raise the open-file limit");
    }
}

/// The same, if so many are needed: programs that are started have the limit, too, and some do not like a high one.
pub fn need_files(count: u64) {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_some_and(|current| current < count.saturating_add(OTHERS)) {
        raise_file_limit();
        if let Some(maximum) = maximum.filter(|maximum| *maximum < count.saturating_add(OTHERS)) {
            warn!(count, maximum, "the open-file limit is lower than this worker's slots may need");
        }
    }
}

/// How many files may be open, and how many a program with so many connections needs, if those are more.
pub fn too_few_files(connections: u64) -> Option<(u64, u64)> {
    let (files, wanted) = (getrlimit(Resource::Nofile).current?, connections.saturating_add(OTHERS));
    (files < wanted).then_some((files, wanted))
}
