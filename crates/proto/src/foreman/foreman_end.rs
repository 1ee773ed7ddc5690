//! The foreman's end of a connection to one worker, without its socket.
//!
//! The owner decides which tasks go where and what is recorded; this end keeps the account of the worker's processors,
//! the order of the conversation, and gives every request of the owner exactly one end.

use std::collections::VecDeque;

use super::encode::body as encode_body;
use super::end::End;
use super::numbering::{Next, RequestNumbering, Sent};
use super::request::{ToWorker, held_hello};
use super::table::Table;
use super::{
    CloseReason, ConnectionNote, Counts, ErrorCode, ForemanAnswer, ForemanEvent, ForemanFrame, ForemanKind,
    ForemanSettings, ForemanState, Hello, Outcome, RequestId, Role, Running, StatusUpdate, Stop, Task, TaskPair,
    Ticket, encode,
};
use crate::model::{Mono, limits};
use crate::native::HEADER_LEN;

/// A request of the worker that the owner has.
#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    ticket: Ticket,
    seq: u32,
    kind: ForemanKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ForemanPhase {
    Init0,
    Init1 { until: Mono },
    Init2,
    Loop,
    Exit,
}

/// The foreman's end.
#[derive(Clone, Debug)]
pub struct Foreman {
    settings: ForemanSettings,
    line: RequestNumbering<ToWorker>,
    phase: ForemanPhase,
    open: Option<OpenRequest>,
    tickets: u64,
    /// Whether a HELLO came on this connection.
    met: bool,
    /// Processors of a worker that does not say how many it has, and whether this one does not.
    registered: u16,
    unsaid: bool,
    tasks: Table,
    /// The worker refused what it had room for: nothing is offered until then.
    rest_until: Option<Mono>,
    /// The owner knows of the room there is.
    announced: bool,
    /// A number was refused, and no request was done since then.
    misnumbered: bool,
    out: Vec<u8>,
    events: VecDeque<ForemanEvent>,
}

impl Foreman {
    /// The end of a connection that is yet to be made.
    pub fn new(settings: ForemanSettings) -> Self {
        Self {
            settings,
            line: RequestNumbering::new(Role::Foreman, &settings),
            phase: ForemanPhase::Init0,
            open: None,
            tickets: 0,
            met: false,
            registered: 0,
            unsaid: false,
            tasks: Table::default(),
            rest_until: None,
            announced: false,
            misnumbered: false,
            out: Vec::new(),
            events: VecDeque::new(),
        }
    }

    /// The connection was made: says OK(0).
    pub fn connect(&mut self, now: Mono) {
        if self.phase == ForemanPhase::Init0 {
            encode(&ForemanFrame::Ok { seq: 0, counts: Counts::ZERO }, &mut self.out);
            self.phase = ForemanPhase::Init1 { until: now.plus_millis(limits::FOREMAN_HELLO_MS) };
        }
    }

    /// The connection is gone. What the owner asked for has its end now.
    pub fn disconnect(&mut self) {
        if self.phase != ForemanPhase::Exit {
            self.leave();
        }
    }

    /// Bytes came. Returns how many were used: the others are the start of a frame, to be given again with more.
    pub fn handle_bytes(&mut self, now: Mono, bytes: &[u8]) -> usize {
        self.take_bytes(now, bytes)
    }

    /// Handles a frame of the worker.
    pub fn handle_frame(&mut self, now: Mono, frame: ForemanFrame) {
        self.take_frame(now, frame);
    }

