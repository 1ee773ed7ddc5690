//! Members that come.

use turno_proto::model::ring::RingState;

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

#[test]
fn seven() {
    let mut net = Net::ring(&[1, 2, 3, 4, 5, 6, 7]);
    for n in 1..=7 {
        net.publish(n, &format!("from {n}"));
    }
    net.run(1000);
    for n in 1..=7 {
        assert_eq!(net.got(n).len(), 6);
        assert_eq!(net.view(n).not_round, 0);
    }
    net.kill(3);
    let took = net.until_whole(&[1, 2, 4, 5, 6, 7], 15_000);
    eprintln!("one fell: {took}");
    net.kill(5);
    net.kill(6);
    let took = net.until_whole(&[1, 2, 4, 7], 15_000);
    eprintln!("two adjacent fell: {took}");
    net.kill(1);
    net.kill(4);
    let took = net.until_whole(&[2, 7], 15_000);
    eprintln!("two apart fell: {took}");
    net.start(3, Some(7));
    net.start(1, Some(7));
    net.start(4, Some(7));
    net.start(5, Some(2));
    let took = net.until_whole(&[1, 2, 3, 4, 5, 7], 15_000);
    eprintln!("came back: {took}");
    net.part(&[1, 2, 3], &[4, 5, 7]);
    net.run(30_000);
    eprintln!("{:?} {:?}", net.circle(1), net.circle(4));
    net.mend();
    let took = net.until_whole(&[1, 2, 3, 4, 5, 7], 15_000);
    eprintln!("merged: {took}");
    net.put(3, turno_engine::ring::RingInput::Leave);
    let took = net.until_whole(&[1, 2, 4, 5, 7], 15_000);
    eprintln!("left: {took} {:?}", net.left);
}
