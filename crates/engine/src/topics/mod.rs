//! Topics: events for the current subscribers. A subscriber that reads too slowly misses some, and is told how many.

mod ends;
mod fetch;
mod filters;
mod nodes;
mod numbers;
mod recent;
mod seeded;
mod segments;
mod shapes;
mod trie;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use turno_proto::model::limits::{
    SHAPES_MAX, STARS_MAX, SUBSCRIPTION_SEGMENTS_MAX, SUBSCRIPTIONS_ALL_MAX, SUBSCRIPTIONS_MAX,
};
use turno_proto::model::topic::EventRef;
use turno_proto::model::{Code, ConnId, Filter, Mono, Topic};

use self::fetch::Fetcher;
use self::filters::Filters;
use self::recent::RecentTopics;
use self::seeded::Seeded;
use self::shapes::{Shape, ShapeCounts};
use crate::effect::Sink;

/// Filters whose segments the check counts anew. More: it would take too long after every step.
const FILTERS_CHECKED_MAX: usize = 100;

/// A connection that an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listener {
    /// Which one.
    pub conn: ConnId,
    /// It is closed if it reads too slowly, instead of missing events.
    pub or_close: bool,
}

/// Everyone who listens.
#[derive(Debug)]
pub(crate) struct Topics {
    filters: Filters,
    receivers: Vec<Option<Receiver>>,
    vacant: Vec<u32>,
    by_conn: BTreeMap<ConnId, u32>,
    by_id: BTreeMap<Arc<str>, u32>,
    /// Bytes of what waits to be fetched.
    fetch_bytes: usize,
    /// Counts how often it was looked who listens to a topic.
    looks: u64,
    /// Rises with every filter that comes or goes: who was found before may be wrong then.
    version: u64,
    counted: RecentTopics,
    /// The places of `*` in filters, where there are several.
    stars: ShapeCounts<u32>,
    /// Filters and nodes of the tree that were looked at in vain since somebody asked, at most.
    work: u32,
    /// Receivers of an event; kept for its capacity only.
    found: Vec<u32>,
    listeners: Vec<Listener>,
}

/// Somebody with filters.
#[derive(Debug)]
struct Receiver {
    who: ReceiverId,
    filters: BTreeSet<Filter>,
    shapes: ShapeCounts<Shape>,
    or_close: bool,
    /// When it was found last: of several filters that match, one is enough.
    found: u64,
    /// Events that were for it, and those of them that it missed.
    events: u64,
    dropped: u64,
}

#[derive(Debug)]
enum ReceiverId {
    Conn(ConnId),
    Fetcher(Fetcher),
}

impl Receiver {
    const fn new(who: ReceiverId) -> Self {
        Self {
            who,
            filters: BTreeSet::new(),
            shapes: ShapeCounts::new(),
            or_close: false,
            found: 0,
            events: 0,
            dropped: 0,
        }
    }
}

/// The interface for other machines.
impl Topics {
    /// A connection listens. The same filter again changes nothing but `or_close`.
    pub(crate) fn subscribe(&mut self, conn: ConnId, filter: &Filter, or_close: bool) -> Result<(), Code> {
        let number = match self.by_conn.get(&conn) {
            Some(number) => *number,
            None => {
                let number = self.add(Receiver::new(ReceiverId::Conn(conn)));
                self.by_conn.insert(conn, number);
                number
            }
        };
        let result = self.listen(number, filter).map(drop);
        if result.is_ok() {
            // The latest word about it counts for all of the connection's filters: events wait in one line.
            self.at(number).or_close = or_close;
        }
        self.forget_deaf(conn);
        result
    }

    /// A connection takes a filter back.
    pub(crate) fn unsubscribe(&mut self, conn: ConnId, filter: &Filter) -> Result<(), Code> {
        let number = self.by_conn.get(&conn).copied();
        if !number.is_some_and(|number| self.unlisten(number, filter)) {
            return Err(Code::NotFound);
        }
        self.forget_deaf(conn);
        Ok(())
    }

    /// The connection is gone, and its filters with it.
    pub(crate) fn forget(&mut self, conn: ConnId) {
        if let Some(number) = self.by_conn.remove(&conn) {
            self.remove(number);
        }
    }

