//! What crossed is given up by its owner: the far worker hears why.

use turno_engine::{
    Broadcast, CallerMessage, Effect, Engine, Forward, ForwardBroadcast, Input, LinkMessage, NativeEffect, Neighbour,
    PeerEffect, Settings,
};
use turno_proto::model::link::{ForwardWants, Path};
use turno_proto::model::{Code, MessageId};

use super::net::{Net, Place};
use crate::seen::body;

/// The neighbour, whose messages the test makes up.
const OTHER: usize = 7;

/// A broker gets one worker, and the end of a link.
fn linked(net: &mut Net) -> (Place, Place) {
    let worker = net.worker(0, "q", 1);
    let link = net.place(0);
    let (conn, broker) = (link.conn, Net::id(OTHER));
    let (name, address) = ("b7".to_owned(), "127.0.0.1:1".to_owned());
    net.put(
        0,
        Input::Linked { conn, target: None, neighbour: Neighbour { broker, name, address, payload_max: 1_000 } },
    );
    net.put(0, Input::Open { conn, seq: 0, handle: 0, queue: "q".parse().expect("a name") });
    (worker, link)
}

/// A request that the neighbour sends.
fn forward() -> Forward {
    Forward {
        seq: 5,
        handle: 0,
        id: MessageId::new(107, 1, 0),
        wants: ForwardWants::Reply,
        attempt: 1,
        cost: 1,
        priority: 4,
        deadline_ms: Some(60_000),
        alone: false,
        path: path(),
        payload: body("x"),
    }
}

fn path() -> Path {
    Path::default().then(Net::id(OTHER)).expect("one broker is no long way")
}

/// Why a worker was told to stop.
fn stopped(net: &mut Net, worker: Place) -> Vec<Code> {
    let heard = net.heard_by(worker).into_iter();
    heard
        .filter_map(
            |effect| if let Effect::Peer(PeerEffect::Stop { reason, .. }) = effect { Some(reason) } else { None },
        )
        .collect()
}

/// What the other end of the link is told of the crossings.
fn undelivered(net: &mut Net, link: Place) -> Vec<(u32, Code)> {
    let heard = net.heard_by(link).into_iter();
    heard
        .filter_map(|effect| {
            if let Effect::Peer(PeerEffect::Caller { seq, message: CallerMessage::Undelivered { code, .. }, .. }) =
                effect
            {
                Some((seq, code))
            } else {
                None
            }
        })
        .collect()
}

/// S2.6: each reason there is, and what says nothing to a worker.
#[test]
fn a_far_worker_hears_the_reason() {
    let table = [
        (Code::Cancelled, Code::Cancelled),
        (Code::CallerGone, Code::CallerGone),
        (Code::TimedOut, Code::TimedOut),
        (Code::NoRoom, Code::Cancelled),
        (Code::Other, Code::Cancelled),
    ];
    for (said, heard) in table {
        let expired = u64::from(heard == Code::TimedOut);
        let mut net = Net::new(1);
        let (worker, link) = linked(&mut net);
        let conn = link.conn;
        net.put(0, Input::Forwarded { conn, forward: Box::new(forward()) });
        let given = net.take("x");
        net.put(0, Input::FarCancel { conn, seq: 5, reason: said });
        assert_eq!(stopped(&mut net, worker), [heard], "{said}");
        assert_eq!(undelivered(&mut net, link), [(5, heard)], "{said}");
        net.put(0, Input::FarCancel { conn, seq: 5, reason: said });
        assert_eq!((stopped(&mut net, worker), undelivered(&mut net, link)), (vec![], vec![]), "{said}: once");
        net.ack(&given);
        let status = net.engines[0].status();
        assert_eq!((status.counters.expired, status.counters.cancelled), (expired, 1 - expired), "{said}");
        assert_eq!((status.in_flight, status.slots_used), (0, 0), "{said}");

        let mut net = Net::new(1);
        let (worker, link) = linked(&mut net);
        let conn = link.conn;
        let broadcast = ForwardBroadcast {
            seq: 6,
            handle: 0,
            deadline_ms: 60_000,
            no_reply: false,
            targets: vec![Net::id(0)],
            path: path(),
            payload: body("all"),
        };
        net.put(0, Input::Link { conn, message: Box::new(LinkMessage::Broadcast(broadcast)) });
        net.take("all");
        net.put(0, Input::FarCancel { conn, seq: 6, reason: said });
        assert_eq!(stopped(&mut net, worker), [heard], "a broadcast, {said}");
        assert_eq!(undelivered(&mut net, link), [(6, heard)], "a broadcast, {said}");
    }
}

