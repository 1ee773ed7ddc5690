//! Neighbours that are lost.

use turno_engine::ring::{RetConn, RingInput, RingMessage, RingNews};
use turno_proto::model::ring::{ConnectPurpose, LostMember, RingState, Sid};

use super::net::Net;

/// The calls that went round, by their caller.
fn calls(net: &Net) -> Vec<(u16, LostMember)> {
    let calls = net.said.iter().filter_map(|(from, _, message)| match message {
        RingMessage::RetConn(RetConn::Call { caller, content, hops: 0 }) if caller.origin.sid.get() == *from => {
            Some((*from, *content))
        }
        _ => None,
    });
    calls.collect()
}

fn openings(net: &Net) -> Vec<(u16, u16, ConnectPurpose)> {
    let openings = net.said.iter().filter_map(|(from, to, message)| match message {
        RingMessage::RetConn(RetConn::Open { purpose }) => Some((*from, *to, *purpose)),
        _ => None,
    });
    openings.collect()
}

/// Proves S3.18, S3.19 and S3.24: a connection that is lost is made again within the 5 s, nobody is called, nothing is lost.
#[test]
fn a_lost_connection_comes_back() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.said.clear();
    net.drop_link(1, 2);
    net.run(6);
    assert_eq!((net.state(1), net.state(2)), (RingState::LinkDown, RingState::LinkDown));
    net.publish(1, "meanwhile");
    net.until_whole(&[1, 2, 3], 5_000);
    assert_eq!((calls(&net), openings(&net)), (vec![], vec![(1, 2, ConnectPurpose::Return)]));
    net.run(100);
    assert_eq!((net.got(2), net.got(3)), (vec!["meanwhile"], vec!["meanwhile"]));
}

/// Proves S3.18, S3.21, S3.22 and S3.24: after 5 s the successor calls for the member that sent to the lost one, and that one comes. What
/// the lost member had not passed on is sent again.
#[test]
fn one_falls() {
    let mut net = Net::ring(&[1, 2, 3, 4]);
    net.said.clear();
    net.publish(1, "under way");
    net.run(6);
    net.kill(2);
    net.publish(1, "afterwards");
    net.run(4_900);
    assert_eq!(calls(&net), []);
    net.until_whole(&[1, 3, 4], 10_000);
    assert_eq!(calls(&net), [(3, LostMember::Sid(Sid::new(2)))]);
    assert_eq!(openings(&net), [(1, 3, ConnectPurpose::Heal)]);
    net.run(100);
    for number in [3, 4] {
        assert_eq!(net.got(number), ["under way", "afterwards"], "{number}");
    }
    assert_eq!(net.view(1).not_round, 0);
}

/// Proves S3.22 and S3.24: two in a row have fallen, and a member that has nobody to send to is meant.
#[test]
fn two_in_a_row_fall() {
    let mut net = Net::ring(&[1, 2, 3, 4, 5]);
    net.publish(1, "before");
    net.run(3);
    net.kill(2);
    net.kill(3);
    net.until_whole(&[1, 4, 5], 15_000);
    assert_eq!((net.got(4), net.got(5)), (vec!["before"], vec!["before"]));
}

/// Proves S3.24: any two may fall, and any may come back.
#[test]
fn any_two_fall() {
    for one in 1..=5 {
        for other in (1..=5).filter(|other| *other != one) {
            let mut net = Net::ring(&[1, 2, 3, 4, 5]);
            net.kill(one);
            net.run(700);
            net.kill(other);
            let rest: Vec<u16> = (1..=5).filter(|number| ![one, other].contains(number)).collect();
            net.until_whole(&rest, 15_000);
            net.start(one, Some(rest[0]));
            net.start(other, Some(rest[0]));
            net.until_whole(&[1, 2, 3, 4, 5], 15_000);
        }
    }
}

/// Proves S3.20: a member without a predecessor for 10 s joins again.
#[test]
fn nobody_comes() {
    let mut net = Net::ring(&[1, 2, 3]);
    // 1 and 3 cannot reach 2, and 2 reaches nobody: it is left over.
    net.part(&[2], &[1, 3]);
    net.run(30_000);
    assert_eq!((net.state(2), net.circle(1)), (RingState::Alone, vec![1, 3]));
    net.reconnect();
    net.until_whole(&[1, 2, 3], 15_000);
}

/// Proves S3.18 and S3.21: one that comes in the place of the lost predecessor, and goes before the circle is whole, does not make it
/// wait longer.
#[test]
fn anyone_who_comes_and_goes_changes_nothing() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.cut(3, 1);
    net.run(4_000);
    // It finds the place before 1, and 3 cannot reach it.
    net.cut(3, 4);
    net.start(4, Some(1));
    net.run(1_000);
    assert_eq!(net.view(1).previous, Some(Sid::new(4)));
    net.run(2_000);
    assert_eq!((net.view(1).previous, calls(&net)), (None, vec![]));
    net.run(1_500);
    assert_eq!(calls(&net), [(1, LostMember::Sid(Sid::new(3)))]);
}

