//! The node inside the engine: topics, links and the end of a broker.

use std::sync::Arc;

use turno_engine::ring::{
    NewConn, Publication, PublicationRef, RetConn, RingInput, RingMessage, RingPeerEffect, RingSettings,
};
use turno_engine::{
    Drained, Effect, Event, HostEffect, Input, LinkEffect, LinkMessage, Neighbour, PeerEffect, Settings,
};
use turno_proto::model::link::{BrokerId, Path, Presence};
use turno_proto::model::ring::{ConnectPurpose, Member, Origin, Sid};
use turno_proto::model::{Code, ConnId, Filter};

use crate::harness::Harness;
use crate::seen::body;

const PREVIOUS: ConnId = ConnId { index: 700, generation: 0 };
const NEXT: ConnId = ConnId { index: 701, generation: 0 };
const LINK: ConnId = ConnId { index: 800, generation: 0 };

fn member(sid: u16) -> Member {
    let origin = Origin { sid: Sid::new(sid), incarnation: 7 };
    Member { origin, address: format!("host:{sid}"), native: format!("host:{}", 8_100 + sid) }
}

fn ring(harness: &mut Harness, input: RingInput) -> Vec<Effect> {
    harness.step(Input::Ring { input })
}

fn message(harness: &mut Harness, conn: ConnId, message: RingMessage) -> Vec<Effect> {
    ring(harness, RingInput::Message { conn, message })
}

fn said(effects: &[Effect], conn: ConnId) -> Vec<&RingMessage> {
    let messages = effects.iter().filter_map(|effect| match effect {
        Effect::Peer(PeerEffect::Ring(RingPeerEffect::Say { conn: to, message })) if *to == conn => Some(message),
        _ => None,
    });
    messages.collect()
}

/// What goes round but for the roll call behind it.
fn published(effects: &[Effect]) -> Vec<&Publication> {
    let messages = said(effects, NEXT).into_iter().filter_map(|message| match message {
        RingMessage::Publish(publication) => Some(publication),
        RingMessage::RollCall { .. } => None,
        other => panic!("nothing else goes round: {other:?}"),
    });
    messages.collect()
}

fn dialled(effects: &[Effect]) -> Option<u32> {
    effects.iter().find_map(|effect| match effect {
        Effect::Peer(PeerEffect::Ring(RingPeerEffect::Dial { target, .. })) => Some(*target),
        _ => None,
    })
}

fn event(text: &str) -> Event {
    Event { topic: "news.art".parse().expect("a topic"), payload: body(text) }
}

/// Broker 1 with broker 2 before and behind it: a ring of two.
fn two(links: bool) -> Harness {
    let settings = RingSettings { links, ..RingSettings::new(member(1), None) };
    let mut harness = Harness::with(Settings { ring: Some(settings), ..Settings::default() });
    ring(&mut harness, RingInput::Accepted { conn: PREVIOUS, peer: Some(member(2)) });
    let asks = NewConn { joiner: member(2), content: None, gap: false, verdict: None, hops: 0 };
    let effects = message(&mut harness, PREVIOUS, RingMessage::NewConn(asks));
    let target = dialled(&effects).expect("the joiner is dialled");
    let effects = ring(&mut harness, RingInput::Dialled { target, conn: NEXT, peer: member(2) });
    assert_eq!(said(&effects, NEXT), [&RingMessage::RetConn(RetConn::Open { purpose: ConnectPurpose::Join })]);
    let effects = message(&mut harness, NEXT, RingMessage::Have { had: Vec::new() });
    let call = said(&effects, NEXT).into_iter().find_map(|message| match message {
        RingMessage::RollCall { origin, number, round, members } => Some((*origin, *number, *round, members.clone())),
        _ => None,
    });
    let (origin, number, round, mut members) = call.expect("the roll is called at once");
    members.push(member(2));
    message(&mut harness, PREVIOUS, RingMessage::RollCall { origin, number, round, members });
    harness
}

