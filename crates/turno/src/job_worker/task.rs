//! One attempt of a task: its program, output, time limit and end.

use std::collections::BTreeMap;
use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::Instant;
use turno_proto::foreman::{StatusUpdate, Task};
use turno_proto::model::archive::OutputStream;

use super::files::{Files, Prepared};
use super::guard::{Guard, Watched};
use super::outbox::{Outbox, Recorder};
use super::verdict::{LastLine, Verdict};
use crate::process::{Ending, Exit, ProcessGroup, at, without_secrets};

/// Bytes read from a pipe at a time.
const READ_BYTES: usize = 16 * 1024;

/// How often a program that is busy is tried again, and the pause in between.
const BUSY_TRIES: u32 = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

/// By which a process can be told to be one of a worker's.
pub(super) const WORKER_ID: &str = "TURNO_WORKER_ID";

/// The shared state of all tasks.
#[derive(Clone, Debug)]
pub(crate) struct TaskContext {
    pub(crate) worker: Arc<str>,
    pub(crate) guard: Guard,
    pub(crate) files: Files,
    pub(crate) outbox: Outbox,
}

/// An order of the worker to a task. It can only become stricter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TaskOrder {
    /// Run.
    Run,
    /// End: nobody wants it any more.
    Cancel,
    /// End: another worker shall have it.
    GiveBack,
    /// The same, at once.
    GiveBackNow,
}

/// Runs a task to its end, whichever that is.
pub(crate) async fn run(task: Task, context: TaskContext, mut wishes: watch::Receiver<TaskOrder>) -> StatusUpdate {
    let started = unix_ms();
    let verdict = match begin(&task, &context, &mut wishes).await {
        Ok((prepared, running)) => attend(&task, &context, prepared, running, &mut wishes).await,
        Err(verdict) => verdict,
    };
    let mut update = verdict.update(task.job, task.task);
    (update.started, update.ended) = (Some(started), Some(unix_ms()));
    update
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A program that has been started. Dropped, it is killed.
struct Running {
    child: Child,
    group: ProcessGroup,
    recorder: Recorder,
    /// After the group: what is killed need not be watched.
    watched: Watched,
}

async fn begin(
    task: &Task,
    context: &TaskContext,
    wishes: &mut watch::Receiver<TaskOrder>,
) -> Result<(Prepared, Running), Verdict> {
    let ready = async {
        let prepared = context.files.prepare(task).await?;
        Ok((prepared, context.outbox.begin(task).await?))
    };
    let (mut prepared, recorder) = tokio::select! {
        biased;
        order = more_than(wishes, TaskOrder::Run) => return Err(end_by(order)),
        ready = ready => ready.map_err(Verdict::Failed)?,
    };
    let words = words_of(task);
    let program = words.first().map(String::as_str).unwrap_or_default();
    if program.is_empty() {
        return Err(Verdict::CannotRun { program: String::new(), why: "the task names no program".to_owned() });
    }
    let mut command = Command::new(program);
    without_secrets(&mut command)
        .args(words.iter().skip(1))
        .current_dir(&prepared.dir)
        .envs(&task.env)
        .envs(facts(task, &context.worker))
        .stdin(prepared.stdin.take().map_or_else(Stdio::null, Stdio::from))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    let child = spawn(&mut command).await.map_err(|error| Verdict::not_started(&error, program, &prepared.dir))?;
    let group = ProcessGroup::of(&child);
    let watched = context.guard.watch(group.id());
    Ok((prepared, Running { child, group, recorder, watched }))
}

/// Starts the program. One that was written a moment ago may still be open for writing in the copy of this process that
/// another task's start has just made, until that copy runs its own program: then it is busy, for a moment.
async fn spawn(command: &mut Command) -> io::Result<Child> {
    for _ in 0..BUSY_TRIES {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => tokio::time::sleep(BUSY_PAUSE).await,
            started => return started,
        }
    }
    command.spawn()
}

/// Program and arguments. A foreman that knows no list of words names a program, which gets the number of its task.
fn words_of(task: &Task) -> Vec<String> {
    if task.argv.is_empty() { vec![task.command.clone(), task.task.to_string()] } else { task.argv.clone() }
}

/// The environment variables of a program.
fn facts(task: &Task, worker: &str) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("TURNO_JOB_ID", task.job.to_string()),
        ("TURNO_JOB_NAME", task.name.replace('\0', " ")),
        ("TURNO_TASK_ID", task.task.to_string()),
        ("TURNO_TASK_COUNT", task.num_tasks.to_string()),
        ("TURNO_ATTEMPT", task.attempt.to_string()),
        ("TURNO_SLOTS", task.procs.to_string()),
        (WORKER_ID, worker.to_owned()),
    ])
}

