//! One end of a conversation; the test is the other one, and its owner.

use std::fmt::Debug;

use turno_proto::foreman::{
    Counts, ErrorCode, Foreman, ForemanAnswer, ForemanEvent, ForemanFrame, ForemanSettings, Hello, RequestId,
    StatusUpdate, Task, Ticket, WireTaskId, Worker, WorkerEvent, decode, encode, split,
};
use turno_proto::model::Mono;

/// What both ends can do.
pub(crate) trait End {
    type Event: Clone + Debug + PartialEq;
    fn bytes(&mut self, now: Mono, bytes: &[u8]) -> usize;
    fn timeout(&mut self, now: Mono);
    fn deadline(&self) -> Option<Mono>;
    fn output(&mut self) -> Vec<u8>;
    fn event(&mut self) -> Option<Self::Event>;
}

macro_rules! is_end {
    ($end:ty, $event:ty) => {
        impl End for $end {
            type Event = $event;

            fn bytes(&mut self, now: Mono, bytes: &[u8]) -> usize {
                self.handle_bytes(now, bytes)
            }

            fn timeout(&mut self, now: Mono) {
                self.handle_timeout(now);
            }

            fn deadline(&self) -> Option<Mono> {
                self.next_deadline()
            }

            fn output(&mut self) -> Vec<u8> {
                let mut out = Vec::new();
                self.take_output(&mut out);
                out
            }

            fn event(&mut self) -> Option<$event> {
                self.poll_event()
            }
        }
    };
}

is_end!(Worker, WorkerEvent);
is_end!(Foreman, ForemanEvent);

/// An end on a clock.
pub(crate) struct Seat<E> {
    pub(crate) end: E,
    pub(crate) now: Mono,
}

pub(crate) type WorkerSeat = Seat<Worker>;
pub(crate) type ForemanSeat = Seat<Foreman>;

impl<E: End> Seat<E> {
    /// Gives it a frame as bytes; returns what it wrote and told.
    pub(crate) fn hears(&mut self, frame: &ForemanFrame) -> (Vec<ForemanFrame>, Vec<E::Event>) {
        let mut bytes = Vec::new();
        encode(frame, &mut bytes);
        self.hears_bytes(&bytes)
    }

    pub(crate) fn hears_bytes(&mut self, bytes: &[u8]) -> (Vec<ForemanFrame>, Vec<E::Event>) {
        let used = self.end.bytes(self.now, bytes);
        assert_eq!(used, bytes.len(), "whole frames are used");
        self.look()
    }

    /// The owner does something.
    pub(crate) fn does(&mut self, act: impl FnOnce(&mut E, Mono)) -> (Vec<ForemanFrame>, Vec<E::Event>) {
        act(&mut self.end, self.now);
        self.look()
    }

    /// Time goes by.
    pub(crate) fn waits(&mut self, millis: u64) -> (Vec<ForemanFrame>, Vec<E::Event>) {
        self.now = self.now.plus_millis(millis);
        self.end.timeout(self.now);
        assert!(self.end.deadline().is_none_or(|at| at > self.now), "all that is due is done");
        self.look()
    }

    fn look(&mut self) -> (Vec<ForemanFrame>, Vec<E::Event>) {
        let events = std::iter::from_fn(|| self.end.event()).collect();
        (frames(&self.end.output()), events)
    }
}

impl WorkerSeat {
    /// A worker with a new connection.
    pub(crate) fn worker(procs: u16, settings: ForemanSettings) -> Self {
        let mut end = Worker::new("", "", procs, settings).expect("few processors");
        end.connect(Mono::ZERO);
        Self { end, now: Mono::ZERO }
    }

    /// A worker that has been greeted.
    pub(crate) fn greeted(procs: u16) -> Self {
        Self::greeted_with(procs, ForemanSettings::default())
    }

    pub(crate) fn greeted_with(procs: u16, settings: ForemanSettings) -> Self {
        let mut seat = Self::worker(procs, settings);
        assert_eq!(seat.hears(&ok(0, 0, 0)), (vec![hello(0, procs)], vec![]));
        assert_eq!(seat.hears(&ok(0, 0, procs)), (vec![], vec![WorkerEvent::Greeted]));
        seat
    }

