//! Requests and sends, and the settlement of deliveries.

use turno_engine::{CallerMessage, DiskEffect, Effect, Input, NativeEffect, Outgoing, PeerEffect, WorkerMessage};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::limits::{
    DELAY_MS_MAX, PRIORITY, PRIORITY_MAX, REQUEST_DEADLINE_MS_MAX, SEND_DEADLINE_MS_MAX, SEND_RETRIES,
};
use turno_proto::model::view::MessageState;
use turno_proto::model::{Code, ConnId, DedupId, DedupKey, Delivery, Durability, Mono, Payload};

use super::{ADMIN, USUAL_MS, World, admin_answer, queue_name};
use crate::message::{Kind, Message};
use crate::op::{DeliveryReport, Fence, Options};

/// Dedup ids. Some are the same with the name of a queue before them.
const DEDUP_IDS: [&[u8]; 4] = [b"x", b"bx", b"y", b"z"];

/// The number of a message, which fills some memory if it is large.
pub(super) fn payload(seq: u32, large: bool) -> Payload {
    let width = if large { 256 } else { 0 };
    Payload::body(format!("{seq:<width$}"))
}

impl Fence {
    /// The token that is said, of one's own and the last that was given out.
    pub(super) fn token(self, own: Option<u64>, last: u64) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Own => own,
            Self::Other(ago) => Some((last + 1).saturating_sub(ago)),
        }
    }
}

impl World {
    pub(super) fn request(&mut self, place: usize, options: &Options, no_reply: bool, fail_fast: bool) {
        let Some(conn) = self.places[place] else { return };
        let kind = if no_reply { Kind::NoReply } else { Kind::Request };
        let message = self.outgoing(conn, kind, options);
        self.step(Input::Request { conn, message: Outgoing { no_reply, fail_fast, ..message } });
    }

    pub(super) fn send(&mut self, place: usize, options: &Options) {
        let Some(conn) = self.places[place] else { return };
        let message = self.outgoing(conn, Kind::Send, options);
        let seq = message.seq;
        let effects = self.step(Input::Send { conn, message });
        let first = effects.iter().find(|effect| !matches!(effect, Effect::Disk(_)));
        match first {
            Some(Effect::Peer(PeerEffect::Native {
                effect: NativeEffect::Stored { durability, duplicate, .. },
                ..
            })) => {
                let durable = self.is_durable(self.oracle.messages[&seq].queue);
                let fits = *duplicate || durable == (*durability == Durability::Disk);
                assert!(fits, "{seq}: a send is as safe as its queue makes it");
            }
            Some(Effect::Peer(PeerEffect::Caller { message: CallerMessage::Undelivered { .. }, .. })) => {}
            other => assert!(self.lags, "{seq}: a send is answered first, not {other:?}"),
        }
    }

    /// Whether sends to the queue are stored.
    pub(super) fn is_durable(&self, queue: usize) -> bool {
        let volatile = self.oracle.settings[queue].is_some_and(|settings| settings.durable == Some(false));
        self.settings.store.is_some() && !volatile
    }

