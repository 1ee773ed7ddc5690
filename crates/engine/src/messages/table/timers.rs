//! The timers of the engine: a hierarchical timer wheel.
//!
//! Six levels of 64 slots, one slot of the lowest level being one millisecond. A timer sits in the
//! level of the highest digit (base 64) in which its tick differs from the wheel's, and falls to a
//! lower level each time the wheel arrives at its slot: at most five moves in its life. Occupancy
//! bitmaps let the wheel skip empty time, so a jump of hours costs no more than a jump of one tick.
//!
//! This module must never read a clock (time comes in as an argument), never fire a timer early, and
//! never keep an entry of a removed timer: most timers here are removed long before they are due.

use std::num::NonZeroU32;

use turno_proto::model::Mono;

/// Names a timer from its insertion until it is removed or popped; afterwards the id may be reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) struct TimerId(NonZeroU32);

impl TimerId {
    fn new(index: u32) -> Self {
        Self(NonZeroU32::new(index).expect("the first entries are slots"))
    }
}

#[derive(Debug)]
pub(in crate::messages) struct Timers {
    /// The first `SLOT_COUNT` entries are no timers but the slots: each is the anchor of a circular
    /// list, so that unlinking needs to know neither the slot nor whether an end was hit.
    entries: Vec<TimerEntry>,
    /// Bit `i` of level `l` is set exactly when slot `i` of that level holds a timer.
    occupied: [u64; LEVEL_COUNT],
    /// First entry of the free list, linked by `next`.
    free_first: u32,
    len: usize,
    /// The latest time heard of.
    now: Mono,
    /// Where the wheel stands, in ticks. Behind `now` only while due timers wait to be popped.
    elapsed: u64,
}

impl Timers {
    pub(in crate::messages) fn new(now: Mono) -> Self {
        Self {
            entries: (0..SLOT_COUNT).map(anchor).collect(),
            occupied: [0; LEVEL_COUNT],
            free_first: NONE,
            len: 0,
            now,
            elapsed: tick_floor(now),
        }
    }

    /// A time in the past fires at the next `pop_due`. Timers of one tick fire in the order of their
    /// insertion, unless one of them was put beyond the horizon of the wheel (two years).
    pub(crate) fn insert(&mut self, at: Mono, owner: u32) -> TimerId {
        let tick = if at <= self.now {
            // Already due, although the tick that ends its millisecond may not have come yet.
            tick_ceil(at).clamp(self.elapsed, tick_floor(self.now))
        } else {
            tick_ceil(at)
        };
        let index = self.allocate(tick, owner);
        self.link(index);
        self.len += 1;
        TimerId::new(index)
    }

    /// The timer must be neither removed nor popped yet.
    pub(in crate::messages) fn remove(&mut self, id: TimerId) {
        self.unlink(id.0.get());
        self.release(id.0.get());
        self.len -= 1;
    }

    /// When to call `pop_due` next: not later than the tick at which the earliest timer fires, that
    /// is its time rounded up to the millisecond (a deadline before that tick would find nothing to
    /// pop and make the caller spin). May be earlier where the wheel has to move timers down.
    pub(in crate::messages) fn next_deadline(&self) -> Option<Mono> {
        let (_, tick) = self.first_slot()?;
        Some(Mono::from_micros(tick.saturating_mul(TICK_MICROS)))
    }

    /// Takes one timer whose time has come and gives its owner; call until there is none. A clock
    /// that steps back counts as standing still.
    pub(in crate::messages) fn pop_due(&mut self, now: Mono) -> Option<u32> {
        self.now = self.now.max(now);
        let tick_now = tick_floor(self.now);
        while let Some((slot, tick)) = self.first_slot()
            && tick <= tick_now
        {
            self.elapsed = tick;
            if level_of(slot) == 0 {
                let id = TimerId::new(self.entries[slot as usize].next);
                let owner = self.entries[id.0.get() as usize].owner;
                self.remove(id);
                return Some(owner);
            }
            self.cascade(slot);
        }
        // Every slot left starts later than `tick_now`, so no timer's level changes by this.
        self.elapsed = tick_now;
        None
    }

    pub(in crate::messages) fn len(&self) -> usize {
        self.len
    }

    /// Walks everything and asserts that lists, bitmaps, places and counts agree.
    pub(crate) fn check(&self) {
        let tick_now = tick_floor(self.now);
        assert!(self.elapsed <= tick_now, "the wheel is not ahead of time");
        let mut linked = 0;
        for slot in 0..SLOT_COUNT {
            let before = linked;
            let ends = self.entries[slot as usize];
            let (mut last, mut index) = (slot, ends.next);
            while index != slot {
                let entry = &self.entries[index as usize];
                assert!(index >= SLOT_COUNT, "a slot's list holds timers only");
                assert_eq!(entry.prev, last, "a list reads the same in both directions");
                self.check_place(slot, entry.tick);
                linked += 1;
                assert!(linked <= self.len, "no more timers are linked than counted");
                (last, index) = (index, entry.next);
            }
            assert_eq!(ends.prev, last, "a slot knows its last timer");
            let occupied = self.occupied[level_of(slot)] & bit_of(slot) != 0;
            assert_eq!(occupied, linked > before, "bits mark slots in use");
        }
        assert_eq!(linked, self.len, "every timer counted is linked");

        let room = self.entries.len() - SLOT_COUNT as usize;
        let mut unused = 0;
        let mut index = self.free_first;
        while index != NONE {
            let entry = &self.entries[index as usize];
            assert_eq!(entry.prev, NONE, "a free entry is marked as free");
            unused += 1;
            assert!(unused <= room, "the free list has an end");
            index = entry.next;
        }
        assert_eq!(linked + unused, room, "an entry is linked or free");
    }
}

