//! `turno submit`, which is `turno job submit`: hands a job to the broker.

mod dry;
mod each;
mod end;
mod flags;
mod plan;
mod put;
mod reader;
mod script;
mod uploads;
mod values;

use std::io;
use std::path::Path;

use clap::Args;
use turno_client::AdminCall;
use turno_proto::model::job::After;

use self::flags::Flags;
use self::plan::{SubmitPlan, TaskCommand};
use self::script::Script;
use self::uploads::Upload;
use super::select::JobSelector;
use super::wait::{Wait, tell_ends};
use super::{JobClient, view};
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;

/// Submit a job: a command, or a task per number, line, row or file
///
/// `turno submit` and `turno job submit` are the same command. It returns when the broker has stored the job. The
/// command and its arguments reach the workers unchanged; no shell interprets them, except with --shell.
///
/// Placeholders are replaced in CMD, in --cwd and in the values of --env. {} is the task's item: its line, value or
/// path, or its number in an --array. {.} is the item without its extension, {/} its last path component, {/.} that
/// without its extension, {//} its directory, and {#} the task number. With columns (--each-csv, objects of
/// --each-json), {column} is one field. {{}} gives {}. A command without an array or list is not changed.
///
/// The environment of a task has TURNO_JOB_ID, TURNO_JOB_NAME, TURNO_TASK_ID, TURNO_TASK_COUNT, TURNO_ATTEMPT,
/// TURNO_SLOTS (the task's slots) and TURNO_WORKER_ID, but no secrets of its worker.
///
/// A SCRIPT is a local file that is uploaded with the job and runs in a directory of the task's own. Comments at its
/// beginning such as `#TURNO --array 1-10 --slots 2` contain flags. Flags on the command line take precedence, and
/// repeatable flags add up. Arguments follow the script; put them after -- if they start with a hyphen. With --cwd the
/// script is not uploaded but run by its path.
///
/// With --wait the command ends when the job ends, or after --timeout; Ctrl-C leaves the job running. The exit status
/// of a single command is then that of the command, or 125 if turno itself failed. With several tasks it is 1 if a task
/// failed or was cancelled.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno submit -- ./simulate --seed 1",
        "turno submit --array 1,3,5-8 -- ./simulate --seed {}",
        "turno submit --array 1-1000%64 --slots 2 --retries 3 --backoff 10s -- ./simulate --seed {}",
        "turno submit --each-csv runs.csv --upload run --collect 'out/*' -- ./run --rate {rate}",
        "turno submit --glob 'data/*.csv' --shell -- 'sort {} | uniq -c > {.}.counts'",
        "turno submit simulate.sh --each 0.1 0.2 0.5 --wait -- {}",
        "turno job submit --after 7 --after 8:any --dry-run -- ./collect",
    ],
    &[1, 4, 5, 78, 124, 125, 126, 127, 130, 143],
))]
pub(crate) struct SubmitArgs {
    /// Script to run, with its arguments after --
    #[arg(value_name = "SCRIPT", required_unless_present = "command")]
    script: Vec<String>,

    /// Program and arguments; with SCRIPT, its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<String>,

    #[command(flatten)]
    flags: Flags,
}

/// The typed flags with those of the script.
struct SubmitInput {
    flags: Flags,
    command: TaskCommand,
}

impl SubmitInput {
    fn of(args: &SubmitArgs, invocation: &Invocation) -> Result<Self, Failure> {
        let Some((path, plain)) = args.script.split_first() else {
            return Ok(Self { flags: args.flags.clone(), command: TaskCommand::Words(args.command.clone()) });
        };
        let script = Script::read(Path::new(path))?;
        if let Some(line) = script.unread {
            invocation.output.warn(&format!(
                "{path}:{line}: #TURNO line ignored: it must be among the leading comments of the script"
            ));
        }
        let Script { path, name, flags, .. } = script;
        let command = TaskCommand::Script { path, name, args: [plain, &args.command].concat() };
        Ok(Self { flags: args.flags.clone().over(flags), command })
    }
}

pub(crate) fn run(args: &SubmitArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let mut is_one = args.flags.wait && args.flags.is_one();
    let end = SubmitInput::of(args, invocation).and_then(|said| {
        is_one = said.flags.wait && said.flags.is_one();
        let plan = plan(&said.flags, said.command)?;
        match said.flags.dry_run {
            true => dry::show(&plan, &said.flags, invocation),
            false => connect::block_on(submit(&said.flags, plan, invocation)),
        }
    });
    if is_one { end.map_err(end::set_apart) } else { end }
}

fn plan(flags: &Flags, command: TaskCommand) -> Result<SubmitPlan, Failure> {
    let here =
        std::env::current_dir().map_err(|error| Failure::system("cannot determine the current directory", &error))?;
    let tasks = each::tasks(&flags.source, io::stdin().lock())?;
    let files = uploads::plan(&flags.upload)?;
    let stdin = flags.stdin.as_deref().map(|path| Upload::file(path, "stdin")).transpose()?;
    SubmitPlan::new(flags, command, tasks, files, stdin, &here)
}

async fn submit(flags: &Flags, plan: SubmitPlan, invocation: &Invocation) -> Result<u8, Failure> {
    // A file that was read for a long time must not count as a broker that is silent: all is read before.
    let files = plan
        .uploads()
        .map(|upload| Ok((upload.clone(), reader::id_of(upload)?)))
        .collect::<Result<Vec<_>, Failure>>()?;
    let ids: Vec<_> = files.iter().map(|(_, id)| *id).collect();
    let mut spec = plan.with_ids(&ids)?;
    let mut asked = JobClient::connect(invocation).await?;
    for after in &flags.after {
        let job = match after.job {
            JobSelector::Id(job) => job,
            JobSelector::Last => asked.find(JobSelector::Last).await?.id,
        };
        spec.after.push(After { job, when: after.when });
    }
    if !files.is_empty() {
        put::put(&files, &asked.client, invocation).await?;
    }
    // From here on a signal leaves a job behind, and is told how to come back to it.
    let mut wait = if flags.wait { Some(Wait::new(invocation)?) } else { None };
    let call = AdminCall::JobSubmit { spec: Box::new(spec.clone()) };
    let answer = asked.admin(call).await.and_then(view);
    let job = match answer {
        Ok(job) => job,
        Err(failure) => return Err(end::refused(failure, &spec, &asked).await),
    };
    let Some(wait) = &mut wait else { return end::tell(&job, invocation) };
    invocation.output.note(&end::submitted(&job));
    end::tell_reason(&job, invocation);
    let ended = wait.until_end(&job, &mut asked).await?;
    let task = if flags.is_one() { end::only_task(&asked, &ended).await? } else { None };
    let exit = end::exit_of(&ended, task.as_ref());
    tell_ends(std::slice::from_ref(&ended), true, &asked).await?;
    Ok(exit)
}

#[cfg(test)]
mod tests;
