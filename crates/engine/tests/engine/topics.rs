//! Events for subscribers: which events each gets, once each, and how slow ones miss some.

use std::sync::Arc;

use turno_engine::{Effect, Event, Input, Listener, PeerEffect};
use turno_proto::model::admin::{AdminAnswer, AdminCall};
use turno_proto::model::topic::view::{SubscriberView, TopicView};
use turno_proto::model::{Code, ConnId, Filter, Moment, limits};

use crate::harness::{Harness, START_MS};
use crate::seen::{Seen, body};

fn filter(text: &str) -> Filter {
    text.parse().expect("tests use good filters")
}

fn subscribe(harness: &mut Harness, conn: ConnId, text: &str) {
    listen(harness, conn, filter(text), false).expect("there is room");
}

fn listen(harness: &mut Harness, conn: ConnId, filter: Filter, or_close: bool) -> Result<Vec<Seen>, Code> {
    harness.control(|seq| Input::Subscribe { conn, seq, filter, or_close })
}

fn unsubscribe(harness: &mut Harness, conn: ConnId, text: &str) -> Result<Vec<Seen>, Code> {
    harness.control(|seq| Input::Unsubscribe { conn, seq, filter: filter(text) })
}

fn event(topic: &str, text: &str) -> Event {
    Event { topic: topic.parse().expect("tests use good topics"), payload: body(text) }
}

fn publish(harness: &mut Harness, conn: ConnId, topic: &str, text: &str) -> Vec<Effect> {
    harness.step(Input::Publish { conn, seq: 7, confirm: false, event: event(topic, text) })
}

/// Who an event went to.
fn got(said: &[Effect]) -> Vec<ConnId> {
    let listeners = said.iter().flat_map(|effect| match effect {
        Effect::Peer(PeerEffect::Event { listeners, .. }) => listeners.clone(),
        other => panic!("{other:?}"),
    });
    let mut conns: Vec<ConnId> = listeners.map(|listener| listener.conn).collect();
    conns.sort_unstable();
    conns
}

fn call(harness: &mut Harness, call: AdminCall) -> Result<AdminAnswer, Code> {
    harness.look(call)
}

fn create(harness: &mut Harness, id: &str, filters: &[&str]) -> Result<AdminAnswer, Code> {
    let filters = filters.iter().map(|filter| (*filter).to_owned()).collect();
    call(harness, AdminCall::TopicCreate { id: id.to_owned(), filters })
}

/// What waits for a subscriber: bodies, how many it missed, how many are left.
fn recv(harness: &mut Harness, id: &str, limit: u32) -> Result<(Vec<String>, u64, u64), Code> {
    match call(harness, AdminCall::TopicRecv { id: id.to_owned(), limit })? {
        AdminAnswer::Events { events, missed, left } => {
            let text = |payload: &[u8]| String::from_utf8(payload.to_vec()).expect("tests send text");
            Ok((events.iter().map(|event| text(&event.payload)).collect(), missed, left))
        }
        other => panic!("{other:?}"),
    }
}

fn subscribers(harness: &mut Harness, topic: Option<&str>) -> Vec<SubscriberView> {
    let topic = topic.map(ToOwned::to_owned);
    match call(harness, AdminCall::TopicSubscribers { topic, after: None, limit: 100 }) {
        Ok(AdminAnswer::Subscribers { subscribers, next: None }) => subscribers,
        other => panic!("{other:?}"),
    }
}

/// Proves S3.33 and S3.36 for one broker: everyone who listens gets an event once, the publisher too; one effect for all.
#[test]
fn everyone_whose_filter_matches_gets_an_event_once() {
    let mut harness = Harness::new();
    let (a, b, c) = (harness.client(), harness.client(), harness.client());
    for text in ["news.*", "news.>", "news.sport"] {
        subscribe(&mut harness, a, text);
    }
    subscribe(&mut harness, b, "*.sport");
    listen(&mut harness, c, Filter::prefix(b"news.sp").unwrap(), false).unwrap();
    let said = publish(&mut harness, a, "news.sport", "1:0");
    let listener = |conn| Listener { conn, or_close: false };
    let [Effect::Peer(PeerEffect::Event { event: told, listeners })] = &said[..] else { panic!("{said:?}") };
    assert_eq!(**told, event("news.sport", "1:0"));
    assert_eq!(listeners.len(), 3);
    assert!([a, b, c].into_iter().all(|conn| listeners.contains(&listener(conn))));
    assert_eq!(got(&publish(&mut harness, b, "news.art", "x")), [a]);
    assert_eq!(publish(&mut harness, b, "else", "x"), [], "nobody listens");
}