fn link_presence(harness: &mut Harness, ring: Option<Origin>) {
    let broker = BrokerId::new(9);
    let (name, address) = ("b9".to_owned(), "127.0.0.1:9".to_owned());
    harness.step(Input::Linked {
        conn: LINK,
        target: None,
        neighbour: Neighbour { broker, name: name.clone(), address, payload_max: 1_000 },
    });
    let path = Path::new(vec![broker]).expect("one is not too many");
    let presence = Presence { path, name, neighbours: Vec::new(), listens: true, ring };
    harness.step(Input::Link { conn: LINK, message: Box::new(LinkMessage::Presence(vec![presence])) });
}

fn crosses(effects: &[Effect]) -> bool {
    let is_event = |message: &LinkMessage| matches!(message, LinkMessage::Event(_));
    effects.iter().any(|effect| matches!(effect, Effect::Peer(PeerEffect::Link { effect: LinkEffect::Message(message), .. }) if is_event(message)))
}

/// Proves S3.33, S3.36 and S3.40: what is published here goes to the subscribers here, its publisher too, and round; what
/// comes round from elsewhere goes to the subscribers here and on, but not back to where it was published; what comes back all the
/// same goes nowhere.
#[test]
fn events_go_to_those_here_and_round() {
    let mut harness = two(false);
    let listener = harness.client();
    let filter = Filter::pattern(b"news.>").expect("a filter");
    harness.step(Input::Subscribe { conn: listener, seq: 50, filter, or_close: false });
    let heard = |effects: &[Effect]| {
        let events = effects.iter().filter_map(|effect| match effect {
            Effect::Peer(PeerEffect::Event { event, listeners }) => {
                Some((event.payload.bytes.clone(), listeners.len()))
            }
            _ => None,
        });
        events.collect::<Vec<_>>()
    };
    let effects = harness.step(Input::Publish { conn: listener, seq: 0, confirm: false, event: event("mine") });
    assert_eq!(heard(&effects), [(body("mine").bytes, 1)]);
    let [mine] = published(&effects)[..] else { panic!("it goes round: {effects:?}") };
    assert_eq!((mine.origin, mine.seq, mine.hops), (member(1).origin, 1, 0));
    let back = Publication { hops: 1, ..mine.clone() };
    let effects = message(&mut harness, PREVIOUS, RingMessage::Publish(back));
    assert_eq!((heard(&effects), published(&effects)), (vec![], vec![]));

    let theirs = |sid| {
        let origin = member(sid).origin;
        Publication { origin, seq: 1, after: 0, round: 0, hops: 0, event: Arc::new(event("theirs")) }
    };
    for (sid, goes_on) in [(3, vec![&Publication { hops: 1, ..theirs(3) }]), (2, vec![])] {
        let effects = message(&mut harness, PREVIOUS, RingMessage::Publish(theirs(sid)));
        assert_eq!((heard(&effects), published(&effects)), (vec![(body("theirs").bytes, 1)], goes_on), "of {sid}");
    }
}

/// A publication may be lent to the engine instead of given: the same follows, in the same order.
#[test]
fn a_publication_that_is_lent_does_what_the_word_does() {
    let (mut given, mut lent) = (two(false), two(false));
    for harness in [&mut given, &mut lent] {
        let listener = harness.client();
        let filter = Filter::pattern(b"news.>").expect("a filter");
        harness.step(Input::Subscribe { conn: listener, seq: 50, filter, or_close: false });
    }
    let of = |sid, seq, after| {
        let (origin, event) = (member(sid).origin, Arc::new(event(&format!("{seq} of {sid}"))));
        Publication { origin, seq, after, round: 0, hops: 3, event }
    };
    // New, new again, from the next one, one's own, after a gap, and what cannot follow: the connection ends.
    for publication in [of(3, 1, 0), of(3, 2, 1), of(2, 1, 0), of(1, 9, 0), of(3, 7, 2), of(3, 9, 8)] {
        let effects = lent.lend(PREVIOUS, PublicationRef::from(&publication));
        assert_eq!(
            effects,
            message(&mut given, PREVIOUS, RingMessage::Publish(publication.clone())),
            "{publication:?}"
        );
        assert_eq!(effects.is_empty(), publication.origin == member(1).origin, "{effects:?}");
    }
    let strangers = of(3, 10, 9);
    assert_eq!(lent.lend(NEXT, PublicationRef::from(&strangers)), [], "a receiver sends none");
}

