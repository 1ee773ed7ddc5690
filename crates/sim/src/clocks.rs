//! The clocks of brokers, which are set while their brokers are away.
//!
//! A broker looks at its clock once, when it starts, and counts on by itself. Between two starts the clock may be set back or
//! ahead, by seconds, hours or weeks, or lose its date altogether. What such a clock may do is judged here: it may end
//! something early only if it has shown that moment, and it makes nothing last longer after a start than it was to last at all.
//!
//! Callers, workers and the world have right clocks.

use std::collections::BTreeMap;

use turno_proto::model::Mono;

use crate::rng::Rng;
use crate::world::World;

/// The time of right clocks when the world begins, since 1970.
const BEGIN_MS: u64 = 1_790_000_000_000;
/// Moments are stored in whole milliseconds.
const GRAIN_MS: u64 = 2;
const SECOND_MS: u64 = 1_000;
const HOUR_MS: u64 = 3_600 * SECOND_MS;
const DAY_MS: u64 = 24 * HOUR_MS;

/// A broker's clock, from one start to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Clock {
    /// Its lead over the world's clock.
    ahead_us: u64,
}

impl Default for Clock {
    fn default() -> Self {
        Self { ahead_us: BEGIN_MS * 1_000 }
    }
}

impl Clock {
    /// Its time when the world's clock shows `now`.
    pub(crate) const fn shows(self, now: Mono) -> Mono {
        Mono::from_micros(now.as_micros() + self.ahead_us)
    }

    /// When it shows that.
    pub(crate) const fn when(self, shown: Mono) -> Mono {
        Mono::from_micros(shown.as_micros().saturating_sub(self.ahead_us))
    }

    /// A clock that somebody set, or that nobody did.
    fn odd(rng: &mut Rng) -> Self {
        let Self { ahead_us } = Self::default();
        let off_us = 1_000
            * match rng.range(0, 8) {
                0..=3 => rng.range(1, 20 * SECOND_MS),
                4..=5 => rng.range(SECOND_MS, 3 * HOUR_MS),
                6 => rng.range(HOUR_MS, 60 * DAY_MS),
                // It counts from 1970 on.
                _ => return Self { ahead_us: 0 },
            };
        Self { ahead_us: if rng.once_in(3) { ahead_us + off_us } else { ahead_us - off_us } }
    }

    /// One that shows at least that moment now.
    fn at_least(self, now: Mono, shown: Mono) -> Self {
        Self { ahead_us: self.ahead_us.max(shown.as_micros().saturating_sub(now.as_micros())) }
    }
}

/// The terms of a broker.
#[derive(Clone, Copy, Debug, Default)]
struct Terms {
    /// Above all of them.
    above: Mono,
    /// The last one may not have been written down.
    is_unsure: bool,
}

/// From a start of a broker to its end.
#[derive(Clone, Copy, Debug)]
struct Life {
    number: u64,
    start: Mono,
    end: Option<Mono>,
    clock: Clock,
}

/// Something that a broker was given between two moments, and that lasts for so long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) from: Mono,
    pub(crate) until: Mono,
    pub(crate) ms: u64,
}

/// The history of all brokers' clocks.
#[derive(Debug, Default)]
pub(crate) struct Clocks {
    /// By broker, in their order.
    lives: BTreeMap<usize, Vec<Life>>,
    /// The broker that ids with a run are of.
    brokers: BTreeMap<u64, usize>,
    /// The terms that a broker may have stored at its starts.
    terms: BTreeMap<usize, Terms>,
    /// The world's clock.
    pub(crate) now: Mono,
}

impl Clocks {
    /// Ids with that run will be the broker's.
    pub(crate) fn run_of(&mut self, broker: usize, run: u64) {
        self.brokers.insert(run, broker);
    }

    pub(crate) fn starts(&mut self, broker: usize, number: u64, clock: Clock) {
        let life = Life { number, start: self.now, end: None, clock };
        self.lives.entry(broker).or_default().push(life);
    }

