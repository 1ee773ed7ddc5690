//! Ways to brokers that break or fall silent: clients and workers go to the next broker, and nothing runs twice.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use turno_e2e::{Background, Broker, Cut, Host, Net, Peer, Place, Port, Proxy, Way, wait};
use turno_proto::model::Slots;

const SOON: Duration = wait::PATIENCE;

/// How a way or the broker at its end is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    Kill,
    Reset,
    Fin,
    /// The broker's words do not arrive.
    Deaf,
    /// The broker hears nothing.
    Mute,
}

const LOSSES: [Loss; 5] = [Loss::Kill, Loss::Reset, Loss::Fin, Loss::Deaf, Loss::Mute];

/// A broker whose peers notice silence soon.
fn broker() -> Broker {
    let place = Place::new();
    place.file("config/turno/turno.toml", "heartbeat = \"1s\"\n");
    Broker::start_in(place, &[])
}

/// Two brokers; the first is reached through a proxy.
struct Two {
    first: Broker,
    second: Broker,
    way: Proxy,
    place: Place,
}

impl Two {
    fn start() -> Self {
        let (first, second) = (broker(), broker());
        let way = Proxy::to(first.address());
        Self { first, second, way, place: Place::new() }
    }

    fn urls(&self) -> String {
        format!("{},{}", self.way.url(), self.second.url())
    }

    fn lose(&mut self, loss: Loss) {
        // Nobody gets to the first one again.
        self.way.refuse();
        match loss {
            Loss::Kill => self.first.kill(),
            Loss::Reset => self.way.cut(Cut::Reset),
            Loss::Fin => self.way.cut(Cut::Fin),
            Loss::Deaf => self.way.stall(Way::Back),
            Loss::Mute => self.way.stall(Way::There),
        }
    }

    fn worker(&self, urls: &str, program: &str) -> Background {
        let worker = self.place.start(["work", "--url", urls, "q", "--", "sh", "-c", program]);
        worker.expect_line("registered");
        worker
    }
}

/// Proves I15, I13 and S2.2: however the way to the broker is lost, a request under way is told so and run nowhere else;
/// one that may be repeated is answered by the next broker.
#[test]
fn a_request_whose_way_is_lost() {
    for loss in LOSSES {
        let mut two = Two::start();
        let mut worker = Peer::greeted(two.first.address(), 60_000);
        worker.open("q");
        worker.work(Slots::Limited(2), "held");
        let _heir = two.second.worker(&["q", "--echo"]);
        let ask = |retries: &str| {
            let words = ["request", "q", retries, "--json", "--retries", retries, "--timeout", "60s", "--url"];
            two.place.start([&words[..], &[&two.urls()]].concat())
        };
        let mut once = ask("0");
        worker.delivery();
        let mut again = ask("1");
        worker.delivery();
        two.lose(loss);
        assert_eq!(once.end(SOON), 5, "{loss:?}: {:?}", once.stderr());
        let told: serde_json::Value = serde_json::from_str(&once.stdout().concat()).expect("one document");
        assert_eq!(told["error"]["code"], "connection_lost", "{loss:?}");
        assert_eq!(again.end(SOON), 0, "{loss:?}: {:?}", again.stderr());
        let reply: serde_json::Value = serde_json::from_str(&again.stdout().concat()).expect("one document");
        assert_eq!(reply["reply"]["body"], "1", "{loss:?}: {reply}");
        assert_eq!(two.second.status()["counters"]["requests"], 1, "{loss:?}: only the one that may be repeated");
    }
}

/// Proves S2.2 and S0.41: a worker whose broker does not answer any more is at the next one, and the broker lets go of a
/// worker that it does not hear.
#[test]
fn a_worker_whose_way_is_lost() {
    for loss in LOSSES {
        let mut two = Two::start();
        let worker = two.worker(&two.urls(), "cat");
        wait::until("it is at the first", || two.first.workers() == 1);
        two.lose(loss);
        worker.expect_line("registered again");
        assert_eq!(two.second.workers(), 1, "{loss:?}");
        assert_eq!(two.second.run(&["request", "q", "hi"]).expect(0).text(), "hi", "{loss:?}");
        if loss != Loss::Kill {
            wait::until("the first one has let it go", || two.first.workers() == 0);
        }
    }
}

/// Proves I15, I13 and S2.2 under load: the way is lost with twenty requests on it. Each request is answered, or told lost
/// once; none is run twice. The next broker answers all the rest.
#[test]
fn a_way_is_lost_under_load() {
    const REQUESTS: usize = 200;
    for loss in LOSSES {
        let mut two = Two::start();
        let runs = two.place.path().join("runs");
        // The fortieth and those behind it run until the way is lost, however fast the others are.
        let program = "echo run >> runs; while [ $(wc -l < runs) -ge 40 ] && [ -d \"$PWD\" ] && [ ! -e lost ]; do sleep 0.02; done; echo done";
        let _workers = [two.first.url(), two.second.url()].map(|url| two.worker(&url, program));
        let (count, urls) = (REQUESTS.to_string(), two.urls());
        let words = ["request", "q", "x", "--count", &count, "--parallel", "20", "--timeout", "60s", "--json"];
        let mut load = two.place.start([&words[..], &["--url", &urls]].concat());
        wait::until("the load runs", || lines(&runs) >= 40);
        two.lose(loss);
        two.place.file("lost", "");
        assert_eq!(load.end(SOON), 3, "{loss:?}: {:?}", load.stderr());
        let ended: serde_json::Value = serde_json::from_str(&load.stdout().concat()).expect("one document");
        let count = |key: &str| usize::try_from(ended[key].as_u64().expect("a number")).expect("a small one");
        let (answered, failed) = (count("answered"), count("failed"));
        assert_eq!(answered + failed, REQUESTS, "{loss:?}");
        assert!((1..=20).contains(&failed), "{loss:?}: those under way are told, and only those: {failed}");
        for reply in ended["replies"].as_array().expect("a list") {
            let code = reply["error"]["code"].as_str();
            assert!(code.is_none_or(|code| code == "connection_lost"), "{loss:?}: {reply}");
        }
        let ran = lines(&runs);
        assert!((answered..=REQUESTS).contains(&ran), "{loss:?}: {ran} runs, {answered} answers");
    }
}

