//! Anything that waits can say why.

use turno_engine::Input;
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::{MessageKind, MessageState, MessageView, Reason};
use turno_proto::model::{Code, MessageId, Moment, Seconds, Slots, WorkerId};

use crate::desk::{Desk, START_MS, ask};
use crate::seen::{sent, turn};

fn why(desk: &mut Desk, id: MessageId) -> Reason {
    desk.explain(id).because.0
}

/// A waiting message names what keeps it: nobody consumes, nobody is ready, everybody drains, everybody is busy and
/// how many go first.
#[test]
fn why_a_message_waits() {
    let mut desk = Desk::new();
    let client = desk.client();
    let (id, _) = desk.send(client, ask(1, "q", "a"));
    assert_eq!(why(&mut desk, id), Reason::NoWorker);
    let greeting = desk.connect();
    assert_eq!(desk.register(greeting, Slots::Limited(1)), Ok(vec![]));
    assert_eq!(desk.consume(greeting, "q"), Ok(vec![]));
    assert_eq!(why(&mut desk, id), Reason::WorkersGreeting { workers: 1 });
    assert_eq!(desk.say(Input::PeerClosing { conn: greeting }), []);
    assert_eq!(desk.ready(greeting), []);
    assert_eq!(why(&mut desk, id), Reason::WorkersDraining { workers: 1 });
    let second = desk.connect();
    assert_eq!(desk.register(second, Slots::Limited(2)), Ok(vec![]));
    assert_eq!(desk.consume(second, "q"), Ok(vec![]));
    assert_eq!(why(&mut desk, id), Reason::WorkersGreeting { workers: 1 }, "one drains, one greets");
    assert_eq!(desk.ready(second), [sent(second, "a")]);
    let since = Reason::AtWorker { worker: WorkerId(2), name: "w2".to_owned(), since_seconds: Seconds::from_millis(0) };
    assert_eq!(why(&mut desk, id), since);
    assert_eq!(desk.send(client, ask(2, "q", "b")).1, [sent(second, "b")]);
    let (third, _) = desk.send(client, ask(3, "q", "c"));
    let (fourth, _) = desk.send(client, ask(4, "q", "d"));
    let (urgent, _) = desk.send(client, ask(5, "q", "e").priority(9));
    for (id, ahead) in [(urgent, 0), (third, 1), (fourth, 2)] {
        assert_eq!(
            why(&mut desk, id),
            Reason::AllBusy { workers: 2, used: 2, ahead, probing: 0, dropped: 0, not_reading: 0, brokers: 0 }
        );
    }
}

/// A costly message says that it is too costly, or which worker is kept for it, and those behind it say that they wait
/// for it.
#[test]
fn why_a_costly_message_waits() {
    let mut desk = Desk::new();
    let (worker, client) = (desk.worker(3, &["q"]), desk.client());
    let (costly, got) = desk.send(client, ask(1, "q", "a").cost(4));
    assert_eq!(got, []);
    let (behind, _) = desk.send(client, ask(2, "q", "b"));
    assert_eq!(why(&mut desk, costly), Reason::TooCostly { cost: 4, largest: 3 });
    assert_eq!(why(&mut desk, behind), Reason::Behind { ahead: 1 });
    assert_eq!(desk.resize(worker, 4), Ok(vec![sent(worker, "a").cost(4)]));
    let (dear, _) = desk.send(client, ask(3, "q", "c").cost(2).priority(5));
    assert_eq!(why(&mut desk, dear), Reason::Reserved { worker: WorkerId(1), cost: 2, free: 0 });
    assert_eq!(
        why(&mut desk, behind),
        Reason::AllBusy { workers: 1, used: 4, ahead: 1, probing: 0, dropped: 0, not_reading: 0, brokers: 0 }
    );
}

/// A costly head for which no worker is left to keep, because another queue's head keeps it, is not "behind" nobody:
/// the workers are busy.
#[test]
fn why_the_second_costly_head_waits() {
    let mut desk = Desk::new();
    let (worker, client) = (desk.worker(2, &["q", "other"]), desk.client());
    let _small = desk.worker(1, &["other"]);
    assert_eq!(desk.send(client, ask(1, "q", "a")).1, [sent(worker, "a")]);
    let (first, _) = desk.send(client, ask(2, "q", "b").cost(2));
    let (second, got) = desk.send(client, ask(3, "other", "c").cost(2));
    assert_eq!(got, []);
    assert_eq!(why(&mut desk, first), Reason::Reserved { worker: WorkerId(1), cost: 2, free: 1 });
    assert_eq!(
        why(&mut desk, second),
        Reason::AllBusy { workers: 2, used: 1, ahead: 0, probing: 0, dropped: 0, not_reading: 0, brokers: 0 }
    );
}

