//! `turno link`: links to other brokers.

mod dot;

use std::time::Duration;

use clap::{Args, Subcommand};
use turno_client::{Address, AdminAnswer, AdminCall, Client};
use turno_proto::model::Code;
use turno_proto::model::link::view::{LinkState, LinkView};

use super::Invocation;
use super::connect;
use super::error::Failure;
use super::global::Format;
use super::help;
use super::schema::link::{LinkDocument, LinkGraphDocument, LinkListDocument};
use super::schema::meta::TextDocument;
use super::words::{count, one_line};

/// How often the broker is asked how far a new link is.
const POLL: Duration = Duration::from_millis(50);

/// List, add and remove links to other brokers
#[derive(Args, Debug)]
pub(crate) struct LinkArgs {
    #[command(subcommand)]
    command: LinkCommand,
}

#[derive(Subcommand, Debug)]
enum LinkCommand {
    #[command(visible_alias = "list")]
    Ls(LinkLsArgs),
    Add(AddArgs),
    #[command(visible_aliases = ["delete", "remove"])]
    Rm(LinkRmArgs),
    Graph(GraphArgs),
}

/// List links and configured addresses
///
/// OFFERED counts the free slots at the other end. With -o wide, BACKLOG counts messages that have crossed and are not
/// settled, and RETURNED those that came back because no slot was free. The broker dials a configured address again
/// every second; TARGET is empty if the other broker dialled.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(&["turno link ls", "turno link ls --json", "turno link ls -o wide"], &[1, 5, 78, 124]))]
struct LinkLsArgs {}

/// Link the broker with another one
///
/// Returns when the link is up or at the first failure; the broker keeps dialling until `turno link rm`. The link ends
/// with the broker: to have it at every start, add its address to `link.to` in the configuration.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno link add 10.0.0.7:7460", "turno link add rb-2 --no-wait", "turno link add 10.0.0.7:7460 --json"],
    &[1, 5, 78, 124],
))]
struct AddArgs {
    /// Address of the other broker; the default port is 7460
    #[arg(value_name = "ADDR")]
    address: String,

    /// Return at once, without waiting for the link to come up
    #[arg(long)]
    no_wait: bool,
}

/// Remove a link
///
/// The broker no longer dials its address. Messages that have crossed and are not settled come back: sends wait again
/// without using an attempt, and requests without retries end with `worker_lost`. If the other broker dialled, it dials
/// again unless the link is removed there too.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno link rm 10.0.0.7:7460", "turno link rm rb-2"],
    &[1, 4, 5, 78, 124],
))]
struct LinkRmArgs {
    /// Address as given to `link add`, or name or id of the linked broker
    #[arg(value_name = "ADDR|NAME|ID")]
    link: String,
}

/// Show the reachable brokers and the links between them
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno link graph", "turno link graph --dot | dot -Tsvg > brokers.svg", "turno link graph --json"],
    &[1, 5, 78, 124],
))]
struct GraphArgs {
    /// Print a Graphviz graph
    #[arg(long)]
    dot: bool,
}

pub(crate) fn run(args: &LinkArgs, invocation: &Invocation) -> Result<u8, Failure> {
    connect::block_on(async {
        match &args.command {
            LinkCommand::Ls(_) => list(invocation).await,
            LinkCommand::Add(args) => add(args, invocation).await,
            LinkCommand::Rm(args) => remove(args, invocation).await,
            LinkCommand::Graph(args) => graph(args, invocation).await,
        }
    })
}

async fn ask(client: &Client, call: AdminCall, invocation: &Invocation) -> Result<Vec<LinkView>, Failure> {
    match connect::admin(client, call, invocation.global.timeout()).await? {
        AdminAnswer::Links { links } => Ok(links),
        other => Err(connect::unexpected(&other)),
    }
}

async fn list(invocation: &Invocation) -> Result<u8, Failure> {
    let client = connect::client(invocation).await?;
    let links = ask(&client, AdminCall::LinkLs {}, invocation).await?;
    invocation.output.rows(&LinkListDocument { links: &links, next: None }, &links)?;
    if links.is_empty() {
        invocation.output.hint("no links; add one: turno link add HOST:PORT");
    }
    let mut told: Vec<Code> = Vec::new();
    for link in &links {
        if let Some(code) = code_of(link).filter(|code| !told.contains(code)) {
            let target = link.target.as_deref().unwrap_or_default();
            invocation.output.hint(&format!("{}: {}; {}", one_line(target), code.text().what, code.text().fix));
            told.push(code);
        }
    }
    Ok(0)
}

