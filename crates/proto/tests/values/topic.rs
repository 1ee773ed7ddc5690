//! Frames about topics, calls and their answers.

use bytes::Bytes;
use turno_proto::model::topic::view::{EventView, SubscriberView, TopicView};
use turno_proto::model::{Filter, Moment};
use turno_proto::native::admin::{AdminAnswer, AdminCall};
use turno_proto::native::{Frame, Raw, RawEvent};

pub(super) fn frames() -> Vec<(&'static str, Frame<'static>)> {
    let pattern = || Filter::pattern(b"news.*.>").expect("a filter");
    let prefix = || Filter::prefix(b"ne\xff").expect("a filter");
    let event = RawEvent { topic: b"news.eu.art", payload: Raw { headers: false, bytes: b"hi" } };
    let headed = RawEvent { topic: b"t", payload: Raw { headers: true, bytes: b"\x05\x00\x81\xa1a\xa1bhi" } };
    let bare = RawEvent { topic: b"t", payload: Raw { headers: false, bytes: b"" } };
    vec![
        ("subscribe", Frame::Subscribe { seq: 3, filter: pattern(), or_close: false }),
        ("subscribe_prefix_or_close", Frame::Subscribe { seq: 4, filter: prefix(), or_close: true }),
        ("unsubscribe", Frame::Unsubscribe { seq: 5, filter: pattern() }),
        ("unsubscribe_prefix", Frame::Unsubscribe { seq: 6, filter: prefix() }),
        ("publish", Frame::Publish { seq: 0, confirm: false, event }),
        ("publish_confirm_headers", Frame::Publish { seq: 7, confirm: true, event: headed }),
        ("event", Frame::Event(event)),
        ("event_headers", Frame::Event(headed)),
        ("event_without_body", Frame::Event(bare)),
        ("events_dropped", Frame::EventsDropped { count: 70_000 }),
    ]
}

pub(super) fn calls() -> Vec<(&'static str, Frame<'static>)> {
    let id = || "mine".to_owned();
    let calls = vec![
        ("call_topic_ls", AdminCall::TopicLs { after: None, limit: 100 }),
        ("call_topic_ls_next", AdminCall::TopicLs { after: Some("news".to_owned()), limit: 100 }),
        ("call_topic_subscribers", AdminCall::TopicSubscribers { topic: None, after: None, limit: 100 }),
        (
            "call_topic_subscribers_of_one",
            AdminCall::TopicSubscribers { topic: Some("news.art".to_owned()), after: Some(7), limit: 100 },
        ),
        ("call_topic_create", AdminCall::TopicCreate { id: id(), filters: vec!["news.*".to_owned(), "a".to_owned()] }),
        ("call_topic_recv", AdminCall::TopicRecv { id: id(), limit: 10 }),
        ("call_topic_destroy", AdminCall::TopicDestroy { id: id() }),
    ];
    calls.into_iter().map(|(name, call)| (name, Frame::AdminCall { seq: 11, call })).collect()
}

pub(super) fn answers() -> Vec<(&'static str, Frame<'static>)> {
    let latest_at = Moment::from_unix_ms(1_794_744_000_000);
    let topic =
        TopicView { topic: "news.art".to_owned(), events: 70_000, bytes: 5_000_000_000, subscribers: 3, latest_at };
    let connection = SubscriberView {
        number: 7,
        name: "screen".to_owned(),
        address: Some("127.0.0.1:4711".to_owned()),
        filters: vec!["news.>".to_owned()],
        filters_all: 1,
        or_close: true,
        events: 5,
        dropped: 2,
        waiting: None,
    };
    let fetcher = SubscriberView {
        number: 8,
        name: "mine".to_owned(),
        address: None,
        or_close: false,
        waiting: Some(3),
        ..connection.clone()
    };
    let event = |headers, payload| EventView { topic: "news.art".to_owned(), headers, payload };
    let events = vec![event(false, Bytes::from_static(b"hi")), event(true, Bytes::from_static(b"\x01\x00\x80"))];
    let answers = vec![
        ("answer_topics", AdminAnswer::Topics { topics: vec![topic], next: Some("news.art".to_owned()) }),
        ("answer_subscribers", AdminAnswer::Subscribers { subscribers: vec![connection, fetcher], next: Some(8) }),
        ("answer_events", AdminAnswer::Events { events, missed: 4, left: 70_000 }),
        ("answer_no_events", AdminAnswer::Events { events: Vec::new(), missed: 0, left: 0 }),
    ];
    answers.into_iter().map(|(name, answer)| (name, Frame::AdminAnswer { seq: 11, answer })).collect()
}
