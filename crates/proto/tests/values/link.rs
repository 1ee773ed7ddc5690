//! Frames between brokers, calls about links and their answers.

use std::sync::Arc;

use bytes::Bytes;
use turno_proto::model::link::view::{BrokerNode, LinkState, LinkView};
use turno_proto::model::link::{
    BrokerId, Claim, Forward, ForwardBroadcast, ForwardEvent, ForwardWants, LinkMessage, Offer, Path, Presence, Relay,
    Room,
};
use turno_proto::model::topic::Event;
use turno_proto::model::{MessageId, Moment, Payload, Seconds};
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::native::{Frame, LinkChallenge, LinkHello, Proof};

use crate::golden::hex;

const A: BrokerId = BrokerId::new(0x0a0b_0c0d_0e0f);
const B: BrokerId = BrokerId::new(0x1122_3344_5566);
const C: BrokerId = BrokerId::new(7);

const ONE: &[BrokerId] = &[A];
const TWO: &[BrokerId] = &[A, B];
const TARGETS: &[BrokerId] = &[B, C];

fn path(brokers: &[BrokerId]) -> Path {
    Path::new(brokers.to_vec()).expect("few, and none twice")
}

pub(super) fn frames() -> Vec<(&'static str, Frame<'static>)> {
    let mut table = greeting();
    table.extend(told());
    table.extend(crossings());
    table
}

/// A dials, B is dialled; both know the secret that the page names.
fn greeting() -> Vec<(&'static str, Frame<'static>)> {
    let hello = LinkHello {
        version: 1,
        broker: A,
        name: "a".to_owned(),
        program: "turno 0.1.0".to_owned(),
        frame_bytes_max: 16_777_216,
        nonce: Bytes::from_static(&[0x41; 32]),
    };
    let challenge = LinkChallenge {
        version: 1,
        broker: B,
        name: "b".to_owned(),
        program: "turno 0.1.0".to_owned(),
        frame_bytes_max: 16_777_216,
        nonce: Bytes::from_static(&[0x42; 32]),
        proof: Bytes::copy_from_slice(&hex(PROOF_OF_B)),
    };
    let proof = Proof { proof: Bytes::copy_from_slice(&hex(PROOF_OF_A)) };
    let open = LinkChallenge { proof: Bytes::new(), ..challenge.clone() };
    vec![
        ("link_hello", Frame::LinkHello { hello: Box::new(hello) }),
        ("link_challenge", Frame::LinkChallenge { challenge: Box::new(challenge) }),
        ("link_proof", Frame::LinkProof { proof }),
        ("link_challenge_without_secret", Frame::LinkChallenge { challenge: Box::new(open) }),
        ("link_proof_without_secret", Frame::LinkProof { proof: Proof { proof: Bytes::new() } }),
    ]
}

const PROOF_OF_B: &str = "ffa90641705269b6f07cc54b55d063e34f6c38b9365d098e1975c82b2d3681bc";
const PROOF_OF_A: &str = "8b1d43ae580ce0b0501fb17bed81cf4b806e8a746a153d5adbd611965a168c81";

fn told() -> Vec<(&'static str, Frame<'static>)> {
    let offers = vec![
        Offer {
            queue: "echo".to_owned(),
            held: 2,
            rooms: vec![
                Room { path: path(ONE), free: 10, token: None },
                Room { path: path(TWO), free: 0, token: None },
            ],
        },
        Offer { queue: "q".to_owned(), held: 0, rooms: Vec::new() },
    ];
    let brokers = vec![
        Presence { path: path(ONE), name: "a".to_owned(), neighbours: vec![B, C], listens: true, ring: None },
        Presence { path: path(TWO), name: "b".to_owned(), neighbours: vec![A], listens: false, ring: None },
    ];
    let alone = Offer {
        queue: "q".to_owned(),
        held: 0,
        rooms: vec![Room { path: path(ONE), free: 1, token: Some(0x0123_4567_89ab_cd00) }],
    };
    let relay = |claim| Frame::from(LinkMessage::Relay(Relay { to: C, path: path(TWO), claim }));
    vec![
        ("offer", Frame::from(LinkMessage::Offers(offers))),
        ("offer_exclusive", Frame::from(LinkMessage::Offers(vec![alone]))),
        ("relay_ask", relay(Claim::Ask { queue: "q".to_owned(), number: 7 })),
        ("relay_granted", relay(Claim::Granted { number: 7, token: 0x0123_4567_89ab_cd00 })),
        ("relay_refused", relay(Claim::Refused { number: 7 })),
        ("presence", Frame::from(LinkMessage::Presence(brokers))),
        ("presence_of_nobody", Frame::from(LinkMessage::Presence(Vec::new()))),
    ]
}

