//! Any order of what workers, admins, the disk and the clock do, against a model that only watches.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use turno_proto::model::ConnId;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{After, AfterWhen, JobId, JobSpec, TaskState};

use super::farm::{Farm, Said, job, labels, retried};
use super::property_pair::Pair;

pub(super) const SLOTS: [u16; 4] = [3, 2, 1, 2];

/// Labels of jobs and of job workers: the last job workers have none.
const LABELS: [&[(&str, &str)]; 3] = [&[], &[("gpu", "yes")], &[("gpu", "yes"), ("pool", "p")]];

#[derive(Clone, Debug)]
pub(super) enum Op {
    Submit {
        count: u32,
        slots: u16,
        retries: u8,
        max: Option<u32>,
        failures: Option<u32>,
        priority: u8,
        after: Option<AfterWhen>,
        needs: usize,
    },
    /// HELLO, over a new connection if there is none; honest, without what it runs, or with nonsense.
    Hello {
        worker: usize,
        lie: u8,
        attempts: bool,
    },
    /// An answer to a JOB: honest, or a refusal out of a whim.
    Answer {
        worker: usize,
        refuse: bool,
    },
    /// A task of the job worker ends.
    End {
        worker: usize,
        pick: usize,
        success: bool,
    },
    /// An answer to a CANCEL.
    Stop {
        worker: usize,
    },
    /// The connection is lost; what was offered may have begun.
    Lose {
        worker: usize,
        begun: bool,
    },
    Cancel {
        job: usize,
        first: u32,
        last: u32,
    },
    Retry {
        job: usize,
        tasks: Option<(u32, u32)>,
    },
    Hold {
        job: usize,
        hold: bool,
    },
    Wait {
        job: usize,
    },
    Rm {
        job: usize,
    },
    /// The native connection of the first job worker comes or goes, is asked something, or replies.
    Pair {
        what: u8,
    },
    Store {
        groups: usize,
    },
    Refuse,
    Pass {
        ms: u64,
    },
    /// The broker ends; that many groups were stored unheard.
    Restart {
        unheard: usize,
        begun: bool,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let worker = || 0..SLOTS.len();
    let when = prop_oneof![Just(AfterWhen::Ok), Just(AfterWhen::Any), Just(AfterWhen::Failed)];
    let limits = (prop::option::of(1u32..4), prop::option::weighted(0.3, 0u32..3));
    let tasks = prop::option::of((0u32..8, 0u32..8).prop_map(|(first, more)| (first, first + more)));
    prop_oneof![
        2 => (1u32..8, 1u16..4, 0u8..3, limits, 3u8..6, prop::option::weighted(0.3, when), 0usize..5).prop_map(
            |(count, slots, retries, (max, failures), priority, after, needs)| {
                Op::Submit { count, slots, retries, max, failures, priority, after, needs }
            }
        ),
        6 => (worker(), 0u8..12, any::<bool>()).prop_map(|(worker, lie, attempts)| Op::Hello { worker, lie, attempts }),
        12 => (worker(), prop::bool::weighted(0.15)).prop_map(|(worker, refuse)| Op::Answer { worker, refuse }),
        12 => (worker(), 0usize..4, prop::bool::weighted(0.7))
            .prop_map(|(worker, pick, success)| Op::End { worker, pick, success }),
        4 => worker().prop_map(|worker| Op::Stop { worker }),
        2 => (worker(), any::<bool>()).prop_map(|(worker, begun)| Op::Lose { worker, begun }),
        2 => (0usize..6, 0u32..8, 0u32..8)
            .prop_map(|(job, first, more)| Op::Cancel { job, first, last: first + more }),
        3 => (0usize..6, tasks).prop_map(|(job, tasks)| Op::Retry { job, tasks }),
        1 => (0usize..6, any::<bool>()).prop_map(|(job, hold)| Op::Hold { job, hold }),
        1 => (0usize..6).prop_map(|job| Op::Wait { job }),
        2 => (0usize..6).prop_map(|job| Op::Rm { job }),
        6 => (0u8..8).prop_map(|what| Op::Pair { what }),
        14 => (1usize..5).prop_map(|groups| Op::Store { groups }),
        1 => Just(Op::Refuse),
        4 => prop_oneof![0u64..900, 900u64..7_000, Just(61_000u64)].prop_map(|ms| Op::Pass { ms }),
        1 => (0usize..4, any::<bool>()).prop_map(|(unheard, begun)| Op::Restart { unheard, begun }),
    ]
}

/// A worker that does what document 004 asks of it, unless it lies.
#[derive(Default)]
pub(super) struct JobWorker {
    conn: Option<ConnId>,
    pub(super) running: BTreeMap<(u64, u32), u32>,
    pub(super) offer: Option<Vec<(u64, u32, u32)>>,
    pub(super) cancels: VecDeque<(u64, u32)>,
    /// Updates that are not acknowledged: the request, job, task, attempt, how it went.
    pub(super) untold: Vec<(u32, u64, u32, u32, bool)>,
    /// It may run what the broker does not count: its refusals are right.
    strained: bool,
}

pub(super) struct World {
    pub(super) farm: Farm,
    pub(super) pair: Pair,
    pub(super) workers: Vec<JobWorker>,
    widths: BTreeMap<u64, u16>,
    needs: BTreeMap<u64, Vec<(String, String)>>,
    /// Every attempt that was offered and not refused.
    given: BTreeSet<(u64, u32, u32)>,
    /// How tasks ended.
    pub(super) settled: BTreeMap<(u64, u32), (TaskState, u32)>,
    /// Tasks that had ended and are retried, by the call that asked for it.
    retrying: BTreeMap<(u64, u32), u32>,
    /// Attempts that workers said they finished.
    pub(super) finished: BTreeSet<(u64, u32, u32)>,
    pub(super) waits: BTreeMap<u32, u64>,
    /// Jobs that are being removed, by which call, or are gone.
    gone: BTreeMap<u64, u32>,
}

impl World {
    fn new(stores: bool) -> Self {
        let mut farm = if stores { Farm::on_disk() } else { Farm::in_memory() };
        farm.quick = !stores;
        farm.explained_every = 12;
        Self {
            farm,
            pair: Pair::default(),
            workers: SLOTS.iter().map(|_| JobWorker::default()).collect(),
            widths: BTreeMap::new(),
            needs: BTreeMap::new(),
            given: BTreeSet::new(),
            settled: BTreeMap::new(),
            retrying: BTreeMap::new(),
            finished: BTreeSet::new(),
            waits: BTreeMap::new(),
            gone: BTreeMap::new(),
        }
    }

