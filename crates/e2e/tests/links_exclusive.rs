//! Queues with a single consumer over all linked brokers (S2.27).

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use serde_json::Value;
use turno_e2e::{Background, Cluster, Place, Plan, wait};

const SOON: Duration = wait::PATIENCE;

/// The same at all brokers, so that no two give out one token.
const ORDER: &str = "[link]\norder = [\"alpha\", \"beta\", \"gamma\"]\n";

/// A worker that wants the queue to itself and writes down what it did, under which token.
fn clerk(cluster: &Cluster, at: usize, book: &Place, flags: &[&str]) -> Background {
    let name = cluster.name(at);
    let program = format!("echo \"{name} $(cat) $TURNO_FENCE\" >> {}", book.path().join("book").display());
    let fixed = ["work", "q", "--exclusive", "--name", name];
    cluster.broker(at).start_turno(&[&fixed, flags, &["--", "sh", "-c", &program]].concat())
}

/// Who did what under which token, in order.
fn entries(book: &Place) -> Vec<(String, String, u64)> {
    let text = fs::read_to_string(book.path().join("book")).unwrap_or_default();
    let entry = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [who, what, token] = words.as_slice() else { panic!("{line:?} is no entry") };
        ((*who).to_owned(), (*what).to_owned(), token.parse().expect("a decimal token"))
    };
    text.lines().map(entry).collect()
}

/// The tokens that a worker was active with, in order.
fn tokens(worker: &Background) -> Vec<u64> {
    let lines = worker.stderr().into_iter();
    lines.filter_map(|line| line.rsplit_once("is active on queue q, token ")?.1.parse().ok()).collect()
}

/// Waits for its next token after so many.
#[track_caller]
fn next_token(worker: &Background, after: usize) -> u64 {
    let token = wait::find(SOON, || tokens(worker).get(after).copied());
    token.unwrap_or_else(|| panic!("it did not take over: {:?}", worker.stderr()))
}

/// How often it was told to stand by.
fn stood_by(worker: &Background) -> usize {
    worker.stderr().iter().filter(|line| line.ends_with("is on standby for queue q")).count()
}

/// Sends something from each broker that runs, and waits until it was all done by that worker under that token.
#[track_caller]
fn all_is_done_by(cluster: &Cluster, book: &Place, who: usize, token: u64, text: &str) {
    let before = entries(book).len();
    for at in cluster.running() {
        cluster.broker(at).run(&["send", "q", &format!("{text}-{at}")]).expect(0);
    }
    let count = cluster.running().len();
    wait::until("it is all done", || entries(book).len() >= before + count);
    let done = entries(book).split_off(before);
    let texts: BTreeSet<String> = done.iter().map(|(_, what, _)| what.clone()).collect();
    let expected = cluster.running().into_iter().map(|at| format!("{text}-{at}")).collect();
    assert_eq!((done.len(), texts), (count, expected), "each once: {done:?}");
    let by = (cluster.name(who), token);
    assert!(done.iter().all(|(name, _, with)| (name.as_str(), *with) == by), "by {by:?}: {done:?}");
}

/// Waits until one broker that runs has the holder, and at each other one worker stands by; which, and its token.
#[track_caller]
fn await_holder(cluster: &Cluster) -> (usize, u64) {
    let found = wait::find(SOON, || {
        let queues: Vec<(usize, Value)> =
            cluster.running().into_iter().map(|at| (at, cluster.broker(at).queue("q"))).collect();
        let holder = |(at, queue): &(usize, Value)| {
            let token = queue["exclusive"]["token"].as_str()?;
            Some((*at, token.parse().expect("a decimal token")))
        };
        let holders: Vec<(usize, u64)> = queues.iter().filter_map(holder).collect();
        let waiting = queues.iter().filter(|(_, queue)| queue["waiters"] == 1).count();
        (holders.len() == 1 && waiting + 1 == queues.len()).then(|| holders[0])
    });
    found.unwrap_or_else(|| {
        let queues: Vec<Value> = cluster.running().into_iter().map(|at| cluster.broker(at).queue("q")).collect();
        panic!("not one holder of all brokers: {queues:?}")
    })
}

/// Proves S2.27, S2.21 and I8: of the workers at three brokers one has the queue, whatever broker its messages are given to,
/// and others stand by or are refused, whether they want it to themselves or not. When the broker of the holder is killed,
/// one of those takes over with a higher token, again and again, with home dead or alive.
#[test]
fn one_holder_of_all_brokers() {
    let mut cluster = Plan::ring(3).config(ORDER).start();
    cluster.wait_known();
    let book = Place::new();
    // Not at home.
    let first = clerk(&cluster, 2, &book, &["--standby"]);
    let token = next_token(&first, 0);
    let mut clerks = vec![first];
    for at in [0, 1] {
        wait::until("the holder is known elsewhere", || cluster.links(at).iter().any(|link| link.offered > 0));
        for flags in [&["--exclusive"][..], &[]] {
            let refused = cluster.broker(at).run(&[&["work", "q", "--echo", "--json"], flags].concat()).expect(1);
            assert_eq!(refused.error_code(), "queue_full", "at {at}, {flags:?}");
        }
        let next = clerk(&cluster, at, &book, &["--standby"]);
        next.expect_line("is on standby for queue q");
        clerks.push(next);
    }
    let mut holder = await_holder(&cluster);
    assert_eq!(holder, (2, token));
    for round in 0..3 {
        all_is_done_by(&cluster, &book, holder.0, holder.1, &format!("all-{round}"));
        cluster.kill(holder.0);
        let heir = await_holder(&cluster);
        assert!(heir.1 > holder.1, "{heir:?} after {holder:?}");
        all_is_done_by(&cluster, &book, heir.0, heir.1, &format!("two-{round}"));
        cluster.begin(holder.0);
        cluster.wait_up();
        // Its own worker may have been there before its links were: then they were apart, and the higher token stays.
        let stays = await_holder(&cluster);
        assert!(stays == heir || stays.0 == holder.0 && stays.1 > heir.1, "{stays:?} after {heir:?}");
        holder = stays;
    }
    let all: Vec<u64> = clerks.iter().flat_map(tokens).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "no token twice: {all:?}");
}

