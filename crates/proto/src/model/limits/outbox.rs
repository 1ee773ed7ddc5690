//! Limits on the output of tasks that a worker holds until the broker has taken it.

/// Bytes of the beginning of an attempt's output that its worker holds unsent. More: the task waits until the broker took
/// some, [`OUTBOX_PATIENCE_MS`] at most.
pub const OUTBOX_HEAD_BYTES_MAX: usize = 512 * 1024;
/// Bytes of the end of an attempt's output that its worker holds, whatever the broker would keep. More: the oldest goes.
pub const OUTBOX_TAIL_BYTES_MAX: usize = 4 * 1024 * 1024;
/// How often the streams may take turns in what a worker holds of an attempt's beginning, and of its end. More often: as
/// if these bytes were too many.
pub const OUTBOX_RUNS_MAX: usize = 4_096;
/// Calls with output that a worker has under way. More: they wait, and are filled meanwhile.
pub const OUTBOX_CALLS_MAX: usize = 4;
/// How long a worker waits for more of an attempt's output before it sends what is less than a whole call.
pub const OUTBOX_LINGER_MS: u64 = 50;
/// How often a worker shows what somebody looks at, of an attempt whose beginning is complete.
pub const OUTBOX_SHOW_MS: u64 = 200;
/// Bytes of it each time. More: the newest.
pub const OUTBOX_SHOW_BYTES: usize = 64 * 1024;
/// How often a worker asks what is looked at, while it runs tasks whose beginning is complete.
pub const OUTBOX_ASK_MS: u64 = 1_000;
/// After how long a call with output is made again; twice as long each time.
pub const OUTBOX_AGAIN_MS: u64 = 100;
/// The longest of these times.
pub const OUTBOX_AGAIN_MS_MAX: u64 = 2_000;
/// How long the broker may take nothing while a task waits for it, because of its output. Longer: a task that runs goes
/// on, and its output is left out; one that has ended is told so, and its output is lost.
pub const OUTBOX_PATIENCE_MS: u64 = 30_000;
/// The same while it does take something.
pub const OUTBOX_PATIENCE_MS_MAX: u64 = 300_000;
/// How long a worker that ends waits until its last output is kept.
pub const OUTBOX_CLOSE_MS: u64 = 2_000;
