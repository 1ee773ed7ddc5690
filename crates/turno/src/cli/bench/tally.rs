//! The sums of the answers to a load.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use turno_client::Error;

use crate::cli::error::Failure;
use crate::cli::schema::bench::{BarBody, LatencyBody};

/// Nanoseconds between which latencies are told apart, and how finely: three digits.
const LOWEST: u64 = 100;
const HIGHEST: u64 = 3_600 * NANOS;
const DIGITS: u8 = 3;
const NANOS: u64 = 1_000_000_000;

/// Where the bars of the histogram end, in each power of ten.
const BARS: [u64; 6] = [10, 15, 20, 30, 50, 70];

/// The ends of messages so far.
pub(super) struct BenchTally {
    begun: Instant,
    /// When the last of them ended.
    ended: Instant,
    pub(super) answered: u64,
    pub(super) failed: u64,
    pub(super) errors: BTreeMap<&'static str, u64>,
    /// The first of the failures; the others are only counted.
    pub(super) failure: Option<Failure>,
    /// Bytes of the bodies of answered messages and their replies.
    pub(super) body_bytes: u64,
    /// Of those that were answered; `None` only if its bounds made no sense.
    latency: Option<Histogram<u64>>,
}

impl BenchTally {
    pub(super) fn new(begun: Instant) -> Self {
        Self {
            begun,
            ended: begun,
            answered: 0,
            failed: 0,
            errors: BTreeMap::new(),
            failure: None,
            body_bytes: 0,
            latency: Histogram::new_with_bounds(LOWEST, HIGHEST, DIGITS).ok(),
        }
    }

    /// A message that was due at `since` has ended, with so many bytes of bodies or an error.
    pub(super) fn take(&mut self, since: Instant, now: Instant, end: Result<u64, Error>) {
        self.ended = self.ended.max(now);
        match end {
            Ok(body_bytes) => {
                self.answered += 1;
                self.body_bytes += body_bytes;
                if let Some(latency) = &mut self.latency {
                    let nanos = now.saturating_duration_since(since).as_nanos();
                    latency.saturating_record(u64::try_from(nanos).unwrap_or(HIGHEST));
                }
            }
            Err(error) => {
                self.failed += 1;
                *self.errors.entry(error.code().name()).or_default() += 1;
                self.failure.get_or_insert_with(|| error.into());
            }
        }
    }

    pub(super) const fn sent(&self) -> u64 {
        self.answered + self.failed
    }

    /// From the first message to the last end.
    pub(super) fn elapsed(&self) -> Duration {
        self.ended.saturating_duration_since(self.begun)
    }

    /// So many a second of the time that passed.
    #[expect(clippy::cast_precision_loss, reason = "rates are shown with few digits")]
    pub(super) fn per_second(&self, count: u64) -> f64 {
        let seconds = self.elapsed().as_secs_f64();
        if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
    }

    /// Half of the answers, or 99 of 100, took at most this.
    pub(super) fn percentile(&self, percent: f64) -> Duration {
        let latency = self.latency.as_ref().filter(|latency| !latency.is_empty());
        Duration::from_nanos(latency.map_or(0, |latency| latency.value_at_percentile(percent)))
    }

    pub(super) fn latency(&self) -> Option<LatencyBody> {
        let latency = self.latency.as_ref().filter(|latency| !latency.is_empty())?;
        let seconds = |nanos: u64| Duration::from_nanos(nanos).as_secs_f64();
        Some(LatencyBody {
            min_seconds: seconds(latency.min()),
            mean_seconds: latency.mean() / 1e9,
            p50_seconds: seconds(latency.value_at_percentile(50.0)),
            p90_seconds: seconds(latency.value_at_percentile(90.0)),
            p99_seconds: seconds(latency.value_at_percentile(99.0)),
            p999_seconds: seconds(latency.value_at_percentile(99.9)),
            max_seconds: seconds(latency.max()),
            histogram: bars(latency),
        })
    }
}

