//! Requests, sends and admin calls on one connection.

use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::job::JobId;
use turno_proto::model::{Durability, MessageId};
use turno_proto::native::RawOutgoing;

use super::super::calls::CALLS_MAX;
use super::*;

#[test]
fn options_become_fields_and_a_queue_is_opened_once() {
    let mut rig = TestCore::open(&["a"]);
    let full = Ask {
        timeout_ms: Some(2_000),
        retries: Some(3),
        priority: Some(9),
        cost: Some(2),
        fail_fast: true,
        no_reply: true,
        ..ask("q", "x")
    };
    rig.request(1, full);
    rig.core.send(rig.now, Ticket(2), ask("q", "y"));
    rig.core.send(rig.now, Ticket(3), ask("r", "z"));
    let sent = rig.sent();
    let request = RawOutgoing {
        deadline_ms: Some(2_000),
        retries: Some(3),
        priority: Some(9),
        cost: Some(2),
        fail_fast: true,
        cancel_on_disconnect: true,
        no_reply: true,
        ..RawOutgoing::new(4, 0, raw("x"))
    };
    assert_eq!(
        frames(&sent),
        [
            Frame::Open { seq: 3, handle: 0, name: b"q" },
            Frame::Request(request),
            Frame::Send(RawOutgoing::new(5, 0, raw("y"))),
            Frame::Open { seq: 6, handle: 1, name: b"r" },
            Frame::Send(RawOutgoing::new(7, 1, raw("z"))),
        ]
    );
}

#[test]
fn every_answer_ends_its_call() {
    let mut rig = TestCore::open(&["a"]);
    let id = MessageId::new(1, 2, 3);
    for ticket in 1..=4 {
        rig.request(ticket, ask("q", "x"));
    }
    rig.core.send(rig.now, Ticket(5), ask("q", "x"));
    rig.core.admin(rig.now, Ticket(6), AdminCall::Status);
    rig.core.admin(rig.now, Ticket(7), AdminCall::Status);
    rig.sent();
    let answer = AdminAnswer::Queues { queues: Vec::new(), next: None };
    rig.say(&[
        Frame::Ok { seq: 5 },
        Frame::Delivered { seq: 7 },
        Frame::Progress { seq: 6, word: 0, raw: raw("half") },
        Frame::Reply { seq: 6, word: 0, more: true, raw: raw("one") },
        reply(6, "two"),
        Frame::Undelivered { seq: 8, code: Code::Failed, raw: raw("oops") },
        Frame::Stored { seq: 10, durability: Durability::Memory, id, duplicate: false },
        Frame::AdminAnswer { seq: 3, answer: answer.clone() },
        Frame::Error { seq: 4, code: Code::NotFound, fatal: false, detail: "no" },
        // Answered before, and never asked.
        reply(6, "again"),
        reply(99, "who"),
    ]);
    assert_eq!(
        rig.events(),
        [
            CoreEvent::Delivered { ticket: Ticket(2) },
            CoreEvent::Progress { ticket: Ticket(1), payload: Payload::body("half") },
            CoreEvent::Reply { ticket: Ticket(1), more: true, payload: Payload::body("one") },
            replied(1, "two"),
            CoreEvent::Failed { ticket: Ticket(3), code: Code::Failed, payload: Payload::body("oops") },
            CoreEvent::Stored { ticket: Ticket(5), id, durability: Durability::Memory, duplicate: false },
            CoreEvent::Admin { ticket: Ticket(6), answer: Box::new(answer) },
            CoreEvent::Failed { ticket: Ticket(7), code: Code::NotFound, payload: Payload::body("no") },
        ]
    );
    assert_eq!(rig.core.calls.len(), 1, "only the fourth waits");
}

/// A job may take days, and a call that waits for its end has no deadline; any other call has.
#[test]
fn who_waits_for_a_job_waits_as_long_as_it_takes() {
    let mut rig = TestCore::open(&["a"]);
    rig.core.admin(rig.now, Ticket(1), AdminCall::JobWait { job: JobId(7) });
    rig.core.admin(rig.now, Ticket(2), AdminCall::Status);
    rig.sent();
    let mut ends = Vec::new();
    // Frames of the broker keep the connection, for an hour.
    for _ in 0..3_600 {
        rig.pass_ms(1_000);
        rig.say(&[Frame::Pong { seq: 0 }]);
        rig.sent();
        ends.extend(rig.events());
    }
    assert_eq!(ends, [failed(2, Code::TimedOut)]);
    rig.say(&[Frame::Error { seq: 3, code: Code::NotFound, fatal: false, detail: "" }]);
    assert_eq!(rig.events(), [failed(1, Code::NotFound)]);
}

#[test]
fn a_refused_queue_is_opened_again_when_it_is_wanted_again() {
    let mut rig = TestCore::open(&["a"]);
    rig.request(1, ask("q", "x"));
    rig.sent();
    rig.say(&[
        Frame::Error { seq: 3, code: Code::TooManyQueues, fatal: false, detail: "" },
        Frame::Undelivered { seq: 4, code: Code::UnknownHandle, raw: raw("") },
    ]);
    assert_eq!(rig.events(), [failed(1, Code::TooManyQueues)], "the reason behind the unknown handle");
    rig.request(2, ask("q", "x"));
    let sent = rig.sent();
    assert!(matches!(frames(&sent)[..], [Frame::Open { handle: 0, .. }, Frame::Request(_)]));
}

