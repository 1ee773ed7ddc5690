//! The worker on one host: its ssh is started, watched, and started again after a lost connection.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, watch};

use super::hosts::Host;
use super::ssh::{self, Broker};

/// Other ports that are tried where those at the host are taken.
const PORT_TRIES: u32 = 5;
/// The first wait after a lost line; the next ones are twice as long.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// How long to wait for the last output of an ssh that has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// Bytes of a line. More: the next line.
const LINE_BYTES_MAX: usize = 4_096;
/// Exit status of ssh itself.
const SSH_FAILED: i32 = 255;
/// Exit status of the shell at the host.
const NOT_FOUND: i32 = 127;

/// How all of it shall end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeployEnd {
    /// Not yet.
    NotYet,
    /// Workers finish what they have.
    InOrder,
    /// At once.
    Now,
}

/// A change of a host's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum News {
    /// Its worker is there, with so many slots.
    Ready(Option<u64>),
    /// Something it said.
    Said(String),
    /// The line was lost; it is tried again after that time.
    Lost(String, Duration),
    /// No worker was started.
    Failed(String),
    /// Its worker ended in order.
    Ended,
}

/// Where news go: with the place of the host among all.
pub(super) type NewsSender = mpsc::Sender<(usize, News)>;

/// Keeps a worker at the host until it shall end.
pub(super) async fn keep(
    at: usize,
    host: Host,
    ssh: Vec<String>,
    broker: Broker,
    mut end: watch::Receiver<DeployEnd>,
    news: NewsSender,
) {
    // Nobody listens only when everything is over.
    let tell = async |what| drop(news.send((at, what)).await);
    let mut was_ready = false;
    let mut port_tries = 0;
    let mut pause = PAUSE;
    loop {
        let words = ssh::words(&ssh, &host, &broker, ssh::ports());
        let mut line = match SshSession::start(&words) {
            Ok(line) => line,
            Err(error) => return tell(News::Failed(format!("cannot start {}: {error}", words[0]))).await,
        };
        let status = loop {
            match line.next(&mut end).await {
                SshOutput::Ready(slots) => {
                    (was_ready, pause) = (true, PAUSE);
                    tell(News::Ready(slots)).await;
                }
                SshOutput::Said(text) => tell(News::Said(text)).await,
                SshOutput::Ended(status) => break status,
            }
        };
        let why = why(&host, status, &line.last);
        let asked = *end.borrow() != DeployEnd::NotYet;
        match status {
            _ if asked => return tell(News::Ended).await,
            Some(0) => return tell(News::Ended).await,
            Some(SSH_FAILED) if line.ports_taken && port_tries < PORT_TRIES => port_tries += 1,
            _ if !was_ready => return tell(News::Failed(why)).await,
            _ => {
                tell(News::Lost(why, pause)).await;
                let over = tokio::select! {
                    () = tokio::time::sleep(pause) => false,
                    _ = wish(&mut end, DeployEnd::InOrder) => true,
                };
                if over {
                    return tell(News::Ended).await;
                }
                pause = (pause * 2).min(PAUSE_MAX);
            }
        }
    }
}

fn why(host: &Host, status: Option<i32>, last: &str) -> String {
    let turno = host.turno.as_deref().unwrap_or("turno");
    let what = match status {
        Some(NOT_FOUND) => format!("{turno} not found on the host; install it, or set turno=PATH in the hosts file"),
        Some(SSH_FAILED) => "ssh could not connect, or lost the connection".to_owned(),
        Some(status) => format!("its worker ended with status {status}"),
        None => "ssh was killed".to_owned(),
    };
    if last.is_empty() { what } else { format!("{what}: {last}") }
}

/// A running ssh.
struct SshSession {
    child: Child,
    /// Its end tells the worker to end. Not left with the child: to wait for that would close it.
    stdin: Option<ChildStdin>,
    stdout: Pipe<ChildStdout>,
    stderr: Pipe<ChildStderr>,
    ready: bool,
    told_to_end: bool,
    /// How it ended, while its last output is read.
    status: Option<Option<i32>>,
    /// The last line of its stderr.
    last: String,
    /// ssh said that it could not have a port.
    ports_taken: bool,
}

enum SshOutput {
    Ready(Option<u64>),
    Said(String),
    /// With its exit status, if it was not killed.
    Ended(Option<i32>),
}

impl SshSession {
    fn start(words: &[String]) -> std::io::Result<Self> {
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is for us: workers are told to end by the end of their standard input.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (stdout, stderr) = (Pipe::new(child.stdout.take()), Pipe::new(child.stderr.take()));
        Ok(Self {
            stdin: child.stdin.take(),
            child,
            stdout,
            stderr,
            ready: false,
            told_to_end: false,
            status: None,
            last: String::new(),
            ports_taken: false,
        })
    }