    /// An event goes to everyone at this broker whose filters match.
    pub(crate) fn deliver(&mut self, now: Mono, event: EventRef<'_>, out: &mut impl Sink) {
        let (mut found, mut listeners) = (std::mem::take(&mut self.found), std::mem::take(&mut self.listeners));
        self.find(event, now, &mut found);
        let mut shared = None;
        for number in found.drain(..) {
            let receiver = self.at(number);
            receiver.events += 1;
            match receiver.who {
                ReceiverId::Conn(conn) => listeners.push(Listener { conn, or_close: receiver.or_close }),
                ReceiverId::Fetcher(_) => {
                    self.put_aside(number, shared.get_or_insert_with(|| Arc::new(event.to_event())));
                }
            }
        }
        if !listeners.is_empty() {
            out.event(event, &listeners);
        }
        listeners.clear();
        (self.found, self.listeners) = (found, listeners);
    }

    /// A connection was read from too slowly, and missed that many.
    pub(crate) fn note_missed(&mut self, conn: ConnId, count: u64) {
        if let Some(number) = self.by_conn.get(&conn).copied() {
            self.at(number).dropped += count;
        }
    }

    /// Whether there is any filter.
    pub(crate) const fn anyone_listens(&self) -> bool {
        self.filters.count() > 0
    }

    /// Bytes of what waits to be fetched.
    pub(crate) const fn fetch_bytes(&self) -> usize {
        self.fetch_bytes
    }

    /// How many filters and nodes were looked at since the last call, at most, beside one filter for each that was found.
    pub(crate) const fn take_work(&mut self) -> u32 {
        std::mem::replace(&mut self.work, 0)
    }
}

impl Topics {
    pub(crate) fn new(seed: u64) -> Self {
        let seed = Seeded(seed);
        Self {
            filters: Filters::new(seed),
            receivers: Vec::new(),
            vacant: Vec::new(),
            by_conn: BTreeMap::new(),
            by_id: BTreeMap::new(),
            fetch_bytes: 0,
            looks: 0,
            version: 0,
            counted: RecentTopics::new(seed),
            stars: ShapeCounts::new(),
            work: 0,
            found: Vec::new(),
            listeners: Vec::new(),
        }
    }

    fn at(&mut self, number: u32) -> &mut Receiver {
        self.receivers[number as usize].as_mut().expect("numbers are of receivers that are there")
    }

    fn add(&mut self, receiver: Receiver) -> u32 {
        let number = self.vacant.pop().unwrap_or_else(|| {
            self.receivers.push(None);
            u32::try_from(self.receivers.len() - 1).expect("connections and filters are limited")
        });
        self.receivers[number as usize] = Some(receiver);
        number
    }

    fn remove(&mut self, number: u32) -> Receiver {
        let receiver = self.receivers[number as usize].take().expect("numbers are of receivers that are there");
        for filter in &receiver.filters {
            self.unindex(filter, number);
        }
        self.vacant.push(number);
        receiver
    }

    /// Adds a filter. The same again changes nothing; true unless it was the same.
    fn listen(&mut self, number: u32, filter: &Filter) -> Result<bool, Code> {
        let room = self.filters.count() < SUBSCRIPTIONS_ALL_MAX
            && self.filters.segments() + filter.segments() <= SUBSCRIPTION_SEGMENTS_MAX;
        let shape = Shape::of(filter);
        let stars = shape.and_then(Shape::stars);
        let room = room && stars.is_none_or(|stars| self.stars.has_room(&stars, STARS_MAX));
        let receiver = self.at(number);
        if receiver.filters.contains(filter) {
            return Ok(false);
        }
        let room = room && shape.is_none_or(|shape| receiver.shapes.has_room(&shape, SHAPES_MAX));
        if receiver.filters.len() >= SUBSCRIPTIONS_MAX || !room {
            return Err(Code::TooManySubscriptions);
        }
        receiver.filters.insert(filter.clone());
        shape.into_iter().for_each(|shape| receiver.shapes.add(shape));
        stars.into_iter().for_each(|stars| self.stars.add(stars));
        self.filters.insert(filter, number);
        self.version += 1;
        Ok(true)
    }

    /// A connection without filters is nobody here.
    fn forget_deaf(&mut self, conn: ConnId) {
        if let Some(number) = self.by_conn.get(&conn).copied()
            && self.at(number).filters.is_empty()
        {
            self.forget(conn);
        }
    }

    /// Takes a filter back. False if it was not there.
    fn unlisten(&mut self, number: u32, filter: &Filter) -> bool {
        let receiver = self.at(number);
        let had = receiver.filters.remove(filter);
        if had {
            Shape::of(filter).iter().for_each(|shape| receiver.shapes.remove(shape));
            self.unindex(filter, number);
        }
        had
    }

