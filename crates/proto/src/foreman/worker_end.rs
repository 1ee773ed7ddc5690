//! The worker's end of a connection, without its socket. It outlives connections: tasks go on when one is lost, and
//! their ends are reported on the next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::encode::body as encode_body;
use super::end::End;
use super::numbering::{Next, RequestNumbering, Sent};
use super::request::ToForeman;
use super::table::Table;
use super::{
    CloseReason, ConnectionNote, Counts, ErrorCode, ForemanFrame, ForemanKind, ForemanSettings, Hello, Role, Running,
    StatusUpdate, Stop, Task, TaskPair, WireTaskId, WorkerEndState, WorkerEvent, encode,
};
use crate::model::{Mono, limits};

/// The count of processors has no room in the pair of an OK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a worker has at most {max} processors", max = limits::FOREMAN_PROCS_MAX)]
pub struct TooManyProcs;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkerPhase {
    Apart,
    Init0 { until: Mono },
    Init1,
    Loop,
    Exit0,
    Exit1,
}

/// The worker's end.
#[derive(Clone, Debug)]
pub struct Worker {
    settings: ForemanSettings,
    name: String,
    id: String,
    labels: BTreeMap<String, String>,
    line: RequestNumbering<ToForeman>,
    phase: WorkerPhase,
    /// Whether the foreman's first OK came on this count.
    bannered: bool,
    /// A difference of counts was found, and no UPDATE since then showed equal ones.
    mismatched: bool,
    /// A number was refused, and no UPDATE was taken since then.
    misnumbered: bool,
    tasks: Table,
    out: Vec<u8>,
    events: VecDeque<WorkerEvent>,
}

impl Worker {
    /// A worker with so many processors. `id` is what it is known by across connections.
    pub fn new(
        name: impl Into<String>,
        id: impl Into<String>,
        procs: u16,
        settings: ForemanSettings,
    ) -> Result<Self, TooManyProcs> {
        if procs > limits::FOREMAN_PROCS_MAX {
            return Err(TooManyProcs);
        }
        Ok(Self {
            settings,
            name: name.into(),
            id: id.into(),
            labels: BTreeMap::new(),
            line: RequestNumbering::new(Role::Worker, &settings),
            phase: WorkerPhase::Apart,
            bannered: false,
            mismatched: false,
            misnumbered: false,
            tasks: Table::new(procs),
            out: Vec::new(),
            events: VecDeque::new(),
        })
    }

    /// Sets the worker's labels. The foreman is told with the next HELLO.
    pub fn set_labels(&mut self, labels: BTreeMap<String, String>) {
        self.labels = labels;
    }

    /// A connection was made.
    pub fn connect(&mut self, now: Mono) {
        self.disconnect();
        if self.phase == WorkerPhase::Apart {
            self.phase = WorkerPhase::Init0 { until: now.plus_millis(limits::FOREMAN_BANNER_MS) };
        }
    }

    /// The connection is gone. Tasks go on.
    pub fn disconnect(&mut self) {
        self.begin_anew();
        (self.mismatched, self.misnumbered) = (false, false);
        self.out.clear();
        if !self.is_over() {
            self.phase = WorkerPhase::Apart;
        }
    }

    /// Bytes came. Returns how many were used: the others are the start of a frame, to be given again with more.
    pub fn handle_bytes(&mut self, now: Mono, bytes: &[u8]) -> usize {
        self.take_bytes(now, bytes)
    }

    /// Handles a frame of the foreman.
    pub fn handle_frame(&mut self, now: Mono, frame: ForemanFrame) {
        self.take_frame(now, frame);
    }