fn crossings() -> Vec<(&'static str, Frame<'static>)> {
    let forward = Forward {
        seq: 9,
        handle: 3,
        id: MessageId::new(A.get(), 1, 0),
        wants: ForwardWants::Reply,
        attempt: 1,
        cost: 1,
        priority: 4,
        deadline_ms: Some(1_500),
        alone: false,
        path: path(ONE),
        payload: Payload::body("hello"),
    };
    let headed = Payload { headers: true, bytes: Bytes::from_static(b"\x05\x00\x81\xa1a\xa1bhi") };
    let event = |topic: &str, payload| Arc::new(Event { topic: topic.parse().expect("it is one"), payload });
    let broadcast = ForwardBroadcast {
        seq: 10,
        handle: 3,
        deadline_ms: 30_000,
        no_reply: false,
        targets: TARGETS.to_vec(),
        path: path(ONE),
        payload: Payload::body("hello"),
    };
    let crossing = ForwardEvent {
        number: 5_000_000_000,
        targets: TARGETS.to_vec(),
        path: path(ONE),
        event: event("news.art", Payload::body("hi")),
    };
    let no_reply = Forward { wants: ForwardWants::Nothing, payload: headed.clone(), ..forward.clone() };
    let send = Forward {
        wants: ForwardWants::Settling,
        attempt: 300,
        cost: 500,
        priority: 9,
        deadline_ms: None,
        alone: true,
        path: path(TWO),
        ..forward.clone()
    };
    let to_all = ForwardBroadcast { no_reply: true, payload: headed.clone(), ..broadcast.clone() };
    let with_headers = ForwardEvent { event: event("t", headed), ..crossing.clone() };
    vec![
        ("forward", Frame::Forward(Box::new(forward))),
        ("forward_no_reply", Frame::Forward(Box::new(no_reply))),
        ("forward_send", Frame::Forward(Box::new(send))),
        ("forward_broadcast", Frame::from(LinkMessage::Broadcast(broadcast))),
        ("forward_broadcast_no_reply", Frame::from(LinkMessage::Broadcast(to_all))),
        ("forward_event", Frame::from(LinkMessage::Event(crossing))),
        ("forward_event_headers", Frame::from(LinkMessage::Event(with_headers))),
    ]
}

pub(super) fn calls() -> Vec<(&'static str, Frame<'static>)> {
    let calls = vec![
        ("call_link_ls", AdminCall::LinkLs {}),
        ("call_link_add", AdminCall::LinkAdd { address: "10.0.0.7:7460".to_owned() }),
        ("call_link_rm", AdminCall::LinkRm { link: "b".to_owned() }),
        ("call_link_graph", AdminCall::LinkGraph {}),
    ];
    calls.into_iter().map(|(name, call)| (name, Frame::AdminCall { seq: 11, call })).collect()
}

pub(super) fn answers() -> Vec<(&'static str, Frame<'static>)> {
    let up = LinkView {
        name: Some("b".to_owned()),
        state: LinkState::Up,
        round_trip_seconds: Some(Seconds::from_micros(180)),
        offered: 10,
        backlog: 2,
        forwarded: 70_000,
        received: 5,
        returned: 1,
        target: Some("10.0.0.7:7460".to_owned()),
        since_at: Moment::from_unix_ms(1_794_744_000_000),
        code: None,
        broker: Some(B.to_string()),
        address: Some("10.0.0.7:7460".to_owned()),
    };
    let states = [LinkState::Closing, LinkState::Dialling, LinkState::Down, LinkState::Itself, LinkState::Doubled].map(
        |state| LinkView { state, name: None, broker: None, address: None, round_trip_seconds: None, ..up.clone() },
    );
    let accepted = LinkView { target: None, code: Some("link_down".to_owned()), ..up.clone() };
    let links = [up, accepted].into_iter().chain(states).collect();
    let first = BrokerNode {
        name: "a".to_owned(),
        neighbours: vec!["b".to_owned()],
        broker: A.to_string(),
        neighbour_ids: vec![B.to_string()],
        ..BrokerNode::default()
    };
    let second = BrokerNode {
        name: "b".to_owned(),
        hops: 1,
        way: vec!["b".to_owned()],
        neighbours: vec!["a".to_owned()],
        broker: B.to_string(),
        way_ids: vec![B.to_string()],
        neighbour_ids: vec![A.to_string()],
    };
    let answers = vec![
        ("answer_links", AdminAnswer::Links { links }),
        ("answer_link_graph", AdminAnswer::LinkGraph { brokers: vec![first, second] }),
    ];
    answers.into_iter().map(|(name, answer)| (name, Frame::AdminAnswer { seq: 11, answer })).collect()
}
