//! Every limit of the store, with its effect.

/// Bytes of a segment, unless set otherwise. A batch that does not fit goes into the next one.
pub const SEGMENT_BYTES: u32 = 64 * 1024 * 1024;
/// Smallest segment that can be set. Smaller: raised to this.
pub const SEGMENT_BYTES_MIN: u32 = 4 * 1024;
/// Largest segment that can be set. Larger: lowered to this; a place has 23 bits for 8-byte steps.
pub const SEGMENT_BYTES_MAX: u32 = 64 * 1024 * 1024;
/// Segment files. More: `Full`. A place has 18 bits for its file.
pub const SEGMENTS_MAX: u32 = 1 << 18;
/// Bytes written ahead of the log in one go.
pub const PREWRITE_BYTES: u32 = 4 * 1024 * 1024;
/// Free segment files kept for the next turn. More: removed.
pub const FREE_SEGMENTS_MAX: usize = 2;
/// Bytes of a key. Longer: `TooLarge`.
pub const KEY_BYTES_MAX: usize = 1024;
/// Bytes that one batch of the committer gathers. What comes then waits in the next batch.
pub const GATHER_BYTES: usize = 4 * 1024 * 1024;
/// Bytes that may wait for the committer. More: [`Committer::is_behind`](crate::Committer::is_behind) says so, and the
/// dispatcher takes nothing in until it is over.
pub const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Attempts of one commit while the store is away. More: fatal.
pub const ATTEMPTS_MAX: u32 = 60;
/// Time between two of them.
pub const ATTEMPT_MS: u64 = 500;
/// Segments that the room for output, and that for results, is divided into, unless they would be too small or too large.
pub const ARCHIVE_SEGMENTS: u64 = 16;
/// Smallest segment of the archive, unless all the room is less.
pub const ARCHIVE_SEGMENT_BYTES_MIN: u64 = 1024 * 1024;
/// Largest segment of the archive. What does not fit goes into the next one.
pub const ARCHIVE_SEGMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Records in one segment of the archive: the index of the one that is written to is in memory. More: the next segment.
pub const ARCHIVE_SEGMENT_RECORDS_MAX: usize = 65_536;
/// Segments of output, and of results. More: the oldest output goes; no more results are taken.
pub const ARCHIVE_SEGMENTS_MAX: usize = 20;
