//! The world of a ring: who lives where, what happens when, and what the nodes want done.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use turno_engine::Event;
use turno_engine::ring::{RingInput, RingNode, RingSettings, RingTimers, TRANSITIONS};
use turno_proto::model::ring::{Member, Origin, RingState, Sid};
use turno_proto::model::{Code, ConnId, Mono, Payload};

use super::oracle::{Note, RingOracle};
use super::wires::{BrokerPlace, DIALLED, DIALLER, Item, LifeNumber, WireId, Wires};
use super::world_settings::WorldSettings;
use crate::rng::Rng;
use crate::trace::Trace;

/// A broker, or the place where one was.
#[derive(Debug)]
pub(super) struct RingBroker {
    pub(super) sid: Sid,
    pub(super) node: Option<RingNode>,
    pub(super) life: LifeNumber,
    /// The process is gone and the machine answers so; otherwise it answers nothing.
    pub(super) is_refusing: bool,
    pub(super) paused: Option<Mono>,
    /// An admin told it to leave.
    pub(super) is_out: bool,
    /// It said for good that it must not be in the ring.
    pub(super) refused: Option<Code>,
    pub(super) incarnation: u64,
    /// The lead of its clock over the world's, and its calendar.
    clock: u64,
    calendar: u64,
    tick_at: Option<Mono>,
    pub(super) dials: BTreeMap<u32, BrokerPlace>,
    pub(super) published: u64,
    pub(super) is_slowed: bool,
}

#[derive(Clone, Debug)]
pub(super) enum RingHappening {
    /// Items on that lane may be due.
    Arrive(WireId, usize),
    Beat(WireId, usize),
    DialArrives(BrokerPlace, LifeNumber, u32, BrokerPlace),
    DialFailed(BrokerPlace, LifeNumber, u32),
    Publish(BrokerPlace),
    Resume(BrokerPlace),
    Reconnect(BrokerPlace, BrokerPlace),
    Fault,
    Lie,
    /// The stranger comes.
    Pose,
    /// Its connection there ends.
    Unpose(BrokerPlace, LifeNumber, ConnId),
}

pub(crate) struct RingWorld {
    pub(super) now: Mono,
    pub(crate) steps: u64,
    pub(super) rng: Rng,
    pub(crate) trace: Trace,
    pub(crate) blind: bool,
    pub(super) climate: WorldSettings,
    pub(super) brokers: Vec<RingBroker>,
    pub(super) wires: Wires,
    agenda: BTreeMap<(Mono, u64), RingHappening>,
    count: u64,
    lives: LifeNumber,
    pub(super) is_calm: bool,
    pub(super) is_quiet: bool,
    /// Connections that the stranger has made.
    pub(super) poses: u32,
    /// Those whom an admin told to end.
    pub(super) told_to_end: BTreeSet<BrokerPlace>,
    /// In the calm somebody ended that was about to.
    pub(super) is_disturbed: bool,
    pub(super) oracle: RingOracle,
}

pub(super) fn address(place: BrokerPlace) -> String {
    format!("host:{place}")
}

pub(super) fn place_of(address: &str) -> Option<BrokerPlace> {
    address.rsplit(':').next()?.parse().ok()
}

impl RingWorld {
    pub(crate) fn new(seed: u64, trace: Trace) -> Self {
        let mut rng = Rng::new(seed);
        let climate = WorldSettings::new(seed, &mut rng);
        let mut sids: Vec<u16> = (0..climate.members as u16).map(|place| place * 3 + 1).collect();
        for at in (1..sids.len()).rev() {
            sids.swap(at, rng.index(at + 1));
        }
        if climate.rogue {
            sids.push(sids[rng.index(climate.members)]);
        }
        let broker = |sid: u16, rng: &mut Rng| RingBroker {
            sid: Sid::new(sid),
            node: None,
            life: 0,
            is_refusing: true,
            paused: None,
            is_out: false,
            refused: None,
            incarnation: 0,
            clock: rng.range(0, 1_000_000_000),
            calendar: rng.range(0, 1_000_000_000),
            tick_at: None,
            dials: BTreeMap::new(),
            published: 0,
            is_slowed: false,
        };
        let brokers = sids.into_iter().map(|sid| broker(sid, &mut rng)).collect();
        let oracle = RingOracle::new(climate.has_lies());
        let mut world = Self {
            now: Mono::from_millis(1_000),
            steps: 0,
            rng,
            trace,
            blind: false,
            climate,
            brokers,
            wires: Wires::default(),
            agenda: BTreeMap::new(),
            count: 0,
            lives: 0,
            is_calm: false,
            is_quiet: false,
            poses: 0,
            told_to_end: BTreeSet::new(),
            is_disturbed: false,
            oracle,
        };
        world.trace.say(&format!("{climate:?}"));
        world.trace.note(world.now, "world", climate.members as u64, climate.faults);
        world
    }

