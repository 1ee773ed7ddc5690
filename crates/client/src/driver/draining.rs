//! A broker that closes is left at once, while a second driver finishes there (S2.18).
//!
//! That driver waits for the calls that the broker has and settles what it delivered; this one goes on at the next broker.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use turno_proto::model::Code;

use super::{Connection, Driver};
use crate::command::{Cancels, Command, Sink};
use crate::core::{CALLS_MAX, CoreEvent, Held, Returned, Ticket};

/// Commands of handlers that a driver left behind has not dealt with. More: it is ended, and what it has goes to other workers.
const WORDS_MAX: usize = 65_536;

/// A message of a driver that was left behind to the one that went on.
pub(super) enum ReturnedCall {
    /// A call that the broker gave back.
    Call(Box<Returned>, Sink),
    /// The broker wants no more of a delivery, or the connection is gone.
    Cancel(Held, Code),
}

/// The drivers that wait for brokers that close, as the one that went on sees them.
pub(super) struct DrainingConnections {
    drivers: Vec<DrainingConnection>,
    back: mpsc::Sender<ReturnedCall>,
    returned: mpsc::Receiver<ReturnedCall>,
    /// Of a driver left behind: the way to the one that went on.
    front: Option<mpsc::Sender<ReturnedCall>>,
}

struct DrainingConnection {
    cancels: Arc<Cancels>,
    /// Dropped, it ends the driver.
    commands: mpsc::Sender<Command>,
    task: JoinHandle<()>,
}

impl Default for DrainingConnections {
    fn default() -> Self {
        let (back, returned) = mpsc::channel(CALLS_MAX);
        Self { drivers: Vec::new(), back, returned, front: None }
    }
}

impl DrainingConnections {
    /// Waits for their next message.
    pub(super) async fn returned(&mut self) -> ReturnedCall {
        match self.returned.recv().await {
            Some(returned) => returned,
            None => std::future::pending().await,
        }
    }

    /// The ticket may be one of theirs.
    pub(super) fn cancel(&self, ticket: Ticket) {
        for draining in &self.drivers {
            draining.cancels.push(ticket);
        }
    }

    /// A command about a delivery of one of them: the others know nothing of it.
    pub(super) fn pass_on(&mut self, word: impl Fn() -> Command) {
        self.drivers.retain(|draining| !matches!(draining.commands.try_send(word()), Err(TrySendError::Full(_))));
    }

    /// Ends them and waits until they have said so.
    pub(super) async fn end(self) {
        for DrainingConnection { commands, task, .. } in self.drivers {
            drop(commands);
            let _ = task.await;
        }
    }
}

impl Driver {
    /// Leaves a broker that closes to a driver of its own, if it has calls of ours; and gives back what such a driver
    /// could not end.
    pub(super) fn part_ways(&mut self) {
        if let Some(front) = &self.draining.front {
            for returned in self.core.take_returned() {
                if let Some(sink) = self.sinks.remove(&returned.ticket) {
                    // There is room for all calls; nobody takes them only when all is closed, and the caller learns that.
                    let _ = front.try_send(ReturnedCall::Call(Box::new(returned), sink));
                }
            }
        }
        let now = self.now();
        let Some(core) = self.core.leave_behind(now) else { return };
        let (commands, receiver) = mpsc::channel(WORDS_MAX);
        let cancels = Arc::new(Cancels::default());
        let sinks: HashMap<Ticket, Sink> =
            core.tickets().into_iter().filter_map(|ticket| self.sinks.remove_entry(&ticket)).collect();
        let draining =
            DrainingConnections { front: Some(self.draining.back.clone()), ..DrainingConnections::default() };
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
            running_deliveries: None,
            failed: None,
            causes: HashMap::new(),
            lost: None,
            greeted: None,
            closers: Vec::new(),
            orphaned: false,
            farewell: None,
            draining,
        };
        self.draining.drivers.retain(|draining| !draining.task.is_finished());
        // Boxed: a driver's future would contain itself.
        let run: std::pin::Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(old.run());
        self.draining.drivers.push(DrainingConnection { cancels, commands, task: tokio::spawn(run) });
    }

    /// A driver left behind has no handlers: the one that went on does.
    pub(super) fn tell_front(&self, event: &CoreEvent) {
        if let (Some(front), CoreEvent::CancelDelivery { held, reason }) = (&self.draining.front, event) {
            // Without room the handler is not told, and what it says of the delivery is dropped.
            let _ = front.try_send(ReturnedCall::Cancel(*held, *reason));
        }
    }
}
