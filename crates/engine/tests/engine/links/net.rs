//! Several engines and the links between them: what one says over a link is what the other hears, in order, when it is
//! let through.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use turno_engine::{
    BroadcastAnswer, CallerMessage, Deliver, DiskEffect, Effect, Engine, Event, Input, LinkEffect, LinkMessage,
    NativeEffect, Neighbour, Outgoing, PeerEffect, Persist, RemoteMessage, RetryDelay, Settings, WorkerMessage,
};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::link::BrokerId;
use turno_proto::model::{BroadcastEnd, Code, ConnId, Delivery, Mono, Payload, Slots};

use crate::seen::{body, conn_of};

/// Somebody at one of the brokers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) broker: usize,
    pub(crate) conn: ConnId,
}

/// A delivery at a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlaceholderValues {
    pub(crate) worker: Place,
    pub(crate) delivery: Delivery,
    pub(crate) attempt: u16,
    pub(crate) text: String,
}

/// One end of a link says this, and the other has not heard it.
#[derive(Debug)]
struct Wire {
    from: Place,
    to: Place,
    on_its_way: VecDeque<Effect>,
}

pub(crate) struct Net {
    pub(crate) now: Mono,
    pub(crate) engines: Vec<Engine>,
    wires: Vec<Wire>,
    /// Brokers that dialled: the connection, until both ends are linked.
    greeting: BTreeMap<Place, (u32, usize)>,
    conns: u32,
    seqs: u32,
    /// What workers have and did not settle, in the order they got it.
    pub(crate) given: Vec<PlaceholderValues>,
    /// What everyone else heard.
    pub(crate) heard: Vec<(Place, Effect)>,
    /// Events that somebody at a broker got.
    pub(crate) events: Vec<(usize, Arc<Event>, Vec<ConnId>)>,
    /// Events that crossed a link.
    pub(crate) event_crossings: usize,
    /// What brokers with a store want written down.
    pub(crate) persisted: Vec<(usize, Persist)>,
    /// Messages that crossed a link: from, to, text, brokers on the way.
    pub(crate) crossed: Vec<(usize, usize, String, usize)>,
}

pub(crate) fn text_of(payload: &Payload) -> String {
    String::from_utf8_lossy(&payload.bytes).into_owned()
}

impl Net {
    /// Brokers without links.
    pub(crate) fn new(count: usize) -> Self {
        Self::with(count, &Settings::default())
    }

    /// The same with settings that all of them have.
    pub(crate) fn with(count: usize, all: &Settings) -> Self {
        let now = Mono::ZERO;
        let settings = |at: usize| Settings {
            name: format!("b{at}"),
            run: 100 + at as u64,
            // Waits have tests of their own.
            retry_delay: RetryDelay::NONE,
            ..all.clone()
        };
        Self {
            now,
            engines: (0..count).map(|at| Engine::new(settings(at), now)).collect(),
            wires: Vec::new(),
            greeting: BTreeMap::new(),
            conns: 0,
            seqs: 0,
            given: Vec::new(),
            heard: Vec::new(),
            events: Vec::new(),
            event_crossings: 0,
            persisted: Vec::new(),
            crossed: Vec::new(),
        }
    }

    pub(crate) fn id(at: usize) -> BrokerId {
        BrokerId::new(100 + at as u64)
    }

    /// Two brokers that have greeted each other; the first dialled.
    pub(crate) fn link(&mut self, from: usize, to: usize) {
        let (one, other) = (self.place(from), self.place(to));
        self.wires.push(Wire { from: one, to: other, on_its_way: VecDeque::new() });
        self.wires.push(Wire { from: other, to: one, on_its_way: VecDeque::new() });
        self.hear_linked(one, to, None);
        self.hear_linked(other, from, None);
    }

    fn hear_linked(&mut self, place: Place, far: usize, target: Option<u32>) {
        let (name, address) = (format!("b{far}"), "127.0.0.1:1".to_owned());
        let neighbour = Neighbour { broker: Self::id(far), name, address, payload_max: 1_000 };
        self.put(place.broker, Input::Linked { conn: place.conn, target, neighbour });
    }

    pub(crate) fn place(&mut self, broker: usize) -> Place {
        self.conns += 1;
        Place { broker, conn: ConnId { index: self.conns, generation: 0 } }
    }

    pub(crate) fn seq(&mut self) -> u32 {
        self.seqs += 1;
        self.seqs
    }

    /// Somebody connects and opens a queue under handle 0.
    pub(crate) fn client(&mut self, broker: usize, queue: &str) -> Place {
        let place = self.place(broker);
        let conn = place.conn;
        self.put(broker, Input::Connected { conn, name: "peer".into(), address: "127.0.0.1:2".into() });
        self.put(broker, Input::Ready { conn });
        let seq = self.seq();
        self.put(broker, Input::Open { conn, seq, handle: 0, queue: queue.parse().expect("a name") });
        place
    }

