//! Events, judged by the frames between brokers and those who listen.
//!
//! A broker reads one frame after the other: with each PUBLISH it is known who must get it, after what. So it is known of
//! every EVENT whether it is the next, and of every EVENTS_DROPPED how many it stands for (S3.33, S3.36). Subscribers that
//! fetch must get what waits, in order (S3.34).

use std::collections::{BTreeMap, VecDeque};

use turno_oracle::{Expected, Listeners};
use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::{Code, Topic};
use turno_proto::native::Frame;

use crate::body;
use crate::frames::arrive;

/// What a broker said to one who listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Event(u64),
    Dropped(u64),
}

/// One connection, as far as it is listened to.
#[derive(Debug, Default)]
struct Ear {
    broker: usize,
    /// The beginning of a frame that the broker has not read as a whole.
    read: Vec<u8>,
    /// The beginning of a frame that the broker has not written as a whole.
    written: Vec<u8>,
    /// Events that are for it and were not said yet.
    owed: VecDeque<u64>,
    said: Vec<Said>,
    /// How much of that its peer has read, and the beginning of a frame that it has not read as a whole.
    arrived: usize,
    arriving: Vec<u8>,
    /// What calls that wait for their answer must get.
    calls: BTreeMap<u32, Expected>,
    /// The broker said its last word.
    over: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Topics {
    /// What peers published, about what.
    published: BTreeMap<u64, Topic>,
    /// What some broker has read, and which.
    read: BTreeMap<u64, usize>,
    ears: BTreeMap<usize, Ear>,
    /// By broker.
    listeners: BTreeMap<usize, Listeners<usize>>,
    /// What brokers said so far of it.
    pub(crate) events: u64,
    pub(crate) dropped: u64,
}

impl Topics {
    pub(crate) fn publishes(&mut self, number: u64, topic: Topic) {
        self.published.insert(number, topic);
    }

    pub(crate) fn topic_of(&self, number: u64) -> &Topic {
        self.published.get(&number).expect("S3.33: an event that nobody published")
    }

    /// A publisher was told that its event is on its way.
    pub(crate) fn confirmed(&self, number: u64) {
        assert!(self.read.contains_key(&number), "S3.33: {number} was confirmed, and no broker has it");
    }

    /// The broker that has read it.
    pub(crate) fn read_by(&self, number: u64) -> Option<usize> {
        self.read.get(&number).copied()
    }

    /// A connection of one who listens.
    pub(crate) fn listen(&mut self, wire: usize, broker: usize) {
        self.ears.insert(wire, Ear { broker, ..Ear::default() });
    }

    pub(crate) fn is_listening(&self, wire: usize) -> bool {
        self.ears.contains_key(&wire)
    }

    /// A broker begins a life: nobody listens.
    pub(crate) fn broker_starts(&mut self, broker: usize) {
        self.listeners.remove(&broker);
        for ear in self.ears.values_mut().filter(|ear| ear.broker == broker) {
            ear.hang_up();
        }
    }

    /// The broker has done with a connection. What it said may still be heard.
    pub(crate) fn wire_gone(&mut self, wire: usize) {
        if let Some(ear) = self.ears.get_mut(&wire) {
            ear.hang_up();
            self.listeners.entry(ear.broker).or_default().leave(wire);
        }
    }

    /// A broker is about to take in these bytes.
    pub(crate) fn broker_reads(&mut self, wire: usize, bytes: &[u8]) {
        let Some(ear) = self.ears.get_mut(&wire).filter(|ear| !ear.over) else { return };
        let mut partial = std::mem::take(&mut ear.read);
        arrive(&mut partial, bytes, |frame| self.peer_says(wire, frame));
        if let Some(ear) = self.ears.get_mut(&wire) {
            ear.read = partial;
        }
    }

