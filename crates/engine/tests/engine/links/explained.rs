//! Where a message is and why, when other brokers play a part in it.

use turno_engine::{Broadcast, Effect, Forward, Input, LinkMessage, NativeEffect, Neighbour, PeerEffect};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::link::{ForwardWants, Path, Presence};
use turno_proto::model::view::{Explanation, Reason};
use turno_proto::model::{ConnId, MessageId, Slots};

use super::net::{Net, Place};
use crate::seen::body;

fn explain(net: &mut Net, broker: usize, id: MessageId) -> Explanation {
    match net.call(broker, AdminCall::MessageExplain { id: id.to_string() }) {
        Ok(AdminAnswer::Message { explanation }) => *explanation,
        other => panic!("{other:?}"),
    }
}

fn why(net: &mut Net, broker: usize, id: MessageId) -> Reason {
    explain(net, broker, id).because.0
}

/// Sends and hears the id.
fn send(net: &mut Net, sender: Place, text: &str, cost: u16) -> MessageId {
    net.send(sender, text, |message| message.cost = Some(cost));
    let stored = net.heard_by(sender).into_iter().find_map(|effect| match effect {
        Effect::Peer(PeerEffect::Native { effect: NativeEffect::Stored { id, .. }, .. }) => Some(id),
        _ => None,
    });
    stored.expect("a send is answered with its id")
}

/// The owner says to which broker it crossed, the one on the way says both, the last one says who works on it; all of
/// them know it by one id.
#[test]
fn a_message_that_crossed_is_found_at_every_broker_on_its_way() {
    let mut net = Net::new(3);
    net.link(0, 1);
    net.link(1, 2);
    net.settle();
    let sender = net.client(0, "q");
    net.worker(2, "q", 1);
    net.settle();
    let id = send(&mut net, sender, "m", 1);
    net.settle_for(200);
    let table = [(0, vec![], Some(1)), (1, vec!["b0"], Some(2)), (2, vec!["b0", "b1"], None)];
    for (broker, came_by, crossed_to) in table {
        let Explanation { message, because } = explain(&mut net, broker, id);
        assert_eq!((message.id, message.came_by), (id.to_string(), came_by.iter().map(ToString::to_string).collect()));
        match (because.0, crossed_to) {
            (Reason::AtLink { broker, name, since_seconds }, Some(to)) => {
                assert_eq!((broker, name), (Net::id(to).to_string(), format!("b{to}")));
                assert!((100..=300).contains(&since_seconds.as_millis()), "{since_seconds:?}");
                assert_eq!(message.worker, None);
            }
            (Reason::AtWorker { worker, name, .. }, None) => {
                assert_eq!((message.worker, name.as_str()), (Some(worker), "w2"));
            }
            other => panic!("{broker}: {other:?}"),
        }
    }
}

/// A broker that nobody has told of is known by its id.
#[test]
fn brokers_without_a_name_are_told_by_their_ids() {
    let mut net = Net::new(1);
    let near = net.worker(0, "q", 1);
    let conn = ConnId { index: 900, generation: 0 };
    let (name, address) = ("b9".to_owned(), "127.0.0.1:9".to_owned());
    net.put(
        0,
        Input::Linked {
            conn,
            target: None,
            neighbour: Neighbour { broker: Net::id(9), name, address, payload_max: 1_000 },
        },
    );
    let path = Path::new(vec![Net::id(9)]).unwrap();
    let presence = Presence { path, name: "b9".to_owned(), neighbours: Vec::new(), listens: false, ring: None };
    net.put(0, Input::Link { conn, message: Box::new(LinkMessage::Presence(vec![presence])) });
    net.put(0, Input::Open { conn, seq: 1, handle: 0, queue: "q".parse().unwrap() });
    let id: MessageId = "00000000006b00000000002a00000007".parse().unwrap();
    let forward = Forward {
        seq: 2,
        handle: 0,
        id,
        wants: ForwardWants::Settling,
        attempt: 1,
        cost: 1,
        priority: 4,
        deadline_ms: None,
        alone: false,
        path: Path::new(vec![Net::id(7), Net::id(9)]).unwrap(),
        payload: body("m"),
    };
    net.put(0, Input::Forwarded { conn, forward: Box::new(forward) });
    assert_eq!(net.take("m").worker, near);
    assert_eq!(explain(&mut net, 0, id).message.came_by, [Net::id(7).to_string(), "b9".to_owned()]);
}