#[test]
fn a_cancelled_call_ends_once_and_tells_the_broker_if_it_was_written() {
    let mut rig = TestCore::open(&["a"]);
    rig.request(1, ask("q", "x"));
    rig.core.send(rig.now, Ticket(2), ask("q", "x"));
    rig.sent();
    rig.request(3, ask("q", "x"));
    for ticket in [1, 1, 2, 3, 9] {
        rig.core.cancel(Ticket(ticket));
    }
    assert_eq!(frames(&rig.sent()), [Frame::Cancel { seq: 4, word: 0, reason: None }]);
    assert_eq!(rig.events(), [failed(3, Code::Cancelled)]);
    rig.say(&[Frame::Undelivered { seq: 4, code: Code::Cancelled, raw: raw("") }]);
    assert_eq!(rig.events(), [failed(1, Code::Cancelled)]);
}

/// A cancelled call is never made again elsewhere, though flagged or given back.
#[test]
fn a_cancelled_call_is_not_sent_again() {
    let mut rig = TestCore::open(&["a", "b"]);
    rig.request(1, Ask { resend: true, ..ask("q", "x") });
    rig.request(2, ask("q", "x"));
    rig.sent();
    rig.core.cancel(Ticket(1));
    rig.core.cancel(Ticket(2));
    rig.sent();
    rig.say(&[Frame::Undelivered { seq: 5, code: Code::Closing, raw: raw("") }]);
    assert_eq!(rig.events(), [failed(2, Code::Cancelled)]);
    rig.core.handle_disconnected(rig.now, "reset");
    assert!(rig.events().contains(&failed(1, Code::ConnectionLost)));
}

/// Every request ends: one second after its deadline at the latest, though the broker says nothing about it.
#[test]
fn a_call_the_broker_forgets_ends_a_second_after_its_deadline() {
    let mut rig = TestCore::open(&["a"]);
    rig.request(1, Ask { timeout_ms: Some(3_000), ..ask("q", "x") });
    rig.core.send(rig.now, Ticket(2), Ask { timeout_ms: Some(86_400_000), ..ask("q", "x") });
    rig.sent();
    rig.pass_ms(3_999);
    assert_eq!(rig.events(), []);
    rig.pass_ms(1);
    assert_eq!(rig.events(), [failed(1, Code::TimedOut)]);
    assert_eq!(frames(&rig.sent()), [Frame::Cancel { seq: 4, word: 0, reason: None }]);
    // Its number is not free before the broker answers; the late answer is nobody's.
    assert!(rig.core.link.pending.contains_key(&4));
    rig.say(&[reply(4, "late")]);
    assert!(!rig.core.link.pending.contains_key(&4));
    assert_eq!(rig.events(), []);
    // The message of the send lives for a day, its sender waits for the answer no longer than for a reply.
    for _ in 0..27 {
        rig.pass_ms(1_000);
        rig.say(&[Frame::Pong { seq: 0 }]);
    }
    assert_eq!(rig.events(), [failed(2, Code::TimedOut)]);
}

#[test]
fn a_message_the_broker_would_not_take_is_not_sent() {
    let mut rig = TestCore::open(&["a"]);
    let body = "x".repeat(1_024 - 24);
    rig.core.request(rig.now, Ticket(1), Ask::new(queue("q"), Payload::body(body.clone() + "x")));
    rig.core.request(rig.now, Ticket(2), Ask::new(queue("q"), Payload::body(body)));
    let sent = rig.sent();
    assert!(matches!(frames(&sent)[..], [Frame::Open { .. }, Frame::Request(_)]));
    assert_eq!(rig.events(), [failed(1, Code::FrameTooLarge)]);
}

#[test]
fn calls_are_bounded() {
    let mut rig = TestCore::new(&["a"]);
    rig.events();
    for ticket in 0..=CALLS_MAX as u64 {
        rig.request(ticket, ask("q", "x"));
    }
    assert_eq!(rig.events(), [failed(CALLS_MAX as u64, Code::TooManyInFlight)]);
}

/// Calls are written in portions, so that a loss hits few of them; waiting bytes are counted.
#[test]
fn a_portion_at_a_time_is_written() {
    let mut rig = TestCore::open(&["a"]);
    let body = Payload::body("x".repeat(1_000));
    for ticket in 0..1_000 {
        rig.core.request(rig.now, Ticket(ticket), Ask::new(queue("q"), body.clone()));
    }
    assert_eq!(rig.core.unsent_bytes(), 1_000_000);
    let first = rig.sent().len();
    assert!((256 * 1024..258 * 1024).contains(&first), "{first}");
    assert!(rig.core.unsent_bytes() < 750_000);
    while !rig.sent().is_empty() {}
    assert_eq!(rig.core.unsent_bytes(), 0);
}

#[test]
fn closing_ends_every_call() {
    let mut rig = TestCore::open(&["a"]);
    rig.request(1, ask("q", "x"));
    rig.sent();
    rig.request(2, ask("q", "x"));
    rig.core.close(rig.now);
    assert_eq!(rig.events(), [failed(1, Code::Cancelled), failed(2, Code::Cancelled)]);
    let sent = rig.sent();
    let cancel = Frame::Cancel { seq: 4, word: 0, reason: None };
    assert!(matches!(&frames(&sent)[..], [first, Frame::Closing { .. }] if *first == cancel));
    rig.request(3, ask("q", "x"));
    assert_eq!(rig.events(), [failed(3, Code::ConnectionLost)]);
    assert_eq!(rig.core.next_deadline(), None);
    rig.core.close(rig.now);
    assert!(rig.sent().is_empty() && rig.events().is_empty());
}
