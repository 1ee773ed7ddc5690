//! Dropping of a worker from a queue after expired deliveries, and its probation (S2.29 to S2.32).
//!
//! Two things count as expired: a request whose deadline passed while the worker had it, and a lease that ran out.
//! Both say the same of a worker: it had the time, and said nothing. What expires in the backlog says nothing about
//! anyone, and neither does a request of whose time the backlog took more than half: else a queue under overload would
//! lose the workers that it needs most. Any settlement in time clears the worker, FAIL too: it shows that
//! somebody works there. A late one does not.
//!
//! A dropped worker keeps its connection, its other queues and what it holds. When it consumes the queue again it gets
//! one delivery at a time, a probe, until it settles one in time; if a probe expires, it is dropped again. A probing
//! worker stands in the queue's own rota even if it has a shared rota, because it has other room there than in the others.

use std::collections::BTreeMap;

use turno_proto::model::view::{self, ConsumerView, StandingState, StandingView};
use turno_proto::model::{Code, ConnId, Mono, Token, WorkerId, limits};

use crate::effect::{NativeEffect, PeerEffect, Sink};
use crate::messages::Messages;
use crate::messages::table::chain::Lane;
use crate::messages::worker_lost::WorkerTrust;
use crate::messages::workers::peer::{Consuming, Worker};
use crate::settings::Settings;

/// The expired deliveries of a worker in one queue, and their consequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::messages) struct Standing {
    /// Deliveries in a row.
    expired: u32,
    /// How the last of them expired.
    reason: Code,
    place: DropState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DropState {
    /// A consumer like others.
    Consumer,
    Dropped {
        at: Mono,
    },
    /// A consumer of one delivery at a time: this one, if it has it.
    Probing {
        dropped: Mono,
        probe: Option<u32>,
    },
}

/// The standings of a worker, by queue. Nearly always none.
#[derive(Debug, Default)]
pub(in crate::messages) struct Standings(BTreeMap<u32, Standing>);

impl Standings {
    pub(in crate::messages) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Out of the way of those against whom nothing counts.
    #[cold]
    #[inline(never)]
    fn place(&self, queue: u32) -> Option<DropState> {
        self.0.get(&queue).map(|standing| standing.place)
    }

    pub(in crate::messages) fn is_probing(&self, queue: u32) -> bool {
        !self.is_empty() && matches!(self.place(queue), Some(DropState::Probing { .. }))
    }

    /// The worker has its probe, so it gets nothing more.
    pub(in crate::messages) fn has_probe(&self, queue: u32) -> bool {
        !self.is_empty() && matches!(self.place(queue), Some(DropState::Probing { probe: Some(_), .. }))
    }

    /// The queues in which it gets one delivery at a time.
    pub(in crate::messages) fn probing(&self) -> impl Iterator<Item = u32> {
        self.0
            .iter()
            .filter(|(_, standing)| matches!(standing.place, DropState::Probing { .. }))
            .map(|(queue, _)| *queue)
    }

    /// The worker was handed a message: if it is on probation there, this is its probe.
    #[cold]
    #[inline(never)]
    pub(in crate::messages) fn handed(&mut self, queue: u32, index: u32) {
        if let Some(Standing { place: DropState::Probing { probe, .. }, .. }) = self.0.get_mut(&queue) {
            *probe = Some(index);
        }
    }

    /// The worker has that message no more: if it was its probe, there may be another.
    #[cold]
    #[inline(never)]
    pub(in crate::messages) fn released(&mut self, queue: u32, index: u32) {
        if let Some(Standing { place: DropState::Probing { probe, .. }, .. }) = self.0.get_mut(&queue) {
            probe.take_if(|probe| *probe == index);
        }
    }

    /// The worker takes no more part in the queue by its own wish. That alone does not clear it.
    pub(crate) fn left(&mut self, queue: u32) {
        match self.0.get_mut(&queue).map(|standing| &mut standing.place) {
            Some(DropState::Consumer) => drop(self.0.remove(&queue)),
            Some(place) => {
                if let DropState::Probing { dropped, .. } = *place {
                    *place = DropState::Dropped { at: dropped };
                }
            }
            None => {}
        }
    }

    /// The worker has no handle of that queue any more, and may never hear of it again.
    pub(in crate::messages) fn forget_dropped(&mut self, queue: u32) {
        if matches!(self.place(queue), Some(DropState::Dropped { .. })) {
            self.0.remove(&queue);
        }
    }

