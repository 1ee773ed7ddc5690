//! Majordomo of both versions beside native clients and workers, with sockets of the real libzmq.

use serde_json::{Value, json};
use turno_e2e::{Broker, Peer, ZmqProgram, ZmqSocket, wait};
use turno_proto::model::{Delivery, Slots};

/// A worker of Majordomo.
struct MdpWorker<'a> {
    socket: ZmqSocket<'a>,
    header: &'static [u8],
    last: u8,
}

impl<'a> MdpWorker<'a> {
    fn new(program: &'a ZmqProgram, url: &str, version: usize, service: &str) -> Self {
        let socket = program.socket("DEALER", &json!({})).connect(url);
        let (header, last): (&[u8], u8) = [(&b"MDPW01"[..], 3), (b"MDPW02", 4)][version - 1];
        socket.send(&[b"", header, b"\x01", service.as_bytes()]);
        socket.beat(&[b"", header, &[last + 1]]);
        Self { socket, header, last }
    }

    /// Sends back what it is asked, in capitals.
    fn shout(&self) {
        loop {
            let frames = self.socket.recv();
            // HEARTBEATs come as well.
            if frames[2] == [2] {
                let body = frames[5].to_ascii_uppercase();
                return self.socket.send(&[b"", self.header, &[self.last], &frames[3], b"", &body]);
            }
        }
    }
}

/// A worker of a service, of any kind.
enum Worker<'a> {
    Mdp(MdpWorker<'a>),
    Native(Peer),
    /// `turno work`, which needs nobody to make it answer.
    Program,
}

impl Worker<'_> {
    fn shout(&mut self) {
        match self {
            Self::Mdp(worker) => worker.shout(),
            Self::Native(peer) => {
                let (delivery, body, _) = peer.delivery();
                peer.reply(delivery, &body.to_ascii_uppercase());
            }
            Self::Program => {}
        }
    }
}

/// Clients of both versions and native ones are answered by workers of both versions, by native ones and by `turno work`.
#[test]
fn everybody_answers_everybody() {
    let broker = Broker::start_for_zmq("");
    let (program, url) = (ZmqProgram::start(), broker.zmq_url(0));
    let _program = broker.worker(&["program", "--", "tr", "a-z", "A-Z"]);
    let native = Peer::worker(broker.address(), "native", Slots::Limited(1), "native");
    let workers = [
        ("one", Worker::Mdp(MdpWorker::new(&program, &url, 1, "one"))),
        ("two", Worker::Mdp(MdpWorker::new(&program, &url, 2, "two"))),
        ("native", Worker::Native(native)),
        ("program", Worker::Program),
    ];
    let first = program.socket("REQ", &json!({})).connect(&url);
    let second = program.socket("DEALER", &json!({})).connect(&url);
    wait::until("all work", || broker.workers() == workers.len());
    for (service, mut worker) in workers {
        let name = service.as_bytes();
        first.send(&[b"MDPC01", name, b"of one"]);
        worker.shout();
        assert_eq!(first.recv(), [b"MDPC01", name, b"OF ONE"]);
        second.send(&[&b"MDPC02"[..], b"\x01", name, b"of two"]);
        worker.shout();
        assert_eq!(second.recv(), [&b"MDPC02"[..], b"\x03", name, b"OF TWO"]);
        let request = broker.start_turno(&["request", service, "of a native client"]);
        worker.shout();
        request.expect_line("OF A NATIVE CLIENT");
    }
}

/// What a worker holds: enough to answer it.
enum Held<'a> {
    Frames(&'a ZmqSocket<'a>, Vec<Vec<u8>>),
    Mdp(&'a MdpWorker<'a>),
    Native(Delivery, Vec<u8>),
}

/// Slots have one account: a queue with workers of every kind has as many messages at workers as all of them have slots, and no worker
/// has more than its own.
#[test]
fn workers_of_all_kinds_have_one_account_of_slots() {
    let config = "[request]\ndeadline = \"10m\"\n\n\
                  [[zmq.endpoint]]\nname = \"plain\"\nlisten = \"tcp://127.0.0.1:0\"\nqueue = \"echo\"\n\
                  role = \"worker\"\nslots = 2\n";
    let broker = Broker::start_for_zmq(config);
    let (program, url) = (ZmqProgram::start(), broker.zmq_url(0));
    let [one, two] = [1, 2].map(|version| MdpWorker::new(&program, &url, version, "echo"));
    let plain = ["REP", "DEALER", "ROUTER"].map(|kind| program.socket(kind, &json!({})).connect(&broker.zmq_url(1)));
    let mut native = Peer::worker(broker.address(), "echo", Slots::Limited(3), "native");
    wait::until("all work", || broker.workers() == 6);
    // Two of Majordomo with one slot each, REP with one, DEALER and ROUTER with two, and the native one with three.
    let slots = 1 + 1 + 1 + 2 + 2 + 3;
    let used = |broker: &Broker| {
        let listed = broker.run(&["worker", "ls", "--json"]).expect(0).json()["workers"].take();
        let workers = listed.as_array().expect("a list").clone();
        assert!(workers.iter().all(|worker| worker["used"].as_u64() <= worker["slots"].as_u64()), "{workers:?}");
        let sum = |key: &str| workers.iter().filter_map(|worker| worker[key].as_u64()).sum::<u64>();
        (sum("used"), sum("slots"))
    };
    assert_eq!(used(&broker), (0, slots));
    let mdp = program.socket("DEALER", &json!({})).connect(&url);
    let mut client = Peer::client(broker.address(), "echo");
    for _ in 0..slots {
        mdp.send(&[b"MDPC02", &b"\x01"[..], b"echo", b"of majordomo"]);
        client.request(b"of a native client");
    }
    wait::until("all slots are in use", || broker.queue("echo")["in_flight"] == slots);
    wait::until("the others wait", || broker.queue("echo")["ready"] == slots);
    assert_eq!((used(&broker), &broker.queue("echo")["slots_free"]), ((slots, slots), &json!(0)));
    // Each slot that becomes free takes one that waits: every worker answers as often as it has slots, twice.
    for _ in 0..2 {
        let mut held = vec![Held::Mdp(&one), Held::Mdp(&two)];
        for (socket, count) in plain.iter().zip([1, 2, 2]) {
            held.extend((0..count).map(|_| Held::Frames(socket, socket.recv())));
        }
        held.extend((0..3).map(|_| native.delivery()).map(|(delivery, body, _)| Held::Native(delivery, body)));
        for one in held {
            match one {
                Held::Mdp(worker) => worker.shout(),
                Held::Frames(socket, frames) => socket.send(&frames),
                Held::Native(delivery, body) => native.reply(delivery, &body),
            }
        }
    }
    mdp.recv_many(usize::try_from(slots).expect("few"));
    (0..slots).for_each(|_| assert_eq!(client.answer().1.to_ascii_lowercase(), b"of a native client"));
    wait::until("all slots are free", || used(&broker) == (0, slots));
    let counters: Value = broker.status()["counters"].take();
    assert_eq!(
        (&counters["replied"], &counters["late"], &counters["forged"]),
        (&json!(2 * slots), &json!(0), &json!(0))
    );
}
