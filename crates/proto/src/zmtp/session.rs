//! The session of a ZMTP connection: greeting, handshake, heartbeat, and allowed commands by state.

use std::sync::Arc;

use bytes::Bytes;

use super::command::{self, Command};
use super::curve::Entropy;
use super::curve::traffic::{Opened, Traffic};
use super::frame::{self, MORE};
use super::handshake::{Handshake, Progress};
use super::intake::{Intake, Item};
use super::{Message, OwnSocketType, Peer, SocketType, Version, ZmtpCredentials, ZmtpFault, ZmtpSettings, greeting};
use crate::model::{Mono, limits};

/// The result of one step over the bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum ZmtpStep<'a> {
    /// Nothing until more bytes come; or, after [`Self::Asks`], until the owner has judged.
    NeedMore,
    /// A command was dealt with in here.
    Done,
    /// A client shows who it is. [`ZmtpSession::accept`] or [`ZmtpSession::refuse`] is to follow before the next step.
    Asks(ZmtpCredentials),
    /// The handshake is done: messages may go both ways.
    Handshaked(Peer),
    /// A whole message came. It may lie in the bytes that were handed in.
    Message(Message<'a>),
    /// The peer wants messages that begin with these bytes.
    Subscribe(Bytes),
    /// The peer wants them no more.
    Cancel(Bytes),
}

impl ZmtpStep<'_> {
    /// The same with memory of its own.
    pub fn into_owned(self) -> ZmtpStep<'static> {
        match self {
            Self::NeedMore => ZmtpStep::NeedMore,
            Self::Done => ZmtpStep::Done,
            Self::Asks(shown) => ZmtpStep::Asks(shown),
            Self::Handshaked(peer) => ZmtpStep::Handshaked(peer),
            Self::Message(message) => ZmtpStep::Message(message.into_owned()),
            Self::Subscribe(prefix) => ZmtpStep::Subscribe(prefix),
            Self::Cancel(prefix) => ZmtpStep::Cancel(prefix),
        }
    }
}

enum ZmtpState {
    ExpectGreeting(Box<greeting::PartialGreeting>, Entropy),
    Handshake(Box<Handshake>, Version),
    Open(OpenConnection),
    /// Something was wrong: nothing is taken any more.
    Over,
}

/// The handshake is done.
struct OpenConnection {
    theirs: SocketType,
    version: Version,
    traffic: Option<Box<Traffic>>,
    /// When the last PING was said, or the handshake was done.
    pinged: Mono,
    /// How long the peer lets itself be silent after its last PING; 0: it did not say.
    ttl_ms: u64,
}

/// One end of a connection.
pub struct ZmtpSession {
    settings: Arc<ZmtpSettings>,
    state: ZmtpState,
    intake: Intake,
    began: Mono,
    heard: Mono,
}

impl ZmtpSession {
    /// A connection that was made at `now`, by either end: appends the greeting. `entropy` is fresh random bytes.
    ///
    /// # Panics
    ///
    /// If the settings let a client of PLAIN or CURVE wait for the socket type of its peer.
    pub fn begin(now: Mono, settings: Arc<ZmtpSettings>, entropy: Entropy, out: &mut Vec<u8>) -> Self {
        let security = &settings.security;
        let is_client = !security.is_server() && security.mechanism() != super::Mechanism::Null;
        assert!(
            !is_client || matches!(settings.ours, OwnSocketType::Is(_)),
            "a client says its properties first, so it has a socket type of its own"
        );
        greeting::encode(settings.version, security.mechanism(), security.is_server(), out);
        let state = ZmtpState::ExpectGreeting(Box::new(greeting::PartialGreeting::new()), entropy);
        Self { settings, state, intake: Intake::default(), began: now, heard: now }
    }

    /// True until the handshake is done.
    pub const fn greeting(&self) -> bool {
        !matches!(self.state, ZmtpState::Open(_))
    }

    /// Bytes came, or nothing was read on purpose: the peer lives.
    pub const fn heard(&mut self, now: Mono) {
        self.heard = now;
    }

    /// Bytes that wait in here for the rest of a message.
    pub fn held_bytes(&self) -> usize {
        self.intake.held_bytes()
    }

    /// Bytes that a message which has begun will have with its present frame, as far as its head claims.
    pub fn claimed_bytes(&self) -> Option<usize> {
        self.intake.claimed_bytes()
    }

