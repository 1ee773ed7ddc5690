//! A ZeroMQ peer of the simulation: the real ZMTP session at its end of the connection, and what its kind does with it.

use std::sync::Arc;

use bytes::Bytes;
use turno_proto::model::{Mono, limits};
use turno_proto::zmtp::curve::{ENTROPY_LEN, Entropy};
use turno_proto::zmtp::{Message, Version, ZmtpFault, ZmtpSession, ZmtpSettings, ZmtpStep};

use super::asker::Asker;
use super::kind::{Kind, MdpCommand};
use super::worker::ZmqWorker;
use crate::rng::Rng;

/// How often a worker of Majordomo shows that it is alive.
const BEAT_MS: u64 = 2_000;
/// A worker of Majordomo gives up a broker that sends it no heartbeat for so long.
const PATIENCE_MS: u64 = (limits::MDP_HEARTBEAT_MS * limits::LIVENESS) as u64;

/// The behaviour of a peer.
#[derive(Debug)]
pub(crate) enum Role {
    Asks(Asker),
    Works(ZmqWorker),
    Pushes,
    Pulls,
    /// `wanted`: the broker subscribed.
    Publishes {
        wanted: bool,
    },
    /// A subscriber: its subscriptions, which it repeats after a reconnect.
    Subscribes {
        prefixes: Vec<&'static str>,
    },
}

/// News of a peer's session.
#[derive(Debug)]
pub(crate) enum PeerNews {
    /// The handshake is done.
    Opened,
    Message(Vec<Bytes>),
}

pub(crate) struct ZmqPeer {
    pub(crate) kind: Kind,
    /// The endpoint that it connects to.
    pub(crate) place: u16,
    pub(crate) role: Role,
    settings: Arc<ZmtpSettings>,
    session: Option<ZmtpSession>,
    is_open: bool,
    /// When a worker of Majordomo says the next heartbeat.
    beats: Option<Mono>,
    /// When the broker's last message came.
    heard: Mono,
    pub(crate) out: Vec<u8>,
}

impl std::fmt::Debug for ZmqPeer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, place, role, is_open, .. } = self;
        let mut shown = f.debug_struct("ZmqPeer");
        shown.field("kind", kind).field("place", place).field("role", role).field("is_open", is_open);
        shown.finish_non_exhaustive()
    }
}

impl ZmqPeer {
    pub(crate) fn new(kind: Kind, place: u16, settings: ZmtpSettings, good: bool, slots: usize) -> Self {
        let role = match kind {
            Kind::Req { .. } | Kind::Dealer | Kind::MdpClient { .. } => Role::Asks(Asker::new(kind)),
            Kind::Rep | Kind::Router | Kind::DealerWorker | Kind::MdpWorker { .. } => {
                Role::Works(ZmqWorker::new(kind, slots, good))
            }
            Kind::Push => Role::Pushes,
            Kind::Pull => Role::Pulls,
            Kind::Pub { .. } => Role::Publishes { wanted: false },
            Kind::Sub { .. } => Role::Subscribes { prefixes: Vec::new() },
        };
        let settings = Arc::new(settings);
        Self {
            kind,
            place,
            role,
            settings,
            session: None,
            is_open: false,
            beats: None,
            heard: Mono::ZERO,
            out: Vec::new(),
        }
    }

    /// It speaks the version of the protocol that has no signs of life.
    pub(crate) fn is_old(&self) -> bool {
        self.settings.version == Version::V3_0
    }

    /// The handshake is done, and the connection is there.
    pub(crate) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// A connection was made.
    pub(crate) fn connected(&mut self, now: Mono) {
        self.parted();
        // Without CURVE nothing depends on it.
        let entropy = Entropy::new([0; ENTROPY_LEN]);
        self.session = Some(ZmtpSession::begin(now, Arc::clone(&self.settings), entropy, &mut self.out));
    }

    /// The connection is gone, and everything that belonged to it.
    pub(crate) fn parted(&mut self) {
        (self.session, self.is_open, self.beats) = (None, false, None);
        self.out.clear();
        match &mut self.role {
            Role::Asks(asker) => asker.parted(),
            Role::Works(worker) => worker.parted(),
            Role::Publishes { wanted } => *wanted = false,
            Role::Pushes | Role::Pulls | Role::Subscribes { .. } => {}
        }
    }

