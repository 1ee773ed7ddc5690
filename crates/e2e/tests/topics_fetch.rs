//! Subscribers that fetch, and what can be seen of topics: `turno topic`.

use std::time::Duration;

use serde_json::Value;
use turno_e2e::{Broker, Peer, schema, wait};
use turno_proto::model::limits;

const SOON: Duration = wait::PATIENCE;

/// Publishes many events about a topic, the body of each its number.
fn publish_many(broker: &Broker, topic: &str, count: usize) {
    let lines: String = (0..count).map(|number| format!("{number}\n")).collect();
    broker.place.run_with_input(["pub", topic, "--lines"], lines.as_bytes()).expect(0);
}

/// Proves S3.31, S3.32, S3.34 and S3.35 for a single broker: CREATE makes a subscriber that belongs to its broker, SUB adds
/// filters to it, RECV gives it what was published since, first in first out, with an explicit answer when there is
/// nothing, and after DESTROY there is nobody of that name.
#[test]
fn the_life_of_a_subscriber_that_fetches() {
    let broker = Broker::start();
    broker.publish("news.sport", "before");
    let run = broker.run(&["topic", "create", "shop-7", "news.*"]).expect(0);
    assert_eq!(run.text(), "shop-7 subscribed to news.*\n");
    let run = broker.run(&["topic", "recv", "shop-7"]).expect(4);
    assert_eq!((run.text().as_str(), run.stderr.as_str()), ("", "no events\n"));
    for body in ["1", "2", "3"] {
        broker.publish("news.sport", body);
    }
    broker.publish("weather", "not wanted");
    assert_eq!(broker.run(&["topic", "recv", "shop-7", "-n", "2"]).expect(0).text(), "news.sport 1\nnews.sport 2\n");
    let run = broker.run(&["topic", "create", "shop-7", "weather"]).expect(0);
    assert_eq!(run.text(), "shop-7 subscribed to news.*,weather\n");
    broker.publish("weather", "rain");
    assert_eq!(broker.run(&["topic", "recv", "shop-7"]).expect(0).text(), "news.sport 3\nweather rain\n");
    assert_eq!(broker.run(&["topic", "recv", "shop-7", "-q"]).expect(4).stderr, "");
    broker.publish("weather", "never fetched");
    let run = broker.run(&["topic", "destroy", "shop-7"]).expect(0);
    assert_eq!(run.text(), "shop-7 removed; it was subscribed to news.*,weather\n");
    for verb in ["recv", "destroy"] {
        let run = broker.run(&["topic", verb, "shop-7"]).expect(4);
        assert!(run.stderr.starts_with("error: subscriber \"shop-7\" does not exist\n"), "{}", run.stderr);
        assert!(run.stderr.contains("fix: turno topic create shop-7 FILTER\n"), "{}", run.stderr);
    }
    broker.run(&["topic", "create", "shop-7", "weather"]).expect(0);
    broker.run(&["topic", "recv", "shop-7"]).expect(4);
}

/// Proves S3.36 for a single broker: what one fetches, another still has; connections beside them hear it too.
#[test]
fn each_subscriber_has_its_own_events() {
    let broker = Broker::start();
    let listener = broker.listen(&["t"]);
    for id in ["a", "b"] {
        broker.run(&["topic", "create", id, "t", ">", "t"]).expect(0);
    }
    publish_many(&broker, "t", 50);
    let expected: String = (0..50).map(|number| format!("t {number}\n")).collect();
    for id in ["a", "b"] {
        assert_eq!(broker.run(&["topic", "recv", id]).expect(0).text(), expected, "in order, and once each");
        broker.run(&["topic", "recv", id]).expect(4);
    }
    wait::until("the connection hears it too", || listener.stdout().len() == 50);
}

