//! A broker's double for tests: greets, and answers admin calls as the test says.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use turno_client::Options;
use turno_proto::model::{Code, Limits};
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::native::{Config, Frame, decode, encode, split};

/// Far beyond what a loaded machine needs, so that hitting it is a failure.
const LONG: Duration = Duration::from_secs(120);

/// The reaction to a call.
pub(super) enum Act {
    Answer(AdminAnswer),
    Refuse(Code),
    HangUp,
    /// No answer, ever.
    Nothing,
}

type Script = dyn FnMut(AdminCall) -> Act + Send;

pub(super) struct Double {
    url: String,
    /// Dropped, it hangs up everywhere.
    _listener: JoinSet<()>,
}

impl Double {
    /// Within a runtime.
    pub(super) fn start(script: impl FnMut(AdminCall) -> Act + Send + 'static) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        let listener = TcpListener::from_std(listener).expect("a socket");
        let url = format!("turno://{}", listener.local_addr().expect("bound"));
        let script: Arc<Mutex<Script>> = Arc::new(Mutex::new(script));
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut peers = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                peers.spawn(serve(stream, Arc::clone(&script)));
            }
        });
        Self { url, _listener: task }
    }

    /// Keeps what tasks print.
    pub(super) fn keeping() -> Self {
        let kept = || AdminAnswer::OutputKept { per_task: 1 << 20, follow: Vec::new(), refused: Vec::new() };
        Self::start(move |_| Act::Answer(kept()))
    }

    pub(super) fn options(&self) -> Options {
        Options::new(&self.url)
    }
}

async fn serve(mut stream: TcpStream, script: Arc<Mutex<Script>>) {
    let mut inbox = Vec::new();
    while let Ok(1..) = stream.read_buf(&mut inbox).await {
        let mut out = Vec::new();
        while let Some(piece) = split(&inbox, usize::MAX).expect("a frame") {
            match decode(&piece.header, piece.rest).expect("a frame") {
                Frame::Connect { seq, .. } => encode(&Frame::Config { seq, config: Box::new(config()) }, &mut out),
                Frame::Ping { seq } => encode(&Frame::Pong { seq }, &mut out),
                Frame::AdminCall { seq, call } => match script.lock().expect("no panic before")(call) {
                    Act::Answer(answer) => encode(&Frame::AdminAnswer { seq, answer }, &mut out),
                    Act::Refuse(code) => encode(&Frame::Error { seq, code, fatal: false, detail: "" }, &mut out),
                    Act::HangUp => return,
                    Act::Nothing => {}
                },
                _ => {}
            }
            let used = piece.used;
            inbox.drain(..used);
        }
        if stream.write_all(&out).await.is_err() {
            return;
        }
    }
}

fn config() -> Config {
    Config { broker: "double".to_owned(), program: "double".to_owned(), ..Config::of(&Limits::default()) }
}

/// Waits until a condition holds.
pub(super) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    let mut look = tokio::time::interval(Duration::from_millis(2));
    while !holds() {
        assert!(start.elapsed() < LONG, "waited in vain: {what}");
        look.tick().await;
    }
}