    pub(in crate::messages) fn clear(&mut self) {
        self.0.clear();
    }

    /// Whether queues and places fit: it consumes all that it was not dropped from, and `holds` its probes.
    pub(crate) fn check(&self, consumes: impl Fn(u32) -> bool, holds: impl Fn(u32) -> bool) {
        for (queue, standing) in &self.0 {
            let dropped = matches!(standing.place, DropState::Dropped { .. });
            assert_eq!(dropped, !consumes(*queue), "a worker consumes what it was not dropped from");
            if let DropState::Probing { probe: Some(probe), .. } = standing.place {
                assert!(holds(probe), "a worker holds its probe");
            }
        }
    }

    fn view(&self, queue: u32, settings: &Settings) -> Option<view::Standing> {
        let standing = self.0.get(&queue)?;
        let (state, dropped) = match standing.place {
            DropState::Consumer => (StandingState::Suspect, None),
            DropState::Dropped { at } => (StandingState::Dropped, Some(at)),
            DropState::Probing { dropped, .. } => (StandingState::Probing, Some(dropped)),
        };
        Some(view::Standing {
            state,
            expired: standing.expired,
            dropped_at: dropped.map(|at| settings.moment(at)),
            reason: Some(standing.reason.name().to_owned()),
        })
    }
}

/// A worker on trial because others were lost before it; see `losses`.
fn on_trial(worker: &Worker) -> Option<view::Standing> {
    let reason = Some(Code::WorkerLost.name().to_owned());
    let standing = view::Standing { state: StandingState::Probing, reason, ..view::Standing::default() };
    (worker.trust != WorkerTrust::Full).then_some(standing)
}

impl Messages {
    /// Deliveries in a row that expire at a worker until it is dropped from the queue; 0: it never is.
    pub(in crate::messages) fn drop_after(&self, queue: u32) -> u16 {
        let own = self.queues.at(queue).settings().and_then(|settings| settings.drop_after);
        own.unwrap_or(self.settings.drop_after)
    }

    /// A delivery expired at its worker, which still has it.
    pub(in crate::messages) fn expired_at(&mut self, conn: ConnId, index: u32, reason: Code, out: &mut impl Sink) {
        let queue = self.messages[index].queue;
        let drop_after = self.drop_after(queue);
        let Some(record) = self.peers.get_mut(conn).and_then(|peer| peer.worker.as_deref_mut()) else { return };
        let Ok(at) = record.position_of(queue) else { return };
        if drop_after == 0 {
            return;
        }
        let fresh = Standing { expired: 0, reason, place: DropState::Consumer };
        let standing = record.standings.0.entry(queue).or_insert(fresh);
        let out_of_patience = match standing.place {
            DropState::Probing { probe, .. } if probe != Some(index) => return,
            DropState::Probing { .. } => true,
            DropState::Consumer | DropState::Dropped { .. } => standing.expired + 1 >= u32::from(drop_after),
        };
        standing.expired += 1;
        standing.reason = reason;
        if out_of_patience {
            self.drop_from_queue(conn, at, out);
        }
    }

    /// The worker gets nothing more from the queue until it asks for it, and is told so.
    fn drop_from_queue(&mut self, conn: ConnId, at: usize, out: &mut impl Sink) {
        let record = self.peers.worker_mut(conn);
        let consuming = record.consumes.remove(at);
        record.dropped += 1;
        let Consuming { queue, number } = consuming;
        let handle = self.queues.at(queue).consumer(number).handle;
        self.leave_turns(conn, consuming);
        if let Some(standing) = self.peers.worker_mut(conn).standings.0.get_mut(&queue) {
            standing.place = DropState::Dropped { at: self.now };
        }
        self.count(queue, |counters| &mut counters.dropped);
        self.leave(conn, consuming);
        out.peer(PeerEffect::Native { conn, effect: NativeEffect::CancelQueue { handle, reason: Code::Dropped } });
    }

    /// The worker consumes the queue from now on: on probation, if it was dropped before.
    pub(in crate::messages) fn comes_back(&mut self, conn: ConnId, queue: u32) {
        let forgiving = self.drop_after(queue) == 0;
        let standings = &mut self.peers.worker_mut(conn).standings;
        if let Some(standing) = standings.0.get_mut(&queue)
            && let DropState::Dropped { at } = standing.place
        {
            if forgiving {
                standings.0.remove(&queue);
            } else {
                standing.place = DropState::Probing { dropped: at, probe: None };
            }
        }
    }

