//! The client's side of the handshake.

use super::traffic::Traffic;
use super::{COOKIE_LEN, Entropy, Fields, KeyPair, PublicKey, VOUCH_LEN, long_nonce, open, piece, seal, short_nonce};
use crate::zmtp::{ZmtpFault, command};

/// The numbers of the client's first two boxes.
const HELLO: u64 = 1;
const INITIATE: u64 = 2;

/// Waits for WELCOME.
pub(in crate::zmtp) struct ExpectWelcome {
    short_term: KeyPair,
    vouch_nonce: [u8; 16],
}

/// Waits for READY.
pub(in crate::zmtp) struct ExpectReady {
    traffic: Traffic,
}

impl ExpectWelcome {
    /// Appends HELLO.
    pub(in crate::zmtp) fn hello(entropy: &Entropy, server: PublicKey, out: &mut Vec<u8>) -> Self {
        let short_term = KeyPair::from_secret(piece(entropy, 0));
        let mut sealed = Vec::new();
        seal(&short_term.shared(server).any(), &short_nonce(*b"CurveZMQHELLO---", HELLO), &[&[0; 64]], &mut sealed);
        let data: [&[u8]; 5] = [&[1, 0], &[0; 72], short_term.public.as_bytes(), &HELLO.to_be_bytes(), &sealed];
        command::encode("HELLO", &data, out);
        Self { short_term, vouch_nonce: piece(entropy, 32) }
    }

    /// Checks WELCOME and appends INITIATE with the properties of this end.
    pub(in crate::zmtp) fn take(
        self,
        keys: &KeyPair,
        server: PublicKey,
        welcome: &[u8],
        metadata: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<ExpectReady, ZmtpFault> {
        let mut fields = Fields(welcome);
        let nonce = long_nonce(*b"WELCOME-", *fields.take()?);
        let text = open(&self.short_term.shared(server).any(), &nonce, fields.0).ok_or(ZmtpFault::BadBox)?;
        let mut fields = Fields(&text);
        let server_short_term = fields.key()?;
        let cookie = fields.take::<COOKIE_LEN>()?;
        if !fields.0.is_empty() {
            return Err(ZmtpFault::BadCommand);
        }

        let mut vouch = Vec::with_capacity(VOUCH_LEN);
        vouch.extend_from_slice(&self.vouch_nonce);
        let pieces: [&[u8]; 2] = [self.short_term.public.as_bytes(), server.as_bytes()];
        seal(&keys.shared(server_short_term).any(), &long_nonce(*b"VOUCH---", self.vouch_nonce), &pieces, &mut vouch);
        let shared = self.short_term.shared(server_short_term);
        let mut sealed = Vec::new();
        let pieces: [&[u8]; 3] = [keys.public.as_bytes(), &vouch, metadata];
        seal(&shared.any(), &short_nonce(*b"CurveZMQINITIATE", INITIATE), &pieces, &mut sealed);
        command::encode("INITIATE", &[cookie, &INITIATE.to_be_bytes(), &sealed], out);
        Ok(ExpectReady { traffic: Traffic::client(&shared, INITIATE) })
    }
}

impl ExpectReady {
    /// Checks READY. The server's properties, and the encryption from here on.
    pub(in crate::zmtp) fn take(mut self, ready: &[u8]) -> Result<(Vec<u8>, Traffic), ZmtpFault> {
        let metadata = self.traffic.hear_ready(ready)?;
        Ok((metadata, self.traffic))
    }
}
