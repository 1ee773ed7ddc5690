//! Any order of what workers, admins, the disk and the clock do, against a model that only watches.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use turno_proto::model::ConnId;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::job::{After, JobId, JobSpec, JobView, TaskCounts, TaskState};

use super::farm::{Farm, Said, job, retried};
use super::property_ops::{Op, op};
use super::property_twin::Twin;

pub(super) const SLOTS: [u16; 4] = [3, 2, 1, 2];

/// A worker that does what document 004 asks of it, unless it lies.
#[derive(Default)]
struct Hand {
    conn: Option<ConnId>,
    running: BTreeMap<(u64, u32), u32>,
    offer: Option<Vec<(u64, u32, u32)>>,
    cancels: VecDeque<(u64, u32)>,
    /// Updates that are not acknowledged: the request, job, task, attempt, how it went.
    untold: Vec<(u32, u64, u32, u32, bool)>,
    /// It may run what the broker does not count: its refusals are right.
    strained: bool,
}

pub(super) struct World {
    pub(super) farm: Farm,
    pub(super) twin: Twin,
    hands: Vec<Hand>,
    widths: BTreeMap<u64, u16>,
    /// Every attempt that was offered and not refused.
    given: BTreeSet<(u64, u32, u32)>,
    /// How tasks ended.
    settled: BTreeMap<(u64, u32), (TaskState, u32)>,
    /// Tasks that had ended and are retried, by the call that asked for it.
    retrying: BTreeMap<(u64, u32), u32>,
    /// Attempts that workers said they finished.
    finished: BTreeSet<(u64, u32, u32)>,
    waits: BTreeMap<u32, u64>,
    /// Jobs that are being removed, by which call, or are gone.
    gone: BTreeMap<u64, u32>,
}

impl World {
    fn new(stores: bool) -> Self {
        let mut farm = if stores { Farm::on_disk() } else { Farm::in_memory() };
        farm.quick = !stores;
        Self {
            farm,
            twin: Twin::default(),
            hands: SLOTS.iter().map(|_| Hand::default()).collect(),
            widths: BTreeMap::new(),
            given: BTreeSet::new(),
            settled: BTreeMap::new(),
            retrying: BTreeMap::new(),
            finished: BTreeSet::new(),
            waits: BTreeMap::new(),
            gone: BTreeMap::new(),
        }
    }

    fn hand_of(&mut self, conn: ConnId) -> Option<usize> {
        self.hands.iter().position(|hand| hand.conn == Some(conn))
    }

    pub(super) fn is_strained(&self, hand: usize) -> bool {
        self.hands[hand].strained
    }

    pub(super) fn taken(&self, hand: usize) -> u16 {
        self.hands[hand].running.keys().map(|(job, _)| self.widths[job]).sum()
    }

