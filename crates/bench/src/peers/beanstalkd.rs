//! beanstalkd: requests over two tubes, one for all requests and one per client for its replies; queues as one tube.
//! A waiting `reserve` delays all later commands of its connection, so a worker that must answer keeps a single one open.

use std::collections::VecDeque;
use std::io::Write as _;
use std::process::Command;

use anyhow::{Result, bail};

use super::Launch;
use crate::protocol::{ConnectionEnd, Role, Seen, SystemProtocol, address, addressed, decimal, text_line};

/// Seconds a job may be held.
const HOLD_SECONDS: u32 = 600;

pub(super) fn commands(launch: &Launch) -> Vec<Command> {
    let mut server = launch.program("beanstalkd");
    server.args(["-l", "127.0.0.1", "-p", &launch.port.to_string()]);
    if launch.durable {
        server.arg("-b").arg(&launch.data).args(["-f", "0"]);
    }
    vec![server]
}

pub(crate) struct Beanstalkd {
    seat: ConnectionEnd,
    /// Answers of the opening that are still to come.
    awaited: usize,
    is_open: bool,
    /// Reserves that are not answered yet.
    reserving: u32,
    /// How many jobs a consumer asks for at a time: more while there are some, and one that it waits for when not.
    appetite: u32,
    held: u32,
    /// Stored messages are told in the order they were sent in.
    tags: VecDeque<u32>,
}

impl Beanstalkd {
    pub(crate) const fn new(seat: ConnectionEnd) -> Self {
        Self { seat, awaited: 0, is_open: false, reserving: 0, appetite: 1, held: 0, tags: VecDeque::new() }
    }

    fn on_job(&mut self, id: u64, body: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<()> {
        self.reserving = self.reserving.saturating_sub(1);
        match self.seat.role {
            Role::Client => seen.push(Seen::Done(addressed(body)?.1)),
            Role::Worker => {
                let _ = write!(out, "use replies{}\r\n", addressed(body)?.0);
                put(out, &[body]);
                seen.push(Seen::Taken);
            }
            Role::Holder => {
                self.held += 1;
                seen.push(Seen::Taken);
                return Ok(());
            }
            _ => {
                self.appetite = (self.appetite + 1).min(self.seat.slots);
                seen.push(Seen::Taken);
            }
        }
        let _ = write!(out, "delete {id}\r\n");
        Ok(())
    }

    fn on_line(&mut self, line: &[u8], seen: &mut Vec<Seen>) -> Result<()> {
        let word = line.split(|byte| *byte == b' ').next().unwrap_or_default();
        match word {
            b"USING" | b"WATCHING" => {
                if self.awaited > 0 {
                    self.awaited -= 1;
                    self.is_open = self.awaited == 0;
                    if self.is_open {
                        seen.push(Seen::Ready);
                    }
                }
            }
            b"INSERTED" if self.seat.role == Role::Producer => {
                let Some(tag) = self.tags.pop_front() else { bail!("an answer to nothing") };
                seen.push(Seen::Done(tag));
            }
            b"INSERTED" | b"DELETED" => {}
            b"TIMED_OUT" => {
                self.reserving = self.reserving.saturating_sub(1);
                self.appetite = 1;
            }
            _ => bail!("beanstalkd: {}", line.escape_ascii()),
        }
        Ok(())
    }
}

impl SystemProtocol for Beanstalkd {
    fn open(&mut self, out: &mut Vec<u8>, _seen: &mut Vec<Seen>) {
        out.extend_from_slice(b"use bench\r\n");
        self.awaited = 1;
        let watched = match self.seat.role {
            Role::Idle | Role::Producer => return,
            Role::Client => format!("replies{}", self.seat.number),
            _ => "bench".to_owned(),
        };
        let _ = write!(out, "watch {watched}\r\nignore default\r\n");
        self.awaited += 2;
    }