const TICK_MICROS: u64 = 1_000;
const DIGIT_BITS: u32 = 6;
const DIGIT_MASK: u64 = (1 << DIGIT_BITS) - 1;
const LEVEL_COUNT: usize = 6;
const LEVEL_TOP: usize = LEVEL_COUNT - 1;
/// Ticks to turns of the top level: one turn is one slot there.
const TURN_BITS: u32 = DIGIT_BITS * LEVEL_TOP as u32;
const SLOT_COUNT: u32 = (LEVEL_COUNT as u32) << DIGIT_BITS;
/// No entry: the end of the free list, and in `prev` the mark of a free entry.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct TimerEntry {
    /// The first tick at which it may fire: its time, rounded up.
    tick: u64,
    owner: u32,
    prev: u32,
    next: u32,
}

impl Timers {
    /// The occupied slot that starts first, and the tick it starts at. Whatever lies in a level lies
    /// before everything in the levels above, so the lowest level in use has the answer.
    fn first_slot(&self) -> Option<(u32, u64)> {
        let level = self.occupied.iter().position(|&occupied| occupied != 0)?;
        let shift = DIGIT_BITS * level as u32;
        let here = self.elapsed >> shift;
        let digit_here = (here & DIGIT_MASK) as u32;
        // Only the top level wraps round; below it this never finds a slot behind the wheel.
        let ahead = self.occupied[level].rotate_right(digit_here);
        let there = here + u64::from(ahead.trailing_zeros());
        Some((slot_at(level, there), there << shift))
    }

    fn slot_for(&self, tick: u64) -> u32 {
        let turn_here = self.elapsed >> TURN_BITS;
        let turns = (tick >> TURN_BITS) - turn_here;
        if turns > 0 {
            // Beyond the horizon: waits in the farthest slot and is placed again from there.
            return slot_at(LEVEL_TOP, turn_here + turns.min(DIGIT_MASK));
        }
        let level = ((tick ^ self.elapsed) | 1).ilog2() / DIGIT_BITS;
        slot_at(level as usize, tick >> (DIGIT_BITS * level))
    }

    /// Empties a slot at whose start the wheel has arrived into the levels below, keeping the order.
    fn cascade(&mut self, slot: u32) {
        let anchor = &mut self.entries[slot as usize];
        let mut index = anchor.next;
        (anchor.prev, anchor.next) = (slot, slot);
        self.occupied[level_of(slot)] &= !bit_of(slot);
        while index != slot {
            let next = self.entries[index as usize].next;
            self.link(index);
            index = next;
        }
    }

    fn link(&mut self, index: u32) {
        let slot = self.slot_for(self.entries[index as usize].tick);
        let last = self.entries[slot as usize].prev;
        let entry = &mut self.entries[index as usize];
        (entry.prev, entry.next) = (last, slot);
        self.entries[last as usize].next = index;
        self.entries[slot as usize].prev = index;
        self.occupied[level_of(slot)] |= bit_of(slot);
    }

    fn unlink(&mut self, index: u32) {
        let TimerEntry { prev, next, .. } = self.entries[index as usize];
        assert_ne!(prev, NONE, "a timer ends once: removed or popped, not both");
        self.entries[prev as usize].next = next;
        self.entries[next as usize].prev = prev;
        if prev == next {
            // In a circular list only an anchor can stand on both sides: the slot is empty now.
            self.occupied[level_of(prev)] &= !bit_of(prev);
        }
    }

    fn allocate(&mut self, tick: u64, owner: u32) -> u32 {
        if self.free_first == NONE {
            let index = self.entries.len();
            assert!(index < NONE as usize, "timers do not outnumber ids");
            self.entries.push(anchor(NONE));
            self.release(index as u32);
        }
        let index = self.free_first;
        let entry = &mut self.entries[index as usize];
        self.free_first = entry.next;
        (entry.tick, entry.owner) = (tick, owner);
        index
    }

    fn release(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        (entry.prev, entry.next) = (NONE, self.free_first);
        self.free_first = index;
    }

    fn check_place(&self, slot: u32, tick: u64) {
        assert!(tick >= self.elapsed, "no timer lies behind the wheel");
        if level_of(slot) < LEVEL_TOP {
            let place = self.slot_for(tick);
            assert_eq!(slot, place, "a timer lies where its tick belongs");
            return;
        }
        let turn_here = self.elapsed >> TURN_BITS;
        let turns = u64::from(slot).wrapping_sub(turn_here) & DIGIT_MASK;
        let turns_left = (tick >> TURN_BITS) - turn_here;
        assert!(turns > 0, "the turn the wheel is in has left the top level");
        assert!(turns <= turns_left, "no timer waits beyond its own turn");
    }
}

fn anchor(slot: u32) -> TimerEntry {
    TimerEntry { tick: 0, owner: NONE, prev: slot, next: slot }
}

fn tick_floor(time: Mono) -> u64 {
    time.as_micros() / TICK_MICROS
}

fn tick_ceil(time: Mono) -> u64 {
    time.as_micros().div_ceil(TICK_MICROS)
}

/// `position` counts slots of that level since time zero.
fn slot_at(level: usize, position: u64) -> u32 {
    ((level as u32) << DIGIT_BITS) | (position & DIGIT_MASK) as u32
}

fn level_of(slot: u32) -> usize {
    (slot >> DIGIT_BITS) as usize
}

fn bit_of(slot: u32) -> u64 {
    1 << (u64::from(slot) & DIGIT_MASK)
}

#[cfg(test)]
mod tests;
