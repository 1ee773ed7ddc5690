//! `turno zmq`: where ZeroMQ programs connect, and who is there.

use clap::{Args, Subcommand};
use turno_client::{AdminAnswer, AdminCall, Client};
use turno_proto::model::Code;
use turno_proto::model::zmq::{EndpointView, ZmqPeerView};

use super::Invocation;
use super::connect;
use super::error::Failure;
use super::help;
use super::schema::zmq::{ZmqDocument, ZmqListDocument};
use super::shown::Page;
use super::table;
use super::words::one_line;

/// List and show the endpoints for ZeroMQ programs
#[derive(Args, Debug)]
pub(crate) struct ZmqArgs {
    #[command(subcommand)]
    command: ZmqCommand,
}

#[derive(Subcommand, Debug)]
enum ZmqCommand {
    #[command(visible_alias = "list")]
    Ls(ZmqLsArgs),
    #[command(visible_aliases = ["info", "get"])]
    Show(ZmqShowArgs),
}

/// List the endpoints and their counters
///
/// WITHHELD (-o wide) counts answers to failed requests: a plain socket has no place for an error, unless the endpoint
/// names a frame for it.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(&["turno zmq ls", "turno zmq ls -o wide", "turno zmq ls --json"], &[1, 5, 78, 124]))]
struct ZmqLsArgs {}

/// Show one endpoint with its peers
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(&["turno zmq show default", "turno zmq show default --json"], &[1, 4, 5, 78, 124]))]
struct ZmqShowArgs {
    /// Name or address of the endpoint
    #[arg(value_name = "NAME|ADDR")]
    endpoint: String,
}

pub(crate) fn run(args: &ZmqArgs, invocation: &Invocation) -> Result<u8, Failure> {
    connect::block_on(async {
        let client = connect::client(invocation).await?;
        let endpoints = ask(&client, invocation).await?;
        match &args.command {
            ZmqCommand::Ls(_) => list(&endpoints, invocation),
            ZmqCommand::Show(args) => show(&args.endpoint, &endpoints, invocation),
        }
    })
}

/// Asks the broker for views of its endpoints.
pub(crate) async fn ask(client: &Client, invocation: &Invocation) -> Result<Vec<EndpointView>, Failure> {
    match connect::admin(client, AdminCall::ZmqLs {}, invocation.global.timeout()).await? {
        AdminAnswer::ZmqEndpoints { endpoints } => Ok(endpoints),
        other => Err(connect::unexpected(&other)),
    }
}

fn list(endpoints: &[EndpointView], invocation: &Invocation) -> Result<u8, Failure> {
    invocation.output.rows(&ZmqListDocument { endpoints, next: None }, endpoints)?;
    if endpoints.is_empty() {
        invocation
            .output
            .hint("this broker has no ZeroMQ endpoint; restart it with: turno serve --zmq-listen 127.0.0.1:7461");
    }
    Ok(0)
}

fn show(wanted: &str, endpoints: &[EndpointView], invocation: &Invocation) -> Result<u8, Failure> {
    let fits = |endpoint: &&EndpointView| endpoint.name == wanted || endpoint.address == wanted;
    let Some(endpoint) = endpoints.iter().find(fits) else {
        let what = format!("endpoint {} does not exist", one_line(wanted));
        return Err(Failure::new(Code::NotFound, what).fix("`turno zmq ls` lists the endpoints"));
    };
    invocation.output.one(&ZmqDocument { endpoint }, &endpoint.name, || text(endpoint))?;
    Ok(0)
}

fn text(endpoint: &EndpointView) -> Page {
    let EndpointView { name, address, queue, role, topic, mechanism, peers_all, peers, .. } = endpoint;
    let dropped = [
        (endpoint.withheld, "withheld"),
        (endpoint.bad_envelope, "without an envelope"),
        (endpoint.bad_topic, "without a topic"),
        (endpoint.refused, "refused"),
        (endpoint.bad_handshake, "handshakes failed"),
    ];
    let dropped: Vec<String> =
        dropped.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    let mut facts = vec![
        ("endpoint", one_line(name)),
        ("address", one_line(address)),
        ("queue", one_line(queue)),
        if role == "lmq" { ("protocol", "LMQ".to_owned()) } else { ("DEALER is a", one_line(role)) },
        ("topics below", if topic.is_empty() { "-".to_owned() } else { one_line(topic) }),
        ("mechanism", one_line(mechanism)),
        ("messages", format!("{} received, {} sent", endpoint.received, endpoint.sent)),
        ("dropped", if dropped.is_empty() { "none".to_owned() } else { dropped.join(", ") }),
        ("peers", peers_all.to_string()),
    ];
    facts.extend(peers.iter().map(|peer| ("", about(peer))));
    table::facts(&facts)
}

/// A peer in a line.
fn about(peer: &ZmqPeerView) -> String {
    let mut words = vec![one_line(&peer.socket), one_line(&peer.address)];
    if !peer.identity.is_empty() {
        words.push(one_line(&peer.identity));
    }
    words.extend(peer.user.as_deref().map(one_line));
    words.join(" ")
}