    fn peer_says(&mut self, wire: usize, frame: Frame<'_>) {
        let Some(ear) = self.ears.get_mut(&wire) else { return };
        let broker = ear.broker;
        let listeners = self.listeners.entry(broker).or_default();
        match frame {
            Frame::Subscribe { filter, .. } => listeners.subscribe(wire, filter),
            Frame::Unsubscribe { filter, .. } => drop(listeners.unsubscribe(wire, &filter)),
            Frame::Publish { event, .. } => {
                let number = body::number(event.payload.bytes).expect("S3.33: a client published what it was given");
                self.spread(broker, number, event.topic);
            }
            Frame::AdminCall { seq, call } => ear.calls.extend(listeners.call(&call).map(|expected| (seq, expected))),
            _ => {}
        }
    }

    /// Everyone at that broker whose filters match is owed the event, once.
    fn spread(&mut self, broker: usize, number: u64, topic: &[u8]) {
        assert_eq!(self.topic_of(number).as_str().as_bytes(), topic, "S3.33: {number} is about another topic");
        let before = self.read.insert(number, broker);
        assert_eq!(before, None, "S3.36: a client wrote {number} twice");
        for wire in self.listeners.entry(broker).or_default().publish(&self.published[&number], number) {
            self.ears.get_mut(&wire).expect("who listens was listened to").owed.push_back(number);
        }
    }

    /// A broker wrote these bytes.
    pub(crate) fn broker_writes(&mut self, wire: usize, bytes: &[u8]) {
        let Self { ears, published, events, dropped, .. } = self;
        let Some(ear) = ears.get_mut(&wire) else { return };
        let mut partial = std::mem::take(&mut ear.written);
        arrive(&mut partial, bytes, |frame| match frame {
            Frame::Event(event) => {
                let number = body::number(event.payload.bytes).expect("S3.33: an event was changed on its way");
                let topic = published.get(&number).map(|topic| topic.as_str().as_bytes());
                assert_eq!(topic, Some(event.topic), "S3.33: {number} is about another topic than was published");
                ear.gets(wire, number);
                *events += 1;
            }
            Frame::EventsDropped { count } => {
                ear.misses(wire, u64::from(count));
                *dropped += u64::from(count);
            }
            Frame::Error { fatal: true, .. } => ear.over = true,
            Frame::Error { seq, code, .. } => ear.answered(seq, Err(code)),
            Frame::AdminAnswer { seq, answer } => ear.answered(seq, Ok(&answer)),
            _ => {}
        });
        ear.written = partial;
    }

    /// A peer is about to take in these bytes.
    pub(crate) fn peer_reads(&mut self, wire: usize, bytes: &[u8]) {
        let Some(ear) = self.ears.get_mut(&wire) else { return };
        let arrived = &mut ear.arrived;
        arrive(&mut ear.arriving, bytes, |frame| {
            *arrived += usize::from(matches!(frame, Frame::Event(_) | Frame::EventsDropped { .. }));
        });
    }

    /// What a broker said on that connection and its peer has read, from there on.
    pub(crate) fn said(&self, wire: usize, from: usize) -> &[Said] {
        self.ears.get(&wire).map_or(&[], |ear| &ear.said[from..ear.arrived])
    }

    /// Events that one who listens there is owed.
    pub(crate) fn owed(&self, wire: usize) -> usize {
        self.ears.get(&wire).map_or(0, |ear| ear.owed.len())
    }
}

impl Ear {
    fn hang_up(&mut self) {
        self.over = true;
        self.owed.clear();
    }

    /// An event comes to it: the next that it is owed.
    fn gets(&mut self, wire: usize, number: u64) {
        assert!(!self.over, "S3.36: {number} comes to wire {wire} after the broker's last word");
        let next = self.owed.pop_front();
        assert_eq!(next, Some(number), "S3.36: wire {wire} got {number}, and this was its next event");
        self.said.push(Said::Event(number));
    }

    /// Events are left out, here.
    fn misses(&mut self, wire: usize, count: u64) {
        let missing = usize::try_from(count).expect("small");
        assert!((1..=self.owed.len()).contains(&missing), "S3.36: wire {wire} misses {count} of {}", self.owed.len());
        self.owed.drain(..missing);
        self.said.push(Said::Dropped(count));
    }

    fn answered(&mut self, seq: u32, answer: Result<&AdminAnswer, Code>) {
        if let Some(expected) = self.calls.remove(&seq) {
            expected.judge(answer, body::number);
        }
    }
}
