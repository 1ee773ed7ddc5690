//! The outbox with its connection and its clock.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, SetOnce};
use tokio::task::{AbortHandle, JoinSet};
use turno_client::{Client, Error, Options};
use turno_proto::model::archive::{OutputPiece, OutputStream};
use turno_proto::model::{Code, Mono, limits};
use turno_proto::native::admin::{AdminAnswer, AdminCall};

use super::attempt::AttemptId;
use super::core::Core;
use super::event::{CallId, Event, LossReason, Lost, OutboxAnswer, Ticket};
use super::patience::is_passing;

/// How long until the broker is tried again that would not even greet.
const GREET_AGAIN: Duration = Duration::from_secs(1);

/// The way of a worker's output to the broker, on a connection of its own. Clones are the same.
#[derive(Clone)]
pub(crate) struct Outbox {
    shared: Arc<Shared>,
    driver: AbortHandle,
}

struct Shared {
    /// The worker's id at the foreman.
    worker: String,
    start: Instant,
    client: SetOnce<Client>,
    /// Readers copy straight into it, at the speed of memory; a channel would copy everything twice. Held for as long as
    /// that takes, and never while something is awaited.
    outbox_state: Mutex<OutboxState>,
    /// There is something to do before the time for which the driver waits.
    wake: Notify,
    /// A call was answered.
    answered: Notify,
}

struct OutboxState {
    core: Core,
    /// Tasks that wait for room or for the end of an attempt.
    waiting: HashMap<Ticket, Arc<Notify>>,
    /// The time that the driver waits for.
    armed: Option<Mono>,
}

impl Outbox {
    /// Connects to the broker, and goes on trying for ever. Within a runtime.
    pub(crate) fn start(worker: &str, options: Options) -> Self {
        let start = Instant::now();
        let shared = Arc::new(Shared {
            worker: worker.to_owned(),
            start,
            client: SetOnce::new(),
            outbox_state: Mutex::new(OutboxState { core: Core::new(Mono::ZERO), waiting: HashMap::new(), armed: None }),
            wake: Notify::new(),
            answered: Notify::new(),
        });
        // The archive is that of the broker whose tasks run here: another one could do nothing with them.
        let options = options.retry_initial_connect().stay_while_draining();
        let driver = tokio::spawn(run(Arc::clone(&shared), options)).abort_handle();
        Self { shared, driver }
    }

    /// The worker's id at the foreman.
    pub(crate) fn worker(&self) -> &str {
        &self.shared.worker
    }

    /// Asks the broker, on the same connection. Without one it waits.
    pub(crate) async fn ask(&self, call: AdminCall) -> Result<AdminAnswer, Error> {
        self.shared.client.wait().await.admin_call(call).await
    }

    /// The worker ends: what has ended may still be handed in, for a moment. Tells what was lost since the start.
    pub(crate) async fn close(self) -> Lost {
        let quiet = async {
            loop {
                let answered = self.shared.answered.notified();
                if self.shared.outbox_state().core.is_quiet() {
                    return;
                }
                answered.await;
            }
        };
        let is_quiet = tokio::time::timeout(Duration::from_millis(limits::OUTBOX_CLOSE_MS), quiet).await.is_ok();
        self.driver.abort();
        let lost = self.shared.with(|core, _| core.close());
        if let Some(client) = self.shared.client.get().filter(|_| is_quiet) {
            client.close().await;
        }
        lost
    }

    #[cfg(test)]
    pub(super) fn is_told(&self) -> bool {
        self.shared.outbox_state().core.is_told()
    }

    pub(super) fn open(&self, id: AttemptId) -> (Ticket, Arc<Notify>) {
        let mut outbox_state = self.shared.outbox_state();
        let (ticket, wake) = (outbox_state.core.open(id), Arc::new(Notify::new()));
        outbox_state.waiting.insert(ticket, Arc::clone(&wake));
        (ticket, wake)
    }

    /// Whether the task may write on; if not, it is woken.
    pub(super) fn wrote(&self, ticket: Ticket, stream: OutputStream, bytes: &[u8]) -> bool {
        self.shared.with(|core, now| core.wrote(now, ticket, stream, bytes))
    }

    pub(super) fn has_room(&self, ticket: Ticket) -> bool {
        self.shared.outbox_state().core.has_room(ticket)
    }

    pub(super) fn end(&self, ticket: Ticket) {
        self.shared.with(|core, now| core.end(now, ticket));
    }

    pub(super) fn has_ended(&self, ticket: Ticket) -> bool {
        !self.shared.outbox_state().waiting.contains_key(&ticket)
    }

