//! Two brokers greet, and somebody else tries to.

use bytes::Bytes;
use turno_proto::model::{Code, limits};
use turno_proto::native::{
    Acceptor, Dialler, ExpectProof, Frame, GreetingCredentials, Identity, LinkChallenge, LinkHello, Nonce, Proof,
    Secret, VerifiedDialler,
};

use crate::{SECRET, acceptor, dialler, golden, values};

const NONCE_A: Nonce = [0x41; 32];
const NONCE_B: Nonce = [0x42; 32];
const OTHER: &[u8] = b"correct horse battery stable";

/// A greeting up to where each end has said one thing.
fn begin(
    a: &GreetingCredentials,
    b: &GreetingCredentials,
    nonces: (Nonce, Nonce),
) -> (Dialler, LinkHello, LinkChallenge, ExpectProof) {
    let dialler = Dialler::new(a.clone(), nonces.0, true);
    let hello = dialler.hello();
    let (challenge, expect) = Acceptor::new(b.clone(), nonces.1, true).greeted(hello.clone()).expect("as it should be");
    (dialler, hello, challenge, expect)
}

/// Who each end takes the other for, or why it does not.
fn greet(
    a: &GreetingCredentials,
    b: &GreetingCredentials,
    local: bool,
) -> Result<(Identity, Identity), (&'static str, Code)> {
    let dialler = Dialler::new(a.clone(), NONCE_A, local);
    let (challenge, expect) =
        Acceptor::new(b.clone(), NONCE_B, local).greeted(dialler.hello()).map_err(|code| ("acceptor", code))?;
    let VerifiedDialler { peer, proof } = dialler.challenged(challenge).map_err(|code| ("dialler", code))?;
    let dialled = expect.proven(&proof).map_err(|code| ("acceptor", code))?;
    Ok((peer, dialled))
}

#[test]
fn the_greeting_is_that_of_the_golden_vectors() {
    let frames: Vec<Frame<'_>> = ["link_hello", "link_challenge", "link_proof"]
        .into_iter()
        .map(|name| values::all().into_iter().find(|(other, _)| *other == name).expect("as it should be").1)
        .collect();
    let (dialler, hello, challenge, expect) =
        begin(&dialler(Some(SECRET)), &acceptor(Some(SECRET)), (NONCE_A, NONCE_B));
    let VerifiedDialler { proof, .. } = dialler.challenged(challenge.clone()).expect("as it should be");
    expect.proven(&proof).expect("as it should be");
    let made = [
        Frame::LinkHello { hello: Box::new(hello) },
        Frame::LinkChallenge { challenge: Box::new(challenge) },
        Frame::LinkProof { proof },
    ];
    assert_eq!(frames, made);
    assert!(golden::all().iter().any(|vector| vector.name == "link_proof"));
}

#[test]
fn both_ends_need_the_same_secret_or_none_on_one_machine() {
    let refused = |who| Err((who, Code::LinkRefused));
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
        let (a, b) = (dialler(a), acceptor(b));
        let met = greet(&a, &b, local);
        assert_eq!(met.clone().map(|_| ()), expected, "{a:?} {b:?} {local}");
        if let Ok((peer, dialled)) = met {
            assert_eq!((peer, dialled), (b.identity, a.identity));
        }
    }
    // A dialler without a secret gives up by itself, whatever the other end says.
    let far = Dialler::new(dialler(None), NONCE_A, false);
    let (_, _, challenge, _) = begin(&dialler(None), &acceptor(None), (NONCE_A, NONCE_B));
    assert_eq!(far.challenged(challenge).map(|_| ()), Err(Code::LinkRefused));
}

/// An acceptor needs a proof: a client that knows no secret cannot make it.
#[test]
fn a_proof_is_looked_at_by_the_acceptor_too() {
    let (a, b) = (dialler(Some(SECRET)), acceptor(Some(SECRET)));
    let proofs: [&[u8]; 5] = [&[], &[0; 32], &[0; 31], &[0; 33], b"proof"];
    for proof in proofs {
        let (_, _, _, expect) = begin(&a, &b, (NONCE_A, NONCE_B));
        let proof = Proof { proof: Bytes::copy_from_slice(proof) };
        assert_eq!(expect.proven(&proof), Err(Code::LinkRefused));
    }
    // Neither is one taken that could be made, where none is asked for.
    let (_, _, _, expect) = begin(&dialler(None), &acceptor(None), (NONCE_A, NONCE_B));
    assert_eq!(expect.proven(&Proof { proof: Bytes::from_static(&[0; 32]) }), Err(Code::LinkRefused));
}

