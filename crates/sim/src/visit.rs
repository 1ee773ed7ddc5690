//! Two visitors at the end, which send frames by hand that clients with a core rarely send. When they are gone, nothing
//! of them is left.

use turno_broker::connections::{ListenerKind, Turn};
use turno_proto::model::{Broadcast, Closing, ClosingReason, ConnId, Cost, Delivery, Outgoing, Slots};
use turno_proto::native::{Connect, FencedFrame, Frame, Raw, RawEvent, Register, VERSION, decode, encode, split};

use crate::world::World;

/// Milliseconds in which a broker without anything else to do answers. No lease is as short.
const ANSWER_MS: u64 = 20;
/// Milliseconds in which it has looked round.
const SWEEP_MS: u64 = 500;
/// So long that no visitor has to show that it is alive.
const HEARTBEAT_MS: u32 = 30_000;
const QUEUE: &[u8] = b"visit";
const ALONE: &[u8] = b"visit.alone";
const TOPIC: &[u8] = b"visit";
/// Events that are published for one that does not read: many more than wait for it.
const EVENTS: u32 = 200;

/// Something that a visitor heard.
#[derive(Debug, PartialEq, Eq)]
enum VisitorInput {
    Config {
        heartbeat_ms: u32,
    },
    Work {
        delivery: Delivery,
        is_broadcast: bool,
    },
    Reply,
    /// The end of a broadcast, and how many it went to.
    End {
        consumers: u32,
    },
    /// The queue is its own.
    Alone,
    /// The queue is another's.
    Full,
    Available,
    /// That many events, delivered or reported as missing.
    Events(u32),
    Other,
}

impl VisitorInput {
    fn of(frame: &Frame<'_>) -> Self {
        match frame {
            Frame::Config { config, .. } => Self::Config { heartbeat_ms: config.heartbeat_ms },
            Frame::Deliver(deliver) => {
                Self::Work { delivery: deliver.delivery, is_broadcast: deliver.cost == Cost::Broadcast }
            }
            Frame::Reply { .. } => Self::Reply,
            Frame::BroadcastEnd { end, .. } => Self::End { consumers: end.consumers },
            Frame::Fenced { frame: FencedFrame::Ok { .. }, .. } => Self::Alone,
            Frame::QueueFull { .. } => Self::Full,
            Frame::QueueAvailable { .. } => Self::Available,
            Frame::Event(_) => Self::Events(1),
            Frame::EventsDropped { count } => Self::Events(*count),
            _ => Self::Other,
        }
    }
}

/// A connection without a wire.
#[derive(Clone, Copy, Debug)]
struct Visitor {
    broker: usize,
    conn: ConnId,
}

const fn raw(bytes: &[u8]) -> Raw<'_> {
    Raw { headers: false, bytes }
}

const fn consume(exclusive: bool) -> Frame<'static> {
    Frame::Consume { seq: 20, handle: 0, exclusive }
}

fn register() -> Frame<'static> {
    Frame::Register { seq: 21, register: Register::new(Slots::Limited(1), "visitor") }
}

const fn ask() -> Frame<'static> {
    Frame::Request(Outgoing::new(22, 0, raw(b"?")))
}

const fn shout() -> Frame<'static> {
    Frame::Broadcast(Broadcast {
        seq: 23,
        handle: 0,
        deadline_ms: None,
        no_reply: false,
        skip_self: false,
        payload: raw(b"!"),
    })
}

impl World {
    /// Each of these in a broker that has been through a storm.
    pub(crate) fn receive_visitors(&mut self) {
        if !self.links.is_empty() {
            return;
        }
        let broker = self.rng.index(self.brokers.len());
        let queues = self.queues_at(broker);
        self.visit_and_register_again(broker);
        self.visit_and_line_up(broker);
        self.visit_and_read_nothing(broker);
        self.pass(ANSWER_MS);
        assert_eq!(self.queues_at(broker), queues, "I21: visitors came and went, and a queue of theirs is left");
    }

    fn queues_at(&self, broker: usize) -> u64 {
        let connections = self.brokers[broker].connections.as_ref().expect("I21: a broker did not come back");
        connections.engine().status().queues
    }

