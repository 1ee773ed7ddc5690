//! What is refused, and what is not believed.

use std::sync::Arc;

use turno_engine::Event;
use turno_engine::ring::{Publication, RetConn, RingInput, RingMessage, RingNews};
use turno_proto::model::Code;
use turno_proto::model::ring::{ConnectPurpose, LostMember, Member, Origin, RingState, Sid};

use super::net::Net;
use crate::seen::body;

fn forged(origin: Origin, seq: u64, after: u64, hops: u8) -> RingMessage {
    let event = Arc::new(Event { topic: "news".parse().expect("a topic"), payload: body("forged") });
    RingMessage::Publish(Publication { origin, seq, after, round: 0, hops, event })
}

/// Proves S3.7: a second broker with a number that is taken does not get in, wherever it asks, and waits for nothing.
#[test]
fn a_number_is_taken() {
    for wait in [false, true] {
        for at in [1, 2, 3] {
            let mut net = Net::ring(&[1, 2, 3]);
            if wait {
                net.settings = |settings| settings.wait = true;
            }
            net.start_at(9, 2, Some(at));
            net.run(6_000);
            assert_eq!(net.failed, [(9, Code::DuplicateSid)], "asked {at}");
            assert_eq!(net.circle(1), [1, 2, 3]);
        }
    }
}

/// Proves S3.7: a second broker with the sid of a member's predecessor does not take its place, from another address. The
/// two would take it from each other without end.
#[test]
fn the_place_of_a_broker_with_the_same_sid() {
    let mut net = Net::ring_with(&[1, 2, 3], |settings| settings.has_secret = false);
    let before = net.from(3, 1);
    let same = net.member(3);
    for (address, is_another) in [("host:9", true), ("host:3", false)] {
        let peer = Member { address: address.to_owned(), ..same.clone() };
        let conn = net.strange(1, peer, vec![RingMessage::RetConn(RetConn::Open { purpose: ConnectPurpose::Return })]);
        let refused = RingNews::Refused { peer: Some(Sid::new(3)), code: Code::DuplicateSid };
        let is_refused = net.news.iter().any(|(number, news)| *number == 1 && *news == refused);
        assert_eq!(is_refused, is_another, "{address}");
        net.news.clear();
        assert_eq!(net.view(1).previous, Some(Sid::new(3)));
        if is_another {
            assert_eq!(net.from(3, 1), before, "its connection stays");
        }
        net.put(1, RingInput::Closed { conn });
    }
}

/// Proves S3.7: two with one number that ask two members at the same moment do not both get in.
#[test]
fn two_with_one_number_at_once() {
    let mut net = Net::ring(&[1, 2]);
    net.start_at(8, 5, Some(1));
    net.run(1);
    net.start_at(9, 5, Some(2));
    net.run(10_000);
    let circle = net.view(1).members;
    assert_eq!(circle.iter().filter(|member| member.sid == Sid::new(5)).count(), 1, "{circle:?}");
    assert!(circle.len() == 3 && net.view(1).whole);
    assert_eq!(net.failed.len(), 1, "{:?}", net.failed);
    assert_eq!(net.failed[0].1, Code::DuplicateSid);
}

/// Proves S3.7: an earlier life of a member is fenced off.
#[test]
fn an_earlier_life() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.kill(3);
    net.start_with(3, 3, 1, Some(1));
    net.run(3_000);
    assert_eq!(net.failed, [(3, Code::Fenced)]);
    assert_eq!(net.state(3), RingState::Off);
    net.until_whole(&[1, 2], 15_000);
}

/// Proves S3.44 and S3.51: what claims to be mine and is not goes no further.
#[test]
fn in_my_name() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.said.clear();
    let me = net.member(2).origin;
    net.slip(2, forged(me, 77, 76, 1));
    net.slip(2, forged(Origin { incarnation: me.incarnation + 1, ..me }, 1, 0, 1));
    net.slip(
        2,
        RingMessage::RollCall { origin: Origin { incarnation: 1, ..me }, number: 5, round: 0, members: vec![] },
    );
    assert_eq!(net.view(2).counters.forged, 3);
    net.run(100);
    assert!(net.got(3).is_empty() && net.got(2).is_empty());
    net.publish(2, "mine");
    net.run(100);
    assert_eq!((net.got(1), net.view(2).not_round), (vec!["mine"], 0));
}

/// Proves S3.43: what has been through too many goes no further, and what nobody answers does not go round for ever.
#[test]
fn too_many_hops() {
    let mut net = Net::ring(&[1, 2, 3]);
    let stranger = Origin { sid: Sid::new(50), incarnation: 1 };
    net.slip(2, forged(stranger, 1, 0, 128));
    assert_eq!((net.view(2).counters.hop_limit, net.got(2).len()), (1, 0));
    net.said.clear();
    let caller = Member { origin: stranger, address: "host:50".into(), native: String::new() };
    net.slip(2, RingMessage::RetConn(RetConn::Call { caller, content: LostMember::Sid(Sid::new(60)), hops: 0 }));
    net.run(1_000);
    let said =
        net.said.iter().filter(|(_, _, message)| matches!(message, RingMessage::RetConn(RetConn::Call { .. }))).count();
    assert_eq!(said, 6, "twice round three, and no further");
}

/// However much is missing by what is claimed, it is counted without running over.
#[test]
fn claims_of_what_is_missing_do_not_overflow() {
    let mut net = Net::ring(&[1, 2, 3]);
    for sid in [50, 51] {
        let origin = Origin { sid: Sid::new(sid), incarnation: 1 };
        net.slip(2, forged(origin, 1, 0, 1));
        net.drop_link(1, 2);
        net.run(3_000);
        net.slip(2, forged(origin, u64::MAX, u64::MAX - 1, 1));
    }
    assert_eq!(net.view(2).counters.missed, u64::MAX);
}

/// A neighbour whose publications have a hole is refused, and what is missing comes again.
#[test]
fn out_of_sequence() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.publish(1, "one");
    net.run(50);
    let origin = net.member(1).origin;
    net.slip(2, forged(origin, 9, 8, 1));
    let is_told = |(number, news): &(u16, RingNews)| {
        *number == 2 && matches!(news, RingNews::Refused { code: Code::BadSequence, .. })
    };
    assert!(net.news.iter().any(is_told));
    net.until_whole(&[1, 2, 3], 15_000);
    net.publish(1, "two");
    net.run(100);
    assert_eq!((net.got(2), net.got(3)), (vec!["one", "two"], vec!["one", "two"]));
}
