//! Messages that cross a link, and messages that do not.

use turno_proto::model::Again;

use super::*;

/// Effects about a crossing, and the inputs that they become.
fn messages_about_a_crossing(conn: ConnId) -> Vec<(PeerEffect, RemoteMessage)> {
    let end = Box::new(BroadcastEnd { consumers: 1, answered: 1, ..BroadcastEnd::default() });
    let answer = BroadcastAnswer { worker: 8, name: "w".into(), more: false, failed: true, payload: payload(b"a") };
    let to_callers = [
        CallerMessage::Reply { more: true, payload: payload(b"r") },
        CallerMessage::Progress { payload: payload(b"p") },
        CallerMessage::Delivered,
        CallerMessage::Undelivered { code: Code::NoRoom, payload: Payload::default() },
        CallerMessage::BroadcastAnswer(answer),
        CallerMessage::BroadcastEnd(end),
    ];
    let caller = |message: CallerMessage| {
        (PeerEffect::Caller { conn, seq: 5, message: message.clone() }, RemoteMessage::Caller(message))
    };
    let mut messages = to_callers.map(caller).to_vec();
    let link = |effect| PeerEffect::Link { conn, effect };
    messages.push((link(LinkEffect::Ack { seq: 5 }), RemoteMessage::Ack));
    let fail = LinkEffect::Fail { seq: 5, again: Again::Never, payload: payload(b"f") };
    messages.push((link(fail), RemoteMessage::Fail { again: Again::Never, payload: payload(b"f") }));
    messages
}

/// Every message that may cross, from the one engine to the other.
#[test]
fn what_one_engine_says_the_other_hears() {
    let (mut a, mut b) = linked();
    let (conn, to) = (a.conn, b.conn);
    let offers =
        vec![Offer { queue: "q".into(), held: 1, rooms: vec![Room { path: path(&[1]), free: 3, token: Some(9) }] }];
    let brokers = vec![Presence {
        path: path(&[1]),
        name: "a".into(),
        neighbours: vec![BrokerId::new(2)],
        listens: true,
        ring: None,
    }];
    let broadcast = ForwardBroadcast {
        seq: 6,
        handle: 3,
        deadline_ms: 1_000,
        no_reply: false,
        targets: vec![BrokerId::new(2)],
        path: path(&[1]),
        payload: payload(b"all"),
    };
    let event = Arc::new(Event { topic: "a.b".parse().unwrap(), payload: payload(b"event") });
    let event = ForwardEvent { number: 9, targets: vec![BrokerId::new(2)], path: path(&[1]), event };
    let claim = Claim::Ask { queue: "q".into(), number: 1 };
    let relay = Relay { to: BrokerId::new(2), path: path(&[1]), claim };
    let message = |message: &LinkMessage| Box::new(message.clone());
    let messages = [
        LinkMessage::Offers(offers),
        LinkMessage::Presence(brokers),
        LinkMessage::Broadcast(broadcast),
        LinkMessage::Event(event),
        LinkMessage::Relay(relay),
    ];
    let mut said: Vec<PeerEffect> =
        messages.iter().map(|w| PeerEffect::Link { conn, effect: LinkEffect::Message(message(w)) }).collect();
    let mut heard: Vec<Input> = messages.iter().map(|w| Input::Link { conn: to, message: message(w) }).collect();
    let queue = || "q".parse().unwrap();
    said.push(PeerEffect::Link { conn, effect: LinkEffect::Open { handle: 3, queue: queue() } });
    heard.push(Input::Open { conn: to, seq: 3, handle: 3, queue: queue() });
    said.push(PeerEffect::Link { conn, effect: LinkEffect::Forward(Box::new(forward(5))) });
    heard.push(Input::Forwarded { conn: to, forward: Box::new(forward(5)) });
    said.push(PeerEffect::Stop { conn, delivery: Delivery { index: 77, stamp: 5 }, reason: Code::TimedOut });
    heard.push(Input::FarCancel { conn: to, seq: 5, reason: Code::TimedOut });
    said.push(PeerEffect::Closing { conn, closing: Closing { reason: ClosingReason::Shutdown, within_ms: 0 } });
    heard.push(Input::PeerClosing { conn: to });
    for (effect, message) in messages_about_a_crossing(conn) {
        said.push(effect);
        heard.push(Input::Far { conn: to, seq: 5, message });
    }
    for effect in said {
        a.effect(effect);
    }
    protocol(&mut a, &mut b);
    assert_eq!(b.heard(), heard);

    // OPEN is answered, and the answer is nothing to the engine that asked.
    b.effect(PeerEffect::Answer { conn: to, seq: 3, result: Ok(()) });
    b.effect(PeerEffect::Answer { conn: to, seq: 4, result: Err(Code::TooManyQueues) });
    protocol(&mut a, &mut b);
    assert_eq!(a.heard(), []);
}

