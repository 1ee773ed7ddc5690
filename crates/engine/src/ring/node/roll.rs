//! The roll call, by which each member knows who is there. Each member sends its own round, everyone it comes through adds itself, and once it is back its sender
//! knows the circle. So a ring that is whole is known to be.

use std::collections::{BTreeMap, VecDeque};

use turno_proto::model::ring::{Circle, Member, Origin, RingMessage, Sid};
use turno_proto::model::{ConnId, Mono, limits};

use super::states::NodeState;
use super::{RingEffect, RingHostEffect, RingNews, RingNode, RingSettings};
use crate::settings::latest_term;

/// Roll calls that are under way at a time; of more than that only the last ones tell how long they took.
const UNDER_WAY_MAX: usize = 8;
/// A roll call that came round counts for so many more.
const FRESH_ROLLS: u64 = 3;

/// The members that a node knows.
#[derive(Debug)]
pub(super) struct KnownMembers {
    /// This node's own number: another that has it is nobody to know.
    me: Sid,
    has_secret: bool,
    /// The latest incarnation that a broker can have now.
    latest: u64,
    number: u64,
    /// Those under way: number, when, and the last publication of its own before.
    sent: VecDeque<(u64, Mono, u64)>,
    last_sent: Option<Mono>,
    /// The first roll call that can tell whether the ring is whole: neighbours have not changed since.
    mark: u64,
    returned: Option<(u64, Mono)>,
    round_trip_us: Option<u64>,
    /// The last time that the circle was known to be whole.
    whole_at: Mono,
    /// As the last roll call found it, this node first.
    circle: Vec<Member>,
    /// Members of some time that did not leave.
    known: BTreeMap<Sid, Member>,
    left: VecDeque<Origin>,
    told: Vec<Sid>,
    /// The highest number that was given away.
    given: Option<Sid>,
}

impl KnownMembers {
    pub(super) fn new(settings: &RingSettings) -> Self {
        let me = &settings.me;
        Self {
            me: me.origin.sid,
            has_secret: settings.has_secret,
            latest: limits::RING_INCARNATION_MAX,
            number: 0,
            sent: VecDeque::new(),
            last_sent: None,
            mark: 1,
            returned: None,
            round_trip_us: None,
            whole_at: Mono::ZERO,
            circle: vec![me.clone()],
            known: BTreeMap::new(),
            left: VecDeque::new(),
            told: vec![me.origin.sid],
            given: None,
        }
    }

    /// A neighbour is another than before.
    const fn changed(&mut self) {
        self.mark = self.number + 1;
        self.last_sent = None;
    }

    /// Incarnations are terms. Clocks of two machines differ, but not by a year.
    pub(super) const fn look_at_clock(&mut self, now: Mono) {
        self.latest = latest_term(now.as_millis(), limits::RING_INCARNATION_AHEAD_MS);
    }

    pub(super) const fn is_plausible(&self, incarnation: u64) -> bool {
        incarnation <= self.latest
    }

    /// A member, as another one reports it. Without a secret the reporter may be anybody: what is known stays.
    pub(super) fn know(&mut self, member: &Member) {
        let there = self.known.get(&member.origin.sid);
        if there.is_none_or(|there| self.has_secret && there.origin.incarnation <= member.origin.incarnation) {
            self.insert(member);
        }
    }

    /// A member of the circle, by a roll call that came round. Without a secret the last one counts, whatever was claimed before: so
    /// nothing false stays for longer than a round.
    fn saw(&mut self, member: &Member) {
        if self.has_secret { self.know(member) } else { self.insert(member) }
    }

    fn insert(&mut self, member: &Member) {
        let sid = member.origin.sid;
        let has_room = self.known.len() < limits::RING_MEMBERS_MAX * 2 || self.known.contains_key(&sid);
        let is_news = sid != self.me && !self.left.contains(&member.origin);
        if has_room && is_news && self.is_plausible(member.origin.incarnation) {
            self.known.insert(sid, member.clone());
        }
    }

    /// A broker, as it reports itself: it cannot take a number that is another's.
    pub(super) fn meet(&mut self, member: &Member) {
        let there = self.known.get(&member.origin.sid);
        if there.is_none_or(|there| there.address == member.address) {
            self.left.retain(|left| *left != member.origin);
            self.know(member);
        }
    }

    pub(super) fn left(&mut self, origin: Origin) {
        self.known.retain(|_, member| member.origin != origin);
        self.circle.retain(|member| member.origin != origin);
        self.left.push_back(origin);
        if self.left.len() > limits::RING_MEMBERS_MAX {
            self.left.pop_front();
        }
    }