    /// These bytes came.
    pub(crate) fn hear(&mut self, now: Mono, bytes: &[u8]) -> Vec<PeerNews> {
        let (mut told, mut at) = (Vec::new(), 0);
        let Some(session) = &mut self.session else { return told };
        loop {
            let step = session.step(now, &bytes[at..], &mut self.out);
            let (step, used) =
                step.unwrap_or_else(|fault| panic!("I12: a ZeroMQ peer cannot read what its broker says: {fault}"));
            at += used;
            match step {
                ZmtpStep::NeedMore => return told,
                ZmtpStep::Handshaked(_) => {
                    self.is_open = true;
                    told.push(PeerNews::Opened);
                }
                ZmtpStep::Message(message) => {
                    self.heard = now;
                    told.push(PeerNews::Message(frames_of(&message)));
                }
                ZmtpStep::Subscribe(_) => {
                    if let Role::Publishes { wanted } = &mut self.role {
                        *wanted = true;
                    }
                }
                ZmtpStep::Done | ZmtpStep::Asks(_) | ZmtpStep::Cancel(_) => {}
            }
        }
    }

    /// It has connected: a worker of Majordomo says what it gives, a subscriber what it wants.
    pub(crate) fn opened(&mut self, now: Mono, queue: &str) {
        if let Kind::MdpWorker { .. } = self.kind {
            let mut ready = self.kind.head(MdpCommand::Ready);
            ready.push(Bytes::copy_from_slice(queue.as_bytes()));
            self.send(&ready);
            (self.beats, self.heard) = (Some(now.plus_millis(BEAT_MS)), now);
        }
        if let (Role::Subscribes { prefixes }, Some(session)) = (&self.role, &mut self.session) {
            for prefix in prefixes {
                session.subscribe(prefix.as_bytes(), &mut self.out);
            }
        }
    }

    pub(crate) fn send(&mut self, frames: &[Bytes]) {
        if let Some(session) = &mut self.session {
            session.send(frames.iter().map(|frame| &**frame), &mut self.out);
        }
    }

    /// Wants something more, or something less.
    pub(crate) fn change_subscriptions(&mut self, all: &[&'static str], rng: &mut Rng) {
        let Self { role: Role::Subscribes { prefixes }, session: Some(session), out, .. } = self else { return };
        if prefixes.len() < 4 && !rng.once_in(3) {
            let prefix = all[rng.index(all.len())];
            prefixes.push(prefix);
            session.subscribe(prefix.as_bytes(), out);
        } else if !prefixes.is_empty() {
            let prefix = prefixes.remove(rng.index(prefixes.len()));
            session.cancel(prefix.as_bytes(), out);
        }
    }

    /// Wants everything from now on.
    pub(crate) fn subscribe_to_all(&mut self) {
        let Self { role: Role::Subscribes { prefixes }, session, out, .. } = self else { return };
        prefixes.push("");
        if let Some(session) = session {
            session.subscribe(b"", out);
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Mono> {
        let session = self.session.as_ref().and_then(ZmtpSession::next_deadline);
        session.into_iter().chain(self.beats).min()
    }

    /// Time passed. An error is why it gives up its broker.
    pub(crate) fn handle_timeout(&mut self, now: Mono) -> Result<(), ZmtpFault> {
        if self.beats.is_some_and(|at| at <= now) {
            if now.millis_since(self.heard) > PATIENCE_MS {
                return Err(ZmtpFault::PeerSilent);
            }
            self.beats = Some(now.plus_millis(BEAT_MS));
            self.send(&self.kind.head(MdpCommand::Heartbeat));
        }
        let Some(session) = &mut self.session else { return Ok(()) };
        session.handle_timeout(now, &mut self.out)
    }
}

fn frames_of(message: &Message<'_>) -> Vec<Bytes> {
    message.parts().map(Bytes::copy_from_slice).collect()
}
