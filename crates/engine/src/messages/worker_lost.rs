//! Sends whose worker is lost: which losses count as an attempt, and when such a send is tried again.
//!
//! A lost connection says little about a message: the worker may have died of another delivery, or of itself before it
//! looked at any. So a loss counts as an attempt only where it can be pinned on one send:
//!
//! | the worker was lost | the send |
//! |---|---|
//! | with several deliveries | no attempt counts, a strike does; back to the head |
//! | with this one, right after it was handed out, and left bytes unread | no attempt counts; back to the head |
//! | with this one, after it had settled others | the attempt counts; back to the head |
//! | with this one, before it settled anything | free twice, then it counts; back to the head the first time, then behind the messages at hand, so that another one shows whether the worker works |
//!
//! A send with two strikes goes out alone: to a worker that holds nothing else, which gets nothing else before it settles
//! it. A lost link never counts. Requests have a limit of their own (S2.35) and are not judged here.
//!
//! A queue whose workers are lost in a row without settling anything puts the next ones on trial: one delivery at a time
//! until they settle one or have lived for a while, and after some losses only after a pause.

use std::collections::BTreeMap;

use turno_proto::model::{ConnId, Mono, limits};

use crate::effect::{HostEffect, Report, Sink};
use crate::messages::Messages;
use crate::messages::retry::AttemptFailure;
use crate::messages::table::chain::Lane;
use crate::messages::table::message::{Flags, MessageStage, Wants};
use crate::messages::workers::peer::Peer;

/// The earlier losses of a send's workers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Suspect {
    /// Losses that it shared with other deliveries.
    strikes: u8,
    /// Workers lost with it alone that had settled nothing.
    lost_alone: u8,
    /// It waits behind others the next time.
    steps_aside: bool,
}

/// How much a worker is trusted with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WorkerTrust {
    /// All its slots.
    #[default]
    Full,
    /// One delivery at a time.
    OneAtATime,
    /// Nothing before the pause is over.
    Paused,
}

/// Sends under suspicion and workers on trial.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// By message.
    suspects: BTreeMap<u32, Suspect>,
    /// When the trial of a worker enters its next phase.
    trials: BTreeMap<ConnId, Mono>,
}

impl Losses {
    /// Whether the send goes only to a worker that holds nothing else.
    #[inline]
    pub(super) fn goes_alone(&self, index: u32) -> bool {
        !self.suspects.is_empty() && self.strikes(index) >= limits::STRIKES_MAX
    }

    #[cold]
    #[inline(never)]
    fn strikes(&self, index: u32) -> u8 {
        self.suspects.get(&index).map_or(0, |suspect| suspect.strikes)
    }

    /// Another broker says that it goes alone.
    pub(super) fn mark_alone(&mut self, index: u32) {
        self.suspects.entry(index).or_default().strikes = limits::STRIKES_MAX;
    }

    /// The message is over, or a worker survived it.
    #[inline]
    pub(super) fn forget(&mut self, index: u32) {
        if !self.suspects.is_empty() {
            self.suspects.remove(&index);
        }
    }

    /// Whether it goes behind the messages at hand, this once.
    pub(super) fn steps_aside(&mut self, index: u32) -> bool {
        self.suspects.get_mut(&index).is_some_and(|suspect| std::mem::take(&mut suspect.steps_aside))
    }

    #[inline]
    pub(super) fn next_deadline(&self) -> Option<Mono> {
        if self.trials.is_empty() { None } else { self.trials.values().min().copied() }
    }
}

/// A worker's end, as evidence.
#[derive(Clone, Copy, Debug)]
struct Loss {
    several: bool,
    has_settled: bool,
    unread: bool,
    is_link: bool,
}

impl Messages {
    /// The worker closed its connection with bytes unread; its end follows.
    pub(crate) fn left_unread(&mut self, conn: ConnId) {
        if let Some(worker) = self.peers.get_mut(conn).and_then(|peer| peer.worker.as_deref_mut()) {
            worker.unread = true;
        }
    }

