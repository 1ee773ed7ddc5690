//! `turno status`: the broker as a whole.

use clap::Args;
use turno_client::{AdminAnswer, AdminCall};
use turno_proto::model::view::{BrokerView, JobsView, MemoryView};
use turno_proto::model::zmq::EndpointView;

use super::Invocation;
use super::connect;
use super::error::Failure;
use super::help;
use super::ring::told;
use super::schema::broker::StatusDocument;
use super::shown::Page;
use super::size;
use super::table;
use super::time::short;
use super::words::{count, counted, one_line};
use super::zmq;

/// Show the state of the broker
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno status", "turno status --json", "turno status --url turno://10.0.0.7:7460"],
    &[1, 5, 78, 124],
))]
pub(crate) struct StatusArgs {}

pub(crate) fn run(invocation: &Invocation) -> Result<u8, Failure> {
    connect::block_on(async {
        let client = connect::client(invocation).await?;
        let view = match connect::admin(&client, AdminCall::Status, invocation.global.timeout()).await? {
            AdminAnswer::Status { broker } => broker,
            other => return Err(connect::unexpected(&other)),
        };
        let zmq = zmq::ask(&client, invocation).await?;
        invocation.output.one(&StatusDocument { broker: &view }, &view.name, || text(&view, &zmq, invocation))?;
        if view.maintenance {
            invocation.output.hint("the broker accepts no work until `turno resume`");
        } else if view.memory.is_short(view.bytes_max) && view.memory.is_mostly_dead() {
            invocation.output.hint(
                "dead letters fill the memory, so new messages are refused: turno queue ls, then turno queue dead \
                     retry QUEUE --all or turno queue dead purge QUEUE --all",
            );
        } else if view.workers == 0 && view.ready > 0 {
            invocation.output.hint("messages are waiting and no worker is connected: turno queue ls");
        } else if view.ring.as_deref().is_some_and(told::is_broken) {
            invocation.output.hint("state of the ring: turno ring show");
        } else if view.links_down > 0 {
            invocation.output.hint("some links are down: turno link ls");
        } else if view.dead > 0 {
            invocation.output.hint(
                "dead letters are kept until you retry or purge them: turno queue ls, then turno queue dead ls QUEUE",
            );
        }
        Ok(0)
    })
}

fn state(broker: &BrokerView) -> &'static str {
    match (broker.maintenance, broker.draining, broker.in_flight + broker.jobs.tasks_running) {
        (true, _, 0) => "drained for maintenance",
        (true, ..) => "draining for maintenance",
        (false, true, _) => "draining",
        (false, false, _) => "running",
    }
}

fn jobs(broker: &BrokerView) -> String {
    let JobsView { known, unfinished, tasks_running, tasks_lost } = &broker.jobs;
    let lost = if *tasks_lost > 0 { format!(" ({tasks_lost} on a lost worker)") } else { String::new() };
    format!("{known}, {unfinished} unfinished, {} running{lost}", count(*tasks_running, "task", "tasks"))
}

fn disk(broker: &BrokerView) -> String {
    match (&broker.disk, &broker.data) {
        (Some(disk), _) => format!("{} free of {}", size::short(disk.free), size::short(disk.total)),
        (None, Some(_)) => "unknown".to_owned(),
        (None, None) => "none".to_owned(),
    }
}

/// Those that are up, and what is missing.
fn links(broker: &BrokerView) -> String {
    match (broker.links_up, broker.links_wanted, broker.links_down) {
        (0, 0, _) => "none".to_owned(),
        (up, _, 0) => format!("{up} up"),
        (up, wanted, down) => format!("{up} up, {down} of {wanted} configured down"),
    }
}

/// How much is used, by which part, and what was refused for lack of it.
fn memory(broker: &BrokerView) -> String {
    let MemoryView {
        used, messages, dead, jobs, events, archive, incoming, outgoing, waiting, refused, closed, ..
    } = broker.memory;
    let share = used.saturating_mul(100).checked_div(broker.bytes_max).unwrap_or_default();
    let parts = [
        ("messages", messages - dead),
        ("dead letters", dead),
        ("jobs", jobs),
        ("events", events),
        ("archive", archive),
        ("in-buffers", incoming),
        ("out-buffers", outgoing),
    ];
    let parts = parts.into_iter().filter(|(_, bytes)| *bytes > 0);
    let parts: Vec<String> = parts.map(|(name, bytes)| format!("{name} {}", size::short(bytes))).collect();
    let events =
        [(waiting, "connections waiting for memory"), (refused, "frames refused"), (closed, "connections closed")];
    let events = events.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("; {count} {what}"));
    let list = if parts.is_empty() { String::new() } else { format!(": {}", parts.join(", ")) };
    let (used, most) = (size::short(used), size::short(broker.bytes_max));
    format!("{used} of {most} ({share}%){list}{}", events.collect::<String>())
}

/// Where ZeroMQ programs connect, and how many are there.
fn endpoints<'a>(endpoints: impl Iterator<Item = &'a EndpointView>) -> String {
    let endpoints: Vec<&EndpointView> = endpoints.collect();
    if endpoints.is_empty() {
        return "nowhere".to_owned();
    }
    let peers = endpoints.iter().map(|endpoint| endpoint.peers_all).sum();
    let addresses: Vec<String> = endpoints.iter().map(|endpoint| one_line(&endpoint.address)).collect();
    format!("{}, {}", addresses.join(", "), count(peers, "peer", "peers"))
}

fn text(broker: &BrokerView, zmq: &[EndpointView], invocation: &Invocation) -> Page {
    let mut facts = vec![
        ("broker", format!("{} (turno {})", broker.name, broker.version)),
        ("started", invocation.output.clock().phrase(broker.started_at)),
        ("up", short(broker.up_seconds.duration())),
        ("state", state(broker).to_owned()),
        ("job workers at", broker.foreman.clone().unwrap_or_else(|| "nowhere".to_owned())),
        ("ZeroMQ at", endpoints(zmq.iter().filter(|one| one.role != "lmq"))),
        ("LMQ at", endpoints(zmq.iter().filter(|one| one.role == "lmq"))),
        ("connections", broker.connections.to_string()),
        ("workers", format!("{}, {} of {} slots in use", broker.workers, broker.slots_used, broker.slots)),
        ("queues", broker.queues.to_string()),
        ("messages", format!("{} ready, {} in flight, {} dead", broker.ready, broker.in_flight, broker.dead)),
        ("jobs", jobs(broker)),
        ("data", broker.data.clone().unwrap_or_else(|| "in memory only".to_owned())),
        ("disk", disk(broker)),
        ("memory", memory(broker)),
        ("links", links(broker)),
    ];
    facts.extend(broker.ring.as_deref().map(|ring| ("ring", told::line(ring))));
    facts.push(("so far", counted(&broker.counters)));
    table::facts(&facts)
}
