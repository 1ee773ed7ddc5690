//! ZMTP 3.1, the protocol of ZeroMQ sockets, without its sockets.
//!
//! [`ZmtpSession`] is one end of a connection: bytes go in, [`ZmtpStep`]s come out, and bytes to write are appended to the
//! caller's buffer. It speaks with ZMTP 3.1 and 3.0 peers over the mechanisms NULL, PLAIN and CURVE, in both roles. Keys
//! and randomness come from the caller. It never decides what a message is for: queues and topics are unknown here.
//! `vectors/zmtp.txt` holds golden bytes of greetings, handshakes and frames.

mod command;
pub mod curve;
mod fault;
mod frame;
mod greeting;
mod handshake;
mod intake;
mod message;
mod metadata;
mod plain;
mod session;
mod settings;
mod socket_type;
mod z85;

pub use fault::ZmtpFault;
pub use greeting::{Mechanism, Version};
pub use message::{Message, MessageParts};
pub use session::{ZmtpSession, ZmtpStep, encode, encode_front};
pub use settings::{OwnSocketType, Peer, Security, User, ZmtpCredentials, ZmtpSettings};
pub use socket_type::SocketType;
