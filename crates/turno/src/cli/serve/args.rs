//! The flags of `turno serve`, and the keys of the configuration that they set.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use turno_broker::config::{Flag, RawValue};
use turno_proto::model::units;

use crate::cli::help;

/// Run a broker
///
/// No flag is needed. The broker listens on loopback and on a Unix socket in its data directory, and stores messages
/// there. SIGTERM or Ctrl-C lets running work finish; a second one ends the broker at once. --json prints one line when
/// the broker is ready.
#[derive(Args, Debug)]
#[command(after_long_help = help::notes(
    &[
        "turno serve",
        "turno serve --listen 127.0.0.1:0 --json",
        "turno serve --listen 0.0.0.0:7460 --insecure",
        "turno serve --memory",
        "turno serve --listen none --foreman-listen none --zmq-listen none --lmq-listen none",
        "turno serve --listen 127.0.0.1:7470 --name rb-2 --data rb-2 --link 127.0.0.1:7460",
        "turno serve --sid 1",
        "turno serve --sid 2 --ring-next 1@localhost",
        "turno serve --sid auto --ring-next 1@localhost",
        "turno serve --data /var/lib/turno --name rb-1 --broker turno://rb-1:7460,turno://rb-2:7460",
    ],
    &[1, 78, 130, 143],
))]
pub(crate) struct ServeArgs {
    /// Address for clients [default: 127.0.0.1:7460]
    ///
    /// Repeatable. Port 0 selects a free port; `none` leaves the Unix socket only.
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    listen: Vec<String>,

    /// For job workers [default: 127.0.0.1:5429]
    ///
    /// Repeatable, or `none`. If the default port is in use, a free one is taken.
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    foreman_listen: Vec<String>,

    /// For ZeroMQ programs [default: 127.0.0.1:7461]
    ///
    /// Repeatable, or `none`. If the default port is in use, a free one is taken.
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    zmq_listen: Vec<String>,

    /// For LMQ programs [default: 127.0.0.1:6714]
    ///
    /// Repeatable, or `none`. If the default port is in use, a free one is taken.
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    lmq_listen: Vec<String>,

    /// Data directory
    ///
    /// The default is `turno` in the user's data directory.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Store nothing on disk
    ///
    /// Messages are lost when the broker ends.
    #[arg(long, conflicts_with = "data")]
    memory: bool,

    /// Broker name [default: the host name]
    #[arg(long, value_name = "NODE")]
    name: Option<String>,

    /// Allow listening beyond this machine
    ///
    /// There is no authentication: everyone who can reach the address can use the broker.
    #[arg(long)]
    pub(super) insecure: bool,

    /// Address announced to clients and workers
    ///
    /// Repeatable, in order of preference.
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    broker: Vec<String>,

    /// Broker to link with; repeatable
    #[arg(long, value_name = "ADDR", value_delimiter = ',')]
    link: Vec<String>,

    /// File with the secret of linked brokers
    #[arg(long, value_name = "FILE")]
    link_secret_file: Option<PathBuf>,

    /// Network threads [default: 1]
    ///
    /// 1 shares the thread of the engine.
    #[arg(long, value_name = "N")]
    routers: Option<u32>,

    /// auto, text or json [default: auto]
    ///
    /// auto suits a terminal, a pipe or the journal; json prints one object per line.
    #[arg(long, value_name = "FORMAT", hide_possible_values = true)]
    log_format: Option<LogStyle>,

    /// Wait for work at shutdown [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    drain_timeout: Option<Duration>,

    /// Wait for a lost job worker [default: 1m]
    ///
    /// After that its tasks go to another worker.
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    worker_grace: Option<Duration>,

    #[command(flatten)]
    ring: ServeRingArgs,
}

#[derive(Args, Debug)]
#[command(next_help_heading = "Ring")]
struct ServeRingArgs {
    /// Number of this broker in the ring
    ///
    /// Sets the ports to 8000, 8100 and 8400 plus the number; `auto` takes a free number.
    #[arg(long, value_name = "N|auto")]
    sid: Option<String>,

    /// Member to join at [default: a new ring]
    #[arg(long, value_name = "SID@HOST[:PORT]")]
    ring_next: Option<String>,