    /// Something may be due.
    pub fn handle_timeout(&mut self, now: Mono) {
        if !self.is_connected() {
            return;
        }
        if self.line.reset_timed_out(now) {
            return self.close(CloseReason::ResetTimeout);
        }
        if let WorkerPhase::Init0 { until } = self.phase
            && now >= until
        {
            self.greet();
        }
        self.pump(now);
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn next_deadline(&self) -> Option<Mono> {
        match self.phase {
            WorkerPhase::Init0 { until } => Some(until),
            WorkerPhase::Init1 | WorkerPhase::Loop => self.line.next_deadline(),
            WorkerPhase::Apart | WorkerPhase::Exit0 | WorkerPhase::Exit1 => None,
        }
    }

    /// A task is gone; its processors are free. The attempt is filled in. False if it did not run here.
    pub fn task_ended(&mut self, now: Mono, update: StatusUpdate) -> bool {
        let Some(running) = self.tasks.take(update.id()) else { return false };
        let update = StatusUpdate { attempt: running.attempt, ..update };
        self.line.queue_mut().push_back(ToForeman::Update(update, running));
        self.pump(now);
        true
    }

    /// From now on not more than so many processors may be busy: the foreman is told with a HELLO. With 0 the worker ends
    /// in order when all its tasks have.
    pub fn shrink(&mut self, now: Mono, procs: u16) {
        self.tasks.set_max(procs.min(self.tasks.max()));
        // Before the greeting there is one to come anyway.
        let says_it = self.line.queue().iter().any(|saying| matches!(saying, ToForeman::Hello));
        if matches!(self.phase, WorkerPhase::Init1 | WorkerPhase::Loop) && !says_it {
            self.line.queue_mut().push_front(ToForeman::Hello);
        }
        self.pump(now);
    }

    /// Begins the numbers anew as soon as it can be done.
    pub fn reset(&mut self, now: Mono) {
        self.line.want_reset();
        self.pump(now);
    }

    /// Takes the next event, in order.
    pub fn poll_event(&mut self) -> Option<WorkerEvent> {
        self.events.pop_front()
    }

    /// Moves what is to be written to the end of `out`.
    pub fn take_output(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.out);
    }

    /// The protocol state.
    pub fn state(&self) -> WorkerEndState {
        match self.phase {
            WorkerPhase::Apart | WorkerPhase::Init0 { .. } => WorkerEndState::Init0,
            WorkerPhase::Init1 => WorkerEndState::Init1,
            WorkerPhase::Exit0 => WorkerEndState::Exit0,
            WorkerPhase::Exit1 => WorkerEndState::Exit1,
            WorkerPhase::Loop => match (self.line.open_request(), self.line.queue().is_empty()) {
                (Some(ToForeman::Update(..)), _) => WorkerEndState::Update1,
                (_, false) => WorkerEndState::Update0,
                _ => WorkerEndState::Loop0,
            },
        }
    }

    /// Processors in use and free.
    pub fn counts(&self) -> Counts {
        self.tasks.counts()
    }

    /// Processors that may be busy: those it began with, without those it was told to stop.
    pub const fn max_procs(&self) -> u16 {
        self.tasks.max()
    }

    /// Tasks that have ended and whose end the foreman has not confirmed.
    pub fn unconfirmed(&self) -> usize {
        self.unreported().count()
    }

    /// The tasks that run, by name.
    pub fn running(&self) -> impl Iterator<Item = &Running> {
        self.tasks.iter()
    }

    /// All of the tasks, or none.
    fn serve_job(&mut self, seq: u32, tasks: Vec<Task>) {
        let names: BTreeSet<_> = tasks.iter().map(Task::id).collect();
        if names.len() < tasks.len() || names.iter().any(|id| self.tasks.has(*id)) {
            self.note(ConnectionNote::BadBody { kind: ForemanKind::Job, seq });
            return self.reply(&ForemanFrame::Error { seq, code: ErrorCode::BadMessage, arg0: 0 });
        }
        let needs: u32 = tasks.iter().map(|task| u32::from(task.needs())).sum();
        let counts = self.counts();
        // Ended tasks that are not reported take no slots, but are in the next HELLO, which has its own limit.
        let unreported: u32 = self.unreported().map(|running| u32::from(running.needs())).sum();
        let listed = u32::from(counts.nrun) + unreported + needs;
        if needs > u32::from(counts.nproc) || listed > u32::from(limits::FOREMAN_PROCS_MAX) {
            return self.reply(&ForemanFrame::Error { seq, code: ErrorCode::NoProcs, arg0: counts.to_word() });
        }
        tasks.iter().for_each(|task| self.tasks.put(Running::from(task)));
        self.reply(&ForemanFrame::Ok { seq, counts: self.counts() });
        if !tasks.is_empty() {
            self.events.push_back(WorkerEvent::Start(tasks));
        }
    }

    /// Answered at once; the processors are free when the tasks are gone.
    fn serve_cancel(&mut self, seq: u32, pairs: &[TaskPair]) {
        let found = self.tasks.named(pairs);
        if found.is_empty() {
            return self.reply(&ForemanFrame::Error { seq, code: ErrorCode::NoSuchJob, arg0: 0 });
        }
        self.reply(&ForemanFrame::Ok { seq, counts: self.counts() });
        self.events.push_back(WorkerEvent::Cancel(found));
    }

