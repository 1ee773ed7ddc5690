//! The engine's time: microseconds since its start, an argument of every call.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::Add;
use std::time::Duration;

/// A point on a clock that only rises. The shell decides where zero is.
///
/// An `Option` of it takes no more room: a million messages wait with a deadline or without one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono {
    /// Microseconds since zero, and one more.
    above_zero: NonZeroU64,
}

impl Mono {
    /// The clock's zero.
    pub const ZERO: Self = Self { above_zero: NonZeroU64::MIN };

    /// A point `micros` microseconds after zero.
    pub const fn from_micros(micros: u64) -> Self {
        Self { above_zero: NonZeroU64::MIN.saturating_add(micros) }
    }

    /// A point `millis` milliseconds after zero.
    pub const fn from_millis(millis: u64) -> Self {
        Self::from_micros(millis.saturating_mul(1_000))
    }

    /// Microseconds since zero.
    pub const fn as_micros(self) -> u64 {
        self.above_zero.get() - 1
    }

    /// Whole milliseconds since zero.
    pub const fn as_millis(self) -> u64 {
        self.as_micros() / 1_000
    }

    /// This point plus `millis`, never past the end of time.
    pub const fn plus_millis(self, millis: u64) -> Self {
        Self { above_zero: self.above_zero.saturating_add(millis.saturating_mul(1_000)) }
    }

    /// Milliseconds from `earlier` to this point, rounded down; zero if `earlier` is later.
    pub const fn millis_since(self, earlier: Self) -> u64 {
        self.as_micros().saturating_sub(earlier.as_micros()) / 1_000
    }

    /// Milliseconds from `now` until this point, rounded up; zero if it has passed.
    pub const fn millis_left(self, now: Self) -> u64 {
        self.as_micros().saturating_sub(now.as_micros()).div_ceil(1_000)
    }

    /// How long from `earlier` to this point; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.as_micros().saturating_sub(earlier.as_micros()))
    }
}

impl Default for Mono {
    fn default() -> Self {
        Self::ZERO
    }
}

impl fmt::Debug for Mono {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mono").field(&self.as_micros()).finish()
    }
}

impl Add<Duration> for Mono {
    type Output = Self;

    fn add(self, rhs: Duration) -> Self {
        let micros = u64::try_from(rhs.as_micros()).unwrap_or(u64::MAX);
        Self { above_zero: self.above_zero.saturating_add(micros) }
    }
}
