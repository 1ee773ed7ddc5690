//! A hand: a foreman's worker on its connection. Its slots are those of the worker's one account (see `peer`); here is
//! what it does with them, and how it stands among the hands that can be given something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use turno_proto::model::job::JobId;
use turno_proto::model::{ConnId, Mono, Slots};

use super::Jobs;
use super::handed::HandedIn;
use super::labels::Labels;
use crate::engine::Engine;
use crate::peer::Worker;

/// A hand.
#[derive(Debug, Default)]
pub(crate) struct Hand {
    /// It said HELLO.
    pub(crate) greeted: bool,
    /// What it is known by over its connections: its id, or else its name.
    pub(crate) key: Arc<str>,
    /// It gave an id.
    pub(crate) has_id: bool,
    pub(crate) name: Arc<str>,
    /// Slots it says it has; 0 once it is told to end. An admin may have lowered what it is given.
    pub(crate) procs: u32,
    /// What takes its slots, by job and place: what it runs or is offered, and what it was told to stop and has not let
    /// go of.
    pub(crate) held: BTreeMap<(JobId, u32), Held>,
    pub(crate) offer: Option<Offer>,
    /// CANCELs that are not answered: job, place, attempt.
    pub(crate) cancels: BTreeMap<u64, (JobId, u32, u32)>,
    /// STOPs that are not answered.
    pub(crate) stops: u32,
    /// It was told to end at once.
    pub(crate) ends_now: bool,
    /// It refused something, and is offered nothing until then.
    pub(crate) paused: Option<Mono>,
    /// Slots it said are free when it refused, if fewer than it should have.
    pub(crate) told_free: Option<u32>,
    /// What it has that others may not.
    pub(crate) labels: BTreeMap<String, String>,
    /// The pools that it is in beside the one of all.
    pub(crate) pools: Vec<Labels>,
    pub(crate) shown: Option<Place>,
}

/// What takes slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// The number of the task.
    pub(crate) task: u32,
    pub(crate) attempt: u32,
    pub(crate) slots: u16,
    /// What was handed in of it since it does not count as running any more.
    pub(crate) handed_in: HandedIn,
}

/// A JOB that is not answered.
#[derive(Debug)]
pub(crate) struct Offer {
    /// 0 as long as tasks are added.
    pub(crate) id: u64,
    /// Job, place, attempt.
    pub(crate) tasks: Vec<(JobId, u32, u32)>,
    pub(crate) bytes: usize,
}

/// How a hand stands among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) room: u32,
    pub(crate) slots: u32,
    pub(crate) turn: u64,
}

/// All hands.
#[derive(Debug, Default)]
pub(crate) struct Hands {
    pub(crate) by_conn: BTreeMap<ConnId, Hand>,
    /// By their id.
    pub(crate) by_key: BTreeMap<Arc<str>, ConnId>,
}

impl Hands {
    pub(crate) fn get(&self, conn: ConnId) -> Option<&Hand> {
        self.by_conn.get(&conn)
    }

    pub(crate) fn get_mut(&mut self, conn: ConnId) -> Option<&mut Hand> {
        self.by_conn.get_mut(&conn)
    }
}

impl Jobs {
    /// A hand stands there from now on, in all pools that it is in.
    fn show(&mut self, conn: ConnId, place: Option<Place>) {
        let Some(hand) = self.hands.by_conn.get_mut(&conn) else { return };
        if hand.shown != place {
            let before = std::mem::replace(&mut hand.shown, place);
            self.pools.show(conn, &hand.pools, before, place);
        }
    }

    pub(crate) fn hide(&mut self, conn: ConnId) {
        self.show(conn, None);
    }

    /// A hand has these labels from now on. It is hidden until it is shown again.
    pub(crate) fn label(&mut self, conn: ConnId, labels: BTreeMap<String, String>) {
        if self.hands.get(conn).is_none_or(|hand| hand.labels == labels) {
            return;
        }
        self.hide(conn);
        let pools = self.pools.of_hand(&labels);
        if let Some(hand) = self.hands.get_mut(conn) {
            (hand.labels, hand.pools) = (labels, pools);
        }
    }
}

/// Whether it takes part at all, full or not.
fn takes_part(hand: &Hand, worker: &Worker) -> bool {
    hand.greeted && hand.stops == 0 && !hand.ends_now && worker.takes_work()
}

impl Engine {
    /// What a hand could be offered now.
    pub(crate) fn hand_room(&self, conn: ConnId) -> u32 {
        let Some((hand, worker)) = self.hand_and_worker(conn) else { return 0 };
        if takes_part(hand, worker) { self.room_of(hand, worker) } else { 0 }
    }

    fn hand_and_worker(&self, conn: ConnId) -> Option<(&Hand, &Worker)> {
        Some((self.jobs.hands.get(conn)?, self.peers.worker(conn)?))
    }

    /// The same of one that takes part.
    fn room_of(&self, hand: &Hand, worker: &Worker) -> u32 {
        let answered = hand.offer.as_ref().is_none_or(|offer| offer.id == 0 && offer.has_room());
        // A worker that is kept free for a costly message is so for tasks, too.
        let kept = worker.twin.and_then(|twin| self.peers.worker(twin)?.reserved_for).is_some();
        if kept || hand.paused.is_some() || !answered {
            return 0;
        }
        hand.told_free.unwrap_or(u32::MAX).min(worker.room())
    }

    /// Whether it takes part at all, full or not.
    pub(crate) fn is_open(&self, conn: ConnId) -> bool {
        self.hand_and_worker(conn).is_some_and(|(hand, worker)| takes_part(hand, worker))
    }

    /// Shows how the hand stands now, wherever hands are looked for.
    pub(crate) fn show_hand(&mut self, conn: ConnId) {
        if !self.jobs.is_hand(conn) {
            return;
        }
        let open = self.hand_and_worker(conn).filter(|(hand, worker)| takes_part(hand, worker));
        let place = open.map(|(hand, worker)| {
            let kept = self.jobs.reserved.is_some_and(|(_, hand)| hand == conn);
            let slots = if worker.slots == Slots::Unlimited { u32::MAX } else { worker.slots.as_count() };
            Place { room: if kept { 0 } else { self.room_of(hand, worker) }, slots, turn: worker.turn }
        });
        self.jobs.show(conn, place);
        self.jobs.due = true;
    }

    /// What takes slots of the hand under that name does so no longer. Returns whether it did.
    pub(crate) fn let_go(&mut self, conn: ConnId, task: (JobId, u32)) -> bool {
        let Some(held) = self.jobs.hands.get_mut(conn).and_then(|hand| hand.held.remove(&task)) else { return false };
        let worker = self.peers.worker_mut(conn);
        worker.give_back(held.slots);
        let twin = worker.twin;
        self.show_hand(conn);
        if let Some(twin) = twin {
            self.twin_gave(twin, held.slots);
        }
        self.may_start_again(task);
        true
    }

    /// Tasks of a job that take slots somewhere.
    pub(crate) fn held_places(&self, id: JobId) -> BTreeSet<u32> {
        let hands = self.jobs.hands.by_conn.values();
        hands.flat_map(|hand| hand.held.range((id, 0)..=(id, u32::MAX))).map(|((_, place), _)| *place).collect()
    }

    /// Nobody has an earlier attempt of the task any more.
    pub(crate) fn may_start_again(&mut self, (id, place): (JobId, u32)) {
        if let Some(job) = self.jobs.all.get_mut(&id)
            && job.leaving.remove(&place)
        {
            job.waiting.insert(place);
            self.jobs.refresh(id);
        }
    }
}
