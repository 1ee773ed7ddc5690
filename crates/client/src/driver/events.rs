//! Effects of the core's events: answers to callers, deliveries for handlers, another connection.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use turno_proto::model::{Code, Payload, Topic};
use turno_proto::native::Config;

use super::{Connection, Driver};
use crate::command::Sink;
use crate::core::{CoreEvent, Ticket, taken};
use crate::stream::Stream;
use crate::subscription::{Event as Published, Received};
use crate::{Address, Answer, ConnectAttempt, Error, Message, Stored, WorkerEvent, cache};

impl Driver {
    pub(super) fn handle_event(&mut self, event: CoreEvent) {
        self.note_cause(&event);
        match event {
            CoreEvent::Connect { address } => self.connection = Connection::Dialling(Box::pin(Stream::dial(address))),
            CoreEvent::Disconnect { flush } => self.disconnect(flush),
            CoreEvent::Opened { address, config } => self.handle_opened(address, *config),
            CoreEvent::GaveUp { tried } => {
                let attempts = tried.into_iter().map(|(address, reason)| {
                    let cause = self.causes.get(&address).cloned();
                    ConnectAttempt::new(address, reason).with_source(cause)
                });
                let error = Error::cannot_connect(attempts);
                self.never_began(error);
            }
            CoreEvent::Reply { ticket, more, payload } => self.handle_reply(ticket, more, &payload),
            CoreEvent::Progress { ticket, payload } => {
                let Some(sink) = self.sinks.get_mut(&ticket) else { return };
                let taken = Message::from_payload(&payload).map_err(Error::from).and_then(|word| sink.progress(word));
                self.end_on_error(ticket, taken);
            }
            CoreEvent::Delivered { ticket } => {
                if let Some(sink) = self.sinks.remove(&ticket) {
                    sink.finish(Message::default());
                }
            }
            CoreEvent::Stored { ticket, id, durability, duplicate } => {
                if let Some(Sink::Stored(answer)) = self.sinks.remove(&ticket) {
                    let _ = answer.send(Ok(Stored { id, durability, duplicate }));
                }
            }
            CoreEvent::Answer { ticket, worker, name, more, failed, payload } => {
                let Some(sink) = self.sinks.get_mut(&ticket) else { return };
                let taken = Answer::new(worker, name, more, failed, &payload).and_then(|answer| sink.answer(answer));
                self.end_on_error(ticket, taken);
            }
            CoreEvent::BroadcastEnd { ticket, end } => {
                if let Some(sink) = self.sinks.remove(&ticket) {
                    sink.end(*end);
                }
            }
            CoreEvent::Admin { ticket, answer } => {
                if let Some(Sink::Admin(caller)) = self.sinks.remove(&ticket) {
                    let _ = caller.send(Ok(*answer));
                }
            }
            CoreEvent::Resized { ticket } | CoreEvent::PublishDone { ticket } => {
                if let Some(Sink::Done(answer)) = self.sinks.remove(&ticket) {
                    let _ = answer.send(Ok(()));
                }
            }
            CoreEvent::Subscribed { ticket } => {
                if let Some(Sink::Subscribed { begun, .. }) = self.sinks.get_mut(&ticket) {
                    let _ = begun.take().map(|begun| begun.send(Ok(())));
                }
            }
            CoreEvent::Published { tickets, topic, payload } => self.handle_published(&tickets, &topic, &payload),
            CoreEvent::EventsDropped { count } => self.tell_subscriptions(&Received::Dropped(count)),
            CoreEvent::ListeningAgain => self.tell_subscriptions(&Received::Reconnected),
            CoreEvent::Failed { ticket, code, payload } => {
                if let Some(sink) = self.sinks.remove(&ticket) {
                    sink.fail(Error::from_end(code, &payload).lost_by(self.lost.as_ref()));
                }
            }
            other => self.handle_worker_event(other),
        }
    }

    /// Keeps the error for which a broker was left: the socket's, or else the reason of the core, such as a silent broker.
    fn note_cause(&mut self, event: &CoreEvent) {
        let (CoreEvent::Lost { address, reason } | CoreEvent::Unreachable { address, reason }) = event else { return };
        let cause = Arc::new(self.failed.take().unwrap_or_else(|| io::Error::other(reason.as_str())));
        if let CoreEvent::Lost { .. } = event {
            self.lost = Some(Arc::clone(&cause));
        }
        self.causes.insert(address.clone(), cause);
    }

