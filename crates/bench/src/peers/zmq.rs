//! libzmq: a broker of one ROUTER socket (`zmq_broker.c`, our own, over the system's libzmq), with DEALER clients and
//! workers that speak ZMTP 3.0 with the NULL mechanism. The first frame of a message is a letter and a number:
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
use crate::talk::{Role, Seat, Seen, Talk};

const BROKER: &str = include_str!("zmq_broker.c");
const BROKER_PROGRAM: &str = "turno-bench-zmq-broker";

const GREETING_LEN: usize = 64;
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;
const FRAME_MAX: u64 = 16 * 1024 * 1024;
/// Frames of one message.
const FRAMES_MAX: usize = 8;

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

pub(crate) struct Zmq {
    seat: Seat,
    greeted: bool,
}

impl Zmq {
    pub(crate) const fn new(seat: Seat) -> Self {
        Self { seat, greeted: false }
    }

    fn on_message(&self, frames: &[&[u8]], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<()> {
        let Some((&[letter, t0, t1, t2, t3], rest)) = frames.split_first().and_then(|(first, rest)| {
            let head: &[u8; 5] = (*first).try_into().ok()?;
            Some((head, rest))
        }) else {
            bail!("a message without a head")
        };
        let tag = u32::from_be_bytes([t0, t1, t2, t3]);
        match (letter, rest) {
            (b'P', [_]) | (b'T', []) => seen.push(Seen::Done(tag)),
            (b'Q', [client, body]) => {
                frame(out, MORE, &head(b'P', tag));
                frame(out, MORE, client);
                frame(out, 0, body);
                seen.push(Seen::Taken);
            }
            (b'S', [_, _]) => {
                frame(out, 0, &head(b'A', tag));
                seen.push(Seen::Taken);
            }
            _ => bail!("a message {} of {} frames", letter.escape_ascii(), frames.len()),
        }
        Ok(())
    }

    fn on_ready(&self, out: &mut Vec<u8>, seen: &mut Vec<Seen>) {
        if matches!(self.seat.role, Role::Worker | Role::Consumer) {
            frame(out, 0, &head(b'W', self.seat.slots));
        }
        seen.push(Seen::Ready);
    }
}

impl Talk for Zmq {
    fn open(&mut self, out: &mut Vec<u8>, _seen: &mut Vec<Seen>) {
        let mut greeting = [0; GREETING_LEN];
        greeting[0] = 0xFF;
        greeting[9] = 0x7F;
        greeting[10] = 3;
        greeting[12..16].copy_from_slice(b"NULL");
        out.extend_from_slice(&greeting);
        frame(out, COMMAND, b"\x05READY\x0bSocket-Type\0\0\0\x06DEALER\x08Identity\0\0\0\0");
    }

    fn put(&mut self, tag: u32, body: &[u8], out: &mut Vec<u8>) {
        let letter = if self.seat.role == Role::Producer { b'S' } else { b'Q' };
        frame(out, MORE, &head(letter, tag));
        frame(out, 0, body);
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<usize> {
        let mut used = 0;
        if !self.greeted {
            let Some(greeting) = bytes.get(..GREETING_LEN) else { return Ok(0) };
            if greeting[0] != 0xFF || greeting[10] < 3 {
                bail!("not a greeting of ZMTP 3");
            }
            self.greeted = true;
            used = GREETING_LEN;
        }
        loop {
            let mut frames: [&[u8]; FRAMES_MAX] = Default::default();
            let (mut count, mut at) = (0, used);
            loop {
                let Some((flags, body, length)) = parse(&bytes[at..])? else { return Ok(used) };
                at += length;
                if flags & COMMAND != 0 {
                    if body.starts_with(b"\x05READY") {
                        self.on_ready(out, seen);
                    } else if body.starts_with(b"\x05ERROR") {
                        bail!("libzmq: {}", body.escape_ascii());
                    }
                    break;
                }
                let Some(place) = frames.get_mut(count) else { bail!("a message of too many frames") };
                *place = body;
                count += 1;
                if flags & MORE == 0 {
                    self.on_message(&frames[..count], out, seen)?;
                    break;
                }
            }
            used = at;
        }
    }
}

fn head(letter: u8, number: u32) -> [u8; 5] {
    let [n0, n1, n2, n3] = number.to_be_bytes();
    [letter, n0, n1, n2, n3]
}

fn frame(out: &mut Vec<u8>, flags: u8, body: &[u8]) {
    match u8::try_from(body.len()) {
        Ok(len) => out.extend_from_slice(&[flags, len]),
        Err(_) => {
            out.push(flags | LONG);
            out.extend_from_slice(&(body.len() as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(body);
}

/// Flags and body of the first whole frame, and the bytes it takes.
fn parse(bytes: &[u8]) -> Result<Option<(u8, &[u8], usize)>> {
    let (flags, size, head) = match bytes {
        [flags, rest @ ..] if flags & LONG != 0 => match rest.first_chunk::<8>() {
            Some(size) => (*flags, u64::from_be_bytes(*size), 9),
            None => return Ok(None),
        },
        [flags, size, ..] => (*flags, u64::from(*size), 2),
        _ => return Ok(None),
    };
    if size > FRAME_MAX {
        bail!("a frame of {size} bytes");
    }
    let end = head + usize::try_from(size)?;
    Ok(bytes.get(head..end).map(|body| (flags, body, end)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::talk::tests::{feed, seat};

    /// What the broker says first, then these frames.
    fn came(frames: &[(u8, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        Zmq::new(seat(Role::Idle)).open(&mut bytes, &mut Vec::new());
        for (flags, body) in frames {
            frame(&mut bytes, *flags, body);
        }
        bytes
    }

    #[test]
    fn a_worker_says_its_slots_and_replies() {
        let body = [7; 300];
        let bytes = came(&[(MORE, &head(b'Q', 41)), (MORE, b"who"), (0, &body)]);
        let (said, seen) = feed(|| Zmq::new(seat(Role::Worker)), &bytes);
        assert_eq!(seen, [Seen::Ready, Seen::Taken]);
        let mut wanted = Vec::new();
        frame(&mut wanted, 0, &head(b'W', 10));
        frame(&mut wanted, MORE, &head(b'P', 41));
        frame(&mut wanted, MORE, b"who");
        frame(&mut wanted, 0, &body);
        assert_eq!(said, wanted);
    }

    #[test]
    fn replies_and_stored_messages_are_done() {
        let bytes = came(&[(MORE, &head(b'P', 1)), (0, b"body"), (0, &head(b'T', 2))]);
        assert_eq!(feed(|| Zmq::new(seat(Role::Client)), &bytes).1, [Seen::Ready, Seen::Done(1), Seen::Done(2)]);
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        for frames in [&[(0, &b"x"[..])][..], &[(0, &head(b'P', 1))], &[(COMMAND, b"\x05ERROR\x02no")]] {
            let mut talk = Zmq::new(seat(Role::Client));
            assert!(talk.take(&came(frames), &mut Vec::new(), &mut Vec::new()).is_err());
        }
        assert!(parse(&[LONG, 1, 0, 0, 0, 0, 0, 0, 0]).is_err());
    }
}
