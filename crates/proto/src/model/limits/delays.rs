//! Limits on delays of sends and on the waits between their attempts.

/// The wait before a send that failed once is tried again, where nothing else is set; it doubles with each attempt.
pub const RETRY_DELAY_MS: u64 = 1_000;
/// The longest of these waits, where nothing else is set.
pub const RETRY_DELAY_MAX_MS: u64 = 300_000;
/// The longest of these waits that a queue or a worker can ask for. More: of a queue refused, `bad_call`; of a worker lowered to this.
pub const RETRY_DELAY_MS_MAX: u64 = 2_592_000_000;
/// Longest delay of a send: 366 days. Longer: refused, `bad_option`.
pub const DELAY_MS_MAX: u64 = 31_622_400_000;
/// Bytes of memory that a delayed message counts as while only the store holds it.
pub const DELAYED_BYTES: u64 = 48;
