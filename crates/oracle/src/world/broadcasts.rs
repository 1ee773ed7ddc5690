//! Broadcasts.

use std::collections::BTreeMap;

use turno_engine::{Broadcast, CallerMessage, Effect, Input, PeerEffect};
use turno_proto::model::{BroadcastEnd, Code, ConnId, Delivery, limits};

use super::messages::payload;
use super::{USUAL_MS, World};
use crate::broadcasts::BroadcastState;
use crate::message::Peer;
use crate::op::{DeliveryReport, Fence, Op};

impl World {
    pub(super) fn broadcast(&mut self, op: &Op) {
        let Op::Broadcast { place, handle, within_ms, no_reply, skip_self, large } = *op else { return };
        let Some(conn) = self.places[place] else { return };
        self.seqs += 1;
        let (seq, now) = (self.seqs, self.now.max(self.clock));
        let queue = self.oracle.peers[&conn].handles.get(&handle).copied();
        let within = within_ms.unwrap_or(USUAL_MS).min(limits::REQUEST_DEADLINE_MS_MAX);
        let cast = BroadcastState {
            caller: conn,
            queue: queue.unwrap_or(0),
            deadline: now.plus_millis(u64::from(within)),
            no_reply,
            wrong: queue.is_none().then_some(Code::UnknownHandle),
            cancelled: false,
            ended: false,
            end: BroadcastEnd::default(),
            open: BTreeMap::new(),
            stopping: BTreeMap::new(),
        };
        self.oracle.casts.insert(seq, cast);
        let payload = payload(seq, large);
        let broadcast = Broadcast { seq, handle, deadline_ms: within_ms, no_reply, skip_self, payload };
        let effects = self.step(Input::Broadcast { conn, broadcast });
        let first = effects.first();
        if matches!(first, Some(Effect::Peer(PeerEffect::Caller { message: CallerMessage::Undelivered { .. }, .. }))) {
            return;
        }
        let takes = |(at, peer): &(&ConnId, &Peer)| {
            queue.is_some_and(|queue| peer.takes(queue)) && !(skip_self && **at == conn)
        };
        let audience = self.oracle.peers.iter().filter(takes).count();
        let cast = &self.oracle.casts[&seq];
        assert_eq!(cast.end.consumers as usize, audience, "S2.9: {seq} goes to everyone");
        assert!(cast.ended == (no_reply || audience == 0), "{seq} ends at once only if nobody is waited for");
    }

    /// A report about a delivery of a broadcast. False if it is of none.
    pub(super) fn say_to_cast(
        &mut self,
        conn: ConnId,
        delivery: Delivery,
        seq: u32,
        (report, fence): (DeliveryReport, Fence),
    ) -> bool {
        let Some(cast) = self.oracle.casts.get_mut(&seq) else { return false };
        let open = cast.open.get(&conn).filter(|(held, _)| *held == delivery);
        let stopping = cast.stopping.get(&conn).map(|(part, _)| part).filter(|(held, _)| *held == delivery);
        let own = open.or(stopping).and_then(|(_, token)| *token);
        let token = fence.token(own, self.oracle.token);
        let passes = token.is_none() || token == own;
        let (live, stopping) = (open.is_some() && passes, stopping.is_some() && passes);
        if report.is_last() && stopping {
            cast.stopping.remove(&conn);
        }
        if report.is_last() && live {
            cast.open.remove(&conn);
            match report {
                DeliveryReport::Fail { .. } => cast.end.failed += 1,
                _ => cast.end.answered += 1,
            }
        }
        self.oracle.speaking = live.then_some(seq);
        let effects = self.apply_report(conn, delivery, report, token);
        self.oracle.speaking = None;
        assert!(live || stopping || effects.is_empty(), "a stray report does nothing: {effects:?}");
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
