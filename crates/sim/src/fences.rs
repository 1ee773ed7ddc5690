//! Holders of exclusive queues, judged by the frames between brokers and workers.
//!
//! It hears what a broker reads and what it says, knows from that who consumes a queue and who waits for it, and complains
//! when two have a queue at once, when a token does not rise, when somebody is passed over, and when an old token opens
//! something (I8, S2.19 to S2.26).

use std::collections::{BTreeMap, BTreeSet};

use turno_oracle::ExclusiveQueue;
use turno_proto::model::{Mono, QueueName};
use turno_proto::native::{FencedFrame, Frame, Raw};

use crate::body;
use crate::frames::{arrive, frames};

/// Brokers look at their timers when these are due.
const TICK_MS: u64 = 200;

/// One connection, as far as it is listened to.
#[derive(Debug)]
struct FenceObserver {
    broker: usize,
    /// The beginning of a frame that the broker has not read as a whole.
    partial: Vec<u8>,
    /// Bytes that wait for the peer and were heard before.
    heard: usize,
    /// The exclusive queues it has handles of.
    handles: BTreeMap<u32, usize>,
    /// CONSUME without an answer: which queue, and whether it alone.
    asked: BTreeMap<u32, (usize, bool)>,
    /// Queues that it had and leaves, with the token, and the number of the frame that says so. What the broker handed out before
    /// it read that frame comes before its answer.
    leaving: Vec<(usize, Option<u64>, u32)>,
    /// The broker has done with it.
    gone: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Fences {
    pub(crate) names: Vec<QueueName>,
    /// Brokers are linked: a queue is one worker's alone at all of them.
    pub(crate) linked: bool,
    ears: BTreeMap<usize, FenceObserver>,
    /// By broker and queue.
    places: BTreeMap<(usize, usize), ExclusiveQueue<usize>>,
    /// The last token of each, over all lives of the broker.
    last: BTreeMap<(usize, usize), u64>,
    /// The queue of each token of a broker.
    tokens: BTreeMap<(usize, u64), usize>,
    /// Replies that came while their token was the last of its queue: by message and token.
    in_time: BTreeSet<(u64, u64)>,
    /// Tokens given out.
    pub(crate) granted: u64,
    /// Replies that came too late.
    pub(crate) fenced_off: u64,
}

impl Fences {
    /// A connection of somebody who may want an exclusive queue.
    pub(crate) fn listen(&mut self, wire: usize, broker: usize) {
        let (partial, handles, asked, leaving) = (Vec::new(), BTreeMap::new(), BTreeMap::new(), Vec::new());
        self.ears.insert(wire, FenceObserver { broker, partial, heard: 0, handles, asked, leaving, gone: false });
    }

    /// A broker begins a life: nobody has anything.
    pub(crate) fn broker_starts(&mut self, broker: usize) {
        self.places.retain(|(of, _), _| *of != broker);
        if self.linked {
            // It does not remember how far ahead the clocks of others were.
            self.last.retain(|(of, _), _| *of != broker);
        }
        self.ears.retain(|_, ear| ear.broker != broker);
    }

    /// The broker has done with a connection.
    pub(crate) fn wire_gone(&mut self, wire: usize) {
        if self.ears.remove(&wire).is_some() {
            self.leaves(wire);
        }
    }

    fn leaves(&mut self, wire: usize) {
        for place in self.places.values_mut() {
            place.leave(wire);
        }
    }

    fn place(&mut self, broker: usize, queue: usize) -> &mut ExclusiveQueue<usize> {
        let linked = self.linked;
        self.places.entry((broker, queue)).or_insert_with(|| ExclusiveQueue::new(linked))
    }

    /// A broker is about to read these bytes.
    pub(crate) fn broker_reads(&mut self, wire: usize, bytes: &[u8]) {
        let Some(ear) = self.ears.get_mut(&wire).filter(|ear| !ear.gone) else { return };
        let mut partial = std::mem::take(&mut ear.partial);
        arrive(&mut partial, bytes, |frame| self.peer_says(wire, &frame));
        if let Some(ear) = self.ears.get_mut(&wire) {
            ear.partial = partial;
        }
    }

