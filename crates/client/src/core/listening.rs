//! Filters of this client: told to every broker it connects to, and matched again here. An event comes once, whichever
//! of the filters it is for.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::{Code, Filter, Mono, Payload, Topic};
use turno_proto::native::{Event as EventFrame, Frame};

use super::Core;
use super::event::{Event, Ticket};
use super::link::Pending;

/// Who listens to what.
#[derive(Debug, Default)]
pub(super) struct Listening {
    filters: BTreeMap<Filter, Users>,
    by_ticket: BTreeMap<Ticket, Filter>,
    /// A connection was there before: what was published in between is missed.
    interrupted: bool,
}

#[derive(Debug, Default)]
struct Users {
    tickets: BTreeSet<Ticket>,
    or_close: bool,
    /// Those that have not been told that a broker knows the filter.
    untold: BTreeSet<Ticket>,
}

impl Core {
    /// Events whose topics match are wanted from now on, until [`Core::cancel`]. Ends at once with [`Event::Subscribed`]
    /// or [`Event::Failed`], once a broker has answered.
    pub fn subscribe(&mut self, ticket: Ticket, filter: Filter, or_close: bool) {
        if self.closed() {
            let code = Code::ConnectionLost;
            return self.events.push_back(Event::Failed { ticket, code, payload: Payload::default() });
        }
        let users = self.listening.filters.entry(filter.clone()).or_default();
        users.tickets.insert(ticket);
        users.untold.insert(ticket);
        users.or_close |= or_close;
        self.listening.by_ticket.insert(ticket, filter.clone());
        if self.open() {
            self.write_subscribe(&filter);
        }
    }

    /// On a new connection the broker is told of every filter.
    pub(super) fn write_subscribes(&mut self) {
        let filters: Vec<Filter> = self.listening.filters.keys().cloned().collect();
        for filter in &filters {
            self.write_subscribe(filter);
        }
        if std::mem::replace(&mut self.listening.interrupted, true) && !filters.is_empty() {
            self.events.push_back(Event::ListeningAgain);
        }
    }

    fn write_subscribe(&mut self, filter: &Filter) {
        let or_close = self.listening.filters.get(filter).is_some_and(|users| users.or_close);
        let seq = self.link.expect(Pending::Subscribe(filter.clone()));
        self.link.write(&Frame::Subscribe { seq, filter: filter.clone(), or_close });
    }

    /// The subscription is wanted no more. False if there is none of that name.
    pub(super) fn unsubscribe(&mut self, ticket: Ticket) -> bool {
        let Some(filter) = self.listening.by_ticket.remove(&ticket) else { return false };
        let users = self.listening.filters.get_mut(&filter).expect("a ticket's filter is there");
        users.tickets.remove(&ticket);
        users.untold.remove(&ticket);
        if users.tickets.is_empty() {
            self.listening.filters.remove(&filter);
            if self.open() {
                let seq = self.link.expect(Pending::Nobody);
                self.link.write(&Frame::Unsubscribe { seq, filter });
            }
        }
        true
    }

    /// The broker knows the filter.
    pub(super) fn subscribed(&mut self, filter: &Filter) {
        let told = self.listening.filters.get_mut(filter).map(|users| std::mem::take(&mut users.untold));
        self.events.extend(told.into_iter().flatten().map(|ticket| Event::Subscribed { ticket }));
    }

    /// The broker does not take the filter: whoever uses it gets nothing.
    pub(super) fn not_subscribed(&mut self, filter: &Filter, code: Code, payload: &Payload) {
        let users = self.listening.filters.remove(filter).unwrap_or_default();
        for ticket in users.tickets {
            self.listening.by_ticket.remove(&ticket);
            self.events.push_back(Event::Failed { ticket, code, payload: payload.clone() });
        }
    }

    pub(super) fn handle_published(&mut self, now: Mono, event: &EventFrame<'_>) {
        let Ok(topic) = Topic::from_bytes(event.topic) else {
            return self.lose(now, "it sent an event about no topic".to_owned());
        };
        let matching = self.listening.filters.iter().filter(|(filter, _)| filter.matches(&topic));
        let tickets: Vec<Ticket> = matching.flat_map(|(_, users)| users.tickets.iter().copied()).collect();
        if !tickets.is_empty() {
            self.events.push_back(Event::Published { tickets, topic, payload: event.raw.to_payload() });
        }
    }

    /// Everything ends: so do subscriptions.
    pub(super) fn stop_listening(&mut self, code: Code) {
        let listening = std::mem::take(&mut self.listening);
        for ticket in listening.by_ticket.into_keys() {
            self.events.push_back(Event::Failed { ticket, code, payload: Payload::default() });
        }
    }
}
