//! Links between brokers: in every tenth world brokers dial each other, over wires like all others, and the weather is about
//! links, too.
//!
//! A link's wire has a broker at both ends. The one that dialled stands where a peer stands on other wires.

use std::collections::{BTreeMap, BTreeSet};

use turno_broker::connections::{Dial, LinkSettings, ListenerKind, Nonces, Turn};
use turno_engine::{Input, Settings as EngineSettings};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::link::BrokerId;
use turno_proto::model::{Code, ConnId, Mono, limits};
use turno_proto::native::{GreetingCredentials, Identity, Secret};

use crate::net::{Direction, End, Wire};
use crate::rng::Rng;
use crate::world::{Actor, Happening, World, address, broker_of};

/// A world has so many brokers if they are linked.
const BROKERS: (u64, u64) = (2, 8);
/// Bits of a broker's id: its number, its life, and its number again, because the lowest bits tell tokens apart.
const LIFE_BITS: u32 = 8;
const INDEX_BITS: u32 = 40;
/// Events of the storm are this many times as many: brokers that talk to each other make most of them.
const STORM: u64 = 5;

/// A worker has heard by then that the link of its work is lost.
const STOP_MS: u64 = 2_000;

/// The links of a world.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// Brokers that each broker dials when it starts; empty if there are no links in this world.
    configured: Vec<BTreeSet<usize>>,
    /// Brokers that each of them wants to be linked with now.
    wanted: Vec<BTreeSet<usize>>,
    secret: bool,
    /// All brokers know the order in which they are home to exclusive queues.
    ordered: bool,
    /// Those that cannot reach each other, and until when.
    apart: BTreeMap<(usize, usize), Mono>,
}

impl Links {
    pub(crate) const fn is_empty(&self) -> bool {
        self.configured.is_empty()
    }

    /// As many brokers as there are, in any order of links that leaves some of them far from each other.
    fn plan(&mut self, brokers: usize, rng: &mut Rng) {
        self.configured = vec![BTreeSet::new(); brokers];
        self.secret = rng.once_in(2);
        self.ordered = !rng.once_in(3);
        let kind = rng.range(0, 5);
        for one in 0..brokers {
            for other in one + 1..brokers {
                let linked = match kind {
                    0 => other == one + 1,
                    1 => one == 0,
                    2 => other == one + 1 || (one == 0 && other == brokers - 1),
                    3 => true,
                    _ => rng.once_in(3) || (other == one + 1 && !rng.once_in(6)),
                };
                if linked {
                    // The one dials, or the other, or both.
                    let who = rng.range(1, 4);
                    if who & 1 != 0 {
                        self.configured[one].insert(other);
                    }
                    if who & 2 != 0 {
                        self.configured[other].insert(one);
                    }
                }
            }
        }
        self.wanted = self.configured.clone();
    }

    fn are_apart(&self, one: usize, other: usize, now: Mono) -> bool {
        self.apart.get(&(one.min(other), one.max(other))).is_some_and(|until| now < *until)
    }

    /// Brokers that can reach each other if all wanted links are up.
    pub(crate) fn component_of(&self, broker: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::from([broker]);
        loop {
            let before = found.len();
            for (one, others) in self.wanted.iter().enumerate() {
                if found.contains(&one) {
                    found.extend(others);
                } else if others.iter().any(|other| found.contains(other)) {
                    found.insert(one);
                }
            }
            if found.len() == before {
                return found;
            }
        }
    }

    /// Each component once, by its first broker. Without links every broker is one.
    pub(crate) fn components(&self, brokers: usize) -> Vec<BTreeSet<usize>> {
        let all = (0..brokers).map(|broker| (broker, self.component_of(broker)));
        all.filter(|(broker, component)| component.first() == Some(broker)).map(|(_, component)| component).collect()
    }
}

/// From here on brokers are linked in the worlds of all seeds.
pub const LINKED_SEEDS: u64 = 1_000_000_000;
/// Before that in those of every tenth: such a world takes four to five times as long as another.
const LINKED_EVERY: u64 = 10;

