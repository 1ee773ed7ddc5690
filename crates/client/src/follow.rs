//! Output of tasks as it comes: first the output that is kept, then each piece as it arrives, until the job has ended.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::archive::{OutputPiece, OutputPlace};
use turno_proto::model::job::JobId;
use turno_proto::model::limits::{PIECE_BYTES_MAX, TASK_RANGES_MAX};

use crate::core::Seen;
use crate::pages::Pages;
use crate::{Client, Error, ErrorKind};

/// Time between two looks when nothing came.
const PAUSE: Duration = Duration::from_millis(200);

/// The output of a job, or of these tasks of it.
pub(crate) fn follow(client: Client, job: JobId, tasks: Option<Vec<(u32, u32)>>) -> Pages<OutputPiece> {
    let ask = move |call| {
        let client = client.clone();
        async move { ask_again(&client, call).await }
    };
    let follower = Arc::new(Follower { ask, job, tasks });
    Pages::until_end(move |at| {
        let follower = Arc::clone(&follower);
        async move { follower.turn(at.unwrap_or_default()).await }
    })
}

/// These calls change nothing: after a lost connection they are made again as soon as there is another one.
async fn ask_again(client: &Client, call: AdminCall) -> Result<AdminAnswer, Error> {
    loop {
        match crate::archive::Archive(client).ask(call.clone()).await {
            Err(error) if error.kind() == ErrorKind::ConnectionLost => {}
            answer => return answer,
        }
    }
}

struct Follower<A> {
    ask: A,
    job: JobId,
    tasks: Option<Vec<(u32, u32)>>,
}

/// Where the next turn goes on.
#[derive(Debug, Default)]
struct Cursor {
    step: Step,
    seen: Seen,
}

#[derive(Debug)]
enum Step {
    /// The output that is kept, from that place on; `arrived` is the moment of the first answer.
    Kept { from: OutputPlace, arrived: Option<u64> },
    /// The output that arrived after that moment.
    Arrived { after: u64, look: Option<Look> },
}

impl Default for Step {
    fn default() -> Self {
        Self::Kept { from: OutputPlace::default(), arrived: None }
    }
}

/// A look at all that arrived, which may take several calls.
#[derive(Clone, Copy, Debug)]
struct Look {
    /// The job had ended before: nothing comes after this look.
    is_last: bool,
    came: bool,
}

impl<A, F> Follower<A>
where
    A: Fn(AdminCall) -> F,
    F: Future<Output = Result<AdminAnswer, Error>>,
{
    /// The next pieces, and where to go on unless that was all.
    async fn turn(&self, cursor: Cursor) -> Result<(Vec<OutputPiece>, Option<Cursor>), Error> {
        let Cursor { step, mut seen } = cursor;
        let (pieces, next) = match step {
            Step::Kept { from, arrived } => {
                let answer = self.output(from, None).await?;
                let arrived = arrived.unwrap_or(answer.arrived);
                let next = match answer.end {
                    true => Step::Arrived { after: arrived, look: None },
                    false => Step::Kept { from: answer.next, arrived: Some(arrived) },
                };
                (answer.pieces, Some(next))
            }
            Step::Arrived { after, look } => {
                // Asked before the output: what is there after the end is all there will be.
                let look = match look {
                    Some(look) => look,
                    None => Look { is_last: self.is_over().await?, came: false },
                };
                let answer = self.output(OutputPlace::default(), Some(after)).await?;
                let came = look.came || !answer.pieces.is_empty();
                let after = answer.arrived;
                let next = match (answer.end, look.is_last) {
                    (false, _) => Some(Step::Arrived { after, look: Some(Look { came, ..look }) }),
                    (true, true) => None,
                    (true, false) => Some(Step::Arrived { after, look: None }),
                };
                if answer.end && !look.is_last && !came {
                    sleep(PAUSE).await;
                }
                (answer.pieces, next)
            }
        };
        let mut new = Vec::new();
        for piece in pieces {
            if self.is_meant(&piece)
                && let Some((piece, _)) = seen.new_part(piece)
            {
                new.push(piece);
            }
        }
        Ok((new, next.map(|step| Cursor { step, seen })))
    }

    async fn output(&self, from: OutputPlace, after: Option<u64>) -> Result<OutputAnswer, Error> {
        // One call names only so many ranges; of more, all output is asked for.
        let tasks = self.tasks.clone().filter(|tasks| tasks.len() <= TASK_RANGES_MAX);
        let limit = u32::try_from(PIECE_BYTES_MAX).unwrap_or(u32::MAX);
        let call = AdminCall::JobOutput { job: self.job, tasks, from, after, follow: true, limit };
        match (self.ask)(call).await? {
            AdminAnswer::Output { pieces, next, arrived, end, .. } => Ok(OutputAnswer { pieces, next, arrived, end }),
            other => Err(Error::unexpected(&other)),
        }
    }

    async fn is_over(&self) -> Result<bool, Error> {
        match (self.ask)(AdminCall::JobShow { job: Some(self.job) }).await? {
            AdminAnswer::Job { job } => Ok(job.state.is_end()),
            other => Err(Error::unexpected(&other)),
        }
    }

    fn is_meant(&self, piece: &OutputPiece) -> bool {
        let tasks = self.tasks.as_deref();
        tasks.is_none_or(|tasks| tasks.iter().any(|(first, last)| (*first..=*last).contains(&piece.task)))
    }
}

