//! The greeting: the 64 bytes with which each end begins.

use super::ZmtpFault;

/// Bytes of a greeting.
pub(super) const GREETING_LEN: usize = 64;

const SIGNATURE_FIRST: u8 = 0xFF;
const SIGNATURE_LAST: u8 = 0x7F;
/// Where the last byte of the signature is.
const SIGNATURE_END: usize = 9;
const MAJOR_AT: usize = 10;
const MAJOR: u8 = 3;

/// A version of ZMTP that both ends speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// Subscriptions are messages, and no end says PING to the other.
    V3_0,
    /// Subscriptions are commands, and both ends may say PING.
    V3_1,
}

/// A security mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mechanism {
    /// Neither authentication nor encryption.
    Null,
    /// User name and password, without encryption.
    Plain,
    /// Both ends prove that they have their keys, and all messages are encrypted.
    Curve,
}

impl Mechanism {
    /// The name in the greeting.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::Plain => "PLAIN",
            Self::Curve => "CURVE",
        }
    }

    /// Zero bytes fill the field up.
    fn field(self) -> [u8; 20] {
        let mut field = [0; 20];
        for (to, from) in field.iter_mut().zip(self.name().bytes()) {
            *to = from;
        }
        field
    }
}

/// Appends a greeting.
pub(super) fn encode(version: Version, mechanism: Mechanism, as_server: bool, out: &mut Vec<u8>) {
    let end = out.len() + GREETING_LEN;
    out.extend_from_slice(&[SIGNATURE_FIRST, 0, 0, 0, 0, 0, 0, 0, 0, SIGNATURE_LAST]);
    out.extend_from_slice(&[MAJOR, u8::from(version == Version::V3_1)]);
    out.extend_from_slice(&mechanism.field());
    out.push(u8::from(as_server));
    out.resize(end, 0);
}

/// A greeting as far as it has come.
#[derive(Clone, Debug)]
pub(super) struct PartialGreeting {
    bytes: [u8; GREETING_LEN],
    have: usize,
}

/// The content of a greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Greeting {
    pub(super) version: Version,
    mechanism: [u8; 20],
    as_server: bool,
}

impl PartialGreeting {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; GREETING_LEN], have: 0 }
    }

    /// Takes bytes. Returns how many, and the greeting once it is whole.
    ///
    /// Other protocols are recognised at the first byte that differs: an older peer waits for an answer to its few bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<(usize, Option<Greeting>), ZmtpFault> {
        let room = self.bytes.get_mut(self.have..).unwrap_or_default();
        let used = room.len().min(bytes.len());
        for (to, from) in room.iter_mut().zip(bytes) {
            *to = *from;
        }
        self.have += used;
        self.judge()?;
        Ok((used, (self.have == GREETING_LEN).then(|| self.read())))
    }

    fn judge(&self) -> Result<(), ZmtpFault> {
        let seen = |at: usize| self.bytes.get(at).copied().filter(|_| at < self.have);
        match seen(0) {
            None | Some(SIGNATURE_FIRST) => {}
            // The length and flags of an identity of at most 253 bytes.
            Some(1..) if seen(1) == Some(0) => return Err(ZmtpFault::OldVersion(1)),
            Some(1..) if seen(1).is_none() => return Ok(()),
            Some(_) => return Err(ZmtpFault::NotZmtp),
        }
        match seen(SIGNATURE_END) {
            None => return Ok(()),
            Some(SIGNATURE_LAST) => {}
            // The flags of a longer identity, whose length stands before them.
            Some(0) => return Err(ZmtpFault::OldVersion(1)),
            Some(_) => return Err(ZmtpFault::NotZmtp),
        }
        match seen(MAJOR_AT) {
            Some(0..MAJOR) => Err(ZmtpFault::OldVersion(2)),
            None | Some(_) => Ok(()),
        }
    }

    fn read(&self) -> Greeting {
        let [_, _, _, _, _, _, _, _, _, _, major, minor, rest @ ..] = &self.bytes;
        let version = if *major > MAJOR || *minor >= 1 { Version::V3_1 } else { Version::V3_0 };
        let mechanism = rest.first_chunk().copied().unwrap_or_default();
        Greeting { version, mechanism, as_server: rest.get(20) == Some(&1) }
    }
}

impl Greeting {
    /// Whether the peer uses that mechanism, in the other role of it. A client that says nothing of its role is common:
    /// libzmq never sets the field, so that only two ends that both say "server" are known to be wrong.
    pub(super) fn check(&self, mechanism: Mechanism, as_server: bool) -> Result<(), ZmtpFault> {
        if self.mechanism != mechanism.field() {
            return Err(ZmtpFault::WrongMechanism);
        }
        if as_server && self.as_server {
            return Err(ZmtpFault::BothServers);
        }
        Ok(())
    }
}
