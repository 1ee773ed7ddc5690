//! Topics among the things that happen to the engine: who must get which event, by looking at every filter.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use turno_engine::{Event, Input, Listener};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::{ConnId, Filter, Payload, Topic};

use crate::bytes::Bytes;

const TOPICS: [&str; 6] = ["a", "a.b", "a.b.c", "b.b", "c", "b"];
const PATTERNS: [&str; 8] = ["a", "a.*", "a.>", ">", "*.b", "*", "a.b.c", "*.*.c"];
const PREFIXES: [&str; 4] = ["", "a", "a.", "b.b"];
const IDS: [&str; 2] = ["x", "y"];

/// Who listens, and what must come next.
#[derive(Default)]
pub(crate) struct Listening {
    by_conn: BTreeMap<ConnId, BTreeSet<Filter>>,
    fetchers: BTreeMap<&'static str, Fetcher>,
    /// Whom the event that is published now is for.
    owed: BTreeSet<ConnId>,
    /// What is fetched now: which, and how many are left.
    fetched: Option<(Vec<u32>, u64)>,
    numbers: u32,
}

#[derive(Default)]
struct Fetcher {
    filters: BTreeSet<Filter>,
    waiting: VecDeque<u32>,
}

fn pattern(bytes: &mut Bytes<'_>) -> &'static str {
    PATTERNS[bytes.below(PATTERNS.len())]
}

fn filter(bytes: &mut Bytes<'_>) -> Filter {
    match bytes.byte() {
        how @ 0..64 => Filter::prefix(PREFIXES[usize::from(how) % PREFIXES.len()].as_bytes()).expect("short"),
        _ => pattern(bytes).parse().expect("a pattern"),
    }
}

impl Listening {
    /// What a peer says, or an admin asks.
    pub(crate) fn input(&mut self, conn: ConnId, admin: ConnId, bytes: &mut Bytes<'_>) -> Input {
        let (seq, how) = (0, bytes.byte());
        match how % 8 {
            0..=1 => {
                let filter = filter(bytes);
                self.by_conn.entry(conn).or_default().insert(filter.clone());
                Input::Subscribe { conn, seq, filter, or_close: how & 0x80 != 0 }
            }
            2 => {
                let filter = filter(bytes);
                self.by_conn.entry(conn).or_default().remove(&filter);
                Input::Unsubscribe { conn, seq, filter }
            }
            3 => Input::EventsDropped { conn, count: bytes.u32().into() },
            4 => Input::Admin { conn: admin, seq, call: self.call(bytes) },
            _ => self.publish(conn, how & 0x80 != 0, bytes),
        }
    }

    fn publish(&mut self, conn: ConnId, confirm: bool, bytes: &mut Bytes<'_>) -> Input {
        self.numbers += 1;
        let topic: Topic = TOPICS[bytes.below(TOPICS.len())].parse().expect("a topic");
        let wanted = |filters: &BTreeSet<Filter>| filters.iter().any(|filter| filter.matches(&topic));
        self.owed = self.by_conn.iter().filter(|(_, filters)| wanted(filters)).map(|(conn, _)| *conn).collect();
        for fetcher in self.fetchers.values_mut().filter(|fetcher| wanted(&fetcher.filters)) {
            fetcher.waiting.push_back(self.numbers);
        }
        let payload = Payload::body(self.numbers.to_le_bytes().to_vec());
        Input::Publish { conn, seq: 0, confirm, event: Event { topic, payload } }
    }

    fn call(&mut self, bytes: &mut Bytes<'_>) -> AdminCall {
        let (how, id) = (bytes.byte(), IDS[bytes.below(IDS.len())]);
        let name = || id.to_owned();
        match how % 8 {
            0 => AdminCall::TopicLs { after: None, limit: how.into() },
            1 => AdminCall::TopicSubscribers { topic: None, after: None, limit: how.into() },
            2 => AdminCall::TopicDestroy { id: self.fetchers.remove(id).map_or("nobody", |_| id).to_owned() },
            3..=4 => {
                let text = pattern(bytes);
                self.fetchers.entry(id).or_default().filters.insert(text.parse().expect("a pattern"));
                AdminCall::TopicCreate { id: name(), filters: vec![text.to_owned()] }
            }
            _ => {
                let limit = u32::from(how) / 8 + 1;
                if let Some(fetcher) = self.fetchers.get_mut(id) {
                    let count = fetcher.waiting.len().min(limit as usize);
                    let numbers = fetcher.waiting.drain(..count).collect();
                    self.fetched = Some((numbers, fetcher.waiting.len() as u64));
                }
                AdminCall::TopicRecv { id: name(), limit }
            }
        }
    }

    pub(crate) fn leaves(&mut self, conn: ConnId) {
        self.by_conn.remove(&conn);
    }

    /// An event goes to all who want it, once each, and to nobody else.
    pub(crate) fn gets(&mut self, event: &Event, listeners: &[Listener]) {
        assert_eq!(number(&event.payload.bytes), self.numbers, "it is what was published");
        let conns: BTreeSet<ConnId> = listeners.iter().map(|listener| listener.conn).collect();
        assert_eq!(conns.len(), listeners.len(), "each gets it once");
        assert_eq!(conns, std::mem::take(&mut self.owed), "who wants {} gets it", event.topic);
    }

    pub(crate) fn answered(&mut self, answer: &AdminAnswer) {
        if let AdminAnswer::Events { events, missed, left } = answer {
            let numbers = events.iter().map(|event| number(&event.payload)).collect();
            assert_eq!((Some((numbers, *left)), *missed), (self.fetched.take(), 0), "what waits is fetched, in order");
        }
    }

    /// Nothing that had to come is missing.
    pub(crate) fn check(&self) {
        assert!(self.owed.is_empty() && self.fetched.is_none(), "all is told: {:?} {:?}", self.owed, self.fetched);
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("a number"))
}
