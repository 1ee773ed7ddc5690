//! Publications: each member receives each once, in the order of its origin.
//!
//! A member accepts only what comes after the last it has of an origin, keeps it until the origin says that it has come
//! round, and sends it again to a new next one that lacks it. So whatever was on its way through a member that fell is sent
//! again by the one before it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use turno_proto::model::ring::{LastReceived, Origin, Publication, PublicationRef, RingMessage};
use turno_proto::model::topic::{Event, EventRef};
use turno_proto::model::{Code, ConnId, Mono, limits};

use super::kept::{KeptPublications, SpareBuffers, bytes_of};
use super::states::NodeState;
use super::{RingEffect, RingHostEffect, RingNews, RingNode, RingPeerEffect};

/// The publications that a node knows.
#[derive(Debug, Default)]
pub(super) struct Publications {
    /// The last of its own.
    seq: u64,
    /// All of its own up to this one have come round.
    round: u64,
    /// Its own that have not, oldest first: since when, and how many bytes.
    under_way: VecDeque<(u64, Mono, usize)>,
    under_way_bytes: usize,
    /// Its own that wait for these.
    waiting: VecDeque<Arc<Event>>,
    is_slowed: bool,
    /// Of each other origin.
    seen: BTreeMap<Origin, OriginProgress>,
    /// By origin, itself included: what has not come round.
    kept: BTreeMap<Origin, KeptPublications>,
    kept_count: usize,
    kept_bytes: usize,
    /// Memory for what is kept.
    spare: SpareBuffers,
    /// When the oldest was last warned of.
    warned: Option<Mono>,
}

/// The progress of one origin at this node.
#[derive(Clone, Copy, Debug, Default)]
struct OriginProgress {
    /// The last that it has, or knows to have come round.
    has: u64,
    /// The last that it delivered. It may have thrown some of these away, and then passes them on once more.
    delivered: u64,
}

/// The neighbour said something that cannot follow what it said before.
struct OutOfOrder;

/// The next steps for a publication that came.
#[derive(Debug, Default)]
pub(crate) struct PassedPublication<'a> {
    /// It is for the subscribers here.
    pub(crate) is_new: bool,
    /// It goes on, to that one.
    pub(crate) on: Option<(ConnId, PublicationRef<'a>)>,
}

impl Publications {
    /// Roll calls after that one will be behind it.
    fn keep(&mut self, publication: PublicationRef<'_>, roll: u64) {
        self.kept_count += 1;
        self.kept_bytes += bytes_of(publication.event);
        self.kept.entry(publication.origin).or_default().push(publication, roll, &mut self.spare);
    }

    /// Whether more of that origin's is under way than it may have sent.
    fn is_flooded_by(&self, origin: Origin) -> bool {
        self.kept
            .get(&origin)
            .is_some_and(|kept| kept.bytes() > limits::RING_KEPT_BYTES_MAX || kept.len() > limits::RING_KEPT_MAX)
    }

    /// All of that origin's up to that one have come round.
    fn trim(&mut self, origin: Origin, round: u64) {
        let Some(kept) = self.kept.get_mut(&origin) else { return };
        let (count, bytes) = kept.trim(round, &mut self.spare);
        self.kept_count -= count;
        self.kept_bytes -= bytes;
    }

    /// Throws away the publications of that origin. Returns the number of the first.
    fn forget(&mut self, origin: Origin) -> Option<u64> {
        let kept = self.kept.remove(&origin)?;
        self.kept_count -= kept.len();
        self.kept_bytes -= kept.bytes();
        kept.first()
    }

    /// The same, and no other member can get it from here: it is not marked as received.
    fn give_up(&mut self, origin: Origin) {
        if let (Some(first), Some(seen)) = (self.forget(origin), self.seen.get_mut(&origin)) {
            seen.has = seen.has.min(first - 1);
        }
    }

    pub(super) const fn round(&self) -> u64 {
        self.round
    }

    pub(super) const fn last(&self) -> u64 {
        self.seq
    }

    pub(super) fn under_way(&self) -> u64 {
        (self.under_way.len() + self.waiting.len()) as u64
    }

    pub(super) fn oldest(&self) -> Option<Mono> {
        self.under_way.front().map(|(_, at, _)| *at)
    }

    pub(super) const fn kept(&self) -> (u64, u64) {
        (self.kept_count as u64, self.kept_bytes as u64)
    }

    pub(super) const fn is_slowed(&self) -> bool {
        self.is_slowed
    }

