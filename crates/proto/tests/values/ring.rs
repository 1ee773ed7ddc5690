//! Frames between members of a ring.

use bytes::Bytes;
use turno_proto::model::Code;
use turno_proto::model::ring::{
    Circle, ConnectPurpose, JoinVerdict, LastReceived, LostMember, Member, NewConn, Origin, Publication, RetConn,
    RingMessage, Sid,
};
use turno_proto::native::{Frame, Proof, Raw, RawEvent, RingChallenge, RingHello};

use crate::golden::hex;

const fn origin(sid: u16, incarnation: u64) -> Origin {
    Origin { sid: Sid::new(sid), incarnation }
}

fn member(sid: u16, incarnation: u64) -> Member {
    let address = |base| format!("10.0.0.{sid}:{}", base + sid);
    Member { origin: origin(sid, incarnation), address: address(8_000), native: address(8_100) }
}

pub(super) fn frames() -> Vec<(&'static str, Frame<'static>)> {
    let mut table = greeting();
    table.extend(places());
    table.extend(publications());
    table.extend(told());
    table
}

/// 1 dials, 2 is dialled; both know the secret that the page names.
fn greeting() -> Vec<(&'static str, Frame<'static>)> {
    let hello = RingHello {
        version: 1,
        member: Some(member(1, 1_700_000_000_000)),
        program: "turno 0.1.0".to_owned(),
        nonce: Bytes::from_static(&[0x41; 32]),
    };
    let challenge = RingChallenge {
        version: 1,
        member: member(2, 1_700_000_000_500),
        program: "turno 0.1.0".to_owned(),
        nonce: Bytes::from_static(&[0x42; 32]),
        proof: Bytes::copy_from_slice(&hex(PROOF_OF_2)),
    };
    let unnumbered = RingHello { member: None, ..hello.clone() };
    let open = RingChallenge { proof: Bytes::new(), ..challenge.clone() };
    vec![
        ("ring_hello", Frame::RingHello { hello: Box::new(hello) }),
        ("ring_challenge", Frame::RingChallenge { challenge: Box::new(challenge) }),
        ("ring_proof", Frame::RingProof { proof: Proof { proof: Bytes::copy_from_slice(&hex(PROOF_OF_1)) } }),
        ("ring_hello_without_sid", Frame::RingHello { hello: Box::new(unnumbered) }),
        ("ring_challenge_without_secret", Frame::RingChallenge { challenge: Box::new(open) }),
        ("ring_proof_without_secret", Frame::RingProof { proof: Proof { proof: Bytes::new() } }),
    ]
}

const PROOF_OF_2: &str = "d5c07d9844c3a721f14d5138fafa82736e97cd836ec85100573389ef1b9b5320";
const PROOF_OF_1: &str = "b5e62f75570c89ecb35b554eb8ea567de9204dbf88fbc136003061a9f977574e";

fn places() -> Vec<(&'static str, Frame<'static>)> {
    let joins = NewConn { joiner: member(3, 9), content: None, gap: false, verdict: None, hops: 0 };
    let round = NewConn { content: Some(Sid::new(1)), hops: 2, ..joins.clone() };
    let newconn = |newconn| Frame::from(RingMessage::NewConn(newconn));
    let retconn = |retconn| Frame::from(RingMessage::RetConn(retconn));
    let open = |purpose| retconn(RetConn::Open { purpose });
    let call = |content| retconn(RetConn::Call { caller: member(1, 7), content, hops: 3 });
    let servoff = |content, hops| Frame::from(RingMessage::ServOff { leaver: member(2, 5), content, hops });
    vec![
        ("newconn", newconn(joins)),
        ("newconn_round", newconn(round.clone())),
        ("newconn_gap", newconn(NewConn { gap: true, ..round.clone() })),
        ("newconn_claimed", newconn(NewConn { verdict: Some(JoinVerdict::Claimed), ..round.clone() })),
        ("newconn_refused", newconn(NewConn { verdict: Some(JoinVerdict::Refused(Code::DuplicateSid)), ..round })),
        ("retconn_return", open(ConnectPurpose::Return)),
        ("retconn_join", open(ConnectPurpose::Join)),
        ("retconn_heal", open(ConnectPurpose::Heal)),
        ("retconn_left", open(ConnectPurpose::Left)),
        ("retconn_call", call(LostMember::Sid(Sid::new(4)))),
        ("retconn_call_gap", call(LostMember::Gap)),
        ("servoff", servoff(None, 0)),
        ("servoff_content", servoff(Some(Box::new(member(3, 9))), 1)),
        ("shutdwn", Frame::from(RingMessage::Shutdown { origin: origin(1, 7), hops: 1 })),
    ]
}

fn publications() -> Vec<(&'static str, Frame<'static>)> {
    let publish = Publication {
        origin: origin(7, 1_700_000_000_000),
        seq: 42,
        after: 41,
        round: 30,
        hops: 2,
        event: RawEvent { topic: b"news.art", payload: Raw { headers: false, bytes: b"hi" } },
    };
    let headed = Raw { headers: true, bytes: b"\x05\x00\x81\xa1a\xa1bhi" };
    vec![
        ("ring_publish", Frame::RingPublish(publish)),
        (
            "ring_publish_headers",
            Frame::RingPublish(Publication {
                seq: u64::MAX,
                after: 0,
                event: RawEvent { topic: b"t", payload: headed },
                ..publish
            }),
        ),
    ]
}

fn told() -> Vec<(&'static str, Frame<'static>)> {
    let members = vec![member(1, 7), member(2, 5)];
    let circle = Circle { whole: true, members: members.clone() };
    let roll_call = RingMessage::RollCall { origin: origin(1, 7), number: 12, round: 30, members: members.clone() };
    let had = vec![
        LastReceived { origin: origin(1, 7), seq: 30 },
        LastReceived { origin: origin(500, 1_700_000_000_000), seq: 70_000 },
    ];
    let refused = RingMessage::Refused { code: Code::Elsewhere, instead: Some(member(2, 5)) };
    vec![
        ("roll_call", Frame::from(roll_call)),
        ("ring_have", Frame::from(RingMessage::Have { had })),
        ("ring_have_nothing", Frame::from(RingMessage::Have { had: Vec::new() })),
        ("caught_up", Frame::from(RingMessage::CaughtUp { members })),
        ("ring_refused", Frame::from(RingMessage::Refused { code: Code::RingWhole, instead: None })),
        ("ring_refused_elsewhere", Frame::from(refused)),
        ("ring_probe", Frame::from(RingMessage::Probe(Circle { whole: false, ..circle.clone() }))),
        ("ring_circle", Frame::from(RingMessage::Circle(circle))),
        ("ring_merge", Frame::from(RingMessage::Merge { origin: origin(3, 9), contact: member(1, 7), hops: 1 })),
        ("ring_sid", Frame::from(RingMessage::AskSid)),
        ("ring_sid_free", Frame::from(RingMessage::FreeSid { sid: Sid::new(4) })),
    ]
}
