//! The ring, node by node.

mod hosted;
mod joining;
mod net;
