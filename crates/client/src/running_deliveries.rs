//! Running deliveries of a worker: a task each, and their stop.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use turno_proto::headers;
use turno_proto::model::{Code, limits};
use turno_proto::native::ClosingReason;

use crate::command::Command;
use crate::core::{Handed, Held};
use crate::{Cancellation, Delivery, Error, Outcome, StopMode, WorkerEnd, WorkerEvent};

type Work = Pin<Box<dyn Future<Output = Outcome> + Send>>;
pub(crate) type Handler = Arc<dyn Fn(Delivery) -> Work + Send + Sync>;
pub(crate) type Observer = Arc<dyn Fn(WorkerEvent) + Send + Sync>;

/// An order of the owner of a running worker.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Control {
    Run,
    Drain { within: Duration },
    Now,
}

#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) in_flight: AtomicUsize,
    pub(crate) panics: AtomicU64,
}

/// How far a stop is.
#[derive(Clone, Copy, Debug)]
enum Stop {
    NotWanted,
    /// The handlers may finish.
    ExpectEnd {
        by: Option<Instant>,
    },
    /// The handlers were told to stop.
    ExpectCancelled {
        by: Instant,
    },
    /// Nothing any more.
    Over,
}

/// A request of the running deliveries to the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoreRequest {
    Nothing,
    Deregister,
    Close,
}

struct Task {
    cancel: watch::Sender<Option<Code>>,
    abort: AbortHandle,
}

pub(crate) struct RunningDeliveries {
    handler: Handler,
    observer: Option<Observer>,
    commands: mpsc::Sender<Command>,
    control: watch::Receiver<Control>,
    /// The owner is still there.
    owned: bool,
    counts: Arc<Counts>,
    running: HashMap<Held, Task>,
    stop: Stop,
    end: WorkerEnd,
    ended: watch::Sender<Option<WorkerEnd>>,
}

impl RunningDeliveries {
    pub(crate) fn new(
        handler: Handler,
        observer: Option<Observer>,
        commands: mpsc::Sender<Command>,
        control: watch::Receiver<Control>,
        counts: Arc<Counts>,
        ended: watch::Sender<Option<WorkerEnd>>,
    ) -> Self {
        Self {
            handler,
            observer,
            commands,
            control,
            owned: true,
            counts,
            running: HashMap::new(),
            stop: Stop::NotWanted,
            end: WorkerEnd::Stopped,
            ended,
        }
    }

    pub(crate) fn tell(&self, event: WorkerEvent) {
        if let Some(observer) = &self.observer {
            observer(event);
        }
    }

    /// Starts the handler, or says why it cannot be.
    pub(crate) fn take(&mut self, handed: Handed, frame_bytes_max: usize) -> Result<(), Outcome> {
        let (headers, body) =
            headers::decode(&handed.payload).map_err(|error| Outcome::failed_permanently(error.to_string()))?;
        let (cancel, cancelled) = watch::channel(None);
        let Handed { held, wants_reply, .. } = handed;
        let queue = handed.queue.to_string();
        let delivery = Delivery {
            id: handed.id,
            queue: queue.clone(),
            attempt: handed.attempt,
            cost: handed.cost.slots(),
            deadline: handed.deadline_ms.map(|ms| Duration::from_millis(u64::from(ms))),
            wants_reply,
            token: handed.token,
            headers,
            body,
            held,
            commands: self.commands.clone(),
            cancellation: Cancellation(cancelled),
            frame_bytes_max,
        };
        let work = CatchPanic((self.handler)(delivery));
        let (commands, counts, observer) = (self.commands.clone(), Arc::clone(&self.counts), self.observer.clone());
        let task = tokio::spawn(async move {
            let outcome = work.await.unwrap_or_else(|panic| {
                counts.panics.fetch_add(1, Ordering::Relaxed);
                if let Some(observer) = observer {
                    observer(WorkerEvent::Panicked { queue });
                }
                Outcome::failed(format!("the handler panicked: {}", words(&*panic)))
            });
            // No driver, no connection: then the broker has given the delivery to another worker.
            let _ = commands.send(Command::Settle { held, wants_reply, outcome }).await;
        });
        self.running.insert(held, Task { cancel, abort: task.abort_handle() });
        self.count();
        Ok(())
    }

    pub(crate) fn cancel(&self, held: Held, reason: Code) {
        if let Some(task) = self.running.get(&held) {
            task.cancel.send_replace(Some(reason));
        }
    }

    /// A handler that had to stop for the worker's own end leaves its delivery unsettled: when the connection
    /// closes the broker gives it to another worker, and no attempt counts.
    pub(crate) const fn gives_back(&self, outcome: &Outcome) -> bool {
        matches!((self.stop, outcome), (Stop::ExpectCancelled { .. }, Outcome::Failed(_)))
    }

