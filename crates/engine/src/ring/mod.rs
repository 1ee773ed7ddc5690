//! The ring: brokers in a circle that carries topics and heals (document 003). See docs/how-to/ring.md.

mod host;
mod interface;
mod node;

pub(crate) use self::host::{Relink, RingHost};
pub use self::interface::{RingEffect, RingHostEffect, RingInput, RingNews, RingPeerEffect, RingSettings, RingTimers};
pub(crate) use self::node::PassedPublication;
pub use self::node::{RingNode, TRANSITIONS, TransitionReason};
pub use turno_proto::model::ring::{Circle, JoinVerdict, NewConn, Publication, PublicationRef, RetConn, RingMessage};
