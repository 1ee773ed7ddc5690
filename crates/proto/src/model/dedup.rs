//! Dedup ids: a sender's own id of a message, so that sending it twice stores it once.

use std::fmt;

use blake2::digest::consts::U16;
use blake2::{Blake2s, Digest};

use super::QueueName;
use super::limits::DEDUP_ID_BYTES_MAX;

/// A dedup id: 1 to 64 bytes of the sender's choice. Two sends to one queue with the same one are one message.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DedupId(Box<[u8]>);

/// Why something is no dedup id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum DedupIdError {
    /// There is nothing.
    #[error("a dedup id has at least one byte")]
    Empty,
    /// More than 64 bytes.
    #[error("a dedup id has at most {DEDUP_ID_BYTES_MAX} bytes")]
    TooLong,
}

impl DedupId {
    /// Takes the bytes if they may be one.
    pub fn new(bytes: &[u8]) -> Result<Self, DedupIdError> {
        Self::check(bytes).map(|()| Self(bytes.into()))
    }

    /// Whether these bytes may be one.
    pub const fn check(bytes: &[u8]) -> Result<(), DedupIdError> {
        match bytes.len() {
            0 => Err(DedupIdError::Empty),
            1..=DEDUP_ID_BYTES_MAX => Ok(()),
            _ => Err(DedupIdError::TooLong),
        }
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A digest of a queue's name and a dedup id, however long they are: BLAKE2s (RFC 7693) with sixteen bytes of output.
/// It is the same in every run and in every broker of a store, so it has no key; finding two inputs with one output takes
/// some 2^64 trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DedupKey(pub [u8; 16]);

impl DedupKey {
    /// The key of a dedup id in a queue.
    pub fn of(queue: &QueueName, id: &DedupId) -> Self {
        let name = queue.as_str().as_bytes();
        let length = u8::try_from(name.len()).expect("a queue's name has at most 255 bytes");
        // The length parts them: no name and id look like another name and id.
        let hash = Blake2s::<U16>::new().chain_update([length]).chain_update(name).chain_update(id.as_bytes());
        Self(hash.finalize().into())
    }
}

impl fmt::Debug for DedupId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_to_sixty_four_bytes_of_any_kind() {
        for bytes in [&b"x"[..], &[0xFF; 64], b"\0"] {
            assert_eq!(DedupId::new(bytes).map(|id| id.as_bytes().to_vec()), Ok(bytes.to_vec()));
        }
        assert_eq!(DedupId::new(b""), Err(DedupIdError::Empty));
        assert_eq!(DedupId::new(&[b'x'; 65]), Err(DedupIdError::TooLong));
        assert_eq!(format!("{:?}", DedupId::new(b"a\xFF")), r#"Ok("a\xff")"#);
    }

    /// Computed by another program: stored keys must mean the same for ever.
    #[test]
    fn keys_are_what_others_compute() {
        let key = |queue: &str, id: &[u8]| DedupKey::of(&queue.parse().unwrap(), &DedupId::new(id).unwrap()).0;
        assert_eq!(u128::from_be_bytes(key("q", b"order-1")), 0x6f7b_0677_ac88_add3_9c11_d3b9_0f4e_c380);
        assert_eq!(u128::from_be_bytes(key("a.b", &[7; 64])), 0xe082_255a_4cb8_e27b_43a1_8fc2_40b9_04ba);
        assert_ne!(key("ab", b"c"), key("a", b"bc"));
    }
}
