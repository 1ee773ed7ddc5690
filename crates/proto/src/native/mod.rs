//! The native protocol. `docs/reference/protocol` is its page for strangers; `vectors/` holds golden bytes of every
//! frame.

mod body;
mod broker_session;
mod decode;
mod encode;
mod fenced;
mod fields;
pub mod flags;
mod frame;
mod framing;
mod greeting;
mod header;
mod kind;
mod link;
mod link_session;
mod ring;
mod ring_session;
mod session;

pub use crate::model::{Closing, ClosingReason, admin};
pub use body::{Config, Connect, Register, VERSION};
pub use broker_session::{BrokerSession, Protocol};
pub use decode::{Fault, decode};
pub use encode::{
    encode, encode_admin_answer, encode_admin_call, encode_broadcast_end, encode_deliver, encode_payload_frame,
};
pub use fenced::FencedFrame;
pub use frame::{Answer, Deliver, Frame, Raw, RawBroadcast, RawEvent, RawOutgoing};
pub use framing::{Piece, split};
pub use greeting::{
    Acceptor, Dialler, ExpectProof, GreetingCredentials, GreetingFrame, GreetingIdentity, Identity, NONCE_BYTES, Nonce,
    Proof, Secret, VerifiedDialler,
};
pub use header::{HEADER_LEN, Header, MAGIC};
pub use kind::{Direction, Family, Kind};
pub use link::{LinkChallenge, LinkHello, encode_forward, encode_link_message};
pub use link_session::{LinkProtocol, LinkSession, LinkStep};
pub use ring::{RingChallenge, RingHello, RingIdentity, encode_publication, encode_ring_message};
pub use ring_session::{RingProtocol, RingSession, RingStep};
pub(crate) use session::cut;
pub use session::{Session, SessionStep};
