//! What crosses a link and does not come to a worker: its caller hears of it all the same.

use turno_engine::{Again, Broadcast, CallerMessage, Effect, Input, Outgoing, PeerEffect, WorkerMessage};
use turno_proto::model::Code;

use super::net::{Net, Place};
use crate::seen::body;

fn two() -> Net {
    let mut net = Net::new(2);
    net.link(0, 1);
    net.settle();
    net
}

fn ask_without_reply(net: &mut Net, caller: Place, text: &str) {
    let message = Outgoing::new(net.seq(), 0, body(text));
    net.put(caller.broker, Input::Request { conn: caller.conn, message: Outgoing { no_reply: true, ..message } });
}

/// S2.12: a no-reply request for which there was no room after all waits at its owner like any other.
#[test]
fn a_no_reply_that_finds_no_room_waits_at_its_owner() {
    let mut net = two();
    let worker = net.worker(1, "q", 1);
    let (caller, rival) = (net.client(0, "q"), net.client(1, "q"));
    net.settle();
    // Both think that the one slot is free.
    ask_without_reply(&mut net, caller, "far");
    net.request(rival, "near");
    net.settle();
    assert_eq!(net.heard_by(caller), [], "it has been written to nobody");
    let near = net.take("near");
    net.reply(&near, "done", false);
    net.settle_for(1_000);
    assert_eq!(net.take("far").worker, worker);
    assert!(matches!(
        net.heard_by(caller)[..],
        [Effect::Peer(PeerEffect::Caller { message: CallerMessage::Delivered, .. })]
    ));
}

/// I13: a link is lost with a no-reply request on it: nobody knows whether it was written, and its caller is told so.
#[test]
fn a_no_reply_is_lost_with_its_link_and_its_caller_hears_of_it() {
    let mut net = two();
    net.worker(1, "q", 1);
    let caller = net.client(0, "q");
    net.settle();
    ask_without_reply(&mut net, caller, "far");
    net.unlink(0, 1);
    assert!(matches!(
        net.heard_by(caller)[..],
        [Effect::Peer(PeerEffect::Caller { message: CallerMessage::Undelivered { code: Code::WorkerLost, .. }, .. })]
    ));
}

/// I13: the other end is silent until the time is over: the caller of a no-reply request hears then, as any other.
#[test]
fn a_no_reply_that_is_on_its_way_has_a_deadline() {
    let mut net = two();
    net.worker(1, "q", 1);
    let caller = net.client(0, "q");
    net.settle();
    let message = Outgoing { deadline_ms: Some(500), ..Outgoing::new(net.seq(), 0, body("far")) };
    net.put(0, Input::Request { conn: caller.conn, message: Outgoing { no_reply: true, ..message } });
    net.tick(499);
    assert_eq!(net.heard_by(caller), [], "there is time left");
    net.tick(1);
    assert!(matches!(
        net.heard_by(caller)[..],
        [Effect::Peer(PeerEffect::Caller { message: CallerMessage::Undelivered { code: Code::TimedOut, .. }, .. })]
    ));
    assert!(net.crossed.is_empty(), "it has not arrived");
    // It was on its way, not in the backlog of its owner. When it arrives its caller has been told, and hears no more.
    net.settle_for(1_000);
    assert_eq!(net.crossed, [(0, 1, "far".to_owned(), 1)]);
    assert_eq!(net.heard_by(caller), []);
}

/// S2.13: a link is lost after some behind it have answered: the end tells of those, and of one that left.
#[test]
fn the_end_of_a_broadcast_counts_who_answered_before_a_link_was_lost() {
    let mut net = two();
    for _ in 0..3 {
        net.worker(1, "q", 1);
    }
    let caller = net.client(0, "q");
    net.settle();
    let (seq, payload) = (net.seq(), body("all"));
    let broadcast = Broadcast { seq, handle: 0, deadline_ms: None, no_reply: false, skip_self: false, payload };
    net.put(0, Input::Broadcast { conn: caller.conn, broadcast });
    net.settle();
    let given = net.given.remove(0);
    net.reply(&given, "one", false);
    fail_next(&mut net);
    net.settle();
    net.unlink(0, 1);
    let heard = net.heard_by(caller);
    let Some(Effect::Peer(PeerEffect::Caller { message: CallerMessage::BroadcastEnd(end), .. })) = heard.last() else {
        panic!("{heard:?}")
    };
    assert_eq!((end.consumers, end.answered, end.failed, end.expired, end.left), (3, 1, 1, 0, 1));
}

fn fail_next(net: &mut Net) {
    let given = net.given.remove(0);
    let (conn, delivery) = (given.worker.conn, given.delivery);
    net.put(
        given.worker.broker,
        Input::worker(conn, delivery, WorkerMessage::Fail { again: Again::AsSet, payload: body("no") }),
    );
}
