//! Publishers and subscribers with the client's real core: also over reconnects, too slowly, and by fetching.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use turno_client::core::{Core, CoreEvent, Ticket};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::{Filter, Mono, Topic};

use crate::body;
use crate::net::Wire;
use crate::rng::Rng;
use crate::topics::{TopicOutput, Topics};
use crate::world::{Actor, World};

/// Subscriptions of one of them.
const SUBSCRIPTIONS_MAX: usize = 4;
/// In the calm all is told in this time: some connections are very narrow.
const CALM_MS: u64 = 30_000;
/// The topics of all events.
pub(crate) const TOPICS: [&str; 6] = ["t.a.x", "t.a.y", "t.b.x", "t.b.y", "t.c", "u"];
const PATTERNS: [&str; 8] = ["t.a.x", "t.b.y", "t.*.x", "t.a.*", "t.>", ">", "*", "t.a.>"];
pub(crate) const PREFIXES: [&str; 4] = ["", "t.", "t.a", "t.b.x"];

#[derive(Debug, Default)]
pub(crate) struct Listener {
    subscriptions: BTreeMap<u64, Vec<Filter>>,
    /// Events whose publisher wants to be told.
    unconfirmed: BTreeSet<u64>,
    /// A connection was there before this one.
    opened: bool,
    /// It must hear that something may be missing before it hears an event.
    untold: bool,
    /// The connection it hears from, and how much of what was said there.
    heard: Option<(usize, usize)>,
    /// Events that it got since the last look.
    events: BTreeSet<u64>,
    missed: u64,
    subscribed: BTreeSet<u64>,
}

fn some_filters(rng: &mut Rng) -> Vec<Filter> {
    let some = |rng: &mut Rng| match rng.once_in(4) {
        true => Filter::Prefix(Bytes::from_static(PREFIXES[rng.index(PREFIXES.len())].as_bytes())),
        false => pattern(PATTERNS[rng.index(PATTERNS.len())]),
    };
    (0..rng.range(1, 4)).map(|_| some(rng)).collect()
}

fn pattern(text: &str) -> Filter {
    text.parse().expect("a pattern")
}

impl Listener {
    /// Does something at random.
    pub(crate) fn act(
        &mut self,
        now: Mono,
        me: usize,
        core: &mut Core,
        number: &mut u64,
        topics: &mut Topics,
        rng: &mut Rng,
    ) {
        match rng.range(0, 16) {
            0..=2 if self.subscriptions.len() < SUBSCRIPTIONS_MAX => {
                *number += 1;
                let (filters, or_close) = (some_filters(rng), rng.once_in(6));
                self.subscribe(core, *number, filters, or_close);
            }
            3 => {
                let ticket = self.subscriptions.keys().copied().nth(rng.index(self.subscriptions.len().max(1)));
                if let Some(ticket) = ticket {
                    self.subscriptions.remove(&ticket);
                    core.cancel(Ticket(ticket));
                }
            }
            4..=6 => {
                *number += 1;
                let id = format!("fetch-{me}");
                let call = match rng.range(0, 8) {
                    0..=1 => {
                        let patterns = (0..rng.range(1, 3)).map(|_| PATTERNS[rng.index(PATTERNS.len())].to_owned());
                        AdminCall::TopicCreate { id, filters: patterns.collect() }
                    }
                    2 => AdminCall::TopicDestroy { id },
                    _ => AdminCall::TopicRecv { id, limit: u32::try_from(rng.range(1, 6)).expect("small") },
                };
                core.admin(now, Ticket(*number), call);
            }
            _ => {
                for _ in 0..rng.range(1, 8) {
                    *number += 1;
                    let (topic, confirm) = (TOPICS[rng.index(TOPICS.len())], rng.once_in(4));
                    self.publish(now, core, *number, topic, confirm, topics);
                }
            }
        }
    }

    fn subscribe(&mut self, core: &mut Core, ticket: u64, filters: Vec<Filter>, or_close: bool) {
        self.subscriptions.insert(ticket, filters.clone());
        core.subscribe_all(Ticket(ticket), filters, or_close);
    }

    fn publish(&mut self, now: Mono, core: &mut Core, number: u64, topic: &str, confirm: bool, topics: &mut Topics) {
        let topic: Topic = topic.parse().expect("a topic");
        topics.publishes(number, topic.clone());
        if confirm {
            self.unconfirmed.insert(number);
        }
        core.publish(now, Ticket(number), topic, body::payload(number), confirm);
    }

