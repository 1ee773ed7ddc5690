//! Members that come.

use turno_engine::ring::{JoinVerdict, RetConn, RingMessage};
use turno_proto::model::Code;
use turno_proto::model::ring::{RingState, Sid};

use super::net::Net;

/// Proves S3.1, S3.9, S3.10, S3.11 and S3.12: the first is alone, the second makes two, the third comes between.
#[test]
fn a_ring_grows_from_one() {
    let mut net = Net::new();
    net.start(1, None);
    assert_eq!(net.state(1), RingState::Alone);
    net.start(2, Some(1));
    net.run(1_500);
    assert_eq!((net.circle(1), net.circle(2)), (vec![1, 2], vec![2, 1]));
    net.start(3, Some(1));
    net.run(1_500);
    assert_eq!(net.circle(1), [1, 2, 3]);
    for number in [1, 2, 3] {
        let view = net.view(number);
        assert!(view.whole && view.state == RingState::Member, "{view:?}");
        assert_eq!(view.members.len(), 3);
    }
}

/// Proves S3.3, S3.10, S3.11, S3.13, S3.15, S3.38 and S3.39: who says what when one comes between two.
#[test]
fn the_words_of_a_join() {
    let mut net = Net::ring(&[1, 2, 3]);
    net.said.clear();
    net.start(4, Some(1));
    net.run(1_000);
    let messages: Vec<(u16, u16, String)> =
        net.said.iter().filter_map(|(from, to, message)| Some((*from, *to, brief(message)?))).collect();
    let messages: Vec<(u16, u16, &str)> =
        messages.iter().map(|(from, to, message)| (*from, *to, message.as_str())).collect();
    let expected =
        [(4, 1, "NEWCONN"), (1, 2, "NEWCONN 1"), (2, 3, "NEWCONN 1"), (3, 4, "RETCONN"), (3, 1, "NEWCONN 1 claimed")];
    assert_eq!(messages, expected);
    assert_eq!(net.circle(1), [1, 2, 3, 4]);
    let view = net.view(4);
    assert_eq!((view.previous, view.next), (Some(Sid::new(3)), Some(Sid::new(1))));
}

/// NEWCONN and RETCONN in short form.
fn brief(message: &RingMessage) -> Option<String> {
    match message {
        RingMessage::NewConn(message) => {
            let content = message.content.map(|content| format!(" {content}")).unwrap_or_default();
            let verdict =
                message.verdict.map_or("", |verdict| if verdict == JoinVerdict::Claimed { " claimed" } else { " no" });
            Some(format!("NEWCONN{content}{verdict}"))
        }
        RingMessage::RetConn(RetConn::Open { .. }) => Some("RETCONN".to_owned()),
        _ => None,
    }
}

/// Proves S3.13, S3.14, S3.16, S3.36 and S3.53: several that come at one member at once are let in one after the other, while
/// everyone publishes: nothing is lost, doubled or out of order for those who were there.
#[test]
fn several_come_at_once() {
    let mut net = Net::ring(&[1, 2, 3]);
    for number in [4, 5, 6, 7] {
        net.start(number, Some(1));
    }
    for round in 0..200 {
        for number in [1, 2, 3] {
            net.publish(number, &format!("{number}:{round}"));
        }
        net.run(3);
    }
    net.until_whole(&[1, 2, 3, 4, 5, 6, 7], 15_000);
    net.run(1_000);
    for number in [1, 2, 3] {
        for origin in [1, 2, 3_u16].into_iter().filter(|origin| *origin != number) {
            let got: Vec<&str> =
                net.got(number).into_iter().filter(|text| text.starts_with(&format!("{origin}:"))).collect();
            let all: Vec<String> = (0..200).map(|round| format!("{origin}:{round}")).collect();
            assert_eq!(got, all, "of {origin} at {number}");
        }
    }
}

/// Proves S3.17: nobody there is an error at once, or is waited for.
#[test]
fn nobody_to_join_at() {
    let mut net = Net::new();
    net.start(2, Some(1));
    net.run(5_000);
    assert_eq!(net.failed, [(2, Code::RingDown)]);
    let mut net = Net::new();
    net.settings = |settings| settings.wait = true;
    net.start(2, Some(1));
    net.run(5_000);
    assert_eq!((net.state(2), net.failed.len()), (RingState::Joining, 0));
    net.start(1, None);
    net.until_whole(&[1, 2], 3_000);
}

/// Proves S3.53: in sorted mode a joiner that asks the wrong member is sent to the right one. Every member sees the same
/// circle, forwards and backwards.
#[test]
fn a_sorted_ring() {
    for order in [[4, 2, 7, 1, 5], [1, 2, 4, 5, 7], [7, 5, 4, 2, 1], [5, 1, 7, 2, 4]] {
        let mut net = Net::new();
        net.settings = |settings| settings.sorted = true;
        net.start(order[0], None);
        for at in 1..order.len() {
            // It asks the first and the last that came, in turn: for most of them that is the wrong one.
            net.start(order[at], Some(order[if at % 2 == 0 { 0 } else { at - 1 }]));
            net.until_whole(&order[..=at], 5_000);
        }
        let mut sorted = order;
        sorted.sort_unstable();
        for _ in 0..order.len() {
            let (number, view) = (sorted[0], net.view(sorted[0]));
            let members: Vec<u16> = view.members.iter().map(|member| member.sid.get()).collect();
            assert_eq!(
                (&net.circle(number)[..], &members[..]),
                (&sorted[..], &sorted[..]),
                "{order:?}, seen by {number}"
            );
            assert_eq!(view.previous.map(Sid::get), sorted.last().copied(), "{order:?}, seen by {number}");
            sorted.rotate_left(1);
        }
    }
}

/// Proves S3.6: a broker without a number is told the one after the highest, and the next one the one after that.
#[test]
fn a_number_for_one_that_has_none() {
    let mut net = Net::ring(&[1, 2, 6]);
    assert_eq!(net.ask_sid(1), Some(7));
    assert_eq!(net.ask_sid(1), Some(8));
}

/// Proves S3.45: members tell each other where they are.
#[test]
fn addresses_are_known() {
    let net = Net::ring(&[1, 2, 3]);
    let addresses: Vec<String> = net.view(2).members.into_iter().map(|member| member.address).collect();
    assert_eq!(addresses, ["host:2", "host:3", "host:1"]);
}

/// A member that asks the one it is sent to by, in a circle with another tail, closes the circle; the tail comes in again.
#[test]
fn anyone_who_sends_there_already_is_the_predecessor() {
    let mut net = Net::ring(&[1, 2, 3, 4, 5, 6]);
    net.part(&[1, 2, 3], &[4, 5, 6]);
    net.run(8_000);
    net.reconnect();
    net.until_whole(&[1, 2, 3, 4, 5, 6], 15_000);
}

/// NEWCONN about a join is lost, and the joiner gets a predecessor all the same: the circle leads through it, and past the one that sent
/// to the member that was asked. That one comes in again.
#[test]
fn word_of_a_join_is_lost() {
    let mut net = Net::ring(&[1, 2, 3, 5, 4]);
    net.kill(5);
    net.run(100);
    // It asks 1; 3 has nobody to pass the message on to, and comes back to 5 when the second is over.
    net.start(5, Some(1));
    net.run(1_500);
    assert_eq!(net.view(1).previous, Some(Sid::new(5)));
    net.until_whole(&[1, 2, 3, 4, 5], 1_500);
}