/// However much waits for it, a link is read from: the other end may wait for the same.
#[test]
fn a_link_is_always_read_from() {
    let (mut a, mut b) = linked();
    for broker in [&mut a, &mut b] {
        let conn = broker.conn;
        for _ in 0..20 {
            broker.effect(PeerEffect::Link { conn, effect: LinkEffect::Forward(Box::new(forward(1_000_000))) });
        }
        assert!(broker.connections.wants_reading(conn));
        assert_eq!(broker.heard(), [], "deliveries do not count against it");
    }
}

/// Frames longer than the other end's clients could send do not cross, either way, and their callers are told.
#[test]
fn what_is_too_long_for_the_other_end_does_not_cross() {
    let (mut a, mut b) = linked();
    let (conn, to) = (a.conn, b.conn);
    let most = (1 << 20) - 16;
    a.effect(PeerEffect::Link { conn, effect: LinkEffect::Forward(Box::new(forward(most))) });
    protocol(&mut a, &mut b);
    assert_eq!(b.heard(), [Input::Forwarded { conn: to, forward: Box::new(forward(most)) }]);
    a.effect(PeerEffect::Link { conn, effect: LinkEffect::Forward(Box::new(forward(most + 1))) });
    let undelivered =
        RemoteMessage::Caller(CallerMessage::Undelivered { code: Code::FrameTooLarge, payload: Payload::default() });
    assert_eq!(a.heard(), [Input::Far { conn, seq: 5, message: undelivered.clone() }]);
    assert!(a.said().is_empty());

    let long = payload(&vec![b'x'; most + 1]);
    for effect in [
        PeerEffect::Caller { conn: to, seq: 4, message: CallerMessage::Progress { payload: long.clone() } },
        PeerEffect::Caller { conn: to, seq: 5, message: CallerMessage::Reply { more: false, payload: long.clone() } },
        PeerEffect::Link { conn: to, effect: LinkEffect::Fail { seq: 5, again: Again::AsSet, payload: long } },
    ] {
        b.effect(effect);
    }
    protocol(&mut a, &mut b);
    let far = || Input::Far { conn, seq: 5, message: undelivered.clone() };
    assert_eq!(a.heard(), [far(), far()]);
}

/// Many offers go in several frames, each of which the other end may read.
#[test]
fn many_offers_are_told_in_pieces() {
    let (mut a, mut b) = linked();
    let offers: Vec<Offer> =
        (0..150).map(|number| Offer { queue: format!("q{number}"), held: 0, rooms: Vec::new() }).collect();
    a.effect(PeerEffect::Link {
        conn: a.conn,
        effect: LinkEffect::Message(Box::new(LinkMessage::Offers(offers.clone()))),
    });
    protocol(&mut a, &mut b);
    let mut heard = Vec::new();
    for input in b.heard() {
        let Input::Link { message, .. } = input else { panic!("{input:?}") };
        let LinkMessage::Offers(some) = *message else { panic!("{message:?}") };
        assert!(some.len() <= limits::OFFERS_MAX);
        heard.extend(some);
    }
    assert_eq!(heard, offers);
}

/// A link that is not read from loses the oldest events, and nothing else; this end's engine hears how many.
#[test]
fn events_that_nobody_takes_go_and_all_else_stays() {
    let (mut a, mut b) = linked();
    let conn = a.conn;
    for number in 0..200 {
        let event = Arc::new(Event { topic: "a.b".parse().unwrap(), payload: payload(&[0; 100_000]) });
        let message =
            LinkMessage::Event(ForwardEvent { number, targets: vec![BrokerId::new(2)], path: path(&[1]), event });
        a.effect(PeerEffect::Link { conn, effect: LinkEffect::Message(Box::new(message)) });
    }
    a.effect(PeerEffect::Link { conn, effect: LinkEffect::Ack { seq: 5 } });
    a.connections.sweep(a.now);
    let told = a.heard();
    let [Input::EventsDropped { count, .. }] = told[..] else { panic!("{told:?}") };
    protocol(&mut a, &mut b);
    let mut numbers = Vec::new();
    let mut acks = 0;
    for input in b.heard() {
        match input {
            Input::Link { message, .. } => match *message {
                LinkMessage::Event(event) => numbers.push(event.number),
                other => panic!("{other:?}"),
            },
            Input::Far { message: RemoteMessage::Ack, .. } => acks += 1,
            Input::RoundTrip { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((numbers.len() as u64 + count, acks), (200, 1));
    assert!(numbers.is_sorted() && numbers.last() == Some(&199) && count > 0);
}
