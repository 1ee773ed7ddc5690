//! Queues that are one worker's alone, wherever it is.

use turno_engine::{Effect, Engine, Input, NativeEffect, PeerEffect, Persist, Settings, StoreSettings};
use turno_proto::model::admin::AdminCall;
use turno_proto::model::{Code, Slots};

use super::net::{Net, Place};

/// A worker that is registered and has the queue open.
fn candidate(net: &mut Net, broker: usize) -> Place {
    let place = net.client(broker, "q");
    let (conn, seq) = (place.conn, net.seq());
    net.put(broker, Input::Register { conn, seq, slots: Slots::Limited(2), name: "w".into() });
    net.heard_by(place);
    place
}

fn consume(net: &mut Net, place: Place, exclusive: bool) {
    let seq = net.seq();
    net.put(place.broker, Input::Consume { conn: place.conn, seq, handle: 0, exclusive });
    net.settle_for(10);
}

/// Refused, it stands by.
fn stand_by(net: &mut Net, place: Place) {
    consume(net, place, true);
    let heard = net.heard_by(place);
    assert!(
        matches!(heard[..], [Effect::Peer(PeerEffect::Native { effect: NativeEffect::QueueFull { .. }, .. })]),
        "{heard:?}"
    );
    let seq = net.seq();
    net.put(place.broker, Input::QueueAvailableNotify { conn: place.conn, seq, handle: 0 });
    net.settle_for(10);
    assert_eq!(net.heard_by(place), []);
}

fn token(net: &mut Net, place: Place) -> u64 {
    let heard = net.heard_by(place);
    let [Effect::Peer(PeerEffect::Native { effect: NativeEffect::Consuming { token, .. }, .. })] = heard[..] else {
        panic!("{heard:?}")
    };
    token
}

fn take(net: &mut Net, place: Place) -> u64 {
    consume(net, place, true);
    token(net, place)
}

fn is_told(net: &mut Net, place: Place) -> bool {
    net.heard_by(place).iter().any(|effect| {
        matches!(effect, Effect::Peer(PeerEffect::Native { effect: NativeEffect::QueueAvailable { .. }, .. }))
    })
}

fn chain(count: usize) -> Net {
    let mut net = Net::new(count);
    (1..count).for_each(|at| net.link(at - 1, at));
    net.settle();
    net
}

/// S2.27: one worker has it, of all brokers; others are refused, plain ones too.
#[test]
fn a_queue_is_one_workers_alone_at_all_brokers() {
    for holder in 0..3 {
        let mut net = chain(3);
        let first = candidate(&mut net, holder);
        take(&mut net, first);
        net.settle();
        for (broker, exclusive) in [(0, true), (1, true), (2, true), (0, false), (1, false), (2, false)] {
            let other = candidate(&mut net, broker);
            consume(&mut net, other, exclusive);
            let heard = net.heard_by(other);
            assert!(
                matches!(heard[..], [Effect::Peer(PeerEffect::Native { effect: NativeEffect::QueueFull { .. }, .. })]),
                "{broker} {exclusive}: {heard:?}"
            );
        }
        let caller = net.client(2 - holder, "q");
        net.request(caller, "for the holder");
        net.settle();
        assert_eq!(net.take("for the holder").worker, first, "its messages reach it from everywhere");
    }
}

/// Two that ask in the same moment at different brokers: home gives it to one of them.
#[test]
fn of_two_that_ask_at_once_one_gets_it() {
    let mut net = chain(3);
    let (one, other) = (candidate(&mut net, 1), candidate(&mut net, 2));
    for place in [one, other] {
        let seq = net.seq();
        net.put(place.broker, Input::Consume { conn: place.conn, seq, handle: 0, exclusive: true });
    }
    net.settle();
    let granted = |net: &mut Net, place| match &net.heard_by(place)[..] {
        [Effect::Peer(PeerEffect::Native { effect: NativeEffect::Consuming { .. }, .. })] => true,
        [Effect::Peer(PeerEffect::Native { effect: NativeEffect::QueueFull { .. }, .. })] => false,
        heard => panic!("{heard:?}"),
    };
    let both = [granted(&mut net, one), granted(&mut net, other)];
    assert_eq!(both.iter().filter(|granted| **granted).count(), 1, "{both:?}");
}

