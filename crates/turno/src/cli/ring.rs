//! `turno ring`: the ring that the broker is in.

pub(crate) mod told;

use std::net::SocketAddr;
use std::time::Duration;

use clap::{Args, Subcommand};
use turno_broker::config::Next;
use turno_client::{AdminAnswer, AdminCall, Client};
use turno_proto::model::Code;
use turno_proto::model::ring::RingState;
use turno_proto::model::ring::view::{MemberView, RingView};

use super::Invocation;
use super::confirm;
use super::connect;
use super::error::Failure;
use super::help;
use super::schema::ring::RingDocument;
use super::shown::Page;
use super::size;
use super::table;
use super::time::short;
use super::words::{count, counted, one_line};

/// How often the broker is asked how far it is.
const POLL: Duration = Duration::from_millis(50);

/// Show, join, leave or stop a ring
#[derive(Args, Debug)]
pub(crate) struct RingArgs {
    #[command(subcommand)]
    command: RingCommand,
}

#[derive(Subcommand, Debug)]
enum RingCommand {
    #[command(visible_aliases = ["info", "get"])]
    Show(RingShowArgs),
    Join(JoinArgs),
    Leave(LeaveArgs),
    Shutdown(ShutdownArgs),
}

/// Show the ring as the broker sees it
///
/// The circle is the result of the broker's last roll call; one goes round every second. `not round` counts its own
/// publications that have not come back yet, `kept` the publications of all members that a neighbour might need again.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno ring show", "turno ring show --wait --json", "turno ring show --url turno://127.0.0.1:8103"],
    &[1, 5, 78, 124],
))]
struct RingShowArgs {
    /// Wait until the ring is whole, up to --timeout
    #[arg(long)]
    wait: bool,
}

/// Join a ring at one of its members
///
/// Returns when the broker is a member, or says why it is not. The broker must have been started with --sid. The
/// default port is 8000 plus the sid of that member. If a broker with another sid answers there, nothing is joined.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno ring join 3@localhost", "turno ring join 3@10.0.0.7:9003", "turno ring join 3@localhost --json"],
    &[1, 5, 78, 124],
))]
struct JoinArgs {
    /// Member to join at
    #[arg(value_name = "SID@HOST[:PORT]")]
    next: String,
}

/// Leave the ring; the broker continues alone
///
/// Returns when the broker has left. By then its own publications have come round, and it has passed on those of
/// others.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno ring leave", "turno ring leave --url turno://127.0.0.1:8103", "turno ring leave --json"],
    &[1, 5, 78, 124],
))]
struct LeaveArgs {}

/// Stop all brokers of the ring
///
/// Each broker forwards the command and then stops as by SIGTERM. Only accepted from the broker's own machine. A ring without a
/// secret cannot authenticate the command, so turno contacts each broker at its native address instead.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &["turno ring shutdown --yes", "turno ring shutdown --yes --url turno://127.0.0.1:8103"],
    &[1, 5, 78, 124],
))]
struct ShutdownArgs {}

pub(crate) fn run(args: &RingArgs, invocation: &Invocation) -> Result<u8, Failure> {
    connect::block_on(async {
        match &args.command {
            RingCommand::Show(args) => show(args, invocation).await,
            RingCommand::Join(args) => join(args, invocation).await,
            RingCommand::Leave(_) => leave(invocation).await,
            RingCommand::Shutdown(_) => shutdown(invocation).await,
        }
    })
}

async fn ask(client: &Client, call: AdminCall, invocation: &Invocation) -> Result<RingView, Failure> {
    match connect::admin(client, call, invocation.global.timeout()).await? {
        AdminAnswer::Ring { ring } => Ok(*ring),
        other => Err(connect::unexpected(&other)),
    }
}

/// Looks at the ring until something is so, or the time is over.
async fn look_until(
    client: &Client,
    mut view: RingView,
    invocation: &Invocation,
    is_so: impl Fn(&RingView) -> bool,
) -> Result<RingView, Failure> {
    let until = tokio::time::Instant::now() + invocation.global.timeout();
    while !is_so(&view) && tokio::time::Instant::now() < until {
        tokio::time::sleep(POLL).await;
        view = ask(client, AdminCall::Ring {}, invocation).await?;
    }
    Ok(view)
}

