//! A simulated worker: it settles deliveries well, badly, late or never.

use std::collections::BTreeMap;

use turno_client::core::{Core, CoreEvent, Handed, Held, Settlement};
use turno_proto::model::{Again, Code, Cost, MessageId, Mono, Payload, QueueName};

use crate::body;
use crate::oracle::{Oracle, SeenDelivery};
use crate::rng::Rng;

/// A worker's plan for a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkPlan {
    Answer,
    /// First a few pieces and a report of progress.
    Stream,
    Fail {
        again: Again,
    },
    /// Not before somebody makes it.
    Never,
}

#[derive(Clone, Copy, Debug)]
struct Job {
    id: MessageId,
    number: u64,
    cost: u32,
    manner: WorkPlan,
    wants_reply: bool,
    /// The token of a queue that is its own.
    token: Option<u64>,
    /// The link that it came over, until the worker was told to stop.
    link: Option<usize>,
}

/// Slots of a worker that dies of what it is given.
pub(crate) const FRAGILE_SLOTS: u32 = 2;

#[derive(Debug)]
pub(crate) struct Worker {
    slots: u32,
    /// It dies of what it is given, until the weather is over.
    is_fragile: bool,
    jobs: BTreeMap<Held, Job>,
    /// Never fails, hangs or dawdles.
    good: bool,
    /// It ignored CANCEL for so long that the broker counts its slots as free.
    overdue: bool,
    /// It takes no new work: what it has may go to others as if it had never had it.
    leaving: bool,
    /// Its broker has taken it, with all its queues.
    registered: bool,
    taken: u64,
}

impl Worker {
    pub(crate) const fn new(slots: u32, good: bool) -> Self {
        let jobs = BTreeMap::new();
        let (overdue, leaving, registered) = (false, false, false);
        Self { slots, is_fragile: false, jobs, good, overdue, leaving, registered, taken: 0 }
    }

    pub(crate) fn fragile() -> Self {
        Self { is_fragile: true, ..Self::new(FRAGILE_SLOTS, true) }
    }

    /// When it dies of what it was given, if it does.
    pub(crate) fn dies_of_it(&self, now: Mono, rng: &mut Rng) -> Option<Mono> {
        self.is_fragile.then(|| Mono::from_micros(now.as_micros() + rng.range(0, 5_000)))
    }

    /// Takes a delivery; returns when it will be done.
    pub(crate) fn take(
        &mut self,
        now: Mono,
        handed: &Handed,
        (life, link): (u64, Option<usize>),
        queues: &[QueueName],
        oracle: &mut Oracle,
        rng: &mut Rng,
    ) -> Option<Mono> {
        self.taken += 1;
        let number = body::number(body::raw(&handed.payload));
        let queue = queues.iter().position(|queue| *queue == handed.queue).expect("I4: work from a queue it consumes");
        // A broadcast takes no slots; if it wants no reply there is nothing to do.
        if handed.cost != Cost::Broadcast {
            let (delivery, attempt) = (handed.held.delivery(), handed.attempt);
            oracle.handed(number, SeenDelivery { queue, id: handed.id, life, delivery, attempt });
        } else if !handed.wants_reply {
            return None;
        }
        assert!(handed.deadline_ms != Some(0), "I4: handed out after its deadline");
        let manner = match rng.range(0, if self.good { 6 } else { 12 }) {
            0 => WorkPlan::Stream,
            6 => WorkPlan::Fail { again: Again::AsSet },
            7 => WorkPlan::Fail { again: if rng.once_in(2) { Again::Never } else { Again::AsSet } },
            8 if rng.once_in(3) => WorkPlan::Never,
            _ => WorkPlan::Answer,
        };
        let (number, cost) = (number.unwrap_or(0), u32::from(handed.cost.slots()));
        let job =
            Job { id: handed.id, number, cost, manner, wants_reply: handed.wants_reply, token: handed.token, link };
        assert!(self.jobs.insert(handed.held, job).is_none(), "I3: one delivery twice");
        if self.leaving {
            oracle.may_come_back(number, handed.id);
        }
        let held: u32 = self.jobs.values().map(|job| job.cost).sum();
        assert!(held <= self.slots || self.overdue, "I9: {held} of {} slots in use", self.slots);
        match manner {
            WorkPlan::Never => {
                self.overdue = true;
                None
            }
            _ if !self.good && rng.once_in(20) => Some(now.plus_millis(rng.range(1_000, 9_000))),
            _ => Some(Mono::from_micros(now.as_micros() + rng.range(0, 60_000))),
        }
    }