    fn visitor(&mut self, broker: usize, queue: &[u8]) -> Visitor {
        let shown = self.clock_of(broker);
        let connections = self.brokers[broker].connections.as_mut().expect("I21: a broker did not come back");
        let conn = connections.accept(shown, "visitor".to_owned(), ListenerKind::Native).expect("a broker with room");
        let visitor = Visitor { broker, conn };
        let connect = Connect {
            version: VERSION,
            name: "visitor".to_owned(),
            program: String::new(),
            heartbeat_ms: HEARTBEAT_MS,
        };
        // The second OPEN says nothing new.
        let open = || Frame::Open { seq: 3, handle: 0, name: queue };
        let greeting = [Frame::Connect { seq: 1, connect }, Frame::Ping { seq: 2 }, open(), open()];
        let heard = self.say(visitor, &greeting);
        let config = VisitorInput::Config { heartbeat_ms: HEARTBEAT_MS };
        assert!(heard.contains(&config), "S1.6: CONFIG says the heartbeat that the peer asked for: {heard:?}");
        visitor
    }

    /// Says something; returns what it hears within some time.
    fn say(&mut self, visitor: Visitor, frames: &[Frame<'_>]) -> Vec<VisitorInput> {
        self.say_and_not_read(visitor, frames);
        self.pass(ANSWER_MS);
        self.heard_by(visitor)
    }

    fn say_and_not_read(&mut self, Visitor { broker, conn }: Visitor, frames: &[Frame<'_>]) {
        let mut bytes = Vec::new();
        frames.iter().for_each(|frame| encode(frame, &mut bytes));
        let shown = self.clock_of(broker);
        if let Some(connections) = &mut self.brokers[broker].connections {
            let mut turn = connections.take(shown, conn, &bytes);
            while turn == Turn::Cut {
                turn = connections.go_on(shown, conn);
            }
        }
        self.pump_broker(broker);
    }

    /// Reads all there is.
    fn heard_by(&mut self, Visitor { broker, conn }: Visitor) -> Vec<VisitorInput> {
        let shown = self.clock_of(broker);
        let Some(connections) = &mut self.brokers[broker].connections else { return Vec::new() };
        let mut bytes = Vec::new();
        while !connections.unwritten(conn).is_empty() {
            bytes.extend_from_slice(connections.unwritten(conn));
            connections.wrote(shown, conn, connections.unwritten(conn).len());
        }
        let (mut heard, mut used) = (Vec::new(), 0);
        while let Ok(Some(piece)) = split(&bytes[used..], usize::MAX) {
            used += piece.used;
            let frame = decode(&piece.header, piece.rest).expect("S1.6: a broker says what can be understood");
            heard.push(VisitorInput::of(&frame));
        }
        assert_eq!(used, bytes.len(), "S1.6: a broker says whole frames");
        self.pump_broker(broker);
        heard
    }

    fn goes(&mut self, Visitor { broker, conn }: Visitor) {
        let shown = self.clock_of(broker);
        if let Some(connections) = &mut self.brokers[broker].connections {
            connections.hang_up(shown, conn);
        }
        self.pump_broker(broker);
    }

    /// Answers the only thing that it was given.
    fn answer(&mut self, visitor: Visitor, heard: &[VisitorInput], is_broadcast: bool) {
        let work = heard.iter().find_map(|heard| match heard {
            VisitorInput::Work { delivery, is_broadcast: it_is } if *it_is == is_broadcast => Some(*delivery),
            _ => None,
        });
        let Delivery { index, stamp } = work.unwrap_or_else(|| panic!("I21: a consumer gets no work: {heard:?}"));
        self.say(visitor, &[Frame::Reply { seq: stamp, word: index, more: false, raw: raw(b".") }]);
    }

    /// S2.13, S0.12: after CLOSING nothing comes, neither to it alone nor to all, until it registers again.
    fn visit_and_register_again(&mut self, broker: usize) {
        let (guest, asker) = (self.visitor(broker, QUEUE), self.visitor(broker, QUEUE));
        self.say(guest, &[register(), consume(false)]);
        for frame in [ask(), shout()] {
            let is_broadcast = matches!(frame, Frame::Broadcast(_));
            self.say(asker, &[frame]);
            let heard = self.heard_by(guest);
            self.answer(guest, &heard, is_broadcast);
            let end = if is_broadcast { VisitorInput::End { consumers: 1 } } else { VisitorInput::Reply };
            let heard = self.heard_by(asker);
            assert!(heard.contains(&end), "I12: an answer does not arrive: {heard:?}");
        }
        let closing = Closing { reason: ClosingReason::Shutdown, within_ms: 0 };
        self.say(guest, &[Frame::Closing { closing }]);
        let heard = self.say(asker, &[shout(), ask()]);
        assert!(
            heard.contains(&VisitorInput::End { consumers: 0 }),
            "S2.13: a broadcast to nobody has not ended: {heard:?}"
        );
        let heard = self.heard_by(guest);
        assert!(
            !heard.iter().any(|heard| matches!(heard, VisitorInput::Work { .. })),
            "S2.13: it leaves, and gets {heard:?}"
        );
        let heard = self.say(guest, &[register()]);
        self.answer(guest, &heard, false);
        let heard = self.heard_by(asker);
        assert!(heard.contains(&VisitorInput::Reply), "I12: an answer does not arrive: {heard:?}");
        self.goes(guest);
        self.goes(asker);
    }

    /// S2.24: a queue that is free again is kept for the first in line.
    fn visit_and_line_up(&mut self, broker: usize) {
        let [first, second, third] = [(); 3].map(|()| self.visitor(broker, ALONE));
        let heard = self.say(first, &[register(), consume(true)]);
        assert!(heard.contains(&VisitorInput::Alone), "S2.22: a queue is nobody's, and is refused: {heard:?}");
        let heard = self.say(second, &[register(), consume(true)]);
        assert!(heard.contains(&VisitorInput::Full), "S2.22: a queue is given to two: {heard:?}");
        self.say(second, &[Frame::QueueAvailableNotify { seq: 24, handle: 0 }]);
        self.goes(first);
        self.pass(ANSWER_MS);
        let heard = self.heard_by(second);
        assert!(
            heard.contains(&VisitorInput::Available),
            "S2.22: a queue is free, and the first in line is not told: {heard:?}"
        );
        let heard = self.say(third, &[register(), consume(true)]);
        assert!(
            heard.contains(&VisitorInput::Full),
            "S2.24: a newcomer is given a queue that another was told is free: {heard:?}"
        );
        let heard = self.say(second, &[consume(true)]);
        assert!(
            heard.contains(&VisitorInput::Alone),
            "S2.24: a queue is free, and the first in line is refused: {heard:?}"
        );
        self.goes(second);
        self.goes(third);
    }

    /// S3.36: a subscriber that would rather miss events than be closed is not closed, and is told how many it missed; also if it wanted it
    /// the other way before.
    fn visit_and_read_nothing(&mut self, broker: usize) {
        let (listener, speaker) = (self.visitor(broker, QUEUE), self.visitor(broker, QUEUE));
        let subscribe = |or_close| Frame::Subscribe { seq: 25, filter: "visit".parse().expect("a pattern"), or_close };
        self.say(listener, &[subscribe(true), subscribe(false)]);
        for _ in 0..EVENTS {
            let event = RawEvent { topic: TOPIC, payload: raw(b"....") };
            self.say_and_not_read(speaker, &[Frame::Publish { seq: 26, confirm: false, event }]);
        }
        self.pass(SWEEP_MS);
        let mut told = 0;
        while let heard = self.heard_by(listener)
            && !heard.is_empty()
        {
            told +=
                heard.iter().map(|heard| if let VisitorInput::Events(count) = heard { *count } else { 0 }).sum::<u32>();
            self.pass(SWEEP_MS);
        }
        assert_eq!(told, EVENTS, "S3.36: one that may miss events is told of all of them");
        self.goes(listener);
        self.goes(speaker);
    }
}
