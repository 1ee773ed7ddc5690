//! Several nodes, the wires between them and one clock. What one says arrives some milliseconds later, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use turno_engine::Event;
use turno_engine::ring::{
    RingEffect, RingHostEffect, RingInput, RingMessage, RingNews, RingNode, RingPeerEffect, RingSettings, RingTimers,
    TRANSITIONS,
};
use turno_proto::model::ring::view::RingView;
use turno_proto::model::ring::{Member, Origin, RingState, Sid};
use turno_proto::model::{Code, ConnId, Mono};

use crate::seen::body;

/// Milliseconds that everything takes.
const WAY_MS: u64 = 5;

type Number = u16;

/// One end of a wire: whose, and its connection.
type End = (Number, ConnId);

#[derive(Debug)]
enum Happening {
    Input(Number, u64, RingInput),
    /// Somebody is dialled: by whom, under which number, where.
    DialArrives(Number, u64, u32, Number),
}

pub(crate) struct Net {
    pub(crate) now: Mono,
    nodes: BTreeMap<Number, RingNode>,
    /// Which life of each is running, so that nothing of an earlier one reaches it.
    lives: BTreeMap<Number, u64>,
    agenda: BTreeMap<(Mono, u64), Happening>,
    ticks: u64,
    wires: BTreeMap<End, End>,
    conns: u32,
    /// From one to another nothing arrives.
    cut: BTreeSet<(Number, Number)>,
    forgotten: BTreeSet<(Number, u64, u32)>,
    /// What was delivered where: origin's text.
    pub(crate) got: BTreeMap<Number, Vec<String>>,
    pub(crate) news: Vec<(Number, RingNews)>,
    pub(crate) failed: Vec<(Number, Code)>,
    pub(crate) left: Vec<Number>,
    pub(crate) stopped: Vec<Number>,
    pub(crate) slowed: BTreeSet<Number>,
    pub(crate) said: Vec<(Number, Number, RingMessage)>,
    pub(crate) settings: fn(&mut RingSettings),
}

fn address(number: Number) -> String {
    format!("host:{number}")
}

impl Net {
    pub(crate) fn new() -> Self {
        Self {
            now: Mono::from_millis(1_000_000),
            nodes: BTreeMap::new(),
            lives: BTreeMap::new(),
            agenda: BTreeMap::new(),
            ticks: 0,
            wires: BTreeMap::new(),
            conns: 0,
            cut: BTreeSet::new(),
            forgotten: BTreeSet::new(),
            got: BTreeMap::new(),
            news: Vec::new(),
            failed: Vec::new(),
            left: Vec::new(),
            stopped: Vec::new(),
            slowed: BTreeSet::new(),
            said: Vec::new(),
            settings: |_| {},
        }
    }

    /// A ring of these, in that order.
    pub(crate) fn ring(numbers: &[Number]) -> Self {
        Self::ring_with(numbers, |_| {})
    }

    /// The same, set up in that way.
    pub(crate) fn ring_with(numbers: &[Number], settings: fn(&mut RingSettings)) -> Self {
        let mut net = Self { settings, ..Self::new() };
        net.start(numbers[0], None);
        for number in &numbers[1..] {
            net.start(*number, Some(numbers[0]));
            net.run(500);
        }
        net.run(2_000);
        assert_eq!(net.circle(numbers[0]), numbers, "a ring to begin with");
        net
    }

    pub(crate) fn start(&mut self, number: Number, next: Option<Number>) {
        self.start_at(number, number, next);
    }

    /// A broker with a number that need not be its place's.
    pub(crate) fn start_at(&mut self, place: Number, sid: u16, next: Option<Number>) {
        self.start_with(place, sid, self.now.as_millis(), next);
    }

