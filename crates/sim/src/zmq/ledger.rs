//! The messages between ZeroMQ peers and their broker, judged by the bytes between them.
//!
//! Peers tell what they ask. The rest is read from the connections, when a broker says it and when it reads it: an answer is
//! for this connection, behind the envelope of its request, once (I12); a delivery has all frames that were sent, and a worker
//! never has more of them than its slots (I4, I9); what a PULL socket was written, nobody gets again (I2).

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use turno_broker::ZmqEndpoint;
use turno_proto::model::limits::CANCEL_GRACE_MS;
use turno_proto::model::{Filter, Mono};

use super::kind::{Kind, MdpCommand, ZmqRequest};
use super::tap::{ReceivedMessage, Tap};
use crate::{body, broadcasts};

/// A disk stores or refuses something in this time.
const STORING_MS: u64 = 3_000;
/// Timers run in whole milliseconds.
const GRAIN_MS: u64 = 1;

/// Something that the rest of the oracle has to hear of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// A worker or PULL socket gets a message.
    Handed {
        number: u64,
    },
    /// A message is done.
    Done {
        number: u64,
    },
    Answered {
        number: u64,
    },
    /// A broker has read what a PUSH socket sent.
    Pushed {
        number: u64,
    },
    Published {
        number: u64,
        topic: Vec<u8>,
    },
    Subscribes {
        filter: Filter,
    },
    Unsubscribes {
        filter: Filter,
    },
    Event {
        number: u64,
        topic: Vec<u8>,
    },
}

/// A delivery at a worker.
#[derive(Clone, Copy, Debug)]
struct Held {
    number: u64,
    at: Mono,
}

/// The purpose of a connection.
#[derive(Debug)]
enum ConnectionUse {
    Asks {
        open: BTreeMap<u64, ZmqRequest>,
        /// Failures that were told, by what stood before them.
        failures: BTreeMap<Vec<Bytes>, usize>,
        error_frame: Option<Bytes>,
    },
    Works {
        slots: usize,
        held: BTreeMap<Bytes, Held>,
    },
    Pushes,
    Pulls {
        slots: usize,
        /// Where the bytes of each message end.
        unwritten: VecDeque<(u64, Held)>,
    },
    Publishes,
    Subscribes {
        counts: BTreeMap<Vec<u8>, usize>,
    },
}

/// One connection.
#[derive(Debug)]
struct ZmqConnection {
    peer: usize,
    kind: Kind,
    broker: usize,
    life: u64,
    /// The endpoint, and what it puts before topics.
    endpoint: String,
    prefix: Vec<u8>,
    purpose: ConnectionUse,
    read: Tap,
    said: Tap,
    /// Bytes that wait for the peer and were looked at.
    heard: usize,
    written: u64,
}

/// A message of a PUSH socket that a broker has read, in which of its lives, and when.
#[derive(Clone, Copy, Debug)]
struct Pushed {
    broker: usize,
    life: u64,
    wire: usize,
    at: Mono,
    /// Its connection ended soon after that: if it was refused then, nobody counted it.
    unsure: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// There are ZeroMQ peers in this world.
    pub(crate) on: bool,
    /// How long a worker may hold a delivery.
    pub(crate) lease_ms: Option<u64>,
    /// Brokers are linked: what one has written, its owner hands out again if it has lost the link meanwhile.
    pub(crate) linked: bool,
    lines: BTreeMap<usize, ZmqConnection>,
    /// Messages of PUSH sockets that a broker has read.
    pushed: BTreeMap<u64, Pushed>,
    /// Messages that a PULL socket was written: in which life of its broker, and when.
    pulled: BTreeMap<u64, (u64, Mono)>,
    /// How often each peer got what it is there for.
    progress: BTreeMap<usize, u64>,
    /// Messages to peers.
    pub(crate) count: u64,
}

