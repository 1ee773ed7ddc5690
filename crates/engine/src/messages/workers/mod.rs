//! Workers: registration, slots, and whose turn it is.

pub(in crate::messages) mod dropping;
mod jobs;
pub(in crate::messages) mod pace;
pub(crate) mod peer;
pub(crate) mod policy;
pub(crate) mod registration;
pub(in crate::messages) mod rota;
pub(in crate::messages) mod round;
pub(in crate::messages) mod shared_rota;
pub(in crate::messages) mod turn;
mod view;