    /// In a life that need not be the latest.
    pub(crate) fn start_with(&mut self, place: Number, sid: u16, incarnation: u64, next: Option<Number>) {
        let origin = Origin { sid: Sid::new(sid), incarnation };
        let me = Member { origin, address: address(place), native: String::new() };
        let mut settings = RingSettings::new(me, next.map(address));
        settings.timers = RingTimers::default();
        settings.has_secret = true;
        (self.settings)(&mut settings);
        *self.lives.entry(place).or_default() += 1;
        self.nodes.insert(place, RingNode::new(settings, self.now));
        self.put(place, RingInput::Tick);
    }

    /// It is gone at once; the others see that their connections end.
    pub(crate) fn kill(&mut self, number: Number) {
        self.nodes.remove(&number);
        let ends: Vec<End> = self.wires.keys().copied().filter(|(whose, _)| *whose == number).collect();
        for end in ends {
            if let Some((peer, conn)) = self.wires.remove(&end) {
                self.wires.remove(&(peer, conn));
                self.later(WAY_MS, Happening::Input(peer, self.life(peer), RingInput::Closed { conn }));
            }
        }
    }

    /// Nothing arrives any more from one to the other; both notice some time later that nothing comes.
    pub(crate) fn cut(&mut self, from: Number, to: Number) {
        self.cut.insert((from, to));
        let ends: Vec<(End, End)> = self.wires.iter().map(|(a, b)| (*a, *b)).collect();
        for (a, b) in ends.into_iter().filter(|(a, b)| (a.0, b.0) == (from, to)) {
            for (whose, conn) in [a, b] {
                self.later(3_000, Happening::Input(whose, self.life(whose), RingInput::Closed { conn }));
            }
            self.wires.remove(&a);
            self.wires.remove(&b);
        }
    }

    pub(crate) fn part(&mut self, one: &[Number], other: &[Number]) {
        for a in one {
            for b in other {
                self.cut(*a, *b);
                self.cut(*b, *a);
            }
        }
    }

    pub(crate) fn reconnect(&mut self) {
        self.cut.clear();
    }

    pub(crate) fn publish(&mut self, number: Number, text: &str) {
        let topic = "news".parse().expect("a topic");
        let event = Arc::new(Event { topic, payload: body(text) });
        self.put(number, RingInput::Publish { event });
    }

    pub(crate) fn put(&mut self, number: Number, input: RingInput) {
        let Some(node) = self.nodes.get_mut(&number) else { return };
        let mut effects = Vec::new();
        let before = node.state();
        node.handle(self.now, input, &mut effects);
        node.sanity_check();
        let after = node.state();
        let is_way = |(from, to, _): &(RingState, RingState, &str)| (*from, *to) == (before, after);
        assert!(before == after || TRANSITIONS.iter().any(is_way), "from {before:?} to {after:?}");
        for effect in effects {
            self.carry_out(number, effect);
        }
    }

    /// Somebody without a number asks that member for one.
    pub(crate) fn ask_sid(&mut self, number: Number) -> Option<u16> {
        let conn = self.new_conn();
        let node = self.nodes.get_mut(&number)?;
        let mut effects = Vec::new();
        node.handle(self.now, RingInput::Accepted { conn, peer: None }, &mut effects);
        node.handle(self.now, RingInput::Message { conn, message: RingMessage::AskSid }, &mut effects);
        effects.into_iter().find_map(|effect| match effect {
            RingEffect::Peer(RingPeerEffect::Say { message: RingMessage::FreeSid { sid }, .. }) => Some(sid.get()),
            _ => None,
        })
    }

    /// Somebody who is no broker of this net dials a member, claims to be that one, and sends these messages.
    pub(crate) fn strange(&mut self, to: Number, peer: Member, messages: Vec<RingMessage>) -> ConnId {
        let conn = self.new_conn();
        self.put(to, RingInput::Accepted { conn, peer: Some(peer) });
        for message in messages {
            self.put(to, RingInput::Message { conn, message });
        }
        conn
    }