    /// A new process has no subscriptions and had no connection.
    pub(crate) fn start_over(&mut self) {
        *self = Self::default();
    }

    fn wants(&self, topic: &Topic) -> Vec<Ticket> {
        let matches = |filters: &Vec<Filter>| filters.iter().any(|filter| filter.matches(topic));
        self.subscriptions.iter().filter(|(_, filters)| matches(filters)).map(|(ticket, _)| Ticket(*ticket)).collect()
    }

    /// Hears something over that connection.
    pub(crate) fn hear(&mut self, wire: Option<usize>, event: &CoreEvent, topics: &Topics) {
        match event {
            CoreEvent::Opened { .. } => {
                self.untold = self.opened && !self.subscriptions.is_empty();
                self.opened = true;
            }
            CoreEvent::ListeningAgain => self.untold = false,
            CoreEvent::Subscribed { ticket } => drop(self.subscribed.insert(ticket.0)),
            CoreEvent::Failed { ticket, .. } => {
                self.subscriptions.remove(&ticket.0);
                self.unconfirmed.remove(&ticket.0);
            }
            CoreEvent::PublishDone { ticket } if self.unconfirmed.remove(&ticket.0) => topics.confirmed(ticket.0),
            CoreEvent::PublishDone { .. } => {}
            CoreEvent::Published { tickets, topic, payload } => {
                let number = body::number(body::raw(payload)).expect("S3.33: an event was changed");
                assert_eq!(topics.topic_of(number), topic, "S3.33: {number} is about another topic");
                assert_eq!(*tickets, self.wants(topic), "S3.33: the subscriptions that {number} is for");
                assert!(!self.untold, "S3.36: {number} comes, and nobody was told of the gap before");
                self.comes(wire, TopicOutput::Event(number), topics);
                self.events.insert(number);
            }
            CoreEvent::EventsDropped { count } => {
                self.comes(wire, TopicOutput::Dropped(*count), topics);
                self.missed += count;
            }
            _ => {}
        }
    }

    fn heard_of(&self, wire: usize) -> usize {
        self.heard.filter(|(heard, _)| *heard == wire).map_or(0, |(_, at)| at)
    }

    /// It took in all that came over that connection: what it did not hear of is what it does not want.
    fn caught_up(&mut self, wire: usize, topics: &Topics) {
        let at = self.heard_of(wire);
        let rest = topics.said(wire, at);
        for said in rest {
            let wanted = match said {
                TopicOutput::Event(number) => !self.wants(topics.topic_of(*number)).is_empty(),
                TopicOutput::Dropped(_) => true,
            };
            assert!(!wanted, "S3.36: {said:?} came, and nobody was told");
        }
        self.heard = Some((wire, at + rest.len()));
    }

    /// It is the next that was said on that connection, but for events that are not wanted.
    fn comes(&mut self, wire: Option<usize>, what: TopicOutput, topics: &Topics) {
        let wire = wire.expect("S3.36: events come over a connection");
        let mut at = self.heard_of(wire);
        for said in topics.said(wire, at) {
            at += 1;
            if *said == what {
                self.heard = Some((wire, at));
                return;
            }
            let TopicOutput::Event(number) = said else { panic!("S3.36: {said:?} was not told, {what:?} was") };
            assert!(self.wants(topics.topic_of(*number)).is_empty(), "S3.36: {number} was left out before {what:?}");
        }
        panic!("S3.36: {what:?} was never said on wire {wire}");
    }
}

impl World {
    /// In every other world there are some who listen.
    pub(crate) fn add_listeners(&mut self) {
        // Over links events come from other brokers, which the ledger of one broker does not know.
        if self.links.is_empty() && self.rng.once_in(2) {
            for _ in 0..self.rng.range(2, 5) {
                self.add_peer(Actor::Listener(Box::default()), 0, Vec::new(), None);
            }
        }
    }

    pub(crate) fn is_listener(&self, index: usize) -> bool {
        matches!(self.peers[index].actor, Actor::Listener(_))
    }

    pub(crate) fn listener_acts(&mut self, index: usize) {
        let (now, peer) = (self.now, &mut self.peers[index]);
        if let (Some(core), Actor::Listener(listener)) = (&mut peer.core, &mut peer.actor)
            && peer.asleep_until <= now
        {
            listener.act(now, index, core, &mut self.number, &mut self.oracle.topics, &mut self.rng);
            self.pump_peer(index);
        }
    }

