//! Gearman: requests as foreground jobs, queues as background jobs. A worker asks for work, and sleeps when there is none
//! until the server wakes it.

use std::collections::VecDeque;
use std::process::Command;

use anyhow::{Result, bail};

use super::Launch;
use crate::protocol::{ConnectionEnd, Role, Seen, SystemProtocol, address, addressed};

const CAN_DO: u32 = 1;
const PRE_SLEEP: u32 = 4;
const NOOP: u32 = 6;
const SUBMIT_JOB: u32 = 7;
const JOB_CREATED: u32 = 8;
const GRAB_JOB: u32 = 9;
const NO_JOB: u32 = 10;
const JOB_ASSIGN: u32 = 11;
const WORK_COMPLETE: u32 = 13;
const ECHO_REQ: u32 = 16;
const ECHO_RES: u32 = 17;
const SUBMIT_JOB_BG: u32 = 18;
const ERROR: u32 = 19;

const HEAD_LEN: usize = 12;
const PACKET_MAX: usize = 16 * 1024 * 1024;

pub(super) fn commands(launch: &Launch) -> Vec<Command> {
    let mut server = launch.program("gearmand");
    server.args(["--listen", "127.0.0.1", "--port", &launch.port.to_string(), "--file-descriptors", "12000"]);
    server.arg("--log-file").arg(launch.data.join("gearmand.log"));
    vec![server]
}

pub(crate) struct Gearman {
    seat: ConnectionEnd,
    is_open: bool,
    is_asleep: bool,
    /// Jobs asked for that are not answered yet.
    grabbing: u32,
    /// How many to ask for at a time: more while there are some, one after a sleep, as each vain question costs.
    appetite: u32,
    held: u32,
    /// Created jobs are told in the order they were sent in.
    tags: VecDeque<u32>,
}

impl Gearman {
    pub(crate) const fn new(seat: ConnectionEnd) -> Self {
        Self { seat, is_open: false, is_asleep: false, grabbing: 0, appetite: 1, held: 0, tags: VecDeque::new() }
    }

    fn takes_work(&self) -> bool {
        matches!(self.seat.role, Role::Worker | Role::Consumer | Role::Holder)
    }

    fn on_packet(&mut self, kind: u32, data: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<()> {
        match kind {
            ECHO_RES => {
                self.is_open = true;
                seen.push(Seen::Ready);
            }
            JOB_CREATED if self.seat.role == Role::Producer => {
                let Some(tag) = self.tags.pop_front() else { bail!("an answer to nothing") };
                seen.push(Seen::Done(tag));
            }
            JOB_CREATED => {}
            WORK_COMPLETE => {
                let [_, result] = parts::<2>(data)?;
                seen.push(Seen::Done(addressed(result)?.1));
            }
            NOOP => self.is_asleep = false,
            NO_JOB => {
                self.grabbing = self.grabbing.saturating_sub(1);
                self.appetite = 0;
            }
            JOB_ASSIGN => {
                self.grabbing = self.grabbing.saturating_sub(1);
                self.appetite = (self.appetite + 1).min(self.seat.slots);
                seen.push(Seen::Taken);
                let [handle, _, body] = parts::<3>(data)?;
                match self.seat.role {
                    Role::Holder => self.held += 1,
                    Role::Worker => packet(out, WORK_COMPLETE, &[handle, b"\0", body]),
                    _ => packet(out, WORK_COMPLETE, &[handle, b"\0"]),
                }
            }
            ERROR => bail!("Gearman: {}", data.escape_ascii()),
            _ => {}
        }
        Ok(())
    }
}

impl SystemProtocol for Gearman {
    fn open(&mut self, out: &mut Vec<u8>, _seen: &mut Vec<Seen>) {
        if self.takes_work() {
            packet(out, CAN_DO, &[b"bench"]);
        }
        packet(out, ECHO_REQ, &[b"ready"]);
    }