/// An event is answered only if that is asked for, and after it went out.
#[test]
fn a_publisher_may_ask_for_a_confirmation() {
    let mut harness = Harness::new();
    let (a, b) = (harness.client(), harness.client());
    subscribe(&mut harness, a, ">");
    let said = harness.step(Input::Publish { conn: b, seq: 9, confirm: true, event: event("t", "x") });
    let listeners = vec![Listener { conn: a, or_close: false }];
    assert_eq!(
        said,
        [
            Effect::Peer(PeerEffect::Event { event: Arc::new(event("t", "x")), listeners }),
            Effect::Peer(PeerEffect::Answer { conn: b, seq: 9, result: Ok(()) })
        ]
    );
    harness.leave(a);
    let said = harness.step(Input::Publish { conn: b, seq: 10, confirm: true, event: event("t", "x") });
    assert_eq!(said, [Effect::Peer(PeerEffect::Answer { conn: b, seq: 10, result: Ok(()) })]);
}

/// A filter that is taken back, and one whose connection is gone, matches nothing any more.
#[test]
fn who_stops_listening_gets_nothing() {
    let mut harness = Harness::new();
    let (a, b) = (harness.client(), harness.client());
    subscribe(&mut harness, a, "t.*");
    subscribe(&mut harness, a, "t.*");
    subscribe(&mut harness, a, "t.x");
    subscribe(&mut harness, b, ">");
    unsubscribe(&mut harness, a, "t.x").unwrap();
    assert_eq!(got(&publish(&mut harness, b, "t.x", "1")), [a, b], "the other filter is still there");
    unsubscribe(&mut harness, a, "t.*").unwrap();
    assert_eq!(got(&publish(&mut harness, b, "t.x", "2")), [b], "the same filter twice is one");
    assert_eq!(unsubscribe(&mut harness, a, "t.*"), Err(Code::NotFound));
    harness.leave(b);
    let c = harness.client();
    assert_eq!(publish(&mut harness, c, "t.x", "3"), []);
    assert_eq!(subscribers(&mut harness, None), []);
}

/// The latest choice to be closed or to miss events counts for the whole connection.
#[test]
fn a_connection_may_rather_be_closed_than_miss_something() {
    let mut harness = Harness::new();
    let (a, b) = (harness.client(), harness.client());
    subscribe(&mut harness, a, "x");
    listen(&mut harness, a, filter("y"), true).unwrap();
    let said = publish(&mut harness, b, "x", "1");
    let [Effect::Peer(PeerEffect::Event { listeners, .. })] = &said[..] else { panic!("{said:?}") };
    assert_eq!(listeners[..], [Listener { conn: a, or_close: true }]);
    for or_close in [false, true, false] {
        listen(&mut harness, a, filter("y"), or_close).unwrap();
        let said = publish(&mut harness, b, "x", "2");
        let [Effect::Peer(PeerEffect::Event { listeners, .. })] = &said[..] else { panic!("{said:?}") };
        assert_eq!(listeners[..], [Listener { conn: a, or_close }], "the same filter again");
    }
}

/// Filters are limited, for one connection and for all.
#[test]
fn filters_are_limited() {
    let mut harness = Harness::new();
    let a = harness.client();
    for number in 0..limits::SUBSCRIPTIONS_MAX {
        harness.step(Input::Subscribe { conn: a, seq: 1, filter: filter(&format!("t.{number}")), or_close: false });
    }
    assert_eq!(listen(&mut harness, a, filter("more"), false), Err(Code::TooManySubscriptions));
    assert!(listen(&mut harness, a, filter("t.7"), false).is_ok(), "one that is there is no other");
    let b = harness.client();
    assert_eq!(got(&publish(&mut harness, b, "t.7", "x")), [a]);
}

