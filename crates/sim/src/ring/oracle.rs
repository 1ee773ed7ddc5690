//! Rules of a ring, judged by publications, deliveries and the wires.

use std::collections::{BTreeMap, BTreeSet};

use turno_engine::Event;
use turno_engine::ring::{RetConn, RingInput, RingMessage, RingNode};
use turno_proto::model::ring::view::RingCounters;
use turno_proto::model::ring::{LostMember, RingState, Sid};

use super::wires::{BrokerPlace, LifeNumber, Wires};

/// The part of an input that the oracle needs once it is handled.
#[derive(Clone, Copy, Debug)]
pub(super) enum Note {
    /// Accepted, by that life.
    Have(LifeNumber),
    /// Something was published there.
    Publish,
    Other,
}

impl Note {
    pub(super) fn of(input: &RingInput, place: BrokerPlace, wires: &Wires) -> Self {
        match input {
            RingInput::Publish { .. } => Self::Publish,
            RingInput::Message { conn, message: RingMessage::Have { .. } } => {
                wires.peer(place, *conn).map_or(Self::Other, Self::Have)
            }
            _ => Self::Other,
        }
    }
}

/// The life that published an event, and its number there.
pub(super) fn number(event: &Event) -> Option<(LifeNumber, u64)> {
    let text = std::str::from_utf8(&event.payload.bytes).ok()?;
    let mut parts = text.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[derive(Debug)]
struct SeenLife {
    place: BrokerPlace,
    sid: Sid,
    /// The step since which it has been between two neighbours, or has lost one.
    fit: Option<u64>,
    /// The step at which the others closed around it.
    skipped: u64,
    /// The life it sends to, or did last.
    next: Option<LifeNumber>,
    /// Its publications that have not come round: number, step, and who was in the circle.
    under_way: Vec<(u64, u64, Vec<LifeNumber>)>,
    /// Publications that it got, by origin.
    got: BTreeMap<LifeNumber, Vec<u64>>,
    /// Those that told it that its next one, or itself, is lost.
    callers: BTreeSet<Sid>,
}

#[derive(Debug)]
pub(super) struct RingOracle {
    lives: BTreeMap<LifeNumber, SeenLife>,
    /// Somebody lies: only what no lie can change is judged.
    lies: bool,
    pub(super) came_round: u64,
    pub(super) delivered: u64,
    /// Publications that leavers sent at once, beyond their windows.
    flushed: usize,
    pub(super) stopped: BTreeSet<LifeNumber>,
}

const fn is_fit(state: RingState) -> bool {
    matches!(state, RingState::Member | RingState::Rewiring | RingState::LinkDown)
}

impl RingOracle {
    pub(super) fn new(lies: bool) -> Self {
        let (lives, stopped) = (BTreeMap::new(), BTreeSet::new());
        Self { lives, lies, came_round: 0, delivered: 0, flushed: 0, stopped }
    }

    pub(super) fn born(&mut self, life: LifeNumber, place: BrokerPlace, sid: Sid) {
        let seen = SeenLife {
            place,
            sid,
            fit: None,
            skipped: 0,
            next: None,
            under_way: Vec::new(),
            got: BTreeMap::new(),
            callers: BTreeSet::new(),
        };
        self.lives.insert(life, seen);
    }

    pub(super) fn died(&mut self, life: LifeNumber) {
        if let Some(seen) = self.lives.get_mut(&life) {
            seen.fit = None;
        }
    }

    pub(super) fn place(&self, life: LifeNumber) -> BrokerPlace {
        self.lives[&life].place
    }

    pub(super) fn next(&self, life: LifeNumber) -> Option<LifeNumber> {
        self.lives[&life].next
    }

    /// The lives after that one, as each of them sends, or did last, until they come back or end.
    fn chain(&self, from: LifeNumber) -> Vec<LifeNumber> {
        let mut chain = Vec::new();
        let mut at = self.lives[&from].next;
        while let Some(life) = at.filter(|life| *life != from && !chain.contains(life)) {
            chain.push(life);
            at = self.lives[&life].next;
        }
        chain
    }

    /// Something is about to be published.
    pub(super) fn issued(&mut self, life: LifeNumber, number: u64, step: u64) {
        let is_there = |other: &LifeNumber| self.lives[other].fit.is_some();
        let members = self.chain(life).into_iter().filter(is_there).collect();
        if let Some(seen) = self.lives.get_mut(&life) {
            seen.under_way.push((number, step, members));
        }
    }

    pub(super) fn delivered(&mut self, life: LifeNumber, event: &Event) {
        let Some((origin, number)) = number(event) else {
            assert!(self.lies, "I16: something is delivered that nobody published");
            return;
        };
        let from = &self.lives[&origin];
        let (place, sid) = (from.place, from.sid);
        let Some(seen) = self.lives.get_mut(&life) else { return };
        assert!(seen.place != place && seen.sid != sid, "I16: {origin}.{number} is delivered where it was published");
        let got = seen.got.entry(origin).or_default();
        let last = got.last().copied().unwrap_or(0);
        assert!(number > last, "I16: {origin}.{number} is delivered at {} ({life}) after {last}", seen.place);
        got.push(number);
        self.delivered += 1;
    }

    /// A node has dealt with something.
    pub(super) fn handled(
        &mut self,
        life: LifeNumber,
        step: u64,
        note: Note,
        before: (RingState, RingCounters),
        node: &RingNode,
    ) {
        let counters = *node.counters();
        match note {
            Note::Publish if counters.published == before.1.published => {
                // It is alone, or out of the ring: nothing is sent.
                if let Some(seen) = self.lives.get_mut(&life) {
                    seen.under_way.pop();
                }
            }
            Note::Have(peer) => self.sends_to(life, peer, step, node),
            Note::Publish | Note::Other => {}
        }
        self.returned(life, counters.came_round - before.1.came_round);
        let (was, is) = (before.0, node.state());
        if was != is {
            let is_empty = node.view().not_round == 0;
            let Some(seen) = self.lives.get_mut(&life) else { return };
            if is_fit(is) != is_fit(was) {
                seen.fit = is_fit(is).then_some(step);
            }
            if is_empty {
                seen.under_way.clear();
            }
            if is == RingState::Leaving {
                self.flushed += seen.under_way.len();
            }
        }
    }

    /// Its origin counts so many more as come round: the oldest.
    fn returned(&mut self, life: LifeNumber, count: u64) {
        self.came_round += count;
        let Some(seen) = self.lives.get_mut(&life) else { return };
        let back = usize::try_from(count).ok().filter(|count| *count <= seen.under_way.len());
        let back = back.expect("I18: no more comes round than was published");
        let back: Vec<_> = seen.under_way.drain(..back).collect();
        for (number, issued, members) in back {
            for member in members {
                let other = &self.lives[&member];
                let was_there = other.fit.is_some_and(|fit| fit <= issued) && other.skipped < issued;
                if !was_there || self.lies {
                    continue;
                }
                let got = other.got.get(&life).is_some_and(|got| got.binary_search(&number).is_ok());
                assert!(got, "I18: {life}.{number} came round, and {} ({member}) has not got it", other.place);
            }
        }
    }

    /// A node sends to that one from now on: those that it sent to before, up to the first that is behind the new one, are
    /// given up.
    fn sends_to(&mut self, life: LifeNumber, next: LifeNumber, step: u64, node: &RingNode) {
        let sid = self.lives[&next].sid;
        if node.next_sid() != Some(sid) {
            return;
        }
        let old = self.lives[&life].next;
        if let Some(seen) = self.lives.get_mut(&life) {
            seen.next = Some(next);
        }
        let behind = self.chain(life);
        let mut at = old;
        let mut skipped = BTreeSet::new();
        while let Some(other) = at.filter(|other| *other != life && !behind.contains(other) && skipped.insert(*other)) {
            at = self.lives[&other].next;
        }
        for other in skipped {
            if let Some(seen) = self.lives.get_mut(&other) {
                seen.skipped = step;
            }
        }
    }

    /// A node is about to hear what is said round the ring.
    pub(super) fn hears(&mut self, life: LifeNumber, input: &RingInput, next: Option<Sid>) {
        let RingInput::Message {
            message: RingMessage::RetConn(RetConn::Call { caller, content: LostMember::Sid(sid), .. }),
            ..
        } = input
        else {
            return;
        };
        if let Some(seen) = self.lives.get_mut(&life)
            && (next == Some(*sid) || seen.sid == *sid)
        {
            seen.callers.insert(caller.origin.sid);
        }
    }

    /// A node comes to another in place of a lost one: it has nobody to send to, or was told that its next one is lost.
    pub(super) fn heals(&self, life: LifeNumber, to: LifeNumber, next: Option<Sid>) {
        let (seen, to) = (&self.lives[&life], self.lives[&to].sid);
        let is_called = next.is_none() || seen.callers.contains(&to);
        assert!(self.lies || is_called, "S3.22: {} comes to {to}, and has somebody to send to", seen.place);
    }

    /// The kept publications of a member are bounded by the windows of all that ever published.
    pub(super) fn judge_buffers(&self, node: &RingNode, window: usize) {
        let (kept, most) = (node.view().buffered, self.lives.len() * window + self.flushed);
        assert!(self.lies || kept <= most as u64, "I21: {kept} publications are kept, and {most} can be under way");
    }

    /// Whether a life got that publication.
    pub(super) fn got(&self, life: LifeNumber, origin: LifeNumber, number: u64) -> bool {
        self.lives[&life].got.get(&origin).is_some_and(|got| got.binary_search(&number).is_ok())
    }
}