/// Why it is not up.
fn code_of(link: &LinkView) -> Option<Code> {
    link.code.as_deref().and_then(|code| code.parse().ok())
}

/// The address as the broker is to dial it.
fn address(typed: &str) -> Result<String, Failure> {
    match typed.parse::<Address>() {
        Ok(Address::Tcp(place)) => Ok(place),
        Ok(socket) => Ok(socket.to_string()),
        Err(_) => Err(Failure::new(Code::BadUsage, format!("{typed:?} is not an address of a broker"))
            .why("expected HOST:PORT or unix:/PATH; HOST is a name, an IPv4 address or an IPv6 address in brackets")
            .fix("use the native address of the other broker, like 10.0.0.7:7460")),
    }
}

async fn add(args: &AddArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let address = address(&args.address)?;
    let client = connect::client(invocation).await?;
    let added = ask(&client, AdminCall::LinkAdd { address: address.clone() }, invocation).await?;
    let mut link = one(added)?;
    let until = tokio::time::Instant::now() + invocation.global.timeout();
    while !args.no_wait && !is_decided(&link) && tokio::time::Instant::now() < until {
        tokio::time::sleep(POLL).await;
        let links = ask(&client, AdminCall::LinkLs {}, invocation).await?;
        let found = links.into_iter().find(|link| link.target.as_deref() == Some(&address));
        link = found.ok_or_else(|| gone(&address))?;
    }
    if !args.no_wait {
        verdict(&client, &link, &address, invocation).await?;
    }
    tell(&link, &told_of(&link), invocation)?;
    if link.state != LinkState::Up {
        invocation.output.hint("turno link ls");
    }
    Ok(0)
}

/// Whether it is known what dialling comes to. A link that was just added is neither dialled nor told why it is down.
const fn is_decided(link: &LinkView) -> bool {
    match link.state {
        LinkState::Up | LinkState::Closing | LinkState::Itself | LinkState::Doubled => true,
        LinkState::Down => link.code.is_some(),
        LinkState::Dialling => false,
    }
}

/// The result of waiting for a link.
async fn verdict(client: &Client, link: &LinkView, address: &str, invocation: &Invocation) -> Result<(), Failure> {
    let fix = |fix: &str| format!("{fix}; to stop dialling: turno link rm {address}");
    match link.state {
        // Nothing can come of it: it is not left behind.
        LinkState::Itself => {
            ask(client, AdminCall::LinkRm { link: address.to_owned() }, invocation).await?;
            Err(Failure::new(Code::LinkToItself, format!("{address} is this broker itself")))
        }
        LinkState::Down => {
            let code = code_of(link).unwrap_or(Code::LinkDown);
            Err(Failure::new(code, format!("the link to {address} is not up yet: {}", code.text().what))
                .fix(fix(code.text().fix)))
        }
        LinkState::Dialling => Err(Failure::new(Code::TimedOut, format!("no answer from {address} in time"))
            .why("the other broker is unreachable, or another program listens there")
            .fix(fix("check the address; the broker keeps dialling"))),
        LinkState::Up | LinkState::Closing | LinkState::Doubled => Ok(()),
    }
}

fn gone(address: &str) -> Failure {
    Failure::new(Code::NotFound, format!("the link to {address} has been removed"))
        .why("another user removed it")
        .fix(format!("turno link add {address}"))
}

fn one(mut links: Vec<LinkView>) -> Result<LinkView, Failure> {
    match links.len() {
        1 => Ok(links.remove(0)),
        _ => Err(connect::unexpected(&AdminAnswer::Links { links })),
    }
}

/// The broker at the other end and the address, as far as they are known.
fn called(link: &LinkView) -> String {
    match (link.name.as_deref().map(one_line), link.target.as_deref().or(link.address.as_deref())) {
        (Some(name), Some(address)) => format!("{name} ({})", one_line(address)),
        (Some(name), None) => name,
        (None, address) => one_line(address.unwrap_or_default()),
    }
}

fn told_of(link: &LinkView) -> String {
    let called = called(link);
    match link.state {
        LinkState::Up => format!("linked with {called}"),
        LinkState::Closing => format!("linked with {called}, which is shutting down or drained"),
        LinkState::Doubled => {
            format!("{called} is already linked through another address; this one is dialled if that link fails")
        }
        state => format!("link to {called} configured: {state}"),
    }
}

