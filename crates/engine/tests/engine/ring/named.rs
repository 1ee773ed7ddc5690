//! The member that is named at the start, and members that send too much.

use std::sync::Arc;

use turno_engine::Event;
use turno_engine::ring::{Publication, RingInput, RingWord};
use turno_proto::model::ring::{Origin, RingState, Sid};
use turno_proto::model::{Code, Payload, limits};

use super::net::Net;

/// `--ring-next 7@HOST`: if another answers there, it is not joined.
#[test]
fn whoever_else_is_there_is_not_joined() {
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
        let failed = if joins { vec![] } else { vec![(2, Code::RingDown)] };
        assert_eq!(net.failed, failed, "{named} is named");
        assert_eq!(net.state(1) == RingState::Member, joins);
    }
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
        net.put(1, RingInput::Word { conn, word: RingWord::Publish(publication) });
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
