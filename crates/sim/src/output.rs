//! Output of tasks, sent by the submitter in the names of their workers. What an attempt writes is told by its name and
//! the position alone, so that its reader sees whether it is right. What was confirmed is there later byte for byte, or
//! is told as lost to damage; it is never silently absent. Only a power cut may take what came last.

use std::collections::{BTreeMap, BTreeSet};

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::archive::{OutputPiece, OutputPlace, OutputStream};
use turno_proto::model::job::JobId;

use crate::archive::Harm;
use crate::rng::Rng;

/// Bytes of a piece.
const PIECE_BYTES: u64 = 128;
/// Pieces of one attempt.
const PIECES_MAX: u64 = 12;
/// Pieces of one job: an answer has them all.
const OF_JOB_MAX: u64 = 60;

/// Job, task and attempt.
pub(crate) type Name = (u64, u32, u32);

/// Confirmed output.
#[derive(Debug, Default)]
pub(crate) struct Outputs {
    /// Numbers of pieces.
    kept: BTreeMap<Name, BTreeSet<u64>>,
    /// How many pieces were handed in.
    handed: BTreeMap<Name, u64>,
    /// Something went wrong with the archive.
    harmed: bool,
    /// Somebody looks at a job's output as it comes.
    follower: Option<Follower>,
}

/// One that looks at what a job prints, as it comes. Brokers may be restarted meanwhile, and their clocks be set.
#[derive(Debug)]
struct Follower {
    job: u64,
    /// The moment up to which it knows what arrived.
    arrived: u64,
    /// Pieces that were confirmed since it looked first, and it has not seen.
    expected: BTreeSet<(Name, u64)>,
}

impl Outputs {
    /// The next call of a follower, and the output that its answer must have.
    pub(crate) fn follow(&self) -> Option<(AdminCall, Vec<(Name, u64)>)> {
        let Follower { job, arrived, expected } = self.follower.as_ref()?;
        let (job, from) = (JobId(*job), OutputPlace::default());
        let call =
            AdminCall::JobOutput { job, tasks: None, from, after: Some(*arrived), follow: true, limit: u32::MAX };
        Some((call, expected.iter().copied().collect()))
    }

    /// It is answered: what is expected is there, unless it may be lost.
    pub(crate) fn judge_follow(&mut self, expected: &[(Name, u64)], answer: &AdminAnswer) {
        let AdminAnswer::Output { pieces, arrived, end, damaged, .. } = answer else {
            panic!("I19: output by arrival is {answer:?}")
        };
        let Some(follower) = &mut self.follower else { return };
        for OutputPiece { job, task, attempt, at, bytes, .. } in pieces {
            let name = (job.0, *task, *attempt);
            assert_eq!(bytes[..], stream(name, *at, bytes.len()), "I19: {name:?} at {at}");
            follower.expected.remove(&(name, at / PIECE_BYTES));
        }
        follower.arrived = *arrived;
        let is_kept = |(name, number): &(Name, u64)| self.kept.get(name).is_some_and(|now| now.contains(number));
        let missed = expected.iter().find(|one| *end && !damaged && is_kept(one) && follower.expected.contains(one));
        assert!(missed.is_none(), "I19: {missed:?} was confirmed, and one that follows its job does not hear of it");
    }

    /// The one that follows is gone.
    pub(crate) fn unfollow(&mut self) {
        self.follower = None;
    }

    /// The next pieces of an attempt, or some once more.
    pub(crate) fn hand_in(&mut self, name: Name, rng: &mut Rng) -> Vec<OutputPiece> {
        let of_job: u64 =
            self.handed.range((name.0, 0, 0)..=(name.0, u32::MAX, u32::MAX)).map(|(_, count)| count).sum();
        let handed = self.handed.entry(name).or_insert(0);
        let first = if *handed > 0 && rng.once_in(4) { rng.range(0, *handed) } else { *handed };
        let until = (first + rng.range(1, 5)).min(PIECES_MAX);
        if of_job >= OF_JOB_MAX || first >= until {
            return Vec::new();
        }
        *handed = until.max(*handed);
        (first..until).map(|number| piece(name, number)).collect()
    }

