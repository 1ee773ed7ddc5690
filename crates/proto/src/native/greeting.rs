//! The greeting of two brokers: mutual proof of identity, without sockets, clock or randomness. Links and the ring
//! greet in the same way; what differs is what a broker says of itself ([`GreetingIdentity`]).
//!
//! The dialler says who it is and a nonce; the acceptor the same, with a proof over both that it knows the secret; then the
//! dialler proves the same. A proof is worth nothing in another greeting (the nonces differ), in the other direction, for
//! another kind of greeting (the labels differ), and for others than those who greeted. States are named for what they wait
//! for, and each takes one frame.

use std::fmt;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use super::link::{LinkChallenge, LinkHello};
use super::{Frame, Kind, VERSION, cut};
use crate::model::link::BrokerId;
use crate::model::{Code, limits};

/// Bytes of a nonce.
pub const NONCE_BYTES: usize = 32;
/// Bytes that were never used before. The caller of each greeting provides them.
pub type Nonce = [u8; NONCE_BYTES];

const BY_ACCEPTOR: u8 = 1;
const BY_DIALLER: u8 = 2;

/// The shared secret of both ends of a greeting. It is never shown.
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

/// LINK_PROOF and RING_PROOF: the one that dialled knows the secret too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// 32 bytes; none if it has no secret.
    pub proof: Bytes,
}

/// The identity of a broker in one kind of greeting.
pub trait GreetingIdentity: Clone + fmt::Debug + PartialEq + Eq {
    /// The dialler's first frame.
    type Hello: Clone + fmt::Debug + PartialEq + Eq;
    /// The acceptor's answer.
    type Challenge: Clone + fmt::Debug + PartialEq + Eq;
    /// The first bytes under every proof: what is proven, and the version of it.
    const LABEL: &'static [u8];
    /// Why a peer is not greeted.
    const REFUSED: Code;
    /// The frames of hello, challenge and proof.
    const KINDS: [Kind; 3];

    /// The dialler's first frame.
    fn hello(&self, nonce: Bytes) -> Self::Hello;
    /// The acceptor's only frame.
    fn challenge(&self, nonce: Bytes, proof: Bytes) -> Self::Challenge;
    /// The dialler and its nonce.
    fn from_hello(hello: Self::Hello) -> Result<(Self, Bytes), Code>;
    /// The acceptor, its nonce, and its proof.
    fn from_challenge(challenge: Self::Challenge) -> Result<(Self, Bytes, Bytes), Code>;
    /// All that is proven of both ends, in order. All that differs in length has its length before it.
    fn tell(ends: [&Self; 2], mac: &mut impl FnMut(&[u8]));
    /// The content of a frame of this greeting.
    fn said(frame: Frame<'_>) -> Option<GreetingFrame<Self>>;
    /// The frame that says it.
    fn frame(said: GreetingFrame<Self>) -> Frame<'static>;
}

/// One of the three things that are said in a greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GreetingFrame<I: GreetingIdentity> {
    /// By the dialler.
    Hello(Box<I::Hello>),
    /// By the acceptor.
    Challenge(Box<I::Challenge>),
    /// By the dialler.
    Proof(Proof),
}

/// The identity of a broker over a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The broker's id.
    pub broker: BrokerId,
    /// Its name, for people; at most [`limits::PEER_NAME_BYTES_MAX`] bytes.
    pub name: String,
    /// The program and its version, for people.
    pub program: String,
    /// The longest frame that its clients may send, header included.
    pub frame_bytes_max: u64,
}

/// The identity and the secret of one end of a greeting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GreetingCredentials<I = Identity> {
    /// The identity of this end.
    pub identity: I,
    /// Without one, only a peer on the same machine is greeted, and only if it has none either.
    pub secret: Option<Secret>,
}

impl GreetingCredentials {
    /// Names that are too long are cut.
    pub fn new(mut identity: Identity, secret: Option<Secret>) -> Self {
        cut(&mut identity.name, limits::PEER_NAME_BYTES_MAX);
        cut(&mut identity.program, limits::PEER_NAME_BYTES_MAX);
        Self { identity, secret }
    }
}

