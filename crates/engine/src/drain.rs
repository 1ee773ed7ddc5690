//! Ending in order: everyone is told, what waits is given back, what runs may finish until the deadline.

use turno_proto::model::{Closing, ClosingReason, Code, Mono, Payload};

use crate::effect::{Effect, Sink};
use crate::engine::Engine;
use crate::message::{Origin, State, Wants};

/// The broker is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drain {
    /// Waiting for what runs.
    Running { until: Mono, returned: u64 },
    /// All is said.
    Over,
}

impl Drain {
    pub(crate) const fn until(&self) -> Option<Mono> {
        match self {
            Self::Running { until, .. } => Some(*until),
            Self::Over => None,
        }
    }
}

impl Engine {
    /// Tells everyone, and gives waiting requests back so that their callers can go elsewhere (S2.16, S2.17).
    pub(crate) fn begin_drain(&mut self, within_ms: u64, out: &mut impl Sink) {
        if self.drain.is_some() {
            return;
        }
        self.drain = Some(Drain::Running { until: self.now.plus_millis(within_ms), returned: 0 });
        let closing = self.closing().expect("the drain has just begun");
        for peer in self.peers.iter() {
            out.effect(Effect::Closing { conn: peer.id, closing });
        }
        let kept = self.queues.after(None).filter(|(_, queue)| queue.reserved.is_some()).map(|(number, _)| number);
        for number in kept.collect::<Vec<u32>>() {
            self.release_reservation(number);
        }
        let waiting: Vec<u32> = self
            .messages
            .iter()
            .filter(|(_, message)| message.state == State::Waiting && message.wants != Wants::Settling)
            .map(|(index, _)| index)
            .collect();
        let returned = waiting.len() as u64;
        for index in waiting {
            // `closing` promises that nobody has begun with it, and its caller will start anew elsewhere.
            let begun = self.messages[index].attempts > 0;
            self.unplace(index);
            self.end_without_reply(index, if begun { Code::CutShort } else { Code::Closing }, out);
        }
        self.drain = Some(Drain::Running { until: self.now.plus_millis(within_ms), returned });
    }

    /// What everyone is told while the broker drains.
    pub(crate) fn closing(&self) -> Option<Closing> {
        let until = match self.drain? {
            Drain::Running { until, .. } => until,
            Drain::Over => self.now,
        };
        Some(Closing { reason: ClosingReason::Shutdown, within_ms: until.millis_left(self.now) })
    }

    /// Nothing is handed out during a drain: a request that would go to another worker goes back to its caller.
    pub(crate) fn returned_to_caller(&mut self, index: u32, out: &mut impl Sink) -> bool {
        if self.messages[index].wants != Wants::Reply {
            return false;
        }
        match &mut self.drain {
            None => return false,
            Some(Drain::Running { returned, .. }) => *returned += 1,
            Some(Drain::Over) => {}
        }
        self.end_without_reply(index, Code::Closing, out);
        true
    }

    pub(crate) fn end_drain_if_idle(&mut self, out: &mut impl Sink) {
        if let Some(Drain::Running { returned, .. }) = self.drain
            && self.stats.in_flight == 0
            && self.durable.is_idle()
        {
            self.end_drain(returned, 0, out);
        }
    }

    /// The deadline passed: callers of what still runs are told, and the broker ends all the same.
    pub(crate) fn end_drain_if_late(&mut self, out: &mut impl Sink) {
        let Some(Drain::Running { until, returned }) = self.drain else { return };
        if self.now < until {
            return;
        }
        let running: Vec<(u32, Origin)> = self
            .messages
            .iter()
            .filter(|(_, message)| matches!(message.state, State::Held { .. } | State::Broadcast))
            .filter_map(|(index, message)| Some((index, message.origin?)))
            .collect();
        for (index, origin) in running {
            // This was its outcome: a reply that still comes has no caller.
            self.disown(index);
            // Not `closing`: that promises that nobody has begun with it.
            let code = Code::CutShort;
            let (conn, seq) = (origin.conn(), origin.seq);
            out.effect(Effect::Undelivered { conn, seq, code, payload: Payload::default() });
        }
        self.end_drain(returned, self.stats.in_flight, out);
    }

    fn end_drain(&mut self, returned: u64, cut: u64, out: &mut impl Sink) {
        self.drain = Some(Drain::Over);
        let lost = self.held_in_memory();
        out.effect(Effect::Drained { returned, cut, lost });
    }
}
