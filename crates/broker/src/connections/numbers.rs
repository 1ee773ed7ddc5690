//! Numbers of connections, unique among the routers of a broker.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// The numbers for the connections of a router; no two routers of a broker use the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct NumberAllocation {
    /// The router's own number, which the lowest `bits` of a connection's index hold.
    pub(crate) router: u32,
    pub(crate) bits: u32,
    /// Counts all connections of the broker: an answer never finds a later connection that has the same place.
    pub(crate) accepted: Arc<AtomicU32>,
}
