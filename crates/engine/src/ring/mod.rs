//! The ring: brokers in a circle that carries topics and heals (document 003). See docs/how-to/ring.md.

mod door;
mod host;
mod node;

pub use self::door::{RingEffect, RingHostEffect, RingInput, RingNews, RingPeerEffect, RingSettings, RingTimers};
pub(crate) use self::host::{Host, Relink};
pub(crate) use self::node::Passed;
pub use self::node::{Node, TRANSITIONS, Why};
pub use turno_proto::model::ring::{Circle, JoinVerdict, NewConn, Publication, PublicationRef, RetConn, RingMessage};
