//! The order of first deliveries (I5): what came first to a queue, within a priority, goes out first.
//!
//! Judged by what workers saw. A send that was on its way to a worker which is lost, or anything that one had which leaves,
//! comes again as the first attempt, and nobody saw the earlier one. So a queue is judged up to the first loss of one of its
//! workers, in each life of its broker.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::MessageId;

use crate::keeping::broker_of_run;
use crate::letters::is_durable;

/// A first delivery, as the worker saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct First {
    run: u64,
    life: u64,
    /// A stored message takes its place later than a volatile one.
    durable: bool,
    send: bool,
    queue: usize,
    priority: u8,
    stamp: u32,
    serial: u64,
    /// How many were seen before it.
    nth: usize,
}

/// The same, without what its place in the order says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    pub(crate) id: MessageId,
    pub(crate) life: u64,
    pub(crate) send: bool,
    pub(crate) queue: usize,
    pub(crate) priority: u8,
    pub(crate) stamp: u32,
}

/// A queue at a broker, in one of its lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct QueuePlace {
    pub(crate) broker: usize,
    pub(crate) life: u64,
    pub(crate) queue: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Order {
    firsts: Vec<First>,
    /// How many were seen when a worker there was first lost: sends come again.
    losses: BTreeMap<QueuePlace, usize>,
    /// How many were seen when a worker there first left: anything comes again.
    goodbyes: BTreeMap<QueuePlace, usize>,
}

impl Order {
    pub(crate) fn sees(&mut self, delivered: Delivered) {
        let Delivered { id, life, send, queue, priority, stamp } = delivered;
        let (run, serial, durable, nth) = (id.run(), id.serial(), is_durable(id), self.firsts.len());
        self.firsts.push(First { run, life, durable, send, queue, priority, stamp, serial, nth });
    }

    pub(crate) fn loses(&mut self, place: QueuePlace) {
        self.losses.entry(place).or_insert(self.firsts.len());
    }

    pub(crate) fn says_goodbye(&mut self, place: QueuePlace) {
        self.goodbyes.entry(place).or_insert(self.firsts.len());
    }

    pub(crate) fn judge(&mut self) {
        let (losses, goodbyes) = (&self.losses, &self.goodbyes);
        self.firsts.retain(|first| {
            let place = QueuePlace { broker: broker_of_run(first.run), life: first.life, queue: first.queue };
            let before = |ends: &BTreeMap<QueuePlace, usize>| ends.get(&place).is_none_or(|end| first.nth < *end);
            before(goodbyes) && (before(losses) || !first.send)
        });
        self.firsts.sort_unstable();
        // Of a send that came twice as the first attempt, the earlier delivery counts.
        let mut seen = BTreeSet::new();
        self.firsts.retain(|first| seen.insert((first.run, first.life, first.serial)));
        for pair in self.firsts.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let turn = |first: First| (first.run, first.life, first.durable, first.send, first.queue, first.priority);
            if turn(a) == turn(b) {
                assert!(a.serial < b.serial, "I5: {b:?} went out after {a:?} though it came before");
            }
        }
    }

    /// I21: what came after the one costly message, to another queue of its worker, was not handed out before it, apart from
    /// what found a slot on its own way.
    pub(crate) fn judge_costly(&self, cheap: usize, costly: usize, most: usize) {
        let first = self.firsts.iter().find(|first| first.queue == costly);
        let first = first.expect("I21: a costly message is never handed out beside cheap ones");
        let passes = |other: &&First| other.queue == cheap && other.serial > first.serial && other.stamp < first.stamp;
        let passed = self.firsts.iter().filter(passes).count();
        assert!(passed <= most, "I21: {passed} cheap messages that came later went out before a costly one");
    }
}