impl Ledger {
    /// A connection of a ZeroMQ peer.
    pub(crate) fn connected(
        &mut self,
        wire: usize,
        (peer, kind): (usize, Kind),
        (broker, life): (usize, u64),
        endpoint: &ZmqEndpoint,
    ) {
        let slots = kind.slots(endpoint.slots);
        let purpose = match kind {
            Kind::Req { .. } | Kind::Dealer | Kind::MdpClient { .. } => ConnectionUse::Asks {
                open: BTreeMap::new(),
                failures: BTreeMap::new(),
                error_frame: endpoint.error_frame.clone().map(Bytes::from),
            },
            Kind::Rep | Kind::Router | Kind::DealerWorker | Kind::MdpWorker { .. } => {
                ConnectionUse::Works { slots, held: BTreeMap::new() }
            }
            Kind::Push => ConnectionUse::Pushes,
            Kind::Pull => ConnectionUse::Pulls { slots, unwritten: VecDeque::new() },
            Kind::Pub { .. } => ConnectionUse::Publishes,
            Kind::Sub { .. } => ConnectionUse::Subscribes { counts: BTreeMap::new() },
        };
        let (endpoint, prefix) = (endpoint.name.clone(), endpoint.topic.clone().into_bytes());
        let (read, said) = (Tap::default(), Tap::default());
        let line =
            ZmqConnection { peer, kind, broker, life, endpoint, prefix, purpose, read, said, heard: 0, written: 0 };
        self.lines.insert(wire, line);
    }

    /// The broker has done with a connection, or it with the broker.
    pub(crate) fn wire_gone(&mut self, now: Mono, wire: usize) {
        if self.lines.remove(&wire).is_some_and(|line| line.kind == Kind::Push) {
            for pushed in self.pushed.values_mut().filter(|pushed| pushed.wire == wire) {
                pushed.unsure |= now.millis_since(pushed.at) <= STORING_MS;
            }
        }
    }

    /// A broker begins a life.
    pub(crate) fn broker_starts(&mut self, broker: usize) {
        self.lines.retain(|_, line| line.broker != broker);
    }

    /// A peer is about to write a request.
    pub(crate) fn asks(&mut self, wire: usize, number: u64, asking: ZmqRequest) {
        if let Some(ZmqConnection { purpose: ConnectionUse::Asks { open, .. }, .. }) = self.lines.get_mut(&wire) {
            open.insert(number, asking);
        }
    }

    /// How often that peer got what it is there for.
    pub(crate) fn progress_of(&self, peer: usize) -> u64 {
        self.progress.get(&peer).copied().unwrap_or_default()
    }

    /// Requests at that endpoint that have neither an answer nor a failure.
    pub(crate) fn unanswered_at(&self, endpoint: &str) -> usize {
        let at = self.lines.values().filter(|line| line.endpoint == endpoint);
        at.map(|line| match &line.purpose {
            ConnectionUse::Asks { open, failures, .. } => open.len() - failures.values().sum::<usize>(),
            _ => 0,
        })
        .sum()
    }

    /// Messages of PUSH sockets that a broker has read in that life, and would have counted if it had refused them.
    pub(crate) fn pushed_to(&self, broker: usize, life: u64) -> impl Iterator<Item = u64> {
        let by = move |pushed: &Pushed| (pushed.broker, pushed.life) == (broker, life) && !pushed.unsure;
        self.pushed.iter().filter(move |(_, pushed)| by(pushed)).map(|(number, _)| *number)
    }

    pub(crate) fn is_pushed(&self, number: u64) -> bool {
        self.pushed.contains_key(&number)
    }

    /// When a PULL socket was written that message, in that life of its broker.
    pub(crate) fn pulled_at(&self, number: u64, life: u64) -> Option<Mono> {
        self.pulled.get(&number).filter(|(of, _)| *of == life).map(|(_, at)| *at)
    }

    /// A broker is about to take in these bytes.
    pub(crate) fn broker_reads(&mut self, now: Mono, wire: usize, bytes: &[u8]) -> Vec<Fact> {
        let Some(line) = self.lines.get_mut(&wire) else { return Vec::new() };
        let (mut facts, heard) = (Vec::new(), line.read.take(bytes));
        for (_, heard) in heard {
            let fact = match heard {
                ReceivedMessage::Command { name, data } => line.subscription(&name, &data),
                ReceivedMessage::Message(parts) => line.peer_says(&parts),
            };
            if let Some(Fact::Done { .. } | Fact::Published { .. } | Fact::Pushed { .. }) = fact {
                *self.progress.entry(line.peer).or_default() += 1;
            }
            match fact {
                Some(Fact::Pushed { number }) => {
                    let ZmqConnection { broker, life, .. } = *line;
                    self.pushed.insert(number, Pushed { broker, life, wire, at: now, unsure: false });
                }
                fact => facts.extend(fact),
            }
        }
        facts
    }