/// Proves S2.27 in a row: the holder at one end, home at the other. With the middle dead they are apart.
#[test]
fn a_holder_behind_a_broker_that_dies() {
    let mut cluster = Plan::chain(3).config(ORDER).start();
    cluster.wait_known();
    let book = Place::new();
    let holder = clerk(&cluster, 2, &book, &["--standby"]);
    let token = next_token(&holder, 0);
    let next = clerk(&cluster, 0, &book, &["--standby"]);
    next.expect_line("is on standby for queue q");
    all_is_done_by(&cluster, &book, 2, token, "far");
    cluster.kill(1);
    let higher = next_token(&next, 0);
    assert!(higher > token, "{higher} after {token}");
    cluster.begin(1);
    cluster.wait_up();
    wait::until("the lower token is told", || stood_by(&holder) == 1);
    all_is_done_by(&cluster, &book, 0, higher, "healed");
    assert_eq!((tokens(&holder), tokens(&next)), (vec![token], vec![higher]));
}

/// Proves S2.27: a standby at the broker of the holder comes before those elsewhere.
#[test]
fn those_at_the_same_broker_come_first() {
    let cluster = Plan::chain(2).config(ORDER).start();
    cluster.wait_known();
    let book = Place::new();
    let mut holder = clerk(&cluster, 1, &book, &[]);
    let token = next_token(&holder, 0);
    let elsewhere = clerk(&cluster, 0, &book, &["--standby"]);
    elsewhere.expect_line("is on standby for queue q");
    let beside = clerk(&cluster, 1, &book, &["--standby"]);
    beside.expect_line("is on standby for queue q");
    holder.signal(rustix::process::Signal::KILL);
    holder.end(SOON);
    let higher = next_token(&beside, 0);
    assert!(higher > token, "{higher} after {token}");
    all_is_done_by(&cluster, &book, 1, higher, "beside");
    assert!(tokens(&elsewhere).is_empty(), "it still stands by");
}

/// Proves S2.27 and I8: in a partition each side has a holder, under tokens of its own; when the sides meet again the one
/// with the lower token is told and stands by, and everything goes to the other.
#[test]
fn a_partition_and_its_healing() {
    let cluster = Plan::mesh(3).config(ORDER).start();
    cluster.wait_known();
    let book = Place::new();
    let home = clerk(&cluster, 0, &book, &["--standby"]);
    let mut token = next_token(&home, 0);
    let away = clerk(&cluster, 2, &book, &["--standby"]);
    away.expect_line("is on standby for queue q");
    let (mut holder, mut other) = ((0, &home), (2, &away));
    for round in 1..=3 {
        let (before, stood) = (tokens(other.1).len(), stood_by(holder.1));
        cluster.net().unplug(2);
        let higher = next_token(other.1, before);
        assert!(higher > token, "round {round}: {higher} after {token}");
        // Both are at work, each for its own side, under a token of its own.
        for (at, with) in [(holder.0, token), (other.0, higher)] {
            let text = format!("alone-{round}-{at}");
            cluster.broker(at).run(&["send", "q", &text]).expect(0);
            let done = (cluster.name(at).to_owned(), text, with);
            wait::until("each side does its own", || entries(&book).contains(&done));
        }
        cluster.net().plug(2);
        cluster.wait_up();
        wait::until("the lower token is told", || stood_by(holder.1) > stood);
        all_is_done_by(&cluster, &book, other.0, higher, &format!("healed-{round}"));
        assert_eq!(tokens(other.1).len(), before + 1, "the higher one stays: {:?}", other.1.stderr());
        (holder, other, token) = (other, holder, higher);
    }
    let all: Vec<u64> = [&home, &away].into_iter().flat_map(tokens).collect();
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "no token twice: {all:?}");
}

/// Proves S2.27: one that lost the queue in a partition and does not stand by ends, as it would have if it had started then.
#[test]
fn one_that_does_not_stand_by_ends_when_the_sides_meet() {
    let cluster = Plan::chain(2).config(ORDER).start();
    cluster.wait_known();
    let book = Place::new();
    let mut first = clerk(&cluster, 0, &book, &[]);
    let token = next_token(&first, 0);
    let second = clerk(&cluster, 1, &book, &["--standby"]);
    second.expect_line("is on standby for queue q");
    cluster.net().unplug(1);
    let higher = next_token(&second, 0);
    assert!(higher > token, "{higher} after {token}");
    assert!(first.runs());
    cluster.net().plug(1);
    assert_ne!(first.end(SOON), 0, "{:?}", first.stderr());
    first.expect_line("queue_full");
    all_is_done_by(&cluster, &book, 1, higher, "healed");
}