    /// A message as its sender writes it, entered into the account. Its body is its number.
    fn outgoing(&mut self, conn: ConnId, kind: Kind, options: &Options) -> Outgoing {
        self.seqs += 1;
        let (seq, now) = (self.seqs, self.now.max(self.clock));
        let &Options { handle, cost, priority, retries, within_ms, delay_ms, dedup_id, ends_with_caller, large } =
            options;
        let delay_ms = if kind == Kind::Send { delay_ms } else { 0 };
        let queue = self.oracle.peers[&conn].handles.get(&handle).copied();
        let dedup_id = dedup_id.filter(|_| kind == Kind::Send).map(|number| DEDUP_IDS[usize::from(number)]);
        let dedup_id = dedup_id.and_then(|bytes| DedupId::new(bytes).ok());
        let within = match kind {
            Kind::Send => within_ms.map(|ms| ms.min(SEND_DEADLINE_MS_MAX)),
            _ => Some(within_ms.unwrap_or(USUAL_MS).min(REQUEST_DEADLINE_MS_MAX)),
        };
        let bad =
            delay_ms > DELAY_MS_MAX || cost == Some(0) || priority.is_some_and(|priority| priority > PRIORITY_MAX);
        let message = Message {
            priority: priority.unwrap_or(PRIORITY),
            cost: cost.unwrap_or(1),
            retries: match kind {
                Kind::Request => retries.unwrap_or(0),
                Kind::NoReply => 0,
                Kind::Send => retries.unwrap_or(SEND_RETRIES),
            },
            deadline: within.map(|ms| now.plus_millis(u64::from(ms)).plus_millis(delay_ms)),
            not_before: if delay_ms > 0 { now.plus_millis(delay_ms) } else { Mono::ZERO },
            is_delayed: delay_ms > 0,
            wrong: if queue.is_none() { Some(Code::UnknownHandle) } else { bad.then_some(Code::BadOption) },
            dedup: queue.zip(dedup_id.as_ref()).map(|(queue, id)| DedupKey::of(&queue_name(queue), id)),
            ends_with_caller: ends_with_caller && kind == Kind::Request,
            ..Message::new(conn, seq, kind, queue.unwrap_or(0), now)
        };
        self.oracle.messages.insert(seq, message);
        Outgoing {
            deadline_ms: within_ms,
            retries,
            priority,
            cost,
            dedup_id,
            delay_ms,
            cancel_on_disconnect: ends_with_caller && kind == Kind::Request,
            ..Outgoing::new(seq, handle, payload(seq, large))
        }
    }

    pub(super) fn settle(&mut self, ago: usize, report: DeliveryReport, forger: Option<usize>, fence: Fence) {
        let Some(at) = self.oracle.deliveries.len().checked_sub(1 + ago) else { return };
        let (receiver, delivery, seq) = self.oracle.deliveries[at];
        let Some(conn) = forger.map_or(Some(receiver), |place| self.places[place]) else { return };
        self.say(conn, delivery, seq, (report, fence));
    }

    /// A report about a delivery, from any peer.
    pub(super) fn say(&mut self, conn: ConnId, delivery: Delivery, seq: u32, (report, fence): (DeliveryReport, Fence)) {
        if self.say_to_cast(conn, delivery, seq, (report, fence)) {
            return;
        }
        let held = self.oracle.held.get(&seq).copied();
        let held = held.filter(|held| held.worker == conn && held.delivery == delivery);
        let own = held.and_then(|held| held.token);
        let token = fence.token(own, self.oracle.token);
        let held = held.filter(|_| token.is_none() || token == own);
        let live = held.is_some_and(|held| held.stops.is_none());
        if live {
            self.oracle.speaking = Some(seq);
        }
        if held.is_some() && report.is_last() {
            self.oracle.held.remove(&seq);
        }
        let message = self.oracle.messages.get_mut(&seq).expect("only known messages are delivered");
        if let Some(peer) = self.oracle.peers.get_mut(&conn)
            && live
            && report.is_last()
        {
            peer.standings.settle(message.queue, delivery);
        }
        if live && let DeliveryReport::Fail { again } = report {
            let now = self.now.max(self.clock);
            self.oracle.wait(now, seq, again);
        }
        let message = self.oracle.messages.get_mut(&seq).expect("only known messages are delivered");
        message.settled |= live && matches!(report, DeliveryReport::Reply | DeliveryReport::Ack);
        let effects = self.apply_report(conn, delivery, report, token);
        self.oracle.speaking = None;
        assert!(held.is_some() || effects.is_empty(), "S1.30: a stray report does nothing: {effects:?}");
        let message = &self.oracle.messages[&seq];
        let waits = message.kind == Kind::Request && self.oracle.peers.contains_key(&message.caller);
        assert!(!(live && message.settled && waits) || message.ended, "{seq} was answered");
    }

