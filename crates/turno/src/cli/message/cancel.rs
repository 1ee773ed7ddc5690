//! `turno message cancel`: one message, or many in one go.

use std::io::{self, Read as _};
use std::time::Duration;

use clap::Args;
use turno_client::{AdminCall, Client};
use turno_proto::model::Code;
use turno_proto::model::view::{Explanation, MessageView};

use super::{ask, check};
use crate::cli::Invocation;
use crate::cli::confirm;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::global::Format;
use crate::cli::help;
use crate::cli::schema::message::{CancelledDocument, CancelledListDocument, CancelledRow};
use crate::cli::window::Window;

/// Stands for the lines of standard input.
const LINES: &str = "-";
/// Calls at a time.
const IN_FLIGHT: usize = 64;

/// Cancel waiting or running messages
///
/// A waiting message is removed at once; the worker of a running one is told to stop. An unknown id does not affect the
/// others. `turno queue purge` removes all waiting messages of a queue.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno message cancel 5f3a9c0d21e4000000000001c0000007 --yes",
        "turno message cancel - --yes < ids.txt",
    ],
    &[1, 3, 4, 5, 78, 124],
))]
pub(super) struct MessageCancelArgs {
    /// Message ids; - reads them from stdin, one per line
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

pub(super) async fn run(args: &MessageCancelArgs, invocation: &Invocation) -> Result<u8, Failure> {
    match args.ids.as_slice() {
        [id] if id != LINES => one(id, invocation).await,
        ids => many(&named(ids)?, invocation).await,
    }
}

async fn one(id: &str, invocation: &Invocation) -> Result<u8, Failure> {
    check(id)?;
    let client = connect::client(invocation).await?;
    let timeout = invocation.global.timeout();
    let before = ask(&client, AdminCall::MessageExplain { id: id.to_owned() }, id, timeout).await?;
    let now = before.message;
    confirm::ask(
        invocation,
        &format!("cancel the {} {} of queue {}, which is {}?", now.kind, now.id, now.queue, now.state),
    )?;
    let message = cancelled(client, id.to_owned(), timeout).await?.message;
    let text = line(&message);
    invocation.output.one(&CancelledDocument { message, cancelled: true }, id, || text)?;
    Ok(0)
}

fn line(message: &MessageView) -> String {
    format!("cancelled {} of queue {} (was {})\n", message.id, message.queue, message.state)
}

async fn cancelled(client: Client, id: String, timeout: Duration) -> Result<Explanation, Failure> {
    ask(&client, AdminCall::MessageCancel { id: id.clone() }, &id, timeout).await
}

/// All ids, those of standard input in the place of their sign. Nothing is done unless all of them make sense.
fn named(ids: &[String]) -> Result<Vec<String>, Failure> {
    let mut all = Vec::new();
    for id in ids {
        if id == LINES {
            let mut text = String::new();
            let failed = |error: io::Error| Failure::system("cannot read standard input", &error);
            io::stdin().lock().read_to_string(&mut text).map_err(failed)?;
            all.extend(of_lines(&text));
        } else {
            all.push(id.clone());
        }
    }
    all.iter().try_for_each(|id| check(id))?;
    Ok(all)
}

/// An id a line; empty lines are none.
fn of_lines(text: &str) -> impl Iterator<Item = String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned)
}

/// Answers are printed in the order of the ids. Anything but a message that is not there ends it; what is on its way is
/// still waited for.
async fn many(ids: &[String], invocation: &Invocation) -> Result<u8, Failure> {
    confirm::ask(invocation, &format!("cancel {} messages?", ids.len()))?;
    let client = connect::client(invocation).await?;
    let mut window = Window::new(IN_FLIGHT);
    let mut tally = CancelTally::default();
    let mut left = ids.iter();
    while !tally.ends_all {
        if window.has_room() {
            let Some(id) = left.next() else { break };
            window.begin(cancelled(client.clone(), id.clone(), invocation.global.timeout()));
        } else if let Some(end) = window.next().await {
            tally.take(ids, end, invocation)?;
        }
    }
    while let Some(end) = window.finish().await {
        tally.take(ids, end, invocation)?;
    }
    tally.finish(ids.len(), invocation)
}

/// How many ended, and how.
#[derive(Default)]
struct CancelTally {
    cancelled: u64,
    failed: u64,
    /// The first of them.
    failure: Option<Failure>,
    /// The others would fail for the same reason.
    ends_all: bool,
    /// Kept only where all of them go into one document.
    kept: Vec<CancelledRow>,
}

impl CancelTally {
    fn take(
        &mut self,
        ids: &[String],
        end: Result<Explanation, Failure>,
        invocation: &Invocation,
    ) -> Result<(), Failure> {
        let at = usize::try_from(self.cancelled + self.failed).unwrap_or(usize::MAX);
        let id = ids.get(at).cloned().unwrap_or_default();
        let row = match end {
            Ok(explanation) => {
                self.cancelled += 1;
                CancelledRow { id, message: Some(explanation.message), error: None }
            }
            Err(failure) => {
                self.failed += 1;
                self.ends_all |= failure.code() != Code::NotFound;
                let error = Some(failure.body());
                self.failure.get_or_insert(failure);
                CancelledRow { id, message: None, error }
            }
        };
        match (invocation.output.format(), &row.message) {
            (Format::Json, _) => {
                self.kept.push(row);
                Ok(())
            }
            (Format::Jsonl, _) => invocation.output.document(&row),
            (Format::Name, Some(_)) => invocation.output.text(row.id.as_str()),
            (_, Some(message)) => invocation.output.text(line(message)),
            (_, None) => Ok(()),
        }
    }

    fn finish(self, asked: usize, invocation: &Invocation) -> Result<u8, Failure> {
        let Self { cancelled, failed, failure, kept, .. } = self;
        let format = invocation.output.format();
        let untried = asked as u64 - cancelled - failed;
        if format != Format::Json && format != Format::Jsonl {
            let untried = if untried > 0 { format!(", {untried} not attempted") } else { String::new() };
            let failed = if failed > 0 { format!(", {failed} failed") } else { String::new() };
            invocation.output.note(&format!("{cancelled} cancelled{failed}{untried}"));
        }
        if format == Format::Json {
            invocation.output.document(&CancelledListDocument { messages: kept, cancelled, failed, untried })?;
        }
        match failure.map(|failure| if cancelled > 0 { failure.exit_with(3) } else { failure }) {
            None => Ok(0),
            Some(failure) if matches!(format, Format::Json | Format::Jsonl) => Ok(failure.exit()),
            Some(failure) => Err(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_ids() {
        assert_eq!(of_lines("a\n\n b \r\nc").collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(of_lines("\n").count(), 0);
    }

    #[test]
    fn one_id_that_makes_no_sense_spoils_all() {
        let good = "5f3a9c0d21e4000000000001c0000007".to_owned();
        assert_eq!(named(&[good.clone(), good.clone()]).unwrap().len(), 2);
        assert_eq!(named(&[good, "no id".to_owned()]).unwrap_err().code(), Code::BadUsage);
    }
}
