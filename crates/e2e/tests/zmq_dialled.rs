//! The broker connects to programs of the real libzmq that bind.

use serde_json::{Value, json};
use turno_e2e::{Broker, Port, Pyzmq, ZmqProgram, ZmqSocket, wait};
use turno_proto::zmtp::curve::KeyPair;

const PROGRAM_SECRET: &str = "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6";
const BROKER_SECRET: &str = "D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs";

/// An endpoint that connects to a port.
fn endpoint(name: &str, port: &Port, more: &str) -> String {
    format!("[[zmq.endpoint]]\nname = \"{name}\"\nconnect = \"tcp://{}\"\n{more}\n", port.address())
}

/// A socket that binds there.
fn bind(kind: &str, port: &Port, more: &Value) -> Value {
    let mut given = more.clone();
    given["type"] = kind.into();
    given["bind"] = format!("tcp://{}", port.address()).into();
    given
}

/// The broker connects to programs that bind, and again when they come back.
#[test]
fn the_broker_connects_to_programs_that_bind() {
    let [work, news, ears] = [(); 3].map(|()| Port::reserve());
    let config = [
        endpoint("work", &work, "socket = \"dealer\"\nqueue = \"legacy\""),
        endpoint("news", &news, "socket = \"sub\""),
        endpoint("ears", &ears, "socket = \"pub\""),
    ];
    let broker = Broker::start_for_zmq(&config.concat());
    for kind in ["REP", "ROUTER"] {
        let works = Pyzmq::start("answer", &bind(kind, &work, &json!({})));
        assert_eq!(broker.run(&["request", "legacy", "good morning"]).expect(0).text(), "good morning");
        assert_eq!(broker.run(&["request", "legacy", "bye"]).expect(0).text(), "bye");
        works.done();
        wait::until("the worker has gone", || broker.workers() == 0);
    }
    let given = json!({"subscribe": ["news.", "weather 8", "end"]});
    let subscriber = Pyzmq::start("hear_news", &bind("SUB", &ears, &given));
    broker.await_subscribers(1);
    Pyzmq::start("tell_news", &bind("XPUB", &news, &json!({}))).done();
    broker.run(&["pub", "end", "of a native client"]).expect(0);
    subscriber.done();
}

/// The broker is the client of each mechanism: a program that refuses it, or that it does not accept, is tried again, and the one
/// that fits is a worker.
#[test]
fn the_broker_shows_who_it_is() {
    let public = |secret| KeyPair::from_secret_text(secret).expect("a key").public().to_string();
    let plain = |password: &str| json!({"plain_server": true, "passwords": {"turno": password}});
    let curve =
        |secret: &str, client: &str| json!({"curve_server": true, "curve_secret": secret, "client_keys": [client]});
    let (program_key, broker_key) = (public(PROGRAM_SECRET), public(BROKER_SECRET));
    let as_plain = "mechanism = \"plain\"\nuser = \"turno\"\npassword = \"its password\"".to_owned();
    let as_curve = format!("mechanism = \"curve\"\nsecret-key = '{BROKER_SECRET}'\nserver-key = '{program_key}'");
    let good_plain = plain("its password");
    let good_curve = curve(PROGRAM_SECRET, &broker_key);
    // Both ends see that their mechanisms differ, and either may be the first to close.
    let either = None;
    let table = [
        ("PLAIN", &as_plain, &good_plain, plain("another"), "refused 400", Some("with ERROR")),
        ("PLAIN", &as_plain, &good_plain, json!({}), "not understood", either),
        ("CURVE", &as_curve, &good_curve, curve(PROGRAM_SECRET, &program_key), "refused 400", Some("with ERROR")),
        (
            "CURVE",
            &as_curve,
            &good_curve,
            curve(BROKER_SECRET, &broker_key),
            "not understood",
            Some("before the handshake"),
        ),
        ("CURVE", &as_curve, &good_curve, plain("its password"), "not understood", either),
    ];
    for (mechanism, config, good, bad, told, logged) in table {
        let port = Port::reserve();
        let socket = "socket = \"dealer\"\nqueue = \"legacy\"\n";
        let mut broker = Broker::start_for_zmq(&endpoint("locked", &port, &format!("{socket}{config}")));
        let refuses = Pyzmq::start("handshake", &bind("REP", &port, &bad));
        assert_eq!(refuses.done().trim(), told, "{mechanism} {bad}");
        wait::until("the refusal is counted", || broker.endpoint("locked")["bad_handshake"] != 0);
        if let Some(text) = logged {
            broker.process().expect_line(text);
        }
        let works = Pyzmq::start("answer", &bind("REP", &port, good));
        assert_eq!(broker.run(&["request", "legacy", "bye"]).expect(0).text(), "bye");
        works.done();
        assert_eq!(broker.endpoint("locked")["mechanism"], mechanism);
    }
}

