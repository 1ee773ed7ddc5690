//! LMQ of document 000 with sockets of the real libzmq: its bytes, its workers and its addresses.

use serde_json::{Value, json};
use turno_e2e::{Broker, ZmqProgram, ZmqSocket, wait};
use turno_proto::lmq::VERSION;

const PING: &[u8] = &[1];
const PONG: &[u8] = &[2];
const EXEC: &[u8] = &[3];
const TRACKEXEC: &[u8] = &[4];
const RESPONSE: &[u8] = &[6];

type Frames = Vec<Vec<u8>>;

fn broker() -> (Broker, String) {
    let broker = Broker::start_with(&["--lmq-listen", "127.0.0.1:0"]);
    let url = broker.lmq_url();
    (broker, url)
}

/// Frames from the empty one to the one that ends the arguments.
fn message(command: &[u8], id: &[u8], arguments: &[&[u8]]) -> Frames {
    let front = [b"", VERSION, command, id];
    front.iter().chain(arguments).chain(&[&b""[..]]).map(|frame| frame.to_vec()).collect()
}

/// The same with addresses on top and behind.
fn between(top: &[&[u8]], message: Frames, senders: &[&[u8]]) -> Frames {
    let own = |frames: &[&[u8]]| frames.iter().map(|frame| frame.to_vec()).collect::<Frames>();
    [own(top), message, own(senders)].concat()
}

/// A worker: a DEALER socket, or others behind it.
struct LmqWorker<'a> {
    socket: ZmqSocket<'a>,
}

impl<'a> LmqWorker<'a> {
    fn connect(program: &'a ZmqProgram, url: &str, identity: &str) -> Self {
        Self { socket: program.socket("DEALER", &json!({ "IDENTITY": identity })).connect(url) }
    }

    /// One that has registered.
    fn new(program: &'a ZmqProgram, url: &str, identity: &str, slots: &str) -> Self {
        let worker = Self::connect(program, url, identity);
        worker.register(slots, &[]);
        worker
    }

    /// Registers itself, or the worker with these addresses, and waits for the answer.
    fn register(&self, slots: &str, senders: &[&[u8]]) {
        self.socket.send(&between(&[], message(TRACKEXEC, b"reg", &[&[8], slots.as_bytes()]), senders));
        let top: Vec<&[u8]> = senders.iter().rev().copied().collect();
        assert_eq!(self.socket.recv(), between(&top, message(RESPONSE, b"reg", &[]), &[]));
    }

    fn deregister(&self, senders: &[&[u8]]) {
        self.socket.send(&between(&[], message(EXEC, b"WORKER", &[&[9]]), senders));
    }

    fn increment(&self, senders: &[&[u8]]) {
        self.socket.send(&between(&[], message(EXEC, b"inc", &[&[7]]), senders));
    }

    /// The next request, as far as its arguments, and the address of its caller.
    fn request(&self) -> (Frames, Vec<u8>) {
        let mut frames = self.socket.recv();
        let caller = frames.pop().expect("an address");
        (frames, caller)
    }

    /// Answers a request that is a PING with these arguments.
    fn answers(&self, (frames, caller): &(Frames, Vec<u8>), arguments: &[&[u8]]) {
        self.socket.send(&between(&[caller], message(RESPONSE, &frames[frames.len() - 3], arguments), &[]));
    }

    /// Nothing came before the answer to this PING: the broker has dealt with all that was sent.
    fn hears_nothing_else(&self) {
        hears_nothing_else(&self.socket);
    }
}

fn hears_nothing_else(socket: &ZmqSocket<'_>) {
    socket.send(&message(PING, b"there", &[]));
    assert_eq!(socket.recv(), message(PONG, b"there", &[]));
}

fn ping(id: &[u8]) -> Frames {
    message(TRACKEXEC, id, &[PING])
}

fn counted(broker: &Broker, what: &str) -> u64 {
    broker.endpoint("lmq")[what].as_u64().expect("a count")
}