    /// A filter that is there matches nothing any more.
    fn unindex(&mut self, filter: &Filter, number: u32) {
        self.filters.remove(filter, number);
        Shape::of(filter).and_then(Shape::stars).iter().for_each(|stars| self.stars.remove(stars));
        self.version += 1;
    }

    /// Everyone with a filter that matches, once each.
    fn matching(&mut self, topic: &Topic) -> Vec<u32> {
        let mut found = Vec::new();
        self.look(topic, &mut found);
        found
    }

    fn look(&mut self, topic: &Topic, found: &mut Vec<u32>) {
        self.looks += 1;
        if self.stars.len() > 0 {
            let paths = self.stars.len() * topic.as_str().split('.').count();
            self.work = self.work.saturating_add(u32::try_from(paths).unwrap_or(u32::MAX));
        }
        let Self { filters, receivers, looks, work, .. } = self;
        let tell = |number: u32| {
            let receiver = receivers[number as usize].as_mut().expect("filters are of receivers that are there");
            if std::mem::replace(&mut receiver.found, *looks) != *looks {
                found.push(number);
            } else {
                *work = work.saturating_add(1);
            }
        };
        filters.matching(topic, tell);
    }

    /// Counts an event, and finds everyone it is for, once each.
    fn find(&mut self, event: EventRef<'_>, now: Mono, found: &mut Vec<u32>) {
        if !self.counted.count(event, now, self.version, found) {
            self.look(event.topic, found);
            self.counted.learn(event.topic, found, self.version);
        }
    }

    /// All of it agrees.
    pub(crate) fn check(&self) {
        let there = self.receivers.iter().flatten();
        let filters = self.filters.count();
        assert_eq!(filters, there.clone().map(|receiver| receiver.filters.len()).sum::<usize>(), "filters");
        if filters <= FILTERS_CHECKED_MAX {
            let segments = there.clone().flat_map(|receiver| &receiver.filters).map(Filter::segments);
            assert_eq!(self.filters.segments(), segments.sum::<usize>(), "segments of filters");
        }
        if filters == 0 {
            assert_eq!(self.stars.len(), 0, "places of stars in no filter");
        }
        assert!(there.clone().all(|receiver| receiver.shapes.len() <= SHAPES_MAX), "shapes of filters");
        assert_eq!(self.by_conn.len() + self.by_id.len(), there.clone().count(), "everyone is known by a name");
        assert_eq!(self.receivers.len(), there.clone().count() + self.vacant.len(), "places");
        let waits: usize = there.filter_map(|receiver| receiver.who.fetcher()).map(Fetcher::check).sum();
        assert_eq!(self.fetch_bytes, waits, "bytes that wait to be fetched");
        self.filters.check();
        self.counted.check();
    }
}

impl ReceiverId {
    const fn fetcher(&self) -> Option<&Fetcher> {
        match self {
            Self::Conn(_) => None,
            Self::Fetcher(fetcher) => Some(fetcher),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Segments are limited too: each takes memory, and a filter may have many.
    #[test]
    fn segments_of_all_filters_are_limited() {
        let mut topics = Topics::new(7);
        let number = topics.add(Receiver::new(ReceiverId::Conn(ConnId { index: 1, generation: 1 })));
        topics.filters.pretend_segments(SUBSCRIPTION_SEGMENTS_MAX - 4);
        let mut listen = |text: &str| topics.listen(number, &text.parse().unwrap());
        assert_eq!(listen("a.b.c.d.e"), Err(Code::TooManySubscriptions));
        assert_eq!(listen("a.b.c"), Ok(true));
        assert_eq!(listen("a.b.c"), Ok(false));
        assert_eq!(listen("a.b"), Err(Code::TooManySubscriptions));
        assert_eq!(listen(">"), Ok(true));
        assert!(topics.unlisten(number, &"a.b.c".parse().unwrap()));
        assert_eq!(topics.filters.segments(), SUBSCRIPTION_SEGMENTS_MAX - 3);
        let mut listen = |prefix: &str| topics.listen(number, &Filter::prefix(prefix.as_bytes()).unwrap());
        assert_eq!(listen("a.b.c."), Err(Code::TooManySubscriptions), "those of a prefix count too");
        assert_eq!(listen("...."), Err(Code::TooManySubscriptions));
        assert_eq!(listen("a.b.c"), Ok(true));
    }
}
