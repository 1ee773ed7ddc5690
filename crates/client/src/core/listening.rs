//! Filters of this client: told to every broker it connects to, and matched again here. An event comes once, whichever
//! of the filters it is for.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::{Code, Filter, Mono, Payload, Topic};
use turno_proto::native::{Frame, RawEvent as EventFrame};

use super::Core;
use super::event::{CoreEvent, Ticket};
use super::link::Pending;

/// The subscriptions of a client.
#[derive(Debug, Default)]
pub(super) struct Listening {
    filters: BTreeMap<Filter, BTreeSet<Ticket>>,
    by_ticket: BTreeMap<Ticket, WantedFilters>,
    /// A connection was there before: what was published in between is missed.
    interrupted: bool,
}

/// The filters of one subscription.
#[derive(Debug)]
struct WantedFilters {
    filters: BTreeSet<Filter>,
    /// Those that no broker has taken yet.
    untaken: BTreeSet<Filter>,
    /// It ends rather than miss something.
    or_close: bool,
}

impl Listening {
    /// Events wait in one line at the broker, so that one wish is for all.
    fn or_close(&self) -> bool {
        self.by_ticket.values().any(|wish| wish.or_close)
    }
}

impl Core {
    /// Events whose topics match are wanted from now on, until [`Core::cancel`]. Ends at once with [`CoreEvent::Subscribed`]
    /// or [`CoreEvent::Failed`], once a broker has answered.
    pub fn subscribe(&mut self, ticket: Ticket, filter: Filter, or_close: bool) {
        self.subscribe_all(ticket, [filter], or_close);
    }

    /// The same with several filters: an event that matches more than one comes once, and all come in their order.
    ///
    /// `or_close`: the subscription ends with [`CoreEvent::Failed`] rather than miss something, because this client reads too
    /// slowly or its connection is lost.
    pub fn subscribe_all(&mut self, ticket: Ticket, filters: impl IntoIterator<Item = Filter>, or_close: bool) {
        if self.closed() {
            return self.end_subscription(ticket, Code::ConnectionLost, Payload::default());
        }
        let filters: BTreeSet<Filter> = filters.into_iter().collect();
        if filters.is_empty() {
            self.events.push_back(CoreEvent::Subscribed { ticket });
        }
        for filter in &filters {
            self.listening.filters.entry(filter.clone()).or_default().insert(ticket);
        }
        let wish = WantedFilters { filters: filters.clone(), untaken: filters.clone(), or_close };
        self.listening.by_ticket.insert(ticket, wish);
        if self.open() {
            for filter in filters {
                self.write_subscribe(filter);
            }
        }
    }

    fn end_subscription(&mut self, ticket: Ticket, code: Code, payload: Payload) {
        self.events.push_back(CoreEvent::Failed { ticket, code, payload });
    }

    /// On a new connection the broker is told of every filter.
    pub(super) fn write_subscribes(&mut self) {
        let filters: Vec<Filter> = self.listening.filters.keys().cloned().collect();
        let any = !filters.is_empty();
        for filter in filters {
            self.write_subscribe(filter);
        }
        if std::mem::replace(&mut self.listening.interrupted, true) && any {
            self.events.push_back(CoreEvent::ListeningAgain);
        }
    }

    fn write_subscribe(&mut self, filter: Filter) {
        let or_close = self.listening.or_close();
        let seq = self.link.expect(Pending::Subscribe(filter.clone()));
        self.link.write(&Frame::Subscribe { seq, filter, or_close });
    }

    /// The subscription is wanted no more. False if there is none of that name.
    pub(super) fn unsubscribe(&mut self, ticket: Ticket) -> bool {
        let or_close = self.listening.or_close();
        let Some(wish) = self.listening.by_ticket.remove(&ticket) else { return false };
        for filter in wish.filters {
            let Some(users) = self.listening.filters.get_mut(&filter) else { continue };
            users.remove(&ticket);
            if users.is_empty() {
                self.listening.filters.remove(&filter);
                if self.open() {
                    let seq = self.link.expect(Pending::Nobody);
                    self.link.write(&Frame::Unsubscribe { seq, filter });
                }
            }
        }
        // Those that stay would rather miss something: the broker goes by the latest SUBSCRIBE.
        if or_close
            && !self.listening.or_close()
            && self.open()
            && let Some(filter) = self.listening.filters.keys().next().cloned()
        {
            self.write_subscribe(filter);
        }
        true
    }

    /// The broker knows the filter.
    pub(super) fn subscribed(&mut self, filter: &Filter) {
        let Listening { filters, by_ticket, .. } = &mut self.listening;
        for ticket in filters.get(filter).into_iter().flatten() {
            let wish = by_ticket.get_mut(ticket).expect("users of a filter have a subscription");
            if wish.untaken.remove(filter) && wish.untaken.is_empty() {
                self.events.push_back(CoreEvent::Subscribed { ticket: *ticket });
            }
        }
    }

    /// The broker does not take the filter: its subscriptions get nothing.
    pub(super) fn not_subscribed(&mut self, filter: &Filter, code: Code, payload: &Payload) {
        for ticket in self.listening.filters.remove(filter).unwrap_or_default() {
            self.unsubscribe(ticket);
            self.end_subscription(ticket, code, payload.clone());
        }
    }

    pub(super) fn handle_published(&mut self, now: Mono, event: &EventFrame<'_>) {
        let Ok(topic) = Topic::from_bytes(event.topic) else {
            return self.lose(now, "the broker sent an event without a valid topic".to_owned());
        };
        let matching = self.listening.filters.iter().filter(|(filter, _)| filter.matches(&topic));
        let tickets: BTreeSet<Ticket> = matching.flat_map(|(_, users)| users.iter().copied()).collect();
        if !tickets.is_empty() {
            let tickets = tickets.into_iter().collect();
            self.events.push_back(CoreEvent::Published { tickets, topic, payload: event.payload.to_payload() });
        }
    }

    /// The connection is gone, for that reason if the broker gave one: who would rather end than miss something does. Not
    /// who has not begun.
    pub(super) fn stop_strict_listening(&mut self, code: Code) {
        let strict =
            |(ticket, wish): (&Ticket, &WantedFilters)| (wish.or_close && wish.untaken.is_empty()).then_some(*ticket);
        let ended: Vec<Ticket> = self.listening.by_ticket.iter().filter_map(strict).collect();
        for ticket in ended {
            self.unsubscribe(ticket);
            self.end_subscription(ticket, code, Payload::default());
        }
    }

    /// Everything ends: so do subscriptions.
    pub(super) fn stop_listening(&mut self, code: Code) {
        let listening = std::mem::take(&mut self.listening);
        for ticket in listening.by_ticket.into_keys() {
            self.end_subscription(ticket, code, Payload::default());
        }
    }
}