    /// The foreman's first OK. It may come late, when HELLO has gone out without it: no worker is greeted with zeros
    /// that has something.
    fn is_banner(&self, frame: &ForemanFrame) -> bool {
        let early = match self.phase {
            WorkerPhase::Init0 { .. } => true,
            WorkerPhase::Init1 => !self.bannered && self.counts() != Counts::ZERO,
            _ => false,
        };
        early && *frame == ForemanFrame::Ok { seq: 0, counts: Counts::ZERO }
    }

    fn taken(&mut self, request: ToForeman, theirs: Counts) {
        self.line.good_answer();
        match request {
            ToForeman::Update(..) if theirs == Counts::SEND_HELLO => {
                // Not taken in: HELLO lists it, and it is said again.
                self.line.queue_mut().push_front(request);
                self.note(ConnectionNote::HelloWanted);
                self.hello_again();
            }
            ToForeman::Update(update, _) => {
                self.misnumbered = false;
                self.events.push_back(WorkerEvent::Reported(update.id()));
                self.compare(theirs, true);
            }
            ToForeman::Hello => {
                if self.phase == WorkerPhase::Init1 {
                    self.phase = WorkerPhase::Loop;
                    self.events.push_back(WorkerEvent::Greeted);
                }
                self.compare(theirs, false);
            }
        }
    }

    /// Both ends count alike when nothing is on its way; while something is, they may differ.
    fn compare(&mut self, theirs: Counts, after_update: bool) {
        let ours = self.counts();
        let quiet = self.line.is_idle() && self.line.queue().is_empty();
        if quiet && theirs != ours {
            self.note(ConnectionNote::Mismatch { ours, theirs });
            self.hello_again();
        } else if quiet && after_update {
            self.mismatched = false;
        }
    }

    fn hello_again(&mut self) {
        if std::mem::replace(&mut self.mismatched, true) {
            return self.close(CloseReason::MismatchAgain);
        }
        self.line.queue_mut().push_front(ToForeman::Hello);
    }

    fn refused(&mut self, now: Mono, request: ToForeman, code: ErrorCode) {
        let kind = request.kind();
        match (code, request) {
            (ErrorCode::Overflow, request) => {
                self.note(ConnectionNote::Later { kind });
                self.line.bounced(now, request);
            }
            (ErrorCode::BadSeq, request) => {
                self.note(ConnectionNote::Refused { kind, code });
                if std::mem::replace(&mut self.misnumbered, true) {
                    return self.close(CloseReason::BadSeqAgain);
                }
                self.line.queue_mut().push_front(request);
                self.line.want_reset();
            }
            (code, ToForeman::Hello) => self.close(CloseReason::HelloRefused(code)),
            (code, ToForeman::Update(update, _)) => {
                self.note(ConnectionNote::Refused { kind, code });
                self.events.push_back(WorkerEvent::NotReported { id: update.id(), code });
            }
        }
    }

    fn greet(&mut self) {
        self.phase = WorkerPhase::Init1;
        self.line.queue_mut().push_front(ToForeman::Hello);
    }

    fn begin_anew(&mut self) {
        self.line.restart();
        self.line.queue_mut().retain(|saying| matches!(saying, ToForeman::Update(..)));
        self.bannered = false;
    }

    /// Ended tasks that are not confirmed are listed too: their UPDATE follows, and until then the foreman need not wonder
    /// where they are.
    fn hello(&self) -> Hello {
        // Each task once, whatever attempts of it have ended before: the last one counts, and best one that runs.
        let listed: BTreeMap<WireTaskId, Running> =
            self.unreported().chain(self.tasks.iter()).map(|running| (running.id(), *running)).collect();
        Hello {
            num_procs: self.tasks.max(),
            running: listed.into_values().collect(),
            name: self.name.clone(),
            id: self.id.clone(),
            labels: self.labels.clone(),
        }
    }

    fn unreported(&self) -> impl Iterator<Item = &Running> {
        self.line.open_request().into_iter().chain(self.line.queue()).filter_map(|saying| match saying {
            ToForeman::Update(_, running) => Some(running),
            ToForeman::Hello => None,
        })
    }

    const fn is_over(&self) -> bool {
        matches!(self.phase, WorkerPhase::Exit0 | WorkerPhase::Exit1)
    }
}

