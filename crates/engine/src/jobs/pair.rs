//! Paired connections: one worker over two connections, a foreman's for tasks and a native one for deliveries. They have one account:
//! what one takes, the other has not. They find each other by the key that both name, whichever comes first.

use std::sync::Arc;

use turno_proto::model::ConnId;
use turno_proto::model::limits::PEER_NAME_BYTES_MAX;

use super::Jobs;
use super::context::{Consequence, JobsContext};
use super::hello::cut;

impl Jobs {
    /// A native connection registered with the key that a foreman's worker has, or will have.
    pub(crate) fn native_came(&mut self, cx: &mut JobsContext<'_>, conn: ConnId, key: &str) {
        self.forget_native(cx, conn);
        let key = cut(key, PEER_NAME_BYTES_MAX);
        if key.is_empty() || cx.worker(conn).is_none() {
            return;
        }
        let key: Arc<str> = Arc::from(key);
        if let Some(before) = self.natives.insert(Arc::clone(&key), conn) {
            // A newer connection of the same worker.
            self.native_keys.remove(&before);
            self.part(cx, before);
        }
        self.native_keys.insert(conn, Arc::clone(&key));
        self.unite(cx, &key);
    }

    /// The two connections that name this key are one worker, if both are there.
    pub(super) fn unite(&mut self, cx: &mut JobsContext<'_>, key: &Arc<str>) {
        let Some((job_worker, native)) = self.job_workers.by_key.get(key).copied().zip(self.natives.get(key).copied())
        else {
            return;
        };
        self.part(cx, job_worker);
        self.part(cx, native);
        let Some(wanted) = cx.worker(native).map(|worker| worker.slots()) else { return };
        cx.resize(native, self.allowed_slots(Some(key), wanted));
        cx.unite(job_worker, native);
        self.show_job_worker(cx, job_worker);
        cx.cause(Consequence::MoreRoom(native));
    }

    /// The connection has an account of its own again, and so has its paired connection.
    pub(super) fn part(&mut self, cx: &mut JobsContext<'_>, conn: ConnId) {
        let Some(pair) = cx.part(conn) else { return };
        for conn in [conn, pair] {
            if self.is_job_worker(conn) {
                self.show_job_worker(cx, conn);
            } else {
                cx.cause(Consequence::MoreRoom(conn));
            }
        }
    }

    /// A native connection is no paired connection any more.
    pub(crate) fn forget_native(&mut self, cx: &mut JobsContext<'_>, conn: ConnId) {
        if let Some(key) = self.native_keys.remove(&conn) {
            self.natives.remove(&key);
            self.part(cx, conn);
        }
    }
}
