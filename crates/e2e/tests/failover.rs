//! Brokers that are down, go down, or end: clients and workers go to the next one, in order.

use std::time::Duration;

use rustix::process::Signal;
use turno_e2e::{Background, Broker, Peer, Place, Port, wait};
use turno_proto::model::Slots;

const SOON: Duration = wait::PATIENCE;

/// Starts a worker anywhere and waits for its word that it is registered.
fn worker(place: &Place, urls: &str, arguments: &[&str]) -> Background {
    let mut all = vec!["work", "--url", urls];
    all.extend_from_slice(arguments);
    let worker = place.start(all);
    worker.expect_line("registered");
    worker
}

/// Proves I15 and I13: the broker is lost in the middle of a request. It may have run, so it is not asked again: the
/// caller is told.
#[test]
fn a_request_whose_broker_is_lost_says_so() {
    let mut broker = Broker::start();
    let other = Broker::start();
    let _unasked = other.worker(&["q", "--echo"]);
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(2), "w");
    let urls = format!("{},{}", broker.url(), other.url());
    let mut requests = [broker.url(), urls]
        .map(|url| broker.start_turno(&["request", "q", "x", "--json", "--timeout", "1m", "--url", &url]));
    for _ in 0..2 {
        worker.delivery();
    }
    broker.kill();
    for request in &mut requests {
        assert_eq!(request.end(SOON), 5);
        let error: serde_json::Value = serde_json::from_str(&request.stdout().concat()).expect("one document");
        assert_eq!(error["error"]["code"], "connection_lost");
    }
    assert_eq!(other.status()["counters"]["requests"], 0);
}

/// Proves S2.2 and I15: a request with retries is sent again to the next broker when the first is lost.
#[test]
fn a_request_with_retries_goes_on_at_the_next_broker() {
    let mut first = Broker::start();
    let second = Broker::start();
    let mut lost = Peer::worker(first.address(), "q", Slots::Limited(1), "lost");
    let _heir = second.worker(&["q", "--echo"]);
    let urls = format!("{},{}", first.url(), second.url());
    let mut request = first.start_turno(&["request", "q", "hi", "--retries", "1", "--timeout", "1m", "--url", &urls]);
    lost.delivery();
    first.kill();
    assert_eq!(request.end(SOON), 0, "{:?}", request.stderr());
    assert_eq!(request.stdout(), ["hi"]);
}

/// Proves S1.5 and S2.2: with no broker at all each address is tried once and named, and the exit code is 5.
#[test]
fn no_broker_is_told_with_every_address() {
    let place = Place::new();
    let nowhere = [Port::reserve(), Port::reserve()];
    let urls = nowhere.each_ref().map(Port::url);
    for command in [&["request", "q", "x"][..], &["status"], &["work", "q", "--echo"]] {
        let failed = place.run([command, &["--json", "--url", &urls.join(",")]].concat()).expect(5);
        let error = failed.json()["error"].take();
        assert_eq!(error["code"], "cannot_connect");
        for url in &urls {
            assert!(error["message"].as_str().expect("a message").contains(url.as_str()), "{error}");
        }
    }
}

/// Proves S2.1 and S2.2: brokers are tried in the order given; the first one is used whenever it answers.
#[test]
fn brokers_are_tried_in_order() {
    let mut first = Broker::start();
    let second = Broker::start();
    let one = first.worker(&["q", "--", "echo", "first"]);
    let _other = second.worker(&["q", "--", "echo", "second"]);
    let place = Place::new();
    let ask = |urls: &[String]| place.run(["request", "q", "x", "--url", &urls.join(",")]).expect(0).text();
    let (a, b) = (first.url(), second.url());
    assert_eq!(ask(&[a.clone(), b.clone()]), "first\n");
    assert_eq!(ask(&[b.clone(), a.clone()]), "second\n");
    let nowhere = Port::reserve();
    assert_eq!(ask(&[nowhere.url(), a.clone(), b.clone()]), "first\n");
    drop(one);
    first.kill();
    assert_eq!(ask(&[a, b]), "second\n");
}

