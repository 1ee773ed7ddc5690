//! The oracle of broadcasts, with an account of its own.

use std::collections::BTreeMap;

use turno_engine::Deliver;
use turno_proto::model::{BroadcastEnd, Code, ConnId, Delivery, Mono};

use crate::oracle::{GRACE_MS, Oracle, due, number};

/// A delivery of a broadcast, with the token of its queue.
pub(crate) type Part = (Delivery, Option<u64>);

/// A broadcast, and how far it is.
#[derive(Debug)]
pub(crate) struct BroadcastState {
    pub(crate) caller: ConnId,
    pub(crate) queue: usize,
    pub(crate) deadline: Mono,
    pub(crate) no_reply: bool,
    /// Why it is refused, whatever else there is.
    pub(crate) wrong: Option<Code>,
    pub(crate) cancelled: bool,
    pub(crate) ended: bool,
    /// Its result so far, by the messages that were sent.
    pub(crate) end: BroadcastEnd,
    /// Consumers that have not ended.
    pub(crate) open: BTreeMap<ConnId, Part>,
    /// Consumers that were told to stop, and until when that is remembered.
    pub(crate) stopping: BTreeMap<ConnId, (Part, Mono)>,
}

impl BroadcastState {
    fn is_for(&self, caller: ConnId) -> bool {
        !self.ended && self.caller == caller
    }

    /// Deliveries that somebody may settle.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (ConnId, Part)> {
        let stopping = self.stopping.iter().map(|(at, (part, _))| (*at, *part));
        self.open.iter().map(|(at, part)| (*at, *part)).chain(stopping)
    }
}

impl Oracle {
    pub(crate) fn cast_delivered(&mut self, now: Mono, deliver: &Deliver) {
        let Deliver { conn, delivery, attempt, deadline_ms, wants_reply, payload, handle, token, .. } = deliver;
        let seq = number(&payload.bytes).and_then(|seq| u32::try_from(seq).ok()).expect("bodies are numbers");
        let cast = self.casts.get_mut(&seq).expect("it was cast");
        assert_eq!((*wants_reply, *attempt), (!cast.no_reply, 1), "{seq}");
        assert_eq!(*deadline_ms, Some(cast.deadline.millis_left(now) as u32), "{seq} says how long it has");
        assert!(cast.deadline > now && !cast.ended && cast.wrong.is_none(), "{seq} is over");
        let peer = &self.peers[conn];
        assert!(peer.takes(cast.queue), "{seq} is not for {peer:?}");
        assert_eq!(peer.consumes.get(&cast.queue), Some(handle), "{seq} comes under its queue's handle");
        self.exclusive[cast.queue].gets(*conn, *token, None);
        cast.end.consumers += 1;
        if !cast.no_reply {
            assert_eq!(cast.open.insert(*conn, (*delivery, *token)), None, "S2.9: {seq} goes to everyone once");
        }
        self.note_delivery(*conn, *delivery, seq);
    }

    /// A consumer's message reaches the caller.
    pub(crate) fn cast_answered(&self, conn: ConnId, seq: u32) {
        assert_eq!(self.speaking, Some(seq), "only a holder's message reaches a caller");
        let there = self.casts[&seq].is_for(conn) && self.peers.contains_key(&conn);
        assert!(there, "{seq} has ended, or is another's");
    }

    pub(crate) fn cast_ended(&mut self, conn: ConnId, seq: u32, end: &BroadcastEnd) {
        let cast = self.casts.get_mut(&seq).expect("only what was cast ends");
        assert!(cast.is_for(conn) && self.peers.contains_key(&conn), "S2.12: {seq} ends once");
        assert!(cast.open.is_empty() && cast.wrong.is_none(), "{seq} ends when nobody is left");
        let counts = |end: &BroadcastEnd| (end.consumers, end.answered, end.failed, end.expired, end.left);
        assert_eq!(counts(end), counts(&cast.end), "S2.13: {seq}: what is told is what happened");
        cast.ended = true;
    }

    /// UNDELIVERED. False if it is no broadcast.
    pub(crate) fn cast_refused(&mut self, now: Mono, conn: ConnId, seq: u32, code: Code) -> bool {
        let Some(cast) = self.casts.get_mut(&seq) else { return false };
        assert!(cast.is_for(conn) && self.peers.contains_key(&conn), "S2.12: {seq} ends once");
        assert!(cast.wrong.is_none_or(|wrong| wrong == code), "{seq} is wrong, and {code} is said");
        match code {
            Code::TimedOut => assert!(cast.deadline <= now && cast.end.consumers == 0, "{seq} timed out early"),
            Code::Cancelled => assert!(cast.cancelled && cast.open.is_empty(), "nobody cancelled {seq}"),
            Code::UnknownHandle => assert!(cast.wrong.is_some(), "{seq}: nothing is wrong"),
            Code::OverMemory => assert!(self.tight, "{seq}: there is memory"),
            Code::Closing | Code::CutShort => assert!(self.closing, "{seq}: the broker does not drain"),
            Code::TooManyInFlight => {}
            other => panic!("{seq} ends with {other}"),
        }
        cast.ended = true;
        true
    }

    /// CANCEL to a consumer. False if it is for no broadcast.
    pub(crate) fn cast_stopped(&mut self, now: Mono, worker: ConnId, delivery: Delivery, reason: Code) -> bool {
        let held = |cast: &&mut BroadcastState| cast.open.get(&worker).is_some_and(|(held, _)| *held == delivery);
        let Some(cast) = self.casts.values_mut().find(held) else { return false };
        if let Some(part) = cast.open.remove(&worker) {
            cast.stopping.insert(worker, (part, now.plus_millis(GRACE_MS)));
        }
        cast.end.expired += u32::from(reason == Code::TimedOut);
        assert!(reason != Code::TimedOut || cast.deadline <= now, "stopped early");
        true
    }

    /// The worker holds nothing any more.
    pub(crate) fn cast_left(&mut self, worker: ConnId) {
        for cast in self.casts.values_mut() {
            cast.end.left += u32::from(cast.open.remove(&worker).is_some());
            cast.stopping.remove(&worker);
        }
    }

    pub(crate) fn cast_grace(&mut self, now: Mono) {
        self.casts.values_mut().for_each(|cast| cast.stopping.retain(|_, (_, until)| *until > now));
    }

    /// Broadcasts whose caller waits for the end.
    pub(crate) fn open_casts(&self) -> Vec<u32> {
        let open = self.casts.iter().filter(|(_, cast)| !cast.ended && self.peers.contains_key(&cast.caller));
        open.map(|(seq, _)| *seq).collect()
    }

    pub(crate) fn check_casts(&self, now: Mono) {
        for seq in self.open_casts() {
            assert!(due(self.casts[&seq].deadline) > now, "I13: {seq} should have ended");
        }
    }

    pub(crate) fn is_cast_in_job_worker(&self, queue: usize) -> bool {
        self.casts.values().any(|cast| cast.queue == queue && cast.parts().next().is_some())
    }

    /// Deliveries of broadcasts that somebody may settle.
    pub(crate) fn cast_held(&self) -> Vec<(u32, ConnId, Delivery)> {
        let parts = self.casts.iter().flat_map(|(seq, cast)| cast.parts().map(|part| (*seq, part)));
        parts.map(|(seq, (at, (held, _)))| (seq, at, held)).collect()
    }
}
