//! `turno link`, and what other commands tell of links, with real brokers on one machine.

use serde_json::Value;
use turno_e2e::{Broker, Place, wait};

fn named(name: &str) -> Broker {
    Broker::start_with(&["--name", name])
}

fn address(broker: &Broker) -> String {
    broker.address().to_string()
}

/// The rows of `link ls`.
fn links(broker: &Broker) -> Vec<Value> {
    let listed = broker.run(&["link", "ls", "--json"]).expect(0).document("turno.link_list/1");
    listed["links"].as_array().expect("a list").clone()
}

/// Two brokers; the first has dialled the second.
fn pair() -> (Broker, Broker) {
    let (near, far) = (named("rb-1"), named("rb-2"));
    near.run(&["link", "add", &address(&far)]).expect(0);
    wait::until("both ends are up", || links(&far).len() == 1);
    (near, far)
}

/// S2.4, S2.5: a link is made while both brokers run, is seen from both ends, and carries requests.
#[test]
fn two_brokers_are_linked_and_share_workers() {
    let (near, far) = (named("rb-1"), named("rb-2"));
    let run = near.run(&["link", "add", &address(&far), "--json"]).expect(0);
    let link = run.document("turno.link/1")["link"].clone();
    assert_eq!((&link["name"], &link["state"], &link["code"]), (&"rb-2".into(), &"up".into(), &Value::Null));
    assert_eq!(link["target"], address(&far));
    wait::until("the other end is up too", || links(&far).len() == 1);
    let other = links(&far).remove(0);
    assert_eq!((&other["name"], &other["state"], &other["target"]), (&"rb-1".into(), &"up".into(), &Value::Null));

    let _worker = far.worker(&["shout", "--slots", "3", "--", "tr", "a-z", "A-Z"]);
    wait::until("its slots are offered", || links(&near)[0]["offered"] == 3);
    assert_eq!(near.run(&["request", "shout", "hello", "--fail-fast"]).expect(0).text(), "HELLO");
    let row = links(&near).remove(0);
    assert_eq!((&row["forwarded"], &row["received"], &row["backlog"]), (&1.into(), &0.into(), &0.into()));
    assert_eq!(links(&far)[0]["received"], 1);
    wait::until("a round trip was measured", || links(&near)[0]["round_trip_seconds"].is_number());

    let rows = near.run(&["link", "ls", "-o", "jsonl"]).expect(0).documents();
    assert_eq!((rows.len(), &rows[0]["schema"]), (1, &"turno.link_row/1".into()));
    assert_eq!(near.run(&["link", "ls", "-o", "name"]).expect(0).text(), format!("{}\n", address(&far)));
    let text = near.run(&["link", "ls"]).expect(0);
    assert!(text.text().starts_with("NAME  STATE  ROUND TRIP  OFFERED"), "{}", text.text());
    assert_eq!(text.stderr, "", "nothing is wrong, so there is no hint");
    let status = near.status();
    assert_eq!(
        (&status["links_up"], &status["links_wanted"], &status["links_down"]),
        (&1.into(), &1.into(), &0.into())
    );
    assert!(near.run(&["status"]).expect(0).text().contains("\nlinks           1 up\n"));
}

/// The graph of three brokers in a row, for people, for programs and for graphviz; a name may hold anything.
#[test]
fn the_graph_shows_who_is_linked_to_whom() {
    let (one, two, odd) = (named("rb-1"), named("rb-2"), named("a \"b\\\" -- c"));
    let alone = one.run(&["link", "graph"]).expect(0);
    assert_eq!(alone.text(), "NAME  HOPS  PATH  NEIGHBOURS\nrb-1     0  -     -\n");
    assert!(alone.stderr.starts_with("hint: no links"), "{}", alone.stderr);
    one.run(&["link", "add", &address(&two)]).expect(0);
    two.run(&["link", "add", &address(&odd)]).expect(0);
    let graph = |format: &[&str]| one.run(&[&["link", "graph"], format].concat()).expect(0);
    wait::until("all are known", || graph(&["--json"]).json()["brokers"].as_array().is_some_and(|all| all.len() == 3));
    let document = graph(&["--json"]).document("turno.link_graph/1");
    let brokers = document["brokers"].as_array().expect("a list");
    let seen: Vec<_> =
        brokers.iter().map(|row| (row["name"].as_str().unwrap(), row["hops"].as_u64().unwrap())).collect();
    assert_eq!(seen, [("rb-1", 0), ("a \"b\\\" -- c", 2), ("rb-2", 1)]);
    let rows = graph(&["-o", "jsonl"]).documents();
    assert!(rows.iter().all(|row| row["schema"] == "turno.broker_row/1"), "{rows:?}");
    let id = |place: usize| brokers[place]["broker"].as_str().expect("an id");
    let mut edges = [(id(0), id(2)), (id(1), id(2))].map(|(a, b)| (a.min(b), a.max(b)));
    edges.sort_unstable();
    let expected = format!(
        "graph links {{\n    node [shape=box];\n    \"{}\" [label=\"rb-1\", style=bold];\n    \
         \"{}\" [label=\"a \\\"b\\\\\\\" -- c\"];\n    \"{}\" [label=\"rb-2\"];\n    \"{}\" -- \"{}\";\n    \
         \"{}\" -- \"{}\";\n}}\n",
        id(0),
        id(1),
        id(2),
        edges[0].0,
        edges[0].1,
        edges[1].0,
        edges[1].1,
    );
    assert_eq!(graph(&["--dot"]).text(), expected);
    let text = graph(&["--dot", "--json"]).document("turno.text/1");
    assert_eq!((&text["name"], &text["text"]), (&"links.dot".into(), &expected.into()));
}