    /// Retry every second until it answers
    #[arg(long)]
    ring_wait: bool,

    /// Port for members [default: 8000 + N]
    ///
    /// A port on loopback; 0 selects a free one.
    #[arg(long, value_name = "PORT")]
    ring_port: Option<u16>,

    /// Address for members, instead of a port
    #[arg(long, value_name = "ADDR")]
    ring_listen: Option<String>,

    /// Host announced to members, if different
    #[arg(long, value_name = "HOST")]
    ring_advertise: Option<String>,

    /// File with the secret of all members
    #[arg(long, value_name = "FILE")]
    ring_secret_file: Option<PathBuf>,

    /// Keep members ordered by sid
    #[arg(long)]
    ring_sorted: bool,

    /// Give up a lost member within one second
    #[arg(long)]
    ring_fast: bool,

    /// Link with the neighbours too
    ///
    /// Linked brokers share their workers.
    #[arg(long)]
    ring_links: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogStyle {
    /// Suitable for a terminal, a pipe or the journal
    Auto,
    /// Text
    Text,
    /// One JSON object per line
    Json,
}

/// The settings of the flags.
pub(super) fn flags(args: &ServeArgs) -> Vec<Flag> {
    let mut flags = Vec::new();
    let mut put = |flag, key, raw: Option<RawValue>| flags.extend(raw.map(|raw| Flag { flag, key, raw }));
    let list = |items: &Vec<String>| (!items.is_empty()).then(|| RawValue::List(items.clone()));
    put("--listen", "listen.native", list(&args.listen));
    put("--foreman-listen", "listen.foreman", list(&args.foreman_listen));
    put("--zmq-listen", "listen.zmq", list(&args.zmq_listen));
    put("--lmq-listen", "listen.lmq", list(&args.lmq_listen));
    put("--data", "data", args.data.as_ref().map(|path| RawValue::Text(path.display().to_string())));
    put("--memory", "persistence", args.memory.then(|| RawValue::Text("memory".to_owned())));
    put("--name", "name", args.name.clone().map(RawValue::Text));
    put("--broker", "brokers", list(&args.broker));
    put("--link", "link.to", list(&args.link));
    let secret_file = args.link_secret_file.as_ref();
    put("--link-secret-file", "link.secret-file", secret_file.map(|path| RawValue::Text(path.display().to_string())));
    ring_flags(&args.ring, &mut put);
    put("--routers", "routers", args.routers.map(|routers| RawValue::Integer(i64::from(routers))));
    let style = args.log_format.map(|style| match style {
        LogStyle::Auto => "auto",
        LogStyle::Text => "text",
        LogStyle::Json => "json",
    });
    put("--log-format", "log.format", style.map(|style| RawValue::Text(style.to_owned())));
    let drain = args.drain_timeout.map(|timeout| RawValue::Text(units::format_duration(timeout)));
    put("--drain-timeout", "drain.timeout", drain);
    let grace = args.worker_grace.map(|grace| RawValue::Text(units::format_duration(grace)));
    put("--worker-grace", "jobs.worker-grace", grace);
    flags
}

fn ring_flags(args: &ServeRingArgs, put: &mut impl FnMut(&'static str, &'static str, Option<RawValue>)) {
    let text = |text: &Option<String>| text.clone().map(RawValue::Text);
    let on = |on: bool| on.then_some(RawValue::Switch(true));
    put("--sid", "ring.sid", text(&args.sid));
    put("--ring-next", "ring.next", text(&args.ring_next));
    put("--ring-wait", "ring.wait", on(args.ring_wait));
    put("--ring-port", "ring.port", args.ring_port.map(|port| RawValue::Integer(port.into())));
    put("--ring-listen", "ring.listen", text(&args.ring_listen));
    put("--ring-advertise", "ring.advertise", text(&args.ring_advertise));
    let secret_file = args.ring_secret_file.as_ref();
    put("--ring-secret-file", "ring.secret-file", secret_file.map(|path| RawValue::Text(path.display().to_string())));
    put("--ring-sorted", "ring.sorted", on(args.ring_sorted));
    put("--ring-fast", "ring.fast", on(args.ring_fast));
    put("--ring-links", "ring.links", on(args.ring_links));
}
