//! Crossing of messages over a link, and the answers to them.

use std::sync::Arc;

use turno_proto::model::link::{Forward, ForwardWants, LinkMessage, Path};
use turno_proto::model::topic::Event;
use turno_proto::model::{Again, Code, ConnId, Delivery, Mono, Payload, limits};

use crate::effect::{CallerMessage, LinkEffect, PeerEffect, Sink};
use crate::input::RemoteMessage;
use crate::messages::Messages;
use crate::messages::dispatch::DispatchStep;
use crate::messages::retry::AttemptFailure;
use crate::messages::table::message::{Flags, Message, MessageEnd, MessageStage, Wants};

impl Messages {
    /// The link over which a message would cross now: the nearest workers first, then in turn. Never to a broker that it
    /// came through (S2.8), and never from a queue that is one worker's alone here.
    pub(in crate::messages) fn pick_link(&self, index: u32) -> Option<ConnId> {
        let message = &self.messages[index];
        let queue = self.queues.at(message.queue);
        if queue.exclusive.is_some() {
            return None;
        }
        let came = self.links.foreign.get(&index).map(|foreign| &foreign.path);
        let nowhere = Path::default();
        let path = came.unwrap_or(&nowhere);
        if path.len() >= limits::PATH_MAX {
            return None;
        }
        let bytes = message.bytes.len() as u64;
        let links = self.links.by_conn.iter();
        let open = links.filter(|(_, link)| !link.closing && bytes <= link.payload_max && !path.has(link.broker));
        let able = open.filter_map(|(conn, link)| {
            let far = link.far.get(&queue.name)?;
            let paused = far.paused_until.is_some_and(|until| self.now < until);
            let fits = !paused && far.room_for(path) >= u32::from(message.cost.slots());
            fits.then(|| (far.nearest(path), link.turn, *conn))
        });
        able.min().map(|(_, _, conn)| conn)
    }