/// Every socket type of programs that bind, and the broker's own.
const KINDS: [(&str, &str); 7] = [
    ("REP", "dealer"),
    ("ROUTER", "dealer"),
    ("PUB", "sub"),
    ("SUB", "pub"),
    ("XSUB", "pub"),
    ("PUSH", "pull"),
    ("PULL", "push"),
];

/// The sockets of a program that binds, and uses of them by native peers. Each endpoint has a queue and a topic of its kind.
struct Binds<'a>(Vec<ZmqSocket<'a>>);

impl<'a> Binds<'a> {
    fn new(program: &'a ZmqProgram, ports: &[Port]) -> Self {
        let socket = |((kind, _), port): (&(&str, &str), &Port)| {
            program.socket(kind, &json!({})).bind(&format!("tcp://{}", port.address()))
        };
        Self(KINDS.iter().zip(ports).map(socket).collect())
    }

    /// All of them are used. `life`: how often the program has come.
    fn use_all(&self, broker: &Broker, life: u64) {
        let [rep, router, publisher, sub, xsub, push, pull] = &self.0[..] else { panic!("one of each kind") };
        let request = broker.start_turno(&["request", "REP", "hi"]);
        assert_eq!(rep.recv(), [b"hi"]);
        rep.send(&["hello"]);
        request.expect_line("hello");

        let request = broker.start_turno(&["request", "ROUTER", "hi"]);
        let mut frames = router.recv();
        assert_eq!((frames.len(), frames.pop()), (4, Some(b"hi".to_vec())));
        frames.push(b"hello".to_vec());
        router.send(&frames);
        request.expect_line("hello");

        let listener = broker.listen(&["PUB.>", "--count", "1"]);
        wait::until("a publication is heard", || {
            // A PUB socket drops it if nobody has subscribed yet.
            publisher.send(&["news", "of a program"]);
            listener.stdout().first().is_some_and(|line| line == "PUB.news of a program")
        });

        sub.set("SUBSCRIBE", "new");
        xsub.send(&["\u{1}new"]);
        wait::until("both listen", || {
            // Setting an option does not make libzmq look for new connections.
            assert!(!sub.has_message() && !xsub.has_message());
            broker.subscribers().len() == 2
        });
        for (socket, topic) in [(sub, "SUB.news"), (xsub, "XSUB.news")] {
            broker.publish(topic, "of a native client");
            assert_eq!(socket.recv(), [&b"news"[..], b"of a native client"]);
        }
        xsub.send(&["\0new"]);
        broker.await_subscribers(1);

        push.send(&["a", "b"]);
        wait::until("it is stored", || broker.queue("PUSH")["ready"] == life);

        broker.run(&["send", "PULL", "work"]).expect(0);
        assert_eq!(pull.recv(), [b"work"]);
    }
}

/// A program that is there before the broker, or comes after it, and one that was killed and comes again.
#[test]
fn programs_that_bind_come_and_go() {
    for is_first in [true, false] {
        let ports = KINDS.map(|_| Port::reserve());
        let more =
            KINDS.map(|(kind, socket)| format!("socket = \"{socket}\"\nqueue = \"{kind}\"\ntopic = \"{kind}.\""));
        let endpoints = KINDS.iter().zip(&ports).zip(&more).map(|(((kind, _), port), more)| endpoint(kind, port, more));
        let config = endpoints.collect::<String>();
        let mut program = ZmqProgram::start();
        let mut binds = is_first.then(|| Binds::new(&program, &ports));
        let broker = Broker::start_for_zmq(&config);
        binds.get_or_insert_with(|| Binds::new(&program, &ports)).use_all(&broker, 1);
        drop(binds);
        drop(program);
        let peers = || KINDS.iter().filter_map(|(kind, _)| broker.endpoint(kind)["peers_all"].as_u64()).sum::<u64>();
        wait::until("the broker sees that the program has gone", || peers() == 0);
        program = ZmqProgram::start();
        Binds::new(&program, &ports).use_all(&broker, 2);
        assert_eq!(peers(), KINDS.len() as u64, "one connection each");
    }
}