const fn is_linked(seed: u64) -> bool {
    seed >= LINKED_SEEDS || seed.is_multiple_of(LINKED_EVERY)
}

/// Which of a broker's lives an id names: the broker, and the number of its start.
pub(crate) const fn life_of(id: u64) -> (usize, u64) {
    ((id >> INDEX_BITS) as usize, (id >> LIFE_BITS) & 0xFFFF_FFFF)
}

/// Starting.
impl World {
    /// How many brokers there are, and whether they are linked.
    pub(crate) fn plan_brokers(&mut self, seed: u64) -> usize {
        if !is_linked(seed) {
            return self.rng.index(3) + 1;
        }
        let brokers = usize::try_from(self.rng.range(BROKERS.0, BROKERS.1)).expect("few");
        self.links.plan(brokers, &mut self.rng);
        self.oracle.linked();
        brokers
    }

    pub(crate) fn storm_steps(&self, steps: u64) -> u64 {
        if self.links.is_empty() { steps } else { steps * STORM }
    }

    /// Applies the settings of this world to those of a broker.
    pub(crate) fn engine_settings(&mut self, index: usize, mut settings: EngineSettings) -> EngineSettings {
        self.habits.apply(&mut settings);
        if !self.links.is_empty() {
            settings.run = self.broker_id(index).get();
            settings.name = name_of(index);
            settings.links = self.links.configured[index].iter().map(|to| address(*to).to_string()).collect();
            if self.links.ordered {
                settings.link_order = (0..self.brokers.len().max(index + 1)).map(name_of).collect();
            }
            self.links.wanted[index] = self.links.configured[index].clone();
        }
        settings
    }

    pub(crate) fn greet_links(&mut self, index: usize, frame_bytes_max: u64) {
        if self.links.is_empty() {
            return;
        }
        let nonces = Nonces::Seeded(self.rng.next());
        let secret = self.links.secret.then(|| Secret::new(b"correct horse battery staple").expect("long enough"));
        let (broker, name, program) = (self.broker_id(index), name_of(index), String::new());
        let identity = Identity { broker, name, program, frame_bytes_max };
        let Some(connections) = &mut self.brokers[index].connections else { return };
        connections.set_links(LinkSettings { credentials: GreetingCredentials::new(identity, secret), nonces });
    }
}

fn name_of(broker: usize) -> String {
    format!("broker-{broker}")
}

/// Wires between brokers.
impl World {
    /// Links that a broker wants dialled are dialled.
    pub(crate) fn dial_links(&mut self, index: usize) {
        let broker = &mut self.brokers[index];
        let (run, Some(connections)) = (broker.run, &mut broker.connections) else { return };
        for Dial { target, address } in connections.take_dials() {
            let to = broker_of(&address.parse().expect("an address of ours"));
            let slow = if self.rng.once_in(20) { self.rng.range(0, 1_000_000) } else { 0 };
            let lost = self.links.are_apart(index, to, self.now);
            let lost = if lost && self.rng.once_in(2) { limits::LINK_DIAL_MS * 1_000 } else { 0 };
            let at = Mono::from_micros(self.now.as_micros() + self.rng.range(100, 4_000) + slow + lost);
            self.at(at, Happening::LinkDialled { broker: index, run, target, to });
        }
    }

