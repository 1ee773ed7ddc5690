//! Any call about the ring, and any answer.

use turno_proto::model::ring::view::{MemberView, RingCounters, RingView};
use turno_proto::model::ring::{RingState, Sid};
use turno_proto::native::admin::AdminCall;

use super::Seed;

impl Seed {
    pub(super) fn ring_call(&self, choice: u8) -> AdminCall {
        match choice {
            0 => AdminCall::Ring {},
            1 => AdminCall::RingJoin { next: self.text(), sid: self.bits[0].then(|| Sid::new(self.small)) },
            2 => AdminCall::RingLeave {},
            _ => AdminCall::RingShutdown {},
        }
    }

    pub(super) fn ring(&self) -> RingView {
        let [whole, some, ..] = self.bits;
        let sid = Sid::new(self.small);
        let members = vec![
            MemberView {
                sid,
                role: self.text(),
                incarnation: self.long,
                address: self.text(),
                native: some.then(|| self.text()),
            };
            usize::from(self.choice % 5)
        ];
        RingView {
            sid,
            incarnation: self.long,
            address: self.text(),
            secret: self.bits[3],
            state: RingState::ALL[usize::from(self.choice) % RingState::ALL.len()],
            since_at: self.moment(),
            whole,
            why: some.then(|| self.text()),
            previous: some.then_some(sid),
            next: some.then(|| Sid::new(self.small.rotate_left(3))),
            members: members.clone(),
            lost: members,
            round_trip_seconds: some.then(|| self.seconds()),
            not_round: self.word.into(),
            oldest_seconds: some.then(|| self.seconds()),
            buffered: self.number.into(),
            buffer_bytes: self.long,
            slowed: self.bits[2],
            counters: RingCounters { published: self.long, healed: self.word.into(), ..RingCounters::default() },
            code: some.then(|| self.text()),
        }
    }
}