    fn worker_of(&mut self, conn: ConnId) -> Option<usize> {
        self.workers.iter().position(|worker| worker.conn == Some(conn))
    }

    pub(super) fn is_strained(&self, worker: usize) -> bool {
        self.workers[worker].strained
    }

    pub(super) fn taken(&self, worker: usize) -> u16 {
        self.workers[worker].running.keys().map(|(job, _)| self.widths[job]).sum()
    }

    pub(super) fn hear(&mut self, said: Vec<Said>) {
        for message in said {
            match message {
                Said::Offer(conn, tasks) => {
                    let worker = self.worker_of(conn).expect("offers go to who is there");
                    let wanted: u16 = tasks.iter().map(|(job, ..)| self.widths[job]).sum();
                    let beside = if worker == 0 { self.pair.used() } else { 0 };
                    let fits = self.taken(worker) + beside + wanted <= SLOTS[worker];
                    assert!(
                        fits || self.workers[worker].strained,
                        "I19: {tasks:?} is more than job worker {worker} has room for"
                    );
                    assert!(self.workers[worker].offer.is_none(), "one JOB at a time");
                    for (job, task, attempt) in &tasks {
                        assert!(
                            self.given.insert((*job, *task, *attempt)),
                            "I19: {job}/{task} attempt {attempt} twice"
                        );
                        assert!(!self.settled.contains_key(&(*job, *task)), "I19: {job}/{task} is over");
                        let has = &self.farm.labels[&format!("worker{worker}")];
                        let needs = &self.needs[job];
                        assert!(
                            needs.iter().all(|label| has.contains(label)),
                            "{job}/{task}: {worker} lacks {needs:?}"
                        );
                    }
                    self.workers[worker].offer = Some(tasks);
                }
                Said::Ack(conn, request) => {
                    let worker = self.worker_of(conn).expect("answers go to who is there");
                    self.workers[worker].untold.retain(|(of, ..)| *of != request);
                }
                Said::Cancel(conn, job, task) => {
                    let worker = self.worker_of(conn).expect("orders go to who is there");
                    self.workers[worker].cancels.push_back((job, task));
                    self.workers[worker].strained = true;
                }
                Said::Close(conn, _) => {
                    if let Some(worker) = self.worker_of(conn) {
                        self.gone(worker, false);
                    }
                }
                Said::Job(seq, view) => {
                    if let Some(job) = self.waits.remove(&seq) {
                        assert!(view.id.0 == job && view.state.is_end(), "told when it has ended");
                    }
                    self.widths.insert(view.id.0, view.slots);
                    self.needs.extend(view.spec.map(|spec| (view.id.0, spec.labels)));
                }
                Said::Error(seq, _) => {
                    self.gone.retain(|_, call| *call != seq);
                    self.retrying.retain(|_, call| *call != seq);
                }
                message if retried(&message).is_some() => {
                    let (seq, tasks, _) = retried(&message).expect("just seen");
                    let again: Vec<(u64, u32)> =
                        self.retrying.extract_if(.., |_, call| *call == seq).map(|(task, _)| task).collect();
                    assert_eq!(tasks as usize, again.len(), "what has ended waits again: {again:?}");
                    self.settled.retain(|task, _| !again.contains(task));
                }
                Said::Other(effect) => self.hear_of_messages(&effect),
                other => panic!("{other:?} is not for anyone here"),
            }
        }
    }