struct OutputAnswer {
    pieces: Vec<OutputPiece>,
    next: OutputPlace,
    arrived: u64,
    end: bool,
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::Mutex;

    use bytes::Bytes;
    use turno_proto::model::archive::OutputStream;
    use turno_proto::model::job::{JobState, JobView};

    use super::*;

    const JOB: JobId = JobId(7);

    fn piece(task: u32, at: u64, text: &'static str) -> OutputPiece {
        let bytes = Bytes::from_static(text.as_bytes());
        OutputPiece { job: JOB, task, attempt: 1, stream: OutputStream::Stdout, at, live: false, bytes, lost: 0 }
    }

    fn output(pieces: Vec<OutputPiece>, arrived: u64, end: bool) -> AdminAnswer {
        AdminAnswer::Output { pieces, next: OutputPlace { task: 2, attempt: 1, at: 0 }, arrived, end, damaged: false }
    }

    fn job(state: JobState) -> AdminAnswer {
        AdminAnswer::Job { job: Box::new(JobView { state, ..JobView::default() }) }
    }

    /// The question of a call: the state, or output from a task on or after a moment.
    fn asked(call: &AdminCall) -> (Option<u32>, Option<u64>) {
        match call {
            AdminCall::JobOutput { from, after, follow: true, .. } => (Some(from.task), *after),
            AdminCall::JobShow { job: Some(JOB) } => (None, None),
            other => panic!("not a call of a follower: {other:?}"),
        }
    }

    /// The bytes that come with their places, and what was asked for.
    async fn followed(
        answers: Vec<AdminAnswer>,
        tasks: Option<Vec<(u32, u32)>>,
    ) -> (Vec<(u32, u64, Bytes)>, Vec<(Option<u32>, Option<u64>)>) {
        let script = Mutex::new((VecDeque::from(answers), Vec::new()));
        let ask = |call| {
            let mut script = script.lock().expect("no panic");
            script.1.push(asked(&call));
            std::future::ready(Ok(script.0.pop_front().expect("no more is asked for than is answered")))
        };
        let follower = Follower { ask, job: JOB, tasks };
        let (mut came, mut next) = (Vec::new(), Some(Cursor::default()));
        while let Some(cursor) = next {
            let (pieces, rest) = follower.turn(cursor).await.expect("answered");
            came.extend(pieces.into_iter().map(|piece| (piece.task, piece.at, piece.bytes)));
            next = rest;
        }
        drop(follower);
        let (left, calls) = script.into_inner().expect("no panic");
        assert!(left.is_empty(), "every answer is asked for: {left:?}");
        (came, calls)
    }

    /// The kept output page by page, then what arrived since its first page, each byte once, until a look after the end.
    #[tokio::test]
    async fn kept_output_comes_first_and_then_the_output_that_arrives() {
        let answers = vec![
            output(vec![piece(1, 0, "ab")], 5, false),
            output(vec![piece(2, 0, "x")], 6, true),
            job(JobState::Running),
            output(vec![piece(2, 0, "xy"), piece(1, 2, "c")], 8, false),
            output(Vec::new(), 9, true),
            job(JobState::Finished),
            output(vec![piece(1, 9, "end")], 10, true),
        ];
        let (came, calls) = followed(answers, None).await;
        let expected = [(1, 0, "ab"), (2, 0, "x"), (2, 1, "y"), (1, 2, "c"), (1, 9, "end")];
        assert_eq!(came, expected.map(|(task, at, text)| (task, at, Bytes::from_static(text.as_bytes()))));
        let (state, after) = ((None, None), |moment| (Some(0), Some(moment)));
        let expected = [(Some(0), None), (Some(2), None), state, after(5), after(8), state, after(9)];
        assert_eq!(calls, expected);
    }

    /// Of more ranges than a call may name, the others' output is left out here.
    #[tokio::test]
    async fn only_the_output_of_these_tasks_comes() {
        let many = (0..=TASK_RANGES_MAX as u32).map(|number| (3 * number, 3 * number)).collect();
        let kept = output(vec![piece(3, 0, "a"), piece(4, 0, "b"), piece(6, 0, "c")], 1, true);
        let (came, _) = followed(vec![kept, job(JobState::Failed), output(Vec::new(), 1, true)], Some(many)).await;
        assert_eq!(came.iter().map(|(task, ..)| *task).collect::<Vec<_>>(), [3, 6]);
    }
}