    fn handle_worker_event(&mut self, event: CoreEvent) {
        let Some(running_deliveries) = &mut self.running_deliveries else { return self.tell_front(&event) };
        match event {
            CoreEvent::Deliver(handed) => {
                let (held, wants_reply) = (handed.held, handed.wants_reply);
                let bytes_max = usize::try_from(self.core.config().frame_bytes_max).unwrap_or(usize::MAX);
                if let Err(outcome) = running_deliveries.take(*handed, bytes_max) {
                    self.core.settle(held, outcome.into_settlement(wants_reply));
                }
            }
            CoreEvent::CancelDelivery { held, reason } => running_deliveries.cancel(held, reason),
            CoreEvent::Closing { reason, .. } => {
                let wish = running_deliveries.closing(reason);
                self.grant(wish);
            }
            CoreEvent::Registered => {
                if let Some((address, broker)) = self.greeted.clone() {
                    running_deliveries.tell(WorkerEvent::Connected { address, broker });
                }
                self.tell_ready(Ok(()));
            }
            CoreEvent::Active { queue, token } => {
                running_deliveries.tell(WorkerEvent::Active { queue: queue.to_string(), token })
            }
            CoreEvent::StandingBy { queue } => {
                running_deliveries.tell(WorkerEvent::StandingBy { queue: queue.to_string() })
            }
            CoreEvent::NotRegistered { code, detail } => {
                running_deliveries.tell(WorkerEvent::Refused { code, detail: detail.clone() });
                if self.ready.is_some() {
                    self.never_began(Error::from_code(code, detail));
                }
            }
            CoreEvent::Replaced { queue } => {
                let wish = running_deliveries.give_up(Error::from_code(Code::QueueFull, taken(&queue)));
                self.grant(wish);
            }
            CoreEvent::Dropped { queue, reason, again_ms } => {
                let again = again_ms.map(Duration::from_millis);
                running_deliveries.tell(WorkerEvent::Dropped { queue: queue.to_string(), reason, again });
            }
            CoreEvent::Returned { queue } => {
                running_deliveries.tell(WorkerEvent::Rejoined { queue: queue.to_string() })
            }
            CoreEvent::Lost { address, reason } => running_deliveries.tell(WorkerEvent::Lost { address, reason }),
            CoreEvent::Unreachable { address, reason } => {
                running_deliveries.tell(WorkerEvent::Unreachable { address, reason })
            }
            _ => {}
        }
    }

    fn handle_opened(&mut self, address: Address, config: Config) {
        let group: Vec<Address> = config.brokers.iter().filter_map(|text| text.parse().ok()).collect();
        if let Some(file) = self.cache.clone()
            && !group.is_empty()
            && group != self.cached
        {
            self.cached.clone_from(&group);
            // A cache that cannot be written is no reason to fail: it is a comfort only.
            tokio::task::spawn_blocking(move || drop(cache::store(&file, &group)));
        }
        self.greeted = Some((address, config.broker.clone()));
        self.config.send_replace(Arc::new(config));
        if self.running_deliveries.is_none() {
            self.tell_ready(Ok(()));
        }
    }

    fn handle_reply(&mut self, ticket: Ticket, more: bool, payload: &Payload) {
        let reply = Message::from_payload(payload).map_err(Error::from);
        if more {
            let Some(sink) = self.sinks.get_mut(&ticket) else { return };
            let taken = reply.and_then(|reply| sink.piece(reply));
            return self.end_on_error(ticket, taken);
        }
        if let Some(sink) = self.sinks.remove(&ticket) {
            match reply {
                Ok(reply) => sink.finish(reply),
                Err(error) => sink.fail(error),
            }
        }
    }

    fn handle_published(&mut self, tickets: &[Ticket], topic: &Topic, payload: &Payload) {
        let event = Published::from_publisher(topic.clone(), payload);
        for ticket in tickets {
            if let Some(Sink::Subscribed { inbox, .. }) = self.sinks.get(ticket) {
                inbox.put(Received::Event(event.clone()));
            }
        }
    }

    /// Which of them it concerns, nobody knows.
    fn tell_subscriptions(&self, heard: &Received) {
        for sink in self.sinks.values() {
            if let Sink::Subscribed { begun: None, inbox } = sink {
                inbox.put(heard.clone());
            }
        }
    }

    fn end_on_error(&mut self, ticket: Ticket, taken: Result<(), Error>) {
        if let Err(error) = taken
            && let Some(sink) = self.sinks.remove(&ticket)
        {
            sink.fail(error);
            self.core.cancel(ticket);
        }
    }

    fn disconnect(&mut self, flush: bool) {
        let connection = std::mem::replace(&mut self.connection, Connection::None);
        let rest = self.out.split_off(self.written);
        self.out.clear();
        self.written = 0;
        if let Connection::Up(stream) = connection
            && flush
        {
            tokio::spawn(stream.farewell(rest));
        }
    }

    /// The start failed: there is nobody to run for.
    fn never_began(&mut self, error: Error) {
        self.tell_ready(Err(error));
        self.core.close(self.now());
        if let Some(running_deliveries) = &mut self.running_deliveries {
            running_deliveries.abandon();
        }
    }

    fn tell_ready(&mut self, result: Result<(), Error>) {
        if let Some(ready) = self.ready.take() {
            let _ = ready.send(result);
        }
    }
}
