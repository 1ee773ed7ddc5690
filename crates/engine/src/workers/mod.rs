//! Workers: registration, slots, and whose turn it is.

pub(crate) mod crew;
pub(crate) mod dropping;
pub(crate) mod peer;
pub(crate) mod policy;
pub(crate) mod rota;
pub(crate) mod round;
pub(crate) mod turn;
mod view;
pub(crate) mod worker;