    pub(crate) fn worker(&mut self, broker: usize, queue: &str, slots: u32) -> Place {
        let place = self.client(broker, queue);
        let (conn, seq) = (place.conn, self.seq());
        self.put(broker, Input::Register { conn, seq, slots: Slots::Limited(slots), name: format!("w{broker}") });
        self.put(broker, Input::Consume { conn, seq, handle: 0, exclusive: false });
        place
    }

    /// One input, and what follows from it is on its way.
    pub(crate) fn put(&mut self, broker: usize, input: Input) {
        let mut said = Vec::new();
        self.engines[broker].handle(self.now, input, &mut said);
        self.engines[broker].sanity_check();
        for effect in said {
            self.note(broker, effect);
        }
    }

    fn note(&mut self, broker: usize, effect: Effect) {
        if let Effect::Peer(PeerEffect::Dial { target, address }) = effect {
            return self.dial(broker, target, &address);
        }
        if let Effect::Peer(PeerEffect::Event { event, listeners }) = effect {
            let conns = listeners.into_iter().map(|listener| listener.conn).collect();
            return self.events.push((broker, event, conns));
        }
        if let Effect::Disk(DiskEffect::Persist { op, .. }) = effect {
            return self.persisted.push((broker, op));
        }
        let Some(conn) = conn_of(&effect) else { return };
        let place = Place { broker, conn };
        if let Some(&(target, to)) = self.greeting.get(&place) {
            match effect {
                Effect::Peer(PeerEffect::Link { effect: LinkEffect::Prove, .. }) => {
                    self.greeting.remove(&place);
                    let other = self.place(to);
                    self.wires.push(Wire { from: place, to: other, on_its_way: VecDeque::new() });
                    self.wires.push(Wire { from: other, to: place, on_its_way: VecDeque::new() });
                    self.hear_linked(place, to, Some(target));
                    self.hear_linked(other, broker, None);
                }
                Effect::Peer(PeerEffect::Link { effect: LinkEffect::Unlink { .. }, .. }) => {
                    self.greeting.remove(&place);
                }
                other => panic!("{other:?} in a greeting"),
            }
            return;
        }
        if let Effect::Peer(PeerEffect::Link { effect: LinkEffect::Unlink { .. }, .. }) = effect {
            return self.cut(place);
        }
        if let Some(wire) = self.wires.iter_mut().find(|wire| wire.from == place) {
            return wire.on_its_way.push_back(effect);
        }
        match effect {
            Effect::Peer(PeerEffect::Deliver(Deliver { delivery, attempt, payload, .. })) => {
                self.given.push(PlaceholderValues { worker: place, delivery, attempt, text: text_of(&payload) });
            }
            other => self.heard.push((place, other)),
        }
    }

    fn dial(&mut self, broker: usize, target: u32, address: &str) {
        let to = address.strip_prefix('b').and_then(|rest| rest.split(':').next()?.parse::<usize>().ok());
        match to.filter(|to| *to < self.engines.len()) {
            Some(to) => {
                let place = self.place(broker);
                self.greeting.insert(place, (target, to));
                self.put(broker, Input::Greeted { conn: place.conn, target, broker: Self::id(to) });
            }
            None => self.put(broker, Input::DialFailed { target, code: Code::LinkDown }),
        }
    }

    /// The link whose end that is breaks; what was on its way is lost. Each end is told.
    fn cut(&mut self, place: Place) {
        let ends: Vec<Place> =
            self.wires.iter().filter(|wire| wire.from == place || wire.to == place).map(|wire| wire.from).collect();
        self.wires.retain(|wire| !ends.contains(&wire.from));
        for end in ends {
            self.put(end.broker, Input::Disconnected { conn: end.conn });
        }
    }

    /// The broadcast that is on its way to the second broker ends with that many consumers, as it reports.
    pub(crate) fn lie_about_consumers(&mut self, consumers: u32) {
        let wire = self.wires.iter_mut().find(|wire| wire.to.broker == 1).expect("there is a link");
        let is_broadcast = |effect: &Effect| matches!(effect, Effect::Peer(PeerEffect::Link { effect: LinkEffect::Message(message), .. }) if matches!(**message, LinkMessage::Broadcast(_)));
        let at = wire.on_its_way.iter().position(is_broadcast).expect("it is on its way");
        let (Some(Effect::Peer(PeerEffect::Link { effect: LinkEffect::Message(message), .. })), from) =
            (wire.on_its_way.remove(at), wire.from)
        else {
            return;
        };
        let LinkMessage::Broadcast(broadcast) = *message else { return };
        let end = Box::new(BroadcastEnd { consumers, answered: consumers, ..BroadcastEnd::default() });
        let message = RemoteMessage::Caller(CallerMessage::BroadcastEnd(end));
        self.put(from.broker, Input::Far { conn: from.conn, seq: broadcast.seq, message });
    }

