//! `turno queue`: what waits, and for whom.

use turno_e2e::{Broker, Peer, wait};
use turno_proto::model::Slots;
use turno_proto::native::Frame;

/// A queue is there once it has a message or a consumer, and says how much of each.
#[test]
fn a_queue_tells_what_waits_and_what_runs() {
    let broker = Broker::start();
    assert_eq!(broker.queue("q"), serde_json::Value::Null);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(1), "peer");
    for body in ["a", "b", "c"] {
        broker.run(&["send", "q", body]).expect(0);
    }
    let (delivery, ..) = worker.delivery();
    let run = broker.run(&["queue", "show", "q", "--json"]).expect(0);
    let queue = run.document("turno.queue/1")["queue"].take();
    let numbers = ["ready", "in_flight", "dead", "consumers", "slots_free"];
    let found: Vec<u64> = numbers.iter().map(|key| queue[key].as_u64().expect("a number")).collect();
    assert_eq!(found, [2, 1, 0, 1, 0], "{queue}");
    let head = queue["head"].as_array().expect("a list");
    assert_eq!((head.len(), &head[0]["state"], &head[0]["bytes"]), (2, &"ready".into(), &1.into()));
    assert!(queue["oldest_seconds"].as_f64().is_some() && queue["bytes"].as_u64() > Some(3), "{queue}");
    let text = broker.run(&["queue", "show", "q"]).expect(0).text();
    for expected in ["ready      2", "in flight  1", "consumers  1, 0 slots free", "next:", "send of q, priority 4"] {
        assert!(text.contains(expected), "{expected:?}: {text}");
    }
    worker.say(&Frame::Ack { delivery });
    wait::until("the next one runs", || broker.queue("q")["ready"] == 1);
    assert_eq!(broker.queue("q")["counters"]["acked"], 1);
}

/// The rota in the order of turns. Proves S0.11, S0.19, S0.20, S0.23: a newcomer is last, a worker that got work goes to
/// the end, and the listing shows every worker with its free slots.
#[test]
fn consumers_are_listed_in_the_order_of_their_turns() {
    let broker = Broker::start();
    let _others: Vec<Peer> =
        ["a", "b", "c"].map(|name| Peer::worker(broker.address(), "q", Slots::Limited(2), name)).into_iter().collect();
    let listed = |column: &str| {
        let run = broker.run(&["queue", "consumers", "q", "--columns", column]).expect(0);
        run.text().lines().skip(1).map(|line| line.trim().to_owned()).collect::<Vec<String>>()
    };
    assert_eq!(
        (listed("name"), listed("turn")),
        (["a", "b", "c"].map(String::from).into(), ["1", "2", "3"].map(String::from).into())
    );
    broker.run(&["send", "q", "x"]).expect(0);
    wait::until("a has it", || listed("name") == ["b", "c", "a"]);
    assert_eq!(
        (listed("free"), listed("in_flight")),
        (["2", "2", "1"].map(String::from).into(), ["0", "0", "1"].map(String::from).into())
    );
    let run = broker.run(&["queue", "consumers", "q", "--json"]).expect(0);
    let document = run.document("turno.consumer_list/1");
    assert_eq!((&document["queue"], document["consumers"].as_array().map(Vec::len)), (&"q".into(), Some(3)));
    broker.run(&["send", "alone", "x"]).expect(0);
    assert_eq!(broker.run(&["queue", "consumers", "alone", "-o", "name"]).expect(0).text(), "", "nobody yet");
}

/// More queues than fit on a page are listed all the same, in order of name, and page by page if asked.
#[test]
fn more_queues_than_a_page_are_listed() {
    let broker = Broker::start();
    let names: Vec<String> = (0..1_200).map(|number| format!("queue.{number:04}")).collect();
    let mut words: Vec<&str> = names.iter().map(String::as_str).collect();
    words.push("--echo");
    let _worker = broker.worker(&words);
    let lines =
        |words: &[&str]| -> Vec<String> { broker.run(words).expect(0).text().lines().map(str::to_owned).collect() };
    assert_eq!(lines(&["queue", "ls", "-o", "name"]), names);
    let document = broker.run(&["queue", "ls", "--json"]).expect(0).document("turno.queue_list/1");
    assert_eq!(
        (document["queues"].as_array().map(Vec::len), &document["next"]),
        (Some(1_200), &serde_json::Value::Null)
    );
    let mut paged: Vec<String> = Vec::new();
    let mut after = String::new();
    for expected in [500, 500, 200] {
        let words = ["queue", "ls", "--limit", "500", "--after", &after, "--json"];
        let page = broker.run(&words).expect(0).document("turno.queue_list/1");
        let rows = page["queues"].as_array().expect("a list");
        assert_eq!(rows.len(), expected);
        paged.extend(rows.iter().filter_map(|row| row["name"].as_str().map(str::to_owned)));
        after = page["next"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!((paged, after), (names.clone(), String::new()));
    assert_eq!(lines(&["queue", "ls", "-o", "name", "--limit", "1_100"]), names[..1_100]);
    assert_eq!(lines(&["queue", "ls", "-o", "name", "--after", "queue.1197"]), names[1_198..]);
    assert_eq!(broker.status()["queues"], 1_200);
    assert_eq!(broker.run(&["request", "queue.1199", "x"]).expect(0).text(), "x");
}

/// Names with dots, slashes and signs are names; those with blanks and wild cards are not.
#[test]
fn names_are_what_the_rules_allow() {
    let broker = Broker::start();
    for name in ["a", "billing.invoices", "a/b:c", "ünï-✓", &"x".repeat(255)] {
        broker.run(&["send", name, "x"]).expect(0);
        assert_eq!(broker.queue(name)["name"], name);
    }
    for name in ["", " ", "a b", "a\tb", "a*", "a.>", ".a", "a.", "a..b", &"x".repeat(256)] {
        for words in [["send", name, "x"], ["request", name, "x"], ["queue", "show", name]] {
            let run = broker.run(&[&words[..], &["--json"]].concat()).expect(2);
            assert_eq!(run.error_code(), "bad_name", "{words:?}");
        }
    }
}
