//! What an admin may ask and change.

use std::collections::BTreeSet;

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::limits::{AHEAD_CANCELLED_MAX, AHEAD_MAX, PAGE_MAX, SLOTS_MAX, VIEW_MESSAGES_MAX};
use turno_proto::model::view::{BrokerView, ConsumerView, QueueView, WorkerKind, WorkerState, WorkerView};
use turno_proto::model::{Closing, ClosingReason, Code, ConnId, MessageId, Slots};

use crate::archive::ArchiveInput;
use crate::chain::Lane;
use crate::cold::Question;
use crate::effect::{Effect, Sink};
use crate::engine::Engine;
use crate::jobs::JobsInput;
use crate::page::page;
use crate::peer::Worker;
use crate::topics::Topics;

impl Engine {
    pub(crate) fn admin(&mut self, conn: ConnId, seq: u32, call: AdminCall, out: &mut impl Sink) {
        if let AdminCall::MessageExplain { id } | AdminCall::MessageCancel { id } = &call
            && let Some(serial) = self.find_cold(id)
        {
            let cancel = matches!(call, AdminCall::MessageCancel { .. });
            return self.ask(serial, Question { conn, seq, cancel }, out);
        }
        if is_about_jobs(&call) {
            return self.tell_jobs(JobsInput::Call { conn, seq, call }, out);
        }
        if Topics::are_asked_by(&call) {
            return out.effect(match self.topics.call(self.now, call, &self.peers) {
                Ok(answer) => Effect::Answer { conn, seq, answer: Box::new(answer) },
                Err(code) => Effect::Error { conn, seq, code },
            });
        }
        if Self::is_about_links(&call) {
            return self.link_call(conn, seq, call, out);
        }
        if Self::is_about_the_ring(&call) {
            return self.ring_call(conn, seq, call, out);
        }
        if is_for_archive(&call) {
            return self.tell_archive(ArchiveInput::Call { conn, seq, call }, out);
        }
        if let AdminCall::QueueSet { queue, settings } = call {
            return self.set_queue(conn, seq, &queue, settings, out);
        }
        match self.answer_to(call, out) {
            Ok(answer) => self.tell_once_stored(conn, seq, answer, out),
            Err(code) => out.effect(Effect::Error { conn, seq, code }),
        }
    }

    fn answer_to(&mut self, call: AdminCall, out: &mut impl Sink) -> Result<AdminAnswer, Code> {
        Ok(match call {
            AdminCall::Status => AdminAnswer::Status { broker: Box::new(self.broker_view()) },
            AdminCall::Drain => {
                self.begin_maintenance(out)?;
                AdminAnswer::Status { broker: Box::new(self.broker_view()) }
            }
            AdminCall::Resume => {
                self.end_maintenance(out)?;
                AdminAnswer::Status { broker: Box::new(self.broker_view()) }
            }
            AdminCall::QueueLs { after, limit } => self.queue_page(after.as_deref(), limit),
            AdminCall::QueueShow { queue } => {
                let number = self.queues.find(&queue).ok_or(Code::NotFound)?;
                let mut view = self.queue_view(number);
                let head = self.queues.at(number).backlog.iter(&self.messages).take(VIEW_MESSAGES_MAX);
                view.head = head.map(|index| self.message_view(index)).collect();
                AdminAnswer::Queue { queue: Box::new(view) }
            }
            AdminCall::QueueConsumers { queue } => {
                let number = self.queues.find(&queue).ok_or(Code::NotFound)?;
                let (consumers, more) = self.consumer_views(number);
                AdminAnswer::Consumers { consumers, more }
            }
            AdminCall::QueuePurge { queue, limit } => self.purge(&queue, limit, out)?,
            AdminCall::DeadLs { queue, after, limit } => self.dead_page(&queue, after.as_deref(), limit)?,
            AdminCall::DeadShow { queue, id, from } => self.dead_answer(&queue, &id, from)?,
            AdminCall::DeadRetry { queue, ids, oldest } => self.retry_dead(&queue, &ids, oldest, out)?,
            AdminCall::DeadPurge { queue, ids, oldest } => self.purge_dead(&queue, &ids, oldest)?,
            AdminCall::WorkerLs { after, limit } => self.worker_page(after, limit),
            AdminCall::WorkerShow { worker } => self.worker_answer(self.find_worker(&worker)?),
            AdminCall::WorkerResize { worker, slots } => {
                let worker = self.find_worker(&worker)?;
                if matches!(slots, Slots::Limited(count) if count > SLOTS_MAX) {
                    return Err(Code::BadSlots);
                }
                let is_hand = self.jobs.is_hand(worker);
                if is_hand {
                    self.with_jobs(|jobs, cx| jobs.resize_hand(cx, worker, slots))
                } else {
                    self.resize(worker, slots)
                }?;
                self.worker_answer(worker)
            }
            AdminCall::WorkerDrain { worker } => {
                let worker = self.find_worker(&worker)?;
                self.withhold_worker(worker);
                self.worker_answer(worker)
            }
            AdminCall::WorkerResume { worker } => {
                let worker = self.find_worker(&worker)?;
                for conn in self.connections_of(worker) {
                    self.peers.worker_mut(conn).draining = false;
                    self.offer(conn);
                    self.jobs.look_at(conn);
                }
                self.worker_answer(worker)
            }
            AdminCall::WorkerStop { worker, now } => self.stop_worker(&worker, now, out)?,
            AdminCall::MessageExplain { id } => {
                let index = self.find_message(&id)?;
                AdminAnswer::Message { explanation: Box::new(self.explain(index, AHEAD_MAX)) }
            }
            AdminCall::MessageCancel { id } => {
                let index = self.find_message(&id)?;
                let explanation = Box::new(self.explain(index, AHEAD_CANCELLED_MAX));
                self.cancel(index, out);
                AdminAnswer::Message { explanation }
            }
            _ => unreachable!("settings of queues, jobs and the archive have rooms of their own"),
        })
    }