fn lines(file: &PathBuf) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

/// Proves S2.1 and S2.2: the list is a ring. Each lost broker leads to the one after it, and the last to the first.
#[test]
fn brokers_are_taken_in_rotation() {
    let net = Net::new(4);
    let start = |at: usize| Broker::start_on(net.host(at), net.host(at).place(), &[]);
    let mut brokers: Vec<Option<Broker>> = (0..3).map(|at| Some(start(at))).collect();
    let place = net.host(3).place();
    let urls: Vec<String> = (0..3).map(|at| net.url(3, at)).collect();
    let worker = place.start(["work", "q", "--echo", "--url", &urls.join(",")]);
    worker.expect_line("registered");
    for turn in 0..5 {
        let at = turn % 3;
        let broker = brokers[at].as_ref().expect("it runs");
        wait::until("the worker is there", || broker.workers() == 1);
        let others = (0..3).filter(|other| *other != at);
        for other in others.filter_map(|other| brokers[other].as_ref()) {
            assert_eq!(other.workers(), 0, "turn {turn}");
        }
        assert_eq!(place.run(["request", "q", "hi", "--url", &urls[at]]).expect(0).text(), "hi");
        // Only the one after it stays, so that the worker cannot be anywhere else; the one before comes back.
        let before = (at + 2) % 3;
        if turn > 0 {
            brokers[before] = Some(start(before));
        }
        drop(brokers[at].take());
    }
}

/// Proves S2.2: when all are down, each is tried once, in order, and only then there is a pause, of a second; that goes on
/// until one of them answers.
#[test]
fn a_pause_comes_only_after_all_of_them() {
    const ROUNDS: usize = 3;
    let (home, nobody) = (Port::reserve(), Port::reserve());
    let ways = [Proxy::to(nobody.address()), Proxy::to(nobody.address())];
    let mut broker = Broker::start_in_at(Place::new(), &home.address().to_string(), &[]);
    let place = Place::new();
    let urls = [home.url(), ways[0].url(), ways[1].url()].join(",");
    let worker = place.start(["work", "q", "--echo", "--url", &urls]);
    worker.expect_line("registered");
    assert_eq!((ways[0].taken(), ways[1].taken()), (0, 0));
    let begun = Instant::now();
    broker.kill();
    wait::until("rounds without an answer", || {
        let (second, third) = (ways[0].taken(), ways[1].taken());
        assert!(second == third || second == third + 1, "in order: {second} and {third}");
        third == ROUNDS
    });
    let pauses = u32::try_from(ROUNDS - 1).expect("few");
    assert!(begun.elapsed() >= Duration::from_secs(1) * pauses, "a round was made without a pause before it");
    let again = Broker::start_in_at(broker.into_place(), &home.address().to_string(), &[]);
    worker.expect_line("registered again");
    assert_eq!(again.workers(), 1);
}

/// Proves S2.2 and I13 with cables: a client and a worker on hosts of their own notice that their broker's cable was
/// pulled, meet at the next broker, and the one that was cut off has nobody left.
#[test]
fn a_cable_is_pulled() {
    let net = Net::new(4);
    let start = |host: &Host| {
        let place = host.place();
        place.file("config/turno/turno.toml", "heartbeat = \"1s\"\n");
        Broker::start_on(host, place, &[])
    };
    let brokers = [start(net.host(0)), start(net.host(1))];
    let places = [net.host(2).place(), net.host(3).place()];
    let urls = [2, 3].map(|from| format!("{},{}", net.url(from, 0), net.url(from, 1)));
    let worker = places[0].start(["work", "q", "--url", &urls[0], "--", "sh", "-c", "sleep 0.01; cat"]);
    worker.expect_line("registered");
    let words = ["request", "q", "x", "--count", "300", "--parallel", "4", "--retries", "2", "--timeout", "60s"];
    let mut load = places[1].start([&words[..], &["--url", &urls[1]]].concat());
    wait::until("the load runs", || load.stdout().len() > 20);
    net.unplug(0);
    assert_eq!(load.end(SOON), 0, "{}: {:?}", net.kind(), load.stderr());
    assert_eq!(load.stdout().len(), 300);
    assert_eq!(brokers[1].workers(), 1);
    wait::until("the first has nobody left", || brokers[0].workers() == 0);
    net.plug(0);
    let first = net.url(3, 0);
    wait::until("the first is reached again", || places[1].run(["status", "--url", &first]).code == 0);
    assert_eq!((brokers[0].workers(), brokers[1].workers()), (0, 1), "nobody leaves a broker that is well");
}
