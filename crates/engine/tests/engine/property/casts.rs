//! Broadcasts among all else, by an account of their own.

use std::collections::BTreeMap;

use turno_engine::{Broadcast, CallerWord, Deliver, Effect, Input, PeerEffect};
use turno_proto::model::{BroadcastEnd, Code, ConnId, Delivery, Mono, Payload};

use super::Word;
use super::oracle::{GRACE_MS, Oracle};
use super::world::{USUAL_MS, World};

/// A broadcast, and how far it is.
#[derive(Debug)]
pub(super) struct Cast {
    caller: ConnId,
    queue: usize,
    deadline: Mono,
    no_reply: bool,
    cancelled: bool,
    ended: bool,
    /// What came of it so far, by the words that were said.
    end: BroadcastEnd,
    /// Who has not ended.
    open: BTreeMap<ConnId, Delivery>,
    /// Who was told to stop, and until when that is remembered.
    stopping: BTreeMap<ConnId, (Delivery, Mono)>,
}

impl Oracle {
    pub(super) fn cast_delivered(&mut self, now: Mono, deliver: &Deliver) {
        let Deliver { conn, delivery, attempt, deadline_ms, wants_reply, payload, handle, .. } = deliver;
        let seq = std::str::from_utf8(&payload.bytes).ok().and_then(|text| text.parse().ok());
        let (seq, cast) =
            seq.and_then(|seq: u32| self.casts.get_mut(&seq).map(|cast| (seq, cast))).expect("it was cast");
        assert_eq!((*handle as usize, *wants_reply, *attempt), (cast.queue, !cast.no_reply, 1), "{seq}");
        assert_eq!(*deadline_ms, Some(cast.deadline.millis_left(now) as u32), "{seq} says how long it has");
        assert!(cast.deadline > now && !cast.ended, "{seq} is over");
        let peer = &self.peers[conn];
        assert!(peer.ready && !peer.closed && peer.consumes.contains(&cast.queue), "{seq} is not for {peer:?}");
        cast.end.consumers += 1;
        if !cast.no_reply {
            assert_eq!(cast.open.insert(*conn, *delivery), None, "{seq} goes to everyone once");
        }
        self.note_delivery(*conn, *delivery, seq);
    }

    /// A consumer's word reaches the caller.
    pub(super) fn cast_answered(&self, conn: ConnId, seq: u32) {
        assert_eq!(self.speaking, Some(seq), "only a holder's word reaches a caller");
        let cast = &self.casts[&seq];
        assert!(
            !cast.ended && cast.caller == conn && self.peers.contains_key(&conn),
            "{seq} has ended, or is another's"
        );
    }

    pub(super) fn cast_ended(&mut self, conn: ConnId, seq: u32, end: &BroadcastEnd) {
        let cast = self.casts.get_mut(&seq).expect("only what was cast ends");
        assert!(!cast.ended && cast.caller == conn && self.peers.contains_key(&conn), "{seq} ends once");
        assert!(cast.open.is_empty(), "{seq} ends when nobody is left");
        let counts = |end: &BroadcastEnd| (end.consumers, end.answered, end.failed, end.expired, end.left);
        assert_eq!(counts(end), counts(&cast.end), "{seq}: what is told is what happened");
        cast.ended = true;
    }

    /// UNDELIVERED. False if it is no broadcast.
    pub(super) fn cast_refused(&mut self, now: Mono, conn: ConnId, seq: u32, code: Code) -> bool {
        let Some(cast) = self.casts.get_mut(&seq) else { return false };
        assert!(!cast.ended && cast.caller == conn && self.peers.contains_key(&conn), "{seq} ends once");
        match code {
            Code::TimedOut => assert!(cast.deadline <= now && cast.end.consumers == 0, "{seq} timed out early"),
            Code::Cancelled => assert!(cast.cancelled && cast.open.is_empty(), "nobody cancelled {seq}"),
            _ => {}
        }
        cast.ended = true;
        true
    }

    /// CANCEL to a consumer. False if it is for no broadcast.
    pub(super) fn cast_stopped(&mut self, now: Mono, worker: ConnId, delivery: Delivery, reason: Code) -> bool {
        let held = |cast: &&mut Cast| cast.open.get(&worker) == Some(&delivery);
        let Some(cast) = self.casts.values_mut().find(held) else { return false };
        cast.open.remove(&worker);
        cast.stopping.insert(worker, (delivery, now.plus_millis(GRACE_MS)));
        cast.end.expired += u32::from(reason == Code::TimedOut);
        assert!(reason != Code::TimedOut || cast.deadline <= now, "stopped early");
        true
    }

