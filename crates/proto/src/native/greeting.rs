//! How two brokers show each other who they are, without sockets, clock or chance: values in, values out.
//!
//! The dialler says who it is and a nonce; the acceptor the same, with a proof over both that it knows the secret; then the
//! dialler proves the same. A proof is worth nothing in another greeting (the nonces differ), in the other direction, and
//! for other names and ids. States are named for what they wait for, and each takes one frame.

use std::fmt;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use super::link::{LinkChallenge, LinkHello, LinkProof};
use super::{VERSION, cut};
use crate::model::link::BrokerId;
use crate::model::{Code, limits};

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 32;
/// Bytes that were never used before. Whoever starts a greeting brings them.
pub type Nonce = [u8; NONCE_BYTES];

/// The first bytes under every proof: what is proven, and the version of it.
const LABEL: &[u8] = b"turno link 1";
const BY_ACCEPTOR: u8 = 1;
const BY_DIALLER: u8 = 2;

/// What both ends of a link know and nobody else. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<[u8]>);

impl Secret {
    /// These bytes; `None` if they are too few or too many ([`limits::LINK_SECRET_BYTES_MIN`]).
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let range = limits::LINK_SECRET_BYTES_MIN..=limits::LINK_SECRET_BYTES_MAX;
        range.contains(&bytes.len()).then(|| Self(bytes.into()))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// What a broker says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Who it is.
    pub broker: BrokerId,
    /// Its name, for people; at most [`limits::PEER_NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// The program and its version, for people.
    pub program: String,
    /// The longest frame that its clients may send, header included.
    pub frame_bytes_max: u64,
}

/// What one end of a greeting needs to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Who this end is.
    pub identity: Identity,
    /// Without one, only a peer on the same machine is greeted, and only if it has none either.
    pub secret: Option<Secret>,
}

impl Credentials {
    /// Names that are too long are cut.
    pub fn new(mut identity: Identity, secret: Option<Secret>) -> Self {
        cut(&mut identity.name, limits::PEER_NAME_BYTES_MAX);
        cut(&mut identity.program, limits::PEER_NAME_BYTES_MAX);
        Self { identity, secret }
    }

    /// Whether a peer may be greeted at all.
    const fn may_greet(&self, local: bool) -> Result<(), Code> {
        if self.secret.is_some() || local { Ok(()) } else { Err(Code::LinkRefused) }
    }
}

/// The end that dials; it waits for LINK_CHALLENGE.
#[derive(Clone, Debug)]
pub struct Dialler {
    me: Credentials,
    nonce: Nonce,
    local: bool,
}

/// The dialler knows who the other end is, and has not shown itself yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeted {
    /// The other end.
    pub peer: Identity,
    /// What makes the link.
    pub proof: LinkProof,
}

impl Dialler {
    /// `local`: the other end is on this machine.
    pub const fn new(me: Credentials, nonce: Nonce, local: bool) -> Self {
        Self { me, nonce, local }
    }

    /// What is said first.
    pub fn hello(&self) -> LinkHello {
        let Identity { broker, name, program, frame_bytes_max } = self.me.identity.clone();
        LinkHello {
            version: VERSION,
            broker,
            name,
            program,
            frame_bytes_max,
            nonce: Bytes::copy_from_slice(&self.nonce),
        }
    }

    /// The other end shows who it is.
    pub fn challenged(self, challenge: LinkChallenge) -> Result<Greeted, Code> {
        let LinkChallenge { version, broker, name, program, frame_bytes_max, nonce, proof } = challenge;
        self.me.may_greet(self.local)?;
        let peer = identity_of(version, broker, name, program, frame_bytes_max)?;
        let nonce = nonce_of(&nonce)?;
        let scene = Scene { dialler: (&self.me.identity, &self.nonce), acceptor: (&peer, &nonce) };
        scene.check(self.me.secret.as_ref(), BY_ACCEPTOR, &proof)?;
        let proof = LinkProof { proof: scene.prove(self.me.secret.as_ref(), BY_DIALLER) };
        Ok(Greeted { peer, proof })
    }
}

/// The end that was dialled; it waits for LINK_HELLO.
#[derive(Clone, Debug)]
pub struct Acceptor {
    me: Credentials,
    nonce: Nonce,
    local: bool,
}

