//! Several brokers in every shape: nothing loops, everyone is reached once.

use std::collections::BTreeMap;

use turno_engine::{Broadcast, BroadcastAnswer, CallerMessage, Effect, Event, Input, PeerEffect};
use turno_proto::model::BroadcastEnd;

use super::net::{Net, Place, text_of};
use crate::seen::body;

/// Chain, star, ring and full mesh of that many.
fn shapes(count: usize) -> Vec<(&'static str, Net)> {
    let mut pairs: BTreeMap<&str, Vec<(usize, usize)>> = BTreeMap::new();
    pairs.insert("chain", (1..count).map(|at| (at - 1, at)).collect());
    pairs.insert("star", (1..count).map(|at| (0, at)).collect());
    pairs.insert("ring", (0..count).map(|at| (at, (at + 1) % count)).collect());
    pairs.insert("mesh", (0..count).flat_map(|one| (0..one).map(move |other| (one, other))).collect());
    let make = |(shape, pairs): (&'static str, Vec<(usize, usize)>)| {
        let mut net = Net::new(count);
        pairs.into_iter().for_each(|(one, other)| net.link(one, other));
        net.settle();
        (shape, net)
    };
    pairs.into_iter().map(make).collect()
}

/// S2.8, I14: in every shape each request crosses no broker twice, and is answered once, however many there are.
#[test]
fn nothing_loops_in_any_shape() {
    for (shape, mut net) in shapes(5) {
        for at in 0..5 {
            net.worker(at, "q", 2);
        }
        let callers: Vec<Place> = (0..5).map(|at| net.client(at, "q")).collect();
        net.settle();
        let mut asked = 0;
        for round in 0..6 {
            for (at, caller) in callers.iter().enumerate().filter(|(at, _)| *at != 4) {
                net.request(*caller, &format!("{round}.{at}"));
                asked += 1;
            }
        }
        let mut answered = 0;
        for _ in 0..200 {
            net.settle();
            assert!(net.given.len() <= 10, "{shape}: more than there are slots");
            let Some(given) = net.given.first().cloned() else { break };
            net.given.remove(0);
            net.reply(&given, "ok", false);
            answered += 1;
        }
        net.settle();
        assert_eq!(answered, asked, "{shape}: each is done once");
        let replies: usize = callers.iter().map(|caller| net.heard_by(*caller).len()).sum();
        assert_eq!(replies, asked, "{shape}");
        assert!(net.crossed.iter().all(|(_, _, _, path)| *path <= 5), "{shape}: {:?}", net.crossed);
        assert!(net.crossed.iter().any(|(from, to, _, _)| *to == 4 || *from == 4), "{shape}: the idle one helps");
    }
}

/// A broadcast reaches the consumers of every broker once each, and its one end counts them all.
#[test]
fn a_broadcast_reaches_everyone_once() {
    for (shape, mut net) in shapes(5) {
        let workers: Vec<Place> = (0..5).flat_map(|at| [at, at]).map(|at| net.worker(at, "q", 1)).collect();
        let caller = net.client(2, "q");
        net.settle();
        let seq = net.seq();
        let broadcast = Broadcast {
            seq,
            handle: 0,
            deadline_ms: Some(5_000),
            no_reply: false,
            skip_self: false,
            payload: body("all"),
        };
        net.put(2, Input::Broadcast { conn: caller.conn, broadcast });
        net.settle();
        let mut reached: Vec<Place> = net.given.iter().map(|given| given.worker).collect();
        reached.sort_unstable();
        let mut everyone = workers.clone();
        everyone.sort_unstable();
        assert_eq!(reached, everyone, "{shape}");
        for given in std::mem::take(&mut net.given) {
            net.reply(&given, "here", false);
        }
        net.settle();
        let heard = net.heard_by(caller);
        let mut numbers: Vec<u64> = Vec::new();
        for effect in &heard[..heard.len() - 1] {
            let Effect::Peer(PeerEffect::Caller {
                message: CallerMessage::BroadcastAnswer(BroadcastAnswer { worker, payload, .. }),
                ..
            }) = effect
            else {
                panic!("{shape}: {effect:?}")
            };
            assert_eq!(text_of(payload), "here");
            numbers.push(*worker);
        }
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 10, "{shape}: each has a number of its own");
        let Some(Effect::Peer(PeerEffect::Caller { message: CallerMessage::BroadcastEnd(end), .. })) = heard.last()
        else {
            panic!("{shape}: {heard:?}")
        };
        let expected = BroadcastEnd { consumers: 10, answered: 10, ..BroadcastEnd::default() };
        assert_eq!(**end, expected, "{shape}");
    }
}

/// One that wants no reply ends with the number of those that it was written to; one that nobody answers in time tells who.
#[test]
fn broadcasts_end_across_links_as_they_do_here() {
    for (shape, mut net) in shapes(3) {
        for at in 0..3 {
            net.worker(at, "q", 1);
        }
        let caller = net.client(0, "q");
        net.settle();
        for no_reply in [true, false] {
            let seq = net.seq();
            let (deadline_ms, payload) = (Some(1_000), body("all"));
            let broadcast = Broadcast { seq, handle: 0, deadline_ms, no_reply, skip_self: false, payload };
            net.put(0, Input::Broadcast { conn: caller.conn, broadcast });
            net.settle_for(2_000);
            let heard = net.heard_by(caller);
            let [Effect::Peer(PeerEffect::Caller { message: CallerMessage::BroadcastEnd(end), .. })] = &heard[..]
            else {
                panic!("{shape}: {heard:?}")
            };
            let expired = if no_reply { 0 } else { 3 };
            assert_eq!((end.consumers, end.expired, end.answered, end.left), (3, expired, 0, 0), "{shape}");
            net.given.clear();
        }
    }
}