/// Tokens rise with each holder; standbys at the old holder's broker come first, others a second later.
#[test]
fn those_who_wait_at_the_same_broker_come_first() {
    let mut net = chain(2);
    let holder = candidate(&mut net, 1);
    let first = take(&mut net, holder);
    net.settle();
    let (far, near) = (candidate(&mut net, 0), candidate(&mut net, 1));
    stand_by(&mut net, far);
    stand_by(&mut net, near);
    net.put(1, Input::Disconnected { conn: holder.conn });
    net.settle_for(100);
    assert!(is_told(&mut net, near));
    let second = take(&mut net, near);
    net.settle();
    net.put(1, Input::Disconnected { conn: near.conn });
    net.settle_for(900);
    assert!(!is_told(&mut net, far), "a queue that became free elsewhere is left alone for a moment");
    net.settle_for(200);
    assert!(is_told(&mut net, far));
    let third = take(&mut net, far);
    assert!(first < second && second < third, "{first} {second} {third}");
}

/// The broker of the holder is lost: those who wait elsewhere get the queue, with a higher token. When the brokers meet
/// again the higher token stays, and the other one is told.
#[test]
fn two_sides_of_a_cut_never_have_one_token() {
    let mut net = chain(3);
    let holder = candidate(&mut net, 2);
    let old = take(&mut net, holder);
    net.settle();
    let waiter = candidate(&mut net, 0);
    stand_by(&mut net, waiter);
    net.unlink(1, 2);
    net.settle_for(1_200);
    assert!(is_told(&mut net, waiter));
    let new = take(&mut net, waiter);
    assert!(new > old);
    assert_eq!(net.heard_by(holder), [], "it cannot know");
    net.link(1, 2);
    net.settle();
    let heard = net.heard_by(holder);
    assert!(
        matches!(
            heard[..],
            [Effect::Peer(PeerEffect::Native {
                effect: NativeEffect::CancelQueue { reason: Code::QueueFull, .. },
                ..
            })]
        ),
        "{heard:?}"
    );
    consume(&mut net, holder, true);
    let heard = net.heard_by(holder);
    assert!(
        matches!(heard[..], [Effect::Peer(PeerEffect::Native { effect: NativeEffect::QueueFull { .. }, .. })]),
        "{heard:?}"
    );
}

/// Home is lost: the next in order decides, and its tokens are higher.
#[test]
fn the_next_in_order_is_home_when_home_is_lost() {
    let mut net = chain(3);
    let first = candidate(&mut net, 2);
    let old = take(&mut net, first);
    net.settle();
    net.unlink(0, 1);
    net.settle();
    net.put(2, Input::Disconnected { conn: first.conn });
    net.settle_for(1_100);
    let second = candidate(&mut net, 2);
    let new = take(&mut net, second);
    assert!(new > old, "{new} {old}");
}

/// Home does not answer: QUEUE_FULL after a while, and nothing is left of the question.
#[test]
fn a_home_that_is_silent_is_not_waited_for_long() {
    let mut net = chain(2);
    let place = candidate(&mut net, 1);
    let seq = net.seq();
    net.put(1, Input::Consume { conn: place.conn, seq, handle: 0, exclusive: true });
    net.put(1, Input::Consume { conn: place.conn, seq, handle: 0, exclusive: true });
    let heard = net.heard_by(place);
    assert!(
        matches!(heard[..], [Effect::Peer(PeerEffect::Answer { result: Err(Code::AlreadyConsuming), .. })]),
        "{heard:?}"
    );
    net.tick(1_999);
    assert_eq!(net.heard_by(place), []);
    net.tick(2);
    let heard = net.heard_by(place);
    assert!(
        matches!(heard[..], [Effect::Peer(PeerEffect::Native { effect: NativeEffect::QueueFull { .. }, .. })]),
        "{heard:?}"
    );
    // Its answer comes after all, and nobody waits for it.
    net.settle();
    assert_eq!(net.heard_by(place), []);
    // It leaves before home's answer comes: nobody has the queue.
    net.settle_for(3_000);
    net.put(1, Input::Consume { conn: place.conn, seq, handle: 0, exclusive: true });
    net.put(1, Input::CancelQueue { conn: place.conn, seq, handle: 0 });
    net.settle();
    assert_eq!(net.heard_by(place), []);
    net.settle_for(3_000);
    let other = candidate(&mut net, 0);
    take(&mut net, other);
}