/// Proves S0.1, S0.2, S0.3, S0.8, S0.16, S0.32, S0.33, S0.34, S0.35, S0.37 and S0.48: a client that was made for a plain server
/// sends and gets the same frames with a broker and a worker; only the address differs, and the broker logs no error.
#[test]
fn a_client_of_a_plain_server_works_with_its_address_changed() {
    let (broker, url) = broker();
    let program = ZmqProgram::start();
    // ROUTER sockets at both ends, as in the programs of the document: a message begins with the identity of its receiver.
    let plain = program.socket("ROUTER", &json!({ "IDENTITY": "ipc:///plain" }));
    let at = broker.place.path().join("plain");
    let at = format!("ipc://{}", at.display());
    let plain = plain.bind(&at);
    let worker = LmqWorker::new(&program, &url, "worker-1", "10");
    let mut answers = Vec::new();
    for (server, address) in [("ipc:///plain", at.as_str()), (url.as_str(), url.as_str())] {
        let options = json!({ "IDENTITY": "client-1", "ROUTER_MANDATORY": 1 });
        let client = program.socket("ROUTER", &options).connect(address);
        let sent = between(&[server.as_bytes()], ping(b"\0\0\0\x05"), &[]);
        wait::until("the server is known", || client.try_send(&sent) == "sent");
        if server == url {
            let request = worker.request();
            assert_eq!(request.0, ping(b"\0\0\0\x05"), "version, command, id and arguments as they were");
            worker.answers(&request, &[b"here", b"", b"\xff"]);
            worker.increment(&[]);
        } else {
            let mut request = plain.recv();
            assert_eq!(request.split_off(1), ping(b"\0\0\0\x05"));
            plain.send(&between(&[&request[0]], message(RESPONSE, b"\0\0\0\x05", &[b"here", b"", b"\xff"]), &[]));
        }
        let mut answer = client.recv();
        assert_eq!(answer.remove(0), server.as_bytes());
        answers.push(answer);
        client.close();
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(counted(&broker, "bad_envelope") + counted(&broker, "refused"), 0);
    let log = broker.log();
    assert!(!log.contains("ERROR") && !log.contains("WARN") && !log.contains("dropping"), "{log}");
}

/// Proves S0.16, S0.17, S0.20 and S0.27: an answer gives no slot back, INCREMENT does; a worker may be free without an answer; beyond its
/// slots nothing comes of it.
#[test]
fn a_slot_comes_back_with_increment_alone() {
    let (broker, url) = broker();
    let program = ZmqProgram::start();
    let worker = LmqWorker::new(&program, &url, "w", "1");
    let client = program.socket("DEALER", &json!({})).connect(&url);
    let count = |what: &str| broker.status()["counters"][what].as_u64().expect("a count");
    worker.increment(&[]);
    wait::until("the broker has heard it", || count("late") == 1);
    for id in [b"1", b"2", b"3"] {
        client.send(&ping(id));
    }
    let first = worker.request();
    worker.answers(&first, &[]);
    assert_eq!(client.recv(), message(RESPONSE, b"1", &[]));
    worker.hears_nothing_else();
    worker.increment(&[]);
    let second = worker.request();
    assert_eq!(second.0, ping(b"2"));
    worker.increment(&[]);
    let third = worker.request();
    assert_eq!(third.0, ping(b"3"));
    worker.answers(&second, &[]);
    worker.answers(&third, &[]);
    assert_eq!([client.recv(), client.recv()], [message(RESPONSE, b"2", &[]), message(RESPONSE, b"3", &[])]);
    // Late and doubled: dropped.
    worker.answers(&third, &[b"again"]);
    worker.answers(&first, &[b"again"]);
    hears_nothing_else(&worker.socket);
    hears_nothing_else(&client);
    assert_eq!(count("late") + count("doubled"), 3, "the first INCREMENT, and two answers");
}

/// Proves S0.47 on the bytes: EXEC reaches the worker as EXEC, and its caller hears nothing.
#[test]
fn exec_wants_no_answer() {
    let (_broker, url) = broker();
    let program = ZmqProgram::start();
    let worker = LmqWorker::new(&program, &url, "w", "1");
    let client = program.socket("DEALER", &json!({})).connect(&url);
    client.send(&message(EXEC, b"e", &[PING]));
    client.send(&ping(b"t"));
    let quiet = worker.request();
    assert_eq!(quiet.0, message(EXEC, b"e", &[PING]));
    worker.answers(&quiet, &[b"unasked"]);
    worker.increment(&[]);
    let asked = worker.request();
    worker.answers(&asked, &[]);
    assert_eq!(client.recv(), message(RESPONSE, b"t", &[]), "the first answer that comes");
}

/// Proves S0.9, S0.12, S0.14, S0.15, S0.19 and S0.23: workers behind one connection are told apart by their addresses; the same address
/// overwrites its slots; DEREGISTER removes the one it names, and recalls nothing.
#[test]
fn a_worker_is_its_address_not_its_connection() {
    let (broker, url) = broker();
    let program = ZmqProgram::start();
    let forwarder = LmqWorker::connect(&program, &url, "forwarder");
    forwarder.register("1", &[b"w1"]);
    forwarder.register("1", &[b"w2", b"hop"]);
    forwarder.register("1", &[b"w2", b"hop"]);
    let list = broker.run(&["worker", "ls", "--json"]).expect(0).json();
    let names: Vec<&str> =
        list["workers"].as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["w1", "hop/w2"]);
    let client = program.socket("DEALER", &json!({})).connect(&url);
    for id in [b"1", b"2", b"3"] {
        client.send(&ping(id));
    }
    let first = forwarder.request();
    assert_eq!(first.0, between(&[b"w1"], ping(b"1"), &[]));
    let second = forwarder.request();
    assert_eq!(second.0, between(&[b"hop", b"w2"], ping(b"2"), &[]));
    forwarder.hears_nothing_else();
    forwarder.register("2", &[b"w1"]);
    let third = forwarder.request();
    assert_eq!(third.0, between(&[b"w1"], ping(b"3"), &[]), "one of two slots is in use");
    forwarder.deregister(&[b"w1"]);
    forwarder.deregister(&[b"w1"]);
    forwarder.deregister(&[b"nobody"]);
    forwarder.socket.send(&between(&[], message(TRACKEXEC, b"d", &[&[9]]), &[b"nobody"]));
    forwarder.increment(&[b"nobody"]);
    for request in [&third, &second, &first] {
        forwarder.answers(request, &[]);
    }
    assert_eq!([client.recv(), client.recv(), client.recv()].map(|frames| frames[3].clone()), [b"3", b"2", b"1"]);
    forwarder.increment(&[b"w2", b"hop"]);
    client.send(&ping(b"4"));
    assert_eq!(forwarder.request().0, between(&[b"hop", b"w2"], ping(b"4"), &[]), "w1 is gone");
    assert_eq!(counted(&broker, "bad_envelope"), 4, "addresses that nobody has, silently");
    assert_eq!(broker.workers(), 1);
}

