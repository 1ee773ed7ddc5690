//! Why frames are no message of LMQ.

/// Why frames are no message of LMQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LmqFault {
    /// No empty frame ends the addresses on top, or they are too many or too long.
    #[error("no empty frame ends the addresses on top")]
    NoDelimiter,
    /// The frame behind the addresses is not [`VERSION`](super::VERSION).
    #[error("the version of LMQ is another one")]
    WrongVersion,
    /// The command is missing, longer than one byte, or unknown.
    #[error("the command is unknown")]
    UnknownCommand,
    /// The id is missing or too long.
    #[error("the id is missing or too long")]
    BadId,
    /// No empty frame ends the arguments, or the addresses behind it are too many or too long.
    #[error("no empty frame ends the arguments")]
    NoEnd,
    /// The number of slots is not a number.
    #[error("the number of slots is not a number")]
    BadSlots,
}
