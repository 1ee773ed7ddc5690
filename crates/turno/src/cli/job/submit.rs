//! `turno submit`, which is `turno job submit`: hands a job to the broker.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use turno_client::{AdminAnswer, AdminCall};
use turno_proto::model::job::{After, AfterWhen, Array, JobSpec, JobState, JobView, TaskView, Work};
use turno_proto::model::limits::{
    BACKOFF_MS_MAX, JOB_AFTER_MAX, JOB_KEY_BYTES_MAX, JOB_NAME_BYTES_MAX, PRIORITY, PRIORITY_MAX,
};
use turno_proto::model::{Code, units};
use turno_proto::work;

use super::select::One;
use super::text::{number_of_tasks, title};
use super::wait::{Wait, tell_ends};
use super::{Asked, one_done, view};
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;
use crate::cli::schema::job::JobRow;

/// Submit a command as a job: once, or as an array of tasks
///
/// `turno submit` and `turno job submit` are the same. The command and its arguments go to the workers as they are, no
/// shell reads them. The answer comes when the job is stored.
///
/// With --wait the command ends when the job does; --timeout says how long to wait at most, and Ctrl-C leaves the job
/// running. Without --array the exit status is then that of the command, 125 if turno itself failed; with --array it is 1
/// if a task failed or was cancelled.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno submit -- ./simulate --seed 1",
        "turno submit --array 1-1000 --slots 2 --retries 3 --backoff 10s -- ./simulate",
        "turno submit --after 7 --after 8:any -- ./collect",
        "turno job submit --array 0-90:10 --max-parallel 4 --time-limit 1h --wait -- ./simulate",
    ],
    &[1, 4, 5, 78, 124, 125, 126, 127, 130, 143],
))]
pub(crate) struct SubmitArgs {
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<String>,

    /// Numbers of the tasks: A-B or A-B:STEP; without it, one task with number 1
    #[arg(long, value_name = "A-B[:STEP]")]
    array: Option<Array>,

    /// A name for people [default: the program's file name]
    #[arg(long, value_parser = parse_name)]
    name: Option<String>,

    /// Slots of a worker that a task takes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    slots: u16,

    /// 0 to 9, 9 first
    #[arg(long, value_name = "N", default_value_t = PRIORITY, value_parser = clap::value_parser!(u8).range(0..=i64::from(PRIORITY_MAX)))]
    priority: u8,

    /// Tasks that run at a time at most
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_parallel: Option<u32>,

    /// How long one attempt of a task may take
    #[arg(long, value_name = "DURATION", value_parser = parse_time_limit)]
    time_limit: Option<Duration>,

    /// Try a task that failed again up to N times
    #[arg(long, value_name = "N", default_value_t = 0)]
    retries: u8,

    /// Wait so long before the second attempt; each later one waits twice as long as the one before
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = parse_backoff)]
    backoff: Duration,

    /// Start when that job has ended: JOB or JOB:ok when every task finished, JOB:failed when not, JOB:any; repeat for more
    #[arg(long, value_name = "JOB[:WHEN]")]
    after: Vec<AfterArg>,

    /// Start nothing until `turno job release`
    #[arg(long)]
    hold: bool,

    /// What you know the job by: submitted again with the same key, it is the same job (1 to 64 bytes)
    #[arg(long, value_parser = parse_key)]
    key: Option<String>,

    /// Where the command runs [default: the current directory]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Set a variable of the command's environment; repeat for more
    #[arg(long, value_name = "KEY=VALUE", value_parser = parse_variable)]
    env: Vec<(String, String)>,

    /// Wait until the job has ended
    #[arg(long)]
    wait: bool,
}

/// `7`, `last:any`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AfterArg {
    job: One,
    when: AfterWhen,
}

impl FromStr for AfterArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (job, when) = text.split_once(':').unwrap_or((text, "ok"));
        let when = match when {
            "ok" => AfterWhen::Ok,
            "any" => AfterWhen::Any,
            "failed" => AfterWhen::Failed,
            _ => return Err("behind the job comes ok, any or failed, for example 7:any".to_owned()),
        };
        Ok(Self { job: job.parse().map_err(|error: super::select::SelectError| error.to_string())?, when })
    }
}

fn parse_name(text: &str) -> Result<String, String> {
    match text.len() {
        1..=JOB_NAME_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(format!("a name has 1 to {JOB_NAME_BYTES_MAX} bytes")),
    }
}

