//! Two rings that become one.

use turno_engine::ring::RingNews;
use turno_proto::model::ring::RingState;

use super::net::Net;

/// A cut network leaves two rings, and once it is whole so is the ring: the one with the lower number stays.
#[test]
fn a_ring_in_two() {
    let mut net = Net::ring(&[1, 2, 3, 4, 5]);
    net.part(&[1, 4], &[2, 3, 5]);
    net.run(20_000);
    assert_eq!((net.circle(1).len(), net.circle(2).len()), (2, 3));
    net.reconnect();
    net.until_whole(&[1, 2, 3, 4, 5], 15_000);
    let merged = net.news.iter().filter(|(_, news)| matches!(news, RingNews::Merge { .. })).map(|(number, _)| *number);
    assert!(merged.clone().all(|number| [2, 3, 5].contains(&number)), "{:?}", merged.collect::<Vec<_>>());
}

/// What is published in both halves while they are apart reaches each half, and after the merge all.
#[test]
fn both_halves_go_on() {
    let mut net = Net::ring(&[1, 2, 3, 4]);
    net.part(&[1, 2], &[3, 4]);
    net.run(20_000);
    net.publish(1, "here");
    net.publish(3, "there");
    net.run(1_000);
    assert_eq!((net.got(2), net.got(4)), (vec!["here"], vec!["there"]));
    net.reconnect();
    net.until_whole(&[1, 2, 3, 4], 15_000);
    net.publish(1, "together");
    net.run(1_000);
    for number in [2, 3, 4] {
        assert_eq!(net.got(number).iter().filter(|text| **text == "together").count(), 1, "{number}");
    }
    assert_eq!((net.got(1), net.view(1).not_round), (vec![], 0));
}

/// A broker that starts again and knows nobody is found by those who know it.
#[test]
fn one_that_knows_nobody_is_found() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.kill(3);
    net.until_whole(&[1, 2], 15_000);
    net.start(3, None);
    assert_eq!(net.state(3), RingState::Alone);
    net.until_whole(&[1, 2, 3], 15_000);
}

/// One that waits for a member that never comes joins those who look for it.
#[test]
fn one_that_waits_is_found() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.kill(3);
    net.until_whole(&[1, 2], 15_000);
    net.settings = |settings| settings.wait = true;
    net.start(3, Some(9));
    net.until_whole(&[1, 2, 3], 15_000);
}

/// 3 has waited for a neighbour in vain and has joined 1, which is new. Only 3 knows who was in the ring: it looks for them soon
/// after its join, whenever it last looked before.
#[test]
fn a_member_looks_for_the_lost_soon_after_it_has_joined() {
    for phase in [0, 1_000, 2_000, 3_000, 4_000] {
        let mut net = Net::ring(&[1, 2, 3, 4, 5]);
        net.kill(4);
        net.kill(5);
        net.until_whole(&[1, 2, 3], 15_000);
        net.run(phase);
        net.kill(1);
        net.kill(2);
        for (number, next) in [(1, None), (4, None), (5, Some(4))] {
            net.start(number, next);
            net.run(100);
        }
        net.until_whole(&[1, 3], 15_000);
        net.until_whole(&[1, 3, 4, 5], 2_000);
    }
}