    pub(crate) fn ends(&mut self, broker: usize) {
        if let Some(life) = self.lives.entry(broker).or_default().last_mut() {
            life.end.get_or_insert(self.now);
        }
    }

    pub(crate) fn broker_of(&self, run: u64) -> usize {
        *self.brokers.get(&run).expect("I4: an id names a run that no broker had")
    }

    /// Lives that were under way at some time between two moments.
    fn between(&self, broker: usize, from: Mono, until: Mono) -> impl Iterator<Item = &Life> {
        let lives = self.lives.get(&broker).into_iter().flatten();
        lives.filter(move |life| life.start <= until && life.end.is_none_or(|end| end >= from))
    }

    /// Whether it may be over by now: in this life of the broker or an earlier one.
    pub(crate) fn may_be_over(&self, broker: usize, span: Span) -> bool {
        let Span { from, until, ms } = span;
        let first = self.between(broker, from, until).map(|life| life.clock).min();
        // A sender without an answer sends it again, with the rest of its time.
        let least_ms = ms.saturating_sub(until.millis_since(from));
        first.is_some_and(|first| self.is_over(broker, from, first.shows(from).plus_millis(ms), least_ms))
    }

    /// The same of something that began at that moment by that clock.
    pub(crate) fn may_be_over_since(&self, broker: usize, clock: Clock, from: Mono, ms: u64) -> bool {
        self.is_over(broker, from, clock.shows(from).plus_millis(ms), ms)
    }

    /// Either a clock of the broker has shown `over` since, or the broker has been there again for so long.
    fn is_over(&self, broker: usize, from: Mono, over: Mono, ms: u64) -> bool {
        self.between(broker, from, self.now).any(|life| {
            let last = life.end.unwrap_or(self.now).plus_millis(GRAIN_MS);
            life.clock.shows(last) >= over || (life.start > from && last >= life.start.plus_millis(ms))
        })
    }

    /// The clock of a broker in that life.
    pub(crate) fn of(&self, broker: usize, number: u64) -> Clock {
        let life = self.life(broker, number);
        life.unwrap_or_else(|| panic!("broker {broker} has had no life {number}")).clock
    }

    fn life(&self, broker: usize, number: u64) -> Option<&Life> {
        self.lives.get(&broker).into_iter().flatten().find(|life| life.number == number)
    }

    /// For how long it has surely been over in that life of the broker: by its clock, or because the broker has been there again
    /// for as long as it lasts.
    pub(crate) fn over_for_ms(&self, broker: usize, number: u64, span: Span) -> u64 {
        let Span { from, until, ms } = span;
        let Some(life) = self.life(broker, number) else { return 0 };
        let mut over = until.max(life.start).plus_millis(ms);
        if life.start > until
            && let Some(last) = self.between(broker, from, until).map(|life| life.clock.shows(until)).max()
        {
            over = over.min(life.clock.when(last.plus_millis(ms)).max(life.start));
        }
        self.now.millis_since(over).saturating_sub(GRAIN_MS)
    }
}

impl World {
    /// A broker that starts looks at its clock. One without a store would repeat its tokens if that was set back. So would one
    /// that may find no room to write its term down, now or the last time: its clock is ahead of all it has shown.
    pub(crate) fn set_clock(&mut self, broker: usize) -> Clock {
        let disks = self.brokers[broker].disks.as_ref();
        let (stored, faulty) = (disks.is_some(), disks.is_some_and(|disks| disks.is_faulty));
        let terms = self.oracle.clocks.terms.entry(broker).or_default();
        let is_unsure = std::mem::replace(&mut terms.is_unsure, faulty) || faulty;
        let chance = (stored && !is_unsure && self.rng.once_in(3)).then(|| Rng::new(self.rng.next()));
        let clock = match chance {
            // Nobody remembers after a start how far ahead the clocks of others were, so they differ by little.
            _ if !self.links.is_empty() => Clock { ahead_us: Clock::default().ahead_us + 1_000 * broker as u64 },
            Some(mut chance) => Clock::odd(&mut chance),
            None if is_unsure => Clock::default().at_least(self.now, terms.above),
            None => Clock::default(),
        };
        // Where the clock was set back, the term is the last one and one.
        terms.above = terms.above.max(clock.shows(self.now)).plus_millis(1);
        self.brokers[broker].clock = clock;
        clock
    }

