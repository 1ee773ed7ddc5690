//! One message over one link or more: to the far worker and back.

use turno_engine::{
    Again, CallerMessage, Effect, Input, LinkEffect, NativeEffect, Neighbour, PeerEffect, WorkerMessage,
};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::link::view::LinkView;
use turno_proto::model::{Code, limits};

use super::net::{Net, Place, text_of};
use crate::seen::body;

/// What a caller heard last.
fn answers(net: &mut Net, caller: Place) -> Vec<String> {
    let message = |effect: Effect| match effect {
        Effect::Peer(PeerEffect::Caller { message: CallerMessage::Reply { more, payload }, .. }) => {
            format!("{}{}", if more { "more " } else { "" }, text_of(&payload))
        }
        Effect::Peer(PeerEffect::Caller { message: CallerMessage::Undelivered { code, payload }, .. }) => {
            format!("{code} {}", text_of(&payload)).trim().to_owned()
        }
        Effect::Peer(PeerEffect::Caller { message: CallerMessage::Progress { payload }, .. }) => {
            format!("progress {}", text_of(&payload))
        }
        Effect::Peer(PeerEffect::Caller { message: CallerMessage::Delivered, .. }) => "delivered".to_owned(),
        Effect::Peer(PeerEffect::Native { effect: NativeEffect::Stored { .. }, .. }) => "stored".to_owned(),
        Effect::Peer(PeerEffect::Closing { .. }) => "closing".to_owned(),
        other => panic!("{other:?}"),
    };
    net.heard_by(caller).into_iter().map(message).collect()
}

fn links(net: &mut Net, broker: usize) -> Vec<LinkView> {
    match net.call(broker, AdminCall::LinkLs {}) {
        Ok(AdminAnswer::Links { links }) => links,
        other => panic!("{other:?}"),
    }
}

/// Brokers in a row.
fn chain(count: usize) -> Net {
    let mut net = Net::new(count);
    for at in 1..count {
        net.link(at - 1, at);
    }
    net.settle();
    net
}

/// S2.3, S2.6: a request meets a worker at another broker, and its reply comes back the same way.
#[test]
fn a_request_meets_a_worker_elsewhere() {
    for length in [2, 3, 8] {
        let mut net = chain(length);
        let worker = net.worker(length - 1, "q", 1);
        let caller = net.client(0, "q");
        net.settle();
        net.request(caller, "hello");
        net.settle();
        let given = net.take("hello");
        assert_eq!(given.worker, worker);
        net.reply(&given, "there", false);
        net.settle();
        assert_eq!(answers(&mut net, caller), ["there"]);
        assert_eq!(net.crossed.len(), length - 1, "once over each link");
    }
}

/// S2.8: a way leads through eight brokers at most; what is farther away is not there.
#[test]
fn nine_brokers_in_a_row_are_too_many() {
    let mut net = chain(limits::PATH_MAX + 1);
    net.worker(limits::PATH_MAX, "q", 1);
    let near = net.client(1, "q");
    let caller = net.client(0, "q");
    net.settle();
    net.request(caller, "far");
    net.request(near, "near");
    net.settle();
    net.take("near");
    assert!(net.given.is_empty(), "the ninth is out of reach: {:?}", net.given);
}

/// S2.7, I14: what can be done here stays here; it crosses when the workers here are busy, and only then.
#[test]
fn local_workers_come_first() {
    let mut net = chain(2);
    let near = net.worker(0, "q", 2);
    let far = net.worker(1, "q", 2);
    let caller = net.client(0, "q");
    net.settle();
    for text in ["one", "two", "three", "four", "five"] {
        net.request(caller, text);
    }
    net.settle();
    for text in ["one", "two"] {
        assert_eq!(net.take(text).worker, near);
    }
    let three = net.take("three");
    assert_eq!(three.worker, far);
    assert_eq!(net.take("four").worker, far);
    assert!(net.given.is_empty(), "the fifth waits where it is");
    net.reply(&three, "done", false);
    net.settle();
    assert_eq!(net.take("five").worker, far);
    assert_eq!(net.crossed.len(), 3);
}

/// A steady flow over a link needs no offers, and nothing comes back for lack of room.
#[test]
fn slots_that_come_back_are_counted_at_both_ends() {
    let mut net = chain(2);
    net.worker(1, "q", 4);
    let caller = net.client(0, "q");
    net.settle();
    for at in 0..100 {
        net.request(caller, &format!("r{at}"));
    }
    for at in 0..100 {
        net.settle_for(1);
        let given = net.take(&format!("r{at}"));
        net.reply(&given, "ok", false);
    }
    net.settle();
    assert_eq!(answers(&mut net, caller).len(), 100);
    assert_eq!(net.crossed.len(), 100, "nothing crossed twice");
    assert_eq!(links(&mut net, 0)[0].returned, 0);
}

