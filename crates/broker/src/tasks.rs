//! Tasks of a thread, which ends if one of them panics.
//!
//! The runtime would go on without one that panics. What that task was in the middle of is not to be trusted
//! afterwards, so its thread ends: a router's is replaced, the dispatcher's ends the broker.

use std::rc::Rc;

use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// The tasks of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Tasks {
    broken: Rc<Notify>,
}

impl Tasks {
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + 'static) -> AbortHandle {
        let alarm = Alarm(Rc::clone(&self.broken));
        let task = tokio::task::spawn_local(async move {
            let _alarm = alarm;
            task.await;
        });
        task.abort_handle()
    }

    /// Waits for a task that panics: for ever, if all is well.
    pub(super) async fn broken(&self) {
        self.broken.notified().await;
    }
}

/// Rings when a panic drops it.
struct Alarm(Rc<Notify>);

impl Drop for Alarm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.notify_one();
        }
    }
}