    /// Says something to a member as if its predecessor had said it.
    pub(crate) fn slip(&mut self, to: Number, message: RingMessage) {
        let previous = self.view(to).previous.expect("a predecessor").get();
        let ends = self.wires.iter().filter(|((whose, _), (peer, _))| (*whose, *peer) == (to, previous));
        let conns: Vec<ConnId> = ends.map(|((_, conn), _)| *conn).collect();
        for conn in conns {
            self.put(to, RingInput::Message { conn, message: message.clone() });
        }
    }

    /// All connections from one to the other end; both see it.
    pub(crate) fn drop_link(&mut self, from: Number, to: Number) {
        let ends: Vec<(End, End)> = self.wires.iter().map(|(a, b)| (*a, *b)).collect();
        for (a, b) in ends.into_iter().filter(|(a, b)| (a.0, b.0) == (from, to)) {
            for (whose, conn) in [a, b] {
                self.later(WAY_MS, Happening::Input(whose, self.life(whose), RingInput::Closed { conn }));
            }
            self.wires.remove(&a);
            self.wires.remove(&b);
        }
    }

    fn carry_out(&mut self, from: Number, effect: RingEffect) {
        match effect {
            RingEffect::Peer(RingPeerEffect::Dial { target, address }) => {
                let to = address.rsplit(':').next().and_then(|number| number.parse().ok()).expect("a number");
                self.later(WAY_MS, Happening::DialArrives(from, self.life(from), target, to));
            }
            RingEffect::Peer(RingPeerEffect::Forget { target }) => {
                self.forgotten.insert((from, self.life(from), target));
            }
            RingEffect::Peer(RingPeerEffect::Say { conn, message }) => {
                if let Some((to, conn)) = self.wires.get(&(from, conn)).copied()
                    && !self.cut.contains(&(from, to))
                {
                    self.said.push((from, to, message.clone()));
                    self.later(WAY_MS, Happening::Input(to, self.life(to), RingInput::Message { conn, message }));
                }
            }
            RingEffect::Peer(RingPeerEffect::Close { conn, .. }) => {
                if let Some((to, there)) = self.wires.remove(&(from, conn)) {
                    self.wires.remove(&(to, there));
                    self.later(WAY_MS, Happening::Input(to, self.life(to), RingInput::Closed { conn: there }));
                }
            }
            RingEffect::Deliver { event } => {
                let text = String::from_utf8_lossy(&event.payload.bytes).into_owned();
                self.got.entry(from).or_default().push(text);
            }
            RingEffect::Peer(RingPeerEffect::Slow(true)) => drop(self.slowed.insert(from)),
            RingEffect::Peer(RingPeerEffect::Slow(false)) => drop(self.slowed.remove(&from)),
            RingEffect::Host(RingHostEffect::Tell(news)) => self.news.push((from, news)),
            RingEffect::Host(RingHostEffect::Failed(code)) => self.failed.push((from, code)),
            RingEffect::Host(RingHostEffect::Left) => self.left.push(from),
            RingEffect::Host(RingHostEffect::Stop) => self.stopped.push(from),
        }
    }

    fn life(&self, number: Number) -> u64 {
        self.lives.get(&number).copied().unwrap_or(0)
    }

    fn later(&mut self, millis: u64, happening: Happening) {
        self.ticks += 1;
        self.agenda.insert((self.now.plus_millis(millis), self.ticks), happening);
    }

    fn new_conn(&mut self) -> ConnId {
        self.conns += 1;
        ConnId { index: self.conns, generation: 1 }
    }

