//! Reports changes of the connection to the user of the worker.

use std::collections::BTreeMap;

use tokio::sync::mpsc;
use turno_client::{Slots, WorkerEvent};
use turno_proto::native::ClosingReason;

use crate::cli::Invocation;
use crate::cli::error::Failure;
use crate::cli::schema::worker::RegisteredDocument;

/// Events that wait to be told. More: dropped; the connection matters more than the story of it.
const EVENTS_MAX: usize = 256;

/// Turns events into lines on stderr.
pub(crate) struct Observer {
    events: mpsc::Receiver<WorkerEvent>,
    sender: mpsc::Sender<WorkerEvent>,
    registered: RegisteredDocument,
    /// Registered at least once.
    known: bool,
    /// The brokers that were told to be out of reach since the last success.
    unreachable: Vec<String>,
    /// Registered on this connection.
    connected: bool,
    /// Lines about queues from before the registration: they come with the first answer, and that with the last.
    early: Vec<String>,
}

impl Observer {
    pub(crate) fn new(name: &str, slots: Slots, queues: &[String]) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let registered = RegisteredDocument {
            name: name.to_owned(),
            queues: queues.to_vec(),
            slots,
            broker: String::new(),
            id: None,
            labels: BTreeMap::new(),
            foreman: None,
        };
        Self { events, sender, registered, known: false, unreachable: Vec::new(), connected: false, early: Vec::new() }
    }

    /// The callback of the worker; it never waits.
    pub(crate) fn listener(&self) -> impl Fn(WorkerEvent) + Send + Sync + 'static {
        let sender = self.sender.clone();
        move |event| drop(sender.try_send(event))
    }

    pub(crate) async fn next(&mut self) -> WorkerEvent {
        match self.events.recv().await {
            Some(event) => event,
            // Cannot be: this end holds a sender itself.
            None => std::future::pending().await,
        }
    }

    /// Tells what has not been told yet.
    pub(crate) fn tell_waiting(&mut self, invocation: &Invocation) -> Result<(), Failure> {
        while let Ok(event) = self.events.try_recv() {
            self.tell(&event, invocation)?;
        }
        Ok(())
    }

    pub(crate) fn tell(&mut self, event: &WorkerEvent, invocation: &Invocation) -> Result<(), Failure> {
        let is_first = !self.known;
        self.note(event, invocation);
        if let (WorkerEvent::Connected { address, .. }, true) = (event, is_first) {
            self.registered.broker = address.to_string();
            if invocation.output.format().is_json() {
                invocation.output.document(&self.registered)?;
            }
        }
        Ok(())
    }

    /// Tells people alone what has not been told yet.
    pub(crate) fn note_waiting(&mut self, invocation: &Invocation) {
        while let Ok(event) = self.events.try_recv() {
            self.note(&event, invocation);
        }
    }

    /// Tells it to people alone.
    pub(crate) fn note(&mut self, event: &WorkerEvent, invocation: &Invocation) {
        for line in self.lines(event) {
            invocation.output.note(&line);
        }
        self.known |= matches!(event, WorkerEvent::Connected { .. });
    }

    /// The lines that are due with an event, first things first.
    fn lines(&mut self, event: &WorkerEvent) -> Vec<String> {
        let line = self.line(event);
        match event {
            WorkerEvent::Active { .. } | WorkerEvent::StandingBy { .. } if !self.connected => {
                self.early.extend(line);
                Vec::new()
            }
            WorkerEvent::Connected { .. } => {
                self.connected = true;
                line.into_iter().chain(std::mem::take(&mut self.early)).collect()
            }
            WorkerEvent::Lost { .. } | WorkerEvent::Unreachable { .. } | WorkerEvent::Refused { .. } => {
                self.connected = false;
                self.early.clear();
                line.into_iter().collect()
            }
            _ => line.into_iter().collect(),
        }
    }

    /// The line for an event; `None` if it was told before.
    fn line(&mut self, event: &WorkerEvent) -> Option<String> {
        Some(match event {
            WorkerEvent::Connected { address, broker } => {
                self.unreachable.clear();
                let slots = self.registered.slots;
                let again = if self.known { " again" } else { "" };
                let queues = self.registered.queues.join(", ");
                let name = &self.registered.name;
                format!("{name} registered{again}: queues {queues}, slots {slots}, broker {broker} at {address}")
            }
            WorkerEvent::Active { queue, token } => {
                format!("{} is active on queue {queue}, token {token}", self.registered.name)
            }
            WorkerEvent::StandingBy { queue } => format!("{} is on standby for queue {queue}", self.registered.name),
            WorkerEvent::Lost { address, reason } => {
                format!("connection to {address} lost: {reason}; reconnecting")
            }
            WorkerEvent::Unreachable { address, reason } => {
                let place = address.to_string();
                // Before the first success the final error names them all; later once an outage is enough.
                if !self.known || self.unreachable.contains(&place) {
                    return None;
                }
                self.unreachable.push(place);
                format!("{address} does not answer: {reason}; retrying")
            }
            WorkerEvent::Refused { code, detail } => format!("the broker refused the worker: {code} {detail}"),
            WorkerEvent::Closing { reason: ClosingReason::Shutdown } => {
                "the broker is shutting down; moving to the next broker".to_owned()
            }
            WorkerEvent::Closing { reason: ClosingReason::Maintenance } => {
                "the broker is drained for maintenance; waiting, or moving to the next broker".to_owned()
            }
            WorkerEvent::Closing { reason: ClosingReason::Resumed } => "the broker accepts work again".to_owned(),
            WorkerEvent::Closing { reason: ClosingReason::Stop | ClosingReason::Now } => return None,
            WorkerEvent::Dropped { queue, again, .. } => {
                let next = again.map_or_else(
                    || "not consuming it again".to_owned(),
                    |pause| format!("consuming it again in {} s", pause.as_secs()),
                );
                format!("dropped from queue {queue}: deliveries expired at this worker; {next}")
            }
            WorkerEvent::Rejoined { queue } => {
                format!("back in queue {queue}: one delivery at a time until one is settled in time")
            }
            WorkerEvent::Panicked { queue } => format!("a handler of queue {queue} panicked"),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use turno_client::Address;

    use super::*;

    /// Of two queues one is known before the worker is registered, on every connection; that is told in its order.
    #[test]
    fn a_worker_is_registered_before_it_is_active() {
        let mut observer = Observer::new("w", Slots::Limited(10), &["a".to_owned(), "b".to_owned()]);
        let address = || Address::Tcp("h:1".to_owned());
        let active = |token| WorkerEvent::Active { queue: "a".to_owned(), token };
        let standing_by = || WorkerEvent::StandingBy { queue: "b".to_owned() };
        for round in [1, 2] {
            assert_eq!(observer.lines(&active(round)), [""; 0]);
            let lines = observer.lines(&WorkerEvent::Connected { address: address(), broker: "rb".to_owned() });
            assert!(lines[0].starts_with("w registered"), "{lines:?}");
            assert_eq!(lines[1..], [format!("w is active on queue a, token {round}")]);
            assert_eq!(observer.lines(&standing_by()), ["w is on standby for queue b"]);
            assert_eq!(observer.lines(&WorkerEvent::Lost { address: address(), reason: "closed".to_owned() }).len(), 1);
            assert_eq!(observer.lines(&active(7)), [""; 0]);
            let refused = WorkerEvent::Refused { code: turno_proto::model::Code::QueueFull, detail: String::new() };
            assert_eq!(observer.lines(&refused).len(), 1, "and the other is forgotten");
        }
    }

    #[test]
    fn an_outage_is_told_once_and_so_is_its_end() {
        let mut observer = Observer::new("w", Slots::Limited(10), &["a".to_owned(), "b".to_owned()]);
        let address = || Address::Tcp("h:1".to_owned());
        let connected = || WorkerEvent::Connected { address: address(), broker: "rb".to_owned() };
        let unreachable = || WorkerEvent::Unreachable { address: address(), reason: "refused".to_owned() };
        assert_eq!(observer.line(&unreachable()), None);
        let first = observer.line(&connected()).unwrap();
        assert_eq!(first, "w registered: queues a, b, slots 10, broker rb at turno://h:1");
        observer.known = true;
        let lost = WorkerEvent::Lost { address: address(), reason: "closed".to_owned() };
        assert!(observer.line(&lost).unwrap().contains("lost: closed"));
        assert!(observer.line(&unreachable()).is_some());
        assert_eq!(observer.line(&unreachable()), None);
        assert!(observer.line(&connected()).unwrap().contains("registered again"));
        assert!(observer.line(&unreachable()).is_some());
    }
}