/// A message says where it is at every broker, under one id; what waits says that the workers elsewhere are busy.
#[test]
fn a_message_is_traced_over_a_link() {
    let (near, far) = pair();
    let _worker = far.worker(&["slow", "--slots", "1", "--name", "sleeper", "--", "sleep", "60"]);
    wait::until("its slot is offered", || links(&near)[0]["offered"] == 1);
    let id = near.run(&["send", "-q", "slow", "x", "-o", "name"]).expect(0).text();
    let id = id.trim();
    let because = |broker: &Broker, id: &str| {
        broker.run(&["message", "explain", id, "--json"]).json()["because"]["reason"].clone()
    };
    wait::until("the far worker has it", || because(&far, id) == "at_worker");
    assert_eq!(because(&near, id), "at_link");
    let here = near.run(&["message", "trace", id, "--json"]).expect(0).document("turno.trace/1");
    let hops = |trace: &Value| -> Vec<String> {
        let hops = trace["hops"].as_array().expect("a list").iter();
        hops.map(|hop| format!("{} {}", hop["hop"].as_str().unwrap(), hop["broker"].as_str().unwrap())).collect()
    };
    assert_eq!(hops(&here), ["accepted rb-1", "crossed rb-2"]);
    let there = far.run(&["message", "trace", id, "--json"]).expect(0).document("turno.trace/1");
    assert_eq!(hops(&there), ["through rb-1", "accepted rb-2", "at_worker rb-2"]);
    let run = near.run(&["message", "trace", id]).expect(0);
    assert!(run.stderr.contains(&format!("--url turno://{}", address(&far))), "{}", run.stderr);
    let text = far.run(&["message", "explain", id]).expect(0).text();
    assert!(text.contains("\ncame by   rb-1\n"), "{text}");

    let second = near.run(&["send", "-q", "slow", "y", "-o", "name"]).expect(0).text();
    wait::until("it waits for the far worker", || because(&near, second.trim()) == "far_busy");
    let run = near.run(&["message", "trace", second.trim()]).expect(0);
    assert!(run.text().contains("1 other broker has workers but no free slot"), "{}", run.text());
}

/// Links that cannot be: to the broker itself, and a second one to the same broker.
#[test]
fn links_to_itself_and_second_links() {
    let (near, far) = pair();
    let run = near.run(&["link", "add", &address(&near), "--json"]).expect(2);
    assert_eq!(run.error_code(), "link_to_itself");
    assert_eq!(links(&near).len(), 1, "it is not left behind");
    near.run(&["link", "add", &address(&near), "--no-wait"]).expect(0);
    wait::until("it is known as itself", || links(&near).iter().any(|link| link["state"] == "itself"));
    let run = near.run(&["link", "ls"]).expect(0);
    assert!(run.stderr.contains("the link address belongs to this broker"), "{}", run.stderr);
    near.run(&["link", "rm", &address(&near)]).expect(0);

    let second = format!("localhost:{}", far.address().port());
    let run = near.run(&["link", "add", &second]).expect(0);
    assert!(run.text().contains("is already linked through another address"), "{}", run.text());
    let row = links(&near).into_iter().find(|link| link["target"] == second.as_str()).expect("it is wanted");
    assert_eq!((&row["state"], &row["code"]), (&"doubled".into(), &"already_linked".into()));
    assert_eq!(near.status()["links_down"], 0, "a second link is not missed");
    near.run(&["link", "rm", &address(&far)]).expect(0);
    wait::until("the second takes the first's place", || links(&near)[0]["state"] == "up");
}

/// S2.5: nobody is there. That is said at once, and the address is dialled until somebody is.
#[test]
fn a_broker_that_is_not_there_is_dialled_until_it_is() {
    let near = named("rb-1");
    let mut far = named("rb-2");
    let target = address(&far);
    far.kill();
    let place = far.into_place();
    let run = near.run(&["link", "add", &target]).expect(1);
    assert!(run.stderr.contains("the link to ") && run.stderr.contains("code: link_down"), "{}", run.stderr);
    assert_eq!(near.run(&["link", "add", &target, "--json"]).expect(1).error_code(), "link_down");
    let run = near.run(&["link", "add", &target, "--no-wait", "--json"]).expect(0);
    assert_eq!(run.document("turno.link/1")["link"]["target"], target.as_str());
    assert_eq!(links(&near).len(), 1, "one address is one link");
    wait::until("it is down", || links(&near)[0]["state"] == "down");
    assert_eq!(links(&near)[0]["code"], "link_down");
    let run = near.run(&["link", "ls"]).expect(0);
    assert!(
        run.stderr.contains(&format!("hint: {target}: the broker at the other end of the link does not answer")),
        "{}",
        run.stderr
    );
    let status = near.run(&["status"]).expect(0);
    assert!(status.text().contains("\nlinks           0 up, 1 of 1 configured down\n"), "{}", status.text());
    assert!(status.stderr.contains("turno link ls"), "{}", status.stderr);
    let id = near.run(&["send", "-q", "q", "x", "-o", "name"]).expect(0).text();
    let because = near.run(&["message", "explain", id.trim(), "--json"]).expect(0).json()["because"].clone();
    assert_eq!(because["reason"], "links_down");

    let _far = Broker::start_in_at(place, &target, &["--name", "rb-2"]);
    wait::until("it is up", || links(&near)[0]["state"] == "up");
    near.run(&["link", "rm", &target]).expect(0);
    assert_eq!(links(&near), Vec::<Value>::new());
}

