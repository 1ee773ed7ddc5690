//! Reasons for the state of a message.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::model::limits::AHEAD_MAX;
use crate::model::text::{count, one_line};
use crate::model::{Moment, Seconds, WorkerId};

/// Why a message is where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", content = "details", rename_all = "snake_case")]
#[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
pub enum Reason {
    /// No worker consumes the queue, here or at another broker that can be reached.
    NoWorker,
    /// The same, and links that are wanted are not up: there may be workers behind them.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    LinksDown {
        /// How many of them.
        down: u64,
        /// Links that are wanted.
        wanted: u64,
    },
    /// Nobody here takes it; other brokers have workers, and it is longer than what they take over their links.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    TooLong {
        /// Its length.
        bytes: u64,
        /// The most that one of them takes.
        largest: u64,
    },
    /// Nobody here takes it; other brokers have workers, and no room for it now.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    FarBusy {
        /// Brokers that have workers of the queue.
        brokers: u64,
        /// Slots there that messages from here have in use.
        used: u64,
        /// Messages of the queue that are ahead.
        ahead: u64,
    },
    /// No worker consumes the queue any more: those that did were dropped, and have not asked for it again.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    WorkersDropped {
        /// How many.
        workers: u64,
    },
    /// The queue is one worker's alone, and that has no room.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    ExclusiveBusy {
        /// That worker.
        worker: WorkerId,
        /// Its name.
        name: String,
        /// Its slots in use.
        used: u64,
        /// Messages of the queue that are ahead.
        ahead: u64,
    },
    /// Nobody has the queue: its last holder has not settled all yet, or what it had is on its way back. Others wait
    /// for it, or it was one worker's alone.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    NotFree {
        /// Messages of the queue that are not settled.
        in_flight: u64,
        /// Workers that wait until it is free.
        waiters: u64,
    },
    /// Nobody has the queue: it is kept for the first of those who wait for it.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    KeptFor {
        /// That worker.
        worker: WorkerId,
        /// Its name.
        name: String,
        /// For how long.
        left_seconds: Seconds,
    },
    /// Workers consume it, but none has sent its first PING.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    WorkersGreeting {
        /// How many.
        workers: u64,
    },
    /// Every consumer drains.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    WorkersDraining {
        /// How many.
        workers: u64,
    },
    /// Every slot of every consumer is in use.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    AllBusy {
        /// Consumers.
        workers: u64,
        /// Their slots in use.
        used: u64,
        /// Messages of the queue that are ahead.
        ahead: u64,
        /// Those of the consumers that get one delivery at a time, because they were dropped before.
        #[serde(default)]
        probing: u64,
        /// Workers that were dropped from the queue and have not asked for it again.
        #[serde(default)]
        dropped: u64,
        /// Those of the consumers that get nothing, because they do not read what waits for them.
        #[serde(default)]
        not_reading: u64,
        /// Other brokers that have workers of the queue, and no room for it either.
        #[serde(default)]
        brokers: u64,
    },
    /// Messages before it wait too.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Behind {
        /// How many.
        ahead: u64,
    },
    /// Only the store has it. A worker has room for it, and there is no memory to load it, or what goes first.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    WaitsForMemory {
        /// Messages of the queue that go first.
        ahead: u64,
    },
    /// It costs more than any consumer has slots in all.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    TooCostly {
        /// Slots that it takes.
        cost: u16,
        /// The most slots a consumer has.
        largest: u32,
    },
    /// It waits until the worker it reserved has enough slots free.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Reserved {
        /// That worker.
        worker: WorkerId,
        /// Slots that it takes.
        cost: u16,
        /// Slots free there now.
        free: u32,
    },
    /// A worker has it.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    AtWorker {
        /// That worker.
        worker: WorkerId,
        /// Its name.
        name: String,
        /// For how long.
        since_seconds: Seconds,
    },
    /// It crossed a link, to a worker at that broker or further on.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    AtLink {
        /// That broker's id.
        broker: String,
        /// Its name.
        name: String,
        /// For how long.
        since_seconds: Seconds,
    },
    /// A broadcast that went to its consumers.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    AtConsumers {
        /// How many it went to, as far as is known.
        consumers: u64,
        /// Those that have not ended.
        open: u64,
        /// Other brokers that it went to and that did not tell yet how it ended there.
        #[serde(default)]
        brokers: u64,
    },
    /// It is over for its caller, and its worker was told to stop.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Stopping {
        /// That worker.
        worker: WorkerId,
    },
    /// It is answered, and its worker has not given the slots back.
    Answered {
        /// That worker.
        worker: WorkerId,
    },
    /// It is over for its caller, and the broker that it crossed to was told.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    StoppingAtLink {
        /// That broker's id.
        broker: String,
        /// Its name.
        name: String,
    },
    /// It waits for its time.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Delayed {
        /// When that is.
        until: Moment,
        /// How long it still is.
        left_seconds: Seconds,
        /// Attempts that failed before; 0: its sender wants it to wait.
        failed: u64,
    },
    /// It is being written to disk.
    Storing,
    /// It used up its attempts.
    #[cfg_attr(not(feature = "exhaustive"), non_exhaustive)]
    Dead {
        /// The text of the last failure.
        failure: String,
    },
    /// The broker is on its way out.
    Draining,
    /// The broker is drained until it is told to go on.
    Maintenance,
}

