//! The ring: brokers in a circle that carries topics and heals (document 003). See docs/ring.md.

mod admin;
mod door;
mod word;

pub use self::door::{RingEffect, RingInput, RingNews, RingSettings, RingTimers};
pub use self::word::{Circle, JoinVerdict, NewConn, Publication, RetConn, RingWord};
