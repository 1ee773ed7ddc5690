//! Connections of job workers: bytes to inputs of the engine, and effects to bytes.
//!
//! The connection itself ([`Foreman`]) keeps the numbers, the order and the resets of the protocol. The engine knows
//! tasks; here frames become inputs and effects become frames, and nothing is decided.

use std::collections::BTreeMap;

use bytes::Bytes;
use tracing::{debug, warn};
use turno_engine::{ForemanEvent as Event, ForemanOrder, Hello, Input, OfferedTask, RunningTask, Update};
use turno_proto::foreman::{
    Foreman, ForemanAnswer, ForemanEvent, ForemanKind, ForemanSettings, Outcome, RequestId, StatusUpdate, Stop, Task,
    TaskFile, TaskPair, Ticket,
};
use turno_proto::model::job::{JobId, Work, WorkFile};
use turno_proto::model::{Code, ConnId, Mono};
use turno_proto::placeholders::{FilledCommand, PlaceholderValues};
use turno_proto::{items, placeholders, work};

use super::table::{Connection, ConnectionPhase, ConnectionTable, OUTBOX_KEPT_BYTES, PeerProtocol};
use super::{Connections, EngineHandle};

/// The foreman's end of a connection.
#[derive(Debug)]
pub(super) struct ForemanConnection {
    end: Foreman,
    /// UPDATEs that wait for the engine's answer, by the number it knows them by.
    tickets: BTreeMap<u32, Ticket>,
    last_ticket: u32,
}

impl ForemanConnection {
    pub(super) fn connect(now: Mono, settings: ForemanSettings) -> Self {
        let mut end = Foreman::new(settings);
        end.connect(now);
        Self { end, tickets: BTreeMap::new(), last_ticket: 0 }
    }

    /// Takes the bytes to write.
    pub(super) fn take_output(&mut self, out: &mut Vec<u8>) {
        self.end.take_output(out);
    }

    /// Bytes of requests that wait for their turn.
    pub(super) fn held_bytes(&self) -> usize {
        self.end.held_bytes()
    }

    pub(super) fn is_due(&self, now: Mono) -> bool {
        self.end.next_deadline().is_some_and(|at| at <= now)
    }

    /// The engine wants something said. What becomes of it is an event, now or later. False: the connection is to end.
    pub(super) fn obey(&mut self, now: Mono, order: ForemanOrder, last: &mut LastWork) -> bool {
        match order {
            ForemanOrder::Offer { offer, tasks } => self.end.offer(now, RequestId(offer), tasks_of(&tasks, last)),
            ForemanOrder::Cancel { cancel, job, task } => {
                self.end.cancel(now, RequestId(cancel), vec![TaskPair { job: job.0, task: Some(task) }]);
            }
            ForemanOrder::Stop => self.end.stop(now, RequestId(0), Stop::All),
            ForemanOrder::StopNow => self.end.stop(now, RequestId(0), Stop::Immediate),
            ForemanOrder::Acknowledge { request } => self.answer(now, request, ForemanAnswer::Ok),
            ForemanOrder::SendHello { request } => self.answer(now, request, ForemanAnswer::SendHello),
            ForemanOrder::Close { code } => {
                debug!(%code, "closing a job worker's connection");
                return false;
            }
        }
        true
    }

    fn answer(&mut self, now: Mono, request: u32, answer: ForemanAnswer) {
        // One that is not there was asked on the same connection before a RESET: the worker says it again.
        if let Some(ticket) = self.tickets.remove(&request) {
            self.end.answer(now, ticket, answer);
        }
    }

    fn keep_ticket(&mut self, ticket: Ticket) -> u32 {
        self.last_ticket = self.last_ticket.wrapping_add(1);
        self.tickets.insert(self.last_ticket, ticket);
        self.last_ticket
    }
}

/// The meaning of an event of the connection.
enum ForemanMeaning {
    Input(Event),
    /// The worker tells who it is; it is answered once the engine knows.
    Hello(Ticket, Hello),
    Nothing,
    End,
}

impl ForemanConnection {
    fn meaning_of(&mut self, event: ForemanEvent) -> ForemanMeaning {
        match event {
            ForemanEvent::Hello { ticket, hello, .. } => {
                let hello = hello.unwrap_or_default();
                let running = hello.running.iter().map(|running| RunningTask {
                    job: JobId(running.job),
                    task: running.task,
                    attempt: some(running.attempt),
                });
                let running = running.collect();
                let labels = hello.labels.into_iter().collect();
                let id = (!hello.id.is_empty()).then_some(hello.id);
                ForemanMeaning::Hello(ticket, Hello { id, name: hello.name, slots: hello.num_procs, running, labels })
            }
            ForemanEvent::Update { ticket, update, .. } => {
                let request = self.keep_ticket(ticket);
                ForemanMeaning::Input(Event::Update(update_of(request, update)))
            }
            ForemanEvent::Answered { id: RequestId(id), kind, outcome } => answered(id, kind, outcome),
            ForemanEvent::Ready { .. } => ForemanMeaning::Nothing,
            ForemanEvent::Note(note) => {
                debug!(%note, "a job worker disagrees with the broker");
                ForemanMeaning::Nothing
            }
            ForemanEvent::Close(reason) => {
                debug!(%reason, "closing a job worker's connection after a protocol error");
                ForemanMeaning::End
            }
        }
    }
}