impl<I: GreetingIdentity> GreetingCredentials<I> {
    /// Whether a peer may be greeted at all.
    const fn may_greet(&self, local: bool) -> Result<(), Code> {
        if self.secret.is_some() || local { Ok(()) } else { Err(I::REFUSED) }
    }
}

/// The end that dials; it waits for LINK_CHALLENGE or RING_CHALLENGE.
#[derive(Clone, Debug)]
pub struct Dialler<I = Identity> {
    me: GreetingCredentials<I>,
    nonce: Nonce,
    local: bool,
}

/// The dialler knows who the other end is, and has not shown itself yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedDialler<I = Identity> {
    /// The identity of the other end.
    pub peer: I,
    /// The proof that completes the connection.
    pub proof: Proof,
}

impl<I: GreetingIdentity> Dialler<I> {
    /// `local`: the other end is on this machine.
    pub const fn new(me: GreetingCredentials<I>, nonce: Nonce, local: bool) -> Self {
        Self { me, nonce, local }
    }

    /// The first frame of the dialler.
    pub fn hello(&self) -> I::Hello {
        self.me.identity.hello(Bytes::copy_from_slice(&self.nonce))
    }

    /// The other end shows who it is.
    pub fn challenged(self, challenge: I::Challenge) -> Result<VerifiedDialler<I>, Code> {
        self.me.may_greet(self.local)?;
        let (peer, nonce, proof) = I::from_challenge(challenge)?;
        let nonce = nonce_of(&nonce)?;
        let scene = ProofInput { dialler: (&self.me.identity, &self.nonce), acceptor: (&peer, &nonce) };
        scene.check(self.me.secret.as_ref(), BY_ACCEPTOR, &proof)?;
        let proof = Proof { proof: scene.prove(self.me.secret.as_ref(), BY_DIALLER) };
        Ok(VerifiedDialler { peer, proof })
    }
}

/// The end that was dialled; it waits for LINK_HELLO or RING_HELLO.
#[derive(Clone, Debug)]
pub struct Acceptor<I = Identity> {
    me: GreetingCredentials<I>,
    nonce: Nonce,
    local: bool,
}

/// The end that was dialled; it waits for LINK_PROOF or RING_PROOF.
#[derive(Clone, Debug)]
pub struct ExpectProof<I = Identity> {
    me: GreetingCredentials<I>,
    nonce: Nonce,
    peer: I,
    peer_nonce: Nonce,
}

impl<I: GreetingIdentity> Acceptor<I> {
    /// `local`: the other end is on this machine.
    pub const fn new(me: GreetingCredentials<I>, nonce: Nonce, local: bool) -> Self {
        Self { me, nonce, local }
    }

    /// The other end says who it is.
    pub fn greeted(self, hello: I::Hello) -> Result<(I::Challenge, ExpectProof<I>), Code> {
        self.me.may_greet(self.local)?;
        let (peer, peer_nonce) = I::from_hello(hello)?;
        let peer_nonce = nonce_of(&peer_nonce)?;
        let Self { me, nonce, .. } = self;
        let scene = ProofInput { dialler: (&peer, &peer_nonce), acceptor: (&me.identity, &nonce) };
        let proof = scene.prove(me.secret.as_ref(), BY_ACCEPTOR);
        let challenge = me.identity.challenge(Bytes::copy_from_slice(&nonce), proof);
        Ok((challenge, ExpectProof { me, nonce, peer, peer_nonce }))
    }
}

impl<I: GreetingIdentity> ExpectProof<I> {
    /// The other end shows that it is who it said.
    pub fn proven(self, proof: &Proof) -> Result<I, Code> {
        let scene = ProofInput { dialler: (&self.peer, &self.peer_nonce), acceptor: (&self.me.identity, &self.nonce) };
        scene.check(self.me.secret.as_ref(), BY_DIALLER, &proof.proof)?;
        Ok(self.peer)
    }
}

