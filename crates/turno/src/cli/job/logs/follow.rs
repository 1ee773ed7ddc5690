//! Following of output: stored output first, then new output until the job has ended. While somebody follows, workers
//! send what they would leave out.

use std::time::Duration;

use tokio::time::sleep;
use turno_client::core::Seen;
use turno_client::{AdminAnswer, AdminCall};
use turno_proto::model::archive::{OutputPiece, OutputPlace};
use turno_proto::model::job::{JobId, TaskState};
use turno_proto::model::limits::{PIECE_BYTES_MAX, TASK_RANGES_MAX};

use super::print::LogsPrinter;
use super::{LogsArgs, LogsReader, LogsTarget};
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::job::watch::{found_again, is_loss};
use crate::cli::job::{JobClient, named};
use crate::cli::signals::Signals;

/// Time between two looks when nothing came.
const PAUSE: Duration = Duration::from_millis(200);

pub(super) async fn run(
    args: &LogsArgs,
    mut asked: JobClient<'_>,
    look: &LogsTarget,
    mut printer: LogsPrinter<'_>,
) -> Result<u8, Failure> {
    let mut signals = Signals::catch()?;
    let job = look.job.id;
    let mut reader = LogsReader { asked: &asked, args, job, seen: Seen::default(), arrived: None };
    let begun = tokio::select! {
        read = reader.read(look, &mut printer) => read,
        exit = signals.next() => return Ok(exit),
    };
    begun?;
    let LogsReader { seen, arrived, .. } = reader;
    let mut tail = LogsTail { look, seen, after: arrived.unwrap_or(0) };
    loop {
        let turn = tokio::select! {
            turn = tail.turn(&asked, &mut printer) => turn,
            exit = signals.next() => {
                asked.invocation.output.note(&format!("job {job} continues; follow it again with `turno job logs {job} -f`"));
                return Ok(exit);
            }
        };
        match turn {
            Ok(true) => break,
            Ok(false) => {}
            Err(failure) if is_loss(failure.code()) => {
                asked.invocation.output.note("connection lost; reconnecting");
                asked.client = found_again(asked.invocation).await?;
            }
            Err(failure) => return Err(named(failure, job)),
        }
    }
    printer.end()?;
    printer.verdict()?;
    Ok(0)
}

/// Output as it arrives.
struct LogsTail<'a> {
    look: &'a LogsTarget,
    seen: Seen,
    after: u64,
}

impl LogsTail<'_> {
    /// Tells what came since the last turn; whether that was all.
    async fn turn(&mut self, asked: &JobClient<'_>, printer: &mut LogsPrinter<'_>) -> Result<bool, Failure> {
        // Asked first: what is there after the end is all there will be.
        let is_over = self.is_over(asked).await?;
        let mut came = false;
        loop {
            let (pieces, arrived, end) = self.output(asked).await?;
            came |= !pieces.is_empty();
            for piece in pieces {
                if self.is_meant(&piece)
                    && let Some((piece, left_out)) = self.seen.new_part(piece)
                {
                    printer.tell(&piece, left_out)?;
                }
            }
            self.after = arrived;
            if end {
                break;
            }
        }
        if !is_over && !came {
            sleep(PAUSE).await;
        }
        Ok(is_over)
    }

    /// One call names only so many ranges; of more, all is asked for.
    fn named_ranges(&self) -> Option<Vec<(u32, u32)>> {
        self.look.tasks.clone().filter(|tasks| tasks.len() <= TASK_RANGES_MAX)
    }

    fn is_meant(&self, piece: &OutputPiece) -> bool {
        let tasks = self.look.tasks.as_deref();
        tasks.is_none_or(|tasks| tasks.iter().any(|(first, last)| (*first..=*last).contains(&piece.task)))
    }

    async fn output(&self, asked: &JobClient<'_>) -> Result<(Vec<OutputPiece>, u64, bool), Failure> {
        let call = AdminCall::JobOutput {
            job: self.job(),
            tasks: self.named_ranges(),
            from: OutputPlace::default(),
            after: Some(self.after),
            follow: true,
            limit: u32::try_from(PIECE_BYTES_MAX).unwrap_or(u32::MAX),
        };
        match asked.patient(call).await? {
            AdminAnswer::Output { pieces, arrived, end, .. } => Ok((pieces, arrived, end)),
            other => Err(connect::unexpected(&other)),
        }
    }

    const fn job(&self) -> JobId {
        self.look.job.id
    }

    /// Whether what is looked at has ended: the only task, or the job.
    async fn is_over(&self, asked: &JobClient<'_>) -> Result<bool, Failure> {
        let job = self.job();
        if let Some(task) = self.look.single() {
            let call = AdminCall::JobTasks { job, state: None, after: task.checked_sub(1), limit: 1 };
            return match asked.admin(call).await? {
                AdminAnswer::Tasks { tasks, .. } => Ok(tasks
                    .iter()
                    .all(|view| view.task != task || !matches!(view.state, TaskState::Waiting | TaskState::Running))),
                other => Err(connect::unexpected(&other)),
            };
        }
        let view = asked.job(AdminCall::JobShow { job: Some(job) }, job).await?;
        Ok(view.state.is_end())
    }
}