    fn put(&mut self, tag: u32, body: &[u8], out: &mut Vec<u8>) {
        if self.seat.role == Role::Producer {
            put(out, &[body]);
            self.tags.push_back(tag);
        } else {
            put(out, &[&address(self.seat.number, tag), body]);
        }
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<usize> {
        let mut used = 0;
        while let Some((line, head)) = text_line(&bytes[used..]) {
            let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
            if let [b"RESERVED", id, size] = words[..] {
                let (id, size): (u64, usize) = (decimal(id)?, decimal(size)?);
                let start = used + head;
                let Some(body) = bytes.get(start..start + size + 2) else { break };
                self.on_job(id, &body[..size], out, seen)?;
                used = start + size + 2;
            } else {
                self.on_line(line, seen)?;
                used += head;
            }
        }
        Ok(used)
    }

    fn pause(&mut self, out: &mut Vec<u8>) {
        let wanted = match self.seat.role {
            _ if !self.is_open => 0,
            Role::Idle | Role::Producer => 0,
            Role::Client | Role::Worker => 1,
            Role::Holder => self.seat.slots.saturating_sub(self.held),
            // Deletes must not stand behind a reserve that waits.
            Role::Consumer if self.reserving > 0 => 0,
            Role::Consumer => self.appetite,
        };
        let word: &[u8] =
            if wanted > 1 && self.seat.role == Role::Consumer { b"reserve-with-timeout 0\r\n" } else { b"reserve\r\n" };
        while self.reserving < wanted {
            out.extend_from_slice(word);
            self.reserving += 1;
        }
    }
}

fn put(out: &mut Vec<u8>, parts: &[&[u8]]) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "put 0 0 {HOLD_SECONDS} {}\r\n", parts.iter().map(|part| part.len()).sum::<usize>());
    for part in parts {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::{feed, seat};

    fn open(role: Role) -> Beanstalkd {
        Beanstalkd { is_open: true, reserving: 1, tags: VecDeque::from([5, 6]), ..Beanstalkd::new(seat(role)) }
    }

    #[test]
    fn a_worker_puts_deletes_and_reserves_again() {
        let mut came = b"USING replies1\r\nINSERTED 8\r\nDELETED\r\nRESERVED 9 12\r\n".to_vec();
        came.extend_from_slice(&address(6, 41));
        came.extend_from_slice(b"b\r\ny\r\n");
        let (said, seen) = feed(|| open(Role::Worker), &came);
        assert_eq!(seen, [Seen::Taken]);
        let mut wanted = b"use replies6\r\nput 0 0 600 12\r\n".to_vec();
        wanted.extend_from_slice(&address(6, 41));
        wanted.extend_from_slice(b"b\r\ny\r\ndelete 9\r\nreserve\r\n");
        assert_eq!(said, wanted);
    }

    #[test]
    fn a_producer_knows_what_is_stored() {
        let (said, seen) = feed(|| open(Role::Producer), b"INSERTED 1\r\nINSERTED 2\r\n");
        assert_eq!(seen, [Seen::Done(5), Seen::Done(6)]);
        assert!(said.is_empty());
    }

    #[test]
    fn a_holder_reserves_only_what_it_can_hold() {
        let make = || Beanstalkd { reserving: 10, ..open(Role::Holder) };
        let (said, seen) = feed(make, b"RESERVED 9 4\r\nbody\r\n");
        assert_eq!(seen, [Seen::Taken]);
        assert!(said.is_empty(), "{}", said.escape_ascii());
    }

    #[test]
    fn a_consumer_asks_for_more_while_there_is_some() {
        let (said, _) = feed(|| open(Role::Consumer), b"RESERVED 9 1\r\nx\r\n");
        assert_eq!(said, b"delete 9\r\nreserve-with-timeout 0\r\nreserve-with-timeout 0\r\n");
        let make = || Beanstalkd { appetite: 2, reserving: 2, ..open(Role::Consumer) };
        assert_eq!(feed(make, b"TIMED_OUT\r\nTIMED_OUT\r\n").0, b"reserve\r\n");
    }

    #[test]
    fn the_opening_and_refusals() {
        let mut talk = Beanstalkd::new(seat(Role::Client));
        let (mut out, mut seen) = (Vec::new(), Vec::new());
        talk.open(&mut out, &mut seen);
        assert_eq!(out, b"use bench\r\nwatch replies3\r\nignore default\r\n");
        talk.take(b"USING bench\r\nWATCHING 2\r\nWATCHING 1\r\n", &mut out, &mut seen).unwrap();
        assert_eq!(seen, [Seen::Ready]);
        assert!(talk.take(b"OUT_OF_MEMORY\r\n", &mut out, &mut seen).is_err());
    }
}
