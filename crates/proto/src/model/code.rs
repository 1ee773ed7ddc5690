//! Every outcome that can go wrong, as a closed table. Each has a number on the wire, a word for people and programs, an exit
//! status of the command line, and what `turno explain CODE` says.

use std::fmt;
use std::str::FromStr;

/// What people read about a code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeText {
    /// What happened, in one line.
    pub what: &'static str,
    /// Why it happens.
    pub why: &'static str,
    /// What to do about it.
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

            /// The word users and programs read.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )+ }
            }

            /// The exit status of a command that ends with it.
            pub const fn exit(self) -> u8 {
                match self { $( Self::$variant => $exit, )+ }
            }

            /// What, why and fix.
            pub const fn text(self) -> CodeText {
                match self { $( Self::$variant => CodeText { what: $what, why: $why, fix: $fix }, )+ }
            }
        }
    };
}

codes! {
    // The wire.
    BadMagic = 1, "bad_magic", exit 1,
        "the peer sent bytes that are no Turno frame",
        "every native frame begins with the bytes 47 C0; something else speaks on this connection",
        "check that address and port are those of a native listener (7460 by default)";
    UnknownType = 2, "unknown_type", exit 1,
        "a frame has a type that this version does not know",
        "the peer speaks a newer version, or the stream is damaged",
        "use the same version on both sides (`turno version`)";
    BadFrame = 3, "bad_frame", exit 1,
        "a frame is too short for what its flags announce",
        "a fixed field or the header block runs past the end of the frame",
        "mend the program that wrote the frame; docs/reference/protocol has every layout";
    FrameTooLarge = 4, "frame_too_large", exit 1,
        "a frame is longer than this broker accepts",
        "CONFIG names the limit (16 MiB by default); nothing was read or stored",
        "send less, or raise `limits.message` in the broker's configuration";
    ExpectedConnect = 5, "expected_connect", exit 1,
        "the first frame was not CONNECT",
        "a connection begins with CONNECT; nothing else is answered before it",
        "begin with CONNECT; docs/reference/protocol shows the greeting";
    VersionMismatch = 6, "version_mismatch", exit 1,
        "the peer asks for a protocol version this broker does not speak",
        "CONNECT names the version; this broker speaks version 1",
        "use a client of the same major version";
    GreetingTimeout = 7, "greeting_timeout", exit 5,
        "the greeting was not finished in time",
        "a connection has 5 s to say CONNECT, and gives way when very many wait",
        "send CONNECT at once after connecting";
    TooManyConnections = 8, "too_many_connections", exit 5,
        "the broker has as many connections as it may have",
        "`limits.connections` is reached",
        "close idle connections or raise `limits.connections`";
    PeerSilent = 9, "peer_silent", exit 5,
        "the peer was silent for longer than its liveness time",
        "nothing came for three heartbeats; its deliveries went to others",
        "look at the network between the two, or ask for a longer heartbeat in CONNECT";
    SlowReader = 10, "slow_reader", exit 1,
        "the peer did not read what the broker had for it",
        "too many bytes waited for it, or it took none for too long; its deliveries went to others",
        "read faster, ask for less at a time, or use fewer slots";
    WrongDirection = 11, "wrong_direction", exit 1,
        "a frame that only a broker sends came from a peer",
        "DELIVER, CONFIG, STORED and their kin go from the broker to its peers",
        "mend the program that wrote the frame; docs/reference/protocol names the direction of each";
    BadBody = 12, "bad_body", exit 1,
        "the map inside a control frame cannot be read",
        "it is no MessagePack map, a key is missing, or a value has the wrong type",
        "mend the program that wrote the frame; docs/reference/protocol lists the keys";

    // Asking for what cannot be.
    BadName = 20, "bad_name", exit 2,
        "that is no queue name",
        "a name has 1 to 255 bytes of UTF-8, no white space, no control characters, no * or >, no empty segment",
        "choose a name like `emails` or `billing.invoices`";
    UnknownHandle = 21, "unknown_handle", exit 1,
        "a frame names a queue handle that was never opened",
        "OPEN gives a handle its queue; handles belong to one connection",
        "send OPEN first, on the same connection";
    TooManyHandles = 22, "too_many_handles", exit 1,
        "the connection opens more queues than it may",
        "a handle is a number below 65,536 and at most 255 above the highest one opened before",
        "number handles from 0 on, and reuse them: OPEN with a handle in use gives it another queue";
    NotRegistered = 23, "not_registered", exit 1,
        "the connection is no worker yet",
        "CONSUME, RESIZE and DEREGISTER need a REGISTER before them",
        "send REGISTER first";
    BadSlots = 24, "bad_slots", exit 2,
        "that is no number of slots",
        "slots are a whole number up to 1,000,000, or unlimited",
        "name a number of slots; 0 takes no work";
    AlreadyConsuming = 25, "already_consuming", exit 1,
        "the worker consumes that queue, or with that handle, already",
        "a worker is at most once in a queue's rota, and its deliveries name the handle it consumes with",
        "send CONSUME once a queue, and OPEN with another handle";
    TooManyQueues = 26, "too_many_queues", exit 1,
        "the broker has as many queues as it may have",
        "`limits.queues` is reached",
        "use fewer names (put ids into the body) or raise `limits.queues`";
    BadOption = 27, "bad_option", exit 2,
        "a message option is out of range",
        "priority is 0 to 9, cost is 1 or more, a dedup id has 1 to 64 bytes and is for sends only; a broadcast has none of \
         them, and no retries",
        "mend the option";
    Dropped = 32, "dropped", exit 1,
        "the worker was dropped from the queue",
        "deliveries in a row expired while it had them: as many as the queue's `drop-after` says",
        "make the worker faster, give it fewer slots or its callers more time; it comes back by CONSUME";
    QueueFull = 37, "queue_full", exit 1,
        "another worker has the queue to itself, or consumes it",
        "an exclusive queue has one consumer; a queue that others consume cannot become exclusive",
        "wait for it (`turno work --exclusive --standby`), or stop the worker that `turno queue consumers` names";
    NotRefused = 38, "not_refused", exit 1,
        "there is no refused CONSUME to be told about",
        "QUEUE_AVAILABLE_NOTIFY follows QUEUE_FULL, once",
        "send CONSUME, and QUEUE_AVAILABLE_NOTIFY if the answer is QUEUE_FULL";

    // How messages end.
    TimedOut = 40, "timed_out", exit 124,
        "the deadline passed before there was a reply",
        "nobody consumes the queue, no worker had a free slot in time, or the worker that had the request did not answer in time",
        "`turno queue ls` shows the consumers of each queue; start a worker (`turno work QUEUE -- PROGRAM`), or raise --timeout";
    NoResponder = 41, "no_responder", exit 6,
        "nobody consumes that queue",
        "the caller asked not to wait for a worker to appear",
        "start one: `turno work QUEUE -- PROGRAM`, or leave --fail-fast out and let the request wait";
    Failed = 42, "failed", exit 1,
        "the worker said that it failed",
        "its program ended with an error; the message says what it wrote",
        "read the worker's message; `--retries N` gives other workers a try";
    WorkerLost = 43, "worker_lost", exit 1,
        "the worker was lost while it had the message",
        "its connection ended or fell silent, and no attempt was left",
        "look at the worker; `--retries N` lets another worker take over";
    Cancelled = 44, "cancelled", exit 1,
        "the message was cancelled",
        "somebody asked for that: the caller, or `turno message cancel`",
        "nothing; send it again if it is still wanted";
    Closing = 45, "closing", exit 5,
        "the broker is drained or shutting down and takes no new work",
        "it drains: what runs may finish, what waits is given back",
        "use the next broker of the list, or wait for this one to be back (`turno resume` if it is drained)";
    OverMemory = 46, "over_memory", exit 1,
        "the broker holds as many bytes as it may: messages, jobs, events, in- and out-buffers",
        "work comes in faster than workers take it, or peers leave much unread; refused before anything is lost",
        "`turno status` shows what uses the memory; add workers, send slower, or raise `limits.memory`";
    TooManyInFlight = 47, "too_many_in_flight", exit 1,
        "the connection has as many unanswered requests as it may",
        "`limits.in-flight` is reached",
        "wait for answers before asking more";
    LeaseExpired = 48, "lease_expired", exit 1,
        "the worker held the delivery for longer than its lease",
        "the queue sets a lease and the worker did not extend it in time",
        "send EXTEND while working, or set a longer lease";
    CallerGone = 49, "caller_gone", exit 1,
        "the caller of the request is gone",
        "its connection ended; nobody is there to take the reply",
        "nothing; the worker may stop working on it";

    CutShort = 50, "cut_short", exit 5,
        "the broker ended before the message was done with",
        "it was told to end while a worker had the message, or after one had lost it; what was done of it is unknown",
        "ask again if doing it twice does no harm";
    OverDisk = 51, "over_disk", exit 1,
        "the broker's disk has no room for it",
        "the disk is full, or holds as much as it may; refused before anything is lost",
        "let workers catch up, purge what is not needed, or give the data directory more room";
    NoStore = 52, "no_store", exit 1,
        "this broker keeps nothing on a disk",
        "it holds messages in memory alone, so no queue of it can be durable",
        "leave the queue as it is, or start the broker without --memory";

    // Asking about things.
    NotFound = 60, "not_found", exit 4,
        "there is no such thing",
        "no queue, worker, message, job or subscriber has that name or id now",
        "list what there is: `turno queue ls`, `turno worker ls`, `turno job ls`, `turno topic subscribers`";
    Ambiguous = 61, "ambiguous", exit 2,
        "several workers have that name",
        "names of workers need not be unique; ids are",
        "use the id that `turno worker ls` shows";
    BadCall = 62, "bad_call", exit 2,
        "the broker does not accept that admin call",
        "this version of it does not know the call, or an argument is out of range",
        "use the same version on both sides (`turno version`); docs/reference/protocol has every call and its limits";

    Other = 63, "other", exit 1,
        "the broker named a code that this version does not know",
        "the broker is newer than the client",
        "use the same version on both sides (`turno version`)";

    // Jobs.
    BadJob = 64, "bad_job", exit 2,
        "that cannot be a job",
        "the submission breaks a rule that the error names, or it is to start after a job that does not exist",
        "correct what the error names; `turno job ls` shows the jobs there are";
    TooManyJobs = 65, "too_many_jobs", exit 1,
        "the broker knows as many jobs as it may",
        "jobs that have ended are kept until they are removed",
        "remove old ones with `turno job rm`";
    JobEnded = 66, "job_ended", exit 1,
        "the job has ended",
        "nothing of it is left to hold, release or cancel",
        "`turno job show ID` shows how it ended";
    JobNotEnded = 67, "job_not_ended", exit 1,
        "the job has not ended",
        "only a job with nothing left to do can be removed",
        "wait for it with `turno job wait ID`, or end it with `turno job cancel ID`";
    NotYourTask = 68, "not_your_task", exit 1,
        "that task does not run at that worker",
        "it has ended, was given to another, or this is an earlier attempt; nothing of it is kept any more",
        "nothing; the worker drops what it has of that attempt";
    ArchiveBusy = 69, "archive_busy", exit 1,
        "the archive has as much to do as it may have",
        "output, results and uploads come in faster than the disk takes them; nothing of this call was kept",
        "make the same call again a moment later";
    ArchiveFull = 70, "archive_full", exit 1,
        "the results of tasks take as much room as they may",
        "`jobs.result-total` is reached, or a task brought more than 1,000 files",
        "remove jobs whose results were fetched with `turno job rm`, or raise `jobs.result-total`";
    WrongPlace = 71, "wrong_place", exit 1,
        "a piece does not begin where the one before it ended",
        "pieces of a file come in order; a broker that was started again has forgotten files that were not whole",
        "send the file again from its beginning";
    WrongHash = 72, "wrong_hash", exit 1,
        "an upload's bytes do not have the hash it is known by",
        "the file changed while it was sent, or was damaged on its way; nothing of it was kept",
        "send it again from its beginning";
    ArchiveDamaged = 73, "archive_damaged", exit 1,
        "output, a result or an upload was kept and cannot be read any more",
        "bytes in the archive are not what was written: a failing disk, or something else wrote there",
        "look with `turno doctor`, run the task again with `turno job retry`, or submit again to send an upload anew";

    // Topics.
    BadTopic = 74, "bad_topic", exit 2,
        "that is no topic, or no filter",
        "it has 1 to 255 bytes of UTF-8, up to 32 segments, no white space, no control characters and no empty segment; in filters * is one whole segment and > the rest",
        "publish to a topic like `news.sport`, listen to `news.*` or `news.>`";
    TooManySubscriptions = 75, "too_many_subscriptions", exit 1,
        "there are as many subscriptions as may be",
        "one connection has at most 10,000 filters, all together 1,000,000, of 4,000,000 segments",
        "use fewer filters, with * and >";

    // Links.
    NoRoom = 76, "no_room", exit 1,
        "the broker at the other end of the link has no room any more",
        "its slots were taken while the message crossed; nobody has begun with it, and it waits again where it came from",
        "nothing: it goes to the next free slot, here or there";
    LinkRefused = 77, "link_refused", exit 1,
        "the other broker does not know the secret of this link",
        "both ends must prove that they know the same secret; without one only brokers on the same machine may link",
        "give both brokers the same link.secret";
    LinkToItself = 78, "link_to_itself", exit 2,
        "the link leads to the broker itself",
        "the address that was given is one of its own",
        "give the address of another broker, or leave the link out";
    AlreadyLinked = 79, "already_linked", exit 1,
        "these two brokers have a link already",
        "one link carries both ways, so a second one would only double what is told",
        "nothing, or remove one of the two addresses";

    // On this side of the connection.
    CannotConnect = 80, "cannot_connect", exit 5,
        "no broker answers",
        "nothing listens at that address, it is no Turno broker, or this user may not use its socket",
        "start one with `turno serve`, or name it with --url";
    ConnectionLost = 81, "connection_lost", exit 5,
        "the connection to the broker was lost before the answer came",
        "the broker ended or the network broke; whether the request was worked on, or the send stored, is unknown",
        "ask again if doing it twice does no harm; a send with a dedup id is sent again without asking";
    BadUsage = 82, "bad_usage", exit 2,
        "the command line is wrong",
        "a flag or argument is missing, unknown or out of range",
        "`turno help COMMAND` shows what the command takes";
    BadConfig = 83, "bad_config", exit 78,
        "the configuration is wrong",
        "a file is missing, unreadable or not TOML, a key is unknown, or a value is out of range",
        "`turno config check` names the place; `turno config show --origin` shows every value";
    InsecureListen = 84, "insecure_listen", exit 78,
        "refusing to listen beyond this machine without authentication",
        "anyone who reaches the address could read and write everything",
        "listen on 127.0.0.1, or add --insecure if the network is trusted";
    AddressInUse = 85, "address_in_use", exit 1,
        "another program listens on that address",
        "most often another broker",
        "stop it, or choose another address with --listen";
    DataInUse = 86, "data_in_use", exit 1,
        "another broker uses that data directory",
        "one directory belongs to one process",
        "stop the other broker, or choose another directory with --data";
    CannotStart = 87, "cannot_start", exit 1,
        "the worker's program cannot be started",
        "it does not exist, or may not be executed",
        "check the path after `--`";
    Io = 88, "io", exit 1,
        "reading or writing failed on this machine",
        "the system refused it; the error names the file, pipe or socket, and the system's reason",
        "permission denied: use a user that has it; no space left: make room; no such file: check the path";
    NotConfirmed = 89, "not_confirmed", exit 2,
        "the command needs a yes",
        "it destroys something, and nobody was there to ask",
        "add --yes";
    OutputTooLarge = 90, "output_too_large", exit 1,
        "the worker's program wrote more than a reply may hold",
        "a reply is one frame; the limit is the broker's frame size",
        "write less, or let the program store the result and reply with its place";
    Internal = 91, "internal", exit 1,
        "a part of the program failed as it never should",
        "a defect in Turno, not in what you did",
        "start it again, and report the panic that the log shows";
    DataDamaged = 92, "data_damaged", exit 1,
        "the store in the data directory is damaged",
        "bytes that were safely written are not what they were: a failing disk, or something else wrote there",
        "change nothing, look with `turno doctor`, and put the directory back from a copy";
    DataNewer = 93, "data_newer", exit 1,
        "the store in the data directory was written by a newer version",
        "this version does not know its format",
        "use the newer version, or another directory with --data";
    StoreFailed = 94, "store_failed", exit 1,
        "the broker stopped because its store failed",
        "what was not confirmed may or may not be on the disk, so it must not go on; what was confirmed is there",
        "look at the disk and the log, then start it again: it reads what is really there";
    Busy = 95, "busy", exit 1,
        "the worker has as many broadcasts to do as it may have",
        "a broadcast takes no slots: `turno work` runs as many at a time as it has slots, and 1,000 more wait in it",
        "wait for the answers before the next broadcast, or give the worker more slots";

    // Links, continued.
    TooManyLinks = 96, "too_many_links", exit 1,
        "the broker has as many links as it may have",
        "each broker may have 32 links, up or wanted",
        "remove one, or link by way of another broker";
    LinkDown = 97, "link_down", exit 1,
        "nobody answers at the other end of the link",
        "the other broker does not run, or cannot be reached from here",
        "start it, or look at the address; the link is dialled again each second";

    // The ring.
    RingRefused = 98, "ring_refused", exit 1,
        "the other broker does not know the secret of this ring",
        "both ends must prove that they know the same secret; without one only brokers on the same machine may form a ring",
        "give all brokers of the ring the same ring.secret";
    DuplicateSid = 99, "duplicate_sid", exit 1,
        "another broker of the ring has the same sid",
        "each broker of a ring has a number of its own; the one that is there stays",
        "start this one with another --sid, or with --sid auto";
    Fenced = 100, "fenced", exit 1,
        "a later life of this broker is known in the ring",
        "a broker with the same sid was started after this one, so that this one may say nothing in its name any more",
        "end this one; look why two were started with one sid";
    NotInRing = 101, "not_in_ring", exit 1,
        "the broker is not in a ring",
        "it was started without --sid, has left, or is about to leave",
        "join with `turno ring join`, or start it with --sid";
    RingBusy = 102, "ring_busy", exit 1,
        "the ring is being changed at this place",
        "the broker is joining, leaving or mending the circle itself",
        "nothing: it is tried again in a moment";
    RingWhole = 103, "ring_whole", exit 1,
        "the circle is whole without the broker that wants this place",
        "it was given up while it could not be reached, and the others closed the circle",
        "nothing: it joins again by itself";
    Replaced = 104, "replaced", exit 1,
        "another broker has this place in the ring now",
        "it was given up while it could not be reached, or its ring became part of another",
        "nothing: it joins again by itself";
    Elsewhere = 105, "elsewhere", exit 1,
        "the place in the ring is elsewhere",
        "the ring keeps its members in order of their sids (ring.sorted)",
        "nothing: the broker that joins is sent on";
    BadSequence = 106, "bad_sequence", exit 1,
        "publications of a member did not come in order",
        "each member accepts only the next publication of an origin",
        "nothing: the neighbours connect again, and what is missing is sent again; if it happens often, it is a bug";
    RingFull = 107, "ring_full", exit 1,
        "the ring has as many members as it may have, or no free number",
        "a ring has at most 128 members",
        "use a second ring, or links";
    RingDown = 108, "ring_down", exit 1,
        "nobody answers at that place of the ring",
        "the other broker does not run, or cannot be reached from here",
        "start it, or look at the address; a broker that was started with --ring-wait tries again each second";
    NotLocal = 109, "not_local", exit 1,
        "that is heard only from the machine that the broker runs on",
        "a shutdown ends every broker of the ring, so that whoever asks for it must be at one of them",
        "type it on the broker's machine, over its Unix socket or loopback";
    WrongSid = 110, "wrong_sid", exit 1,
        "the broker at that address has another sid than the one that was named",
        "SID@HOST names a member by its number too, so that nobody joins the wrong ring",
        "look at both: `turno ring show` at that broker tells its sid and its address";

    // Jobs again: the numbers beside the others are taken.
    KeyTaken = 111, "key_taken", exit 1,
        "another job has that key",
        "a key names one job: the same submission again is that job, and a different one is refused",
        "choose another --key, or remove the job that has it with `turno job rm`";

    // ZeroMQ peers.
    NotZmtp = 112, "not_zmtp", exit 1,
        "the peer did not begin with a ZMTP greeting",
        "a ZeroMQ connection begins with the bytes FF, eight more and 7F; something else speaks on this connection",
        "check that address and port are those of a ZeroMQ endpoint";
    OldZmtp = 113, "old_zmtp", exit 1,
        "the peer speaks ZMTP 1 or 2",
        "this broker speaks ZMTP 3.1 and 3.0; libzmq before 4.0 speaks older versions",
        "use libzmq 4.0 or later at the peer";
    WrongMechanism = 114, "wrong_mechanism", exit 1,
        "the peer uses another ZeroMQ security mechanism than the endpoint, or both are its server",
        "NULL, PLAIN and CURVE must be set alike at both ends, with one server",
        "set the mechanism of the endpoint at the peer, or the other way round";
    BadZmtp = 115, "bad_zmtp", exit 1,
        "a ZeroMQ peer sent a frame or command that cannot be read, is too long, or must not come at that point",
        "commands have at most 4 KiB; messages come after the handshake",
        "fix the program at the other end; 37/ZMTP has every layout";
    TooManyParts = 116, "too_many_parts", exit 1,
        "a ZeroMQ message has more frames than this broker accepts",
        "a message has at most 1,024 frames",
        "send fewer frames, or the parts inside one frame";
    WrongSocketType = 117, "wrong_socket_type", exit 1,
        "the ZeroMQ socket type of the peer does not fit the endpoint, or the peer sent what its type never sends",
        "each type talks to few others: REQ to REP and ROUTER, PUSH to PULL, SUB to PUB and XPUB",
        "use another socket type at the peer, or another role for the endpoint";
    NotAuthenticated = 118, "not_authenticated", exit 1,
        "the peer's name and password, or its key, are not accepted",
        "the endpoint lists the users or keys that may connect",
        "add the user or key to the endpoint, or fix it at the peer";
    RefusedByPeer = 119, "refused_by_peer", exit 1,
        "the peer refused the ZeroMQ connection with ERROR",
        "it does not accept the name and password, the key or the socket type of this end",
        "look at the log of the peer";
    BadCurve = 120, "bad_curve", exit 1,
        "a CURVE box cannot be opened, or a nonce was used again",
        "the peer has another server key than this end, or its bytes were damaged or said before",
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
