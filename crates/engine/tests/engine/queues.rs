//! Queues come into being by being named and are forgotten when nobody uses them.

use turno_proto::model::admin::AdminCall;
use turno_proto::model::{Code, Slots};

use crate::harness::{Harness, ask};
use crate::seen::{reply, sent, turn, undelivered};

fn names(harness: &mut Harness) -> Vec<String> {
    match harness.look(AdminCall::QueueLs { after: None, limit: 100 }) {
        Ok(turno_proto::model::admin::AdminAnswer::Queues { queues, next: None }) => {
            queues.into_iter().map(|queue| queue.name).collect()
        }
        other => panic!("{other:?} is no list of queues"),
    }
}

/// Proves S2.39: a queue is there as soon as somebody names it, and until the last handle, message and worker of it
/// is gone.
#[test]
fn a_queue_lives_as_long_as_it_is_used() {
    let mut harness = Harness::new();
    let (client, worker) = (harness.client(), harness.client());
    assert_eq!(harness.open(client, 0, "q"), Ok(vec![]));
    assert_eq!(names(&mut harness), ["q"]);
    harness.send(client, ask(1, "q", "a"));
    assert_eq!(harness.leave(client), []);
    assert_eq!(names(&mut harness), ["q"], "a message is in it");
    assert_eq!(harness.register(worker, Slots::Limited(1)), Ok(vec![]));
    assert_eq!(harness.consume(worker, "q"), Ok(vec![sent(worker, "a")]));
    assert_eq!(harness.deregister(worker), Ok(vec![]));
    assert_eq!(harness.open(worker, 0, "other"), Ok(vec![]));
    assert_eq!(names(&mut harness), ["other", "q"], "a delivery of it runs");
    assert_eq!(harness.fail_for_good(worker, "a", "no"), []);
    assert_eq!(names(&mut harness), ["other", "q"], "a dead letter is in it");
    let id = harness.id(worker, "a");
    let (answer, seen) = harness.admin(AdminCall::MessageCancel { id: id.to_string() });
    assert_eq!((answer.is_ok(), seen), (true, vec![]));
    assert_eq!(names(&mut harness), ["other"]);
    assert_eq!(harness.leave(worker), []);
    assert_eq!(names(&mut harness), Vec::<String>::new());
}

/// Proves S2.39: OPEN with a handle in use gives it another queue; what was asked under it before stays where it
/// is and is answered as ever.
#[test]
fn a_handle_may_be_pointed_elsewhere() {
    let mut harness = Harness::new();
    let client = harness.client();
    assert_eq!(harness.open(client, 3, "q"), Ok(vec![]));
    assert_eq!(harness.open(client, 3, "q"), Ok(vec![]), "the same again changes nothing");
    assert_eq!(harness.request(client, ask(1, "q", "a")), []);
    assert_eq!(harness.open(client, 3, "mail"), Ok(vec![]));
    assert_eq!(harness.request(client, ask(2, "mail", "b")), []);
    assert_eq!(names(&mut harness), ["mail", "q"]);
    let worker = harness.client();
    assert_eq!(harness.register(worker, Slots::Limited(2)), Ok(vec![]));
    assert_eq!(harness.consume(worker, "q"), Ok(vec![turn(worker, "a")]));
    assert_eq!(harness.consume(worker, "mail"), Ok(vec![turn(worker, "b").of("mail")]));
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    assert_eq!(harness.reply(worker, "b", "B"), [reply(client, 2, "B")]);
}

/// Proves S2.39: the handle a worker consumes with stays the queue's, because its deliveries name it; once it has
/// left the queue, or for another handle of the same queue, OPEN may point elsewhere.
#[test]
fn the_handle_of_a_consumer_stays() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    assert_eq!(harness.open(worker, 0, "mail"), Err(Code::AlreadyConsuming));
    assert_eq!(harness.open(worker, 0, "q"), Err(Code::AlreadyConsuming));
    assert_eq!(harness.open(worker, 1, "q"), Ok(vec![]));
    assert_eq!(harness.open(worker, 1, "mail"), Ok(vec![]));
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(harness.open(worker, 1, "q"), Ok(vec![]));
    assert_eq!(harness.cancel_queue(worker, "q"), Ok(vec![]), "by whichever handle");
    assert_eq!(harness.open(worker, 0, "mail"), Ok(vec![]));
    assert_eq!(harness.reply(worker, "a", "A"), [reply(client, 1, "A")]);
}

/// Proves S2.39: several handles and several connections may name one queue; it is one queue.
#[test]
fn many_handles_one_queue() {
    let mut harness = Harness::new();
    let (client, other) = (harness.client(), harness.client());
    for handle in [0, 1, 200] {
        assert_eq!(harness.open(client, handle, "q"), Ok(vec![]));
    }
    assert_eq!(harness.open(other, 7, "q"), Ok(vec![]));
    assert_eq!((names(&mut harness).len(), harness.leave(client)), (1, vec![]));
    assert_eq!((names(&mut harness).len(), harness.leave(other)), (1, vec![]));
    assert_eq!(names(&mut harness).len(), 0);
}

/// Proves S2.39 and I12: a queue whose place is used again by another shares nothing with it, and the last waiting
/// request that expires takes its queue along.
#[test]
fn a_forgotten_queue_leaves_nothing_behind() {
    let mut harness = Harness::new();
    let client = harness.client();
    assert_eq!(harness.open(client, 0, "old"), Ok(vec![]));
    assert_eq!(harness.request(client, ask(1, "old", "a").within(500)), []);
    assert_eq!(harness.open(client, 0, "kept"), Ok(vec![]));
    assert_eq!(names(&mut harness), ["kept", "old"]);
    assert_eq!(harness.pass(500), [undelivered(client, 1, Code::TimedOut)]);
    assert_eq!(names(&mut harness), ["kept"]);
    assert_eq!(harness.open(client, 1, "new"), Ok(vec![]));
    let view = harness.queue("new");
    assert_eq!((view.ready, view.bytes, view.counters), (0, 0, Default::default()));
}
