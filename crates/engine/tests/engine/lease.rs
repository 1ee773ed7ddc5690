//! A worker may hold a delivery for its lease only, unless it asks for more.

use turno_engine::{Input, Settings, WorkerMessage};
use turno_proto::model::view::Reason;
use turno_proto::model::{Code, ConnId};

use crate::harness::{Harness, ask};
use crate::seen::{Seen, delivered, reply, sent, turn, undelivered};

fn harness_with_lease(lease_ms: u64) -> Harness {
    Harness::with(Settings { lease_ms: Some(lease_ms), ..Settings::default() })
}

fn extend(harness: &mut Harness, worker: ConnId, text: &str, lease_ms: u32) -> Vec<Seen> {
    let delivery = harness.held(worker, text);
    harness.say(Input::worker(worker, delivery, WorkerMessage::Extend { lease_ms }))
}

/// Proves S2.34 and S2.37: a lease that runs out ends the attempt as a lost worker would: the holder is told, the
/// message goes to another, and the first one's settlement is late.
#[test]
fn a_lease_that_runs_out_ends_the_attempt() {
    let mut harness = harness_with_lease(1_000);
    let (worker, other, client) = (harness.worker(1, &["q"]), harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, [sent(worker, "a")]);
    assert_eq!(harness.pass(999), []);
    let told = harness.stopped(worker, "a", Code::LeaseExpired);
    assert_eq!(harness.pass(1), [told, sent(other, "a").attempt(2)]);
    assert_eq!(harness.ack(worker, "a"), []);
    assert_eq!(harness.counters().late, 1);
    assert_eq!(harness.ack(other, "a"), []);
    assert_eq!(harness.counters().acked, 1);
}

/// EXTEND renews the lease from now, as often as it is said, by the holder only.
#[test]
fn extending_renews_the_lease() {
    let mut harness = harness_with_lease(1_000);
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let (id, _) = harness.send(client, ask(1, "q", "a").retries(0));
    for _ in 0..3 {
        assert_eq!(harness.pass(900), []);
        assert_eq!(extend(&mut harness, worker, "a", 1_000), []);
    }
    let delivery = harness.held(worker, "a");
    assert_eq!(harness.say(Input::worker(client, delivery, WorkerMessage::Extend { lease_ms: 60_000 })), []);
    assert_eq!(harness.counters().forged, 1);
    assert_eq!(harness.pass(999), []);
    assert_eq!(harness.pass(1), [harness.stopped(worker, "a", Code::LeaseExpired)]);
    let failure = Code::LeaseExpired.text().what.to_owned();
    assert_eq!(harness.explain(id).because.0, Reason::Dead { failure });
    assert_eq!(extend(&mut harness, worker, "a", 1_000), []);
    assert_eq!(harness.counters().late, 1);
}

/// Proves S2.35 and I13: a request without retries ends when its lease runs out; no lease outlives the request's
/// own deadline, however far it was extended.
#[test]
fn a_lease_never_outlives_the_deadline() {
    let mut harness = Harness::with(Settings { lease_ms: Some(1_000), drop_after: 0, ..Settings::default() });
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    let told = [harness.stopped(worker, "a", Code::LeaseExpired), undelivered(client, 1, Code::LeaseExpired)];
    assert_eq!(harness.pass(1_000), told);
    assert_eq!(harness.request(client, ask(2, "q", "b").within(5_000)), [turn(worker, "b").left(Some(5_000))]);
    assert_eq!(extend(&mut harness, worker, "b", 3_600_000), []);
    assert_eq!(harness.pass(4_999), []);
    let told = [undelivered(client, 2, Code::TimedOut), harness.stopped(worker, "b", Code::TimedOut)];
    assert_eq!(harness.pass(1), told);
}

/// Without a lease a delivery is held as long as its worker is connected, and EXTEND changes nothing.
#[test]
fn without_a_lease_a_delivery_is_held_for_ever() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    harness.send(client, ask(1, "q", "a"));
    assert_eq!(extend(&mut harness, worker, "a", 10), []);
    assert_eq!(harness.pass(86_400_000), []);
    assert_eq!(harness.ack(worker, "a"), []);
    assert_eq!(harness.counters().acked, 1);
}

/// Proves S2.12 and S2.36: a no-reply request has no lease, and a settled delivery leaves none behind.
#[test]
fn leases_end_with_their_delivery() {
    let mut harness = harness_with_lease(1_000);
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    let expected = [turn(worker, "a").one_way(), delivered(client, 1)];
    assert_eq!(harness.request(client, ask(1, "q", "a").no_reply()), expected);
    assert_eq!(harness.request(client, ask(2, "q", "b")), [turn(worker, "b")]);
    assert_eq!(harness.reply(worker, "b", "B"), [reply(client, 2, "B")]);
    assert_eq!(harness.pass(60_000), []);
    assert_eq!(harness.engine.next_deadline(), None);
    assert_eq!(harness.ack(worker, "a"), []);
    assert_eq!(harness.counters().acked, 1);
}

/// Proves S2.38: a send given back by its lease after its own timeout is gone.
#[test]
fn a_lease_that_ends_after_the_timeout() {
    let mut harness = harness_with_lease(2_000);
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.send(client, ask(1, "q", "a").within(1_500)).1, [sent(worker, "a").left(Some(1_500))]);
    assert_eq!(harness.pass(2_000), [harness.stopped(worker, "a", Code::LeaseExpired)]);
    let view = harness.status();
    assert_eq!((view.ready, view.in_flight, view.dead, view.counters.expired), (0, 0, 0, 1));
}

/// Proves S2.38: what waits again after its lease ends at its own deadline, to the millisecond, and not when somebody looks.
#[test]
fn the_deadline_holds_after_the_lease() {
    let mut harness = harness_with_lease(1_000);
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.send(client, ask(1, "q", "a").within(2_700)).1, [sent(worker, "a").left(Some(2_700))]);
    assert_eq!(harness.resize(worker, 0), Ok(vec![]));
    assert_eq!(harness.pass(1_000), [harness.stopped(worker, "a", Code::LeaseExpired)]);
    assert_eq!(harness.pass(1_699), []);
    assert_eq!((harness.status().ready, harness.counters().expired), (1, 0));
    assert_eq!(harness.pass(1), []);
    assert_eq!((harness.status().ready, harness.counters().expired), (0, 1));
}
