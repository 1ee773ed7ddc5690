//! Limits on lost workers that have deliveries.

/// Losses that a send shared with other deliveries, from which on it goes out alone.
pub const STRIKES_MAX: u8 = 2;
/// Workers that had settled nothing, lost with one send alone, before such a loss counts as an attempt of it.
pub const LOST_ALONE_FREE: u8 = 2;
/// Workers of a queue lost in a row without settling anything, from which on the next one is on trial.
pub const TRIAL_LOSSES: u32 = 2;
/// A worker that is lost within this time of its only delivery, with bytes unread, has not read it.
pub const UNREAD_MS: u64 = 5_000;
/// Workers of a queue lost in a row without settling anything, from which on the next one waits for its first delivery.
pub const LOSSES_MAX: u32 = 3;
/// That pause, at first; doubled with each further loss.
pub const LOSS_PAUSE_MS: u64 = 100;
/// The longest such pause.
pub const LOSS_PAUSE_MS_MAX: u64 = 5_000;
/// How long a worker on trial gets one delivery at a time if it settles nothing.
pub const TRIAL_MS: u64 = 10_000;
/// Slots in use at a worker with unlimited slots. More: it gets nothing until some are free.
pub const UNLIMITED_WINDOW: u32 = 1_024;