fn parse_key(text: &str) -> Result<String, String> {
    match text.len() {
        1..=JOB_KEY_BYTES_MAX => Ok(text.to_owned()),
        _ => Err(format!("a key has 1 to {JOB_KEY_BYTES_MAX} bytes")),
    }
}

fn parse_time_limit(text: &str) -> Result<Duration, String> {
    match units::parse_duration(text) {
        Ok(Duration::ZERO) => Err("at least 1ms is needed".to_owned()),
        Ok(limit) => Ok(limit),
        Err(error) => Err(error.to_string()),
    }
}

fn parse_backoff(text: &str) -> Result<Duration, String> {
    let longest = Duration::from_millis(BACKOFF_MS_MAX);
    match units::parse_duration(text) {
        Ok(backoff) if backoff <= longest => Ok(backoff),
        Ok(_) => Err(format!("a task waits {} at most", units::format_duration(longest))),
        Err(error) => Err(error.to_string()),
    }
}

fn parse_variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a variable is written KEY=VALUE".to_owned()),
    }
}

pub(crate) fn run(args: &SubmitArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let one = args.wait && args.array.is_none();
    let end = spec(args).and_then(|spec| connect::block_on(submit(args, spec, invocation)));
    match end {
        // What a command returns must not be mistaken for what turno has to say.
        Err(failure) if one && !failure.is_silent() && !matches!(failure.exit(), 2 | 124 | 130 | 143) => {
            Err(failure.exit_with(125))
        }
        end => end,
    }
}

async fn submit(args: &SubmitArgs, mut spec: JobSpec, invocation: &Invocation) -> Result<u8, Failure> {
    let mut wait = if args.wait { Some(Wait::new(invocation)?) } else { None };
    let mut asked = Asked::connect(invocation).await?;
    for after in &args.after {
        let job = match after.job {
            One::Id(job) => job,
            One::Last => asked.find(One::Last).await?.id,
        };
        spec.after.push(After { job, when: after.when });
    }
    let call = AdminCall::JobSubmit { spec: Box::new(spec) };
    let job = asked.admin(call).await.and_then(view).map_err(|failure| unsure(failure, args))?;
    let Some(wait) = &mut wait else { return tell(&job, invocation) };
    invocation.output.note(&submitted(&job));
    tell_reason(&job, invocation);
    let end = wait.until_end(&job, &mut asked).await?;
    let task = if args.array.is_none() { only_task(&asked, &end).await? } else { None };
    let exit = exit_of(&end, task.as_ref());
    tell_ends(std::slice::from_ref(&end), true, &asked).await?;
    Ok(exit)
}

fn submitted(job: &JobView) -> String {
    format!("{} is submitted: {}", title(job), number_of_tasks(job.array.count.into()))
}

fn tell(job: &JobView, invocation: &Invocation) -> Result<u8, Failure> {
    let id = job.id;
    one_done(job, invocation, submitted)?;
    tell_reason(job, invocation);
    invocation.output.hint(&match job.state == JobState::Held {
        true => format!("let it go on with: turno job release {id}"),
        false => format!("wait for it with: turno job wait {id}"),
    });
    Ok(0)
}

/// Why nothing of it is started yet, if that is so.
fn tell_reason(job: &JobView, invocation: &Invocation) {
    if let Some(because) = JobRow::from(job).because {
        invocation.output.note(&format!("it waits: {}", because.text));
    }
}

/// Whether the broker has the job is unknown if it did not say.
fn unsure(failure: Failure, args: &SubmitArgs) -> Failure {
    match failure.code() {
        Code::ConnectionLost | Code::TimedOut => {
            let fix = match &args.key {
                Some(_) => "submit it again with the same --key: it is taken once",
                None => "look with `turno job ls`; with --key it could be submitted again without harm",
            };
            failure.why("the broker did not say in time that it has the job; it may have it all the same").fix(fix)
        }
        _ => failure,
    }
}

/// The one task of a job without an array.
async fn only_task(asked: &Asked<'_>, job: &JobView) -> Result<Option<TaskView>, Failure> {
    let call = AdminCall::JobTasks { job: job.id, state: None, after: None, limit: 1 };
    match asked.admin(call).await? {
        AdminAnswer::Tasks { tasks, .. } => Ok(tasks.into_iter().next()),
        other => Err(connect::unexpected(&other)),
    }
}