    pub(super) fn forget(&self, ticket: Ticket) {
        self.shared.with(|core, _| core.forget(ticket));
        self.shared.outbox_state().waiting.remove(&ticket);
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox").field("worker", &self.shared.worker).finish_non_exhaustive()
    }
}

impl Shared {
    fn now(&self) -> Mono {
        Mono::ZERO + self.start.elapsed()
    }

    fn outbox_state(&self) -> MutexGuard<'_, OutboxState> {
        // A panic while it was held is reported by its holder; the tables may be wrong, but not unsafe.
        self.outbox_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the core do something, and sees to what follows.
    fn with<T>(&self, act: impl FnOnce(&mut Core, Mono) -> T) -> T {
        let mut outbox_state = self.outbox_state();
        let told = act(&mut outbox_state.core, self.now());
        outbox_state.tell();
        let next = outbox_state.core.next_deadline();
        if next.is_some_and(|next| outbox_state.armed.is_none_or(|armed| next < armed)) {
            outbox_state.armed = next;
            self.wake.notify_one();
        }
        told
    }

    /// The calls that are due, and until when there is nothing else to do.
    fn due(&self) -> (Vec<(CallId, Vec<OutputPiece>)>, Option<Mono>) {
        let mut outbox_state = self.outbox_state();
        let now = self.now();
        outbox_state.core.handle_tick(now);
        let calls = std::iter::from_fn(|| outbox_state.core.poll_call(now)).collect();
        outbox_state.tell();
        outbox_state.armed = outbox_state.core.next_deadline();
        (calls, outbox_state.armed)
    }
}

impl OutboxState {
    /// Wakes those who wait, and says aloud what was lost.
    fn tell(&mut self) {
        while let Some(event) = self.core.poll_event() {
            match event {
                Event::Room(ticket) => {
                    if let Some(wake) = self.waiting.get(&ticket) {
                        wake.notify_one();
                    }
                }
                Event::Done(ticket) => self.end(ticket),
                Event::Lost { ticket, id, bytes, why, ended, first } => {
                    let AttemptId { job, task, attempt } = id;
                    if first {
                        tracing::warn!(%job, task, attempt, bytes, "output lost: {}", said(why));
                    }
                    if ended {
                        self.end(ticket);
                    }
                }
            }
        }
    }

    fn end(&mut self, ticket: Ticket) {
        if let Some(wake) = self.waiting.remove(&ticket) {
            wake.notify_one();
        }
    }
}

fn said(why: LossReason) -> &'static str {
    match why {
        LossReason::Silence => "the broker rejected it",
        LossReason::NotOurs => "the broker does not know this attempt",
        LossReason::Said(code) => code.text().what,
    }
}

/// Until it is aborted.
async fn run(shared: Arc<Shared>, options: Options) {
    let client = connect(options).await;
    // Nobody else sets it.
    let _ = shared.client.set(client.clone());
    let mut calls = JoinSet::new();
    loop {
        let (due, until) = shared.due();
        for (id, pieces) in due {
            let (client, worker) = (client.clone(), shared.worker.clone());
            calls.spawn(async move { (id, client.admin_call(AdminCall::TaskOutput { worker, pieces }).await) });
        }
        let left = until.map(|until| until.since(shared.now()));
        let alarm = async {
            match left {
                Some(left) => tokio::time::sleep(left).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            Some(ended) = calls.join_next() => {
                if let Ok((id, answer)) = ended {
                    shared.with(|core, now| core.handle_answer(now, id, meaning(answer)));
                    shared.answered.notify_waiters();
                }
            }
            () = shared.wake.notified() => {}
            () = alarm => {}
        }
    }
}

async fn connect(options: Options) -> Client {
    loop {
        match Client::connect(options.clone()).await {
            Ok(client) => return client,
            Err(error) => {
                tracing::warn!(%error, "no connection to the broker for task output");
                tokio::time::sleep(GREET_AGAIN).await;
            }
        }
    }
}

/// The meaning of a call's end for the output in it.
fn meaning(answer: Result<AdminAnswer, Error>) -> OutboxAnswer {
    match answer {
        Ok(AdminAnswer::OutputKept { per_task, follow, refused }) => OutboxAnswer::Kept { per_task, follow, refused },
        Ok(_) => OutboxAnswer::Refused(Code::Other),
        Err(error) if is_passing(error.code()) => OutboxAnswer::Again,
        Err(error) => OutboxAnswer::Refused(error.code()),
    }
}