    fn dial_arrives(&mut self, from: Number, target: u32, to: Number) {
        let life = self.life(from);
        if self.forgotten.remove(&(from, life, target)) {
            return;
        }
        if self.cut.contains(&(from, to)) || self.cut.contains(&(to, from)) {
            // Nobody answers; the dialling broker gives up by its own clock.
            return;
        }
        let (Some(me), Some(peer)) = (self.nodes.get(&from), self.nodes.get(&to)) else {
            let input = RingInput::DialFailed { target, code: Code::RingDown };
            return self.later(WAY_MS, Happening::Input(from, life, input));
        };
        let (me, peer) = (me.me().clone(), peer.me().clone());
        let (here, there) = (self.new_conn(), self.new_conn());
        self.wires.insert((from, here), (to, there));
        self.wires.insert((to, there), (from, here));
        self.later(0, Happening::Input(to, self.life(to), RingInput::Accepted { conn: there, peer: Some(me) }));
        self.later(WAY_MS, Happening::Input(from, life, RingInput::Dialled { target, conn: here, peer }));
    }

    /// Lets so many milliseconds pass.
    pub(crate) fn run(&mut self, millis: u64) {
        let end = self.now.plus_millis(millis);
        loop {
            let due = self
                .nodes
                .iter()
                .filter_map(|(number, node)| Some((node.next_deadline()?.max(self.now), *number)))
                .min();
            let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
            match (due, next) {
                (Some((at, number)), next) if at <= end && next.is_none_or(|next| at < next) => {
                    let before = self.nodes[&number].next_deadline();
                    self.now = self.now.max(at);
                    self.put(number, RingInput::Tick);
                    let after = self.nodes[&number].next_deadline();
                    assert!(
                        after.is_none_or(|after| after > self.now),
                        "{number}: a tick at {before:?} led to {after:?}"
                    );
                }
                (_, Some(next)) if next <= end => {
                    let ((at, _), happening) = self.agenda.pop_first().expect("there is one");
                    self.now = self.now.max(at);
                    match happening {
                        Happening::Input(number, life, input) if self.life(number) == life => self.put(number, input),
                        Happening::DialArrives(from, life, target, to) if self.life(from) == life => {
                            self.dial_arrives(from, target, to)
                        }
                        _ => {}
                    }
                }
                _ => break,
            }
        }
        self.now = end;
    }

    /// The connection by which one hears another.
    pub(crate) fn from(&self, peer: Number, at: Number) -> ConnId {
        let wires = self.wires.iter().filter(|((whose, _), (other, _))| (*whose, *other) == (at, peer));
        let conns: Vec<ConnId> = wires.map(|((_, conn), _)| *conn).collect();
        let [conn] = conns[..] else { panic!("{peer} and {at} have {} connections", conns.len()) };
        conn
    }

    pub(crate) fn member(&self, number: Number) -> Member {
        self.nodes[&number].me().clone()
    }

    pub(crate) fn view(&self, number: Number) -> RingView {
        self.nodes[&number].view()
    }

    pub(crate) fn state(&self, number: Number) -> RingState {
        self.nodes[&number].state()
    }

    /// By the next ones, from that one on; it comes back, or it ends.
    pub(crate) fn circle(&self, from: Number) -> Vec<Number> {
        let mut circle = vec![from];
        let mut at = from;
        while let Some(next) = self.nodes.get(&at).and_then(|node| node.view().next) {
            at = next.get();
            if circle.contains(&at) {
                break;
            }
            circle.push(at);
        }
        circle
    }

    /// Runs until all of these are one circle, for at most so long; how long it took.
    pub(crate) fn until_whole(&mut self, numbers: &[Number], millis: u64) -> u64 {
        let begun = self.now;
        while self.now.millis_since(begun) <= millis {
            let is_whole = |number: &Number| {
                let view = self.view(*number);
                view.whole && view.members.len() == numbers.len() && view.state == RingState::Member
            };
            if numbers.iter().all(is_whole) {
                return self.now.millis_since(begun);
            }
            self.run(50);
        }
        let views: Vec<RingView> = numbers.iter().map(|number| self.view(*number)).collect();
        panic!("no circle of {numbers:?} within {millis} ms: {views:#?}");
    }

    pub(crate) fn got(&self, number: Number) -> Vec<&str> {
        self.got.get(&number).into_iter().flatten().map(String::as_str).collect()
    }
}
