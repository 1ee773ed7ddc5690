//! Broadcasts: a message to every consumer of a queue, busy ones too, and its single end (S2.9 to S2.15).
//!
//! A broadcast is one message in the table (its deadline, its caller) and one more for each consumer that has not ended: a
//! delivery that takes no slots. The body is written to all of them at once and then nobody needs it again, so nothing
//! keeps it. Of a broadcast that wants no reply nothing is kept at all.

use std::collections::BTreeMap;

use turno_proto::model::link::Path;
use turno_proto::model::{
    Broadcast, BroadcastConsumer, BroadcastEnd, Code, ConnId, Cost, Delivery, MessageId, Mono, Outgoing, Payload,
    WorkerId, limits,
};

use crate::effect::{BorrowedPayload, BroadcastAnswer, CallerMessage, Deliver, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::links::Shares;
use crate::messages::queues::queue::Consumer;
use crate::messages::stats::bytes_of;
use crate::messages::table::chain::{Chain, ChainLinks, Lane, NIL};
use crate::messages::table::message::{Flags, Message, MessageEnd, MessageStage, Origin, Wants};
use crate::messages::worker_lost::WorkerTrust;

/// The place that deliveries name of which nothing is kept. No message is ever there.
const NOWHERE: u32 = NIL - 1;

/// A delivery of which nothing is kept.
const fn unkept(stamp: u32) -> Delivery {
    Delivery { index: NOWHERE, stamp }
}

/// Whether something is kept of a delivery, as long as it is not settled.
pub(super) const fn is_kept(delivery: Delivery) -> bool {
    delivery.index != NOWHERE
}

/// How far a broadcast is.
#[derive(Debug, Default)]
pub(super) struct BroadcastTally {
    /// Deliveries that have not ended.
    pub(super) parts: Chain,
    pub(super) end: BroadcastEnd,
    /// Consumers that it was written to and that owe nothing.
    silent: u32,
    /// Numbers for workers at other brokers, by the link and their number there.
    pub(super) far_workers: BTreeMap<(ConnId, u64), u64>,
    /// Of parts at other brokers: how many consumers there answered and failed so far.
    far_told: BTreeMap<u32, (u32, u32)>,
}

/// A broadcast on its way to its consumers.
#[derive(Debug)]
pub(super) struct BroadcastSpread {
    pub(super) deadline: Mono,
    pub(super) no_reply: bool,
    pub(super) payload: Payload,
    /// Brokers behind links.
    pub(super) far: Shares,
    /// Brokers it came through.
    pub(super) path: Path,
}

impl BroadcastTally {
    /// A consumer at another broker has ended.
    pub(super) fn far_tells(&mut self, part: u32, failed: bool) {
        let (answered, failures) = self.far_told.entry(part).or_default();
        *(if failed { failures } else { answered }) += 1;
    }

    /// The other broker will not say how it ended there: what the caller was told counts.
    fn count_told(&mut self, part: u32) {
        let (answered, failed) = self.far_told.remove(&part).unwrap_or_default();
        self.end.answered += answered;
        self.end.failed += failed;
        self.end.consumers += answered + failed;
    }

    /// Whether the numbers add up.
    pub(super) fn adds_up(&self) -> bool {
        let BroadcastEnd { consumers, answered, failed, expired, left, .. } = self.end;
        answered + failed + expired + left + self.silent + self.parts.len() == consumers
    }
}

/// How a consumer's part ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartEnd {
    Answered,
    Failed,
    Left,
}

impl Messages {
    /// BROADCAST: to everyone, now.
    pub(crate) fn broadcast(&mut self, conn: ConnId, broadcast: Broadcast, out: &mut impl Sink) {
        let queue = self.peers.get(conn).and_then(|peer| peer.queue_of(broadcast.handle));
        let far = queue.map(|queue| self.far_consumers(queue)).unwrap_or_default();
        self.spread_broadcast(conn, broadcast, true, far, Path::default(), out);
    }

