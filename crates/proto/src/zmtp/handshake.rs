//! The handshake between greeting and traffic, by mechanism. Each state is named for what it waits for.

use super::command::{self, Command};
use super::curve::traffic::Traffic;
use super::curve::{Entropy, client, server};
use super::metadata::{self, PeerMetadata};
use super::settings::{OwnSocketType, Peer, Security, User, ZmtpCredentials, ZmtpSettings};
use super::{Version, ZmtpFault, plain};

/// How far the handshake is.
pub(super) enum Handshake {
    /// NULL. `said`: READY of this end went out, because its type does not depend on the peer's.
    NullExpectReady {
        said: bool,
    },
    PlainExpectHello,
    PlainExpectVerdict {
        user: Box<[u8]>,
    },
    PlainExpectInitiate {
        user: Box<[u8]>,
    },
    PlainExpectWelcome,
    PlainExpectReady,
    CurveExpectHello(Box<server::ExpectHello>),
    CurveExpectInitiate(Box<server::ExpectInitiate>),
    CurveExpectVerdict(Box<server::ExpectVerdict>, PeerMetadata),
    CurveExpectWelcome(Box<client::ExpectWelcome>),
    CurveExpectReady(Box<client::ExpectReady>),
}

/// The result of a command, or of the owner's verdict.
pub(super) enum Progress {
    Next(Handshake),
    /// The owner judges this before it goes on.
    Asks(Handshake, ZmtpCredentials),
    Done(Peer, Option<Box<Traffic>>),
}

impl Handshake {
    /// Both greetings fit: appends what this end says first, if it begins.
    pub(super) fn begin(settings: &ZmtpSettings, entropy: Entropy, out: &mut Vec<u8>) -> Self {
        match &settings.security {
            Security::Null => {
                let said = matches!(settings.ours, OwnSocketType::Is(_));
                if let OwnSocketType::Is(_) = settings.ours {
                    command::encode("READY", &[&stated(settings)], out);
                }
                Self::NullExpectReady { said }
            }
            Security::PlainServer => Self::PlainExpectHello,
            Security::PlainClient { user, password } => {
                plain::encode_hello(user, password, out);
                Self::PlainExpectWelcome
            }
            Security::CurveServer(_) => Self::CurveExpectHello(Box::new(server::ExpectHello::new(entropy))),
            Security::CurveClient { server, .. } => {
                Self::CurveExpectWelcome(Box::new(client::ExpectWelcome::hello(&entropy, *server, out)))
            }
        }
    }

    /// Whether the owner must judge before more can come.
    pub(super) const fn expects_verdict(&self) -> bool {
        matches!(self, Self::PlainExpectVerdict { .. } | Self::CurveExpectVerdict(..))
    }

    /// Takes a command of the peer.
    pub(super) fn take(
        self,
        settings: &ZmtpSettings,
        version: Version,
        command: Command<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Progress, ZmtpFault> {
        match (self, command, &settings.security) {
            (_, Command::Error, _) => Err(ZmtpFault::RefusedByPeer),
            (Self::NullExpectReady { said }, Command::Ready(data), _) => {
                let met = metadata::meet(data, settings)?;
                if !said {
                    command::encode("READY", &[&properties(&met, settings)], out);
                }
                Ok(done(met, User::Unknown, version, None))
            }
            (Self::PlainExpectHello, Command::Hello(data), _) => {
                let credentials = plain::read_hello(data)?;
                let user = match &credentials {
                    ZmtpCredentials::Plain { user, .. } => user.clone(),
                    ZmtpCredentials::Curve { .. } => Box::default(),
                };
                Ok(Progress::Asks(Self::PlainExpectVerdict { user }, credentials))
            }
            (Self::PlainExpectInitiate { user }, Command::Initiate(data), _) => {
                let met = metadata::meet(data, settings)?;
                command::encode("READY", &[&properties(&met, settings)], out);
                Ok(done(met, User::Name(user), version, None))
            }
            (Self::PlainExpectWelcome, Command::Welcome([]), _) => {
                command::encode("INITIATE", &[&stated(settings)], out);
                Ok(Progress::Next(Self::PlainExpectReady))
            }
            (Self::PlainExpectReady, Command::Ready(data), _) => {
                Ok(done(metadata::meet(data, settings)?, User::Unknown, version, None))
            }
            (Self::CurveExpectHello(state), Command::Hello(data), Security::CurveServer(keys)) => {
                Ok(Progress::Next(Self::CurveExpectInitiate(Box::new(state.take(keys, data, out)?))))
            }
            (Self::CurveExpectInitiate(state), Command::Initiate(data), Security::CurveServer(keys)) => {
                let state = state.take(keys, data)?;
                let met = metadata::meet(&state.metadata, settings)?;
                let credentials = ZmtpCredentials::Curve { key: state.key };
                Ok(Progress::Asks(Self::CurveExpectVerdict(Box::new(state), met), credentials))
            }
            (Self::CurveExpectWelcome(state), Command::Welcome(data), Security::CurveClient { keys, server }) => {
                let state = state.take(keys, *server, data, &stated(settings), out)?;
                Ok(Progress::Next(Self::CurveExpectReady(Box::new(state))))
            }
            (Self::CurveExpectReady(state), Command::Ready(data), _) => {
                let (data, traffic) = state.take(data)?;
                Ok(done(metadata::meet(&data, settings)?, User::Unknown, version, Some(traffic)))
            }
            _ => Err(ZmtpFault::UnexpectedCommand),
        }
    }

    /// The owner accepts what the client showed.
    pub(super) fn accept(self, settings: &ZmtpSettings, version: Version, out: &mut Vec<u8>) -> Progress {
        match self {
            Self::PlainExpectVerdict { user } => {
                command::encode("WELCOME", &[], out);
                Progress::Next(Self::PlainExpectInitiate { user })
            }
            Self::CurveExpectVerdict(state, met) => {
                let key = state.key;
                let traffic = state.accept(&properties(&met, settings), out);
                done(met, User::Key(key), version, Some(traffic))
            }
            other => Progress::Next(other),
        }
    }
}

fn done(met: PeerMetadata, user: User, version: Version, traffic: Option<Traffic>) -> Progress {
    let PeerMetadata { ours, theirs: socket_type, identity } = met;
    Progress::Done(Peer { socket_type, ours, identity, user, version }, traffic.map(Box::new))
}

/// The properties of this end, once it knows the peer's.
fn properties(met: &PeerMetadata, settings: &ZmtpSettings) -> Vec<u8> {
    let mut data = Vec::new();
    metadata::encode(met.ours, &settings.identity, &mut data);
    data
}

/// The properties of an end that says them before it knows the peer's.
fn stated(settings: &ZmtpSettings) -> Vec<u8> {
    let OwnSocketType::Is(ours) = settings.ours else {
        panic!("an end that says its properties first has a socket type of its own")
    };
    let mut data = Vec::new();
    metadata::encode(ours, &settings.identity, &mut data);
    data
}
