//! A job worker that sends false frames: tasks that it does not have, and ends of others' tasks.

use turno_proto::foreman::{
    Counts, ErrorCode, ForemanFrame, Hello, Running, StatusUpdate, WireTaskId, decode, encode, split,
};

use crate::rng::Rng;

/// Processors it says it has.
const PROCS: u16 = 4;

#[derive(Debug, Default)]
pub(crate) struct Liar {
    name: String,
    inbox: Vec<u8>,
    pub(crate) out: Vec<u8>,
    /// Its next number; even ones are a worker's.
    next: u32,
    /// Tasks that it was given, on any connection.
    given: Vec<(WireTaskId, u32)>,
    /// It has nothing, wants nothing, and says so.
    repents: bool,
}

impl Liar {
    pub(crate) fn new(name: String) -> Self {
        Self { name, ..Self::default() }
    }

    pub(crate) const fn repent(&mut self) {
        self.repents = true;
    }

    /// The connection stands.
    pub(crate) fn connected(&mut self, rng: &mut Rng) {
        self.inbox.clear();
        self.out.clear();
        self.greet(rng);
    }

    fn greet(&mut self, rng: &mut Rng) {
        self.next = 2;
        let mut running: Vec<Running> = Vec::new();
        for _ in 0..if self.repents { 0 } else { rng.range(0, 6) } {
            let (WireTaskId { job, task }, attempt) = self.some_task(rng);
            running.push(Running { job, task, attempt, procs: 1 });
        }
        running.sort_by_key(|running| (running.job, running.task));
        running.dedup_by_key(|running| (running.job, running.task));
        let num_procs = if self.repents { 0 } else { PROCS };
        let hello = Hello { num_procs, running, name: self.name.clone(), id: self.name.clone(), ..Hello::default() };
        encode(&ForemanFrame::Hello { seq: 0, hello: Some(hello) }, &mut self.out);
    }

    /// One of its own, or one that it knows nothing of.
    fn some_task(&self, rng: &mut Rng) -> (WireTaskId, u32) {
        if !self.given.is_empty() && rng.once_in(2) {
            return self.given[rng.index(self.given.len())];
        }
        let small = |number: u64| u32::try_from(number).expect("small");
        (WireTaskId { job: rng.range(0, 9), task: small(rng.range(0, 14)) }, small(rng.range(0, 4)))
    }

    /// Says something from time to time.
    pub(crate) fn speak(&mut self, rng: &mut Rng) {
        if self.repents || self.next == 0 {
            return;
        }
        for _ in 0..rng.range(0, 3) {
            let (WireTaskId { job, task }, attempt) = self.some_task(rng);
            let attempt = attempt.saturating_sub(u32::from(rng.once_in(4)));
            let update = StatusUpdate { job, task, attempt, success: rng.once_in(2), ..StatusUpdate::default() };
            for _ in 0..rng.range(1, 3) {
                encode(&ForemanFrame::Update { seq: self.next, update: update.clone() }, &mut self.out);
                self.next += 2;
            }
        }
        if rng.once_in(12) {
            encode(&ForemanFrame::Reset { seq: self.next, last: 0 }, &mut self.out);
            self.next = 0;
        } else if rng.once_in(12) {
            self.greet(rng);
        }
    }

    pub(crate) fn hear(&mut self, bytes: &[u8], rng: &mut Rng) {
        self.inbox.extend_from_slice(bytes);
        let inbox = std::mem::take(&mut self.inbox);
        let mut used = 0;
        while let Ok(Some(piece)) = split(&inbox[used..], usize::MAX) {
            used += piece.used;
            if let Ok(frame) = decode(&piece) {
                self.take(frame, rng);
            }
        }
        self.inbox = inbox[used..].to_vec();
    }

    fn take(&mut self, frame: ForemanFrame, rng: &mut Rng) {
        let seq = frame.seq();
        let counts = Counts { nrun: 1, nproc: PROCS - 1 };
        self.next = self.next.max((seq + 1).next_multiple_of(2));
        let answer = match frame {
            ForemanFrame::Ok { .. }
            | ForemanFrame::Error { .. }
            | ForemanFrame::Hello { .. }
            | ForemanFrame::Update { .. } => return,
            ForemanFrame::Reset { .. } => {
                encode(&ForemanFrame::Reset { seq, last: 0 }, &mut self.out);
                return self.greet(rng);
            }
            ForemanFrame::Job { tasks, .. } => match rng.range(0, 6) {
                0 => return,
                1 => ForemanFrame::Error { seq, code: ErrorCode::NoProcs, arg0: counts.to_word() },
                2 => ForemanFrame::Error { seq, code: ErrorCode::BadMessage, arg0: 0 },
                _ => {
                    self.given.extend(tasks.iter().map(|task| (task.id(), task.attempt)));
                    ForemanFrame::Ok { seq, counts }
                }
            },
            ForemanFrame::Cancel { .. } | ForemanFrame::Stop { .. } => match rng.range(0, 4) {
                0 => return,
                1 => ForemanFrame::Error { seq, code: ErrorCode::NoSuchJob, arg0: 0 },
                _ => ForemanFrame::Ok { seq, counts },
            },
        };
        encode(&answer, &mut self.out);
    }
}