    /// To the consumers here, if they are meant, and to the brokers that are.
    pub(super) fn spread_broadcast(
        &mut self,
        conn: ConnId,
        broadcast: Broadcast,
        here: bool,
        far: Shares,
        path: Path,
        out: &mut impl Sink,
    ) {
        let Broadcast { seq, handle, deadline_ms, no_reply, skip_self, payload } = broadcast;
        let message = Outgoing { deadline_ms, ..Outgoing::new(seq, handle, payload) };
        let queue = match self.admit_request(conn, &message) {
            Ok(queue) => queue,
            Err(code) => return self.refuse(conn, seq, code, out),
        };
        let consumers = if here { self.audience(queue, skip_self.then_some(conn)) } else { Vec::new() };
        // Every consumer has the body in its out-buffer for a moment, and a record for as long as it is silent.
        let kept = if no_reply { 0 } else { bytes_of(0) };
        let receivers = (consumers.len() + far.len()) as u64;
        let records = receivers * (kept + message.payload.len() as u64);
        if !self.has_memory(bytes_of(0) + records) {
            return self.refuse(conn, seq, Code::OverMemory, out);
        }
        // Nothing goes out after its deadline.
        let wants = if no_reply { Wants::Nothing } else { Wants::Reply };
        let deadline = self.deadline(wants, deadline_ms).unwrap_or(self.now);
        if deadline <= self.now {
            return self.refuse(conn, seq, Code::TimedOut, out);
        }
        self.count(queue, |counters| &mut counters.broadcasts);
        let spread = BroadcastSpread { deadline, no_reply, payload: message.payload, far, path };
        if no_reply {
            self.spread_and_forget(queue, &consumers, &spread.payload, deadline, out);
        }
        if spread.far.is_empty() && (no_reply || consumers.is_empty()) {
            let end = BroadcastEnd { consumers: count_of(&consumers), ..BroadcastEnd::default() };
            out.peer(PeerEffect::Caller { conn, seq, message: CallerMessage::BroadcastEnd(Box::new(end)) });
        } else {
            self.spread(queue, &consumers, &spread, Origin::new(conn, seq), out);
        }
    }

    /// Those of a queue's consumers that take new work, whether they have room or not.
    fn audience(&self, queue: u32, but: Option<ConnId>) -> Vec<Consumer> {
        let takes = |consumer: &&Consumer| {
            let Some(peer) = self.peers.get(consumer.worker) else { return false };
            let able = peer.worker.as_deref().is_some_and(|worker| worker.takes_work());
            able && peer.ready && but != Some(consumer.worker)
        };
        self.queues.at(queue).consumers().filter(takes).copied().collect()
    }

    /// No reply wanted: it is over when it is written (S2.11, S2.12).
    fn spread_and_forget(
        &mut self,
        queue: u32,
        consumers: &[Consumer],
        payload: &Payload,
        deadline: Mono,
        out: &mut impl Sink,
    ) {
        let id = self.settings.id(self.messages.next_serial(), Some(NOWHERE));
        for consumer in consumers {
            self.stamps = self.stamps.wrapping_add(1);
            self.job_worker_part(queue, consumer, unkept(self.stamps), id, deadline, false, payload, out);
        }
    }

    /// A part for each consumer that is to answer, and for each link that is to tell how it ended there.
    fn spread(
        &mut self,
        queue: u32,
        consumers: &[Consumer],
        spread: &BroadcastSpread,
        origin: Origin,
        out: &mut impl Sink,
    ) {
        let deadline = spread.deadline;
        let parent = self.messages.insert(self.record(queue, MessageStage::Broadcast, Some(origin), Some(deadline)));
        self.add_bytes(queue, bytes_of(0));
        self.arm(parent, deadline);
        if let Some(peer) = self.peers.get_mut(origin.conn()) {
            peer.owned.add(&mut self.messages, parent);
        }
        let id = self.id_of(parent);
        let all = count_of(consumers) + u32::try_from(spread.far.len()).expect("links are few");
        let mut tally = BroadcastTally {
            end: BroadcastEnd { consumers: all, ..BroadcastEnd::default() },
            ..BroadcastTally::default()
        };
        if spread.no_reply {
            tally.silent = count_of(consumers);
        } else {
            for consumer in consumers {
                let index = self.part_for(queue, consumer.worker, parent, &mut tally);
                self.job_worker_part(
                    queue,
                    consumer,
                    self.delivery_of(index),
                    id,
                    deadline,
                    true,
                    &spread.payload,
                    out,
                );
            }
        }
        for link in spread.far.keys() {
            let index = self.part_for(queue, *link, parent, &mut tally);
            self.cross_broadcast(index, *link, spread, out);
        }
        self.broadcasts.insert(parent, tally);
    }

    fn part_for(&mut self, queue: u32, worker: ConnId, parent: u32, tally: &mut BroadcastTally) -> u32 {
        let state = MessageStage::Asked { worker, broadcast: parent };
        let index = self.messages.insert(self.record(queue, state, None, None));
        self.stamps = self.stamps.wrapping_add(1);
        self.messages[index].stamp = self.stamps;
        self.messages[index].attempts = 1;
        self.add_bytes(queue, bytes_of(0));
        tally.parts.push_back(&mut self.messages, Lane::Owned, index);
        let record = self.peers.worker_mut(worker);
        record.held.push_back(&mut self.messages, Lane::Place, index);
        if record.trust != WorkerTrust::Full {
            // On trial it gets one thing at a time, and this is one.
            self.show_room(worker);
        }
        self.queues.at_mut(queue).in_flight += 1;
        self.stats.in_flight += 1;
        index
    }