    /// Asks a worker to end. At once: what it holds goes to others, and no attempt counts.
    fn stop_worker(&mut self, worker: &str, now: bool, out: &mut impl Sink) -> Result<AdminAnswer, Code> {
        let worker = self.find_worker(worker)?;
        self.withhold_worker(worker);
        if self.jobs.is_hand(worker) {
            self.with_jobs(|jobs, cx| jobs.stop_hand(cx, worker, now, out))?;
            return Ok(self.worker_answer(worker));
        }
        let reason = if now { ClosingReason::Now } else { ClosingReason::Stop };
        out.effect(Effect::Closing { conn: worker, closing: Closing { reason, within_ms: 0 } });
        if !now {
            return Ok(self.worker_answer(worker));
        }
        // One that deregistered is forgotten with the last delivery, but not before it is shown.
        let leaving = std::mem::take(&mut self.peers.worker_mut(worker).leaving);
        while let Some(newest) = self.peers.worker(worker).and_then(|record| record.held.back()) {
            self.give_back(newest, out);
        }
        let answer = self.worker_answer(worker);
        self.peers.worker_mut(worker).leaving = leaving;
        self.forget_worker_if_gone(worker);
        Ok(answer)
    }

    /// Gives a worker nothing new, over any of its connections.
    fn withhold_worker(&mut self, worker: ConnId) {
        for conn in self.connections_of(worker) {
            self.peers.worker_mut(conn).draining = true;
            self.withhold(conn);
            self.jobs.look_at(conn);
        }
    }

    /// A worker's connection, and its other one if it has two.
    fn connections_of(&self, conn: ConnId) -> Vec<ConnId> {
        let twin = self.peers.worker(conn).and_then(|worker| worker.twin);
        std::iter::once(conn).chain(twin).collect()
    }

    /// The other connection of a worker, by which it is not shown: it is shown as the worker for jobs that it is too.
    fn shown_as(&self, conn: ConnId) -> ConnId {
        let twin = self.peers.worker(conn).and_then(|worker| worker.twin);
        twin.filter(|_| !self.jobs.is_hand(conn)).unwrap_or(conn)
    }

