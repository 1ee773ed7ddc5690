//! Drain and maintenance: waiting requests are given back, running work may finish until a deadline. Maintenance ends
//! by a command, a drain with the broker.

use turno_proto::model::{Closing, ClosingReason, Code, Mono};

use crate::effect::{CallerMessage, Drained, HostEffect, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::deferred::{DeferredAction, DeferredStep};
use crate::messages::dispatch::DispatchStep;
use crate::messages::table::message::{MessageStage, Origin, Wants};

/// The broker takes and hands out nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Drain {
    /// For maintenance, until it is told to go on.
    Maintenance,
    /// On its way out: waiting for what runs.
    Running { until: Mono, returned: u64 },
    /// All is said.
    Over,
}

impl Drain {
    pub(super) const fn until(&self) -> Option<Mono> {
        match self {
            Self::Running { until, .. } => Some(*until),
            Self::Maintenance | Self::Over => None,
        }
    }
}

impl Messages {
    /// The broker is on its way out (S2.16, S2.17). False if it was already. [`Self::turn_away`] follows.
    pub(crate) fn begin_drain(&mut self, within_ms: u64) -> bool {
        if self.is_ending() {
            return false;
        }
        let until = self.now.plus_millis(within_ms);
        self.drain = Some(Drain::Running { until, returned: 0 });
        true
    }

    /// The same for maintenance: the broker stays, answers questions and keeps what is stored. Again: nothing more.
    pub(crate) fn begin_maintenance(&mut self, out: &mut impl Sink) -> Result<(), Code> {
        match self.drain {
            None => {
                self.drain = Some(Drain::Maintenance);
                self.turn_away(out);
                Ok(())
            }
            Some(Drain::Maintenance) => Ok(()),
            Some(Drain::Running { .. } | Drain::Over) => Err(Code::Closing),
        }
    }

    /// The maintenance is over: everyone is told, and what waited goes on. If there was none: nothing.
    pub(crate) fn end_maintenance(&mut self, out: &mut impl Sink) -> Result<(), Code> {
        match self.drain {
            None => return Ok(()),
            Some(Drain::Maintenance) => self.drain = None,
            Some(Drain::Running { .. } | Drain::Over) => return Err(Code::Closing),
        }
        self.tell_all_offers();
        self.tell_all(Closing { reason: ClosingReason::Resumed, within_ms: 0 }, out);
        let waiting = self.queues.after(None).filter(|(_, queue)| !queue.backlog.is_empty());
        for number in waiting.map(|(number, _)| number).collect::<Vec<u32>>() {
            // It may be short of messages at hand: none were loaded meanwhile.
            self.note_waiting(number);
            self.agenda.push_back(DispatchStep::Queue(number));
        }
        Ok(())
    }

    /// It will not come back from this.
    const fn is_ending(&self) -> bool {
        matches!(self.drain, Some(Drain::Running { .. } | Drain::Over))
    }

    pub(crate) fn is_in_maintenance(&self) -> bool {
        self.drain == Some(Drain::Maintenance)
    }

    fn tell_all(&self, closing: Closing, out: &mut impl Sink) {
        // A foreman's workers have no such frame: they are offered nothing, and go on with what they have.
        for peer in self.peers.iter().filter(|peer| !peer.is_job_worker) {
            out.peer(PeerEffect::Closing { conn: peer.id, closing });
        }
    }

    /// Tells everyone of the drain that has just begun, and gives waiting requests back, many by portions, so that their
    /// callers can go elsewhere.
    pub(crate) fn turn_away(&mut self, out: &mut impl Sink) {
        let closing = self.closing().expect("the drain has just begun");
        self.tell_all_offers();
        self.tell_all(closing, out);
        let kept = self.queues.after(None).filter(|(_, queue)| queue.reserved.is_some()).map(|(number, _)| number);
        for number in kept.collect::<Vec<u32>>() {
            self.release_reservation(number);
        }
        for (index, message) in self.messages.iter() {
            if message.state == MessageStage::Waiting && message.wants != Wants::Settling {
                self.deferred.push(DeferredStep { index, serial: message.serial, what: DeferredAction::TurnAway });
            }
        }
        self.do_portion(out);
    }

    /// The notice to all peers while the broker drains.
    pub(super) fn closing(&self) -> Option<Closing> {
        let (reason, until) = match self.drain? {
            Drain::Maintenance => (ClosingReason::Maintenance, self.now),
            Drain::Running { until, .. } => (ClosingReason::Shutdown, until),
            Drain::Over => (ClosingReason::Shutdown, self.now),
        };
        Some(Closing { reason, within_ms: until.millis_left(self.now) })
    }

    /// Nothing is handed out during a drain: a request that would go to another worker goes back to its caller.
    pub(super) fn returned_to_caller(&mut self, index: u32, out: &mut impl Sink) -> bool {
        if self.messages[index].wants == Wants::Settling {
            return false;
        }
        match &mut self.drain {
            None => return false,
            Some(Drain::Running { returned, .. }) => *returned += 1,
            Some(Drain::Maintenance | Drain::Over) => {}
        }
        // Given back, this attempt never was; but one before it may have been.
        let begun = self.messages[index].attempts > 1;
        self.end_without_reply(index, if begun { Code::CutShort } else { Code::Closing }, out);
        true
    }

    pub(crate) fn end_drain_if_idle(&mut self, out: &mut impl Sink) {
        if let Some(Drain::Running { returned, .. }) = self.drain
            && self.stats.in_flight == self.stats.answered
            && self.deferred.is_empty()
            && self.durable.is_idle()
        {
            self.end_drain(returned, 0, out);
        }
    }

    /// The deadline passed: callers of what still runs are told, and the broker ends all the same.
    pub(super) fn end_drain_if_late(&mut self, out: &mut impl Sink) {
        let Some(until) = self.drain.as_ref().and_then(Drain::until) else { return };
        if self.now < until {
            return;
        }
        // There is no later for what was to be given back later.
        while !self.deferred.is_empty() {
            self.do_portion(out);
        }
        let Some(Drain::Running { returned, .. }) = self.drain else { return };
        let running: Vec<(u32, Origin)> = self
            .messages
            .iter()
            .filter(|(_, message)| matches!(message.state, MessageStage::Held { .. } | MessageStage::Broadcast))
            .filter_map(|(index, message)| Some((index, message.origin?)))
            .collect();
        for (index, origin) in running {
            // This was its outcome: a reply that still comes has no caller.
            self.disown(index);
            // Not `closing`: that promises that nobody has begun with it.
            out.peer(origin.hears(CallerMessage::undelivered(Code::CutShort)));
        }
        self.end_drain(returned, self.stats.in_flight - self.stats.answered, out);
    }

    fn end_drain(&mut self, returned: u64, cut: u64, out: &mut impl Sink) {
        self.drain = Some(Drain::Over);
        let lost = self.held_in_memory();
        out.host(HostEffect::Drained(Drained { returned, cut, lost }));
    }
}
