//! Sixteen bytes that stand for any others: BLAKE2s (RFC 7693) with 128 bits of output and no key.
//!
//! It must give the same in every run and in every broker of a store, so it cannot have a secret. That nobody can find
//! two inputs with one output is then the hash's own business; finding a pair takes some 2^64 trials.

const IV: [u32; 8] =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];

/// Which word of the block each half step of a round takes.
const SIGMA: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

/// The columns of the state, then its diagonals.
const LANES: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [1, 5, 9, 13],
    [2, 6, 10, 14],
    [3, 7, 11, 15],
    [0, 5, 10, 15],
    [1, 6, 11, 12],
    [2, 7, 8, 13],
    [3, 4, 9, 14],
];

const BLOCK: usize = 64;
const OUTPUT: usize = 16;

/// The digest of these bytes.
pub(crate) fn digest(bytes: &[u8]) -> [u8; OUTPUT] {
    let mut chain = IV;
    // The parameters: length of the output, no key, one leaf.
    chain[0] ^= 0x0101_0000 | OUTPUT as u32;
    let last = bytes.len().saturating_sub(1) / BLOCK;
    for at in 0..=last {
        let end = bytes.len().min((at + 1) * BLOCK);
        let mut block = [0; BLOCK];
        block[..end - at * BLOCK].copy_from_slice(&bytes[at * BLOCK..end]);
        compress(&mut chain, &block, end as u64, at == last);
    }
    let mut output = [0; OUTPUT];
    for (four, word) in output.chunks_exact_mut(4).zip(chain) {
        four.copy_from_slice(&word.to_le_bytes());
    }
    output
}

fn compress(chain: &mut [u32; 8], block: &[u8; BLOCK], end: u64, last: bool) {
    let mut words = [0; 16];
    for (word, four) in words.iter_mut().zip(block.as_chunks::<4>().0) {
        *word = u32::from_le_bytes(*four);
    }
    let mut state = [0; 16];
    state[..8].copy_from_slice(chain);
    state[8..].copy_from_slice(&IV);
    #[expect(clippy::cast_possible_truncation, reason = "the count goes in by halves")]
    let (low, high) = (end as u32, (end >> 32) as u32);
    state[12] ^= low;
    state[13] ^= high;
    if last {
        state[14] = !state[14];
    }
    for sigma in SIGMA {
        for (lane, pair) in LANES.iter().zip(sigma.as_chunks::<2>().0) {
            mix(&mut state, *lane, words[pair[0]], words[pair[1]]);
        }
    }
    for (at, word) in chain.iter_mut().enumerate() {
        *word ^= state[at] ^ state[at + 8];
    }
}

fn mix(state: &mut [u32; 16], [a, b, c, d]: [usize; 4], first: u32, second: u32) {
    for (word, turn_d, turn_b) in [(first, 16, 12), (second, 8, 7)] {
        state[a] = state[a].wrapping_add(state[b]).wrapping_add(word);
        state[d] = (state[d] ^ state[a]).rotate_right(turn_d);
        state[c] = state[c].wrapping_add(state[d]);
        state[b] = (state[b] ^ state[c]).rotate_right(turn_b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by another program: none, one, a block less one, a block, one more, two blocks and five.
    #[test]
    fn others_compute_the_same() {
        let table: &[(usize, &str)] = &[
            (0, "64550d6ffe2c0a01a14aba1eade0200c"),
            (1, "9f31f3ec588c6064a8e1f9051aeab90a"),
            (63, "4006430a2d313751a9ece24fccb52de5"),
            (64, "dc66ca8f03865801b0ffe06ed8a1a90e"),
            (65, "399d3e92ccfcedcdde9bf4c2be14cf8c"),
            (128, "7a3b3fa888b60095e7b305efcf3c3dbc"),
            (320, "cb145690906e519156958ef5f55a4d21"),
        ];
        for (length, expected) in table {
            let bytes: Vec<u8> = (0..=255).cycle().take(*length).collect();
            let hex: String = digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(hex, *expected, "{length}");
        }
    }
}
