//! What people see of the rules of queues: who has one, who stands by, why something waits, and a drained broker.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use turno_e2e::{Background, Broker, Peer, wait};
use turno_proto::model::Slots;
use turno_proto::native::{Frame, Raw, RawBroadcast};

const LONG: Duration = wait::PATIENCE;

/// Runs until the place is gone.
const STAY: &str = "echo began >> began; while [ -d \"$PWD\" ] && [ ! -e go ]; do sleep 0.02; done";

fn began(broker: &Broker) -> usize {
    fs::read_to_string(broker.place.path().join("began")).unwrap_or_default().lines().count()
}

fn because(broker: &Broker, id: &str) -> Value {
    let shown = broker.run(&["message", "explain", id, "--json"]).expect(0).document("turno.explanation/1");
    shown["because"].clone()
}

fn send(broker: &Broker, body: &str) -> String {
    broker.run(&["send", "q", body, "-o", "name"]).expect(0).text().trim().to_owned()
}

fn standings(broker: &Broker) -> Vec<String> {
    let run = broker.run(&["queue", "consumers", "q", "--columns", "name,standing"]).expect(0);
    run.text().lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn work(broker: &Broker, name: &str, flags: &[&str]) -> Background {
    let program = broker.place.script("stay", STAY).display().to_string();
    let fixed = ["work", "q", "--slots", "1", "--name", name];
    broker.start_turno(&[&fixed, flags, &["--", &program]].concat())
}

/// Proves S2.22 and S2.26: `queue consumers` tells the holder from those who stand by, in their order, and what waits says
/// who has the queue; when the holder is killed both are true of the next one.
#[test]
fn who_has_a_queue_and_who_stands_by() {
    let broker = Broker::start();
    let first = work(&broker, "first", &["--exclusive"]);
    first.expect_line("first is active on queue q");
    let second = work(&broker, "second", &["--exclusive", "--standby"]);
    second.expect_line("second is on standby for queue q");
    let third = work(&broker, "third", &["--exclusive", "--standby"]);
    third.expect_line("third is on standby for queue q");
    assert_eq!(standings(&broker), ["first exclusive", "second standby", "third standby"]);
    let rows = broker.run(&["queue", "consumers", "q", "--json"]).expect(0).document("turno.consumer_list/1");
    let waits: Vec<&Value> = rows["consumers"].as_array().expect("rows").iter().map(|row| &row["waits"]).collect();
    assert_eq!(waits, [&Value::Null, &1.into(), &2.into()]);
    send(&broker, "runs");
    wait::until("it runs", || began(&broker) == 1);
    let id = send(&broker, "waits");
    let reason = because(&broker, &id);
    assert_eq!((&reason["reason"], &reason["details"]["name"]), (&"exclusive_busy".into(), &"first".into()));
    let text = broker.run(&["message", "explain", &id]).expect(0).text();
    let told = "(first), which is busy (1 slot in use), no message is ahead";
    assert!(text.contains(told), "{text}");
    first.signal(Signal::KILL);
    second.expect_line("second is active on queue q");
    assert_eq!(standings(&broker), ["second exclusive", "third standby"]);
    assert_eq!(because(&broker, &id)["details"]["name"], "second");
    let mut refused = work(&broker, "fourth", &["--exclusive"]);
    refused.expect_line("error: queue q is exclusive to another worker");
    refused.expect_line("`turno queue consumers q` lists");
    assert_eq!(refused.end(LONG), 1);
}

/// Proves S2.32: what waits for a worker that was dropped says so, and `queue consumers` shows it.
#[test]
fn a_dropped_worker_is_the_reason() {
    let broker = Broker::start();
    broker.run(&["queue", "set", "q", "--drop-after", "1"]).expect(0);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(2), "slow");
    let mut client = Peer::client(broker.address(), "q");
    client.request_with(b"late", |message| message.deadline_ms = Some(100));
    let (delivery, ..) = worker.delivery();
    worker.hear(|frame| assert!(matches!(frame, Frame::Cancel { .. }), "{frame:?}"));
    worker.hear(|frame| assert!(matches!(frame, Frame::CancelQueue { .. }), "{frame:?}"));
    worker.fail(delivery, b"stopped");
    worker.sync();
    let id = send(&broker, "waits");
    assert_eq!(because(&broker, &id)["reason"], "workers_dropped");
    assert_eq!(standings(&broker), ["slow dropped"]);
    worker.say(&Frame::Consume { seq: 9, handle: 0, exclusive: false });
    worker.hear(|frame| assert_eq!(frame, Frame::Ok { seq: 9 }));
    assert_eq!(worker.delivery().1, b"waits");
    let id = send(&broker, "behind the probe");
    let reason = because(&broker, &id);
    assert_eq!((&reason["reason"], &reason["details"]["probing"]), (&"all_busy".into(), &1.into()));
    let text = reason["text"].as_str().expect("a sentence");
    assert!(text.contains("1 of them on probation with one delivery at a time"), "{text}");
    assert_eq!(standings(&broker), ["slow probing"]);
}

