//! The timer wheel compared with a sorted list.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

const HORIZON_MILLIS: u64 = 1 << 36;

fn micros(micros: u64) -> Mono {
    Mono::from_micros(micros)
}

fn millis(millis: u64) -> Mono {
    Mono::from_millis(millis)
}

fn pop_all(timers: &mut Timers, now: Mono) -> Vec<u32> {
    let owners = std::iter::from_fn(|| timers.pop_due(now)).collect();
    timers.check();
    owners
}

#[test]
fn a_time_is_rounded_up_to_its_tick() {
    // (time, last moment without it, first moment with it), in microseconds
    for (at, still, due) in [
        (5_000, 4_999, 5_000),
        (5_001, 5_999, 6_000),
        (64_000, 63_999, 64_000),
        (4_095_001, 4_095_999, 4_096_000),
        (4_099_999, 4_099_999, 4_100_000),
    ] {
        let mut timers = Timers::new(micros(300));
        assert_eq!(pop_all(&mut timers, micros(at - 1_001)), [0_u32; 0]);
        timers.insert(micros(at), 1);
        assert_eq!(timers.next_deadline(), Some(micros(due)), "{at}");
        assert_eq!(pop_all(&mut timers, micros(still)), [0_u32; 0], "{at} is early");
        assert_eq!(pop_all(&mut timers, micros(due)), [1], "{at} is late");
    }
}

#[test]
fn a_time_in_the_past_fires_at_the_next_pop() {
    for at in [0, 1, 9_999, 10_000, 10_001, 10_500] {
        let mut timers = Timers::new(micros(10_500));
        timers.insert(micros(at), 1);
        assert!(timers.next_deadline() <= Some(micros(10_500)));
        // A clock that steps back counts as standing still.
        assert_eq!(pop_all(&mut timers, micros(0)), [1], "{at}");
    }
}

#[test]
fn timers_of_one_tick_fire_in_the_order_of_insertion() {
    let mut timers = Timers::new(millis(0));
    timers.insert(millis(70_000), 1);
    timers.insert(millis(70_001), 4);
    timers.insert(millis(70_000), 2);
    assert_eq!(pop_all(&mut timers, millis(69_999)), [0_u32; 0]);
    timers.insert(millis(70_000), 3);
    timers.insert(millis(70_001), 5);
    assert_eq!(pop_all(&mut timers, millis(3_600_000)), [1, 2, 3, 4, 5]);
}

#[test]
fn every_level_fires_at_its_tick_within_few_naps() {
    // Starts just before places where digits of the wheel roll over.
    for bits in [0, 6, 12, 30, 36, 40] {
        let start = (1 << bits) - 1;
        let mut timers = Timers::new(millis(start));
        let expected: Vec<_> = (0..36).map(|bits| (start + (1 << bits), bits)).collect();
        for &(at, owner) in expected.iter().rev() {
            timers.insert(millis(at), owner);
        }
        let mut fired = Vec::new();
        let mut naps = 0..36 * LEVEL_COUNT;
        while let (Some(now), Some(_)) = (timers.next_deadline(), naps.next()) {
            let owners = pop_all(&mut timers, now).into_iter();
            fired.extend(owners.map(|owner| (now.as_millis(), owner)));
        }
        assert_eq!(fired, expected);
    }
}

#[test]
fn a_time_beyond_the_horizon_is_placed_again() {
    let mut timers = Timers::new(millis(1_000));
    let never = timers.insert(micros(u64::MAX), 9);
    timers.insert(millis(3 * HORIZON_MILLIS), 1);
    assert_eq!(pop_all(&mut timers, millis(3 * HORIZON_MILLIS - 1)), [0_u32; 0]);
    assert_eq!(pop_all(&mut timers, millis(3 * HORIZON_MILLIS)), [1]);
    timers.remove(never);
    assert_eq!(timers.next_deadline(), None);
}

#[test]
fn a_removed_timer_leaves_nothing_behind() {
    let mut timers = Timers::new(millis(0));
    for round in 0..10_000 {
        let id = timers.insert(millis(30_000 + round), 1);
        timers.remove(id);
    }
    timers.check();
    assert_eq!((timers.len(), timers.next_deadline()), (0, None));
    assert_eq!(timers.entries.len(), SLOT_COUNT as usize + 1);
}