/// Events cross links only where no ring carries them: not to members of the circle, but to everyone else.
#[test]
fn links_carry_what_the_ring_does_not() {
    let table = [(None, true), (Some(member(2).origin), false), (Some(member(3).origin), true)];
    for (place, does_cross) in table {
        let mut harness = two(false);
        link_presence(&mut harness, place);
        let publisher = harness.client();
        let effects = harness.step(Input::Publish { conn: publisher, seq: 0, confirm: false, event: event("x") });
        assert_eq!(crosses(&effects), does_cross, "{place:?}");
        assert_eq!(published(&effects).len(), 1, "{place:?}: it goes round in any case");
    }
}

/// Neighbours tell each other over links which place they have in a ring.
#[test]
fn presence_names_the_place_in_the_ring() {
    let mut harness = two(false);
    let broker = BrokerId::new(9);
    let (name, address) = ("b9".to_owned(), "127.0.0.1:9".to_owned());
    let effects = harness.step(Input::Linked {
        conn: LINK,
        target: None,
        neighbour: Neighbour { broker, name, address, payload_max: 1_000 },
    });
    let places = effects.iter().find_map(|effect| match effect {
        Effect::Peer(PeerEffect::Link { effect: LinkEffect::Message(message), .. }) => match &**message {
            LinkMessage::Presence(told) => Some(told.iter().map(|one| one.ring).collect::<Vec<_>>()),
            _ => None,
        },
        _ => None,
    });
    assert_eq!(places, Some(vec![Some(member(1).origin)]));
}

/// With `--ring-links` the next one in the ring is linked to as well, as long as it is the next one.
#[test]
fn neighbours_in_the_ring_link() {
    let mut harness = two(true);
    let dials = |harness: &Harness| {
        let dials = harness.log().iter().filter_map(|effect| match effect {
            Effect::Peer(PeerEffect::Dial { address, .. }) => Some(address.clone()),
            _ => None,
        });
        dials.collect::<Vec<_>>()
    };
    assert_eq!(dials(&harness), ["host:8102"]);
    assert_eq!(dials(&two(false)), Vec::<String>::new());
    let target = harness.log().iter().find_map(|effect| match effect {
        Effect::Peer(PeerEffect::Dial { target, .. }) => Some(*target),
        _ => None,
    });
    // It would be dialled again in a second. The other one leaves: this one is alone, and wants no link any more.
    harness.step(Input::DialFailed { target: target.expect("it was dialled"), code: Code::LinkDown });
    message(&mut harness, PREVIOUS, RingMessage::ServOff { leaver: member(2), content: None, hops: 0 });
    harness.pass(10_000);
    assert_eq!(dials(&harness), ["host:8102"], "it was dialled once, while it was there");
}

/// Proves S3.26 and S3.30: a broker that ends leaves the ring first; it is over when SERVOFF came back, or after 2 s.
#[test]
fn a_broker_that_ends_leaves_first() {
    for comes_back in [true, false] {
        let mut harness = two(false);
        let is_drained = |effects: &[Effect]| {
            effects.iter().any(|effect| matches!(effect, Effect::Host(HostEffect::Drained(Drained { .. }))))
        };
        let effects = harness.step(Input::Drain { within_ms: 30_000 });
        let off = RingMessage::ServOff { leaver: member(1), content: None, hops: 0 };
        assert_eq!(said(&effects, NEXT), [&off]);
        assert!(!is_drained(&effects), "it waits for the ring");
        if comes_back {
            let back = RingMessage::ServOff { leaver: member(1), content: Some(Box::new(member(2))), hops: 1 };
            assert!(is_drained(&message(&mut harness, PREVIOUS, back)));
        } else {
            let drained = |harness: &Harness| is_drained(harness.log());
            harness.pass(1_999);
            assert!(!drained(&harness));
            harness.pass(1);
            assert!(drained(&harness));
        }
    }
}
