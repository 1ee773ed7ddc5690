//! Kinds of ZeroMQ peers, and how each of them writes its messages into frames.

use bytes::Bytes;
use turno_proto::zmtp::SocketType;

/// The kind of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `relaxed`: requests have a number, and a new one may be made before the last has an answer.
    Req {
        relaxed: bool,
    },
    Dealer,
    /// Asks by Majordomo, with a REQ socket or with a DEALER socket.
    MdpClient {
        version: Version,
        is_req: bool,
    },
    Rep,
    Router,
    DealerWorker,
    MdpWorker {
        version: Version,
        /// An empty frame comes first, as from a REQ socket.
        front: bool,
    },
    Push,
    Pull,
    Pub {
        extended: bool,
    },
    Sub {
        extended: bool,
    },
}

/// The version of Majordomo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
}

/// Commands of workers and brokers of Majordomo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MdpCommand {
    Ready,
    Request,
    Partial,
    Final,
    Heartbeat,
    Disconnect,
}

impl Version {
    pub(crate) const fn client(self) -> Bytes {
        Bytes::from_static(match self {
            Self::One => b"MDPC01",
            Self::Two => b"MDPC02",
        })
    }

    pub(crate) const fn worker(self) -> Bytes {
        Bytes::from_static(match self {
            Self::One => b"MDPW01",
            Self::Two => b"MDPW02",
        })
    }

    pub(crate) const fn word(self, word: MdpCommand) -> Bytes {
        Bytes::from_static(match (self, word) {
            (_, MdpCommand::Ready) => &[1],
            (_, MdpCommand::Request) => &[2],
            (_, MdpCommand::Partial) | (Self::One, MdpCommand::Final) => &[3],
            (Self::Two, MdpCommand::Final) | (Self::One, MdpCommand::Heartbeat) => &[4],
            (Self::Two, MdpCommand::Heartbeat) | (Self::One, MdpCommand::Disconnect) => &[5],
            (Self::Two, MdpCommand::Disconnect) => &[6],
        })
    }
}

impl Kind {
    pub(crate) const fn socket(self) -> SocketType {
        match self {
            Self::Req { .. } | Self::MdpClient { is_req: true, .. } => SocketType::Req,
            Self::Dealer | Self::DealerWorker | Self::MdpClient { .. } | Self::MdpWorker { .. } => SocketType::Dealer,
            Self::Rep => SocketType::Rep,
            Self::Router => SocketType::Router,
            Self::Push => SocketType::Push,
            Self::Pull => SocketType::Pull,
            Self::Pub { extended: false } => SocketType::Pub,
            Self::Pub { extended: true } => SocketType::Xpub,
            Self::Sub { extended: false } => SocketType::Sub,
            Self::Sub { extended: true } => SocketType::Xsub,
        }
    }

    /// One request at a time.
    pub(crate) const fn asks_in_turn(self) -> bool {
        matches!(self, Self::Req { .. } | Self::MdpClient { is_req: true, .. })
    }

    pub(crate) const fn works(self) -> bool {
        matches!(self, Self::Rep | Self::Router | Self::DealerWorker | Self::MdpWorker { .. })
    }

    /// It takes work from its queue.
    pub(crate) const fn consumes(self) -> bool {
        self.works() || matches!(self, Self::Pull)
    }

    /// Deliveries that it may have.
    pub(crate) fn slots(self, slots: Option<u32>) -> usize {
        let slots = match self {
            Self::Rep => 1,
            Self::MdpWorker { .. } => slots.unwrap_or(1),
            _ => slots.unwrap_or(turno_proto::model::limits::ZMQ_SLOTS),
        };
        slots as usize
    }

    /// The frames before what a worker of that kind hears or says about a delivery, but for its number.
    pub(crate) fn head(self, word: MdpCommand) -> Vec<Bytes> {
        match self {
            Self::MdpWorker { version, front } => {
                let front = front.then(Bytes::new);
                front.into_iter().chain([version.worker(), version.word(word)]).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// A request, and what must stand before its answer.
#[derive(Clone, Debug)]
pub(crate) struct ZmqRequest {
    /// The frames before the request.
    pub(crate) front: Vec<Bytes>,
    pub(crate) before_answer: Vec<Bytes>,
    /// The frames before a piece of it, if pieces come one by one.
    pub(crate) before_piece: Option<Vec<Bytes>>,
}

impl ZmqRequest {
    /// `nth` tells requests of one socket apart; `service` is for Majordomo.
    pub(crate) fn new(kind: Kind, nth: u32, service: &str) -> Self {
        let empty = [Bytes::new()];
        let front: Vec<Bytes> = match kind {
            Kind::Req { relaxed: true } => vec![Bytes::copy_from_slice(&nth.to_be_bytes()), Bytes::new()],
            Kind::Req { .. } | Kind::MdpClient { is_req: true, .. } => empty.to_vec(),
            _ if nth.is_multiple_of(2) => empty.to_vec(),
            _ => Vec::new(),
        };
        let Kind::MdpClient { version, .. } = kind else {
            return Self { before_answer: front.clone(), front, before_piece: None };
        };
        let (header, service) = (version.client(), Bytes::copy_from_slice(service.as_bytes()));
        let with = |word: Option<&'static [u8]>| {
            let mut frames = front.clone();
            frames.push(header.clone());
            frames.extend(word.map(Bytes::from_static));
            frames.push(service.clone());
            frames
        };
        match version {
            Version::One => Self { front: with(None), before_answer: with(None), before_piece: None },
            Version::Two => {
                Self { front: with(Some(&[1])), before_answer: with(Some(&[3])), before_piece: Some(with(Some(&[2]))) }
            }
        }
    }
}
