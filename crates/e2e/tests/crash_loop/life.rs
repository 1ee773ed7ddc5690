//! One life of a broker: producers with many sends in flight, workers of several kinds, and an end that comes when
//! something was counted often enough.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::process::{Pid, Signal, kill_process};
use turno_e2e::Peer;
use turno_proto::model::{Code, Delivery, MessageId};
use turno_proto::native::{Deliver, Frame, Raw, RawOutgoing};

use crate::book::{Book, POISON_RETRIES, RETRIES, body_of, is_poison};

/// Sends that a producer has without an answer.
const IN_FLIGHT: usize = 64;

/// What is counted until the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Sent,
    Confirmed,
    Delivered,
}

/// One life, as all its threads see it.
#[derive(Debug)]
pub(crate) struct Life<'a> {
    pub(crate) number: u32,
    pub(crate) book: &'a Book,
    pub(crate) broker: Pid,
    pub(crate) signal: Signal,
    /// The broker is ended at the n-th of these.
    pub(crate) at: (Event, u32),
    pub(crate) count: AtomicU32,
}

/// How a worker goes about its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Does all it can.
    Steady,
    /// Fails some at the first attempt.
    Wavering,
    /// Goes away with what it holds after so many deliveries.
    Mortal(usize),
}

enum Heard {
    Stored(u32, turno_proto::model::Durability, MessageId),
    Refused(u32),
    Work { delivery: Delivery, id: MessageId, attempt: u16, body: Vec<u8> },
    Ping(u32),
    Closing,
    Other(String),
}

impl Heard {
    fn of(frame: Frame<'_>) -> Self {
        match frame {
            Frame::Stored { seq, durability, id, .. } => Self::Stored(seq, durability, id),
            Frame::Undelivered { seq, code: Code::Closing, .. } => Self::Refused(seq),
            Frame::Deliver(Deliver { delivery, id, attempt, raw, .. }) => {
                Self::Work { delivery, id, attempt, body: raw.bytes.to_vec() }
            }
            Frame::Ping { seq } => Self::Ping(seq),
            Frame::Closing { .. } => Self::Closing,
            other => Self::Other(format!("{other:?}")),
        }
    }
}

impl Life<'_> {
    /// Ends the broker when it is time.
    fn happened(&self, event: Event) {
        let (wanted, at) = self.at;
        if event == wanted && self.count.fetch_add(1, Ordering::Relaxed) + 1 == at {
            kill_process(self.broker, self.signal).expect("our own broker");
        }
    }

    /// Sends until the broker is gone.
    pub(crate) fn produce(&self, mut peer: Peer) {
        let mut open = BTreeMap::new();
        let (mut seq, mut is_closing) = (1_000, false);
        loop {
            while open.len() < IN_FLIGHT && !is_closing {
                seq += 1;
                let number = self.book.next();
                open.insert(seq, number);
                let body = body_of(number);
                let mut message = RawOutgoing::new(seq, 0, Raw { headers: false, bytes: &body });
                message.retries = Some(if is_poison(number) { POISON_RETRIES } else { RETRIES });
                peer.say(&Frame::Send(message));
                self.happened(Event::Sent);
            }
            match peer.try_hear(Heard::of) {
                None => return,
                Some(Heard::Stored(seq, durability, id)) => {
                    self.book.confirmed(open.remove(&seq).expect("one answer to each send"), id, durability);
                    self.happened(Event::Confirmed);
                }
                Some(Heard::Refused(seq)) => self.book.refused(open.remove(&seq).expect("one answer to each send")),
                Some(Heard::Ping(seq)) => peer.say(&Frame::Pong { seq }),
                Some(Heard::Closing) => is_closing = true,
                Some(Heard::Work { .. }) => panic!("a producer has no work"),
                Some(Heard::Other(what)) => panic!("a producer heard {what}"),
            }
        }
    }

    /// Works until the broker is gone.
    pub(crate) fn work(&self, mut peer: Peer, manner: Manner) {
        let mut count = 0;
        loop {
            let (delivery, id, attempt, body) = match peer.try_hear(Heard::of) {
                None => return,
                Some(Heard::Work { delivery, id, attempt, body }) => (delivery, id, attempt, body),
                Some(Heard::Ping(seq)) => {
                    peer.say(&Frame::Pong { seq });
                    continue;
                }
                // One that never settles anything would hold the broker up.
                Some(Heard::Closing) if matches!(manner, Manner::Mortal(_)) => return,
                Some(Heard::Closing) => continue,
                Some(Heard::Stored(..) | Heard::Refused(_)) => panic!("a worker sends nothing"),
                Some(Heard::Other(what)) => panic!("a worker heard {what}"),
            };
            count += 1;
            if let Some(number) = self.book.delivered(self.number, id, attempt, &body) {
                self.settle(&mut peer, manner, number, attempt, delivery);
            }
            self.happened(Event::Delivered);
            if matches!(manner, Manner::Mortal(after) if count >= after) {
                return;
            }
        }
    }

    fn settle(&self, peer: &mut Peer, manner: Manner, number: u64, attempt: u16, delivery: Delivery) {
        let stays = !matches!(manner, Manner::Mortal(_));
        if is_poison(number) || (manner == Manner::Wavering && attempt == 1 && number.is_multiple_of(3)) {
            peer.fail(delivery, format!("cannot do {number}").as_bytes());
        } else if stays || number.is_multiple_of(2) {
            self.book.acked(number, self.number, stays);
            peer.ack(delivery);
        }
    }
}