    /// Puts it on the agenda.
    pub(super) fn later(&mut self, millis: u64, happening: RingHappening) {
        self.at(self.now.plus_millis(millis), happening);
    }

    pub(super) fn at(&mut self, at: Mono, happening: RingHappening) {
        self.count += 1;
        self.agenda.insert((at, self.count), happening);
    }

    pub(super) fn way(&mut self) -> Mono {
        let longest = self.climate.latency;
        let micros = self.rng.range(longest / 20, longest);
        Mono::from_micros(self.now.as_micros() + micros)
    }

    /// A broker starts.
    pub(super) fn start(&mut self, place: BrokerPlace, next: Option<BrokerPlace>, wait: bool) {
        self.lives += 1;
        let life = self.lives;
        let (climate, now) = (self.climate, self.now);
        let broker = &mut self.brokers[place];
        // The calendar may have been set back; what is stored may not.
        if self.rng.once_in(4) {
            broker.calendar = self.rng.range(0, 1_000_000_000);
        }
        broker.incarnation = (broker.incarnation + 1).max(now.as_millis() + broker.calendar / 1_000);
        let origin = Origin { sid: broker.sid, incarnation: broker.incarnation };
        let me = Member { origin, address: address(place), native: String::new() };
        let mut settings = RingSettings::new(me, next.map(address));
        settings.wait = wait;
        (settings.sorted, settings.has_secret) = (climate.sorted, climate.has_secret);
        settings.timers = if climate.fast { RingTimers::fast() } else { RingTimers::default() };
        (settings.window, settings.window_bytes) = (climate.window, climate.window_bytes);
        let clock = Mono::from_micros(now.as_micros() + broker.clock);
        broker.node = Some(RingNode::new(settings, clock));
        (broker.life, broker.paused, broker.is_out, broker.refused) = (life, None, false, None);
        (broker.is_slowed, broker.tick_at) = (false, None);
        broker.dials.clear();
        self.trace.note(now, "start", place as u64, next.map_or(99, |next| next as u64));
        let sid = self.brokers[place].sid;
        self.oracle.born(life, place, sid);
        self.put(place, RingInput::Tick);
        if self.is_quiet {
            return;
        }
        let after = self.rng.range(1, climate.publications * 2);
        self.later(after, RingHappening::Publish(place));
    }

    /// The process ends, or the whole machine.
    pub(super) fn kill(&mut self, place: BrokerPlace, machine: bool) {
        let broker = &mut self.brokers[place];
        (broker.node, broker.tick_at, broker.paused) = (None, None, None);
        self.is_disturbed = true;
        let broker = &mut self.brokers[place];
        broker.is_refusing = !machine;
        self.oracle.died(self.brokers[place].life);
        self.trace.note(self.now, "kill", place as u64, u64::from(machine));
        for (wire, side) in self.wires.of(place) {
            // The latest messages may not have left.
            let cut = self.rng.index(4);
            if let Some(open) = self.wires.all.get_mut(&wire) {
                let lane = &mut open.lanes[side];
                lane.items.truncate(lane.items.len().saturating_sub(cut));
            }
            if !machine {
                self.send(wire, side, Item::Fin);
            }
            self.wires.end(wire, side);
        }
    }

    /// Sends something away from that end.
    pub(super) fn send(&mut self, wire: WireId, side: usize, item: Item) {
        let due = self.way();
        let Some(open) = self.wires.all.get_mut(&wire) else { return };
        let due = open.lanes[side].push(due, item);
        self.at(due, RingHappening::Arrive(wire, side));
    }

