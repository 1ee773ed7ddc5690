//! Linked brokers in rows, rings and meshes; brokers that come, go and come again.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::Duration;

use turno_e2e::{Background, Broker, Cluster, Place, Plan, wait};
use turno_proto::model::link::view::LinkState;
use turno_proto::native::admin::AdminCall;

const SOON: Duration = wait::PATIENCE;

fn lines(file: &Path) -> usize {
    std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
}

/// Workers at one broker whose runs are counted in a file.
fn counting(broker: &Broker, urls: &str, runs: &Path, seconds: &str) -> Background {
    let program = format!("echo run >> {}; sleep {seconds}; echo done", runs.display());
    let worker = broker.start_turno(&["work", "q", "--url", urls, "--", "sh", "-c", &program]);
    worker.expect_line("registered");
    worker
}

/// Many requests from a host.
fn load(place: &Place, urls: &str, count: usize, parallel: usize) -> Background {
    let (count, parallel) = (count.to_string(), parallel.to_string());
    let words = ["request", "q", "x", "--timeout", "80s", "--url", urls];
    place.start([&words[..], &["--count", &count, "--parallel", &parallel]].concat())
}

/// All were answered.
#[track_caller]
fn answered(mut load: Background, count: usize) {
    assert_eq!(load.end(SOON), 0, "{:?}", load.stderr());
    assert_eq!(load.stdout().iter().filter(|line| *line == "done").count(), count);
}

/// `link graph` of each broker says the truth: everyone, with the shortest ways and the right neighbours.
#[track_caller]
fn graph_is_true(cluster: &Cluster, steps: impl Fn(usize, usize) -> usize) {
    cluster.wait_known();
    for at in 0..cluster.len() {
        wait::until("ways and neighbours are right", || {
            let graph = cluster.graph(at);
            (0..cluster.len()).all(|other| {
                let node = graph.iter().find(|node| node.name == cluster.name(other)).expect("it is known");
                node.way.len() == steps(at, other) && node.neighbours == cluster.expected(other)
            })
        });
    }
}

/// Requests from everywhere to the workers of one broker: each is answered and run once, nothing goes in circles, and
/// nothing stays behind.
#[track_caller]
fn all_meet(cluster: &Cluster, at: usize) {
    const EACH: usize = 60;
    let place = Place::new();
    let runs = place.path().join("runs");
    let _worker = counting(cluster.broker(at), &cluster.broker(at).url(), &runs, "0.005");
    let loads: Vec<Background> = (0..cluster.len())
        .map(|from| load(&cluster.broker(from).place, &cluster.broker(from).url(), EACH, 10))
        .collect();
    for load in loads {
        answered(load, EACH);
    }
    let all = EACH * cluster.len();
    assert_eq!(lines(&runs), all, "each was run once");
    let mut crossed = 0;
    for from in 0..cluster.len() {
        for link in cluster.links(from) {
            assert_eq!(link.backlog, 0, "{link:?}");
            crossed += usize::try_from(link.forwarded - link.returned).expect("a small number");
        }
        let status = cluster.broker(from).status();
        assert_eq!((&status["ready"], &status["in_flight"]), (&0.into(), &0.into()));
    }
    assert!(crossed <= all * (cluster.len() - 1), "{crossed} crossings of {all} requests");
}

/// Proves S2.3, S2.6 and S2.8: four in a row.
#[test]
fn a_chain_of_four() {
    let cluster = Plan::chain(4).start();
    graph_is_true(&cluster, |one, other| one.abs_diff(other));
    all_meet(&cluster, 3);
}

/// Proves S2.3, S2.6, S2.8 and I14: a ring of four; nothing goes round.
#[test]
fn a_ring_of_four() {
    let cluster = Plan::ring(4).start();
    graph_is_true(&cluster, |one, other| one.abs_diff(other).min(4 - one.abs_diff(other)));
    all_meet(&cluster, 2);
}

/// Proves S2.3, S2.6, S2.8 and I14: a full mesh of four; nothing goes round.
#[test]
fn a_mesh_of_four() {
    let cluster = Plan::mesh(4).start();
    graph_is_true(&cluster, |one, other| usize::from(one != other));
    all_meet(&cluster, 1);
}

/// Proves S2.5: three around one.
#[test]
fn a_star_of_four() {
    let cluster = Plan::star(4).start();
    graph_is_true(&cluster, |one, other| match (one, other) {
        _ if one == other => 0,
        (0, _) | (_, 0) => 1,
        _ => 2,
    });
    all_meet(&cluster, 3);
}

/// Proves S2.8: a ring loses a broker, and messages take the other way round; with it back they take the short one again.
#[test]
fn a_ring_without_one_of_its_brokers() {
    let mut cluster = Plan::ring(4).start();
    cluster.wait_known();
    let _worker = cluster.broker(2).worker(&["q", "--echo"]);
    let ask = |cluster: &Cluster| cluster.broker(0).run(&["request", "q", "hi", "--timeout", "1m"]).expect(0).text();
    assert_eq!(ask(&cluster), "hi");
    cluster.kill(1);
    assert_eq!(ask(&cluster), "hi");
    cluster.wait_up();
    cluster.wait_known();
    cluster.begin(1);
    cluster.kill(3);
    cluster.wait_up();
    cluster.wait_known();
    assert_eq!(ask(&cluster), "hi");
}

