//! The typed configuration that other modules read.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use turno_engine::{Policy, RetryDelay};
use turno_proto::model::Limits;

use crate::settings::{self as broker, ArchiveSettings, IfTaken, Links, QueueDefaults};

use super::ring::RingKeys;
use super::value::Value;
use super::zmq;
use super::{Config, KEYS, Origin, SOCKET_NAME};

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Chosen by the destination of the log.
    Auto,
    /// Text.
    Text,
    /// One JSON object a line.
    Json,
}

/// Every setting: what a broker is told, and what the command line wants to know beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct AllSettings {
    /// The broker's, without its place in a ring and without secrets that are in files.
    pub broker: broker::Settings,
    /// Its directory, also if nothing is written anywhere.
    pub data: PathBuf,
    /// The broker that commands connect to.
    pub url: Vec<String>,
    /// A file that has the secret of links.
    pub link_secret_file: Option<PathBuf>,
    /// Its place in a ring.
    pub ring: RingKeys,
    /// Which log lines are written.
    pub log_level: String,
    /// The format of log lines.
    pub log_format: LogFormat,
}

impl AllSettings {
    pub(super) fn of(config: &Config) -> Self {
        let data = config.path("data");
        Self {
            broker: broker_of(config, &data),
            data,
            url: config.list("url"),
            link_secret_file: match config.value("link.secret-file") {
                Value::Path(path) => Some(path.clone()),
                _ => None,
            },
            ring: RingKeys::of(config),
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

fn broker_of(config: &Config, data: &Path) -> broker::Settings {
    broker::Settings {
        name: config.text("name"),
        listen: config.listen("listen.native"),
        foreman: config.listen("listen.foreman"),
        foreman_if_taken: match config.is_default("listen.foreman") || config.follows_sid("listen.foreman") {
            true => IfTaken::FreePort,
            false => IfTaken::Fail,
        },
        zmq: zmq::all(config),
        data: (config.text("persistence") != "memory").then(|| data.to_owned()),
        brokers: config.list("brokers"),
        heartbeat_ms: as_ms(config.duration("heartbeat")),
        drain_timeout: config.duration("drain.timeout"),
        routers: as_usize(config.number("routers")),
        limits: Limits {
            frame_bytes_max: as_usize(config.number("limits.message")),
            connections_max: as_usize(config.number("limits.connections")),
            queues_max: as_usize(config.number("limits.queues")),
            in_flight_max: as_u32(config.number("limits.in-flight")),
            memory_bytes_max: config.number("limits.memory"),
            dead_max: as_usize(config.number("limits.dead")),
            request_deadline_ms: as_ms(config.duration("request.deadline")),
            ..Limits::default()
        },
        queue_defaults: QueueDefaults {
            lease: config.optional_duration("queue.defaults.lease"),
            policy: match config.text("queue.defaults.policy").as_str() {
                "fill" => Policy::Fill,
                _ => Policy::LeastRecentlyUsed,
            },
            drop_after: u16::try_from(config.number("queue.defaults.drop-after")).unwrap_or(u16::MAX),
            retry_delay: RetryDelay {
                first_ms: u64::from(as_ms(config.duration("queue.defaults.retry-delay"))),
                most_ms: u64::from(as_ms(config.duration("queue.defaults.retry-delay-max"))),
            },
        },
        archive: ArchiveSettings {
            output_per_task: config.number("jobs.output-per-task"),
            output_total: config.number("jobs.output-total"),
            result_total: config.number("jobs.result-total"),
        },
        keep_finished: config.optional_duration("jobs.keep-finished"),
        worker_grace: config.duration("jobs.worker-grace"),
        links: Links {
            to: config.list("link.to"),
            secret: match config.value("link.secret") {
                Value::Secret(secret) => Some(secret.clone()),
                _ => None,
            },
            order: config.list("link.order"),
        },
        ring: None,
    }
}

/// A key's kind fixes the variant of its value, so a mismatch is a mistake in the table of keys.
impl Config {
    pub(super) fn text(&self, name: &str) -> String {
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

    pub(super) fn listen(&self, name: &str) -> Vec<SocketAddr> {
        match self.value(name) {
            Value::Listen(addresses) => addresses.clone(),
            other => unreachable!("{name} is a list of addresses, not {other:?}"),
        }
    }

    /// The origin of its value.
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

    fn optional_duration(&self, name: &str) -> Option<Duration> {
        match self.value(name) {
            Value::Duration(duration) => Some(*duration),
            _ => None,
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
