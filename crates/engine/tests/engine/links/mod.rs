//! Several brokers: what crosses links, and what does not.

mod crossing;
mod exclusive;
mod explained;
mod greeting;
mod lease;
mod many;
mod net;
mod no_reply;
mod random;
mod room;
mod stopping;
