//! Open calls: those that wait for a connection and those that wait for an answer.

use std::collections::{BTreeSet, HashMap, VecDeque};

use turno_proto::model::{Mono, Payload, Slots, Topic};
use turno_proto::native::admin::AdminCall;

use super::event::{Ask, Ticket};

/// Calls of one client that have not ended. More: refused, `too_many_in_flight`.
pub const CALLS_MAX: usize = 100_000;

#[derive(Clone, Debug)]
pub(super) enum CallKind {
    Request(Ask),
    Send(Ask),
    Broadcast(Ask),
    Publish { topic: Topic, payload: Payload, confirm: bool },
    Admin(AdminCall),
    Resize(Slots),
}

impl CallKind {
    /// Bytes it holds while it waits, roughly.
    fn len(&self) -> usize {
        match self {
            Self::Request(ask) | Self::Send(ask) | Self::Broadcast(ask) => ask.payload.len(),
            Self::Publish { payload, .. } => payload.len(),
            Self::Admin(_) | Self::Resize(_) => 0,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallPlace {
    /// No byte of it has been written.
    Waiting,
    /// Written under this number; whether the broker has it is unknown until it answers.
    Written(u32),
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) what: CallKind,
    pub(super) place: CallPlace,
    /// When the message is worth nothing any more, if the caller said so.
    pub(super) expires: Option<Mono>,
    /// When the caller's time is over.
    pub(super) deadline: Mono,
    /// When the core ends it itself.
    alarm: Mono,
    /// A piece of the reply was handed out, so it can never begin anew.
    pub(super) begun: bool,
    /// The caller wants no answer any more.
    pub(super) cancelled: bool,
}

impl Call {
    /// The work may take longer than its caller waits.
    pub(super) fn outlasts_its_caller(&self) -> bool {
        matches!(self.what, CallKind::Request(_)) && self.expires.is_some_and(|at| at > self.deadline)
    }

    /// The broker is to end it when its caller's time is over.
    pub(super) fn ends_with_time(&self) -> bool {
        match &self.what {
            CallKind::Request(ask) => ask.cancel_on_timeout || !self.outlasts_its_caller(),
            _ => true,
        }
    }

    /// The broker is to end it when its caller is gone.
    pub(super) const fn ends_with_connection(&self) -> bool {
        match &self.what {
            CallKind::Request(ask) => ask.cancel_on_disconnect,
            _ => true,
        }
    }

    /// May it go to another broker although this one may have worked on it?
    pub(super) fn may_resend(&self) -> bool {
        let flagged = match &self.what {
            CallKind::Request(ask) | CallKind::Broadcast(ask) => ask.resend,
            CallKind::Send(ask) => ask.resend || ask.dedup_id.is_some(),
            CallKind::Publish { .. } | CallKind::Admin(_) | CallKind::Resize(_) => false,
        };
        flagged && !self.begun && !self.cancelled
    }
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    by_ticket: HashMap<Ticket, Call>,
    /// Messages, in the order of the tickets; may name calls that have ended.
    waiting: VecDeque<Ticket>,
    /// The other calls: a broker that drains answers these too.
    asking: VecDeque<Ticket>,
    alarms: BTreeSet<(Mono, Ticket)>,
    written: usize,
    waiting_bytes: usize,
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.by_ticket.len()
    }

    /// Calls written and not answered.
    pub(super) const fn written(&self) -> usize {
        self.written
    }

    /// Bytes of the calls not yet written.
    pub(super) const fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    pub(super) fn add(&mut self, ticket: Ticket, what: CallKind, expires: Option<Mono>, deadline: Mono) {
        self.waiting_bytes += what.len();
        let message = !matches!(what, CallKind::Admin(_) | CallKind::Resize(_));
        let call = Call {
            what,
            place: CallPlace::Waiting,
            expires,
            deadline,
            alarm: deadline,
            begun: false,
            cancelled: false,
        };
        let double = self.by_ticket.insert(ticket, call);
        assert!(double.is_none(), "a ticket names one call only");
        self.alarms.insert((deadline, ticket));
        let live = &self.by_ticket;
        let queue = if message { &mut self.waiting } else { &mut self.asking };
        if queue.len() > 2 * live.len() + 64 {
            queue.retain(|ticket| live.contains_key(ticket));
        }
        queue.push_back(ticket);
    }

    pub(super) fn find(&mut self, ticket: Ticket) -> Option<&mut Call> {
        self.by_ticket.get_mut(&ticket)
    }

    /// The next call to write, among them messages or not.
    pub(super) fn next_waiting(&mut self, messages: bool) -> Option<Ticket> {
        loop {
            let message = || if messages { self.waiting.pop_front() } else { None };
            let ticket = self.asking.pop_front().or_else(message)?;
            if self.by_ticket.contains_key(&ticket) {
                return Some(ticket);
            }
        }
    }

    /// The call goes out under `seq`. The core ends it itself at `alarm` if the broker does not.
    pub(super) fn wrote(&mut self, ticket: Ticket, seq: u32, alarm: Mono) {
        let Some(call) = self.by_ticket.get_mut(&ticket) else { return };
        self.waiting_bytes -= call.what.len();
        call.place = CallPlace::Written(seq);
        self.written += 1;
        self.alarms.remove(&(call.alarm, ticket));
        call.alarm = alarm;
        self.alarms.insert((alarm, ticket));
    }

    /// The call goes back among those that wait, at the place of its ticket.
    pub(super) fn unwrite(&mut self, ticket: Ticket) {
        if self.wait_again(ticket) {
            let at = self.waiting.partition_point(|other| *other < ticket);
            self.waiting.insert(at, ticket);
        }
    }

    /// The same for many: a lost connection may give back a hundred thousand, and they are put in order once.
    pub(super) fn unwrite_all(&mut self, tickets: &[Ticket]) {
        for ticket in tickets {
            if self.wait_again(*ticket) {
                self.waiting.push_back(*ticket);
            }
        }
        self.waiting.make_contiguous().sort_unstable();
    }

    fn wait_again(&mut self, ticket: Ticket) -> bool {
        let Some(call) = self.by_ticket.get_mut(&ticket) else { return false };
        self.waiting_bytes += call.what.len();
        call.place = CallPlace::Waiting;
        self.written -= 1;
        self.alarms.remove(&(call.alarm, ticket));
        call.alarm = call.deadline;
        self.alarms.insert((call.alarm, ticket));
        true
    }

    /// Takes out the calls that are written, with all that belongs to them.
    pub(super) fn split_written(&mut self) -> Self {
        let mut split = Self::default();
        for ticket in self.all_written() {
            if let Some(call) = self.end(ticket) {
                split.written += 1;
                split.alarms.insert((call.alarm, ticket));
                split.by_ticket.insert(ticket, call);
            }
        }
        split
    }

    /// Takes in a message that another connection gave back, at the place of its ticket.
    pub(super) fn adopt(&mut self, ticket: Ticket, mut call: Call) {
        call.place = CallPlace::Waiting;
        call.alarm = call.deadline;
        self.waiting_bytes += call.what.len();
        self.alarms.insert((call.alarm, ticket));
        let at = self.waiting.partition_point(|other| *other < ticket);
        self.waiting.insert(at, ticket);
        let double = self.by_ticket.insert(ticket, call);
        assert!(double.is_none(), "a ticket names one call only");
    }

    /// The call has ended.
    pub(super) fn end(&mut self, ticket: Ticket) -> Option<Call> {
        let call = self.by_ticket.remove(&ticket)?;
        self.alarms.remove(&(call.alarm, ticket));
        match call.place {
            CallPlace::Waiting => self.waiting_bytes -= call.what.len(),
            CallPlace::Written(_) => self.written -= 1,
        }
        Some(call)
    }

    /// The calls written and not answered, by ticket.
    pub(super) fn all_written(&self) -> Vec<Ticket> {
        let written = self.by_ticket.iter().filter(|(_, call)| call.place != CallPlace::Waiting);
        let mut tickets: Vec<Ticket> = written.map(|(ticket, _)| *ticket).collect();
        tickets.sort_unstable();
        tickets
    }

    /// Every call, by ticket.
    pub(super) fn all(&self) -> Vec<Ticket> {
        let mut tickets: Vec<Ticket> = self.by_ticket.keys().copied().collect();
        tickets.sort_unstable();
        tickets
    }

    pub(super) fn next_alarm(&self) -> Option<Mono> {
        self.alarms.first().map(|(at, _)| *at)
    }

    /// A call whose alarm has gone off.
    pub(super) fn overdue(&self, now: Mono) -> Option<Ticket> {
        self.alarms.first().filter(|(at, _)| *at <= now).map(|(_, ticket)| *ticket)
    }
}
