//! Stores that brokers of every format left behind: a broker of today opens them and has exactly what was in them.
//!
//! A fixture is a store that the real broker wrote, without the zeros at the ends of its files (they are put back), and
//! `contents.txt`: what must be found in it.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use turno_e2e::{Broker, Peer, Place};
use turno_proto::model::view::Reason;
use turno_proto::model::{MessageId, Slots};

/// Set to write the store of the current format anew; a format that was released never changes.
const WRITE: &str = "TURNO_WRITE_FIXTURE";
const CONTENTS: &str = "contents.txt";
const QUEUES: [&str; 2] = ["emails", "reports"];

fn folder(format: u32) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/format-{format}"))
}

/// One line of what a store holds.
fn line(id: MessageId, queue: &str, state: &str, attempts: u16, body: &str) -> String {
    format!("{id} {queue} {state} {attempts} {body}\n")
}

/// Messages that wait, one that failed twice and waits, one that is done, and a dead letter; over a crash.
fn fill(broker: Broker) -> (Place, String) {
    let mut contents = String::new();
    let mut client = Peer::client(broker.address(), "emails");
    let mut worker = Peer::worker(broker.address(), "emails", Slots::Limited(1), "w");
    let done = client.store(b"done", |_| {});
    let (delivery, ..) = worker.delivery();
    worker.ack(delivery);
    let dead = client.store(b"dead", |message| message.retries = Some(1));
    for attempt in 1..=2 {
        let (delivery, _, found) = worker.delivery();
        assert_eq!(found, attempt);
        worker.fail(delivery, b"mailbox unknown");
    }
    let failed = client.store(b"failed twice", |message| message.retries = Some(5));
    for why in [&b"try later"[..], b"and later"] {
        let (delivery, ..) = worker.delivery();
        worker.fail(delivery, why);
    }
    // The third attempt is on its way, and is not written down: a crash gives it again.
    assert_eq!(worker.delivery().2, 3);
    contents += &line(failed, "emails", "ready", 2, "failed twice");
    for (priority, body) in [(9, "first"), (0, "last"), (4, "\u{2014} text of more than one byte a letter")] {
        let id = client.store(body.as_bytes(), |message| message.priority = Some(priority));
        contents += &line(id, "emails", "ready", 0, body);
    }
    let mut client = Peer::client(broker.address(), "reports");
    let id = client.store(b"monthly", |message| message.cost = Some(3));
    contents += &line(id, "reports", "ready", 0, "monthly");
    contents += &line(dead, "emails", "dead", 2, "mailbox unknown");
    let _ = writeln!(contents, "{done} gone");
    let mut broker = broker;
    broker.kill();
    (broker.into_place(), contents)
}

fn write(format: u32) {
    let (place, contents) = fill(Broker::start());
    let folder = folder(format);
    fs::create_dir_all(&folder).expect("the source tree can be written to");
    let mut lengths = String::new();
    for entry in fs::read_dir(place.data().join("store")).expect("a store") {
        let entry = entry.expect("a store");
        let name = entry.file_name().into_string().expect("a plain name");
        let bytes = fs::read(entry.path()).expect("a file of the store");
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let _ = writeln!(lengths, "file {name} {}", bytes.len());
        fs::write(folder.join(name), &bytes[..used]).expect("the source tree can be written to");
    }
    fs::write(folder.join(CONTENTS), lengths + &contents).expect("the source tree can be written to");
}

/// Puts the store into a place; what must be in it.
fn unpack(format: u32, place: &Place) -> String {
    let contents = fs::read_to_string(folder(format).join(CONTENTS)).expect("the fixture says what is in it");
    let store = place.data().join("store");
    fs::create_dir_all(&store).expect("a directory in the test's own place");
    let (files, messages): (Vec<_>, Vec<_>) = contents.lines().partition(|line| line.starts_with("file "));
    for file in files {
        let [_, name, len] = file.split(' ').collect::<Vec<_>>()[..] else { panic!("no file: {file}") };
        fs::copy(folder(format).join(name), store.join(name)).expect("the fixture has its files");
        let file = File::options().write(true).open(store.join(name)).expect("just made");
        file.set_len(len.parse().expect("a length")).expect("just made");
    }
    messages.iter().map(|line| format!("{line}\n")).collect()
}

/// What a broker says of the messages that are named, in the same words.
fn seen(broker: &Broker, contents: &str) -> String {
    let mut asker = Peer::greeted(broker.address(), 0);
    let mut found = String::new();
    for named in contents.lines() {
        let id: MessageId = named.split(' ').next().and_then(|id| id.parse().ok()).expect("an id");
        if broker.run(&["message", "explain", &id.to_string()]).code == 4 {
            let _ = writeln!(found, "{id} gone");
            continue;
        }
        let explanation = asker.explain(id);
        let message = explanation.message;
        let (state, text) = match explanation.because.0 {
            Reason::Dead { failure } => ("dead", failure),
            _ => ("ready", named.splitn(5, ' ').last().unwrap_or_default().to_owned()),
        };
        found += &line(id, &message.queue, state, message.attempts, &text);
    }
    found
}

/// Format 1: every message under its id with its attempts, the dead letter with its reason, and each delivered once, by
/// priority, with the attempt that was next. Nothing else is in it.
#[test]
fn format_1_is_opened_and_delivered() {
    if std::env::var_os(WRITE).is_some() {
        write(1);
    }
    let place = Place::new();
    let contents = unpack(1, &place);
    let broker = Broker::start_in(place, &[]);
    assert_eq!(seen(&broker, &contents), contents);
    let counts = QUEUES.map(|name| {
        let queue = broker.queue(name);
        (queue["ready"].as_u64(), queue["in_flight"].as_u64(), queue["dead"].as_u64())
    });
    assert_eq!(counts, [(Some(4), Some(0), Some(1)), (Some(1), Some(0), Some(0))]);

    let mut worker = Peer::worker(broker.address(), "emails", Slots::Limited(1), "w");
    for (body, attempt) in
        [("first", 1), ("failed twice", 3), ("\u{2014} text of more than one byte a letter", 1), ("last", 1)]
    {
        let (delivery, found, of) = worker.delivery();
        assert_eq!((String::from_utf8_lossy(&found), of), (body.into(), attempt));
        worker.ack(delivery);
    }
    worker.sync();
    let mut other = Peer::worker(broker.address(), "reports", Slots::Limited(3), "x");
    let (delivery, found, attempt) = other.delivery();
    assert_eq!((found, attempt), (b"monthly".to_vec(), 1));
    other.ack(delivery);
    other.sync();
    assert_eq!(broker.status()["ready"], 0);
}
