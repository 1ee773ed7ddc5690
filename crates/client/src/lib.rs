#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![warn(missing_docs)]

mod address;
pub mod admin;
mod archive;
#[cfg(feature = "blocking")]
pub mod blocking;
mod broadcast;
mod cache;
mod client;
mod command;
#[cfg(feature = "unstable-core")]
pub mod core;
#[cfg(not(feature = "unstable-core"))]
#[expect(dead_code, unreachable_pub, reason = "some of it is for the drivers that need the feature")]
mod core;
mod deliveries;
mod delivery;
mod draft;
mod driver;
mod error;
mod follow;
pub mod jobs;
mod message;
mod options;
mod outcome;
mod pages;
mod pieces;
mod publish;
pub mod queues;
mod request;
mod running_deliveries;
mod send;
mod stream;
mod submit;
mod subscription;
mod worker;

pub use turno_proto::headers::{Headers, HeadersError};
pub use turno_proto::model::parts::PartsError;
pub use turno_proto::model::view::Because;
pub use turno_proto::model::{
    BroadcastConsumer, BroadcastEnd, ClosingReason, Code, CodeText, DedupIdError, Durability, Filter, IdError,
    MessageId, Moment, MomentError, NameError, QueueName, Seconds, Slots, Token, Topic, TopicError, WorkerId,
};
#[cfg(feature = "unstable-core")]
#[doc(hidden)]
pub use turno_proto::model::{
    admin::{AdminAnswer, AdminCall},
    view,
};
pub use turno_proto::native::Config;

pub use self::address::{Address, AddressError, PORT};
pub use self::broadcast::{Answer, AnswerPart, Broadcast, BroadcastBuilder};
pub use self::client::Client;
pub use self::deliveries::{Deliveries, OpenDelivery};
pub use self::delivery::{Cancellation, Delivery};
pub use self::error::{ConnectAttempt, Error, ErrorKind};
pub use self::message::Message;
pub use self::options::Options;
pub use self::outcome::Outcome;
pub use self::pages::Pages;
pub use self::publish::PublishBuilder;
pub use self::request::{NoReplyBuilder, ReplyPart, ReplyStream, RequestBuilder};
pub use self::send::{SendBuilder, Stored};
pub use self::subscription::{Event, Received, SubscribeBuilder, Subscription};
pub use self::worker::{StopMode, Worker, WorkerEnd, WorkerEvent, WorkerHandle};
