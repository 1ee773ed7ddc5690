//! Not just anyone: what the ring's port says to strangers, liars and those who come too late. Seen on raw sockets.

use std::net::TcpListener;

use bytes::Bytes;
use turno_e2e::{Broker, Peer, Place, wait};
use turno_proto::model::ring::view::RingView;
use turno_proto::model::ring::{
    ConnectPurpose, Member, NewConn, Origin, Publication, RetConn, RingMessage, RingState, Sid,
};
use turno_proto::model::{Code, limits};
use turno_proto::native::{
    Connect, Dialler, Frame, GreetingCredentials, Proof, Raw, RawEvent, RingChallenge, RingHello, RingIdentity, Secret,
    VERSION, VerifiedDialler,
};

const SECRET: &[u8] = b"correct horse battery staple";
const OTHER: &[u8] = b"another secret, long enough";

/// Broker 1, alone in its ring.
fn broker() -> Broker {
    let place = Place::new();
    let file = place.path().join("secret");
    std::fs::write(&file, SECRET).expect("our own place");
    let file = file.to_str().expect("plain names").to_owned();
    Broker::start_in(place, &["--sid", "1", "--ring-port", "0", "--ring-secret-file", &file])
}

fn ring_port(broker: &Broker) -> Peer {
    let address = broker.ready()["ring"].as_str().and_then(|text| text.parse().ok()).expect("a ring's address");
    Peer::silent(address)
}

fn member(sid: u16, incarnation: u64) -> Member {
    let origin = Origin { sid: Sid::new(sid), incarnation };
    // Nobody listens there: a dial is refused.
    Member { origin, address: "127.0.0.1:9".to_owned(), native: String::new() }
}

fn dialler(member: Member, secret: &[u8], nonce: u8) -> Dialler<RingIdentity> {
    let identity = RingIdentity { member: Some(member), program: "e2e".to_owned() };
    Dialler::new(GreetingCredentials { identity, secret: Secret::new(secret) }, [nonce; 32], true)
}

fn say_hello(peer: &mut Peer, hello: &RingHello) {
    peer.say(&Frame::RingHello { hello: Box::new(hello.clone()) });
}

#[track_caller]
fn hear_challenge(peer: &mut Peer) -> RingChallenge {
    peer.hear(|frame| match frame {
        Frame::RingChallenge { challenge } => *challenge,
        other => panic!("expected RING_CHALLENGE: {other:?}"),
    })
}

/// Somebody who knows the secret, and says to be that one.
fn greeted(broker: &Broker, who: Member) -> Peer {
    let mut peer = ring_port(broker);
    let dialler = dialler(who, SECRET, 3);
    say_hello(&mut peer, &dialler.hello());
    let VerifiedDialler { proof, .. } =
        dialler.challenged(hear_challenge(&mut peer)).expect("the broker knows the secret");
    peer.say(&Frame::RingProof { proof });
    peer
}

