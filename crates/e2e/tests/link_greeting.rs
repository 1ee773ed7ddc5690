//! Who may link with a broker: seen on raw sockets, from both ends.

use std::net::TcpListener;
use std::path::PathBuf;

use bytes::Bytes;
use turno_e2e::{Broker, Peer, Place};
use turno_proto::model::Code;
use turno_proto::model::link::BrokerId;
use turno_proto::native::{
    Acceptor, Connect, Dialler, Frame, GreetingCredentials, Identity, LinkChallenge, LinkHello, Proof, Secret, VERSION,
    VerifiedDialler,
};

const SECRET: &[u8] = b"correct horse battery staple";
const OTHER: &[u8] = b"another secret, long enough";

fn credentials(secret: Option<&[u8]>) -> GreetingCredentials {
    let (broker, name) = (BrokerId::new(0xbeef), "stranger".to_owned());
    let identity = Identity { broker, name, program: "e2e".to_owned(), frame_bytes_max: 1 << 24 };
    GreetingCredentials::new(identity, secret.map(|secret| Secret::new(secret).expect("as it should be")))
}

/// A broker with the secret, from a file.
fn broker_with(flags: &[&str]) -> Broker {
    let place = Place::new();
    let file: PathBuf = place.path().join("secret");
    std::fs::write(&file, [SECRET, b"\n"].concat()).expect("as it should be");
    let flags = [&["--link-secret-file", file.to_str().expect("as it should be")], flags].concat();
    Broker::start_in(place, &flags)
}

fn say_hello(peer: &mut Peer, hello: &LinkHello) {
    peer.say(&Frame::LinkHello { hello: Box::new(hello.clone()) });
}

#[track_caller]
fn hear_challenge(peer: &mut Peer) -> LinkChallenge {
    peer.hear(|frame| match frame {
        Frame::LinkChallenge { challenge } => *challenge,
        other => panic!("expected LINK_CHALLENGE: {other:?}"),
    })
}

fn say_proof(peer: &mut Peer, proof: &[u8]) {
    peer.say(&Frame::LinkProof { proof: Proof { proof: Bytes::copy_from_slice(proof) } });
}

/// A link that came up: what was said on the way.
fn link(broker: &Broker, secret: Option<&[u8]>, nonce: u8) -> (Peer, LinkHello, Proof) {
    let mut peer = Peer::silent(broker.address());
    let dialler = Dialler::new(credentials(secret), [nonce; 32], true);
    let hello = dialler.hello();
    say_hello(&mut peer, &hello);
    let VerifiedDialler { proof, .. } =
        dialler.challenged(hear_challenge(&mut peer)).expect("the broker knows the secret");
    say_proof(&mut peer, &proof.proof);
    // The broker has something to tell, and asks whether this end lives.
    let mut heard = Vec::new();
    while !heard.contains(&"PING") {
        heard.push(peer.hear(|frame| frame.kind().name()));
    }
    (peer, hello, proof)
}

/// A peer that knows the secret may link; the broker it links to goes on.
#[test]
fn who_knows_the_secret_may_link() {
    for routers in ["1", "2", "4"] {
        let broker = broker_with(&["--routers", routers]);
        let (mut peer, ..) = link(&broker, Some(SECRET), 1);
        peer.say(&Frame::Ping { seq: 77 });
        while !peer.hear(|frame| frame == Frame::Pong { seq: 77 }) {}
    }
}

#[test]
fn who_does_not_know_the_secret_is_refused() {
    let broker = broker_with(&[]);
    for secret in [Some(OTHER), None] {
        let mut peer = Peer::silent(broker.address());
        let dialler = Dialler::new(credentials(secret), [2; 32], true);
        say_hello(&mut peer, &dialler.hello());
        let challenge = hear_challenge(&mut peer);
        assert_eq!(dialler.challenged(challenge).map(|_| ()), Err(Code::LinkRefused), "the broker has another one");
        // It goes on all the same.
        say_proof(&mut peer, if secret.is_some() { &[7; 32] } else { &[] });
        assert_eq!(peer.closed_with(), Code::LinkRefused);
    }
    // The broker's own proof, sent back to it.
    let mut peer = Peer::silent(broker.address());
    say_hello(&mut peer, &Dialler::new(credentials(None), [3; 32], true).hello());
    let challenge = hear_challenge(&mut peer);
    say_proof(&mut peer, &challenge.proof);
    assert_eq!(peer.closed_with(), Code::LinkRefused);
    // Others are not bothered.
    let mut client = Peer::client(broker.address(), "q");
    assert_eq!(client.status().connections, 1);
}