    /// The connection ended: what its worker held goes to others, in order. A worker that deregistered first gives back
    /// what it could not finish.
    pub(super) fn lose_deliveries(&mut self, conn: ConnId, out: &mut impl Sink) {
        let Some(worker) = self.peers.worker(conn) else { return };
        let deregistered = worker.leaving;
        let loss = Loss {
            several: worker.held.len() > 1,
            has_settled: worker.has_settled(),
            unread: worker.unread,
            is_link: worker.is_link,
        };
        if !deregistered && !loss.is_link && !loss.has_settled {
            self.note_loss(conn, out);
        }
        while let Some(newest) = self.peers.worker(conn).and_then(|worker| worker.held.back()) {
            if deregistered {
                self.give_back(newest, out);
            } else {
                let cause = self.judge(newest, loss);
                self.attempt_over(newest, cause, out);
            }
        }
    }

    /// Whether the loss of its worker counts as an attempt of that message.
    fn judge(&mut self, index: u32, loss: Loss) -> AttemptFailure {
        let message = &self.messages[index];
        let MessageStage::Held { age_ms, .. } = message.state else { return AttemptFailure::WorkerLost };
        if message.wants != Wants::Settling {
            return AttemptFailure::WorkerLost;
        }
        if loss.is_link {
            return AttemptFailure::NotPinned;
        }
        if loss.several {
            self.strike(index);
            return AttemptFailure::NotPinned;
        }
        let held_ms = self.now.millis_since(message.born.plus_millis(u64::from(age_ms)));
        if loss.unread && held_ms < limits::UNREAD_MS {
            return AttemptFailure::NotPinned;
        }
        // Its owner counts, and what came over a link waits nowhere here.
        if loss.has_settled || message.flags.has(Flags::FORWARDED) {
            return AttemptFailure::WorkerLost;
        }
        let suspect = self.losses.suspects.entry(index).or_default();
        suspect.steps_aside = suspect.lost_alone > 0;
        suspect.lost_alone = suspect.lost_alone.saturating_add(1);
        if suspect.lost_alone > limits::LOST_ALONE_FREE {
            AttemptFailure::WorkerLost
        } else {
            AttemptFailure::NotPinned
        }
    }

    /// A loss took the send together with others.
    pub(super) fn strike(&mut self, index: u32) {
        if self.messages[index].wants != Wants::Settling {
            return;
        }
        let suspect = self.losses.suspects.entry(index).or_default();
        suspect.strikes = suspect.strikes.saturating_add(1);
    }

    /// The send waits again as if it had not been handed out.
    pub(super) fn wait_uncounted(&mut self, index: u32) {
        let queue = self.messages[index].queue;
        self.release(index);
        self.messages[index].attempts -= 1;
        self.count(queue, |counters| &mut counters.returned);
        self.place_again(index);
    }

    /// A worker is lost that settled nothing: that counts in every queue of which it held a send.
    fn note_loss(&mut self, conn: ConnId, out: &mut impl Sink) {
        let held = self.peers.worker(conn).into_iter().flat_map(|worker| worker.held.iter(&self.messages, Lane::Place));
        let sends = held.map(|index| &self.messages[index]).filter(|message| message.wants == Wants::Settling);
        let mut queues: Vec<u32> = sends.map(|message| message.queue).collect();
        queues.sort_unstable();
        queues.dedup();
        for number in queues {
            let queue = self.queues.at_mut(number);
            queue.lost_in_a_row = queue.lost_in_a_row.saturating_add(1);
            let Some(beyond) = queue.lost_in_a_row.checked_sub(limits::LOSSES_MAX) else { continue };
            let wait_ms = (limits::LOSS_PAUSE_MS << beyond.min(16)).min(limits::LOSS_PAUSE_MS_MAX);
            queue.paused_until = self.now.plus_millis(wait_ms);
            if beyond == 0 || queue.lost_in_a_row.is_power_of_two() {
                let (queue, in_a_row) = (queue.name.clone(), queue.lost_in_a_row);
                out.host(HostEffect::Report(Report::WorkersLost { queue, in_a_row, wait_ms }));
            }
        }
    }