    /// A task ends well.
    pub(crate) fn ends(&mut self, task: u32) -> (Vec<ForemanFrame>, Vec<WorkerEvent>) {
        self.does(|worker, now| assert!(worker.task_ended(now, update_of(task)), "it runs"))
    }
}

impl ForemanSeat {
    /// A foreman with a new connection, which has said OK(0).
    pub(crate) fn foreman(settings: ForemanSettings) -> Self {
        let mut seat = Self { end: Foreman::new(settings), now: Mono::ZERO };
        assert_eq!(seat.does(Foreman::connect), (vec![ok(0, 0, 0)], vec![]));
        seat
    }

    /// A foreman that has greeted a worker with so many processors.
    pub(crate) fn greeted(procs: u16) -> Self {
        Self::greeted_with(procs, ForemanSettings::default())
    }

    pub(crate) fn greeted_with(procs: u16, settings: ForemanSettings) -> Self {
        let mut seat = Self::foreman(settings);
        seat.greet(procs);
        seat
    }

    /// HELLO comes, the owner answers it.
    pub(crate) fn greet(&mut self, procs: u16) {
        let (frames, events) = self.hears(&hello(0, procs));
        assert_eq!(frames, []);
        let (frames, events) = self.answers(ticket(&events), ForemanAnswer::Ok);
        assert_eq!(frames.first(), Some(&ok(0, 0, procs)));
        assert!(events.contains(&ForemanEvent::Ready { room: procs }) || frames.len() > 1, "{events:?}");
    }

    pub(crate) fn answers(&mut self, ticket: Ticket, answer: ForemanAnswer) -> (Vec<ForemanFrame>, Vec<ForemanEvent>) {
        self.does(|foreman, now| assert!(foreman.answer(now, ticket, answer), "it waits for an answer"))
    }

    /// Offers tasks of one processor each.
    pub(crate) fn offers(&mut self, id: u64, tasks: &[u32]) -> (Vec<ForemanFrame>, Vec<ForemanEvent>) {
        let tasks = tasks.iter().map(|task| task_of(*task)).collect();
        self.does(|foreman, now| foreman.offer(now, RequestId(id), tasks))
    }
}

/// The ticket among these events.
pub(crate) fn ticket(events: &[ForemanEvent]) -> Ticket {
    let found = events.iter().find_map(|event| match event {
        ForemanEvent::Hello { ticket, .. } | ForemanEvent::Update { ticket, .. } => Some(*ticket),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no request waits: {events:?}"))
}

pub(crate) fn frames(mut bytes: &[u8]) -> Vec<ForemanFrame> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let piece = split(bytes, usize::MAX).expect("frames are written").expect("and whole ones");
        frames.push(decode(&piece).expect("sound ones"));
        bytes = &bytes[piece.used..];
    }
    frames
}

pub(crate) const JOB: u64 = 7;

pub(crate) fn id_of(task: u32) -> WireTaskId {
    WireTaskId { job: JOB, task }
}

pub(crate) fn task_of(task: u32) -> Task {
    Task { task, job: JOB, ..Task::default() }
}

pub(crate) fn update_of(task: u32) -> StatusUpdate {
    StatusUpdate { job: JOB, task, success: true, status: "done".into(), ..StatusUpdate::default() }
}

pub(crate) fn ok(seq: u32, nrun: u16, nproc: u16) -> ForemanFrame {
    ForemanFrame::Ok { seq, counts: Counts { nrun, nproc } }
}

pub(crate) fn error(seq: u32, code: ErrorCode, arg0: u32) -> ForemanFrame {
    ForemanFrame::Error { seq, code, arg0 }
}

pub(crate) fn hello(seq: u32, num_procs: u16) -> ForemanFrame {
    ForemanFrame::Hello { seq, hello: Some(Hello { num_procs, ..Hello::default() }) }
}

pub(crate) fn job(seq: u32, tasks: &[u32]) -> ForemanFrame {
    ForemanFrame::Job { seq, tasks: tasks.iter().map(|task| task_of(*task)).collect() }
}

pub(crate) fn update(seq: u32, task: u32) -> ForemanFrame {
    ForemanFrame::Update { seq, update: update_of(task) }
}

pub(crate) fn reset(seq: u32, last: u32) -> ForemanFrame {
    ForemanFrame::Reset { seq, last }
}