    /// The message crosses: from here on the link is its worker.
    pub(in crate::messages) fn cross(&mut self, index: u32, conn: ConnId, out: &mut impl Sink) {
        self.give_to(index, conn);
        let message = &self.messages[index];
        let name = &self.queues.at(message.queue).name;
        self.links.turns += 1;
        let link = self.links.by_conn.get_mut(&conn).expect("a link that was picked is up");
        link.turn = self.links.turns;
        link.forwarded += 1;
        link.out.insert(message.stamp, index);
        let far = link.far.get_mut(name).expect("a link that was picked has room for the queue");
        far.in_flight += u32::from(message.cost.slots());
        let handle = far.handle.unwrap_or_else(|| {
            let handle = link.handles;
            link.handles += 1;
            out.peer(PeerEffect::Link { conn, effect: LinkEffect::Open { handle, queue: name.clone() } });
            handle
        });
        far.handle = Some(handle);
        self.links.queue_changed(name);
        let came = self.links.foreign.get(&index).map(|foreign| foreign.path).unwrap_or_default();
        let left_ms = message.deadline.map(|deadline| deadline.millis_left(self.now));
        let forward = Forward {
            seq: message.stamp,
            handle,
            id: self.id_of(index),
            wants: match message.wants {
                Wants::Reply => ForwardWants::Reply,
                Wants::Nothing => ForwardWants::Nothing,
                Wants::Settling => ForwardWants::Settling,
            },
            attempt: message.attempts,
            cost: message.cost.slots(),
            priority: message.priority,
            deadline_ms: left_ms.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX)),
            alone: self.losses.goes_alone(index),
            path: came.then(self.links.me).expect("what came through here before, or too far, is not picked"),
            payload: Payload { headers: message.flags.has(Flags::HEADERS), bytes: message.bytes.clone() },
        };
        out.peer(PeerEffect::Link { conn, effect: LinkEffect::Forward(Box::new(forward)) });
    }

    /// The crossing is over, however it ended: its slots at the other end count as free.
    pub(in crate::messages) fn crossed_back(&mut self, conn: ConnId, index: u32) {
        let Message { queue, stamp, cost, .. } = self.messages[index];
        self.agenda.push_back(DispatchStep::Queue(queue));
        let Some(link) = self.links.by_conn.get_mut(&conn) else { return };
        let name = &self.queues.at(queue).name;
        if link.out.remove(&stamp).is_some() {
            // A part of a broadcast takes no slots.
            if let Some(far) = link.far.get_mut(name) {
                far.in_flight -= u32::from(cost.slots());
            }
        }
        self.links.queue_changed(name);
    }

    /// The other end says something about a crossing.
    pub(crate) fn far_says(&mut self, conn: ConnId, seq: u32, message: RemoteMessage, out: &mut impl Sink) {
        let Some(link) = self.links.by_conn.get(&conn) else { return };
        let Some(&index) = link.out.get(&seq) else {
            // It was given up here, and the other end did not know yet.
            self.stats.counters.late += 1;
            return;
        };
        let delivery = Delivery { index, stamp: seq };
        match message {
            RemoteMessage::Ack => {
                self.note_taken(conn, index);
                self.ack(conn, delivery, out);
            }
            RemoteMessage::Fail { again, payload } => {
                self.note_taken(conn, index);
                self.fail(conn, delivery, again, payload, out);
            }
            RemoteMessage::Caller(message) => match message {
                CallerMessage::Reply { more, payload } => {
                    self.note_taken(conn, index);
                    self.reply(conn, delivery, more, payload, out);
                }
                CallerMessage::Progress { payload } => {
                    self.note_taken(conn, index);
                    self.progress(conn, delivery, payload, out);
                }
                CallerMessage::Delivered => {
                    self.note_taken(conn, index);
                    self.far_written(index, out);
                }
                CallerMessage::Undelivered { code, payload } => self.far_undelivered(conn, index, code, payload, out),
                CallerMessage::BroadcastAnswer(answer) => self.far_part_says(conn, index, answer, out),
                CallerMessage::BroadcastEnd(end) => self.far_part_ends(conn, index, *end, out),
            },
        }
    }

    /// A worker there had it, so what the link offered was true.
    fn note_taken(&mut self, conn: ConnId, index: u32) {
        let name = &self.queues.at(self.messages[index].queue).name;
        if let Some(far) = self.links.link_mut(conn).far.get_mut(name) {
            (far.returns, far.paused_until) = (0, None);
        }
    }

    /// A no-reply request was written to a worker there.
    fn far_written(&mut self, index: u32, out: &mut impl Sink) {
        if matches!(self.messages[index].state, MessageStage::Held { .. })
            && self.messages[index].wants == Wants::Nothing
        {
            self.written(index, out);
        }
        self.finish(index, MessageEnd::Settled);
    }

    fn far_undelivered(&mut self, conn: ConnId, index: u32, code: Code, payload: Payload, out: &mut impl Sink) {
        let queue = self.messages[index].queue;
        match (self.messages[index].state, code) {
            (MessageStage::Asked { .. }, _) => self.part_left(index, out),
            (MessageStage::Held { .. }, Code::TimedOut) => {
                self.count(queue, |counters| &mut counters.expired);
                self.end_without_reply(index, Code::TimedOut, out);
            }
            (MessageStage::Held { .. }, Code::Cancelled) => {
                self.count(queue, |counters| &mut counters.cancelled);
                self.end_without_reply(index, Code::Cancelled, out);
            }
            // Nobody there has begun with it.
            (MessageStage::Held { .. }, Code::NoRoom | Code::Closing | Code::OverMemory | Code::UnknownHandle) => {
                self.note_return(conn, index);
                self.give_back(index, out);
            }
            (MessageStage::Held { .. }, Code::CutShort) => {
                self.strike(index);
                self.attempt_over(index, AttemptFailure::NotPinned, out);
            }
            (MessageStage::Held { .. }, Code::WorkerLost) => self.attempt_over(index, AttemptFailure::WorkerLost, out),
            (MessageStage::Held { .. }, Code::LeaseExpired) => {
                self.attempt_over(index, AttemptFailure::LeaseExpired, out)
            }
            (MessageStage::Held { .. }, _) => {
                self.attempt_over(index, AttemptFailure::Failed { payload, again: Again::AsSet }, out)
            }
            _ => self.finish(index, MessageEnd::Otherwise),
        }
    }

    /// There was no room after all. Again and again: the link is left alone for a while.
    fn note_return(&mut self, conn: ConnId, index: u32) {
        let now: Mono = self.now;
        let name = &self.queues.at(self.messages[index].queue).name;
        let link = self.links.by_conn.get_mut(&conn).expect("it has just said something");
        link.returned += 1;
        let Some(far) = link.far.get_mut(name) else { return };
        far.returns += 1;
        if far.returns >= limits::RETURNS_MAX {
            let doublings = (far.returns - limits::RETURNS_MAX).min(6);
            far.paused_until = Some(now.plus_millis(limits::RETURN_PAUSE_MS << doublings));
        }
    }

    /// A message of the other end that is not about one crossing. Returns an event that is for this broker's subscribers.
    pub(crate) fn link_says(&mut self, conn: ConnId, message: LinkMessage, out: &mut impl Sink) -> Option<Arc<Event>> {
        if !self.links.is_link(conn) {
            return None;
        }
        match message {
            LinkMessage::Offers(offers) => self.offered(conn, offers, out),
            LinkMessage::Presence(presence) => self.present(conn, presence),
            LinkMessage::Broadcast(broadcast) => self.broadcast_arrived(conn, broadcast, out),
            LinkMessage::Relay(relay) => self.relayed(conn, relay, out),
            LinkMessage::Event(forward) => return self.event_arrived(conn, forward, out),
        }
        None
    }
}
