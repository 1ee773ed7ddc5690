//! The table of configuration keys.

use turno_proto::model::limits;

use super::kind::ValueKind;

/// One thing that can be set.
#[derive(Debug, PartialEq)]
pub struct Key {
    /// Its name in a file, with dots between tables.
    pub name: &'static str,
    /// The kind of its value.
    pub kind: ValueKind,
    /// The default value.
    pub default: Preset,
    /// Its effect, in one line.
    pub doc: &'static str,
}

/// A key's built-in value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// As it would be written.
    Text(&'static str),
    /// An empty list.
    Empty,
    /// Nothing at all.
    Nothing,
    /// The machine's name.
    HostName,
    /// `turno` inside the user's data directory.
    DataDirectory,
    /// Half of the memory this process may use.
    HalfOfMemory,
}

impl Key {
    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("TURNO_{}", self.name.replace('.', "__").replace('-', "_").to_uppercase())
    }
}

/// The key of that name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

const SIZE_MAX: u64 = 1 << 30;
const COUNT_MAX: u64 = u32::MAX as u64;
const DAY_MS: u64 = 86_400_000;

/// Every key, in the order in which they are shown.
pub static KEYS: &[Key] = &[
    Key { name: "name", kind: ValueKind::Text, default: Preset::HostName, doc: "name of the broker" },
    Key {
        name: "data",
        kind: ValueKind::Path,
        default: Preset::DataDirectory,
        doc: "data directory with the store and the Unix socket",
    },
    Key {
        name: "persistence",
        kind: ValueKind::Choice(&["disk", "memory"]),
        default: Preset::Text("disk"),
        doc: "where messages are stored; memory: nothing is written to disk, and there is no Unix socket",
    },
    Key {
        name: "url",
        kind: ValueKind::Urls,
        default: Preset::Empty,
        doc: "brokers that commands connect to, in order of preference",
    },
    Key {
        name: "brokers",
        kind: ValueKind::Urls,
        default: Preset::Empty,
        doc: "brokers announced to clients and workers, in order of preference",
    },
    Key {
        name: "listen.native",
        kind: ValueKind::Listen,
        default: Preset::Text("127.0.0.1:7460"),
        doc: "addresses of the native listener; port 0 selects a free port; none: Unix socket only",
    },
    Key {
        name: "listen.foreman",
        kind: ValueKind::Listen,
        default: Preset::Text("127.0.0.1:5429"),
        doc: "addresses of the job worker listener; port 0 selects a free port, as does the default if it is in \
                 use; none: no job worker can connect",
    },
    Key {
        name: "listen.zmq",
        kind: ValueKind::Listen,
        default: Preset::Text("127.0.0.1:7461"),
        doc: "addresses of the ZeroMQ listener; port 0 selects a free port, as does the default if it is in use; none: \
              only the endpoints in [[zmq.endpoint]]",
    },
    Key {
        name: "zmq.queue",
        kind: ValueKind::Queue,
        default: Preset::Text("zmq"),
        doc: "queue of plain ZeroMQ sockets at listen.zmq",
    },
    Key {
        name: "listen.lmq",
        kind: ValueKind::Listen,
        default: Preset::Text("127.0.0.1:6714"),
        doc: "addresses of the listener for LMQ programs; port 0 selects a free port, as does the default if it is in use; \
              none: only endpoints in [[zmq.endpoint]] with role = \"lmq\"",
    },
    Key {
        name: "lmq.queue",
        kind: ValueKind::Queue,
        default: Preset::Text("lmq"),
        doc: "queue of LMQ programs at listen.lmq",
    },
    Key {
        name: "link.to",
        kind: ValueKind::Urls,
        default: Preset::Empty,
        doc: "brokers to link with; one end of a link is enough",
    },
    Key {
        name: "link.secret",
        kind: ValueKind::Secret,
        default: Preset::Nothing,
        doc: "shared secret of linked brokers; without one, only brokers on the same machine may link",
    },
    Key {
        name: "link.secret-file",
        kind: ValueKind::Path,
        default: Preset::Nothing,
        doc: "file with the secret, instead of link.secret",
    },
    Key {
        name: "link.order",
        kind: ValueKind::Names,
        default: Preset::Empty,
        doc: "broker names: the first reachable one is home to exclusive queues; must be the same on all brokers",
    },
    Key {
        name: "ring.sid",
        kind: ValueKind::Sid,
        default: Preset::Nothing,
        doc: "server id in the ring; sets the defaults of name, data, listeners and ring.port; auto: a free sid; \
                 none: not in a ring",
    },
    Key {
        name: "ring.next",
        kind: ValueKind::Member,
        default: Preset::Nothing,
        doc: "member to join the ring at, SID@HOST[:PORT]; none: start a new ring",
    },
    Key {
        name: "ring.wait",
        kind: ValueKind::Switch,
        default: Preset::Text("false"),
        doc: "whether to retry every second if ring.next cannot be joined at start; otherwise the broker exits",
    },
    Key {
        name: "ring.port",
        kind: ValueKind::Count { min: 0, max: u16::MAX as u64 },
        default: Preset::Nothing,
        doc: "loopback port for other members; default 8000 plus the sid; 0 selects a free port",
    },
    Key {
        name: "ring.listen",
        kind: ValueKind::Address,
        default: Preset::Nothing,
        doc: "address for other members, instead of ring.port; requires a secret beyond this machine",
    },
    Key {
        name: "ring.advertise",
        kind: ValueKind::Host,
        default: Preset::Nothing,
        doc: "host announced to other members, if it differs from ring.listen",
    },
    Key {
        name: "ring.secret",
        kind: ValueKind::Secret,
        default: Preset::Nothing,
        doc: "shared secret of all members; without one, only brokers on the same machine may form a ring",
    },
    Key {
        name: "ring.secret-file",
        kind: ValueKind::Path,
        default: Preset::Nothing,
        doc: "file with the secret, instead of ring.secret",
    },
    Key {
        name: "ring.sorted",
        kind: ValueKind::Switch,
        default: Preset::Text("false"),
        doc: "whether members are ordered by sid",
    },
    Key {
        name: "ring.fast",
        kind: ValueKind::Switch,
        default: Preset::Text("false"),
        doc: "whether to give up a lost member within one second; for reliable networks",
    },
    Key {
        name: "ring.links",
        kind: ValueKind::Switch,
        default: Preset::Text("false"),
        doc: "whether to link ring neighbours too, to share workers",
    },
    Key {
        name: "routers",
        kind: ValueKind::Count { min: 1, max: limits::ROUTERS_MAX as u64 },
        default: Preset::Text("1"),
        doc: "network threads; 1 shares the engine's thread",
    },
    Key {
        name: "limits.message",
        kind: ValueKind::Size { min: limits::GREETING_FRAME_BYTES_MAX as u64, max: SIZE_MAX },
        default: Preset::Text("16MiB"),
        doc: "maximum message size including headers; larger messages are refused",
    },
    Key {
        name: "limits.connections",
        kind: ValueKind::Count { min: 1, max: COUNT_MAX },
        default: Preset::Text("10_000"),
        doc: "maximum number of connections; more are refused",
    },
    Key {
        name: "limits.queues",
        kind: ValueKind::Count { min: 1, max: COUNT_MAX },
        default: Preset::Text("100_000"),
        doc: "maximum number of queues; more are refused",
    },
    Key {
        name: "limits.in-flight",
        kind: ValueKind::Count { min: 1, max: COUNT_MAX },
        default: Preset::Text("100_000"),
        doc: "maximum unanswered requests per connection; more are refused",
    },
    Key {
        name: "limits.memory",
        kind: ValueKind::Size { min: 1 << 20, max: u64::MAX },
        default: Preset::HalfOfMemory,
        doc: "memory for messages, jobs, events and buffers; beyond it, new messages are refused, and a backlog on disk is read back one message at a time",
    },
    Key {
        name: "limits.dead",
        kind: ValueKind::Count { min: 0, max: COUNT_MAX },
        default: Preset::Text("10_000"),
        doc: "dead letters per queue above which the broker warns; none is ever deleted automatically",
    },
    Key {
        name: "heartbeat",
        kind: ValueKind::Duration { min_ms: limits::HEARTBEAT_MS_MIN as u64, max_ms: limits::HEARTBEAT_MS_MAX as u64 },
        default: Preset::Text("5s"),
        doc: "heartbeat interval; a silent peer is disconnected after three",
    },
    Key {
        name: "request.deadline",
        kind: ValueKind::Duration { min_ms: 1, max_ms: limits::REQUEST_DEADLINE_MS_MAX as u64 },
        default: Preset::Text("30s"),
        doc: "deadline of requests that set none",
    },
    Key {
        name: "queue.defaults.lease",
        kind: ValueKind::OptionalDuration,
        default: Preset::Text("none"),
        doc: "how long a worker may hold a delivery without extending it; none: while it is connected",
    },
    Key {
        name: "queue.defaults.policy",
        kind: ValueKind::Choice(&["lru", "fill"]),
        default: Preset::Text("lru"),
        doc: "worker selection: lru spreads the load; fill prefers the earliest workers",
    },
    Key {
        name: "queue.defaults.drop-after",
        kind: ValueKind::Count { min: 0, max: limits::DROP_AFTER_MAX as u64 },
        default: Preset::Text("2"),
        doc: "expired deliveries in a row after which a worker is dropped from the queue; 0: never",
    },
    Key {
        name: "queue.defaults.retry-delay",
        kind: ValueKind::Duration { min_ms: 0, max_ms: limits::RETRY_DELAY_MS_MAX },
        default: Preset::Text("1s"),
        doc: "wait before a failed send is tried again, doubled with each attempt; 0s: no wait",
    },
    Key {
        name: "queue.defaults.retry-delay-max",
        kind: ValueKind::Duration { min_ms: 0, max_ms: limits::RETRY_DELAY_MS_MAX },
        default: Preset::Text("5m"),
        doc: "the longest of these waits",
    },
    Key {
        name: "jobs.keep-finished",
        kind: ValueKind::OptionalDuration,
        default: Preset::Text("7d"),
        doc: "how long ended jobs are kept; none: until removed",
    },
    Key {
        name: "jobs.worker-grace",
        kind: ValueKind::Duration { min_ms: 0, max_ms: DAY_MS },
        default: Preset::Text("1m"),
        doc: "how long to wait for a lost job worker before its tasks go to another one",
    },
    Key {
        name: "jobs.output-per-task",
        kind: ValueKind::Size { min: 4 << 10, max: SIZE_MAX },
        default: Preset::Text("1MiB"),
        doc: "output kept per task: half from the beginning, half from the end",
    },
    Key {
        name: "jobs.output-total",
        kind: ValueKind::Size { min: 1 << 20, max: u64::MAX },
        default: Preset::Text("1GiB"),
        doc: "output kept of all tasks; beyond it, the oldest is deleted",
    },
    Key {
        name: "jobs.result-total",
        kind: ValueKind::Size { min: 1 << 20, max: u64::MAX },
        default: Preset::Text("4GiB"),
        doc: "total size of files returned by tasks; beyond it, they are refused and their tasks fail",
    },
    Key {
        name: "drain.timeout",
        kind: ValueKind::Duration { min_ms: 0, max_ms: DAY_MS },
        default: Preset::Text("30s"),
        doc: "how long to wait for running work at shutdown",
    },
    Key { name: "log.level", kind: ValueKind::LogFilter, default: Preset::Text("info"), doc: "log level" },
    Key {
        name: "log.format",
        kind: ValueKind::Choice(&["auto", "text", "json"]),
        default: Preset::Text("auto"),
        doc: "log format; auto adapts to a terminal, a pipe and the journal",
    },
];
