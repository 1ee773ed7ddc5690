//! A message as a value: frames to values to frames.

use bytes::Bytes;

use super::{LmqCommand, LmqFault, Order, VERSION};
use crate::model::limits;
use crate::zmtp::Message;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LmqMessage {
    /// Addresses on top: where it still has to go.
    pub top: Vec<Bytes>,
    /// The command.
    pub command: LmqCommand,
    /// The sender's number for it: any bytes.
    pub id: Bytes,
    /// The arguments.
    pub arguments: Vec<Bytes>,
    /// Addresses behind: where it came from, the nearest last.
    pub senders: Vec<Bytes>,
}

impl LmqMessage {
    /// A message for the next program.
    pub fn new(command: LmqCommand, id: impl Into<Bytes>, arguments: Vec<Bytes>) -> Self {
        Self { top: Vec::new(), command, id: id.into(), arguments, senders: Vec::new() }
    }

    /// Reads the frames of a message; the fields share one block of memory.
    ///
    /// # Errors
    ///
    /// Why they are no message.
    pub fn decode(message: &Message<'_>) -> Result<Self, LmqFault> {
        let parts: Vec<&[u8]> = message.parts().collect();
        let delimiter = delimiter(parts.iter().copied()).ok_or(LmqFault::NoDelimiter)?;
        let part = |behind: usize| parts.get(delimiter + behind).copied();
        if part(1) != Some(VERSION) {
            return Err(LmqFault::WrongVersion);
        }
        let command = match part(2) {
            Some([byte]) => LmqCommand::from_byte(*byte),
            _ => None,
        };
        let command = command.ok_or(LmqFault::UnknownCommand)?;
        part(3).filter(|id| id.len() <= limits::LMQ_ID_BYTES_MAX).ok_or(LmqFault::BadId)?;
        // Only the parts behind the id: an empty id ends nothing.
        let behind = parts.get(delimiter + 4..).unwrap_or_default();
        let senders = self::delimiter(behind.iter().rev().copied()).ok_or(LmqFault::NoEnd)?;
        let arguments = behind.len() - 1 - senders;
        let mut body = message.body_behind(0);
        let mut parts = parts.iter().map(|part| body.split_to(part.len()));
        let top = parts.by_ref().take(delimiter).collect();
        let id = parts.by_ref().nth(3).unwrap_or_default();
        let arguments = parts.by_ref().take(arguments).collect();
        Ok(Self { top, command, id, arguments, senders: parts.skip(1).collect() })
    }

    /// The frames of the message.
    pub fn frames(self) -> Vec<Bytes> {
        let mut frames = self.top;
        frames.reserve(self.arguments.len() + self.senders.len() + 5);
        let command = self.command.byte();
        let command = COMMANDS.get(usize::from(command)..=usize::from(command)).unwrap_or_default();
        frames.extend([Bytes::new(), Bytes::from_static(VERSION), Bytes::from_static(command), self.id]);
        frames.extend(self.arguments);
        frames.push(Bytes::new());
        frames.extend(self.senders);
        frames
    }

    /// An answer to the message: it goes back the way that this one came.
    pub fn answer(&self, command: LmqCommand, arguments: Vec<Bytes>) -> Self {
        let top = self.senders.iter().rev().cloned().collect();
        Self { top, ..Self::new(command, self.id.clone(), arguments) }
    }

    /// The order of a worker that it is, if it is one.
    pub fn order(&self) -> Option<Order> {
        Order::of(self.command, self.arguments.iter().map(|argument| &**argument))
    }
}

/// The bytes of all commands, each at its own place.
const COMMANDS: &[u8] = &[0, 1, 2, 3, 4, 5, 6];

/// Whether frames begin as a message of LMQ does, of whatever version.
pub fn is_lmq(message: &Message<'_>) -> bool {
    let name = delimiter(message.parts()).and_then(|delimiter| message.part(delimiter + 1));
    name.is_some_and(|name| name.starts_with(b"LMQv"))
}

/// How many frames stand before the first empty one, if they are a valid stack of addresses.
fn delimiter<'a>(parts: impl Iterator<Item = &'a [u8]>) -> Option<usize> {
    let mut bytes = 0;
    for (at, part) in parts.take(limits::ZMQ_ENVELOPE_FRAMES_MAX).enumerate() {
        if part.is_empty() {
            return Some(at);
        }
        bytes += part.len();
        if bytes > limits::ZMQ_ENVELOPE_BYTES_MAX {
            return None;
        }
    }
    None
}