    pub(super) fn apply_report(
        &mut self,
        conn: ConnId,
        delivery: Delivery,
        report: DeliveryReport,
        token: Option<u64>,
    ) -> Vec<Effect> {
        let payload = Payload::body("answer");
        let said = match report {
            DeliveryReport::Reply | DeliveryReport::Piece => {
                WorkerMessage::Reply { more: report == DeliveryReport::Piece, payload }
            }
            DeliveryReport::Ack => WorkerMessage::Ack,
            DeliveryReport::Fail { again } => WorkerMessage::Fail { again, payload },
            DeliveryReport::Progress => WorkerMessage::Progress { payload },
            DeliveryReport::Extend(lease_ms) => WorkerMessage::Extend { lease_ms },
        };
        let input = Input::worker(conn, delivery, said);
        self.step(match token {
            Some(token) => input.fenced(token),
            None => input,
        })
    }

    pub(super) fn cancel(&mut self, ago: u32) {
        let Some(seq) = self.seqs.checked_sub(ago) else { return };
        let Some(message) = self.oracle.messages.get_mut(&seq) else { return self.cancel_cast(seq) };
        if !self.oracle.peers.contains_key(&message.caller) {
            return;
        }
        let conn = message.caller;
        let open = message.kind != Kind::Send && !message.ended;
        message.cancelled |= open;
        self.step(Input::Cancel { conn, seq });
        assert!(!open || self.oracle.messages[&seq].ended, "{seq} was cancelled");
    }

    /// By an admin. A no-reply request is over once it is written; what holds the slot may still be stopped.
    pub(super) fn cancel_message(&mut self, ago: u32) {
        let message = self.seqs.checked_sub(ago).and_then(|seq| self.oracle.messages.get_mut(&seq));
        let message = message.filter(|message| !message.duplicate);
        let Some((message, id)) = message.and_then(|message| message.id.map(|id| (message, id))) else { return };
        let before = std::mem::replace(&mut message.cancelled, true);
        let seq = message.seq;
        let call = AdminCall::MessageCancel { id: id.to_string() };
        let mut effects = self.step(Input::Admin { conn: ADMIN, seq: 0, call });
        if matches!(effects[..], [Effect::Disk(DiskEffect::Load { .. })]) {
            // It is cancelled when it was read. Until then, all may happen to it.
            self.mark_cancelled(seq, before);
            (1..self.disk.loads.len()).for_each(|_| drop(self.read()));
            self.mark_cancelled(seq, true);
            effects = self.read();
        }
        if admin_answer(effects).expect("an admin is answered").is_err() {
            self.mark_cancelled(seq, before);
        }
    }

    /// An admin does not want it to wait any longer, or to lie with the dead letters.
    pub(super) fn retry_message(&mut self, ago: u32) {
        let message = self.seqs.checked_sub(ago).and_then(|seq| self.oracle.messages.get_mut(&seq));
        // A duplicate has the id of the message that is there.
        let message = message.filter(|message| !message.duplicate);
        let Some((seq, id)) = message.and_then(|message| Some((message.seq, message.id?))) else { return };
        let (is_dead, now) = (self.state_of(id) == Some(MessageState::Dead), self.now.max(self.clock));
        let message = self.oracle.messages.get_mut(&seq).expect("found a moment ago");
        message.not_before = Mono::ZERO;
        message.deadline = message.deadline.filter(|deadline| !is_dead || *deadline > now);
        let answer = self.admin(AdminCall::MessageRetry { id: id.to_string() });
        assert!(matches!(answer, Ok(AdminAnswer::Message { .. }) | Err(_)), "{answer:?}");
    }

    pub(super) fn mark_cancelled(&mut self, seq: u32, cancelled: bool) {
        self.oracle.messages.get_mut(&seq).expect("still there").cancelled = cancelled;
    }
}
