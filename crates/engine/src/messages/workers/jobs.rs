//! Slots of job workers: one account over two connections.
//!
//! A job worker may have a native connection for deliveries beside the foreman's for tasks. What one of them takes, the other
//! has not.

use turno_proto::model::{ConnId, Mono, Slots};

use super::peer::Peers;

impl Peers {
    /// A foreman's connection is there.
    pub(crate) fn insert_job_worker(&mut self, conn: ConnId, address: String) {
        self.insert(conn, String::new(), address);
        if let Some(peer) = self.get_mut(conn) {
            peer.is_job_worker = true;
        }
    }

    /// A foreman's connection is a worker's from now on, or has another name and size.
    pub(crate) fn enlist_job_worker(&mut self, conn: ConnId, name: &str, slots: Slots, now: Mono) {
        let Some(peer) = self.get_mut(conn) else { return };
        peer.ready = true;
        name.clone_into(&mut peer.name);
        let turn = peer.worker.is_none().then(|| self.next_turn());
        if let Some((worker, turn)) = self.enlist(conn, name.to_owned(), slots, now).zip(turn) {
            worker.turn = turn;
        }
    }

    /// A task takes slots of the worker, which has had its turn. Returns the worker's other connection, which has less room.
    pub(crate) fn take_for_task(&mut self, conn: ConnId, slots: u16, now: Mono) -> Option<ConnId> {
        let turn = self.next_turn();
        let worker = self.worker_mut(conn);
        worker.take(slots);
        worker.deliveries += 1;
        worker.last_used = Some(now);
        worker.turn = turn;
        self.pair_takes(conn, slots)
    }

    /// The same for a task that runs there in any case.
    pub(crate) fn take_over_for_task(&mut self, conn: ConnId, slots: u16) -> Option<ConnId> {
        self.worker_mut(conn).take_over(slots);
        self.pair_takes(conn, slots)
    }

    fn pair_takes(&mut self, conn: ConnId, slots: u16) -> Option<ConnId> {
        let pair = self.worker_mut(conn).pair?;
        self.worker_mut(pair).pair_took(slots);
        Some(pair)
    }

    /// A task takes slots of the worker no longer. Returns the worker's other connection, which may have more room.
    pub(crate) fn give_back_of_task(&mut self, conn: ConnId, slots: u16) -> Option<ConnId> {
        let worker = self.worker_mut(conn);
        worker.give_back(slots);
        let pair = worker.pair?;
        self.worker_mut(pair).pair_gave(slots);
        Some(pair)
    }

    /// The worker says how one of its tasks went.
    pub(crate) fn count_task_end(&mut self, conn: ConnId, success: bool) {
        let worker = self.worker_mut(conn);
        *(if success { &mut worker.settled } else { &mut worker.failed }) += 1;
    }

    /// Two connections of one worker have one account from now on.
    pub(crate) fn unite(&mut self, job_worker: ConnId, native: ConnId) {
        let used = [job_worker, native].map(|conn| self.worker_mut(conn).used());
        self.worker_mut(job_worker).unite(native, used[1]);
        self.worker_mut(native).unite(job_worker, used[0]);
    }

    /// The connection has an account of its own again, and so has its other one, which is returned.
    pub(crate) fn part(&mut self, conn: ConnId) -> Option<ConnId> {
        let pair = self.get_mut(conn)?.worker.as_deref_mut()?.part()?;
        if let Some(worker) = self.get_mut(pair).and_then(|peer| peer.worker.as_deref_mut()) {
            worker.part();
        }
        Some(pair)
    }
}