    /// Asserts that the counts are right.
    pub(super) fn check(&self, me: Origin) {
        let all = || self.kept.values();
        assert_eq!(
            self.kept_count,
            all().map(KeptPublications::len).sum::<usize>(),
            "ring: publications that are kept"
        );
        assert_eq!(self.kept_bytes, all().map(KeptPublications::bytes).sum::<usize>(), "ring: bytes that are kept");
        let own: usize = self.under_way.iter().map(|(_, _, bytes)| bytes).sum();
        assert_eq!(self.under_way_bytes, own, "ring: bytes under way");
        assert!(self.round <= self.seq, "ring: nothing comes round before it is sent");
        assert!(self.waiting.is_empty() || self.is_slowed, "ring: what waits slows publishers down");
        for (origin, kept) in &self.kept {
            let last = if *origin == me { Some(self.seq) } else { self.seen.get(origin).map(|seen| seen.has) };
            kept.check(*origin, last.unwrap_or(0));
        }
    }
}

fn say_publication(conn: ConnId, publication: PublicationRef<'_>) -> RingEffect {
    RingEffect::Peer(RingPeerEffect::Say { conn, message: RingMessage::Publish(publication.to_publication()) })
}

/// This node's own.
impl RingNode {
    /// Something is published here. Returns it if it goes out at once, and to whom; what else follows comes behind it.
    pub(in crate::ring) fn publish<'a>(
        &mut self,
        now: Mono,
        event: EventRef<'a>,
        out: &mut Vec<RingEffect>,
    ) -> Option<(ConnId, PublicationRef<'a>)> {
        self.now = self.now.max(now);
        if matches!(self.state, NodeState::Off | NodeState::Alone(None)) {
            return None;
        }
        self.counters.published += 1;
        if !self.has_room() || !self.publications.waiting.is_empty() {
            self.publications.waiting.push_back(Arc::new(event.to_event()));
            self.slow(true, out);
            return None;
        }
        let publication = self.send(event);
        self.ask_whether_round(out);
        self.state.next().map(|next| (next, publication))
    }

    /// The same as an input of its own.
    pub(super) fn publish_value(&mut self, event: &Event, out: &mut Vec<RingEffect>) {
        let more = out.len();
        if let Some((conn, publication)) = self.publish(self.now, EventRef::from(event), out) {
            out.insert(more, say_publication(conn, publication));
        }
    }

    fn has_room(&self) -> bool {
        let own = &self.publications;
        own.under_way_bytes < self.settings.window_bytes && own.under_way.len() < self.settings.window
    }

    fn slow(&mut self, is_slowed: bool, out: &mut Vec<RingEffect>) {
        if self.publications.is_slowed != is_slowed {
            self.publications.is_slowed = is_slowed;
            out.push(RingEffect::Peer(RingPeerEffect::Slow(is_slowed)));
        }
    }

    /// The next of its own: from now on it is under way.
    fn send<'a>(&mut self, event: EventRef<'a>) -> PublicationRef<'a> {
        let (origin, now, roll) = (self.settings.me.origin, self.now, self.roll.last());
        let own = &mut self.publications;
        own.seq += 1;
        let bytes = bytes_of(event);
        own.under_way.push_back((own.seq, now, bytes));
        own.under_way_bytes += bytes;
        let publication = PublicationRef { origin, seq: own.seq, after: own.seq - 1, round: own.round, hops: 0, event };
        own.keep(publication, roll);
        publication
    }

    fn send_waiting(&mut self, event: &Event, out: &mut Vec<RingEffect>) {
        let publication = self.send(EventRef::from(event)).to_publication();
        self.pass_on(RingMessage::Publish(publication), out);
        self.ask_whether_round(out);
    }

    /// Before it leaves: the remaining members must have them.
    pub(super) fn send_all_waiting(&mut self, out: &mut Vec<RingEffect>) {
        while let Some(event) = self.publications.waiting.pop_front() {
            self.send_waiting(&event, out);
        }
        self.slow(false, out);
    }

    /// A roll call came back that was sent after that one: all members have it.
    pub(super) fn came_round(&mut self, seq: u64, out: &mut Vec<RingEffect>) {
        let own = &mut self.publications;
        if seq <= own.round {
            return;
        }
        own.round = seq;
        while let Some((_, _, bytes)) = own.under_way.pop_front_if(|(number, _, _)| *number <= seq) {
            own.under_way_bytes -= bytes;
            self.counters.came_round += 1;
        }
        if own.under_way.is_empty() {
            own.warned = None;
        }
        own.trim(self.settings.me.origin, seq);
        while self.has_room() {
            let Some(event) = self.publications.waiting.pop_front() else { break };
            self.send_waiting(&event, out);
        }
        if self.publications.waiting.is_empty() {
            self.slow(false, out);
        }
    }

    /// There is nobody else: nothing is under way.
    pub(super) fn nobody_else(&mut self, out: &mut Vec<RingEffect>) {
        let own = &mut self.publications;
        own.round = own.seq;
        own.under_way.clear();
        own.waiting.clear();
        own.under_way_bytes = 0;
        for origin in own.kept.keys().copied().collect::<Vec<_>>() {
            own.give_up(origin);
        }
        self.slow(false, out);
    }

    pub(super) fn tick_overdue(&mut self, out: &mut Vec<RingEffect>) {
        let now = self.now;
        if self.overdue_deadline().is_none_or(|at| now < at) {
            return;
        }
        let Some((seq, at, _)) = self.publications.under_way.front().copied() else { return };
        self.publications.warned = Some(now);
        out.push(RingEffect::Host(RingHostEffect::Tell(RingNews::Overdue { seq, millis: now.millis_since(at) })));
    }

    pub(super) fn overdue_deadline(&self) -> Option<Mono> {
        let (_, at, _) = self.publications.under_way.front()?;
        Some(self.publications.warned.unwrap_or(*at).plus_millis(self.settings.timers.warn_ms))
    }
}