    pub(super) fn hear(&mut self, said: Vec<Said>) {
        for word in said {
            match word {
                Said::Offer(conn, tasks) => {
                    let hand = self.hand_of(conn).expect("offers go to who is there");
                    let wanted: u16 = tasks.iter().map(|(job, ..)| self.widths[job]).sum();
                    let beside = if hand == 0 { self.twin.used() } else { 0 };
                    let fits = self.taken(hand) + beside + wanted <= SLOTS[hand];
                    assert!(fits || self.hands[hand].strained, "I19: {tasks:?} is more than hand {hand} has room for");
                    assert!(self.hands[hand].offer.is_none(), "one JOB at a time");
                    for (job, task, attempt) in &tasks {
                        assert!(
                            self.given.insert((*job, *task, *attempt)),
                            "I19: {job}/{task} attempt {attempt} twice"
                        );
                        assert!(!self.settled.contains_key(&(*job, *task)), "I19: {job}/{task} is over");
                    }
                    self.hands[hand].offer = Some(tasks);
                }
                Said::Ack(conn, request) => {
                    let hand = self.hand_of(conn).expect("answers go to who is there");
                    self.hands[hand].untold.retain(|(of, ..)| *of != request);
                }
                Said::Cancel(conn, job, task) => {
                    let hand = self.hand_of(conn).expect("orders go to who is there");
                    self.hands[hand].cancels.push_back((job, task));
                    self.hands[hand].strained = true;
                }
                Said::Close(conn, _) => {
                    if let Some(hand) = self.hand_of(conn) {
                        self.gone(hand, false);
                    }
                }
                Said::Job(seq, view) => {
                    if let Some(job) = self.waits.remove(&seq) {
                        assert!(view.id.0 == job && view.state.is_end(), "told when it has ended");
                    }
                    self.widths.insert(view.id.0, view.slots);
                }
                Said::Error(seq, _) => {
                    self.gone.retain(|_, call| *call != seq);
                    self.retrying.retain(|_, call| *call != seq);
                }
                word if retried(&word).is_some() => {
                    let (seq, tasks, _) = retried(&word).expect("just seen");
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

    fn gone(&mut self, hand: usize, begun: bool) {
        let hand = &mut self.hands[hand];
        hand.conn = None;
        hand.strained = true;
        hand.cancels.clear();
        for (job, task, attempt) in hand.offer.take().into_iter().flatten() {
            if begun {
                hand.running.insert((job, task), attempt);
            }
        }
    }

    fn jobs(&self) -> Vec<u64> {
        self.widths.keys().filter(|job| !self.gone.contains_key(job)).copied().collect()
    }

    fn pick(&self, job: usize) -> Option<u64> {
        let jobs = self.jobs();
        (!jobs.is_empty()).then(|| jobs[job % jobs.len()])
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Submit { count, slots, retries, max, failures, priority, after } => {
                if self.widths.len() < 6 {
                    let before = self.jobs().pop();
                    let after = after.zip(before).map(|(when, job)| After { job: JobId(job), when });
                    let after = after.into_iter().collect();
                    let backoff_ms = 700;
                    let (max_parallel, max_failures) = (max, failures);
                    let spec = JobSpec { slots, retries, max_parallel, max_failures, priority, after, ..job(count) };
                    let spec = JobSpec { backoff_ms, ..spec };
                    let said = self.farm.call(AdminCall::JobSubmit { spec: Box::new(spec) });
                    self.hear(said);
                }
            }
            Op::Hello { hand, lie, attempts } => self.hello(hand, lie, attempts),
            Op::Twin { what } => self.twin_does(what),
            Op::Cancel { .. } | Op::Retry { .. } | Op::Hold { .. } | Op::Wait { .. } | Op::Rm { .. } => self.ask(op),
            Op::Store { .. } | Op::Refuse | Op::Pass { .. } | Op::Restart { .. } => self.befall(op),
            Op::Answer { hand, refuse } => self.answer(hand, refuse),
            Op::End { hand, pick, success } => {
                let running = &self.hands[hand].running;
                let Some((&(job, task), &attempt)) = running.iter().nth(pick % running.len().max(1)) else { return };
                self.hands[hand].running.remove(&(job, task));
                self.tell(hand, job, task, attempt, success);
            }
            Op::Stop { hand } => {
                // A CANCEL follows the answer to the JOB before it (S4.24).
                let Some(conn) = self.hands[hand].conn.filter(|_| self.hands[hand].offer.is_none()) else { return };
                let Some((job, task)) = self.hands[hand].cancels.pop_front() else { return };
                let said = if self.hands[hand].running.contains_key(&(job, task)) {
                    self.farm.confirm(conn, job, task)
                } else {
                    self.farm.no_such_job(conn, job, task)
                };
                self.hear(said);
            }
            Op::Lose { hand, begun } => {
                let Some(conn) = self.hands[hand].conn else { return };
                self.gone(hand, begun);
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
                    (0..SLOTS.len()).for_each(|hand| self.gone(hand, begun));
                    self.waits.clear();
                    self.twin.gone();
                    self.farm.restart(10);
                    let found: BTreeMap<u64, u16> =
                        self.farm.store.jobs.iter().map(|(id, job)| (id.0, job.spec.slots)).collect();
                    self.widths.extend(&found);
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

    fn hello(&mut self, hand: usize, lie: u8, attempts: bool) {
        let fresh = self.hands[hand].conn.is_none();
        let conn = self.hands[hand].conn.unwrap_or_else(|| self.farm.connect());
        self.hands[hand].conn = Some(conn);
        let mut listed: Vec<(u64, u32, Option<u32>)> = self.hands[hand]
            .running
            .iter()
            .map(|((job, task), attempt)| (*job, *task, attempts.then_some(*attempt)))
            .collect();
        match lie {
            0 => listed.clear(),
            1 => listed.extend([(1, 1, None), (1, 2, Some(1)), (77, 1, None), (2, 99, Some(u32::MAX))]),
            _ => {}
        }
        // Without the attempt it may be taken for another one of the same task.
        self.hands[hand].strained |= lie < 2 || !attempts;
        let said = self.farm.hello(conn, &format!("hand{hand}"), SLOTS[hand], &listed);
        self.hear(said);
        if fresh && self.hands[hand].conn == Some(conn) {
            for (_, job, task, attempt, success) in std::mem::take(&mut self.hands[hand].untold) {
                self.tell(hand, job, task, attempt, success);
            }
        }
    }

    fn answer(&mut self, hand: usize, refuse: bool) {
        let (Some(conn), Some(tasks)) = (self.hands[hand].conn, self.hands[hand].offer.take()) else { return };
        let wanted: u16 = tasks.iter().map(|(job, ..)| self.widths[job]).sum();
        let beside = if hand == 0 { self.twin.used() } else { 0 };
        let free = SLOTS[hand].saturating_sub(self.taken(hand) + beside);
        let doubled = tasks.iter().any(|(job, task, _)| self.hands[hand].running.contains_key(&(*job, *task)));
        let said = if refuse || wanted > free || doubled {
            for task in &tasks {
                self.given.remove(task);
            }
            self.farm.refuse_offer(conn, free)
        } else {
            self.hands[hand].running.extend(tasks.iter().map(|(job, task, attempt)| ((*job, *task), *attempt)));
            self.farm.accept(conn)
        };
        self.hear(said);
    }

    fn tell(&mut self, hand: usize, job: u64, task: u32, attempt: u32, success: bool) {
        if success {
            self.finished.insert((job, task, attempt));
        }
        let request = self.farm.next_request();
        self.hands[hand].untold.push((request, job, task, attempt, success));
        if let Some(conn) = self.hands[hand].conn {
            let said = self.farm.update(conn, job, task, Some(attempt), success);
            self.hear(said);
        }
        self.hands[hand].strained &= !self.hands[hand].running.is_empty();
    }

    /// What is told of jobs adds up, and what has ended stays as it is.
    fn judge(&mut self) -> Vec<JobView> {
        let mut views = Vec::new();
        for job in self.jobs() {
            let view = self.farm.show(job);
            let mut counts = TaskCounts::default();
            for task in self.farm.tasks(job, None) {
                let key = (job, task.task);
                match task.state {
                    TaskState::Waiting => counts.waiting += 1,
                    TaskState::Running => counts.running += 1,
                    TaskState::Finished => counts.finished += 1,
                    TaskState::Failed => counts.failed += 1,
                    TaskState::Cancelled => counts.cancelled += 1,
                }
                let ended = !matches!(task.state, TaskState::Waiting | TaskState::Running);
                let before = self.settled.get(&key).copied();
                assert!(ended || before.is_none(), "I20: {key:?} was over");
                if ended {
                    let state = before.map_or(task.state, |(state, _)| state);
                    assert_eq!(state, task.state, "I19: {key:?} ends once");
                    self.settled.insert(key, (task.state, task.attempt));
                }
                if task.state == TaskState::Finished {
                    assert!(self.finished.contains(&(job, task.task, task.attempt)), "{key:?}: some worker did it");
                }
            }
            assert_eq!(counts, view.tasks, "the counts of job {job} are those of its tasks");
            views.push(view);
        }
        views
    }

    /// All that was bad is over: every job comes to an end.
    fn calm(&mut self) {
        let said = self.farm.flush();
        self.hear(said);
        self.farm.quick = true;
        self.twin_ends();
        for _ in 0..200 {
            for job in self.jobs() {
                let said = self.farm.call(AdminCall::JobRelease { job: JobId(job) });
                self.hear(said);
            }
            for hand in 0..SLOTS.len() {
                self.hello(hand, 9, true);
                self.answer(hand, false);
                while self.hands[hand].offer.is_none() && !self.hands[hand].cancels.is_empty() {
                    self.apply(&Op::Stop { hand });
                }
                while !self.hands[hand].running.is_empty() {
                    self.apply(&Op::End { hand, pick: 0, success: true });
                }
            }
            if self.judge().iter().all(|view| view.state.is_end()) {
                break;
            }
            self.apply(&Op::Pass { ms: 61_000 });
        }
        let views = self.judge();
        let left: Vec<&JobView> = views.iter().filter(|view| !view.state.is_end()).collect();
        assert!(left.is_empty(), "I19: every task ends: {left:?}");
        assert!(self.waits.is_empty(), "who waits for the end of a job hears of it");
        for hand in &self.hands {
            assert!(hand.untold.is_empty(), "every UPDATE is answered");
        }
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
    /// counts add up, no attempt is at two workers, no hand gets more than it has room for, and what was told outlives
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