    fn gone(&mut self, worker: usize, begun: bool) {
        let worker = &mut self.workers[worker];
        worker.conn = None;
        worker.strained = true;
        worker.cancels.clear();
        for (job, task, attempt) in worker.offer.take().into_iter().flatten() {
            if begun {
                worker.running.insert((job, task), attempt);
            }
        }
    }

    pub(super) fn jobs(&self) -> Vec<u64> {
        self.widths.keys().filter(|job| !self.gone.contains_key(job)).copied().collect()
    }

    fn pick(&self, job: usize) -> Option<u64> {
        let jobs = self.jobs();
        (!jobs.is_empty()).then(|| jobs[job % jobs.len()])
    }

    pub(super) fn apply(&mut self, op: &Op) {
        match *op {
            Op::Submit { count, slots, retries, max, failures, priority, after, needs } => {
                if self.widths.len() < 6 {
                    let before = self.jobs().pop();
                    let after = after.zip(before).map(|(when, job)| After { job: JobId(job), when });
                    let after = after.into_iter().collect();
                    let backoff_ms = 700;
                    let labels = labels(LABELS.get(needs).copied().unwrap_or_default());
                    let (max_parallel, max_failures) = (max, failures);
                    let base = JobSpec { labels, backoff_ms, max_failures, ..job(count) };
                    let spec = JobSpec { slots, retries, max_parallel, priority, after, ..base };
                    let said = self.farm.call(AdminCall::JobSubmit { spec: Box::new(spec) });
                    self.hear(said);
                }
            }
            Op::Hello { worker, lie, attempts } => self.hello(worker, lie, attempts),
            Op::Pair { what } => self.pair_does(what),
            Op::Cancel { .. } | Op::Retry { .. } | Op::Hold { .. } | Op::Wait { .. } | Op::Rm { .. } => self.ask(op),
            Op::Store { .. } | Op::Refuse | Op::Pass { .. } | Op::Restart { .. } => self.befall(op),
            Op::Answer { worker, refuse } => self.answer(worker, refuse),
            Op::End { worker, pick, success } => {
                let running = &self.workers[worker].running;
                let Some((&(job, task), &attempt)) = running.iter().nth(pick % running.len().max(1)) else { return };
                self.workers[worker].running.remove(&(job, task));
                self.tell(worker, job, task, attempt, success);
            }
            Op::Stop { worker } => {
                // A CANCEL follows the answer to the JOB before it (S4.24).
                let Some(conn) = self.workers[worker].conn.filter(|_| self.workers[worker].offer.is_none()) else {
                    return;
                };
                let Some((job, task)) = self.workers[worker].cancels.pop_front() else { return };
                let said = if self.workers[worker].running.contains_key(&(job, task)) {
                    self.farm.confirm(conn, job, task)
                } else {
                    self.farm.no_such_job(conn, job, task)
                };
                self.hear(said);
            }
            Op::Lose { worker, begun } => {
                let Some(conn) = self.workers[worker].conn else { return };
                self.gone(worker, begun);
                let said = self.farm.lose(conn);
                self.hear(said);
            }
        }
    }