    pub(crate) fn link_dialled(&mut self, index: usize, run: u64, target: u32, to: usize) {
        let now = self.now;
        if self.brokers[index].run != run || self.brokers[index].connections.is_none() {
            return;
        }
        self.trace.note(now, "link dialled", index as u64, to as u64);
        let (shown, shown_there) = (self.clock_of(index), self.clock_of(to));
        let there = &mut self.brokers[to];
        let reachable = !self.links.are_apart(index, to, now);
        let accepted = there
            .connections
            .as_mut()
            .filter(|_| reachable)
            .and_then(|connections| connections.accept(shown_there, "127.0.0.1:2".into(), ListenerKind::Native));
        let life = there.run;
        let Some(connections) = &mut self.brokers[index].connections else { return };
        let Some(accepted) = accepted else {
            connections.dial_failed(shown, target, Code::LinkDown);
            return self.pump_broker(index);
        };
        let dialled = connections.dial(shown, target, "127.0.0.1:1".into());
        let Some(conn) = dialled else {
            if let Some(connections) = &mut self.brokers[to].connections {
                connections.hang_up(shown_there, accepted);
            }
            self.pump_broker(to);
            return self.pump_broker(index);
        };
        let wire = self.wires.len();
        self.wires.push(Wire::link(End { broker: index, conn }, to, life, &mut self.rng));
        self.wires[wire].conn = Some(accepted);
        self.brokers[to].wires.insert(accepted, wire);
        self.brokers[index].wires.insert(conn, wire);
        let (here, there) = (self.broker_id(index), self.broker_id(to));
        self.oracle.crossings.link(wire, here, there);
        self.pump_broker(index);
        self.pump_broker(to);
    }

    fn broker_id(&self, index: usize) -> BrokerId {
        let run = self.brokers[index].run;
        BrokerId::new((index as u64) << INDEX_BITS | run << LIFE_BITS | index as u64)
    }

    /// The way of what a broker writes to a connection.
    pub(crate) fn way_out(&self, index: usize, conn: ConnId, wire: usize) -> Direction {
        match self.wires[wire].dialler {
            Some(End { broker, conn: dialled }) if (broker, dialled) == (index, conn) => Direction::ToBroker,
            _ => Direction::ToPeer,
        }
    }

    /// The broker that reads what goes that way, if its connection is still that of this wire.
    fn reader_of(&self, wire: usize, way: Direction) -> Option<(usize, ConnId)> {
        let Wire { broker, conn, dialler, .. } = &self.wires[wire];
        let (broker, conn) = match (way, dialler) {
            (Direction::ToPeer, Some(End { broker, conn })) => (*broker, *conn),
            _ => (*broker, (*conn)?),
        };
        (self.brokers[broker].wires.get(&conn) == Some(&wire)).then_some((broker, conn))
    }

    /// A broker reads what came over a link.
    pub(crate) fn link_reads(&mut self, wire: usize, way: Direction) {
        let now = self.now;
        let Some((broker, conn)) = self.reader_of(wire, way) else { return };
        let shown = self.clock_of(broker);
        let Some(connections) = &mut self.brokers[broker].connections else { return };
        if !connections.wants_reading(conn) {
            return;
        }
        let bytes = self.wires[wire].read(way);
        if bytes.is_empty() {
            return;
        }
        self.oracle.crossings.broker_reads(now, (broker, wire), way, &bytes);
        let mut turn = connections.take(shown, conn, &bytes);
        while turn == Turn::Cut {
            turn = connections.go_on(shown, conn);
        }
        self.pump_broker(broker);
        // The window has room again for what the other end could not write.
        if let Some((other, conn)) = self.reader_of(wire, way.back())
            && let Some(connections) = &mut self.brokers[other].connections
            && !connections.unwritten(conn).is_empty()
        {
            connections.mark_dirty(conn);
            self.pump_broker(other);
        }
    }

    /// One end of a link learns that the other closed it, or that it was cut.
    pub(crate) fn link_closed(&mut self, wire: usize, way: Direction) {
        self.link_reads(wire, way);
        let Some((broker, conn)) = self.reader_of(wire, way) else { return };
        self.oracle.link_gone(self.now, broker, wire);
        self.brokers[broker].wires.remove(&conn);
        let shown = self.clock_of(broker);
        if let Some(connections) = &mut self.brokers[broker].connections {
            connections.hang_up(shown, conn);
        }
        self.pump_broker(broker);
    }

