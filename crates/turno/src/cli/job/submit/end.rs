//! The end of a submission: its output and its exit status.

use turno_client::{AdminAnswer, AdminCall};
use turno_proto::model::Code;
use turno_proto::model::job::{JobReason, JobSpec, JobState, JobView, TaskView};

use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::job::select::JobSelector;
use crate::cli::job::text::{number_of_tasks, title};
use crate::cli::job::{JobClient, one_done};

pub(super) fn submitted(job: &JobView) -> String {
    format!("{} submitted: {}", title(job), number_of_tasks(job.tasks.into()))
}

pub(super) fn tell(job: &JobView, invocation: &Invocation) -> Result<u8, Failure> {
    let id = job.id;
    one_done(job, invocation, submitted)?;
    tell_reason(job, invocation);
    if let Some(JobReason::Missed { job: before, .. }) = job.because.as_deref() {
        invocation.output.hint(&format!("show that job: turno job show {before}"));
        return Ok(1);
    }
    invocation.output.hint(&match job.state == JobState::Held {
        true => format!("release it with: turno job release {id}"),
        false => format!("wait for it: turno job wait {id}"),
    });
    Ok(0)
}

/// Why nothing of it is started yet, if that is so.
pub(super) fn tell_reason(job: &JobView, invocation: &Invocation) {
    if let Some(because) = job.because.as_deref() {
        let what = if matches!(because, JobReason::Missed { .. }) { "cancelled" } else { "it waits" };
        invocation.output.note(&format!("{what}: {because}"));
    }
}

/// The error about a submission that the broker refused, with its cause as far as it can be found out.
pub(super) async fn refused(failure: Failure, spec: &JobSpec, asked: &JobClient<'_>) -> Failure {
    match (failure.code(), &spec.key) {
        (Code::KeyTaken, Some(key)) => Failure::new(Code::KeyTaken, format!("another job has the key {key}"))
            .why("it was submitted with another command, other tasks or other options")
            .fix("choose another --key, or find that job with `turno job ls` and remove it with `turno job rm` once it has ended"),
        (Code::BadJob, _) => {
            for after in &spec.after {
                let found = asked.find(JobSelector::Id(after.job)).await;
                if found.is_err_and(|failure| failure.code() == Code::NotFound) {
                    return Failure::new(Code::BadJob, format!("--after: job {} does not exist", after.job))
                        .why("it was never submitted to this broker, or has been removed")
                        .fix("`turno job ls` lists the jobs");
                }
            }
            failure
        }
        (_, key) => unsure(failure, key.as_deref()),
    }
}

/// Whether the broker has the job is unknown if it did not say.
pub(super) fn unsure(failure: Failure, key: Option<&str>) -> Failure {
    match failure.code() {
        Code::ConnectionLost | Code::TimedOut => {
            let fix = match key {
                Some(_) => "submit again with the same --key: it will not run twice",
                None => "check with `turno job ls`; with --key you could safely submit again",
            };
            failure.why("the broker did not confirm the job in time; it may have accepted it").fix(fix)
        }
        _ => failure,
    }
}

/// While one command is waited for, what it returns must not be mistaken for what turno has to say.
pub(super) fn set_apart(failure: Failure) -> Failure {
    let is_told_apart = matches!(failure.exit(), 2 | 124 | 130 | 143);
    if failure.is_silent() || is_told_apart { failure } else { failure.exit_with(125) }
}

/// The one task of a job without an array.
pub(super) async fn only_task(asked: &JobClient<'_>, job: &JobView) -> Result<Option<TaskView>, Failure> {
    let call = AdminCall::JobTasks { job: job.id, state: None, after: None, limit: 1 };
    match asked.admin(call).await? {
        AdminAnswer::Tasks { tasks, .. } => Ok(tasks.into_iter().next()),
        other => Err(connect::unexpected(&other)),
    }
}

/// The exit status of the command, 128 plus the signal that ended it, or 1 if there is neither.
pub(super) fn exit_of(job: &JobView, task: Option<&TaskView>) -> u8 {
    if job.state == JobState::Finished {
        return 0;
    }
    let code = task.and_then(|task| task.exit_code.or_else(|| task.signal.map(|signal| signal.saturating_add(128))));
    code.and_then(|code| u8::try_from(code).ok()).filter(|code| *code > 0).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::job::tests::view;

    #[test]
    fn one_command_ends_with_its_own_exit_status() {
        let task = |exit_code, signal| TaskView { task: 1, exit_code, signal, ..TaskView::default() };
        let failed = JobView { state: JobState::Failed, ..view(7) };
        let table = [
            (Some(task(Some(3), None)), 3),
            (Some(task(Some(126), None)), 126),
            (Some(task(Some(127), None)), 127),
            (Some(task(None, Some(9))), 137),
            (Some(task(None, None)), 1),
            (Some(task(Some(0), None)), 1),
            (Some(task(Some(-1), None)), 1),
            (Some(task(Some(256), None)), 1),
            (Some(task(None, Some(i32::MAX))), 1),
            (None, 1),
        ];
        for (task, exit) in table {
            assert_eq!(exit_of(&failed, task.as_ref()), exit, "{task:?}");
        }
        assert_eq!(exit_of(&JobView { state: JobState::Finished, ..view(7) }, Some(&task(Some(3), None))), 0);
        assert_eq!(exit_of(&JobView { state: JobState::Cancelled, ..view(7) }, Some(&task(None, None))), 1);
    }

    #[test]
    fn a_submission_without_an_answer_may_be_there_all_the_same() {
        assert!(unsure(Failure::of(Code::TimedOut), None).body().hint.contains("turno job ls"));
        assert!(unsure(Failure::of(Code::ConnectionLost), Some("k")).body().hint.contains("same --key"));
        assert_eq!(unsure(Failure::of(Code::BadJob), None), Failure::of(Code::BadJob));
    }

    #[test]
    fn a_failure_of_our_own_is_told_apart_from_the_commands() {
        let table = [(Code::CannotConnect, 125), (Code::BadUsage, 2), (Code::TimedOut, 124), (Code::NotFound, 125)];
        for (code, exit) in table {
            assert_eq!(set_apart(Failure::of(code)).exit(), exit, "{code}");
        }
        assert_eq!(set_apart(Failure::broken_pipe()).exit(), 0);
    }
}
