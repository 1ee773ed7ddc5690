//! Crossings, judged by the frames that brokers write and read (I14, S2.8).
//!
//! A message that crosses stays its owner's, so it is in one place at a time: a broker that has handed it on says nothing more of it
//! until it hears what became of it, or has lost whom it gave it to. Its way says where it was, begins at its owner, and
//! leads through nobody twice.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::link::{BrokerId, Forward, ForwardBroadcast, LinkMessage};
use turno_proto::model::{Cost, Delivery, MessageId, Mono, limits};
use turno_proto::native::Frame;

use crate::frames::{arrive, frames};
use crate::links::life_of;
use crate::net::Direction;

/// The way of something that came over a link.
type Road = Vec<BrokerId>;

/// A message that a broker gave away: the broker, the message, the life of its owner and the attempt. An owner that starts
/// again, or has lost the first broker on the way, may give a message to brokers that still have it of its last life or of
/// the attempt before, because they have not heard of that. An owner itself has one attempt at a time under way: 0 stands for all.
type ReceivedTask = (usize, MessageId, u64, u16);

fn gift(broker: usize, id: MessageId, life: u64, attempt: u16) -> ReceivedTask {
    let is_own = life_of(id.run()).0 == broker;
    (broker, id, life, if is_own { 0 } else { attempt })
}

/// Where a delivery to a worker comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// The life of the broker whose message it is.
    pub(crate) life: u64,
    /// That broker is the worker's own.
    pub(crate) local: bool,
    /// The link that it came over, if it is not.
    pub(crate) link: Option<usize>,
}

#[derive(Debug, Default)]
pub(crate) struct Crossings {
    /// There are links in this world.
    pub(crate) on: bool,
    /// The brokers of a link: the one that dialled, the other.
    links: BTreeMap<usize, (BrokerId, BrokerId)>,
    /// Links over which something of a link was said, by both ends.
    up: BTreeMap<usize, BTreeSet<Direction>>,
    /// Bytes that wait for the other end and were heard before.
    heard: BTreeMap<(usize, Direction), usize>,
    /// The beginning of a frame that has not been read as a whole.
    partial: BTreeMap<(usize, Direction), Vec<u8>>,
    /// Arrivals at a broker, by message and attempt: by which way, and over which link.
    arrived: BTreeMap<(usize, MessageId, u16), (Road, usize)>,
    /// Attempts that came to a broker over two links: the owner has lost the first broker on the way, and this one
    /// has not heard of it. Of what it says nobody knows which of the two is meant.
    twice: BTreeSet<(usize, MessageId, u16)>,
    /// Crossings that are not answered.
    given: BTreeMap<ReceivedTask, (usize, u32)>,
    /// Deliveries to workers.
    handed: BTreeMap<(MessageId, u16, Delivery), Source>,
    /// When a link was lost last.
    pub(crate) lost: Option<Mono>,
    /// Links that a broker has lost, and when.
    pub(crate) gone: Vec<(Mono, usize, usize)>,
    /// Messages that crossed.
    pub(crate) count: u64,
}

impl Crossings {
    /// A wire between two brokers.
    pub(crate) fn link(&mut self, wire: usize, dialler: BrokerId, other: BrokerId) {
        self.links.insert(wire, (dialler, other));
    }

    /// Both ends have said something over it that is said over links only.
    pub(crate) fn is_up(&self, wire: usize) -> bool {
        self.up.get(&wire).is_some_and(|ways| ways.len() == 2)
    }

    /// Where a delivery comes from, as its broker knew when it said it.
    pub(crate) fn source_of(&self, id: MessageId, attempt: u16, delivery: Delivery) -> Option<Source> {
        self.handed.get(&(id, attempt, delivery)).copied()
    }

    /// A broker has done with a link: whatever it gave to it, it may give to others.
    pub(crate) fn gone(&mut self, now: Mono, broker: usize, wire: usize) {
        self.lost = Some(now);
        self.gone.push((now, broker, wire));
        self.given.retain(|(of, ..), (over, _)| (*of, *over) != (broker, wire));
    }

    /// A broker begins a life: it has given nothing to anybody.
    pub(crate) fn broker_starts(&mut self, now: Mono, broker: usize) {
        self.lost = Some(now);
        self.given.retain(|(of, ..), _| *of != broker);
        self.arrived.retain(|(at, _, _), _| *at != broker);
        self.twice.retain(|(at, _, _)| *at != broker);
    }

    /// A broker is about to read these bytes.
    pub(crate) fn broker_reads(&mut self, now: Mono, (broker, wire): (usize, usize), way: Direction, bytes: &[u8]) {
        let mut partial = self.partial.remove(&(wire, way)).unwrap_or_default();
        arrive(&mut partial, bytes, |frame| self.reads(now, broker, wire, &frame));
        self.partial.insert((wire, way), partial);
    }

    fn reads(&mut self, now: Mono, broker: usize, wire: usize, frame: &Frame<'_>) {
        let settled = match frame {
            Frame::Forward(forward) => {
                let Forward { id, attempt, path, .. } = &**forward;
                let arrival = (broker, *id, *attempt);
                let before = self.arrived.insert(arrival, (path.brokers().to_vec(), wire));
                if before.is_some_and(|(_, over)| over != wire) {
                    self.twice.insert(arrival);
                }
                return;
            }
            Frame::Reply { seq, more: false, .. } | Frame::Delivered { seq } | Frame::Undelivered { seq, .. } => *seq,
            Frame::Ack { delivery } | Frame::Fail { delivery, .. } => delivery.stamp,
            Frame::Error { fatal: true, .. } => return self.gone(now, broker, wire),
            _ => return,
        };
        self.given.retain(|(of, ..), given| (*of, *given) != (broker, (wire, settled)));
    }

