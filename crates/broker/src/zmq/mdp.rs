//! Majordomo, MDP/0.1 and MDP/0.2: clients name a service, which is a queue, and workers say which service they give.

use std::collections::BTreeMap;

use bytes::Bytes;
use turno_engine::{BorrowedPayload, CallerMessage, Deliver, Input, WorkerMessage};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::{Code, Mono, Outgoing, QueueName, limits};
use turno_proto::zmtp::Message;

use super::calls::{Call, Calls};
use super::dialect::DialectOutput;
use super::endpoint::Count;
use super::frames::{Envelope, Frames, PeerMessage, delimited, delivery_of, number_of, part, payload_behind};

const READY: u8 = 1;
/// To a worker; from a client of MDP/0.2 it is 1.
const REQUEST: u8 = 2;
const CLIENT_REQUEST: u8 = 1;
const CLIENT_PARTIAL: u8 = 2;
const CLIENT_FINAL: u8 = 3;

/// The version of Majordomo that a peer speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A command of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Ready,
    Partial,
    Final,
    Heartbeat,
    Disconnect,
}

impl Version {
    const fn of_client(self) -> &'static [u8] {
        match self {
            Self::One => b"MDPC01",
            Self::Two => b"MDPC02",
        }
    }

    const fn of_worker(self) -> &'static [u8] {
        match self {
            Self::One => b"MDPW01",
            Self::Two => b"MDPW02",
        }
    }

    const fn command(self, number: u8) -> Option<Command> {
        Some(match (self, number) {
            (_, READY) => Command::Ready,
            (Self::Two, 3) => Command::Partial,
            (Self::One, 3) | (Self::Two, 4) => Command::Final,
            (Self::One, 4) | (Self::Two, 5) => Command::Heartbeat,
            (Self::One, 5) | (Self::Two, 6) => Command::Disconnect,
            _ => return None,
        })
    }

    const fn heartbeat(self) -> u8 {
        match self {
            Self::One => 4,
            Self::Two => 5,
        }
    }

    const fn disconnect(self) -> u8 {
        self.heartbeat() + 1
    }
}

/// The client or worker side of Majordomo.
#[derive(Debug)]
pub(super) enum Speaker {
    Client(MdpClient),
    Worker(MdpWorker),
}

/// The end of a peer whose first message this is, if it is of Majordomo.
pub(super) fn speaker(message: &Message<'_>, now: Mono) -> Option<Speaker> {
    let name = message.part(header_at(message)?)?;
    for version in [Version::One, Version::Two] {
        if name == version.of_client() {
            return Some(Speaker::Client(MdpClient { version, calls: Calls::default(), handles: BTreeMap::new() }));
        }
        if name == version.of_worker() {
            let front = Envelope::of(message, header_at(message)?);
            return Some(Speaker::Worker(MdpWorker { version, front, works: false, heard: now, beaten: now }));
        }
    }
    None
}

/// Where the name of the protocol is: the first frame, or the one behind an envelope.
fn header_at(message: &Message<'_>) -> Option<usize> {
    if message.part(0).is_some_and(|first| first.starts_with(b"MDP")) { Some(0) } else { delimited(message) }
}

/// The state of a Majordomo client.
#[derive(Debug)]
pub(crate) struct MdpClient {
    version: Version,
    calls: Calls,
    /// The handles of services that it has named.
    handles: BTreeMap<QueueName, u32>,
}

impl MdpClient {
    pub(super) fn hear(&mut self, message: &Message<'_>, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        let Some(at) = self.service_at(message) else { return out.drop_message(Count::BadEnvelope) };
        let service = message.part(at).unwrap_or_default();
        let Some(payload) = payload_behind(message, at + 1)? else { return out.drop_message(Count::BadEnvelope) };
        let header = header_at(message).unwrap_or_default();
        let call = Call::new(Envelope::of(message, header + 1), Some(Bytes::copy_from_slice(service)));
        if service.starts_with(b"mmi.") {
            self.ask_broker(service, message.part(at + 1).unwrap_or_default(), call, out);
            return Ok(());
        }
        let Some(handle) = self.handle_of(service, out) else { return out.drop_message(Count::Refused) };
        let seq = self.calls.insert(call);
        let retries = Some(out.endpoint.settings().retries);
        let message = Outgoing { retries, ..Outgoing::new(seq, handle, payload) };
        out.put(Input::Request { conn: out.conn, message });
        Ok(())
    }

