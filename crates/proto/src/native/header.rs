//! The header of a native frame: 16 bytes.

/// The magic number: bytes 47 C0 on the wire.
pub const MAGIC: u16 = 0xC047;
/// Bytes of a header.
pub const HEADER_LEN: usize = 16;

/// A frame's header, all numbers little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The type of the frame; see [`super::Kind`].
    pub kind: u8,
    /// Flags, by kind.
    pub flags: u8,
    /// Pairs an answer with what it answers.
    pub seq: u32,
    /// A handle or a value, by kind.
    pub word: u32,
    /// Bytes that follow the header.
    pub length: u32,
}

impl Header {
    /// Reads a header; `None` if the magic is wrong.
    #[inline]
    pub fn from_bytes(bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        let [m0, m1, kind, flags, s0, s1, s2, s3, w0, w1, w2, w3, l0, l1, l2, l3] = *bytes;
        (u16::from_le_bytes([m0, m1]) == MAGIC).then_some(Self {
            kind,
            flags,
            seq: u32::from_le_bytes([s0, s1, s2, s3]),
            word: u32::from_le_bytes([w0, w1, w2, w3]),
            length: u32::from_le_bytes([l0, l1, l2, l3]),
        })
    }

    /// Writes the header.
    #[inline]
    pub fn to_bytes(self) -> [u8; HEADER_LEN] {
        let [m0, m1] = MAGIC.to_le_bytes();
        let [s0, s1, s2, s3] = self.seq.to_le_bytes();
        let [w0, w1, w2, w3] = self.word.to_le_bytes();
        let [l0, l1, l2, l3] = self.length.to_le_bytes();
        [m0, m1, self.kind, self.flags, s0, s1, s2, s3, w0, w1, w2, w3, l0, l1, l2, l3]
    }
}