    /// Something may be due.
    pub fn handle_timeout(&mut self, now: Mono) {
        match self.phase {
            ForemanPhase::Init0 | ForemanPhase::Exit => return,
            ForemanPhase::Init1 { until } if now >= until => return self.close(CloseReason::NoHello),
            _ if self.line.reset_timed_out(now) => return self.close(CloseReason::ResetTimeout),
            _ => {}
        }
        self.pump(now);
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn next_deadline(&self) -> Option<Mono> {
        match self.phase {
            ForemanPhase::Init0 | ForemanPhase::Exit => None,
            ForemanPhase::Init1 { until } => Some(until),
            ForemanPhase::Init2 | ForemanPhase::Loop => {
                self.line.next_deadline().into_iter().chain(self.rest_until).min()
            }
        }
    }

    /// How many processors a worker has that says HELLO without saying so. Call it before HELLO is answered.
    pub fn set_procs(&mut self, procs: u16) {
        self.registered = procs.min(limits::FOREMAN_PROCS_MAX);
        if self.unsaid {
            self.tasks.set_max(self.registered);
        }
    }

    /// Answers a HELLO or UPDATE. False if that was answered already, or the connection began anew.
    pub fn answer(&mut self, now: Mono, ticket: Ticket, answer: ForemanAnswer) -> bool {
        let Some(OpenRequest { seq, kind, .. }) = self.open.take_if(|open| open.ticket == ticket) else { return false };
        let counts = match answer {
            ForemanAnswer::SendHello => Counts::SEND_HELLO,
            _ => self.counts(),
        };
        match answer {
            ForemanAnswer::Refuse(code) => {
                let arg0 = if code == ErrorCode::NoProcs { counts.to_word() } else { 0 };
                self.reply(&ForemanFrame::Error { seq, code, arg0 });
            }
            ForemanAnswer::Ok | ForemanAnswer::SendHello => self.reply(&ForemanFrame::Ok { seq, counts }),
        }
        if kind != ForemanKind::Update && self.phase == ForemanPhase::Init2 {
            let until = now.plus_millis(limits::FOREMAN_HELLO_MS);
            self.phase = if answer == ForemanAnswer::Ok { ForemanPhase::Loop } else { ForemanPhase::Init1 { until } };
        }
        self.announced = false;
        self.pump(now);
        true
    }

    /// Offers tasks: a JOB with all of them. They run if and when its end is [`Outcome::Ok`].
    pub fn offer(&mut self, now: Mono, id: RequestId, tasks: Vec<Task>) {
        self.wish(now, ToWorker::Job(id, tasks));
    }

    /// Cancels tasks. They are cancelled when the end is [`Outcome::Ok`]; each UPDATE comes when its task is gone.
    pub fn cancel(&mut self, now: Mono, id: RequestId, pairs: Vec<TaskPair>) {
        self.wish(now, ToWorker::Cancel(id, pairs));
    }

    /// Takes processors from the worker. [`Stop::Immediate`] goes before all else that waits.
    pub fn stop(&mut self, now: Mono, id: RequestId, stop: Stop) {
        self.wish(now, ToWorker::Stop(id, stop));
    }

    /// There are tasks to give out (JOB_QUEUED): tells of the room again, if there is any.
    pub fn job_queued(&mut self, now: Mono) {
        self.announced = false;
        self.pump(now);
    }

    /// Begins the numbers anew as soon as it can be done.
    pub fn reset(&mut self, now: Mono) {
        self.line.want_reset();
        self.pump(now);
    }

    /// Takes the next event, in order.
    pub fn poll_event(&mut self) -> Option<ForemanEvent> {
        self.events.pop_front()
    }

    /// Moves what is to be written to the end of `out`.
    pub fn take_output(&mut self, out: &mut Vec<u8>) {
        out.append(&mut self.out);
    }

    /// Bytes of the other end's requests that wait for their turn.
    pub fn held_bytes(&self) -> usize {
        self.line.held_bytes()
    }

    /// The protocol state.
    pub fn state(&self) -> ForemanState {
        match self.phase {
            ForemanPhase::Init0 => ForemanState::Init0,
            ForemanPhase::Init1 { .. } => ForemanState::Init1,
            ForemanPhase::Init2 => ForemanState::Init2,
            ForemanPhase::Loop if self.open.is_some() => ForemanState::Loop2,
            ForemanPhase::Loop if self.room() > 0 => ForemanState::Loop0,
            ForemanPhase::Loop => ForemanState::Loop1,
            ForemanPhase::Exit => ForemanState::Exit,
        }
    }

    /// The worker's processors in use and free, as far as this end knows. A task counts from the OK of its JOB to its
    /// UPDATE.
    pub fn counts(&self) -> Counts {
        self.tasks.counts()
    }

    /// Processors for which an offer would go out at once.
    pub fn room(&self) -> u16 {
        let quiet = self.line.is_idle() && self.line.queue().is_empty();
        let may = self.phase == ForemanPhase::Loop && quiet && self.rest_until.is_none();
        if may { self.counts().nproc } else { 0 }
    }

    /// The tasks that the worker has.
    pub fn running(&self) -> impl Iterator<Item = &Running> {
        self.tasks.iter()
    }

    fn serve_hello(&mut self, seq: u32, kind: ForemanKind, hello: Option<Hello>) {
        self.tasks = Table::new(hello.as_ref().map_or(self.registered, |hello| hello.num_procs));
        hello.iter().flat_map(|hello| &hello.running).for_each(|running| self.tasks.put(*running));
        self.unsaid = hello.is_none();
        self.rest_until = None;
        if self.phase != ForemanPhase::Loop {
            self.phase = ForemanPhase::Init2;
        }
        let ticket = self.hand_over(seq, kind);
        let again = std::mem::replace(&mut self.met, true);
        self.events.push_back(ForemanEvent::Hello { ticket, hello, again });
    }

    fn serve_update(&mut self, seq: u32, update: StatusUpdate) {
        let known = self.tasks.take_attempt(update.id(), update.attempt).is_some();
        let ticket = self.hand_over(seq, ForemanKind::Update);
        self.events.push_back(ForemanEvent::Update { ticket, update, known });
    }

    fn hand_over(&mut self, seq: u32, kind: ForemanKind) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.line.serving(seq);
        self.open = Some(OpenRequest { ticket, seq, kind });
        ticket
    }

