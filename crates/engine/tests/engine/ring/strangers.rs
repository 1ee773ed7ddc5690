//! A process on the same machine poses as a member of a ring without a secret. It may disturb the ring while it is there; it ends no
//! broker, and nothing that it claims stays.

use turno_engine::ring::{RetConn, RingInput, RingMessage, RingNews, RingSettings};
use turno_proto::model::ring::{ConnectPurpose, Member, Origin, RingState, Sid};
use turno_proto::model::{Code, Mono, limits};

use super::net::Net;

const RING: [u16; 3] = [1, 2, 3];

fn open(settings: &mut RingSettings) {
    settings.has_secret = false;
}

/// That member, in another life.
fn posed(net: &Net, number: u16, incarnation: u64) -> Member {
    let mut member = net.member(number);
    member.origin.incarnation = incarnation;
    member
}

/// The messages of a stranger that takes the place of a predecessor.
fn as_previous(then: RingMessage) -> Vec<RingMessage> {
    vec![RingMessage::RetConn(RetConn::Open { purpose: ConnectPurpose::Return }), then]
}

/// Nobody has ended or was refused, and all of them are one circle again.
fn goes_on(net: &mut Net, case: &str) {
    net.until_whole(&RING, 30_000);
    assert_eq!((&net.failed[..], &net.stopped[..], &net.left[..]), (&[][..], &[][..], &[][..]), "{case}");
}

/// Incarnations that somebody may claim of a member whose own is `of`.
fn claims(of: u64) -> [u64; 6] {
    [0, of + 1, of + 1_000_000, limits::RING_INCARNATION_MAX, u64::MAX - 1, u64::MAX]
}

/// One greeting as member 3, to each of the others; then 3 must connect anew, and does. So does its next life.
#[test]
fn an_incarnation_in_a_greeting_fences_nobody_off() {
    let known = Net::ring(&RING).member(3).origin.incarnation;
    for incarnation in claims(known) {
        for to in [1, 2] {
            let mut net = Net::ring_with(&RING, open);
            let stranger = net.strange(to, posed(&net, 3, incarnation), Vec::new());
            net.put(to, RingInput::Closed { conn: stranger });
            net.drop_link(3, 1);
            net.drop_link(2, 3);
            goes_on(&mut net, &format!("{incarnation} claimed to {to}"));
            net.kill(3);
            net.run(200);
            net.start(3, Some(1));
            goes_on(&mut net, &format!("{incarnation} claimed to {to}, and 3 started again"));
            assert_eq!(net.view(1).members[2].incarnation, net.member(3).origin.incarnation);
        }
    }
}

/// SHUTDWN from one who poses as the predecessor, in the name of each member and of nobody.
#[test]
fn a_shutdown_that_nothing_proves_ends_nobody() {
    for (to, previous) in [(1, 3), (2, 1), (3, 2)] {
        for origin in [1, 2, 3, 77] {
            let mut net = Net::ring_with(&RING, open);
            let mut origin = Origin { sid: Sid::new(origin), incarnation: 7 };
            if let Some(number) = RING.into_iter().find(|number| *number == origin.sid.get()) {
                origin = net.member(number).origin;
            }
            let message = RingMessage::Shutdown { origin, hops: 0 };
            let stranger = net.strange(to, net.member(previous), as_previous(message));
            net.run(500);
            let told = net
                .news
                .iter()
                .any(|(number, news)| *number == to && matches!(news, RingNews::Unproven { claim: "SHUTDWN", .. }));
            assert_eq!(told, origin.sid.get() != to, "{to} is told of what it ignored");
            net.put(to, RingInput::Closed { conn: stranger });
            goes_on(&mut net, &format!("SHUTDWN of {} to {to}", origin.sid));
        }
    }
}

/// What a posed predecessor tells of incarnations is forgotten with the next roll call that comes round.
#[test]
fn what_a_posed_predecessor_tells_does_not_stay() {
    for incarnation in claims(2_000_000) {
        let mut net = Net::ring_with(&RING, open);
        let all = vec![net.member(1), posed(&net, 2, incarnation), posed(&net, 3, incarnation)];
        let me = net.member(1).origin;
        let messages = [
            RingMessage::CaughtUp { members: all.clone() },
            RingMessage::RollCall { origin: me, number: 1, round: 0, members: all.clone() },
            RingMessage::RollCall { origin: me, number: 1_000, round: 0, members: all },
        ];
        for message in messages {
            let stranger = net.strange(1, net.member(3), as_previous(message));
            net.put(1, RingInput::Closed { conn: stranger });
        }
        goes_on(&mut net, &format!("{incarnation}"));
        for number in [2, 3] {
            net.kill(number);
            net.run(10_000);
            net.start(number, Some(1));
            goes_on(&mut net, &format!("{incarnation}, and {number} started again"));
        }
    }
}

/// `fenced` from the next one: without a secret the broker connects again; with one it ends, since the next one has proven itself.
#[test]
fn fenced_must_be_proven() {
    for (has_secret, failed) in [(false, vec![]), (true, vec![(2, Code::Fenced)])] {
        let mut net = Net::ring_with(&RING, if has_secret { |_| {} } else { open });
        let next = net.from(3, 2);
        net.put(
            2,
            RingInput::Message { conn: next, message: RingMessage::Refused { code: Code::Fenced, instead: None } },
        );
        net.run(100);
        assert_eq!((&net.failed, net.state(2) == RingState::Off), (&failed, has_secret));
        if !has_secret {
            assert!(net.news.iter().any(|(_, news)| matches!(news, RingNews::Unproven { claim: "fenced", .. })));
            goes_on(&mut net, "fenced");
        }
    }
}

/// Without a secret an admin ends the broker that was asked, and SHUTDWN does not go round: each broker is asked itself.
#[test]
fn without_a_secret_each_broker_is_ended_by_its_own_admin() {
    let mut net = Net::ring_with(&RING, open);
    net.said.clear();
    net.put(2, RingInput::Shutdown);
    net.run(3_000);
    assert_eq!(net.stopped, [2]);
    assert!(!net.said.iter().any(|(_, _, message)| matches!(message, RingMessage::Shutdown { .. })));
    net.until_whole(&[1, 3], 15_000);
}

/// With and without a secret: an incarnation far ahead of the clock is refused. A clock that is not set refuses only absurd ones.
#[test]
fn incarnations_are_near_the_clock() {
    let today = limits::CLOCK_MIN_MS + 1_000;
    let table = [
        (1_000_000, limits::CLOCK_MIN_MS * 2, true),
        (1_000_000, limits::RING_INCARNATION_MAX, true),
        (1_000_000, limits::RING_INCARNATION_MAX + 1, false),
        (1_000_000, u64::MAX, false),
        (today, 1, true),
        (today, today + limits::RING_INCARNATION_AHEAD_MS, true),
        (today, today + limits::RING_INCARNATION_AHEAD_MS + 1, false),
        (today, u64::MAX, false),
    ];
    for settings in [open, |_: &mut RingSettings| {}] {
        for (clock, incarnation, believed) in table {
            let mut net = Net::new();
            (net.now, net.settings) = (Mono::from_millis(clock), settings);
            net.start(1, None);
            let mut peer = net.member(1);
            peer.origin = Origin { sid: Sid::new(2), incarnation };
            net.strange(1, peer, Vec::new());
            let refused =
                net.news.iter().any(|(_, news)| matches!(news, RingNews::Refused { code: Code::BadBody, .. }));
            assert_eq!(refused, !believed, "{incarnation} at {clock}");
        }
    }
}
