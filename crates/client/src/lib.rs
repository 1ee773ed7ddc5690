//! Rust client and worker of Turno.
//!
//! A [`Client`] makes requests and sends messages; a [`Worker`] takes work from queues; [`blocking::Client`] is
//! for programs without async. All of them keep one connection, move to the next broker of their list when it
//! is lost, and say with one [`Error`] what went wrong.
//!
//! # A request
//!
//! ```
//! # let broker = turno_broker::Broker::start_loopback()?;
//! # let url = broker.url();
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let worker = turno_client::Worker::new(turno_client::Options::try_from(&url)?).queue("greet");
//! # let running = worker.start(|d| async move { turno_client::Outcome::reply(d.body) }).await?;
//! use std::time::Duration;
//! use turno_client::{Client, Message};
//!
//! let client = Client::connect(&url).await?; // for example "turno://127.0.0.1:7460"
//! let reply = client.request("greet", "hello").await?;
//! assert_eq!(reply.body, "hello");
//!
//! let message = Message::new("hello").header("content-type", "text/plain").timeout(Duration::from_secs(2));
//! let stored = client.send("greet", message).await?;
//! assert_eq!(stored.durability.name(), "memory");
//! client.close().await;
//! # running.stop(Duration::from_secs(1)).await;
//! # Ok::<(), turno_client::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A worker
//!
//! ```
//! # let broker = turno_broker::Broker::start_loopback()?;
//! # let url = broker.url();
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use std::time::Duration;
//! use turno_client::{Client, Options, Outcome, Slots, Worker};
//!
//! let worker = Worker::new(Options::try_from(&url)?).queue("resize").slots(Slots::Limited(4)).name("pixel-1");
//! let running = worker
//!     .start(|delivery| async move {
//!         match delivery.body.len() {
//!             0 => Outcome::failed("an image has at least one byte"),
//!             size => Outcome::reply(format!("{size} bytes")),
//!         }
//!     })
//!     .await?;
//!
//! let client = Client::connect(&url).await?;
//! assert_eq!(client.request("resize", "1234").await?.body, "4 bytes");
//! running.stop(Duration::from_secs(5)).await;
//! # Ok::<(), turno_client::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # A broadcast
//!
//! ```
//! # let broker = turno_broker::Broker::start_loopback()?;
//! # let url = broker.url();
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let worker = turno_client::Worker::new(turno_client::Options::try_from(&url)?).queue("reload").name("w1");
//! # let running = worker.start(|_| async move { turno_client::Outcome::reply("reloaded") }).await?;
//! use turno_client::{AnswerPart, Client};
//!
//! let client = Client::connect(&url).await?;
//! let mut broadcast = client.broadcast("reload", "now").await?; // every worker of "reload", busy ones too
//! while let Some(answer) = broadcast.next().await {
//!     let answer = answer?;
//!     match answer.part {
//!         AnswerPart::Piece(reply) | AnswerPart::Last(reply) => println!("{}: {:?}", answer.name, reply.body),
//!         AnswerPart::Failed(why) => println!("{} failed: {why}", answer.name),
//!     }
//! }
//! let end = broadcast.end().expect("it is over");
//! assert_eq!((end.answered, end.consumers), (1, 1));
//! # running.stop(std::time::Duration::from_secs(1)).await;
//! # Ok::<(), turno_client::Error>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Without async
//!
//! ```
//! # let broker = turno_broker::Broker::start_loopback()?;
//! # let url = broker.url();
//! use turno_client::blocking::Client;
//!
//! let client = Client::connect(&url)?;
//! let stored = client.send("emails", "to: you")?;
//! println!("{} is safe in {}", stored.id, stored.durability.name());
//! client.close();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![warn(missing_docs)]

mod address;
pub mod blocking;
mod broadcast;
mod cache;
mod client;
mod command;
pub mod core;
mod crew;
mod delivery;
mod driver;
mod error;
mod message;
mod options;
mod outcome;
mod replies;
mod stream;
mod subscription;
mod worker;

pub use turno_proto::headers::{Headers, HeadersError};
pub use turno_proto::model::{
    BroadcastEnd, Code, DedupIdError, Durability, Filter, MessageId, NameError, Party, QueueName, Slots, Topic,
    TopicError, view,
};
pub use turno_proto::native::Config;
pub use turno_proto::native::admin::{AdminAnswer, AdminCall};

pub use self::address::{Address, PORT};
pub use self::broadcast::{Answer, AnswerPart, Broadcast};
pub use self::client::Client;
pub use self::delivery::{Cancellation, Delivery};
pub use self::error::Error;
pub use self::message::{Message, Reply, Stored};
pub use self::options::Options;
pub use self::outcome::Outcome;
pub use self::replies::{Replies, ReplyPart};
pub use self::subscription::{Event, Heard, Subscription};
pub use self::worker::{Ended, Running, Worker, WorkerEvent};
