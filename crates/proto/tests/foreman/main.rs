//! The foreman's protocol: codec, both ends, and the page about it.

mod bad_input;
mod codec;
mod document;
mod foreman_states;
#[path = "../golden/mod.rs"]
mod golden;
mod order;
#[path = "../page/mod.rs"]
mod page;
mod reset;
mod script;
mod tap;
mod two_ends;
mod vectors;
mod worker_states;
mod world;
