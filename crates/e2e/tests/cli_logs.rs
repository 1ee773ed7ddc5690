//! The log of a broker at work: what an operator needs is in it, and programs can read it.

use std::io::Write as _;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use turno_e2e::{Broker, Peer, Place, wait};
use turno_proto::model::{Again, Code, Slots};
use turno_proto::native::{Frame, Raw};

const SOON: Duration = Duration::from_secs(30);

/// A broker that logs as JSON, with this configuration.
fn broker(place: Place, config: &str, flags: &[&str], start: fn(Place, &[&str]) -> Broker) -> Broker {
    let directory = place.path().join("config/turno");
    std::fs::create_dir_all(&directory).expect("our own place");
    let mut file = std::fs::File::create(directory.join("turno.toml")).expect("our own place");
    write!(file, "log.format = \"json\"\n{config}").expect("our own place");
    start(place, flags)
}

/// All that was logged so far. Every line is a JSON object.
fn lines(broker: &mut Broker) -> Vec<Value> {
    let lines = broker.process().stderr();
    lines.iter().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

/// Waits for a line with that message whose fields have these values.
#[track_caller]
fn expect(broker: &mut Broker, message: &str, fields: &[(&str, Value)]) -> Value {
    let is_it = |line: &Value| {
        let has = |(key, value): &(&str, Value)| line[*key] == *value;
        line["message"].as_str().is_some_and(|text| text.contains(message)) && fields.iter().all(has)
    };
    let found = wait::find(wait::PATIENCE, || lines(broker).into_iter().find(is_it));
    found.unwrap_or_else(|| panic!("no line {message:?} with {fields:?}: {:#?}", broker.process().stderr()))
}

/// Texts as Rust shows them to its programmers: structures, options, quotes within quotes.
fn is_debug_text(text: &str) -> bool {
    ["Some(", "None", "Ok(", "Err(", " { ", "\"", "[]"].iter().any(|sign| text.contains(sign))
}

/// What comes and goes, what is refused and what ends badly is told at the level of every day; and all of it, the words for
/// developers included, is plain text in fields of their own.
#[test]
fn an_eventful_run() {
    let config = "limits.memory = \"1MiB\"\nlog.level = \"info,turno=trace,turno_store=trace\"\n";
    let flags = ["--sid", "1", "--ring-port", "0", "--foreman-listen", "127.0.0.1:0"];
    let mut one = broker(Place::new(), config, &flags, Broker::start_in);
    let ready = expect(&mut one, "ready", &[("level", "INFO".into())]);
    assert_eq!(ready["listen"], one.address().to_string(), "{ready}");

    // A worker of a queue, a dead letter, and a worker of jobs.
    let mut worker = Peer::worker(one.address(), "orders", Slots::Limited(3), "shop 7");
    expect(
        &mut one,
        "worker connected",
        &[("name", "shop 7".into()), ("kind", "queues".into()), ("slots", "3".into())],
    );
    one.run(&["send", "orders", "x"]).expect(0);
    let (delivery, ..) = worker.delivery();
    worker.say(&Frame::Fail { delivery, again: Again::Never, raw: Raw { headers: false, bytes: b"no" } });
    expect(&mut one, "dead letters", &[("count", 1.into()), ("queues", "orders".into()), ("level", "WARN".into())]);
    drop(worker);
    expect(&mut one, "worker disconnected", &[("name", "shop 7".into()), ("queues", "orders".into())]);
    let mut job_worker = one.job_worker(&["--slots", "2", "--name", "muscle"]);
    expect(&mut one, "worker connected", &[("name", "muscle".into()), ("kind", "jobs".into())]);
    job_worker.signal(Signal::TERM);
    job_worker.end(SOON);
    expect(&mut one, "worker disconnected", &[("name", "muscle".into()), ("kind", "jobs".into())]);

    // More than the broker may hold.
    let mut client = Peer::client(one.address(), "orders");
    let seq = client.post(&vec![7; 2 << 20], |_| {});
    assert_eq!(client.undelivered(), (seq, Code::OverMemory));
    expect(&mut one, "refused", &[("code", "over_memory".into()), ("count", 1.into())]);

    // Another broker links, is a member of the ring, and goes.
    let next = format!("1@{}", one.ready()["ring"].as_str().expect("an address"));
    let (link, flags) =
        (one.address().to_string(), ["--sid", "2", "--ring-port", "0", "--foreman-listen", "127.0.0.1:0"]);
    let mut two = Broker::start_with(&[&flags[..], &["--ring-next", &next, "--link", &link]].concat());
    expect(&mut one, "link up", &[("level", "INFO".into())]);
    expect(&mut one, "ring is whole", &[("came", "2".into())]);
    assert_eq!(two.terminate(SOON), 0);
    expect(&mut one, "link down", &[]);
    expect(&mut one, "ring is whole", &[("went", "2".into())]);

    // Maintenance, and the end.
    one.run(&["drain"]).expect(0);
    expect(&mut one, "draining for maintenance", &[]);
    one.run(&["resume"]).expect(0);
    expect(&mut one, "resumed: accepting work", &[]);
    assert_eq!(one.terminate(SOON), 0);
    expect(&mut one, "draining", &[("within_seconds", 30.0.into())]);
    expect(&mut one, "the broker is stopping", &[("lost", 0.into()), ("level", "INFO".into())]);

    for line in lines(&mut one) {
        let fields = line.as_object().expect("an object");
        for key in ["timestamp", "level", "target", "message"] {
            assert!(fields[key].is_string(), "{line}");
        }
        for (key, value) in fields {
            let is_flat = !value.is_object() && !value.is_array() && !value.is_null();
            assert!(is_flat && !value.as_str().is_some_and(is_debug_text), "{key}: {line}");
        }
    }
}

/// Many workers that come and go at once are not told one by one.
#[test]
fn a_crowd_is_told_of_in_one_line() {
    let mut broker = broker(Place::new(), "", &["--foreman-listen", "127.0.0.1:0"], Broker::start_in);
    let peers: Vec<Peer> =
        (0..100).map(|number| Peer::worker(broker.address(), "q", Slots::Limited(1), &format!("w{number}"))).collect();
    drop(peers);
    let counted = |line: &Value| match line["message"].as_str() {
        Some("worker connected" | "worker disconnected") => 1,
        Some("more workers connected and disconnected") => line["count"].as_u64().unwrap_or(0),
        _ => 0,
    };
    let all = || lines(&mut broker).iter().map(counted).sum::<u64>() == 200;
    wait::until("all are told of", all);
}

/// The disk is full, and has room again.
#[test]
fn a_full_disk_is_logged_once() {
    let mut broker = broker(Place::new(), "", &["--foreman-listen", "127.0.0.1:0"], Broker::start_faulty);
    let mut client = Peer::client(broker.address(), "q");
    client.store(b"before", |_| {});
    broker.inject("enable name=posix/io/rw/pwrite,failinfo=28");
    for _ in 0..3 {
        let seq = client.post(b"no room", |_| {});
        assert_eq!(client.undelivered(), (seq, Code::OverDisk));
    }
    expect(&mut broker, "disk full: refusing sends and jobs", &[("level", "WARN".into())]);
    expect(&mut broker, "refused", &[("code", "over_disk".into())]);
    broker.inject("disable name=posix/io/rw/pwrite");
    client.store(b"after", |_| {});
    // Looked at each second: one that still saw the refusals does not tell of the room yet.
    wait::until("it is told of", || {
        client.store(b"more", |_| {});
        lines(&mut broker)
            .iter()
            .any(|line| line["message"].as_str().is_some_and(|text| text.contains("disk has space again")))
    });
    let full = lines(&mut broker)
        .iter()
        .filter(|line| line["message"].as_str().is_some_and(|text| text.contains("disk full: refusing sends and jobs")))
        .count();
    assert_eq!(full, 1);
}
