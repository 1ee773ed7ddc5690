//! The broker itself: its state, workers, messages, topics, links and ring. [`Client::admin`] is the way in.

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::limits::{PAGE_MAX, TOPIC_PAGE_MAX};
use turno_proto::model::{Filter, MessageId, Payload, Slots};

pub use turno_proto::model::link::view::{BrokerNode, LinkState, LinkView};
pub use turno_proto::model::ring::view::{MemberView, RingCounters, RingView};
pub use turno_proto::model::ring::{RingState, Sid};
pub use turno_proto::model::topic::view::{SubscriberView, TopicView};
pub use turno_proto::model::view::{
    BrokerView, Counters, DiskView, Explanation, HoldingView, JobsView, MemoryView, MessageKind, MessageState,
    MessageView, Reason, StandingView, WorkerKind, WorkerState, WorkerTaskView, WorkerView,
};
pub use turno_proto::model::zmq::{EndpointView, ZmqPeerView};

use crate::pages::{Pages, answer};
use crate::{Client, Error, Event, StopMode};

/// Calls about the broker; [`Client::admin`] returns it.
///
/// # Cancel safety
///
/// If the future of a call that changes something is dropped before it ends, the change may be made or not. The others change
/// nothing, except [`fetch_events`](Self::fetch_events).
///
/// ```
/// # let broker = turno_broker::Broker::start_loopback()?;
/// # let url = broker.url();
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// # let client = turno_client::Client::connect(&url).await?;
/// let stored = client.send("emails", "to: you").await?;
/// let explanation = client.admin().explain_message(stored.id).await?;
/// assert_eq!(explanation.because.to_string(), "no worker consumes the queue");
/// assert_eq!(client.admin().status().await?.ready, 1);
/// # Ok::<(), turno_client::Error>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Admin {
    client: Client,
}

/// Events that waited for a subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fetched {
    /// Oldest first.
    pub events: Vec<Event>,
    /// Events that were dropped since the last fetch because too many waited.
    pub missed: u64,
    /// Events that still wait.
    pub left: u64,
}

impl Admin {
    pub(crate) const fn new(client: Client) -> Self {
        Self { client }
    }

    /// The broker as a whole.
    pub async fn status(&self) -> Result<BrokerView, Error> {
        self.broker(AdminCall::Status).await
    }

    /// Drains the broker for maintenance: it takes and hands out no work until [`resume`](Self::resume). Running work may
    /// finish.
    pub async fn drain(&self) -> Result<BrokerView, Error> {
        self.broker(AdminCall::Drain).await
    }

    /// Ends the maintenance.
    pub async fn resume(&self) -> Result<BrokerView, Error> {
        self.broker(AdminCall::Resume).await
    }

    /// All workers, in order of id.
    pub fn workers(&self) -> Pages<WorkerView> {
        let client = self.client.clone();
        Pages::new(move |after| {
            let client = client.clone();
            async move {
                let call = AdminCall::WorkerLs { after, limit: PAGE_MAX };
                answer!(client, call, AdminAnswer::Workers { workers, next } => (workers, next.map(|worker| worker.0)))
            }
        })
    }

    /// One worker, by id or name, with the messages it has.
    pub async fn worker(&self, worker: impl Into<String>) -> Result<WorkerView, Error> {
        self.one_worker(AdminCall::WorkerShow { worker: worker.into() }).await
    }

    /// Changes the number of a worker's slots.
    pub async fn resize_worker(&self, worker: impl Into<String>, slots: impl Into<Slots>) -> Result<WorkerView, Error> {
        self.one_worker(AdminCall::WorkerResize { worker: worker.into(), slots: slots.into() }).await
    }

    /// Gives a worker no new work until [`resume_worker`](Self::resume_worker).
    pub async fn drain_worker(&self, worker: impl Into<String>) -> Result<WorkerView, Error> {
        self.one_worker(AdminCall::WorkerDrain { worker: worker.into() }).await
    }

    /// Gives a drained worker work again.
    pub async fn resume_worker(&self, worker: impl Into<String>) -> Result<WorkerView, Error> {
        self.one_worker(AdminCall::WorkerResume { worker: worker.into() }).await
    }

    /// Asks a worker to end.
    pub async fn stop_worker(&self, worker: impl Into<String>, mode: StopMode) -> Result<WorkerView, Error> {
        self.one_worker(AdminCall::WorkerStop { worker: worker.into(), now: mode == StopMode::Now }).await
    }

    /// Where a message is, and why.
    pub async fn explain_message(&self, id: MessageId) -> Result<Explanation, Error> {
        self.message(AdminCall::MessageExplain { id: id.to_string() }).await
    }

    /// Cancels a message, waiting or running, and gives its state before.
    pub async fn cancel_message(&self, id: MessageId) -> Result<Explanation, Error> {
        self.message(AdminCall::MessageCancel { id: id.to_string() }).await
    }

    /// Lets a message that waits for a time go on at once, or puts a dead letter back into its queue, and gives its state before.
    pub async fn retry_message(&self, id: MessageId) -> Result<Explanation, Error> {
        self.message(AdminCall::MessageRetry { id: id.to_string() }).await
    }

    /// Topics with recent events, in order.
    pub fn topics(&self) -> Pages<TopicView> {
        let client = self.client.clone();
        Pages::new(move |after| {
            let client = client.clone();
            async move {
                let call = AdminCall::TopicLs { after, limit: TOPIC_PAGE_MAX };
                answer!(client, call, AdminAnswer::Topics { topics, next } => (topics, next))
            }
        })
    }