fn tell(link: &LinkView, text: &str, invocation: &Invocation) -> Result<(), Failure> {
    let name = super::table::Row::name(link);
    invocation.output.one(&LinkDocument { link }, &name, || format!("{text}\n"))
}

async fn remove(args: &LinkRmArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let client = connect::client(invocation).await?;
    let call = |link: &str| AdminCall::LinkRm { link: link.to_owned() };
    let mut answer = ask(&client, call(&args.link), invocation).await;
    // Perhaps an address as `link add` takes it.
    if let Err(failure) = &answer
        && failure.code() == Code::NotFound
        && let Ok(address) = address(&args.link)
        && address != args.link
    {
        answer = ask(&client, call(&address), invocation).await;
    }
    let link = one(answer.map_err(|failure| unknown(failure, &args.link))?)?;
    let mut text = format!("removed the link to {}", called(&link));
    if link.backlog > 0 {
        text += &format!(
            "; {} back",
            count(link.backlog, "message that had crossed comes", "messages that had crossed come")
        );
    }
    tell(&link, &text, invocation)?;
    if link.target.is_none() {
        invocation.output.hint("the other broker dialled this link and will dial again: remove it there too");
    }
    Ok(0)
}

fn unknown(failure: Failure, link: &str) -> Failure {
    match failure.code() {
        Code::NotFound => Failure::new(Code::NotFound, format!("link {link:?} does not exist"))
            .why("use its address as given to `link add`, or the name or id of the linked broker")
            .fix("turno link ls -o wide"),
        Code::Ambiguous => Failure::new(Code::Ambiguous, format!("several linked brokers are named {link:?}"))
            .why("broker names need not be unique; ids are")
            .fix("use the id: turno link ls -o wide"),
        _ => failure,
    }
}

async fn graph(args: &GraphArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let client = connect::client(invocation).await?;
    let brokers = match connect::admin(&client, AdminCall::LinkGraph {}, invocation.global.timeout()).await? {
        AdminAnswer::LinkGraph { brokers } => brokers,
        other => return Err(connect::unexpected(&other)),
    };
    match (args.dot, invocation.output.format()) {
        (true, Format::Json | Format::Jsonl) => {
            let (name, text) = ("links.dot".to_owned(), dot::dot(&brokers).to_string());
            invocation.output.document(&TextDocument { name, text })?;
        }
        (true, _) => invocation.output.text(dot::dot(&brokers))?,
        (false, _) => invocation.output.rows(&LinkGraphDocument { brokers: &brokers }, &brokers)?,
    }
    if brokers.len() == 1 {
        invocation.output.hint("no links; add one: turno link add HOST:PORT");
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_typed() {
        let table = [
            ("10.0.0.7:7461", Some("10.0.0.7:7461")),
            ("rb-2", Some("rb-2:7460")),
            ("turno://rb-2:1", Some("rb-2:1")),
            ("[::1]:7461", Some("[::1]:7461")),
            ("unix:/run/turno.sock", Some("unix:/run/turno.sock")),
            ("unix:", None),
            ("", None),
            ("rb-2:", None),
            ("rb-2:70000", None),
            ("rb 2:7460", None),
            ("::1", None),
        ];
        for (typed, expected) in table {
            let got = address(typed);
            assert_eq!(got.as_deref().ok(), expected, "{typed:?}");
            if let Err(failure) = got {
                assert_eq!(failure.exit(), 2, "{typed:?}");
            }
        }
    }

    #[test]
    fn a_link_is_called_by_what_is_known() {
        let view = |name: Option<&str>, target: Option<&str>, address: Option<&str>| LinkView {
            target: target.map(ToOwned::to_owned),
            name: name.map(ToOwned::to_owned),
            address: address.map(ToOwned::to_owned),
            state: LinkState::Up,
            ..LinkView::default()
        };
        let table = [
            (view(Some("rb-2"), Some("10.0.0.7:7460"), Some("10.0.0.7:7460")), "rb-2 (10.0.0.7:7460)"),
            (view(Some("rb\n2"), None, Some("10.0.0.7:51234")), "rb 2 (10.0.0.7:51234)"),
            (view(None, Some("10.0.0.7:7460"), None), "10.0.0.7:7460"),
        ];
        for (link, expected) in table {
            assert_eq!(called(&link), expected);
        }
    }
}
