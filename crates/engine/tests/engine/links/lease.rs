//! Leases of workers behind a link, and what comes over a link to a queue in which something waits.

use turno_engine::{Effect, NativeEffect, PeerEffect, Settings};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::Reason;
use turno_proto::model::{Code, MessageId};

use super::net::{Net, Place};

fn two(lease_ms: Option<u64>) -> Net {
    let mut net = Net::with(2, &Settings { lease_ms, drop_after: 0, ..Settings::default() });
    net.link(0, 1);
    net.settle();
    net
}

/// The reasons for which a worker was told to stop.
fn stops(net: &mut Net, worker: Place) -> Vec<Code> {
    let reason = |effect: Effect| match effect {
        Effect::Peer(PeerEffect::Stop { reason, .. }) => Some(reason),
        _ => None,
    };
    net.heard_by(worker).into_iter().filter_map(reason).collect()
}

fn stored_id(net: &mut Net, sender: Place) -> MessageId {
    let id = |effect: Effect| match effect {
        Effect::Peer(PeerEffect::Native { effect: NativeEffect::Stored { id, .. }, .. }) => Some(id),
        _ => None,
    };
    net.heard_by(sender).into_iter().find_map(id).expect("it is stored")
}

/// Proves S2.34: the broker of the worker gives the lease, and an attempt ends with it as it does without a link: attempt 1,
/// then 2, then a dead letter at the owner, whose last failure says why. What the first holder says then is late.
#[test]
fn a_lease_runs_out_behind_a_link() {
    const LEASE_MS: u64 = 1_000;
    let mut net = two(Some(LEASE_MS));
    let workers = [net.worker(1, "q", 1), net.worker(1, "q", 1)];
    let sender = net.client(0, "q");
    net.settle();
    net.send(sender, "a", |message| message.retries = Some(1));
    net.settle_for(LEASE_MS - 1);
    let id = stored_id(&mut net, sender);
    let first = net.take("a");
    assert_eq!((first.worker, first.attempt), (workers[0], 1));
    assert_eq!(stops(&mut net, workers[0]), []);
    net.settle();
    assert_eq!(stops(&mut net, workers[0]), [Code::LeaseExpired]);
    let second = net.take("a");
    assert_eq!((second.worker, second.attempt), (workers[1], 2));
    net.ack(&first);
    net.settle();
    let late = net.engines[1].status().counters.late;
    assert_eq!(late, 1, "the first attempt is over");
    net.settle_for(LEASE_MS);
    assert_eq!(stops(&mut net, workers[1]), [Code::LeaseExpired]);
    assert!(net.given.is_empty(), "there is no third attempt: {:?}", net.given);
    let answer = net.call(0, AdminCall::MessageExplain { id: id.to_string() });
    let Ok(AdminAnswer::Message { explanation }) = answer else { panic!("{answer:?}") };
    assert!(matches!(explanation.because.0, Reason::Dead { .. }), "{explanation:?}");
    assert_eq!(explanation.message.attempts, 2);
}

/// Proves I11: what comes over a link overtakes nothing that waits here. It comes back, waits at its owner, and has its turn when
/// there is room again.
#[test]
fn a_crossing_does_not_overtake_what_waits() {
    let mut net = two(None);
    let worker = net.worker(1, "q", 2);
    let (near, far) = (net.client(1, "q"), net.client(0, "q"));
    net.settle();
    net.request(near, "small");
    let small = net.take("small");
    // It is on its way to the free slot when a costly one comes that needs both.
    net.request(far, "far");
    net.ask(near, "costly", |message| message.cost = Some(2));
    assert!(net.given.is_empty());
    net.settle();
    assert_eq!(net.crossed.len(), 1, "it crossed");
    assert!(net.given.is_empty(), "one slot is free, and kept for what came first: {:?}", net.given);
    net.reply(&small, "ok", false);
    net.settle();
    let costly = net.take("costly");
    assert!(net.given.is_empty(), "both slots are in use: {:?}", net.given);
    net.reply(&costly, "ok", false);
    net.settle();
    let taken = net.take("far");
    assert_eq!((taken.worker, taken.attempt), (worker, 1));
}