    fn put(&mut self, tag: u32, body: &[u8], out: &mut Vec<u8>) {
        if self.seat.role == Role::Producer {
            packet(out, SUBMIT_JOB_BG, &[b"bench\0\0", body]);
            self.tags.push_back(tag);
        } else {
            packet(out, SUBMIT_JOB, &[b"bench\0\0", &address(self.seat.number, tag), body]);
        }
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<usize> {
        let mut used = 0;
        while let Some((kind, data)) = parse(&bytes[used..])? {
            used += HEAD_LEN + data.len();
            self.on_packet(kind, data, out, seen)?;
        }
        Ok(used)
    }

    fn pause(&mut self, out: &mut Vec<u8>) {
        if !self.is_open || self.is_asleep || !self.takes_work() {
            return;
        }
        let room = match self.seat.role {
            Role::Holder => self.seat.slots.saturating_sub(self.held),
            _ => self.seat.slots,
        };
        while self.grabbing < self.appetite.min(room) {
            packet(out, GRAB_JOB, &[]);
            self.grabbing += 1;
        }
        if self.grabbing == 0 && room > 0 {
            packet(out, PRE_SLEEP, &[]);
            self.is_asleep = true;
            self.appetite = 1;
        }
    }
}

fn packet(out: &mut Vec<u8>, kind: u32, parts: &[&[u8]]) {
    let size: usize = parts.iter().map(|part| part.len()).sum();
    out.extend_from_slice(b"\0REQ");
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&u32::try_from(size).unwrap_or(u32::MAX).to_be_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// The kind and the data of the first whole packet.
fn parse(bytes: &[u8]) -> Result<Option<(u32, &[u8])>> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD_LEN>() else { return Ok(None) };
    let [m0, m1, m2, m3, k0, k1, k2, k3, s0, s1, s2, s3] = *head;
    let size = u32::from_be_bytes([s0, s1, s2, s3]) as usize;
    if [m0, m1, m2, m3] != *b"\0RES" || size > PACKET_MAX {
        bail!("not a packet: {}", head.escape_ascii());
    }
    Ok(rest.get(..size).map(|data| (u32::from_be_bytes([k0, k1, k2, k3]), data)))
}

/// Data in parts with a zero between each; the last holds the rest, zeros and all.
fn parts<const N: usize>(data: &[u8]) -> Result<[&[u8]; N]> {
    let found: Vec<&[u8]> = data.splitn(N, |byte| *byte == 0).collect();
    match found.try_into() {
        Ok(parts) => Ok(parts),
        Err(found) => bail!("{} parts, not {N}", found.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::{feed, seat};

    fn came(packets: &[(u32, &[u8])]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (kind, data) in packets {
            let start = bytes.len();
            packet(&mut bytes, *kind, &[data]);
            bytes[start..start + 4].copy_from_slice(b"\0RES");
        }
        bytes
    }

    #[test]
    fn a_worker_completes_and_grabs_more() {
        let bytes = came(&[(ECHO_RES, b"ready"), (NOOP, b""), (JOB_ASSIGN, b"H:1\0bench\0bo\0y")]);
        let (said, seen) = feed(|| Gearman::new(seat(Role::Worker)), &bytes);
        assert_eq!(seen, [Seen::Ready, Seen::Taken]);
        let mut wanted = Vec::new();
        packet(&mut wanted, WORK_COMPLETE, &[b"H:1\0bo\0y"]);
        packet(&mut wanted, GRAB_JOB, &[]);
        packet(&mut wanted, GRAB_JOB, &[]);
        assert_eq!(said, wanted);
    }

    #[test]
    fn a_worker_without_work_sleeps() {
        let make = || Gearman { is_open: true, grabbing: 1, ..Gearman::new(seat(Role::Worker)) };
        let mut wanted = Vec::new();
        packet(&mut wanted, PRE_SLEEP, &[]);
        assert_eq!(feed(make, &came(&[(NO_JOB, b"")])), (wanted, Vec::new()));
    }

    #[test]
    fn a_client_knows_its_replies() {
        let result = [b"H:1\0".as_slice(), &address(3, 77), b"body"].concat();
        let bytes = came(&[(JOB_CREATED, b"H:1"), (WORK_COMPLETE, &result)]);
        assert_eq!(feed(|| Gearman::new(seat(Role::Client)), &bytes).1, [Seen::Done(77)]);
    }

    #[test]
    fn a_producer_knows_what_is_stored() {
        let make = || Gearman { tags: VecDeque::from([5]), ..Gearman::new(seat(Role::Producer)) };
        assert_eq!(feed(make, &came(&[(JOB_CREATED, b"H:1")])).1, [Seen::Done(5)]);
    }

    #[test]
    fn what_is_no_packet_is_an_error() {
        let mut talk = Gearman::new(seat(Role::Client));
        assert!(talk.take(b"HTTP/1.1 400", &mut Vec::new(), &mut Vec::new()).is_err());
        assert!(talk.take(&came(&[(ERROR, b"no\0no")]), &mut Vec::new(), &mut Vec::new()).is_err());
        assert!(talk.take(&came(&[(WORK_COMPLETE, b"none")]), &mut Vec::new(), &mut Vec::new()).is_err());
    }
}
