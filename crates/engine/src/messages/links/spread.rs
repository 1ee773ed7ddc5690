//! Broadcasts and events for consumers and subscribers at other brokers.
//!
//! Both name the brokers that are meant. Each broker serves itself if it is named, and parts the others among its links by
//! the shortest way, so that everyone is reached once and nothing goes round.

use std::collections::BTreeMap;
use std::sync::Arc;

use turno_proto::model::link::{BrokerId, ForwardBroadcast, ForwardEvent, LinkMessage, Path, Presence};
use turno_proto::model::topic::Event;
use turno_proto::model::{Broadcast, BroadcastConsumer, BroadcastEnd, Code, ConnId, limits};

use super::Links;
use crate::effect::{BroadcastAnswer, CallerMessage, LinkEffect, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::broadcast::BroadcastSpread;
use crate::messages::table::message::{MessageEnd, MessageStage};
use crate::ring::RingHost;

/// Which brokers are reached over which link.
pub(in crate::messages) type Shares = BTreeMap<ConnId, Vec<BrokerId>>;

impl Links {
    /// Everyone who can be reached without going back, by the link that leads there.
    fn shares(&self, path: &Path, is_meant: impl Fn(BrokerId, &Presence) -> bool) -> Shares {
        let mut shares = Shares::new();
        for (broker, (conn, presence)) in self.reachable() {
            let link = self.link(conn);
            let back = path.has(link.broker) || presence.path.meets(path);
            if !back && !link.closing && is_meant(broker, presence) {
                shares.entry(conn).or_default().push(broker);
            }
        }
        shares
    }
}

/// Broadcasts.
impl Messages {
    /// Brokers that have consumers of that queue, by the link that leads there.
    pub(in crate::messages) fn far_consumers(&self, queue: u32) -> Shares {
        if self.links.is_empty() {
            return Shares::new();
        }
        let name = &self.queues.at(queue).name;
        // By the broker: the link that leads there by the shortest way.
        let mut best: BTreeMap<BrokerId, (usize, ConnId)> = BTreeMap::new();
        for (conn, link) in self.links.by_conn.iter().filter(|(_, link)| !link.closing) {
            for room in link.far.get(name).into_iter().flat_map(|far| &far.rooms) {
                let Some(broker) = room.path.brokers().last() else { continue };
                let found = (room.path.len(), *conn);
                let there = best.entry(*broker).or_insert(found);
                *there = found.min(*there);
            }
        }
        let mut shares = Shares::new();
        for (broker, (_, conn)) in best {
            shares.entry(conn).or_default().push(broker);
        }
        shares
    }

    /// FORWARD_BROADCAST over a link, under the number of its part here.
    pub(in crate::messages) fn cross_broadcast(
        &mut self,
        index: u32,
        conn: ConnId,
        spread: &BroadcastSpread,
        out: &mut impl Sink,
    ) {
        let message = &self.messages[index];
        let name = self.queues.at(message.queue).name.clone();
        let left_ms = spread.deadline.millis_left(self.now);
        // The other end is to tell how it ended before the time is over here.
        let left_ms = left_ms - (left_ms / 10).min(limits::BROADCAST_CROSSING_MS);
        let seq = message.stamp;
        let link = self.links.by_conn.get_mut(&conn).expect("a link that was picked is up");
        link.out.insert(seq, index);
        let far = link.far.entry(name.clone()).or_default();
        let handle = far.handle.unwrap_or_else(|| {
            let handle = link.handles;
            link.handles += 1;
            out.peer(PeerEffect::Link { conn, effect: LinkEffect::Open { handle, queue: name } });
            handle
        });
        far.handle = Some(handle);
        let message = LinkMessage::Broadcast(ForwardBroadcast {
            seq,
            handle,
            deadline_ms: u32::try_from(left_ms).unwrap_or(u32::MAX),
            no_reply: spread.no_reply,
            targets: spread.far.get(&conn).cloned().unwrap_or_default(),
            path: spread.path.then(self.links.me).expect("what came through here before, or too far, is not spread"),
            payload: spread.payload.clone(),
        });
        out.peer(PeerEffect::Link { conn, effect: LinkEffect::Message(Box::new(message)) });
    }

    /// FORWARD_BROADCAST came.
    pub(super) fn broadcast_arrived(&mut self, conn: ConnId, broadcast: ForwardBroadcast, out: &mut impl Sink) {
        let ForwardBroadcast { seq, handle, deadline_ms, no_reply, targets, path, payload } = broadcast;
        let neighbour = self.links.link(conn).broker;
        if path.has(self.links.me) || path.brokers().last() != Some(&neighbour) {
            return self.refuse(conn, seq, Code::BadOption, out);
        }
        let here = targets.contains(&self.links.me);
        let mut far = Shares::new();
        if path.len() < limits::PATH_MAX {
            far = self.links.shares(&path, |broker, _| targets.contains(&broker));
        }
        let spread = Broadcast { seq, handle, deadline_ms: Some(deadline_ms), no_reply, skip_self: false, payload };
        self.spread_broadcast(conn, spread, here, far, path, out);
    }

    /// A consumer at the other end said something to a broadcast.
    pub(super) fn far_part_says(&mut self, conn: ConnId, index: u32, mut answer: BroadcastAnswer, out: &mut impl Sink) {
        let MessageStage::Asked { broadcast, .. } = self.messages[index].state else { return };
        answer.worker = self.number_of_far(broadcast, conn, answer.worker);
        let BroadcastAnswer { more, failed, .. } = answer;
        if let Some(tally) = self.broadcasts.get_mut(&broadcast).filter(|_| !more) {
            tally.far_tells(index, failed);
        }
        match self.messages[broadcast].origin {
            Some(origin) => {
                let message = CallerMessage::BroadcastAnswer(answer);
                out.peer(origin.hears(message));
            }
            None if more => {}
            None => self.stats.counters.unclaimed += 1,
        }
    }

    /// A broadcast ended at the other end.
    pub(super) fn far_part_ends(&mut self, conn: ConnId, index: u32, mut end: BroadcastEnd, out: &mut impl Sink) {
        let MessageStage::Asked { broadcast, .. } = self.messages[index].state else {
            // It was told to stop, and this is the end that was waited for.
            return self.finish(index, MessageEnd::Otherwise);
        };
        for BroadcastConsumer { worker, .. } in end.who_expired.iter_mut().chain(&mut end.who_left) {
            worker.0 = self.number_of_far(broadcast, conn, worker.0);
        }
        self.far_part_over(index, end, out);
    }

    /// A number for a worker at another broker: theirs are not told apart from ours.
    fn number_of_far(&mut self, broadcast: u32, conn: ConnId, worker: u64) -> u64 {
        let Some(tally) = self.broadcasts.get_mut(&broadcast) else { return worker };
        *tally.far_workers.entry((conn, worker)).or_insert_with(|| self.peers.next_worker_id())
    }
}

/// Events.
impl Messages {
    /// An event that was published here goes to wherever somebody listens, unless the ring carries it there.
    pub(crate) fn spread_event(&mut self, event: &Arc<Event>, ring: Option<&RingHost>, out: &mut impl Sink) {
        self.links.events += 1;
        let is_carried = |there: &Presence| ring.zip(there.ring).is_some_and(|(ring, there)| ring.carries_to(there));
        let shares = self.links.shares(&Path::default(), |_, there| there.listens && !is_carried(there));
        if !shares.is_empty() {
            self.cross_event(shares, self.links.events, &Path::default(), event, out);
        }
    }

    fn cross_event(&self, shares: Shares, number: u64, path: &Path, event: &Arc<Event>, out: &mut impl Sink) {
        let Some(path) = path.then(self.links.me) else { return };
        for (conn, targets) in shares {
            let message = LinkMessage::Event(ForwardEvent { number, targets, path, event: Arc::clone(event) });
            out.peer(PeerEffect::Link { conn, effect: LinkEffect::Message(Box::new(message)) });
        }
    }

    /// FORWARD_EVENT came, and goes on over other links. Returns the event if it is for this broker's subscribers. One that
    /// was overtaken by a later one of the same broker, because the way has changed meanwhile, is left out: order before
    /// completeness.
    pub(super) fn event_arrived(
        &mut self,
        conn: ConnId,
        forward: ForwardEvent,
        out: &mut impl Sink,
    ) -> Option<Arc<Event>> {
        let ForwardEvent { number, targets, path, event } = forward;
        let neighbour = self.links.by_conn.get(&conn)?.broker;
        let origin = *path.brokers().first()?;
        if path.has(self.links.me) || path.brokers().last() != Some(&neighbour) {
            return None;
        }
        let mut is_new = false;
        if targets.contains(&self.links.me) {
            let latest = self.links.latest_events.entry(origin).or_default();
            if *latest < number {
                *latest = number;
                is_new = true;
            }
            if self.links.latest_events.len() > limits::BROKERS_MAX {
                let reachable: Vec<BrokerId> = self.links.reachable().into_keys().collect();
                self.links.latest_events.retain(|broker, _| reachable.contains(broker));
            }
        }
        let shares = self.links.shares(&path, |broker, _| targets.contains(&broker));
        self.cross_event(shares, number, &path, &event, out);
        is_new.then_some(event)
    }
}
