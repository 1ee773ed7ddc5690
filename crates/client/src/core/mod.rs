//! The client without its socket and clock: fail-over, greeting, heartbeat, calls, and a worker's registration.
//!
//! Its driver (the tokio driver, a simulator, a test) hands in connections, bytes and time by `handle_*`
//! and takes out bytes and [`CoreEvent`]s by `poll_*`. It keeps these promises:
//!
//! - Every call ends with exactly one event, at the latest one second after its own time-out.
//! - What was never written goes to the next broker. What was written ends with `connection_lost` when the
//!   connection goes, unless its caller said that doing it twice does no harm, or it is a send with a dedup id, which
//!   the broker stores once; what the broker gave back with
//!   `closing` was never worked on and goes to the next broker.
//! - A broker that closes is left at once: the calls it has, and the deliveries that came from it, stay with a second core
//!   ([`Core::leave_behind`]) until they end, everything else goes to the next broker.
//! - A worker is registered again on every new connection, with the slots that nothing of a closing broker takes. What settles
//!   a delivery of a connection that is gone is dropped. One that must have a queue to itself, does not stand by, and finds the queue another's ends.
//! - No byte from a broker makes it panic or keep more than has really arrived.

mod absence;
mod brokers;
mod calls;
mod claim;
mod draining;
mod event;
mod handles;
mod inbound;
mod link;
mod listening;
mod outbound;
mod seen;
#[cfg(test)]
mod tests;
mod worker_side;

use std::collections::VecDeque;

use turno_proto::model::{Code, Limits, Mono, Payload};
use turno_proto::native::{Closing, ClosingReason, Config, Connect, Frame, HEADER_LEN, VERSION};

use self::brokers::Brokers;
use self::calls::{Call, Calls};
use self::link::Link;
use self::listening::Listening;
use self::worker_side::WorkerSide;

pub use self::brokers::BROKERS_MAX;
pub use self::calls::CALLS_MAX;
pub(crate) use self::claim::taken;
pub use self::draining::Returned;
pub use self::event::{Ask, Claim, CoreEvent, Handed, Held, Registration, Settings, Settlement, Ticket};
pub use self::seen::Seen;

/// The pause after a whole fruitless round of brokers (S2.2). A connection counts as good after as long.
const REST_MS: u64 = 1_000;
/// How long after a call's deadline the broker may still answer before the core ends it.
const GUARD_MS: u64 = 1_000;
/// Bytes of a frame a broker may send before its CONFIG. Longer: given up.
const GREETING_BYTES_MAX: usize = 64 * 1024;
/// Bytes that a frame from the broker may have beyond the payload of the frame it was made from.
const FRAME_SLACK_BYTES: usize = 256;
/// Calls are written until so many bytes wait; the rest stays unwritten until these are taken.
const WRITE_BYTES: usize = 256 * 1024;

/// The state of the connection, named after the next expected event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A whole round was fruitless.
    Rest { until: Mono },
    /// The driver dials.
    ExpectConnection { by: Mono },
    /// CONNECT is out.
    ExpectConfig { by: Mono },
    /// The first PING is out.
    ExpectPong { by: Mono },
    /// Everything may happen.
    Open,
    /// The broker closes: nothing new goes to it, what it has may end.
    Leave { by: Option<Mono> },
    /// The core has ended; nothing more happens.
    Closed,
}

/// The client without I/O. See the module's page.
#[derive(Debug)]
pub struct Core {
    settings: Settings,
    brokers: Brokers,
    state: State,
    config: Config,
    link: Link,
    calls: Calls,
    duty: WorkerSide,
    listening: Listening,
    /// Some connection did all that was wanted of it, so later losses are never final.
    ready_once: bool,
    /// This core only waits for the calls that a closing broker has; another one goes on.
    left_behind: bool,
    /// Calls for that other one.
    returned: Vec<(Ticket, Call)>,
    events: VecDeque<CoreEvent>,
}

impl Core {
    /// Begins with dialling the first broker.
    ///
    /// # Panics
    ///
    /// If the settings name no broker.
    pub fn new(now: Mono, settings: Settings) -> Self {
        let mut core = Self {
            brokers: Brokers::new(settings.brokers.clone()),
            settings,
            state: State::Closed,
            config: config_before_any(),
            link: Link::new(0, now),
            calls: Calls::default(),
            duty: WorkerSide::default(),
            listening: Listening::default(),
            ready_once: false,
            left_behind: false,
            returned: Vec::new(),
            events: VecDeque::new(),
        };
        core.dial(now);
        core
    }