    /// The worker holds nothing any more.
    pub(super) fn cast_left(&mut self, worker: ConnId) {
        for cast in self.casts.values_mut() {
            cast.end.left += u32::from(cast.open.remove(&worker).is_some());
            cast.stopping.remove(&worker);
        }
    }

    pub(super) fn cast_grace(&mut self, now: Mono) {
        self.casts.values_mut().for_each(|cast| cast.stopping.retain(|_, (_, until)| *until > now));
    }

    /// Broadcasts whose caller waits for the end.
    pub(super) fn open_casts(&self) -> Vec<u32> {
        let open = self.casts.iter().filter(|(_, cast)| !cast.ended && self.peers.contains_key(&cast.caller));
        open.map(|(seq, _)| *seq).collect()
    }

    pub(super) fn check_casts(&self, now: Mono) {
        for seq in self.open_casts() {
            assert!(self.casts[&seq].deadline > now, "{seq} should have ended");
        }
    }

    /// Deliveries of broadcasts that somebody may settle.
    pub(super) fn cast_held(&self) -> Vec<(u32, ConnId, Delivery)> {
        let open = self.casts.iter().flat_map(|(seq, cast)| cast.open.iter().map(|(at, held)| (*seq, *at, *held)));
        let stopping =
            self.casts.iter().flat_map(|(seq, cast)| cast.stopping.iter().map(|(at, (held, _))| (*seq, *at, *held)));
        open.chain(stopping).collect()
    }
}

impl World {
    pub(super) fn broadcast(
        &mut self,
        place: usize,
        queue: usize,
        within_ms: Option<u32>,
        no_reply: bool,
        skip_self: bool,
    ) {
        let Some(conn) = self.places[place] else { return };
        self.seqs += 1;
        let (seq, now) = (self.seqs, self.now.max(self.clock));
        let (caller, deadline) = (conn, now.plus_millis(u64::from(within_ms.unwrap_or(USUAL_MS))));
        let (open, stopping, end) = (BTreeMap::new(), BTreeMap::new(), BroadcastEnd::default());
        let cast = Cast { caller, queue, deadline, no_reply, cancelled: false, ended: false, end, open, stopping };
        self.oracle.casts.insert(seq, cast);
        let payload = Payload::body(seq.to_string());
        let broadcast = Broadcast { seq, handle: queue as u32, deadline_ms: within_ms, no_reply, skip_self, payload };
        let effects = self.step(Input::Broadcast { conn, broadcast });
        if matches!(
            effects.first(),
            Some(Effect::Peer(PeerEffect::Caller { word: CallerWord::Undelivered { .. }, .. }))
        ) {
            return;
        }
        let takes = |(at, peer): &(&ConnId, &super::oracle::Peer)| {
            peer.ready && !peer.closed && peer.consumes.contains(&queue) && !(skip_self && **at == conn)
        };
        let audience = self.oracle.peers.iter().filter(takes).count();
        let cast = &self.oracle.casts[&seq];
        assert_eq!(cast.end.consumers as usize, audience, "{seq} goes to everyone");
        assert!(cast.ended == (no_reply || audience == 0), "{seq} ends at once only if nobody is waited for");
    }

    /// A word about a delivery of a broadcast. False if it is of none.
    pub(super) fn say_to_cast(&mut self, conn: ConnId, delivery: Delivery, seq: u32, word: Word) -> bool {
        let Some(cast) = self.oracle.casts.get_mut(&seq) else { return false };
        let live = cast.open.get(&conn) == Some(&delivery);
        let stopping = cast.stopping.get(&conn).is_some_and(|(held, _)| *held == delivery);
        let last = !matches!(word, Word::Piece | Word::Progress | Word::Extend);
        if last && stopping {
            cast.stopping.remove(&conn);
        }
        if last && live {
            cast.open.remove(&conn);
            match word {
                Word::Fail | Word::FailForGood => cast.end.failed += 1,
                _ => cast.end.answered += 1,
            }
        }
        self.oracle.speaking = live.then_some(seq);
        let effects = self.utter(conn, delivery, word);
        self.oracle.speaking = None;
        assert!(live || stopping || effects.is_empty(), "a stray word does nothing: {effects:?}");
        let cast = &self.oracle.casts[&seq];
        let over = live && cast.open.is_empty() && self.oracle.peers.contains_key(&cast.caller);
        assert!(!over || cast.ended, "{seq} was the last to be answered");
        true
    }

    pub(super) fn cancel_cast(&mut self, seq: u32) {
        let Some(cast) = self.oracle.casts.get_mut(&seq) else { return };
        if !self.oracle.peers.contains_key(&cast.caller) {
            return;
        }
        let conn = cast.caller;
        cast.cancelled |= !cast.ended;
        self.step(Input::Cancel { conn, seq });
        assert!(self.oracle.casts[&seq].ended, "{seq} was cancelled");
    }
}
