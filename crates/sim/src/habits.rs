//! What the brokers of a world are set to: leases, and how much of a backlog they keep in memory.

use turno_engine::Settings as EngineSettings;

use crate::rng::Rng;

/// The same for all brokers of a world.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Habits {
    /// In every fourth world: a worker may hold a delivery for so long, and then another gets it.
    pub(crate) lease_ms: Option<u64>,
    /// In every other world: so few bytes that most of a backlog is only on disk.
    hot_bytes: Option<u64>,
}

impl Habits {
    pub(crate) fn some(rng: &mut Rng) -> Self {
        let lease_ms = rng.once_in(4).then(|| rng.range(200, 5_000));
        let hot_bytes = rng.once_in(2).then(|| rng.range(1, 1_500));
        Self { lease_ms, hot_bytes }
    }

    pub(crate) fn apply(self, settings: &mut EngineSettings) {
        settings.lease_ms = self.lease_ms;
        settings.hot_bytes = self.hot_bytes.unwrap_or(settings.hot_bytes);
    }
}