    /// All that a broker says in one go. Links that it ends and crossings that it takes back are noted first, also those that
    /// began in the same go: of several connections nobody knows the order. (Two links are found silent at once: what is
    /// lost with the one is given to the other, and then to a third.)
    pub(crate) fn broker_says(&mut self, now: Mono, at: (usize, u64), said: &[(usize, Direction, &[u8])]) {
        let mut new = Vec::new();
        for (wire, way, unwritten) in said {
            let heard = self.heard.entry((*wire, *way)).or_default();
            let from = (*heard).min(unwritten.len());
            *heard = unwritten.len();
            new.push((*wire, *way, &unwritten[from..]));
        }
        let (mut ended, mut cancelled) = (BTreeSet::new(), BTreeSet::new());
        for (wire, _, bytes) in new.iter().filter(|(wire, ..)| self.links.contains_key(wire)) {
            for frame in frames(bytes) {
                match frame {
                    Frame::Error { fatal: true, .. } => drop(ended.insert(*wire)),
                    Frame::Cancel { seq, .. } => drop(cancelled.insert((*wire, seq))),
                    _ => {}
                }
            }
        }
        ended.iter().for_each(|wire| self.gone(now, at.0, *wire));
        self.given.retain(|(of, ..), given| *of != at.0 || !cancelled.contains(given));
        for (wire, way, bytes) in new {
            for frame in frames(bytes) {
                match self.links.get(&wire).copied() {
                    Some(ends) => {
                        let released = |seq| ended.contains(&wire) || cancelled.contains(&(wire, seq));
                        self.says_over_link(at.0, (wire, way), ends, &frame, released);
                    }
                    None => self.says_to_peer(at, &frame),
                }
            }
        }
    }

    /// So many of the bytes are on their way.
    pub(crate) fn wrote(&mut self, wire: usize, way: Direction, count: usize) {
        if let Some(heard) = self.heard.get_mut(&(wire, way)) {
            *heard = heard.saturating_sub(count);
        }
    }

    fn says_over_link(
        &mut self,
        broker: usize,
        (wire, way): (usize, Direction),
        ends: (BrokerId, BrokerId),
        frame: &Frame<'_>,
        released: impl Fn(u32) -> bool,
    ) {
        let (me, other) = if way == Direction::ToBroker { ends } else { (ends.1, ends.0) };
        match frame {
            Frame::Forward(forward) => {
                let Forward { seq, id, attempt, path, .. } = &**forward;
                let road: Road = path.brokers().to_vec();
                judge_road(*id, &road, me, other);
                let (owner, _) = life_of(id.run());
                let (first, life) = life_of(road[0].get());
                assert_eq!(first, owner, "I14: {id} says that it comes from {first}, and is {owner}'s");
                if self.twice.contains(&(broker, *id, *attempt)) {
                    self.count += 1;
                    return;
                }
                if let Some((_, before @ [_, ..])) = road.split_last() {
                    let came = self.arrived.get(&(broker, *id, *attempt));
                    let came = came.map(|(road, _)| road.as_slice());
                    assert_eq!(came, Some(before), "I14: {id} did not come this way");
                }
                self.count += 1;
                if released(*seq) {
                    return;
                }
                let before = self.given.insert(gift(broker, *id, life, *attempt), (wire, *seq));
                assert!(before.is_none(), "I14: {id} is given to two at once, over {before:?} and {wire}");
            }
            Frame::Link(message) => match &**message {
                LinkMessage::Broadcast(ForwardBroadcast { targets, path, .. }) => {
                    let met = targets.iter().find(|target| path.has(**target));
                    assert!(met.is_none(), "S2.9: a broadcast goes back to {met:?}");
                    let is_last = path.brokers().last() == Some(&me);
                    assert!(is_last && !path.has(other), "S2.9: a broadcast goes round");
                }
                LinkMessage::Presence(_) => drop(self.up.entry(wire).or_default().insert(way)),
                LinkMessage::Offers(_) | LinkMessage::Event(_) | LinkMessage::Relay(_) => {}
            },
            _ => {}
        }
    }

    fn says_to_peer(&mut self, (broker, life): (usize, u64), frame: &Frame<'_>) {
        let Frame::Deliver(deliver) = frame else { return };
        if deliver.cost == Cost::Broadcast {
            return;
        }
        let (id, attempt, delivery) = (deliver.id, deliver.attempt, deliver.delivery);
        let local = life_of(id.run()).0 == broker;
        let (life, link) = if local {
            (life, None)
        } else {
            let came = self.arrived.get(&(broker, id, attempt));
            let (road, link) = came.expect("I14: a message of another broker came over a link");
            (life_of(road[0].get()).1, Some(*link))
        };
        let is_sure = !self.twice.contains(&(broker, id, attempt));
        let given = self.given.get(&gift(broker, id, life, attempt)).filter(|_| is_sure);
        assert!(given.is_none(), "I14: {id} is handed to a worker while it is given away over {given:?}");
        self.handed.insert((id, attempt, delivery), Source { life, local, link });
    }
}

/// A way is that of the one that says it, leads through nobody twice and not to whom it came from.
fn judge_road(id: MessageId, road: &Road, me: BrokerId, other: BrokerId) {
    let once: BTreeSet<&BrokerId> = road.iter().collect();
    assert!(road.last() == Some(&me) && once.len() == road.len(), "I14: {id} came by {road:?} to {me}");
    assert!(road.len() <= limits::PATH_MAX, "I14: {id} comes from too far: {road:?}");
    assert!(!road.contains(&other), "I14: {id} goes back to {other}: {road:?}");
}
