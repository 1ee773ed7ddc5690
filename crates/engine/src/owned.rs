//! The unanswered requests of one connection: in order, and by the caller's own numbers once it cancels.

use std::collections::BTreeMap;

use crate::chain::{Chain, Lane};
use crate::message::{Message, Messages};

/// The requests of one caller that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Owned {
    chain: Chain,
    /// By number and serial: callers may use a number twice, and then the older request is meant. Most callers never
    /// cancel, so it is made at the first CANCEL and kept until none is left: each request is entered once at most.
    by_seq: Option<BTreeMap<(u32, u64), u32>>,
}

impl Owned {
    pub(crate) const fn len(&self) -> u32 {
        self.chain.len()
    }

    /// The oldest.
    pub(crate) fn front(&self) -> Option<u32> {
        self.chain.front()
    }

    pub(crate) fn iter<'a>(&self, messages: &'a Messages) -> impl Iterator<Item = u32> + use<'a> {
        self.chain.iter(messages, Lane::Owned)
    }

    /// Takes in a request that has its origin.
    pub(crate) fn add(&mut self, messages: &mut Messages, index: u32) {
        self.chain.push_back(messages, Lane::Owned, index);
        if let Some(by_seq) = &mut self.by_seq {
            by_seq.extend(key(&messages[index]).map(|key| (key, index)));
        }
    }

    /// Lets a request go that still has its origin.
    pub(crate) fn remove(&mut self, messages: &mut Messages, index: u32) {
        self.chain.remove(messages, Lane::Owned, index);
        if self.chain.is_empty() {
            self.by_seq = None;
        } else if let (Some(by_seq), Some(key)) = (&mut self.by_seq, key(&messages[index])) {
            by_seq.remove(&key);
        }
    }

    /// The request that its caller gave that number.
    pub(crate) fn find(&mut self, messages: &Messages, seq: u32) -> Option<u32> {
        if self.chain.is_empty() {
            return None;
        }
        let chain = &self.chain;
        let by_seq = self.by_seq.get_or_insert_with(|| {
            let all = chain.iter(messages, Lane::Owned);
            all.filter_map(|index| key(&messages[index]).map(|key| (key, index))).collect()
        });
        by_seq.range((seq, 0)..=(seq, u64::MAX)).next().map(|(_, index)| *index)
    }

    /// The numbers lead to all requests and to nothing else.
    pub(crate) fn check(&self, messages: &Messages) {
        let Some(by_seq) = &self.by_seq else { return };
        assert_eq!(by_seq.len(), self.len() as usize, "every request can be found by its number, and nothing else can");
        for index in self.iter(messages) {
            let found = key(&messages[index]).and_then(|key| by_seq.get(&key));
            assert_eq!(found, Some(&index), "a request is found by its number");
        }
    }
}

fn key(message: &Message) -> Option<(u32, u64)> {
    message.origin.map(|origin| (origin.seq, message.serial))
}
