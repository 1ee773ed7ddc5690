//! Links that break, and brokers that are killed while messages are on them.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use turno_e2e::{Background, Cluster, Cut, Place, Plan, Way, wait};
use turno_proto::model::Code;
use turno_proto::model::link::view::LinkState;

const SOON: Duration = wait::PATIENCE;

/// A worker that writes down what it was given.
fn scribe(cluster: &Cluster, at: usize, runs: &Path) -> Background {
    let program = format!("line=$(cat); echo \"$line\" >> {}; sleep 0.02", runs.display());
    let worker = cluster.broker(at).start_turno(&["work", "q", "--slots", "8", "--", "sh", "-c", &program]);
    worker.expect_line("registered");
    worker
}

/// How often each line was run.
fn runs(file: &Path) -> HashMap<String, usize> {
    let mut count = HashMap::new();
    for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
        *count.entry(line.to_owned()).or_default() += 1;
    }
    count
}

/// Durable sends, each with a line of its own.
fn send(cluster: &Cluster, at: usize, count: usize) {
    let lines: Vec<String> = (0..count).map(|number| format!("line {number}\n")).collect();
    let words = ["send", "q", "--lines", "--retries", "200"];
    cluster.broker(at).place.run_with_input(words, lines.concat().as_bytes()).expect(0);
}

/// Proves S2.6, I1 and I2: the broker with the workers, the one that owns the messages, or both are killed in the middle
/// of the hand-over. Each send is done at last, at its owner and nowhere else.
#[test]
fn a_broker_is_killed_while_sends_cross() {
    const COUNT: usize = 400;
    for killed in [&[1][..], &[0], &[0, 1]] {
        let mut cluster = Plan::chain(2).start();
        let place = Place::new();
        let file = place.path().join("runs");
        send(&cluster, 0, COUNT);
        let worker = scribe(&cluster, 1, &file);
        for part in 1..=3 {
            wait::until("sends cross", || runs(&file).len() >= part * COUNT / 5);
            for at in killed {
                cluster.kill(*at);
            }
            for at in killed {
                cluster.begin(*at);
            }
            cluster.wait_up();
        }
        wait::until("all are settled", || {
            let status = cluster.broker(0).status();
            status["ready"] == 0 && status["in_flight"] == 0
        });
        let runs = runs(&file);
        assert_eq!(runs.len(), COUNT, "{killed:?}: each was run");
        let again: usize = runs.values().map(|count| count - 1).sum();
        assert!(again <= 3 * 16, "{killed:?}: {again} were run again, and 8 slots were lost 3 times, on both sides");
        for at in 0..2 {
            let left = cluster.broker(at).status();
            let figures = [&left["ready"], &left["in_flight"], &left["dead"]];
            assert_eq!(figures, [&0, &0, &0], "{killed:?}, {at}: {left}");
        }
        drop(worker);
    }
}

/// What is done to a link.
#[derive(Clone, Copy, Debug)]
enum Harm {
    Reset,
    Fin,
    /// What the dialler says does not arrive, until the link is given up.
    Mute,
    /// What the dialler is told does not arrive, until the link is given up.
    Deaf,
    /// Nobody can dial for a while.
    Refused,
}