/// Every answer in one bar; the first and the last are not empty.
fn bars(latency: &Histogram<u64>) -> Vec<BarBody> {
    let ends = (2..=11).flat_map(|power| BARS.map(|end| end * 10_u64.pow(power - 1))).chain([HIGHEST]);
    let mut values = latency.iter_recorded().peekable();
    let mut bars = Vec::new();
    for end in ends {
        let mut count = 0;
        while let Some(value) = values.next_if(|value| value.value_iterated_to() <= end || end == HIGHEST) {
            count += value.count_at_value();
        }
        if count > 0 || !bars.is_empty() {
            bars.push(BarBody { up_to_seconds: Duration::from_nanos(end).as_secs_f64(), count });
        }
        if values.peek().is_none() {
            break;
        }
    }
    bars
}

#[cfg(test)]
mod tests {
    use turno_proto::model::Code;

    use super::*;

    fn tally(micros: &[u64]) -> BenchTally {
        let begun = Instant::now();
        let mut tally = BenchTally::new(begun);
        for micros in micros {
            tally.take(begun, begun + Duration::from_micros(*micros), Ok(10));
        }
        tally
    }

    fn near(found: f64, expected: f64) -> bool {
        (found / expected - 1.0).abs() < 0.002
    }

    #[test]
    fn answers_and_failures_add_up() {
        let begun = Instant::now();
        let mut tally = tally(&[100, 200]);
        for code in [Code::Failed, Code::TimedOut, Code::Failed] {
            tally.take(begun, begun, Err(Error::from_code(code, "")));
        }
        assert_eq!((tally.sent(), tally.answered, tally.failed), (5, 2, 3));
        assert_eq!(tally.errors, BTreeMap::from([("failed", 2), ("timed_out", 1)]));
        assert_eq!(tally.failure.as_ref().map(Failure::code), Some(Code::Failed));
        assert_eq!((tally.body_bytes, tally.elapsed()), (20, Duration::from_micros(200)));
        assert!(near(tally.per_second(2), 10_000.0));
    }

    #[test]
    fn percentiles_are_those_of_the_answers() {
        let tally = tally(&(1..=1_000).map(|number| number * 10).collect::<Vec<_>>());
        let latency = tally.latency().unwrap();
        for (found, expected) in [
            (latency.min_seconds, 0.000_01),
            (latency.mean_seconds, 0.005_005),
            (latency.p50_seconds, 0.005),
            (latency.p90_seconds, 0.009),
            (latency.p99_seconds, 0.009_9),
            (latency.p999_seconds, 0.009_99),
            (latency.max_seconds, 0.01),
        ] {
            assert!(near(found, expected), "{found} is not {expected}");
        }
        assert_eq!(latency.histogram.iter().map(|bar| bar.count).sum::<u64>(), 1_000);
    }

    #[test]
    fn bars_leave_no_answer_out_and_begin_and_end_with_one() {
        let latency = tally(&[120, 130, 199, 1_000, 7_100_000]).latency().unwrap();
        let bars: Vec<(f64, u64)> = latency.histogram.iter().map(|bar| (bar.up_to_seconds, bar.count)).collect();
        assert_eq!(bars[0], (0.000_15, 2));
        assert_eq!(bars[1], (0.000_2, 1));
        assert_eq!(bars.last(), Some(&(10.0, 1)));
        assert_eq!(bars.iter().map(|(_, count)| count).sum::<u64>(), 5);
        let extremes = tally(&[0, 9_000_000_000]).latency().unwrap().histogram;
        assert_eq!(extremes.iter().map(|bar| bar.count).sum::<u64>(), 2);
    }

    #[test]
    fn nothing_answered_has_no_latency() {
        let tally = tally(&[]);
        assert_eq!((tally.latency(), tally.percentile(99.0)), (None, Duration::ZERO));
        assert!(tally.per_second(5).abs() < f64::EPSILON);
    }
}
