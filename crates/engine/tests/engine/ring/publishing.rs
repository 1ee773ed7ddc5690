//! Publications.

use std::sync::Arc;

use turno_engine::Event;
use turno_engine::ring::{Publication, RingInput, RingMessage, RingNews};
use turno_proto::model::Code;
use turno_proto::model::ring::{Origin, RingState, Sid};

use super::net::Net;
use crate::seen::body;

/// Proves S3.4, S3.36 and S3.40: everyone gets each once and in order, its origin never, and it ends before it.
#[test]
fn once_round() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.said.clear();
    net.publish(1, "a");
    net.publish(1, "b");
    net.publish(2, "c");
    net.run(100);
    assert_eq!(net.got(1), ["c"]);
    assert_eq!((net.got(2), net.got(3)), (vec!["a", "b"], vec!["c", "a", "b"]));
    let said = net.said.iter().filter(|(_, _, message)| matches!(message, RingMessage::Publish(_))).count();
    assert_eq!(said, 6, "each of three over each connection but the one that leads to its origin");
    net.run(2_000);
    for number in [1, 2, 3] {
        assert_eq!((net.view(number).not_round, net.view(number).buffered), (0, 0));
    }
}

/// Proves S3.49: the return of a roll call is the acknowledgement, and what is not round after 5 s is warned of.
#[test]
fn what_does_not_come_back_is_told() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.cut(2, 3);
    net.publish(1, "lost for a while");
    net.run(5_500);
    let told = net.news.iter().any(|(number, news)| *number == 1 && matches!(news, RingNews::Overdue { seq: 1, .. }));
    assert!(told, "{:?}", net.news);
    net.reconnect();
    net.until_whole(&[1, 2, 3], 15_000);
    net.run(100);
    assert_eq!(net.view(1).not_round, 0);
}

/// Publishers are slowed once the window is full, and no longer once it is not.
#[test]
fn a_window() {
    let mut net = Net::new();
    net.settings = |settings| settings.window = 2;
    net.start(1, None);
    net.start(2, Some(1));
    net.run(2_000);
    for text in ["a", "b", "c", "d"] {
        net.publish(1, text);
    }
    assert!(net.slowed.contains(&1));
    assert_eq!((net.view(1).buffered, net.view(1).not_round), (2, 4));
    net.run(200);
    assert!(net.slowed.is_empty());
    assert_eq!((net.got(2), net.view(1).not_round), (vec!["a", "b", "c", "d"], 0));
}

/// One that was closed around sends to the origin what it had from it: that is not the way round, and proves nothing.
#[test]
fn another_way_is_not_round() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.cut(2, 3);
    net.publish(1, "not yet at 3");
    net.run(50);
    let origin = net.member(1).origin;
    let event = Arc::new(Event { topic: "news".parse().expect("a topic"), payload: body("not yet at 3") });
    // 3 lost its predecessor, and comes to 1 anew with what it must have from elsewhere.
    net.drop_link(3, 1);
    net.run(20);
    net.slip(1, RingMessage::Publish(Publication { origin, seq: 1, after: 0, round: 0, hops: 2, event }));
    assert_eq!(net.view(1).not_round, 1);
    net.reconnect();
    net.until_whole(&[1, 2, 3], 15_000);
    net.run(2_000);
    assert_eq!((net.got(3), net.view(1).not_round), (vec!["not yet at 3"], 0));
}

/// What was thrown away for lack of its origin is passed on again, and delivered to nobody twice.
#[test]
fn thrown_away_and_passed_on_again() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.cut(2, 3);
    net.publish(1, "only at 2");
    net.run(50);
    // 2 alone throws it away, and is where it comes through again.
    net.part(&[2], &[1, 3]);
    net.run(20_000);
    assert_eq!((net.state(2), net.view(2).buffered), (RingState::Alone, 0));
    net.reconnect();
    net.until_whole(&[1, 2, 3], 15_000);
    net.run(2_000);
    assert_eq!((net.got(2), net.got(3)), (vec!["only at 2"], vec!["only at 2"]));
    assert_eq!(net.view(1).not_round, 0);
}

/// A publication that a member gave up does not count as received; those that came round before still do. The next member that
/// sends to it learns both, and sends the missing ones again.
#[test]
fn given_up_is_not_had() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.publish(1, "come round");
    net.run(2_000);
    net.cut(2, 3);
    net.publish(1, "given up");
    net.publish(1, "given up, too");
    net.run(50);
    net.part(&[2], &[1, 3]);
    net.run(20_000);
    assert_eq!((net.state(2), net.view(2).buffered), (RingState::Alone, 0));
    net.said.clear();
    net.reconnect();
    net.until_whole(&[1, 2, 3], 15_000);
    let origin = net.member(1).origin;
    let stated = net.said.iter().find_map(|(from, _, message)| match message {
        RingMessage::Have { had } if *from == 2 => had.iter().find(|had| had.origin == origin),
        _ => None,
    });
    assert_eq!(stated.map(|had| had.seq), Some(1));
    assert_eq!(net.got(2), ["come round", "given up", "given up, too"], "and delivered once");
}

