//! Protocol faults that end a connection: a closed list, each with its code.

use super::SocketType;
use crate::model::Code;

/// Why a connection must end. If ERROR may be said at that point, it is in the caller's buffer already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZmtpFault {
    /// The first bytes are not the signature of a ZMTP greeting.
    #[error("the peer did not send a ZMTP greeting")]
    NotZmtp,
    /// The greeting of ZMTP 1 or 2.
    #[error("the peer speaks ZMTP {0}, which this end does not")]
    OldVersion(u8),
    /// The two ends must use the same mechanism.
    #[error("the peer uses another security mechanism than this end")]
    WrongMechanism,
    /// Both ends want to be the server of the mechanism.
    #[error("both ends want to be the server of the security mechanism")]
    BothServers,
    /// Reserved bits of the flags are set, or a command has MORE.
    #[error("a frame has the invalid flags {0:#04x}")]
    BadFlags(u8),
    /// The frames of a message are too long together. Nothing was allocated for the last one.
    #[error("a message is longer than this end accepts")]
    MessageTooLarge,
    /// Too many frames with MORE in a row.
    #[error("a message has more frames than this end accepts")]
    TooManyParts,
    /// A command is too long. Nothing was allocated for it.
    #[error("a command is longer than this end accepts")]
    CommandTooLarge,
    /// A command without a name, or with fields that do not fit.
    #[error("a command cannot be read")]
    BadCommand,
    /// A command that must not come at this point.
    #[error("a command came that must not come at this point")]
    UnexpectedCommand,
    /// A message came before the handshake was done.
    #[error("a message came before the handshake was done")]
    UnexpectedMessage,
    /// The properties of the peer cannot be read.
    #[error("the properties of the peer cannot be read")]
    BadMetadata,
    /// The peer does not name its socket type, or names one that this end does not know.
    #[error("the peer has an unknown socket type")]
    UnknownSocketType,
    /// Two socket types that must not talk to each other.
    #[error("a {theirs} socket cannot talk to this end, which is {ours}")]
    WrongSocketType {
        /// The type of this end.
        ours: SocketType,
        /// The type of the peer.
        theirs: SocketType,
    },
    /// A PAIR socket, at an end that takes the counterpart of its peer.
    #[error("a {0} socket cannot talk to a broker")]
    NoCounterpart(SocketType),
    /// The owner of this end does not accept the user or key of the peer.
    #[error("the peer's name and password, or its key, are not accepted")]
    Refused,
    /// ERROR came: the peer ends the connection.
    #[error("the peer refused the connection with ERROR")]
    RefusedByPeer,
    /// A CURVE box does not open: another key, or damaged bytes.
    #[error("an encrypted box does not open: the keys do not match, or its bytes are damaged")]
    BadBox,
    /// The cookie is not the one that this connection gave.
    #[error("the cookie is not the one that this connection gave")]
    BadCookie,
    /// The vouch does not tie the client's key to this connection.
    #[error("the client's vouch is not for this connection")]
    BadVouch,
    /// A nonce is not greater than the one before.
    #[error("a nonce is not greater than the one before")]
    BadNonce,
    /// SUBSCRIBE or CANCEL from a socket that cannot subscribe.
    #[error("a {0} socket sent a subscription")]
    NotASubscriber(SocketType),
    /// A message from a socket that only receives.
    #[error("a {0} socket sent a message")]
    NotASender(SocketType),
    /// The handshake took too long.
    #[error("the handshake was not finished in time")]
    HandshakeTimeout,
    /// The peer was silent for longer than its heartbeat allows.
    #[error("the peer was silent for too long")]
    PeerSilent,
}

impl ZmtpFault {
    /// The code of this fault.
    pub const fn code(self) -> Code {
        match self {
            Self::NotZmtp => Code::NotZmtp,
            Self::OldVersion(_) => Code::OldZmtp,
            Self::WrongMechanism | Self::BothServers => Code::WrongMechanism,
            Self::MessageTooLarge => Code::FrameTooLarge,
            Self::TooManyParts => Code::TooManyParts,
            Self::BadFlags(_)
            | Self::CommandTooLarge
            | Self::BadCommand
            | Self::UnexpectedCommand
            | Self::UnexpectedMessage
            | Self::BadMetadata => Code::BadZmtp,
            Self::UnknownSocketType
            | Self::WrongSocketType { .. }
            | Self::NoCounterpart(_)
            | Self::NotASubscriber(_)
            | Self::NotASender(_) => Code::WrongSocketType,
            Self::Refused => Code::NotAuthenticated,
            Self::RefusedByPeer => Code::RefusedByPeer,
            Self::BadBox | Self::BadCookie | Self::BadVouch | Self::BadNonce => Code::BadCurve,
            Self::HandshakeTimeout => Code::GreetingTimeout,
            Self::PeerSilent => Code::PeerSilent,
        }
    }

    /// The reason that ERROR gives the peer, where ERROR may be said: libzmq reports three digits as a status of
    /// authentication, and ignores other texts.
    pub(super) const fn reason(self) -> Option<&'static str> {
        match self {
            Self::Refused => Some("400"),
            Self::UnknownSocketType | Self::WrongSocketType { .. } | Self::NoCounterpart(_) => {
                Some("Invalid socket type")
            }
            Self::BadMetadata => Some("Invalid metadata"),
            Self::CommandTooLarge => Some("Command too large"),
            Self::BadCommand | Self::UnexpectedCommand | Self::UnexpectedMessage => Some("Invalid handshake"),
            _ => None,
        }
    }
}
