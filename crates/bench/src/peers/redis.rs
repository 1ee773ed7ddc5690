//! Redis: requests over lists, one for all requests and one per client for its replies; queues as a stream with a
//! consumer group. A connection that waits in a blocking pop says nothing else meanwhile, and need not: a client with
//! all its requests in flight has nothing to say before a reply comes.

use std::collections::VecDeque;
use std::io::Write as _;
use std::process::Command;

use anyhow::{Result, bail};

use super::Launch;
use crate::protocol::{ADDRESS_LEN, ConnectionEnd, Role, Seen, SystemProtocol, address, addressed, decimal, text_line};

/// Replies a client takes with one pop: all that there can be.
const REPLIES_MAX: u32 = 1_000;
const ITEMS_MAX: usize = 1_000_000;

pub(super) fn commands(launch: &Launch) -> Vec<Command> {
    let mut server = launch.program("redis-server");
    server.args(["--bind", "127.0.0.1", "--port", &launch.port.to_string()]);
    server.args(["--save", "", "--maxclients", "12000", "--dir"]).arg(&launch.data);
    match launch.durable {
        true => server.args(["--appendonly", "yes", "--appendfsync", "always"]),
        false => server.args(["--appendonly", "no"]),
    };
    vec![server]
}

pub(crate) struct Redis {
    seat: ConnectionEnd,
    is_open: bool,
    /// A blocking read is under way.
    is_waiting: bool,
    /// Stored messages are told in the order they were sent in.
    tags: VecDeque<u32>,
    /// Ids to be acked with the next write.
    ids: Vec<u8>,
    id_count: usize,
}

impl Redis {
    pub(crate) const fn new(seat: ConnectionEnd) -> Self {
        Self { seat, is_open: false, is_waiting: false, tags: VecDeque::new(), ids: Vec::new(), id_count: 0 }
    }

    fn on_item(&mut self, item: &Value<'_>, out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<()> {
        match (self.seat.role, item) {
            (Role::Client, Value::Text(body)) => seen.push(Seen::Done(addressed(body)?.1)),
            (Role::Worker, Value::Text(body)) => {
                let key = format!("replies{}", addressed(body)?.0);
                say(out, &[b"RPUSH", key.as_bytes(), body]);
                seen.push(Seen::Taken);
            }
            // An entry of a stream: its id, then fields and values.
            (Role::Consumer | Role::Holder, Value::List(entry)) => {
                let Some(Value::Text(id)) = entry.first() else { bail!("an entry without an id") };
                let _ = write!(self.ids, "${}\r\n", id.len());
                self.ids.extend_from_slice(id);
                self.ids.extend_from_slice(b"\r\n");
                self.id_count += 1;
                seen.push(Seen::Taken);
            }
            (role, _) => bail!("nothing that a {role:?} can take"),
        }
        Ok(())
    }