    /// The worker consumes the queue from now on: on trial, if others were lost there before it.
    pub(super) fn begin_trial(&mut self, conn: ConnId, queue: u32) {
        let (lost, until) = (self.queues.at(queue).lost_in_a_row, self.queues.at(queue).paused_until);
        let now = self.now;
        let worker = self.peers.worker_mut(conn);
        if lost < limits::TRIAL_LOSSES || worker.has_settled() || worker.is_link {
            return;
        }
        if until > now {
            worker.trust = WorkerTrust::Paused;
            let at = self.losses.trials.get(&conn).map_or(until, |at| until.max(*at));
            self.losses.trials.insert(conn, at);
        } else if worker.trust == WorkerTrust::Full {
            worker.trust = WorkerTrust::OneAtATime;
            self.losses.trials.insert(conn, now.plus_millis(limits::TRIAL_MS));
        }
        self.show_room(conn);
    }

    /// The worker settled something, or leaves its queues: its slots are its own again.
    #[cold]
    pub(super) fn end_trial(&mut self, conn: ConnId) {
        self.losses.trials.remove(&conn);
        self.peers.worker_mut(conn).trust = WorkerTrust::Full;
    }

    /// Pauses end, and trials of workers that lived long enough.
    pub(super) fn tick_trials(&mut self) {
        let now = self.now;
        if self.losses.next_deadline().is_none_or(|at| at > now) {
            return;
        }
        let due: Vec<ConnId> = self.losses.trials.iter().filter(|(_, at)| **at <= now).map(|(conn, _)| *conn).collect();
        for conn in due {
            let worker = self.peers.worker_mut(conn);
            if worker.trust == WorkerTrust::Paused {
                worker.trust = WorkerTrust::OneAtATime;
                self.losses.trials.insert(conn, now.plus_millis(limits::TRIAL_MS));
            } else {
                self.end_trial(conn);
            }
            self.offer(conn);
        }
    }

    /// The consumer that holds nothing and takes a send that goes alone, by its number.
    pub(super) fn pick_empty(&self, queue: u32, cost: u32) -> Option<u32> {
        let empty = |conn: &ConnId| {
            self.peers.worker(*conn).is_some_and(|worker| worker.held.is_empty()) && self.room_in(*conn, queue) >= cost
        };
        let worker = match self.queues.at(queue).reserved {
            Some(kept) => Some(kept).filter(empty),
            None => self.turns(queue).into_iter().find(empty),
        };
        worker.map(|worker| self.number_in(worker, queue))
    }

    /// Asserts that suspects are sends that go on, and that workers and trials agree.
    pub(super) fn check_losses(&self) {
        for index in self.losses.suspects.keys() {
            let message = self.messages.get(*index).expect("only a message that is there is under suspicion");
            assert!(message.wants == Wants::Settling, "only sends are under suspicion");
            assert!(message.state != MessageStage::Dead, "a dead letter is judged already");
        }
        let on_trial = |peer: &&Peer| peer.worker.as_deref().is_some_and(|worker| worker.trust != WorkerTrust::Full);
        let on_trial = self.peers.iter().filter(on_trial).map(|peer| peer.id);
        assert!(on_trial.eq(self.losses.trials.keys().copied()), "each trial has its worker, and its end");
        for worker in self.peers.iter().filter_map(|peer| peer.worker.as_deref()) {
            let holds = |index| worker.held.iter(&self.messages, Lane::Place).any(|held| held == index);
            assert!(worker.alone_with.is_none_or(holds), "a worker holds what it is alone with");
        }
    }
}