/// A sentence for people.
impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&told(self))
    }
}

fn told(reason: &Reason) -> String {
    match reason {
        Reason::NoWorker => "no worker consumes the queue".to_owned(),
        Reason::WorkersDropped { workers } => {
            format!("no worker consumes the queue: {} after expired deliveries", were_dropped(*workers))
        }
        Reason::WorkersGreeting { workers: 1 } => "the only consumer has not completed its handshake".to_owned(),
        Reason::WorkersGreeting { workers } => format!("none of the {workers} consumers has completed its handshake"),
        Reason::WorkersDraining { workers: 1 } => "the only consumer is draining and accepts no new work".to_owned(),
        Reason::WorkersDraining { workers } => format!("all {workers} consumers are draining and accept no new work"),
        Reason::LinksDown { down, wanted } => links_down(*down, *wanted),
        Reason::TooLong { bytes, largest } => {
            format!(
                "no worker here has a free slot, and linked brokers accept at most {largest} bytes; the message has {bytes}"
            )
        }
        Reason::FarBusy { brokers, used, ahead } => far_busy(*brokers, *used, *ahead),
        Reason::AllBusy { workers, used, ahead, probing, dropped, not_reading, brokers } => {
            let text = all_busy(*workers, *used, *probing, *dropped, *not_reading, *brokers);
            format!("{text}, {}", go_first(*ahead))
        }
        Reason::ExclusiveBusy { worker, name, used, ahead } => {
            let (used, first) = (count(*used, "slot in use", "slots in use"), go_first(*ahead));
            format!("the queue is exclusive to worker {worker} ({name}), which is busy ({used}), {first}")
        }
        Reason::NotFree { in_flight, waiters } => {
            format!(
                "the exclusive queue changes hands once its deliveries are settled ({in_flight} in flight, {waiters} on standby)"
            )
        }
        Reason::KeptFor { worker, name, .. } => {
            format!("the queue is free and reserved for worker {worker} ({name}), which has not taken it yet")
        }
        Reason::Behind { ahead } => {
            format!("{}{} too", at_least(*ahead), count(*ahead, "message before it waits", "messages before it wait"))
        }
        Reason::WaitsForMemory { ahead } => {
            format!("it is on disk, and limits.memory has no room to load it, {}", go_first(*ahead))
        }
        Reason::TooCostly { cost, largest } => {
            format!("it needs {cost} slots, and the largest consumer has {largest}")
        }
        Reason::Reserved { worker, cost, free } => {
            format!("it waits for {cost} free slots at worker {worker}, which has {free} free now")
        }
        Reason::AtWorker { worker, name, .. } => format!("worker {worker} ({name}) is processing it"),
        Reason::AtLink { name, .. } => {
            format!("forwarded to broker {}", one_line(name))
        }
        Reason::AtConsumers { consumers, open, brokers } => at_consumers(*consumers, *open, *brokers),
        Reason::StoppingAtLink { name, .. } => {
            format!("ended for its caller; broker {}, which has it, was told to stop", one_line(name))
        }
        Reason::Stopping { worker } => format!("ended for its caller; worker {worker} was told to stop"),
        Reason::Answered { worker } => format!("answered; worker {worker} still uses its slots"),
        Reason::Delayed { until, failed: 0, .. } => format!("its sender delayed it until {until}"),
        Reason::Delayed { until, failed, .. } => {
            format!("it waits until {until} after {}", count(*failed, "failed attempt", "failed attempts"))
        }
        Reason::Storing => "being written to disk".to_owned(),
        Reason::Dead { failure } => format!("all attempts failed; the last error: {failure}"),
        Reason::Draining => "the broker is shutting down".to_owned(),
        Reason::Maintenance => "the broker is drained for maintenance, until `turno resume`".to_owned(),
    }
}

