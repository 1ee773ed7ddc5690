//! Random settings of a broker.

use std::num::NonZeroUsize;

use turno_engine::{Policy, RetryDelay, Settings, StoreSettings};
use turno_proto::model::{Limits, limits};

use crate::IN_FLIGHT_MAX;
use crate::chance::Chance;
use crate::op::Focus;

/// A broker's settings, and what surrounds it.
#[derive(Clone, Debug)]
pub struct Setup {
    pub(crate) settings: Settings,
    /// The disk stores when it is told to, and not at once.
    pub(crate) lags: bool,
    pub(crate) focus: Focus,
    /// How many workers are there from the beginning.
    pub(crate) workers: usize,
}

impl Setup {
    /// Small limits, and all else in many ways.
    pub fn draw(chance: &mut impl Chance) -> Self {
        let has_store = chance.once_in(2);
        let lags = has_store && chance.once_in(2);
        let focus = match chance.below(4) {
            0 if lags => Focus::Disk,
            1 => Focus::Exclusive,
            _ => Focus::All,
        };
        let mut limits = Limits { in_flight_max: IN_FLIGHT_MAX as u32, ..Limits::default() };
        if chance.once_in(4) {
            limits.queues_max = 3;
        }
        if chance.once_in(6) {
            limits.memory_bytes_max = 2_000;
        }
        if chance.once_in(4) {
            limits.dead_max = chance.index(4);
        }
        // A configuration may name any lease, even one beyond the end of time.
        let lease_ms = match chance.below(10) {
            0..7 => None,
            7..9 => Some(chance.range(500, 5_000)),
            _ => Some(u64::MAX),
        };
        let store = StoreSettings { run: 1 << 20, unix_ms: 0, last_serial: 0 };
        let settings = Settings {
            policy: chance.pick(&[Policy::LeastRecentlyUsed, Policy::LeastRecentlyUsed, Policy::Fill]),
            lease_ms,
            limits,
            // With few rotas of their own, workers of two or three queues belong to shared rotas.
            own_rotas_max: chance.pick(&[8, 1, 0]),
            store: has_store.then_some(store),
            // With a small window, stored messages wait on disk.
            hot_bytes: chance.pick(&[300, 300, 1_000, 1, limits::HOT_BYTES]),
            retry_delay: chance.pick(&[
                RetryDelay::NONE,
                RetryDelay { first_ms: 200, most_ms: 900 },
                RetryDelay { first_ms: 200, most_ms: 900 },
                RetryDelay::default(),
            ]),
            // With small portions, what a caller leaves behind ends later.
            portion: chance.pick(&[limits::CHORES_MAX, NonZeroUsize::MIN]),
            ..Settings::default()
        };
        let workers = if chance.once_in(4) { chance.index(4) } else { 4 };
        Self { settings, lags, focus, workers }
    }

    /// Which operations come more often than others.
    pub const fn focus(&self) -> Focus {
        self.focus
    }
}