    /// The connection asked for by [`CoreEvent::Connect`] stands.
    pub fn handle_connected(&mut self, now: Mono) {
        let State::ExpectConnection { by } = self.state else { return };
        self.link.heard = now;
        self.state = State::ExpectConfig { by };
        let connect = Connect {
            version: VERSION,
            name: self.settings.name.clone(),
            program: self.settings.program.clone(),
            heartbeat_ms: self.settings.heartbeat_ms,
        };
        let seq = self.link.next_seq();
        self.link.write(&Frame::Connect { seq, connect });
    }

    /// The connection is gone, or could not be made.
    pub fn handle_disconnected(&mut self, now: Mono, reason: impl Into<String>) {
        match self.state {
            State::Rest { .. } | State::Closed => {}
            State::Leave { .. } if self.link_idle() => self.leave(now),
            _ => self.lose(now, reason.into()),
        }
    }

    /// The time of [`Core::next_deadline`] has come.
    pub fn handle_timeout(&mut self, now: Mono) {
        match self.state {
            State::Rest { until } if until <= now => self.dial(now),
            State::ExpectConnection { by } | State::ExpectConfig { by } | State::ExpectPong { by } if by <= now => {
                let reason = format!("no answer within {} ms", self.settings.connect_timeout_ms);
                self.lose(now, reason);
            }
            State::Leave { by: Some(by) } if by <= now => self.leave(now),
            State::Open | State::Leave { .. } => self.watch(now),
            _ => {}
        }
        while let Some(ticket) = self.calls.overdue(now) {
            self.expire(ticket);
        }
    }

    /// When [`Core::handle_timeout`] wants to be called next.
    pub fn next_deadline(&self) -> Option<Mono> {
        let of_state = match self.state {
            State::Rest { until: at }
            | State::ExpectConnection { by: at }
            | State::ExpectConfig { by: at }
            | State::ExpectPong { by: at } => Some(at),
            State::Open | State::Leave { by: None } => Some(self.ping_due().min(self.silent_at())),
            State::Leave { by: Some(by) } => Some(self.ping_due().min(self.silent_at()).min(by)),
            State::Closed => None,
        };
        let absent = if self.state == State::Open { self.link.absences.next() } else { None };
        [of_state, self.duty.deadline(), absent, self.calls.next_alarm()].into_iter().flatten().min()
    }

    /// Appends the bytes to write now. Calls whose bytes are taken count as written.
    pub fn poll_transmit(&mut self, now: Mono, out: &mut Vec<u8>) {
        if self.open() {
            self.write_calls(now, self.state == State::Open);
        }
        if !self.link.out.is_empty() {
            self.link.sent = now;
            if out.is_empty() {
                // The caller's buffer comes back empty next time: no byte is copied.
                std::mem::swap(out, &mut self.link.out);
            } else {
                out.append(&mut self.link.out);
            }
        }
        // Without another broker there is nowhere to go: this one hangs up when it ends.
        if matches!(self.state, State::Leave { .. }) && self.link_idle() && self.may_leave() {
            self.leave(now);
        }
    }

    /// Takes the next event, in order.
    pub fn poll_event(&mut self) -> Option<CoreEvent> {
        self.events.pop_front()
    }

    /// Ends: a worker deregisters without waiting for an answer (S0.40), the broker is told, calls end with
    /// `cancelled`. Bytes may be left to transmit; then drop the connection.
    pub fn close(&mut self, now: Mono) {
        if self.state == State::Closed {
            return;
        }
        if self.open() {
            self.deregister();
            // Said before the connection's end says it; work that may go on without its caller does.
            for ticket in self.calls.all_written() {
                if self.calls.find(ticket).is_some_and(|call| call.ends_with_connection()) {
                    self.cancel(ticket);
                }
            }
            self.link.write(&Frame::Closing { closing: Closing { reason: ClosingReason::Shutdown, within_ms: 0 } });
        }
        self.let_go(Code::Cancelled);
        for ticket in self.calls.all() {
            self.fail(ticket, Code::Cancelled, Payload::default());
        }
        self.stop_listening(Code::Cancelled);
        let out = if self.open() { std::mem::take(&mut self.link.out) } else { Vec::new() };
        self.new_link(now);
        self.link.out = out;
        self.state = State::Closed;
    }

    /// True after [`Core::close`], [`CoreEvent::GaveUp`] and [`CoreEvent::Replaced`].
    pub fn closed(&self) -> bool {
        self.state == State::Closed
    }

    /// The last CONFIG; before the first, what brokers usually say.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Bytes that wait to be written.
    pub fn unsent_bytes(&self) -> usize {
        self.link.out.len() + self.calls.waiting_bytes()
    }

    /// True once the greeting is done, until the connection is gone.
    fn open(&self) -> bool {
        matches!(self.state, State::Open | State::Leave { .. })
    }

    /// Nothing written waits for its end here.
    fn link_idle(&self) -> bool {
        self.calls.written() == 0 && self.link.held.is_empty() && self.link.out.is_empty()
    }

