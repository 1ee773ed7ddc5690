//! Two members greet, and somebody else tries to. (What is the same for links is in `tests/link/greeting.rs`.)

use bytes::Bytes;
use turno_proto::model::ring::Sid;
use turno_proto::model::{Code, limits};
use turno_proto::native::{
    Acceptor, Dialler, ExpectProof, Frame, GreetingCredentials, Identity, LinkChallenge, Nonce, Proof, RingChallenge,
    RingHello, RingIdentity, Secret, VerifiedDialler,
};

use crate::{SECRET, acceptor, dialler, member, unnumbered, values};

const NONCE_A: Nonce = [0x41; 32];
const NONCE_B: Nonce = [0x42; 32];
const OTHER: &[u8] = b"correct horse battery stable";

type Ring = GreetingCredentials<RingIdentity>;

/// A greeting up to where each end has said one thing.
fn begin(a: &Ring, b: &Ring) -> (Dialler<RingIdentity>, RingHello, RingChallenge, ExpectProof<RingIdentity>) {
    let dialler = Dialler::new(a.clone(), NONCE_A, true);
    let hello = dialler.hello();
    let (challenge, expect) = Acceptor::new(b.clone(), NONCE_B, true).greeted(hello.clone()).expect("as it should be");
    (dialler, hello, challenge, expect)
}

fn greet(a: &Ring, b: &Ring, local: bool) -> Result<(RingIdentity, RingIdentity), (&'static str, Code)> {
    let dialler = Dialler::new(a.clone(), NONCE_A, local);
    let (challenge, expect) =
        Acceptor::new(b.clone(), NONCE_B, local).greeted(dialler.hello()).map_err(|code| ("acceptor", code))?;
    let VerifiedDialler { peer, proof } = dialler.challenged(challenge).map_err(|code| ("dialler", code))?;
    let dialled = expect.proven(&proof).map_err(|code| ("acceptor", code))?;
    Ok((peer, dialled))
}

#[test]
fn the_greeting_is_that_of_the_golden_vectors() {
    let frames: Vec<Frame<'_>> = ["ring_hello", "ring_challenge", "ring_proof"]
        .into_iter()
        .map(|name| values::all().into_iter().find(|(other, _)| *other == name).expect("as it should be").1)
        .collect();
    let (dialler, hello, challenge, expect) = begin(&dialler(Some(SECRET)), &acceptor(Some(SECRET)));
    let VerifiedDialler { proof, .. } = dialler.challenged(challenge.clone()).expect("as it should be");
    expect.proven(&proof).expect("as it should be");
    let made = [
        Frame::RingHello { hello: Box::new(hello) },
        Frame::RingChallenge { challenge: Box::new(challenge) },
        Frame::RingProof { proof },
    ];
    assert_eq!(frames, made);
}

/// Proves S3.51.
#[test]
fn both_ends_need_the_same_secret_or_none_on_one_machine() {
    let refused = |who| Err((who, Code::RingRefused));
    type Row<'a> = (Option<&'a [u8]>, Option<&'a [u8]>, bool, Result<(), (&'a str, Code)>);
    let table: [Row<'_>; 9] = [
        (Some(SECRET), Some(SECRET), false, Ok(())),
        (Some(SECRET), Some(SECRET), true, Ok(())),
        (Some(SECRET), Some(OTHER), false, refused("dialler")),
        (Some(SECRET), Some(OTHER), true, refused("dialler")),
        (None, None, true, Ok(())),
        (None, None, false, refused("acceptor")),
        (Some(SECRET), None, true, refused("dialler")),
        (Some(SECRET), None, false, refused("acceptor")),
        (None, Some(SECRET), true, refused("dialler")),
    ];
    for (a, b, local, expected) in table {
        for a in [dialler(a), unnumbered(a)] {
            let b = acceptor(b);
            let met = greet(&a, &b, local);
            assert_eq!(met.clone().map(|_| ()), expected, "{a:?} {b:?} {local}");
            if let Ok((peer, dialled)) = met {
                assert_eq!((peer, dialled), (b.identity, a.identity));
            }
        }
    }
    // A dialler without a secret gives up by itself, whatever the other end says.
    let far = Dialler::new(dialler(None), NONCE_A, false);
    let (_, _, challenge, _) = begin(&dialler(None), &acceptor(None));
    assert_eq!(far.challenged(challenge).map(|_| ()), Err(Code::RingRefused));
}

/// What was heard of one greeting is worth nothing in another, in the other direction, or at the other end.
#[test]
fn what_was_heard_before_or_is_reflected_is_refused() {
    let (a, b) = (dialler(Some(SECRET)), acceptor(Some(SECRET)));
    let (dialler, hello, challenge, expect) = begin(&a, &b);
    let VerifiedDialler { proof, .. } = dialler.clone().challenged(challenge.clone()).expect("as it should be");

    // RING_HELLO and RING_PROOF again, at an acceptor: it has another nonce now.
    let (_, again) = Acceptor::new(b, [0x43; 32], false).greeted(hello).expect("as it should be");
    assert_eq!(again.proven(&proof), Err(Code::RingRefused));
    // RING_CHALLENGE again, at a dialler: it has another nonce now.
    let again = Dialler::new(a, [0x44; 32], false);
    assert_eq!(again.challenged(challenge.clone()).map(|_| ()), Err(Code::RingRefused));
    // The acceptor's proof as the dialler's, in the same greeting; and the other way round.
    assert_eq!(expect.proven(&Proof { proof: challenge.proof.clone() }), Err(Code::RingRefused));
    let mirrored = RingChallenge { proof: proof.proof, ..challenge };
    assert_eq!(dialler.challenged(mirrored).map(|_| ()), Err(Code::RingRefused));
}

