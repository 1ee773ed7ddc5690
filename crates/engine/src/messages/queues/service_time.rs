//! Service times of a queue's requests, to predict which would be answered too late.
//!
//! Mean and deviation are smoothed as TCP does it for its retransmission timer, in whole microseconds. The estimate
//! never decides whether a queue is served, only which of its requests are: a wrong one must not shut it.

use turno_proto::model::{Mono, limits};

use crate::messages::queues::queue::Queue;
use crate::messages::table::message::{Message, MessageStage, Wants};

/// Samples before the estimate counts.
const SAMPLES_MIN: u8 = 8;

/// Samples are no finer than this: a delivery remembers its beginning in whole milliseconds.
const GRAIN_US: u64 = 1_000;

/// No request is held for longer, unless nobody looked at the clock.
const LONGEST_US: u64 = limits::REQUEST_DEADLINE_MS_MAX as u64 * 1_000;

/// The estimate of one queue.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::messages) struct ServiceTime {
    /// Microseconds, times 8: what a division by 8 would lose is kept.
    mean_of_8: u64,
    /// Mean deviation in microseconds, times 4.
    deviation_of_4: u64,
    /// RecentTopics no further than it matters.
    samples: u8,
}

impl ServiceTime {
    /// A worker took that long. One that took far longer than the others counts for no more than twice the
    /// estimate: a single one that hangs says little about the rest, and when all are slow the estimate doubles
    /// with each of them.
    pub(in crate::messages) fn took(&mut self, micros: u64) {
        if self.samples == 0 {
            self.mean_of_8 = micros * 8;
            self.deviation_of_4 = micros * 2;
        } else {
            let micros = micros.min(2 * self.upper() + GRAIN_US);
            let off = micros.abs_diff(self.mean());
            self.mean_of_8 = self.mean_of_8 - self.mean() + micros;
            self.deviation_of_4 = self.deviation_of_4 - self.deviation_of_4 / 4 + off;
        }
        self.count();
    }

    /// A worker had that long and was not done. It takes longer, nobody knows how much: twice as long, as TCP backs
    /// off, or an estimate that is too low would only ever see times as low as itself. That it was not done in less
    /// than the mean changes nothing.
    pub(in crate::messages) fn took_longer_than(&mut self, micros: u64) {
        if micros >= self.mean() {
            self.took(micros * 2);
        } else {
            self.count();
        }
    }

    /// The time within which a worker all but surely answers: mean and four deviations. Zero, for which nothing is
    /// too late, until there are enough samples.
    pub(in crate::messages) const fn estimate(&self) -> u64 {
        if self.samples < SAMPLES_MIN { 0 } else { self.upper() }
    }

    const fn count(&mut self) {
        if self.samples < SAMPLES_MIN {
            self.samples += 1;
        }
    }

    const fn mean(&self) -> u64 {
        self.mean_of_8 / 8
    }

    const fn upper(&self) -> u64 {
        self.mean() + self.deviation_of_4
    }
}

impl Queue {
    /// A worker settles a request, well or not.
    pub(in crate::messages) fn note_settled(&mut self, request: &Message, now: Mono) {
        self.service.took(held_micros(request, now));
    }

    /// The time of a request ran out at its worker.
    pub(in crate::messages) fn note_overrun(&mut self, request: &Message, now: Mono) {
        self.service.took_longer_than(held_micros(request, now));
    }

    /// Whether the head of this queue would come back too late, so that the slot is better used by what waits behind
    /// it. Never so for the last that waits, nor for one that has more of its time before it than behind it: so
    /// every queue is served, and its estimate fixed, however wrong that is.
    pub(in crate::messages) fn would_be_late(&self, head: &Message, now: Mono) -> bool {
        let Some(deadline) = head.deadline else { return false };
        let left = micros_between(now, deadline);
        left < self.service.estimate()
            && left < micros_between(head.born, now)
            && head.wants == Wants::Reply
            && self.backlog.len() > 1
    }
}