/// Streams, progress and cancelling reach across.
#[test]
fn a_stream_comes_back_in_pieces_and_a_cancel_goes_there() {
    let mut net = chain(3);
    let worker = net.worker(2, "q", 2);
    let caller = net.client(0, "q");
    net.settle();
    net.request(caller, "stream");
    let cancelled = net.request(caller, "cancel");
    net.settle();
    let given = net.take("stream");
    net.reply(&given, "a", true);
    let (conn, delivery) = (worker.conn, given.delivery);
    net.put(2, Input::worker(conn, delivery, WorkerMessage::Progress { payload: body("half") }));
    net.reply(&given, "b", false);
    net.settle();
    assert_eq!(answers(&mut net, caller), ["more a", "progress half", "b"]);
    let given = net.take("cancel");
    net.put(0, Input::Cancel { conn: caller.conn, seq: cancelled });
    net.settle();
    assert_eq!(answers(&mut net, caller), ["cancelled"]);
    let heard = net.heard_by(worker);
    assert!(matches!(heard[..], [Effect::Peer(PeerEffect::Stop { reason: Code::Cancelled, .. })]), "{heard:?}");
    net.reply(&given, "late", false);
    net.settle();
    assert_eq!(answers(&mut net, caller), Vec::<String>::new());
}

/// The deadline holds wherever the message is: its caller hears once.
#[test]
fn a_deadline_holds_across_links() {
    let mut net = chain(2);
    let worker = net.worker(1, "q", 1);
    let caller = net.client(0, "q");
    net.settle();
    net.ask(caller, "slow", |message| message.deadline_ms = Some(500));
    net.settle();
    net.settle_for(1_000);
    assert_eq!(answers(&mut net, caller), ["timed_out"]);
    let heard = net.heard_by(worker);
    assert!(matches!(heard[..], [Effect::Peer(PeerEffect::Stop { .. })]), "{heard:?}");
}

/// A send that fails elsewhere has its attempts counted by its owner, and is that broker's dead letter.
#[test]
fn attempts_are_counted_by_the_owner() {
    let mut net = chain(2);
    net.worker(1, "q", 1);
    let sender = net.client(0, "q");
    net.settle();
    net.send(sender, "bad", |message| message.retries = Some(2));
    for attempt in 1..=3 {
        net.settle_for(2_000);
        let given = net.take("bad");
        assert_eq!(given.attempt, attempt);
        let (conn, delivery) = (given.worker.conn, given.delivery);
        net.put(1, Input::worker(conn, delivery, WorkerMessage::Fail { again: Again::AsSet, payload: body("no") }));
    }
    net.settle();
    assert!(net.given.is_empty());
    let dead =
        |net: &mut Net, broker| net.call(broker, AdminCall::DeadLs { queue: "q".into(), after: None, limit: 10 });
    let Ok(AdminAnswer::DeadLetters { dead: letters, .. }) = dead(&mut net, 0) else { panic!("the owner has it") };
    assert_eq!(letters.len(), 1);
    if let Ok(AdminAnswer::DeadLetters { dead: letters, .. }) = dead(&mut net, 1) {
        assert_eq!(letters.len(), 0, "the other broker never had it");
    }
}

/// A permanent failure is one attempt, wherever it happened; an ack ends a send, and so does a reply, which nobody waits for.
#[test]
fn acks_and_permanent_failures_reach_the_owner() {
    let mut net = chain(3);
    net.worker(2, "q", 3);
    let sender = net.client(0, "q");
    net.settle();
    net.send(sender, "good", |_| {});
    net.send(sender, "answered", |_| {});
    net.send(sender, "hopeless", |_| {});
    net.settle();
    let given = net.take("good");
    net.ack(&given);
    let given = net.take("answered");
    net.reply(&given, "well", false);
    let given = net.take("hopeless");
    let (conn, delivery) = (given.worker.conn, given.delivery);
    net.put(2, Input::worker(conn, delivery, WorkerMessage::Fail { again: Again::Never, payload: body("never") }));
    net.settle();
    assert!(net.given.is_empty());
    let status = net.engines[0].status();
    assert_eq!((status.ready, status.in_flight, status.dead), (0, 0, 1));
    assert_eq!((status.counters.acked, status.counters.failed), (2, 1));
}