/// Proves S3.20: if all others have begun anew and are in no ring, there is nothing to come back to, and nothing to wait for.
#[test]
fn nobody_is_in_the_ring_any_more() {
    for others in [&[2][..], &[2, 3], &[2, 3, 4]] {
        let all: Vec<u16> = [1].iter().chain(others).copied().collect();
        let mut net = Net::ring(&all);
        for number in others {
            net.kill(*number);
            net.start(*number, None);
        }
        net.until_whole(&all, 5_000);
    }
}

/// Proves S3.23: one that is called fallen and is not connects again.
#[test]
fn called_fallen_and_alive() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.said.clear();
    let caller = net.member(3);
    net.slip(2, RingMessage::RetConn(RetConn::Call { caller, content: LostMember::Sid(Sid::new(2)), hops: 1 }));
    net.run(100);
    assert_eq!(openings(&net), [(2, 3, ConnectPurpose::Return)]);
    assert!(
        !net.said
            .iter()
            .any(|(from, _, message)| *from == 2 && matches!(message, RingMessage::RetConn(RetConn::Call { .. })))
    );
    net.until_whole(&[1, 2, 3], 3_000);
}

/// Proves S3.25: of two, the one that is left goes on alone, and can be joined.
#[test]
fn one_of_two_falls() {
    let mut net = Net::ring(&[1, 2]);
    net.kill(2);
    net.run(6_000);
    assert_eq!((net.state(1), net.view(1).buffered), (RingState::Alone, 0));
    net.start(2, Some(1));
    net.until_whole(&[1, 2], 3_000);
}

/// Two close a circle directly if the one sends to the other already, in sorted mode too.
#[test]
fn a_restarted_next_one_closes_the_circle() {
    let mut net = Net::new();
    net.settings = |settings| (settings.sorted, settings.wait) = (true, true);
    net.start(1, None);
    net.start(4, Some(1));
    net.run(2_000);
    net.kill(4);
    net.start(4, Some(1));
    net.until_whole(&[1, 4], 15_000);
}

/// Proves I17: a member that joins again asks its next one, which has lost its own. It was refused as long as that one waited, and
/// so was everybody else who asked there; the two are all that is left, and close the circle at once.
#[test]
fn the_two_ends_of_a_broken_circle_close_it() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.kill(3);
    net.run(1_000);
    net.said.clear();
    net.put(1, RingInput::Join { next: net.member(2).address, sid: None });
    net.publish(2, "meanwhile");
    net.until_whole(&[1, 2], 2_000);
    assert_eq!(openings(&net), [(2, 1, ConnectPurpose::Heal)]);
    net.run(100);
    assert_eq!(net.got(1), ["meanwhile"]);
}

/// Proves I17: healing closed the circle around two brokers with one sid. The one that started later leaves it, and the
/// others are a ring.
#[test]
fn two_brokers_with_one_sid_do_not_stay_in_one_circle() {
    // With a secret the earlier one would be fenced off.
    let mut net = Net::ring_with(&[1, 2, 3], |settings| settings.has_secret = false);
    net.start(5, None);
    net.start(6, Some(5));
    net.run(500);
    net.start_at(9, 3, Some(5));
    net.run(3_000);
    assert_eq!((net.view(3).whole, net.view(9).whole), (true, true));
    for (from, to) in [(3, 1), (9, 5)] {
        net.drop_link(from, to);
    }
    net.run(6);
    for (to, caller) in [(3, 5), (9, 1)] {
        let call = RetConn::Call { caller: net.member(caller), content: LostMember::Gap, hops: 0 };
        net.slip(to, RingMessage::RetConn(call));
    }
    net.run(1_000);
    let next = |number| net.view(number).next.map(Sid::get);
    let wired = [1, 2, 3, 5, 6, 9].map(next);
    assert_eq!(wired, [Some(2), Some(3), Some(5), Some(6), Some(3), Some(1)], "one circle of six");
    net.until_whole(&[1, 2, 3, 5, 6], 20_000);
    assert_eq!(net.state(9), RingState::Alone);
    let left: Vec<_> = net.news.iter().filter(|(_, news)| matches!(news, RingNews::Namesake { .. })).collect();
    assert_eq!(left, [&(9, RingNews::Namesake { address: "host:3".to_owned() })]);
    // It stays outside while the other is there.
    net.run(20_000);
    assert_eq!((net.state(9), net.view(1).members.len()), (RingState::Alone, 5));
}
