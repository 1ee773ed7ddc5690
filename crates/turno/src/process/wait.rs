//! Waits for child processes.

use std::fs;
use std::path::Path;
use std::time::Duration;

/// Long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(5);

/// Until the file is there.
pub(crate) async fn until_there(path: &Path) {
    until(&format!("{} is there", path.display()), || path.exists()).await;
}

/// Until the process is gone, or a zombie that waits for its parent to look.
pub(crate) async fn until_gone(pid: &str) {
    let stat = Path::new("/proc").join(pid).join("stat");
    until(&format!("process {pid} is gone"), || match fs::read_to_string(&stat) {
        Err(_) => true,
        Ok(text) => text.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z')),
    })
    .await;
}

pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(LOOK).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, waiting).await.is_ok(), "not in time: {what}");
}
