//! Brokers that end or are drained under load, and take work again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;
use turno_e2e::{Background, Broker, Peer, Place, wait};
use turno_proto::model::{Code, Slots};
use turno_proto::native::{Closing, ClosingReason, Frame};

const SOON: Duration = wait::PATIENCE;
const REQUESTS: usize = 400;

/// Two brokers, each with a worker that knows both; every run of its program leaves a line.
struct Pair {
    brokers: [Broker; 2],
    _workers: [Background; 2],
    place: Place,
    runs: PathBuf,
}

impl Pair {
    fn start() -> Self {
        let brokers = [Broker::start(), Broker::start()];
        let place = Place::new();
        let runs = place.path().join("runs");
        let program = format!("echo run >> {}; sleep 0.02; echo done", runs.display());
        let worker = |urls: &str| {
            let worker = place.start(["work", "--url", urls, "q", "--", "sh", "-c", &program]);
            worker.expect_line("registered");
            worker
        };
        let workers = [worker(&urls(&brokers, [0, 1])), worker(&urls(&brokers, [1, 0]))];
        Self { brokers, _workers: workers, place, runs }
    }

    /// Many requests, twenty at a time, to the first broker or else the second.
    fn load(&self) -> Background {
        let (count, urls) = (REQUESTS.to_string(), urls(&self.brokers, [0, 1]));
        let words = ["request", "q", "x", "--count", &count, "--parallel", "20", "--timeout", "50s", "--url", &urls];
        self.place.start(words)
    }

    fn runs(&self) -> usize {
        lines(&self.runs)
    }

    /// Every request was answered, and run once.
    fn check(&self, mut load: Background) {
        assert_eq!(load.end(SOON), 0, "{:?}", load.stderr());
        assert_eq!(load.stdout().iter().filter(|line| *line == "done").count(), REQUESTS);
        assert_eq!(self.runs(), REQUESTS, "each was run once");
    }
}

fn urls(brokers: &[Broker; 2], order: [usize; 2]) -> String {
    order.map(|at| brokers[at].url()).join(",")
}

fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

/// Proves S2.16, S2.17, S2.18, I13 and I15 with real processes: a broker ends in the middle of the load. Nothing is lost,
/// nothing runs twice, nobody notices.
#[test]
fn a_broker_ends_under_load() {
    let mut pair = Pair::start();
    let load = pair.load();
    wait::until("the load runs", || pair.runs() >= 60);
    pair.brokers[0].process().signal(Signal::TERM);
    assert_eq!(pair.brokers[0].process().end(SOON), 0);
    pair.check(load);
    let left = pair.brokers[1].status();
    assert_eq!((&left["ready"], &left["in_flight"]), (&0.into(), &0.into()));
}

/// Proves S2.16, S2.18, I13 and I15 with real processes: both brokers are drained and resumed in turns under load.
#[test]
fn brokers_are_drained_in_turns_under_load() {
    let pair = Pair::start();
    let load = pair.load();
    for (round, enough) in [40, 120, 200].into_iter().enumerate() {
        wait::until("the load runs", || pair.runs() >= enough);
        let broker = &pair.brokers[round % 2];
        let drained = broker.run(&["drain", "--json"]).expect(0).json()["broker"].take();
        assert_eq!((&drained["maintenance"], &drained["in_flight"]), (&true.into(), &0.into()));
        broker.run(&["resume"]).expect(0);
    }
    pair.check(load);
}

/// Proves S2.18: on CLOSING a client is at the next broker at once, while the old one still works for it.
#[test]
fn the_next_broker_at_once() {
    for how in ["end", "drain"] {
        let (mut first, second) = (Broker::start(), Broker::start());
        let mut busy = Peer::worker(first.address(), "q", Slots::Limited(1), "busy");
        let _free = second.worker(&["q", "--echo"]);
        let urls = format!("{},{}", first.url(), second.url());
        let words = ["request", "q", "x", "--count", "2", "--parallel", "2", "--timeout", "50s", "--url", &urls];
        let mut request = first.start_turno(&words);
        let (delivery, ..) = busy.delivery();
        let mut admin = Peer::greeted(first.address(), 0);
        wait::until("the second waits", || admin.status().ready == 1);
        if how == "end" {
            first.process().signal(Signal::TERM);
        } else {
            let late = first.run(&["drain", "--timeout", wait::SHORT, "--json"]).expect(124);
            assert_eq!(late.error_code(), "timed_out");
        }
        wait::until("the second is answered elsewhere", || second.status()["counters"]["replied"] == 1);
        assert_eq!(admin.closing(), if how == "end" { ClosingReason::Shutdown } else { ClosingReason::Maintenance });
        assert_eq!(admin.status().in_flight, 1);
        busy.closing();
        busy.reply(delivery, b"y");
        assert_eq!(request.end(SOON), 0, "{:?}", request.stderr());
        let mut replies = request.stdout();
        replies.sort();
        assert_eq!(replies, ["x", "y"]);
    }
}

