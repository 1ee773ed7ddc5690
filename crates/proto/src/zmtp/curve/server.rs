//! The server's side of the handshake. Between WELCOME and INITIATE it keeps only the key of the cookie that it sent.

use crypto_box::aead::KeyInit;
use crypto_secretbox::XSalsa20Poly1305;
use zeroize::Zeroizing;

use super::traffic::Traffic;
use super::{
    COOKIE_LEN, Entropy, Fields, KEY_LEN, KeyPair, LONG_NONCE_LEN, PublicKey, TAG_LEN, long_nonce, open, piece, rises,
    seal, short_nonce,
};
use crate::zmtp::{ZmtpFault, command};

/// Waits for HELLO.
pub(in crate::zmtp) struct ExpectHello {
    entropy: Entropy,
}

/// Waits for INITIATE. The short-term keys of both ends are in the cookie alone, which the client sends back.
///
/// The key of the cookie belongs to this connection: the cookie of another one does not open.
pub(in crate::zmtp) struct ExpectInitiate {
    cookie_key: XSalsa20Poly1305,
    heard: u64,
}

/// The client has proved that it has its key: the owner judges whether that key may connect.
pub(in crate::zmtp) struct ExpectVerdict {
    pub(in crate::zmtp) key: PublicKey,
    /// The client's properties.
    pub(in crate::zmtp) metadata: Vec<u8>,
    traffic: Traffic,
}

impl ExpectHello {
    pub(in crate::zmtp) const fn new(entropy: Entropy) -> Self {
        Self { entropy }
    }

