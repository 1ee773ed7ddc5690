//! A worker of several queues is fed round robin over those with work, and as their weights say.

use turno_engine::Settings;
use turno_proto::model::ConnId;
use turno_proto::model::admin::AdminCall;
use turno_proto::model::view::QueueSettings;

use crate::harness::{Harness, ask};
use crate::seen::{Seen, sent};

/// Workers stand in the rota of each queue, or in one for all.
const BOTH_KINDS: [usize; 2] = [8, 0];

fn harness_with(own_rotas_max: usize) -> Harness {
    Harness::with(Settings { own_rotas_max, ..Settings::default() })
}

fn weigh(harness: &mut Harness, queue: &str, weight: u8) {
    let settings = Some(QueueSettings { weight: Some(weight), ..QueueSettings::default() });
    harness.admin(AdminCall::QueueSet { queue: queue.to_owned(), settings }).0.expect("it may be set");
}

fn put(harness: &mut Harness, client: ConnId, queue: &str, count: usize) {
    for _ in 0..count {
        assert_eq!(harness.send(client, ask(1, queue, queue)).1, []);
    }
}

/// The queues of the next deliveries, each settled before the next. The worker has one slot and holds one of `first`.
fn order(harness: &mut Harness, worker: ConnId, first: &str, count: usize) -> String {
    let mut held = first.to_owned();
    let mut order = String::new();
    for _ in 0..count {
        let seen = harness.ack(worker, &held);
        let [Seen::Turn(turn)] = &seen[..] else { panic!("{order}, then {seen:?}") };
        held.clone_from(&turn.queue);
        order += &held;
    }
    order
}

/// A worker of one slot with these queues that holds a message of the first.
fn busy_worker(harness: &mut Harness, queues: &[&str]) -> (ConnId, ConnId) {
    let (worker, client) = (harness.worker(1, queues), harness.client());
    assert_eq!(harness.send(client, ask(1, queues[0], queues[0])).1, [sent(worker, queues[0]).of(queues[0])]);
    (worker, client)
}

/// Each queue with work gets one message a round, however long its backlog is.
#[test]
fn a_long_backlog_has_no_more_turns_than_a_short_one() {
    for own_rotas_max in BOTH_KINDS {
        let mut harness = harness_with(own_rotas_max);
        let (worker, client) = busy_worker(&mut harness, &["a", "b", "c"]);
        put(&mut harness, client, "a", 100);
        put(&mut harness, client, "c", 3);
        put(&mut harness, client, "b", 2);
        assert_eq!(order(&mut harness, worker, "a", 10), "bcabcacaaa");
    }
}

/// A message that is placed as it comes has had its queue's turn: what waited elsewhere meanwhile is next.
#[test]
fn a_hot_queue_does_not_starve_the_others() {
    for own_rotas_max in BOTH_KINDS {
        let mut harness = harness_with(own_rotas_max);
        let (worker, client) = busy_worker(&mut harness, &["a", "b"]);
        put(&mut harness, client, "b", 50);
        let mut held = "a".to_owned();
        let mut got = String::new();
        for _ in 0..40 {
            // As soon as one of the hot queue is out, two more are there.
            put(&mut harness, client, "a", 2);
            let seen = harness.ack(worker, &held);
            let [Seen::Turn(turn)] = &seen[..] else { panic!("{seen:?}") };
            held.clone_from(&turn.queue);
            got += &held;
        }
        assert_eq!(got, "ba".repeat(20));
    }
}

/// The hot queue's message finds a free slot and empty backlogs; then both queues wait: the other one is next.
#[test]
fn a_message_placed_at_once_counts_as_a_turn() {
    for own_rotas_max in BOTH_KINDS {
        for (first, expected) in [("a", "bab"), ("b", "aba")] {
            let mut harness = harness_with(own_rotas_max);
            let (worker, client) = (harness.worker(1, &["a", "b"]), harness.client());
            assert_eq!(harness.send(client, ask(1, first, first)).1, [sent(worker, first).of(first)]);
            put(&mut harness, client, "a", 2);
            put(&mut harness, client, "b", 2);
            assert_eq!(order(&mut harness, worker, first, 3), expected);
        }
    }
}

/// A queue of weight w gets w messages a round, in a row, and no more than it has.
#[test]
fn weights_are_messages_a_round() {
    for own_rotas_max in BOTH_KINDS {
        let mut harness = harness_with(own_rotas_max);
        let (worker, client) = busy_worker(&mut harness, &["z", "a", "b", "c"]);
        weigh(&mut harness, "a", 3);
        weigh(&mut harness, "c", 2);
        put(&mut harness, client, "a", 7);
        put(&mut harness, client, "b", 4);
        put(&mut harness, client, "c", 3);
        assert_eq!(order(&mut harness, worker, "z", 14), "aaabccaaabcabb");
    }
}

/// A weight that changes counts from the next turn on, and one is what it was without.
#[test]
fn a_weight_may_change_at_any_time() {
    for own_rotas_max in BOTH_KINDS {
        let mut harness = harness_with(own_rotas_max);
        let (worker, client) = busy_worker(&mut harness, &["z", "a", "b"]);
        weigh(&mut harness, "a", 100);
        put(&mut harness, client, "a", 20);
        put(&mut harness, client, "b", 20);
        assert_eq!(order(&mut harness, worker, "z", 5), "aaaaa");
        weigh(&mut harness, "a", 2);
        weigh(&mut harness, "b", 3);
        assert_eq!(order(&mut harness, worker, "a", 7), "abbbaab");
    }
}

/// A queue whose head fits nobody does not take the turns of the others, nor change whose turn it is.
#[test]
fn a_head_that_fits_nobody_is_passed_over_fairly() {
    for own_rotas_max in BOTH_KINDS {
        let mut harness = harness_with(own_rotas_max);
        let (worker, client) = busy_worker(&mut harness, &["z", "t", "a", "b"]);
        assert_eq!(harness.send(client, ask(1, "t", "t").cost(5)).1, []);
        put(&mut harness, client, "a", 5);
        put(&mut harness, client, "b", 5);
        assert_eq!(order(&mut harness, worker, "z", 6), "ababab");
    }
}

/// Several workers with room share the queues; every one goes its own round.
#[test]
fn every_worker_has_a_round_of_its_own() {
    for own_rotas_max in BOTH_KINDS {
        let mut harness = harness_with(own_rotas_max);
        let (one, client) = busy_worker(&mut harness, &["a", "b"]);
        let other = harness.worker(1, &["a", "b"]);
        assert_eq!(harness.send(client, ask(1, "b", "b")).1, [sent(other, "b").of("b")]);
        put(&mut harness, client, "a", 6);
        put(&mut harness, client, "b", 6);
        assert_eq!(order(&mut harness, one, "a", 4), "baba");
        assert_eq!(order(&mut harness, other, "b", 4), "abab");
    }
}
