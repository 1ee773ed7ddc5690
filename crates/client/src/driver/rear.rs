//! A broker that closes is left at once: a driver of its own waits for the calls it has, this one goes on (S2.18).

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use super::{Connection, Driver};
use crate::command::{Cancels, Command, Sink};
use crate::core::{CALLS_MAX, Returned, Ticket};

/// The drivers that wait for brokers that close, as the one that went on sees them.
pub(super) struct Rears {
    drivers: Vec<Rear>,
    back: mpsc::Sender<(Returned, Sink)>,
    returned: mpsc::Receiver<(Returned, Sink)>,
    /// Of a driver left behind: the way to the one that went on.
    front: Option<mpsc::Sender<(Returned, Sink)>>,
}

struct Rear {
    cancels: Arc<Cancels>,
    /// Dropped, it ends the driver.
    commands: mpsc::Sender<Command>,
    task: JoinHandle<()>,
}

impl Default for Rears {
    fn default() -> Self {
        let (back, returned) = mpsc::channel(CALLS_MAX);
        Self { drivers: Vec::new(), back, returned, front: None }
    }
}

impl Rears {
    /// A call that a closing broker gave back.
    pub(super) async fn returned(&mut self) -> (Returned, Sink) {
        match self.returned.recv().await {
            Some(returned) => returned,
            None => std::future::pending().await,
        }
    }

    /// The ticket may be one of theirs.
    pub(super) fn cancel(&self, ticket: Ticket) {
        for rear in &self.drivers {
            rear.cancels.push(ticket);
        }
    }

    /// Ends them and waits until they have said so.
    pub(super) async fn end(self) {
        for Rear { commands, task, .. } in self.drivers {
            drop(commands);
            let _ = task.await;
        }
    }
}

impl Driver {
    /// Leaves a broker that closes to a driver of its own, if it has calls of ours; and gives back what such a driver
    /// could not end.
    pub(super) fn part_ways(&mut self) {
        if let Some(front) = &self.rears.front {
            for returned in self.core.take_returned() {
                if let Some(sink) = self.sinks.remove(&returned.ticket) {
                    // There is room for all calls; nobody takes them only when all is closed, and the caller learns that.
                    let _ = front.try_send((returned, sink));
                }
            }
        }
        let now = self.now();
        let Some(core) = self.core.leave_behind(now) else { return };
        let (commands, receiver) = mpsc::channel(1);
        let cancels = Arc::new(Cancels::default());
        let sinks: HashMap<Ticket, Sink> =
            core.tickets().into_iter().filter_map(|ticket| self.sinks.remove_entry(&ticket)).collect();
        let rears = Rears { front: Some(self.rears.back.clone()), ..Rears::default() };
        let old = Self {
            core,
            origin: self.origin,
            commands: receiver,
            cancels: Arc::clone(&cancels),
            ready: None,
            config: watch::Sender::new(Arc::clone(&self.config.borrow())),
            cache: None,
            cached: Vec::new(),
            sinks,
            connection: std::mem::replace(&mut self.connection, Connection::None),
            out: std::mem::take(&mut self.out),
            written: std::mem::take(&mut self.written),
            crew: None,
            greeted: None,
            closers: Vec::new(),
            orphaned: false,
            farewell: None,
            rears,
        };
        self.rears.drivers.retain(|rear| !rear.task.is_finished());
        // Boxed: a driver's future would contain itself.
        let run: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(old.run());
        self.rears.drivers.push(Rear { cancels, commands, task: tokio::spawn(run) });
    }
}
