//! CURVE: keys, boxes, and the commands of the handshake (26/CurveZMQ).
//!
//! Both ends have a long-term key pair and make a short-term one for each connection, from randomness that the caller hands
//! in. `client` and `server` hold the states of the handshake; `traffic` is the encryption of everything after it.

pub(super) mod client;
mod key;
pub(super) mod server;
pub(super) mod traffic;

use std::fmt;
use std::str::FromStr;

use crypto_box::SecretKey;
use crypto_box::aead::AeadInPlace;
use crypto_box::aead::consts::{U16, U24};
use zeroize::Zeroizing;

use self::key::SharedKey;
use super::{ZmtpFault, z85};

/// Bytes of randomness that a connection needs: a short-term key, a key for the cookie and two nonces.
pub const ENTROPY_LEN: usize = 96;

/// Fresh random bytes for one connection. Used twice, they give away what both connections say.
pub type Entropy = Zeroizing<[u8; ENTROPY_LEN]>;

pub(super) const KEY_LEN: usize = 32;
const TAG_LEN: usize = 16;
const SHORT_NONCE_LEN: usize = 8;
const LONG_NONCE_LEN: usize = 16;
const NONCE_LEN: usize = 24;
/// A long nonce, and the box of a client's short-term public key and a server's short-term secret key.
const COOKIE_LEN: usize = LONG_NONCE_LEN + TAG_LEN + 2 * KEY_LEN;
/// A long nonce, and the box of a client's short-term key and a server's long-term key.
const VOUCH_LEN: usize = LONG_NONCE_LEN + TAG_LEN + 2 * KEY_LEN;

/// A public key. Its text form is Z85, as ZeroMQ's tools print it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; KEY_LEN]);

impl PublicKey {
    /// The key with these bytes.
    pub const fn from_bytes(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub const fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&z85::encode(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

/// A text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid CURVE key: must be 40 characters of Z85")]
pub struct BadKey;

impl FromStr for PublicKey {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        z85::decode(text).map(Self).ok_or(BadKey)
    }
}

/// A secret key and its public key.
#[derive(Clone)]
pub struct KeyPair {
    secret: SecretKey,
    public: PublicKey,
}

impl KeyPair {
    /// The pair of a secret key.
    pub fn from_secret(secret: [u8; KEY_LEN]) -> Self {
        let secret = SecretKey::from_bytes(secret);
        Self { public: PublicKey(*secret.public_key().as_bytes()), secret }
    }

    /// The pair of a secret key in Z85.
    pub fn from_secret_text(text: &str) -> Result<Self, BadKey> {
        z85::decode(text).map(Self::from_secret).ok_or(BadKey)
    }

    /// The public key, which the other end may know.
    pub const fn public(&self) -> PublicKey {
        self.public
    }

    /// The key that only the owners of these two pairs know.
    fn shared(&self, other: PublicKey) -> SharedKey {
        SharedKey::new(&self.secret, other)
    }
}

/// The secret key is not shown.
impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyPair({})", self.public)
    }
}

/// The nonce of a box that a long-term key protects: 8 bytes that say what it is for, and 16 random ones.
fn long_nonce(purpose: [u8; 8], random: [u8; LONG_NONCE_LEN]) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    for (to, from) in nonce.iter_mut().zip(purpose.into_iter().chain(random)) {
        *to = from;
    }
    nonce
}

/// The nonce of a box that short-term keys protect: 16 bytes that say what it is for, and a number that rises.
fn short_nonce(purpose: [u8; 16], number: u64) -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    for (to, from) in nonce.iter_mut().zip(purpose.into_iter().chain(number.to_be_bytes())) {
        *to = from;
    }
    nonce
}

/// Appends a box: its tag, then the pieces in it.
fn seal(cipher: &impl Cipher, nonce: &[u8; NONCE_LEN], pieces: &[&[u8]], out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&[0; TAG_LEN]);
    pieces.iter().for_each(|piece| out.extend_from_slice(piece));
    let Some((tag, text)) = out.get_mut(at..).and_then(<[u8]>::split_first_chunk_mut) else { return };
    *tag = cipher.encrypt(nonce, text);
}

/// The text of a box; `None` if it was made with another key or nonce, or is damaged.
fn open(cipher: &impl Cipher, nonce: &[u8; NONCE_LEN], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (tag, text) = sealed.split_first_chunk()?;
    let mut text = Zeroizing::new(text.to_vec());
    cipher.decrypt(nonce, &mut text, tag).then_some(text)
}

/// A key that seals and opens boxes.
trait Cipher {
    /// Encrypts in place; the tag.
    fn encrypt(&self, nonce: &[u8; NONCE_LEN], text: &mut [u8]) -> [u8; TAG_LEN];
    /// Decrypts in place; false, and nothing is changed, if the tag does not fit.
    fn decrypt(&self, nonce: &[u8; NONCE_LEN], text: &mut [u8], tag: &[u8; TAG_LEN]) -> bool;
}

impl<C: AeadInPlace<NonceSize = U24, TagSize = U16>> Cipher for C {
    fn encrypt(&self, nonce: &[u8; NONCE_LEN], text: &mut [u8]) -> [u8; TAG_LEN] {
        // It refuses associated data only, and there is none.
        self.encrypt_in_place_detached(nonce.into(), b"", text).map_or([0; TAG_LEN], Into::into)
    }

    fn decrypt(&self, nonce: &[u8; NONCE_LEN], text: &mut [u8], tag: &[u8; TAG_LEN]) -> bool {
        self.decrypt_in_place_detached(nonce.into(), b"", text, tag.into()).is_ok()
    }
}

/// Takes fixed fields off the front of a command.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], ZmtpFault> {
        let (field, rest) = self.0.split_first_chunk().ok_or(ZmtpFault::BadCommand)?;
        self.0 = rest;
        Ok(field)
    }

    fn key(&mut self) -> Result<PublicKey, ZmtpFault> {
        self.take().copied().map(PublicKey)
    }

    fn number(&mut self) -> Result<u64, ZmtpFault> {
        self.take::<SHORT_NONCE_LEN>().map(|bytes| u64::from_be_bytes(*bytes))
    }
}

/// A nonce of the other end must be greater than the one before.
const fn rises(last: u64, number: u64) -> Result<u64, ZmtpFault> {
    if number > last { Ok(number) } else { Err(ZmtpFault::BadNonce) }
}

/// The piece of the randomness that begins there.
fn piece<const N: usize>(entropy: &Entropy, at: usize) -> [u8; N] {
    entropy.get(at..).and_then(<[u8]>::first_chunk).copied().expect("a connection's randomness is long enough")
}