    pub(crate) fn listener_hears(&mut self, index: usize, event: &CoreEvent) {
        let peer = &mut self.peers[index];
        if let Actor::Listener(listener) = &mut peer.actor {
            listener.hear(peer.wire, event, &self.oracle.topics);
        }
    }

    /// One who listens read that connection.
    pub(crate) fn listener_read(&mut self, index: usize, wire: usize) {
        let peer = &mut self.peers[index];
        // One that was told to end hears nothing more of what came with that.
        if let Actor::Listener(listener) = &mut peer.actor
            && peer.wire == Some(wire)
        {
            listener.caught_up(wire, &self.oracle.topics);
        }
    }

    /// Everyone who listens over a sound connection has what is for it.
    pub(crate) fn events_are_told(&self) -> bool {
        self.brokers.iter().all(|broker| {
            broker.wires.iter().all(|(conn, wire)| {
                let heard = broker.connections.as_ref().is_some_and(|connections| connections.is_heard(*conn));
                !heard || !self.wires[*wire].is_sound() || self.oracle.topics.expected(*wire) == 0
            })
        })
    }

    /// When all is quiet everyone listens, everyone publishes, and everyone at the same broker gets all of it.
    pub(crate) fn publish_to_all(&mut self) {
        let listeners: Vec<usize> = (0..self.peers.len()).filter(|index| self.is_listener(*index)).collect();
        let is_connected = |world: &Self, index: &usize| {
            world.peers[*index].wire.is_some_and(|wire| {
                let Wire { broker, conn, .. } = &world.wires[wire];
                world.wires[wire].is_sound()
                    && conn.is_some_and(|conn| world.brokers[*broker].wires.contains_key(&conn))
            })
        };
        let end = self.now.plus_millis(CALM_MS);
        while self.now < end && !listeners.iter().all(|index| is_connected(self, index)) {
            self.pass(500);
        }
        let mut tickets = BTreeMap::new();
        for index in &listeners {
            self.number += 1;
            tickets.insert(*index, self.number);
            self.with_listener(*index, |listener, core, _, _, number| {
                listener.subscribe(core, *number, vec![pattern(">")], false);
            });
        }
        self.pass(3_000);
        for index in &listeners {
            self.with_listener(*index, |listener, _, _, _, _| listener.missed = 0);
        }
        let wires: BTreeMap<usize, Option<usize>> =
            listeners.iter().map(|index| (*index, self.peers[*index].wire)).collect();
        let mut published = Vec::new();
        for index in &listeners {
            for topic in TOPICS {
                self.number += 1;
                published.push(self.number);
                self.with_listener(*index, |listener, core, now, topics, number| {
                    listener.publish(now, core, *number, topic, true, topics);
                });
            }
        }
        self.pass(3_000);
        let end = self.now.plus_millis(CALM_MS);
        while self.now < end && wires.iter().any(|(index, wire)| self.missing(*index, *wire, &published) > 0) {
            self.pass(500);
        }
        for (index, wire) in &wires {
            let Actor::Listener(listener) = &self.peers[*index].actor else { continue };
            assert!(listener.subscribed.contains(&tickets[index]), "S3.33: {index} listens, and was not told so");
            assert!(listener.unconfirmed.is_empty(), "S3.33: {index} published, and was not told so");
            let missing = self.missing(*index, *wire, &published);
            assert_eq!(missing, 0, "S3.36: {index} was not told of so many events in the calm");
        }
    }

    /// How many of these one who listens was not told of in any way, if it has been on that connection all the time: of
    /// those that its broker read.
    fn missing(&self, index: usize, wire: Option<usize>, published: &[u64]) -> u64 {
        let Actor::Listener(listener) = &self.peers[index].actor else { return 0 };
        let Some(wire) = wire.filter(|wire| self.peers[index].wire == Some(*wire)) else { return 0 };
        let broker = Some(self.wires[wire].broker);
        let its = published.iter().filter(|number| self.oracle.topics.read_by(**number) == broker);
        let unheard = its.filter(|number| !listener.events.contains(number)).count() as u64;
        unheard.saturating_sub(listener.missed)
    }

    fn with_listener(&mut self, index: usize, act: impl FnOnce(&mut Listener, &mut Core, Mono, &mut Topics, &u64)) {
        let (now, peer) = (self.now, &mut self.peers[index]);
        if let (Some(core), Actor::Listener(listener)) = (&mut peer.core, &mut peer.actor) {
            act(listener, core, now, &mut self.oracle.topics, &self.number);
            self.pump_peer(index);
        }
    }
}