/// Waits until more is wanted than before. Without its worker a task must end at once.
async fn more_than(wishes: &mut watch::Receiver<TaskOrder>, before: TaskOrder) -> TaskOrder {
    wishes.wait_for(|order| *order > before).await.map_or(TaskOrder::GiveBackNow, |order| *order)
}

fn end_by(order: TaskOrder) -> Verdict {
    if order == TaskOrder::Cancel { Verdict::Cancelled } else { Verdict::GivenBack }
}

/// Reads what the program writes and waits for its end, and for that of all it started.
async fn attend(
    task: &Task,
    context: &TaskContext,
    prepared: Prepared,
    running: Running,
    wishes: &mut watch::Receiver<TaskOrder>,
) -> Verdict {
    let Running { mut child, mut group, mut recorder, watched } = running;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let limit = Duration::from_millis(task.time_limit);
    let limit_at = if task.time_limit > 0 { Instant::now().checked_add(limit) } else { None };
    let mut last_line = LastLine::default();
    let (mut status, mut verdict, mut wanted, mut recorded) = (None, None, TaskOrder::Run, false);
    {
        let mut recording = pin!(record(stdout, stderr, &mut recorder, &mut last_line));
        let mut ending = Ending::new();
        loop {
            let runs = status.is_none() && verdict.is_none();
            tokio::select! {
                biased;
                order = more_than(wishes, wanted) => {
                    wanted = order;
                    // A task that ended by itself before is not cancelled any more.
                    verdict = verdict.or_else(|| runs.then(|| end_by(order)));
                    if order == TaskOrder::GiveBackNow { ending.kill(&group) } else { ending.terminate(&group) }
                }
                () = at(limit_at), if runs => {
                    verdict = Some(Verdict::TimeLimit(limit));
                    ending.terminate(&group);
                }
                end = &mut recording, if !recorded => {
                    recorded = true;
                    if let Err(text) = end {
                        verdict = verdict.or(Some(Verdict::Failed(text)));
                        ending.terminate(&group);
                    }
                }
                end = child.wait(), if status.is_none() => {
                    status = Some(end);
                    ending.left();
                }
                () = at(ending.due()) => if ending.turn(Instant::now(), &group) {
                    break;
                },
            }
            if status.is_some() && recorded && !group.is_alive() {
                break;
            }
        }
    }
    group.release();
    drop(watched);
    let verdict = verdict.unwrap_or_else(|| by_itself(status, last_line.text()));
    let keep = kept(task, context, prepared, recorder, verdict);
    tokio::select! {
        biased;
        verdict = keep => verdict,
        _ = more_than(wishes, TaskOrder::GiveBack) => Verdict::GivenBack,
    }
}

fn by_itself(status: Option<io::Result<ExitStatus>>, last_line: String) -> Verdict {
    match Exit::of(status) {
        Ok(exit) => Verdict::Ended { exit, last_line },
        Err(text) => Verdict::Failed(text),
    }
}

/// The results and the output are where they belong before the end is told.
async fn kept(task: &Task, context: &TaskContext, prepared: Prepared, recorder: Recorder, verdict: Verdict) -> Verdict {
    if verdict == Verdict::GivenBack {
        return verdict;
    }
    let success = verdict.is_success();
    let brought = context.files.finish(task, prepared, success).await;
    recorder.end().await;
    match brought {
        Err(text) if success => Verdict::Failed(text),
        _ => verdict,
    }
}

/// Reads both pipes to their ends. While what was read is not taken, nothing more is read.
async fn record(
    mut stdout: Option<ChildStdout>,
    mut stderr: Option<ChildStderr>,
    recorder: &mut Recorder,
    last_line: &mut LastLine,
) -> Result<(), String> {
    let (mut out, mut err) = (Vec::with_capacity(READ_BYTES), Vec::with_capacity(READ_BYTES));
    while stdout.is_some() || stderr.is_some() {
        tokio::select! {
            count = next(&mut stdout, &mut out), if stdout.is_some() => {
                if count == 0 {
                    stdout = None;
                    continue;
                }
                recorder.wrote(OutputStream::Stdout, &out).await?;
                out.clear();
            }
            count = next(&mut stderr, &mut err), if stderr.is_some() => {
                if count == 0 {
                    stderr = None;
                    continue;
                }
                last_line.push(&err);
                recorder.wrote(OutputStream::Stderr, &err).await?;
                err.clear();
            }
        }
    }
    Ok(())
}

/// Reads once; 0 at the end of the pipe, and where there is none.
async fn next(pipe: &mut Option<impl tokio::io::AsyncRead + Unpin>, piece: &mut Vec<u8>) -> usize {
    match pipe {
        // One that cannot be read has ended.
        Some(pipe) => pipe.read_buf(piece).await.unwrap_or(0),
        None => 0,
    }
}

#[cfg(test)]
mod tests;