    /// Where the name of the service is.
    fn service_at(&self, message: &Message<'_>) -> Option<usize> {
        let at = header_at(message)?;
        if message.part(at)? != self.version.of_client() {
            return None;
        }
        match self.version {
            Version::One => Some(at + 1),
            Version::Two => (message.part(at + 1)? == [CLIENT_REQUEST]).then_some(at + 2),
        }
    }

    fn handle_of(&mut self, service: &[u8], out: &mut DialectOutput<'_>) -> Option<u32> {
        let queue = QueueName::from_bytes(service).ok()?;
        if let Some(handle) = self.handles.get(&queue) {
            return Some(*handle);
        }
        let handle = u32::try_from(self.handles.len()).ok()?;
        if self.handles.len() >= limits::MDP_SERVICES_MAX {
            return None;
        }
        out.open(0, handle, queue.clone());
        self.handles.insert(queue, handle);
        Some(handle)
    }

    /// A service of the broker itself (8/MMI): whether somebody gives a service.
    fn ask_broker(&mut self, service: &[u8], body: &[u8], call: Call, out: &mut DialectOutput<'_>) {
        let seq = self.calls.insert(call);
        match QueueName::from_bytes(body) {
            Ok(queue) if service == b"mmi.service" => {
                let call = AdminCall::QueueShow { queue: queue.as_str().to_owned() };
                out.put(Input::Admin { conn: out.conn, seq, call });
            }
            Err(_) if service == b"mmi.service" => self.answer_broker(seq, "404", out),
            _ => self.answer_broker(seq, "501", out),
        }
    }

    fn answer_broker(&mut self, seq: u32, code: &'static str, out: &mut DialectOutput<'_>) {
        if let Some(call) = self.calls.take(seq) {
            let said = self.reply(call, CLIENT_FINAL, vec![Bytes::from_static(code.as_bytes())]);
            out.says.push(said);
        }
    }

    /// The broker's answer about a queue.
    pub(super) fn shown(&mut self, seq: u32, answer: &AdminAnswer, out: &mut DialectOutput<'_>) {
        let works = matches!(answer, AdminAnswer::Queue { queue } if queue.consumers > 0);
        self.answer_broker(seq, if works { "200" } else { "404" }, out);
    }

    /// It refused to say. True if it was asked.
    pub(super) fn not_shown(&mut self, seq: u32, out: &mut DialectOutput<'_>) -> bool {
        let asked = self.calls.has(seq);
        self.answer_broker(seq, "404", out);
        asked
    }

    pub(super) fn caller_message(
        &mut self,
        seq: u32,
        message: CallerMessage,
        out: &DialectOutput<'_>,
    ) -> Option<PeerMessage<'static>> {
        match message {
            CallerMessage::Reply { more: true, payload } if self.version == Version::Two => {
                let call = self.calls.get(seq)?.clone();
                Some(self.reply(call, CLIENT_PARTIAL, part(&payload).frames))
            }
            CallerMessage::Reply { more: true, payload } => {
                self.calls.add_piece(seq, part(&payload).frames);
                None
            }
            CallerMessage::Reply { more: false, payload } => {
                let mut call = self.calls.take(seq)?;
                let mut frames = std::mem::take(&mut call.pieces);
                frames.extend(part(&payload).frames);
                Some(self.reply(call, CLIENT_FINAL, frames))
            }
            CallerMessage::Undelivered { code, payload } => {
                let call = self.calls.take(seq)?;
                let frames = out.failure(code, &payload)?;
                Some(self.reply(call, CLIENT_FINAL, frames))
            }
            CallerMessage::Progress { .. }
            | CallerMessage::Delivered
            | CallerMessage::BroadcastAnswer(_)
            | CallerMessage::BroadcastEnd(_) => None,
        }
    }

    fn reply(&self, call: Call, command: u8, body: Frames) -> PeerMessage<'static> {
        let Call { envelope, service, .. } = call;
        let mut frames = Frames::new();
        if self.version == Version::Two {
            frames.push(Bytes::copy_from_slice(&[command]));
        }
        frames.extend(service);
        frames.extend(body);
        PeerMessage::frames(envelope, frames)
    }

    pub(super) fn len(&self) -> usize {
        self.calls.len()
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.calls.held_bytes() + self.handles.len() * limits::MESSAGE_OVERHEAD_BYTES
    }
}

