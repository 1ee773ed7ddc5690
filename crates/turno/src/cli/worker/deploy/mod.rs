//! `turno worker deploy`: workers on other machines, over the user's own ssh. Nothing listens beyond loopback: both
//! connections of a worker go back through the ssh that started it.

mod host_run;
mod hosts;
mod ssh;

use std::path::{Path, PathBuf};

use clap::Args;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use turno_client::Address;
use turno_proto::model::{Code, units};

use self::host_run::{DeployEnd, News};
use self::hosts::Host;
use self::ssh::Broker;
use super::start::no_way;
use crate::cli::Invocation;
use crate::cli::connect;
use crate::cli::error::Failure;
use crate::cli::help;
use crate::cli::schema::worker::{DeployedBody, DeployedDocument};
use crate::cli::signals::Signals;
use crate::job_worker::link;

/// News of hosts that wait to be told. More: the hosts wait.
const NEWS_MAX: usize = 256;

/// Start job workers on other machines over ssh
///
/// The workers run until this command ends. The file has one host per line, as ssh knows it, and its options: slots=N,
/// name=NAME, label=KEY=VALUE, pool=P, work-dir=DIR, turno=PATH (the program on that host; by default it is found by
/// its name). The workers connect back through ssh, so the broker needs to listen on loopback only. A lost connection
/// is opened again. SIGTERM or Ctrl-C lets the workers finish their tasks; a second one ends them at once.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno worker deploy --hosts machines.txt",
        "turno worker deploy --hosts machines.txt --ssh my-ssh",
        "turno worker deploy --hosts - < machines.txt",
    ],
    &[1, 3, 5, 78, 130, 143],
))]
pub(crate) struct DeployArgs {
    /// File with the list of hosts; - for standard input
    #[arg(long, value_name = "FILE")]
    hosts: PathBuf,

    /// ssh command, with options
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    ssh: String,
}

pub(crate) fn run(args: &DeployArgs, invocation: &Invocation) -> Result<u8, Failure> {
    let ssh: Vec<String> = args.ssh.split_whitespace().map(ToOwned::to_owned).collect();
    if ssh.is_empty() {
        return Err(Failure::new(Code::BadUsage, "--ssh is empty"));
    }
    connect::block_on(async {
        let broker = broker(invocation).await?;
        deploy(read(&args.hosts)?, ssh, broker, invocation).await
    })
}

fn read(file: &Path) -> Result<Vec<Host>, Failure> {
    let place = file.display().to_string();
    let text = if place == "-" { std::io::read_to_string(std::io::stdin()) } else { std::fs::read_to_string(file) };
    let text = text.map_err(|error| Failure::system(format!("cannot read {place}"), &error))?;
    hosts::read(&place, &text)
}

async fn deploy(hosts: Vec<Host>, ssh: Vec<String>, broker: Broker, invocation: &Invocation) -> Result<u8, Failure> {
    let mut signals = Signals::catch()?;
    let (end, ending) = watch::channel(DeployEnd::NotYet);
    let (news, mut heard) = mpsc::channel(NEWS_MAX);
    let mut tasks = JoinSet::new();
    for (at, host) in hosts.iter().enumerate() {
        tasks.spawn(host_run::keep(at, host.clone(), ssh.clone(), broker.clone(), ending.clone(), news.clone()));
    }
    drop(news);
    let mut board = Board::new(&hosts);
    loop {
        tokio::select! {
            exit = signals.next() => {
                if *end.borrow() != DeployEnd::NotYet {
                    end.send_replace(DeployEnd::Now);
                    invocation.output.note("ended at once");
                    return Ok(exit);
                }
                end.send_replace(DeployEnd::InOrder);
                invocation.output.note("waiting for workers to finish; press Ctrl-C again to stop immediately");
            }
            told = heard.recv() => {
                let Some((at, what)) = told else { break };
                board.hear(at, what, invocation)?;
            }
        }
    }
    board.end()
}

/// Where the broker is, as seen from here.
async fn broker(invocation: &Invocation) -> Result<Broker, Failure> {
    let options = connect::options(invocation)?;
    let place = link::ask(&options).await.map_err(no_way)?;
    let native = options.addresses().iter().find_map(|address| match address {
        Address::Tcp(address) => Some(address.clone()),
        _ => None,
    });
    let native = native.ok_or_else(|| {
        Failure::new(Code::BadUsage, "ssh cannot forward a Unix socket to another machine")
            .fix("use the broker's TCP address: --url turno://127.0.0.1:7460")
    })?;
    Ok(Broker { native, foreman: place.foreman })
}

/// The state of each host.
struct Board<'a> {
    hosts: &'a [Host],
    states: Vec<HostState>,
    told: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostState {
    Starting,
    Ready(Option<u64>),
    Failed(String),
}

impl<'a> Board<'a> {
    fn new(hosts: &'a [Host]) -> Self {
        Self { hosts, states: vec![HostState::Starting; hosts.len()], told: false }
    }

    fn hear(&mut self, at: usize, what: News, invocation: &Invocation) -> Result<(), Failure> {
        let (name, output) = (&self.hosts[at].name, &invocation.output);
        match &what {
            News::Said(text) => output.note(&format!("{name}: {text}")),
            News::Lost(why, pause) => {
                output.note(&format!("{name}: {why}; retrying in {}", units::format_duration(*pause)));
            }
            News::Ended => output.note(&format!("{name}: its worker has ended")),
            News::Ready(slots) => {
                let slots = slots.map_or_else(String::new, |slots| format!(", {slots} slots"));
                output.note(&format!("{name}: ready{slots}"));
            }
            News::Failed(why) => output.warn(&format!("{name}: {why}")),
        }
        match what {
            News::Ready(slots) => self.states[at] = HostState::Ready(slots),
            News::Failed(why) => self.states[at] = HostState::Failed(why),
            _ => return Ok(()),
        }
        if !self.told && !self.states.contains(&HostState::Starting) {
            self.told = true;
            self.summary(invocation)?;
        }
        Ok(())
    }

    fn summary(&self, invocation: &Invocation) -> Result<(), Failure> {
        let ready = self.states.iter().filter(|state| matches!(state, HostState::Ready(_))).count();
        invocation.output.note(&format!("{ready} of {} workers are ready", self.hosts.len()));
        if ready > 0 {
            invocation.output.hint("turno worker ls lists them; Ctrl-C stops them after their running tasks");
        }
        if !invocation.output.format().is_json() {
            return Ok(());
        }
        let hosts = self.hosts.iter().zip(&self.states).map(|(host, state)| DeployedBody {
            host: host.address.clone(),
            name: host.name.clone(),
            ready: matches!(state, HostState::Ready(_)),
            slots: if let HostState::Ready(slots) = state { *slots } else { None },
            error: if let HostState::Failed(why) = state { Some(why.clone()) } else { None },
        });
        invocation.output.document(&DeployedDocument { hosts: hosts.collect() })
    }

    fn end(&self) -> Result<u8, Failure> {
        let failed = self.states.iter().filter(|state| matches!(state, HostState::Failed(_))).count();
        match failed {
            0 => Ok(0),
            all if all == self.states.len() => {
                Err(Failure::new(Code::CannotStart, "no worker was started on any host"))
            }
            _ => Ok(3),
        }
    }
}