/// What the command returned, 128 and the signal that ended it, or 1 if it came to neither.
fn exit_of(job: &JobView, task: Option<&TaskView>) -> u8 {
    if job.state == JobState::Finished {
        return 0;
    }
    let code = task.and_then(|task| task.exit_code.or_else(|| task.signal.map(|signal| signal.saturating_add(128))));
    code.and_then(|code| u8::try_from(code).ok()).filter(|code| *code > 0).unwrap_or(1)
}

/// What is asked of the broker, but for the jobs it is after.
fn spec(args: &SubmitArgs) -> Result<JobSpec, Failure> {
    if args.after.len() > JOB_AFTER_MAX {
        return Err(Failure::new(Code::BadUsage, format!("a job is after {JOB_AFTER_MAX} jobs at most")));
    }
    let here = std::env::current_dir()
        .map_err(|error| Failure::new(Code::Io, "the current directory is not known").why(error.to_string()))?;
    let work = Work {
        argv: args.command.clone(),
        cwd: directory(&here, args.cwd.as_deref())?,
        env: args.env.clone(),
        ..Work::default()
    };
    let work = work::encode(&work).map_err(|error| {
        Failure::new(Code::BadJob, "the command is too long for a job")
            .why(error.to_string())
            .fix("put what is long into a file and give its name to the command")
    })?;
    Ok(JobSpec {
        slots: args.slots,
        priority: args.priority,
        max_parallel: args.max_parallel,
        time_limit_ms: args.time_limit.map(|limit| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX)),
        retries: args.retries,
        backoff_ms: u32::try_from(args.backoff.as_millis()).unwrap_or(u32::MAX),
        hold: args.hold,
        key: args.key.clone(),
        ..JobSpec::new(
            args.name.clone().unwrap_or_else(|| default_name(args.command.first().map_or("", String::as_str))),
            args.array.unwrap_or(Array::ONE),
            work,
        )
    })
}

/// A directory that means the same wherever the worker runs.
fn directory(here: &Path, asked: Option<&Path>) -> Result<String, Failure> {
    let whole = asked.map_or_else(|| here.to_owned(), |asked| here.join(asked));
    let plain: PathBuf = whole.components().collect();
    plain.into_os_string().into_string().map_err(|path| {
        Failure::new(Code::BadUsage, format!("the name of the directory {} is no text", path.display()))
            .why("what a job carries to its workers is UTF-8")
            .fix("name another directory with --cwd")
    })
}

