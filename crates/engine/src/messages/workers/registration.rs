//! Registration of workers: slots, queues and the end.

use turno_proto::model::{Code, ConnId, Slots};

use crate::effect::{NativeEffect, PeerEffect, Sink, answer};
use crate::messages::Messages;
use crate::messages::dispatch::DispatchStep;
use crate::messages::table::message::Flags;
use crate::messages::worker_lost::WorkerTrust;
use crate::messages::workers::peer::{Consuming, Worker};

/// The result of CONSUME.
enum Consumed {
    /// Nobody else may, under that token.
    Alone(u64),
    AmongOthers,
    /// Another broker decides.
    Asked,
}

impl Messages {
    /// A connection finished its greeting. While the broker drains it may ask, but it is told to go elsewhere.
    pub(crate) fn connected(&mut self, conn: ConnId, name: String, address: String, out: &mut impl Sink) {
        self.peers.insert(conn, name, address);
        if let Some(closing) = self.closing() {
            out.peer(PeerEffect::Closing { conn, closing });
        }
    }

    /// The first PING: from now on the connection may get work (S1.7).
    pub(crate) fn ready(&mut self, conn: ConnId) {
        if let Some(peer) = self.peers.get_mut(conn) {
            peer.ready = true;
            self.offer(conn);
        }
    }

    /// REGISTER; again on the same connection it overwrites the slots and goes to the bottom (S0.12).
    pub(crate) fn register(&mut self, conn: ConnId, seq: u32, slots: Slots, name: String, out: &mut impl Sink) {
        let Some(peer) = self.peers.get(conn) else { return };
        let name = if name.is_empty() { peer.name.clone() } else { name };
        let Some(worker) = self.peers.enlist(conn, name, slots, self.now) else { return };
        worker.draining = false;
        worker.leaving = false;
        self.goes_to_bottom(conn);
        self.offer(conn);
        answer(conn, seq, Ok(()), out);
    }

    pub(crate) fn resize(&mut self, conn: ConnId, slots: Slots) -> Result<(), Code> {
        self.registered(conn)?.resize(slots);
        self.offer(conn);
        Ok(())
    }

    /// DEREGISTER begins: no new work; what it holds it may still settle (S0.14, S0.15).
    pub(crate) fn begin_to_leave(&mut self, conn: ConnId) -> Result<(), Code> {
        self.registered(conn)?.leaving = true;
        Ok(())
    }

    /// The rest of DEREGISTER, once no other machine knows the worker.
    pub(crate) fn left(&mut self, conn: ConnId) {
        self.leave_all(conn);
        self.end_kept(conn);
        self.forget_worker_if_gone(conn);
    }

    pub(crate) fn consume(&mut self, conn: ConnId, seq: u32, handle: u32, exclusive: bool, out: &mut impl Sink) {
        match self.try_consume(conn, seq, handle, exclusive, out) {
            Ok(Consumed::Alone(token)) => {
                out.peer(PeerEffect::Native { conn, effect: NativeEffect::Consuming { seq, token } })
            }
            Ok(Consumed::AmongOthers) => out.peer(PeerEffect::Answer { conn, seq, result: Ok(()) }),
            // Home answers.
            Ok(Consumed::Asked) => {}
            Err(Code::QueueFull) => {
                out.peer(PeerEffect::Native { conn, effect: NativeEffect::QueueFull { seq, handle } })
            }
            Err(code) => out.peer(PeerEffect::Answer { conn, seq, result: Err(code) }),
        }
    }

    fn try_consume(
        &mut self,
        conn: ConnId,
        seq: u32,
        handle: u32,
        exclusive: bool,
        out: &mut impl Sink,
    ) -> Result<Consumed, Code> {
        let queue = self.peers.get(conn).and_then(|peer| peer.queue_of(handle));
        let worker = self.registered(conn)?;
        let queue = queue.ok_or(Code::UnknownHandle)?;
        if worker.position_of(queue).is_ok() || self.has_asked(conn, queue) {
            return Err(Code::AlreadyConsuming);
        }
        if !self.may_consume(conn, queue, exclusive) || self.is_taken_elsewhere(queue, exclusive) {
            self.refuse_queue(conn, queue, handle);
            return Err(Code::QueueFull);
        }
        if exclusive && self.ask_home(conn, seq, handle, queue, out).is_some() {
            return Ok(Consumed::Asked);
        }
        let token = exclusive.then(|| self.next_token());
        self.begin_to_consume(conn, queue, handle, token);
        Ok(token.map_or(Consumed::AmongOthers, Consumed::Alone))
    }

    /// The worker consumes the queue from now on, under that token if nobody else may.
    pub(in crate::messages) fn begin_to_consume(&mut self, conn: ConnId, queue: u32, handle: u32, token: Option<u64>) {
        self.took_queue(conn, queue, token);
        let number = self.queues.at_mut(queue).join(conn, handle);
        let consuming = Consuming { queue, number };
        let worker = self.peers.worker_mut(conn);
        let at = worker.position_of(queue).unwrap_or_else(|at| at);
        worker.consumes.insert(at, consuming);
        self.comes_back(conn, queue);
        self.join_turns(conn, consuming);
        self.begin_trial(conn, queue);
        self.offer(conn);
    }