    /// An old worker greets with OK(n): nothing runs. Some write n as the pair's second half, some as the whole number.
    fn greet_old(&mut self, seq: u32, counts: Counts) {
        let num_procs = if counts.nproc == 0 { counts.nrun } else { counts.nproc };
        if num_procs > limits::FOREMAN_PROCS_MAX {
            return self.note(ConnectionNote::BadBody { kind: ForemanKind::Ok, seq });
        }
        self.serve_hello(seq, ForemanKind::Ok, Some(Hello { num_procs, ..Hello::default() }));
    }

    fn done(&mut self, wish: ToWorker, counts: Counts) {
        self.line.good_answer();
        self.misnumbered = false;
        self.announced = false;
        match &wish {
            ToWorker::Job(_, tasks) => {
                let tasks = tasks.iter().map(Running::from);
                // A HELLO that came before this OK was written before the tasks were there: they belong into it.
                if let Some(hello) = held_hello(&mut self.line) {
                    hello.running.extend(tasks.clone());
                }
                tasks.for_each(|running| self.tasks.put(running));
                self.believe(counts);
            }
            ToWorker::Stop(_, stop) => {
                self.tasks.set_max(stop.left_of(self.tasks.max()));
                if let Some(hello) = held_hello(&mut self.line) {
                    hello.num_procs = stop.left_of(hello.num_procs);
                }
                self.believe(counts);
            }
            ToWorker::Cancel(..) => {}
        }
        self.end(&wish, Outcome::Ok(counts));
    }

    /// The worker's counts win, where nothing is on its way that would explain a difference. More free processors than
    /// believed are no news: an UPDATE will tell.
    fn believe(&mut self, theirs: Counts) {
        let ours = self.counts();
        if self.line.is_idle() && theirs.nproc < ours.nproc {
            self.note(ConnectionNote::Mismatch { ours, theirs });
            self.tasks.set_max(ours.nrun.saturating_add(theirs.nproc));
        }
    }

    fn refused(&mut self, now: Mono, wish: ToWorker, code: ErrorCode, arg0: u32) {
        let kind = wish.kind();
        self.announced = false;
        match code {
            ErrorCode::Overflow => {
                self.note(ConnectionNote::Later { kind });
                return self.line.bounced(now, wish);
            }
            ErrorCode::BadSeq => {
                self.note(ConnectionNote::Refused { kind, code });
                self.line.queue_mut().push_front(wish);
                if std::mem::replace(&mut self.misnumbered, true) {
                    return self.close(CloseReason::BadSeqAgain);
                }
                return self.line.want_reset();
            }
            ErrorCode::NoProcs | ErrorCode::NoSuchJob | ErrorCode::BadMessage | ErrorCode::Other(_) => {}
        }
        if code == ErrorCode::NoProcs {
            self.believe(Counts::from_word(arg0));
        }
        // Refused although there is room: the next offer must not follow at once, or the two would go on for ever.
        if kind == ForemanKind::Job && wish.needs() <= u32::from(self.counts().nproc) {
            self.note(ConnectionNote::Refused { kind, code });
            self.rest_until = Some(now.plus_millis(limits::FOREMAN_REST_MS));
        }
        let counts = if code == ErrorCode::NoProcs { Counts::from_word(arg0) } else { self.counts() };
        self.end(&wish, Outcome::Refused { code, counts });
    }

    fn wish(&mut self, now: Mono, wish: ToWorker) {
        if self.phase == ForemanPhase::Exit {
            return self.end(&wish, Outcome::NotSent);
        }
        self.announced = false;
        if wish.is_urgent() {
            self.line.queue_mut().push_front(wish);
        } else {
            self.line.queue_mut().push_back(wish);
        }
        self.pump(now);
    }

    fn send_next(&mut self, now: Mono, urgent: bool) -> bool {
        let start = self.out.len();
        match self.line.next_send(now, true, urgent) {
            None => return false,
            Some(Next::Reset(seq, last)) => encode(&ForemanFrame::Reset { seq, last }, &mut self.out),
            Some(Next::Request(seq, ToWorker::Job(_, tasks))) => {
                encode_body(&mut self.out, ForemanKind::Job, seq, tasks)
            }
            Some(Next::Request(seq, ToWorker::Cancel(_, pairs))) => {
                encode_body(&mut self.out, ForemanKind::Cancel, seq, pairs)
            }
            Some(Next::Request(seq, ToWorker::Stop(_, stop))) => {
                encode(&ForemanFrame::Stop { seq, stop: *stop }, &mut self.out);
            }
        }
        // The worker has the same limit and would close the connection: refused here, as it would be there.
        if self.out.len() - start > HEADER_LEN + self.settings.body_bytes_max {
            self.out.truncate(start);
            if let Some(wish) = self.line.take_back() {
                self.refused(now, wish, ErrorCode::BadMessage, 0);
            }
        }
        true
    }