/// What is at a worker, stopping, dead, or held up by a drain says so.
#[test]
fn why_a_message_does_not_wait() {
    let mut desk = Desk::new();
    let (worker, client) = (desk.worker(1, &["q"]), desk.client());
    assert_eq!(desk.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    let id = desk.id(worker, "a");
    assert_eq!(desk.pass(1_500), []);
    let since =
        Reason::AtWorker { worker: WorkerId(1), name: "w0".to_owned(), since_seconds: Seconds::from_millis(1_500) };
    assert_eq!(why(&mut desk, id), since);
    assert_eq!(desk.cancel(client, 1).len(), 2);
    assert_eq!(why(&mut desk, id), Reason::Stopping { worker: WorkerId(1) });
    assert_eq!(desk.ack(worker, "a"), []);
    let (dead, _) = desk.send(client, ask(2, "q", "b"));
    assert_eq!(desk.fail_for_good(worker, "b", "bad \u{fffd}"), []);
    assert_eq!(why(&mut desk, dead), Reason::Dead { failure: "bad \u{fffd}".to_owned() });
    assert_eq!(desk.send(client, ask(3, "q", "c")).1, [sent(worker, "c")]);
    let (waiting, _) = desk.send(client, ask(4, "q", "d"));
    assert_eq!(desk.say(Input::Drain { within_ms: 1_000 }).len(), 2);
    assert_eq!(why(&mut desk, waiting), Reason::Draining);
}

/// Proves S1.31: a message is shown with all that is known about it, and never with its body.
#[test]
fn a_message_as_it_is_shown() {
    let mut desk = Desk::new();
    let (worker, client) = (desk.worker(2, &["q"]), desk.client());
    let question = ask(1, "q", "body").cost(2).priority(8).retries(3).within(10_000);
    assert_eq!(desk.request(client, question), [turn(worker, "body").cost(2).left(Some(10_000))]);
    assert_eq!(desk.pass(2_500), []);
    let id = desk.id(worker, "body");
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
        worker: Some(WorkerId(1)),
        came_by: Vec::new(),
    };
    assert_eq!(desk.explain(id).message, view);
    assert_eq!(desk.fail(worker, "body", "no").len(), 1);
    assert_eq!(desk.resize(worker, 0), Ok(vec![]));
    assert_eq!(desk.fail(worker, "body", "no"), []);
    let waiting = MessageView { state: MessageState::Ready, attempts: 2, worker: None, ..view.clone() };
    assert_eq!(desk.explain(id).message, waiting);
    assert_eq!(desk.queue("q").head, Some(vec![waiting]));
    assert_eq!(desk.resize(worker, 2), Ok(vec![turn(worker, "body").cost(2).attempt(3).left(Some(7_500))]));
    assert_eq!(desk.cancel(client, 1).len(), 2);
    let stopping = MessageView { state: MessageState::Stopping, attempts: 3, bytes: 0, deadline_at: None, ..view };
    assert_eq!(desk.explain(id).message, stopping);
    assert_eq!(desk.worker_view("w0").holds, Some(vec![stopping]));
}

/// Ids of another run, of a message that is gone, or that are no ids, are not found.
#[test]
fn what_is_not_there_is_not_found() {
    let mut desk = Desk::new();
    let (worker, client) = (desk.worker(1, &["q"]), desk.client());
    let (id, _) = desk.send(client, ask(1, "q", "a"));
    let place = id.place().expect("it is in memory");
    let other_run = MessageId::new(id.run() + 1, id.serial(), place);
    let other_serial = MessageId::new(id.run(), id.serial() + 1, place);
    let other_place = MessageId::new(id.run(), id.serial(), place + 1);
    for id in [other_run, other_serial, other_place].map(|id| id.to_string()).into_iter().chain(["xyz".to_owned()]) {
        assert_eq!(desk.look(AdminCall::MessageExplain { id }), Err(Code::NotFound));
    }
    let upper = id.to_string().to_uppercase();
    assert!(matches!(desk.look(AdminCall::MessageExplain { id: upper }), Ok(AdminAnswer::Message { .. })));
    assert_eq!(desk.ack(worker, "a"), []);
    assert_eq!(desk.look(AdminCall::MessageExplain { id: id.to_string() }), Err(Code::NotFound));
}