    pub(crate) fn cancel_queue(&mut self, conn: ConnId, handle: u32) -> Result<(), Code> {
        let queue = self.peers.get(conn).and_then(|peer| peer.queue_of(handle));
        let worker = self.registered(conn)?;
        let queue = queue.ok_or(Code::UnknownHandle)?;
        let Ok(at) = worker.position_of(queue) else {
            if self.forget_claim(conn, queue) {
                return Ok(());
            }
            return self.give_up_place(conn, queue);
        };
        let consuming = worker.consumes.remove(at);
        self.leave_turns(conn, consuming);
        self.peers.worker_mut(conn).standings.left(queue);
        self.leave(conn, consuming);
        Ok(())
    }

    /// The peer said CLOSING: a worker gets nothing new.
    pub(crate) fn peer_closing(&mut self, conn: ConnId) {
        if self.close_link(conn) {
            return;
        }
        if let Ok(worker) = self.registered(conn) {
            worker.draining = true;
            self.withhold(conn);
        }
    }

    /// The connection is gone: its own requests end with it, and what it held goes to others, in order.
    pub(crate) fn lost(&mut self, conn: ConnId, out: &mut impl Sink) {
        self.lose_link(conn);
        self.abandon_requests(conn, out);
        self.leave_all(conn);
        self.lose_deliveries(conn, out);
        let Some(peer) = self.peers.remove(conn) else { return };
        for queue in peer.handles() {
            self.queues.at_mut(queue).handles -= 1;
            self.queues.forget_if_idle(queue);
        }
    }

    /// A message leaves the list of its caller's unanswered requests.
    #[inline]
    pub(in crate::messages) fn disown(&mut self, index: u32) {
        let message = &self.messages[index];
        let Some(origin) = message.origin else { return };
        if message.flags.has(Flags::FORWARDED) {
            self.foreign_disowned(index);
        }
        if let Some(peer) = self.peers.get_mut(origin.conn()) {
            peer.owned.remove(&mut self.messages, index);
            self.messages[index].origin = None;
        }
    }

    /// Somebody asked that the worker takes nothing new.
    pub(crate) fn withhold_worker(&mut self, conn: ConnId) {
        self.peers.worker_mut(conn).draining = true;
        self.withhold(conn);
    }

    /// The worker may take work again.
    pub(crate) fn resume_worker(&mut self, conn: ConnId) {
        self.peers.worker_mut(conn).draining = false;
        self.offer(conn);
    }

    /// All that the worker holds goes to others, and no attempt counts. It stays a worker until it is looked at again.
    pub(crate) fn give_all_back(&mut self, conn: ConnId, out: &mut impl Sink) {
        let leaving = std::mem::take(&mut self.peers.worker_mut(conn).leaving);
        while let Some(newest) = self.peers.worker(conn).and_then(|record| record.held.back()) {
            self.give_back(newest, out);
        }
        self.peers.worker_mut(conn).leaving = leaving;
    }

    /// Shows the worker's room everywhere and lets it be filled.
    pub(crate) fn offer(&mut self, conn: ConnId) {
        self.show_room(conn);
        self.agenda.push_back(DispatchStep::Worker(conn));
    }

    /// The worker gets nothing new; a queue that had it reserved looks for another.
    pub(in crate::messages) fn withhold(&mut self, conn: ConnId) {
        self.unreserve(conn);
        self.show_room(conn);
    }

    fn unreserve(&mut self, conn: ConnId) {
        let reserved = self.peers.get_mut(conn).and_then(|peer| peer.worker.as_deref_mut()?.reserved_for.take());
        if let Some(queue) = reserved {
            self.queues.at_mut(queue).reserved = None;
            self.agenda.push_back(DispatchStep::Queue(queue));
        }
    }

    fn leave_all(&mut self, conn: ConnId) {
        self.forget_claims(conn);
        self.give_up_queues(conn);
        self.unreserve(conn);
        let Some(worker) = self.peers.get_mut(conn).and_then(|peer| peer.worker.as_deref_mut()) else { return };
        if worker.trust != WorkerTrust::Full {
            self.end_trial(conn);
        }
        let worker = self.peers.worker_mut(conn);
        let all = std::mem::take(&mut worker.consumes);
        let has_shared_rota = worker.shared_rota.is_some();
        self.leave_shared_rota(conn);
        for consuming in all {
            if !has_shared_rota || self.peers.worker_mut(conn).standings.is_probing(consuming.queue) {
                self.leave_turns(conn, consuming);
            }
            self.leave(conn, consuming);
        }
        self.peers.worker_mut(conn).standings.clear();
    }

    pub(in crate::messages) fn leave(&mut self, conn: ConnId, Consuming { queue, number }: Consuming) {
        if self.queues.at(queue).reserved == Some(conn) {
            self.unreserve(conn);
            self.offer(conn);
        }
        if !self.links.is_empty() {
            self.links.queue_changed(&self.queues.at(queue).name);
        }
        self.queues.at_mut(queue).leave(number);
        self.note_unused(queue);
        self.queues.forget_if_idle(queue);
    }

    /// A worker that deregistered and holds nothing more is no worker.
    pub(crate) fn forget_worker_if_gone(&mut self, conn: ConnId) {
        self.peers.dismiss_if(conn, |worker| worker.leaving && worker.held.is_empty());
    }

    pub(in crate::messages) fn registered(&mut self, conn: ConnId) -> Result<&mut Worker, Code> {
        let worker = self.peers.get_mut(conn).and_then(|peer| peer.worker.as_deref_mut());
        worker.filter(|worker| !worker.leaving).ok_or(Code::NotRegistered)
    }
}
