//! A foreman and a worker with owners, a wire between them that cuts and delays as it is told, and a ledger of tasks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use turno_proto::foreman::{
    CloseReason, Counts, ErrorCode, Foreman, ForemanAnswer, ForemanEvent, ForemanKind, ForemanSettings, Hello, Outcome,
    RequestId, Role, StatusUpdate, Stop, Task, TaskPair, Ticket, WireTaskId, Worker, WorkerEvent, decode, split,
};
use turno_proto::model::Mono;

use crate::tap::Tap;

/// What the foreman's owner believes of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Waiting,
    Offered(RequestId),
    /// Offered, and the connection was lost.
    Unknown,
    Running,
    Done,
}

/// Everything.
#[derive(Debug)]
pub(crate) struct World {
    settings: ForemanSettings,
    pub(crate) now: Mono,
    pub(crate) worker: Worker,
    pub(crate) foreman: Foreman,
    to_worker: VecDeque<u8>,
    to_foreman: VecDeque<u8>,
    worker_buffer: Vec<u8>,
    foreman_buffer: Vec<u8>,
    pub(crate) tap: Tap,
    /// The foreman's owner.
    pub(crate) tickets: VecDeque<(Ticket, Option<WireTaskId>)>,
    pub(crate) room: u16,
    pub(crate) places: BTreeMap<WireTaskId, Place>,
    asked: BTreeSet<RequestId>,
    next_id: u64,
    /// The worker's owner.
    pub(crate) running: BTreeSet<WireTaskId>,
    started: BTreeSet<WireTaskId>,
    pub(crate) closed: Option<CloseReason>,
    /// Processors that are left when all that was asked for is done.
    left: u16,
    /// The worker was asked for HELLO on this connection; a second time would end it.
    hello_wanted: bool,
}

impl World {
    pub(crate) fn new(settings: ForemanSettings, procs: u16, tasks: u32) -> Self {
        let places = (1..=tasks).map(|task| (WireTaskId { job: u64::from(task % 3), task }, Place::Waiting)).collect();
        let mut world = Self {
            settings,
            now: Mono::ZERO,
            worker: Worker::new("w", "w-1", procs, settings).expect("few processors"),
            foreman: Foreman::new(settings),
            to_worker: VecDeque::new(),
            to_foreman: VecDeque::new(),
            worker_buffer: Vec::new(),
            foreman_buffer: Vec::new(),
            tap: Tap::new(settings),
            tickets: VecDeque::new(),
            room: 0,
            places,
            asked: BTreeSet::new(),
            next_id: 0,
            running: BTreeSet::new(),
            started: BTreeSet::new(),
            closed: None,
            left: procs,
            hello_wanted: false,
        };
        world.connect();
        world
    }

    fn connect(&mut self) {
        self.worker.connect(self.now);
        self.foreman.connect(self.now);
        self.look();
    }

    /// The connection breaks; what is on the wire is lost; another is made.
    pub(crate) fn reconnect(&mut self) {
        self.worker.disconnect();
        self.foreman.disconnect();
        self.look();
        for wire in [&mut self.to_worker, &mut self.to_foreman] {
            wire.clear();
        }
        self.worker_buffer.clear();
        self.foreman_buffer.clear();
        self.tickets.clear();
        (self.room, self.hello_wanted) = (0, false);
        self.tap.cut();
        self.foreman = Foreman::new(self.settings);
        self.connect();
    }

    /// Lets so many bytes arrive, one at a time, so that each call completes one frame at most.
    pub(crate) fn deliver(&mut self, role: Role, count: usize) -> usize {
        for done in 0..count {
            let (wire, buffer) = match role {
                Role::Worker => (&mut self.to_worker, &mut self.worker_buffer),
                Role::Foreman => (&mut self.to_foreman, &mut self.foreman_buffer),
            };
            let Some(byte) = wire.pop_front() else { return done };
            buffer.push(byte);
            if let Ok(Some(piece)) = split(buffer, usize::MAX) {
                self.tap.gets(role, &decode(&piece).expect("both ends write sound frames"));
            }
            let used = match role {
                Role::Worker => self.worker.handle_bytes(self.now, buffer),
                Role::Foreman => self.foreman.handle_bytes(self.now, buffer),
            };
            assert!(used == 0 || used == buffer.len(), "a frame is used whole");
            if used > 0 {
                buffer.clear();
                self.look();
            }
        }
        count
    }

