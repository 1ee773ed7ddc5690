//! `turno message retry`: a message does not wait for its time any longer.

use clap::Args;
use turno_client::AdminCall;
use turno_proto::model::view::MessageState;

use super::{ask, check};
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;
use crate::cli::schema::message::RetriedMessageDocument;

/// Let a delayed message go on at once
///
/// A message that waits after a failed attempt, or because of `send --delay`, is delivered as soon as a worker is free. A dead
/// letter goes back into its queue, as with `turno queue dead retry`. Any other message stays as it is.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno message retry 5f3a9c0d21e4ffffffffffff0000002a"],
    &[1, 4, 5, 78, 124],
))]
pub(super) struct MessageRetryArgs {
    /// Message id
    id: String,
}

pub(super) async fn run(args: &MessageRetryArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let id = &args.id;
    check(id)?;
    let client = connect::client(invocation).await?;
    let call = AdminCall::MessageRetry { id: id.clone() };
    let message = ask(&client, call, id, invocation.global.timeout()).await?.message;
    let retried = matches!(message.state, MessageState::Delayed | MessageState::Dead);
    let text = match retried {
        true => format!("retried {} of queue {} (was {})\n", message.id, message.queue, message.state),
        false => {
            format!("message {} of queue {} is {}: it waits for no time\n", message.id, message.queue, message.state)
        }
    };
    invocation.output.one(&RetriedMessageDocument { message, retried }, id, || text)?;
    Ok(0)
}
