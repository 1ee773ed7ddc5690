//! The memory budget of a broker: the engine's memory, in-buffers and out-buffers.
//!
//! Buffers are counted where they grow and shrink, not for every frame. Routers on threads of their own share the counts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use turno_engine::Buffers;
use turno_proto::model::Limits;

/// The counts of one broker.
#[derive(Debug)]
pub struct MemoryMeter {
    max: u64,
    margin: u64,
    frame_share: u64,
    engine: AtomicU64,
    incoming: AtomicU64,
    outgoing: AtomicU64,
    waiting: AtomicU64,
    refused: AtomicU64,
    closed: AtomicU64,
}

/// Memory for messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageMemory {
    /// Bytes for which there is room now, as far as the counts have come round.
    pub(crate) free: u64,
    /// Bytes for which there would be room if nothing else were there.
    pub(crate) most: u64,
}

fn read(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}

/// Changes a shared count from what somebody had counted there to what it is now.
fn change(count: &AtomicU64, before: u64, now: u64) {
    if now > before {
        count.fetch_add(now - before, Ordering::Relaxed);
    } else if now < before {
        count.fetch_sub(before - now, Ordering::Relaxed);
    }
}

impl MemoryMeter {
    pub(super) fn new(limits: &Limits) -> Arc<Self> {
        let (max, margin, frame_share) = (limits.memory_bytes_max, limits.margin(), limits.frame_share());
        let none = || AtomicU64::new(0);
        let (engine, incoming, outgoing, waiting, refused, closed) = (none(), none(), none(), none(), none(), none());
        Arc::new(Self { max, margin, frame_share, engine, incoming, outgoing, waiting, refused, closed })
    }

    /// Bytes of everything.
    pub fn total(&self) -> u64 {
        read(&self.engine).saturating_add(read(&self.incoming)).saturating_add(read(&self.outgoing))
    }

    /// Bytes of in-buffers, with what is set aside for frames that have begun.
    pub fn incoming(&self) -> u64 {
        read(&self.incoming)
    }

    /// Bytes of out-buffers.
    pub fn outgoing(&self) -> u64 {
        read(&self.outgoing)
    }

    /// Whether so many bytes more are within the limit.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        self.total().saturating_add(bytes) <= self.max
    }

    /// The same for what may be left out: as much as messages do it leaves to frames on their way in.
    pub(super) fn has_spare_room(&self, bytes: u64) -> bool {
        bytes <= self.room().free
    }

    /// Memory that the engine has left for messages.
    pub(super) fn room(&self) -> MessageMemory {
        let incoming = self.incoming().max(self.frame_share);
        let taken = read(&self.engine).saturating_add(read(&self.outgoing)).saturating_add(incoming + self.margin);
        MessageMemory {
            free: self.max.saturating_sub(taken),
            most: self.max.saturating_sub(self.margin + self.frame_share),
        }
    }

    /// Memory is short: only what cannot wait is still taken.
    pub(super) fn is_tight(&self) -> bool {
        self.total() > self.max - self.margin
    }

    /// Whether some connection waits for memory.
    pub(super) fn is_contested(&self) -> bool {
        read(&self.waiting) > 0
    }

    /// Whether the engine would refuse a message of so many bytes, however long one waits for buffers to become empty.
    pub(super) fn refuses(&self, bytes: u64) -> bool {
        read(&self.engine).saturating_add(bytes) > self.max - self.margin - self.frame_share
    }

    /// Bytes that several connections share. They count once, for as long as any of them has them.
    pub(super) fn share(meter: &Arc<Self>, bytes: &[u8]) -> Bytes {
        meter.outgoing.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Bytes::from_owner(CountedBytes { bytes: bytes.into(), meter: Arc::clone(meter) })
    }

    /// The bytes in buffers, for the engine.
    pub(super) fn buffers(&self) -> Buffers {
        let incoming = self.incoming();
        Buffers {
            incoming,
            outgoing: self.outgoing(),
            kept_free: self.margin + self.frame_share.saturating_sub(incoming),
            waiting: read(&self.waiting),
            refused: read(&self.refused),
            closed: read(&self.closed),
        }
    }

    /// Sets the bytes that the engine holds.
    pub(super) fn set_engine(&self, bytes: u64) {
        self.engine.store(bytes, Ordering::Relaxed);
    }

    /// A frame was refused before it was read.
    pub(super) fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection was closed.
    pub(super) fn count_closed(&self) {
        self.closed.fetch_add(1, Ordering::Relaxed);
    }
}