    /// The worker settled a delivery in time, and still has it: nothing counts against it in that queue any more.
    #[cold]
    pub(in crate::messages) fn clear_standing(&mut self, conn: ConnId, index: u32) {
        let queue = self.messages[index].queue;
        let record = self.peers.worker_mut(conn);
        match record.standings.place(queue) {
            Some(DropState::Consumer) => drop(record.standings.0.remove(&queue)),
            Some(DropState::Probing { probe: Some(probe), .. }) if probe == index => {
                let at = record.position_of(queue).expect("a worker on probation consumes the queue");
                let consuming = record.consumes[at];
                self.leave_turns(conn, consuming);
                self.peers.worker_mut(conn).standings.0.remove(&queue);
                self.join_turns(conn, consuming);
            }
            // Deliveries from before it was dropped prove nothing.
            Some(DropState::Probing { .. } | DropState::Dropped { .. }) | None => {}
        }
    }

    /// The worker's queue that is next in its round and in which something waits, but none whose probe it has.
    #[cold]
    pub(in crate::messages) fn next_waiting_but_probes(&self, record: &Worker) -> Option<u32> {
        let round = record.round.at();
        let may_have = |queue: &u32| !self.queues.at(*queue).backlog.is_empty() && !record.standings.has_probe(*queue);
        if let Some(seat) = record.shared_rota {
            // A shared rota knows nothing of its members' probes: one message each, so they starve nobody.
            let probe = record.standings.probing().find(may_have);
            return probe.or_else(|| self.shared_rotas[seat.shared_rota].next_waiting(round));
        }
        let (before, after) = record.consumes.split_at(record.consumes.partition_point(|at| at.queue < round));
        after.iter().chain(before).map(|consuming| consuming.queue).find(may_have)
    }

    /// The room of a worker with a shared rota, shown where it stands by itself; `to_bottom`: it goes to the bottom there, too.
    #[cold]
    pub(in crate::messages) fn show_on_probation(&mut self, worker: ConnId, room: u32, to_bottom: bool) {
        let record = &*self.peers.worker_mut(worker);
        let has_links = !self.links.is_empty();
        for Consuming { queue, number } in record.on_probation() {
            let place = self.queues.at_mut(queue);
            place.rota.show(number, record.shown(room, queue), to_bottom);
            // An offer of its shared rota's queues does not include this queue.
            if has_links {
                self.links.queue_changed(&place.name);
            }
        }
    }

    /// How a worker that consumes the queue, or did, stands there.
    pub(in crate::messages) fn consumer_view(
        &self,
        worker: &Worker,
        queue: u32,
        turn: Option<u64>,
        waits: Option<u64>,
    ) -> ConsumerView {
        let held = worker.held.iter(&self.messages, Lane::Place);
        let standing = worker.standings.view(queue, &self.settings).or_else(|| on_trial(worker));
        ConsumerView {
            turn,
            worker: WorkerId(worker.id),
            name: worker.name.clone(),
            slots: worker.slots,
            used: worker.used(),
            free: worker.slots.free(worker.used()),
            in_flight: held.filter(|index| self.messages[*index].queue == queue).count() as u64,
            // One that was dropped has the queue no more, though nobody else has it before all is settled.
            token: turn.and_then(|_| self.queues.at(queue).token()).map(Token),
            waits,
            standing: standing.unwrap_or_else(|| {
                let state = if waits.is_some() { StandingState::Standby } else { StandingState::Consuming };
                view::Standing { state, ..view::Standing::default() }
            }),
        }
    }

    /// The workers that were dropped from a queue and did not come back yet.
    pub(in crate::messages) fn dropped(&self, queue: u32) -> impl Iterator<Item = &Worker> {
        let workers = self.peers.workers(0).filter_map(|conn| self.peers.worker(conn));
        workers.filter(move |worker| matches!(worker.standings.place(queue), Some(DropState::Dropped { .. })))
    }

    pub(in crate::messages) fn dropped_from(&self, queue: u32) -> u64 {
        self.dropped(queue).count() as u64
    }

    /// The standings of a worker in its queues, the first of them.
    pub(in crate::messages) fn standing_views(&self, worker: &Worker) -> Vec<StandingView> {
        let queues = worker.standings.0.keys().take(limits::VIEW_MESSAGES_MAX);
        let views = queues.filter_map(|queue| {
            let name = self.queues.at(*queue).name.to_string();
            Some(StandingView { queue: name, standing: worker.standings.view(*queue, &self.settings)? })
        });
        views.collect()
    }
}