/// Each bit of a proof counts.
#[test]
fn a_proof_with_one_bit_changed_is_refused() {
    let (a, b) = (dialler(Some(SECRET)), acceptor(Some(SECRET)));
    for bit in 0..256 {
        let (dialler, _, challenge, expect) = begin(&a, &b, (NONCE_A, NONCE_B));
        let mut wrong = challenge.clone();
        wrong.proof = flipped(&challenge.proof, bit);
        assert_eq!(dialler.clone().challenged(wrong).map(|_| ()), Err(Code::LinkRefused));
        let VerifiedDialler { proof, .. } = dialler.challenged(challenge).expect("as it should be");
        assert_eq!(expect.proven(&Proof { proof: flipped(&proof.proof, bit) }), Err(Code::LinkRefused));
    }
}

fn flipped(bytes: &[u8], bit: usize) -> Bytes {
    let mut bytes = bytes.to_vec();
    bytes[bit / 8] ^= 1 << (bit % 8);
    bytes.into()
}

/// What was heard of one greeting is worth nothing in another.
#[test]
fn what_was_heard_before_is_refused() {
    let (a, b) = (dialler(Some(SECRET)), acceptor(Some(SECRET)));
    let (dialler, hello, challenge, _) = begin(&a, &b, (NONCE_A, NONCE_B));
    let VerifiedDialler { proof, .. } = dialler.challenged(challenge.clone()).expect("as it should be");

    // LINK_HELLO and LINK_PROOF again, at an acceptor: it has another nonce now.
    let (_, expect) = Acceptor::new(b.clone(), [0x43; 32], false).greeted(hello).expect("as it should be");
    assert_eq!(expect.proven(&proof), Err(Code::LinkRefused));

    // LINK_CHALLENGE again, at a dialler: it has another nonce now.
    let again = Dialler::new(a, [0x44; 32], false);
    assert_eq!(again.challenged(challenge).map(|_| ()), Err(Code::LinkRefused));
}

/// A mirror attack: an end's own frames, and proofs of the other direction, sent back to it.
#[test]
fn what_is_reflected_is_refused() {
    let (a, b) = (dialler(Some(SECRET)), acceptor(Some(SECRET)));
    // The acceptor's proof as the dialler's, in the same greeting.
    let (dialler, _, challenge, expect) = begin(&a, &b, (NONCE_A, NONCE_B));
    assert_eq!(expect.proven(&Proof { proof: challenge.proof.clone() }), Err(Code::LinkRefused));

    // The dialler's proof as the acceptor's: a broker that is dialled is made to dial, and its frames are passed on.
    let VerifiedDialler { proof, .. } = dialler.clone().challenged(challenge.clone()).expect("as it should be");
    let mirrored = LinkChallenge { proof: proof.proof, ..challenge };
    assert_eq!(dialler.challenged(mirrored).map(|_| ()), Err(Code::LinkRefused));

    // A dialler's own frames as a challenge.
    let own = Dialler::new(a, NONCE_A, false);
    let LinkHello { version, broker, name, program, frame_bytes_max, nonce } = own.hello();
    let mirrored = LinkChallenge { version, broker, name, program, frame_bytes_max, nonce, proof: Bytes::new() };
    assert_eq!(own.challenged(mirrored).map(|_| ()), Err(Code::LinkRefused));
}

