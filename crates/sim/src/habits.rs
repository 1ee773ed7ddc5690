//! Settings of the brokers of a world: leases, how much of a backlog they keep in memory, how much memory there is for it,
//! and how much they do at a time. And their workers.

use std::num::NonZeroUsize;

use turno_engine::{RetryDelay, Settings as EngineSettings};

use crate::rng::Rng;

/// The same for all brokers of a world, and the same for all who work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits {
    /// In every fourth world: a worker may hold a delivery for so long, and then another gets it.
    pub(crate) lease_ms: Option<u64>,
    /// In every other world: so few bytes that most of a backlog is only on disk.
    hot_bytes: Option<u64>,
    /// In half of these: so little memory that what is on disk often waits for some.
    load_bytes: Option<u64>,
    /// In every other world: so few messages are ended or given back at a time that the rest has to wait.
    portion: Option<NonZeroUsize>,
    /// In every fourth world: all workers consume all queues, and so are in one shared rota where there are shared rotas.
    pub(crate) alike: bool,
    /// In every fourth world: one worker dies soon after it was given something, again and again.
    pub(crate) fragile: bool,
    /// How long failed sends wait: not at all in every fourth world.
    retry_delay: RetryDelay,
}

impl Habits {
    /// Whether there is so little memory that messages on disk often wait for some.
    pub(crate) const fn waits_for_memory(&self) -> bool {
        self.load_bytes.is_some()
    }

    pub(crate) fn some(rng: &mut Rng) -> Self {
        let lease_ms = rng.once_in(4).then(|| rng.range(200, 5_000));
        let hot_bytes = rng.once_in(2).then(|| rng.range(1, 1_500));
        let mut chance = Rng::new(rng.clone().next());
        let load_bytes = (hot_bytes.is_some() && chance.once_in(2)).then(|| chance.range(0, 6_000));
        let portion = chance.once_in(2).then(|| NonZeroUsize::MIN.saturating_add(chance.index(3)));
        let (alike, fragile) = (chance.once_in(4), chance.once_in(4));
        let waits = [(0, 0), (1, 50), (300, 2_000), (1_000, 6_000)];
        let (first_ms, most_ms) = waits[chance.index(waits.len())];
        let retry_delay = RetryDelay { first_ms, most_ms };
        Self { lease_ms, hot_bytes, load_bytes, portion, alike, fragile, retry_delay }
    }

    pub(crate) fn apply(self, settings: &mut EngineSettings) {
        settings.lease_ms = self.lease_ms;
        settings.retry_delay = self.retry_delay;
        settings.hot_bytes = self.hot_bytes.unwrap_or(settings.hot_bytes);
        let limits = &settings.limits;
        let left = limits.memory_bytes_max - limits.margin() - limits.frame_share();
        settings.kept_for_new = self.load_bytes.map(|bytes| left - bytes);
        settings.portion = self.portion.unwrap_or(settings.portion);
    }
}
