//! NATS: requests over core subjects with a queue group; queues as a JetStream stream in memory, which is what has acks.
//!
//! The stream drops what is acked (work queue); the consumer pushes to a queue group. Nothing tells JetStream that a
//! subscriber died, so a held message comes again after [`ACK_WAIT_MS`].

use std::io::Write as _;
use std::process::Command;

use anyhow::{Result, bail};

use super::Launch;
use crate::protocol::{ConnectionEnd, Role, Seen, SystemProtocol, decimal, text_line};

/// How long JetStream waits for an ack before it delivers again.
pub(crate) const ACK_WAIT_MS: u64 = 1_000;

const STREAM: &str = r#"{"name":"bench","subjects":["jobs"],"retention":"workqueue","storage":"memory","max_msgs":-1}"#;
/// Longest line before a body; the greeting is the longest.
const LINE_MAX: usize = 32 * 1024;

pub(super) fn commands(launch: &Launch) -> Vec<Command> {
    let mut server = launch.program("nats-server");
    server.args(["-a", "127.0.0.1", "-p", &launch.port.to_string(), "-js", "-sd"]).arg(&launch.data);
    vec![server]
}

pub(crate) struct Nats {
    seat: ConnectionEnd,
    /// The inbox for answers to this end, with its last dot.
    inbox: String,
}

impl Nats {
    pub(crate) fn new(seat: ConnectionEnd) -> Self {
        Self { seat, inbox: format!("_INBOX.{:?}{}.", seat.role, seat.number) }
    }

    fn call(&self, subject: &str, inbox: &str, body: &str, out: &mut Vec<u8>) {
        let reply_to = &self.inbox;
        // Writing to a vector cannot fail.
        let _ = write!(out, "PUB {subject} {reply_to}{inbox} {}\r\n{body}\r\n", body.len());
    }

    fn uses_stream(&self) -> bool {
        matches!(self.seat.role, Role::Producer | Role::Consumer | Role::Holder)
    }

    fn on_message(&self, message: &Message<'_>, out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<()> {
        if let Some(what) = message.subject.strip_prefix(self.inbox.as_bytes()) {
            // Only JetStream answers with an object, and only a failed one holds this.
            if self.uses_stream() && find(message.body, b"\"error\"") {
                bail!("JetStream: {}", message.body.escape_ascii());
            }
            if what.first().is_some_and(u8::is_ascii_digit) {
                seen.push(Seen::Done(decimal(what)?));
            }
            return Ok(());
        }
        let Some(reply_to) = message.reply_to else { bail!("a message without a reply subject") };
        seen.push(Seen::Taken);
        let body = match self.seat.role {
            Role::Holder => return Ok(()),
            Role::Worker => message.body,
            // An empty body is an ack.
            _ => b"",
        };
        out.extend_from_slice(b"PUB ");
        out.extend_from_slice(reply_to);
        let _ = write!(out, " {}\r\n", body.len());
        out.extend_from_slice(body);
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}

impl SystemProtocol for Nats {
    fn open(&mut self, out: &mut Vec<u8>, _seen: &mut Vec<Seen>) {
        let options = r#"{"verbose":false,"pedantic":false,"headers":true,"lang":"rust","version":"0"}"#;
        let _ = write!(out, "CONNECT {options}\r\n");
        if self.seat.role != Role::Idle {
            let _ = write!(out, "SUB {}* 1\r\n", self.inbox);
        }
        if self.uses_stream() {
            self.call("$JS.API.STREAM.CREATE.bench", "stream", STREAM, out);
        }
        match self.seat.role {
            Role::Worker => out.extend_from_slice(b"SUB bench workers 2\r\n"),
            Role::Consumer | Role::Holder => {
                out.extend_from_slice(b"SUB push workers 2\r\n");
                let consumer = format!(
                    r#"{{"stream_name":"bench","config":{{"durable_name":"take","deliver_policy":"all","ack_policy":"explicit","deliver_subject":"push","deliver_group":"workers","max_ack_pending":1024,"ack_wait":{}}}}}"#,
                    ACK_WAIT_MS * 1_000_000
                );
                self.call("$JS.API.CONSUMER.DURABLE.CREATE.bench.take", "consumer", &consumer, out);
            }
            _ => {}
        }
        out.extend_from_slice(b"PING\r\n");
    }

