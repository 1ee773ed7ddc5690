//! What a sender calls a message, so that sending it twice adds it once.

use std::fmt;

use super::limits::DEDUP_ID_BYTES_MAX;

/// A dedup id: 1 to 64 bytes of the sender's choice. Two sends to one queue with the same one are one message.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct DedupId(Box<[u8]>);

/// Why something is no dedup id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
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
}
