//! What is for many, over links: broadcasts and events.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::Value;
use turno_e2e::{Background, Cluster, Peer, Plan, Way, schema, wait};
use turno_proto::model::Code;

const SOON: Duration = wait::PATIENCE;

/// Rows and circles of three.
fn shapes() -> [(&'static str, Cluster); 2] {
    [("chain", Plan::chain(3).start()), ("ring", Plan::ring(3).start())]
}

/// Waits until a broker knows so many consumers of the queue, here and elsewhere. They hear something of it.
#[track_caller]
fn await_consumers(cluster: &Cluster, at: usize, count: usize) {
    let written = || cluster.broker(at).run(&["broadcast", "q", "probe", "--no-reply", "--json"]).expect(0).json();
    wait::until("the consumers are known", || written()["consumers"] == count);
}

/// The next delivery that is not about [`await_consumers`] must be this.
#[track_caller]
fn takes(worker: &mut Peer, text: &[u8]) -> turno_proto::model::Delivery {
    loop {
        let (delivery, body, _) = worker.delivery();
        if body != b"probe" {
            assert_eq!(body, text);
            return delivery;
        }
    }
}

/// The one document of a broadcast that has ended; its figures add up.
#[track_caller]
fn end_of(asked: &mut Background, code: i32) -> Value {
    assert_eq!(asked.end(SOON), code, "{:?}", asked.stderr());
    let end = schema::document(&asked.stdout()[0]);
    let figure = |name: &str| end[name].as_u64().expect("a figure");
    let parts = ["answered", "failed", "expired", "left"].map(figure);
    assert_eq!(parts.iter().sum::<u64>(), figure("consumers"), "{end}");
    end
}

/// Proves S2.3, S2.6, S2.8 and S2.10 over links: each consumer behind links hears a broadcast once, and its one end counts
/// them all, from wherever it is asked.
#[test]
fn a_broadcast_reaches_each_consumer_once() {
    for (shape, cluster) in shapes() {
        let mut workers: Vec<Peer> =
            (0..6).map(|number| cluster.worker(number / 2, "q", 1, &format!("w{number}"))).collect();
        for from in 0..3 {
            await_consumers(&cluster, from, 6);
            let text = format!("from {from}");
            let mut asked = cluster.broker(from).start_turno(&["broadcast", "q", &text, "--json", "--timeout", "50s"]);
            for (number, worker) in workers.iter_mut().enumerate() {
                let delivery = takes(worker, text.as_bytes());
                worker.reply(delivery, format!("{number}").as_bytes());
            }
            let end = end_of(&mut asked, 0);
            assert_eq!((&end["consumers"], &end["answered"]), (&6.into(), &6.into()), "{shape}, {from}");
            let answers = end["answers"].as_array().expect("a list");
            let brief = |answer: &Value| {
                let word = |name: &str| answer[name].as_str().expect("a word").to_owned();
                (word("name"), word("body"))
            };
            let heard: BTreeSet<(String, String)> = answers.iter().map(brief).collect();
            let expected = (0..6).map(|number| (format!("w{number}"), number.to_string())).collect();
            assert_eq!((answers.len(), heard), (6, expected), "{shape}, {from}");
            for worker in &mut workers {
                worker.hears_nothing(Duration::from_millis(50));
            }
        }
    }
}

/// Proves S2.6 and S2.13 over links: the broker at the end, the one in the middle or the asking one is killed in the middle
/// of a broadcast. The end comes all the same and adds up; a worker that is cut off is told to stop.
#[test]
fn a_broker_is_killed_in_the_middle_of_a_broadcast() {
    for killed in [2, 1, 0] {
        let mut cluster = Plan::chain(3).start();
        let mut workers: Vec<Peer> = (0..3).map(|at| cluster.worker(at, "q", 1, &format!("w{at}"))).collect();
        await_consumers(&cluster, 0, 3);
        let mut asked = cluster.broker(0).start_turno(&["broadcast", "q", "x", "--json", "--timeout", "50s"]);
        let deliveries: Vec<_> = workers.iter_mut().map(|worker| takes(worker, b"x")).collect();
        cluster.kill(killed);
        for at in (0..killed).rev() {
            workers[at].reply(deliveries[at], b"here");
        }
        for at in killed + 1..3 {
            assert_eq!(workers[at].cancelled(), (deliveries[at], Code::CallerGone), "{killed}, {at}");
        }
        if killed == 0 {
            assert_eq!(asked.end(SOON), 5, "{:?}", asked.stderr());
            continue;
        }
        let end = end_of(&mut asked, 3);
        assert_eq!((&end["answered"], &end["left"]), (&killed.into(), &1.into()), "{killed}: {end}");
        // It is as if it had never been, for the next one.
        await_consumers(&cluster, 0, killed);
        let mut asked = cluster.broker(0).start_turno(&["broadcast", "q", "y", "--json", "--timeout", "50s"]);
        for worker in &mut workers[..killed] {
            let delivery = takes(worker, b"y");
            worker.reply(delivery, b"here");
        }
        assert_eq!(end_of(&mut asked, 0)["answered"], killed);
    }
}

/// Proves S2.13 over links: a consumer elsewhere that hangs has expired there, and one behind a link that says nothing has
/// expired here. Both are told why when they can be.
#[test]
fn a_broadcast_ends_in_time_whatever_the_link_does() {
    let cluster = Plan::chain(2).by_proxy().start();
    let proxy = cluster.proxy(0, 1);
    let (mut near, mut far) = (cluster.worker(0, "q", 1, "near"), cluster.worker(1, "q", 1, "far"));
    for stalled in [false, true] {
        await_consumers(&cluster, 0, 2);
        let mut asked = cluster.broker(0).start_turno(&["broadcast", "q", "x", "--json", "--timeout", "6s"]);
        let delivery = takes(&mut near, b"x");
        let begun = Instant::now();
        near.reply(delivery, b"here");
        let delivery = takes(&mut far, b"x");
        if stalled {
            // So late that the broadcast is over before the link is: that takes two seconds of silence at least.
            wait::until("little time is left", || begun.elapsed() >= Duration::from_secs(5));
            proxy.stall(Way::Back);
        }
        let end = end_of(&mut asked, 124);
        assert_eq!((&end["answered"], &end["expired"]), (&1.into(), &1.into()), "{stalled}: {end}");
        assert_eq!(far.cancelled(), (delivery, Code::TimedOut), "{stalled}");
        far.fail(delivery, b"stopped");
        proxy.flow(Way::Back);
        cluster.wait_up();
    }
}

/// Listeners at each broker, which hear each broker's events.
fn listeners(cluster: &Cluster, words: &[&str]) -> Vec<Background> {
    let all: Vec<Background> = (0..cluster.len()).map(|at| cluster.broker(at).listen(words)).collect();
    for at in 0..cluster.len() {
        wait::until("its events are heard everywhere", || {
            cluster.broker(at).publish(&format!("t.{at}"), "probe");
            all.iter().all(|listener| !said_by(listener, at, |body| body == "probe").is_empty())
        });
    }
    all
}

/// The bodies of the events of one broker that somebody heard, in their order.
fn said_by(listener: &Background, at: usize, wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let topic = format!("t.{at} ");
    let lines = listener.stdout().into_iter();
    lines.filter_map(|line| line.strip_prefix(&topic).filter(|body| wanted(body)).map(str::to_owned)).collect()
}

/// Proves S3.33, S3.36 and S2.8: what is published at one broker reaches each subscriber at each broker once, that of the
/// publisher included, and in the order of its publisher; all brokers at the same time.
#[test]
fn events_reach_every_broker_once_and_in_order() {
    const COUNT: usize = 300;
    for (shape, cluster) in shapes() {
        cluster.wait_known();
        let listeners = listeners(&cluster, &["t.*"]);
        let lines: String = (0..COUNT).map(|number| format!("{number}\n")).collect();
        std::thread::scope(|scope| {
            for at in 0..3 {
                let (cluster, lines) = (&cluster, &lines);
                let words = ["pub".to_owned(), format!("t.{at}"), "--lines".to_owned()];
                scope.spawn(move || cluster.broker(at).place.run_with_input(words, lines.as_bytes()).expect(0));
            }
        });
        let expected: Vec<String> = (0..COUNT).map(|number| number.to_string()).collect();
        let is_number = |body: &str| body != "probe" && body != "end";
        for (to, listener) in listeners.iter().enumerate() {
            for from in 0..3 {
                wait::until("all came", || said_by(listener, from, is_number).len() >= COUNT);
                assert_eq!(said_by(listener, from, is_number), expected, "{shape}: {from} to {to}");
            }
        }
        // What came twice would have come before this.
        for from in 0..3 {
            cluster.broker(from).publish(&format!("t.{from}"), "end");
            for listener in &listeners {
                wait::until("the end came", || !said_by(listener, from, |body| body == "end").is_empty());
                assert_eq!(said_by(listener, from, is_number), expected, "{shape}: {from}, nothing twice");
            }
        }
    }
}

/// Proves S3.33: events do not cross to where nobody listens, and do as soon as somebody does; through a broker whose own
/// clients do not listen as well.
#[test]
fn events_cross_only_to_listeners() {
    const MANY: usize = 64;
    const LARGE: usize = 64 << 10;
    let cluster = Plan::chain(3).by_proxy().start();
    cluster.wait_known();
    let publish = || {
        let address = cluster.broker(0).address();
        let mut publisher = cluster.net().host(0).within(|| Peer::greeted(address, 0));
        let before = [(0, 1), (1, 2)].map(|(from, to)| cluster.proxy(from, to).heard(Way::There));
        for _ in 0..MANY {
            publisher.publish("t.0", &vec![b'x'; LARGE], false);
        }
        publisher.sync();
        before
    };
    let crossed = |before: [u64; 2]| {
        let after = [(0, 1), (1, 2)].map(|(from, to)| cluster.proxy(from, to).heard(Way::There));
        [after[0] - before[0], after[1] - before[1]]
    };
    let all = (MANY * LARGE) as u64;
    let before = publish();
    // A word that crosses both links after them.
    assert_eq!(cluster.broker(0).run(&["request", "q", "x", "--fail-fast", "--json"]).error_code(), "no_responder");
    let _worker = cluster.broker(2).worker(&["q", "--echo"]);
    cluster.broker(0).run(&["request", "q", "x", "--timeout", "1m"]).expect(0);
    let idle = crossed(before);
    assert!(idle.iter().all(|bytes| *bytes < LARGE as u64), "nobody listens: {idle:?} bytes crossed");

    let listener = cluster.broker(2).listen(&["t.*", "-o", "name"]);
    wait::until("the listener is known", || {
        cluster.broker(0).publish("t.1", "probe");
        !listener.stdout().is_empty()
    });
    let before = publish();
    wait::until("it heard all", || listener.stdout().iter().filter(|line| *line == "t.0").count() == MANY);
    let busy = crossed(before);
    assert!(busy.iter().all(|bytes| (all..all + all / 2).contains(bytes)), "once over each link: {busy:?} of {all}");

    drop(listener);
    let unheard = || crossed(publish());
    wait::until("nobody listens any more", || unheard().iter().all(|bytes| *bytes < LARGE as u64));
}

/// Proves S3.31, S3.32, S3.34 and S3.36 over links: a subscriber that fetches belongs to its own broker and has there what
/// was published elsewhere, in order and once, also while nobody is connected for it.
#[test]
fn a_subscriber_fetches_what_was_published_elsewhere() {
    const COUNT: usize = 100;
    for (shape, cluster) in shapes() {
        cluster.wait_known();
        cluster.broker(2).run(&["topic", "create", "shop", "t"]).expect(0);
        wait::until("it is known elsewhere", || {
            cluster.broker(0).publish("t", "probe");
            cluster.broker(2).run(&["topic", "recv", "shop"]).code == 0
        });
        let lines: String = (0..COUNT).map(|number| format!("{number}\n")).collect();
        cluster.broker(0).place.run_with_input(["pub", "t", "--lines"], lines.as_bytes()).expect(0);
        cluster.broker(0).publish("t", "end");
        let mut fetched = String::new();
        wait::until("the last one came", || {
            fetched.push_str(&cluster.broker(2).run(&["topic", "recv", "shop"]).text());
            fetched.ends_with("t end\n")
        });
        let fetched: Vec<&str> = fetched.lines().filter(|line| *line != "t probe").collect();
        let numbers = (0..COUNT).map(|number| format!("t {number}"));
        assert_eq!(fetched, numbers.chain(["t end".to_owned()]).collect::<Vec<_>>(), "{shape}");
        assert_eq!(cluster.broker(0).run(&["topic", "recv", "shop", "--json"]).expect(4).error_code(), "not_found");
    }
}