    /// A broker is about to write these bytes: all that waits for that peer.
    pub(crate) fn broker_says(&mut self, now: Mono, wire: usize, unwritten: &[u8]) -> Vec<Fact> {
        let free_ms = self.lease_ms.unwrap_or(CANCEL_GRACE_MS).min(CANCEL_GRACE_MS).saturating_sub(GRAIN_MS);
        let Some(line) = self.lines.get_mut(&wire) else { return Vec::new() };
        let from = line.heard.min(unwritten.len());
        line.heard = unwritten.len();
        let (mut facts, heard) = (Vec::new(), line.said.take(&unwritten[from..]));
        for (end, heard) in heard {
            let ReceivedMessage::Message(parts) = heard else { continue };
            self.count += 1;
            let fact = line.broker_says(wire, now, free_ms, end, &parts);
            if let Some(Fact::Handed { number }) = &fact {
                let pulled = self.pulled.get(number).filter(|(life, _)| *life == line.life);
                assert!(pulled.is_none(), "I2: {number} was written to a PULL socket, and goes to wire {wire}");
            }
            if let Some(Fact::Answered { .. } | Fact::Event { .. }) = &fact {
                *self.progress.entry(line.peer).or_default() += 1;
            }
            facts.extend(fact);
        }
        facts
    }

    /// A broker wrote so many bytes.
    pub(crate) fn wrote(&mut self, now: Mono, wire: usize, bytes: usize) -> Vec<Fact> {
        let Some(line) = self.lines.get_mut(&wire) else { return Vec::new() };
        line.heard = line.heard.saturating_sub(bytes);
        line.written += bytes as u64;
        let ConnectionUse::Pulls { unwritten, .. } = &mut line.purpose else { return Vec::new() };
        let mut facts = Vec::new();
        while let Some((_, held)) = unwritten.pop_front_if(|(end, _)| *end <= line.written) {
            let Held { number, at } = held;
            // Beyond its lease it is another's, too.
            if !self.linked && self.lease_ms.is_none_or(|lease_ms| now.millis_since(at) + GRAIN_MS < lease_ms) {
                self.pulled.insert(number, (line.life, now));
            }
            *self.progress.entry(line.peer).or_default() += 1;
            facts.push(Fact::Done { number });
        }
        facts
    }
}

impl ZmqConnection {
    /// A message that the broker reads.
    fn peer_says(&mut self, parts: &[Bytes]) -> Option<Fact> {
        match &mut self.purpose {
            ConnectionUse::Works { held, .. } => {
                let rest = parts.strip_prefix(&self.kind.head(MdpCommand::Final)[..])?;
                let done = held.remove(rest.first()?)?;
                Some(Fact::Done { number: done.number })
            }
            ConnectionUse::Pushes => body::number_of_parts(parts).map(|number| Fact::Pushed { number }),
            ConnectionUse::Publishes => {
                let (topic, parts) = parts.split_first()?;
                let number = body::number_of_parts(parts)?;
                Some(Fact::Published { number, topic: [&self.prefix, &topic[..]].concat() })
            }
            // Before 3.1 subscriptions are messages.
            ConnectionUse::Subscribes { .. } => match &parts[0][..] {
                [1, prefix @ ..] => self.subscription(b"SUBSCRIBE", prefix),
                [0, prefix @ ..] => self.subscription(b"CANCEL", prefix),
                _ => None,
            },
            ConnectionUse::Asks { .. } | ConnectionUse::Pulls { .. } => None,
        }
    }

    /// The engine hears of the first subscription to a prefix, and of the end of the last.
    fn subscription(&mut self, name: &[u8], wanted: &[u8]) -> Option<Fact> {
        let ConnectionUse::Subscribes { counts } = &mut self.purpose else { return None };
        let prefix = [&self.prefix, wanted].concat();
        let filter = Filter::prefix(&prefix).expect("a prefix of a topic");
        let count = counts.entry(prefix).or_default();
        match name {
            b"SUBSCRIBE" => {
                *count += 1;
                (*count == 1).then_some(Fact::Subscribes { filter })
            }
            b"CANCEL" if *count > 0 => {
                *count -= 1;
                (*count == 0).then_some(Fact::Unsubscribes { filter })
            }
            _ => None,
        }
    }

