//! Members that leave.

use turno_engine::ring::{RingInput, RingMessage};
use turno_proto::model::Code;
use turno_proto::model::ring::{RingState, Sid};

use super::net::Net;

/// Proves S3.26, S3.28, S3.30 and S3.41: SERVOFF goes round, the predecessor sends to the successor, and the leaver is out when it
/// is back.
#[test]
fn one_of_four_leaves() {
    let mut net = Net::ring(&[1, 2, 3, 4]);
    net.said.clear();
    net.put(3, RingInput::Leave);
    assert_eq!(net.state(3), RingState::Leaving);
    net.run(200);
    let off = net.said.iter().filter_map(|(from, to, message)| match message {
        RingMessage::ServOff { content, .. } => {
            Some((*from, *to, content.as_ref().map(|member| member.origin.sid.get())))
        }
        _ => None,
    });
    assert_eq!(off.collect::<Vec<_>>(), [(3, 4, None), (4, 1, Some(4)), (1, 2, Some(4)), (2, 3, Some(4))]);
    assert_eq!((net.left.as_slice(), net.state(3)), (&[3][..], RingState::Off));
    assert_eq!(net.circle(1), [1, 2, 4]);
    net.until_whole(&[1, 2, 4], 3_000);
}

/// Proves S3.26 and S3.29: what others publish while one leaves passes through it, and what it published before is everywhere.
#[test]
fn nothing_is_lost_when_one_leaves() {
    let mut net = Net::ring(&[1, 2, 3, 4]);
    for round in 0..40 {
        net.publish(1, &format!("{round}"));
        if round < 20 {
            net.publish(3, &format!("3:{round}"));
        } else if round == 20 {
            net.put(3, RingInput::Leave);
        }
        net.run(2);
    }
    net.run(2_000);
    for number in [2, 4] {
        let of_one: Vec<&str> = net.got(number).into_iter().filter(|text| !text.contains(':')).collect();
        assert_eq!(of_one, (0..40).map(|round| round.to_string()).collect::<Vec<_>>(), "{number}");
    }
    for number in [1, 2, 4] {
        let of_three: Vec<&str> = net.got(number).into_iter().filter(|text| text.contains(':')).collect();
        assert_eq!(of_three, (0..20).map(|round| format!("3:{round}")).collect::<Vec<_>>(), "{number}");
    }
}

/// Proves S3.27 and S3.41: of two, the one that stays is alone, says nothing, and keeps nothing of what the leaver still says.
#[test]
fn one_of_two_leaves() {
    let mut net = Net::ring(&[1, 2]);
    net.publish(2, "the last");
    net.said.clear();
    net.put(2, RingInput::Leave);
    net.run(1_000);
    assert_eq!((net.state(1), net.state(2)), (RingState::Alone, RingState::Off));
    assert!(!net.said.iter().any(|(from, _, message)| *from == 1 && matches!(message, RingMessage::ServOff { .. })));
    assert_eq!((net.got(1), net.view(1).buffered), (vec!["the last"], 0));
    net.start(3, Some(1));
    net.until_whole(&[1, 3], 3_000);
}

/// Proves S3.30: whose SERVOFF does not come back leaves after 2 s.
#[test]
fn leaving_takes_no_longer_than_two_seconds() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.cut(2, 3);
    net.put(1, RingInput::Leave);
    net.run(1_900);
    assert_eq!(net.state(1), RingState::Leaving);
    net.run(200);
    assert_eq!(net.state(1), RingState::Off);
    net.reconnect();
    net.until_whole(&[2, 3], 15_000);
}

/// Proves S3.28 and S3.30: a neighbour of the leaver falls at any moment of the leave. The leaver is out in time all the same, the
/// others close the circle, and have what the leaver and each other published before.
#[test]
fn a_neighbour_falls_while_one_leaves() {
    for fallen in [2, 4] {
        for moment in 0..12 {
            let mut net = Net::ring(&[1, 2, 3, 4, 5]);
            net.publish(3, "of the leaver");
            net.publish(1, "of another");
            net.run(50);
            net.put(3, RingInput::Leave);
            net.run(moment);
            net.kill(fallen);
            net.run(2_100 - moment);
            assert_eq!(net.state(3), RingState::Off, "{fallen} falls after {moment} ms");
            let others: Vec<u16> = [1, 2, 4, 5].into_iter().filter(|number| *number != fallen).collect();
            net.until_whole(&others, 15_000);
            assert_eq!(net.got(5), ["of the leaver", "of another"], "{fallen} falls after {moment} ms");
            net.publish(1, "after it");
            net.run(1_000);
            for number in others.into_iter().filter(|number| *number != 1) {
                assert_eq!(net.got(number).last(), Some(&"after it"), "{fallen} falls after {moment} ms: {number}");
            }
        }
    }
}

/// Proves S3.42: an admin at one of them ends all, and SHUTDWN is not passed on to where it began.
#[test]
fn all_end() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.said.clear();
    net.put(2, RingInput::Shutdown);
    net.run(1_000);
    net.stopped.sort_unstable();
    assert_eq!(net.stopped, [1, 2, 3]);
    let said = net.said.iter().filter(|(_, _, message)| matches!(message, RingMessage::Shutdown { .. }));
    assert_eq!(said.map(|(from, to, _)| (*from, *to)).collect::<Vec<_>>(), [(2, 3), (3, 1)]);
}

/// Proves S3.42: of two, one hears that the other takes nothing from it any more before it hears why. It goes on listening.
#[test]
fn the_end_is_heard_after_the_refusal() {
    let mut net = Net::ring(&[1, 2]);
    net.slip(2, RingMessage::Refused { code: Code::NotInRing, instead: None });
    assert_eq!((net.state(2), net.view(2).previous), (RingState::LinkDown, Some(Sid::new(1))));
    net.put(1, RingInput::Shutdown);
    net.run(1_000);
    assert_eq!(net.stopped, [1, 2]);
}