fn tell<P: Into<Page>>(view: &RingView, invocation: &Invocation, text: impl FnOnce() -> P) -> Result<u8, Failure> {
    invocation.output.one(&RingDocument { ring: view }, &view.sid.to_string(), text)?;
    Ok(0)
}

async fn show(args: &RingShowArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let client = connect::client(invocation).await?;
    let mut view = ask(&client, AdminCall::Ring {}, invocation).await?;
    let is_settled = |view: &RingView| view.why.is_none();
    if args.wait {
        view = look_until(&client, view, invocation, is_settled).await?;
        if !is_settled(&view) {
            return Err(Failure::new(Code::TimedOut, "the ring is not whole yet")
                .why(told::line(&view))
                .fix("wait longer with --timeout; `turno ring show` shows the state"));
        }
    }
    tell(&view, invocation, || text(&view, invocation))?;
    if let Some(code) = view.code.as_deref().and_then(|code| code.parse::<Code>().ok()) {
        invocation.output.hint(code.text().fix);
    } else if view.state == RingState::Off {
        invocation.output.hint("the broker is not in a ring; join one: turno ring join SID@HOST");
    }
    Ok(0)
}

fn text(view: &RingView, invocation: &Invocation) -> Page {
    let clock = invocation.output.clock();
    let mut facts = vec![("ring", told::line(view))];
    if !view.members.is_empty() {
        let last = if view.whole || view.members.len() == 1 { "" } else { ", last known" };
        facts.push(("circle", format!("{}{last}", told::circle(view))));
    }
    facts.push(("this broker", format!("sid {} at {}", view.sid, one_line(&view.address))));
    facts.push(("state", format!("{} since {}", view.state, short(clock.since(view.since_at)))));
    if let Some(took) = view.round_trip_seconds {
        facts.push(("round trip", short(took.duration())));
    }
    facts.push((
        "not round",
        match view.oldest_seconds {
            Some(oldest) => format!("{}, the oldest since {}", view.not_round, short(oldest.duration())),
            None => view.not_round.to_string(),
        },
    ));
    let kept = count(view.buffered, "publication", "publications");
    facts.push(("kept", format!("{kept}, {}", size::short(view.buffer_bytes))));
    if view.slowed {
        facts.push(("publishers", "throttled until publications have completed their round".to_owned()));
    }
    facts.push(("so far", counted(&view.counters)));
    let mut page = table::facts(&facts);
    let columns: Vec<&table::Column<MemberView>> = <MemberView as table::Row>::COLUMNS.iter().collect();
    let rows: Vec<MemberView> = view.members.iter().chain(&view.lost).cloned().collect();
    if !rows.is_empty() {
        page.line("");
        page.append(&table::render(&columns, &rows, clock, None));
    }
    page
}

async fn join(args: &JoinArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let next: Next = args.next.parse().map_err(|expected| {
        Failure::new(Code::BadUsage, format!("invalid ring member {:?}", args.next))
            .why(format!("expected {expected}"))
            .fix("turno ring join 3@localhost")
    })?;
    let client = connect::client(invocation).await?;
    let view = ask(&client, AdminCall::Ring {}, invocation).await.map_err(|failure| without_sid(failure, &next))?;
    if next.sid == view.sid {
        return Err(Failure::new(Code::BadUsage, format!("{next} is this broker's own sid"))
            .why("a broker joins a ring at another member")
            .fix("choose another member"));
    }
    if is_among_others(&view) {
        if !has(&view, &next) {
            return Err(elsewhere(&view, &next));
        }
        return tell(&view, invocation, || {
            format!("{} is already in the same ring: {}\n", next.sid, told::circle(&view))
        });
    }
    let view =
        ask(&client, AdminCall::RingJoin { next: next.address.clone(), sid: Some(next.sid) }, invocation).await?;
    let view = look_until(&client, view, invocation, is_decided).await?;
    match view.state {
        RingState::Member | RingState::Rewiring => {
            tell(&view, invocation, || format!("joined: {}\n", told::circle(&view)))?;
            if view.whole && !has(&view, &next) {
                invocation
                    .output
                    .warn(&format!("{next} did not answer; the broker joined at a member it knew from before"));
            }
            Ok(0)
        }
        _ => Err(not_joined(&view, &next)),
    }
}

/// Whether it has a place between others.
fn is_among_others(view: &RingView) -> bool {
    matches!(view.state, RingState::Member | RingState::Rewiring | RingState::LinkDown) && view.members.len() > 1
}

