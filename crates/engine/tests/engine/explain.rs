//! Anything that waits can say why.

use turno_engine::Input;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::{MessageKind, MessageState, MessageView, Reason};
use turno_proto::model::{Code, MessageId, Moment, Seconds, Slots, WorkerId};

use crate::harness::{Harness, START_MS, ask};
use crate::seen::{sent, turn};

fn why(harness: &mut Harness, id: MessageId) -> Reason {
    harness.explain(id).because.0
}

/// A waiting message names what keeps it: nobody consumes, nobody is ready, everybody drains, everybody is busy and
/// how many go first.
#[test]
fn why_a_message_waits() {
    let mut harness = Harness::new();
    let client = harness.client();
    let (id, _) = harness.send(client, ask(1, "q", "a"));
    assert_eq!(why(&mut harness, id), Reason::NoWorker);
    let greeting = harness.connect();
    assert_eq!(harness.register(greeting, Slots::Limited(1)), Ok(vec![]));
    assert_eq!(harness.consume(greeting, "q"), Ok(vec![]));
    assert_eq!(why(&mut harness, id), Reason::WorkersGreeting { workers: 1 });
    assert_eq!(harness.say(Input::PeerClosing { conn: greeting }), []);
    assert_eq!(harness.ready(greeting), []);
    assert_eq!(why(&mut harness, id), Reason::WorkersDraining { workers: 1 });
    let second = harness.connect();
    assert_eq!(harness.register(second, Slots::Limited(2)), Ok(vec![]));
    assert_eq!(harness.consume(second, "q"), Ok(vec![]));
    assert_eq!(why(&mut harness, id), Reason::WorkersGreeting { workers: 1 }, "one drains, one greets");
    assert_eq!(harness.ready(second), [sent(second, "a")]);
    let since = Reason::AtWorker { worker: WorkerId(2), name: "w2".to_owned(), since_seconds: Seconds::from_millis(0) };
    assert_eq!(why(&mut harness, id), since);
    assert_eq!(harness.send(client, ask(2, "q", "b")).1, [sent(second, "b")]);
    let (third, _) = harness.send(client, ask(3, "q", "c"));
    let (fourth, _) = harness.send(client, ask(4, "q", "d"));
    let (urgent, _) = harness.send(client, ask(5, "q", "e").priority(9));
    for (id, ahead) in [(urgent, 0), (third, 1), (fourth, 2)] {
        assert_eq!(
            why(&mut harness, id),
            Reason::AllBusy { workers: 2, used: 2, ahead, probing: 0, dropped: 0, not_reading: 0, brokers: 0 }
        );
    }
}

/// A costly message says that it is too costly, or which worker is kept for it, and those behind it say that they wait
/// for it.
#[test]
fn why_a_costly_message_waits() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(3, &["q"]), harness.client());
    let (costly, got) = harness.send(client, ask(1, "q", "a").cost(4));
    assert_eq!(got, []);
    let (behind, _) = harness.send(client, ask(2, "q", "b"));
    assert_eq!(why(&mut harness, costly), Reason::TooCostly { cost: 4, largest: 3 });
    assert_eq!(why(&mut harness, behind), Reason::Behind { ahead: 1 });
    assert_eq!(harness.resize(worker, 4), Ok(vec![sent(worker, "a").cost(4)]));
    let (dear, _) = harness.send(client, ask(3, "q", "c").cost(2).priority(5));
    assert_eq!(why(&mut harness, dear), Reason::Reserved { worker: WorkerId(1), cost: 2, free: 0 });
    assert_eq!(
        why(&mut harness, behind),
        Reason::AllBusy { workers: 1, used: 4, ahead: 1, probing: 0, dropped: 0, not_reading: 0, brokers: 0 }
    );
}

/// A costly head for which no worker is left to keep, because another queue's head keeps it, is not "behind" nobody:
/// the workers are busy.
#[test]
fn why_the_second_costly_head_waits() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q", "other"]), harness.client());
    let _small = harness.worker(1, &["other"]);
    assert_eq!(harness.send(client, ask(1, "q", "a")).1, [sent(worker, "a")]);
    let (first, _) = harness.send(client, ask(2, "q", "b").cost(2));
    let (second, got) = harness.send(client, ask(3, "other", "c").cost(2));
    assert_eq!(got, []);
    assert_eq!(why(&mut harness, first), Reason::Reserved { worker: WorkerId(1), cost: 2, free: 1 });
    assert_eq!(
        why(&mut harness, second),
        Reason::AllBusy { workers: 2, used: 1, ahead: 0, probing: 0, dropped: 0, not_reading: 0, brokers: 0 }
    );
}