    /// Takes bytes until there is something to tell. Returns that, and how many bytes were used: all of them with
    /// [`ZmtpStep::NeedMore`], none while the owner has to judge.
    ///
    /// On a fault ERROR is in `out` if it may be said: write it and close.
    pub fn step<'a>(
        &mut self,
        now: Mono,
        bytes: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<(ZmtpStep<'a>, usize), ZmtpFault> {
        if !bytes.is_empty() {
            self.heard = now;
        }
        self.take(now, bytes, out).inspect_err(|fault| self.fail(*fault, out))
    }

    fn take<'a>(&mut self, now: Mono, bytes: &'a [u8], out: &mut Vec<u8>) -> Result<(ZmtpStep<'a>, usize), ZmtpFault> {
        let open = match &mut self.state {
            ZmtpState::Over => return Ok((ZmtpStep::NeedMore, bytes.len())),
            ZmtpState::ExpectGreeting(begun, _) => {
                let (used, greeting) = begun.take(bytes)?;
                let Some(greeting) = greeting else { return Ok((ZmtpStep::NeedMore, used)) };
                let security = &self.settings.security;
                greeting.check(security.mechanism(), security.is_server())?;
                let version = greeting.version.min(self.settings.version);
                if let ZmtpState::ExpectGreeting(_, entropy) = std::mem::replace(&mut self.state, ZmtpState::Over) {
                    let handshake = Handshake::begin(&self.settings, entropy, out);
                    self.state = ZmtpState::Handshake(Box::new(handshake), version);
                }
                return Ok((ZmtpStep::Done, used));
            }
            ZmtpState::Handshake(handshake, _) if handshake.expects_verdict() => return Ok((ZmtpStep::NeedMore, 0)),
            ZmtpState::Handshake(..) => None,
            ZmtpState::Open(open) => Some(open),
        };
        let greets = open.is_none();
        // No message may come before the handshake is done, so none may take memory.
        let bytes_max = if greets { 0 } else { self.settings.message_bytes_max };
        let traffic = open.and_then(|open| open.traffic.as_deref_mut());
        let (item, used) = self.intake.take(bytes, bytes_max, traffic).map_err(|fault| match fault {
            ZmtpFault::MessageTooLarge if greets => ZmtpFault::UnexpectedMessage,
            fault => fault,
        })?;
        let step = match item {
            None => ZmtpStep::NeedMore,
            Some(Item::Message(message)) => self.take_message(message)?,
            Some(Item::Command(body)) => self.take_command(now, &body, out)?,
        };
        Ok((step, used))
    }

    fn take_message<'a>(&self, message: Message<'a>) -> Result<ZmtpStep<'a>, ZmtpFault> {
        let ZmtpState::Open(OpenConnection { theirs, .. }) = &self.state else {
            return Err(ZmtpFault::UnexpectedMessage);
        };
        // Before 3.1 subscriptions are messages, and later peers may say them so too.
        if theirs.subscribes()
            && message.part_count() == 1
            && let Some(part) = message.part(0)
            && let Some((first @ 0..=1, prefix)) = part.split_first()
        {
            check_subscription(part.len())?;
            let prefix = Bytes::copy_from_slice(prefix);
            return Ok(if *first == 1 { ZmtpStep::Subscribe(prefix) } else { ZmtpStep::Cancel(prefix) });
        }
        if !theirs.sends() {
            return Err(ZmtpFault::NotASender(*theirs));
        }
        Ok(ZmtpStep::Message(message))
    }

    fn take_command(&mut self, now: Mono, body: &[u8], out: &mut Vec<u8>) -> Result<ZmtpStep<'static>, ZmtpFault> {
        let command = Command::read(body)?;
        match std::mem::replace(&mut self.state, ZmtpState::Over) {
            ZmtpState::Handshake(handshake, version) => {
                let progress = handshake.take(&self.settings, version, command, out)?;
                Ok(self.follow(now, version, progress))
            }
            ZmtpState::Open(mut open) => {
                let step = open.take(command, out);
                self.state = ZmtpState::Open(open);
                step
            }
            ZmtpState::ExpectGreeting(..) | ZmtpState::Over => Ok(ZmtpStep::Done),
        }
    }

    fn follow(&mut self, now: Mono, version: Version, progress: Progress) -> ZmtpStep<'static> {
        match progress {
            Progress::Next(handshake) => {
                self.state = ZmtpState::Handshake(Box::new(handshake), version);
                ZmtpStep::Done
            }
            Progress::Asks(handshake, credentials) => {
                self.state = ZmtpState::Handshake(Box::new(handshake), version);
                ZmtpStep::Asks(credentials)
            }
            Progress::Done(peer, traffic) => {
                let Peer { socket_type: theirs, version, .. } = peer;
                self.state = ZmtpState::Open(OpenConnection { theirs, version, traffic, pinged: now, ttl_ms: 0 });
                ZmtpStep::Handshaked(peer)
            }
        }
    }

    /// The owner accepts what the client showed. [`ZmtpStep::Done`]: the handshake goes on. Without a question nothing happens.
    pub fn accept(&mut self, now: Mono, out: &mut Vec<u8>) -> ZmtpStep<'static> {
        match std::mem::replace(&mut self.state, ZmtpState::Over) {
            ZmtpState::Handshake(handshake, version) => {
                let progress = handshake.accept(&self.settings, version, out);
                self.follow(now, version, progress)
            }
            other => {
                self.state = other;
                ZmtpStep::Done
            }
        }
    }

    /// The owner refuses it: appends ERROR. Write it and close.
    pub fn refuse(&mut self, out: &mut Vec<u8>) -> ZmtpFault {
        self.fail(ZmtpFault::Refused, out);
        ZmtpFault::Refused
    }

    fn fail(&mut self, fault: ZmtpFault, out: &mut Vec<u8>) {
        // ERROR belongs to the handshake.
        let state = std::mem::replace(&mut self.state, ZmtpState::Over);
        let handshakes = matches!(state, ZmtpState::Handshake(..) | ZmtpState::Over);
        if handshakes && let Some(reason) = fault.reason() {
            command::encode_error(reason, out);
        }
        self.intake = Intake::default();
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn next_deadline(&self) -> Option<Mono> {
        match &self.state {
            ZmtpState::ExpectGreeting(..) | ZmtpState::Handshake(..) => {
                Some(self.began.plus_millis(limits::GREETING_MS_MAX))
            }
            ZmtpState::Open(open) => self.silent_at(open).into_iter().chain(self.ping_at(open)).min(),
            ZmtpState::Over => None,
        }
    }

    /// Something may be due: appends PING, or says why the peer is given up.
    pub fn handle_timeout(&mut self, now: Mono, out: &mut Vec<u8>) -> Result<(), ZmtpFault> {
        let fault = match &self.state {
            ZmtpState::Over => return Ok(()),
            ZmtpState::ExpectGreeting(..) | ZmtpState::Handshake(..) => {
                (now >= self.began.plus_millis(limits::GREETING_MS_MAX)).then_some(ZmtpFault::HandshakeTimeout)
            }
            ZmtpState::Open(open) => self.silent_at(open).filter(|at| now >= *at).map(|_| ZmtpFault::PeerSilent),
        };
        if let Some(fault) = fault {
            self.fail(fault, out);
            return Err(fault);
        }
        let ZmtpState::Open(open) = &self.state else { return Ok(()) };
        if self.ping_at(open).is_some_and(|at| now >= at) {
            let ttl_tenths = u16::try_from(self.silence_ms() / 100).unwrap_or(u16::MAX);
            if let ZmtpState::Open(open) = &mut self.state {
                open.pinged = now;
                open.say_command("PING", &ttl_tenths.to_be_bytes(), out);
            }
        }
        Ok(())
    }

    /// How long either end may be silent if this end says PING.
    fn silence_ms(&self) -> u64 {
        u64::from(self.settings.ping_ms) * u64::from(limits::LIVENESS)
    }

    /// Peers that speak 3.0 do not know PING.
    fn pings(&self, open: &OpenConnection) -> bool {
        self.settings.ping_ms > 0 && open.version == Version::V3_1
    }

    fn ping_at(&self, open: &OpenConnection) -> Option<Mono> {
        self.pings(open).then(|| open.pinged.plus_millis(self.settings.ping_ms.into()))
    }

    fn silent_at(&self, open: &OpenConnection) -> Option<Mono> {
        let own = self.pings(open).then(|| self.silence_ms());
        let wanted = (open.ttl_ms > 0).then_some(open.ttl_ms);
        own.into_iter().chain(wanted).min().map(|silence_ms| self.heard.plus_millis(silence_ms))
    }

    /// Appends a message of these parts, at least one. False, and nothing is appended, before the handshake is done.
    pub fn send<'a>(&mut self, parts: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) -> bool {
        let ZmtpState::Open(open) = &mut self.state else { return false };
        let mut parts = parts.into_iter().peekable();
        while let Some(part) = parts.next() {
            let more = parts.peek().is_some();
            match &mut open.traffic {
                None => encode_part(part, more, out),
                Some(traffic) => traffic.encode(Opened { more, command: false }, &[part], out),
            }
        }
        true
    }

    /// Appends messages that [`encode`] made, or the front of one by [`encode_front`]: what goes to many, or is kept, is encoded
    /// once. False before the handshake is done.
    pub fn send_encoded(&mut self, encoded: &[u8], out: &mut Vec<u8>) -> bool {
        let ZmtpState::Open(open) = &mut self.state else { return false };
        let Some(traffic) = &mut open.traffic else {
            out.extend_from_slice(encoded);
            return true;
        };
        let mut rest = encoded;
        while let Some((head, body, behind)) = frame::split(rest) {
            traffic.encode(Opened { more: head.more, command: false }, &[body], out);
            rest = behind;
        }
        true
    }

    /// Appends the wish for messages that begin with these bytes. False before the handshake is done.
    pub fn subscribe(&mut self, prefix: &[u8], out: &mut Vec<u8>) -> bool {
        self.say_subscription("SUBSCRIBE", 1, prefix, out)
    }

    /// Appends the end of that wish. False before the handshake is done.
    pub fn cancel(&mut self, prefix: &[u8], out: &mut Vec<u8>) -> bool {
        self.say_subscription("CANCEL", 0, prefix, out)
    }

    fn say_subscription(&mut self, name: &str, first: u8, prefix: &[u8], out: &mut Vec<u8>) -> bool {
        match &mut self.state {
            ZmtpState::Open(open) if open.version == Version::V3_1 => {
                open.say_command(name, prefix, out);
                true
            }
            ZmtpState::Open(_) => self.send([&[&[first], prefix].concat()[..]], out),
            _ => false,
        }
    }
}

