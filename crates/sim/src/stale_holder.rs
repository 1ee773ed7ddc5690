//! A worker of an exclusive queue that settles old deliveries on its next connection, with the old token. Told that the
//! queue is free, it often does not come.

use turno_proto::model::{Cost, Delivery, Slots};
use turno_proto::native::{Connect, Deliver, Frame, Register, VERSION, encode};

use crate::body;
use crate::frames::arrive;
use crate::oracle::{Oracle, SeenDelivery};
use crate::rng::Rng;

/// Something it was given and has not settled.
#[derive(Clone, Copy, Debug)]
struct Unsettled {
    delivery: Delivery,
    number: u64,
    token: Option<u64>,
    wants_reply: bool,
}

#[derive(Debug, Default)]
pub(crate) struct StaleHolder {
    unsettled: Vec<Unsettled>,
    inbox: Vec<u8>,
    seq: u32,
    /// It was refused and has not asked since.
    idle: bool,
    /// Takes nothing any more.
    unwilling: bool,
}

impl StaleHolder {
    const fn next_seq(&mut self) -> u32 {
        self.seq += 1;
        self.seq
    }

    fn consume(&mut self, out: &mut Vec<u8>) {
        self.idle = false;
        encode(&Frame::Consume { seq: self.next_seq(), handle: 0, exclusive: true }, out);
    }

    /// The connection stands: it first settles deliveries of the last one.
    pub(crate) fn connected(&mut self, queue_name: &str, rng: &mut Rng, out: &mut Vec<u8>) {
        self.inbox.clear();
        self.seq = 10;
        let connect = Connect { version: VERSION, name: "ghost".into(), program: String::new(), heartbeat_ms: 1_000 };
        for frame in [
            Frame::Connect { seq: 1, connect },
            Frame::Ping { seq: 2 },
            Frame::Open { seq: 3, handle: 0, name: queue_name.as_bytes() },
            Frame::Register { seq: 4, register: Register::new(Slots::Limited(4), "ghost") },
        ] {
            encode(&frame, out);
        }
        for unsettled in std::mem::take(&mut self.unsettled) {
            settle(unsettled, rng.once_in(2), out);
        }
        self.consume(out);
    }

    /// It takes nothing any more; false if it still holds something.
    pub(crate) const fn will_not_come(&mut self) -> bool {
        self.unwilling = true;
        self.unsettled.is_empty()
    }

    /// It is alive, and asks again now and then.
    pub(crate) fn show_life(&mut self, stormy: bool, rng: &mut Rng, out: &mut Vec<u8>) {
        encode(&Frame::Ping { seq: 9 }, out);
        if self.idle && stormy && rng.once_in(2) {
            self.consume(out);
        }
    }

    pub(crate) fn hear(
        &mut self,
        bytes: &[u8],
        place: (usize, u64),
        oracle: &mut Oracle,
        rng: &mut Rng,
        out: &mut Vec<u8>,
    ) {
        let mut inbox = std::mem::take(&mut self.inbox);
        arrive(&mut inbox, bytes, |frame| match frame {
            Frame::Deliver(deliver) => self.take(&deliver, place, oracle, rng, out),
            Frame::QueueFull { .. } => {
                self.idle = rng.once_in(4);
                for _ in 0..if self.idle { 0 } else { rng.range(1, 3) } {
                    encode(&Frame::QueueAvailableNotify { seq: self.next_seq(), handle: 0 }, out);
                }
            }
            Frame::QueueAvailable { .. } => {
                self.idle = self.unwilling || rng.once_in(2);
                if !self.idle {
                    self.consume(out);
                }
            }
            Frame::CancelQueue { .. } => self.idle = true,
            _ => {}
        });
        self.inbox = inbox;
    }

    fn take(
        &mut self,
        deliver: &Deliver<'_>,
        (queue, life): (usize, u64),
        oracle: &mut Oracle,
        rng: &mut Rng,
        out: &mut Vec<u8>,
    ) {
        let Deliver { id, delivery, attempt, token, wants_reply, .. } = *deliver;
        let number = body::number(deliver.raw);
        if deliver.cost == Cost::Broadcast {
            oracle.broadcasts.handed(number, None, wants_reply);
        } else {
            oracle.handed(number, SeenDelivery { queue, id, life, delivery, attempt });
        }
        let unsettled = Unsettled { delivery, number: number.unwrap_or(0), token, wants_reply };
        if rng.once_in(4) {
            return self.unsettled.push(unsettled);
        }
        oracle.letters.done(id);
        settle(unsettled, true, out);
    }
}

/// With its token, or with nothing but the delivery's number.
fn settle(unsettled: Unsettled, fenced: bool, out: &mut Vec<u8>) {
    let Unsettled { delivery, number, token, wants_reply } = unsettled;
    let answer = body::answer_payload(number, token);
    let raw = body::raw(&answer);
    let frame = if wants_reply {
        Frame::Reply { seq: delivery.stamp, word: delivery.index, more: false, raw }
    } else {
        Frame::Ack { delivery }
    };
    match token.filter(|_| fenced) {
        Some(token) => encode(&Frame::fenced(token, frame), out),
        None => encode(&frame, out),
    }
}