    pub(crate) fn pass(&mut self, millis: u64) {
        self.now = self.now.plus_millis(millis);
        self.worker.handle_timeout(self.now);
        self.foreman.handle_timeout(self.now);
        let late = |deadline: Option<Mono>| deadline.is_some_and(|at| at <= self.now);
        assert!(!late(self.worker.next_deadline()) && !late(self.foreman.next_deadline()), "all that is due is done");
        self.look();
    }

    pub(crate) fn answer(&mut self, answer: ForemanAnswer) -> bool {
        let Some((ticket, ended)) = self.tickets.pop_front() else { return false };
        if self.foreman.answer(self.now, ticket, answer)
            && answer == ForemanAnswer::Ok
            && let Some(id) = ended
        {
            self.places.insert(id, Place::Done);
        }
        self.look();
        true
    }

    /// The foreman's owner has forgotten the worker, once.
    pub(crate) fn ask_hello(&mut self) -> bool {
        let is_update = self.tickets.front().is_some_and(|(_, ended)| ended.is_some());
        is_update && !std::mem::replace(&mut self.hello_wanted, true) && self.answer(ForemanAnswer::SendHello)
    }

    pub(crate) fn offer(&mut self, count: usize) -> bool {
        let waiting = self.places.iter().filter(|(_, place)| **place == Place::Waiting);
        let ids: Vec<WireTaskId> = waiting.map(|(id, _)| *id).take(count).collect();
        if ids.is_empty() {
            return false;
        }
        let request = self.request();
        let task = |id: &WireTaskId| Task { task: id.task, job: id.job, attempt: 1, ..Task::default() };
        let tasks = ids.iter().map(task).collect();
        self.places.extend(ids.iter().map(|id| (*id, Place::Offered(request))));
        self.room = 0;
        self.foreman.offer(self.now, request, tasks);
        self.look();
        true
    }

    pub(crate) fn cancel(&mut self, pairs: Vec<TaskPair>) {
        let request = self.request();
        self.foreman.cancel(self.now, request, pairs);
        self.look();
    }

    /// Takes one processor away, if two remain: work must go on.
    pub(crate) fn stop_one(&mut self) {
        if self.left <= 2 {
            return;
        }
        self.left -= 1;
        let stop = Stop::from_word(1);
        let request = self.request();
        self.foreman.stop(self.now, request, stop);
        self.look();
    }

    pub(crate) fn end_task(&mut self, index: usize) -> bool {
        let Some(id) = self.running.iter().nth(index % self.running.len().max(1)).copied() else { return false };
        self.running.remove(&id);
        let update = StatusUpdate { job: id.job, task: id.task, success: true, ..StatusUpdate::default() };
        assert!(self.worker.task_ended(self.now, update), "the worker knows what it runs");
        self.look();
        true
    }

    pub(crate) fn reset(&mut self, role: Role) {
        match role {
            Role::Worker => self.worker.reset(self.now),
            Role::Foreman => self.foreman.reset(self.now),
        }
        self.look();
    }

    /// Everything that can go on goes on, until nothing does.
    pub(crate) fn settle(&mut self) {
        for _ in 0..20_000 {
            let mut moved = self.deliver(Role::Worker, 64) + self.deliver(Role::Foreman, 64) > 0;
            moved |= self.answer(ForemanAnswer::Ok);
            moved |= self.end_task(0);
            if self.room > 0 {
                moved |= self.offer(usize::from(self.room));
            }
            if !moved {
                let due = self.worker.next_deadline().into_iter().chain(self.foreman.next_deadline()).min();
                let Some(due) = due else { return };
                self.pass(due.millis_left(self.now));
            }
        }
        panic!("the two never come to rest: {self:#?}");
    }

    /// After [`Self::settle`]: nothing was lost, nothing ran twice, and both ends agree.
    pub(crate) fn judge(&self) {
        assert_eq!(self.closed, None, "no rule was broken");
        self.tap.assert_all_answered();
        assert!(self.asked.is_empty(), "each request of the owner has its end: {:?}", self.asked);
        assert_eq!(self.worker.counts(), self.foreman.counts(), "both ends count alike");
        assert!(
            self.worker.max_procs() >= self.left,
            "a STOP that was lost is not done, one that was done is done once"
        );
        let left: Vec<_> = self.places.iter().filter(|(_, place)| **place != Place::Done).collect();
        assert!(left.is_empty(), "every task is done: {left:?}");
        assert_eq!(self.started.len(), self.places.len(), "and was started");
    }

