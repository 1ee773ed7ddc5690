//! The encryption of everything after the handshake: each frame is the body of a MESSAGE, with flags of its own inside.

use crypto_secretbox::XSalsa20Poly1305;

use super::key::{MessageBox, SharedKey};
use super::{Cipher, Fields, TAG_LEN, open, rises, seal, short_nonce};
use crate::zmtp::{ZmtpFault, command, frame};

const MESSAGE: &[u8; 8] = b"\x07MESSAGE";

/// Name, nonce and tag of a MESSAGE: what is before its text.
pub(in crate::zmtp) const PREFIX_LEN: usize = MESSAGE.len() + 8 + TAG_LEN;
/// By how much the body of the frame is longer than what it carries: the prefix, and the flags.
pub(in crate::zmtp) const OVERHEAD: usize = PREFIX_LEN + 1;

/// The flags inside.
const MORE: u8 = 0b01;
const COMMAND: u8 = 0b10;

/// The keys of a connection, and the numbers of both ends.
pub(in crate::zmtp) struct Traffic {
    /// For READY, which ends the handshake.
    ready: XSalsa20Poly1305,
    /// For messages of this end and of the other.
    ours: MessageBox,
    theirs: MessageBox,
    is_server: bool,
    /// The last number of each end.
    said: u64,
    heard: u64,
}

/// The content of a MESSAGE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::zmtp) struct Opened {
    pub(in crate::zmtp) more: bool,
    pub(in crate::zmtp) command: bool,
}

impl Traffic {
    pub(super) fn server(shared: &SharedKey, heard: u64) -> Self {
        Self::new(shared, true, 0, heard)
    }

    pub(super) fn client(shared: &SharedKey, said: u64) -> Self {
        Self::new(shared, false, said, 0)
    }

    fn new(shared: &SharedKey, is_server: bool, said: u64, heard: u64) -> Self {
        let boxes = |by_server| shared.of_purpose(Self::purpose(by_server));
        Self { ready: shared.any(), ours: boxes(is_server), theirs: boxes(!is_server), is_server, said, heard }
    }

    /// Both ends have the same key, so that each direction has nonces of its own.
    const fn purpose(by_server: bool) -> [u8; 16] {
        if by_server { *b"CurveZMQMESSAGES" } else { *b"CurveZMQMESSAGEC" }
    }

    pub(super) fn say_ready(&mut self, metadata: &[u8], out: &mut Vec<u8>) {
        self.said += 1;
        let mut sealed = Vec::new();
        seal(&self.ready, &short_nonce(*b"CurveZMQREADY---", self.said), &[metadata], &mut sealed);
        command::encode("READY", &[&self.said.to_be_bytes(), &sealed], out);
    }

    pub(super) fn hear_ready(&mut self, ready: &[u8]) -> Result<Vec<u8>, ZmtpFault> {
        let mut fields = Fields(ready);
        self.heard = rises(self.heard, fields.number()?)?;
        let nonce = short_nonce(*b"CurveZMQREADY---", self.heard);
        open(&self.ready, &nonce, fields.0).map(|text| text.to_vec()).ok_or(ZmtpFault::BadBox)
    }

    /// Appends a frame that carries these bytes.
    pub(in crate::zmtp) fn encode(&mut self, opened: Opened, pieces: &[&[u8]], out: &mut Vec<u8>) {
        self.said += 1;
        let size = OVERHEAD + pieces.iter().map(|piece| piece.len()).sum::<usize>();
        // As libzmq does: whether it is a command is told inside alone.
        frame::encode(0, size, out);
        out.extend_from_slice(MESSAGE);
        out.extend_from_slice(&self.said.to_be_bytes());
        let at = out.len();
        out.extend_from_slice(&[0; TAG_LEN]);
        out.push(if opened.more { MORE } else { 0 } | if opened.command { COMMAND } else { 0 });
        pieces.iter().for_each(|piece| out.extend_from_slice(piece));
        let nonce = short_nonce(Self::purpose(self.is_server), self.said);
        if let Some((tag, text)) = out.get_mut(at..).and_then(<[u8]>::split_first_chunk_mut) {
            *tag = self.ours.encrypt(&nonce, text);
        }
    }

    /// Decrypts the text behind a prefix, in place. Its first byte are the flags.
    pub(in crate::zmtp) fn decode(&mut self, prefix: &[u8; PREFIX_LEN], text: &mut [u8]) -> Result<Opened, ZmtpFault> {
        let mut fields = Fields(prefix);
        if fields.take()? != MESSAGE {
            return Err(ZmtpFault::UnexpectedMessage);
        }
        let number = rises(self.heard, fields.number()?)?;
        let nonce = short_nonce(Self::purpose(!self.is_server), number);
        if !self.theirs.decrypt(&nonce, text, fields.take()?) {
            return Err(ZmtpFault::BadBox);
        }
        self.heard = number;
        let flags = text.first().copied().ok_or(ZmtpFault::BadCommand)?;
        if flags & !(MORE | COMMAND) != 0 || flags == MORE | COMMAND {
            return Err(ZmtpFault::BadFlags(flags));
        }
        Ok(Opened { more: flags & MORE != 0, command: flags & COMMAND != 0 })
    }
}