/// What was overheard of a greeting opens nothing.
#[test]
fn a_greeting_that_was_overheard_is_refused() {
    let broker = broker_with(&[]);
    let (_link, hello, proof) = link(&broker, Some(SECRET), 4);
    let mut thief = Peer::silent(broker.address());
    say_hello(&mut thief, &hello);
    hear_challenge(&mut thief);
    say_proof(&mut thief, &proof.proof);
    assert_eq!(thief.closed_with(), Code::LinkRefused);
}

/// On one machine brokers may link without a secret, but not with one that the other does not have.
#[test]
fn without_a_secret_nothing_is_proven() {
    let broker = Broker::start();
    link(&broker, None, 5);
    let mut peer = Peer::silent(broker.address());
    say_hello(&mut peer, &Dialler::new(credentials(Some(SECRET)), [6; 32], true).hello());
    assert!(hear_challenge(&mut peer).proof.is_empty());
    say_proof(&mut peer, &[7; 32]);
    assert_eq!(peer.closed_with(), Code::LinkRefused);
}

/// A client is no broker, and a broker no client.
#[test]
fn a_connection_is_a_clients_or_a_link() {
    let broker = Broker::start();
    let hello = Dialler::new(credentials(None), [7; 32], true).hello();
    let mut client = Peer::greeted(broker.address(), 0);
    say_hello(&mut client, &hello);
    assert_eq!(client.closed_with(), Code::WrongDirection);

    let mut first = Peer::silent(broker.address());
    say_proof(&mut first, &[]);
    assert_eq!(first.closed_with(), Code::ExpectedConnect);

    let mut peer = Peer::silent(broker.address());
    say_hello(&mut peer, &hello);
    hear_challenge(&mut peer);
    let connect = Connect { version: VERSION, name: "c".into(), program: String::new(), heartbeat_ms: 0 };
    peer.say(&Frame::Connect { seq: 1, connect });
    assert_eq!(peer.closed_with(), Code::ExpectedConnect);
}

/// A broker that dials proves nothing to one that cannot prove itself, and comes again.
#[test]
fn a_broker_proves_itself_only_to_brokers() {
    for routers in ["1", "2"] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("as it should be");
        let address = listener.local_addr().expect("as it should be").to_string();
        let _broker = broker_with(&["--link", &address, "--routers", routers]);
        for secret in [Some(OTHER), None] {
            let mut peer = Peer::dialled(&listener);
            let (challenge, _) = Acceptor::new(credentials(secret), [8; 32], true)
                .greeted(hear_hello(&mut peer))
                .expect("as it should be");
            peer.say(&Frame::LinkChallenge { challenge: Box::new(challenge) });
            assert_eq!(peer.closed_with(), Code::LinkRefused, "and no proof before it");
        }
        let mut peer = Peer::dialled(&listener);
        let hello = hear_hello(&mut peer);
        let (challenge, expect) =
            Acceptor::new(credentials(Some(SECRET)), [9; 32], true).greeted(hello).expect("as it should be");
        peer.say(&Frame::LinkChallenge { challenge: Box::new(challenge) });
        let proof = peer.hear(|frame| match frame {
            Frame::LinkProof { proof } => proof,
            other => panic!("expected LINK_PROOF: {other:?}"),
        });
        expect.proven(&proof).expect("it knows the secret");
        while peer.hear(|frame| frame.kind().name() != "PING") {}
    }
}

#[track_caller]
fn hear_hello(peer: &mut Peer) -> LinkHello {
    peer.hear(|frame| match frame {
        Frame::LinkHello { hello } => *hello,
        other => panic!("expected LINK_HELLO: {other:?}"),
    })
}