/// I8: brokers that want links with each other and have none never give out one token, though they started together.
#[test]
fn brokers_that_are_apart_from_the_start_never_have_one_token() {
    let mut net = Net::new(2);
    for (broker, other) in [(0, "b9:1"), (1, "b8:1")] {
        net.call(broker, AdminCall::LinkAdd { address: other.to_owned() }).expect("it is wanted from now on");
    }
    let (one, other) = (candidate(&mut net, 0), candidate(&mut net, 1));
    assert_ne!(take(&mut net, one), take(&mut net, other));
}

/// I8: home has not heard of the tokens that were given out while it was away; those of the broker that asks rise.
#[test]
fn a_token_from_home_is_higher_than_those_before_it_here() {
    let mut net = Net::new(2);
    net.link(0, 1);
    net.settle();
    net.unlink(0, 1);
    let mut last = 0;
    for _ in 0..5 {
        let alone = candidate(&mut net, 1);
        last = take(&mut net, alone);
        net.put(1, Input::Disconnected { conn: alone.conn });
    }
    net.link(0, 1);
    net.settle_for(2_000);
    let next = candidate(&mut net, 1);
    let token = take(&mut net, next);
    assert!(token > last, "{token} after {last}");
}

/// I8: a token that was given out behind a cut is heard of when the sides meet again, also where nobody had the queue, and all that
/// follow are higher; whether the queue was known there before or not.
#[test]
fn tokens_rise_where_one_was_only_heard_of() {
    for is_known in [true, false] {
        let mut net = chain(2);
        net.unlink(0, 1);
        let (mut last, mut holder) = (0, None);
        for _ in 0..5 {
            if let Some(Place { conn, .. }) = holder {
                net.put(1, Input::Disconnected { conn });
            }
            let next = candidate(&mut net, 1);
            last = take(&mut net, next);
            holder = Some(next);
        }
        if is_known {
            net.client(0, "q");
        }
        net.link(0, 1);
        net.settle();
        net.put(1, Input::Disconnected { conn: holder.expect("somebody has it").conn });
        net.settle_for(2_000);
        let next = candidate(&mut net, 0);
        let token = take(&mut net, next);
        assert!(token > last, "{token} after {last}, known: {is_known}");
    }
}

/// A queue becomes one worker's alone between two offers: neighbours hear of it, though as many slots are free as before.
#[test]
fn neighbours_hear_of_a_token_alone() {
    let mut net = chain(2);
    let plain = net.worker(0, "q", 2);
    net.settle();
    // Offers were told a moment ago, so that the next ones wait.
    net.worker(0, "other", 1);
    let seq = net.seq();
    net.put(0, Input::CancelQueue { conn: plain.conn, seq, handle: 0 });
    let holder = candidate(&mut net, 0);
    take(&mut net, holder);
    net.settle();
    let other = candidate(&mut net, 1);
    consume(&mut net, other, false);
    let heard = net.heard_by(other);
    assert!(
        matches!(heard[..], [Effect::Peer(PeerEffect::Native { effect: NativeEffect::QueueFull { .. }, .. })]),
        "{heard:?}"
    );
}

/// A worker that deregisters does not want the queue any more that it asked home for, also if it registers again before home's answer
/// comes.
#[test]
fn who_registers_again_has_not_asked() {
    let mut net = chain(2);
    let place = candidate(&mut net, 1);
    let (conn, seq) = (place.conn, net.seq());
    net.put(1, Input::Consume { conn, seq, handle: 0, exclusive: true });
    net.put(1, Input::Deregister { conn, seq });
    net.put(1, Input::Register { conn, seq, slots: Slots::Limited(2), name: "w".into() });
    net.settle();
    assert_eq!(net.heard_by(place), []);
    net.settle_for(3_000);
    let other = candidate(&mut net, 0);
    take(&mut net, other);
}

