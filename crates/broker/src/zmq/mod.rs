//! The gateway for ZeroMQ programs: messages become inputs of the engine, and effects become messages.
//!
//! An [`Endpoint`] is a place where ZeroMQ peers connect, with the queue and topics that its peers have to do with. A dialect
//! translates for one connection. It keeps envelopes and numbers, and decides nothing about queues. Nothing here knows sockets
//! or bytes: `connections` owns the connection, and `turno_proto::zmtp` its protocol.

mod addresses;
mod ask;
mod calls;
mod dialect;
mod endpoint;
mod frames;
mod lmq;
mod mdp;
mod push;
mod settings;
mod topics;
mod work;

pub(crate) use self::dialect::{Dialect, DialectOutput};
pub use self::endpoint::Endpoints;
pub(crate) use self::endpoint::{Count, Endpoint};
pub(crate) use self::frames::PeerMessage;
pub use self::settings::{ZmqAccess, ZmqAddress, ZmqEndpoint, ZmqPlace, ZmqRole};
pub(crate) use self::topics::event_frames;