/// The end that was dialled; it waits for LINK_PROOF.
#[derive(Clone, Debug)]
pub struct ExpectProof {
    me: Credentials,
    nonce: Nonce,
    peer: Identity,
    peer_nonce: Nonce,
}

impl Acceptor {
    /// `local`: the other end is on this machine.
    pub const fn new(me: Credentials, nonce: Nonce, local: bool) -> Self {
        Self { me, nonce, local }
    }

    /// The other end says who it is.
    pub fn greeted(self, hello: LinkHello) -> Result<(LinkChallenge, ExpectProof), Code> {
        let LinkHello { version, broker, name, program, frame_bytes_max, nonce } = hello;
        self.me.may_greet(self.local)?;
        let peer = identity_of(version, broker, name, program, frame_bytes_max)?;
        let peer_nonce = nonce_of(&nonce)?;
        let Self { me, nonce, .. } = self;
        let scene = Scene { dialler: (&peer, &peer_nonce), acceptor: (&me.identity, &nonce) };
        let proof = scene.prove(me.secret.as_ref(), BY_ACCEPTOR);
        let Identity { broker, name, program, frame_bytes_max } = me.identity.clone();
        let nonce_bytes = Bytes::copy_from_slice(&nonce);
        let challenge =
            LinkChallenge { version: VERSION, broker, name, program, frame_bytes_max, nonce: nonce_bytes, proof };
        Ok((challenge, ExpectProof { me, nonce, peer, peer_nonce }))
    }
}

impl ExpectProof {
    /// The other end shows that it is who it said.
    pub fn proven(self, proof: &LinkProof) -> Result<Identity, Code> {
        let scene = Scene { dialler: (&self.peer, &self.peer_nonce), acceptor: (&self.me.identity, &self.nonce) };
        scene.check(self.me.secret.as_ref(), BY_DIALLER, &proof.proof)?;
        Ok(self.peer)
    }
}

/// What a proof is about: both ends of one greeting.
struct Scene<'a> {
    dialler: (&'a Identity, &'a Nonce),
    acceptor: (&'a Identity, &'a Nonce),
}

impl Scene<'_> {
    /// Nothing without a secret.
    fn prove(&self, secret: Option<&Secret>, by: u8) -> Bytes {
        let proof = secret.map(|secret| Bytes::copy_from_slice(&self.mac(secret, by).finalize().into_bytes()));
        proof.unwrap_or_default()
    }

    /// Both ends must have the same secret, or both of them none. How long it takes does not tell how wrong a proof is.
    fn check(&self, secret: Option<&Secret>, by: u8, proof: &[u8]) -> Result<(), Code> {
        let right = match secret {
            Some(secret) => self.mac(secret, by).verify_slice(proof).is_ok(),
            None => proof.is_empty(),
        };
        if right { Ok(()) } else { Err(Code::LinkRefused) }
    }

    /// All that differs in length has its length before it.
    fn mac(&self, secret: &Secret, by: u8) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&secret.0).expect("a key of any length will do");
        mac.update(LABEL);
        mac.update(&[by]);
        for (_, nonce) in [self.dialler, self.acceptor] {
            mac.update(nonce);
        }
        for (end, _) in [self.dialler, self.acceptor] {
            mac.update(&end.broker.get().to_le_bytes());
        }
        for (end, _) in [self.dialler, self.acceptor] {
            mac.update(&(end.name.len() as u64).to_le_bytes());
            mac.update(end.name.as_bytes());
        }
        mac
    }
}

fn identity_of(
    version: u16,
    broker: BrokerId,
    name: String,
    mut program: String,
    frame_bytes_max: u64,
) -> Result<Identity, Code> {
    if version != VERSION {
        return Err(Code::VersionMismatch);
    }
    // A name is part of what is proven, so that it cannot be cut.
    if name.len() > limits::PEER_NAME_BYTES_MAX {
        return Err(Code::BadBody);
    }
    cut(&mut program, limits::PEER_NAME_BYTES_MAX);
    Ok(Identity { broker, name, program, frame_bytes_max })
}

fn nonce_of(bytes: &[u8]) -> Result<Nonce, Code> {
    bytes.try_into().map_err(|_| Code::BadBody)
}