/// What waits says whether others have workers: none anywhere, none because links are down, busy ones there, busy ones
/// here and there.
#[test]
fn what_waits_knows_of_workers_elsewhere() {
    let mut net = Net::new(2);
    let sender = net.client(0, "q");
    let first = send(&mut net, sender, "first", 1);
    assert_eq!(why(&mut net, 0, first), Reason::NoWorker);
    assert!(net.call(0, AdminCall::LinkAdd { address: "nobody:1".into() }).is_ok());
    assert_eq!(why(&mut net, 0, first), Reason::LinksDown { down: 1, wanted: 1 });
    assert!(net.call(0, AdminCall::LinkAdd { address: "b1:1".into() }).is_ok());
    net.settle();
    assert_eq!(why(&mut net, 0, first), Reason::LinksDown { down: 1, wanted: 2 }, "the other one is up, for nothing");
    assert!(net.call(0, AdminCall::LinkRm { link: "nobody:1".into() }).is_ok());
    assert_eq!(why(&mut net, 0, first), Reason::NoWorker);

    let far = net.worker(1, "q", 1);
    net.settle();
    assert!(matches!(why(&mut net, 0, first), Reason::AtLink { .. }));
    let second = send(&mut net, sender, "second", 1);
    let third = send(&mut net, sender, "third", 1);
    net.settle();
    assert_eq!(why(&mut net, 0, second), Reason::FarBusy { brokers: 1, used: 1, ahead: 0 });
    assert_eq!(why(&mut net, 0, third), Reason::FarBusy { brokers: 1, used: 1, ahead: 1 });

    let near = net.worker(0, "q", 1);
    net.settle();
    assert_eq!(net.take("second").worker, near);
    let busy = Reason::AllBusy { workers: 1, used: 1, ahead: 0, probing: 0, dropped: 0, not_reading: 0, brokers: 1 };
    assert_eq!(why(&mut net, 0, third), busy);
    net.put(1, Input::Disconnected { conn: far.conn });
    net.settle();
    let busy = Reason::AllBusy { workers: 1, used: 1, ahead: 1, probing: 0, dropped: 0, not_reading: 0, brokers: 0 };
    assert_eq!(why(&mut net, 0, third), busy, "what the lost worker had goes first again");
}

/// A message that is too much for everyone here may fit elsewhere; a costly one before it is what the others wait for.
#[test]
fn costly_messages_and_those_behind_them() {
    let mut net = Net::new(2);
    net.link(0, 1);
    let sender = net.client(0, "q");
    net.worker(0, "q", 1);
    net.settle();
    let near = send(&mut net, sender, "near", 1);
    let large = send(&mut net, sender, "large", 5);
    let small = send(&mut net, sender, "small", 1);
    net.settle();
    assert!(matches!(why(&mut net, 0, near), Reason::AtWorker { .. }));
    assert_eq!(why(&mut net, 0, large), Reason::TooCostly { cost: 5, largest: 1 });
    net.worker(1, "q", 2);
    net.settle();
    assert_eq!(why(&mut net, 0, large), Reason::FarBusy { brokers: 1, used: 0, ahead: 0 }, "two slots are not five");
    assert_eq!(why(&mut net, 0, small), Reason::Behind { ahead: 1 });
}