/// A worker that comes again over another connection takes its address with it; what it held is answered where it is.
#[test]
fn two_connections_with_one_address() {
    let (broker, url) = broker();
    let program = ZmqProgram::start();
    let before = LmqWorker::connect(&program, &url, "before");
    before.register("1", &[b"w"]);
    let client = program.socket("DEALER", &json!({})).connect(&url);
    client.send(&ping(b"1"));
    let held = before.request();
    let ready = || {
        let list = broker.run(&["worker", "ls", "--json"]).expect(0).json()["workers"].take();
        let mut ready = list.as_array().expect("a list").iter().filter(|worker| worker["state"] == "ready");
        ready.next().map(|worker| worker["address"].clone())
    };
    let first = ready();
    let after = LmqWorker::connect(&program, &url, "after");
    after.register("1", &[b"w"]);
    wait::until("the worker has moved", || ready().is_some_and(|address| Some(&address) != first.as_ref()));
    client.send(&ping(b"2"));
    let got = after.request();
    assert_eq!(got.0, between(&[b"w"], ping(b"2"), &[]));
    before.answers(&held, &[]);
    assert_eq!(client.recv(), message(RESPONSE, b"1", &[]));
    before.increment(&[b"w"]);
    client.send(&ping(b"3"));
    before.hears_nothing_else();
    after.answers(&got, &[]);
    after.increment(&[b"w"]);
    assert_eq!(after.request().0, between(&[b"w"], ping(b"3"), &[]));
}

/// What a lost connection held goes to another worker, if `retries` allows that.
#[test]
fn a_lost_connection_ends_its_workers() {
    let config = "[[zmq.endpoint]]\nname = \"lmq\"\nlisten = \"tcp://127.0.0.1:0\"\nqueue = \"pings\"\nrole = \"lmq\"\nretries = 1\n";
    let broker = Broker::start_for_zmq_in(turno_e2e::Place::new(), config, &["--lmq-listen", "none"]);
    let (program, url) = (ZmqProgram::start(), broker.lmq_url());
    let lost = LmqWorker::connect(&program, &url, "lost");
    lost.register("1", &[b"a"]);
    lost.register("1", &[b"b"]);
    let client = program.socket("DEALER", &json!({})).connect(&url);
    client.send(&ping(b"1"));
    client.send(&ping(b"2"));
    lost.request();
    lost.request();
    lost.socket.close();
    wait::until("its workers are gone", || broker.workers() == 0);
    let other = LmqWorker::new(&program, &url, "other", "2");
    for _ in 0..2 {
        let request = other.request();
        other.answers(&request, &[]);
    }
    assert_eq!([client.recv()[3].clone(), client.recv()[3].clone()].concat().len(), 2);
}