    /// Waits for the next event.
    async fn next(&mut self, end: &mut watch::Receiver<DeployEnd>) -> SshOutput {
        loop {
            if let Some(status) = self.status
                && !self.stdout.is_open()
                && !self.stderr.is_open()
            {
                return SshOutput::Ended(status);
            }
            let wanted = if self.told_to_end { DeployEnd::Now } else { DeployEnd::InOrder };
            tokio::select! {
                biased;
                asked = wish(end, wanted), if self.status.is_none() => {
                    drop(self.stdin.take());
                    self.told_to_end = true;
                    if asked == DeployEnd::Now {
                        // Gone already is as good as killed.
                        let _ = self.child.start_kill();
                        return SshOutput::Ended(code(self.child.wait().await));
                    }
                }
                text = self.stderr.line(), if self.stderr.is_open() => {
                    let Some(text) = text else { continue };
                    self.ports_taken |= text.contains("port forwarding failed");
                    self.last.clone_from(&text);
                    return SshOutput::Said(text);
                }
                text = self.stdout.line(), if self.stdout.is_open() => {
                    let Some(text) = text else { continue };
                    // The first line is the worker's ready line; it says nothing more there.
                    if !std::mem::replace(&mut self.ready, true) {
                        let document = serde_json::from_str::<serde_json::Value>(&text).unwrap_or_default();
                        return SshOutput::Ready(document.get("slots").and_then(serde_json::Value::as_u64));
                    }
                }
                status = self.child.wait(), if self.status.is_none() => self.status = Some(code(status)),
                // A master connection of ssh that stays in the background may hold its pipes.
                () = tokio::time::sleep(LAST_WORDS), if self.status.is_some() => {
                    (self.stdout, self.stderr) = (Pipe::new(None), Pipe::new(None));
                }
            }
        }
    }
}

/// Waits until that much is asked for. Without anyone to ask, it is to end at once.
async fn wish(end: &mut watch::Receiver<DeployEnd>, wanted: DeployEnd) -> DeployEnd {
    end.wait_for(|end| *end >= wanted).await.map_or(DeployEnd::Now, |end| *end)
}

fn code(status: std::io::Result<ExitStatus>) -> Option<i32> {
    status.ok().and_then(|status| status.code())
}

/// The lines of a pipe.
struct Pipe<R> {
    pipe: Option<R>,
    partial: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    const fn new(pipe: Option<R>) -> Self {
        Self { pipe, partial: Vec::new() }
    }

    const fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// The next line, cut where it is too long; `None` at the end. What was read is kept if nobody waits any more.
    async fn line(&mut self) -> Option<String> {
        loop {
            let end = self.partial.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
            if let Some(end) = end.or_else(|| (self.partial.len() >= LINE_BYTES_MAX).then_some(LINE_BYTES_MAX)) {
                let line: Vec<u8> = self.partial.drain(..end).collect();
                return Some(text(&line));
            }
            let read = match &mut self.pipe {
                Some(pipe) => pipe.read_buf(&mut self.partial).await.unwrap_or(0),
                None => 0,
            };
            if read == 0 {
                self.pipe = None;
                let rest = std::mem::take(&mut self.partial);
                return (!rest.is_empty()).then(|| text(&rest));
            }
        }
    }
}

/// A line as text; it is escaped where it is printed.
fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_cut_where_they_are_too_long() {
        let long = "x".repeat(LINE_BYTES_MAX + 5);
        let text = format!("one\r\n\x1b[2Jtwo\n{long}\nlast");
        let mut pipe = Pipe::new(Some(text.as_bytes()));
        for expected in ["one", "\x1b[2Jtwo", &long[..LINE_BYTES_MAX], "xxxxx", "last"] {
            assert_eq!(pipe.line().await.as_deref(), Some(expected));
        }
        assert_eq!((pipe.line().await, pipe.is_open()), (None, false));
    }

    #[test]
    fn each_end_has_its_reason() {
        let host = Host { address: "a".into(), name: "a".into(), turno: Some("/opt/t".into()), ..Host::default() };
        let table = [
            (
                Some(127),
                "sh: no",
                "/opt/t not found on the host; install it, or set turno=PATH in the hosts file: sh: no",
            ),
            (Some(255), "", "ssh could not connect, or lost the connection"),
            (Some(5), "error: x", "its worker ended with status 5: error: x"),
            (None, "", "ssh was killed"),
        ];
        for (status, last, expected) in table {
            assert_eq!(why(&host, status, last), expected);
        }
    }
}
