//! Error codes, as a closed table. A row has its number on the wire, its name, the exit status of the command line, and
//! the text of `turno explain CODE`.

use std::fmt;
use std::str::FromStr;

/// The texts about a code, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeText {
    /// The event, in one line.
    pub what: &'static str,
    /// The usual cause.
    pub why: &'static str,
    /// The advice to the user.
    pub fix: &'static str,
}

macro_rules! codes {
    ($( $variant:ident = $number:literal, $name:literal, exit $exit:literal, $what:literal, $why:literal, $fix:literal; )+) => {
        /// A stated outcome. Numbers are for ever: a code that goes out of use keeps its number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Code {
            $( #[doc = $what] $variant, )+
        }

        impl Code {
            /// Every code, by number.
            pub const ALL: &[Self] = &[ $( Self::$variant, )+ ];

            /// The number on the wire.
            pub const fn number(self) -> u32 {
                match self { $( Self::$variant => $number, )+ }
            }

            /// The name that users and programs read.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// The exit status of a command that ends with it.
            pub const fn exit(self) -> u8 {
                match self { $( Self::$variant => $exit, )+ }
            }

            /// The texts for people: what, why and fix.
            pub const fn text(self) -> CodeText {
                match self { $( Self::$variant => CodeText { what: $what, why: $why, fix: $fix }, )+ }
            }
        }
    };
}