    fn broker_says(&mut self, wire: usize, now: Mono, free_ms: u64, end: u64, parts: &[Bytes]) -> Option<Fact> {
        match &mut self.purpose {
            ConnectionUse::Asks { open, failures, error_frame } => {
                answer(wire, parts, open, failures, error_frame.as_ref()).map(|number| Fact::Answered { number })
            }
            ConnectionUse::Works { slots, held } => {
                let Some(rest) = parts.strip_prefix(&self.kind.head(MdpCommand::Request)[..]) else {
                    let is_word = |word| parts == self.kind.head(word);
                    let known = is_word(MdpCommand::Heartbeat) || is_word(MdpCommand::Disconnect);
                    assert!(known, "I4: wire {wire} gets what no worker understands: {parts:?}");
                    return None;
                };
                let [name, empty, parts @ ..] = rest else { panic!("I4: wire {wire} gets work without an envelope") };
                assert!(name.len() == 8 && empty.is_empty(), "I4: wire {wire} gets work without an envelope: {rest:?}");
                let number = body::number_of_parts(parts);
                let number = number.unwrap_or_else(|| panic!("I4: wire {wire} gets other frames than were sent"));
                if !broadcasts::is_one(number) {
                    judge_slots(wire, now, free_ms, *slots, held.values());
                }
                let before = held.insert(name.clone(), Held { number, at: now });
                assert!(before.is_none(), "I3: wire {wire} gets one delivery twice");
                Some(Fact::Handed { number })
            }
            ConnectionUse::Pulls { slots, unwritten } => {
                let number = body::number_of_parts(parts);
                let number = number.unwrap_or_else(|| panic!("I4: wire {wire} gets other frames than were sent"));
                judge_slots(wire, now, free_ms, *slots, unwritten.iter().map(|(_, held)| held));
                unwritten.push_back((end, Held { number, at: now }));
                Some(Fact::Handed { number })
            }
            ConnectionUse::Subscribes { .. } => {
                let (topic, parts) = parts.split_first().expect("a message has a part");
                let number = body::number_of_parts(parts);
                let number = number.unwrap_or_else(|| panic!("S3.33: wire {wire} gets an event that was changed"));
                Some(Fact::Event { number, topic: [&self.prefix, &topic[..]].concat() })
            }
            // Before 3.1 subscriptions are messages: the broker wants everything.
            ConnectionUse::Publishes if parts == [&b"\x01"[..]] => None,
            ConnectionUse::Pushes | ConnectionUse::Publishes => {
                panic!("I4: wire {wire} is told what it cannot hear: {parts:?}")
            }
        }
    }
}

/// One more delivery fits. What was held for so long may count no more.
fn judge_slots<'a>(wire: usize, now: Mono, free_ms: u64, slots: usize, held: impl Iterator<Item = &'a Held>) {
    let counts = |held: &&Held| !broadcasts::is_one(held.number) && now.millis_since(held.at) < free_ms;
    let busy = held.filter(counts).count();
    assert!(busy < slots, "I9: wire {wire} has {busy} deliveries in {slots} slots, and gets one more");
}

/// A message to one that asks: it is the answer to one of its requests, or says that one failed. Returns which one has ended
/// with an answer.
fn answer(
    wire: usize,
    parts: &[Bytes],
    open: &mut BTreeMap<u64, ZmqRequest>,
    failures: &mut BTreeMap<Vec<Bytes>, usize>,
    error_frame: Option<&Bytes>,
) -> Option<u64> {
    let behind = |before: &[Bytes]| parts.strip_prefix(before);
    for (number, asking) in open.iter() {
        let piece = asking.before_piece.as_ref().and_then(|before| behind(before));
        if piece.is_some_and(|piece| piece == body::parts_of(*number)) {
            return None;
        }
        let Some(rest) = behind(&asking.before_answer).filter(|rest| body::claimed(rest) == Some(*number)) else {
            continue;
        };
        let answer = body::answer_parts(*number);
        // A stream comes as a whole, unless pieces come one by one.
        let whole = rest == answer || rest == [body::parts_of(*number), answer].concat();
        assert!(whole, "I12: wire {wire} gets an answer to {number} that was changed: {rest:?}");
        let (number, before) = (*number, asking.before_answer.clone());
        open.remove(&number);
        let most = open.values().filter(|other| other.before_answer == before).count();
        let failed = failures.get(&before).copied().unwrap_or_default();
        assert!(failed <= most, "I12: {number} has failed, and gets an answer");
        return Some(number);
    }
    for asking in open.values() {
        let Some([first, code, ..]) = behind(&asking.before_answer) else { continue };
        if Some(first) != error_frame || !code.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_') {
            continue;
        }
        let before = asking.before_answer.clone();
        let most = open.values().filter(|other| other.before_answer == before).count();
        let failed = failures.entry(before).or_default();
        *failed += 1;
        assert!(*failed <= most, "I12: wire {wire} is told of {failed} failures, and asked {most} times");
        return None;
    }
    panic!(
        "I12: wire {wire} gets an answer that is not to a request of its own, or not behind its envelope: {parts:?}"
    );
}
