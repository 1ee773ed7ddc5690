//! Options of libzmq's sockets that its programs rely on: each does with a broker what docs/reference/zeromq.md says.

use rustix::process::Signal;
use serde_json::{Value, json};
use turno_e2e::{Broker, Peer, Place, Port, ZmqProgram, ZmqSocket, wait};

/// Time in which a socket that takes nothing counts as full. On a slow machine it may be full too early, which no test minds.
const FULL_MS: u32 = 1_000;

/// An endpoint for DEALER sockets that work on the queue `zmq`, the second one of a broker.
const WORKERS: &str = "[[zmq.endpoint]]\nname = \"workers\"\nlisten = \"tcp://127.0.0.1:0\"\nrole = \"worker\"\n";

/// Requests may wait for as long as a test does.
const PATIENT: &str = "[request]\ndeadline = \"10m\"\n\n";

/// Options that no program can use with a broker, or whose effect is libzmq's alone.
const NOT_TRIED: [&str; 2] = ["INVERT_MATCHING", "SNDHWM` of PUB"];

/// The table of options in the page and the tests are about the same ones.
#[test]
fn every_option_of_the_page_is_tried() {
    let page = include_str!("../../../docs/reference/zeromq.md");
    let (_, table) = page.split_once("| option | with a broker |").expect("the table of options");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut tried = 0;
    for row in rows.filter(|row| !NOT_TRIED.iter().any(|option| row.contains(option))) {
        let options = row.split('|').nth(1).expect("a first column");
        for option in options.split('`').skip(1).step_by(2) {
            assert!(include_str!("zmq_habits.rs").contains(&format!("\"{option}\": ")), "{option}");
            tried += 1;
        }
    }
    assert!(tried > 10, "{tried} options");
}

fn ascending(count: usize) -> Vec<u64> {
    (0..count as u64).collect()
}

/// A worker says back what it gets, so many times.
fn echo(worker: &ZmqSocket<'_>, count: usize) {
    for _ in 0..count {
        let frames = worker.recv();
        worker.send(&frames);
    }
}

/// `SNDHWM` of a PUSH socket: it is full when the broker has no memory and reads no more. Nothing is lost, and all of it comes in
/// order to a PULL socket that takes one message at a time (`RCVHWM`).
#[test]
fn a_push_socket_is_held_back_and_loses_nothing() {
    let config = "[limits]\nmemory = \"8MiB\"\n";
    let flags = ["--zmq-listen", "127.0.0.1:0", "--memory"];
    let broker = Broker::start_for_zmq_in(Place::new(), config, &flags);
    let (program, url) = (ZmqProgram::start(), broker.zmq_url(0));
    let push = program.socket("PUSH", &json!({"SNDHWM": 10})).connect(&url);
    let sent = push.flood(8_000, 16_384, FULL_MS);
    assert!(sent < 8_000, "128 MB do not fit into a broker of 8 MiB and the buffers of a connection");
    let pull = program.socket("PULL", &json!({"RCVHWM": 1})).connect(&url);
    assert_eq!(pull.recv_numbers(sent), ascending(sent));
    assert_eq!(broker.endpoint("default")["refused"], 0);
}

/// `SNDHWM` of a DEALER socket that asks: it is full when too many of its requests have no outcome. Its answers wait for it, however
/// small its `RCVHWM` is.
#[test]
fn a_dealer_is_held_back_and_every_request_is_answered() {
    let broker = Broker::start_for_zmq(&format!("{PATIENT}[limits]\nin-flight = 20\n\n{WORKERS}"));
    let program = ZmqProgram::start();
    let dealer = program.socket("DEALER", &json!({"SNDHWM": 5, "RCVHWM": 1})).connect(&broker.zmq_url(0));
    let sent = dealer.flood(1_000, 65_536, FULL_MS);
    assert!(sent < 1_000, "64 MB do not fit into the buffers of a connection that is not read from");
    let workers = ZmqProgram::start();
    let worker = workers.socket("DEALER", &json!({})).connect(&broker.zmq_url(1));
    let mut heard = Vec::new();
    while heard.len() < sent {
        echo(&worker, 1);
        heard.extend(dealer.recv_numbers(1));
    }
    assert_eq!(heard, ascending(sent));
    let endpoint = broker.endpoint("default");
    assert_eq!((&endpoint["refused"], &endpoint["withheld"]), (&json!(0), &json!(0)));
}

