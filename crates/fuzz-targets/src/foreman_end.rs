//! A foreman whose worker does anything.
//!
//! Layout: settings (2), then steps of one byte each with what they need.

use std::collections::{BTreeSet, VecDeque};

use turno_proto::foreman::{
    ErrorCode, Foreman, ForemanAnswer, ForemanEvent, ForemanState, RequestId, Role, Stop, Task, TaskPair, Ticket,
};
use turno_proto::model::Mono;

use crate::foreman_peer::{Peer, settings};
use turno_oracle::Bytes;

/// After every step: the counts follow from the tasks, all that is written is a foreman's to write, nothing is overdue, and
/// no request has two ends. When the connection is over, each has had its one.
pub fn foreman_end(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let mut foreman = Foreman::new(settings(&mut bytes));
    foreman.connect(Mono::ZERO);
    let mut run = ForemanRun {
        foreman,
        now: Mono::ZERO,
        peer: Peer::default(),
        tickets: VecDeque::new(),
        asked: BTreeSet::new(),
        next: 0,
        rest: Vec::new(),
    };
    while !bytes.is_empty() {
        run.step(&mut bytes);
        run.look();
    }
    run.foreman.disconnect();
    run.look();
    assert_eq!(run.foreman.state(), ForemanState::Exit);
    assert!(run.asked.is_empty(), "each request has its end: {:?}", run.asked);
}

struct ForemanRun {
    foreman: Foreman,
    now: Mono,
    peer: Peer,
    tickets: VecDeque<Ticket>,
    asked: BTreeSet<RequestId>,
    next: u64,
    /// Bytes that are no whole frame yet.
    rest: Vec<u8>,
}

impl ForemanRun {
    fn step(&mut self, bytes: &mut Bytes<'_>) {
        match bytes.byte() % 16 {
            0..=7 => {
                let said = self.peer.says(Role::Foreman, bytes);
                self.rest.extend(said);
                let used = self.foreman.handle_bytes(self.now, &self.rest);
                self.rest.drain(..used);
            }
            8 | 9 => {
                let answer = match bytes.byte() {
                    0..=199 => ForemanAnswer::Ok,
                    200..=219 => ForemanAnswer::SendHello,
                    code => ForemanAnswer::Refuse(ErrorCode::from_number(code - 219)),
                };
                if let Some(ticket) = self.tickets.pop_front() {
                    self.foreman.answer(self.now, ticket, answer);
                }
            }
            10 => self.now = self.now.plus_millis(u64::from(bytes.u16())),
            11 | 12 => {
                let id = self.request();
                let task = |_| Task { task: u32::from(bytes.byte() % 8), job: 1, ..Task::default() };
                let tasks = (0..1 + self.next % 3).map(task).collect();
                self.foreman.offer(self.now, id, tasks);
            }
            13 => {
                let id = self.request();
                self.foreman.cancel(self.now, id, vec![TaskPair { job: 1, task: Some(u32::from(bytes.byte())) }]);
            }
            14 => {
                let id = self.request();
                self.foreman.stop(self.now, id, Stop::from_word(u32::from(bytes.byte() % 3)));
            }
            _ => self.foreman.reset(self.now),
        }
    }

    fn request(&mut self) -> RequestId {
        self.next += 1;
        self.asked.insert(RequestId(self.next));
        RequestId(self.next)
    }

    fn look(&mut self) {
        self.foreman.handle_timeout(self.now);
        assert!(self.foreman.next_deadline().is_none_or(|at| at > self.now), "nothing is overdue");
        let mut out = Vec::new();
        self.foreman.take_output(&mut out);
        self.peer.reads(Role::Foreman, &out);
        while let Some(event) = self.foreman.poll_event() {
            match event {
                ForemanEvent::Hello { ticket, .. } | ForemanEvent::Update { ticket, .. } => {
                    self.tickets.push_back(ticket);
                }
                ForemanEvent::Answered { id, .. } => assert!(self.asked.remove(&id), "{id:?} ends twice"),
                ForemanEvent::Ready { room } => assert!(room > 0, "room is told of where there is some"),
                ForemanEvent::Note(_) | ForemanEvent::Close(_) => {}
            }
        }
        let busy: u16 = self.foreman.running().map(|running| running.needs()).sum();
        assert_eq!(self.foreman.counts().nrun, busy, "the foreman counts what runs");
        assert!(self.foreman.room() <= self.foreman.counts().nproc, "and offers no more than is free");
    }
}