/// Proves S2.17: a caller of a drained broker learns why it waits, and its call ends as `closing` when its time is over; with
/// `resume` it gets its answer. A message that is stored says why it waits.
#[test]
fn a_drained_broker_is_the_reason() {
    let broker = Broker::start();
    let _worker = broker.worker(&["work", "q", "--echo"]);
    let id = broker.run(&["send", "other", "stored", "-o", "name"]).expect(0).text().trim().to_owned();
    broker.run(&["drain"]).expect(0);
    assert_eq!(because(&broker, &id)["reason"], "maintenance");
    for command in [["request", "q", "x"], ["send", "q", "x"], ["broadcast", "q", "x"]] {
        let run = broker.run(&[&command[..], &["--timeout", wait::SHORT]].concat()).expect(5);
        let told = &run.stderr;
        assert!(
            told.contains("the broker is drained for maintenance; waiting for `turno resume`"),
            "{command:?}: {told}"
        );
        assert!(told.contains("why: the broker is drained for maintenance"), "{command:?}: {told}");
        let run = broker.run(&[&command[..], &["--timeout", wait::SHORT, "--json"]].concat()).expect(5);
        assert_eq!(run.error_code(), "closing", "{command:?}");
    }
    let run = broker.run(&["request", "q", "x", "--count", "2", "--timeout", wait::SHORT]).expect(5);
    assert!(run.stderr.contains("the broker is draining or shutting down"), "{}", run.stderr);
    let mut patient = broker.start_turno(&["request", "q", "hello", "--timeout", "1m"]);
    patient.expect_line("waiting for `turno resume`");
    broker.run(&["resume"]).expect(0);
    assert_eq!(patient.end(LONG), 0);
    assert_eq!(patient.stdout(), ["hello"]);
}

/// Proves S2.18: a broadcast is a message like others: from a broker that is drained it goes to the next one.
#[test]
fn a_broadcast_goes_to_the_next_broker() {
    let brokers = [Broker::start(), Broker::start()];
    let _worker = brokers[1].worker(&["work", "q", "--echo", "--name", "there"]);
    brokers[0].run(&["drain"]).expect(0);
    let urls = format!("{},{}", brokers[0].url(), brokers[1].url());
    let run = brokers[0].run(&["broadcast", "q", "hi", "--url", &urls]).expect(0);
    assert_eq!(run.text(), "there: hi\n");
    assert_eq!(brokers[1].status()["counters"]["broadcasts"], 1);
}

/// Proves S2.9 and S2.15: broadcasts take no slots, but a worker runs only so many of them at a time, lets some wait, and
/// fails the rest with `busy`; its other work goes on beside them.
#[test]
fn a_worker_does_only_so_many_broadcasts_at_a_time() {
    const WAITING: u32 = 1_000;
    let broker = Broker::start();
    let mut worker = work(&broker, "w", &[]);
    worker.expect_line("registered");
    let mut client = Peer::client(broker.address(), "q");
    let call = |seq| {
        let raw = Raw { headers: false, bytes: b"x" };
        Frame::Broadcast(RawBroadcast {
            seq,
            handle: 0,
            deadline_ms: Some(600_000),
            no_reply: false,
            skip_self: false,
            payload: raw,
        })
    };
    for seq in 1_000..1_000 + 1 + WAITING + 2 {
        client.say(&call(seq));
    }
    for _ in 0..2 {
        let failed = client.hear(|frame| match frame {
            Frame::Answer(answer) if answer.failed => String::from_utf8_lossy(answer.raw.bytes).into_owned(),
            other => panic!("{other:?} is no failed ANSWER"),
        });
        assert_eq!(failed, "busy: 1 broadcasts running and 1000 waiting");
        client.hear(|frame| assert!(matches!(frame, Frame::BroadcastEnd { .. }), "{frame:?}"));
    }
    worker.expect_line("w: too many broadcasts; further ones fail: busy");
    assert_eq!(began(&broker), 1);
    send(&broker, "beside them");
    wait::until("its other work goes on", || began(&broker) == 2);
    let shown = broker.run(&["status"]).expect(0).text();
    assert!(shown.contains("1003 broadcasts"), "{shown}");
    // What waits is not worth waiting for.
    worker.signal(Signal::KILL);
    assert_ne!(worker.end(LONG), 0);
}
