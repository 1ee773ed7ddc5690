//! The bytes of a load of events, by hand: what each end says first, one publication, and what a subscriber gets of it.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use turno_proto::native::{Frame, Kind, Raw, RawEvent, encode, split};

use crate::memory::BODY;
use crate::native::greet;
use crate::peers::redis::say;
use crate::system::System;

const TOPIC: &str = "bench.events";
const OPENING_BYTES_MAX: usize = 64 * 1024;

/// How a system says it.
pub(super) struct Wire {
    pub(super) subscriber: Opening,
    pub(super) publisher: Opening,
    pub(super) publication: Vec<u8>,
    pub(super) event: Vec<u8>,
}

/// The first bytes of an end, and the expected answer.
pub(super) struct Opening {
    said: Vec<u8>,
    answer: Answer,
}

enum Answer {
    /// So many frames of Turno's.
    Frames(usize),
    /// Just that.
    Bytes(Vec<u8>),
}

impl Wire {
    pub(super) fn of(system: System) -> Result<Self> {
        match system {
            System::Turno => Ok(Self::turno()),
            System::Redis => Ok(Self::redis()),
            other => bail!("nobody has taught this load to speak to {other}"),
        }
    }

    fn turno() -> Self {
        let opening = |filter: Option<&str>| {
            let mut said = Vec::new();
            let mut answers = greet(&mut said);
            if let Some(filter) = filter.and_then(|filter| filter.parse().ok()) {
                encode(&Frame::Subscribe { seq: 3, filter, or_close: false }, &mut said);
                answers += 1;
            }
            Opening { said, answer: Answer::Frames(answers) }
        };
        let event = RawEvent { topic: TOPIC.as_bytes(), payload: Raw { headers: false, bytes: &[7; BODY] } };
        let encoded = |frame: Frame<'_>| {
            let mut bytes = Vec::new();
            encode(&frame, &mut bytes);
            bytes
        };
        Self {
            subscriber: opening(Some(TOPIC)),
            publisher: opening(None),
            publication: encoded(Frame::Publish { seq: 0, confirm: false, event }),
            event: encoded(Frame::Event(event)),
        }
    }

    /// Redis answers a publication unless it is told not to: so it is, or it would have more to do than Turno.
    fn redis() -> Self {
        let said = |commands: &[&[&[u8]]]| {
            let mut bytes = Vec::new();
            commands.iter().for_each(|words| say(&mut bytes, words));
            bytes
        };
        let topic = TOPIC.as_bytes();
        let mut subscribed = said(&[&[b"subscribe", topic]]);
        // A list of three, not two: how many channels it listens to stands at the end.
        subscribed[1] = b'3';
        subscribed.extend_from_slice(b":1\r\n");
        Self {
            subscriber: Opening { said: said(&[&[b"SUBSCRIBE", topic]]), answer: Answer::Bytes(subscribed) },
            publisher: Opening {
                said: said(&[&[b"PING"], &[b"CLIENT", b"REPLY", b"OFF"]]),
                answer: Answer::Bytes(b"+PONG\r\n".to_vec()),
            },
            publication: said(&[&[b"PUBLISH", topic, &[7; BODY]]]),
            event: said(&[&[b"message", topic, &[7; BODY]]]),
        }
    }
}

impl Answer {
    /// Whether it is all there.
    fn is_there(&self, bytes: &[u8]) -> Result<bool> {
        match self {
            Self::Bytes(wanted) if wanted.starts_with(bytes) => Ok(wanted.len() == bytes.len()),
            Self::Bytes(_) => bail!("refused: {}", bytes.escape_ascii()),
            Self::Frames(wanted) => {
                let (mut used, mut frames) = (0, 0);
                while let Some(piece) = split(&bytes[used..], OPENING_BYTES_MAX).ok().context("not a frame")? {
                    if piece.header.kind == Kind::Error.number() {
                        bail!("refused with code {}", piece.header.word);
                    }
                    used += piece.used;
                    frames += 1;
                }
                Ok(frames >= *wanted)
            }
        }
    }
}

/// Connects and goes through the opening.
pub(super) async fn open(address: SocketAddr, Opening { said, answer }: &Opening) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    stream.write_all(said).await?;
    let mut came = Vec::new();
    while !answer.is_there(&came)? {
        if stream.read_buf(&mut came).await? == 0 || came.len() > OPENING_BYTES_MAX {
            bail!("the server closed the connection, or says too much");
        }
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_opening_is_over_when_all_is_answered() {
        let Wire { subscriber, publisher, event, .. } = Wire::redis();
        let subscribed = b"*3\r\n$9\r\nsubscribe\r\n$12\r\nbench.events\r\n:1\r\n";
        assert!(subscriber.answer.is_there(subscribed).unwrap());
        assert!(!subscriber.answer.is_there(&subscribed[..9]).unwrap());
        assert!(subscriber.answer.is_there(b"-ERR no\r\n").is_err());
        assert!(publisher.answer.is_there(b"+PONG\r\n").unwrap());
        assert!(event.starts_with(b"*3\r\n$7\r\nmessage\r\n$12\r\nbench.events\r\n$256\r\n"));
        let Wire { subscriber, .. } = Wire::turno();
        let mut answers = Vec::new();
        for seq in 1..=3 {
            assert!(!subscriber.answer.is_there(&answers).unwrap());
            encode(&Frame::Ok { seq }, &mut answers);
        }
        assert!(subscriber.answer.is_there(&answers).unwrap());
    }
}
