//! A broker's place in the ring: a machine without sockets, clock or chance, [`RingInput`] in, [`RingEffect`] out.
//! Connections lead one way, from a member to its next one, which dialled nobody for it.
//!
//! | room | what it decides |
//! |---|---|
//! | `states` | where a node is, and which ways lead from there |
//! | `sending` | whom it sends to: the next one, and the attempt to have another |
//! | `receiving` | who sends to it: openings are taken or refused |
//! | `join` | becoming a member |
//! | `joiners` | others that want to be members |
//! | `heal` | neighbours that are lost |
//! | `leave` | others that leave, leaving itself, and the end of all |
//! | `publish` | publications: each once, in order, and again after a loss |
//! | `kept` | those that have not come round |
//! | `roll` | the roll call: who is in the circle |
//! | `merge` | members that are lost are looked for, and two rings become one |
//! | `view`, `check` | telling what is going on, and that all of it agrees |

mod check;
mod heal;
mod join;
mod joiners;
mod kept;
mod leave;
mod merge;
mod publish;
mod receiving;
mod roll;
mod sending;
mod states;
mod view;

use std::collections::BTreeMap;

use turno_proto::model::ring::view::RingCounters;
use turno_proto::model::ring::{Member, Origin, RetConn, RingState, Sid};
use turno_proto::model::{Code, ConnId, Mono};

use self::join::Joining;
use self::merge::MemberSearch;
pub(crate) use self::publish::PassedPublication;
use self::publish::Publications;
use self::receiving::Previous;
use self::roll::KnownMembers;
use self::states::NodeState;
pub use self::states::{TRANSITIONS, TransitionReason};
use super::{RingEffect, RingHostEffect, RingInput, RingMessage, RingNews, RingPeerEffect, RingSettings};

/// How long a connection may be silent, in attempts to dial.
const FRESH_DIALS: u64 = 3;
/// Connections that have not said what they are for. More: refused, `ring_busy`.
const FRESH_MAX: usize = 256;

/// The role of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionRole {
    /// Somebody dialled and said nothing yet.
    Fresh,
    /// Dialled from here; the other end has not accepted yet.
    Opening,
    /// This node sends there.
    Next,
    /// This node sent there, and said so for the last time; the other end closes it.
    Retired,
    /// The predecessor sends on it.
    Previous,
    /// A predecessor that was: what it still says counts until it closes.
    Draining,
    /// Wants to be the predecessor.
    Joiner,
    /// Dialled from here for one question.
    Probe,
}

impl ConnectionRole {
    /// Whether what it says about the ring counts.
    const fn is_heard(self) -> bool {
        matches!(self, Self::Previous | Self::Draining | Self::Joiner)
    }
}

/// A connection of this node.
#[derive(Clone, Debug)]
struct Conn {
    peer: Option<Member>,
    role: ConnectionRole,
    since: Mono,
    /// It has replayed what was missing here.
    caught_up: bool,
    /// It said that it leaves.
    leaving: bool,
    /// The last publication of each origin that came over it.
    heard: BTreeMap<Origin, u64>,
}

impl Conn {
    fn sid(&self) -> Option<Sid> {
        self.peer.as_ref().map(|peer| peer.origin.sid)
    }
}

/// A broker's place in the ring.
#[derive(Debug)]
pub struct RingNode {
    settings: RingSettings,
    now: Mono,
    state: NodeState,
    /// As which it was last told, and since when.
    told: RingState,
    since: Mono,
    /// Why it is out of the ring, or not in it again so far.
    code: Option<Code>,
    conns: BTreeMap<ConnId, Conn>,
    previous: Previous,
    targets: u32,
    search: MemberSearch,
    roll: KnownMembers,
    publications: Publications,
    counters: RingCounters,
}

impl RingNode {
    /// A node that has not begun; [`RingInput::Tick`] begins it.
    pub fn new(settings: RingSettings, now: Mono) -> Self {
        let (state, told) = match settings.next.clone() {
            Some(next) => (NodeState::Joining(Box::new(Joining::at_start(now, next))), RingState::Joining),
            None => (NodeState::Alone(None), RingState::Alone),
        };
        Self {
            now,
            state,
            told,
            since: now,
            code: None,
            conns: BTreeMap::new(),
            previous: Previous::default(),
            targets: 0,
            search: MemberSearch::default(),
            roll: KnownMembers::new(&settings),
            publications: Publications::default(),
            counters: RingCounters::default(),
            settings,
        }
    }