/// Proves S2.24 over links: a queue that home keeps for one who waits there is given to nobody elsewhere meanwhile.
#[test]
fn what_home_keeps_for_its_own_is_not_given_away() {
    let mut net = chain(2);
    let holder = candidate(&mut net, 0);
    take(&mut net, holder);
    net.settle();
    let near = candidate(&mut net, 0);
    stand_by(&mut net, near);
    net.put(0, Input::Disconnected { conn: holder.conn });
    net.settle_for(100);
    assert!(is_told(&mut net, near));
    let far = candidate(&mut net, 1);
    consume(&mut net, far, true);
    let heard = net.heard_by(far);
    assert!(
        matches!(heard[..], [Effect::Peer(PeerEffect::Native { effect: NativeEffect::QueueFull { .. }, .. })]),
        "{heard:?}"
    );
    take(&mut net, near);
}

/// The term of a token.
const fn term_of(token: u64) -> u64 {
    token >> 20
}

/// I8: a token from a broker whose clock is ahead is heard of once, and written down by term; the next run starts above it, though its
/// own clock is not that far. A broker without a store has nothing to write to.
#[test]
fn a_token_that_was_heard_of_outlives_the_broker() {
    const TERM: u64 = 1_800_000_000_000;
    const AHEAD_MS: u64 = 86_400_000;
    let store = StoreSettings { run: 7, unix_ms: 0, last_serial: 0 };
    for store in [Some(store), None] {
        let mut net = Net::with(2, &Settings { term: TERM, ..Settings::default() });
        net.engines[0] = Engine::new(Settings { store, ..settings_of("b0", 100, TERM) }, net.now);
        net.engines[1] = Engine::new(settings_of("b1", 101, TERM + AHEAD_MS), net.now);
        net.link(0, 1);
        net.settle();
        let holder = candidate(&mut net, 1);
        let last = take(&mut net, holder);
        assert_eq!(term_of(last), TERM + AHEAD_MS);
        net.settle();
        let written: Vec<u64> = net
            .persisted
            .iter()
            .filter_map(|(at, op)| match op {
                Persist::TokenTerm { term } if *at == 0 => Some(*term),
                _ => None,
            })
            .collect();
        assert_eq!(written, store.map(|_| TERM + AHEAD_MS).into_iter().collect::<Vec<_>>());
        let mut again = Net::with(1, &Settings::default());
        again.engines[0] = Engine::new(Settings { store, ..settings_of("b0", 100, TERM + 1) }, again.now);
        written.iter().for_each(|term| again.engines[0].recover_token_term(*term));
        let next = candidate(&mut again, 0);
        assert_eq!(take(&mut again, next) > last, store.is_some());
    }
}

/// A broker without a real-time clock believes its neighbours' tokens, if they are of this century.
#[test]
fn a_clock_of_1970_judges_no_token() {
    const TERM: u64 = 1_800_000_000_000;
    for (term, far, is_believed) in [
        (5_000, TERM, true),
        (5_000, TERM + 200 * 366 * 86_400_000, false),
        (TERM, TERM + 8 * 366 * 86_400_000, true),
        (TERM, TERM + 9 * 366 * 86_400_000, false),
    ] {
        let mut net = Net::new(2);
        net.engines[0] = Engine::new(settings_of("b0", 100, term), net.now);
        net.engines[1] = Engine::new(settings_of("b1", 101, far), net.now);
        net.link(0, 1);
        net.settle();
        let holder = candidate(&mut net, 1);
        let last = take(&mut net, holder);
        net.settle();
        net.put(1, Input::Disconnected { conn: holder.conn });
        net.settle_for(2_000);
        net.unlink(0, 1);
        let next = candidate(&mut net, 0);
        assert_eq!(take(&mut net, next) > last, is_believed, "{term} {far}");
    }
}

fn settings_of(name: &str, run: u64, term: u64) -> Settings {
    Settings { name: name.to_owned(), run, term, ..Settings::default() }
}