    /// What admins do.
    fn ask(&mut self, op: &Op) {
        match *op {
            Op::Cancel { job, first, last } => {
                let Some(job) = self.pick(job) else { return };
                let call = AdminCall::JobCancel { job: JobId(job), tasks: Some(vec![(first, last)]) };
                let said = self.farm.call(call);
                self.hear(said);
            }
            Op::Retry { job, tasks } => {
                let Some(job) = self.pick(job) else { return };
                let call = self.farm.seqs + 1;
                for ((_, task), (state, _)) in self.settled.range((job, 0)..=(job, u32::MAX)) {
                    let meant =
                        tasks.map_or(*state == TaskState::Failed, |(first, last)| (first..=last).contains(task));
                    if meant {
                        self.retrying.entry((job, *task)).or_insert(call);
                    }
                }
                let tasks = tasks.map(|range| vec![range]);
                let said = self.farm.call(AdminCall::JobRetry { job: JobId(job), tasks, after: None });
                self.hear(said);
            }
            Op::Hold { job, hold } => {
                let Some(job) = self.pick(job).map(JobId) else { return };
                let call = if hold { AdminCall::JobHold { job } } else { AdminCall::JobRelease { job } };
                let said = self.farm.call(call);
                self.hear(said);
            }
            Op::Rm { job } => {
                let Some(job) = self.pick(job) else { return };
                self.gone.insert(job, self.farm.seqs + 1);
                let said = self.farm.call(AdminCall::JobRm { job: JobId(job) });
                self.hear(said);
            }
            Op::Wait { job } => {
                let Some(job) = self.pick(job) else { return };
                self.waits.insert(self.farm.seqs + 1, job);
                let said = self.farm.call(AdminCall::JobWait { job: JobId(job) });
                self.hear(said);
            }
            _ => unreachable!("not for admins"),
        }
    }

    /// What disk, clock and power do.
    fn befall(&mut self, op: &Op) {
        match *op {
            Op::Store { groups } => {
                let said = self.farm.stored(groups);
                self.hear(said);
            }
            Op::Refuse => {
                if !self.farm.groups.is_empty() {
                    let said = self.farm.refuse();
                    self.hear(said);
                }
            }
            Op::Pass { ms } => {
                let said = self.farm.pass(ms);
                self.hear(said);
            }
            Op::Restart { unheard, begun } => {
                if !self.farm.quick {
                    // Stored, and nobody heard of it.
                    for (_, ops) in self.farm.groups.drain(..unheard.min(self.farm.groups.len())).collect::<Vec<_>>() {
                        ops.into_iter().for_each(|op| self.farm.store.apply(op));
                    }
                    (0..SLOTS.len()).for_each(|worker| self.gone(worker, begun));
                    self.waits.clear();
                    self.pair.gone();
                    self.farm.restart(10);
                    let found: BTreeMap<u64, u16> =
                        self.farm.store.jobs.iter().map(|(id, job)| (id.0, job.spec.slots)).collect();
                    self.widths.extend(&found);
                    let needs = self.farm.store.jobs.iter().map(|(job, record)| (job.0, record.spec.labels.clone()));
                    self.needs.extend(needs);
                    self.gone = self.widths.keys().filter(|id| !found.contains_key(id)).map(|id| (*id, 0)).collect();
                    // What was being retried does so now, or never will.
                    for task in std::mem::take(&mut self.retrying).into_keys() {
                        self.settled.remove(&task);
                    }
                }
            }
            _ => unreachable!("not for these"),
        }
    }