/// Proves S2.5: an address of its own is no link, however it is written, and does no harm.
#[test]
fn a_link_to_itself() {
    let cluster = Plan::new(2, [(0, 0), (0, 1)]).start();
    wait::until("it is told", || cluster.links(0).iter().any(|link| link.state == LinkState::Itself));
    assert_eq!(cluster.links(0).len(), 2);
    assert_eq!(cluster.links(1).len(), 1);
    all_meet(&cluster, 1);
}

/// Proves S2.5 and S2.8: two brokers that dial each other have one link.
#[test]
fn two_that_dial_each_other() {
    let mut cluster = Plan::new(2, [(0, 1), (1, 0)]).start();
    wait::until("one of them is told", || {
        let doubled = |at| cluster.links(at).iter().filter(|link| link.state == LinkState::Doubled).count();
        doubled(0) + doubled(1) == 1
    });
    all_meet(&cluster, 1);
    // Whichever broker comes back, it is one link again.
    for at in 0..2 {
        cluster.restart(at);
        all_meet(&cluster, 0);
    }
}

/// Proves S2.5: brokers with different secrets, and one with a secret and one without, refuse each other and say why.
#[test]
fn secrets_must_be_the_same() {
    for secret in [Some("another secret, as long as it must be"), None] {
        let cluster = Plan::chain(2).secret(1, secret).start_some(&[1, 0]);
        wait::until("it is refused", || {
            cluster.links(0).iter().any(|link| link.code.as_deref() == Some("link_refused"))
        });
        assert_eq!(cluster.linked(0), [""; 0]);
        assert_eq!(cluster.linked(1), [""; 0]);
        let _worker = cluster.broker(1).worker(&["q", "--echo"]);
        let alone = cluster.broker(0).run(&["request", "q", "x", "--fail-fast", "--json"]).json();
        assert_eq!(alone["error"]["code"], "no_responder");
    }
}

/// Proves S2.5: without a secret there are links on loopback, and only there.
#[test]
fn no_secret_beyond_this_machine() {
    let cluster = Plan::chain(2).secret(0, None).secret(1, None).start_some(&[1, 0]);
    if cluster.net().has_namespaces() {
        wait::until("it is refused", || {
            cluster.links(0).iter().any(|link| link.code.as_deref() == Some("link_refused"))
        });
        assert_eq!(cluster.linked(1), [""; 0]);
    } else {
        cluster.wait_up();
    }
}

/// Proves S2.4: a broker joins brokers that run and are under load; its workers help, and nobody notices.
#[test]
fn a_broker_joins_a_running_set() {
    const COUNT: usize = 400;
    let mut cluster = Plan::new(3, [(0, 1), (2, 1)]).start_some(&[0, 1]);
    cluster.wait_up();
    let place = Place::new();
    let runs: Vec<_> = (0..3).map(|at| place.path().join(format!("runs{at}"))).collect();
    let _first = counting(cluster.broker(1), &cluster.broker(1).url(), &runs[1], "0.02");
    let guest = cluster.net().host(cluster.guest()).place();
    let load = load(&guest, &cluster.urls(cluster.guest(), &[0]), COUNT, 40);
    wait::until("the load runs", || lines(&runs[1]) > 20);
    cluster.begin(2);
    cluster.wait_up();
    cluster.wait_known();
    let _second = counting(cluster.broker(2), &cluster.broker(2).url(), &runs[2], "0.02");
    wait::until("the new one helps", || lines(&runs[2]) > 0);
    answered(load, COUNT);
    assert_eq!(lines(&runs[1]) + lines(&runs[2]), COUNT, "each was run once");
}

/// Proves S2.4 and S2.5: a link is added and removed while the brokers run.
#[test]
fn a_link_by_hand() {
    let cluster = Plan::new(2, []).start();
    let address = cluster.net().way(0, 1).to_string();
    cluster.ask(0, AdminCall::LinkAdd { address: address.clone() });
    wait::until("it is up", || cluster.linked(0) == ["beta"] && cluster.linked(1) == ["alpha"]);
    all_meet(&cluster, 1);
    cluster.ask(0, AdminCall::LinkRm { link: address });
    wait::until("it is gone", || cluster.links(0).is_empty() && cluster.links(1).is_empty());
}