    /// By id, or by name if only one worker has it.
    fn find_worker(&self, id_or_name: &str) -> Result<ConnId, Code> {
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

    fn find_message(&self, id: &str) -> Result<u32, Code> {
        let id: MessageId = id.parse().map_err(|_| Code::NotFound)?;
        let own = self.messages.find(id, &self.settings).filter(|index| self.id_of(*index) == id);
        own.or_else(|| self.links.find_foreign(id)).ok_or(Code::NotFound)
    }

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
            up_ms: self.now.millis_since(self.started),
            draining: self.drain.is_some(),
            maintenance: self.is_in_maintenance(),
            foreman: self.settings.foreman.clone(),
            connections: self.peers.len() as u64,
            workers,
            slots,
            slots_used,
            queues: self.queues.len() as u64,
            ready: self.stats.ready,
            in_flight: self.stats.in_flight,
            dead: self.stats.dead,
            jobs: self.jobs.view(),
            data: self.settings.data.clone(),
            disk: None,
            bytes: self.stats.bytes,
            bytes_max: self.settings.limits.memory_bytes_max,
            memory: self.memory_view(),
            links_up: links.up,
            links_wanted: links.wanted,
            links_down: links.down,
            ring: self.ring_view().map(Box::new),
            counters: self.stats.counters,
        }
    }

    fn queue_page(&self, after: Option<&str>, limit: u32) -> AdminAnswer {
        let numbers = self.queues.after(after).map(|(number, _)| number);
        let work = |number: &u32| self.queues.at(*number).consumers_len();
        let (queues, more) = page(numbers, limit, work, |number| self.queue_view(number));
        let next = queues.last().filter(|_| more).map(|queue: &QueueView| queue.name.clone());
        AdminAnswer::Queues { queues, next }
    }

    pub(crate) fn queue_view(&self, number: u32) -> QueueView {
        let queue = self.queues.at(number);
        let oldest = queue.backlog.heads().map(|index| self.messages[index].born).min();
        let rooms = queue.consumers().map(|consumer| self.room_in(consumer.worker, number));
        let free = rooms.map(|free| if free == u32::MAX { 0 } else { u64::from(free) }).sum();
        QueueView {
            name: queue.name.to_string(),
            ready: u64::from(queue.backlog.len()),
            in_flight: u64::from(queue.in_flight),
            dead: u64::from(queue.dead.len()),
            bytes: queue.bytes,
            oldest_ms: oldest.map(|born| self.now.millis_since(born)),
            consumers: queue.consumers_len() as u64,
            slots_free: free,
            durable: self.settings.store.is_some() && queue.is_durable(),
            drop_after: self.drop_after(number),
            weight: queue.weight(),
            settings: queue.settings(),
            exclusive: self.exclusive_view(number),
            waiters: self.waiters_of(number),
            counters: queue.counters,
            head: Vec::new(),
        }
    }

    /// The rota, next first; then those who wait for the queue, next first; then those who were dropped. And how many more
    /// there are.
    fn consumer_views(&self, number: u32) -> (Vec<ConsumerView>, u64) {
        let turns = (1..).zip(self.turns(number)).filter_map(|(turn, worker)| {
            let worker = self.peers.worker(worker)?;
            Some((worker, Some(turn), None))
        });
        let waiting = (1..).zip(self.line_of(number)).filter_map(|(place, worker)| {
            let worker = self.peers.worker(worker)?;
            Some((worker, None, Some(place)))
        });
        let mut consumers: Vec<(&Worker, Option<u64>, Option<u64>)> = turns.chain(waiting).collect();
        let told: BTreeSet<u64> = consumers.iter().map(|(worker, ..)| worker.id).collect();
        // One that was dropped may wait for the queue too.
        let dropped = self.dropped(number).filter(|worker| !told.contains(&worker.id));
        consumers.extend(dropped.map(|worker| (worker, None, None)));
        let shown = consumers.iter().take(PAGE_MAX as usize).map(|(worker, turn, waits)| {
            let view = self.consumer_view(worker, number, *turn);
            ConsumerView { waits: waits.or(view.waits), ..view }
        });
        let shown: Vec<ConsumerView> = shown.collect();
        let more = (consumers.len() - shown.len()) as u64;
        (shown, more)
    }

    fn worker_page(&self, after: Option<u64>, limit: u32) -> AdminAnswer {
        let from = after.map_or(0, |after| after.saturating_add(1));
        let conns = self.peers.workers(from).filter(|conn| self.shown_as(*conn) == *conn);
        let work = |conn: &ConnId| self.peers.worker(*conn).map_or(0, |worker| worker.consumes.len());
        let (views, more) = page(conns, limit, work, |conn| self.worker_view(conn));
        let workers: Vec<WorkerView> = views.into_iter().flatten().collect();
        let next = workers.last().filter(|_| more).map(|worker| worker.id);
        AdminAnswer::Workers { workers, next }
    }

    fn worker_answer(&self, conn: ConnId) -> AdminAnswer {
        let mut view = self.worker_view(conn).expect("the worker was found a moment ago");
        let held: Vec<_> = self.connections_of(conn).into_iter().filter_map(|conn| self.peers.worker(conn)).collect();
        let held = held.iter().flat_map(|worker| worker.held.iter(&self.messages, Lane::Place));
        view.holds = held.take(VIEW_MESSAGES_MAX).map(|index| self.message_view(index)).collect();
        view.tasks = self.jobs.tasks_at(conn, VIEW_MESSAGES_MAX).1;
        AdminAnswer::Worker { worker: Box::new(view) }
    }

    /// A worker, with what it does over its other connection.
    pub(crate) fn worker_view(&self, conn: ConnId) -> Option<WorkerView> {
        let peer = self.peers.get(conn)?;
        let worker = peer.worker.as_deref()?;
        let state = match (worker.draining || worker.leaving, peer.ready) {
            (true, _) => WorkerState::Draining,
            (false, true) => WorkerState::Ready,
            (false, false) => WorkerState::Greeting,
        };
        let hand = self.jobs.is_hand(conn);
        let kind = match (hand, worker.twin) {
            (false, _) => WorkerKind::Queue,
            (true, None) => WorkerKind::Job,
            (true, Some(_)) => WorkerKind::Both,
        };
        let all = self.connections_of(conn);
        let both: Vec<&Worker> = all.iter().filter_map(|conn| self.peers.worker(*conn)).collect();
        let sum = |count: fn(&Worker) -> u64| both.iter().map(|worker| count(worker)).sum();
        let consumes = both.iter().flat_map(|worker| &worker.consumes);
        Some(WorkerView {
            id: worker.id,
            kind,
            name: worker.name.clone(),
            address: peer.address.clone(),
            state,
            slots: worker.slots,
            slots_max: self.jobs.procs_of(conn),
            used: worker.used(),
            queues: consumes.map(|consuming| self.queues.at(consuming.queue).name.to_string()).collect(),
            exclusive: all.iter().flat_map(|conn| self.holdings(*conn)).collect(),
            waits_for: all.iter().flat_map(|conn| self.waits_for(*conn)).collect(),
            labels: self.jobs.labels_of(conn),
            registered_ms: self.now.millis_since(worker.registered),
            idle_ms: both.iter().filter_map(|worker| worker.last_used).max().map(|used| self.now.millis_since(used)),
            deliveries: sum(|worker| worker.deliveries),
            settled: sum(|worker| worker.settled),
            failed: sum(|worker| worker.failed),
            dropped: sum(|worker| worker.dropped),
            standings: both.iter().flat_map(|worker| self.standing_views(worker)).collect(),
            holds: Vec::new(),
            tasks_running: self.jobs.tasks_at(conn, 0).0,
            tasks: Vec::new(),
        })
    }
}

const fn is_about_jobs(call: &AdminCall) -> bool {
    matches!(
        call,
        AdminCall::JobSubmit { .. }
            | AdminCall::JobLs { .. }
            | AdminCall::JobShow { .. }
            | AdminCall::JobTasks { .. }
            | AdminCall::JobCancel { .. }
            | AdminCall::JobRetry { .. }
            | AdminCall::JobHold { .. }
            | AdminCall::JobRelease { .. }
            | AdminCall::JobWait { .. }
            | AdminCall::JobRm { .. }
            | AdminCall::JobExplain { .. }
    )
}

const fn is_for_archive(call: &AdminCall) -> bool {
    matches!(
        call,
        AdminCall::TaskOutput { .. }
            | AdminCall::TaskFile { .. }
            | AdminCall::JobOutput { .. }
            | AdminCall::JobFiles { .. }
            | AdminCall::JobFile { .. }
            | AdminCall::UploadCheck { .. }
            | AdminCall::UploadPut { .. }
            | AdminCall::UploadGet { .. }
    )
}
