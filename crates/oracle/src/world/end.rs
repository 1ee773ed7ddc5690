//! Time, and the end of a world.

use turno_engine::Input;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::Reason;
use turno_proto::model::{Again, Code, Slots};

use super::{World, later};
use crate::chance::Chance;
use crate::message::{Kind, Message};
use crate::op::{DeliveryReport, Fence, Op};
use crate::{IN_FLIGHT_MAX, NAMES, PLACES};

/// Longer than that passes in steps, each with a tick at its end.
const LONG_MS: u64 = 60_000;

impl World {
    /// The shell ticks: what is over by then is over.
    pub(super) fn tick(&mut self) {
        self.oracle.end_grace(self.now.max(self.clock));
        self.step(Input::Tick);
        self.oracle.check_deadlines(self.now, self.disk.writes());
    }

    /// Ticks exactly when the engine asked for it, so that a deadline announced too late is a deadline missed.
    pub(super) fn pass(&mut self, micros: u64) {
        let until = later(self.now.max(self.clock), micros);
        let mut again = false;
        while let Some(next) = self.next_deadline().filter(|next| *next <= until) {
            self.clock = self.now.max(self.clock).max(next);
            self.tick();
            // Delayed answers of the disk may be due at once.
            let due = self.next_deadline().is_some_and(|next| next <= self.now);
            assert!(!due || self.settings.store.is_some() && !again, "a tick does all that is due");
            again = due;
            if micros > LONG_MS * 1_000 {
                self.clock = later(self.clock, self.whole(micros / 50)).min(until);
            }
        }
        self.clock = until;
    }

    pub(super) fn is_ending(&self) -> bool {
        self.oracle.ending
    }

    pub(super) fn begin_drain(&mut self, within_ms: u64) {
        (self.oracle.ending, self.oracle.closing) = (true, true);
        self.step(Input::Drain { within_ms });
    }

    /// One of the ends that there are.
    pub fn end(&mut self, chance: &mut impl Chance) {
        self.lags = false;
        self.store(usize::MAX);
        match chance.below(5) {
            0..2 if !self.is_ending() => self.settle_everything(),
            4 => self.all_leave(),
            _ => self.drain(),
        }
    }

    /// The faults stop: somebody with room consumes everything and everybody settles what they have.
    fn settle_everything(&mut self) {
        self.go_on();
        self.leave(0, false);
        // A holder or standby of an exclusive queue would keep it from others.
        for place in 1..PLACES {
            if self.places[place].is_some_and(|conn| self.oracle.keeps_a_queue(conn)) {
                self.leave(place, false);
            }
        }
        // Requests of lost callers end, one a millisecond if it must be; and refused writes are stored.
        self.pass(((PLACES * IN_FLIGHT_MAX) as u64 + 2_000) * 1_000);
        self.connect(0);
        self.apply(Op::Ready(0));
        self.apply(Op::Register(0, Slots::Unlimited));
        for queue in 0..NAMES.len() {
            self.apply(Op::Open { place: 0, handle: queue as u32, queue });
            self.apply(Op::Consume { place: 0, handle: queue as u32, exclusive: false });
        }
        let mut rounds = 0;
        while self.is_something_left() {
            self.work_off();
            rounds += 1;
            assert!(rounds < 1_000, "everything drains");
        }
        self.check_answered();
        assert_eq!(self.engine.in_flight(), 0);
        self.check_sends();
    }

    /// Something is held, wanted from the disk, or waits.
    fn is_something_left(&mut self) -> bool {
        let oracle = &self.oracle;
        let held = !oracle.held.is_empty() || !oracle.cast_held().is_empty();
        held || !self.disk.loads.is_empty() || self.is_something_ready()
    }

    fn is_something_ready(&self) -> bool {
        let status = self.engine.status();
        status.ready > 0 || status.delayed > 0 || status.slots_used > 0
    }

    /// Everybody reads, and settles what they have.
    fn work_off(&mut self) {
        self.read();
        for place in 0..PLACES {
            self.apply(Op::HasRead(place));
        }
        let held = self.oracle.held.clone();
        let casts = self.oracle.cast_held();
        // A worker on trial gets its first delivery some time later.
        if held.is_empty() && casts.is_empty() && self.disk.loads.is_empty() {
            self.pass(1_000_000);
        }
        for (seq, worker, delivery) in casts {
            self.say(worker, delivery, seq, (DeliveryReport::Reply, Fence::Own));
        }
        for (seq, held) in held {
            self.say(held.worker, held.delivery, seq, (DeliveryReport::Reply, Fence::Own));
        }
    }

    /// The broker ends: every request of a caller that is there has its outcome when the drain is over.
    fn drain(&mut self) {
        if !self.is_ending() {
            self.begin_drain(3_000);
        }
        for (seq, held) in self.oracle.held.clone() {
            if seq % 3 > 0 {
                let report = [DeliveryReport::Reply, DeliveryReport::Fail { again: Again::AsSet }][seq as usize % 2];
                self.say(held.worker, held.delivery, seq, (report, Fence::Own));
            }
        }
        self.leave(1, false);
        self.pass(5_000_000);
        assert_eq!(self.oracle.drained, 1, "a drain ends");
        self.check_answered();
        for (seq, held) in self.oracle.held.clone() {
            self.say(held.worker, held.delivery, seq, (DeliveryReport::Reply, Fence::Own));
        }
        self.pass(60_000_000);
        self.check_sends();
    }

    /// When all peers are gone, nothing is held.
    fn all_leave(&mut self) {
        (0..PLACES).for_each(|place| self.leave(place, false));
        assert_eq!(self.engine.in_flight(), 0, "nobody is left to hold anything");
        self.pass(4_000_000);
        self.check_sends();
    }

    fn check_answered(&self) {
        assert_eq!(
            self.oracle.unanswered().map(|(seq, _)| seq).collect::<Vec<u32>>(),
            [0_u32; 0],
            "every request ends"
        );
        assert_eq!(self.oracle.unconfirmed(), [0_u32; 0], "every send is answered");
        assert_eq!(self.oracle.open_casts(), [0_u32; 0], "every broadcast ends");
    }

    /// Every stored send is settled, cancelled, expired, waiting, held or dead, and nothing else.
    fn check_sends(&mut self) {
        // Without memory a question is refused while another is read.
        while !self.disk.loads.is_empty() {
            self.read();
        }
        let is_there = |message: &&Message| message.kind == Kind::Send && message.is_added();
        let sends: Vec<Message> = self.oracle.messages.values().filter(is_there).cloned().collect();
        for send in sends {
            let id = send.id.expect("STORED names it").to_string();
            let over = send.settled || send.cancelled;
            let may_be_gone = over || send.is_late(self.now);
            match self.admin(AdminCall::MessageExplain { id }) {
                Err(code) => assert!(code == Code::NotFound && may_be_gone, "I3: {} is lost", send.seq),
                Ok(AdminAnswer::Message { explanation }) => {
                    let stopping = matches!(explanation.because.0, Reason::Stopping { .. });
                    assert!(!over || stopping, "{} is over, yet {:?}", send.seq, explanation.because.0);
                }
                Ok(other) => panic!("{other:?} explains nothing"),
            }
        }
    }
}