    pub(super) fn hello(&mut self, worker: usize, lie: u8, attempts: bool) {
        let fresh = self.workers[worker].conn.is_none();
        let conn = self.workers[worker].conn.unwrap_or_else(|| self.farm.connect());
        self.workers[worker].conn = Some(conn);
        let mut listed: Vec<(u64, u32, Option<u32>)> = self.workers[worker]
            .running
            .iter()
            .map(|((job, task), attempt)| (*job, *task, attempts.then_some(*attempt)))
            .collect();
        match lie {
            0 => listed.clear(),
            1 => listed.extend([(1, 1, None), (1, 2, Some(1)), (77, 1, None), (2, 99, Some(u32::MAX))]),
            _ => {}
        }
        // The first can do everything; now and then one has lost what it had, or has more.
        let has = match lie {
            3 => &[],
            4 => LABELS[2],
            _ => LABELS.get(2 - worker.min(2)).copied().unwrap_or_default(),
        };
        self.farm.labels.insert(format!("worker{worker}"), labels(has));
        // Without the attempt it may be taken for another one of the same task.
        self.workers[worker].strained |= lie < 2 || !attempts;
        let said = self.farm.hello(conn, &format!("worker{worker}"), SLOTS[worker], &listed);
        self.hear(said);
        if fresh && self.workers[worker].conn == Some(conn) {
            for (_, job, task, attempt, success) in std::mem::take(&mut self.workers[worker].untold) {
                self.tell(worker, job, task, attempt, success);
            }
        }
    }

    pub(super) fn answer(&mut self, worker: usize, refuse: bool) {
        let (Some(conn), Some(tasks)) = (self.workers[worker].conn, self.workers[worker].offer.take()) else {
            return;
        };
        let wanted: u16 = tasks.iter().map(|(job, ..)| self.widths[job]).sum();
        let beside = if worker == 0 { self.pair.used() } else { 0 };
        let free = SLOTS[worker].saturating_sub(self.taken(worker) + beside);
        let doubled = tasks.iter().any(|(job, task, _)| self.workers[worker].running.contains_key(&(*job, *task)));
        let said = if refuse || wanted > free || doubled {
            for task in &tasks {
                self.given.remove(task);
            }
            self.farm.refuse_offer(conn, free)
        } else {
            self.workers[worker].running.extend(tasks.iter().map(|(job, task, attempt)| ((*job, *task), *attempt)));
            self.farm.accept(conn)
        };
        self.hear(said);
    }

    fn tell(&mut self, worker: usize, job: u64, task: u32, attempt: u32, success: bool) {
        if success {
            self.finished.insert((job, task, attempt));
        }
        let request = self.farm.next_request();
        self.workers[worker].untold.push((request, job, task, attempt, success));
        if let Some(conn) = self.workers[worker].conn {
            let said = self.farm.update(conn, job, task, Some(attempt), success);
            self.hear(said);
        }
        self.workers[worker].strained &= !self.workers[worker].running.is_empty();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        rng_seed: proptest::test_runner::RngSeed::Fixed(0x6661_726d),
        failure_persistence: None,
        max_shrink_iters: 3_000,
        ..ProptestConfig::default()
    })]

    /// Proves I19 and I20 (and S4.71, S4.73, S4.76, S4.77, S4.82) for any order of events: every task ends in one state,
    /// counts add up, no attempt is at two workers, no job worker gets more than it has room for, and what was told outlives
    /// the broker.
    #[test]
    fn every_task_ends_once(stores in prop::bool::weighted(0.8), ops in prop::collection::vec(op(), 20..160)) {
        let mut world = World::new(stores);
        for op in &ops {
            world.apply(op);
            world.judge();
        }
        world.calm();
    }
}