    /// Reads the bytes that a broker is about to write, and the connections that it has closed.
    pub(crate) fn tap(&mut self, index: usize, dirty: &[ConnId], gone: &[ConnId]) {
        if self.links.is_empty() {
            return;
        }
        let broker = &self.brokers[index];
        for wire in gone.iter().filter_map(|conn| broker.wires.get(conn)) {
            if self.wires[*wire].dialler.is_some() {
                self.oracle.link_gone(self.now, index, *wire);
            }
        }
        let Some(connections) = &broker.connections else { return };
        let said: Vec<(usize, Direction, &[u8])> = dirty
            .iter()
            .filter_map(|conn| {
                let wire = *broker.wires.get(conn)?;
                Some((wire, self.way_out(index, *conn, wire), connections.unwritten(*conn)))
            })
            .collect();
        self.oracle.broker_says(self.now, (index, broker.run), &said);
    }
}

/// Work that nobody waits for.
impl World {
    /// A broker has lost a link: what came over it is stopped at its workers, those apart that may not have heard yet.
    pub(crate) fn judge_lost_links(&mut self, index: usize) {
        let now = self.now;
        let due = |gone: &(Mono, usize, usize)| gone.1 == index && now.millis_since(gone.0) >= STOP_MS;
        let lost: Vec<(Mono, usize, usize)> = self.oracle.crossings.gone.extract_if(.., |gone| due(gone)).collect();
        for (at, _, link) in lost {
            for peer in self.peers.iter().filter(|peer| peer.asleep_until < at) {
                let (Actor::Worker(worker), Some(wire)) = (&peer.actor, peer.wire) else { continue };
                let Wire { broker, life, .. } = self.wires[wire];
                let hears =
                    (broker, life) == (index, self.brokers[index].run) && self.wires[wire].is_flawless_since(at);
                let goes_on = worker.works_for(link).find(|number| hears && !self.oracle.is_no_reply(*number));
                assert!(goes_on.is_none(), "S2.6: {goes_on:?} came over a link that is lost, and its worker goes on");
            }
        }
    }
}

/// Weather.
impl World {
    /// Something goes wrong with a link, or somebody wants another one.
    pub(crate) fn weather_of_links(&mut self) {
        if self.links.is_empty() {
            return;
        }
        match self.rng.range(0, 12) {
            0 => self.cut_a_link(),
            1..=2 => self.mute_a_link(),
            3 => self.part_two(),
            4 => self.part_all(),
            5 => self.add_a_link(),
            6 => self.remove_a_link(),
            _ => {}
        }
    }

    fn some_link(&mut self) -> Option<usize> {
        let live = self.brokers.iter().flat_map(|broker| broker.wires.values().copied());
        let links: Vec<usize> = live.filter(|wire| self.wires[*wire].dialler.is_some()).collect();
        (!links.is_empty()).then(|| links[self.rng.index(links.len())])
    }

    fn cut_a_link(&mut self) {
        if let Some(wire) = self.some_link() {
            self.trace.note(self.now, "cut link", wire as u64, 0);
            self.wires[wire].cut = true;
            self.close(wire, Direction::ToBroker);
            self.close(wire, Direction::ToPeer);
        }
    }

    /// Bytes of one direction vanish, until somebody misses them.
    fn mute_a_link(&mut self) {
        if let Some(wire) = self.some_link() {
            let way = if self.rng.once_in(2) { Direction::ToBroker } else { Direction::ToPeer };
            self.trace.note(self.now, "mute link", wire as u64, way as u64);
            self.wires[wire].open_hole(way);
        }
    }

    /// Two brokers cannot reach each other for a while; all others can reach both.
    fn part_two(&mut self) {
        let (one, other) = (self.rng.index(self.brokers.len()), self.rng.index(self.brokers.len()));
        let until = self.now.plus_millis(self.rng.range(200, 8_000));
        self.trace.note(self.now, "part two", one as u64, other as u64);
        self.part(one, other, until);
    }