/// A broadcast counts the brokers that have not told how it ended there apart from consumers.
#[test]
fn a_broadcast_waits_for_brokers() {
    let mut net = Net::new(2);
    net.link(0, 1);
    let caller = net.client(0, "q");
    let near = net.worker(0, "q", 1);
    for _ in 0..3 {
        net.worker(1, "q", 1);
    }
    net.settle();
    let seq = net.seq();
    let broadcast = Broadcast {
        seq,
        handle: 0,
        deadline_ms: Some(10_000),
        no_reply: false,
        skip_self: false,
        payload: body("all"),
    };
    net.put(0, Input::Broadcast { conn: caller.conn, broadcast });
    net.settle();
    let Ok(AdminAnswer::Worker { worker }) = net.call(0, AdminCall::WorkerShow { worker: "1".into() }) else {
        panic!("a worker")
    };
    let id: MessageId = worker.holds.expect("shown")[0].id.parse().expect("an id");
    assert_eq!(why(&mut net, 0, id), Reason::AtConsumers { consumers: 1, open: 1, brokers: 1 });
    for _ in 0..4 {
        let given = net.take("all");
        if given.worker != near {
            net.reply(&given, "done", false);
        }
    }
    net.settle();
    assert_eq!(why(&mut net, 0, id), Reason::AtConsumers { consumers: 4, open: 1, brokers: 0 });
}

/// What was cancelled and is at another broker waits for that one, until it is over there.
#[test]
fn what_is_stopped_elsewhere_says_where() {
    let mut net = Net::new(2);
    net.link(0, 1);
    let sender = net.client(0, "q");
    net.worker(1, "q", 1);
    net.settle();
    let id = send(&mut net, sender, "m", 1);
    net.settle();
    let call = AdminCall::MessageCancel { id: id.to_string() };
    assert!(net.call(0, call).is_ok());
    let stopping = Reason::StoppingAtLink { broker: Net::id(1).to_string(), name: "b1".to_owned() };
    assert_eq!(why(&mut net, 0, id), stopping);
}

/// `status` counts links: those that are up, those that are wanted, and those of them that are down.
#[test]
fn status_counts_links() {
    let mut net = Net::new(3);
    net.link(1, 0);
    for address in ["b2:1", "nobody:1", "b0:1", "b1:1"] {
        assert!(net.call(0, AdminCall::LinkAdd { address: address.into() }).is_ok());
    }
    net.settle();
    let status = net.engines[0].status();
    assert_eq!(
        (status.links_up, status.links_wanted, status.links_down),
        (2, 4, 1),
        "itself and a second one are not down"
    );
}

/// A queue that is one worker's alone at another broker: what waits here waits for that one, also if somebody here stands
/// by for it.
#[test]
fn a_queue_that_is_somebodys_elsewhere() {
    let mut net = Net::new(2);
    net.link(0, 1);
    net.settle();
    let holder = net.client(1, "q");
    let (conn, seq) = (holder.conn, net.seq());
    net.put(1, Input::Register { conn, seq, slots: Slots::Limited(1), name: "holder".into() });
    net.put(1, Input::Consume { conn, seq, handle: 0, exclusive: true });
    net.settle();
    let sender = net.client(0, "q");
    let first = send(&mut net, sender, "first", 1);
    let second = send(&mut net, sender, "second", 1);
    net.settle();
    assert!(matches!(why(&mut net, 0, first), Reason::AtLink { .. }));
    assert_eq!(why(&mut net, 0, second), Reason::FarBusy { brokers: 1, used: 1, ahead: 0 });
    let standby = net.client(0, "q");
    let (conn, seq) = (standby.conn, net.seq());
    net.put(0, Input::Register { conn, seq, slots: Slots::Limited(1), name: "standby".into() });
    net.put(0, Input::Consume { conn, seq, handle: 0, exclusive: true });
    net.settle();
    net.put(0, Input::QueueAvailableNotify { conn, seq, handle: 0 });
    net.settle();
    assert_eq!(why(&mut net, 0, second), Reason::FarBusy { brokers: 1, used: 1, ahead: 0 });
}

/// A message that is longer than the other broker takes waits for somebody here.
#[test]
fn what_is_too_long_for_the_other_end_says_so() {
    let mut net = Net::new(2);
    net.link(0, 1);
    net.worker(1, "q", 1);
    let sender = net.client(0, "q");
    net.settle();
    let id = send(&mut net, sender, &"x".repeat(1_001), 1);
    net.settle();
    assert_eq!(why(&mut net, 0, id), Reason::TooLong { bytes: 1_001, largest: 1_000 });
    let near = net.worker(0, "q", 1);
    assert_eq!(net.given.pop().expect("somebody has it").worker, near);
}