    /// All subscribers.
    pub fn subscribers(&self) -> Pages<SubscriberView> {
        self.subscribers_by(None)
    }

    /// The subscribers that would get an event about this topic.
    pub fn subscribers_of(&self, topic: impl Into<String>) -> Pages<SubscriberView> {
        self.subscribers_by(Some(topic.into()))
    }

    /// A subscriber that the broker keeps under this id, and whose events are [fetched](Self::fetch_events). If it exists,
    /// it gets these filters too.
    pub async fn create_subscriber(
        &self,
        id: impl Into<String>,
        filters: impl IntoIterator<Item = Filter>,
    ) -> Result<SubscriberView, Error> {
        let filters = filters.into_iter().map(|filter| filter.to_string()).collect();
        self.one_subscriber(AdminCall::TopicCreate { id: id.into(), filters }).await
    }

    /// Takes up to `limit` events that wait for a subscriber.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped before it ends, the events may be lost: the broker removes them with its answer.
    pub async fn fetch_events(&self, id: impl Into<String>, limit: u32) -> Result<Fetched, Error> {
        let call = AdminCall::TopicRecv { id: id.into(), limit };
        let (views, missed, left) = answer!(self.client, call,
            AdminAnswer::Events { events, missed, left } => (events, missed, left))?;
        let mut events = Vec::with_capacity(views.len());
        for view in views {
            let payload = Payload { headers: view.headers, bytes: view.payload };
            events.push(Event::from_publisher(view.topic.parse()?, &payload));
        }
        Ok(Fetched { events, missed, left })
    }

    /// Removes a subscriber and the events that wait for it.
    pub async fn remove_subscriber(&self, id: impl Into<String>) -> Result<SubscriberView, Error> {
        self.one_subscriber(AdminCall::TopicDestroy { id: id.into() }).await
    }

    /// The links to other brokers, up or wanted.
    pub async fn links(&self) -> Result<Vec<LinkView>, Error> {
        answer!(self.client, AdminCall::LinkLs {}, AdminAnswer::Links { links } => links)
    }

    /// Links the broker to the one at this address, until it ends.
    pub async fn add_link(&self, address: impl Into<String>) -> Result<Vec<LinkView>, Error> {
        let call = AdminCall::LinkAdd { address: address.into() };
        answer!(self.client, call, AdminAnswer::Links { links } => links)
    }

    /// Removes a link, by its address or by the name or id of the broker at the other end.
    pub async fn remove_link(&self, link: impl Into<String>) -> Result<Vec<LinkView>, Error> {
        let call = AdminCall::LinkRm { link: link.into() };
        answer!(self.client, call, AdminAnswer::Links { links } => links)
    }

    /// The brokers that can be reached over links, and their links: the asked one first.
    pub async fn link_graph(&self) -> Result<Vec<BrokerNode>, Error> {
        answer!(self.client, AdminCall::LinkGraph {}, AdminAnswer::LinkGraph { brokers } => brokers)
    }

    /// The endpoints for ZeroMQ programs, with their peers.
    pub async fn zmq_endpoints(&self) -> Result<Vec<EndpointView>, Error> {
        answer!(self.client, AdminCall::ZmqLs {}, AdminAnswer::ZmqEndpoints { endpoints } => endpoints)
    }

    /// The ring as this broker sees it.
    pub async fn ring(&self) -> Result<RingView, Error> {
        self.one_ring(AdminCall::Ring {}).await
    }

    /// Joins the ring of the member that listens at this HOST:PORT.
    pub async fn join_ring(&self, next: impl Into<String>) -> Result<RingView, Error> {
        self.one_ring(AdminCall::RingJoin { next: next.into(), sid: None }).await
    }

    /// Leaves the ring.
    pub async fn leave_ring(&self) -> Result<RingView, Error> {
        self.one_ring(AdminCall::RingLeave {}).await
    }

    /// Ends all brokers of the ring. Only from the machine that the broker runs on.
    pub async fn shutdown_ring(&self) -> Result<RingView, Error> {
        self.one_ring(AdminCall::RingShutdown {}).await
    }

    async fn broker(&self, call: AdminCall) -> Result<BrokerView, Error> {
        answer!(self.client, call, AdminAnswer::Status { broker } => *broker)
    }

    async fn one_worker(&self, call: AdminCall) -> Result<WorkerView, Error> {
        answer!(self.client, call, AdminAnswer::Worker { worker } => *worker)
    }

    async fn message(&self, call: AdminCall) -> Result<Explanation, Error> {
        answer!(self.client, call, AdminAnswer::Message { explanation } => *explanation)
    }

    async fn one_ring(&self, call: AdminCall) -> Result<RingView, Error> {
        answer!(self.client, call, AdminAnswer::Ring { ring } => *ring)
    }

    fn subscribers_by(&self, topic: Option<String>) -> Pages<SubscriberView> {
        let client = self.client.clone();
        Pages::new(move |after| {
            let (client, topic) = (client.clone(), topic.clone());
            async move {
                let call = AdminCall::TopicSubscribers { topic, after, limit: PAGE_MAX };
                answer!(client, call, AdminAnswer::Subscribers { subscribers, next } => (subscribers, next))
            }
        })
    }

    async fn one_subscriber(&self, call: AdminCall) -> Result<SubscriberView, Error> {
        let answer = self.client.ask(call).await?;
        match answer {
            AdminAnswer::Subscribers { mut subscribers, .. } if subscribers.len() == 1 => Ok(subscribers.remove(0)),
            other => Err(Error::unexpected(&other)),
        }
    }
}
