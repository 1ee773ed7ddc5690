//! The configuration with its types: what the rest of the program asks for.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use turno_engine::Policy;
use turno_proto::model::Limits;
use turno_proto::native::Secret;

use crate::ArchiveSettings;

use super::ring::RingKeys;
use super::value::Value;
use super::{Config, KEYS, Origin, SOCKET_NAME};

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// What suits where they go.
    Auto,
    /// Text.
    Text,
    /// One JSON object a line.
    Json,
}

/// Every setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The broker's name.
    pub name: String,
    /// Its directory.
    pub data: PathBuf,
    /// Nothing is written anywhere.
    pub in_memory: bool,
    /// Where commands go.
    pub url: Vec<String>,
    /// What clients and workers are told.
    pub brokers: Vec<String>,
    /// Native listeners.
    pub listen: Vec<SocketAddr>,
    /// `listen.foreman`.
    pub foreman: Vec<SocketAddr>,
    /// Nobody set it: another port will do.
    pub foreman_or_free: bool,
    /// Brokers to link with.
    pub link_to: Vec<String>,
    /// What both ends of a link must know.
    pub link_secret: Option<Secret>,
    /// A file that has it.
    pub link_secret_file: Option<PathBuf>,
    /// Names of brokers, in order of preference.
    pub link_order: Vec<String>,
    /// Its place in a ring.
    pub ring: RingKeys,
    /// Threads for connections.
    pub routers: usize,
    /// Every limit.
    pub limits: Limits,
    /// The heartbeat of a peer that names none.
    pub heartbeat_ms: u32,
    /// A delivery's lease.
    pub lease: Option<Duration>,
    /// Whose turn it is.
    pub policy: Policy,
    /// Deliveries in a row that expire at a worker until it is dropped from their queue; 0: never.
    pub drop_after: u16,
    /// How much room what tasks leave behind has.
    pub archive: ArchiveSettings,
    /// How long a job that has ended is known.
    pub keep_finished: Option<Duration>,
    /// How long the tasks of a lost worker wait for it.
    pub worker_grace: Duration,
    /// How long a drain may take.
    pub drain_timeout: Duration,
    /// Which log lines are written.
    pub log_level: String,
    /// How they look.
    pub log_format: LogFormat,
}

impl Settings {
    pub(super) fn of(config: &Config) -> Self {
        let limits = Limits {
            frame_bytes_max: as_usize(config.number("limits.message")),
            connections_max: as_usize(config.number("limits.connections")),
            queues_max: as_usize(config.number("limits.queues")),
            in_flight_max: as_u32(config.number("limits.in-flight")),
            memory_bytes_max: config.number("limits.memory"),
            dead_max: as_usize(config.number("limits.dead")),
            request_deadline_ms: as_ms(config.duration("request.deadline")),
            ..Limits::default()
        };
        Self {
            name: config.text("name"),
            data: config.path("data"),
            in_memory: config.text("persistence") == "memory",
            url: config.list("url"),
            brokers: config.list("brokers"),
            listen: config.listen("listen.native"),
            foreman: config.listen("listen.foreman"),
            foreman_or_free: config.is_default("listen.foreman") || config.follows_sid("listen.foreman"),
            link_to: config.list("link.to"),
            link_secret: match config.value("link.secret") {
                Value::Secret(secret) => Some(secret.clone()),
                _ => None,
            },
            link_secret_file: match config.value("link.secret-file") {
                Value::Path(path) => Some(path.clone()),
                _ => None,
            },
            link_order: config.list("link.order"),
            ring: RingKeys::of(config),
            routers: as_usize(config.number("routers")),
            limits,
            heartbeat_ms: as_ms(config.duration("heartbeat")),
            lease: match config.value("queue.defaults.lease") {
                Value::Duration(lease) => Some(*lease),
                _ => None,
            },
            policy: match config.text("queue.defaults.policy").as_str() {
                "fill" => Policy::Fill,
                _ => Policy::LeastRecentlyUsed,
            },
            drop_after: u16::try_from(config.number("queue.defaults.drop-after")).unwrap_or(u16::MAX),
            archive: ArchiveSettings {
                output_per_task: config.number("jobs.output-per-task"),
                output_total: config.number("jobs.output-total"),
                result_total: config.number("jobs.result-total"),
            },
            keep_finished: match config.value("jobs.keep-finished") {
                Value::Duration(keep) => Some(*keep),
                _ => None,
            },
            worker_grace: config.duration("jobs.worker-grace"),
            drain_timeout: config.duration("drain.timeout"),
            log_level: config.text("log.level"),
            log_format: match config.text("log.format").as_str() {
                "text" => LogFormat::Text,
                "json" => LogFormat::Json,
                _ => LogFormat::Auto,
            },
        }
    }

    /// The broker's Unix socket.
    pub fn socket(&self) -> PathBuf {
        self.data.join(SOCKET_NAME)
    }
}

/// A key's kind fixes the variant of its value, so a mismatch is a mistake in the table of keys.
impl Config {
    fn text(&self, name: &str) -> String {
        match self.value(name) {
            Value::Text(text) => text.clone(),
            other => unreachable!("{name} is text, not {other:?}"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        match self.value(name) {
            Value::Path(path) => path.clone(),
            other => unreachable!("{name} is a path, not {other:?}"),
        }
    }

    fn list(&self, name: &str) -> Vec<String> {
        match self.value(name) {
            Value::List(items) => items.clone(),
            other => unreachable!("{name} is a list, not {other:?}"),
        }
    }

    fn listen(&self, name: &str) -> Vec<SocketAddr> {
        match self.value(name) {
            Value::Listen(addresses) => addresses.clone(),
            other => unreachable!("{name} is a list of addresses, not {other:?}"),
        }
    }

    /// Who set it.
    pub fn origin(&self, name: &str) -> &Origin {
        let place = KEYS.iter().position(|key| key.name == name).expect("only names of KEYS are asked for");
        &self.settings()[place].origin
    }

    /// Nobody set it, and nothing follows from a sid.
    pub(super) fn is_default(&self, name: &str) -> bool {
        *self.origin(name) == Origin::Default
    }

    fn follows_sid(&self, name: &str) -> bool {
        matches!(self.origin(name), Origin::Sid(_))
    }

    fn number(&self, name: &str) -> u64 {
        match self.value(name) {
            Value::Size(number) | Value::Count(number) => *number,
            other => unreachable!("{name} is a number, not {other:?}"),
        }
    }

    fn duration(&self, name: &str) -> Duration {
        match self.value(name) {
            Value::Duration(duration) => *duration,
            other => unreachable!("{name} is a duration, not {other:?}"),
        }
    }
}

fn as_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn as_u32(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn as_ms(duration: Duration) -> u32 {
    u32::try_from(duration.as_millis()).unwrap_or(u32::MAX)
}