/// `RCVHWM` of a worker below its slots: what it does not take yet waits for it, and it answers all of it.
#[test]
fn a_worker_has_fewer_places_than_slots() {
    // A socket that is full answers no PING.
    let broker = Broker::start_for_zmq(&format!("heartbeat = \"60s\"\n{PATIENT}{WORKERS}"));
    let program = ZmqProgram::start();
    let worker = program.socket("DEALER", &json!({"RCVHWM": 1})).connect(&broker.zmq_url(1));
    let dealer = program.socket("DEALER", &json!({})).connect(&broker.zmq_url(0));
    assert_eq!(dealer.flood(30, 100, FULL_MS), 30);
    wait::until("all its slots are in use", || broker.queue("zmq")["in_flight"] == 10);
    echo(&worker, 30);
    let mut heard = dealer.recv_numbers(30);
    heard.sort_unstable();
    assert_eq!(heard, ascending(30));
}

/// A SUB socket that does not take its events (`RCVHWM`) misses some, and is counted or closed for it. Those that it gets are in
/// order, and it goes on when it takes them again.
#[test]
fn a_slow_subscriber_misses_events() {
    const MANY: u64 = 40;
    let broker = Broker::start_for_zmq("");
    let program = ZmqProgram::start();
    let sub = program.socket("SUB", &json!({"RCVHWM": 1, "SUBSCRIBE": "t"})).connect(&broker.zmq_url(0));
    broker.await_subscribers(1);
    let mut publisher = Peer::greeted(broker.address(), 0);
    for number in 0..MANY {
        let mut body = number.to_string().into_bytes();
        body.resize(1 << 20, b' ');
        publisher.publish("t", &body, false);
    }
    publisher.sync();
    // After ten seconds it is closed.
    wait::until("it misses events", || broker.subscribers().iter().all(|row| row["dropped"] != 0));
    let mut heard = Vec::new();
    wait::until("it hears of what comes later", || {
        broker.publish("t.end", "1000");
        while sub.has_message() {
            heard.extend(sub.recv_numbers(1));
        }
        heard.last() == Some(&1_000)
    });
    heard.retain(|number| *number < MANY);
    assert!(!heard.is_empty() && heard.len() < usize::try_from(MANY).expect("few"), "{heard:?}");
    assert!(heard.is_sorted_by(|one, next| one < next), "{heard:?}");
}

/// `ROUTER_MANDATORY`: a worker that is a ROUTER hears at once that a peer is unknown. The broker is a peer that it knows.
#[test]
fn a_mandatory_router_knows_the_broker() {
    let broker = Broker::start_for_zmq("");
    let program = ZmqProgram::start();
    let router = program.socket("ROUTER", &json!({"ROUTER_MANDATORY": 1})).connect(&broker.zmq_url(0));
    let request = broker.start_turno(&["request", "zmq", "hi"]);
    let mut frames = router.recv();
    assert_eq!(router.try_send(&["somebody", "", "hello"]), "EHOSTUNREACH");
    frames.pop();
    frames.push(b"hello".to_vec());
    assert_eq!(router.try_send(&frames), "sent");
    request.expect_line("hello");
}

/// `ROUTER_HANDOVER` decides at a ROUTER of libzmq which of two peers with one identity is served. At a broker both are, as clients
/// and as workers.
#[test]
fn peers_with_one_identity_are_both_served() {
    let broker = Broker::start_for_zmq("");
    let (program, url) = (ZmqProgram::start(), broker.zmq_url(0));
    let [one, two] = [(); 2].map(|()| program.socket("DEALER", &json!({"IDENTITY": "same"})).connect(&url));
    one.send(&["of one"]);
    two.send(&["of two"]);
    wait::until("both requests wait", || broker.queue("zmq")["ready"] == 2);
    let options = json!({"IDENTITY": "same", "ROUTER_HANDOVER": 1});
    let workers = [(); 2].map(|()| program.socket("ROUTER", &options).connect(&url));
    wait::until("both work", || broker.workers() == 2);
    let mut left = 2;
    wait::until("both requests are answered", || {
        for worker in workers.iter().filter(|worker| worker.has_message()) {
            echo(worker, 1);
            left -= 1;
        }
        left == 0
    });
    assert_eq!((one.recv(), two.recv()), (vec![b"of one".to_vec()], vec![b"of two".to_vec()]));
    assert_eq!(broker.endpoint("default")["peers_all"], 4);
}

/// `REQ_RELAXED` with `REQ_CORRELATE`: a REQ socket gives a request up and asks anew. It gets the answer to its last request, though
/// the first one is answered as well. Without them it must wait.
#[test]
fn a_relaxed_req_socket_asks_anew() {
    let broker = Broker::start_for_zmq("");
    let program = ZmqProgram::start();
    let relaxed = json!({"REQ_RELAXED": 1, "REQ_CORRELATE": 1});
    let req = program.socket("REQ", &relaxed).connect(&broker.zmq_url(0));
    for body in ["first", "second"] {
        req.send(&[body]);
    }
    wait::until("both requests wait", || broker.queue("zmq")["ready"] == 2);
    let strict = program.socket("REQ", &json!({})).connect(&broker.zmq_url(0));
    strict.send(&["third"]);
    assert_eq!(strict.try_send(&["fourth"]), "EFSM");
    wait::until("three requests wait", || broker.queue("zmq")["ready"] == 3);
    let rep = program.socket("REP", &json!({})).connect(&broker.zmq_url(0));
    echo(&rep, 3);
    assert_eq!((req.recv(), strict.recv()), (vec![b"second".to_vec()], vec![b"third".to_vec()]));
    wait::until("all are answered", || broker.status()["counters"]["replied"] == 3);
    assert!(!req.has_message(), "libzmq drops the first answer");
}