    /// Something happened.
    pub fn handle(&mut self, now: Mono, input: RingInput, out: &mut Vec<RingEffect>) {
        self.now = self.now.max(now);
        self.roll.look_at_clock(self.now);
        match input {
            RingInput::Publish { event } => return self.publish_value(&event, out),
            RingInput::Message { conn, message: RingMessage::Publish(publication) } => {
                return self.pass_value(conn, &publication, out);
            }
            RingInput::Dialled { target, conn, peer } => self.dialled(target, conn, peer, out),
            RingInput::DialFailed { target, code } => self.dial_failed(target, code, out),
            RingInput::Accepted { conn, peer } => self.accepted(conn, peer, out),
            RingInput::Message { conn, message } => self.hear(conn, message, out),
            RingInput::Closed { conn } => self.closed(conn, out),
            RingInput::Join { next, sid } => self.join_at(next, sid, out),
            RingInput::Leave => self.leave(out),
            RingInput::Shutdown => self.shutdown(out),
            RingInput::Tick => {}
        }
        self.tick(out);
        self.settle(out);
    }

    /// When [`RingInput::Tick`] is due.
    pub fn next_deadline(&self) -> Option<Mono> {
        if matches!(self.state, NodeState::Off) {
            return None;
        }
        let fresh =
            self.conns.values().filter(|conn| conn.role == ConnectionRole::Fresh).map(|conn| self.fresh_until(conn));
        let all = [
            self.attempt_deadline(),
            self.join_deadline(),
            self.joiner_deadline(),
            self.heal_deadline(),
            self.leave_deadline(),
            self.search_deadline(),
            self.roll_deadline(),
            self.overdue_deadline(),
            fresh.min(),
        ];
        all.into_iter().flatten().min()
    }

    /// This broker as a member.
    pub const fn me(&self) -> &Member {
        &self.settings.me
    }

    /// The state of the node.
    pub const fn state(&self) -> RingState {
        self.told
    }

    fn sid(&self) -> Sid {
        self.settings.me.origin.sid
    }

    /// A message on its way round, or about a connection.
    fn hear(&mut self, conn: ConnId, message: RingMessage, out: &mut Vec<RingEffect>) {
        let Some(role) = self.conns.get(&conn).map(|conn| conn.role) else { return };
        // Of a leaver that leaves this one alone only publications are of use: the ring that it speaks of is over.
        if self.state.is_alone() && role == ConnectionRole::Draining {
            return;
        }
        match message {
            RingMessage::RollCall { origin, number, round, members } if role.is_heard() => {
                self.called(conn, origin, number, round, members, out);
            }
            RingMessage::NewConn(message) if role == ConnectionRole::Fresh && message.content.is_none() => {
                self.asked_to_join(conn, out)
            }
            RingMessage::NewConn(message) if role.is_heard() => self.somebody_joins(conn, message, out),
            RingMessage::RetConn(RetConn::Open { purpose }) if role == ConnectionRole::Fresh => {
                self.opened(conn, purpose, out)
            }
            RingMessage::RetConn(RetConn::Call { caller, content, hops }) if role.is_heard() => {
                self.somebody_calls(caller, content, hops, out);
            }
            RingMessage::ServOff { leaver, content, hops } if role.is_heard() => {
                self.somebody_leaves(conn, leaver, content, hops, out);
            }
            RingMessage::Shutdown { origin, hops } if role.is_heard() => self.shut_down_by(origin, hops, out),
            RingMessage::Merge { origin, contact, hops } if role.is_heard() => {
                self.told_to_merge(origin, contact, hops, out)
            }
            RingMessage::CaughtUp { members } if role.is_heard() => self.caught_up(conn, members),
            RingMessage::Have { had } if role == ConnectionRole::Opening => self.welcomed(conn, had, out),
            RingMessage::Refused { code, instead }
                if matches!(role, ConnectionRole::Opening | ConnectionRole::Next | ConnectionRole::Retired) =>
            {
                self.refused(conn, code, instead, out);
            }
            RingMessage::Probe(circle) if role == ConnectionRole::Fresh => self.probed(conn, &circle, out),
            RingMessage::Circle(circle) if role == ConnectionRole::Probe => self.found(conn, &circle, out),
            RingMessage::AskSid if role == ConnectionRole::Fresh => self.asked_for_sid(conn, out),
            // It was under way when the role changed. The session ends a peer that sends what it never may.
            RingMessage::RollCall { .. }
            | RingMessage::NewConn(_)
            | RingMessage::RetConn(_)
            | RingMessage::Publish(_)
            | RingMessage::ServOff { .. }
            | RingMessage::Shutdown { .. }
            | RingMessage::Merge { .. }
            | RingMessage::CaughtUp { .. }
            | RingMessage::Have { .. }
            | RingMessage::Refused { .. }
            | RingMessage::Probe(_)
            | RingMessage::Circle(_)
            | RingMessage::AskSid
            | RingMessage::FreeSid { .. } => {}
        }
    }