/// All that could take it have no room.
fn all_busy(workers: u64, used: u64, probing: u64, dropped: u64, not_reading: u64, brokers: u64) -> String {
    let nobody = if not_reading > 0 { "no consumer accepts it now" } else { "all slots are busy" };
    let mut text = format!("{nobody} ({used} in use at {})", count(workers, "consumer", "consumers"));
    if not_reading > 0 {
        let do_not = count(
            not_reading,
            "of them does not read its deliveries and gets no more until it does",
            "of them do not read their deliveries and get no more until they do",
        );
        text += &format!(", {do_not}");
    }
    if probing > 0 {
        text += &format!(", {probing} of them on probation with one delivery at a time");
    }
    if dropped > 0 {
        text += &format!(", {} from the queue", were_dropped(dropped));
    }
    if brokers > 0 {
        text += &format!(", those at {} too", count(brokers, "other broker", "other brokers"));
    }
    text
}

fn links_down(down: u64, wanted: u64) -> String {
    let are = if down == 1 { "is" } else { "are" };
    let links = count(wanted, "link", "links");
    format!("no reachable worker consumes the queue, and {down} of {links} {are} down")
}

/// Nobody here takes it, and those elsewhere have no room.
fn far_busy(brokers: u64, used: u64, ahead: u64) -> String {
    let far = count(brokers, "other broker has", "other brokers have");
    let used = count(used, "slot in use", "slots in use");
    let first = go_first(ahead);
    format!("no worker here has a free slot; {far} workers but no free slot ({used} by messages from here), {first}")
}

/// A broadcast that has not ended.
fn at_consumers(consumers: u64, open: u64, brokers: u64) -> String {
    let consumers = count(consumers, "consumer", "consumers");
    let open = count(open, "of them has", "of them have");
    let text = format!("sent to {consumers}; {open} not answered yet");
    match brokers {
        0 => text,
        1 => format!("{text}; 1 other broker has not reported its outcome"),
        more => format!("{text}; {more} other brokers have not reported their outcome"),
    }
}

fn were_dropped(workers: u64) -> String {
    count(workers, "worker was dropped", "workers were dropped")
}

fn go_first(ahead: u64) -> String {
    if ahead == 0 {
        return "no message is ahead".to_owned();
    }
    format!("{}{}", at_least(ahead), count(ahead, "message is ahead", "messages are ahead"))
}

/// The broker stops counting at some point.
const fn at_least(ahead: u64) -> &'static str {
    if ahead >= AHEAD_MAX { "at least " } else { "" }
}