    /// A record without a body, for the broadcast or for one of its deliveries.
    fn record(&self, queue: u32, state: MessageStage, origin: Option<Origin>, deadline: Option<Mono>) -> Message {
        Message {
            serial: 0,
            bytes: bytes::Bytes::new(),
            flags: Flags::default(),
            origin,
            state,
            wants: Wants::Reply,
            queue,
            stamp: 0,
            born: self.now,
            deadline,
            timer: None,
            attempts: 0,
            retries: 0,
            priority: limits::PRIORITY,
            cost: Cost::Broadcast,
            place: ChainLinks::default(),
            owned: ChainLinks::default(),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "they are the fields of the frame")]
    fn job_worker_part(
        &mut self,
        queue: u32,
        consumer: &Consumer,
        delivery: Delivery,
        id: MessageId,
        deadline: Mono,
        wants_reply: bool,
        payload: &Payload,
        out: &mut impl Sink,
    ) {
        self.peers.worker_mut(consumer.worker).deliveries += 1;
        self.count(queue, |counters| &mut counters.deliveries);
        out.deliver(Deliver {
            conn: consumer.worker,
            delivery,
            handle: consumer.handle,
            id,
            attempt: 1,
            cost: Cost::Broadcast,
            deadline_ms: Some(u32::try_from(deadline.millis_left(self.now)).unwrap_or(u32::MAX)),
            wants_reply,
            token: self.queues.at(queue).token(),
            payload: BorrowedPayload { headers: payload.headers, bytes: &payload.bytes },
        });
    }

    /// A consumer says something: a piece of its reply, the last of it, or that it failed.
    pub(super) fn part_says(
        &mut self,
        conn: ConnId,
        index: u32,
        more: bool,
        failed: bool,
        payload: Payload,
        out: &mut impl Sink,
    ) {
        let MessageStage::Asked { broadcast, .. } = self.messages[index].state else { return };
        let queue = self.messages[index].queue;
        match self.messages[broadcast].origin {
            Some(origin) => {
                let BroadcastConsumer { worker: WorkerId(worker), name } = self.party(conn);
                let answer = BroadcastAnswer { worker, name: name.into(), more, failed, payload };
                out.peer(origin.hears(CallerMessage::BroadcastAnswer(answer)));
            }
            None if more => {}
            None => self.stats.counters.unclaimed += 1,
        }
        if more {
            return;
        }
        let record = self.peers.worker_mut(conn);
        if failed {
            record.failed += 1;
            self.count(queue, |counters| &mut counters.failed);
            self.part_over(index, PartEnd::Failed, out);
        } else {
            record.settled += 1;
            self.count(queue, |counters| &mut counters.replied);
            self.part_over(index, PartEnd::Answered, out);
        }
    }

    /// A consumer is gone before it answered.
    pub(super) fn part_left(&mut self, index: u32, out: &mut impl Sink) {
        self.part_over(index, PartEnd::Left, out);
    }

    fn part_over(&mut self, index: u32, part_end: PartEnd, out: &mut impl Sink) {
        let MessageStage::Asked { worker, broadcast } = self.messages[index].state else { return };
        let party = (part_end == PartEnd::Left).then(|| self.party(worker));
        let tally = self.broadcasts.get_mut(&broadcast).expect("a part belongs to a broadcast that goes on");
        tally.parts.remove(&mut self.messages, Lane::Owned, index);
        tally.count_told(index);
        match part_end {
            PartEnd::Answered => tally.end.answered += 1,
            PartEnd::Failed => tally.end.failed += 1,
            PartEnd::Left => tally.end.left += 1,
        }
        if let Some(party) = party {
            note(&mut tally.end.who_left, party);
        }
        // Before its last part, which keeps the queue from being forgotten.
        if tally.parts.is_empty() {
            self.end_broadcast(broadcast, out);
        }
        self.finish(index, if part_end == PartEnd::Left { MessageEnd::Otherwise } else { MessageEnd::Settled });
    }

