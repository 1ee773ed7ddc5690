//! A reader of fixed fields at the front of a frame. Short input is an error, never a panic.

use crate::model::Code;

pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Code> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(Code::BadFrame)?;
        self.rest = rest;
        Ok(*head)
    }

    #[inline]
    pub(super) fn u8(&mut self) -> Result<u8, Code> {
        self.array::<1>().map(|[byte]| byte)
    }

    #[inline]
    pub(super) fn u16(&mut self) -> Result<u16, Code> {
        self.array().map(u16::from_le_bytes)
    }

    #[inline]
    pub(super) fn u32(&mut self) -> Result<u32, Code> {
        self.array().map(u32::from_le_bytes)
    }

    #[inline]
    pub(super) fn u64(&mut self) -> Result<u64, Code> {
        self.array().map(u64::from_le_bytes)
    }

    #[inline]
    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Code> {
        let (head, rest) = self.rest.split_at_checked(count).ok_or(Code::BadFrame)?;
        self.rest = rest;
        Ok(head)
    }

    /// Everything that is left.
    #[inline]
    pub(super) const fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Nothing may be left.
    #[inline]
    pub(super) const fn end(self) -> Result<(), Code> {
        if self.rest.is_empty() { Ok(()) } else { Err(Code::BadFrame) }
    }
}
