//! The policy that chooses the next worker (S0.24).
//!
//! A policy is two small decisions over a [`Rota`]: which member takes a message of a given cost, and what
//! having been chosen does to its place. Everything else about dispatch holds for every policy.

use crate::messages::workers::rota::Rota;

/// How a queue chooses among the workers that have room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The one that has waited longest since it last got work. Spreads evenly.
    #[default]
    LeastRecentlyUsed,
    /// The one that came first, until it is full. Leaves late-comers idle, so that they can be switched off.
    Fill,
}

impl Policy {
    /// The member that takes a message of that cost.
    pub(in crate::messages) fn pick(self, rota: &Rota, cost: u32) -> Option<u32> {
        match self {
            Self::LeastRecentlyUsed | Self::Fill => rota.first_with(cost),
        }
    }

    /// Whether a member that was chosen goes to the bottom of its rotas.
    pub(in crate::messages) const fn moves_to_bottom(self) -> bool {
        match self {
            Self::LeastRecentlyUsed => true,
            Self::Fill => false,
        }
    }
}