/// By its address, or by the name or the id of the broker at its other end; names need not be unique.
#[test]
fn links_are_removed_by_any_of_their_names() {
    let (near, far) = pair();
    assert_eq!(near.run(&["link", "rm", "rb-9", "--json"]).expect(4).error_code(), "not_found");
    let removed = near.run(&["link", "rm", "rb-2"]).expect(0);
    assert_eq!(removed.text(), format!("removed the link to rb-2 ({})\n", address(&far)));
    assert_eq!(links(&near), Vec::<Value>::new());

    near.run(&["link", "add", &format!("turno://{}", address(&far))]).expect(0);
    let id = links(&near)[0]["broker"].as_str().expect("an id").to_owned();
    near.run(&["link", "rm", &id]).expect(0);
    near.run(&["link", "add", &address(&far)]).expect(0);
    near.run(&["link", "rm", &format!("turno://{}", address(&far))]).expect(0);
    assert_eq!(links(&near), Vec::<Value>::new(), "an address as `link add` takes it");

    let pair = named("rb-2");
    for broker in [&far, &pair] {
        near.run(&["link", "add", &address(broker)]).expect(0);
    }
    let run = near.run(&["link", "rm", "rb-2", "--json"]).expect(2);
    assert_eq!(run.error_code(), "ambiguous");
}

/// The broker that did not dial can end a link, but the one that dialled makes it again.
#[test]
fn a_link_that_the_other_end_dialled_comes_back() {
    let (near, far) = pair();
    let before = links(&near)[0]["since_at"].clone();
    let run = far.run(&["link", "rm", "rb-1"]).expect(0);
    assert!(run.stderr.contains("remove it there too"), "{}", run.stderr);
    wait::until("it is a new one", || {
        let row = &links(&near)[0];
        row["state"] == "up" && row["since_at"] != before
    });
}

/// That links come and go is in the log of both brokers, with names and the reason.
#[test]
fn links_are_in_the_log() {
    let (mut near, mut far) = pair();
    for (broker, name) in [(&mut near, "rb-2"), (&mut far, "rb-1")] {
        broker.process().expect_line(&format!("link up name=\"{name}\""));
    }
    near.run(&["link", "rm", "rb-2"]).expect(0);
    for (broker, name) in [(&mut near, "rb-2"), (&mut far, "rb-1")] {
        broker.process().expect_line(&format!("link down name=\"{name}\""));
    }
    near.run(&["link", "add", &address(&far)]).expect(0);
    far.kill();
    near.process().expect_line("code=link_down");
}

/// Removing a link brings back what crossed it.
#[test]
fn what_crossed_comes_back_when_its_link_is_removed() {
    let (near, far) = pair();
    let _worker = far.worker(&["slow", "--", "sleep", "60"]);
    wait::until("its slots are offered", || links(&near)[0]["offered"] != 0);
    near.run(&["send", "-q", "slow", "x"]).expect(0);
    wait::until("it crossed", || links(&near)[0]["backlog"] == 1);
    let run = near.run(&["link", "rm", "rb-2"]).expect(0);
    assert!(run.text().ends_with("; 1 message that had crossed comes back\n"), "{}", run.text());
    wait::until("it waits again", || near.queue("slow")["ready"] == 1);
}

/// Wrong addresses are told before anybody is asked; a broker has so many links and no more.
#[test]
fn bad_addresses_and_too_many_links() {
    let place = Place::new();
    for typed in ["", "rb-2:", "rb-2:70000", "rb 2:7460", "::1", "a:1,b:2", "unix:"] {
        let run = place.run(["link", "add", typed, "--json", "--url", "unix:/nowhere/turno.sock"]).expect(2);
        assert_eq!(run.error_code(), "bad_usage", "{typed:?}");
    }
    let broker = named("rb-1");
    for port in 1..=32 {
        broker.run(&["link", "add", &format!("127.0.0.1:{port}"), "--no-wait", "-q"]).expect(0);
    }
    let run = broker.run(&["link", "add", "127.0.0.1:33", "--no-wait", "--json"]).expect(1);
    assert_eq!(run.error_code(), "too_many_links");
    assert_eq!(links(&broker).len(), 32);
}