    /// The link between two brokers breaks.
    pub(crate) fn unlink(&mut self, one: usize, other: usize) {
        let wire = self.wires.iter().find(|wire| wire.from.broker == one && wire.to.broker == other);
        let place = wire.expect("they have a link").from;
        self.cut(place);
    }

    /// The link between two brokers breaks, if there is one.
    pub(crate) fn unlink_any(&mut self, number: usize) -> Option<(usize, usize)> {
        let wire = self.wires.get(number % self.wires.len().max(1))?;
        let ends = (wire.from.broker, wire.to.broker);
        let place = wire.from;
        self.cut(place);
        Some(ends)
    }

    pub(crate) fn are_linked(&self, one: usize, other: usize) -> bool {
        self.wires.iter().any(|wire| wire.from.broker == one && wire.to.broker == other)
    }

    /// How many links there are.
    pub(crate) fn links(&self) -> usize {
        self.wires.len() / 2
    }

    /// The next message on one of the wires arrives.
    pub(crate) fn step(&mut self, number: usize) -> bool {
        let busy: Vec<usize> = (0..self.wires.len()).filter(|at| !self.wires[*at].on_its_way.is_empty()).collect();
        let Some(at) = busy.get(number % busy.len().max(1)) else { return false };
        let wire = &mut self.wires[*at];
        let (from, to) = (wire.from, wire.to);
        let effect = wire.on_its_way.pop_front().expect("it is busy");
        if let Effect::Peer(PeerEffect::Link { effect: LinkEffect::Forward(forward), .. }) = &effect {
            self.crossed.push((from.broker, to.broker, text_of(&forward.payload), forward.path.len()));
        }
        if let Effect::Peer(PeerEffect::Link { effect: LinkEffect::Message(message), .. }) = &effect {
            self.event_crossings += usize::from(matches!(**message, LinkMessage::Event(_)));
        }
        if let Some(input) = heard_as(to.conn, effect) {
            self.put(to.broker, input);
        }
        true
    }

    /// Everything that is said arrives, and whatever is due within that time happens.
    pub(crate) fn settle_for(&mut self, millis: u64) {
        let until = self.now.plus_millis(millis);
        for _ in 0..1_000_000 {
            if self.step(0) {
                continue;
            }
            let due = self.engines.iter().filter_map(Engine::next_deadline).min();
            let Some(due) = due.filter(|due| *due <= until) else {
                self.now = until;
                return;
            };
            self.now = self.now.max(due);
            for at in 0..self.engines.len() {
                if self.engines[at].next_deadline().is_some_and(|at| at <= self.now) {
                    self.put(at, Input::Tick);
                }
            }
        }
        panic!("brokers that talk to each other for ever");
    }

    /// Time passes by itself; nothing arrives.
    pub(crate) fn tick(&mut self, millis: u64) {
        self.now = self.now.plus_millis(millis);
        for at in 0..self.engines.len() {
            self.put(at, Input::Tick);
        }
    }

    /// A moment: offers are told.
    pub(crate) fn settle(&mut self) {
        self.settle_for(50);
    }

    pub(crate) fn request(&mut self, caller: Place, text: &str) -> u32 {
        self.ask(caller, text, |_| {})
    }

    pub(crate) fn ask(&mut self, caller: Place, text: &str, change: impl FnOnce(&mut Outgoing)) -> u32 {
        let seq = self.seq();
        let mut message = Outgoing::new(seq, 0, body(text));
        change(&mut message);
        let conn = caller.conn;
        self.put(caller.broker, Input::Request { conn, message });
        seq
    }

    pub(crate) fn send(&mut self, sender: Place, text: &str, change: impl FnOnce(&mut Outgoing)) -> u32 {
        let seq = self.seq();
        let mut message = Outgoing::new(seq, 0, body(text));
        change(&mut message);
        self.put(sender.broker, Input::Send { conn: sender.conn, message });
        seq
    }

    /// Takes the delivery of that text from its holder.
    pub(crate) fn take(&mut self, text: &str) -> PlaceholderValues {
        let at = self.given.iter().position(|given| given.text == text);
        self.given.remove(at.unwrap_or_else(|| panic!("nobody has {text}: {:?}", self.given)))
    }

    pub(crate) fn reply(&mut self, given: &PlaceholderValues, text: &str, more: bool) {
        let (conn, delivery) = (given.worker.conn, given.delivery);
        self.put(
            given.worker.broker,
            Input::worker(conn, delivery, WorkerMessage::Reply { more, payload: body(text) }),
        );
    }

