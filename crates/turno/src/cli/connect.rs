//! Finding the broker and asking it.

use std::future::Future;
use std::time::Duration;

use tracing::{debug, info};
use turno_client::{Address, AdminAnswer, AdminCall, Client, Options};
use turno_proto::model::Code;

use super::Invocation;
use super::error::Failure;
use super::version::VERSION;

/// Where a broker listens when nobody says otherwise.
const LOCAL: &str = "turno://127.0.0.1:7460";

/// Runs the asynchronous part of a command on this thread.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::new(Code::Io, "cannot start the runtime").why(error.to_string()))?;
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
    Ok(if socket.exists() { vec![Address::Unix(socket), local] } else { vec![local] })
}

/// How to connect.
pub(crate) fn options(invocation: &Invocation) -> Result<Options, Failure> {
    Ok(Options::new(addresses(invocation)?)
        .program(format!("turno {VERSION}"))
        .connect_timeout(invocation.global.timeout()))
}

/// A connection for a command about a broker: that one, even if it closes or is drained.
pub(crate) async fn client(invocation: &Invocation) -> Result<Client, Failure> {
    connect(options(invocation)?.stay(true)).await
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

/// One question to the broker, answered in time or not at all.
pub(crate) async fn admin(client: &Client, call: AdminCall, timeout: Duration) -> Result<AdminAnswer, Failure> {
    debug!(?call, "asking");
    match tokio::time::timeout(timeout, client.admin(call)).await {
        Ok(answer) => Ok(answer.inspect(|answer| debug!(?answer, "answered"))?),
        Err(_) => Err(Failure::new(Code::TimedOut, "the broker did not answer in time")
            .why("it is busy or the network is slow")
            .fix("try again with a longer --timeout")),
    }
}

/// For an answer to another question than the one asked.
pub(crate) fn unexpected(answer: &AdminAnswer) -> Failure {
    Failure::new(Code::BadBody, format!("the broker answered something else: {answer:?}"))
        .why("client and broker are of different versions")
        .fix("use the same version on both sides (`turno version`)")
}
