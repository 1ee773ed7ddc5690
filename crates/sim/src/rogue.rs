//! A peer that speaks frames by hand and means no good: answers twice, answers for others, sends rubbish, stops in
//! the middle of a frame, or never reads.

use std::collections::BTreeSet;

use turno_proto::model::{Cost, Delivery, Slots};
use turno_proto::native::{Connect, Deliver, Frame, Raw, Register, VERSION, encode};

use crate::body;
use crate::frames::arrive;
use crate::oracle::{Oracle, SeenDelivery};
use crate::rng::Rng;
use crate::stale_holder::StaleHolder;

/// Answers that nobody may get.
const TWICE: Raw<'_> = Raw { headers: false, bytes: b"twice" };
const FORGED: Raw<'_> = Raw { headers: false, bytes: b"forged" };

/// The misbehaviour of a rogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misbehaviour {
    /// Takes work, answers it rightly, then again, and for others.
    Liar,
    /// Sends bytes that are no frames.
    Babbler,
    /// Takes work and reads nothing more.
    Deaf,
    /// Connects and says nothing.
    Silent,
    /// Wants a queue to itself, and settles what was its own on the last connection.
    Ghost,
}

#[derive(Debug)]
pub(crate) struct Rogue {
    pub(crate) misbehaviour: Misbehaviour,
    queue: usize,
    /// Its true deliveries on this connection: settling those would be no lie.
    own: BTreeSet<Delivery>,
    /// Says nothing more on this connection.
    mute: bool,
    stale_holder: StaleHolder,
    inbox: Vec<u8>,
    pub(crate) out: Vec<u8>,
}

impl Rogue {
    pub(crate) fn new(rng: &mut Rng, queues: usize) -> Self {
        let misbehaviour =
            [Misbehaviour::Liar, Misbehaviour::Liar, Misbehaviour::Babbler, Misbehaviour::Deaf, Misbehaviour::Silent]
                [rng.index(5)];
        Self {
            misbehaviour,
            queue: rng.index(queues),
            own: BTreeSet::new(),
            mute: false,
            stale_holder: StaleHolder::default(),
            inbox: Vec::new(),
            out: Vec::new(),
        }
    }

    pub(crate) fn stale_holder(queue: usize) -> Self {
        let (own, stale_holder, inbox, out) = (BTreeSet::new(), StaleHolder::default(), Vec::new(), Vec::new());
        Self { misbehaviour: Misbehaviour::Ghost, queue, own, mute: false, stale_holder, inbox, out }
    }

    pub(crate) fn is_ghost(&self) -> bool {
        self.misbehaviour == Misbehaviour::Ghost
    }

    /// A ghost that holds nothing takes nothing any more. True if it is one.
    pub(crate) const fn will_not_come(&mut self) -> bool {
        self.stale_holder.will_not_come()
    }

    /// Acts as a ghost from time to time.
    pub(crate) fn show_life(&mut self, stormy: bool, rng: &mut Rng) {
        self.stale_holder.show_life(stormy, rng, &mut self.out);
    }

    /// The connection stands: the greeting, and everything a worker says, without waiting for answers.
    pub(crate) fn connected(&mut self, queue_name: &str, rng: &mut Rng) {
        self.inbox.clear();
        self.out.clear();
        self.own.clear();
        self.mute = false;
        match self.misbehaviour {
            Misbehaviour::Silent => return,
            Misbehaviour::Ghost => return self.stale_holder.connected(queue_name, rng, &mut self.out),
            _ => {}
        }
        let connect = Connect { version: VERSION, name: "rogue".into(), program: String::new(), heartbeat_ms: 1_000 };
        for frame in [
            Frame::Connect { seq: 1, connect },
            Frame::Ping { seq: 2 },
            Frame::Open { seq: 3, handle: 0, name: queue_name.as_bytes() },
        ] {
            encode(&frame, &mut self.out);
        }
        if self.misbehaviour == Misbehaviour::Babbler {
            self.out.extend((0..rng.range(1, 200)).map(|_| (rng.next() % 256) as u8));
            return;
        }
        encode(&Frame::Register { seq: 4, register: Register::new(Slots::Limited(3), "rogue") }, &mut self.out);
        encode(&Frame::Consume { seq: 5, handle: 0, exclusive: false }, &mut self.out);
    }

    pub(crate) const fn queue(&self) -> usize {
        self.queue
    }

    /// Reads what came and answers in its own way.
    pub(crate) fn hear(&mut self, bytes: &[u8], life: u64, oracle: &mut Oracle, rng: &mut Rng) {
        if self.misbehaviour == Misbehaviour::Ghost {
            return self.stale_holder.hear(bytes, (self.queue, life), oracle, rng, &mut self.out);
        }
        let Self { inbox, own, out, queue, .. } = self;
        arrive(inbox, bytes, |frame| {
            let Frame::Deliver(deliver) = frame else { return };
            let number = body::number(deliver.raw);
            let Deliver { id, delivery, attempt, .. } = deliver;
            if deliver.cost == Cost::Broadcast {
                oracle.broadcasts.handed(number, None, deliver.wants_reply);
            } else {
                oracle.handed(number, SeenDelivery { queue: *queue, id, life, delivery, attempt });
            }
            let number = number.unwrap_or(0);
            own.insert(deliver.delivery);
            if rng.once_in(4) {
                lie(deliver.delivery, own, rng, out);
            }
            if rng.once_in(3) {
                // Never: the broker must do without.
                return;
            }
            oracle.letters.done(deliver.id);
            let answer = body::answer_payload(number, None);
            settle(deliver.delivery, deliver.wants_reply, body::raw(&answer), out);
            if rng.once_in(2) {
                settle(deliver.delivery, deliver.wants_reply, TWICE, out);
            }
        });
        if self.mute {
            self.out.clear();
            return;
        }
        if rng.once_in(30) {
            // Stops in the middle of a frame, for good: a broker must do without the rest.
            self.out.truncate(self.out.len() / 2);
            self.mute = true;
        } else if rng.once_in(2) {
            encode(&Frame::Ping { seq: 9 }, &mut self.out);
        }
    }
}

fn settle(Delivery { index, stamp }: Delivery, wants_reply: bool, raw: Raw<'_>, out: &mut Vec<u8>) {
    let frame = if wants_reply {
        Frame::Reply { seq: stamp, word: index, more: false, raw }
    } else {
        Frame::Ack { delivery: Delivery { index, stamp } }
    };
    encode(&frame, out);
}

/// Claims deliveries that are somebody else's, as near to a real one as can be guessed.
fn lie(near: Delivery, own: &BTreeSet<Delivery>, rng: &mut Rng, out: &mut Vec<u8>) {
    for _ in 0..3 {
        let index = near.index.wrapping_add(u32::try_from(rng.range(0, 5)).expect("small")).wrapping_sub(2);
        // Only older ones: a newer one might be its own and still on the way.
        let stamp = near.stamp.wrapping_sub(u32::try_from(rng.range(0, 6)).expect("small"));
        let claimed = Delivery { index, stamp };
        if own.contains(&claimed) {
            continue;
        }
        settle(claimed, rng.once_in(2), FORGED, out);
    }
}