fn answered(id: u64, kind: ForemanKind, outcome: Outcome) -> ForemanMeaning {
    match (kind, outcome) {
        // The connection is over: the engine hears of that.
        (_, Outcome::Unknown) => ForemanMeaning::Nothing,
        (ForemanKind::Job, Outcome::Ok(_)) => ForemanMeaning::Input(Event::Accepted { offer: id }),
        (ForemanKind::Job, Outcome::Refused { counts, .. }) => {
            ForemanMeaning::Input(Event::Refused { offer: id, slots_free: counts.nproc })
        }
        (ForemanKind::Job, Outcome::NotSent) => ForemanMeaning::Input(Event::Refused { offer: id, slots_free: 0 }),
        (ForemanKind::Cancel, Outcome::Ok(_)) => ForemanMeaning::Input(Event::Cancelled { cancel: id }),
        (ForemanKind::Cancel, Outcome::Refused { .. } | Outcome::NotSent) => {
            ForemanMeaning::Input(Event::NoSuchJob { cancel: id })
        }
        (ForemanKind::Stop, _) => ForemanMeaning::Input(Event::Stopped),
        _ => ForemanMeaning::Nothing,
    }
}

/// Old peers do not know of attempts.
fn some(attempt: u32) -> Option<u32> {
    (attempt > 0).then_some(attempt)
}

fn update_of(request: u32, update: StatusUpdate) -> Update {
    let StatusUpdate { job, task, success, status, attempt, exit_code, signal, started, ended, given_back, .. } =
        update;
    Update {
        request,
        job: JobId(job),
        task,
        attempt: some(attempt),
        success,
        given_back: given_back && !success,
        exit_code,
        signal,
        status,
        started_unix_ms: started,
        ended_unix_ms: ended,
    }
}

/// The command of one job's tasks, as bytes and parsed: one job's tasks follow each other, over all connections, and share
/// them.
#[derive(Debug, Default)]
pub(super) struct LastWork(Option<(Bytes, Work)>);

impl LastWork {
    /// The command of that task.
    fn of(&mut self, task: &OfferedTask) -> &Work {
        // The same bytes at the same place: these hold them, so that no others can be there.
        let same = |(bytes, _): &mut (Bytes, Work)| bytes.as_ptr_range() == task.work.as_ptr_range();
        let known = self.0.take_if(same);
        let (_, work) = self.0.insert(known.unwrap_or_else(|| {
            // It was read when the job was accepted.
            let work = work::decode(&task.work).unwrap_or_else(|error| {
                warn!(job = task.job.0, %error, "cannot read the tasks of a job");
                Work::default()
            });
            (task.work.clone(), work)
        }));
        work
    }
}

fn tasks_of(tasks: &[OfferedTask], last: &mut LastWork) -> Vec<Task> {
    tasks.iter().map(|task| task_of(task, last.of(task))).collect()
}

/// The task for the worker: its item or number is put in here, so that workers need to know nothing of placeholders.
fn task_of(task: &OfferedTask, work: &Work) -> Task {
    let item = items::get(&task.items, task.place);
    let FilledCommand { argv, cwd, env } =
        placeholders::fill(work, PlaceholderValues { task: task.task, item: item.as_deref() });
    let file = |file: &WorkFile| TaskFile { name: file.name.clone(), upload: file.upload, executable: file.executable };
    Task {
        task: task.task,
        job: task.job.0,
        name: task.name.to_string(),
        num_tasks: task.count,
        working_dir: cwd,
        logging_dir: work.out_dir.clone(),
        command: argv.join(" "),
        status: String::new(),
        attempt: task.attempt,
        argv,
        env: env.into_iter().collect(),
        procs: task.slots,
        time_limit: task.time_limit_ms.unwrap_or(0),
        dir_optional: work.cwd_optional,
        stdin: work.stdin,
        files: work.files.iter().map(file).collect(),
        collect: work.collect.clone(),
    }
}

