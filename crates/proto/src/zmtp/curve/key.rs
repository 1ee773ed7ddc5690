//! The key that two key pairs share, and the keys of messages that follow from it.
//!
//! A box of NaCl derives a key from its key and the first 16 bytes of its nonce (`HSalsa20`), for every box. Those of a message
//! say only who sent it, so that a connection derives both keys once, and not one for each frame.

use crypto_secretbox::aead::KeyInit as _;
use crypto_secretbox::aead::generic_array::GenericArray;
use crypto_secretbox::cipher::consts::{U8, U16, U32};
use crypto_secretbox::cipher::inout::InOutBuf;
use crypto_secretbox::cipher::{Iv, IvSizeUser, Key, KeyIvInit, KeySizeUser, StreamCipher, StreamCipherError};
use crypto_secretbox::{Kdf, SecretBox, XSalsa20Poly1305};
use curve25519_dalek::MontgomeryPoint;
use salsa20::Salsa20;
use zeroize::Zeroizing;

use super::{KEY_LEN, PublicKey, SecretKey};

/// The key of all boxes that only the owners of two key pairs can read and write.
pub(super) struct SharedKey(Zeroizing<[u8; KEY_LEN]>);

/// Boxes whose nonces all have the same first 16 bytes.
pub(super) type MessageBox = SecretBox<MessageCipher>;

impl SharedKey {
    pub(super) fn new(secret: &SecretKey, public: PublicKey) -> Self {
        let shared = Zeroizing::new((secret.to_scalar() * MontgomeryPoint(*public.as_bytes())).to_bytes());
        Self(derive(&shared, [0; 16]))
    }

    /// Boxes with any nonce.
    pub(super) fn any(&self) -> XSalsa20Poly1305 {
        XSalsa20Poly1305::new((&*self.0).into())
    }

    /// Boxes whose nonces begin with these bytes.
    pub(super) fn of_purpose(&self, purpose: [u8; 16]) -> MessageBox {
        MessageBox::new((&*derive(&self.0, purpose)).into())
    }
}

fn derive(key: &[u8; KEY_LEN], nonce: [u8; 16]) -> Zeroizing<[u8; KEY_LEN]> {
    Zeroizing::new(Salsa20::kdf(key.into(), &nonce.into()).into())
}

/// Salsa20 with a key that was derived before, by [`SharedKey::of_purpose`].
pub(super) struct MessageCipher(Salsa20);

impl Kdf for MessageCipher {
    fn kdf(key: &crypto_secretbox::Key, _nonce: &GenericArray<u8, U16>) -> crypto_secretbox::Key {
        *key
    }
}

impl KeySizeUser for MessageCipher {
    type KeySize = U32;
}

impl IvSizeUser for MessageCipher {
    type IvSize = U8;
}

impl KeyIvInit for MessageCipher {
    fn new(key: &Key<Self>, iv: &Iv<Self>) -> Self {
        Self(Salsa20::new(key, iv))
    }
}

impl StreamCipher for MessageCipher {
    fn try_apply_keystream_inout(&mut self, buf: InOutBuf<'_, '_, u8>) -> Result<(), StreamCipherError> {
        self.0.try_apply_keystream_inout(buf)
    }
}

#[cfg(test)]
mod tests {
    use crypto_box::SalsaBox;

    use super::super::{Cipher, KeyPair, short_nonce};
    use super::*;

    /// Both forms of a box are those of NaCl, which `crypto_box` makes in one go.
    #[test]
    fn boxes_are_those_of_nacl() {
        let (one, other) = (KeyPair::from_secret([1; KEY_LEN]), KeyPair::from_secret([2; KEY_LEN]));
        let theirs = SalsaBox::new(&crypto_box::PublicKey::from_bytes(other.public.0), &one.secret);
        let (shared, purpose) = (SharedKey::new(&one.secret, other.public), *b"CurveZMQMESSAGEC");
        let (any, message) = (shared.any(), SharedKey::new(&other.secret, one.public).of_purpose(purpose));
        for (number, len) in [(1, 0), (2, 1), (u64::MAX, 300)] {
            let nonce = short_nonce(purpose, number);
            let (mut expected, mut of_any, mut text) = (vec![7; len], vec![7; len], vec![7; len]);
            let tag = Cipher::encrypt(&theirs, &nonce, &mut expected);
            assert_eq!((Cipher::encrypt(&any, &nonce, &mut of_any), &of_any), (tag, &expected));
            assert_eq!((Cipher::encrypt(&message, &nonce, &mut text), &text), (tag, &expected));
            assert!(!Cipher::decrypt(&message, &short_nonce(purpose, 3), &mut text, &tag), "another nonce");
            assert!(Cipher::decrypt(&message, &nonce, &mut text, &tag));
            assert_eq!(text, vec![7; len]);
        }
    }
}
