//! The load of a benchmark: many messages at a time, or each at its own moment.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use turno_client::{Client, Error};
use turno_proto::model::Code;

use super::tally::BenchTally;

/// Moments that have come and wait to be sent.
const DUE_MAX: usize = 1_024;

/// With a rate and a time, what was due at the very end is still sent within this.
const GRACE: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Send,
}

/// When a load is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadEnd {
    After(Duration),
    Count(u64),
}

/// The settings of a load.
pub(super) struct LoadPlan {
    pub(super) kind: Kind,
    pub(super) queue: String,
    pub(super) body: Bytes,
    /// How long a sent message is worth delivering.
    pub(super) ttl: Option<Duration>,
    /// For one answer.
    pub(super) timeout: Duration,
    pub(super) end: LoadEnd,
    /// Messages a second; without it as many as are answered.
    pub(super) rate: Option<u64>,
    /// Messages of one client that wait for their answer at a time.
    pub(super) parallel: usize,
}

/// A load that runs on this thread.
pub(super) struct Load {
    plan: LoadPlan,
    clients: Vec<Client>,
    start: Instant,
    begun: Cell<u64>,
    stop: watch::Sender<bool>,
    tally: RefCell<BenchTally>,
}

impl Load {
    pub(super) fn new(plan: LoadPlan, clients: Vec<Client>) -> Rc<Self> {
        let start = Instant::now();
        let (stop, _) = watch::channel(false);
        let tally = RefCell::new(BenchTally::new(start));
        Rc::new(Self { plan, clients, start, begun: Cell::new(0), stop, tally })
    }

    /// Runs to the end: every message that was begun has ended.
    pub(super) async fn run(self: Rc<Self>) {
        match self.plan.rate {
            Some(rate) => self.by_the_clock(rate).await,
            None => self.one_after_the_other().await,
        }
    }

    /// Begins no more; what has begun may end.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
    }

    pub(super) const fn plan(&self) -> &LoadPlan {
        &self.plan
    }

    pub(super) fn tally(&self) -> Ref<'_, BenchTally> {
        self.tally.borrow()
    }

    pub(super) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Messages that have begun and not ended.
    pub(super) fn in_flight(&self) -> u64 {
        self.begun.get().saturating_sub(self.tally().sent())
    }

    /// Messages that were due and for which there was no time.
    pub(super) fn unsent(&self) -> u64 {
        match (self.plan.rate, *self.stop.borrow()) {
            (Some(rate), false) => self.due_in_all(rate).saturating_sub(self.begun.get()),
            _ => 0,
        }
    }

    async fn one_after_the_other(self: Rc<Self>) {
        let mut lanes = JoinSet::new();
        for client in &self.clients {
            for _ in 0..self.plan.parallel {
                let (load, client) = (Rc::clone(&self), client.clone());
                lanes.spawn_local(async move {
                    while load.begin() {
                        load.one(&client, Instant::now()).await;
                    }
                });
            }
        }
        finish(lanes).await;
    }

    /// Each message has its moment, whatever became of those before it. What is late is late since that moment, so
    /// that a broker that stops for a while is not spared the questions of that while.
    async fn by_the_clock(self: Rc<Self>, rate: u64) {
        let (tell, mut moments) = mpsc::channel(DUE_MAX);
        let (start, total) = (self.start, self.due_in_all(rate));
        thread::spawn(move || pace(start, rate, total, &tell));
        let permits = Arc::new(Semaphore::new(self.plan.parallel * self.clients.len()));
        let mut over = std::pin::pin!(self.over());
        let mut calls = JoinSet::new();
        for client in self.clients.iter().cycle() {
            let moment = async {
                let permit = Arc::clone(&permits).acquire_owned().await;
                Some((permit.ok()?, moments.recv().await?))
            };
            let next = tokio::select! {
                next = moment => next,
                () = &mut over => None,
            };
            let Some((permit, since)) = next else { break };
            self.begun.set(self.begun.get() + 1);
            let (load, client) = (Rc::clone(&self), client.clone());
            calls.spawn_local(async move {
                load.one(&client, since).await;
                drop(permit);
            });
            while calls.try_join_next().is_some() {}
        }
        finish(calls).await;
    }

    /// Whether another message may begin; then it counts as begun.
    fn begin(&self) -> bool {
        let may = match self.plan.end {
            LoadEnd::After(time) => self.start.elapsed() < time,
            LoadEnd::Count(count) => self.begun.get() < count,
        };
        let may = may && !*self.stop.borrow();
        self.begun.set(self.begun.get() + u64::from(may));
        may
    }

    async fn one(&self, client: &Client, since: Instant) {
        let LoadPlan { kind, queue, body, ttl, timeout, .. } = &self.plan;
        let body_bytes = body.len() as u64;
        let end = match kind {
            Kind::Request => {
                let reply = client.request(queue, body.clone()).timeout(*timeout).await;
                reply.map(|reply| body_bytes + reply.body.len() as u64)
            }
            Kind::Send => {
                let send = client.send(queue, body.clone()).ttl(*ttl);
                let stored = tokio::time::timeout(*timeout, send).await;
                stored.unwrap_or_else(|_| Err(Error::from_code(Code::TimedOut, ""))).map(|_| body_bytes)
            }
        };
        self.tally.borrow_mut().take(since, Instant::now(), end);
    }

    /// Waits until nothing may begin any more.
    async fn over(&self) {
        let mut stop = self.stop.subscribe();
        let stopped = async {
            // The sender is ours: it cannot be gone.
            let _ = stop.wait_for(|stop| *stop).await;
        };
        match self.plan.end {
            LoadEnd::Count(_) => stopped.await,
            LoadEnd::After(time) => {
                let _ = tokio::time::timeout_at((self.start + time + GRACE).into(), stopped).await;
            }
        }
    }

    /// Messages that the plan has at that rate.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "rate times duration, both positive"
    )]
    fn due_in_all(&self, rate: u64) -> u64 {
        match self.plan.end {
            LoadEnd::Count(count) => count,
            LoadEnd::After(time) => (rate as f64 * time.as_secs_f64()).ceil() as u64,
        }
    }
}

/// Tells each moment when it has come. On a thread of its own, because the runtime's clock ticks in milliseconds.
#[expect(clippy::cast_precision_loss, reason = "moments, not ids")]
fn pace(start: Instant, rate: u64, total: u64, tell: &mpsc::Sender<Instant>) {
    for number in 0..total {
        let moment = start + Duration::from_secs_f64(number as f64 / rate as f64);
        thread::sleep(moment.saturating_duration_since(Instant::now()));
        if tell.blocking_send(moment).is_err() {
            return;
        }
    }
}

async fn finish(mut tasks: JoinSet<()>) {
    while let Some(end) = tasks.join_next().await {
        if let Err(Ok(panic)) = end.map_err(tokio::task::JoinError::try_into_panic) {
            std::panic::resume_unwind(panic);
        }
    }
}
