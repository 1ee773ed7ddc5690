//! RabbitMQ: AMQP 0-9-1. Requests by direct reply-to, queues as a classic queue with publisher confirms and consumer acks,
//! transient or, if they are to outlive the server, durable with persistent messages; a consumer acks with one word all that one read gave it.

use std::collections::VecDeque;
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::amqp::Properties;
use super::{Launch, amqp};
use crate::protocol::{ConnectionEnd, Role, Seen, SystemProtocol, decimal};

const QUEUE: &str = "bench";
const REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// The node, and beside it the port mapper that Erlang wants, which it would otherwise leave running for ever.
pub(super) fn commands(launch: &Launch) -> Vec<Command> {
    let mapper_port = launch.more_ports[0].to_string();
    let mut mapper = launch.program("epmd");
    mapper.args(["-address", "127.0.0.1", "-port", &mapper_port]);
    let mut server = launch.program("rabbitmq-server");
    let folder = |name: &str| launch.data.join(name);
    server
        .env("ERL_EPMD_PORT", &mapper_port)
        .env("HOME", &launch.data)
        .env("RABBITMQ_NODENAME", format!("bench{}@localhost", launch.port))
        .env("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1")
        .env("RABBITMQ_NODE_PORT", launch.port.to_string())
        .env("RABBITMQ_DIST_PORT", launch.more_ports[1].to_string())
        .env("RABBITMQ_MNESIA_BASE", folder("mnesia"))
        .env("RABBITMQ_LOG_BASE", folder("log"))
        .env("RABBITMQ_LOGS", "-")
        .env("RABBITMQ_CONFIG_FILE", folder("none"))
        .env("RABBITMQ_CONF_ENV_FILE", folder("none.conf"))
        .env("RABBITMQ_ENABLED_PLUGINS_FILE", folder("plugins"));
    vec![mapper, server]
}

pub(crate) struct RabbitMq {
    seat: ConnectionEnd,
    delivery: Delivery,
    /// The last delivery that is not acked yet.
    ack_up_to: Option<u64>,
    published: u64,
    /// Messages that are not confirmed yet.
    unconfirmed: VecDeque<(u64, u32)>,
}

/// The incoming message so far.
#[derive(Default)]
struct Delivery {
    number: u64,
    tag: Vec<u8>,
    reply_to: Vec<u8>,
    missing: u64,
}

impl RabbitMq {
    pub(crate) fn new(seat: ConnectionEnd) -> Self {
        Self { seat, delivery: Delivery::default(), ack_up_to: None, published: 0, unconfirmed: VecDeque::new() }
    }

