//! A hand: a foreman's worker on its connection. Its slots are those of the worker's one account (see `peer`); here is
//! what it does with them, and how it stands among the hands that can be given something.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use turno_proto::model::job::JobId;
use turno_proto::model::{ConnId, Mono, Slots};

use super::Jobs;
use super::context::Context;
use super::handed::HandedIn;
use super::labels::Labels;
use crate::messages::workers::peer::{Peers, Worker};

/// A hand.
#[derive(Debug, Default)]
pub(super) struct Hand {
    /// It said HELLO.
    pub(super) greeted: bool,
    /// What it is known by over its connections: its id, or else its name.
    pub(super) key: Arc<str>,
    /// It gave an id.
    pub(super) has_id: bool,
    pub(super) name: Arc<str>,
    /// Slots it says it has; 0 once it is told to end. An admin may have lowered what it is given.
    pub(super) procs: u32,
    /// What takes its slots, by job and place: what it runs or is offered, and what it was told to stop and has not let
    /// go of.
    pub(super) held: BTreeMap<(JobId, u32), Held>,
    pub(super) offer: Option<Offer>,
    /// CANCELs that are not answered: job, place, attempt.
    pub(super) cancels: BTreeMap<u64, (JobId, u32, u32)>,
    /// STOPs that are not answered.
    pub(super) stops: u32,
    /// It was told to end at once.
    pub(super) ends_now: bool,
    /// It refused something, and is offered nothing until then.
    pub(super) paused: Option<Mono>,
    /// Slots it said are free when it refused, if fewer than it should have.
    pub(super) told_free: Option<u32>,
    /// What it has that others may not.
    pub(super) labels: BTreeMap<String, String>,
    /// The pools that it is in beside the one of all.
    pub(super) pools: Vec<Labels>,
    pub(super) shown: Option<Place>,
}

/// What takes slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Held {
    /// The number of the task.
    pub(super) task: u32,
    pub(super) attempt: u32,
    pub(super) slots: u16,
    /// What was handed in of it since it does not count as running any more.
    pub(super) handed_in: HandedIn,
}

/// A JOB that is not answered.
#[derive(Debug)]
pub(super) struct Offer {
    /// 0 as long as tasks are added.
    pub(super) id: u64,
    /// Job, place, attempt.
    pub(super) tasks: Vec<(JobId, u32, u32)>,
    pub(super) bytes: usize,
}

/// How a hand stands among the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) room: u32,
    pub(super) slots: u32,
    pub(super) turn: u64,
}

/// All hands.
#[derive(Debug, Default)]
pub(super) struct Hands {
    pub(super) by_conn: BTreeMap<ConnId, Hand>,
    /// By their id.
    pub(super) by_key: BTreeMap<Arc<str>, ConnId>,
}

impl Hands {
    pub(super) fn get(&self, conn: ConnId) -> Option<&Hand> {
        self.by_conn.get(&conn)
    }

    pub(super) fn get_mut(&mut self, conn: ConnId) -> Option<&mut Hand> {
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

    pub(super) fn hide(&mut self, conn: ConnId) {
        self.show(conn, None);
    }

    /// A hand has these labels from now on. It is hidden until it is shown again.
    pub(super) fn label(&mut self, conn: ConnId, labels: BTreeMap<String, String>) {
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

/// What one that takes part could be offered now.
fn room_of(peers: &Peers, hand: &Hand, worker: &Worker) -> u32 {
    let answered = hand.offer.as_ref().is_none_or(|offer| offer.id == 0 && offer.has_room());
    // A worker that is kept free for a costly message is so for tasks, too.
    let kept = worker.twin().and_then(|twin| peers.worker(twin)).is_some_and(Worker::is_reserved);
    if kept || hand.paused.is_some() || !answered {
        return 0;
    }
    hand.told_free.unwrap_or(u32::MAX).min(worker.room())
}

impl Jobs {
    /// What a hand could be offered now.
    pub(super) fn hand_room(&self, peers: &Peers, conn: ConnId) -> u32 {
        let Some((hand, worker)) = self.hand_and_worker(peers, conn) else { return 0 };
        if takes_part(hand, worker) { room_of(peers, hand, worker) } else { 0 }
    }

    fn hand_and_worker<'a>(&'a self, peers: &'a Peers, conn: ConnId) -> Option<(&'a Hand, &'a Worker)> {
        Some((self.hands.get(conn)?, peers.worker(conn)?))
    }

    /// Whether it takes part at all, full or not.
    pub(super) fn is_open(&self, peers: &Peers, conn: ConnId) -> bool {
        self.hand_and_worker(peers, conn).is_some_and(|(hand, worker)| takes_part(hand, worker))
    }

    /// Shows how the hand stands now, wherever hands are looked for.
    pub(super) fn show_hand(&mut self, cx: &mut Context<'_>, conn: ConnId) {
        if !self.is_hand(conn) {
            return;
        }
        let open = self.hand_and_worker(cx.peers(), conn).filter(|(hand, worker)| takes_part(hand, worker));
        let place = open.map(|(hand, worker)| {
            let kept = self.reserved.is_some_and(|(_, hand)| hand == conn);
            let slots = if worker.slots() == Slots::Unlimited { u32::MAX } else { worker.slots().as_count() };
            Place { room: if kept { 0 } else { room_of(cx.peers(), hand, worker) }, slots, turn: worker.turn() }
        });
        self.show(conn, place);
        self.due = true;
    }

    /// What takes slots of the hand under that name does so no longer. Returns whether it did.
    pub(super) fn let_go(&mut self, cx: &mut Context<'_>, conn: ConnId, task: (JobId, u32)) -> bool {
        let Some(held) = self.hands.get_mut(conn).and_then(|hand| hand.held.remove(&task)) else { return false };
        cx.give_back(conn, held.slots);
        self.show_hand(cx, conn);
        self.may_start_again(task);
        true
    }

    /// Tasks of a job that take slots somewhere.
    pub(super) fn held_places(&self, id: JobId) -> BTreeSet<u32> {
        let hands = self.hands.by_conn.values();
        hands.flat_map(|hand| hand.held.range((id, 0)..=(id, u32::MAX))).map(|((_, place), _)| *place).collect()
    }

    /// Nobody has an earlier attempt of the task any more.
    pub(super) fn may_start_again(&mut self, (id, place): (JobId, u32)) {
        if let Some(job) = self.all.get_mut(&id)
            && job.leaving.remove(&place)
        {
            job.waiting.insert(place);
            self.refresh(id);
        }
    }
}