/// For programs: one document in every case, with what is missing and what is left.
#[test]
fn fetched_events_as_documents() {
    let broker = Broker::start();
    let created = broker.run(&["topic", "create", "a", "t", "--json"]).expect(0).document("turno.subscriber/1");
    let row = &created["subscriber"];
    assert_eq!((&row["name"], &row["address"], &row["waiting"]), (&"a".into(), &Value::Null, &0.into()));
    let list = |arguments: &[&str], exit: i32| {
        let words = [&["topic", "recv", "a", "--json"], arguments].concat();
        broker.run(&words).expect(exit).document("turno.event_list/1")
    };
    let none = list(&[], 4);
    assert_eq!((&none["events"], &none["left"]), (&Value::Array(vec![]), &0.into()));
    broker.run(&["pub", "t", "one", "-H", "k=v", "--confirm"]).expect(0);
    broker.publish("t", "two");
    let first = list(&["-n", "1"], 0);
    assert_eq!((&first["events"][0]["body"], &first["left"], &first["dropped"]), (&"one".into(), &1.into(), &0.into()));
    assert_eq!(first["events"][0]["headers"]["k"], "v");
    let rest = broker.run(&["topic", "recv", "a", "-o", "jsonl"]).expect(0).documents();
    assert_eq!((rest.len(), &rest[0]["schema"], &rest[0]["body"]), (1, &"turno.event/1".into(), &"two".into()));
    broker.publish("t", "three");
    assert_eq!(broker.run(&["topic", "recv", "a", "-o", "name"]).expect(0).text(), "t\n");
    assert_eq!(broker.run(&["topic", "recv", "nobody", "--json"]).expect(4).error_code(), "not_found");
    let waited = broker.run(&["topic", "recv", "a", "--wait", "--timeout", wait::SHORT, "--json"]).expect(124);
    assert_eq!(waited.error_code(), "timed_out");
    let gone = broker.run(&["topic", "destroy", "a", "--json"]).expect(0).document("turno.subscriber/1");
    assert_eq!(gone["subscriber"]["events"], 3);
}

/// `--wait` waits for the first event, and then takes what there is.
#[test]
fn a_fetch_may_wait() {
    let broker = Broker::start();
    broker.run(&["topic", "create", "a", "t"]).expect(0);
    let mut waiting = broker.start_turno(&["topic", "recv", "a", "-n", "1", "--wait", "--timeout", "1m"]);
    broker.publish("t", "at last");
    assert_eq!(waiting.end(SOON), 0);
    assert_eq!(waiting.stdout(), ["t at last"]);
    let run = broker.run(&["topic", "recv", "a", "--wait", "--timeout", wait::SHORT]).expect(124);
    assert!(run.stderr.contains("no event for a in time"), "{}", run.stderr);
}

/// What waits is limited: the oldest are dropped, and a fetch tells how many. All that is left is fetched, page by page.
#[test]
fn who_fetches_rarely_misses_the_oldest() {
    let broker = Broker::start();
    broker.run(&["topic", "create", "a", "t"]).expect(0);
    let more = limits::FETCHER_EVENTS_MAX + 50;
    publish_many(&broker, "t", more);
    wait::until("all came", || broker.subscribers()[0]["events"] == more);
    let row = &broker.subscribers()[0];
    assert_eq!((&row["dropped"], &row["waiting"]), (&50.into(), &limits::FETCHER_EVENTS_MAX.into()));
    let run = broker.run(&["topic", "recv", "a"]).expect(0);
    assert_eq!(run.stderr, "warning: 50 events are missing: too many were waiting\n");
    let expected: String = (50..more).map(|number| format!("t {number}\n")).collect();
    assert!(run.text() == expected, "{} lines", run.text().lines().count());
    broker.publish("t", "x");
    assert_eq!(broker.run(&["topic", "recv", "a"]).expect(0).stderr, "", "that is told once");
}

/// Many filters in one command, and ids and filters that are none.
#[test]
fn what_is_no_subscriber_is_refused() {
    let broker = Broker::start();
    let filters: Vec<String> = (0..300).map(|number| format!("t.{number}")).collect();
    let mut words = vec!["topic", "create", "many"];
    words.extend(filters.iter().map(String::as_str));
    broker.run(&words).expect(0);
    let row = &broker.subscribers()[0];
    assert_eq!((&row["filters_all"], row["filters"].as_array().map(Vec::len)), (&300.into(), Some(20)));
    broker.publish("t.299", "x");
    assert_eq!(broker.run(&["topic", "recv", "many"]).expect(0).text(), "t.299 x\n");
    let long = "x".repeat(limits::FETCHER_ID_BYTES_MAX + 1);
    for id in ["", "a b", "a\u{1b}[2J", &long] {
        let run = broker.run(&["topic", "create", id, "t"]).expect(2);
        assert!(run.stderr.contains("code: bad_name") && !run.stderr.contains('\u{1b}'), "{}", run.stderr);
    }
    assert_eq!(broker.run(&["topic", "create", "a", "t", "t.>.x", "--json"]).expect(2).error_code(), "bad_topic");
    assert_eq!(broker.subscribers().len(), 1, "nothing is left of those");
}

