//! Room that comes to be here or there while something waits: it is used, and neighbours hear of it.

use turno_engine::{CallerMessage, Engine, Input, LinkMessage, Neighbour, RemoteMessage, Settings};
use turno_proto::model::link::{Offer, Path, Room};
use turno_proto::model::{Code, Payload, Slots, limits};

use super::net::{Net, Place};

/// The neighbour, whose messages the test makes up.
const OTHER: usize = 7;

/// I11: a costly head that crosses while one worker is fed lets go of what waited behind it, also at other workers.
#[test]
fn what_waits_behind_a_costly_head_goes_to_everyone_who_has_room() {
    let mut net = Net::new(1);
    let (one, other) = (net.worker(0, "q", 1), net.worker(0, "q", 1));
    let caller = net.client(0, "q");
    let link = net.place(0);
    let (conn, broker) = (link.conn, Net::id(OTHER));
    let (name, address) = ("b7".to_owned(), "127.0.0.1:1".to_owned());
    net.put(
        0,
        Input::Linked { conn, target: None, neighbour: Neighbour { broker, name, address, payload_max: 1_000 } },
    );
    let path = Path::default().then(broker).expect("one broker is no long way");
    let offer = Offer { queue: "q".to_owned(), held: 0, rooms: vec![Room { path, free: 4, token: None }] };
    net.put(0, Input::Link { conn, message: Box::new(LinkMessage::Offers(vec![offer])) });
    // It comes back until the link is left alone for a while, and so it waits before the others.
    net.ask(caller, "costly", |message| message.cost = Some(3));
    for seq in 1..=limits::RETURNS_MAX {
        let message =
            RemoteMessage::Caller(CallerMessage::Undelivered { code: Code::NoRoom, payload: Payload::default() });
        net.put(0, Input::Far { conn, seq, message });
    }
    net.request(caller, "a");
    net.request(caller, "b");
    assert!(net.given.is_empty(), "they wait behind the costly one: {:?}", net.given);
    net.now = net.now.plus_millis(limits::RETURN_PAUSE_MS);
    let (conn, seq) = (one.conn, net.seq());
    net.put(0, Input::Resize { conn, seq, slots: Slots::Limited(1) });
    let given: Vec<(Place, &str)> = net.given.iter().map(|given| (given.worker, given.text.as_str())).collect();
    assert_eq!(given, [(one, "a"), (other, "b")]);
}

/// S2.7, S2.32: a worker that was dropped from a queue and consumes it again is one that neighbours hear of, also if it
/// has so many queues that it stands in a shared rota.
#[test]
fn neighbours_hear_of_a_worker_on_probation() {
    for own_rotas_max in [0, 1, 8] {
        let mut net = Net::new(2);
        let settings =
            Settings { name: "b1".to_owned(), run: 101, drop_after: 1, own_rotas_max, ..Settings::default() };
        net.engines[1] = Engine::new(settings, net.now);
        net.link(0, 1);
        let worker = net.worker(1, "q", 2);
        let (conn, seq) = (worker.conn, net.seq());
        net.put(1, Input::Open { conn, seq, handle: 1, queue: "other".parse().expect("a name") });
        net.put(1, Input::Consume { conn, seq, handle: 1, exclusive: false });
        let caller = net.client(0, "q");
        net.settle();
        net.ask(caller, "late", |message| message.deadline_ms = Some(500));
        net.settle_for(1_000);
        let late = net.take("late");
        net.ack(&late);
        net.ask(caller, "waits", |message| message.deadline_ms = Some(60_000));
        net.settle_for(1_000);
        assert!(net.given.is_empty(), "the only worker was dropped: {:?}", net.given);
        let (conn, seq) = (worker.conn, net.seq());
        net.put(1, Input::Consume { conn, seq, handle: 0, exclusive: false });
        net.settle_for(1_000);
        assert_eq!(net.take("waits").worker, worker, "{own_rotas_max} rotas of its own");
    }
}
