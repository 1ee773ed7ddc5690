//! libzmq: a broker of one ROUTER socket (`zmq_broker.c`, our own, over the system's libzmq), with DEALER clients and
//! workers. The first frame of a message is a letter and a number:
//!
//! | letter | who | number | frames after it |
//! |---|---|---|---|
//! | W | worker | its slots | |
//! | Q, S | client: a request, a send | tag | body |
//! | Q, S | broker to worker | tag | client's identity, body |
//! | P | worker: the reply | tag | client's identity, body |
//! | A | worker: the send is settled | tag | |
//! | P, T | broker to client: the reply, it is stored | tag | body of a reply |

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Launch;
use crate::protocol::{ConnectionEnd, Role, Seen};
use crate::zmtp::{BROKER_SECRET, Dialect, ZmtpWire, head, read_head};

const BROKER: &str = include_str!("zmq_broker.c");
const BROKER_PROGRAM: &str = "turno-bench-zmq-broker";

/// Compiles the broker into the folder of our own program.
pub(super) fn compile(folder: &Path) -> Result<()> {
    let mut compiler = Command::new("cc")
        .args(["-O2", "-x", "c", "-o"])
        .arg(folder.join(BROKER_PROGRAM))
        .args(["-", "-lzmq"])
        .stdin(Stdio::piped())
        .spawn()
        .context("the C compiler does not start")?;
    compiler.stdin.take().context("piped")?.write_all(BROKER.as_bytes())?;
    match compiler.wait()? {
        status if status.success() => Ok(()),
        status => bail!("the broker over libzmq does not compile: {status}"),
    }
}

pub(super) fn commands(launch: &Launch) -> Vec<Command> {
    let mut server = launch.program(BROKER_PROGRAM);
    server.arg(format!("tcp://127.0.0.1:{}", launch.port));
    vec![server]
}

/// The setting that makes it a server of CURVE; without it the mechanism is NULL.
pub(crate) fn curve() -> (&'static str, String) {
    ("ZMQ_BROKER_SECRET", BROKER_SECRET.to_owned())
}

pub(crate) struct Letters;

impl Dialect for Letters {
    fn begin(&mut self, seat: ConnectionEnd, wire: &mut ZmtpWire, out: &mut Vec<u8>) {
        if matches!(seat.role, Role::Worker | Role::Consumer) {
            wire.say(&[&head(b'W', seat.slots)], out);
        }
    }

    fn put(&mut self, seat: ConnectionEnd, tag: u32, body: &[u8], wire: &mut ZmtpWire, out: &mut Vec<u8>) {
        let letter = if seat.role == Role::Producer { b'S' } else { b'Q' };
        wire.say(&[&head(letter, tag), body], out);
    }

    fn hear(&mut self, frames: &[&[u8]], wire: &mut ZmtpWire, out: &mut Vec<u8>) -> Result<Seen> {
        let (letter, tag) = read_head(frames.first().copied().unwrap_or_default())?;
        match (letter, frames) {
            (b'P', [_, _]) | (b'T', [_]) => Ok(Seen::Done(tag)),
            (b'Q', [_, client, body]) => {
                wire.say(&[&head(b'P', tag), client, body], out);
                Ok(Seen::Taken)
            }
            (b'S', [_, _, _]) => {
                wire.say(&[&head(b'A', tag)], out);
                Ok(Seen::Taken)
            }
            _ => bail!("a message {} of {} frames", letter.escape_ascii(), frames.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::SystemProtocol as _;
    use crate::protocol::tests::seat;
    use crate::zmtp::tests::{plain, sealed};
    use crate::zmtp::{Mechanism, ZmtpProtocol};

    fn talk(role: Role, mechanism: Mechanism) -> ZmtpProtocol<Letters> {
        ZmtpProtocol::new(seat(role), Letters, mechanism)
    }

    #[test]
    fn a_worker_says_its_slots_and_replies() {
        let body = [7; 300];
        let request: &[&[u8]] = &[&head(b'Q', 41), b"who", &body];
        let (slots, reply) = (head(b'W', 10).to_vec(), head(b'P', 41).to_vec());
        let wanted = (vec![vec![slots], vec![reply, b"who".to_vec(), body.to_vec()]], vec![Seen::Ready, Seen::Taken]);
        assert_eq!(plain(|| talk(Role::Worker, Mechanism::Null), &[request]), wanted);
        assert_eq!(sealed(talk(Role::Worker, Mechanism::Curve), &[request]), wanted);
    }

    #[test]
    fn replies_and_stored_messages_are_done() {
        let messages: [&[&[u8]]; 2] = [&[&head(b'P', 1), b"body"], &[&head(b'T', 2)]];
        let (said, seen) = plain(|| talk(Role::Client, Mechanism::Null), &messages);
        assert_eq!(seen, [Seen::Ready, Seen::Done(1), Seen::Done(2)]);
        assert!(said.is_empty());
    }

    #[test]
    fn messages_that_make_no_sense_are_errors() {
        let mut wire = ZmtpWire::Null { greeted: true };
        for frames in [&[&b"x"[..]][..], &[&head(b'P', 1)], &[&head(b'Q', 1), b"who"]] {
            assert!(Letters.hear(frames, &mut wire, &mut Vec::new()).is_err());
        }
        let mut refused = talk(Role::Client, Mechanism::Null);
        let mut bytes = Vec::new();
        refused.open(&mut bytes, &mut Vec::new());
        bytes.extend_from_slice(b"\x04\x09\x05ERROR\x02no");
        assert!(refused.take(&bytes, &mut Vec::new(), &mut Vec::new()).is_err());
    }
}