/// Proves S0.41, S2.2 and S0.39: a worker whose broker is killed registers at the next one by itself.
#[test]
fn a_worker_registers_at_the_next_broker() {
    let mut first = Broker::start();
    let second = Broker::start();
    let place = Place::new();
    let urls = format!("{},{}", first.url(), second.url());
    let worker = worker(&place, &urls, &["q", "--echo", "--slots", "7", "--name", "steady"]);
    assert_eq!((first.workers(), second.workers()), (1, 0));
    first.kill();
    worker.expect_line("registered again");
    let listed = second.run(&["worker", "show", "steady", "--json"]).expect(0).json();
    assert_eq!((&listed["worker"]["slots"], &listed["worker"]["state"]), (&7.into(), &"ready".into()));
    assert_eq!(second.run(&["request", "q", "hi"]).expect(0).text(), "hi");
}

/// Proves S0.41 and S2.2: with one broker only, the worker waits for it to come back.
#[test]
fn a_worker_waits_for_its_only_broker() {
    let mut broker = Broker::start();
    let place = Place::new();
    let worker = worker(&place, &broker.url(), &["q", "--echo"]);
    let address = broker.address().to_string();
    broker.kill();
    worker.expect_line("lost");
    let again = Broker::start_in_at(broker.place, &address, &[]);
    worker.expect_line("registered again");
    assert_eq!(again.run(&["request", "q", "back"]).expect(0).text(), "back");
}

/// Proves S2.1 and S2.2: a worker that was given one broker learns of the other from CONFIG, and turns to it.
#[test]
fn a_worker_learns_of_the_next_broker_from_the_first() {
    let second = Broker::start();
    let mut first = Broker::start_with(&["--broker", &second.url()]);
    let place = Place::new();
    let worker = worker(&place, &first.url(), &["q", "--echo"]);
    assert_eq!(first.workers(), 1);
    first.kill();
    worker.expect_line("registered again");
    assert_eq!(second.workers(), 1);
}

/// Proves S2.18: a worker that gets CLOSING finishes what it has on the old connection and is at the next broker
/// meanwhile; nothing is lost and nothing runs twice.
#[test]
fn closing_moves_a_worker_and_loses_nothing() {
    let mut first = Broker::start();
    let second = Broker::start();
    let place = Place::new();
    let urls = format!("{},{}", first.url(), second.url());
    let runs = place.path().join("runs");
    let program =
        format!("echo run >> {}; while [ -d \"$PWD\" ] && [ ! -e go ]; do sleep 0.02; done; echo done", runs.display());
    let _worker = worker(&place, &urls, &["q", "--slots", "2", "--", "sh", "-c", &program]);
    let mut request = first.start_turno(&["request", "q", "x", "--timeout", "1m"]);
    wait::until("the program runs", || runs.exists());
    first.process().signal(Signal::TERM);
    // The program goes on until the file is there: it is at the next broker while it still works for the first.
    wait::until("the worker is at the next broker", || second.workers() == 1);
    let free = || second.run(&["worker", "ls", "--json"]).expect(0).json()["workers"][0]["slots"].take();
    assert_eq!(free(), 1, "of its two slots one is taken at the first");
    assert_eq!(first.status()["in_flight"], 1, "which waits for it");
    let mut other = second.start_turno(&["request", "q", "y", "--timeout", "1m"]);
    let ran = || std::fs::read_to_string(&runs).expect("it ran").lines().count();
    wait::until("it works for both", || ran() == 2);
    place.file("go", "");
    assert_eq!((other.end(SOON), other.stdout()), (0, vec!["done".to_owned()]), "{:?}", other.stderr());
    assert_eq!(request.end(SOON), 0, "{:?}", request.stderr());
    assert_eq!(request.stdout(), ["done"]);
    assert_eq!(first.process().end(SOON), 0);
    wait::until("all its slots are the next broker's", || free() == 2);
    assert_eq!(second.run(&["request", "q", "x"]).expect(0).text(), "done\n");
    assert_eq!(ran(), 3);
}
