//! The ring, node by node.

mod healing;
mod hosted;
mod joining;
mod leaving;
mod merging;
mod named;
mod net;
mod publishing;
mod refusing;
mod states;
mod strangers;
