//! The tasks that run here.

use std::collections::HashMap;

use tokio::sync::watch;
use tokio::task::{Id, JoinSet};
use tracing::error;
use turno_proto::foreman::{StatusUpdate, Task, WireTaskId};

use super::task::{TaskContext, TaskOrder, run};
use super::verdict::Verdict;

/// Dropped, it kills them all.
#[derive(Debug, Default)]
pub(crate) struct RunningTasks {
    set: JoinSet<StatusUpdate>,
    wishes: HashMap<WireTaskId, watch::Sender<TaskOrder>>,
    names: HashMap<Id, WireTaskId>,
}

impl RunningTasks {
    pub(crate) fn len(&self) -> usize {
        self.set.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    pub(crate) fn start(&mut self, task: Task, context: TaskContext) {
        let name = task.id();
        let (order, wishes) = watch::channel(TaskOrder::Run);
        let handle = self.set.spawn(run(task, context, wishes));
        self.names.insert(handle.id(), name);
        self.wishes.insert(name, order);
    }

    pub(crate) fn cancel(&self, task: WireTaskId) {
        if let Some(order) = self.wishes.get(&task) {
            want(order, TaskOrder::Cancel);
        }
    }

    pub(crate) fn give_back(&self, now: bool) {
        let more = if now { TaskOrder::GiveBackNow } else { TaskOrder::GiveBack };
        self.wishes.values().for_each(|order| want(order, more));
    }

    /// The next that ends; never, if there is none. May be dropped at any time.
    pub(crate) async fn next(&mut self) -> StatusUpdate {
        match self.set.join_next_with_id().await {
            Some(Ok((id, update))) => {
                self.forget(id);
                update
            }
            Some(Err(bug)) => {
                error!(error = %bug, "internal error while a task ran; the task fails");
                let name = self.forget(bug.id()).unwrap_or(WireTaskId { job: 0, task: 0 });
                Verdict::Failed(format!("the worker failed: {bug}")).update(name.job, name.task)
            }
            None => std::future::pending().await,
        }
    }

    fn forget(&mut self, id: Id) -> Option<WireTaskId> {
        let name = self.names.remove(&id)?;
        self.wishes.remove(&name);
        Some(name)
    }
}

fn want(order: &watch::Sender<TaskOrder>, more: TaskOrder) {
    order.send_if_modified(|order| {
        let is_more = more > *order;
        *order = more.max(*order);
        is_more
    });
}
