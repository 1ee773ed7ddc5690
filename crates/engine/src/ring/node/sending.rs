//! Whom the node sends to: the next one, and the attempt to have another in its place.

use turno_proto::model::ring::{Errand, Had, Member};
use turno_proto::model::{Code, ConnId, Mono};

use super::word::{JoinVerdict, NewConn, RetConn, RingWord};
use super::{Conn, Node, RingEffect, RingNews, Role};

/// A connection that is being made to have a next one, or another.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    target: u32,
    conn: Option<ConnId>,
    pub(super) purpose: Purpose,
    until: Mono,
}

/// What an attempt is for.
#[derive(Clone, Debug)]
pub(super) enum Purpose {
    /// To become a member.
    Join,
    /// To send to the same one as before.
    Return,
    /// To send to whoever comes after a member that has fallen.
    Heal,
    /// To send to a broker that joins between this one and its next. The word is said on the old path afterwards.
    Claim(Box<NewConn>),
    /// To send to whoever comes after a member that leaves. The word is said to the leaver afterwards.
    Left(Box<RingWord>),
}

impl Attempt {
    pub(super) const fn conn(&self) -> Option<ConnId> {
        self.conn
    }
}

impl Purpose {
    /// The first word on the connection.
    fn opening(&self, me: &Member) -> RingWord {
        let errand = match self {
            Self::Join => {
                let joiner = me.clone();
                return RingWord::NewConn(NewConn { joiner, content: None, gap: false, verdict: None, hops: 0 });
            }
            Self::Return => Errand::Return,
            Self::Heal => Errand::Heal,
            Self::Claim(_) => Errand::Join,
            Self::Left(_) => Errand::Left,
        };
        RingWord::RetConn(RetConn::Open { errand })
    }
}

impl Node {
    /// Begins an attempt; there is none.
    pub(super) fn try_for(&mut self, address: String, purpose: Purpose, out: &mut Vec<RingEffect>) {
        debug_assert!(self.attempt.is_none(), "one attempt at a time");
        let until = self.now.plus_millis(self.settings.timers.dial_ms);
        let target = self.new_target();
        self.attempt = Some(Attempt { target, conn: None, purpose, until });
        out.push(RingEffect::Dial { target, address });
    }

    pub(super) fn new_target(&mut self) -> u32 {
        self.targets = self.targets.wrapping_add(1);
        self.targets
    }

    /// A connection that was wanted is there.
    pub(super) fn dialled(&mut self, target: u32, id: ConnId, peer: Member, out: &mut Vec<RingEffect>) {
        let is_meant =
            self.attempt.as_ref().is_none_or(|attempt| attempt.target != target) || self.is_meant(peer.origin.sid);
        // Whoever is not meant is nobody to know: it would be asked next.
        if is_meant {
            self.roll.meet(&peer);
        }
        let mut conn = Conn::new(Some(peer), Role::Opening, self.now);
        if let Some(attempt) = self.attempt.as_mut().filter(|attempt| attempt.target == target) {
            attempt.conn = Some(id);
            // Whoever joins may have to wait for those before it.
            let waits = if matches!(attempt.purpose, Purpose::Join) { self.settings.timers.join_ms * 4 } else { 0 };
            attempt.until = self.now.plus_millis(self.settings.timers.dial_ms + waits);
            let word = attempt.purpose.opening(&self.settings.me);
            if let (Purpose::Join, Some(joining)) = (&attempt.purpose, &mut self.joining) {
                joining.asked = conn.sid();
            }
            if conn.sid() == Some(self.sid()) {
                // One that says my number, or myself.
                self.conns.insert(id, conn);
                return self.attempt_failed(Code::DuplicateSid, None, out);
            }
            self.conns.insert(id, conn);
            if !is_meant {
                return self.attempt_failed(Code::WrongSid, None, out);
            }
            self.say(id, word, out);
        } else if self.search.dialled(target, id) {
            conn.role = Role::Probe;
            self.conns.insert(id, conn);
            let circle = self.circle();
            self.say(id, RingWord::Probe(circle), out);
        } else {
            out.push(RingEffect::Close { conn: id, code: None });
        }
    }

    pub(super) fn dial_failed(&mut self, target: u32, code: Code, out: &mut Vec<RingEffect>) {
        if self.attempt.as_ref().is_some_and(|attempt| attempt.target == target) {
            self.attempt_failed(code, None, out);
        } else {
            self.search.dial_failed(target);
        }
    }

