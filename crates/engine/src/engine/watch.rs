//! Figures for the operator's log, which are read from time to time.

use turno_proto::model::view::{Counters, WorkerView};
use turno_proto::model::{ConnId, QueueName};

use super::Engine;

impl Engine {
    /// The counters since the start.
    pub const fn counters(&self) -> &Counters {
        self.messages.counters()
    }

    /// How many messages of each queue have become dead letters so far; queues without any are left out.
    pub fn dead_by_queue(&self) -> impl Iterator<Item = (&QueueName, u64)> {
        self.messages.dead_by_queue()
    }

    /// The worker on that connection, if it is one.
    pub fn worker(&self, conn: ConnId) -> Option<WorkerView> {
        self.worker_view(conn)
    }

    /// Whether that connection is a job worker's.
    pub fn is_job_worker(&self, conn: ConnId) -> bool {
        self.messages.is_job_worker(conn)
    }

    /// Tasks of jobs that workers have, or had when they were lost.
    pub fn tasks_running(&self) -> u64 {
        self.jobs.view().tasks_running
    }

    /// Whether the broker is drained for maintenance.
    pub fn is_drained(&self) -> bool {
        self.messages.is_in_maintenance()
    }
}
