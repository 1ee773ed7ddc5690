//! Addresses of LMQ peers, and the connections behind which they are. All routers share one table for each endpoint.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use turno_proto::model::ConnId;

/// Where messages for an address go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Holder {
    /// The connection.
    pub(crate) conn: ConnId,
    /// The seat of the worker that registered with the address, if one did.
    pub(crate) seat: Option<ConnId>,
    /// The peer of the connection passes messages on to the address: it stays on top of them.
    pub(crate) passes_on: bool,
}

/// The addresses at one endpoint, each a stack of frames. An address has one holder: the peer that said it last.
#[derive(Debug, Default)]
pub(crate) struct Addresses(Mutex<BTreeMap<Vec<Bytes>, Holder>>);

impl Addresses {
    /// The address is that peer's from now on. Returns the peer that had it.
    pub(super) fn claim(&self, address: &[Bytes], holder: Holder) -> Option<Holder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(address.to_vec(), holder)
    }

    /// The peer that has an address of one frame.
    pub(super) fn holder(&self, address: &Bytes) -> Option<Holder> {
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.get(std::slice::from_ref(address)).copied()
    }

    /// That worker is gone: its address is free, unless somebody else has it.
    pub(super) fn release(&self, address: &[Bytes], seat: ConnId) {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if table.get(address).is_some_and(|holder| holder.seat == Some(seat)) {
            table.remove(address);
        }
    }

    /// The connection is over, and with it everybody behind it.
    pub(super) fn left(&self, conn: ConnId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, holder| holder.conn != conn);
    }
}
