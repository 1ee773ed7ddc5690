//! The random settings of a ring's world.

use super::wires::BrokerPlace;
use crate::rng::Rng;

/// The random settings of a world.
#[derive(Clone, Copy, Debug)]
pub(super) struct WorldSettings {
    pub(super) members: usize,
    /// Times of `--ring-fast`.
    pub(super) fast: bool,
    pub(super) sorted: bool,
    /// A second broker with somebody's number lives at another place.
    pub(super) rogue: bool,
    /// One of the members lies.
    pub(super) liar: Option<BrokerPlace>,
    /// Members have proven that they know a secret.
    pub(super) has_secret: bool,
    /// Somebody who is no member dials members and poses as others. Only without a secret can it be greeted.
    pub(super) stranger: bool,
    pub(super) window: usize,
    pub(super) window_bytes: usize,
    /// Microseconds that bytes take at most.
    pub(super) latency: u64,
    /// Milliseconds between two faults, on average; and how long the storm lasts.
    pub(super) faults: u64,
    pub(super) storm: u64,
    /// Milliseconds between two publications of one member, on average.
    pub(super) publications: u64,
}

impl WorldSettings {
    pub(super) fn new(seed: u64, rng: &mut Rng) -> Self {
        // From another row of numbers, so that worlds that were known before are the same otherwise.
        let mut secrets = Rng::new(!seed);
        let has_secret = secrets.once_in(2);
        let stranger = !has_secret && secrets.once_in(2);
        let members = rng.index(7) + 1;
        let fast = rng.once_in(4);
        let (sorted, rogue) = (rng.once_in(5), rng.once_in(6));
        let liar = (!rogue && rng.once_in(8)).then(|| rng.index(members));
        let small = rng.once_in(3);
        let window = if small { rng.index(6) + 1 } else { 65_536 };
        let window_bytes = if rng.once_in(6) { 400 } else { 8 * 1024 * 1024 };
        let latency = if fast { 3_000 } else { [1_000, 5_000, 40_000][rng.index(3)] };
        let faults = if fast { rng.range(150, 1_500) } else { [400, 2_000, 6_000, 15_000][rng.index(4)] };
        let storm = if fast { 20_000 } else { rng.range(30_000, 120_000) };
        let publications = [40, 200, 700][rng.index(3)] * if fast { 1 } else { 2 };
        Self {
            members,
            fast,
            sorted,
            rogue,
            liar,
            has_secret,
            stranger,
            window,
            window_bytes,
            latency,
            faults,
            storm,
            publications,
        }
    }

    /// Whether somebody says what is not true.
    pub(super) const fn has_lies(&self) -> bool {
        self.liar.is_some() || self.stranger
    }

    pub(super) const fn beat_ms(&self) -> u64 {
        if self.fast { 100 } else { 1_000 }
    }
}