/// `CONFLATE` keeps the last message, of sockets that receive and of those that send.
#[test]
fn a_conflated_socket_keeps_the_last_message() {
    let broker = Broker::start_for_zmq("");
    let (program, url) = (ZmqProgram::start(), broker.zmq_url(0));
    let sub = program.socket("SUB", &json!({"CONFLATE": 1, "SUBSCRIBE": "t"})).connect(&url);
    broker.await_subscribers(1);
    let publisher = program.socket("XPUB", &json!({})).connect(&url);
    assert_eq!(publisher.recv(), [b"\x01"]);
    for number in 0..100 {
        publisher.send(&[format!("t {number}")]);
    }
    let mut heard = Vec::new();
    while heard.last() != Some(&b"t 99".to_vec()) {
        heard.extend(sub.recv());
    }
    assert!(heard.len() <= 100 && !sub.has_message());
    let endpoint = broker.endpoint("default");
    assert_eq!((&endpoint["received"], &endpoint["sent"]), (&json!(100), &json!(100)), "the broker sends all of them");
    // Nobody is there yet, so that a PUSH socket keeps one message.
    let port = Port::reserve();
    let push = program.socket("PUSH", &json!({"CONFLATE": 1})).connect(&format!("tcp://{}", port.address()));
    assert_eq!(push.flood(100, 10, FULL_MS), 100);
    let broker = Broker::start_with(&["--zmq-listen", &port.address().to_string()]);
    wait::until("it is stored", || broker.queue("zmq")["ready"] == 1);
    let pull = program.socket("PULL", &json!({"CONFLATE": 1})).connect(&broker.zmq_url(0));
    assert_eq!(pull.recv_numbers(1), [99]);
}

/// `IMMEDIATE`: a socket takes messages only while it is connected. Without it, what is sent before the broker is there waits.
#[test]
fn messages_wait_for_the_broker_unless_they_are_immediate() {
    let program = ZmqProgram::start();
    let port = Port::reserve();
    let url = format!("tcp://{}", port.address());
    let immediate = program.socket("PUSH", &json!({"IMMEDIATE": 1})).connect(&url);
    let patient = program.socket("PUSH", &json!({})).connect(&url);
    assert_eq!(immediate.try_send(&["lost"]), "EAGAIN");
    assert_eq!(patient.try_send(&["waits"]), "sent");
    let broker = Broker::start_with(&["--zmq-listen", &port.address().to_string()]);
    wait::until("the one that waited is stored", || broker.queue("zmq")["ready"] == 1);
    immediate.send(&["now"]);
    wait::until("the other one is stored", || broker.queue("zmq")["ready"] == 2);
    let pull = program.socket("PULL", &json!({})).connect(&url);
    assert_eq!(pull.recv_many(2), [[b"waits".to_vec()], [b"now".to_vec()]]);
}

/// `XPUB_VERBOSE`: a publisher hears of one subscription, the broker's own to everything, however many subscribers the broker has.
#[test]
fn a_publisher_hears_of_the_broker_alone() {
    let broker = Broker::start_for_zmq("");
    let (program, url) = (ZmqProgram::start(), broker.zmq_url(0));
    for verbose in [0, 1] {
        let publisher = program.socket("XPUB", &json!({"XPUB_VERBOSE": verbose})).connect(&url);
        assert_eq!(publisher.recv(), [b"\x01"]);
        let subs = ["a", "a", "b"].map(|prefix| program.socket("SUB", &json!({"SUBSCRIBE": prefix})).connect(&url));
        broker.await_subscribers(subs.len());
        publisher.send(&["a", "x"]);
        publisher.send(&["b", "x"]);
        for (sub, topic) in subs.iter().zip([b"a", b"a", b"b"]) {
            assert_eq!(sub.recv(), [topic, b"x"]);
        }
        assert!(!publisher.has_message(), "it hears of nobody else");
        subs.into_iter().for_each(ZmqSocket::close);
        broker.await_subscribers(0);
        publisher.close();
    }
}