    pub(crate) fn ack(&mut self, given: &PlaceholderValues) {
        let (conn, delivery) = (given.worker.conn, given.delivery);
        self.put(given.worker.broker, Input::worker(conn, delivery, WorkerMessage::Ack));
    }

    /// What somebody heard since the last time.
    pub(crate) fn heard_by(&mut self, place: Place) -> Vec<Effect> {
        let heard = std::mem::take(&mut self.heard);
        let (its, others) = heard.into_iter().partition(|(at, _)| *at == place);
        self.heard = others;
        let its: Vec<(Place, Effect)> = its;
        its.into_iter()
            .map(|(_, effect)| effect)
            .filter(|effect| !matches!(effect, Effect::Peer(PeerEffect::Answer { result: Ok(()), .. })))
            .collect()
    }

    pub(crate) fn call(&mut self, broker: usize, call: AdminCall) -> Result<AdminAnswer, Code> {
        let asker = self.client(broker, "admin");
        let seq = self.seq();
        self.put(broker, Input::Admin { conn: asker.conn, seq, call });
        let heard = self.heard_by(asker);
        self.put(broker, Input::Disconnected { conn: asker.conn });
        match heard.into_iter().next() {
            Some(Effect::Peer(PeerEffect::Native { effect: NativeEffect::Admin { answer, .. }, .. })) => Ok(*answer),
            Some(Effect::Peer(PeerEffect::Answer { result: Err(code), .. })) => Err(code),
            other => panic!("{other:?} is no answer"),
        }
    }
}

/// What the other end of a link hears of an effect.
fn heard_as(conn: ConnId, effect: Effect) -> Option<Input> {
    let far = |seq, message| Some(Input::Far { conn, seq, message });
    match effect {
        Effect::Peer(PeerEffect::Link { effect: LinkEffect::Forward(forward), .. }) => {
            Some(Input::Forwarded { conn, forward })
        }
        Effect::Peer(PeerEffect::Link { effect: LinkEffect::Open { handle, queue }, .. }) => {
            Some(Input::Open { conn, seq: 0, handle, queue })
        }
        Effect::Peer(PeerEffect::Link { effect: LinkEffect::Message(message), .. }) => {
            Some(Input::Link { conn, message })
        }
        Effect::Peer(PeerEffect::Stop { delivery, reason, .. }) => {
            Some(Input::FarCancel { conn, seq: delivery.stamp, reason })
        }
        Effect::Peer(PeerEffect::Closing { .. }) => Some(Input::PeerClosing { conn }),
        Effect::Peer(PeerEffect::Link { effect: LinkEffect::Ack { seq }, .. }) => far(seq, RemoteMessage::Ack),
        Effect::Peer(PeerEffect::Link { effect: LinkEffect::Fail { seq, again, payload }, .. }) => {
            far(seq, RemoteMessage::Fail { again, payload })
        }
        Effect::Peer(PeerEffect::Caller { seq, message: CallerMessage::Reply { more, payload }, .. }) => {
            far(seq, RemoteMessage::Caller(CallerMessage::Reply { more, payload }))
        }
        Effect::Peer(PeerEffect::Caller { seq, message: CallerMessage::Progress { payload }, .. }) => {
            far(seq, RemoteMessage::Caller(CallerMessage::Progress { payload }))
        }
        Effect::Peer(PeerEffect::Caller { seq, message: CallerMessage::Delivered, .. }) => {
            far(seq, RemoteMessage::Caller(CallerMessage::Delivered))
        }
        Effect::Peer(PeerEffect::Caller { seq, message: CallerMessage::Undelivered { code, payload }, .. }) => {
            far(seq, RemoteMessage::Caller(CallerMessage::Undelivered { code, payload }))
        }
        Effect::Peer(PeerEffect::Caller {
            seq,
            message: CallerMessage::BroadcastAnswer(BroadcastAnswer { worker, name, more, failed, payload }),
            ..
        }) => far(
            seq,
            RemoteMessage::Caller(CallerMessage::BroadcastAnswer(BroadcastAnswer {
                worker,
                name,
                more,
                failed,
                payload,
            })),
        ),
        Effect::Peer(PeerEffect::Caller { seq, message: CallerMessage::BroadcastEnd(end), .. }) => {
            far(seq, RemoteMessage::Caller(CallerMessage::BroadcastEnd(end)))
        }
        Effect::Peer(PeerEffect::Answer { result: Ok(()), .. })
        | Effect::Peer(PeerEffect::Answer { result: Err(_), .. }) => None,
        other => panic!("{other:?} over a link"),
    }
}