    pub(super) fn has_left(&self, sid: Sid) -> bool {
        self.left.iter().any(|left| left.sid == sid) && !self.known.contains_key(&sid)
    }

    /// The latest life that is known.
    pub(super) fn incarnation(&self, sid: Sid) -> Option<u64> {
        self.known.get(&sid).map(|member| member.origin.incarnation)
    }

    /// The member with that sid in the circle.
    pub(super) fn member(&self, sid: Sid) -> Option<&Member> {
        self.circle.iter().find(|member| member.origin.sid == sid)
    }

    pub(super) fn members(&self) -> Vec<Member> {
        self.circle.clone()
    }

    pub(super) const fn count(&self) -> usize {
        self.circle.len()
    }

    /// The number of the last that was sent.
    pub(super) const fn last(&self) -> u64 {
        self.number
    }

    pub(super) const fn whole_at(&self) -> Mono {
        self.whole_at
    }

    pub(super) const fn round_trip_us(&self) -> Option<u64> {
        self.round_trip_us
    }

    /// Those after that one in the circle, up to this node.
    pub(super) fn after(&self, sid: Sid) -> Vec<Member> {
        let at = self.circle.iter().position(|member| member.origin.sid == sid).unwrap_or(0);
        self.circle.iter().skip(at + 1).cloned().collect()
    }

    /// Everyone else, those of the circle first.
    pub(super) fn others(&self) -> impl Iterator<Item = &Member> {
        self.circle.iter().skip(1).chain(self.known.values())
    }

    /// Members that are not in the circle and did not leave.
    pub(super) fn lost(&self) -> impl Iterator<Item = &Member> {
        self.known.values().filter(|member| self.member(member.origin.sid).is_none())
    }

    /// In a ring in order: the member to send to. `None`: the only one.
    pub(super) fn place_of(&self, sid: Sid) -> Option<Member> {
        let by_sid = |member: &&Member| member.origin.sid;
        let others = || self.circle.iter().filter(|member| member.origin.sid != sid);
        others()
            .filter(|member| member.origin.sid > sid)
            .min_by_key(by_sid)
            .or_else(|| others().min_by_key(by_sid))
            .cloned()
    }

    /// The number after the highest.
    pub(super) fn free_sid(&mut self) -> Option<Sid> {
        let all = self.circle.iter().chain(self.known.values()).map(|member| member.origin.sid);
        let free = all.chain(self.given).max()?.get().checked_add(1).map(Sid::new)?;
        self.given = Some(free);
        Some(free)
    }

    /// The lowest number of the circle.
    pub(super) fn lowest(&self) -> Option<Sid> {
        self.circle.iter().map(|member| member.origin.sid).min()
    }
}

impl RingNode {
    /// A neighbour is another than before: what was sent until now tells nothing about the ring.
    pub(super) const fn neighbour_changed(&mut self) {
        self.roll.changed();
    }

    /// Whether the ring is known to be a circle.
    pub(super) fn is_whole(&self) -> bool {
        let fresh_ms = self.settings.timers.roll_ms * FRESH_ROLLS;
        let is_fresh = |(number, at): (u64, Mono)| number >= self.roll.mark && self.now.millis_since(at) <= fresh_ms;
        let is_linked = self.state.next().is_some() && self.previous.conn.is_some();
        matches!(self.state, NodeState::Alone(None)) || (is_linked && self.roll.returned.is_some_and(is_fresh))
    }

    /// Whether that life of a broker is in the circle, as far as this node knows.
    pub(in crate::ring) fn is_in_circle(&self, origin: Origin) -> bool {
        !matches!(self.state, NodeState::Off | NodeState::Alone(_))
            && self.roll.circle.iter().any(|member| member.origin == origin)
    }

    /// The ring as this node knows it.
    pub(super) fn circle(&self) -> Circle {
        let members = if self.state.is_alone() { vec![self.settings.me.clone()] } else { self.roll.members() };
        Circle { whole: self.is_whole(), members }
    }

    pub(super) fn tick_roll(&mut self, out: &mut Vec<RingEffect>) {
        if matches!(self.state, NodeState::Alone(None)) {
            self.roll.whole_at = self.now;
            self.roll.circle = vec![self.settings.me.clone()];
            self.tell_members(out);
        } else if self.roll_deadline().is_some_and(|at| at <= self.now) {
            self.call_roll(out);
        }
    }

    pub(super) fn roll_deadline(&self) -> Option<Mono> {
        self.state.next()?;
        Some(self.roll.last_sent.map_or(self.now, |sent| sent.plus_millis(self.settings.timers.roll_ms)))
    }

