//! The queue side of a job worker: its own connection, which ends with the worker.

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;
use turno_client::{WorkerEnd, WorkerHandle};

/// The worker of queues, if there is one.
#[derive(Debug)]
pub(crate) struct Queues {
    running: Option<Arc<WorkerHandle>>,
}

impl Queues {
    pub(crate) const fn new(running: Option<Arc<WorkerHandle>>) -> Self {
        Self { running }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.running.as_ref().map_or(0, |running| running.in_flight())
    }

    pub(crate) const fn is_over(&self) -> bool {
        self.running.is_none()
    }

    /// Takes nothing new; what runs may take so long.
    pub(crate) fn stop(&self, within: Duration) {
        if let Some(running) = self.running.clone() {
            tokio::spawn(async move { running.stop(within).await });
        }
    }

    pub(crate) fn stop_now(&self) {
        if let Some(running) = self.running.clone() {
            tokio::spawn(async move { running.stop_now().await });
        }
    }

    pub(crate) fn resize(&self, slots: u16) {
        if let Some(running) = self.running.clone() {
            tokio::spawn(async move {
                if let Err(error) = running.resize(u32::from(slots)).await {
                    warn!(%error, "cannot change the slots for queues");
                }
            });
        }
    }

    /// Its end; never, if there is none. May be dropped at any time.
    pub(crate) async fn ended(&mut self) -> WorkerEnd {
        let Some(running) = self.running.clone() else { return std::future::pending().await };
        let end = running.wait().await;
        self.running = None;
        end
    }
}
