//! Cancelled requests stay cancelled: a request that its caller has cancelled is delivered to nobody any more, and one whose
//! caller is gone is stopped then, not at its deadline.
//!
//! A worker may see a delivery long after the caller heard the outcome: it was on its way. Stamps tell. A broker gives
//! them out in rising order, so what has a higher one than a message that was asked for only after the outcome, was
//! handed out after the outcome too.

use std::collections::BTreeMap;

use turno_proto::model::{Code, MessageId, Mono};

/// Until a broker has learnt that a client closed its connection.
const FAREWELL_MS: u64 = 1_000;

/// A delivery, as a worker saw it.
#[derive(Clone, Copy, Debug)]
struct Handed {
    number: u64,
    asked_at: Mono,
    stamp: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Cancels {
    /// By the run of the broker.
    handed: BTreeMap<u64, Vec<Handed>>,
    /// When the caller heard that it is over.
    over: BTreeMap<u64, Mono>,
}

impl Cancels {
    /// A worker got a request.
    pub(crate) fn handed(&mut self, number: u64, asked_at: Mono, id: MessageId, stamp: u32) {
        self.handed.entry(id.run()).or_default().push(Handed { number, asked_at, stamp });
    }

    /// A caller heard that its request, which was written once at most, is cancelled.
    pub(crate) fn over(&mut self, now: Mono, number: u64) {
        self.over.insert(number, now);
    }

    /// At the end: nothing was handed out after it was over.
    pub(crate) fn judge(&mut self) {
        for handed in self.handed.values_mut() {
            handed.sort_unstable_by_key(|handed| handed.asked_at);
            // The lowest stamp among what was asked for then or later.
            let mut lowest = vec![u32::MAX; handed.len() + 1];
            for at in (0..handed.len()).rev() {
                lowest[at] = handed[at].stamp.min(lowest[at + 1]);
            }
            for Handed { number, stamp, .. } in handed.iter() {
                let Some(over) = self.over.get(number) else { continue };
                let later = handed.partition_point(|other| other.asked_at < *over);
                assert!(*stamp < lowest[later], "I12: {number} was handed out after it was cancelled");
            }
        }
    }
}

/// A worker was told to stop with something whose caller said farewell at that time, and is to be stopped with it.
pub(crate) fn judge_stop(number: u64, reason: Code, farewell: Mono, deadline: Mono) {
    let in_vain = reason == Code::TimedOut && deadline > farewell.plus_millis(FAREWELL_MS);
    assert!(!in_vain, "S1.35: the caller of {number} was gone, and its worker went on until its deadline");
}
