//! `turno message trace`: the way of a message, as far as this broker knows it.

use clap::Args;
use turno_client::{AdminAnswer, AdminCall, Client};
use turno_proto::model::view::{Explanation, Reason};

use super::{ask, check};
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;
use crate::cli::schema::reason::ReasonBody;
use crate::cli::schema::trace::{HopBody, TraceDocument};
use crate::cli::shown::Page;
use crate::cli::table;
use crate::cli::time::{Clock, rfc3339};
use crate::cli::words::one_line;

/// Show the way that a message took: the brokers it came through, and where it is
///
/// A broker knows where a message came from and where it gave it; what happens behind the next one, that one knows. The id
/// is the same at all of them. What is settled is forgotten.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno message trace 5f3a9c0d21e4000000000001c0000007", "turno message trace 5f3a9c0d21e4000000000001c0000007 --json"],
    &[1, 4, 5, 78, 124],
))]
pub(crate) struct TraceArgs {
    /// The message's id
    id: String,
}

pub(crate) async fn run(args: &TraceArgs, invocation: &Invocation) -> Result<u8, Failure> {
    check(&args.id)?;
    let client = connect::client(invocation).await?;
    let call = AdminCall::MessageExplain { id: args.id.clone() };
    let explanation = ask(&client, call, &args.id, invocation.global.timeout()).await?;
    let document = document(&explanation, &client.config().broker, invocation.output.clock());
    invocation.output.one(&document, &args.id, || text(&document, invocation.output.clock()))?;
    if let Reason::AtLink { broker, .. } = &explanation.reason {
        let url = match url_of(&client, broker, invocation).await? {
            Some(address) => format!("turno://{address}"),
            None => "URL".to_owned(),
        };
        invocation.output.hint(&format!("further on: turno message trace {} --url {url}", args.id));
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

fn document(explanation: &Explanation, here: &str, clock: &Clock) -> TraceDocument {
    let Explanation { message, reason } = explanation;
    let hop = |hop: &str, at: Option<u64>, broker: &str, text: String| HopBody {
        hop: hop.to_owned(),
        at: at.map(|ms| rfc3339(clock.ago(ms))),
        broker: broker.to_owned(),
        worker: None,
        text,
    };
    let mut hops: Vec<HopBody> = Vec::new();
    for (place, broker) in message.came_by.iter().enumerate() {
        let what = if place == 0 { "accepted by" } else { "came through" };
        hops.push(hop("through", None, broker, format!("{what} {}", one_line(broker))));
    }
    let took = if message.came_by.is_empty() { "accepted by" } else { "crossed to" };
    hops.push(hop("accepted", Some(message.age_ms), here, format!("{took} {}, this broker", one_line(here))));
    let attempt = format!("attempt {} of {}", message.attempts, message.attempts_max);
    hops.push(match reason {
        Reason::AtLink { name, since_ms, .. } => {
            hop("crossed", Some(*since_ms), name, format!("crossed to {}, {attempt}", one_line(name)))
        }
        Reason::AtWorker { worker, name, since_ms } => {
            let text = format!("at worker {worker} ({}), {attempt}", one_line(name));
            HopBody { worker: Some(worker.to_string()), ..hop("at_worker", Some(*since_ms), here, text) }
        }
        reason => {
            let because = ReasonBody::from(reason);
            hop(&because.reason, None, here, because.text)
        }
    });
    let (id, queue) = (message.id.clone(), message.queue.clone());
    TraceDocument { id, queue, attempts: message.attempts, hops }
}

fn text(document: &TraceDocument, clock: &Clock) -> Page {
    let moment = |at: &str| at.parse().map(|at| clock.phrase(at)).unwrap_or_default();
    let line = |hop: &HopBody| vec![hop.at.as_deref().map(moment).unwrap_or_default(), hop.text.clone()];
    let lines: Vec<Vec<String>> = document.hops.iter().map(line).collect();
    table::layout(&lines, &[false, false])
}

#[cfg(test)]
mod tests {
    use turno_proto::model::view::{MessageKind, MessageState, MessageView};

    use super::*;
    use crate::cli::time::TimeStyle;

    fn traced(came_by: &[&str], reason: Reason) -> Page {
        let message = MessageView {
            id: "5f3a9c0d21e4000000000001c0000007".to_owned(),
            queue: "q".to_owned(),
            kind: MessageKind::Send,
            state: MessageState::InFlight,
            attempts: 2,
            attempts_max: 10,
            priority: 4,
            cost: 1,
            bytes: 5,
            age_ms: 90_000,
            deadline_ms: None,
            worker: None,
            came_by: came_by.iter().map(ToString::to_string).collect(),
        };
        let clock = Clock::at("2026-11-15T12:00:00Z", TimeStyle::Relative);
        text(&document(&Explanation { message, reason }, "rb-2", &clock), &clock)
    }

    #[test]
    fn the_way_as_far_as_a_broker_knows_it() {
        let crossed = Reason::AtLink { broker: "5f3a9c0d21e4".to_owned(), name: "rb-3".to_owned(), since_ms: 5_000 };
        let owner = "1m30s ago  accepted by rb-2, this broker\n5.0s ago   crossed to rb-3, attempt 2 of 10\n";
        assert_eq!(traced(&[], crossed.clone()), owner);
        let between = "           accepted by rb-0\n           came through rb-1\n\
                       1m30s ago  crossed to rb-2, this broker\n5.0s ago   crossed to rb-3, attempt 2 of 10\n";
        assert_eq!(traced(&["rb-0", "rb-1"], crossed), between);
        let worker = Reason::AtWorker { worker: 7, name: "w".to_owned(), since_ms: 5_000 };
        let last = "           accepted by rb-0\n1m30s ago  crossed to rb-2, this broker\n\
                    5.0s ago   at worker 7 (w), attempt 2 of 10\n";
        assert_eq!(traced(&["rb-0"], worker), last);
        let waits = "1m30s ago  accepted by rb-2, this broker\n           no worker consumes the queue\n";
        assert_eq!(traced(&[], Reason::NoWorker), waits);
    }
}
