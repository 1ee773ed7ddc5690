//! Ending a message before its time.

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::view::Reason;
use turno_proto::model::{Code, MessageId, Slots};

use crate::desk::{Desk, ask};
use crate::seen::{Seen, reply, sent, turn, undelivered};

/// A message ended by an admin: why it was where it was, and what follows.
fn cancel(desk: &mut Desk, id: MessageId) -> (Result<Reason, Code>, Vec<Seen>) {
    let (answer, seen) = desk.admin(AdminCall::MessageCancel { id: id.to_string() });
    let reason = answer.map(|answer| match answer {
        AdminAnswer::Message { explanation } => explanation.reason,
        other => panic!("{other:?} is no message"),
    });
    (reason, seen)
}

/// Proves I12 and S0.28: a caller takes its own waiting request back; it is never delivered, the rest keeps its
/// order, and a second CANCEL finds nothing.
#[test]
fn a_waiting_request_is_taken_back() {
    let mut desk = Desk::new();
    let (client, other) = (desk.client(), desk.client());
    for (seq, text) in [(1, "a"), (2, "b"), (3, "c")] {
        assert_eq!(desk.request(client, ask(seq, "q", text)), []);
    }
    assert_eq!(desk.cancel(other, 2), [], "it is not theirs");
    assert_eq!(desk.cancel(client, 9), [], "no such request");
    assert_eq!(desk.cancel(client, 2), [undelivered(client, 2, Code::Cancelled)]);
    assert_eq!(desk.cancel(client, 2), []);
    let (worker, got) = desk.joining(Slots::Limited(3), &["q"]);
    assert_eq!(got, [turn(worker, "a"), turn(worker, "c")]);
    assert_eq!(desk.counters().cancelled, 1);
}

/// Proves I9 and I12: a running request is over for its caller at once; its worker is told and keeps the slots
/// until it has stopped, or for 10 s.
#[test]
fn a_running_request_is_cancelled() {
    let mut desk = Desk::new();
    let (worker, client) = (desk.worker(1, &["q"]), desk.client());
    assert_eq!(desk.request(client, ask(1, "q", "a").retries(5)), [turn(worker, "a")]);
    assert_eq!(desk.request(client, ask(2, "q", "b").within(60_000)), []);
    let told = [undelivered(client, 1, Code::Cancelled), desk.stopped(worker, "a", Code::Cancelled)];
    assert_eq!(desk.cancel(client, 1), told);
    assert_eq!(desk.cancel(client, 1), []);
    assert_eq!(desk.status().bytes, 128 + 129, "its body is not kept");
    assert_eq!(desk.pass(9_999), []);
    assert_eq!(desk.status().slots_used, 1);
    assert_eq!(desk.pass(1), [turn(worker, "b").left(Some(50_000))]);
    assert_eq!(desk.reply(worker, "a", "A"), []);
    assert_eq!(desk.reply(worker, "b", "B"), [reply(client, 2, "B")]);
    assert_eq!((desk.counters().late, desk.counters().cancelled), (1, 1));
}

/// Proves I12: an answered request has nothing left to cancel, and a cancelled one whose number is used again is
/// not confused with the new one.
#[test]
fn cancelling_after_the_end() {
    let mut desk = Desk::new();
    let (worker, client) = (desk.worker(1, &["q"]), desk.client());
    assert_eq!(desk.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(desk.reply(worker, "a", "A"), [reply(client, 1, "A")]);
    assert_eq!(desk.cancel(client, 1), []);
    assert_eq!(desk.request(client, ask(1, "q", "b")), [turn(worker, "b")]);
    assert_eq!(desk.reply(worker, "a", "again"), []);
    let told = [undelivered(client, 1, Code::Cancelled), desk.stopped(worker, "b", Code::Cancelled)];
    assert_eq!(desk.cancel(client, 1), told);
}

/// Proves I12: an admin ends any message by its id: waiting, running, stopping or dead; ids that are not, or no
/// longer, are not found.
#[test]
fn an_admin_ends_any_message() {
    let mut desk = Desk::new();
    let client = desk.client();
    let (waiting, _) = desk.send(client, ask(1, "q", "a"));
    assert_eq!(cancel(&mut desk, waiting), (Ok(Reason::NoWorker), vec![]));
    assert_eq!(cancel(&mut desk, waiting), (Err(Code::NotFound), vec![]));
    let worker = desk.worker(1, &["q"]);
    let at_worker = Reason::AtWorker { worker: 1, name: "w1".to_owned(), since_ms: 0 };
    assert_eq!(desk.request(client, ask(2, "q", "b")), [turn(worker, "b")]);
    let running = desk.id(worker, "b");
    assert_ne!(running, waiting, "the place is the same, the id is not");
    let told = vec![undelivered(client, 2, Code::Cancelled), desk.stopped(worker, "b", Code::Cancelled)];
    assert_eq!(cancel(&mut desk, running), (Ok(at_worker.clone()), told));
    assert_eq!(cancel(&mut desk, running), (Ok(Reason::Stopping { worker: 1 }), vec![]));
    assert_eq!(desk.ack(worker, "b"), []);
    assert_eq!(cancel(&mut desk, running), (Err(Code::NotFound), vec![]));
    let (sent_id, got) = desk.send(client, ask(3, "q", "c"));
    assert_eq!(got, [sent(worker, "c")]);
    let told = vec![desk.stopped(worker, "c", Code::Cancelled)];
    assert_eq!(cancel(&mut desk, sent_id), (Ok(at_worker), told), "a send has nobody to tell");
    assert_eq!(desk.ack(worker, "c"), []);
    let (dead, _) = desk.send(client, ask(4, "q", "d"));
    assert_eq!(desk.fail_for_good(worker, "d", "no"), []);
    assert_eq!(cancel(&mut desk, dead), (Ok(Reason::Dead { failure: "no".to_owned() }), vec![]));
    assert_eq!((desk.status().dead, desk.status().bytes), (0, 0));
    let (answer, _) = desk.admin(AdminCall::MessageCancel { id: "no id at all".to_owned() });
    assert_eq!(answer, Err(Code::NotFound));
}

/// Proves S2.34: what was cancelled at a worker that is then lost, or deregisters, is over; its slots are too.
#[test]
fn a_cancelled_delivery_of_a_leaving_worker() {
    let mut desk = Desk::new();
    let (worker, client) = (desk.worker(2, &["q"]), desk.client());
    desk.send(client, ask(1, "q", "a"));
    let id = desk.id(worker, "a");
    let told = vec![desk.stopped(worker, "a", Code::Cancelled)];
    assert_eq!(cancel(&mut desk, id).1, told);
    assert_eq!(desk.deregister(worker), Ok(vec![]));
    assert_eq!(desk.status().workers, 1, "it still holds the slot");
    assert_eq!(desk.pass(10_000), []);
    assert_eq!((desk.status().workers, desk.status().in_flight), (0, 0));
}

/// Proves I11: taking back a head that held up the rest lets the rest out in the same step.
#[test]
fn cancelling_the_head_lets_the_next_out() {
    let mut desk = Desk::new();
    let (worker, client) = (desk.worker(2, &["q"]), desk.client());
    assert_eq!(desk.request(client, ask(1, "q", "a")), [turn(worker, "a")]);
    assert_eq!(desk.request(client, ask(2, "q", "dear").cost(2)), []);
    assert_eq!(desk.request(client, ask(3, "q", "b")), []);
    assert_eq!(desk.cancel(client, 2), [undelivered(client, 2, Code::Cancelled), turn(worker, "b")]);
}
