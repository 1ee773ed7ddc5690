//! Links to other brokers: messages cross when nobody here has room and somebody there has.
//!
//! A message that crosses stays its owner's: here it is a delivery whose worker is the link. Nothing that came over a link
//! waits here: it goes to a worker at once, further on, or back (ADR 16).

mod word;

pub use word::{FarWord, Forward, ForwardBroadcast, ForwardEvent, LinkWord};
