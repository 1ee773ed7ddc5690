//! `turno drain` and `turno resume`: maintenance without stopping the broker.

use std::time::{Duration, Instant};

use clap::Args;
use turno_client::{AdminAnswer, AdminCall, Client};
use turno_proto::model::Code;
use turno_proto::model::view::BrokerView;

use super::Invocation;
use super::connect;
use super::error::Failure;
use super::help;
use super::schema::broker::StatusDocument;
use super::words::count;

/// How long to wait for what runs.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How often the broker is asked whether something runs.
const LOOK: Duration = Duration::from_millis(100);

/// Drain the broker for maintenance
///
/// The broker tells all peers to use another broker, returns waiting requests to their callers, and neither accepts nor
/// delivers work until `turno resume`. Running messages and tasks can finish, stored messages stay, and admin commands
/// still work. The command waits until nothing is running, at most for --timeout (30s if not set); the broker stays
/// drained after that.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno drain", "turno drain --timeout 5m", "turno drain --url turno://10.0.0.7:7460 --json"],
    &[1, 5, 78, 124],
))]
pub(crate) struct DrainArgs {}

/// Accept work again after `turno drain`
///
/// All clients and workers are notified, and stored messages are delivered again. Has no effect on a broker that is not drained.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno resume", "turno resume --url turno://10.0.0.7:7460"],
    &[1, 5, 78, 124],
))]
pub(crate) struct ResumeArgs {}

pub(crate) fn drain(invocation: &Invocation) -> Result<u8, Failure> {
    connect::block_on(async {
        let patience = invocation.global.timeout.unwrap_or(TIMEOUT);
        let since = Instant::now();
        let client = connect::client(invocation).await?;
        let mut view = ask(&client, AdminCall::Drain, invocation).await?;
        while view.in_flight + view.jobs.tasks_running > 0 {
            let Some(left) = patience.checked_sub(since.elapsed()) else { return Err(still_running(&view)) };
            tokio::time::sleep(left.min(LOOK)).await;
            view = ask(&client, AdminCall::Status, invocation).await?;
            if !view.maintenance {
                return Err(Failure::new(Code::Cancelled, format!("broker {} is no longer drained", view.name))
                    .why("another user resumed it, or it is shutting down")
                    .fix("check with `turno status`"));
            }
        }
        let waiting = count(view.ready, "message waits", "messages wait");
        let text = format!("broker {} is drained: nothing is running, {waiting} for `turno resume`\n", view.name);
        tell(&view, text, invocation)
    })
}

pub(crate) fn resume(invocation: &Invocation) -> Result<u8, Failure> {
    connect::block_on(async {
        let client = connect::client(invocation).await?;
        let view = ask(&client, AdminCall::Resume, invocation).await?;
        let text = format!("broker {} accepts work\n", view.name);
        tell(&view, text, invocation)
    })
}

async fn ask(client: &Client, call: AdminCall, invocation: &Invocation) -> Result<BrokerView, Failure> {
    match connect::admin(client, call, invocation.global.timeout()).await? {
        AdminAnswer::Status { broker } => Ok(*broker),
        other => Err(connect::unexpected(&other)),
    }
}

fn tell(view: &BrokerView, text: String, invocation: &Invocation) -> Result<u8, Failure> {
    invocation.output.one(&StatusDocument { broker: view }, &view.name, || text)?;
    Ok(0)
}

fn still_running(view: &BrokerView) -> Failure {
    let deliveries = count(view.in_flight, "delivery", "deliveries");
    let tasks = count(view.jobs.tasks_running, "task", "tasks");
    let running = match (view.in_flight, view.jobs.tasks_running) {
        (_, 0) => deliveries,
        (0, _) => tasks,
        _ => format!("{deliveries} and {tasks}"),
    };
    let why = match view.jobs.tasks_lost {
        0 => "their workers have not finished them".to_owned(),
        lost => {
            format!("their workers have not finished them; {} of a lost worker", count(lost, "task is", "tasks are"))
        }
    };
    Failure::new(Code::TimedOut, format!("broker {} accepts no work; still running: {running}", view.name))
        .why(why)
        .fix("wait longer with `turno drain --timeout 5m`, or accept work again with `turno resume`")
}