    /// Publications are under way, and no roll call behind them.
    pub(super) fn ask_whether_round(&mut self, out: &mut Vec<RingEffect>) {
        if self.publications.oldest().is_some() && self.roll.sent.is_empty() {
            self.call_roll(out);
        }
    }

    pub(super) fn call_roll(&mut self, out: &mut Vec<RingEffect>) {
        if self.state.next().is_none() || matches!(self.state, NodeState::Leaving(_)) {
            self.roll.last_sent = Some(self.now);
            return;
        }
        self.roll.number += 1;
        self.roll.last_sent = Some(self.now);
        self.roll.sent.push_back((self.roll.number, self.now, self.publications.last()));
        if self.roll.sent.len() > UNDER_WAY_MAX {
            self.roll.sent.pop_front();
        }
        let me = self.settings.me.clone();
        let (origin, number, round) = (me.origin, self.roll.number, self.publications.round());
        self.pass_on(RingMessage::RollCall { origin, number, round, members: vec![me] }, out);
    }

    /// A roll call came.
    pub(super) fn called(
        &mut self,
        id: ConnId,
        origin: Origin,
        number: u64,
        round: u64,
        mut members: Vec<Member>,
        out: &mut Vec<RingEffect>,
    ) {
        let me = self.settings.me.clone();
        if origin == me.origin {
            return self.roll_came_round(id, number, members, out);
        }
        if origin.sid == me.origin.sid {
            self.counters.forged += 1;
            return;
        }
        self.came_round_up_to(origin, round);
        if members.len() >= limits::RING_MEMBERS_MAX {
            self.counters.hop_limit += 1;
            return;
        }
        if let Some(other) = members.iter().find(|member| member.origin.sid == me.origin.sid) {
            return self.came_by_namesake(other, out);
        }
        // A leaver passes it on and is not counted.
        if !matches!(self.state, NodeState::Leaving(_)) {
            members.push(me);
        }
        self.pass_on(RingMessage::RollCall { origin, number, round, members }, out);
    }

    /// A roll call came through another broker with this sid. Usually that was an earlier life, or the sender is gone. But
    /// healing can close a circle around two brokers with one sid. Each of them stops the roll calls of everyone, so the
    /// circle is never whole: the one that started later leaves it.
    fn came_by_namesake(&mut self, other: &Member, out: &mut Vec<RingEffect>) {
        let me = &self.settings.me;
        let is_later = (me.origin.incarnation, &me.address) > (other.origin.incarnation, &other.address);
        let is_linked =
            matches!(self.state, NodeState::Member(_)) && self.state.next().is_some() && self.previous.conn.is_some();
        let broken_ms = self.now.millis_since(self.roll.whole_at());
        if other.address != me.address && is_later && is_linked && broken_ms >= self.settings.timers.wait_ms {
            out.push(RingEffect::Host(RingHostEffect::Tell(RingNews::Namesake { address: other.address.clone() })));
            self.be_alone(out);
        }
    }

    fn roll_came_round(&mut self, id: ConnId, number: u64, members: Vec<Member>, out: &mut Vec<RingEffect>) {
        if number > self.roll.number || self.roll.returned.is_some_and(|(last, _)| number <= last) {
            return;
        }
        self.roll.returned = Some((number, self.now));
        while let Some((sent, at, seq)) = self.roll.sent.pop_front_if(|(sent, _, _)| *sent <= number) {
            if sent == number {
                self.roll.round_trip_us = Some(self.now.as_micros().saturating_sub(at.as_micros()));
            }
            if sent == number && number >= self.roll.mark {
                self.came_round(seq, out);
            }
        }
        self.ask_whether_round(out);
        self.roll.circle = members;
        for member in self.roll.members().iter().skip(1) {
            self.roll.saw(member);
        }
        if self.is_whole() {
            self.roll.whole_at = self.now;
            self.previous.lost = None;
            self.forget_the_absent(number);
            self.tell_members(out);
        }
        if number >= self.roll.mark {
            self.came_by(id, out);
        }
    }

    /// Says who came and who went, if anybody did.
    fn tell_members(&mut self, out: &mut Vec<RingEffect>) {
        let members: Vec<Sid> = self.roll.circle.iter().map(|member| member.origin.sid).collect();
        let came: Vec<Sid> = members.iter().copied().filter(|sid| !self.roll.told.contains(sid)).collect();
        let went: Vec<Sid> = self.roll.told.iter().copied().filter(|sid| !members.contains(sid)).collect();
        if !came.is_empty() || !went.is_empty() {
            self.roll.told.clone_from(&members);
            out.push(RingEffect::Host(RingHostEffect::Tell(RingNews::Whole { members, came, went })));
        }
    }
}