    fn peer_says(&mut self, wire: usize, frame: &Frame<'_>) {
        let Some(ear) = self.ears.get_mut(&wire) else { return };
        let broker = ear.broker;
        match frame {
            Frame::Open { handle, name, .. } => {
                match self.names.iter().position(|known| known.as_str().as_bytes() == *name) {
                    Some(queue) => ear.handles.insert(*handle, queue),
                    None => ear.handles.remove(handle),
                };
            }
            Frame::Consume { seq, handle, exclusive } => {
                if let Some(queue) = ear.handles.get(handle) {
                    ear.asked.insert(*seq, (*queue, *exclusive));
                }
            }
            Frame::QueueAvailableNotify { handle, .. } => {
                if let Some(queue) = ear.handles.get(handle).copied() {
                    self.place(broker, queue).asks_to_be_told(wire);
                }
            }
            Frame::CancelQueue { seq, handle, .. } => {
                if let Some(queue) = ear.handles.get(handle).copied() {
                    self.note_leaving(wire, *seq, |left| left == (broker, queue));
                    self.place(broker, queue).leave(wire);
                }
            }
            Frame::Deregister { seq } => {
                self.note_leaving(wire, *seq, |_| true);
                self.leaves(wire);
            }
            Frame::Reply { more: false, raw, .. }
            | Frame::Fenced { frame: FencedFrame::Reply { more: false, raw, .. }, .. } => {
                self.reply_comes(broker, *raw);
            }
            _ => {}
        }
    }

    /// It is about to lose those of its queues.
    fn note_leaving(&mut self, wire: usize, seq: u32, which: impl Fn((usize, usize)) -> bool) {
        let places = self.places.iter().filter(|(at, _)| which(**at));
        let held = places.filter_map(|((_, queue), place)| Some((*queue, place.held_by(wire)?, seq)));
        if let Some(ear) = self.ears.get_mut(&wire) {
            ear.leaving.extend(held);
        }
    }

    /// A worker's reply says itself under which token it was made.
    fn reply_comes(&mut self, broker: usize, raw: Raw<'_>) {
        let (Some(number), Some(token)) = (body::number_of_answer(raw), body::token_of_answer(raw)) else { return };
        let Some(queue) = self.tokens.get(&self.giver_of(broker, token)) else { return };
        if self.last.get(&(broker, *queue)) == Some(&token) {
            self.in_time.insert((number, token));
        } else {
            self.fenced_off += 1;
        }
    }

    /// A caller has got this as its answer.
    pub(crate) fn replied(&self, number: u64, raw: Raw<'_>) {
        if let Some(token) = body::token_of_answer(raw) {
            assert!(self.in_time.contains(&(number, token)), "I8: {number} was ended under the old token {token}");
        }
    }

    /// All that a broker says in one go. Who leaves is noted first: of several connections nobody knows the order.
    pub(crate) fn broker_says(&mut self, now: Mono, said: &[(usize, &[u8])]) {
        let mut left = BTreeSet::new();
        for (wire, unwritten) in said {
            let Some(ear) = self.ears.get(wire) else { continue };
            let (broker, from) = (ear.broker, ear.heard.min(unwritten.len()));
            for frame in frames(&unwritten[from..]) {
                match frame {
                    Frame::Error { fatal: true, .. } => {
                        self.leaves(*wire);
                        if let Some(ear) = self.ears.get_mut(wire) {
                            ear.gone = true;
                        }
                    }
                    Frame::CancelQueue { handle, .. } => {
                        if let Some(queue) = self.ears.get(wire).and_then(|ear| ear.handles.get(&handle)).copied() {
                            self.place(broker, queue).loses(*wire);
                            left.insert((*wire, queue));
                        }
                    }
                    _ => {}
                }
            }
        }
        for (wire, unwritten) in said {
            let Some(ear) = self.ears.get_mut(wire).filter(|ear| !ear.gone) else { continue };
            let from = ear.heard.min(unwritten.len());
            ear.heard = unwritten.len();
            for frame in frames(&unwritten[from..]) {
                self.hear(now, *wire, &frame, &left);
            }
        }
    }

