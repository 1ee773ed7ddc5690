//! Commands of messages, and the three orders that a server carries out itself.

use super::{DEREGISTER, INCREMENT, LmqFault, REGISTER};
use crate::model::limits;

/// The command of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LmqCommand {
    /// Asks the next program whether it is there.
    Ping,
    /// It is.
    Pong,
    /// To be done; no answer is wanted.
    Exec,
    /// To be done and answered.
    TrackExec,
    /// Tells where the answer will come from.
    TrackAddress,
    /// The answer.
    Response,
}

impl LmqCommand {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Ping, Self::Pong, Self::Exec, Self::TrackExec, Self::TrackAddress, Self::Response];

    /// The byte that stands for it.
    pub const fn byte(self) -> u8 {
        match self {
            Self::Ping => 1,
            Self::Pong => 2,
            Self::Exec => 3,
            Self::TrackExec => 4,
            Self::TrackAddress => 5,
            Self::Response => 6,
        }
    }

    /// The command for which a byte stands.
    pub fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.byte() == byte)
    }
}

/// Orders of a worker to the server: first arguments of EXEC and TRACKEXEC that the server keeps for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The worker is there, with so many slots.
    Register(Result<u32, LmqFault>),
    /// It takes nothing more.
    Deregister,
    /// It has one more slot free.
    Increment,
}

impl Order {
    /// The order that these arguments are, if they are one.
    pub fn of<'a>(command: LmqCommand, mut arguments: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        if !matches!(command, LmqCommand::Exec | LmqCommand::TrackExec) {
            return None;
        }
        match arguments.next()? {
            [REGISTER] => Some(Self::Register(slots(arguments.next().unwrap_or_default()))),
            [DEREGISTER] => Some(Self::Deregister),
            [INCREMENT] => Some(Self::Increment),
            _ => None,
        }
    }
}

/// A number of slots as a worker writes it, in decimal digits. A negative number counts as 0, one that is too large as the most
/// that a worker can have.
///
/// # Errors
///
/// [`LmqFault::BadSlots`] if it is not a number.
pub fn slots(text: &[u8]) -> Result<u32, LmqFault> {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix(b"+").unwrap_or(text)),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(LmqFault::BadSlots);
    }
    if negative {
        return Ok(0);
    }
    let add = |sum: u32, digit: &u8| sum.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
    Ok(digits.iter().fold(0, add).min(limits::SLOTS_MAX))
}