/// A lost link costs a send no attempt: it goes elsewhere. Requests are told, and the other end stops.
#[test]
fn a_lost_link_ends_what_crossed_it() {
    let mut net = chain(2);
    let far = net.worker(1, "q", 2);
    let caller = net.client(0, "q");
    net.settle();
    net.send(caller, "send", |_| {});
    net.request(caller, "request");
    net.settle();
    assert_eq!(net.given.len(), 2);
    net.unlink(0, 1);
    assert_eq!(answers(&mut net, caller), ["stored", "worker_lost"]);
    let heard = net.heard_by(far);
    let stopped = |effect: &Effect| matches!(effect, Effect::Peer(PeerEffect::Stop { reason: Code::CallerGone, .. }));
    assert!(heard.len() == 2 && heard.iter().all(stopped), "{heard:?}");
    let near = net.worker(0, "q", 1);
    net.settle();
    net.given.retain(|given| given.worker == near);
    assert_eq!(net.take("send").attempt, 1);
}

/// A far worker that is lost with several sends costs none of them an attempt; lost twice, a send crosses alone, to a worker
/// that holds nothing else; and a far worker that had settled others and is lost with one alone costs that one an attempt.
#[test]
fn a_far_loss_counts_only_where_it_can_be_pinned() {
    let mut net = chain(2);
    let sender = net.client(0, "q");
    for text in ["a", "b"] {
        net.send(sender, text, |_| {});
    }
    for _ in 0..2 {
        let far = net.worker(1, "q", 2);
        net.settle();
        assert_eq!(net.given.iter().map(|given| given.attempt).collect::<Vec<u16>>(), [1, 1]);
        net.given.clear();
        net.put(1, Input::Disconnected { conn: far.conn });
        net.settle();
    }
    let far = net.worker(1, "q", 2);
    net.settle();
    assert_eq!(net.given.len(), 1, "alone");
    let first = net.take("a");
    assert_eq!((first.worker, first.attempt), (far, 1));
    net.ack(&first);
    net.settle();
    let second = net.take("b");
    assert_eq!((second.worker, second.attempt), (far, 1));
    net.put(1, Input::Disconnected { conn: far.conn });
    net.settle();
    net.worker(1, "q", 1);
    net.settle();
    assert_eq!(net.take("b").attempt, 2);
}

/// A far worker that leaves in order, and a broker that drains, give back what they have: no attempt counts.
#[test]
fn what_is_given_back_elsewhere_is_given_back_here() {
    let mut net = chain(2);
    let leaver = net.worker(1, "q", 1);
    let sender = net.client(0, "q");
    net.settle();
    net.send(sender, "m", |_| {});
    net.settle();
    net.take("m");
    let seq = net.seq();
    net.put(1, Input::Deregister { conn: leaver.conn, seq });
    net.put(1, Input::Disconnected { conn: leaver.conn });
    net.settle();
    let near = net.worker(0, "q", 1);
    net.settle();
    let given = net.take("m");
    assert_eq!((given.worker, given.attempt), (near, 1));
}

/// A no-reply request is done when it is written to a worker, wherever that is.
#[test]
fn no_reply_is_told_when_it_is_written_there() {
    let mut net = chain(2);
    net.worker(1, "q", 1);
    let caller = net.client(0, "q");
    net.settle();
    let seq = net.seq();
    let message = turno_engine::Outgoing::new(seq, 0, body("fire"));
    net.put(0, Input::Request { conn: caller.conn, message: turno_engine::Outgoing { no_reply: true, ..message } });
    assert_eq!(answers(&mut net, caller), Vec::<String>::new());
    net.settle();
    assert_eq!(answers(&mut net, caller), ["delivered"]);
    assert_eq!(net.engines[0].in_flight(), 0);
}

/// `fail_fast` knows of workers elsewhere, also of busy ones.
#[test]
fn nobody_responds_only_if_nobody_does_anywhere() {
    let mut net = chain(2);
    let caller = net.client(0, "q");
    net.settle();
    let ask = |net: &mut Net| {
        let seq = net.seq();
        let message = turno_engine::Outgoing::new(seq, 0, body("x"));
        net.put(
            0,
            Input::Request { conn: caller.conn, message: turno_engine::Outgoing { fail_fast: true, ..message } },
        );
        net.settle();
        answers(net, caller)
    };
    assert_eq!(ask(&mut net), ["no_responder"]);
    let worker = net.worker(1, "q", 1);
    net.settle();
    assert_eq!(ask(&mut net), Vec::<String>::new());
    assert_eq!(ask(&mut net), Vec::<String>::new(), "busy, but there");
    net.put(1, Input::Disconnected { conn: worker.conn });
    net.settle();
    assert_eq!(answers(&mut net, caller), ["worker_lost"]);
    assert_eq!(ask(&mut net), ["no_responder"]);
}