#[cfg(test)]
#[expect(clippy::indexing_slicing, reason = "a missing key fails the test")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::model::reason::Because;

    /// The word, the sentence and the details of the reasons that have some.
    #[test]
    fn reasons_for_people_and_programs() {
        let name = || "w".to_owned();
        let table = [
            (
                Reason::AllBusy { workers: 1, used: 2, ahead: 3, probing: 0, dropped: 0, not_reading: 0, brokers: 0 },
                "all slots are busy (2 in use at 1 consumer), 3 messages are ahead",
                json!({ "reason": "all_busy", "workers": 1, "used": 2, "ahead": 3, "probing": 0, "dropped": 0, "not_reading": 0, "brokers": 0 }),
            ),
            (
                Reason::AllBusy { workers: 2, used: 2, ahead: 1, probing: 1, dropped: 4, not_reading: 0, brokers: 2 },
                "all slots are busy (2 in use at 2 consumers), 1 of them on probation with one delivery at a time, \
                 4 workers were dropped from the queue, those at 2 other brokers too, 1 message is ahead",
                json!({ "reason": "all_busy", "workers": 2, "used": 2, "ahead": 1, "probing": 1, "dropped": 4, "not_reading": 0, "brokers": 2 }),
            ),
            (
                Reason::AllBusy { workers: 3, used: 9, ahead: 0, probing: 0, dropped: 0, not_reading: 1, brokers: 0 },
                "no consumer accepts it now (9 in use at 3 consumers), 1 of them does not read its deliveries \
                 and gets no more until it does, no message is ahead",
                json!({ "reason": "all_busy", "workers": 3, "used": 9, "ahead": 0, "probing": 0, "dropped": 0, "not_reading": 1, "brokers": 0 }),
            ),
            (
                Reason::Behind { ahead: AHEAD_MAX },
                "at least 10000 messages before it wait too",
                json!({ "reason": "behind", "ahead": 10_000 }),
            ),
            (
                Reason::WaitsForMemory { ahead: 2 },
                "it is on disk, and limits.memory has no room to load it, 2 messages are ahead",
                json!({ "reason": "waits_for_memory", "ahead": 2 }),
            ),
            (
                Reason::WorkersDropped { workers: 1 },
                "no worker consumes the queue: 1 worker was dropped after expired deliveries",
                json!({ "reason": "workers_dropped", "workers": 1 }),
            ),
            (
                Reason::KeptFor { worker: WorkerId(7), name: name(), left_seconds: Seconds::from_millis(4_500) },
                "the queue is free and reserved for worker 7 (w), which has not taken it yet",
                json!({ "reason": "kept_for", "worker": "7", "name": "w", "left_seconds": 4.5 }),
            ),
            (
                Reason::NotFree { in_flight: 1, waiters: 2 },
                "the exclusive queue changes hands once its deliveries are settled (1 in flight, 2 on standby)",
                json!({ "reason": "not_free", "in_flight": 1, "waiters": 2 }),
            ),
            (
                Reason::AtWorker { worker: WorkerId(7), name: name(), since_seconds: Seconds::from_millis(1_500) },
                "worker 7 (w) is processing it",
                json!({ "reason": "at_worker", "worker": "7", "name": "w", "since_seconds": 1.5 }),
            ),
            (
                Reason::Delayed {
                    until: Moment::from_unix_ms(0),
                    left_seconds: Seconds::from_millis(1_500),
                    failed: 0,
                },
                "its sender delayed it until 1970-01-01T00:00:00.000Z",
                json!({ "reason": "delayed", "until": "1970-01-01T00:00:00.000Z", "left_seconds": 1.5, "failed": 0 }),
            ),
            (
                Reason::Delayed { until: Moment::from_unix_ms(0), left_seconds: Seconds::from_millis(0), failed: 2 },
                "it waits until 1970-01-01T00:00:00.000Z after 2 failed attempts",
                json!({ "reason": "delayed", "until": "1970-01-01T00:00:00.000Z", "left_seconds": 0.0, "failed": 2 }),
            ),
            (Reason::NoWorker, "no worker consumes the queue", json!({ "reason": "no_worker" })),
        ];
        check(table);
    }

    /// The same of the reasons that tell of other brokers.
    #[test]
    fn reasons_of_other_brokers() {
        let table = [
            (
                Reason::LinksDown { down: 1, wanted: 2 },
                "no reachable worker consumes the queue, and 1 of 2 links is down",
                json!({ "reason": "links_down", "down": 1, "wanted": 2 }),
            ),
            (
                Reason::FarBusy { brokers: 1, used: 3, ahead: 0 },
                "no worker here has a free slot; 1 other broker has workers but no free slot (3 slots in use by messages \
                 from here), no message is ahead",
                json!({ "reason": "far_busy", "brokers": 1, "used": 3, "ahead": 0 }),
            ),
            (
                Reason::AtLink {
                    broker: "5f3a9c0d21e4".to_owned(),
                    name: "rb-\u{1b}2".to_owned(),
                    since_seconds: Seconds::from_millis(1_500),
                },
                "forwarded to broker rb-\u{1b}2",
                json!({ "reason": "at_link", "broker": "5f3a9c0d21e4", "name": "rb-\u{1b}2", "since_seconds": 1.5 }),
            ),
            (
                Reason::StoppingAtLink { broker: "5f3a9c0d21e4".to_owned(), name: "rb-2".to_owned() },
                "ended for its caller; broker rb-2, which has it, was told to stop",
                json!({ "reason": "stopping_at_link", "broker": "5f3a9c0d21e4", "name": "rb-2" }),
            ),
            (
                Reason::TooLong { bytes: 70_000, largest: 65_536 },
                "no worker here has a free slot, and linked brokers accept at most 65536 bytes; the message has 70000",
                json!({ "reason": "too_long", "bytes": 70_000, "largest": 65_536 }),
            ),
            (
                Reason::AtConsumers { consumers: 2, open: 1, brokers: 0 },
                "sent to 2 consumers; 1 of them has not answered yet",
                json!({ "reason": "at_consumers", "consumers": 2, "open": 1, "brokers": 0 }),
            ),
            (
                Reason::AtConsumers { consumers: 2, open: 1, brokers: 1 },
                "sent to 2 consumers; 1 of them has not answered yet; 1 other broker has not reported its outcome",
                json!({ "reason": "at_consumers", "consumers": 2, "open": 1, "brokers": 1 }),
            ),
        ];
        check(table);
    }

    fn check<const N: usize>(table: [(Reason, &str, Value); N]) {
        for (reason, text, expected) in table {
            let mut shown = serde_json::to_value(Because(reason)).unwrap();
            assert_eq!(shown["text"], text);
            let mut all = shown.get_mut("details").map_or_else(|| json!({}), Value::take);
            all["reason"] = shown["reason"].take();
            assert_eq!(all, expected);
        }
    }
}