impl ConnectionTable {
    /// The foreman's end of a job worker's connection, unless that is over.
    pub(super) fn foreman_mut(&mut self, id: ConnId) -> Option<&mut ForemanConnection> {
        let connection = self.get_mut(id).filter(|connection| !connection.is_doomed())?;
        match &mut connection.protocol {
            PeerProtocol::Foreman(protocol) => Some(protocol),
            PeerProtocol::Native(_) | PeerProtocol::Link(_) | PeerProtocol::Ring(_) | PeerProtocol::Zmtp(_) => None,
        }
    }

    /// Writes what the foreman's end wants written. It never asks for more than the worker has answered, so that, as
    /// with deliveries, the out-buffer is not what limits it.
    pub(super) fn flush_foreman(&mut self, id: ConnId) {
        let mut said = std::mem::take(&mut self.said);
        if let Some(protocol) = self.foreman_mut(id) {
            protocol.take_output(&mut said);
        }
        if !said.is_empty()
            && let Some(connection) = self.room_of(id)
        {
            connection.out.extend_from_slice(&said);
            connection.slot_limited += said.len();
            self.count_out(id);
        }
        said.clear();
        if said.capacity() <= OUTBOX_KEPT_BYTES {
            self.said = said;
        }
    }

    /// The connection of a job worker may have something to tell, or to write.
    pub(super) fn stirred(&mut self, id: ConnId) {
        if self.stirred.last() != Some(&id) {
            self.stirred.push(id);
        }
    }

    pub(super) fn take_stirred(&mut self) -> Option<ConnId> {
        self.stirred.pop()
    }

    /// The connection of a job worker is to end.
    pub(super) fn dismiss(&mut self, id: ConnId) {
        self.dismissed.push(id);
    }

    pub(super) fn take_dismissed(&mut self) -> Vec<ConnId> {
        std::mem::take(&mut self.dismissed)
    }

    /// The connections of job workers for which time has passed.
    pub(super) fn due_foremen(&self, now: Mono) -> Vec<ConnId> {
        let due = |connection: &&Connection| matches!(&connection.protocol, PeerProtocol::Foreman(protocol) if protocol.is_due(now));
        self.iter().filter(due).map(|connection| connection.id).collect()
    }
}

impl<D: EngineHandle> Connections<D> {
    /// These bytes came from a job worker. Returns how many of them made whole frames.
    pub(super) fn take_from_worker(&mut self, now: Mono, id: ConnId, bytes: &[u8]) -> usize {
        let Some(protocol) = self.table.foreman_mut(id) else { return bytes.len() };
        let used = protocol.end.handle_bytes(now, bytes);
        self.table.stirred(id);
        self.hear_workers(now);
        used
    }

    /// Time passed for the connections of job workers.
    pub(super) fn sweep_workers(&mut self, now: Mono) {
        for id in self.table.due_foremen(now) {
            if let Some(protocol) = self.table.foreman_mut(id) {
                protocol.end.handle_timeout(now);
            }
            self.table.stirred(id);
        }
        self.hear_workers(now);
    }

    /// Works off what the connections of job workers have to tell, and what follows from it.
    pub(super) fn hear_workers(&mut self, now: Mono) {
        while let Some(id) = self.table.take_stirred() {
            while let Some(protocol) = self.table.foreman_mut(id)
                && let Some(event) = protocol.end.poll_event()
            {
                match protocol.meaning_of(event) {
                    ForemanMeaning::Nothing => {}
                    ForemanMeaning::End => {
                        self.table.flush_foreman(id);
                        self.part(now, id, Code::Other);
                    }
                    ForemanMeaning::Input(event) => self.tell(now, id, event),
                    ForemanMeaning::Hello(ticket, hello) => self.greet_worker(now, id, ticket, hello),
                }
            }
            self.table.flush_foreman(id);
        }
        for id in self.table.take_dismissed() {
            self.part(now, id, Code::Other);
        }
    }

    fn tell(&mut self, now: Mono, conn: ConnId, event: Event) {
        self.engine_handle.put(now, Input::Foreman { conn, event: Box::new(event) }, &mut self.table);
    }

    fn greet_worker(&mut self, now: Mono, id: ConnId, ticket: Ticket, mut hello: Hello) {
        let Some(connection) = self.table.get_mut(id) else { return };
        let address = connection.address.clone();
        if hello.name.is_empty() {
            hello.name.clone_from(&address);
        }
        let first = connection.phase == ConnectionPhase::Greeting;
        if first {
            connection.phase = ConnectionPhase::Open;
            self.tell(now, id, Event::Connected { address });
        }
        self.tell(now, id, Event::Hello(hello));
        if let Some(protocol) = self.table.foreman_mut(id) {
            protocol.end.answer(now, ticket, ForemanAnswer::Ok);
        }
    }
}

#[cfg(test)]
mod tests;
