//! Connections of commands to the broker.

use std::fmt::{self, Write as _};
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use tracing::{debug, info};
use turno_client::{Address, AdminAnswer, AdminCall, Client, Options};
use turno_proto::model::Code;

use super::Invocation;
use super::error::Failure;
use super::version::VERSION;

/// Where a broker listens when nobody says otherwise.
const LOCAL: &str = "turno://127.0.0.1:7460";

/// How long an answer may take before the broker is asked what it is doing.
const PATIENCE: Duration = Duration::from_secs(1);

/// Bytes of a question or an answer in the log. More: cut.
const LOGGED_BYTES_MAX: usize = 2_048;

/// Runs the asynchronous part of a command on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::system("cannot start the runtime", &error))?;
    runtime.block_on(future)
}

/// The brokers to try, in order: those that were named, or the local one by socket and by port.
pub(crate) fn addresses(invocation: &Invocation) -> Result<Vec<Address>, Failure> {
    let settings = invocation.config(&[])?.typed();
    if !settings.url.is_empty() {
        return settings.url.iter().map(|url| Ok(url.parse::<Address>()?)).collect();
    }
    let socket = settings.socket();
    let local: Address = LOCAL.parse()?;
    // A socket that this user may not even look for is tried as well, so that the failure names it.
    let there = socket.try_exists().unwrap_or(true);
    Ok(if there { vec![Address::Unix(socket), local] } else { vec![local] })
}

/// How to connect.
pub(crate) fn options(invocation: &Invocation) -> Result<Options, Failure> {
    Ok(Options::new(addresses(invocation)?)
        .program(format!("turno {VERSION}"))
        .connect_timeout(invocation.global.timeout()))
}

/// A connection for a command about a broker: that one, even if it closes or is drained.
pub(crate) async fn client(invocation: &Invocation) -> Result<Client, Failure> {
    connect(options(invocation)?.stay_while_draining()).await
}

/// The same for the broker at that address, HOST:PORT.
pub(crate) async fn client_at(address: &str, invocation: &Invocation) -> Result<Client, Failure> {
    let options = Options::new(vec![address.parse::<Address>()?]);
    connect(
        options.program(format!("turno {VERSION}")).connect_timeout(invocation.global.timeout()).stay_while_draining(),
    )
    .await
}

/// A connection for messages: should the broker close, the next one gets them.
pub(crate) async fn caller(invocation: &Invocation) -> Result<Client, Failure> {
    connect(options(invocation)?).await
}

async fn connect(options: Options) -> Result<Client, Failure> {
    let names = options.addresses().iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    info!(brokers = names, "connecting");
    let client = Client::connect(options).await?;
    let config = client.config();
    info!(broker = config.broker, program = config.program, heartbeat_ms = config.heartbeat_ms, "connected");
    Ok(client)
}

/// Waits for an answer. If it does not come soon, looks whether that is because the broker is drained, and says so: it
/// may be a long wait for somebody's `turno resume`. The answer, and whether the broker was found drained.
pub(crate) async fn patiently<T>(client: &Client, invocation: &Invocation, call: impl Future<Output = T>) -> (T, bool) {
    let patience = PATIENCE.min(invocation.global.timeout() / 2);
    let mut call = pin!(call);
    tokio::select! {
        biased;
        end = &mut call => return (end, false),
        () = tokio::time::sleep(patience) => {}
    }
    let look = async {
        let answer = admin(client, AdminCall::Status, invocation.global.timeout()).await;
        matches!(answer, Ok(AdminAnswer::Status { broker }) if broker.maintenance)
    };
    let drained = tokio::select! {
        biased;
        end = &mut call => return (end, false),
        drained = look => drained,
    };
    if drained {
        invocation.output.note("the broker is drained for maintenance; waiting for `turno resume`");
    }
    (call.await, drained)
}

/// The time that passed passed because the broker is drained: it took nothing, so that the same can be asked elsewhere.
pub(crate) fn drained(failure: Failure) -> Failure {
    match failure.code() {
        Code::TimedOut | Code::Closing => Failure::of(Code::Closing)
            .why("the broker is drained for maintenance and accepts no work")
            .fix("run `turno resume`, or use another broker with --url"),
        _ => failure,
    }
}

/// One question to the broker, answered in time or not at all.
pub(crate) async fn admin(client: &Client, call: AdminCall, timeout: Duration) -> Result<AdminAnswer, Failure> {
    debug!(call = %Shortened(&call), "asking");
    match tokio::time::timeout(timeout, client.admin_call(call)).await {
        Ok(answer) => Ok(answer.inspect(|answer| debug!(answer = %Shortened(answer), "answered"))?),
        Err(_) => Err(Failure::new(Code::TimedOut, "the broker did not answer in time")
            .why("the broker is busy, or the network is slow")
            .fix("try again with a longer --timeout")),
    }
}

/// The beginning of something for the log: what is carried along may be megabytes.
struct Shortened<'a, T>(&'a T);

impl<T: fmt::Debug> fmt::Display for Shortened<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = LimitedText { text: String::new() };
        match write!(line, "{:?}", self.0) {
            Ok(()) => f.write_str(&line.text),
            Err(_) => write!(f, "{}…", line.text),
        }
    }
}

/// A text that takes no more than so much.
struct LimitedText {
    text: String,
}

impl fmt::Write for LimitedText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = LOGGED_BYTES_MAX.saturating_sub(self.text.len());
        self.text.push_str(text.get(..text.floor_char_boundary(room)).unwrap_or_default());
        if text.len() <= room { Ok(()) } else { Err(fmt::Error) }
    }
}

/// For an answer to another question than the one asked.
pub(crate) fn unexpected(answer: &AdminAnswer) -> Failure {
    Failure::new(Code::BadBody, format!("unexpected answer from the broker: {}", Shortened(answer)))
        .why("client and broker have different versions")
        .fix("use the same version on both sides (`turno version`)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_logged_is_cut() {
        let short = Shortened(&"as it is").to_string();
        assert_eq!(short, "\"as it is\"");
        let long = Shortened(&"ä".repeat(LOGGED_BYTES_MAX)).to_string();
        assert!(long.len() <= LOGGED_BYTES_MAX + 3 && long.starts_with("\"ää") && long.ends_with("ä…"), "{long}");
    }
}