    /// HAVE came: the other end takes this one as its predecessor.
    pub(super) fn welcomed(&mut self, id: ConnId, had: Vec<Had>, out: &mut Vec<RingEffect>) {
        let Some(attempt) = self.attempt.take_if(|attempt| attempt.conn == Some(id)) else { return };
        let old = self.next.replace(id);
        let Some(conn) = self.conns.get_mut(&id) else { return };
        conn.role = Role::Next;
        let next = conn.sid();
        match attempt.purpose {
            Purpose::Claim(mut word) => {
                word.verdict = Some(JoinVerdict::Claimed);
                self.is_alone = false;
                self.retire(old, RingWord::NewConn(*word), out);
            }
            Purpose::Left(word) => self.retire(old, *word, out),
            Purpose::Join => {
                self.close_old(old, out);
                self.place_found();
            }
            Purpose::Return => self.close_old(old, out),
            Purpose::Heal => {
                self.close_old(old, out);
                self.counters.healed += 1;
                if let Some(next) = next {
                    out.push(RingEffect::Tell(RingNews::Healed { next }));
                }
            }
        }
        self.lost_next = None;
        self.neighbour_changed();
        self.replay(id, &had, out);
        let members = self.roll.members();
        self.say(id, RingWord::CaughtUp { members }, out);
        self.claim_for_itself(out);
        self.call_roll(out);
    }

    /// The last word on the old path; the other end closes it when it has heard all.
    fn retire(&mut self, old: Option<ConnId>, word: RingWord, out: &mut Vec<RingEffect>) {
        let Some(old) = old else { return };
        self.say(old, word, out);
        if let Some(conn) = self.conns.get_mut(&old) {
            (conn.role, conn.since) = (Role::Retired, self.now);
        }
    }

    fn close_old(&mut self, old: Option<ConnId>, out: &mut Vec<RingEffect>) {
        if let Some(old) = old {
            self.close(old, None, out);
        }
    }

    /// The other end said no.
    pub(super) fn refused(&mut self, id: ConnId, mut code: Code, instead: Option<Member>, out: &mut Vec<RingEffect>) {
        if code == Code::Fenced && !self.settings.has_secret {
            self.disbelieve(self.conns.get(&id).and_then(Conn::sid), "fenced", out);
            code = Code::RingRefused;
        }
        match self.conns.get(&id).map(|conn| conn.role) {
            Some(Role::Opening) => self.attempt_failed(code, instead, out),
            Some(Role::Next) => {
                let Some(conn) = self.conns.remove(&id) else { return };
                out.push(RingEffect::Close { conn: id, code: None });
                self.next = None;
                self.dismissed(conn, code, out);
            }
            _ => self.close(id, None, out),
        }
    }

    /// The attempt came to nothing.
    pub(super) fn attempt_failed(&mut self, code: Code, instead: Option<Member>, out: &mut Vec<RingEffect>) {
        let Some(attempt) = self.end_attempt(out) else { return };
        if code == Code::Fenced {
            out.push(RingEffect::Failed(code));
            return self.be_off(Some(code), out);
        }
        match attempt.purpose {
            Purpose::Join => self.not_joined(code, instead, out),
            Purpose::Return | Purpose::Heal => self.not_healed(code, out),
            Purpose::Claim(_) if self.is_alone => self.be_alone(out),
            purpose => self.path_stays(purpose, out),
        }
    }

    /// Somebody joins or leaves, and cannot be reached, or something else is more important now: the old path is told.
    fn path_stays(&mut self, purpose: Purpose, out: &mut Vec<RingEffect>) {
        match purpose {
            Purpose::Claim(mut word) => {
                word.verdict = Some(JoinVerdict::Refused(Code::RingBusy));
                self.pass_on(RingWord::NewConn(*word), out);
            }
            Purpose::Left(word) => {
                if !self.pass_on(*word, out) {
                    self.retry_soon();
                }
            }
            Purpose::Join | Purpose::Return | Purpose::Heal => {}
        }
    }

    /// Gives the attempt up for something else.
    pub(super) fn drop_attempt(&mut self, out: &mut Vec<RingEffect>) {
        if let Some(attempt) = self.end_attempt(out) {
            self.path_stays(attempt.purpose, out);
        }
    }

    fn end_attempt(&mut self, out: &mut Vec<RingEffect>) -> Option<Attempt> {
        let attempt = self.attempt.take()?;
        match attempt.conn {
            Some(id) => self.close(id, None, out),
            None => out.push(RingEffect::Forget { target: attempt.target }),
        }
        Some(attempt)
    }

    pub(super) fn tick_attempt(&mut self, out: &mut Vec<RingEffect>) {
        if self.attempt.as_ref().is_some_and(|attempt| attempt.until <= self.now) {
            self.attempt_failed(Code::RingDown, None, out);
        }
        let patience = self.settings.timers.wait_ms;
        let old = self.conns.iter().filter(|(_, conn)| conn.role == Role::Retired);
        let late: Vec<ConnId> =
            old.filter(|(_, conn)| self.now.millis_since(conn.since) >= patience).map(|(id, _)| *id).collect();
        for id in late {
            self.close(id, None, out);
        }
    }

    pub(super) fn attempt_deadline(&self) -> Option<Mono> {
        let old = self.conns.values().filter(|conn| conn.role == Role::Retired);
        let retired = old.map(|conn| conn.since.plus_millis(self.settings.timers.wait_ms)).min();
        [self.attempt.as_ref().map(|attempt| attempt.until), retired].into_iter().flatten().min()
    }

    /// Whom it sends to.
    pub(in crate::ring) fn next_peer(&self) -> Option<&Member> {
        self.conns.get(&self.next?)?.peer.as_ref()
    }
}
