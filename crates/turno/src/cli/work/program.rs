//! One run of a program: the body on stdin, the reply from stdout, and its end.

use std::ffi::OsString;
use std::fmt::Display;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use rustix::fs::{Access, access};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;
use turno_client::{Message, Outcome};
use turno_proto::model::{Again, Code, limits, parts, units};

use super::stderr::StderrSender;
use crate::cli::error::Failure;
use crate::process::{Ending, Exit, ProcessGroup, at, without_secrets};

/// The exit status with which a program gives a message back: EX_TEMPFAIL of sysexits.h.
const GIVE_BACK: i32 = 75;

/// How the last line of stderr begins that says when to try again.
const RETRY_AFTER: &str = "turno-retry-after:";

/// Bytes read from a pipe at a time.
const READ_BYTES: usize = 64 * 1024;

/// The program that is started for each message.
#[derive(Debug)]
pub(crate) struct Program {
    words: Vec<OsString>,
    /// The first line of its output lists the parts of the reply.
    lists_parts: bool,
}

/// The delivery of a run.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) queue: String,
    pub(crate) id: String,
    pub(crate) attempt: u16,
    /// The token with which the worker has the queue to itself.
    pub(crate) token: Option<u64>,
    pub(crate) body: Bytes,
    /// The lengths of the parts of the body, if there are several.
    pub(crate) parts: Option<String>,
    /// Bytes a reply may have; `None` if nobody wants one, and then stdout is read and forgotten.
    pub(crate) reply_bytes_max: Option<usize>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RunEnd {
    /// Exit status 0, and this reply.
    Done(Message),
    /// Anything else.
    Failed { text: String, again: Again },
}

impl From<RunEnd> for Outcome {
    fn from(run: RunEnd) -> Self {
        match run {
            RunEnd::Done(reply) => Self::Reply(reply),
            RunEnd::Failed { text, again: Again::Never } => Self::failed_permanently(text),
            RunEnd::Failed { text, again: Again::AsSet } => Self::failed(text),
            RunEnd::Failed { text, again: Again::After(ms) } => Self::failed_for(millis(ms), text),
            RunEnd::Failed { text, again: Again::Uncounted(ms) } => Self::given_back(ms.map(millis), text),
        }
    }
}

fn millis(ms: u32) -> Duration {
    Duration::from_millis(u64::from(ms))
}

