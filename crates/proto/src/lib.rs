//! Shared types and codecs of Turno: bytes in, values out.
//!
//! [`model`] holds the types that all crates share (ids, names, codes, limits, views); [`native`] is the
//! native wire: the 16-byte frame, its families and the sans-IO [`native::Session`] of the broker's side;
//! [`foreman`] is the protocol between foreman and job workers, with a sans-IO connection for each of the two;
//! `zmtp`, a feature, is ZeroMQ's protocol with a sans-IO connection for both ends, and `lmq` a protocol of its messages.
//! Nothing here reads a clock, opens a socket or spawns anything, and no byte from a peer can make it panic
//! or allocate more than the bytes that really arrived.
#![warn(missing_docs)]
#![warn(clippy::indexing_slicing, clippy::cast_possible_truncation)]

pub mod foreman;
pub mod headers;
pub mod items;
#[cfg(feature = "zmtp")]
pub mod lmq;
pub mod model;
mod msgpack_check;
pub mod native;
pub mod placeholders;
pub mod submission;
pub mod work;
#[cfg(feature = "zmtp")]
pub mod zmtp;