/// Proves S2.5, I13 and I15: however a link is lost, both ends notice; a request on it is told and not run again, one with
/// retries is, and the link comes back by itself.
#[test]
fn a_lost_link_comes_back() {
    let cluster = Plan::chain(2).by_proxy().start();
    let proxy = cluster.proxy(0, 1);
    for harm in [Harm::Reset, Harm::Fin, Harm::Mute, Harm::Deaf, Harm::Refused] {
        let (mut client, mut worker) = (cluster.client(0, "q"), cluster.worker(1, "q", 2, "w"));
        let once = client.request_with(b"once", |message| message.deadline_ms = Some(60_000));
        let (first, ..) = worker.delivery();
        let twice = client.request_with(b"twice", |message| {
            message.retries = Some(1);
            message.deadline_ms = Some(60_000);
        });
        let (second, ..) = worker.delivery();
        match harm {
            Harm::Reset => proxy.cut(Cut::Reset),
            Harm::Fin => proxy.cut(Cut::Fin),
            Harm::Mute => proxy.stall(Way::There),
            Harm::Deaf => proxy.stall(Way::Back),
            Harm::Refused => {
                proxy.refuse();
                proxy.cut(Cut::Reset);
                wait::until("it is noticed", || cluster.links(0)[0].state == LinkState::Down);
            }
        }
        assert_eq!(client.undelivered(), (once, Code::WorkerLost), "{harm:?}");
        let mut stopped = [worker.cancelled().0, worker.cancelled().0];
        stopped.sort_by_key(|delivery| delivery.stamp);
        assert_eq!(stopped, [first, second], "{harm:?}: the far end stops what came over the link");
        // Late words, which must not reach anyone.
        worker.reply(first, b"late");
        worker.reply(second, b"late");
        proxy.flow(Way::There);
        proxy.flow(Way::Back);
        proxy.accept();
        cluster.wait_up();
        let (delivery, body, attempt) = worker.delivery();
        assert_eq!((body.as_slice(), attempt), (&b"twice"[..], 2), "{harm:?}");
        worker.reply(delivery, b"done");
        assert_eq!(client.answer(), (twice, b"done".to_vec()), "{harm:?}");
        worker.hears_nothing(Duration::from_millis(200));
    }
}

/// Proves S2.6: a link that is slow, or whose bytes come one by one, passes everything on and is not given up.
#[test]
fn a_bad_link_is_still_a_link() {
    let cluster = Plan::chain(2).by_proxy().start();
    let proxy = cluster.proxy(0, 1);
    let _worker = cluster.broker(1).worker(&["q", "--echo", "--slots", "50"]);
    let ask = || {
        let words = ["request", "q", "0123456789", "--count", "200", "--parallel", "50", "--timeout", "50s"];
        let mut load = cluster.broker(0).start_turno(&words);
        assert_eq!(load.end(SOON), 0, "{:?}", load.stderr());
        assert_eq!(load.stdout(), ["0123456789"; 200]);
    };
    let taken = proxy.taken();
    for way in [Way::There, Way::Back] {
        proxy.delay(way, Duration::from_millis(150));
        ask();
    }
    for way in [Way::There, Way::Back] {
        proxy.delay(way, Duration::ZERO);
        proxy.pieces(way, 1);
        ask();
    }
    assert_eq!(proxy.taken(), taken, "it was not dialled again");
}

/// Proves S2.5, S2.7 and I13 with cables: a broker's cable is pulled, and then only what it says gets lost. The others go on
/// without it, it goes on alone, and all is as before when the cable is back.
#[test]
fn a_cable_between_brokers() {
    let cluster = Plan::mesh(3).start();
    cluster.wait_known();
    let net = cluster.net();
    let _workers = [0, 2].map(|at| cluster.broker(at).worker(&["q", "--echo"]));
    let ask = |at: usize| cluster.broker(at).run(&["request", "q", "hi", "--timeout", "1m"]).expect(0).text();
    let gone = |at: usize, name: &str| !cluster.linked(at).iter().any(|other| other == name);
    for round in ["cable", "mute", "deaf"] {
        match round {
            "cable" => net.unplug(2),
            "mute" => [0, 1].iter().for_each(|other| net.mute(2, *other)),
            _ => [0, 1].iter().for_each(|other| net.mute(*other, 2)),
        }
        wait::until("the others notice", || gone(0, "gamma") && gone(1, "gamma"));
        wait::until("it notices", || cluster.linked(2).is_empty());
        for at in 0..3 {
            assert_eq!(ask(at), "hi", "{round}: {at}");
        }
        match round {
            "cable" => net.plug(2),
            "mute" => [0, 1].iter().for_each(|other| net.unmute(2, *other)),
            _ => [0, 1].iter().for_each(|other| net.unmute(*other, 2)),
        }
        cluster.wait_up();
        cluster.wait_known();
    }
}