/// Proves S2.4, S2.16, S2.17, S2.18, I13 and I15: three brokers, each told to link with the others, are restarted one by
/// one under load, five times. Each request is answered and run once.
#[test]
fn restarted_one_by_one_under_load() {
    const COUNT: usize = 300;
    let mut cluster = Plan::both_ways(3).start();
    let place = Place::new();
    let runs = place.path().join("runs");
    let program = format!("echo run >> {}; sleep 0.02; echo done", runs.display());
    let guest = cluster.guest();
    let outside = cluster.net().host(guest).place();
    let orders = [[0, 1, 2], [1, 2, 0], [2, 0, 1]];
    let workers = orders.map(|order| {
        let urls = cluster.urls(guest, &order);
        let worker = outside.start(["work", "q", "--url", &urls, "--slots", "4", "--", "sh", "-c", &program]);
        worker.expect_line("registered");
        worker
    });
    for round in 1..=5 {
        let loads = orders.map(|order| load(&outside, &cluster.urls(guest, &order), COUNT, 5));
        wait::until("the load runs", || lines(&runs) > (round - 1) * 3 * COUNT + 30);
        cluster.restart_all();
        for load in loads {
            answered(load, COUNT);
        }
        assert_eq!(lines(&runs), round * 3 * COUNT, "each was run once");
    }
    drop(workers);
}

/// Proves S2.4, S2.6, S2.17, I1 and I2: the same with sends on disk, given to each broker before it ends and while another
/// does. None is lost, and none is run twice under one attempt.
#[test]
fn stored_sends_outlast_a_rolling_restart() {
    const EACH: usize = 100;
    let mut cluster = Plan::both_ways(3).start();
    let place = Place::new();
    let runs = place.path().join("runs");
    let program = format!("echo \"$(cat) $TURNO_ATTEMPT\" >> {}; sleep 0.02", runs.display());
    let guest = cluster.guest();
    let outside = cluster.net().host(guest).place();
    // Two of them, so that one broker always has no worker and its sends must cross.
    let _workers = [[0, 1, 2], [1, 2, 0]].map(|order| {
        let urls = cluster.urls(guest, &order);
        let worker = outside.start(["work", "q", "--url", &urls, "--slots", "4", "--", "sh", "-c", &program]);
        worker.expect_line("registered");
        worker
    });
    let mut sent = BTreeSet::new();
    let mut send = |cluster: &Cluster, at: usize| {
        let lines: Vec<String> =
            (0..EACH).map(|number| format!("{}-{}", sent.len() + number, cluster.name(at))).collect();
        let input = lines.join("\n");
        cluster.broker(at).place.run_with_input(["send", "q", "--lines"], input.as_bytes()).expect(0);
        sent.extend(lines);
    };
    for at in 0..3 {
        let before = lines(&runs);
        send(&cluster, at);
        wait::until("they are worked on", || lines(&runs) > before + EACH / 10);
        cluster.end(at);
        send(&cluster, (at + 1) % 3);
        cluster.begin(at);
        cluster.wait_up();
    }
    wait::until("all are settled", || {
        cluster.running().iter().all(|at| {
            let status = cluster.broker(*at).status();
            status["ready"] == 0 && status["in_flight"] == 0
        })
    });
    let text = std::fs::read_to_string(&runs).expect("they ran");
    let run: BTreeSet<String> =
        text.lines().map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect();
    assert_eq!(run, sent, "each was run");
    let attempts: BTreeSet<&str> = text.lines().collect();
    assert_eq!(attempts.len(), text.lines().count(), "none twice under one attempt");
    for at in 0..3 {
        assert_eq!(cluster.broker(at).status()["dead"], 0, "{at}");
    }
}

/// Proves S2.5: what people see of a row of three, at its middle and at its end.
#[test]
fn a_chain_as_the_command_line_shows_it() {
    let cluster = Plan::chain(3).start();
    graph_is_true(&cluster, |one, other| one.abs_diff(other));
    let show = |at: usize, words: &[&str]| cluster.broker(at).run(words).expect(0).text();
    let mut rows: Vec<String> =
        show(1, &["link", "ls", "--columns", "name,state"]).lines().map(str::to_owned).collect();
    rows.sort_unstable();
    assert_eq!(rows, ["NAME   STATE", "alpha  up", "gamma  up"]);
    let table = show(0, &["link", "graph"]);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    let expected = [
        &["NAME", "HOPS", "PATH", "NEIGHBOURS"][..],
        &["alpha", "0", "-", "beta"],
        &["beta", "1", "beta", "alpha,gamma"],
        &["gamma", "2", "beta>gamma", "beta"],
    ];
    assert_eq!(rows, expected, "{table}");
    let ids: HashMap<String, String> =
        cluster.graph(2).into_iter().map(|broker| (broker.name, broker.broker)).collect();
    let dot = show(2, &["link", "graph", "--dot"]);
    let mut drawn: Vec<&str> = dot.lines().map(|line| line.trim().trim_end_matches(';')).collect();
    let edge = |one: &str, other: &str| {
        let (one, other) = (&ids[one], &ids[other]);
        format!("\"{}\" -- \"{}\"", one.min(other), one.max(other))
    };
    let mut expected = vec![
        "graph links {".to_owned(),
        "node [shape=box]".to_owned(),
        format!("\"{}\" [label=\"alpha\"]", ids["alpha"]),
        format!("\"{}\" [label=\"beta\"]", ids["beta"]),
        format!("\"{}\" [label=\"gamma\", style=bold]", ids["gamma"]),
        edge("alpha", "beta"),
        edge("beta", "gamma"),
        "}".to_owned(),
    ];
    drawn.sort_unstable();
    expected.sort_unstable();
    assert_eq!(drawn, expected, "{dot}");
}
