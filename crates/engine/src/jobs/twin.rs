//! Twins: one worker over two connections, a foreman's for tasks and a native one for deliveries. They have one account:
//! what one takes, the other has not. They find each other by the key that both name, whichever comes first.

use std::sync::Arc;

use turno_proto::model::limits::PEER_NAME_BYTES_MAX;
use turno_proto::model::{ConnId, Slots};

use super::hello::cut;
use crate::effect::Sink;
use crate::engine::Engine;

impl Engine {
    /// REGISTER with the key that a foreman's worker has, or will have.
    pub(crate) fn register_as(
        &mut self,
        conn: ConnId,
        seq: u32,
        slots: Slots,
        names: (String, &str),
        out: &mut impl Sink,
    ) {
        let (name, key) = names;
        self.register(conn, seq, slots, name, out);
        self.forget_native(conn);
        let key = cut(key, PEER_NAME_BYTES_MAX);
        if key.is_empty() || self.peers.worker(conn).is_none() {
            return;
        }
        let key: Arc<str> = Arc::from(key);
        if let Some(before) = self.jobs.natives.insert(Arc::clone(&key), conn) {
            // A newer connection of the same worker.
            self.jobs.native_keys.remove(&before);
            self.part(before);
        }
        self.jobs.native_keys.insert(conn, Arc::clone(&key));
        self.unite(&key);
    }

    /// The two connections that name this key are one worker, if both are there.
    pub(crate) fn unite(&mut self, key: &Arc<str>) {
        let (hands, natives) = (&self.jobs.hands.by_key, &self.jobs.natives);
        let Some((hand, native)) = hands.get(key).copied().zip(natives.get(key).copied()) else { return };
        self.part(hand);
        self.part(native);
        let wanted = self.peers.worker_mut(native).slots;
        let allowed = self.allowed_slots(Some(key), wanted);
        self.peers.worker_mut(native).resize(allowed);
        let used = [hand, native].map(|conn| self.peers.worker_mut(conn).used());
        self.peers.worker_mut(hand).unite(native, used[1]);
        self.peers.worker_mut(native).unite(hand, used[0]);
        self.show_hand(hand);
        self.offer(native);
    }

    /// The connection has an account of its own again, and so has its twin.
    pub(crate) fn part(&mut self, conn: ConnId) {
        let twin = self.peers.get_mut(conn).and_then(|peer| peer.worker.as_deref_mut()?.part());
        let Some(twin) = twin else { return };
        if let Some(worker) = self.peers.get_mut(twin).and_then(|peer| peer.worker.as_deref_mut()) {
            worker.part();
        }
        for conn in [conn, twin] {
            self.show_hand(conn);
            if !self.jobs.is_hand(conn) {
                self.offer(conn);
            }
        }
    }

    /// A native connection is no twin any more.
    pub(crate) fn forget_native(&mut self, conn: ConnId) {
        if let Some(key) = self.jobs.native_keys.remove(&conn) {
            self.jobs.natives.remove(&key);
            self.part(conn);
        }
    }

    /// The worker took slots over one connection: its twin shows less.
    #[inline(never)]
    pub(crate) fn twin_took(&mut self, twin: ConnId, slots: u16) {
        self.peers.worker_mut(twin).twin_took(slots);
        self.show_hand(twin);
        self.show_room(twin);
    }

    /// The worker has slots back: its twin may use them.
    #[inline(never)]
    pub(crate) fn twin_gave(&mut self, twin: ConnId, slots: u16) {
        self.peers.worker_mut(twin).twin_gave(slots);
        self.show_hand(twin);
        if !self.jobs.is_hand(twin) {
            self.offer(twin);
        }
    }
}