/// Proves S2.16 and S2.17: a drained broker says so, keeps what is stored, refuses new work, and goes on after `resume`;
/// drained or not, a signal ends it in order.
#[test]
fn maintenance_by_hand() {
    let mut broker = Broker::start();
    let mut peer = Peer::greeted(broker.address(), 0);
    broker.run(&["send", "q", "kept"]).expect(0);
    let drained = broker.run(&["drain"]).expect(0).text();
    assert!(drained.contains("is drained: nothing is running, 1 message waits for `turno resume`"), "{drained}");
    assert_eq!(peer.closing(), ClosingReason::Maintenance);
    assert_eq!(broker.run(&["drain"]).expect(0).text(), drained, "again changes nothing");
    assert!(broker.run(&["status"]).expect(0).text().contains("drained for maintenance"));
    broker.run(&["request", "q", "x", "--timeout", wait::SHORT]).expect(5);
    // A worker that comes now waits with the broker.
    let worker = broker.start_turno(&["work", "q", "--", "sh", "-c", "cat; echo"]);
    worker.expect_line("registered");
    assert_eq!(broker.status()["ready"], 1);
    let resumed = broker.run(&["resume"]).expect(0).text();
    assert!(resumed.contains("accepts work"), "{resumed}");
    assert_eq!(peer.closing(), ClosingReason::Resumed);
    wait::until("what was stored is done", || broker.status()["counters"]["acked"] == 1);
    assert_eq!(broker.run(&["request", "q", "x"]).expect(0).text(), "x\n");
    broker.run(&["drain"]).expect(0);
    assert_eq!(peer.closing(), ClosingReason::Maintenance);
    broker.process().signal(Signal::TERM);
    assert_eq!(peer.closing(), ClosingReason::Shutdown);
    assert_eq!(broker.process().end(SOON), 0);
}

/// Proves S2.18: CLOSING from a worker: it finishes what it holds and gets nothing new; what waits goes to others.
#[test]
fn a_worker_that_closes() {
    let broker = Broker::start();
    let mut leaving = Peer::worker(broker.address(), "q", Slots::Limited(2), "leaving");
    let mut client = Peer::client(broker.address(), "q");
    let first = client.request(b"1");
    let (delivery, ..) = leaving.delivery();
    leaving.say(&Frame::Closing { closing: Closing { reason: ClosingReason::Shutdown, within_ms: 0 } });
    leaving.sync();
    let second = client.request(b"2");
    client.sync();
    let mut other = Peer::worker(broker.address(), "q", Slots::Limited(1), "other");
    let (theirs, body, _) = other.delivery();
    assert_eq!(body, b"2");
    leaving.reply(delivery, b"done");
    assert_eq!(client.answer(), (first, b"done".to_vec()));
    other.reply(theirs, b"too");
    assert_eq!(client.answer(), (second, b"too".to_vec()));
    leaving.hears_nothing(Duration::from_millis(100));
}

/// Proves S1.35: a worker is told to stop when the caller of `turno request` is gone, unless the work has a deadline of
/// its own; a send outlives its sender in any case.
#[test]
fn work_ends_with_its_caller() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(9), "w");
    let table: [(&[&str], Option<Code>); 3] = [
        (&["--timeout", "50s"], Some(Code::CallerGone)),
        (&["--timeout", "50s", "--deadline", "10m"], None),
        (&["--timeout", "50s", "--deadline", "10m", "--cancel-on-timeout"], Some(Code::CallerGone)),
    ];
    for (options, told) in table {
        let mut request = broker.start_turno(&[&["request", "q", "x"], options].concat());
        let (delivery, ..) = worker.delivery();
        request.signal(Signal::KILL);
        request.end(SOON);
        match told {
            Some(code) => assert_eq!(worker.cancelled(), (delivery, code), "{options:?}"),
            None => worker.hears_nothing(Duration::from_millis(300)),
        }
        worker.reply(delivery, b"too late");
    }
    broker.run(&["send", "q", "x"]).expect(0);
    let (delivery, ..) = worker.delivery();
    worker.hears_nothing(Duration::from_millis(300));
    worker.ack(delivery);
    worker.sync();
    assert_eq!(broker.status()["slots_used"], 0);
}

/// Proves I13: a caller's own time may end before the work's; `--cancel-on-timeout` then cancels the work.
#[test]
fn the_callers_time_and_the_works() {
    let broker = Broker::start();
    let mut worker = Peer::worker(broker.address(), "q", Slots::Limited(9), "w");
    let table: [(&[&str], Option<Code>); 3] = [
        (&[], Some(Code::TimedOut)),
        (&["--deadline", "10m"], None),
        (&["--deadline", "10m", "--cancel-on-timeout"], Some(Code::Cancelled)),
    ];
    for (options, told) in table {
        let words = [&["request", "q", "x", "--timeout", wait::SHORT, "--json"], options].concat();
        let mut request = broker.start_turno(&words);
        let (delivery, ..) = worker.delivery();
        assert_eq!(request.end(SOON), 124);
        match told {
            Some(code) => assert_eq!(worker.cancelled(), (delivery, code), "{options:?}"),
            None => worker.hears_nothing(Duration::from_millis(300)),
        }
        worker.reply(delivery, b"too late");
    }
}