impl End for Worker {
    type Own = ToForeman;

    fn line(&mut self) -> &mut RequestNumbering<ToForeman> {
        &mut self.line
    }

    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn body_bytes_max(&self) -> usize {
        self.settings.body_bytes_max
    }

    fn is_connected(&self) -> bool {
        matches!(self.phase, WorkerPhase::Init0 { .. } | WorkerPhase::Init1 | WorkerPhase::Loop)
    }

    fn serve(&mut self, frame: ForemanFrame) {
        let (kind, seq) = (frame.kind(), frame.seq());
        match frame {
            ForemanFrame::Stop { stop: Stop::Immediate, .. } => {
                self.reply(&ForemanFrame::Ok { seq, counts: Counts::ZERO });
                self.phase = WorkerPhase::Exit1;
                self.events.push_back(WorkerEvent::ExitNow);
            }
            // The first request is the worker's HELLO.
            _ if matches!(self.phase, WorkerPhase::Init0 { .. }) => {
                self.note(ConnectionNote::BadType { kind, seq });
                self.reply(&ForemanFrame::Error { seq, code: ErrorCode::BadMessage, arg0: 0 });
            }
            ForemanFrame::Job { tasks, .. } => self.serve_job(seq, tasks),
            ForemanFrame::Cancel { pairs, .. } => self.serve_cancel(seq, &pairs),
            ForemanFrame::Stop { stop, .. } => {
                self.tasks.set_max(stop.left_of(self.tasks.max()));
                self.reply(&ForemanFrame::Ok { seq, counts: self.counts() });
                self.events.push_back(WorkerEvent::Stopping { max: self.tasks.max() });
            }
            ForemanFrame::Ok { .. }
            | ForemanFrame::Error { .. }
            | ForemanFrame::Hello { .. }
            | ForemanFrame::Update { .. }
            | ForemanFrame::Reset { .. } => {}
        }
    }

    fn take_response(&mut self, now: Mono, frame: &ForemanFrame) {
        let (kind, seq) = (frame.kind(), frame.seq());
        if self.is_banner(frame) {
            self.bannered = true;
            if matches!(self.phase, WorkerPhase::Init0 { .. }) {
                self.greet();
            }
            return;
        }
        if let (Some(Sent::Reset), ForemanFrame::Error { code, .. }) = (self.line.waits_for(seq), frame) {
            return self.close(CloseReason::ResetRefused(*code));
        }
        let Some(request) = self.line.settle(seq) else { return self.note(ConnectionNote::Unsolicited { kind, seq }) };
        match frame {
            ForemanFrame::Ok { counts, .. } => self.taken(request, *counts),
            ForemanFrame::Error { code, .. } => self.refused(now, request, *code),
            _ => {}
        }
    }

    fn restart(&mut self, now: Mono) {
        self.note(ConnectionNote::Reset);
        self.begin_anew();
        self.phase = WorkerPhase::Init0 { until: now.plus_millis(limits::FOREMAN_BANNER_MS) };
    }

    fn send(&mut self, now: Mono) -> bool {
        if matches!(self.phase, WorkerPhase::Init0 { .. }) {
            return false;
        }
        let hello = matches!(self.line.queue().front(), Some(ToForeman::Hello)).then(|| self.hello());
        match self.line.next_send(now, self.phase == WorkerPhase::Loop, false) {
            None => return false,
            Some(Next::Reset(seq, last)) => encode(&ForemanFrame::Reset { seq, last }, &mut self.out),
            Some(Next::Request(seq, ToForeman::Hello)) => encode(&ForemanFrame::Hello { seq, hello }, &mut self.out),
            Some(Next::Request(seq, ToForeman::Update(update, _))) => {
                encode_body(&mut self.out, ForemanKind::Update, seq, update);
            }
        }
        true
    }

    fn pump(&mut self, now: Mono) {
        self.work_off(now);
        if self.phase == WorkerPhase::Loop
            && self.counts() == Counts::ZERO
            && self.line.is_idle()
            && self.line.queue().is_empty()
        {
            self.phase = WorkerPhase::Exit0;
            self.events.push_back(WorkerEvent::Exit);
        }
    }

    fn note(&mut self, note: ConnectionNote) {
        self.events.push_back(WorkerEvent::Note(note));
    }

    fn close(&mut self, reason: CloseReason) {
        self.phase = WorkerPhase::Apart;
        self.events.push_back(WorkerEvent::Close(reason));
    }
}
