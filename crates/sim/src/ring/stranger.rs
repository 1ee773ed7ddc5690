//! A stranger in a ring without a secret: it dials members and sends false frames. Nobody may end for it, and once it
//! is gone the ring is whole again.

use turno_engine::ring::{JoinVerdict, NewConn, RetConn, RingInput, RingMessage};
use turno_proto::model::ring::{ConnectPurpose, LostMember, Member, Origin};
use turno_proto::model::{Code, ConnId};

use super::wires::{BrokerPlace, LifeNumber};
use super::world::{RingHappening, RingWorld, address};

/// Where nobody is.
const NOWHERE: BrokerPlace = 999;

impl RingWorld {
    /// It dials somebody, sends a few messages, and goes some time later.
    pub(super) fn pose(&mut self) {
        if self.is_calm {
            return;
        }
        let after = self.rng.range(100, 4_000);
        self.later(after, RingHappening::Pose);
        let victim = self.rng.index(self.brokers.len());
        let there = &self.brokers[victim];
        if there.node.is_none() || there.paused.is_some() {
            return;
        }
        let life = there.life;
        self.poses += 1;
        let conn = ConnId { index: u32::MAX - self.poses, generation: 1 };
        let peer = self.somebody();
        self.trace.note(self.now, "pose", victim as u64, peer.origin.sid.get().into());
        self.put(victim, RingInput::Accepted { conn, peer: Some(peer) });
        if self.rng.once_in(2) {
            let purpose = [ConnectPurpose::Return, ConnectPurpose::Heal, ConnectPurpose::Join, ConnectPurpose::Left]
                [self.rng.index(4)];
            let message = RingMessage::RetConn(RetConn::Open { purpose });
            self.put(victim, RingInput::Message { conn, message });
        }
        for _ in 0..self.rng.index(4) {
            let message = self.a_posed_message(victim);
            self.put(victim, RingInput::Message { conn, message });
        }
        let stays = self.rng.range(1, 5_000);
        self.later(stays, RingHappening::Unpose(victim, life, conn));
    }

    /// Its connection ends.
    pub(super) fn unpose(&mut self, place: BrokerPlace, life: LifeNumber, conn: ConnId) {
        if self.brokers[place].life != life {
            return;
        }
        match self.brokers[place].paused {
            Some(_) => self.later(500, RingHappening::Unpose(place, life, conn)),
            None => self.put(place, RingInput::Closed { conn }),
        }
    }

    /// A member in some life, at its own address or nowhere; or nobody.
    fn somebody(&mut self) -> Member {
        let place = self.rng.index(self.brokers.len());
        let broker = &self.brokers[place];
        let (sid, own) = (broker.sid, broker.incarnation);
        let incarnation = [0, own, own + 1, own + 1_000_000, u64::MAX - 1, u64::MAX][self.rng.index(6)];
        let origin = if self.rng.once_in(5) { self.nobody() } else { Origin { sid, incarnation } };
        let place = if self.rng.once_in(4) { NOWHERE } else { place };
        Member { origin, address: address(place), native: String::new() }
    }

    fn a_posed_message(&mut self, victim: BrokerPlace) -> RingMessage {
        let (one, other) = (self.somebody(), self.somebody());
        let me = self.brokers[victim].node.as_ref().map(|node| node.me().clone());
        match self.rng.index(9) {
            0 | 1 => RingMessage::Shutdown { origin: one.origin, hops: 0 },
            2 => RingMessage::CaughtUp { members: vec![one, other] },
            3 => {
                let me = me.unwrap_or_else(|| one.clone());
                let (origin, number) = (me.origin, self.rng.range(1, 200));
                RingMessage::RollCall { origin, number, round: 0, members: vec![me, one, other] }
            }
            4 => RingMessage::ServOff { leaver: one, content: Some(Box::new(other)), hops: 0 },
            5 => RingMessage::RetConn(RetConn::Call { caller: one, content: LostMember::Gap, hops: 0 }),
            6 => RingMessage::NewConn(NewConn { joiner: one, content: None, gap: false, verdict: None, hops: 0 }),
            7 => {
                let verdict = [None, Some(JoinVerdict::Claimed), Some(JoinVerdict::Refused(Code::Fenced))];
                let (content, verdict) = (Some(other.origin.sid), verdict[self.rng.index(3)]);
                RingMessage::NewConn(NewConn { joiner: one, content, gap: false, verdict, hops: 0 })
            }
            _ => self.a_lie(),
        }
    }
}