    fn put(&mut self, tag: u32, body: &[u8], out: &mut Vec<u8>) {
        let subject = if self.seat.role == Role::Producer { "jobs" } else { "bench" };
        let _ = write!(out, "PUB {subject} {}{tag} {}\r\n", self.inbox, body.len());
        out.extend_from_slice(body);
        out.extend_from_slice(b"\r\n");
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<usize> {
        let mut used = 0;
        while let Some((operation, length)) = parse(&bytes[used..])? {
            used += length;
            match operation {
                Operation::Message(message) => self.on_message(&message, out, seen)?,
                Operation::Ping => out.extend_from_slice(b"PONG\r\n"),
                Operation::Pong => seen.push(Seen::Ready),
                Operation::Other => {}
            }
        }
        Ok(used)
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Operation<'a> {
    Message(Message<'a>),
    Ping,
    Pong,
    Other,
}

#[derive(Debug, PartialEq, Eq)]
struct Message<'a> {
    subject: &'a [u8],
    reply_to: Option<&'a [u8]>,
    body: &'a [u8],
}

/// The first whole operation and the bytes it takes.
fn parse(bytes: &[u8]) -> Result<Option<(Operation<'_>, usize)>> {
    let Some((line, length)) = text_line(bytes) else {
        if bytes.len() > LINE_MAX {
            bail!("a line without an end");
        }
        return Ok(None);
    };
    let mut words = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    let operation = match words.next().unwrap_or_default() {
        word @ (b"MSG" | b"HMSG") => {
            let rest: Vec<&[u8]> = words.collect();
            return message(bytes, &rest, length, word == b"HMSG");
        }
        b"PING" => Operation::Ping,
        b"PONG" => Operation::Pong,
        b"-ERR" => bail!("NATS: {}", line.escape_ascii()),
        _ => Operation::Other,
    };
    Ok(Some((operation, length)))
}

/// `subject sid [reply] [header bytes] bytes`, then the body; with headers in front of it that nobody here reads.
fn message<'a>(
    bytes: &'a [u8],
    words: &[&'a [u8]],
    head: usize,
    has_headers: bool,
) -> Result<Option<(Operation<'a>, usize)>> {
    let (words, headers) = match words {
        [before @ .., headers, all] if has_headers => ([before, &[*all]].concat(), decimal(headers)?),
        _ => (words.to_vec(), 0),
    };
    let (subject, reply_to, size) = match words[..] {
        [subject, _, size] => (subject, None, size),
        [subject, _, reply_to, size] => (subject, Some(reply_to), size),
        _ => bail!("a message of {} words", words.len()),
    };
    let size: usize = decimal(size)?;
    let Some(body) = bytes.get(head..head + size + 2) else { return Ok(None) };
    let body = body.get(headers..size).unwrap_or_default();
    Ok(Some((Operation::Message(Message { subject, reply_to, body }), head + size + 2)))
}

fn find(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::{feed, seat};

    #[test]
    fn a_worker_answers_where_it_is_told_to() {
        let came = b"INFO {\"x\":1} \r\nPONG\r\nPING\r\nMSG bench 2 _INBOX.C.7 4\r\nbody\r\n";
        let (said, seen) = feed(|| Nats::new(seat(Role::Worker)), came);
        assert_eq!(seen, [Seen::Ready, Seen::Taken]);
        assert_eq!(said, b"PONG\r\nPUB _INBOX.C.7 4\r\nbody\r\n");
    }

    #[test]
    fn a_client_knows_its_replies() {
        let came = b"MSG _INBOX.Client3.41 1 2\r\n\r\n\r\nHMSG _INBOX.Client3.42 1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n";
        let (said, seen) = feed(|| Nats::new(seat(Role::Client)), came);
        assert_eq!(seen, [Seen::Done(41), Seen::Done(42)]);
        assert!(said.is_empty());
    }

    #[test]
    fn a_consumer_acks_and_a_holder_does_not() {
        let came = b"MSG push 2 $JS.ACK.1 4\r\nbody\r\n";
        let (said, seen) = feed(|| Nats::new(seat(Role::Consumer)), came);
        assert_eq!((said.as_slice(), seen.as_slice()), (&b"PUB $JS.ACK.1 0\r\n\r\n"[..], &[Seen::Taken][..]));
        let (said, seen) = feed(|| Nats::new(seat(Role::Holder)), came);
        assert_eq!((said.as_slice(), seen.as_slice()), (&b""[..], &[Seen::Taken][..]));
    }

    #[test]
    fn refusals_are_errors() {
        let mut talk = Nats::new(seat(Role::Producer));
        let refused = b"MSG _INBOX.Producer3.1 1 11\r\n{\"error\":{}\r\n";
        assert!(talk.take(refused, &mut Vec::new(), &mut Vec::new()).is_err());
        assert!(talk.take(b"-ERR 'no'\r\n", &mut Vec::new(), &mut Vec::new()).is_err());
        assert!(talk.take(b"MSG a\r\n", &mut Vec::new(), &mut Vec::new()).is_err());
    }
}
