//! The words that wire, engine, client and command line share. See docs/reference/glossary.md.

pub mod admin;
pub mod archive;
mod array;
mod broadcast;
mod closing;
mod code;
mod counters;
mod dedup;
mod id;
pub mod job;
pub mod limits;
pub mod link;
mod message;
mod mono;
mod name;
mod payload;
mod reason;
pub mod ring;
mod task;
pub mod topic;
pub mod units;
pub mod view;

pub use broadcast::{BroadcastEnd, Party};
pub use closing::{Closing, ClosingReason};
pub use code::{Code, CodeText};
pub use dedup::{DedupId, DedupIdError, DedupKey};
pub use id::{ConnId, Delivery, Durability, IdError, MessageId, Slots};
pub use limits::Limits;
pub use message::{Broadcast, Outgoing};
pub use mono::Mono;
pub use name::{NameError, QueueName};
pub use payload::Payload;
pub use topic::{Filter, Topic, TopicError};
