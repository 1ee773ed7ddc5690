//! ZeroMQ peers that send requests, one after the other or several at a time.

use std::collections::BTreeMap;

use bytes::Bytes;
use turno_proto::model::Mono;

use super::kind::{Kind, ZmqRequest};
use crate::body;
use crate::rng::Rng;

/// Requests that a DEALER socket has open.
const OPEN_MAX: usize = 12;
/// It waits for an answer at most so long.
const PATIENCE_MS: (u64, u64) = (1_000, 7_000);

/// A request without an answer.
#[derive(Debug)]
struct Open {
    before_answer: Vec<Bytes>,
    /// It waits no longer than until then.
    until: Mono,
}

#[derive(Debug)]
pub(crate) struct Asker {
    kind: Kind,
    nth: u32,
    open: BTreeMap<u64, Open>,
}

impl Asker {
    pub(crate) const fn new(kind: Kind) -> Self {
        Self { kind, nth: 0, open: BTreeMap::new() }
    }

    pub(crate) fn parted(&mut self) {
        self.open.clear();
    }

    /// How many requests it makes now. `None`: it waits in vain, and connects again.
    pub(crate) fn wants(&mut self, now: Mono, rng: &mut Rng) -> Option<u64> {
        let before = self.open.len();
        self.open.retain(|_, open| open.until > now);
        let in_vain = self.open.len() < before;
        match self.kind {
            // Without a number of its own the next request would be taken for the one that is lost.
            Kind::Req { relaxed: false } | Kind::MdpClient { is_req: true, .. } if in_vain => None,
            _ if self.kind.asks_in_turn() => Some(u64::from(self.open.is_empty())),
            _ if self.open.len() >= OPEN_MAX => Some(0),
            _ => Some(rng.range(1, 4)),
        }
    }

    /// The frames of one more request, and what must stand before its answer.
    pub(crate) fn ask(&mut self, now: Mono, number: u64, service: &str, rng: &mut Rng) -> (Vec<Bytes>, ZmqRequest) {
        self.nth += 1;
        let asking = ZmqRequest::new(self.kind, self.nth, service);
        let until = now.plus_millis(rng.range(PATIENCE_MS.0, PATIENCE_MS.1));
        self.open.insert(number, Open { before_answer: asking.before_answer.clone(), until });
        (asking.front.iter().cloned().chain(body::parts_of(number)).collect(), asking)
    }

    /// An answer came, or word of a failure, which may be of any request with the same envelope.
    pub(crate) fn hear(&mut self, parts: &[Bytes]) {
        let behind = |open: &Open| parts.strip_prefix(&open.before_answer[..]);
        let answers = |(number, open): &(&u64, &Open)| behind(open).and_then(body::claimed) == Some(**number);
        let fits = |(_, open): &(&u64, &Open)| behind(open).is_some();
        let found = self.open.iter().find(answers).or_else(|| self.open.iter().find(fits));
        if let Some(number) = found.map(|(number, _)| *number) {
            self.open.remove(&number);
        }
    }
}