    /// Checks HELLO and appends WELCOME.
    pub(in crate::zmtp) fn take(
        self,
        keys: &KeyPair,
        hello: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<ExpectInitiate, ZmtpFault> {
        let mut fields = Fields(hello);
        let version = fields.take::<2>()?;
        fields.take::<72>()?;
        let client = fields.key()?;
        let number = fields.number()?;
        let sealed = fields.take::<{ TAG_LEN + 64 }>()?;
        if *version != [1, 0] || !fields.0.is_empty() {
            return Err(ZmtpFault::BadCommand);
        }
        let shared = keys.shared(client);
        open(&shared.any(), &short_nonce(*b"CurveZMQHELLO---", number), sealed)
            .filter(|text| text.iter().all(|byte| *byte == 0))
            .ok_or(ZmtpFault::BadBox)?;

        let short_term = KeyPair::from_secret(piece(&self.entropy, 0));
        let cookie_key = XSalsa20Poly1305::new(&piece::<KEY_LEN>(&self.entropy, 32).into());
        let (welcome_nonce, cookie_nonce) = (piece(&self.entropy, 64), piece(&self.entropy, 80));
        let mut inner = Vec::with_capacity(KEY_LEN + COOKIE_LEN);
        inner.extend_from_slice(short_term.public.as_bytes());
        inner.extend_from_slice(&cookie_nonce);
        let secret = Zeroizing::new(short_term.secret.to_bytes());
        seal(&cookie_key, &long_nonce(*b"COOKIE--", cookie_nonce), &[client.as_bytes(), &*secret], &mut inner);
        let mut sealed = Vec::new();
        seal(&shared.any(), &long_nonce(*b"WELCOME-", welcome_nonce), &[&inner], &mut sealed);
        command::encode("WELCOME", &[&welcome_nonce, &sealed], out);
        Ok(ExpectInitiate { cookie_key, heard: rises(0, number)? })
    }
}

impl ExpectInitiate {
    /// Checks INITIATE: the cookie is the one of this connection, and the client has the key that it names.
    pub(in crate::zmtp) fn take(self, keys: &KeyPair, initiate: &[u8]) -> Result<ExpectVerdict, ZmtpFault> {
        let mut fields = Fields(initiate);
        let cookie_nonce = fields.take::<LONG_NONCE_LEN>()?;
        let cookie = fields.take::<{ COOKIE_LEN - LONG_NONCE_LEN }>()?;
        let number = rises(self.heard, fields.number()?)?;

        let cookie =
            open(&self.cookie_key, &long_nonce(*b"COOKIE--", *cookie_nonce), cookie).ok_or(ZmtpFault::BadCookie)?;
        let mut cookie = Fields(&cookie);
        let client = cookie.key()?;
        let short_term = KeyPair::from_secret(*cookie.take()?);
        let shared = short_term.shared(client);
        let text =
            open(&shared.any(), &short_nonce(*b"CurveZMQINITIATE", number), fields.0).ok_or(ZmtpFault::BadBox)?;

        let mut fields = Fields(&text);
        let key = fields.key()?;
        let vouch_nonce = fields.take::<LONG_NONCE_LEN>()?;
        let vouch = fields.take::<{ TAG_LEN + 2 * KEY_LEN }>()?;
        let vouch = open(&short_term.shared(key).any(), &long_nonce(*b"VOUCH---", *vouch_nonce), vouch);
        let mut wanted = client.as_bytes().to_vec();
        wanted.extend_from_slice(keys.public.as_bytes());
        vouch.filter(|vouch| **vouch == wanted).ok_or(ZmtpFault::BadVouch)?;

        let metadata = fields.0.to_vec();
        Ok(ExpectVerdict { key, metadata, traffic: Traffic::server(&shared, number) })
    }
}

impl ExpectVerdict {
    /// The key may connect: appends READY with the properties of this end.
    pub(in crate::zmtp) fn accept(mut self, metadata: &[u8], out: &mut Vec<u8>) -> Traffic {
        self.traffic.say_ready(metadata, out);
        self.traffic
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::ExpectWelcome;
    use super::super::{ENTROPY_LEN, SecretKey};
    use super::*;
    use crate::zmtp::command::Command;

    /// The data of the one command that these bytes are, whose head is of two bytes or nine.
    fn data(bytes: &[u8]) -> &[u8] {
        let body = if bytes.first() == Some(&4) { bytes.get(2..) } else { bytes.get(9..) };
        match Command::read(body.unwrap()) {
            Ok(Command::Hello(data) | Command::Welcome(data) | Command::Initiate(data)) => data,
            other => panic!("{other:?}"),
        }
    }

    /// The result of a client's INITIATE with these keys.
    fn initiated(keys: &KeyPair) -> Result<PublicKey, ZmtpFault> {
        let server = KeyPair::from_secret([1; KEY_LEN]);
        let (mut hello, mut welcome, mut initiate) = (Vec::new(), Vec::new(), Vec::new());
        let client = ExpectWelcome::hello(&Entropy::new([5; ENTROPY_LEN]), server.public, &mut hello);
        let state = ExpectHello::new(Entropy::new([6; ENTROPY_LEN])).take(&server, data(&hello), &mut welcome)?;
        client.take(keys, server.public, data(&welcome), b"", &mut initiate)?;
        state.take(&server, data(&initiate)).map(|state| state.key)
    }

    /// A client may name any key, and can vouch only for the one whose secret it has.
    #[test]
    fn a_client_that_names_the_key_of_another_is_refused() {
        let victim = KeyPair::from_secret([2; KEY_LEN]);
        assert_eq!(initiated(&victim), Ok(victim.public));
        let thief = KeyPair { public: victim.public, secret: SecretKey::from_bytes([3; KEY_LEN]) };
        assert_eq!(initiated(&thief), Err(ZmtpFault::BadVouch));
    }

    /// A server that forgets the number of HELLO would accept a box that was said before.
    #[test]
    fn the_number_of_initiate_is_above_that_of_hello() {
        let state = ExpectInitiate { cookie_key: XSalsa20Poly1305::new(&[0; KEY_LEN].into()), heard: 7 };
        let initiate = [&[0; COOKIE_LEN][..], &7_u64.to_be_bytes()].concat();
        let keys = KeyPair::from_secret([1; KEY_LEN]);
        assert_eq!(state.take(&keys, &initiate).err(), Some(ZmtpFault::BadNonce));
    }
}
