//! Client and worker for programs without async.
//!
//! The calls are those of [`crate::Client`] and [`crate::Worker`]; where those are awaited, these end with `.wait()`.
//!
//! ```
//! # let broker = turno_broker::Broker::start_loopback()?;
//! # let url = broker.url();
//! use std::time::Duration;
//! use turno_client::blocking::{Client, Worker};
//!
//! let worker = Worker::new(&url).queue("shout").slots(2).start(|delivery| delivery.body.to_ascii_uppercase())?;
//!
//! let client = Client::connect(&url)?;
//! let reply = client.request("shout", "good morning").timeout(Duration::from_secs(30)).wait()?;
//! assert_eq!(reply.body, "GOOD MORNING");
//! worker.stop(Duration::from_secs(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Connections live on a thread of their own. Calls block the thread they are made on: inside an async program use the
//! async client.

mod builders;
mod client;
mod runtime;
mod worker;

pub use self::builders::{
    Broadcast, BroadcastBuilder, NoReplyBuilder, PublishBuilder, ReplyStream, RequestBuilder, SendBuilder,
    SubscribeBuilder, Subscription,
};
pub use self::client::BlockingClient as Client;
pub use self::worker::{BlockingDelivery as Delivery, BlockingWorker as Worker, BlockingWorkerHandle as WorkerHandle};
