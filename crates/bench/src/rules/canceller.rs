//! Messages that wait, and their end before their time, in a process of its own, so that it cannot slow down the
//! requests beside it.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use turno_proto::model::Code;
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::native::{Frame, Kind, Raw, RawOutgoing, encode};

use super::admin;
use crate::link::{Link, name_of, queue_name, scratch};
use crate::memory::BODY;
use crate::system::System;
use crate::tasks::block_on;

/// So many wait.
const COUNT: u32 = 100_000;
/// The number of their queue; the requests beside them have another.
const QUEUE: usize = 1;
/// So many are said before the answers are awaited.
const AT_A_TIME: usize = 1_000;
/// So long that none ends by itself.
const DEADLINE_MS: u32 = 3_600_000;
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// How they are cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CancelWay {
    /// Sends, each by its id.
    Ids,
    /// Sends, by emptying their queue.
    Purge,
    /// Requests, each by its caller.
    Caller,
    /// Requests whose caller goes.
    Gone,
}

impl CancelWay {
    pub(crate) const ALL: [Self; 4] = [Self::Ids, Self::Purge, Self::Caller, Self::Gone];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Ids => "ids",
            Self::Purge => "purge",
            Self::Caller => "caller",
            Self::Gone => "gone",
        }
    }
}

/// The process, until it is dropped.
pub(super) struct Canceller {
    child: Child,
    said: Lines<BufReader<ChildStdout>>,
}

impl Canceller {
    /// Starts it, and waits until all messages wait.
    pub(super) async fn start(way: CancelWay, address: SocketAddr) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["canceller", way.name(), &address.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start who cancels")?;
        let said = BufReader::new(child.stdout.take().context("piped")?).lines();
        let mut canceller = Self { child, said };
        canceller.line().await.context("the messages do not wait")?;
        Ok(canceller)
    }

    /// Has them cancelled; returns when none is left, with the seconds that took.
    pub(super) async fn cancel(&mut self) -> Result<f64> {
        self.go().await?;
        Ok(self.line().await.context("not all were cancelled")?.parse()?)
    }

    /// Has it use a core for as long as that took, and do nothing.
    pub(super) async fn spin(&mut self) -> Result<()> {
        self.go().await?;
        self.line().await.context("it did not end").map(drop)
    }

    async fn go(&mut self) -> Result<()> {
        Ok(self.child.stdin.as_mut().context("piped")?.write_all(b"go\n").await?)
    }

    async fn line(&mut self) -> Result<String> {
        self.said.next_line().await?.context("it said nothing")
    }
}

/// Is the process: fills the queue, waits for a line, cancels all, and says how long that took. With the next line it
/// spins for as long.
pub(crate) fn run(way: CancelWay, address: SocketAddr) -> Result<()> {
    block_on(async {
        let scratch = scratch();
        let queues = QUEUE..QUEUE + 1;
        let mut link = Link::client(System::Turno, address, &scratch, queues.clone()).await?;
        let mut other = Link::client(System::Turno, address, &scratch, queues).await?;
        let ids = match way {
            CancelWay::Ids | CancelWay::Purge => send(&mut link).await?,
            CancelWay::Caller | CancelWay::Gone => ask(&mut link).await?,
        };
        let waiting = admin::queue(&mut other, &queue_name(QUEUE)).await?.ready;
        if waiting != u64::from(COUNT) {
            bail!("{waiting} messages wait");
        }
        println!("ready");
        std::io::stdin().read_line(&mut String::new())?;
        let begun = Instant::now();
        match way {
            CancelWay::Ids => by_id(&mut link, ids).await?,
            CancelWay::Purge => purge(&mut link).await?,
            CancelWay::Caller => by_caller(&mut link).await?,
            CancelWay::Gone => drop(link),
        }
        while admin::queue(&mut other, &queue_name(QUEUE)).await?.ready > 0 {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        let took = begun.elapsed();
        println!("{}", took.as_secs_f64());
        std::io::stdin().read_line(&mut String::new())?;
        spin(took);
        println!("spun");
        Ok(())
    })
}

fn spin(duration: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < duration {
        std::hint::spin_loop();
    }
}

/// Sends them; returns their ids.
async fn send(link: &mut Link) -> Result<Vec<String>> {
    let ids = RefCell::new(Vec::new());
    for from in (0..COUNT).step_by(AT_A_TIME) {
        for seq in from..from + AT_A_TIME as u32 {
            encode(&Frame::Send(RawOutgoing::new(seq, 0, Raw { headers: false, bytes: &[7; BODY] })), &mut link.out);
        }
        link.flush().await?;
        while ids.borrow().len() < from as usize + AT_A_TIME {
            let refused = Cell::new(None);
            link.receive(|header, rest, _| match admin::whole(header, rest) {
                Ok(Frame::Stored { id, .. }) => ids.borrow_mut().push(id.to_string()),
                _ => refused.set(Some(header.word)),
            })
            .await?;
            if let Some(number) = refused.get() {
                bail!("a send ended with {}", name_of(number));
            }
        }
    }
    Ok(ids.into_inner())
}

/// Asks for what nobody does; such messages have no ids that their caller knows.
async fn ask(link: &mut Link) -> Result<Vec<String>> {
    for from in (0..COUNT).step_by(AT_A_TIME) {
        for seq in from..from + AT_A_TIME as u32 {
            let raw = Raw { headers: false, bytes: &[7; BODY] };
            let plain = RawOutgoing::new(seq, 0, raw);
            let message = RawOutgoing { deadline_ms: Some(DEADLINE_MS), cancel_on_disconnect: true, ..plain };
            encode(&Frame::Request(message), &mut link.out);
        }
        link.settled().await?;
    }
    Ok(Vec::new())
}

async fn by_id(link: &mut Link, ids: Vec<String>) -> Result<()> {
    let mut ids = ids.into_iter().peekable();
    while ids.peek().is_some() {
        let mut due = 0;
        for id in ids.by_ref().take(AT_A_TIME) {
            encode(&Frame::AdminCall { seq: 0, call: AdminCall::MessageCancel { id } }, &mut link.out);
            due += 1;
        }
        link.answered(due).await?;
    }
    Ok(())
}

async fn purge(link: &mut Link) -> Result<()> {
    let mut left = u64::from(COUNT);
    while left > 0 {
        let call = AdminCall::QueuePurge { queue: queue_name(QUEUE), limit: u32::MAX };
        left = match admin::ask(link, call).await? {
            AdminAnswer::Portion { left, .. } => left,
            other => bail!("not a portion: {other:?}"),
        };
    }
    Ok(())
}

/// A thousand at a time.
async fn by_caller(link: &mut Link) -> Result<()> {
    let mut over = 0;
    for from in (0..COUNT).step_by(AT_A_TIME) {
        for seq in from..from + AT_A_TIME as u32 {
            encode(&Frame::Cancel { seq, word: 0, reason: None }, &mut link.out);
        }
        link.flush().await?;
        while over < from + AT_A_TIME as u32 {
            let odd = Cell::new(None);
            let came = link.receive(|header, _, _| {
                let cancelled = header.kind == Kind::Undelivered.number() && header.word == Code::Cancelled.number();
                if !cancelled {
                    odd.set(Some(header.word));
                }
            });
            over += u32::try_from(came.await?)?;
            if let Some(number) = odd.get() {
                bail!("a request ended with {}", name_of(number));
            }
        }
    }
    Ok(())
}
