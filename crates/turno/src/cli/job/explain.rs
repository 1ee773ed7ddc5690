//! `turno job explain`: why a task is where it is.

use clap::Args;
use turno_client::{AdminAnswer, AdminCall};
use turno_proto::model::Code;

use super::select::{JobPart, JobSelector};
use super::{JobClient, named, no_task};
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;
use crate::cli::schema::job_explain::JobExplainDocument;

/// Show why a task is where it is
///
/// For a whole job: its first waiting task, or else its first running one.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno job explain 7", "turno job explain 7.3", "turno job explain last --json"],
    &[1, 4, 5, 78, 124],
))]
pub(super) struct JobExplainArgs {
    /// Job or task: 7, last, 7.3
    task: JobPart,
}

pub(super) async fn run(args: &JobExplainArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let task = match args.task.tasks.as_deref() {
        None => None,
        Some([(first, last)]) if first == last => Some(*first),
        Some(_) => {
            return Err(Failure::new(Code::BadUsage, "only one task can be explained at a time")
                .why("several tasks are given")
                .fix(format!("choose one: `turno job explain {}.3`", args.task.job)));
        }
    };
    let asked = JobClient::connect(invocation).await?;
    let job = match args.task.job {
        JobSelector::Id(job) => job,
        JobSelector::Last => asked.find(JobSelector::Last).await?.id,
    };
    let answer = asked.admin(AdminCall::JobExplain { job, task }).await;
    let (view, task, because) = match answer {
        Ok(AdminAnswer::TaskExplained { job, task, because, .. }) => (job, task, because),
        Ok(other) => return Err(connect::unexpected(&other)),
        Err(failure) if failure.code() == Code::NotFound && task.is_some() => {
            // The job may be there, and only the task not.
            let view = asked.find(JobSelector::Id(job)).await?;
            let task = task.unwrap_or_default();
            return Err(no_task(&view, &[(task, task)]));
        }
        Err(failure) => return Err(named(failure, job)),
    };
    let document = JobExplainDocument::new(&view, &task, &because);
    invocation.output.one(&document, &task.id.to_string(), || {
        let attempt = match task.attempt {
            0 => String::new(),
            attempt => format!(", attempt {attempt}"),
        };
        format!("task {} ({}{attempt}): {}\n", task.id, task.state, document.because.0)
    })?;
    if let Some(hint) = &document.hint {
        invocation.output.hint(hint);
    }
    Ok(0)
}
