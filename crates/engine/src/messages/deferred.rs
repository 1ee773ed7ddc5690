//! Deferred work: long work in portions. Ending the requests of a lost caller is an example; after each portion there
//! is a pause for other inputs.

use std::collections::VecDeque;

use turno_proto::model::{Code, Mono, limits};

use crate::effect::Sink;
use crate::messages::Messages;
use crate::messages::drain::Drain;
use crate::messages::table::message::{Message, MessageEnd, MessageStage};

/// Steps that are still to be done, oldest first.
#[derive(Debug, Default)]
pub(super) struct DeferredWork {
    list: VecDeque<DeferredStep>,
    /// When the next portion is due.
    at: Mono,
}

/// Something to be done about one message, if it is still there by then.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeferredStep {
    pub(super) index: u32,
    pub(super) serial: u64,
    pub(super) what: DeferredAction,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum DeferredAction {
    /// Its caller is gone: it ends, and no worker gets it before.
    End,
    /// The broker drains: it goes back to its caller.
    TurnAway,
}

impl DeferredWork {
    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn push(&mut self, deferred_step: DeferredStep) {
        self.list.push_back(deferred_step);
    }

    /// The messages that are to end.
    pub(super) fn ends(&self) -> impl Iterator<Item = (u32, u64)> {
        self.list
            .iter()
            .filter(|deferred_step| matches!(deferred_step.what, DeferredAction::End))
            .map(|deferred_step| (deferred_step.index, deferred_step.serial))
    }

    pub(super) fn next_deadline(&self) -> Option<Mono> {
        (!self.is_empty()).then_some(self.at)
    }
}

impl Messages {
    /// A portion, if the pause after the last one is over.
    pub(super) fn go_on_with_deferred(&mut self, out: &mut impl Sink) {
        if self.deferred.next_deadline().is_some_and(|at| at <= self.now) {
            self.do_portion(out);
        }
    }

    /// A portion. Right after new ones were noted, so that few are done at once.
    pub(super) fn do_portion(&mut self, out: &mut impl Sink) {
        for _ in 0..self.settings.portion.get() {
            let Some(deferred_step) = self.deferred.list.pop_front() else { break };
            self.do_deferred_step(deferred_step, out);
        }
        if self.deferred.is_empty() {
            self.deferred.list = VecDeque::new();
        }
        self.deferred.at = self.now.plus_millis(limits::PORTION_PAUSE_MS);
    }

    fn do_deferred_step(&mut self, DeferredStep { index, serial, what }: DeferredStep, out: &mut impl Sink) {
        let waits = |message: &&Message| message.serial == serial && message.state == MessageStage::Waiting;
        let Some(&Message { attempts, origin, .. }) = self.messages.get(index).filter(waits) else { return };
        match what {
            DeferredAction::End => {
                self.unplace(index);
                self.finish(index, MessageEnd::Otherwise);
            }
            // Not if the maintenance is over meanwhile: what waits goes on.
            DeferredAction::TurnAway if self.drain.is_some() => {
                if let (Some(Drain::Running { returned, .. }), Some(_)) = (&mut self.drain, origin) {
                    *returned += 1;
                }
                self.unplace(index);
                // `closing` promises that nobody has begun with it, and its caller will start anew elsewhere.
                self.end_without_reply(index, if attempts > 0 { Code::CutShort } else { Code::Closing }, out);
            }
            DeferredAction::TurnAway => {}
        }
    }
}
