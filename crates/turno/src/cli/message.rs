//! `turno message`: one message, why it is where it is, and its end.

mod cancel;
mod retry;
mod trace;

use std::time::Duration;

use clap::{Args, Subcommand};
use turno_client::{AdminAnswer, AdminCall, Client, MessageId};
use turno_proto::model::Code;
use turno_proto::model::view::{Explanation, MessageView};

use super::Invocation;
use super::connect;
use super::error::Failure;
use super::help;
use super::table;
use super::words::one_line;

/// Explain, trace, retry and cancel messages
#[derive(Args, Debug)]
pub(crate) struct MessageArgs {
    #[command(subcommand)]
    command: MessageCommand,
}

#[derive(Subcommand, Debug)]
enum MessageCommand {
    Explain(MessageExplainArgs),
    Trace(trace::TraceArgs),
    Retry(retry::MessageRetryArgs),
    Cancel(cancel::MessageCancelArgs),
}

/// Show why a message is where it is
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno message explain 5f3a9c0d21e4000000000001c0000007", "turno message explain 5f3a9c0d21e4000000000001c0000007 --json"],
    &[1, 4, 5, 78, 124],
))]
struct MessageExplainArgs {
    /// Message id
    id: String,
}

pub(crate) fn run(args: &MessageArgs, invocation: &Invocation) -> Result<u8, Failure> {
    match &args.command {
        MessageCommand::Explain(args) => connect::block_on(explain(&args.id, invocation)),
        MessageCommand::Trace(args) => connect::block_on(trace::run(args, invocation)),
        MessageCommand::Retry(args) => connect::block_on(retry::run(args, invocation)),
        MessageCommand::Cancel(args) => connect::block_on(cancel::run(args, invocation)),
    }
}

async fn explain(id: &str, invocation: &Invocation) -> Result<u8, Failure> {
    check(id)?;
    let client = connect::client(invocation).await?;
    let explanation =
        ask(&client, AdminCall::MessageExplain { id: id.to_owned() }, id, invocation.global.timeout()).await?;
    invocation.output.one(&explanation, id, || {
        let mut facts = facts(&explanation.message, invocation);
        facts.push(("because", explanation.because.to_string()));
        table::facts(&facts)
    })?;
    Ok(0)
}

pub(crate) fn check(id: &str) -> Result<(), Failure> {
    match id.parse::<MessageId>() {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::new(Code::BadUsage, format!("invalid message id {id:?}"))
            .why(error.to_string())
            .fix("`turno send` prints the id; `turno queue show` lists waiting messages")),
    }
}

async fn ask(client: &Client, call: AdminCall, id: &str, timeout: Duration) -> Result<Explanation, Failure> {
    match connect::admin(client, call, timeout).await {
        Ok(AdminAnswer::Message { explanation }) => Ok(*explanation),
        Ok(other) => Err(connect::unexpected(&other)),
        Err(failure) if failure.code() == Code::NotFound => {
            Err(Failure::new(Code::NotFound, format!("message {id} does not exist"))
                .why("it is already settled, or it was sent to another broker or before a restart")
                .fix("`turno queue show QUEUE` lists waiting messages"))
        }
        Err(failure) => Err(failure),
    }
}

pub(crate) fn facts(message: &MessageView, invocation: &Invocation) -> Vec<(&'static str, String)> {
    let clock = invocation.output.clock();
    let moment = |moment| clock.phrase(moment);
    let mut facts = vec![
        ("message", message.id.clone()),
        ("queue", message.queue.clone()),
        ("kind", message.kind.to_string()),
        ("state", message.state.to_string()),
        ("attempts", format!("{} of {}", message.attempts, message.attempts_max)),
        ("priority", message.priority.to_string()),
        ("cost", message.cost.to_string()),
        ("bytes", message.bytes.to_string()),
        ("received", moment(message.received_at)),
        ("deadline", message.deadline_at.map_or_else(|| "none".to_owned(), moment)),
    ];
    if let Some(until) = message.delayed_until {
        facts.push(("delayed until", moment(until)));
    }
    if !message.came_by.is_empty() {
        let names: Vec<String> = message.came_by.iter().map(|name| one_line(name)).collect();
        facts.push(("came by", names.join(", ")));
    }
    facts
}
