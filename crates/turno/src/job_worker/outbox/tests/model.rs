//! Any order of events against a broker that keeps what it is given: what it has in the end is what it should have.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// A random step. Numbers pick among the existing attempts.
#[derive(Clone, Debug)]
enum Step {
    Open,
    Wrote { whose: usize, stderr: bool, len: usize },
    End(usize),
    Forget(usize),
    Call,
    Answer { which: usize, how: How },
    Wait(u64),
}

#[derive(Clone, Copy, Debug)]
enum How {
    Kept,
    /// Kept, but the answer is lost.
    KeptUnheard,
    Busy,
    Refused,
    Full,
    Look,
}

fn step() -> impl Strategy<Value = Step> {
    let how = prop_oneof![
        6 => Just(How::Kept),
        1 => Just(How::KeptUnheard),
        1 => Just(How::Busy),
        1 => Just(How::Refused),
        1 => Just(How::Full),
        2 => Just(How::Look)
    ];
    prop_oneof![
        2 => Just(Step::Open),
        10 => (any::<usize>(), any::<bool>(), 0..60_usize)
            .prop_map(|(whose, stderr, len)| Step::Wrote { whose, stderr, len }),
        2 => any::<usize>().prop_map(Step::End),
        1 => any::<usize>().prop_map(Step::Forget),
        6 => Just(Step::Call),
        6 => (any::<usize>(), how).prop_map(|(which, how)| Step::Answer { which, how }),
        3 => (0..400_u64).prop_map(Step::Wait),
        1 => (1_000..40_000_u64).prop_map(Step::Wait),
    ]
}

/// The output of an attempt, and where it went.
#[derive(Default)]
struct Written {
    ticket: Option<Ticket>,
    bytes: Vec<(OutputStream, u8)>,
    /// The bytes that the broker has kept, by position.
    kept: BTreeMap<u64, u8>,
    is_ended: bool,
    is_forgotten: bool,
    is_done: bool,
    has_lost: bool,
}

struct World {
    core: Core,
    per_task: u64,
    now: u64,
    attempts: Vec<Written>,
    calls: Vec<(CallId, Vec<OutputPiece>)>,
}

impl World {
    fn new(per_task: u64) -> Self {
        Self { core: told(per_task), per_task, now: 0, attempts: Vec::new(), calls: Vec::new() }
    }

    fn step(&mut self, step: &Step) {
        let now = ms(self.now);
        let alive: Vec<usize> = (0..self.attempts.len()).filter(|at| self.attempts[*at].is_open()).collect();
        let pick = |whose: usize| (!alive.is_empty()).then(|| alive[whose % alive.len()]);
        match step {
            Step::Open => {
                let task = u32::try_from(self.attempts.len()).expect("few");
                let ticket = Some(self.core.open(attempt(task)));
                self.attempts.push(Written { ticket, ..Written::default() });
            }
            Step::Wrote { whose, stderr, len } => {
                let Some(at) = pick(*whose) else { return };
                let stream = if *stderr { Stderr } else { Stdout };
                let written = &mut self.attempts[at];
                let bytes: Vec<u8> = (0..*len).map(|byte| ((written.bytes.len() + byte) * 31 + at) as u8).collect();
                written.bytes.extend(bytes.iter().map(|byte| (stream, *byte)));
                self.core.wrote(now, written.ticket.expect("opened"), stream, &bytes);
            }
            Step::End(whose) => {
                let Some(at) = pick(*whose) else { return };
                self.attempts[at].is_ended = true;
                self.core.end(now, self.attempts[at].ticket.expect("opened"));
            }
            Step::Forget(whose) => {
                let Some(at) = pick(*whose) else { return };
                self.attempts[at].is_forgotten = true;
                self.core.forget(self.attempts[at].ticket.expect("opened"));
            }
            Step::Call => self.calls.extend(self.core.poll_call(now)),
            Step::Answer { which, how } => {
                if !self.calls.is_empty() {
                    let call = self.calls.swap_remove(which % self.calls.len());
                    self.answer(call, *how);
                }
            }
            Step::Wait(millis) => {
                self.now += millis;
                self.core.handle_tick(ms(self.now));
            }
        }
        self.hear();
    }