    /// Those on one side cannot reach those on the other.
    fn part_all(&mut self) {
        let sides = self.rng.next();
        let until = self.now.plus_millis(self.rng.range(200, 8_000));
        self.trace.note(self.now, "part all", sides, until.as_millis());
        let side = |broker: usize| sides >> broker & 1;
        for one in 0..self.brokers.len() {
            for other in (0..one).filter(|other| side(*other) != side(one)) {
                self.part(one, other, until);
            }
        }
    }

    fn part(&mut self, one: usize, other: usize, until: Mono) {
        self.links.apart.insert((one.min(other), one.max(other)), until);
        for wire in &mut self.wires {
            let Some(dialler) = wire.dialler else { continue };
            if [(one, other), (other, one)].contains(&(dialler.broker, wire.broker)) {
                wire.open_hole(Direction::ToBroker);
                wire.open_hole(Direction::ToPeer);
            }
        }
    }

    fn add_a_link(&mut self) {
        let (one, other) = (self.rng.index(self.brokers.len()), self.rng.index(self.brokers.len()));
        if self.brokers[one].connections.is_some() {
            self.trace.note(self.now, "add link", one as u64, other as u64);
            if one != other {
                self.links.wanted[one].insert(other);
            }
            self.administer(one, AdminCall::LinkAdd { address: address(other).to_string() });
        }
    }

    fn remove_a_link(&mut self) {
        let one = self.rng.index(self.brokers.len());
        let wanted: Vec<usize> = self.links.wanted[one].iter().copied().collect();
        if self.brokers[one].connections.is_some() && !wanted.is_empty() {
            let other = wanted[self.rng.index(wanted.len())];
            self.trace.note(self.now, "remove link", one as u64, other as u64);
            self.links.wanted[one].remove(&other);
            self.administer(one, AdminCall::LinkRm { link: address(other).to_string() });
        }
    }

    /// Nothing is between brokers any more.
    pub(crate) fn links_calm_down(&mut self) {
        self.links.apart.clear();
    }

    /// Brokers that have one worker which is large enough for anything: all of them, or one of those that are linked.
    pub(crate) fn places_of_work(&mut self) -> Vec<usize> {
        if self.links.is_empty() {
            return (0..self.brokers.len()).collect();
        }
        let components = self.links.components(self.brokers.len());
        components
            .into_iter()
            .map(|all| all.into_iter().collect::<Vec<usize>>())
            .map(|all| all[self.rng.index(all.len())])
            .collect()
    }

    /// S2.5: every link that somebody wants is up. Returns two brokers that are not linked.
    pub(crate) fn missing_link(&self) -> Option<(usize, usize)> {
        let wanted = self.links.wanted.iter().enumerate();
        let mut pairs = wanted.flat_map(|(one, others)| others.iter().map(move |other| (one, *other)));
        pairs.find(|(one, other)| !self.are_linked(*one, *other))
    }

    fn are_linked(&self, one: usize, other: usize) -> bool {
        let Some(connections) = &self.brokers[one].connections else { return false };
        self.brokers[one].wires.iter().any(|(conn, wire)| {
            let Some(dialler) = self.wires[*wire].dialler else { return false };
            let ends = [dialler.broker, self.wires[*wire].broker];
            let both =
                [Direction::ToPeer, Direction::ToBroker].into_iter().all(|way| self.reader_of(*wire, way).is_some());
            let works = self.wires[*wire].is_sound() && !connections.said_all(*conn);
            both && works && ends.contains(&other) && self.oracle.crossings.is_up(*wire)
        })
    }

    /// Somebody who asks a broker for something whose answer nobody waits for.
    pub(crate) fn administer(&mut self, index: usize, call: AdminCall) {
        let (shown, conn) = (self.clock_of(index), ConnId { index: u32::MAX, generation: 0 });
        if let Some(connections) = &mut self.brokers[index].connections {
            connections.handle(shown, Input::Admin { conn, seq: 0, call });
            self.pump_broker(index);
        }
    }
}