/// For how long a worker has had it.
fn held_micros(message: &Message, now: Mono) -> u64 {
    let MessageStage::Held { age_ms, .. } = message.state else { panic!("only a delivery that is held takes time") };
    micros_between(message.born, now).saturating_sub(u64::from(age_ms) * GRAIN_US).min(LONGEST_US)
}

const fn micros_between(earlier: Mono, later: Mono) -> u64 {
    later.as_micros().saturating_sub(earlier.as_micros())
}

#[cfg(test)]
mod tests {
    use turno_proto::model::ConnId;

    use super::*;

    /// A step of a worker, in milliseconds.
    #[derive(Clone, Copy, Debug)]
    enum WorkerStep {
        Took(u64),
        Overran(u64),
    }
    use WorkerStep::{Overran, Took};

    /// Steps, each with how often it is repeated.
    type Samples = &'static [(usize, WorkerStep)];

    fn after(samples: &[(usize, WorkerStep)]) -> ServiceTime {
        let mut service = ServiceTime::default();
        for (times, did) in samples {
            for _ in 0..*times {
                match did {
                    Took(ms) => service.took(ms * 1_000),
                    Overran(ms) => service.took_longer_than(ms * 1_000),
                }
            }
        }
        service
    }

    /// Mean and estimate in microseconds, as the rule gives them by hand.
    #[test]
    fn mean_and_deviation_are_smoothed() {
        let rows: [(Samples, u64, u64); 12] = [
            (&[], 0, 0),
            (&[(1, Took(10))], 10_000, 30_000),
            (&[(2, Took(10))], 10_000, 25_000),
            (&[(8, Took(10))], 10_000, 12_671),
            (&[(60, Took(10))], 10_000, 10_003),
            (&[(60, Took(0))], 0, 0),
            (&[(60, Took(10)), (1, Took(12))], 10_250, 12_253),
            (&[(60, Took(10)), (1, Took(2))], 9_000, 17_003),
            (&[(60, Took(10)), (1, Took(9_999))], 11_375, 22_384),
            (&[(60, Took(10)), (1, Overran(9))], 10_000, 10_003),
            (&[(60, Took(10)), (1, Overran(10))], 11_250, 21_253),
            (&[(60, Took(0)), (1, Took(9_999))], 125, 1_125),
        ];
        for (samples, mean, upper) in rows {
            let service = after(samples);
            assert_eq!((service.mean(), service.upper()), (mean, upper), "{samples:?}");
        }
    }

    /// Seven samples are none; from the eighth on, of whatever kind, there is an estimate.
    #[test]
    fn few_samples_are_none() {
        let rows: [(Samples, bool); 5] = [
            (&[], false),
            (&[(7, Took(10))], false),
            (&[(8, Took(10))], true),
            (&[(4, Took(10)), (4, Overran(1))], true),
            (&[(8, Overran(10))], true),
        ];
        for (samples, trusted) in rows {
            let service = after(samples);
            assert_eq!(service.estimate(), if trusted { service.upper() } else { 0 }, "{samples:?}");
        }
    }

    /// From any start the estimate reaches what workers take, whichever way, within a hundred samples.
    #[test]
    fn the_estimate_follows() {
        for (from, to) in [(1, 1_000), (1_000, 1), (0, 50), (50, 0), (5, 40)] {
            let service = after(&[(20, Took(from)), (100, Took(to))]);
            let wanted = to * 1_000..=to * 1_000 + to * 10 + 500;
            assert!(wanted.contains(&service.estimate()), "{from} to {to} ms: {}", service.estimate());
        }
    }

    /// A clock that leaps by all the time there is adds the longest time a request may take, no more.
    #[test]
    fn a_leap_of_the_clock_fits() {
        let end = Mono::from_micros(u64::MAX);
        let state =
            MessageStage::Held { worker: ConnId { index: 0, generation: 1 }, age_ms: 0, streamed: false, freed: false };
        let request = Message { state, wants: Wants::Reply, ..Message::waiting(4) };
        assert_eq!(held_micros(&request, end), LONGEST_US);
        let mut service = ServiceTime::default();
        for _ in 0..100 {
            service.took(LONGEST_US);
            service.took_longer_than(LONGEST_US);
        }
        assert!(service.estimate() >= LONGEST_US);
    }
}
