//! Programs with sockets of the real libzmq use a broker unchanged.

use serde_json::{Map, Value, json};
use turno_e2e::{Broker, Place, Pyzmq, wait};
use turno_proto::zmtp::curve::KeyPair;

const SERVER_SECRET: &str = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";
const CLIENT_SECRET: &str = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs";

fn connect(kind: &str, url: &str, more: &Value) -> Value {
    let mut given: Map<String, Value> = more.as_object().expect("a map").clone();
    given.insert("type".to_owned(), kind.into());
    given.insert("connect".to_owned(), url.into());
    given.into()
}

/// Every kind of asker with every kind of worker: messages of up to 100 frames, empty frames and frames of 8 MiB come back byte
/// for byte, with heartbeats and without.
#[test]
fn anyone_who_asks_is_answered_by_whoever_works() {
    let broker = Broker::start_for_zmq("[[zmq.endpoint]]\nlisten = \"tcp://127.0.0.1:0\"\nrole = \"worker\"\n");
    for (asker, heartbeats) in [("REQ", json!({})), ("DEALER", json!({"heartbeat_ms": 200}))] {
        for (worker, place) in [("REP", 0), ("DEALER", 1), ("ROUTER", 0)] {
            let works = Pyzmq::start("answer", &connect(worker, &broker.zmq_url(place), &heartbeats));
            let asks = Pyzmq::start("ask", &connect(asker, &broker.zmq_url(0), &heartbeats));
            asks.done();
            works.done();
            wait::until("the worker has gone", || broker.workers() == 0);
        }
    }
    let counters = &broker.status()["counters"];
    assert_eq!((&counters["late"], &counters["forged"]), (&json!(0), &json!(0)), "{counters}");
}

/// A program of ZeroMQ asks a native worker, and a native client asks a program of ZeroMQ.
#[test]
fn native_peers_are_at_the_other_end() {
    let broker = Broker::start_for_zmq("");
    let worker = broker.worker(&["zmq", "--", "tr", "a-z", "A-Z"]);
    for kind in ["REQ", "DEALER"] {
        Pyzmq::start("shout", &connect(kind, &broker.zmq_url(0), &json!({}))).done();
    }
    drop(worker);
    wait::until("the worker has gone", || broker.workers() == 0);
    let works = Pyzmq::start("answer", &connect("REP", &broker.zmq_url(0), &json!({})));
    assert_eq!(broker.run(&["request", "zmq", "good morning"]).expect(0).text(), "good morning");
    // A send is settled by the reply, too.
    broker.run(&["send", "zmq", "bye"]).expect(0);
    works.done();
    // Two requests of two askers, one of a native client, and the send.
    wait::until("the send is settled", || broker.status()["counters"]["replied"] == 3 + 3 + 1 + 1);
}

/// Many requests of one DEALER at once, each with its own answer.
#[test]
fn a_dealer_has_many_requests_in_flight() {
    let broker = Broker::start_for_zmq("");
    let worker = Pyzmq::start("answer", &connect("ROUTER", &broker.zmq_url(0), &json!({})));
    Pyzmq::start("flood", &connect("DEALER", &broker.zmq_url(0), &json!({}))).done();
    worker.done();
}

/// A message that is pushed is stored, and pulled later; a native worker gets it as well.
#[test]
fn what_is_pushed_is_pulled() {
    let broker = Broker::start_for_zmq("");
    Pyzmq::start("push", &connect("PUSH", &broker.zmq_url(0), &json!({}))).done();
    wait::until("all of it is stored", || broker.status()["counters"]["sends"] == 6);
    Pyzmq::start("pull", &connect("PULL", &broker.zmq_url(0), &json!({}))).done();
    wait::until("all of it is done", || broker.status()["counters"]["acked"] == 6);
}

/// Each mechanism, and who is refused.
#[test]
fn mechanisms_say_who_may_connect() {
    let keys = |secret| KeyPair::from_secret_text(secret).expect("a key").public().to_string();
    let config = format!(
        "[[zmq.endpoint]]\nlisten = \"tcp://127.0.0.1:0\"\nmechanism = \"plain\"\nusers = {{ ann = \"secret\" }}\n\n\
         [[zmq.endpoint]]\nname = \"locked\"\nlisten = \"tcp://127.0.0.1:0\"\nmechanism = \"curve\"\n\
         secret-key = '{SERVER_SECRET}'\nclient-keys = ['{}']\n",
        keys(CLIENT_SECRET)
    );
    let broker = Broker::start_for_zmq(&config);
    let _worker = Pyzmq::start("answer", &connect("ROUTER", &broker.zmq_url(0), &json!({})));
    let server_key = keys(SERVER_SECRET);
    let plain = |password: &str| json!({"user": "ann", "password": password});
    let curve = |secret: &str| json!({"curve_secret": secret, "server_key": server_key});
    let table = [
        (1, plain("secret"), "succeeded"),
        (1, plain("guess"), "not understood"),
        (1, json!({}), "not understood"),
        (2, curve(CLIENT_SECRET), "succeeded"),
        (2, curve(SERVER_SECRET), "refused 400"),
    ];
    for (place, given, told) in table {
        let program = Pyzmq::start("handshake", &connect("DEALER", &broker.zmq_url(place), &given));
        assert_eq!(program.done().trim(), told, "{given}");
    }
    Pyzmq::start("ask", &connect("REQ", &broker.zmq_url(1), &plain("secret"))).done();
    let _worker = Pyzmq::start("answer", &connect("ROUTER", &broker.zmq_url(0), &json!({})));
    Pyzmq::start("ask", &connect("DEALER", &broker.zmq_url(2), &curve(CLIENT_SECRET))).done();
}

