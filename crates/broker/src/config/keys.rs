//! The table of keys: everything that can be set.

use turno_proto::model::limits;

use super::kind::Kind;

/// One thing that can be set.
#[derive(Debug, PartialEq)]
pub struct Key {
    /// Its name in a file, with dots between tables.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What holds if nobody says otherwise.
    pub default: Preset,
    /// What it does, in one line.
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
    Key {
        name: "name",
        kind: Kind::Text,
        default: Preset::HostName,
        doc: "the broker's name, for people and for other brokers",
    },
    Key {
        name: "data",
        kind: Kind::Path,
        default: Preset::DataDirectory,
        doc: "the broker's own directory; its store and its Unix socket are in it",
    },
    Key {
        name: "persistence",
        kind: Kind::Choice(&["disk", "memory"]),
        default: Preset::Text("disk"),
        doc: "where sent messages are kept; memory: nothing is written anywhere, and there is no Unix socket",
    },
    Key {
        name: "url",
        kind: Kind::Urls,
        default: Preset::Empty,
        doc: "brokers that commands talk to, in order of preference",
    },
    Key {
        name: "brokers",
        kind: Kind::Urls,
        default: Preset::Empty,
        doc: "brokers that clients and workers are told of, in order of preference",
    },
    Key {
        name: "listen.native",
        kind: Kind::Listen,
        default: Preset::Text("127.0.0.1:7460"),
        doc: "addresses of the native listener; port 0 takes a free one; none: clients use the Unix socket",
    },
    Key {
        name: "listen.foreman",
        kind: Kind::Listen,
        default: Preset::Text("127.0.0.1:5429"),
        doc: "addresses of the listener for job workers; port 0 takes a free one, and so does the default if it is taken; none: no \
              job worker can connect",
    },
    Key {
        name: "link.to",
        kind: Kind::Urls,
        default: Preset::Empty,
        doc: "brokers to link with; a link carries both ways, so that one end is enough",
    },
    Key {
        name: "link.secret",
        kind: Kind::Secret,
        default: Preset::Nothing,
        doc: "what brokers that link must both know; without one only brokers on the same machine may link",
    },
    Key {
        name: "link.secret-file",
        kind: Kind::Path,
        default: Preset::Nothing,
        doc: "a file with that secret, in place of link.secret",
    },
    Key {
        name: "link.order",
        kind: Kind::Names,
        default: Preset::Empty,
        doc: "names of brokers: the first that can be reached is home to exclusive queues; the same at all brokers",
    },
    Key {
        name: "ring.sid",
        kind: Kind::Sid,
        default: Preset::Nothing,
        doc: "the broker's number in its ring; name, data, listeners and ring.port then follow from it unless they are set; auto: \
              a free one; none: in no ring",
    },
    Key {
        name: "ring.next",
        kind: Kind::Member,
        default: Preset::Nothing,
        doc: "the member to join the ring at, SID@HOST[:PORT]; none: this broker is the first",
    },
    Key {
        name: "ring.wait",
        kind: Kind::Switch,
        default: Preset::Text("false"),
        doc: "whether to try each second, if ring.next cannot be joined at the start; otherwise the broker ends",
    },
    Key {
        name: "ring.port",
        kind: Kind::Count { min: 0, max: u16::MAX as u64 },
        default: Preset::Nothing,
        doc: "port on loopback where other members reach this one, 8000 and the sid unless it is set; 0 takes a free one",
    },
    Key {
        name: "ring.listen",
        kind: Kind::Address,
        default: Preset::Nothing,
        doc: "address where other members reach this one, in place of ring.port; beyond this machine it needs a secret",
    },
    Key {
        name: "ring.advertise",
        kind: Kind::Host,
        default: Preset::Nothing,
        doc: "the host that other members are told, where it is another than that of ring.listen",
    },
    Key {
        name: "ring.secret",
        kind: Kind::Secret,
        default: Preset::Nothing,
        doc: "what all members must know; without one only brokers on the same machine form a ring",
    },
    Key {
        name: "ring.secret-file",
        kind: Kind::Path,
        default: Preset::Nothing,
        doc: "a file with that secret, in place of ring.secret",
    },
    Key {
        name: "ring.sorted",
        kind: Kind::Switch,
        default: Preset::Text("false"),
        doc: "whether members stand in order of their sids, wherever they join",
    },
    Key {
        name: "ring.fast",
        kind: Kind::Switch,
        default: Preset::Text("false"),
        doc: "whether a lost member is given up within a second; for a network that does not fail for moments",
    },
    Key {
        name: "ring.links",
        kind: Kind::Switch,
        default: Preset::Text("false"),
        doc: "whether neighbours in the ring are linked too, so that they share their workers",
    },
    Key {
        name: "routers",
        kind: Kind::Count { min: 1, max: limits::ROUTERS_MAX as u64 },
        default: Preset::Text("1"),
        doc: "threads that read, parse and write; 1 shares the engine's own",
    },
    Key {
        name: "limits.message",
        kind: Kind::Size { min: limits::GREETING_FRAME_BYTES_MAX as u64, max: SIZE_MAX },
        default: Preset::Text("16MiB"),
        doc: "longest message with its header; longer ones are refused",
    },
    Key {
        name: "limits.connections",
        kind: Kind::Count { min: 1, max: COUNT_MAX },
        default: Preset::Text("10_000"),
        doc: "connections at a time; more are refused",
    },
    Key {
        name: "limits.queues",
        kind: Kind::Count { min: 1, max: COUNT_MAX },
        default: Preset::Text("100_000"),
        doc: "queues at a time; more are refused",
    },
    Key {
        name: "limits.in-flight",
        kind: Kind::Count { min: 1, max: COUNT_MAX },
        default: Preset::Text("100_000"),
        doc: "unanswered requests of one connection; more are refused",
    },
    Key {
        name: "limits.memory",
        kind: Kind::Size { min: 1 << 20, max: u64::MAX },
        default: Preset::HalfOfMemory,
        doc: "bytes held in memory: messages, jobs, events, in- and out-buffers; beyond it new ones are refused, and a backlog on disk is read back one message at a time",
    },
    Key {
        name: "limits.dead",
        kind: Kind::Count { min: 0, max: COUNT_MAX },
        default: Preset::Text("10_000"),
        doc: "dead letters of a queue from which on the broker warns; none is ever deleted for others",
    },
    Key {
        name: "heartbeat",
        kind: Kind::Duration { min_ms: limits::HEARTBEAT_MS_MIN as u64, max_ms: limits::HEARTBEAT_MS_MAX as u64 },
        default: Preset::Text("5s"),
        doc: "a peer is given up after three of these in silence",
    },
    Key {
        name: "request.deadline",
        kind: Kind::Duration { min_ms: 1, max_ms: limits::REQUEST_DEADLINE_MS_MAX as u64 },
        default: Preset::Text("30s"),
        doc: "how long a request that names no deadline may take",
    },
    Key {
        name: "queue.defaults.lease",
        kind: Kind::OptionalDuration,
        default: Preset::Text("none"),
        doc: "how long a worker may hold a delivery without extending it; none: as long as it is connected",
    },
    Key {
        name: "queue.defaults.policy",
        kind: Kind::Choice(&["lru", "fill"]),
        default: Preset::Text("lru"),
        doc: "whose turn it is: lru spreads, fill keeps late-comers idle",
    },
    Key {
        name: "queue.defaults.drop-after",
        kind: Kind::Count { min: 0, max: limits::DROP_AFTER_MAX as u64 },
        default: Preset::Text("2"),
        doc: "deliveries in a row that expire at a worker until it is dropped from their queue; 0: never",
    },
    Key {
        name: "jobs.keep-finished",
        kind: Kind::OptionalDuration,
        default: Preset::Text("7d"),
        doc: "how long a job that has ended is known; none: until somebody removes it",
    },
    Key {
        name: "jobs.worker-grace",
        kind: Kind::Duration { min_ms: 0, max_ms: DAY_MS },
        default: Preset::Text("1m"),
        doc: "how long the tasks of a worker that is lost wait for it, before another worker gets them",
    },
    Key {
        name: "jobs.output-per-task",
        kind: Kind::Size { min: 4 << 10, max: SIZE_MAX },
        default: Preset::Text("1MiB"),
        doc: "bytes kept of what one task prints: half from its beginning, half from its end",
    },
    Key {
        name: "jobs.output-total",
        kind: Kind::Size { min: 1 << 20, max: u64::MAX },
        default: Preset::Text("1GiB"),
        doc: "bytes kept of what all tasks print; beyond it the oldest goes",
    },
    Key {
        name: "jobs.result-total",
        kind: Kind::Size { min: 1 << 20, max: u64::MAX },
        default: Preset::Text("4GiB"),
        doc: "bytes of files that tasks bring back; beyond it they are refused, and their tasks fail",
    },
    Key {
        name: "drain.timeout",
        kind: Kind::Duration { min_ms: 0, max_ms: DAY_MS },
        default: Preset::Text("30s"),
        doc: "how long a broker that shuts down waits for what runs",
    },
    Key { name: "log.level", kind: Kind::LogFilter, default: Preset::Text("info"), doc: "which log lines are written" },
    Key {
        name: "log.format",
        kind: Kind::Choice(&["auto", "text", "json"]),
        default: Preset::Text("auto"),
        doc: "how log lines look; auto suits a terminal, a pipe and the journal",
    },
];