    /// It ended at another broker: the consumers there count as those here do.
    pub(super) fn far_part_over(&mut self, index: u32, far: BroadcastEnd, out: &mut impl Sink) {
        let MessageStage::Asked { broadcast, .. } = self.messages[index].state else { return };
        let tally = self.broadcasts.get_mut(&broadcast).expect("a part belongs to a broadcast that goes on");
        tally.parts.remove(&mut self.messages, Lane::Owned, index);
        let said = far.answered.saturating_add(far.failed).saturating_add(far.expired).saturating_add(far.left);
        // A liar's numbers need not add up; those here do.
        if said <= far.consumers && far.consumers <= limits::FAR_CONSUMERS_MAX {
            tally.far_told.remove(&index);
            let end = &mut tally.end;
            end.answered += far.answered;
            end.failed += far.failed;
            end.expired += far.expired;
            end.left += far.left;
            tally.silent += far.consumers - said;
            end.consumers = end.consumers - 1 + far.consumers;
            far.who_expired.into_iter().for_each(|party| note(&mut end.who_expired, party));
            far.who_left.into_iter().for_each(|party| note(&mut end.who_left, party));
        } else {
            tally.count_told(index);
            tally.end.left += 1;
        }
        if tally.parts.is_empty() {
            self.end_broadcast(broadcast, out);
        }
        self.finish(index, MessageEnd::Settled);
    }

    /// The deadline of a broadcast passed: consumers that have not ended are told to stop.
    pub(super) fn expire_broadcast(&mut self, broadcast: u32, out: &mut impl Sink) {
        let queue = self.messages[broadcast].queue;
        for worker in self.stop_parts(broadcast, Code::TimedOut, out) {
            self.count(queue, |counters| &mut counters.expired);
            let party = self.party(worker);
            let tally = self.broadcasts.get_mut(&broadcast).expect("it has not ended");
            tally.end.expired += 1;
            note(&mut tally.end.who_expired, party);
        }
        self.end_broadcast(broadcast, out);
    }

    /// Somebody gave it up: the caller gets this as its one end.
    pub(super) fn cancel_broadcast(&mut self, broadcast: u32, reason: Code, out: &mut impl Sink) {
        let queue = self.messages[broadcast].queue;
        self.count_cancelled(queue, reason);
        self.stop_parts(broadcast, reason, out);
        self.broadcasts.remove(&broadcast);
        self.end_without_reply(broadcast, reason, out);
    }

    /// Its caller is gone: nobody wants to hear more of it, so nothing of it is kept until its deadline. Consumers that
    /// have not ended are told to stop, but not the caller itself.
    pub(super) fn abandon_broadcast(&mut self, broadcast: u32, caller: ConnId, out: &mut impl Sink) {
        let queue = self.messages[broadcast].queue;
        self.count(queue, |counters| &mut counters.cancelled);
        let tally = self.broadcasts.get(&broadcast).expect("it has not ended");
        let parts = tally.parts.iter(&self.messages, Lane::Owned);
        let own: Vec<u32> = parts.filter(|index| self.messages[*index].holder() == Some(caller)).collect();
        for index in own {
            let tally = self.broadcasts.get_mut(&broadcast).expect("it has not ended");
            tally.parts.remove(&mut self.messages, Lane::Owned, index);
            self.finish(index, MessageEnd::Otherwise);
        }
        self.stop_parts(broadcast, Code::CallerGone, out);
        self.broadcasts.remove(&broadcast);
        self.finish(broadcast, MessageEnd::Otherwise);
    }

    /// Tells every consumer that has not ended to stop. Their deliveries take no slots and no part in the broadcast
    /// any more; they stay until they are settled or the grace time is over.
    fn stop_parts(&mut self, broadcast: u32, code: Code, out: &mut impl Sink) -> Vec<ConnId> {
        let mut stopped = Vec::new();
        while let Some(tally) = self.broadcasts.get_mut(&broadcast)
            && let Some(index) = tally.parts.front()
        {
            tally.parts.remove(&mut self.messages, Lane::Owned, index);
            tally.count_told(index);
            if let Some(worker) = self.messages[index].holder() {
                self.stop(index, worker, code, out);
                stopped.push(worker);
            }
        }
        stopped
    }

    fn end_broadcast(&mut self, broadcast: u32, out: &mut impl Sink) {
        let origin = self.messages[broadcast].origin;
        let tally = self.broadcasts.remove(&broadcast).expect("it ends once");
        self.finish(broadcast, MessageEnd::Otherwise);
        if let Some(origin) = origin {
            out.peer(origin.hears(CallerMessage::BroadcastEnd(Box::new(tally.end))));
        }
    }

    fn party(&self, conn: ConnId) -> BroadcastConsumer {
        let record = self.peers.worker(conn).expect("a part's holder is a worker");
        BroadcastConsumer { worker: WorkerId(record.id), name: record.name.clone() }
    }
}

fn note(named: &mut Vec<BroadcastConsumer>, party: BroadcastConsumer) {
    if named.len() < limits::BROADCAST_NAMES_MAX {
        named.push(party);
    }
}

fn count_of(consumers: &[Consumer]) -> u32 {
    u32::try_from(consumers.len()).expect("fewer consumers than connections, fewer of those than 2^32")
}