    fn end(&mut self, wish: &ToWorker, outcome: Outcome) {
        self.events.push_back(ForemanEvent::Answered { id: wish.id(), kind: wish.kind(), outcome });
    }

    fn leave(&mut self) {
        self.phase = ForemanPhase::Exit;
        self.open = None;
        let (open, queue) = self.line.take_rest();
        open.iter().for_each(|wish| self.end(wish, Outcome::Unknown));
        queue.iter().for_each(|wish| self.end(wish, Outcome::NotSent));
    }
}

impl End for Foreman {
    type Own = ToWorker;

    fn line(&mut self) -> &mut RequestNumbering<ToWorker> {
        &mut self.line
    }

    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn body_bytes_max(&self) -> usize {
        self.settings.body_bytes_max
    }

    fn is_connected(&self) -> bool {
        matches!(self.phase, ForemanPhase::Init1 { .. } | ForemanPhase::Init2 | ForemanPhase::Loop)
    }

    fn serve(&mut self, frame: ForemanFrame) {
        match frame {
            ForemanFrame::Hello { seq, hello } => self.serve_hello(seq, ForemanKind::Hello, hello),
            // Nothing is known of this worker: it shall introduce itself, and then say it again.
            ForemanFrame::Update { seq, .. } if self.phase != ForemanPhase::Loop => {
                self.note(ConnectionNote::BadType { kind: ForemanKind::Update, seq });
                self.reply(&ForemanFrame::Ok { seq, counts: Counts::SEND_HELLO });
            }
            ForemanFrame::Update { seq, update } => self.serve_update(seq, update),
            ForemanFrame::Ok { .. }
            | ForemanFrame::Error { .. }
            | ForemanFrame::Job { .. }
            | ForemanFrame::Cancel { .. }
            | ForemanFrame::Stop { .. }
            | ForemanFrame::Reset { .. } => {}
        }
    }

    fn take_response(&mut self, now: Mono, frame: &ForemanFrame) {
        let (kind, seq) = (frame.kind(), frame.seq());
        if let (Some(Sent::Reset), ForemanFrame::Error { code, .. }) = (self.line.waits_for(seq), frame) {
            return self.close(CloseReason::ResetRefused(*code));
        }
        match (self.line.settle(seq), frame) {
            (Some(wish), ForemanFrame::Ok { counts, .. }) => self.done(wish, *counts),
            (Some(wish), ForemanFrame::Error { code, arg0, .. }) => self.refused(now, wish, *code, *arg0),
            (None, ForemanFrame::Ok { counts, .. }) if matches!(self.phase, ForemanPhase::Init1 { .. }) => {
                self.greet_old(seq, *counts);
            }
            _ => self.note(ConnectionNote::Unsolicited { kind, seq }),
        }
    }

    fn restart(&mut self, now: Mono) {
        self.note(ConnectionNote::Reset);
        self.line.restart();
        self.open = None;
        self.phase = ForemanPhase::Init0;
        self.connect(now);
    }

    fn send(&mut self, now: Mono) -> bool {
        if self.phase != ForemanPhase::Loop || !self.line.is_idle() {
            return false;
        }
        let Some(front) = self.line.queue().front() else { return self.send_next(now, false) };
        let fits = self.rest_until.is_none() && front.needs() <= u32::from(self.counts().nproc);
        if front.kind() == ForemanKind::Job && !fits {
            if let Some(wish) = self.line.queue_mut().pop_front() {
                self.end(&wish, Outcome::NotSent);
            }
            return true;
        }
        let urgent = front.is_urgent();
        self.send_next(now, urgent)
    }

    fn pump(&mut self, now: Mono) {
        if self.rest_until.is_some_and(|until| now >= until) {
            self.rest_until = None;
            self.announced = false;
        }
        self.work_off(now);
        let room = self.room();
        if room > 0 && !std::mem::replace(&mut self.announced, true) {
            self.events.push_back(ForemanEvent::Ready { room });
        }
    }

    fn note(&mut self, note: ConnectionNote) {
        self.events.push_back(ForemanEvent::Note(note));
    }

    fn close(&mut self, reason: CloseReason) {
        self.events.push_back(ForemanEvent::Close(reason));
        self.leave();
    }
}
