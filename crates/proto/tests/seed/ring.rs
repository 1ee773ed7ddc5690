//! Any frame between members of a ring.

use bytes::Bytes;
use turno_proto::model::Code;
use turno_proto::model::ring::{
    Circle, ConnectPurpose, JoinVerdict, LastReceived, LostMember, Member, NewConn, Origin, Publication, RetConn,
    RingMessage, Sid,
};
use turno_proto::native::{RawEvent, RingChallenge, RingHello};

use super::Seed;

impl Seed {
    pub(super) fn sid(&self) -> Sid {
        Sid::new(self.small)
    }

    fn origin(&self) -> Origin {
        Origin { sid: self.sid(), incarnation: self.long }
    }

    fn member(&self) -> Member {
        let native = if self.bits[2] { format!("host:{}", self.small) } else { String::new() };
        Member { origin: self.origin(), address: format!("host{}:{}", self.choice, self.small), native }
    }

    fn members(&self) -> Vec<Member> {
        vec![self.member(); usize::from(self.choice % 129)]
    }

    fn maybe_member(&self) -> Option<Member> {
        self.bits[0].then(|| self.member())
    }

    pub(super) fn ring_hello(&self) -> RingHello {
        let nonce = Bytes::copy_from_slice(&self.bytes);
        RingHello { version: self.small, member: self.maybe_member(), program: self.text(), nonce }
    }

    pub(super) fn ring_challenge(&self) -> RingChallenge {
        let RingHello { version, program, nonce, .. } = self.ring_hello();
        RingChallenge { version, member: self.member(), program, nonce, proof: self.link_proof().proof }
    }

    pub(super) fn newconn(&self, code: Code) -> RingMessage {
        let verdict = [None, Some(JoinVerdict::Claimed), Some(JoinVerdict::Refused(code))];
        RingMessage::NewConn(NewConn {
            joiner: self.member(),
            content: self.bits[1].then(|| self.sid()),
            gap: self.bits[0],
            verdict: verdict[usize::from(self.choice) % verdict.len()],
            hops: self.choice,
        })
    }

    pub(super) fn retconn(&self) -> RingMessage {
        let purposes = [ConnectPurpose::Return, ConnectPurpose::Join, ConnectPurpose::Heal, ConnectPurpose::Left];
        if self.bits[0] {
            let purpose = purposes[usize::from(self.choice) % purposes.len()];
            return RingMessage::RetConn(RetConn::Open { purpose });
        }
        let content = if self.bits[1] { LostMember::Gap } else { LostMember::Sid(self.sid()) };
        RingMessage::RetConn(RetConn::Call { caller: self.member(), content, hops: self.choice })
    }

    pub(super) fn ring_publish(&self) -> Publication<RawEvent<'_>> {
        let (seq, after) = (self.long.max(1), self.long.max(1) - 1);
        let round = u64::from(self.number);
        Publication { origin: self.origin(), seq, after, round, hops: self.choice, event: self.event() }
    }

    pub(super) fn servoff(&self) -> RingMessage {
        RingMessage::ServOff { leaver: self.member(), content: self.maybe_member().map(Box::new), hops: self.choice }
    }

    pub(super) fn shutdwn(&self) -> RingMessage {
        RingMessage::Shutdown { origin: self.origin(), hops: self.choice }
    }

    pub(super) fn roll_call(&self) -> RingMessage {
        let (number, round) = (u64::from(self.number), u64::from(self.word));
        RingMessage::RollCall { origin: self.origin(), number, round, members: self.members() }
    }

    pub(super) fn ring_have(&self) -> RingMessage {
        RingMessage::Have {
            had: vec![LastReceived { origin: self.origin(), seq: self.long }; usize::from(self.small % 1_025)],
        }
    }

    pub(super) fn caught_up(&self) -> RingMessage {
        RingMessage::CaughtUp { members: self.members() }
    }

    pub(super) fn ring_refused(&self, code: Code) -> RingMessage {
        RingMessage::Refused { code, instead: self.maybe_member() }
    }

    pub(super) fn circle(&self) -> Circle {
        Circle { whole: self.bits[0], members: self.members() }
    }

    pub(super) fn merge(&self) -> RingMessage {
        RingMessage::Merge { origin: self.origin(), contact: self.member(), hops: self.choice }
    }
}