/// Publications of ZeroMQ reach subscribers of ZeroMQ and native ones, and the other way round.
#[test]
fn publications_cross() {
    let config = "[[zmq.endpoint]]\nlisten = \"tcp://127.0.0.1:0\"\ntopic = \"plant.\"\n";
    let broker = Broker::start_for_zmq(config);
    let mut native = broker.start_turno(&["sub", "plant.>", "--count", "4", "-o", "jsonl"]);
    let mut given = connect("SUB", &broker.zmq_url(1), &json!({}));
    given["subscribe"] = json!(["news.", "weather 8", "end"]);
    let subscriber = Pyzmq::start("hear_news", &given);
    let filters = || broker.subscribers().iter().filter_map(|one| one["filters_all"].as_u64()).sum::<u64>();
    wait::until("all subscriptions are there", || filters() == 4);
    Pyzmq::start("tell_news", &connect("XPUB", &broker.zmq_url(1), &json!({}))).done();
    broker.run(&["pub", "plant.end", "of a native client"]).expect(0);
    subscriber.done();
    assert_eq!(native.end(wait::PATIENCE), 0);
    let topic = |line: &String| serde_json::from_str::<Value>(line).expect("JSON")["topic"].take();
    let topics: Vec<Value> = native.stdout().iter().map(topic).collect();
    assert_eq!(topics, ["plant.news.a", "plant.other", "plant.weather", "plant.end"]);
}

/// `turno zmq` and `turno status` show endpoints, who is there, and what was dropped.
#[test]
fn endpoints_and_peers_are_shown() {
    let users = "[[zmq.endpoint]]\nname = \"shop\"\nlisten = \"tcp://127.0.0.1:0\"\nqueue = \"orders\"\n\
                 mechanism = \"plain\"\nusers = { ann = \"secret\" }\n";
    let broker = Broker::start_for_zmq(users);
    let given = json!({"user": "ann", "password": "secret", "identity": "till 7"});
    let _worker = Pyzmq::start("answer", &connect("ROUTER", &broker.zmq_url(1), &given));
    wait::until("the worker is there", || broker.workers() == 1);
    let refused =
        Pyzmq::start("handshake", &connect("REQ", &broker.zmq_url(1), &json!({"user": "ann", "password": "guess"})));
    refused.done();
    let listed = broker.run(&["zmq", "ls", "--json"]).expect(0).document("turno.zmq_list/1");
    let names: Vec<&Value> = listed["endpoints"].as_array().expect("a list").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["default", "lmq", "shop"]);
    let rows = broker.run(&["zmq", "ls", "-o", "jsonl"]).expect(0).text();
    assert!(rows.lines().all(|row| row.contains("turno.zmq_row/1")), "{rows}");
    let shown = broker.run(&["zmq", "show", "shop", "--json"]).expect(0).document("turno.zmq/1");
    let shop = &shown["endpoint"];
    assert_eq!(
        (&shop["address"], &shop["queue"], &shop["mechanism"]),
        (&broker.zmq_url(1).into(), &"orders".into(), &"PLAIN".into())
    );
    assert_eq!((&shop["peers_all"], &shop["bad_handshake"]), (&json!(1), &json!(1)));
    let peer = &shop["peers"][0];
    assert_eq!(
        (&peer["socket"], &peer["identity"], &peer["user"]),
        (&json!("ROUTER"), &json!("till 7"), &json!("ann"))
    );
    assert!(broker.run(&["zmq", "show", "shop"]).expect(0).text().contains("ROUTER 127.0.0.1:"));
    assert_eq!(broker.run(&["zmq", "show", "nothing", "--json"]).expect(4).json()["error"]["code"], "not_found");
    let status = broker.run(&["status"]).expect(0).text();
    let line = status.lines().find(|line| line.starts_with("ZeroMQ at")).expect("a line about ZeroMQ");
    assert!(line.contains(&broker.zmq_url(0)) && line.ends_with("1 peer"), "{line}");
}

/// Peers that come before the broker, and a broker that comes again: libzmq connects by itself.
#[test]
fn peers_come_before_the_broker_and_stay_after_it() {
    let place = Place::new();
    let port = turno_e2e::Port::reserve();
    let address = port.address().to_string();
    let url = format!("tcp://{address}");
    let works = Pyzmq::start("answer", &connect("REP", &url, &json!({})));
    let asks = Pyzmq::start("ask_twice", &connect("DEALER", &url, &json!({})));
    let mut broker = Broker::start_in(place, &["--zmq-listen", &address]);
    wait::until("the first request is answered", || broker.status()["counters"]["replied"] == 1);
    wait::until("its worker is there", || broker.workers() == 1);
    assert_eq!(broker.terminate(wait::PATIENCE), 0);
    let _broker = Broker::start_in(broker.into_place(), &["--zmq-listen", &address]);
    asks.done();
    works.done();
}

/// A second broker takes a free port for ZeroMQ, and says which.
#[test]
fn the_usual_port_may_be_taken() {
    let brokers = [Broker::start(), Broker::start()];
    let urls: Vec<String> = brokers.iter().map(|broker| broker.zmq_url(0)).collect();
    assert_ne!(urls[0], urls[1]);
    assert!(urls.iter().all(|url| url.starts_with("tcp://127.0.0.1:")), "{urls:?}");
    let none = Broker::start_with(&["--zmq-listen", "none"]);
    assert_eq!(none.ready()["zmq"], json!([]));
    let ipc = none.place.path().join("zmq").display().to_string();
    let broker = Broker::start_for_zmq(&format!("[[zmq.endpoint]]\nlisten = \"ipc://{ipc}\"\n"));
    let works = Pyzmq::start("answer", &connect("REP", &format!("ipc://{ipc}"), &json!({})));
    assert_eq!(broker.run(&["request", "zmq", "bye"]).expect(0).text(), "bye");
    works.done();
}