/// A subscriber that fetches ends with its broker.
#[test]
fn subscribers_end_with_their_broker() {
    let mut broker = Broker::start();
    broker.run(&["topic", "create", "a", "t"]).expect(0);
    broker.publish("t", "x");
    assert_eq!(broker.terminate(SOON), 0);
    let broker = Broker::start_in(broker.into_place(), &[]);
    let run = broker.run(&["topic", "recv", "a"]).expect(4);
    assert!(run.stderr.contains("the broker has restarted since"), "{}", run.stderr);
}

/// Topics and who listens, page by page.
#[test]
fn topics_and_subscribers_are_listed() {
    let broker = Broker::start();
    assert_eq!(
        broker.run(&["topic", "ls", "--json"]).expect(0).document("turno.topic_list/1")["topics"],
        Value::Array(vec![])
    );
    assert!(broker.run(&["topic", "subscribers"]).expect(0).stderr.contains("no subscribers"));
    let _listener = broker.listen(&["t.*", "x"]);
    broker.run(&["topic", "create", "shop", "t.007"]).expect(0);
    let mut publisher = Peer::greeted(broker.address(), 0);
    for number in 0..250 {
        publisher.publish(&format!("t.{number:03}"), b"12345", false);
    }
    publisher.sync();
    let list = |arguments: &[&str]| {
        let words = [&["topic", "ls", "--json"], arguments].concat();
        broker.run(&words).expect(0).document("turno.topic_list/1")
    };
    let all = list(&[]);
    assert_eq!((all["topics"].as_array().map(Vec::len), &all["next"]), (Some(250), &Value::Null));
    let seventh = &all["topics"][7];
    assert_eq!((&seventh["topic"], &seventh["events"], &seventh["bytes"]), (&"t.007".into(), &1.into(), &5.into()));
    assert_eq!(seventh["subscribers"], 2);
    let page = list(&["--limit", "120"]);
    assert_eq!((page["topics"].as_array().map(Vec::len), &page["next"]), (Some(120), &"t.119".into()));
    let last = list(&["--after", "t.240"]);
    assert_eq!((last["topics"].as_array().map(Vec::len), &last["topics"][0]["topic"]), (Some(9), &"t.241".into()));
    let names = broker.run(&["topic", "ls", "--limit", "2", "-o", "name"]).expect(0).text();
    assert_eq!(names, "t.000\nt.001\n");
    let rows = broker.run(&["topic", "ls", "--limit", "2", "-o", "jsonl"]).expect(0).documents();
    assert_eq!((rows.len(), &rows[1]["schema"]), (2, &"turno.topic_row/1".into()));
    let run = broker.run(&["topic", "subscribers", "t.007", "-o", "jsonl"]).expect(0);
    let rows: Vec<Value> = run.text().lines().map(schema::document).collect();
    assert_eq!(
        (rows.len(), &rows[0]["schema"], &rows[1]["name"]),
        (2, &"turno.subscriber_row/1".into(), &"shop".into())
    );
    assert_eq!((&rows[0]["events"], &rows[0]["dropped"], &rows[0]["waiting"]), (&250.into(), &0.into(), &Value::Null));
    assert!(rows[0]["address"].as_str().is_some_and(|address| address.starts_with("127.0.0.1:")), "{}", rows[0]);
    assert_eq!(broker.run(&["topic", "subscribers", "x", "-o", "name"]).expect(0).text().lines().count(), 1);
    for words in [["topic", "subscribers", "t.*"], ["topic", "subscribers", "a b"]] {
        assert!(broker.run(&words).expect(2).stderr.contains("code: bad_topic"));
    }
}

/// More subscribers than fit into one answer are all listed.
#[test]
fn many_subscribers_are_listed() {
    let broker = Broker::start();
    let mut peer = Peer::greeted(broker.address(), 0);
    for number in 0..250 {
        let call = turno_proto::native::admin::AdminCall::TopicCreate {
            id: format!("shop-{number}"),
            filters: vec!["t".to_owned()],
        };
        peer.ask(call);
    }
    assert_eq!(broker.subscribers().len(), 250);
    let names = broker.run(&["topic", "subscribers", "t", "-o", "name"]).expect(0).text();
    assert_eq!(names.lines().count(), 250);
}