    fn answer(&mut self, (id, pieces): (CallId, Vec<OutputPiece>), how: How) {
        let refused: Vec<(JobId, u32, u32)> = match how {
            How::Refused => pieces.first().map(|piece| (piece.job, piece.task, piece.attempt)).into_iter().collect(),
            _ => Vec::new(),
        };
        let follow = match how {
            How::Look => (0..2).map(|task| (JOB, task)).collect(),
            _ => Vec::new(),
        };
        for piece in &pieces {
            let written = &mut self.attempts[piece.task as usize];
            for (at, byte) in (piece.at..).zip(&piece.bytes) {
                assert_eq!(written.bytes[at as usize], (piece.stream, *byte), "every byte is where it was written");
            }
            let is_refused = refused.contains(&(piece.job, piece.task, piece.attempt));
            if !piece.live && !is_refused && !matches!(how, How::Busy | How::Full) {
                written.kept.extend((piece.at..).zip(piece.bytes.iter().copied()));
            }
        }
        let answer = match how {
            How::KeptUnheard | How::Busy => OutboxAnswer::Again,
            How::Full => OutboxAnswer::Refused(Code::OverDisk),
            How::Kept | How::Refused | How::Look => OutboxAnswer::Kept { per_task: self.per_task, follow, refused },
        };
        self.core.handle_answer(ms(self.now), id, answer);
    }

    fn hear(&mut self) {
        self.core.check();
        while let Some(event) = self.core.poll_event() {
            let (Event::Room(ticket) | Event::Done(ticket) | Event::Lost { ticket, .. }) = event;
            let written = self.attempts.iter_mut().find(|written| written.ticket == Some(ticket)).expect("opened");
            assert!(!written.is_done && !written.is_forgotten, "nothing follows the end");
            match event {
                Event::Room(_) => {}
                Event::Done(_) => written.is_done = true,
                Event::Lost { ended, .. } => (written.is_done, written.has_lost) = (ended, true),
            }
        }
    }

    /// Ends all and answers all; the broker must have all it should have.
    fn judge(mut self) {
        for at in 0..self.attempts.len() {
            if self.attempts[at].is_open() {
                self.attempts[at].is_ended = true;
                self.core.end(ms(self.now), self.attempts[at].ticket.expect("opened"));
            }
        }
        for _ in 0..10_000 {
            self.hear();
            if self.attempts.iter().all(|written| written.is_forgotten || written.is_done) {
                break;
            }
            self.calls.extend(self.core.poll_call(ms(self.now)));
            match self.calls.pop() {
                Some(call) => self.answer(call, How::Kept),
                None => self.now += 10,
            }
        }
        let under_way = self.calls.iter().flat_map(|call| &call.1).map(|piece| piece.bytes.len()).sum::<usize>();
        assert_eq!(self.core.held_bytes(), under_way, "nothing is left behind");
        let half = self.per_task / 2;
        for written in self.attempts.iter().filter(|written| !written.is_forgotten) {
            assert!(written.is_done, "every end is told");
            let end = written.bytes.len() as u64;
            let tail = end.saturating_sub(half).max(half.min(end));
            let wanted: Vec<u64> = (0..half.min(end)).chain(tail..end).collect();
            if !written.has_lost {
                assert_eq!(written.kept.keys().copied().collect::<Vec<_>>(), wanted, "beginning and end are kept");
            }
        }
    }
}

impl Written {
    fn is_open(&self) -> bool {
        !self.is_ended && !self.is_forgotten
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_broker_has_what_it_should_have(
        per_task in prop_oneof![Just(0), Just(1), 2..200_u64],
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let mut world = World::new(per_task);
        for step in &steps {
            world.step(step);
        }
        world.judge();
    }
}

/// Whatever runs through is gone at once: what is held stays the same.
#[test]
fn a_gigabyte_goes_through_without_growing() {
    let mut core = told(limits::OUTPUT_PER_TASK_BYTES);
    let ticket = core.open(attempt(1));
    let block = vec![b'x'; 65_536];
    for round in 0..16_384 {
        assert!(core.wrote(ms(round), ticket, Stdout, &block), "nobody waits for a beginning that fits");
        if round % 64 == 0 {
            if let Some((id, _)) = core.poll_call(ms(round)) {
                core.handle_answer(ms(round), id, kept(limits::OUTPUT_PER_TASK_BYTES));
            }
            assert!(core.held_bytes() as u64 <= limits::OUTPUT_PER_TASK_BYTES);
        }
    }
    core.end(ms(20_000), ticket);
    let mut last = 0;
    while let Some((id, pieces)) = core.poll_call(ms(20_000)) {
        last = pieces.iter().map(|piece| piece.at + piece.bytes.len() as u64).max().unwrap_or(last);
        core.handle_answer(ms(20_000), id, kept(limits::OUTPUT_PER_TASK_BYTES));
    }
    assert_eq!((last, core.held_bytes()), (1 << 30, 0));
}