/// Bytes that count until they are dropped.
struct CountedBytes {
    bytes: Box<[u8]>,
    meter: Arc<MemoryMeter>,
}

impl AsRef<[u8]> for CountedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for CountedBytes {
    fn drop(&mut self) {
        self.meter.outgoing.fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
    }
}

/// The bytes of one router's connections. They are given back with the router, however that ends.
#[derive(Debug)]
pub(super) struct Account {
    meter: Arc<MemoryMeter>,
    incoming: u64,
    outgoing: u64,
    waiting: u64,
}

impl Account {
    pub(super) const fn new(meter: Arc<MemoryMeter>) -> Self {
        Self { meter, incoming: 0, outgoing: 0, waiting: 0 }
    }

    pub(super) const fn meter(&self) -> &Arc<MemoryMeter> {
        &self.meter
    }

    /// An in-buffer that was counted as so many bytes is that large now.
    pub(super) fn incoming(&mut self, counted: &mut usize, bytes: usize) {
        if *counted != bytes {
            change(&self.meter.incoming, *counted as u64, bytes as u64);
            self.incoming = self.incoming + bytes as u64 - *counted as u64;
            *counted = bytes;
        }
    }

    /// The same for an out-buffer.
    pub(super) fn outgoing(&mut self, counted: &mut usize, bytes: usize) {
        if *counted != bytes {
            change(&self.meter.outgoing, *counted as u64, bytes as u64);
            self.outgoing = self.outgoing + bytes as u64 - *counted as u64;
            *counted = bytes;
        }
    }

    /// Sets memory aside for a frame of which so much was counted. False: there is none, and nothing changes. One that
    /// must come in though it is longer than all memory (`must`) may, if no other is on its way.
    pub(super) fn set_aside(&mut self, counted: &mut usize, bytes: usize, must: bool) -> bool {
        let meter = Arc::clone(&self.meter);
        let before = *counted;
        self.incoming(counted, bytes.max(before));
        // Counted first and looked at then: two routers at once are refused rather than let in.
        let others = meter.incoming().saturating_sub(*counted as u64);
        let alone = must && bytes as u64 > meter.max - meter.margin && others <= meter.margin;
        if alone || !meter.is_tight() {
            return true;
        }
        self.incoming(counted, before);
        false
    }

    /// So many connections wait for memory.
    pub(super) fn set_waiting(&mut self, waiting: u64) {
        if self.waiting != waiting {
            change(&self.meter.waiting, self.waiting, waiting);
            self.waiting = waiting;
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        change(&self.meter.incoming, self.incoming, 0);
        change(&self.meter.outgoing, self.outgoing, 0);
        change(&self.meter.waiting, self.waiting, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter() -> Arc<MemoryMeter> {
        MemoryMeter::new(&Limits { memory_bytes_max: 1_600, frame_bytes_max: 300, ..Limits::default() })
    }

    #[test]
    fn what_is_set_aside_is_within_the_limit() {
        let meter = meter();
        let (mut one, mut other) = (Account::new(Arc::clone(&meter)), Account::new(Arc::clone(&meter)));
        let (mut a, mut b, mut c) = (10, 0, 0);
        one.incoming(&mut 0, 10);
        assert!(one.set_aside(&mut a, 1_000, false));
        assert_eq!((a, meter.total()), (1_000, 1_000));
        assert!(!other.set_aside(&mut b, 501, false), "1,500 of 1,600 are for frames");
        assert_eq!((b, meter.total()), (0, 1_000));
        assert!(other.set_aside(&mut b, 500, false));
        assert!(!other.set_aside(&mut c, 1, true), "others are on their way in");
        drop(one);
        assert_eq!(meter.total(), 500, "given back with the router");
        other.incoming(&mut b, 0);
        assert!(other.set_aside(&mut c, 5_000, true), "nothing else would make room");
        assert!(!meter.has_room(0) && meter.is_tight());
    }

    #[test]
    fn the_engine_leaves_room_for_a_frame() {
        let meter = meter();
        assert_eq!(meter.buffers().kept_free, 100 + 300);
        let mut account = Account::new(Arc::clone(&meter));
        let mut counted = 0;
        account.incoming(&mut counted, 200);
        assert_eq!((meter.buffers().incoming, meter.buffers().kept_free), (200, 100 + 100));
        meter.set_engine(1_000);
        assert!(meter.refuses(201) && !meter.refuses(200));
    }
}