#[test]
#[should_panic(expected = "a timer ends once")]
fn removing_a_popped_timer_is_a_bug_of_the_caller() {
    let mut timers = Timers::new(millis(0));
    let id = timers.insert(millis(1), 1);
    assert_eq!(timers.pop_due(millis(1)), Some(1));
    timers.remove(id);
}

#[derive(Clone, Debug)]
enum Step {
    /// Negative: that far in the past.
    Insert(i64),
    /// The timer of that many steps ago, if it is still there.
    Remove(u32),
    /// Lets time pass and pops at most that many, so that later steps meet a half-drained wheel.
    Advance(u64, usize),
}

/// Spreads evenly over magnitudes: microseconds up to some eighteen years.
fn span() -> impl Strategy<Value = u64> {
    (0u32..50, any::<u64>()).prop_map(|(bits, noise)| noise & ((1 << bits) - 1))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        5 => span().prop_map(|ahead| Step::Insert(ahead as i64)),
        1 => span().prop_map(|ago| Step::Insert(-(ago as i64))),
        4 => (1u32..20).prop_map(Step::Remove),
        2 => (span(), 0usize..4).prop_map(|(span, most)| Step::Advance(span, most)),
        2 => span().prop_map(|span| Step::Advance(span, usize::MAX)),
    ]
}

/// The wheel beside a plain table of its timers: by owner the id, the time, and the moment from
/// which the timer may no longer be withheld.
struct Pair {
    timers: Timers,
    table: BTreeMap<u32, (TimerId, u64, u64)>,
    now: u64,
    /// The latest time the wheel has heard of.
    told: u64,
}

impl Pair {
    fn apply(&mut self, seq: u32, step: Step) {
        match step {
            Step::Insert(delay) => {
                let at = self.now.saturating_add_signed(delay);
                let tick = if at <= self.told { 1 } else { TICK_MICROS };
                let id = self.timers.insert(micros(at), seq);
                self.table.insert(seq, (id, at, at.next_multiple_of(tick)));
            }
            Step::Remove(back) => {
                if let Some((id, ..)) = self.table.remove(&seq.wrapping_sub(back)) {
                    self.timers.remove(id);
                }
            }
            Step::Advance(span, most) => {
                self.now += span;
                self.pop(most);
            }
        }
        self.compare();
    }

    fn pop(&mut self, most: usize) {
        for _ in 0..most {
            self.told = self.now;
            let Some(owner) = self.timers.pop_due(micros(self.now)) else {
                let late = self.table.values().find(|timer| timer.2 <= self.now);
                assert_eq!(late, None, "withheld at {}", self.now);
                let next = self.timers.next_deadline();
                let sleeps = next.is_none_or(|next| next > micros(self.now));
                assert!(sleeps, "a drained wheel lets its caller sleep");
                return;
            };
            let timer = self.table.remove(&owner);
            let (_, at, _) = timer.expect("only a live timer fires, and once");
            assert!(at <= self.now, "{at} fired early at {}", self.now);
        }
    }

    fn compare(&self) {
        self.timers.check();
        assert_eq!(self.timers.len(), self.table.len());
        let next = self.timers.next_deadline();
        assert_eq!(next.is_none(), self.table.is_empty());
        let earliest = self.table.values().map(|timer| timer.2).min();
        let latest = earliest.map(|earliest| micros(earliest.max(self.now)));
        assert!(next <= latest, "{next:?} is later than {latest:?}");
    }
}

proptest! {
    #[test]
    fn agrees_with_a_plain_table(now in span(), steps in prop::collection::vec(step(), 1..120)) {
        let timers = Timers::new(micros(now));
        let mut pair = Pair { timers, table: BTreeMap::new(), now, told: now };
        for (seq, step) in (0u32..).zip(steps) {
            pair.apply(seq, step);
        }
        // Nothing is lost: what is left fires when the caller sleeps from deadline to deadline.
        while let Some(next) = pair.timers.next_deadline() {
            pair.now = pair.now.max(next.as_micros());
            pair.pop(usize::MAX);
        }
        pair.compare();
    }
}
