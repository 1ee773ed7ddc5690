//! The native wire. `docs/protocol.md` is its page for strangers; `vectors/` holds golden bytes of every frame.

mod body;
mod decode;
mod encode;
pub mod flags;
mod frame;
mod greeting;
mod header;
mod kind;
mod link;
mod link_session;
mod reader;
mod session;
mod word;

pub use crate::model::{Closing, ClosingReason, admin};
pub use body::{Config, Connect, Register, VERSION};
pub use decode::{Fault, Piece, decode, split};
pub use encode::{encode, encode_deliver, encode_payload_frame};
pub use frame::{Answer, Broadcast, Deliver, Event, Frame, Outgoing, Raw};
pub use greeting::{Acceptor, Credentials, Dialler, ExpectProof, Greeted, Identity, NONCE_BYTES, Nonce, Secret};
pub use header::{HEADER_LEN, Header, MAGIC};
pub use kind::{Direction, Family, Kind};
pub use link::{
    Brokers, Forward, ForwardBroadcast, ForwardEvent, LinkChallenge, LinkHello, LinkProof, Offers, Presences,
    encode_forward, encode_forward_event,
};
pub use link_session::{LinkSession, LinkStep};
pub(crate) use session::cut;
pub use session::{Session, Step};
pub use word::Word;