/// Appends frames of a message that are not its last ones, as they are without encryption, for
/// [`ZmtpSession::send_encoded`]; others are to follow.
pub fn encode_front<'a>(parts: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    parts.into_iter().for_each(|part| encode_part(part, true, out));
}

/// Appends a message of these parts as it is without encryption, for [`ZmtpSession::send_encoded`].
pub fn encode<'a>(parts: impl IntoIterator<Item = &'a [u8]>, out: &mut Vec<u8>) {
    let mut parts = parts.into_iter().peekable();
    while let Some(part) = parts.next() {
        encode_part(part, parts.peek().is_some(), out);
    }
}

fn encode_part(part: &[u8], more: bool, out: &mut Vec<u8>) {
    frame::encode(if more { MORE } else { 0 }, part.len(), out);
    out.extend_from_slice(part);
}

impl OpenConnection {
    fn take(&mut self, command: Command<'_>, out: &mut Vec<u8>) -> Result<ZmtpStep<'static>, ZmtpFault> {
        Ok(match command {
            Command::Ping { ttl_tenths, context } => {
                self.ttl_ms = u64::from(ttl_tenths) * 100;
                self.say_command("PONG", context, out);
                ZmtpStep::Done
            }
            Command::Subscribe(prefix) | Command::Cancel(prefix) => {
                if !self.theirs.subscribes() {
                    return Err(ZmtpFault::NotASubscriber(self.theirs));
                }
                let wants = matches!(command, Command::Subscribe(_));
                let prefix = Bytes::copy_from_slice(prefix);
                if wants { ZmtpStep::Subscribe(prefix) } else { ZmtpStep::Cancel(prefix) }
            }
            Command::Pong | Command::Unknown => ZmtpStep::Done,
            Command::Error => return Err(ZmtpFault::RefusedByPeer),
            Command::Hello(_) | Command::Welcome(_) | Command::Initiate(_) | Command::Ready(_) => {
                return Err(ZmtpFault::UnexpectedCommand);
            }
        })
    }

    fn say_command(&mut self, name: &str, data: &[u8], out: &mut Vec<u8>) {
        let Some(traffic) = &mut self.traffic else { return command::encode(name, &[data], out) };
        let mut body = Vec::new();
        command::body(name, &[data], &mut body);
        traffic.encode(Opened { more: false, command: true }, &[&body], out);
    }
}

/// A subscription is as long as a command may be, in whichever form it comes.
const fn check_subscription(bytes: usize) -> Result<(), ZmtpFault> {
    if bytes > limits::ZMTP_COMMAND_BYTES_MAX { Err(ZmtpFault::CommandTooLarge) } else { Ok(()) }
}
