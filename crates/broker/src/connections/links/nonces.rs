//! Nonces for greetings.

use turno_proto::native::Nonce;

/// Where nonces come from.
#[derive(Clone, Debug)]
pub enum Nonces {
    /// The system's chance.
    System,
    /// A seed: the same ones in each run. Not for real brokers: anyone who knows the seed knows the nonces.
    Seeded(u64),
}

impl Nonces {
    /// `None` if the system has no chance to give.
    pub(crate) fn next(&mut self) -> Option<Nonce> {
        let mut nonce = Nonce::default();
        self.fill(&mut nonce)?;
        Some(nonce)
    }

    /// Fills that with them; the number of bytes is a multiple of eight.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) -> Option<()> {
        match self {
            Self::System => getrandom::fill(bytes).ok()?,
            Self::Seeded(state) => {
                for piece in bytes.chunks_exact_mut(8) {
                    piece.copy_from_slice(&splitmix(state).to_le_bytes());
                }
            }
        }
        Some(())
    }
}

/// The generator of that name.
const fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_nonce_comes_twice() {
        for mut nonces in [Nonces::System, Nonces::Seeded(0)] {
            let many: HashSet<Nonce> = (0..1_000).map(|_| nonces.next().unwrap()).collect();
            assert_eq!(many.len(), 1_000, "{nonces:?}");
        }
    }
}