    /// The node there is told something.
    pub(super) fn put(&mut self, place: BrokerPlace, input: RingInput) {
        self.steps += 1;
        let now = self.now;
        let broker = &mut self.brokers[place];
        let life = broker.life;
        let Some(node) = &mut broker.node else { return };
        let clock = Mono::from_micros(now.as_micros() + broker.clock);
        let is_tick = matches!(input, RingInput::Tick);
        let note = Note::of(&input, place, &self.wires);
        let before = (node.state(), *node.counters());
        self.oracle.hears(life, &input, node.next_sid());
        let mut effects = Vec::new();
        node.handle(clock, input, &mut effects);
        if !self.blind {
            node.sanity_check();
        }
        let after = node.state();
        let is_way = |(from, to, _): &(RingState, RingState, &str)| (*from, *to) == (before.0, after);
        assert!(
            before.0 == after || TRANSITIONS.iter().any(is_way),
            "S3.52: from {} to {}",
            before.0.name(),
            after.name()
        );
        let deadline = node.next_deadline();
        assert!(
            !is_tick || deadline.is_none_or(|at| at > clock),
            "I21: a tick that leads to the next at once, at {place}"
        );
        let jitter = self.rng.range(0, 2_000);
        broker.tick_at = deadline
            .map(|at| Mono::from_micros(at.as_micros().saturating_sub(broker.clock).max(now.as_micros()) + jitter));
        self.oracle.handled(life, self.steps, note, before, node);
        if before.0 != after {
            self.trace.note(now, after.name(), place as u64, life as u64);
        }
        for effect in effects {
            self.carry_out(place, effect);
        }
    }

    /// One end closes; the other hears of it, after all that was said before, or instead of it.
    pub(super) fn close(&mut self, wire: WireId, side: usize) {
        if !self.is_calm && self.rng.once_in(8) {
            // An end that closes with something unread resets: what was on its way is gone.
            let Some(open) = self.wires.all.get_mut(&wire) else { return };
            let keep = self.rng.index(open.lanes[side].items.len() + 1);
            open.lanes[side].items.truncate(keep);
        }
        self.send(wire, side, Item::Fin);
        self.wires.end(wire, side);
    }

    /// Whatever is due on that lane.
    fn arrive(&mut self, wire: WireId, side: usize) {
        loop {
            let Some(open) = self.wires.all.get(&wire) else { return };
            let [from, to] = [open.places[side], open.places[1 - side]];
            let is_paused = self.brokers[to].paused.is_some() && open.ends[1 - side].is_some();
            if is_paused || self.wires.is_cut(from, to) {
                return;
            }
            let now = self.now;
            let Some(open) = self.wires.all.get_mut(&wire) else { return };
            let Some(item) = open.lanes[side].pop(now) else { return };
            let Some(end) = &mut open.ends[1 - side] else { continue };
            end.heard = now;
            let (conn, is_known) = (end.conn, end.is_known);
            end.is_known |= matches!(item, Item::Accepted(_) | Item::Dialled(..));
            match item {
                Item::Accepted(peer) => self.put(to, RingInput::Accepted { conn, peer: Some(peer) }),
                Item::Dialled(target, peer) => match self.brokers[to].dials.remove(&target) {
                    Some(_) => self.put(to, RingInput::Dialled { target, conn, peer }),
                    None => self.close(wire, 1 - side),
                },
                Item::Message(message) => self.put(to, RingInput::Message { conn, message }),
                Item::Ping => {}
                Item::Fin => {
                    self.wires.end(wire, 1 - side);
                    if is_known {
                        self.put(to, RingInput::Closed { conn });
                    }
                }
            }
        }
    }

    /// One end says that it is there, and looks whether the other did.
    fn beat(&mut self, wire: WireId, side: usize) {
        let Some(end) = self.wires.all.get(&wire).and_then(|open| open.ends[side]) else { return };
        if self.brokers[end.place].paused.is_none() && !self.hears_nothing(wire, side) {
            self.send(wire, side, Item::Ping);
        }
        let beat = self.climate.beat_ms();
        self.later(beat, RingHappening::Beat(wire, side));
    }

    /// Closes an end that heard nothing for three beats.
    pub(super) fn hears_nothing(&mut self, wire: WireId, side: usize) -> bool {
        let Some(end) = self.wires.all.get(&wire).and_then(|open| open.ends[side]) else { return false };
        if self.now.millis_since(end.heard) < self.climate.beat_ms() * 3 {
            return false;
        }
        self.trace.note(self.now, "silent", end.place as u64, u64::from(wire));
        self.send(wire, side, Item::Fin);
        self.wires.end(wire, side);
        if end.is_known {
            self.put(end.place, RingInput::Closed { conn: end.conn });
        }
        true
    }