/// An XSUB socket says its subscriptions as messages, and what else it says is for nobody.
#[test]
fn an_xsub_socket_subscribes() {
    let broker = Broker::start_for_zmq("");
    let program = ZmqProgram::start();
    let xsub = program.socket("XSUB", &json!({})).connect(&broker.zmq_url(0));
    xsub.send(&["\u{1}news."]);
    broker.await_subscribers(1);
    xsub.send(&["for a publisher"]);
    broker.publish("other", "not wanted");
    broker.publish("news.a", "wanted");
    assert_eq!(xsub.recv(), [&b"news.a"[..], b"wanted"]);
    wait::until("its other message is counted", || broker.endpoint("default")["refused"] == 1);
    xsub.send(&["\0news."]);
    broker.await_subscribers(0);
}

/// `PROBE_ROUTER`: a DEALER socket says an empty message first, which is a request with an empty body; a worker's is dropped.
#[test]
fn a_probe_is_an_empty_message() {
    let broker = Broker::start_for_zmq(WORKERS);
    let program = ZmqProgram::start();
    let probe = json!({"PROBE_ROUTER": 1});
    let worker = program.socket("DEALER", &probe).connect(&broker.zmq_url(1));
    wait::until("the probe is counted", || broker.endpoint("workers")["bad_envelope"] == 1);
    let dealer = program.socket("DEALER", &probe).connect(&broker.zmq_url(0));
    dealer.send(&["hi"]);
    echo(&worker, 2);
    assert_eq!(dealer.recv_many(2), [[Vec::new()], [b"hi".to_vec()]]);
}

/// The address of the one peer of an endpoint with this identity.
fn address_of(broker: &Broker, endpoint: &str, identity: &str) -> Option<Value> {
    let peers = broker.endpoint(endpoint)["peers"].take();
    let peer = peers.as_array().expect("a list").iter().find(|peer| peer["identity"] == identity);
    peer.map(|peer| peer["address"].clone())
}

/// Without `HEARTBEAT_IVL` libzmq answers the broker's PING, with it the broker answers libzmq's: both stay connected for longer than
/// a peer may be silent. A program that is stopped is closed, and another worker gets its request.
#[test]
fn a_stopped_program_loses_its_work_to_another() {
    let asks = "[[zmq.endpoint]]\nname = \"clients\"\nlisten = \"tcp://127.0.0.1:0\"\nretries = 3\n";
    let broker = Broker::start_for_zmq(&format!("heartbeat = \"{}\"\n{PATIENT}{WORKERS}\n{asks}", wait::SHORT));
    let (stopped, program) = (ZmqProgram::start(), ZmqProgram::start());
    let first = stopped.socket("DEALER", &json!({"IDENTITY": "stopped"})).connect(&broker.zmq_url(1));
    let asks = program.socket("DEALER", &json!({"IDENTITY": "silent"})).connect(&broker.zmq_url(2));
    asks.send(&["hi"]);
    let _taken = first.recv();
    let beats =
        json!({"IDENTITY": "beats", "HEARTBEAT_IVL": 100, "HEARTBEAT_TIMEOUT": 60_000, "HEARTBEAT_TTL": 60_000});
    let second = program.socket("DEALER", &beats).connect(&broker.zmq_url(1));
    wait::until("both work", || broker.workers() == 2);
    let kept = || (address_of(&broker, "clients", "silent"), address_of(&broker, "workers", "beats"));
    let before = kept();
    stopped.signal(Signal::STOP);
    echo(&second, 1);
    assert_eq!(asks.recv(), [b"hi"]);
    assert_eq!(kept(), before);
    wait::until("it is closed", || address_of(&broker, "workers", "stopped").is_none());
    stopped.signal(Signal::CONT);
    wait::until("the program connects again", || broker.workers() == 2);
}

/// `HEARTBEAT_IVL` with `HEARTBEAT_TIMEOUT`: a program sees that the broker has stopped, connects again when it goes on, and is
/// answered.
#[test]
fn a_stopped_broker_is_noticed() {
    let mut broker = Broker::start_for_zmq("");
    let program = ZmqProgram::start();
    let beats = json!({"HEARTBEAT_IVL": 1_000, "HEARTBEAT_TIMEOUT": 4_000, "RECONNECT_IVL": 100});
    let asks = program.socket("DEALER", &beats).connect(&broker.zmq_url(0));
    asks.await_event("HANDSHAKE_SUCCEEDED");
    broker.process().signal(Signal::STOP);
    asks.await_event("DISCONNECTED");
    broker.process().signal(Signal::CONT);
    asks.await_event("HANDSHAKE_SUCCEEDED");
    let rep = program.socket("REP", &json!({})).connect(&broker.zmq_url(0));
    asks.send(&["hi"]);
    echo(&rep, 1);
    assert_eq!(asks.recv(), [b"hi"]);
}