/// The input of a proof: both ends of one greeting.
struct ProofInput<'a, I> {
    dialler: (&'a I, &'a Nonce),
    acceptor: (&'a I, &'a Nonce),
}

impl<I: GreetingIdentity> ProofInput<'_, I> {
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
        if right { Ok(()) } else { Err(I::REFUSED) }
    }

    fn mac(&self, secret: &Secret, by: u8) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as KeyInit>::new_from_slice(&secret.0).expect("a key of any length will do");
        mac.update(I::LABEL);
        mac.update(&[by]);
        for (_, nonce) in [self.dialler, self.acceptor] {
            mac.update(nonce);
        }
        I::tell([self.dialler.0, self.acceptor.0], &mut |bytes| mac.update(bytes));
        mac
    }
}

impl GreetingIdentity for Identity {
    type Hello = LinkHello;
    type Challenge = LinkChallenge;
    const LABEL: &'static [u8] = b"turno link 1";
    const REFUSED: Code = Code::LinkRefused;
    const KINDS: [Kind; 3] = [Kind::LinkHello, Kind::LinkChallenge, Kind::LinkProof];

    fn hello(&self, nonce: Bytes) -> LinkHello {
        let Self { broker, name, program, frame_bytes_max } = self.clone();
        LinkHello { version: VERSION, broker, name, program, frame_bytes_max, nonce }
    }

    fn challenge(&self, nonce: Bytes, proof: Bytes) -> LinkChallenge {
        let Self { broker, name, program, frame_bytes_max } = self.clone();
        LinkChallenge { version: VERSION, broker, name, program, frame_bytes_max, nonce, proof }
    }

    fn from_hello(hello: LinkHello) -> Result<(Self, Bytes), Code> {
        let LinkHello { version, broker, name, mut program, frame_bytes_max, nonce } = hello;
        if version != VERSION {
            return Err(Code::VersionMismatch);
        }
        // A name is part of what is proven, so that it cannot be cut.
        if name.len() > limits::PEER_NAME_BYTES_MAX {
            return Err(Code::BadBody);
        }
        cut(&mut program, limits::PEER_NAME_BYTES_MAX);
        Ok((Self { broker, name, program, frame_bytes_max }, nonce))
    }

    fn from_challenge(challenge: LinkChallenge) -> Result<(Self, Bytes, Bytes), Code> {
        let LinkChallenge { version, broker, name, program, frame_bytes_max, nonce, proof } = challenge;
        let (identity, nonce) = Self::from_hello(LinkHello { version, broker, name, program, frame_bytes_max, nonce })?;
        Ok((identity, nonce, proof))
    }

    fn tell(ends: [&Self; 2], mac: &mut impl FnMut(&[u8])) {
        for end in ends {
            mac(&end.broker.get().to_le_bytes());
        }
        for end in ends {
            mac(&(end.name.len() as u64).to_le_bytes());
            mac(end.name.as_bytes());
        }
    }

    fn said(frame: Frame<'_>) -> Option<GreetingFrame<Self>> {
        match frame {
            Frame::LinkHello { hello } => Some(GreetingFrame::Hello(hello)),
            Frame::LinkChallenge { challenge } => Some(GreetingFrame::Challenge(challenge)),
            Frame::LinkProof { proof } => Some(GreetingFrame::Proof(proof)),
            _ => None,
        }
    }

    fn frame(said: GreetingFrame<Self>) -> Frame<'static> {
        match said {
            GreetingFrame::Hello(hello) => Frame::LinkHello { hello },
            GreetingFrame::Challenge(challenge) => Frame::LinkChallenge { challenge },
            GreetingFrame::Proof(proof) => Frame::LinkProof { proof },
        }
    }
}

fn nonce_of(bytes: &[u8]) -> Result<Nonce, Code> {
    bytes.try_into().map_err(|_| Code::BadBody)
}