/// Names, ids and nonces are part of what is proven, each in its place.
#[test]
fn what_was_changed_on_its_way_is_refused() {
    let (a, b) = (dialler(Some(SECRET)), acceptor(Some(SECRET)));
    let changes: [fn(&mut LinkHello); 4] = [
        |hello| hello.name = "b".to_owned(),
        |hello| hello.name = "ab".to_owned(),
        |hello| hello.broker = turno_proto::model::link::BrokerId::new(1),
        |hello| hello.nonce = Bytes::from_static(&[0x45; 32]),
    ];
    for change in changes {
        // What the acceptor hears is not what the dialler said.
        let dialler = Dialler::new(a.clone(), NONCE_A, false);
        let mut hello = dialler.hello();
        change(&mut hello);
        let (challenge, expect) =
            Acceptor::new(b.clone(), NONCE_B, false).greeted(hello.clone()).expect("as it should be");
        assert_eq!(dialler.clone().challenged(challenge).map(|_| ()), Err(Code::LinkRefused), "{hello:?}");
        // And a proof made for what the dialler said does not fit what the acceptor heard.
        let (sound, _) = Acceptor::new(b.clone(), NONCE_B, false).greeted(dialler.hello()).expect("as it should be");
        let VerifiedDialler { proof, .. } = dialler.challenged(sound).expect("as it should be");
        assert_eq!(expect.proven(&proof), Err(Code::LinkRefused), "{hello:?}");
    }
    // Names that change places.
    let swapped = GreetingCredentials { identity: Identity { name: "b".to_owned(), ..a.identity.clone() }, ..a };
    let taken = GreetingCredentials { identity: Identity { name: "a".to_owned(), ..b.identity.clone() }, ..b.clone() };
    let dialler = Dialler::new(swapped, NONCE_A, false);
    let (_, _, challenge, _) = begin(&crate::dialler(Some(SECRET)), &taken, (NONCE_A, NONCE_B));
    assert_eq!(
        dialler.challenged(LinkChallenge { name: "b".to_owned(), ..challenge }).map(|_| ()),
        Err(Code::LinkRefused)
    );
    // What a length before it is for: "ab" and "c" are not "a" and "bc".
    let long = GreetingCredentials {
        identity: Identity { name: "aa".to_owned(), ..crate::dialler(Some(SECRET)).identity },
        ..b
    };
    let (_, _, challenge, _) = begin(&long, &acceptor(Some(SECRET)), (NONCE_A, NONCE_B));
    let dialler = Dialler::new(crate::dialler(Some(SECRET)), NONCE_A, false);
    assert_eq!(
        dialler.challenged(LinkChallenge { name: "ab".to_owned(), ..challenge }).map(|_| ()),
        Err(Code::LinkRefused)
    );
}

#[test]
fn what_makes_no_sense_is_told_by_its_name() {
    let (a, b) = (dialler(Some(SECRET)), acceptor(Some(SECRET)));
    let long = "n".repeat(limits::PEER_NAME_BYTES_MAX + 1);
    let hello = Dialler::new(a.clone(), NONCE_A, false).hello();
    let hellos = [
        (LinkHello { version: 0, ..hello.clone() }, Code::VersionMismatch),
        (LinkHello { version: 2, ..hello.clone() }, Code::VersionMismatch),
        (LinkHello { name: long.clone(), ..hello.clone() }, Code::BadBody),
        (LinkHello { nonce: Bytes::new(), ..hello.clone() }, Code::BadBody),
        (LinkHello { nonce: Bytes::from_static(&[0; 33]), ..hello }, Code::BadBody),
    ];
    for (hello, code) in hellos {
        let met = Acceptor::new(b.clone(), NONCE_B, false).greeted(hello.clone());
        assert_eq!(met.map(|_| ()), Err(code), "{hello:?}");
    }
    let (dialler, _, challenge, _) = begin(&a, &b, (NONCE_A, NONCE_B));
    let challenges = [
        (LinkChallenge { version: 2, ..challenge.clone() }, Code::VersionMismatch),
        (LinkChallenge { name: long, ..challenge.clone() }, Code::BadBody),
        (LinkChallenge { nonce: Bytes::from_static(&[0; 16]), ..challenge }, Code::BadBody),
    ];
    for (challenge, code) in challenges {
        assert_eq!(dialler.clone().challenged(challenge.clone()).map(|_| ()), Err(code), "{challenge:?}");
    }
}

#[test]
fn a_secret_is_long_enough_and_never_shown() {
    assert_eq!(Secret::new(&[b'x'; limits::LINK_SECRET_BYTES_MIN - 1]), None);
    assert_eq!(Secret::new(&[b'x'; limits::LINK_SECRET_BYTES_MAX + 1]), None);
    let secret = Secret::new(&[b'x'; limits::LINK_SECRET_BYTES_MIN]).expect("as it should be");
    assert_eq!(format!("{secret:?}"), "Secret");
    assert!(!format!("{:?}", dialler(Some(SECRET))).contains("horse"));
}

/// A name that is too long is cut where it is set, so that both ends mean the same one.
#[test]
fn a_long_name_of_ones_own_is_cut() {
    let a = dialler(Some(SECRET));
    let identity = Identity { name: "ü".repeat(100), ..a.identity };
    let a = GreetingCredentials::new(identity, a.secret);
    assert_eq!(a.identity.name.len(), limits::PEER_NAME_BYTES_MAX);
    assert!(greet(&a, &acceptor(Some(SECRET)), false).is_ok());
}
