//! Events, judged by the frames between brokers and subscribers.
//!
//! A broker reads one frame after the other: with each PUBLISH it is known who must get it, after what. So it is known of
//! every EVENT whether it is the next, and of every EVENTS_DROPPED how many it stands for (S3.33, S3.36). Subscribers that
//! fetch must get what waits, in order (S3.34).

use std::collections::{BTreeMap, VecDeque};

use turno_oracle::{Expected, Listeners};
use turno_proto::model::admin::AdminAnswer;
use turno_proto::model::{Code, Filter, Topic};
use turno_proto::native::{Frame, Raw};

use crate::body;
use crate::frames::arrive;

/// A frame of a broker to a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TopicOutput {
    Event(u64),
    Dropped(u64),
}

/// One connection, as far as it is listened to.
#[derive(Debug, Default)]
struct TopicObserver {
    broker: usize,
    /// The beginning of a frame that the broker has not read as a whole.
    read: Vec<u8>,
    /// The beginning of a frame that the broker has not written as a whole.
    written: Vec<u8>,
    /// Events that are for it and were not said yet.
    expected: VecDeque<u64>,
    said: Vec<TopicOutput>,
    /// How much of that its peer has read, and the beginning of a frame that it has not read as a whole.
    arrived: usize,
    arriving: Vec<u8>,
    /// Expected answers of open calls.
    calls: BTreeMap<u32, Expected>,
    /// The broker has closed it.
    over: bool,
    /// A ZeroMQ peer: it is not told of what it misses, and what it says is read elsewhere.
    silent: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Topics {
    /// Published events with their topics.
    published: BTreeMap<u64, Topic>,
    /// Events that a broker has read, with that broker.
    read: BTreeMap<u64, usize>,
    ears: BTreeMap<usize, TopicObserver>,
    /// By broker.
    listeners: BTreeMap<usize, Listeners<usize>>,
    /// The events that brokers have delivered.
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
        self.ears.insert(wire, TopicObserver { broker, ..TopicObserver::default() });
    }

    /// The same of a ZeroMQ peer.
    pub(crate) fn listen_silently(&mut self, wire: usize, broker: usize) {
        self.ears.insert(wire, TopicObserver { broker, silent: true, ..TopicObserver::default() });
    }

    /// A broker reads that a ZeroMQ peer wants something.
    pub(crate) fn subscribes(&mut self, wire: usize, filter: Filter) {
        if let Some(ear) = self.ears.get(&wire).filter(|ear| !ear.over) {
            self.listeners.entry(ear.broker).or_default().subscribe(wire, filter);
        }
    }

    /// And that it wants it no more.
    pub(crate) fn unsubscribes(&mut self, wire: usize, filter: &Filter) {
        if let Some(ear) = self.ears.get(&wire) {
            self.listeners.entry(ear.broker).or_default().unsubscribe(wire, filter);
        }
    }

    /// A broker says an event to a ZeroMQ peer: one that it is owed, and none that came before the last.
    pub(crate) fn says_event(&mut self, wire: usize, number: u64, topic: &[u8]) {
        let is_about = self.topic_of(number).as_str().as_bytes();
        assert_eq!(is_about, topic, "S3.33: {number} is about another topic than was published");
        let Some(ear) = self.ears.get_mut(&wire) else { return };
        self.events += 1;
        while let Some(next) = ear.expected.pop_front() {
            if next == number {
                return;
            }
            self.dropped += 1;
        }
        panic!("S3.36: wire {wire} gets {number}, which it did not want, or has had");
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
        let Some(ear) = self.ears.get_mut(&wire).filter(|ear| !ear.over && !ear.silent) else { return };
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
                let number = body::number(event.payload).expect("S3.33: a client published what it was given");
                self.publishes_at(broker, number, event.topic);
            }
            Frame::AdminCall { seq, call } => ear.calls.extend(listeners.call(&call).map(|expected| (seq, expected))),
            _ => {}
        }
    }

    /// Everyone at that broker whose filters match must get the event, once.
    pub(crate) fn publishes_at(&mut self, broker: usize, number: u64, topic: &[u8]) {
        assert_eq!(self.topic_of(number).as_str().as_bytes(), topic, "S3.33: {number} is about another topic");
        let before = self.read.insert(number, broker);
        assert_eq!(before, None, "S3.36: a client wrote {number} twice");
        for wire in self.listeners.entry(broker).or_default().publish(&self.published[&number], number) {
            self.ears.get_mut(&wire).expect("who listens was listened to").expected.push_back(number);
        }
    }

    /// A broker wrote these bytes.
    pub(crate) fn broker_writes(&mut self, wire: usize, bytes: &[u8]) {
        let Self { ears, published, events, dropped, .. } = self;
        let Some(ear) = ears.get_mut(&wire).filter(|ear| !ear.silent) else { return };
        let mut partial = std::mem::take(&mut ear.written);
        arrive(&mut partial, bytes, |frame| match frame {
            Frame::Event(event) => {
                let number = body::number(event.payload).expect("S3.33: an event was changed on its way");
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

    /// Frames of a broker on that connection that its peer has read, from there on.
    pub(crate) fn said(&self, wire: usize, from: usize) -> &[TopicOutput] {
        self.ears.get(&wire).map_or(&[], |ear| &ear.said[from..ear.arrived])
    }

    /// How many events must still reach that listener.
    pub(crate) fn expected(&self, wire: usize) -> usize {
        self.ears.get(&wire).filter(|ear| !ear.silent).map_or(0, |ear| ear.expected.len())
    }
}

impl TopicObserver {
    fn hang_up(&mut self) {
        self.over = true;
        self.expected.clear();
    }

    /// An event comes to it: the next that must reach it.
    fn gets(&mut self, wire: usize, number: u64) {
        assert!(!self.over, "S3.36: {number} comes to wire {wire} after the broker's last frame");
        let next = self.expected.pop_front();
        assert_eq!(next, Some(number), "S3.36: wire {wire} got {number}, and this was its next event");
        self.said.push(TopicOutput::Event(number));
    }

    /// Events are left out, here.
    fn misses(&mut self, wire: usize, count: u64) {
        let missing = usize::try_from(count).expect("small");
        assert!(
            (1..=self.expected.len()).contains(&missing),
            "S3.36: wire {wire} misses {count} of {}",
            self.expected.len()
        );
        self.expected.drain(..missing);
        self.said.push(TopicOutput::Dropped(count));
    }

    fn answered(&mut self, seq: u32, answer: Result<&AdminAnswer, Code>) {
        if let Some(expected) = self.calls.remove(&seq) {
            expected.judge(answer, |event| body::number(Raw { headers: event.headers, bytes: &event.payload }));
        }
    }
}