    /// So many of the bytes are on their way.
    pub(crate) fn wrote(&mut self, wire: usize, count: usize) {
        if let Some(ear) = self.ears.get_mut(&wire) {
            ear.heard = ear.heard.saturating_sub(count);
        }
    }

    fn hear(&mut self, now: Mono, wire: usize, frame: &Frame<'_>, left: &BTreeSet<(usize, usize)>) {
        let Some(ear) = self.ears.get_mut(&wire) else { return };
        let broker = ear.broker;
        match frame {
            Frame::Fenced { token, frame: FencedFrame::Ok { seq } } => {
                let (queue, exclusive) = ear.asked.remove(seq).expect("I8: a token that nobody asked for");
                assert!(exclusive, "I8: a token for one that shares");
                self.token_rises(broker, queue, *token);
                self.place(broker, queue).consumes(now, wire, Some(*token));
            }
            Frame::Ok { seq } => {
                ear.leaving.retain(|(_, _, by)| by != seq);
                if let Some((queue, exclusive)) = ear.asked.remove(seq) {
                    assert!(!exclusive, "I8: an exclusive queue without a token");
                    self.place(broker, queue).consumes(now, wire, None);
                }
            }
            Frame::Error { seq, .. } => drop(ear.asked.remove(seq)),
            Frame::QueueFull { seq, .. } => {
                if let Some((queue, _)) = ear.asked.remove(seq) {
                    self.place(broker, queue).is_refused(now, wire);
                }
            }
            Frame::QueueAvailable { handle, .. } => {
                let queue = *ear.handles.get(handle).expect("S2.25: a message about a queue it has no handle of");
                self.place(broker, queue).is_told(now, wire);
            }
            Frame::Deliver(deliver) => {
                if let Some(queue) = ear.handles.get(&deliver.handle).copied()
                    && !left.contains(&(wire, queue))
                {
                    let leaving = ear.leaving.iter().find(|(left, ..)| *left == queue).map(|(_, token, _)| *token);
                    self.place(broker, queue).gets(wire, deliver.token, leaving);
                }
            }
            _ => {}
        }
    }

    /// Linked brokers give out tokens for each other, others each for itself.
    const fn giver_of(&self, broker: usize, token: u64) -> (usize, u64) {
        (if self.linked { 0 } else { broker }, token)
    }

    /// No token comes twice, and each is higher than those before, no matter who lived or died meanwhile.
    fn token_rises(&mut self, broker: usize, queue: usize, token: u64) {
        let taken = self.tokens.insert(self.giver_of(broker, token), queue);
        assert!(taken.is_none(), "I8: two holders of broker {broker} have the token {token}");
        let before = self.last.insert((broker, queue), token);
        assert!(before.is_none_or(|before| before < token), "I8: token {token} after {before:?}");
        self.granted += 1;
    }

    /// A queue is not kept for a standby for ever.
    pub(crate) fn looks_round(&mut self, now: Mono, broker: usize) {
        let places = self.places.range_mut((broker, 0)..(broker + 1, 0));
        places.for_each(|(_, place)| place.timers_ran(now, TICK_MS + 1, false));
    }

    /// The connection that has the queue to itself.
    pub(crate) fn holder(&self, broker: usize, queue: usize) -> Option<usize> {
        self.places.get(&(broker, queue))?.holder()
    }

    /// It stands in a line.
    pub(crate) fn waits(&self, wire: usize) -> bool {
        self.places.values().any(|place| place.is_in_line(wire))
    }

    /// It stands in the line for this queue, or was told just now.
    pub(crate) fn waits_for(&self, wire: usize, queue: &QueueName) -> bool {
        let Some(ear) = self.ears.get(&wire) else { return false };
        let queue = self.names.iter().position(|name| name == queue);
        queue.and_then(|queue| self.places.get(&(ear.broker, queue))).is_some_and(|place| place.waits(wire))
    }
}