/// What is sent again says how far all has come round, also by one that had nothing of that origin before: otherwise more than a
/// window of it is kept behind it.
#[test]
fn what_is_sent_again_says_what_has_come_round() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.cut(2, 3);
    let origin = Origin { sid: Sid::new(9), incarnation: 1 };
    let event = Arc::new(Event { topic: "news".parse().expect("a topic"), payload: body("the fifth") });
    net.slip(2, RingMessage::Publish(Publication { origin, seq: 5, after: 4, round: 4, hops: 1, event }));
    net.reconnect();
    net.said.clear();
    net.run(3_500);
    let messages = net.said.iter().filter_map(|(from, to, message)| match message {
        RingMessage::Publish(publication) => Some((*from, *to, publication.seq, publication.round)),
        _ => None,
    });
    assert_eq!(messages.collect::<Vec<_>>(), [(2, 3, 5, 4), (3, 1, 5, 4), (1, 2, 5, 4)]);
}

/// Proves S3.36: what an origin said that is not in the circle any more, and everyone in the circle has, is not passed on again when
/// somebody comes back who still keeps it. Nobody takes it for a mistake of its neighbour's.
#[test]
fn what_the_circle_has_is_not_passed_on_again() {
    let mut net = Net::ring(&[1, 2, 3, 4]);
    net.cut(2, 3);
    net.publish(3, "everywhere");
    net.run(50);
    // 1 and 2 close their circle. 4 has lost both neighbours, waits for them, and keeps what it has.
    net.part(&[1, 2], &[3, 4]);
    net.part(&[3], &[4]);
    net.run(12_000);
    assert_eq!((net.view(1).buffered, net.view(2).buffered, net.view(4).buffered), (0, 0, 1));
    assert!(net.view(1).whole && net.view(2).whole && net.state(4) == RingState::LinkDown);
    net.reconnect();
    net.said.clear();
    net.until_whole(&[1, 2, 3, 4], 25_000);
    let again =
        net.said.iter().filter(|(_, to, message)| *to != 3 && matches!(message, RingMessage::Publish(_))).count();
    let is_mistake = |(_, news): &(u16, RingNews)| matches!(news, RingNews::Refused { code: Code::BadSequence, .. });
    assert_eq!((again, net.news.iter().any(is_mistake)), (0, false));
    for number in [1, 2, 4] {
        assert_eq!((net.got(number), net.view(number).buffered), (vec!["everywhere"], 0), "{number}");
    }
}

/// What is kept of an origin that is not in the circle is thrown away once a roll call is back that was sent behind it: one that was
/// sent before tells nothing about it.
#[test]
fn kept_until_a_roll_call_behind_it_is_back() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.cut(2, 3);
    net.run(1_100);
    let last_roll_call = |net: &Net| {
        let said = net.said.iter().rev().filter(|(from, _, _)| *from == 1).map(|(_, _, message)| message);
        said.filter(|message| matches!(message, RingMessage::RollCall { .. }))
            .find(|_| true)
            .cloned()
            .expect("a roll call")
    };
    let before = last_roll_call(&net);
    let event = Arc::new(Event { topic: "news".parse().expect("a topic"), payload: body("the last event") });
    let origin = Origin { sid: Sid::new(9), incarnation: 1 };
    net.slip(1, RingMessage::Publish(Publication { origin, seq: 1, after: 0, round: 0, hops: 1, event }));
    net.slip(1, before);
    assert_eq!(net.view(1).buffered, 1, "2 need not have it yet");
    net.run(1_100);
    net.slip(1, last_roll_call(&net));
    assert_eq!(net.view(1).buffered, 0);
}

/// A roll call that was sent before a neighbour changed acknowledges nothing: the new neighbour may be one that has not seen what
/// was published before it. Proves S3.49.
#[test]
fn a_roll_call_from_before_a_neighbour_changed_acknowledges_nothing() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.cut(2, 3);
    net.publish(1, "lost at 2");
    net.run(1_100);
    let said = net.said.iter().rev().filter(|(from, _, _)| *from == 1).map(|(_, _, message)| message);
    let before =
        said.into_iter().find(|message| matches!(message, RingMessage::RollCall { .. })).cloned().expect("a roll call");
    net.drop_link(1, 2);
    net.run(6);
    net.slip(1, before);
    assert_eq!(net.view(1).not_round, 1, "3 has not got it");
    net.reconnect();
    net.until_whole(&[1, 2, 3], 15_000);
    net.run(100);
    assert_eq!((net.view(1).not_round, net.got(2), net.got(3)), (0, vec!["lost at 2"], vec!["lost at 2"]));
}

/// A later life of an origin counts from one again, and its publications are new.
#[test]
fn a_later_life_counts_anew() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.publish(2, "first life");
    net.run(100);
    net.kill(2);
    net.start(2, Some(3));
    net.until_whole(&[1, 2, 3], 15_000);
    net.publish(2, "second life");
    net.run(100);
    assert_eq!((net.got(1), net.got(3)), (vec!["first life", "second life"], vec!["first life", "second life"]));
}

/// A ring of one passes nothing on, and does not answer calls of a ring that is over.
#[test]
fn alone_nothing_is_under_way() {
    let mut net = Net::new();
    net.start(1, None);
    net.publish(1, "to nobody");
    assert_eq!((net.view(1).not_round, net.view(1).counters.published), (0, 0));
    net.put(1, RingInput::Tick);
    assert_eq!(net.state(1), RingState::Alone);
}