impl Program {
    /// Checks that the program can be started; `None` if none is named. `lists_parts`: the first line of its output lists the
    /// parts of the reply.
    pub(crate) fn find(words: &[OsString], lists_parts: bool) -> Result<Option<Self>, Failure> {
        let Some(name) = words.first() else { return Ok(None) };
        let cannot = |why: String| Failure::new(Code::CannotStart, format!("cannot start {}", name.display())).why(why);
        let path = Path::new(name);
        let found = if path.components().count() > 1 || name.to_string_lossy().contains('/') {
            vec![path.to_owned()]
        } else {
            let dirs = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&dirs).map(|dir| dir.join(path)).filter(|path| path.exists()).collect()
        };
        match found.iter().find(|path| runnable(path)) {
            Some(_) => Ok(Some(Self { words: words.to_vec(), lists_parts })),
            None => Err(match found.first() {
                None => cannot("no directory in PATH contains a program with this name".to_owned()),
                Some(path) if !path.exists() => cannot("the file does not exist".to_owned()),
                Some(path) => cannot(format!("{} is not executable", path.display())),
            }),
        }
    }

    /// Runs the program for one message. When `stop` gives a reason, the program and all it started are ended
    /// first, then the run is.
    pub(crate) async fn run(
        &self,
        task: Task,
        stop: impl Future<Output = &'static str>,
        stderr: &StderrSender,
    ) -> RunEnd {
        let mut command = Command::new(self.words.first().cloned().unwrap_or_default());
        without_secrets(&mut command)
            .args(self.words.iter().skip(1))
            .env("TURNO_QUEUE", &task.queue)
            .env("TURNO_MESSAGE_ID", &task.id)
            .env("TURNO_ATTEMPT", task.attempt.to_string())
            .env_remove("TURNO_FENCE")
            .envs(task.token.map(|token| ("TURNO_FENCE", token.to_string())))
            .env_remove("TURNO_PARTS")
            .envs(task.parts.as_ref().map(|list| ("TURNO_PARTS", list)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let lists_parts = self.lists_parts && task.reply_bytes_max.is_some();
        match command.spawn() {
            Ok(child) => match attend(child, task, stop, stderr).await {
                RunEnd::Done(reply) if lists_parts => in_parts(&reply.body),
                run => run,
            },
            Err(error) => {
                RunEnd::Failed { text: format!("{}: {error}", Code::CannotStart.name()), again: Again::AsSet }
            }
        }
    }
}

fn runnable(path: &PathBuf) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

/// Feeds the program, reads what it writes, and waits for its end.
async fn attend(
    mut child: tokio::process::Child,
    task: Task,
    stop: impl Future<Output = &'static str>,
    stderr: &StderrSender,
) -> RunEnd {
    let mut group = ProcessGroup::of(&child);
    let mut output = Vec::new();
    let mut tail = StderrTail::default();
    let (stdin, stdout, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut status, mut reason) = (None, None);
    let (mut read, mut heard, mut fed, mut too_large) = (false, false, false, false);
    {
        let mut reading = pin!(collect(stdout, &mut output, task.reply_bytes_max));
        let mut hearing = pin!(relay(errors, &mut tail, stderr));
        let mut feeding = pin!(feed(stdin, task.body));
        let mut stop = pin!(stop);
        let mut ending = Ending::new();
        loop {
            tokio::select! {
                biased;
                why = &mut stop, if reason.is_none() && ending.is_free() => {
                    reason = Some(why);
                    ending.terminate(&group);
                }
                fits = &mut reading, if !read => {
                    read = true;
                    if !fits && ending.is_free() {
                        too_large = true;
                        ending.kill(&group);
                    }
                }
                () = &mut hearing, if !heard => heard = true,
                () = &mut feeding, if !fed => fed = true,
                end = child.wait(), if status.is_none() => {
                    status = Some(end);
                    ending.left();
                }
                () = at(ending.due()) => if ending.turn(Instant::now(), &group) {
                    break;
                },
            }
            if status.is_some() && read && heard && !(ending.is_told() && group.is_alive()) {
                break;
            }
        }
    }
    group.release();
    verdict(Exit::of(status), reason, too_large.then_some(task.reply_bytes_max).flatten(), output, &tail)
}

fn failed(text: impl Into<String>) -> RunEnd {
    RunEnd::Failed { text: text.into(), again: Again::AsSet }
}

/// When the program wants the message to be tried again.
fn again(exit: Exit, after_ms: Option<u32>) -> Again {
    match after_ms {
        after_ms if exit.code == Some(GIVE_BACK) => Again::Uncounted(after_ms),
        Some(after_ms) => Again::After(after_ms),
        None => Again::AsSet,
    }
}

fn verdict(
    exit: Result<Exit, String>,
    reason: Option<&str>,
    exceeded: Option<usize>,
    output: Vec<u8>,
    tail: &StderrTail,
) -> RunEnd {
    if let Some(bytes_max) = exceeded {
        let text = format!("{}: the program wrote more than {bytes_max} bytes", Code::OutputTooLarge.name());
        return RunEnd::Failed { text, again: Again::Never };
    }
    if let Some(reason) = reason {
        return failed(tail.below(&format!("stopped: {reason}")));
    }
    match exit {
        Ok(exit) if exit.is_success() => RunEnd::Done(output.into()),
        Ok(exit) => RunEnd::Failed { text: tail.below(&exit.to_string()), again: again(exit, tail.retry_after()) },
        Err(text) => failed(text),
    }
}

/// The reply whose parts the first line of an output lists: their lengths, or nothing if the rest is one part.
fn in_parts(output: &Bytes) -> RunEnd {
    let end = output.iter().position(|byte| *byte == b'\n');
    let line = end.and_then(|end| std::str::from_utf8(&output[..end]).ok());
    let (Some(end), Some(line)) = (end, line) else { return no_list("it is missing, or not text") };
    let body = output.slice(end + 1..);
    if line.is_empty() {
        return RunEnd::Done(body.into());
    }
    match parts::split(Some(line), &body) {
        Ok(parts) if parts.len() == 1 => RunEnd::Done(body.into()),
        Ok(_) => RunEnd::Done(Message::new(body).header(parts::HEADER, line)),
        Err(error) => no_list(error),
    }
}

fn no_list(why: impl Display) -> RunEnd {
    let text = format!("the first line of the program's output must list the parts of the reply: {why}");
    RunEnd::Failed { text, again: Again::Never }
}

/// Writes the body. A program that does not want it is free not to read it.
async fn feed(stdin: Option<ChildStdin>, body: Bytes) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(&body).await;
    }
}

