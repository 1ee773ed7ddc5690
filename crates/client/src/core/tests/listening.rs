//! Topics: what is published, and who hears it, over one connection and the next.

use turno_proto::model::{Filter, Topic};
use turno_proto::native::RawEvent as EventFrame;

use super::*;

fn filter(text: &str) -> Filter {
    text.parse().unwrap()
}

fn subscribe(seq: u32, text: &str) -> Frame<'static> {
    Frame::Subscribe { seq, filter: filter(text), or_close: false }
}

fn event<'a>(topic: &'a str, body: &'a str) -> Frame<'a> {
    Frame::Event(EventFrame { topic: topic.as_bytes(), payload: raw(body) })
}

fn published(tickets: &[u64], topic: &str, body: &'static str) -> CoreEvent {
    let tickets = tickets.iter().copied().map(Ticket).collect();
    CoreEvent::Published { tickets, topic: topic.parse::<Topic>().unwrap(), payload: Payload::body(body) }
}

fn subscribed(ticket: u64) -> CoreEvent {
    CoreEvent::Subscribed { ticket: Ticket(ticket) }
}

impl TestCore {
    fn listen(&mut self, ticket: u64, text: &str) {
        self.core.subscribe(Ticket(ticket), filter(text), false);
    }

    fn publish(&mut self, ticket: u64, topic: &str, body: &'static str, confirm: bool) {
        self.core.publish(self.now, Ticket(ticket), topic.parse().unwrap(), Payload::body(body), confirm);
    }
}

/// An event comes once and goes to every subscription with a filter that matches; the last one that leaves a filter takes
/// it back.
#[test]
fn an_event_goes_to_everyone_here_whose_filter_matches() {
    let mut rig = TestCore::open(&["a"]);
    for (ticket, text) in [(1, "t.*"), (2, ">"), (3, "t.*")] {
        rig.listen(ticket, text);
    }
    assert_eq!(frames(&rig.sent()), [subscribe(3, "t.*"), subscribe(4, ">"), subscribe(5, "t.*")]);
    rig.say(&[Frame::Ok { seq: 3 }, Frame::Ok { seq: 4 }, Frame::Ok { seq: 5 }]);
    assert_eq!(rig.events(), [subscribed(1), subscribed(3), subscribed(2)], "each is told once");
    rig.say(&[event("t.x", "1"), event("u", "2"), Frame::EventsDropped { count: 7 }]);
    let dropped = CoreEvent::EventsDropped { count: 7 };
    assert_eq!(rig.events(), [published(&[1, 2, 3], "t.x", "1"), published(&[2], "u", "2"), dropped]);
    rig.core.cancel(Ticket(1));
    assert_eq!(frames(&rig.sent()), [], "the third still wants it");
    rig.core.cancel(Ticket(3));
    assert_eq!(frames(&rig.sent()), [Frame::Unsubscribe { seq: 6, filter: filter("t.*") }]);
    rig.say(&[event("t.x", "3")]);
    assert_eq!(rig.events(), [published(&[2], "t.x", "3")]);
}

/// On the next connection the broker is told of all filters, and the listeners that something may be missing.
#[test]
fn filters_are_told_to_the_next_broker() {
    let mut rig = TestCore::open(&["a", "b"]);
    rig.listen(1, "x");
    rig.sent();
    rig.say(&[Frame::Ok { seq: 3 }]);
    rig.events();
    rig.core.handle_disconnected(rig.now, "gone");
    rig.greet();
    let told = rig.events();
    assert!(told.contains(&CoreEvent::ListeningAgain) && !told.contains(&subscribed(1)), "{told:?}");
    assert_eq!(frames(&rig.sent()), [subscribe(3, "x")]);
    rig.say(&[Frame::Ok { seq: 3 }, event("x", "1")]);
    assert_eq!(rig.events(), [published(&[1], "x", "1")]);
}

/// A broker that does not take a filter ends the subscriptions that use it, and no others.
#[test]
fn a_refused_filter_ends_its_subscriptions() {
    let mut rig = TestCore::open(&["a"]);
    rig.listen(1, "x");
    rig.listen(2, "y");
    rig.sent();
    let refusal = Frame::Error { seq: 3, code: Code::TooManySubscriptions, fatal: false, detail: "" };
    rig.say(&[refusal, Frame::Ok { seq: 4 }, event("x", "1")]);
    assert_eq!(rig.events(), [failed(1, Code::TooManySubscriptions), subscribed(2)]);
}

/// Several filters of one subscription: told once all are taken, each event once, and gone together.
#[test]
fn a_subscription_may_have_several_filters() {
    let mut rig = TestCore::open(&["a"]);
    rig.core.subscribe_all(Ticket(1), ["t.*", "t.x", "t.*"].map(filter), false);
    rig.listen(2, "t.x");
    assert_eq!(frames(&rig.sent()), [subscribe(3, "t.*"), subscribe(4, "t.x"), subscribe(5, "t.x")]);
    rig.say(&[Frame::Ok { seq: 3 }]);
    assert_eq!(rig.events(), []);
    rig.say(&[Frame::Ok { seq: 4 }, Frame::Ok { seq: 5 }, event("t.x", "1"), event("t.y", "2")]);
    let heard = [published(&[1, 2], "t.x", "1"), published(&[1], "t.y", "2")];
    assert_eq!(rig.events(), [&[subscribed(1), subscribed(2)][..], &heard].concat());
    rig.core.cancel(Ticket(1));
    assert_eq!(frames(&rig.sent()), [Frame::Unsubscribe { seq: 6, filter: filter("t.*") }], "the other one is in use");
    rig.core.subscribe_all(Ticket(3), [], false);
    assert_eq!(rig.events(), [subscribed(3)]);
}

