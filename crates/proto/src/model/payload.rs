//! The payload of a message: headers and a body, which the broker never reads.

use bytes::Bytes;

/// Header block and body in one piece, as they stand in the frame.
///
/// With `headers` the bytes begin with the block (u16 length, MessagePack map), then comes the body. The
/// broker passes both on as they are, so it never needs to part them; [`Payload::split`] is for the ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// Whether `bytes` begins with a header block.
    pub headers: bool,
    /// Header block, if any, and body.
    pub bytes: Bytes,
}

impl Payload {
    /// A body without headers.
    pub fn body(body: impl Into<Bytes>) -> Self {
        Self { headers: false, bytes: body.into() }
    }

    /// How many bytes it takes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if there is neither header block nor body.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The encoded header map (empty if there is none) and the body.
    ///
    /// A block that claims more bytes than there are is refused when the frame is decoded; should one be
    /// here all the same, everything counts as body.
    pub fn split(&self) -> (Bytes, Bytes) {
        let whole = (Bytes::new(), self.bytes.clone());
        if !self.headers {
            return whole;
        }
        let Some((length, rest)) = self.bytes.split_first_chunk::<2>() else { return whole };
        let length = usize::from(u16::from_le_bytes(*length));
        if rest.len() < length {
            return whole;
        }
        (self.bytes.slice(2..2 + length), self.bytes.slice(2 + length..))
    }
}