/// Those of others.
impl RingNode {
    /// The last publication of each origin, for a new predecessor. Of its own it has all: the next roll call tells whether they came round.
    pub(super) fn had(&self) -> Vec<LastReceived> {
        let own = LastReceived { origin: self.settings.me.origin, seq: self.publications.seq };
        let others =
            self.publications.seen.iter().map(|(origin, seen)| LastReceived { origin: *origin, seq: seen.has });
        std::iter::once(own).chain(others).take(limits::RING_ORIGINS_MAX).collect()
    }

    /// Sends what a new next one lacks.
    pub(super) fn replay(&self, id: ConnId, had: &[LastReceived], out: &mut Vec<RingEffect>) {
        let had: BTreeMap<Origin, u64> = had.iter().map(|had| (had.origin, had.seq)).collect();
        for (origin, kept) in &self.publications.kept {
            let last = had.get(origin).copied().unwrap_or(0);
            for publication in kept.after(*origin, last).filter(|one| one.hops < limits::RING_HOPS_MAX) {
                self.say(id, RingMessage::Publish(publication), out);
            }
        }
    }

    /// PUBLISH, on its way round: what becomes of it, and mostly nothing else. What does comes behind it.
    pub(in crate::ring) fn pass<'a>(
        &mut self,
        now: Mono,
        id: ConnId,
        publication: PublicationRef<'a>,
        out: &mut Vec<RingEffect>,
    ) -> PassedPublication<'a> {
        self.now = self.now.max(now);
        self.received(id, publication, out).unwrap_or_else(|OutOfOrder| {
            self.out_of_order(id, out);
            self.tick(out);
            self.settle(out);
            PassedPublication::default()
        })
    }

    /// The same as an input of its own.
    pub(super) fn pass_value(&mut self, id: ConnId, publication: &Publication, out: &mut Vec<RingEffect>) {
        let more = out.len();
        let PassedPublication { is_new, on } = self.pass(self.now, id, PublicationRef::from(publication), out);
        let deliver = is_new.then(|| RingEffect::Deliver { event: Arc::clone(&publication.event) });
        let say = on.map(|(conn, publication)| say_publication(conn, publication));
        out.splice(more..more, deliver.into_iter().chain(say));
    }

    fn received<'a>(
        &mut self,
        id: ConnId,
        publication: PublicationRef<'a>,
        out: &mut Vec<RingEffect>,
    ) -> Result<PassedPublication<'a>, OutOfOrder> {
        let PublicationRef { origin, seq, after, round, hops, .. } = publication;
        let me = self.settings.me.origin;
        let nothing = Ok(PassedPublication::default());
        let Some(conn) = self.conns.get_mut(&id).filter(|conn| conn.role.is_heard()) else { return nothing };
        // On one connection nothing may be missing; what it begins with is what the other end has to give.
        let last = conn.heard.insert(origin, seq);
        if last.is_some_and(|last| seq <= last || after > last) {
            return Err(OutOfOrder);
        }
        if origin == me {
            // It ends here. That it has been everywhere the roll call behind it tells: it may have come by another way than
            // the circle, sent again by a member that has gone elsewhere.
            if seq > self.publications.seq {
                self.counters.forged += 1;
            }
            return nothing;
        }
        if origin.sid == me.sid && origin.incarnation > me.incarnation {
            self.counters.forged += 1;
            return nothing;
        }
        self.publications.trim(origin, round);
        let seen = self.publications.seen.get(&origin).copied();
        if seen.is_some_and(|seen| seq <= seen.has) {
            self.counters.duplicates += 1;
            return nothing;
        }
        if hops >= limits::RING_HOPS_MAX {
            self.counters.hop_limit += 1;
            return nothing;
        }
        if self.publications.is_flooded_by(origin) {
            self.counters.flooded += 1;
            return nothing;
        }
        let is_new = self.see(origin, seq, out);
        // Publications that are missing here are missing for those behind as well, unless they have them already.
        let after = seen.map_or(after, |seen| after.min(seen.has));
        let publication = PublicationRef { after, hops: hops + 1, ..publication };
        let mut passed = PassedPublication { is_new: is_new && origin.sid != me.sid, on: None };
        // A member that is left alone hears the last messages of a leaver, and has nobody to pass them to.
        if !matches!(self.state, NodeState::Alone(None)) {
            self.publications.keep(publication, self.roll.last());
            // Where it was published it is known, and that it came so far the roll call behind it tells.
            let next = self.state.next().filter(|_| self.next_peer().is_none_or(|next| next.origin != origin));
            passed.on = next.map(|next| (next, publication));
        }
        Ok(passed)
    }

    /// Has it from now on; whether it was not delivered before.
    fn see(&mut self, origin: Origin, seq: u64, out: &mut Vec<RingEffect>) -> bool {
        let is_known = self.publications.seen.contains_key(&origin);
        let seen = self.publications.seen.entry(origin).or_default();
        let last = seen.delivered;
        *seen = OriginProgress { has: seq, delivered: last.max(seq) };
        if seq <= last {
            self.counters.duplicates += 1;
            return false;
        }
        self.counters.received += 1;
        if let Some(count) = is_known.then(|| seq - last - 1).filter(|count| *count > 0) {
            self.counters.missed = self.counters.missed.saturating_add(count);
            out.push(RingEffect::Host(RingHostEffect::Tell(RingNews::Missed { origin: origin.sid, count })));
        }
        if self.publications.seen.len() >= limits::RING_ORIGINS_MAX {
            self.forget_a_life(origin);
        }
        true
    }

    /// The oldest life of a member that had several; otherwise anyone's that is not in the circle.
    fn forget_a_life(&mut self, but: Origin) {
        let is_over =
            |origin: &&Origin| **origin != but && self.roll.member(origin.sid).is_none_or(|one| one.origin != **origin);
        if let Some(origin) =
            self.publications.seen.keys().filter(is_over).min_by_key(|origin| origin.incarnation).copied()
        {
            self.publications.seen.remove(&origin);
        }
    }

    /// The neighbour made a mistake, or a bad one: both begin anew, and what is missing is sent again.
    fn out_of_order(&mut self, id: ConnId, out: &mut Vec<RingEffect>) {
        let Some(conn) = self.remove(id) else { return };
        out.push(RingEffect::Peer(RingPeerEffect::Close { conn: id, code: Some(Code::BadSequence) }));
        out.push(RingEffect::Host(RingHostEffect::Tell(RingNews::Refused {
            peer: conn.sid(),
            code: Code::BadSequence,
        })));
        if self.previous.conn == Some(id) {
            self.previous_lost(conn, out);
        }
    }

    /// A roll call came round: a member that is not in the circle says nothing more, and all that it said before that roll call was
    /// sent has been at everyone who is. It still counts as received: a member outside the circle was not in the ring.
    pub(super) fn forget_the_absent(&mut self, number: u64) {
        let (roll, kept) = (&self.roll, self.publications.kept.iter());
        let absent = kept.filter(|(origin, _)| roll.member(origin.sid).is_none_or(|member| member.origin != **origin));
        let absent: Vec<Origin> =
            absent.filter(|(_, kept)| kept.is_before(number)).map(|(origin, _)| *origin).collect();
        for origin in absent {
            self.publications.forget(origin);
        }
    }

    pub(super) fn came_round_up_to(&mut self, origin: Origin, round: u64) {
        self.publications.trim(origin, round);
    }
}
