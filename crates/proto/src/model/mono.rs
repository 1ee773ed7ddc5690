//! Time as the engine knows it: microseconds since some start, handed in by whoever calls.

use std::ops::Add;
use std::time::Duration;

/// A point on a clock that only rises. The shell decides where zero is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(u64);

impl Mono {
    /// The clock's zero.
    pub const ZERO: Self = Self(0);

    /// A point `micros` microseconds after zero.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// A point `millis` milliseconds after zero.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Microseconds since zero.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole milliseconds since zero.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// This point plus `millis`, never past the end of time.
    pub const fn plus_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis.saturating_mul(1_000)))
    }

    /// Milliseconds from `earlier` to this point, rounded down; zero if `earlier` is later.
    pub const fn millis_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0) / 1_000
    }

    /// Milliseconds from `now` until this point, rounded up; zero if it has passed.
    pub const fn millis_left(self, now: Self) -> u64 {
        self.0.saturating_sub(now.0).div_ceil(1_000)
    }

    /// How long from `earlier` to this point; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Mono {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        let micros = u64::try_from(rhs.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }
}