    fn dial_arrives(&mut self, from: BrokerPlace, life: LifeNumber, target: u32, to: BrokerPlace) {
        if self.brokers[from].life != life || !self.brokers[from].dials.contains_key(&target) {
            return;
        }
        // Only a stranger tells an address where nobody is.
        let Some(there) = self.brokers.get(to) else {
            return self.later(1, RingHappening::DialFailed(from, life, target));
        };
        let is_deaf = there.paused.is_some() || (there.node.is_none() && !there.is_refusing);
        if is_deaf || self.wires.is_cut(from, to) || self.wires.is_cut(to, from) {
            return;
        }
        let Some(peer) = there.node.as_ref().map(|node| node.me().clone()) else {
            return self.later(1, RingHappening::DialFailed(from, life, target));
        };
        let Some(me) = self.brokers[from].node.as_ref().map(|node| node.me().clone()) else { return };
        let there = (to, self.brokers[to].life);
        let wire = self.wires.open(self.now, (from, life), there);
        self.send(wire, DIALLER, Item::Accepted(me));
        self.send(wire, DIALLED, Item::Dialled(target, peer));
        for side in [DIALLER, DIALLED] {
            let beat = self.rng.range(1, self.climate.beat_ms());
            self.later(beat, RingHappening::Beat(wire, side));
        }
    }

    fn dial_failed(&mut self, place: BrokerPlace, life: LifeNumber, target: u32) {
        let broker = &mut self.brokers[place];
        if broker.life == life && broker.paused.is_some() {
            // It sees that when it is back.
            return self.later(500, RingHappening::DialFailed(place, life, target));
        }
        if broker.life == life && broker.dials.remove(&target).is_some() {
            self.put(place, RingInput::DialFailed { target, code: Code::RingDown });
        }
    }

    /// Somebody publishes something there.
    pub(super) fn publish(&mut self, place: BrokerPlace) {
        let broker = &mut self.brokers[place];
        let life = broker.life;
        if broker.paused.is_some() || broker.node.is_none() || (broker.is_slowed && !self.rng.once_in(8)) {
            return;
        }
        broker.published += 1;
        let number = broker.published;
        let size = self.rng.range(0, 200);
        let text = format!("{life}.{number}.{}", "x".repeat(size as usize));
        let topic = "news".parse().expect("a topic");
        let event = Arc::new(Event { topic, payload: Payload::body(text.into_bytes()) });
        self.oracle.issued(life, number, self.steps);
        self.put(place, RingInput::Publish { event });
        if let Some(node) = &self.brokers[place].node {
            self.oracle.judge_buffers(node, self.climate.window);
        }
    }

    /// Lets so many milliseconds pass.
    pub(super) fn run(&mut self, millis: u64) {
        let end = self.now.plus_millis(millis);
        loop {
            let awake = self.brokers.iter().enumerate().filter(|(_, broker)| broker.paused.is_none());
            let due = awake.filter_map(|(place, broker)| Some((broker.tick_at?, place))).min();
            let next = self.agenda.first_key_value().map(|((at, _), _)| *at);
            match (due, next) {
                (Some((at, place)), next) if at <= end && next.is_none_or(|next| at < next) => {
                    self.now = self.now.max(at);
                    self.brokers[place].tick_at = None;
                    self.put(place, RingInput::Tick);
                }
                (_, Some(next)) if next <= end => {
                    let ((at, _), happening) = self.agenda.pop_first().expect("there is one");
                    self.now = self.now.max(at);
                    self.happen(happening);
                }
                _ => break,
            }
        }
        self.now = end;
    }

    fn happen(&mut self, happening: RingHappening) {
        match happening {
            RingHappening::Arrive(wire, side) => self.arrive(wire, side),
            RingHappening::Beat(wire, side) => self.beat(wire, side),
            RingHappening::DialArrives(from, life, target, to) => self.dial_arrives(from, life, target, to),
            RingHappening::DialFailed(place, life, target) => self.dial_failed(place, life, target),
            RingHappening::Publish(place) => {
                if !self.is_quiet && self.brokers[place].node.is_some() {
                    self.publish(place);
                    let after = self.rng.range(1, self.climate.publications * 2);
                    self.later(after, RingHappening::Publish(place));
                }
            }
            RingHappening::Resume(place) => self.resume(place),
            RingHappening::Reconnect(from, to) => self.reconnect(from, to),
            RingHappening::Fault => self.fault(),
            RingHappening::Lie => self.lie(),
            RingHappening::Pose => self.pose(),
            RingHappening::Unpose(place, life, conn) => self.unpose(place, life, conn),
        }
    }

    /// Items on the lanes to a place may go on.
    pub(super) fn wake_lanes(&mut self, to: BrokerPlace) {
        let lanes: Vec<(WireId, usize)> = self.wires.of(to).into_iter().map(|(wire, side)| (wire, 1 - side)).collect();
        for (wire, side) in lanes {
            let at = self.way();
            self.at(at, RingHappening::Arrive(wire, side));
        }
    }
}