    fn dial(&mut self, now: Mono) {
        let address = self.brokers.dial();
        self.state = State::ExpectConnection { by: now.plus_millis(self.settings.connect_timeout_ms) };
        self.events.push_back(CoreEvent::Connect { address });
    }

    /// Heartbeat, silence, and a registration that is not answered.
    fn watch(&mut self, now: Mono) {
        if self.silent_at() <= now {
            let reason = format!("silent for {} ms", now.millis_since(self.link.heard));
            return self.lose(now, reason);
        }
        if self.duty.deadline().is_some_and(|by| by <= now) {
            return self.not_registered(now, Code::TimedOut, "no answer to REGISTER in time".to_owned());
        }
        self.ask_again(now);
        if self.ping_due() <= now {
            self.link.ping(now);
        }
    }

    /// A PING is due when this side wrote nothing for a heartbeat, or heard nothing: then it may be that the
    /// broker is alive and merely had nothing to say.
    fn ping_due(&self) -> Mono {
        let quiet = self.link.sent.min(self.link.heard);
        quiet.max(self.link.pinged).plus_millis(u64::from(self.config.heartbeat_ms))
    }

    fn silent_at(&self) -> Mono {
        self.link.heard.plus_millis(self.silence_ms())
    }

    /// After so long a silence either side takes the other for gone.
    fn silence_ms(&self) -> u64 {
        u64::from(self.config.heartbeat_ms) * u64::from(self.config.liveness)
    }

    /// The connection does all that is wanted of it.
    fn ready(&mut self, now: Mono) {
        self.ready_once = true;
        self.link.ready = Some(now);
    }

    /// The broker has nothing of ours any more and takes nothing: on to the next.
    fn leave(&mut self, now: Mono) {
        self.part(now, "the broker is closing".to_owned(), true);
    }

    /// The connection, or the attempt to make one, failed.
    fn lose(&mut self, now: Mono, reason: String) {
        self.part(now, reason, false);
    }

    fn part(&mut self, now: Mono, reason: String, flush: bool) {
        let address = self.brokers.current().clone();
        // A connection that breaks as soon as it stands proves nothing: else two brokers that greet and hang
        // up would be dialled in turns without a pause.
        if self.link.ready.is_some_and(|since| now.millis_since(since) >= REST_MS) {
            self.brokers.proved();
        }
        if self.link.ready.is_some() {
            self.duty.leaves_ghost(now.plus_millis(self.silence_ms()));
        }
        self.events.push_back(if self.open() {
            CoreEvent::Lost { address, reason: reason.clone() }
        } else {
            CoreEvent::Unreachable { address, reason: reason.clone() }
        });
        self.events.push_back(CoreEvent::Disconnect { flush });
        self.let_go(Code::ConnectionLost);
        let mut again = self.calls.all_written();
        again.retain(|ticket| {
            let may = self.calls.find(*ticket).is_some_and(|call| call.may_resend());
            if !may {
                self.fail(*ticket, Code::ConnectionLost, Payload::default());
            }
            may
        });
        if self.left_behind {
            return self.end_draining(now, &again);
        }
        self.calls.unwrite_all(&again);
        self.stop_strict_listening(Code::ConnectionLost);
        self.new_link(now);
        self.next_broker(now, reason);
    }

    fn next_broker(&mut self, now: Mono, reason: String) {
        if !self.brokers.pass(reason) {
            return self.dial(now);
        }
        let tried = self.brokers.end_round();
        if self.ready_once || self.settings.keep_trying {
            self.state = State::Rest { until: now.plus_millis(REST_MS) };
        } else {
            self.state = State::Closed;
            for ticket in self.calls.all() {
                self.fail(ticket, Code::CannotConnect, Payload::default());
            }
            self.stop_listening(Code::CannotConnect);
            self.events.push_back(CoreEvent::GaveUp { tried });
        }
    }

    fn new_link(&mut self, now: Mono) {
        self.link = Link::new(self.link.epoch + 1, now);
        self.duty.connection_gone();
    }

    /// Longest frame this side takes now.
    fn frame_bytes_max(&self) -> usize {
        match self.state {
            State::ExpectConfig { .. } => GREETING_BYTES_MAX,
            // Answers to admin calls are not bound by the limit on messages, which may be set very low.
            _ => self.message_bytes_max().max(Limits::default().frame_bytes_max) + FRAME_SLACK_BYTES,
        }
    }

    /// Longest frame the broker takes.
    fn message_bytes_max(&self) -> usize {
        usize::try_from(self.config.frame_bytes_max).unwrap_or(usize::MAX / 2).max(HEADER_LEN)
    }
}

fn config_before_any() -> Config {
    Config::of(&Limits::default())
}
