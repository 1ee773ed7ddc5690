//! How links come to be: dialled, doubled, refused, dialled again.

use turno_proto::model::Code;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::link::view::{BrokerNode, LinkState, LinkView};

use super::net::Net;

fn add(net: &mut Net, broker: usize, address: &str) -> Result<AdminAnswer, Code> {
    net.call(broker, AdminCall::LinkAdd { address: address.to_owned() })
}

fn links(net: &mut Net, broker: usize) -> Vec<LinkView> {
    match net.call(broker, AdminCall::LinkLs {}) {
        Ok(AdminAnswer::Links { links }) => links,
        other => panic!("{other:?}"),
    }
}

fn states(net: &mut Net, broker: usize) -> Vec<(Option<String>, LinkState)> {
    links(net, broker).into_iter().map(|link| (link.name, link.state)).collect()
}

fn up(name: &str) -> (Option<String>, LinkState) {
    (Some(name.to_owned()), LinkState::Up)
}

/// S2.4, S2.5: a broker joins a running set, and what is not there yet is dialled each second.
#[test]
fn a_target_is_dialled_until_it_is_there() {
    let mut net = Net::new(2);
    add(&mut net, 0, "b7:1").unwrap();
    add(&mut net, 0, "b1:1").unwrap();
    assert_eq!(states(&mut net, 0), [(None, LinkState::Down), up("b1")]);
    assert_eq!(links(&mut net, 0)[0].code.as_deref(), Some("link_down"));
    assert_eq!(states(&mut net, 1), [up("b0")]);
    net.unlink(0, 1);
    assert_eq!(states(&mut net, 1), []);
    net.settle_for(999);
    assert_eq!(states(&mut net, 0)[1].1, LinkState::Down);
    net.settle_for(252);
    assert_eq!(states(&mut net, 0)[1], up("b1"));
    assert_eq!(states(&mut net, 1), [up("b0")]);
}

/// A link to itself and a second one to the same broker are stated, not made.
#[test]
fn itself_and_doubles_are_refused() {
    let mut net = Net::new(2);
    add(&mut net, 0, "b0:1").unwrap();
    add(&mut net, 0, "b1:1").unwrap();
    add(&mut net, 0, "b1:2").unwrap();
    let codes: Vec<(LinkState, Option<String>)> =
        links(&mut net, 0).into_iter().map(|link| (link.state, link.code)).collect();
    let code = |code: Code| Some(code.name().to_owned());
    let expected = [
        (LinkState::Itself, code(Code::LinkToItself)),
        (LinkState::Up, None),
        (LinkState::Doubled, code(Code::AlreadyLinked)),
    ];
    assert_eq!(codes, expected);
    assert_eq!(net.links(), 1);
    // The first is lost: the second address leads there as well.
    net.call(0, AdminCall::LinkRm { link: "b1:1".into() }).unwrap();
    net.settle_for(2_000);
    assert_eq!(states(&mut net, 0)[1], up("b1"));
    assert_eq!(net.links(), 1);
}

/// Both dial, one after the other: the link that is there stays, since messages may be on it, and the other is told.
#[test]
fn two_that_dial_each_other_have_one_link() {
    for first in [0, 1] {
        let mut net = Net::new(2);
        for broker in [first, 1 - first] {
            add(&mut net, broker, &format!("b{}:1", 1 - broker)).unwrap();
            net.settle();
        }
        assert_eq!(net.links(), 1);
        let others = |broker: usize| format!("b{}", 1 - broker);
        for _ in 0..2 {
            assert_eq!(states(&mut net, first), [up(&others(first))]);
            assert_eq!(states(&mut net, 1 - first), [(None, LinkState::Doubled), up(&others(1 - first))]);
            net.settle_for(100_000);
            assert_eq!(net.links(), 1);
        }
        // Once it is lost, the first to dial again has it.
        net.unlink(0, 1);
        net.settle_for(3_000);
        assert_eq!(net.links(), 1);
    }
}

/// A link that is not wanted any more is gone, and stays so; by its address, by name, by id.
#[test]
fn a_link_is_removed() {
    let mut net = Net::new(2);
    for wanted in ["b1:1", "b1", "000000000065"] {
        add(&mut net, 0, "b1:1").unwrap();
        assert_eq!(net.links(), 1);
        net.call(0, AdminCall::LinkRm { link: wanted.to_owned() }).unwrap();
        net.settle_for(5_000);
        assert_eq!((net.links(), links(&mut net, 0).len(), links(&mut net, 1).len()), (0, 0, 0));
    }
    assert_eq!(net.call(0, AdminCall::LinkRm { link: "b1".into() }), Err(Code::NotFound));
}

/// Addresses that cannot be, and too many of them.
#[test]
fn bad_addresses_and_too_many_are_refused() {
    let mut net = Net::new(1);
    for address in ["", "host", &"x:".repeat(400)] {
        assert_eq!(add(&mut net, 0, address), Err(Code::BadOption), "{address}");
    }
    for at in 0..turno_proto::model::limits::LINKS_MAX {
        add(&mut net, 0, &format!("b9{at}:1")).unwrap();
    }
    assert_eq!(add(&mut net, 0, "b99:2"), Err(Code::TooManyLinks));
    add(&mut net, 0, "b90:1").expect("one that is there is no more");
}

/// Everyone knows everyone, and who has links with whom; who cannot be reached any more is forgotten.
#[test]
fn the_graph_is_known_everywhere() {
    let mut net = Net::new(4);
    for (from, to) in [(0, 1), (1, 2), (2, 3), (3, 0)] {
        net.link(from, to);
    }
    net.settle();
    let graph = |net: &mut Net, broker| match net.call(broker, AdminCall::LinkGraph {}) {
        Ok(AdminAnswer::LinkGraph { brokers }) => brokers,
        other => panic!("{other:?}"),
    };
    let names = |brokers: &[BrokerNode]| brokers.iter().map(|broker| broker.name.clone()).collect::<Vec<String>>();
    for broker in 0..4 {
        let brokers = graph(&mut net, broker);
        let mut others: Vec<String> = (0..4).filter(|at| *at != broker).map(|at| format!("b{at}")).collect();
        others.insert(0, format!("b{broker}"));
        assert_eq!(names(&brokers), others);
        assert!(brokers.iter().all(|node| node.neighbours.len() == 2), "{brokers:?}");
        assert!(brokers.iter().all(|node| node.way.len() <= 2), "the shortest way: {brokers:?}");
    }
    net.unlink(3, 0);
    net.settle();
    assert_eq!(names(&graph(&mut net, 0)).len(), 4);
    net.unlink(1, 2);
    net.settle();
    assert_eq!(names(&graph(&mut net, 0)), ["b0", "b1"]);
    assert_eq!(names(&graph(&mut net, 3)), ["b3", "b2"]);
}
