//! Workers at which deliveries expire are dropped and come back; queues have weights.

use std::fs;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;
use turno_e2e::{Broker, Peer, wait};
use turno_proto::model::{Code, Slots};
use turno_proto::native::Frame;

const LONG: Duration = wait::PATIENCE;

/// The only row of `turno queue consumers q`.
fn consumer(broker: &Broker) -> Value {
    let mut listed = broker.run(&["queue", "consumers", "q", "--json"]).expect(0).document("turno.consumer_list/1");
    assert_eq!(listed["consumers"].as_array().map(Vec::len), Some(1), "{listed}");
    listed["consumers"][0].take()
}

fn expires(broker: &Broker) {
    broker.run(&["request", "q", "x", "--timeout", wait::SHORT]).expect(124);
}

/// Proves S2.29, S2.30 and S2.32: a worker whose program is too slow is dropped after two requests, says so, comes back
/// by itself with a probe, is dropped again when that expires, and is a worker like others once it did one in time.
#[test]
fn a_slow_program_is_dropped_and_comes_back() {
    let broker = Broker::start();
    let program = broker.place.script("slow", "[ -e fast ] && echo done || exec sleep 600").display().to_string();
    let worker = broker.worker(&["q", "--name", "w", "--", &program]);
    expires(&broker);
    let row = consumer(&broker);
    assert_eq!((&row["standing"], &row["expired"], &row["turn"]), (&"suspect".into(), &1.into(), &1.into()), "{row}");
    expires(&broker);
    worker.expect_line("dropped from queue q: deliveries expired at this worker; consuming it again in 1 s");
    worker.expect_line("back in queue q: one delivery at a time until one is settled in time");
    let row = consumer(&broker);
    assert_eq!(
        (&row["standing"], &row["expired"], &row["reason"]),
        (&"probing".into(), &2.into(), &"timed_out".into())
    );
    assert!(row["dropped_at"].is_string(), "{row}");
    expires(&broker);
    worker.expect_line("dropped from queue q: deliveries expired at this worker; consuming it again in 2 s");
    // It cannot ask before it was looked at.
    worker.signal(Signal::STOP);
    let row = consumer(&broker);
    assert_eq!(
        (&row["standing"], &row["turn"], &row["expired"]),
        (&"dropped".into(), &Value::Null, &3.into()),
        "{row}"
    );
    let shown = broker.run(&["worker", "show", "w"]).expect(0).text();
    assert!(shown.contains("dropped in queue q: 3 expired in a row, timed_out, dropped "), "{shown}");
    let shown = broker.run(&["worker", "show", "w", "--json"]).expect(0).document("turno.worker/1");
    assert_eq!((&shown["worker"]["dropped"], &shown["worker"]["standings"][0]["queue"]), (&2.into(), &"q".into()));
    assert_eq!(broker.queue("q")["counters"]["dropped"], 2);

    broker.place.file("fast", "");
    worker.signal(Signal::CONT);
    let run = broker.run(&["request", "q", "x", "--timeout", "1m"]).expect(0);
    assert_eq!(run.text(), "done\n");
    let row = consumer(&broker);
    assert_eq!((&row["standing"], &row["expired"], &row["turn"]), (&"consuming".into(), &0.into(), &1.into()), "{row}");
}

/// Proves S2.31 and S2.32: on the wire a worker hears the reason on its own handle, and only when its queue has so
/// little patience; 0 is for ever.
#[test]
fn a_worker_is_told_on_its_handle() {
    let broker = Broker::start();
    broker.run(&["queue", "set", "q", "--drop-after", "1"]).expect(0);
    broker.run(&["queue", "set", "patient", "--drop-after", "0"]).expect(0);
    for (queue, drops) in [("patient", false), ("q", true)] {
        let mut worker = Peer::worker(broker.address(), queue, Slots::Limited(5), "w");
        let mut client = Peer::client(broker.address(), queue);
        for _ in 0..3 {
            client.request_with(b"x", |message| message.deadline_ms = Some(50));
            let (delivery, ..) = worker.delivery();
            assert_eq!(worker.cancelled(), (delivery, Code::TimedOut));
            assert_eq!(client.undelivered().1, Code::TimedOut);
            if drops {
                let told = worker.hear(|frame| match frame {
                    Frame::CancelQueue { handle, reason, .. } => (handle, reason),
                    other => panic!("{other:?}"),
                });
                assert_eq!(told, (0, Some(Code::Dropped)));
                worker.say(&Frame::Consume { seq: 900, handle: 0, exclusive: false });
                assert!(worker.hear(|frame| matches!(frame, Frame::Ok { seq: 900 })));
            }
        }
    }
}

/// Of two queues of weights 3 and 1 a worker with one slot gets three messages and one, in turns.
#[test]
fn weights_are_messages_a_round() {
    let broker = Broker::start();
    broker.run(&["queue", "set", "a", "--weight", "3"]).expect(0);
    broker.run(&["queue", "set", "b", "--weight", "1"]).expect(0);
    for (queue, count) in [("a", 8), ("b", 4)] {
        for _ in 0..count {
            broker.run(&["send", queue, queue]).expect(0);
        }
    }
    let program = broker.place.script("note", "printf '%s' \"$TURNO_QUEUE\" >> order").display().to_string();
    let _worker = broker.worker(&["a", "b", "--slots", "1", "--", &program]);
    let order = || fs::read_to_string(broker.place.path().join("order")).ok().filter(|order| order.len() == 12);
    assert_eq!(wait::find(LONG, order).as_deref(), Some("aaabaaabaabb"));
}

/// Settings change one by one, are told, and outlive the broker.
#[test]
fn the_settings_of_a_queue_are_its_own() {
    let mut broker = Broker::start();
    let set = |broker: &Broker, flags: &[&str]| broker.run(&[&["queue", "set", "q"], flags].concat()).expect(0).text();
    assert_eq!(set(&broker, &["--weight", "7"]), "queue q has weight 7\n");
    let both = set(&broker, &["--volatile", "--drop-after", "0"]);
    let expected = "queue q is volatile: sends are kept in memory only\nqueue q drops: never\n";
    assert_eq!(both, expected);
    broker.kill();
    let place = broker.into_place();
    let config = place.file("patient.toml", "queue.defaults.drop-after = 5\n").display().to_string();
    let broker = Broker::start_in(place, &["--config", &config]);
    let shown = broker.queue("q");
    let settings = &shown["settings"];
    assert_eq!(
        (&settings["weight"], &settings["drop_after"], &settings["durable"]),
        (&7.into(), &0.into(), &false.into())
    );
    let text = broker.run(&["queue", "show", "q"]).expect(0).text();
    assert!(text.contains("drops      never\n") && text.contains("weight     7\n"), "{text}");
    set(&broker, &["--default"]);
    broker.run(&["send", "q", "x"]).expect(0);
    let shown = broker.queue("q");
    assert_eq!((&shown["weight"], &shown["drop_after"], &shown["settings"]), (&1.into(), &5.into(), &Value::Null));
    for flags in [["--weight", "0"], ["--weight", "101"], ["--drop-after", "1001"], ["--drop-after", "-1"]] {
        let run = broker.run(&[&["queue", "set", "q", "--json"], &flags[..]].concat()).expect(2);
        assert_eq!(run.error_code(), "bad_usage", "{flags:?}");
    }
    let run = broker.run(&["queue", "set", "q", "--default", "--weight", "2", "--json"]).expect(2);
    assert_eq!(run.error_code(), "bad_usage");
}