/// S2.6, S1.35: the reason goes through brokers in between.
#[test]
fn a_reason_goes_through_brokers_in_between() {
    let mut net = Net::new(3);
    net.link(0, 1);
    net.link(1, 2);
    let worker = net.worker(2, "q", 2);
    let caller = net.client(0, "q");
    net.settle();
    net.ask(caller, "late", |message| message.deadline_ms = Some(500));
    net.settle_for(1_000);
    assert_eq!(stopped(&mut net, worker), [Code::TimedOut]);
    net.ask(caller, "left", |message| message.cancel_on_disconnect = true);
    let (seq, payload) = (net.seq(), body("all"));
    let broadcast = Broadcast { seq, handle: 0, deadline_ms: None, no_reply: false, skip_self: false, payload };
    net.put(0, Input::Broadcast { conn: caller.conn, broadcast });
    net.settle();
    assert_eq!(net.given.len(), 3);
    net.put(0, Input::Disconnected { conn: caller.conn });
    net.settle();
    assert_eq!(stopped(&mut net, worker), [Code::CallerGone, Code::CallerGone]);
}

/// S2.29, S2.30: what expires at a far worker counts against it, whichever broker noticed first; not so if the worker had
/// less than half of the time, for then the message was on its way for longer than it was here.
#[test]
fn an_expiry_that_its_owner_noticed_counts() {
    // After so many milliseconds of 1,000 each delivery's owner says so, and whether the second of them is one too many.
    let table = [(999, true), (500, true), (499, false), (0, false)];
    for (after_ms, dropped) in table {
        let mut net = Net::new(1);
        let settings = Settings { name: "b0".to_owned(), run: 100, drop_after: 2, ..Settings::default() };
        net.engines[0] = Engine::new(settings, net.now);
        let (worker, link) = linked(&mut net);
        let conn = link.conn;
        for seq in 1..3 {
            let deadline_ms = Some(1_000);
            let forward = Forward { seq, id: MessageId::new(107, u64::from(seq), 0), deadline_ms, ..forward() };
            net.put(0, Input::Forwarded { conn, forward: Box::new(forward) });
            let given = net.take("x");
            net.tick(after_ms);
            net.put(0, Input::FarCancel { conn, seq, reason: Code::TimedOut });
            // The slot comes back; that settlement is too late to clear the worker.
            net.ack(&given);
        }
        let heard = net.heard_by(worker);
        let is_dropped = |effect: &Effect| {
            matches!(
                effect,
                Effect::Peer(PeerEffect::Native {
                    effect: NativeEffect::CancelQueue { reason: Code::Dropped, .. },
                    ..
                })
            )
        };
        assert_eq!(heard.iter().any(is_dropped), dropped, "after {after_ms} ms: {heard:?}");
        assert_eq!(net.engines[0].status().counters.expired, 2, "after {after_ms} ms");
    }
}

/// A send that crossed has no lease at its owner: the broker of its worker looks after it, also when its own deadline,
/// which is for waiting, has passed.
#[test]
fn a_send_that_crossed_has_no_lease_at_its_owner() {
    let mut net = Net::new(2);
    let settings = Settings { name: "b0".to_owned(), run: 100, lease_ms: Some(1_000), ..Settings::default() };
    net.engines[0] = Engine::new(settings, net.now);
    net.link(0, 1);
    let worker = net.worker(1, "q", 1);
    let sender = net.client(0, "q");
    net.settle();
    net.send(sender, "work", |message| message.deadline_ms = Some(300));
    net.settle_for(5_000);
    assert_eq!(stopped(&mut net, worker), []);
    let given = net.take("work");
    net.ack(&given);
    net.settle();
    let status = net.engines[0].status();
    assert_eq!((status.counters.acked, status.counters.expired, status.in_flight), (1, 0, 0));
}