/// The state of a Majordomo worker.
#[derive(Debug)]
pub(crate) struct MdpWorker {
    version: Version,
    /// The frames before the name of the protocol, both ways: an empty frame, or nothing.
    front: Envelope,
    /// READY came.
    works: bool,
    /// When it said something last.
    heard: Mono,
    /// When it got the last heartbeat.
    beaten: Mono,
}

impl MdpWorker {
    /// A command came. An error is why the connection ends.
    pub(super) fn hear(&mut self, message: &Message<'_>, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        self.heard = out.now;
        let at = header_at(message).filter(|at| message.part(*at) == Some(self.version.of_worker()));
        let command = at.and_then(|at| match message.part(at + 1) {
            Some([number]) => Some((at, self.version.command(*number)?)),
            _ => None,
        });
        let Some((at, command)) = command else { return out.drop_message(Count::BadEnvelope) };
        match command {
            Command::Ready => self.ready(message.part(at + 2).unwrap_or_default(), out),
            Command::Disconnect => Err(Code::Closing),
            // A worker of a broker that has come again, and does not know: it is to say READY.
            _ if !self.works => {
                out.says.push(self.command(self.version.disconnect()));
                Ok(())
            }
            Command::Heartbeat => Ok(()),
            Command::Partial | Command::Final => self.reply(message, at + 2, command == Command::Partial, out),
        }
    }

    fn ready(&mut self, service: &[u8], out: &mut DialectOutput<'_>) -> Result<(), Code> {
        let queue = QueueName::from_bytes(service);
        match queue {
            Ok(queue) if !self.works => {
                self.works = true;
                out.work(queue, out.endpoint.settings().slots.unwrap_or(1));
                Ok(())
            }
            _ => {
                out.says.push(self.command(self.version.disconnect()));
                Err(if queue.is_ok() { Code::AlreadyConsuming } else { Code::BadName })
            }
        }
    }

    #[expect(clippy::unused_self, reason = "it says what the worker said")]
    fn reply(&self, message: &Message<'_>, at: usize, more: bool, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        let delivery = message.part(at).and_then(delivery_of);
        let (Some(delivery), Some([])) = (delivery, message.part(at + 1)) else {
            return out.drop_message(Count::BadEnvelope);
        };
        let payload = payload_behind(message, at + 2)?.unwrap_or_default();
        out.put(Input::worker(out.conn, delivery, WorkerMessage::Reply { more, payload }));
        Ok(())
    }

    fn frames(&self, command: u8) -> Frames {
        vec![Bytes::from_static(self.version.of_worker()), Bytes::copy_from_slice(&[command])]
    }

    fn command(&self, command: u8) -> PeerMessage<'static> {
        PeerMessage::frames(self.front.clone(), self.frames(command))
    }

    pub(super) fn delivery<'a>(&self, deliver: &Deliver<BorrowedPayload<'a>>) -> PeerMessage<'a> {
        let mut frames = self.frames(REQUEST);
        frames.extend([Bytes::copy_from_slice(&number_of(deliver.delivery)), Bytes::new()]);
        PeerMessage::with_borrowed(self.front.clone(), frames, deliver.payload)
    }

    /// Time passed: it gets a heartbeat, or is given up for its silence. `read`: it is read from, so that it can be silent.
    pub(super) fn tick(&mut self, read: bool, out: &mut DialectOutput<'_>) -> Result<(), Code> {
        let interval = u64::from(limits::MDP_HEARTBEAT_MS);
        if !read {
            self.heard = out.now;
        }
        if self.works && out.now.millis_since(self.heard) >= interval * u64::from(limits::LIVENESS) {
            out.says.push(self.command(self.version.disconnect()));
            return Err(Code::PeerSilent);
        }
        if self.works && out.now.millis_since(self.beaten) >= interval {
            self.beaten = out.now;
            out.says.push(self.command(self.version.heartbeat()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