    fn on_value(&mut self, value: Value<'_>, out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<()> {
        match value {
            // Later workers find the group there.
            Value::Error(text) if text.starts_with(b"BUSYGROUP") => {}
            Value::Error(text) => bail!("Redis: {}", text.escape_ascii()),
            Value::Text(b"PONG") if !self.is_open => {
                self.is_open = true;
                seen.push(Seen::Ready);
            }
            Value::Text(_) if self.seat.role == Role::Producer && self.is_open => {
                let Some(tag) = self.tags.pop_front() else { bail!("an answer to nothing") };
                seen.push(Seen::Done(tag));
            }
            // Of a pop: the key and its items. Of a stream: one list, of the key and its entries.
            Value::List(parts) => {
                self.is_waiting = false;
                let inner = match parts.as_slice() {
                    [Value::List(inner)] => inner,
                    _ => &parts,
                };
                let [_, Value::List(items)] = inner.as_slice() else { bail!("a list of another shape") };
                for item in items {
                    self.on_item(item, out, seen)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}

impl SystemProtocol for Redis {
    fn open(&mut self, out: &mut Vec<u8>, _seen: &mut Vec<Seen>) {
        if matches!(self.seat.role, Role::Producer | Role::Consumer | Role::Holder) {
            say(out, &[b"XGROUP", b"CREATE", b"jobs", b"workers", b"0", b"MKSTREAM"]);
        }
        say(out, &[b"PING"]);
    }

    fn put(&mut self, tag: u32, body: &[u8], out: &mut Vec<u8>) {
        if self.seat.role == Role::Producer {
            say(out, &[b"XADD", b"jobs", b"*", b"b", body]);
            self.tags.push_back(tag);
            return;
        }
        let _ = write!(out, "*3\r\n$5\r\nRPUSH\r\n$5\r\nbench\r\n${}\r\n", body.len() + ADDRESS_LEN);
        out.extend_from_slice(&address(self.seat.number, tag));
        out.extend_from_slice(body);
        out.extend_from_slice(b"\r\n");
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<usize> {
        let mut used = 0;
        while let Some((value, length)) = parse(&bytes[used..])? {
            used += length;
            self.on_value(value, out, seen)?;
        }
        Ok(used)
    }

    fn pause(&mut self, out: &mut Vec<u8>) {
        if !self.is_open || self.is_waiting {
            return;
        }
        let slots = self.seat.slots.to_string();
        match self.seat.role {
            Role::Idle | Role::Producer => return,
            Role::Client => {
                let key = format!("replies{}", self.seat.number);
                let count = REPLIES_MAX.to_string();
                say(out, &[b"BLMPOP", b"0", b"1", key.as_bytes(), b"LEFT", b"COUNT", count.as_bytes()]);
            }
            Role::Worker => say(out, &[b"BLMPOP", b"0", b"1", b"bench", b"LEFT", b"COUNT", slots.as_bytes()]),
            Role::Consumer | Role::Holder => {
                if self.id_count > 0 && self.seat.role == Role::Consumer {
                    let _ = write!(out, "*{}\r\n$4\r\nXACK\r\n$4\r\njobs\r\n$7\r\nworkers\r\n", self.id_count + 3);
                    out.append(&mut self.ids);
                }
                self.id_count = 0;
                self.ids.clear();
                let name = format!("consumer{}", self.seat.number);
                let read: [&[u8]; 6] =
                    [b"XREADGROUP", b"GROUP", b"workers", name.as_bytes(), b"COUNT", slots.as_bytes()];
                let from: [&[u8]; 5] = [b"BLOCK", b"0", b"STREAMS", b"jobs", b">"];
                say(out, &[&read[..], &from].concat());
            }
        }
        self.is_waiting = true;
    }
}

/// Writes a command.
pub(crate) fn say(out: &mut Vec<u8>, words: &[&[u8]]) {
    // Writing to a vector cannot fail.
    let _ = write!(out, "*{}\r\n", words.len());
    for word in words {
        let _ = write!(out, "${}\r\n", word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Value<'a> {
    /// Simple or bulk.
    Text(&'a [u8]),
    Number,
    Nothing,
    Error(&'a [u8]),
    List(Vec<Self>),
}

/// The first whole value and the bytes it takes.
fn parse(bytes: &[u8]) -> Result<Option<(Value<'_>, usize)>> {
    let Some((line, head)) = text_line(bytes) else { return Ok(None) };
    let Some((kind, text)) = line.split_first() else { bail!("an empty line") };
    let value = match kind {
        b'+' => Value::Text(text),
        b'-' => Value::Error(text),
        b':' => Value::Number,
        b'$' | b'*' if text == b"-1" => Value::Nothing,
        b'$' => {
            let size: usize = decimal(text)?;
            let Some(body) = bytes.get(head..head + size + 2) else { return Ok(None) };
            return Ok(Some((Value::Text(&body[..size]), head + size + 2)));
        }
        b'*' => {
            let count: usize = decimal(text)?;
            if count > ITEMS_MAX {
                bail!("a list of {count} items");
            }
            let (mut used, mut items) = (head, Vec::with_capacity(count));
            for _ in 0..count {
                let Some((item, length)) = parse(&bytes[used..])? else { return Ok(None) };
                used += length;
                items.push(item);
            }
            return Ok(Some((Value::List(items), used)));
        }
        _ => bail!("an unknown kind of value: {}", line.escape_ascii()),
    };
    Ok(Some((value, head)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::{feed, seat};

    fn open(role: Role) -> Redis {
        Redis { is_open: true, is_waiting: true, ..Redis::new(seat(role)) }
    }

    #[test]
    fn a_worker_pushes_to_the_asker_and_pops_again() {
        let mut came = b":1\r\n*2\r\n$5\r\nbench\r\n*1\r\n$12\r\n".to_vec();
        came.extend_from_slice(&address(6, 41));
        came.extend_from_slice(b"body\r\n");
        let (said, seen) = feed(|| open(Role::Worker), &came);
        assert_eq!(seen, [Seen::Taken]);
        let mut wanted = Vec::new();
        say(&mut wanted, &[b"RPUSH", b"replies6", &[&address(6, 41)[..], b"body"].concat()]);
        say(&mut wanted, &[b"BLMPOP", b"0", b"1", b"bench", b"LEFT", b"COUNT", b"10"]);
        assert_eq!(said, wanted);
    }

    #[test]
    fn a_client_knows_its_replies() {
        let mut came = b"*2\r\n$8\r\nreplies3\r\n*2\r\n$8\r\n".to_vec();
        came.extend_from_slice(&address(3, 1));
        came.extend_from_slice(b"\r\n$8\r\n");
        came.extend_from_slice(&address(3, 2));
        came.extend_from_slice(b"\r\n");
        assert_eq!(feed(|| open(Role::Client), &came).1, [Seen::Done(1), Seen::Done(2)]);
    }

    #[test]
    fn a_consumer_acks_all_it_got_at_once() {
        let entry = "*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\nb\r\n$4\r\nbody\r\n";
        let came = format!("*1\r\n*2\r\n$4\r\njobs\r\n*2\r\n{entry}{entry}");
        let (said, seen) = feed(|| open(Role::Consumer), came.as_bytes());
        assert_eq!(seen, [Seen::Taken, Seen::Taken]);
        let mut ack = Vec::new();
        say(&mut ack, &[b"XACK", b"jobs", b"workers", b"1-0", b"1-0"]);
        assert!(said.starts_with(&ack), "{}", said.escape_ascii());
        let (said, _) = feed(|| open(Role::Holder), came.as_bytes());
        assert!(said.starts_with(b"*11\r\n$10\r\nXREADGROUP"), "{}", said.escape_ascii());
    }

    #[test]
    fn refusals_are_errors_and_a_group_that_is_there_is_none() {
        let mut talk = Redis::new(seat(Role::Producer));
        let (mut out, mut seen) = (Vec::new(), Vec::new());
        assert_eq!(talk.take(b"-BUSYGROUP there\r\n+PONG\r\n", &mut out, &mut seen).unwrap(), 25);
        assert_eq!(seen, [Seen::Ready]);
        assert!(talk.take(b"-OOM no\r\n", &mut out, &mut seen).is_err());
        assert!(talk.take(b"?\r\n", &mut out, &mut seen).is_err());
    }
}
