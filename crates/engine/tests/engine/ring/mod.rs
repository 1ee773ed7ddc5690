//! The ring, node by node.

mod joining;
mod net;