/// What is at a worker, stopping, dead, or held up by a drain says so.
#[test]
fn why_a_message_does_not_wait() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    assert_eq!(harness.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    let id = harness.id(worker, "a");
    assert_eq!(harness.pass(1_500), []);
    let since =
        Reason::AtWorker { worker: WorkerId(1), name: "w0".to_owned(), since_seconds: Seconds::from_millis(1_500) };
    assert_eq!(why(&mut harness, id), since);
    assert_eq!(harness.cancel(client, 1).len(), 2);
    assert_eq!(why(&mut harness, id), Reason::Stopping { worker: WorkerId(1) });
    assert_eq!(harness.ack(worker, "a"), []);
    let (dead, _) = harness.send(client, ask(2, "q", "b"));
    assert_eq!(harness.fail_for_good(worker, "b", "bad \u{fffd}"), []);
    assert_eq!(why(&mut harness, dead), Reason::Dead { failure: "bad \u{fffd}".to_owned() });
    assert_eq!(harness.send(client, ask(3, "q", "c")).1, [sent(worker, "c")]);
    let (waiting, _) = harness.send(client, ask(4, "q", "d"));
    assert_eq!(harness.say(Input::Drain { within_ms: 1_000 }).len(), 2);
    assert_eq!(why(&mut harness, waiting), Reason::Draining);
}

/// Proves S1.31: a message is shown with all that is known about it, and never with its body.
#[test]
fn a_message_as_it_is_shown() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(2, &["q"]), harness.client());
    let question = ask(1, "q", "body").cost(2).priority(8).retries(3).within(10_000);
    assert_eq!(harness.request(client, question), [turn(worker, "body").cost(2).left(Some(10_000))]);
    assert_eq!(harness.pass(2_500), []);
    let id = harness.id(worker, "body");
    let view = MessageView {
        id: id.to_string(),
        queue: "q".to_owned(),
        kind: MessageKind::Request,
        state: MessageState::InFlight,
        attempts: 1,
        attempts_max: 4,
        priority: 8,
        cost: 2,
        bytes: 4,
        received_at: Moment::from_unix_ms(START_MS),
        age_seconds: Seconds::from_millis(2_500),
        deadline_at: Some(Moment::from_unix_ms(START_MS + 10_000)),
        delayed_until: None,
        worker: Some(WorkerId(1)),
        came_by: Vec::new(),
    };
    assert_eq!(harness.explain(id).message, view);
    assert_eq!(harness.fail(worker, "body", "no").len(), 1);
    assert_eq!(harness.resize(worker, 0), Ok(vec![]));
    assert_eq!(harness.fail(worker, "body", "no"), []);
    let waiting = MessageView { state: MessageState::Ready, attempts: 2, worker: None, ..view.clone() };
    assert_eq!(harness.explain(id).message, waiting);
    assert_eq!(harness.queue("q").head, Some(vec![waiting]));
    assert_eq!(harness.resize(worker, 2), Ok(vec![turn(worker, "body").cost(2).attempt(3).left(Some(7_500))]));
    assert_eq!(harness.cancel(client, 1).len(), 2);
    let stopping = MessageView { state: MessageState::Stopping, attempts: 3, bytes: 0, deadline_at: None, ..view };
    assert_eq!(harness.explain(id).message, stopping);
    assert_eq!(harness.worker_view("w0").holds, Some(vec![stopping]));
}

/// Ids of another run, of a message that is gone, or that are no ids, are not found.
#[test]
fn what_is_not_there_is_not_found() {
    let mut harness = Harness::new();
    let (worker, client) = (harness.worker(1, &["q"]), harness.client());
    let (id, _) = harness.send(client, ask(1, "q", "a"));
    let place = id.place().expect("it is in memory");
    let other_run = MessageId::new(id.run() + 1, id.serial(), place);
    let other_serial = MessageId::new(id.run(), id.serial() + 1, place);
    let other_place = MessageId::new(id.run(), id.serial(), place + 1);
    for id in [other_run, other_serial, other_place].map(|id| id.to_string()).into_iter().chain(["xyz".to_owned()]) {
        assert_eq!(harness.look(AdminCall::MessageExplain { id }), Err(Code::NotFound));
    }
    let upper = id.to_string().to_uppercase();
    assert!(matches!(harness.look(AdminCall::MessageExplain { id: upper }), Ok(AdminAnswer::Message { .. })));
    assert_eq!(harness.ack(worker, "a"), []);
    assert_eq!(harness.look(AdminCall::MessageExplain { id: id.to_string() }), Err(Code::NotFound));
}
