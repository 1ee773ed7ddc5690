//! The foreman's protocol: codec, both ends, and the page about it.

mod foreman_states;
mod script;
mod tap;
mod two_ends;
mod worker_states;
mod world;