    pub(crate) fn finished(&mut self, held: Held) {
        self.running.remove(&held);
        self.count();
    }

    /// Waits for the owner's next order.
    pub(crate) async fn control(&mut self) -> Control {
        if !self.owned {
            return std::future::pending().await;
        }
        if self.control.changed().await.is_ok() {
            return *self.control.borrow_and_update();
        }
        self.owned = false;
        Control::Now
    }

    pub(crate) fn obey(&mut self, control: Control) -> CoreRequest {
        match control {
            Control::Run => CoreRequest::Nothing,
            Control::Drain { within } => self.drain(Instant::now().checked_add(within)),
            Control::Now => self.stop_now(),
        }
    }

    pub(crate) fn closing(&mut self, reason: ClosingReason) -> CoreRequest {
        self.tell(WorkerEvent::Closing { reason });
        let mode = match reason {
            ClosingReason::Stop => StopMode::Drain,
            ClosingReason::Now => StopMode::Now,
            _ => return CoreRequest::Nothing,
        };
        self.end = WorkerEnd::StoppedByBroker(mode);
        match mode {
            StopMode::Drain => self.drain(None),
            StopMode::Now => self.stop_now(),
        }
    }

    /// The worker cannot go on: what still runs is told to stop.
    pub(crate) fn give_up(&mut self, error: Error) -> CoreRequest {
        self.end = WorkerEnd::GaveUp(error);
        self.stop_now()
    }

    /// When [`RunningDeliveries::check`] has something to do although nothing happens.
    pub(crate) const fn next_deadline(&self) -> Option<Instant> {
        match self.stop {
            Stop::ExpectEnd { by } => by,
            Stop::ExpectCancelled { by } => Some(by),
            Stop::NotWanted | Stop::Over => None,
        }
    }

    /// Moves stopping on.
    pub(crate) fn check(&mut self) -> CoreRequest {
        let now = Instant::now();
        match self.stop {
            Stop::NotWanted | Stop::Over => CoreRequest::Nothing,
            Stop::ExpectEnd { .. } | Stop::ExpectCancelled { .. } if self.running.is_empty() => self.over(),
            Stop::ExpectEnd { by: Some(by) } if by <= now => {
                self.cancel_all();
                CoreRequest::Nothing
            }
            Stop::ExpectCancelled { by } if by <= now => {
                for task in self.running.values() {
                    task.abort.abort();
                }
                self.running.clear();
                self.count();
                self.over()
            }
            Stop::ExpectEnd { .. } | Stop::ExpectCancelled { .. } => CoreRequest::Nothing,
        }
    }

    /// The worker never began.
    pub(crate) const fn abandon(&mut self) {
        self.stop = Stop::Over;
    }

    /// No handler runs that stopping waits for.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self.stop, Stop::Over)
    }

    /// Tells the owner that everything has ended.
    pub(crate) fn end(self) {
        for task in self.running.values() {
            task.abort.abort();
        }
        self.ended.send_replace(Some(self.end));
    }

    fn drain(&mut self, by: Option<Instant>) -> CoreRequest {
        let first = matches!(self.stop, Stop::NotWanted);
        if matches!(self.stop, Stop::NotWanted | Stop::ExpectEnd { .. }) {
            self.stop = Stop::ExpectEnd { by };
        }
        if first { CoreRequest::Deregister } else { CoreRequest::Nothing }
    }

    fn stop_now(&mut self) -> CoreRequest {
        if matches!(self.stop, Stop::NotWanted | Stop::ExpectEnd { .. }) {
            self.cancel_all();
        }
        CoreRequest::Close
    }

    fn cancel_all(&mut self) {
        for task in self.running.values() {
            task.cancel.send_replace(Some(Code::Cancelled));
        }
        self.stop = Stop::ExpectCancelled { by: Instant::now() + Duration::from_millis(limits::CANCEL_GRACE_MS) };
    }

    const fn over(&mut self) -> CoreRequest {
        self.stop = Stop::Over;
        CoreRequest::Close
    }

    fn count(&self) {
        self.counts.in_flight.store(self.running.len(), Ordering::Relaxed);
    }
}

/// A handler's future that ends with the panic instead of passing it on.
struct CatchPanic(Work);

impl Future for CatchPanic {
    type Output = Result<Outcome, Box<dyn Any + Send>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // The future is never polled again after a panic, so nobody sees a state it left half changed.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(outcome)) => Poll::Ready(Ok(outcome)),
            Err(panic) => Poll::Ready(Err(panic)),
        }
    }
}

fn words(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}
