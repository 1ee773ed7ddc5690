//! LMQ, the messages of clients, servers and workers of a round-robin server, over ZeroMQ.
//!
//! A message has these frames, with the addresses that it still has to pass on top and those that it came through behind:
//!
//! ```text
//! address …, empty, "LMQv100", command (1 byte), id, argument …, empty, sender …
//! ```
//!
//! The last sender is the nearest one. An answer goes back through the senders, the nearest first. `vectors/lmq.txt` holds golden
//! bytes.

mod command;
mod fault;
mod message;

pub use command::{LmqCommand, Order, slots};
pub use fault::LmqFault;
pub use message::{LmqMessage, is_lmq};

/// The frame that names the protocol.
pub const VERSION: &[u8] = b"LMQv100";
/// The first argument of a PING between programs, which a worker answers.
pub const APP_PING: u8 = 0x01;
/// The first argument of INCREMENT.
pub const INCREMENT: u8 = 0x07;
/// The first argument of REGISTER.
pub const REGISTER: u8 = 0x08;
/// The first argument of DEREGISTER.
pub const DEREGISTER: u8 = 0x09;
/// The first argument of STREAM.
pub const STREAM: u8 = 0x0A;