/// Sid, incarnation, both addresses and the nonce are part of what is proven, and so is having a number at all.
#[test]
fn what_was_changed_on_its_way_is_refused() {
    let (a, b) = (dialler(Some(SECRET)), acceptor(Some(SECRET)));
    let changes: [fn(&mut RingHello); 7] = [
        |hello| hello.member.as_mut().expect("it has one").origin.sid = Sid::new(3),
        |hello| hello.member.as_mut().expect("it has one").origin.incarnation += 1,
        |hello| hello.member.as_mut().expect("it has one").address = "10.0.0.9:8001".to_owned(),
        |hello| hello.member.as_mut().expect("it has one").native = "10.0.0.9:8101".to_owned(),
        |hello| {
            // The same bytes, parted elsewhere.
            let member = hello.member.as_mut().expect("it has one");
            member.native.insert(0, member.address.pop().expect("it is not empty"));
        },
        |hello| hello.member = None,
        |hello| hello.nonce = Bytes::from_static(&[0x45; 32]),
    ];
    for change in changes {
        // What the acceptor hears is not what the dialler said.
        let dialler = Dialler::new(a.clone(), NONCE_A, false);
        let mut hello = dialler.hello();
        change(&mut hello);
        let (challenge, expect) =
            Acceptor::new(b.clone(), NONCE_B, false).greeted(hello.clone()).expect("as it should be");
        assert_eq!(dialler.clone().challenged(challenge).map(|_| ()), Err(Code::RingRefused), "{hello:?}");
        // And a proof made for what the dialler said does not fit what the acceptor heard.
        let (sound, _) = Acceptor::new(b.clone(), NONCE_B, false).greeted(dialler.hello()).expect("as it should be");
        let VerifiedDialler { proof, .. } = dialler.challenged(sound).expect("as it should be");
        assert_eq!(expect.proven(&proof), Err(Code::RingRefused), "{hello:?}");
    }
    // The acceptor is not who it said either.
    let (dialler, _, challenge, _) = begin(&a, &b);
    let forged = RingChallenge { member: member(3, 1_700_000_000_500), ..challenge };
    assert_eq!(dialler.challenged(forged).map(|_| ()), Err(Code::RingRefused));
}

/// A proof for a link is none for the ring, whatever stands in it.
#[test]
fn a_proof_of_a_link_is_refused() {
    let secret = Secret::new(SECRET);
    let identity = Identity {
        broker: turno_proto::model::link::BrokerId::new(1),
        name: String::new(),
        program: String::new(),
        frame_bytes_max: 0,
    };
    let link = GreetingCredentials { identity, secret };
    let dialler = Dialler::new(link.clone(), NONCE_A, false);
    let (LinkChallenge { proof, .. }, _) =
        Acceptor::new(link, NONCE_B, false).greeted(dialler.hello()).expect("as it should be");
    let (dialler, _, challenge, _) = begin(&crate::dialler(Some(SECRET)), &acceptor(Some(SECRET)));
    assert_eq!(dialler.challenged(RingChallenge { proof, ..challenge }).map(|_| ()), Err(Code::RingRefused));
}

#[test]
fn what_makes_no_sense_is_told_by_its_name() {
    let (a, b) = (dialler(Some(SECRET)), acceptor(Some(SECRET)));
    let (dialler, hello, challenge, _) = begin(&a, &b);
    let hellos = [
        (RingHello { version: 0, ..hello.clone() }, Code::VersionMismatch),
        (RingHello { version: 2, ..hello.clone() }, Code::VersionMismatch),
        (RingHello { nonce: Bytes::new(), ..hello.clone() }, Code::BadBody),
        (RingHello { nonce: Bytes::from_static(&[0; 33]), ..hello.clone() }, Code::BadBody),
    ];
    for (hello, code) in hellos {
        let met = Acceptor::new(b.clone(), NONCE_B, false).greeted(hello.clone());
        assert_eq!(met.map(|_| ()), Err(code), "{hello:?}");
    }
    let challenges = [
        (RingChallenge { version: 2, ..challenge.clone() }, Code::VersionMismatch),
        (RingChallenge { nonce: Bytes::from_static(&[0; 16]), ..challenge }, Code::BadBody),
    ];
    for (challenge, code) in challenges {
        assert_eq!(dialler.clone().challenged(challenge.clone()).map(|_| ()), Err(code), "{challenge:?}");
    }
    // What people read may be long: it is cut.
    let long = RingHello { program: "x".repeat(1_000), ..hello };
    let (_, expect) = Acceptor::new(b, NONCE_B, false).greeted(long).expect("as it should be");
    let VerifiedDialler { proof, .. } = {
        let (dialler, _, challenge, _) = begin(&a, &acceptor(Some(SECRET)));
        dialler.challenged(challenge).expect("as it should be")
    };
    assert_eq!(expect.proven(&proof).expect("it is not proven").program.len(), limits::PEER_NAME_BYTES_MAX);
}
