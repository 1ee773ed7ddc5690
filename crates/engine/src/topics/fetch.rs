//! Named subscribers, which fetch their events. What is for them waits here, up to a limit; then the oldest goes, and
//! is counted.

use std::collections::VecDeque;
use std::sync::Arc;

use turno_proto::model::limits::{
    FETCH_BYTES_MAX, FETCHER_BYTES_MAX, FETCHER_EVENTS_MAX, FETCHER_ID_BYTES_MAX, FETCHERS_BYTES_MAX, FETCHERS_MAX,
    MESSAGE_OVERHEAD_BYTES, PAGE_MAX,
};
use turno_proto::model::topic::Event;
use turno_proto::model::{Code, Filter};

use super::{Receiver, ReceiverId, Topics};

/// Events that wait for one subscriber.
#[derive(Debug)]
pub(super) struct Fetcher {
    pub(super) id: Arc<str>,
    waiting: VecDeque<Arc<Event>>,
    bytes: usize,
    /// Missed since it last fetched.
    missed: u64,
}

fn bytes_of(event: &Event) -> usize {
    event.payload.len() + event.topic.as_str().len() + MESSAGE_OVERHEAD_BYTES
}

impl Fetcher {
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The bytes that wait, counted anew.
    pub(super) fn check(&self) -> usize {
        let bytes: usize = self.waiting.iter().map(|event| bytes_of(event)).sum();
        assert_eq!(self.bytes, bytes, "bytes that wait for {}", self.id);
        assert!(self.waiting.len() <= FETCHER_EVENTS_MAX && bytes <= FETCHER_BYTES_MAX, "{} is limited", self.id);
        bytes
    }
}

/// The result of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Fetched {
    pub(super) events: Vec<Arc<Event>>,
    pub(super) missed: u64,
    pub(super) left: usize,
}

impl Topics {
    /// A subscriber with these filters; one that is there gets them as well. All of them, or nothing changes.
    pub(super) fn create(&mut self, id: &str, filters: &[Filter]) -> Result<u32, Code> {
        let named = (1..=FETCHER_ID_BYTES_MAX).contains(&id.len());
        if !named || id.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(Code::BadName);
        }
        let (number, is_new) = match self.by_id.get(id) {
            Some(number) => (*number, false),
            None if self.by_id.len() >= FETCHERS_MAX => return Err(Code::TooManySubscriptions),
            None => {
                let id: Arc<str> = id.into();
                let fetcher = Fetcher { id: Arc::clone(&id), waiting: VecDeque::new(), bytes: 0, missed: 0 };
                let number = self.add(Receiver::new(ReceiverId::Fetcher(fetcher)));
                self.by_id.insert(id, number);
                (number, true)
            }
        };
        let mut added: Vec<&Filter> = Vec::new();
        for filter in filters {
            match self.listen(number, filter) {
                Ok(true) => added.push(filter),
                Ok(false) => {}
                Err(code) => {
                    for filter in added {
                        self.unlisten(number, filter);
                    }
                    if is_new {
                        self.destroy(id)?;
                    }
                    return Err(code);
                }
            }
        }
        Ok(number)
    }

    /// It is gone, with all that waits for it.
    pub(super) fn destroy(&mut self, id: &str) -> Result<(), Code> {
        let number = self.by_id.remove(id).ok_or(Code::NotFound)?;
        if let ReceiverId::Fetcher(fetcher) = self.remove(number).who {
            self.fetch_bytes -= fetcher.bytes;
        }
        Ok(())
    }

    /// An event waits for it.
    pub(super) fn put_aside(&mut self, number: u32, event: &Arc<Event>) {
        let bytes = bytes_of(event);
        let all = self.fetch_bytes;
        let receiver = self.at(number);
        let ReceiverId::Fetcher(fetcher) = &mut receiver.who else { return };
        let before = fetcher.bytes;
        let full = |fetcher: &Fetcher| {
            fetcher.waiting.len() >= FETCHER_EVENTS_MAX
                || fetcher.bytes + bytes > FETCHER_BYTES_MAX
                || all - before + fetcher.bytes + bytes > FETCHERS_BYTES_MAX
        };
        let mut missed = 0;
        while full(fetcher)
            && let Some(oldest) = fetcher.waiting.pop_front()
        {
            fetcher.bytes -= bytes_of(&oldest);
            missed += 1;
        }
        if full(fetcher) {
            missed += 1;
        } else {
            fetcher.bytes += bytes;
            fetcher.waiting.push_back(Arc::clone(event));
        }
        fetcher.missed += missed;
        let after = fetcher.bytes;
        receiver.dropped += missed;
        self.fetch_bytes = all - before + after;
    }

    /// Takes the events that wait for it, the oldest first.
    pub(super) fn fetch(&mut self, id: &str, limit: u32) -> Result<Fetched, Code> {
        let number = *self.by_id.get(id).ok_or(Code::NotFound)?;
        let ReceiverId::Fetcher(fetcher) = &mut self.at(number).who else { return Err(Code::NotFound) };
        let mut events: Vec<Arc<Event>> = Vec::new();
        let mut bytes = 0;
        while events.len() < limit.clamp(1, PAGE_MAX) as usize
            && let Some(next) = fetcher.waiting.front()
            && (events.is_empty() || bytes + bytes_of(next) <= FETCH_BYTES_MAX)
        {
            bytes += bytes_of(next);
            events.extend(fetcher.waiting.pop_front());
        }
        fetcher.bytes -= bytes;
        let (missed, left) = (std::mem::take(&mut fetcher.missed), fetcher.waiting.len());
        self.fetch_bytes -= bytes;
        Ok(Fetched { events, missed, left })
    }
}
