//! Disk access of a worker, with disk errors as statuses of tasks.

use std::io;
use std::path::Path;

use super::verdict::words;

/// `cannot write /out/7/1.1.stdout: no space left on device`.
pub(super) fn cannot(what: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {what} {}: {}", path.display(), words(error))
}

/// Does something that may take the disk's time, aside from what serves the connections.
pub(super) async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    match tokio::task::spawn_blocking(act).await {
        Ok(done) => done,
        Err(error) => Err(format!("the worker failed: {error}")),
    }
}
