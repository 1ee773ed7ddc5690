//! The member that is named at the start, and members that send too much.

use std::sync::Arc;

use turno_engine::Event;
use turno_engine::ring::{Publication, RingInput, RingMessage};
use turno_proto::model::ring::{Origin, RingState, Sid};
use turno_proto::model::{Code, Payload, limits};

use super::net::Net;

/// `--ring-next 7@HOST`: if another answers there, it is not joined.
#[test]
fn anyone_who_else_is_there_is_not_joined() {
    for (named, joins) in [(1, true), (7, false)] {
        let mut net = Net::new();
        net.start(1, None);
        net.settings = if named == 1 {
            |settings| settings.next_sid = Some(Sid::new(1))
        } else {
            |settings| settings.next_sid = Some(Sid::new(7))
        };
        net.start(2, Some(1));
        net.run(3_000);
        let failed = if joins { vec![] } else { vec![(2, Code::WrongSid)] };
        assert_eq!(net.failed, failed, "{named} is named");
        assert_eq!(net.state(1) == RingState::Member, joins);
    }
}

/// `--ring-wait` waits for the one that is named. Other brokers there are not remembered.
#[test]
fn the_one_that_is_named_is_waited_for() {
    let mut net = Net::new();
    net.start_at(7, 1, None);
    net.settings = |settings| (settings.next_sid, settings.wait) = (Some(Sid::new(7)), true);
    net.start(2, Some(7));
    net.run(10_000);
    let view = net.view(2);
    assert_eq!((view.state, view.code.as_deref()), (RingState::Joining, Some("wrong_sid")));
    assert_eq!((view.lost, net.state(7)), (vec![], RingState::Alone));
    net.kill(7);
    net.settings = |_| {};
    net.start(7, None);
    net.run(3_000);
    assert_eq!((net.circle(2), net.failed), (vec![2, 7], vec![]));
}

/// `turno ring join 7@HOST`: if another is there, nothing is joined, neither that one nor members that are known from before.
#[test]
fn an_admin_names_the_member() {
    let named = |net: &mut Net, broker: u16, place: u16, sid: u16| {
        let next = format!("host:{place}");
        net.put(broker, RingInput::Join { next, sid: Some(Sid::new(sid)) });
        net.run(12_000);
        let view = net.view(broker);
        (view.state, view.code)
    };
    let wrong = Some("wrong_sid".to_owned());
    let mut net = Net::ring(&[1, 2, 3]);
    net.start(5, None);
    // One that was never in a ring stays alone.
    assert_eq!(named(&mut net, 5, 1, 7), (RingState::Alone, wrong.clone()));
    // One that left stays out: alone, it would look for those it knows.
    net.put(3, RingInput::Leave);
    net.run(3_000);
    assert_eq!(named(&mut net, 3, 5, 1), (RingState::Off, wrong.clone()));
    // One that has its place keeps it.
    assert_eq!(named(&mut net, 2, 5, 7).0, RingState::Member);
    assert_eq!((net.circle(1), net.state(5)), (vec![1, 2], RingState::Alone));
    assert_eq!(net.failed, [], "no broker ends for that");
    // And the right number is joined.
    assert_eq!(named(&mut net, 3, 1, 1), (RingState::Member, None));
    assert_eq!(named(&mut net, 5, 3, 3), (RingState::Member, None));
    assert_eq!(net.circle(1).len(), 4);
}

/// A member that sends on though nothing of it comes round is carried as far as two of its windows; what it sends beyond is
/// dropped and counted, and once something came round it is carried again.
#[test]
fn a_member_that_sends_without_pause_is_not_carried_far() {
    let mut net = Net::ring(&[1, 2, 3]);
    let origin = Origin { sid: Sid::new(9), incarnation: 5 };
    let payload = Payload { headers: false, bytes: vec![7; 1024 * 1024].into() };
    let event = Arc::new(Event { topic: "news".parse().expect("a topic"), payload });
    let send = |net: &mut Net, seq: u64, round: u64| {
        let event = Arc::clone(&event);
        let publication = Publication { origin, seq, after: seq - 1, round, hops: 0, event };
        let conn = net.from(3, 1);
        net.put(1, RingInput::Message { conn, message: RingMessage::Publish(publication) });
    };
    for seq in 1..=40 {
        send(&mut net, seq, 0);
    }
    let view = net.view(1);
    assert!(view.buffer_bytes <= (limits::RING_KEPT_BYTES_MAX + 2 * 1024 * 1024) as u64, "{}", view.buffer_bytes);
    assert_eq!(view.counters.received + view.counters.flooded, 40);
    assert!(view.counters.flooded >= 20, "{:?}", view.counters);
    let had = view.counters.received;
    send(&mut net, 41, had);
    send(&mut net, 42, had);
    assert_eq!(net.view(1).counters.received, had + 2, "it is carried again");
}