    /// Each piece is kept or named as refused, and nothing else is named.
    pub(crate) fn confirmed(&mut self, pieces: &[OutputPiece], answer: &AdminAnswer) {
        let AdminAnswer::OutputKept { refused, .. } = answer else { panic!("I19: output was answered by {answer:?}") };
        let name = |piece: &OutputPiece| (piece.job, piece.task, piece.attempt);
        let is_handed_in = |one: &(JobId, u32, u32)| pieces.iter().any(|piece| name(piece) == *one);
        assert!(refused.iter().all(is_handed_in), "I19: {pieces:?} were handed in, and {refused:?} refused");
        for piece in pieces.iter().filter(|piece| !refused.contains(&name(piece))) {
            let (of, number) = ((piece.job.0, piece.task, piece.attempt), piece.at / PIECE_BYTES);
            let is_new = self.kept.entry(of).or_default().insert(number);
            if let Some(follower) = self.follower.as_mut().filter(|follower| is_new && follower.job == of.0) {
                follower.expected.insert((of, number));
            }
        }
    }

    /// The confirmed output of a job.
    pub(crate) fn of_job(&self, job: u64) -> Vec<(Name, u64)> {
        let of_job = self.kept.range((job, 0, 0)..=(job, u32::MAX, u32::MAX));
        of_job.flat_map(|(name, numbers)| numbers.iter().map(|number| (*name, *number))).collect()
    }

    /// A broker is back with its archive.
    pub(crate) fn reopened(&mut self, harm: Harm) {
        if harm == Harm::PowerCut {
            self.kept.clear();
        }
        self.harmed |= harm != Harm::None;
    }

    /// Writes of the archive go wrong.
    pub(crate) const fn write_fails(&mut self) {
        self.harmed = true;
    }

    /// A job's output is that of its tasks, in order, each byte once, and all that was confirmed before it was asked for.
    pub(crate) fn judge(&mut self, job: u64, confirmed: &[(Name, u64)], answer: &AdminAnswer) {
        let AdminAnswer::Output { pieces, arrived, end, damaged, .. } = answer else {
            panic!("I19: output of {job} is {answer:?}")
        };
        assert!(*end, "I19: there is little output");
        let mut told: BTreeMap<Name, Vec<(u64, u64)>> = BTreeMap::new();
        let mut before = None;
        for OutputPiece { job: of, task, attempt, at, bytes, lost, .. } in pieces {
            let (name, until) = ((of.0, *task, *attempt), at + bytes.len() as u64 + lost);
            assert!(of.0 == job && bytes[..] == stream(name, *at, bytes.len()), "I19: {bytes:?} of {name:?} at {at}");
            assert!(bytes.is_empty() || *lost == 0, "I19: bytes are there, or lost: {name:?} at {at}");
            assert!(*lost == 0 || self.harmed, "I19: {lost} bytes of {name:?} are lost, and nothing went wrong");
            assert!(before < Some((name, *at, until)), "I19: output in order, each byte once: {name:?} at {at}");
            before = Some((name, until, 0));
            told.entry(name).or_default().push((*at, until));
        }
        assert!(!damaged || self.harmed, "I19: output of {job} is said to be damaged, and nothing went wrong");
        for (name, number) in
            confirmed.iter().filter(|one| self.kept.get(&one.0).is_some_and(|now| now.contains(&one.1)))
        {
            let ranges = told.get(name).map_or(&[][..], Vec::as_slice);
            let is_told = *damaged || is_covered(ranges, *number);
            assert!(is_told, "I19: piece {number} of {name:?} was confirmed, and is silently absent: {ranges:?}");
        }
        self.follower.get_or_insert(Follower { job, arrived: *arrived, expected: BTreeSet::new() });
    }
}

/// Whether a piece is in these ranges, which are in order.
fn is_covered(ranges: &[(u64, u64)], number: u64) -> bool {
    let (mut at, until) = (number * PIECE_BYTES, (number + 1) * PIECE_BYTES);
    for (from, to) in ranges {
        if *from <= at && at < *to {
            at = *to;
        }
    }
    at >= until
}

/// The output of an attempt from a position on.
fn stream((job, task, attempt): Name, at: u64, len: usize) -> Vec<u8> {
    let name = job << 40 | u64::from(task) << 20 | u64::from(attempt);
    let byte = |at: u64| Rng::new(name ^ at << 50).next().to_le_bytes()[0];
    (at..).take(len).map(byte).collect()
}

fn piece(name: Name, number: u64) -> OutputPiece {
    let (job, task, attempt) = name;
    let (at, len) = (number * PIECE_BYTES, usize::try_from(PIECE_BYTES).expect("small"));
    let bytes = stream(name, at, len).into();
    OutputPiece { job: JobId(job), task, attempt, stream: OutputStream::Stdout, at, live: false, bytes, lost: 0 }
}

pub(crate) fn look(job: u64) -> AdminCall {
    let (job, from) = (JobId(job), OutputPlace::default());
    AdminCall::JobOutput { job, tasks: None, from, after: None, follow: true, limit: u32::MAX }
}
