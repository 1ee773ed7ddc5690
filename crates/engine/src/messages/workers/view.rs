//! Views of workers.

use std::collections::BTreeMap;

use turno_proto::model::view::{
    BrokerView, JobsView, MemoryView, MessageView, StandingView, WorkerKind, WorkerState, WorkerView,
};
use turno_proto::model::{Code, ConnId, Seconds, Slots, WorkerId};

use super::peer::Worker;
use crate::messages::Messages;
use crate::messages::table::chain::Lane;
use crate::page::page;

impl Messages {
    /// A worker's connection, and its other one if it has two.
    pub(crate) fn connections_of(&self, conn: ConnId) -> Vec<ConnId> {
        let pair = self.peers.worker(conn).and_then(|worker| worker.pair);
        std::iter::once(conn).chain(pair).collect()
    }

    /// The other connection of a worker, by which it is not shown: it is shown as the worker for jobs that it is too.
    fn shown_as(&self, conn: ConnId) -> ConnId {
        let pair = self.peers.worker(conn).and_then(|worker| worker.pair);
        pair.filter(|_| !self.is_job_worker(conn)).unwrap_or(conn)
    }

    /// By id, or by name if only one worker has it.
    pub(crate) fn find_worker(&self, id_or_name: &str) -> Result<ConnId, Code> {
        if let Some(conn) = id_or_name.parse().ok().and_then(|id: u64| self.peers.with_id(id)) {
            return Ok(self.shown_as(conn));
        }
        let is_named = |conn: ConnId| self.peers.worker(conn).is_some_and(|worker| worker.name == id_or_name);
        let mut named = self.peers.workers(0).filter(|conn| self.shown_as(*conn) == *conn && is_named(*conn));
        match (named.next(), named.next()) {
            (None, _) => Err(Code::NotFound),
            (Some(conn), None) => Ok(conn),
            (Some(_), Some(_)) => Err(Code::Ambiguous),
        }
    }

    pub(crate) fn is_job_worker(&self, conn: ConnId) -> bool {
        self.peers.get(conn).is_some_and(|peer| peer.is_job_worker)
    }

    /// Some of the messages that a worker has now, over any of its connections.
    pub(crate) fn messages_of(&self, conn: ConnId, limit: usize) -> Vec<MessageView> {
        let workers: Vec<&Worker> = self.both(conn).collect();
        let held = workers.iter().flat_map(|worker| worker.held.iter(&self.messages, Lane::Place));
        held.take(limit).map(|index| self.message_view(index)).collect()
    }

    /// The standings of a worker in its queues, over any of its connections.
    pub(crate) fn standings_of(&self, conn: ConnId) -> Vec<StandingView> {
        self.both(conn).flat_map(|worker| self.standing_views(worker)).collect()
    }

    fn both(&self, conn: ConnId) -> impl Iterator<Item = &Worker> {
        self.connections_of(conn).into_iter().filter_map(|conn| self.peers.worker(conn))
    }

    /// A page of workers, by their connections, and whether there are more.
    pub(crate) fn worker_page(&self, after: Option<u64>, limit: u32) -> (Vec<ConnId>, bool) {
        let from = after.map_or(0, |after| after.saturating_add(1));
        let conns = self.peers.workers(from).filter(|conn| self.shown_as(*conn) == *conn);
        let work = |conn: &ConnId| self.peers.worker(*conn).map_or(0, |worker| worker.consumes.len());
        page(conns, limit, work, |conn| conn)
    }

    /// A worker, with what it does over its other connection; jobs add what they know.
    pub(crate) fn worker_view(&self, conn: ConnId) -> Option<WorkerView> {
        let peer = self.peers.get(conn)?;
        let worker = peer.worker.as_deref()?;
        let state = match (worker.draining || worker.leaving, peer.ready) {
            (true, _) => WorkerState::Draining,
            (false, true) => WorkerState::Ready,
            (false, false) => WorkerState::Greeting,
        };
        let kind = match (peer.is_job_worker, worker.pair) {
            (false, _) => WorkerKind::Queue,
            (true, None) => WorkerKind::Job,
            (true, Some(_)) => WorkerKind::Both,
        };
        let all = self.connections_of(conn);
        let both: Vec<&Worker> = self.both(conn).collect();
        let sum = |count: fn(&Worker) -> u64| both.iter().map(|worker| count(worker)).sum();
        let consumes = both.iter().flat_map(|worker| &worker.consumes);
        Some(WorkerView {
            id: WorkerId(worker.id),
            kind,
            name: worker.name.clone(),
            address: peer.address.clone(),
            state,
            slots: worker.slots,
            slots_max: None,
            used: worker.used(),
            tasks_running: 0,
            free: worker.slots.free(worker.used()),
            queues: consumes.map(|consuming| self.queues.at(consuming.queue).name.to_string()).collect(),
            exclusive: all.iter().flat_map(|conn| self.holdings(*conn)).collect(),
            waits_for: all.iter().flat_map(|conn| self.waits_for(*conn)).collect(),
            labels: BTreeMap::new(),
            registered_at: self.settings.moment(worker.registered),
            last_used_at: both.iter().filter_map(|worker| worker.last_used).max().map(|at| self.settings.moment(at)),
            unread_bytes: sum(|worker| if worker.must_read { worker.unread_bytes } else { 0 }),
            deliveries: sum(|worker| worker.deliveries),
            settled: sum(|worker| worker.settled),
            failed: sum(|worker| worker.failed),
            dropped: sum(|worker| worker.dropped),
            standings: None,
            holds: None,
            tasks: None,
        })
    }

    /// The broker as far as queues and workers show it.
    pub(crate) fn broker_view(&self) -> BrokerView {
        let (mut workers, mut slots, mut slots_used) = (0, 0, 0);
        for conn in self.peers.workers(0) {
            let Some(worker) = self.peers.worker(conn) else { continue };
            // Of one worker over two connections one counts: the account is the same.
            if self.shown_as(conn) != conn {
                continue;
            }
            workers += 1;
            slots_used += u64::from(worker.used());
            if let Slots::Limited(count) = worker.slots {
                slots += u64::from(count);
            }
        }
        let links = self.links.counts();
        BrokerView {
            name: self.settings.name.clone(),
            version: self.settings.version.clone(),
            started_at: self.settings.moment(self.started),
            up_seconds: Seconds::from_millis(self.now.millis_since(self.started)),
            draining: self.drain.is_some(),
            maintenance: self.is_in_maintenance(),
            foreman: self.settings.foreman.clone(),
            connections: self.peers.len() as u64,
            workers,
            slots,
            slots_used,
            queues: self.queues.len() as u64,
            ready: self.stats.ready,
            delayed: self.stats.delayed,
            in_flight: self.stats.in_flight,
            dead: self.stats.dead,
            jobs: JobsView::default(),
            data: self.settings.data.clone(),
            disk: None,
            bytes: self.stats.bytes,
            bytes_max: self.settings.limits.memory_bytes_max,
            memory: MemoryView::default(),
            links_up: links.up,
            links_wanted: links.wanted,
            links_down: links.down,
            ring: None,
            counters: self.stats.counters,
        }
    }
}