    fn request(&mut self) -> RequestId {
        self.next_id += 1;
        self.asked.insert(RequestId(self.next_id));
        RequestId(self.next_id)
    }

    /// Reads what both ends wrote and told.
    fn look(&mut self) {
        loop {
            for role in [Role::Worker, Role::Foreman] {
                let mut out = Vec::new();
                match role {
                    Role::Worker => self.worker.take_output(&mut out),
                    Role::Foreman => self.foreman.take_output(&mut out),
                }
                let mut rest = out.as_slice();
                while !rest.is_empty() {
                    let piece = split(rest, usize::MAX).expect("frames are written").expect("and whole ones");
                    self.tap.says(role, &decode(&piece).expect("sound ones"));
                    rest = &rest[piece.used..];
                }
                match role {
                    Role::Worker => self.to_foreman.extend(out),
                    Role::Foreman => self.to_worker.extend(out),
                }
            }
            let worker = self.worker.poll_event();
            let foreman = self.foreman.poll_event();
            if worker.is_none() && foreman.is_none() {
                break;
            }
            worker.into_iter().for_each(|event| self.take_worker_event(event));
            foreman.into_iter().for_each(|event| self.take_foreman_event(event));
        }
        let Counts { nrun, nproc } = self.worker.counts();
        assert_eq!(usize::from(nrun), self.running.len(), "the worker counts what runs");
        assert_eq!(nproc, self.worker.max_procs().saturating_sub(nrun), "and what is free");
    }

    fn take_worker_event(&mut self, event: WorkerEvent) {
        match event {
            WorkerEvent::Start(tasks) => {
                for id in tasks.iter().map(Task::id) {
                    assert!(self.started.insert(id), "{id:?} runs twice");
                    assert!(self.running.insert(id), "{id:?} runs already");
                }
            }
            WorkerEvent::Close(reason) => self.closed = Some(reason),
            WorkerEvent::NotReported { id, code } => panic!("the end of {id:?} is refused: {code}"),
            _ => {}
        }
    }

    fn take_foreman_event(&mut self, event: ForemanEvent) {
        match event {
            ForemanEvent::Hello { ticket, hello, .. } => {
                self.reconcile(&hello.expect("our worker says how it is"));
                self.tickets.push_back((ticket, None));
            }
            ForemanEvent::Update { ticket, update, .. } => self.tickets.push_back((ticket, Some(update.id()))),
            ForemanEvent::Answered { id, kind, outcome } => self.take_outcome(id, kind, outcome),
            ForemanEvent::Ready { room } => self.room = room,
            ForemanEvent::Close(reason) => self.closed = Some(reason),
            ForemanEvent::Note(_) => {}
        }
    }

    fn take_outcome(&mut self, id: RequestId, kind: ForemanKind, outcome: Outcome) {
        assert!(self.asked.remove(&id), "{id:?} ends twice");
        let place = match outcome {
            Outcome::Ok(_) => Place::Running,
            Outcome::Unknown => Place::Unknown,
            Outcome::NotSent => Place::Waiting,
            Outcome::Refused { code, .. } => {
                assert_eq!((kind, code), (ForemanKind::Cancel, ErrorCode::NoSuchJob), "a sound worker takes what fits");
                return;
            }
        };
        let offered = self.places.values_mut().filter(|place| **place == Place::Offered(id));
        offered.for_each(|old| *old = place);
    }

    /// What is not listed is not there; what is listed runs, or its UPDATE follows.
    fn reconcile(&mut self, hello: &Hello) {
        let listed: BTreeSet<WireTaskId> = hello.running.iter().map(|running| running.id()).collect();
        for (id, place) in &mut self.places {
            match (*place, listed.contains(id)) {
                (Place::Unknown | Place::Running, false) => *place = Place::Waiting,
                (Place::Unknown, true) => *place = Place::Running,
                (Place::Waiting | Place::Offered(_), true) => panic!("{id:?} is listed and was never given out"),
                _ => {}
            }
        }
    }
}