    /// A connection is gone.
    fn closed(&mut self, id: ConnId, out: &mut Vec<RingEffect>) {
        let Some(conn) = self.remove(id) else { return };
        match conn.role {
            ConnectionRole::Next => self.next_lost(conn, out),
            ConnectionRole::Opening => self.attempt_failed(Code::RingDown, None, out),
            ConnectionRole::Previous => self.previous_lost(conn, out),
            ConnectionRole::Probe => self.search.over(id),
            ConnectionRole::Fresh | ConnectionRole::Retired | ConnectionRole::Draining | ConnectionRole::Joiner => {}
        }
    }

    fn tick(&mut self, out: &mut Vec<RingEffect>) {
        if matches!(self.state, NodeState::Off) {
            return;
        }
        let silent: Vec<ConnId> = self
            .conns
            .iter()
            .filter(|(_, conn)| conn.role == ConnectionRole::Fresh)
            .filter_map(|(id, conn)| (self.fresh_until(conn) <= self.now).then_some(*id))
            .collect();
        for id in silent {
            self.close(id, Some(Code::GreetingTimeout), out);
        }
        self.tick_attempt(out);
        self.tick_leaving(out);
        self.tick_healing(out);
        self.tick_joining(out);
        self.tick_joiners(out);
        self.tick_roll(out);
        self.tick_search(out);
        self.tick_overdue(out);
    }

    fn fresh_until(&self, conn: &Conn) -> Mono {
        conn.since.plus_millis(self.settings.timers.dial_ms * FRESH_DIALS)
    }

    fn say(&self, conn: ConnId, message: RingMessage, out: &mut Vec<RingEffect>) {
        out.push(RingEffect::Peer(RingPeerEffect::Say { conn, message }));
    }

    /// Says something to the next one, if there is one.
    fn pass_on(&self, message: RingMessage, out: &mut Vec<RingEffect>) -> bool {
        let Some(next) = self.state.next() else { return false };
        self.say(next, message, out);
        true
    }

    fn close(&mut self, id: ConnId, code: Option<Code>, out: &mut Vec<RingEffect>) {
        if self.remove(id).is_some() {
            out.push(RingEffect::Peer(RingPeerEffect::Close { conn: id, code }));
        }
    }

    fn remove(&mut self, id: ConnId) -> Option<Conn> {
        if let NodeState::Member(place) = &mut self.state {
            place.joiners.retain(|joiner| joiner.conn != id);
        }
        self.conns.remove(&id)
    }

    /// Says no, and closes.
    fn turn_away(&mut self, id: ConnId, code: Code, instead: Option<Member>, out: &mut Vec<RingEffect>) {
        let peer = self.conns.get(&id).and_then(Conn::sid);
        self.counters.refused += 1;
        if !matches!(code, Code::RingBusy | Code::Elsewhere) {
            out.push(RingEffect::Host(RingHostEffect::Tell(RingNews::Refused { peer, code })));
        }
        self.say(id, RingMessage::Refused { code, instead }, out);
        self.close(id, None, out);
    }

    /// Ends every connection and what was going on.
    fn let_go(&mut self, to: NodeState, out: &mut Vec<RingEffect>) {
        self.drop_attempt(out);
        self.search.drop_all(out);
        self.turn_joiners_away(Code::RingBusy, out);
        let ids: Vec<ConnId> = self.conns.keys().copied().collect();
        for id in ids {
            let role = self.conns[&id].role;
            if role == ConnectionRole::Previous {
                self.say(id, RingMessage::Refused { code: Code::NotInRing, instead: None }, out);
            }
            if role != ConnectionRole::Fresh {
                self.close(id, None, out);
            }
        }
        (self.state, self.previous) = (to, Previous::default());
        self.neighbour_changed();
        self.nobody_else(out);
    }

    /// From now on a ring of one.
    fn be_alone(&mut self, out: &mut Vec<RingEffect>) {
        self.let_go(NodeState::Alone(None), out);
    }

    /// From now on in no ring.
    fn be_off(&mut self, code: Option<Code>, out: &mut Vec<RingEffect>) {
        self.let_go(NodeState::Off, out);
        self.code = code;
    }
}