/// The program's file name, as much of it as a name may have.
fn default_name(program: &str) -> String {
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program);
    let end = name.floor_char_boundary(JOB_NAME_BYTES_MAX);
    let name = name.get(..end).unwrap_or_default();
    if name.is_empty() { "job".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use turno_proto::model::job::{JobId, TaskState};

    use super::*;
    use crate::cli::job::tests::view;
    use crate::cli::tree::{self, Command};

    /// What is asked of a broker by that line.
    fn typed(line: &str) -> Result<(SubmitArgs, JobSpec), String> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let Command::Submit(args) = tree::parse(&words).map_err(|error| error.to_string())?.command else {
            panic!("{line} submits");
        };
        let spec = spec(&args).map_err(|failure| failure.what().to_owned())?;
        Ok((args, spec))
    }

    #[test]
    fn one_command_is_one_task_with_number_1() {
        let (args, spec) = typed("turno submit -- /opt/sim --seed 1").unwrap();
        let here = std::env::current_dir().unwrap().to_str().unwrap().to_owned();
        let argv = ["/opt/sim", "--seed", "1"].map(ToOwned::to_owned).to_vec();
        assert_eq!(work::decode(&spec.work), Ok(Work { argv, cwd: here, ..Work::default() }));
        let usual = JobSpec::new("sim", Array::ONE, spec.work.clone());
        assert_eq!((spec, args.wait), (usual, false));
    }

    #[test]
    fn every_flag_is_in_what_is_asked() {
        let line = "turno submit --array 0-90:10 --name may --slots 3 --priority 9 --max-parallel 4 --time-limit 1h \
                    --retries 5 --backoff 1m --after 7 --after last:any --after 8:failed --hold --key k --cwd /data \
                    --env A=1 --env B=x=y --wait -- ./sim";
        let (args, spec) = typed(line).unwrap();
        let Work { argv, cwd, env, .. } = work::decode(&spec.work).unwrap();
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert_eq!((argv, cwd.as_str()), (vec!["./sim".to_owned()], "/data"));
        assert_eq!(env, [pair("A", "1"), pair("B", "x=y")]);
        assert_eq!((spec.array, spec.name.as_str()), (Array { first: 0, count: 10, step: 10 }, "may"));
        assert_eq!((spec.slots, spec.priority, spec.max_parallel), (3, 9, Some(4)));
        assert_eq!((spec.time_limit_ms, spec.retries, spec.backoff_ms), (Some(3_600_000), 5, 60_000));
        assert_eq!((spec.hold, spec.key.as_deref(), args.wait), (true, Some("k"), true));
        let after = |job, when| AfterArg { job, when };
        assert_eq!(
            args.after,
            [
                after(One::Id(JobId(7)), AfterWhen::Ok),
                after(One::Last, AfterWhen::Any),
                after(One::Id(JobId(8)), AfterWhen::Failed),
            ]
        );
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_would() {
        let long = "x".repeat(JOB_NAME_BYTES_MAX + 1);
        let many = "--after 7 ".repeat(JOB_AFTER_MAX + 1);
        let huge = "x".repeat(70_000);
        let table = [
            ("turno submit".to_owned(), "CMD"),
            ("turno submit sim".to_owned(), "sim"),
            ("turno submit --array 7 -- a".to_owned(), "A-B or A-B:STEP"),
            ("turno submit --array 9-1 -- a".to_owned(), "not lower"),
            ("turno submit --array 1-20000000 -- a".to_owned(), "at most 10000000 tasks"),
            (format!("turno submit --name {long} -- a"), "1 to 128 bytes"),
            (format!("turno submit --key {long} -- a"), "1 to 64 bytes"),
            ("turno submit --slots 0 -- a".to_owned(), "1..="),
            ("turno submit --slots 65536 -- a".to_owned(), "65536"),
            ("turno submit --priority 10 -- a".to_owned(), "0..=9"),
            ("turno submit --max-parallel 0 -- a".to_owned(), "1.."),
            ("turno submit --time-limit 0 -- a".to_owned(), "at least 1ms"),
            ("turno submit --time-limit 5 -- a".to_owned(), "250ms"),
            ("turno submit --backoff 2h -- a".to_owned(), "waits 1h at most"),
            ("turno submit --retries 256 -- a".to_owned(), "256"),
            ("turno submit --after 7:never -- a".to_owned(), "ok, any or failed"),
            ("turno submit --after x -- a".to_owned(), "a job is its number"),
            ("turno submit --env A -- a".to_owned(), "KEY=VALUE"),
            (format!("turno submit {many}-- a"), "after 16 jobs at most"),
            (format!("turno submit -- {huge}"), "too long for a job"),
        ];
        for (line, expected) in table {
            let Err(said) = typed(&line) else { panic!("{line} is refused") };
            assert!(said.contains(expected), "{line}: {said}");
        }
    }

    #[test]
    fn names_come_from_the_program() {
        let table = [("./sim", "sim"), ("/usr/bin/env", "env"), ("sim", "sim"), ("..", ".."), ("", "job"), ("/", "/")];
        for (program, expected) in table {
            assert_eq!(default_name(program), expected, "{program:?}");
        }
        let long = "ä".repeat(JOB_NAME_BYTES_MAX);
        assert_eq!(default_name(&long), "ä".repeat(JOB_NAME_BYTES_MAX / 2));
    }

    #[test]
    fn a_directory_is_told_from_the_root() {
        let here = Path::new("/srv");
        let table = [(None, "/srv"), (Some("sub/"), "/srv/sub"), (Some("/data"), "/data"), (Some("."), "/srv")];
        for (asked, expected) in table {
            assert_eq!(directory(here, asked.map(Path::new)).unwrap(), expected);
        }
    }

    #[test]
    fn one_command_ends_with_its_own_exit_status() {
        let task = |exit_code, signal| TaskView {
            task: 1,
            state: TaskState::Failed,
            attempt: 1,
            worker: None,
            started_unix_ms: None,
            ended_unix_ms: None,
            exit_code,
            signal,
            status: None,
        };
        let failed = JobView { state: JobState::Failed, ..view(7) };
        let table = [
            (Some(task(Some(3), None)), 3),
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
        let (args, _) = typed("turno submit -- a").unwrap();
        let (keyed, _) = typed("turno submit --key k -- a").unwrap();
        assert!(unsure(Failure::of(Code::TimedOut), &args).body().hint.contains("turno job ls"));
        assert!(unsure(Failure::of(Code::ConnectionLost), &keyed).body().hint.contains("same --key"));
        assert_eq!(unsure(Failure::of(Code::BadJob), &args), Failure::of(Code::BadJob));
    }
}