/// Proves S0.33 and S0.36: a message with the address of a peer on top passes to it byte for byte, with its sender behind; one for nobody
/// is dropped, and counted.
#[test]
fn a_message_with_an_address_on_top_passes() {
    let (broker, url) = broker();
    let program = ZmqProgram::start();
    let worker = LmqWorker::new(&program, &url, "worker", "1");
    let client = program.socket("DEALER", &json!({ "IDENTITY": "client" })).connect(&url);
    let more = message(TRACKEXEC, b"\0\xff", &[b"mqs_more", b"", b"\0\x01"]);
    client.send(&between(&[b"nobody"], more.clone(), &[]));
    client.send(&between(&[b"worker"], more.clone(), &[]));
    assert_eq!(worker.socket.recv(), between(&[], more, &[b"client"]));
    let answer = message(RESPONSE, b"\0\xff", &[b"data"]);
    worker.socket.send(&between(&[b"client"], answer.clone(), &[]));
    assert_eq!(client.recv(), between(&[], answer, &[b"worker"]));
    assert_eq!(counted(&broker, "refused"), 1);
    assert_eq!(broker.status()["in_flight"], 0, "nothing is tracked");
}

/// Proves S0.13: bad input is dropped and counted or answered with an error, and the connection goes on.
#[test]
fn bad_input_is_dropped_and_counted() {
    let (broker, url) = broker();
    let program = ZmqProgram::start();
    let socket = program.socket("DEALER", &json!({ "IDENTITY": "bad" })).connect(&url);
    let bad: [Frames; 6] = [
        vec![b"hello".to_vec()],
        vec![b"".to_vec(), b"LMQv200".to_vec(), TRACKEXEC.to_vec(), b"1".to_vec(), b"".to_vec()],
        vec![VERSION.to_vec(), TRACKEXEC.to_vec(), b"1".to_vec()],
        message(&[9], b"1", &[]),
        message(RESPONSE, b"1", &[]),
        between(&[&[0; 13]], message(RESPONSE, b"1", &[]), &[]),
    ];
    for frames in &bad {
        socket.send(frames);
    }
    hears_nothing_else(&socket);
    assert_eq!(counted(&broker, "bad_envelope"), bad.len() as u64);
    for (slots, shown) in [("0", 0), ("-1", 0), ("1000000000", 1_000_000)] {
        socket.send(&message(TRACKEXEC, b"r", &[&[8], slots.as_bytes()]));
        assert_eq!(socket.recv(), message(RESPONSE, b"r", &[]));
        let list = broker.run(&["worker", "ls", "--json"]).expect(0).json();
        assert_eq!(list["workers"][0]["slots"], shown, "{slots}");
    }
    socket.send(&message(TRACKEXEC, b"r", &[&[8], b"ten"]));
    assert_eq!(socket.recv()[4], b"bad_slots");
    assert_eq!(broker.workers(), 1, "and nothing changed");
}

/// Native clients are answered by LMQ workers, and LMQ clients by `turno work`: arguments are parts.
#[test]
fn lmq_meets_native_programs() {
    let (broker, url) = broker();
    let program = ZmqProgram::start();
    let client = program.socket("DEALER", &json!({})).connect(&url);
    client.send(&message(TRACKEXEC, b"1", &[b"shout"]));
    let shouter = broker.worker(&["lmq", "--", "tr", "a-z", "A-Z"]);
    assert_eq!(client.recv(), message(RESPONSE, b"1", &[b"SHOUT"]));
    drop(shouter);
    wait::until("it is gone", || broker.workers() == 0);
    let worker = LmqWorker::new(&program, &url, "w", "1");
    let mut asked = broker.start_turno(&["request", "lmq", "hello"]);
    let request = worker.request();
    assert_eq!((&request.0[2][..], &request.0[4][..]), (TRACKEXEC, &b"hello"[..]));
    worker.answers(&request, &[b"hi"]);
    assert_eq!(asked.end(wait::PATIENCE), 0);
    assert_eq!(asked.stdout(), ["hi"]);
}

/// The usual endpoint is shown, and `none` turns it off.
#[test]
fn the_usual_endpoint_is_shown_and_can_be_turned_off() {
    let with = Broker::start();
    let url = with.lmq_url();
    assert_eq!(with.endpoint("lmq")["address"], url.as_str());
    assert_eq!(with.endpoint("lmq")["role"], "lmq");
    let status = with.run(&["status"]).expect(0).text();
    assert!(status.contains(&format!("LMQ at        {url}")) || status.contains(&url), "{status}");
    let without = Broker::start_with(&["--lmq-listen", "none"]);
    assert_eq!(without.ready()["lmq"], Value::Array(Vec::new()));
}
