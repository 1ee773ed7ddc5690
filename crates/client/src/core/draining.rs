//! Two connections at a time: the draining one with open calls, and the next one (S2.18).

use std::collections::VecDeque;

use turno_proto::model::{Code, Mono, Payload};

use super::calls::{Call, Calls};
use super::event::Held;
use super::link::Link;
use super::listening::Listening;
use super::worker_side::WorkerSide;
use super::{Core, REST_MS, State, Ticket};

/// A call that a closing broker never worked on.
#[derive(Debug)]
pub struct Returned {
    /// The call that comes back.
    pub ticket: Ticket,
    call: Call,
}

impl Core {
    /// A broker that closes has calls or deliveries of ours, and there is another broker: returns a core for the connection
    /// as it is, which ends with the last of them; this one dials the next broker at once and has everything else. The
    /// driver calls this after the events; a core without this call stays with the broker until all has ended. `None`:
    /// there is no need.
    ///
    /// A worker registers at the next broker with the slots that are free, and has more to fill there with each delivery that
    /// ends ([`Core::ended_elsewhere`]); with a queue that it has to itself it stays, because nobody else may have it meanwhile.
    pub fn leave_behind(&mut self, now: Mono) -> Option<Self> {
        let leaving = matches!(self.state, State::Leave { .. }) && self.may_leave();
        let holds = !self.link.held.is_empty();
        let stays = (holds || self.duty.is_wanted()) && !self.duty.is_shared();
        if !leaving || stays || self.left_behind || (self.calls.written() == 0 && !holds) {
            return None;
        }
        self.stop_strict_listening(Code::ConnectionLost);
        let epoch = self.link.epoch;
        let held = self.link.held.iter();
        self.duty.leave_behind(held.map(|(delivery, holding)| (Held { epoch, delivery: *delivery }, holding.cost)));
        let next = Link::new(self.link.epoch + 1, now);
        let old = Self {
            settings: self.settings.clone(),
            brokers: self.brokers.clone(),
            state: self.state,
            config: self.config.clone(),
            link: std::mem::replace(&mut self.link, next),
            calls: self.calls.split_written(),
            duty: WorkerSide::default(),
            listening: Listening::default(),
            ready_once: true,
            left_behind: true,
            returned: Vec::new(),
            events: VecDeque::new(),
        };
        if old.link.ready.is_some_and(|since| now.millis_since(since) >= REST_MS) {
            self.brokers.proved();
        }
        self.next_broker(now, "the broker is closing".to_owned());
        Some(old)
    }

    /// The calls this core has not ended.
    pub fn tickets(&self) -> Vec<Ticket> {
        self.calls.all()
    }

    /// Calls to be taken up by the core that went on.
    pub fn take_returned(&mut self) -> Vec<Returned> {
        std::mem::take(&mut self.returned).into_iter().map(|(ticket, call)| Returned { ticket, call }).collect()
    }

    /// Takes up a call that the core left behind could not end.
    pub fn adopt(&mut self, returned: Returned) {
        let Returned { ticket, call } = returned;
        self.calls.adopt(ticket, call);
        if self.closed() {
            self.fail(ticket, Code::Cancelled, Payload::default());
        }
    }

    /// There is somewhere to go.
    pub(super) const fn may_leave(&self) -> bool {
        self.brokers.several() && !self.settings.stay
    }

    /// The connection of a core left behind is gone: what may be asked again goes to the other core.
    pub(super) fn end_draining(&mut self, now: Mono, again: &[Ticket]) {
        let mut ended = std::mem::take(&mut self.calls);
        self.returned.extend(again.iter().filter_map(|ticket| ended.end(*ticket).map(|call| (*ticket, call))));
        self.calls = Calls::default();
        self.new_link(now);
        self.state = State::Closed;
    }
}