/// One refused filter ends the subscription, and the broker need not keep the others.
#[test]
fn one_refused_filter_of_several_ends_all() {
    let mut rig = TestCore::open(&["a"]);
    rig.core.subscribe_all(Ticket(1), ["x", "y"].map(filter), false);
    rig.sent();
    let refusal = Frame::Error { seq: 4, code: Code::TooManySubscriptions, fatal: false, detail: "" };
    rig.say(&[Frame::Ok { seq: 3 }, refusal]);
    assert_eq!(rig.events(), [failed(1, Code::TooManySubscriptions)]);
    assert_eq!(frames(&rig.sent()), [Frame::Unsubscribe { seq: 5, filter: filter("x") }]);
}

/// A subscription with `or_close` ends with its connection, with the broker's reason if it gave one; the others
/// go on.
#[test]
fn who_would_rather_end_ends_with_the_connection() {
    for slow in [true, false] {
        let mut rig = TestCore::open(&["a", "b"]);
        rig.listen(1, "x");
        rig.core.subscribe(Ticket(2), filter("y"), true);
        rig.core.subscribe(Ticket(3), filter("z"), true);
        rig.say(&[Frame::Ok { seq: 3 }, Frame::Ok { seq: 4 }]);
        rig.events();
        let code = if slow {
            rig.say(&[Frame::Error { seq: 0, code: Code::SlowReader, fatal: true, detail: "" }]);
            Code::SlowReader
        } else {
            rig.core.handle_disconnected(rig.now, "gone");
            Code::ConnectionLost
        };
        let told = rig.events();
        let ended: Vec<_> = told.iter().filter(|event| matches!(event, CoreEvent::Failed { .. })).collect();
        assert_eq!(ended, [&failed(2, code)], "the third had not begun");
        rig.greet();
        assert!(rig.events().contains(&CoreEvent::ListeningAgain));
        let strict = Frame::Subscribe { seq: 4, filter: filter("z"), or_close: true };
        let first = Frame::Subscribe { seq: 3, filter: filter("x"), or_close: true };
        assert_eq!(frames(&rig.sent()), [first, strict], "events of a connection wait in one line");
        rig.core.cancel(Ticket(3));
        let gone = Frame::Unsubscribe { seq: 5, filter: filter("z") };
        assert_eq!(frames(&rig.sent()), [gone, subscribe(6, "x")], "who stays would rather miss something");
    }
}

/// Without a wish for an answer an event is done when it is written; with one when the broker says OK.
#[test]
fn events_are_published_in_order() {
    let mut rig = TestCore::open(&["a"]);
    rig.publish(1, "t", "x", false);
    rig.publish(2, "t", "y", true);
    let frame =
        |seq, confirm, body| Frame::Publish { seq, confirm, event: EventFrame { topic: b"t", payload: raw(body) } };
    assert_eq!(frames(&rig.sent()), [frame(3, false, "x"), frame(4, true, "y")]);
    let done = |ticket| CoreEvent::PublishDone { ticket: Ticket(ticket) };
    assert_eq!(rig.events(), [done(1)]);
    rig.say(&[Frame::Ok { seq: 4 }]);
    assert_eq!(rig.events(), [done(2)]);
    rig.publish(3, "t", "z", true);
    rig.sent();
    rig.core.handle_disconnected(rig.now, "gone");
    assert!(rig.events().contains(&failed(3, Code::ConnectionLost)));
}

/// An event that is published without a connection waits for one, as every message does; one that is too long is refused here.
#[test]
fn events_wait_for_a_connection() {
    let mut rig = TestCore::new(&["a"]);
    rig.publish(1, "t", "x", false);
    rig.core.publish(rig.now, Ticket(2), "t".parse().unwrap(), Payload::body(vec![0; 2_000]), false);
    rig.greet();
    let sent = rig.sent();
    assert_eq!(frames(&sent).len(), 1);
    let told = rig.events();
    assert!(
        told.contains(&CoreEvent::PublishDone { ticket: Ticket(1) }) && told.contains(&failed(2, Code::FrameTooLarge))
    );
}

/// The end of the client is the end of its subscriptions.
#[test]
fn a_closed_client_hears_nothing() {
    let mut rig = TestCore::open(&["a"]);
    rig.listen(1, "x");
    rig.core.close(rig.now);
    assert_eq!(rig.events(), [failed(1, Code::Cancelled)]);
    rig.listen(2, "x");
    assert_eq!(rig.events(), [failed(2, Code::ConnectionLost)]);
}