    /// The time for a delivery has come.
    pub(crate) fn finish(&mut self, core: &mut Core, held: Held, oracle: &mut Oracle) {
        let Some(job) = self.jobs.remove(&held) else { return };
        let settlement = match job.manner {
            WorkPlan::Fail { again } => Settlement::Fail { again, payload: Payload::body("no") },
            WorkPlan::Stream if job.wants_reply => {
                let piece = body::payload(job.number);
                core.piece(held, &piece);
                core.progress(held, &piece);
                Settlement::Reply(body::answer_payload(job.number, job.token))
            }
            _ if job.wants_reply => Settlement::Reply(body::answer_payload(job.number, job.token)),
            _ => Settlement::Ack,
        };
        let done = !matches!(settlement, Settlement::Fail { .. });
        if core.settle(held, settlement) && done {
            oracle.letters.done(job.id);
        }
    }

    /// The broker takes a delivery back: an honest worker stops and says so; a bad one goes on.
    pub(crate) fn stop(&mut self, core: &mut Core, event: &CoreEvent) {
        if let CoreEvent::CancelDelivery { held, reason } = event {
            if let Some(job) = self.jobs.get_mut(held) {
                job.link = None;
            }
            let gone = *reason == Code::ConnectionLost;
            // From then on the broker counts its slots as free.
            self.overdue |= *reason == Code::LeaseExpired && !self.good;
            if self.good || gone {
                self.jobs.remove(held);
                core.settle(*held, Settlement::Fail { again: Again::AsSet, payload: Payload::default() });
            }
        }
    }

    /// A new process: it holds nothing.
    pub(crate) fn start_over(&mut self) {
        self.jobs.clear();
        self.overdue = false;
        self.leaving = false;
        self.registered = false;
    }

    /// From now on it gives back what it does not finish.
    pub(crate) fn leaves(&mut self, oracle: &mut Oracle) {
        self.leaving = true;
        self.registered = false;
        for job in self.jobs.values() {
            oracle.may_come_back(job.number, job.id);
        }
    }

    /// The broker took it, or it has no broker.
    pub(crate) const fn set_registered(&mut self, registered: bool) {
        self.registered = registered;
    }

    pub(crate) const fn is_registered(&self) -> bool {
        self.registered
    }

    /// Something that came over that link, and that it was not told to stop.
    pub(crate) fn works_for(&self, link: usize) -> impl Iterator<Item = u64> {
        self.jobs.values().filter(move |job| job.link == Some(link)).map(|job| job.number)
    }

    pub(crate) fn number_of(&self, held: Held) -> Option<u64> {
        self.jobs.get(&held).map(|job| job.number)
    }

    /// It may miss its time to stop something.
    pub(crate) const fn oversleeps(&mut self) {
        self.overdue = true;
    }

    /// The weather is over: what it never meant to finish is finished.
    pub(crate) fn behave(&mut self) -> Vec<Held> {
        self.good = true;
        self.is_fragile = false;
        let hung: Vec<Held> =
            self.jobs.iter().filter(|(_, job)| job.manner == WorkPlan::Never).map(|(held, _)| *held).collect();
        for held in &hung {
            if let Some(job) = self.jobs.get_mut(held) {
                job.manner = WorkPlan::Answer;
            }
        }
        hung
    }

    /// Deliveries it got in all its lives.
    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.jobs.is_empty()
    }
}