/// A broker that is lost in the middle of a broadcast counts as one that left.
#[test]
fn a_broadcast_ends_though_a_link_is_lost() {
    let mut net = Net::new(2);
    net.link(0, 1);
    net.worker(0, "q", 1);
    net.worker(1, "q", 1);
    let caller = net.client(0, "q");
    net.settle();
    let seq = net.seq();
    let payload = body("all");
    let broadcast = Broadcast { seq, handle: 0, deadline_ms: None, no_reply: false, skip_self: false, payload };
    net.put(0, Input::Broadcast { conn: caller.conn, broadcast });
    net.settle();
    net.unlink(0, 1);
    let near = net.given.iter().find(|given| given.worker.broker == 0).cloned().unwrap();
    net.reply(&near, "here", false);
    net.settle();
    let heard = net.heard_by(caller);
    let Some(Effect::Peer(PeerEffect::Caller { message: CallerMessage::BroadcastEnd(end), .. })) = heard.last() else {
        panic!("{heard:?}")
    };
    assert_eq!((end.consumers, end.answered, end.left), (2, 1, 1));
}

/// S3.33, S3.36: an event reaches every broker where somebody listens, once, in the order of its publisher.
#[test]
fn events_reach_every_broker_once() {
    for (shape, mut net) in shapes(4) {
        let listeners: Vec<Place> = (0..4).map(|at| net.client(at, "q")).collect();
        for place in &listeners {
            let seq = net.seq();
            let filter = "news.>".parse().unwrap();
            net.put(place.broker, Input::Subscribe { conn: place.conn, seq, filter, or_close: false });
        }
        let deaf = net.client(3, "q");
        net.settle();
        let mut got: Vec<Vec<String>> = vec![Vec::new(); 4];
        let publisher = listeners[1];
        for text in ["one", "two", "three"] {
            let event = Event { topic: "news.art".parse().unwrap(), payload: body(text) };
            net.put(1, Input::Publish { conn: publisher.conn, seq: 0, confirm: false, event });
        }
        net.settle();
        for (broker, event, conns) in net.events.drain(..) {
            assert_eq!(conns, [listeners[broker].conn], "{shape}");
            assert!(!conns.contains(&deaf.conn));
            got[broker].push(text_of(&event.payload));
        }
        for got in got {
            assert_eq!(got, ["one", "two", "three"], "{shape}");
        }
        assert!(net.event_crossings <= 9, "{shape}: {} crossings for 3 events", net.event_crossings);
    }
}

/// Where nobody listens, nothing is told.
#[test]
fn events_do_not_cross_to_where_nobody_listens() {
    let mut net = Net::new(2);
    net.link(0, 1);
    let publisher = net.client(0, "q");
    let listener = net.client(1, "q");
    net.settle();
    let publish = |net: &mut Net| {
        let event = Event { topic: "t".parse().unwrap(), payload: body("x") };
        net.put(0, Input::Publish { conn: publisher.conn, seq: 0, confirm: false, event });
        net.settle();
        std::mem::take(&mut net.event_crossings)
    };
    assert_eq!(publish(&mut net), 0);
    let seq = net.seq();
    let filter = "t".parse().unwrap();
    net.put(1, Input::Subscribe { conn: listener.conn, seq, filter, or_close: false });
    net.settle();
    assert_eq!(publish(&mut net), 1);
    net.put(1, Input::Disconnected { conn: listener.conn });
    net.settle();
    assert_eq!(publish(&mut net), 0);
}

/// Numbers that no broker can have are not believed, and end the broadcast all the same.
#[test]
fn a_liar_about_its_consumers_is_not_believed() {
    let mut net = Net::new(2);
    net.link(0, 1);
    net.worker(1, "q", 1);
    let caller = net.client(0, "q");
    net.settle();
    let (seq, payload) = (net.seq(), body("all"));
    let broadcast = Broadcast { seq, handle: 0, deadline_ms: None, no_reply: false, skip_self: false, payload };
    net.put(0, Input::Broadcast { conn: caller.conn, broadcast });
    net.lie_about_consumers(u32::MAX);
    net.settle();
    let heard = net.heard_by(caller);
    let Some(Effect::Peer(PeerEffect::Caller { message: CallerMessage::BroadcastEnd(end), .. })) = heard.last() else {
        panic!("{heard:?}")
    };
    assert_eq!((end.consumers, end.left), (1, 1));
}

/// Of two ways to the same workers a neighbour is told the shorter one: a neighbour with another way as long as the longer one takes the
/// shorter all the same.
#[test]
fn the_shorter_of_two_ways_is_told() {
    let mut net = Net::new(6);
    for (one, other) in [(1, 0), (3, 1), (3, 0), (5, 0), (2, 5), (4, 3), (4, 2)] {
        net.link(one, other);
    }
    net.worker(0, "q", 10);
    net.settle();
    let caller = net.client(4, "q");
    for text in ["a", "b", "c", "d"] {
        net.request(caller, text);
    }
    net.settle();
    let first: Vec<usize> = net.crossed.iter().filter(|(from, ..)| *from == 4).map(|(_, to, ..)| *to).collect();
    assert_eq!(first, [3; 4]);
}
