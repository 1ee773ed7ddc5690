//! The bits of the header's flag byte. One bit may mean two things in frames that never share it.

/// REQUEST, SEND, BROADCAST, DELIVER, FORWARD: a deadline (u32 ms) is the next field.
pub const DEADLINE: u8 = 0x01;
/// REQUEST, SEND: the number of retries (u8) is the next field.
pub const RETRIES: u8 = 0x02;
/// REQUEST, SEND: the priority (u8) is the next field.
pub const PRIORITY: u8 = 0x04;
/// REQUEST, SEND: the cost (u16) is the next field.
pub const COST: u8 = 0x08;
/// Every frame with a payload: it begins with a header block.
pub const HEADERS: u8 = 0x10;
/// REQUEST, BROADCAST, FORWARD, FORWARD_BROADCAST: no reply wanted; answered as soon as it is written, never retried.
pub const NO_REPLY: u8 = 0x20;
/// REQUEST: fail at once if nobody consumes the queue.
pub const FAIL_FAST: u8 = 0x40;
/// BROADCAST: not to the connection it comes from.
pub const SKIP_SELF: u8 = 0x40;
/// REQUEST: a worker that has it is told to stop when its caller's connection ends.
pub const CANCEL_ON_DISCONNECT: u8 = 0x80;
/// SEND: the delay (u64 ms) is the field after the cost.
pub const DELAY: u8 = 0x40;
/// SEND: the dedup id (u8 length, then its bytes) is the next field.
pub const DEDUP: u8 = 0x80;

/// FORWARD: only to a worker that holds nothing else and gets nothing else before it settles this.
pub const ALONE: u8 = 0x40;

/// SUBSCRIBE, UNSUBSCRIBE: the filter is a prefix of bytes, no pattern.
pub const PREFIX: u8 = 0x01;
/// SUBSCRIBE: a slow subscriber is disconnected; without it the oldest events are dropped.
pub const OR_CLOSE: u8 = 0x02;
/// PUBLISH: to be answered by OK.
pub const CONFIRM: u8 = 0x01;

/// RETCONN: on its way round, looking for a sender; without it, the first message of one.
pub const CALL: u8 = 0x01;
/// RING_SID: it tells a number; without it, it asks for one.
pub const FREE: u8 = 0x01;

/// CONSUME: nobody else may consume the queue meanwhile.
pub const EXCLUSIVE: u8 = 0x01;
/// OK, DELIVER and what settles one: the token of an exclusive queue (u64) is the first field.
pub const TOKEN: u8 = 0x08;
/// DELIVER, FORWARD: settled by REPLY, not by ACK.
pub const WANTS_REPLY: u8 = 0x02;
/// REPLY, ANSWER: more pieces follow.
pub const MORE: u8 = 0x01;
/// STORED: a send with the same dedup id came before; nothing was added.
pub const DUPLICATE: u8 = 0x01;
/// ANSWER: the consumer failed; the payload says why.
pub const FAILED: u8 = 0x02;
/// FAIL: no other attempt will do better.
pub const PERMANENT: u8 = 0x01;
/// FAIL: the time until the next attempt (u32 ms) is the next field.
pub const AFTER: u8 = 0x02;
/// FAIL: the attempt does not count.
pub const UNCOUNTED: u8 = 0x04;
/// ERROR: the connection ends after this frame.
pub const FATAL: u8 = 0x01;