/// Who is not there, or no more, leaves nothing behind.
#[test]
fn a_connection_that_is_gone_does_not_listen() {
    let mut harness = Harness::new();
    let (a, b) = (harness.client(), harness.client());
    harness.leave(a);
    assert_eq!(harness.step(Input::Subscribe { conn: a, seq: 1, filter: filter(">"), or_close: false }), []);
    assert_eq!(publish(&mut harness, b, "t", "x"), []);
}

/// Filters of a subscriber that fetches are added all or not at all.
#[test]
fn a_refused_filter_leaves_a_subscriber_as_it_was() {
    let mut harness = Harness::new();
    create(&mut harness, "mine", &["t.0"]).unwrap();
    for first in (1..limits::SUBSCRIPTIONS_MAX - 1).step_by(100) {
        let some: Vec<String> =
            (first..(first + 100).min(limits::SUBSCRIPTIONS_MAX - 1)).map(|number| format!("t.{number}")).collect();
        create(&mut harness, "mine", &some.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
    }
    assert_eq!(create(&mut harness, "mine", &["t.1", "one", "two"]), Err(Code::TooManySubscriptions));
    let all = &subscribers(&mut harness, None)[0];
    assert_eq!(all.filters_all, limits::SUBSCRIPTIONS_MAX as u64 - 1);
    assert_eq!(subscribers(&mut harness, Some("one")), [], "the one that had room is taken back");
    create(&mut harness, "mine", &["t.1", "one"]).unwrap();
}

/// Proves S3.31, S3.32, S3.34 and S3.35: a subscriber without a connection gets what is published after it was created,
/// first in first out, an explicit answer when there is nothing, and nothing after its end.
#[test]
fn a_subscriber_fetches_what_waits_for_it() {
    let mut harness = Harness::new();
    let a = harness.client();
    publish(&mut harness, a, "t.0", "before");
    create(&mut harness, "mine", &["t.*"]).unwrap();
    assert_eq!(recv(&mut harness, "mine", 10), Ok((vec![], 0, 0)), "no events");
    for text in ["1", "2", "3"] {
        publish(&mut harness, a, "t.x", text);
    }
    assert_eq!(recv(&mut harness, "mine", 2), Ok((vec!["1".to_owned(), "2".to_owned()], 0, 1)));
    assert_eq!(recv(&mut harness, "mine", 2), Ok((vec!["3".to_owned()], 0, 0)));
    create(&mut harness, "mine", &["u"]).unwrap();
    publish(&mut harness, a, "u", "4");
    publish(&mut harness, a, "t.y", "5");
    assert_eq!(recv(&mut harness, "mine", 9).unwrap().0, ["4", "5"], "another filter was added");
    publish(&mut harness, a, "u", "6");
    call(&mut harness, AdminCall::TopicDestroy { id: "mine".to_owned() }).unwrap();
    assert_eq!(recv(&mut harness, "mine", 1), Err(Code::NotFound));
    assert_eq!(call(&mut harness, AdminCall::TopicDestroy { id: "mine".to_owned() }), Err(Code::NotFound));
    create(&mut harness, "mine", &["u"]).unwrap();
    assert_eq!(recv(&mut harness, "mine", 9), Ok((vec![], 0, 0)), "a new one has nothing of the old one");
}

/// What waits to be fetched is limited: the oldest is dropped, and a fetch tells how many were.
#[test]
fn who_fetches_too_rarely_misses_the_oldest() {
    let mut harness = Harness::new();
    let a = harness.client();
    create(&mut harness, "mine", &[">"]).unwrap();
    let large = "x".repeat(limits::FETCHER_BYTES_MAX / 4);
    for number in 0..6 {
        publish(&mut harness, a, "t", &format!("{number}{large}"));
    }
    let (first, missed, left) = recv(&mut harness, "mine", 1).unwrap();
    assert_eq!((first[0].as_bytes()[0], missed, left), (b'3', 3, 2));
    assert_eq!(recv(&mut harness, "mine", 1).unwrap().1, 0, "that is told once");
    publish(&mut harness, a, "t", &"y".repeat(limits::FETCHER_BYTES_MAX));
    assert_eq!(recv(&mut harness, "mine", 1), Ok((vec![], 2, 0)), "what is too large for all of it goes itself");
    assert_eq!(subscribers(&mut harness, None)[0].dropped, 5);
}

#[test]
fn what_is_no_subscriber_is_refused() {
    let mut harness = Harness::new();
    for id in ["", "a b", "a\n", &"x".repeat(limits::FETCHER_ID_BYTES_MAX + 1)] {
        assert_eq!(create(&mut harness, id, &["t"]), Err(Code::BadName), "{id:?}");
    }
    assert_eq!(create(&mut harness, "a", &["t", "t..x"]), Err(Code::BadTopic));
    assert_eq!(recv(&mut harness, "a", 1), Err(Code::NotFound), "and nothing is left of it");
}

/// Who listens to a topic, and what was published lately, can be seen.
#[test]
fn topics_and_subscribers_are_shown() {
    let mut harness = Harness::new();
    let (a, b) = (harness.client(), harness.client());
    subscribe(&mut harness, a, "news.>");
    subscribe(&mut harness, a, "x");
    create(&mut harness, "mine", &["news.sport"]).unwrap();
    publish(&mut harness, b, "news.sport", "12345");
    publish(&mut harness, b, "news.art", "1");
    harness.step(Input::EventsDropped { conn: a, count: 4 });
    let all = subscribers(&mut harness, None);
    assert_eq!(
        all.iter().map(|one| (one.events, one.dropped, one.waiting)).collect::<Vec<_>>(),
        [(2, 4, None), (1, 0, Some(1))]
    );
    assert_eq!((&all[0].filters[..], all[0].filters_all), (&["news.>".to_owned(), "x".to_owned()][..], 2));
    assert_eq!(all[1].name, "mine");
    assert_eq!(subscribers(&mut harness, Some("news.art")).len(), 1);
    let view = |topic: &str, events, bytes, subscribers| TopicView {
        topic: topic.to_owned(),
        events,
        bytes,
        subscribers,
        latest_at: Moment::from_unix_ms(START_MS),
    };
    let expected =
        AdminAnswer::Topics { topics: vec![view("news.art", 1, 1, 1), view("news.sport", 1, 5, 2)], next: None };
    assert_eq!(call(&mut harness, AdminCall::TopicLs { after: None, limit: 9 }), Ok(expected));
    let page = AdminAnswer::Topics { topics: vec![view("news.art", 1, 1, 1)], next: Some("news.art".to_owned()) };
    assert_eq!(call(&mut harness, AdminCall::TopicLs { after: None, limit: 1 }), Ok(page));
}

/// Topics that are heard of once each do not fill the memory, and do not push out one that is heard of often.
#[test]
fn counted_topics_are_limited() {
    let mut harness = Harness::new();
    let a = harness.client();
    for number in 0..3 * limits::TOPICS_COUNTED_MAX {
        harness.step(Input::Publish { conn: a, seq: 1, confirm: false, event: event(&format!("t.{number}"), "x") });
        harness.step(Input::Publish { conn: a, seq: 1, confirm: false, event: event("often", "x") });
    }
    harness.step(Input::Tick);
    let (mut topics, mut after) = (Vec::new(), None);
    loop {
        let Ok(AdminAnswer::Topics { topics: page, next }) =
            call(&mut harness, AdminCall::TopicLs { after, limit: 1_000 })
        else {
            panic!("topics")
        };
        assert!(page.len() <= limits::TOPIC_PAGE_MAX as usize);
        topics.extend(page);
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(topics.len(), limits::TOPICS_COUNTED_MAX);
    assert_eq!(topics[0].events, 3 * limits::TOPICS_COUNTED_MAX as u64);
}

/// Filters of which all match one topic: each of the first places is the segment or `*`, by the bits of a number.
fn overlapping(number: usize, places: usize) -> String {
    let segments = (0..places).map(|place| if number >> place & 1 == 0 { "a" } else { "*" });
    segments.chain(["a"]).collect::<Vec<_>>().join(".")
}

/// However many filters connections ask for, one event is compared with few of them: shapes are limited, for each connection
/// and in all, and those that were refused are let in once others are gone.
#[test]
fn overlapping_filters_are_limited_and_cost_one_event() {
    let mut harness = Harness::new();
    let publisher = harness.client();
    let (places, mut listeners, mut next) = (17, Vec::new(), 0);
    while listeners.len() < 8 {
        let conn = harness.client();
        let mut had = 0;
        let refused = loop {
            match listen(&mut harness, conn, filter(&overlapping(next, places)), false) {
                Ok(_) => (next, had) = (next + 1, had + 1),
                Err(code) => break code,
            }
        };
        assert_eq!(refused, Code::TooManySubscriptions);
        assert!(had <= limits::SHAPES_MAX + 1, "{had}");
        listeners.push(conn);
    }
    assert!(next < limits::STARS_MAX + 2 * places, "{next} filters overlap");
    let topic = ["a"; 18].join(".");
    let said = publish(&mut harness, publisher, &topic, "x");
    assert_eq!(said.len(), 1, "one event for all");
    let heard = got(&said);
    assert!(heard.windows(2).all(|two| two[0] != two[1]), "each once: {heard:?}");
    // Many filters of one shape are no reason to refuse one, and of literal ones any number of lengths.
    let many = harness.client();
    for number in 0..1_000 {
        subscribe(&mut harness, many, &format!("device.{number}.*.state"));
    }
    for length in 1..=32 {
        subscribe(&mut harness, many, &vec!["b"; length].join("."));
    }
    // What a connection leaves, others may have.
    let late = harness.client();
    let wanted = filter(&overlapping(next, places));
    assert_eq!(listen(&mut harness, late, wanted.clone(), false).map(drop), Err(Code::TooManySubscriptions));
    for conn in listeners {
        harness.leave(conn);
    }
    listen(&mut harness, late, wanted, false).expect("there is room again");
}

/// A subscriber that fetches is limited in the same way, and gets nothing of a call that is refused.
#[test]
fn shapes_of_a_subscriber_that_fetches_are_limited() {
    let mut harness = Harness::new();
    let filters: Vec<String> = (0..=limits::SHAPES_MAX).map(|number| overlapping(number + 1, 8)).collect();
    let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
    assert_eq!(create(&mut harness, "s", &filters).map(drop), Err(Code::TooManySubscriptions));
    assert!(subscribers(&mut harness, None).is_empty());
    create(&mut harness, "s", &filters[..limits::SHAPES_MAX]).expect("as many as there may be");
}

/// Proves that a listing of topics is cut where it is work, not only where it is long: every topic comes, by more pages.
#[test]
fn a_page_of_topics_ends_where_its_work_does() {
    let mut harness = Harness::new();
    let publisher = harness.client();
    let (subscribers, topics) = (600, 100);
    for _ in 0..subscribers {
        let conn = harness.client();
        subscribe(&mut harness, conn, "t.>");
    }
    for number in 0..topics {
        publish(&mut harness, publisher, &format!("t.{number:03}"), "x");
    }
    let (mut after, mut names, mut pages) = (None, Vec::new(), 0);
    loop {
        let page = call(&mut harness, AdminCall::TopicLs { after: after.clone(), limit: limits::TOPIC_PAGE_MAX });
        let Ok(AdminAnswer::Topics { topics, next }) = page else { panic!("{page:?}") };
        assert!(topics.iter().all(|topic: &TopicView| topic.subscribers == subscribers));
        names.extend(topics.into_iter().map(|topic| topic.topic));
        pages += 1;
        let Some(next) = next else { break };
        after = Some(next);
    }
    assert_eq!((pages, names.len()), (2, topics));
    assert!(names.is_sorted());
}