    /// The time of a broker's clock now.
    pub(crate) fn clock_of(&self, broker: usize) -> Mono {
        self.brokers[broker].clock.shows(self.now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60 * SECOND_MS;

    fn at(minutes: u64) -> Mono {
        Mono::from_millis(minutes * MINUTE_MS)
    }

    fn clock(ahead_minutes: u64) -> Clock {
        Clock { ahead_us: ahead_minutes * MINUTE_MS * 1_000 }
    }

    /// One broker, with a life from each start to the next.
    fn clocks(lives: &[(u64, Clock)], now: u64) -> Clocks {
        let mut clocks = Clocks::default();
        for (number, (start, clock)) in (1..).zip(lives) {
            clocks.now = at(*start);
            clocks.ends(0);
            clocks.starts(0, number, *clock);
        }
        clocks.now = at(now);
        clocks
    }

    /// A period of ten minutes from minute 10 of the first life: is it over at a moment of the last life, perhaps or
    /// surely?
    #[test]
    fn when_something_is_over() {
        let span = Span { from: at(10), until: at(10), ms: 10 * MINUTE_MS };
        let right = clock(100);
        type Case<'a> = (&'a str, &'a [(u64, Clock)], u64, bool, u64);
        let table: [Case<'_>; 8] = [
            ("not yet", &[(0, right)], 19, false, 0),
            ("by the only clock there was", &[(0, right)], 21, true, 1),
            ("a restart changes nothing", &[(0, right), (15, right)], 21, true, 1),
            ("set ahead, it is over at once", &[(0, right), (15, clock(110))], 16, true, 1),
            ("set ahead by little, a little earlier", &[(0, right), (12, clock(103))], 18, true, 1),
            ("set back, it lasts until the clock shows it", &[(0, right), (11, clock(99))], 20, false, 0),
            ("set back by much, no longer than it lasts at all", &[(0, right), (12, clock(0))], 23, true, 1),
            ("a clock in between may have ended it", &[(0, right), (12, clock(110)), (13, right)], 14, true, 0),
        ];
        for (why, lives, now, may, surely) in table {
            let clocks = clocks(lives, now);
            assert_eq!(clocks.may_be_over(0, span), may, "{why}");
            let number = lives.len() as u64;
            assert_eq!(clocks.over_for_ms(0, number, span).div_ceil(MINUTE_MS), surely, "{why}");
        }
    }

    /// Clocks show all kinds of moments, and their brokers are told the world's moments back.
    #[test]
    fn clocks_are_set_in_all_ways() {
        let now = at(1);
        let (right, mut rng) = (Clock::default(), Rng::new(1));
        let odd: Vec<Clock> = (0..200).map(|_| Clock::odd(&mut rng)).collect();
        assert!(odd.iter().all(|clock| clock.when(clock.shows(now)) == now));
        let off_ms = |clock: &Clock| right.ahead_us.abs_diff(clock.ahead_us) / 1_000;
        let back = |most_ms: u64| odd.iter().any(|clock| *clock < right && off_ms(clock) < most_ms);
        let ahead = |least_ms: u64| odd.iter().any(|clock| *clock > right && off_ms(clock) > least_ms);
        assert!(back(20 * SECOND_MS) && ahead(0) && ahead(20 * SECOND_MS) && ahead(DAY_MS));
        assert!(odd.contains(&Clock { ahead_us: 0 }), "some have no date");
    }
}