fn has(view: &RingView, next: &Next) -> bool {
    view.members.iter().any(|member| member.sid == next.sid)
}

fn elsewhere(view: &RingView, next: &Next) -> Failure {
    Failure::new(
        Code::BadUsage,
        format!("the broker is in a ring that does not contain {}: {}", next.sid, told::circle(view)),
    )
    .why("a broker is in one ring at a time")
    .fix("leave that ring first: turno ring leave")
}

/// Whether it is known what joining comes to. The circle is known once a roll call came round.
fn is_decided(view: &RingView) -> bool {
    match view.state {
        RingState::Member | RingState::Rewiring => view.whole,
        RingState::Alone | RingState::Off => view.code.is_some(),
        RingState::Joining | RingState::LinkDown | RingState::Leaving => false,
    }
}

/// To join, a broker must have been started for it: `turno ring join` is what was typed already.
fn without_sid(failure: Failure, next: &Next) -> Failure {
    if failure.code() != Code::NotInRing {
        return failure;
    }
    Failure::new(Code::NotInRing, "the broker has no sid and cannot join a ring")
        .why("a broker gets its sid at start")
        .fix(format!("restart it: turno serve --sid auto --ring-next {next}"))
}

fn not_joined(view: &RingView, next: &Next) -> Failure {
    match view.code.as_deref().and_then(|code| code.parse::<Code>().ok()) {
        Some(code) => told::not_joined(code, format!("the broker did not join at {next}"), &next.address),
        None => Failure::new(Code::TimedOut, format!("the broker has not joined at {next} yet"))
            .why(told::line(view))
            .fix("`turno ring show` shows its progress"),
    }
}

async fn leave(invocation: &Invocation) -> Result<u8, Failure> {
    let client = connect::client(invocation).await?;
    let view = ask(&client, AdminCall::RingLeave {}, invocation).await?;
    let view = look_until(&client, view, invocation, |view| view.state == RingState::Off).await?;
    match view.state {
        RingState::Off => tell(&view, invocation, || "left the ring; the broker continues alone"),
        _ => Err(Failure::new(Code::TimedOut, "the broker has not left the ring yet")
            .why(told::line(&view))
            .fix("`turno ring show` shows its progress")),
    }
}

async fn shutdown(invocation: &Invocation) -> Result<u8, Failure> {
    let client = connect::client(invocation).await?;
    let view = ask(&client, AdminCall::Ring {}, invocation).await?;
    let all = count(view.members.len().max(1) as u64, "broker", "brokers");
    confirm::ask(invocation, &format!("stop all brokers of the ring, {all}?"))?;
    if !view.secret {
        end_others(&view, invocation).await?;
    }
    let view = ask(&client, AdminCall::RingShutdown {}, invocation).await?;
    tell(&view, invocation, || format!("stopping the ring: {all}\n"))
}

/// Ends every other member. If one of them cannot be asked, none is ended that has not been yet.
async fn end_others(view: &RingView, invocation: &Invocation) -> Result<(), Failure> {
    let mut others = Vec::new();
    for member in view.members.iter().filter(|member| member.sid != view.sid) {
        let unreachable = |why: String| {
            Failure::new(Code::RingDown, format!("cannot stop member {}", member.sid))
                .why(why)
                .fix("stop it with SIGTERM, or start all members with the same --ring-secret-file")
        };
        // A member's claims about itself are not proven: it must be on this machine, and be the one that is meant.
        let is_here = |address: SocketAddr| address.ip().is_loopback();
        let native = member.native.as_deref().unwrap_or_default();
        if !native.parse().is_ok_and(is_here) {
            return Err(unreachable(
                "the ring has no secret, and that broker has no native listener on loopback".to_owned(),
            ));
        }
        let client = connect::client_at(native, invocation).await;
        let client = client.map_err(|failure| unreachable(failure.what().to_owned()))?;
        let there = ask(&client, AdminCall::Ring {}, invocation).await.ok();
        if there.is_none_or(|there| (there.sid, there.incarnation) != (member.sid, member.incarnation)) {
            return Err(unreachable(format!("another broker is at {native}")));
        }
        others.push(client);
    }
    for client in &others {
        ask(client, AdminCall::RingShutdown {}, invocation).await?;
    }
    Ok(())
}