/// Room that was taken meanwhile: it comes back uncounted, waits where it came from, and goes to the next free slot.
#[test]
fn what_finds_no_room_comes_back_and_waits_at_its_owner() {
    let mut net = chain(2);
    let worker = net.worker(1, "q", 1);
    let there = net.client(1, "q");
    let here = net.client(0, "q");
    net.settle();
    // Both at once: the other broker does not know yet that its slot was promised.
    net.request(there, "local");
    net.request(here, "crossing");
    net.settle();
    let local = net.take("local");
    assert!(net.given.is_empty());
    assert_eq!(links(&mut net, 0)[0].returned, 1);
    assert_eq!(net.engines[0].status().ready, 1, "it waits at its owner");
    net.reply(&local, "ok", false);
    net.settle();
    let given = net.take("crossing");
    assert_eq!((given.worker, given.attempt), (worker, 1));
}

/// A neighbour that offers slots it does not have costs little: it is left alone for longer and longer.
#[test]
fn a_liar_is_left_alone() {
    use turno_engine::{LinkMessage, RemoteMessage};
    use turno_proto::model::link::{Offer, Path, Room};
    use turno_proto::model::{ConnId, Payload};
    let mut net = Net::new(1);
    let conn = ConnId { index: 900, generation: 0 };
    let (name, address) = ("liar".to_owned(), "127.0.0.1:9".to_owned());
    net.put(
        0,
        Input::Linked {
            conn,
            target: None,
            neighbour: Neighbour { broker: Net::id(9), name, address, payload_max: 1_000 },
        },
    );
    let caller = net.client(0, "q");
    let path = Path::new(vec![Net::id(9)]).unwrap();
    let offers =
        vec![Offer { queue: "q".into(), held: u32::MAX, rooms: vec![Room { path, free: u32::MAX, token: None }] }];
    let offer = Input::Link { conn, message: Box::new(LinkMessage::Offers(offers)) };
    net.put(0, offer.clone());
    net.send(caller, "m", |_| {});
    let mut crossings = 0;
    for _ in 0..1_000 {
        net.tick(1);
        let place = Place { broker: 0, conn };
        for effect in net.heard_by(place) {
            if let Effect::Peer(PeerEffect::Link { effect: LinkEffect::Forward(forward), .. }) = effect {
                crossings += 1;
                let message = RemoteMessage::Caller(CallerMessage::Undelivered {
                    code: Code::NoRoom,
                    payload: Payload::default(),
                });
                net.put(0, Input::Far { conn, seq: forward.seq, message });
                net.put(0, offer.clone());
            }
        }
        net.put(0, offer.clone());
    }
    assert!((3..=12).contains(&crossings), "{crossings} crossings in a second");
    let near = net.worker(0, "q", 1);
    assert_eq!(net.take("m").worker, near);
}

/// What is too long for the other broker stays here.
#[test]
fn a_message_that_is_too_long_for_the_other_end_stays() {
    let mut net = chain(2);
    net.worker(1, "q", 4);
    let caller = net.client(0, "q");
    net.settle();
    net.request(caller, &"x".repeat(1_000));
    net.request(caller, &"y".repeat(1_001));
    net.settle();
    net.take(&"x".repeat(1_000));
    assert!(net.given.is_empty());
    assert_eq!(net.engines[0].status().ready, 1);
}

/// S2.17: a broker that drains takes nothing over links and finishes what came over them.
#[test]
fn a_broker_that_drains_finishes_what_crossed_to_it() {
    let mut net = chain(2);
    net.worker(1, "q", 2);
    let caller = net.client(0, "q");
    net.settle();
    net.request(caller, "before");
    net.settle();
    net.put(1, Input::Drain { within_ms: 30_000 });
    net.settle();
    net.request(caller, "after");
    net.settle();
    assert_eq!(net.given.len(), 1, "nothing crosses to a broker that drains");
    let given = net.take("before");
    net.reply(&given, "done", false);
    net.settle();
    assert_eq!(answers(&mut net, caller), ["done"]);
    assert_eq!(net.engines[0].status().ready, 1, "the other one waits for somebody");
}

/// A request that is cut short at the other end has had its attempt, and nothing else follows; a neighbour that says ALONE of
/// a request is not believed.
#[test]
fn only_sends_are_under_suspicion() {
    let mut net = chain(2);
    let far = net.worker(1, "q", 2);
    let caller = net.client(0, "q");
    net.settle();
    for text in ["a", "b"] {
        net.request(caller, text);
    }
    net.settle();
    assert_eq!(net.given.len(), 2);
    net.put(1, Input::Disconnected { conn: far.conn });
    net.settle();
    assert_eq!(answers(&mut net, caller), ["worker_lost", "worker_lost"]);
}