/// Reads stdout to its end; false if it is longer than allowed. Never holds more than allowed.
async fn collect(stdout: Option<ChildStdout>, output: &mut Vec<u8>, bytes_max: Option<usize>) -> bool {
    let Some(mut stdout) = stdout else { return true };
    let mut piece = vec![0; READ_BYTES];
    loop {
        // A pipe that cannot be read has ended.
        let count = stdout.read(&mut piece).await.unwrap_or(0);
        if count == 0 {
            return true;
        }
        let Some(bytes_max) = bytes_max else { continue };
        let wanted = output.len() + count;
        if wanted > bytes_max {
            output.clear();
            output.shrink_to_fit();
            return false;
        }
        if output.capacity() < wanted {
            let room = wanted.max(output.len().saturating_mul(2)).min(bytes_max);
            output.reserve_exact(room - output.len());
        }
        output.extend_from_slice(&piece[..count]);
    }
}

/// Reads stderr to its end: whole lines go on to ours, the end of it all is kept.
async fn relay(errors: Option<ChildStderr>, tail: &mut StderrTail, stderr: &StderrSender) {
    let Some(mut errors) = errors else { return };
    let mut piece = vec![0; READ_BYTES / 8];
    let mut line: Vec<u8> = Vec::new();
    loop {
        let count = errors.read(&mut piece).await.unwrap_or(0);
        if count == 0 {
            break;
        }
        tail.push(&piece[..count]);
        line.extend_from_slice(&piece[..count]);
        let end = match line.iter().rposition(|byte| *byte == b'\n') {
            Some(place) => place + 1,
            None if line.len() > READ_BYTES => line.len(),
            None => continue,
        };
        let rest = line.split_off(end);
        let whole = std::mem::replace(&mut line, rest);
        // Nobody takes it only when everything ends.
        let _ = stderr.send(whole.into()).await;
    }
    if !line.is_empty() {
        let _ = stderr.send(line.into()).await;
    }
}

/// The last bytes of a program's stderr.
#[derive(Debug, Default)]
struct StderrTail {
    bytes: Vec<u8>,
}

impl StderrTail {
    fn push(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        let excess = self.bytes.len().saturating_sub(limits::FAILURE_BYTES_MAX);
        self.bytes.drain(..excess);
    }

    /// The time until the next attempt, if the last line says one.
    fn retry_after(&self) -> Option<u32> {
        let text = std::str::from_utf8(&self.bytes).ok()?;
        let wait = text.trim_end().rsplit('\n').next()?.trim().strip_prefix(RETRY_AFTER)?;
        let wait = units::parse_duration(wait.trim()).ok()?;
        Some(u32::try_from(wait.as_millis()).unwrap_or(u32::MAX))
    }

    /// The text of a failure: what happened, then the end of stderr, 4 KiB in all.
    fn below(&self, what: &str) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = text.trim();
        if text.is_empty() {
            return what.to_owned();
        }
        let room = limits::FAILURE_BYTES_MAX.saturating_sub(what.len() + 2);
        let start = (text.len().saturating_sub(room)..=text.len()).find(|place| text.is_char_boundary(*place));
        format!("{what}: {}", &text[start.unwrap_or(text.len())..])
    }
}

#[cfg(test)]
mod tests;