    /// Goes on with the opening, or does what a method says.
    fn on_method(&mut self, payload: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<()> {
        let mut fields = amqp::Fields(payload);
        match (fields.short()?, fields.short()?) {
            amqp::START => amqp::start_ok(out),
            amqp::TUNE => {
                amqp::tune_ok(out);
                amqp::open(out);
            }
            amqp::OPEN_OK if self.seat.role == Role::Idle => seen.push(Seen::Ready),
            amqp::OPEN_OK => amqp::channel_open(out),
            amqp::CHANNEL_OPEN_OK => amqp::queue_declare(out, QUEUE, self.seat.durable),
            amqp::QUEUE_DECLARE_OK => match self.seat.role {
                Role::Client => amqp::consume(out, REPLY_TO, true),
                Role::Producer => amqp::confirm_select(out),
                _ => amqp::qos(out, u16::try_from(self.seat.slots)?),
            },
            amqp::QOS_OK => amqp::consume(out, QUEUE, false),
            amqp::CONSUME_OK | amqp::CONFIRM_SELECT_OK => seen.push(Seen::Ready),
            amqp::DELIVER => {
                fields.text()?;
                self.delivery.number = fields.long_long()?;
            }
            amqp::ACK => {
                let number = fields.long_long()?;
                self.on_confirm(number, fields.octet()? != 0, seen);
            }
            amqp::NACK => bail!("RabbitMQ did not store a message"),
            amqp::CLOSE | amqp::CHANNEL_CLOSE => {
                let code = fields.short()?;
                bail!("RabbitMQ: {code} {}", fields.text()?.escape_ascii());
            }
            _ => {}
        }
        Ok(())
    }

    fn on_confirm(&mut self, number: u64, and_all_before: bool, seen: &mut Vec<Seen>) {
        if and_all_before {
            while let Some((_, tag)) = self.unconfirmed.pop_front_if(|(oldest, _)| *oldest <= number) {
                seen.push(Seen::Done(tag));
            }
        } else if let Some(at) = self.unconfirmed.iter().position(|(one, _)| *one == number)
            && let Some((_, tag)) = self.unconfirmed.remove(at)
        {
            seen.push(Seen::Done(tag));
        }
    }

    fn on_header(&mut self, payload: &[u8]) -> Result<()> {
        let header = amqp::ContentHeader::parse(payload)?;
        self.delivery.missing = header.size;
        self.delivery.tag.clear();
        self.delivery.tag.extend_from_slice(header.properties.correlation_id);
        self.delivery.reply_to.clear();
        self.delivery.reply_to.extend_from_slice(header.properties.reply_to);
        Ok(())
    }

    fn on_body(&mut self, body: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<()> {
        if self.delivery.missing != body.len() as u64 {
            bail!("a body in several pieces");
        }
        match self.seat.role {
            Role::Client => {
                seen.push(Seen::Done(decimal(&self.delivery.tag)?));
                return Ok(());
            }
            Role::Worker => {
                let reply_to = std::str::from_utf8(&self.delivery.reply_to).context("a reply address")?;
                amqp::publish(
                    out,
                    reply_to,
                    Properties { correlation_id: &self.delivery.tag, ..Properties::default() },
                    body,
                );
                self.ack_up_to = Some(self.delivery.number);
            }
            Role::Consumer => self.ack_up_to = Some(self.delivery.number),
            _ => {}
        }
        seen.push(Seen::Taken);
        Ok(())
    }
}

impl SystemProtocol for RabbitMq {
    fn open(&mut self, out: &mut Vec<u8>, _seen: &mut Vec<Seen>) {
        out.extend_from_slice(amqp::PROTOCOL);
    }

    fn put(&mut self, tag: u32, body: &[u8], out: &mut Vec<u8>) {
        if self.seat.role == Role::Producer {
            self.published += 1;
            self.unconfirmed.push_back((self.published, tag));
            amqp::publish(out, QUEUE, Properties { persistent: self.seat.durable, ..Properties::default() }, body);
        } else {
            let correlation_id = tag.to_string();
            let properties = Properties {
                correlation_id: correlation_id.as_bytes(),
                reply_to: REPLY_TO.as_bytes(),
                ..Properties::default()
            };
            amqp::publish(out, QUEUE, properties, body);
        }
    }

    fn take(&mut self, bytes: &[u8], out: &mut Vec<u8>, seen: &mut Vec<Seen>) -> Result<usize> {
        let mut used = 0;
        while let Some(frame) = amqp::parse(&bytes[used..])? {
            used += frame.used;
            match frame.kind {
                amqp::METHOD => self.on_method(frame.payload, out, seen)?,
                amqp::HEADER => self.on_header(frame.payload)?,
                amqp::BODY => self.on_body(frame.payload, out, seen)?,
                _ => {}
            }
        }
        Ok(used)
    }

    fn pause(&mut self, out: &mut Vec<u8>) {
        if let Some(number) = self.ack_up_to.take() {
            amqp::ack_up_to(out, number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::tests::{feed, seat};

    /// A delivery as the server writes it.
    fn delivered(number: u64, correlation_id: &[u8], reply_to: &[u8], body: &[u8]) -> Vec<u8> {
        let mut method = vec![0, 60, 0, 60, 1, b'c'];
        method.extend_from_slice(&number.to_be_bytes());
        method.extend_from_slice(&[0, 0, 5]);
        method.extend_from_slice(b"bench");
        let mut bytes = Vec::new();
        amqp::frame(&mut bytes, amqp::METHOD, |out| out.extend_from_slice(&method));
        let mut published = Vec::new();
        amqp::publish(&mut published, "x", Properties { correlation_id, reply_to, ..Properties::default() }, body);
        let method_len = amqp::parse(&published).unwrap().unwrap().used;
        bytes.extend_from_slice(&published[method_len..]);
        bytes
    }

    #[test]
    fn a_worker_replies_and_acks_all_at_once() {
        let came = [delivered(1, b"41", b"there", b"one"), delivered(2, b"42", b"there", b"two")].concat();
        let (said, seen) = feed(|| RabbitMq::new(seat(Role::Worker)), &came);
        assert_eq!(seen, [Seen::Taken, Seen::Taken]);
        let mut wanted = Vec::new();
        for (correlation_id, body) in [(b"41", b"one"), (b"42", b"two")] {
            amqp::publish(&mut wanted, "there", Properties { correlation_id, ..Properties::default() }, body);
        }
        amqp::ack_up_to(&mut wanted, 2);
        assert_eq!(said, wanted);
    }

    #[test]
    fn a_client_knows_its_replies_and_a_holder_says_nothing() {
        let came = delivered(1, b"41", b"", b"one");
        assert_eq!(feed(|| RabbitMq::new(seat(Role::Client)), &came), (Vec::new(), vec![Seen::Done(41)]));
        assert_eq!(feed(|| RabbitMq::new(seat(Role::Holder)), &came), (Vec::new(), vec![Seen::Taken]));
    }

    #[test]
    fn confirms_come_one_by_one_or_many_at_once() {
        let make = || {
            let unconfirmed = VecDeque::from([(1, 11), (2, 12), (3, 13), (4, 14)]);
            RabbitMq { unconfirmed, ..RabbitMq::new(seat(Role::Producer)) }
        };
        let mut came = Vec::new();
        for (number, many) in [(2u64, 0u8), (3, 1)] {
            amqp::frame(&mut came, amqp::METHOD, |out| {
                out.extend_from_slice(&[0, 60, 0, 80]);
                out.extend_from_slice(&number.to_be_bytes());
                out.push(many);
            });
        }
        assert_eq!(feed(make, &came).1, [Seen::Done(12), Seen::Done(11), Seen::Done(13)]);
    }

    #[test]
    fn the_opening_goes_step_by_step() {
        let mut came = Vec::new();
        for (class, method) in [amqp::OPEN_OK, amqp::CHANNEL_OPEN_OK, amqp::QUEUE_DECLARE_OK, amqp::CONFIRM_SELECT_OK] {
            amqp::frame(&mut came, amqp::METHOD, |out| {
                out.extend_from_slice(&class.to_be_bytes());
                out.extend_from_slice(&method.to_be_bytes());
            });
        }
        let (said, seen) = feed(|| RabbitMq::new(seat(Role::Producer)), &came);
        assert_eq!(seen, [Seen::Ready]);
        let mut wanted = Vec::new();
        amqp::channel_open(&mut wanted);
        amqp::queue_declare(&mut wanted, QUEUE, false);
        amqp::confirm_select(&mut wanted);
        assert_eq!(said, wanted);
    }
}
