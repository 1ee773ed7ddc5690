//! Subscribers of one broker, by looking at every filter: the receivers of an event, and the events to fetch.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::topic::view::EventView;
use turno_proto::model::{Code, Filter, Topic};

/// Subscribers on connections, and subscribers that fetch.
#[derive(Debug)]
pub struct Listeners<K> {
    filters: BTreeMap<K, BTreeSet<Filter>>,
    fetchers: BTreeMap<String, Fetcher>,
}

/// A subscriber that fetches.
#[derive(Debug, Default)]
struct Fetcher {
    filters: Vec<Filter>,
    waiting: VecDeque<u64>,
}

/// The expected answer to a call of a subscriber that fetches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// These events, and so many are left.
    Events { numbers: Vec<u64>, left: u64 },
    /// It is done.
    Done,
    /// There is no such subscriber.
    NotFound,
}

impl<K> Default for Listeners<K> {
    fn default() -> Self {
        Self { filters: BTreeMap::new(), fetchers: BTreeMap::new() }
    }
}

impl<K: Copy + Ord> Listeners<K> {
    /// SUBSCRIBE.
    pub fn subscribe(&mut self, who: K, filter: Filter) {
        self.filters.entry(who).or_default().insert(filter);
    }

    /// UNSUBSCRIBE. False if it did not have that filter.
    pub fn unsubscribe(&mut self, who: K, filter: &Filter) -> bool {
        self.filters.get_mut(&who).is_some_and(|filters| filters.remove(filter))
    }

    /// It listens no more.
    pub fn leave(&mut self, who: K) {
        self.filters.remove(&who);
    }

    /// An event with that number: whom it is for, once each. For those who fetch it waits.
    pub fn publish(&mut self, topic: &Topic, number: u64) -> BTreeSet<K> {
        for fetcher in self.fetchers.values_mut() {
            if fetcher.filters.iter().any(|filter| filter.matches(topic)) {
                fetcher.waiting.push_back(number);
            }
        }
        let wants = |filters: &BTreeSet<Filter>| filters.iter().any(|filter| filter.matches(topic));
        self.filters.iter().filter(|(_, filters)| wants(filters)).map(|(who, _)| *who).collect()
    }

    /// Applies a call, if it is about subscribers that fetch.
    pub fn call(&mut self, call: &AdminCall) -> Option<Expected> {
        match call {
            AdminCall::TopicCreate { id, filters } => {
                let fetcher = self.fetchers.entry(id.clone()).or_default();
                fetcher.filters.extend(filters.iter().filter_map(|filter| filter.parse::<Filter>().ok()));
                Some(Expected::Done)
            }
            AdminCall::TopicRecv { id, limit } => {
                let Some(fetcher) = self.fetchers.get_mut(id) else { return Some(Expected::NotFound) };
                let count = fetcher.waiting.len().min(*limit as usize);
                let numbers = fetcher.waiting.drain(..count).collect();
                Some(Expected::Events { numbers, left: fetcher.waiting.len() as u64 })
            }
            AdminCall::TopicDestroy { id } => {
                let there = self.fetchers.remove(id).is_some();
                Some(if there { Expected::Done } else { Expected::NotFound })
            }
            _ => None,
        }
    }
}

impl Expected {
    /// The answer is this one. `number`: of an event, by what it carries.
    pub fn judge(&self, answer: Result<&AdminAnswer, Code>, number: impl Fn(&EventView) -> Option<u64>) {
        match (answer, self) {
            (Ok(AdminAnswer::Events { events, missed: 0, left }), Self::Events { numbers, left: more }) => {
                let got = events.iter().map(|event| number(event).expect("S3.34: an event was changed"));
                let got: Vec<u64> = got.collect();
                assert_eq!((&got, left), (numbers, more), "S3.34: what was fetched, and what is left");
            }
            (Ok(AdminAnswer::Subscribers { .. }), Self::Done) | (Err(Code::NotFound), Self::NotFound) => {}
            other => panic!("S3.34: another answer to one who fetches: {other:?}"),
        }
    }
}
