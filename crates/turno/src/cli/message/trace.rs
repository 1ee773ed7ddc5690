//! `turno message trace`: the way of a message, as far as this broker knows it.

use clap::Args;
use turno_client::{AdminAnswer, AdminCall, Client};
use turno_proto::model::view::{Explanation, Reason};
use turno_proto::model::{Moment, Seconds};

use super::{ask, check};
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;
use crate::cli::schema::trace::{HopBody, TraceDocument};
use crate::cli::shown::Page;
use crate::cli::table;
use crate::cli::time::Clock;
use crate::cli::words::{one_line, reason_word};

/// Show the path of a message through brokers, and where it is
///
/// A broker knows where a message came from and where it passed it on; the next broker knows the rest of the path,
/// under the same id. Settled messages are forgotten.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno message trace 5f3a9c0d21e4000000000001c0000007", "turno message trace 5f3a9c0d21e4000000000001c0000007 --json"],
    &[1, 4, 5, 78, 124],
))]
pub(crate) struct TraceArgs {
    /// Message id
    id: String,
}

pub(crate) async fn run(args: &TraceArgs, invocation: &Invocation) -> Result<u8, Failure> {
    check(&args.id)?;
    let client = connect::client(invocation).await?;
    let call = AdminCall::MessageExplain { id: args.id.clone() };
    let explanation = ask(&client, call, &args.id, invocation.global.timeout()).await?;
    let document = document(&explanation, &client.config().broker);
    invocation.output.one(&document, &args.id, || text(&document, invocation.output.clock()))?;
    if let Reason::AtLink { broker, .. } = &explanation.because.0 {
        let url = match url_of(&client, broker, invocation).await? {
            Some(address) => format!("turno://{address}"),
            None => "URL".to_owned(),
        };
        invocation.output.hint(&format!("continue at the next broker: turno message trace {} --url {url}", args.id));
    }
    Ok(0)
}

/// Where that neighbour listens, if this broker dials it.
async fn url_of(client: &Client, broker: &str, invocation: &Invocation) -> Result<Option<String>, Failure> {
    match connect::admin(client, AdminCall::LinkLs {}, invocation.global.timeout()).await? {
        AdminAnswer::Links { links } => {
            let link = links.into_iter().find(|link| link.broker.as_deref() == Some(broker));
            Ok(link.and_then(|link| link.target))
        }
        other => Err(connect::unexpected(&other)),
    }
}

fn document(explanation: &Explanation, here: &str) -> TraceDocument {
    let Explanation { message, because } = explanation;
    let hop = |hop: &str, at: Option<Moment>, broker: &str, text: String| HopBody {
        hop: hop.to_owned(),
        at,
        broker: broker.to_owned(),
        worker: None,
        text,
    };
    // The moment of the answer, and so long before.
    let now_ms = message.received_at.unix_ms() + message.age_seconds.as_millis();
    let ago = |since: &Seconds| Some(Moment::from_unix_ms(now_ms.saturating_sub(since.as_millis())));
    let mut hops: Vec<HopBody> = Vec::new();
    for (place, broker) in message.came_by.iter().enumerate() {
        let what = if place == 0 { "accepted by" } else { "came through" };
        hops.push(hop("through", None, broker, format!("{what} {}", one_line(broker))));
    }
    let took = if message.came_by.is_empty() { "accepted by" } else { "crossed to" };
    let accepted = format!("{took} {}, this broker", one_line(here));
    hops.push(hop("accepted", Some(message.received_at), here, accepted));
    let attempt = format!("attempt {} of {}", message.attempts, message.attempts_max);
    hops.push(match &because.0 {
        Reason::AtLink { name, since_seconds, .. } => {
            hop("crossed", ago(since_seconds), name, format!("crossed to {}, {attempt}", one_line(name)))
        }
        Reason::AtWorker { worker, name, since_seconds } => {
            let text = format!("at worker {worker} ({}), {attempt}", one_line(name));
            HopBody { worker: Some(*worker), ..hop("at_worker", ago(since_seconds), here, text) }
        }
        reason => hop(&reason_word(reason), None, here, reason.to_string()),
    });
    let (id, queue) = (message.id.clone(), message.queue.clone());
    TraceDocument { id, queue, attempts: message.attempts, hops }
}

fn text(document: &TraceDocument, clock: &Clock) -> Page {
    let line = |hop: &HopBody| vec![hop.at.map(|at| clock.phrase(at)).unwrap_or_default(), hop.text.clone()];
    let lines: Vec<Vec<String>> = document.hops.iter().map(line).collect();
    table::layout(&lines, &[false, false])
}

#[cfg(test)]
mod tests {
    use turno_proto::model::WorkerId;
    use turno_proto::model::view::{Because, MessageView};

    use super::*;
    use crate::cli::time::TimeStyle;

    fn traced(came_by: &[&str], reason: Reason) -> Page {
        let message = MessageView {
            id: "5f3a9c0d21e4000000000001c0000007".to_owned(),
            queue: "q".to_owned(),
            attempts: 2,
            attempts_max: 10,
            received_at: Moment::from_unix_ms(1_794_743_910_000),
            age_seconds: Seconds::from_millis(90_000),
            came_by: came_by.iter().map(ToString::to_string).collect(),
            ..MessageView::default()
        };
        let clock = Clock::at("2026-11-15T12:00:00Z", TimeStyle::Relative);
        text(&document(&Explanation { message, because: Because(reason) }, "rb-2"), &clock)
    }

    #[test]
    fn the_way_as_far_as_a_broker_knows_it() {
        let crossed = Reason::AtLink {
            broker: "5f3a9c0d21e4".to_owned(),
            name: "rb-3".to_owned(),
            since_seconds: Seconds::from_millis(5_000),
        };
        let owner = "1m30s ago  accepted by rb-2, this broker\n5.0s ago   crossed to rb-3, attempt 2 of 10\n";
        assert_eq!(traced(&[], crossed.clone()), owner);
        let between = "           accepted by rb-0\n           came through rb-1\n\
                       1m30s ago  crossed to rb-2, this broker\n5.0s ago   crossed to rb-3, attempt 2 of 10\n";
        assert_eq!(traced(&["rb-0", "rb-1"], crossed), between);
        let worker =
            Reason::AtWorker { worker: WorkerId(7), name: "w".to_owned(), since_seconds: Seconds::from_millis(5_000) };
        let last = "           accepted by rb-0\n1m30s ago  crossed to rb-2, this broker\n\
                    5.0s ago   at worker 7 (w), attempt 2 of 10\n";
        assert_eq!(traced(&["rb-0"], worker), last);
        let waits = "1m30s ago  accepted by rb-2, this broker\n           no worker consumes the queue\n";
        assert_eq!(traced(&[], Reason::NoWorker), waits);
    }
}
