//! A process on the same machine against a ring without a secret. It may disturb the ring while it is there; it ends no broker, and
//! nothing that it claims stays. Seen on raw sockets.

use std::net::TcpListener;
use std::time::{SystemTime, UNIX_EPOCH};

use turno_e2e::{Broker, Peer, wait};
use turno_proto::model::Code;
use turno_proto::model::ring::view::RingView;
use turno_proto::model::ring::{ConnectPurpose, Member, NewConn, Origin, RetConn, RingMessage, Sid};
use turno_proto::native::{Acceptor, Dialler, Frame, GreetingCredentials, RingIdentity, VerifiedDialler, encode};

/// Brokers 1 and 2, and nothing that proves who is who.
fn two() -> [Broker; 2] {
    let flags = |sid| ["--sid", sid, "--ring-port", "0", "--foreman-listen", "127.0.0.1:0"];
    let one = Broker::start_with(&flags("1"));
    let next = format!("1@{}", one.ring().address);
    let two = Broker::start_with(&[&flags("2")[..], &["--ring-next", &next]].concat());
    wait_whole(&one, &two);
    [one, two]
}

/// Both live, are one circle, and know each other in the lives that they have.
fn wait_whole(one: &Broker, two: &Broker) {
    wait::until("both are one circle again", || {
        let views = [one.ring(), two.ring()];
        let lives = [views[0].incarnation, views[1].incarnation];
        let known = views.iter().flat_map(|view| &view.members).all(|member| {
            let is = |at: usize| member.sid == views[at].sid && member.incarnation == lives[at];
            is(0) || is(1)
        });
        known && views.iter().all(|view| view.whole && view.members.len() == 2)
    });
}

fn identity(member: Member) -> GreetingCredentials<RingIdentity> {
    GreetingCredentials { identity: RingIdentity { member: Some(member), program: "e2e".to_owned() }, secret: None }
}

/// A member as it shows itself, in another life if one is named.
fn posing(broker: &Broker, incarnation: Option<u64>) -> Member {
    let RingView { sid, incarnation: own, address, .. } = broker.ring();
    Member { origin: Origin { sid, incarnation: incarnation.unwrap_or(own) }, address, native: String::new() }
}

/// Somebody without a secret who says to be that member.
fn greeted(broker: &Broker, who: Member) -> Peer {
    let mut peer = Peer::silent(broker.ring().address.parse().expect("an address"));
    let dialler = Dialler::new(identity(who), [7; 32], true);
    peer.say(&Frame::RingHello { hello: Box::new(dialler.hello()) });
    let challenge = peer.hear(|frame| match frame {
        Frame::RingChallenge { challenge } => *challenge,
        other => panic!("expected RING_CHALLENGE: {other:?}"),
    });
    let VerifiedDialler { proof, .. } = dialler.challenged(challenge).expect("neither has a secret");
    peer.say(&Frame::RingProof { proof });
    peer
}

/// Takes the place of the member that sends to `broker`; that member must connect anew.
fn take_place(broker: &Broker, who: Member) -> Peer {
    let mut peer = greeted(broker, who);
    peer.say(&RingMessage::RetConn(RetConn::Open { purpose: ConnectPurpose::Return }).into());
    assert_eq!(peer.next(|frame| frame.kind().name()), "RING_HAVE");
    peer
}

/// One greeting with a later incarnation ended the broker that has the number: it was refused as `fenced` when it came back.
#[test]
fn an_incarnation_in_a_greeting_ends_nobody() {
    let [one, two] = two();
    let mut absurd = greeted(&one, posing(&two, Some(u64::MAX)));
    let code = absurd.next(|frame| match frame {
        Frame::Ring(message) => match *message {
            RingMessage::Refused { code, .. } => code,
            other => panic!("expected RING_REFUSED: {other:?}"),
        },
        other => panic!("expected RING_REFUSED: {other:?}"),
    });
    assert_eq!(code, Code::BadBody);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis();
    let later = u64::try_from(now).expect("milliseconds fit") + 3_600_000;
    let life = two.ring().incarnation;
    drop(take_place(&one, posing(&two, Some(later))));
    wait_whole(&one, &two);
    assert_eq!(two.ring().incarnation, life, "it never ended");
}

/// SHUTDWN from one who poses as the predecessor ended the broker, and the next one.
#[test]
fn a_posed_shutdown_ends_nobody() {
    let [one, two] = two();
    for (victim, other) in [(&one, &two), (&two, &one)] {
        let who = posing(other, None);
        let origin = who.origin;
        let mut peer = greeted(victim, who);
        // In one write: the member whose place this takes has it back as soon as it has dialled, and nobody listens then.
        let mut bytes = Vec::new();
        encode(&RingMessage::RetConn(RetConn::Open { purpose: ConnectPurpose::Return }).into(), &mut bytes);
        encode(&RingMessage::Shutdown { origin, hops: 0 }.into(), &mut bytes);
        peer.say_bytes(&bytes);
        wait::until("it has heard of it", || victim.ring().counters.forged == 1);
        drop(peer);
        wait_whole(&one, &two);
    }
}

/// A stranger joins, so that a member sends to it, and says `fenced` to that member.
#[test]
fn fenced_from_a_stranger_ends_nobody() {
    let [one, two] = two();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let joiner = Member { origin: Origin { sid: Sid::new(9), incarnation: 5 }, address, native: String::new() };
    let mut asking = greeted(&one, joiner.clone());
    let newconn = NewConn { joiner: joiner.clone(), content: None, gap: false, verdict: None, hops: 0 };
    asking.say(&RingMessage::NewConn(newconn).into());
    // Broker 2 sends to broker 1: it is told to send to the joiner instead, and dials it.
    let mut victim = Peer::dialled(&listener);
    let hello = victim.hear(|frame| match frame {
        Frame::RingHello { hello } => *hello,
        other => panic!("expected RING_HELLO: {other:?}"),
    });
    let (challenge, _) = Acceptor::new(identity(joiner), [8; 32], true).greeted(hello).expect("neither has a secret");
    victim.say(&Frame::RingChallenge { challenge: Box::new(challenge) });
    assert_eq!(victim.next(|frame| frame.kind().name()), "RING_PROOF");
    assert_eq!(victim.next(|frame| frame.kind().name()), "RETCONN");
    victim.say(&RingMessage::Have { had: Vec::new() }.into());
    victim.say(&RingMessage::Refused { code: Code::Fenced, instead: None }.into());
    wait::until("it has heard of it", || two.ring().counters.forged == 1);
    drop((asking, victim, listener));
    wait_whole(&one, &two);
}