/// A client, or a broker that wants a link, has no business at the ring's port, and a member of the ring none at
/// the others.
#[test]
fn strangers_are_refused() {
    let broker = broker();
    let mut client = ring_port(&broker);
    let connect = Connect { version: VERSION, name: "c".into(), program: String::new(), heartbeat_ms: 0 };
    client.say(&Frame::Connect { seq: 1, connect });
    assert_eq!(client.closed_with(), Code::ExpectedConnect);
    let mut noise = ring_port(&broker);
    noise.say_bytes(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(noise.closed_with(), Code::BadMagic);
    let mut unknown = ring_port(&broker);
    unknown.say_bytes(&[0x47, 0xC0, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(unknown.closed_with(), Code::UnknownType);
    let mut elsewhere = Peer::silent(broker.address());
    say_hello(&mut elsewhere, &dialler(member(2, 5), SECRET, 1).hello());
    assert_eq!(elsewhere.closed_with(), Code::ExpectedConnect);
    assert_eq!(broker.ring().state, RingState::Alone);
}

/// Proves S3.51: a peer that does not know the secret, replays what another said, or proves another number than it says, is
/// refused.
#[test]
fn a_proof_is_worth_nothing_elsewhere() {
    let broker = broker();
    // Another secret: the challenge is no proof to it, and its own is none to the broker.
    let mut other = ring_port(&broker);
    let stranger = dialler(member(2, 5), OTHER, 1);
    say_hello(&mut other, &stranger.hello());
    let challenge = hear_challenge(&mut other);
    assert_eq!(stranger.challenged(challenge).map(|_| ()), Err(Code::RingRefused));
    other.say(&Frame::RingProof { proof: Proof { proof: Bytes::from_static(&[7; 32]) } });
    assert_eq!(other.closed_with(), Code::RingRefused);
    // What was said once is said again, word by word.
    let mut first = ring_port(&broker);
    let honest = dialler(member(2, 5), SECRET, 2);
    let hello = honest.hello();
    say_hello(&mut first, &hello);
    let VerifiedDialler { proof, .. } =
        honest.challenged(hear_challenge(&mut first)).expect("the broker knows the secret");
    first.say(&Frame::RingProof { proof: proof.clone() });
    let mut again = ring_port(&broker);
    say_hello(&mut again, &hello);
    hear_challenge(&mut again);
    again.say(&Frame::RingProof { proof });
    assert_eq!(again.closed_with(), Code::RingRefused);
    // Proven for one number, said of another.
    let mut forged = ring_port(&broker);
    say_hello(&mut forged, &dialler(member(3, 5), SECRET, 4).hello());
    let challenge = hear_challenge(&mut forged);
    // The challenge was made for 3: to 2 it proves nothing, and a proof by 2 would be none for 3.
    assert_eq!(dialler(member(2, 5), SECRET, 4).challenged(challenge).map(|_| ()), Err(Code::RingRefused));
    let mut second = ring_port(&broker);
    let two = dialler(member(2, 5), SECRET, 4);
    say_hello(&mut second, &two.hello());
    let VerifiedDialler { proof, .. } =
        two.challenged(hear_challenge(&mut second)).expect("the broker knows the secret");
    forged.say(&Frame::RingProof { proof });
    assert_eq!(forged.closed_with(), Code::RingRefused);
    wait::until("nobody has joined", || broker.ring().state == RingState::Alone);
}

/// Proves S3.7: somebody with the broker's own number is refused, whatever it knows.
#[test]
fn one_number_for_one_broker() {
    let broker = broker();
    let mut second = greeted(&broker, member(1, u64::MAX));
    let code = second.next(|frame| match frame {
        Frame::Ring(message) => match *message {
            RingMessage::Refused { code, .. } => code,
            other => panic!("expected RING_REFUSED: {other:?}"),
        },
        other => panic!("expected RING_REFUSED: {other:?}"),
    });
    assert_eq!(code, Code::DuplicateSid);
    assert_eq!(broker.ring().counters.refused, 1);
}

/// Words of one who is not in the ring count for nothing: not a publication, not an end of all.
#[test]
fn who_has_no_place_has_no_voice() {
    let broker = broker();
    let origin = Origin { sid: Sid::new(2), incarnation: 5 };
    let event = RawEvent { topic: b"news", payload: Raw { headers: false, bytes: b"forged" } };
    let messages = [
        RingMessage::Shutdown { origin, hops: 0 }.into(),
        Frame::RingPublish(Publication { origin, seq: 1, after: 0, round: 0, hops: 0, event }),
    ];
    for message in messages {
        let mut peer = greeted(&broker, member(2, 5));
        peer.say(&message);
        assert!(peer.next(|frame| matches!(frame, Frame::Error { code: Code::ExpectedConnect, .. })));
    }
    // A predecessor's word: broker 1 has not asked for one.
    let mut peer = greeted(&broker, member(2, 5));
    peer.say(&RingMessage::RetConn(RetConn::Open { purpose: ConnectPurpose::Return }).into());
    let code = peer.next(|frame| match frame {
        Frame::Ring(message) => match *message {
            RingMessage::Refused { code, .. } => code,
            other => panic!("expected RING_REFUSED: {other:?}"),
        },
        other => panic!("expected RING_REFUSED: {other:?}"),
    });
    assert_eq!(code, Code::NotInRing);
    let RingView { state, counters, .. } = broker.ring();
    assert_eq!((state, counters.received), (RingState::Alone, 0));
}

/// A joiner is dialled at the address it says. If no member answers there, it is let go, however lively its own
/// connection is, and the broker is alone again.
#[test]
fn a_joiner_must_be_where_it_says() {
    let broker = broker();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let joiner = Member { address, ..member(2, 5) };
    let mut peer = greeted(&broker, joiner.clone());
    let newconn = NewConn { joiner, content: None, gap: false, verdict: None, hops: 0 };
    peer.say(&RingMessage::NewConn(newconn).into());
    let heard = peer.next(|frame| frame.kind().name());
    assert_eq!(heard, "RING_HAVE");
    let mut dialled = Peer::dialled(&listener);
    assert_eq!(dialled.hear(|frame| frame.kind().name()), "RING_HELLO");
    drop((dialled, listener));
    wait::until("it is alone again", || {
        peer.say(&Frame::Ping { seq: 1 });
        let RingView { state, previous, .. } = broker.ring();
        state == RingState::Alone && previous.is_none()
    });
    while peer.try_hear(|_| ()).is_some() {}
}

/// A list that is too long, or an address that is, ends the connection before anything is built from it.
#[test]
fn oversized_words_end_the_connection() {
    let broker = broker();
    let mut peer = ring_port(&broker);
    let long = Member { address: "h".repeat(limits::RING_ADDRESS_BYTES_MAX + 1), ..member(2, 5) };
    say_hello(&mut peer, &dialler(long, SECRET, 1).hello());
    assert_eq!(peer.closed_with(), Code::BadBody);
}
