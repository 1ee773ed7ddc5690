//! Limits that protect the broker's time, memory and log from its peers.

use super::Limits;

/// Shapes of the filters of one connection, or of one subscriber that fetches: where a pattern has its wildcards, and how many
/// segments. Of one shape at most one filter matches a topic, so an event is compared with few filters of a connection. More:
/// refused, `too_many_subscriptions`.
pub const SHAPES_MAX: usize = 64;
/// Different sets of places at which filters of all together have several `*` before their last segment: each set is one more
/// path through the tree of filters for every event. More: refused, `too_many_subscriptions`.
pub const STARS_MAX: usize = 256;
/// Filters and nodes of their tree, looked at to find whom an event is for, that are the work of a plain frame.
pub const TURN_WORK_MATCHES: u32 = 64;
/// Bytes of the first HELLO of a job worker: a worker with very many tasks tells of all of them. Longer: closed.
pub const FOREMAN_HELLO_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of unfinished greetings of all connections together that are longer than [`FRAME_HELD_BYTES`]. More: the oldest of
/// them is closed, `greeting_timeout`.
pub const GREETINGS_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of an unfinished frame that are held without asking whether there is memory for the frame. For a longer one the memory
/// of the whole frame is set aside first: if there is none, it is waited for, or the frame is refused, `over_memory`.
pub const FRAME_HELD_BYTES: usize = 4 * 1024;
/// How long a connection waits for that memory. Longer: the frame is refused, `over_memory`; one that must not be lost, or that
/// another broker sent, ends the connection with that code.
pub const FRAME_WAIT_MS: u64 = 30_000;
/// How long a connection that has memory for a frame may send nothing of it while others wait for memory. Longer: closed,
/// `over_memory`.
pub const FRAME_STALL_MS: u64 = 5_000;
/// Bytes of such a frame that must come in each second after that. Fewer, while others wait: closed, `over_memory`.
pub const FRAME_BYTES_PER_SECOND_MIN: u64 = 64 * 1024;
/// Bytes that may wait for a peer that reads none of them while memory is short. More: closed, `over_memory`.
pub const OUT_TIGHT_BYTES: usize = 64 * 1024;
/// How long a peer may take nothing while bytes wait for it and memory is short. Longer: closed, `over_memory`.
pub const OUT_TIGHT_STALL_MS: u64 = 2_000;
/// Log lines of one kind that strangers cause, in [`LOG_WINDOW_MS`]. More: left out, and counted in one line.
pub const LOG_LINES_MAX: u64 = 10;
/// That time.
pub const LOG_WINDOW_MS: u64 = 10_000;
/// Things that are looked at for one page of a listing: each row, and what the row counts. More: the page ends with the row
/// that it was spent on, and the next page goes on behind it.
pub const PAGE_WORK: usize = 50_000;

impl Limits {
    /// Bytes that messages, jobs and events leave to frames on their way in: a worker's reply must come in though messages fill
    /// the memory.
    pub fn frame_share(&self) -> u64 {
        (self.frame_bytes_max as u64).min(self.memory_bytes_max / 4)
    }

    /// Bytes that messages which are read back from the disk leave to new ones.
    pub const fn kept_for_new(&self) -> u64 {
        self.memory_bytes_max / 8
    }

    /// Bytes that are left for what cannot wait: short frames, answers, refusals.
    pub const fn margin(&self) -> u64 {
        self.memory_bytes_max / 16
    }
}