codes! {
    // The wire.
    BadMagic = 1, "bad_magic", exit 1,
        "the peer does not speak the Turno protocol",
        "every frame starts with the bytes 47 C0, and these did not",
        "check the address and port: the native listener is on 7460 by default";
    UnknownType = 2, "unknown_type", exit 1,
        "unknown frame type",
        "the peer uses a newer protocol version, or the stream is damaged",
        "use the same version on both sides (`turno version`)";
    BadFrame = 3, "bad_frame", exit 1,
        "a frame is too short for its flags",
        "a fixed field or the header block extends past the end of the frame",
        "fix the program that wrote the frame; the protocol reference lists every layout";
    FrameTooLarge = 4, "frame_too_large", exit 1,
        "a frame exceeds the broker's size limit",
        "CONFIG states the limit (16 MiB by default); nothing was read or stored",
        "send a smaller message, or raise `limits.message` in the broker's configuration";
    ExpectedConnect = 5, "expected_connect", exit 1,
        "the first frame was not CONNECT",
        "a connection starts with CONNECT; the broker answers no other frame before it",
        "send CONNECT first; the protocol reference describes the handshake";
    VersionMismatch = 6, "version_mismatch", exit 1,
        "unsupported protocol version",
        "CONNECT asked for a version other than 1, the only version this broker supports",
        "use a client of the same major version as the broker";
    GreetingTimeout = 7, "greeting_timeout", exit 5,
        "the handshake timed out",
        "CONNECT must arrive within 5 s, or sooner when many connections wait for their handshake",
        "send CONNECT immediately after connecting";
    TooManyConnections = 8, "too_many_connections", exit 5,
        "the broker has reached its connection limit",
        "`limits.connections` is reached",
        "close idle connections, or raise `limits.connections`";
    PeerSilent = 9, "peer_silent", exit 5,
        "the peer missed its heartbeats",
        "nothing arrived for three heartbeat intervals; its deliveries went to other workers",
        "check the network between the two, or request a longer heartbeat in CONNECT";
    SlowReader = 10, "slow_reader", exit 1,
        "the peer reads too slowly",
        "too many bytes were waiting for it, or it read nothing for too long; its deliveries went to other workers",
        "read faster, request less at a time, or use fewer slots";
    WrongDirection = 11, "wrong_direction", exit 1,
        "a client or worker sent a frame that only a broker may send",
        "DELIVER, CONFIG, STORED and similar frames travel from the broker to its peers",
        "fix the program that wrote the frame; the protocol reference lists the direction of each frame";
    BadBody = 12, "bad_body", exit 1,
        "the map in a control frame is invalid",
        "it is not a MessagePack map, a key is missing, or a value has the wrong type",
        "fix the program that wrote the frame; the protocol reference lists the keys";

    // Invalid requests.
    BadName = 20, "bad_name", exit 2,
        "invalid queue name",
        "a name has 1 to 255 bytes of UTF-8, no white space, no control characters, no * or >, and no empty segment",
        "choose a name like `emails` or `billing.invoices`";
    UnknownHandle = 21, "unknown_handle", exit 1,
        "a frame uses a queue handle that was never opened",
        "OPEN assigns a handle to a queue; handles are valid on one connection only",
        "send OPEN first, on the same connection";
    TooManyHandles = 22, "too_many_handles", exit 1,
        "queue handle out of range",
        "a handle is below 65,536 and at most 255 above the highest handle opened so far",
        "number handles from 0 and reuse them: OPEN with a handle in use assigns it to another queue";
    NotRegistered = 23, "not_registered", exit 1,
        "the connection is not registered as a worker",
        "CONSUME, RESIZE and DEREGISTER require a REGISTER first",
        "send REGISTER first";
    BadSlots = 24, "bad_slots", exit 2,
        "invalid number of slots",
        "slots must be 0 to 1,000,000, or unlimited",
        "choose a number of slots in that range; 0 takes no work";
    AlreadyConsuming = 25, "already_consuming", exit 1,
        "the worker already consumes this queue, or uses this handle for another one",
        "a worker consumes a queue once, with one handle",
        "send CONSUME once per queue, and OPEN other queues with other handles";
    TooManyQueues = 26, "too_many_queues", exit 1,
        "the broker has reached its queue limit",
        "`limits.queues` is reached",
        "use fewer queues (put ids into the body), or raise `limits.queues`";
    BadOption = 27, "bad_option", exit 2,
        "a message option is out of range",
        "priority is 0 to 9; cost is at least 1; a dedup id has 1 to 64 bytes and applies to sends only; a broadcast takes \
         none of these, and no retries",
        "correct the option";
    Dropped = 32, "dropped", exit 1,
        "the broker removed the worker from the queue",
        "too many deliveries in a row expired at this worker (the queue's `drop-after` setting)",
        "make the worker faster, give it fewer slots, or give callers more time; CONSUME adds it again";
    QueueFull = 37, "queue_full", exit 1,
        "the queue is exclusive to another worker, or already has consumers",
        "an exclusive queue has one consumer, and a queue with consumers cannot become exclusive",
        "wait for it (`turno work --exclusive --standby`), or stop the worker that `turno queue consumers` lists";
    NotRefused = 38, "not_refused", exit 1,
        "no refused CONSUME to notify about",
        "QUEUE_AVAILABLE_NOTIFY is valid once after each QUEUE_FULL",
        "send CONSUME, and QUEUE_AVAILABLE_NOTIFY only after QUEUE_FULL";

    // Outcomes of messages.
    TimedOut = 40, "timed_out", exit 124,
        "the deadline passed before a reply arrived",
        "the queue has no consumer, no worker had a free slot in time, or the worker did not reply in time",
        "`turno queue ls` shows the consumers of each queue; start a worker (`turno work QUEUE -- PROGRAM`), or raise --timeout";
    NoResponder = 41, "no_responder", exit 6,
        "the queue has no consumer",
        "the caller asked not to wait for a worker (--fail-fast)",
        "start a worker: `turno work QUEUE -- PROGRAM`, or omit --fail-fast to wait for one";
    Failed = 42, "failed", exit 1,
        "the worker reported a failure",
        "its program ended with an error; the message contains its error output",
        "read the worker's message; `--retries N` tries other workers";
    WorkerLost = 43, "worker_lost", exit 1,
        "the worker was lost while it held the message",
        "its connection closed or timed out, and no attempts were left",
        "check the worker; `--retries N` lets another worker take over";
    Cancelled = 44, "cancelled", exit 1,
        "the message was cancelled",
        "the caller or `turno message cancel` cancelled it",
        "none needed; send it again if it is still wanted";
    Closing = 45, "closing", exit 5,
        "the broker is draining or shutting down and accepts no new work",
        "running work may finish; waiting requests are returned to their callers",
        "use another broker, or wait until this one is back (`turno resume` ends a drain)";
    OverMemory = 46, "over_memory", exit 1,
        "the broker has reached its memory limit",
        "messages arrive faster than workers take them, or peers do not read their data; the broker refused this \
         one before losing anything",
        "`turno status` shows the memory by use; add workers, send more slowly, or raise `limits.memory`";
    TooManyInFlight = 47, "too_many_in_flight", exit 1,
        "the connection has too many unanswered requests",
        "`limits.in-flight` is reached",
        "wait for answers before sending more requests";
    LeaseExpired = 48, "lease_expired", exit 1,
        "the delivery's lease expired",
        "the queue sets a lease, and the worker did not extend it in time",
        "send EXTEND while working, or set a longer lease";
    CallerGone = 49, "caller_gone", exit 1,
        "the caller of the request has disconnected",
        "its connection closed, so nobody can receive the reply",
        "none needed; the worker may stop working on it";

    CutShort = 50, "cut_short", exit 5,
        "the broker stopped before the message was settled",
        "it was stopped while a worker held the message, so the work may be done in part",
        "send it again if doing the work twice is harmless";
    OverDisk = 51, "over_disk", exit 1,
        "the broker's disk is full",
        "the disk has no space left, or the store has reached its limit; the broker refused this message before losing anything",
        "let workers catch up, purge queues, or give the data directory more space";
    NoStore = 52, "no_store", exit 1,
        "this broker has no store",
        "it keeps messages in memory only, so its queues cannot be durable",
        "keep the queue volatile, or start the broker without --memory";

    // Queries.
    NotFound = 60, "not_found", exit 4,
        "not found",
        "no queue, worker, message, job or subscriber has this name or id",
        "list them: `turno queue ls`, `turno worker ls`, `turno job ls`, `turno topic subscribers`";
    Ambiguous = 61, "ambiguous", exit 2,
        "several workers have this name",
        "worker names need not be unique; ids are",
        "use the id from `turno worker ls`";
    BadCall = 62, "bad_call", exit 2,
        "the broker rejected the admin call",
        "this broker version does not know the call, or an argument is out of range",
        "use the same version on both sides (`turno version`); the protocol reference lists every call and its limits";

    Other = 63, "other", exit 1,
        "the broker returned an error code that this version does not know",
        "the broker is newer than the client",
        "use the same version on both sides (`turno version`)";

    // Jobs.
    BadJob = 64, "bad_job", exit 2,
        "invalid job",
        "the submission breaks the rule that the error names, or depends on a job that does not exist",
        "correct the submission; `turno job ls` lists the existing jobs";
    TooManyJobs = 65, "too_many_jobs", exit 1,
        "the broker has reached its job limit",
        "finished jobs are kept until they are removed",
        "remove old jobs with `turno job rm`";
    JobEnded = 66, "job_ended", exit 1,
        "the job has already ended",
        "it has nothing left to hold, release or cancel",
        "`turno job show ID` shows how it ended";
    JobNotEnded = 67, "job_not_ended", exit 1,
        "the job has not ended",
        "only a job that has ended can be removed",
        "wait with `turno job wait ID`, or cancel it with `turno job cancel ID`";
    NotYourTask = 68, "not_your_task", exit 1,
        "the task does not run on this worker",
        "it has ended, runs on another worker, or this is an earlier attempt, whose data is discarded",
        "none needed; the worker discards that attempt";
    ArchiveBusy = 69, "archive_busy", exit 1,
        "the archive is overloaded",
        "output, results and uploads arrive faster than the disk writes them; this call stored nothing",
        "repeat the call in a moment";
    ArchiveFull = 70, "archive_full", exit 1,
        "the archive has no room for more task results",
        "`jobs.result-total` is reached, or one task returned more than 1,000 files",
        "remove jobs whose results you have fetched with `turno job rm`, or raise `jobs.result-total`";
    WrongPlace = 71, "wrong_place", exit 1,
        "a file chunk has the wrong offset",
        "chunks must arrive in order; a restarted broker has discarded incomplete files",
        "send the file again from the beginning";
    WrongHash = 72, "wrong_hash", exit 1,
        "an upload does not match its hash",
        "the file changed during the upload, or was damaged in transit; nothing was stored",
        "send it again from the beginning";
    ArchiveDamaged = 73, "archive_damaged", exit 1,
        "stored output, a result or an upload is damaged",
        "the archive contains bytes that Turno did not write: a failing disk, or another program wrote there",
        "run `turno doctor`, run the task again with `turno job retry`, or submit again to replace an upload";

    // Topics.
    BadTopic = 74, "bad_topic", exit 2,
        "invalid topic or filter",
        "it has 1 to 255 bytes of UTF-8, up to 32 dot-separated segments, no white space, no control characters and no empty segment; in a filter, * matches one whole segment and > matches the rest",
        "publish to a topic like `news.sport`; subscribe to `news.*` or `news.>`";
    TooManySubscriptions = 75, "too_many_subscriptions", exit 1,
        "subscription limit reached",
        "a connection may have 10,000 filters; the broker 1,000,000 filters with 4,000,000 segments",
        "use fewer filters, with * and >";

    // Links.
    NoRoom = 76, "no_room", exit 1,
        "the broker at the other end of the link has no free slot",
        "its slots were taken while the message was in transit; no worker has started it, and its own broker has queued it again",
        "none needed: it goes to the next free slot";
    LinkRefused = 77, "link_refused", exit 1,
        "the brokers do not share a link secret",
        "both ends must prove that they know the same secret; without one, only brokers on the same machine may link",
        "set the same `link.secret` on both brokers";
    LinkToItself = 78, "link_to_itself", exit 2,
        "the link address belongs to this broker",
        "a broker cannot link to itself",
        "use the address of another broker, or remove the link";
    AlreadyLinked = 79, "already_linked", exit 1,
        "the two brokers are already linked",
        "one link carries messages in both directions",
        "none needed, or remove one of the two addresses";

    // On this side of the connection.
    CannotConnect = 80, "cannot_connect", exit 5,
        "cannot connect to a broker",
        "nothing listens at the address, the listener is not a Turno broker, or this user may not access its socket",
        "start one with `turno serve`, or set its address with --url";
    ConnectionLost = 81, "connection_lost", exit 5,
        "the connection to the broker was lost before the answer arrived",
        "the broker stopped or the network failed; the request may have been processed, and the send may have been stored",
        "try again if doing the work twice is harmless; a send with a dedup id is repeated automatically";
    BadUsage = 82, "bad_usage", exit 2,
        "invalid command line",
        "a flag or argument is missing, unknown or out of range",
        "`turno help COMMAND` shows the usage";
    BadConfig = 83, "bad_config", exit 78,
        "invalid configuration",
        "a file is missing, unreadable or not TOML, a key is unknown, or a value is out of range",
        "`turno config check` names the location; `turno config show --origin` shows every value";
    InsecureListen = 84, "insecure_listen", exit 78,
        "refusing to listen beyond this machine without authentication",
        "anyone who can reach the address could read and write everything",
        "listen on 127.0.0.1, or add --insecure on a trusted network";
    AddressInUse = 85, "address_in_use", exit 1,
        "address already in use",
        "another program listens on it, most often another broker",
        "stop that program, or choose another address with --listen";
    DataInUse = 86, "data_in_use", exit 1,
        "another broker uses this data directory",
        "a data directory belongs to one broker process at a time",
        "stop the other broker, or choose another directory with --data";
    CannotStart = 87, "cannot_start", exit 1,
        "cannot start the worker's program",
        "it does not exist, or is not executable",
        "check the path after `--`";
    Io = 88, "io", exit 1,
        "an input or output operation failed on this machine",
        "the operating system reported the error; the message names the file, pipe or socket",
        "permission denied: use an account with access; no space left: free some; no such file: check the path";
    NotConfirmed = 89, "not_confirmed", exit 2,
        "confirmation required",
        "the command destroys data, and there is no terminal to ask at",
        "add --yes";
    OutputTooLarge = 90, "output_too_large", exit 1,
        "the worker's program wrote more than fits into a reply",
        "a reply is one frame; the broker's frame size is the limit",
        "write less, or store the result and reply with its location";
    Internal = 91, "internal", exit 1,
        "internal error",
        "this is a bug in Turno",
        "restart it, and report the panic from the log";
    DataDamaged = 92, "data_damaged", exit 1,
        "the store in the data directory is damaged",
        "it contains bytes that Turno did not write: a failing disk, or another program wrote there",
        "change nothing, run `turno doctor`, and restore the directory from a backup";
    DataNewer = 93, "data_newer", exit 1,
        "a newer version of Turno wrote the store in the data directory",
        "this version cannot read its format",
        "use the newer version, or another directory with --data";
    StoreFailed = 94, "store_failed", exit 1,
        "the broker stopped because its store failed",
        "unconfirmed writes may or may not be on disk, so it cannot continue; confirmed writes are on disk",
        "check the disk and the log, then start the broker again: it recovers from the disk";
    Busy = 95, "busy", exit 1,
        "the worker has too many broadcasts waiting",
        "`turno work` runs as many broadcasts at a time as it has slots and queues 1,000 more",
        "wait for the answers before the next broadcast, or give the worker more slots";

    // Links, continued.
    TooManyLinks = 96, "too_many_links", exit 1,
        "the broker has reached its link limit",
        "a broker may have 32 links, connected or not",
        "remove a link, or link through another broker";
    LinkDown = 97, "link_down", exit 1,
        "the broker at the other end of the link does not answer",
        "it is not running, or is unreachable from here",
        "start it, or check the address; the link retries every second";

    // The ring.
    RingRefused = 98, "ring_refused", exit 1,
        "the brokers do not share a ring secret",
        "both ends must prove that they know the same secret; without one, only brokers on the same machine may form a ring",
        "set the same `ring.secret` on all brokers of the ring";
    DuplicateSid = 99, "duplicate_sid", exit 1,
        "another broker in the ring has the same sid",
        "sids are unique in a ring; the broker that joined first keeps its sid",
        "start this one with another --sid, or with --sid auto";
    Fenced = 100, "fenced", exit 1,
        "a newer incarnation of this broker is in the ring",
        "another broker with the same sid started after this one, so this one may no longer act under that sid",
        "stop this broker, and find out why two were started with one sid";
    NotInRing = 101, "not_in_ring", exit 1,
        "the broker is not in a ring",
        "it was started without --sid, has left, or is leaving",
        "join with `turno ring join`, or start it with --sid";
    RingBusy = 102, "ring_busy", exit 1,
        "the ring is changing at this position",
        "the broker is joining, leaving or healing the ring",
        "none needed: the request is retried in a moment";
    RingWhole = 103, "ring_whole", exit 1,
        "the ring has closed without this broker",
        "the other members gave it up while it was unreachable",
        "none needed: it joins again automatically";
    Replaced = 104, "replaced", exit 1,
        "another broker has taken this position in the ring",
        "the members gave this broker up while it was unreachable, or its ring merged into another one",
        "none needed: it joins again automatically";
    Elsewhere = 105, "elsewhere", exit 1,
        "the broker belongs at another position in the ring",
        "the ring keeps its members ordered by sid (`ring.sorted`)",
        "none needed: the joining broker is redirected";
    BadSequence = 106, "bad_sequence", exit 1,
        "publications arrived out of order",
        "a member accepts only the next publication of each origin",
        "none needed: the neighbours reconnect and repeat the missing publications; report it if it happens often";
    RingFull = 107, "ring_full", exit 1,
        "the ring is full",
        "a ring has at most 128 members, and no free sid is left",
        "use a second ring, or links";
    RingDown = 108, "ring_down", exit 1,
        "no member of the ring answers at this address",
        "the other broker is not running, or is unreachable from here",
        "start it, or check the address; with --ring-wait a broker retries every second";
    NotLocal = 109, "not_local", exit 1,
        "this command is accepted only from the broker's own machine",
        "a shutdown stops every broker in the ring, so it must come from a machine of the ring",
        "run it on the broker's machine, over its Unix socket or loopback";
    WrongSid = 110, "wrong_sid", exit 1,
        "the broker at this address has a different sid",
        "SID@HOST names a member by its sid as well, so that no broker joins the wrong ring",
        "check both: `turno ring show` on that broker shows its sid and address";

    // Jobs again: the numbers next to the others are taken.
    KeyTaken = 111, "key_taken", exit 1,
        "another job has this key",
        "a key identifies one submission: the same submission again returns that job, and a different one is refused",
        "choose another --key, or remove that job with `turno job rm`";

    // ZeroMQ peers.
    NotZmtp = 112, "not_zmtp", exit 1,
        "the peer did not begin with a ZMTP greeting",
        "a ZeroMQ connection begins with the byte FF, eight others and 7F; this connection carries another protocol",
        "check that address and port are those of a ZeroMQ endpoint";
    OldZmtp = 113, "old_zmtp", exit 1,
        "the peer speaks ZMTP 1 or 2",
        "this broker speaks ZMTP 3.1 and 3.0; libzmq before 4.0 speaks older versions",
        "use libzmq 4.0 or later at the peer";
    WrongMechanism = 114, "wrong_mechanism", exit 1,
        "peer and endpoint use different ZeroMQ security mechanisms, or both act as its server",
        "both ends must use the same mechanism (NULL, PLAIN or CURVE), and one of them must be the server",
        "configure the same mechanism at the peer and at the endpoint";
    BadZmtp = 115, "bad_zmtp", exit 1,
        "a ZeroMQ peer sent an invalid frame or command",
        "it cannot be read, is too long (a command has at most 4 KiB), or is not allowed at that point of the handshake",
        "fix the program at the other end; 37/ZMTP specifies every layout";
    TooManyParts = 116, "too_many_parts", exit 1,
        "a message has too many parts",
        "a message has at most 1,024 parts, beside the envelope of a ZeroMQ message",
        "send fewer parts, or join some of them";
    WrongSocketType = 117, "wrong_socket_type", exit 1,
        "the ZeroMQ socket type of the peer does not fit the endpoint or its messages",
        "each type talks to few others (REQ to REP and ROUTER, PUSH to PULL, SUB to PUB and XPUB) and sends only some messages",
        "use another socket type at the peer, or another role for the endpoint";
    NotAuthenticated = 118, "not_authenticated", exit 1,
        "the peer's name and password, or its key, are not accepted",
        "the endpoint lists the users or keys that may connect",
        "add the user or key to the endpoint, or correct it at the peer";
    RefusedByPeer = 119, "refused_by_peer", exit 1,
        "the peer refused the ZeroMQ connection with ERROR",
        "it does not accept the name and password, the key or the socket type of this end",
        "look at the log of the peer";
    BadCurve = 120, "bad_curve", exit 1,
        "a CURVE box cannot be opened, or a nonce was used again",
        "peer and broker have different server keys, or bytes were damaged or replayed",
        "give the client the public key of the server";
}

impl Code {
    /// The code with that number.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.number() == number)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Code {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.iter().copied().find(|code| code.name() == text).ok_or(())
    }
}

#[cfg(test)]
mod tests;
