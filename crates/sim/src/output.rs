//! Output of tasks: each piece says of which attempt it is, so that whoever reads it sees whether it is the right one. What
//! a broker of the simulator keeps of it ends with the broker: its archive is in memory.

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::archive::{OutputPiece, OutputPlace, OutputStream};
use turno_proto::model::job::JobId;

pub(crate) fn piece(job: u64, task: u32, attempt: u32) -> OutputPiece {
    let bytes = words(job, task, attempt).into();
    OutputPiece { job: JobId(job), task, attempt, stream: OutputStream::Stdout, at: 0, live: false, bytes, lost: 0 }
}

fn words(job: u64, task: u32, attempt: u32) -> String {
    format!("attempt {attempt} of task {task} of job {job}")
}

pub(crate) fn look(job: u64) -> AdminCall {
    let (job, from) = (JobId(job), OutputPlace::default());
    AdminCall::JobOutput { job, tasks: None, from, after: None, follow: true, limit: u32::MAX }
}

/// What was handed in is kept or named as refused, and nothing else is named.
pub(crate) fn judge_kept(piece: &OutputPiece, answer: &AdminAnswer) {
    let AdminAnswer::OutputKept { refused, .. } = answer else { panic!("I19: output was answered by {answer:?}") };
    let attempt = (piece.job, piece.task, piece.attempt);
    assert!(refused.iter().all(|one| *one == attempt), "I19: {attempt:?} was handed in, and {refused:?} refused");
}

/// A job's output is that of its tasks, in order, each piece once.
pub(crate) fn judge(job: u64, answer: &AdminAnswer) {
    let AdminAnswer::Output { pieces, end, .. } = answer else { panic!("I19: output of {job} is {answer:?}") };
    assert!(*end, "I19: there is little output");
    for OutputPiece { job: of, task, attempt, bytes, .. } in pieces {
        assert!(of.0 == job && bytes[..] == *words(job, *task, *attempt).as_bytes(), "I19: {bytes:?} of {of}.{task}");
    }
    let order: Vec<(u32, u32)> = pieces.iter().map(|piece| (piece.task, piece.attempt)).collect();
    assert!(order.is_sorted_by(|a, b| a < b), "I19: output in order, each piece once: {order:?}");
}
